"""Alignment of patterns with texts, with a bounded number of gaps (the problem of GapsMis: Flouri et al. 2011; Carroll 2018, chapter 5).

Layer q holds the best scores with at most q gaps. Within a layer a gap grows; it is opened from the layer below. So the maximum over all
lengths of a gap takes two sums and a comparison, as in Gotoh's recurrence, o being the cost of a gap and x of each of its letters::

    G[q, i, j] = max(G[q, i-1, j-1] + s(p_j, t_i), F[q, i, j], E[q, i, j])
    F[q, i, j] = max(F[q, i, j-1] - x, G[q-1, i, j-1] - o - x)      letters of the pattern alone
    E[q, i, j] = max(E[q, i-1, j] - x, G[q-1, i-1, j] - o - x)      letters of the text alone

Layer 0 has neither F nor E. Where an alignment may begin, G is 0, or the score of the seed. Each lane of a vector has a pair of its own;
pairs of nearly equal lengths stand side by side. A row of scores s is made from profiles of the patterns, one for each letter that occurs
in the texts, by choosing in each lane the profile of its text's letter: a row serves all layers.

The rule that chooses one of several best alignments is that of `kernels.gapsmis_layouts`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.cpu.processor import Processor
from kernels.cpu.vectors import (
    REGISTER_BYTES,
    add,
    add_saturated,
    aligned,
    load,
    load_codes,
    look_up,
    maximum,
    spread,
    store,
    store_anywhere,
    subtract_saturated,
    where_equal,
    where_greater,
)  # fmt: skip
from kernels.device import StopFlag
from kernels.gapsmis_layouts import LETTERS, LOCAL, NO_ALIGNMENT, PREFIX, Alignments, GapRules, Sequences, score_bits, windows
from kernels.partitions import equal_partitions

__all__ = ["ReadSearch", "align_groups"]

_PADDING = LETTERS
_TABLE_ROW = 64  # elements of a row of the table, which stands there twice
_FROM_START, _FROM_PAIR, _FROM_PATTERN, _FROM_TEXT = 0, 1, 2, 3
_SOURCE, _PATTERN_GROWS, _TEXT_GROWS = 3, 4, 8  # bits of a direction: whence, and whether the gap that goes on here grows
_ROWS_OF_LOOK = 64  # rows between two looks at the flag
_CELLS_OF_PIECE = 150_000_000  # a tenth of a second with AVX-512
_CELLS_OF_BLOCK = 8 * _CELLS_OF_PIECE  # of each thread, between two ends that are told
_PIECES_OF_THREAD = 4
_TRACED_BYTES = 2 << 30  # of directions at the most, of each thread
_SINGLE_PASS = 2, 64  # texts up to twice the pattern and 64 letters are traced in one pass


@njit(nogil=True, cache=True, error_model="numpy")
def align_groups(
    texts, text_places, patterns, pattern_places, order, table, costs, settings, lowest, g, e, s, profile, letters, columns, directions,
    score, ends, runs, stop,
):  # fmt: skip
    """Align pairs, as many at a time as a vector has lanes.

    The width of the numbers is that of the dtype of `table`, which `g`, `e`, `s`, `profile` and `letters` share.

    Parameters
    ----------
    texts, patterns : int8 codes. text_places, pattern_places : (n, 2) int64, where those of each pair begin and end.
    order : (k,) int64, the pairs to align, those of similar lengths beside one another.
    table : (32 * 64,) aligned; ``table[code of text * 64 + code of pattern]`` and the same 32 further on. costs : (2,) int64, of a gap's
        first letter and of each further one. settings : (4,) int64: most gaps, mode, length of the seed, whether as published.
    lowest : scores up to this are of what is not possible.
    g, e : ((layers) * (longest pattern + 1) * lanes,), s : (one layer of it,), profile : (32 of it,), letters : (lanes,), columns : int8
        as s: aligned work space. directions : uint8, (longest text + 1) times g; empty where alignments are not traced.
    score : (n,) int32, filled. ends : (5, n) int32, filled: text start, text end, pattern start, pattern end, gaps; where nothing is traced
        only the text end. runs : (n, 2 * most gaps + 1) int32, filled where alignments are traced.
    """
    lanes = len(letters)
    for first in range(0, len(order), lanes):
        if stop[0]:
            return
        _align_lanes(
            texts, text_places, patterns, pattern_places, order[first : first + lanes], table, costs, settings, lowest, g, e, s, profile,
            letters, columns, directions, score, ends, stop,
        )  # fmt: skip
        if len(directions) and not stop[0]:
            _walk(text_places, pattern_places, order[first : first + lanes], lanes, settings, directions, score, ends, runs)


@njit(nogil=True, cache=True, error_model="numpy")
def _align_lanes(
    texts, text_places, patterns, pattern_places, pairs, table, costs, settings, lowest, g, e, s, profile, letters, columns, directions,
    score, ends, stop,
):  # fmt: skip
    """Scores and ends of at most as many pairs as a vector has lanes, and the directions in which they are traced; see `align_groups`."""
    lanes = len(letters)
    most_gaps, mode, seed, is_published = settings[0], settings[1], settings[2], settings[3] != 0
    traces = len(directions) > 0
    least, zero = spread(g, np.iinfo(g.dtype).min), spread(g, 0)
    opening, extending = spread(g, costs[0]), spread(g, costs[1])
    is_floored = mode == LOCAL and seed == 0
    floor = zero if is_floored else least
    from_start, from_pair, from_pattern, from_text = spread(g, 0), spread(g, _FROM_PAIR), spread(g, _FROM_PATTERN), spread(g, _FROM_TEXT)
    pattern_grows, text_grows = spread(g, _PATTERN_GROWS), spread(g, _TEXT_GROWS)
    rows, width = 0, 0
    for pair in pairs:
        rows = max(rows, text_places[pair, 1] - text_places[pair, 0])
        width = max(width, pattern_places[pair, 1] - pattern_places[pair, 0])
    layer = (width + 1) * lanes
    profile_row = _fill_profiles(texts, text_places, patterns, pattern_places, pairs, table, width, lanes, profile, columns)
    for place in range(0, (most_gaps + 1) * layer, lanes):
        store(g, place, least)
        store(e, place, least)
    for place in range(0, layer, lanes):
        store(s, place, least)
    for pair in pairs:
        score[pair] = lowest if mode != LOCAL else 0
        ends[1, pair] = -1
        ends[4, pair] = 0
    for i in range(rows + 1):
        if i % _ROWS_OF_LOOK == 0 and stop[0]:
            return
        if i:
            _fill_scores(texts, text_places, pairs, i, width, seed, profile_row, profile, letters, s)
        if seed == 0:
            begun = zero if i == 0 or mode != PREFIX else least
        else:
            for lane in range(lanes):
                letters[lane] = np.iinfo(g.dtype).min
            if i == seed or (i > seed and mode != PREFIX):
                for lane in range(len(pairs)):
                    _seed_score(texts, text_places[pairs[lane]], patterns, pattern_places[pairs[lane]], i, seed, table, letters, lane)
            begun = load(letters, 0)
        for q in range(most_gaps + 1):
            start = q * layer
            below = start - layer
            place = start + seed * lanes
            if seed > width:
                break
            diagonal, alone = load(g, place), load(e, place)
            value = maximum(begun, alone)
            store(g, place, value)
            traced = (i * (most_gaps + 1) + q) * layer
            if q == 0:
                if traces:
                    store_anywhere(directions, traced + seed * lanes, from_start)
                for j in range(seed + 1, width + 1):
                    paired = add_saturated(diagonal, load(s, j * lanes))
                    diagonal = load(g, start + j * lanes)
                    value = maximum(paired, floor)
                    store(g, start + j * lanes, value)
                    if traces:
                        source = where_equal(value, zero, from_start, from_pair) if is_floored else from_pair
                        store_anywhere(directions, traced + j * lanes, source)
                continue
            opened = subtract_saturated(load(g, below + seed * lanes), opening)
            grown = subtract_saturated(alone, extending)
            f = opened
            if is_published and i < seed:
                store(e, place, least)
            else:
                store(e, place, maximum(grown, opened))
            if is_published and i > seed:
                f = least
            if traces:
                source = where_equal(value, begun, from_start, from_text)
                store_anywhere(directions, traced + seed * lanes, add(source, where_greater(grown, opened, text_grows, zero)))
            for j in range(seed + 1, width + 1):
                place = start + j * lanes
                paired = add_saturated(diagonal, load(s, j * lanes))
                diagonal, alone = load(g, place), load(e, place)
                value = maximum(maximum(paired, floor), maximum(alone, f))
                store(g, place, value)
                opened = subtract_saturated(load(g, below + j * lanes), opening)
                text_grown, pattern_grown = subtract_saturated(alone, extending), subtract_saturated(f, extending)
                if traces:
                    source = where_equal(value, paired, from_pair, where_equal(value, f, from_pattern, from_text))
                    if is_floored:
                        source = where_equal(value, zero, from_start, source)
                    source = add(source, where_greater(text_grown, opened, text_grows, zero))
                    source = add(source, where_greater(pattern_grown, opened, pattern_grows, zero))
                    store_anywhere(directions, traced + j * lanes, source)
                e_next, f = maximum(text_grown, opened), maximum(pattern_grown, opened)
                if is_published:
                    if j < i:
                        f = least
                    elif j > i:
                        e_next = least
                store(e, place, e_next)
        if mode == LOCAL:
            top = least
            for j in range(seed, width + 1):
                top = maximum(top, load(g, most_gaps * layer + j * lanes))
            store(letters, 0, top)
        for lane in range(len(pairs)):
            pair = pairs[lane]
            n = text_places[pair, 1] - text_places[pair, 0]
            m = pattern_places[pair, 1] - pattern_places[pair, 0]
            if i > n or m < seed:
                continue
            found = np.int64(letters[lane] if mode == LOCAL else g[most_gaps * layer + m * lanes + lane])
            if found > score[pair]:
                score[pair] = found
                ends[1, pair] = i
                # Of a local alignment the text was cut at its end: the last row tells where it ends in the pattern.
                if traces and (mode != LOCAL or i == n):
                    _note_end(g, layer, lanes, lane, most_gaps, found, seed if mode == LOCAL else m, pair, ends)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_profiles(texts, text_places, patterns, pattern_places, pairs, table, width, lanes, profile, columns):
    """Make a profile of the patterns for each letter of the texts: which one each letter has, (32,) int64, -1 for none."""
    profile_row = np.full(LETTERS + 1, -1, np.int64)
    columns[: width * lanes] = _PADDING
    for lane in range(len(pairs)):
        begin, end = pattern_places[pairs[lane], 0], pattern_places[pairs[lane], 1]
        for j in range(end - begin):
            columns[j * lanes + lane] = patterns[begin + j]
        for place in range(text_places[pairs[lane], 0], text_places[pairs[lane], 1]):
            profile_row[texts[place]] = 0
    n = 0
    for letter in range(LETTERS):
        if profile_row[letter] == 0:
            profile_row[letter] = n * width * lanes
            for j in range(width):
                found = look_up(table, letter * _TABLE_ROW, load_codes(columns, j * lanes, profile))
                store(profile, profile_row[letter] + j * lanes, found)
            n += 1
    return profile_row


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_scores(texts, text_places, pairs, i, width, seed, profile_row, profile, letters, s):
    """The scores of the texts' `i`-th letters with all letters of the patterns, behind the seed."""
    lanes = len(letters)
    longest, seen, n = 0, 0, 0
    for lane in range(len(pairs)):
        if text_places[pairs[lane], 1] - text_places[pairs[lane], 0] >= i:
            longest = texts[text_places[pairs[lane], 0] + i - 1]
    four = np.zeros(LETTERS + 3, np.int64)
    for lane in range(lanes):
        letter = longest  # a text that has ended has the letter of another, whose profile is needed anyway
        if lane < len(pairs) and text_places[pairs[lane], 1] - text_places[pairs[lane], 0] >= i:
            letter = np.int64(texts[text_places[pairs[lane], 0] + i - 1])
        letters[lane] = letter
        if not seen >> letter & 1:
            seen |= 1 << letter
            four[n] = letter
            n += 1
    for k in range(n, n + 3):
        four[k] = four[0]
    own = load(letters, 0)
    for first in range(0, n, 4):
        row_0, row_1, row_2, row_3 = (
            profile_row[four[first]], profile_row[four[first + 1]], profile_row[four[first + 2]], profile_row[four[first + 3]],
        )  # fmt: skip
        code_0, code_1, code_2, code_3 = (
            spread(s, four[first]), spread(s, four[first + 1]), spread(s, four[first + 2]), spread(s, four[first + 3]),
        )  # fmt: skip
        for j in range(seed, width):
            place = j * lanes
            found = load(profile, row_0 + place)
            if first:
                found = where_equal(own, code_0, found, load(s, place + lanes))
            found = where_equal(own, code_1, load(profile, row_1 + place), found)
            found = where_equal(own, code_2, load(profile, row_2 + place), found)
            found = where_equal(own, code_3, load(profile, row_3 + place), found)
            store(s, place + lanes, found)


