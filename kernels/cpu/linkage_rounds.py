"""Complete and average linkage of connected components of any size, computed in rounds on a device.

Clusters of both linkages lie within the connected components of sufficient similarity. A component of at most `maximum_members` vectors is
a group, which is finished in one round. A larger component is divided: its vectors are cut into chunks, and each chunk is clustered at half
the linkage distance. Each cluster becomes one vector, the normalised sum of its members (its 480 largest elements), with the index and the
comparison window of its member with the smallest index. This repeats until few enough vectors remain; if more than nine tenths remain after
a round, the chunks are clustered at the full distance, and the component is finished.

All values are integers that are computed on the host, so that partitions are identical on all devices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import SIMILARITY_UNITS, UNIT_LENGTH, Groups, Linkage, VectorArrays
from proteoscope.kernels.cpu.vector_sums import sum_vectors

__all__ = ["LinkageRounds"]

_MAXIMUM_ELEMENTS = 480  # maximum elements of a vector that represents a group: rows of the smallest table on a GPU
_COUNT_BITS = 22  # sums of similarities of two clusters with up to 2**22 vectors together fit into 63 bits


class LinkageRounds:
    """Rounds of a linkage of the vectors `first : first + len(roots)`.

    ::

        rounds = LinkageRounds(vectors, ends, roots, first, linkage)
        while (groups := rounds.groups()) is not None:
            rounds.take(labels of the members of the groups)
        rounds.labels

    Parameters
    ----------
    vectors, ends
        All vectors, and the end (exclusive) of the comparison window of each.
    roots
        Smallest index of the vectors in the component of each vector.

    Attributes
    ----------
    labels
        (len(roots),) int64, smallest index of the vectors in the cluster of each vector, for finished components.
    """

    def __init__(self, vectors: VectorArrays, ends: NDArray[np.int64], roots: NDArray[np.int64], first: int, linkage: Linkage) -> None:
        self._linkage, self._first, self._first_ends = linkage, first, ends
        self.labels = np.arange(first, first + len(roots))
        has_others = np.bincount(roots - first, minlength=len(roots))[roots - first] > 1
        chosen = np.flatnonzero(has_others)
        self._members = first + chosen[np.argsort(roots[chosen], kind="stable")]
        self._starts = _starts_of_groups(roots[self._members - first])
        # Items are vectors and later groups of vectors; `names` has the smallest index of the vectors of each item.
        self._vectors, self._ends = vectors, ends
        self._names, self._counts = self._members, np.ones(len(self._members), np.int64)
        self._is_last = np.zeros(len(self._starts) - 1, bool)
        self._vector_numbers, self._items = self._members, np.arange(len(self._members))

    def groups(self) -> Groups | None:
        """Return the groups to cluster in the next round, or None."""
        sizes, most, least = np.diff(self._starts), self._linkage.maximum_members, self._linkage.least
        if not len(sizes):
            return None
        chunks = -(-sizes // most)
        starts = np.repeat(self._starts[:-1], chunks) + most * _ranks(chunks)
        self._is_final = (chunks == 1) | self._is_last
        units = np.where(self._is_final, _units(least), _units(1.0 - (1.0 - least) / 2.0))
        totals = np.add.reduceat(self._counts, self._starts[:-1])
        shifts = np.maximum(0, np.frexp(totals.astype(np.float64))[1] - _COUNT_BITS)
        counts = np.maximum(1, self._counts >> np.repeat(shifts, sizes))
        return Groups(
            self._vectors,
            self._ends,
            self._members,
            np.append(starts, self._starts[-1]),
            np.repeat(units, chunks).astype(np.int32),
            counts.astype(np.int32),
        )

    def take(self, labels: NDArray[np.integer]) -> None:
        """Store the labels of a round for finished components; prepare the groups of the next round from all other labels."""
        sizes = np.diff(self._starts)
        component = np.repeat(np.arange(len(sizes)), sizes)
        is_done = self._is_final[component]
        chosen = is_done[self._items]
        self.labels[self._vector_numbers[chosen] - self._first] = self._names[labels[self._items[chosen]]]
        self._vector_numbers, self._items = self._vector_numbers[~chosen], self._items[~chosen]
        self._divide(labels, component, sizes, ~is_done)

    def _divide(
        self, labels: NDArray[np.integer], component: NDArray[np.int64], sizes: NDArray[np.int64], is_remaining: NDArray[np.bool_]
    ) -> None:
        """Replace the vectors of components that are too large (`is_remaining`) by one vector for each of their clusters."""
        numbers = np.arange(len(labels))
        clusters = np.bincount(component[is_remaining & (labels == numbers)], minlength=len(sizes))
        is_stuck = clusters * 10 > sizes * 9
        labels = np.where(is_stuck[component], numbers, labels)
        is_head = is_remaining & (labels == numbers)
        of_item = (np.cumsum(is_head) - 1)[labels]  # index of the remaining items
        self._items = of_item[self._items]
        self._vectors = _sums(
            self._vectors, self._members[is_remaining], of_item[is_remaining], self._counts[is_remaining], int(is_head.sum())
        )
        counts = np.bincount(of_item[is_remaining], self._counts[is_remaining], minlength=int(is_head.sum()))
        self._counts, self._names, component = counts.astype(np.int64), self._names[is_head], component[is_head]
        self._members, self._starts = np.arange(len(component)), _starts_of_groups(component)
        self._is_last = is_stuck[component[self._starts[:-1]]]
        reach = self._first_ends[self._names]
        stride = len(self._first_ends) + 1
        self._ends = np.searchsorted(component * stride + self._names, component * stride + reach).astype(np.int64)


def _units(similarity: float) -> int:
    """Return a similarity in `SIMILARITY_UNITS`, at least 1; 0 is reserved for vectors that must not be compared."""
    return max(1, int(similarity * SIMILARITY_UNITS + 0.5))


def _starts_of_groups(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of segments of equal values, followed by the number of values."""
    return np.append(np.flatnonzero(np.diff(values, prepend=-1)), len(values)).astype(np.int64)


def _ranks(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, … for each segment of the given lengths, concatenated."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _sums(
    vectors: VectorArrays, members: NDArray[np.int64], of_member: NDArray[np.int64], counts: NDArray[np.int64], n: int
) -> VectorArrays:
    """Return n normalised sums of weighted members; `of_member` is the index of the sum to which each member is added."""
    order = np.argsort(of_member, kind="stable")
    chosen = members[order]
    starts = np.concatenate(([0], np.cumsum(np.bincount(of_member, minlength=n)))).astype(np.int64)
    workspace = int((vectors.offsets[chosen + 1] - vectors.offsets[chosen]).sum())
    sums = VectorArrays(np.zeros(n + 1, np.int64), np.empty(workspace, np.int32), np.empty(workspace, np.int16))
    n_bins = int(vectors.bins.max(initial=-1)) + 1
    sum_vectors(vectors, n_bins, chosen, starts, counts[order], float(UNIT_LENGTH), _MAXIMUM_ELEMENTS, sums)
    end = int(sums.offsets[-1])
    return VectorArrays(sums.offsets, sums.bins[:end].copy(), sums.weights[:end].copy())
