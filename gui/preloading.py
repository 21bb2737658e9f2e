"""Pages are created step by step while the window is idle, so that it opens at once and remains responsive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import ModuleType

from PySide6.QtCore import QObject, QTimer, Signal

from proteoscope.engine import views
from proteoscope.gui import results
from proteoscope.gui.searches import SearchPages

__all__ = ["Preparation"]

_INTERVAL_MS = 40
_FIRST: tuple[Callable[[], ModuleType], ...] = (lambda: views.run_account, lambda: views.run_comparison)
"""Modules that the first project needs that is opened."""
_ALSO: tuple[Callable[[], ModuleType], ...] = (lambda: results.run_page, lambda: results.comparison_view)
"""Those of pages that are made when they are asked for."""


class Preparation(QObject):
    """Imports what pages are made of in a thread, then makes them in the window's thread, a piece at a time.

    Parameters
    ----------
    searches : whose pages are made, in their order. may_work : whether nothing else is under way. parent : owns it.

    Signals
    -------
    done : all pages are made.
    """

    done = Signal()

    def __init__(self, searches: Iterable[SearchPages], may_work: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._searches = tuple(searches)
        self._may_work = may_work
        self._is_imported = threading.Event()
        self._is_wanted = True
        self._thread = threading.Thread(target=self._import, name="proteoscope-loader", daemon=True)
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.step)

    def begin(self) -> None:
        """Begin; what is imported for searches comes after what is imported for pages."""
        self._thread.start()
        self._timer.start()

    def end(self) -> None:
        """Leave off, and wait for the module that is being imported: one must not be half loaded when the program ends."""
        self._is_wanted = False
        self._timer.stop()
        if self._thread.is_alive():
            self._thread.join()

    def step(self) -> None:
        """Create the next part, if there is one and the window is idle."""
        if not self._is_imported.is_set() or not self._may_work():
            return
        if not any(search.prepare() for search in self._searches):
            self._timer.stop()
            self.done.emit()

    def _import(self) -> None:
        self._load(_FIRST)
        self._load(module for pages in self._searches for module in pages.modules())
        self._load(_ALSO)
        if self._is_wanted:
            self._is_imported.set()
        self._load(module for pages in self._searches for module in pages.search.modules)

    def _load(self, modules: Iterable[Callable[[], object]]) -> None:
        for load in modules:
            if not self._is_wanted:
                return
            load()
