"""Figures in the window: pyqtgraph draws them, and a person zooms, picks and exports them.

`FigureView` shows any `proteoscope.engine.views.figures.Figure`. A view that shows one thing derives from it or holds it, makes the figure,
and connects `targetChosen`. Names, which must cover nothing, and texts are laid out and painted as on the page: pyqtgraph places its texts
one by one, whatever is below them.
"""
# ruff: noqa: N802, N803, N815, D102 - Qt and pyqtgraph give these names

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QLocale, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from proteoscope.engine.views.drawings import Axis, Drawing, PaperFigure, Shape
from proteoscope.engine.views.figure_layout import PanelPlace, lay_out, panel_of_view
from proteoscope.engine.views.figures import (
    Band,
    Bars,
    Corner,
    Figure,
    Line,
    Mark,
    Names,
    Panel,
    Picked,
    Pixels,
    Rule,
    Scatter,
    Spikes,
    Surface,
    Text,
)
from proteoscope.engine.views.palette import PAPER, Ink, Palette
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.labels import answer_tooltip, toned_label
from proteoscope.gui.plots.drawing_view import paint_drawing
from proteoscope.gui.plots.export import ExportAction
from proteoscope.gui.room import pixels_with_letters

__all__ = ["FigureView", "Ranges", "localised", "zoom_buttons"]

_ZOOM = 0.8
_STEP = 0.2
"""Part of the range that a key moves."""
_TICK = 4
_MINIMUM_AXIS = "00,000"
"""A number that the left axis has space for, so that most figures begin at the same place."""
_RING = 12.0
_PIXELS_PER_POINT = 96 / 72

Range = tuple[float, float]
Ranges = tuple[Range, ...]
"""Least and greatest value in sight, across and, of a figure whose height is zoomed too, upwards."""
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.,]*\w)")


def localised(text: str) -> str:
    """A text whose numbers have the separators of the user's language."""
    locale = QLocale()
    has_groups = not locale.numberOptions() & QLocale.NumberOption.OmitGroupSeparator
    separators = str.maketrans({",": locale.groupSeparator() if has_groups else "", ".": locale.decimalPoint()})
    return _NUMBER.sub(lambda number: number[0].translate(separators), text)


