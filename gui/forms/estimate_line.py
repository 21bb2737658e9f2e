"""Line next to the Run button with the estimated run time and memory of the search, computed in the background after each change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWhatsThis, QWidget

from proteoscope import engine
from proteoscope.engine import views
from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.files import scratch_folder
from proteoscope.gui.actions import delayed
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import tip_text
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import SearchTask

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate

_MS_TO_ESTIMATE = 300
_OF_WORKERS = "run times of workers in other processes cannot be estimated"


class EstimateLine(QWidget):
    """Line with the estimated run time, device and limiting factor, and with memory and uncertainty below. A button shows details.

    Estimates never block the form, and a new request replaces an estimate that is being computed.

    Parameters
    ----------
    current_task : callable
        Function that returns the current task of the form, or None if the form is incomplete; the estimate is then hidden.
    """

    def __init__(self, current_task: Callable[[], SearchTask | None]) -> None:
        super().__init__()
        self._current_task = current_task
        self._worker = TableWorker(None, self)
        self.estimate: Estimate | None = None
        """The shown estimate, or None."""
        self.problem = ""
        """Reason why there is no estimate, or ''."""
        self.details = ""
        """Text with the details of the estimate."""
        self.headline = QLabel(textFormat=Qt.TextFormat.PlainText)
        self.headline.setMinimumWidth(1)
        self.below = ElidedLabel()
        self.button = QPushButton(flat=True)
        set_icon(self.button, "information")
        self.button.setAccessibleName("More about the estimate")
        self.button.setToolTip("Steps, memory, counts and uncertainty of the estimate")
        self.button.clicked.connect(self.show_details)
        in_row((self.button, 0, Qt.AlignmentFlag.AlignVCenter), (in_column(self.headline, self.below, spacing=0), 1), on=self, spacing=6)
        # Wait until the user has typed all digits of a number.
        self._waiting = delayed(self, self._begin, _MS_TO_ESTIMATE)
        self._show()

    @property
    def is_busy(self) -> bool:
        """True while an estimate is pending."""
        return self._waiting.isActive() or self._worker.is_busy

    def begin_soon(self) -> None:
        """Request a new estimate after a short delay, and discard a pending one."""
        self._worker.cancel()
        self._waiting.start()

    def stop(self) -> None:
        """Discard a pending estimate."""
        self._waiting.stop()
        self._worker.cancel()

    def show_details(self) -> None:
        """Show the details in a box that any key or click closes."""
        QWhatsThis.showText(self.button.mapToGlobal(QPoint(0, 0)), tip_text(self.details), self.button)

    def _begin(self) -> None:
        task = self._current_task()
        if task is None:
            self._take(None)
        elif task.request.workers:
            self._fail(_OF_WORKERS)
        elif not task.search.workload_estimator:
            self._fail("this type of search has no estimate")
        else:
            make = partial(_estimate, task.search, task.request, dict(task.pasted))
            self._worker.submit("estimate", make, self._take, lambda error: self._fail(_words(error)))

    def _take(self, estimate: Estimate | None) -> None:
        self.estimate, self.problem = estimate, ""
        self._show()

    def _fail(self, reason: str) -> None:
        self.estimate, self.problem = None, reason
        self._show()

    def _show(self) -> None:
        result = self.estimate
        if result is not None:
            words = views.estimates.estimate_text(result)
            device = "the CPU" if result.device == "cpu" else f"{result.device}, {result.description.partition(',')[0]}"
            self.headline.setText(f"{words.headline[0].upper()}{words.headline[1:]}, on {device}")
            self.below.set_text(f"{words.memory}; {words.sureness}")
            self.details = "\n".join((f"{self.headline.text()} ({result.description})", *words.details))
        elif self.problem:
            self.headline.setText("No estimate")
            self.below.set_text(self.problem)
            self.details = f"No estimate: {self.problem}"
        else:
            self.details = ""
        self.setAccessibleName(self.details.partition("\n")[0])
        self.headline.setToolTip(tip_text(self.details))
        self.setVisible(bool(self.details))


def _estimate(search: Search, request: SearchRequest, pasted: Mapping[str, str]) -> Estimate:
    """Return the estimate of a request. Called in a background thread. Pasted text is written to a temporary file."""
    with scratch_folder() as folder:
        inputs = {name: list(paths) for name, paths in request.inputs.items()}
        for name, text in pasted.items():
            path = folder / f"{name}.fasta"
            path.write_text(text, encoding="utf-8")
            inputs.setdefault(name, []).append(path)
        return engine.estimates.estimate(search, replace(request, inputs=inputs))


def _words(error: Exception) -> str:
    """Return a text with the reason why there is no estimate.

    For an error of the program or the system, the text is the error's message; for other exceptions, it names only the type of the
    exception.
    """
    text = str(error) if isinstance(error, ProteoscopeError | OSError) else f"the computation failed ({type(error).__name__})"
    return " ".join(text.split())[:300]
