"""The coverage map: a protein's sequence in rows, covered residues coloured, below them its peptides as bars, and its features as spans."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QFont,
    QFontDatabase,
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

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.coverage import Coverage, PlacedPeptide, ProteinFeature
from proteoscope.engine.views.peptide_quantities import PeptideQuantities
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.coverage_drawing import CoverageLayout, paint_coverage, paint_peptides
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.feature_groups import (
    QUANTITY,
    GroupActions,
    group_at,
    key_tip,
    told_features,
)
from proteoscope.gui.tables.columns import shown_text

__all__ = ["CoverageMap"]

_Q_VALUE = Column("q_value", "q-value", "", "probability")


class _Canvas(QWidget):
    """What the scroll area shows."""

    peptideChosen = Signal(int)

    def __init__(self, owner: CoverageMap) -> None:
        super().__init__(owner)
        self._owner = owner
        self._layout: CoverageLayout | None = None
        self.coverage: Coverage | None = None
        self.quantities: PeptideQuantities | None = None
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
        self._layout = (
            None if self.coverage is None else CoverageLayout(self.coverage, self.letters, width, self._owner.shown, self.quantities)
        )
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
                paint_peptides(painter, self._layout, colours, marked, chosen, colours.decoy, QRectF(event.rect()))
            painter.setPen(QPen(colours.text, 1.6))
            for place in self.residues:
                if place < len(self._layout.coverage.sequence):
                    painter.drawRect(self._layout.residue(place))
        painter.end()

    def _picture(self, layout: CoverageLayout, colours: PlotColours, area: QRect) -> QPixmap:
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
            (self._owner.quantity_action if group == QUANTITY else self._owner.group_actions[group]).toggle()
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
            return key_tip(group, self._owner.shown)
        told = told_features(self.features_at(at))
        peptide = self.peptide_at(at)
        if peptide is None or self.coverage is None or self._layout is None:
            return "\n".join(told)
        q_value = shown_text(_Q_VALUE, peptide.q_value, self.locale())
        lines = [peptide.peptide, f"residues {peptide.start + 1} to {peptide.end}, PSMs: {peptide.n_psms}, q-value: {q_value}"]
        if self.quantities is not None:
            value = self.quantities.value(self.coverage, peptide)
            lines.append(f"{self.quantities.title}: {'no quantity' if value is None else f'{value:.2f}'}")
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
        self.quantity_action = QAction("Colour by quantity", self, checkable=True, visible=False)
        self.quantity_action.toggled.connect(lambda _: self.canvas.lay_out())
        self.addAction(self.quantity_action)

    @property
    def coverage(self) -> Coverage | None:
        """What is shown."""
        return self.canvas.coverage

    @property
    def shown(self) -> frozenset[str]:
        """Groups of features that are shown, and `QUANTITY` where peptides are coloured by it."""
        return self.group_actions.shown | ({QUANTITY} if self.quantity_action.isChecked() else set())

    def show_coverage(self, coverage: Coverage | None, text: str = "", quantities: PeptideQuantities | None = None) -> None:
        """Show the map of a protein, or a text in its place; with `quantities` its peptides may be coloured by them."""
        self.canvas.quantities = quantities
        self.quantity_action.setVisible(coverage is not None and quantities is not None)
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
        layout = CoverageLayout(self.coverage, self._figure_font(), 1000.0, self.shown, self.canvas.quantities)
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
