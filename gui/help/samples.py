"""Sample data: searches of shipped files, and follow-up searches of their results."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs import Job
from proteoscope.engine.project import Project, is_project
from proteoscope.gui.settings import sample_project
from proteoscope.gui.tasks import SearchTask, WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.window_frame import WindowFrame

__all__ = ["Samples"]


class Samples(QObject):
    """Starts the sample of a search.

    The sample of a follow-up search needs the results of another sample, which may need those of a third. If the sample project has these
    results, the form uses them. Otherwise the form of the first missing search is filled, and the requested search is offered after its
    run.
    """

    def __init__(self, window: WindowFrame) -> None:
        super().__init__(window)
        self._window = window
        self._waiting = ""
        """Kind of the requested search that waits for results, or ''."""
        self._ran_in: Path | None = None
        """Project with its results, if the user has chosen one."""
        window.tasks.ended.connect(self._on_ended)

    def begin(self, kind: str) -> None:
        """Show the form of a search, filled with its sample data."""
        search = following = self._window.searches[kind].search
        while following.demo is not None and following.demo.after and not self._runs(following):
            following = self._window.searches[following.demo.after].search
        self._waiting = "" if following is search else kind
        if following.demo is None or not following.demo.after:
            self._fill(following.kind)
        else:
            self._go_on(following)
        if following is not search and search.demo is not None:
            before = self._window.searches[search.demo.after].search
            self._window.message_bar.show_message(
                f"The sample data of the {search.name} use results of the {before.name}, which do not exist yet. Press Run for the "
                f"{following.name}, which takes a few seconds; the next step is offered when it is done.",
                "attention",
            )

    def _fill(self, kind: str) -> None:
        self._window.searches[kind].form.take_sample()
        self._window.show_search_form(kind)

    def _runs(self, search: Search) -> list[str]:
        """Return the finished runs of the sample project that the sample can use."""
        assert search.demo is not None
        folder = self._folder()
        try:
            runs = Project.open(folder).runs() if is_project(folder) else []
        except ProteoscopeError:
            return []
        return [run.id for run in runs if run.kind == search.demo.after and run.status == "done"]

    def _go_on(self, search: Search) -> None:
        """Fill the form with the newest results for it in the sample project."""
        folder, opened = self._folder(), self._window.project_pane.project
        if opened is None or opened.folder != folder:
            self._window.open_project(folder)
        form = self._window.searches[search.kind].form
        form.take_sample()
        form.go_on_from(folder, self._runs(search)[-1])
        self._window.show_search_form(search.kind)

    def _folder(self) -> Path:
        """Return the project in which the sample was run, otherwise the default sample project."""
        return self._ran_in if self._ran_in is not None and is_project(self._ran_in) else sample_project()

    def _on_ended(self, job: Job, task: SearchTask | WritingTask) -> None:
        if not self._waiting or not isinstance(task, SearchTask) or job.state != "done":
            return
        wanted = search = self._window.searches[self._waiting].search
        while search.demo is not None and search.demo.after != task.search.kind:
            if not search.demo.after:
                return
            search = self._window.searches[search.demo.after].search
        self._waiting, self._ran_in = "", task.project_folder
        text = f"The results for the sample data of the {search.name} are ready"
        self._window.message_bar.show_message(text, "good", f"Continue with the {search.name}", partial(self.begin, wanted.kind))
