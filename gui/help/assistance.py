"""The menu Help: what each of its actions opens, and the key F1."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QLocale, QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget

from proteoscope.engine import views
from proteoscope.gui import help
from proteoscope.gui.devices import device_text
from proteoscope.gui.help.places import Place, place_of
from proteoscope.gui.help.samples import Samples
from proteoscope.gui.help.shortcuts import shortcuts_of
from proteoscope.gui.help.tour import Step, Tour

if TYPE_CHECKING:
    from proteoscope.engine.parameters import ParameterDescription
    from proteoscope.gui.help.help_window import HelpWindow
    from proteoscope.gui.window_frame import WindowFrame

__all__ = ["Assistance"]

Dialog = TypeVar("Dialog", bound=QDialog)


class Assistance(QObject):
    """Opens the help of a window at the place that fits, its tour, and what a report or a citation needs.

    Parameters
    ----------
    window : whose help it is. menu : gets the actions, above those that it has.
    """

    def __init__(self, window: WindowFrame, menu: QMenu) -> None:
        super().__init__(window)
        self._window = window
        self.samples = Samples(window)
        self.tour: Tour | None = None
        first = menu.actions()[0] if menu.actions() else None
        for text, keys, opened in (
            ("&Help for this place", QKeySequence(QKeySequence.StandardKey.HelpContents), self.show_here),
            ("&Glossary of columns and settings", None, lambda: self.help_window().show_glossary()),
            ("&Keyboard shortcuts", None, lambda: self.help_window().show_shortcuts()),
            ("&Tour of the window", None, self.start_tour),
            ("Try a &sample", None, None),
            ("&Report a fault…", None, self.report_fault),
            ("How to &cite…", None, self.show_citations),
        ):
            if opened is None:
                menu.insertMenu(first, self._samples_menu(text, menu))  # type: ignore[arg-type]
                continue
            action = QAction(text, window)
            if keys is not None:
                action.setShortcut(keys)
                # Dialogs that stay open beside the window have it too.
                action.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
                self.help_action = action
            action.triggered.connect(lambda _=False, opened=opened: opened())
            menu.insertAction(first, action)  # type: ignore[arg-type]
        menu.insertSeparator(first)  # type: ignore[arg-type]

    def show_here(self) -> HelpWindow:
        """Open the help at the place that fits what has the keyboard."""
        window, focused = self._window, QApplication.focusWidget() or self._window.focusWidget()
        shown = window.pages.currentWidget()
        is_of_search = shown is not None and window.search.has_page(shown)
        here = window.search.search.manual if is_of_search else getattr(type(shown), "MANUAL", "")
        place = place_of(focused, list(window.searches.values()), here)
        made = self.help_window()
        made.show_place(place)
        return made

    def show_setting(self, page: str, setting: ParameterDescription) -> HelpWindow:
        """Open the help at a setting of a form whose page of the manual this is."""
        made = self.help_window()
        made.show_place(Place(page, setting.title, setting.help))
        return made

    def help_window(self) -> help.help_window.HelpWindow:
        """The help, opened where it is not."""
        made = self._window.findChild(help.help_window.HelpWindow)
        if made is None:
            terms = views.glossary.glossary(one.search for one in self._window.searches.values())
            made = help.help_window.HelpWindow(terms, partial(shortcuts_of, self._window), self._window)
        return _shown(made)

    def start_tour(self) -> None:
        """Go through the window step by step, from the beginning; that it was seen is remembered."""
        if self.tour is not None:
            self.tour.go(0)
            return
        self.tour = Tour(self._steps(), self._window)
        self.tour.over.connect(self._end_tour)

    def begin_tour_once(self) -> None:
        """Start the tour for somebody who has not seen it."""
        if not self._window.settings.values.tour_seen:
            self.start_tour()

    def report_fault(self) -> None:
        """Open the dialog with what a report of a fault needs."""
        devices = [device_text(device, QLocale.c()) for device in self._window.devices.devices]
        made = self._window.findChild(help.text_dialogs.FaultDialog)
        _shown(made or help.text_dialogs.FaultDialog(devices, self._window.log.plain_text(), self._window))

    def show_citations(self) -> None:
        """Open the dialog that says how to cite."""
        _shown(self._window.findChild(help.text_dialogs.CitingDialog) or help.text_dialogs.CitingDialog(self._window))

    def _end_tour(self) -> None:
        self.tour = None
        self._window.settings.values.tour_seen = True
        self._window.settings.save()

    def _samples_menu(self, title: str, parent: QWidget) -> QMenu:
        menu = QMenu(title, parent)
        for pages in self._window.searches.values():
            if pages.search.demo is not None:
                name = pages.search.name
                menu.addAction(f"{name[:1].upper()}{name[1:]}", partial(self.samples.begin, pages.search.kind))
        return menu

    def _steps(self) -> list[Step]:
        window = self._window
        return [
            Step(
                "What is your question?",
                "Each question has a button that opens its form. Files can also be dropped anywhere on the window: they find their form.",
                lambda: window.start_page if window.start_page.isVisible() else window.pages,
            ),
            Step(
                "No data at hand?",
                "Every search has a sample that ships with the program. It fills the form; then press Run.",
                lambda: next(iter(window.start_page.sample_buttons.values()), None),
            ),
            Step(
                "From a spectrum to its fold",
                "This sample goes the whole way: spectra, the peptides and modifications in them, their protein, its place on a structure. "
                "What is chosen in a table, the coverage map, the alignment or in 3D lights up in all; the menu of a PSM leads there too.",
                lambda: window.start_page.sample_buttons.get("evidence"),
            ),
            Step(
                "Projects keep what was done",
                "A project is a folder. Its runs are listed here with their notes; several can be compared.",
                lambda: window.dock_project,
            ),
            Step(
                "Runs wait for nobody",
                "Jobs run in the background and can be cancelled, or dragged to another place of the queue (View, Jobs).",
                lambda: window.dock_jobs if window.dock_jobs.isVisible() else window.menuBar(),
            ),
            Step(
                "What computes",
                "Graphics cards are used where there are usable ones; click here to see why not.",
                lambda: window.device_button,
            ),
            Step(
                "F1 knows where you are",
                "On a setting or a column it says what that means, elsewhere it opens the manual. This tour is in the menu Help.",
                window.menuBar,
            ),
        ]


def _shown(dialog: Dialog) -> Dialog:
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog
