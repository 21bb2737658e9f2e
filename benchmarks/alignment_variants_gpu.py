"""Time of `AlignmentSearch.score` on a GPU for different divisions of a short database into kernel launches.

    python -m benchmarks.alignment_variants_gpu --data FOLDER [--device 0] [--only short steps host all] > alignment_variants_gpu.txt

FOLDER holds `sequences/mmseqs_DB.fasta` and `sequences/cudasw_queries20.fasta`, the first gzipped or not. Scores are checked against the
CPU's. It prints:

short
    one query of 464 residues, and 20 queries, against 20,000 proteins: each variant's milliseconds for a whole call (median of many, the
    GPU warm), milliseconds from the start of the first kernel to the end of the last, number of launches, and GCUPS of the whole call.
steps
    cycles between two steps of a warp, for each shape of block: with one block alone on a multiprocessor, and with the whole GPU occupied
    by sequences of equal length. The constants of `proteoscope.kernels.cuda.alignment_plan` are fitted to these.
host
    where the CPU's time goes in a call.
all
    20 queries, and one, against the proteins 60 times: 543 million residues.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.sequence_search_gpu import repeated
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.database import SequenceDatabase, read_sequences
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cuda.alignment import AlignmentSearch
from proteoscope.kernels.cuda.modules import CudaGpu

SCHEME = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
ONE = 4  # number of the query of 464 residues
ONLY = ("short", "steps", "host", "all")
VARIANTS: dict[str, dict[str, Any]] = {
    "planned": {},
    "one part": {"n_longest": 0},
    "one part, 32 x 16": {"n_longest": 0, "shape": (32, 16), "threads": 256},
    **{
        f"{n} of {lanes} x {columns}, {threads} on {blocks}; {others[0]} x {others[1]}, {more}": {
            "n_longest": n,
            "longest_shape": (lanes, columns, threads, blocks),
            "shape": others,
            "threads": more,
        }
        for n, (lanes, columns, threads), blocks, others, more in (
            (128, (64, 8, 128), 20, (16, 32), 256),
            (128, (64, 8, 128), 24, (16, 32), 256),
            (192, (64, 8, 128), 20, (16, 32), 256),
            (192, (64, 8, 128), 24, (16, 32), 256),
            (256, (64, 8, 128), 28, (16, 32), 256),
            (384, (64, 8, 128), 32, (16, 32), 384),
            (512, (64, 8, 128), 40, (8, 64), 256),
            (128, (128, 4, 128), 20, (16, 32), 256),
            (192, (128, 4, 256), 20, (16, 32), 256),
            (256, (128, 4, 256), 24, (16, 32), 256),
            (256, (64, 8, 256), 20, (16, 32), 256),
        )
    },
}
VARIANTS_OF_MANY: dict[str, dict[str, Any]] = {
    f"{n} of {lanes} x {columns}, {threads} on {blocks}; {others[0]} x {others[1]}, {more}": {
        "n_longest": n,
        "longest_shape": (lanes, columns, threads, blocks),
        "shape": others,
        "threads": more,
    }
    for n, (lanes, columns, threads), blocks, others, more in (
        (512, (64, 16, 256), 28, (8, 48), 384),
        (512, (64, 16, 256), 32, (8, 40), 384),
        (1024, (32, 32, 256), 36, (4, 48), 384),
        (1024, (64, 16, 256), 40, (8, 32), 512),
    )
}
SHAPES = (
    (128, 4, 128),
    (128, 4, 256),
    (64, 8, 128),
    (64, 8, 256),
    (128, 8, 256),
    (128, 16, 256),
    (32, 16, 128),
    (32, 16, 256),
    (16, 32, 128),
    (16, 32, 256),
    (16, 32, 384),
    (8, 64, 256),
    (2, 48, 384),
)


class TimedGpu(CudaGpu):
    """GPU that records events before and after each kernel if `events` is a list."""

    events: list[Any] | None = None
    n_launches = 0

    def launch(self, *arguments: Any, **options: Any) -> None:
        """Launch a kernel like `Gpu`, and record events before and after it if `events` is a list."""
        self.n_launches += 1
        if self.events is None:
            super().launch(*arguments, **options)
            return
        begin = self.record(arguments[5], is_timed=True)
        super().launch(*arguments, **options)
        self.events.append((begin, self.record(arguments[5], is_timed=True)))

    def kernel_milliseconds(self) -> float:
        """Return the milliseconds from the start of the first recorded kernel to the end of the last one."""
        assert self.events
        since = [[self.seconds_between(self.events[0][0], event) for event in pair] for pair in self.events]
        return 1e3 * (max(end for _, end in since) - min(begin for begin, _ in since))

    def clock(self) -> float:
        """Return the maximum cycles per second."""
        return self.clock_rate() * 1e3


def score(search: AlignmentSearch, queries: Sequence[NDArray[np.int8]], out: NDArray[np.int32]) -> float:
    """Return seconds of a call."""
    began = time.perf_counter()
    for _ in search.score(queries, SCHEME.matrix.scores, SCHEME.gap_open, SCHEME.gap_extend, out):
        pass
    return time.perf_counter() - began


def measured(gpu: TimedGpu, search: AlignmentSearch, queries: Sequence[NDArray[np.int8]], n: int, repeats: int) -> tuple[NDArray, str]:
    """Return the scores, and a text with the milliseconds of a call and of its kernels, the number of launches, and GCUPS."""
    out = np.empty((len(queries), n), np.int32)
    for _ in range(2):
        score(search, queries, out)
    seconds = sorted(score(search, queries, out) for _ in range(repeats))
    kernels = []
    for _ in range(max(1, repeats // 5)):
        gpu.events, gpu.n_launches = [], 0
        score(search, queries, out)
        kernels.append(gpu.kernel_milliseconds())
    gpu.events = None
    cells = sum(map(len, queries)) * int(search._offsets[-1])
    median = seconds[len(seconds) // 2]
    text = f"{median * 1e3:9.3f} {seconds[0] * 1e3:9.3f} {np.median(kernels):9.3f} {gpu.n_launches:5d} {cells / median / 1e9:7.0f}"
    return out, text


def kind_with(options: dict[str, Any]) -> type[AlignmentSearch]:
    """Return `AlignmentSearch` with other values of its attributes."""
    return type("AlignmentSearch", (AlignmentSearch,), options)


def measure_short(gpu: TimedGpu, database: SequenceDatabase, queries: list[NDArray[np.int8]]) -> None:
    """Print the table of the variants."""
    expected = score_all(queries, database.residues, database.offsets, SCHEME, 8, Progress())
    for some, repeats, variants in (
        ([ONE], 100, list(VARIANTS)),
        (range(len(queries)), 5, [*list(VARIANTS)[:2], *VARIANTS_OF_MANY]),
        ([0], 30, ["planned"]),
        ([19], 10, ["planned"]),
    ):
        print(f"\n{len(some)} queries; milliseconds of a call (median, least), of kernels; launches; GCUPS")
        for name in variants:
            search = kind_with((VARIANTS | VARIANTS_OF_MANY)[name])(gpu, database.residues, database.offsets)
            try:
                out, text = measured(gpu, search, [queries[i] for i in some], len(database), repeats)
            except Exception as error:
                print(f"{name:60} {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            right = np.array_equal(out, expected[list(some)])
            parts = [p for some_parts in search._plans.values() for p in some_parts]
            shapes = "; ".join(f"{p.last - p.first} of {p.shape.lanes}x{p.shape.columns}/{p.shape.threads} on {p.blocks}" for p in parts)
            print(f"{name:60} {text} {'right' if right else 'WRONG'} {shapes}", flush=True)


def measure_steps(gpu: TimedGpu, query: NDArray[np.int8]) -> None:
    """Print cycles of steps."""
    print(f"\ncycles at {gpu.clock() / 1e9:.3f} GHz of a step of a warp in a block alone, and on a full GPU")
    random = np.random.default_rng(1)
    n_rows = 8000
    for lanes, columns, threads in SHAPES:
        kind = kind_with({"n_longest": 0, "shape": (lanes, columns), "threads": threads})
        in_block, fastest = threads // lanes * 2, []
        for n, length in ((in_block, n_rows), (in_block * gpu.multiprocessors() * 12, 400)):
            residues = random.integers(0, 20, n * length).astype(np.int8)
            search = kind(gpu, residues, np.arange(n + 1, dtype=np.int64) * length)
            out = np.empty((1, n), np.int32)
            score(search, [query], out)
            times = []
            for _ in range(3):
                gpu.events = []
                score(search, [query], out)
                times.append(gpu.kernel_milliseconds())
            gpu.events = None
            launches = -(-len(query) // (lanes * columns))
            fastest.append(min(times) / 1e3 / launches)
        more = lanes if lanes <= 32 else 2 * lanes - 32
        step = fastest[0] * gpu.clock() / (n_rows / 2 + more)
        full = fastest[1] * gpu.clock() / (12 * (200 + more))
        print(f"{lanes:4} x {columns:3}, {threads:4} threads: {step:8.0f} {full:8.0f}", flush=True)


def measure_host(gpu: TimedGpu, database: SequenceDatabase, query: NDArray[np.int8]) -> None:
    """Print a profile of calls."""
    search, out = AlignmentSearch(gpu, database.residues, database.offsets), np.empty((1, len(database)), np.int32)
    for _ in range(3):
        score(search, [query], out)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(200):
        score(search, [query], out)
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(28)
    print("\nhost, 200 calls of one query")
    print("\n".join(line for line in text.getvalue().splitlines() if line.strip())[:6000], flush=True)
    planning = []
    for _ in range(20):
        search._plans.clear()
        planning.append(score(search, [query], out))
    print(f"a call that plans: {np.median(planning) * 1e3:.3f} ms")


def measure_all(gpu: TimedGpu, database: SequenceDatabase, queries: list[NDArray[np.int8]]) -> None:
    """Print the speed on a database so large that the time of launches is negligible."""
    residues, offsets = repeated(database, 60)
    search = AlignmentSearch(gpu, residues, offsets)
    print("\n543 million residues: milliseconds of a call (median, least), of kernels; launches; GCUPS")
    for some in (queries, queries[ONE : ONE + 1]):
        print(f"{len(some):2} queries {measured(gpu, search, some, len(offsets) - 1, 3)[1]}", flush=True)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=ONLY, default=ONLY)
    options = parser.parse_args()
    folder = options.data / "sequences"
    files = [next(folder.glob(f"{name}.fasta*")) for name in ("mmseqs_DB", "cudasw_queries20")]
    database, query_set = (read_sequences([path], Progress()) for path in files)
    queries = [query_set.codes(i) for i in range(len(query_set))]
    gpu = TimedGpu(options.device)
    began = time.perf_counter()
    if "short" in options.only:
        measure_short(gpu, database, queries)
    if "host" in options.only:
        measure_host(gpu, database, queries[ONE])
    if "all" in options.only:
        measure_all(gpu, database, queries)
    if "steps" in options.only:
        measure_steps(gpu, queries[ONE])
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
