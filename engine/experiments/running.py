"""Search of the runs of an experiment, one after the other in one process, which loads kernels and models once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError, StorageError, shortened
from proteoscope.engine.execution.heap import release_heap, settle_heap
from proteoscope.engine.experiments.sdrf import sdrf_table
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.parameters import MEMORY_PARAMETERS
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.project.digests import digests_remembered, file_digest
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.searches import EXPERIMENT_KINDS
from proteoscope.engine.version import VERSION

__all__ = ["RunOutcome", "experiment_status", "finished_rows", "run_experiment", "write_sdrf"]

_NAMED = 5


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
        Rows of the experiment; if it has finished runs, the others must be of the same search.

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
                project.folder, what, remedy="An experiment has runs of one search; proteoscope runs lists those of the project"
            )
        files = [file for file in project.inputs(run_id) if file.kind == "spectra"]
        if len(files) != 1:
            what = f"run '{run_id}' read {len(files)} spectrum files"
            raise InputError(project.folder, what, remedy="Each run of an experiment has one: add the files instead")
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


def run_experiment(
    search: Search, request: SearchRequest, rows: Sequence[ExperimentRow], project: Project, progress: Progress
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

    Raises
    ------
    ParameterError
        If finished runs have other parameters or read other databases; the message names them.
    StorageError
        If the project cannot be written.
    Cancelled
        If the user cancels; finished runs remain.
    """
    runs = {row.run: row for row in rows}
    paths = [*(row.file for row in rows), *(path for given in request.inputs.values() for path in given)]
    with project.held_open(), digests_remembered(paths):
        return _run_all(search, request, runs, project, progress)


def _run_all(
    search: Search, request: SearchRequest, runs: dict[str, ExperimentRow], project: Project, progress: Progress
) -> list[RunOutcome]:
    records = {run.id: run for run in project.runs()}
    _check_finished(search, request, runs, records, project, progress)
    outcomes = []
    settle_heap()
    for number, (name, row) in enumerate(runs.items(), 1):
        record = records.get(name)
        if record is not None and record.status == "done":
            outcomes.append(RunOutcome(name, row.file, "skipped", record.message))
            continue
        progress.message(f"Run {number:,} of {len(runs):,}: {name}")
        try:
            if file_digest(row.file, progress) != row.sha256:
                raise InputError(row.file, "has changed since it was added", remedy="Remove it from the experiment and add it again")
            summary = search.run(_request_of_run(request, row, project, record), progress)
        except StorageError:
            raise
        except (ProteoscopeError, MemoryError) as error:
            text = str(error) or "the memory is not enough"
            progress.message(f"Run {name} failed and is left out: {text}", "warning")
            outcomes.append(RunOutcome(name, row.file, "failed", text))
        else:
            assert summary.run_id == name
            outcomes.append(RunOutcome(name, row.file, "done"))
        release_heap()
    return outcomes


def _request_of_run(request: SearchRequest, row: ExperimentRow, project: Project, record: RunRecord | None) -> SearchRequest:
    """Return the request for a run; if it equals that of the stopped run `record`, it resumes this run."""
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
