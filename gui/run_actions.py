"""Actions on a run of the open project: show, annotate, resume, reuse settings, report, open folder, delete and undo."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from proteoscope.engine import views
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.project import Project, RunNote, RunRecord
from proteoscope.gui import results
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.project_pane import run_text
from proteoscope.gui.resuming import resume_task
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import ReportTask
from proteoscope.gui.undo import Change, UndoStack

if TYPE_CHECKING:
    from proteoscope.engine.views.run_account import RunAccount
    from proteoscope.gui.message_bar import MessageBar
    from proteoscope.gui.project_pane import ProjectPane
    from proteoscope.gui.results.run_page import RunPage
    from proteoscope.gui.searches import SearchPages
    from proteoscope.gui.task_queue import TaskQueue

_OF_PROJECT = "project_"


class RunActions(QObject):
    """Actions of the window on runs.

    Signals
    -------
    page_made
        The page of run details has been created.
    page_shown
        The page of run details is to be shown.
    results_requested
        Run whose results are to be shown.
    comparison_requested
        Runs to compare.
    form_shown
        Search kind of the form that is to be shown.
    resumed
        A stopped run is being resumed.
    deleted
        A deleted run. Its results are still open.
    failed
        An action has failed; emitted with the error text.
    message
        Text for the status bar.
    """

    page_made = Signal(object)
    page_shown = Signal()
    results_requested = Signal(RunRecord)
    comparison_requested = Signal(list)
    form_shown = Signal(str)
    resumed = Signal()
    deleted = Signal(RunRecord)
    failed = Signal(str)
    message = Signal(str)

    def __init__(
        self,
        pane: ProjectPane,
        searches: dict[str, SearchPages],
        tasks: TaskQueue,
        bar: MessageBar,
        undo_stack: UndoStack,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._pane, self._searches, self._tasks, self._bar, self._undo_stack = pane, searches, tasks, bar, undo_stack
        self.made_page: RunPage | None = None
        """The page of run details, or None before its first use."""
        self._reader = TableWorker(None, self)
        self._deleted: dict[Path, list[str]] = {}
        self._deletion_text = ""
        """Text of the message that offers to undo the last deletion."""
        self._report_folder = ""
        pane.about_requested.connect(self.show_page)
        pane.resume_requested.connect(self.resume)
        pane.discard_requested.connect(self.delete)

    @property
    def page(self) -> results.run_page.RunPage:
        """The page of run details, created on first use."""
        if self.made_page is None:
            page = self.made_page = results.run_page.RunPage()
            page.noted.connect(self._note)
            page.results_requested.connect(lambda: self._of_shown(self.results_requested.emit))
            page.again_requested.connect(lambda: self._of_shown(self.search_again))
            page.report_requested.connect(lambda: self._of_shown(self.prompt_for_report))
            page.folder_requested.connect(self._open_folder)
            page.delete_requested.connect(lambda: self._of_shown(self.delete))
            page.compare_requested.connect(
                lambda other: self._of_shown(
                    lambda run: self.comparison_requested.emit(sorted((run, other), key=lambda record: record.started))
                )
            )
            page.message.connect(self.message)
            self.page_made.emit(page)
        return self.made_page

    @property
    def is_busy(self) -> bool:
        """True while a run is being read."""
        return self._reader.is_busy

    @property
    def shown_run(self) -> RunRecord | None:
        """The run on the page of run details, or None."""
        page = self.made_page
        return None if page is None or page.account is None else page.account.run

    def stop_reading(self) -> None:
        """Discard the details that are being read; called when another page or run is shown."""
        self._reader.cancel()

    def leave_project(self) -> None:
        """Store edits of the shown run and empty the page, before another project is opened."""
        self.save_note()
        self.stop_reading()
        if self.made_page is not None:
            self.made_page.account = None

    def show_page(self, run: RunRecord) -> None:
        """Show the details of a run."""
        project = self._pane.project
        if project is not None:
            self.save_note()
            self._reader.submit("account", lambda: self._read(project, run), self._show, lambda error: self.failed.emit(str(error)))

    def _read(self, project: Project, run: RunRecord) -> tuple[RunAccount, list[RunRecord], bool]:
        """Return the details of a run, the runs comparable with it, and True if the project is writable. Called in a background thread."""
        pages = self._searches.get(run.kind)
        names = [result.name for result in project.results(run.id)]
        others = []
        if views.run_comparison.has_matches(names):
            others = [
                comparable_run for comparable_run in views.run_comparison.comparable_runs(project)[::-1] if comparable_run.id != run.id
            ]
        return views.run_account.run_account(project, run, None if pages is None else pages.search), others, not project.read_only

    def _show(self, read: tuple[RunAccount, list[RunRecord], bool]) -> None:
        account, others, can_write = read
        self.save_note()
        self.page.show_account(account, [(other, self._pane.title_of(other)) for other in others], can_write=can_write)
        self.page.again_button.setEnabled(account.run.kind in self._searches)
        self.page_shown.emit()

    def save_note(self) -> None:
        """Store the edited title and note of the shown run."""
        if self.made_page is not None:
            self.made_page.save_note()

    def _of_shown(self, act: object) -> None:
        if self.page.account is not None:
            self.page.save_note()
            act(self.page.account.run)  # type: ignore[operator]

    def _note(self, note: RunNote) -> None:
        project, account = self._pane.project, self.page.account
        if project is None or account is None:
            return
        run = account.run
        try:
            before = project.note(run.id)
            project.set_note(run.id, note)
        except ProteoscopeError as error:
            self.page.show_problem(str(error))
            return
        self.page.show_problem("")
        self._pane.refresh_titles()
        field = "title" if note.title != before.title else "note"
        what = f"{'rename' if field == 'title' else 'edit the note of'} run {run.label}"
        self._undo_stack.add(Change(what, self, before, note, partial(self._restore_note, project, run), field=(run.id, field)))

    def _restore_note(self, project: Project, run: RunRecord, note: RunNote) -> None:
        """Store and show an earlier title and note (undo and redo)."""
        project.set_note(run.id, note)
        self._pane.refresh_titles()
        self.show_page(run)

    def show_no_results(self, run: RunRecord) -> None:
        """Show the reason why a run of the open project has no results, with a button that resumes it if possible."""
        why = run_text(run) if run.kind in self._searches else "this version of the program cannot show this kind of run"
        if reason := self._pane.missing_checkpoint(run):
            why += f"; {reason}"
        if self._pane.resume_action.isEnabled():
            self._bar.show_message(
                f"This run has no results yet ({why}); it can be resumed", "attention", "Resume", partial(self.resume, run)
            )
        else:
            self._bar.show_message(f"This run has no results: {why}", "attention")

    def resume(self, run: RunRecord) -> None:
        """Queue a job that resumes a stopped run of the open project."""
        project = self._pane.project
        if project is None or self._tasks.is_resuming(project.folder, run.id):
            return
        try:
            task, lost = resume_task(project, run.id)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self._bar.clear()
        if lost:
            self._bar.show_message(lost, "attention")
        self.resumed.emit()
        self._tasks.add(task)
        self._pane.refresh()

    def search_again(self, run: RunRecord) -> None:
        """Show the search form, filled with the files and parameters of a run."""
        project, pages = self._pane.project, self._searches.get(run.kind)
        if project is None or pages is None:
            return
        try:
            inputs = project.inputs(run.id)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        model, names = pages.search.model, {input_spec.name for input_spec in pages.search.inputs}
        given = {name: value for name, value in run.parameters.items() if name in model.model_fields}
        try:
            values = model.checked(given).model_dump()
        except ParameterError:
            values = given
        files = {name: tuple(record.path for record in inputs if record.kind == name) for name in names}
        tables = {record.kind: record.path for record in inputs if record.kind in pages.form.designs}
        # A check box that replaces the files of an input was checked if the run recorded none.
        options = {spec.instead: not files[spec.name] for spec in pages.search.inputs if spec.instead in pages.form.options}
        prefill = FormPrefill({name: paths for name, paths in files.items() if paths}, values, tables=tables, options=options)
        uses_project = any(record.kind.startswith(_OF_PROJECT) for record in inputs)
        source_run = given.get("run", "")
        if not isinstance(source_run, str):
            source_run = tuple(source_run)
        pages.form.reuse_settings(project.folder, prefill, source_run, uses_project=uses_project)
        self.form_shown.emit(run.kind)

    def prompt_for_report(self, run: RunRecord) -> None:
        """Open a dialog for the folder of a report on a run."""
        project, pages = self._pane.project, self._searches.get(run.kind)
        if project is None or pages is None:
            return

        def on_selected(folder: Path) -> None:
            self._report_folder = str(folder)
            self._bar.clear()
            self._tasks.add(ReportTask(pages.search, project.folder, run, folder))

        folder = self._report_folder or str(project.folder.parent)
        prompt_for_path(self.made_page, "Folder for the report", on_selected, "folder", folder=folder)

    def _open_folder(self) -> None:
        account = self.page.account
        if account is not None and account.folder is not None and not QDesktopServices.openUrl(QUrl.fromLocalFile(str(account.folder))):
            self.message.emit(f"The folder is {account.folder}")

    def delete(self, run: RunRecord) -> None:
        """Delete a run and show a message with an Undo button."""
        project = self._pane.project
        if project is None:
            return
        title = self._pane.title_of(run)
        self.save_note()
        try:
            followers = [
                record.id
                for record in project.runs()
                if any(_is_of(path.path, run) for path in project.inputs(record.id)) and record.id != run.id
            ]
            self._set_deleted(project, run, True)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        change = Change(f"delete run {run.label}", self, False, True, partial(self._set_deleted, project, run))
        self._undo_stack.add(change)
        loses = f" Runs that used its results will no longer show its spectra: {', '.join(followers)}." if followers else ""
        self._deletion_text = f"{title} was deleted.{loses}"
        self._bar.show_message(self._deletion_text, "attention", "Undo", lambda: self._undo_stack.take_back(change))

    def _set_deleted(self, project: Project, run: RunRecord, is_deleted: bool) -> None:
        """Delete a run, or restore and select a deleted run."""
        deleted = self._deleted.setdefault(project.folder, [])
        if is_deleted:
            project.delete_run(run.id)
            deleted.append(run.id)
            self.deleted.emit(run)
            if self.made_page is not None:
                self.made_page.account = None
            self._pane.refresh()
        else:
            project.restore_run(run.id)
            deleted.remove(run.id)
            if self._bar.label.text() == self._deletion_text:
                self._bar.clear()
            self._pane.refresh()
            self._pane.select(run.id)

    def close(self) -> None:
        """Store an edited note, and remove deleted runs permanently."""
        self.save_note()
        self._reader.close()
        for folder, runs in self._deleted.items():
            try:
                if runs:
                    Project.open(folder).remove_deleted(runs)
            except ProteoscopeError:
                # Opening the project the next time removes them.
                continue
        self._deleted.clear()


def _is_of(path: Path, run: RunRecord) -> bool:
    return path.parent.name == run.id and path.suffix == ".parquet"
