"""Workers that are killed at any moment during a computation, in many runs; the result is always the same.

    python -m tests.fuzz.workers [KILLS] [--seed SEED] [--workers 3] [--kills-per-run 5] [--seconds 8] [--on local|tls|slurm]

Workers are those that a search starts (``local``), those of a scheduler with their own certificates (``tls``), or jobs of a Slurm, which is
installed and started for this as root (``slurm``). The computations are a workload of 600 items, which sleeps and needs no CPU, so that
many runs fit on a small machine, and in turn a sequence search of synthetic proteins. During each run, random workers are killed (SIGKILL)
after random times. Rows must be those of the plain definition, or of the CPU. Prints a line for each run, and at the end the number of
kills that interrupted a partition.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

import proteoscope.engine.searches  # noqa: F401 - its kinds of work
from proteoscope.engine.execution.cluster.cluster import Cluster
from proteoscope.engine.execution.cluster.connection import RemoteDevice
from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import register_kinds
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.sequence_search import scoring
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from tests.engine.execution.cluster.processes import scheduler_with_workers
from tests.engine.execution.cluster.slow_kinds import NAME, load, squares
from tests.engine.execution.cluster.slurm import slurm_node, slurm_request

N_ITEMS, N_SEQUENCES, LENGTH = 600, 6000, 300
PLACES = ("local", "tls", "slurm")


@contextmanager
def cluster_on(place: str, n_workers: int) -> Iterator[Cluster]:
    """Start workers of one of the `PLACES`, and connect to them."""
    with ExitStack() as stack:
        if place == "local":
            yield stack.enter_context(open_cluster(f"local:{n_workers}", Progress(), device="cpu", threads=n_workers))
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proteoscope-workers-")))
        if place == "tls":
            workers = stack.enter_context(scheduler_with_workers(folder, n_workers, threads=n_workers))
            yield stack.enter_context(open_cluster(workers.address, Progress(), certificates=workers.certificates))
        else:
            stack.enter_context(slurm_node(folder / "slurm"))
            yield stack.enter_context(open_cluster(slurm_request(folder, n_workers), Progress()))


def killed(cluster: Cluster, chance: random.Random, times: list[float], over: threading.Event) -> list[int]:
    """Kill workers at these seconds after the start while there are workers to kill, and return the killed processes."""
    began, ends = time.monotonic(), list[int]()
    for moment in sorted(times):
        over.wait(max(0.0, began + moment - time.monotonic()))
        while not over.is_set():
            there = [device for device in cluster.devices() if isinstance(device, RemoteDevice) and device.process not in ends]
            if there:
                ends.append(chance.choice(there).process)
                try:
                    os.kill(ends[-1], signal.SIGKILL)
                except ProcessLookupError:
                    ends.pop()
                    continue
                break
            time.sleep(0.05)
    return ends


def fuzz(
    kills: int, *, seed: int = 1, n_workers: int = 3, kills_per_run: int = 5, seconds: float = 8.0, place: str = "local"
) -> tuple[int, int]:
    """Kill a number of workers.

    Returns
    -------
    tuple
        Number of runs, and of kills that interrupted a partition.

    Raises
    ------
    AssertionError
        A run gave other rows.
    """
    register_kinds([(NAME, load)])
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    x = np.arange(N_ITEMS)
    lengths = np.sort(numbers.integers(LENGTH // 3, 2 * LENGTH, N_SEQUENCES))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    residues = numbers.integers(0, 20, offsets[-1]).astype(np.int8)
    queries = [numbers.integers(0, 20, LENGTH).astype(np.int8) for _ in range(3)]
    search = scoring.build_workload(residues, offsets, ScoringScheme(read_matrix("BLOSUM62"), 11, 1))
    with Executor(Resources(2)).session(search) as session:
        expected = scoring.score_queries(session, queries)
    done = runs = hits = 0
    with cluster_on(place, n_workers) as cluster:
        while done < kills:
            progress, over = RecordingProgress(Progress()), threading.Event()
            n = min(kills_per_run, kills - done)
            times, ended = [chance.uniform(0.1, 0.8 * seconds) for _ in range(n)], list[list[int]]()
            killing = threading.Thread(target=lambda t=times, o=over, f=ended: f.append(killed(cluster, chance, t, o)))
            killing.start()
            try:
                if runs % 2:
                    with Executor(Resources(1, remote_workers=cluster, progress=progress)).session(search) as session:
                        while killing.is_alive():
                            assert np.array_equal(scoring.score_queries(session, queries), expected)
                else:
                    work = squares(x, seconds=seconds * n_workers / N_ITEMS)
                    with Executor(Resources(1, remote_workers=cluster, progress=progress)).session(work) as session:
                        assert np.array_equal(session.run(3)["found"], x**2 + 3)
            finally:
                over.set()
                killing.join()
            lost = sum("repeated elsewhere" in text for text in progress.messages)
            done, hits, runs = done + len(ended[0]), hits + lost, runs + 1
            print(f"run {runs}: {len(ended[0])} kills, {lost} of a partition at work; the same rows", flush=True)
    return runs, hits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--kills-per-run", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--on", choices=PLACES, default="local", help="where the workers are")
    options = parser.parse_args()
    runs, hits = fuzz(
        options.kills,
        seed=options.seed,
        n_workers=options.workers,
        kills_per_run=options.kills_per_run,
        seconds=options.seconds,
        place=options.on,
    )
    print(f"{options.on}: {options.kills} kills in {runs} runs, {hits} of a partition at work: all gave the same rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
