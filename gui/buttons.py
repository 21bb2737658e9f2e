"""Buttons shared by forms, views and docks."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QPushButton, QStyle, QStyleOptionButton, QToolButton

from proteoscope.gui.icons import set_icon
from proteoscope.gui.theme import colours

__all__ = ["PrimaryButton", "text_button", "tool_button"]

_HOVERED, _PRESSED = 112, 130
"""Factors of `QColor.darker` for the background under the pointer and of a pressed button; 112 is 12 % darker."""


def tool_button(icon: str, tip: str, clicked: Callable[[], object]) -> QToolButton:
    """Return a small flat button with an icon."""
    button = QToolButton()
    button.setAutoRaise(True)
    button.setIconSize(QSize(16, 16))
    button.setToolTip(tip)
    button.setAccessibleName(tip)
    set_icon(button, icon)
    button.clicked.connect(clicked)
    return button


def text_button(text: str, tip: str, clicked: Callable[[], object], name: str = "") -> QToolButton:
    """Return a button with a text and an optional accessible name."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setAccessibleName(name)
    button.clicked.connect(lambda: clicked())
    return button


class PrimaryButton(QPushButton):
    """The button for the main action of a page, in the theme's accent colour while enabled.

    Parameters
    ----------
    text : str
        Text of the button.
    icon : str
        Name of its icon, or ''.
    """

    def __init__(self, text: str, icon: str = "") -> None:
        super().__init__(text)
        self._icon = icon
        self._take_colours()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._take_colours()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        if not self.isEnabled():
            super().paintEvent(event)
            return
        # Fusion would draw the button so bright that its text is unreadable.
        option = QStyleOptionButton()
        self.initStyleOption(option)
        darker = _PRESSED if self.isDown() else _HOVERED if self.underMouse() else 100
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colours().text), 2) if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours().accent).darker(darker))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 3, 3)
        self.style().drawControl(QStyle.ControlElement.CE_PushButtonLabel, option, painter, self)
        painter.end()

    def _take_colours(self) -> None:
        palette, chosen = QPalette(), colours()
        if self.palette().color(QPalette.ColorGroup.Active, QPalette.ColorRole.Button) == QColor(chosen.accent):
            return
        for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
            palette.setColor(group, QPalette.ColorRole.Button, QColor(chosen.accent))
            palette.setColor(group, QPalette.ColorRole.ButtonText, QColor(chosen.accent_text))
        self.setPalette(palette)
        if self._icon:
            set_icon(self, self._icon, QColor(chosen.accent_text))
