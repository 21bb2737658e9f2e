"""Resuming of stopped runs as jobs of the window."""

from proteoscope.engine.project import Project
from proteoscope.engine.resumption import stopped_run
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.tasks import SearchTask


def resume_task(project: Project, run_id: str) -> tuple[SearchTask, str]:
    """Return the task that resumes a run, and a sentence about output files outside the project that the task will not write, or ''.

    Raises
    ------
    InputError, ParameterError
        If the run cannot be resumed.
    """
    stopped = stopped_run(project, run_id)
    search = search_of_kind(stopped.kind)
    return SearchTask(search, f"Resume {run_id}", stopped.request(search)), stopped.lost_outputs(search)
