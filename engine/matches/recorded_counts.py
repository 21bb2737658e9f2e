"""What the identification that another search goes on from recorded of what it counted, by which that search is estimated."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.estimates import counts_of
from proteoscope.engine.matches.source_run import explained_run, identified_run
from proteoscope.engine.project import Project

__all__ = ["recorded_counts"]


def recorded_counts(project: Project, run: str, also: Collection[str] = ()) -> dict[str, float]:
    """The counts of the identification that is meant, as `identified_run` and `explained_run` take it, by their names; none where there is
    no such run or nothing can be read, which the search itself says."""
    with suppress(InputError, ParameterError, StorageError):
        return counts_of(project.record(identified_run(project.folder, explained_run(project, run)[0], also).run))
    return {}
