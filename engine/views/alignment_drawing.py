"""Drawings of pairwise alignments in rows that fit the width of the page or window.

Secondary structure is drawn with the usual symbols: a wave for a helix, an arrow for a strand, a line for coil.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, POSITIVE, AlignedPair
from proteoscope.engine.views.drawings import Area, Bar, Curve, Drawing, Label, Shape, Stroke
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.read_pair import DIFFERENT, UNSURE_DIFFERENT, UNSURE_IDENTICAL
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure
from proteoscope.engine.views.structure_pair import BEYOND, WITHIN, StructurePair

__all__ = ["INK_OF_STATE", "AlignmentSheet", "draw_alignment", "draw_helix", "draw_states", "draw_strand"]

_GROUP = 10
_FILLS: dict[int, tuple[Ink, float]] = {
    IDENTICAL: ("target", 0.35),
    POSITIVE: ("target", 0.14),
    GAP: ("mark", 0.27),
    **{kind: ("target", opacity) for kind, opacity in zip(WITHIN, (0.59, 0.41, 0.24, 0.11), strict=True)},
    BEYOND: ("decoy", 0.35),
    DIFFERENT: ("decoy", 0.59),
    UNSURE_IDENTICAL: ("target", 0.125),
    UNSURE_DIFFERENT: ("decoy", 0.235),
}
"""Background colour and opacity of each kind of column."""
_TRACK = 1.15
"""Height of a line of secondary structure relative to a line of residues."""
_SIGNS = (("H", "helix"), ("E", "strand"), ("", "middle line: the residue if both are the same, : within 5 Å, . aligned"))
"""Additional legend entries of structure alignments: symbol of the secondary structure and text."""
_SIDE = 0.84
"""Side of a legend box as a fraction of the font size."""
_FIGURE_SIZE, _FIGURE_WIDTH = 7.0, 520.0
_LONGEST = 6000.0
"""Maximum height of a figure, points (a PDF page allows 14,400); longer alignments are drawn wider."""
INK_OF_STATE: dict[str, Ink] = {"H": Ion("z"), "E": Ion("a"), "C": "faint"}
"""Colours of helix (H), strand (E) and coil (C), which also differ in shape."""
_TURN = 3.6
"""Residues per turn of an α-helix."""
_STEPS = 6  # line segments of the wave per residue


class _LegendItem(NamedTuple):
    """Legend entry: symbol (a kind of column, ``H`` helix, ``E`` strand, or ``""`` for none), text, x, line number, width of the symbol."""

    what: int | str
    text: str
    x: float
    line: int
    sign: float


class AlignmentSheet(Sheet):
    """Alignment laid out for a given width; `zoom` enlarges the residues but not the heading.

    Attributes
    ----------
    marks
        Marked columns, each with two booleans: whether the residue of the query, and that of the subject, is marked.
    per_row, n_rows
        Number of columns per row, and number of rows.
    cell, line
        Width of a column and height of a line of residues, points.
    """

    def __init__(self, pair: AlignedPair, measure: TextMeasure, width: float, zoom: float = 1.0) -> None:
        self.pair, self.measure, self.zoom = pair, measure, zoom
        self.title = f"{pair.query_name} and {pair.subject_name}, {', '.join(pair.facts)}"
        self.marks: dict[int, tuple[bool, bool]] = {}
        self.line, self.cell = measure.line * zoom, measure.cell(zoom)
        self.name = max(measure.width(title, zoom, is_fixed=True) for title in pair.titles) + 2 * self.cell
        self.number = (pair.widest_label + 1) * self.cell
        self.margin = 1.2 * self.cell
        sides = 2 * self.margin + self.name + 2 * self.number
        self.per_row = max(_GROUP, int((width - sides) // (self.cell * _GROUP)) * _GROUP)
        self.n_rows = -(-len(pair) // self.per_row)
        self.track = _TRACK * self.line if pair.has_states else 0.0
        self.row_height = 4.2 * self.line + 2 * self.track
        self.heading_width, self.heading_line = max(width - 2 * self.margin, 1.0), 1.2 * measure.line
        self.facts = [line for fact in pair.facts for line in self._wrapped(fact)]
        self.legend = list(self._placed_legend())
        self.top = (2.8 + len(self.facts) + self.legend[-1].line) * self.heading_line + 0.5 * self.line
        columns = min(self.per_row, max(len(pair), _GROUP))
        # The heading of a short alignment may be wider than its columns.
        self.size = max(sides + columns * self.cell, width), self.top + self.n_rows * self.row_height

    def corner(self, column: int) -> tuple[float, float]:
        """Return the upper left corner of the query residue in a column."""
        row, position = divmod(column, self.per_row)
        return self.margin + self.name + self.number + position * self.cell, self.top + row * self.row_height + self.track

    def column_at(self, x: float, y: float) -> int | None:
        """Return the column at a point of the sheet, or None."""
        row, down = divmod(y - self.top, self.row_height)
        position = int((x - self.corner(0)[0]) // self.cell)
        if row < 0 or not 0 <= position < self.per_row or down > 3 * self.line + 2 * self.track:
            return None
        column = int(row) * self.per_row + position
        return column if column < len(self.pair) else None

    def rows(self, region: Region) -> range:
        """Return the indices of the rows visible in a region."""
        first, last = (int((y - self.top) // self.row_height) for y in (region.top, region.bottom))
        return range(min(max(first, 0), self.n_rows), min(max(last + 1, 0), self.n_rows))

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes of the heading, the visible rows and the marks."""
        shapes = self._heading() if region.top < self.top else []
        for row in self.rows(region):
            shapes += self._row(row)
        return shapes + self._marks()

    def _wrapped(self, text: str) -> list[str]:
        """Break a heading line after commas if it is too wide."""
        lines: list[str] = []
        for part in text.split(", "):
            longer = f"{lines[-1]}, {part}" if lines else part
            if lines and self.measure.width(longer) <= self.heading_width:
                lines[-1] = longer
            else:
                lines.append(part)
        return lines

    def _placed_legend(self) -> Iterator[_LegendItem]:
        """Yield the legend entries with their positions, wrapped to the heading's width."""
        side, x, line = _SIDE * self.measure.font_size, 0.0, 0
        for what, text in (*self.pair.legend, *(_SIGNS if self.pair.has_states else ())):
            sign = side if isinstance(what, int) else 2.4 * side if what else 0.0
            width = sign + 5 + self.measure.width(text)
            if x and x + width > self.heading_width:
                x, line = 0.0, line + 1
            yield _LegendItem(what, text, x, line, sign)
            x += width + 1.4 * side

    def _heading(self) -> list[Shape]:
        """Return the shapes of the names, statistics and legend."""
        line, size, elided = self.heading_line, self.measure.font_size, self.measure.elided
        name = f"{self.pair.subject_name}  {self.pair.description}".rstrip()
        y = 0.85 * line + CENTRE * size
        shapes: list[Shape] = [Label(self.margin, y, elided(name, self.heading_width, is_bold=True), is_bold=True)]
        for number, fact in enumerate(self.facts, 1):
            shapes.append(Label(self.margin, y + number * line, elided(fact, self.heading_width)))
        side = _SIDE * size
        for item in self.legend:
            left, middle = self.margin + item.x, (2.05 + len(self.facts) + item.line) * line
            box = Region(left, middle - side / 2, item.sign, side)
            if isinstance(item.what, int):
                ink, opacity = _FILLS[item.what]
                shapes.append(Bar(*box, ink, opacity=opacity, outline="faint"))
            elif item.what:
                shapes.append((draw_helix if item.what == "H" else draw_strand)(box, item.sign / 5))
            text = elided(item.text, max(self.heading_width - item.x - item.sign, 20.0))
            shapes.append(Label(box.right + (5 if item.sign else 0), middle + CENTRE * size, text, ink="faint"))
        return shapes

    def _row(self, row: int) -> list[Shape]:
        pair, line, cell, size = self.pair, self.line, self.cell, self.zoom
        start, stop = row * self.per_row, min((row + 1) * self.per_row, len(pair))
        left, top = self.corner(start)
        kinds = pair.kinds[start:stop]
        shapes: list[Shape] = []
        for first, end in pairwise([0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), stop - start]):
            if (fill := _FILLS.get(int(kinds[first]))) is not None:
                shapes.append(Bar(left + first * cell, top, (end - first) * cell, 3 * line, fill[0], opacity=fill[1]))
        ends = pair.labels(start, stop)
        right = left + (stop - start + 0.5) * cell
        for k, characters in enumerate((pair.query, pair.middle, pair.subject)):
            y = self._baseline(top, k)
            ink: Ink = "faint" if k == 1 and not pair.has_states else "text"
            if text := characters[start:stop].rstrip():
                shapes.append(Label(left, y, text, ink=ink, size=size, is_fixed=True))
            if k != 1:
                shapes += [
                    Label(self.margin, y, pair.titles[k // 2], ink="faint", size=size, is_fixed=True),
                    Label(left - 0.5 * cell, y, ends[k // 2][0], "end", "faint", size=size, is_fixed=True),
                    Label(right, y, ends[k // 2][1], ink="faint", size=size, is_fixed=True),
                ]
        if isinstance(pair, StructurePair):
            for states, y in zip(pair.states, (top - self.track, top + 3 * line), strict=True):
                shapes += draw_states(states, start, stop, left, y, cell, self.track)
        return shapes

    def _marks(self) -> list[Shape]:
        """Highlight marked residues and frame adjacent marked columns."""
        shapes: list[Shape] = []
        for column, are_marked in self.marks.items():
            left, top = self.corner(column)
            for characters, k, is_marked in zip((self.pair.query, self.pair.subject), (0, 2), are_marked, strict=True):
                if is_marked:
                    shapes.append(Bar(left, top + k * self.line, self.cell, self.line, "highlight"))
                    y = self._baseline(top, k)
                    shapes.append(Label(left, y, characters[column], ink="highlighted", size=self.zoom, is_fixed=True))
        columns = np.sort(np.array(list(self.marks), np.int64))
        is_cut = (np.diff(columns) > 1) | (np.diff(columns // self.per_row) != 0)
        height = 3 * self.line + 2 * self.track
        for neighbours in np.split(columns, np.flatnonzero(is_cut) + 1) if len(columns) else ():
            left, top = self.corner(int(neighbours[0]))
            width = len(neighbours) * self.cell + 2
            shapes.append(Bar(left - 1, top - self.track - 1, width, height + 2, opacity=0.0, outline="text"))
        return shapes

    def _baseline(self, top: float, line: int) -> float:
        return top + (line + 0.5) * self.line + CENTRE * self.zoom * self.measure.font_size


def draw_alignment(pair: AlignedPair, measure: TextMeasure | None = None, width: float | None = None) -> Drawing:
    """Draw a whole alignment for a page, `width` points wide, or wider if the drawing would be too high.

    The heading also names the query.
    """
    measure, width = measure or TextMeasure(_FIGURE_SIZE), width or _FIGURE_WIDTH
    pair = replace(pair, facts=(f"aligned with {pair.query_name}", *pair.facts))
    sheet = AlignmentSheet(pair, measure, width)
    while sheet.size[1] > _LONGEST:
        width *= 1.5
        sheet = AlignmentSheet(pair, measure, width)
    return sheet.draw()


def draw_states(states: str, start: int, stop: int, left: float, top: float, cell: float, height: float) -> list[Shape]:
    """Draw the secondary structure of columns `start` to `stop` (exclusive); gaps (``-``) stay empty.

    The upper left corner is at (`left`, `top`), and a column is `cell` points wide. Helices and strands continue across rows: only
    the end of a strand has an arrowhead, not the end of a row.
    """
    codes = np.frombuffer(states[start:stop].encode("ascii"), np.uint8)
    shapes: list[Shape] = []
    for first, end in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
        area = Region(left + first * cell, top, (end - first) * cell, height)
        match chr(codes[first]):
            case "H":
                shapes.append(draw_helix(area, cell, phase=(start + first) / _TURN))
            case "E":
                shapes.append(draw_strand(area, cell, has_head=states[start + end :].lstrip("-")[:1] != "E"))
            case "C":
                middle = top + height / 2
                shapes.append(Stroke(area.left, middle, area.right, middle, INK_OF_STATE["C"], max(1.0, height * 0.07)))
    return shapes


def draw_helix(area: Region, cell: float, phase: float = 0.0) -> Curve:
    """Return the wave that represents a helix, with one turn per 3.6 residues; it starts after `phase` turns."""
    x = np.linspace(0.0, area.width, max(2, round(area.width / cell * _STEPS) + 1))
    y = area.top + area.height * (0.5 - 0.36 * np.sin(2 * np.pi * (phase + x / cell / _TURN)))
    return Curve(area.left + x, y, INK_OF_STATE["H"], max(1.2, area.height * 0.13))


def draw_strand(area: Region, cell: float, *, has_head: bool = True) -> Area:
    """Return the arrow to the right that represents a strand; without `has_head`, the arrow has no head, since the strand continues."""
    head = min(area.width, 1.6 * cell) if has_head else 0.0
    neck, half, wide = area.right - head, 0.16 * area.height, 0.38 * area.height
    x = np.array([area.left, neck, neck, area.right, neck, neck, area.left])
    return Area(x, area.top + area.height / 2 + np.array([-half, -half, -wide, 0.0, wide, half, half]), INK_OF_STATE["E"])
