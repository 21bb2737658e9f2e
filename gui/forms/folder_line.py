"""A folder that may be given: a line to type it, and a button to choose it."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from gui.forms.editors import tool_button
from gui.forms.field import Outlined
from gui.labels import toned_label

__all__ = ["FolderLine"]


class FolderLine(QWidget):
    """The folder need not exist; where it does not, it is made.

    Parameters
    ----------
    title : stands above the line. help : its tooltip, a sentence without its first capital and full stop. hint : stands in the empty line.

    Signals
    -------
    changed : another folder stands there.
    """

    changed = Signal()

    def __init__(self, title: str, help: str, hint: str = "No folder: nothing of this is written") -> None:
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
        row.addWidget(tool_button("folder", "Choose a folder", self.ask))
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
    def folder(self) -> Path | None:
        """The folder, None where none is given."""
        text = self.line.text().strip()
        if not text:
            return None
        try:
            return Path(text).expanduser().absolute()
        except RuntimeError:
            # A ~ with the name of nobody.
            return Path(text).absolute()

    def problem(self) -> str:
        """Why nothing can be written there; empty where it can."""
        folder = self.folder
        if folder is None:
            return ""
        try:
            if folder.is_file():
                return f"{folder.name} is a file; choose a folder"
            parent = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        except (OSError, ValueError) as error:
            return f"This folder cannot be used: {getattr(error, 'strerror', None) or error}"
        return "" if os.access(parent, os.W_OK) else f"You may not write in {parent}"

    def ask(self) -> None:
        """Open a dialog for the folder."""
        dialog = QFileDialog(self, self._title, self.line.text() or self.start_folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.line.setText)
        dialog.open()

    def _show_problem(self) -> None:
        problem = self.problem()
        self.frame.mark(bool(problem))
        self.message.setText(problem)
        self.message.setVisible(bool(problem))
