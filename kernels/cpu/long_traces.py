"""Trace-back of a pair whose directions exceed the memory: rows between checkpoints are computed again (Grice et al. 1997).

Recurrence, modes and tie rule are those of `proteoscope.kernels.cpu.gapsmis`. The state after every `rows_of_block` rows of the reference
is stored. Then, from the last block to the first, the directions of one block are recomputed from its state and followed to its first row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.device import StopFlag
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, GapRules

__all__ = ["LongTrace", "trace_long_pair"]

_FROM_START, _FROM_PAIR, _FROM_PATTERN, _FROM_TEXT = 0, 1, 2, 3
_SOURCE, _PATTERN_GROWS, _TEXT_GROWS = 3, 4, 8
_LEAST = np.int64(np.iinfo(np.int32).min)
_STATE_BYTES = 8  # bytes per cell of a stored row


class LongTrace(NamedTuple):
    """Alignment of a pair, with the attributes of `Alignments`; `runs` is (2 * maximum_gaps + 1,) int32."""

    score: int
    text_start: int
    pattern_start: int
    pattern_end: int
    gaps: int
    runs: NDArray[np.int32]


class _Rules(NamedTuple):
    """Rules of `GapRules` in the form of the kernels; `matrix` is (reference codes, read codes) int32."""

    matrix: NDArray[np.int32]
    opening: int
    extending: int
    is_anywhere: bool
    is_local: bool
    seed: int
    is_published: bool


def trace_long_pair(text: NDArray[np.int8], pattern: NDArray[np.int8], rules: GapRules, stop: StopFlag) -> LongTrace | None:
    """Return the alignment that ends with the last reference base, or None if `stop` was set.

    Parameters
    ----------
    text
        Codes of the reference, from the first possible start of the alignment to its end.
    pattern
        Codes of the read.
    """
    # Copy, so that memory-mapped read-only codes do not cause a second compilation for another array type.
    text, pattern, matrix = np.array(text, np.int8), np.array(pattern, np.int8), np.array(rules.matrix.T, np.int32, order="C")
    settings = _Rules(
        matrix,
        rules.gap_open + rules.gap_extend,
        rules.gap_extend,
        rules.mode != PREFIX,
        rules.mode == LOCAL,
        rules.seed_length,
        bool(rules.is_published),
    )
    layers, columns, n_rows = rules.maximum_gaps + 1, len(pattern) + 1, len(text) + 1
    # With this number of rows, the directions of a block (one byte per cell) take as much memory as the stored states.
    rows_of_block = max(1, int(np.sqrt(_STATE_BYTES * n_rows)))
    firsts = range(0, n_rows, rows_of_block)
    states = np.full((len(firsts) + 1, 2, layers, columns), _LEAST, np.int32)
    unused = np.empty((0, layers, columns), np.uint8)
    for block, first in enumerate(firsts):
        states[block + 1] = states[block]
        _compute_rows(text, pattern, settings, first, min(n_rows, first + rows_of_block), *states[block + 1], unused, stop)
    at = np.zeros(5, np.int64)
    score = _find_end(states[-1, 0], settings.is_local, at)
    runs, directions = np.zeros(2 * rules.maximum_gaps + 1, np.int32), np.empty((rows_of_block, layers, columns), np.uint8)
    at[0] = n_rows - 1
    pattern_end, gaps = int(at[1]), int(at[2])
    for block in reversed(range(len(firsts))):
        first = firsts[block]
        _compute_rows(text, pattern, settings, first, min(int(at[0]) + 1, first + rows_of_block), *states[block], directions, stop)
        if stop[0]:
            return None
        if _walk_block(directions, first, at, runs):
            break
    runs[0] += rules.seed_length
    return LongTrace(score, int(at[0]) - rules.seed_length, int(at[1]) - rules.seed_length, pattern_end, gaps, runs)


@njit(nogil=True, cache=True, error_model="numpy")
def _compute_rows(text, pattern, rules, first, last, g, e, directions, stop):
    """Compute the rows `first:last` of all layers, updating the state `g` and `e` (layers, columns) row by row.

    Parameters
    ----------
    directions : (rows, layers, columns) uint8
        Output for the computed rows; (0, layers, columns) if directions are not needed.
    """
    layers, columns = g.shape
    seed, is_floored, traces = rules.seed, rules.is_local and rules.seed == 0, len(directions) > 0
    for i in range(first, last):
        if stop[0]:
            return
        begun = _begun_score(text, pattern, rules, i)
        for q in range(layers):
            diagonal, alone, f = np.int64(g[q, seed]) if seed < columns else _LEAST, _LEAST, _LEAST
            if seed < columns:
                alone = np.int64(e[q, seed])
                value = max(begun, alone)
                g[q, seed] = value
                source = _FROM_START
                if q > 0:
                    opened, grown = max(np.int64(g[q - 1, seed]) - rules.opening, _LEAST), max(alone - rules.extending, _LEAST)
                    if not rules.is_published or i <= seed:
                        f = opened
                    if not rules.is_published or i >= seed:
                        e[q, seed] = max(grown, opened)
                    source = (_FROM_START if value == begun else _FROM_TEXT) + (_TEXT_GROWS if grown > opened else 0)
                if traces:
                    directions[i - first, q, seed] = source
            for j in range(seed + 1, columns):
                paired = _LEAST
                if i > 0:
                    paired = max(diagonal + rules.matrix[text[i - 1], pattern[j - 1]], _LEAST)
                diagonal, alone = np.int64(g[q, j]), np.int64(e[q, j])
                value = max(paired, max(alone, f)) if q > 0 else paired
                if is_floored:
                    value = max(value, 0)
                g[q, j] = value
                source = _FROM_PAIR if value == paired else _FROM_PATTERN if value == f else _FROM_TEXT
                if is_floored and value == 0:
                    source = _FROM_START
                if q > 0:
                    opened = max(np.int64(g[q - 1, j]) - rules.opening, _LEAST)
                    text_grown, pattern_grown = max(alone - rules.extending, _LEAST), max(f - rules.extending, _LEAST)
                    source += (_TEXT_GROWS if text_grown > opened else 0) + (_PATTERN_GROWS if pattern_grown > opened else 0)
                    f = _LEAST if rules.is_published and j < i else max(pattern_grown, opened)
                    e[q, j] = _LEAST if rules.is_published and j > i else max(text_grown, opened)
                if traces:
                    directions[i - first, q, j] = source


@njit(nogil=True, error_model="numpy")
def _begun_score(text, pattern, rules, i):
    """Return the score at row `i` of an alignment that starts there (0, or the score of its seed); `_LEAST` if none can start."""
    seed = rules.seed
    if seed == 0:
        return np.int64(0) if i == 0 or rules.is_anywhere else _LEAST
    if i < seed or (i > seed and not rules.is_anywhere) or seed > len(pattern):
        return _LEAST
    result = np.int64(0)
    for k in range(seed):
        if text[i - seed + k] != pattern[k]:
            return _LEAST
        result += rules.matrix[pattern[k], pattern[k]]
    return result


@njit(nogil=True, cache=True, error_model="numpy")
def _find_end(g, is_local, at):
    """Return the best score of the last row; write the first column with this score, and its minimum number of gaps, to ``at[1:3]``."""
    layers, columns = g.shape
    at[1] = np.argmax(g[layers - 1]) if is_local else columns - 1
    score = g[layers - 1, at[1]]
    while g[at[2], at[1]] != score:
        at[2] += 1
    return score


@njit(nogil=True, cache=True, error_model="numpy")
def _walk_block(directions, first, at, runs):
    """Follow directions back to row `first`; return True if the alignment starts in this block.

    Parameters
    ----------
    at : (5,) int64
        Row, column, layer, kind of the current gap (0 for none) and its length; updated.
    runs
        Output; lengths of pairs and gaps of the alignment.
    """
    i, j, q, gap, length = at
    while i >= first:
        here = directions[i - first, q, j]
        if gap and here & (_PATTERN_GROWS if gap == _FROM_PATTERN else _TEXT_GROWS) == 0:
            runs[2 * q - 1] = length
            q, gap, length = q - 1, 0, 0
            continue
        source = gap if gap else here & _SOURCE
        if source == _FROM_START:
            at[:] = i, j, q, gap, length
            return True
        if source == _FROM_PAIR:
            runs[2 * q] += 1
            i, j = i - 1, j - 1
        elif source == _FROM_PATTERN:
            j, length, gap = j - 1, length + 1, source
        else:
            i, length, gap = i - 1, length - 1, source
    at[:] = i, j, q, gap, length
    return False
