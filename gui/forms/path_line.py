"""A folder or a file that may be given: a line to type it, and a button to choose it."""

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
    """A line for a path. What is wrong with one, and the dialog, are of the class that derives from it.

    Parameters
    ----------
    title : stands above the line. help : its tooltip, a sentence without its first capital and full stop. hint : stands in the empty line.

    Signals
    -------
    changed : another path stands there.
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
        """Where the dialog opens."""
        label = QLabel(title)
        label.setBuddy(self.line)
        label.setToolTip(self.line.toolTip())
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.frame, 1)
        row.addWidget(tool_button(self.icon, self.tip, self.ask))
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
        """The path, None where none is given."""
        text = self.line.text().strip()
        if not text:
            return None
        try:
            return Path(text).expanduser().absolute()
        except RuntimeError:
            # A ~ with the name of nobody.
            return Path(text).absolute()

    def problem(self) -> str:
        """Why it cannot be used; empty where it can."""
        raise NotImplementedError

    def ask(self) -> None:
        """Open a dialog for it."""
        dialog = QFileDialog(self, self._title.replace("&", ""), self.line.text() or self.start_folder)
        self._prepare(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.line.setText)
        dialog.open()

    def _prepare(self, dialog: QFileDialog) -> None:
        """Have a dialog ask for what the line is for."""
        raise NotImplementedError

    def _show_problem(self) -> None:
        problem = self.problem()
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))


class FolderLine(PathLine):
    """The folder need not exist; where it does not, it is made."""

    icon = "folder"
    tip = "Choose a folder"

    def __init__(self, title: str, help: str, hint: str = "No folder: nothing of this is written") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Why nothing can be written there; empty where it can."""
        folder = self.path
        if folder is None:
            return ""
        try:
            if folder.is_file():
                return f"{folder.name} is a file; choose a folder"
            parent = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        except (OSError, ValueError) as error:
            return f"This folder cannot be used: {getattr(error, 'strerror', None) or error}"
        return "" if os.access(parent, os.W_OK) else f"You may not write in {parent}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)


class FileLine(PathLine):
    """A file that must be there."""

    def __init__(self, title: str, help: str, hint: str = "No file") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Why it cannot be read; empty where it can."""
        path = self.path
        if path is None:
            return ""
        try:
            if path.is_dir():
                return f"{path.name} is a folder; choose a file"
            if not path.exists():
                return f"There is no file {path}"
        except (OSError, ValueError) as error:
            return f"This file cannot be used: {getattr(error, 'strerror', None) or error}"
        return "" if os.access(path, os.R_OK) else f"You may not read {path.name}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)


class OutputLine(PathLine):
    """A file that is written, in a folder that is there.

    Parameters
    ----------
    suffixes : of files that can be written, as ``.mgf``.
    """

    icon = "save"
    tip = "Choose where to write"

    def __init__(self, title: str, help: str, hint: str, suffixes: tuple[str, ...]) -> None:
        self._suffixes = suffixes
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Why nothing can be written there; empty where it can."""
        path = self.path
        if path is None:
            return ""
        try:
            if path.is_dir():
                return f"{path.name} is a folder; name a file"
            if not path.parent.is_dir():
                return f"There is no folder {path.parent}"
        except (OSError, ValueError) as error:
            return f"This file cannot be used: {getattr(error, 'strerror', None) or error}"
        if not path.name.lower().endswith(self._suffixes):
            return f"The name tells no format; let it end with {', '.join(self._suffixes)}"
        return "" if os.access(path.parent, os.W_OK) else f"You may not write in {path.parent}"

    def _prepare(self, dialog: QFileDialog) -> None:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([f"*{suffix}" for suffix in self._suffixes])


class ProjectLine(FolderLine):
    """The folder of a project that is there."""

    tip = "Choose a project"

    def __init__(self, title: str, help: str, hint: str = "No project: the files are searched") -> None:
        super().__init__(title, help, hint)

    def problem(self) -> str:
        """Why it is no project; empty where it is one."""
        folder = self.path
        try:
            return "" if folder is None or is_project(folder) else "There is no project in this folder"
        except (OSError, ValueError) as error:
            return f"This folder cannot be used: {getattr(error, 'strerror', None) or error}"
