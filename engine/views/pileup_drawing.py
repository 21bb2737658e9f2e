"""Drawing of a pile-up: depth of the whole reference, features, reference bases, and alignments with their differences."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.drawings import (
    Area,
    Axis,
    Bar,
    Basic,
    Cells,
    Clip,
    Drawing,
    Label,
    Shape,
    Spans,
    Sticks,
    Stroke,
    draw_x_axis,
)
from proteoscope.engine.views.palette import Ink, Ion, Shade
from proteoscope.engine.views.pileup import Pileup
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure

__all__ = ["PileupSheet", "depth_and_area", "draw_pileup", "inner_region"]

_INKS: dict[str, Ink] = {"A": Ion("a"), "C": Ion("b"), "G": Ion("x"), "T": Ion("y"), "U": Ion("y"), "+": Ion("z")}
"""Colours of bases and insertions; other characters have the colour `_OTHER`."""
_OTHER: Ink = Ion("p")
_INSERTION = ord("+")
_HIGHEST, _WRITTEN, _LOWEST = 16.0, 12.0, 1.0
"""Maximum height of a line of alignments, and minimum heights with and without written bases."""
_THIN, _READ = 4.0, 0.8
"""Maximum height of lines without gaps between them; height of an alignment relative to the line, for higher lines."""
_LEAST_WRITTEN = 8.0
"""Minimum height of a line for writing the bases of differences."""
_COVERAGE_LINES, _LEAST_LINES, _LABEL = 2.0, 15, 0.85
"""Plot of the depth of the whole reference: its height and the minimum height of the figure, in lines; size of its text."""
_PALE, _SOLID = Shade(-0.27), Shade(-0.8)
_BLOCKS = 1.5
"""Minimum width of a base for drawing the bases of the reference as blocks."""
_MOST_STICKS, _MOST_WRITTEN = 4000, 3000
"""Maximum number of differences that are drawn individually, and maximum number that are written as bases."""
_CELLS = 1000
"""Number of columns of cells in which many differences are drawn; at least one and at most two per point are used."""
_HIGHEST_FIGURE = 1600.0
_TRACK_LINES = 3
_MARGIN = 24.0
"""Space at both sides, into which half of the outermost numbers of the axis extend."""
_FIGURE_SIZE = (510.0, 320.0)

Range = tuple[float, float]


class PileupSheet(Sheet):
    """Pile-up laid out for a given size.

    Parameters
    ----------
    shown
        Visible range of the reference. Position i, from 1, extends from i - 0.5 to i + 0.5.

    depth
        Depth of the whole reference, drawn if there is space; None if unknown.
    first_lane
        First visible line of alignments, from 0.

    Attributes
    ----------
    coverage
        Rectangle of the depth of the whole reference, or None.
    inner
        Rectangle of the features, reference bases and alignments.
    height
        Height of a line of alignments.
    n_visible
        Number of complete lines of alignments that fit.
    chosen
        Row of the selected alignment in the table of alignments, or None.
    """

    def __init__(
        self,
        pile: Pileup,
        features: Sequence[TrackFeature],
        shown: Range,
        measure: TextMeasure,
        size: tuple[float, float],
        depth: Depth | None = None,
        first_lane: int = 0,
    ) -> None:
        self.pile, self.shown, self.measure, self.size = pile, shown, measure, size
        self.chosen: int | None = None
        self.depth, self.coverage = depth_and_area(depth, pile, measure, size)
        of_all = f" of {measure.number(len(pile) + pile.n_left_out)}" if pile.n_left_out else ""
        number = f"{measure.number(len(pile))} alignment{'' if len(pile) == 1 else 's'}{of_all}"
        self.title = f"{pile.text.name}, bases; {number}; lines: insertions (+)"
        self.inner = inner_region(measure, size)
        if self.coverage is not None:
            below = self.coverage.bottom + measure.line * 0.6
            self.inner = Region(self.inner.left, below, self.inner.width, self.inner.bottom - below)
        self.step = self.inner.width / (shown[1] - shown[0])
        line = measure.line
        self.top = self.inner.top + line * (1.3 + (1.2 * _TRACK_LINES if features else 0.0))
        self.is_written = self.step >= 0.9 * measure.width("W")
        space = self.inner.bottom - self.top
        self.height = min(_HIGHEST, max(_WRITTEN if self.is_written else _LOWEST, space / max(1, pile.n_lanes)))
        self.read_height = self.height * (_READ if self.height > _THIN else 1.0)
        self.n_visible = max(1, int(space / self.height + 1e-6))
        self.first_lane = max(0, min(first_lane, pile.n_lanes - self.n_visible))
        self.features = list(self._placed(features))

    def place_at(self, x: float) -> float:
        """Return the reference position at a horizontal coordinate of the pile-up."""
        return self.shown[0] + (x - self.inner.left) / self.step

    def position_at(self, x: float) -> float:
        """Return the reference position at a horizontal coordinate of the depth plot."""
        assert self.coverage is not None
        return 0.5 + (x - self.coverage.left) / self.coverage.width * self.pile.text.length

    def read_at(self, x: float, y: float) -> int | None:
        """Return the index of the alignment at a point of the figure, or None."""
        if not self.inner.holds(x, y) or y < self.top:
            return None
        position, lane, pile = self.place_at(x), int((y - self.top) // self.height) + self.first_lane, self.pile
        result = np.flatnonzero((pile.lane == lane) & (pile.start - 0.5 <= position) & (pile.end + 0.5 >= position))
        return int(result[0]) if len(result) else None

    def text_at(self, x: float, y: float) -> str:
        """Return the tooltip at a point: the depth, a feature, or an alignment and the counts of bases."""
        if self.depth is not None and self.coverage is not None and self.coverage.holds(x, y):
            return self.depth.tip(*self.depth.positions(self.position_at(x), self.depth.length / self.coverage.width))
        if not self.inner.holds(x, y):
            return ""
        feature = next((feature for feature, box in self.features if box.holds(x, y)), None)
        if feature is not None:
            kind = f"{feature.kind} " if feature.kind else ""
            return f"{kind}{feature.name} ({feature.strand}), {feature.first} to {feature.last}"
        position, read, pile = round(self.place_at(x)), self.read_at(x, y), self.pile
        counts = ", ".join(f"{character} {n}" for character, n in pile.counts(position).items())
        name = "" if read is None else f"{pile.names[read]} ({'-' if pile.is_reverse[read] else '+'})\n"
        return f"{name}base {self.measure.number(position)}: {counts or 'not covered'}"

    def shapes(self, region: Region) -> list[Shape]:
        """Return all shapes, regardless of the region."""
        below = self.inner.bottom - self.top
        rows = Clip(self.inner.left, self.top, self.inner.width, below, (*self._reads(), *self._differences()))
        reference = Clip(*self.inner, (*self._reference(), *self._track()))
        n_lanes, last = self.pile.n_lanes, min(self.pile.n_lanes, self.first_lane + self.n_visible)
        lines = f"; lines {self.first_lane + 1} to {last} of {n_lanes}" if self.n_visible < n_lanes else ""
        axis = Axis(*self.shown, self.title + lines, is_whole=True)
        ends, measure = (self.inner.left, self.inner.right), self.measure
        x_axis = draw_x_axis(ends, self.inner.bottom, axis, measure.font_size, number=measure.number)
        return [*self._coverage(), reference, rows, *x_axis]

    def _x(self, position: np.ndarray | float) -> np.ndarray:
        return np.asarray(self.inner.left + (position - self.shown[0]) * self.step)

    def _reference(self) -> list[Basic]:
        """Draw the reference bases."""
        pile, y = self.pile, self.inner.top + self.measure.line / 2 + CENTRE * self.measure.font_size
        first, last = max(int(np.ceil(self.shown[0])), pile.first), min(int(np.floor(self.shown[1])), pile.last)
        positions = np.arange(first, last + 1)
        codes = pile.reference[max(0, first - pile.first) : max(0, last + 1 - pile.first)]
        if not self.is_written:
            return self._blocks(codes, first) if self.step >= _BLOCKS and len(codes) else []
        result = zip(self._x(positions[codes > 0]).tolist(), codes[codes > 0].tolist(), strict=True)
        return [Label(x, y, chr(code), "middle", _INKS.get(chr(code), _OTHER)) for x, code in result]

    def _placed(self, features: Sequence[TrackFeature]) -> list[tuple[TrackFeature, Region]]:
        """Return features with their rectangles.

        Overlapping features are in different lines, and features without a free line are omitted.
        """
        inner, line = self.inner, self.measure.line * 1.2
        ends = [inner.left - 9.0] * _TRACK_LINES
        placed: list[tuple[TrackFeature, Region]] = []
        for feature in features:
            left, right = np.clip(self._x(np.array([feature.first - 0.5, feature.last + 0.5])), inner.left, inner.right).tolist()
            lane = next((at for at, end in enumerate(ends) if end <= left), None)
            if lane is not None and right > left:
                ends[lane] = right + 2
                placed.append((feature, Region(left, inner.top + line * (lane + 1.1), max(1.5, right - left), line * 0.85)))
        return placed

    def _track(self) -> list[Basic]:
        shapes: list[Basic] = []
        for feature, box in self.features:
            text = {"+": f"{feature.name} ▸", "-": f"◂ {feature.name}"}.get(feature.strand, feature.name)
            y = box.top + box.height / 2 + CENTRE * self.measure.font_size
            text = self.measure.elided(text, box.width - 4)
            shapes += [Bar(*box, Ion("a"), opacity=0.35), Label(box.left + box.width / 2, y, text, "middle")]
        return shapes

    def _blocks(self, codes: NDArray[np.uint8], first: int) -> list[Basic]:
        """Draw bases of the reference as coloured blocks; `first` is the position of the first base."""
        cells, inks = _in_inks(codes[None, :])
        left, height = float(self._x(first - 0.5)), 0.6 * self.measure.line
        return [Cells(left, self.inner.top + 0.2 * self.measure.line, len(codes) * self.step, height, cells, inks)]

    def _coverage(self) -> list[Shape]:
        """Draw the depth of the whole reference with a frame around the visible range."""
        depth, box = self.depth, self.coverage
        if depth is None or box is None:
            return []
        edges = np.linspace(0.5, depth.length + 0.5, max(2, int(box.width)) + 1)
        mean, most = depth.parts(edges)
        x = box.left + (np.arange(len(mean)) + 0.5) * box.width / len(mean)
        bottom, per_read = np.full(len(mean), box.bottom), box.height / max(1, depth.most)
        width = box.width / len(mean) + 0.1
        shapes: list[Shape] = [
            Sticks(x, box.bottom - np.asarray(values, np.float64) * per_read, bottom, ink, width)
            for values, ink in ((most, _PALE), (mean, _SOLID))
        ]
        left, right = (box.left + (end - 0.5) / depth.length * box.width for end in self.shown)
        left, right = max(left, box.left), min(max(right, left + 3.0), box.right)
        down, ends = self.inner.top, (self.inner.left, self.inner.right)
        beam = Area(np.array([left, right, ends[1], ends[0]]), np.array([box.bottom, box.bottom, down, down]), "grid", 0.5)
        number, line = self.measure.number, self.measure.line
        text = f"depth of all {number(depth.length)} bases, up to {number(depth.most)}"
        text = self.measure.elided(text, box.width / _LABEL)
        label = Label(box.left, box.top - line * (0.5 - CENTRE) - 1.0, text, ink="faint", size=_LABEL)
        sides = [Stroke(end, box.top, end, box.bottom, "mark", 1.2) for end in (left, right)]
        edge = [Stroke(left, end, right, end, "mark", 1.2) for end in (box.top, box.bottom)]
        return [beam, *shapes, Stroke(box.left, box.bottom, box.right, box.bottom, "faint"), *sides, *edge, label]

    def _lane_tops(self, lane: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self.top + (lane - self.first_lane) * self.height, np.float64)

    def _reads(self) -> list[Basic]:
        """Draw the visible alignments, with reverse alignments in another colour."""
        pile = self.pile
        left, right, top = self._x(pile.start - 0.5), self._x(pile.end + 0.5), self._lane_tops(pile.lane)
        in_sight = (top > self.top - self.height) & (top < self.inner.bottom) & (right > self.inner.left) & (left < self.inner.right)
        left, right = np.maximum(left, self.inner.left - 1), np.minimum(right, self.inner.right + 1)
        shapes: list[Basic] = []
        inks: tuple[Ink, Ink] = ("target", "decoy")
        for is_reverse, ink in enumerate(inks):
            some = np.flatnonzero(in_sight & (pile.is_reverse == bool(is_reverse)))
            shapes.append(Spans(left[some], right[some], top[some], self.read_height, ink, opacity=0.27))
        if self.chosen is not None:
            for at in np.flatnonzero(in_sight & (pile.row == self.chosen)).tolist():
                box = float(left[at]), float(top[at]), float(right[at] - left[at]), max(2.0, self.read_height)
                shapes.append(Bar(*box, inks[int(pile.is_reverse[at])], opacity=0.6))
        return shapes

    def _differences(self) -> list[Basic]:
        """Draw differences in the colours of bases, with the base written if there is space."""
        pile, inner = self.pile, self.inner
        lane = pile.lane[pile.read]
        top = self._lane_tops(lane)
        in_sight = (
            (top > self.top - self.height) & (top < inner.bottom) & (pile.position >= self.shown[0]) & (pile.position <= self.shown[1])
        )
        at = np.flatnonzero(in_sight)
        is_insertion = pile.symbol[at] == _INSERTION
        x = self._x(pile.position[at] + np.where(is_insertion, 0.5, 0.0))
        if len(at) > _MOST_STICKS:
            return self._cells(x, lane[at], pile.symbol[at])
        shapes: list[Basic] = []
        for code in np.unique(pile.symbol[at]).tolist():
            same = pile.symbol[at] == code
            width = 2.0 if code == _INSERTION else max(self.step, 1.2)
            above = top[at][same]
            shapes.append(Sticks(x[same], above, above + self.read_height, _INKS.get(chr(code), _OTHER), width))
        if self.is_written and self.height > _LEAST_WRITTEN and len(at) <= _MOST_WRITTEN:
            size = max(5, int(self.height * 0.72)) / self.measure.font_size
            down = self.read_height / 2 + CENTRE * size * self.measure.font_size
            columns = (column[~is_insertion].tolist() for column in (x, top[at] + down, pile.symbol[at]))
            rows = zip(*columns, strict=True)
            shapes += [Label(across, y, chr(code), "middle", "background", size=size) for across, y, code in rows]
        return shapes

    def _cells(self, x: NDArray[np.float64], lane: NDArray[np.int64], symbol: NDArray[np.uint8]) -> list[Basic]:
        """Draw differences as a grid of coloured cells, for many differences; of several differences in a cell, the last is visible."""
        n_columns = int(max(self.inner.width, min(self.inner.width * 2, _CELLS)))
        per_point = n_columns / self.inner.width
        n_lanes = min(self.pile.n_lanes - self.first_lane, self.n_visible + 1)
        codes = np.zeros((n_lanes, n_columns), np.uint8)
        half = max(self.step, 1.2) / 2 * per_point
        middle = (x - self.inner.left) * per_point
        start = np.clip(np.rint(middle - half), 0, n_columns - 1).astype(np.int64)
        stop = np.clip(np.rint(middle + half), start + 1, n_columns).astype(np.int64)
        offsets, columns = ranges(start, stop)
        codes[np.repeat(lane - self.first_lane, np.diff(offsets)), columns] = np.repeat(symbol, np.diff(offsets))
        cells, inks = _in_inks(codes)
        return [Cells(self.inner.left, self.top, self.inner.width, n_lanes * self.height, cells, inks)]


def _in_inks(codes: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], tuple[Ink, ...]]:
    """Return the values and colours for `Cells` that show bases, given as ASCII codes (0 for no base)."""
    inks = (*dict.fromkeys(_INKS.values()), _OTHER)
    table = np.full(256, len(inks), np.uint8)
    table[0] = 0
    for symbol, ink in _INKS.items():
        table[ord(symbol)] = inks.index(ink) + 1
    return table[codes], inks


def depth_and_area(
    depth: Depth | None, pile: Pileup, measure: TextMeasure, size: tuple[float, float]
) -> tuple[Depth | None, Region | None]:
    """Return the depth of the whole reference and its rectangle in a figure of a given size, or None for both.

    The depth is not drawn if it is unknown, belongs to another reference, or the figure is not high enough.
    """
    if depth is None or depth.length != pile.text.length or size[1] < _LEAST_LINES * measure.line:
        return None, None
    inner = inner_region(measure, size)
    return depth, Region(inner.left, inner.top + measure.line, inner.width, _COVERAGE_LINES * measure.line)


def inner_region(measure: TextMeasure, size: tuple[float, float]) -> Region:
    """Return the rectangle of a pile-up in a figure of a given size, above the numbers and title of the axis."""
    return Region(_MARGIN, 4.0, size[0] - 2 * _MARGIN, size[1] - 2 * measure.line - 14)


def draw_pileup(
    pile: Pileup,
    features: Sequence[TrackFeature] = (),
    shown: Range | None = None,
    measure: TextMeasure | None = None,
    depth: Depth | None = None,
    width: float | None = None,
) -> Drawing:
    """Draw a pile-up for a page; the height increases with the number of lines, up to a limit.

    Parameters
    ----------
    shown : (float, float) or None
        Visible range of the reference; None for the whole range of the pile-up.
    width : float or None
        Width of the page in points; None for the default width.
    """
    shown, measure = shown or (pile.first - 0.5, pile.last + 0.5), measure or TextMeasure()
    across, height = laid_out_size(_FIGURE_SIZE, width)
    sheet = PileupSheet(pile, features, shown, measure, (across, height), depth)
    missing = (pile.n_lanes - sheet.n_visible) * sheet.height
    if missing > 0:
        sheet = PileupSheet(pile, features, shown, measure, (across, min(_HIGHEST_FIGURE, height + missing)), depth)
    return sheet.draw()
