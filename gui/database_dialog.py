"""Builds a structure database: from which files, where, how far it is, and what was left out and why."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QLocale, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QProgressBar,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from engine.entry import Input
from engine.jobs import Job, ProgressEvent
from gui.bridge import JobBridge
from gui.buttons import PrimaryButton
from gui.forms.field import Outlined
from gui.forms.file_list import FileList
from gui.forms.file_survey import FileSurvey
from gui.forms.numbers import NumberBox
from gui.forms.path_line import FolderLine
from gui.forms.sections import Section
from gui.icons import set_icon
from gui.labels import toned_label
from gui.tasks import DatabaseTask

if TYPE_CHECKING:
    from engine.structures.database import StructureDatabase

__all__ = ["DatabaseDialog", "LeftOut"]

_SOURCES = Input(
    "sources", "Structures", "structures", "FOLDER", "", wanted="structures to put into it", hint="folders or files (PDB, mmCIF, BinaryCIF)"
)
_TITLES = ("File", "Chain", "Left out because it")
_Index = QModelIndex | QPersistentModelIndex


class LeftOut(QAbstractTableModel):
    """(file, chain, reason) of what a database has not taken; cells are made when they are seen."""

    def __init__(self, rows: Sequence[tuple[str, str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = rows

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's default
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's default
        return 0 if parent.isValid() else len(_TITLES)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        is_title = role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal
        return _TITLES[section] if is_title else None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        path, chain, reason = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return (Path(path).name, chain, reason)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{path}\n{reason}"
        return None


class DatabaseDialog(QDialog):
    """Asks what a database is to hold and where, has it built as a job of the window, and tells what became of it.

    Parameters
    ----------
    survey : looks at files. bridge : tells of jobs.

    Signals
    -------
    build_asked : a `DatabaseTask`; whoever queues it calls `follow` with the job. cancel_asked : the `Job` to stop.
    built : the folder of a database that is done.
    """

    build_asked = Signal(object)
    cancel_asked = Signal(object)
    built = Signal(object)

    def __init__(self, survey: FileSurvey, bridge: JobBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("New structure database")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(640, 620)
        self.setAcceptDrops(True)
        self._survey = survey
        self._job: Job | None = None
        self._folder = Path()
        self._is_done = False
        words = toned_label(
            "A structure database is a folder that holds the protein chains of many files, ready to be searched: each file is read once. "
            "Naming the folder of a database again brings it up to date with these files."
        )
        self.sources = FileList(_SOURCES, survey, takes_broken=True)
        self.folder = FolderLine(
            "&Database folder",
            "the folder of the database; it is made where it does not exist",
            "A new or empty folder, or a database to renew",
        )
        self.confidence = NumberBox(0.0, 100.0)
        self.confidence.setAccessibleName("Least pLDDT")
        self.confidence.setToolTip(
            "Residues of predicted structures with a lower pLDDT are left out; 0 takes all, 70 leaves what is confident"
        )
        self._confidence_frame = Outlined(self.confidence)
        self.stage = QLabel()
        self.stage.setTextFormat(Qt.TextFormat.PlainText)
        self.stage.setWordWrap(True)
        self.progress = QProgressBar()
        self.progress.setAccessibleName("How far the database is built")
        self.left_out = QTableView()
        self.build_button = PrimaryButton("Build")
        self.cancel_button = QPushButton("Cancel the build")
        self.close_button = QPushButton("Close")
        self._lay_out(words)
        self.sources.changed.connect(self._suggest_folder)
        for signal in (self.sources.changed, self.folder.changed, self.confidence.lineEdit().textChanged):
            signal.connect(self.check)
        self.build_button.clicked.connect(self.build)
        self.cancel_button.clicked.connect(self._cancel)
        self.close_button.clicked.connect(self.close)
        bridge.started.connect(self._on_started)
        bridge.progressed.connect(self._on_progress)
        bridge.finished.connect(self._on_finished)
        self.check()

    def what_is_missing(self) -> str:
        """Why nothing can be built; empty where it can."""
        if self._job is not None:
            return "It is being built"
        if self.sources.is_empty:
            return "Add the files or folders with the structures"
        if problem := self.sources.problem():
            return problem
        if self.folder.path is None:
            return "Choose a folder for the database"
        if problem := self.folder.problem():
            return problem
        if self.confidence.problem() or not 0.0 <= self.confidence.value() <= 100.0:
            return "Least pLDDT: expected a number from 0 to 100"
        return "" if self.sources.is_examined else "Looking at the files"

    def check(self) -> None:
        """Enable what can be done now, and say what is missing."""
        missing, is_running = self.what_is_missing(), self._job is not None
        self.build_button.setEnabled(not missing)
        self.cancel_button.setEnabled(is_running)
        self._confidence_frame.mark(missing.startswith("Least pLDDT"))
        for widget in (self.sources, self.folder, self.confidence):
            widget.setEnabled(not is_running)
        if not is_running and (missing or not self._is_done):
            self.stage.setText(missing)

    def build(self) -> None:
        """Ask for the build, if it can be done."""
        folder = self.folder.path
        if not self.what_is_missing() and folder is not None:
            self._folder = folder
            self.left_out.hide()
            self.build_asked.emit(DatabaseTask(tuple(self.sources.paths), folder, self.confidence.value()))

    def follow(self, job: Job) -> None:
        """Tell of this job from now on."""
        self._job, self._is_done = job, False
        self.progress.setRange(0, 0)
        self.progress.show()
        self.stage.setText("Waiting for the jobs before it")
        self.check()
        self.cancel_button.setFocus()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._job is None and any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self._survey.all_within([Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()], self.sources.take)

    def _cancel(self) -> None:
        if self._job is not None:
            self.stage.setText("Stopping; what has been read is kept for the next build")
            self.cancel_asked.emit(self._job)

    def _suggest_folder(self) -> None:
        """A folder beside the first source, for who has not named one."""
        paths = self.sources.paths
        if paths and self.folder.path is None:
            self.folder.line.setText(str(paths[0].parent / f"{paths[0].name.partition('.')[0]}_database"))

    def _on_started(self, job: Job) -> None:
        if job is self._job:
            self.stage.setText("Starting")

    def _on_progress(self, job: Job, event: ProgressEvent) -> None:
        if job is self._job:
            locale = QLocale()
            of = f": {locale.toString(event.done)} of {locale.toString(event.total)}" if event.total > 0 else ""
            self.stage.setText(f"{event.stage}{of}")
            self.progress.setRange(0, max(0, event.total))
            self.progress.setValue(event.done)

    def _on_finished(self, job: Job) -> None:
        if job is not self._job:
            return
        self._job = None
        self.progress.hide()
        self._is_done = True
        if job.state == "done":
            self._show_done(job.result)
        else:
            self.stage.setText(str(job.error) if job.state == "failed" else "Cancelled. What was read is kept: build again to go on.")
        self.check()
        (self.close_button if job.state == "done" else self.build_button).setFocus()

    def _show_done(self, database: StructureDatabase) -> None:
        skipped = database.skipped
        text = f"Done: {DatabaseTask.outcome(database, QLocale())}."
        if skipped:
            text += " The list below also stands in skipped.tsv of the folder."
        self.stage.setText(text)
        self.left_out.setModel(LeftOut(skipped, self))
        self.left_out.setVisible(bool(skipped))
        header = self.left_out.horizontalHeader()
        header.resizeSection(0, self.fontMetrics().horizontalAdvance("0" * 24))
        header.resizeSection(1, self.fontMetrics().horizontalAdvance("0" * 8))
        self.built.emit(self._folder)

    def _copy(self) -> None:
        model = self.left_out.model()
        if isinstance(model, LeftOut):
            chosen = sorted(index.row() for index in self.left_out.selectionModel().selectedRows())
            QGuiApplication.clipboard().setText("\n".join("\t".join(model.rows[row]) for row in chosen))

    def _lay_out(self, words: QLabel) -> None:
        card = Section("Structures to put into it")
        card.grid.addWidget(self.sources, 0, 0, 1, 3)
        confidence = QLabel("&Least pLDDT of predicted structures")
        confidence.setBuddy(self.confidence)
        confidence.setToolTip(self.confidence.toolTip())
        line = QHBoxLayout()
        line.addWidget(confidence)
        line.addWidget(self._confidence_frame)
        line.addStretch(1)
        table = self.left_out
        table.setAccessibleName("What was left out")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setAlternatingRowColors(True)
        table.setTabKeyNavigation(False)
        table.setWordWrap(False)
        table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        table.verticalHeader().hide()
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.horizontalHeader().setStretchLastSection(True)
        table.setMinimumHeight(140)
        table.hide()
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self._copy)
        self.progress.hide()
        self.progress.setTextVisible(False)
        set_icon(self.cancel_button, "cancel")
        for button in (self.build_button, self.cancel_button, self.close_button):
            button.setAutoDefault(False)
        self.build_button.setDefault(True)
        self.cancel_button.setToolTip("Stop building; what has been read is kept for the next build")
        self.close_button.setToolTip("Close this dialog; a build that runs goes on")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        for button in (self.build_button, self.cancel_button, self.close_button):
            buttons.addWidget(button)
        page = QVBoxLayout(self)
        page.setSpacing(10)
        page.addWidget(words)
        page.addWidget(card)
        page.addWidget(self.folder)
        page.addLayout(line)
        page.addWidget(self.stage)
        page.addWidget(self.progress)
        page.addWidget(table, 1)
        page.addStretch(0)
        page.addLayout(buttons)
