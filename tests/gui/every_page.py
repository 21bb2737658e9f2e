"""Every page, tab and dialog of the window, one after the other, for pictures and for checks of the layout."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QDialog, QScrollArea, QTabWidget, QWidget

from proteoscope.engine.execution.devices import Device
from proteoscope.engine.jobs import Progress, ProgressEvent
from proteoscope.engine.project import Project
from proteoscope.engine.searches import EXPERIMENT_KINDS, SEARCHES
from proteoscope.gui.experiments.add_dialog import AddRunsDialog
from proteoscope.gui.tasks import WritingTask
from proteoscope.gui.window import MainWindow
from tests.engine.views.experiment_projects import PATTERN, project_with_experiment
from tests.engine.views.result_projects import PARAMETERS

__all__ = ["LONG_TEXT", "EveryPage", "Page", "sample_gpus"]

LONG_TEXT = (
    "/data/proteomics/2031/HeLa fractions of the second cohort/run_07.mzML, spectrum scan=4811: the peak list is cut off in the "
    "middle. Copy or convert the file again, or leave it out of the search; the other files of this folder are complete."
)
"""A message that is longer than the window is wide."""


class Page(NamedTuple):
    """A shown page: its name, and the window or dialog."""

    name: str
    widget: QWidget


class EveryPage:
    """Shows every page when iterated over. Each page stays until the next one is requested.

    Parameters
    ----------
    window : MainWindow
        Window to take through its pages.
    project_of : callable
        Returns the folder of a project with a finished run of a kind.
    settle : callable
        Runs the event loop while a condition, passed as a function, holds.
    compared : Path or None
        Folder of a project with several identifications, which are compared.
    """

    def __init__(
        self,
        window: MainWindow,
        project_of: Callable[[str], Path],
        settle: Callable[[Callable[[], bool]], None],
        compared: Path | None = None,
    ) -> None:
        self._window, self._project_of, self._settle, self._compared = window, project_of, settle, compared
        self._n_shown: Counter[str] = Counter()
        """Number of tabs shown so far by their names."""

    def __iter__(self) -> Iterator[Page]:
        yield from self._start()
        for search in SEARCHES:
            yield from self.form(search.kind)
        for search in SEARCHES:
            yield from self.results(search.kind)
        if self._compared is not None:
            # Another method of quantification has other tabs.
            yield from self.results("quantify", self._compared, "label-free")
        yield from self._structures()
        yield from self._panes()
        yield from self._runs()
        yield from self.experiment()
        yield from self._devices()
        yield from self._messages()
        yield from self._jobs()
        yield from self._dialogs()
        yield from self._help()

    def form(self, kind: str) -> Iterator[Page]:
        """Show the form of a search: empty, filled with sample data, and with all settings, from the top to the end."""
        window = self._window
        search = window.searches[kind].search
        window.new_search(kind)
        form = window.form
        self._rest()
        yield Page(f"form-{kind}-empty", window)
        demo = search.demo
        if demo is not None and demo.after:
            # The sample of the quantification needs a run of its own.
            project = next(
                project for project in map(Project.open, map(self._project_of, (kind, demo.after))) if _runs(project, demo.after)
            )
            window.open_project(project.folder)
            self._rest()
            window.show_follow_up_search(kind, _last_run(project, demo.after))
            form.take_sample(demo.data)
        else:
            window.try_sample(kind)
        self._rest(lambda: form.estimate.is_busy or not form.run_button.isEnabled())
        yield Page(f"form-{kind}-sample", window)
        form.parameters.unfold()
        self._rest()
        for at, page in enumerate(_scrolled(form.scroll_area)):
            if page:
                self._rest()
                yield Page(f"form-{kind}-all-{at}", window)
        form.scroll_area.verticalScrollBar().setValue(0)
        form.parameters.unfold(False)
        window.message_bar.clear()

    def results(self, kind: str, folder: Path | None = None, about: str = "") -> Iterator[Page]:
        """Show the results of a search: the first row of each table, and every tab.

        Parameters
        ----------
        kind : str
            Kind of the search.
        folder : Path or None
            Folder of the project, if it is not the one for this kind.
        about : str
            Name of the page, to distinguish it from others of this kind.
        """
        window, name = self._window, "-".join(filter(None, ("results", kind, about)))
        self._open(kind, folder)
        view = window.results
        for panel in view.panels.values():
            if panel.isVisible() and panel.model.rowCount():
                panel.view.choose(0)
                self._rest(lambda: view.is_busy)
        yield Page(name, window)
        yield from self._tabs(name, view, lambda: view.is_busy)
        view.header.about_button.setChecked(True)
        self._rest(lambda: view.is_busy)
        yield Page(f"{name}-about", window)
        view.header.about_button.setChecked(False)

    def _start(self) -> Iterator[Page]:
        window = self._window
        window.show_page(window.start_page)
        self._rest()
        yield Page("start", window)
        window.start_page.more_button.setChecked(True)
        self._rest()
        yield Page("start-more", window)
        window.start_page.more_button.setChecked(False)
        window.show_page(window.searches["identify"].results)
        self._rest()
        yield Page("results-none", window)

    def _structures(self) -> Iterator[Page]:
        """Show superposed structures."""
        window = self._window
        self._open("structures")
        view: Any = window.results
        view.hits.view.choose(1)
        view.structures_action.setChecked(True)
        self._rest(lambda: view.is_busy)
        yield Page("results-structures-3d", window)
        yield from self._tabs("results-structures-3d", view.structures, lambda: view.is_busy)
        view.structures_action.setChecked(False)

    def _panes(self) -> Iterator[Page]:
        """Show a maximised, a detached and a collapsed pane."""
        window = self._window
        self._open("quantify")
        view = window.results
        pane = next(pane for pane in view.panes if pane.title == "Figures")
        pane.toggle_maximised()
        self._rest(lambda: view.is_busy)
        yield Page("pane-maximised", window)
        pane.restore()
        pane.detach()
        self._rest(lambda: view.is_busy)
        yield Page("pane-detached", pane.content.window())
        yield Page("pane-detached-rest", window)
        pane.attach()
        for collapsed in view.panes:
            collapsed.set_collapsed(collapsed.title in ("Figures", "Details"))
        self._rest()
        yield Page("pane-collapsed", window)
        for collapsed in view.panes:
            collapsed.set_collapsed(False)

    def _runs(self) -> Iterator[Page]:
        """Show the details of a run, several selected runs and none, and a comparison of runs."""
        window = self._window
        for kind in ("identify", "quantify"):
            self._open(kind)
            window.project_pane.about_action.trigger()
            page = window.run_actions.page
            self._rest(lambda page=page: window.run_actions.is_busy or window.pages.currentWidget() is not page)
            yield Page(f"run-{kind}", window)
            yield from self._tabs(f"run-{kind}", page, lambda: window.run_actions.is_busy)
        for name, select in (("several", window.project_pane.runs.selectAll), ("none", window.project_pane.runs.clearSelection)):
            select()
            self._rest()
            yield Page(f"selection-{name}", window)
        if self._compared is None:
            return
        window.open_project(self._compared)
        self._rest(lambda: window.results.is_busy)
        project = window.project_pane.project
        assert project is not None
        identified = [run for run in project.runs() if run.kind in ("identify", "import") and run.status == "done"]
        window.compare_runs(identified[:3])
        view = window.comparisons.view
        assert view is not None
        self._rest(lambda: view.is_busy)
        yield Page("comparison", window)
        yield from self._tabs("comparison", view, lambda: view.is_busy)

    def experiment(self) -> Iterator[Page]:
        """Show an experiment: its runs, in groups, several selected, searched and failed, its quality, and the forms and pages it opens."""
        window = self._window
        names = [f"{condition}_{number}" for condition in ("control", "treated") for number in range(1, 13)]
        with TemporaryDirectory() as folder:
            other = {**PARAMETERS, "fdr": 0.05}
            project, _ = project_with_experiment(Path(folder) / "cohort", names, 21, last_parameters=other)
            window.open_project(project.folder)
            page = window.experiment_actions.page
            self._rest(lambda: page.is_busy)
            yield Page("experiment", window)
            page.filters.group.setCurrentIndex(1)
            page.filters.filterChanged.emit()
            self._rest(lambda: page.is_busy)
            page.groups.view.choose(1)
            self._rest(lambda: page.is_busy)
            yield Page("experiment-groups", window)
            page.filters.reset()
            self._rest(lambda: page.is_busy)
            page.runs.view.selectAll()
            page.failures = {names[-1]: LONG_TEXT}
            page.follow(ProgressEvent("Scoring spectra of treated_10.mgf", 37, 100, 4.0), "Running")
            page.refresh()
            self._rest(lambda: page.is_busy)
            yield Page("experiment-searched", window)
            page.follow(None, "")
            yield from self._tabs("experiment", page, lambda: page.is_busy)
            window.experiment_actions.compare([names[0], names[20]])
            view = window.comparisons.view
            assert view is not None
            self._rest(lambda: view.is_busy)
            yield Page("experiment-comparison", window)
            window.show_experiment()
            self._rest(lambda: page.is_busy)
            for kind in EXPERIMENT_KINDS:
                window.experiment_actions.show_form(kind)
                self._rest()
                yield Page(f"experiment-form-{kind}", window)
                window.form.empty_for_new_search()
            window.experiment_actions.quantify()
            self._rest(lambda: window.form.designs["design"].is_busy)
            yield Page("experiment-form-quantify", window)
            window.form.empty_for_new_search()
            window.show_experiment()
            page.add_button.click()
            dialog = window.findChild(AddRunsDialog)
            assert dialog is not None
            dialog.spectra.add([Path(folder) / f"{name}.mgf" for name in names[:5]])
            dialog.pattern.setText(PATTERN)
            self._rest()
            yield Page("dialog-add-runs", dialog)
            dialog.tabs.setCurrentIndex(1)
            self._rest()
            yield Page("dialog-add-runs-table", dialog)
            dialog.close()
            window.comparisons.close()
            window.open_project(self._project_of("identify"))
            self._rest(lambda: window.results.is_busy)

    def _devices(self) -> Iterator[Page]:
        """Show the devices of this machine, and of one with two GPUs."""
        window = self._window
        devices, page = window.devices, window.device_page
        window.show_devices()
        self._rest(lambda: not devices.is_known or page.is_busy)
        yield Page("devices", window)
        detected = devices.devices
        devices.devices = (detected[0], *sample_gpus())
        devices.changed.emit()
        self._rest(lambda: page.is_busy)
        yield Page("devices-gpus", window)
        devices.devices = detected
        devices.changed.emit()
        self._rest(lambda: page.is_busy)

    def _messages(self) -> Iterator[Page]:
        """Show an error, a warning, a message with a button, a brief message, and the log."""
        window = self._window
        window.show_page(window.start_page)
        window.show_error(LONG_TEXT)
        self._rest()
        yield Page("message-error", window)
        window.message_bar.show_message("Wrote albumin.msp (46 entries)", "good", "Search spectra in it")
        window.show_briefly(LONG_TEXT)
        self._rest()
        yield Page("message-two", window)
        window.message_bar.clear()
        window.show_briefly(LONG_TEXT)
        self._rest()
        yield Page("message-brief", window)
        window.statusBar().clearMessage()
        window.show_log()
        window.log.add("3 of 4,811 spectra have no peaks and are left out", "warning")
        self._rest()
        yield Page("log", window)
        window.dock_log.hide()

    def _jobs(self) -> Iterator[Page]:
        """Show a running, a queued and a finished job."""
        window = self._window
        tasks = [_HeldTask(title) for title in ("Identify BSA1.mzML.gz", "Convert run_07_replicate_3.mzML to MGF", "Export albumin.msp")]
        tasks[0].is_over.set()
        jobs = [window.tasks.add(task) for task in tasks]
        self._rest(lambda: jobs[1].state != "running")
        self._settle(lambda: window.progress_text.text() == "")
        yield Page("jobs", window)
        for task in tasks:
            task.is_over.set()
        self._rest(lambda: not window.queue.is_idle)
        yield Page("jobs-over", window)
        window.jobs.clear_finished()
        window.message_bar.clear()
        window.statusBar().clearMessage()

    def _dialogs(self) -> Iterator[Page]:
        from proteoscope.gui.conversion_dialog import ConversionDialog
        from proteoscope.gui.database_dialog import DatabaseDialog
        from proteoscope.gui.dialogs import CloseDialog, CrashDialog, LostProjectDialog, StructuresDialog, about, report_text
        from proteoscope.gui.forms.modification_picker import ModificationPicker
        from proteoscope.gui.forms.workers_dialog import Workers, WorkersDialog
        from proteoscope.gui.help.text_dialogs import BugReportDialog, CitingDialog
        from proteoscope.gui.plots.page_choice import FigureDialog
        from proteoscope.gui.prediction_dialog import PredictionDialog
        from proteoscope.gui.structure.image_export import PictureDialog

        window = self._window
        lost = Path("/data/proteomics/2031/HeLa fractions of the second cohort")
        report = report_text("RuntimeError: too many peaks", "12:00:00  started")
        made: tuple[tuple[str, Callable[[], object]], ...] = (
            ("modifications", lambda: ModificationPicker("Variable modifications", window)),
            ("workers", lambda: WorkersDialog(Workers(), window)),
            ("figure", lambda: FigureDialog(window)),
            ("picture", lambda: PictureDialog(window.size(), window, is_turntable=False)),
            ("turntable", lambda: PictureDialog(window.size(), window, is_turntable=True)),
            ("crash", lambda: CrashDialog("Identify BSA1.mzML.gz failed: too many peaks", report, window)),
            ("close", lambda: CloseDialog(2, window)),
            ("lost-project", lambda: LostProjectDialog(lost, window)),
            ("structures", lambda: StructuresDialog([str(lost / name) for name in "abcde"], window)),
            ("about", lambda: about(window)),
            ("convert", lambda: self._opened(ConversionDialog, window.dialogs.convert_spectra)),
            ("database", lambda: self._opened(DatabaseDialog, window.dialogs.new_database)),
            ("predict", lambda: self._opened(PredictionDialog, window.dialogs.predict_library)),
            ("bug-report", lambda: self._opened(BugReportDialog, window.assistance.report_bug)),
            ("cite", lambda: self._opened(CitingDialog, window.assistance.show_citations)),
        )
        for name, make in made:
            dialog = make()
            assert isinstance(dialog, QDialog)
            dialog.show()
            self._rest(lambda dialog=dialog: getattr(dialog, "is_busy", False))
            yield Page(f"dialog-{name}", dialog)
            if isinstance(dialog, WorkersDialog):
                for method, button in dialog.buttons.items():
                    button.setChecked(True)
                    self._rest(lambda dialog=dialog: dialog.is_busy)
                    yield Page(f"dialog-{name}-{method}", dialog)
            dialog.close()
            dialog.deleteLater()
            self._rest()
        for kind in ("identify", "quantify"):
            self._open(kind)
            window.prompt_for_export()
            dialog = next(dialog for dialog in window.results.findChildren(QDialog) if dialog.isVisible())
            self._rest()
            yield Page(f"dialog-export-{kind}", dialog)
            dialog.close()
            self._rest()

    def _help(self) -> Iterator[Page]:
        """Show every tab of the help window, and every step of the tour."""
        window = self._window
        shown = window.assistance.help_window()
        shown.show_page("window")
        self._rest()
        for index in range(shown.tabs.count()):
            shown.tabs.setCurrentIndex(index)
            self._rest()
            yield Page(f"help-{shown.tabs.tabText(index).replace('&', '').lower()}", shown)
        shown.close()
        window.show_page(window.start_page)
        window.assistance.start_tour()
        tour = window.assistance.tour
        assert tour is not None
        while tour.next_button.text() != "&Done":
            self._rest()
            yield Page(f"tour-{tour.step}", window)
            tour.go(tour.step + 1)
        self._rest()
        yield Page("tour-last", window)
        tour.leave()

    def _tabs(self, name: str, top: QWidget, is_busy: Callable[[], bool]) -> Iterator[Page]:
        """Show each tab within a widget that is not shown yet, with the tabs within it, and the first tabs again at the end."""
        for tabs in top.findChildren(QTabWidget):
            if not tabs.isVisible() or _outer_tabs(tabs, top) is not None:
                continue
            begin = tabs.currentIndex()
            for index in range(tabs.count()):
                if not tabs.isTabEnabled(index) or not tabs.isTabVisible(index):
                    continue
                if index != begin and not tabs.tabBar().isVisible():
                    continue  # no user can reach this page
                # In a narrow bar, the text is a short title.
                text = tabs.tabBar().accessibleTabName(index) or tabs.tabText(index)
                title = f"{name}-{text.replace('&', '').replace(' ', '-').lower()}"
                # Tables and figures may have tabs of the same title.
                n_before = self._n_shown[title]
                self._n_shown[title] += 1
                title += f"-{1 + n_before}" if n_before else ""
                if index != begin:
                    tabs.setCurrentIndex(index)
                    self._rest(is_busy)
                    yield Page(title, self._window)
                page = tabs.widget(index)
                assert page is not None
                yield from self._tabs(title, page, is_busy)
            tabs.setCurrentIndex(begin)
            self._rest(is_busy)

    def _open(self, kind: str, folder: Path | None = None) -> None:
        """Show the last finished run of a kind."""
        window, folder = self._window, folder or self._project_of(kind)
        window.open_project(folder)
        self._rest(lambda: window.results.is_busy)
        project = window.project_pane.project
        assert project is not None
        window.project_pane.select(_last_run(project, kind))
        window.show_page(window.searches[kind].results)
        self._rest(lambda: window.results.is_busy)

    def _opened(self, kind: type[QDialog], show: Callable[[], object]) -> QDialog:
        show()
        dialog = self._window.findChild(kind)
        assert dialog is not None
        return dialog

    def _rest(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        """Run the event loop until deferred tasks are over and `is_busy` does not hold several times in a row."""
        for _ in range(3):
            self._settle(is_busy)
        self._window.deferred.finish()
        self._settle(is_busy)


class _HeldTask(WritingTask):
    """A task with a stage and some progress that ends on request."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.is_over = threading.Event()

    @property
    def title(self) -> str:
        """Title of the job."""
        return self._title

    def run(self, progress: Progress) -> int:
        """Wait until the task may end."""
        progress.stage("Scoring spectra of 3 files", 100)
        progress.advance(37)
        self.is_over.wait(60)
        return 185

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the outcome as one line."""
        return f"{locale.toString(written)} PSMs"


def sample_gpus() -> tuple[Device, ...]:
    """Return the GPUs of a machine with a good and an old one."""
    driver = ", driver 570.86.15 (CUDA 12.8)"
    return (
        Device("cuda:0", f"NVIDIA H200, compute capability 9.0{driver}", 150_000_000_000, True, "", "570.86.15", "9.0", (0,)),
        Device(
            "cuda:1",
            f"NVIDIA GeForce GT 710, compute capability 3.5{driver}",
            2_100_000_000,
            False,
            "its compute capability is below 7.5",
            "570.86.15",
            "3.5",
            (1,),
        ),
    )


def _last_run(project: Project, kind: str) -> str:
    return _runs(project, kind)[-1]


def _runs(project: Project, kind: str) -> list[str]:
    return [run.id for run in project.runs() if run.kind == kind and run.status == "done"]


def _outer_tabs(tabs: QTabWidget, top: QWidget) -> QTabWidget | None:
    """Return the tabs within `top` that contain these tabs, or None."""
    parent = tabs.parentWidget()
    while parent is not None and parent is not top:
        if isinstance(parent, QTabWidget):
            return parent
        parent = parent.parentWidget()
    return None


def _scrolled(area: QScrollArea) -> Iterator[bool]:
    """Scroll through an area page by page; False for the first page."""
    bar = area.verticalScrollBar()
    bar.setValue(0)
    yield False
    # The window may change its size between the pages.
    step, end = round(0.9 * bar.pageStep()), bar.maximum()
    for value in range(step, end + step, step) if end else ():
        bar.setValue(value)
        yield True
