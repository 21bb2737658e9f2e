"""Open search with a fragment-ion index (500 Da, 20 ppm): the CPU's threads and a GPU, from the same inputs in the same run.

    python -m benchmarks.open_search_gpu --data FOLDER [--times N] [--repeats N] [--threads N]

One JSON line for each device. Each spectrum of the file is repeated ten times. `index_seconds` is the time to build the index from the
listed forms (on a GPU with all transfers). `listing_seconds` (listing the forms) and `segment_seconds` (converting the spectra to ranges of
keys) are common to both devices. `seconds` is the time of the search with all transfers; for a GPU, the time of the kernels alone is added
(in one batch, by events). `visits` is the number of postings that are in the key ranges of a spectrum and in a chunk of the CPU's index
with candidates of the spectrum; the rates of both devices are computed with this number.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import emit, existing, usable_gpus
from benchmarks.search_workload import peptides_of, preset, search_workload
from benchmarks.spectrum_search_gpu import median_seconds
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.resources import available_threads
from proteoscope.kernels.cpu import peptidoforms, postings
from proteoscope.kernels.cpu import segments as cpu
from proteoscope.kernels.cuda.fragment_index import FragmentSearch
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.layouts import PEPTIDOFORMS_OF_CHUNK, FragmentIndexArrays, IndexHits, SegmentArrays
from tests.shim.fragment_inputs import Answer, FragmentInputs, empty_answer
from tests.shim.search_inputs import NOT_STOPPED
from tests.shim.tuning import limited

_WIDTH, _BEST = 0.5, 8
_PARTS = 64


def on_threads(work: Callable[[int, int], Any], n: int, threads: int, parts: int = _PARTS) -> list[Any]:
    """Run `work(first, last)` on equal parts of n items on threads."""
    cuts = np.linspace(0, n, min(parts, n) + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))


def rows(segments: SegmentArrays, first: int, last: int) -> SegmentArrays:
    """Return the segments of the queries `first:last`."""
    low, high = segments.offsets[first], segments.offsets[last]
    return SegmentArrays(segments.offsets[first : last + 1] - low, *(column[low:high] for column in segments[1:]))


def all_segments(spectra: Any, queries: Any, settings: Any, tables: Any, threads: int) -> SegmentArrays:
    """Return the segments of all queries, computed on threads."""
    n = len(queries.mass)
    made = on_threads(lambda first, last: cpu.make_segments(spectra, queries, settings, tables, first, last), n, threads)
    starts = np.cumsum([0] + [len(part[1]) for part in made])
    offsets = np.concatenate([np.zeros(1, np.int64), *(part[0][1:] + start for part, start in zip(made, starts, strict=False))])
    return SegmentArrays(offsets, *(np.concatenate([part[i] for part in made]) for i in (1, 2, 3)))


def built(work: FragmentInputs, threads: int) -> FragmentIndexArrays:
    """Return the CPU's index, built on threads."""
    _, _, peptides, modifications, settings = work.inputs
    index = postings.empty_index(peptides, modifications, settings, work.form_mass, work.form_code)
    code, n = peptidoforms.peptidoform_code(peptides, modifications), len(index.chunk_start) - 1
    on_threads(
        lambda first, last: postings.build_chunks(peptides, modifications, settings, code, index, first, last, NOT_STOPPED), n, threads, n
    )
    return index


def on_processor(work: FragmentInputs, index: FragmentIndexArrays, threads: int) -> Answer:
    """Search on threads."""
    _, queries, peptides, modifications, settings = work.inputs
    n, code = len(queries.mass), peptidoforms.peptidoform_code(peptides, modifications)
    answer = empty_answer(n, _BEST)
    hits = IndexHits(answer.best, answer.histogram, _WIDTH, answer.n_candidates)

    def part(first: int, last: int) -> None:
        postings.search_chunks(
            index, rows(work.segments, first, last), work.windows[first:last], work.tables, code, settings, first, last, hits, NOT_STOPPED
        )

    on_threads(part, n, threads)
    return answer


def built_on_gpu(search: FragmentSearch) -> FragmentSearch:
    """Return the search with its index if that fits."""
    for _ in search.build():
        pass
    return search


def on_gpu(search: FragmentSearch, work: FragmentInputs) -> Answer:
    """Search on the device."""
    n = len(work.windows)
    answer = empty_answer(n, _BEST)
    for _ in search.search_chunks(
        work.segments, work.windows, work.tables, 0, n, answer.best, answer.histogram, _WIDTH, answer.n_candidates
    ):
        pass
    return answer


