"""Tabs that remain within reach if their bar is narrow."""
# ruff: noqa: N802, D102 - Qt gives these names

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QProxyStyle, QStyle, QStyleOption, QTabBar, QTabWidget, QWidget

from proteoscope.gui.labels import tip_text

_SPACE = 8
"""Horizontal space of a tab in addition to its title, in pixels; Fusion uses three times as much."""
_SHORT_TITLES = {
    "Chromatogram": "Chrom.",
    "Differences": "Shifts",
    "Explained spectra": "Explained",
    "Homologues": "Homol.",
    "LC-MS map": "Map",
    "Library matches": "Matches",
    "Mass errors": "Errors",
    "Missing values": "Missing",
    "Uncovered": "Gaps",
    "With and without shift": "Shift",
}
"""Titles in a bar that is too narrow for the usual titles."""


class PageTabs(QTabWidget):
    """Tabs that shrink if space is short: first they have short titles, then all but the selected tab are elided, then arrows scroll them.

    A tab without a tooltip of its own shows its title as tooltip. While a tab has its short title, its tooltip contains the usual title.

    Parameters
    ----------
    has_frame : bool
        True for a frame around the pages.
    """

    def __init__(self, *, has_frame: bool = True) -> None:
        super().__init__()
        self._full_width: int | None = None
        """Width in pixels that the tabs have with their usual titles; used while they have short titles."""
        self.setTabBar(_Bar())
        self.setDocumentMode(not has_frame)
        self.tabBar().setStyle(_narrow_style())
        self.setElideMode(Qt.TextElideMode.ElideRight)
        # This arranges the tabs again: the selected tab has a larger minimum width.
        self.currentChanged.connect(lambda: self.setElideMode(Qt.TextElideMode.ElideRight))

    def tabInserted(self, index: int) -> None:
        super().tabInserted(index)
        if not self.tabToolTip(index):
            self.setTabToolTip(index, tip_text(self.tabText(index).replace("&", "")))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the short titles if the usual titles do not fit."""
        corners = [self.cornerWidget(corner) for corner in (Qt.Corner.TopLeftCorner, Qt.Corner.TopRightCorner)]
        space = self.width() - sum(corner.sizeHint().width() for corner in corners if corner is not None)
        width = self.tabBar().sizeHint().width()
        if self._full_width is None and width > space:
            self._full_width = width
            self._replace_titles(_SHORT_TITLES)
        elif self._full_width is not None and self._full_width <= space:
            self._full_width = None
            self._replace_titles({short: title for title, short in _SHORT_TITLES.items()})
        super().resizeEvent(event)

    def _replace_titles(self, replacements: Mapping[str, str]) -> None:
        for index in range(self.count()):
            before, tip = self.tabText(index), self.tabToolTip(index)
            if before not in replacements:
                continue
            self.setTabText(index, replacements[before])
            usual = before if before in _SHORT_TITLES else replacements[before]
            self.tabBar().setAccessibleTabName(index, usual)
            if usual not in tip:
                self.setTabToolTip(index, f"{usual}: {tip[:1].lower()}{tip[1:]}")


class _Bar(QTabBar):
    """Bar in which the selected tab has at least the width of its title."""

    def minimumTabSizeHint(self, index: int) -> QSize:
        size = super().minimumTabSizeHint(index)
        return size.expandedTo(QSize(self.tabSizeHint(index).width(), 0)) if index == self.currentIndex() else size


class _NarrowStyle(QProxyStyle):
    """Fusion with narrower tabs."""

    def pixelMetric(self, metric: QStyle.PixelMetric, option: QStyleOption | None = None, widget: QWidget | None = None) -> int:
        return _SPACE if metric == QStyle.PixelMetric.PM_TabBarTabHSpace else super().pixelMetric(metric, option, widget)


@cache
def _narrow_style() -> _NarrowStyle:
    style = _NarrowStyle("Fusion")
    # Widgets do not own their style.
    style.setParent(QApplication.instance())
    return style
