"""Saving and restoring of the window state: size, position, docks, forms and views."""

import base64
from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QSize, QTimer
from PySide6.QtWidgets import QMainWindow

from proteoscope.gui.searches import SearchPages
from proteoscope.gui.settings import SearchSettings, SettingsFile
from proteoscope.gui.task_queue import TaskQueue

_LAYOUT_VERSION = 1
_FRAME = QSize(8, 36)
"""Space reserved for the title bar and borders of a window, in pixels."""
_USUAL_SIZE, _SMALLEST_SIZE = QSize(1280, 860), QSize(830, 520)
_MS_TO_SAVE = 700
"""Delay in milliseconds between the last change and saving, so that the state is not saved continuously while the window is resized."""


class WindowState(QTimer):
    """Timer that saves the window state to the settings shortly after a change.

    Parameters
    ----------
    window : QMainWindow
        Window whose state is saved.
    settings : SettingsFile
        Settings that store the state.
    searches : mapping of str to SearchPages
        Searches whose forms and views are saved.
    tasks : TaskQueue
        Queue that provides the durations of stages.
    """

    def __init__(self, window: QMainWindow, settings: SettingsFile, searches: Mapping[str, SearchPages], tasks: TaskQueue) -> None:
        super().__init__(window)
        self._window, self._settings, self._searches, self._tasks = window, settings, searches, tasks
        self._is_begun = False
        """True if changes are saved; False while the window state is being restored and after `end`."""
        self.setSingleShot(True)
        self.setInterval(_MS_TO_SAVE)
        self.timeout.connect(self._save)

    def restore(self) -> None:
        """Restore the size, position and docks of the window."""
        values = self._settings.values
        self._window.resize(_USUAL_SIZE)
        if values.geometry:
            self._window.restoreGeometry(_bytes(values.geometry))
        self._tasks.stage_seconds = {kind: dict(search.stage_seconds) for kind, search in values.searches.items() if search.stage_seconds}
        self._fit_screen()
        if values.layout:
            self._window.restoreState(_bytes(values.layout), _LAYOUT_VERSION)

    def begin(self) -> None:
        """Start saving changes."""
        self._is_begun = True

    def end(self) -> None:
        """Save the state to disk and stop saving changes."""
        self._is_begun = False
        self.stop()
        self._save()
        self._settings.flush()

    def save_soon(self) -> None:
        """Restart the delay after which changes are saved."""
        if self._is_begun:
            self.start()

    def save_settings(self) -> None:
        """Write the current settings without waiting for the disk."""
        if self._is_begun:
            self._settings.save()

    def of_search(self, search: SearchPages) -> SearchSettings:
        """Return the stored settings of a search."""
        return self._settings.values.searches.get(search.kind, SearchSettings())

    def _save(self) -> None:
        values = self._settings.values
        values.geometry = _text(self._window.saveGeometry())
        values.layout = _text(self._window.saveState(_LAYOUT_VERSION))
        for search in self._searches.values():
            search_settings = self.of_search(search)
            search_settings.stage_seconds = self._tasks.stage_seconds.get(search.kind, {})
            if search.made_results is not None:
                search_settings.results_layout = search.made_results.state()
            if search.made_form is not None:
                search.made_form.remember(search_settings)
            values.searches[search.kind] = search_settings
        self._settings.save()

    def _fit_screen(self) -> None:
        """Limit the window to the size of the screen, so that the Run button and the status bar are visible."""
        window = self._window
        space = window.screen().availableGeometry()
        window.setMinimumSize(_SMALLEST_SIZE.boundedTo(space.size() - _FRAME))
        fitting = window.size().boundedTo(space.size() - _FRAME)
        if fitting != window.size():
            window.resize(fitting)
            window.move(space.topLeft())


def _text(content: QByteArray) -> str:
    return base64.b64encode(content.data()).decode()


def _bytes(text: str) -> QByteArray:
    try:
        return QByteArray(base64.b64decode(text))
    except ValueError:
        return QByteArray()
