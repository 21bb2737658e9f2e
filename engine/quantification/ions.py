"""Ions of identifications (peptidoforms with a charge), their isotope patterns, and ions that share a trace.

Two ions that are separated neither by m/z nor by time share one apex in their traces. One of them then has no quantity: the ion whose
nearest identified spectrum is farther away, or the ion with the higher m/z. The monoisotopic peak of the ion with the lower m/z is not a
peak of the other ion, and thus proves that the former is present.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.chemistry.isotopes import isotope_patterns
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.quantification.identified import Identified, Matches
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.kernels.cpu.elution import APEX, TIME, WIDTH

__all__ = ["Ions", "ion_keys", "list_ions", "traces_of_others"]

_ALL_ISOTOPES = 8
"""Number of isotope peaks; in a peptide of 3,000 Da, less than 0.2 % of the ion has a higher mass."""
_SHARE = 0.5  # minimum fraction of the apex height that another ion explains
_APART = 0.5  # two apexes are one if they are nearer than this fraction of the greater width
_MOST = 200  # maximum number of ions of similar m/z that are compared with an ion


@dataclass(frozen=True)
class Ions:
    """Ions (n): peptidoforms with a charge.

    Attributes
    ----------
    form, charge : ndarray of int64, shape (n,)
        Index of the peptidoform, and charge of each ion.
    mz : ndarray of float64, shape (n,)
        Monoisotopic m/z, Th.
    isotopes : ndarray of float64, shape (n, 8)
        Fraction of the ion in each isotope peak, including peaks that are not traced.
    n_isotopes : int
        Number of isotope peaks that are traced.
    is_donor : ndarray of bool, shape (n,)
        True for ions that may be transferred to other files.
    of_match : ndarray of int64, shape (matches,)
        Index of the ion of each identified spectrum.
    voltage : ndarray of float64, shape (n,)
        FAIMS voltage at which the ion is traced, NaN without one.
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
        """Fraction of the ion in each traced isotope peak, (n, n_isotopes) float64."""
        return self.isotopes[:, : self.n_isotopes]

    def __len__(self) -> int:
        return len(self.form)

    def part(self, rows: NDArray[np.int64]) -> Ions:
        """Return the ions with the given indices, without identified spectra."""
        return Ions(
            self.form[rows],
            self.charge[rows],
            self.mz[rows],
            self.isotopes[rows],
            self.n_isotopes,
            self.is_donor[rows],
            np.zeros(0, np.int64),
            self.voltage[rows],
        )

    def at_voltage(self, voltage: float) -> Ions:
        """Return the same ions, all traced at the given FAIMS voltage."""
        return replace(self, voltage=np.full(len(self), voltage))


def ion_keys(matches: Matches) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return peptidoform and charge of each ion, (n, 2) int64, and the ion of each identified spectrum, (matches,)."""
    keys, of_match = np.unique(matches.form * 128 + matches.charge, return_inverse=True)
    return np.stack([keys // 128, keys % 128], axis=1), of_match


def list_ions(identified: Identified, n_isotopes: int, donor_fdr: float) -> Ions:
    """Return the ions of the identified spectra.

    Parameters
    ----------
    identified : Identified
        Identified peptidoforms and their matches.
    n_isotopes : int
        Number of isotope peaks to trace.
    donor_fdr : float
        Maximum q-value, over the experiment, of peptides whose ions may be transferred to other files; they also need an accepted protein.

    Returns
    -------
    Ions
    """
    forms = identified.forms
    keys, of_match = ion_keys(identified.matches)
    form, charge = keys.T
    is_donor = (identified.peptide_q_value <= donor_fdr) & identified.has_protein[forms.sequence]
    isotopes = isotope_patterns(forms.elements, _ALL_ISOTOPES)[form]
    mz = forms.mass[form] / charge + PROTON_MASS
    return Ions(form, charge, mz, isotopes, n_isotopes, is_donor[form], of_match, np.full(len(form), np.nan))


def traces_of_others(
    ions: Ions,
    sequence: NDArray[np.int64],
    values: NDArray[np.float64],
    from_spectra: NDArray[np.float64],
    parameters: QuantificationParameters,
) -> NDArray[np.bool_]:
    """Return True for ions of a file whose trace belongs to another ion, with another sequence, (n,).

    Parameters
    ----------
    ions : Ions
        The n measured ions.
    sequence : ndarray of int64, shape (n,)
        Index of each ion's sequence; peptidoforms of one sequence may share a trace.
    values : ndarray of float64, shape (n, N_VALUES)
        Measured values of the traces (`proteoscope.kernels.cpu.elution`).
    from_spectra : ndarray of float64, shape (n,)
        Distance of the apex from the nearest spectrum that identified the ion, s.
    parameters : QuantificationParameters
        Parameters of the quantification.
    """
    n, n_isotopes = ions.isotopes.shape
    result = np.zeros(n, np.bool_)
    if n < 2:
        return result
    fraction = ions.isotopes / ions.pattern.sum(axis=1, keepdims=True)
    isotope = np.arange(n_isotopes)
    mz = ions.mz[:, None] + isotope * (ISOTOPE_SPACING / ions.charge[:, None])
    owner, position, flat = np.repeat(np.arange(n), n_isotopes), np.tile(isotope, n), mz.ravel()
    order = np.argsort(flat, kind="stable")
    owner, position, flat = owner[order], position[order], flat[order]
    width = parameters.precursor_tolerance.width(flat)
    n_after = np.minimum(np.searchsorted(flat, flat + width, side="right") - np.arange(len(flat)) - 1, _MOST)
    first = np.repeat(np.arange(len(flat)), n_after)
    _, second = ranges(np.arange(len(flat)) + 1, np.arange(len(flat)) + 1 + n_after)
    first_ion, second_ion = np.concatenate([owner[first], owner[second]]), np.concatenate([owner[second], owner[first]])
    of_one, of_other = np.concatenate([position[first], position[second]]), np.concatenate([position[second], position[first]])
    near = np.abs(values[first_ion, TIME] - values[second_ion, TIME]) <= _APART * np.maximum(
        values[first_ion, WIDTH], values[second_ion, WIDTH]
    )
    is_lighter = ions.mz[second_ion] < ions.mz[first_ion] - parameters.precursor_tolerance.width(ions.mz[first_ion])
    near &= of_one < ions.n_isotopes
    near &= (sequence[first_ion] != sequence[second_ion]) & (is_lighter | (from_spectra[first_ion] > from_spectra[second_ion]))
    first_ion, second_ion, of_other = first_ion[near], second_ion[near], of_other[near]
    pair, which = np.unique(first_ion * np.int64(n) + second_ion, return_inverse=True)
    height = np.bincount(which, values[second_ion, APEX] * fraction[second_ion, of_other], len(pair))
    lost = pair[height >= _SHARE * values[pair // n, APEX]] // n
    result[lost] = True
    return result
