"""Which labels of peaks to show, and where, so that none covers another or a higher peak."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["place_labels"]

_GAP = 2.0


def place_labels(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    widths: NDArray[np.float64],
    height: float,
    importance: NDArray[np.float64],
    obstacle_x: NDArray[np.float64],
    obstacle_y: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
) -> list[tuple[int, float, float]]:
    """Place labels greedily, the most important first: over its peak, or a line or two higher, or not at all.

    Parameters
    ----------
    x, y : (n,) tips of the labelled peaks, pixels, y downwards.
    widths : (n,) of the labels, pixels.
    height : of a line, pixels.
    importance : (n,) intensities.
    obstacle_x, obstacle_y : (m,) tips of all peaks; a label does not cover the line from a tip downwards.
    bounds : left, top, right, bottom of the plot, pixels.

    Returns
    -------
    Which label, and the left and top of its box, of those that found a place.
    """
    left, top, right, bottom = bounds
    order = np.argsort(obstacle_x, kind="stable")
    lines_x, lines_y = obstacle_x[order], obstacle_y[order]
    # Boxes taken so far, as rows of left, top, right, bottom.
    taken = np.empty((len(x), 4))
    n_taken = 0
    placed = []
    for label in np.argsort(-importance, kind="stable").tolist():
        if not left <= x[label] <= right or y[label] > bottom:
            continue
        width = float(widths[label])
        from_x = float(np.clip(x[label] - width / 2, left, max(left, right - width)))
        first, last = np.searchsorted(lines_x, (from_x - _GAP, from_x + width + _GAP))
        nearby = lines_x[first:last] != x[label]
        # The highest other peak under the label's breadth.
        highest = float(lines_y[first:last][nearby].min(initial=np.inf))
        for level in range(3):
            from_y = max(top, float(y[label]) - (height + _GAP) * (level + 1))
            box = (from_x, from_y, from_x + width, from_y + height)
            others = taken[:n_taken]
            covers = (others[:, 0] < box[2] + _GAP) & (others[:, 2] > box[0] - _GAP) & (others[:, 1] < box[3]) & (others[:, 3] > box[1])
            if not covers.any() and highest > box[3]:
                taken[n_taken] = box
                n_taken += 1
                placed.append((label, from_x, from_y))
                break
    return placed
