"""Pages and bars that have less room than they need, as in a small window with large letters."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QDialog, QFrame, QHBoxLayout, QLayout, QScrollArea, QVBoxLayout, QWidget

__all__ = ["FoldingBar", "PageScroll", "bar_of", "fill_page", "fit_dialog", "pixels_with_letters"]

_FRAME = QSize(8, 36)
"""What a title and borders take of a screen."""
_USUAL_HEIGHT = 15
"""Pixels of a line in letters of the usual size."""


def pixels_with_letters(widget: QWidget, pixels: int) -> int:
    """How many pixels a figure needs for what it needs `pixels` for with letters of the usual size; `widget`: whose letters it has."""
    return max(pixels, round(pixels * widget.fontMetrics().height() / _USUAL_HEIGHT))


def fill_page(page: QWidget, *items: QWidget | QLayout, filling: QWidget) -> None:
    """Lay items out below each other, without margins; `filling`: the one that takes the free space."""
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    for item in items:
        if isinstance(item, QLayout):
            layout.addLayout(item)
        else:
            layout.addWidget(item, int(item is filling))


def bar_of(*widgets: QWidget, spacing: int = 4) -> QHBoxLayout:
    """A bar above a figure or a table, whose first widget takes the free space."""
    bar = QHBoxLayout()
    bar.setContentsMargins(8, 3, 6, 3)
    bar.setSpacing(spacing)
    for widget in widgets:
        bar.addWidget(widget, int(widget is widgets[0]))
    return bar


class PageScroll(QScrollArea):
    """Shows a page as large as there is room, and scrolls where its layout needs more at least.

    Qt's own resizable area gives a page whose texts wrap the height that it would like, not the one that it needs, so that it scrolls
    with room enough.
    """

    def __init__(self, page: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._page = page
        self.setWidget(page)

    @property
    def page_layout(self) -> QLayout | None:
        """The layout of the page."""
        return self._page.layout()

    def minimumSizeHint(self) -> QSize:
        """Any room does."""
        return QSize(1, 1)

    def sizeHint(self) -> QSize:
        return self._page.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt has it look at its page."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._page:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        layout = self._page.layout()
        if layout is None:
            return
        bar = self.verticalScrollBar().sizeHint().width()
        room, least = self.maximumViewportSize(), layout.totalMinimumSize().width()

        def height(width: int) -> int:
            return layout.totalMinimumHeightForWidth(width) if layout.hasHeightForWidth() else layout.totalMinimumSize().height()

        if least <= room.width() and height(room.width()) <= room.height():
            fitting = room
        else:
            high = room.height() - (bar if least > room.width() else 0)
            is_long = height(max(room.width(), least)) > high
            width = max(room.width() - (bar if is_long else 0), least)
            fitting = QSize(width, max(height(width), room.height() - (bar if width > room.width() - (bar if is_long else 0) else 0)))
        self._page.resize(fitting)


class FoldingBar(QWidget):
    """Two groups of widgets in a line; where that has no room for them, the second group stands below the first.

    Parameters
    ----------
    margins : left, above, right and below, in pixels. spacing : between widgets, in pixels.
    """

    def __init__(self, margins: tuple[int, int, int, int], spacing: int) -> None:
        super().__init__()
        self.first, self.second = QHBoxLayout(), QHBoxLayout()
        self._wanted = 0
        self._lines = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._lines.setContentsMargins(*margins)
        for layout in (self._lines, self.first, self.second):
            layout.setSpacing(spacing)
        self._lines.addLayout(self.first, 1)
        self._lines.addLayout(self.second)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self.updateGeometry)

    @property
    def is_folded(self) -> bool:
        """Whether the second group stands below the first."""
        return self._lines.direction() == QBoxLayout.Direction.TopToBottom

    @property
    def width_in_line(self) -> int:
        """Pixels that both groups need beside each other at least."""
        margins = self._lines.contentsMargins()
        widths = self.first.minimumSize().width(), self._lines.spacing(), self.second.minimumSize().width()
        return sum(widths) + margins.left() + margins.right()

    def want(self, width: int) -> None:
        """Give the first group so many pixels at least before the second one may stand beside it."""
        self._wanted = width

    def minimumSizeHint(self) -> QSize:
        """Room for the wider group: the other one may stand below it."""
        margins = self._lines.contentsMargins()
        width = max(one.minimumSize().width() for one in (self.first, self.second))
        return QSize(width + margins.left() + margins.right(), self._lines.totalMinimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_wide = event.size().width() >= self.width_in_line + max(0, self._wanted - self.first.minimumSize().width())
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        if direction != self._lines.direction():
            self._lines.setDirection(direction)
            # Who lays this out is at it now, and looks at another height only when it is told later.
            self._later.start()


def fit_dialog(dialog: QDialog, area: PageScroll) -> None:
    """Make a dialog large enough for the page that it has in an area, but no larger than the screen."""
    page, own = area.page_layout, dialog.layout()
    if page is None or own is None:
        return
    room, margins = dialog.screen().availableGeometry().size() - _FRAME, own.contentsMargins()
    beside, below = margins.left() + margins.right(), own.totalMinimumSize().height() - area.minimumSizeHint().height()
    width = min(max(dialog.width(), page.totalMinimumSize().width() + beside), room.width())
    height = page.totalMinimumHeightForWidth(width - beside) if page.hasHeightForWidth() else page.totalMinimumSize().height()
    dialog.resize(width, min(max(dialog.height(), height + below), room.height()))
