"""Superposition of given pairs with the highest TM-score (Zhang & Skolnick, Proteins 57, 2004, 702-710).

Fragments of an alignment are superposed; then the pairs that are near each other are repeatedly superposed, in batches
(`proteoscope.kernels.cpu.least_squares`). Coordinates are (3, n) float64, one axis per row. A superposition is (12,) float64: the rotation
row by row, then the translation; it moves `x` onto `y`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.chain_pairs import tm_scale
from proteoscope.kernels.cpu.least_squares import BATCH, MOMENTS, MOVE, batch_workspace, near_moments, rotations

__all__ = ["N_HALVINGS", "SearchWorkspace", "gather", "near_of", "search", "search_workspace", "tm_score_of_pairs"]

_N_ROUNDS = 20  # maximum rounds of superposing on nearby pairs
N_HALVINGS = 6
"""Maximum number of halvings of the fragment length."""
_MINIMUM_FRAGMENT = 4
_ALL = 1  # residues from the start of one fragment to the next
_HOPELESS_ROUNDS = 2  # number of superpositions after which a fragment may be discarded
_TABLE, _PROBES = 1024, 16


class SearchWorkspace(NamedTuple):
    """Workspace of a search: pairs x and y, cumulative moments, a batch of segments, and selections that were already superposed."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    before: NDArray[np.float64]
    sums: NDArray[np.float64]
    moves: NDArray[np.float64]
    state: NDArray[np.float64]
    near_sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    limits: NDArray[np.float64]
    first_x: NDArray[np.int64]
    first_y: NDArray[np.int64]
    lengths: NDArray[np.int64]
    rounds: NDArray[np.int64]
    seen: NDArray[np.int64]
    squared: NDArray[np.float64]


@njit(nogil=True, cache=True)
def search_workspace(n):
    """Return a workspace for alignments of up to n pairs."""
    sums, moves, state = batch_workspace()
    return SearchWorkspace(
        np.empty((3, n)),
        np.empty((3, n)),
        np.empty((n + 1) * MOMENTS),
        sums,
        moves,
        state,
        np.zeros(MOMENTS * BATCH),
        np.zeros(BATCH),
        np.empty(BATCH),
        np.zeros(BATCH, np.int64),
        np.zeros(BATCH, np.int64),
        np.zeros(BATCH, np.int64),
        np.empty(BATCH, np.int64),
        np.empty(_TABLE, np.int64),
        np.empty(n),
    )


@njit(nogil=True, cache=True)
def near_of(scale):
    """Return the distance (Å) below which the search superposes pairs, given the scale d0."""
    return min(8.0, max(4.5, scale))


@njit(nogil=True, cache=True)
def _is_new(mark, seen):
    """Return True if the selection of pairs with the hash `mark` (32 bits) was not superposed before; record the mark if there is space."""
    place = (mark * np.int64(0x9E3779B1)) >> np.int64(22) & np.int64(_TABLE - 1)
    for _ in range(_PROBES):
        if seen[place] == mark:
            return False
        if seen[place] == 0:
            seen[place] = mark
            return True
        place = (place + 1) & np.int64(_TABLE - 1)
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def _moments_before(x, y, n, before):
    """Write the moments of the first k pairs at ``k * MOMENTS``, for k from 0 to n; their differences are the moments of any fragment."""
    before[:MOMENTS] = 0.0
    for i in range(n):
        a, b, c, d, e, f = x[0, i], x[1, i], x[2, i], y[0, i], y[1, i], y[2, i]
        last, to = before[i * MOMENTS : (i + 1) * MOMENTS], before[(i + 1) * MOMENTS : (i + 2) * MOMENTS]
        to[0], to[1], to[2], to[3], to[4], to[5] = last[0] + a, last[1] + b, last[2] + c, last[3] + d, last[4] + e, last[5] + f
        to[6], to[7], to[8] = last[6] + a * d, last[7] + a * e, last[8] + a * f
        to[9], to[10], to[11] = last[9] + b * d, last[10] + b * e, last[11] + b * f
        to[12], to[13], to[14] = last[12] + c * d, last[13] + c * e, last[14] + c * f
        to[15], to[16] = last[15] + (a * a + b * b + c * c + d * d + e * e + f * f), last[16] + 1.0


