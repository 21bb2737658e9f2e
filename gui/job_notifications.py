"""Notifications about finished jobs: errors, written files and results."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from proteoscope.engine.jobs import Job
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.tasks import SearchTask, WritingTask
from proteoscope.gui.window_frame import WindowFrame


class JobNotifications(QObject):
    """Notifier that shows the outcome of finished jobs.

    Parameters
    ----------
    window : WindowFrame
        Window that shows the notifications.

    Signals
    -------
    results_requested
        Project folder and id of the run whose results are to be shown.
    library_search_requested
        `FormPrefill` for searching the library that was built.
    """

    results_requested = Signal(Path, str)
    library_search_requested = Signal(object)

    def __init__(self, window: WindowFrame) -> None:
        super().__init__(window)
        self._window = window
        self.is_awaited = False
        """True if the user has not changed a form since queueing a search, so that its results are shown as soon as it ends."""

    def notify(self, job: Job, task: SearchTask | WritingTask) -> None:
        """Show the outcome of a job, unless it was cancelled."""
        window = self._window
        if job.state == "failed" and job.error_report:
            window.show_unexpected_error(f"{job.title} failed: {job.error}", job.error_report)
        elif job.state == "failed":
            window.message_bar.show_message(str(job.error), "wrong", "Show log", window.show_log)
        elif job.state == "done":
            if isinstance(task, SearchTask):
                self._notify_search(job, task)
            else:
                self._notify_writing(job, task)

    def _notify_search(self, job: Job, task: SearchTask) -> None:
        """Show the results of a search. If the user has started another action, show only a button that opens the results."""
        window, show = self._window, partial(self.results_requested.emit, task.project_folder, job.result.run_id)
        page, pane = window.pages.currentWidget(), window.project_pane
        results = next((results for results in window.made_results() if results is page), None)
        is_selected = (
            pane.project is not None
            and pane.project.folder == task.project_folder
            and pane.selected_run is not None
            and pane.selected_run.id == job.result.run_id
        )
        # A page of results is left only if it is empty because the selected run had no results until now.
        if self.is_awaited and (results is None or (results.run is None and is_selected)) and window.queue.is_idle:
            show()
        else:
            window.message_bar.show_message(self._outcome(job), "good", "Show results", show)

    def _notify_writing(self, job: Job, task: WritingTask) -> None:
        made = task.library_search()
        if made is None:
            self._window.message_bar.show_message(self._outcome(job), "good")
        else:
            search = partial(self.library_search_requested.emit, FormPrefill(*made))
            self._window.message_bar.show_message(self._outcome(job), "good", "Search spectra in it", search)

    def _outcome(self, job: Job) -> str:
        return f"{job.title}: {self._window.tasks.outcome(job)}"
