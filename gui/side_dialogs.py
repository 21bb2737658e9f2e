"""Dialogs that stay open while their jobs run: structure databases, format conversion and library prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget

from proteoscope import gui
from proteoscope.gui.forms.file_survey import FileSurvey
from proteoscope.gui.searches import SearchPages
from proteoscope.gui.task_queue import TaskQueue
from proteoscope.gui.tasks import WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.conversion_dialog import ConversionDialog
    from proteoscope.gui.database_dialog import DatabaseDialog
    from proteoscope.gui.prediction_dialog import PredictionDialog

__all__ = ["SideDialogs"]

Dialog = TypeVar("Dialog", bound=QDialog)


class SideDialogs(QObject):
    """Opens one instance of each dialog, and queues its tasks.

    Parameters
    ----------
    searches : callable
        Returns all searches, starting with the current one.
    project : callable
        Returns the folder of the open project, or None.
    survey : FileSurvey
        Inspects files.
    tasks : TaskQueue
        Runs the tasks.
    window : QWidget
        Owner of the dialogs.

    Signals
    -------
    asked
        A task is about to be queued.
    help_asked
        Manual page and description of a setting whose help is requested.
    """

    asked = Signal()
    help_asked = Signal(str, object)

    def __init__(
        self,
        searches: Callable[[], list[SearchPages]],
        project: Callable[[], Path | None],
        survey: FileSurvey,
        tasks: TaskQueue,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._searches, self._project, self._survey, self._tasks, self._window = searches, project, survey, tasks, window

    def new_database(self) -> None:
        """Open the dialog that builds a structure database, for the first form that takes one."""
        for search in self._searches():
            for one in search.search.inputs:
                if one.also == "structure database":
                    self.ask_for_database(search, one.name)
                    return

    def ask_for_database(self, search: SearchPages, name: str) -> None:
        """Open the dialog that builds a structure database for an input of a search."""

        def made() -> gui.database_dialog.DatabaseDialog:
            dialog = gui.database_dialog.DatabaseDialog(self._survey, self._tasks.bridge, self._window)
            dialog.asked.connect(partial(self._queue, dialog))
            dialog.cancel_asked.connect(self._tasks.jobs.cancel)
            dialog.built.connect(lambda folder: search.form.take_database(name, folder))
            return dialog

        self._show(gui.database_dialog.DatabaseDialog, made)

    def convert_spectra(self) -> None:
        """Open the dialog that writes spectra in another format, with the open project for selecting identified spectra."""

        def made() -> gui.conversion_dialog.ConversionDialog:
            dialog = gui.conversion_dialog.ConversionDialog(self._survey, self._tasks.bridge, self._project(), self._window)
            dialog.asked.connect(partial(self._queue, dialog))
            dialog.cancel_asked.connect(self._tasks.jobs.cancel)
            return dialog

        self._show(gui.conversion_dialog.ConversionDialog, made)

    def predict_library(self) -> None:
        """Open the dialog that predicts a spectral library."""

        def made() -> gui.prediction_dialog.PredictionDialog:
            dialog = gui.prediction_dialog.PredictionDialog(self._survey, self._tasks.bridge, self._window)
            dialog.parameters.help_asked.connect(partial(self.help_asked.emit, dialog.MANUAL))
            dialog.asked.connect(partial(self._queue, dialog))
            dialog.cancel_asked.connect(self._tasks.jobs.cancel)
            return dialog

        self._show(gui.prediction_dialog.PredictionDialog, made)

    def _show(self, kind: type[Dialog], make: Callable[[], Dialog]) -> None:
        dialog = self._window.findChild(kind) or make()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def _queue(self, dialog: ConversionDialog | DatabaseDialog | PredictionDialog, task: WritingTask) -> None:
        self.asked.emit()
        dialog.follow(self._tasks.add(task))
