"""How conserved the columns of an alignment are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.matrices import LETTERS
from proteoscope.engine.sequences.statistics import BACKGROUND

__all__ = ["RESIDUES", "conservation", "residue_codes", "residue_counts", "sequence_weights"]

RESIDUES = "".join(letter for letter, share in zip(LETTERS, BACKGROUND.tolist(), strict=True) if share > 0)
"""The twenty amino acids, in the order of their codes here."""
_OTHER = len(RESIDUES)
_CODES = np.full(256, _OTHER, np.uint8)
_CODES[np.frombuffer(RESIDUES.encode(), np.uint8)] = np.arange(_OTHER)
_PSEUDOCOUNT = 1e-7
_CELLS_OF_A_BLOCK = 1 << 21


def residue_codes(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Places of letters in `RESIDUES`, of the same shape; of what is none of them, its length."""
    return _CODES[letters]


def residue_counts(letters: NDArray[np.uint8], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """How many rows have each of `RESIDUES` in each column, or how much these weigh together, (20, columns) float64."""
    counts = np.empty((_OTHER, letters.shape[1]))
    for some in _blocks(letters):
        codes = residue_codes(letters[:, some])
        n = codes.shape[1]
        places = codes * np.int64(n) + np.arange(n)
        of_each = None if weights is None else np.repeat(weights, n)
        counts[:, some] = np.bincount(places.ravel(), of_each, (_OTHER + 1) * n).reshape(-1, n)[:_OTHER]
    return counts


def conservation(letters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence of each column from the composition of proteins, 0 to 1, (columns,) float64.

    After Capra & Singh (2007, Bioinformatics 23:1875): sequences weighted by position (Henikoff & Henikoff 1994, J. Mol. Biol.
    243:574), what a column has of gaps taken off. Without their mean over neighbours, and with the composition of Robinson & Robinson
    (1991), which the program has for E-values, in place of that of BLOSUM62. Letters but the twenty amino acids count as gaps.

    Parameters
    ----------
    letters : (rows, columns) uint8, ASCII; what is no letter is a gap.
    """
    shares = residue_counts(letters, sequence_weights(letters))
    background = BACKGROUND[[LETTERS.index(letter) for letter in RESIDUES]]
    background = (background / background.sum())[:, None]
    counted = shares + _PSEUDOCOUNT
    column = counted / counted.sum(0)
    mean = (column + background) / 2
    divergence = (column * np.log2(column / mean) + background * np.log2(background / mean)).sum(0) / 2
    return np.clip(divergence * shares.sum(0), 0.0, 1.0)


def sequence_weights(letters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Weights of rows, (rows,) float64, together 1: less to those that resemble many others (Henikoff & Henikoff 1994).

    In each column each kind of residue has the same weight, which those that have it share. Gaps have none.
    """
    counts = residue_counts(letters)
    n_kinds = (counts > 0).sum(0)
    share = np.zeros((_OTHER + 1, letters.shape[1]))
    np.divide(1.0, n_kinds * counts, where=counts > 0, out=share[:_OTHER])
    weights = np.zeros(len(letters))
    for some in _blocks(letters):
        weights += np.take_along_axis(share[:, some], residue_codes(letters[:, some]), axis=0).sum(1)
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(letters), 1 / max(1, len(letters)))


def _blocks(letters: NDArray[np.uint8]) -> list[slice]:
    """The columns in pieces whose letters take some megabytes as numbers."""
    width = max(1, _CELLS_OF_A_BLOCK // max(1, len(letters)))
    return [slice(first, first + width) for first in range(0, letters.shape[1], width)]
