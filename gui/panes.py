"""Panes: areas of a page that can be collapsed, maximised, and detached into a separate window."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QSplitter,
    QStackedLayout,
    QTabWidget,
    QWidget,
)

from proteoscope.gui.actions import delayed, make_action
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.elided_label import TitleLabel
from proteoscope.gui.icons import pixmap, set_icon
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.scrolling_layout import PageScroll, PaneBar

_MAXIMUM = 16_777_215
"""Qt's maximum size of a widget."""
_WINDOW = QSize(900, 640)
"""Initial size in pixels of the window of a detached pane."""
_ICON = 16


class Pane(QWidget):
    """Area of a page with a title and a content.

    A click on the title or on its arrow collapses the pane. A double-click on the title, or F11, maximises the pane within its view; a
    second double-click, F11 or Escape restores it. Panes with pictures also have buttons to maximise and to detach. A detached pane has
    a separate window and returns to its view when this window is closed.

    The buttons are in the bar of the content (see `PaneBar`), next to its tabs, or in a new bar above the content.

    Parameters
    ----------
    title : str
        Name of the pane, unique in its view.
    content : QWidget
        Widget that the pane contains.
    is_picture : bool
        True to add the buttons that maximise and detach a picture.
    tabs : QTabWidget, optional
        Tabs at the top of the content, if `content` is not itself a tab widget.
    """

    def __init__(self, title: str, content: QWidget, *, is_picture: bool = False, tabs: QTabWidget | None = None) -> None:
        super().__init__()
        self.title, self.content, self.is_picture = title, content, is_picture
        self._extent = 0
        """Size of the pane along its splitter before it was collapsed, in pixels."""
        self._is_collapsed = False
        self._window: _PaneWindow | None = None
        self._holder: PageScroll | None = None
        self._frame = _Frame(self)
        self._strip = _Strip(self)
        self._strip.clicked.connect(self._open_strip)
        self._click = delayed(self, lambda: self.set_collapsed(True), QApplication.doubleClickInterval())
        self.fold_button = tool_button("unfolded", f"Collapse {title}", lambda: self.set_collapsed(True))
        self.maximise_button = tool_button("maximise", f"Maximise {title} (F11, or double-click on the title)", self.toggle_maximised)
        self.detach_button = tool_button("detach", f"Show {title} in a separate window", self.detach)
        buttons = (self.maximise_button, self.detach_button)
        pictures = buttons if is_picture else ()
        for button in buttons:
            button.setParent(self._frame)
            button.setVisible(is_picture)
        in_frame = in_column(on=self._frame, spacing=0)
        if tabs is None and isinstance(content, QTabWidget):
            tabs = content
        if tabs is not None:
            tabs.setCornerWidget(_bar(self.fold_button), Qt.Corner.TopLeftCorner)
            if pictures:
                tabs.setCornerWidget(_bar(*pictures), Qt.Corner.TopRightCorner)
            tabs.tabBarDoubleClicked.connect(lambda _: self.toggle_maximised())
        elif isinstance(bar := getattr(content, "pane_bar", None), PaneBar):
            bar.start.insertWidget(0, self.fold_button)
            for button in pictures:
                bar.end.addWidget(button)
            if bar.title is not None:
                self._follow(bar.title)
        else:
            label = TitleLabel(title)
            in_frame.addWidget(_bar(self.fold_button, label, *pictures, stretched=label))
            self._follow(label)
        in_frame.addWidget(content, 1)
        self._place = in_column(self._strip, (self._frame, 1), on=self, spacing=0)
        self._strip.hide()

    @property
    def is_collapsed(self) -> bool:
        """True if only the title is shown."""
        return self._is_collapsed

    @property
    def is_maximised(self) -> bool:
        """True if the content fills its view."""
        return self._holder is not None

    @property
    def is_detached(self) -> bool:
        """True if the content is in a separate window."""
        return self._window is not None

    @property
    def view(self) -> PaneView | None:
        """The view that contains the pane."""
        widget = self.parentWidget()
        while widget is not None and not isinstance(widget, PaneView):
            widget = widget.parentWidget()
        return widget

    def set_collapsed(self, is_collapsed: bool) -> None:
        """Show only the title, or the whole pane."""
        if is_collapsed == self._is_collapsed or self.is_detached:
            return
        self.restore()
        self._is_collapsed = is_collapsed
        self._show_strip(is_collapsed, self.title)
        if self.view is not None:
            self.view.stateChanged.emit()

    def toggle_maximised(self) -> None:
        """Maximise the content within its view, or restore it."""
        self._click.stop()
        if self.is_maximised:
            self.restore()
        elif self.view is not None and not self.is_detached:
            self.view.restore_panes()
            self.set_collapsed(False)
            focused = self._focused
            self._holder = self.view.show_maximised(self._frame)
            self._show_state()
            # Escape only works while the content has the keyboard focus.
            (focused or self._frame).setFocus()

    def restore(self) -> None:
        """Return maximised content to its pane."""
        if self._holder is not None and self.view is not None:
            holder, self._holder = self._holder, None
            focused = self._focused
            holder.takeWidget()
            # Otherwise the holder would go on resizing the content until Qt deletes the holder.
            self._frame.removeEventFilter(holder)
            self._place.addWidget(self._frame, 1)
            self._frame.show()
            self.view.hide_maximised(holder)
            self._show_state()
            if focused is not None:
                focused.setFocus()

    def detach(self) -> None:
        """Move the content into a separate window, on another screen if there is one."""
        if self.is_detached:
            self.attach()
            return
        self.restore()
        self.set_collapsed(False)
        self._window = _PaneWindow(self, self._frame)
        self._show_strip(True, f"{self.title} (in a separate window)")
        self._show_state()
        self._window.show()
        self._window.activateWindow()

    def attach(self) -> None:
        """Return detached content to its pane and close its window."""
        if self._window is not None:
            window, self._window = self._window, None
            self._place.addWidget(self._frame, 1)
            self._show_strip(False, "")
            self._show_state()
            window.hide()
            window.deleteLater()

    def show_window(self, is_shown: bool) -> None:
        """Show or hide the window of detached content, without giving it the keyboard focus."""
        if self._window is not None:
            self._window.setVisible(is_shown)

    def fit_strip(self) -> None:
        """Adapt the title of a collapsed pane after its splitter has changed between horizontal and vertical."""
        if not self._strip.isHidden():
            self._strip.is_upright = self._is_across
            self._limit(True)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Collapse the pane after a click on its title, and maximise it after a double-click."""
        if isinstance(event, QMouseEvent) and event.button() == Qt.MouseButton.LeftButton:
            if event.type() == QEvent.Type.MouseButtonPress:
                # Wait: a second click within Qt's interval makes it a double-click.
                self._click.start()
                return True
            if event.type() == QEvent.Type.MouseButtonDblClick:
                self.toggle_maximised()
                return True
        return super().eventFilter(watched, event)

    def _follow(self, label: QLabel) -> None:
        label.setCursor(Qt.CursorShape.PointingHandCursor)
        label.setToolTip("Click: collapse. Double-click or F11: maximise.")
        label.installEventFilter(self)

    def _open_strip(self) -> None:
        self.attach()
        self.set_collapsed(False)

    def _show_state(self) -> None:
        is_moved = self.is_maximised or self.is_detached
        self.fold_button.setVisible(not is_moved)
        self.maximise_button.setVisible(self.is_picture and not self.is_detached)
        set_icon(self.maximise_button, "restore" if self.is_maximised else "maximise")
        set_icon(self.detach_button, "restore" if self.is_detached else "detach")
        tip = f"Dock {self.title} in the window again" if self.is_detached else f"Show {self.title} in a separate window"
        self.detach_button.setToolTip(tip)
        self.detach_button.setAccessibleName(tip)

    @property
    def _focused(self) -> QWidget | None:
        """The widget within the content that has the keyboard focus, or None. Moving the content takes the focus away."""
        focused = QApplication.focusWidget()
        return focused if focused is not None and self._frame.isAncestorOf(focused) else None

    @property
    def _splitter(self) -> QSplitter | None:
        parent = self.parentWidget()
        return parent if isinstance(parent, QSplitter) else None

    @property
    def _is_across(self) -> bool:
        """True if the panes of the splitter are next to each other, so that the title of a collapsed pane is vertical."""
        return self._splitter is not None and self._splitter.orientation() == Qt.Orientation.Horizontal

    def _show_strip(self, is_shown: bool, text: str) -> None:
        """Replace the content by a narrow bar with a text, or show the content again."""
        splitter = self._splitter
        if is_shown and splitter is not None:
            self._extent = splitter.sizes()[splitter.indexOf(self)]
        self._strip.is_upright = self._is_across
        self._strip.show_text(text)
        self._strip.setVisible(is_shown)
        if not self.is_detached:
            self._frame.setVisible(not is_shown)
        self._limit(is_shown)
        if not is_shown and splitter is not None:
            sizes, at = splitter.sizes(), splitter.indexOf(self)
            space, others = sum(sizes), sum(sizes) - sizes[at]
            extent = max(self._extent, space // (2 * len(sizes)))
            splitter.setSizes(
                [extent if position == at else size * (space - extent) // max(others, 1) for position, size in enumerate(sizes)]
            )

    def _limit(self, is_strip: bool) -> None:
        strip = self._strip.sizeHint()
        is_across = self._is_across
        # Outside a splitter, the size is not limited, and the strip is at the top of the free space.
        is_limited = is_strip and self._splitter is not None
        self.setMaximumSize(
            strip.width() if is_limited and is_across else _MAXIMUM, strip.height() if is_limited and not is_across else _MAXIMUM
        )


class _Frame(QWidget):
    """Contents of a pane that can be moved: its bar and its content widget."""

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.pane = pane
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)

    def event(self, event: QEvent) -> bool:
        """Handle Escape before any shortcut of the content while the pane is maximised."""
        if event.type() == QEvent.Type.ShortcutOverride and self.pane.is_maximised:
            assert isinstance(event, QKeyEvent)
            if event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Restore a maximised pane when Escape is pressed."""
        if event.key() == Qt.Key.Key_Escape and self.pane.is_maximised:
            self.pane.restore()
        else:
            super().keyPressEvent(event)


