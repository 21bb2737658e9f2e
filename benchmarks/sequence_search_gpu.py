"""Scoring speed of the sequence search on a GPU and on the CPU, in GCUPS (10^9 matrix cells per second).

    python -m benchmarks.sequence_search_gpu --data FOLDER [--device 0] [--figures all single ...] [--cudasw4 FOLDER]
        > sequence_search_gpu.jsonl

The database is the 20,000 proteins, each 60 times: 543 million residues of real composition; the queries are the 20 of the CUDASW++ papers;
BLOSUM62, a gap of k residues costs 11 + k. The time is that of a whole call of `AlignmentSearch.score`, in which the queries are sent to
the GPU and the scores of all pairs, recomputed if they overflow, are returned. One JSON line for each figure:

all
    20 queries together, with the database on the GPU: the first call (with compilation, unless the kernels are cached on disk) and the
    next.
single
    each query alone.
streamed
    20 queries, and one, with the database sent in batches during the search; the time includes its transfer.
equal
    20 queries together against 1,000,000 random sequences of 512 residues.
numbers
    the query of 464 residues, and four of 464 to 729 residues together, with each number type that the GPU supports.
overflow
    a query of 5,000 tryptophans against 1,000 sequences of the same length, whose scores of 55,000 all overflow; a pair of sequences of
    40,000 residues.
small
    20 queries, and one, against the 20,000 proteins; also with the kernels of the CPU on all threads; and whether all scores are the same.
cold
    a new process without cached kernels, then another one: seconds from the start of the process to the scores of the query of 464 residues
    with the 20,000 proteins.

With --cudasw4 and the folder of its programs `makedb` and `align` (github.com/asbschmidt/CUDASW4, built with `make`), the figures `all`
or `single`, and `equal`, come with lines `peer`: CUDASW++ 4.0 on the same GPU, database and queries, over all queries and for each, with
the flags of its own benchmark of peak speed: --uploadFull --prefetchDBFile --verbose --mat blosum62 --gop -11 --gex -1, and
--singlePassType DPXs16 --manyPassType_small DPXs16 --manyPassType_large DPXs32 --overflowType DPXs32 (without DPX: Half2 and Float).
`seconds` is its "Scan time", which includes the sorting of scores, in the second run of each query; `first_seconds` is that of the first
run. `same_top_scores` compares its best 3,000 scores with ours, and `different` counts those that differ. Both programs use its scoring for
this: -4 for every residue other than the 20, and 10 + k for a gap of k residues, since its gap opening includes the first residue.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import usable_gpus
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.database import SequenceDatabase, read_sequences
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cuda.alignment import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS, AlignmentSearch
from proteoscope.kernels.cuda.modules import CudaGpu, open_gpu
from tests.shim.tuning import tuned

REPOSITORY = Path(__file__).resolve().parents[1]
SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
TIMES, REPEATS = 60, 1
TRYPTOPHAN = ord("W") - ord("A")
PEER_TOP = 50 * TIMES
RUN = {"date": date.today().isoformat()}  # and the device
COLD = """
import numpy as np
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.kernels.cuda.alignment import AlignmentSearch
from proteoscope.kernels.cuda.modules import GPU
with np.load({data!r}) as arrays:
    residues, offsets, query = arrays["residues"], arrays["offsets"], arrays["query"]
out = np.zeros((1, len(offsets) - 1), np.int32)
list(AlignmentSearch(GPU({device}), residues, offsets).score([query], read_matrix("BLOSUM62").scores, 11, 1, out))
"""


def emit(figure: str, **values: Any) -> None:
    """Print a figure as a JSON line immediately."""
    print(json.dumps({**RUN, "figure": figure, **values}), flush=True)


def repeated(database: SequenceDatabase, times: int) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return every sequence `times` times, still in order of length."""
    offsets = np.concatenate(([0], np.cumsum(np.repeat(database.lengths, times)))).astype(np.int64)
    return np.concatenate([np.tile(database.codes(i), times) for i in range(len(database))]), offsets


