"""Main window, which connects project pane, pages, job dock and log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine import views
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs import Job
from proteoscope.engine.project import Project, RunRecord
from proteoscope.gui.closing import Closing
from proteoscope.gui.comparisons import Comparisons
from proteoscope.gui.drag_and_drop import DropHandler
from proteoscope.gui.experiment_actions import ExperimentActions
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.prefill import NOTHING, FormPrefill
from proteoscope.gui.garbage import GarbageCollector
from proteoscope.gui.help.assistance import Assistance
from proteoscope.gui.job_notifications import JobNotifications
from proteoscope.gui.menus import Menus
from proteoscope.gui.recent_projects import RecentProjects
from proteoscope.gui.run_actions import RunActions
from proteoscope.gui.searches import SearchPages
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.side_dialogs import SideDialogs
from proteoscope.gui.task_projects import TaskProjects
from proteoscope.gui.tasks import AdviceTask, ExperimentTask, SearchTask, WritingTask
from proteoscope.gui.theme import Theme, ThemeChoice
from proteoscope.gui.window_frame import WindowFrame
from proteoscope.gui.window_state import WindowState

if TYPE_CHECKING:
    from proteoscope.gui.forms.search_form import SearchForm
    from proteoscope.gui.results.run_view import RunView


class MainWindow(WindowFrame):
    """Main window, which owns the job queue and ends it when it closes."""

    def __init__(self, settings: SettingsFile, theme: Theme) -> None:
        super().__init__()
        self.settings, self.theme = settings, theme
        self.closing = Closing(self, self.queue)
        self._outdated: set[RunView] = set()
        """Views that still show a run of the previous project and will be cleared by deferred tasks."""
        self._garbage = GarbageCollector(lambda: self.queue.is_idle, self)
        self.run_actions = RunActions(self.project_pane, self.searches, self.tasks, self.message_bar, self.undo_stack, self)
        self.experiment_actions = ExperimentActions(self)
        self.comparisons = Comparisons(self.pages, settings, self.deferred, self)
        self.notifications = JobNotifications(self)
        self.window_state = WindowState(self, settings, self.searches, self.tasks)
        searches, docks = [search.search for search in self.searches.values()], (self.dock_project, self.dock_jobs, self.dock_log)
        self.dialogs = SideDialogs(self.searches_from_here, self._project_folder, self.inspector, self.tasks, self)
        self.drag_and_drop = DropHandler(self.searches_from_here, self.inspector, self.message_bar, self)
        self.task_projects = TaskProjects(self._knows_project, self)
        self.menus = Menus(self, self, self.dialogs, searches, docks, self.undo_stack)
        self.assistance = Assistance(self, self.menus.help)
        self.recent_projects = RecentProjects(self.settings, self.inspector, searches, (self.start_page, self.menus))
        self._connect()
        self._restore()
        self.window_state.begin()

    # Projects

    def open_project(self, folder: Path) -> None:
        """Open a project, add it to the recent projects, and show the results of its last run."""
        try:
            project = Project.open(folder)
            done = [run for run in project.runs() if run.status == "done" and run.kind in self.searches]
        except ProteoscopeError as error:
            self.recent_projects.forget(folder)
            self.window_state.save_soon()
            self.show_error(str(error))
            return
        self.message_bar.clear_complaint()
        self._take_project(project)
        if project.problems:
            more = f" ({len(project.problems) - 1} more like this)" if len(project.problems) > 1 else ""
            self.show_error(project.problems[0] + more)
        if views.experiment_runs.has_experiment(project):
            self.show_experiment()
        elif done:
            self.project_pane.select(done[-1].id)
        elif self.pages.currentWidget() is not self.search.made_form:
            self.show_page(self.form)

    def show_experiment(self) -> None:
        """Show the page with the experiment of the open project."""
        self.deferred.finish()
        self.experiment_actions.show(self.project_pane.project)

    def prompt_for_project(self) -> None:
        """Open a dialog for a project folder."""
        recent = self.settings.values.recent_projects
        folder = str(Path(recent[0]).parent) if recent else ""
        prompt_for_path(self, "Open a project", self.open_project, "folder", folder=folder)

    def show_run(self, run: RunRecord) -> None:
        """Show the results of a run of the open project, or the reason why it has none."""
        project = self.project_pane.project
        if project is None:
            return
        search = self.searches.get(run.kind)
        if run.status != "done" or search is None:
            if self.search.made_results is not None:
                self.search.made_results.clear(f"Run {run.label} has no results.")
                self.search.made_results.hide_windows()
            self.run_actions.stop_reading()
            self.run_actions.show_no_results(run)
            if self.pages.currentWidget() in (self.run_actions.made_page, self.comparisons.view, self.selection_page):
                # These pages would otherwise still show other runs.
                self.run_actions.show_page(run)
            return
        self.message_bar.clear_complaint()
        self._clear_outdated(search.results)
        # Results that are already shown are not loaded again, so that filter, selection and scroll position stay.
        if search.results.run != run:
            search.results.show_run(project, run.id)
        self.show_page(search.results)

    def show_selection(self, runs: list[RunRecord]) -> None:
        """Show the page of the selected runs. If no run is selected, show this page only in place of another page about runs."""
        of_runs = (*self.made_results(), self.run_actions.made_page, self.comparisons.view, self.selection_page)
        if runs or self.pages.currentWidget() in of_runs:
            self.message_bar.clear_complaint()
            self.run_actions.stop_reading()
            self.selection_page.show_runs([self.project_pane.title_of(run) for run in runs])
            self.show_page(self.selection_page)

    def _follow_runs(self) -> None:
        """Update a page that shows states of runs after the runs have been read again."""
        page, shown = self.pages.currentWidget(), self.run_actions.shown_run
        if page is self.selection_page:
            runs = self.project_pane.selected_runs
            if len(runs) == 1:
                # All other selected runs have been deleted.
                self.show_run(runs[0])
            else:
                self.show_selection(runs)
        elif page is self.run_actions.made_page and shown is not None:
            run = next((record for record in self.project_pane.records if record.id == shown.id), shown)
            if run.status != shown.status:
                self.run_actions.show_page(run)

    def compare_runs(self, runs: list[RunRecord]) -> None:
        """Show a comparison of runs of the open project."""
        self.deferred.finish()
        if self.project_pane.project is not None:
            self.message_bar.clear_complaint()
            self.show_page(self.comparisons.begin(self.project_pane.project, runs))

    def _show_changed(self, owner: QObject) -> None:
        """Show the page that contains the owner of an undone or redone change, and select its run."""
        position: QObject | None = owner
        while position is not None and not (isinstance(position, QWidget) and self.pages.indexOf(position) >= 0):
            position = position.parent()
        if position is None or position is self.pages.currentWidget():
            return
        run = next((results.run for results in self.made_results() if results is position), None)
        if run is not None:
            self.project_pane.select(run.id)
        self.show_page(position)

    def _clear_deleted_run(self, run: RunRecord) -> None:
        """Clear the views that show a deleted run; if the details of the run are being read, discard them."""
        self.run_actions.stop_reading()
        for results in self.made_results():
            if results.run_id == run.id:
                results.clear()
                results.hide_windows()
        if self.pages.currentWidget() in (self.run_actions.made_page, self.comparisons.view, self.selection_page):
            self.show_page(self.form)
        self.comparisons.close()

    # Searches

    def try_sample(self, kind: str) -> None:
        """Show the form of a search, filled with sample data."""
        self.assistance.samples.begin(kind)

    def show_follow_up_search(self, kind: str, run_id: str, prefill: FormPrefill = NOTHING) -> None:
        """Show the form of a follow-up search that uses the results of a run of the open project."""
        if self.project_pane.project is not None:
            self.searches[kind].form.continue_from(self.project_pane.project.folder, run_id, prefill)
            self.show_search_form(kind)

    def search_library(self, prefill: FormPrefill) -> None:
        """Show the form of the library search, filled with the values in `prefill`, which include a new library."""
        self.searches["library"].form.begin_with(prefill)
        self.show_search_form("library")

    def show_peptide(self, run_id: str, peptide: str) -> None:
        """Show another run of the open project and select a peptide in it."""
        project = self.project_pane.project
        run = next((record for record in project.runs() if record.id == run_id), None) if project is not None else None
        if run is not None:
            self.show_run(run)
            self.searches[run.kind].results.show_peptide(peptide)

    def run_form(self) -> None:
        """Start the search of the current form; if the form is incomplete or invalid, show the reason and focus the field."""
        self.form.check()
        missing = self.form.validation_error()
        if missing:
            self.show_page(self.form)
            self.form.show_problem()
            self.message_bar.hint(f"Nothing to run yet. {missing}.")
        else:
            self.form.run()

    def _run(self, task: SearchTask | ExperimentTask, project: Project) -> None:
        """Queue a search and make its project the open project."""
        self.message_bar.clear()
        self._take_project(project)
        self.form.set_project_folder(project.folder)
        if isinstance(task, ExperimentTask):
            self.tasks.add(task)
            self.show_experiment()
        else:
            self._await_results()
            self.tasks.add(task)

    def _await_results(self) -> None:
        """Show the results of a queued or resumed search as soon as it ends, unless the user has started another action by then."""
        self.notifications.is_awaited = True

    def _knows_project(self, folder: Path) -> bool:
        return self.recent_projects.knows(folder) or self._project_folder() == folder

    def _project_folder(self) -> Path | None:
        project = self.project_pane.project
        return None if project is None else project.folder

    def _refresh_before_prompt(self) -> None:
        self.message_bar.clear_complaint()
        self.project_pane.refresh()

    def _follow_project(self, before: Path, now: Path) -> None:
        """Update all forms after a project has moved to another folder."""
        self.recent_projects.forget(before)
        for form in self.made_forms():
            if form.project_folder() == before:
                form.set_project_folder(now)

    def export(self, task: WritingTask) -> None:
        """Queue an export of results."""
        self.message_bar.clear()
        self.tasks.add(task)

    def prompt_for_export(self) -> None:
        """Open the dialog that exports the shown results of the current search."""
        self.results.prompt_for_export()

    def load_preset(self) -> None:
        """Open a dialog for a preset file to be loaded into the current form."""
        self.form.presets.prompt_for_file()

    def save_preset(self) -> None:
        """Open the dialog that saves the parameters of the current form as a preset file."""
        self.form.presets.prompt_for_path()

    def cancel_running(self) -> None:
        """Cancel the running job."""
        self.tasks.cancel_running()

    # Pages and jobs

    def _reflect_page(self) -> None:
        """Update the menus for the current page, and select the runs that it shows."""
        page = self.pages.currentWidget()
        if page is not self.run_actions.made_page:
            self.run_actions.stop_reading()
        self._mark_shown(page)
        self.menus.form.setChecked(page is self.search.made_form)
        self.menus.results.setChecked(page is self.search.made_results)
        self.menus.experiment.setChecked(page is self.experiment_actions.made_page)
        self.menus.devices.setChecked(page is self.device_page)
        for action in self.menus.of_form:
            action.setEnabled(page is self.search.made_form)
        self._enable_export()

    def _mark_shown(self, page: QWidget | None) -> None:
        """Select in the project pane the runs that a page shows, since pages can be opened without selecting their runs there."""
        results = next((results for results in self.made_results() if results is page), None)
        if results is not None and results.run_id is not None:
            self.project_pane.mark([results.run_id])
        elif page is self.comparisons.view is not None:
            self.project_pane.mark(self.comparisons.view.run_ids)
        elif page is self.run_actions.made_page and self.run_actions.shown_run is not None:
            self.project_pane.mark([self.run_actions.shown_run.id])

    def _enable_export(self) -> None:
        shown = None if self.pages.currentWidget() is self.selection_page else self.search.made_results
        self.menus.export.setEnabled(shown is not None and shown.export_action.isEnabled())

    def open_files(self, paths: Sequence[Path]) -> None:
        """Open a project, or add files to the forms that accept them. A project is given by its folder or its file project.sqlite."""
        folder = paths[0].parent if paths[0].name == "project.sqlite" else paths[0]
        if len(paths) == 1 and (folder / "project.sqlite").is_file():
            self.open_project(folder)
        else:
            self.drag_and_drop.take(paths, 0, None)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802, D102 - Qt's name
        if not self.closing.may_close():
            event.ignore()
            return
        self._garbage.stop()
        self.theme.finish()
        self.deferred.finish()
        self.undo_stack.clear()
        self.comparisons.close()
        self.experiment_actions.close()
        self.run_actions.close()
        self.window_state.end()
        self.inspector.close()
        self.device_page.close_worker()
        for form in self.made_forms():
            form.estimate.stop()
        self.devices.close()
        self.tasks.close()
        self.log.detach()
        for results in self.made_results():
            # Otherwise windows of detached panes would stay open.
            results.restore_panes()
            results.clear()
        event.accept()

    def _on_ended(self, job: Job, task: SearchTask | WritingTask) -> None:
        self.project_pane.refresh()
        if self.project_pane.project is not None and isinstance(task, SearchTask):
            self._remember_project(self.project_pane.project)
        if self.closing.is_agreed:
            self.closing.close_if_idle()
            return
        self.notifications.notify(job, task)
        if job.state != "done":
            return
        # Queued only after the results are shown: this job checks for causes of a low yield.
        if isinstance(task, SearchTask) and (advice := task.advice(job.result)) is not None:
            self.tasks.add(advice)
        elif isinstance(task, AdviceTask):
            self._show_advice(task, job.result)

    def _show_advice(self, task: AdviceTask, warnings: tuple[str, ...]) -> None:
        """Add warnings to the results view of their run, if it is shown."""
        project = self.project_pane.project
        results = self.searches[task.searched.search.kind].made_results
        if project is not None and project.folder == task.project_folder and results is not None:
            results.add_messages(task.run_id, warnings)

    def _show_results_of(self, folder: Path, run_id: str) -> None:
        project = self.project_pane.project
        if project is None or project.folder != folder:
            try:
                self._take_project(Project.open(folder))
            except ProteoscopeError as error:
                self.show_error(str(error))
                return
        run = self.project_pane.selected_run
        if run is not None and run.id == run_id:
            # Selecting the selected run again emits no signal, so show the results here.
            self.show_run(run)
        else:
            self.project_pane.select(run_id)

    def _restore(self) -> None:
        values = self.settings.values
        self.theme.choose(values.theme)
        self.window_state.restore()
        # No job is running yet.
        self.dock_jobs.hide()
        self.job_strip.is_wanted = not values.jobs_closed
        self.recent_projects.show()
        self.menus.themes[values.theme].setChecked(True)
        if values.font_scale in self.menus.font_scales:
            self.menus.font_scales[values.font_scale].setChecked(True)
        self._reflect_page()

    def _take_project(self, project: Project) -> None:
        if self.project_pane.project is not None and self.project_pane.project.folder == project.folder:
            self.project_pane.refresh()
        else:
            self.deferred.finish()
            self.run_actions.leave_project()
            self.experiment_actions.leave_project()
            self.project_pane.show_project(project)
            # Undo steps and error messages belong to the previous project.
            self.undo_stack.clear()
            self.message_bar.clear_complaint()
            # Update the visible page now and defer all other updates, because together they would block the window.
            self._outdated = {results for results in self.made_results() if results.is_used}
            in_sight = self.pages.currentWidget()
            for form in self.made_forms():
                if form is in_sight:
                    form.offer_project(project.folder)
                else:
                    self.deferred.add(partial(form.offer_project, project.folder))
            self.deferred.add(self.comparisons.close, *(partial(self._clear_outdated, results) for results in self._outdated))
        self.setWindowTitle(f"{project.folder.name} – Proteoscope")
        self._remember_project(project)

    def _clear_outdated(self, results: RunView) -> None:
        """Clear a view that still shows a run of the previous project."""
        if results in self._outdated:
            self._outdated.discard(results)
            results.clear()
            results.hide_windows()

    def _remember_project(self, project: Project) -> None:
        self.recent_projects.remember(project.folder, self.project_pane.records)
        self.window_state.save_settings()

    # Theme

    def set_theme(self, choice: ThemeChoice) -> None:
        """Change the theme and store the choice."""
        self.settings.values.theme = choice
        self.theme.change(choice)
        self.window_state.save_soon()

    def _store_wanted_jobs(self, is_wanted: bool) -> None:
        self.settings.values.jobs_closed = not is_wanted
        self.window_state.save_soon()

    def set_font_scale(self, percent: int) -> None:
        """Store the font size, which is used from the next program start."""
        self.settings.values.font_scale = percent
        self.message_bar.show_message(f"The font size will be {percent} % after the next start of the program.", "good")
        self.window_state.save_soon()

    def _redraw(self) -> None:
        for part in (self.start_page, self.run_actions.made_page, self.message_bar, self.jobs, self.log):
            if part is not None:
                part.redraw()
        for form in self.made_forms():
            form.redraw()

    # Construction

    def _connect(self) -> None:
        self.theme.changed.connect(self._redraw)
        self.page_shown.connect(self._reflect_page)
        self.undo_stack.stepping.connect(self.run_actions.save_note)
        self.undo_stack.applied.connect(self._show_changed)
        self.undo_stack.failed.connect(self.show_error)
        self.frame_changed.connect(self.window_state.save_soon)
        self.files_dropped.connect(self.drag_and_drop.take)
        self.start_page.new_requested.connect(self.new_search)
        self.start_page.sample_requested.connect(self.try_sample)
        self.start_page.open_requested.connect(self.prompt_for_project)
        self.start_page.project_chosen.connect(lambda folder: self.open_project(Path(folder)))
        for search in self.searches.values():
            search.form_made.connect(partial(self._take_form, search))
            search.results_made.connect(partial(self._take_results, search))
        for dock in (self.dock_project, self.dock_jobs, self.dock_log):
            dock.visibilityChanged.connect(self.window_state.save_soon)
        self.job_strip.wanted_changed.connect(self._store_wanted_jobs)
        self.device_button.clicked.connect(self.show_devices)
        self.project_pane.run_chosen.connect(self.show_run)
        self.project_pane.runs_chosen.connect(self.show_selection)
        self.project_pane.refreshed.connect(self._follow_runs)
        self.project_pane.comparison_requested.connect(self.compare_runs)
        self.run_actions.page_made.connect(self.pages.addWidget)
        self.run_actions.page_shown.connect(lambda: self.show_page(self.run_actions.page))
        self.run_actions.results_requested.connect(self.show_run)
        self.run_actions.comparison_requested.connect(self.compare_runs)
        self.run_actions.form_shown.connect(self.show_search_form)
        self.run_actions.resumed.connect(self._await_results)
        self.run_actions.deleted.connect(self._clear_deleted_run)
        self.run_actions.failed.connect(self.show_error)
        self.run_actions.message.connect(self.show_briefly)
        self.task_projects.opened.connect(self._run)
        self.task_projects.prompting.connect(self._refresh_before_prompt)
        self.task_projects.moved.connect(self._follow_project)
        self.task_projects.failed.connect(self.show_error)
        self.comparisons.failed.connect(self.show_error)
        self.comparisons.message.connect(self.show_briefly)
        self.notifications.results_requested.connect(self._show_results_of)
        self.experiment_actions.results_requested.connect(self._show_results_of)
        self.experiment_actions.comparison_requested.connect(self.compare_runs)
        self.notifications.library_search_requested.connect(self.search_library)
        self.drag_and_drop.message.connect(self.statusBar().showMessage)
        self.drag_and_drop.project_dropped.connect(self.open_project)
        self.drag_and_drop.page_requested.connect(self.show_page)
        self.dialogs.help_requested.connect(self.assistance.show_setting)
        self.drag_and_drop.failed.connect(self.show_error)
        self.dialogs.task_requested.connect(self.message_bar.clear)
        self.project_pane.is_resuming = self.tasks.is_resuming
        self.tasks.stage_begun.connect(self.project_pane.refresh)
        self.tasks.ended.connect(self._on_ended)
        self.closing.stopping.connect(lambda: self.statusBar().showMessage("Cancelling jobs"))

    def _take_form(self, search: SearchPages, form: SearchForm) -> None:
        """Add a new form to the pages, restore its settings, and set the open project in it."""
        self.pages.addWidget(form)
        form.restore(self.window_state.of_search(search))
        if self.project_pane.project is not None:
            form.offer_project(self.project_pane.project.folder)
        form.run_requested.connect(self.task_projects.open_for)
        form.failed.connect(self.show_error)
        form.touched.connect(self.window_state.save_soon)
        form.touched.connect(partial(self._note_touch, search))
        form.database_requested.connect(partial(self.dialogs.prompt_for_database, search))
        form.parameters.help_requested.connect(partial(self.assistance.show_setting, search.search.manual))

    def _take_results(self, search: SearchPages, results: RunView) -> None:
        self.pages.addWidget(results)
        results.restore_state(self.window_state.of_search(search).results_layout)
        results.exportRequested.connect(self.export)
        results.failed.connect(self.show_error)
        results.stateChanged.connect(self.window_state.save_soon)
        results.searchRequested.connect(self.show_follow_up_search)
        results.peptideRequested.connect(self.show_peptide)
        results.detailsRequested.connect(self.run_actions.show_page)
        results.export_action.enabledChanged.connect(self._enable_export)
        results.message.connect(self.show_briefly)

    def _note_touch(self, search: SearchPages) -> None:
        if search is not self.search:
            # The form is being updated for another project, not by the user.
            return
        self.message_bar.clear_hint()
        self.notifications.is_awaited = False
