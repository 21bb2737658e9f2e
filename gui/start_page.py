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


_MAXIMUM_WIDTH = 900
"""Of questions and buttons, which belong together."""


class StartPage(QWidget):
    """Says what can be done: a new search of each kind, a project, one of the recent projects, a drop.

    Signals
    -------
    new_asked, sample_asked : the kind of search whose button was pressed, for files of the user's or for those that ship.
    open_asked : the one that opens a project. project_chosen : the folder of a recent project.
    """

    new_asked = Signal(str)
    sample_asked = Signal(str)
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
        buttons.setContentsMargins(0, 0, 0, 0)
        buttons.setHorizontalSpacing(14)
        buttons.setVerticalSpacing(8)
        self.sample_buttons: dict[str, QPushButton] = {}
        """Fill the form of a search with files that ship, by its kind."""
        for search in sorted(searches, key=_goes_on):
            self._add_search(buttons, search)
        self.open_button = QPushButton("Open project…")
        set_icon(self.open_button, "open")
        self.open_button.clicked.connect(self.open_asked)
        row = buttons.rowCount()
        buttons.addLayout(_answer("What was found before?", "Go on with a project"), row, 0)
        buttons.addWidget(self.open_button, row, 1)
        for button in (*self.new_buttons.values(), self.open_button):
            button.setMinimumHeight(36)
        choices = QHBoxLayout()
        buttons.setColumnStretch(0, 1)
        box = QWidget()
        box.setMaximumWidth(_MAXIMUM_WIDTH)
        box.setLayout(buttons)
        choices.addStretch(1)
        choices.addWidget(box, 100)
        choices.addStretch(1)
        hint = toned_label("or drop spectra, FASTA or FASTQ files or a project anywhere on this window")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.recent_title = QLabel("Recent projects")
        self.recent = QListWidget()
        self.recent.setFixedWidth(480)
        self.recent.setMaximumHeight(190)
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        content = QWidget()
        page = QVBoxLayout(content)
        page.setSpacing(8)
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

    def _add_search(self, grid: QGridLayout, search: Search) -> None:
        """A row with the question that a search answers, the button that begins it, and what it does."""
        row = grid.rowCount()
        button = QPushButton(f"New {search.name}")
        set_icon(button, search.icon)
        button.clicked.connect(partial(self.new_asked.emit, search.kind))
        self.new_buttons[search.kind] = button
        purpose = f"{search.purpose}; goes on from results" if _goes_on(search) else search.purpose
        grid.addLayout(_answer(search.question, purpose), row, 0)
        begin = QVBoxLayout()
        begin.setSpacing(4)
        begin.addWidget(button)
        grid.addLayout(begin, row, 1)
        if search.demo is not None and not search.demo.after:
            sample = QPushButton("Try the sample")
            sample.setToolTip("Fill the form with files that ship with the program; then press Run")
            sample.clicked.connect(partial(self.sample_asked.emit, search.kind))
            self.sample_buttons[search.kind] = sample
            begin.addWidget(sample)

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
        self._mark.setPixmap(pixmap("proteoscope", 56, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders, self._notes)

    def event(self, event: QEvent) -> bool:  # noqa: D102 - Qt's name
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _answer(question: str, purpose: str) -> QVBoxLayout:
    """A question, and below it what answers it."""
    lines = QVBoxLayout()
    lines.setSpacing(0)
    for label in (*([heading(question, 1.0)] if question else []), toned_label(purpose)):
        # Where the window is narrow it is told in two lines.
        label.setWordWrap(True)
        label.setMinimumWidth(1)
        lines.addWidget(label)
    return lines


def _goes_on(search: Search) -> bool:
    """Whether it has nothing to begin with but the results of another."""
    return search.writes == "given project"
