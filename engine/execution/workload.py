"""Workloads as plain data: what a search computes, on any device, in this or another process.

A `Workload` holds the columns that the computation needs, and no function: its type is a name that the entry of a search registers
(`proteoscope.engine.execution.kinds`). A `WorkloadType` estimates the cost of the items, opens the workload on a device and joins the
resulting rows. An opened workload stays on its device between the rounds of an iterative search and between the phases of a filtering one.

::

    session.run(centroids)       a round of k-means: each device receives the state once and computes the items of its last round
    session.run("phase 1"), filter, session.run("phase 2", items=passed)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.device import Device

__all__ = [
    "CardShape",
    "Columns",
    "Computation",
    "PartialResult",
    "PredictableWorkloadType",
    "Rows",
    "Sample",
    "Workload",
    "WorkloadType",
    "by_item",
    "count_bytes",
]

Columns: TypeAlias = Mapping[str, Any]
"""Arrays and numbers by name. An array may be a memory map of a file."""

Rows: TypeAlias = Mapping[str, NDArray]
"""Columns of results; all refer to the same items."""


class Workload(NamedTuple):
    """A workload, as plain data that can be sent to another process.

    Attributes
    ----------
    kind
        Name in `proteoscope.engine.execution.kinds.KINDS`.
    settings
        Strings and numbers.
    sources
        Input such as a database or queries; large columns from files are memory-mapped.
    """

    kind: str
    sources: Mapping[str, Columns]
    settings: Mapping[str, Any]


class PartialResult(NamedTuple):
    """Results of a device since its last partial result.

    Attributes
    ----------
    end : int
        Item up to which the partition is computed.
    rows : mapping of str to ndarray or None
        Rows of the items from the last end up to this one. None if only progress is reported.
    beyond : float
        Cost already computed of the items from `end`.
    """

    end: int
    rows: Rows | None = None
    beyond: float = 0.0


class Computation(Protocol):
    """A workload opened on a device."""

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Begin a round with a state and some items (all when None); called once, before the first partition of the round."""

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Compute the items `first:last` of the round.

        The caller may close the generator after any partial result; another device then computes the items from its end. Rows depend only
        on their items, the workload and the state.

        Yields
        ------
        PartialResult
            Results, every 0.1 to 0.2 seconds; their ends never decrease.

        Raises
        ------
        DeviceError
            The device failed.
        """


class WorkloadType(Protocol):
    """A workload type.

    `parts_of_worker` limits the partitions per worker if starting one is expensive; 0 if it is cheap.
    """

    parts_of_worker: int

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the relative cost of each item, (items,), in operations."""

    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> AbstractContextManager[Computation]:
        """Open the workload on a device during the block.

        `is_shared` is True if other devices may take over the remaining items, so that results must come several times a second. A single
        device may compute everything in one step if it reports progress.

        Raises
        ------
        DeviceError
            The device failed, or cannot compute this workload.
        """

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return the rows of `n` items without results."""

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy the rows of the items `first:end` into `into`. Each item comes once, in any order."""


class CardShape(NamedTuple):
    """Properties of a GPU for launch plans.

    Attributes
    ----------
    multiprocessors : int
        Number of multiprocessors.
    shared_bytes : int
        Maximum shared memory of a block.
    capability : int
        Compute capability times ten, such as 90.
    """

    multiprocessors: int
    shared_bytes: int
    capability: int


class Sample(NamedTuple):
    """A synthetic workload with the states of its rounds, to measure the speed of a device."""

    workload: Workload
    states: list[Any]


@runtime_checkable
class PredictableWorkloadType(WorkloadType, Protocol):
    """A workload type whose run time can be predicted from measurements on samples."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload by which the speed of a device is measured.

        Parameters
        ----------
        size : float
            Relative size; 1 takes some hundredths of a second on a fast GPU.
        seed : int
            Seed of the random numbers: equal seeds give equal workloads.
        """

    def operations(self, workload: Workload, state: Any, card: CardShape | None) -> float:
        """Return the number of operations of a round, from which its time is predicted.

        Parameters
        ----------
        workload : Workload
        state
            State of the round.
        card : CardShape or None
            GPU that computes the round, None for the CPU.

        Returns
        -------
        float
            In the unit of the workload type and device, such as cells of alignment matrices; calibrations have seconds of samples by it.
        """


def count_bytes(value: Any) -> int:
    """Return the bytes of all arrays in plain data."""
    match value:
        case np.ndarray():
            return value.nbytes
        case Mapping():
            return sum(map(count_bytes, value.values()))
        case list() | tuple():
            return sum(map(count_bytes, value))
    return 0


def by_item(into: Rows, first: int, end: int, rows: Rows) -> None:
    """Copy the columns `rows`, of the items `first:end`, to these positions of the columns `into`, as most workload types merge."""
    for name, column in rows.items():
        into[name][first:end] = column
