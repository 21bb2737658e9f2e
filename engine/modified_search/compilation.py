"""The kernels of the search for modified peptides; those that score spectra are among them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from proteoscope import kernels
from proteoscope.engine import execution, formats, matches, modified_search, spectra
from proteoscope.engine import peptides as peptides_package
from proteoscope.engine.execution.compilation import Kernels
from proteoscope.engine.files import scratch_folder

__all__ = ["MODIFIED"]

_IDENTIFICATION = {"maximum_modifications": 1, "maximum_forms": 1, "hits_per_spectrum": 1, "score": "hyperscore"}
"""What an identification is asked for besides, of which nothing is needed but the kernels."""
_SHIFT = 15.994915


def _use() -> None:
    """Search next to nothing, through the same functions and so with the same types as a real search."""
    parameters, alone = modified_search.parameters.ModifiedSearchParameters(), execution.resources.Resources(threads=1)
    matches.compilation.use_scoring(SimpleNamespace(**{**dict(parameters), **_IDENTIFICATION}))
    with scratch_folder() as folder:
        (folder / "protein.fasta").write_text(matches.compilation.PROTEIN, encoding="ascii")
        (folder / "spectra.mgf").write_text(matches.compilation.spectrum_of() + matches.compilation.spectrum_of(_SHIFT), encoding="ascii")
        indexes = peptides_package.indexes.build_indexes(
            peptides_package.indexes.Databases([folder / "protein.fasta"], [], {}), folder, parameters, alone
        )
        index = spectra.spectrum_index.build_spectrum_index(formats.read_spectra([folder / "spectra.mgf"], threads=1), parameters, alone)
        ((index, peptides, lists, settings, shifts),) = modified_search.passes.plan_search(index, indexes, parameters)
        n, kept = len(index.queries.mass), parameters.candidates
        found = modified_search.candidate_search.Candidates(np.empty((n, kept), np.int64), np.empty((n, kept), np.int32))
        for looks in (kernels.cpu.match_scores.MatchScores.looks_of_placed, 0.0):  # by vectors, and by an index
            scores = kernels.cpu.match_scores.MatchScores(
                kernels.cpu.processor.Processor(1),
                modified_search.candidate_search.peptide_lists(peptides, lists.per_dalton, 0, len(peptides.mass), alone),
            )
            scores.looks_of_placed = looks
            for _ in scores.search(
                modified_search.candidate_search.query_lists(index.arrays, index.queries, settings, lists), lists.window, kept, *found
            ):
                pass
        placed = modified_search.ranking.place_candidates(index, peptides, found, settings, shifts, alone)
        modified_search.ranking.rank_candidates(index, peptides, found, placed, settings, shifts, 1, by_count=False, resources=alone)


MODIFIED = Kernels("kernels of the search for modified peptides", lambda: kernels.cpu.shift_placement.score_places, _use, "up to a minute")
