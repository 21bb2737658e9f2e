"""The coverage map: a protein's sequence in rows, covered residues coloured, below them its peptides as bars, and its features as spans."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QScrollArea, QWidget

from engine.formats.features import FEATURE_GROUPS
from engine.results.columns import Column
from engine.views.coverage import Coverage, PlacedPeptide, ProteinFeature, feature_lanes
from gui.labels import answer_tooltip
from gui.plots.colours import PAPER, PlotColours, plot_colours
from gui.plots.export import ExportAction, ExportFigure, figure_font
from gui.plots.feature_groups import GroupActions, colour_of_group, group_at, key_of_groups, key_tip, paint_key, told_features
from gui.tables.columns import shown_text

__all__ = ["CoverageMap"]

_GROUP = 10
_LANES = 6
"""Bars under each row at most; what lies deeper is still coloured in the sequence, and in the tables."""
_FEATURE_LANES = 12
"""Spans of features under each row at most."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_Q_VALUE = Column("q_value", "q-value", "", "probability")


class _Layout:
    """Places of residues and bars for a font; the same on the screen and on paper."""

    def __init__(self, coverage: Coverage, font: QFont, width: float, shown: Collection[str] = FEATURE_GROUPS) -> None:
        metrics = QFontMetricsF(font)
        self.coverage = coverage
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
        self.key = key_of_groups(coverage.groups, metrics, 4.0, self.line * 1.9, right)
        self.tops = [self.line * 2.2 + (self.key[-1][1].bottom() - self.line * 1.7 if self.key else 0.0)]
        for lanes, places in zip(self.lanes, self._places, strict=True):
            below = lanes * (self.bar + 2) + len(places) * (self.bar + 2) + (self.line * 0.2 if places else 0.0)
            self.tops.append(self.tops[-1] + self.line * 1.45 + below + self.line * 0.5)

    @property
    def size(self) -> QSizeF:
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


def _paint_features(painter: QPainter, layout: _Layout, colours: PlotColours, visible: QRectF | None) -> None:
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
    layout: _Layout,
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
    width = layout.size.width() - 8
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
    _paint_peptides(painter, layout, colours, coverage.peptides, chosen, accent, visible)


def _paint_peptides(
    painter: QPainter,
    layout: _Layout,
    colours: PlotColours,
    peptides: Sequence[PlacedPeptide],
    chosen: frozenset[int],
    accent: QColor,
    visible: QRectF | None,
) -> None:
    """Bars of peptides, and on them what they carry."""
    painter.setPen(Qt.PenStyle.NoPen)
    for peptide in peptides:
        for bar in layout.bars(peptide):
            if visible is not None and not visible.intersects(bar):
                continue
            painter.setBrush(accent if peptide.row in chosen else colours.target)
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


