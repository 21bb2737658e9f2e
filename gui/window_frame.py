"""Base class of the main window: message bar, pages, docks and status bar, and switching between pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMoveEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QMainWindow, QStackedWidget, QWidget

from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.device_page import DeviceButton, DevicePage
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.dialogs import CrashDialog, report_text
from proteoscope.gui.docks import AutomaticDock, add_dock
from proteoscope.gui.drag_and_drop import dropped_paths, has_paths
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.icons import icon
from proteoscope.gui.job_dock import JobDock
from proteoscope.gui.layouts import in_column
from proteoscope.gui.log_dock import LogDock
from proteoscope.gui.message_bar import MessageBar
from proteoscope.gui.project_pane import ProjectPane
from proteoscope.gui.searches import SearchPages, search_pages
from proteoscope.gui.selection_page import SelectionPage
from proteoscope.gui.start_page import StartPage
from proteoscope.gui.status_bar import StatusBar
from proteoscope.gui.task_queue import TaskQueue
from proteoscope.gui.tasks import CalibrationTask
from proteoscope.gui.undo import UndoStack

if TYPE_CHECKING:
    from proteoscope.gui.forms.search_form import SearchForm
    from proteoscope.gui.results.run_view import RunView
    from proteoscope.gui.settings import SettingsFile

_MESSAGE_MS = 8_000
_PART_FOR_MESSAGES = 0.6
"""Maximum width of the message bar as a fraction of the width of the status bar."""


class WindowFrame(QMainWindow):
    """Widgets of the window and the pages of all searches; the derived class `MainWindow` handles projects.

    Signals
    -------
    page_shown
        Another page is shown.
    files_dropped
        Dropped paths, number of dropped URLs that are not local files, and the target widget or None.
    frame_changed
        The window was moved or resized.
    """

    settings: SettingsFile

    page_shown = Signal()
    files_dropped = Signal(list, int, object)
    frame_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.deferred = DeferredTasks(self)
        self.undo_stack = UndoStack(self)
        self.log = LogDock()
        self.tasks = TaskQueue(self.log, self)
        self.queue, self.bridge = self.tasks.jobs, self.tasks.bridge
        self.devices = DeviceDetector(self)
        self.message_bar = MessageBar()
        self.project_pane = ProjectPane()
        self.jobs = JobDock(self.bridge, self.tasks)
        self.pages = QStackedWidget()
        self.progress_text = QLabel(textFormat=Qt.TextFormat.PlainText)
        self.device_button = DeviceButton(self.devices)
        self.device_page = DevicePage(self.devices, self.bridge, self.tasks.running)
        self.inspector = FileInspector(self)
        self.searches = search_pages(self.inspector, self.devices, self)
        self.search = next(iter(self.searches.values()))
        """The current search, to which the menu actions for forms, runs and results apply."""
        self._left_results: RunView | None = None
        """The results view shown last."""
        self.start_page = StartPage(search.search for search in self.searches.values())
        self.selection_page = SelectionPage(self.project_pane.compare_action)
        self.pages.addWidget(self.start_page)
        self.pages.addWidget(self.selection_page)
        self.pages.addWidget(self.device_page)
        self._lay_out()
        self.jobs.cancel_requested.connect(self.queue.cancel)
        self.device_page.cancel_requested.connect(self.queue.cancel)
        self.device_page.calibration_requested.connect(self._calibrate)
        self.jobs.moved.connect(self.queue.move)
        self.bridge.message.connect(lambda _, text: self.show_briefly(text))
        self.job_strip = AutomaticDock(self.dock_jobs, lambda: self.queue.is_idle)
        self.tasks.queued.connect(self.job_strip.begin)
        self.bridge.finished.connect(self.job_strip.end)
        self.tasks.progressed.connect(self.progress_text.setText)

    def open_project(self, folder: Path) -> None:
        """Open a project and show the results of its last run."""
        raise NotImplementedError

    # Pages

    @property
    def form(self) -> SearchForm:
        """Form of the current search."""
        return self.search.form

    @property
    def results(self) -> RunView:
        """Results view of the current search."""
        return self.search.results

    def made_forms(self) -> list[SearchForm]:
        """Return the forms created so far."""
        return [search.made_form for search in self.searches.values() if search.made_form is not None]

    def made_results(self) -> list[RunView]:
        """Return the results views created so far."""
        return [search.made_results for search in self.searches.values() if search.made_results is not None]

    def searches_from_here(self) -> list[SearchPages]:
        """Return all searches, starting with the current one."""
        return [self.search, *(search for search in self.searches.values() if search is not self.search)]

    def new_search(self, kind: str) -> None:
        """Empty the form of a search and show it."""
        self.searches[kind].form.empty_for_new_search()
        self.show_search_form(kind)

    def show_search_form(self, kind: str) -> None:
        """Show the form of a search with its current content."""
        self.deferred.finish()
        self.show_page(self.searches[kind].form)

    def show_devices(self) -> None:
        """Show the device page."""
        self.show_page(self.device_page)

    def show_form(self) -> None:
        """Show the form of the current search."""
        self.deferred.finish()
        self.show_page(self.form)

    def show_results(self) -> None:
        """Show the results of the current search or, if it has no results, the results view that was shown last."""
        # Otherwise results of the previous project could be shown.
        self.deferred.finish()
        made = self.search.made_results
        is_empty = made is None or not (made.is_busy or made.run is not None)
        self.show_page(self._left_results if is_empty and self._left_results is not None else self.results)

    def show_page(self, page: QWidget) -> None:
        """Show a page; if it belongs to a search, this becomes the current search."""
        self.search = next((search for search in self.searches.values() if search.has_page(page)), self.search)
        left = self.pages.currentWidget()
        self._left_results = next(
            (made_result for made_result in self.made_results() if made_result is left and made_result.run is not None), self._left_results
        )
        self.pages.setCurrentWidget(page)
        self.page_shown.emit()

    # Messages

    def show_briefly(self, text: str) -> None:
        """Show a transient message in the status bar."""
        self.statusBar().showMessage(text, _MESSAGE_MS)

    def show_error(self, text: str) -> None:
        """Show an error in the message bar and in the log."""
        self.message_bar.show_message(text, "wrong", "Show log", self.show_log)
        self.log.add(text, "error")

    def show_unexpected_error(self, summary: str, error_report: str) -> None:
        """Open a dialog about an unexpected error of the program, with a bug report to copy."""
        self.log.add(f"{summary}\n{error_report}", "error")
        if any(dialog.summary == summary for dialog in self.findChildren(CrashDialog)):
            # A repeated error is shown only once; the log contains each occurrence.
            return
        CrashDialog(summary, report_text(error_report, self.log.plain_text()), self).open()

    def show_log(self) -> None:
        """Show the log."""
        self.dock_log.show()
        self.dock_log.raise_()

    # Events of Qt

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().resizeEvent(event)
        # The rest of the status bar shows brief messages, progress and devices.
        self.message_bar.setMaximumWidth(round(_PART_FOR_MESSAGES * self.width()))
        self.frame_changed.emit()

    def moveEvent(self, event: QMoveEvent) -> None:  # noqa: N802, D102 - Qt's name
        super().moveEvent(event)
        self.frame_changed.emit()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802, D102 - Qt's name
        if has_paths(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802, D102 - Qt's name
        event.acceptProposedAction()
        paths, n_others = dropped_paths(event.mimeData())
        self.files_dropped.emit(paths, n_others, self.childAt(event.position().toPoint()))

    # Construction

    def _calibrate(self, task: CalibrationTask) -> None:
        self.device_page.follow(self.tasks.add(task), task.device)

    def _lay_out(self) -> None:
        self.setWindowTitle("Proteoscope")
        self.setWindowIcon(icon("proteoscope"))
        self.setAcceptDrops(True)
        self.setDockOptions(QMainWindow.DockOption.AnimatedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        centre = QWidget()
        in_column((self.pages, 1), on=centre, spacing=0)
        self.setCentralWidget(centre)
        self.dock_project = add_dock(self, "Project", self.project_pane, Qt.DockWidgetArea.LeftDockWidgetArea)
        self.dock_jobs = add_dock(self, "Jobs", self.jobs, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.dock_log = add_dock(self, "Log", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.tabifyDockWidget(self.dock_jobs, self.dock_log)
        self.dock_log.hide()
        self.resizeDocks([self.dock_project], [280], Qt.Orientation.Horizontal)
        self.resizeDocks([self.dock_jobs], [150], Qt.Orientation.Vertical)
        self.setStatusBar(StatusBar(self))
        self.statusBar().addPermanentWidget(self.message_bar, 1)
        # Its space is reserved, so that nothing moves when a message appears.
        self.statusBar().setMinimumHeight(self.message_bar.height() + 3)
        self.statusBar().addPermanentWidget(self.progress_text)
        self.statusBar().addPermanentWidget(self.device_button)
