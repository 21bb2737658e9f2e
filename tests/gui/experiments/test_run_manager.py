"""Tests of the page of an experiment: filter, groups, changes with undo, and the search of its runs."""

from __future__ import annotations

import gzip
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.experiments import running
from proteoscope.engine.experiments.table import read_experiment
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.gui.experiments.add_dialog import AddRunsDialog
from proteoscope.gui.experiments.run_manager import RunManager
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.tasks import AddRunsTask
from proteoscope.gui.window import MainWindow
from tests.engine.views.experiment_projects import PATTERN, project_with_experiment
from tests.engine.views.result_projects import PARAMETERS
from tests.gui.result_views import settle
from tests.gui.x_events import Hand, wait_until_still


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_experiment(tmp_path_factory.mktemp("experiment") / "p")[0].folder


@pytest.fixture
def project(searched: Path, tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(searched, tmp_path / "p")))


def opened(window: MainWindow, folder: Path, qtbot: QtBot) -> RunManager:
    window.open_project(folder)
    page = window.experiment_actions.page
    assert window.pages.currentWidget() is page
    qtbot.waitUntil(lambda: not page.is_busy)
    return page


def listed(page: RunManager) -> list[str]:
    return [page.state.rows[row].run for row in page.runs.model.rows]


def click_row(page: RunManager, position: int, hand: Hand, qtbot: QtBot, *holding: str, twice: bool = False) -> None:
    view = page.runs.view
    wait_until_still(lambda: view.viewport().mapToGlobal(QPoint()) if view.isVisible() else None, qtbot)
    at = view.visualRect(view.model().index(position, 0)).center()
    if twice:
        hand.double_click(view.viewport(), at)
    else:
        hand.click(view.viewport(), at, holding)


def clicked(widget: QWidget, hand: Hand, qtbot: QtBot) -> None:
    wait_until_still(lambda: widget.mapToGlobal(QPoint()) if widget.isVisible() and widget.isEnabled() else None, qtbot)
    hand.click(widget)


def choose(box: ChoiceBox, value: str) -> None:
    """Select an item as the user does."""
    box.setCurrentIndex(box.findData(value))
    box.activated.emit(box.currentIndex())


def conditions(project: Project) -> dict[str, str]:
    return {row.run: row.condition for row in read_experiment(project)}


