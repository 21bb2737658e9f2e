"""Thick frame inside the widget that has the keyboard focus, for the high-contrast theme."""

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

_WIDTH = 2


class FocusFrame(QObject):
    """Painter of a frame inside the widget that has the keyboard focus; `show` switches the frame on or off.

    Qt's own focus marks are only one pixel wide, and tables and plots have none.
    """

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self._colour: QColor | None = None
        self._frame: _Frame | None = None
        application.focusChanged.connect(lambda _, entered: self._follow(entered))

    def show(self, colour: str | None) -> None:
        """From now on, mark the widget that has the focus by a frame in a colour (a name or ``#rrggbb``); None switches the frame off."""
        self._colour = None if colour is None else QColor(colour)
        self._follow(self._application.focusWidget())

    def _follow(self, widget: QWidget | None) -> None:
        frame, self._frame = self._frame, None
        if frame is not None and isValid(frame):
            frame.hide()
            frame.deleteLater()
        if self._colour is not None and widget is not None and not widget.isWindow():
            self._frame = _Frame(widget, self._colour)


class _Frame(QWidget):
    """Frame around the marked widget: a child that covers the widget and lets mouse events through."""

    def __init__(self, marked: QWidget, colour: QColor) -> None:
        super().__init__(marked)
        self._colour = colour
        self.setObjectName("focusFrame")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setGeometry(marked.rect())
        marked.installEventFilter(self)
        self.raise_()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Follow the size of the marked widget."""
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Draw the frame."""
        edge = _WIDTH / 2
        with QPainter(self) as painter:
            painter.setPen(QPen(self._colour, _WIDTH))
            painter.drawRect(QRectF(self.rect()).adjusted(edge, edge, -edge, -edge))
