"""Workloads: descriptions of computations as plain data, which any device can execute in this or another process.

A `Workload` contains the columns that the computation needs, and no functions; its type is a name that the entry of a search registers in
`proteoscope.engine.execution.kinds`. A `WorkloadType` estimates the cost of the items, opens the workload on a device and merges the result
rows. An opened workload stays on its device between the rounds of an iterative search and between the phases of a search with a filter.
`RemoteWorkers` compute workloads in other processes.

::

    session.run(centroids)       a round of k-means: each device receives the state once and computes the items of its last round
    session.run("phase 1"), filter, session.run("phase 2", items=passed)
"""

from collections.abc import Collection, Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device, DeviceError

__all__ = [
    "Columns",
    "Computation",
    "GpuShape",
    "PartialResult",
    "PredictableWorkloadType",
    "RemoteWorkers",
    "Rows",
    "Sample",
    "WorkerLostBeforeError",
    "WorkerLostError",
    "Workload",
    "WorkloadType",
    "count_bytes",
]

Columns: TypeAlias = Mapping[str, Any]
"""Arrays and numbers by name; an array may be a memory map of a file."""

Rows: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns of results by name; row i of all columns belongs to the same item."""


class Workload(NamedTuple):
    """Computation described as plain data, which can be sent to another process.

    Attributes
    ----------
    kind
        Name of the workload type in `proteoscope.engine.execution.kinds.KINDS`.
    settings
        Settings of the computation: strings and numbers by name.
    sources
        Columns of each input, such as a database or queries; large columns from files are memory-mapped.
    """

    kind: str
    sources: Mapping[str, Columns]
    settings: Mapping[str, Any]


class PartialResult(NamedTuple):
    """Results that a device computed since its previous partial result.

    Attributes
    ----------
    end : int
        Item before which all items of the partition are computed.
    rows : mapping of str to ndarray or None
        Rows of the items from the previous `end` to this one; None if only progress is reported.
    beyond : float
        Cost of the computation that is already done for items from `end` on.
    """

    end: int
    rows: Rows | None = None
    beyond: float = 0.0


class Computation(Protocol):
    """Workload opened on a device."""

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Begin a round with a state and the indices of its items (None for all); called once, before the first partition."""

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Compute the items `first:last` of the round.

        The caller may close the generator after any partial result; another device then computes the items from `end` on. The rows of an
        item depend only on the item, the workload and the state.

        Yields
        ------
        PartialResult
            Results, every 0.1 to 0.2 seconds, with `end` never decreasing.

        Raises
        ------
        DeviceError
            If the device failed.
        """


class WorkloadType(Protocol):
    """Definition of one type of workload: costs, opening on a device, and merging of results.

    `parts_of_worker` limits the number of partitions per worker, for types with a high cost per partition; 0 means no limit.
    """

    parts_of_worker: int = 0

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the relative cost of each item in operations, (n_items,)."""

    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> AbstractContextManager[Computation]:
        """Open the workload on a device during the ``with`` block.

        `is_shared` is True if other devices may take over the remaining items, so that results must come several times a second. A single
        device may compute everything in one step if it reports progress.

        Raises
        ------
        DeviceError
            If the device failed, or does not support the workload.
        """

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return the rows of `n` items that have no results."""

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy `rows`, the rows of the items `first:end`, into the rows of all items, `into`. Each item is merged once, in any order."""
        for name, column in rows.items():
            into[name][first:end] = column


class GpuShape(NamedTuple):
    """Properties of a GPU for planning launches.

    Attributes
    ----------
    multiprocessors : int
        Number of streaming multiprocessors.
    shared_bytes : int
        Maximum shared memory of a block in bytes.
    capability : int
        Compute capability times ten, such as 90.
    """

    multiprocessors: int
    shared_bytes: int
    capability: int


class Sample(NamedTuple):
    """Synthetic workload with the states of its rounds, for measuring the speed of a device."""

    workload: Workload
    states: list[Any]


@runtime_checkable
class PredictableWorkloadType(WorkloadType, Protocol):
    """Workload type whose run time can be predicted from measurements on samples."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload for measuring the speed of a device.

        Parameters
        ----------
        size : float
            Relative size; size 1 takes a few hundredths of a second on a fast GPU.
        seed : int
            Seed of the random numbers: equal seeds give equal workloads.
        """

    def operations(self, workload: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the number of operations of a round, from which its time is predicted.

        Parameters
        ----------
        workload : Workload
            Workload to compute.
        state : object
            State of the round.
        gpu : GpuShape or None
            GPU that computes the round; None for the CPU.

        Returns
        -------
        float
            Number of operations in the unit of this workload type and device, such as cells of alignment matrices. Calibrations relate it
            to the seconds of samples. By default, it is the sum of the costs.
        """
        return float(self.costs(workload, state).sum())


def count_bytes(value: Any) -> int:
    """Return the total size in bytes of all arrays in plain data; other values count as 0."""
    match value:
        case np.ndarray():
            return value.nbytes
        case Mapping():
            return sum(map(count_bytes, value.values()))
        case list() | tuple():
            return sum(map(count_bytes, value))
    return 0


class WorkerLostError(DeviceError):
    """Exception: a worker was lost while it computed, perhaps because of its items."""


class WorkerLostBeforeError(WorkerLostError):
    """Exception: a worker was lost before it started to compute, so that its items are not the cause."""


class RemoteWorkers(Protocol):
    """Workers in other processes, which may join and leave during a run.

    Attributes
    ----------
    name : str
        Request of the user, for example ``local:4``.
    """

    name: str

    @property
    def has_gpus(self) -> bool:
        """True if any worker computes with a GPU."""

    def devices(self) -> list[Device]:
        """Return the workers that are usable now; each worker has a new name, also if it replaces a lost worker."""

    def wait(self, progress: Progress, exclude: Collection[str] = ()) -> bool:
        """Wait until a worker is available.

        Parameters
        ----------
        progress : Progress
            Progress, which is checked for cancellation.
        exclude : collection of str
            Names of workers to ignore.

        Returns
        -------
        bool
            True if a worker is available.

        Raises
        ------
        Cancelled
            If the user cancels.
        WorkersError
            If no worker can join any more.
        """

    def open(self, workload: Workload, device: Device, progress: Progress, *, with_gpu: bool) -> AbstractContextManager[Computation]:
        """Open a workload on a worker until the ``with`` block ends (see `proteoscope.engine.execution.workload.WorkloadType.open`).

        Raises
        ------
        WorkerLostError
            If the worker was lost.
        DeviceError
            If the device of the worker failed.
        """
