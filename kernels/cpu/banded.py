"""Alignment of reads with slightly longer references in a band around the diagonals, if no alignment outside the band can score higher.

The recurrence is that of `proteoscope.kernels.cpu.gapsmis`, mode WITHIN, with its layers and tie rule. The reference is longer by a few
bases, so that an ungapped alignment is on one of a few diagonals. If an alignment leaves these diagonals by more than the slack, more bases
of the read than the slack are unpaired. This costs a gap and the scores of the missing pairs. If the best score in the band exceeds the
maximum score of such an alignment, the best score is the optimum.

::

    column b of the band at the read's base j is the reference's base  i = j + b - slack
    a pair comes from the same column, an unpaired read base from the next one, an unpaired reference base from the one before
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.vectors import (
    REGISTER_BYTES,
    add,
    add_saturated,
    aligned,
    load,
    maximum,
    spread,
    store,
    store_anywhere,
    subtract_saturated,
    where_equal,
    where_greater,
)
from proteoscope.kernels.gapsmis_layouts import N_SYMBOLS, WITHIN, Alignments, GapRules, Sequences, score_bits

__all__ = ["align_where_near"]

_FROM_PAIR, _FROM_PATTERN, _FROM_TEXT, _SOURCE, _PATTERN_GROWS, _TEXT_GROWS = 1, 2, 3, 3, 4, 8
_NO_TEXT, _NO_PATTERN = -1, -2  # symbols that match no residue
_LANES = REGISTER_BYTES // 2


class _Side(NamedTuple):
    """References or reads of n pairs: `codes` of all sequences, int8; `begins` and `lengths` of each pair's sequence, (n,) int64."""

    codes: NDArray[np.int8]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]


class _Workspace(NamedTuple):
    """Workspace arrays, aligned except for `directions`: matrices G and F (see `gapsmis`) of all layers, scores, and bases of each lane."""

    g: NDArray[np.int16]
    f: NDArray[np.int16]
    s: NDArray[np.int16]
    text_lanes: NDArray[np.int16]
    pattern_lanes: NDArray[np.int16]
    directions: NDArray[np.uint8]


@njit(nogil=True, cache=True, error_model="numpy")
def _align_near_diagonals(text_side, pattern_side, order, costs, maximum_gaps, slack, workspace, score, ends, runs):
    """Align pairs in batches of one pair per vector lane.

    Parameters
    ----------
    text_side, pattern_side
        References and reads.
    order : (k,) int64
        Indices of the pairs to align; pairs of similar lengths are adjacent.
    costs : (4,) int64
        Match score, mismatch score, cost of a gap's first base, cost of each further base.
    workspace
        `_Workspace`.
    score : (n,) int32
        Output; best score of each pair.
    ends : (5, n) int32
        Output: start and end in the reference, start and end in the read, number of gaps.
    runs : (n, 2 * most gaps + 1) int32
        Output; lengths of pairs and gaps, see `Alignments`.
    """
    texts, text_begins, text_lengths = text_side
    patterns, pattern_begins, pattern_lengths = pattern_side
    g, f, s, text_lanes, pattern_lanes, directions = workspace
    lanes = _LANES
    least, zero = spread(g, np.iinfo(np.int16).min), spread(g, 0)
    same, other, opening, extending = spread(g, costs[0]), spread(g, costs[1]), spread(g, costs[2]), spread(g, costs[3])
    from_pair, from_pattern, from_text = spread(g, _FROM_PAIR), spread(g, _FROM_PATTERN), spread(g, _FROM_TEXT)
    pattern_grows, text_grows = spread(g, _PATTERN_GROWS), spread(g, _TEXT_GROWS)
    for first in range(0, len(order), lanes):
        pairs = order[first : first + lanes]
        longest, excess = np.int64(0), np.int64(0)
        for pair in pairs:
            longest = max(longest, pattern_lengths[pair])
            excess = max(excess, text_lengths[pair] - pattern_lengths[pair])
        width = excess + 2 * slack + 1
        for position in range(0, (longest + width) * lanes, lanes):
            store(text_lanes, position, spread(g, _NO_TEXT))
        for position in range(0, longest * lanes, lanes):
            store(pattern_lanes, position, spread(g, _NO_PATTERN))
        for lane in range(len(pairs)):
            pair = pairs[lane]
            for k in range(min(text_lengths[pair], longest + width - slack - 1)):
                text_lanes[(k + slack + 1) * lanes + lane] = texts[text_begins[pair] + k]
            for k in range(pattern_lengths[pair]):
                pattern_lanes[k * lanes + lane] = patterns[pattern_begins[pair] + k]
        for q in range(maximum_gaps + 1):
            for b in range(width):
                store(g, (q * width + b) * lanes, zero if b >= slack else least)
                store(f, (q * (width + 1) + b) * lanes, subtract_saturated(zero, opening) if b >= slack else least)
            store(f, (q * (width + 1) + width) * lanes, least)
        for j in range(1, longest + 1):
            pattern_codes = load(pattern_lanes, (j - 1) * lanes)
            for b in range(width):
                result = where_equal(load(text_lanes, (j + b) * lanes), pattern_codes, same, other)
                store(s, b * lanes, result)
                store(g, b * lanes, add_saturated(load(g, b * lanes), result))
            for q in range(1, maximum_gaps + 1):
                e = least
                row, below = q * width * lanes, (q - 1) * width * lanes
                f_row, traced = q * (width + 1) * lanes, ((j - 1) * maximum_gaps + q - 1) * width * lanes
                for b in range(0, width * lanes, lanes):
                    paired = add_saturated(load(g, row + b), load(s, b))
                    alone = load(f, f_row + b + lanes)
                    value = maximum(paired, maximum(e, alone))
                    store(g, row + b, value)
                    opened = subtract_saturated(load(g, below + b), opening)
                    text_grown, pattern_grown = subtract_saturated(e, extending), subtract_saturated(alone, extending)
                    source = where_equal(value, paired, from_pair, where_equal(value, alone, from_pattern, from_text))
                    source = add(source, where_greater(text_grown, opened, text_grows, zero))
                    source = add(source, where_greater(pattern_grown, opened, pattern_grows, zero))
                    store_anywhere(directions, traced + b, source)
                    e = maximum(text_grown, opened)
                    store(f, f_row + b, maximum(pattern_grown, opened))
            for lane in range(len(pairs)):
                pair = pairs[lane]
                if pattern_lengths[pair] == j:
                    _note_end(g, lanes, lane, width, maximum_gaps, slack, j, text_lengths[pair], pair, score, ends)
        for lane in range(len(pairs)):
            _walk(lanes, lane, width, maximum_gaps, slack, pairs[lane], directions, ends, runs)


