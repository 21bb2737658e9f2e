"""Labels of crowded peaks: neither labels nor leader lines cover labels, leader lines or peaks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from proteoscope.engine.views.label_layout import place_labels

LEFT, TOP, RIGHT, BOTTOM, HEIGHT = 0.0, 0.0, 400.0, 300.0, 12.0
Point = tuple[float, float]


def points_of(start: Point, end: Point) -> list[Point]:
    """Return points on a line, without its ends."""
    return [(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t) for t in np.linspace(0.0, 1.0, 400)[1:-1]]


def is_inside(point: Point, box: tuple[float, float, float, float]) -> bool:
    return box[0] < point[0] < box[2] and box[1] < point[1] < box[3]


def is_left(start: Point, end: Point, point: Point) -> bool:
    return (end[0] - start[0]) * (point[1] - start[1]) > (end[1] - start[1]) * (point[0] - start[0])


@pytest.mark.parametrize("seed", [2, 106, 109, 111, 119])
def test_labels_and_leader_lines_of_crowded_peaks_do_not_cross(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.uniform(LEFT, RIGHT, 60), random.uniform(60.0, BOTTOM, 60)
    widths = random.uniform(15.0, 50.0, 60)
    placed = place_labels(x, y, widths, HEIGHT, BOTTOM - y, x, y, (LEFT, TOP, RIGHT, BOTTOM))
    boxes = {label.label: (label.left, label.top, label.left + widths[label.label], label.top + HEIGHT) for label in placed}
    leaders = {
        label.label: ((label.foot, label.top + HEIGHT), (float(x[label.label]), float(y[label.label])))
        for label in placed
        if label.foot is not None
    }
    assert len(placed) > 15 and len(leaders) > 5, "the test needs leader lines"
    for (first, box), (other, other_box) in combinations(boxes.items(), 2):
        assert box[2] <= other_box[0] or other_box[2] <= box[0] or box[3] <= other_box[1] or other_box[3] <= box[1], (first, other)
    for label, (foot, tip) in leaders.items():
        for other, box in boxes.items():
            assert other == label or not any(is_inside(point, box) for point in points_of(foot, tip)), (label, other)
    for (first, line), (other, other_line) in combinations(leaders.items(), 2):
        crosses = is_left(*line, other_line[0]) != is_left(*line, other_line[1]) and is_left(*other_line, line[0]) != is_left(
            *other_line, line[1]
        )
        assert not crosses, (first, other)
