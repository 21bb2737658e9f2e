"""Small workload types for the tests of the executor, with the shapes of real ones."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.kinds import RegisteredWorkload
from proteoscope.engine.execution.workload import PartialResult, Rows, Workload, WorkloadType
from proteoscope.kernels.device import Device, DeviceError

KINDS: tuple[RegisteredWorkload, ...] = (
    ("nearest", lambda: NearestCentroid),
    ("phases", lambda: TwoPhases),
    ("histogram", lambda: Histogram),
    ("variable", lambda: VariableNumber),
)


class FakeGpu:
    """A fake GPU that has a name and fails on request."""

    kernels = "cuda"
    is_processor = False

    def __init__(self, name: str, *, fails_at: int = -1) -> None:
        self.name, self.fails_at, self.n_parts = name, fails_at, 0


class _Computation:
    opened: ClassVar[list[str]] = []
    begun: ClassVar[list[tuple[str, Any]]] = []

    def __init__(self, work: Workload, device: Device) -> None:
        self.work, self.device = work, device
        self.state: Any = None
        self.items: NDArray[np.int64] | None = None
        self.opened.append(device.name)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        self.begun.append((self.device.name, None if state is None else np.asarray(state).tolist()))
        self.state, self.items = state, items

    def rows(self, items: NDArray[np.int64]) -> Rows:
        raise NotImplementedError

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        for begin in range(first, last, 7):
            end = min(last, begin + 7)
            if isinstance(self.device, FakeGpu):
                if self.device.n_parts == self.device.fails_at:
                    raise DeviceError(f"{self.device.name} is lost")
                self.device.n_parts += 1
            items = np.arange(begin, end) if self.items is None else self.items[begin:end]
            yield PartialResult(end, self.rows(items))


class _Kind(WorkloadType):
    opens: ClassVar[type[_Computation]]

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        return np.ones(len(work.sources["points"]["x"]))

    @contextmanager
    def open(self, work: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        yield self.opens(work, device)

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        return {"found": np.full(n, -1)}


class _Nearest(_Computation):
    def rows(self, items: NDArray[np.int64]) -> Rows:
        x: NDArray[np.float64] = self.work.sources["points"]["x"]
        return {"found": np.abs(x[items, None] - np.asarray(self.state)[None]).argmin(axis=1)}


class NearestCentroid(_Kind):
    """A round of k-means; the state is the centroids."""

    opens = _Nearest


class _Phases(_Computation):
    def rows(self, items: NDArray[np.int64]) -> Rows:
        x: NDArray[np.float64] = self.work.sources["points"]["x"]
        return {"found": (x[items] * 10).astype(int) if self.state == "coarse" else (x[items] * 1000).astype(int)}


class TwoPhases(_Kind):
    """Two phases: a coarse value of all items, then a fine value of some."""

    opens = _Phases


class _Counts(_Computation):
    def rows(self, items: NDArray[np.int64]) -> Rows:
        x: NDArray[np.float64] = self.work.sources["points"]["x"]
        return {"counts": np.bincount((x[items] * 10).astype(int), minlength=10)}


class Histogram(_Kind):
    """Rows that are sums over items, merged into one histogram."""

    opens = _Counts

    def empty(self, work: Workload, state: Any, n: int) -> Rows:
        return {"counts": np.zeros(10, np.int64)}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        into["counts"][:] += rows["counts"]


class _Numbers(_Computation):
    def rows(self, items: NDArray[np.int64]) -> Rows:
        return {"found": items * 10}


class VariableNumber(_Kind):
    """A number of items given by the state, for rounds of different sizes."""

    opens = _Numbers

    def costs(self, work: Workload, state: Any) -> NDArray[np.float64]:
        return np.ones(state)
