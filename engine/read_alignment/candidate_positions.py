"""Candidate positions of reads, the best position of each read, and its mapping quality."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BestPositions", "CandidatePositions", "are_at_different_positions", "best_positions", "mapping_qualities"]

MAXIMUM_QUALITY = 60
_QUALITY_OF_DIFFERENCE, _QUALITY_OF_VOTE = 20, 10


class CandidatePositions(NamedTuple):
    """Candidate positions of the reads of a round; each column is int64 of shape (candidates,).

    Attributes
    ----------
    read
        Index of the read within the round.
    is_reverse
        1 for the reverse complement of the read, else 0.
    text
        Index of the reference.
    begin, end
        Window in the reference: first base, and one past the last base.
    votes
        Number of minimisers that support the position.
    """

    read: NDArray[np.int64]
    is_reverse: NDArray[np.int64]
    text: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    votes: NDArray[np.int64]

    def some(self, chosen: NDArray[Any]) -> CandidatePositions:
        """Return the selected candidates.

        Parameters
        ----------
        chosen : ndarray
            Indices or a mask of candidates.
        """
        return CandidatePositions(*(column[chosen] for column in self))

    def joined(self, more: CandidatePositions) -> CandidatePositions:
        """Return these candidates and those in `more`, ordered by read."""
        if not len(more.read):
            return self
        every = CandidatePositions(*map(np.concatenate, zip(self, more, strict=True)))
        return every.some(np.argsort(every.read, kind="stable"))


class BestPositions(NamedTuple):
    """Best positions of the reads that have a candidate.

    Attributes
    ----------
    read, candidate
        Index of each read, and index of its best candidate.
    lead
        Score advantage of the best candidate: its score minus the best score of a candidate at another position; -1 if there is none.
    rivals
        Number of candidates at other positions (see `are_at_different_positions`).
    """

    read: NDArray[np.int64]
    candidate: NDArray[np.int64]
    lead: NDArray[np.int64]
    rivals: NDArray[np.int64]


def are_at_different_positions(
    positions: CandidatePositions, ends: NDArray[np.int64], lengths: NDArray[np.int64], first: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return True for each pair of candidates of a read if the two candidates are at different positions.

    Two alignments on one strand of one reference are at the same position if their ends differ by less than half the length of the read.

    Parameters
    ----------
    positions : CandidatePositions
        All candidates.
    ends : ndarray of int64, shape (candidates,)
        End of each alignment in its reference.
    lengths : ndarray of int64, shape (reads,)
        Length of each read in bases.
    first, other : ndarray of int64, shape (n,)
        Indices of the candidates to compare; both are of the same read.
    """
    is_near = np.abs(ends[first] - ends[other]) * 2 < lengths[positions.read[first]]
    are_apart: NDArray[np.bool_] = (
        (positions.text[first] != positions.text[other]) | (positions.is_reverse[first] != positions.is_reverse[other]) | ~is_near
    )
    return are_apart


def best_positions(
    positions: CandidatePositions, scores: NDArray[np.int32], ends: NDArray[np.int64], lengths: NDArray[np.int64]
) -> BestPositions:
    """Return the candidate position with the highest score of each read.

    Among equal scores, the candidate with the lowest index of the reference is selected, then with the lowest end, then on the forward
    strand.

    Parameters
    ----------
    positions : CandidatePositions
        Candidates, ordered by read.
    scores, ends : ndarray, shape (candidates,)
        Score of the alignment in each window, and its end in the reference.
    lengths : ndarray of int64, shape (reads,)
        Length of each read in bases.
    """
    order = np.lexsort((positions.is_reverse, ends, positions.text, -scores.astype(np.int64), positions.read))
    reads, starts = np.unique(positions.read[order], return_index=True)
    position = order[starts]
    covers_positions = np.repeat(position, np.diff(np.append(starts, len(order))))
    is_elsewhere = are_at_different_positions(positions, ends, lengths, order, covers_positions)
    # In this order, the first of the other positions of a read is the best of them.
    others = np.flatnonzero(is_elsewhere)
    with_others, first = np.unique(positions.read[order[others]], return_index=True)
    at = np.searchsorted(reads, with_others)
    lead = np.full(len(reads), -1, np.int64)
    lead[at] = scores[position[at]].astype(np.int64) - scores[order[others[first]]]
    rivals = np.bincount(np.searchsorted(reads, positions.read[order[others]]), minlength=len(reads))
    return BestPositions(reads, position, lead, rivals)


def mapping_qualities(lead: NDArray[np.int64], rivals: NDArray[np.int64], votes: NDArray[np.int64], difference: int) -> NDArray[np.int32]:
    """Return mapping qualities: -10 log10 of the probability of a wrong position, from 0 to 60.

    The quality is the smallest of three numbers: 60; 10 times the number of supporting minimisers; and, if there are other positions, 20
    times the score advantage, expressed as a number of mismatches. If there are other positions, 10 log10 of their number is subtracted.
    A read with several equally good positions has the quality 0.

    Parameters
    ----------
    lead : ndarray of int64, shape (n,)
        Best score minus the best score at another position; -1 without another position.
    rivals : ndarray of int64, shape (n,)
        Number of other positions.
    votes : ndarray of int64, shape (n,)
        Number of supporting minimisers.
    difference : int
        Change of the score by one mismatched base.

    Examples
    --------
    >>> mapping_qualities(np.array([-1, -1, 0, 5, 5]), np.array([0, 0, 1, 1, 3]), np.array([9, 2, 9, 9, 9]), 5).tolist()
    [60, 20, 0, 20, 15]
    """
    quality = np.minimum(MAXIMUM_QUALITY, _QUALITY_OF_VOTE * votes).astype(np.float64)
    by_lead = _QUALITY_OF_DIFFERENCE * lead / difference
    quality = np.where(lead >= 0, np.minimum(quality, by_lead) - 10 * np.log10(np.maximum(1, rivals)), quality)
    return np.maximum(0, np.floor(quality)).astype(np.int32)
