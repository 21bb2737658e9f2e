"""Storage of marks (stars and comments) of table rows: in a thread while the run is shown, directly when it is closed."""

import contextlib
from functools import partial

from PySide6.QtCore import QObject, Signal

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import RowMark
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.gui.tables.worker import TableWorker


class RowMarker(QObject):
    """Store of the marks of one table of the shown run.

    Parameters
    ----------
    table : str
        Name of the table.
    parent : QObject or None
        Owner of this object.
    """

    stored = Signal()
    """A mark was stored in the project."""
    refused = Signal(int, str)
    """The mark of a row could not be stored; emitted with the row and the reason after the previous mark is restored."""

    def __init__(self, table: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self._run: FinishedRun | None = None
        self._marks: dict[int, RowMark] = {}
        self._unsaved: dict[int, RowMark] = {}
        self._worker = TableWorker(None, self)

    @property
    def is_busy(self) -> bool:
        """True while a mark is being written."""
        return self._worker.is_busy

    def open(self, run: FinishedRun) -> None:
        """Load the marks of a run."""
        self._run = run
        self._marks = dict(run.marks.get(self._table, {}))

    def close(self) -> None:
        """Store pending marks and release the run."""
        self._worker.close()
        if self._run is not None:
            for row, mark in self._unsaved.items():
                # Errors are ignored, since the view that would show them is closing.
                with contextlib.suppress(ProteoscopeError):
                    self._run.project.set_row_mark(self._run.run.id, self._table, row, mark)
        self._unsaved.clear()
        self._marks.clear()
        self._run = None

    def mark_of(self, row: int) -> RowMark:
        """Return the mark of a row, an empty one if it has none."""
        return self._marks.get(row, RowMark())

    def put(self, row: int, mark: RowMark) -> None:
        """Set the mark of a row and store it in a thread."""
        run = self._run
        if run is None:
            return
        before = self.mark_of(row)
        self._marks[row] = self._unsaved[row] = mark

        def on_stored(_: object) -> None:
            self._unsaved.pop(row, None)
            self.stored.emit()

        def on_refused(error: Exception) -> None:
            self._unsaved.pop(row, None)
            self._marks[row] = before
            self.refused.emit(row, str(error))

        self._worker.submit(f"row {row}", partial(run.mark, self._table, row, mark), on_stored, on_refused)
