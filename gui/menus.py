"""The window's menus, its toolbar and their shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QToolBar

from gui.dialogs import about
from gui.icons import set_icon
from gui.theme import ThemeChoice

if TYPE_CHECKING:
    from gui.window import MainWindow

__all__ = ["Menus"]

_LOOKS: tuple[tuple[ThemeChoice, str], ...] = (("system", "As the &system"), ("light", "&Light"), ("dark", "&Dark"))


class Menus:
    """All actions of the window. Those of form, run and results are about the kind of search that the user is at.

    Attributes
    ----------
    new : the actions that begin a search, by its kind. looks : those that choose a look, by its name.
    recent : the menu of recent projects.
    """

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.new = {
            kind: self._action(f"New {search.name}", search.icon, search.shortcut, partial(window.new_search, kind))
            for kind, search in window.searches.items()
        }
        self.open = self._action("&Open project…", "open", QKeySequence.StandardKey.Open, window.ask_for_project)
        self.run = self._action("&Run", "run", "Ctrl+R", window.run_form)
        self.cancel = self._action("&Cancel the running job", "cancel", "Ctrl+.", window.cancel_running)
        self.form = self._action("&Form", "new", "Ctrl+1", lambda: window.show_page(window.form), checkable=True)
        self.results = self._action("&Results", "results", "Ctrl+2", lambda: window.show_page(window.results), checkable=True)
        self.looks: dict[str, QAction] = {}
        self.recent = QMenu("Open &recent", window)
        self._make_menus()
        self._make_toolbar()

    def show_recent(self, folders: tuple[str, ...]) -> None:
        """List recent projects in their menu."""
        self.recent.clear()
        for folder in folders:
            self.recent.addAction(folder.replace("&", "&&"), partial(self._window.open_project, Path(folder)))
        self.recent.setEnabled(bool(folders))

    def _make_menus(self) -> None:
        window, bar = self._window, self._window.menuBar()
        file_menu = bar.addMenu("&File")
        file_menu.addActions([*self.new.values(), self.open])
        file_menu.addMenu(self.recent)
        file_menu.addSeparator()
        file_menu.addAction(self._action("&Load preset…", "open", "Ctrl+L", lambda: window.form.ask_for_preset()))
        file_menu.addAction(self._action("&Save preset…", "save", QKeySequence.StandardKey.Save, lambda: window.form.ask_where_to_save()))
        file_menu.addSeparator()
        exports = [search.results.export_action for search in window.searches.values() if search.results.export_action is not None]
        file_menu.addActions(exports)
        file_menu.addSeparator()
        file_menu.addAction(self._action("&Quit", "close", QKeySequence.StandardKey.Quit, window.close))
        bar.addMenu("&Run").addActions([self.run, self.cancel])
        view_menu = bar.addMenu("&View")
        view_menu.addActions([self.form, self.results])
        view_menu.addSeparator()
        for dock in (window.dock_project, window.dock_jobs, window.dock_log):
            view_menu.addAction(dock.toggleViewAction())
        look_menu = view_menu.addMenu("&Look")
        group = QActionGroup(window)
        for choice, text in _LOOKS:
            action = look_menu.addAction(text)
            action.setCheckable(True)
            action.triggered.connect(partial(window.choose_look, choice))
            group.addAction(action)
            self.looks[choice] = action
        help_menu = bar.addMenu("&Help")
        help_menu.addAction("&Devices…", window.show_devices)
        help_menu.addAction("&About Proteoscope", lambda: about(window))

    def _make_toolbar(self) -> None:
        toolbar = QToolBar("Tools")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        toolbar.setIconSize(QSize(20, 20))
        toolbar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        toolbar.addActions([*self.new.values(), self.open])
        toolbar.addSeparator()
        toolbar.addAction(self.results)
        self._window.addToolBar(toolbar)

    def _action(
        self,
        text: str,
        icon_name: str,
        shortcut: QKeySequence.StandardKey | str,
        triggered: Callable[[], Any],
        *,
        checkable: bool = False,
    ) -> QAction:
        action = QAction(text, self._window)
        set_icon(action, icon_name)
        action.setShortcut(QKeySequence(shortcut))
        action.setCheckable(checkable)
        action.triggered.connect(lambda: triggered())
        self._window.addAction(action)
        return action
