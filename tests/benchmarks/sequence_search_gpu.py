"""The sequence search's scoring measured on a GPU, with the processor's beside it, in GCUPS (10^9 cells of the matrices in a second).

    python tests/benchmarks/sequence_search_gpu.py --data FOLDER [--device 0] [--figures all single ...] > sequence_search_gpu.jsonl

The database is the 20,000 proteins, each 60 times: 543 million residues of real composition; the queries are the 20 of the CUDASW++ papers;
BLOSUM62, a gap of k residues costs 11 + k. The time is that of a whole call of `AlignmentSearch.score`: the queries go to the card, the
scores of all pairs, recomputed where they overflow, come back. One JSON line for each figure:

all
    20 queries together, database on the card: first call (kernels compiled, unless CuPy has them on disk) and the next.
single
    each query alone.
streamed
    20 queries, and one, the database coming in batches while it is searched: its transfer is in the time.
equal
    20 queries together against 1,000,000 random sequences of 512 residues.
numbers
    the query of 464, and four from 464 to 729 together, with each kind of numbers that the card can compute with.
overflow
    a query of 5,000 tryptophans against 1,000 as long, whose scores of 55,000 all overflow; one pair of 40,000 residues each.
small
    20 queries, and one, against the 20,000 proteins; the processor's kernels on all its threads; whether all scores are the same.
cold
    a new process, no kernel on disk, then another: seconds from its start to the scores of the query of 464 with the 20,000 proteins.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from figures import usable_gpus  # noqa: E402

from engine.jobs.progress import Progress  # noqa: E402
from engine.sequence_search.database import SequenceDatabase, read_sequences  # noqa: E402
from engine.sequence_search.matrices import read_matrix  # noqa: E402
from engine.sequence_search.scoring import ScoringScheme, score_all  # noqa: E402
from kernels.cuda.alignment import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS, AlignmentSearch  # noqa: E402
from kernels.cuda.modules import CudaCard, card  # noqa: E402

SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
TIMES, REPEATS = 60, 1
TRYPTOPHAN = ord("W") - ord("A")
COLD = """
import sys
sys.path[:0] = {path!r}
import numpy as np
from engine.sequence_search.matrices import read_matrix
from kernels.cuda.alignment import AlignmentSearch
from kernels.cuda.modules import card
with np.load({data!r}) as arrays:
    residues, offsets, query = arrays["residues"], arrays["offsets"], arrays["query"]
out = np.zeros((1, len(offsets) - 1), np.int32)
list(AlignmentSearch(card({device}), residues, offsets).score([query], read_matrix("BLOSUM62").scores, 11, 1, out))
"""


def emit(figure: str, **values: Any) -> None:
    """Print a figure as a JSON line at once."""
    print(json.dumps({"figure": figure, **values}), flush=True)


def repeated(database: SequenceDatabase, times: int) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Every sequence so many times, still in order of length."""
    offsets = np.concatenate(([0], np.cumsum(np.repeat(database.lengths, times)))).astype(np.int64)
    return np.concatenate([np.tile(database.codes(i), times) for i in range(len(database))]), offsets


def measured(search: AlignmentSearch, queries: Sequence[NDArray[np.int8]], n: int) -> tuple[NDArray[np.int32], dict[str, float]]:
    """Scores, and seconds and GCUPS of the first call and of the best of the next."""
    out, seconds = np.empty((len(queries), n), np.int32), []
    for _ in range(1 + REPEATS):
        began = time.perf_counter()
        for _end in search.score(queries, SCHEME.matrix.scores, SCHEME.gap_open, SCHEME.gap_extend, out, 0, n):
            pass
        seconds.append(time.perf_counter() - began)
    return out, {"first_seconds": round(seconds[0], 4), "seconds": round(min(seconds), 4)}


def cells(queries: Sequence[NDArray[np.int8]], n_residues: int) -> float:
    """10^9 cells."""
    return sum(map(len, queries)) * n_residues / 1e9


def report(figure: str, queries: Sequence[NDArray[np.int8]], n_residues: int, times: dict[str, float], **values: Any) -> None:
    """Print a figure of speed."""
    emit(figure, queries=len(queries), residues=n_residues, **values, **times, gcups=round(cells(queries, n_residues) / times["seconds"]))


