"""Counts recorded by an identification, used to estimate the cost of searches that build on the identification.

The module is separate from `source_run` because the estimates load pydantic, and format conversions also import `source_run`.
"""

from collections.abc import Collection
from contextlib import suppress

from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.estimates import read_counts
from proteoscope.engine.matches.source_run import explained_run, identified_run
from proteoscope.engine.project import Project

__all__ = ["recorded_counts"]


def recorded_counts(project: Project, run: str, other_kinds: Collection[str] = ()) -> dict[str, float]:
    """Return the recorded counts of an identification by name, for the cost estimate of a search that builds on it.

    Return an empty dictionary if the run does not exist or cannot be read; the search itself reports the error.

    Parameters
    ----------
    project : Project
        Project of the run.
    run : str
        Run identifier; '' for the newest identification (see `explained_run`).
    other_kinds : collection of str
        Further accepted run kinds (see `identified_run`).
    """
    with suppress(InputError, ParameterError, StorageError):
        return read_counts(project.record(identified_run(project.folder, explained_run(project, run)[0], other_kinds).run))
    return {}