def count_visits(work: FragmentInputs, index: FragmentIndexArrays, threads: int) -> int:
    """Return the number of postings in the segments of the queries, in chunks that have candidates of them."""
    n_chunks = len(index.chunk_start) - 1
    keys = [
        np.repeat(np.arange(index.bin_start.shape[1] - 1, dtype=np.int64) << index.bin_shift, np.diff(index.bin_start[c]))
        + (index.key[index.chunk_start[c] : index.chunk_start[c + 1]] & ((1 << index.bin_shift) - 1))
        for c in range(n_chunks)
    ]
    forms = np.minimum(np.arange(n_chunks + 1) * PEPTIDOFORMS_OF_CHUNK, len(index.form_mass))

    def part(first: int, last: int) -> int:
        total = 0
        for c in range(first, last):
            inside = (work.windows[:, :, 0] < forms[c + 1]) & (work.windows[:, :, 1] > forms[c])
            mine = np.repeat(inside.any(axis=1), np.diff(work.segments.offsets))
            low, high = work.segments.low[mine], work.segments.high[mine]
            total += int((np.searchsorted(keys[c], high) - np.searchsorted(keys[c], low)).sum())
        return total

    return sum(on_threads(part, n_chunks, threads, n_chunks))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--times", type=int, default=10, help="how often the spectra are repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=available_threads())
    arguments = parser.parse_args()
    threads, usable = arguments.threads, usable_gpus(needed=False)
    parameters = preset("open")
    peptides = peptides_of(existing(arguments.data / "proteomes" / "combo.fasta"), parameters)
    read = search_workload(existing(arguments.data / "spectra" / "bench_hires_2269.mgf"), arguments.times, peptides, parameters)
    spectra, queries, settings, modifications = read.index.arrays, read.index.queries, read.settings, read.modifications
    n, tables = len(queries.mass), cpu.score_tables(spectra, settings)
    all_segments(spectra, queries, settings, tables, threads)
    listing_seconds, (mass, code) = median_seconds(lambda: peptidoforms.list_peptidoforms(peptides, modifications, 0.0, 1e6), 2)
    segment_seconds, segments = median_seconds(lambda: all_segments(spectra, queries, settings, tables, threads), 3)
    windows = cpu.precursor_windows(mass, queries, settings, 0, n)
    work = FragmentInputs((spectra, queries, peptides, modifications, settings), mass, code, tables, segments, windows)

    built(work, threads)
    index_seconds, index = median_seconds(lambda: built(work, threads), 1)
    on_processor(work._replace(windows=np.zeros_like(windows)), index, threads)
    seconds, expected = median_seconds(lambda: on_processor(work, index, threads), 1)
    visits = count_visits(work, index, threads)
    size = {
        "workload": "open search",
        "date": date.today().isoformat(),
        "spectra": read.n_spectra,
        "queries": n,
        "forms": len(mass),
        "postings": int(index.chunk_start[-1]),
        "segments": len(segments.low),
        "candidates": int(expected.n_candidates.sum()),
        "visits": visits,
        "listing_seconds": round(listing_seconds, 4),
        "segment_seconds": round(segment_seconds, 4),
    }
    emit(
        size,
        device=processor().description,
        threads=threads,
        index_seconds=round(index_seconds, 4),
        seconds=round(seconds, 4),
        visits_per_second=round(visits / seconds),
        spectra_per_second=round(read.n_spectra / seconds),
    )
    for gpu in usable[:1]:
        opened_gpu = TimedGpu(gpu.numbers[0])
        on_gpu(FragmentSearch(opened_gpu, *work.inputs[2:], mass, code), work)
        for budget in (None, 2_000_000_000):
            values = measured(opened_gpu, work, budget, arguments.repeats, expected)
            emit(
                size,
                device=gpu.description,
                visits_per_second=round(visits / values["seconds"]),
                visits_per_second_kernel=round(visits / values["kernel_seconds"]["search_chunks"]),
                spectra_per_second=round(read.n_spectra / values["seconds"]),
                times_the_processor=round(seconds / values["seconds"], 1),
                times_the_processor_with_index=round((seconds + index_seconds) / (values["seconds"] + values["index_seconds"]), 1),
                **values,
            )
    return 0


def measured(opened_gpu: TimedGpu, work: FragmentInputs, budget: int | None, repeats: int, expected: Answer) -> dict[str, Any]:
    """Return figures of a GPU within a budget of memory."""
    opened_gpu.release_unused()
    arrays = (*work.inputs[2:], work.form_mass, work.form_code)
    options = {"memory_bytes": budget} if budget else {}
    kind, given = limited(FragmentSearch, opened_gpu, options)
    index_seconds, search = median_seconds(lambda: built_on_gpu(kind(given, *arrays)), 3)
    on_gpu(search, work)
    seconds, hits = median_seconds(lambda: on_gpu(search, work), repeats)
    megabytes = opened_gpu.reserved_bytes() / 1e6
    kind, given = limited(FragmentSearch, opened_gpu, options | {"pairs_of_batch": 1 << 30})
    in_one = kind(given, *arrays)
    on_gpu(in_one, work)
    opened_gpu.kernel_seconds()
    on_gpu(in_one, work)
    answers = (*hits.best, *hits[1:]), (*expected.best, *expected[1:])
    return {
        "memory_budget": budget,
        "device_megabytes": round(megabytes),
        "index_seconds": round(index_seconds, 4),
        "seconds": round(seconds, 5),
        "kernel_seconds": opened_gpu.kernel_seconds(),
        "same": all(np.array_equal(first, other) for first, other in zip(*answers, strict=True)),
    }


if __name__ == "__main__":
    sys.exit(main())
