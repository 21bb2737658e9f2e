"""What the window is made of: message bar and pages in the middle, docks around them, the status bar; and what is told in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from gui.device_page import DeviceButton, DevicePage
from gui.devices import DeviceSurvey
from gui.dialogs import CrashDialog, report_text
from gui.docks import add_dock
from gui.icons import icon
from gui.job_dock import JobDock
from gui.log_dock import LogDock
from gui.message_bar import MessageBar
from gui.project_pane import ProjectPane
from gui.task_queue import TaskQueue
from gui.tasks import CalibrationTask

if TYPE_CHECKING:
    from gui.searches import SearchPages
    from gui.settings import SettingsFile
    from gui.start_page import StartPage

__all__ = ["WindowFrame"]

_MESSAGE_MS = 8_000


class WindowFrame(QMainWindow):
    """The parts and their places. It does nothing with a project: the window does, and has the searches, the one that the user is at, and
    the first page besides."""

    settings: SettingsFile
    searches: dict[str, SearchPages]
    search: SearchPages
    start_page: StartPage

    def __init__(self) -> None:
        super().__init__()
        self.log = LogDock()
        self.tasks = TaskQueue(self.log, self)
        self.queue, self.bridge = self.tasks.jobs, self.tasks.bridge
        self.devices = DeviceSurvey(self)
        self.message_bar = MessageBar()
        self.project_pane = ProjectPane()
        self.jobs = JobDock(self.bridge, self.tasks)
        self.pages = QStackedWidget()
        self.progress_text = QLabel()
        self.progress_text.setTextFormat(Qt.TextFormat.PlainText)
        self.device_button = DeviceButton(self.devices)
        self.device_page = DevicePage(self.devices, self.bridge, self.tasks.running)
        self._lay_out()
        self.jobs.cancel_asked.connect(self.queue.cancel)
        self.device_page.cancel_asked.connect(self.queue.cancel)
        self.device_page.calibration_asked.connect(self._calibrate)
        self.jobs.moved.connect(self.queue.move)
        self.bridge.message.connect(lambda _, text: self.tell_briefly(text))
        self.tasks.queued.connect(self._show_jobs)
        self.tasks.progressed.connect(self.progress_text.setText)

    def open_project(self, folder: Path) -> None:
        """Open a project, and show the results of its last run."""
        raise NotImplementedError

    def new_search(self, kind: str) -> None:
        """Show the form of a kind of search."""
        raise NotImplementedError

    def tell_briefly(self, text: str) -> None:
        """Tell what need not be read, for some seconds."""
        self.statusBar().showMessage(text, _MESSAGE_MS)

    def tell_error(self, text: str) -> None:
        """Tell an error that the user can mend: above the page and in the log."""
        self.message_bar.tell(text, "wrong", "Show log", self.show_log)
        self.log.add(text, "error")

    def tell_fault(self, summary: str, error_report: str) -> None:
        """Tell a fault of the program, with a report to copy."""
        self.log.add(f"{summary}\n{error_report}", "error")
        if any(dialog.summary == summary for dialog in self.findChildren(CrashDialog)):
            # What happens again and again is told once; the log has it all.
            return
        CrashDialog(summary, report_text(error_report, self.log.plain_text()), self).open()

    def show_log(self) -> None:
        """Bring the log to the front."""
        self.dock_log.show()
        self.dock_log.raise_()

    def _calibrate(self, task: CalibrationTask) -> None:
        self.device_page.follow(self.tasks.add(task), task.device)

    def _show_jobs(self) -> None:
        self.dock_jobs.show()
        self.dock_jobs.raise_()

    def _lay_out(self) -> None:
        self.setWindowTitle("Proteoscope")
        self.setWindowIcon(icon("proteoscope"))
        self.setAcceptDrops(True)
        self.setDockOptions(QMainWindow.DockOption.AnimatedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.message_bar)
        column.addWidget(self.pages, 1)
        self.setCentralWidget(centre)
        self.dock_project = add_dock(self, "Project", self.project_pane, Qt.DockWidgetArea.LeftDockWidgetArea)
        self.dock_jobs = add_dock(self, "Jobs", self.jobs, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.dock_log = add_dock(self, "Log", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.tabifyDockWidget(self.dock_jobs, self.dock_log)
        self.dock_log.hide()
        self.resizeDocks([self.dock_project], [280], Qt.Orientation.Horizontal)
        self.resizeDocks([self.dock_jobs], [150], Qt.Orientation.Vertical)
        self.statusBar().addPermanentWidget(self.progress_text)
        self.statusBar().addPermanentWidget(self.device_button)
