"""Drawing of a stack of hits: names on the left; logo, numbers and query above; coloured residues; conservation below."""

import numpy as np

from proteoscope.engine.results.counts import counted
from proteoscope.engine.sequences.conservation import RESIDUES
from proteoscope.engine.sequences.stack import OUTSIDE
from proteoscope.engine.views.drawings import Bar, Basic, Clip, Drawing, Image, Label, Shape, Sticks, Stroke, Symbol
from proteoscope.engine.views.palette import Ink, Legible, OnCell, has_dark_text
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure, selected_characters
from proteoscope.engine.views.stack_colours import MAXIMUM_BITS, ColouredStack

__all__ = ["StackSheet", "draw_stack"]

_NAME_CHARACTERS = 22
_TENS = 10
_HEAD, _FOOT, _LOGO = 2, 2.0, 4.5
"""Number of lines above the hits (numbers and query); heights of the conservation bars and of the logo, in lines."""
_LEAST_HITS = 4
"""Minimum number of visible lines of hits below a logo; if the window is too low, the logo is hidden."""
_LEAST_SYMBOL = 0.6
"""Minimum height of a drawn symbol of a logo, points or pixels."""
_NARROW = 0.45
"""Width of the symbol I relative to a column."""
_BITS = (0, 2, 4)
_FIGURE_SIZE, _FIGURE_COLUMNS, _LONGEST = 7.0, 80, 6000.0


