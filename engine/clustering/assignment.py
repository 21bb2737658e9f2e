"""Assign: each point or vector to the nearest of k centroids, and sums over those of each, on any devices, as kinds of work.

Devices get the centroids, and give labels and partial sums, which the host adds up (Li's thesis, Algorithms 4.9 and 4.10). Where there is
one device alone, it does many rounds without a word of centroids.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.execution.executor import Session
from engine.execution.work import Columns, Piece, Rows, Work, kind_of
from kernels.device import Device, twin
from kernels.k_means_layouts import (
    AT_THE_END,
    IN_PIECES,
    NEVER,
    POINTS_OF_RUN,
    Assigned,
    PointSums,
    Rounds,
    VectorSums,
    total_sums,
)
from kernels.vector_layouts import VectorArrays

__all__ = ["POINTS", "VECTORS", "Assignment", "PointsToCentroids", "VectorsToCentroids", "assign", "point_work", "vector_work"]

POINTS, VECTORS = "points", "vectors"
_COST_OF_ELEMENT = (
    0.1  # of the clusters, how many have something in a vector's bin: only ratios matter, beside other vectors of as many elements
)


class Assignment(NamedTuple):
    """Result of rounds.

    Attributes
    ----------
    labels : (n,) int32, -1 of a vector that may have no centroid. distances : (n,) float64, their squares, or (0,). sums : of the items of
        each cluster. centroids : those that the last round assigned to. rounds : how many were done. changed : labels that differ from
        those of the round before.
    """

    labels: NDArray[np.int32]
    distances: NDArray[np.float64]
    sums: PointSums | VectorSums
    centroids: Any
    rounds: int
    changed: int


def point_work(points: NDArray[np.int32]) -> Work:
    """Points (n, d), whole numbers."""
    return Work(POINTS, {"points": {"points": points}}, {})


def vector_work(vectors: VectorArrays, n_bins: int, low: NDArray[np.int64] | None = None, high: NDArray[np.int64] | None = None) -> Work:
    """Vectors, and the ranges of centroids (n,) that each may have; any without."""
    ranges = {} if low is None or high is None else {"low": low, "high": high}
    return Work(VECTORS, {"vectors": vectors._asdict(), "ranges": ranges}, {"n_bins": n_bins})


def assign(
    session: Session,
    work: Work,
    centroids: NDArray[np.float64] | VectorSums,
    before: NDArray[np.int32],
    *,
    rounds: int = 1,
    tolerance: float = 0.0,
    measures: bool = False,
) -> Assignment:
    """Assign all items, and, on a device that is alone, go on with the new centroids for so many rounds.

    Parameters
    ----------
    work : that of the session. before : (n,), the labels of the last round; -2 where there are none.
    tolerance : see `kernels.k_means_layouts.rounds_through_host`.
    measures : one round that tells distances, and no sums.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    rounds = rounds if len(session.devices) == 1 and not measures else 1
    columns = centroids._asdict() if isinstance(centroids, VectorSums) else {"centroids": centroids}
    state: dict[str, Any] = {"centroids": columns, "rounds": rounds, "tolerance": tolerance, "measures": measures}
    state["before"] = before if rounds > 1 else None
    state["round_cost"] = cost = float(kind_of(work).costs(work, state).sum()) / rounds  # a round is a step of the progress
    # Rounds that are not done after all must not tell how fast a device is.
    rows = session.run(state, step_cost=cost, is_measured=rounds == 1 and not measures)
    sums = _sums(type(centroids) is VectorSums, rows)
    used = centroids
    if rows["rounds"][0]:
        used = VectorSums(*(rows[f"of_{name}"] for name in columns)) if isinstance(centroids, VectorSums) else rows["of_centroids"]
    changed = int(rows["changed"][0]) if rows["rounds"][0] else int(np.count_nonzero(rows["labels"] != before))
    return Assignment(rows["labels"], rows["distances"], sums, used, max(1, int(rows["rounds"][0])), changed)


def _sums(is_sparse: bool, rows: Rows) -> PointSums | VectorSums:
    return VectorSums(rows["keys"], rows["sums"], rows["counts"]) if is_sparse else PointSums(rows["sums"], rows["counts"])


