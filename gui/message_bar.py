"""A bar above the page for errors and finished work; it stays until it is closed and does not interrupt the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from proteoscope.gui.buttons import tool_button
from proteoscope.gui.icons import pixmap
from proteoscope.gui.theme import colours

__all__ = ["MessageBar"]

_ICONS = {"wrong": "failed", "attention": "warning", "good": "done"}


class MessageBar(QWidget):
    """Shows one message; hidden if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._tone: Literal["wrong", "attention", "good"] = "good"
        self._clicked: Callable[[], None] | None = None
        self._is_hint = False
        self._icon = QLabel()
        self.label = QLabel()
        self.label.setWordWrap(True)
        # A long path without break points must not widen the window.
        self.label.setMinimumWidth(1)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        self.button = QPushButton()
        self.button.clicked.connect(self._click)
        self.close_button = tool_button("close", "Close this message", self.clear)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 6, 8, 6)
        row.setSpacing(10)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.label, 1)
        row.addWidget(self.button)
        row.addWidget(self.close_button)
        self.hide()

    def show_message(
        self, text: str, tone: Literal["wrong", "attention", "good"], action: str = "", clicked: Callable[[], None] | None = None
    ) -> None:
        """Show a message, replacing the previous one, optionally with a button for an action."""
        self._tone, self._clicked, self._is_hint = tone, clicked, False
        self.label.setText(text)
        self.button.setText(action)
        self.button.setVisible(bool(action))
        self.redraw()
        self.show()

    def hint(self, text: str) -> None:
        """Show what is missing until `clear_hint` is called."""
        self.show_message(text, "attention")
        self._is_hint = True

    def clear_hint(self) -> None:
        """Remove a hint; other messages stay."""
        if self._is_hint:
            self.clear()

    def clear_complaint(self) -> None:
        """Remove a warning or an error; good news stays."""
        if self._tone != "good":
            self.clear()

    def clear(self) -> None:
        """Hide the message."""
        self._clicked, self._is_hint = None, False
        self.label.clear()
        self.hide()

    def redraw(self) -> None:
        """Draw the icon in the colours of the palette."""
        self._icon.setPixmap(pixmap(_ICONS[self._tone], 18, QColor(getattr(colours(), self._tone)), self.devicePixelRatioF()))
        self.update()

    def _click(self) -> None:
        clicked = self._clicked
        self.clear()
        if clicked is not None:
            clicked()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(colours().raised))
            painter.fillRect(QRectF(0, 0, 4, self.height()), QColor(getattr(colours(), self._tone)))
            painter.fillRect(QRectF(0, self.height() - 1, self.width(), 1), QColor(colours().outline))
