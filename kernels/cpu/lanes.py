"""Smith-Waterman with affine gaps, one query against as many subjects as a vector has lanes (Rognes 2011, BMC Bioinformatics 12:221).

Four columns are computed in one pass along the query, so that values passed between rows stay in registers. A cell needs nine instructions.
Six of them, the maxima and one saturated difference, can use two ports on Intel CPUs with AVX2, and one with AVX-512. Wrapping sums and
differences can use one more port, and on AMD CPUs twice as many ports as saturated ones. With AVX-512 on Intel CPUs, the maximum for F is
therefore a comparison and a selection, so that both ports do five instructions in five clock cycles; without this, a cell needs six cycles,
and with two such maxima 5.5. Scores are signed and wrap, except E, which stays non-negative. H is then non-negative too, which replaces the
``max(0, ...)`` of the recurrence. A sum can wrap only if H is so close to the maximum that the pair is scored again anyway.

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
    maximum_by_comparison,
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
"""Number of columns of a lane that are computed together; a sequence occupies a multiple of it."""
PADDING = 31
"""Code of padding, whose score with every residue is the minimum."""
_REPEATED = 64
_PADDING_ALLOWED = 0.03  # maximum fraction of padding in a group; beyond it, lanes continue with further shorter sequences


def lane_count(bits: int) -> int:
    """Return the number of subjects that are scored in parallel with numbers of the given bit width."""
    return REGISTER_BYTES * 8 // bits


@dataclass(frozen=True)
class LaneGroup:
    """Sequences that are scored in parallel; several short sequences may be in one lane.

    Attributes
    ----------
    subjects, lanes, first_columns : (n,) int64
        Index of each sequence, its lane, and its first column.
    end_blocks : (n,) int64
        Block of columns in which each sequence ends, ascending.
    is_followed : (n,) int64
        1 if another sequence follows in the lane.
    n_blocks
        Number of column blocks of the longest lane.
    """

    subjects: NDArray[np.int64]
    lanes: NDArray[np.int64]
    first_columns: NDArray[np.int64]
    end_blocks: NDArray[np.int64]
    is_followed: NDArray[np.int64]
    n_blocks: int


def lane_groups(subjects: NDArray[np.int64], lengths: NDArray[np.int64], n_lanes: int) -> list[LaneGroup]:
    """Distribute sequences to lanes; return the groups.

    Parameters
    ----------
    subjects : (n,) int64
        Indices of the sequences.
    lengths : (n,) int64
        Lengths of the sequences, at least 1.
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
    """Put each sequence, in order, into the lane with the most space, until a sequence does not fit.

    Return the lane, and the first block of columns, of each sequence that was put into a lane.
    """
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
    """Write sequences to lanes, column by column: ``columns[column * n_lanes + lane]``; other elements become padding.

    Parameters
    ----------
    residues
        Residue codes of all sequences, int8.
    starts, lengths : (n,) int64
        Start and length of each sequence to write.
    lanes, first_columns : (n,) int64
        Lane and first column of each sequence.
    columns : int8
        Output, (n_columns * n_lanes,).
    """
    columns[:] = PADDING
    for k in range(len(starts)):
        start, position = starts[k], first_columns[k] * n_lanes + lanes[k]
        for i in range(lengths[k]):
            columns[position + i * n_lanes] = residues[start + i]


@njit(inline="always")
def cell(diagonal, score, e, f, best, opening, extending):
    """Compute one matrix cell; return H, E of the next column, F of the next row, and the best H so far."""
    h = maximum(maximum(add(diagonal, score), f), e)
    opened = subtract(h, opening)
    e = maximum(subtract_to_zero(e, extending), opened)
    f = maximum_by_comparison(subtract(f, extending), opened)
    return h, e, f, maximum(best, h)


@njit(inline="always")
def fill_profile(rows, table, columns, block, profile):
    """Write the scores of each distinct query residue with the residues of a block, from ``profile[(row * 4 + column) * lanes]`` on."""
    lanes = lanes_of(profile)
    column = block * BLOCK_COLUMNS * lanes
    codes_0 = load_codes(columns, column, profile)
    codes_1 = load_codes(columns, column + lanes, profile)
    codes_2 = load_codes(columns, column + 2 * lanes, profile)
    codes_3 = load_codes(columns, column + 3 * lanes, profile)
    for k in range(len(rows)):
        row, position = rows[k] * _REPEATED, k * BLOCK_COLUMNS * lanes
        store(profile, position, look_up(table, row, codes_0))
        store(profile, position + lanes, look_up(table, row, codes_1))
        store(profile, position + 2 * lanes, look_up(table, row, codes_2))
        store(profile, position + 3 * lanes, look_up(table, row, codes_3))


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

    Numbers have the dtype of `table`; this includes `h_row`, `e_row`, `profile`, `best` and `clearing`. A call continues where the previous
    call stopped: `h_row`, `e_row` and `best` contain the values passed from one block to the next.

    Parameters
    ----------
    query : (m,) int64
        Profile row of each residue.
    rows : (r,) int64
        Residue code of each row: the distinct residues of the query.
    table : (32 * 64,)
        Scores, aligned: ``table[query code * 64 + subject code]``, repeated 32 elements further; the minimum for padding.
    columns
        Residue codes from `fill_columns`, int8, four columns per block.
    end_block, end_lane, end_target, end_clears : (n,) int64
        Sequences sorted by the block in which they end: block, lane, index in `scores`, and 1 if another sequence follows in the lane.
    opening, extending
        Costs of the first residue of a gap and of each further residue.
    most
        Maximum reliable score; larger scores may be wrong. `proteoscope.kernels.cpu.substitution` states what the dtype must hold.
    h_row, e_row
        (m * lanes,).
    profile
        (r * 4 * lanes,).
    best, clearing : (lanes,)
        Aligned workspace.
    scores : int32
        Output; -1 for scores above `most`.
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
            position = query[i] * BLOCK_COLUMNS * lanes
            e = load(e_row, i * lanes)
            left = load(h_row, i * lanes)
            h_0, e, f_0, top = cell(above_0, load(profile, position), e, f_0, top, open_cost, extend_cost)
            h_1, e, f_1, top = cell(above_1, load(profile, position + lanes), e, f_1, top, open_cost, extend_cost)
            h_2, e, f_2, top = cell(above_2, load(profile, position + 2 * lanes), e, f_2, top, open_cost, extend_cost)
            h_3, e, f_3, top = cell(above_3, load(profile, position + 3 * lanes), e, f_3, top, open_cost, extend_cost)
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
