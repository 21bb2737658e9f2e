"""Open search with the fragment-ion index compared with scoring every candidate: one JSON line for each figure.

    python -m benchmarks.open_search --data FOLDER [--window "500 Da"] [--repeats 10] [--threads N] [--memory MB] [--gpu]

FOLDER is the unpacked test data (its files may be compressed with gzip). 2,269 high-resolution spectra, each `--repeats` times, against
five proteomes with reversed decoys; preset open, with precursors within `--window`.

`counting_seconds`, `indexing_seconds` and `searching_seconds` are wall time of the stages of a search, transfers included on a GPU;
`processor_seconds` is the time that all threads spent computing, which other programs on the machine disturb less. `visits` is the number
of postings that are visited, counted for one query in a hundred and multiplied; rates of visits are per second of `searching_seconds` and
thread. The exhaustive search is timed for one query in `--every`, and its time is scaled by the number of candidates. `same_rows` is the
share of its hits that the index also finds, at the same ranks with the same scores.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import emit, existing, usable_gpus
from benchmarks.search_workload import Workload, peptides_of, preset, search_workload
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.resources import Resources, available_threads, run_on_threads
from proteoscope.engine.jobs.progress import Progress, ProgressEvent
from proteoscope.engine.matches.fragment_index import FragmentIndexSearch
from proteoscope.kernels.cpu.candidates import search_queries
from proteoscope.kernels.cpu.peptidoforms import list_peptidoforms, peptidoform_code
from proteoscope.kernels.cpu.postings import build_chunks, empty_index
from proteoscope.kernels.cpu.segments import make_segments, precursor_windows, score_tables
from proteoscope.kernels.cuda.modules import Gpu, open_gpu
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import HitArrays, QueryArrays
from tests.shim.search_inputs import NOT_STOPPED, empty_hits

_VISITED = 100  # visits are counted for one query in 100


class StageSeconds:
    """Wall seconds of each stage of a search, by the first word of its title."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._stage, self._began = "", time.perf_counter()

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage != self._stage:
            self._close()
            self._stage = event.stage

    def _close(self) -> None:
        now = time.perf_counter()
        word = self._stage.split(" ", 1)[0]
        self._seconds[word] = self._seconds.get(word, 0.0) + now - self._began
        self._began = now

    def named(self) -> dict[str, float]:
        """Return the fields as figures."""
        self._close()
        names = {"Counting": "counting_seconds", "Indexing": "indexing_seconds", "Scoring": "searching_seconds"}
        return {name: round(self._seconds.get(word, 0.0), 3) for word, name in names.items()}


def searched(work: Workload, threads: int, memory: int, opened_gpus: tuple[Gpu, ...] = ()) -> tuple[HitArrays, dict[str, Any]]:
    """Search with the index; return the hits and figures."""
    hits = empty_hits(len(work.index.queries.mass), slots=max(1, work.parameters.maximum_modifications))
    stages = StageSeconds()
    search = FragmentIndexSearch(
        work.index, work.peptides, work.modifications, work.settings, Resources(threads, [*opened_gpus], progress=Progress(stages)), memory
    )
    before, used = time.perf_counter(), time.process_time()
    search.run(hits)
    seconds = time.perf_counter() - before
    return hits, {
        "seconds": round(seconds, 3),
        **stages.named(),
        "processor_seconds": round(time.process_time() - used, 2),
        "spectra_per_second": round(work.n_spectra / seconds),
    }


