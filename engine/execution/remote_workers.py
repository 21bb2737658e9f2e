"""Interface through which a session uses workers in other processes, on this machine or others."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol

from proteoscope.engine.execution.workload import Computation, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device, DeviceError

__all__ = ["RemoteWorkers", "WorkerLostBeforeError", "WorkerLostError"]


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
        """Return the workers that are usable at present; the names of earlier workers are never reused."""

    def wait(self, progress: Progress, but: Collection[str] = ()) -> bool:
        """Wait until a worker is available.

        Parameters
        ----------
        progress : Progress
            Progress, which is checked for cancellation.
        but : collection of str
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
