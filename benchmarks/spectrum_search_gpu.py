"""Scoring of spectra on GPUs and on the CPU of the same machine in the same run: one JSON line for each figure.

    python -m benchmarks.spectrum_search_gpu --data FOLDER [WORKLOAD ...] [--repeats N] [--threads N]

FOLDER is the unpacked test data (its files may be compressed with gzip). Workloads, all made from real data:

narrow
    2,269 high-resolution spectra, each ten times (22,690), against five proteomes with reversed decoys; preset high-resolution.
sparse
    the shape of Experiment 1 of Li 2014: the same spectra, each twenty times (45,380), against yeast with reversed decoys, 0.2 Da / 0.2 Da,
    oxidation of M and phosphorylation of S, T and Y. The CPU searches each spectrum once; its time is multiplied.
dense
    the shape of Experiment 2: the same spectra, each nineteen times (43,111) with masses shifted at random by up to 10 Da, against five
    proteomes with reversed decoys, 3 Da / 0.5 Da, up to three of the same modifications. The CPU searches one spectrum in 70 or so.
dense-large
    the same with each spectrum thirty-three times (74,877), for the 6.2 thousand million scorings of the published experiment.

`seconds` of a GPU is the time of the scoring stage with all transfers and the packing of queries, with the dictionary already on the GPU;
`dictionary_seconds` is the time to send it there; `kernel_seconds` is the time of the kernels alone, by the clock of the device, while
nothing else runs. All are the median of the runs, after one that compiles. `device_megabytes` is the size of the driver's pool at the end,
including freed memory. The dense workloads are searched once more with a budget of `memory_bytes` for the pool; `same_hits` is true if
every hit and histogram is the same as without it. `same_top` is the share of queries whose best candidate has the same score as on the CPU
(within 1e-5), `same_peptide` the share with the same peptide; the shares differ if two candidates have equal scores.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import emit, existing, usable_gpus
from benchmarks.search_workload import Workload, peptides_of, preset, search_workload
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.execution.resources import available_threads, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cpu.candidates import count_candidates, search_queries
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import HitArrays, QueryArrays
from tests.shim.search_inputs import NOT_STOPPED, empty_hits
from tests.shim.tuning import tuned

_BINS_WIDTH = 0.5
_JITTER = 10.0  # dalton
_FEW = 600
_BUDGET = 2_000_000_000


def median_seconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median of the wall seconds of some runs, and the last answer."""
    seconds, answer = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), answer


def on_processor(work: Workload, threads: int) -> tuple[HitArrays, int]:
    """Search all queries on threads; return the hits and the number of candidates in the mass windows."""
    queries = work.index.queries
    n = len(queries.mass)
    hits, cost = empty_hits(n, slots=max(1, work.parameters.maximum_modifications), width=_BINS_WIDTH), np.zeros(n, np.int64)
    count_candidates(queries, work.peptides.mass, work.modifications, work.settings, 0, n, cost)

    def score(part: Partition) -> None:
        search_queries(
            work.index.arrays, queries, work.peptides, work.modifications, work.settings, hits, part.first, part.last, NOT_STOPPED
        )

    run_on_threads(score, equal_partitions(cost + 50, threads), threads, Progress())
    return hits, int(cost.sum())


def on_gpu(search: SpectrumSearch, work: Workload) -> HitArrays:
    """Search all queries on the device."""
    n = len(work.index.queries.mass)
    hits = empty_hits(n, slots=max(1, work.parameters.maximum_modifications), width=_BINS_WIDTH)
    for _ in search.search_queries(work.index.arrays, work.index.queries, hits, 0, n):
        pass
    return hits


def narrow(data: Path) -> tuple[Workload, Workload]:
    """Return workloads of narrow windows, once and ten times."""
    parameters = preset("high-resolution")
    peptides = peptides_of(existing(data / "proteomes" / "combo.fasta"), parameters)
    spectra = existing(data / "spectra" / "bench_hires_2269.mgf")
    once, often = (search_workload(spectra, times, peptides, parameters) for times in (1, 10))
    return once, often


