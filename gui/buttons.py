"""Buttons shared by forms, views and docks."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QPainter, QPaintEvent, QPalette, QPen, QShowEvent
from PySide6.QtWidgets import QMenu, QPushButton, QStyle, QStyleOptionButton, QStylePainter, QToolButton

from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import described
from proteoscope.gui.theme import colours

_ICON_SIZE = QSize(16, 16)
_HOVERED, _PRESSED = 112, 130
"""Factors of `QColor.darker` for the background under the pointer and of a pressed button; 112 is 12 % darker."""


def tool_button(icon: str, tip: str, clicked: Callable[[], object]) -> QToolButton:
    """Return a small flat button with an icon."""
    button = described(QToolButton(autoRaise=True), tip, tip)
    button.setIconSize(_ICON_SIZE)
    set_icon(button, icon)
    button.clicked.connect(clicked)
    return button


def text_button(
    text: str,
    tip: str,
    clicked: Callable[[], object] | None = None,
    name: str = "",
    *,
    is_flat: bool = False,
    is_checkable: bool = False,
) -> QToolButton:
    """Return a button with a text and an optional accessible name."""
    button = described(QToolButton(autoRaise=is_flat), name, tip)
    button.setCheckable(is_checkable)
    button.setText(text)
    if clicked is not None:
        button.clicked.connect(lambda: clicked())
    return button


def menu_button(text: str, tip: str, menu: QMenu, name: str = "", *, is_flat: bool = False) -> QToolButton:
    """Return a button with a text that opens a menu."""
    button = text_button(text, tip, name=name, is_flat=is_flat)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    button.setMenu(menu)
    return button


def action_button(action: QAction, style: Qt.ToolButtonStyle = Qt.ToolButtonStyle.ToolButtonIconOnly) -> QToolButton:
    """Return a button for an action, flat if it has only an icon."""
    has_text = style != Qt.ToolButtonStyle.ToolButtonIconOnly
    button = QToolButton(autoRaise=not has_text, toolButtonStyle=style)
    button.setDefaultAction(action)
    if not has_text:
        button.setIconSize(_ICON_SIZE)
        button.setAccessibleName(action.text().replace("&", ""))
    return button


def push_button(text: str, clicked: Callable[[], object] | None = None, icon: str = "", tip: str = "", name: str = "") -> QPushButton:
    """Return a large button; the Enter key presses it only if it has the keyboard focus."""
    button = described(QPushButton(text, autoDefault=False), name, tip)
    if icon:
        set_icon(button, icon)
    if clicked is not None:
        button.clicked.connect(lambda: clicked())
    return button


class ElidingButton(QPushButton):
    """A flat button whose text is shortened with an ellipsis if space is short. Its tooltip should contain the text."""

    def __init__(self) -> None:
        super().__init__()
        self.setFlat(True)

    def minimumSizeHint(self) -> QSize:  # noqa: N802, D102 - Qt's name
        return QSize(4 * self.iconSize().width(), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        option, painter = QStyleOptionButton(), QStylePainter(self)
        self.initStyleOption(option)
        space = self.width() - (self.sizeHint().width() - self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, self.text()).width())
        option.text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, space, Qt.TextFlag.TextShowMnemonic)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        painter.end()


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
        # Most of these buttons are hidden, and changing all of them at once would block the window.
        if event.type() == QEvent.Type.PaletteChange and self.isVisible():
            self._take_colours()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802, D102 - Qt's name
        self._take_colours()
        super().showEvent(event)

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
