"""Workloads as plain data: what a search computes, on any device, in this or another process.

A `Workload` holds the columns that the computation needs, and no function: its type is a name that the entry of a search registers
(`proteoscope.engine.execution.kinds`). A `WorkloadType` estimates the cost of the items, opens the workload on a device and joins the
resulting rows. An opened workload stays on its device between the rounds of an iterative search and between the phases of a filtering one.

::

    session.run(centroids)                   a round of k-means: the state goes once to each device, items stick to devices
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
]

Columns: TypeAlias = Mapping[str, Any]
"""Arrays, and numbers, by name. An array may be a memory map of a file."""

Rows: TypeAlias = Mapping[str, NDArray]
"""Columns of results; all refer to the same items."""


class Workload(NamedTuple):
    """A workload. Plain data that can be sent to another process.

    Attributes
    ----------
    kind
        Name in `proteoscope.engine.execution.kinds.KINDS`.
    settings
        Texts and numbers.
    sources
        Input such as a database or queries; large columns from files are memory-mapped.
    """

    kind: str
    sources: Mapping[str, Columns]
    settings: Mapping[str, Any]


class PartialResult(NamedTuple):
    """Results of a device since the last: the items up to `end`, and their rows.

    Without rows it only shows that work continues. `beyond` is the cost done of the items from `end`, for progress.
    """

    end: int
    rows: Rows | None = None
    beyond: float = 0.0


class Computation(Protocol):
    """A work on a device."""

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Begin a round with a state and these items (all when None). Called once before the first part of the round."""

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Compute the items `first:last` of the round.

        Yields a piece every tenth of a second or two; ends never fall, and rows are those between the last end and this. It may be closed
        after any piece: what is behind that is done by another. Rows depend on their items, the work and the state alone.

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

        `is_shared` is True if others may take over what is left, so that results must come a few times a second. A single device may do all
        at once if it reports that it continues.

        Raises
        ------
        DeviceError
            The device failed, or cannot do this.
        """

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return the rows of `n` items without results."""

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Put the rows of the items `first:end` where they belong. Each item comes once, in no order."""


class CardShape(NamedTuple):
    """Properties of a GPU for launch plans."""

    multiprocessors: int
    shared_bytes: int
    capability: int


class Sample(NamedTuple):
    """A made-up work with the states of its rounds, by which the speed of a device is measured."""

    workload: Workload
    states: list[Any]


@runtime_checkable
class PredictableWorkloadType(WorkloadType, Protocol):
    """A kind whose seconds can be predicted, once they were measured on samples of it."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a made-up work of about `size` times what keeps a fast card busy for some hundredths of a second."""

    def operations(self, workload: Workload, state: Any, card: CardShape | None) -> float:
        """Operations of a round, in a unit of the kind's own, as the launcher's analysis counts them: of a card, or of the processor."""


def by_item(into: Rows, first: int, end: int, rows: Rows) -> None:
    """Merge rows of items, as most types do."""
    for name, column in rows.items():
        into[name][first:end] = column
