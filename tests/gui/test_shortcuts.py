"""Every entry of the list of shortcuts works in the view that it names: each is pressed by X events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractButton, QApplication, QMainWindow, QStackedWidget, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.gui.actions import SHORTCUT_CONTEXT
from proteoscope.gui.help import shortcuts
from proteoscope.gui.help.shortcuts import shortcuts_of
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.zoomable import Zoomable
from proteoscope.gui.window import MainWindow
from tests.engine.views.quantity_projects import FILES, identified_project
from tests.gui.result_views import settle
from tests.gui.x_events import Hand

_NAMES = {
    Qt.Key.Key_Space: "space",
    Qt.Key.Key_Escape: "escape",
    Qt.Key.Key_Delete: "delete",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_F1: "f1",
    Qt.Key.Key_F11: "f11",
    Qt.Key.Key_Home: "home",
}
_MODIFIERS = {
    Qt.KeyboardModifier.ControlModifier: "ctrl",
    Qt.KeyboardModifier.ShiftModifier: "shift",
    Qt.KeyboardModifier.AltModifier: "alt",
}


def pressed(keys: QKeySequence) -> list[str]:
    """Return the names of the keys to press."""
    combination = keys[0]
    names = [name for modifier, name in _MODIFIERS.items() if combination.keyboardModifiers() & modifier]
    key = combination.key()
    return [*names, _NAMES.get(key) or chr(key.value).lower()]


def bring_into_sight(widget: QWidget) -> None:
    """Show the page of every stack that contains a widget."""
    child, parent = widget, widget.parentWidget()
    while parent is not None and not isinstance(child, QMainWindow):
        if isinstance(parent, QStackedWidget):
            tabs = parent.parentWidget()
            (tabs if isinstance(tabs, QTabWidget) else parent).setCurrentWidget(child)
        child.show()
        child, parent = parent, parent.parentWidget()


def owners(view: QWidget) -> Iterator[tuple[QKeySequence, QObject, QWidget, bool]]:
    """Yield keys, sender, a widget that is to be visible, and whether it needs the focus, for each shortcut of a view."""
    focused = (Qt.ShortcutContext.WidgetShortcut, Qt.ShortcutContext.WidgetWithChildrenShortcut)
    for action in view.findChildren(QAction):
        users = [user for user in action.associatedObjects() if isinstance(user, QWidget) and not isinstance(user, QAbstractButton)]
        users = [user for user in users if user.focusPolicy() != Qt.FocusPolicy.NoFocus] or users
        for keys in action.shortcuts():
            if not keys.isEmpty() and users:
                yield keys, action, users[0], action.shortcutContext() in focused
    for shortcut in view.findChildren(QShortcut):
        parent = shortcut.parent()
        if isinstance(parent, QWidget):
            yield shortcut.key(), shortcut, parent, shortcut.context() in focused
    for button in view.findChildren(QAbstractButton):
        if button.shortcut() != QKeySequence.mnemonic(button.text()):
            yield button.shortcut(), button, button, False


def check_all(window: MainWindow, view: QWidget, hand: Hand, qtbot: QtBot, minimum: int) -> None:
    """Press every shortcut of a view, without its effect."""
    listed = {entry.keys for entry in shortcuts_of(window)}
    n_pressed = 0
    for keys, sender, place, needs_focus in list(owners(view)):
        heard: list[bool] = []
        if isinstance(sender, QShortcut):
            signal = sender.activated
        else:
            signal = sender.triggered if isinstance(sender, QAction) else sender.clicked  # type: ignore[attr-defined]
            sender.setEnabled(True)  # type: ignore[attr-defined]
            sender.blockSignals(False)
        bring_into_sight(place)
        qtbot.waitUntil(place.isVisible)
        signal.disconnect()
        signal.connect(lambda *_, heard=heard: heard.append(True))
        target = place if needs_focus else window.project_pane.runs
        if needs_focus and place.focusPolicy() == Qt.FocusPolicy.NoFocus:
            target = next(
                child for child in place.findChildren(QWidget) if child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.isVisible()
            )
        target.setFocus()
        qtbot.waitUntil(lambda target=target: QApplication.focusWidget() in (target, target.focusProxy()))  # type: ignore[misc]
        hand.press(*pressed(keys))
        qtbot.waitUntil(lambda heard=heard: bool(heard))  # type: ignore[misc]
        assert heard == [True], keys.toString()
        if isinstance(sender, QShortcut) and not sender.whatsThis():
            continue
        assert keys.toString(QKeySequence.SequenceFormat.NativeText) in listed, keys.toString()
        n_pressed += 1
    assert n_pressed >= minimum


def test_listed_shortcuts_of_the_window_work_on_every_page(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    listed = shortcuts_of(window)
    everywhere = {entry.keys for entry in listed if entry.where == "Everywhere"}
    assert {"Ctrl+Z", "Ctrl+Y", "Ctrl+Shift+Z", "F1"} <= everywhere
    assert {entry.where for entry in listed if entry.keys in ("Ctrl+R", "Ctrl+L", "Ctrl+S")} == {"Form"}
    assert {entry.where for entry in listed if entry.keys == "Ctrl+Shift+E"} == {"Results"}
    of_window = [action for action in window.findChildren(QAction) if action.shortcuts() and action.parent() in (window, window.undo_stack)]
    of_window = [action for action in of_window if not action.property(SHORTCUT_CONTEXT)]
    assert {keys.toString() for action in of_window for keys in action.shortcuts()} == everywhere
    window.show_form()
    pages = (window.start_page, window.form)
    for action in of_window:
        heard: list[bool] = []
        action.triggered.disconnect()
        action.triggered.connect(lambda *_, heard=heard: heard.append(True))
        for page in pages:
            window.show_page(page)
            action.setEnabled(True)
            window.project_pane.runs.setFocus()
            window.setFocus()
            for keys in action.shortcuts():
                heard.clear()
                hand.press(*pressed(keys))
                qtbot.waitUntil(lambda heard=heard: heard == [True])  # type: ignore[misc]


@pytest.mark.parametrize(("kind", "minimum"), [("identify", 10), ("modified", 8), ("structures", 20), ("align", 6)])
def test_listed_shortcuts_of_result_views_work(
    window: MainWindow, finished_run: Callable[[str], Path], kind: str, minimum: int, hand: Hand, qtbot: QtBot
) -> None:
    window.open_project(finished_run(kind))
    settle(window.results, qtbot)
    if kind == "structures":
        window.results.structures_action.setChecked(True)  # type: ignore[attr-defined]
        settle(window.results, qtbot)
    assert all(entry.where != "Everywhere" for entry in shortcuts_of(window) if len(entry.keys) == 1)
    check_all(window, window.results, hand, qtbot, minimum)


def test_listed_shortcuts_of_the_design_table_work(window: MainWindow, tmp_path: Path, hand: Hand, qtbot: QtBot) -> None:
    window.new_search("quantify")
    window.form.set_project_folder(identified_project(tmp_path / "identified"))
    design = window.form.designs["design"]
    qtbot.waitUntil(lambda: len(design.model.table.rows) == len(FILES))
    design.is_used.setChecked(True)
    check_all(window, design.view, hand, qtbot, 4)


def test_listed_keys_of_plots_zoom_and_pan(window: MainWindow, finished_run: Callable[[str], Path], hand: Hand, qtbot: QtBot) -> None:
    window.open_project(finished_run("modified"))
    settle(window.results, qtbot)
    plot = window.results.histogram  # type: ignore[attr-defined]
    assert isinstance(plot, FigureView) and isinstance(plot, Zoomable)
    assert {entry.keys for entry in shortcuts_of(window) if entry.where == shortcuts._PLOTS} == {"+", "-", "0", "Left", "Right"}
    plot.setFocus()
    qtbot.waitUntil(plot.hasFocus)
    whole = plot.ranges
    for keys in (("shift", "+"), ("left",), ("right",), ("-",)):
        before = plot.ranges
        hand.press(*keys)
        qtbot.waitUntil(lambda before=before: plot.ranges != before)  # type: ignore[misc]
    hand.press("shift", "+")
    hand.press("0")
    qtbot.waitUntil(lambda: plot.ranges == whole)


def test_file_lists_have_accessible_names(window: MainWindow) -> None:
    for search in window.searches.values():
        for files in search.form.file_lists.values():
            assert files.lines.accessibleName() not in ("", files.lines.objectName())
    assert window.project_pane.runs.accessibleName() == "Runs of the project"
