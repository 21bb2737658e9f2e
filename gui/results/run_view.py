"""Base class of all result views: a header, a filter bar, linked tables, and figures of the selected rows."""
# ruff: noqa: N815 - Qt's way of naming signals

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QDateTime, QLocale, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSplitter, QWidget

from proteoscope.engine.entry import ExportRequest, Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.results.columns import MARK_COLUMNS, Column, Table
from proteoscope.engine.views.annotation import AnnotationChoice
from proteoscope.engine.views.dependent_runs import runs_based_on
from proteoscope.engine.views.finished_run import FinishedRun, open_finished_run
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.actions import make_action
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.dialogs import StructuresDialog
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.prefill import NOTHING, FormPrefill
from proteoscope.gui.icons import set_icon
from proteoscope.gui.layouts import in_column
from proteoscope.gui.panes import PaneView
from proteoscope.gui.results.export import ExportDialog, fitted
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.summary_header import SummaryHeader
from proteoscope.gui.scrolling_layout import PageScroll
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import ExportTask
from proteoscope.gui.words import with_article

_STATE_VERSION = 1


class _Plot(Protocol):
    message: Any


Panels = dict[str, TablePanel]


class RunView(PaneView):
    """View of a finished run of a project.

    Files are opened, queried and read in threads; an error is shown as text in place of the widget that needs the data.

    Derived classes create their widgets and pass them to `_arrange`. They may override `_read` (opens a run, in a thread), and implement
    `_begin` (fills the widgets), `_forget` (empties them) and `_filter` (filters the tables).

    Parameters
    ----------
    search : Search
        Search whose result tables are shown, and whose export formats are offered.
    filter_bar : FilterBar
        Filter bar above the tables.
    parent : QWidget or None
        Owner of the view.
    panels : mapping of str to TablePanel, optional
        Existing widgets of the tables to reuse, by the names of the tables.
    """

    message = Signal(str)
    """Text for the status bar."""
    failed = Signal(str)
    """An error that the user should see, such as a table that was not saved; emitted with its text."""
    opened = Signal()
    """The tables of a run have been opened and are shown."""
    searchRequested = Signal(str, str, object)
    """The user requests a follow-up search; emitted with its kind, the id of the shown run, and a `FormPrefill`."""
    peptideRequested = Signal(str, str)
    """The user requests a peptide in another run; emitted with the id of that run and the peptide in ProForma notation."""
    detailsRequested = Signal(object)
    """The user requests the details page; emitted with the shown `RunRecord`."""
    exportRequested = Signal(object)
    """The user requests an export; emitted with an `ExportTask` (or another task that writes files)."""

    def __init__(self, search: Search, filter_bar: FilterBar, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self._nothing = f"No results yet. Run {with_article(search.name)}, or select a finished run of the project."
        super().__init__(self._nothing, parent)
        self.search = search
        self.setAccessibleName(f"Results of {search.name}")
        self._finished: FinishedRun | None = None
        self._statistics: TableSource | None = None
        self._details: dict[str, TableSource] = {}
        self._project: Project | None = None
        self._opening: str | None = None
        self._export_folder: Path | None = None
        """Folder of the last export, or None to start in the folder that contains the project."""
        self._opener = TableWorker(None, self)
        self._statistician = TableWorker(self._interrupt_statistics, self)
        self._reader = TableWorker(None, self)
        self._deferred = DeferredTasks(self)
        self._annotated: SpectrumView | None = None
        """Spectrum view whose choice of annotated ions is stored in `state`, or None."""
        # Tables are not sorted initially: a search writes its best rows first.
        self.panels = panels or {table.name: self.make_panel(table) for table in self.shown_tables(search)}
        """Table widgets by the names of the tables in the project."""
        self.export_action = QAction("&Export results…", self)
        """Action that exports the results of the run."""
        self.follow_ups: dict[str, QAction] = {}
        """Actions that start follow-up searches, by kind."""
        self._follow_up_tips: dict[str, str] = {}
        self._make_export_action()
        self.header = SummaryHeader()
        self.header.details_requested.connect(lambda: self.detailsRequested.emit(self.run))
        self.header.toggled.connect(self.stateChanged)
        self.filter_bar = filter_bar

    @classmethod
    def shown_tables(cls, search: Search) -> Sequence[Table]:
        """Return the tables that the view shows: the tables of the search, unless a derived class overrides this (see `_read`)."""
        return search.result_tables

    @staticmethod
    def make_panel(table: Table) -> TablePanel:
        """Return a new widget for a table."""
        return TablePanel(table.title, _with_marks(table), table.links)

    @property
    def is_busy(self) -> bool:
        """True while data are being read, or a run is being opened."""
        workers = (self._opener, self._statistician, self._reader)
        is_reading = any(worker.is_busy for worker in workers) or any(panel.model.is_busy for panel in self.panels.values())
        return is_reading or self._deferred.is_busy

    @property
    def is_used(self) -> bool:
        """True if the view shows or is opening a run, and therefore must be cleared."""
        return self._project is not None

    @property
    def run(self) -> RunRecord | None:
        """The shown run, or None."""
        return None if self._finished is None else self._finished.run

    @property
    def run_id(self) -> str | None:
        """Id of the run that is shown or being opened, or None."""
        return self._opening if self.run is None else self.run.id

    def show_run(self, project: Project, run_id: str | None) -> None:
        """Show a finished run in place of the previous one; `run_id` None shows the last finished run of this search."""
        if self.is_used:
            self.clear()
        self._project, self._opening = project, run_id
        self._show_text("Opening the results…")
        self._opener.submit("open", lambda: self._opened(project, run_id), self._open, self._fail)

    def add_messages(self, run_id: str, messages: tuple[str, ...]) -> None:
        """Show additional warnings before the existing messages if `run_id` is the shown run."""
        if self._finished is not None and self._finished.run.id == run_id:
            n_warnings = len(messages) + self._finished.n_warnings
            self._show_messages(self._finished, (*messages, *self._finished.messages), n_warnings)

    def clear(self, text: str = "") -> None:
        """Clear the view, release all files, and cancel running work; show a text, by default that there are no results yet."""
        self._deferred.drop()
        for worker in (self._opener, self._statistician, self._reader):
            worker.close()
        for panel in self.panels.values():
            panel.close_table()
        finished, self._finished = self._finished, None
        self._forget()
        for held in (*self._details.values(), self._statistics, finished):
            if held is not None:
                held.close()
        self._details.clear()
        self._statistics = self._project = self._opening = None
        self._enable_actions(False)
        self.header.show_nothing()
        self.filter_bar.begin_history()
        self._show_text(text or self._nothing)

    def state(self) -> str:
        """Return hidden columns, sizes and other choices of the user as JSON, for storage."""
        return json.dumps(
            {
                "version": _STATE_VERSION,
                "hidden": {name: panel.hidden_columns() for name, panel in self._all_panels.items()},
                **self._panes_state(),
                "about": self.header.about_button.isChecked(),
                **({} if self._annotated is None else {"annotation": self._annotated.annotation.choice.model_dump(mode="json")}),
            }
        )

    def restore_state(self, text: str) -> None:
        """Restore the choices in a text returned by `state`; invalid text is ignored."""
        try:
            state = json.loads(text)
            if state["version"] != _STATE_VERSION:
                return
            hidden = dict(state["hidden"])
        except (ValueError, KeyError, TypeError):
            return
        for name, panel in self._all_panels.items():
            columns = hidden.get(name)
            if isinstance(columns, list) and all(isinstance(column, str) for column in columns):
                panel.remember_columns(columns)
        self._restore_panes_state(state)
        self.header.about_button.setChecked(state.get("about") is True)
        if self._annotated is not None:
            self._annotated.show_choice(AnnotationChoice.restored(state.get("annotation")))

    @property
    def _all_panels(self) -> Mapping[str, TablePanel]:
        """Tables whose hidden columns are stored."""
        return self.panels

    def show_all(self, name: str) -> None:
        """Show all rows of the table `name`, regardless of selections in other tables; the selected row of this table is retained."""
        self.panels[name].show_rows(scope=(), scope_text="")

    def prompt_for_export(self) -> None:
        """Prompt for a format and a file, and request the export of the run's results."""
        run, project = self._finished, self._project
        if run is None or project is None:
            return
        dialog = ExportDialog(run.run.id, self.search.exports, self, self._export_folder or project.folder.parent)

        def on_selected(name: str) -> None:
            target, format = fitted(Path(name), dialog.chosen, self.search.exports)
            self._export_folder = target.parent
            request = ExportRequest(
                run.run.id,
                format.name,
                target,
                consensus=dialog.consensus,
                accepted_only=dialog.accepted_only,
                figures=dialog.figures,
                **self._figure_settings(),
            )
            if format.structure_folders is None:
                self.exportRequested.emit(ExportTask(self.search, project.folder, request))
            else:
                self._prompt_for_structures(project, request, format.structure_folders)

        dialog.fileSelected.connect(on_selected)
        dialog.open()

    def _figure_settings(self) -> dict[str, Any]:
        """Return the settings of the shown figures as keyword arguments of `ExportRequest`."""
        return {}

    def _prompt_for_structures(
        self, project: Project, request: ExportRequest, structure_folders: Callable[[Project, str], list[str]]
    ) -> None:
        """Prompt for permission to read structures outside the project, and request the export."""
        try:
            folders = structure_folders(project, request.run_id)
        except ProteoscopeError as error:
            self.message.emit(str(error))
            return

        def export(*structures: Path) -> None:
            self.exportRequested.emit(ExportTask(self.search, project.folder, replace(request, structures=structures)))

        if not folders:
            export()  # the export then reports that there are no structures
            return
        question = StructuresDialog(folders, self)
        question.read_button.clicked.connect(lambda: export(*map(Path, folders)))
        folder = str(self._export_folder or "")
        question.choose_button.clicked.connect(lambda: prompt_for_path(self, "Structure folder", export, "folder", folder=folder))
        question.open()

    def show_peptide(self, peptide: str) -> None:
        """Select a peptide (in ProForma) when the run is open. Only views of peptides on structures do this; other views do nothing."""

    def offer_search(self, search: Search, text: str) -> None:
        """Add a follow-up search of the shown run to the context menu of every table, and as a button in the header."""
        tip = f"{search.purpose}, using this run"
        action = make_action(self, text, lambda: self._request_search(search.kind), tip=tip, icon=search.icon)
        for panel in self.panels.values():
            panel.view.add_action(action)
        self.header.offer(action)
        self.follow_ups[search.kind], self._follow_up_tips[search.kind] = action, tip
        self._enable_follow_up(search.kind, self._finished is not None)

    def _offer_structures(self, *panels: TablePanel) -> None:
        """Add an action to tables that shows the selected peptide in the newest run that maps these peptides onto structures."""
        for panel in panels:
            self._offer_structure(panel, partial(self._request_structure, panel))

    def _offer_structure(self, panel: TablePanel, use: Callable[[], None]) -> None:
        action = make_action(
            panel.view,
            "Show on its str&ucture",
            use,
            tip="Show the peptide on the structure of its protein, if a run of the project has mapped it",
        )
        panel.view.add_action(action)

    def _request_structure(self, panel: TablePanel) -> None:
        row = panel.view.chosen
        position = None if row is None else panel.model.position_of(row)
        if self._finished is None or position is None:
            self.message.emit("Select a row first.")
            return
        panel.model.when_loaded(position, lambda values: self._request_peptide(str(values["peptide"])))

    def _request_peptide(self, peptide: str) -> None:
        """Request that a peptide is shown in the newest run that maps the peptides of the shown run onto structures."""
        run = self._finished
        if run is None:
            return
        runs = runs_based_on(run.project, run.run.id, "evidence")
        if runs:
            self.peptideRequested.emit(runs[0], peptide)
        else:
            self.message.emit("No run of this project maps these peptides onto structures yet: use Map onto structures… first.")

    def _request_search(self, kind: str) -> None:
        if self._finished is not None:
            prefill = self._prefill_for(kind)
            if prefill is not None:
                self.searchRequested.emit(kind, self._finished.run.id, prefill)

    def _prefill_for(self, kind: str) -> FormPrefill | None:
        """Return the values for the form of a follow-up search, or None if it cannot start now."""
        return NOTHING

    @property
    def _panel_with_buttons(self) -> TablePanel:
        """Table above which common actions are shown as buttons; all other tables have these actions only in their context menus."""
        return next(reversed(self.panels.values()))

    def _offer_action(self, action: QAction) -> None:
        shown = self._panel_with_buttons
        for panel in self.panels.values():
            if panel is not shown:
                panel.view.add_action(action)
        shown.add_action(action)

    def _enable_actions(self, is_shown: bool) -> None:
        self.export_action.setEnabled(is_shown and bool(self.search.exports))
        for kind in self.follow_ups:
            self._enable_follow_up(kind, is_shown)

    def _enable_follow_up(self, kind: str, is_shown: bool) -> None:
        why_not = self._disabled_reason(kind) if is_shown else ""
        self.follow_ups[kind].setEnabled(is_shown and not why_not)
        self.follow_ups[kind].setToolTip(why_not or self._follow_up_tips[kind])

    def _disabled_reason(self, kind: str) -> str:
        """Return the reason why follow-up searches of this kind cannot use the shown run, or ''."""
        return ""

    def _make_export_action(self) -> None:
        """Add the export to the context menu of every table, and as a button above one table."""
        if self.search.exports:
            formats = "; ".join(export.title for export in self.search.exports)
            self.export_action.setToolTip(f"Save the results of the whole run (Ctrl+Shift+E): {formats}")
            self.export_action.triggered.connect(lambda: self.prompt_for_export())
            set_icon(self.export_action, "save")
            self._offer_action(self.export_action)
        self.export_action.setEnabled(False)

    def _read(self, project: Project, run_id: str | None) -> FinishedRun:
        """Open a run. Called in a thread."""
        return open_finished_run(project, self.search, run_id)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        """Show a run whose tables are open; only the statistics thread (`_statistician`) may use `source`."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Empty the widgets and close their sources; the run's files are closed afterwards."""
        raise NotImplementedError

    def _filter(self) -> None:
        """Apply the current filter to the tables."""
        raise NotImplementedError

    def _no_rows_text(self, panel: TablePanel) -> str:
        """Return the text shown in a table without rows that pass the filter."""
        return f"None of the {QLocale().toString(panel.total)} {panel.plural} pass the filter. Reset the filter to see them."

    def _arrange(self, splitters: Mapping[str, QSplitter], plots: tuple[_Plot, ...] = ()) -> None:
        """Lay out the view and connect the common signals.

        Parameters
        ----------
        splitters : mapping of str to QSplitter
            All splitters by the name under which their sizes are stored; the first splitter contains all others.
        plots : tuple
            Figures whose signal `message` is forwarded.
        """
        shown = QWidget()
        in_column(self.header, self.filter_bar, (next(iter(splitters.values())), 1), on=shown, spacing=0)
        # Small windows and large fonts need scrolling.
        self._add_panes(PageScroll(shown), splitters)
        self.filter_bar.filterChanged.connect(self._filter)
        for name, panel in self.panels.items():
            panel.allRequested.connect(partial(self.show_all, name))
            self._connect_table(panel)
            panel.view.set_empty_text(partial(self._empty_reason, panel))
            panel.wantedHidden.connect(partial(self._report_hidden, panel))
        for plot in plots:
            plot.message.connect(self.message)
            if isinstance(plot, SpectrumView):
                self._annotated = plot
                plot.choiceChanged.connect(self.stateChanged)

    def _connect_table(self, panel: TablePanel) -> None:
        """Store hidden columns of a table, and forward its messages."""
        panel.view.columnsChanged.connect(partial(self._store_columns, panel))
        panel.view.message.connect(self.message)
        panel.view.failed.connect(self.failed)

    def _fail(self, error: Exception) -> None:
        self._show_text(str(error))

    def _table(self, run: FinishedRun, name: str) -> TableSource:
        """Return a table of the shown run for the thread of `_reader`; it is opened once and closed with the run."""
        if name not in self._details:
            self._details[name] = run.tables.source(name)
        return self._details[name]

    def _fail_softly(self, error: Exception) -> None:
        self.failed.emit(str(error))

    def _opened(self, project: Project, run_id: str | None) -> tuple[FinishedRun, dict[str, TableSource], TableSource]:
        """Return the run, a source for each table, and a source for statistics. Called in a thread, since opening a source is slow."""
        run = self._read(project, run_id)
        try:
            sources = {name: panel.prepare(run.tables.source(name)) for name, panel in self.panels.items()}
            return run, sources, run.tables.source(next(reversed(self.panels)))
        except ProteoscopeError:
            run.close()
            raise

    def _open(self, opened: tuple[FinishedRun, dict[str, TableSource], TableSource]) -> None:
        run, sources, self._statistics = opened
        self._finished = run
        for name, panel in self.panels.items():
            panel.open_table(sources[name])
        self._show_messages(run, run.messages, run.n_warnings)
        # Together, these steps would block the window. The text is shown until the last one, since tables without rows look empty.
        self._deferred.add(partial(self._begin, run, self._statistics), self._show_opened)

    def _show_opened(self) -> None:
        self._show_panes()
        self._enable_actions(True)
        self.filter_bar.begin_history()
        self.opened.emit()

    def _show_messages(self, run: FinishedRun, messages: tuple[str, ...], n_warnings: int) -> None:
        start_time = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(run.run.started.timestamp())), QLocale.FormatType.ShortFormat)
        self.header.show_run(f"{run.run.id}, {start_time}", messages, n_warnings)

    def _choose_row(self, panel: TablePanel, row: int) -> None:
        """Select a row by its index in the file, as if the user had clicked it."""
        position = panel.model.position_of(row)
        if position is None:
            self._report_hidden(panel)
        else:
            panel.view.choose(position)

    def _report_hidden(self, panel: TablePanel) -> None:
        self.message.emit(f"The row is hidden in {panel.title} by the filter. Reset the filter to see it.")

    def _store_columns(self, panel: TablePanel) -> None:
        panel.remember_columns(panel.view.hidden_columns())
        self.stateChanged.emit()

    def _empty_reason(self, panel: TablePanel) -> str:
        if panel.error:
            return panel.error
        if self._finished is None or panel.model.is_busy:
            return ""
        if panel.total == 0:
            return f"The search found no {panel.plural}."
        if panel.scope_text:
            return f"No {panel.plural} {panel.scope_text} pass the filter."
        return self._no_rows_text(panel)

    def _interrupt_statistics(self) -> None:
        if self._statistics is not None:
            self._statistics.interrupt()


def _with_marks(table: Table) -> tuple[Column, ...]:
    """Return the columns of a table; if its rows can be marked, the column of stars is first, and the column of comments last."""
    if not table.takes_marks:
        return table.columns
    star, comment = MARK_COLUMNS
    return (star, *table.columns, comment)
