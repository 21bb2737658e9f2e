"""Sequence of a peptide above its spectrum, with its modifications and the bonds that matched ions confirm."""
# ruff: noqa: N802 - Qt gives these names

from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.engine.views.drawings import Drawing
from proteoscope.engine.views.spectrum_figures import LADDER_LINES, draw_ladder
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.plots.drawing_view import paint_drawing

_MARGIN = 8.0


class PeptideLadder(QWidget):
    """Widget that shows the peptide of an annotated spectrum."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spectrum: AnnotatedSpectrum | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None) -> None:
        """Draw the peptide of a spectrum; None draws no peptide."""
        self._spectrum = spectrum
        self.setAccessibleName("" if spectrum is None else f"Peptide {spectrum.peptidoform}")
        self.update()

    @property
    def _font_size(self) -> float:
        """Font size in pixels, as figures define it: 0.8 of the line height."""
        return QFontMetricsF(self.font()).height() * 0.8

    def sizeHint(self) -> QSize:
        """Return the size of the drawing."""
        return QSize(200, round(LADDER_LINES * self._font_size))

    def minimumSizeHint(self) -> QSize:
        """Return the size of the drawing."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the peptide."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), plot_colours(self.palette()).background)
            if self._spectrum is not None:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                shapes = draw_ladder(self._spectrum, _MARGIN, 0.0, self.width() - 2 * _MARGIN, self._font_size)
                drawing = Drawing(self.width(), self.height(), "", tuple(shapes), self._font_size)
                paint_drawing(painter, drawing, palette_of(self.palette()), self.font())
