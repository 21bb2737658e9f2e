"""k-means: the layouts and the arithmetic that both backends share.

Points and weights are whole numbers, so that sums over clusters are exact in any order; what is compared are expressions of float64 that
are fixed to the last bit. So labels, sums and centroids are the same on every device, however the items were divided.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.vector_layouts import VectorArrays

__all__ = [
    "AT_THE_END",
    "IN_PIECES",
    "LOW_BITS",
    "NEVER",
    "POINTS_OF_RUN",
    "Assigned",
    "Assigner",
    "PointSums",
    "Rounds",
    "Tally",
    "VectorSums",
    "VectorTerms",
    "keep_empty",
    "moved_centroids",
    "movement",
    "rounds_through_host",
    "sums_of",
    "tally_through_host",
    "total_sums",
]

NEVER, AT_THE_END, IN_PIECES = range(3)
"""When an assignment tells sums: never, of all items at its end, or as often as the end moves of those between."""
POINTS_OF_RUN = 256
"""Points are divided in runs of so many: what is told of them ends with one."""
LOW_BITS = 21
"""Of a sum, when it is squared: a sum is high * 2^21 + low, and the products of such halves can be added up in 64 bits."""

_WEIGHT_BITS = 11  # of a key with its weight, which is at most UNIT_LENGTH


class PointSums(NamedTuple):
    """What the points of each of k clusters add up to: `sums` (k, d) int64, `counts` (k,) int64."""

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    def centroids(self) -> NDArray[np.float64]:
        """(k, d): the means; zeros of clusters without a point."""
        return self.sums / np.maximum(self.counts, 1)[:, None].astype(np.float64)


class VectorTerms(NamedTuple):
    """Of each centroid, for the value of a vector x to it, ``dot(x, sum) * factor - square``: `factor` is 2 / count, `square` its squared
    length. Both (k,) float64. A cluster without a vector has the value of minus infinity."""

    factor: NDArray[np.float64]
    square: NDArray[np.float64]


class VectorSums(NamedTuple):
    """What the sparse vectors of each of k clusters add up to. As centroids: the sums divided by the counts.

    Attributes
    ----------
    keys : (m,) int64, ascending: bin * k + cluster. sums : (m,) int64, positive. counts : (k,) int64.
    """

    keys: NDArray[np.int64]
    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    def centroids(self) -> VectorSums:
        """Itself: centroids are kept as sums and counts."""
        return self

    def terms(self) -> VectorTerms:
        """Both terms of each centroid's value."""
        k = len(self.counts)
        clusters = self.keys % k
        high, low = self.sums >> LOW_BITS, self.sums & ((1 << LOW_BITS) - 1)
        squares = np.zeros((3, k), np.int64)
        for square, product in zip(squares, (high * high, high * low, low * low), strict=True):
            np.add.at(square, clusters, product)
        whole = squares[0] * 2.0 ** (2 * LOW_BITS) + squares[1] * 2.0 ** (LOW_BITS + 1) + squares[2]
        n = np.maximum(self.counts, 1).astype(np.float64)
        return VectorTerms(np.where(self.counts > 0, 2.0 / n, 0.0), np.where(self.counts > 0, whole / n / n, np.inf))

    def of(self, clusters: NDArray[np.bool_]) -> VectorSums:
        """Those of chosen clusters alone, (k,) bool; the others have nothing."""
        chosen = clusters[self.keys % len(self.counts)]
        return VectorSums(self.keys[chosen], self.sums[chosen], np.where(clusters, self.counts, 0))


class Assigned(NamedTuple):
    """How far an assignment is: `end`, and, where they are told, the sums of the items since the last that were told."""

    end: int
    sums: Any = None


class Rounds(NamedTuple):
    """Result of rounds.

    Attributes
    ----------
    n : rounds that were done. centroids : those to which the last assigned. sums : what came of it. changed : labels that differ from those
        of the round before.
    """

    n: int
    centroids: Any
    sums: Any
    changed: int


class Tally(NamedTuple):
    """What a round comes to of some items, whose labels stay where they are: their sums, and how many labels changed."""

    sums: Any
    changed: int


class Assigner(Protocol):
    """Points or vectors on a device, as `PointMeans` and `VectorMeans` of both backends are."""

    def assign(
        self, centroids: Any, labels: NDArray[np.int32], distances: NDArray[np.float64], first: int, last: int, told: int
    ) -> Generator[Assigned, None, None]:
        """See there."""


def total_sums(parts: Sequence[Any]) -> Any:
    """What several parts of the items add up to."""
    if len(parts) == 1:
        return parts[0]
    counts = np.sum([part.counts for part in parts], axis=0)
    if isinstance(parts[0], PointSums):
        return PointSums(np.sum([part.sums for part in parts], axis=0), counts)
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.concatenate([part.sums for part in parts])[order]
    return VectorSums(keys[firsts], np.add.reduceat(sums, firsts) if len(firsts) else sums, counts)