class _Kind:
    """Items are runs of points, or vectors; the state of a round has the centroids."""

    is_sparse: ClassVar[bool]
    of_item: ClassVar[int]  # so many points, or vectors
    parts_of_worker = 1  # a part has sums of its own

    def costs(self, work: Work, state: Any) -> NDArray[np.float64]:
        """Operations of all rounds, at the most."""
        k, d = self._shape(state)
        return self._operations(work) * float(state["rounds"] * k * max(1, d))

    def _operations(self, work: Work) -> NDArray[np.float64]:
        raise NotImplementedError

    @contextmanager
    def open(self, work: Work, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """The items on the device."""
        yield _Computation(self._means(work, device), self.is_sparse, self._length(work), self.of_item, is_shared)

    def _length(self, work: Work) -> int:
        raise NotImplementedError

    def _means(self, work: Work, device: Device) -> Any:
        raise NotImplementedError

    def empty(self, work: Work, state: Any, n: int) -> Rows:
        """Nothing assigned."""
        (k, d), n = self._shape(state), self._length(work)
        none = np.empty(0, np.int64)
        sums = (
            VectorSums(none, none, np.zeros(k, np.int64))
            if self.is_sparse
            else PointSums(np.zeros((k, d), np.int64), np.zeros(k, np.int64))
        )
        return {
            "labels": np.full(n, -1, np.int32), "distances": np.empty(n if state["measures"] else 0), "rounds": np.zeros(1, np.int64),
            **sums._asdict(),
        }  # fmt: skip

    def _shape(self, state: Any) -> tuple[int, int]:
        columns: Columns = state["centroids"]
        return (len(columns["counts"]), 0) if self.is_sparse else columns["centroids"].shape

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Labels and distances by item; sums are added up."""
        assert isinstance(into, dict)
        for name, column in rows.items():
            if name in ("labels", "distances"):
                into[name][first * self.of_item : first * self.of_item + len(column)] = column
        if "counts" in rows:
            into.update(total_sums([_sums(self.is_sparse, into), _sums(self.is_sparse, rows)])._asdict())
        into.update({name: column for name, column in rows.items() if name.startswith("of_") or name in ("rounds", "changed")})


class PointsToCentroids(_Kind):
    """Points in d dimensions."""

    is_sparse = False
    of_item = POINTS_OF_RUN

    def _operations(self, work: Work) -> NDArray[np.float64]:
        return np.full(-(-self._length(work) // POINTS_OF_RUN), float(POINTS_OF_RUN))

    def _length(self, work: Work) -> int:
        return len(work.sources["points"]["points"])

    def _means(self, work: Work, device: Device) -> Any:
        return twin(device, "k_means").PointMeans(device, work.sources["points"]["points"])


class VectorsToCentroids(_Kind):
    """Sparse vectors."""

    is_sparse = True
    of_item = 1

    def _length(self, work: Work) -> int:
        return len(work.sources["vectors"]["offsets"]) - 1

    def _operations(self, work: Work) -> NDArray[np.float64]:
        return 1.0 + _COST_OF_ELEMENT * np.diff(work.sources["vectors"]["offsets"])

    def _means(self, work: Work, device: Device) -> Any:
        vectors = VectorArrays(**work.sources["vectors"])
        return twin(device, "k_means").VectorMeans(device, vectors, work.settings["n_bins"], **work.sources["ranges"])


class _Computation:
    """Points or vectors on a device."""

    def __init__(self, means: Any, is_sparse: bool, n: int, of_item: int, is_shared: bool) -> None:
        self._means, self._is_sparse, self._of_item, self._is_shared = means, is_sparse, of_item, is_shared
        self._labels, self._distances = np.empty(n, np.int32), np.empty(0)
        self._state = dict[str, Any]()

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Centroids come."""
        if items is not None:
            raise ValueError("all items are assigned")
        self._state, columns = state, state["centroids"]
        self._centroids: Any = VectorSums(**columns) if self._is_sparse else columns["centroids"]
        self._distances = np.empty(len(self._labels) if state["measures"] else 0)

    def search(self, first: int, last: int) -> Generator[Piece, None, None]:
        """Assign the items `first:last`, once or in rounds."""
        begun, until = first * self._of_item, min(len(self._labels), last * self._of_item)
        if self._state["rounds"] > 1 and until - begun == len(self._labels):
            yield from self._rounds(last)
            return
        reporting = NEVER if self._state["measures"] else IN_PIECES if self._is_shared else AT_THE_END
        parts: Generator[Assigned, None, None] = self._means.assign(self._centroids, self._labels, self._distances, begun, until, reporting)
        with closing(parts):
            for end, sums in parts:
                if end == begun or (sums is None and reporting != NEVER):
                    yield Piece(begun // self._of_item)
                    continue
                rows = {"labels": self._labels[begun:end], **({} if sums is None else sums._asdict())}
                if len(self._distances):
                    rows["distances"] = self._distances[begun:end]
                yield Piece(-(-end // self._of_item), rows)  # the last run may be shorter
                begun = end

    def _rounds(self, last: int) -> Generator[Piece, None, None]:
        """Rounds with all items: their rows come at the end."""
        state = self._state
        self._labels[:] = state["before"]
        found: list[Rounds] = []

        def rounds() -> Generator[int, None, None]:
            found.append((yield from self._means.iterate(self._centroids, self._labels, state["rounds"], state["tolerance"])))

        with closing(rounds()) as done:
            for number in done:
                yield Piece(0, beyond=number * state["round_cost"])
        (came,) = found
        of = came.centroids._asdict() if self._is_sparse else {"centroids": came.centroids}
        yield Piece(
            last,
            {
                "labels": self._labels, **came.sums._asdict(), **{f"of_{name}": column for name, column in of.items()},
                "rounds": np.array([came.n]), "changed": np.array([came.changed]),
            },
        )  # fmt: skip
