"""Interactive figures, drawn by pyqtgraph, that can be zoomed, clicked and exported.

`FigureView` shows any `proteoscope.engine.views.figures.Figure`. A specific view derives from it or contains it, creates the figure, and
connects `targetChosen`. Names and texts, which must not overlap anything, are laid out and painted as on paper: pyqtgraph would place each
text without regard to the items below the text.
"""
# ruff: noqa: N802, N815, D102 - Qt and pyqtgraph give these names

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from proteoscope.engine.views.drawings import Axis, Drawing, PaperFigure
from proteoscope.engine.views.figure_layout import figure_at_width, restrict_panel
from proteoscope.engine.views.figures import Figure, Mark, Panel, Picked, Scatter
from proteoscope.engine.views.palette import Palette
from proteoscope.gui.actions import delayed
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.labels import answer_tooltip, toned_label
from proteoscope.gui.layouts import in_column
from proteoscope.gui.plots.export import ExportAction
from proteoscope.gui.plots.panel_items import TICK, PanelItems, localised
from proteoscope.gui.plots.zoomable import ZOOM, Range, Ranges, Zoomable
from proteoscope.gui.scrolling_layout import scaled_pixels

_MINIMUM_AXIS = "00,000"
"""Number for which the left axis reserves space, so that most figures are aligned."""
_LOW = 16.0
"""Preferred height in pixels of a panel with relative height 1; if there is less space, all panels shrink."""
_RING = 12.0


