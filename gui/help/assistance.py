"""Help menu and the F1 key."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QLocale, QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget

from proteoscope.engine import views
from proteoscope.gui import help
from proteoscope.gui.devices import device_text
from proteoscope.gui.help.help_targets import HelpTarget, help_target
from proteoscope.gui.help.samples import Samples
from proteoscope.gui.help.shortcuts import shortcuts_of
from proteoscope.gui.help.tour import Step, Tour

if TYPE_CHECKING:
    from proteoscope.engine.entry import SampleData
    from proteoscope.engine.parameters import ParameterDescription
    from proteoscope.gui.help.help_window import HelpWindow
    from proteoscope.gui.window_frame import WindowFrame

Dialog = TypeVar("Dialog", bound=QDialog)

SAMPLE_TITLES: dict[SampleData, str] = {"measured": "measured runs", "simulated": "simulated TMT run"}
"""Menu texts of sample data, for searches with several samples."""


class Assistance(QObject):
    """Help actions: help for the focused widget, the tour, and the dialogs for bug reports and citations.

    Parameters
    ----------
    window : WindowFrame
        Main window to which the help refers.
    menu : QMenu
        Help menu, to which the actions are added above the existing actions.
    """

    def __init__(self, window: WindowFrame, menu: QMenu) -> None:
        super().__init__(window)
        self._window = window
        self.samples = Samples(window)
        self.tour: Tour | None = None
        first = menu.actions()[0] if menu.actions() else None
        for text, keys, opened in (
            ("&Context help", QKeySequence(QKeySequence.StandardKey.HelpContents), self.show_here),
            ("&Glossary of columns and settings", None, lambda: self.help_window().show_glossary()),
            ("&Keyboard shortcuts", None, lambda: self.help_window().show_shortcuts()),
            ("&Tour of the window", None, self.start_tour),
            ("Use &sample data", None, None),
            ("&Report a bug…", None, self.report_bug),
            ("How to &cite…", None, self.show_citations),
        ):
            if opened is None:
                menu.insertMenu(first, self._samples_menu(text, menu))  # type: ignore[arg-type]
                continue
            action = QAction(text, window)
            if keys is not None:
                action.setShortcut(keys)
                # F1 also works in separate dialogs.
                action.setShortcutContext(Qt.ShortcutContext.ApplicationShortcut)
                self.help_action = action
            action.triggered.connect(lambda _=False, opened=opened: opened())
            menu.insertAction(first, action)  # type: ignore[arg-type]
        menu.insertSeparator(first)  # type: ignore[arg-type]

    def show_here(self) -> HelpWindow:
        """Open the help for the focused widget."""
        window, focused = self._window, QApplication.focusWidget() or self._window.focusWidget()
        shown = window.pages.currentWidget()
        is_search_page = shown is not None and window.search.has_page(shown)
        here = window.search.search.manual if is_search_page else getattr(type(shown), "MANUAL", "")
        position = help_target(focused, list(window.searches.values()), here)
        made = self.help_window()
        made.show_place(position)
        return made

    def show_setting(self, page: str, setting: ParameterDescription) -> HelpWindow:
        """Open the help at the glossary term of a setting. `page` is the manual page of its form."""
        made = self.help_window()
        made.show_place(HelpTarget(page, setting.title, setting.help))
        return made

    def help_window(self) -> help.help_window.HelpWindow:
        """Return the help window, which is created if necessary."""
        made = self._window.findChild(help.help_window.HelpWindow)
        if made is None:
            terms = views.glossary.glossary(search.search for search in self._window.searches.values())
            made = help.help_window.HelpWindow(terms, partial(shortcuts_of, self._window), self._window)
        return _shown(made)

    def start_tour(self) -> None:
        """Start the tour, and store in the settings that it was seen."""
        if self.tour is not None:
            self.tour.go(0)
            return
        self.tour = Tour(self._steps(), self._window)
        self.tour.over.connect(self._end_tour)

    def begin_tour_once(self) -> None:
        """Start the tour unless the user has seen it."""
        if not self._window.settings.values.tour_seen:
            self.start_tour()

    def report_bug(self) -> None:
        """Open the dialog for a bug report."""
        devices = [device_text(device, QLocale.c()) for device in self._window.devices.devices]
        made = self._window.findChild(help.text_dialogs.BugReportDialog)
        _shown(made or help.text_dialogs.BugReportDialog(devices, self._window.log.plain_text(), self._window))

    def show_citations(self) -> None:
        """Open the dialog with citations."""
        _shown(self._window.findChild(help.text_dialogs.CitingDialog) or help.text_dialogs.CitingDialog(self._window))

    def _end_tour(self) -> None:
        self.tour = None
        self._window.settings.values.tour_seen = True
        self._window.settings.save()

    def _samples_menu(self, title: str, parent: QWidget) -> QMenu:
        menu = QMenu(title, parent)
        for pages in self._window.searches.values():
            name, demos = pages.search.name, pages.search.demos
            for demo in demos:
                data = f" ({SAMPLE_TITLES[demo.data]})" if len(demos) > 1 else ""
                menu.addAction(f"{name[:1].upper()}{name[1:]}{data}", partial(self.samples.begin, pages.search.kind, demo.data))
        return menu

    def _steps(self) -> list[Step]:
        window = self._window
        return [
            Step(
                "What is your question?",
                "The cards lead to the forms of the searches. You can also drop files anywhere on the window to open their form.",
                lambda: window.start_page if window.start_page.isVisible() else window.pages,
            ),
            Step(
                "Sample data",
                "Every search comes with sample data that fill its form; then press Run. They are three measured runs of albumin, and a "
                "simulated run of two conditions in which known proteins change. The menu Help lists them all.",
                lambda: window.start_page.first_sample_button,
            ),
            Step(
                "From spectrum to structure",
                "These sample data have every stage: spectra, peptides and their modifications, the protein, and its structure. "
                "A selection in a table, the coverage map, the alignment or the 3D view is highlighted in the others. "
                "The context menu of a PSM also opens the structure of its protein.",
                lambda: window.start_page.sample_buttons.get("evidence"),
            ),
            Step(
                "Projects",
                "A project is a folder. Its runs are listed here with their notes; several can be compared.",
                lambda: window.dock_project,
            ),
            Step(
                "Background jobs",
                "Jobs run in the background. They can be cancelled, or dragged to another position in the queue (View, Jobs).",
                lambda: window.dock_jobs if window.dock_jobs.isVisible() else window.menuBar(),
            ),
            Step(
                "Devices",
                "Usable GPUs are used automatically; click here for details.",
                lambda: window.device_button,
            ),
            Step(
                "Help with F1",
                "F1 explains the focused setting or column; elsewhere it opens the manual. This tour is in the Help menu.",
                window.menuBar,
            ),
        ]


def _shown(dialog: Dialog) -> Dialog:
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog
