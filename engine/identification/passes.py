"""The passes of an identification over the spectra: the first, and the second on the proteins that the first found."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.enzymes import Specificity
from proteoscope.engine.chemistry.modifications import SearchModification, parse_modification, replacing_fixed
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.files import storage_errors
from proteoscope.engine.identification.compilation import FRAGMENT_INDEX
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.fragment_intensities import why_not_predicted
from proteoscope.engine.matches.psms import Psms, collect_psms
from proteoscope.engine.matches.scoring import modification_arrays
from proteoscope.engine.matches.scoring_by_series import ScoringBySeries
from proteoscope.engine.matches.search_passes import SearchPass, series_counts
from proteoscope.engine.matches.tables import Scored, identified_proteins
from proteoscope.engine.peptides.digestion import Digestion
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.peptides.known_forms import SearchedForms
from proteoscope.engine.peptides.peptide_index import build_peptide_index
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

__all__ = ["Pass", "SecondPass", "near_isotopes", "second_pass"]

_MAXIMUM_ISOTOPES = 1
_MAXIMUM_WITHOUT_DECOY = 0.02  # of the found proteins; false matches to them would meet no decoy to tell of them
_MB = 1_000_000


class Pass:
    """One pass of preprocessed spectra against an index, with these variable modifications: it is planned, then scored."""

    def __init__(
        self,
        spectra: SpectrumIndex,
        indexes: Indexes,
        modifications: tuple[SearchModification, ...],
        parameters: IdentificationParameters,
        resources: Resources,
    ) -> None:
        self._spectra, self._indexes, self._modifications = spectra, indexes, modifications
        self._parameters, self._resources = parameters, resources
        self._search: ScoringBySeries
        self._seconds = 0.0

    def plan(self) -> None:
        """Count the candidates, and cut the work."""
        parameters, resources = self._parameters, self._resources
        with resources.clock.stage("plan"):
            proteins, index = self._indexes
            known = None if proteins.known is None else proteins.known.arrays(index.digestion)
            arrays, peptides = modification_arrays(self._modifications, parameters, known), index.arrays(proteins, len(self._modifications))
            self._search = ScoringBySeries(self._spectra, peptides, arrays, parameters, resources, FRAGMENT_INDEX.compile)
            self._search.plan()

    def score(self) -> Psms:
        """The matches."""
        with self._resources.clock.stage("score"):
            began = time.perf_counter()
            matches = self._search.run(with_bonds=self._predicts_intensities)
            self._seconds = time.perf_counter() - began
            return collect_psms(matches, self._indexes.peptides, self._indexes.proteins, self._modifications)

    @property
    def n_candidates(self) -> NDArray[np.int64]:
        """(q,) int64: candidates of each query, once it is planned."""
        return self._search.n_candidates

    @property
    def seconds_per_candidate(self) -> float:
        """Seconds of scoring per candidate; 0 before the pass is scored."""
        return self._seconds / max(1, int(self.n_candidates.sum()))

    @property
    def _predicts_intensities(self) -> bool:
        # Of both passes or of none: matches of the second are scored by what was learnt from those of the first.
        parameters = self._parameters
        of_second = map(parse_modification, parameters.second_pass_modifications if parameters.second_pass else ())
        every = (*self._modifications, *of_second, *self._indexes.peptides.digestion.fixed)
        series = self._spectra.ion_series.letters
        return parameters.predicted_intensities and parameters.decoys != "none" and not why_not_predicted(parameters, series, every)

    def done(self, name: str, specificity: Specificity, **more: Any) -> SearchPass:
        """What it is done with."""
        known = self._indexes.proteins.known
        return SearchPass.of(
            name, self._parameters, specificity, variable_modifications=tuple(map(str, self._modifications)),
            known_modifications=() if known is None else tuple(map(str, known.modifications)), n_spectra=self._spectra.n_searched,
            ion_series=series_counts(self._spectra), **more,
        )  # fmt: skip


def near_isotopes(parameters: IdentificationParameters) -> tuple[int, ...]:
    """The isotope errors that were asked for, up to one; all where none is."""
    return tuple(error for error in parameters.isotope_errors if error <= _MAXIMUM_ISOTOPES) or parameters.isotope_errors


class SecondPass(NamedTuple):
    """Matches of a second pass, and what it was done with."""

    psms: Psms
    done: SearchPass


def second_pass(
    first: Scored, spectra: SpectrumIndex, indexes: Indexes, folder: Path, parameters: IdentificationParameters, resources: Resources
) -> SecondPass | None:
    """Search the spectra that the first pass left, on the proteins it found and their decoys; None where there are none.

    With more modifications, though fewer in a peptide, and fewer required cuts, and so with many more candidates; for isotope errors up to
    `_MAXIMUM_ISOTOPES`. Few proteins are looked at, so that a wider precursor tolerance than the first pass's costs little: what errs more
    than most is found here. The index is made for this once, in `folder`.
    """
    proteins = indexes.proteins
    found = identified_proteins(first, proteins, parameters.fdr)
    partners = proteins.partners()[found]
    if np.count_nonzero(partners < 0) > _MAXIMUM_WITHOUT_DECOY * len(found):
        reason = "not each of the found proteins has its decoy, whose accession is the protein's with the decoy prefix or suffix"
        resources.progress.message(f"There is no second pass: {reason}", "warning")
        return None
    selected = np.unique(np.concatenate((found, partners[partners >= 0])))
    identified = first.psms.spectrum[first.q_value <= parameters.fdr]
    remaining = spectra.only(np.setdiff1d(spectra.queries.spectrum, identified))
    if len(found) == 0 or remaining.n_searched == 0:
        return None
    names = dict.fromkeys((*parameters.variable_modifications, *parameters.second_pass_modifications))
    modifications = replacing_fixed(tuple(parse_modification(name) for name in names), indexes.peptides.digestion.fixed)
    most = min(parameters.second_pass_maximum_modifications, parameters.maximum_modifications)
    with storage_errors(folder, only_disk=True), tempfile.TemporaryDirectory(prefix="second-pass-", dir=folder) as own:
        with resources.clock.stage("index"):
            digestion = Digestion.of(parameters, parameters.second_pass_specificity)
            memory_bytes = parameters.index_memory * _MB
            forms = SearchedForms(modifications, most, parameters.maximum_forms)
            peptides = build_peptide_index(
                Path(own), proteins, digestion, resources, memory_bytes=memory_bytes, selected=selected, forms=forms
            )
        of_found = Indexes(proteins, peptides)
        narrow = parameters.changed(isotope_errors=near_isotopes(parameters), maximum_modifications=most)
        again = Pass(remaining, of_found, modifications, narrow, resources)
        again.plan()
        done = again.done("second", parameters.second_pass_specificity, proteins="found", n_proteins=len(found))
        return SecondPass(again.score(), done)