def sparse(data: Path) -> tuple[Workload, Workload]:
    """Return workloads of sparse windows, once and twenty times."""
    parameters = preset(
        "high-resolution",
        precursor_tolerance="0.2 Da",
        fragment_tolerance="0.2 Da",
        isotope_errors=[0],
        variable_modifications=["Oxidation (M)", "Phospho (STY)"],
    )
    peptides = peptides_of(existing(data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta"), parameters)
    spectra = existing(data / "spectra" / "bench_hires_2269.mgf")
    once, often = (search_workload(spectra, times, peptides, parameters) for times in (1, 20))
    return once, often


def dense(data: Path, times: int = 19) -> tuple[Workload, Workload]:
    """Return workloads of a few of the spectra, and of all `times` times."""
    parameters = preset(
        "high-resolution",
        precursor_tolerance="3 Da",
        fragment_tolerance="0.5 Da",
        isotope_errors=[0],
        variable_modifications=["Oxidation (M)", "Phospho (STY)"],
        maximum_modifications=3,
    )
    peptides = peptides_of(existing(data / "proteomes" / "combo.fasta"), parameters)
    often = search_workload(existing(data / "spectra" / "bench_hires_2269.mgf"), times, peptides, parameters)
    queries = often.index.queries
    n = len(queries.mass)
    shifted = queries.mass + np.random.default_rng(1).uniform(-_JITTER, _JITTER, n)
    order = np.argsort(shifted, kind="stable")
    queries = QueryArrays(queries.spectrum[order], queries.charge[order], shifted[order])
    often = replace(often, index=replace(often.index, queries=queries))
    few = QueryArrays(*(np.ascontiguousarray(column[:: n // _FEW]) for column in queries))
    return replace(often, index=replace(often.index, queries=few), n_spectra=len(few.mass)), often


def dense_large(data: Path) -> tuple[Workload, Workload]:
    """Return workloads as `dense`, with more copies."""
    return dense(data, 33)


def main() -> int:
    """Run the chosen workloads."""
    workloads = {"narrow": narrow, "sparse": sparse, "dense": dense, "dense-large": dense_large}
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(workloads)}; all when none is named")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--gpu-only", action="store_true")
    arguments = parser.parse_args()
    usable = usable_gpus(needed=arguments.gpu_only)
    for name in arguments.workloads or workloads:
        once, often = workloads[name](arguments.data)
        size = {
            "workload": name,
            "spectra": often.n_spectra,
            "queries": len(often.index.queries.mass),
            "peptides": len(often.peptides.mass),
            "peaks": len(often.index.arrays.mz),
        }
        times = often.n_spectra // once.n_spectra
        expected, factor = None, 1
        if not arguments.gpu_only:
            on_processor(once, arguments.threads)
            # The CPU's share of the sparse workload would take minutes.
            subject, factor = (often, 1) if name == "narrow" else (once, times)
            seconds, (expected, n_candidates) = median_seconds(lambda subject=subject: on_processor(subject, arguments.threads), 1)
            emit(
                size,
                date=date.today().isoformat(),
                device=processor().description,
                threads=arguments.threads,
                seconds=round(seconds * factor, 4),
                searched_once_and_multiplied=factor > 1,
                candidates=n_candidates * factor,
                scorings=int(expected.n_candidates.sum()) * factor,
                spectra_per_second=round(often.n_spectra / seconds / factor),
            )
        for gpu in usable[:1]:
            on_one_gpu(name, gpu, once, often, expected, size, arguments.repeats)
    return 0


def on_one_gpu(
    name: str, gpu: Device, once: Workload, often: Workload, expected: HitArrays | None, size: dict[str, Any], repeats: int
) -> None:
    """Print the figures of a GPU for one workload."""
    opened_gpu = TimedGpu(gpu.numbers[0])
    arrays = (often.peptides, often.modifications, often.settings)
    size = size | {"date": date.today().isoformat(), "device": gpu.description}
    opened_gpu.release_unused()
    on_gpu(SpectrumSearch(opened_gpu, *arrays), once)
    dictionary_seconds, search = median_seconds(lambda: SpectrumSearch(opened_gpu, *arrays), 3)
    on_gpu(search, often)
    seconds, hits = median_seconds(lambda: on_gpu(search, often), repeats)
    megabytes = round(opened_gpu.reserved_bytes() / 1e6)
    in_one = tuned(SpectrumSearch, candidates_of_batch=1 << 60, dense_candidates_of_batch=1 << 60)(opened_gpu, *arrays)
    on_gpu(in_one, often)
    opened_gpu.kernel_seconds()
    on_gpu(in_one, often)
    kernels = opened_gpu.kernel_seconds()
    scorings = int(hits.n_candidates.sum())
    emit(
        size,
        seconds=round(seconds, 5),
        dictionary_seconds=round(dictionary_seconds, 5),
        kernel_seconds=kernels,
        device_megabytes=megabytes,
        scorings=scorings,
        spectra_per_second=round(often.n_spectra / seconds),
        spectra_per_second_kernels_alone=round(often.n_spectra / sum(kernels.values())),
        scorings_per_second=round(scorings / seconds),
        **({} if expected is None else compared(same_queries(name, search, once, hits), expected)),
    )
    if not name.startswith("dense"):
        return
    del search, in_one
    opened_gpu.release_unused()
    opened_gpu.limit_memory(_BUDGET)
    search = SpectrumSearch(opened_gpu, *arrays)
    on_gpu(search, often)
    seconds, again = median_seconds(lambda: on_gpu(search, often), repeats)
    megabytes = round(opened_gpu.reserved_bytes() / 1e6)
    opened_gpu.limit_memory(0)
    emit(
        size,
        memory_bytes=_BUDGET,
        seconds=round(seconds, 5),
        device_megabytes=megabytes,
        scorings=int(again.n_candidates.sum()),
        scorings_per_second=round(scorings / seconds),
        same_hits=all(np.array_equal(values, other) for values, other in zip(hits[:-1], again[:-1], strict=True)),
    )


def same_queries(name: str, search: SpectrumSearch, once: Workload, hits: HitArrays) -> HitArrays:
    """Return the hits of the queries that the CPU searched."""
    if name == "sparse":
        return on_gpu(search, once)
    step = len(hits.score) // _FEW if name.startswith("dense") else 1
    return HitArrays(*(column[::step] if isinstance(column, np.ndarray) else column for column in hits))


def compared(hits: HitArrays, expected: HitArrays) -> dict[str, float | int]:
    """Return figures of the agreement of two answers."""
    there = expected.peptide >= 0
    difference = np.abs(hits.score[there] - expected.score[there]) / np.maximum(np.abs(expected.score[there]), 1e-6)
    first = there[:, 0]
    return {
        "same_top": float(np.mean(np.isclose(hits.score[first, 0], expected.score[first, 0], rtol=1e-5))),
        "same_peptide": float(np.mean(hits.peptide[first, 0] == expected.peptide[first, 0])),
        "same_rows": float(np.mean(hits.peptide[there] == expected.peptide[there])),
        "largest_relative_difference": float(difference.max(initial=0.0)),
        "queries_with_other_counts": int(np.count_nonzero(hits.n_candidates != expected.n_candidates)),
        "candidates_in_another_histogram_bin": int(np.abs(hits.histogram - expected.histogram).sum()) // 2,
    }


if __name__ == "__main__":
    sys.exit(main())
