"""Labels with a meaning: headings, and texts in the tones that the look gives them."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QLabel

__all__ = ["heading", "toned_label"]


def toned_label(text: str = "", tone: Literal["faint", "wrong", "attention", "good"] = "faint", *, wrap: bool = True) -> QLabel:
    """A label in a tone of the look's style sheet."""
    label = QLabel(text)
    label.setObjectName(tone)
    label.setWordWrap(wrap)
    return label


def heading(text: str, scale: float = 1.1) -> QLabel:
    """A label in bold letters, `scale` times the usual size."""
    label = QLabel(text)
    font = label.font()
    font.setBold(True)
    font.setPointSizeF(font.pointSizeF() * scale)
    label.setFont(font)
    return label
