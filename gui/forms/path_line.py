"""Line edits for optional folders and files, each with a button that opens a file dialog."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from proteoscope.engine.project import is_project
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.labels import toned_label

__all__ = ["FileLine", "FolderLine", "OutputLine", "PathLine", "ProjectLine"]


class PathLine(QWidget):
    """Base class of line edits for a path. Derived classes define the validation and the file dialog.

    Parameters
    ----------
    title : str
        Title above the line.
    help : str
        Tooltip, written without initial capital and full stop.
    hint : str
        Placeholder text while the line is empty.

    Signals
    -------
    changed
        The path has changed.
    """

    changed = Signal()

    icon = "open"
    tip = "Choose a file"

    def __init__(self, title: str, help: str, hint: str) -> None:
        super().__init__()
        self._title = title
        self.line = QLineEdit()
        self.line.setPlaceholderText(hint)
        self.line.setAcceptDrops(False)
        self.line.setClearButtonEnabled(True)
        self.line.setAccessibleName(title)
        self.line.setToolTip(f"{help[:1].upper()}{help[1:]}")
        self.frame = Outlined(self.line)
        self.message = toned_label(tone="wrong")
        self.message.hide()
        self.start_folder = ""
        """Start folder of the dialog."""
        label = QLabel(title)
        label.setBuddy(self.line)
        label.setToolTip(self.line.toolTip())
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.frame, 1)
        row.addWidget(tool_button(self.icon, self.tip, self.prompt))
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 6, 0, 0)
        page.setSpacing(2)
        page.addWidget(label)
        page.addLayout(row)
        page.addWidget(self.message)
        self.line.textChanged.connect(self._show_problem)
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
        """Return why the path cannot be used, or ''."""
        raise NotImplementedError

    def prompt(self) -> None:
        """Open a dialog for the path."""
        dialog = QFileDialog(self, self._title.replace("&", ""), self.line.text() or self.start_folder)
        self._prepare(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.line.setText)
        dialog.open()

    def _prepare(self, dialog: QFileDialog) -> None:
        """Configure the file dialog for this type of path."""
        raise NotImplementedError

    def _show_problem(self) -> None:
        problem = self.problem()
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))


class FolderLine(PathLine):
    """Line edit for an output folder. The program creates the folder if it is missing."""

    icon = "folder"
    tip = "Choose a folder"

    def __init__(self, title: str, help: str, hint: str = "No folder: no files are written") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Return why the folder cannot be written to, or ''."""
        folder = self.path
        if folder is None:
            return ""
        try:
            if folder.is_file():
                return f"{folder.name} is a file; choose a folder"
            parent = next((candidate for candidate in (folder, *folder.parents) if candidate.exists()), folder)
        except (OSError, ValueError) as error:
            return f"This folder cannot be used: {getattr(error, 'strerror', None) or error}"
        return "" if os.access(parent, os.W_OK) else f"No permission to write in {parent}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)


class FileLine(PathLine):
    """Line edit for an existing file."""

    def __init__(self, title: str, help: str, hint: str = "No file") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Return why the file cannot be read, or ''."""
        path = self.path
        if path is None:
            return ""
        try:
            if path.is_dir():
                return f"{path.name} is a folder; choose a file"
            if not path.exists():
                return f"File not found: {path}"
        except (OSError, ValueError) as error:
            return f"This file cannot be used: {getattr(error, 'strerror', None) or error}"
        return "" if os.access(path, os.R_OK) else f"No permission to read {path.name}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)


class OutputLine(PathLine):
    """Line edit for an output file in an existing folder.

    Parameters
    ----------
    suffixes : tuple of str
        Valid file name extensions, such as ``.mgf``.
    """

    icon = "save"
    tip = "Choose where to write"

    def __init__(self, title: str, help: str, hint: str, suffixes: tuple[str, ...]) -> None:
        self._suffixes = suffixes
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Return why the file cannot be written, or ''."""
        path = self.path
        if path is None:
            return ""
        try:
            if path.is_dir():
                return f"{path.name} is a folder; choose a file"
            if not path.parent.is_dir():
                return f"Folder not found: {path.parent}"
        except (OSError, ValueError) as error:
            return f"This file cannot be used: {getattr(error, 'strerror', None) or error}"
        if not path.name.lower().endswith(self._suffixes):
            return f"The file name needs one of these extensions: {', '.join(self._suffixes)}"
        return "" if os.access(path.parent, os.W_OK) else f"No permission to write in {path.parent}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([f"*{suffix}" for suffix in self._suffixes])


class ProjectLine(FolderLine):
    """Line edit for the folder of an existing project."""

    tip = "Choose a project"

    def __init__(self, title: str, help: str, hint: str = "No project: the files are searched") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Return why the folder is not a project, or ''."""
        folder = self.path
        try:
            return "" if folder is None or is_project(folder) else "This folder is not a project"
        except (OSError, ValueError) as error:
            return f"This folder cannot be used: {getattr(error, 'strerror', None) or error}"
