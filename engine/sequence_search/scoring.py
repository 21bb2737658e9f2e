"""Workload that scores every query against every sequence of a database, on any devices.

Queries are scored in batches whose scores fit into memory. A session reports the fraction of the scoring that each device computed.
Synthetic sequences measure the speed of devices.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, NewType

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.executor import PROCESSOR, Executor, Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.summary import DeviceShare
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.alignment_plan import predicted_cycles
from proteoscope.kernels.device import Device, backend_module

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.alignment import AlignmentSearch

__all__ = [
    "KIND",
    "STEP_CELLS",
    "QueryBatch",
    "SequencesAgainstSequences",
    "build_workload",
    "measure_shares",
    "open_session",
    "query_batches",
    "sample_sequences",
    "score_all",
    "score_batch",
    "score_queries",
]

KIND = "sequences"
STEP_CELLS = 1_000_000
"""Number of cells of alignment matrices per step of the progress."""
_SECONDS_OF_SHARED, _SECONDS_OF_PARTITION = 0.25, 1.0  # duration of a section with and without other devices that can take over work
# Without GPUs, long sections are better, because threads wait for each other at the end of each section. There are
# still several sections, so that a cancelled run can be resumed.
SECONDS_ON_THREADS = 10.0
_FIRST_CELLS = {True: 8e9, False: 1e11}  # cells of the first section, on the CPU (True) and on a GPU
FIRST_SECONDS_ON_THREADS = 5.0  # duration of the first section; the speed is `_FIRST_CELLS[True]` cells per second and thread
QueryBatch = NewType("QueryBatch", NDArray[np.int64])
"""Indices of queries that are scored together, in the order of the query files."""

_MAXIMUM_SCORES = 64_000_000  # maximum scores of a batch, 256 MB
_SUBJECTS, _QUERIES = 60_000, 20
_MEAN_LOG, _SPREAD = 5.75, 0.6  # mean and standard deviation of the logarithms of lengths, similar to proteins
_RESIDUES = 20


def build_workload(residues: NDArray[np.int8], offsets: NDArray[np.int64], scheme: ScoringScheme) -> Workload:
    """Return the workload of scoring queries against a database.

    Parameters
    ----------
    residues : ndarray of int8
        Residue codes of all sequences, shortest sequence first.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each sequence in `residues`.
    scheme : ScoringScheme
        Matrix and gap costs.
    """
    settings = {"gap_open": scheme.gap_open, "gap_extend": scheme.gap_extend}
    return Workload(KIND, {"database": {"residues": residues, "offsets": offsets}, "matrix": {"scores": scheme.matrix.scores}}, settings)


def score_queries(session: Session, queries: Sequence[NDArray[np.int8]]) -> NDArray[np.int32]:
    """Return the Smith-Waterman scores of all pairs of queries and subjects.

    Parameters
    ----------
    session : Session
        Session of a workload from `build_workload`.
    queries : sequence of ndarray of int8
        Residue codes of each query.

    Returns
    -------
    ndarray of int32, shape (queries, subjects)
        Exact scores.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    state = {
        "residues": np.concatenate([np.zeros(0, np.int8), *queries]),
        "offsets": segment_offsets(np.array([len(query) for query in queries], np.int64)),
    }
    scores: NDArray[np.int32] = session.run(state, step_cost=STEP_CELLS)["scores"]
    return scores


def score_all(
    queries: Sequence[NDArray[np.int8]],
    residues: NDArray[np.int8],
    offsets: NDArray[np.int64],
    scheme: ScoringScheme,
    threads: int,
    progress: Progress,
) -> NDArray[np.int32]:
    """Return the same scores as `score_queries`, computed on the CPU; suitable for a database that is searched once.

    Raises
    ------
    ParameterError
        If a score could exceed 32 bits.
    Cancelled
        If the user cancels.
    """
    scheme.check(max(map(len, queries), default=0), int(np.diff(offsets).max(initial=0)))
    with Executor(Resources(threads, progress=progress)).session(build_workload(residues, offsets, scheme)) as session:
        return score_queries(session, queries)


class SequencesAgainstSequences(PredictableWorkloadType):
    """Workload type for scoring: its items are the subjects, and the state of a round is a batch of queries.

    A result has one row per query and one column per subject.
    """

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return sample_sequences(size, seed)

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of alignment matrix cells of each subject with all queries of the round."""
        cells: NDArray[np.float64] = np.diff(work.sources["database"]["offsets"]) * float(max(1, len(state["residues"])))
        return cells

    def operations(self, work: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the number of operations (see `PredictableWorkloadType`): matrix cells on the CPU, predicted clock cycles on a GPU."""
        if gpu is None:
            return float(self.costs(work, state).sum())

        return predicted_cycles(
            gpu.capability,
            gpu.multiprocessors,
            gpu.shared_bytes,
            np.diff(state["offsets"]).tolist(),
            np.diff(work.sources["database"]["offsets"]),
        )

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Load the database to the device."""
        database = work.sources["database"]
        search = backend_module(device, "alignment").AlignmentSearch(device, database["residues"], database["offsets"])
        alone = SECONDS_ON_THREADS if device.is_processor else _SECONDS_OF_PARTITION
        yield _Computation(work, search, device, _SECONDS_OF_SHARED if is_shared else alone)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        """Return scores of zero for `n` subjects."""
        return {"scores": np.zeros((len(state["offsets"]) - 1, n), np.int32)}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy the scores `rows` to the subjects `first:end` of `into`."""
        into["scores"][:, first:end] = rows["scores"]


