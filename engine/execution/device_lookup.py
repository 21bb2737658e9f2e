"""Detection of the requested device while files are read: a driver takes seconds, and may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

from proteoscope.engine.execution.devices import Device, begin_contexts, resolve_device
from proteoscope.engine.execution.libraries import find_linear_algebra
from proteoscope.engine.jobs.progress import Progress

__all__ = ["DeviceLookup"]

_POLL_SECONDS = 0.05


class DeviceLookup:
    """Detects the requested device on a thread of its own, from now on.

    Parameters
    ----------
    requested : str
        As `proteoscope.engine.execution.devices.resolve_device` takes it.
    choose : callable, optional
        Returns the device; its argument returns the requested device. If that is not called, `requested` becomes "cpu".

    Attributes
    ----------
    requested : str
        Requested device; "cpu" after `choose` has not looked for GPUs.
    """

    def __init__(self, requested: str, choose: Callable[[Callable[[], Device]], Device] | None = None) -> None:
        self.requested, self._choose, self._is_resolved = requested, choose, False
        self._device: Device | None = None
        self._error: Exception | None = None
        find_linear_algebra()  # this is the first thread of a search, and imports modules
        # A driver that hangs must not keep the program from ending.
        self._looking = threading.Thread(target=self._look, name="proteoscope-looking", daemon=True)
        self._looking.start()

    def _look(self) -> None:
        try:
            device = self._resolve() if self._choose is None else self._choose(self._resolve)
        except Exception as error:  # `device` raises it
            self._error = error
            return
        if not self._is_resolved:
            self.requested = "cpu"
        self._device = device
        begin_contexts(device)
        if device.numbers and find_spec("cupy") is not None:
            with suppress(Exception):  # opening the GPU reports it
                import_module("cupy")  # takes a second, while files are read

    def _resolve(self) -> Device:
        self._is_resolved = True
        return resolve_device(self.requested)

    def complain(self) -> None:
        """Raise a known error of the request before more work is done in vain; see `device`."""
        if self._error is not None:
            raise self._error

    def device(self, progress: Progress) -> Device:
        """Wait for the device and return it.

        Raises
        ------
        ParameterError
            The requested device is missing or not usable.
        Cancelled
            The user cancelled.
        """
        if self._device is None and self._looking.is_alive():
            progress.stage("Looking for GPUs")
        while self._device is None and self._looking.is_alive():
            progress.check()
            self._looking.join(_POLL_SECONDS)
        self.complain()
        assert self._device is not None
        return self._device
