"""Conservation of the columns of an alignment."""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.sequences.statistics import BACKGROUND

__all__ = ["RESIDUES", "conservation", "information_content", "residue_codes", "residue_counts", "sequence_weights"]

RESIDUES = "".join(residue for residue, share in zip(SYMBOLS, BACKGROUND.tolist(), strict=True) if share > 0)
"""Twenty amino acids, in the order of their codes in this module."""
_OTHER = len(RESIDUES)
_CODES = np.full(256, _OTHER, np.uint8)
_CODES[np.frombuffer(RESIDUES.encode(), np.uint8)] = np.arange(_OTHER)
_PSEUDOCOUNT = 1e-7
_CELLS_OF_A_BLOCK = 1 << 21


def residue_codes(characters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the index of each character in `RESIDUES`; ``len(RESIDUES)`` for other characters."""
    return _CODES[characters]


def residue_counts(characters: NDArray[np.uint8], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the number, or total weight, of the rows with each residue in each column.

    Parameters
    ----------
    characters : ndarray of uint8, shape (rows, columns)
        ASCII residues; other characters are not counted.
    weights : ndarray of float64, shape (rows,), optional
        Weights of the rows.

    Returns
    -------
    ndarray of float64, shape (20, columns)
        Counts of each of `RESIDUES`.
    """
    counts = np.empty((_OTHER, characters.shape[1]))
    for block in _blocks(characters):
        codes = residue_codes(characters[:, block])
        n = codes.shape[1]
        positions = codes * np.int64(n) + np.arange(n)
        cell_weights = None if weights is None else np.repeat(weights, n)
        counts[:, block] = np.bincount(positions.ravel(), cell_weights, (_OTHER + 1) * n).reshape(-1, n)[:_OTHER]
    return counts


def conservation(characters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence of each column from the composition of proteins, 0 to 1.

    The method is that of Capra & Singh (2007, Bioinformatics 23:1875): sequences are weighted by position (Henikoff & Henikoff 1994, J.
    Mol. Biol. 243:574), and the divergence is multiplied by the total weight of rows without a gap. Unlike in that publication,
    neighbouring columns are not averaged, and the background is the composition of Robinson & Robinson (1991), as for E-values, instead
    of BLOSUM62's. Characters other than the twenty amino acids count as gaps.

    Parameters
    ----------
    characters : ndarray of uint8, shape (rows, columns)
        ASCII residues; all other characters are gaps.

    Returns
    -------
    ndarray of float64, shape (columns,)
        Divergences.
    """
    shares = residue_counts(characters, sequence_weights(characters))
    background = BACKGROUND[[SYMBOLS.index(residue) for residue in RESIDUES]]
    background = (background / background.sum())[:, None]
    counted = shares + _PSEUDOCOUNT
    column = counted / counted.sum(0)
    mean = (column + background) / 2
    divergence = (column * np.log2(column / mean) + background * np.log2(background / mean)).sum(0) / 2
    conservation: NDArray[np.float64] = np.clip(divergence * shares.sum(0), 0.0, 1.0)
    return conservation


def information_content(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the information content of each column in bits, 0 to log2(20).

    The method is that of Schneider & Stephens (1990, Nucleic Acids Res. 18:6097): log2(20) minus the entropy of the residues in the column,
    minus the correction for small samples, 19 / (2 ln(2) n), where n is the number of residues in the column. Gaps do not count, so that
    the correction is larger in a column with many gaps. If the correction exceeds the information, the content is 0.

    Parameters
    ----------
    counts : ndarray of float64, shape (20, columns)
        Number of rows with each residue, from `residue_counts`.

    Returns
    -------
    ndarray of float64, shape (columns,)
    """
    n = counts.sum(0)
    fraction = counts / np.maximum(n, 1)
    entropy = -(fraction * np.log2(np.where(fraction > 0, fraction, 1.0))).sum(0)
    correction = (len(counts) - 1) / (2 * np.log(2) * np.maximum(n, 1))
    return np.where(n > 0, np.maximum(np.log2(len(counts)) - entropy - correction, 0.0), 0.0)


def sequence_weights(characters: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return weights of rows with sum 1, which are lower for rows that resemble many other rows (Henikoff & Henikoff 1994).

    In each column, every residue that occurs has the same total weight, divided among the rows with this residue. Gaps have no weight.

    Parameters
    ----------
    characters : ndarray of uint8, shape (rows, columns)
        ASCII residues; all other characters are gaps.

    Returns
    -------
    ndarray of float64, shape (rows,)
        Weights.
    """
    counts = residue_counts(characters)
    n_kinds = (counts > 0).sum(0)
    fraction = np.zeros((_OTHER + 1, characters.shape[1]))
    np.divide(1.0, n_kinds * counts, where=counts > 0, out=fraction[:_OTHER])
    weights = np.zeros(len(characters))
    for block in _blocks(characters):
        weights += np.take_along_axis(fraction[:, block], residue_codes(characters[:, block]), axis=0).sum(1)
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(characters), 1 / max(1, len(characters)))


def _blocks(characters: NDArray[np.uint8]) -> list[slice]:
    """Divide the columns into consecutive slices, each so small that the arrays computed from it take only a few megabytes."""
    width = max(1, _CELLS_OF_A_BLOCK // max(1, len(characters)))
    return [slice(first, first + width) for first in range(0, characters.shape[1], width)]
