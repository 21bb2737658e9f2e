"""Smith-Waterman for single pairs in striped vectors (Farrar 2007, Bioinformatics 23:156): scores, and the range of the alignment.

Rows belong to the query. The columns of a row are distributed to v vectors: column j is in lane ``j // v`` of vector ``j % v``, so that
neighbouring columns are in different vectors and are computed without shifts between lanes. Gaps along the row that reach the next lane are
added afterwards, which is rarely necessary. The recurrence is that of `proteoscope.kernels.cpu.lanes`. A call needs no further pairs to
fill the lanes, so that a few long pairs can be divided among threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.lanes import PADDING, cell, lane_count
from proteoscope.kernels.cpu.substitution import Substitution
from proteoscope.kernels.cpu.traceback import PairedSequences
from proteoscope.kernels.cpu.vectors import (
    aligned,
    bits_of_greater,
    lanes_of,
    largest,
    load,
    load_codes,
    look_up,
    maximum,
    shifted_1,
    spread,
    store,
    subtract,
    subtract_to_zero,
    where_greater,
)
from proteoscope.kernels.device import StopFlag

__all__ = ["StripedWorkspace", "find_ranges", "limited_scores", "score_pairs", "striped_workspace"]

_REPEATED = 64


class StripedWorkspace(NamedTuple):
    """Aligned workspace for subjects of up to v vectors.

    Attributes
    ----------
    codes : int8
        Residue codes of the columns, (v * lanes,).
    profile
        Score of each code with each column, (codes * v * lanes,).
    h_rows, f_row
        H of two rows, (2 * v * lanes,), and F of the next row, (v * lanes,).
    """

    codes: NDArray[np.int8]
    profile: NDArray
    h_rows: NDArray
    f_row: NDArray


def striped_workspace(n_codes: int, longest: int, bits: int) -> StripedWorkspace:
    """Return a workspace for `n_codes` residue codes, subjects of up to `longest` residues, and scores of `bits` bits."""
    lanes, number = lane_count(bits), np.dtype(f"int{bits}")
    size = -(-longest // lanes) * lanes
    return StripedWorkspace(aligned(size, np.int8), aligned(n_codes * size, number), aligned(2 * size, number), aligned(size, number))


def limited_scores(
    costs: Substitution, pairs: PairedSequences, limits: NDArray[np.int64], stop: StopFlag, least_bits: int = 8
) -> NDArray[np.int64]:
    """Return the best score of each pair, but at most its limit, (n,).

    Parameters
    ----------
    costs
        Substitution scores and gap costs.
    pairs
        Read-only sequences of n pairs; no sequence of a pair with a positive limit is empty.
    limits : (n,) int64
        Maximum of each score; 0 for pairs that are not computed.
    stop
        Stop flag; if it is set, the call ends early, and the scores are meaningless.
    least_bits
        Number of bits of the first computation; pairs that overflow are computed again with more bits.
    """
    scores, rest = np.zeros(len(limits), np.int64), np.flatnonzero(limits > 0)
    for bits in (bits for bits in costs.widths() if bits >= least_bits):
        if len(rest):
            longest, most = int(np.diff(pairs.subject_places[rest]).max()), costs.most(bits)
            workspace = striped_workspace(len(costs.scores), longest, bits)
            gaps = costs.first_residue_cost, costs.next_residue_cost
            score_pairs(rest, pairs, np.minimum(limits, most + 1), costs.table(bits), *gaps, workspace, stop, scores)
            rest = rest[scores[rest] > most]
    return scores


@njit(nogil=True, cache=True, error_model="numpy")
def score_pairs(chosen, pairs, limits, table, opening, extending, workspace, stop, scores):
    """Write the best score of pairs, but at most its limit.

    Parameters
    ----------
    chosen : (k,) int64
        Indices of the pairs to score.
    pairs
        `PairedSequences` of n pairs.
    limits : (n,) int64
        Maximum of each score; rows after the one that reaches it are not computed.
    table, opening, extending
        See `proteoscope.kernels.cpu.lanes.score_lanes`.
    workspace
        `StripedWorkspace` for the longest subject, in the dtype of `table`, which must hold the limits.
    stop : (1,) uint8
        Stop flag; if it is set, the call ends early.
    scores : (n,) int64
        Output.
    """
    queries, query_places, subjects, subject_places = pairs
    end = np.empty(2, np.int64)
    for p in chosen:
        q, s = query_places[p, 0], subject_places[p, 0]
        m, n = query_places[p, 1] - q, subject_places[p, 1] - s
        v = _fill(subjects, s, 1, n, table, workspace)
        scores[p] = min(limits[p], _scan(queries, q, 1, m, n, v, False, limits[p], opening, extending, workspace, stop, end))


@njit(nogil=True, cache=True, error_model="numpy")
def find_ranges(chosen, pairs, targets, table, opening, extending, workspace, stop, query_ranges, subject_ranges):
    """Find the ranges of the sequences that contain all alignments with the best score and the first end in row order.

    The reversed sequences are aligned from this end to find the starts.

    Parameters
    ----------
    chosen, pairs, table, opening, extending, workspace, stop
        See `score_pairs`.
    targets : (n,) int64
        Best score of each pair; the dtype of `table` must hold one more.
    query_ranges, subject_ranges : (n, 2) int64
        Output; start and end. Not changed if no alignment has the score.
    """
    queries, query_places, subjects, subject_places = pairs
    end = np.empty(2, np.int64)
    for p in chosen:
        q, s = query_places[p, 0], subject_places[p, 0]
        m, n = query_places[p, 1] - q, subject_places[p, 1] - s
        v = _fill(subjects, s, 1, n, table, workspace)
        _scan(queries, q, 1, m, n, v, False, targets[p], opening, extending, workspace, stop, end)
        row, column = end
        if row < 0:
            continue
        v = _fill(subjects, s + column, -1, column + 1, table, workspace)
        _scan(queries, q + row, -1, row + 1, column + 1, v, True, targets[p] + 1, opening, extending, workspace, stop, end)
        if end[0] >= 0:
            query_ranges[p, 0], query_ranges[p, 1] = q + row - end[0], q + row + 1
            subject_ranges[p, 0], subject_ranges[p, 1] = s + column - end[1], s + column + 1


@njit(nogil=True, cache=True, error_model="numpy")
def _fill(subjects, first, step, n, table, workspace):
    """Fill the profile with `n` residues of a subject, from index `first` in steps of 1 or -1; return the number of vectors."""
    codes, profile, _, f_row = workspace
    lanes = lanes_of(f_row)
    v = (n + lanes - 1) // lanes
    codes[: v * lanes] = PADDING
    j = 0
    for lane in range(lanes):
        for k in range(min(v, n - j)):
            codes[k * lanes + lane] = subjects[first + step * j]
            j += 1
    for code in range(len(profile) // len(codes)):
        for k in range(v):
            store(profile, (code * v + k) * lanes, look_up(table, code * _REPEATED, load_codes(codes, k * lanes, f_row)))
    return v


@njit(nogil=True, cache=True, error_model="numpy")
def _scan(queries, first, step, m, n, v, is_anchored, target, opening, extending, workspace, stop, end):
    """Compute the matrix of `m` rows of a query, from index `first` in steps of 1 or -1, and a profile of `n` columns in `v` vectors.

    If alignments are anchored, they begin with the first residue of both sequences; H, E and F are then zero where no such alignment has a
    score of at least 0, elsewhere the score plus 1. The computation ends when no score can follow. Otherwise, it ends with the row that
    reaches `target`.

    Returns
    -------
    int
        Best score. `end` (2,) int64 contains the first cell in row order with the score `target`, if alignments are anchored the last row
        and the last column with it, or -1.
    """
    _, profile, h_rows, f_row = workspace
    lanes = lanes_of(f_row)
    zero, open_cost, extend_cost = spread(f_row, 0), spread(f_row, opening), spread(f_row, extending)
    corner, least = (spread(f_row, 1), zero) if is_anchored else (zero, spread(f_row, -1))
    goal, best = spread(f_row, target - 1), zero
    for k in range(v):
        store(h_rows, k * lanes, zero)
        store(f_row, k * lanes, zero)
    end[0], end[1] = -1, -1
    for i in range(m):
        if stop[0]:
            break
        scores, above, here = queries[first + step * i] * v * lanes, (i % 2) * v * lanes, ((i + 1) % 2) * v * lanes
        diagonal = shifted_1(corner, load(h_rows, above + (v - 1) * lanes))
        corner, e, top = zero, zero, zero
        for k in range(v):
            score = where_greater(diagonal, least, load(profile, scores + k * lanes), zero)
            f = load(f_row, k * lanes)
            h, e, f, top = cell(diagonal, score, e, f, top, open_cost, extend_cost)
            diagonal = load(h_rows, above + k * lanes)
            store(h_rows, here + k * lanes, h)
            store(f_row, k * lanes, f)
        changes = True
        while changes:
            e = shifted_1(zero, e)
            for k in range(v):
                h = load(h_rows, here + k * lanes)
                # A gap that costs at least as much as one that is opened here changes no score.
                changes = bits_of_greater(e, subtract_to_zero(h, open_cost)) != 0
                if not changes:
                    break
                h = maximum(h, e)
                top = maximum(top, h)
                store(h_rows, here + k * lanes, h)
                store(f_row, k * lanes, maximum(load(f_row, k * lanes), subtract(h, open_cost)))
                e = subtract_to_zero(e, extend_cost)
        best = maximum(best, top)
        if is_anchored:
            if bits_of_greater(top, zero) == 0:
                break
            if bits_of_greater(top, goal) != 0:
                for j in range(n - 1, end[1], -1):
                    if h_rows[here + (j % v) * lanes + j // v] == target:
                        end[1] = j
                        break
                end[0] = i
        elif bits_of_greater(top, goal) != 0:
            for j in range(n):
                if h_rows[here + (j % v) * lanes + j // v] == target:
                    end[0], end[1] = i, j
                    break
            break
    return largest(best)
