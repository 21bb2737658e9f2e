"""Search of the runs of an experiment: one after the other in this process, or several at the same time in child processes."""

import json
import math
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError, StorageError, shortened
from proteoscope.engine.execution.heap import release_heap, settle_heap
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.experiments.child_processes import ChildProcess, serve_tasks
from proteoscope.engine.experiments.sdrf import sdrf_table
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.parameters import MEMORY_PARAMETERS
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.project.digests import digests_remembered, file_digest
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.resumption import record_request
from proteoscope.engine.searches import EXPERIMENT_KINDS, search_of_kind
from proteoscope.engine.version import VERSION

__all__ = ["RunOutcome", "experiment_status", "finished_rows", "run_experiment", "serve_runs", "usual_processes", "write_sdrf"]

_NAMED = 5
_THREADS_OF_PROCESS = 2
_CHECK_SECONDS = 0.1  # seconds between two checks for cancellation


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run of an experiment.

    Attributes
    ----------
    run, file : str
        Name of the run and path of its spectrum file.
    status : str
        ``done``; ``skipped``: the run was finished before; or ``failed``.
    message : str
        Sentence about the results, or the error.
    """

    run: str
    file: str
    status: Literal["done", "skipped", "failed"]
    message: str = ""


def experiment_status(project: Project, rows: Sequence[ExperimentRow]) -> dict[str, str]:
    """Return the status of each run of an experiment by its name: the status in the project, or ``not searched``."""
    status = {run.id: run.status for run in project.runs()}
    return {row.run: status.get(row.run, "not searched") for row in rows}


def finished_rows(project: Project, run_ids: Iterable[str], rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
    """Return the rows that add finished runs of a project to its experiment.

    Parameters
    ----------
    project : Project
        Project of the runs.
    run_ids : iterable of str
        Ids of the runs.
    rows : sequence of ExperimentRow
        Rows of the experiment; if it has finished runs, the added runs must be of the same search.

    Raises
    ------
    InputError
        If there is no such finished run, it is of another search, or it read several spectrum files.
    """
    finished = {run.id: run for run in project.runs() if run.status == "done"}
    kinds = [finished[row.run].kind for row in rows if row.run in finished]
    result = []
    for run_id in run_ids:
        kinds += [finished[run_id].kind] if run_id in finished and finished[run_id].kind in EXPERIMENT_KINDS else []
        if run_id not in finished or finished[run_id].kind != kinds[0]:
            what = f"holds no finished run '{shortened(run_id)}' of {kinds[0] if kinds else ' or '.join(EXPERIMENT_KINDS)}"
            raise InputError(
                project.folder,
                what,
                remedy="All runs of an experiment are of the same search; proteoscope runs lists the runs of the project",
            )
        files = [file for file in project.inputs(run_id) if file.kind == "spectra"]
        if len(files) != 1:
            what = f"run '{run_id}' read {len(files)} spectrum files"
            raise InputError(project.folder, what, remedy="Each run of an experiment has one spectrum file: add the files instead")
        result.append(ExperimentRow(run_id, str(files[0].path), run_id, sha256=files[0].sha256))
    return result


def write_sdrf(project: Project, path: Path, values: Mapping[str, str]) -> list[str]:
    """Write the experiment of a project as an SDRF-Proteomics table, and return the names of columns whose values are not available.

    Parameters
    ----------
    project : Project
        Project of the experiment.
    path : Path
        File to write.
    values : mapping of str to str
        Values of columns for all rows; see `proteoscope.engine.experiments.sdrf.sdrf_table`.

    Raises
    ------
    InputError, ParameterError
        If the project has no experiment, or a value is invalid.
    StorageError
        If writing fails.
    """
    rows = read_experiment(project)
    names = {row.run for row in rows}
    parameters = next((run.parameters for run in project.runs() if run.id in names and run.status == "done"), {})
    check_outputs([path], [Path(row.file) for row in rows], project.folder)
    content, missing = sdrf_table(rows, parameters, values)
    with atomic_file(path) as file:
        file.write(content)
    return missing


def usual_processes(request: SearchRequest) -> int:
    """Return the default number of processes for an experiment: half the number of threads, or 1 if a GPU or workers are requested.

    Parameters
    ----------
    request : SearchRequest
        Request for all runs.
    """
    if request.workers or request.device not in ("auto", "cpu"):
        return 1
    return max(1, (request.threads or available_threads()) // _THREADS_OF_PROCESS)


def run_experiment(
    search: Search, request: SearchRequest, rows: Sequence[ExperimentRow], project: Project, progress: Progress, processes: int = 1
) -> list[RunOutcome]:
    """Search each run of an experiment separately, and return the outcomes in the order of the table.

    A finished run is not searched again, and a stopped one is resumed. A run that fails because of its file is reported, and the others are
    searched.

    Parameters
    ----------
    search : Search
        Search with the input ``spectra``.
    request : SearchRequest
        Request with the parameters and the other inputs of all runs.
    rows : sequence of ExperimentRow
        Rows of the experiment.
    project : Project
        Project of the experiment.
    progress : Progress
        Progress of all runs.
    processes : int
        Number of runs to search at the same time, each in a child process, which share the threads. With 1, this process searches.

    Raises
    ------
    ParameterError
        If finished runs have other parameters or read other databases; the message names them. Also for several processes with workers.
    StorageError
        If the project cannot be written.
    Cancelled
        If the user cancels; finished runs remain.
    """
    if processes > 1 and request.workers:
        raise ParameterError("workers and processes are both given: workers divide each run among them; give one of the two")
    runs = {row.run: row for row in rows}
    paths = _paths(request, rows)
    with project.held_open(), digests_remembered(paths):
        records = {run.id: run for run in project.runs()}
        _check_finished(search, request, runs, records, project, progress)
        finished = {name: record.message for name, record in records.items() if record.status == "done"}
        pending = [row for name, row in runs.items() if name not in finished]
        if min(processes, len(pending)) > 1:
            outcomes = _search_in_processes(search, request, pending, project, progress, min(processes, len(pending)), paths)
        else:
            settle_heap()
            outcomes, numbers = {}, {name: number for number, name in enumerate(runs, 1)}
            for row in pending:
                progress.message(f"Run {numbers[row.run]:,} of {len(runs):,}: {row.run}")
                outcomes[row.run] = _search_run(search, request, row, project, progress)
                _report_failure(outcomes[row.run], progress)
        return [outcomes.get(name) or RunOutcome(name, row.file, "skipped", finished[name]) for name, row in runs.items()]


def _paths(request: SearchRequest, rows: Sequence[ExperimentRow]) -> list[str]:
    """Return the paths of all input files of an experiment."""
    return [*(row.file for row in rows), *(str(path) for given in request.inputs.values() for path in given)]


def _report_failure(outcome: RunOutcome, progress: Progress) -> None:
    if outcome.status == "failed":
        progress.message(f"Run {outcome.run} failed and is left out: {outcome.message}", "warning")


def _search_run(search: Search, request: SearchRequest, row: ExperimentRow, project: Project, progress: Progress) -> RunOutcome:
    """Search a run and return its outcome.

    Raises
    ------
    StorageError
        If the project cannot be written.
    Cancelled
        If the user cancels.
    """
    try:
        if file_digest(row.file, progress) != row.sha256:
            raise InputError(row.file, "has changed since it was added", remedy="Remove it from the experiment and add it again")
        summary = search.run(_request_of_run(request, row, project, project.find_run(row.run)), progress)
    except StorageError:
        raise
    except (ProteoscopeError, MemoryError) as error:
        return RunOutcome(row.run, row.file, "failed", str(error) or "there is not enough memory")
    finally:
        release_heap()
    assert summary.run_id == row.run
    return RunOutcome(row.run, row.file, "done")


def _search_in_processes(
    search: Search,
    request: SearchRequest,
    rows: Sequence[ExperimentRow],
    project: Project,
    progress: Progress,
    processes: int,
    paths: Sequence[str],
) -> dict[str, RunOutcome]:
    """Search runs in child processes, and return the outcome of each run by its name; the first run builds the index for the others."""
    threads = max(1, (request.threads or available_threads()) // processes)
    settings = {
        "project": str(project.folder),
        "kind": search.kind,
        "request": record_request(replace(request, threads=threads), search.kind, ()),
        "command": list(request.command),
        "paths": list(paths),
    }
    outcomes = dict[str, RunOutcome]()
    idle = queue.SimpleQueue[ChildProcess | None]()
    children = list[ChildProcess]()
    for _ in range(processes):
        idle.put(None)
    purpose = "search of an experiment"
    with project.shared_with_children(purpose, math.inf if request.waits else 0.0, progress) as lock, ExitStack() as stack:

        def work(row: ExperimentRow) -> RunOutcome:
            child = idle.get()
            try:
                if child is None:
                    child = ChildProcess(_SERVING, settings, lock)
                    children.append(child)
                    stack.callback(child.close)
                return RunOutcome(**child.work(row._asdict(), lambda text, level: progress.message(f"{row.run}: {text}", level)))
            except EOFError as error:
                child = None
                return RunOutcome(row.run, row.file, "failed", f"its process ended unexpectedly ({shortened(str(error))})")
            finally:
                idle.put(child)

        progress.stage("Searching runs", len(rows))
        with ThreadPoolExecutor(processes, thread_name_prefix="proteoscope-runs") as pool:
            try:
                for group in (rows[:1], rows[1:]):
                    waiting = {pool.submit(work, row) for row in group}
                    while waiting:
                        done, waiting = wait(waiting, _CHECK_SECONDS, FIRST_COMPLETED)
                        progress.check()
                        for outcome in (future.result() for future in done):
                            outcomes[outcome.run] = outcome
                            _report_failure(outcome, progress)
                            progress.advance()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # the end of the `with` block waits
                for child in children:
                    child.stop()
                raise
    return outcomes


_SERVING = f"from {__name__} import serve_runs; serve_runs()"


def serve_runs() -> None:
    """Search the runs that the parent process names, until it closes standard input (see `_search_in_processes`)."""
    serve_tasks(_serving)


@contextmanager
def _serving(settings: Mapping[str, Any]) -> Iterator[Callable[[Any, Progress], Any]]:
    project, search, recorded = Project.open(settings["project"]), search_of_kind(settings["kind"]), settings["request"]
    project.let_parent_lock()
    request = SearchRequest(
        recorded["inputs"],
        search.model.checked(recorded["parameters"]),
        project.folder,
        options=recorded["options"],
        device=recorded["device"],
        threads=recorded["threads"],
        command=tuple(settings["command"]),
    )
    settle_heap()
    with project.held_open(), digests_remembered(settings["paths"]):
        yield lambda row, progress: asdict(_search_run(search, request, ExperimentRow(**row), project, progress))


def _request_of_run(request: SearchRequest, row: ExperimentRow, project: Project, record: RunRecord | None) -> SearchRequest:
    """Return the request for a run of the experiment; it resumes the stopped run `record` if that run had the same request."""
    result = replace(request, inputs={**request.inputs, "spectra": [Path(row.file)]}, run_name=row.run)
    checkpoint = None if record is None or record.status not in ("cancelled", "failed") else project.checkpoint(row.run)
    if checkpoint is None or checkpoint.origin == "copied":
        return result
    recorded = checkpoint.header.request
    inputs = [Path(row.file), *(Path(path) for name, paths in request.inputs.items() if name != "spectra" for path in paths)]
    digests = {digest for _, _, digest in recorded.get("files", ())}
    is_same = (
        recorded.get("version") == VERSION
        and recorded.get("parameters") == _values(request)
        and all(file_digest(path) in digests for path in inputs)
    )
    return replace(result, resume=row.run) if is_same else result


def _values(request: SearchRequest) -> dict[str, Any]:
    """Return the parameters of a request as a project records them."""
    values: dict[str, Any] = json.loads(json.dumps(request.parameters.model_dump(mode="json")))
    return values


def _check_finished(
    search: Search,
    request: SearchRequest,
    runs: dict[str, ExperimentRow],
    records: dict[str, RunRecord],
    project: Project,
    progress: Progress,
) -> None:
    """Raise ParameterError if finished runs differ from the request; the message names runs and differences."""
    values = _values(request)
    other_kinds = [kind for kind in request.inputs if kind != "spectra"]
    digests = {kind: [file_digest(path, progress) for path in request.inputs[kind]] for kind in other_kinds}
    different: dict[str, list[str]] = {}
    all_inputs = project.inputs_of_runs()
    for name, row in runs.items():
        record = records.get(name)
        if record is None or record.status != "done":
            continue
        if record.kind != search.kind:
            different[name] = [f"the search {record.kind}"]
            continue
        inputs = all_inputs.get(name, [])
        parameters = record.parameters
        differences = [
            field for field in sorted({*values, *parameters} - set(MEMORY_PARAMETERS)) if values.get(field) != parameters.get(field)
        ]
        differences += [kind for kind, before in digests.items() if before != [file.sha256 for file in inputs if file.kind == kind]]
        if [file.sha256 for file in inputs if file.kind == "spectra"] != [row.sha256]:
            differences.append(f"the content of {PurePath(row.file).name}")
        if differences:
            different[name] = differences
    if different:
        named = "; ".join(f"{name} ({', '.join(differences[:_NAMED])})" for name, differences in list(different.items())[:_NAMED])
        more = f"; and {len(different) - _NAMED:,} more" if len(different) > _NAMED else ""
        raise ParameterError(
            f"finished runs of the experiment differ from this search: {named}{more}. Use the same parameters and databases, "
            "or delete these runs (proteoscope runs PROJECT --delete RUN)"
        )
