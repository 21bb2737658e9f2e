"""Search of the runs of an experiment, one after the other in one process, which loads kernels and models once."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError, StorageError, shortened
from proteoscope.engine.experiments.table import ExperimentRow
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.version import VERSION

__all__ = ["RunOutcome", "experiment_status", "finished_row", "run_experiment"]

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
    """Return the status of each run of an experiment by its name: that in the project, or ``not searched``."""
    status = {run.id: run.status for run in project.runs()}
    return {row.run: status.get(row.run, "not searched") for row in rows}


def finished_row(project: Project, run_id: str, kind: str) -> ExperimentRow:
    """Return the row by which a finished run of a project joins its experiment.

    Parameters
    ----------
    project : Project
        Project of the run.
    run_id, kind : str
        Id of the run and the kind of search that it must have.

    Raises
    ------
    InputError
        If there is no such finished run, or it read several spectrum files.
    """
    record = next((run for run in project.runs() if run.id == run_id and run.status == "done"), None)
    if record is None or record.kind != kind:
        what = f"holds no finished run '{shortened(run_id)}' of {kind}"
        raise InputError(project.folder, what, remedy="proteoscope runs lists its runs")
    files = [file for file in project.inputs(run_id) if file.kind == "spectra"]
    if len(files) != 1:
        what = f"run '{run_id}' read {len(files)} spectrum files"
        raise InputError(project.folder, what, remedy="Each run of an experiment has one: add the files instead")
    return ExperimentRow(run_id, str(files[0].path), run_id, sha256=files[0].sha256)


def run_experiment(
    search: Search, request: SearchRequest, rows: Sequence[ExperimentRow], project: Project, progress: Progress
) -> list[RunOutcome]:
    """Search each run of an experiment alone, and return the outcomes in the order of the table.

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
    records = {run.id: run for run in project.runs()}
    _check_finished(search, request, runs, records, project, progress)
    outcomes = []
    for number, (name, row) in enumerate(runs.items(), 1):
        record = records.get(name)
        if record is not None and record.status == "done":
            outcomes.append(RunOutcome(name, row.file, "skipped", record.message))
            continue
        progress.message(f"Run {number:,} of {len(runs):,}: {name}")
        try:
            if file_digest(row.file, progress) != row.sha256:
                raise InputError(row.file, "has changed since it was added", remedy="Remove it from the experiment and add it again")
            summary = search.run(_request_of_run(request, row, project), progress)
        except StorageError:
            raise
        except (ProteoscopeError, MemoryError) as error:
            text = str(error) or "the memory is not enough"
            progress.message(f"Run {name} failed and is left out: {text}", "warning")
            outcomes.append(RunOutcome(name, row.file, "failed", text))
        else:
            assert summary.run_id == name
            outcomes.append(RunOutcome(name, row.file, "done"))
    return outcomes


def _request_of_run(request: SearchRequest, row: ExperimentRow, project: Project) -> SearchRequest:
    """Return the request for a run; it resumes a stopped run of this name if the request is the same."""
    result = replace(request, inputs={**request.inputs, "spectra": [Path(row.file)]}, run_name=row.run)
    if row.run not in project.resumable():
        return result
    checkpoint = project.checkpoint(row.run)
    recorded = {} if checkpoint is None else checkpoint.header.request
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
    for name, row in runs.items():
        record = records.get(name)
        if record is None or record.status != "done":
            continue
        if record.kind != search.kind:
            different[name] = [f"the search {record.kind}"]
            continue
        inputs = project.inputs(name)
        parameters = record.parameters
        differences = [field for field in sorted({*values, *parameters}) if values.get(field) != parameters.get(field)]
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
