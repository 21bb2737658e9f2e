"""Boxes that ignore the mouse wheel, so that the form scrolls, unless the user has focused them."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

if TYPE_CHECKING:
    _Widget = QWidget
else:
    # Only one of the bases of a class may be Qt's.
    _Widget = object

__all__ = ["ChoiceBox", "WheelAfterFocus"]

_BY_THE_USER = frozenset(
    {
        Qt.FocusReason.MouseFocusReason,
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
    }
)
_AUTOMATIC_RETURN = frozenset({Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason, Qt.FocusReason.MenuBarFocusReason})
"""Focus returning from another window, the box's own list or a menu."""


class WheelAfterFocus(_Widget):
    """Box whose value the wheel changes only after it was focused by a click or a key; otherwise the wheel scrolls the form.

    A page that opens focuses its first box without an action of the user.
    """

    _is_meant = False

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus() and self._is_meant:
            super().wheelEvent(event)
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() not in _AUTOMATIC_RETURN:
            self._is_meant = event.reason() in _BY_THE_USER
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._is_meant = True
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._is_meant = True
        super().mousePressEvent(event)


class ChoiceBox(WheelAfterFocus, QComboBox):
    """A box with several choices."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        # Qt's default would let the wheel focus the box.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