class FigureView(Zoomable, pg.GraphicsLayoutWidget):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Widget that shows a figure or a text.

    Wheel: zoom around the pointer. Drag: zoom into the box. Double click, 0 or Home: show everything. Keys: + and - zoom, arrows move; in
    panels with standing marks (which rise from the axis, such as peaks), Up and Down scale the height. `Panel.smallest` limits the zoom.

    ``show_figure(figure, text, retains_range=…)`` shows a figure, ``highlight(marks)`` draws marks over it that are not part of the figure,
    ``mark(target)`` puts a ring on the mark of a target, and ``bring_into_sight(x, y)`` scrolls to values of the axes. ``place_of(x, y)``
    converts such values to pixels of this widget, ``values_at(position)`` does the reverse, ``inner()`` returns the drawing area of a
    panel, and ``picked_at(position)`` returns the mark at a position.

    Parameters
    ----------
    name : str
        Accessible name.
    parent : QWidget or None
        Owner of the view.
    least : tuple of int
        Minimum width and height in pixels with the default font.
    has_heading, has_x_title : bool
        `has_heading`: True to show the heading and legend of the figure. `has_x_title`: True to show the title of the lower axis.
    heights : sequence of float
        Relative heights of the panels of the figures that will be shown, one below the other: since creating their axes takes most of the
        time when the first figure is shown, they are created before, in a step of the event loop.

    Signals
    -------
    targetChosen, targetHovered
        A mark was clicked, or the mark under the pointer has changed; emitted with its target (hovering: None if there is none).
    rangeChanged
        The visible range has changed.
    message
        Outcome of an export.
    """

    targetChosen = Signal(object)
    targetHovered = Signal(object)
    rangeChanged = Signal()
    message = Signal(str)

    # A class attribute, since Qt calls `resizeEvent` before `__init__` sets the figure.
    _figure: Figure | None = None

    def __init__(
        self,
        name: str,
        parent: QWidget | None = None,
        *,
        least: tuple[int, int] = (160, 90),
        has_heading: bool = True,
        has_x_title: bool = True,
        heights: Sequence[float] = (),
    ) -> None:
        super().__init__(parent)
        self._panels: list[PanelItems] = []
        self._built_form: object | None = None
        """Layout (see `_form`) for which the panels were created."""
        self._is_outdated = self._is_arranging = False
        """`_is_outdated`: True if the figure must be drawn before use. `_is_arranging`: True while its panels are laid out and drawn."""
        self._highlights: tuple[Mark, ...] = ()
        self._highlighted = 0
        self._hovered: object | None = None
        self._has_heading, self.has_x_title = has_heading, has_x_title
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(least[0], scaled_pixels(self, least[1]))
        self.ci.setContentsMargins(4, 4, 12, 4)
        self.ci.setSpacing(0)
        # The context menu is created from this widget's actions.
        self.viewport().setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.viewport().setMouseTracking(True)
        self._label = toned_label()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        layout = in_column(on=self, margins=(20, 8, 20, 8))
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        layout.addWidget(self._label)
        # Connected to the scene, since marks may accept a click, which then never reaches the panel's box.
        self.scene().sigMouseClicked.connect(self._choose)
        self.export_action = ExportAction(self, self._exported, self.message.emit)
        self.setBackground(qt_colour("background", palette_of(self.palette())))
        if heights:
            delayed(self, partial(self._prepare, heights)).start()

    @property
    def figure(self) -> Figure | None:
        """The shown figure, or None."""
        return self._figure

    @property
    def text(self) -> str:
        """Text shown instead of a figure."""
        return self._label.text()

    def panel_in_sight(self, panel: int = 0) -> Panel:
        """Return a panel with its axes restricted to the visible range."""
        self._draw_if_outdated()
        area = self._panels[panel].panel_area
        assert area is not None
        return area.panel

    def show_figure(self, figure: Figure | None, text: str = "", *, retains_range: bool = False) -> None:
        """Show a figure or a text. `retains_range`: retain the visible range as far as the new figure contains it."""
        self._figure, self._hovered = figure, None
        self._label.setText("" if figure is not None else text)
        self._label.setVisible(figure is None)
        self.setAccessibleDescription(text if figure is None else figure.title)
        if figure is None or not retains_range or len(self._ranges) != len(self._whole()):
            self._ranges, self._highlights = self._home(), ()
        self._draw_anew()

    def show_panel(self, panel: Panel, number: int) -> None:
        """Replace panel `number` by a panel with the same axes."""
        if self._figure is not None:
            panels = self._figure.panels
            self._figure = replace(self._figure, panels=(*panels[:number], panel, *panels[number + 1 :]))
            self._draw(number)

    def _draw_anew(self) -> None:
        """Draw the figure in the colours of the theme. A hidden figure is drawn only when it is shown or used."""
        self._is_outdated = True
        # Without a figure, the data of the previous one are released at once.
        if self.isVisible() or self._figure is None:
            self._draw_if_outdated()
        else:
            self.show_range(self._ranges)

    def _draw_if_outdated(self) -> None:
        if not self._is_outdated:
            return
        self._is_arranging = True
        try:
            form = None if self._figure is None else _form(self._figure, self._has_heading)
            if form is None:
                # The axes are retained, since creating them takes most of the time, but not the data.
                for items in self._panels:
                    items.clear()
            elif form != self._built_form:
                self._build()
                self._built_form = form
            self.ci.setVisible(form is not None)
            self._take_theme()
        finally:
            self._is_outdated = self._is_arranging = False
        self.show_range(self._ranges)

    def dragged(self, panel: int, event: Any) -> bool:
        """Handle a drag that started in a panel (`event` is a pyqtgraph `MouseDragEvent`); return True if the drag draws no zoom box."""
        return False

    def highlight(self, marks: Sequence[Mark], panel: int = 0) -> None:
        """Replace the marks that are drawn over a panel and are not part of its figure."""
        self._highlights, self._highlighted = tuple(marks), panel
        if self._is_outdated:
            return
        for at, items in enumerate(self._panels):
            items.highlight(self._highlights if at == panel else ())

    def mark(self, *targets: object, size: float = _RING) -> None:
        """Put rings of diameter `size` (pixels) on the marks with these targets; without targets, remove the rings."""
        if targets:
            self._draw_if_outdated()
        result = [
            (at, position)
            for at, items in enumerate(self._panels)
            for target in targets
            if items.panel_area is not None and (position := items.panel_area.target_place(target)) is not None
        ]
        positions = np.array([position for at, position in result if at == result[0][0]]).reshape(-1, 2)
        self.highlight(
            (Scatter(positions[:, 0], positions[:, 1], "text", size, is_hollow=True),) if result else (), result[0][0] if result else 0
        )

    def inner(self, panel: int = 0) -> QRectF:
        """Return the drawing area of a panel, in pixels of this widget."""
        self._draw_if_outdated()
        return QRectF() if self._figure is None else QRectF(self._panels[panel].area)

    def place_of(self, x: float, y: float, panel: int = 0) -> QPointF:
        """Return the position of the values x and y of a panel's axes, in pixels of this widget."""
        self._draw_if_outdated()
        area = self._panels[panel].panel_area
        assert area is not None
        return QPointF(float(area.x(np.array(x))), float(area.y(np.array(y))))

    def values_at(self, at: QPointF) -> tuple[int, float, float] | None:
        """Return the index of the panel at a position of this widget and the values of its axes there, or None."""
        self._draw_if_outdated()
        for number, items in enumerate(self._panels):
            if items.panel_area is not None and items.area.contains(at):
                return number, *items.panel_area.values(at.x(), at.y())
        return None

    def picked_at(self, at: QPointF) -> Picked | None:
        """Return the mark at a position of this widget, or None."""
        result = self.values_at(at)
        area = None if result is None else self._panels[result[0]].panel_area
        return None if area is None else area.picked(at.x(), at.y())

    def text_at(self, at: QPointF) -> str:
        """Return the tooltip of the mark at a position of this widget, or ''."""
        picked = self.picked_at(at)
        return "" if picked is None else localised(picked.tip)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the tooltip of the mark under the pointer."""
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
        if not self._take_key(Qt.Key(event.key())):
            QWidget.keyPressEvent(self, event)

    def changeEvent(self, event: QEvent) -> None:
        """Apply the colours and the font of the new theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and hasattr(self, "export_action"):
            self._is_outdated = True
            if self.isVisible():
                self._draw_if_outdated()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw a figure that was set while it was hidden."""
        self._draw_if_outdated()
        super().showEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the figure, also into a picture of a hidden widget."""
        self._draw_if_outdated()
        super().paintEvent(event)

    @property
    def _zoomed(self) -> Panel | None:
        """First panel whose height can be zoomed, or else the first panel; None if there are no panels."""
        panels = () if self._figure is None else self._figure.panels
        return next((panel for panel in panels if panel.smallest[1] is not None), panels[0] if panels else None)

    @property
    def _is_base_fixed(self) -> bool:
        return self._zoomed is not None and self._zoomed.is_base_fixed

    def _whole(self) -> Ranges:
        panel = self._zoomed
        if panel is None or panel.smallest[0] is None:
            return ()
        return ((panel.x.low, panel.x.high), (panel.y.low, panel.y.high))[: 1 if panel.smallest[1] is None else 2]

    def _home(self) -> Ranges:
        whole, figure = self._whole(), self._figure
        return (figure.x_range, *whole[1:]) if whole and figure is not None and figure.x_range is not None else whole

    def _smallest(self) -> Sequence[float]:
        return () if self._zoomed is None else tuple(smallest for smallest in self._zoomed.smallest if smallest is not None)

    def _range_from_base(self, top: float) -> Range:
        """Return the visible y range from the lower end of the axis, or from -top if the axis is mirrored, to `top`."""
        assert self._zoomed is not None
        return (-top if self._zoomed.y.is_mirrored else self._zoomed.y.low), top

    def _step(self, axis: int, way: int) -> None:
        if axis and self._is_base_fixed:
            self.show_range((self._ranges[0], self._range_from_base(self._ranges[1][1] * ZOOM**way)))
        else:
            super()._step(axis, way)

    def _zoom(self, factor: float, around: Sequence[float], factor_upwards: float | None = None) -> None:
        super()._zoom(factor, around, 1.0 if self._is_base_fixed else factor_upwards)

    def _draw_ranges(self) -> None:
        for at in range(len(self._panels)):
            self._draw(at)
        self.rangeChanged.emit()

    def _range_of(self, panel: int) -> tuple[Range | None, Range | None]:
        """Return the visible ranges of x and y of a panel; None for an axis that cannot be zoomed."""
        assert self._figure is not None
        is_zoomed = len(self._ranges) > 1 and self._figure.panels[panel] is self._zoomed
        return self._ranges[0] if self._ranges else None, self._ranges[1] if is_zoomed else None

    def _draw(self, at: int) -> None:
        """Draw the visible part of a panel."""
        if self._is_outdated or self._is_arranging:
            return
        if self._figure is not None and at < len(self._figure.panels):
            items = self._panels[at]
            columns = round(items.area.width() * self.devicePixelRatioF())
            items.draw(restrict_panel(self._figure.panels[at], *self._range_of(at), columns))
            items.highlight(self._highlights if at == self._highlighted else ())

    def _prepare(self, heights: Sequence[float]) -> None:
        """Create axes before the first figure is shown (see the class)."""
        if self._figure is None and self._built_form is None:
            axis, text = Axis(0.0, 1.0), self.text
            self._figure = Figure("", "", tuple(Panel(axis, axis, (), height) for height in heights), ("",))
            self._is_outdated = True
            self._draw_if_outdated()
            self.show_figure(None, text)

    def _build(self) -> None:
        """Create the heading and the axes of the figure's panels."""
        self.ci.clear()
        self._panels = []
        self._heading: Any = None
        figure = self._figure
        assert figure is not None
        n = figure.n_columns
        if self._has_heading and (figure.heading or figure.legend):
            self._heading = self.ci.addLabel(row=0, col=0, colspan=2 * n, justify="left")
        for at, panel in enumerate(figure.panels):
            row, column = 1 + 3 * (at // n), 2 * (at % n)
            has_numbers = n > 1 or at == len(figure.panels) - 1
            items = PanelItems(self, _Box(self, at), n, has_x_numbers=has_numbers, has_x_title=self.has_x_title)
            if panel.title:
                items.title = self.ci.addLabel(row=row, col=column, colspan=2, justify="left")
            for item, down, across in ((items.left, 1, 0), (items.box, 1, 1), (items.bottom, 2, 1)):
                self.ci.addItem(item, row + down, column + across)
            self.ci.layout.setRowStretchFactor(row + 1, round(100 * panel.relative_height**0.6))
            for item in (items.left, items.box):
                # Qt grows rows by the product of stretch factor and preferred height: each gets the square root of the share.
                item.setPreferredHeight(_LOW * panel.relative_height**0.25)
            self.ci.layout.setColumnStretchFactor(column + 1, 1)
            items.box.sigResized.connect(lambda _, at=at: self._draw(at))
            self._panels.append(items)

    def _take_theme(self) -> None:
        palette = palette_of(self.palette())
        self.setBackground(qt_colour("background", palette))
        figure, metrics = self._figure, QFontMetricsF(self.font())
        if figure is None:
            return
        panels = [restrict_panel(panel, None, None, 1000) for panel in figure.panels]
        texts = [text for panel in panels for text in panel.y.tick_texts(panel.y.ticks(5))]
        width = max(metrics.horizontalAdvance(text) for text in (*texts, _MINIMUM_AXIS if figure.n_columns == 1 else ""))
        width += (1.6 * metrics.height() if any(panel.y.title for panel in panels) else 0) + TICK + 6
        if self._heading is not None:
            self._heading.setText(self._heading_text(figure, palette), color=qt_colour("text", palette), size=f"{self._points()}pt")
            # Otherwise the width of the text would be the minimum width of the widget.
            self._heading.setMinimumWidth(1)
        for items, panel in zip(self._panels, figure.panels, strict=True):
            items.take_theme(palette, self.font(), width)
            items.show_title(panel.title, f"{self._points()}pt")
        # Otherwise the layout keeps the size that it had while it was empty.
        self.ci.setGeometry(QRectF(self.viewport().rect()))
        self.ci.layout.activate()

    def _points(self) -> float:
        """Return the font size of this widget in points, for rich text."""
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
        # The viewport covers this widget, so the cursor is set there.
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor if target is None else Qt.CursorShape.PointingHandCursor)
        if target != self._hovered:
            self._hovered = target
            self.targetHovered.emit(target)

    def _wheel(self, at: QPointF, degrees: float) -> None:
        result = self._panels[0].panel_area if len(self._panels) == 1 else None
        middle = tuple((low + high) / 2 for low, high in self._ranges)
        values = result.values(at.x(), at.y()) if result is not None else (self.values_at(at) or (0, *middle))[1:]
        self._zoom(ZOOM ** (degrees / 120), values)

    def _take_box(self, panel: int, *corners: QPointF) -> None:
        """Zoom into the box between two positions of a panel."""
        area = self._panels[panel].panel_area
        assert area is not None
        values = np.array([area.values(corner.x(), corner.y()) for corner in corners])
        shown = [np.clip(values[:, axis], low, high) for axis, (low, high) in enumerate(self._ranges)]
        ends = [(float(value.min()), float(value.max())) for value in shown]
        if self._figure is None or self._figure.panels[panel].smallest[1] is None:
            ends = ends[:1]
        elif self._is_base_fixed:
            ends[1] = self._range_from_base(float(np.abs(values[:, 1]).max()))
        self.show_range(tuple(ends))

    def _exported(self) -> PaperFigure | None:
        figure = self.paper_figure()
        if figure is None:
            return None
        ranges = [self._range_of(at) for at in range(len(figure.panels))]
        x_range, y_ranges = ranges[0][0], [y for _, y in ranges]
        return PaperFigure(figure.name, lambda width: figure_at_width(figure, width, x_range, y_ranges))

    def paper_figure(self) -> Figure | None:
        """Return the figure to export; the caller restricts it to the visible range."""
        return self._figure

    def drawing(self) -> Drawing | None:
        """Return the drawing of the figure at its own size, restricted to the visible range, or None."""
        exported = self._exported()
        return None if exported is None else exported.draw(None)


def _form(figure: Figure, has_heading: bool) -> object:
    """Return the properties of a figure that determine the layout of its axes; figures with equal properties have the same layout."""
    panels = [(bool(panel.title), panel.relative_height) for panel in figure.panels]
    return panels, figure.n_columns, has_heading and bool(figure.heading or figure.legend)


class _Box(pg.ViewBox):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Data area of a panel, which forwards the wheel and drags to its `FigureView`."""

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
        """Draw the zoom box, over the full height of the panel if only x can be zoomed."""
        box = QRectF(p1, p2).normalized() & self.rect()
        if len(self._owner.ranges) == 1:
            box.setTop(self.rect().top())
            box.setBottom(self.rect().bottom())
        super().updateScaleBox(box.topLeft(), box.bottomRight())
