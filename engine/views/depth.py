"""Depth of coverage along a sequence: how many alignments cover each of its letters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Depth"]


@dataclass(frozen=True)
class Depth:
    """The depth of a sequence's letters, as runs of letters of the same depth; m runs.

    A million alignments have at most two million runs, however long the sequence is, so that any part of it is summed up at once.

    Attributes
    ----------
    name, length : of the sequence. n_alignments : that cover some of it.
    first : (m,) int64, ascending: the first letter of each run, counted from 1. depth : (m,) int32.
    """

    name: str
    length: int
    n_alignments: int
    first: NDArray[np.int64]
    depth: NDArray[np.int32]

    @classmethod
    def of_ranges(cls, name: str, length: int, start: NDArray[np.integer], end: NDArray[np.integer]) -> Depth:
        """From the first and the last letter that each alignment covers.

        >>> depth = Depth.of_ranges("t", 10, np.array([2, 4]), np.array([5, 8]))
        >>> depth.first.tolist(), depth.depth.tolist()
        ([1, 2, 4, 6, 9], [0, 1, 2, 1, 0])
        """
        starts, stops = np.sort(start), np.sort(end) + 1
        # Sorted and compared with the one before: NumPy's union takes a hundred times as long.
        first = np.sort(np.concatenate(([1], starts, stops)).astype(np.int64))
        first = first[np.concatenate(([True], np.diff(first) > 0)) & (first <= length)]
        depth = np.searchsorted(starts, first, "right") - np.searchsorted(stops, first, "right")
        found = cls(name, length, len(start), first, depth.astype(np.int32))
        # Summed now, in the thread that reads the table.
        _ = found._before
        return found

    @cached_property
    def _before(self) -> NDArray[np.float64]:
        """(m,) sum of the depths of all letters before a run."""
        return np.concatenate(([0.0], np.cumsum(self.depth[:-1] * np.diff(self.first), dtype=np.float64)))

    @property
    def mean(self) -> float:
        """Of all letters."""
        return float(self.parts(np.array([0.5, self.length + 0.5]))[0][0])

    @property
    def most(self) -> int:
        """The depth of the deepest letter."""
        return int(self.depth.max(initial=0))

    @property
    def covered(self) -> float:
        """Part of the letters that an alignment covers."""
        return float(np.diff(self.first, append=self.length + 1)[self.depth > 0].sum() / self.length)

    def parts(self, edges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Mean and greatest depth of parts of the sequence.

        Parameters
        ----------
        edges : (n + 1,) ascending, from 0.5 to the length and a half: the letter i reaches from i - 0.5 to i + 0.5.

        Returns
        -------
        (n,) each.
        """
        left = self.first - 0.5
        run = np.maximum(np.searchsorted(left, edges, "right") - 1, 0)
        summed = self._before[run] + self.depth[run] * (edges - left[run])
        # Runs that begin in a part, from the one that reaches into it; the last of them may go on in the next part.
        last = np.maximum(np.searchsorted(left, edges[1:], "left") - 1, 0)
        begun = np.maximum.reduceat(self.depth[: last[-1] + 1], run[:-1])
        return np.diff(summed) / np.diff(edges), np.maximum(begun, self.depth[last])
