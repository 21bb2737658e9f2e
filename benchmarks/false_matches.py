"""Causes of false library matches: entries of nearly identical peptides, or of peptides whose fragments are also in the spectrum."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import PROTON_MASS, WATER_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.library_search.decoys import library_peptides
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["FalseMatches"]

_PEAKS = 150  # most intense ones of a spectrum
_ORDERS, _RARE = 300, 0.01
_SAME = 0.02  # dalton


def _fragments(masses: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return m/z of the b and y ions of a peptide with up to `most` charges."""
    front = np.cumsum(masses)[:-1]
    both = np.concatenate((front, masses.sum() - front + WATER_MASS))
    return np.concatenate([both / z + PROTON_MASS for z in range(1, most + 1)])


def _distance(mz: NDArray[np.float64], to: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far the nearest of the values `to` is from each m/z."""
    distance: NDArray[np.float64] = np.abs(mz[:, None] - to[None]).min(axis=1, initial=np.inf)
    return distance


class FalseMatches:
    """Examines matches of spectra of one peptide with entries of another.

    Parameters
    ----------
    spectra : Spectra
    peptidoform : StringArray
        Peptidoforms, n of them.
    tolerance : Tolerance
        Of fragments.
    """

    def __init__(self, spectra: Spectra, peptidoform: pa.StringArray, tolerance: Tolerance) -> None:
        self._spectra, self._tolerance = spectra, tolerance
        self._peptides = library_peptides(peptidoform.cast(pa.string()))

    def _masses(self, number: int) -> NDArray[np.float64]:
        listed, at = self._peptides.listed, int(self._peptides.peptide[number])
        return listed.residue_masses[listed.residue_offsets[at] : listed.residue_offsets[at + 1]]

    def is_homologous(self, number: int, other: int) -> bool:
        """Return True if half of the fragments of one peptidoform have the same masses as fragments of another."""
        fragments, others = (_fragments(self._masses(peptide), 1) for peptide in (number, other))
        return bool((_distance(fragments, others) < _SAME).mean() >= 0.5)

    def is_contained(self, row: int, number: int, other: int, charge: int) -> bool:
        """Return True if a spectrum has more fragments of a peptidoform `other` than of 99 % of the permutations of its residues.

        Peaks that the spectrum's own peptidoform `number` explains do not count.
        """
        begin, end = self._spectra.offsets[row : row + 2]
        mz = np.asarray(self._spectra.mz[begin:end])
        mz = mz[np.argsort(-np.asarray(self._spectra.intensity[begin:end]), kind="stable")[:_PEAKS]]
        most, width = max(1, min(2, charge - 1)), self._tolerance.width
        mz = mz[_distance(mz, _fragments(self._masses(number), most)) > width(mz)]
        if not len(mz):
            return False

        def explained(masses: NDArray[np.float64]) -> int:
            ions = _fragments(masses, most)
            return int((_distance(ions, mz) <= width(ions)).sum())

        masses, generator = self._masses(other), np.random.default_rng(row)
        n, orders = explained(masses), np.empty(_ORDERS)
        for k in range(_ORDERS):
            orders[k] = explained(np.append(generator.permutation(masses[:-1]), masses[-1]))
        return bool((orders >= n).mean() < _RARE)
