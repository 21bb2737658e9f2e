"""List of all searches, used by the command line, the window, presets, exports and tests of every search.

A new search is a folder with its entry, and a line here; docs/developers/extending.md explains how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proteoscope import engine
from proteoscope.engine import project as project_package
from proteoscope.engine.clustering.entry import CLUSTERING, EXPLANATION
from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.imported.entry import IMPORT
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.entry import LIBRARY_SEARCH
from proteoscope.engine.modified_search.entry import MODIFIED_SEARCH
from proteoscope.engine.quantification.entry import QUANTIFICATION
from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT
from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH
from proteoscope.engine.structure_search.entry import STRUCTURE_SEARCH
from proteoscope.engine.summary import Summary

__all__ = ["SEARCHES", "resume_run", "run_search", "search_of_kind"]

SEARCHES: tuple[Search, ...] = (
    IDENTIFICATION,
    SEQUENCE_SEARCH,
    STRUCTURE_SEARCH,
    CLUSTERING,
    EXPLANATION,
    MODIFIED_SEARCH,
    LIBRARY_SEARCH,
    READ_ALIGNMENT,
    IMPORT,
    EVIDENCE,
    QUANTIFICATION,
)


def search_of_kind(kind: str) -> Search:
    """Return the search of a kind.

    Raises
    ------
    ParameterError
        This version of the program has none.
    """
    for search in SEARCHES:
        if search.kind == kind:
            return search
    raise ParameterError(f"there is no search '{kind:.40}'; there are {', '.join(search.kind for search in SEARCHES)}")


def run_search(
    kind: str,
    inputs: Mapping[str, Sequence[str | Path]],
    *,
    project: str | Path | None = None,
    out: str | Path | None = None,
    preset: str = "",
    options: Mapping[str, Any] | None = None,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Summary:
    """Run a search from a script; `docs/from_python.md` has an example of each.

    Parameters
    ----------
    kind
        Type of search of `SEARCHES`, as in the sub-commands.
    inputs
        Files by the names of the search's inputs.
    project
        Project folder that records the run, created if missing.
    out
        A file for the results, of searches that write one; its extension sets the format.
    preset
        Its name or file; the default parameters if empty.
    parameters
        Changes of the preset, by name.
    options, device, threads
        See `proteoscope.engine.entry.SearchRequest`.
    progress
        Receives progress, and can cancel.

    Raises
    ------
    ProteoscopeError
        If the parameters, the files or the disk have the reported problem.
    """
    search = search_of_kind(kind)
    chosen = search.parameters_of(preset).changed(**parameters)
    format = search.format_of(str(out)) if out is not None and search.writes == "file" else ""
    request = SearchRequest(inputs, chosen, project, out, format, options or {}, device, threads)
    return search.run(request, progress or Progress())


def resume_run(
    project: str | Path, run: str = "", *, device: str = "", threads: int | None = None, progress: Progress | None = None
) -> Summary:
    """Resume a stopped or killed run of a project: the run with this id, or the last resumable one.

    Paths in its parameters are relative to the working directory in which it was started.

    Parameters
    ----------
    device, threads
        Replace the original device and threads; results do not change.
    progress
        Receives progress, and can cancel.

    Raises
    ------
    ProteoscopeError
        If the run cannot be resumed, or the files or the disk have the reported problem.
    """
    stopped = engine.resumption.stopped_run(project_package.Project.open(project), run)
    search = search_of_kind(stopped.kind)
    return search.run(stopped.request(search, device, threads), progress or Progress())
