"""Candidate places of reads, which of them is best, and how sure that is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BestPlaces", "CandidatePlaces", "are_elsewhere", "best_places", "mapping_qualities"]

MAXIMUM_QUALITY = 60
_QUALITY_OF_DIFFERENCE, _QUALITY_OF_VOTE = 20, 10


class CandidatePlaces(NamedTuple):
    """Candidate places of the reads of a round, all (candidates,) int64.

    `read`: number within the round. `is_other`: 1 where the reverse complement is placed. `text`, `begin`, `end`: the window. `votes`:
    minimisers that tell it.
    """

    read: NDArray[np.int64]
    is_other: NDArray[np.int64]
    text: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    votes: NDArray[np.int64]

    def some(self, chosen: NDArray[Any]) -> CandidatePlaces:
        """Some of them."""
        return CandidatePlaces(*(column[chosen] for column in self))

    def joined(self, more: CandidatePlaces) -> CandidatePlaces:
        """These and more of them, read by read."""
        if not len(more.read):
            return self
        every = CandidatePlaces(*map(np.concatenate, zip(self, more, strict=True)))
        return every.some(np.argsort(every.read, kind="stable"))


class BestPlaces(NamedTuple):
    """The best places of some reads.

    `read`, `place`: numbers of the reads and of their places. `lead`: of the score before the best at another place, -1 where there is
    none. `rivals`: other places.
    """

    read: NDArray[np.int64]
    place: NDArray[np.int64]
    lead: NDArray[np.int64]
    rivals: NDArray[np.int64]


def are_elsewhere(
    places: CandidatePlaces, ends: NDArray[np.int64], lengths: NDArray[np.int64], one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether candidates are at another place than others of the same read: alignments that end within half a read are at one place."""
    is_near = np.abs(ends[one] - ends[other]) * 2 < lengths[places.read[one]]
    return (places.text[one] != places.text[other]) | (places.is_other[one] != places.is_other[other]) | ~is_near


def best_places(places: CandidatePlaces, scores: NDArray[np.int32], ends: NDArray[np.int64], lengths: NDArray[np.int64]) -> BestPlaces:
    """Of each read the place with the best score; of several the first text, then the first that ends, then the + strand.

    Parameters
    ----------
    places : read by read. scores, ends : of the alignment in each window, its end on the text. lengths : (reads,) letters of each.
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
    """How sure the places are, as -10 log10 of the chance that they are wrong, 0 to 60.

    It is the least of 60, 10 for each minimiser that tells the place, and 20 for each letter that would have to be another to be as good at
    another place, less 10 log10 of the number of other places; 0 where another is as good.

    Parameters
    ----------
    lead : of the score before the best at another place, -1 where there is none. rivals : other places. votes : minimisers that tell it.
    difference : what one letter changes in the score.

    >>> mapping_qualities(np.array([-1, -1, 0, 5, 5]), np.array([0, 0, 1, 1, 3]), np.array([9, 2, 9, 9, 9]), 5).tolist()
    [60, 20, 0, 20, 15]
    """
    quality = np.minimum(MAXIMUM_QUALITY, _QUALITY_OF_VOTE * votes).astype(np.float64)
    by_lead = _QUALITY_OF_DIFFERENCE * lead / difference
    quality = np.where(lead >= 0, np.minimum(quality, by_lead) - 10 * np.log10(np.maximum(1, rivals)), quality)
    return np.maximum(0, np.floor(quality)).astype(np.int32)
