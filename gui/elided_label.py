"""Single-line labels that are shortened with an ellipsis if space is short."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from proteoscope.gui.labels import set_bold, tip_text


class ElidedLabel(QLabel):
    """Line of faint text that is elided if space is short; the tooltip then shows the whole text."""

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
        """Return the height of one line; the width may shrink to nothing."""
        return QSize(0, QFontMetrics(self.font()).height() + 2)

    def minimumSizeHint(self) -> QSize:
        """Return the height of one line; the width may shrink to nothing."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, elided to the width."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(self._role))
        shown = QFontMetrics(self.font()).elidedText(self.full_text, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        painter.end()


class _ShorteningLabel(QLabel):
    """Line of text, elided if space is short; its preferred width is the width of the text, and its tooltip shows the whole text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show a text."""
        super().setText(text)
        self.setToolTip(tip_text(text.strip()))

    def minimumSizeHint(self) -> QSize:
        """Return the height of one line; the width may shrink to nothing."""
        return QSize(1, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, elided to the width."""
        space, metrics = self.contentsRect(), self.fontMetrics()
        if metrics.horizontalAdvance(self.text()) <= space.width():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        shown = metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, space.width())
        painter.drawText(space, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
        painter.end()


class TitleLabel(_ShorteningLabel):
    """Title of a page, a table or a figure in bold, `scale` times the default size."""

    def __init__(self, text: str, parent: QWidget | None = None, scale: float = 1.0) -> None:
        super().__init__(text, parent)
        set_bold(self)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * scale)
        self.setFont(font)


class ReadoutLabel(_ShorteningLabel):
    """Line of text that can be selected and copied."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(" ", parent)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setContentsMargins(8, 1, 8, 3)
        self.setAccessibleName(name)
