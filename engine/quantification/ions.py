"""Ions that identifications found: peptidoforms with their charges, and the pattern of their isotopes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.isotopes import isotope_patterns
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.quantification.identified import Identified, Matches

__all__ = ["Ions", "ion_keys", "ions_of"]

_ALL_ISOTOPES = 8
"""Of a peptide of 3,000 Da less than one part in five hundred lies beyond them."""


@dataclass(frozen=True)
class Ions:
    """Peptidoforms with a charge, n of them.

    Attributes
    ----------
    form, charge : (n,) int64. mz : (n,) float64, monoisotopic. n_isotopes : how many peaks of their patterns are followed.
    isotopes : (n, 8) float64, the part of an ion that each peak of its pattern is, those too that are not followed.
    is_donor : (n,) bool, True for ions that may be looked for in other files. of_match : (matches,) int64, the ion of each identified
    spectrum. voltage : (n,) float64, of FAIMS, in which the ion is followed, NaN without one.
    """

    form: NDArray[np.int64]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    isotopes: NDArray[np.float64]
    n_isotopes: int
    is_donor: NDArray[np.bool_]
    of_match: NDArray[np.int64]
    voltage: NDArray[np.float64]

    @property
    def pattern(self) -> NDArray[np.float64]:
        """Of the peaks that are followed, (n, n_isotopes) float64."""
        return self.isotopes[:, : self.n_isotopes]

    def __len__(self) -> int:
        return len(self.form)

    def part(self, rows: NDArray[np.int64]) -> Ions:
        """Some of them, without the spectra."""
        return Ions(
            self.form[rows], self.charge[rows], self.mz[rows], self.isotopes[rows], self.n_isotopes, self.is_donor[rows],
            np.zeros(0, np.int64), self.voltage[rows],
        )  # fmt: skip

    def at_voltage(self, voltage: float) -> Ions:
        """The same at a voltage of FAIMS."""
        return replace(self, voltage=np.full(len(self), voltage))


def ion_keys(matches: Matches) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return peptidoform and charge of each ion, (n, 2) int64, and the ion of each identified spectrum."""
    keys, of_match = np.unique(matches.form * 128 + matches.charge, return_inverse=True)
    return np.stack([keys // 128, keys % 128], axis=1), of_match


def ions_of(identified: Identified, n_isotopes: int, donor_fdr: float) -> Ions:
    """Return the ions that spectra are of.

    `donor_fdr`: maximum q-value of peptides, over the experiment, whose ions are looked for in other files; they have an accepted protein.
    """
    forms = identified.forms
    keys, of_match = ion_keys(identified.matches)
    form, charge = keys.T
    is_donor = (identified.peptide_q_value <= donor_fdr) & identified.has_protein[forms.sequence]
    isotopes = isotope_patterns(forms.elements, _ALL_ISOTOPES)[form]
    mz = forms.mass[form] / charge + PROTON_MASS
    return Ions(form, charge, mz, isotopes, n_isotopes, is_donor[form], of_match, np.full(len(form), np.nan))
