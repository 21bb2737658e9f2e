"""Alignments of many hits in one call, as text lines, counts and CIGARs.

Each pair is computed separately by `proteoscope.kernels.cpu.rows`, best after its sequences were cut to the range of the alignment by
`proteoscope.kernels.cpu.striped`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.rows import RowArrays, score_rows, trace_back

__all__ = [
    "CIGAR_BYTES",
    "CIGAR_OPERATIONS",
    "IDENTITIES",
    "MISMATCHES",
    "N_COUNTS",
    "OPENINGS",
    "POSITIVES",
    "PairedSequences",
    "Traces",
    "draw_pairs",
    "trace_pairs",
]

IDENTITIES, MISMATCHES, POSITIVES, OPENINGS, CIGAR_BYTES = 0, 1, 2, 3, 4
"""Columns of the counts of `draw_pairs`."""
N_COUNTS = 5
CIGAR_OPERATIONS = "?MDI"
"""CIGAR operation of each step: pair, residue of the subject only, residue of the query only."""
_PAIR, _SUBJECT_ALONE, _QUERY_ALONE = 1, 2, 3
_GAP, _POSITIVE, _APART, _ZERO = ord("-"), ord("+"), ord(" "), ord("0")
_OPERATIONS = np.frombuffer(CIGAR_OPERATIONS.encode(), np.uint8).copy()


class PairedSequences(NamedTuple):
    """Pairs (n) of a query and a subject: int8 codes of all sequences, and start and end of the sequences of each pair, (n, 2) int64."""

    queries: NDArray[np.int8]
    query_places: NDArray[np.int64]
    subjects: NDArray[np.int8]
    subject_places: NDArray[np.int64]


class Traces(NamedTuple):
    """Alignments of n pairs.

    Attributes
    ----------
    steps : uint8
        Steps of the alignments in reverse order; the steps of pair i start at ``offsets[i]``, (n,) int64; see `trace_back`.
    ends : (n, 3) int64
        Number of steps, and first aligned residue of query and subject.
    """

    steps: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    ends: NDArray[np.int64]


@njit(nogil=True, cache=True, error_model="numpy")
def trace_pairs(chosen, pairs, targets, matrix, opening, extending, workspace, directions, traces):
    """Align pairs whose best scores are known, one by one.

    Scores have the dtype of `workspace`.

    Parameters
    ----------
    chosen : (k,) int64
        Indices of the pairs to align.
    pairs
        `PairedSequences` of n pairs.
    targets : (n,) int64
        Best score of each pair.
    matrix : (symbols, symbols)
        Substitution scores.
    opening, extending
        Cost of the first residue of a gap, and of each further residue.
    workspace
        `RowArrays`; `profile`, `h_rows` (flat) and `f_row` are workspace for the longest subject.
    directions : uint8
        Workspace for the cells of the largest pair.
    traces
        `Traces`, output.
    """
    queries, query_places, subjects, subject_places = pairs
    profiles, decay, h_rows, f_rows = workspace
    steps, step_offsets, result = traces
    lanes = len(decay)
    best, position = np.empty(3, np.int64), np.empty(4, np.int64)
    for k in chosen:
        q, s = query_places[k, 0], subject_places[k, 0]
        m, n = query_places[k, 1] - q, subject_places[k, 1] - s
        width = (n + lanes - 1) // lanes * lanes
        profile, f_row = profiles[: len(matrix) * width], f_rows[:width]
        for symbol in range(len(matrix)):
            row = profile[symbol * width : (symbol + 1) * width]
            scores = matrix[symbol]
            for j in range(n):
                row[j] = scores[subjects[s + j]]
            row[n:] = -1
        f_row[:] = -1
        above = h_rows[: 2 * (1 + width)].reshape((2, 1 + width))
        above[:] = 0
        cells = directions[: m * width].reshape((m, width))
        codes = queries[q : q + m].astype(np.int64)
        best[0], best[1], best[2] = 0, -1, -1
        score_rows(codes, RowArrays(profile, decay, above, f_row), opening, extending, 0, m, best, targets[k], cells, True)
        position[0], position[1], position[2], position[3] = best[1], best[2], 0, 0
        if best[0] > 0:
            trace_back(cells, 0, position, steps[step_offsets[k] :])
        result[k, 0], result[k, 1], result[k, 2] = position[3], position[0] + 1, position[1] + 1


@njit(nogil=True, cache=True, error_model="numpy")
def draw_pairs(traces, pairs, matrix, symbols, lines, cigars, counts):
    """Write the lines and CIGARs of alignments, and count identities, gaps and so on.

    Parameters
    ----------
    traces, pairs, matrix
        Result and parameters of `trace_pairs`.
    symbols : uint8
        Symbol of each residue code.
    lines : (3, columns) uint8
        Output; lines of the alignments, concatenated: query, matches, subject.
    cigars : uint8
        Output; concatenated CIGARs, with space for two bytes per column.
    counts : (n, 5) int64
        Output; the columns are `IDENTITIES`, `MISMATCHES` and so on.
    """
    steps, step_offsets, result = traces
    queries, query_places, subjects, subject_places = pairs
    at, written = 0, np.int64(0)
    for k in range(len(result)):
        n_steps, begin = result[k, 0], written
        i, j = query_places[k, 0] + result[k, 1], subject_places[k, 0] + result[k, 2]
        identities, mismatches, positives, openings = 0, 0, 0, 0
        before, run = np.int64(0), np.int64(0)
        for c in range(n_steps):
            step = steps[step_offsets[k] + n_steps - 1 - c]
            if step != before:
                if run:
                    written = _write_run(cigars, written, run, before)
                before, run = step, 0
                if step != _PAIR:
                    openings += 1
            run += 1
            above, middle, below = _GAP, _APART, _GAP
            if step == _PAIR:
                query_code, subject_code = queries[i], subjects[j]
                above, below = symbols[query_code], symbols[subject_code]
                if matrix[query_code, subject_code] > 0:
                    positives += 1
                    middle = _POSITIVE
                if query_code == subject_code:
                    identities += 1
                    middle = above
                else:
                    mismatches += 1
            elif step == _SUBJECT_ALONE:
                below = symbols[subjects[j]]
            else:
                above = symbols[queries[i]]
            if step != _SUBJECT_ALONE:
                i += 1
            if step != _QUERY_ALONE:
                j += 1
            lines[0, at], lines[1, at], lines[2, at] = above, middle, below
            at += 1
        if run:
            written = _write_run(cigars, written, run, before)
        counts[k, IDENTITIES], counts[k, MISMATCHES], counts[k, POSITIVES] = identities, mismatches, positives
        counts[k, OPENINGS], counts[k, CIGAR_BYTES] = openings, written - begin


@njit
def _write_run(cigars, at, run, step):
    """Write `run` equal steps, such as ``57M``; return the next position."""
    digits = 1
    while run >= 10**digits:
        digits += 1
    for k in range(digits):
        cigars[at + digits - 1 - k] = _ZERO + run % 10
        run //= 10
    cigars[at + digits] = _OPERATIONS[step]
    return at + digits + 1
