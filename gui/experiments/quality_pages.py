"""Pages on the quality of the runs of an experiment: figures over the runs with a table, and a heat map of proteins by runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QSizeF, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.jobs import Progress, ProgressEvent
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPERIMENT
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Drawing
from proteoscope.engine.views.experiment_figures import FIGURE_SIZE, QUALITY_FIGURES, cluster_proteins, draw_protein_heat, draw_quality
from proteoscope.engine.views.experiment_quality import QUALITY, QUALITY_NOTES, ProteinCounts, experiment_quality, protein_counts
from proteoscope.engine.views.quantity_clusters import MAXIMUM_ROWS, HeatMap
from proteoscope.engine.views.tables import ResultTables
from proteoscope.gui.buttons import push_button
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.sections import Columns
from proteoscope.gui.layouts import in_column, in_row, make_scroll_area
from proteoscope.gui.panes import split
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.tables.worker import TableWorker

_CHARACTERS, _LINES = 40, 15
"""Minimum width of a figure next to another in characters, and its minimum height in lines."""
_HEAT_SIZE = QSizeF(520.0, 480.0)


class _ComputedPage(QWidget):
    """Page whose content is computed from the finished runs, in a thread: when the page is first shown, and again after each `outdate`.

    Signals
    -------
    failed, message
        Error text, and text for the status bar.
    """

    failed = Signal(str)
    message = Signal(str)
    _reported = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._project: Project | None = None
        self._is_outdated = True
        self._worker = TableWorker(None, self)
        self._progress = Progress()
        self.kind = ""
        """Kind of search of the runs."""
        self.note = ElidedLabel()
        self._reported.connect(self.note.set_text)

    @property
    def is_busy(self) -> bool:
        """True while the runs are being read."""
        return self._worker.is_busy

    def show_project(self, project: Project | None) -> None:
        """Set the project, whose runs are read when the page is visible."""
        self._project = project
        self.outdate()

    def outdate(self) -> None:
        """Compute the content again, now or when the page is shown."""
        self._is_outdated = True
        if self.isVisible():
            self._begin()

    def clear(self) -> None:
        """Cancel running work and remove the content."""
        self._progress.cancel()
        self._worker.close()
        self._project = None
        self._empty()
        self.note.set_text("")

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Compute the content if it is outdated."""
        super().showEvent(event)
        self._begin()

    def _begin(self) -> None:
        project = self._project
        if project is None or not self._is_outdated:
            return
        self._is_outdated = False
        self._progress.cancel()
        progress = self._progress = Progress(self._report)
        self._worker.submit("runs", lambda: self._compute(project, progress), self._take, self._fail)

    def _report(self, event: ProgressEvent) -> None:
        """Show the progress; called in the thread."""
        self._reported.emit(f"{event.stage}: {event.done:,} of {event.total:,}" if event.total else event.stage)

    def _fail(self, error: Exception) -> None:
        self._is_outdated = True
        self._empty()
        self.note.set_text(str(error))

    def _compute(self, project: Project, progress: Progress) -> Any:
        raise NotImplementedError

    def _take(self, result: Any) -> None:
        raise NotImplementedError

    def _empty(self) -> None:
        raise NotImplementedError


