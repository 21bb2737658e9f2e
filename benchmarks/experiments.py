"""Time and memory of an experiment of many runs, against single runs, and in a project that has many finished runs.

    python -m benchmarks.experiment_runs --data FOLDER --out EXPERIMENT --runs 40
    python -m benchmarks.experiments --experiment EXPERIMENT [--runs 40] [--singles 8] [--finished 1000] [--kills 20] [--workers 4]
        [--added 200] [--processes 2] [--threads N] [--device cpu]

`runs` searches the first runs with one command (``proteoscope experiment run``), and then each run separately in another project, all with
warm caches; with `--singles`, only this number of evenly spaced runs is searched separately, and the times are extrapolated. `ratio` is the
time of the whole command divided by the sum of the five steps of the separate runs; `ratio_within` is the same with the steps of the runs
within the command, which loads modules and kernels only once. Peak memory (MB) is measured during each run: values are those of the 2nd,
the middle and the last run, and `memory_growth`, the median of the last quarter of runs divided by that of the second quarter.

`finished` creates a project with many finished runs, all with the tables of one run, and measures commands in it: ``list``, ``add`` for one
file, and ``run``, which searches this file. `alone` is the same search in a new project. `cpu` is the CPU time of a command, which does not
depend on other programs.

`processes` searches all files with one process and with ``--processes N``: seconds of both commands, and whether all tables have the same
bytes. With `kills`, the killed command has N processes, too.

`kills` searches all files twice; in the second project, the command is killed N times at random events before it may finish. `workers`
searches them with ``--workers local:N``. `is_same` is true if all tables have the same bytes. These need small runs (`--small --spectra 30`
of `experiment_runs`). `added` creates finished runs with different synthetic matches. A report of all runs but one, to which the last run
is then added, must have the same bytes as a report that is created from scratch. One JSON line each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.figures import emit
from proteoscope.engine.estimates import STEPS
from proteoscope.engine.experiments.table import ExperimentRow, write_experiment
from proteoscope.engine.project import Project
from tests.engine.experiments.planted_runs import Planted, add_run
from tests.stopped_runs import tables

_COMMAND = (sys.executable, "-m", "proteoscope")
_TABLES = ("runs", "results", "log", "run_inputs")


class Taken(NamedTuple):
    """Seconds of a command, and of all CPUs that it used."""

    seconds: float
    cpu: float


def run_command(*arguments: object, watch: Callable[[int, dict[str, Any]], None] | None = None) -> Taken:
    """Run a command of the program and return its times; `watch` receives its process id and each of its events."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [*_COMMAND, *map(str, arguments), *(["--progress", "json"] if watch else ["--quiet"])]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if watch is not None:
                watch(process.pid, json.loads(line))
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Taken(time.perf_counter() - began, used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime)


class PeakMemory:
    """Peak memory (MB) of a process during each run of an experiment, from its messages."""

    def __init__(self) -> None:
        self.peaks: list[float] = []

    def watch(self, process: int, event: dict[str, Any]) -> None:
        """Store the peak since the last run began, and begin anew."""
        if str(event.get("text", "")).startswith("Run "):
            self.peaks.append(peak_memory(process))
            Path(f"/proc/{process}/clear_refs").write_text("5")
        else:
            self.last = peak_memory(process)


