"""Alignment of two chains by descriptors: score of their secondary structure elements, and alignment of residues with trace-back.

The recurrences are those of `proteoscope.kernels.cpu.structure_alignment`, which scores many chains without trace-back.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.structure_layouts import CODES, ELEMENT_UNITS, LENGTH_STEPS, Rewards, StructureArrays

__all__ = ["align_pair", "element_score"]

_END, _DIAGONAL, _TARGET_ALONE, _QUERY_ALONE = 0, 1, 2, 3
_TARGET_GOES_ON, _QUERY_GOES_ON = 4, 8


@njit(nogil=True, cache=True, error_model="numpy")
def _element_reward(type_a, length_a, type_b, length_b):
    """Return the reward of two elements in `ELEMENT_UNITS`, rounded to the nearest integer, half up."""
    halves = 1 if type_a == 0 or type_b == 0 else 2 if type_a == type_b else 0
    whole = np.int64(length_a) + np.int64(length_b)
    return (2 * halves * ELEMENT_UNITS * np.int64(min(length_a, length_b)) + whole) // (2 * whole)


@njit(nogil=True, cache=True, error_model="numpy")
def element_score(type_a, length_a, type_b, length_b, gap_first, gap_next):
    """Return the score, in `ELEMENT_UNITS`, of the best local alignment of the elements of two chains.

    Parameters
    ----------
    type_a, type_b : (n,) uint8, (m,) uint8
        Types of the elements.
    length_a, length_b : int32
        Lengths of the elements, at least 1.
    """
    n = len(type_a)
    h_row, f_row = np.zeros(n, np.int64), np.zeros(n, np.int64)
    best = np.int64(0)
    for j in range(len(type_b)):
        diagonal, e = np.int64(0), np.int64(0)
        for i in range(n):
            h = max(diagonal + _element_reward(type_a[i], length_a[i], type_b[j], length_b[j]), e, f_row[i], 0)
            diagonal = h_row[i]
            h_row[i] = h
            best = max(best, h)
            e = max(e - gap_next, h - gap_first)
            f_row[i] = max(f_row[i] - gap_next, h - gap_first)
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_directions(query, target, rewards, directions):
    """Write the directions of one pair of chains; return the best score and the first cell with it in row order."""
    state_q, length_q, angle_q = query.state, query.length, query.angle
    state_t, length_t, angle_t = target.state, target.length, target.angle
    shifts, tables, of_length, of_angle = rewards.shifts, rewards.tables, rewards.of_length, rewards.of_angle
    gap_first, gap_next = rewards.gap_first, rewards.gap_next
    n = len(state_t)
    compares = len(of_length) > 0
    h_row, f_row, reward = np.zeros(n + 1, np.int32), np.zeros(n, np.int32), np.empty(n, np.int32)
    best, best_i, best_j = np.int32(0), -1, -1
    for i in range(len(state_q)):
        reward[:] = 0
        for a in range(len(shifts)):
            shift = np.uint32(shifts[a])
            table = tables[a, (state_q[i] >> shift) & np.uint32(CODES - 1)]
            for j in range(n):
                reward[j] += table[(state_t[j] >> shift) & np.uint32(CODES - 1)]
        if compares:
            own_length, own_angle = np.int32(length_q[i]), np.int32(angle_q[i])
            for j in range(n):
                reward[j] += of_length[min(abs(np.int32(length_t[j]) - own_length), LENGTH_STEPS - 1)]
                reward[j] += of_angle[abs(np.int32(angle_t[j]) - own_angle)]
        diagonal, e = np.int32(0), np.int32(0)
        for j in range(n):
            paired = diagonal + reward[j]
            h, origin = paired, _DIAGONAL
            if e > h:
                h, origin = e, _TARGET_ALONE
            if f_row[j] > h:
                h, origin = f_row[j], _QUERY_ALONE
            if h <= 0:
                h, origin = np.int32(0), _END
            diagonal = h_row[j + 1]
            h_row[j + 1] = h
            if h > best:
                best, best_i, best_j = h, i, j
            opened = np.int32(h - gap_first)
            e, f = np.int32(e - gap_next), np.int32(f_row[j] - gap_next)
            if e > opened:
                origin |= _TARGET_GOES_ON
            else:
                e = opened
            if f > opened:
                origin |= _QUERY_GOES_ON
            else:
                f = opened
            f_row[j] = f
            directions[i, j] = origin
    return best, best_i, best_j


@njit(nogil=True, cache=True, error_model="numpy")
def _trace_back(directions, i, j, pairs):
    """Write the aligned residues that lead to cell (i, j) in reverse order; return their number."""
    n, followed = 0, _END
    while i >= 0 and j >= 0:
        cell = directions[i, j]
        # The bit of this cell records whether the gap was opened here or extended.
        if followed == _TARGET_ALONE and cell & _TARGET_GOES_ON:
            step = _TARGET_ALONE
        elif followed == _QUERY_ALONE and cell & _QUERY_GOES_ON:
            step = _QUERY_ALONE
        else:
            step = cell & 3
        if step == _END:
            break
        if step == _DIAGONAL:
            pairs[n, 0], pairs[n, 1] = i, j
            n += 1
        followed = step
        if step != _TARGET_ALONE:
            i -= 1
        if step != _QUERY_ALONE:
            j -= 1
    return n


def align_pair(query: StructureArrays, target: StructureArrays, rewards: Rewards) -> tuple[int, NDArray[np.int32]]:
    """Align two chains locally.

    The function releases the GIL, and needs one byte per matrix cell.

    Returns
    -------
    score : int
        Score, equal to that of `StructureSearch`.
    pairs : ndarray of int32, shape (k, 2)
        Aligned residues of query and target, ascending.
    """
    directions = np.empty((len(query.state), len(target.state)), np.uint8)
    score, i, j = _fill_directions(query, target, rewards, directions)
    pairs = np.empty((min(directions.shape), 2), np.int32)
    n = _trace_back(directions, i, j, pairs)
    return int(score), pairs[:n][::-1].copy()
