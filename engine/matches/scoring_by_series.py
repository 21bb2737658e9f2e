"""Passes of spectra of several ion series against peptides: a scoring pass for each series, and their matches in one list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, take_runs
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_intensities import has_predicted_series
from proteoscope.engine.matches.scoring import Matches, MatchSettings, ScoringPass
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cpu.fragment_intensities import IONS
from proteoscope.kernels.layouts import ModificationArrays, PeptideArrays

__all__ = ["ScoringBySeries"]


class ScoringBySeries:
    """Passes of spectra against peptides, as `ScoringPass`, each with the ion series of its spectra: `plan` them, then `run` them.

    One after the other holds the dictionary on the devices.
    """

    def __init__(
        self,
        index: SpectrumIndex,
        peptides: PeptideArrays,
        modifications: ModificationArrays,
        parameters: MatchSettings,
        resources: Resources,
        compile_index: Callable[[Progress], None] | None = None,
    ) -> None:
        self._peptides, self._parts = peptides, index.by_series()
        self._passes = [ScoringPass(part, peptides, modifications, parameters, resources, compile_index) for part in self._parts]
        # Queries are in order of mass in the parts as in the whole.
        self._order = np.zeros(0, np.int64)
        if len(self._parts) > 1:
            number = index.ion_series.number[index.queries.spectrum]
            self._order = np.argsort(number, kind="stable")

    def plan(self) -> None:
        """Count the candidates of each query."""
        for one in self._passes:
            one.plan(stays_open=len(self._passes) == 1)

    @property
    def n_candidates(self) -> NDArray[np.int64]:
        """(q,) int64: candidates of each query, in the order of the queries, once the passes are planned."""
        if len(self._passes) == 1:
            return self._passes[0].n_candidates
        counted = np.empty(len(self._order), np.int64)
        counted[self._order] = np.concatenate([one.n_candidates for one in self._passes] or [np.zeros(0, np.int64)])
        return counted

    def run(self, *, with_bonds: bool = False) -> Matches:
        """The best candidates of each spectrum, with all scores; and `with_bonds` the peaks of each bond, of spectra with b and y ions."""
        found = [
            one.run(with_bonds=with_bonds and has_predicted_series(part.series))
            for one, part in zip(self._passes, self._parts, strict=True)
        ]
        return self._joined(found, with_bonds=with_bonds) if len(found) > 1 else self._with_all_bonds(found[0], with_bonds=with_bonds)

    def _with_all_bonds(self, matches: Matches, *, with_bonds: bool) -> Matches:
        """The matches with bonds without peaks, where bonds were asked for and the series has none."""
        if not with_bonds or matches.bond_weights is not None:
            return matches
        n_residues = int(self._peptides.length[matches.peptide].sum(dtype=np.int64))
        columns: dict[str, Any] = {field.name: getattr(matches, field.name) for field in fields(Matches)}
        columns |= {"bond_weights": np.zeros((n_residues, IONS), np.float32), "has_bonds": np.zeros(len(matches), np.bool_)}
        return Matches(**columns)

    def _joined(self, found: list[Matches], *, with_bonds: bool) -> Matches:
        """The matches of all passes, by spectrum and rank."""
        found = [self._with_all_bonds(one, with_bonds=with_bonds) for one in found]
        order = np.argsort(np.concatenate([one.spectrum for one in found]), kind="stable")

        def joined(parts: list[NDArray]) -> NDArray:
            return np.concatenate(parts)[order]

        names = [field.name for field in fields(Matches) if field.name not in ("features", "bond_weights", "has_bonds")]
        columns: dict[str, Any] = {name: joined([getattr(one, name) for one in found]) for name in names}
        features = {name: joined([one.features[name] for one in found]) for name in found[0].features}
        if not with_bonds:
            return Matches(**columns, features=features)
        lengths = np.concatenate([self._peptides.length[one.peptide] for one in found]).astype(np.int64)
        weights = np.concatenate([one.bond_weights for one in found if one.bond_weights is not None])
        has_bonds = joined([one.has_bonds for one in found if one.has_bonds is not None])
        rows, _ = take_runs(np.arange(len(weights)), offsets_of(lengths), order)
        return Matches(**columns, features=features, bond_weights=weights[rows], has_bonds=has_bonds)
