"""List of running, queued and finished jobs."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QSizePolicy, QWidget

from proteoscope.engine.jobs import Job, ProgressEvent
from proteoscope.gui.actions import repeated
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.buttons import push_button, tool_button
from proteoscope.gui.icons import pixmap
from proteoscope.gui.labels import set_bold, tip_text
from proteoscope.gui.layouts import in_column, in_row, make_scroll_area, widget_with
from proteoscope.gui.surfaces import Card
from proteoscope.gui.theme import colours

_STEPS = 1000
_CLOCK_MS = 1000
_SURE_SECONDS = 0.5
"""Seconds after which the progress of a stage gives a usable estimate of its duration."""
_STATE_ICONS = {
    "done": ("done", "good"),
    "failed": ("failed", "wrong"),
    "cancelled": ("stopped", "faint_text"),
    "queued": ("queued", "faint_text"),
    "running": ("running", "link"),
}
_NOTHING = "No jobs. Jobs that you start are listed here."
_LINE_MARGIN, _ROW_HEIGHT = 8, 72
_MAXIMUM_HEIGHT = 16_777_215
"""Qt's maximum height of a widget."""


class JobFacts(Protocol):
    """Interface of an object that knows the outcomes and the remaining times of jobs."""

    def outcome(self, job: Job) -> str:
        """Return the outcome of a finished job as one line."""

    def seconds_left(self, job: Job) -> float | None:
        """Return the estimated remaining seconds of a running job, or None."""


class JobDock(QWidget):
    """Dock with a row for each job, newest last; rows of finished jobs remain until the user clears them.

    Signals
    -------
    cancel_requested
        Job to cancel.
    moved
        A queued job that the user has dragged, and the job before which it was placed (None: at the end of the queue).
    """

    MANUAL = "projects"
    """Name of the manual page about this dock."""

    cancel_requested = Signal(Job)
    moved = Signal(Job, object)

    def __init__(self, bridge: JobBridge, tasks: JobFacts) -> None:
        super().__init__()
        self._tasks = tasks
        self.rows: dict[int, JobRow] = {}
        self.empty = _Elided(_NOTHING)
        """Line shown instead of the rows."""
        self._list = in_column(margins=(0, 0, 6, 0), spacing=6)
        self._list.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._scroll = make_scroll_area(widget_with(self._list), is_vertical=True)
        # The layout sets the position of a new row and the length of the list only after further events.
        self._scroll.verticalScrollBar().rangeChanged.connect(self._show_running)
        self.clear_button = push_button("Clear finished", self.clear_finished)
        in_row((self.empty, 1), (self._scroll, 1), (self.clear_button, 0, Qt.AlignmentFlag.AlignTop), on=self, margins=(8, 0, 8, 6))
        self._clock = repeated(self, self._show_times, _CLOCK_MS)
        bridge.added.connect(self._add)
        bridge.started.connect(self._show_started)
        bridge.progressed.connect(lambda job, event: self._show(job))
        bridge.finished.connect(self._show)
        self._enable()

    def clear_finished(self) -> None:
        """Remove the rows of finished jobs."""
        for number in [number for number, row in self.rows.items() if row.job.is_over]:
            row = self.rows.pop(number)
            self._list.removeWidget(row)
            row.deleteLater()
        self._enable()

    def redraw(self) -> None:
        """Redraw the elements that depend on the theme."""
        for row in self.rows.values():
            row.show_state()

    def _add(self, job: Job) -> None:
        row = JobRow(job, self._tasks)
        row.dragged.connect(partial(self._drag, row))
        row.dropped.connect(partial(self._drop, row))
        row.cancel_button.clicked.connect(lambda: self._cancel(job))
        self.rows[job.id] = row
        self._list.addWidget(row)
        self._enable()

    def _drag(self, row: JobRow, y: int) -> None:
        """Move a dragged row to the height `y` of the pointer. It can pass only rows of queued jobs with the same `Job.lane`."""
        for other in self._waiting_with(row):
            at, index = self._list.indexOf(other), self._list.indexOf(row)
            middle = other.geometry().center().y()
            if (at < index and y < middle) or (at > index and y > middle):
                self._list.removeWidget(row)
                self._list.insertWidget(at, row)
                self._list.activate()
                return

    def _drop(self, row: JobRow) -> None:
        index = self._list.indexOf(row)
        after = [other for other in self._waiting_with(row) if self._list.indexOf(other) > index]
        self.moved.emit(row.job, min(after, key=self._list.indexOf).job if after else None)

    def _waiting_with(self, row: JobRow) -> list[JobRow]:
        others = (other for other in self.rows.values() if other is not row)
        return [other for other in others if other.job.state == "queued" and other.job.lane == row.job.lane]

    def _cancel(self, job: Job) -> None:
        self.cancel_requested.emit(job)
        self._show(job)

    def _show_started(self, job: Job) -> None:
        self._show(job)
        self._show_running()

    def _show_running(self) -> None:
        """Scroll the row of the running job to the top, so that no row above it is cut."""
        for row in self.rows.values():
            if row.job.state == "running":
                self._scroll.verticalScrollBar().setValue(row.y())
                return

    def _show(self, job: Job) -> None:
        if job.id in self.rows:
            self.rows[job.id].show_state()
        self._enable()

    def _show_times(self) -> None:
        for row in self.rows.values():
            if row.job.state == "running":
                row.show_time()

    def _enable(self) -> None:
        n_over = sum(row.job.is_over for row in self.rows.values())
        if n_over == len(self.rows):
            self._clock.stop()
        elif not self._clock.isActive():
            self._clock.start()
        is_line = not self.rows
        self.clear_button.setVisible(n_over > 0)
        self.empty.setVisible(is_line)
        self._scroll.setVisible(not is_line)
        line = self.clear_button.sizeHint().height() + _LINE_MARGIN
        self.setMinimumHeight(line if is_line else _ROW_HEIGHT)
        self.setMaximumHeight(line if is_line else _MAXIMUM_HEIGHT)


