"""Masses of residues and small molecules, monoisotopic, in dalton, computed from those of the elements
(`proteoscope.engine.chemistry.formulas`).

The proton is CODATA 2022's.
"""

from __future__ import annotations

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
"""Distance of two neighbouring peaks of an isotope pattern, 1.00335 Da: one 12C replaced by 13C."""

WATER_MASS = formula_mass("H2O")
AMMONIA_MASS = formula_mass("NH3")


def _residue_mass_table() -> NDArray[np.float64]:
    table = np.full(26, np.nan)
    for letter, formula in RESIDUE_COMPOSITION.items():
        table[ord(letter) - ord("A")] = formula_mass(formula)
    table.flags.writeable = False
    return table


RESIDUE_MASS: NDArray[np.float64] = _residue_mass_table()
"""(26,) float64, residue masses in dalton by letter - 'A'. B (D or N), Z (E or Q) and X (any) have no one mass: NaN, so that a peptide that
holds one has no mass either and is never searched."""


def residue_masses(sequence: str) -> NDArray[np.float64]:
    """Masses (dalton) of the residues of a sequence of capitals A-Z, (length,) float64; NaN for B, X and Z.

    Raises
    ------
    ParameterError : a character is not a capital letter.
    """
    letters = np.frombuffer(sequence.encode("ascii", "replace"), dtype=np.uint8)
    if ((letters < ord("A")) | (letters > ord("Z"))).any():
        wrong = next(character for character in sequence if not ("A" <= character <= "Z"))
        raise ParameterError(f"{wrong!r} in {sequence!r} is not a residue: sequences are written with capital letters A-Z")
    return RESIDUE_MASS[letters - ord("A")]


def sequence_mass(sequence: str) -> float:
    """Neutral mass (dalton) of an unmodified peptide; NaN when it holds B, X or Z.

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
    """m/z (thomson) of a neutral mass (dalton) that took `charge` protons; numbers or arrays that broadcast."""
    return mass / charge + PROTON_MASS


@overload
def neutral_mass(mz: float, charge: int) -> float: ...
@overload
def neutral_mass(mz: NDArray[np.float64], charge: int | NDArray[np.integer]) -> NDArray[np.float64]: ...
def neutral_mass(mz: float | NDArray[np.float64], charge: int | NDArray[np.integer]) -> float | NDArray[Any]:
    """Neutral mass (dalton) of an ion of m/z (thomson) and `charge` protons; numbers or arrays that broadcast."""
    return (mz - PROTON_MASS) * charge
