"""Tabs that remain within reach if their bar is narrow."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QProxyStyle, QStyle, QStyleOption, QTabWidget, QWidget

from proteoscope.gui.labels import tip_text

__all__ = ["PageTabs"]

_SPACE = 12
"""Horizontal space of a tab in addition to its title, in pixels; Fusion has twice as much."""


class PageTabs(QTabWidget):
    """Narrow tabs, whose titles are shortened if space is short; arrows for scrolling appear only if even short titles do not fit.

    The tooltip of a tab without another one is its title.

    Parameters
    ----------
    has_frame : bool
        True for a frame around the pages.
    """

    def __init__(self, *, has_frame: bool = True) -> None:
        super().__init__()
        self.setDocumentMode(not has_frame)
        self.tabBar().setStyle(_narrow_style())
        self.setElideMode(Qt.TextElideMode.ElideRight)

    def tabInserted(self, index: int) -> None:  # noqa: N802, D102 - Qt's name
        super().tabInserted(index)
        if not self.tabToolTip(index):
            self.setTabToolTip(index, tip_text(self.tabText(index).replace("&", "")))


class _NarrowStyle(QProxyStyle):
    """Fusion with narrower tabs."""

    def pixelMetric(  # noqa: N802 - Qt's name
        self, metric: QStyle.PixelMetric, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> int:
        return _SPACE if metric == QStyle.PixelMetric.PM_TabBarTabHSpace else super().pixelMetric(metric, option, widget)


@cache
def _narrow_style() -> _NarrowStyle:
    style = _NarrowStyle("Fusion")
    # Widgets do not own their style.
    style.setParent(QApplication.instance())
    return style
