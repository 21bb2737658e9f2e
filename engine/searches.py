"""List of all searches, used by the command line, the window, presets, exports and tests.

A new search is a folder with an entry, and a line in this module; see docs/developers/extending.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from proteoscope import engine
from proteoscope.engine import project as project_package
from proteoscope.engine.clustering.entry import CLUSTERING, EXPLANATION
from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import ParameterError, RunExistsError
from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.files import is_there
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

if TYPE_CHECKING:
    from proteoscope.engine.parameters import SearchParameters

__all__ = [
    "EXPERIMENT_KINDS",
    "MAXIMUM_THREADS",
    "SEARCHES",
    "Files",
    "check_preset_remains",
    "check_run_options",
    "check_threads",
    "paths_of",
    "resume_run",
    "run_or_skip",
    "run_search",
    "search_of_kind",
    "search_request",
]

Files: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One file, or several files."""
MAXIMUM_THREADS = 1024

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
EXPERIMENT_KINDS = (IDENTIFICATION.kind, MODIFIED_SEARCH.kind, LIBRARY_SEARCH.kind)
"""Searches that an experiment of many runs can have, the usual one first."""


def search_of_kind(kind: str) -> Search:
    """Return the search of the kind `kind`.

    Raises
    ------
    ParameterError
        If this version of the program has no such search.
    """
    for search in SEARCHES:
        if search.kind == kind:
            return search
    raise ParameterError(f"there is no search '{kind:.40}'; expected one of {', '.join(search.kind for search in SEARCHES)}")


def run_search(kind: str, inputs: Mapping[str, Files], *, progress: Progress | None = None, **request: Any) -> Summary:
    """Run a search from a script; the functions of `proteoscope`, such as `proteoscope.identify`, call this one.

    Parameters
    ----------
    kind, inputs, request
        See `search_request`.
    progress
        Progress, by which the search can be followed and cancelled.

    Raises
    ------
    ProteoscopeError
        If there is a problem with the parameters, the files or the disk.
    """
    progress = progress or Progress()
    return search_of_kind(kind).run(search_request(kind, inputs, progress=progress, **request), progress)


def search_request(
    kind: str,
    inputs: Mapping[str, Files],
    *,
    project: str | Path | None = None,
    out: str | Path | None = None,
    format: str = "",
    preset: str | Path | None = "",
    chosen: SearchParameters | None = None,
    options: Mapping[str, Any] | None = None,
    device: str = "auto",
    threads: int | None = None,
    workers: str = "",
    certificates: str | Path | None = None,
    run_name: str = "",
    overwrite: bool = False,
    waits: bool = False,
    progress: Progress | None = None,
    **parameters: Any,
) -> SearchRequest:
    """Check the arguments of a search from a script, and return them as a request.

    Parameters
    ----------
    kind
        Kind of the search, which is the name of its sub-command, such as ``identify``.
    inputs
        File or files by the names of the search's inputs.
    project
        Project folder that records the run, created if missing.
    out, format
        Results file, for searches that write such a file, and its format; '' determines the format by the extension of the file.
    preset
        Name or file of a preset; '' for the defaults of all parameters, None for the preset that the command line would select.
    chosen
        Parameters to use instead of a preset.
    parameters
        Parameter values by name, which replace those of the preset or of `chosen`.
    options, device, threads, workers, certificates, run_name, overwrite, waits
        See `proteoscope.engine.entry.SearchRequest`.
    progress
        Progress that reports which preset is used, if it is not the usual one.

    Raises
    ------
    ProteoscopeError
        If there is a problem with the parameters or the files.
    """
    search = search_of_kind(kind)
    files = _files_of(search, inputs)
    settings = _options_of(search, options or {})
    check_threads(threads)
    for name, text in (("device", device), ("workers", workers), ("format", format)):
        if not isinstance(text, str):
            raise ParameterError(f"{name} = {text!r:.100}: expected a text")
    search.check_workers(workers, certificates)
    if preset is None and chosen is None:
        preset = search.usual_preset(files, settings, parameters.keys())
        if preset != search.preset and progress is not None:
            progress.message(f"The preset '{preset}' suits these files and is used; the default is '{search.preset}'")
    if chosen is not None and not isinstance(chosen, search.model):
        raise ParameterError(f"parameters = {type(chosen).__name__}: {kind} takes {search.model.__name__}")
    folder = None if project is None else paths_of("project", project)[0]
    file = None if out is None else paths_of("out", out)[0]
    if search.writes == "project" and folder is None:
        raise ParameterError(f"{kind} writes its results into a project: name its folder")
    written = (format or search.format_of(str(file))) if file is not None and search.writes == "file" else ""
    values = (search.parameters_of(str(preset or "")) if chosen is None else chosen).changed(**parameters)
    request = SearchRequest(
        files,
        values,
        folder,
        file,
        written,
        settings,
        device,
        threads,
        workers=workers,
        certificates=certificates,
        run_name=run_name,
        overwrite=overwrite,
        waits=waits,
    )
    check_preset_remains(search, request, str(preset or ""))
    return request


