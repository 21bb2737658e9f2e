"""Creation of pages in small steps while the window is idle, so that the window opens quickly and remains responsive."""

import threading
from collections.abc import Callable, Iterable
from types import ModuleType

from PySide6.QtCore import QObject, Signal

from proteoscope.engine import views
from proteoscope.gui import results
from proteoscope.gui.actions import repeated
from proteoscope.gui.searches import SearchPages

_INTERVAL_MS = 40
_FIRST: tuple[Callable[[], ModuleType], ...] = (lambda: views.run_account, lambda: views.run_comparison)
"""Modules needed when the first project is opened."""
_OTHER_VIEWS: tuple[Callable[[], ModuleType], ...] = (lambda: results.run_page, lambda: results.comparison_view)
"""Modules of pages that are created on first use."""


class Preparation(QObject):
    """Preparation of pages: their modules are imported in a background thread, then the pages are created in steps in the window's thread.

    Parameters
    ----------
    searches : iterable of SearchPages
        Searches whose pages are created, in this order.
    may_work : callable
        Function that returns True if the window is idle.
    parent : QObject
        Owner of this object.

    Signals
    -------
    stepped
        A step was done. The modules and pages that it loaded live as long as the window.
    """

    stepped = Signal()

    def __init__(self, searches: Iterable[SearchPages], may_work: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._searches = tuple(searches)
        self._may_work = may_work
        self._is_imported = threading.Event()
        self._is_wanted = True
        self._thread = threading.Thread(target=self._import, name="proteoscope-loader", daemon=True)
        self._timer = repeated(self, self.step, _INTERVAL_MS)

    def begin(self) -> None:
        """Start importing modules: first the modules that projects and pages need, then the modules of searches."""
        self._thread.start()
        self._timer.start()

    def end(self) -> None:
        """Stop after waiting for the current import, since the program must not end during an import."""
        self._is_wanted = False
        self._timer.stop()
        if self._thread.is_alive():
            self._thread.join()

    def step(self) -> None:
        """Do the next step of creating a page if the window is idle; stop the timer when all pages are created and all modules imported."""
        if not self._is_imported.is_set() or not self._may_work():
            return
        is_over = not any(search.prepare() for search in self._searches) and not self._thread.is_alive()
        self.stepped.emit()
        if is_over:
            self._timer.stop()

    def _import(self) -> None:
        self._load(_FIRST)
        self._load(module for pages in self._searches for module in pages.modules())
        self._load(_OTHER_VIEWS)
        if self._is_wanted:
            self._is_imported.set()
        self._load(module for pages in self._searches for module in pages.search.modules)

    def _load(self, modules: Iterable[Callable[[], object]]) -> None:
        for load in modules:
            if not self._is_wanted:
                return
            load()