def measured(search: AlignmentSearch, queries: Sequence[NDArray[np.int8]], n: int) -> tuple[NDArray[np.int32], dict[str, float]]:
    """Return scores, and seconds and GCUPS of the first call and of the best of the next."""
    out, seconds = np.empty((len(queries), n), np.int32), []
    for _ in range(1 + REPEATS):
        began = time.perf_counter()
        for _end in search.score(queries, SCHEME.matrix.scores, SCHEME.gap_open, SCHEME.gap_extend, out, 0, n):
            pass
        seconds.append(time.perf_counter() - began)
    return out, {"first_seconds": round(seconds[0], 4), "seconds": round(min(seconds), 4)}


def cells(queries: Sequence[NDArray[np.int8]], n_residues: int) -> float:
    """Return the number of cells, in 10^9."""
    return sum(map(len, queries)) * n_residues / 1e9


def report(figure: str, queries: Sequence[NDArray[np.int8]], n_residues: int, times: dict[str, float], **values: Any) -> None:
    """Print a figure of speed."""
    emit(figure, queries=len(queries), residues=n_residues, **values, **times, gcups=round(cells(queries, n_residues) / times["seconds"]))


def write_fasta(path: Path, sequences: Iterable[NDArray[np.int8]]) -> None:
    """Write sequences of codes as FASTA without names."""
    with path.open("wb") as file:
        file.writelines(b">s\n%s\n" % (codes + ord("A")).tobytes() for codes in sequences)


class Peer(NamedTuple):
    """CUDASW++ 4.0 on a GPU."""

    folder: Path
    device: int
    flags: list[str]

    def measure(
        self,
        search: AlignmentSearch,
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        queries: list[NDArray[np.int8]],
        **values: Any,
    ) -> None:
        """Print the figures of CUDASW++ on the database of `search`."""
        with tempfile.TemporaryDirectory() as folder:
            fasta, database, query_fasta = (Path(folder) / name for name in ("database.fasta", "database", "queries.fasta"))
            write_fasta(fasta, (residues[begin:end] for begin, end in pairwise(offsets.tolist())))
            write_fasta(query_fasta, queries * 2)
            subprocess.run([self.folder / "makedb", fasta, database], check=True, stdout=subprocess.DEVNULL)
            command = [str(self.folder / "align"), "--query", str(query_fasta), "--db", str(database), "--top", str(PEER_TOP), *self.flags]
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(self.device)}
            text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        first, seconds = np.array(re.findall(r"Scan time: (\S+) s", text), float).reshape(2, len(queries))
        top = np.array(re.findall(r"^Result \d+\. Score: (\d+)", text, re.MULTILINE), np.int32).reshape(2, len(queries), -1)
        matrix, ordinary = SCHEME.matrix.scores.copy(), [ord(residue) - ord("A") for residue in "ACDEFGHIKLMNPQRSTVWY"]
        other = np.setdiff1d(np.arange(len(matrix)), ordinary)
        matrix[other], matrix[:, other] = -4, -4
        out = np.empty((len(queries), len(offsets) - 1), np.int32)
        for _end in search.score(queries, matrix, SCHEME.gap_open - 1, SCHEME.gap_extend, out):
            pass
        different = (top != -np.sort(-out, axis=1)[:, : top.shape[2]]).sum(axis=(0, 2))
        every = slice(None)
        for which, length in ((every, None), *((slice(i, i + 1), len(query)) for i, query in enumerate(queries))):
            times = {"first_seconds": round(first[which].sum(), 4), "seconds": round(seconds[which].sum(), 4)}
            wrong = int(different[which].sum())
            values |= {"program": "CUDASW++ 4.0", "length": length, "same_top_scores": wrong == 0, "different": wrong, "top": PEER_TOP}
            report("peer", queries[which], len(residues), times, **values)


def measure_large(
    device: CudaGpu, database: SequenceDatabase, queries: list[NDArray[np.int8]], figures: Sequence[str], peer: Peer | None
) -> None:
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
        if peer is not None:
            peer.measure(search, residues, offsets, queries)
        del search
    if "streamed" in figures:
        streamed = tuned(AlignmentSearch, memory_bytes=1_500_000_000)(device, residues, offsets)
        report("streamed", queries, len(residues), measured(streamed, queries, n)[1])
        report("streamed", queries[4:5], len(residues), measured(streamed, queries[4:5], n)[1], length=len(queries[4]))
        del streamed
    if "numbers" in figures:
        for numbers, name, least in ((SIXTEEN_BITS, "dpx", 90), (HALF_PRECISION, "half", 80), (THIRTY_TWO_BITS, "wide", 0)):
            if device.compute_capability() >= least:
                search = tuned(AlignmentSearch, numbers=numbers)(device, residues, offsets)
                for some in (queries[4:5], queries[4:8]):
                    times = measured(search, some, n)[1]
                    report("numbers", some, len(residues), times, numbers=name, length=len(some[0]) if len(some) == 1 else None)
                del search


