"""The choice of the project that results go into: typed, chosen, suggested beside the first file, or the one that is open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from proteoscope.engine.project import is_project
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import tip_text, toned_label

__all__ = ["ProjectChoice"]


class ProjectChoice(QWidget):
    """A line for the project's folder, a button that opens a dialog for it, and one that takes the project that is open.

    Parameters
    ----------
    start_folder : where the dialog opens while no folder stands there.

    Signals
    -------
    changed : another folder stands there.
    """

    changed = Signal()

    def __init__(self, start_folder: Callable[[], str]) -> None:
        super().__init__()
        self.line = QLineEdit()
        self.line.setPlaceholderText("A new or empty folder, or a project to add to")
        self.line.setAcceptDrops(False)
        self.line.setAccessibleName("Project folder")
        self.frame = Outlined(self.line)
        self.message = toned_label(tone="wrong")
        self.message.hide()
        self.open_button = QPushButton()
        """Puts the results into the project that is open."""
        self.open_button.hide()
        set_icon(self.open_button, "open")
        self._start_folder = start_folder
        self._open_project: Path | None = None
        self._was_suggested = False
        self._was_typed = False
        row = QHBoxLayout()
        row.addWidget(self.frame, 1)
        row.addWidget(tool_button("folder", "Choose a folder", self.ask))
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(2)
        page.addWidget(self.open_button, 0, Qt.AlignmentFlag.AlignLeft)
        page.addLayout(row)
        page.addWidget(self.message)
        self.line.textChanged.connect(lambda: self.changed.emit())
        self.line.textEdited.connect(self._keep)
        self.open_button.clicked.connect(self._take_open)
        self.setFocusProxy(self.line)

    @property
    def is_empty(self) -> bool:
        """Whether no folder stands there."""
        return not self.line.text().strip()

    def folder(self) -> Path:
        """The folder as it stands there."""
        typed = Path(self.line.text().strip())
        try:
            return typed.expanduser().absolute()
        except RuntimeError:
            # A ~ with the name of nobody.
            return typed.absolute()

    def set_folder(self, folder: Path) -> None:
        """Have this folder, until the user says another."""
        self._keep()
        self.line.setText(str(folder))

    def offer(self, folder: Path, is_begun: bool) -> None:
        """Tell which project is open: it is taken where nothing is said yet, and offered elsewhere.

        Parameters
        ----------
        is_begun : whether the user has begun to fill the form, which then keeps the project that it has.
        """
        self._open_project = folder
        if not (self._was_typed or self._was_suggested or (is_begun and self.line.text())):
            self.line.setText(str(folder))
        self.show_state()

    def suggest(self, folder: str) -> None:
        """Have this folder where the user has not said anything else."""
        if self._was_suggested or not (self._was_typed or self.line.text()):
            if self.line.text() != folder:
                self.line.setText(folder)
            self._was_suggested = True

    def problem(self) -> str:
        """Why results cannot be put there; empty where they can, or where no folder stands there."""
        if self.is_empty:
            return ""
        folder = self.folder()
        try:
            if folder.is_file():
                return "This is a file; choose a folder"
            if is_project(folder):
                return ""
            if folder.is_dir():
                strangers = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and entry.name != "project.lock"]
                if strangers:
                    return f"There are other things in this folder ({strangers[0]}); choose a new or empty one, or a project"
            parent = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        except OSError as error:
            return f"This folder cannot be used: {error.strerror}"
        return "" if os.access(parent, os.W_OK) else f"You may not write in {parent}"

    def show_state(self) -> None:
        """Mark what is wrong, and whether the open project is the one that stands there."""
        problem = self.problem()
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))
        folder = self._open_project
        self.open_button.setVisible(folder is not None)
        if folder is not None:
            is_taken = not self.is_empty and self.folder() == folder
            self.open_button.setText(f"Project: {folder.name} (open)".replace("&", "&&"))
            self.open_button.setEnabled(not is_taken)
            tip = "The results go into the project that is open" if is_taken else "Put the results into the project that is open"
            self.open_button.setToolTip(tip_text(f"{tip}: {folder}"))

    def ask(self) -> None:
        """Open a dialog for the folder."""
        dialog = QFileDialog(self, "Project folder", self.line.text() or self._start_folder())
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.set_folder(Path(name)))
        dialog.open()

    def _take_open(self) -> None:
        if self._open_project is not None:
            self.set_folder(self._open_project)

    def _keep(self) -> None:
        """What the user says of the project stays, also that there is none."""
        self._was_suggested, self._was_typed = False, True
