"""The keyboard shortcuts of the window, collected from its actions."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

__all__ = ["Shortcut", "shortcuts_of"]

_WINDOW = "Everywhere"


@dataclass(frozen=True)
class Shortcut:
    """Keys, their action, and the parts of the window where they work."""

    keys: str
    does: str
    where: str


def shortcuts_of(window: QWidget) -> list[Shortcut]:
    """Return all shortcuts of a window, sorted by place and keys; shortcuts shared by many tables are listed once.

    Keys without an action are listed if their shortcut has a description (`QShortcut.whatsThis`).
    """
    result: dict[tuple[str, str], dict[str, None]] = {}
    for action in window.findChildren(QAction):
        for keys in action.shortcuts():
            _note(result, keys, action.toolTip() if not action.text() else action.text(), _where(action.parent(), window))
    for shortcut in window.findChildren(QShortcut):
        _note(result, shortcut.key(), shortcut.whatsThis(), _where(shortcut.parent(), window))
    listed = [Shortcut(keys, does, ", ".join(sorted(where))) for (keys, does), where in result.items()]
    return sorted(listed, key=lambda shortcut: (shortcut.where != _WINDOW, shortcut.where, shortcut.keys))


def _note(places: dict[tuple[str, str], dict[str, None]], keys: QKeySequence, does: str, where: str) -> None:
    text = does.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
    if not keys.isEmpty() and text:
        places.setdefault((keys.toString(QKeySequence.SequenceFormat.NativeText), text), {})[where] = None


def _where(owner: object, window: QWidget) -> str:
    """Return the part of the window of an action: its nearest named owner."""
    while isinstance(owner, QWidget) and owner is not window:
        name = owner.accessibleName() or (owner.windowTitle() if owner.isWindow() else "")
        if name:
            return name
        owner = owner.parentWidget()
    return _WINDOW
