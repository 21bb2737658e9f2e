"""The peptide over its spectrum: residues, the bonds that ions prove, and modifications."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.gui.colours import PlotColours, plot_colours

__all__ = ["PeptideLadder", "ladder_height", "paint_ladder"]

_LETTER = 1.35
"""Size of a residue's letter, in heights of the font."""
_WIDEST = 2.1
"""Room for one residue, in heights of the font."""


def ladder_height(font: QFont) -> float:
    """Height that the drawing needs: two lines of modifications, residues, marks and the fragments' numbers."""
    return QFontMetricsF(font).height() * 6.0


def paint_ladder(painter: QPainter, area: QRectF, spectrum: AnnotatedSpectrum, colours: PlotColours, font: QFont) -> None:
    """Draw the peptide in the middle of `area`, made smaller where it is long.

    A mark from a bond to the left and downwards stands for an ion of its N-terminal part (a, b, c), one to the right and upwards for one of
    its C-terminal part (x, y, z); numbers are those of the fragments.
    """
    sequence = spectrum.peptidoform.sequence
    length = len(sequence)
    height = QFontMetricsF(font).height()
    step = min(height * _WIDEST, (area.width() - height) / max(length, 1))
    letter_font, small_font = QFont(font), QFont(font)
    letter_font.setPixelSize(max(5, round(min(height * _LETTER * 0.82, step * 0.95))))
    letter_font.setBold(True)
    small_font.setPixelSize(max(5, round(height * 0.62)))
    start = area.center().x() - step * length / 2
    middle = area.top() + height * 3.35
    half = letter_font.pixelSize() * 0.62

    changed = {position for position, _, _ in spectrum.peptidoform.modifications}
    painter.setFont(letter_font)
    for i, residue in enumerate(sequence, start=1):
        is_changed = i in changed or (i == 1 and 0 in changed) or (i == length and length + 1 in changed)
        painter.setPen(colours.mark if is_changed else colours.text)
        box = QRectF(start + step * (i - 1) - height, middle - height, step + 2 * height, 2 * height)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, residue)
    _paint_modifications(painter, spectrum, colours, small_font, start, step, middle - half - height * 0.98, area)

    # Numbers of fragments are left out where they would run into each other.
    metrics = QFontMetricsF(small_font)
    every = 1 if step > metrics.horizontalAdvance("00") * 1.1 else 5
    for letters, side in (("acb", 1), ("xzy", -1)):
        # Of several series at one bond the commonest, named last, gives the colour.
        proven = {bond: letter for letter in letters for bond in spectrum.bonds(letter).tolist()}
        for bond, series in proven.items():
            x = start + step * bond
            foot = side * (half + height * 0.18)
            painter.setPen(QPen(colours.ions[series], max(1.2, height * 0.1)))
            painter.drawLine(QLineF(x, middle, x, middle + foot))
            painter.drawLine(QLineF(x, middle + foot, x - side * step * 0.42, middle + foot))
            number = bond if side == 1 else length - bond
            if number % every == 0:
                painter.setFont(small_font)
                at_x = x - side * step * 0.24
                at_y = middle + foot + (metrics.height() * 0.06 if side == 1 else -metrics.height() * 0.98)
                box = QRectF(at_x - 40, at_y, 80, metrics.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, str(number))


def _paint_modifications(
    painter: QPainter,
    spectrum: AnnotatedSpectrum,
    colours: PlotColours,
    font: QFont,
    start: float,
    step: float,
    bottom: float,
    area: QRectF,
) -> None:
    """Names over their residues, on two lines; one that finds no room gives its mass, and failing that only its residue's colour."""
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    painter.setPen(colours.mark)
    length = len(spectrum.peptidoform.sequence)
    ends = [area.left(), area.left()]
    for position, name, mass in spectrum.peptidoform.modifications:
        x = start + step * (min(max(position, 1), length) - 0.5)
        for text in (name, f"{mass:+.0f}"):
            width = metrics.horizontalAdvance(text)
            left = min(max(x - width / 2, area.left()), area.right() - width)
            level = next((line for line in (0, 1) if left >= ends[line] + 3), None)
            if level is not None:
                box = QRectF(left - 1, bottom - metrics.height() * (level + 1), width + 2, metrics.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
                if level:
                    painter.drawLine(QPointF(x, box.bottom()), QPointF(x, bottom))
                ends[level] = left + width
                break


class PeptideLadder(QWidget):
    """The peptide of the spectrum that is shown."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spectrum: AnnotatedSpectrum | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None) -> None:
        """Draw the peptide of a spectrum, or nothing."""
        self._spectrum = spectrum
        self.setAccessibleName("" if spectrum is None else f"Peptide {spectrum.peptidoform}")
        self.update()

    def sizeHint(self) -> QSize:
        """As high as the drawing."""
        return QSize(200, round(ladder_height(self.font())))

    def minimumSizeHint(self) -> QSize:
        """As high as the drawing."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.background)
        if self._spectrum is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint_ladder(painter, QRectF(self.rect()).adjusted(8, 0, -8, 0), self._spectrum, colours, self.font())
        painter.end()