class FigureView(pg.GraphicsLayoutWidget):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Shows a figure, or a text in its place.

    Wheel: zoom around the pointer. Drag: zoom into the box. Double click, 0 or Home: everything. Keys: + and - zoom, arrows move; of panels
    that are standing Up and Down change the height. A panel says itself how far it is zoomed (`Panel.smallest`).

    ``show_figure(figure, text, keeps_range=…)`` shows, ``highlight(marks)`` draws marks over it that are no part of the figure,
    ``mark(target)`` puts rings on the marks of targets, ``bring_into_sight(x, y)`` moves to values. ``place_of(x, y)`` and
    ``values_at(place)`` map to and from pixels of this widget, ``inner()`` is where a panel draws, ``picked_at(place)`` what is there.

    Parameters
    ----------
    name : what it is called for people who do not see it. least : pixels across and down that it needs with letters of the usual size.
    has_heading, has_x_title : whether the figure's heading and legend, and the title of the lower axis, are shown.

    Signals
    -------
    targetChosen, targetHovered : the target that was clicked, or is under the pointer; None where there is none any more.
    rangeChanged : another part is in sight. message : a sentence on an export.
    """

    targetChosen = Signal(object)
    targetHovered = Signal(object)
    rangeChanged = Signal()
    message = Signal(str)

    # Qt resizes a widget before it is made.
    _figure: Figure | None = None

    def __init__(
        self,
        name: str,
        parent: QWidget | None = None,
        *,
        least: tuple[int, int] = (160, 90),
        has_heading: bool = True,
        has_x_title: bool = True,
    ) -> None:
        super().__init__(parent)
        self._panels: list[_PanelItems] = []
        self._ranges: Ranges = ()
        self._highlights: tuple[Mark, ...] = ()
        self._highlighted = 0
        self._hovered: object | None = None
        self._has_heading, self.has_x_title = has_heading, has_x_title
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(least[0], pixels_with_letters(self, least[1]))
        self.ci.setContentsMargins(4, 4, 12, 4)
        self.ci.setSpacing(0)
        # The menu is that of this widget, with its actions.
        self.viewport().setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.viewport().setMouseTracking(True)
        self._label = toned_label()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 8, 20, 8)
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        layout.addWidget(self._label)
        # Marks may take a click, so that it never reaches the box of the panel.
        self.scene().sigMouseClicked.connect(self._choose)
        self.export_action = ExportAction(self, self._exported, self.message.emit)
        self.setBackground(qt_colour("background", palette_of(self.palette())))

    @property
    def figure(self) -> Figure | None:
        """What is shown."""
        return self._figure

    @property
    def text(self) -> str:
        """What is shown in place of a figure."""
        return self._label.text()

    @property
    def ranges(self) -> Ranges:
        """What is in sight."""
        return self._ranges

    def panel_in_sight(self, panel: int = 0) -> Panel:
        """A panel as it is drawn now."""
        place = self._panels[panel].place
        assert place is not None
        return place.panel

    def show_figure(self, figure: Figure | None, text: str = "", *, keeps_range: bool = False) -> None:
        """Show a figure, or a text in its place. `keeps_range`: what is in sight stays, as far as the figure has it."""
        is_alike = _form(figure) == _form(self._figure)
        self._figure, self._hovered = figure, None
        self._label.setText("" if figure is not None else text)
        self._label.setVisible(figure is None)
        self.setAccessibleDescription(text if figure is None else figure.title)
        if not is_alike:
            self._build()
        if figure is None or not keeps_range or len(self._ranges) != len(self._whole()):
            self._ranges, self._highlights = self._home(), ()
        self._take_theme()
        self.show_range(self._ranges)

    def show_panel(self, panel: Panel, number: int) -> None:
        """Show another panel in place of one that has the same axes."""
        if self._figure is not None:
            panels = self._figure.panels
            self._figure = replace(self._figure, panels=(*panels[:number], panel, *panels[number + 1 :]))
            self._draw(number)

    def dragged(self, panel: int, event: Any) -> bool:
        """Take a drag that began in a panel (`pyqtgraph`'s event); return True where it is not to pull a box."""
        return False

    def highlight(self, marks: Sequence[Mark], panel: int = 0) -> None:
        """Draw marks over a panel, in place of those before."""
        self._highlights, self._highlighted = tuple(marks), panel
        for at, items in enumerate(self._panels):
            items.highlight(self._highlights if at == panel else ())

    def mark(self, *targets: object, size: float = _RING) -> None:
        """Put rings on the marks of targets, or on none. `size`: diameter in pixels."""
        found = [
            (at, place)
            for at, items in enumerate(self._panels)
            for target in targets
            if items.place is not None and (place := items.place.target_place(target)) is not None
        ]
        places = np.array([place for at, place in found if at == found[0][0]]).reshape(-1, 2)
        self.highlight((Scatter(places[:, 0], places[:, 1], "text", size, is_hollow=True),) if found else (), found[0][0] if found else 0)

    def reset_range(self) -> None:
        """Show what was in sight at first."""
        self.show_range(self._home())

    def show_range(self, ranges: Ranges) -> None:
        """Show a part, within what there is."""
        fitted = []
        for (low, high), (least, most), smallest in zip(ranges, self._whole(), self._smallest(), strict=False):
            width = min(max(high - low, smallest), most - least)
            low = min(max((low + high - width) / 2, least), most - width)
            fitted.append((low, low + width))
        self._ranges = (*fitted, *self._ranges[len(fitted) :])
        for at in range(len(self._panels)):
            self._draw(at)
        self.rangeChanged.emit()

    def zoom(self, steps: int) -> None:
        """Show less, or more where steps are negative, around the middle."""
        self._zoom(_ZOOM**steps, tuple((low + high) / 2 for low, high in self._ranges))

    def bring_into_sight(self, *values: float) -> None:
        """Move to values, as far as they lie outside."""
        moves = [
            0.0 if low <= value <= high else value - (low + high) / 2 for (low, high), value in zip(self._ranges, values, strict=False)
        ]
        self.show_range(tuple((low + move, high + move) for (low, high), move in zip(self._ranges, moves, strict=False)))

    def inner(self, panel: int = 0) -> QRectF:
        """Where a panel draws its marks, in pixels of this widget."""
        return QRectF(self._panels[panel].area) if self._panels else QRectF()

    def place_of(self, x: float, y: float, panel: int = 0) -> QPointF:
        """Where values are drawn, in pixels of this widget."""
        place = self._panels[panel].place
        assert place is not None
        return QPointF(float(place.x(np.array(x))), float(place.y(np.array(y))))

    def values_at(self, at: QPointF) -> tuple[int, float, float] | None:
        """The panel at a place of this widget, and the values of both its axes; None where there is none."""
        for number, items in enumerate(self._panels):
            if items.place is not None and items.area.contains(at):
                return number, *items.place.values(at.x(), at.y())
        return None

    def picked_at(self, at: QPointF) -> Picked | None:
        """What is at a place of this widget."""
        found = self.values_at(at)
        place = None if found is None else self._panels[found[0]].place
        return None if place is None else place.picked(at.x(), at.y())

    def text_at(self, at: QPointF) -> str:
        """The tip of what is at a place of this widget."""
        picked = self.picked_at(at)
        return "" if picked is None else localised(picked.tip)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show what is under the pointer."""
        return answer_tooltip(event, self, self.text_at) or bool(super().viewportEvent(event))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything."""
        event.accept()
        if self._ranges:
            self.reset_range()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() == Qt.MouseButton.NoButton:
            picked = self.picked_at(event.position())
            self._hover(None if picked is None else picked.target)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, zoom, or show everything."""
        moves = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Down: (1, -1), Qt.Key.Key_Up: (1, 1)}
        key = Qt.Key(event.key())
        axis, way = moves.get(key, (-1, 0))
        if 0 <= axis < len(self._ranges) and not (axis and self._is_standing):
            steps = [way * _STEP * (high - low) if at == axis else 0.0 for at, (low, high) in enumerate(self._ranges)]
            self.show_range(tuple((low + step, high + step) for (low, high), step in zip(self._ranges, steps, strict=True)))
        elif 0 <= axis < len(self._ranges):
            self.show_range((self._ranges[0], self._standing(self._ranges[1][1] * _ZOOM**way)))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus) and self._ranges:
            self.zoom(-1 if key == Qt.Key.Key_Minus else 1)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home) and self._ranges:
            self.reset_range()
        else:
            QWidget.keyPressEvent(self, event)

    def changeEvent(self, event: QEvent) -> None:
        """Take the colours and the font of the new theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and hasattr(self, "export_action"):
            self._take_theme()
            self.show_range(self._ranges)

    @property
    def _zoomed(self) -> Panel | None:
        """The panel whose height is zoomed, or the first one."""
        panels = () if self._figure is None else self._figure.panels
        return next((panel for panel in panels if panel.smallest[1] is not None), panels[0] if panels else None)

    @property
    def _is_standing(self) -> bool:
        return self._zoomed is not None and self._zoomed.is_standing

    def _whole(self) -> Ranges:
        panel = self._zoomed
        if panel is None or panel.smallest[0] is None:
            return ()
        return ((panel.x.low, panel.x.high), (panel.y.low, panel.y.high))[: 1 if panel.smallest[1] is None else 2]

    def _home(self) -> Ranges:
        whole, figure = self._whole(), self._figure
        return (figure.x_range, *whole[1:]) if whole and figure is not None and figure.x_range is not None else whole

    def _smallest(self) -> tuple[float, ...]:
        return () if self._zoomed is None else tuple(smallest for smallest in self._zoomed.smallest if smallest is not None)

    def _standing(self, top: float) -> Range:
        """A range of heights up to a value, from the foot of the axis on or from as far below the middle."""
        assert self._zoomed is not None
        return (-top if self._zoomed.y.is_mirrored else self._zoomed.y.low), top

    def _zoom(self, factor: float, around: Sequence[float]) -> None:
        factors = (factor, 1.0 if self._is_standing else factor)
        self.show_range(
            tuple(
                (at - (at - low) * part, at + (high - at) * part)
                for (low, high), at, part in zip(self._ranges, around, factors, strict=False)
            )
        )

    def _range_of(self, panel: int) -> tuple[Range | None, Range | None]:
        """What is in sight of x and y; None of an axis that is not zoomed."""
        assert self._figure is not None
        is_zoomed = len(self._ranges) > 1 and self._figure.panels[panel] is self._zoomed
        return self._ranges[0] if self._ranges else None, self._ranges[1] if is_zoomed else None

    def _draw(self, at: int) -> None:
        """Draw a panel as far as it is in sight."""
        if self._figure is not None and at < len(self._figure.panels):
            items = self._panels[at]
            columns = round(items.area.width() * self.devicePixelRatioF())
            items.draw(panel_of_view(self._figure.panels[at], *self._range_of(at), columns))
            items.highlight(self._highlights if at == self._highlighted else ())

    def _build(self) -> None:
        """Make the axes of the figure's panels."""
        self.ci.clear()
        self._panels = []
        self._heading: Any = None
        figure = self._figure
        if figure is None:
            return
        n = figure.n_columns
        if self._has_heading and (figure.heading or figure.legend):
            self._heading = self.ci.addLabel(row=0, col=0, colspan=2 * n, justify="left")
        for at, panel in enumerate(figure.panels):
            row, column = 1 + 3 * (at // n), 2 * (at % n)
            items = _PanelItems(self, at, n, has_x_numbers=n > 1 or at == len(figure.panels) - 1)
            if panel.title:
                items.title = self.ci.addLabel(row=row, col=column, colspan=2, justify="left")
            for item, down, across in ((items.left, 1, 0), (items.box, 1, 1), (items.bottom, 2, 1)):
                self.ci.addItem(item, row + down, column + across)
            self.ci.layout.setRowStretchFactor(row + 1, round(100 * panel.share))
            self.ci.layout.setColumnStretchFactor(column + 1, 1)
            items.box.sigResized.connect(lambda _, at=at: self._draw(at))
            self._panels.append(items)

    def _take_theme(self) -> None:
        palette = palette_of(self.palette())
        self.setBackground(qt_colour("background", palette))
        figure, metrics = self._figure, QFontMetricsF(self.font())
        if figure is None:
            return
        panels = [panel_of_view(panel, None, None, 1000) for panel in figure.panels]
        texts = [text for panel in panels for text in panel.y.tick_texts(panel.y.ticks(5))]
        width = max(metrics.horizontalAdvance(text) for text in (*texts, _MINIMUM_AXIS if figure.n_columns == 1 else ""))
        width += (1.6 * metrics.height() if any(panel.y.title for panel in panels) else 0) + _TICK + 6
        if self._heading is not None:
            self._heading.setText(self._heading_text(figure, palette), color=qt_colour("text", palette), size=f"{self._points()}pt")
            # As wide as there is space, not as it would be.
            self._heading.setMinimumWidth(1)
        for items, panel in zip(self._panels, figure.panels, strict=True):
            items.take_theme(palette, self.font(), width)
            items.show_title(panel.title, f"{self._points()}pt")
        # Qt shrinks a layout to what it had when it was empty.
        self.ci.setGeometry(QRectF(self.viewport().rect()))
        self.ci.layout.activate()

    def _points(self) -> float:
        """The size of the font in the points of a rich text."""
        return self.font().pointSizeF() if self.font().pointSizeF() > 0 else self.font().pixelSize() * 0.75

    def _heading_text(self, figure: Figure, palette: Palette) -> str:
        metrics = QFontMetricsF(self.font())
        entries = [
            f"<span style='color:{qt_colour(entry.ink, palette).name()}'>{'—' if entry.is_line else '■'}</span> {escape(entry.name)}"
            for entry in figure.legend
        ]
        space = self.width() - 30 - sum(metrics.horizontalAdvance(f"■ {entry.name}") + 16 for entry in figure.legend)
        lines = [escape(metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(60, space))) for text in figure.heading]
        bold = [f"<b>{line}</b>" if at == 0 else line for at, line in enumerate(lines)]
        return "<br>".join(["&nbsp;&nbsp; ".join([*bold[:1], *entries]), *bold[1:]])

    def _choose(self, event: Any) -> None:
        picked = self.picked_at(event.scenePos()) if event.button() == Qt.MouseButton.LeftButton else None
        if picked is not None and picked.target is not None:
            self.targetChosen.emit(picked.target)

    def _hover(self, target: object | None) -> None:
        # A cursor is the viewport's; that of this widget is not seen there.
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if target is None else Qt.CursorShape.PointingHandCursor)
        if target != self._hovered:
            self._hovered = target
            self.targetHovered.emit(target)

    def _wheel(self, at: QPointF, degrees: float) -> None:
        found = self._panels[0].place if len(self._panels) == 1 else None
        values = found.values(at.x(), at.y()) if found is not None else (self.values_at(at) or (0, *self._middle))[1:]
        self._zoom(_ZOOM ** (degrees / 120), values)

    @property
    def _middle(self) -> tuple[float, ...]:
        return tuple((low + high) / 2 for low, high in self._ranges)

    def _take_box(self, panel: int, *corners: QPointF) -> None:
        """Zoom into the box between two places of a panel."""
        place = self._panels[panel].place
        assert place is not None
        values = np.array([place.values(corner.x(), corner.y()) for corner in corners])
        shown = [np.clip(values[:, axis], low, high) for axis, (low, high) in enumerate(self._ranges)]
        ends = [(float(value.min()), float(value.max())) for value in shown]
        if self._figure is None or self._figure.panels[panel].smallest[1] is None:
            ends = ends[:1]
        elif self._is_standing:
            ends[1] = self._standing(float(np.abs(values[:, 1]).max()))
        self.show_range(tuple(ends))

    def _exported(self) -> PaperFigure | None:
        drawing = self.drawing()
        return None if drawing is None or self._figure is None else PaperFigure(self._figure.name, drawing)

    def drawing(self) -> Drawing | None:
        """The figure on a page, as far as it is in sight."""
        if self._figure is None:
            return None
        ranges = [self._range_of(at) for at in range(len(self._figure.panels))]
        return lay_out(self._figure, x_range=ranges[0][0], y_ranges=[y for _, y in ranges])


