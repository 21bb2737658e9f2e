"""Base class of dialogs that run a task as a job of the window and show its progress and result."""
# ruff: noqa: N802, D102 - Qt gives these names

from typing import Any

from PySide6.QtCore import QLocale, Qt, Signal, SignalInstance
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QShowEvent
from PySide6.QtWidgets import QDialog, QLabel, QProgressBar, QPushButton, QWidget

from proteoscope.engine.jobs import Job, ProgressEvent
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.buttons import PrimaryButton, push_button
from proteoscope.gui.drag_and_drop import dropped_paths, has_paths
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import STRETCH, Item, in_column, in_row, widget_with
from proteoscope.gui.scrolling_layout import PageScroll, fit_dialog


class JobDialog(QDialog):
    """Base class with the status line, progress bar and buttons of a job dialog, and the handling of dropped files.

    Parameters
    ----------
    inspector : FileInspector
        Inspector that determines the types of files.
    bridge : JobBridge
        Bridge that reports job events.
    files : FileList
        List to which dropped files are added.
    parent : QWidget or None
        Owner of the dialog.
    action, cancel, progress : str
        Texts of the start button and the cancel button, and accessible name of the progress bar.

    Signals
    -------
    task_requested
        Task to run; its receiver queues it and calls `follow` with the job.
    cancel_requested
        `Job` to cancel.
    """

    task_requested = Signal(object)
    cancel_requested = Signal(object)

    stopping = "Stopping"
    cancelled = "Cancelled"
    """Status texts while a job is being cancelled and after it was cancelled."""

    def __init__(
        self,
        inspector: FileInspector,
        bridge: JobBridge,
        files: FileList,
        parent: QWidget | None,
        *,
        action: str,
        cancel: str,
        progress: str,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptDrops(True)
        self._inspector, self._files = inspector, files
        self._job: Job | None = None
        self._is_done = False
        self._area: PageScroll | None = None
        self.stage = QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.progress = described(QProgressBar(textVisible=False), progress)
        self.progress.hide()
        self.action_button = PrimaryButton(action)
        self.cancel_button = push_button(cancel, icon="cancel")
        self.close_button = QPushButton("Close")
        for button in (self.action_button, self.cancel_button, self.close_button):
            button.setAutoDefault(False)
        self.action_button.setDefault(True)
        self.action_button.clicked.connect(self.begin)
        self.cancel_button.clicked.connect(self._cancel)
        self.close_button.clicked.connect(self.close)
        bridge.started.connect(self._on_started)
        bridge.progressed.connect(self._on_progress)
        bridge.finished.connect(self._on_finished)

    @property
    def is_running(self) -> bool:
        """True while the job is queued or running."""
        return self._job is not None

    def validation_error(self) -> str:
        """Return the reason why the task cannot start, or ''."""
        raise NotImplementedError

    def task(self) -> Any:
        """Return the task to run; called only if all fields are valid."""
        raise NotImplementedError

    def enable(self, missing: str) -> None:
        """Enable the fields unless the job is running. `missing` is the result of `validation_error`."""
        raise NotImplementedError

    def result_text(self, result: Any) -> str:
        """Return the status text for the result of a finished job; derived classes may also show other parts of the result."""
        raise NotImplementedError

    def check(self) -> None:
        """Enable the widgets that can be used in the current state, and show the missing or invalid input."""
        missing = self.validation_error()
        self.action_button.setEnabled(not missing)
        self.cancel_button.setEnabled(self.is_running)
        self.enable(missing)
        if not self.is_running and (missing or not self._is_done):
            self.stage.setText(missing)

    def begin(self) -> None:
        """Request the task if all fields are valid."""
        if not self.validation_error():
            self.task_requested.emit(self.task())

    def follow(self, job: Job) -> None:
        """Show the progress of this job."""
        self._job, self._is_done = job, False
        self.progress.setRange(0, 0)
        self.progress.show()
        self.stage.setText("Queued")
        self.check()
        self.cancel_button.setFocus()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if not self.is_running and has_paths(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        paths, _ = dropped_paths(event.mimeData())
        self._inspector.all_within(paths, lambda inspection: self._files.take(inspection.files))

    def lay_out(self, *items: Item) -> None:
        """Place items (see `in_column`) on a scrolling page above the buttons, which remain visible on small screens."""
        self._area = PageScroll(widget_with(in_column(*items, spacing=10)))
        in_column(
            (self._area, 1), in_row(STRETCH, self.action_button, self.cancel_button, self.close_button), on=self, margins=None, spacing=10
        )

    def check_on(self, *signals: SignalInstance) -> None:
        """Check the fields now and whenever one of the signals is emitted."""
        for signal in signals:
            signal.connect(self.check)
        self.check()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._area is not None and not event.spontaneous():
            fit_dialog(self, self._area)

    def _cancel(self) -> None:
        if self._job is not None:
            self.stage.setText(self.stopping)
            self.cancel_requested.emit(self._job)

    def _on_started(self, job: Job) -> None:
        if job is self._job:
            self.stage.setText("Starting")

    def _on_progress(self, job: Job, event: ProgressEvent) -> None:
        if job is self._job:
            locale = QLocale()
            of = f": {locale.toString(event.done)} of {locale.toString(event.total)}" if event.total > 0 else ""
            self.stage.setText(f"{event.stage}{of}")
            self.progress.setRange(0, max(0, event.total))
            self.progress.setValue(event.done)

    def _on_finished(self, job: Job) -> None:
        if job is not self._job:
            return
        self._job = None
        self.progress.hide()
        self._is_done = True
        if job.state == "done":
            self.stage.setText(self.result_text(job.result))
        else:
            self.stage.setText(str(job.error) if job.state == "failed" else self.cancelled)
        self.check()
        (self.close_button if job.state == "done" else self.action_button).setFocus()
