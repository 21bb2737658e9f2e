"""Creation of actions for menus and shortcuts, and of timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, SignalInstance
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from proteoscope.gui.icons import set_icon

Keys = QKeySequence.StandardKey | str
_Choice = TypeVar("_Choice", bound=Hashable)
SHORTCUT_CONTEXT = "worksIn"
"""Property of an action that works only on some pages of the window; its value names these pages in the list of shortcuts."""


def make_action(
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
        Function that is called without arguments when the action is triggered.
    shortcut : QKeySequence.StandardKey or str
        Keys that trigger the action, or ''.
    tip : str
        Tooltip; '' to use the text.
    icon : str
        Name of the action's icon, or ''.
    context : Qt.ShortcutContext
        Widgets in which the shortcut works.
    """
    action = QAction(text, owner, shortcut=QKeySequence(shortcut), shortcutContext=context)
    if tip:
        action.setToolTip(tip)
    if icon:
        set_icon(action, icon)
    if use is not None:
        action.triggered.connect(lambda: use())
    return action


def add_choices(
    menu: QMenu, choices: Mapping[_Choice, str], chosen: _Choice | None, choose: Callable[[_Choice], object]
) -> dict[_Choice, QAction]:
    """Add exclusive checkable actions to a menu.

    Parameters
    ----------
    menu : QMenu
        The menu.
    choices : mapping of object to str
        Texts by choice, in their order.
    chosen : object or None
        Choice whose action is checked.
    choose : callable
        Function that is called with the choice that the user makes.

    Returns
    -------
    dict of object to QAction
        The actions by choice.
    """
    group, actions = QActionGroup(menu), {}
    for choice, text in choices.items():
        actions[choice] = group.addAction(QAction(text, menu, checkable=True, checked=choice == chosen))
        actions[choice].triggered.connect(lambda _=False, choice=choice: choose(choice))
    menu.addActions(group.actions())
    return actions


def delayed(owner: QObject, use: Callable[[], object] | SignalInstance, milliseconds: int = 0) -> QTimer:
    """Return a timer that, once started, calls `use` (or emits it, if it is a signal) after a delay; another start restarts the delay."""
    timer = QTimer(owner, singleShot=True, interval=milliseconds)
    timer.timeout.connect(use)
    return timer


def repeated(owner: QObject, use: Callable[[], object], milliseconds: int) -> QTimer:
    """Return a timer that, once started, calls `use` repeatedly until the timer is stopped."""
    timer = QTimer(owner, interval=milliseconds)
    timer.timeout.connect(use)
    return timer