def _form(figure: Figure | None) -> object:
    """What the axes of a figure are arranged by."""
    if figure is None:
        return None
    panels = [(bool(panel.title), panel.share) for panel in figure.panels]
    return panels, figure.n_columns, bool(figure.heading or figure.legend)


class _PanelItems:
    """A panel of a figure: its axes, and the items of its marks."""

    def __init__(self, view: FigureView, number: int, n_columns: int, *, has_x_numbers: bool) -> None:
        self._n_columns = n_columns
        self.box = _Box(view, number)
        self.left, self.bottom = _Axis("left"), _Axis("bottom", has_x_numbers, has_x_numbers and view.has_x_title)
        for axis in (self.left, self.bottom):
            axis.linkToView(self.box)
        self.title: Any = None
        self.place: PanelPlace | None = None
        self._view, self._palette = view, PAPER
        self._items: list[Any] = []
        self._over: list[Any] = []
        self._texts = _Texts(self.box)

    @property
    def area(self) -> QRectF:
        """Where marks are drawn, in pixels of the widget."""
        return QRectF(self.box.mapRectToScene(self.box.rect()))

    def take_theme(self, palette: Palette, font: QFont, width: float) -> None:
        self._palette = palette
        for axis in (self.left, self.bottom):
            axis.take_theme(palette, font)
        # Whole pixels, so that pictures have those of the screen.
        self.left.setWidth(math.ceil(width))
        lines = 0.4 + self.bottom.has_numbers + self.bottom.has_title
        self.bottom.setHeight(math.ceil(lines * QFontMetricsF(font).height()) + _TICK)
        box = self.box.rbScaleBox
        box.setPen(pg.mkPen(qt_colour("target", palette)))
        box.setBrush(pg.mkBrush(qt_colour("target", palette, 0.16)))

    def show_title(self, text: str, size: str) -> None:
        """Show as much of a title as there is space for."""
        if self.title is not None:
            space = self._view.width() / max(1, self._n_columns) - 24
            shown = QFontMetricsF(self._view.font()).elidedText(text, Qt.TextElideMode.ElideRight, space)
            self.title.setText(escape(shown), color=qt_colour("text", self._palette), size=size)
            self.title.setMinimumWidth(1)

    def draw(self, panel: Panel) -> None:
        area, font = self.area, self._view.font()
        if area.width() < 2 or area.height() < 2:
            return
        size = QFontMetricsF(font).height() * 0.8
        self.place = PanelPlace(panel, area.left(), area.top(), area.right(), area.bottom(), size)
        self.left.show_axis(panel.y)
        self.bottom.show_axis(panel.x)
        ends = [axis.scaled([axis.low, axis.high]).tolist() for axis in (panel.x, panel.y)]
        self.box.setRange(xRange=ends[0], yRange=ends[1], padding=0, disableAutoRange=False)
        self._items = self._replaced(self._items, panel.marks)
        shapes: list[Shape] = []
        for mark in panel.marks:
            if isinstance(mark, Corner | Names | Text):
                shapes += self.place.shapes(mark)
            elif isinstance(mark, Rule):
                # Its line is an item.
                shapes += self.place.shapes(mark)[1:]
        self._texts.show_shapes(Drawing(area.width(), area.height(), "", tuple(shapes), size), self._palette, font)

    def highlight(self, marks: Sequence[Mark]) -> None:
        self._over = self._replaced(self._over, marks)

    def _replaced(self, items: list[Any], marks: Sequence[Mark]) -> list[Any]:
        for item in items:
            self.box.removeItem(item)
        made = [] if self.place is None else [item for mark in marks if (item := self._item(mark, self.place.panel)) is not None]
        for item in made:
            self.box.addItem(item, ignoreBounds=True)
        return made

    def _pen(self, ink: Ink, width: float = 1.0, *, is_dashed: bool = False, opacity: float = 1.0) -> QPen:
        style = Qt.PenStyle.DashLine if is_dashed else Qt.PenStyle.SolidLine
        return QPen(pg.mkPen(qt_colour(ink, self._palette, opacity), width=width, style=style))

    def _brush(self, ink: Ink, opacity: float = 1.0) -> Any:
        return pg.mkBrush(qt_colour(ink, self._palette, opacity))

    def _item(self, mark: Mark, panel: Panel) -> Any:
        """What draws a mark; None for texts."""
        y_of = panel.y.scaled
        match mark:
            case Spikes(x, y, ink, width, foot):
                ends = np.empty(2 * len(x))
                ends[::2], ends[1::2] = y_of(np.full(len(x), foot)), y_of(y)
                # Upright lines are sharpest, and all as wide, where whole pixels are.
                width = max(1, round(_PIXELS_PER_POINT * width))
                return pg.PlotCurveItem(np.repeat(x, 2), ends, pen=self._pen(ink, width), connect="pairs", antialias=False)
            case Line(x, y, ink, width, is_dashed):
                return pg.PlotCurveItem(x, y_of(y), pen=self._pen(ink, width, is_dashed=is_dashed), antialias=True)
            case Surface(x, low, high, ink, opacity):
                curves = [pg.PlotCurveItem(x, y_of(ends)) for ends in (low, high)]
                return pg.FillBetweenItem(*curves, brush=self._brush(ink, opacity))
            case Bars():
                return self._bars(mark, panel)
            case Scatter(x, y, ink, size):
                look = {"pen": self._pen(ink, 1.8), "brush": None} if mark.is_hollow else {"pen": None, "brush": self._brush(ink)}
                return pg.ScatterPlotItem(x=x, y=y_of(y), size=size, pxMode=True, **look)
            case Rule(at, is_upright, ink, width, is_dashed):
                place = at if is_upright else float(y_of(at))
                return pg.InfiniteLine(place, angle=90 if is_upright else 0, pen=self._pen(ink, width, is_dashed=is_dashed))
            case Band(low, high, ink, opacity):
                return pg.LinearRegionItem((low, high), movable=False, brush=self._brush(ink, opacity), pen=self._pen(ink))
            case Pixels(render):
                return self._picture(render, panel)
        return None

    def _bars(self, bars: Bars, panel: Panel) -> Any:
        foot, height = (panel.y.scaled(values) for values in (np.full(len(bars.left), bars.foot), bars.height))
        seen = height != foot
        # What is narrower than a pixel would vanish between two of them.
        width = self.area.width() / (panel.x.high - panel.x.low) * float((bars.right - bars.left).min(initial=np.inf))
        is_thin, brush = width < 1, self._brush(bars.ink, bars.opacity)
        pen = (
            self._pen(bars.ink, opacity=1.0 if bars.has_outline else bars.opacity)
            if bars.has_outline or is_thin
            else QPen(Qt.PenStyle.NoPen)
        )
        return pg.BarGraphItem(x0=bars.left[seen], x1=bars.right[seen], y0=foot[seen], y1=height[seen], pen=pen, brush=brush)

    def _picture(self, render: Any, panel: Panel) -> Any:
        x, y, ratio = (panel.x.low, panel.x.high), (panel.y.low, panel.y.high), self._view.devicePixelRatioF()
        width, height = (max(1, round(pixels * ratio)) for pixels in (self.area.width(), self.area.height()))
        # Rows of pyqtgraph's pictures go up.
        item = pg.ImageItem(render(x, y, width, height, ratio, self._palette)[::-1], axisOrder="row-major", levels=None)
        item.setRect(QRectF(x[0], y[0], x[1] - x[0], y[1] - y[0]))
        return item


