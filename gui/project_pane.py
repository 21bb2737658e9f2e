"""Project pane: name and runs of the open project; selecting a run shows its results."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import (
    QDateTime,
    QItemSelectionModel,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QAction, QColor, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from proteoscope.engine import views
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project, RunRecord, is_project
from proteoscope.engine.results.counts import counted
from proteoscope.engine.resumption import missing_checkpoint
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.actions import make_action
from proteoscope.gui.buttons import action_button
from proteoscope.gui.icons import pixmap
from proteoscope.gui.labels import heading, show_text, tip_text, toned_label
from proteoscope.gui.layouts import in_column
from proteoscope.gui.theme import colours

RESUMABLE_TEXT = "Stopped (resumable)"

_STATE_ICONS = {
    "done": ("done", "good"),
    "failed": ("failed", "wrong"),
    "cancelled": ("stopped", "faint_text"),
    "queued": ("queued", "faint_text"),
    "running": ("running", "link"),
}
_RUN, _IS_RESUMABLE = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
_MARGIN = 6
_EDGE, _MINIMUM_WIDTH = 8, 200
_MADE_AT_ONCE = 20
"""Number of run titles that are computed immediately: about the number of visible runs."""


class ProjectPane(QWidget):
    """List of the runs of a project, newest first, with buttons for actions on them.

    Signals
    -------
    run_chosen
        Record of the run to show; the run may have no results.
    runs_chosen
        Records of the selected runs, oldest first, if the user has selected none or several.
    refreshed
        The runs have been read again.
    comparison_requested
        Records of the runs to compare, oldest first.
    resume_requested
        Record of a stopped run to resume.
    about_requested, discard_requested
        Record of a run: the user requests its details page (`about_requested`), or wants to delete it (`discard_requested`).
    """

    MANUAL = "projects"
    """Name of the manual page about this pane."""

    run_chosen = Signal(RunRecord)
    runs_chosen = Signal(list)
    refreshed = Signal()
    comparison_requested = Signal(list)
    resume_requested = Signal(RunRecord)
    about_requested = Signal(RunRecord)
    discard_requested = Signal(RunRecord)

    def __init__(self) -> None:
        super().__init__()
        self.project: Project | None = None
        self.is_resuming: Callable[[Path, str], bool] = lambda folder, run_id: False
        """Returns True while a job of the window resumes a run (arguments: project folder, run id).

        The project itself records the new status only when the job first writes to it.
        """
        self.name = heading("")
        self.name.setWordWrap(True)
        self.state = toned_label()
        self.problem = toned_label(tone="wrong")
        self._records: list[RunRecord] = []
        self._shown: list[tuple[RunRecord, bool]] = []
        """Record of each item of the list, and True if it can be resumed."""
        self._resumable: frozenset[str] = frozenset()
        self.runs = QListWidget()
        self.runs.setItemDelegate(_RunDelegate(self.runs, self.title_of))
        self.runs.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.runs.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.runs.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.runs.setAccessibleName("Runs of the project")
        self.runs.itemSelectionChanged.connect(self._choose)
        # A click on the selected run returns from another page to its results.
        self.runs.itemClicked.connect(lambda item: self._choose())
        self.compare_action = QAction("&Compare runs", self, enabled=False)
        self.compare_action.triggered.connect(lambda: self.comparison_requested.emit(self.selected_runs))
        self.resume_action = make_action(self, "&Resume", lambda: self._of_selected(self.resume_requested))
        self.about_action = make_action(
            self,
            "&About this run",
            lambda: self._of_selected(self.about_requested),
            tip="Show files, parameters, messages and methods; rename the run or add a note",
        )
        self.discard_action = make_action(self, "&Delete this run", lambda: self._of_selected(self.discard_requested))
        self.runs.addActions([self.about_action, self.compare_action, self.resume_action, self.discard_action])
        self.runs.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.compare_button, self.resume_button, self.about_button = (
            _wide_button(action) for action in (self.compare_action, self.resume_action, self.about_action)
        )
        self._titles: dict[tuple[str, str], str] = {}
        buttons = (self.compare_button, self.resume_button, self.about_button)
        self.setMinimumWidth(max(_MINIMUM_WIDTH, *(2 * _EDGE + button.minimumSizeHint().width() for button in buttons)))
        page = in_column(
            self.name,
            self.state,
            self.problem,
            (self.runs, 1),
            self.about_button,
            self.compare_button,
            self.resume_button,
            on=self,
            margins=_EDGE,
        )
        # Takes the space of the list while the list is hidden.
        page.addStretch(0)
        self.show_project(None)

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Runs of the project, newest first."""
        return tuple(self._records)

    def show_project(self, project: Project | None) -> None:
        """Show the runs of a project without selecting one. None means that no project is open."""
        self.project, self._records, self._titles = project, [], {}
        self.name.setText("No project open" if project is None else project.folder.name)
        self.name.setToolTip("" if project is None else tip_text(str(project.folder)))
        self.runs.setVisible(project is not None)
        # A run of the previous project may have the same id.
        self.runs.blockSignals(True)
        self._shown = []
        self.runs.clear()
        self.runs.blockSignals(False)
        self.refresh()

    def refresh(self) -> None:
        """Read the runs again and update changed items. If reading fails, the previous list remains, and the error is shown."""
        problem = self._read()
        records = self._records
        self.runs.blockSignals(True)
        self._update_items()
        self.runs.blockSignals(False)
        self._offer_actions()
        show_text(self.problem, problem)
        if self.project is None:
            self.state.setText("Runs of the open project are listed here.")
        else:
            read_only = "Read-only. " if self.project.read_only else ""
            self.state.setText(read_only + (counted(len(records), "run") if records else "No runs yet"))
        self.refreshed.emit()

    def _update_items(self) -> None:
        """Insert, update and remove items so that they show the records; the selection remains."""
        ids, before = {record.id for record in self._records}, {record.id for record, _ in self._shown}
        for row in reversed(range(len(self._shown))):
            if self._shown[row][0].id not in ids:
                self.runs.takeItem(row)
                del self._shown[row]
        if [record.id for record, _ in self._shown] != [record.id for record in self._records if record.id in before]:
            self._shown = []  # the order has changed, since a replaced run becomes the newest
            self.runs.clear()
        for row, record in enumerate(self._records):
            shown = record, record.id in self._resumable
            if row == len(self._shown) or self._shown[row][0].id != record.id:
                self.runs.insertItem(row, QListWidgetItem())
                self._shown.insert(row, shown)
            elif self._shown[row] == shown:
                continue
            self._shown[row] = shown
            self._fill(row, *shown)

    def _fill(self, row: int, record: RunRecord, is_resumable: bool) -> None:
        """Show a run in an item of the list."""
        item = self.runs.item(row)
        item.setData(_RUN, record)
        item.setData(_IS_RESUMABLE, is_resumable)
        status = RESUMABLE_TEXT if is_resumable else record.status
        if reason := self.missing_checkpoint(record):
            status += f", {reason}"
        # Computing a title takes a millisecond or two, so other titles are computed when they are scrolled into view.
        title = self.title_of(record) if row < _MADE_AT_ONCE else record.id
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{title}, {record.id}, {status}, {record.message}")
        item.setToolTip(tip_text(f"{title}\n{_tip(record, status)}"))

    def _read(self) -> str:
        """Read the runs of the project and return the error, or ''."""
        self._resumable = frozenset()
        if self.project is None:
            self._records = []
            return ""
        try:
            self._records = [self._as_resumed(record) for record in self.project.runs()[::-1]]
            self._resumable = self.project.resumable() - {record.id for record in self._records if record.status in ("queued", "running")}
        except ProteoscopeError as error:
            if is_project(self.project.folder):
                return str(error)
            # The folder is missing, so unfinished runs cannot finish.
            self._records = [_failed(record) if record.status in ("queued", "running") else record for record in self._records]
            return "The folder of this project is missing: it was deleted or moved, or its disk was disconnected."
        return ""

    def _as_resumed(self, record: RunRecord) -> RunRecord:
        """Return a copy of the record with the status "running" if a job is resuming this stopped run.

        Otherwise return the record itself.
        """
        assert self.project is not None
        if record.status in ("failed", "cancelled") and self.is_resuming(self.project.folder, record.id):
            return replace(record, status="running", message="resuming", finished=None)
        return record

    @property
    def selected_run(self) -> RunRecord | None:
        """The selected run, or None if none or several are selected."""
        records = self.selected_runs
        return records[0] if len(records) == 1 else None

    @property
    def selected_runs(self) -> list[RunRecord]:
        """The selected runs, oldest first."""
        items = sorted(self.runs.selectedItems(), key=self.runs.row, reverse=True)
        return [item.data(_RUN) for item in items]

    def select(self, run_id: str) -> None:
        """Select a run by its id, with the same effect as a click on it."""
        for i in range(self.runs.count()):
            item = self.runs.item(i)
            if item.data(_RUN).id == run_id:
                self.runs.scrollToItem(item)
                # This may end the editing of a title; when the title is saved, the list gets new items.
                self.runs.setCurrentItem(item, QItemSelectionModel.SelectionFlag.ClearAndSelect)
                return

    def mark(self, run_ids: Collection[str]) -> None:
        """Select exactly the given runs, whose results or details are already shown, without emitting signals."""
        if {record.id for record in self.selected_runs} == set(run_ids):
            return
        self.runs.blockSignals(True)
        self.runs.clearSelection()
        for item in (self.runs.item(row) for row in range(self.runs.count())):
            if item.data(_RUN).id in run_ids:
                if not self.runs.selectedItems():
                    self.runs.setCurrentItem(item, QItemSelectionModel.SelectionFlag.NoUpdate)
                item.setSelected(True)
        self.runs.blockSignals(False)
        self._offer_actions()

    def _offer_actions(self) -> None:
        """Enable the actions that can be applied to the selected runs."""
        self._offer_comparison()
        record = self.selected_run
        is_resumable = record is not None and record.id in self._resumable
        self.resume_button.setVisible(is_resumable)
        self.resume_action.setEnabled(is_resumable)
        self.resume_action.setToolTip("Continue this run from where it stopped, with the same files and parameters")

    def missing_checkpoint(self, record: RunRecord) -> str:
        """Return the reason why a stopped run cannot be resumed, as the end of a sentence; '' for all other runs."""
        return missing_checkpoint(record, self._resumable)

    def title_of(self, record: RunRecord) -> str:
        """Return the title that the user gave to a run, or else a description of the search and its results."""
        key = record.id, record.status
        if key not in self._titles:
            if self.project is None:
                return record.id

            try:
                search = search_of_kind(record.kind)
            except ProteoscopeError:
                search = None
            try:
                title = self.project.note(record.id).title or views.run_account.run_title(self.project, record, search)
            except ProteoscopeError:
                return record.id
            self._titles[key] = title
        return self._titles[key]

    def refresh_titles(self) -> None:
        """Read the titles of runs again, for example after renaming a run."""
        self._titles.clear()
        self.refresh()
        for row, shown in enumerate(self._shown[:_MADE_AT_ONCE]):
            self._fill(row, *shown)
        self.runs.viewport().update()

    def _of_selected(self, signal: SignalInstance) -> None:
        if self.selected_run is not None:
            signal.emit(self.selected_run)

    def _offer_comparison(self) -> None:
        """Enable the comparison if two or more comparable runs are selected."""
        records = self.selected_runs
        run = self.selected_run
        self.about_action.setEnabled(run is not None)
        self.about_button.setVisible(run is not None)
        can_write = self.project is not None and not self.project.read_only
        self.discard_action.setEnabled(can_write and run is not None and run.status not in ("queued", "running"))
        self.compare_button.setVisible(len(records) > 1)
        self.compare_action.setText(f"&Compare {len(records)} runs" if len(records) > 1 else "&Compare runs")
        reason = self._comparison_problem(records)
        self.compare_action.setEnabled(not reason)
        self.compare_action.setToolTip(reason or "Compare the results of these runs")

    def _comparison_problem(self, records: list[RunRecord]) -> str:
        """Return the reason why these runs cannot be compared, or ''."""
        if len(records) < 2 or self.project is None:
            return "Select two or more runs with Ctrl or Shift"
        # The comparison module is only loaded when needed.

        if len(records) > views.run_comparison.MAXIMUM_RUNS:
            return f"Up to {views.run_comparison.MAXIMUM_RUNS} runs can be compared"
        for record in records:
            if record.status != "done":
                return f"{record.id} has no results ({record.status})"
            try:
                if not views.run_comparison.has_matches([result.name for result in self.project.results(record.id)]):
                    return f"{record.id} has no tables of PSMs, peptides and protein groups to compare"
            except ProteoscopeError as error:
                return str(error)
        return ""

    def _choose(self) -> None:
        self._offer_actions()
        record = self.selected_run
        if record is not None:
            self.run_chosen.emit(record)
        else:
            self.runs_chosen.emit(self.selected_runs)


