"""Smith-Waterman with affine gaps, one query against as many subjects as a vector has lanes (Rognes 2011, BMC Bioinformatics 12:221).

Four columns are computed in one sweep along the query, so that values passed between rows stay in registers. A cell takes nine
instructions. Six of them, the maxima and one saturated difference, have two ports on Intel CPUs with AVX2, and one with AVX-512; wrapping
sums and differences have one port more, and on AMD CPUs twice as many as saturated ones. Scores are therefore signed and wrap, except E:
while it is non-negative, so is H, which is the ``max(0, ...)`` of the recurrence. A sum wraps only if H came so close to the maximum that
the lane's best H reveals it.

Recurrence (Gotoh 1982), a gap of k residues costing ``gap_open + k * gap_extend``::

    H[i, j] = max(0, H[i-1, j-1] + s(q_i, d_j), E[i, j], F[i, j])
    E[i, j+1] = max(E[i, j] - gap_extend, H[i, j] - gap_open - gap_extend)      a gap in the query
    F[i+1, j] = max(F[i, j] - gap_extend, H[i, j] - gap_open - gap_extend)      a gap in the subject

Lanes are filled with sequences of nearly equal length, longest first; if the longest is much longer than the rest, the other lanes hold
several sequences in succession.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.vectors import (
    REGISTER_BYTES,
    add,
    lanes_of,
    load,
    load_codes,
    look_up,
    maximum,
    minimum,
    spread,
    store,
    subtract,
    subtract_to_zero,
)

__all__ = [
    "BLOCK_COLUMNS",
    "PADDING",
    "LaneGroup",
    "cell",
    "fill_columns",
    "fill_profile",
    "lane_count",
    "lane_groups",
    "score_lanes",
]

BLOCK_COLUMNS = 4
"""Columns of a lane computed together; a sequence occupies a multiple of it."""
PADDING = 31
"""Code of padding, which scores the minimum with everything."""
_REPEATED = 64
_PADDING_ALLOWED = 0.03  # of a group's columns, before its lanes are filled up with shorter sequences


def lane_count(bits: int) -> int:
    """Return the number of subjects scored in parallel with numbers of a bit width."""
    return REGISTER_BYTES * 8 // bits


@dataclass(frozen=True)
class LaneGroup:
    """Sequences that are scored side by side, several in a lane where they are short.

    Attributes
    ----------
    subjects, lanes, first_columns : (n,) int64
        Number of the sequence, its lane, the column where it begins.
    end_blocks : (n,) int64
        Ascending: the block of columns in which it ends.
    is_followed : (n,) int64
        1 where another follows in its lane.
    n_blocks
        Of the longest lane.
    """

    subjects: NDArray[np.int64]
    lanes: NDArray[np.int64]
    first_columns: NDArray[np.int64]
    end_blocks: NDArray[np.int64]
    is_followed: NDArray[np.int64]
    n_blocks: int


def lane_groups(subjects: NDArray[np.int64], lengths: NDArray[np.int64], n_lanes: int) -> list[LaneGroup]:
    """Put sequences into lanes.

    Parameters
    ----------
    subjects : (n,) int64
        Their numbers.
    lengths : (n,) int64
        At least 1.
    """
    order = np.argsort(-lengths, kind="stable")
    subjects, blocks = subjects[order], -(-lengths[order] // BLOCK_COLUMNS)
    groups, first, n = [], 0, len(subjects)
    while first < n:
        workspace = int(blocks[first])
        last = min(n, first + n_lanes)
        if last == n or int(blocks[first:last].sum()) >= (1 - _PADDING_ALLOWED) * workspace * n_lanes:
            lane, start = np.arange(last - first), np.zeros(last - first, np.int64)
        else:
            lane, start = _filled_lanes(blocks[first:], workspace, n_lanes)
            last = first + len(lane)
        groups.append(_group(subjects[first:last], blocks[first:last], lane, start))
        first = last
    return groups


def _filled_lanes(blocks: NDArray[np.int64], limit: int, n_lanes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lane and first block of sequences in order: each in the lane with most space, until one does not fit."""
    lanes, starts = [], []
    filled = [(0, lane) for lane in range(n_lanes)]
    for size in blocks.tolist():
        taken, lane = filled[0]
        if taken + size > limit:
            break
        heapq.heapreplace(filled, (taken + size, lane))
        lanes.append(lane)
        starts.append(taken)
    return np.array(lanes, np.int64), np.array(starts, np.int64)


def _group(subjects: NDArray[np.int64], blocks: NDArray[np.int64], lanes: NDArray[np.int64], starts: NDArray[np.int64]) -> LaneGroup:
    ends = starts + blocks - 1
    last_of_lane = np.zeros(int(lanes.max()) + 1, np.int64)
    np.maximum.at(last_of_lane, lanes, ends)
    order = np.argsort(ends, kind="stable")
    is_followed = (ends < last_of_lane[lanes]).astype(np.int64)
    return LaneGroup(subjects[order], lanes[order], starts[order] * BLOCK_COLUMNS, ends[order], is_followed[order], int(ends.max()) + 1)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_columns(residues, starts, lengths, lanes, first_columns, n_lanes, columns):
    """Write sequences into lanes, column by column: ``columns[column * n_lanes + lane]``; the rest becomes padding.

    Parameters
    ----------
    residues
        Int8 codes of all sequences.
    starts, lengths : (n,) int64
        Of those to write.
    lanes, first_columns : (n,) int64
        Where each is written.
    columns : int8
        To fill.
    """
    columns[:] = PADDING
    for k in range(len(starts)):
        start, place = starts[k], first_columns[k] * n_lanes + lanes[k]
        for i in range(lengths[k]):
            columns[place + i * n_lanes] = residues[start + i]


