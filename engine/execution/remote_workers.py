"""Workers in other processes, on this machine or on others, as a session uses them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from proteoscope.engine.execution.workload import Computation, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device, DeviceError

__all__ = ["RemoteWorkers", "WorkerLostBeforeError", "WorkerLostError"]


class WorkerLostError(DeviceError):
    """The worker was lost while it computed, perhaps because of its items."""


class WorkerLostBeforeError(WorkerLostError):
    """The worker was lost before it started: its items are not the cause."""


class RemoteWorkers(Protocol):
    """Workers that come and go.

    Attributes
    ----------
    name : str
        As requested, for example ``local:4``.
    """

    name: str

    @property
    def has_cards(self) -> bool:
        """True if some workers compute with a GPU."""

    def devices(self) -> list[Device]:
        """Return the workers that are usable now, each with a name that no other has had."""

    def wait(self, progress: Progress, but: Collection[str] = ()) -> bool:
        """Wait for a worker, as long as one can be expected to come.

        Parameters
        ----------
        progress : Progress
            Checked for a cancel.
        but : collection of str
            Names of workers that do not count.

        Returns
        -------
        bool
            True if there is one.

        Raises
        ------
        Cancelled
            The user cancelled.
        WorkersError
            No worker can come any more.
        """

    def open(self, workload: Workload, device: Device, progress: Progress, *, with_card: bool) -> AbstractContextManager[Computation]:
        """Open a workload on a worker until the block ends; see `proteoscope.engine.execution.workload.WorkloadType.open`.

        Raises
        ------
        WorkerLostError
            The worker was lost.
        DeviceError
            Its device failed.
        """