class _RunDelegate(QStyledItemDelegate):
    """Item delegate that draws a run in three lines: state and title, date, result."""

    def __init__(self, parent: QWidget, title_of: Callable[[RunRecord], str]) -> None:
        super().__init__(parent)
        self._title_of = title_of

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:  # noqa: N802
        return QSize(160, option.fontMetrics.height() * 3 + 2 * _MARGIN + 4)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        record: RunRecord = index.data(_RUN)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        palette, rect = option.palette, option.rect
        if is_selected:
            painter.fillRect(rect, palette.color(QPalette.ColorRole.Highlight))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, palette.color(QPalette.ColorRole.AlternateBase))
        text = palette.color(QPalette.ColorRole.HighlightedText if is_selected else QPalette.ColorRole.Text)
        faint = text if is_selected else QColor(colours().faint_text)
        is_resumable = bool(index.data(_IS_RESUMABLE))
        icon_name, tone = _STATE_ICONS["cancelled" if is_resumable else record.status]
        tint = text if is_selected else QColor(getattr(colours(), tone))
        line = option.fontMetrics.height()
        painter.drawPixmap(rect.left() + _MARGIN, rect.top() + _MARGIN, pixmap(icon_name, line, tint, painter.device().devicePixelRatioF()))
        left = rect.left() + _MARGIN + line + 6
        space = QRect(left, rect.top() + _MARGIN, rect.right() - left - _MARGIN, line + 1)
        font = option.font
        status_text = RESUMABLE_TEXT if is_resumable else run_text(record)
        tone_of_text = tint if record.status == "failed" and not is_resumable else faint
        title = self._title_of(record)
        lines = ((title, text, True), (_when(record.started), faint, False), (status_text, tone_of_text, False))
        for i, (content, colour, is_bold) in enumerate(lines):
            font.setBold(is_bold)
            painter.setFont(font)
            painter.setPen(colour)
            shown = painter.fontMetrics().elidedText(content, Qt.TextElideMode.ElideRight, space.width())
            painter.drawText(space.translated(0, i * (line + 1)), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)


def run_text(record: RunRecord) -> str:
    """Return the message of a run, or its status."""
    return record.message or record.status


def _failed(record: RunRecord) -> RunRecord:
    return replace(record, status="failed", message="the project folder is missing")


def _when(moment: datetime) -> str:
    local = QDateTime.fromMSecsSinceEpoch(int(moment.timestamp() * 1000))
    return QLocale().toString(local, QLocale.FormatType.ShortFormat)


def _wide_button(action: QAction) -> QToolButton:
    """Return a button for the space below the list. It is hidden until its action can be applied."""
    button = action_button(action, Qt.ToolButtonStyle.ToolButtonTextOnly)
    button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    button.hide()
    return button


def _tip(record: RunRecord, status: str) -> str:
    lines = [record.id, f"{status}: {record.message}" if record.message else status, f"started {_when(record.started)}"]
    if record.finished is not None:
        lines.append(f"took {(record.finished - record.started).total_seconds():.0f} s")
    if record.version:
        lines.append(f"version {record.version}, {record.device}")
    return "\n".join(lines)
