"""Smith-Waterman by matrix rows for one pair of sequences: scores, and directions for the trace-back.

The recurrence is that of `proteoscope.kernels.cpu.lanes`. A row is computed in vectors of columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.substitution import Substitution
from proteoscope.kernels.cpu.vectors import (
    REGISTER_BYTES,
    add_saturated,
    aligned,
    largest,
    last_lane,
    load,
    load_anywhere,
    maximum,
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

__all__ = ["RowArrays", "row_arrays", "score_rows", "trace_back"]

_END, _DIAGONAL, _SUBJECT_ALONE, _QUERY_ALONE = 0, 1, 2, 3
_SUBJECT_GOES_ON, _QUERY_GOES_ON = 4, 8


class RowArrays(NamedTuple):
    """Subject, and state between two matrix rows; w is the length of the subject rounded up to whole vectors.

    Attributes
    ----------
    profile
        (codes * w,), aligned; score of each code with each residue of the subject, followed by negative padding.
    decay
        (lanes,), aligned; ``(lane + 1) * extending``, at most the maximum of the dtype.
    h_rows
        (2, 1 + w); row `i % 2` contains a zero and then H of row i - 1.
    f_row
        (w,), aligned; F of the next row.
    """

    profile: NDArray
    decay: NDArray
    h_rows: NDArray
    f_row: NDArray


def row_arrays(costs: Substitution, subject: NDArray[np.int8], bits: int) -> RowArrays:
    """Return the state before the first row of `score_rows` for a subject, in numbers of the given bit width."""
    number, lanes, n_symbols = np.dtype(f"int{bits}"), REGISTER_BYTES * 8 // bits, len(costs.scores)
    width = -(-len(subject) // lanes) * lanes
    profile, decay, f_row = aligned(n_symbols * width, number), aligned(lanes, number), aligned(width, number)
    profile[:], f_row[:] = -1, -1
    profile.reshape(n_symbols, width)[:, : len(subject)] = costs.scores[:, subject]
    decay[:] = np.minimum(np.arange(1, lanes + 1) * costs.gap_extend, np.iinfo(number).max)
    return RowArrays(profile, decay, np.zeros((2, 1 + width), number), f_row)


@njit(nogil=True, cache=True, error_model="numpy")
def score_rows(query, rows, opening, extending, first_row, last_row, best, target, directions, keeps_directions):
    """Compute rows of the matrix of a pair: scores, the best cell, and directions.

    Rows belong to the query and columns to the subject. A call continues where the previous call stopped. Along a row, E is the cumulative
    maximum of gaps opened before, minus `extending` per cell; it is computed by a parallel prefix scan (Hillis and Steele 1986). The dtype
    of `rows` must hold the best score.

    Parameters
    ----------
    query : (m,) int64
        Residue codes.
    rows
        Subject with the state after the row before `first_row`.
    opening, extending
        Cost of the first residue of a gap, and of each further residue.
    best : (3,) int64
        Best score so far, with its row and column; of equal scores, the first cell in row order. Updated.
    target
        Best score of the pair, if known; rows after the row that reaches it are not computed.
    directions : (rows, w) uint8
        Output if `keeps_directions`; see `trace_back`.
    """
    profile, decay, h_rows, f_row = rows
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
            # H without E is sufficient: where H equals E, extending the gap costs at most as much as opening a new one.
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
def trace_back(directions, first_row, position, steps):
    """Follow an alignment backwards from its end, through the rows in `directions`.

    Parameters
    ----------
    directions : (rows, n) uint8
        Directions from `score_rows` for the rows from `first_row`.
    position : (4,) int64
        Row and column of the cell to continue from, last step (0 for none), and number of written steps; updated. The alignment starts
        before row or column 0, or where the score is zero.
    steps : uint8
        Output, from the end of the alignment: 1 for an aligned pair, 2 for a residue only in the subject, 3 for a residue only in the
        query.

    Returns
    -------
    bool
        True if the start of the alignment was reached.
    """
    i, j, followed, n_steps = position
    reached = False
    while True:
        if i < 0 or j < 0:
            reached = True
            break
        if i < first_row:
            break
        cell = directions[i - first_row, j]
        # The bit of this cell records whether the gap was opened here or extended.
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
    position[0], position[1], position[2], position[3] = i, j, followed, n_steps
    return reached
