"""A line of text that shortens itself where there is no room."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from proteoscope.gui.labels import tip_text

__all__ = ["ElidedLabel", "ReadoutLabel", "TitleLabel"]


class ElidedLabel(QLabel):
    """One line of faint text, cut with an ellipsis; the tooltip has it all."""

    def __init__(self, parent: QWidget | None = None, *, role: QPalette.ColorRole = QPalette.ColorRole.PlaceholderText) -> None:
        super().__init__(parent)
        self.full_text = ""
        self._role = role
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_text(self, text: str) -> None:
        """Show a text."""
        self.full_text = text
        self.setToolTip(tip_text(text))
        self.setAccessibleName(text)
        self.update()

    def sizeHint(self) -> QSize:
        """One line, as wide as there is room."""
        return QSize(0, QFontMetrics(self.font()).height() + 2)

    def minimumSizeHint(self) -> QSize:
        """One line of any width."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The text as far as it fits."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(self._role))
        shown = QFontMetrics(self.font()).elidedText(self.full_text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        painter.end()


class _ShorteningLabel(QLabel):
    """One line that is as wide as its text. Where it has no room it ends in an ellipsis, and the tooltip has it all."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(text)
        self.setToolTip(tip_text(text.strip()))

    def minimumSizeHint(self) -> QSize:
        """One line of any width."""
        return QSize(1, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """The text as far as it fits."""
        room, metrics = self.contentsRect(), self.fontMetrics()
        if metrics.horizontalAdvance(self.text()) <= room.width():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        painter.end()


class TitleLabel(_ShorteningLabel):
    """What stands over a table or a picture, in bold letters."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        font = self.font()
        font.setBold(True)
        self.setFont(font)


class ReadoutLabel(_ShorteningLabel):
    """One line that can be marked and copied."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(" ", parent)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setContentsMargins(8, 1, 8, 3)
        self.setAccessibleName(name)
