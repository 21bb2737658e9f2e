"""Message about an error or finished work, shown in the status bar until it is closed.

The message does not interrupt the user, and its space is reserved, so that no other control moves when it appears.
"""

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent, QTextLayout, QTextOption
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from proteoscope.gui.actions import make_action
from proteoscope.gui.buttons import text_button, tool_button
from proteoscope.gui.icons import pixmap
from proteoscope.gui.labels import show_text, tip_text
from proteoscope.gui.layouts import in_row
from proteoscope.gui.theme import colours

_ICONS = {"wrong": "failed", "attention": "warning", "good": "done"}
_LINES = 2
_WIDTH_OF_WHOLE = 520
"""Width in pixels of the box that shows the whole text of a long message."""


class MessageBar(QWidget):
    """Bar with a message of up to two lines; a longer message has a button that shows all of it. The bar is hidden without a message."""

    def __init__(self) -> None:
        super().__init__()
        self._tone: Literal["wrong", "attention", "good"] = "good"
        self._clicked: Callable[[], None] | None = None
        self._is_hint = False
        self._icon = QLabel()
        self.label = _LinesLabel()
        copy = make_action(self, "&Copy the message", lambda: QGuiApplication.clipboard().setText(self.label.text()))
        self.addAction(copy)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.more_button = text_button("More…", "Show the whole message", self._show_whole)
        self.button = QPushButton()
        self.button.clicked.connect(self._click)
        self.close_button = tool_button("close", "Close this message", self.clear)
        in_row(self._icon, (self.label, 1), self.more_button, self.button, self.close_button, on=self, margins=(12, 1, 4, 1), spacing=8)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(max(self.label.sizeHint().height() + 4, self.button.sizeHint().height() + 2))
        self.hide()

    def show_message(
        self, text: str, tone: Literal["wrong", "attention", "good"], action: str = "", clicked: Callable[[], None] | None = None
    ) -> None:
        """Show a message in place of the previous one.

        Parameters
        ----------
        text : str
            The message.
        tone : str
            Colour and icon: ``wrong`` (error), ``attention`` (warning) or ``good``.
        action : str
            Text of a button, or '' for no button.
        clicked : callable, optional
            Function that is called when the button is clicked.
        """
        self._tone, self._clicked, self._is_hint = tone, clicked, False
        self.label.setText(text)
        show_text(self.button, action)
        self.redraw()
        self.show()
        self._offer_whole()

    def hint(self, text: str) -> None:
        """Show a hint about missing input until `clear_hint` is called."""
        self.show_message(text, "attention")
        self._is_hint = True

    def clear_hint(self) -> None:
        """Remove the message if it is a hint."""
        if self._is_hint:
            self.clear()

    def clear_complaint(self) -> None:
        """Remove the message if it is a warning or an error."""
        if self._tone != "good":
            self.clear()

    def clear(self) -> None:
        """Hide the message."""
        self._clicked, self._is_hint = None, False
        self.label.clear()
        self.hide()

    def redraw(self) -> None:
        """Redraw the icon in the colours of the current palette."""
        self._icon.setPixmap(pixmap(_ICONS[self._tone], 18, QColor(getattr(colours(), self._tone)), self.devicePixelRatioF()))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().resizeEvent(event)
        self._offer_whole()

    def _offer_whole(self) -> None:
        """Show the button for the whole text if the text does not fit."""
        layout = self.layout()
        assert layout is not None
        self.more_button.hide()
        layout.activate()
        self.more_button.setVisible(self.label.is_cut())

    def _show_whole(self) -> None:
        """Show the whole text in a box above the bar, until the next click or key press."""
        whole = QFrame(self, Qt.WindowType.Popup)
        whole.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        whole.setFrameShape(QFrame.Shape.StyledPanel)
        text = QLabel(self.label.text(), textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        text.setFixedWidth(min(_WIDTH_OF_WHOLE, self.window().width()))
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        QVBoxLayout(whole).addWidget(text)
        whole.adjustSize()
        whole.move(self.mapToGlobal(QPoint(0, -whole.height())))
        whole.show()

    def _click(self) -> None:
        clicked = self._clicked
        self.clear()
        if clicked is not None:
            clicked()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        tone = QColor(getattr(colours(), self._tone))
        with QPainter(self) as painter:
            painter.setPen(QPen(tone, 1))
            painter.setBrush(QColor(colours().raised))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
            painter.fillRect(QRectF(0, 0, 4, self.height()), tone)


class _LinesLabel(QLabel):
    """Label with two lines of text, elided if space is short; the tooltip shows the whole text."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        # A long path without break points must not widen the window.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Show a text."""
        super().setText(text)
        self.setToolTip(tip_text(text))

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of two lines."""
        return QSize(0, _LINES * self.fontMetrics().lineSpacing())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of two lines."""
        return self.sizeHint()

    def is_cut(self) -> bool:
        """Return True if the text is elided."""
        return " ".join(self._lines()) != " ".join(self.text().split())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the lines."""
        lines, height = self._lines(), self.fontMetrics().lineSpacing()
        top = (self.height() - len(lines) * height) / 2
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(self.foregroundRole()))
            for number, line in enumerate(lines):
                position = QRectF(0, top + number * height, self.width(), height)
                painter.drawText(position, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, line)

    def _lines(self) -> list[str]:
        """Return the lines in which the message is painted."""
        text, lines = " ".join(self.text().split()), list[str]()
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        layout = QTextLayout(text, self.font())
        layout.setTextOption(option)
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(max(self.width(), 1))
            start, length = line.textStart(), line.textLength()
            if len(lines) == _LINES - 1:
                lines.append(self.fontMetrics().elidedText(text[start:], Qt.TextElideMode.ElideRight, self.width()))
                break
            lines.append(text[start : start + length].strip())
        layout.endLayout()
        return lines