@njit(nogil=True, cache=True, error_model="numpy")
def _note_end(g, lanes, lane, width, maximum_gaps, slack, j, text_length, pair, score, ends):
    """Write the best score at the last base of a read, the first reference position that has it, and its minimum number of gaps."""
    best, column = np.int64(np.iinfo(np.int32).min), np.int64(-1)
    for b in range(max(0, slack - j), min(width, text_length - j + slack + 1)):
        result = np.int64(g[(maximum_gaps * width + b) * lanes + lane])
        if result > best:
            best, column = result, b
    q = 0
    while g[(q * width + column) * lanes + lane] != best:
        q += 1
    score[pair], ends[1, pair], ends[2, pair], ends[3, pair], ends[4, pair] = best, j + column - slack, 0, j, q


@njit(nogil=True, cache=True, error_model="numpy")
def _walk(lanes, lane, width, maximum_gaps, slack, pair, directions, ends, runs):
    """Follow the directions of a pair from its end to the start of the read; write the lengths of pairs and gaps to `runs`."""
    i, j, q = np.int64(ends[1, pair]), np.int64(ends[3, pair]), np.int64(ends[4, pair])
    runs[pair, :] = 0
    while j > 0:
        if q == 0:
            runs[pair, 0], i, j = j, i - j, 0
            break
        source = directions[_place(i, j, q, lanes, lane, width, maximum_gaps, slack)] & _SOURCE
        if source == _FROM_PAIR:
            runs[pair, 2 * q] += 1
            i, j = i - 1, j - 1
            continue
        length, grows = 0, True
        while grows and source == _FROM_PATTERN:
            j, length = j - 1, length + 1
            grows = j > 0 and directions[_place(i, j, q, lanes, lane, width, maximum_gaps, slack)] & _PATTERN_GROWS != 0
        while grows and source == _FROM_TEXT:
            i, length = i - 1, length - 1
            grows = directions[_place(i, j, q, lanes, lane, width, maximum_gaps, slack)] & _TEXT_GROWS != 0
        runs[pair, 2 * q - 1] = length
        q -= 1
    ends[0, pair] = i


@njit(nogil=True, cache=True, error_model="numpy")
def _place(i, j, q, lanes, lane, width, maximum_gaps, slack):
    return (((j - 1) * maximum_gaps + q - 1) * width + i - j + slack) * lanes + lane


