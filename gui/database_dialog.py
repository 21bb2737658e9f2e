"""Dialog that builds a structure database and lists the skipped chains."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QLocale, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLabel, QTableView, QWidget

from proteoscope.engine.entry import Input
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.forms.numbers import NumberBox
from proteoscope.gui.forms.path_line import FolderLine
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.job_dialog import JobDialog
from proteoscope.gui.labels import described, field_label, tip_text, toned_label
from proteoscope.gui.layouts import STRETCH, in_row
from proteoscope.gui.tasks import DatabaseTask

if TYPE_CHECKING:
    from proteoscope.engine.structures.database import StructureDatabase

_SOURCES = Input(
    "sources", "Structures", "structures", "FOLDER", "", wanted="input structures", hint="folders or files (PDB, mmCIF, BinaryCIF)"
)
_TITLES = ("File", "Chain", "Reason skipped")
_Index = QModelIndex | QPersistentModelIndex


class SkippedChains(QAbstractTableModel):
    """Table model of the skipped chains of a database: file, chain, reason."""

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
            return tip_text(f"{path}\n{reason}")
        return None


class DatabaseDialog(JobDialog):
    """Dialog for the selection of structures and a folder; it runs a `DatabaseTask` as a job of the window and shows the result.

    Parameters
    ----------
    inspector : FileInspector
        Inspector that determines the types of files.
    bridge : JobBridge
        Bridge that reports job events.

    Signals
    -------
    built
        Folder of the finished database.
    """

    MANUAL = "structures"
    """Name of the manual page about this dialog."""

    built = Signal(object)

    stopping = "Stopping; structures read so far are cached for the next build"
    cancelled = "Cancelled. Structures read so far are cached: build again to continue."

    def __init__(self, inspector: FileInspector, bridge: JobBridge, parent: QWidget | None = None) -> None:
        self.sources = FileList(_SOURCES, inspector, takes_broken=True)
        super().__init__(
            inspector, bridge, self.sources, parent, action="Build", cancel="Cancel the build", progress="Progress of the build"
        )
        self.setWindowTitle("New structure database")
        self.resize(640, 620)
        self._folder = Path()
        words = toned_label(
            "A structure database is a folder with the protein chains of many files, ready to be searched; each file is read only once. "
            "Choose the folder of an existing database to update it with these files."
        )
        self.folder = FolderLine(
            "&Database folder",
            "the folder of the database; created if missing",
            "A new or empty folder, or a database to update",
        )
        self.confidence = described(
            NumberBox(0.0, 100.0),
            "Minimum pLDDT",
            "Residues of predicted structures with a lower pLDDT are skipped; 0 includes all residues, 70 only confident ones",
        )
        self._confidence_frame = Outlined(self.confidence)
        self.left_out = QTableView()
        self._lay_out(words)
        self.sources.changed.connect(self._suggest_folder)
        self.check_on(self.sources.changed, self.folder.changed, self.confidence.lineEdit().textChanged)

    def validation_error(self) -> str:
        """Return the reason why building the database cannot start, or ''."""
        if self.is_running:
            return "The database is being built"
        if self.sources.is_empty:
            return "Add the files or folders with the structures"
        if problem := self.sources.problem():
            return problem
        if self.folder.path is None:
            return "Choose a folder for the database"
        if problem := self.folder.problem():
            return problem
        if self.confidence.problem() or not 0.0 <= self.confidence.value() <= 100.0:
            return "Minimum pLDDT: expected a number from 0 to 100"
        return "" if self.sources.is_examined else "Inspecting files"

    def task(self) -> DatabaseTask:
        """Return the task that builds the database."""
        folder = self.folder.path
        assert folder is not None
        self._folder = folder
        self.left_out.hide()
        return DatabaseTask(tuple(self.sources.paths), folder, self.confidence.value())

    def enable(self, missing: str) -> None:
        """Enable the fields unless a database is being built."""
        self._confidence_frame.mark(missing.startswith("Minimum pLDDT"))
        for widget in (self.sources, self.folder, self.confidence):
            widget.setEnabled(not self.is_running)

    def result_text(self, result: StructureDatabase) -> str:
        """List the skipped chains in the table, and return a text with the size of the database."""
        skipped = result.skipped
        self.left_out.setModel(SkippedChains(skipped, self))
        self.left_out.setVisible(bool(skipped))
        header = self.left_out.horizontalHeader()
        header.resizeSection(0, self.fontMetrics().horizontalAdvance("0" * 24))
        header.resizeSection(1, self.fontMetrics().horizontalAdvance("0" * 8))
        self.built.emit(self._folder)
        more = " The list below is also in skipped.tsv in the folder." if skipped else ""
        return f"Done: {DatabaseTask.outcome(result, QLocale())}.{more}"

    def _suggest_folder(self) -> None:
        """Suggest a folder next to the first source if no folder is entered."""
        paths = self.sources.paths
        if paths and self.folder.path is None:
            self.folder.line.setText(str(paths[0].parent / f"{paths[0].name.partition('.')[0]}_database"))

    def _copy(self) -> None:
        model = self.left_out.model()
        if isinstance(model, SkippedChains):
            chosen = sorted(index.row() for index in self.left_out.selectionModel().selectedRows())
            QGuiApplication.clipboard().setText("\n".join("\t".join(model.rows[row]) for row in chosen))

    def _lay_out(self, words: QLabel) -> None:
        card = Section("Input structures", self.sources)
        confidence = field_label("&Minimum pLDDT of predicted structures", self.confidence)
        confidence.setToolTip(self.confidence.toolTip())
        line = in_row(confidence, self._confidence_frame, STRETCH)
        table = self.left_out
        table.setAccessibleName("Skipped chains")
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
        self.cancel_button.setToolTip("Stop building; structures read so far are cached for the next build")
        self.close_button.setToolTip("Close this dialog; a running build continues")
        self.lay_out(words, card, self.folder, line, self.stage, self.progress, (table, 1), 0)
