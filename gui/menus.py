"""Menus, toolbar and shortcuts of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMenu, QToolBar, QToolButton

from proteoscope.engine.entry import Search
from proteoscope.gui.actions import SHORTCUT_CONTEXT, add_choices
from proteoscope.gui.dialogs import about
from proteoscope.gui.icons import set_icon
from proteoscope.gui.settings import FONT_SCALES
from proteoscope.gui.theme import ThemeChoice
from proteoscope.gui.undo import UndoStack

_THEMES: tuple[tuple[ThemeChoice, str], ...] = (
    ("system", "&System"),
    ("light", "&Light"),
    ("dark", "&Dark"),
    ("contrast", "&High contrast"),
)


_NEW_SHORTCUTS = ("Ctrl+N", "Ctrl+Shift+N")
"""Shortcuts that start the first two searches of the menu."""


class MenuActions(Protocol):
    """Interface of the object whose methods the menu actions call."""

    def new_search(self, kind: str) -> None:
        """Show the form of a search."""

    def prompt_for_project(self) -> None:
        """Open a dialog for a project folder."""

    def open_project(self, folder: Path) -> None:
        """Open a project."""

    def load_preset(self) -> None:
        """Open a dialog for a preset file to load."""

    def save_preset(self) -> None:
        """Open a dialog for a preset file to write."""

    def prompt_for_export(self) -> None:
        """Open a dialog for a file to export results to."""

    def run_form(self) -> None:
        """Run the current form."""

    def cancel_running(self) -> None:
        """Cancel the running job."""

    def show_form(self) -> None:
        """Show the form."""

    def show_results(self) -> None:
        """Show the results."""

    def set_theme(self, choice: ThemeChoice) -> None:
        """Change the theme."""

    def set_font_scale(self, percent: int) -> None:
        """Set the font size used from the next start."""

    def show_devices(self) -> None:
        """Show the device page."""

    def show_experiment(self) -> None:
        """Show the page of the experiment."""


class DialogActions(Protocol):
    """Interface of the object whose methods open a separate dialog."""

    def new_database(self) -> None:
        """Open the dialog that builds a structure database."""

    def convert_spectra(self) -> None:
        """Open the dialog that writes spectra in another format."""

    def predict_library(self) -> None:
        """Open the dialog that predicts a spectral library."""


class Menus:
    """Actions of the window in menus and a toolbar; form, run and result actions apply to the current search.

    Parameters
    ----------
    window : QMainWindow
        Window to which the menus and the toolbar are added.
    actions : MenuActions
        Object whose methods the actions call.
    dialogs : DialogActions
        Object whose methods open dialogs.
    searches : iterable of Search
        Searches that the menus offer, in order.
    docks : iterable of QDockWidget
        Docks to show and hide.
    undo_stack : UndoStack
        Undo stack with the Undo and Redo actions of the Edit menu.

    Attributes
    ----------
    new : dict of str to QAction
        Actions that show the empty form of a search, by search kind.
    of_form : tuple of QAction
        Actions that work only while a form is shown.
    themes : dict of str to QAction
        Actions that select a theme, by theme name.
    font_scales : dict of int to QAction
        Actions that select a font size, by percent.
    recent, help : QMenu
        The Recent projects menu and the Help menu.
    """

    def __init__(
        self,
        window: QMainWindow,
        actions: MenuActions,
        dialogs: DialogActions,
        searches: Iterable[Search],
        docks: Iterable[QDockWidget],
        undo_stack: UndoStack,
    ) -> None:
        self._window, self._actions, self._dialogs = window, actions, dialogs
        self.new = {
            search.kind: self._action(f"New {search.name}", search.icon, shortcut, partial(actions.new_search, search.kind))
            for search, shortcut in zip(searches, chain(_NEW_SHORTCUTS, repeat("")), strict=False)
        }
        self.open = self._action("&Open project…", "open", QKeySequence.StandardKey.Open, actions.prompt_for_project)
        self.export = self._action("&Export results…", "save", "Ctrl+Shift+E", actions.prompt_for_export)
        self.export.setProperty(SHORTCUT_CONTEXT, "Results")
        self.run = self._action("&Run", "run", "Ctrl+R", actions.run_form)
        self.cancel = self._action("&Cancel the running job", "cancel", "Ctrl+.", actions.cancel_running)
        self.load_preset = self._action("&Load preset…", "open", "Ctrl+L", actions.load_preset)
        self.save_preset = self._action("&Save preset…", "save", QKeySequence.StandardKey.Save, actions.save_preset)
        self.of_form = (self.run, self.load_preset, self.save_preset)
        for action in self.of_form:
            action.setProperty(SHORTCUT_CONTEXT, "Form")
        self.form = self._action("&Form", "new", "Ctrl+1", actions.show_form, checkable=True)
        self.results = self._action("&Results", "results", "Ctrl+2", actions.show_results, checkable=True)
        self.experiment = self._action("&Experiment", "jobs", "Ctrl+5", actions.show_experiment, checkable=True)
        self.devices = self._action("&Devices", "database", "Ctrl+4", actions.show_devices, checkable=True)
        self.recent = QMenu("Open &recent", window)
        self.undo, self.redo = undo_stack.undo_action, undo_stack.redo_action
        for action, icon_name in ((self.undo, "undo"), (self.redo, "redo")):
            set_icon(action, icon_name)
            window.addAction(action)
        self._make_menus(docks)
        self._make_toolbar()

    def show_recent(self, folders: tuple[str, ...], notes: Mapping[str, str]) -> None:
        """List recent projects in their menu. `notes` maps each folder to a text with its content and date."""
        self.recent.clear()
        for folder in folders:
            text = folder + (f"    {notes[folder]}" if notes.get(folder) else "")
            action = self.recent.addAction(text.replace("&", "&&"), partial(self._actions.open_project, Path(folder)))
            action.setData(folder)
        self.recent.setEnabled(bool(folders))

    def show_missing(self, folders: frozenset[str]) -> None:
        """Grey out recent projects that no longer exist."""
        for action in self.recent.actions():
            action.setEnabled(action.data() not in folders)

    def _make_menus(self, docks: Iterable[QDockWidget]) -> None:
        actions, bar = self._actions, self._window.menuBar()
        file_menu = bar.addMenu("&File")
        file_menu.addActions([*self.new.values(), self.open])
        file_menu.addMenu(self.recent)
        file_menu.addSeparator()
        file_menu.addAction(self._action("New structure &database…", "database", "", self._dialogs.new_database))
        file_menu.addAction(self._action("&Convert spectra…", "spectrum", "", self._dialogs.convert_spectra))
        file_menu.addAction(self._action("&Predict a spectral library…", "database", "", self._dialogs.predict_library))
        file_menu.addActions([self.load_preset, self.save_preset])
        file_menu.addSeparator()
        file_menu.addAction(self.export)
        file_menu.addSeparator()
        file_menu.addAction(self._action("&Quit", "close", QKeySequence.StandardKey.Quit, self._window.close))
        bar.addMenu("&Edit").addActions([self.undo, self.redo])
        bar.addMenu("&Run").addActions([self.run, self.cancel])
        view_menu = bar.addMenu("&View")
        view_menu.addActions([self.form, self.results, self.experiment, self.devices])
        view_menu.addSeparator()
        for dock in docks:
            view_menu.addAction(dock.toggleViewAction())
        theme_menu = view_menu.addMenu("&Theme")
        self.themes = add_choices(theme_menu, dict(_THEMES), None, actions.set_theme)
        size_menu = view_menu.addMenu("Font si&ze")
        self.font_scales = add_choices(size_menu, {percent: f"{percent} %" for percent in FONT_SCALES}, None, actions.set_font_scale)
        help_menu = self.help = bar.addMenu("&Help")
        help_menu.addAction("&About Proteoscope", lambda: about(self._window))

    def _make_toolbar(self) -> None:
        toolbar = QToolBar("Tools")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        toolbar.setIconSize(QSize(20, 20))
        toolbar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        # The searches share one menu button: a button for each would leave too little space for the others.
        searches = QMenu("New search", self._window)
        searches.addActions(list(self.new.values()))
        set_icon(searches.menuAction(), "new")
        toolbar.addAction(searches.menuAction())
        button = toolbar.widgetForAction(searches.menuAction())
        assert isinstance(button, QToolButton)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        toolbar.addActions([self.open, self.run])
        toolbar.addSeparator()
        toolbar.addActions([self.form, self.results, self.experiment, self.devices])
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
