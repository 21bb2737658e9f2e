"""Tests that buttons with only an icon or a symbol have a tooltip and an accessible name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from PySide6.QtWidgets import QAbstractButton, QComboBox, QDockWidget, QLineEdit, QTabBar, QWidget

from proteoscope.gui.window import MainWindow

_QTS_OWN = (QLineEdit, QTabBar, QComboBox, QDockWidget)
"""Classes that create small buttons automatically, which Qt describes."""


def icon_buttons(page: QWidget) -> Iterator[QAbstractButton]:
    """Return buttons without a word in their text; those without an icon are not in use yet."""
    for button in page.findChildren(QAbstractButton):
        if (
            not isinstance(button.parent(), _QTS_OWN)
            and not re.search(r"\w\w", button.text())
            and (button.text() or not button.icon().isNull())
        ):
            yield button


def described(button: QAbstractButton) -> bool:
    """Return True if the button, or its field, has a tooltip and an accessible name in words."""
    around: QWidget | None = button
    while around is not None and not around.toolTip():
        around = around.parentWidget()
    return around is not None and bool(re.search(r"\w\w", button.accessibleName()))


def test_icon_buttons_of_searches_have_tooltips_and_names(window: MainWindow) -> None:
    for kind, pages in window.searches.items():
        icons = [button for page in (pages.form, pages.results) for button in icon_buttons(page)]
        assert len(icons) > 3, kind
        # Buttons without text and name receive both when shown.
        silent = [
            f"{type(icon).__name__} {icon.text()!r} {icon.toolTip()!r}"
            for icon in icons
            if not described(icon) and (icon.text() or icon.toolTip())
        ]
        assert silent == [], kind


def test_icon_buttons_of_other_panes_have_tooltips_and_names(window: MainWindow) -> None:
    around = (window.start_page, window.project_pane, window.jobs, window.log, window.message_bar, window.dock_project, window.dock_jobs)
    silent = [f"{type(icon).__name__} {icon.text()!r}" for part in around for icon in icon_buttons(part) if not described(icon)]
    assert silent == []
