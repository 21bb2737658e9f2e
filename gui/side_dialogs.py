"""Dialogs that remain open while their jobs run: structure databases, format conversion and library prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from proteoscope import gui
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.searches import SearchPages
from proteoscope.gui.task_queue import TaskQueue
from proteoscope.gui.tasks import WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.database_dialog import DatabaseDialog
    from proteoscope.gui.job_dialog import JobDialog
    from proteoscope.gui.prediction_dialog import PredictionDialog


class SideDialogs(QObject):
    """Owner of the dialogs for databases, conversion and prediction: opens at most one of each kind, and queues their tasks.

    Parameters
    ----------
    searches : callable
        Function that returns all searches, starting with the current one.
    project : callable
        Function that returns the folder of the open project, or None.
    inspector : FileInspector
        Inspector that determines the types of files.
    tasks : TaskQueue
        Queue that runs the tasks.
    window : QWidget
        Owner of the dialogs.

    Signals
    -------
    task_requested
        A task is about to be queued.
    help_requested
        Manual page and parameter description of the setting for which the user requests help.
    """

    task_requested = Signal()
    help_requested = Signal(str, object)

    def __init__(
        self,
        searches: Callable[[], list[SearchPages]],
        project: Callable[[], Path | None],
        inspector: FileInspector,
        tasks: TaskQueue,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._searches, self._project, self._inspector, self._tasks, self._window = searches, project, inspector, tasks, window

    def new_database(self) -> None:
        """Open the dialog that builds a structure database, which is then passed to the first form with a suitable input."""
        for search in self._searches():
            for input_spec in search.search.inputs:
                if input_spec.second_content == "structure database":
                    self.prompt_for_database(search, input_spec.name)
                    return

    def prompt_for_database(self, search: SearchPages, name: str) -> None:
        """Open the dialog that builds a structure database, which is then passed to the input `name` of a search."""

        def made() -> DatabaseDialog:
            dialog = gui.database_dialog.DatabaseDialog(self._inspector, self._tasks.bridge, self._window)
            dialog.built.connect(lambda folder: search.form.take_database(name, folder))
            return dialog

        self._show(gui.database_dialog.DatabaseDialog, made)

    def convert_spectra(self) -> None:
        """Open the dialog that writes spectra in another format; its filter can use the identified spectra of the open project."""
        kind = gui.conversion_dialog.ConversionDialog
        self._show(kind, lambda: kind(self._inspector, self._tasks.bridge, self._project(), self._window))

    def predict_library(self) -> None:
        """Open the dialog that predicts a spectral library."""

        def made() -> PredictionDialog:
            dialog = gui.prediction_dialog.PredictionDialog(self._inspector, self._tasks.bridge, self._window)
            dialog.parameters.help_requested.connect(partial(self.help_requested.emit, dialog.MANUAL))
            return dialog

        self._show(gui.prediction_dialog.PredictionDialog, made)

    def _show(self, kind: type[JobDialog], make: Callable[[], JobDialog]) -> None:
        dialog = self._window.findChild(kind)
        if dialog is None:
            dialog = make()
            dialog.task_requested.connect(partial(self._queue, dialog))
            dialog.cancel_requested.connect(self._tasks.jobs.cancel)
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def _queue(self, dialog: JobDialog, task: WritingTask) -> None:
        self.task_requested.emit()
        dialog.follow(self._tasks.add(task))