def check_preset_remains(search: Search, request: SearchRequest, preset: str) -> None:
    """Check that a search does not overwrite the file of its preset.

    Raises
    ------
    ParameterError
        If the search would overwrite the file.
    """
    if preset and is_there(Path(preset)):
        outputs = request.outputs(*(option.name for option in search.options if option.is_output))
        project_package.outputs.check_outputs(outputs, [Path(preset)])


def check_run_options(
    run_name: str, *, overwrite: bool, skip_existing: bool, has_project: bool, written: Callable[[str], str] = str
) -> None:
    """Check the options that name a run, and the options that replace or use a finished run.

    Parameters
    ----------
    has_project
        True if the run is recorded in a project that the user has named.
    written
        Function that returns the name of an option as it is written on the command line or in Python.

    Raises
    ------
    ParameterError
        If an option needs another option that is missing, or both `overwrite` and `skip_existing` are given.
    """
    if overwrite and not run_name:
        raise ParameterError(f"{written('overwrite')} replaces a run by its name; give {written('run_name')}, too")
    if skip_existing and has_project and not run_name:
        raise ParameterError(f"{written('skip_existing')} finds the run of a project by its name; give {written('run_name')}, too")
    if overwrite and skip_existing:
        raise ParameterError(f"give either {written('overwrite')} or {written('skip_existing')}")


def run_or_skip(search: Callable[[bool], Summary], *, overwrite: bool, skip_existing: bool, have_files: bool) -> Summary | RunExistsError:
    """Run a search and return its summary; if the search is skipped, since its results exist, return a `RunExistsError`.

    The search is skipped if `skip_existing` and `have_files` are True, and a finished run of the same name has the same kind, parameters
    and inputs.

    Parameters
    ----------
    search
        Function that runs the search. Its argument is True to replace a finished run of the same name; if it is False, and there is such a
        run, the function raises `RunExistsError`.
    have_files
        True if all files exist that the search writes in addition to its project; otherwise the search is not skipped.

    Raises
    ------
    RunExistsError
        If there is a finished run of the same name, which is neither replaced nor used.
    """
    try:
        return search(overwrite)
    except RunExistsError as error:
        if not skip_existing or error.differences:
            raise
        if have_files:
            return error
    return search(True)


def check_threads(threads: object) -> None:
    """Check a number of CPU threads.

    Raises
    ------
    ParameterError
        If the number is neither an integer from 1 to the maximum nor None.
    """
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAXIMUM_THREADS):
        raise ParameterError(f"threads = {threads!r:.100}: expected a whole number from 1 to {MAXIMUM_THREADS}, or None for all")