@njit(nogil=True, cache=True)
def search(workspace, n, scale, near, step, halvings, hopeless, best):
    """Find the superposition of the first n pairs with the highest score sum; write it to `best`, and return the sum.

    Fragments from the whole alignment down to four pairs are superposed; then near pairs are superposed until their selection does not
    change. The result depends only on the selection of pairs, so that no selection is computed twice.

    Parameters
    ----------
    scale
        Scale d0 of the score, Å.
    near
        Distance in Å below which pairs are near.
    step
        Distance between the starts of fragments: 1 for all fragments, 0 for a quarter of the fragment length.
    halvings
        Number of fragment lengths; six for all down to four pairs.
    hopeless
        Minimum fraction of the maximum sum that a fragment must reach after two iterations to be continued.
    """
    greatest = -1.0
    if n == 0:
        best[:] = 0.0
        best[0] = best[4] = best[8] = 1.0
        return 0.0
    x, y, before, moves, state, totals, limits = (
        workspace.x,
        workspace.y,
        workspace.before,
        workspace.moves,
        workspace.state,
        workspace.totals,
        workspace.limits,
    )
    first, count, rounds, seen = workspace.first_x, workspace.lengths, workspace.rounds, workspace.seen
    sums, near_sums = workspace.sums, workspace.near_sums
    bits, near_bits = sums.view(np.int64), near_sums.view(np.int64)
    _moments_before(x, y, n, before)
    seen[:] = 0
    first[:] = 0
    count[:] = 0
    shortest = max(min(_MINIMUM_FRAGMENT, n), 0 if halvings == N_HALVINGS else n >> (halvings - 1))
    halving, start, length, is_more, running = 0, 0, n, True, 0
    while True:
        for k in range(BATCH):
            if is_more and count[k] == 0:
                for c in range(MOMENTS):
                    sums[c * BATCH + k] = before[(start + length) * MOMENTS + c] - before[start * MOMENTS + c]
                count[k], rounds[k], limits[k] = n, 0, near - 1.0
                running += 1
                if start < n - length:
                    start = min(start + (step if step else max(2, length // 4)), n - length)
                elif length == shortest:
                    is_more = False
                else:
                    halving, start = halving + 1, 0
                    length = max(n >> halving, shortest) if halving < halvings - 1 else shortest
        if running == 0:
            return greatest
        rotations(sums, count, moves, state)
        near_moments(x, y, first, first, count, moves, scale, limits, near_sums, totals)
        sums, near_sums, bits, near_bits = near_sums, sums, near_bits, bits
        for k in range(BATCH):
            if count[k] == 0:
                continue
            if totals[k] > greatest:
                greatest = totals[k]
                for c in range(MOVE):
                    best[c] = moves[c * BATCH + k]
            rounds[k] += 1
            limits[k] = near + 1.0
            # The same pairs give bit-identical sums, so the sums identify a selection of pairs.
            is_hopeless = rounds[k] >= _HOPELESS_ROUNDS and totals[k] < hopeless * greatest
            mark = bits[6 * BATCH + k] ^ (bits[15 * BATCH + k] << 1)
            mark = (mark ^ (mark >> np.int64(32))) & np.int64(0xFFFFFFFF) | 1
            if rounds[k] > _N_ROUNDS or is_hopeless or not _is_new(mark, seen):
                count[k] = 0
                running -= 1


@njit(nogil=True, cache=True)
def tm_score_of_pairs(x, y, length):
    """Return the highest TM-score found over superpositions of the pairs, normalised by `length`, and the superposition (12,).

    Parameters
    ----------
    x, y : (3, n) float64
        Coordinates (Å) of the pairs.
    """
    n = x.shape[1]
    workspace, best, scale = search_workspace(n), np.empty(MOVE), tm_scale(length)
    workspace.x[:] = x
    workspace.y[:] = y
    result = search(workspace, n, scale, near_of(scale), _ALL, N_HALVINGS, 0.0, best)
    return result / max(1, length), best


@njit(nogil=True, cache=True)
def gather(workspace, x, y, pairs, first):
    """Copy the coordinates of the pairs from row `first` on to the workspace; return their number."""
    n = len(pairs) - first
    for axis in range(3):
        to_x, to_y, from_x, from_y = workspace.x[axis], workspace.y[axis], x[axis], y[axis]
        for k in range(n):
            to_x[k], to_y[k] = from_x[pairs[first + k, 0]], from_y[pairs[first + k, 1]]
    return n
