"""How conserved the columns of an alignment are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.sequences.matrices import LETTERS
from engine.sequences.statistics import BACKGROUND

__all__ = ["conservation", "sequence_weights"]

_KNOWN = np.flatnonzero(BACKGROUND > 0)
"""Codes of the twenty amino acids."""
_PSEUDOCOUNT = 1e-7
_CELLS_OF_A_BLOCK = 1 << 20


def conservation(letters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence of each column from the composition of proteins, 0 to 1, (columns,) float64.

    After Capra & Singh (2007, Bioinformatics 23:1875): sequences weighted by position (Henikoff & Henikoff 1994, J. Mol. Biol.
    243:574), what a column has of gaps taken off. Without their mean over neighbours, and with the composition of Robinson & Robinson
    (1991), which the program has for E-values, in place of that of BLOSUM62. Letters but the twenty amino acids count as gaps.

    Parameters
    ----------
    letters : (rows, columns) uint8, ASCII; what is no letter is a gap.
    """
    weights = sequence_weights(letters)
    background = (BACKGROUND[_KNOWN] / BACKGROUND[_KNOWN].sum())[:, None]
    found = np.empty(letters.shape[1])
    for some in _blocks(letters):
        shares = np.array([weights @ (letters[:, some] == ord(LETTERS[code])) for code in _KNOWN])
        counted = shares + _PSEUDOCOUNT
        column = counted / counted.sum(0)
        mean = (column + background) / 2
        divergence = (column * np.log2(column / mean) + background * np.log2(background / mean)).sum(0) / 2
        found[some] = divergence * shares.sum(0)
    return np.clip(found, 0.0, 1.0)


def sequence_weights(letters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Weights of rows, (rows,) float64, together 1: less to those that resemble many others (Henikoff & Henikoff 1994).

    In each column each kind of residue has the same weight, which those that have it share. Gaps have none.
    """
    weights = np.zeros(len(letters))
    for some in _blocks(letters):
        counts = np.array([(letters[:, some] == ord(LETTERS[code])).sum(0) for code in _KNOWN])
        n_kinds = (counts > 0).sum(0)
        for code, count in zip(_KNOWN, counts, strict=True):
            share = np.divide(1.0, n_kinds * count, where=count > 0, out=np.zeros(len(count)))
            weights += (letters[:, some] == ord(LETTERS[code])) @ share
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(letters), 1 / max(1, len(letters)))


def _blocks(letters: NDArray[np.uint8]) -> list[slice]:
    """The columns in pieces whose letters take some megabytes as numbers."""
    width = max(1, _CELLS_OF_A_BLOCK // max(1, len(letters)))
    return [slice(first, first + width) for first in range(0, letters.shape[1], width)]
