"""Start page, shown until a project or a form is opened."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QWidget,
)

from proteoscope.engine.entry import Search
from proteoscope.gui.buttons import PrimaryButton, push_button, text_button
from proteoscope.gui.icons import icon, pixmap, set_icon
from proteoscope.gui.labels import described, heading, tip_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area
from proteoscope.gui.start_pictures import StartPicture
from proteoscope.gui.surfaces import Card
from proteoscope.gui.theme import colours

_MAXIMUM_WIDTH = 1000
"""Maximum width of the page in pixels."""
_RECENT_HEIGHTS = (112, 66)
_FIRST_SAMPLE = "identify"
"""Kind of the search whose sample data is suggested first, at the top of the page."""


class _Group(NamedTuple):
    """Content of a card: name of its picture, title, a line of description, and search kinds, starting with the main search."""

    picture: str
    title: str
    about: str
    kinds: tuple[str, ...]


_GROUPS = (
    _Group("identify", "Identify", "Peptides and proteins from tandem mass spectra", ("identify", "modified", "library")),
    _Group("quantify", "Quantify", "Amounts by sample, and what changes between conditions", ("quantify",)),
    _Group(
        "compare", "Compare sequences and structures", "Similar proteins, and peptides on structures", ("align", "structures", "evidence")
    ),
    _Group("inspect", "Inspect and import", "Import results of other programs, or cluster spectra", ("import", "cluster")),
)


class StartPage(QWidget):
    """Page with the recent projects, a button for a new search of each kind, sample data, and a drop target for files.

    Signals
    -------
    new_requested, sample_requested
        Kind of the search to start with the user's files, or with sample data.
    open_requested
        A project is to be opened.
    project_chosen
        Folder of a recent project.
    """

    MANUAL = "window"
    """Name of the manual page about the start page."""

    new_requested = Signal(str)
    sample_requested = Signal(str)
    open_requested = Signal()
    project_chosen = Signal(str)

    def __init__(self, searches: Iterable[Search]) -> None:
        super().__init__()
        by_kind = {search.kind: search for search in searches}
        self.new_buttons: dict[str, QPushButton] = {}
        """Buttons that open an empty form, by search kind."""
        self.sample_buttons: dict[str, QAbstractButton] = {}
        """Buttons that fill in the form of a search with sample data, next to the button of its empty form, by search kind."""
        self.first_sample_button: QAbstractButton | None = None
        """Large button for the sample data with which new users start."""
        self._mark = QLabel()
        self.open_button = push_button("Open project…", self.open_requested.emit, "open")
        self.recent_title = heading("Recent projects")
        self.recent = described(QListWidget(), "Recent projects")
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.itemActivated.connect(self._choose)
        self.recent.itemClicked.connect(self._choose)
        self.more_button = QPushButton("More searches")
        self.more_button.setCheckable(True)
        self.more_button.setToolTip("Show or hide the other searches")
        self.more_button.toggled.connect(self._show_more)
        sample_line = self._sample_line(by_kind.get(_FIRST_SAMPLE))
        self.cards = [self._card(group, [by_kind[kind] for kind in group.kinds if kind in by_kind]) for group in _GROUPS]
        self._card_grid = QGridLayout()
        self._card_grid.setSpacing(8)
        self._n_columns = 0
        in_gpus = {kind for group in _GROUPS for kind in group.kinds}
        self._more = self._more_searches([search for kind, search in by_kind.items() if kind not in in_gpus])
        # The scroll area knows its new height only after further events.
        self._scroll_soon = QTimer(self, singleShot=True, interval=0)
        self._content = QWidget(maximumWidth=_MAXIMUM_WIDTH)
        self._column = in_column(
            STRETCH,
            self._title_line(),
            self.recent_title,
            self.recent,
            self._card_grid,
            sample_line,
            self._more,
            2 * STRETCH,
            on=self._content,
            margins=None,
            spacing=8,
        )
        # On small screens or with large fonts, the page needs scrolling.
        self.scroll_area = make_scroll_area(self._content)
        self.scroll_area.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        in_column(self.scroll_area, on=self)
        self._scroll_soon.timeout.connect(lambda: self.scroll_area.ensureWidgetVisible(self._more))
        self._folders: tuple[str, ...] = ()
        self._notes: dict[str, str] = {}
        self._missing: frozenset[str] = frozenset()
        self._show_more(False)
        self.redraw()

    def _title_line(self) -> QHBoxLayout:
        return in_row(
            self._mark,
            (in_column(heading("Proteoscope", 1.8), toned_label("A desktop program for protein evidence"), spacing=0), 1),
            self.open_button,
            spacing=14,
        )

    def _sample_line(self, search: Search | None) -> QHBoxLayout:
        """Return a line with a button for sample data, and a text that the user can also drop files."""
        line = in_row(spacing=10)
        if search is not None and search.demo is not None:
            button = PrimaryButton("Use sample data")
            button.clicked.connect(partial(self.sample_requested.emit, search.kind))
            self._name_sample(button, search)
            self.first_sample_button = button
            line.addWidget(button)
        line.addWidget(toned_label("or drop spectra, FASTA or FASTQ files or a project anywhere on this window"), 1)
        line.addWidget(self.more_button)
        return line

    def _card(self, group: _Group, searches: list[Search]) -> _StartCard:
        card = _StartCard(group)
        for search in searches:
            new = self._new_button(search, search.name[:1].upper() + search.name[1:])
            card.add_row(new, self._sample_button(search, "Sample"))
        if searches:
            card.chosen.connect(partial(self.new_requested.emit, searches[0].kind))
        return card

    def _more_searches(self, searches: list[Search]) -> QWidget:
        """Return a list with a row for each search that has no card: the question it answers, its purpose, and buttons."""
        widget = QWidget()
        widget.setObjectName("more")
        grid = QGridLayout(widget)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setColumnStretch(0, 1)
        for row, search in enumerate(searches):
            lines = in_column(spacing=0)
            for label in (heading(search.question, 1.0), toned_label(search.purpose)):
                # In a narrow window, the text must wrap.
                label.setWordWrap(True)
                label.setMinimumWidth(1)
                lines.addWidget(label)
            grid.addLayout(lines, row, 0)
            new = self._new_button(search, f"New {search.name}")
            set_icon(new, search.icon)
            grid.addWidget(new, row, 1)
            if (sample := self._sample_button(search, "Use sample data")) is not None:
                grid.addWidget(sample, row, 2)
        self.more_button.setVisible(bool(searches))
        return widget

    def _new_button(self, search: Search, text: str) -> QPushButton:
        button = push_button(
            text,
            partial(self.new_requested.emit, search.kind),
            tip=tip_text(f"{search.purpose}; uses the results of another search" if _is_follow_up(search) else search.purpose),
            name=f"New {search.name}",
        )
        self.new_buttons[search.kind] = button
        return button

    def _sample_button(self, search: Search, text: str) -> QAbstractButton | None:
        """Return a button for the sample data of a search, or None if it has none."""
        if search.demo is None:
            return None
        button = text_button(text, "", partial(self.sample_requested.emit, search.kind))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._name_sample(button, search)
        self.sample_buttons[search.kind] = button
        return button

    def _name_sample(self, button: QAbstractButton, search: Search) -> None:
        button.setAccessibleName(f"Use sample data of the {search.name}")
        button.setToolTip("Fill the form with the sample files of the program; then press Run")

    def _show_more(self, are_shown: bool) -> None:
        self._more.setVisible(are_shown)
        set_icon(self.more_button, "unfolded" if are_shown else "folded")
        self._fit()
        if are_shown:
            self._scroll_soon.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the cards for the new width."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Arrange the cards in one or two columns, and enlarge the list of recent projects if there is space."""
        margins = self._column.contentsMargins()
        space = (
            min(self.width(), _MAXIMUM_WIDTH) - margins.left() - margins.right() - self.scroll_area.verticalScrollBar().sizeHint().width()
        )
        widest = max(card.minimumSizeHint().width() for card in self.cards)
        n_columns = 2 if 2 * widest + self._card_grid.spacing() <= space else 1
        if n_columns != self._n_columns:
            self._n_columns = n_columns
            for at, card in enumerate(self.cards):
                self._card_grid.addWidget(card, at // n_columns, at % n_columns)
            self._card_grid.setColumnStretch(0, 1)
            self._card_grid.setColumnStretch(1, n_columns - 1)
        for height in _RECENT_HEIGHTS:
            self.recent.setFixedHeight(min(height, self._list_height))
            # Nested layouts return cached sizes until they are activated.
            self._column.invalidate()
            self._column.activate()
            if self._column.totalHeightForWidth(min(self.width(), _MAXIMUM_WIDTH)) <= self.height():
                return

    @property
    def _list_height(self) -> int:
        """Height at which all recent projects are visible."""
        return self.recent.count() * max(self.recent.sizeHintForRow(0), 1) + 2 * self.recent.frameWidth()

    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects, newest first. `notes` maps each folder to a text with its content and date."""
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
        """Grey out recent projects that no longer exist."""
        if folders != self._missing:
            self._missing = folders
            self.show_recent(self._folders, self._notes)

    def redraw(self) -> None:
        """Redraw the elements that depend on the theme."""
        self._mark.setPixmap(pixmap("proteoscope", 44, QColor(colours().accent), self.devicePixelRatioF()))
        self.show_recent(self._folders, self._notes)

    def event(self, event: QEvent) -> bool:
        """Redraw the icons if the window moves to a screen with another resolution."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.redraw()
        return super().event(event)

    def _choose(self, item: QListWidgetItem) -> None:
        self.project_chosen.emit(item.data(Qt.ItemDataRole.UserRole))


class _StartCard(Card):
    """Card with a picture, a title and the buttons of a group of searches.

    Signals
    -------
    chosen
        The card was clicked outside its buttons.
    """

    chosen = Signal()

    def __init__(self, group: _Group) -> None:
        super().__init__()
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(group.title)
        self._rows = QGridLayout()
        self._rows.setSpacing(4)
        self._rows.setColumnStretch(0, 1)
        lines = in_column(spacing=2)
        for label in (heading(group.title, 1.15), toned_label(group.about)):
            # The text wraps in a narrow window.
            label.setWordWrap(True)
            label.setMinimumWidth(1)
            lines.addWidget(label)
        lines.addStretch(1)
        lines.addLayout(self._rows)
        in_row(StartPicture(group.picture), (lines, 1), on=self, margins=(12, 10, 12, 10), spacing=12)

    def add_row(self, new: QPushButton, sample: QAbstractButton | None) -> None:
        """Add the buttons of a search."""
        at = self._rows.rowCount()
        new.setCursor(Qt.CursorShape.ArrowCursor)
        self._rows.addWidget(new, at, 0, 1, 2 if sample is None else 1)
        if sample is not None:
            sample.setCursor(Qt.CursorShape.ArrowCursor)
            self._rows.addWidget(sample, at, 1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open the form of the main search."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.chosen.emit()


def _is_follow_up(search: Search) -> bool:
    """Return True if the search builds on results of another search and stores its own results in the same project."""
    return search.writes == "given project"
