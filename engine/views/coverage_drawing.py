"""Coverage map of a protein: its sequence in rows, with peptides and features as bars below each row."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection

import numpy as np

from proteoscope.engine.formats.features import FEATURE_GROUPS
from proteoscope.engine.structures.colouring import quantity_colours, scale_colours
from proteoscope.engine.views.coverage import Coverage, PlacedPeptide, ProteinFeature, feature_lanes
from proteoscope.engine.views.drawings import Bar, Drawing, Image, Label, Shape
from proteoscope.engine.views.feature_drawing import QUANTITY, Key, draw_feature
from proteoscope.engine.views.palette import Fixed, Ink
from proteoscope.engine.views.peptide_quantities import PeptideQuantities
from proteoscope.engine.views.sheets import CENTRE, Region, Sheet, TextMeasure

__all__ = ["CoverageSheet", "draw_coverage"]

_GROUP = 10
_LANES = 6
"""Maximum number of lines of peptides below each row; further peptides only colour the sequence."""
_FEATURE_LANES = 12
"""Maximum number of lines of features below each row."""
_COVERED = 0.27
"""Opacity of the background of covered residues."""
_FIGURE_SIZE, _FIGURE_WIDTH = 7.0, 1000.0
_SHADES = 64  # number of colours in the drawn scale of quantities


class CoverageSheet(Sheet):
    """Coverage map laid out for a given width, with three to six groups of ten residues per row.

    Attributes
    ----------
    chosen
        Row of the selected peptide in the table of peptides, or None.
    residues
        Marked residues, from 0.
    """

    def __init__(
        self,
        coverage: Coverage,
        measure: TextMeasure,
        width: float,
        shown: Collection[str] = FEATURE_GROUPS,
        quantities: PeptideQuantities | None = None,
    ) -> None:
        self.coverage, self.measure, self.shown, self.quantities = coverage, measure, shown, quantities
        self.title = coverage.title
        self.chosen: int | None = None
        self.residues: tuple[int, ...] = ()
        self.line, self.cell = measure.line, measure.cell()
        self.numbers, self.bar = 5 * self.cell + 8, max(4.0, self.line * 0.34)
        groups = int((width - 2 * self.numbers - 8) // ((_GROUP + 1) * self.cell))
        self.per_row = min(max(groups, 3), 6) * _GROUP
        right = 2 * self.numbers + self._x(self.per_row) - self._x(0)
        n_rows = -(-len(coverage.sequence) // self.per_row)
        self.peptides: list[list[PlacedPeptide]] = [[] for _ in range(n_rows)]
        for peptide in coverage.peptides:
            for row in self._rows_of(peptide):
                self.peptides[row].append(peptide)
        self.features: list[list[tuple[int, ProteinFeature]]] = [[] for _ in range(n_rows)]
        for lane, feature in feature_lanes(coverage.features, shown):
            for row in self._rows_of(feature):
                self.features[row].append((lane, feature))
        self.key = Key([*coverage.groups, *([QUANTITY] if quantities else [])], measure, 4.0, self.line * 1.9, right)
        self.tops = [self.line * 2.2 if not self.key.boxes else self.key.bottom + self.line * 0.5]
        self.n_lanes = [min(max((peptide.lane + 1 for peptide in peptides), default=0), _LANES) for peptides in self.peptides]
        # Lanes without a feature in a row take no space in that row.
        self.lanes = [
            {lane: at for at, lane in enumerate(sorted({lane for lane, _ in feature})[:_FEATURE_LANES])} for feature in self.features
        ]
        for n_lanes, lanes in zip(self.n_lanes, self.lanes, strict=True):
            below = (n_lanes + len(lanes)) * (self.bar + 2) + (self.line * 0.2 if lanes else 0.0)
            self.tops.append(self.tops[-1] + self.line * 1.95 + below)
        self.shades = self._shades()
        self.size = right + 8, self.tops[-1] + self.line * 0.6

    def residue(self, position: int) -> Region:
        """Return the rectangle of the residue with an index from 0."""
        return self._span(position // self.per_row, position, position + 1, 0.0, self.line * 1.2)

    def residue_at(self, x: float, y: float) -> int | None:
        """Return the residue (from 0) at a point of the sheet, or None."""
        row = bisect_right(self.tops, y) - 1
        group, column = divmod(int((x - self.numbers) // self.cell), _GROUP + 1)
        position = row * self.per_row + group * _GROUP + column
        is_there = 0 <= row < len(self.peptides) and x >= self.numbers and column < _GROUP and (group + 1) * _GROUP <= self.per_row
        return position if is_there and position < len(self.coverage.sequence) and y < self.tops[row] + self.line * 1.2 else None

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes of the title, the key, the visible rows and the marks."""
        shapes = [*self._heading(), *self.key.shapes(self.shown)] if region.top < self.tops[0] else []
        first, last = max(0, bisect_right(self.tops, region.top) - 1), bisect_left(self.tops, region.bottom)
        for row in range(first, min(last, len(self.peptides))):
            shapes += [*self._sequence(row), *self._features(row), *self._peptides(row)]
        for position in self.residues:
            if position < len(self.coverage.sequence):
                shapes.append(Bar(*self.residue(position), opacity=0.0, outline="text"))
        return shapes

    def _rows_of(self, item: PlacedPeptide | ProteinFeature) -> range:
        return range(item.start // self.per_row, (item.end - 1) // self.per_row + 1)

    def _x(self, column: int) -> float:
        """Return the x of the left edge of a residue, given by its column in its row; a blank column separates groups of residues."""
        return self.numbers + (column + column // _GROUP) * self.cell

    def _span(self, row: int, start: int, end: int, down: float, height: float) -> Region:
        """Return the rectangle of those residues `start` to `end` (exclusive) that are in a row, `down` points below the row's top."""
        first, last = max(start - row * self.per_row, 0), min(end - row * self.per_row, self.per_row) - 1
        left = self._x(first)
        return Region(left, self.tops[row] + down, self._x(last) + self.cell - left, height)

    def _shades(self) -> dict[int, Ink]:
        """Return the colour for the quantity of each peptide, by row in the table of peptides; empty if quantities are hidden."""
        if self.quantities is None or QUANTITY not in self.shown:
            return {}
        values = [self.quantities.value(self.coverage, peptide) for peptide in self.coverage.peptides]
        colours = quantity_colours(np.array([np.nan if value is None else value for value in values], np.float64), self.quantities.scale)
        return {peptide.row: Fixed(*colour) for peptide, colour in zip(self.coverage.peptides, colours.tolist(), strict=True)}

    def _heading(self) -> list[Shape]:
        """Draw the title and, if quantities are shown, the colour scale."""
        width, y = self.size[0] - 8, self.line * 0.4 + self.measure.font_size
        shapes: list[Shape] = []
        if self.quantities is not None and QUANTITY in self.shown:
            scale, x, bar = self.quantities.scale, self.size[0] - 4, self.line * 4
            high, low = f"{scale.high:.1f}", f"{scale.title}:  {scale.low:.1f}"
            x -= self.measure.width(high) + bar + 16
            colours = scale_colours(np.linspace(0.0, 1.0, _SHADES), 0.0, 1.0, scale.stops)
            pixels = np.concatenate((colours, np.full((_SHADES, 1), 255, np.uint8)), axis=1)[None]
            shapes += [
                Label(x, y, low, "end"),
                Image(x + 8, y - self.line * 0.6, bar, self.line * 0.6, np.ascontiguousarray(pixels)),
                Label(self.size[0] - 4, y, high, "end"),
            ]
            width = x - self.measure.width(low) - 16
        return [Label(4, y, self.measure.elided(self.coverage.title, width)), *shapes]

    def _sequence(self, row: int) -> list[Shape]:
        """Draw the numbered residues of a row; covered residues are bold on a background."""
        start, end = row * self.per_row, min((row + 1) * self.per_row, len(self.coverage.sequence))
        codes = np.frombuffer(self.coverage.sequence[start:end].encode("ascii", "replace"), np.uint8)
        columns = np.arange(len(codes)) + np.arange(len(codes)) // _GROUP
        is_covered, modified = (
            self.coverage.covered[start:end],
            [position for position in range(start, end) if position in self.coverage.modified],
        )
        is_modified = np.isin(np.arange(start, end), modified)
        y = self.tops[row] + self.line * 0.6 + CENTRE * self.measure.font_size
        shapes: list[Shape] = [
            Label(self.numbers - 6, y, str(start + 1), "end", "faint", is_fixed=True),
            Label(self._x(len(codes) - 1) + self.cell + 6, y, str(end), ink="faint", is_fixed=True),
        ]
        cuts = np.flatnonzero(np.diff(is_covered.astype(np.int8), prepend=0, append=0)).reshape(-1, 2) + start
        shapes += [Bar(*self._span(row, first, last, 0.0, self.line * 1.2), "target", opacity=_COVERED) for first, last in cuts.tolist()]
        kinds: tuple[tuple[np.ndarray, Ink, bool], ...] = (
            (~is_covered & ~is_modified, "faint", False),
            (is_covered & ~is_modified, "text", True),
            (is_modified, "mark", True),
        )
        for is_meant, ink, is_bold in kinds:
            if is_meant.any():
                spread = np.full(columns[-1] + 1, ord(" "), np.uint8)
                spread[columns[is_meant]] = codes[is_meant]
                shapes.append(Label(self.numbers, y, spread.tobytes().decode(), ink=ink, is_bold=is_bold, is_fixed=True))
        for position in modified:
            left, top, width, height = self.residue(position)
            shapes.append(Bar(left + 1, top + height - 2, width - 2, 2, "mark"))
        return shapes

    def _features(self, row: int) -> list[Shape]:
        """Draw the features of a row."""
        shapes: list[Shape] = []
        for lane, feature in self.features[row]:
            if (at := self.lanes[row].get(lane)) is not None:
                down = self.line * 1.55 + (self.n_lanes[row] + at) * (self.bar + 2)
                left, top, width, height = self._span(row, feature.start, feature.end, down, self.bar)
                rows, end = self._rows_of(feature), self.cell - 2
                shapes += draw_feature(feature, Region(left + 1, top, width - 2, height), (end * (row == rows[0]), end * (row == rows[-1])))
        return shapes

    def _peptides(self, row: int) -> list[Shape]:
        """Draw the peptides of a row with their modifications; the selected peptide has a frame."""
        bars: list[Shape] = []
        carried: list[Shape] = []
        for peptide in self.peptides[row]:
            if peptide.lane < _LANES:
                is_chosen = peptide.row == self.chosen
                down = self.line * 1.35 + peptide.lane * (self.bar + 2)
                left, top, width, height = self._span(row, peptide.start, peptide.end, down, self.bar)
                ink = self.shades.get(peptide.row, "decoy" if is_chosen else "target")
                bars.append(Bar(left + 1, top, width - 2, height, ink, target=peptide, outline="text" if is_chosen else None))
                for position, _ in peptide.modifications:
                    if position // self.per_row == row:
                        carried.append(Bar(self.residue(position).left + self.cell / 2 - 2, top, 4, height, "mark"))
        return bars + carried


def draw_coverage(
    coverage: Coverage,
    measure: TextMeasure | None = None,
    shown: Collection[str] = FEATURE_GROUPS,
    quantities: PeptideQuantities | None = None,
    width: float | None = None,
) -> Drawing:
    """Draw a whole coverage map for a page.

    Parameters
    ----------
    shown
        Groups of features to draw. If `QUANTITY` is among them, peptides are coloured by quantity.
    width
        Width of the page, points.
    """
    return CoverageSheet(coverage, measure or TextMeasure(_FIGURE_SIZE), width or _FIGURE_WIDTH, shown, quantities).draw()
