"""Runs that were stopped and go on, as jobs of the window."""

from __future__ import annotations

from proteoscope.engine.project import Project
from proteoscope.engine.resumption import stopped_run
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.tasks import SearchTask

__all__ = ["resume_task"]


def resume_task(project: Project, run_id: str) -> SearchTask:
    """The search that goes on with a run of a project.

    Raises
    ------
    InputError, ParameterError : it cannot go on, and why.
    """
    stopped = stopped_run(project, run_id)
    search = search_of_kind(stopped.kind)
    return SearchTask(search, f"Resume {run_id}", stopped.request(search))
