"""What the window finds again at its next start: its size and place, its docks, and what its forms and views keep."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from PySide6.QtCore import QByteArray, QSize, QTimer
from PySide6.QtWidgets import QMainWindow

from proteoscope.gui.searches import SearchPages
from proteoscope.gui.settings import SearchSettings, SettingsFile
from proteoscope.gui.task_queue import TaskQueue

__all__ = ["WindowMemory"]

_LAYOUT_VERSION = 1
_FRAME = QSize(8, 36)
"""What a title and borders take of a screen."""
_USUAL_SIZE, _SMALLEST_SIZE = QSize(1280, 860), QSize(830, 520)
_MS_TO_SAVE = 700
"""After the last change of what is remembered, as while a window is drawn larger."""


class WindowMemory(QTimer):
    """Writes the settings a moment after they have changed.

    Parameters
    ----------
    window : is remembered. settings : where. searches : whose forms and views are asked what they keep. tasks : knows how long stages took.
    """

    def __init__(self, window: QMainWindow, settings: SettingsFile, searches: Mapping[str, SearchPages], tasks: TaskQueue) -> None:
        super().__init__(window)
        self._window, self._settings, self._searches, self._tasks = window, settings, searches, tasks
        self._is_begun = False
        """Whether what changes is remembered: not what the window itself restores or takes away."""
        self.setSingleShot(True)
        self.setInterval(_MS_TO_SAVE)
        self.timeout.connect(self._save)

    def restore(self) -> None:
        """Give the window the size, the place and the docks that it had."""
        values = self._settings.values
        self._window.resize(_USUAL_SIZE)
        if values.geometry:
            self._window.restoreGeometry(_bytes(values.geometry))
        self._tasks.stage_seconds = {kind: dict(own.stage_seconds) for kind, own in values.searches.items() if own.stage_seconds}
        self._fit_screen()
        if values.layout:
            self._window.restoreState(_bytes(values.layout), _LAYOUT_VERSION)

    def begin(self) -> None:
        """From now on, remember what changes."""
        self._is_begun = True

    def end(self) -> None:
        """Remember what there is, and nothing any more; it is on the disk then."""
        self._is_begun = False
        self.stop()
        self._save()
        self._settings.flush()

    def save_soon(self) -> None:
        """Remember what has changed, in a moment."""
        if self._is_begun:
            self.start()

    def save_settings(self) -> None:
        """Have the settings written as they are, without waiting for the disk."""
        if self._is_begun:
            self._settings.save()

    def of_search(self, search: SearchPages) -> SearchSettings:
        """What is remembered of a kind of search."""
        return self._settings.values.searches.get(search.kind, SearchSettings())

    def _save(self) -> None:
        values = self._settings.values
        values.geometry = _text(self._window.saveGeometry())
        values.layout = _text(self._window.saveState(_LAYOUT_VERSION))
        for search in self._searches.values():
            own = self.of_search(search)
            own.stage_seconds = self._tasks.stage_seconds.get(search.kind, {})
            if search.made_results is not None:
                own.results_layout = search.made_results.state()
            if search.made_form is not None:
                search.made_form.remember(own)
            values.searches[search.kind] = own
        self._settings.save()

    def _fit_screen(self) -> None:
        """Let the window be no larger than the screen, whose edges the button Run and the status bar would be behind."""
        window = self._window
        room = window.screen().availableGeometry()
        window.setMinimumSize(_SMALLEST_SIZE.boundedTo(room.size() - _FRAME))
        fitting = window.size().boundedTo(room.size() - _FRAME)
        if fitting != window.size():
            window.resize(fitting)
            window.move(room.topLeft())


def _text(content: QByteArray) -> str:
    return base64.b64encode(content.data()).decode()


def _bytes(text: str) -> QByteArray:
    try:
        return QByteArray(base64.b64decode(text))
    except ValueError:
        return QByteArray()
