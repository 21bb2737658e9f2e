"""The jobs: what runs, how far it is, what waits, what became of the others."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QScrollArea, QVBoxLayout, QWidget

from engine.jobs import Job, ProgressEvent
from gui.bridge import JobBridge
from gui.forms.editors import tool_button
from gui.icons import pixmap
from gui.labels import tip_text, toned_label
from gui.theme import colours

__all__ = ["JobDock", "duration_text"]

_STEPS = 1000
_LOOKS = {
    "done": ("done", "good"),
    "failed": ("failed", "wrong"),
    "cancelled": ("stopped", "faint_text"),
    "queued": ("queued", "faint_text"),
    "running": ("running", "link"),
}
_NOTHING = "Nothing runs. What you start is shown here."
_LINE_MARGIN, _ROW_HEIGHT = 8, 72
_MAXIMUM_HEIGHT = 16_777_215
"""Qt's own bound of a widget's height."""


class JobDock(QWidget):
    """A row for each job, the newest at the bottom; finished ones stay until they are cleared. Where nothing runs it is a single line,
    which says what became of the last job, until the rows are asked for.

    Signals
    -------
    cancel_asked : the job to cancel.
    """

    cancel_asked = Signal(Job)

    def __init__(self, bridge: JobBridge, describe: Callable[[Job], str]) -> None:
        super().__init__()
        self._describe = describe
        self.rows: dict[int, JobRow] = {}
        self.empty = _Elided(_NOTHING)
        """The line that stands for the rows."""
        self._is_unfolded = False
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        self._list.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._list.setContentsMargins(0, 0, 6, 0)
        content = QWidget()
        content.setLayout(self._list)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidget(content)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # A new row has its place, and the list its length, only some events later.
        self._scroll.verticalScrollBar().rangeChanged.connect(self._show_running)
        self.unfold_button = QPushButton("Show finished")
        self.unfold_button.setCheckable(True)
        self.unfold_button.setToolTip("Show a row for each job that has ended")
        self.unfold_button.toggled.connect(self._unfold)
        self.clear_button = QPushButton("Clear finished")
        self.clear_button.clicked.connect(self.clear_finished)
        page = QHBoxLayout(self)
        page.setContentsMargins(8, 0, 8, 6)
        page.addWidget(self.empty, 1)
        page.addWidget(self._scroll, 1)
        for button in (self.unfold_button, self.clear_button):
            page.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        bridge.added.connect(self._add)
        bridge.started.connect(self._show_started)
        bridge.progressed.connect(lambda job, event: self._show(job))
        bridge.finished.connect(self._show)
        self._enable()

    def clear_finished(self) -> None:
        """Take the rows of jobs that are over away."""
        for number in [number for number, row in self.rows.items() if row.job.is_over]:
            row = self.rows.pop(number)
            self._list.removeWidget(row)
            row.deleteLater()
        self._enable()

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        for row in self.rows.values():
            row.show_state()

    def _add(self, job: Job) -> None:
        row = JobRow(job, self._describe)
        row.cancel_button.clicked.connect(lambda: self._cancel(job))
        self.rows[job.id] = row
        self._list.addWidget(row)
        self._enable()

    def _cancel(self, job: Job) -> None:
        self.cancel_asked.emit(job)
        self._show(job)

    def _show_started(self, job: Job) -> None:
        self._show(job)
        self._show_running()

    def _show_running(self) -> None:
        """Bring the row of the job that runs into sight."""
        for row in self.rows.values():
            if row.job.state == "running":
                self._scroll.ensureWidgetVisible(row)

    def _show(self, job: Job) -> None:
        if job.id in self.rows:
            self.rows[job.id].show_state()
        self._enable()

    def _unfold(self, is_unfolded: bool) -> None:
        self._is_unfolded = is_unfolded
        self._enable()

    def _enable(self) -> None:
        over = [row.job for row in self.rows.values() if row.job.is_over]
        is_idle = len(over) == len(self.rows)
        is_line = is_idle and not (self._is_unfolded and self.rows)
        for button in (self.clear_button, self.unfold_button):
            button.setVisible(bool(over) and (is_idle or button is self.clear_button))
        self.empty.setVisible(is_line)
        self._scroll.setVisible(not is_line)
        last = max(over, key=lambda job: job.finished or 0.0, default=None)
        self.empty.setText(_NOTHING if last is None else f"Nothing runs. Last: {last.title}: {self._describe(last)}")
        line = self.clear_button.sizeHint().height() + _LINE_MARGIN
        # A job that begins has room at once, however low the line was.
        self.setMinimumHeight(line if is_line else _ROW_HEIGHT)
        self.setMaximumHeight(line if is_line else _MAXIMUM_HEIGHT)


class JobRow(QFrame):
    """One job."""

    def __init__(self, job: Job, describe: Callable[[Job], str]) -> None:
        super().__init__()
        self.setObjectName("card")
        self.job = job
        self._describe = describe
        self._icon = QLabel()
        self.title = _Elided(job.title)
        font = self.title.font()
        font.setBold(True)
        self.title.setFont(font)
        self.title.setFixedWidth(self.fontMetrics().horizontalAdvance("n") * 36)
        self.stage = _Elided("")
        self.bar = QProgressBar()
        self.bar.setFixedWidth(220)
        self.time_left = toned_label(wrap=False)
        self.time_left.setMinimumWidth(self.fontMetrics().horizontalAdvance("00 min 00 s left in this stage"))
        self.cancel_button = tool_button("cancel", "Cancel this job", lambda: None)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 5, 8, 5)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addWidget(self.title)
        row.addWidget(self.stage, 1)
        row.addWidget(self.bar)
        row.addWidget(self.time_left)
        row.addWidget(self.cancel_button)
        self.show_state()

    def show_state(self) -> None:
        """Show where the job stands now."""
        job, progress = self.job, self.job.progress
        name, tone = _LOOKS[job.state]
        self._icon.setPixmap(pixmap(name, 18, QColor(getattr(colours(), tone)), self.devicePixelRatioF()))
        self.title.setToolTip(tip_text(job.title))
        is_running = job.state == "running"
        for widget in (self.bar, self.time_left):
            widget.setVisible(is_running)
        self.cancel_button.setVisible(not job.is_over)
        self.cancel_button.setEnabled(not job.is_cancelling)
        if job.is_over:
            self.stage.setText(self._describe(job))
        elif job.is_cancelling:
            self.stage.setText("Stopping")
        elif not is_running:
            self.stage.setText("Waiting")
        else:
            self.stage.setText(progress.stage if progress is not None and progress.stage else "Starting")
            self._show_progress(progress)

    def _show_progress(self, progress: ProgressEvent | None) -> None:
        if progress is None or progress.total <= 0:
            self.bar.setRange(0, 0)
            self.time_left.clear()
            return
        self.bar.setRange(0, _STEPS)
        self.bar.setValue(min(_STEPS, _STEPS * progress.done // progress.total))
        left = progress.seconds_left
        # What the first half second promises is nothing to go by.
        self.time_left.setText(f"{duration_text(left)} left in this stage" if left is not None and progress.seconds > 0.5 else "")


class _Elided(QLabel):
    """A line of text that is cut with an ellipsis where there is no room for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setMinimumWidth(60)
        self.setText(text)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        self._whole = text
        self.setToolTip(tip_text(text))
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        super().setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, max(self.width(), 60)))


def duration_text(seconds: float) -> str:
    """Seconds for people: ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
