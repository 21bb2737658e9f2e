"""Positions of mates: the two reads from the ends of one fragment, which point towards each other and are mapped together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, row_mask
from proteoscope.engine.read_alignment.candidate_positions import BestPositions, CandidatePositions, are_at_different_positions
from proteoscope.engine.read_alignment.results import AlignmentRows
from proteoscope.kernels.gapsmis_layouts import Alignments

__all__ = ["InsertRange", "joint_choice", "learn_insert_sizes", "proper_pairs", "rescue_windows"]

_MINIMUM_PAIRS, _MINIMUM_QUALITY = 20, 30
_DEFAULT_MOST = 1000
_MAXIMUM_LEARNT = 100_000
_SPREADS = 3  # interquartile ranges beyond the quartiles: 4.7 standard deviations from the mean of a normal distribution
_DIFFERENCES_OF_PAIR = 4
"""Score bonus of a proper pair, as a number of mismatches."""


class InsertRange(NamedTuple):
    """Range of fragment lengths, measured between the outer ends of both reads.

    Attributes
    ----------
    least, most : int
        Minimum and maximum length in bases.
    pairs : int
        Number of pairs from which the range was estimated, 0 if it was not estimated.
    """

    least: int
    most: int
    pairs: int = 0

    @property
    def sentence(self) -> str:
        """Sentence that describes the range."""
        learnt = f"as {self.pairs:,} pairs are" if self.pairs else f"assumed: fewer than {_MINIMUM_PAIRS} pairs are well mapped"
        return f"Mates are paired at distances from {self.least:,} to {self.most:,} bases, {learnt}"

    def contain(self, lengths: NDArray[np.int64], tolerance: int = 0) -> NDArray[np.bool_]:
        """Return True for each fragment length within the range, extended by `tolerance` bases on both sides."""
        return (lengths >= self.least - tolerance) & (lengths <= self.most + tolerance)


def learn_insert_sizes(rows: AlignmentRows) -> InsertRange:
    """Return the estimated range of fragment lengths, or a default range if there are too few well-mapped pairs.

    The range extends from the lower to the upper quartile of well-mapped pairs, and three interquartile ranges further on each side.
    """
    result, quality = rows.alignments, rows.mapping_quality
    assert quality is not None
    first_mates, other = slice(0, None, 2), slice(1, None, 2)
    sure = (
        (quality[first_mates] >= _MINIMUM_QUALITY)
        & (quality[other] >= _MINIMUM_QUALITY)
        & (rows.reference_of[first_mates] == rows.reference_of[other])
    )
    lengths = _fragments(result, rows.is_reverse)
    lengths = lengths[sure & (rows.is_reverse[first_mates] != rows.is_reverse[other]) & (lengths > 0) & (lengths < _MAXIMUM_LEARNT)]
    if len(lengths) < _MINIMUM_PAIRS:
        return InsertRange(0, _DEFAULT_MOST)
    low, high = np.percentile(lengths, (25, 75), method="closest_observation").astype(np.int64).tolist()
    spread = _SPREADS * max(1, high - low)
    return InsertRange(max(0, low - spread), high + spread, len(lengths))


def _fragments(alignments: Alignments, is_reverse: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the length of each fragment, (pairs,): the distance from the start of its forward read to the end of its reverse read."""
    start, end = alignments.text_start.astype(np.int64), alignments.text_end.astype(np.int64)
    forward_start = np.where(is_reverse[0::2], start[1::2], start[0::2])
    return np.where(is_reverse[0::2], end[0::2], end[1::2]) - forward_start


def proper_pairs(
    reference_of: NDArray[np.int64], alignments: Alignments, is_reverse: NDArray[np.bool_], inserts: InsertRange | None
) -> NDArray[np.bool_]:
    """Return True for each read that belongs to a proper pair of mates.

    Mates form a proper pair if they are on different strands of one reference and their fragment length is within the range.

    Parameters
    ----------
    reference_of : ndarray of int64, shape (reads,)
        Index of the reference of each read, -1 if unmapped.
    alignments : Alignments
        Alignment of each read.
    is_reverse : ndarray of bool, shape (reads,)
        True for reads on the reverse strand.
    inserts : InsertRange or None
        Range of fragment lengths; without it, no pair is proper.
    """
    first_mates, other = slice(0, None, 2), slice(1, None, 2)
    if inserts is None:
        return np.zeros(len(reference_of), np.bool_)
    are_placed = (
        (reference_of[first_mates] >= 0)
        & (reference_of[first_mates] == reference_of[other])
        & (is_reverse[first_mates] != is_reverse[other])
    )
    return np.repeat(are_placed & inserts.contain(_fragments(alignments, is_reverse)), 2)


def _first_candidates(positions: CandidatePositions, n: int) -> NDArray[np.int64]:
    """Return the index of the first candidate of each of the `n` reads, -1 without a candidate."""
    first = np.full(n, -1, np.int64)
    reads, at = np.unique(positions.read, return_index=True)
    first[reads] = at
    return first


