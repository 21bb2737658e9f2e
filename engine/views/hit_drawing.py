"""Graphic summary of sequence search hits, as in BLAST: one bar per hit along the query, coloured by bit score."""

from bisect import bisect_right
from collections.abc import Collection, Sequence

from proteoscope.engine.formats.features import FEATURE_GROUPS
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views import drawings
from proteoscope.engine.views.coverage import feature_lanes
from proteoscope.engine.views.drawings import Drawing, Label, Shape, Stroke
from proteoscope.engine.views.feature_drawing import Key, draw_feature
from proteoscope.engine.views.hits import QueryBars
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure
from proteoscope.engine.views.ticks import nice_ticks

__all__ = ["BIT_SCORES", "HitSheet", "draw_hits"]

BIT_SCORES = (40.0, 50.0, 80.0, 200.0)
"""Limits between the classes of bit scores, as in BLAST."""
_CLASSES: tuple[tuple[str, Ink], ...] = (
    ("< 40", "faint"),
    ("40–50", Ion("b")),
    ("50–80", Ion("a")),
    ("80–200", Ion("z")),
    ("≥ 200", Ion("y")),
)
_LANE = 6.0
"""Height of a line of query features, including the space below it."""
_FEATURE_LANES = 12
_NAMES_SHARE = 0.3
"""Maximum width of the hit names as a fraction of the figure's width."""
_MAXIMUM_EXPORTED = 100
_FIGURE_SIZE, _FIGURE_WIDTH = 7.0, 480.0