@njit(inline="always")
def cell(diagonal, score, e, f, best, opening, extending):
    """Return H, the E of the next column, the F of the next row and the best H so far, for one cell."""
    h = maximum(maximum(add(diagonal, score), f), e)
    opened = subtract(h, opening)
    e = maximum(subtract_to_zero(e, extending), opened)
    f = maximum(subtract(f, extending), opened)
    return h, e, f, maximum(best, h)


@njit(inline="always")
def fill_profile(rows, table, columns, block, profile):
    """Write the scores of each different residue of the query with the residues of a block: ``profile[(row * 4 + column) * lanes]``."""
    lanes = lanes_of(profile)
    column = block * BLOCK_COLUMNS * lanes
    codes_0 = load_codes(columns, column, profile)
    codes_1 = load_codes(columns, column + lanes, profile)
    codes_2 = load_codes(columns, column + 2 * lanes, profile)
    codes_3 = load_codes(columns, column + 3 * lanes, profile)
    for k in range(len(rows)):
        row, place = rows[k] * _REPEATED, k * BLOCK_COLUMNS * lanes
        store(profile, place, look_up(table, row, codes_0))
        store(profile, place + lanes, look_up(table, row, codes_1))
        store(profile, place + 2 * lanes, look_up(table, row, codes_2))
        store(profile, place + 3 * lanes, look_up(table, row, codes_3))


@njit(nogil=True, cache=True, error_model="numpy")
def score_lanes(
    query,
    rows,
    table,
    columns,
    first_block,
    last_block,
    end_block,
    end_lane,
    end_target,
    end_clears,
    opening,
    extending,
    most,
    h_row,
    e_row,
    profile,
    best,
    clearing,
    scores,
):
    """Score a query against the sequences in the lanes, from one block of columns to another.

    The width of the numbers is that of the dtype of `table`, which `h_row`, `e_row`, `profile`, `best` and `clearing` share. A call
    continues where the previous call stopped: `h_row`, `e_row` and `best` hold the values that pass from a block to the next.

    Parameters
    ----------
    query : (m,) int64
        Row of each residue.
    rows : (r,) int64
        Code of each row: the different residues of the query.
    table : (32 * 64,)
        Aligned; ``table[code of query * 64 + code of subject]`` and the same 32 further on: scores, the least value for padding.
    columns
        Int8 from `fill_columns`, four columns to a block.
    end_block, end_lane, end_target, end_clears : (n,) int64
        By block: in which block a sequence ends, its lane, where in `scores` its score goes, and whether another follows in the lane.
    opening, extending
        Cost of a gap's first residue and of each further one.
    most
        Maximum score; greater ones may be wrong. See `proteoscope.kernels.cpu.substitution` for what the width must hold.
    h_row, e_row
        (m * lanes,).
    profile
        (r * 4 * lanes,).
    best, clearing : (lanes,)
        Aligned work space.
    scores : int32
        To fill; -1 where the score passed `most`.
    """
    lanes = lanes_of(h_row)
    m = len(query)
    zero = spread(h_row, 0)
    open_cost = spread(h_row, opening)
    extend_cost = spread(h_row, extending)
    if first_block == 0:
        for i in range(m):
            store(h_row, i * lanes, zero)
            store(e_row, i * lanes, zero)
        store(best, 0, zero)
    end = np.searchsorted(end_block, first_block)
    top = load(best, 0)
    for block in range(first_block, last_block):
        fill_profile(rows, table, columns, block, profile)
        f_0, f_1, f_2, f_3 = zero, zero, zero, zero
        above_0, above_1, above_2, above_3 = zero, zero, zero, zero
        for i in range(m):
            place = query[i] * BLOCK_COLUMNS * lanes
            e = load(e_row, i * lanes)
            left = load(h_row, i * lanes)
            h_0, e, f_0, top = cell(above_0, load(profile, place), e, f_0, top, open_cost, extend_cost)
            h_1, e, f_1, top = cell(above_1, load(profile, place + lanes), e, f_1, top, open_cost, extend_cost)
            h_2, e, f_2, top = cell(above_2, load(profile, place + 2 * lanes), e, f_2, top, open_cost, extend_cost)
            h_3, e, f_3, top = cell(above_3, load(profile, place + 3 * lanes), e, f_3, top, open_cost, extend_cost)
            above_0, above_1, above_2, above_3 = left, h_0, h_1, h_2
            store(h_row, i * lanes, h_3)
            store(e_row, i * lanes, e)
        if end < len(end_block) and end_block[end] == block:
            store(best, 0, top)
            store(clearing, 0, spread(h_row, np.iinfo(h_row.dtype).max))
            clears = False
            while end < len(end_block) and end_block[end] == block:
                lane = end_lane[end]
                scores[end_target[end]] = best[lane] if best[lane] <= most else -1
                if end_clears[end]:
                    clears = True
                    best[lane] = 0
                    clearing[lane] = 0
                end += 1
            if clears:
                keep = load(clearing, 0)
                for i in range(m):
                    store(h_row, i * lanes, minimum(load(h_row, i * lanes), keep))
                    store(e_row, i * lanes, minimum(load(e_row, i * lanes), keep))
            top = load(best, 0)
    store(best, 0, top)
