"""Scoring of spectra on one GPU, on several, and on GPUs and the CPU together: one JSON line for each figure.

    python -m benchmarks.multi_gpu --data FOLDER [--copies N] [--cards N ...] [--repeats N] [--threads N] [--points N] [--rounds N]
        [--only points|spectra]

FOLDER is the unpacked test data (its files may be compressed with gzip). The workload is the dense one of spectrum_search_gpu.py (2,269
real spectra, each nineteen times, 3 Da / 0.5 Da, up to three of oxidation and phosphorylation, five proteomes with reversed decoys), with
each query repeated `copies` times, with masses shifted at random by up to another 10 Da, so that one GPU is busy for seconds.

`seconds` is the time to score all queries with `ScoringPass.score_one_by_one`, with packing, all transfers and merging of hits: the median
of the runs, after one on the same GPUs that compiles the kernels and allocates pinned memory. The dictionary is sent to the GPUs before;
sending it to all GPUs at the same time and counting the candidates takes `plan_seconds`. `efficiency` is the time of one GPU divided by n
times the time of n GPUs; with the CPU, `gain` is the time of the GPUs alone divided by the time of GPUs and CPU together.

Then k-means of points (25 million of 8 dimensions, 400 centroids, 100 rounds) by
`proteoscope.engine.clustering.k_means`, with all transfers: `speedup` is the time of one GPU divided by that of n GPUs, for the whole
computation (`seconds`); `round_speedup` is the same for one round (from the difference to runs with half as many rounds). `same` is true if
labels and sums are those of one GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import emit, usable_gpus
from benchmarks.search_workload import Workload
from benchmarks.spectrum_search_gpu import dense
from proteoscope.engine.clustering.k_means import Clusters, Points, k_means
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.scoring import plan_scoring
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.layouts import HitArrays, QueryArrays

_JITTER = 10.0  # dalton
_DIMENSIONS, _CENTROIDS = 8, 400  # of k-means


def several_times(work: Workload, copies: int) -> Workload:
    """Return `copies` copies of each query, with other masses."""
    queries = work.index.queries
    mass = np.concatenate([queries.mass + shift for shift in _shifts(len(queries.mass), copies)])
    order = np.argsort(mass, kind="stable")
    spectrum, charge = (np.tile(column, copies)[order] for column in (queries.spectrum, queries.charge))
    return replace(work, index=replace(work.index, queries=QueryArrays(spectrum, charge, mass[order])), n_spectra=work.n_spectra * copies)


def _shifts(n: int, copies: int) -> np.ndarray:
    return np.random.default_rng(2).uniform(-_JITTER, _JITTER, (copies, n))


def scored(work: Workload, threads: int, used: Sequence[Gpu], with_processor: bool) -> tuple[float, float, HitArrays]:
    """Return seconds of the plan and of the scoring, and the hits."""
    started = time.perf_counter()
    search = plan_scoring(work.index, work.peptides, work.modifications, work.parameters, Resources(threads, list(used), with_processor))
    planned = time.perf_counter()
    hits = search.score_one_by_one()
    return planned - started, time.perf_counter() - planned, hits


def cluster_points(n_points: int, rounds: int, every: Sequence[Gpu], numbers: Sequence[int], arguments: argparse.Namespace) -> None:
    """Measure k-means on more and more GPUs."""
    values = np.random.default_rng(8).random((n_points, _DIMENSIONS), np.float32)
    data = Points(values)
    first: Clusters | None = None
    alone: tuple[float, float] | None = None
    for n in numbers:
        taken: dict[int, list[float]] = {rounds: [], rounds // 2: []}
        for repeat in range(arguments.repeats + 1):
            for some, seconds in taken.items():
                started = time.perf_counter()
                clusters = k_means(Executor(Resources(arguments.threads, list(every[:n]))), data, values[:_CENTROIDS], rounds=some)
                if repeat:
                    seconds.append(time.perf_counter() - started)
                if some == rounds:
                    expected = clusters
        whole, half = (float(np.median(taken[some])) for some in (rounds, rounds // 2))
        of_round = (whole - half) / (rounds - rounds // 2)
        first, alone = first or expected, alone or (whole, of_round)
        emit(
            {"workload": "k-means", "date": date.today().isoformat(), "points": n_points, "d": _DIMENSIONS, "k": _CENTROIDS},
            cards=n,
            rounds=expected.rounds,
            seconds=round(whole, 4),
            round_ms=round(of_round * 1e3, 3),
            speedup=round(alone[0] / whole, 3),
            round_speedup=round(alone[1] / of_round, 3),
            fastest_seconds=round(min(taken[rounds]), 4),
            same=bool(np.array_equal(expected.labels, first.labels) and np.array_equal(expected.sums.sums, first.sums.sums)),
        )


def main() -> int:
    """Search on more and more GPUs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--cards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--points", type=int, default=25_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", choices=("points", "spectra"))
    arguments = parser.parse_args()
    usable = usable_gpus(needed=True)
    every = open_gpus(Device("all", "", 0, True, numbers=tuple(gpu.numbers[0] for gpu in usable)), Progress())
    if arguments.only != "spectra":
        cluster_points(arguments.points, arguments.rounds, every, [n for n in arguments.cards if n <= len(every)], arguments)
    if arguments.only == "points":
        return 0
    _, once = dense(arguments.data)
    work = several_times(once, arguments.copies)
    size = {
        "workload": "dense",
        "copies": arguments.copies,
        "queries": len(work.index.queries.mass),
        "peptides": len(work.peptides.mass),
        "date": date.today().isoformat(),
    }
    numbers = [n for n in arguments.cards if n <= len(every)]
    seconds_of: dict[int, float] = {}
    first: HitArrays | None = None
    for n, with_processor in [*((n, False) for n in numbers), *((n, True) for n in numbers)]:
        runs = [scored(work, arguments.threads, every[:n], with_processor) for _ in range(arguments.repeats + 1)][1:]
        plan_seconds, seconds = (float(np.median([run[i] for run in runs])) for i in (0, 1))
        hits = runs[-1][2]
        first = first or hits
        figures: dict[str, Any] = {"plan_seconds": round(plan_seconds, 4), "seconds": round(seconds, 4)}
        if with_processor:
            figures["gain"] = round(seconds_of[n] / seconds, 4)
        else:
            seconds_of[n] = seconds
            if numbers[0] == 1:
                figures["efficiency"] = round(seconds_of[1] / (n * seconds), 4)
        scorings = int(hits.n_candidates.sum())
        emit(
            size,
            device=f"{n} x {usable[0].description}" + (f" and {processor().description}" if with_processor else ""),
            cards=n,
            with_processor=with_processor,
            threads=arguments.threads,
            **figures,
            fastest_seconds=round(min(run[1] for run in runs), 4),
            scorings=scorings,
            scorings_per_second=round(scorings / seconds),
            same_peptide=float(np.mean(hits.peptide[:, 0] == first.peptide[:, 0])),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
