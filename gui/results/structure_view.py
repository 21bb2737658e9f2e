"""The results of a structure search: queries -> hits -> superposition, with thresholds that are counted, and the alignment drawn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.entry import Search
from engine.structure_search.entry import STRUCTURE_SEARCH
from engine.structure_search.hit_chains import HitChains
from gui.alignment.aligned_pair import AlignedPair
from gui.alignment.alignment_view import AlignmentView
from gui.alignment.structure_pair import StructurePair
from gui.icons import set_icon
from gui.results.finished_run import FinishedRun
from gui.results.query_hits_view import QueryHitsView
from gui.results.structure_filter import StructureFilterBar
from gui.results.structure_hits import (
    StructureSummary,
    hit_of_row,
    structure_conditions,
    structure_facts,
    structure_pair,
    structure_summary,
    threshold_columns,
)
from gui.tables.source import Condition, TableSource
from gui.tasks import SuperpositionTask

__all__ = ["StructureView"]

_MOST_NAME_LETTERS = 40


class StructureView(QueryHitsView):
    """Shows a finished structure search."""

    def __init__(self, search: Search = STRUCTURE_SEARCH, parent: QWidget | None = None) -> None:
        self.filters = StructureFilterBar()
        alignment = AlignmentView(copy_tip="Copy the alignment as text, with secondary structure")
        super().__init__(search, self.filters, alignment, parent)
        self._chains: HitChains | None = None
        self._last_folder = ""
        self.superpose_action = QAction("Su&perpose and save…", self)
        self.superpose_action.setToolTip("Save both structures superposed, with the alignment and scripts for PyMOL and ChimeraX")
        self.superpose_action.triggered.connect(lambda: self.ask_for_superposition())
        # Qt takes the dots from the text of a button.
        self.superpose_action.setIconText("Superpose and save…")
        set_icon(self.superpose_action, "save")
        self.alignment.add_action(self.superpose_action)
        self.hits.view.add_action(self.superpose_action)
        tables = self._split(Qt.Orientation.Horizontal, {self.queries: 3, self.hits: 7})
        down = self._split(Qt.Orientation.Vertical, {tables: 5, self.alignment: 6})
        self._arrange({"down": down, "tables": tables}, (self.alignment,))
        self.alignment.show_pair(None)

    def ask_for_superposition(self) -> None:
        """Ask for a folder, and have the chosen hit written into it."""
        pair = self.alignment.plot.pair
        if not isinstance(pair, StructurePair):
            return
        dialog = QFileDialog(self, "Superpose and save: folder to make", self._last_folder)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(["Folder with coordinates, alignment and scripts (*)"])
        dialog.setLabelText(QFileDialog.DialogLabel.FileName, "Folder:")
        dialog.selectFile(_file_name(f"{pair.query_name}_{pair.subject_name}"))

        def ask(name: str) -> None:
            self._last_folder = str(Path(name).parent)
            task = self.superposition(Path(name), pair)
            if task is not None:
                self.exportAsked.emit(task)

        dialog.fileSelected.connect(ask)
        dialog.open()

    def superposition(self, folder: Path, pair: StructurePair) -> SuperpositionTask | None:
        """What writes a hit of the run that is shown into a folder."""
        run = self._finished
        return None if run is None else SuperpositionTask(run.inputs, _least_confidence(run), pair.hit, folder)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open()
        self._begin_with_queries()
        self._statistician.submit("summary", lambda: structure_summary(source), partial(self._show_summary, run), self._fail_softly)

    def _show_summary(self, run: FinishedRun, found: StructureSummary) -> None:
        locale = QLocale()
        pairs = f"{locale.toString(found.n_aligned)} pair{'' if found.n_aligned == 1 else 's'} of chains"
        self._tell_counts(found.n_hits, found.n_queries, found.n_with_hits, found.query, f", among {pairs}")
        self.header.show_facts(structure_facts(run, locale))

    def _forget(self) -> None:
        super()._forget()
        self._chains = None
        self.filters.show_columns(None)

    def _conditions(self) -> list[Condition]:
        return structure_conditions(self.filters.chosen)

    def _filter(self) -> None:
        self.hits.show_rows(filter=self._conditions())

    def _scoped(self, query: int | None) -> None:
        source = self._statistics
        if source is not None:
            self._statistician.submit("columns", lambda: threshold_columns(source, query), self.filters.show_columns, self._fail_softly)

    def _pair(self, run: FinishedRun, source: TableSource, row: int) -> AlignedPair:
        if self._chains is None:
            self._chains = HitChains(run.inputs, _least_confidence(run))
        return structure_pair(hit_of_row(source, row), self._chains)


def _least_confidence(run: FinishedRun) -> float:
    return float(run.parameters["least_confidence"])


def _file_name(name: str) -> str:
    # Names of chains may hold what a disk does not take.
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in name[: 2 * _MOST_NAME_LETTERS])
