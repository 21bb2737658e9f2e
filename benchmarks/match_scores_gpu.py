"""Speed of match scores on a GPU and on the CPU, by step: one JSON line for each figure.

    python -m benchmarks.match_scores_gpu [--shapes published spectra peptides] [--threads 16] [--quick] [--repeats 3]

The shapes are those of match_scores.py; `--quick` uses a tenth of the queries and of the candidates. For each shape these are measured: the
vector method of the thesis on one CPU thread, for as many queries as take a second; the index on all threads; and on the GPU, rows of
postings, in chunks of 65,536 candidates and in smaller ones, and rows of bits if they fit.

`making_s` is the time to send the candidates to the GPU and build rows, `seconds` the time of the following search with all transfers, and
`whole_s` the sum. All are the minimum of the repeats, after one that compiles; `kernels_ms` is the time of each kernel in both steps by the
clock of the device, measured separately. `bytes` is the size of the rows on the device, `gb_s` the amount of them that the search kernel
reads per second (a posting has two bytes, a word of bits four), and `met` the number of counted matches in billions. `same` is true if
candidates and scores are those of the CPU. `times` is the time of the CPU to build and search its index, divided by `whole_s`.
"""

from __future__ import annotations

import argparse
import time
from datetime import date
from typing import Any

import numpy as np

from benchmarks.figures import emit, usable_gpus
from benchmarks.match_scores import SHAPES, Shape, single
from proteoscope.engine.execution.resources import available_threads
from proteoscope.kernels.cpu.match_scores import MatchScores as OnProcessor
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.match_scores import MatchScores as OnGpu
from proteoscope.kernels.cuda.modules import Gpu, open_gpu
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.device import DeviceMemoryError
from proteoscope.kernels.match_score_layouts import candidate_ranges
from tests.shim.tuning import tuned

