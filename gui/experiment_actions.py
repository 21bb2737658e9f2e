"""Actions of the window on the experiment of the open project: show its page, add runs, search, resume and cancel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from proteoscope.engine import views
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs import Job, ProgressEvent
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import RecordedFiles
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui import experiments
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import AddRunsTask, ExperimentTask, QualityPageTask, SearchTask
from proteoscope.gui.undo import Change

if TYPE_CHECKING:
    from proteoscope.engine.views.experiment_runs import ExperimentState
    from proteoscope.gui.experiments.run_manager import RunManager
    from proteoscope.gui.window_frame import WindowFrame


class ExperimentActions(QObject):
    """Owner of the page of the experiment.

    Parameters
    ----------
    window : WindowFrame
        Window with the page.

    Signals
    -------
    results_requested
        Project folder and id of the run whose results are to be shown.
    comparison_requested
        Records of the runs to compare.
    """

    results_requested = Signal(Path, str)
    comparison_requested = Signal(list)

    def __init__(self, window: WindowFrame) -> None:
        super().__init__(window)
        self._window = window
        self.made_page: RunManager | None = None
        """The page, or None before its first use."""
        self._project: Project | None = None
        self._worker = TableWorker(None, self)
        tasks = window.tasks
        tasks.bridge.added.connect(lambda _: self._follow())
        tasks.bridge.progressed.connect(self._on_progress)
        tasks.ended.connect(self._on_ended)

    @property
    def page(self) -> RunManager:
        """The page of the experiment, created on first use."""
        if self.made_page is None:
            window = self._window
            page = self.made_page = experiments.run_manager.RunManager()
            window.pages.addWidget(page)
            page.results_requested.connect(self._show_results)
            page.add_requested.connect(self.add_runs)
            page.search_requested.connect(self.show_form)
            page.quantify_requested.connect(self.quantify)
            page.comparison_requested.connect(self.compare)
            page.resume_requested.connect(self.resume)
            page.cancel_requested.connect(self.cancel)
            page.page_requested.connect(self._write_page)
            page.undo_offered.connect(self._offer_undo)
            page.failed.connect(window.show_error)
            page.message.connect(window.show_briefly)
        return self.made_page

    def show(self, project: Project | None) -> None:
        """Show the page with the experiment of a project."""
        page = self.page
        if project is not self._project:
            self._project = project
            page.show_project(project)
        else:
            page.refresh()
        self._follow()
        self._window.show_page(page)

    def leave_project(self) -> None:
        """Empty the page before another project is opened."""
        self._worker.cancel()
        self._project = None
        for dialog in self._window.findChildren(experiments.add_dialog.AddRunsDialog) if self.made_page is not None else ():
            dialog.close()
        if self.made_page is not None:
            self.made_page.show_project(None)

    def close(self) -> None:
        """Release all tables and end running work."""
        self._worker.close()
        if self.made_page is not None:
            self.made_page.clear()

    def add_runs(self) -> None:
        """Open the dialog that adds runs."""
        if self._project is not None:
            window = self._window
            dialog_type = experiments.add_dialog.AddRunsDialog
            dialog = window.findChild(dialog_type) or dialog_type(window.inspector, window.bridge, self._project.folder, window)
            if not dialog.isVisible():
                dialog.task_requested.connect(lambda task: dialog.follow(window.tasks.add(task)))
                dialog.cancel_requested.connect(window.queue.cancel)
            dialog.show()
            dialog.activateWindow()

    def show_form(self, kind: str) -> None:
        """Show the form of a search for the runs of the experiment."""
        if self._project is not None:
            self._window.searches[kind].form.search_experiment(self._project.folder)
            self._window.show_search_form(kind)

    def quantify(self) -> None:
        """Show the form of the quantification, with the finished runs and the design of the experiment."""
        if self._project is not None:
            state = self.page.state
            done = tuple(run for run, status in state.status.items() if status == "done")
            design, parameters = views.quantity_design.experiment_design([row for row in state.rows if state.status[row.run] == "done"])
            form = self._window.searches["quantify"].form
            form.reuse_settings(self._project.folder, FormPrefill(parameters=parameters), done, uses_project=True)
            form.designs["design"].restore(design)  # as soon as the files of the runs are known
            self._window.show_search_form("quantify")

    def compare(self, runs: list[str]) -> None:
        """Show the comparison of runs."""
        if self._project is not None:
            records = {run.id: run for run in self._project.runs()}
            self.comparison_requested.emit([records[run] for run in runs if run in records])

    def resume(self) -> None:
        """Queue the search of the unfinished runs, with the settings of the finished runs."""
        project = self._project
        if project is not None and self._job() is None:
            state = self.page.state
            self._worker.submit("task", lambda: resumed_task(project, state), self._add, lambda error: self._window.show_error(str(error)))

    def cancel(self) -> None:
        """Cancel the search of the experiment."""
        job = self._job()
        if job is not None:
            self._window.queue.cancel(job)

    def _add(self, task: ExperimentTask) -> None:
        self._window.message_bar.clear()
        self._window.tasks.add(task)

    def _job(self) -> Job | None:
        """Return the queued or running job that searches the experiment, or None."""
        return None if self._project is None else self._window.tasks.job_of_experiment(self._project.folder)

    def _follow(self, event: ProgressEvent | None = None) -> None:
        if self.made_page is not None:
            job = self._job()
            self.made_page.follow(event, "" if job is None else job.state.capitalize())

    def _on_progress(self, job: Job, event: ProgressEvent) -> None:
        if self.made_page is not None and job is self._job():
            self._follow(event)
            self.made_page.refresh_soon()

    def _on_ended(self, job: Job, task: object) -> None:
        folder = None if self._project is None else self._project.folder
        if self.made_page is None or folder is None:
            return
        if isinstance(task, ExperimentTask) and task.project_folder == folder and job.state == "done":
            self.made_page.failures = {outcome.run: outcome.message for outcome in job.result if outcome.status == "failed"}
        self._follow()
        if isinstance(task, AddRunsTask | ExperimentTask | SearchTask):
            self.made_page.refresh()

    def _show_results(self, run: str) -> None:
        if self._project is not None:
            self.results_requested.emit(self._project.folder, run)

    def _write_page(self, path: Path) -> None:
        if self._project is not None:
            self._window.message_bar.clear()
            self._window.tasks.add(QualityPageTask(self._project.folder, path))

    def _offer_undo(self, text: str, change: Change) -> None:
        window = self._window
        window.message_bar.show_message(text, "attention", "Undo", partial(window.undo_stack.take_back, change))


def resumed_task(project: Project, state: ExperimentState) -> ExperimentTask:
    """Return the task that searches the unfinished runs of an experiment, with settings and databases of the last finished run.

    Raises
    ------
    InputError
        If no run is finished, or a database has changed or is missing.
    """
    done = [run for run in project.runs(state.kind) if run.status == "done" and run.id in state.status]
    if not done:
        raise InputError(project.folder, "has no finished run of the experiment", remedy="Start the search with the form")
    search, inputs = search_of_kind(state.kind), project.inputs(done[-1].id)
    parameters = search.model.checked(search.recorded_parameters(project, done[-1]))
    recorded, files = RecordedFiles(inputs), dict[str, list[Path]]()
    for file in inputs:
        if file.kind != "spectra" and file.kind in {spec.name for spec in search.inputs}:
            recorded.check(file.path)  # the record of an untrusted project may name any file
            files.setdefault(file.kind, []).append(file.path)
    request = SearchRequest({"spectra": [], **files}, parameters, project=project.folder)
    return ExperimentTask(SearchTask(search, "", request))
