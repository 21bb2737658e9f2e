"""Closing of the window: confirmation while jobs run, and waiting until cancelled jobs have stopped."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.jobs import JobQueue
from proteoscope.gui.actions import delayed
from proteoscope.gui.dialogs import CloseDialog

_MAXIMUM_MS_TO_STOP = 10_000


class Closing(QObject):
    """Procedure that requests confirmation, cancels the jobs, and closes the window when they have stopped or after ten seconds.

    Parameters
    ----------
    window : QWidget
        Window to close.
    queue : JobQueue
        Queue whose jobs are cancelled.

    Signals
    -------
    stopping
        The user has confirmed and the jobs are being cancelled.
    """

    stopping = Signal()

    def __init__(self, window: QWidget, queue: JobQueue) -> None:
        super().__init__(window)
        self._window, self._queue = window, queue
        self.question: CloseDialog | None = None
        """The open confirmation dialog, or None."""
        self.is_agreed = False
        """True if the user has confirmed, so that the window closes as soon as no job runs."""
        self._patience = delayed(self, window.close, _MAXIMUM_MS_TO_STOP)

    def may_close(self) -> bool:
        """Return True if the window may close now; if jobs are running or queued, open a dialog for confirmation and return False."""
        if self._queue.is_idle or self.is_agreed:
            self._patience.stop()
            return True
        self._prompt()
        return False

    def close_if_idle(self) -> None:
        """Close the window if no job runs."""
        if self._queue.is_idle:
            self._window.close()

    def _prompt(self) -> None:
        if self.question is not None:
            self.question.raise_()
            return
        n_jobs = len(self._queue.waiting) + len(self._queue.all_running)
        self.question = CloseDialog(max(1, n_jobs), self._window)
        self.question.finished.connect(self._answer)
        self.question.open()

    def _answer(self) -> None:
        question, self.question = self.question, None
        if question is None or question.clickedButton() is not question.close_button:
            return
        self.is_agreed = True
        self.stopping.emit()
        self._queue.cancel_all()
        # A job that does not react to cancellation must not block closing: its thread ends with the process.
        self._patience.start()
        self.close_if_idle()
