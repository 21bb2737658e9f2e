"""Histogram of the mass shifts of a run's PSMs, with bars of any width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import Axis, Scale
from proteoscope.engine.views.figures import Bars, Figure, Names, Panel, Picked
from proteoscope.engine.views.ticks import round_step

__all__ = ["ShiftBars", "Shifts", "bar_edges", "shifts_figure"]

_NO_ROW = -1
_SMALLEST = 0.01
"""Minimum visible range, dalton."""
_BAR = 2.0
"""Minimum width of a bar, pixels."""
_NEAR = 3.0
"""Maximum distance in pixels between the pointer and the selected bar."""
_MAXIMUM_TIPPED = 4
"""Maximum number of names in the tooltip of a bar."""
_MAXIMUM_NAMED = 100
"""Maximum number of visible bars that are named; the highest bars are named."""
_PALE, _SOLID = 0.47, 0.86
_FOOT = 0.5
"""Lower end of a logarithmic axis of counts."""
_HEADROOM = {"linear": 1.25, "square-root": 1.45, "logarithmic": 6.0}
"""Upper end of the axis relative to the highest bar, by scale, to leave space for names."""
_LONGEST_NAME = 26


def bar_edges(low: float, high: float, n_most: int) -> NDArray[np.float64]:
    """Return the edges of about `n_most` bars that cover a range.

    The width of a bar is 1, 2 or 5 times a power of ten; bars are centred at multiples of their width.

    Examples
    --------
    >>> bar_edges(-1.2, 2.2, 4).tolist()
    [-1.5, -0.5, 0.5, 1.5, 2.5]
    """
    width = round_step((high - low) / max(1, n_most))
    first, last = math.floor(low / width + 0.5), math.ceil(high / width - 0.5)
    return np.asarray((np.arange(first, max(first, last) + 2) - 0.5) * width, np.float64)


@dataclass(frozen=True)
class ShiftBars:
    """Counts of PSMs in n bars with n + 1 `edges`.

    For each bar, `counts` is the number of all PSMs, `explained` the number with a named shift or without a shift, and `marked` the number
    with marked modifications.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    explained: NDArray[np.int64]
    marked: NDArray[np.int64]


@dataclass(frozen=True)
class Shifts:
    """Mass shifts of n PSMs, in ascending order.

    Attributes
    ----------
    shift
        Mass shifts in dalton, ascending, shape (n,), float64.
    is_explained
        True if the shift has a name or is zero, shape (n,).
    modification
        Row in the table of modifications, or -1 without a shift, (n,), int64.
    names
        Name of each row of the table of modifications.
    """

    shift: NDArray[np.float64]
    is_explained: NDArray[np.bool_]
    modification: NDArray[np.int64]
    names: Sequence[str]

    @classmethod
    def from_columns(
        cls, shift: NDArray[np.float64], is_explained: NDArray[np.bool_], modification: NDArray[np.int64], names: Sequence[str]
    ) -> Shifts:
        """Sort the PSMs by shift; the arrays, shape (n,), may be in any order."""
        order = np.argsort(shift, kind="stable")
        return cls(shift[order], is_explained[order], modification[order], names)

    def __len__(self) -> int:
        return len(self.shift)

    def bars(self, edges: NDArray[np.float64], rows: Iterable[int] = ()) -> ShiftBars:
        """Count the shifts in each bar between ascending `edges`; `rows` are the rows of the marked modifications."""
        at = np.searchsorted(self.shift, edges)
        marked = _sums(np.isin(self.modification, list(rows)))[at] if rows else np.zeros(len(at), np.int64)
        return ShiftBars(edges, np.diff(at), np.diff(self._explained[at]), np.diff(marked))

    def name(self, low: float, high: float) -> str:
        """Return the most frequent name of the shifts from `low` to `high` (exclusive), see `counts_by_name`; '' if there are no PSMs."""
        return next((name for name, _ in self.counts_by_name(low, high)), "")

    def counts_by_name(self, low: float, high: float) -> list[tuple[str, int]]:
        """Return the names of the shifts from `low` to `high` (exclusive) with their counts, most frequent first.

        PSMs without a shift have the name ``no shift``.
        """
        first, last = np.searchsorted(self.shift, (low, high))
        counts = np.bincount(self.modification[first:last] - _NO_ROW)
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0] + _NO_ROW
        return [("no shift" if row == _NO_ROW else self.names[row], int(counts[row - _NO_ROW])) for row in order.tolist()]

    @cached_property
    def _explained(self) -> NDArray[np.int64]:
        return _sums(self.is_explained)


