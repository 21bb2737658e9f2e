"""Layouts that scroll or wrap when space is short, for example in a small window with a large font."""
# ruff: noqa: N802, D102 - Qt gives these names

from typing import NamedTuple

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QDialog, QFrame, QHBoxLayout, QLabel, QLayout, QScrollArea, QWidget

from proteoscope.gui.actions import delayed

_FRAME = QSize(8, 36)
"""Space reserved for the title bar and borders of a window, in pixels."""
_USUAL_HEIGHT = 15
"""Line height of the default font, in pixels."""


def scaled_pixels(widget: QWidget, pixels: int) -> int:
    """Return a length in pixels, given for the default font, enlarged for the font of a widget."""
    return max(pixels, round(pixels * widget.fontMetrics().height() / _USUAL_HEIGHT))


class PaneBar(NamedTuple):
    """Bar of a content widget that its pane also uses; it is the attribute `pane_bar` of the content widget.

    `start` is the layout for the arrow, `end` is the layout for the other buttons, and `title` is the label with the title, or None.
    """

    start: QHBoxLayout
    end: QHBoxLayout
    title: QLabel | None


class PageScroll(QScrollArea):
    """Scroll area whose page has the size of the area, but at least the minimum size of the page.

    With `QScrollArea.widgetResizable`, a page with wrapped texts would get its preferred height instead of its minimum height and would
    scroll unnecessarily.
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
        """Return a small size, since the area can scroll at any size."""
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
        """Adapt the size of the page when its layout changes."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._page:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        layout = self._page.layout()
        if layout is None:
            return
        bar = self.verticalScrollBar().sizeHint().width()
        space, least = self.maximumViewportSize(), layout.totalMinimumSize().width()

        def height(width: int) -> int:
            return layout.totalMinimumHeightForWidth(width) if layout.hasHeightForWidth() else layout.totalMinimumSize().height()

        if least <= space.width() and height(space.width()) <= space.height():
            fitting = space
        else:
            high = space.height() - (bar if least > space.width() else 0)
            is_long = height(max(space.width(), least)) > high
            width = max(space.width() - (bar if is_long else 0), least)
            fitting = QSize(width, max(height(width), space.height() - (bar if width > space.width() - (bar if is_long else 0) else 0)))
        self._page.resize(fitting)


class FoldingBar(QWidget):
    """Bar with two groups of widgets; the second group moves below the first if they do not fit into one line.

    Parameters
    ----------
    margins : tuple of int
        Left, top, right and bottom margin, in pixels.
    spacing : int
        Spacing between widgets, in pixels.
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
        self._later = delayed(self, self.updateGeometry)

    @property
    def is_folded(self) -> bool:
        """True if the second group is below the first."""
        return self._lines.direction() == QBoxLayout.Direction.TopToBottom

    @property
    def width_in_line(self) -> int:
        """Minimum width of both groups in one line, in pixels."""
        margins = self._lines.contentsMargins()
        widths = self.first.minimumSize().width(), self._lines.spacing(), self.second.minimumSize().width()
        return sum(widths) + margins.left() + margins.right()

    def want(self, width: int) -> None:
        """Set the minimum width of the first group in one line, in pixels; if this width is not available, the second group moves below."""
        self._wanted = width

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size of the folded bar, which is as wide as the wider group."""
        margins = self._lines.contentsMargins()
        width = max(item.minimumSize().width() for item in (self.first, self.second))
        return QSize(width + margins.left() + margins.right(), self._lines.totalMinimumSize().height())

    def event(self, event: QEvent) -> bool:
        """Fold also when a widget appears, disappears or gets another text."""
        is_done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self._fold()
        return is_done

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        is_wide = self.width() >= self.width_in_line + max(0, self._wanted - self.first.minimumSize().width())
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        if direction != self._lines.direction():
            self._lines.setDirection(direction)
            # The parent layout is being applied and would ignore a change of height now.
            self._later.start()


def fit_dialog(dialog: QDialog, area: PageScroll) -> None:
    """Enlarge a dialog to fit its page, up to the size of the screen."""
    page, dialog_layout = area.page_layout, dialog.layout()
    if page is None or dialog_layout is None:
        return
    space, margins = dialog.screen().availableGeometry().size() - _FRAME, dialog_layout.contentsMargins()
    extra_width, extra_height = (
        margins.left() + margins.right(),
        dialog_layout.totalMinimumSize().height() - area.minimumSizeHint().height(),
    )
    width = min(max(dialog.width(), page.totalMinimumSize().width() + extra_width), space.width())
    height = page.totalMinimumHeightForWidth(width - extra_width) if page.hasHeightForWidth() else page.totalMinimumSize().height()
    dialog.resize(width, min(max(dialog.height(), height + extra_height), space.height()))
