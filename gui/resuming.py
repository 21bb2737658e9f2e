"""Resuming stopped runs as jobs of the window."""

from __future__ import annotations

from proteoscope.engine.project import Project
from proteoscope.engine.resumption import stopped_run
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.tasks import SearchTask

__all__ = ["resume_task"]


def resume_task(project: Project, run_id: str) -> tuple[SearchTask, str]:
    """Return the search that resumes a run of a project, and a sentence if files outside the project are not written.

    Raises
    ------
    InputError, ParameterError
        The run cannot be resumed.
    """
    stopped = stopped_run(project, run_id)
    search = search_of_kind(stopped.kind)
    return SearchTask(search, f"Resume {run_id}", stopped.request(search)), stopped.lost_outputs(search)