class _Computation:
    """Scoring of queries against a database on one device."""

    def __init__(self, work: Workload, search: AlignmentSearch, device: Device, seconds: float) -> None:
        self._search, self._seconds = search, seconds
        self._offsets: NDArray[np.int64] = work.sources["database"]["offsets"]
        self._scheme = work.sources["matrix"]["scores"], work.settings["gap_open"], work.settings["gap_extend"]
        self._cells_of_partition = _FIRST_CELLS[device.is_processor]
        if isinstance(device, Processor) and seconds == SECONDS_ON_THREADS:
            self._cells_of_partition *= FIRST_SECONDS_ON_THREADS * device.threads
        self._queries: list[NDArray[np.int8]] = []
        self._scores = np.zeros((0, 0), np.int32)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Set the queries of a round."""
        if items is not None:
            raise ValueError("sequences are scored against all subjects of a run of them")
        self._queries = np.split(state["residues"], state["offsets"][1:-1]) if len(state["offsets"]) > 1 else []
        self._scores = np.zeros((len(self._queries), len(self._offsets) - 1), np.int32)  # memory is allocated only where it is written to

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Score the subjects `first:last` in groups that take about equal time, and yield the scores of each group when it is complete."""
        residues = float(max(1, sum(map(len, self._queries))))
        while first < last:
            reach = self._offsets[first] + self._cells_of_partition / residues
            end = min(last, max(first + 1, int(np.searchsorted(self._offsets, reach, side="right")) - 1))
            began = perf_counter()
            with closing(self._search.score(self._queries, *self._scheme, self._scores, first, end)) as steps:
                for _ in steps:
                    yield PartialResult(first, beyond=float(self._search.cells_done))
            cells = residues * float(self._offsets[end] - self._offsets[first])
            self._cells_of_partition = max(1e6, cells * self._seconds / max(1e-3, perf_counter() - began))
            yield PartialResult(end, {"scores": self._scores[:, first:end]})
            first = end


def query_batches(queries: SequenceDatabase, database: SequenceDatabase, scheme: ScoringScheme) -> list[QueryBatch]:
    """Return the queries in the order of their files, in batches whose scores fit into memory.

    Raises
    ------
    ParameterError
        If a score could exceed 32 bits.
    """
    scheme.check(int(queries.lengths.max(initial=0)), int(database.lengths.max(initial=0)))
    order, size = np.argsort(queries.file_index), max(1, _MAXIMUM_SCORES // max(1, len(database)))
    return [QueryBatch(order[first : first + size]) for first in range(0, len(order), size)]


def score_batch(
    session: Session, queries: SequenceDatabase, batch: QueryBatch, database: SequenceDatabase, progress: Progress
) -> NDArray[np.int32]:
    """Return the Smith-Waterman scores of a batch of queries with all subjects, (queries, subjects) int32.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    progress.stage("Scoring", int(queries.lengths[batch].sum()) * database.n_residues // STEP_CELLS)
    return score_queries(session, [queries.codes(number) for number in batch.tolist()])


def sample_sequences(size: float, seed: int) -> Sample:
    """Return synthetic queries and a synthetic database whose numbers grow with `size`."""
    rng = np.random.default_rng(seed)
    n_queries = max(1, round(_QUERIES * size ** (1 / 3)))
    n = max(20, round(_SUBJECTS * size * _QUERIES / n_queries))
    lengths = np.sort(np.clip(rng.lognormal(_MEAN_LOG, _SPREAD, n), 20, 5000).astype(np.int64))
    residues = rng.integers(0, _RESIDUES, int(lengths.sum()), np.int8)
    query_lengths = np.clip(rng.lognormal(_MEAN_LOG, _SPREAD, n_queries), 20, 5000).astype(np.int64)
    state = {"residues": rng.integers(0, _RESIDUES, int(query_lengths.sum()), np.int8), "offsets": segment_offsets(query_lengths)}
    return Sample(build_workload(residues, segment_offsets(lengths), ScoringScheme(read_matrix("BLOSUM62"), 11, 1)), [state])


@contextmanager
def open_session(database: SequenceDatabase, scheme: ScoringScheme, resources: Resources) -> Iterator[Session]:
    """Open a session that scores queries against a database; at its end, report the fraction and speed of each device if a GPU was used."""
    with Executor(resources).session(build_workload(database.residues, database.offsets, scheme)) as session:
        yield session
        shares = measure_shares(session)
        if any(share.device != PROCESSOR for share in shares):
            each = [f"{share.device} scored {share.share * 100:.3g} % of the cells at {_rate(share)}" for share in shares]
            resources.progress.message("; ".join(each))


def measure_shares(session: Session) -> tuple[DeviceShare, ...]:
    """Return the fraction of the scoring that each device computed."""
    return tuple(DeviceShare(share.device, share.fraction, share.speed / 1e9, share.with_start) for share in session.shares())


def _rate(share: DeviceShare) -> str:
    return f"{share.gcups:,.3g} GCUPS" + (", including its start" if share.with_start else "")
