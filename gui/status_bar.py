"""Status bar that elides a long transient message and shows the whole message as tooltip."""
# ruff: noqa: N802 - Qt gives these names

from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QStatusBar, QStyle, QStyleOption, QWidget

from proteoscope.gui.labels import answer_tooltip

_MARGIN = 6


class StatusBar(QStatusBar):
    """Status bar with permanent widgets on the right and transient messages in the rest of its width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._permanent: list[QWidget] = []

    def addPermanentWidget(self, widget: QWidget, stretch: int | None = 0) -> None:
        """Add a widget to the right of transient messages."""
        super().addPermanentWidget(widget, stretch or 0)
        self._permanent.append(widget)

    @property
    def message_place(self) -> QRect:
        """Rectangle of the transient message, left of the visible permanent widgets."""
        right = min((widget.x() for widget in self._permanent if widget.isVisible()), default=self.width())
        return QRect(_MARGIN, 0, max(right - 2 * _MARGIN, 0), self.height())

    def shown_message(self) -> str:
        """Return the transient message, elided to its space."""
        return self.fontMetrics().elidedText(self.currentMessage(), Qt.TextElideMode.ElideRight, self.message_place.width())

    def event(self, event: QEvent) -> bool:
        """Show the whole message as tooltip if the message is elided."""
        is_elided = self.shown_message() != self.currentMessage()
        if isinstance(event, QHelpEvent) and is_elided and self.message_place.contains(event.pos()):
            return answer_tooltip(event, self, lambda _: self.currentMessage())
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bar with the elided message, since Qt cuts a message that is too long."""
        option = QStyleOption()
        option.initFrom(self)
        with QPainter(self) as painter:
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelStatusBar, option, painter, self)
            painter.setPen(self.palette().windowText().color())
            painter.drawText(self.message_place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self.shown_message())
