"""Docks around the pages of the window, with title bars in the colours of the theme."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget

from proteoscope.gui.actions import delayed
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.labels import toned_label
from proteoscope.gui.layouts import in_row


def add_dock(window: QMainWindow, title: str, content: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
    """Add a dock to a window and return it. Its title is also its object name, under which Qt stores its position."""
    dock = QDockWidget(title, window)
    dock.setObjectName(f"dock{title}")
    dock.setWidget(content)
    dock.setTitleBarWidget(_DockTitle(title, dock))
    window.addDockWidget(area, dock)
    return dock


class _DockTitle(QWidget):
    """Title bar of a dock with a close button: Fusion's own buttons are invisible on a dark surface."""

    def __init__(self, title: str, dock: QDockWidget) -> None:
        super().__init__(dock)
        row = in_row((toned_label(title, wrap=False), 1), on=self, margins=(10, 3, 4, 3))
        # The signal of the action also reports that the user has closed the dock.
        row.addWidget(tool_button("close", f"Close (View, {title})", dock.toggleViewAction().trigger))


class AutomaticDock(QObject):
    """Control that opens a dock when work begins, and closes it when no work is left; the user's choice has priority.

    A dock that the user has closed is not opened automatically, and a dock that the user has opened is not closed automatically.

    Parameters
    ----------
    dock : QDockWidget
        Dock to open and close.
    is_idle : callable
        Function that returns True if no work is left.

    Signals
    -------
    wanted_changed
        True if the user has opened the dock, False if the user has closed it.
    """

    wanted_changed = Signal(bool)

    def __init__(self, dock: QDockWidget, is_idle: Callable[[], bool]) -> None:
        super().__init__(dock)
        self._dock, self._is_idle = dock, is_idle
        self.is_wanted = True
        """False if the user has closed the dock, so that it does not open automatically."""
        self._is_automatic = False
        # Handlers that are called at the end of a job may add another one.
        self._later = delayed(self, self._close_if_idle)
        dock.toggleViewAction().triggered.connect(self._take_choice)

    def begin(self) -> None:
        """Open the dock because work begins."""
        if self.is_wanted:
            self._is_automatic = self._is_automatic or self._dock.isHidden()
            self._dock.show()
            self._dock.raise_()

    def end(self) -> None:
        """Close the dock if it was opened automatically and no work is left."""
        self._later.start()

    def _close_if_idle(self) -> None:
        if self._is_automatic and self._is_idle():
            self._is_automatic = False
            self._dock.hide()

    def _take_choice(self, is_shown: bool) -> None:
        self.is_wanted, self._is_automatic = is_shown, False
        self.wanted_changed.emit(is_shown)
