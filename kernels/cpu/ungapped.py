"""Ungapped alignments that are proven to be optimal, because no alignment with gaps can score as high.

The gain of a read is its score if all bases are paired optimally. A gapped alignment scores at most the gain minus the cost of the shortest
gap. An ungapped alignment with a higher score is therefore optimal by the definition in `proteoscope.kernels.gapsmis_layouts`; if there are
several with the same score, the alignment that ends first is reported. All diagonals of a reference are tried, each until its loss is too
large.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.gapsmis_layouts import LOCAL, N_SYMBOLS, WITHIN, Alignments, GapRules, Sequences

__all__ = ["align_where_sure", "best_without_gaps"]


@njit(nogil=True, cache=True, error_model="numpy")
def best_without_gaps(texts, patterns, text_of, pattern_of, losses, gains, shortest_gap, minimum_gain, score, starts):
    """Find the ungapped alignments that are certain to be optimal.

    Parameters
    ----------
    texts, patterns
        `Sequences`.
    text_of, pattern_of : ndarray of int64, shape (n,)
        Index of the reference and of the read of each pair.
    losses : (symbols, symbols) int64
        Loss of each pair of symbols, by the codes of read and reference: maximum score of the read's symbol minus score of the pair.
    gains : ndarray of int64, shape (symbols,)
        Maximum score of each symbol of a read.
    shortest_gap
        Cost of the shortest gap. An alignment with at least this loss is not certain to be optimal.
    minimum_gain
        Reads that contain a symbol with a lower gain are skipped.
    score, starts : (n,) int64
        Output; `starts` is -1 if no alignment is certain to be optimal.
    """
    (text_codes, text_offsets), (pattern_codes, pattern_offsets) = texts, patterns
    for k in range(len(text_of)):
        begin, end = text_offsets[text_of[k]], text_offsets[text_of[k] + 1]
        first, length = pattern_offsets[pattern_of[k]], pattern_offsets[pattern_of[k] + 1] - pattern_offsets[pattern_of[k]]
        least, starts[k] = shortest_gap, -1
        if length == 0:
            continue
        for start in range(begin, end - length + 1):
            lost, j = 0, 0
            while j < length and lost < least:
                lost += losses[pattern_codes[first + j], text_codes[start + j]]
                j += 1
            if lost < least:
                least, starts[k] = lost, start - begin
                if lost == 0:
                    break
        if starts[k] < 0:
            continue
        gain = 0
        for j in range(first, first + length):
            gain += gains[pattern_codes[j]]
            if gains[pattern_codes[j]] < minimum_gain:
                starts[k] = -1
        score[k] = gain - least


def align_where_sure(
    texts: Sequences, patterns: Sequences, rules: GapRules, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]
) -> tuple[Alignments, NDArray[np.bool_]]:
    """Return alignments of pairs in mode WITHIN or LOCAL, and a mask of the alignments proven to be optimal; all others are empty."""
    n = len(text_of)
    result, score, starts = Alignments.none(n, rules.maximum_gaps), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    is_local = rules.mode == LOCAL
    if rules.seed_length == 0 and not rules.is_published and rules.mode in (WITHIN, LOCAL):
        size = max(N_SYMBOLS, len(rules.matrix))
        matrix = np.full((size, size), rules.matrix.min(), np.int64)
        matrix[: rules.matrix.shape[0], : rules.matrix.shape[1]] = rules.matrix
        # If there is a gap anyway, residues with a negative score can be left unmatched.
        gains = np.maximum(0, matrix.max(axis=1))
        # In a local alignment, a section may score more than the whole pattern as soon as a residue has a loss or no gain.
        shortest = min(rules.gap_open + rules.gap_extend, 1 if is_local else rules.gap_open + rules.gap_extend)
        best_without_gaps(texts, patterns, text_of, pattern_of, gains[:, None] - matrix, gains, shortest, int(is_local), score, starts)
    is_sure = starts >= 0
    lengths = np.diff(patterns.offsets)[pattern_of[is_sure]]
    result.score[is_sure], result.gaps[is_sure], result.runs[is_sure, 0] = score[is_sure], 0, lengths
    result.text_start[is_sure], result.text_end[is_sure] = starts[is_sure], starts[is_sure] + lengths
    result.pattern_start[is_sure], result.pattern_end[is_sure] = 0, lengths
    return result, is_sure