class JobRow(Card):
    """Row of a job, which can be dragged while the job is queued.

    Signals
    -------
    dragged
        Vertical position of the pointer in the list, in pixels.
    dropped
        The row was released.
    """

    dragged = Signal(int)
    dropped = Signal()

    def __init__(self, job: Job, tasks: JobFacts) -> None:
        super().__init__()
        self.job = job
        self._tasks = tasks
        self._pressed: QPoint | None = None
        self._icon = QLabel()
        self.title = _Elided(job.title)
        set_bold(self.title)
        self.title.setMaximumWidth(self.fontMetrics().horizontalAdvance("n") * 36)
        self.stage = _Elided("")
        self.bar = QProgressBar()
        self.bar.setMinimumWidth(60)
        self.bar.setMaximumWidth(220)
        self.time_left = _Elided("")
        self.time_left.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.time_left.setMaximumWidth(self.fontMetrics().horizontalAdvance("00 min 00 s, 00 min 00 s left in this stage"))
        self.cancel_button = tool_button("cancel", "Cancel this job", lambda: None)
        in_row(
            self._icon,
            (self.title, 4),
            (self.stage, 3),
            (self.bar, 2),
            (self.time_left, 3),
            self.cancel_button,
            on=self,
            margins=(10, 5, 8, 5),
            spacing=10,
        )
        self.show_state()

    def show_state(self) -> None:
        """Show the current state of the job."""
        job, progress = self.job, self.job.progress
        name, tone = _STATE_ICONS[job.state]
        self._icon.setPixmap(pixmap(name, 18, QColor(getattr(colours(), tone)), self.devicePixelRatioF()))
        self.title.setToolTip(tip_text(job.title))
        is_running = job.state == "running"
        for widget in (self.bar, self.time_left):
            widget.setVisible(is_running)
        self.cancel_button.setVisible(not job.is_over)
        self.cancel_button.setEnabled(not job.is_cancelling)
        if job.is_over:
            self.stage.setText(self._tasks.outcome(job))
        elif job.is_cancelling:
            self.stage.setText("Stopping")
        elif not is_running:
            self.stage.setText("Queued")
        else:
            self.stage.setText(progress.stage if progress is not None and progress.stage else "Starting")
            self._show_progress(progress)
            self.show_time()
        # A queued job can be dragged to another position.
        self.setCursor(Qt.CursorShape.OpenHandCursor if job.state == "queued" else Qt.CursorShape.ArrowCursor)

    def _show_progress(self, progress: ProgressEvent | None) -> None:
        if progress is None or progress.total <= 0:
            self.bar.setRange(0, 0)
            return
        self.bar.setRange(0, _STEPS)
        self.bar.setValue(min(_STEPS, _STEPS * progress.done // progress.total))

    def show_time(self) -> None:
        """Show the elapsed time, and the remaining time of the whole job or, if this is unknown, of its current stage."""
        job, left, suffix = self.job, self._tasks.seconds_left(self.job), ""
        if left is None and job.progress is not None and job.progress.seconds > _SURE_SECONDS:
            left, suffix = job.progress.seconds_left, " in this stage"
        self.time_left.setText(duration_text(job.seconds) + (f", {duration_text(left)} left{suffix}" if left is not None else ""))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Begin to drag a queued job."""
        if event.button() == Qt.MouseButton.LeftButton and self.job.state == "queued":
            self._pressed = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Drag a queued job."""
        if self._pressed is not None:
            self.dragged.emit(self.mapToParent(event.position().toPoint()).y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Drop a job."""
        if self._pressed is not None:
            self._pressed = None
            self.dropped.emit()


class _Elided(QLabel):
    """Line of text that is elided if it is too wide."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._whole = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setMinimumWidth(60)
        # Its text depends on its width, so its width must not depend on its text.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
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
    """Return a duration in seconds as a text such as ``12 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
