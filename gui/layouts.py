"""Functions that lay out widgets in rows and columns."""

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QScrollArea, QTabWidget, QVBoxLayout, QWidget

from proteoscope.gui.tabs import PageTabs

STRETCH = 1
"""Item that takes the remaining space; multiply it to take a larger part of the space."""
Item = QWidget | QLayout | int | tuple
"""Widget, layout or stretch. A tuple has the stretch factor and the alignment of a widget or layout as further values."""
_Layout = TypeVar("_Layout", bound=QBoxLayout)


def in_row(
    *items: Item, on: QWidget | None = None, margins: int | tuple[int, int, int, int] | None = 0, spacing: int | None = None
) -> QHBoxLayout:
    """Lay out items from left to right.

    Parameters
    ----------
    *items : Item
        The items in their order.
    on : QWidget or None
        Widget to which the layout belongs; None for a layout inside another one.
    margins : int, (int, int, int, int) or None
        Margins in pixels: on all sides, or left, top, right and bottom; None for the margins of the style.
    spacing : int or None
        Space between items in pixels; None for the space of the style.

    Returns
    -------
    QHBoxLayout
    """
    return _filled(QHBoxLayout() if on is None else QHBoxLayout(on), items, margins, spacing)


def in_column(
    *items: Item, on: QWidget | None = None, margins: int | tuple[int, int, int, int] | None = 0, spacing: int | None = None
) -> QVBoxLayout:
    """Lay out items from top to bottom; see `in_row`."""
    return _filled(QVBoxLayout() if on is None else QVBoxLayout(on), items, margins, spacing)


def title_row(*widgets: QWidget, spacing: int = 4) -> QHBoxLayout:
    """Return a row of widgets for the top of a view; the first widget takes the remaining space."""
    return in_row((widgets[0], 1), *widgets[1:], margins=(8, 3, 6, 3), spacing=spacing)


def widget_with(layout: QLayout) -> QWidget:
    """Return a new widget with a layout."""
    page = QWidget()
    page.setLayout(layout)
    return page


def make_scroll_area(content: QWidget, *, is_vertical: bool = False) -> QScrollArea:
    """Return a scroll area without a frame, with content as wide as the area; it scrolls only vertically if `is_vertical`."""
    area = QScrollArea(widgetResizable=True)
    area.setWidget(content)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    if is_vertical:
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return area


def add_tabs(tabs: QTabWidget, *pages: tuple[QWidget, str, str]) -> None:
    """Add pages, each with its title and tooltip."""
    for page, title, tip in pages:
        at = tabs.addTab(page, title)
        if tip:
            tabs.setTabToolTip(at, tip)


def make_tabs(*pages: tuple[QWidget, str, str]) -> PageTabs:
    """Return tabs without a frame, each with its page, title and tooltip."""
    tabs = PageTabs(has_frame=False)
    add_tabs(tabs, *pages)
    return tabs


def hide_in_place(widget: QWidget) -> None:
    """Hide a widget and leave its space in the layout empty."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)
    widget.hide()


def _filled(layout: _Layout, items: tuple[Item, ...], margins: int | tuple[int, int, int, int] | None, spacing: int | None) -> _Layout:
    if margins is not None:
        layout.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    if spacing is not None:
        layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            layout.addStretch(item)
            continue
        widget, *options = item if isinstance(item, tuple) else (item,)
        add = layout.addLayout if isinstance(widget, QLayout) else layout.addWidget
        add(widget, *options)
    return layout
