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
    shares = np.array([weights @ (letters == ord(LETTERS[code])) for code in _KNOWN]).reshape(len(_KNOWN), -1)
    is_residue = shares.sum(0)
    counted = shares + _PSEUDOCOUNT
    column = counted / counted.sum(0)
    background = (BACKGROUND[_KNOWN] / BACKGROUND[_KNOWN].sum())[:, None]
    mean = (column + background) / 2
    divergence = (column * np.log2(column / mean) + background * np.log2(background / mean)).sum(0) / 2
    return np.clip(divergence * is_residue, 0.0, 1.0)


def sequence_weights(letters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Weights of rows, (rows,) float64, together 1: less to those that resemble many others (Henikoff & Henikoff 1994).

    In each column each kind of residue has the same weight, which those that have it share. Gaps have none.
    """
    weights = np.zeros(len(letters))
    matches = [letters == ord(LETTERS[code]) for code in _KNOWN]
    counts = np.array([match.sum(0) for match in matches])
    n_kinds = (counts > 0).sum(0)
    for match, count in zip(matches, counts, strict=True):
        share = np.divide(1.0, n_kinds * count, where=count > 0, out=np.zeros(letters.shape[1]))
        weights += match @ share
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(letters), 1 / max(1, len(letters)))