def test_run_manager_filters_sorts_and_groups_runs(window: MainWindow, project: Project, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    assert listed(page) == ["control_1", "control_2", "treated_1", "treated_2"]
    assert page.summary.text() == "4 runs: 3 done, 1 not searched"
    choose(page.filters.status, "not searched")
    qtbot.waitUntil(lambda: listed(page) == ["treated_2"])
    page.filters.reset()
    page.filters.text.setText("control")
    qtbot.waitUntil(lambda: listed(page) == ["control_1", "control_2"])
    page.filters.reset()
    page.runs.model.show(order=[("condition", True), ("run", False)])
    qtbot.waitUntil(lambda: listed(page) == ["treated_1", "treated_2", "control_1", "control_2"])
    choose(page.filters.group, "condition")
    qtbot.waitUntil(lambda: page.groups.isVisible() and page.groups.model.rowCount() == 2)
    page.groups.view.choose(1)
    qtbot.waitUntil(lambda: listed(page) == ["treated_1", "treated_2"])
    assert page.groups.model.values(1) == {"name": "treated", "runs": 2, "done": 1, "failed": 0}
    page.runs.all_button.click()
    qtbot.waitUntil(lambda: len(listed(page)) == 4)
    page.groups.view.choose(0)
    qtbot.waitUntil(lambda: listed(page) == ["control_1", "control_2"])
    page.filters.reset()
    qtbot.waitUntil(lambda: len(listed(page)) == 4 and not page.groups.isVisible())
    choose(page.filters.group, "condition")
    qtbot.waitUntil(lambda: page.groups.model.rowCount() == 2)
    page.groups.view.choose(0)
    qtbot.waitUntil(lambda: listed(page) == ["control_1", "control_2"])


def test_run_manager_removes_and_restores_several_runs(window: MainWindow, project: Project, hand: Hand, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    before = (project.folder / "experiment.tsv").read_bytes()
    click_row(page, 0, hand, qtbot)
    click_row(page, 2, hand, qtbot, "ctrl")
    qtbot.waitUntil(lambda: page.selected_runs == ["control_1", "treated_1"])
    hand.press("delete")
    qtbot.waitUntil(lambda: not page.is_busy and listed(page) == ["control_2", "treated_2"])
    assert "2 runs were removed from the experiment" in window.message_bar.label.text()
    assert [run.id for run in project.runs()] == ["control_1", "control_2", "treated_1"], "results remain"
    clicked(window.message_bar.button, hand, qtbot)
    qtbot.waitUntil(lambda: not page.is_busy and len(listed(page)) == 4)
    assert (project.folder / "experiment.tsv").read_bytes() == before
    window.menus.redo.trigger()
    qtbot.waitUntil(lambda: not page.is_busy and listed(page) == ["control_2", "treated_2"])


def test_run_manager_renames_the_condition_of_several_runs(window: MainWindow, project: Project, hand: Hand, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    click_row(page, 1, hand, qtbot)
    click_row(page, 2, hand, qtbot, "shift")
    qtbot.waitUntil(lambda: page.selected_runs == ["control_2", "treated_1"])
    assert page.fields["condition"].placeholderText() == "2 different"
    clicked(page.fields["condition"], hand, qtbot)
    hand.type("mixed")
    hand.press("enter")
    expected = {"control_1": "control", "control_2": "mixed", "treated_1": "mixed", "treated_2": "treated"}
    qtbot.waitUntil(lambda: not page.is_busy and conditions(project) == expected)
    window.menus.undo.trigger()
    assert conditions(project)["treated_1"] == "treated" and conditions(project)["control_2"] == "control"


def test_run_manager_rejects_conflicting_and_empty_sample_names(window: MainWindow, project: Project, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    before = (project.folder / "experiment.tsv").read_bytes()
    page.runs.view.choose(0)
    page.fields["sample"].setText("treated_1")
    page.set_field("sample")
    assert "two conditions or replicates" in window.message_bar.label.text()
    assert (project.folder / "experiment.tsv").read_bytes() == before
    page.fields["sample"].setText(" ")
    page.set_field("sample")
    assert "a sample needs a name" in window.message_bar.label.text()


def test_double_click_in_run_manager_shows_the_results_of_a_run(window: MainWindow, project: Project, hand: Hand, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    click_row(page, 1, hand, qtbot, twice=True)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches["identify"].made_results)
    settle(window.results, qtbot)
    assert window.results.run_id == "control_2"
    hand.press("ctrl", "5")
    qtbot.waitUntil(lambda: window.pages.currentWidget() is page)
    click_row(page, 3, hand, qtbot, twice=True)
    qtbot.waitUntil(lambda: "treated_2 has no results: not searched" in window.statusBar().currentMessage())


def test_comparison_of_selected_runs_lists_differing_parameters(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    other = {**PARAMETERS, "fdr": 0.05}
    made, _ = project_with_experiment(tmp_path / "p", last_parameters=other)
    page = opened(window, made.folder, qtbot)
    page.runs.view.selectRow(0)
    assert not page.compare_action.isEnabled() and page.compare_action.toolTip() == "Select 2 to 12 runs"
    page.runs.view.selectAll()
    assert page.compare_action.toolTip() == "treated_2 has no results (not searched)"
    page.filters.text.setText("_1")
    qtbot.waitUntil(lambda: listed(page) == ["control_1", "treated_1"])
    page.runs.view.selectAll()
    qtbot.waitUntil(page.compare_action.isEnabled)
    page.compare_action.trigger()
    view = window.comparisons.view
    assert view is not None and window.pages.currentWidget() is view and view.run_ids == ("control_1", "treated_1")
    settle(view, qtbot)
    table = view.parameters
    assert view.runs_label.text() == "A: control_1    B: treated_1"
    assert table.isVisible() and table.rowCount() == 1
    assert [table.item(0, at).text() for at in range(3)] == ["False discovery rate", "0.01", "0.05"]
    assert [table.horizontalHeaderItem(at).text() for at in (1, 2)] == ["A: control_1", "B: treated_1"]
    window.experiment_actions.compare(["control_1", "control_2"])
    view = window.comparisons.view
    assert view is not None
    settle(view, qtbot)
    assert view.runs_label.text().endswith("No parameters differ.") and not view.parameters.isVisible()


def test_quantification_form_has_the_design_of_the_experiment(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made, _ = project_with_experiment(tmp_path / name / "p", ("heat_1", "cold_1", "heat_2"), n_done=2 + (name == "second"))
        page = opened(window, made.folder, qtbot)
        page.runs.view.selectRow(0)
        page.fields["condition"].setText(f"of the {name}")
        page.set_field("condition")
        qtbot.waitUntil(lambda page=page: not page.is_busy)
        page.quantify_button.click()
        form = window.form
        qtbot.waitUntil(lambda form=form: not form.designs["design"].is_busy)
        done = ["heat_1", "cold_1", "heat_2"][: 2 + (name == "second")]
        assert form.search.kind == "quantify" and form.parameters.values()["run"] == tuple(done)
        conditions = [f"of the {name}", "cold", "heat"]
        expected = tuple((f"{run}.mgf", run, condition, run[-1]) for run, condition in zip(done, conditions, strict=False))
        assert form.designs["design"].table().rows == expected, "not those of the project before"
        qtbot.waitUntil(form.run_button.isEnabled)


def test_finished_run_disables_other_searches_of_an_experiment(window: MainWindow, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    assert {kind: action.isEnabled() for kind, action in page.search_actions.items()} == {
        "identify": True,
        "modified": False,
        "library": False,
    }
    assert page.search_actions["library"].toolTip() == "The finished runs are of the identification"
    fresh, _ = project_with_experiment(tmp_path / "fresh", n_done=0)
    page = opened(window, fresh.folder, qtbot)
    for kind, action in page.search_actions.items():
        assert action.isEnabled()
        action.trigger()
        assert window.form.search.kind == kind and window.form.uses_experiment


def test_modified_search_of_an_experiment_ignores_other_project(
    window: MainWindow, project: Project, tmp_path: Path, small_database: Path, qtbot: QtBot
) -> None:
    fresh, _ = project_with_experiment(tmp_path / "fresh", n_done=0)
    opened(window, fresh.folder, qtbot)
    window.experiment_actions.show_form("modified")
    form = window.form
    form.projects["from_project"].line.setText(str(project.folder))
    form.file_lists["database"].add([small_database])
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and "from_project" not in task.request.options and task.request.inputs["spectra"] == ()
    assert not form.projects["from_project"].isEnabled()
    form.experiment.setChecked(False)
    form.file_lists["database"].clear()
    qtbot.waitUntil(lambda: form.projects["from_project"].isEnabled() and form.run_button.isEnabled())
    task = form.task()
    assert task is not None and task.request.options["from_project"] == project.folder


def test_experiment_quality_is_shown_and_saved(window: MainWindow, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    page.tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: not page.is_busy and page.quality.panel.model.rowCount() == 3)
    page.quality.plots["drift"].targetChosen.emit(2)
    qtbot.waitUntil(lambda: page.quality.panel.view.chosen == 2)
    qtbot.waitUntil(lambda: all(plot.marked == 2 for plot in page.quality.plots.values()))
    page.quality.page_requested.emit(tmp_path / "quality.html")
    qtbot.waitUntil(lambda: window.queue.is_idle and "written" in window.message_bar.label.text())
    assert (tmp_path / "quality.html").read_text().count("<svg") == 8
    page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: not page.is_busy and page.proteins.plot.drawing is not None)
    drawing = page.proteins.plot.drawing
    assert drawing is not None and "in 3 runs" in drawing.title
    window.show_form()
    page.refresh()
    page.tabs.setCurrentIndex(1)
    window.show_experiment()
    qtbot.waitUntil(lambda: not page.is_busy)
    assert page.quality.panel.view.chosen == 2, "unchanged runs are not read again"


def test_run_manager_adds_files_and_a_run_table(window: MainWindow, tmp_path: Path, qtbot: QtBot, small_spectra: Path) -> None:
    project = Project.create_or_open(tmp_path / "new")
    for name in ("a_1", "b_1", "c_1"):
        (tmp_path / f"{name}.mgf").write_text(f"BEGIN IONS\nTITLE={name}\nPEPMASS=500\nCHARGE=2+\n100 1\nEND IONS\n")
    window.open_project(project.folder)
    window.show_experiment()
    page = window.experiment_actions.page
    qtbot.waitUntil(lambda: not page.is_busy)
    page.add_button.click()
    dialog = window.findChild(AddRunsDialog)
    assert dialog is not None and dialog.validation_error() == "Add spectrum files"
    dialog.spectra.add([tmp_path / "a_1.mgf", tmp_path / "b_1.mgf"])
    dialog.pattern.setText("(")
    assert "cannot be used: Invalid regular expression" in dialog.validation_error() and not dialog.action_button.isEnabled()
    dialog.pattern.setText(PATTERN)
    assert dialog.preview.text().splitlines()[1] == "b_1.mgf: sample b_1, condition b, fraction 1, replicate 1"
    dialog.begin()
    qtbot.waitUntil(lambda: not dialog.is_running and window.queue.is_idle and not page.is_busy and len(page.state.rows) == 2)
    dialog.tabs.setCurrentIndex(1)
    dialog.table.setPlainText("file\tcondition\na_1.mgf\ta\nc_1.mgf\tc\n")
    dialog.begin()
    qtbot.waitUntil(lambda: not dialog.is_running and not page.is_busy and len(page.state.rows) == 3)
    assert "1 run added" in dialog.stage.text()
    assert [(row.run, row.condition) for row in read_experiment(project)] == [("a_1", "a"), ("b_1", "b"), ("c_1", "c")]
    dialog.close()


def test_add_runs_dialog_can_be_closed_during_file_inspection(window: MainWindow, project: Project, qtbot: QtBot) -> None:
    page = opened(window, project.folder, qtbot)
    page.add_button.click()
    dialog = window.findChild(AddRunsDialog)
    assert dialog is not None
    taken: list[str] = []
    take = dialog.spectra._while_open(taken.append)
    take("open")
    dialog.close()
    qtbot.waitUntil(lambda: window.findChild(AddRunsDialog) is None)
    take("closed")
    assert taken == ["open"]


def test_run_manager_reports_and_resumes_a_failed_run(
    window: MainWindow, tmp_path: Path, small_spectra: Path, small_database: Path, cache_of_tests: Path, qtbot: QtBot
) -> None:
    first, second = (Path(shutil.copy(small_spectra, tmp_path / name)) for name in ("one.mzML.gz", "two.mzML.gz"))
    content = gzip.compress(gzip.decompress(first.read_bytes()) + b"\n")
    second.write_bytes(content)
    project = Project.create_or_open(tmp_path / "project")
    window.tasks.add(AddRunsTask(project.folder, (first, second)))
    qtbot.waitUntil(lambda: window.queue.is_idle)
    page = opened(window, project.folder, qtbot)
    second.write_bytes(content + b"changed")
    assert not page.resume_button.isEnabled()
    page.search_actions["identify"].trigger()
    form = window.form
    assert form.uses_experiment and not form.inputs["spectra"].isEnabled()
    form.file_lists["database"].add([small_database])
    form.presets.choose("low-resolution")
    qtbot.waitUntil(form.run_button.isEnabled)
    form.run()
    assert window.pages.currentWidget() is page and page.cancel_button.isVisible()
    qtbot.waitUntil(lambda: window.queue.is_idle and not page.is_busy and page.state.status.get("two") == "failed", timeout=400_000)
    assert page.state.status == {"one": "done", "two": "failed"}
    assert "has changed since it was added" in page.state.messages["two"]
    assert "1 run searched, 1 failed: two" in window.message_bar.label.text()
    second.write_bytes(content)
    page.resume_button.click()
    qtbot.waitUntil(lambda: not page.is_busy and page.state.status.get("two") == "done")
    qtbot.waitUntil(lambda: "1 run searched, 1 finished before" in window.message_bar.label.text())
    tables = [project.folder / "results" / name / "psms.parquet" for name in ("one", "two")]
    assert all(table.is_file() for table in tables) and not page.resume_button.isEnabled()
    assert QApplication.activeModalWidget() is None


def test_experiment_is_created_cancelled_and_resumed_by_x_events(
    window: MainWindow,
    tmp_path: Path,
    small_spectra: Path,
    small_database: Path,
    cache_of_tests: Path,
    hand: Hand,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = gzip.decompress(small_spectra.read_bytes())
    for number, name in enumerate(("one", "two", "three")):
        (tmp_path / f"{name}.mzML.gz").write_bytes(gzip.compress(content + b"\n" * number))
    project = Project.create_or_open(tmp_path / "project")
    window.open_project(project.folder)
    window.show_experiment()
    page = window.experiment_actions.page
    qtbot.waitUntil(lambda: not page.is_busy)

    clicked(page.add_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.findChild(AddRunsDialog) is not None)
    dialog = window.findChild(AddRunsDialog)
    assert dialog is not None
    qtbot.waitUntil(dialog.isActiveWindow)
    bar = dialog.tabs.tabBar()
    wait_until_still(lambda: bar.mapToGlobal(QPoint()), qtbot)
    hand.click(bar, bar.tabRect(1).center())
    clicked(dialog.table, hand, qtbot)
    QApplication.clipboard().setText("file\tcondition\none.mzML.gz\ta\ntwo.mzML.gz\tb\nthree.mzML.gz\tb\n")
    hand.press("ctrl", "v")
    qtbot.waitUntil(dialog.action_button.isEnabled)
    clicked(dialog.action_button, hand, qtbot)
    qtbot.waitUntil(lambda: not dialog.is_running and not page.is_busy and len(page.state.rows) == 3)
    clicked(dialog.close_button, hand, qtbot)
    (tmp_path / "three.mzML.gz").write_bytes(gzip.compress(content))

    clicked(page.filters.text, hand, qtbot)
    hand.type("tw")
    qtbot.waitUntil(lambda: listed(page) == ["two"])
    clicked(page.filters.reset_button, hand, qtbot)
    qtbot.waitUntil(lambda: len(listed(page)) == 3)
    clicked(page.filters.group, hand, qtbot)
    hand.press("down")
    hand.press("enter")
    qtbot.waitUntil(lambda: page.groups.model.rowCount() == 2)
    clicked(page.filters.reset_button, hand, qtbot)

    is_released = threading.Event()
    digest = running.file_digest

    def held(path: str, progress: Progress | None = None) -> str:
        while Path(path).name.startswith("two") and progress is not None and not is_released.is_set():
            progress.check()
            time.sleep(0.01)
        return digest(path, progress)

    monkeypatch.setattr(running, "file_digest", held)
    hand.do_when(lambda: QApplication.activePopupWidget() is not None, lambda: hand.choose(hand.menu(), page.search_actions["identify"]))
    clicked(page.search_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.form.isVisible() and window.form.uses_experiment)
    window.form.file_lists["database"].add([small_database])
    window.form.presets.choose("low-resolution")
    qtbot.waitUntil(window.form.run_button.isEnabled)
    window.form.run_button.click()  # not by hand, since the estimate may move the button
    qtbot.waitUntil(lambda: page.state.status.get("one") == "done", timeout=400_000)
    clicked(page.cancel_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.queue.is_idle and not page.cancel_button.isVisible() and not page.is_busy)
    assert page.state.status == {"one": "done", "two": "not searched", "three": "not searched"}
    is_released.set()
    clicked(page.resume_button, hand, qtbot)
    qtbot.waitUntil(lambda: not page.is_busy and page.state.status.get("three") == "failed", timeout=400_000)
    assert page.state.status["two"] == "done" and "has changed since it was added" in page.state.messages["three"]
    qtbot.waitUntil(lambda: "1 run searched, 1 finished before, 1 failed: three" in window.message_bar.label.text())