class StackSheet(Sheet):
    """Stack of alignments whose names, logo, query and conservation stay visible while the hits scroll.

    Attributes
    ----------
    marked
        Index of the marked hit in the stack, -1 for none.
    cell, line
        Width of a column and height of a row.
    name
        Width of the column of names.
    logo
        Height of the logo above the numbers, 0 without one.
    head, foot
        Heights of the fixed areas above (including the logo) and below the hits.

    Parameters
    ----------
    height
        Height of the window, which determines if there is space for the logo; None on paper.
    """

    def __init__(self, stack: ColouredStack, measure: TextMeasure, height: float | None = None) -> None:
        self.stack, self.measure, self.marked = stack, measure, -1
        n_hits, n_columns = len(stack.stack) - 1, len(stack.columns)
        self.title = f"{counted(n_hits, 'hit')} below {stack.stack.query_name}, {counted(stack.stack.n_columns, 'column')}"
        self.line, self.cell = measure.line, measure.cell()
        self.name = (_NAME_CHARACTERS + 1) * self.cell
        has_space = height is None or height >= (_LOGO + _HEAD + _LEAST_HITS + _FOOT) * self.line
        self.logo = _LOGO * self.line if stack.logo is not None and has_space else 0.0
        self.head, self.foot = self.logo + _HEAD * self.line, _FOOT * self.line
        self.size = self.name + n_columns * self.cell, self.head + n_hits * self.line + self.foot

    def row_at(self, y: float, region: Region) -> int | None:
        """Return the row (0 for the query) at a vertical coordinate, or None if there is no row; `region` is the visible region."""
        down = y - region.top
        row = 0 if down < self.head else int((y - self.head) // self.line) + 1
        return row if self.logo <= down < region.height - self.foot and row < len(self.stack.stack) else None

    def place_at(self, x: float, y: float, region: Region) -> tuple[int, int] | None:
        """Return the row and column at a point, or None; `region` is the visible region."""
        row, column = self.row_at(y, region), self._column_at(x, region)
        return None if row is None or column is None else (row, column)

    def text_at(self, x: float, y: float, region: Region) -> str:
        """Return the tooltip at a point; `region` is the visible region."""
        if (column := self._column_at(x, region)) is None:
            return ""
        if self.stack.logo is not None and 0 <= y - region.top < self.logo:
            return self.stack.logo.text_at(column)
        row = self.row_at(y, region)
        return "" if row is None else self.stack.text_at(row, column)

    def _column_at(self, x: float, region: Region) -> int | None:
        column = int((x - self.name) // self.cell)
        return column if x - region.left >= self.name and column < len(self.stack.columns) else None

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes of the visible hits and, in front of these, of the fixed areas: names, logo, numbers, query, conservation."""
        line, left, top = self.line, region.left, region.top
        start, stop = (int((x - self.name) // self.cell) for x in (left + self.name, region.right))
        columns = slice(start, min(stop + 1, len(self.stack.columns)))
        first, last = int(top // line), int((region.bottom - self.head) // line)
        rows = slice(first + 1, min(last + 1, len(self.stack.stack) - 1) + 1)
        foot = min(region.bottom, self.size[1]) - self.foot
        x = self.name + columns.start * self.cell
        inner = left + self.name, region.width - self.name
        names = [shape for row in range(rows.start, rows.stop) for shape in self._name(row, left, self.head + (row - 1) * line)]
        hits = self._residues(rows, columns, x, self.head + first * line)
        numbers = top + self.logo
        above = [*self._logo_symbols(columns, x, top), *self._numbers(columns, x, numbers)]
        above += self._residues(slice(0, 1), columns, x, numbers + line)
        return [
            Clip(inner[0], top + self.head, inner[1], foot - top - self.head, tuple(hits)),
            Clip(left, top + self.head, self.name, foot - top - self.head, tuple(names)),
            Clip(inner[0], top, inner[1], self.head, tuple(above)),
            *self._scale(left, top),
            *self._name(0, left, top + self.logo + line),
            Clip(inner[0], foot, inner[1], self.foot, tuple(self._conservation(columns, x, foot))),
            Label(left + 4, self._baseline(foot + 0.4 * line), "conservation", ink="faint", is_fixed=True),
        ]

    def block(self, columns: slice, top: float) -> list[Shape]:
        """Draw the given columns of all rows with names, below the vertical coordinate `top`."""
        numbers, below = top + self.logo, top + self.logo + self.line
        shapes: list[Shape] = [*self._scale(0.0, top), *self._logo_symbols(columns, self.name, top)]
        shapes += self._numbers(columns, self.name, numbers)
        shapes += self._residues(slice(0, len(self.stack.stack)), columns, self.name, below)
        for row in range(len(self.stack.stack)):
            shapes += self._name(row, 0.0, below + row * self.line)
        shapes += self._conservation(columns, self.name, below + len(self.stack.stack) * self.line)
        return shapes

    def _logo_symbols(self, columns: slice, left: float, top: float) -> list[Basic]:
        """Draw the symbols of the logo, with the largest symbol of each column on top."""
        logo = self.stack.logo
        if not self.logo or logo is None:
            return []
        heights = logo.bits[:, columns] * (self._logo_height / MAXIMUM_BITS)
        order = np.argsort(heights, axis=0, kind="stable")
        sorted_heights = np.take_along_axis(heights, order, axis=0)
        up = np.cumsum(sorted_heights, axis=0)
        shapes: list[Basic] = []
        for position, at in zip(*(axis.tolist() for axis in np.nonzero(sorted_heights >= _LEAST_SYMBOL)), strict=True):
            residue = int(order[position, at])
            red, green, blue, is_coloured = logo.colours[residue, columns.start + at].tolist()
            ink: Ink = Legible(red, green, blue) if is_coloured else "text"
            width = self.cell * (_NARROW if RESIDUES[residue] == "I" else 1.0)
            x, y = left + (at + 0.5) * self.cell - width / 2, top + self._logo_top + self._logo_height - float(up[position, at])
            shapes.append(Symbol(x, y, width, float(sorted_heights[position, at]), RESIDUES[residue], ink))
        return shapes

    def _scale(self, left: float, top: float) -> list[Basic]:
        """Draw the scale of the logo next to the names."""
        if not self.logo:
            return []
        right, size = left + self.name, 0.86
        shapes: list[Basic] = [Label(left + 4, self._baseline(top + self._logo_top), "Logo (bits)", ink="faint", is_fixed=True)]
        for bits in _BITS:
            y = top + self._logo_top + self._logo_height * (1 - bits / MAXIMUM_BITS)
            down = CENTRE * size * self.measure.font_size
            shapes += [Stroke(right - 5, y, right - 1, y, "faint"), Label(right - 8, y + down, str(bits), "end", "faint", size=size)]
        return shapes

    @property
    def _logo_top(self) -> float:
        return 0.25 * self.line

    @property
    def _logo_height(self) -> float:
        """Height of a symbol with the maximum information content."""
        return self.logo - 0.5 * self.line

    def _residues(self, rows: slice, columns: slice, left: float, top: float) -> list[Basic]:
        """Draw the coloured residues of the given rows and columns; `left` and `top` are the upper left corner."""
        colours = np.ascontiguousarray(self.stack.colours[rows, columns])
        if not colours.size:
            return []
        n_rows, n_columns = colours.shape[:2]
        shapes: list[Basic] = [Image(left, top, n_columns * self.cell, n_rows * self.line, colours, has_text=True)]
        codes, is_filled = self.stack.symbols[rows, columns], colours[:, :, 3] > 0
        is_light = has_dark_text(colours)
        kinds: tuple[tuple[np.ndarray, Ink], ...] = (
            (~is_filled & (codes != OUTSIDE), "text"),
            (is_filled & is_light, OnCell(is_dark=True)),
            (is_filled & ~is_light, OnCell(is_dark=False)),
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
    """Draw a whole stack in blocks for a page, up to `width` points wide, or wider if the drawing would be too high."""
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