class _Strip(QAbstractButton):
    """Button that opens a collapsed pane and shows its title; the title is vertical if panes are next to each other."""

    def __init__(self, pane: Pane) -> None:
        super().__init__(pane)
        self.is_upright = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def show_text(self, text: str) -> None:
        """Show a title."""
        self.setText(text)
        self.setAccessibleName(f"Open {text}")
        self.setToolTip(f"Open {text}")
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return the size of the title, horizontal or vertical."""
        metrics = self.fontMetrics()
        size = QSize(metrics.horizontalAdvance(self.text()) + _ICON + 16, max(metrics.height(), _ICON) + 8)
        return size.transposed() if self.is_upright else size

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size, at which the title may be cut."""
        size = self.sizeHint()
        return QSize(size.width(), _ICON) if self.is_upright else QSize(_ICON, size.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint arrow and title."""
        palette, metrics = self.palette(), self.fontMetrics()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), palette.color(QPalette.ColorRole.Button))
            painter.setPen(palette.color(QPalette.ColorRole.Highlight if self.hasFocus() or self.underMouse() else QPalette.ColorRole.Mid))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
            length, across = (self.height(), self.width()) if self.is_upright else (self.width(), self.height())
            ink = palette.color(QPalette.ColorRole.ButtonText)
            arrow = pixmap("folded", _ICON, ink, self.devicePixelRatioF())
            if self.is_upright:
                # Turn the text by 90 degrees, so that it reads from top to bottom.
                painter.translate(self.width(), 0)
                painter.rotate(90)
            painter.drawPixmap(QPoint(4, (across - _ICON) // 2), arrow)
            painter.setPen(ink)
            box = QRect(_ICON + 8, 0, max(0, length - _ICON - 12), across)
            painter.drawText(
                box,
                Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
                metrics.elidedText(self.text(), Qt.TextElideMode.ElideRight, box.width()),
            )


class _PaneWindow(QWidget):
    """Window of a detached pane; closing it returns the content to its view."""

    def __init__(self, pane: Pane, frame: QWidget) -> None:
        super().__init__(pane, Qt.WindowType.Window)
        self._pane = pane
        view = pane.view
        self.setWindowTitle(" – ".join(part for part in (pane.title, "" if view is None else view.accessibleName(), "Proteoscope") if part))
        in_column(frame, on=self)
        frame.show()
        here = pane.screen()
        others = [screen for screen in QGuiApplication.screens() if screen is not here]
        space = (others[0] if others else here).availableGeometry()
        self.resize(_WINDOW.boundedTo(space.size()))
        self.move(space.center() - self.rect().center())
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Return the content to its view."""
        self._pane.attach()
        event.accept()


class PaneView(QWidget):
    """Base class of views that show either panes in splitters, or only a text.

    Signals
    -------
    stateChanged
        The sizes of panes, or the set of collapsed panes, have changed and should be stored.
    """

    stateChanged = Signal()

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._splitters: dict[str, QSplitter] = {}
        self._text = QLabel(text, textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        # A long path without break points must not widen the window.
        self._text.setMinimumWidth(1)
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._text.setContentsMargins(32, 32, 32, 32)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        action = make_action(self, "Maximise or restore the pane with the focus", self._maximise_focused, "F11")
        self.addAction(action)
        self._shown: QWidget = self._text
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._text)

    @property
    def text(self) -> str:
        """Text shown instead of the panes, or ''."""
        return self._text.text() if self._stack.currentWidget() is self._text else ""

    @property
    def panes(self) -> list[Pane]:
        """All panes of the view."""
        return self.findChildren(Pane)

    def restore_panes(self) -> None:
        """Return all maximised and detached content to its pane."""
        for pane in self.panes:
            pane.restore()
            pane.attach()

    def show_maximised(self, frame: QWidget) -> PageScroll:
        """Fill the view with the frame of a pane, and return the scroll area that now holds the frame."""
        # In small windows or with large fonts, the content may need scrolling.
        holder = PageScroll(frame)
        self._stack.addWidget(holder)
        self._stack.setCurrentWidget(holder)
        return holder

    def hide_maximised(self, holder: PageScroll) -> None:
        """Show all panes again."""
        if self._stack.currentWidget() is holder:
            self._stack.setCurrentWidget(self._shown)
        self._stack.removeWidget(holder)
        holder.hide()
        holder.deleteLater()

    def _maximise_focused(self) -> None:
        """Maximise or restore the innermost pane that has the keyboard focus."""
        widget = QApplication.focusWidget()
        while widget is not None and not isinstance(widget, _Frame):
            widget = widget.parentWidget()
        if widget is not None:
            widget.pane.toggle_maximised()

    def _pane_of(self, content: QWidget) -> Pane:
        """Return the pane that has the given content."""
        return next(pane for pane in self.panes if pane.content is content)

    def _add_panes(self, page: QWidget, splitters: Mapping[str, QSplitter]) -> None:
        """Add the page with the panes. `splitters` are the splitters whose sizes are stored, by name."""
        self._splitters = dict(splitters)
        for splitter in self._splitters.values():
            splitter.setChildrenCollapsible(False)
            splitter.splitterMoved.connect(lambda *_: self.stateChanged.emit())
        self._shown = page
        self._stack.addWidget(page)

    def _show_text(self, text: str) -> None:
        # Windows of detached panes stay open because they will show the next run.
        for pane in self.panes:
            pane.restore()
        self._text.setText(text)
        self._stack.setCurrentWidget(self._text)

    def _show_panes(self) -> None:
        self._stack.setCurrentWidget(self._shown)
        for pane in self.panes:
            pane.show_window(True)

    def hide_windows(self) -> None:
        """Hide the windows of detached panes until the view shows its panes again."""
        for pane in self.panes:
            pane.show_window(False)

    def _panes_state(self) -> dict[str, Any]:
        """Return the splitter sizes and the titles of collapsed panes as values for JSON."""
        return {
            "sizes": {name: splitter.sizes() for name, splitter in self._splitters.items()},
            "collapsed": [pane.title for pane in self.panes if pane.is_collapsed],
        }

    def _restore_panes_state(self, state: Mapping[str, Any]) -> None:
        """Restore splitter sizes and collapsed panes from `_panes_state`; invalid values are ignored."""
        sizes, collapsed = state.get("sizes"), state.get("collapsed")
        for name, splitter in self._splitters.items():
            stored = sizes.get(name) if isinstance(sizes, dict) else None
            if (
                isinstance(stored, list)
                and len(stored) == splitter.count()
                and all(isinstance(size, int) for size in stored)
                and any(stored)
            ):
                splitter.setSizes(stored)
        for pane in self.panes:
            pane.set_collapsed(isinstance(collapsed, list) and pane.title in collapsed)


class TitledPage(QWidget):
    """Page with a bar (title and widgets) above a content.

    Parameters
    ----------
    title : str
        Title in the bar.
    content : QWidget
        Content, which takes the free space.
    *widgets : QWidget
        Widgets in the bar.
    stretched : QWidget
        Widget in the bar that takes the free width of the bar.
    """

    def __init__(self, title: str, content: QWidget, *widgets: QWidget, stretched: QWidget) -> None:
        super().__init__()
        heading, row = TitleLabel(title), QHBoxLayout()
        row.setContentsMargins(2, 1, 2, 1)
        row.setSpacing(6)
        row.addWidget(heading)
        for widget in widgets:
            row.addWidget(widget, int(widget is stretched))
        in_column(row, (content, 1), on=self, spacing=0)
        self.pane_bar = PaneBar(row, row, heading)


def split(orientation: Qt.Orientation, parts: Mapping[QWidget, int]) -> QSplitter:
    """Return a splitter with the widgets in `parts`, which maps widgets to relative sizes."""
    splitter = QSplitter(orientation)
    for at, (widget, part) in enumerate(parts.items()):
        splitter.addWidget(widget)
        splitter.setStretchFactor(at, part)
    splitter.setSizes([100 * part for part in parts.values()])
    return splitter


def add_half(splitter: QSplitter, pane: Pane) -> None:
    """Add a pane to a splitter and give it half of the space."""
    splitter.addWidget(pane)
    # A splitter gives no space to a hidden widget.
    pane.show()
    splitter.setStretchFactor(splitter.count() - 1, 1)
    splitter.setCollapsible(splitter.count() - 1, False)
    halve(splitter)


def halve(splitter: QSplitter) -> None:
    """Give the last widget of a splitter half of the space, and divide the other half equally among all previous widgets."""
    n_others = splitter.count() - 1
    space = splitter.width() if splitter.orientation() == Qt.Orientation.Horizontal else splitter.height()
    # Pixel sizes: Qt uses stretch factors only to distribute extra space.
    half = max(space // 2, 100 * n_others)
    splitter.setSizes([half // n_others] * n_others + [half])


def _bar(*widgets: QWidget, stretched: QWidget | None = None) -> QWidget:
    """Return a bar of widgets."""
    bar = QWidget()
    row = in_row(on=bar, margins=(2, 0, 2, 0), spacing=2)
    for widget in widgets:
        row.addWidget(widget, int(widget is stretched))
    return bar
