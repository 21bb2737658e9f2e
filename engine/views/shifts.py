"""Mass shifts of the matches of a run, counted in bars of any width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["ShiftBars", "Shifts", "bar_edges"]

_NO_ROW = -1


def bar_edges(low: float, high: float, n_most: int) -> NDArray[np.float64]:
    """Edges of at most `n_most` + 1 bars over a range: as wide as 1, 2 or 5 times a power of ten, with a multiple of that in their middle.

    Examples
    --------
    >>> bar_edges(-1.2, 2.2, 4).tolist()
    [-1.5, -0.5, 0.5, 1.5, 2.5]
    """
    least = (high - low) / max(1, n_most)
    power = 10.0 ** math.floor(math.log10(least))
    width = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)
    first, last = math.floor(low / width + 0.5), math.ceil(high / width - 0.5)
    return np.asarray((np.arange(first, max(first, last) + 2) - 0.5) * width, np.float64)


@dataclass(frozen=True)
class ShiftBars:
    """Counts in n bars: `counts` of all matches, `explained` of those with a name or without a shift, `marked` of the chosen ones."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    explained: NDArray[np.int64]
    marked: NDArray[np.int64]


@dataclass(frozen=True)
class Shifts:
    """The shifts of n matches, ascending.

    Attributes
    ----------
    shift : (n,) float64, dalton. is_explained : (n,) bool, whether it has a name, or is none.
    modification : (n,) int64, row of the table of modifications, -1 for matches without a shift. names : of those rows.
    """

    shift: NDArray[np.float64]
    is_explained: NDArray[np.bool_]
    modification: NDArray[np.int64]
    names: Sequence[str]

    @classmethod
    def of_columns(
        cls, shift: NDArray[np.float64], is_explained: NDArray[np.bool_], modification: NDArray[np.int64], names: Sequence[str]
    ) -> Shifts:
        """Columns in any order."""
        order = np.argsort(shift, kind="stable")
        return cls(shift[order], is_explained[order], modification[order], names)

    def __len__(self) -> int:
        return len(self.shift)

    def bars(self, edges: NDArray[np.float64], rows: Iterable[int] = ()) -> ShiftBars:
        """Count between edges, in one pass over those: the shifts stand in order. `rows`: the modifications that are marked."""
        at = np.searchsorted(self.shift, edges)
        marked = _sums(np.isin(self.modification, list(rows)))[at] if rows else np.zeros(len(at), np.int64)
        return ShiftBars(edges, np.diff(at), np.diff(self._explained[at]), np.diff(marked))

    def name(self, low: float, high: float) -> str:
        """What most shifts from `low` to `high` are: a name of the table of modifications, ``no shift``, or empty where there are none."""
        return next((name for name, _ in self.counts_by_name(low, high)), "")

    def counts_by_name(self, low: float, high: float) -> list[tuple[str, int]]:
        """How many shifts from `low` to below `high` are of each name, or ``no shift``; the most first."""
        first, last = np.searchsorted(self.shift, (low, high))
        counts = np.bincount(self.modification[first:last] - _NO_ROW)
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] > 0] + _NO_ROW
        return [("no shift" if row == _NO_ROW else self.names[row], int(counts[row - _NO_ROW])) for row in order.tolist()]

    @cached_property
    def _explained(self) -> NDArray[np.int64]:
        return _sums(self.is_explained)


def _sums(truths: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many hold before each place, (n + 1,)."""
    return np.concatenate(([0], np.cumsum(truths)))
