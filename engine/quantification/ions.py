"""Ions that identifications found: peptidoforms with their charges, and the pattern of their isotopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.chemistry.isotopes import isotope_patterns
from engine.chemistry.masses import PROTON_MASS
from engine.quantification.identified import Identified

__all__ = ["Ions", "ions_of"]


@dataclass(frozen=True)
class Ions:
    """Peptidoforms with a charge, n of them.

    Attributes
    ----------
    form, charge : (n,) int64. mz : (n,) float64, monoisotopic. pattern : (n, isotopes) float64.
    of_match : (matches,) int64, the ion of each identified spectrum.
    """

    form: NDArray[np.int64]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    pattern: NDArray[np.float64]
    of_match: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.form)

    def part(self, rows: NDArray[np.int64]) -> Ions:
        """Some of them, without the spectra."""
        return Ions(self.form[rows], self.charge[rows], self.mz[rows], self.pattern[rows], np.zeros(0, np.int64))


def ions_of(identified: Identified, n_isotopes: int) -> Ions:
    """The ions that spectra are of."""
    matches, forms = identified.matches, identified.forms
    keys, of_match = np.unique(matches.form * 128 + matches.charge, return_inverse=True)
    form, charge = keys // 128, keys % 128
    pattern = isotope_patterns(forms.elements, n_isotopes)[form]
    return Ions(form, charge, forms.mass[form] / charge + PROTON_MASS, pattern, of_match)
