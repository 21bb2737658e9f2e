"""LC-MS map of a run (spectra by retention time and m/z), with checkboxes for the status of its spectra."""
# ruff: noqa: N802, N815 - Qt gives these names

from PySide6.QtCore import QEvent, QSize, Signal
from PySide6.QtGui import QIcon, QKeySequence, QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.views.figures import Rule, Scatter
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_INKS, STATUS_NAMES, UNEXPLAINED, MapPoints, run_map_figure
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.panel_items import localised

_RING = 13.0


class RunMap(QWidget):
    """Widget that shows the spectra of a run as points, or a text. A click selects the nearest spectrum."""

    spectrumChosen = Signal(int)
    """A spectrum was clicked; emitted with its row of the table of spectra."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.points: MapPoints | None = None
        self.marked: int | None = None
        """Index of the marked point, or None."""
        self.canvas = FigureView("LC-MS map", self, least=(160, 110), has_heading=False, heights=(1.0,))
        self.canvas.targetChosen.connect(self._choose)
        self.canvas.message.connect(self.message)
        self.boxes = {status: QCheckBox() for status in (IDENTIFIED, EXPLAINED, UNEXPLAINED)}
        """Checkboxes by status; with their icons they are also the legend."""
        legend = in_row(margins=(8, 3, 8, 0), spacing=14)
        for box in self.boxes.values():
            box.setChecked(True)
            box.toggled.connect(lambda _: self._draw())
            legend.addWidget(box)
        legend.addStretch(1)
        self._legend_row, self._names = legend, dict.fromkeys(self.boxes, "")
        self._legend = QWidget()
        self._legend.setLayout(legend)
        # The legend may shrink: `_name_legend` omits the names if there is no space for them.
        self._legend.setMinimumWidth(1)
        in_column(self._legend, (self.canvas, 1), on=self, spacing=0)
        self.setFocusProxy(self.canvas)
        self.export_action = self.canvas.export_action
        # No shortcut: Ctrl+E exports the spectrum next to the map.
        self.export_action.setShortcut(QKeySequence())
        self.show_points(None)

    @property
    def text(self) -> str:
        """Text shown instead of points."""
        return self.canvas.text

    @property
    def statuses(self) -> frozenset[int]:
        """Status values of the spectra whose points are shown."""
        return frozenset(status for status, box in self.boxes.items() if box.isChecked())

    def show_points(self, points: MapPoints | None, text: str = "") -> None:
        """Show points or a text."""
        self.points, self.marked = points if points is not None and len(points) else None, None
        counts = (0,) * len(STATUS_NAMES) if points is None else points.counts
        self._names = {status: localised(f"{counts[status]:,} {STATUS_NAMES[status]}") for status in self.boxes}
        for status, box in self.boxes.items():
            box.setAccessibleName(self._names[status])
            box.setToolTip(f"{self._names[status]}; click to show or hide these spectra")
        self._legend.setVisible(points is not None)
        self._name_legend()
        if self.points is None:
            self.canvas.show_figure(None, text if points is None else "No spectrum has an m/z.")
        else:
            self.canvas.show_figure(run_map_figure(self.points, self.statuses))

    def mark(self, spectrum: SpectrumRow | None) -> None:
        """Mark the point of a spectrum, by its row of the table of spectra; None removes the mark."""
        self._mark(None if self.points is None or spectrum is None else self.points.point_of(spectrum))

    def reset_range(self) -> None:
        """Show all points."""
        self.canvas.reset_range()

    def sizeHint(self) -> QSize:
        """Return the preferred size of a map."""
        return QSize(420, 260)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shorten the legend to the available space."""
        super().resizeEvent(event)
        self._name_legend()

    def changeEvent(self, event: QEvent) -> None:
        """Apply the colours of the new theme, or leave this to `showEvent`, since most maps are hidden."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.isVisible():
            self._colour_legend()

    def showEvent(self, event: QShowEvent) -> None:
        """Apply the colours of the theme; the icons need space in the legend."""
        self._colour_legend()
        self._name_legend()
        super().showEvent(event)

    def _draw(self) -> None:
        if self.points is not None:
            self.canvas.show_figure(run_map_figure(self.points, self.statuses), retains_range=True)

    def _mark(self, point: int | None) -> None:
        points, self.marked = self.points, point
        if points is None or point is None:
            self.canvas.highlight(())
            return
        x, mz = points.x[point : point + 1].astype(float), points.mz[point : point + 1].astype(float)
        rules = Rule(float(x[0]), ink="text"), Rule(float(mz[0]), is_upright=False, ink="text")
        self.canvas.highlight((*rules, Scatter(x, mz, "text", _RING, is_hollow=True)))
        self.canvas.bring_into_sight(float(x[0]), float(mz[0]))

    def _choose(self, point: int) -> None:
        assert self.points is not None
        self._mark(point)
        self.spectrumChosen.emit(int(self.points.spectrum[point]))

    def _colour_legend(self) -> None:
        size, palette = self.fontMetrics().height() // 2, palette_of(self.palette())
        for status, box in self.boxes.items():
            drawn = QPixmap(size, size)
            drawn.fill(qt_colour(STATUS_INKS[status], palette))
            box.setIcon(QIcon(drawn))
            box.setIconSize(QSize(size, size))

    def _name_legend(self) -> None:
        """Write counts and names into the legend, or only the counts if space is short; the tooltips always contain the names."""
        for status, box in self.boxes.items():
            box.setText(self._names[status])
        row, margins = self._legend_row, self._legend_row.contentsMargins()
        space = self.width() - margins.left() - margins.right() - len(self.boxes) * row.spacing()
        if sum(box.sizeHint().width() for box in self.boxes.values()) > space:
            for box in self.boxes.values():
                box.setText(box.text().rpartition(" ")[0])