class HitSheet(Sheet):
    """Graphic summary of the hits of a query, laid out for a given width.

    Parameters
    ----------
    n_bars
        Number of hits to draw, best first.
    groups
        Groups of features to draw.
    names
        Names of the hits, drawn left of the bars; empty if a table next to the figure shows the names.

    Attributes
    ----------
    chosen
        Row of the selected hit in the table of hits, or None.
    """

    def __init__(
        self,
        hits: QueryBars,
        measure: TextMeasure,
        width: float,
        n_bars: int,
        groups: Collection[str] = FEATURE_GROUPS,
        names: Sequence[str] = (),
    ) -> None:
        self.hits, self.measure, self.n_bars, self.groups = hits, measure, n_bars, groups
        self.title = f"{counted(len(hits.bars), 'hit')} along {hits.query}"
        self.chosen: int | None = None
        self.line = line = measure.line
        self.names = [measure.elided(name, width * _NAMES_SHARE) for name in names]
        self.left = line + max((measure.width(name) + line for name in self.names), default=0.0)
        self.right = width - 1.6 * line
        self.bar = max(4.0, round(line * 0.42))
        self.step = max(self.bar + 3, line if names else 0.0)
        self.heading = 1.8 * line if names else 0.0
        self.features = [(lane, feature) for lane, feature in feature_lanes(hits.features, groups) if lane < _FEATURE_LANES]
        self.first_lane = 3.25 * line + self.heading + max(5.0, self.bar)
        below = self.first_lane + max((lane + 1 for lane, _ in self.features), default=0) * _LANE
        present = {feature.group for feature in hits.features}
        self.key = Key([group for group in FEATURE_GROUPS if group in present], measure, self.left, below + 0.2 * line, self.right)
        self.top = self.key.bottom + 0.6 * line if self.key.boxes else 4.3 * line + self.heading
        self.is_cut = hits.total > n_bars
        self.size = width, self.top + n_bars * self.step + (2.2 if self.is_cut else 0.6) * line

    def box(self, position: int) -> Region:
        """Return the rectangle of the bar with the index `position` in `hits.bars`."""
        bar = self.hits.bars[position]
        return self._between(bar.start, bar.end + 1, self.top + position * self.step, self.bar)

    def place_at(self, y: float) -> int | None:
        """Return the index of the bar at a vertical coordinate, or None."""
        position = int((y - self.top) // self.step)
        return position if 0 <= position < self.n_bars else None

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes of the heading, scale, query, its features and the visible bars."""
        shapes = [*self._scores(), *self._query(), *self._features()] if region.top < self.top else []
        first, last = (int((y - self.top) // self.step) for y in (region.top, region.bottom))
        for position in range(max(first, 0), min(last + 1, self.n_bars)):
            box, bar = self.box(position), self.hits.bars[position]
            _, ink = _CLASSES[bisect_right(BIT_SCORES, bar.bit_score or 0.0)]
            shapes.append(drawings.Bar(*box, ink))
            if bar.row == self.chosen:
                frame = box.left - 2, box.top - 2, box.width + 4, box.height + 4
                shapes.append(drawings.Bar(*frame, opacity=0.0, outline="text"))
            if self.names:
                shapes.append(self._label(self.line, box.top + box.height / 2, self.names[position]))
        if self.is_cut:
            note = f"the best {self.measure.number(self.n_bars)} of {self.measure.number(self.hits.total)} hits"
            middle = self.top + self.n_bars * self.step + 0.95 * self.line
            shapes.append(Label((self.left + self.right) / 2, middle, note, "middle", "faint"))
        return shapes

    def _features(self) -> list[Shape]:
        """Draw the key of feature groups and the features of the query."""
        shapes = self.key.shapes(self.groups)
        for lane, feature in self.features:
            span = self._between(feature.start + 1, feature.end + 1, self.first_lane + lane * _LANE, _LANE - 2)
            shapes += draw_feature(feature, span, (2.0, 2.0))
        return shapes

    def _x(self, residue: float) -> float:
        """Return the left edge of a residue of the query, counted from 1."""
        return self.left + (residue - 1) / max(self.hits.query_length, 1) * (self.right - self.left)

    def _between(self, start: int, end: int, top: float, height: float) -> Region:
        left = self._x(start)
        return Region(left, top, max(self._x(end) - left, 2.0), height)

    def _label(self, x: float, middle: float, text: str, *, is_bold: bool = False) -> Label:
        return Label(x, middle + CENTRE * self.measure.font_size, text, is_bold=is_bold)

    def _scores(self) -> list[Shape]:
        """Draw the name of the query and the legend of score classes."""
        line, measure, width = self.line, self.measure, self.size[0]
        shapes: list[Shape] = []
        if self.names:
            length = f" ({measure.number(self.hits.query_length)} residues)"
            name = measure.elided(f"Hits of {self.hits.query}", width - 2 * line - measure.width(length, is_bold=True), is_bold=True)
            shapes.append(self._label(line, 0.9 * line, name + length, is_bold=True))
        x, middle = line, 0.75 * line + self.heading
        title = measure.width("Bit score") + line
        needed = sum(measure.width(name) + 1.15 * line for name, _ in _CLASSES)
        # In a narrow window the classes are closer and have no title.
        gap = min(0.9 * line, max(2.0, (width - x - needed) / len(_CLASSES)))
        if title + needed + len(_CLASSES) * gap <= width - x:
            shapes.append(self._label(x, middle, "Bit score"))
            x += title
        for name, ink in _CLASSES:
            shapes += [drawings.Bar(x, middle - 0.25 * line, line * 0.9, line * 0.5, ink), self._label(x + 1.15 * line, middle, name)]
            x += 1.15 * line + measure.width(name) + gap
        return shapes

    def _query(self) -> list[Shape]:
        """Draw the query as a bar below residue numbers."""
        line, measure, top = self.line, self.measure, 2.9 * self.line + self.heading
        width = self.right - self.left
        shapes: list[Shape] = [drawings.Bar(self.left, top, width, max(5.0, self.bar))]
        ticks = nice_ticks(1, self.hits.query_length, max(2, int(width / measure.width("000000") / 1.6)), whole=True)
        free = -1.0
        for tick in (1.0, *(tick for tick in ticks if tick > 1)):
            text, at = measure.number(tick), self._x(tick)
            shapes.append(Stroke(at, top - 0.3 * line, at, top))
            half = measure.width(text) / 2
            if at - half > free:
                shapes.append(Label(at, top - 0.85 * line + CENTRE * measure.font_size, text, "middle"))
                free = at + half + 6
        return shapes


def draw_hits(
    hits: QueryBars, measure: TextMeasure | None = None, groups: Collection[str] = FEATURE_GROUPS, width: float | None = None
) -> Drawing:
    """Draw the best hits of a query with their names, for a page that is `width` points wide.

    `groups` are the feature groups to draw.
    """
    names = [bar.name for bar in hits.bars[:_MAXIMUM_EXPORTED]]
    return HitSheet(hits, measure or TextMeasure(_FIGURE_SIZE), width or _FIGURE_WIDTH, len(names), groups, names).draw()