@njit(nogil=True, cache=True, error_model="numpy")
def _seed_score(texts, text_place, patterns, pattern_place, i, seed, table, letters, lane):
    """The score of the seed where it ends at row `i` of a lane; nothing changes where the letters differ."""
    if i > text_place[1] - text_place[0] or seed > pattern_place[1] - pattern_place[0]:
        return
    found = 0
    for k in range(seed):
        letter = texts[text_place[0] + i - seed + k]
        if letter != patterns[pattern_place[0] + k]:
            return
        found += table[letter * _TABLE_ROW + letter]
    letters[lane] = found


@njit(nogil=True, cache=True, error_model="numpy")
def _note_end(g, layer, lanes, lane, most_gaps, found, j, pair, ends):
    """Where in the pattern, from column `j` on, and with how many gaps at the least a lane's score is reached."""
    while g[most_gaps * layer + j * lanes + lane] != found:
        j += 1
    q = 0
    while g[q * layer + j * lanes + lane] != found:
        q += 1
    ends[3, pair] = j
    ends[4, pair] = q


@njit(nogil=True, cache=True, error_model="numpy")
def _walk(text_places, pattern_places, pairs, lanes, settings, directions, score, ends, runs):
    """Follow the directions of a group from each end to the beginning."""
    most_gaps, seed = settings[0], settings[2]
    width = 0
    for pair in pairs:
        width = max(width, pattern_places[pair, 1] - pattern_places[pair, 0])
    layer = (width + 1) * lanes
    row = (most_gaps + 1) * layer
    for lane in range(len(pairs)):
        pair = pairs[lane]
        i, j, q = np.int64(ends[1, pair]), np.int64(ends[3, pair]), np.int64(ends[4, pair])
        runs[pair, :] = 0
        if i < 0:
            continue
        while True:
            source = directions[i * row + q * layer + j * lanes + lane] & _SOURCE
            if source == _FROM_START:
                break
            if source == _FROM_PAIR:
                runs[pair, 2 * q] += 1
                i, j = i - 1, j - 1
                continue
            length, grows = 0, True
            while grows and source == _FROM_PATTERN:
                j, length = j - 1, length + 1
                grows = directions[i * row + q * layer + j * lanes + lane] & _PATTERN_GROWS != 0
            while grows and source == _FROM_TEXT:
                i, length = i - 1, length - 1
                grows = directions[i * row + q * layer + j * lanes + lane] & _TEXT_GROWS != 0
            runs[pair, 2 * q - 1] = length
            q -= 1
        runs[pair, 0] += seed
        ends[0, pair], ends[2, pair] = i - seed, j - seed