def keep_empty(old: Any, sums: PointSums | VectorSums) -> Any:
    """The centroids of sums; a cluster that has none of the items keeps its old one."""
    empty = sums.counts == 0
    if not empty.any():
        return sums.centroids()
    if isinstance(sums, PointSums):
        return np.where(empty[:, None], old, sums.centroids())
    return total_sums([sums, old.of(empty)])


def movement(old: Any, new: Any) -> float:
    """How far all centroids moved: the sum of the squared distances."""
    if isinstance(old, VectorSums):
        k = len(old.counts)
        one, other = (part.sums / part.counts[part.keys % k] for part in (old, new))
        keys = np.union1d(old.keys, new.keys)
        difference = np.zeros(len(keys))
        difference[np.searchsorted(keys, old.keys)] = one
        difference[np.searchsorted(keys, new.keys)] -= other
        return float(np.sum(difference * difference))
    moved = np.zeros(len(old))
    for column in range(old.shape[1]):  # one after the other, as a card adds them up
        difference = new[:, column] - old[:, column]
        moved += difference * difference
    return float(moved.sum())


def moved_centroids(old: VectorSums, new: VectorSums) -> NDArray[np.bool_]:
    """(k,): those of the new that are not to the last unit what they were."""
    k = len(new.counts)
    is_moved = old.counts != new.counts
    is_moved |= np.bincount(old.keys % k, minlength=k) != np.bincount(new.keys % k, minlength=k)
    if len(old.keys) and len(new.keys):
        places = np.minimum(np.searchsorted(old.keys, new.keys), len(old.keys) - 1)
        is_same = (old.keys[places] == new.keys) & (old.sums[places] == new.sums)
        is_moved[new.keys[~is_same] % k] = True
    return is_moved


def sums_of(vectors: VectorArrays, labels: NDArray[np.integer], k: int, first: int, last: int) -> VectorSums:
    """What the vectors `first:last` of each cluster add up to; those with a negative label are in none."""
    elements = slice(int(vectors.offsets[first]), int(vectors.offsets[last]))
    of_elements = np.repeat(labels[first:last].astype(np.int64), np.diff(vectors.offsets[first : last + 1]))
    keys = (vectors.bins[elements] * np.int64(k) + of_elements) << _WEIGHT_BITS | vectors.weights[elements]
    keys = np.sort(keys[of_elements >= 0])
    weights = keys & ((1 << _WEIGHT_BITS) - 1)
    keys >>= _WEIGHT_BITS
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    own = labels[first:last]
    return VectorSums(keys[firsts], np.add.reduceat(weights, firsts) if len(firsts) else weights, np.bincount(own[own >= 0], minlength=k))


def tally_through_host(
    search: Assigner, centroids: Any, previous: Any, labels: NDArray[np.int32], first: int, last: int, *, is_labelled: bool
) -> Generator[None, None, Tally]:
    """A round with the items `first:last`.

    Parameters
    ----------
    previous : the centroids of the round before, None in the first, which changes all labels. labels : (n,) int32, to fill.
    is_labelled : whether `labels` are those of the round before; they are made again where they are not.

    Yields
    ------
    Several times, so that one may look at a cancel.
    """
    nowhere, parts = np.empty(0), list[Any]()
    if previous is not None and not is_labelled:
        for _ in search.assign(previous, labels, nowhere, first, last, NEVER):
            yield
    before = labels[first:last].copy()
    for assigned in search.assign(centroids, labels, nowhere, first, last, AT_THE_END):
        if assigned.sums is not None:
            parts.append(assigned.sums)
        yield
    changed = last - first if previous is None else int(np.count_nonzero(labels[first:last] != before))
    return Tally(total_sums(parts), changed)


def rounds_through_host(
    search: Assigner, centroids: Any, labels: NDArray[np.int32], rounds: int, tolerance: float
) -> Generator[int, None, Rounds]:
    """Rounds one after the other, with centroids that come from the sums each time.

    Parameters
    ----------
    labels : (n,) int32, those of the round before, or -2; to fill. tolerance : centroids that move no further, squared and all together,
        end it; 0: only labels do, when none changes.

    Yields
    ------
    The rounds that are done, several times in each. It ends before there is a cluster without an item to be seen to.
    """
    n, nowhere = len(labels), np.empty(0)
    for number in range(1, rounds + 1):
        before, parts = labels.copy(), list[Any]()
        for assigned in search.assign(centroids, labels, nowhere, 0, n, AT_THE_END):
            if assigned.sums is not None:
                parts.append(assigned.sums)
            yield number - 1
        sums, changed = total_sums(parts), int(np.count_nonzero(labels != before))
        if number == rounds or changed == 0 or not sums.counts.all():
            break
        following = sums.centroids()
        if tolerance > 0.0 and movement(centroids, following) <= tolerance:
            break
        centroids = following
    return Rounds(number, centroids, sums, changed)
