"""The map of a run: its spectra by retention time and m/z, coloured by what became of them."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QIcon,
    QImage,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from proteoscope.engine.row_numbers import SpectrumRow
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_NAMES, UNEXPLAINED, MapPoints
from proteoscope.engine.views.shown_peaks import UNMATCHED
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.map_picture import MapView, draw_points, nearest_point
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["RunMap", "x_title"]

_FIGURE_SIZE = QSizeF(460, 300)
_PRINTED = 4
"""Pixels of a figure's points for one of the page (1/72 inch)."""
_NEAR = 8.0
"""Pixels from the pointer within which a point is meant."""
_MINIMUM_RANGE = (0.002, 0.02)
"""Minutes and thomson that are shown at least."""
_LEGEND = (IDENTIFIED, EXPLAINED, UNEXPLAINED)


class RunMap(QWidget):
    """Shows the spectra of a run as points, or a text in their place. A click chooses the spectrum next to it.

    Wheel: zoom around the pointer. Drag: zoom into the box. Double click, 0 or Home: everything. Keys: + and - zoom, arrows move.
    """

    spectrumChosen = Signal(int)
    """Row of the spectrum in the table of spectra."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.canvas = _Canvas(self)
        self.canvas.spectrumChosen.connect(self.spectrumChosen)
        self.boxes = {status: QCheckBox() for status in _LEGEND}
        """The legend: what is ticked is drawn."""
        legend = QHBoxLayout()
        legend.setContentsMargins(8, 3, 8, 0)
        legend.setSpacing(14)
        for box in self.boxes.values():
            box.setChecked(True)
            box.toggled.connect(self._choose_shown)
            legend.addWidget(box)
        legend.addStretch(1)
        self._legend_row, self._names = legend, dict.fromkeys(self.boxes, "")
        self._legend = QWidget()
        self._legend.setLayout(legend)
        # Where there is less room than names need, numbers do.
        self._legend.setMinimumWidth(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._legend)
        layout.addWidget(self.canvas, 1)
        self.setFocusProxy(self.canvas)
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        # Ctrl+E is for the spectrum beside the map.
        self.export_action.setShortcut(QKeySequence())
        self.show_points(None)

    @property
    def points(self) -> MapPoints | None:
        """What is shown."""
        return self.canvas.points

    @property
    def text(self) -> str:
        """What is said in place of points."""
        return self.canvas.text if self.points is None else ""

    def show_points(self, points: MapPoints | None, text: str = "") -> None:
        """Show points, or a text in their place."""
        self.canvas.show_points(points, text)
        counts = (0,) * len(STATUS_NAMES) if points is None else points.counts
        self._names = {status: f"{QLocale().toString(counts[status])} {STATUS_NAMES[status]}" for status in self.boxes}
        for status, box in self.boxes.items():
            box.setAccessibleName(self._names[status])
            box.setToolTip(f"{self._names[status]}; shows them or not")
        self._legend.setVisible(points is not None)
        self._colour_legend()
        described = ", ".join(self._names.values())
        self.canvas.setAccessibleDescription(text if points is None else f"Spectra by retention time and m/z: {described}")
        self._name_legend()

    def mark(self, spectrum: SpectrumRow | None) -> None:
        """Mark a row of the table of spectra."""
        self.canvas.mark(spectrum)

    def reset_range(self) -> None:
        """Show all points."""
        self.canvas.reset_range()

    def sizeHint(self) -> QSize:
        """Room for a map."""
        return QSize(420, 260)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Name what there is room to name."""
        super().resizeEvent(event)
        self._name_legend()

    def changeEvent(self, event: QEvent) -> None:
        """Take the colours of the new theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "export_action"):
            self._colour_legend()

    def _colour_legend(self) -> None:
        colours = _status_colours(plot_colours(self.palette()))
        size = self.fontMetrics().height() // 2
        for status, box in self.boxes.items():
            drawn = QPixmap(size, size)
            drawn.fill(colours[status])
            box.setIcon(QIcon(drawn))
            box.setIconSize(QSize(size, size))

    def _name_legend(self) -> None:
        """Numbers alone where their names have no room; those stand in the tooltips."""
        for status, box in self.boxes.items():
            box.setText(self._names[status])
        row, margins = self._legend_row, self._legend_row.contentsMargins()
        room = self.width() - margins.left() - margins.right() - len(self.boxes) * row.spacing()
        if sum(box.sizeHint().width() for box in self.boxes.values()) > room:
            for box in self.boxes.values():
                box.setText(box.text().rpartition(" ")[0])

    def _choose_shown(self) -> None:
        self.canvas.show_statuses(frozenset(status for status, box in self.boxes.items() if box.isChecked()))

    def _figure(self) -> ExportFigure | None:
        return None if self.points is None else ExportFigure("Map of the run", _FIGURE_SIZE, self._paint)

    def _paint(self, painter: QPainter, area: QRectF) -> None:
        font = figure_font(8)
        painter.setFont(font)
        metrics, colours = QFontMetricsF(font), PAPER
        x = area.left() + 54.0
        for status in _LEGEND:
            if status in self.canvas.statuses:
                text = self._names[status]
                painter.fillRect(QRectF(x, area.top() + 9, 6, 6), _status_colours(colours)[status])
                painter.setPen(colours.text)
                box = QRectF(x + 9, area.top() + 6, metrics.horizontalAdvance(text) + 2, metrics.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignLeft, text)
                x = box.right() + 14
        self.canvas.paint_map(painter, area.adjusted(0, 12 + metrics.height(), 0, 0), colours, font, _PRINTED)


def _status_colours(colours: PlotColours) -> tuple[QColor, ...]:
    """By the number of the status."""
    return colours.ions[UNMATCHED], colours.target, colours.decoy


class _Canvas(ZoomedPlot):
    """The points with their axes."""

    spectrumChosen = Signal(int)

    def __init__(self, owner: RunMap) -> None:
        super().__init__(owner)
        self.points: MapPoints | None = None
        self.text = ""
        self.statuses = frozenset(_LEGEND)
        self._ranges = ((0.0, 1.0), (0.0, 1.0))
        self._marked: int | None = None
        self._picture: tuple[object, QImage] | None = None
        self.setAccessibleName("Map of the run")
        self.setMinimumSize(160, pixels_with_letters(self, 110))

    @property
    def inner(self) -> QRectF:
        """Where points are drawn."""
        return self._inner(QRectF(self.rect()), self.font())

    @property
    def marked(self) -> int | None:
        """The point that is marked."""
        return self._marked

    def show_points(self, points: MapPoints | None, text: str) -> None:
        self.points = points if points is not None and len(points) else None
        self.text = text if points is None or len(points) else "No spectrum has an m/z to draw it at."
        self._marked = self._picture = None
        self._forget_pull()
        self.reset_range()

    def show_statuses(self, statuses: frozenset[int]) -> None:
        self.statuses = statuses
        self.update()

    def mark(self, spectrum: SpectrumRow | None) -> None:
        points = self.points
        self._marked = None if points is None or spectrum is None else points.point_of(spectrum)
        if self._marked is not None and points is not None:
            self._bring_into_sight((float(points.x[self._marked]), float(points.mz[self._marked])))
        self.update()

    def place_of(self, point: int) -> QPointF:
        """Where a point is drawn, on this widget."""
        assert self.points is not None
        inner = self.inner
        view = _view(inner, self._ranges)
        x, y = view.place_of(float(self.points.x[point]), float(self.points.mz[point]))
        return QPointF(inner.left() + x * inner.width() / view.width, inner.top() + y * inner.height() / view.height)

    def point_at(self, at: QPointF) -> int | None:
        """The point next to a place of this widget."""
        inner = self.inner
        if self.points is None or not inner.adjusted(-_NEAR, -_NEAR, _NEAR, _NEAR).contains(at):
            return None
        place = at.x() - inner.left(), at.y() - inner.top()
        return nearest_point(self.points, _view(inner, self._ranges), place, _NEAR, self.statuses)

    def text_at(self, at: QPointF) -> str:
        """The spectrum next to a place of this widget."""
        point, points = self.point_at(at), self.points
        if point is None or points is None:
            return ""
        locale = QLocale()
        place = f"m/z {locale.toString(float(points.mz[point]), 'f', 4)}"
        if points.has_times:
            place += f", {locale.toString(float(points.x[point]), 'f', 2)} min"
        return "\n".join(part for part in (points.name_of(point), place, STATUS_NAMES[points.status[point]]) if part)

    def paint_map(self, painter: QPainter, area: QRectF, colours: PlotColours, font: QFont, ratio: float) -> None:
        """Draw points and axes into `area`; `ratio`: pixels of the picture for one of the painter's units."""
        points = self.points
        assert points is not None
        inner = self._inner(area, font)
        painter.drawImage(inner, self._drawn(points, inner, colours, ratio))
        axes = Axes(inner, self._ranges[0], self._ranges[1])
        titles = AxisTitles(x_title(points, QFontMetricsF(font), area.width()), "m/z")
        draw_axes(painter, axes, colours, font, titles, x_is_whole=not points.has_times)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.points is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 12, -20, -12)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            self.paint_map(painter, QRectF(self.rect()), colours, self.font(), self.devicePixelRatioF())
            painter.setClipRect(self.inner)
            self._paint_mark(painter, colours)
            self._paint_pull(painter, colours)
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._picture = None

    def _whole(self) -> Ranges | None:
        return None if self.points is None else self.points.whole

    def _least(self) -> tuple[float, ...]:
        return _MINIMUM_RANGE

    def _can_be_clicked(self, at: QPointF) -> bool:
        return self.point_at(at) is not None

    def _click(self, at: QPointF) -> None:
        point = self.point_at(at)
        if point is not None and self.points is not None:
            self._marked = point
            self.update()
            self.spectrumChosen.emit(int(self.points.spectrum[point]))

    def _paint_mark(self, painter: QPainter, colours: PlotColours) -> None:
        if self._marked is None:
            return
        at, inner = self.place_of(self._marked), self.inner
        painter.setPen(QPen(colours.text, 1.0, Qt.PenStyle.DotLine))
        painter.drawLine(QLineF(at.x(), inner.top(), at.x(), at.y() - 7))
        painter.drawLine(QLineF(at.x(), at.y() + 7, at.x(), inner.bottom()))
        painter.drawLine(QLineF(inner.left(), at.y(), at.x() - 7, at.y()))
        painter.drawLine(QLineF(at.x() + 7, at.y(), inner.right(), at.y()))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colours.background, 4.0))
        painter.drawEllipse(at, 6, 6)
        painter.setPen(QPen(colours.text, 1.8))
        painter.drawEllipse(at, 6, 6)

    def _drawn(self, points: MapPoints, inner: QRectF, colours: PlotColours, ratio: float) -> QImage:
        """The picture of the points, the one before where nothing has changed."""
        view = _view(inner, self._ranges, ratio)
        of_statuses = tuple(colour.rgb() & 0xFFFFFF for colour in _status_colours(colours))
        wanted = (id(points), view, of_statuses, self.statuses)
        if self._picture is None or self._picture[0] != wanted:
            pixels = draw_points(points, view, of_statuses, self.statuses, ratio)
            image = QImage(pixels.data, view.width, view.height, 4 * view.width, QImage.Format.Format_ARGB32_Premultiplied)
            # The picture keeps no hold of the array.
            self._picture = (wanted, image.copy())
        return self._picture[1]

    @staticmethod
    def _inner(area: QRectF, font: QFont) -> QRectF:
        line = QFontMetricsF(font).height()
        # Whole pixels, which the picture has too.
        return QRectF(area.adjusted(54 + line * 0.4, 6, -12, -2 * line - 10).toRect())


def x_title(points: MapPoints, metrics: QFontMetricsF, room: float) -> str:
    """What the axis of times is called where there are so many pixels; empty where no name has room."""
    title, short = "Retention time (min)", "Time (min)"
    if not points.has_times:
        title, short = "Spectra in the order of the files (they have no retention times)", "Order of the files"
    texts = [title, short]
    if points.n_missing:
        missing = QLocale().toString(points.n_missing)
        texts = [f"{title}; {missing} spectra without a place are not shown", f"{short}; {missing} not shown", short]
    return next((text for text in texts if metrics.horizontalAdvance(text) <= room), "")


def _view(inner: QRectF, ranges: Ranges, ratio: float = 1.0) -> MapView:
    return MapView(ranges[0], ranges[1], max(1, round(inner.width() * ratio)), max(1, round(inner.height() * ratio)))
