"""The keyboard shortcuts of the window, from the actions that have them."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget

__all__ = ["Shortcut", "shortcuts_of"]

_WINDOW = "Everywhere"


@dataclass(frozen=True)
class Shortcut:
    """Keys, what they do, and where: the names of the parts of the window, of all of it where it is empty."""

    keys: str
    does: str
    where: str


def shortcuts_of(window: QWidget) -> list[Shortcut]:
    """All shortcuts of a window's actions, by their keys; of those that many tables have, each once.

    Keys without an action are told where their shortcut has a text of its own (`QShortcut.whatsThis`).
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    for action in window.findChildren(QAction):
        for keys in action.shortcuts():
            _note(found, keys, action.toolTip() if not action.text() else action.text(), _where(action.parent(), window))
    for shortcut in window.findChildren(QShortcut):
        _note(found, shortcut.key(), shortcut.whatsThis(), _where(shortcut.parent(), window))
    listed = [Shortcut(keys, does, ", ".join(sorted(where))) for (keys, does), where in found.items()]
    return sorted(listed, key=lambda one: (one.where != _WINDOW, one.where, one.keys))


def _note(found: dict[tuple[str, str], dict[str, None]], keys: QKeySequence, does: str, where: str) -> None:
    text = does.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
    if not keys.isEmpty() and text:
        found.setdefault((keys.toString(QKeySequence.SequenceFormat.NativeText), text), {})[where] = None


def _where(owner: object, window: QWidget) -> str:
    """The part of the window that an action belongs to: the nearest one with a name."""
    while isinstance(owner, QWidget) and owner is not window:
        name = owner.accessibleName() or (owner.windowTitle() if owner.isWindow() else "")
        if name:
            return name
        owner = owner.parentWidget()
    return _WINDOW
