"""Small dialogs of the window: unexpected errors, confirmation before closing, missing projects, and About."""

import platform
from collections.abc import Sequence
from pathlib import Path

import PySide6
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QMessageBox, QPlainTextEdit, QPushButton, QWidget

from proteoscope.engine.version import VERSION
from proteoscope.gui.icons import pixmap, set_icon, without_icons
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.theme import colours


def report_text(error_report: str, log: str) -> str:
    """Return the text of a bug report: versions and traceback from `error_report`, and the last lines of the log."""
    versions = f"Proteoscope {VERSION}, Python {platform.python_version()}, Qt for Python {PySide6.__version__}, {platform.platform()}"
    return f"{versions}\n\n{error_report.strip()}\n\nLog:\n" + "\n".join(log.splitlines()[-60:])


class CrashDialog(QDialog):
    """Dialog that shows an unexpected error of the program, with a bug report to copy; the window remains usable."""

    def __init__(self, summary: str, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.summary = summary
        self.setWindowTitle("Proteoscope: unexpected error")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(720, 460)
        sign = QLabel(pixmap=pixmap("warning", 36, QColor(colours().wrong), self.devicePixelRatioF()))
        words = QLabel(
            f"{summary}\n\nThis is a bug in the program. Finished results are not affected, and you can continue. "
            "Please send the report below to the developers.",
            wordWrap=True,
            textFormat=Qt.TextFormat.PlainText,
        )
        self.report = QPlainTextEdit(report, readOnly=True)
        self.report.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.report.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        without_icons(buttons.buttons())
        self.copy_button = buttons.addButton("Copy report", QDialogButtonBox.ButtonRole.ActionRole)
        set_icon(self.copy_button, "copy")
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.report.toPlainText()))
        buttons.rejected.connect(self.reject)
        in_column(in_row((sign, 0, Qt.AlignmentFlag.AlignTop), (words, 1), spacing=14), (self.report, 1), buttons, on=self, margins=None)


_MAXIMUM_PATH = 300  # characters; longer paths are shortened


class _Question(QMessageBox):
    """Message box with a warning sign, to which derived classes add buttons."""

    def __init__(self, parent: QWidget, title: str, text: str, details: str) -> None:
        super().__init__(parent, textFormat=Qt.TextFormat.PlainText, text=text, informativeText=details)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIconPixmap(pixmap("warning", 36, QColor(colours().attention), self.devicePixelRatioF()))

    def _choose(self, default: QPushButton, escape: QPushButton) -> None:
        """Set which buttons the keys Enter and Escape press; to be called after all buttons are added."""
        without_icons(self.buttons())
        self.setDefaultButton(default)
        self.setEscapeButton(escape)


class CloseDialog(_Question):
    """Dialog that requests confirmation before the window closes while jobs run."""

    def __init__(self, n_jobs: int, parent: QWidget) -> None:
        text = "A run is not finished." if n_jobs == 1 else f"{n_jobs} runs are not finished."
        details = "Closing cancels running and queued jobs. Finished results remain in the project."
        super().__init__(parent, "Close Proteoscope?", text, details)
        self.close_button = self.addButton(
            "Cancel run and close" if n_jobs == 1 else "Cancel runs and close", QMessageBox.ButtonRole.DestructiveRole
        )
        self.continue_button = self.addButton("Continue running", QMessageBox.ButtonRole.RejectRole)
        self._choose(self.continue_button, self.continue_button)


class LostProjectDialog(_Question):
    """Dialog that requests the new location of a missing project in which a queued search is to run."""

    def __init__(self, folder: Path, parent: QWidget) -> None:
        details = (
            f"{folder}\n\nIts folder was deleted or moved, or its disk is not connected. The search has not started. "
            "Where should the results be saved?"
        )
        super().__init__(parent, "Project not found", f"The project “{folder.name}” was not found.", details)
        self.locate_button = self.addButton("Locate it…", QMessageBox.ButtonRole.AcceptRole)
        self.make_button = self.addButton("Create a new project there", QMessageBox.ButtonRole.DestructiveRole)
        self.cancel_button = self.addButton(QMessageBox.StandardButton.Cancel)
        self._choose(self.locate_button, self.cancel_button)


class StructuresDialog(_Question):
    """Dialog that requests permission for an export to read structure files outside the project.

    The user permits the folders that the project names, or chooses another folder.
    """

    _SHOWN = 3

    def __init__(self, folders: Sequence[str], parent: QWidget) -> None:
        more = (
            f"\n… and {len(folders) - self._SHOWN} more folder{'s' if len(folders) > self._SHOWN + 1 else ''}"
            if len(folders) > self._SHOWN
            else ""
        )
        details = (
            "The project names these folders:\n\n"
            + "\n".join(folder[:_MAXIMUM_PATH] for folder in folders[: self._SHOWN])
            + more
            + "\n\nRead them only if you trust them, or choose another folder with files of the same names."
        )
        title = "Read structures outside the project?"
        super().__init__(parent, title, "The export copies atoms from structure files outside the project.", details)
        self.read_button = self.addButton("Read these folders", QMessageBox.ButtonRole.AcceptRole)
        self.choose_button = self.addButton("Choose a folder…", QMessageBox.ButtonRole.ActionRole)
        self.cancel_button = self.addButton(QMessageBox.StandardButton.Cancel)
        self._choose(self.cancel_button, self.cancel_button)


def about(parent: QWidget) -> QMessageBox:
    """Open a dialog with the versions, the licence and the sources of the data delivered with the program."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIconPixmap(pixmap("proteoscope", 56, QColor(colours().accent), box.devicePixelRatioF()))
    box.setWindowTitle("About Proteoscope")
    box.setText(f"<h3>Proteoscope {VERSION}</h3><p>A desktop program for protein evidence.</p>")
    box.setInformativeText(
        f"<p>Licensed under the Apache License 2.0.</p><p>Modifications: Unimod, www.unimod.org.<br>"
        f"Interface: Qt for Python {PySide6.__version__} (LGPL 3).<br>Python {platform.python_version()}.</p>"
    )
    without_icons([box.addButton(QMessageBox.StandardButton.Close)])
    box.open()
    return box
