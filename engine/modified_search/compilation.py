"""The kernels of the search for modified peptides; those that score spectra are among them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from proteoscope.engine.execution.compilation import Kernels

__all__ = ["MODIFIED"]

_IDENTIFICATION = {"maximum_modifications": 1, "maximum_forms": 1, "hits_per_spectrum": 1, "score": "hyperscore"}
"""What an identification is asked for besides, of which nothing is needed but the kernels."""
_SHIFT = 15.994915


def _last() -> Callable[..., Any]:
    from proteoscope.kernels.cpu.shift_placement import score_places

    return score_places


def _use() -> None:
    """Search next to nothing, through the same functions and so with the same types as a real search."""
    import numpy as np

    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.formats import read_spectra
    from proteoscope.engine.matches.compilation import PROTEIN, spectrum_of, use_scoring
    from proteoscope.engine.modified_search.candidate_search import Candidates, peptide_lists, query_lists
    from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
    from proteoscope.engine.modified_search.ranking import place_candidates, rank_candidates
    from proteoscope.engine.modified_search.settings import list_settings, scoring_of, shift_settings
    from proteoscope.engine.peptides.indexes import Databases, build_indexes
    from proteoscope.engine.spectra.spectrum_index import build_spectrum_index
    from proteoscope.kernels.cpu.match_scores import MatchScores
    from proteoscope.kernels.cpu.processor import Processor

    parameters, alone = ModifiedSearchParameters(), Resources(threads=1)
    use_scoring(SimpleNamespace(**{**dict(parameters), **_IDENTIFICATION}))
    with tempfile.TemporaryDirectory(prefix="proteoscope-compile-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "protein.fasta").write_text(PROTEIN, encoding="ascii")
        (folder / "spectra.mgf").write_text(spectrum_of() + spectrum_of(_SHIFT), encoding="ascii")
        indexes = build_indexes(Databases([folder / "protein.fasta"], [], {}), folder, parameters, alone)
        index = build_spectrum_index(read_spectra([folder / "spectra.mgf"], threads=1), parameters, alone)
        peptides = indexes.peptides.arrays(indexes.proteins)
        settings, lists, shifts = scoring_of(parameters, index, peptides), list_settings(parameters), shift_settings(parameters)
        n, kept = len(index.queries.mass), parameters.candidates
        found = Candidates(np.empty((n, kept), np.int64), np.empty((n, kept), np.int32))
        for looks in (MatchScores.looks_of_placed, 0.0):  # by vectors, and by an index
            scores = MatchScores(Processor(1), peptide_lists(peptides, lists.per_dalton, 0, len(peptides.mass), alone))
            scores.looks_of_placed = looks
            for _ in scores.search(query_lists(index.arrays, index.queries, settings, lists), lists.window, kept, *found):
                pass
        placed = place_candidates(index, peptides, found, settings, shifts, alone)
        rank_candidates(index, peptides, found, placed, settings, shifts, 1, by_count=False, resources=alone)


MODIFIED = Kernels("kernels of the search for modified peptides", _last, _use, "up to a minute")
