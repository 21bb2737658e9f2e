"""Devices that are elsewhere: workers in other processes, on this machine or on others, as a session sees them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from proteoscope.engine.execution.work import Computation, Work
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device, DeviceError

__all__ = ["Elsewhere", "Foreseeing", "WorkerLostBeforeError", "WorkerLostError"]


class WorkerLostError(DeviceError):
    """The process that computed is gone; perhaps by what it computed."""


class WorkerLostBeforeError(WorkerLostError):
    """It was gone before it had begun with what it was asked for: that the items ended it is out of the question."""


@runtime_checkable
class Foreseeing(Computation, Protocol):
    """A computation elsewhere, which is told what comes next, so that the worker need not wait for the next call."""

    def expect(self, first: int, last: int) -> None:
        """The items `first:last` will be asked for after those that are asked for next, unless others take them over."""


class Elsewhere(Protocol):
    """Workers that come and go.

    Attributes
    ----------
    name : as the user wished them, ``local:4``. has_cards : whether some of them are GPUs.
    """

    name: str

    @property
    def has_cards(self) -> bool:
        """See the attributes."""

    def devices(self) -> list[Device]:
        """Those that are there now, each with a name that no other had."""

    def wait(self, progress: Progress, but: Collection[str] = ()) -> bool:
        """Wait until there is one besides those with these names, as long as that can be hoped; whether there is.

        Raises
        ------
        Cancelled : the user asked to stop. WorkersError : nobody can come any more.
        """

    def open(self, work: Work, device: Device, progress: Progress, *, with_card: bool) -> AbstractContextManager[Computation]:
        """The work on one of them, as long as the block lasts; see `proteoscope.engine.execution.work.Kind.open`.

        Raises
        ------
        WorkerLostError : it is gone. DeviceError : its device failed.
        """