class _Box(pg.ViewBox):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """The values of a panel; what the mouse does there, the view decides."""

    def __init__(self, view: FigureView, number: int) -> None:
        super().__init__(enableMenu=False)
        self._owner, self._number = view, number
        self.setMouseMode(pg.ViewBox.RectMode)
        self.disableAutoRange()

    def wheelEvent(self, ev: Any, axis: int | None = None) -> None:
        if self._owner.ranges and ev.delta():
            ev.accept()
            self._owner._wheel(ev.scenePos(), ev.delta())
        else:
            ev.ignore()

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        if ev.button() != Qt.MouseButton.LeftButton or axis is not None or not self._owner.ranges:
            ev.ignore()
            return
        ev.accept()
        if self._owner.dragged(self._number, ev):
            return
        if ev.isFinish():
            self.rbScaleBox.hide()
            self._owner._take_box(self._number, ev.buttonDownScenePos(), ev.scenePos())
        else:
            self.updateScaleBox(ev.buttonDownPos(), ev.pos())

    def updateScaleBox(self, p1: QPointF, p2: QPointF) -> None:
        """The box that is pulled, as high as the panel where that is not zoomed."""
        box = QRectF(p1, p2).normalized() & self.rect()
        if len(self._owner.ranges) == 1:
            box.setTop(self.rect().top())
            box.setBottom(self.rect().bottom())
        super().updateScaleBox(box.topLeft(), box.bottomRight())


