"""Candidate positions of reads, the best one, and its confidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BestPlaces", "CandidatePlaces", "are_elsewhere", "best_places", "mapping_qualities"]

MAXIMUM_QUALITY = 60
_QUALITY_OF_DIFFERENCE, _QUALITY_OF_VOTE = 20, 10


class CandidatePlaces(NamedTuple):
    """Candidate positions of the reads of a round, all (candidates,) int64.

    Attributes
    ----------
    read
        Number within the round.
    is_other
        1 for the reverse complement.
    text, begin, end
        Window in a reference.
    votes
        Number of supporting minimisers.
    """

    read: NDArray[np.int64]
    is_other: NDArray[np.int64]
    text: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    votes: NDArray[np.int64]

    def some(self, chosen: NDArray[Any]) -> CandidatePlaces:
        """Return selected candidates."""
        return CandidatePlaces(*(column[chosen] for column in self))

    def joined(self, more: CandidatePlaces) -> CandidatePlaces:
        """Merge candidates read by read."""
        if not len(more.read):
            return self
        every = CandidatePlaces(*map(np.concatenate, zip(self, more, strict=True)))
        return every.some(np.argsort(every.read, kind="stable"))


class BestPlaces(NamedTuple):
    """Best positions of reads.

    Attributes
    ----------
    read, place
        Indices of reads and of their candidates.
    lead
        Score lead over the best other position, -1 without one.
    rivals
        Number of other positions.
    """

    read: NDArray[np.int64]
    place: NDArray[np.int64]
    lead: NDArray[np.int64]
    rivals: NDArray[np.int64]


def are_elsewhere(
    places: CandidatePlaces, ends: NDArray[np.int64], lengths: NDArray[np.int64], first: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return True for candidates at different positions of a read; alignments that end within half a read are at one position."""
    is_near = np.abs(ends[first] - ends[other]) * 2 < lengths[places.read[first]]
    return (places.text[first] != places.text[other]) | (places.is_other[first] != places.is_other[other]) | ~is_near


def best_places(places: CandidatePlaces, scores: NDArray[np.int32], ends: NDArray[np.int64], lengths: NDArray[np.int64]) -> BestPlaces:
    """Return the position of each read with the best score; ties prefer the first reference, the first end, then the + strand.

    Parameters
    ----------
    places
        Read by read.
    scores, ends
        Score of the alignment in each window, and its end in the reference.
    lengths
        (reads,) bases.
    """
    order = np.lexsort((places.is_other, ends, places.text, -scores.astype(np.int64), places.read))
    reads, starts = np.unique(places.read[order], return_index=True)
    place = order[starts]
    of_place = np.repeat(place, np.diff(np.append(starts, len(order))))
    is_elsewhere = are_elsewhere(places, ends, lengths, order, of_place)
    # The first of the others in this order is the best of them.
    others = np.flatnonzero(is_elsewhere)
    with_others, first = np.unique(places.read[order[others]], return_index=True)
    at = np.searchsorted(reads, with_others)
    lead = np.full(len(reads), -1, np.int64)
    lead[at] = scores[place[at]].astype(np.int64) - scores[order[others[first]]]
    rivals = np.bincount(np.searchsorted(reads, places.read[order[others]]), minlength=len(reads))
    return BestPlaces(reads, place, lead, rivals)


def mapping_qualities(lead: NDArray[np.int64], rivals: NDArray[np.int64], votes: NDArray[np.int64], difference: int) -> NDArray[np.int32]:
    """Return mapping qualities, -10 log10 of the probability of a wrong position, 0 to 60.

    It is the least of 60, 10 per supporting minimiser, and 20 per mismatch that would make another position as good, minus 10 log10 of the
    number of other positions; 0 for equally good positions.

    Parameters
    ----------
    lead
        Score lead over the best other position, -1 without one.
    rivals
        Number of other positions.
    votes
        Number of supporting minimisers.
    difference
        Score change of one base.

    >>> mapping_qualities(np.array([-1, -1, 0, 5, 5]), np.array([0, 0, 1, 1, 3]), np.array([9, 2, 9, 9, 9]), 5).tolist()
    [60, 20, 0, 20, 15]
    """
    quality = np.minimum(MAXIMUM_QUALITY, _QUALITY_OF_VOTE * votes).astype(np.float64)
    by_lead = _QUALITY_OF_DIFFERENCE * lead / difference
    quality = np.where(lead >= 0, np.minimum(quality, by_lead) - 10 * np.log10(np.maximum(1, rivals)), quality)
    return np.maximum(0, np.floor(quality)).astype(np.int32)
