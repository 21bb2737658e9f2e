"""Mouse and keyboard of an X display through the extension XTEST: the window receives the events of real devices."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from PySide6.QtCore import QPoint, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget
from pytestqt.qtbot import QtBot

if TYPE_CHECKING:
    from proteoscope.gui.window import MainWindow

Place = TypeVar("Place")

__all__ = [
    "Hand",
    "has_file_dialog",
    "move_onto_screen",
    "named_in_dialog",
    "wait_until_still",
    "wait_until_still_in_form",
    "x_events_problem",
]

_LEFT, _RIGHT = 1, 3
_KEYS = {
    "ctrl": 0xFFE3,
    "alt": 0xFFE9,
    "shift": 0xFFE1,
    "enter": 0xFF0D,
    "escape": 0xFF1B,
    "down": 0xFF54,
    "up": 0xFF52,
    "f1": 0xFFBE,
    "f11": 0xFFC8,
    "delete": 0xFFFF,
    "tab": 0xFF09,
    "space": 0x20,
    "home": 0xFF50,
    "left": 0xFF51,
    "right": 0xFF53,
    "menu": 0xFF67,
}
"""Keysyms by their names; characters have their own."""
_WITH_SHIFT = '_~!@#$%^&*()+{}|:"<>?'
_POLL_MS = 30
_SAME = 10  # Number of consecutive equal positions after which a widget counts as still.


def x_events_problem() -> str:
    """Return why X events are unavailable, or an empty text."""
    if QApplication.platformName() != "xcb":
        return "the window is not on an X display"
    return "" if ctypes.util.find_library("X11") and ctypes.util.find_library("Xtst") else "libX11 or libXtst is missing"


def move_onto_screen(window: QWidget, qtbot: QtBot) -> None:
    """Move a window so that all of its 1280 x 800 pixels are on the screen; skip the test without X events."""
    if x_events_problem():
        pytest.skip(x_events_problem())
    with qtbot.waitActive(window):
        window.move(0, 0)
        window.resize(1280, 800)
        window.activateWindow()


def wait_until_still(place: Callable[[], Place | None], qtbot: QtBot) -> None:
    """Wait until the position of the next click is unchanged for a while; `place` returns None while the widget is not visible."""
    places: list[Place | None] = []

    def is_still() -> bool:
        places.append(place())
        return places[-1] is not None and places[-_SAME:].count(places[-1]) == _SAME

    qtbot.waitUntil(is_still)


def wait_until_still_in_form(widget: QWidget, window: MainWindow, qtbot: QtBot) -> None:
    """Scroll to a widget of the form and wait until it no longer moves."""

    def place() -> QPoint | None:
        window.form.scroll_area.ensureWidgetVisible(widget)
        centre = widget.rect().center()
        return widget.mapToGlobal(centre) if widget.visibleRegion().contains(centre) else None

    wait_until_still(place, qtbot)


def has_file_dialog() -> bool:
    """Return True if a file dialog accepts key events."""
    dialog = QApplication.activeModalWidget()
    return isinstance(dialog, QFileDialog) and dialog.isActiveWindow() and isinstance(QApplication.focusWidget(), QWidget)


def named_in_dialog(hand: Hand, path: Path) -> None:
    """Enter a name in the next file dialog, and accept it."""

    def give() -> None:
        hand.type(str(path))
        hand.press("enter")

    hand.do_when(has_file_dialog, give)


class Hand:
    """Mouse and keyboard with a count of actions: a click, a key combination and a typed text are one action each."""

    def __init__(self, qtbot: QtBot) -> None:
        self._qtbot = qtbot
        self.n_actions = 0
        self._x, self._test = ctypes.CDLL(ctypes.util.find_library("X11")), ctypes.CDLL(ctypes.util.find_library("Xtst"))
        self._x.XOpenDisplay.restype = ctypes.c_void_p
        self._x.XKeysymToKeycode.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
        for function in (self._x.XSync, self._x.XCloseDisplay, self._test.XTestFakeKeyEvent, self._test.XTestFakeButtonEvent):
            function.argtypes = [ctypes.c_void_p, *[ctypes.c_ulong] * 3][: {"XSync": 2, "XCloseDisplay": 1}.get(function.__name__, 4)]
        self._test.XTestFakeMotionEvent.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ulong]
        self._display = self._x.XOpenDisplay(os.environ["DISPLAY"].encode())
        assert self._display, "the display cannot be opened"

    def close(self) -> None:
        """Close the connection to the display."""
        self._x.XCloseDisplay(self._display)

    def click(self, widget: QWidget, at: QPoint | None = None, holding: Sequence[str] = (), *, is_right: bool = False) -> None:
        """Press and release the left or right button on a position of a widget, by default its middle, while keys are pressed."""
        self.n_actions += 1
        place = widget.mapToGlobal(widget.rect().center() if at is None else at)
        self._test.XTestFakeMotionEvent(self._display, -1, place.x(), place.y(), 0)
        for name in holding:
            self._key(_KEYS[name], True)
        for is_down in (True, False):
            self._test.XTestFakeButtonEvent(self._display, _RIGHT if is_right else _LEFT, is_down, 0)
        for name in holding:
            self._key(_KEYS[name], False)
        self._done()

    def double_click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Click twice on a position of a widget, by default its middle."""
        self.click(widget, at)
        # Qt sees two clicks of the same millisecond as single ones.
        self._qtbot.wait(2 * _POLL_MS)
        self.click(widget, at)
        self.n_actions -= 1

    def drag(self, widget: QWidget, to: QWidget, at: QPoint, steps: int = 12) -> None:
        """Press the left button on the middle of a widget, move in steps to a position of another one, and release it there."""
        self.n_actions += 1
        begin, end = widget.mapToGlobal(widget.rect().center()), to.mapToGlobal(at)
        for step in range(steps + 1):
            place = begin + (end - begin) * step / steps
            self._test.XTestFakeMotionEvent(self._display, -1, place.x(), place.y(), 0)
            if step == 0:
                self._test.XTestFakeButtonEvent(self._display, _LEFT, True, 0)
            self._done()
            self._qtbot.wait(_POLL_MS)
        self._test.XTestFakeButtonEvent(self._display, _LEFT, False, 0)
        self._done()

    def press(self, *names: str) -> None:
        """Press keys together, such as ``ctrl``, ``e``."""
        self.n_actions += 1
        self._press([_KEYS.get(name, ord(name[0])) for name in names])
        self._done()

    def type(self, text: str) -> None:
        """Type a text."""
        self.n_actions += 1
        for character in text:
            has_shift = character.isupper() or character in _WITH_SHIFT
            self._press([*([_KEYS["shift"]] if has_shift else []), ord(character)])
        self._done()

    def menu(self, before: QMenu | None = None) -> QMenu:
        """Wait for the menu that opens, after another one if given, and return it."""
        self._qtbot.waitUntil(lambda: QApplication.activePopupWidget() not in (None, before))
        dialog = QApplication.activePopupWidget()
        assert isinstance(dialog, QMenu)
        return dialog

    def choose(self, menu: QMenu, action: QAction) -> None:
        """Click an action of a menu."""
        assert action in menu.actions(), action.text()
        self.click(menu, menu.actionGeometry(action).center())

    def do_when(self, condition: Callable[[], bool], then: Callable[[], None]) -> None:
        """Continue as soon as a condition holds, even while a dialog blocks the caller."""

        def check_condition() -> None:
            if condition():
                timer.stop()
                timer.deleteLater()
                then()

        timer = QTimer(QApplication.instance())
        timer.setInterval(_POLL_MS)
        timer.timeout.connect(check_condition)
        timer.start()

    def _press(self, keysyms: Sequence[int]) -> None:
        for keysym in keysyms:
            self._key(keysym, True)
        for keysym in reversed(keysyms):
            self._key(keysym, False)

    def _key(self, keysym: int, is_down: bool) -> None:
        self._test.XTestFakeKeyEvent(self._display, self._x.XKeysymToKeycode(self._display, keysym), is_down, 0)

    def _done(self) -> None:
        self._x.XSync(self._display, 0)
