"""The few things that the window says in a dialog: a fault of the program, the question before closing, and what it is."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import PySide6
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QMessageBox, QPlainTextEdit, QVBoxLayout, QWidget

from proteoscope.engine.version import VERSION
from proteoscope.gui.icons import pixmap, set_icon, without_icons
from proteoscope.gui.theme import colours

__all__ = ["CloseQuestion", "CrashDialog", "LostProjectQuestion", "StructuresQuestion", "about", "report_text"]


def report_text(error_report: str, log: str) -> str:
    """All that a report of a fault needs: versions, the traceback, the last lines of the log."""
    versions = f"Proteoscope {VERSION}, Python {platform.python_version()}, Qt for Python {PySide6.__version__}, {platform.platform()}"
    return f"{versions}\n\n{error_report.strip()}\n\nLog:\n" + "\n".join(log.splitlines()[-60:])


class CrashDialog(QDialog):
    """Tells that the program was at fault, with a report to copy. The window stays usable."""

    def __init__(self, summary: str, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.summary = summary
        self.setWindowTitle("Proteoscope: unexpected error")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(720, 460)
        sign = QLabel()
        sign.setPixmap(pixmap("warning", 36, QColor(colours().wrong), self.devicePixelRatioF()))
        words = QLabel(
            f"{summary}\n\nThis is a fault of the program, not yours. Finished results are untouched, and you can go on. "
            "Please send the report below to the developers."
        )
        words.setWordWrap(True)
        words.setTextFormat(Qt.TextFormat.PlainText)
        self.report = QPlainTextEdit(report)
        self.report.setReadOnly(True)
        self.report.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.report.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        without_icons(buttons.buttons())
        self.copy_button = buttons.addButton("Copy report", QDialogButtonBox.ButtonRole.ActionRole)
        set_icon(self.copy_button, "copy")
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.report.toPlainText()))
        buttons.rejected.connect(self.reject)
        top = QHBoxLayout()
        top.setSpacing(14)
        top.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        top.addWidget(words, 1)
        page = QVBoxLayout(self)
        page.addLayout(top)
        page.addWidget(self.report, 1)
        page.addWidget(buttons)


_MAXIMUM_PATH = 300  # characters of a path that are shown


class CloseQuestion(QMessageBox):
    """Asks once, when the window is closed while something runs."""

    def __init__(self, n_jobs: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIconPixmap(pixmap("warning", 36, QColor(colours().attention), self.devicePixelRatioF()))
        self.setWindowTitle("Close Proteoscope?")
        self.setText("A run is not finished." if n_jobs == 1 else f"{n_jobs} runs are not finished.")
        self.setInformativeText("Closing cancels what runs and what waits. Finished results are kept.")
        self.close_button = self.addButton("Cancel run and close", QMessageBox.ButtonRole.DestructiveRole)
        self.keep_button = self.addButton("Keep running", QMessageBox.ButtonRole.RejectRole)
        self.setDefaultButton(self.keep_button)
        self.setEscapeButton(self.keep_button)


class LostProjectQuestion(QMessageBox):
    """Asks where a project is that a search is to be run in, when it is not where it was."""

    def __init__(self, folder: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setIconPixmap(pixmap("warning", 36, QColor(colours().attention), self.devicePixelRatioF()))
        self.setWindowTitle("Where is the project?")
        self.setText(f"The project “{folder.name}” is no longer where it was.")
        self.setInformativeText(
            f"{folder}\n\nIts folder was deleted or moved, or its disk is not connected. Nothing has been run. Where shall the results go?"
        )
        self.locate_button = self.addButton("Locate it…", QMessageBox.ButtonRole.AcceptRole)
        self.make_button = self.addButton("Make a new project there", QMessageBox.ButtonRole.DestructiveRole)
        self.cancel_button = self.addButton(QMessageBox.StandardButton.Cancel)
        without_icons(self.buttons())
        self.setDefaultButton(self.locate_button)
        self.setEscapeButton(self.cancel_button)


class StructuresQuestion(QMessageBox):
    """Asks whether an export may read structures outside the project, in folders that the project names, or in another."""

    _SHOWN = 3

    def __init__(self, folders: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setIconPixmap(pixmap("warning", 36, QColor(colours().attention), self.devicePixelRatioF()))
        self.setWindowTitle("Read structures outside the project?")
        self.setText("The export copies atoms from structure files outside the project.")
        more = f"\n… and {len(folders) - self._SHOWN} more folders" if len(folders) > self._SHOWN else ""
        self.setInformativeText(
            "The project names these folders:\n\n"
            + "\n".join(folder[:_MAXIMUM_PATH] for folder in folders[: self._SHOWN])
            + more
            + "\n\nRead them only if you know them. Files of the same names in another folder will do."
        )
        self.read_button = self.addButton("Read these folders", QMessageBox.ButtonRole.AcceptRole)
        self.choose_button = self.addButton("Choose a folder…", QMessageBox.ButtonRole.ActionRole)
        self.cancel_button = self.addButton(QMessageBox.StandardButton.Cancel)
        without_icons(self.buttons())
        self.setDefaultButton(self.cancel_button)
        self.setEscapeButton(self.cancel_button)


def about(parent: QWidget) -> QMessageBox:
    """What the program is, its versions, and whose data ships with it; opened."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIconPixmap(pixmap("proteoscope", 56, QColor(colours().accent), box.devicePixelRatioF()))
    box.setWindowTitle("About Proteoscope")
    box.setText(f"<h3>Proteoscope {VERSION}</h3><p>A desktop bench for protein evidence.</p>")
    box.setInformativeText(
        f"<p>Licensed under the Apache License 2.0.</p><p>Modifications: Unimod, www.unimod.org.<br>"
        f"Interface: Qt for Python {PySide6.__version__} (LGPL 3).<br>Python {platform.python_version()}.</p>"
    )
    without_icons([box.addButton(QMessageBox.StandardButton.Close)])
    box.open()
    return box
