"""Overhead of the executor over a plain call of the search on the same device.

    python -m benchmarks.executor_overhead --data FOLDER [--device cpu|cuda] [--pairs 9] [--size 1] [--workers 2]

Two workloads, a search of a sequence database and a search of spectra among peptides, are each scored by a plain call of the kernels and
through a session, in turn and in changing order; all data are sent to the device before. Then the samples with which the cost model
measures devices are run for the other types of work, by their own computation (including the merging of rows) and through a session.
`--size` is the size of these samples. One JSON line for each: medians of both in seconds, and the median ratio of a pair.

With ``--workers N``, the same workloads and samples are instead run by a session on N local workers and by a session on as many threads of
this process, in turn and in changing order. `ratio` is the ratio of the seconds; `imbalance` is the longest busy time of a worker divided
by the mean. The time to start the workers and to send the columns to them (`opening_s`) is not included.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.figures import emit
from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import processor, resolve_device
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.kinds import KINDS, workload_type
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.execution.workload import PredictableWorkloadType, Rows, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches import spectrum_scoring
from proteoscope.engine.searches import SEARCHES  # the import registers the workload types
from proteoscope.engine.sequence_search import scoring
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.spectra.columns import SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.score_kinds import HYPERSCORE
from tests.shim.search_inputs import empty_hits, random_search

_QUERIES = 8  # the shortest queries, which take the CPU some seconds
_SIZES = {"vector-groups": 4.0, "fragment-index": 0.5, "mass-lists": 0.25, "reads": 0.06, "structures": 0.5, "superpositions": 0.06}
_USUAL_SIZE = 0.25
"""Size of samples of kinds without a workload here: about a second of two threads. K-means is excluded: a single device computes several
rounds together."""
Run = Callable[[], object]


def sequences(data: Path, resources: Resources, stack: ExitStack, sessions: list[Session]) -> tuple[Run, Run]:
    """Return a plain call and a session of eight queries against 20,000 proteins."""
    database, queries = (read_sequences([data / "sequences" / name], Progress()) for name in ("mmseqs_DB.fasta", "cudasw_queries20.fasta"))
    codes = [queries.codes(i) for i in range(len(queries))][:_QUERIES]
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    device = resources.gpus[0] if resources.gpus else Processor(resources.threads)
    search = backend_module(device, "alignment").AlignmentSearch(device, database.residues, database.offsets)
    session = stack.enter_context(Executor(resources).session(scoring.build_workload(database.residues, database.offsets, scheme)))
    sessions.append(session)

    def plain() -> object:
        scores = np.zeros((len(codes), len(database)), np.int32)
        for _ in search.score(codes, scheme.matrix.scores, scheme.gap_open, scheme.gap_extend, scores):
            pass
        return scores

    return plain, lambda: scoring.score_queries(session, codes)


def spectra(data: Path, resources: Resources, stack: ExitStack, sessions: list[Session]) -> tuple[Run, Run]:
    """Return a plain call and a session of synthetic spectra against synthetic peptides."""
    arrays, queries, *others = random_search(77, HYPERSCORE, n_queries=20_000, n_peptides=300_000, most=1)
    n, width = len(queries.mass), 0.5
    device = resources.gpus[0] if resources.gpus else Processor(resources.threads)
    search = backend_module(device, "scoring").SpectrumSearch(device, *others)
    work = spectrum_scoring.create_workload(
        SpectrumIndex(arrays, queries, n, SpectrumSeries.for_spectra("by", np.zeros(len(arrays.offsets) - 1, np.uint8))),
        *others,
        hits_per_query=5,
        slots=2,
        histogram_width=width,
    )
    session = stack.enter_context(Executor(resources).session(work))
    sessions.append(session)

    def plain() -> object:
        hits = empty_hits(n, width=width)
        for _ in search.search_queries(arrays, queries, hits, 0, n):
            pass
        return hits.score

    return plain, lambda: session.run({"phase": "search", "cost": np.ones(n)})["score"]


def of_kind(name: str, size: float = 1.0) -> Callable[..., tuple[Run, Run]]:
    """Return the session of a sample of a workload type, twice."""

    def prepare(data: Path, resources: Resources, stack: ExitStack, sessions: list[Session]) -> tuple[Run, Run]:
        kind = workload_type(Workload(name, {}, {}))
        assert isinstance(kind, PredictableWorkloadType)
        sample = kind.samples(size * _SIZES.get(name, _USUAL_SIZE), 5)
        session = stack.enter_context(Executor(resources).session(sample.workload))
        sessions.append(session)

        def run() -> object:
            return joined([session.run(state) for state in sample.states])

        return run, run

    prepare.__name__ = name
    return prepare


def computed(name: str, size: float) -> Callable[..., tuple[Run, Run]]:
    """Return only the computation, and a session, of a sample of a workload type."""

    def prepare(data: Path, resources: Resources, stack: ExitStack, sessions: list[Session]) -> tuple[Run, Run]:
        kind = workload_type(Workload(name, {}, {}))
        assert isinstance(kind, PredictableWorkloadType)
        sample = kind.samples(size, 5)
        device = resources.gpus[0] if resources.gpus else Processor(resources.threads)
        opened = stack.enter_context(kind.open(sample.workload, device, is_shared=False))
        session = stack.enter_context(Executor(resources).session(sample.workload))
        sessions.append(session)

        def plain() -> object:
            every = []
            for state in sample.states:
                n = len(kind.costs(sample.workload, state))
                rows, first = kind.empty(sample.workload, state, n), 0
                opened.begin(state, None)
                for part in opened.search(0, n):
                    if part.rows is not None and part.end > first:
                        kind.merge(rows, first, part.end, part.rows)
                        first = part.end
                every.append(rows)
            return joined(every)

        return plain, lambda: joined([session.run(state) for state in sample.states])

    prepare.__name__ = name
    return prepare


def joined(every: list[Rows]) -> np.ndarray:
    """Return all columns of all rounds, concatenated."""
    return np.concatenate([np.ravel(column) for rows in every for _, column in sorted(rows.items())])


def compare_workers(data: Path, n: int, pairs: int, only: list[str], size: float) -> None:
    """Compare sessions on local workers with sessions here, on as many threads."""
    assert {name for search in SEARCHES for name, _ in search.workload_types} >= set(_SIZES)
    with open_cluster(f"local:{n}", Progress(), device="cpu", threads=n) as cluster:
        kinds = [of_kind(name, size) for name in only or _SIZES]
        for prepare in kinds if only else (sequences, spectra, *kinds):
            with ExitStack() as stack:
                here, there = Resources(n), Resources(n, remote_workers=cluster)
                sessions: list[Session] = []
                ways = [prepare(data, resources, stack, sessions)[1] for resources in (here, there)]
                began = time.perf_counter()
                answers = [way() for way in ways]
                opening = time.perf_counter() - began
                assert np.array_equal(*answers), "both give the same scores"
                taken: tuple[list[float], list[float]] = [], []
                for pair in range(pairs):
                    for side in (0, 1) if pair % 2 else (1, 0):
                        began = time.perf_counter()
                        ways[side]()
                        taken[side].append(time.perf_counter() - began)
                busy = [share.fraction / share.speed for share in sessions[1].shares()]
            ratio = median(workers / threads for threads, workers in zip(*taken, strict=True))
            emit(
                {
                    **_about(),
                    "figure": "local workers",
                    "workload": prepare.__name__,
                    "size": size,
                    "workers": n,
                    "pairs": pairs,
                    "opening_s": round(opening, 2),
                    "threads_s": round(median(taken[0]), 4),
                    "workers_s": round(median(taken[1]), 4),
                    "ratio": round(ratio, 3),
                    "imbalance": round(max(busy) / (sum(busy) / len(busy)), 3),
                }
            )


def _about() -> dict[str, str]:
    return {"date": str(date.today()), "processor": processor().description}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--workers", type=int, default=0, metavar="N")
    parser.add_argument("--kinds", nargs="+", default=[], choices=tuple(KINDS), help="these kinds of work alone")
    parser.add_argument("--size", type=float, default=1.0, help="of samples: some hundredths of a second of a fast GPU each")
    options = parser.parse_args()
    if options.workers:
        compare_workers(options.data, options.workers, options.pairs, options.kinds, options.size)
        return 0
    device, progress = resolve_device(options.device), Progress()
    kinds = options.kinds or [name for name in KINDS if name not in ("sequences", "spectra")]
    for prepare in (*(() if options.kinds else (sequences, spectra)), *(computed(name, options.size) for name in kinds)):
        with ExitStack() as stack:
            resources = Resources(available_threads(), open_gpus(device, progress), progress=progress)
            ways, taken = prepare(options.data, resources, stack, []), ([], [])  # type: tuple[Run, Run], tuple[list[float], list[float]]
            answers = [way() for way in ways]
            assert np.array_equal(*answers), "both ways give the same scores"
            for pair in range(options.pairs):
                for side in (0, 1) if pair % 2 else (1, 0):
                    began = time.perf_counter()
                    ways[side]()
                    taken[side].append(time.perf_counter() - began)
        ratio = median(executed / plain for plain, executed in zip(*taken, strict=True))
        emit(
            {
                **_about(),
                "figure": "executor",
                "workload": prepare.__name__,
                "device": device.description,
                "pairs": options.pairs,
                "plain_s": round(median(taken[0]), 4),
                "executor_s": round(median(taken[1]), 4),
                "ratio": round(ratio, 3),
            }
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
