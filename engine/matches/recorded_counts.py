"""Counts that the identification recorded on which another search builds, for its estimate.

Apart from `source_run`, which conversions import too: estimates load pydantic.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.estimates import read_counts
from proteoscope.engine.matches.source_run import explained_run, identified_run
from proteoscope.engine.project import Project

__all__ = ["recorded_counts"]


def recorded_counts(project: Project, run: str, also: Collection[str] = ()) -> dict[str, float]:
    """Return the recorded counts of an identification by name, for the estimate of a search based on it.

    None if there is no such run or it is unreadable, which the search itself reports. Parameters as of `identified_run` and
    `explained_run`.
    """
    with suppress(InputError, ParameterError, StorageError):
        return read_counts(project.record(identified_run(project.folder, explained_run(project, run)[0], also).run))
    return {}
