"""Smith-Waterman with affine gaps: scores of many pairs at a time, and the alignment of one.

Scores: one query against as many subjects as a vector has lanes, a lane each (Rognes 2011, BMC Bioinformatics 12:221). Scores are kept as
signed integers whose least value stands for zero, so that saturated sums do the ``max(0, ...)`` of the recurrence for nothing and the
greatest value tells an overflow. Four columns are computed in one sweep along the query: what passes from a row to the next stays in
registers.

Recurrence (Gotoh 1982), a gap of k residues costing ``gap_open + k * gap_extend``::

    H[i, j] = max(0, H[i-1, j-1] + s(q_i, d_j), E[i, j], F[i, j])
    E[i, j+1] = max(E[i, j] - gap_extend, H[i, j] - gap_open - gap_extend)      a gap in the query
    F[i+1, j] = max(F[i, j] - gap_extend, H[i, j] - gap_open - gap_extend)      a gap in the subject
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from kernels.cpu.vectors import (
    REGISTER_BYTES,
    add_saturated,
    largest,
    last_lane,
    load,
    load_anywhere,
    load_codes,
    look_up,
    maximum,
    minimum,
    shifted_1,
    shifted_2,
    shifted_4,
    shifted_8,
    shifted_16,
    spread,
    store,
    store_anywhere,
    subtract_saturated,
    where_equal,
    where_greater,
)

__all__ = ["BLOCK_COLUMNS", "CODES", "PADDING", "fill_columns", "lane_count", "normal_tail", "score_lanes", "score_rows", "trace_back"]

BLOCK_COLUMNS = 4
"""Columns of a lane that are computed together; a sequence in a lane takes a multiple of it."""
CODES = 32
"""Letters a matrix may have: A to Z are 0 to 25, ``*`` is 26."""
PADDING = 31
"""Code of what is no residue: it scores the least value with everything."""
_REPEATED = 64
_END, _DIAGONAL, _SUBJECT_ALONE, _QUERY_ALONE = 0, 1, 2, 3
_SUBJECT_GOES_ON, _QUERY_GOES_ON = 4, 8


def lane_count(bits: int) -> int:
    """Subjects that are scored at a time with numbers of so many bits."""
    return REGISTER_BYTES * 8 // bits


@njit(nogil=True, cache=True, error_model="numpy")
def fill_columns(residues, starts, lengths, lanes, first_columns, n_lanes, columns):
    """Write sequences into lanes, column by column: ``columns[column * n_lanes + lane]``; the rest becomes padding.

    Parameters
    ----------
    residues : int8 codes of all sequences. starts, lengths : (n,) int64 of those to write.
    lanes, first_columns : (n,) int64, where each is written.
    columns : int8, to fill.
    """
    columns[:] = PADDING
    for k in range(len(starts)):
        start, place = starts[k], first_columns[k] * n_lanes + lanes[k]
        for i in range(lengths[k]):
            columns[place + i * n_lanes] = residues[start + i]


@njit(inline="always")
def _cell(diagonal, score, e, f, best, opening, extending):
    """One row of one column: H, the E of the next column, the F of the next row, and the best H so far."""
    h = maximum(maximum(add_saturated(diagonal, score), e), f)
    opened = subtract_saturated(h, opening)
    e = maximum(subtract_saturated(e, extending), opened)
    f = maximum(subtract_saturated(f, extending), opened)
    return h, e, f, maximum(best, h)


@njit(nogil=True, cache=True, error_model="numpy")
def score_lanes(
    query, rows, table, columns, first_block, last_block, end_block, end_lane, end_target, end_clears, opening, extending,
    h_row, e_row, profile, best, clearing, scores,
):  # fmt: skip
    """Score a query against the sequences in the lanes, from one block of columns up to another.

    The width of the numbers is that of the dtype of `table`, which `h_row`, `e_row`, `profile`, `best` and `clearing` share. A call goes on
    where the one before stopped: what passes from a block to the next stands in `h_row`, `e_row` and `best`.

    Parameters
    ----------
    query : (m,) int64, row of each residue. rows : (r,) int64, code of each row: the different residues of the query.
    table : (32 * 64,) aligned; ``table[code of query * 64 + code of subject]`` and the same 32 further on: scores, the least value for
        padding.
    columns : int8 from `fill_columns`, four columns to a block.
    end_block, end_lane, end_target, end_clears : (n,) int64, by block: in which block a sequence ends, its lane, where in `scores` its
        score goes, and whether another follows in the lane.
    opening, extending : cost of a gap's first residue and of each further one.
    h_row, e_row : (m * lanes,); profile : (r * 4 * lanes,); best, clearing : (lanes,): aligned work space.
    scores : int32, to fill; -1 where the score passed what the width holds.
    """
    lanes = len(best)
    m = len(query)
    least = np.iinfo(h_row.dtype).min
    greatest = np.iinfo(h_row.dtype).max
    zero = spread(h_row, least)
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
        column = block * BLOCK_COLUMNS * lanes
        codes_0 = load_codes(columns, column, h_row)
        codes_1 = load_codes(columns, column + lanes, h_row)
        codes_2 = load_codes(columns, column + 2 * lanes, h_row)
        codes_3 = load_codes(columns, column + 3 * lanes, h_row)
        for k in range(len(rows)):
            row, place = rows[k] * _REPEATED, k * BLOCK_COLUMNS * lanes
            store(profile, place, look_up(table, row, codes_0))
            store(profile, place + lanes, look_up(table, row, codes_1))
            store(profile, place + 2 * lanes, look_up(table, row, codes_2))
            store(profile, place + 3 * lanes, look_up(table, row, codes_3))
        f_0, f_1, f_2, f_3 = zero, zero, zero, zero
        above_0, above_1, above_2, above_3 = zero, zero, zero, zero
        for i in range(m):
            place = query[i] * BLOCK_COLUMNS * lanes
            e = load(e_row, i * lanes)
            left = load(h_row, i * lanes)
            h_0, e, f_0, top = _cell(above_0, load(profile, place), e, f_0, top, open_cost, extend_cost)
            h_1, e, f_1, top = _cell(above_1, load(profile, place + lanes), e, f_1, top, open_cost, extend_cost)
            h_2, e, f_2, top = _cell(above_2, load(profile, place + 2 * lanes), e, f_2, top, open_cost, extend_cost)
            h_3, e, f_3, top = _cell(above_3, load(profile, place + 3 * lanes), e, f_3, top, open_cost, extend_cost)
            above_0, above_1, above_2, above_3 = left, h_0, h_1, h_2
            store(h_row, i * lanes, h_3)
            store(e_row, i * lanes, e)
        if end < len(end_block) and end_block[end] == block:
            store(best, 0, top)
            store(clearing, 0, spread(h_row, greatest))
            clears = False
            while end < len(end_block) and end_block[end] == block:
                lane = end_lane[end]
                scores[end_target[end]] = -1 if best[lane] == greatest else np.int64(best[lane]) - least
                if end_clears[end]:
                    clears = True
                    best[lane] = least
                    clearing[lane] = least
                end += 1
            if clears:
                keep = load(clearing, 0)
                for i in range(m):
                    store(h_row, i * lanes, minimum(load(h_row, i * lanes), keep))
                    store(e_row, i * lanes, minimum(load(e_row, i * lanes), keep))
            top = load(best, 0)
    store(best, 0, top)


@njit(nogil=True, cache=True, error_model="numpy")
def score_rows(query, profile, opening, extending, decay, first_row, last_row, h_rows, f_row, best, target, directions, keeps_directions):
    """Rows of one pair's matrix: the scores, the best cell, and where each cell came from.

    Rows belong to the query and columns to the subject. A call goes on where the one before stopped. Along a row, E is the running maximum
    of gaps opened before, each worth less by `extending` a cell: found for a vector's cells in steps that double (Hillis and Steele 1986).
    The width of the numbers is that of the dtype of `profile`, which `h_rows`, `f_row` and `decay` share; it must hold the best score.

    Parameters
    ----------
    query : (m,) int64 codes. profile : (codes * w,) aligned, score of each code with each residue of the subject, its length w being n
        filled up to whole vectors with something below zero.
    opening, extending : cost of a gap's first residue, and of each further one.
    decay : (lanes,) aligned: ``(lane + 1) * extending``, or the greatest value.
    h_rows : (2, 1 + w): in row `i % 2` the H of row i - 1, behind a zero. f_row : (w,) aligned, the F of `first_row`.
    best : (3,) int64: the best score so far, its row and its column; the first such cell by rows stays.
    target : the best score of the pair: nothing is computed below the row that reaches it.
    directions : (rows, w) uint8, to fill where `keeps_directions`; see `trace_back`.
    """
    lanes, width = len(decay), len(f_row)
    greatest = np.iinfo(decay.dtype).max
    zero = spread(f_row, 0)
    least = spread(f_row, np.iinfo(decay.dtype).min)
    open_cost = spread(f_row, opening)
    extend_cost = spread(f_row, extending)
    extend_2 = spread(f_row, min(2 * extending, greatest))
    extend_4 = spread(f_row, min(4 * extending, greatest))
    extend_8 = spread(f_row, min(8 * extending, greatest))
    extend_16 = spread(f_row, min(16 * extending, greatest))
    by_lane = load(decay, 0)
    end, diagonal = spread(f_row, _END), spread(f_row, _DIAGONAL)
    subject_alone, query_alone = spread(f_row, _SUBJECT_ALONE), spread(f_row, _QUERY_ALONE)
    subject_goes_on, query_goes_on = spread(f_row, _SUBJECT_GOES_ON), spread(f_row, _QUERY_GOES_ON)
    for i in range(first_row, last_row):
        if best[0] == target and i > best[1]:
            break
        above, here = h_rows[i % 2], h_rows[(i + 1) % 2]
        scores = query[i] * width
        carried = spread(f_row, -1)
        top = zero
        for j in range(0, width, lanes):
            f = load(f_row, j)
            paired = add_saturated(load_anywhere(above, j), load(profile, scores + j))
            without_e = maximum(maximum(paired, f), zero)
            # H need not be known for E: where H is E, the gap that goes on is no dearer than one that is opened.
            gap = subtract_saturated(without_e, open_cost)
            gap = maximum(gap, subtract_saturated(shifted_1(least, gap), extend_cost))
            gap = maximum(gap, subtract_saturated(shifted_2(least, gap), extend_2))
            gap = maximum(gap, subtract_saturated(shifted_4(least, gap), extend_4))
            if lanes > 8:
                gap = maximum(gap, subtract_saturated(shifted_8(least, gap), extend_8))
            if lanes > 16:
                gap = maximum(gap, subtract_saturated(shifted_16(least, gap), extend_16))
            gap = maximum(gap, subtract_saturated(carried, by_lane))
            e = shifted_1(carried, gap)
            carried = last_lane(gap, gap)
            h = maximum(without_e, e)
            store_anywhere(here, j + 1, h)
            top = maximum(top, h)
            opened = subtract_saturated(h, open_cost)
            e_on, f_on = subtract_saturated(e, extend_cost), subtract_saturated(f, extend_cost)
            store(f_row, j, maximum(f_on, opened))
            if keeps_directions:
                origin = where_equal(h, paired, diagonal, where_equal(h, e, subject_alone, query_alone))
                origin = where_greater(h, zero, origin, end)
                origin = add_saturated(origin, where_greater(e_on, opened, subject_goes_on, end))
                origin = add_saturated(origin, where_greater(f_on, opened, query_goes_on, end))
                store_anywhere(directions[i - first_row], j, origin)
        highest = largest(top)
        if highest > best[0]:
            j = 0
            while here[j + 1] != highest:
                j += 1
            best[0], best[1], best[2] = highest, i, j


@njit(nogil=True, cache=True, error_model="numpy")
def trace_back(directions, first_row, place, steps):
    """Follow an alignment from its end towards its beginning, as far as the rows in `directions` lead.

    Parameters
    ----------
    directions : (rows, n) uint8 from `score_rows`, of the rows from `first_row` on.
    place : (4,) int64: row and column of the cell to go on from, the step taken last (0: none), and how many steps are
        written; changed. The alignment begins before row or column 0, or where the score is zero.
    steps : uint8, to fill from the end of the alignment: 1 two residues, 2 a residue of the subject alone, 3 one of the query alone.

    Returns
    -------
    Whether the beginning was reached.
    """
    i, j, followed, n_steps = place
    reached = False
    while True:
        if i < 0 or j < 0:
            reached = True
            break
        if i < first_row:
            break
        cell = directions[i - first_row, j]
        # A gap that came from here says here whether it was opened in this cell or had come further.
        if followed == _SUBJECT_ALONE and cell & _SUBJECT_GOES_ON:
            step = _SUBJECT_ALONE
        elif followed == _QUERY_ALONE and cell & _QUERY_GOES_ON:
            step = _QUERY_ALONE
        else:
            step = cell & 3
        if step == _END:
            reached = True
            break
        steps[n_steps] = step
        n_steps += 1
        followed = step
        if step != _SUBJECT_ALONE:
            i -= 1
        if step != _QUERY_ALONE:
            j -= 1
    place[0], place[1], place[2], place[3] = i, j, followed, n_steps
    return reached


@njit(nogil=True, cache=True, error_model="numpy")
def normal_tail(z):
    """Chance that a standard normal variable is greater than each of `z`: (n,) float64."""
    chance = np.empty(len(z))
    for i in range(len(z)):
        chance[i] = 0.5 * math.erfc(z[i] / math.sqrt(2.0))
    return chance
