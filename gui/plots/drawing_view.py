"""Widget for figures made of the engine's shapes, which look the same on screen and paper; shapes can be clickable."""
# ruff: noqa: N802, N815, D102 - Qt gives these names

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontDatabase,
    QFontInfo,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
    QTransform,
)
from PySide6.QtWidgets import QToolTip, QWidget

from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.views.drawings import (
    Area,
    Bar,
    Box,
    Cells,
    Clip,
    Curve,
    Drawing,
    Handle,
    Image,
    Label,
    PaperFigure,
    Points,
    Shape,
    Spans,
    Sticks,
    Stroke,
    Symbol,
)
from proteoscope.engine.views.palette import Ink, Palette, cell_colours, opacity_below_text
from proteoscope.engine.views.sheets import TextMeasure
from proteoscope.gui.colours import palette_of, plot_colours, qt_colour
from proteoscope.gui.labels import tip_text
from proteoscope.gui.plots.export import ExportAction
from proteoscope.gui.scrolling_layout import scaled_pixels

_NEAR = 7.0
"""Maximum distance in pixels between a click and the dot that it selects."""
_GRIP = 5.0
"""Maximum distance in pixels between the pointer and the handle that a press starts to drag."""
_FIGURE_FONT = 8.0
_OUTLINE_PIXELS = 48

MakeDrawing = Callable[[float, float, float], Drawing]
"""Function that returns a drawing for a width, a height and a font size (pixels on screen, points on paper)."""


