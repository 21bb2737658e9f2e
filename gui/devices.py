"""Detection of the devices of this machine in the background, because detecting GPUs takes a second or two."""

from PySide6.QtCore import QLocale, QObject, Signal

from proteoscope.engine.execution.devices import Device, devices, gpus, processor
from proteoscope.gui.tables.worker import TableWorker


class DeviceDetector(QObject):
    """List of the devices of this machine, which contains only the CPU until `detect` has found GPUs.

    Signals
    -------
    changed
        `devices` or `is_detecting` has changed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = TableWorker(None, self)
        self.devices: tuple[Device, ...] = (processor(),)
        self.is_known = False
        """True once the GPUs have been detected."""
        self.problem = ""
        """Error of the last detection, or ''."""

    @property
    def is_detecting(self) -> bool:
        """True while GPUs are being detected."""
        return self._worker.is_busy

    @property
    def usable_gpus(self) -> list[Device]:
        """The usable GPUs."""
        return [device for device in self.devices if device.numbers and device.usable]

    def detect(self, *, again: bool = False) -> None:
        """Start detecting GPUs in the background; do nothing if they have been detected, unless `again` is True."""
        if self.is_detecting or (self.is_known and not again):
            return

        def find() -> tuple[Device, ...]:
            if again:
                gpus.cache_clear()
            return tuple(devices())

        self._worker.submit("devices", find, self._take, self._fail)
        self.changed.emit()

    def close(self) -> None:
        """Ignore the result of a running detection."""
        self._worker.cancel()

    def _take(self, devices: tuple[Device, ...]) -> None:
        self.devices, self.is_known, self.problem = devices, True, ""
        self.changed.emit()

    def _fail(self, error: Exception) -> None:
        self.problem = f"The GPUs could not be detected: {error}"
        self.changed.emit()


def memory_text(device: Device, locale: QLocale) -> str:
    """Return the memory of a device as a text such as ``139.8 GB``, or '' if it is unknown."""
    return f"{locale.toString(device.memory_bytes / 1e9, 'f', 1)} GB" if device.memory_bytes else ""


def state_text(device: Device) -> str:
    """Return a text about a device: that it can be used, or the reason why it cannot be used."""
    return "usable" if device.usable else f"not usable: {device.reason}" if device.reason else "not usable"


def device_title(device: Device) -> str:
    """Return the description of a device without its compute capability."""
    return device.description.partition(", compute capability")[0]


def device_text(device: Device, locale: QLocale) -> str:
    """Return a line with all properties of a device, for bug reports and the clipboard."""
    parts = (device.name, device.description, memory_text(device, locale), state_text(device))
    return ", ".join(part for part in parts if part)
