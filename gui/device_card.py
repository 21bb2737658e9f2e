"""Panel of a device on the device page: state, calibration, current use and speeds in past runs."""

from collections.abc import Sequence

from PySide6.QtCore import QDateTime, QLocale, Qt, Signal
from PySide6.QtWidgets import QLabel, QProgressBar

from proteoscope.engine.execution.device_use import DeviceUse
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.jobs import Job
from proteoscope.engine.views.devices import DeviceAccount
from proteoscope.gui.buttons import push_button
from proteoscope.gui.devices import device_title, memory_text, state_text
from proteoscope.gui.forms.sections import Section
from proteoscope.gui.labels import described, toned_label
from proteoscope.gui.layouts import STRETCH, in_column, in_row

_NO_GPU = (
    "Searches run on the CPU with identical results; a GPU only makes large searches faster. If this machine has an NVIDIA GPU, "
    "install its driver and CuPy (in the source folder: pip install -e '.[cuda13]'), then press Refresh."
)
_STEPS = 1000


class DeviceCard(Section):
    """Panel with the properties and the state of a device, or with the reason why no GPU is usable.

    Signals
    -------
    calibration_requested
        `Device` to measure.
    cancel_requested
        `Job` to cancel.
    """

    calibration_requested = Signal(object)
    cancel_requested = Signal(object)

    def __init__(self, device: Device) -> None:
        self.device = device
        self.is_gap = not device.numbers and not device.usable
        """True if the panel explains that no GPU was found."""
        super().__init__("No usable GPU" if self.is_gap else f"{device.name}: {device_title(device)}")
        self.setAccessibleName(self.title.text())
        self._job: Job | None = None
        self._row = 0
        self.state = toned_label(tone="good" if device.usable else "faint" if self.is_gap else "attention")
        state = device.reason if self.is_gap and device.reason else state_text(device)
        self.state.setText(f"{state[0].upper()}{state[1:]}.")
        self.grid.addWidget(self.state, self._next_row(), 0, 1, 3)
        self.grid.setHorizontalSpacing(16)
        self.grid.setVerticalSpacing(4)
        self.calibrated, self.use, self.jobs, self.earlier = (QLabel() for _ in range(4))
        self.clock: QLabel | None = None
        self.calibrate_button = push_button(
            "Calibrate",
            lambda: self.calibration_requested.emit(self.device),
            "run",
            "Measure transfer, memory and computing speed, used for run-time estimates and for distributing work",
            name=f"Calibrate {device.name}",
        )
        self.cancel_button = push_button(
            "Cancel",
            self._cancel,
            "cancel",
            "Stop measuring; the previous calibration is retained",
            name=f"Cancel the calibration of {device.name}",
        )
        self.stage = toned_label()
        self.bar = described(QProgressBar(textVisible=False), f"Calibration progress of {device.name}")
        if self.is_gap:
            self.grid.addWidget(toned_label(_NO_GPU), self._next_row(), 0, 1, 3)
        else:
            self._lay_out()
        for widget in (self.calibrated, self.use, self.jobs, self.earlier, self.calibrate_button, self.cancel_button, self.stage, self.bar):
            if widget.parent() is None:  # not in the layout of an unusable device, so without a parent Qt would not delete it
                widget.setParent(self)
                widget.hide()
        self.show_job(None)

    def facts(self) -> list[tuple[str, str]]:
        """Return the names and values of properties, which are shown below the title and the state."""
        return [] if self.is_gap else [(self._name(row), self._value(row)) for row in range(1, self._row) if self._value(row)]

    def show_account(self, account: DeviceAccount) -> None:
        """Show the calibration of the device and its speeds in past runs."""
        locale = QLocale()
        if account.measured is None:
            outcome = "not yet; estimates use the calibration of another machine" if self.device.usable else "no"
        else:
            when = locale.toString(QDateTime.fromSecsSinceEpoch(int(account.measured.timestamp())), QLocale.FormatType.ShortFormat)
            types = "workload type" if account.kinds == 1 else "workload types"
            outcome = f"{when}, {locale.toString(account.kinds)} {types}; " + ", ".join(
                f"{name.lower()} {text}" for name, text in account.figures
            )
        self.calibrated.setText(outcome)
        self.calibrate_button.setText("Calibrate" if account.measured is None else "Calibrate again")
        if self.clock is not None:
            self.clock.setText("unknown" if account.clock_hz is None else f"{locale.toString(account.clock_hz / 1e6, 'f', 0)} MHz maximum")
        self.earlier.setText(
            "\n".join(
                f"{', '.join(record.searches) or record.kind}: {speed_text(record.speed)} ({record.kind})" for record in account.speeds
            )
            or "none yet: longer searches record their speed here"
        )

    def show_use(self, use: DeviceUse | None, jobs: Sequence[str]) -> None:
        """Show the current use of the device and the titles of the jobs that run on it."""
        self.jobs.setText(", ".join(jobs) or "none")
        if use is None:
            self.use.setText("unknown")
            return
        locale, whole = QLocale(), memory_text(self.device, QLocale())
        held = f"{locale.toString(use.used_bytes / 1e9, 'f', 1)} of {whole} in use" if use.used_bytes and whole else ""
        busy = "" if use.busy_share is None else f"{round(100 * use.busy_share)} % busy"
        by = "" if self.device.numbers else "by this program: "
        self.use.setText(by + ", ".join(part for part in (held, busy) if part))

    def show_job(self, job: Job | None, outcome: str = "") -> None:
        """Show the running calibration job, or the outcome of the previous one."""
        self._job = job
        for widget in (self.bar, self.cancel_button):
            widget.setVisible(job is not None)
        self.calibrate_button.setVisible(job is None and self.device.usable)
        self.stage.setVisible(job is not None or bool(outcome))
        if job is None:
            self.stage.setText(outcome)
            return
        self.cancel_button.setEnabled(not job.is_cancelling)
        progress = job.progress
        stage = "Queued" if job.state == "queued" else progress.stage if progress is not None else "Starting"
        self.stage.setText("Stopping" if job.is_cancelling else stage)
        is_known = progress is not None and progress.total > 0
        self.bar.setRange(0, _STEPS if is_known else 0)
        if progress is not None and is_known:
            self.bar.setValue(min(_STEPS, _STEPS * progress.done // progress.total))

    def _cancel(self) -> None:
        if self._job is not None:
            self.cancel_requested.emit(self._job)
            self.show_job(self._job)

    def _lay_out(self) -> None:
        device = self.device
        if memory := memory_text(device, QLocale()):
            self._add("Memory", QLabel(memory))
        if device.numbers:
            self.clock = QLabel()
            self._add("Compute capability", QLabel(device.compute_capability or "unknown"))
            self._add("Clock", self.clock)
            self._add("Driver", QLabel(device.driver or "unknown"))
        if not device.usable:
            return
        for name, value in (
            ("Calibrated", self.calibrated),
            ("Current use", self.use),
            ("Jobs", self.jobs),
            ("Speed in past searches", self.earlier),
        ):
            self._add(name, value)
        below = in_column(in_row(self.calibrate_button, self.cancel_button, (self.bar, 1), STRETCH), self.stage, margins=(0, 6, 0, 0))
        self.grid.addLayout(below, self._row, 0, 1, 3)

    def _add(self, name: str, value: QLabel) -> None:
        row = self._next_row()
        value.setTextFormat(Qt.TextFormat.PlainText)
        value.setWordWrap(True)
        value.setAccessibleName(name)
        self.grid.addWidget(toned_label(name, wrap=False), row, 0, Qt.AlignmentFlag.AlignTop)
        self.grid.addWidget(value, row, 1, 1, 2)

    def _next_row(self) -> int:
        self._row += 1
        return self._row - 1

    def _name(self, row: int) -> str:
        return self._text(row, 0)

    def _value(self, row: int) -> str:
        return self._text(row, 1)

    def _text(self, row: int, column: int) -> str:
        item = self.grid.itemAtPosition(row, column)
        widget = None if item is None else item.widget()
        return widget.text() if isinstance(widget, QLabel) else ""


def speed_text(speed: float) -> str:
    """Return a speed (units of work per second) as a text such as ``34.3 billion per second``."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if speed >= size:
            return f"{QLocale().toString(speed / size, 'f', 1)} {word} per second"
    return f"{QLocale().toString(speed, 'f', 1)} per second"