def paths_of(name: str, given: object) -> list[Path]:
    """Return the paths in the argument called `name`: one path or several.

    Raises
    ------
    ParameterError
        If the argument is empty, or is neither a path nor several paths.

    Examples
    --------
    >>> [path.name for path in paths_of("spectra", "run.mzML")], len(paths_of("spectra", ["a.mgf", Path("b.mgf")]))
    (['run.mzML'], 2)
    """
    if isinstance(given, str | bytes | os.PathLike | Mapping) or not isinstance(given, Iterable):
        several: list[object] = [given]
    else:
        several = [*given]
    if not several:
        raise ParameterError(f"{name} = {given!r:.100}: no file is given")
    paths = []
    for item in several:
        path = os.fspath(item) if isinstance(item, str | os.PathLike) else item
        if not isinstance(path, str):
            raise ParameterError(f"{name} = {item!r:.100}: expected a path, as a text or a pathlib.Path, or a list of them")
        if not path or "\0" in path:
            raise ParameterError(f"{name} = {path!r:.100}: is not a path")
        paths.append(Path(path))
    return paths


def _files_of(search: Search, inputs: Mapping[str, Files]) -> dict[str, list[Path]]:
    """Return the files of each input of the search, by the name of the input.

    Raises
    ------
    ParameterError
        If a name is wrong, or files are missing or too many.
    """
    names = [search_input.name for search_input in search.inputs]
    for name in inputs:
        if name not in names:
            raise ParameterError(f"{search.kind} has no input '{name!s:.100}'; it has {', '.join(names)}")
    files: dict[str, list[Path]] = {}
    for search_input in search.inputs:
        given, is_needed = inputs.get(search_input.name), not (search_input.instead or search_input.is_optional)
        is_empty = given is None or (isinstance(given, list | tuple) and not given)
        if is_empty and is_needed:
            raise ParameterError(f"{search.kind} needs {search_input.name}: {search_input.described}")
        files[search_input.name] = [] if is_empty else paths_of(search_input.name, given)
        if len(files[search_input.name]) > 1 and not search_input.several:
            raise ParameterError(f"{search_input.name} = {given!r:.100}: {search.kind} takes one {search_input.singular}")
    return files


def _options_of(search: Search, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a search, with None for those that are not given.

    Raises
    ------
    ParameterError
        If the search has no such option, or the option does not accept the value.
    """
    declared = {option.name: option for option in search.options}
    for name, value in options.items():
        if name not in declared:
            raise ParameterError(f"{search.kind} has no option '{name!s:.100}'; it has {', '.join(declared) or 'none'}")
        option = declared[name]
        if value is None:
            continue
        if not option.metavar:
            if not isinstance(value, bool):
                raise ParameterError(f"{name} = {value!r:.100}: expected True or False")
        elif option.choices and value not in option.choices:
            raise ParameterError(f"{name} = {value!r:.100}: expected one of {', '.join(option.choices)}")
        elif option.is_run:
            if not isinstance(value, str):
                raise ParameterError(f"{name} = {value!r:.100}: expected the id of a run")
        elif not option.choices:
            paths_of(name, value if isinstance(value, str | os.PathLike) else [value])
    return {name: options.get(name) for name in declared}


def resume_run(
    project: str | Path, run: str = "", *, device: str = "", threads: int | None = None, progress: Progress | None = None
) -> Summary:
    """Resume a stopped or killed run of a project: the run with the id `run`; without an id, the last run that can be resumed.

    Relative paths in the parameters of the run refer to the working directory in which the run was started.

    Parameters
    ----------
    device, threads
        Device and threads that replace the original ones; the results do not depend on them.
    progress
        Progress, by which the search can be followed and cancelled.

    Raises
    ------
    ProteoscopeError
        If the run cannot be resumed, or there is a problem with the files or the disk.
    """
    stopped = engine.resumption.stopped_run(project_package.Project.open(project), run)
    search = search_of_kind(stopped.kind)
    return search.run(stopped.request(search, device, threads), progress or Progress())
