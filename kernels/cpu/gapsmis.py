"""Alignment of reads with references with a bounded number of gaps (the problem of GapsMis: Flouri et al. 2011; Carroll 2018, chapter 5).

Layer q contains the best scores with at most q gaps. Within a layer a gap is extended; it is opened from the layer below. The maximum over
all gap lengths thus needs only two sums and a comparison, as in Gotoh's recurrence. With the cost o of a gap and the cost x of each of its
bases::

    G[q, i, j] = max(G[q, i-1, j-1] + s(p_j, t_i), F[q, i, j], E[q, i, j])
    F[q, i, j] = max(F[q, i, j-1] - x, G[q-1, i, j-1] - o - x)      unpaired bases of the read
    E[q, i, j] = max(E[q, i-1, j] - x, G[q-1, i-1, j] - o - x)      unpaired bases of the reference

Layer 0 has neither F nor E. G is 0, or the score of the seed, at the start of an alignment. Each lane of a vector register computes one
pair; pairs of similar lengths are adjacent. A row of scores s is composed from profiles of the reads, one per base of the references, by
selecting in each lane the profile of the base in its reference: a row is used for all layers.

Ties are resolved by the rule of `proteoscope.kernels.gapsmis_layouts`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.long_traces import trace_long_pair
from proteoscope.kernels.cpu.processor import Processor
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
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions
from proteoscope.kernels.gapsmis_layouts import (
    LOCAL,
    N_SYMBOLS,
    NO_ALIGNMENT,
    PREFIX,
    SINGLE_PASS,
    Alignments,
    GapRules,
    Sequences,
    score_bits,
    windows,
)

__all__ = ["ReadSearch"]

_PADDING = N_SYMBOLS
_TABLE_ROW = N_SYMBOLS + 1  # elements of a row of the table
_FROM_START, _FROM_PAIR, _FROM_PATTERN, _FROM_TEXT = 0, 1, 2, 3
_SOURCE, _PATTERN_GROWS, _TEXT_GROWS = 3, 4, 8  # bits of a direction: mask of the source, and flags for a gap that is extended in this cell
_BAND_ROWS, _TILE_COLUMNS = 16, 64  # rows between two checks of the stop flag; columns that are computed together
_CELLS_OF_PARTITION = 150_000_000  # about 0.1 s with AVX-512
_CELLS_OF_BLOCK = 8 * _CELLS_OF_PARTITION  # cells per thread between two reports of progress
_PARTITIONS_OF_THREAD = 4
_TRACED_BYTES = 1 << 30  # maximum size of the directions per thread


class _Side(NamedTuple):
    """References or reads of n pairs: `codes` of all sequences, int8, and `places` (n, 2) int64, start and end of each in `codes`."""

    codes: NDArray[np.int8]
    places: NDArray[np.int64]


class _Scoring(NamedTuple):
    """Settings of `GapRules` in the form of the kernel.

    Attributes
    ----------
    table : (32 * 32,)
        Scores: ``table[code of reference * 32 + code of read]``.
    opening, extending
        Costs of a gap's first base and of each further base.
    lowest
        Scores up to this value mean impossible alignments.
    maximum_gaps, mode, seed_length, is_published
        See `GapRules`.
    """

    table: NDArray
    opening: int
    extending: int
    maximum_gaps: int
    mode: int
    seed_length: int
    is_published: bool
    lowest: int


class _Workspace(NamedTuple):
    """Workspace arrays, aligned and of the table's dtype except `directions`; m is one more than the length of the longest read.

    Attributes
    ----------
    g, e
        (layers * m * lanes,), a row of G and of E.
    s, columns
        (m * lanes,), scores of a row, and bases of the reads.
    profile
        (`N_SYMBOLS` * m * lanes,), scores of each base with the reads.
    symbols
        (lanes,), one number per lane.
    bands
        ((4 + 2 * most gaps) * _BAND_ROWS * lanes,), for each row of a band: score of a start,
        bases of the references, and values to the left of the current columns.
    directions : uint8
        (longest text + 1) times g; empty where alignments are not traced.
    """

    g: NDArray
    e: NDArray
    s: NDArray
    profile: NDArray
    symbols: NDArray
    bands: NDArray
    columns: NDArray
    directions: NDArray[np.uint8]


@njit(nogil=True, cache=True, error_model="numpy")
def align_groups(texts, patterns, order, scoring, workspace, score, ends, runs, stop):
    """Align pairs in batches of one pair per vector lane.

    Parameters
    ----------
    texts, patterns
        References and reads.
    order : (k,) int64
        Indices of the pairs to align; pairs of similar lengths are adjacent.
    scoring
        `_Scoring`.
    workspace
        `_Workspace`.
    score : (n,) int32
        Output; best score of each pair.
    ends : (5, n) int32
        Output: start and end in the reference, start and end in the read, number of gaps; without tracing only the end in the reference.
    runs : (n, 2 * most gaps + 1) int32
        Output if alignments are traced.
    """
    lanes = len(workspace.symbols)
    for first in range(0, len(order), lanes):
        if stop[0]:
            return
        pairs = order[first : first + lanes]
        _align_lanes(texts, patterns, pairs, scoring, workspace, score, ends, stop)
        if len(workspace.directions) and not stop[0]:
            _walk(patterns.places, pairs, lanes, scoring.maximum_gaps, scoring.seed_length, workspace.directions, ends, runs)


@njit(nogil=True, cache=True, error_model="numpy")
def _align_lanes(text_side, pattern_side, pairs, scoring, workspace, score, ends, stop):
    """Compute scores, ends and trace directions of up to one pair per vector lane (see `align_groups`)."""
    (texts, text_places), (patterns, pattern_places) = text_side, pattern_side
    table, opening_cost, extending_cost, maximum_gaps, mode, seed, is_published, lowest = scoring
    g, e, s, profile, symbols, bands, columns, directions = workspace
    lanes = len(symbols)
    traces = len(directions) > 0
    is_plain = not traces and not is_published
    least, zero = spread(g, np.iinfo(g.dtype).min), spread(g, 0)
    opening, extending = spread(g, opening_cost), spread(g, extending_cost)
    is_floored = mode == LOCAL and seed == 0
    floor = zero if is_floored else least
    from_start, from_pair, from_pattern, from_text = spread(g, 0), spread(g, _FROM_PAIR), spread(g, _FROM_PATTERN), spread(g, _FROM_TEXT)
    pattern_grows, text_grows = spread(g, _PATTERN_GROWS), spread(g, _TEXT_GROWS)
    n_pairs = len(pairs)
    text_begins, text_lengths, pattern_lengths = np.zeros(lanes, np.int64), np.full(lanes, -1, np.int64), np.zeros(n_pairs, np.int64)
    for lane in range(n_pairs):
        text_begins[lane] = text_places[pairs[lane], 0]
        text_lengths[lane] = text_places[pairs[lane], 1] - text_begins[lane]
        pattern_lengths[lane] = pattern_places[pairs[lane], 1] - pattern_places[pairs[lane], 0]
    longest = np.argmax(text_lengths)
    rows, width, shortest = text_lengths[longest], pattern_lengths.max(), pattern_lengths.min()
    layer = (width + 1) * lanes
    profile_row = _fill_profiles(texts, text_places, patterns, pattern_places, pairs, table, width, lanes, profile, columns)
    for position in range(0, (maximum_gaps + 1) * layer, lanes):
        store(g, position, least)
        store(e, position, least)
    for position in range(0, layer, lanes):
        store(s, position, least)
    for pair in pairs:
        score[pair] = lowest if mode != LOCAL else 0
        ends[1, pair] = -1
        ends[4, pair] = 0
    band_rows, each = _BAND_ROWS, _BAND_ROWS * lanes
    begins, band_symbols = bands[:each], bands[each : 2 * each]
    diagonals = bands[2 * each : (3 + maximum_gaps) * each]
    f_left = bands[(3 + maximum_gaps) * each : (4 + 2 * maximum_gaps) * each]
    codes, n_codes = np.zeros((band_rows, N_SYMBOLS + 4), np.int64), np.zeros(band_rows, np.int64)
    for band in range(0, rows + 1, band_rows):
        if stop[0]:
            return
        band_end = min(rows + 1, band + band_rows)
        for i in range(band, band_end):
            if i:
                n_codes[i - band] = _note_symbols(
                    texts, text_begins, text_lengths, longest, i, band_symbols, (i - band) * lanes, codes[i - band]
                )
            position = (i - band) * lanes
            if seed == 0:
                store(begins, position, zero if i == 0 or mode != PREFIX else least)
                continue
            store(begins, position, least)
            if i == seed or (i > seed and mode != PREFIX):
                for lane in range(len(pairs)):
                    _seed_score(
                        texts, text_places[pairs[lane]], patterns, pattern_places[pairs[lane]], i, seed, table, begins, position + lane
                    )
        # Compute a few columns for all rows and layers of the band, so that the data stay in the cache.
        for tile in range(seed, width + 1, _TILE_COLUMNS):
            tile_end = min(width + 1, tile + _TILE_COLUMNS)
            first = max(tile, seed + 1)
            for i in range(band, band_end):
                if i:
                    position = (i - band) * lanes
                    _fill_scores(
                        codes[i - band], n_codes[i - band], load(band_symbols, position), first, tile_end, profile_row, profile, s, lanes
                    )
                for q in range(maximum_gaps + 1):
                    start = q * layer
                    below = start - layer
                    left = ((i - band) * (maximum_gaps + 1) + q) * lanes
                    traced = (i * (maximum_gaps + 1) + q) * layer
                    if tile == seed:
                        position = start + seed * lanes
                        begun = load(begins, (i - band) * lanes)
                        diagonal, alone = load(g, position), load(e, position)
                        value = maximum(begun, alone)
                        store(g, position, value)
                        f = least
                        if q == 0:
                            if traces:
                                store_anywhere(directions, traced + seed * lanes, from_start)
                        else:
                            opened = subtract_saturated(load(g, below + seed * lanes), opening)
                            grown = subtract_saturated(alone, extending)
                            if not is_published or i <= seed:
                                f = opened
                            if not is_published or i >= seed:
                                store(e, position, maximum(grown, opened))
                            if traces:
                                source = where_equal(value, begun, from_start, from_text)
                                source = add(source, where_greater(grown, opened, text_grows, zero))
                                store_anywhere(directions, traced + seed * lanes, source)
                    else:
                        diagonal, f = load(diagonals, left), load(f_left, left)
                    if q == 0:
                        for j in range(first, tile_end):
                            paired = add_saturated(diagonal, load(s, j * lanes))
                            diagonal = load(g, start + j * lanes)
                            value = maximum(paired, floor)
                            store(g, start + j * lanes, value)
                            if traces:
                                source = where_equal(value, zero, from_start, from_pair) if is_floored else from_pair
                                store_anywhere(directions, traced + j * lanes, source)
                    elif is_plain:
                        for j in range(first, tile_end):
                            position = start + j * lanes
                            paired = maximum(add_saturated(diagonal, load(s, j * lanes)), floor)
                            diagonal, alone = load(g, position), load(e, position)
                            store(g, position, maximum(paired, maximum(alone, f)))
                            opened = subtract_saturated(load(g, below + j * lanes), opening)
                            store(e, position, maximum(subtract_saturated(alone, extending), opened))
                            f = maximum(subtract_saturated(f, extending), opened)
                    else:
                        for j in range(first, tile_end):
                            position = start + j * lanes
                            paired = add_saturated(diagonal, load(s, j * lanes))
                            diagonal, alone = load(g, position), load(e, position)
                            value = maximum(maximum(paired, floor), maximum(alone, f))
                            store(g, position, value)
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
                            store(e, position, e_next)
                    store(diagonals, left, diagonal)
                    store(f_left, left, f)
                if mode == LOCAL:
                    top = least
                    for j in range(tile, tile_end):
                        top = maximum(top, load(g, maximum_gaps * layer + j * lanes))
                    store(symbols, 0, top)
                if mode != LOCAL and (width < tile or shortest >= tile_end):
                    continue
                for lane in range(n_pairs):
                    pair, n, m = pairs[lane], text_lengths[lane], pattern_lengths[lane]
                    if i > n or m < tile or (mode != LOCAL and m >= tile_end):
                        continue
                    result = np.int64(symbols[lane] if mode == LOCAL else g[maximum_gaps * layer + m * lanes + lane])
                    # Tiles are computed in order of columns, so a later tile may have the same score in an earlier row.
                    if result > score[pair] or (result == score[pair] and i < ends[1, pair]):
                        score[pair] = result
                        ends[1, pair] = i
                        # When tracing a local alignment, the text ends where the alignment ends, so only the last row matters.
                        if traces and (mode != LOCAL or i == n):
                            _note_end(g, layer, lanes, lane, maximum_gaps, result, tile if mode == LOCAL else m, pair, ends)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_profiles(texts, text_places, patterns, pattern_places, pairs, table, width, lanes, profile, columns):
    """Build a score profile of the reads for each base that occurs in the references.

    Return the start of each base's profile in `profile`, int64, or -1 for bases that do not occur.
    """
    profile_row = np.full(N_SYMBOLS + 1, -1, np.int64)
    is_of_pattern = np.zeros(N_SYMBOLS + 1, np.bool_)
    for position in range(0, width * lanes, lanes):
        store(columns, position, spread(columns, _PADDING))
    for lane in range(len(pairs)):
        begin, end = pattern_places[pairs[lane], 0], pattern_places[pairs[lane], 1]
        for j in range(end - begin):
            columns[j * lanes + lane] = patterns[begin + j]
            is_of_pattern[patterns[begin + j]] = True
        for position in range(text_places[pairs[lane], 0], text_places[pairs[lane], 1]):
            profile_row[texts[position]] = 0
    codes, n = np.flatnonzero(is_of_pattern), 0
    for symbol in range(N_SYMBOLS):
        if profile_row[symbol] == 0:
            profile_row[symbol] = n * width * lanes
            for position in range(0, width * lanes, lanes):
                pattern_codes, result = load(columns, position), spread(profile, np.iinfo(profile.dtype).min)
                for code in codes:
                    result = where_equal(pattern_codes, spread(profile, code), spread(profile, table[symbol * _TABLE_ROW + code]), result)
                store(profile, profile_row[symbol] + position, result)
            n += 1
    return profile_row


@njit(nogil=True, cache=True, error_model="numpy")
def _note_symbols(texts, text_begins, text_lengths, longest, i, band_symbols, position, codes):
    """Write base `i` of each reference to `band_symbols`; write the distinct bases, and three for padding, to `codes`.

    Return the number of distinct bases.
    """
    seen, n = 0, 0
    for lane in range(len(text_begins)):
        # After the end of a text, use the symbol of the longest text, since its profile is needed anyway.
        source_lane = lane if text_lengths[lane] >= i else longest
        symbol = np.int64(texts[text_begins[source_lane] + i - 1])
        band_symbols[position + lane] = symbol
        if not seen >> symbol & 1:
            seen |= 1 << symbol
            codes[n] = symbol
            n += 1
    codes[n : n + 3] = codes[0]
    return n


@njit(inline="always")
def _fill_scores(codes, n, lane_symbols, begin, end, profile_row, profile, s, lanes):
    """Write the scores of the bases in a row against the reads in the columns `begin` to `end`."""
    for first in range(0, n, 4):
        row_0, row_1 = profile_row[codes[first]], profile_row[codes[first + 1]]
        row_2, row_3 = profile_row[codes[first + 2]], profile_row[codes[first + 3]]
        code_0, code_1 = spread(s, codes[first]), spread(s, codes[first + 1])
        code_2, code_3 = spread(s, codes[first + 2]), spread(s, codes[first + 3])
        for j in range(begin, end):
            position = (j - 1) * lanes
            result = load(profile, row_0 + position)
            if first:
                result = where_equal(lane_symbols, code_0, result, load(s, j * lanes))
            result = where_equal(lane_symbols, code_1, load(profile, row_1 + position), result)
            result = where_equal(lane_symbols, code_2, load(profile, row_2 + position), result)
            result = where_equal(lane_symbols, code_3, load(profile, row_3 + position), result)
            store(s, j * lanes, result)


@njit(nogil=True, cache=True, error_model="numpy")
def _seed_score(texts, text_place, patterns, pattern_place, i, seed, table, begins, position):
    """If the seed of the read matches the reference bases before row `i`, write its score to ``begins[position]``."""
    if i > text_place[1] - text_place[0] or seed > pattern_place[1] - pattern_place[0]:
        return
    result = 0
    for k in range(seed):
        symbol = texts[text_place[0] + i - seed + k]
        if symbol != patterns[pattern_place[0] + k]:
            return
        result += table[symbol * _TABLE_ROW + symbol]
    begins[position] = result


@njit(nogil=True, cache=True, error_model="numpy")
def _note_end(g, layer, lanes, lane, maximum_gaps, end_score, j, pair, ends):
    """Find the first column from `j` on that has the best score of a lane, and its minimum number of gaps; write both to `ends`."""
    while g[maximum_gaps * layer + j * lanes + lane] != end_score:
        j += 1
    q = 0
    while g[q * layer + j * lanes + lane] != end_score:
        q += 1
    ends[3, pair] = j
    ends[4, pair] = q


@njit(nogil=True, cache=True, error_model="numpy")
def _walk(pattern_places, pairs, lanes, maximum_gaps, seed, directions, ends, runs):
    """Follow the trace directions of a group's pairs from end to start; write the lengths of pairs and gaps to `runs`."""
    width = 0
    for pair in pairs:
        width = max(width, pattern_places[pair, 1] - pattern_places[pair, 0])
    layer = (width + 1) * lanes
    row = (maximum_gaps + 1) * layer
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
    """References and reads that can be aligned in any pairs.

    Parameters
    ----------
    device
        CPU that aligns the pairs.
    texts, patterns
        Sequences of references and of reads, with codes below `N_SYMBOLS`.
    rules
        Allowed alignments and their scores.

    Raises
    ------
    ValueError
        If scores of these reads could exceed 32 bits.
    """

    def __init__(self, device: Processor, texts: Sequences, patterns: Sequences, rules: GapRules) -> None:
        self._processor, self._texts, self._patterns, self._rules = device, texts, patterns, rules
        self._text_lengths, self._pattern_lengths = np.diff(texts.offsets), np.diff(patterns.offsets)
        self._bits = score_bits(rules, int(self._pattern_lengths.max(initial=0)))
        if not self._bits:
            raise ValueError("scores could exceed 32 bits")
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

        Yields the end of the finished range at least every tenth of a second. Closing the generator stops the computation.

        Parameters
        ----------
        text_of, pattern_of : (n,)
            Index of the reference and index of the read of each pair.
        out
            Output for n pairs; only the rows `first:last` are written.
        traces
            True to trace alignments back; otherwise only scores and ends in the reference are written, and other columns are -1.
        """
        last = len(text_of) if last is None else last
        cells = (self._text_lengths[text_of[first:last]] + 1.0) * (self._pattern_lengths[pattern_of[first:last]] + 1.0)
        cells *= self._rules.maximum_gaps + 1
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
    """Pairs that are sorted by length, distributed to threads and aligned together."""

    def __init__(self, search: ReadSearch, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]) -> None:
        # A block uses private fields of its search, since both belong together and differ only in lifetime.
        self._of, self._rules = search, search._rules
        self._text_places, self._pattern_places = _places(search._texts, text_of), _places(search._patterns, pattern_of)
        n = len(text_of)
        self._score, self._ends = np.full(n, NO_ALIGNMENT, np.int32), np.full((5, n), -1, np.int32)
        self._runs = np.zeros((n, 2 * self._rules.maximum_gaps + 1), np.int32)
        self._lowest = -int(self._rules.maximum_loss(int(_lengths(self._pattern_places).max(initial=0)))) - 1
        if self._rules.mode == PREFIX and self._rules.gap_extend:
            # A longer stretch of unmatched text would cost more than the pattern can score.
            lengths = _lengths(self._pattern_places)
            reach = lengths + (lengths * self._rules.maximum_gain + self._rules.maximum_loss(lengths)) // self._rules.gap_extend
            self._text_places[:, 1] = np.minimum(self._text_places[:, 1], self._text_places[:, 0] + reach)

    def align(self, traces: bool) -> Generator[None, None, None]:
        """Compute the scores, ends and, with `traces`, gaps of all pairs; yield at least every tenth of a second."""
        everything = np.arange(len(self._score))
        if not traces:
            yield from self._pass(everything, traces=False)
            return
        times, more = SINGLE_PASS
        is_short = _lengths(self._text_places) <= times * _lengths(self._pattern_places) + more
        at_once = is_short & (self._rules.mode != LOCAL)
        left = yield from self._pass(everything[at_once], traces=True)
        later = np.concatenate((everything[~at_once], left))
        yield from self._pass(later, traces=False)
        later = later[self._ends[1, later] >= 0]
        # The text before the window does not change the alignment; the text ends where the alignment does.
        begins = windows(self._rules, self._score[later], self._ends[1, later], _lengths(self._pattern_places[later]))
        self._text_places[later, 1] = self._text_places[later, 0] + self._ends[1, later]
        self._text_places[later, 0] += begins
        left = yield from self._pass(later, traces=True)
        yield from self._trace_alone(left)
        self._ends[0, later] += begins.astype(np.int32)
        self._ends[1, later] += begins.astype(np.int32)

    def _pass(self, pairs: NDArray[np.int64], *, traces: bool) -> Generator[None, None, NDArray[np.int64]]:
        """Align pairs in lanes; return pairs that were skipped because their trace directions would exceed the memory limit."""
        of, lanes = self._of, self._of._lanes
        order = pairs[np.lexsort((_lengths(self._text_places[pairs]), _lengths(self._pattern_places[pairs])))]
        text, pattern = _lengths(self._text_places[order]), _lengths(self._pattern_places[order])
        groups = np.arange(0, len(order), lanes)
        if not len(groups):
            return order
        longest = np.maximum.reduceat(text, groups) + 1.0, np.maximum.reduceat(pattern, groups) + 1.0
        cells = longest[0] * longest[1] * (self._rules.maximum_gaps + 1) * lanes
        if traces and (is_too_large := cells > _TRACED_BYTES).any():
            left, fits = order[np.repeat(is_too_large, lanes)[: len(order)]], order[np.repeat(~is_too_large, lanes)[: len(order)]]
            more = yield from self._pass(fits, traces=True)
            return np.concatenate((left, more))

        scoring = _scoring(self._rules, of._table, self._lowest)

        def work(first: int, last: int, stop: StopFlag) -> None:
            width = int(longest[1][first:last].max()) * lanes
            layers = (self._rules.maximum_gaps + 1) * width
            directions = np.empty(int(cells[first:last].max()) if traces else 0, np.uint8)
            sizes = layers, layers, width, N_SYMBOLS * width, lanes, (4 + 2 * self._rules.maximum_gaps) * _BAND_ROWS * lanes, width
            g, e, s, profile, symbols, bands, columns = (aligned(size, of._table.dtype) for size in sizes)
            workspace = _Workspace(g, e, s, profile, symbols, bands, columns, directions)
            align_groups(
                _Side(of._texts.codes, self._text_places),
                _Side(of._patterns.codes, self._pattern_places),
                order[first * lanes : last * lanes],
                scoring,
                workspace,
                self._score,
                self._ends,
                self._runs,
                stop,
            )

        chunks = equal_partitions(cells, of._processor.threads, maximum_cost=_CELLS_OF_PARTITION, per_worker=_PARTITIONS_OF_THREAD)
        for _ in of._processor.run(work, chunks, 0):
            yield
        return order[:0]

    def _trace_alone(self, pairs: NDArray[np.int64]) -> Generator[None, None, None]:
        """Trace pairs with known scores and ends, pair by pair; memory grows with the square root of the reference length."""
        of = self._of

        def work(first: int, last: int, stop: StopFlag) -> None:
            for pair in pairs[first:last]:
                sides = ((of._texts, self._text_places), (of._patterns, self._pattern_places))
                text, pattern = (side.codes[slice(*positions[pair])] for side, positions in sides)
                result = trace_long_pair(text, pattern, self._rules, stop)
                if result is None:
                    return
                self._score[pair], self._runs[pair] = result.score, result.runs
                self._ends[:, pair] = result.text_start, len(text), result.pattern_start, result.pattern_end, result.gaps

        for _ in of._processor.run(work, [Partition(k, k + 1, 1.0) for k in range(len(pairs))], 0):
            yield

    def write(self, out: Alignments, first: int) -> None:
        """Write the results to the output, in the original order of the pairs."""
        rows, is_unaligned = slice(first, first + len(self._score)), self._ends[1] < 0
        self._score[is_unaligned] = NO_ALIGNMENT
        self._ends[:, is_unaligned] = -1
        out.score[rows], out.runs[rows] = self._score, self._runs
        for column, result in zip(out[1:6], self._ends, strict=True):
            column[rows] = result


def _places(sequences: Sequences, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return start and end of each of the chosen sequences, (n, 2)."""
    return np.stack([sequences.offsets[chosen], sequences.offsets[chosen + 1]], axis=1).astype(np.int64)


def _lengths(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    return positions[:, 1] - positions[:, 0]


def _scoring(rules: GapRules, table: NDArray, lowest: int) -> _Scoring:
    opening = rules.gap_open + rules.gap_extend
    return _Scoring(table, opening, rules.gap_extend, rules.maximum_gaps, rules.mode, rules.seed_length, bool(rules.is_published), lowest)


def _table(matrix: NDArray[np.int32], bits: int) -> NDArray[Any]:
    """Return the scoring matrix as a flat array with the reference code first, ((N_SYMBOLS + 1) ** 2,)."""
    dtype: Any = np.int16 if bits == 16 else np.int32
    table = np.full((_TABLE_ROW, _TABLE_ROW), np.iinfo(dtype).min, dtype)
    table[: matrix.shape[1], : matrix.shape[0]] = matrix.T
    return table.ravel()
