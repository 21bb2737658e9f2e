"""The device that the user wished, looked for while files are read: a driver takes seconds, and may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable

from proteoscope.engine.execution.devices import Device, begin_contexts, chosen_device
from proteoscope.engine.execution.libraries import find_linear_algebra
from proteoscope.engine.jobs.progress import Progress

__all__ = ["DeviceLookup"]

_LOOK_SECONDS = 0.05


class DeviceLookup:
    """Looks for the device of a wish (see `proteoscope.engine.execution.devices.chosen_device`) on a thread of its own, from now on.

    `choose`: says what computes, of the device that is found; None: that.
    """

    def __init__(self, wish: str, choose: Callable[[Device], Device] | None = None) -> None:
        self.wish, self._choose = wish, choose
        self._device: Device | None = None
        self._error: Exception | None = None
        find_linear_algebra()  # this is the first thread of a search, and imports modules
        # A driver that hangs must not keep the program from ending.
        self._looking = threading.Thread(target=self._look, name="proteoscope-looking", daemon=True)
        self._looking.start()

    def _look(self) -> None:
        try:
            found = chosen_device(self.wish)
            self._device = device = found if self._choose is None else self._choose(found)
        except Exception as error:  # it belongs to whoever asks for the device
            self._error = error
        else:
            begin_contexts(device)

    def complain(self) -> None:
        """Raise what is already known to be wrong with the wish, before more work is done for nothing; see `device`."""
        if self._error is not None:
            raise self._error

    def device(self, progress: Progress) -> Device:
        """The device, when it is found.

        Raises
        ------
        ParameterError : the wish names a device that is not there or not usable, and why. Cancelled : the user asked to stop.
        """
        if self._device is None and self._looking.is_alive():
            progress.stage("Looking for GPUs")
        while self._device is None and self._looking.is_alive():
            progress.check()
            self._looking.join(_LOOK_SECONDS)
        self.complain()
        assert self._device is not None
        return self._device
