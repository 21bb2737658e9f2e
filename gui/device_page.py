"""The device page: all devices of this machine with their state, calibration and current use."""

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QLocale, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QToolButton, QWidget

from proteoscope.engine.execution.device_use import DeviceUse, UseMeter
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.jobs import Job
from proteoscope.engine.version import VERSION
from proteoscope.engine.views.devices import DeviceAccount, device_accounts, select_devices
from proteoscope.gui.actions import repeated
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.buttons import push_button
from proteoscope.gui.device_card import DeviceCard
from proteoscope.gui.devices import DeviceDetector, device_text, device_title
from proteoscope.gui.labels import heading, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area, widget_with
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import CalibrationTask, SearchTask

_EXPLANATION = (
    "“Automatic” (auto) uses all usable GPUs, or the CPU if there are none. “GPUs and CPU together” (all) distributes "
    "the work among them. A GPU is usable if a small test program compiles and gives the correct result on it."
)
_MS_OF_USE = 1000

RunningJobs = Callable[[], list[tuple[Job, Any]]]
"""Function that returns the running jobs with their tasks."""


class DeviceButton(QToolButton):
    """Button that shows the devices used by default."""

    def __init__(self, detector: DeviceDetector) -> None:
        super().__init__()
        self._detector = detector
        self.setAutoRaise(True)
        self.setToolTip("Devices that searches use; click for details")
        detector.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        used = self._detector.usable_gpus or list(self._detector.devices[:1])
        more = f" and {len(used) - 1} more" if len(used) > 1 else ""
        self.setText(device_title(used[0]) + more)


