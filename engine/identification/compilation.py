"""Kernels of an identification, with those of wide windows and known modifications, which most users never need, apart."""

from __future__ import annotations

from functools import partial

from proteoscope import kernels
from proteoscope.engine import execution, identification, matches, peptides
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder

__all__ = ["FRAGMENT_INDEX", "KNOWN_FORMS", "SCORING"]

_ENTRY = """ID   ONE_BOVIN               Reviewed;          20 AA.
AC   A0A0000000;
FT   MOD_RES         5
FT                   /note="Phosphoserine"
SQ   SEQUENCE   20 AA;  2000 MW;  0000000000000000 CRC64;
     MGASSPVTKC LINDQEHFYR
//
"""
"""A protein with a known modification in UniProt format."""


def _use(*, with_index: bool) -> None:
    matches.compilation.use_scoring(identification.parameters.IdentificationParameters(), with_index=with_index)


def _use_forms() -> None:
    """Index a protein with its known modifications."""
    parameters = identification.parameters.IdentificationParameters().changed(known_modifications=True)
    forms = peptides.known_forms.SearchedForms((), parameters.maximum_modifications, parameters.maximum_forms)
    with scratch_folder() as folder:
        path = folder / "protein.dat"
        path.write_text(_ENTRY, encoding="ascii")
        peptides.indexes.build_indexes(
            peptides.indexes.Databases([path], [], {}, forms=forms), path.parent, parameters, execution.resources.Resources(threads=1)
        )


SCORING = Kernels("kernels", lambda: kernels.cpu.fragment_intensities.compare_intensities, partial(_use, with_index=False))
FRAGMENT_INDEX = Kernels("fragment index", lambda: kernels.cpu.candidates.score_candidates, partial(_use, with_index=True))
"""Comes after `SCORING`, whose kernels must not come in pieces."""
KNOWN_FORMS = Kernels("listing of known modifications", lambda: kernels.cpu.known_forms.list_known_forms, _use_forms, "some seconds")
"""Likewise."""
