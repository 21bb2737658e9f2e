"""A stack of hits: names on the left, residues in colours, the query and its numbers above, conservation below."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.sequences.stack import OUTSIDE
from proteoscope.engine.views.drawings import Bar, Basic, Clip, Drawing, Image, Label, Shape, Sticks
from proteoscope.engine.views.palette import Fixed, Ink
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure, selected_characters
from proteoscope.engine.views.stack_colours import ColouredStack

__all__ = ["StackSheet", "draw_stack"]

_NAME_CHARACTERS = 22
_TENS = 10
_HEAD, _FOOT = 2, 2.0
"""Lines of numbers and query above the hits; height of the conservation bars in lines."""
_LIGHT = 140.0
"""Luminance of a colour from which the characters on it are dark."""
_DARK_TEXT, _LIGHT_TEXT = Fixed(0, 0, 0), Fixed(255, 255, 255)
_LUMINANCE = np.array([0.299, 0.587, 0.114])
_FIGURE_SIZE, _FIGURE_COLUMNS, _LONGEST = 7.0, 80, 6000.0


class StackSheet(Sheet):
    """A stack whose names, query and conservation stay in sight while the hits are scrolled.

    Attributes
    ----------
    marked
        The hit that is marked, by its place in the stack; -1 for none.
    cell, line
        Width of a column, height of a row.
    name
        Width of the names.
    head, foot
        Heights of what stays in sight.
    """

    def __init__(self, stack: ColouredStack, measure: TextMeasure) -> None:
        self.stack, self.measure, self.marked = stack, measure, -1
        n_hits, n_columns = len(stack.stack) - 1, len(stack.columns)
        self.title = f"{n_hits} hits below {stack.stack.query_name}, {stack.stack.n_columns} columns"
        self.line, self.cell = measure.line, measure.cell()
        self.name = (_NAME_CHARACTERS + 1) * self.cell
        self.head, self.foot = _HEAD * self.line, _FOOT * self.line
        self.size = self.name + n_columns * self.cell, self.head + n_hits * self.line + self.foot

    def row_at(self, y: float, region: Region) -> int | None:
        """Return the row (0 for the query) at a height while a region is visible."""
        down = y - region.top
        row = 0 if down < self.head else int((y - self.head) // self.line) + 1
        return row if 0 <= down < region.height - self.foot and row < len(self.stack.stack) else None

    def place_at(self, x: float, y: float, region: Region) -> tuple[int, int] | None:
        """Row and column at a place, while a region is in sight."""
        row, column = self.row_at(y, region), int((x - self.name) // self.cell)
        return (row, column) if row is not None and x - region.left >= self.name and column < len(self.stack.columns) else None

    def shapes(self, region: Region) -> list[Shape]:
        """Return the visible hits, with numbers, query, conservation and names in front."""
        line, left, top = self.line, region.left, region.top
        start, stop = (int((x - self.name) // self.cell) for x in (left + self.name, region.right))
        columns = slice(start, min(stop + 1, len(self.stack.columns)))
        first, last = int(top // line), int((region.bottom - self.head) // line)
        rows = slice(first + 1, min(last + 1, len(self.stack.stack) - 1) + 1)
        foot = region.bottom - self.foot
        x = self.name + columns.start * self.cell
        inner = left + self.name, region.width - self.name
        names = [shape for row in range(rows.start, rows.stop) for shape in self._name(row, left, self.head + (row - 1) * line)]
        hits = self._residues(rows, columns, x, self.head + first * line)
        return [
            Clip(inner[0], top + self.head, inner[1], foot - top - self.head, tuple(hits)),
            Clip(left, top + self.head, self.name, foot - top - self.head, tuple(names)),
            Clip(
                inner[0], top, inner[1], self.head, (*self._numbers(columns, x, top), *self._residues(slice(0, 1), columns, x, top + line))
            ),
            *self._name(0, left, top + line),
            Clip(inner[0], foot, inner[1], self.foot, tuple(self._conservation(columns, x, foot))),
            Label(left + 4, self._baseline(foot + 0.4 * line), "conservation", ink="faint", is_fixed=True),
        ]

    def block(self, columns: slice, top: float) -> list[Shape]:
        """Draw some columns of all rows with names, from a height down."""
        below = top + self.line
        shapes: list[Shape] = [*self._numbers(columns, self.name, top)]
        shapes += self._residues(slice(0, len(self.stack.stack)), columns, self.name, below)
        for row in range(len(self.stack.stack)):
            shapes += self._name(row, 0.0, below + row * self.line)
        shapes += self._conservation(columns, self.name, below + len(self.stack.stack) * self.line)
        return shapes

    def _residues(self, rows: slice, columns: slice, left: float, top: float) -> list[Basic]:
        """Draw coloured residues of some rows and columns from a corner."""
        colours = np.ascontiguousarray(self.stack.colours[rows, columns])
        if not colours.size:
            return []
        n_rows, n_columns = colours.shape[:2]
        shapes: list[Basic] = [Image(left, top, n_columns * self.cell, n_rows * self.line, colours)]
        codes, is_filled = self.stack.symbols[rows, columns], colours[:, :, 3] > 0
        is_light = colours[:, :, :3] @ _LUMINANCE >= _LIGHT
        kinds: tuple[tuple[np.ndarray, Ink], ...] = (
            (~is_filled & (codes != OUTSIDE), "text"),
            (is_filled & is_light, _DARK_TEXT),
            (is_filled & ~is_light, _LIGHT_TEXT),
        )
        for is_meant, ink in kinds:
            for row in np.flatnonzero(is_meant.any(axis=1)).tolist():
                text = selected_characters(codes[row], is_meant[row])
                shapes.append(Label(left, self._baseline(top + row * self.line), text, ink=ink, is_fixed=True))
        if self.stack.follows_insertion is not None:
            at_row, at_column = np.nonzero(self.stack.follows_insertion[rows, columns])
            x, above = np.asarray(left + at_column * self.cell, np.float64), np.asarray(top + at_row * self.line, np.float64)
            shapes.append(Sticks(x, above, above + self.line, "mark", 2.0))
        return shapes

    def _name(self, row: int, left: float, top: float) -> list[Basic]:
        """Draw the name of a row, highlighted if marked."""
        stack, is_marked = self.stack.stack, row > 0 and row - 1 == self.marked
        name = stack.query_name if row == 0 else stack.subjects.names[row - 1]
        text = name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…"
        label = Label(left + 4, self._baseline(top), text, ink="highlighted" if is_marked else "text", is_fixed=True)
        return [Bar(left, top, self.name, self.line, "highlight"), label] if is_marked else [label]

    def _numbers(self, columns: slice, left: float, top: float) -> list[Basic]:
        """Draw the numbers of every tenth residue of the query."""
        numbers = self.stack.query_place[columns] + 1
        tenth = np.flatnonzero((numbers > 0) & (numbers % _TENS == 0)).tolist()
        y = self._baseline(top)
        return [Label(left + (at + 1) * self.cell, y, str(int(numbers[at])), "end", "faint", is_fixed=True) for at in tenth]

    def _conservation(self, columns: slice, left: float, top: float) -> list[Basic]:
        """Draw the conservation of columns as bars."""
        grade, bottom = self.stack.grade[columns], top + self.foot - 2
        x = np.asarray(left + (np.arange(len(grade)) + 0.5) * self.cell, np.float64)
        return [Sticks(x, np.asarray(bottom - (self.foot - 4) * grade, np.float64), np.full(len(grade), bottom), "target", 0.8 * self.cell)]

    def _baseline(self, top: float) -> float:
        return top + 0.5 * self.line + CENTRE * self.measure.font_size


def draw_stack(stack: ColouredStack, measure: TextMeasure | None = None, width: float | None = None) -> Drawing:
    """Draw a whole stack in blocks for a page, up to `width` points wide unless it is too long."""
    sheet = StackSheet(stack, measure or TextMeasure(_FIGURE_SIZE))
    height, n_columns, n_all = sheet.size[1] + sheet.line, _FIGURE_COLUMNS, len(stack.columns)
    if width is not None:
        n_columns = max(1, int((width - sheet.name - 8) / sheet.cell))
    while height * -(-n_all // n_columns) > _LONGEST and n_columns < n_all:
        n_columns *= 2
    n_columns = min(n_columns, n_all)
    shapes: list[Shape] = []
    for number, start in enumerate(range(0, n_all, n_columns)):
        shapes += sheet.block(slice(start, min(start + n_columns, n_all)), number * height)
    size = sheet.name + n_columns * sheet.cell + 8, height * -(-n_all // n_columns)
    return Drawing(*size, sheet.title, tuple(shapes), sheet.measure.font_size)
