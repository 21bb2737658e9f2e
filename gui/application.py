"""The application around the window: its name, its look, its settings, and what happens to an error that nobody expected."""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from proteoscope.engine.version import VERSION
from proteoscope.gui.icons import icon
from proteoscope.gui.preparation import Preparation
from proteoscope.gui.settings import SettingsFile, default_settings_path
from proteoscope.gui.termination import Termination
from proteoscope.gui.theme import Theme, scale_letters
from proteoscope.gui.window import MainWindow

__all__ = ["run_window"]


def run_window(files: Sequence[Path] = ()) -> int:
    """Open the window, on files or a project where some are given, and stay until it is closed. The exit status."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("proteoscope")
    application.setApplicationDisplayName("Proteoscope")
    application.setApplicationVersion(VERSION)
    application.setDesktopFileName("proteoscope")
    settings = SettingsFile(default_settings_path())
    scale_letters(application, settings.values.letter_size)
    theme = Theme(application)
    application.setWindowIcon(icon("proteoscope"))
    window = MainWindow(settings, theme)
    _Faults(window)
    # A project survives that by itself.
    termination = Termination(window.memory.end, window)
    window.show()
    # What the window is made of is never garbage, and need not be looked at again; nor are its pages, once they are made.
    gc.freeze()
    window.devices.look()
    preparation = Preparation(window.searches.values(), lambda: window.queue.is_idle, window)
    preparation.done.connect(gc.freeze)
    preparation.begin()
    if files:
        window.open_files(files)
    else:
        window.assistance.begin_tour_once()
    status = application.exec()
    preparation.end()
    termination.close()
    return status


class _Faults(QObject):
    """Brings errors that nobody caught, of any thread, to the window; the terminal gets them too."""

    _met = Signal(str, str)

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._met.connect(window.tell_fault)
        sys.excepthook = self._take
        threading.excepthook = lambda args: self._take(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)

    def _take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        if issubclass(kind, Exception):
            self._met.emit(f"{kind.__name__}: {error}", "".join(traceback.format_exception(kind, error, trace)))
