"""Cache of the alignments that a superposition search has visited, by superposition and by residue pairs.

The further search depends only on the pairs of an alignment, and the alignment depends only on the superposition. For a pair of chains,
neither is computed twice. Results are the same without this cache, which the search on GPUs does not use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.least_squares import MOVE

__all__ = ["MetAlignments", "forget", "mark_of_move", "mark_of_pairs", "met_alignments", "note", "place_of"]

_MULTIPLIER, _SEED = 0x2545F4914F6CDD1D, 0x1B873593CC9E2D51


class MetAlignments(NamedTuple):
    """Hash table that maps marks (hashes; 0 is an empty slot) to rows (-1: not computed yet), and the results in these rows.

    Results are the score sum, the number of pairs, and the superposition (12,); `n` (1,) is the number of rows in use.
    """

    marks: NDArray[np.int64]
    rows: NDArray[np.int64]
    score: NDArray[np.float64]
    counts: NDArray[np.int64]
    moves: NDArray[np.float64]
    n: NDArray[np.int64]


@njit(nogil=True, cache=True)
def met_alignments(most):
    """Return an empty table for at most `most` alignments."""
    positions = 64
    while positions < 4 * most:
        positions *= 2
    return MetAlignments(
        np.zeros(positions, np.int64),
        np.full(positions, -1),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty((most, MOVE)),
        np.zeros(1, np.int64),
    )


@njit(nogil=True, cache=True)
def forget(met):
    """Reset the table."""
    met.marks[:] = 0
    met.rows[:] = -1
    met.n[0] = 0


@njit(nogil=True, cache=True)
def _mixed(mark, bits):
    mark = (mark ^ bits) * np.int64(_MULTIPLIER)
    return mark ^ ((mark >> np.int64(32)) & np.int64(0xFFFFFFFF))


@njit(nogil=True, cache=True)
def mark_of_move(move, gap, by_states):
    """Return the mark (hash) of an alignment, given its superposition (12,), gap cost and reward for equal states."""
    mark = _mixed(np.int64(_SEED), np.int64(gap * 1024.0) * 2048 + np.int64(by_states * 1024.0))
    bits = move.view(np.int64)
    for k in range(MOVE):
        mark = _mixed(mark, bits[k])
    return mark | 1


@njit(nogil=True, cache=True)
def mark_of_pairs(pairs, first):
    """Return the mark (hash) of an alignment, given its pairs (n, 2) from row `first` on."""
    mark = np.int64(_SEED)
    for k in range(first, len(pairs)):
        mark = _mixed(mark, np.int64(pairs[k, 0]) << np.int64(32) | np.int64(pairs[k, 1]))
    return mark & ~np.int64(1) | 2


@njit(nogil=True, cache=True)
def place_of(met, mark):
    """Return the slot of a mark; a new mark is inserted."""
    last = len(met.marks) - 1
    position = mark >> np.int64(8) & last
    while met.marks[position] != 0 and met.marks[position] != mark:
        position = (position + 1) & last
    met.marks[position] = mark
    return position


@njit(nogil=True, cache=True)
def note(met, score, count, move):
    """Append a row of results; return its index."""
    row = met.n[0]
    met.score[row], met.counts[row] = score, count
    met.moves[row] = move
    met.n[0] += 1
    return row
