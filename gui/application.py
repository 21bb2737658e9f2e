"""The Qt application: its name, theme and settings, and the handler of unexpected errors."""

import gc
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QLocale, QObject, Signal
from PySide6.QtWidgets import QApplication

from proteoscope.engine.version import VERSION
from proteoscope.gui.icons import icon
from proteoscope.gui.preloading import Preparation
from proteoscope.gui.settings import SettingsFile, default_settings_path
from proteoscope.gui.termination import Termination
from proteoscope.gui.theme import Theme, scale_font
from proteoscope.gui.window import MainWindow


def set_locale() -> None:
    """Use British English if the system has no language (locale C), since numbers would otherwise have no thousands separators."""
    if QLocale().language() == QLocale.Language.C:
        QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedKingdom))


def run_window(files: Sequence[Path] = ()) -> int:
    """Open the window, optionally with files or a project, and return the exit status once it is closed."""
    application = QApplication(sys.argv[:1])
    set_locale()
    application.setApplicationName("proteoscope")
    application.setApplicationDisplayName("Proteoscope")
    application.setApplicationVersion(VERSION)
    application.setDesktopFileName("proteoscope")
    settings = SettingsFile(default_settings_path())
    scale_font(application, settings.values.font_scale)
    theme = Theme(application)
    application.setWindowIcon(icon("proteoscope"))
    window = MainWindow(settings, theme)
    _ErrorHandler(window)
    # Only the window state needs saving on a termination signal: projects are always consistent on disk.
    termination = Termination(window.window_state.end, window)
    window.show()
    # The widgets and pages live as long as the window, so the garbage collector need not inspect them.
    gc.freeze()
    window.devices.detect()
    preparation = Preparation(window.searches.values(), lambda: window.queue.is_idle, window)
    # A full collection of the imported modules and new pages would block the window for 90 ms.
    preparation.stepped.connect(gc.freeze)
    preparation.begin()
    if files:
        window.open_files(files)
    else:
        window.assistance.begin_tour_once()
    status = application.exec()
    preparation.end()
    termination.close()
    return status


class _ErrorHandler(QObject):
    """Handler that shows uncaught exceptions of all threads in the window, in addition to the traceback in the terminal."""

    _met = Signal(str, str)

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._met.connect(window.show_unexpected_error)
        sys.excepthook = self._take
        threading.excepthook = lambda args: self._take(args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback)

    def _take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        if issubclass(kind, Exception):
            self._met.emit(f"{kind.__name__}: {error}", "".join(traceback.format_exception(kind, error, trace)))
