"""Field for the computing device, which is updated when the devices of the machine have been detected."""

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QWidget

from proteoscope.gui.devices import DeviceDetector, device_title, state_text
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.forms.workers_choice import WorkersChoice
from proteoscope.gui.labels import described, show_text, toned_label
from proteoscope.gui.layouts import in_column

_USUAL = "auto"


class DeviceChoice(QWidget):
    """Field with the choices automatic, all devices, each single GPU, and CPU only, and with a note on the devices of this machine.

    Parameters
    ----------
    detector : DeviceDetector
        Detector of the devices.
    takes_workers : bool
        True if remote workers can be chosen too.

    Signals
    -------
    changed
        Another device was chosen, or the state of the chosen device was detected.
    """

    changed = Signal()

    def __init__(self, detector: DeviceDetector, *, takes_workers: bool = True) -> None:
        super().__init__()
        self._detector = detector
        self._choice = _USUAL
        self.box = described(ChoiceBox(n_characters=18), "Device", "Device that runs the search; for details, open View > Devices")
        self.box.activated.connect(lambda: self.choose(self.box.currentData()))
        self.workers = WorkersChoice()
        self.note = toned_label()
        self.message = toned_label(tone="wrong")
        in_column(self.box, self.note, self.message, self.workers, on=self, spacing=4)
        self.workers.setVisible(takes_workers)
        self.setFocusProxy(self.box)
        detector.changed.connect(self._fill)
        self.workers.changed.connect(self._fill)
        self._fill()

    def value(self) -> str:
        """Return the selected device as a value of ``--device``."""
        return self._choice

    def choose(self, choice: str) -> None:
        """Select a device by its value of ``--device``."""
        self._choice = choice or _USUAL
        self._fill()

    def problem(self) -> str:
        """Return the reason why the selected device cannot be used, or ''."""
        return self.workers.problem() or (self._problem_of_device() if self.workers.are_here else "")

    def _problem_of_device(self) -> str:
        if not self._detector.is_known or self._choice in ("auto", "cpu"):
            return ""
        if self._choice == "all":
            return "" if self._detector.usable_gpus else "No GPU is usable here; choose Automatic or CPU only"
        result = next((device for device in self._detector.devices if device.name == self._choice), None)
        if result is None:
            return f"This machine has no device {self._choice}"
        return "" if result.usable else f"{result.name} is {state_text(result)}"

    def _fill(self) -> None:
        detector = self._detector
        gpus = [device for device in detector.devices if device.numbers]
        choices = [("Automatic", "auto", True), ("GPUs and CPU together", "all", bool(detector.usable_gpus) or not detector.is_known)]
        choices += [(f"{gpu.name}: {device_title(gpu)}", gpu.name, gpu.usable) for gpu in gpus]
        choices += [("CPU only", "cpu", True)]
        if self._choice not in [name for _, name, _ in choices]:
            choices.append((self._choice, self._choice, not detector.is_known))
        with QSignalBlocker(self.box):
            self.box.clear()
            for text, name, _ in choices:
                self.box.addItem(text, name)
            self.box.setCurrentIndex(self.box.findData(self._choice))
        model = self.box.model()
        assert isinstance(model, QStandardItemModel)
        for row, (_, _, is_usable) in enumerate(choices):
            model.item(row).setEnabled(is_usable)
        for gpu in gpus:
            self.box.setItemData(self.box.findData(gpu.name), f"{gpu.description}: {state_text(gpu)}", Qt.ItemDataRole.ToolTipRole)
        self.box.setEnabled(self.workers.are_here)
        problem = self._problem_of_device() if self.workers.are_here else ""
        self.note.setText(self._meaning() if self.workers.are_here else "The devices of the workers' machines")
        self.note.setVisible(not problem)
        show_text(self.message, problem)
        self.changed.emit()

    def _meaning(self) -> str:
        """Return a text with the devices that the current selection would use."""
        detector = self._detector
        processor = device_title(detector.devices[0])
        names = [device_title(gpu) for gpu in detector.usable_gpus]
        gpus = f"{len(names)} × {names[0]}" if len(set(names)) == 1 and len(names) > 1 else ", ".join(names)
        if self._choice == "auto" and not detector.is_known:
            return "All usable GPUs, or the CPU if there are none"
        if self._choice == "auto":
            return gpus or f"{processor}; no GPU is usable"
        if self._choice == "all":
            return f"{gpus} and {processor}" if gpus else processor
        return next((device_title(device) for device in detector.devices if device.name == self._choice), "")
