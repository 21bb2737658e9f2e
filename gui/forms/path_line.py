"""Line edits for optional folders and files, each with a button that opens a file dialog."""

import os
from pathlib import Path
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from proteoscope.engine.project import is_project
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.labels import described, field_label
from proteoscope.gui.layouts import in_column, in_row


class PathLine(QWidget):
    """Base class of line edits for a path. Derived classes define the validation and the file dialog.

    Parameters
    ----------
    title : str
        Title above the line.
    help : str
        Tooltip, written without initial capital and full stop.
    hint : str
        Placeholder text while the line is empty; '' for the default text.

    Signals
    -------
    changed
        The path has changed.
    """

    changed = Signal()

    icon, tip = "open", "Choose a file"
    mode: Literal["file", "folder", "save"] = "file"
    usual_hint = ""

    def __init__(self, title: str, help: str, hint: str = "") -> None:
        super().__init__()
        self._title = title
        line = QLineEdit(placeholderText=hint or self.usual_hint, clearButtonEnabled=True)
        self.line = described(line, title, f"{help[:1].upper()}{help[1:]}")
        self.line.setAcceptDrops(False)
        self.frame = Outlined(self.line)
        self.message = self.frame.message
        self.start_folder = ""
        """Start folder of the dialog."""
        in_column(
            described(field_label(title, self.line), tip=self.line.toolTip()),
            in_row((self.frame, 1), tool_button(self.icon, self.tip, self.prompt)),
            self.message,
            on=self,
            margins=(0, 6, 0, 0),
            spacing=2,
        )
        self.line.textChanged.connect(lambda: self.frame.show_problem(self.problem()))
        self.line.textChanged.connect(lambda: self.changed.emit())
        self.setFocusProxy(self.line)

    @property
    def path(self) -> Path | None:
        """The absolute path, or None if the line is empty."""
        text = self.line.text().strip()
        if not text:
            return None
        try:
            return Path(text).expanduser().absolute()
        except RuntimeError:
            # ~NAME cannot be expanded because there is no user NAME.
            return Path(text).absolute()

    def problem(self) -> str:
        """Return the reason why the path cannot be used, or ''."""
        path = self.path
        try:
            return "" if path is None else self._problem_of(path)
        except (OSError, ValueError) as error:
            noun = "folder" if self.mode == "folder" else "file"
            return f"This {noun} cannot be used: {getattr(error, 'strerror', None) or error}"

    def prompt(self) -> None:
        """Open a dialog for the path."""
        folder, title = self.line.text() or self.start_folder, self._title.replace("&", "")
        prompt_for_path(self, title, lambda path: self.line.setText(str(path)), self.mode, folder=folder, filters=self._filters())

    def _filters(self) -> list[str]:
        """Return the types of files that the dialog lists; empty for all."""
        return []

    def _problem_of(self, path: Path) -> str:
        raise NotImplementedError


class FolderLine(PathLine):
    """Line edit for an output folder. The program creates the folder if it is missing."""

    icon, tip = "folder", "Choose a folder"
    mode = "folder"
    usual_hint = "No folder: no files are written"

    def _problem_of(self, path: Path) -> str:
        if path.is_file():
            return f"{path.name} is a file; choose a folder"
        parent = next((candidate for candidate in (path, *path.parents) if candidate.exists()), path)
        return "" if os.access(parent, os.W_OK) else f"No permission to write in {parent}"


class FileLine(PathLine):
    """Line edit for an existing file."""

    usual_hint = "No file"

    def _problem_of(self, path: Path) -> str:
        if path.is_dir():
            return f"{path.name} is a folder; choose a file"
        if not path.exists():
            return f"File not found: {path}"
        return "" if os.access(path, os.R_OK) else f"No permission to read {path.name}"


class OutputLine(PathLine):
    """Line edit for an output file in an existing folder.

    Parameters
    ----------
    suffixes : tuple of str
        Valid file name extensions, such as ``.mgf``.
    """

    icon, tip = "save", "Choose an output file"
    mode = "save"

    def __init__(self, title: str, help: str, hint: str, suffixes: tuple[str, ...]) -> None:
        self._suffixes = suffixes
        super().__init__(title, help, hint)

    def _problem_of(self, path: Path) -> str:
        if path.is_dir():
            return f"{path.name} is a folder; choose a file"
        if not path.parent.is_dir():
            return f"Folder not found: {path.parent}"
        if not path.name.lower().endswith(self._suffixes):
            return f"The file name needs one of these extensions: {', '.join(self._suffixes)}"
        return "" if os.access(path.parent, os.W_OK) else f"No permission to write in {path.parent}"

    def _filters(self) -> list[str]:
        return [f"*{suffix}" for suffix in self._suffixes]


class ProjectLine(FolderLine):
    """Line edit for the folder of an existing project."""

    tip = "Choose a project"
    usual_hint = "Leave empty to search the files"

    def _problem_of(self, path: Path) -> str:
        return "" if is_project(path) else "This folder is not a project"
