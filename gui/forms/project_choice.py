"""Field for the project folder of the results. The user enters it; a folder next to the first file, or the open project, is suggested."""

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from proteoscope.engine.project import is_project
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import described, tip_text
from proteoscope.gui.layouts import in_column, in_row


class ProjectChoice(QWidget):
    """Line edit for the project folder, with a button that opens a dialog and a button that selects the open project.

    Parameters
    ----------
    start_folder : callable
        Function that returns the start folder of the dialog if no folder is entered.

    Signals
    -------
    changed
        The folder has changed.
    """

    changed = Signal()

    def __init__(self, start_folder: Callable[[], str]) -> None:
        super().__init__()
        self.line = described(QLineEdit(placeholderText="A new or empty folder, or a project to add to"), "Project folder")
        self.line.setAcceptDrops(False)
        self.frame = Outlined(self.line)
        self.message = self.frame.message
        self.open_button = QPushButton()
        """Button that chooses the open project."""
        self.open_button.hide()
        set_icon(self.open_button, "open")
        self._start_folder = start_folder
        self._open_project: Path | None = None
        self._was_suggested = False
        self._was_typed = False
        in_column(
            (self.open_button, 0, Qt.AlignmentFlag.AlignLeft),
            in_row((self.frame, 1), tool_button("folder", "Choose a folder", self.prompt)),
            self.message,
            on=self,
            spacing=2,
        )
        self.line.textChanged.connect(lambda: self.changed.emit())
        self.line.textEdited.connect(self._mark_as_typed)
        self.open_button.clicked.connect(self._take_open)
        self.setFocusProxy(self.line)

    @property
    def is_empty(self) -> bool:
        """True if no folder is entered."""
        return not self.line.text().strip()

    def folder(self) -> Path:
        """Return the entered folder."""
        typed = Path(self.line.text().strip())
        try:
            return typed.expanduser().absolute()
        except RuntimeError:
            # The user named after ~ does not exist.
            return typed.absolute()

    def set_folder(self, folder: Path) -> None:
        """Set the folder as if the user had entered it, so that later suggestions have no effect."""
        self._mark_as_typed()
        self.line.setText(str(folder))

    @property
    def chosen(self) -> Path | None:
        """Folder that the user entered, or None."""
        return self.folder() if self._was_typed and not self.is_empty else None

    def reset(self) -> None:
        """Clear the entered folder, and select the open project if there is one."""
        self._was_typed = self._was_suggested = False
        self.line.setText("" if self._open_project is None else str(self._open_project))
        self.show_state()

    def offer(self, folder: Path, is_begun: bool) -> None:
        """Set the open project, and select it if the user has entered no folder.

        Parameters
        ----------
        folder : Path
            Folder of the open project.
        is_begun : bool
            True if the user has started to fill in the form, which then retains the project shown in it.
        """
        self._open_project = folder
        if not (self._was_typed or self._was_suggested or (is_begun and self.line.text())):
            self.line.setText(str(folder))
        self.show_state()

    def suggest(self, folder: str) -> None:
        """Set a suggested folder unless the user has entered another."""
        if self._was_suggested or not (self._was_typed or self.line.text()):
            if self.line.text() != folder:
                self.line.setText(folder)
            self._was_suggested = True

    def problem(self) -> str:
        """Return the reason why results cannot be stored in the folder, or ''."""
        if self.is_empty:
            return ""
        folder = self.folder()
        try:
            if folder.is_file():
                return "This is a file; choose a folder"
            if is_project(folder):
                return ""
            if folder.is_dir():
                others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and entry.name != "project.lock"]
                if others:
                    return f"This folder contains other files ({others[0]}); choose a new or empty folder, or a project"
            parent = next((candidate for candidate in (folder, *folder.parents) if candidate.exists()), folder)
        except OSError as error:
            return f"This folder cannot be used: {error.strerror}"
        return "" if os.access(parent, os.W_OK) else f"No permission to write in {parent}"

    def show_state(self) -> None:
        """Show the error of the folder, and whether the open project is selected."""
        self.frame.show_problem(self.problem())
        folder = self._open_project
        self.open_button.setVisible(folder is not None)
        if folder is not None:
            is_taken = not self.is_empty and self.folder() == folder
            self.open_button.setText(f"Project: {folder.name} (open)".replace("&", "&&"))
            self.open_button.setEnabled(not is_taken)
            tip = "Results are saved in the open project" if is_taken else "Save the results in the open project"
            self.open_button.setToolTip(tip_text(f"{tip}: {folder}"))

    def prompt(self) -> None:
        """Open a dialog for the folder."""
        prompt_for_path(self, "Project folder", self.set_folder, "folder", folder=self.line.text() or self._start_folder())

    def _take_open(self) -> None:
        if self._open_project is not None:
            self.set_folder(self._open_project)

    def _mark_as_typed(self) -> None:
        """Record that the user has edited the folder."""
        self._was_suggested, self._was_typed = False, True
