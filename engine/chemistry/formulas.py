"""Molecular formulas: masses of elements and formulas, and formulas of residues.

Element masses are from NIST, Atomic Weights and Isotopic Compositions, version 4.1
(https://www.nist.gov/pml/atomic-weights-and-isotopic-compositions), which uses the Atomic Mass Evaluation (Wang et al. 2012, Chinese
Physics C 36:1603), like CIAAW. NumPy is not imported, since parameters validate modifications and must be listed without NumPy.
"""

import re

from proteoscope.engine.errors import ParameterError, shortened

__all__ = ["ELEMENT_MASS", "RESIDUE_COMPOSITION", "formula_mass"]

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
"""Mass of the most abundant isotope of each element, or of the isotope with the given number, in dalton."""

_FORMULA_TERM = re.compile(
    r"\s*(?:(?P<element>[A-Z][a-z]?)(?P<count>-?\d{1,6})?|\[(?P<isotope>\d+[A-Z][a-z]?)(?P<isotope_count>-?\d{1,6})?\])\s*"
)


def formula_mass(formula: str) -> float:
    """Return the monoisotopic mass (dalton) of a formula such as ``H2O``, ``C2H3NO`` or, with isotopes as in ProForma, ``[13C2]H-1``.

    Raises
    ------
    ParameterError
        If the text is not a formula, or has an element that is not in `ELEMENT_MASS`.
    """
    mass, end = 0.0, 0
    while term := _FORMULA_TERM.match(formula, end):
        element = term["isotope"] or term["element"]
        if element not in ELEMENT_MASS:
            break
        mass += ELEMENT_MASS[element] * int(term["count"] or term["isotope_count"] or 1)
        end = term.end()
    if end != len(formula) or not formula:
        raise ParameterError(f"{shortened(repr(formula))} is not a formula of the elements {', '.join(ELEMENT_MASS)}, such as H2O or H3PO4")
    return mass


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
"""Formulas of residues (amino acid minus water); O is pyrrolysine, U selenocysteine, J leucine or isoleucine."""
