"""Resources that a process holds after long use: many jobs of all kinds, some of them cancelled.

    python -m benchmarks.soak [--jobs 500] [--minutes 60] [--threads N] [--device cpu] [--cancelled 10] [--seed 1]

Each job is the sample search of one kind, run through the job queue of the window; follow-up searches of an identification use one
identification. After each finished job, its first export runs in the other lane of the queue. About every tenth job is cancelled at a
random moment. After each round of all kinds the written files are removed, and a JSON line lists what the process holds: memory (RSS, MB),
open files, threads, processes, and files in its own folder for temporary files. Last comes a line with `memory_growth` (median of the last
quarter of rounds over that of the second quarter: the first one fills caches), and `left`: how many more open files, threads, processes and
temporary files there are after the last round than after the second one. The benchmark stops after the given number of jobs or minutes,
whichever comes first. The exit status is 1 if a job failed.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.figures import emit
from proteoscope.engine.entry import ExportRequest, Search, SearchRequest
from proteoscope.engine.jobs import Job, JobQueue
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import SEARCHES

COUNTED = ("open_files", "threads", "processes", "temporary_files")


def request_of(search: Search, project: Path, out: Path, device: str, threads: int | None) -> SearchRequest:
    """Return the sample search of a kind; searches that need a project use this one."""
    assert search.demo is not None
    inputs = search.demo.inputs
    inputs |= {wanted_input.name: [project] for wanted_input in search.inputs if wanted_input.sort == "project"}
    options = {option.name: project for option in search.options if option.is_project}
    format = search.exports[0].name if search.writes == "file" else ""
    target = out / f"{search.kind}.out" if search.writes == "file" else None
    return SearchRequest(inputs, search.parameters_of(search.demo.preset), project, target, format, options, device, threads)


def held(temporary: Path) -> dict[str, float]:
    """Return the resources that this process holds."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    process = os.getpid()
    children = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            children += int(path.read_text().rpartition(")")[2].split()[1]) == process
        except (OSError, IndexError):  # the process has ended meanwhile
            continue
    return {
        "memory_mb": round(int(status["VmRSS"].split()[0]) / 1024, 1),
        "open_files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": int(status["Threads"]),
        "processes": children,
        "temporary_files": sum(1 for _ in temporary.rglob("*")),
    }


def finished(queue: JobQueue, job: Job, cancel_after: float | None) -> Job:
    """Wait for a job, and cancel it after `cancel_after` seconds if given."""
    began = time.monotonic()
    while not job.is_over:
        if cancel_after is not None and time.monotonic() - began > cancel_after:
            queue.cancel(job)
            cancel_after = None
        queue.wait(0.05)
    return job


def main() -> None:
    """Repeat the searches for the chosen time and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cancelled", type=int, default=10, help="every so manieth job, on the average")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    work = Path(tempfile.mkdtemp(prefix="proteoscope-soak-"))
    temporary = work / "temporary"
    temporary.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    searches = [search for search in SEARCHES if search.demo is not None]
    queue, states, errors, rounds, usual = JobQueue(), Counter[str](), list[str](), list[dict[str, float]](), dict[str, float]()
    began = time.monotonic()

    def ended() -> bool:
        return sum(states.values()) >= options.jobs or time.monotonic() - began > 60 * options.minutes

    while not ended():
        folder = work / f"round{len(rounds)}"
        project = folder / "project"
        folder.mkdir()
        for search in searches:
            if ended():
                break
            request = request_of(search, project, folder, options.device, options.threads)
            # Other searches of the round continue from the identification, which is therefore never cancelled.
            is_cancelled = search is not searches[0] and search.kind in usual and chance.randrange(options.cancelled) == 0
            after = chance.uniform(0, usual[search.kind]) if is_cancelled else None
            job = finished(queue, queue.add(search.name, lambda progress, s=search, r=request: s.run(r, progress)), after)
            states[job.state] += 1
            if job.state == "done":
                usual[search.kind] = job.seconds
                export = finished(queue, queue.add("export", _export_of(search, project, folder), "writing"), None)
                errors += [f"export of {search.kind}: {export.error}"] if export.state == "failed" else []
            elif job.state == "failed":
                errors.append(f"{search.kind}: {job.error}")
        shutil.rmtree(folder)
        rounds.append(held(temporary))
        emit({"round": len(rounds)}, jobs=sum(states.values()), seconds=round(time.monotonic() - began, 1), **rounds[-1])
    queue.shutdown()
    quarter = max(1, len(rounds) // 4)
    second, last = rounds[quarter : 2 * quarter] or rounds, rounds[-quarter:]
    growth = median(sample["memory_mb"] for sample in last) / median(sample["memory_mb"] for sample in second)
    left = {name: rounds[-1][name] - rounds[min(1, len(rounds) - 1)][name] for name in COUNTED}
    emit(
        {"what": "soak"},
        **states,
        memory_growth=round(growth, 3),
        left=left,
        faults=errors[:10],
        seconds=round(time.monotonic() - began, 1),
    )
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if errors else 0)


def _export_of(search: Search, project: Path, folder: Path) -> Callable[[Progress], list[Path]]:
    """Return the first export of the last run of a kind in a project, as a job."""

    def export(progress: Progress) -> list[Path]:
        opened = Project.open(project)
        run = [run for run in opened.runs() if run.kind == search.kind and run.status == "done"][-1]
        return search.export(opened, ExportRequest(run.id, search.exports[0].name, folder / f"{search.kind}.export"), progress)

    return export


if __name__ == "__main__":
    main()
