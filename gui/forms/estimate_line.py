"""What the search of a form will take, beside its button Run: computed behind the window, a moment after the last change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWhatsThis, QWidget

from proteoscope import engine
from proteoscope.engine import views
from proteoscope.engine.entry import Search, SearchRequest
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.files import scratch_folder
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import tip_text
from proteoscope.gui.tables.elided_label import ElidedLabel
from proteoscope.gui.tables.worker import TableWorker
from proteoscope.gui.tasks import SearchTask

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate

__all__ = ["EstimateLine"]

_MS_TO_ESTIMATE = 300
_OF_WORKERS = "what workers in other processes take is not known before"


class EstimateLine(QWidget):
    """How long a search will take, on what, and what decides; below it memory and how sure that is. A button tells the rest.

    It never holds anything up: what is asked for while another estimate is made takes the place of that one.

    Parameters
    ----------
    asked : gives the task of the form now; None while something is missing, when nothing is shown.
    """

    def __init__(self, asked: Callable[[], SearchTask | None]) -> None:
        super().__init__()
        self._asked = asked
        self._worker = TableWorker(None, self)
        self.estimate: Estimate | None = None
        """What is shown; None where there is none."""
        self.problem = ""
        """Why there is none; empty where there is, or where none was asked for."""
        self.details = ""
        """All that is known of it."""
        self.headline = QLabel()
        self.headline.setTextFormat(Qt.TextFormat.PlainText)
        self.headline.setMinimumWidth(1)
        self.below = ElidedLabel()
        self.button = QPushButton()
        self.button.setFlat(True)
        set_icon(self.button, "information")
        self.button.setAccessibleName("More about the estimate")
        self.button.setToolTip("Steps, memory, what was counted, and how sure the estimate is")
        self.button.clicked.connect(self.show_details)
        texts = QVBoxLayout()
        texts.setContentsMargins(0, 0, 0, 0)
        texts.setSpacing(0)
        texts.addWidget(self.headline)
        texts.addWidget(self.below)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(texts, 1)
        # A moment after the last change: a number that is typed has several digits.
        self._waiting = QTimer(self)
        self._waiting.setSingleShot(True)
        self._waiting.setInterval(_MS_TO_ESTIMATE)
        self._waiting.timeout.connect(self._begin)
        self._show()

    @property
    def is_busy(self) -> bool:
        """Whether an estimate is still to come."""
        return self._waiting.isActive() or self._worker.is_busy

    def begin_soon(self) -> None:
        """Estimate anew, in a moment; what is under way is of no use any more."""
        self._worker.cancel()
        self._waiting.start()

    def stop(self) -> None:
        """Estimate nothing, until it is asked for again."""
        self._waiting.stop()
        self._worker.cancel()

    def show_details(self) -> None:
        """Tell all that is known, in a box that any key or click takes away."""
        QWhatsThis.showText(self.button.mapToGlobal(QPoint(0, 0)), tip_text(self.details), self.button)

    def _begin(self) -> None:
        task = self._asked()
        if task is None:
            self._take(None)
        elif task.request.workers:
            self._fail(_OF_WORKERS)
        elif not task.search.expecting:
            self._fail("this kind of search is not predicted")
        else:
            make = partial(_estimate, task.search, task.request, dict(task.pasted))
            self._worker.submit("estimate", make, self._take, lambda error: self._fail(_words(error)))

    def _take(self, found: Estimate | None) -> None:
        self.estimate, self.problem = found, ""
        self._show()

    def _fail(self, reason: str) -> None:
        self.estimate, self.problem = None, reason
        self._show()

    def _show(self) -> None:
        found = self.estimate
        if found is not None:
            words = views.estimates.estimate_text(found)
            device = "the processor" if found.device == "cpu" else f"{found.device}, {found.description.partition(',')[0]}"
            self.headline.setText(f"{words.headline[0].upper()}{words.headline[1:]}, on {device}")
            self.below.set_text(f"{words.memory}; {words.sureness}")
            self.details = "\n".join((f"{self.headline.text()} ({found.description})", *words.details))
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
    """The estimate of a request; called in a thread. What was pasted is measured as the file that it will be."""
    with scratch_folder() as folder:
        inputs = {name: list(paths) for name, paths in request.inputs.items()}
        for name, text in pasted.items():
            path = folder / f"{name}.fasta"
            path.write_text(text, encoding="utf-8")
            inputs.setdefault(name, []).append(path)
        return engine.estimates.estimate(search, replace(request, inputs=inputs))


def _words(error: Exception) -> str:
    """Why nothing can be told: what the user can mend as it stands, and a fault of the model as such, since the search may well run."""
    text = str(error) if isinstance(error, ProteoscopeError | OSError) else f"it could not be computed ({type(error).__name__})"
    return " ".join(text.split())[:300]
