"""Docks around the pages of the window, with title bars that fit the theme."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QWidget

from proteoscope.gui.buttons import tool_button
from proteoscope.gui.labels import toned_label

__all__ = ["add_dock"]


def add_dock(window: QMainWindow, title: str, content: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
    """Add a dock to a window; its position is stored under its title."""
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
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 3, 4, 3)
        row.addWidget(toned_label(title, wrap=False), 1)
        row.addWidget(tool_button("close", f"Close (View, {title})", dock.close))