class _Axis(pg.AxisItem):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """An axis with the ticks that it has on paper, in numbers of the user's language."""

    def __init__(self, side: str, has_numbers: bool = True, has_title: bool = True) -> None:
        super().__init__(side, maxTickLength=_TICK)
        self._shown, self.has_numbers, self.has_title = Axis(0.0, 1.0), has_numbers, has_title
        self.setStyle(showValues=has_numbers, autoExpandTextSpace=False, hideOverlappingLabels=False, tickAlpha=255, tickTextOffset=3)
        self.enableAutoSIPrefix(False)

    def take_theme(self, palette: Palette, font: QFont) -> None:
        for take in (self.setPen, self.setTextPen):
            take(qt_colour("text", palette))
        self.setTickFont(font)
        self.label.setFont(font)

    def show_axis(self, axis: Axis) -> None:
        metrics, length = QFontMetricsF(self.label.font()), self.width() if self.orientation == "bottom" else self.height()
        self._shown, self.picture = axis, None
        title = axis.fitting_title(metrics.horizontalAdvance, length) if self.has_title else ""
        title = metrics.elidedText(title, Qt.TextElideMode.ElideRight, max(10.0, length))
        if title != self.labelText:
            self.setLabel(title)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        axis, height = self._shown, QFontMetricsF(self.label.font()).height()
        least, lines = (2, 3.6) if self.orientation == "bottom" else (3, 2.2)
        ticks = axis.ticks(max(least, math.floor(size / (height * lines))))
        return [(1.0, axis.scaled(ticks).tolist())]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [localised(text) for text in self._shown.tick_texts(self._shown.unscaled(values).tolist())]


class _Texts(pg.GraphicsObject):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Names and texts over the marks of a panel, in pixels."""

    def __init__(self, box: _Box) -> None:
        super().__init__(box)
        self._box = box
        self._drawing = Drawing(0, 0, "", ())
        self._palette, self._font = PAPER, QFont()
        self.setZValue(1000)

    def show_shapes(self, drawing: Drawing, palette: Palette, font: QFont) -> None:
        self._drawing, self._palette, self._font = drawing, palette, font
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(self._box.rect())

    def paint(self, painter: QPainter, *_: Any) -> None:
        painter.translate(-self._box.scenePos())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_drawing(painter, self._drawing, self._palette, self._font)


def zoom_buttons(plot: Any, shown: str) -> list[QToolButton]:
    """Buttons that show more, less and all of what a plot shows, as ``text``."""
    buttons = [
        tool_button(icon, tip, partial(plot.zoom, steps))
        for icon, tip, steps in (("remove", f"Show more of the {shown} (-)", -1), ("add", f"Show less of the {shown} (+)", 1))
    ]
    return [*buttons, tool_button("reset", f"Show the whole {shown} (0)", plot.reset_range)]
