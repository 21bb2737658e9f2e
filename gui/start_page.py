"""The start page, shown before anything is open."""

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
"""Maximum width of the questions and their buttons, in pixels."""
_BUTTON_HEIGHT = 28
_RECENT_HEIGHTS = (190, 110, 66)


class StartPage(QWidget):
    """Offers a new search of each kind, a project, recent projects, and a drop target.

    Signals
    -------
    new_requested, sample_requested
        Kind of the search to start with the user's files or with sample data.
    open_requested
        A project is to be opened.
    project_chosen
        Folder of a recent project.
    """

    MANUAL = "window"
    """Manual page of the start page."""

    new_requested = Signal(str)
    sample_requested = Signal(str)
    open_requested = Signal()
    project_chosen = Signal(str)

    def __init__(self, searches: Iterable[Search]) -> None:
        super().__init__()
        self._mark = QLabel()
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(heading("Proteoscope", 1.8))
        words.addWidget(toned_label("A desktop program for protein evidence", wrap=False))
        title = QHBoxLayout()
        title.setSpacing(14)
        title.addStretch(1)
        title.addWidget(self._mark)
        title.addLayout(words)
        title.addStretch(1)
        self.new_buttons: dict[str, QPushButton] = {}
        self.sample_buttons: dict[str, QPushButton] = {}
        """Buttons that fill in the form of a search with sample data, by search kind."""
        self.purposes: list[QLabel] = []
        """Labels with the purpose of each search, shown if there is space."""
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
        self.open_button.clicked.connect(self.open_requested)
        self.recent_title = QLabel("Recent projects")
        self.recent = QListWidget()
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        before = QHBoxLayout()
        before.addLayout(self._answer("What did I find earlier?", "Open a project"), 1)
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
        # Small screens and large fonts need scrolling.
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
        """Add a row with the question that a search answers, its purpose, and its buttons."""
        row = grid.rowCount()
        button = QPushButton(f"New {search.name}")
        button.setMinimumHeight(_BUTTON_HEIGHT)
        set_icon(button, search.icon)
        button.clicked.connect(partial(self.new_requested.emit, search.kind))
        self.new_buttons[search.kind] = button
        purpose = f"{search.purpose}; uses the results of another search" if _goes_on(search) else search.purpose
        button.setToolTip(tip_text(purpose))
        grid.addLayout(self._answer(search.question, purpose), row, 0)
        grid.addWidget(button, row, 1)
        if search.demo is not None:
            sample = QPushButton("Use sample data")
            sample.setMinimumHeight(_BUTTON_HEIGHT)
            sample.setAccessibleName(f"Use sample data of the {search.name}")
            sample.setToolTip("Fill the form with the sample files of the program; then press Run")
            sample.clicked.connect(partial(self.sample_requested.emit, search.kind))
            self.sample_buttons[search.kind] = sample
            grid.addWidget(sample, row, 2)

    def _answer(self, question: str, purpose: str) -> QVBoxLayout:
        """Return a layout with a question and the purpose of its search below it."""
        lines = QVBoxLayout()
        lines.setSpacing(0)
        labels = [*([heading(question, 1.0)] if question else []), toned_label(purpose)]
        for label in labels:
            # The text wraps in a narrow window.
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
        """Show recent projects and the purposes of the searches as space permits; tooltips always show the purposes."""
        for are_shown, height in product((True, False), _RECENT_HEIGHTS):
            for label in self.purposes:
                label.setVisible(are_shown)
            self.recent.setFixedHeight(height)
            # Nested layouts cache their sizes until they are activated.
            self._column.invalidate()
            self._column.activate()
            if self._column.totalHeightForWidth(min(self.width(), _MAXIMUM_WIDTH)) <= self.height():
                return

    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects, newest first. `notes` maps their folders to their content and date."""
        self._folders, self._notes = folders, dict(notes)
        self.recent.clear()
        for folder in folders:
            is_there = folder not in self._missing
            of_project = f"    {notes[folder]}" if notes.get(folder) else ""
            where = Path(folder).parent if is_there else f"missing: {Path(folder).parent}"
            item = QListWidgetItem(f"{Path(folder).name}{of_project}    {where}")
            item.setIcon(icon("folder", QColor(colours().link if is_there else colours().faint_text)))
            if not is_there:
                item.setForeground(QColor(colours().faint_text))
            item.setData(Qt.ItemDataRole.UserRole, folder)
            item.setToolTip(tip_text(folder if is_there else f"{folder} is missing"))
            self.recent.addItem(item)
        self.recent_title.setVisible(bool(folders))
        self.recent.setVisible(bool(folders))
        self._fit()

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey out recent projects that do not exist."""
        if folders != self._missing:
            self._missing = folders
            self.show_recent(self._folders, self._notes)

    def redraw(self) -> None:
        """Redraw the parts that depend on the theme."""
        self._mark.setPixmap(pixmap("proteoscope", 44, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders, self._notes)

    def event(self, event: QEvent) -> bool:  # noqa: D102 - Qt's name
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


def _goes_on(search: Search) -> bool:
    """Return True if the search only takes results of another search."""
    return search.writes == "given project"