class DrawingView(QWidget):
    """Widget that shows a drawing, which is created again for each size of the widget.

    A click or the arrow keys select a bar, a dot or a row of cells; handles (such as threshold lines) can be dragged.

    Parameters
    ----------
    name : str
        Accessible name.
    figure_size : QSizeF
        Default size of the exported figure, in points.
    parent : QWidget or None
        Owner of the view.

    Signals
    -------
    targetChosen
        A shape was selected; emitted with its target: an object for a bar, a row of a table for a dot or cells.
    handleDragged, handleReleased
        A handle is being dragged, or was released; emitted with the handle's name and the value of the setting at the
        handle's position.
    """

    targetChosen = Signal(object)
    handleDragged = Signal(str, float)
    handleReleased = Signal(str, float)
    message = Signal(str)

    def __init__(self, name: str, figure_size: QSizeF, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make: MakeDrawing | None = None
        self._drawing: Drawing | None = None
        self._is_outdated = False
        """True if the drawing must be created again before it is used."""
        self._picture: QPixmap | None = None
        self._marked: object | None = None
        self._dragged: Handle | None = None
        self._figure_size = figure_size
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(220, scaled_pixels(self, 140))
        self.setAccessibleName(name)
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        self.export_action.setEnabled(False)

    @property
    def drawing(self) -> Drawing | None:
        """The shown drawing, in pixels."""
        if self._is_outdated:
            self._is_outdated = False
            if self._make is not None and self.width() >= 2 and self.height() >= 2:
                # Figures define the font size as 0.8 of the line height.
                size = QFontMetricsF(self.font()).height() * 0.8
                self._drawing = self._make(float(self.width()), float(self.height()), size)
            self._describe()
        return self._drawing

    @property
    def marked(self) -> object | None:
        """Target of the marked shape, or None."""
        return self._marked

    def mark(self, target: object | None) -> None:
        """Mark the shape with this target; None removes the mark."""
        self._marked = target
        if not self._is_outdated:
            self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(420, 260)

    def show_drawing(self, make: MakeDrawing | None) -> None:
        """Show the drawing that the function `make` returns, now and after each resize; None shows no drawing."""
        self._make = make
        self.export_action.setEnabled(make is not None)
        self._draw()

    @property
    def _shapes(self) -> tuple[Shape, ...]:
        return () if self.drawing is None else self.drawing.shapes

    def target_at(self, position: QPointF) -> object | None:
        """Return the target of the topmost shape at a position, or None."""
        for shape in reversed(self._shapes):
            if isinstance(shape, Cells) and len(shape.targets) and (cell := shape.cell_at(position.x(), position.y())) is not None:
                target = int(shape.targets[cell[: shape.targets.ndim]])
                return target if target >= 0 else None
            if isinstance(shape, Bar) and shape.target is not None and _box(shape).contains(position):
                return shape.target
            if isinstance(shape, Points) and len(shape.targets):
                distance = np.hypot(shape.x - position.x(), shape.y - position.y())
                nearest = int(np.argmin(distance))
                if distance[nearest] <= _NEAR:
                    return int(shape.targets[nearest])
        return None

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._draw()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._draw()
        elif event.type() == QEvent.Type.PaletteChange:
            # The same shapes are painted in the new colours.
            self._picture = None
            self.update()
        super().changeEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            colours = plot_colours(self.palette())
            if self.drawing is None:
                painter.fillRect(self.rect(), colours.background)
                return
            ratio = self.devicePixelRatioF()
            if self._picture is None or self._picture.devicePixelRatio() != ratio:
                self._picture = QPixmap(self.size() * ratio)
                self._picture.setDevicePixelRatio(ratio)
                self._picture.fill(colours.background)
                on_picture = QPainter(self._picture)
                on_picture.setRenderHint(QPainter.RenderHint.Antialiasing)
                paint_drawing(on_picture, self.drawing, palette_of(self.palette()), self.font())
                on_picture.end()
            painter.drawPixmap(0, 0, self._picture)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            highlight = self.palette().highlight().color()
            if (marked := self._marked_shape()) is not None:
                box, _, is_dot = marked
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                # Bars may have the colour of text, and dots the colour of the highlight: each is marked with the other colour.
                painter.setPen(QPen(colours.text if is_dot else highlight, 2))
                mark = painter.drawEllipse if is_dot else painter.drawRect
                mark(box.adjusted(-2, -2, 2, 2))
            if self.hasFocus():
                painter.setPen(QPen(highlight, 1))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def handle_at(self, position: QPointF) -> Handle | None:
        """Return the handle at a position, or None."""
        for handle in () if self.drawing is None else self.drawing.handles:
            across, along = (position.x(), position.y()) if handle.is_upright else (position.y(), position.x())
            if abs(across - handle.at) <= _GRIP and handle.start <= along <= handle.stop:
                return handle
        return None

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        target = self.target_at(event.position())
        if target is not None:
            self._choose(target)
        else:
            self._dragged = self.handle_at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._dragged is not None and event.button() == Qt.MouseButton.LeftButton:
            handle, self._dragged = self._dragged, None
            self.handleReleased.emit(handle.name, self._setting(handle, event.position()))

    def _setting(self, handle: Handle, position: QPointF) -> float:
        """Return the value of a handle's setting at a position, from its axis in the current drawing, which may have changed."""
        drawn = () if self.drawing is None else self.drawing.handles
        handle = next((other for other in drawn if other.name == handle.name), handle)
        return handle.value(position.x() if handle.is_upright else position.y())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        targets = self._targets()
        last = len(targets) - 1
        now = targets.index(self._marked) if self._marked in targets else None
        positions = {
            Qt.Key.Key_Right: 0 if now is None else min(now + 1, last),
            Qt.Key.Key_Left: last if now is None else max(now - 1, 0),
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        position = positions.get(Qt.Key(event.key()))
        if position is None or not targets:
            super().keyPressEvent(event)
        else:
            self._choose(targets[position])

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged is not None:
            self.handleDragged.emit(self._dragged.name, self._setting(self._dragged, event.position()))
            return
        tip = next((tip for shape in reversed(self._shapes) if (tip := _tip(shape, event.position()))), "")
        is_target, handle = self.target_at(event.position()) is not None, self.handle_at(event.position())
        if handle is not None and not is_target:
            self.setCursor(Qt.CursorShape.SplitHCursor if handle.is_upright else Qt.CursorShape.SplitVCursor)
            tip = handle.tip
        else:
            self.setCursor(Qt.CursorShape.PointingHandCursor if is_target else Qt.CursorShape.ArrowCursor)
        QToolTip.showText(event.globalPosition().toPoint(), tip_text(tip), self)

    def _choose(self, target: object) -> None:
        self.mark(target)
        self.targetChosen.emit(target)

    def _targets(self) -> list[object]:
        """Return the targets of all shapes from left to right, the order of the arrow keys."""
        targets: list[object] = []
        across: list[float] = []
        for shape in self._shapes:
            # Round bars are skipped: they belong to a bar with the same target.
            if isinstance(shape, Bar) and shape.target is not None and not shape.is_round:
                targets.append(shape.target)
                across.append(shape.x)
            elif isinstance(shape, Cells):
                selected = list(dict.fromkeys(shape.targets[shape.targets >= 0].tolist()))
                targets += selected
                # Cells are ordered from top to bottom.
                across += map(float, range(len(selected)))
            elif isinstance(shape, Points):
                targets += shape.targets.tolist()
                across += shape.x[: len(shape.targets)].tolist()
        return [targets[position] for position in np.argsort(across, kind="stable").tolist()]

    def _marked_shape(self) -> tuple[QRectF, str, bool] | None:
        """Return the marked shape as rectangle, tooltip, and True if it is a dot; return None if no shape is marked."""
        for shape in self._shapes if self._marked is not None else ():
            if isinstance(shape, Bar) and shape.target == self._marked and not shape.is_round:
                return _box(shape), shape.tip, False
            if isinstance(shape, Cells) and isinstance(self._marked, int):
                n_rows, n_columns = (*shape.targets.shape, 1)[:2]
                wide, tall = shape.width / n_columns, shape.height / max(1, n_rows)
                for row, column in (divmod(cell, n_columns) for cell in np.flatnonzero(shape.targets == self._marked)[:1].tolist()):
                    tip = shape.tip(row, column) if n_columns > 1 and shape.tip is not None else ""
                    return QRectF(shape.x + column * wide, shape.y + row * tall, wide, tall), tip, False
            if isinstance(shape, Points) and isinstance(self._marked, int):
                for position in np.flatnonzero(shape.targets == self._marked)[:1].tolist():
                    size = shape.size + 2
                    return QRectF(shape.x[position] - size / 2, shape.y[position] - size / 2, size, size), "", True
        return None

    def _describe(self) -> None:
        """Set the accessible description to the drawing's title and the tooltip of the marked shape."""
        title = "" if self._drawing is None else self._drawing.title
        _, tip, _ = self._marked_shape() or (None, "", False)
        self.setAccessibleDescription(f"{title}. {tip}" if tip else title)

    def _draw(self) -> None:
        """Create the drawing again; that of a hidden widget is created only when it is shown or used."""
        self._picture = self._drawing = None
        self._is_outdated = True
        if self.isVisible():
            _ = self.drawing
        self.update()

    def _figure(self) -> PaperFigure | None:
        if self._make is None:
            return None
        make, page = self._make, (self._figure_size.width(), self._figure_size.height())
        # The title is followed by a colon and a description for screen readers.
        name = make(*page, _FIGURE_FONT).title.partition(":")[0]
        return PaperFigure(name, lambda width: make(*laid_out_size(page, width), _FIGURE_FONT))


def paint_drawing(painter: QPainter, drawing: Drawing, palette: Palette, font: QFont) -> None:
    """Draw all shapes of a drawing; its origin is the painter's origin."""
    description = font.toString()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for shape in drawing.shapes:
        _paint(painter, shape, palette, description, drawing.font_size)


def _paint(painter: QPainter, shape: Shape, palette: Palette, font: str, font_size: float) -> None:
    match shape:
        case Stroke(x1, y1, x2, y2, ink, width, is_dashed):
            painter.setPen(_pen(ink, palette, width, is_dashed=is_dashed))
            painter.drawLine(QLineF(x1, y1, x2, y2))
        case Bar(is_round=False, outline=None):
            with _sharp(painter, min(shape.width, shape.height)):
                painter.fillRect(_box(shape), _fill(shape.ink, shape.opacity, palette))
        case Bar():
            painter.setPen(Qt.PenStyle.NoPen if shape.outline is None else _pen(shape.outline, palette, 1.0))
            painter.setBrush(_fill(shape.ink, shape.opacity, palette))
            draw = painter.drawEllipse if shape.is_round else painter.drawRect
            draw(_box(shape))
        case Curve(x, y, ink, width, is_dashed):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(_pen(ink, palette, width, is_dashed=is_dashed))
            painter.drawPolyline(_polygon(np.column_stack((x, y))))
        case Area(x, y, ink, opacity):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(qt_colour(ink, palette, opacity))
            painter.drawPolygon(_polygon(np.column_stack((x, y))))
        case Sticks(x, y1, y2, ink, width):
            painter.setPen(QPen(qt_colour(ink, palette), width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            lines = [QLineF(at, low, at, high) for at, low, high in zip(x.tolist(), y1.tolist(), y2.tolist(), strict=True)]
            with _sharp(painter, width):
                painter.drawLines(lines)
        case Spans(x1, x2, y, height, ink, opacity):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(_fill(ink, opacity, palette))
            bars = [QRectF(left, top, right - left, height) for left, right, top in zip(x1.tolist(), x2.tolist(), y.tolist(), strict=True)]
            with _sharp(painter, height):
                painter.drawRects(bars)
        case Points(ink=ink):
            painter.setPen(QPen(qt_colour(ink, palette), shape.size, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            painter.drawPoints(_polygon(shape.centres))
        case Label():
            _paint_label(painter, shape, qt_colour(shape.ink, palette), font, font_size)
        case Symbol(x, y, width, height, text, ink):
            outline, advance, capital = _symbol_outline(font, text)
            placed = QTransform.fromTranslate(x, y + height).scale(width / advance, height / capital)
            painter.fillPath(placed.map(outline), qt_colour(ink, palette))
        case Image() | Cells():
            pixels = shape.pixels if isinstance(shape, Image) else shape.pixels(palette)
            if isinstance(shape, Image) and shape.has_text:
                pixels = cell_colours(pixels, palette)
            picture = QImage(pixels.data, pixels.shape[1], pixels.shape[0], 4 * pixels.shape[1], QImage.Format.Format_RGBA8888)
            painter.drawImage(_box(shape), picture)
        case Clip(x, y, width, height, shapes):
            painter.save()
            painter.setClipRect(QRectF(x, y, width, height), Qt.ClipOperation.IntersectClip)
            for drawn_shape in shapes:
                _paint(painter, drawn_shape, palette, font, font_size)
            painter.restore()


def _fill(ink: Ink, opacity: float, palette: Palette) -> QColor:
    return qt_colour(ink, palette, opacity_below_text(ink, opacity, palette))


def _tip(shape: Shape, position: QPointF) -> str:
    """Return the tooltip of a shape at a position, or ''."""
    if isinstance(shape, Cells) and shape.tip is not None:
        cell = shape.cell_at(position.x(), position.y())
        return "" if cell is None else shape.tip(*cell)
    return shape.tip if isinstance(shape, Bar) and shape.tip and _box(shape).contains(position) else ""


@contextmanager
def _sharp(painter: QPainter, width: float) -> Iterator[None]:
    """Draw without antialiasing (ten times faster) during the `with` block, unless shapes of this width (pixels) could vanish."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, bool(width < 1))
    yield
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def _pen(ink: Ink, palette: Palette, width: float, *, is_dashed: bool = False) -> QPen:
    return QPen(qt_colour(ink, palette), width, Qt.PenStyle.DashLine if is_dashed else Qt.PenStyle.SolidLine)


@lru_cache(maxsize=64)
def _label_font(description: str, pixels: int, is_bold: bool, is_fixed: bool) -> tuple[QFont, QFontMetricsF]:
    """Return the font of labels and its metrics; `description` is the font of the figure, as returned by `QFont.toString`."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont) if is_fixed else QFont()
    if not is_fixed:
        font.fromString(description)
    font.setPixelSize(pixels)
    font.setBold(is_bold)
    return font, QFontMetricsF(font)


@lru_cache(maxsize=256)
def _symbol_outline(description: str, text: str) -> tuple[QPainterPath, float, float]:
    """Return outline and width of a bold character, and the height of capitals; sequence logos stretch the outline."""
    font, metrics = _label_font(description, _OUTLINE_PIXELS, is_bold=True, is_fixed=False)
    outline = QPainterPath()
    outline.addText(QPointF(0, 0), font, text)
    return outline, metrics.horizontalAdvance(text) or 1.0, metrics.capHeight() or 1.0


@dataclass(frozen=True)
class WidgetMeasure(TextMeasure):
    """Measure of text sizes in the font of a widget.

    Attributes
    ----------
    font : str
        Description of the font, as returned by `QFont.toString`.
    """

    font: str = ""

    @classmethod
    def from_font(cls, font: QFont) -> WidgetMeasure:
        """Return the measure of text sizes for figures drawn in a font."""
        return cls(float(QFontInfo(font).pixelSize()), font.toString())

    def width(self, text: str, size: float = 1.0, *, is_fixed: bool = False, is_bold: bool = False) -> float:
        _, metrics = _label_font(self.font, max(1, round(size * self.font_size)), is_bold, is_fixed)
        return metrics.horizontalAdvance(text)

    def number(self, value: float) -> str:
        return QLocale().toString(round(value))


def _paint_label(painter: QPainter, label: Label, colour: QColor, font: str, font_size: float) -> None:
    label_font, metrics = _label_font(font, max(1, round(label.size * font_size)), label.is_bold, label.is_fixed)
    painter.setFont(label_font)
    painter.setPen(colour)
    before = 0.0
    if label.anchor != "start":
        before = (0.5 if label.anchor == "middle" else 1.0) * metrics.horizontalAdvance(label.text)
    if label.is_upright:
        painter.save()
        painter.translate(QPointF(label.x, label.y))
        painter.rotate(-90)
        painter.drawText(QPointF(-before, 0), label.text)
        painter.restore()
    else:
        painter.drawText(QPointF(label.x - before, label.y), label.text)


def _polygon(positions: np.ndarray) -> QPolygonF:
    return QPolygonF([QPointF(x, y) for x, y in positions.tolist()])


def _box(box: Box) -> QRectF:
    return QRectF(box.x, box.y, box.width, box.height)