def rescue_windows(
    positions: CandidatePositions, lengths: NDArray[np.int64], reference_lengths: NDArray[np.int64], inserts: InsertRange, tolerance: int
) -> CandidatePositions:
    """Return additional candidates, at most one per read: windows in which a read would form a proper pair with its mate.

    A window is returned for a read whose mate has a candidate, unless a candidate of the read already forms a proper pair with the first
    candidate of the mate.

    Parameters
    ----------
    positions : CandidatePositions
        Candidates, ordered by read and then by decreasing votes; reads 2 i and 2 i + 1 are mates.
    lengths : ndarray of int64, shape (reads,)
        Length of each read in bases.
    reference_lengths : ndarray of int64, shape (references,)
        Length of each reference in bases.
    inserts : InsertRange
        Range of fragment lengths.
    tolerance : int
        Number of bases by which a window is extended on each side.
    """
    n = len(lengths)
    first = _first_candidates(positions, n)
    # Pair each candidate with the first candidate of the read's mate.
    mate = first[positions.read ^ 1]
    paired = np.flatnonzero(mate >= 0)
    mate = mate[paired]
    forward = np.where(positions.is_reverse[paired] == 1, mate, paired)
    reverse = np.where(positions.is_reverse[paired] == 1, paired, mate)
    is_proper = (positions.text[forward] == positions.text[reverse]) & (positions.is_reverse[paired] != positions.is_reverse[mate])
    is_proper &= inserts.contain(positions.end[reverse] - positions.begin[forward], 2 * tolerance)
    has_one = row_mask(n, positions.read[paired[is_proper]])
    read = np.flatnonzero(~has_one & (first[np.arange(n) ^ 1] >= 0) & (lengths > 0))
    mate_place = first[read ^ 1]
    length = lengths[read]
    is_after = positions.is_reverse[mate_place] == 0
    begin = np.where(is_after, positions.begin[mate_place] + inserts.least - length, positions.end[mate_place] - inserts.most) - tolerance
    end = np.where(is_after, positions.begin[mate_place] + inserts.most, positions.end[mate_place] - inserts.least + length) + tolerance
    text = positions.text[mate_place]
    begin, end = np.maximum(0, begin), np.minimum(reference_lengths[text], end)
    retained = np.flatnonzero(2 * (end - begin) > length)
    result = CandidatePositions(read, is_after.astype(np.int64), text, begin, end, positions.votes[mate_place])
    return result.some(retained)


def joint_choice(
    positions: CandidatePositions,
    scores: NDArray[np.int32],
    ends: NDArray[np.int64],
    lengths: NDArray[np.int64],
    inserts: InsertRange,
    difference: int,
    tolerance: int,
) -> BestPositions:
    """Return the best positions of mates: the two candidates with the highest sum of scores, with a bonus for proper pairs.

    If one mate has no candidate, the sum is the score of the other mate. Score advantages are differences of sums.

    Parameters
    ----------
    positions, scores, ends, lengths
        See `candidate_positions.best_positions`; reads 2 i and 2 i + 1 are mates.
    inserts : InsertRange
        Range of fragment lengths of proper pairs.
    difference : int
        Change of the score by one mismatched base.
    tolerance : int
        Number of bases by which the range of fragment lengths is extended.
    """
    n = len(lengths)
    first = _first_candidates(positions, n)
    count = np.bincount(positions.read, minlength=n)
    # Pair each candidate of a read with each candidate of its mate; a read without candidates counts as one unmapped candidate.
    ones, others = np.maximum(1, count[0::2]), np.maximum(1, count[1::2])
    sizes = np.where(count[0::2] + count[1::2] > 0, ones * others, 0)
    pair = np.repeat(np.arange(n // 2), sizes)
    _, within = ranges(np.zeros_like(sizes), sizes)
    steps = np.divmod(within, others[pair])
    first_mate, other = (np.where(first[2 * pair + k] >= 0, first[2 * pair + k] + step, -1) for k, step in enumerate(steps))
    both = (first_mate >= 0) & (other >= 0)
    starts = ends - lengths[positions.read]
    forward = np.where(positions.is_reverse[first_mate] == 1, other, first_mate)
    reverse = np.where(positions.is_reverse[first_mate] == 1, first_mate, other)
    is_proper = (
        both & (positions.text[first_mate] == positions.text[other]) & (positions.is_reverse[first_mate] != positions.is_reverse[other])
    )
    is_proper &= inserts.contain(ends[reverse] - starts[forward], tolerance)
    sums = sum(np.where(some >= 0, np.maximum(0, scores[some].astype(np.int64)), 0) for some in (first_mate, other))
    sums = sums + _DIFFERENCES_OF_PAIR * difference * is_proper
    ties = [column[some] for some in (other, first_mate) for column in (positions.is_reverse, ends, positions.text)]
    order = np.lexsort((*ties, -sums, pair))
    pairs, at = np.unique(pair[order], return_index=True)
    best = order[at]
    best_of = np.repeat(best, np.diff(np.append(at, len(order))))
    reads, chosen, leads, rivals = [], [], [], []
    for k, some in enumerate((first_mate, other)):
        mapped = np.flatnonzero(some[best] >= 0)
        is_elsewhere = (some[order] >= 0) & (some[best_of] >= 0)
        is_elsewhere &= are_at_different_positions(positions, ends, lengths, some[order], some[best_of])
        elsewhere = order[is_elsewhere]
        with_others, position = np.unique(pair[elsewhere], return_index=True)
        lead, where = np.full(len(pairs), -1, np.int64), np.searchsorted(pairs, with_others)
        lead[where] = sums[best[where]] - sums[elsewhere[position]]
        reads.append(2 * pairs[mapped] + k)
        chosen.append(some[best[mapped]])
        leads.append(lead[mapped])
        rivals.append(np.minimum(1, np.bincount(np.searchsorted(pairs, pair[elsewhere]), minlength=len(pairs)))[mapped])
    return BestPositions(*(np.concatenate(columns) for columns in (reads, chosen, leads, rivals)))
