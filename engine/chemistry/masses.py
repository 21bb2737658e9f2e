"""Monoisotopic masses of residues and small molecules in dalton, computed from element masses (`proteoscope.engine.chemistry.formulas`).

The mass of the proton is from CODATA 2022.
"""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.formulas import ELEMENT_MASS, RESIDUE_COMPOSITION, formula_mass
from proteoscope.engine.errors import ParameterError

__all__ = [
    "AMMONIA_MASS",
    "HYDROGEN_MASS",
    "ISOTOPE_SPACING",
    "PROTON_MASS",
    "RESIDUE_MASS",
    "WATER_MASS",
    "mz",
    "neutral_mass",
    "residue_masses",
    "sequence_mass",
]

PROTON_MASS = 1.0072764665789
HYDROGEN_MASS = ELEMENT_MASS["H"]
ISOTOPE_SPACING = ELEMENT_MASS["13C"] - ELEMENT_MASS["C"]
"""Mass difference of neighbouring isotope peaks, 1.00335 Da: one 12C replaced by 13C."""

WATER_MASS = formula_mass("H2O")
AMMONIA_MASS = formula_mass("NH3")


def _residue_mass_table() -> NDArray[np.float64]:
    table = np.full(26, np.nan)
    for residue, formula in RESIDUE_COMPOSITION.items():
        table[ord(residue) - ord("A")] = formula_mass(formula)
    table.flags.writeable = False
    return table


RESIDUE_MASS: NDArray[np.float64] = _residue_mass_table()
"""Residue masses in dalton, indexed by residue - 'A', shape (26,).

B (D or N), Z (E or Q) and X (any) have no unique mass: their values are NaN, so that peptides with them are never searched.
"""


def residue_masses(sequence: str) -> NDArray[np.float64]:
    """Return the masses (dalton) of the residues of a sequence, shape (length,); NaN for B, X and Z.

    Raises
    ------
    ParameterError
        If a character is not A-Z.
    """
    codes = np.frombuffer(sequence.encode("ascii", "replace"), dtype=np.uint8)
    if ((codes < ord("A")) | (codes > ord("Z"))).any():
        wrong = next(character for character in sequence if not ("A" <= character <= "Z"))
        raise ParameterError(f"{wrong!r} in {sequence!r} is not a residue: sequences are written with capitals A-Z")
    return RESIDUE_MASS[codes - ord("A")]


def sequence_mass(sequence: str) -> float:
    """Return the neutral mass (dalton) of an unmodified peptide; NaN if it has B, X or Z.

    Examples
    --------
    >>> round(sequence_mass("PEPTIDE"), 4)
    799.36
    """
    return float(residue_masses(sequence).sum()) + WATER_MASS


@overload
def mz(mass: float, charge: int) -> float: ...
@overload
def mz(mass: NDArray[np.float64], charge: int | NDArray[np.integer]) -> NDArray[np.float64]: ...
def mz(mass: float | NDArray[np.float64], charge: int | NDArray[np.integer]) -> float | NDArray[np.float64]:
    """Return the m/z of an ion; the arguments are numbers or arrays that broadcast.

    Parameters
    ----------
    mass : float or ndarray of float64
        Neutral mass in dalton.
    charge : int or ndarray of int
        Number of protons.

    Returns
    -------
    float or ndarray of float64
        m/z in thomson.
    """
    return mass / charge + PROTON_MASS


@overload
def neutral_mass(mz: float, charge: int) -> float: ...
@overload
def neutral_mass(mz: NDArray[np.float64], charge: int | NDArray[np.integer]) -> NDArray[np.float64]: ...
def neutral_mass(mz: float | NDArray[np.float64], charge: int | NDArray[np.integer]) -> float | NDArray[Any]:
    """Return the neutral mass of an ion; the arguments are numbers or arrays that broadcast.

    Parameters
    ----------
    mz : float or ndarray of float64
        m/z in thomson.
    charge : int or ndarray of int
        Number of protons.

    Returns
    -------
    float or ndarray of float64
        Mass in dalton.
    """
    return (mz - PROTON_MASS) * charge
