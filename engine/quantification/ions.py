"""Ions that identifications found: peptidoforms with their charges, and the pattern of their isotopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.isotopes import isotope_patterns
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.quantification.identified import Identified

__all__ = ["Ions", "ions_of"]

_ALL_ISOTOPES = 8
"""Of a peptide of 3,000 Da less than one part in five hundred lies beyond them."""


@dataclass(frozen=True)
class Ions:
    """Peptidoforms with a charge, n of them.

    Attributes
    ----------
    form, charge : (n,) int64. mz : (n,) float64, monoisotopic. n_isotopes : how many peaks of their patterns are followed.
    isotopes : (n, 8) float64, the part of an ion that each peak of its pattern is, those too that are not followed.
    of_match : (matches,) int64, the ion of each identified spectrum.
    """

    form: NDArray[np.int64]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    isotopes: NDArray[np.float64]
    n_isotopes: int
    of_match: NDArray[np.int64]

    @property
    def pattern(self) -> NDArray[np.float64]:
        """Of the peaks that are followed, (n, n_isotopes) float64."""
        return self.isotopes[:, : self.n_isotopes]

    def __len__(self) -> int:
        return len(self.form)

    def part(self, rows: NDArray[np.int64]) -> Ions:
        """Some of them, without the spectra."""
        return Ions(self.form[rows], self.charge[rows], self.mz[rows], self.isotopes[rows], self.n_isotopes, np.zeros(0, np.int64))


def ions_of(identified: Identified, n_isotopes: int) -> Ions:
    """The ions that spectra are of."""
    matches, forms = identified.matches, identified.forms
    keys, of_match = np.unique(matches.form * 128 + matches.charge, return_inverse=True)
    form, charge = keys // 128, keys % 128
    isotopes = isotope_patterns(forms.elements, _ALL_ISOTOPES)[form]
    return Ions(form, charge, forms.mass[form] / charge + PROTON_MASS, isotopes, n_isotopes, of_match)
