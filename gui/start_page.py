"""What the window shows before anything is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from engine.entry import Search
from gui.icons import icon, pixmap, set_icon
from gui.labels import heading, tip_text, toned_label
from gui.theme import colours

__all__ = ["StartPage"]


class StartPage(QWidget):
    """Says what can be done: a new search of each kind, a project, one of the recent projects, a drop.

    Signals
    -------
    new_asked : the kind of search whose button was pressed. open_asked : the one that opens a project. project_chosen : the folder of a
        recent project.
    """

    new_asked = Signal(str)
    open_asked = Signal()
    project_chosen = Signal(str)

    def __init__(self, searches: Iterable[Search]) -> None:
        super().__init__()
        self._mark = QLabel()
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        title = heading("Proteoscope", 2)
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        purpose = toned_label("A desktop bench for protein evidence")
        purpose.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.new_buttons: dict[str, QPushButton] = {}
        buttons = QGridLayout()
        buttons.setHorizontalSpacing(14)
        buttons.setVerticalSpacing(8)
        for row, search in enumerate(searches):
            button = QPushButton(f"New {search.name}")
            set_icon(button, search.icon)
            button.clicked.connect(partial(self.new_asked.emit, search.kind))
            self.new_buttons[search.kind] = button
            buttons.addWidget(button, row, 0)
            buttons.addWidget(toned_label(search.purpose, wrap=False), row, 1)
        self.open_button = QPushButton("Open project…")
        set_icon(self.open_button, "open")
        self.open_button.clicked.connect(self.open_asked)
        buttons.addWidget(self.open_button, buttons.rowCount(), 0)
        buttons.addWidget(toned_label("Go on with what was found before", wrap=False), buttons.rowCount() - 1, 1)
        for button in (*self.new_buttons.values(), self.open_button):
            button.setMinimumSize(190, 36)
        choices = QHBoxLayout()
        choices.addStretch(1)
        choices.addLayout(buttons)
        choices.addStretch(1)
        hint = toned_label("or drop spectra, FASTA or FASTQ files or a project anywhere on this window")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recent_title = QLabel("Recent projects")
        self.recent = QListWidget()
        self.recent.setFixedWidth(520)
        self.recent.setMaximumHeight(190)
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        content = QWidget()
        page = QVBoxLayout(content)
        page.setSpacing(12)
        page.addStretch(2)
        for widget in (self._mark, title, purpose):
            page.addWidget(widget)
        page.addSpacing(12)
        page.addLayout(choices)
        page.addWidget(hint)
        page.addSpacing(18)
        page.addWidget(self.recent_title, 0, Qt.AlignmentFlag.AlignHCenter)
        page.addWidget(self.recent, 0, Qt.AlignmentFlag.AlignHCenter)
        page.addStretch(3)
        # A small screen, or a large font, has no room for all of it.
        scroll = QScrollArea()
        scroll.setWidget(content)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)
        self._folders: tuple[str, ...] = ()
        self._notes: dict[str, str] = {}
        self._missing: frozenset[str] = frozenset()
        self.redraw()

    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects, the last one first; `notes`: what they hold and from when, by their folders."""
        self._folders, self._notes = folders, dict(notes)
        self.recent.clear()
        for folder in folders:
            is_there = folder not in self._missing
            of_project = f"    {notes[folder]}" if notes.get(folder) else ""
            where = Path(folder).parent if is_there else f"not there any more: {Path(folder).parent}"
            item = QListWidgetItem(f"{Path(folder).name}{of_project}    {where}")
            item.setIcon(icon("folder", QColor(colours().link if is_there else colours().faint_text)))
            if not is_there:
                item.setForeground(QColor(colours().faint_text))
            item.setData(Qt.ItemDataRole.UserRole, folder)
            item.setToolTip(tip_text(folder if is_there else f"{folder} is not there any more"))
            self.recent.addItem(item)
        self.recent_title.setVisible(bool(folders))
        self.recent.setVisible(bool(folders))

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey recent projects that are not there."""
        if folders != self._missing:
            self._missing = folders
            self.show_recent(self._folders, self._notes)

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        self._mark.setPixmap(pixmap("proteoscope", 72, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders, self._notes)

    def event(self, event: QEvent) -> bool:  # noqa: D102 - Qt's name
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))
