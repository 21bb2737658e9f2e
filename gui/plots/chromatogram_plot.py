"""Plot of a chromatogram with a marked retention time."""
# ruff: noqa: N802, N815 - Qt gives these names

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.chromatograms import Chromatogram, chromatogram_figure
from proteoscope.gui.plots.figure_view import FigureView


class ChromatogramPlot(FigureView):
    """Widget that shows a chromatogram or a text. A click selects the spectrum nearest in time."""

    spectrumChosen = Signal(int)
    """A spectrum was selected; emitted with its row of the table of spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Chromatogram", parent)
        self.chromatogram: Chromatogram | None = None
        self.marked: float | None = None
        """Marked retention time in minutes, or None."""
        self.targetChosen.connect(self._choose_place)

    def sizeHint(self) -> QSize:
        """Return the preferred size of a chromatogram."""
        return QSize(420, 180)

    def show_chromatogram(self, chromatogram: Chromatogram | None, text: str = "") -> None:
        """Show a chromatogram or a text; the visible range is retained as far as possible."""
        self.chromatogram = chromatogram if chromatogram is not None and len(chromatogram) else None
        self._draw_all(text or "No spectrum has a retention time.")

    def mark_time(self, minutes: float | None) -> None:
        """Mark a retention time in minutes and scroll to it, or remove the mark."""
        self.marked = minutes
        if self.chromatogram is not None:
            self._draw_all()
            if minutes is not None:
                self.bring_into_sight(minutes)

    def _draw_all(self, text: str = "") -> None:
        figure = None if self.chromatogram is None else chromatogram_figure(self.chromatogram, self.marked)
        self.show_figure(figure, text, retains_range=self.figure is not None)

    def _choose_place(self, position: int) -> None:
        assert self.chromatogram is not None
        self.mark_time(float(self.chromatogram.minutes[position]))
        spectrum = int(self.chromatogram.spectrum[position])
        if spectrum >= 0:
            self.spectrumChosen.emit(spectrum)
