"""Searches with sample data, and follow-up searches that use the results of these searches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from proteoscope.engine.entry import Demo, SampleData, Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs import Job
from proteoscope.engine.project import Project, is_project
from proteoscope.gui.settings import sample_project
from proteoscope.gui.tasks import SearchTask, WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.window_frame import WindowFrame


class Samples(QObject):
    """Handler that shows the form of a search, filled with sample data.

    A follow-up search needs the results of another sample search, which may itself be a follow-up search. If the sample project has these
    results, the form uses them. Otherwise, the form of the first search in this chain that has no results is filled, and the requested
    search is offered after that search has run.
    """

    def __init__(self, window: WindowFrame) -> None:
        super().__init__(window)
        self._window = window
        self._waiting: tuple[str, SampleData] | None = None
        """Search kind and sample data of the requested search while it waits for results of another search, or None."""
        self._ran_in: dict[SampleData, Path] = {}
        """Project that the user has chosen for the results, by sample data."""
        window.tasks.ended.connect(self._on_ended)

    def begin(self, kind: str, data: str = "") -> None:
        """Show the form of a search, filled with the sample data `data`, or with its default sample data if ''."""
        search = self._window.searches[kind].search
        demo = search.demo_with(data)
        if demo is None:
            return
        following, following_demo = search, demo
        while following_demo.after and not self._runs(following_demo):
            following, following_demo = self._before(following_demo)
        self._waiting = None if following is search else (kind, demo.data)
        if following_demo.after:
            self._show_follow_up(following, following_demo)
        else:
            self._fill(following.kind, following_demo)
        if following is not search:
            before = self._before(demo)[0]
            self._window.message_bar.show_message(
                f"The sample data of the {search.name} use results of the {before.name}, which do not exist yet. Press Run to start "
                f"the {following.name} (a few seconds). When this search is done, the next step is offered.",
                "attention",
            )

    def _before(self, demo: Demo) -> tuple[Search, Demo]:
        """Return the search whose results the sample `demo` needs, and the sample of that search with the same data."""
        search = self._window.searches[demo.after].search
        before = search.demo_with(demo.data)
        assert before is not None
        return search, before

    def _fill(self, kind: str, demo: Demo) -> None:
        self._window.searches[kind].form.take_sample(demo.data)
        self._window.show_search_form(kind)

    def _runs(self, demo: Demo) -> list[str]:
        """Return the ids of finished runs in the sample project whose results the sample can use."""
        folder = self._folder(demo)
        try:
            runs = Project.open(folder).runs() if is_project(folder) else []
        except ProteoscopeError:
            return []
        return [run.id for run in runs if run.kind == demo.after and run.status == "done"]

    def _show_follow_up(self, search: Search, demo: Demo) -> None:
        """Show the form of a follow-up search, set to the newest suitable run in the sample project."""
        folder, opened = self._folder(demo), self._window.project_pane.project
        if opened is None or opened.folder != folder:
            self._window.open_project(folder)
        form = self._window.searches[search.kind].form
        form.continue_from(folder, self._runs(demo)[-1])
        form.take_sample(demo.data)
        self._window.show_search_form(search.kind)

    def _folder(self, demo: Demo) -> Path:
        """Return the project in which the user has run this sample data, otherwise the default sample project."""
        ran_in = self._ran_in.get(demo.data)
        return ran_in if ran_in is not None and is_project(ran_in) else sample_project(demo.data)

    def _on_ended(self, job: Job, task: SearchTask | WritingTask) -> None:
        if self._waiting is None or not isinstance(task, SearchTask) or job.state != "done":
            return
        kind, data = self._waiting
        wanted = search = self._window.searches[kind].search
        demo = wanted.demo_with(data)
        while demo is not None and demo.after != task.search.kind:
            if not demo.after:
                return
            search, demo = self._before(demo)
        self._waiting, self._ran_in[data] = None, task.project_folder
        text = f"The results for the sample data of the {search.name} are ready"
        self._window.message_bar.show_message(text, "good", f"Continue with the {search.name}", partial(self.begin, kind, data))