def visits(work: Workload) -> tuple[int, int]:
    """Return the numbers of postings of the whole index, and of those that all queries visit."""
    peptides, modifications, settings, queries = work.peptides, work.modifications, work.settings, work.index.queries
    few = QueryArrays(*(np.ascontiguousarray(column[_VISITED // 2 :: _VISITED]) for column in queries))
    n = len(few.mass)
    tables = score_tables(work.index.arrays, settings)
    offsets, low, high, _ = make_segments(work.index.arrays, few, settings, tables, 0, n)
    owner = np.repeat(np.arange(n), np.diff(offsets))
    postings = visited = 0
    edges = np.arange(0.0, float(peptides.mass[-1]) + modifications.combination_mass.max() + 200.0, 100.0)
    for begin, end in pairwise(edges):
        index = empty_index(peptides, modifications, settings, *list_peptidoforms(peptides, modifications, begin, end))
        windows = precursor_windows(index.form_mass, few, settings, 0, n)
        reached = ((windows[..., 1] > windows[..., 0]).any(axis=1))[owner]
        for chunk in range(len(index.chunk_start) - 1):
            build_chunks(peptides, modifications, settings, peptidoform_code(peptides, modifications), index, chunk, chunk + 1, NOT_STOPPED)
            keys = index.key[index.chunk_start[chunk] : index.chunk_start[chunk + 1]].astype(np.int64)
            keys += np.repeat(np.arange(index.bin_start.shape[1] - 1) << 16, np.diff(index.bin_start[chunk].astype(np.int64)))
            visited += int((np.searchsorted(keys, high[reached]) - np.searchsorted(keys, low[reached])).sum())
        postings += int(index.chunk_start[-1])
    return postings, visited * len(queries.mass) // max(1, n)


def exhaustive(work: Workload, threads: int, every: int) -> tuple[HitArrays, np.ndarray, float]:
    """Search a few queries exhaustively; return the hits, the queries, and seconds."""
    rows = np.arange(every // 2, len(work.index.queries.mass), every)
    few = QueryArrays(*(np.ascontiguousarray(column[rows]) for column in work.index.queries))
    hits = empty_hits(len(rows), slots=max(1, work.parameters.maximum_modifications))

    def score(part: Partition) -> None:
        search_queries(work.index.arrays, few, work.peptides, work.modifications, work.settings, hits, part.first, part.last, NOT_STOPPED)

    before = time.perf_counter()
    run_on_threads(score, equal_partitions(np.ones(len(rows)), threads), threads, Progress())
    return hits, rows, time.perf_counter() - before


def peak_megabytes() -> int:
    """Return the peak memory of this process."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def main() -> int:
    """Run the search on the CPU and, if requested, on the GPUs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--window", default="500 Da")
    parser.add_argument("--repeats", type=int, default=10, help="how many times each spectrum is searched")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--memory", type=int, default=512, help="megabytes of a partition of the index")
    parser.add_argument("--every", type=int, default=500, help="search every n-th query exhaustively; 0: none")
    parser.add_argument("--gpu", action="store_true", help="search on the GPUs too")
    arguments = parser.parse_args()
    usable = usable_gpus(needed=False) if arguments.gpu else []
    parameters = preset("open", precursor_tolerance=arguments.window)
    peptides = peptides_of(existing(arguments.data / "proteomes" / "combo.fasta"), parameters)
    spectra = existing(arguments.data / "spectra" / "bench_hires_2269.mgf")
    small, work = (search_workload(spectra, times, peptides, parameters) for times in (1, arguments.repeats))
    size = {
        "date": date.today().isoformat(),
        "workload": "open",
        "window": arguments.window,
        "spectra": work.n_spectra,
        "queries": len(work.index.queries.mass),
        "peptides": len(peptides.mass),
        "peaks": len(work.index.arrays.mz),
        "threads": arguments.threads,
        "memory_megabytes": arguments.memory,
    }
    before = peak_megabytes()
    searched(small, arguments.threads, arguments.memory * 1_000_000)  # compiles
    answer, figures = searched(work, arguments.threads, arguments.memory * 1_000_000)
    peak = peak_megabytes()
    candidates = int(answer.n_candidates.sum())
    postings, visited = visits(work)
    emit(
        size,
        device=processor().description,
        way="index",
        **figures,
        postings=postings,
        candidates=candidates,
        visits=visited,
        visits_per_thread_second=round(visited / figures["searching_seconds"] / arguments.threads),
        peak_megabytes=peak,
        peak_megabytes_before=before,
    )
    if arguments.every:
        expected, rows, seconds = exhaustive(work, arguments.threads, arguments.every)
        there = expected.peptide >= 0
        same = (answer.peptide[rows] == expected.peptide) & (answer.score[rows] == expected.score)
        emit(
            size,
            device=processor().description,
            way="every candidate",
            queries_timed=len(rows),
            seconds_of_these=round(seconds, 3),
            seconds=round(seconds * candidates / max(1, int(expected.n_candidates.sum())), 1),
            same_rows=float(same[there].mean()),
            same_candidates=bool(np.array_equal(answer.n_candidates[rows], expected.n_candidates)),
        )
    for n in range(1, len(usable) + 1):
        opened_gpus = tuple(open_gpu(gpu.numbers[0]) for gpu in usable[:n])
        searched(small, arguments.threads, arguments.memory * 1_000_000, opened_gpus)
        on_gpus, figures = searched(work, arguments.threads, arguments.memory * 1_000_000, opened_gpus)
        same = all(np.array_equal(np.asarray(on_gpu), np.asarray(other)) for on_gpu, other in zip(on_gpus, answer, strict=True))
        emit(size, device=usable[0].description, gpus=n, way="index", **figures, same_as_processor=same)
    return 0


if __name__ == "__main__":
    sys.exit(main())
