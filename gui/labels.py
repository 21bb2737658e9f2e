"""Labels with a meaning: headings, texts in the tones that the look gives them, and what tooltips say."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from textwrap import wrap as lines_of
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QLabel, QToolTip, QWidget

__all__ = ["answer_tooltip", "heading", "tip_text", "toned_label"]

_TIP_LETTERS, _TIP_LINES = 100, 30


def toned_label(text: str = "", tone: Literal["faint", "wrong", "attention", "good"] = "faint", *, wrap: bool = True) -> QLabel:
    """A label in a tone of the look's style sheet."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setObjectName(tone)
    label.setWordWrap(wrap)
    return label


def heading(text: str, scale: float = 1.1) -> QLabel:
    """A label in bold letters, `scale` times the usual size."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    font = label.font()
    font.setBold(True)
    font.setPointSizeF(font.pointSizeF() * scale)
    label.setFont(font)
    return label


def tip_text(text: str) -> str:
    """A tooltip that says `text` letter by letter, also where a name in a file looks like HTML, in lines that fit the screen."""
    lines = [part for line in text.splitlines() for part in (lines_of(line, _TIP_LETTERS) or [""])]
    shown = "\n".join(lines if len(lines) <= _TIP_LINES else [*lines[:_TIP_LINES], "…"])
    return f"<p style='white-space:pre'>{escape(shown)}</p>" if "<" in shown else shown


def answer_tooltip(event: QEvent, widget: QWidget, text_at: Callable[[QPointF], str]) -> bool:
    """Where an event asks for a tooltip, show what stands under the pointer; whether it did."""
    if not isinstance(event, QHelpEvent) or event.type() != QEvent.Type.ToolTip:
        return False
    QToolTip.showText(event.globalPos(), tip_text(text_at(QPointF(event.pos()))), widget)
    return True
