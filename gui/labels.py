"""Headings, labels in colours of the theme, and tooltips."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from html import escape
from textwrap import wrap as lines_of
from typing import Literal, TypeVar

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPalette, QShowEvent
from PySide6.QtWidgets import QAbstractButton, QLabel, QListWidgetItem, QToolTip, QWidget

from proteoscope.gui.theme import colours

_Tone = Literal["faint", "wrong", "attention", "good"]
_ROLES: dict[_Tone, QPalette.ColorRole] = {"faint": QPalette.ColorRole.PlaceholderText, "wrong": QPalette.ColorRole.BrightText}
"""Palette roles of tones. Labels in these tones follow a theme change without an individual update."""
_TIP_WIDTH, _TIP_LINES = 100, 30
_Widget = TypeVar("_Widget", bound=QWidget)
_Bold = QWidget | QListWidgetItem


def toned_label(text: str = "", tone: _Tone = "faint", *, wrap: bool = True, is_hidden: bool = False) -> QLabel:
    """Return a label with the colour of a tone in the current theme. If `is_hidden`, the label is hidden until `show_text` is called."""
    role = _ROLES.get(tone)
    label = QLabel(text) if role is not None else _TonedLabel(text, tone)
    if role is not None:
        label.setForegroundRole(role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(wrap)
    if is_hidden:
        label.hide()
    return label


def show_text(label: QLabel | QAbstractButton, text: str) -> None:
    """Show a text in a label or button, which is hidden while the text is empty."""
    label.setText(text)
    label.setVisible(bool(text))


def field_label(text: str, widget: QWidget) -> QLabel:
    """Return the label of a field; its mnemonic focuses the field."""
    label = QLabel(text)
    label.setBuddy(widget)
    return label


def set_bold(widget: _Bold, is_bold: bool = True) -> None:
    """Write the text of a widget or list item in bold, or in normal weight."""
    font = widget.font()
    font.setBold(is_bold)
    widget.setFont(font)


class _TonedLabel(QLabel):
    """Label whose tone has no palette role. After a theme change, its colour is set as soon as the label is visible.

    Most of these labels are hidden, and setting the colours of all labels at the same time would block the window.
    """

    def __init__(self, text: str, tone: _Tone) -> None:
        super().__init__(text)
        self._tone = tone
        self._take_colour()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.isVisible():
            self._take_colour()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        self._take_colour()
        super().showEvent(event)

    def _take_colour(self) -> None:
        wanted, palette = QColor(getattr(colours(), self._tone)), QPalette()
        if self.palette().color(QPalette.ColorRole.WindowText) != wanted:
            palette.setColor(QPalette.ColorRole.WindowText, wanted)
            self.setPalette(palette)


def described(widget: _Widget, name: str = "", tip: str = "") -> _Widget:
    """Set the accessible name and the tooltip ('' for none) of a widget, and return the widget."""
    widget.setAccessibleName(name)
    widget.setToolTip(tip)
    return widget


def heading(text: str, scale: float = 1.1) -> QLabel:
    """Return a label in bold, `scale` times the default size."""
    label = QLabel(text, textFormat=Qt.TextFormat.PlainText)
    font = label.font()
    font.setBold(True)
    font.setPointSizeF(font.pointSizeF() * scale)
    label.setFont(font)
    return label


@lru_cache(maxsize=500)  # forms share most of their tooltips
def tip_text(text: str) -> str:
    """Return a tooltip that shows `text` literally, even if it looks like HTML; long lines are wrapped to fit the screen."""
    # Lines that fit are not wrapped, to save time: a list of thousands of files has a tooltip for each.
    lines = [part for line in text.splitlines() for part in ([line] if len(line) <= _TIP_WIDTH else lines_of(line, _TIP_WIDTH) or [""])]
    shown = "\n".join(lines if len(lines) <= _TIP_LINES else [*lines[:_TIP_LINES], "…"])
    return f"<p style='white-space:pre'>{escape(shown)}</p>" if "<" in shown or "&" in shown else shown


def answer_tooltip(event: QEvent, widget: QWidget, text_at: Callable[[QPointF], str]) -> bool:
    """Show the text under the pointer if the event requests a tooltip; return True if it did."""
    if not isinstance(event, QHelpEvent) or event.type() != QEvent.Type.ToolTip:
        return False
    QToolTip.showText(event.globalPos(), tip_text(text_at(QPointF(event.pos()))), widget)
    return True