def measure_equal(device: CudaGpu, database: SequenceDatabase, queries: list[NDArray[np.int8]], peer: Peer | None) -> None:
    """Print the figure on sequences of one length."""
    n, length = 1_000_000, 512
    residues = np.random.default_rng(1).choice(database.residues, n * length)
    offsets = np.arange(n + 1, dtype=np.int64) * length
    search = AlignmentSearch(device, residues, offsets)
    report("equal", queries, len(residues), measured(search, queries, n)[1], length_of_subjects=length)
    if peer is not None:
        peer.measure(search, residues, offsets, queries, length_of_subjects=length)


def measure_overflow(device: CudaGpu) -> None:
    """Print the figures on scores beyond 16 bits."""
    for n, length in ((1000, 5000), (1, 40_000)):
        query = np.full(length, TRYPTOPHAN, np.int8)
        search = AlignmentSearch(device, np.tile(query, n), np.arange(n + 1, dtype=np.int64) * length)
        out, times = measured(search, [query], n)
        report("overflow", [query], n * length, times, length=length, score=int(out.min()), right=bool((out == 11 * length).all()))


def measure_small(device: CudaGpu, database: SequenceDatabase, queries: list[NDArray[np.int8]]) -> None:
    """Print the figures on the 20,000 proteins, with those of the CPU."""
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
        program = COLD.format(data=str(data), device=device)
        for kernels in ("none", "on disk"):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY, env={**os.environ, "PROTEOSCOPE_CACHE": folder})
            emit("cold", length=len(query), compiled_kernels=kernels, seconds=round(time.perf_counter() - began, 2))


def main() -> None:
    """Run from the command line."""
    figures = ("all", "single", "streamed", "equal", "numbers", "overflow", "small", "cold")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the unpacked test data")
    parser.add_argument("--device", type=int, default=0, help="number of the CUDA device")
    parser.add_argument("--figures", nargs="+", choices=figures, default=figures)
    parser.add_argument("--cudasw4", type=Path, help="folder of CUDASW++ 4.0's programs, to measure them too")
    options = parser.parse_args()
    described = {gpu.numbers[0]: gpu.description for gpu in usable_gpus(needed=True)}
    if options.device not in described:
        parser.error(f"there is no CUDA device {options.device}; there are {sorted(described)}")
    RUN["device"] = described[options.device]
    data = options.data / "sequences"
    database, query_set = (read_sequences([data / name], Progress()) for name in ("mmseqs_DB.fasta", "cudasw_queries20.fasta"))
    queries = [query_set.codes(i) for i in range(len(query_set))]  # shortest first
    device = open_gpu(options.device)
    peer = None
    if options.cudasw4 is not None:
        narrow, wide = ("DPXs16", "DPXs32") if device.compute_capability() >= 90 else ("Half2", "Float")
        kernels = ["--singlePassType", narrow, "--manyPassType_small", narrow, "--manyPassType_large", wide, "--overflowType", wide]
        scoring = ["--mat", "blosum62", "--gop", "-11", "--gex", "-1"]
        peer = Peer(options.cudasw4.resolve(), options.device, [*scoring, *kernels, "--uploadFull", "--prefetchDBFile", "--verbose"])
    if "small" in options.figures:
        measure_small(device, database, queries)
    if "overflow" in options.figures:
        measure_overflow(device)
    if "cold" in options.figures:
        measure_cold(options.device, database, queries[4])
    if {"all", "single", "streamed", "numbers"} & set(options.figures):
        measure_large(device, database, queries, options.figures, peer)
    if "equal" in options.figures:
        measure_equal(device, database, queries, peer)


if __name__ == "__main__":
    main()
