"""Estimate of the time, memory and disk of an experiment before it runs: the sum over the runs that are not finished."""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.estimates import Estimate, estimate
from proteoscope.engine.estimates import keep_memory as keep_request_memory
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.experiments.running import experiment_status, usual_processes
from proteoscope.engine.experiments.table import ExperimentRow
from proteoscope.engine.files import is_there
from proteoscope.engine.formats.sizes import input_size
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import content_bytes
from proteoscope.engine.results.counts import counted

__all__ = ["estimate_experiment", "keep_memory"]

_DEFAULT_SHARE = 0.5
"""Share of the memory of the machine that the default number of processes may need."""
_DISK_SHARE = 0.4
"""Bytes of results per byte of an unpacked spectrum file, assumed until a run is finished (benchmarks: results/experiments.jsonl)."""
_GRID = 20.0
"""Files whose sizes differ by less than about 1/20 share one estimate."""
_OF_ALL = frozenset(("residues", "peptides", "entries"))
"""Counts of the databases, which all runs have in common."""


def estimate_experiment(
    search: Search, request: SearchRequest, rows: Sequence[ExperimentRow], project: Project, processes: int = 1
) -> Estimate:
    """Return the estimate of the unfinished runs of an experiment.

    Time and disk space are those of all unfinished runs. The memory is that of the largest run, for each process.

    Parameters
    ----------
    search : Search
        Search of the experiment.
    request : SearchRequest
        Request with the parameters and the other inputs of all runs.
    rows : sequence of ExperimentRow
        Rows of the experiment.
    project : Project
        Project of the experiment.
    processes : int
        Number of runs that are searched at the same time.

    Returns
    -------
    Estimate
        With a count `runs`. The program starts once, and the index is built once. Only sizes and beginnings of files are read.

    Raises
    ------
    ParameterError
        If no run is left to search.
    InputError
        If a file cannot be used.
    """
    status = experiment_status(project, rows)
    files = list(dict.fromkeys(row.file for row in rows if status[row.run] != "done"))
    missing = [file for file in files if not is_there(Path(file))]
    sizes = {file: content_bytes(Path(file)) for file in files if file not in missing}
    if not sizes:
        raise ParameterError("no run of the experiment is left to search" + (": its files do not exist" if missing else ""))
    processes = min(processes, len(sizes))
    request = replace(request, threads=max(1, (request.threads or available_threads()) // processes))
    # The largest run comes first; its memory is that of the experiment.
    groups: dict[tuple[str, int], list[str]] = {}
    for file in sorted(sizes, key=lambda file: -sizes[file]):
        groups.setdefault((PurePath(file).suffix.lower(), round(_GRID * math.log(max(1, sizes[file])))), []).append(file)
    estimates = list[tuple[Estimate, int]]()
    disk, share = 0.0, _disk_share(project)
    for members in groups.values():
        paths = [Path(members[0])]
        of_run = replace(request, inputs={**request.inputs, "spectra": paths})
        if not estimates:  # the first run may have to build the index
            estimates.append((estimate(search, of_run, compares=False), 1))
        n_later = len(members) - (len(estimates) == 1)
        estimates.append((estimate(search, of_run, compares=False, has_index=True), n_later))
        disk += len(members) * (share * sizes[members[0]] or _DISK_SHARE * input_size(paths).unpacked)
    first = estimates[0][0]
    result = _in_processes(_sum(estimates), first, processes)
    counts = {name: first.counts[name] if name in _OF_ALL else value for name, value in result.counts.items()}
    notes = [*first.notes]
    if missing:
        notes.append(f"{counted(len(missing), 'missing file')} left out, such as {PurePath(missing[0]).name}")
    if disk > (free := shutil.disk_usage(project.folder).free):
        notes.append(f"the disk of the project has only {free / 1e9:.2f} GB free")
    return replace(result, counts={"runs": float(len(sizes)), **counts}, disk_bytes=disk, notes=tuple(notes))


def keep_memory(
    search: Search, request: SearchRequest, limit: int, rows: Sequence[ExperimentRow], project: Project, processes: int | None = None
) -> tuple[SearchRequest, int]:
    """Return a request with which the experiment should need less memory than `limit`, and the number of processes.

    Parameters
    ----------
    search, request, rows, project
        See `estimate_experiment`.
    limit : int
        Memory on the host in MB; 0 for no limit.
    processes : int, optional
        Number of runs that are searched at the same time. By default, that of `usual_processes`, or fewer if the limit, or half of the
        memory of this machine, is too low for as many.

    Raises
    ------
    ParameterError
        If the limit is too low.
    InputError
        If there is a limit, and a file cannot be used.
    """
    tried = [processes] if processes else list(range(usual_processes(request), 0, -1))
    if all(status == "done" for status in experiment_status(project, rows).values()):
        return request, tried[0]
    for number in tried:
        # Without a limit, one process is always allowed.
        most = limit or (0 if processes or number == 1 else max(1, round(processor().memory_bytes * _DEFAULT_SHARE / 1e6)))
        try:
            return _within(search, request, most, rows, project, number), number
        except ParameterError:
            if number == tried[-1]:
                raise
        except InputError:
            if limit:
                raise
            return request, number  # the run of this file fails alone
    raise AssertionError("the last number of processes returns or raises")


def _within(
    search: Search, request: SearchRequest, limit: int, rows: Sequence[ExperimentRow], project: Project, processes: int
) -> SearchRequest:
    """Return a request with which the experiment should need less memory than `limit` (MB), or the same request if the limit is 0."""
    if not limit:
        return request

    def estimated(request: SearchRequest) -> Estimate:
        return estimate_experiment(search, request, rows, project, processes)

    return keep_request_memory(request, limit, estimated, place=project.folder)


def _in_processes(result: Estimate, first: Estimate, processes: int) -> Estimate:
    """Return the estimate of an experiment in several processes.

    The first run is searched alone; then the processes divide the other runs. `result` is the estimate of all runs in one process, and
    `first` is the estimate of the first run.
    """
    seconds = first.seconds + (result.seconds - first.seconds) / processes
    share = seconds / max(result.seconds, 1e-9)
    return replace(
        result,
        seconds=seconds,
        steps={name: share * taken for name, taken in result.steps.items()},
        memory_bytes=processes * result.memory_bytes,
        gpu_bytes=processes * result.gpu_bytes,
        **{name: share * getattr(result, name) for name in _SHARES},
    )


def _sum(estimates: Sequence[tuple[Estimate, int]]) -> Estimate:
    """Return the estimate of runs that one process searches one after the other, given (estimate of a run, number of such runs)."""
    first = estimates[0][0]

    def total(mappings: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
        names = dict.fromkeys(name for values, _ in mappings for name in values)
        return {name: sum(n * float(values.get(name, 0.0)) for values, n in mappings) for name in names}

    steps, raw_steps = (total([(getattr(each, name), n) for each, n in estimates]) for name in ("steps", "raw_steps"))
    for each, of_first in ((steps, first.steps), (raw_steps, first.raw_steps)):
        each["start"] = of_first.get("start", 0.0)
    seconds = sum(steps.values())
    scale = seconds / max(1e-9, sum(n * each.seconds for each, n in estimates))
    shares = {name: scale * sum(n * getattr(each, name) for each, n in estimates) for name in _SHARES}
    return replace(
        first,
        seconds=seconds,
        steps=steps,
        raw_steps=raw_steps,
        memory_bytes=max(each.memory_bytes for each, _ in estimates),
        gpu_bytes=max(each.gpu_bytes for each, _ in estimates),
        counts=total([(each.counts, n) for each, n in estimates]),
        workload_seconds=total([(each.workload_seconds, n) for each, n in estimates]),
        **shares,
    )


_SHARES = ("transfer", "kernel", "synchronisation", "host")


def _disk_share(project: Project) -> float:
    """Return the bytes of results per byte of spectrum file, as recorded by the finished runs of a project; 0 if there are none."""
    finished = {result.run for result in project.results()}
    spectra = sum(
        file.size for run, inputs in project.inputs_of_runs().items() if run in finished for file in inputs if file.kind == "spectra"
    )
    return sum(result.bytes for result in project.results()) / spectra if spectra else 0.0
