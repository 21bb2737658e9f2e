"""Keyboard shortcuts of the window, collected from its actions and grouped by the view in which they work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QWidget

from proteoscope.gui.actions import SHORTCUT_CONTEXT
from proteoscope.gui.plots.zoomable import Zoomable

_WINDOW = "Everywhere"
_PLOTS = "Plots, while they have the keyboard focus"
_PLOT_KEYS = (("+", "Show less"), ("-", "Show more"), ("0", "Show everything"), ("Left", "Move"), ("Right", "Move"))
"""Keys that plots (`Zoomable`) handle without actions."""


@dataclass(frozen=True)
class Shortcut:
    """Shortcut: its keys, a description of the action, and the view in which it works."""

    keys: str
    description: str
    where: str


def shortcuts_of(window: QWidget) -> list[Shortcut]:
    """Return all shortcuts of a window, grouped by the view in which they work; shortcuts of the whole window come first.

    A shortcut works while its view is shown or, if it belongs to a widget of the view, while that widget has the keyboard focus. A
    `QShortcut` is listed only if it has a description (`QShortcut.whatsThis`).
    """
    result = dict.fromkeys(
        Shortcut(keys.toString(QKeySequence.SequenceFormat.NativeText), text, _where(owner, context, window))
        for keys, description, owner, context in _all(window)
        if not keys.isEmpty() and (text := _plain(description))
    )
    if any(isinstance(widget, Zoomable) for widget in window.findChildren(QWidget)):
        result |= dict.fromkeys(Shortcut(QKeySequence(keys).toString(), description, _PLOTS) for keys, description in _PLOT_KEYS)
    return sorted(result, key=lambda shortcut: (shortcut.where != _WINDOW, shortcut.where, shortcut.keys))


def _all(window: QWidget) -> Iterator[tuple[QKeySequence, str, QObject | None, Qt.ShortcutContext]]:
    """Yield keys, description, owner and Qt context of each shortcut."""
    for action in window.findChildren(QAction):
        for keys in action.shortcuts():
            yield keys, action.text() or action.toolTip(), action, action.shortcutContext()
    for shortcut in window.findChildren(QShortcut):
        yield shortcut.key(), shortcut.whatsThis(), shortcut.parent(), shortcut.context()
    for button in window.findChildren(QAbstractButton):
        if button.shortcut() != QKeySequence.mnemonic(button.text()):
            yield button.shortcut(), button.accessibleName() or button.text(), button, Qt.ShortcutContext.WindowShortcut


def _plain(text: str) -> str:
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")


def _where(owner: QObject | None, context: Qt.ShortcutContext, window: QWidget) -> str:
    """Return a text with the view that contains the owner and, if needed, the widget that must have the keyboard focus."""
    if owner is not None and owner.property(SHORTCUT_CONTEXT):
        return str(owner.property(SHORTCUT_CONTEXT))
    names: list[str] = []
    while owner is not None and owner is not window:
        if isinstance(owner, QWidget):
            name = owner.accessibleName() or (owner.windowTitle() if owner.isWindow() else "")
            if name and name not in names and not isinstance(owner, QAbstractButton):
                names.append(name)
        owner = owner.parent()
    if not names:
        return _WINDOW
    needs_focus = context in (Qt.ShortcutContext.WidgetShortcut, Qt.ShortcutContext.WidgetWithChildrenShortcut)
    return f"{names[-1]}: {names[0]}" if needs_focus and len(names) > 1 else names[-1]
