"""Alignments piled up at a place of a text, with what differs in each, below the characters of the text and features of a track."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.views.drawings import Axis, Bar, Basic, Clip, Drawing, Label, Shape, Sticks, draw_x_axis
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.pileup import Pileup
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure

__all__ = ["PileupSheet", "draw_pileup", "inner_region"]

_INKS: dict[str, Ink] = {"A": Ion("a"), "C": Ion("b"), "G": Ion("x"), "T": Ion("y"), "U": Ion("y"), "+": Ion("z")}
"""Colours of characters; `_OTHER` of all others."""
_OTHER: Ink = Ion("p")
_INSERTION = ord("+")
_HIGHEST, _LOWEST, _READ = 16.0, 3.0, 0.8
"""Height of a line of alignments, and of an alignment as part of it."""
_LEAST_WRITTEN = 8.0
"""Height of a line from which on differences are written."""
_TRACK_LINES = 3
_FIGURE_SIZE = (510.0, 320.0)

Range = tuple[float, float]


class PileupSheet(Sheet):
    """A pile-up at a given size.

    Parameters
    ----------
    shown
        Shown range of the reference, in positions from 1, each extending half a position to both sides.

    Attributes
    ----------
    inner
        Area of the alignments.
    chosen
        Row of the marked alignment, or None.
    """

    def __init__(
        self, pile: Pileup, features: Sequence[TrackFeature], shown: Range, measure: TextMeasure, size: tuple[float, float]
    ) -> None:
        self.pile, self.shown, self.measure, self.size = pile, shown, measure, size
        self.chosen: int | None = None
        of_all = f" of {measure.number(len(pile) + pile.n_left_out)}" if pile.n_left_out else ""
        number = f"{measure.number(len(pile))} alignment{'' if len(pile) == 1 else 's'}{of_all}"
        self.title = f"{pile.text.name}, bases; {number}; lines: insertions (+)"
        self.inner = inner_region(measure, size)
        self.step = self.inner.width / (shown[1] - shown[0])
        line = measure.line
        self.top = self.inner.top + line * (1.3 + (1.2 * _TRACK_LINES if features else 0.0))
        self.height = min(_HIGHEST, max(_LOWEST, (self.inner.bottom - self.top) / max(1, pile.n_lanes)))
        self.features = list(self._placed(features))

    def place_at(self, x: float) -> float:
        """Return the reference position at a point of the figure."""
        return self.shown[0] + (x - self.inner.left) / self.step

    def read_at(self, x: float, y: float) -> int | None:
        """Return the alignment at a point of the figure."""
        if not self.inner.holds(x, y) or y < self.top:
            return None
        place, lane, pile = self.place_at(x), int((y - self.top) // self.height), self.pile
        result = np.flatnonzero((pile.lane == lane) & (pile.start - 0.5 <= place) & (pile.end + 0.5 >= place))
        return int(result[0]) if len(result) else None

    def text_at(self, x: float, y: float) -> str:
        """Return the tooltip at a point: a feature, or an alignment and its bases."""
        if not self.inner.holds(x, y):
            return ""
        feature = next((feature for feature, box in self.features if box.holds(x, y)), None)
        if feature is not None:
            kind = f"{feature.kind} " if feature.kind else ""
            return f"{kind}{feature.name} ({feature.strand}), {feature.first} to {feature.last}"
        place, read, pile = round(self.place_at(x)), self.read_at(x, y), self.pile
        counts = ", ".join(f"{character} {n}" for character, n in pile.counts(place).items())
        name = "" if read is None else f"{pile.names[read]} ({'-' if pile.is_reverse[read] else '+'})\n"
        return f"{name}base {self.measure.number(place)}: {counts or 'not covered'}"

    def shapes(self, region: Region) -> list[Shape]:
        """Return all shapes, regardless of the region."""
        is_written = self.step >= 0.9 * self.measure.width("W")
        inside = [*(self._reference() if is_written else []), *self._track(), *self._reads(), *self._differences(is_written)]
        axis = Axis(*self.shown, self.title, is_whole=True)
        ends, measure = (self.inner.left, self.inner.right), self.measure
        return [Clip(*self.inner, tuple(inside)), *draw_x_axis(ends, self.inner.bottom, axis, measure.font_size, number=measure.number)]

    def _x(self, place: np.ndarray | float) -> np.ndarray:
        return np.asarray(self.inner.left + (place - self.shown[0]) * self.step)

    def _reference(self) -> list[Basic]:
        """Draw the reference bases."""
        pile, y = self.pile, self.inner.top + self.measure.line / 2 + CENTRE * self.measure.font_size
        first, last = max(int(np.ceil(self.shown[0])), pile.first), min(int(np.floor(self.shown[1])), pile.last)
        places = np.arange(first, last + 1)
        codes = pile.reference[first - pile.first : last + 1 - pile.first]
        result = zip(self._x(places[codes > 0]).tolist(), codes[codes > 0].tolist(), strict=True)
        return [Label(x, y, chr(code), "middle", _INKS.get(chr(code), _OTHER)) for x, code in result]

    def _placed(self, features: Sequence[TrackFeature]) -> list[tuple[TrackFeature, Region]]:
        """Features with their boxes, those that overlap on different lines; what finds no line is left out."""
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

    def _reads(self) -> list[Basic]:
        """Draw the visible alignments, reverse ones in another colour."""
        pile, height = self.pile, self.height
        left, right, top = self._x(pile.start - 0.5), self._x(pile.end + 0.5), self.top + pile.lane * height
        in_sight = np.flatnonzero((top < self.inner.bottom) & (right > self.inner.left) & (left < self.inner.right))
        left, right = np.maximum(left, self.inner.left - 1), np.minimum(right, self.inner.right + 1)
        columns = (left, top, right - left, pile.is_reverse, pile.row == self.chosen)
        rows = zip(*(column[in_sight].tolist() for column in columns), strict=True)
        return [
            Bar(x, y, width, height * _READ, "decoy" if is_reverse else "target", opacity=0.78 if is_chosen else 0.27)
            for x, y, width, is_reverse, is_chosen in rows
        ]

    def _differences(self, is_written: bool) -> list[Basic]:
        """Draw differences in the colours of bases, labelled where space allows."""
        pile, inner = self.pile, self.inner
        top = self.top + pile.lane[pile.read] * self.height
        in_sight = (top < inner.bottom) & (pile.place >= self.shown[0]) & (pile.place <= self.shown[1])
        is_insertion = pile.symbol == _INSERTION
        x = self._x(pile.place + np.where(is_insertion, 0.5, 0.0))
        shapes: list[Basic] = []
        for code in np.unique(pile.symbol[in_sight]).tolist():
            # Differences at one pixel are drawn once.
            at = np.flatnonzero(in_sight & (pile.symbol == code))
            _, once = np.unique(np.rint(x[at] * 2) * (pile.n_lanes + 1) + pile.lane[pile.read[at]], return_index=True)
            at = at[once]
            width = 2.0 if code == _INSERTION else max(self.step, 1.2)
            above = np.asarray(top[at], np.float64)
            shapes.append(Sticks(x[at], above, above + self.height * _READ, _INKS.get(chr(code), _OTHER), width))
        if is_written and self.height > _LEAST_WRITTEN:
            size = max(5, int(self.height * 0.72)) / self.measure.font_size
            down = self.height * _READ / 2 + CENTRE * size * self.measure.font_size
            written = np.flatnonzero(in_sight & ~is_insertion)
            rows = zip(x[written].tolist(), (top[written] + down).tolist(), pile.symbol[written].tolist(), strict=True)
            shapes += [Label(at, y, chr(code), "middle", "background", size=size) for at, y, code in rows]
        return shapes


def inner_region(measure: TextMeasure, size: tuple[float, float]) -> Region:
    """Return the area of alignments in a figure of a size, above the axis with its numbers and title."""
    return Region(12.0, 4.0, size[0] - 24, size[1] - 2 * measure.line - 14)


def draw_pileup(
    pile: Pileup,
    features: Sequence[TrackFeature] = (),
    shown: Range | None = None,
    measure: TextMeasure | None = None,
    width: float | None = None,
) -> Drawing:
    """Draw a pile-up for a page, `width` points wide; `shown` is the range of the reference, None for all."""
    shown, size = shown or (pile.first - 0.5, pile.last + 0.5), laid_out_size(_FIGURE_SIZE, width)
    return PileupSheet(pile, features, shown, measure or TextMeasure(), size).draw()