class QualityPage(_ComputedPage):
    """Figures of the quality of the finished runs, and a table of the same numbers; a run selected in one of these is marked in all.

    Signals
    -------
    page_requested
        Path of an HTML file to write.
    """

    page_requested = Signal(Path)

    def __init__(self) -> None:
        super().__init__()
        self._tables: ResultTables | None = None
        self.panel = TablePanel("Finished runs", QUALITY.columns, ())
        self.plots = {figure.name: DrawingView(figure.title, QSizeF(*FIGURE_SIZE)) for figure in QUALITY_FIGURES}
        self.save_button = push_button("Save as &HTML…", self._prompt, "save", "Save figures and table as one HTML file")
        figures = Columns(_CHARACTERS)
        for plot in self.plots.values():
            figures.add(plot)
            plot.targetChosen.connect(self._choose)
            plot.message.connect(self.message)
        self.panel.rowChosen.connect(lambda row, _: self._mark(row))
        self.panel.choiceLost.connect(lambda: self._mark(None))
        self.panel.view.message.connect(self.message)
        self.panel.view.failed.connect(self.failed)
        row = in_row((self.note, 1), self.save_button, margins=(8, 4, 8, 0))
        parts = split(Qt.Orientation.Vertical, {make_scroll_area(figures): 5, self.panel: 2})
        in_column(row, (parts, 1), on=self, spacing=2)
        self._size_figures()
        self._empty()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Fit the figures to another font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._size_figures()

    def _size_figures(self) -> None:
        for plot in self.plots.values():
            plot.setMinimumHeight(max(round(FIGURE_SIZE[1]), _LINES * self.fontMetrics().height()))

    def _compute(self, project: Project, progress: Progress) -> pa.Table:
        return experiment_quality(project, progress)

    def _take(self, result: pa.Table) -> None:
        self._empty()
        assert self._project is not None
        self._tables = ResultTables({})
        self._tables.put(QUALITY.name, self._project.folder / EXPERIMENT, result)
        self.panel.open_table(self._tables.source(QUALITY.name))
        self.panel.show_rows()
        for figure in QUALITY_FIGURES:
            self.plots[figure.name].show_drawing(partial(draw_quality, figure, result))
        self.save_button.setEnabled(bool(len(result)))
        note = f"{counted(len(result), 'finished run')}; error rates hold within each run. {QUALITY_NOTES.get(self.kind, '')}"
        self.note.set_text(note.rstrip())

    def _empty(self) -> None:
        self.panel.close_table()
        if self._tables is not None:
            self._tables.close()
        self._tables = None
        for plot in self.plots.values():
            plot.show_drawing(None)
            plot.mark(None)
        self.save_button.setEnabled(False)

    def _choose(self, row: object) -> None:
        position = self.panel.model.position_of(row) if isinstance(row, int) else None
        if position is not None:
            self.panel.view.choose(position)

    def _mark(self, row: int | None) -> None:
        for plot in self.plots.values():
            plot.mark(row)

    def _prompt(self) -> None:
        if self._project is not None:
            folder = str(self._project.folder.parent)
            name = f"{self._project.folder.name}_quality.html"
            filters = ("HTML (*.html)",)
            prompt_for_path(
                self, "Save the quality", self.page_requested.emit, "save", folder=folder, filters=filters, name=name, suffix="html"
            )


class ProteinsPage(_ComputedPage):
    """Heat map of the most variable protein groups by runs."""

    def __init__(self) -> None:
        super().__init__()
        self.plot = DrawingView("Heat map of proteins by runs", _HEAT_SIZE)
        self.plot.message.connect(self.message)
        in_column(in_row((self.note, 1), margins=(8, 4, 8, 0)), (self.plot, 1), on=self, spacing=2)

    def _compute(self, project: Project, progress: Progress) -> tuple[ProteinCounts, HeatMap | None]:
        counts = protein_counts(project, MAXIMUM_ROWS, progress)
        progress.stage("Clustering")
        return counts, cluster_proteins(counts)

    def _take(self, result: tuple[ProteinCounts, HeatMap | None]) -> None:
        counts, heat = result

        def draw(width: float, height: float, font_size: float) -> Drawing:
            return draw_protein_heat(counts, heat, width, height, font_size)

        self.plot.show_drawing(draw)
        what = "log2 of the number of PSMs of a protein group per thousand PSMs of the run, for groups in at least a quarter of the runs"
        self.note.set_text(f"{what}. {QUALITY_NOTES.get(self.kind, '')}".rstrip())

    def _empty(self) -> None:
        self.plot.show_drawing(None)
