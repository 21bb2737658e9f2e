"""Masses of elements, residues and small molecules, monoisotopic, in dalton.

Element masses: NIST, Atomic Weights and Isotopic Compositions, version 4.1 (https://www.nist.gov/pml/atomic-weights-and-isotopic-compositions),
which takes them from the Atomic Mass Evaluation (Wang et al. 2012, Chinese Physics C 36:1603), as does CIAAW. The proton is CODATA 2022's.
Everything else on this page is computed from those.
"""

from __future__ import annotations

import re
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from engine.errors import ParameterError, shortened

__all__ = [
    "AMMONIA_MASS",
    "ELEMENT_MASS",
    "HYDROGEN_MASS",
    "ISOTOPE_SPACING",
    "PROTON_MASS",
    "RESIDUE_COMPOSITION",
    "RESIDUE_MASS",
    "WATER_MASS",
    "formula_mass",
    "mz",
    "neutral_mass",
    "residue_masses",
    "sequence_mass",
]

ELEMENT_MASS: dict[str, float] = {
    "H": 1.00782503223,
    "2H": 2.01410177812,
    "C": 12.0,
    "13C": 13.00335483507,
    "N": 14.00307400443,
    "15N": 15.00010889888,
    "O": 15.99491461957,
    "18O": 17.99915961286,
    "F": 18.99840316273,
    "Na": 22.9897692820,
    "P": 30.97376199842,
    "S": 31.9720711744,
    "Cl": 34.968852682,
    "K": 38.9637064864,
    "Se": 79.9165218,
}
"""Mass of an element's most abundant isotope, or of the isotope that the number names."""

PROTON_MASS = 1.0072764665789
HYDROGEN_MASS = ELEMENT_MASS["H"]
ISOTOPE_SPACING = ELEMENT_MASS["13C"] - ELEMENT_MASS["C"]
"""Distance of two neighbouring peaks of an isotope pattern, 1.00335 Da: one 12C replaced by 13C."""

_FORMULA_TERM = re.compile(
    r"\s*(?:(?P<element>[A-Z][a-z]?)(?P<count>-?\d{1,6})?|\[(?P<isotope>\d+[A-Z][a-z]?)(?P<isotope_count>-?\d{1,6})?\])\s*"
)


def formula_mass(formula: str) -> float:
    """Monoisotopic mass (dalton) of a molecular formula such as ``H2O``, ``C2H3NO`` or, as ProForma writes isotopes, ``[13C2]H-1``.

    Raises
    ------
    ParameterError : the text is not a formula, or names an element that `ELEMENT_MASS` does not hold.
    """
    mass, end = 0.0, 0
    while term := _FORMULA_TERM.match(formula, end):
        element = term["isotope"] or term["element"]
        if element not in ELEMENT_MASS:
            break
        mass += ELEMENT_MASS[element] * int(term["count"] or term["isotope_count"] or 1)
        end = term.end()
    if end != len(formula) or not formula:
        raise ParameterError(f"{shortened(repr(formula))} is not a formula of the elements {', '.join(ELEMENT_MASS)}, as H2O or H3PO4 are")
    return mass


WATER_MASS = formula_mass("H2O")
AMMONIA_MASS = formula_mass("NH3")

RESIDUE_COMPOSITION: dict[str, str] = {
    "A": "C3H5NO",
    "C": "C3H5NOS",
    "D": "C4H5NO3",
    "E": "C5H7NO3",
    "F": "C9H9NO",
    "G": "C2H3NO",
    "H": "C6H7N3O",
    "I": "C6H11NO",
    "J": "C6H11NO",
    "K": "C6H12N2O",
    "L": "C6H11NO",
    "M": "C5H9NOS",
    "N": "C4H6N2O2",
    "O": "C12H19N3O2",
    "P": "C5H7NO",
    "Q": "C5H8N2O2",
    "R": "C6H12N4O",
    "S": "C3H5NO2",
    "T": "C4H7NO2",
    "U": "C3H5NOSe",
    "V": "C5H9NO",
    "W": "C11H10N2O",
    "Y": "C9H9NO2",
}
"""Formulas of the residues (amino acid less water). O is pyrrolysine, U selenocysteine, J leucine or isoleucine."""


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
