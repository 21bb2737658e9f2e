"""Data layouts and definition of alignments with a bounded number of gaps, for CPU and GPU.

Definition. An alignment of a read with a reference pairs bases in order. Consecutive unpaired bases of the read, or of the reference, are a
gap; adjacent gaps in read and reference count separately. The score is the sum of the matrix over pairs, minus ``gap_open + k *
gap_extend`` for each gap of k bases. The optimum is the highest score of all alignments that the mode allows with at most `maximum_gaps`
gaps.

Ties are resolved identically on every device. The preferred alignment is the one that ends first in the reference, then first in the read
(mode LOCAL), then the one with the fewest gaps. If several remain, the alignment is traced back from its end, and each step is the first of
these that preserves the score: start of the alignment, a pair, an unpaired base of the read, an unpaired base of the reference. A gap ends
as soon as ending it preserves the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "LOCAL",
    "MAXIMUM_GAPS",
    "NO_ALIGNMENT",
    "N_SYMBOLS",
    "PREFIX",
    "SINGLE_PASS",
    "WITHIN",
    "Alignments",
    "GapRules",
    "Sequences",
    "score_bits",
    "windows",
]

PREFIX, WITHIN, LOCAL = 0, 1, 2
"""Modes: the whole read with a prefix of the reference; the whole read with any part of the reference; any part of the read with any
part of the reference, with a positive score.
"""
SINGLE_PASS = 2, 64
"""References of up to twice the read and 64 bases are traced in one pass."""
N_SYMBOLS = 31
"""Number of codes of symbols."""
MAXIMUM_GAPS = 30
NO_ALIGNMENT = -(1 << 31)
"""Score of a pair that has no alignment."""


class Sequences(NamedTuple):
    """References or reads: concatenated `codes`, int8, and `offsets`, (n + 1,) int64."""

    codes: NDArray[np.int8]
    offsets: NDArray[np.int64]


class GapRules(NamedTuple):
    """Allowed alignments and their scores.

    Attributes
    ----------
    matrix : (symbols, symbols) int32
        Scores by the codes of the read's and of the reference's symbol.
    gap_open, gap_extend
        Gap costs, at least 0; a gap of k symbols costs ``gap_open + k * gap_extend``.
    maximum_gaps
        Maximum number of gaps, at most `MAXIMUM_GAPS`.
    mode
        PREFIX, WITHIN or LOCAL.
    seed_length
        Number of symbols at the start of the read that must match without a gap. In mode LOCAL the alignment then starts at the start of
        the read.
    is_published
        True for the recurrence as published by Carroll, in mode PREFIX only: gaps only lead away from the main diagonal. All gaps of an
        alignment are therefore in the same sequence.
    """

    matrix: NDArray[np.int32]
    gap_open: int
    gap_extend: int
    maximum_gaps: int
    mode: int = PREFIX
    seed_length: int = 0
    is_published: bool = False

    @property
    def maximum_gain(self) -> int:
        """Highest score of a pair of symbols, at least 0."""
        return max(0, int(self.matrix.max(initial=0)))

    def maximum_loss(self, pattern_length: Any) -> Any:
        """Return by how much the best score of a read of each given length can be below 0 at most.

        All bases may be unpaired or, without gaps, mismatched.
        """
        return pattern_length * max(self.gap_extend, -int(self.matrix.min(initial=0))) + self.gap_open + self.gap_extend


class Alignments(NamedTuple):
    """Alignments as columns, one row per (reference, read) pair, all int32.

    Attributes
    ----------
    score
        Score, or `NO_ALIGNMENT`; the other columns are then -1.
    text_start, text_end, pattern_start, pattern_end
        Positions from 0; ends are exclusive.
    gaps
        Number of gaps.
    runs
        (n, 2 * maximum_gaps + 1): alternately the number of pairs, and the length of a gap: unpaired bases of the read (positive) or of the
        reference (negative). Numbers of pairs may be 0; unused elements are 0.
    """

    score: NDArray[np.int32]
    text_start: NDArray[np.int32]
    text_end: NDArray[np.int32]
    pattern_start: NDArray[np.int32]
    pattern_end: NDArray[np.int32]
    gaps: NDArray[np.int32]
    runs: NDArray[np.int32]

    @classmethod
    def none(cls, n: int, maximum_gaps: int) -> Alignments:
        """Return `n` rows without alignments."""
        import numpy as np  # imported here: `MAXIMUM_GAPS` is needed to list parameters without loading NumPy

        positions = np.full((5, n), -1, np.int32)
        runs = np.zeros((n, 2 * maximum_gaps + 1), np.int32)
        return cls(np.full(n, NO_ALIGNMENT, np.int32), positions[0], positions[1], positions[2], positions[3], positions[4], runs)


def score_bits(rules: GapRules, longest_pattern: int) -> int:
    """Return the number of bits, 16 or 32, that hold the scores of reads up to the given length with any reference; 0 if 32 do not suffice.

    The numbers must hold the maximum loss of a read (`GapRules.maximum_loss`) plus twice its maximum gain, which is its length times
    `GapRules.maximum_gain`. The best alignment scores at least minus the maximum loss. A prefix of it may score lower by the maximum gain.
    Impossible cells begin with the smallest number and may also increase by the maximum gain, but must stay below all these scores.
    """
    gain = longest_pattern * rules.maximum_gain
    return next((bits for bits in (16, 32) if rules.maximum_loss(longest_pattern) + 2 * gain < 2 ** (bits - 1) - 1), 0)


def windows(
    rules: GapRules, score: NDArray[np.int32], text_end: NDArray[np.int32], pattern_lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the first reference position, (n,), at which an alignment can start, given its end `text_end` and its score `score`.

    The read cannot score more than its length times the maximum of the matrix. The difference between this maximum and the score limits
    the number of unpaired reference bases. The result is 0 in mode PREFIX.
    """
    import numpy as np  # parameters are described without loading NumPy

    if rules.mode == PREFIX:
        return np.zeros(len(score), np.int64)
    spare = pattern_lengths * rules.maximum_gain - score
    reach = pattern_lengths + spare // rules.gap_extend if rules.gap_extend else np.asarray(text_end, np.int64)
    return np.where(score == NO_ALIGNMENT, 0, np.maximum(0, text_end - reach))