@njit(nogil=True, cache=True, error_model="numpy")
def _are_plain(codes, offsets, chosen, is_plain, are_plain):
    """For each chosen sequence, set `are_plain` to False if one of its bases has a code that is not in `is_plain`."""
    for k in range(len(chosen)):
        for j in range(offsets[chosen[k]], offsets[chosen[k] + 1]):
            if not is_plain[codes[j]]:
                are_plain[k] = False
                break


def align_where_near(
    texts: Sequences,
    patterns: Sequences,
    rules: GapRules,
    text_of: NDArray[np.int64],
    pattern_of: NDArray[np.int64],
    symbols: NDArray[np.integer],
    slack: int,
) -> tuple[Alignments, NDArray[np.bool_]]:
    """Align pairs in mode WITHIN; return the alignments, and a mask of the alignments proven to be optimal. All others are invalid.

    Parameters
    ----------
    symbols
        Codes of plain bases, such as A, C, G and T; pairs with other bases are skipped.
    slack
        Number of diagonals on each side of the band.
    """
    n = len(text_of)
    result, is_sure = Alignments.none(n, rules.maximum_gaps), np.ones(n, np.bool_)
    text_begins, pattern_begins = texts.offsets[text_of], patterns.offsets[pattern_of]
    text_lengths, pattern_lengths = texts.offsets[text_of + 1] - text_begins, patterns.offsets[pattern_of + 1] - pattern_begins
    costs = _plain_costs(rules, symbols)
    if costs is None or not n or score_bits(rules, int(pattern_lengths.max())) != 16:
        return result, np.zeros(n, np.bool_)
    is_plain = np.zeros(N_SYMBOLS + 1, np.bool_)
    is_plain[symbols] = True
    _are_plain(texts.codes, texts.offsets, text_of, is_plain, is_sure)
    _are_plain(patterns.codes, patterns.offsets, pattern_of, is_plain, is_sure)
    excess = text_lengths - pattern_lengths
    # Otherwise the band is as wide as the matrix, and the full alignment is as fast.
    is_sure &= (excess >= 0) & (excess + 2 * slack + 1 < pattern_lengths)
    chosen = np.flatnonzero(is_sure)
    if not len(chosen):
        return result, is_sure
    order = chosen[np.lexsort((excess[chosen], pattern_lengths[chosen]))]
    longest, width = int(pattern_lengths[chosen].max()), int(excess[chosen].max()) + 2 * slack + 1
    layers, lanes = rules.maximum_gaps + 1, _LANES
    sizes = (layers * width, layers * (width + 1), width, longest + width, longest)
    g, f, s, text_lanes, pattern_lanes = (aligned(size * lanes, np.int16) for size in sizes)
    workspace = _Workspace(g, f, s, text_lanes, pattern_lanes, np.empty(longest * rules.maximum_gaps * width * lanes, np.uint8))
    ends = np.full((5, n), -1, np.int32)
    _align_near_diagonals(
        _Side(texts.codes, text_begins, text_lengths),
        _Side(patterns.codes, pattern_begins, pattern_lengths),
        order,
        costs,
        rules.maximum_gaps,
        slack,
        workspace,
        result.score,
        ends,
        result.runs,
    )
    for column, values in zip(result[1:6], ends, strict=True):
        column[:] = values
    # Paths outside the band have this number of unmatched symbols of the pattern, which score nothing.
    beyond = pattern_lengths * costs[0] - rules.gap_open - (slack + 1) * (rules.gap_extend + costs[0])
    return result, is_sure & (result.score > beyond)


def _plain_costs(rules: GapRules, symbols: NDArray[np.integer]) -> NDArray[np.int64] | None:
    """Return match score, mismatch score, and costs of the first and of each further base of a gap.

    Return None if `align_where_near` cannot be used: for other scores of `symbols`, other modes, seeds, or gaps without cost.
    """
    matrix = rules.matrix[np.ix_(symbols, symbols)]
    same, other = int(matrix[0, 0]), int(matrix[0, 1])
    is_plain = np.array_equal(matrix, np.where(np.eye(len(symbols), dtype=bool), same, other)) and same > max(0, other)
    # A free gap may precede the alignment.
    if not is_plain or rules.mode != WITHIN or rules.seed_length or rules.is_published or rules.gap_open + rules.gap_extend == 0:
        return None
    return np.array([same, other, rules.gap_open + rules.gap_extend, rules.gap_extend], np.int64)