def peak_memory(process: int) -> float:
    """Return the peak resident memory of a process in MB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return round(int(status["VmHWM"].split()[0]) / 1024, 1)


def step_seconds(project: Project) -> dict[str, float]:
    """Return the seconds of the five steps of each finished run."""
    steps = {run.id: project.record(run.id).get("steps", {}) for run in project.runs() if run.status == "done"}
    return {run: sum(stage["seconds"] for name, stage in stages.items() if name in STEPS) for run, stages in steps.items()}


def measure_runs(files: Sequence[Path], singles: int, search: Sequence[object], work: Path, size: dict[str, Any]) -> None:
    """Measure an experiment against single runs."""
    run_command("identify", files[0], "--out", work / "warm", *search)
    create = run_command("experiment", "create", work / "together", *files)
    memory = PeakMemory()
    together = run_command("experiment", "run", work / "together", *search, "--processes", 1, watch=memory.watch)
    peaks = [*memory.peaks[1:], memory.last]
    within, alone, commands = step_seconds(Project.open(work / "together")), 0.0, [0.0, 0.0]
    separate = files[:: max(1, len(files) // singles)] if singles else files
    for file in separate:
        taken = run_command("identify", file, "--out", work / "alone", *search)
        commands = [before + more for before, more in zip(commands, taken, strict=True)]
        alone += sum(step_seconds(Project.open(work / "alone")).values())
        shutil.rmtree(work / "alone")
    alone, *commands = (total * len(files) / len(separate) for total in (alone, *commands))
    quarter = max(1, len(peaks) // 4)
    emit(
        size,
        figure="runs",
        create=round(create.seconds, 2),
        seconds=round(together.seconds, 2),
        cpu=round(together.cpu, 2),
        single_steps=round(alone, 2),
        single_commands=round(commands[0], 2),
        single_cpu=round(commands[1], 2),
        steps=round(sum(within.values()), 2),
        ratio=round(together.seconds / alone, 3),
        ratio_within=round(together.seconds / sum(within.values()), 3),
        peak_mb=max(peaks),
        peaks_mb=[peaks[k] for k in (1, len(peaks) // 2, -1)],
        memory_growth=round(median(peaks[-quarter:]) / median(peaks[quarter : 2 * quarter]), 3),
    )


def plant(project: Project, n: int) -> None:
    """Copy the only run of a project, and its row of the experiment, `n` times; the copies name files that do not exist."""
    (run,) = [run.id for run in project.runs()]
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in _TABLES}
        (last,) = connection.execute("SELECT max(id) FROM inputs").fetchone()
        for k in range(n):
            name = f"planted_{k:05d}"
            shutil.copytree(project.folder / "results" / run, project.folder / "results" / name, copy_function=os.link)
            connection.execute(
                "INSERT INTO inputs (path, size, sha256, kind) VALUES (?, 1, ?, 'spectra')", (f"/nowhere/{name}.mzML", f"{k:064x}")
            )
            spectra = connection.execute("SELECT max(id) FROM inputs").fetchone()[0]
            for table in _TABLES:
                key = "id" if table == "runs" else "run"
                values = {column: column for column in columns[table] if column != "number" and (column != "id" or table == "runs")}
                values |= {key: f"'{name}'"}
                if table == "results":
                    values["path"] = f"replace(path, '/{run}/', '/{name}/')"
                if table == "run_inputs":
                    values["input"] = f"CASE WHEN (SELECT kind FROM inputs WHERE id = input) = 'spectra' THEN {spectra} ELSE input END"
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM {table} WHERE {key} = ?", (run,)
                )
        connection.commit()
        assert last is not None
    write_experiment(
        project,
        [ExperimentRow(f"planted_{k:05d}", f"/nowhere/planted_{k:05d}.mzML", f"planted_{k:05d}", sha256=f"{k:064x}") for k in range(n)],
    )


def measure_finished(files: Sequence[Path], n: int, search: Sequence[object], work: Path, size: dict[str, Any]) -> None:
    """Measure commands in a project with `n` finished runs."""
    run_command("identify", files[0], "--out", work / "many", *search)
    plant(Project.open(work / "many"), n)
    alone = run_command("identify", files[1], "--out", work / "one", *search)
    taken = {
        "list": run_command("experiment", "list", work / "many"),
        "add": run_command("experiment", "add", work / "many", files[1]),
        "run": run_command("experiment", "run", work / "many", *search),
        "run_again": run_command("experiment", "run", work / "many", *search),
        "alone": alone,
    }
    values = {key: round(value, 2) for name, times in taken.items() for key, value in ((name, times.seconds), (f"{name}_cpu", times.cpu))}
    emit(size, figure="finished", finished=n, **values)


def all_tables(project: Path) -> dict[tuple[str, str], bytes]:
    """Return the content of the tables of all runs of a project."""
    return {(run.id, name): content for run in Project.open(project).runs() for name, content in tables(project, run.id).items()}


def measure_processes(files: Sequence[Path], n_processes: int, search: Sequence[object], work: Path, size: dict[str, Any]) -> None:
    """Compare an experiment in several processes with one in this process."""
    taken = {}
    for name, n in (("one", 1), ("several", n_processes)):
        run_command("experiment", "create", work / name, *files)
        command = run_command("experiment", "run", work / name, *search, "--processes", n)
        taken |= {f"{name}_seconds": round(command.seconds, 2), f"{name}_cpu": round(command.cpu, 1)}
    emit(size, figure="processes", processes=n_processes, is_same=all_tables(work / "one") == all_tables(work / "several"), **taken)


def measure_kills(
    files: Sequence[Path], n_kills: int, n_processes: int, search: Sequence[object], work: Path, size: dict[str, Any]
) -> None:
    """Compare an experiment that is killed at random events with an undisturbed one."""
    chance, n_events = random.Random(n_kills), 0

    def count(*_: object) -> None:
        nonlocal n_events
        n_events += 1

    for name in ("whole", "killed"):
        run_command("experiment", "create", work / name, *files)
    whole = run_command("experiment", "run", work / "whole", *search, watch=count)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = []
    for _ in range(n_kills):
        command = [*_COMMAND, "experiment", "run", work / "killed", *search, "--processes", n_processes, "--progress", "json"]
        with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for _ in range(chance.randrange(1, max(2, round(1.6 * n_events / n_kills)))):
                process.stderr.readline()
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
        done.append(sum(run.status == "done" for run in Project.open(work / "killed").runs()))
    run_command("experiment", "run", work / "killed", *search)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - began.ru_utime - began.ru_stime
    same = all_tables(work / "whole") == all_tables(work / "killed")
    emit(size, figure="kills", kills=n_kills, finished_at_kills=done, is_same=same, whole_cpu=round(whole.cpu, 1), killed_cpu=round(cpu, 1))


def measure_workers(files: Sequence[Path], n_workers: int, search: Sequence[object], work: Path, size: dict[str, Any]) -> None:
    """Compare an experiment on workers with one in this process."""
    taken = {}
    for name, more in (("here", ()), ("workers", ("--workers", f"local:{n_workers}"))):
        run_command("experiment", "create", work / name, *files)
        taken[f"{name}_cpu"] = round(run_command("experiment", "run", work / name, *search, *more).cpu, 1)
    emit(size, figure="workers", workers=n_workers, is_same=all_tables(work / "here") == all_tables(work / "workers"), **taken)


def measure_added(n: int, work: Path, size: dict[str, Any], n_psms: int = 300) -> None:
    """Compare the report of `n` runs, and then of one more, with that of all runs from scratch."""
    planted, reports, taken = Planted(600, 4000), {}, {}
    for name in ("added", "scratch"):
        (work / name).mkdir()
        project = Project.create_or_open(work / name / "project")
        rows = [add_run(project, f"run_{k:05d}", planted.run(k, n_psms), work / name) for k in range(n + 1)]
        for first in (rows[: n // 2] + rows[n // 2 + 1 :], rows) if name == "added" else (rows,):
            write_experiment(project, first)
            command = run_command("experiment", "report", project.folder, watch=(memory := PeakMemory()).watch)
            taken[f"{name}_{len(first)}"] = {"cpu": round(command.cpu, 2), "peak_mb": memory.last}
        reports[name] = tables(project.folder, "experiment-report")
    emit(size, figure="added", runs=n, psms=n_psms, is_same=reports["added"] == reports["scratch"], **taken)


def main() -> None:
    """Run the chosen measurements and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", type=Path, required=True)
    parser.add_argument("--runs", type=int, nargs="*", default=[])
    parser.add_argument("--singles", type=int, default=0)
    parser.add_argument("--finished", type=int, nargs="*", default=[])
    for name in ("kills", "workers", "added"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    files = sorted((given.experiment / "runs").glob("*.mzML"))
    search = ("--database", given.experiment / "proteins.fasta", "--device", given.device, "--threads", given.threads, "--advice", "none")
    size = {"device": given.device, "threads": given.threads}
    measures: list[Callable[[Path], None]] = [
        *(lambda work, n=n: measure_runs(files[:n], given.singles, search, work, {**size, "n_runs": len(files[:n])}) for n in given.runs),
        *(lambda work, n=n: measure_finished(files, n, search, work, size) for n in given.finished),
    ]
    if given.processes > 1:
        measures.append(lambda work: measure_processes(files, given.processes, search, work, {**size, "n_runs": len(files)}))
    if given.kills:
        measures.append(lambda work: measure_kills(files, given.kills, given.processes, search, work, {**size, "n_runs": len(files)}))
    if given.workers:
        measures.append(lambda work: measure_workers(files, given.workers, search, work, {**size, "n_runs": len(files)}))
    if given.added:
        measures.append(lambda work: measure_added(given.added, work, size))
    for measure in measures:
        with tempfile.TemporaryDirectory(prefix="experiments-", dir=given.experiment) as folder:
            measure(Path(folder))


if __name__ == "__main__":
    main()