class ReadSearch:
    """Texts and patterns, ready to be aligned in any pairs.

    Parameters
    ----------
    device : the processor. texts, patterns : codes below `LETTERS`. rules : what an alignment may be, and what it scores.

    Raises
    ------
    ValueError : scores of these patterns could pass 32 bits.
    """

    def __init__(self, device: Processor, texts: Sequences, patterns: Sequences, rules: GapRules) -> None:
        self._processor, self._texts, self._patterns, self._rules = device, texts, patterns, rules
        self._text_lengths, self._pattern_lengths = np.diff(texts.offsets), np.diff(patterns.offsets)
        self._bits = score_bits(rules, int(self._pattern_lengths.max(initial=0)))
        if not self._bits:
            raise ValueError("scores could pass 32 bits")
        self._table = _table(rules.matrix, self._bits)
        self._lanes = REGISTER_BYTES * 8 // self._bits

    def align(
        self,
        text_of: NDArray[np.int64],
        pattern_of: NDArray[np.int64],
        out: Alignments,
        first: int = 0,
        last: int | None = None,
        *,
        traces: bool = True,
    ) -> Generator[int, None, None]:
        """Align the pairs `first:last`.

        Yields the end of what is done, at least every tenth of a second. Closing the generator stops the work.

        Parameters
        ----------
        text_of, pattern_of : (n,) numbers of the text and of the pattern of each pair.
        out : of n pairs, whose rows `first:last` are filled. traces : whether alignments are traced back; else the score and the text's end
            are told, and the rest is -1.
        """
        last = len(text_of) if last is None else last
        cells = (self._text_lengths[text_of[first:last]] + 1.0) * (self._pattern_lengths[pattern_of[first:last]] + 1.0)
        cells *= self._rules.most_gaps + 1
        marks = np.concatenate([[0.0], np.cumsum(cells)])
        most = _CELLS_OF_BLOCK * self._processor.threads
        begin = 0
        while begin < last - first:
            end = max(begin + 1, int(np.searchsorted(marks, marks[begin] + most, side="right")) - 1)
            block = _Block(self, text_of[first + begin : first + end], pattern_of[first + begin : first + end])
            for _ in block.align(traces):
                yield first + begin
            block.write(out, first + begin)
            begin = end
            yield first + begin


