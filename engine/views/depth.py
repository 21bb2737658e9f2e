"""Depth of alignments along a sequence, and its figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.figures import Bars, Figure, Panel, Picked
from proteoscope.engine.views.palette import Shade

__all__ = ["Depth", "depth_figure"]

_SMALLEST = 20.0
"""Minimum visible range, positions."""
_NEAR = 1.0
"""Number of pixels on both sides of the pointer whose positions are selected too."""
_PALE, _SOLID = Shade(-0.27), Shade(-0.8)
"""Colours of maximum and mean depth; opaque, because drawing many translucent bars is slow."""


@dataclass(frozen=True)
class Depth:
    """Depth of alignments along a sequence, stored as m segments of equal depth.

    A million alignments give at most about two million segments. The sum of the depth over any range needs only the ends of the range.

    Attributes
    ----------
    name, length
        Name and length (residues or bases) of the sequence.
    n_alignments
        Number of alignments to the sequence.
    first
        First position of each segment, from 1, ascending, shape (m,), int64.
    depth
        Depth of each segment, shape (m,), int32.
    """

    name: str
    length: int
    n_alignments: int
    first: NDArray[np.int64]
    depth: NDArray[np.int32]

    @classmethod
    def from_ranges(cls, name: str, length: int, start: NDArray[np.integer], end: NDArray[np.integer]) -> Depth:
        """Return the depth of alignments with the given first and last positions, shape (n,), from 1.

        >>> depth = Depth.from_ranges("t", 10, np.array([2, 4]), np.array([5, 8]))
        >>> depth.first.tolist(), depth.depth.tolist()
        ([1, 2, 4, 6, 9], [0, 1, 2, 1, 0])
        """
        starts, stops = np.sort(start), np.sort(end) + 1
        # Find unique values by sorting and comparing neighbours, since NumPy's union takes a hundred times as long.
        first = np.sort(np.concatenate(([1], starts, stops)).astype(np.int64))
        first = first[np.concatenate(([True], np.diff(first) > 0)) & (first <= length)]
        depth = np.searchsorted(starts, first, "right") - np.searchsorted(stops, first, "right")
        result = cls(name, length, len(start), first, depth.astype(np.int32))
        # Compute the cached sums now, in the thread that reads the table.
        _ = result._before
        return result

    @cached_property
    def _before(self) -> NDArray[np.float64]:
        """Sum of the depths of all positions before each segment, (m,)."""
        return np.concatenate(([0.0], np.cumsum(self.depth[:-1] * np.diff(self.first), dtype=np.float64)))

    @property
    def mean(self) -> float:
        """Mean depth over all positions."""
        return float(self.parts(np.array([0.5, self.length + 0.5]))[0][0])

    @property
    def most(self) -> int:
        """Maximum depth."""
        return int(self.depth.max(initial=0))

    @property
    def covered(self) -> float:
        """Fraction of positions covered by an alignment."""
        return float(np.diff(self.first, append=self.length + 1)[self.depth > 0].sum() / self.length)

    def parts(self, edges: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the mean and maximum depth of n consecutive intervals of the sequence.

        Parameters
        ----------
        edges
            Interval limits, ascending, shape (n + 1,), between 0.5 and the length + 0.5. Position i extends from i - 0.5 to i + 0.5.

        Returns
        -------
        mean, maximum
            Depths, shape (n,) each.
        """
        left = self.first - 0.5
        run = np.maximum(np.searchsorted(left, edges, "right") - 1, 0)
        summed = self._before[run] + self.depth[run] * (edges - left[run])
        # The maximum is over the segments that overlap an interval: the segment that reaches into it, and the segments that begin in it.
        last = np.maximum(np.searchsorted(left, edges[1:], "left") - 1, 0)
        begun = np.maximum.reduceat(self.depth[: last[-1] + 1], run[:-1])
        return np.diff(summed) / np.diff(edges), np.maximum(begun, self.depth[last])

    def positions(self, at: float, pixel: float) -> tuple[int, int]:
        """Return the first and last position that a click at the axis value `at` selects: about one pixel, at least one position.

        `pixel` is the width of a pixel in positions.
        """
        low, high = at - _NEAR * pixel, at + _NEAR * pixel
        if high - low < 1:
            low = high = at
        return max(1, math.floor(low + 0.5)), min(self.length, math.floor(high + 0.5))

    def tip(self, first: int, last: int) -> str:
        """Return the tooltip of a range of positions, with the depth."""
        mean, most = self.parts(np.array([first - 0.5, last + 0.5]))
        if first == last:
            return f"{first:,}: depth {most[0]:,}"
        return f"{first:,} to {last:,}: depth {mean[0]:,.1f} on average, {most[0]:,} at most"


def depth_figure(depth: Depth) -> Figure:
    """Return the figure of depth by position: mean (solid) and maximum (pale) per pixel.

    A click selects the positions of a pixel.
    """
    x = Axis(0.5, depth.length + 0.5, f"Position in {depth.name}", is_whole=True)

    def of_view(low: float, high: float, n_columns: int) -> Panel:
        edges = np.linspace(low, high, n_columns + 1)
        mean, most = depth.parts(edges)
        y = Axis(0.0, 1.08 * max(1, int(most.max(initial=0))), "Depth", is_whole=True)
        layers = ((most.astype(np.float64), _PALE), (mean, _SOLID))
        return Panel(x, y, tuple(Bars(edges[:-1], edges[1:], heights, ink) for heights, ink in layers))

    def pick(at: float, _: float, across: float, up: float) -> Picked:
        positions = depth.positions(at, across)
        return Picked(positions, depth.tip(*positions))

    panel = Panel(x, Axis(0.0, 1.0), (), smallest=(_SMALLEST, None), of_view=of_view, pick=pick)
    summary = f"{counted(depth.n_alignments, 'alignment')}, {depth.mean:.2f} on average, {depth.most} at most"
    return Figure(f"Depth of {depth.name}", f"{depth.name}, {counted(depth.length, 'base')}: {summary}", (panel,), size=(460.0, 200.0))
