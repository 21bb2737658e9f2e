"""What the window shows before anything is open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QResizeEvent
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

from proteoscope.engine.entry import Search
from proteoscope.gui.icons import icon, pixmap, set_icon
from proteoscope.gui.labels import heading, tip_text, toned_label
from proteoscope.gui.theme import colours

__all__ = ["StartPage"]


_MAXIMUM_WIDTH = 900
"""Of questions and buttons, which belong together."""
_BUTTON_HEIGHT = 28
_RECENT_HEIGHTS = (190, 110, 66)


class StartPage(QWidget):
    """Says what can be done: a new search of each kind, a project, one of the recent projects, a drop.

    Signals
    -------
    new_asked, sample_asked : the kind of search whose button was pressed, for files of the user's or for those that ship.
    open_asked : the one that opens a project. project_chosen : the folder of a recent project.
    """

    MANUAL = "window"
    """The page of the manual about it."""

    new_asked = Signal(str)
    sample_asked = Signal(str)
    open_asked = Signal()
    project_chosen = Signal(str)

    def __init__(self, searches: Iterable[Search]) -> None:
        super().__init__()
        self._mark = QLabel()
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(heading("Proteoscope", 1.8))
        words.addWidget(toned_label("A desktop bench for protein evidence", wrap=False))
        title = QHBoxLayout()
        title.setSpacing(14)
        title.addStretch(1)
        title.addWidget(self._mark)
        title.addLayout(words)
        title.addStretch(1)
        self.new_buttons: dict[str, QPushButton] = {}
        self.sample_buttons: dict[str, QPushButton] = {}
        """Fill the form of a search with files that ship, by its kind."""
        self.purposes: list[QLabel] = []
        """What each search is for, which is told where there is room."""
        buttons = QGridLayout()
        buttons.setContentsMargins(0, 0, 0, 0)
        buttons.setHorizontalSpacing(8)
        buttons.setVerticalSpacing(4)
        for search in sorted(searches, key=_goes_on):
            self._add_search(buttons, search)
        buttons.setColumnStretch(0, 1)
        hint = toned_label("or drop spectra, FASTA or FASTQ files or a project anywhere on this window")
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.open_button = QPushButton("Open project…")
        set_icon(self.open_button, "open")
        self.open_button.clicked.connect(self.open_asked)
        self.recent_title = QLabel("Recent projects")
        self.recent = QListWidget()
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        before = QHBoxLayout()
        before.addLayout(self._answer("What was found before?", "Go on with a project"), 1)
        before.addWidget(self.recent_title, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        before.addWidget(self.open_button)
        self._content = QWidget()
        self._content.setMaximumWidth(_MAXIMUM_WIDTH)
        page = self._column = QVBoxLayout(self._content)
        page.setSpacing(8)
        page.addStretch(2)
        page.addLayout(title)
        page.addSpacing(4)
        page.addLayout(buttons)
        page.addWidget(hint)
        page.addLayout(before)
        page.addWidget(self.recent)
        page.addStretch(3)
        # A small screen, or a large font, has no room for all of it.
        self.scroll_area = QScrollArea()
        self.scroll_area.setWidget(self._content)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.scroll_area)
        self._folders: tuple[str, ...] = ()
        self._notes: dict[str, str] = {}
        self._missing: frozenset[str] = frozenset()
        self.redraw()

    def _add_search(self, grid: QGridLayout, search: Search) -> None:
        """A row with the question that a search answers, the button that begins it, and what it does."""
        row = grid.rowCount()
        button = QPushButton(f"New {search.name}")
        button.setMinimumHeight(_BUTTON_HEIGHT)
        set_icon(button, search.icon)
        button.clicked.connect(partial(self.new_asked.emit, search.kind))
        self.new_buttons[search.kind] = button
        purpose = f"{search.purpose}; goes on from results" if _goes_on(search) else search.purpose
        button.setToolTip(tip_text(purpose))
        grid.addLayout(self._answer(search.question, purpose), row, 0)
        grid.addWidget(button, row, 1)
        if search.demo is not None:
            sample = QPushButton("Try the sample")
            sample.setMinimumHeight(_BUTTON_HEIGHT)
            sample.setAccessibleName(f"Try the sample of the {search.name}")
            sample.setToolTip("Fill the form with files that ship with the program; then press Run")
            sample.clicked.connect(partial(self.sample_asked.emit, search.kind))
            self.sample_buttons[search.kind] = sample
            grid.addWidget(sample, row, 2)

    def _answer(self, question: str, purpose: str) -> QVBoxLayout:
        """A question, and below it what answers it."""
        lines = QVBoxLayout()
        lines.setSpacing(0)
        labels = [*([heading(question, 1.0)] if question else []), toned_label(purpose)]
        for label in labels:
            # Where the window is narrow it is told in two lines.
            label.setWordWrap(True)
            label.setMinimumWidth(1)
            label.setToolTip(tip_text(purpose))
            lines.addWidget(label, 0, Qt.AlignmentFlag.AlignVCenter)
        if question:
            self.purposes.append(labels[-1])
        return lines

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show recent projects, and below its question what each search is for (its tip tells that always), as far as there is room."""
        for are_told, height in product((True, False), _RECENT_HEIGHTS):
            for label in self.purposes:
                label.setVisible(are_told)
            self.recent.setFixedHeight(height)
            # Layouts within remember what they took before, until they are laid out.
            self._column.invalidate()
            self._column.activate()
            if self._column.totalHeightForWidth(min(self.width(), _MAXIMUM_WIDTH)) <= self.height():
                return

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
        self._fit()

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey recent projects that are not there."""
        if folders != self._missing:
            self._missing = folders
            self.show_recent(self._folders, self._notes)

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        self._mark.setPixmap(pixmap("proteoscope", 44, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders, self._notes)

    def event(self, event: QEvent) -> bool:  # noqa: D102 - Qt's name
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _goes_on(search: Search) -> bool:
    """Whether it has nothing to begin with but the results of another."""
    return search.writes == "given project"
