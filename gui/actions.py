"""Actions of menus and shortcuts, and timers."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, SignalInstance
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from proteoscope.gui.icons import set_icon

__all__ = ["action_of", "add_choices", "delayed", "repeated"]

Keys = QKeySequence.StandardKey | str


def action_of(
    owner: QObject,
    text: str,
    use: Callable[[], object] | None = None,
    shortcut: Keys = "",
    *,
    tip: str = "",
    icon: str = "",
    context: Qt.ShortcutContext = Qt.ShortcutContext.WidgetWithChildrenShortcut,
) -> QAction:
    """Return an action, which the caller adds to a widget or menu.

    Parameters
    ----------
    owner : QObject
        Parent of the action.
    text : str
        Text in menus.
    use : callable or None
        Called without arguments when the action is triggered.
    shortcut : QKeySequence.StandardKey or str
        Keys that trigger it, or ''.
    tip : str
        Tooltip; '' for the text.
    icon : str
        Name of its icon, or ''.
    context : Qt.ShortcutContext
        Where the shortcut works.
    """
    action = QAction(text, owner, shortcut=QKeySequence(shortcut), shortcutContext=context)
    if tip:
        action.setToolTip(tip)
    if icon:
        set_icon(action, icon)
    if use is not None:
        action.triggered.connect(lambda: use())
    return action


def add_choices(menu: QMenu, choices: dict[str, str], chosen: str, choose: Callable[[str], object]) -> dict[str, QAction]:
    """Add actions to a menu and check one of them.

    Parameters
    ----------
    menu : QMenu
        The menu.
    choices : dict of str to str
        Texts by name, in their order.
    chosen : str
        Name of the checked action, or ''.
    choose : callable
        Called with the name of the action that the user triggers.

    Returns
    -------
    dict of str to QAction
        The actions by name.
    """
    group, actions = QActionGroup(menu), {}
    for name, text in choices.items():
        actions[name] = menu.addAction(text)
        actions[name].setCheckable(True)
        actions[name].setChecked(name == chosen)
        actions[name].triggered.connect(lambda _=False, name=name: choose(name))
        group.addAction(actions[name])
    return actions


def delayed(owner: QObject, use: Callable[[], object] | SignalInstance, milliseconds: int = 0) -> QTimer:
    """Return a timer that calls `use`, or emits it, once, some time after each start; starting it again begins anew."""
    timer = QTimer(owner, singleShot=True, interval=milliseconds)
    timer.timeout.connect(use)
    return timer


def repeated(owner: QObject, use: Callable[[], object], milliseconds: int) -> QTimer:
    """Return a timer that calls `use` again and again while it runs."""
    timer = QTimer(owner, interval=milliseconds)
    timer.timeout.connect(use)
    return timer