_MAXIMUM_BYTES = 30e9  # of rows of bits, if all masses occurred
_VARIANTS = {
    "postings": {"share_for_bits": 2.0},
    "postings, 32,768 candidates": {"share_for_bits": 2.0, "candidates_of_chunk": 1 << 15, "counter_bytes": 32 << 10},
    "bits": {"share_for_bits": -1.0},
    "chosen": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    usable = usable_gpus(needed=True)
    for name in options.shapes:
        make, n_queries, n = SHAPES[name]
        shape = make(*((n_queries // 10, n // 10) if options.quick else (n_queries, n)))
        about: dict[str, Any] = {
            "date": date.today().isoformat(),
            "card": usable[0].description,
            "shape": name,
            "queries": len(shape.queries.precursors),
            "candidates": len(shape.candidates.precursors),
            "masses": len(shape.candidates.masses),
            "top": shape.top,
        }
        single(about, shape)
        expected, seconds = processor(about | {"threads": options.threads}, shape)
        about_shape = about | {"met": round(matches(shape) / 1e9, 3)}
        for variant, how in _VARIANTS.items():
            if variant != "bits" or about["candidates"] * 2.0 * shape.candidates.precursors.max() / 8.0 < _MAXIMUM_BYTES:
                on_gpu(about_shape | {"form": variant}, shape, tuned(OnGpu, **how), expected, seconds, options.repeats)


def searched(search: Any, shape: Shape) -> tuple[np.ndarray, ...]:
    """Return the best candidates with their scores, or all scores."""
    n = len(shape.queries.precursors)
    if not shape.top:
        scores = np.zeros((n, len(shape.candidates.precursors)), np.uint16)
        list(search.score(shape.queries, scores))
        return (scores,)
    answer = np.zeros((n, shape.top), np.int64), np.zeros((n, shape.top), np.int32)
    list(search.search(shape.queries, shape.window, shape.top, *answer))
    return answer


def processor(about: dict[str, Any], shape: Shape) -> tuple[tuple[np.ndarray, ...], float]:
    """Search the index on all threads, after a small search that compiles; return the result and seconds."""
    few = shape._replace(queries=type(shape.queries)(shape.queries.offsets[:3], shape.queries.masses, shape.queries.precursors[:2]))
    kind = tuned(OnProcessor, lookups_per_indexed_mass=-1.0)
    searched(kind(Processor(about["threads"]), few.candidates), few)
    began = time.perf_counter()
    answer = searched(kind(Processor(about["threads"]), shape.candidates), shape)
    seconds = time.perf_counter() - began
    emit(about, form="index on the processor", whole_s=round(seconds, 3))
    return answer, seconds


def whole(device: Gpu, shape: Shape, kind: type[OnGpu]) -> tuple[tuple[np.ndarray, ...], OnGpu, float, float]:
    """Return the result, the search, and the seconds of building rows and of searching."""
    began = time.perf_counter()
    search = kind(device, shape.candidates)
    for _ in search._groups():
        pass
    made = time.perf_counter()
    answer = searched(search, shape)
    return answer, search, made - began, time.perf_counter() - made


def on_gpu(about: dict[str, Any], shape: Shape, kind: type[OnGpu], expected: tuple[np.ndarray, ...], seconds: float, repeats: int) -> None:
    """Measure a variant on the GPU."""
    times, answer = list[tuple[float, float]](), expected
    try:
        for _ in range(repeats + 1):
            answer, search, *two = whole(open_gpu(0), shape, kind)
            times.append((two[0], two[1]))
            group = search._resident
            of_gpu = about | {"resident": group is not None}
            if group is not None:
                of_gpu |= {
                    "rows": group.stride - 2,
                    "bytes": sum(buffer.nbytes for buffer in group.buffers.values()),
                    "by_bits": group.by_bits,
                }
            del search, group
    except DeviceMemoryError as error:
        emit(about, error=str(error))
        return
    timed = TimedGpu(0)
    whole(timed, shape, kind)
    kernels = timed.kernel_seconds()
    counting = sum(value for name, value in kernels.items() if name.startswith("count_by_"))
    read = 4.0 * words(shape) if of_gpu.get("by_bits") else 2e9 * about["met"]
    best = min(sum(seconds) for seconds in times[1:])
    emit(
        of_gpu,
        making_s=round(min(seconds for seconds, _ in times[1:]), 4),
        seconds=round(min(seconds for _, seconds in times[1:]), 4),
        whole_s=round(best, 4),
        first_s=round(sum(times[0]), 3),
        kernels_ms={name: round(value * 1e3, 2) for name, value in kernels.items()},
        gb_s=round(read / counting / 1e9, 1),
        times=round(seconds / best, 1),
        same=bool(all(np.array_equal(mine, its) for mine, its in zip(answer, expected, strict=True))),
    )


def matches(shape: Shape) -> int:
    """Return the number of matches of queries with the candidates in their windows, estimated from twenty queries."""
    n = len(shape.queries.precursors)
    some = np.linspace(0, n - 1, min(n, 20)).astype(int)
    windows = candidate_ranges(shape.candidates, shape.queries, shape.window)
    scores = np.zeros((1, len(shape.candidates.precursors)), np.uint16)
    search, total = tuned(OnProcessor, lookups_per_indexed_mass=-1.0)(Processor(available_threads()), shape.candidates), 0
    for q in some.tolist():
        begin, end = shape.queries.offsets[q : q + 2]
        query = type(shape.queries)(np.array([0, end - begin]), shape.queries.masses[begin:end], shape.queries.precursors[q : q + 1])
        list(search.score(query, scores))
        total += int(scores[0, windows[q, 0] : windows[q, 1]].sum(dtype=np.int64))
    return total * n // len(some)


def words(shape: Shape) -> float:
    """Return the number of words of bits of the queries' rows in the candidates of their windows."""
    windows = candidate_ranges(shape.candidates, shape.queries, shape.window)
    return float((2 * np.diff(shape.queries.offsets) * ((windows[:, 1] - windows[:, 0]) / 32.0)).sum())


if __name__ == "__main__":
    main()
