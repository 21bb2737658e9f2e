"""Placement of labels of peaks and dots, so that labels, peaks, dots and leader lines do not overlap."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DotLabel", "PlacedLabel", "place_labels", "place_near_dots"]

_GAP = 2.0
_LEVELS = 5
_SHIFTS = (0.0, -0.5, 0.5, -1.0, 1.0)
"""Horizontal shifts of labels relative to the label width; a label that is shifted by half its width still touches the line of its peak."""
_SIDEWAYS = 1.3
"""Cost of a shift by one label width, in line heights."""

_AROUND = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))
"""Directions (x, y) from a dot to its label, in order of preference."""
_RINGS = (0.0, 1.2, 2.4)
"""Distances of labels from their dots, in line heights; all but the first need leader lines."""
_SAMPLES = 12
"""Number of points on a leader line that are compared with boxes."""

Values = NDArray[np.float64]


class PlacedLabel(NamedTuple):
    """Placed label: index of the label, left and top of its box, and the lower end of its leader line, or None without a leader line."""

    label: int
    left: float
    top: float
    foot: float | None


def place_labels(
    x: Values,
    y: Values,
    widths: Values,
    height: float,
    importance: Values,
    obstacle_x: Values,
    obstacle_y: Values,
    bounds: tuple[float, float, float, float],
) -> list[PlacedLabel]:
    """Place labels of peaks one after another, most important first; labels for which there is no space are omitted.

    A label is placed directly above its peak, or else higher or to the side with a leader line.

    Parameters
    ----------
    x, y
        Positions of the upper ends of the labelled peaks, (n,), pixels, with y downwards.
    widths
        Label widths, shape (n,), pixels.
    height
        Line height, pixels.
    importance
        Importance of each label, such as the intensity, shape (n,).
    obstacle_x, obstacle_y
        Positions of the upper ends of all peaks, (m,); labels do not cover the lines below these.
    bounds
        Left, top, right and bottom of the plot, pixels.
    """
    left, top, right, bottom = bounds
    order = np.argsort(obstacle_x, kind="stable")
    # A sentinel line at infinity, so that every range of lines has an end.
    lines_x, lines_y = obstacle_x[order], np.append(obstacle_y[order], np.inf)
    level, shift = (axis.ravel() for axis in np.meshgrid(np.arange(_LEVELS), _SHIFTS, indexing="ij"))
    nearest = np.argsort(level + np.abs(shift) * _SIDEWAYS, kind="stable")
    level, shift = level[nearest], shift[nearest]
    # Placed boxes (left, top, right, bottom) and leader lines (x and y of the foot of the label and of the tip of its peak).
    boxes, leaders = np.empty((len(x), 4)), np.empty((len(x), 4))
    n_boxes = n_leaders = 0
    placed = []
    for label in np.argsort(-importance, kind="stable").tolist():
        tip_x, tip_y, width = float(x[label]), float(y[label]), float(widths[label])
        if not left <= tip_x <= right or tip_y > bottom:
            continue
        from_x = np.clip(tip_x + width * (shift - 0.5), left, max(left, right - width))
        from_y = np.maximum(top, tip_y - (height + _GAP) * (level + 1))
        tried = np.column_stack((from_x, from_y, from_x + width, from_y + height))
        foot = np.clip(tip_x, from_x, from_x + width)
        has_leader = (level > 0) | (shift != 0)
        lines = np.column_stack((foot, from_y + height, np.full(len(foot), tip_x), np.full(len(foot), tip_y)))
        # At the top of the plot there may be no space above a peak; then only a label without a leader line may cover its tip.
        is_free = ~has_leader | (from_y + height <= tip_y)
        is_free &= ~_covers_peak(tried, lines, lines_x, lines_y)
        is_free &= ~_overlap(tried, boxes[:n_boxes]).any(axis=1)
        is_free &= ~_cross(leaders[:n_leaders], tried).any(axis=0)
        # Most labels are placed directly above their peak or not at all, so that leader lines need not be compared.
        if is_free.any() and has_leader[np.argmax(is_free)]:
            is_free &= ~(_cross(lines, boxes[:n_boxes]).any(axis=1) & has_leader)
            is_free &= ~(_meet(lines, leaders[:n_leaders]).any(axis=1) & has_leader)
        if not is_free.any():
            continue
        candidate = int(np.argmax(is_free))
        boxes[n_boxes] = tried[candidate]
        n_boxes += 1
        if has_leader[candidate]:
            leaders[n_leaders] = lines[candidate]
            n_leaders += 1
        at = float(foot[candidate]) if has_leader[candidate] else None
        placed.append(PlacedLabel(label, float(from_x[candidate]), float(from_y[candidate]), at))
    return placed


class DotLabel(NamedTuple):
    """Placed label: its index, left and top of its box, and the end of its leader line at the box, or None without a leader line."""

    label: int
    left: float
    top: float
    leader: tuple[float, float] | None


def place_near_dots(
    dots: Values,
    widths: Values,
    height: float,
    obstacles: Values,
    bounds: tuple[float, float, float, float],
    *,
    radius: float = 3.0,
    ring: float = 3.0,
    most: int = 1000,
) -> list[DotLabel]:
    """Place labels of dots one after another in the given order; labels for which there is no space are omitted.

    A label is placed next to its dot, or else farther away with a leader line.

    Parameters
    ----------
    dots
        Positions of the labelled dots, shape (n, 2), pixels, y downwards.
    widths
        Label widths, shape (n,), pixels.
    height
        Line height, pixels.
    obstacles
        Positions of all dots, shape (m, 2). A label and its leader line cover no other dot.
    bounds
        Left, top, right and bottom of the plot, pixels.
    radius
        Radius of the dots, pixels.
    ring
        Radius around the labelled dot that its label leaves free, pixels, for example for the ring of a selected dot.
    most
        Maximum number of placed labels.
    """
    boxes, leaders, drawn = np.empty((0, 4)), np.empty((0, 2)), np.empty((0, 4))
    marks = np.concatenate((obstacles - radius, obstacles + radius), axis=1)
    distance, way = (axis.ravel() for axis in np.meshgrid(_RINGS, np.arange(len(_AROUND)), indexing="ij"))
    direction = np.array(_AROUND, np.float64)[way]
    placed: list[DotLabel] = []
    for label, (dot, width) in enumerate(zip(dots, widths.tolist(), strict=True)):
        half = np.array([width / 2, height / 2])
        middle = dot + direction * (half + ring + 1 + distance[:, None] * height)
        tried = np.column_stack((middle - half, middle + half))
        ends = np.clip(dot, tried[:, :2], tried[:, 2:])
        lines = dot + (ends - dot)[:, None] * np.linspace(0.0, 1.0, _SAMPLES)[:, None]
        apart = np.abs(obstacles - dot)
        others = marks[(apart.max(axis=1) > 0) & (apart < 2 * half + 2 * radius + ring + _GAP + max(_RINGS) * height).all(axis=1)]
        has_leader = distance > 0
        is_free = (tried[:, :2] >= bounds[:2]).all(axis=1) & (tried[:, 2:] <= bounds[2:]).all(axis=1)
        is_free &= ~_overlap(tried, boxes).any(axis=1) & ~_within(leaders, tried).any(axis=0)
        is_free &= ~_overlap(tried, others).any(axis=1)
        crossed = _within(lines.reshape(-1, 2), np.concatenate((boxes, others))).any(axis=1).reshape(-1, _SAMPLES).any(axis=1)
        segments = np.column_stack((np.broadcast_to(dot, ends.shape), ends))
        is_free &= ~((crossed | _meet(segments, drawn).any(axis=1)) & has_leader)
        if not is_free.any():
            continue
        candidate = int(np.argmax(is_free))
        boxes = np.concatenate((boxes, tried[candidate : candidate + 1]))
        end = None
        if has_leader[candidate]:
            leaders = np.concatenate((leaders, lines[candidate]))
            drawn = np.concatenate((drawn, segments[candidate : candidate + 1]))
            end = float(ends[candidate, 0]), float(ends[candidate, 1])
        placed.append(DotLabel(label, float(tried[candidate, 0]), float(tried[candidate, 1]), end))
        if len(placed) == most:
            break
    return placed


def _within(points: Values, boxes: Values) -> NDArray[np.bool_]:
    """Return, for each point i and box j, True if the point is inside the box, (n, m)."""
    point, box = points[:, None], boxes[None]
    return np.asarray((point > box[..., :2]).all(axis=2) & (point < box[..., 2:]).all(axis=2))


def _overlap(some: Values, others: Values) -> NDArray[np.bool_]:
    """Return, for each box i of `some` and box j of `others`, True if they overlap, (n, m)."""
    box, other = some[:, None], others[None]
    across = (other[..., 0] < box[..., 2] + _GAP) & (other[..., 2] > box[..., 0] - _GAP)
    return across & (other[..., 1] < box[..., 3]) & (other[..., 3] > box[..., 1])


def _cross(lines: Values, boxes: Values) -> NDArray[np.bool_]:
    """Return, for each line i and box j, True if the line crosses the box, (n, m)."""
    line, box = lines[:, None], boxes[None]
    high, low = np.maximum(line[..., 1], box[..., 1]), np.minimum(line[..., 3], box[..., 3])
    slope = (line[..., 2] - line[..., 0]) / np.maximum(line[..., 3] - line[..., 1], 1e-9)
    ends = [line[..., 0] + slope * (at - line[..., 1]) for at in (high, low)]
    return (high < low) & (np.maximum(*ends) > box[..., 0] - 1) & (np.minimum(*ends) < box[..., 2] + 1)


def _meet(some: Values, others: Values) -> NDArray[np.bool_]:
    """Return, for each line i of `some` and line j of `others`, True if they cross or touch, (n, m).

    Two lines cross if each line has its ends on different sides of the other line.
    """
    line, other = some[:, None], others[None]
    return (_side(line, other[..., :2]) * _side(line, other[..., 2:]) <= 0) & (
        _side(other, line[..., :2]) * _side(other, line[..., 2:]) <= 0
    )


def _side(line: Values, position: Values) -> Values:
    """Return a number for each line and point: positive for points on one side of the line, negative on the other side, 0 on the line."""
    across, along = line[..., 2] - line[..., 0], line[..., 3] - line[..., 1]
    return across * (position[..., 1] - line[..., 1]) - along * (position[..., 0] - line[..., 0])


def _covers_peak(boxes: Values, leaders: Values, lines_x: Values, lines_y: Values) -> NDArray[np.bool_]:
    """Return True for each candidate box of a label, (n,), if the box or its leader line would cross the line of another peak."""
    foot, tip_x, tip_y = leaders[:, 0], leaders[0, 2], leaders[0, 3]
    lines = slice(*np.searchsorted(lines_x, [tip_x, np.nextafter(tip_x, np.inf)]))
    retained = lines_y[lines].copy()
    lines_y[lines] = np.inf
    below = _highest(lines_y, *np.searchsorted(lines_x, (boxes[:, 0] - _GAP, boxes[:, 2] + _GAP)))
    first, last = np.minimum(foot, tip_x), np.maximum(foot, tip_x)
    between = _highest(lines_y, np.searchsorted(lines_x, first, side="right"), np.searchsorted(lines_x, last))
    lines_y[lines] = retained
    crosses: NDArray[np.bool_] = (below <= boxes[:, 3]) | (between < tip_y)
    return crosses


def _highest(y: Values, first: NDArray[np.int64], last: NDArray[np.int64]) -> Values:
    """Return the minimum of ``y[first:last]`` (the highest point on the page) for each of n ranges, (n,); infinite for empty ranges."""
    runs = np.minimum.reduceat(y, np.column_stack((first, np.maximum(first, last))).ravel())[::2]
    return np.where(last > first, runs, np.inf)
