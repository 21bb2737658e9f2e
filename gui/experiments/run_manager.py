"""Page that lists the runs of an experiment with their status; the user can filter, group, edit, remove and search runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QProgressBar, QWidget

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.experiments.table import ExperimentRow, remove_runs
from proteoscope.engine.jobs import ProgressEvent
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPERIMENT
from proteoscope.engine.results.counts import counted
from proteoscope.engine.searches import EXPERIMENT_KINDS, search_of_kind
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.experiment_runs import (
    EXPERIMENT_RUNS,
    RUN_GROUPS,
    STATUSES,
    ExperimentState,
    PlacedRows,
    RunField,
    change_experiment,
    read_experiment_state,
    restore_rows,
    run_conditions,
    set_values,
)
from proteoscope.engine.views.run_comparison import MAXIMUM_RUNS
from proteoscope.engine.views.tables import ResultTables
from proteoscope.gui.actions import delayed, make_action
from proteoscope.gui.buttons import PrimaryButton, push_button, text_button
from proteoscope.gui.elided_label import ReadoutLabel, TitleLabel
from proteoscope.gui.experiments.quality_pages import ProteinsPage, QualityPage
from proteoscope.gui.labels import described, field_label, show_text, toned_label
from proteoscope.gui.layouts import in_column, in_row, make_tabs, widget_with
from proteoscope.gui.panes import split
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.undo import Change, record

_REFRESH_MS = 500
_EMPTY = "This project has no experiment yet. Add runs: spectrum files, or a table of them."
_FIELDS: tuple[RunField, ...] = ("sample", "condition")


class RunFilterBar(FilterBar):
    """Filter bar for the runs of an experiment: text, status, and the column by which runs are grouped."""

    def __init__(self) -> None:
        super().__init__("Run, sample, condition or result", "Show only runs with this text in any column", "Show all runs, without groups")
        choices = [("any status", None), *((status, status) for status in STATUSES)]
        self.status = self._choices("Status", "Show only runs with this status", choices)
        groups = (("none", None), ("condition", "condition"), ("sample", "sample"))
        self.group = self._choices("Group by", "List conditions or samples; a selected one shows only its runs", groups)
        self._add(self.status, "Stat&us")
        self._add(self.group, "&Group by")

    def begin(self) -> None:
        """Reset the fields for another project, without emitting a signal."""
        self._reset_quietly()
        self.begin_history()

    def _reset_own_fields(self) -> None:
        self.status.setCurrentIndex(0)
        self.group.setCurrentIndex(0)


class RunManager(QWidget):
    """Page with the runs of the experiment of the open project.

    Signals
    -------
    results_requested
        Id of a finished run whose results are to be shown.
    add_requested, resume_requested, cancel_requested
        The user wants to add runs, to resume the search of unfinished runs, or to cancel it.
    search_requested
        Kind of the search whose form is to be shown for the runs.
    quantify_requested
        The finished runs are to be quantified.
    comparison_requested
        Ids of the runs to compare.
    page_requested
        Path of an HTML file on the quality of the runs.
    undo_offered
        Text about a removal, and its `Change`.
    failed, message
        Error text, and text for the status bar.
    """

    MANUAL = "experiments"
    """Name of the manual page about this page."""

    results_requested = Signal(str)
    add_requested = Signal()
    search_requested = Signal(str)
    quantify_requested = Signal()
    comparison_requested = Signal(list)
    resume_requested = Signal()
    cancel_requested = Signal()
    page_requested = Signal(Path)
    undo_offered = Signal(str, object)
    failed = Signal(str)
    message = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Experiment")
        self._project: Project | None = None
        self.state = ExperimentState(())
        self.failures: Mapping[str, str] = {}
        """Reasons why runs failed in this session before the project recorded them, by run."""
        self._progress = ""
        self._is_running = False
        self._tables: ResultTables | None = None
        self._worker = TableWorker(None, self)
        self._refreshing = delayed(self, self.refresh, _REFRESH_MS)
        self.filters = RunFilterBar()
        self.runs = TablePanel("Runs", EXPERIMENT_RUNS.columns, ("run", "status"))
        self.groups = TablePanel("Groups", RUN_GROUPS.columns, ())
        self.groups.hide()
        self.quality, self.proteins = QualityPage(), ProteinsPage()
        self.name = TitleLabel("Experiment", scale=1.3)
        self.summary = QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.problem = toned_label(tone="wrong", is_hidden=True)
        self.bar = described(QProgressBar(textVisible=False), "Progress of the experiment")
        self.stage = ReadoutLabel("Stage of the search")
        self.add_button = push_button("&Add runs…", self.add_requested.emit, "add", "Add spectrum files or a table of them")
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.search_actions = {
            kind: make_action(menu, f"{search_of_kind(kind).name.capitalize()}…", partial(self.search_requested.emit, kind))
            for kind in EXPERIMENT_KINDS
        }
        menu.addActions(list(self.search_actions.values()))
        self.search_button = push_button("&Search", None, "search", "Open the form with the settings of the search of each run")
        self.search_button.setMenu(menu)
        self.quantify_button = push_button(
            "&Quantify…", self.quantify_requested.emit, "quantify", "Open the form with the finished runs and the design of the experiment"
        )
        self.resume_button = PrimaryButton("Resume", "run")
        self.resume_button.setToolTip("Search the runs that are not finished, with the settings and databases of the finished runs")
        self.resume_button.clicked.connect(self.resume_requested)
        self.cancel_button = push_button("&Cancel", self.cancel_requested.emit, "cancel", "Stop the search; finished runs remain")
        self.selected = toned_label(wrap=False)
        self.fields = {name: described(QLineEdit(), f"{name.capitalize()} of the selected runs") for name in _FIELDS}
        self.set_buttons = {
            name: text_button("Set", f"Set the {name} of the selected runs (Enter)", partial(self.set_field, name), f"Set {name}")
            for name in _FIELDS
        }
        self.remove_action = make_action(
            self.runs.view,
            "&Remove from the experiment",
            self.remove,
            "Del",
            tip="Remove the selected runs; results remain",
            icon="remove",
        )
        self.compare_action = make_action(self.runs.view, "&Compare", lambda: self.comparison_requested.emit(self.selected_runs))
        self.show_action = make_action(self.runs.view, "Show &results", self._show_current, tip="Show the results (double click)")
        self._lay_out()
        self._connect()
        self._offer()
        self.follow(None, "")

    @property
    def is_busy(self) -> bool:
        """True while runs are being read, filtered or sorted."""
        parts = (self._worker, self.runs.model, self.groups.model, self.quality, self.proteins)
        return self._refreshing.isActive() or any(part.is_busy for part in parts)

    @property
    def selected_runs(self) -> list[str]:
        """Ids of the selected runs, in the shown order."""
        return list(dict.fromkeys(self.state.rows[row].run for row in self.runs.view.selected))

    def show_project(self, project: Project | None) -> None:
        """Show the experiment of a project; None for no project."""
        self.clear()
        self._project = project
        for page in (self.quality, self.proteins):
            page.show_project(project)
        self.filters.begin()
        self.name.setText("Experiment" if project is None else f"Experiment in {project.folder.name}")
        self.refresh()

    def clear(self) -> None:
        """Remove all rows and cancel running work."""
        self._refreshing.stop()
        self._worker.close()
        for page in (self.quality, self.proteins):
            page.clear()
        for panel in (self.runs, self.groups):
            panel.close_table()
        if self._tables is not None:
            self._tables.close()
        self._project = self._tables = None
        self.state, self.failures = ExperimentState(()), {}

    def refresh(self) -> None:
        """Read the runs again in the background."""
        self._refreshing.stop()
        project, failures, progress = self._project, self.failures, self._progress
        if project is None:
            self._show(ExperimentState(()))
            return

        def read() -> ExperimentState:
            state = read_experiment_state(project, failures)
            return state.with_progress(progress) if progress else state

        self._worker.submit("state", read, self._show, self._show_problem)

    def refresh_soon(self) -> None:
        """Read the runs again in half a second, unless this is pending already."""
        if not self._refreshing.isActive():
            self._refreshing.start()

    def follow(self, event: ProgressEvent | None, text: str) -> None:
        """Show the progress of the search of the experiment.

        `event` is the latest progress, or None. `text` is the state of the job, such as ``Queued``; '' if no search is queued or
        running.
        """
        self._is_running = bool(text)
        for widget in (self.bar, self.stage, self.cancel_button):
            widget.setVisible(self._is_running)
        share = f" {100 * event.done // event.total} %" if event is not None and event.total > 0 else ""
        self._progress = f"{event.stage}{share}" if event is not None else ""
        n_over = sum(self.state.counts[status] for status in ("done", "failed"))
        self.bar.setRange(0, max(1, len(self.state.status)))
        self.bar.setValue(n_over)
        self.stage.setText(self._progress or text)
        self._offer()

    def set_field(self, name: RunField) -> None:
        """Set the sample or condition of the selected runs to the text of its field."""
        runs, text = self.selected_runs, self.fields[name].text()
        if runs:
            self._change(f"set the {name} of {counted(len(runs), 'run')}", lambda rows: set_values(rows, runs, name, text))

    def remove(self) -> None:
        """Remove the selected runs from the experiment, and offer to undo this."""
        runs = self.selected_runs
        if not runs or not self.remove_action.isEnabled():
            return
        what = f"remove {counted(len(runs), 'run')}"
        change = self._change(what, lambda rows: remove_runs(rows, runs))
        if change is not None:
            names = runs[0] if len(runs) == 1 else counted(len(runs), "run")
            verb = "was" if len(runs) == 1 else "were"
            self.undo_offered.emit(f"{names} {verb} removed from the experiment; results remain in the project.", change)

    def _change(self, text: str, change: Callable[[list[ExperimentRow]], list[ExperimentRow]]) -> Change | None:
        """Change the rows of the experiment, add the change to the undo history and return it; None after an error or without a change."""
        project = self._project
        assert project is not None
        try:
            runs, before, after = change_experiment(project, change)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return None
        self.refresh()
        if not runs:
            return None

        def restore(placed: PlacedRows) -> None:
            change_experiment(project, lambda rows: restore_rows(rows, runs, placed))
            self.refresh()

        result = Change(text, self, before, after, restore)
        record(result)
        return result

    def _show(self, state: ExperimentState) -> None:
        before, self.state = self.state, state
        show_text(self.problem, "")
        counts = state.counts
        parts = [f"{counts[status]:,} {status}" for status in STATUSES if counts[status]]
        self.summary.setText(f"{counted(len(state.status), 'run')}: {', '.join(parts)}" if parts else "")
        if self._project is not None and (self._tables is None or state != before):
            self._show_rows(before)
        self.bar.setMaximum(max(1, counts.total()))
        self.bar.setValue(counts["done"] + counts["failed"])
        self._offer()
        if state.rows != before.rows or state.counts["done"] != before.counts["done"]:
            for page in (self.quality, self.proteins):
                page.kind = state.kind
                page.outdate()

    def _show_rows(self, before: ExperimentState) -> None:
        """Show the rows of the new state; the selection remains if only statuses have changed, and filter and order do not use these."""
        assert self._project is not None
        is_new = self._tables is None
        if self._tables is None:
            self._tables = ResultTables({})
        path = self._project.folder / EXPERIMENT
        self._tables.put(EXPERIMENT_RUNS.name, path, self.state.runs_table())
        uses_status = bool(self.filters.text.text() or self.filters.status.currentData())
        uses_status |= any(name in ("status", "message") for name, _ in self.runs.model.order)
        if is_new:
            self.runs.open_table(self._tables.source(EXPERIMENT_RUNS.name))
            self._filter()
        elif self.state.rows == before.rows and not uses_status:
            self.runs.model.reread()
        else:
            if self.state.rows != before.rows:
                self.runs.clear_choice()
            self.runs.show_rows()
        self._show_groups()

    def _show_groups(self) -> None:
        by, tables = self.filters.group.currentData(), self._tables
        self.groups.setVisible(by is not None)
        if by is None or tables is None or self._project is None:
            self.groups.close_table()
            if self.runs.scope:
                self.runs.show_rows(scope=())
            return
        table = self.state.groups_table(by)
        is_same = self.groups.scope_text == f"by {by}" and self.groups.total == len(table)
        tables.put(RUN_GROUPS.name, self._project.folder / EXPERIMENT, table)
        if is_same:
            self.groups.model.reread()
            return
        self.groups.open_table(tables.source(RUN_GROUPS.name))
        self.groups.show_rows(scope=(), scope_text=f"by {by}")
        self.groups.all_button.hide()
        self.runs.show_rows(scope=())

    def _filter(self) -> None:
        self.runs.show_rows(filter=run_conditions(self.filters.text.text(), self.filters.status.currentData()))
        self._show_groups()

    def _choose_group(self, row: int, values: Mapping[str, Any]) -> None:
        by, name = self.filters.group.currentData(), str(values["name"])
        if by is not None:
            self.runs.show_rows(scope=[compares(by, "=", name)], scope_text=f"of {by} {name}" if name else f"without {by}")

    def _show_all(self) -> None:
        self.groups.clear_choice()
        self.runs.show_rows(scope=())

    def _show_problem(self, error: Exception) -> None:
        self._show(ExperimentState(()))
        show_text(self.problem, str(error))

    def _show_current(self) -> None:
        row = self.runs.view.chosen
        if row is not None and row < len(self.state.rows):
            run = self.state.rows[row].run
            if self.state.status[run] == "done":
                self.results_requested.emit(run)
            else:
                self.message.emit(f"{run} has no results: {self.state.messages.get(run) or self.state.status[run]}")

    def _open_row(self, index: QModelIndex) -> None:
        if index.isValid():
            self._show_current()

    def _offer(self) -> None:
        """Enable the actions that suit the selected runs and the state of the experiment."""
        runs = [run for run in self.selected_runs if run in self.state.status]
        project, counts = self._project, self.state.counts
        can_change = project is not None and not project.read_only and not self._is_running
        self.selected.setText(f"{counted(len(runs), 'selected run')}:")
        names = set(runs)
        chosen = [row for row in self.state.rows if row.run in names]
        for name, line in self.fields.items():
            values = list(dict.fromkeys(getattr(row, name) for row in chosen))
            if not line.hasFocus():
                line.setText(values[0] if len(values) == 1 else "")
            line.setPlaceholderText(f"{len(values)} different" if len(values) > 1 else "")
            for widget in (line, self.set_buttons[name]):
                widget.setEnabled(can_change and bool(runs))
        self.remove_action.setEnabled(can_change and bool(runs))
        self.show_action.setEnabled(len(runs) == 1)
        self.add_button.setEnabled(can_change)
        reason = self._comparison_problem(runs)
        self.compare_action.setEnabled(not reason)
        self.compare_action.setToolTip(reason or "Compare the results and parameters of the selected runs")
        n_left = counts.total() - counts["done"]
        self.search_button.setEnabled(can_change and bool(n_left))
        for kind, action in self.search_actions.items():
            action.setEnabled(self.state.kind in ("", kind))
            action.setToolTip("" if action.isEnabled() else f"The finished runs are of the {search_of_kind(self.state.kind).name}")
        self.quantify_button.setEnabled(can_change and bool(counts["done"]))
        self.resume_button.setEnabled(can_change and bool(n_left) and n_left < counts.total())

    def _comparison_problem(self, runs: list[str]) -> str:
        """Return the reason why these runs cannot be compared, or ''."""
        if not 2 <= len(runs) <= MAXIMUM_RUNS:
            return f"Select 2 to {MAXIMUM_RUNS} runs"
        return next((f"{run} has no results ({self.state.status[run]})" for run in runs if self.state.status[run] != "done"), "")

    def _connect(self) -> None:
        self.filters.filterChanged.connect(self._filter)
        self.runs.view.selectionModel().selectionChanged.connect(self._offer)
        self.runs.view.doubleClicked.connect(self._open_row)
        self.runs.view.message.connect(self.message)
        self.runs.view.failed.connect(self.failed)
        self.runs.model.orderChanged.connect(self._offer)
        self.runs.allRequested.connect(self._show_all)
        self.runs.view.set_empty_text(lambda: "" if self._worker.is_busy else "No run passes the filter" if self.state.rows else _EMPTY)
        self.groups.rowChosen.connect(self._choose_group)
        self.groups.choiceLost.connect(lambda: self.runs.show_rows(scope=()))
        self.quality.page_requested.connect(self.page_requested)
        for page in (self.quality, self.proteins):
            page.failed.connect(self.failed)
            page.message.connect(self.message)
        for name, line in self.fields.items():
            line.returnPressed.connect(partial(self.set_field, name))

    def _lay_out(self) -> None:
        for action in (self.show_action, self.compare_action, self.remove_action):
            self.runs.add_action(action)
        buttons = (self.add_button, self.search_button, self.quantify_button, self.resume_button)
        head = in_row((self.name, 1), *buttons, margins=(10, 8, 8, 4), spacing=8)
        running = in_row(self.summary, (self.bar, 1), self.stage, self.cancel_button, margins=(10, 0, 8, 4), spacing=8)
        edits: list[QWidget] = [self.selected]
        for name, line in self.fields.items():
            edits += [field_label(f"{'S' if name == 'sample' else 'C'}{name[1:]}", line), line, self.set_buttons[name]]
        edit_row = in_row(*edits, margins=(8, 4, 8, 6), spacing=6)
        tables = split(Qt.Orientation.Horizontal, {self.groups: 2, self.runs: 5})
        runs = widget_with(in_column(self.filters, (tables, 1), edit_row, spacing=0))
        self.tabs = make_tabs((runs, "Runs", ""), (self.quality, "Quality", ""), (self.proteins, "Proteins", ""))
        self.problem.setContentsMargins(10, 0, 8, 4)
        in_column(head, running, self.problem, (self.tabs, 1), on=self, spacing=0)
