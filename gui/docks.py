"""The docks around the pages of the window, each with a title that fits the look."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QWidget

from proteoscope.gui.buttons import tool_button
from proteoscope.gui.labels import toned_label

__all__ = ["add_dock"]


def add_dock(window: QMainWindow, title: str, content: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
    """Add a dock to a window; its place is remembered by its title."""
    dock = QDockWidget(title, window)
    dock.setObjectName(f"dock{title}")
    dock.setWidget(content)
    dock.setTitleBarWidget(_DockTitle(title, dock))
    window.addDockWidget(area, dock)
    return dock


class _DockTitle(QWidget):
    """The title of a dock, to drag it by, with a button that closes it: Fusion's own buttons cannot be seen on a dark surface."""

    def __init__(self, title: str, dock: QDockWidget) -> None:
        super().__init__(dock)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 3, 4, 3)
        row.addWidget(toned_label(title, wrap=False), 1)
        row.addWidget(tool_button("close", f"Close (View, {title})", dock.close))