class DevicePage(QWidget):
    """Page with a panel for each device; the current use of the devices is queried only while the page is visible.

    Parameters
    ----------
    detector : DeviceDetector
        Detector of the devices.
    bridge : JobBridge
        Bridge that reports job events.
    running : callable
        Function that returns the running jobs with their tasks.

    Signals
    -------
    calibration_requested
        A `CalibrationTask`; its receiver queues it and calls `follow` with the job.
    cancel_requested
        `Job` to cancel.
    """

    calibration_requested = Signal(object)
    cancel_requested = Signal(object)

    def __init__(self, detector: DeviceDetector, bridge: JobBridge, running: RunningJobs) -> None:
        super().__init__()
        self._detector, self._running = detector, running
        self._worker = TableWorker(None, self)
        self._meter = UseMeter()
        self._uses: dict[str, DeviceUse] = {}
        self._is_reading_use = False
        self._shown: tuple[Device, ...] = ()
        self._jobs: dict[int, tuple[Job, str]] = {}
        """Calibration jobs by job number, each with the name of its device."""
        self.cards: dict[str, DeviceCard] = {}
        """Panels by device name."""
        self._timer = repeated(self, self._read_use, _MS_OF_USE)
        self.state = toned_label()
        self.refresh_button = push_button("&Refresh", lambda: self._detector.detect(again=True), "reset")
        self.copy_button = push_button("&Copy as text", lambda: QGuiApplication.clipboard().setText(self.text()), "copy")
        self._lay_out()
        detector.changed.connect(self._show)
        bridge.started.connect(self._on_job)
        bridge.progressed.connect(lambda job, _: self._on_job(job))
        bridge.finished.connect(self._on_finished)
        self._show()

    @property
    def is_busy(self) -> bool:
        """True while devices are detected or inspected."""
        return self._worker.is_busy or self._detector.is_detecting

    def text(self) -> str:
        """Return the content of the page as text for the clipboard."""
        lines = [f"Proteoscope {VERSION}, {platform.platform()}"]
        for device in self._detector.devices:
            lines.append(device_text(device, QLocale.c()))
            card = self.cards.get(device.name)
            lines += [f"    {name}: {value}".replace("\n", "; ") for name, value in (card.facts() if card is not None else [])]
        return "\n".join(lines) + "\n"

    def follow(self, job: Job, device: Device) -> None:
        """Show the progress of a job that calibrates a device."""
        self._jobs[job.id] = job, device.name
        if device.name in self.cards:
            self.cards[device.name].show_job(job)
            self.cards[device.name].cancel_button.setFocus()

    def close_worker(self) -> None:
        """Stop the thread that queries the devices."""
        self._timer.stop()
        self._worker.cancel()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Detect the devices and start polling their use."""
        super().showEvent(event)
        self._detector.detect()
        self._read_accounts()
        self._read_use()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Stop polling the use of the devices."""
        super().hideEvent(event)
        self._timer.stop()

    def _show(self) -> None:
        is_detecting = self._detector.is_detecting
        self.refresh_button.setEnabled(not is_detecting)
        n_usable = len(self._detector.usable_gpus)
        result = f"{n_usable or 'No'} usable GPU{'s' if n_usable > 1 else ''}"
        self.state.setText("Detecting GPUs…" if is_detecting else self._detector.problem or result)
        if self._shown == self._detector.devices:
            return
        self._shown = self._detector.devices
        for card in self.cards.values():
            card.hide()
            self._cards.removeWidget(card)
            card.deleteLater()
        self.cards = {device.name: DeviceCard(device) for device in self._shown}
        for position, (name, card) in enumerate(self.cards.items()):
            self._cards.insertWidget(position, card)
            card.calibration_requested.connect(lambda device: self.calibration_requested.emit(CalibrationTask(device)))
            card.cancel_requested.connect(self.cancel_requested)
            for job, of in self._jobs.values():
                if of == name:
                    card.show_job(job)
        if self.isVisible():
            self._read_accounts()
            self._read_use()

    def _read_accounts(self) -> None:
        devices = self._detector.devices
        self._worker.submit("accounts", partial(device_accounts, devices), self._show_accounts, self._fail)

    def _show_accounts(self, accounts: tuple[DeviceAccount, ...]) -> None:
        for account in accounts:
            if account.device.name in self.cards:
                self.cards[account.device.name].show_account(account)

    def _read_use(self) -> None:
        self._show_use(self._uses)
        if not self._is_reading_use:
            # If a driver hangs, further queries would hang too.
            self._is_reading_use = True
            self._worker.submit("use", partial(self._meter.uses, self._detector.devices), self._take_use, self._fail, is_urgent=False)

    def _take_use(self, uses: dict[str, DeviceUse]) -> None:
        self._is_reading_use = False
        self._show_use(uses)

    def _show_use(self, uses: dict[str, DeviceUse]) -> None:
        self._uses = uses
        jobs: dict[str, list[str]] = {}
        for job, task in self._running():
            for name in self._devices_of(task):
                jobs.setdefault(name, []).append(job.title)
        for name, card in self.cards.items():
            card.show_use(uses.get(name), jobs.get(name, []))

    def _devices_of(self, task: Any) -> tuple[str, ...]:
        """Return the names of the devices that a task uses; empty if remote workers run it."""
        if isinstance(task, CalibrationTask):
            return (task.device.name,)
        if isinstance(task, SearchTask) and not task.request.workers:
            return select_devices(task.request.device, self._detector.devices)
        return ()

    def _fail(self, error: Exception) -> None:
        self._is_reading_use = False
        self.state.setText(f"The devices could not be inspected: {error}")

    def _on_job(self, job: Job) -> None:
        _, name = self._jobs.get(job.id, (job, ""))
        if name in self.cards:
            self.cards[name].show_job(job)

    def _on_finished(self, job: Job) -> None:
        _, name = self._jobs.pop(job.id, (job, ""))
        if name in self.cards:
            outcome = {"done": CalibrationTask.outcome(job.result, QLocale()), "failed": str(job.error)}.get(job.state, "cancelled")
            self.cards[name].show_job(None, f"Calibration: {outcome}.")
            self.cards[name].calibrate_button.setFocus()
        if self.isVisible():
            self._read_accounts()

    def _lay_out(self) -> None:
        self._cards = in_column(STRETCH, spacing=12)
        content = in_column(heading("Devices", 1.5), toned_label(_EXPLANATION), (self._cards, 1), margins=(18, 14, 18, 14), spacing=14)
        self.scroll_area = make_scroll_area(widget_with(content), is_vertical=True)
        in_column((self.scroll_area, 1), in_row((self.state, 1), self.refresh_button, self.copy_button, margins=(18, 8, 18, 10)), on=self)
