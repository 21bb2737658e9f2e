"""Passes of spectra of several ion series against peptides: a scoring pass for each series, and their matches in one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, take_runs
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_intensities import has_predicted_series
from proteoscope.engine.matches.scoring import Matches, MatchSettings, ScoringPass, joined_matches, plan_scoring
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cpu.fragment_intensities import IONS
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays

__all__ = ["ScoringBySeries", "plan_by_series"]


@dataclass(frozen=True)
class ScoringBySeries:
    """Planned passes of spectra against peptides, each with the ion series of its spectra; one after the other fills the devices.

    Attributes
    ----------
    passes : sequence of ScoringPass
        One for each ion series.
    n_candidates : ndarray of int64, shape (q,)
        Candidates of each query, in the order of the queries of all passes together.
    """

    passes: Sequence[ScoringPass]
    n_candidates: NDArray[np.int64]

    def run(self, *, with_bonds: bool = False) -> Matches:
        """Return the best candidates of each spectrum, by spectrum and rank, with all scores.

        Parameters
        ----------
        with_bonds : bool
            True if the peaks of each bond are needed too, of spectra with b and y ions; bonds of others have no peaks.
        """
        found = [one.run(with_bonds=with_bonds and has_predicted_series(one.index.series)) for one in self.passes]
        if with_bonds:
            found = [self._with_all_bonds(matches) for matches in found]
        if len(found) == 1:
            return found[0]
        every = joined_matches(found)
        order = np.argsort(every.spectrum, kind="stable")
        if not with_bonds:
            return every.take(order)
        weights, has_bonds = (np.concatenate([getattr(one, name) for one in found]) for name in ("bond_weights", "has_bonds"))
        rows, _ = take_runs(np.arange(len(weights)), offsets_of(self._lengths(every)), order)
        return replace(every.take(order), bond_weights=weights[rows], has_bonds=has_bonds[order])

    def _with_all_bonds(self, matches: Matches) -> Matches:
        """Return the matches with bonds without peaks, where the series has none."""
        if matches.bond_weights is not None:
            return matches
        weights = np.zeros((int(self._lengths(matches).sum()), IONS), np.float32)
        return replace(matches, bond_weights=weights, has_bonds=np.zeros(len(matches), np.bool_))

    def _lengths(self, matches: Matches) -> NDArray[np.int64]:
        return self.passes[0].peptides.length[matches.peptide].astype(np.int64)


def plan_by_series(
    index: SpectrumIndex, peptides: PeptideArrays, modifications: ModificationArrays, parameters: MatchSettings, resources: Resources,
    compile_index: Callable[[Progress], None] | None = None,
) -> ScoringBySeries:  # fmt: skip
    """Count the candidates of each query; see `proteoscope.engine.matches.scoring.plan_scoring`."""
    parts = index.by_series()
    passes = [
        plan_scoring(part, peptides, modifications, parameters, resources, compile_index, stays_open=len(parts) == 1) for part in parts
    ]
    if len(passes) == 1:
        return ScoringBySeries(passes, passes[0].n_candidates)
    # Queries are in order of mass in the parts as in the whole.
    n_candidates = np.empty(len(index.queries.mass), np.int64)
    order = np.argsort(index.ion_series.number[index.queries.spectrum], kind="stable")
    n_candidates[order] = np.concatenate([one.n_candidates for one in passes])
    return ScoringBySeries(passes, n_candidates)