def measure_large(device: CudaCard, database: SequenceDatabase, queries: list[NDArray[np.int8]], figures: Sequence[str]) -> None:
    """Print the figures on the database of 543 million residues."""
    residues, offsets = repeated(database, TIMES)
    n = len(offsets) - 1
    if {"all", "single"} & set(figures):
        began = time.perf_counter()
        search = AlignmentSearch(device, residues, offsets)
        emit("upload", residues=len(residues), seconds=round(time.perf_counter() - began, 3))
        if "all" in figures:
            report("all", queries, len(residues), measured(search, queries, n)[1])
        for query in queries if "single" in figures else ():
            report("single", [query], len(residues), measured(search, [query], n)[1], length=len(query))
        del search
    if "streamed" in figures:
        streamed = AlignmentSearch(device, residues, offsets, memory_bytes=1_500_000_000)
        report("streamed", queries, len(residues), measured(streamed, queries, n)[1])
        report("streamed", queries[4:5], len(residues), measured(streamed, queries[4:5], n)[1], length=len(queries[4]))
        del streamed
    if "numbers" in figures:
        for numbers, name, least in ((SIXTEEN_BITS, "dpx", 90), (HALF_PRECISION, "half", 80), (THIRTY_TWO_BITS, "wide", 0)):
            if device.compute_capability() >= least:
                search = AlignmentSearch(device, residues, offsets, numbers=numbers)
                for some in (queries[4:5], queries[4:8]):
                    times = measured(search, some, n)[1]
                    report("numbers", some, len(residues), times, numbers=name, length=len(some[0]) if len(some) == 1 else None)
                del search


def measure_equal(device: CudaCard, database: SequenceDatabase, queries: list[NDArray[np.int8]]) -> None:
    """Print the figure on sequences of one length."""
    n, length = 1_000_000, 512
    residues = np.random.default_rng(1).choice(database.residues, n * length)
    search = AlignmentSearch(device, residues, np.arange(n + 1, dtype=np.int64) * length)
    report("equal", queries, len(residues), measured(search, queries, n)[1], length_of_subjects=length)


def measure_overflow(device: CudaCard) -> None:
    """Print the figures on scores beyond 16 bits."""
    for n, length in ((1000, 5000), (1, 40_000)):
        query = np.full(length, TRYPTOPHAN, np.int8)
        search = AlignmentSearch(device, np.tile(query, n), np.arange(n + 1, dtype=np.int64) * length)
        out, times = measured(search, [query], n)
        report("overflow", [query], n * length, times, length=length, score=int(out.min()), right=bool((out == 11 * length).all()))


def measure_small(device: CudaCard, database: SequenceDatabase, queries: list[NDArray[np.int8]]) -> None:
    """Print the figures on the 20,000 proteins, with those of the processor."""
    threads, seconds = os.cpu_count() or 1, []
    score_all(queries[:1], database.residues, database.offsets, SCHEME, threads, Progress())  # compiles
    for _ in range(2):
        began = time.perf_counter()
        expected = score_all(queries, database.residues, database.offsets, SCHEME, threads, Progress())
        seconds.append(time.perf_counter() - began)
    gcups = cells(queries, database.n_residues) / min(seconds)
    emit("processor", threads=threads, seconds=round(min(seconds), 3), gcups=round(gcups, 1), gcups_per_thread=round(gcups / threads, 1))
    search = AlignmentSearch(device, database.residues, database.offsets)
    out, times = measured(search, queries, len(database))
    report("small", queries, database.n_residues, times, same_as_processor=bool(np.array_equal(out, expected)))
    for i in (0, 4, 19):
        out, times = measured(search, queries[i : i + 1], len(database))
        same = bool(np.array_equal(out[0], expected[i]))
        report("small", queries[i : i + 1], database.n_residues, times, length=len(queries[i]), same_as_processor=same)


def measure_cold(device: int, database: SequenceDatabase, query: NDArray[np.int8]) -> None:
    """Print the seconds of a process that has one search to do."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "arrays.npz"
        np.savez(data, residues=database.residues, offsets=database.offsets, query=query)
        program = COLD.format(path=[str(REPOSITORY)], data=str(data), device=device)
        for kernels in ("none", "on disk"):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "CUPY_CACHE_DIR": f"{folder}/cupy"})
            emit("cold", length=len(query), compiled_kernels=kernels, seconds=round(time.perf_counter() - began, 2))


def main() -> None:
    """Measure what is asked for."""
    figures = ("all", "single", "streamed", "equal", "numbers", "overflow", "small", "cold")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the unpacked test data")
    parser.add_argument("--device", type=int, default=0, help="number of the CUDA device")
    parser.add_argument("--figures", nargs="+", choices=figures, default=figures)
    options = parser.parse_args()
    numbers = [gpu.numbers[0] for gpu in usable_gpus(needed=True)]
    if options.device not in numbers:
        parser.error(f"there is no CUDA device {options.device}; there are {numbers}")
    data = options.data / "sequences"
    database, query_set = (read_sequences([data / name], Progress()) for name in ("mmseqs_DB.fasta", "cudasw_queries20.fasta"))
    queries = [query_set.codes(i) for i in range(len(query_set))]  # shortest first
    device = card(options.device)
    if "small" in options.figures:
        measure_small(device, database, queries)
    if "overflow" in options.figures:
        measure_overflow(device)
    if "cold" in options.figures:
        measure_cold(options.device, database, queries[4])
    if {"all", "single", "streamed", "numbers"} & set(options.figures):
        measure_large(device, database, queries, options.figures)
    if "equal" in options.figures:
        measure_equal(device, database, queries)


if __name__ == "__main__":
    main()
