"""Short tour of the window, with explanations next to several widgets; the user can leave it at any step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from proteoscope.gui.buttons import PrimaryButton
from proteoscope.gui.labels import heading, toned_label
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.surfaces import Card
from proteoscope.gui.theme import colours

_CARD_CHARACTERS, _GAP = 42, 12
_SHADE = 110
"""Opacity, from 0 to 255, of the shade over the window outside the explained widget."""


@dataclass(frozen=True)
class Step:
    """Step of the tour: title, text, and a function that returns the explained widget, or None."""

    title: str
    text: str
    about: Callable[[], QWidget | None]


class Tour(QWidget):
    """Overlay over a window that shows the steps of the tour one by one.

    Right, Down and Enter show the next step, Left and Up the previous one; Escape ends the tour. The overlay follows the size of the
    window.

    Signals
    -------
    over
        The tour was completed or left.
    """

    over = Signal()

    def __init__(self, steps: Sequence[Step], window: QWidget) -> None:
        super().__init__(window)
        self._steps = steps
        self.step = 0
        self.setAccessibleName("Tour")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.card = Card(self)
        self.title = heading("")
        self.text = toned_label()
        self.count = toned_label(wrap=False)
        self.leave_button = QPushButton("&Leave")
        self.back_button = QPushButton("&Back")
        self.next_button = PrimaryButton("&Next")
        row = in_row((self.count, 1))
        for button in (self.leave_button, self.back_button, self.next_button):
            button.setAutoDefault(True)
            row.addWidget(button)
        self._column = in_column(self.title, self.text, row, on=self.card, margins=(16, 14, 16, 14), spacing=10)
        self.leave_button.clicked.connect(self.leave)
        self.back_button.clicked.connect(lambda: self.go(self.step - 1))
        self.next_button.clicked.connect(lambda: self.go(self.step + 1))
        window.installEventFilter(self)
        self._focused_before = window.focusWidget()
        self.setGeometry(window.rect())
        self.show()
        self.raise_()
        self.go(0)

    def go(self, step: int) -> None:
        """Show the step with the given index, or end the tour after the last step."""
        if step >= len(self._steps):
            self.leave()
            return
        self.step = max(step, 0)
        shown = self._steps[self.step]
        self.title.setText(shown.title)
        self.text.setText(shown.text)
        self.card.setAccessibleName(f"{shown.title}. {shown.text}")
        self.count.setText(f"{self.step + 1} of {len(self._steps)}")
        self.back_button.setEnabled(self.step > 0)
        is_last = self.step == len(self._steps) - 1
        self.next_button.setText("&Done" if is_last else "&Next")
        self.leave_button.setVisible(not is_last)
        self._place()
        self.next_button.setFocus()

    def leave(self) -> None:
        """End the tour."""
        self.window().removeEventFilter(self)
        (self._focused_before or self.window()).setFocus()
        self.hide()
        self.deleteLater()
        self.over.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802, D102 - Qt's name
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.go(self.step + 1)
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self.go(self.step - 1)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802, D102 - Qt's name
        if event.type() == QEvent.Type.Resize and watched is self.parent():
            self.setGeometry(self.window().rect())
            self._place()
        return False

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802, D102 - Qt's name
        # Keep the focus in the card: the mouse cannot reach the widgets below the overlay either.
        buttons = [
            button for button in (self.leave_button, self.back_button, self.next_button) if button.isVisible() and button.isEnabled()
        ]
        if not buttons:
            # The overlay is being hidden, so the focus may return to the window.
            return super().focusNextPrevChild(forward)
        at = next((row for row, button in enumerate(buttons) if button.hasFocus()), -1)
        buttons[(at + (1 if forward else -1)) % len(buttons)].setFocus(Qt.FocusReason.TabFocusReason)
        return True

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            shade = QPainterPath()
            shade.addRect(QRectF(self.rect()))
            about = self._about()
            if about is not None:
                hole = QPainterPath()
                hole.addRoundedRect(QRectF(about), 6, 6)
                shade -= hole
            painter.fillPath(shade, QColor(0, 0, 0, _SHADE))
            if about is not None:
                painter.setPen(QPen(QColor(colours().accent), 2))
                painter.drawRoundedRect(QRectF(about), 6, 6)

    def _about(self) -> QRect | None:
        """Return the rectangle of the explained widget in coordinates of the window, or None if it is hidden."""
        widget = self._steps[self.step].about()
        if widget is None or not widget.isVisible():
            return None
        return QRect(widget.mapTo(self.window(), QPoint()), widget.size()).intersected(self.rect()).adjusted(-3, -3, 3, 3) & self.rect()

    def _place(self) -> None:
        """Place the card where it does not cover the explained widget: right, left, below or above it, otherwise in the middle."""
        wanted = max(self.fontMetrics().horizontalAdvance("n") * _CARD_CHARACTERS, self.card.minimumSizeHint().width())
        self.card.setFixedWidth(min(wanted, self.width() - 2 * _GAP))
        self._column.activate()
        height = self._column.heightForWidth(self.card.width())
        self.card.resize(self.card.width(), max(height, self.card.minimumSizeHint().height()))
        size, about = self.card.size(), self._about()
        at = QPoint((self.width() - size.width()) // 2, (self.height() - size.height()) // 2)
        for position in (
            ()
            if about is None
            else (
                QPoint(about.right() + _GAP, about.top()),
                QPoint(about.left() - _GAP - size.width(), about.top()),
                QPoint(about.left(), about.bottom() + _GAP),
                QPoint(about.left(), about.top() - _GAP - size.height()),
            )
        ):
            clamped = QPoint(
                min(max(position.x(), _GAP), self.width() - size.width() - _GAP),
                min(max(position.y(), _GAP), self.height() - size.height() - _GAP),
            )
            if about is not None and not QRect(clamped, size).intersects(about):
                at = clamped
                break
        self.card.move(at)
        self.update()
