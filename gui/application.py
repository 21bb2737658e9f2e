"""The application around the window: its name, its look, its settings, and what happens to an error that nobody expected."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

from engine import searches
from engine.version import VERSION
from gui.icons import icon
from gui.settings import SettingsFile, default_settings_path
from gui.theme import Theme
from gui.window import MainWindow

__all__ = ["run_window"]


def run_window(project: Path | None = None) -> int:
    """Open the window, on a project where one is given, and stay until it is closed. The exit status."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("proteoscope")
    application.setApplicationDisplayName("Proteoscope")
    application.setApplicationVersion(VERSION)
    application.setDesktopFileName("proteoscope")
    # Ctrl+C in the terminal ends the program as it ends any other: a project survives that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    theme = Theme(application)
    application.setWindowIcon(icon("proteoscope"))
    window = MainWindow(SettingsFile(default_settings_path()), theme)
    _Faults(window)
    window.show()
    # What the window is made of is never garbage, and need not be looked at again.
    gc.freeze()
    window.devices.look()
    threading.Thread(target=_load_engine, name="proteoscope-loader", daemon=True).start()
    if project is not None:
        window.open_project(project)
    return application.exec()


def _load_engine() -> None:
    """Import what searches need while nobody waits for it, so that the first one does not make the window stutter."""
    for search in searches.SEARCHES:
        for name in search.modules:
            import_module(name)


class _Faults(QObject):
    """Brings errors that nobody caught, of any thread, to the window; the terminal gets them too."""

    _met = Signal(str, str)

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._met.connect(window.tell_fault)
        sys.excepthook = self._take
        threading.excepthook = lambda args: self._take(
            args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
        )  # fmt: skip

    def _take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        if issubclass(kind, Exception):
            self._met.emit(f"{kind.__name__}: {error}", "".join(traceback.format_exception(kind, error, trace)))
