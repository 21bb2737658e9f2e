"""Keeps what users put on rows of a table: in a thread while the run is shown, and whatever is left when it goes."""

from __future__ import annotations

import contextlib
from functools import partial

from PySide6.QtCore import QObject, Signal

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import RowMark
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.gui.tables.worker import TableWorker

__all__ = ["RowMarker"]


class RowMarker(QObject):
    """The marks of a table of the run that is shown.

    Parameters
    ----------
    table : its name.
    """

    kept = Signal()
    """A mark is in the project now."""
    refused = Signal(int, str)
    """The mark of a row could not be kept, and why; it has the one again that it had before."""

    def __init__(self, table: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self._run: FinishedRun | None = None
        self._marks: dict[int, RowMark] = {}
        self._unsaved: dict[int, RowMark] = {}
        self._worker = TableWorker(None, self)

    @property
    def is_busy(self) -> bool:
        """Whether a mark is still being written."""
        return self._worker.is_busy

    def open(self, run: FinishedRun) -> None:
        """Take the marks of a run."""
        self._run = run
        self._marks = dict(run.marks.get(self._table, {}))

    def close(self) -> None:
        """Keep what is not kept yet, and let the run go."""
        self._worker.close()
        if self._run is not None:
            for row, mark in self._unsaved.items():
                # There is no view any more to tell it in.
                with contextlib.suppress(ProteoscopeError):
                    self._run.project.set_row_mark(self._run.run.id, self._table, row, mark)
        self._unsaved.clear()
        self._marks.clear()
        self._run = None

    def mark_of(self, row: int) -> RowMark:
        """What is on a row."""
        return self._marks.get(row, RowMark())

    def put(self, row: int, mark: RowMark) -> None:
        """Put a mark on a row."""
        run = self._run
        if run is None:
            return
        before = self.mark_of(row)
        self._marks[row] = self._unsaved[row] = mark

        def keep(_: object) -> None:
            self._unsaved.pop(row, None)
            self.kept.emit()

        def refuse(error: Exception) -> None:
            self._unsaved.pop(row, None)
            self._marks[row] = before
            self.refused.emit(row, str(error))

        self._worker.submit(f"row {row}", partial(run.mark, self._table, row, mark), keep, refuse)
