"""What can compute on this machine, found out in the background: looking at GPUs takes a second or two."""

from __future__ import annotations

from PySide6.QtCore import QLocale, QObject, Signal

from proteoscope.engine.execution.devices import Device, devices, gpus, processor
from proteoscope.gui.tables.worker import TableWorker

__all__ = ["DeviceSurvey", "device_text", "device_title", "memory_text", "state_text"]


class DeviceSurvey(QObject):
    """The devices of this machine: at first only the processor, and all of them once `look` has found them.

    Signals
    -------
    changed : `devices` or `is_looking` is another now.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = TableWorker(None, self)
        self.devices: tuple[Device, ...] = (processor(),)
        self.is_known = False
        """Whether the GPUs have been looked at."""
        self.problem = ""
        """Why they could not be."""

    @property
    def is_looking(self) -> bool:
        """Whether they are being looked at."""
        return self._worker.is_busy

    @property
    def usable_gpus(self) -> list[Device]:
        """The GPUs that can compute."""
        return [device for device in self.devices if device.numbers and device.usable]

    def look(self, *, again: bool = False) -> None:
        """Look at the GPUs in the background, once; or again, as after a driver was installed."""
        if self.is_looking or (self.is_known and not again):
            return

        def find() -> tuple[Device, ...]:
            if again:
                gpus.cache_clear()
            return tuple(devices())

        self._worker.submit("devices", find, self._take, self._fail)
        self.changed.emit()

    def close(self) -> None:
        """Tell nobody any more; what is looked at ends by itself."""
        self._worker.cancel()

    def _take(self, found: tuple[Device, ...]) -> None:
        self.devices, self.is_known, self.problem = found, True, ""
        self.changed.emit()

    def _fail(self, error: Exception) -> None:
        self.problem = f"The GPUs could not be looked at: {error}"
        self.changed.emit()


def memory_text(device: Device, locale: QLocale) -> str:
    """Its memory, as ``139.8 GB``; empty where it is not known."""
    return f"{locale.toString(device.memory_bytes / 1e9, 'f', 1)} GB" if device.memory_bytes else ""


def state_text(device: Device) -> str:
    """Whether it can be used, or why not."""
    return "usable" if device.usable else f"not usable: {device.reason}" if device.reason else "not usable"


def device_title(device: Device) -> str:
    """What it is, without what stands in columns of its own."""
    return device.description.partition(", compute capability")[0]


def device_text(device: Device, locale: QLocale) -> str:
    """All that is known of a device, in one line."""
    parts = (device.name, device.description, memory_text(device, locale), state_text(device))
    return ", ".join(part for part in parts if part)
