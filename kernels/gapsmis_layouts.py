"""What alignments with a bounded number of gaps are computed from and what they give, the same for the processor and for CUDA.

Definition. An alignment of a pattern with a text pairs letters in order; a run of letters of one of the two that have no partner is a gap,
and of a gap in the text and one in the pattern that follow each other each counts. The score is the sum of the matrix over the pairs, less
``gap_open + k * gap_extend`` for each gap of k letters. Looked for is the greatest score of all alignments that the mode allows and that
have at most `maximum_gaps` gaps.

One alignment of several with that score is chosen by this rule, on every device: the one that ends first in the text, then first in the
pattern (mode LOCAL); of these one with the fewest gaps; and of these the one that is found going backwards from the end, by taking at each
step the first that keeps the score of: to begin the alignment here, a pair, a letter of the pattern alone, a letter of the text alone; a
gap is left as soon as that keeps the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "LETTERS",
    "LOCAL",
    "MAXIMUM_GAPS",
    "NO_ALIGNMENT",
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
"""The whole pattern with a prefix of the text; the whole pattern with any part of the text; a part of the pattern, whose score must be
above zero, with any part of the text."""
SINGLE_PASS = 2, 64
"""Texts of up to twice the pattern and 64 letters are traced in one pass."""
LETTERS = 31
"""Codes of letters are below this."""
MAXIMUM_GAPS = 30
NO_ALIGNMENT = -(1 << 31)
"""The score of a pair that has no alignment."""


class Sequences(NamedTuple):
    """Texts or patterns: `codes` int8 of all letters, `offsets` (n + 1,) int64 where each begins."""

    codes: NDArray[np.int8]
    offsets: NDArray[np.int64]


class GapRules(NamedTuple):
    """What an alignment may be, and what it scores.

    Attributes
    ----------
    matrix : (letters, letters) int32, by the codes of the pattern's and of the text's letter.
    gap_open, gap_extend : at least 0; a gap of k letters costs ``gap_open + k * gap_extend``. maximum_gaps : at most `MAXIMUM_GAPS`.
    mode : PREFIX, WITHIN or LOCAL.
    seed_length : so many letters at the beginning of the pattern are paired with the same letters, without a gap. In mode LOCAL the
        alignment then begins where the pattern does.
    is_published : the recurrence as Carroll prints it, mode PREFIX alone: a gap may only lead away from the main diagonal, so that an
        alignment that has once more letters of the text than of the pattern has so to its end, and the other way round.
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
        """The greatest score of a pair of letters, or 0."""
        return max(0, int(self.matrix.max(initial=0)))

    def maximum_loss(self, pattern_length: Any) -> Any:
        """The best alignment of a pattern of this length, or of each of these, does not score less than this below 0.

        All its letters may be alone, or, without gaps, badly paired.
        """
        return pattern_length * max(self.gap_extend, -int(self.matrix.min(initial=0))) + self.gap_open + self.gap_extend


class Alignments(NamedTuple):
    """What is found, a row for each pair of a text and a pattern, all int32.

    `score`, `NO_ALIGNMENT` where there is none, and then the rest is -1; `text_start`, `text_end`, `pattern_start`, `pattern_end` (places
    counted from 0, the end exclusive); `gaps`; `runs` (n, 2 * maximum_gaps + 1): pairs, gap, pairs, gap, pairs and so on: how many letters
    are paired, then how many letters of the pattern are alone (above 0) or of the text (below 0). Pairs may be 0; zeros follow.
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
        """Of `n` pairs, none of which has an alignment."""
        import numpy as np  # here: parameters, bounded by `MAXIMUM_GAPS`, are listed without it

        one, two, three, four, five = (np.full(n, -1, np.int32) for _ in range(5))
        return cls(np.full(n, NO_ALIGNMENT, np.int32), one, two, three, four, five, np.zeros((n, 2 * maximum_gaps + 1), np.int32))


def score_bits(rules: GapRules, longest_pattern: int) -> int:
    """Bits of the numbers that hold the scores of patterns up to this length, whatever the text: 16 or 32; 0 where 32 do not either.

    What is not possible is kept as the least number, to which sums add less than the gain of a whole pattern. The best alignment scores no
    less than all letters of the pattern alone or badly paired, and what leads to it no less than that less the gain.
    """
    gain = longest_pattern * rules.maximum_gain
    return next((bits for bits in (16, 32) if rules.maximum_loss(longest_pattern) + 2 * gain < 2 ** (bits - 1) - 1), 0)


def windows(
    rules: GapRules, score: NDArray[np.int32], text_end: NDArray[np.int32], pattern_lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(n,) the place of the text before which no alignment begins that ends at `text_end` with `score`.

    The pairs gain no more than the matrix's greatest score for each letter of the pattern; what is above the score can pay for letters of
    the text alone. 0 in mode PREFIX.
    """
    import numpy as np  # parameters are described without loading NumPy

    if rules.mode == PREFIX:
        return np.zeros(len(score), np.int64)
    spare = pattern_lengths * rules.maximum_gain - score
    reach = pattern_lengths + spare // rules.gap_extend if rules.gap_extend else np.asarray(text_end, np.int64)
    return np.where(score == NO_ALIGNMENT, 0, np.maximum(0, text_end - reach))
