"""How a coverage map is drawn: where residues, peptides and features stand, and their strokes; the same on the screen and on paper."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QLinearGradient, QPainter, QPen

from proteoscope.engine.formats.features import FEATURE_GROUPS
from proteoscope.engine.structures.colouring import quantity_colours
from proteoscope.engine.views.coverage import Coverage, PlacedPeptide, ProteinFeature, feature_lanes
from proteoscope.engine.views.peptide_quantities import PeptideQuantities
from proteoscope.gui.colours import PlotColours
from proteoscope.gui.plots.export import figure_font
from proteoscope.gui.plots.feature_groups import QUANTITY, colour_of_group, key_of_groups, paint_key

__all__ = ["CoverageLayout", "paint_coverage", "paint_peptides"]

_GROUP = 10
_LANES = 6
"""Bars under each row at most; what lies deeper is still coloured in the sequence, and in the tables."""
_FEATURE_LANES = 12
"""Spans of features under each row at most."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class CoverageLayout:
    """Places of residues and bars for a font; the same on the screen and on paper."""

    def __init__(
        self,
        coverage: Coverage,
        font: QFont,
        width: float,
        shown: Collection[str] = FEATURE_GROUPS,
        quantities: PeptideQuantities | None = None,
    ) -> None:
        metrics = QFontMetricsF(font)
        self.coverage, self.quantities = coverage, quantities
        self.shades = _shades(coverage, quantities) if quantities is not None and QUANTITY in shown else None
        self.line = metrics.height()
        self.cell = metrics.horizontalAdvance("W") * 1.12
        self.numbers = metrics.horizontalAdvance("00000") + 8
        self.gap = self.cell * 0.6
        self.bar = max(4.0, self.line * 0.34)
        group_width = _GROUP * self.cell + self.gap
        # As many groups of ten as fit, at least three, and at most sixty residues.
        groups = int((width - 2 * self.numbers - 8) // group_width)
        self.per_row = min(max(groups, 3), 6) * _GROUP
        n_rows = (len(coverage.sequence) + self.per_row - 1) // self.per_row
        self.lanes = [0] * n_rows
        for peptide in coverage.peptides:
            for row in range(peptide.start // self.per_row, (peptide.end - 1) // self.per_row + 1):
                self.lanes[row] = max(self.lanes[row], min(peptide.lane + 1, _LANES))
        self.shown = shown
        self.features = feature_lanes(coverage.features, shown)
        in_row: list[set[int]] = [set() for _ in range(n_rows)]
        for lane, feature in self.features:
            for row in range(feature.start // self.per_row, (feature.end - 1) // self.per_row + 1):
                in_row[row].add(lane)
        # Lanes that a row does not need take no room in it.
        self._places = [{lane: place for place, lane in enumerate(sorted(lanes)[:_FEATURE_LANES])} for lanes in in_row]
        right = 2 * self.numbers + self.per_row * self.cell + (self.per_row // _GROUP) * self.gap
        groups_of_key = [*coverage.groups, *([QUANTITY] if quantities is not None else [])]
        self.key = key_of_groups(groups_of_key, metrics, 4.0, self.line * 1.9, right)
        self.tops = [self.line * 2.2 + (self.key[-1][1].bottom() - self.line * 1.7 if self.key else 0.0)]
        for lanes, places in zip(self.lanes, self._places, strict=True):
            below = lanes * (self.bar + 2) + len(places) * (self.bar + 2) + (self.line * 0.2 if places else 0.0)
            self.tops.append(self.tops[-1] + self.line * 1.45 + below + self.line * 0.5)

    @property
    def size(self) -> QSizeF:
        """Of the whole map."""
        width = 2 * self.numbers + self.per_row * self.cell + (self.per_row // _GROUP) * self.gap + 8
        return QSizeF(width, self.tops[-1] + self.line * 0.6)

    def residue(self, place: int) -> QRectF:
        """The cell of a residue."""
        row, column = divmod(place, self.per_row)
        left = self.numbers + column * self.cell + (column // _GROUP) * self.gap
        return QRectF(left, self.tops[row], self.cell, self.line * 1.2)

    def bars(self, peptide: PlacedPeptide) -> Iterator[QRectF]:
        """The bar of a peptide, in each row that it reaches into; none in the lanes that are not drawn."""
        if peptide.lane >= _LANES:
            return
        at = peptide.start
        while at < peptide.end:
            row = at // self.per_row
            last = min(peptide.end, (row + 1) * self.per_row) - 1
            first_cell, last_cell = self.residue(at), self.residue(last)
            top = self.tops[row] + self.line * 1.35 + peptide.lane * (self.bar + 2)
            yield QRectF(first_cell.left() + 1, top, last_cell.right() - first_cell.left() - 2, self.bar)
            at = last + 1

    def spans(self, lane: int, feature: ProteinFeature) -> Iterator[QRectF]:
        """The span of a feature, in each row that it reaches into; none in the lanes that are not drawn."""
        at = feature.start
        while at < feature.end:
            row = at // self.per_row
            last = min(feature.end, (row + 1) * self.per_row) - 1
            place = self._places[row].get(lane)
            if place is not None:
                first_cell, last_cell = self.residue(at), self.residue(last)
                top = self.tops[row] + self.line * 1.55 + (self.lanes[row] + place) * (self.bar + 2)
                yield QRectF(first_cell.left() + 1, top, last_cell.right() - first_cell.left() - 2, self.bar)
            at = last + 1


def _shades(coverage: Coverage, quantities: PeptideQuantities) -> dict[int, QColor]:
    """The colour of each peptide by its quantity, by its row; grey where it has none."""
    values = [quantities.value(coverage, one) for one in coverage.peptides]
    colours = quantity_colours(np.array([np.nan if one is None else one for one in values], np.float64), quantities.scale).tolist()
    return {one.row: QColor(*colour) for one, colour in zip(coverage.peptides, colours, strict=True)}


def _paint_scale(painter: QPainter, layout: CoverageLayout, colours: PlotColours, font: QFont) -> float:
    """The scale of the quantities at the right of the heading; how much room it takes."""
    if layout.shades is None or layout.quantities is None:
        return 0.0
    scale, metrics = layout.quantities.scale, QFontMetricsF(font)
    before, behind = (f"{scale.title}:", f"{scale.low:.1f}"), f"{scale.high:.1f}"
    *wide, last = (metrics.horizontalAdvance(one) + 8 for one in (*before, behind))
    bar = layout.line * 4
    total = sum(wide) + last + bar
    x, place = layout.size.width() - total - 4, QRectF(0, layout.line * 0.4, 0, layout.line * 1.3)
    painter.setPen(colours.text)
    for text, width in zip(before, wide, strict=True):
        painter.drawText(QRectF(x, place.top(), width, place.height()), _LEFT, text)
        x += width
    gradient = QLinearGradient(x, 0, x + bar, 0)
    for number, colour in enumerate(scale.stops):
        gradient.setColorAt(number / (len(scale.stops) - 1), QColor(*colour))
    painter.fillRect(QRectF(x, place.center().y() - layout.line * 0.3, bar, layout.line * 0.6), gradient)
    painter.drawText(QRectF(x + bar + 8, place.top(), last, place.height()), _LEFT, behind)
    return total + 12


def _paint_features(painter: QPainter, layout: CoverageLayout, colours: PlotColours, visible: QRectF | None) -> None:
    """The key of the groups, and the spans of the features."""
    paint_key(painter, layout.key, layout.shown, colours)
    for lane, feature in layout.features:
        colour = colour_of_group(colours, feature.group)
        spans = list(layout.spans(lane, feature))
        is_bond = feature.group == "disulfide bond" and feature.end - feature.start > 1
        for number, span in enumerate(spans):
            if visible is not None and not visible.intersects(span):
                continue
            if not is_bond:
                # What a peptide carries there has a frame.
                painter.setPen(QPen(colours.text, 1.5) if feature.is_found else Qt.PenStyle.NoPen)
                painter.setBrush(colour)
                painter.drawRect(span)
                continue
            # A bond holds two residues together, and nothing between them.
            painter.fillRect(QRectF(span.left(), span.center().y() - 0.75, span.width(), 1.5), colour)
            ends = [span.left()] if number == 0 else []
            ends += [span.right() - layout.cell + 2] if number == len(spans) - 1 else []
            for end in ends:
                painter.fillRect(QRectF(end, span.top(), layout.cell - 2, span.height()), colour)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def paint_coverage(
    painter: QPainter,
    layout: CoverageLayout,
    colours: PlotColours,
    font: QFont,
    chosen: frozenset[int],
    accent: QColor,
    visible: QRectF | None = None,
) -> None:
    """Draw the map from the painter's origin; `chosen` are rows of the peptides table, drawn in `accent`."""
    coverage = layout.coverage
    bold = QFont(font)
    bold.setBold(True)
    heading = figure_font(QFontMetricsF(font).height() * 0.8)
    painter.setFont(heading)
    painter.setPen(colours.text)
    width = layout.size.width() - 8 - _paint_scale(painter, layout, colours, heading)
    title = QFontMetricsF(heading).elidedText(coverage.title, Qt.TextElideMode.ElideRight, width)
    painter.drawText(QRectF(4, layout.line * 0.4, width, layout.line * 1.3), Qt.AlignmentFlag.AlignLeft, title)
    painter.setFont(font)
    _paint_features(painter, layout, colours, visible)
    fill = QColor(colours.target)
    fill.setAlpha(70)
    for row in range(len(layout.lanes)):
        if visible is not None and (layout.tops[row + 1] < visible.top() or layout.tops[row] > visible.bottom()):
            continue
        first = row * layout.per_row
        last = min(first + layout.per_row, len(coverage.sequence))
        painter.setFont(font)
        painter.setPen(colours.faint)
        left, right = layout.residue(first), layout.residue(last - 1)
        painter.drawText(QRectF(0, left.top(), layout.numbers - 6, left.height()), _RIGHT, str(first + 1))
        painter.drawText(QRectF(right.right() + 6, left.top(), layout.numbers, left.height()), _LEFT, str(last))
        for place in range(first, last):
            cell = layout.residue(place)
            is_covered = bool(coverage.covered[place])
            if is_covered:
                painter.fillRect(cell, fill)
            is_modified = place in coverage.modified
            painter.setFont(bold if is_covered else font)
            painter.setPen(colours.mark if is_modified else colours.text if is_covered else colours.faint)
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, coverage.sequence[place])
            if is_modified:
                painter.fillRect(QRectF(cell.left() + 1, cell.bottom() - 2, cell.width() - 2, 2), colours.mark)
    paint_peptides(painter, layout, colours, coverage.peptides, chosen, accent, visible)


def paint_peptides(
    painter: QPainter,
    layout: CoverageLayout,
    colours: PlotColours,
    peptides: Sequence[PlacedPeptide],
    chosen: frozenset[int],
    accent: QColor,
    visible: QRectF | None,
) -> None:
    """Bars of peptides, and on them what they carry; coloured by their quantity where that is shown, the chosen one framed."""
    shades = layout.shades or {}
    painter.setPen(Qt.PenStyle.NoPen)
    for peptide in peptides:
        for bar in layout.bars(peptide):
            if visible is not None and not visible.intersects(bar):
                continue
            painter.setBrush(shades.get(peptide.row, accent if peptide.row in chosen else colours.target))
            painter.drawRoundedRect(bar, 2, 2)
            if peptide.row in chosen:
                painter.setPen(QPen(colours.text, 1.2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(bar.adjusted(-1, -1, 1, 1), 2, 2)
                painter.setPen(Qt.PenStyle.NoPen)
    for peptide in peptides:
        bars = list(layout.bars(peptide))
        for place, _ in peptide.modifications if bars else ():
            bar = bars[place // layout.per_row - peptide.start // layout.per_row]
            painter.fillRect(QRectF(layout.residue(place).center().x() - 2, bar.top(), 4, bar.height()), colours.mark)
    painter.setBrush(Qt.BrushStyle.NoBrush)