def _sums(truths: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of True values before each of n elements and, as the last value, in total, (n + 1,)."""
    return np.concatenate(([0], np.cumsum(truths)))


def shifts_figure(shifts: Shifts, whole: tuple[float, float], scale: Scale = "square-root", rows: frozenset[int] = frozenset()) -> Figure:
    """Return the figure of the number of PSMs by mass shift.

    Explained PSMs have a solid colour, other PSMs a pale one. A click selects a bar.

    Parameters
    ----------
    whole
        Minimum and maximum shift, dalton.
    scale
        Scale of the counts.
    rows
        Rows in the table of modifications whose PSMs are marked.
    """
    x, foot = Axis(*whole, "Mass shift (Da)"), _FOOT if scale == "logarithmic" else 0.0

    def of_view(low: float, high: float, n_columns: int) -> Panel:
        bars = shifts.bars(bar_edges(low, high, max(1, int(n_columns / _BAR))), rows)
        y = Axis(foot, max(1, int(bars.counts.max(initial=0))) * _HEADROOM[scale], "PSMs", is_whole=True, scale=scale)
        left, right = bars.edges[:-1], bars.edges[1:]
        pale, solid, marked = (counts.astype(np.float64) for counts in (bars.counts, bars.explained, bars.marked))
        layers = Bars(left, right, pale, "target", _PALE), Bars(left, right, solid, "target", _SOLID), Bars(left, right, marked, "mark")
        return Panel(
            x, y, (*layers, _names(shifts, bars, low, high)), pick=lambda *position: _picked(shifts, bars, position[0], position[2])
        )

    panel = Panel(x, Axis(0.0, 1.0), (), smallest=(_SMALLEST, None), of_view=of_view)
    return Figure("Mass shifts", f"{len(shifts)} matches from {whole[0]:g} to {whole[1]:g} Da", (panel,))


def _names(shifts: Shifts, bars: ShiftBars, low: float, high: float) -> Names:
    """Return the names of the highest visible bars; each name occurs once, at its highest bar."""
    middle = (bars.edges[:-1] + bars.edges[1:]) / 2
    in_sight = np.flatnonzero((bars.counts > 0) & (middle >= low) & (middle <= high))
    bar_of: dict[str, int] = {}
    for i in in_sight[np.argsort(-bars.counts[in_sight], kind="stable")[:_MAXIMUM_NAMED]].tolist():
        bar_of.setdefault(shifts.name(float(bars.edges[i]), float(bars.edges[i + 1])), i)
    named, heights = np.array(list(bar_of.values()), np.int64), bars.counts.astype(np.float64)
    texts = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in bar_of]
    return Names(middle[named], heights[named], texts, heights[named], "text", middle[in_sight], heights[in_sight])


def _picked(shifts: Shifts, bars: ShiftBars, shift: float, pixel: float) -> Picked | None:
    """Return the nearest bar to a shift within a few pixels, or None; `pixel` is the width of a pixel in dalton."""
    some = np.flatnonzero(bars.counts)
    away = np.maximum(0.0, np.maximum(bars.edges[some] - shift, shift - bars.edges[some + 1])) / pixel
    if not len(some) or away.min() > _NEAR:
        return None
    bar = int(some[away.argmin()])
    low, high = float(bars.edges[bar]), float(bars.edges[bar + 1])
    n, decimals = int(bars.counts[bar]), max(0, 1 - math.floor(math.log10(high - low) + 1e-9))
    names = shifts.counts_by_name(low, high)
    more = f", {len(names) - _MAXIMUM_TIPPED} more" if len(names) > _MAXIMUM_TIPPED else ""
    counted = f"{n:,} {'match' if n == 1 else 'matches'}, {bars.explained[bar]:,} with a name or without a shift"
    listed = ", ".join(f"{number:,} {name}" for name, number in names[:_MAXIMUM_TIPPED]) + more
    return Picked((low, high), f"{low:,.{decimals}f} to {high:,.{decimals}f} Da: {counted}\n{listed}")
