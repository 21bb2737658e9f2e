"""Opening or creating the project of a search, with a dialog for its new location if its folder is missing."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project, is_project
from proteoscope.gui.dialogs import LostProjectDialog
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.tasks import ExperimentTask, SearchTask


class TaskProjects(QObject):
    """Opener of the project in which a task runs.

    Parameters
    ----------
    is_known : callable
        Function that returns True if the program has used a project in the given folder before.
    window : QWidget
        Owner of the dialogs.

    Signals
    -------
    opened
        A `SearchTask` or `ExperimentTask`, and its `Project`.
    prompting
        A dialog is about to open.
    moved
        Previous and new folder of a project, as located by the user.
    failed
        The project cannot be opened; emitted with the error text.
    """

    opened = Signal(object, object)
    prompting = Signal()
    moved = Signal(Path, Path)
    failed = Signal(str)

    def __init__(self, is_known: Callable[[Path], bool], window: QWidget) -> None:
        super().__init__(window)
        self._is_known, self._window = is_known, window
        self.question: LostProjectDialog | None = None
        """The open dialog for the location of a project, or None."""

    def open_for(self, task: SearchTask | ExperimentTask) -> None:
        """Open the project of a task and emit `opened`. If a known project is missing, instead open a dialog for its new location."""
        if self._is_known(task.project_folder) and not is_project(task.project_folder):
            self._prompt(task)
        else:
            self._open(task)

    def _open(self, task: SearchTask | ExperimentTask) -> None:
        try:
            opened = Project.open if task.search.writes == "given project" else Project.create_or_open
            project = opened(task.project_folder)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self.opened.emit(task, project)

    def _prompt(self, task: SearchTask | ExperimentTask) -> None:
        if self.question is not None:
            self.question.raise_()
            return
        self.prompting.emit()
        self.question = LostProjectDialog(task.project_folder, self._window)
        self.question.finished.connect(lambda: self._answer(task))
        self.question.open()

    def _answer(self, task: SearchTask | ExperimentTask) -> None:
        question, self.question = self.question, None
        if question is None:
            return
        if question.clickedButton() is question.make_button:
            self._open(task)
        elif question.clickedButton() is question.locate_button:
            folder = str(task.project_folder.parent)
            prompt_for_path(self._window, "Locate the project", partial(self._open_moved, task), "folder", folder=folder)

    def _open_moved(self, task: SearchTask | ExperimentTask, folder: Path) -> None:
        """Open a project that the user has located in another folder."""
        try:
            project = Project.open(folder)
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self.moved.emit(task.project_folder, project.folder)
        self._open(task.in_project(project.folder))
