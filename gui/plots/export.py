"""Figures as files: SVG and PDF with real text, PNG at print resolution. Each is painted by the same code as the screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QMarginsF, QRectF, QSaveFile, QSize, QSizeF, Qt
from PySide6.QtGui import QAction, QFont, QFontInfo, QGuiApplication, QImage, QKeySequence, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from proteoscope.engine.errors import StorageError
from proteoscope.engine.views.drawings import PaperFigure

__all__ = ["FIGURE_FILTER", "ExportAction", "ExportFigure", "Paint", "export_figure", "figure_font"]

Paint = Callable[[QPainter, QRectF], None]
"""Paints a figure into a rectangle measured in points, 1/72 inch."""


class ExportFigure(NamedTuple):
    """What can be exported: a name for the file and its title, the size in points, and who paints it."""

    name: str
    size: QSizeF
    paint: Paint


FIGURE_FILTER = "Scalable Vector Graphics (*.svg);;Portable Document Format (*.pdf);;Portable Network Graphics, 300 dpi (*.png)"
_PNG_DPI = 300
_PDF_DPI = 1200
_POINTS = 72
_MAXIMUM_NAME_LETTERS = 60


def figure_font(points: float = 8.0, *, is_bold: bool = False) -> QFont:
    """The font of figures, `points` of the page high whatever the device."""
    # The family that is really there, since a file may not name a font that only this machine understands.
    font = QFont(QFontInfo(QGuiApplication.font()).family())
    font.setPixelSize(max(1, round(points)))
    font.setBold(is_bold)
    # Hinting fits letters to the screen's pixels, which a page has not.
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


def export_figure(path: str | Path, size: QSizeF, paint: Paint, *, title: str = "") -> None:
    """Write a figure of `size` (points) as the file's ending says: ``.svg``, ``.pdf`` or ``.png``. The background is white.

    The file appears whole or not at all.

    Raises
    ------
    StorageError : the ending is none of these, or the disk refused.
    """
    target = Path(path)
    ending = target.suffix.lower()
    writers = {".svg": _write_svg, ".pdf": _write_pdf, ".png": _write_png}
    if ending not in writers:
        raise StorageError(f"{target}: a figure cannot be written as '{ending}'. Choose a name that ends in .svg, .pdf or .png.")
    file = QSaveFile(os.fspath(target))
    if not file.open(QSaveFile.OpenModeFlag.WriteOnly):
        raise StorageError(f"{target}: the figure cannot be written ({file.errorString()}). Choose a folder that you may write to.")
    is_written = writers[ending](file, size, paint, title)
    if not is_written or not file.commit():
        file.cancelWriting()
        raise StorageError(f"{target}: the figure cannot be written ({file.errorString()}). Free some space and try again.")


class ExportAction(QAction):
    """“Export figure…”: in the context menu of a widget, which shows all its actions, and by Ctrl+E where the keyboard is in it.

    Parameters
    ----------
    figure : what there is to export now, or None.
    tell : takes a sentence on how that went.
    """

    def __init__(self, owner: QWidget, figure: Callable[[], PaperFigure | ExportFigure | None], tell: Callable[[str], None]) -> None:
        super().__init__("&Export figure…", owner)
        self._owner, self._figure, self._tell = owner, figure, tell
        self.setShortcut(QKeySequence("Ctrl+E"))
        self.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.triggered.connect(lambda: self.ask())
        owner.addAction(self)
        owner.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def ask(self) -> None:
        """Ask for a file, write the figure to it and tell how that went."""
        figure = self._figure()
        if figure is None:
            self._tell("There is no figure to export now.")
            return
        path, chosen = QFileDialog.getSaveFileName(self._owner, "Export figure", f"{_file_name(figure.name)}.svg", FIGURE_FILTER)
        if not path:
            return
        if not Path(path).suffix:
            path += chosen[chosen.index("*") + 1 : chosen.index(")")]
        try:
            _write(Path(path), figure)
        except StorageError as error:
            self._tell(str(error))
            # What was asked for and is not there must not pass in the status bar.
            box = QMessageBox(QMessageBox.Icon.Warning, "Export figure", f"The figure was not written. {error}", parent=self._owner)
            box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            box.setTextFormat(Qt.TextFormat.PlainText)
            box.open()
        else:
            self._tell(f"Saved {Path(path).name}.")

    def write(self, path: Path) -> None:
        """Write the figure to a file.

        Raises
        ------
        StorageError : see `export_figure`.
        """
        figure = self._figure()
        if figure is not None:
            _write(path, figure)


def _write(path: Path, figure: PaperFigure | ExportFigure) -> None:
    if isinstance(figure, PaperFigure):
        from proteoscope.engine.views.paper import write_figure  # loads ReportLab, which the window starts without

        write_figure(path, figure.drawing)
    else:
        export_figure(path, figure.size, figure.paint, title=figure.name)


def _file_name(name: str) -> str:
    # Disks take names of 255 bytes, and a database may call a protein by more.
    kept = "".join(letter if letter.isalnum() or letter in "+-." else " " for letter in name[:_MAXIMUM_NAME_LETTERS])
    return "_".join(kept.split()) or "figure"


def _write_svg(file: QSaveFile, size: QSizeF, paint: Paint, title: str) -> bool:
    generator = QSvgGenerator()
    generator.setOutputDevice(file)
    generator.setResolution(_POINTS)
    generator.setSize(QSize(round(size.width()), round(size.height())))
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    return _painted(generator, size, paint)


def _write_pdf(file: QSaveFile, size: QSizeF, paint: Paint, title: str) -> bool:
    writer = QPdfWriter(file)
    writer.setResolution(_PDF_DPI)
    writer.setTitle(title)
    writer.setCreator("Proteoscope")
    page = QPageSize(size, QPageSize.Unit.Point, title, QPageSize.SizeMatchPolicy.ExactMatch)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    return _painted(writer, size, paint, _PDF_DPI / _POINTS)


def _write_png(file: QSaveFile, size: QSizeF, paint: Paint, title: str) -> bool:
    scale = _PNG_DPI / _POINTS
    image = QImage(round(size.width() * scale), round(size.height() * scale), QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    image.setDotsPerMeterX(round(_PNG_DPI / 0.0254))
    image.setDotsPerMeterY(round(_PNG_DPI / 0.0254))
    image.setText("Title", title)
    return _painted(image, size, paint, scale) and image.save(file, "PNG")  # type: ignore[call-overload]


def _painted(device: QSvgGenerator | QPdfWriter | QImage, size: QSizeF, paint: Paint, scale: float = 1.0) -> bool:
    painter = QPainter()
    if not painter.begin(device):
        return False
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    painter.scale(scale, scale)
    area = QRectF(0, 0, size.width(), size.height())
    painter.fillRect(area, Qt.GlobalColor.white)
    paint(painter, area)
    return painter.end()
