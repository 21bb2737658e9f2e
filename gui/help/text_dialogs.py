"""Dialogs with a text that can be copied or saved: citations and bug reports."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QPlainTextEdit, QPushButton, QWidget

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.views.bug_report import bug_report
from proteoscope.engine.views.citations import bibtex, citation_text
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.icons import set_icon, without_icons
from proteoscope.gui.labels import described, toned_label
from proteoscope.gui.layouts import in_column


class _TextDialog(QDialog):
    """Base class of dialogs with a text, buttons for it, and a status line."""

    def __init__(self, title: str, explanation: str, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(760, 520)
        self.text = described(QPlainTextEdit(readOnly=True), name)
        self.state = toned_label()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        without_icons(self.buttons.buttons())
        self.buttons.rejected.connect(self.reject)
        self.column = in_column(toned_label(explanation), (self.text, 1), self.state, self.buttons, on=self, margins=None)

    def button(self, text: str, icon: str, clicked: Callable[[], object]) -> QPushButton:
        """Add a button next to the Close button, and return it."""
        made = self.buttons.addButton(text, QDialogButtonBox.ButtonRole.ActionRole)
        made.setAutoDefault(False)
        set_icon(made, icon)
        made.clicked.connect(clicked)
        return made

    def copy(self, text: str, what: str) -> None:
        """Copy a text to the clipboard, and show in the status line that it was copied; `what` is a noun for the text."""
        QGuiApplication.clipboard().setText(text)
        self.state.setText(f"{what} copied")

    def prompt_for_path(self, name: str, kinds: str, text: Callable[[], str]) -> None:
        """Open a dialog for a file and write a text to it.

        `name` is the suggested file name, `kinds` is the filter of the dialog, and `text` is a function that returns the text.
        """
        prompt_for_path(self, "Save", lambda path: self.save(path, text()), "save", filters=[kinds], name=name)

    def save(self, path: Path, text: str) -> None:
        """Write a text to a file, and show the path or the error in the status line."""
        try:
            with atomic_file(path) as file:
                file.write(text.encode())
        except StorageError as error:
            self.state.setText(str(error))
            return
        self.state.setText(f"Saved as {path}")


class CitingDialog(_TextDialog):
    """Dialog with citations of the program and of the methods that its searches use."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("How to cite", "Please cite the program and the methods of the search you used.", "How to cite", parent)
        self.text.setPlainText(citation_text())
        self.copy_button = self.button("Copy as &text", "copy", lambda: self.copy(citation_text(), "Text"))
        self.bibtex_button = self.button("Copy as &BibTeX", "copy", lambda: self.copy(bibtex(), "BibTeX"))
        self.save_button = self.button("&Save BibTeX…", "save", lambda: self.prompt_for_path("proteoscope.bib", "BibTeX (*.bib)", bibtex))


class BugReportDialog(_TextDialog):
    """Dialog for a bug report with the user's description, versions, devices and log. The program does not send it.

    Parameters
    ----------
    devices : list of str
        Descriptions of the devices, one line each.
    log : str
        The log as plain text.
    parent : QWidget
        Owner of the dialog.
    """

    def __init__(self, devices: list[str], log: str, parent: QWidget) -> None:
        explanation = (
            "Describe what you did and what happened, then copy or save the report and send it to the developers. The program sends "
            "nothing. Names of folders, users and this machine are removed unless you tick the box; file names are included."
        )
        super().__init__("Report a bug", explanation, "Report", parent)
        self._devices, self._log = devices, log
        self.what = described(
            QPlainTextEdit(placeholderText="What did you do, what did you expect, and what happened?", tabChangesFocus=True),
            "What happened",
        )
        self.what.setFixedHeight(90)
        self.with_paths = QCheckBox("&Include names of folders, of the user and of the machine")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.column.insertWidget(1, self.what)
        self.column.insertWidget(2, self.with_paths)
        self.copy_button = self.button("&Copy report", "copy", lambda: self.copy(self.text.toPlainText(), "Report"))
        self.save_button = self.button("&Save report…", "save", self._prompt_for_path)
        self.what.textChanged.connect(self._write)
        self.with_paths.toggled.connect(self._write)
        self.what.setFocus()
        self._write()

    def _prompt_for_path(self) -> None:
        self.prompt_for_path("proteoscope-bug.txt", "Text (*.txt)", self.text.toPlainText)

    def _write(self) -> None:
        self.text.setPlainText(bug_report(self.what.toPlainText(), self._devices, self._log, with_paths=self.with_paths.isChecked()))