class _Block:
    """Some pairs that are aligned together: sorted by their lengths, put side by side, shared out among threads."""

    def __init__(self, search: ReadSearch, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]) -> None:
        # The fields of the search are the block's own: both are one thing in two lengths of time.
        self._of, self._rules = search, search._rules
        self._text_places, self._pattern_places = _places(search._texts, text_of), _places(search._patterns, pattern_of)
        n = len(text_of)
        self._score, self._ends = np.full(n, NO_ALIGNMENT, np.int32), np.full((5, n), -1, np.int32)
        self._runs = np.zeros((n, 2 * self._rules.most_gaps + 1), np.int32)
        self._lowest = -int(self._rules.most_loss(int(_lengths(self._pattern_places).max(initial=0)))) - 1
        if self._rules.mode == PREFIX and self._rules.gap_extend:
            # So many letters of the text alone cost more than they can be worth.
            lengths = _lengths(self._pattern_places)
            reach = lengths + (lengths * self._rules.most_gain + self._rules.most_loss(lengths)) // self._rules.gap_extend
            self._text_places[:, 1] = np.minimum(self._text_places[:, 1], self._text_places[:, 0] + reach)

    def align(self, traces: bool) -> Generator[None, None, None]:
        """Fill `_score`, `_ends` and `_runs`; yields at least every tenth of a second."""
        everything = np.arange(len(self._score))
        if not traces:
            yield from self._pass(everything, traces=False)
            return
        times, more = _SINGLE_PASS
        is_short = _lengths(self._text_places) <= times * _lengths(self._pattern_places) + more
        at_once = is_short & (self._rules.mode != LOCAL)
        yield from self._pass(everything[at_once], traces=True)
        later = everything[~at_once]
        yield from self._pass(later, traces=False)
        later = later[self._ends[1, later] >= 0]
        # What is before the window does not change the alignment; the text ends where the alignment does.
        begins = windows(self._rules, self._score[later], self._ends[1, later], _lengths(self._pattern_places[later]))
        self._text_places[later, 1] = self._text_places[later, 0] + self._ends[1, later]
        self._text_places[later, 0] += begins
        yield from self._pass(later, traces=True)
        self._ends[0, later] += begins.astype(np.int32)
        self._ends[1, later] += begins.astype(np.int32)

    def _pass(self, pairs: NDArray[np.int64], *, traces: bool) -> Generator[None, None, None]:
        of, lanes = self._of, self._of._lanes
        order = pairs[np.lexsort((_lengths(self._text_places[pairs]), _lengths(self._pattern_places[pairs])))]
        text, pattern = _lengths(self._text_places[order]), _lengths(self._pattern_places[order])
        groups = np.arange(0, len(order), lanes)
        if not len(groups):
            return
        longest = np.maximum.reduceat(text, groups) + 1.0, np.maximum.reduceat(pattern, groups) + 1.0
        cells = longest[0] * longest[1] * (self._rules.most_gaps + 1) * lanes
        if traces and cells.max() > _TRACED_BYTES:
            raise ValueError(
                f"{int(longest[0].max()):,} letters of a text with {int(longest[1].max()):,} of a pattern are too many to trace"
            )

        def work(first: int, last: int, stop: StopFlag) -> None:
            width = int(longest[1][first:last].max()) * lanes
            layers = (self._rules.most_gaps + 1) * width
            directions = np.empty(int(cells[first:last].max()) if traces else 0, np.uint8)
            dtype = of._table.dtype
            align_groups(
                of._texts.codes, self._text_places, of._patterns.codes, self._pattern_places, order[first * lanes : last * lanes],
                of._table, _costs(self._rules), _settings(self._rules), self._lowest, aligned(layers, dtype), aligned(layers, dtype),
                aligned(width, dtype), aligned(LETTERS * width, dtype), aligned(lanes, dtype), aligned(width, np.int8), directions,
                self._score, self._ends, self._runs, stop,
            )  # fmt: skip

        pieces = equal_partitions(cells, of._processor.threads, most_cost=_CELLS_OF_PIECE, per_worker=_PIECES_OF_THREAD)
        for _ in of._processor.run(work, pieces, 0):
            yield

    def write(self, out: Alignments, first: int) -> None:
        """Put the rows where they belong."""
        rows, is_none = slice(first, first + len(self._score)), self._ends[1] < 0
        self._score[is_none] = NO_ALIGNMENT
        self._ends[:, is_none] = -1
        out.score[rows], out.runs[rows] = self._score, self._runs
        for column, found in zip(out[1:6], self._ends, strict=True):
            column[rows] = found


def _places(sequences: Sequences, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) where each of the chosen sequences begins and ends."""
    return np.stack([sequences.offsets[chosen], sequences.offsets[chosen + 1]], axis=1).astype(np.int64)


def _lengths(places: NDArray[np.int64]) -> NDArray[np.int64]:
    return places[:, 1] - places[:, 0]


def _costs(rules: GapRules) -> NDArray[np.int64]:
    return np.array([rules.gap_open + rules.gap_extend, rules.gap_extend], np.int64)


def _settings(rules: GapRules) -> NDArray[np.int64]:
    return np.array([rules.most_gaps, rules.mode, rules.seed_length, rules.is_published], np.int64)


def _table(matrix: NDArray[np.int32], bits: int) -> NDArray[Any]:
    """The matrix as `look_up` takes it, by the text's letter first: (32 * 64,)."""
    dtype: Any = np.int16 if bits == 16 else np.int32
    table = aligned((LETTERS + 1) * _TABLE_ROW, dtype)
    rows = table.reshape(LETTERS + 1, 2, LETTERS + 1)
    rows[...] = np.iinfo(dtype).min
    rows[: matrix.shape[1], :, : matrix.shape[0]] = matrix.T[:, None, :]
    return table
