"""Current use of devices: total use of each GPU, and use of the CPU by this program."""

import os
import time
from pathlib import Path

from proteoscope import kernels
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.resources import available_threads
from proteoscope.kernels.cuda.management import DeviceUse

__all__ = ["DeviceUse", "UseMeter"]

_PAGES = Path("/proc/self/statm")


class UseMeter:
    """Meter of the use of devices; the use of the CPU is measured since the previous call of `uses`."""

    def __init__(self) -> None:
        self._when, self._spent = time.monotonic(), _processor_seconds()

    def uses(self, devices: tuple[Device, ...]) -> dict[str, DeviceUse]:
        """Return the use of each device by device name; devices whose use is unknown are omitted.

        For the CPU, `used_bytes` is the resident memory of this program (0 if the system does not report it), and `busy_share` is the
        fraction of the available threads that this program uses.
        """
        result = {}
        for device in devices:
            if device.usable and device.numbers:
                use = kernels.cuda.management.gpu_use(device.numbers[0])
                if use is not None:
                    result[device.name] = use
            elif device.usable:
                result[device.name] = DeviceUse(_resident_bytes(), device.memory_bytes, self._share())
        return result

    def _share(self) -> float | None:
        when, spent = time.monotonic(), _processor_seconds()
        passed, took = when - self._when, spent - self._spent
        self._when, self._spent = when, spent
        return min(1.0, max(0.0, took / passed / available_threads())) if passed > 0 else None


def _processor_seconds() -> float:
    """Return the CPU seconds of all threads of this program and of its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _resident_bytes() -> int:
    try:
        return int(_PAGES.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError, IndexError):
        return 0
