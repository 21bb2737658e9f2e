"""Speed of k-means on one and several GPUs, by step, and whether results equal the CPU's: one JSON line for each figure.

    python -m benchmarks.k_means_gpu [--data FOLDER | --vectors FILE.npz] [--points 4000000] [--rounds 50] [--repeats 5] [--cards 1 2]

Points are uniform numbers of 30 bits: 4 million points of 8 dimensions with 400 centroids, and others of 2, 8, 16 and 34 dimensions.
`opening_s` is the time to send them to the GPU, `seconds` the time of all rounds with the results on the host, and `with_opening_s` the sum
of both. Then the spectra of FOLDER, as in k_means.py (or `offsets`, `bins`, `weights` of FILE, with bins below 10,800), are clustered:
38,252 with 3,226 centroids and 100 rounds, by the whole of `proteoscope.engine.clustering.k_means`, with transfers. With `--cards 1 2` the
same is done on the first two GPUs. All times are the minimum of the repeats, after one that compiles; `kernels_ms` is the time of each
kernel in all rounds by the clock of the device, measured separately. `same` is true if labels and sums are those of the CPU (all rounds for
spectra, two rounds for points); with several GPUs they are compared with those of the fewest GPUs.
"""

from __future__ import annotations

import argparse
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import emit, usable_gpus
from benchmarks.k_means import BINS, seeded, spectrum_vectors
from proteoscope.engine.clustering.k_means import Clusters, Points, Vectors, k_means
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.kernels.clustering_layouts import Rounds, VectorArrays
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.k_means import PointMeans
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.cuda.timing import TimedGpu
from tests.shim.k_means_inputs import iterated, means_on

_SHAPES = ((2, 100), (2, 400), (8, 100), (8, 400), (16, 400), (34, 32), (34, 400))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--vectors", type=Path, metavar="FILE")
    parser.add_argument("--points", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cards", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    usable = usable_gpus(needed=True)
    about = {"date": date.today().isoformat(), "card": usable[0].description, "threads": available_threads()}
    for d, k in _SHAPES:
        points(about | {"items": "points", "n": options.points, "d": d, "k": k, "rounds": options.rounds}, options.repeats)
    vectors = None
    if options.vectors:
        with np.load(options.vectors) as file:
            vectors = VectorArrays(file["offsets"].astype(np.int64), file["bins"].astype(np.int32), file["weights"].astype(np.int16))
    elif options.data:
        vectors = spectrum_vectors(options.data, 38_252)
    rng = np.random.default_rng(1)
    values = rng.random((options.points, 8), np.float32)
    numbers = [gpu.numbers[0] for gpu in usable]
    first: dict[str, Clusters] = {}
    for n_gpus in options.cards:
        if n_gpus > len(numbers):
            continue
        about_gpus = about | {"cards": n_gpus}
        data = Points(values)
        measure_engine(
            about_gpus | {"items": "points, by the engine", "n": options.points, "d": 8, "k": 400},
            data,
            values[:400],
            options,
            numbers[:n_gpus],
            first,
        )
        if vectors is not None:
            spectra = Vectors(vectors, BINS)
            given = seeded(spectra, 3_226)
            size = {"items": "spectra", "n": len(spectra), "elements": len(vectors.bins), "bins": BINS, "k": 3_226}
            measure_engine(about_gpus | size, spectra, given, options, numbers[:n_gpus], first)


def points(about: dict[str, Any], repeats: int) -> None:
    """Measure points with the class of the GPU, without the engine."""
    n, d, k, rounds = (about[name] for name in ("n", "d", "k", "rounds"))
    values = np.random.default_rng(d).integers(0, 1 << 30, (n, d), dtype=np.int32)
    given, device = values[:k].astype(np.float64), open_gpu(0)
    opening, seconds, results = list[float](), list[float](), list[tuple[Any, Rounds]]()
    for _ in range(repeats + 1):
        began = time.perf_counter()
        means = PointMeans(device, values)
        opened = time.perf_counter()
        results.append(iterated(means, given, n, rounds))
        seconds.append(time.perf_counter() - opened)
        opening.append(opened - began)
        del means
    timed = TimedGpu(0)
    iterated(PointMeans(timed, values), given, n, rounds)
    kernels = {name: round(value * 1e3, 2) for name, value in timed.kernel_seconds().items()}
    some = values[: min(n, 200_000)]
    two = [iterated(means_on(used_device, some), given, len(some), 2) for used_device in (Processor(available_threads()), device)]
    is_same = np.array_equal(two[0][0], two[1][0]) and np.array_equal(two[0][1].sums.sums, two[1][1].sums.sums)
    emit(
        about,
        rounds_done=results[0][1].n,
        opening_s=round(min(opening[1:]), 4),
        seconds=round(min(seconds[1:]), 4),
        with_opening_s=round(min(a + b for a, b in zip(opening[1:], seconds[1:], strict=True)), 4),
        first_s=round(seconds[0], 3),
        kernels_ms=kernels,
        tera_operations_s=round(n * k * d * results[0][1].n / min(seconds[1:]) / 1e12, 2),
        same=bool(is_same),
    )


def measure_engine(
    about: dict[str, Any], data: Points | Vectors, given: Any, options: Any, numbers: list[int], first: dict[str, Clusters]
) -> None:
    """Measure the engine, with sessions and all transfers."""
    rounds = options.rounds if isinstance(data, Points) else 100
    seconds, results = list[float](), list[Clusters]()
    for _ in range(options.repeats + 1):
        began = time.perf_counter()
        results.append(
            k_means(Executor(Resources(available_threads(), [open_gpu(number) for number in numbers])), data, given, rounds=rounds)
        )
        seconds.append(time.perf_counter() - began)
    if about["items"] not in first and isinstance(data, Vectors):
        began = time.perf_counter()
        first[about["items"]] = k_means(Executor(Resources(available_threads())), data, given, rounds=rounds)
        about["processor_s"] = round(time.perf_counter() - began, 2)
    expected = first.setdefault(about["items"], results[0])
    is_same = np.array_equal(results[-1].labels, expected.labels)
    is_same &= all(np.array_equal(sums, other) for sums, other in zip(results[-1].sums, expected.sums, strict=True))
    if isinstance(data, Vectors):
        timed = TimedGpu(0)
        k_means(Executor(Resources(available_threads(), [timed])), data, given, rounds=rounds)
        about["kernels_ms"] = {name: round(value * 1e3, 2) for name, value in timed.kernel_seconds().items()}
    emit(
        about,
        rounds=rounds,
        rounds_done=results[-1].rounds,
        first_s=round(seconds[0], 3),
        seconds=round(min(seconds[1:]), 4),
        same=bool(is_same),
    )


if __name__ == "__main__":
    main()
