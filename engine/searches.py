"""List of all searches, used by the command line, the window, presets, exports and tests.

A new search is a folder with an entry, and a line here; see docs/developers/extending.md.
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
        If this version of the program has no such search.
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
        Kind of the search, which is the name of its sub-command, such as ``identify``.
    inputs
        Files by the names of the search's inputs.
    project
        Project folder that records the run, created if missing.
    out
        Results file of searches that write one; its extension determines the format.
    preset
        Name or file of a preset; '' for the default parameters.
    parameters
        Parameter values that differ from the preset, by name.
    options, device, threads
        See `proteoscope.engine.entry.SearchRequest`.
    progress
        Receives progress and can cancel the search.

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
    """Resume a stopped or killed run of a project: the run with the id `run`, or by default the last resumable one.

    Relative paths in its parameters refer to the working directory in which the run was started.

    Parameters
    ----------
    device, threads
        Replacements for the original device and threads; the results do not depend on them.
    progress
        Receives progress and can cancel the search.

    Raises
    ------
    ProteoscopeError
        If the run cannot be resumed, or the files or the disk have the reported problem.
    """
    stopped = engine.resumption.stopped_run(project_package.Project.open(project), run)
    search = search_of_kind(stopped.kind)
    return search.run(stopped.request(search, device, threads), progress or Progress())
