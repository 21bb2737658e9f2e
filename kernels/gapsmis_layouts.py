"""Data layouts and definition of alignments with a bounded number of gaps, for CPU and GPU.

Definition. An alignment of a read with a reference pairs bases in order; a run of unpaired bases of one of them is a gap, and adjacent gaps
in both count separately. The score is the sum of the matrix over pairs, minus ``gap_open + k * gap_extend`` for each gap of k bases. The
optimum is the highest score of all alignments that the mode allows with at most `maximum_gaps` gaps.

Among alignments with that score, every device selects the one that ends first in the reference, then first in the read (mode LOCAL); then
one with the fewest gaps; then the one found by going backwards from the end and taking at each step the first that preserves the score of:
start of the alignment, a pair, an unpaired read base, an unpaired reference base; a gap is left as soon as that preserves the score.
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
"""The whole read with a prefix of the reference; the whole read with any part of the reference; a part of the read, with a positive score,
with any part of the reference.
"""
SINGLE_PASS = 2, 64
"""References of up to twice the read and 64 bases are traced in one pass."""
N_SYMBOLS = 31
"""Codes are below this."""
MAXIMUM_GAPS = 30
NO_ALIGNMENT = -(1 << 31)
"""The score of a pair that has no alignment."""


class Sequences(NamedTuple):
    """References or reads: `codes` int8, concatenated, `offsets` (n + 1,) int64."""

    codes: NDArray[np.int8]
    offsets: NDArray[np.int64]


class GapRules(NamedTuple):
    """Allowed alignments and their scores.

    Attributes
    ----------
    matrix : (symbols, symbols) int32
        By the codes of the pattern's and of the text's symbol.
    gap_open, gap_extend
        At least 0; a gap of k symbols costs ``gap_open + k * gap_extend``.
    maximum_gaps
        At most `MAXIMUM_GAPS`.
    mode
        PREFIX, WITHIN or LOCAL.
    seed_length
        Number of symbols at the beginning of the pattern that are paired with the same symbols, without a gap. In mode LOCAL the alignment
        then begins where the pattern does.
    is_published
        True for the recurrence as published by Carroll, in mode PREFIX only: a gap may only lead away from the main diagonal. So an
        alignment that has more symbols of the text than of the pattern at some point has more to its end, and vice versa.
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
        """Highest score of a pair, or 0."""
        return max(0, int(self.matrix.max(initial=0)))

    def maximum_loss(self, pattern_length: Any) -> Any:
        """Return the maximum loss below 0 of the best alignment of reads of these lengths.

        All bases may be unpaired or, without gaps, mismatched.
        """
        return pattern_length * max(self.gap_extend, -int(self.matrix.min(initial=0))) + self.gap_open + self.gap_extend


class Alignments(NamedTuple):
    """Alignments, one row per pair of a reference and a read, all int32.

    Attributes
    ----------
    score
        `NO_ALIGNMENT` if there is none; then the rest is -1.
    text_start, text_end, pattern_start, pattern_end
        Positions from 0, ends excluded.
    gaps
        Number of gaps.
    runs
        (n, 2 * maximum_gaps + 1): pairs, gap, pairs, gap, pairs and so on: numbers of pairs, and of unpaired bases of the read (above 0) or
        of the reference (below 0). Pairs may be 0; zeros follow.
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
        """Return `n` pairs without alignments."""
        import numpy as np  # here: parameters, bounded by `MAXIMUM_GAPS`, are listed without it

        places = np.full((5, n), -1, np.int32)
        runs = np.zeros((n, 2 * maximum_gaps + 1), np.int32)
        return cls(np.full(n, NO_ALIGNMENT, np.int32), places[0], places[1], places[2], places[3], places[4], runs)


def score_bits(rules: GapRules, longest_pattern: int) -> int:
    """Return the bits of numbers that hold the scores of reads up to this length with any reference: 16 or 32; 0 if 32 do not suffice.

    Impossible cells have the least number, to which sums add less than the gain of a whole read. The best alignment scores at least as much
    as all read bases unpaired or mismatched, and its prefixes at least that minus the gain.
    """
    gain = longest_pattern * rules.maximum_gain
    return next((bits for bits in (16, 32) if rules.maximum_loss(longest_pattern) + 2 * gain < 2 ** (bits - 1) - 1), 0)


def windows(
    rules: GapRules, score: NDArray[np.int32], text_end: NDArray[np.int32], pattern_lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (n,) reference positions before which no alignment that ends at `text_end` with `score` begins.

    Pairs gain at most the matrix's maximum per read base; the excess over the score can pay for unpaired reference bases. 0 in mode PREFIX.
    """
    import numpy as np  # parameters are described without loading NumPy

    if rules.mode == PREFIX:
        return np.zeros(len(score), np.int64)
    spare = pattern_lengths * rules.maximum_gain - score
    reach = pattern_lengths + spare // rules.gap_extend if rules.gap_extend else np.asarray(text_end, np.int64)
    return np.where(score == NO_ALIGNMENT, 0, np.maximum(0, text_end - reach))
