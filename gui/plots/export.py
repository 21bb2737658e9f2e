"""Action that exports a figure in the width of a journal column: SVG and PDF with editable text, PNG at print resolution."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from proteoscope.engine.errors import StorageError
from proteoscope.engine.page_sizes import DPI, OWN_WIDTH, PageSize
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.figure_files import save_figure
from proteoscope.gui.plots.page_choice import FigureDialog

FIGURE_FILTER = "Scalable Vector Graphics (*.svg);;Portable Document Format (*.pdf);;Portable Network Graphics (*.png)"
_MAXIMUM_NAME_CHARACTERS = 60


class ExportAction(QAction):
    """Action “Export figure…” in the context menu of a widget, with Ctrl+E while the widget has the focus.

    Parameters
    ----------
    owner : QWidget
        Widget that shows the figure.
    figure : callable
        Function that returns the current figure, or None.
    report : callable
        Function that shows a sentence about the outcome, such as in the status bar.
    """

    def __init__(self, owner: QWidget, figure: Callable[[], PaperFigure | None], report: Callable[[str], None]) -> None:
        super().__init__("&Export figure…", owner)
        self._owner, self._figure, self._report = owner, figure, report
        self.setShortcut(QKeySequence("Ctrl+E"))
        self.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self.triggered.connect(lambda: self.prompt())
        owner.addAction(self)
        owner.installEventFilter(self)
        owner.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Export the focused figure on Ctrl+E; Qt would do nothing if another figure has the same shortcut for the whole window."""
        is_key = event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if not is_key or not isinstance(event, QKeyEvent) or self.shortcutContext() == Qt.ShortcutContext.WindowShortcut:
            return False
        if not self.isEnabled() or QKeySequence(event.keyCombination()) not in self.shortcuts():
            return False
        event.accept()
        if event.type() == QEvent.Type.KeyPress:
            self.trigger()
        return True

    def prompt(self) -> None:
        """Prompt for width and resolution, then for a file; write the figure and report the outcome."""
        figure = self._figure()
        if figure is None:
            self._report("There is no figure to export.")
            return
        dialog = FigureDialog(self._owner)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.accepted.connect(lambda: self._save(figure, dialog.size_box.currentData(), dialog.dpi_box.value()))
        dialog.open()

    def _save(self, figure: PaperFigure, size: PageSize, dpi: int) -> None:
        """Prompt for a file, write the figure, and report the outcome."""
        path, chosen = QFileDialog.getSaveFileName(self._owner, "Export figure", f"{_file_name(figure.name)}.svg", FIGURE_FILTER)
        if not path:
            return
        if not Path(path).suffix:
            path += chosen[chosen.index("*") + 1 : chosen.index(")")]
        try:
            _write(Path(path), figure, size, dpi)
        except StorageError as error:
            self._report(str(error))
            # A message box, since an error in the status bar is easily overlooked.
            box = QMessageBox(QMessageBox.Icon.Warning, "Export figure", f"The figure was not written. {error}", parent=self._owner)
            box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            box.setTextFormat(Qt.TextFormat.PlainText)
            box.open()
        else:
            self._report(f"Saved {Path(path).name}.")

    def write(self, path: Path, size: PageSize = OWN_WIDTH, dpi: int = DPI) -> None:
        """Write the current figure, if any, to a file whose extension selects the format.

        Raises
        ------
        StorageError
            If the file cannot be written (see `proteoscope.engine.views.figure_files.write_figure`).
        """
        figure = self._figure()
        if figure is not None:
            _write(path, figure, size, dpi)


def _write(path: Path, figure: PaperFigure, size: PageSize, dpi: int) -> None:
    save_figure(path, figure, size, dpi)


def _file_name(name: str) -> str:
    # File names are limited to 255 bytes, but protein names may be longer.
    cleaned = "".join(character if character.isalnum() or character in "+-." else " " for character in name[:_MAXIMUM_NAME_CHARACTERS])
    return "_".join(cleaned.split()) or "figure"
