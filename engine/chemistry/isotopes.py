"""Isotope patterns of peptides from their elements, by nominal mass.

The pattern of a molecule is the convolution of the patterns of its atoms, so that its Fourier transform is the product of their transforms,
each raised to the number of atoms (Rockwood, Van Orden & Smith 1995, Anal. Chem. 67:2699). Abundances are IUPAC's representative values,
from NIST's Atomic Weights and Isotopic Compositions 4.1.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.formulas import RESIDUE_COMPOSITION

__all__ = ["ABUNDANCES", "AVERAGINE", "ELEMENTS", "element_counts", "isotope_patterns", "sequence_elements"]

ABUNDANCES: dict[str, tuple[float, ...]] = {
    "C": (0.9893, 0.0107),
    "H": (0.999885, 0.000115),
    "N": (0.99636, 0.00364),
    "O": (0.99757, 0.00038, 0.00205),
    "S": (0.9499, 0.0075, 0.0425, 0.0, 0.0001),
    "Cl": (0.7576, 0.0, 0.2424),
    "K": (0.932581, 0.000117, 0.067302),
}
"""Abundances of isotopes, for elements with several relevant isotopes, by nominal mass from the lightest.

Other elements (P, F, Na, and pure isotopes of labels) are treated as one isotope.
"""
ELEMENTS = tuple(ABUNDANCES)
AVERAGINE = {"C": 4.9384, "H": 7.7583, "N": 1.3577, "O": 1.4773, "S": 0.0417}
"""Numbers of atoms of the average residue of 111.1254 Da (Senko, Beu & McLafferty 1995, J. Am. Soc. Mass Spectrom. 6:229)."""
_BINS = 128  # number of nominal masses; wider patterns would wrap around, but patterns of peptides are much narrower
_BATCH = 1 << 14
_FORMULA = re.compile(r"([A-Z][a-z]?)(-?\d*)")
_UNIMOD = re.compile(r"(\d*[A-Z][A-Za-z]*)(?:\((-?\d+)\))?")


def element_counts(formula: str) -> NDArray[np.float64]:
    """Return the numbers of atoms in a formula such as ``C2H3NO``, or in Unimod's notation ``H(2) C(2) O``.

    Parameters
    ----------
    formula : str
        Formula; elements that are not in `ELEMENTS` are ignored.

    Returns
    -------
    ndarray of float64, shape (elements,)
        Numbers of atoms of `ELEMENTS`.

    Examples
    --------
    >>> dict(zip(ELEMENTS, element_counts("H(20) C(8) 13C(4) N O(2)").tolist(), strict=True))["C"]
    8.0
    """
    counts = np.zeros(len(ELEMENTS))
    is_unimod = "(" in formula or " " in formula or formula[:1].isdigit()
    for element, count in (_UNIMOD if is_unimod else _FORMULA).findall(formula):
        if element in ABUNDANCES:
            counts[ELEMENTS.index(element)] += int(count) if count not in ("", "-") else 1
    return counts


def sequence_elements(sequences: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers of atoms in unmodified peptides; residues without a formula count as average residues.

    Parameters
    ----------
    sequences : sequence of str, length n
        Residues of each peptide.

    Returns
    -------
    ndarray of float64, shape (n, elements)
        Numbers of atoms of `ELEMENTS`.
    """
    table = np.zeros((26, len(ELEMENTS)))
    table[:] = [AVERAGINE.get(element, 0.0) for element in ELEMENTS]
    for residue, formula in RESIDUE_COMPOSITION.items():
        table[ord(residue) - ord("A")] = element_counts(formula)
    codes = np.frombuffer("".join(sequences).encode("ascii", "replace"), np.uint8).astype(np.int64) - ord("A")
    codes = np.where((codes >= 0) & (codes < 26), codes, ord("X") - ord("A"))
    owner = np.repeat(np.arange(len(sequences)), [len(sequence) for sequence in sequences])
    counts = np.bincount(owner * 26 + codes, minlength=26 * len(sequences)).reshape(len(sequences), 26)
    return counts @ table + element_counts("H2O")


def isotope_patterns(
    counts: NDArray[np.float64], n_isotopes: int, abundances: Mapping[str, Sequence[float]] = ABUNDANCES
) -> NDArray[np.float64]:
    """Return the first peaks of isotope patterns, beginning with the monoisotopic peak.

    Parameters
    ----------
    counts : ndarray of float64, shape (n, elements)
        Numbers of atoms of `ELEMENTS` in each molecule.
    n_isotopes : int
        Number of peaks, at most 32.
    abundances : mapping of str to sequence of float
        Isotope abundances by element.

    Returns
    -------
    ndarray of float64, shape (n, n_isotopes)
        Fraction of all molecules in each peak.

    Examples
    --------
    >>> isotope_patterns(element_counts("C60")[None], 2).round(4).tolist()
    [[0.5244, 0.3403]]
    """
    transforms = np.log(np.fft.rfft([np.pad(abundances[element], (0, _BINS - len(abundances[element]))) for element in ELEMENTS], axis=1))
    patterns = np.empty((len(counts), n_isotopes))
    for first in range(0, len(counts), _BATCH):
        batch = slice(first, first + _BATCH)
        patterns[batch] = np.fft.irfft(np.exp(np.maximum(counts[batch], 0.0) @ transforms), _BINS, axis=1)[:, :n_isotopes]
    return np.clip(patterns, 0.0, 1.0)