class _Canvas(QWidget):
    """What the scroll area shows."""

    peptideChosen = Signal(int)

    def __init__(self, owner: CoverageMap) -> None:
        super().__init__(owner)
        self._owner = owner
        self._layout: _Layout | None = None
        self.coverage: Coverage | None = None
        self.chosen: int | None = None
        self.residues: tuple[int, ...] = ()
        self._drawn: tuple[tuple[object, ...], QPixmap] | None = None
        """What is in sight without marks, with all that it depends on: a mark that moves is a few strokes more."""
        self.text = ""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def letters(self) -> QFont:
        """Residues stand under each other only in a font of one width."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(self.font().pointSizeF())
        return font

    def lay_out(self) -> None:
        width = self._owner.viewport().width()
        self._layout = None if self.coverage is None else _Layout(self.coverage, self.letters, width, self._owner.group_actions.shown)
        size = self._owner.viewport().size()
        if self._layout is not None:
            size = size.expandedTo(self._layout.size.toSize())
        self.resize(size)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._layout is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 20, -20, -20)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            in_sight = self.visibleRegion().boundingRect()
            area = in_sight if in_sight.contains(event.rect()) else event.rect()
            painter.drawPixmap(area.topLeft(), self._picture(self._layout, colours, area))
            marked = [one for one in self._layout.coverage.peptides if one.row == self.chosen]
            if marked:
                chosen = frozenset(one.row for one in marked)
                _paint_peptides(painter, self._layout, colours, marked, chosen, colours.decoy, QRectF(event.rect()))
            painter.setPen(QPen(colours.text, 1.6))
            for place in self.residues:
                if place < len(self._layout.coverage.sequence):
                    painter.drawRect(self._layout.residue(place))
        painter.end()

    def _picture(self, layout: _Layout, colours: PlotColours, area: QRect) -> QPixmap:
        """The map without marks in an area."""
        letters, ratio = self.letters, self.devicePixelRatioF()
        key = (layout, colours, area.getRect(), ratio, letters.toString())
        if self._drawn is None or self._drawn[0] != key:
            picture = QPixmap(area.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(colours.background)
            painter = QPainter(picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.translate(-area.topLeft())
            paint_coverage(painter, layout, colours, letters, frozenset(), colours.decoy, QRectF(area))
            painter.end()
            self._drawn = key, picture
        return self._drawn[1]

    def peptide_at(self, at: QPointF) -> PlacedPeptide | None:
        if self._layout is None or self.coverage is None:
            return None
        for peptide in self.coverage.peptides:
            if any(bar.adjusted(0, -1, 0, 1).contains(at) for bar in self._layout.bars(peptide)):
                return peptide
        # A residue stands for the shortest peptide over it.
        over = [
            peptide
            for peptide in self.coverage.peptides
            if any(self._layout.residue(place).contains(at) for place in range(peptide.start, peptide.end))
        ]
        return min(over, key=lambda peptide: peptide.end - peptide.start, default=None)

    def place_of(self, peptide: PlacedPeptide) -> QRectF:
        """Where a peptide is drawn: its bar, or its residues where it has none."""
        assert self._layout is not None
        return next(self._layout.bars(peptide), self._layout.residue(peptide.start))

    def place_of_marks(self) -> QRectF | None:
        """Where the marked peptide is drawn, or the first of the marked residues."""
        if self._layout is None or self.coverage is None:
            return None
        peptide = next((one for one in self.coverage.peptides if one.row == self.chosen), None)
        if peptide is not None:
            return self.place_of(peptide)
        first = min(self.residues, default=-1)
        return self._layout.residue(first) if 0 <= first < len(self.coverage.sequence) else None

    def group_at(self, at: QPointF) -> str | None:
        """The group of features whose name in the key is there."""
        return None if self._layout is None else group_at(self._layout.key, at)

    def place_of_group(self, group: str) -> QRectF:
        """Where the name of a group stands in the key."""
        assert self._layout is not None
        return dict(self._layout.key)[group]

    def features_at(self, at: QPointF) -> list[ProteinFeature]:
        """The features whose spans are there, or those of the residue there."""
        if self._layout is None:
            return []
        layout = self._layout
        below = [one for lane, one in layout.features if any(span.adjusted(-1, -1, 1, 1).contains(at) for span in layout.spans(lane, one))]
        return below or [
            one for _, one in layout.features if any(layout.residue(place).contains(at) for place in range(one.start, one.end))
        ]

    def place_of_feature(self, feature: ProteinFeature) -> QRectF:
        """Where the span of a feature begins."""
        assert self._layout is not None
        lane = next(lane for lane, one in self._layout.features if one == feature)
        return next(self._layout.spans(lane, feature))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()
        group = self.group_at(event.position())
        if group is not None and event.button() == Qt.MouseButton.LeftButton:
            self._owner.group_actions[group].toggle()
            return
        peptide = self.peptide_at(event.position())
        if peptide is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(peptide)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        is_over = self.peptide_at(event.position()) is not None or self.group_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if is_over else Qt.CursorShape.ArrowCursor)

    def event(self, event: QEvent) -> bool:
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def text_at(self, at: QPointF) -> str:
        if (group := self.group_at(at)) is not None:
            return key_tip(group, self._owner.group_actions.shown)
        told = told_features(self.features_at(at))
        peptide = self.peptide_at(at)
        if peptide is None or self.coverage is None or self._layout is None:
            return "\n".join(told)
        q_value = shown_text(_Q_VALUE, peptide.q_value, self.locale())
        lines = [peptide.peptide, f"residues {peptide.start + 1} to {peptide.end}, PSMs: {peptide.n_psms}, q-value: {q_value}"]
        lines += [f"{self.coverage.sequence[place]}{place + 1}: {name}" for place, name in peptide.modifications]
        return "\n".join([*lines, *told])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        peptides = self.coverage.peptides if self.coverage is not None else ()
        steps = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}
        step = steps.get(Qt.Key(event.key()))
        if step is None or not peptides:
            super().keyPressEvent(event)
            return
        now = next((i for i, peptide in enumerate(peptides) if peptide.row == self.chosen), -1 if step == 1 else len(peptides))
        self._choose(peptides[min(max(now + step, 0), len(peptides) - 1)])

    def _choose(self, peptide: PlacedPeptide) -> None:
        self.chosen = peptide.row
        self.update()
        place = self.place_of(peptide).center()
        self._owner.ensureVisible(round(place.x()), round(place.y()))
        self.peptideChosen.emit(peptide.row)


class CoverageMap(QScrollArea):
    """Shows which residues of a protein are covered by which peptides. A click, or the arrow keys, choose a peptide."""

    peptideChosen = Signal(int)
    """Place of the peptide in the peptides table."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.canvas = _Canvas(self)
        self.canvas.setAccessibleName("Coverage of the protein")
        self.canvas.peptideChosen.connect(self.peptideChosen)
        self.setWidget(self.canvas)
        self.setFocusProxy(self.canvas)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        self.group_actions = GroupActions(self, self.canvas.lay_out)

    @property
    def coverage(self) -> Coverage | None:
        """What is shown."""
        return self.canvas.coverage

    def show_coverage(self, coverage: Coverage | None, text: str = "") -> None:
        """Show the map of a protein, or a text in its place."""
        self.canvas.coverage, self.canvas.text, self.canvas.chosen, self.canvas.residues = coverage, text, None, ()
        self.canvas.setAccessibleDescription(text if coverage is None else coverage.title)
        self.group_actions.offer(() if coverage is None else coverage.groups)
        self.canvas.lay_out()
        self.verticalScrollBar().setValue(0)

    def mark(self, row: int | None, residues: Sequence[int] = ()) -> None:
        """Mark the peptide of a row of the peptides table, or residues from 0, and bring the first of them into sight."""
        self.canvas.chosen, self.canvas.residues = row, tuple(residues)
        place = self.canvas.place_of_marks()
        if place is not None and not self.canvas.visibleRegion().contains(place.toRect()):
            self.ensureVisible(round(place.center().x()), round(place.center().y()))
        self.canvas.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the room."""
        super().resizeEvent(event)
        self.canvas.lay_out()

    def sizeHint(self) -> QSize:
        """Room for some rows."""
        return QSize(520, 320)

    def _figure(self) -> ExportFigure | None:
        if self.coverage is None:
            return None
        layout = _Layout(self.coverage, self._figure_font(), 1000.0, self.group_actions.shown)
        return ExportFigure(
            "Coverage",
            layout.size,
            lambda painter, area: paint_coverage(painter, layout, PAPER, self._figure_font(), frozenset(), PAPER.decoy),
        )

    @staticmethod
    def _figure_font() -> QFont:
        font = figure_font(7)
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        return font
