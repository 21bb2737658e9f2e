"""A histogram as plain shapes (`proteoscope.engine.views.drawings`), for what is written without a screen."""

from __future__ import annotations

from proteoscope.engine.views.drawings import Anchor, Axis, Bar, Drawing, Label, Shape, Stroke, draw_axes, shortened
from proteoscope.engine.views.histograms import Histogram

__all__ = ["draw_histogram"]

_WIDTH, _HEIGHT, _FONT = 400.0, 210.0, 8.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 10.0, 30.0, 34.0


def draw_histogram(histogram: Histogram) -> Drawing:
    """Its series as bars, the largest behind; the mark as a line with its name; the names of several series above."""
    area = (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM)
    left, top, right, bottom = area
    highest = max((int(counts.max()) for _, counts in histogram.series if len(counts)), default=0)
    x = Axis(float(histogram.edges[0]), float(histogram.edges[-1]), histogram.x_title)
    y = Axis(0.0, max(1.0, highest * 1.08), histogram.y_title, is_whole=True)
    shapes: list[Shape] = draw_axes(area, x, y, _FONT)
    shapes.append(Label((left + right) / 2, _FONT + 4, shortened(histogram.title, right - left, _FONT), "middle", is_bold=True))
    scale = (right - left) / (x.high - x.low)
    for ink, (_, counts) in enumerate(histogram.series):
        for edge, following, count in zip(histogram.edges[:-1].tolist(), histogram.edges[1:].tolist(), counts.tolist(), strict=True):
            if count:
                at, height = left + (edge - x.low) * scale, (bottom - top) * count / y.high
                shapes.append(Bar(at, bottom - height, max(0.3, (following - edge) * scale - 0.4), height, ink))
    if len(histogram.series) > 1:
        for ink, (name, _) in enumerate(histogram.series):
            at = right - 70 * (len(histogram.series) - ink)
            shapes += [Bar(at, top - 11, 7, 7, ink), Label(at + 10, top - 4.5, name)]
    if histogram.mark is not None and x.low <= histogram.mark[0] <= x.high:
        at = left + (histogram.mark[0] - x.low) * scale
        anchor: Anchor = "end" if at > (left + right) / 2 else "start"
        shapes += [
            Stroke(at, top, at, bottom, "text", 1.0),
            Label(at + (-3 if anchor == "end" else 3), top + _FONT, histogram.mark[1], anchor),
        ]
    return Drawing(_WIDTH, _HEIGHT, histogram.title, tuple(shapes), _FONT)
