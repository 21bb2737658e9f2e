"""Tests of the whole window with real input events: choose, drop, type, run, cancel, view results, close during a run."""

from __future__ import annotations

import gc
import shutil
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QDate, QEvent, QLocale, QMimeData, QObject, QPoint, QPointF, QRect, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QColor, QDragEnterEvent, QDropEvent, QGuiApplication, QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QFileDialog, QLabel, QLineEdit, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.jobs import Progress, ProgressEvent
from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import Count
from proteoscope.gui.dialogs import CrashDialog
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.tasks import ExportTask, SearchTask
from proteoscope.gui.theme import DARK, LIGHT, colours
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.search_projects import summary_of

SEARCH_MS = 240_000
"""Compile the kernels, as in a first search on a machine."""


@pytest.fixture
def spectra(small_spectra: Path) -> Path:
    return small_spectra


@pytest.fixture
def database(small_database: Path) -> Path:
    return small_database


@pytest.fixture
def filled(window: MainWindow, spectra: Path, database: Path, tmp_path: Path, qtbot: QtBot) -> MainWindow:
    """Window whose form is ready to run."""
    fill(window, spectra, database, tmp_path / "project", qtbot)
    return window


def fill(window: MainWindow, spectra: Path, database: Path, project: Path, qtbot: QtBot) -> None:
    window.menus.new["identify"].trigger()
    window.form.file_lists["spectra"].add([spectra])
    window.form.file_lists["database"].add([database])
    window.form.set_project_folder(project)
    window.form.presets.choose("low-resolution")
    qtbot.waitUntil(window.form.run_button.isEnabled)


def click(widget: Any) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def drop(window: QWidget, *paths: Path, at: QPoint = QPoint(400, 300)) -> None:  # noqa: B008
    content = QMimeData()
    content.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    with warnings.catch_warnings():
        # Newer versions of Qt need a position in fractions, older ones refuse it.
        warnings.simplefilter("ignore", DeprecationWarning)
        enter = QDragEnterEvent(at, Qt.DropAction.CopyAction, content, buttons, keys)
    QGuiApplication.sendEvent(window, enter)
    assert enter.isAccepted()
    QGuiApplication.sendEvent(window, QDropEvent(QPointF(at), Qt.DropAction.CopyAction, content, buttons, keys))


def counting(steps: int = 30_000) -> Callable[[Any, Progress], Any]:
    """Replacement for a search: counts steps of 2 ms, or until it is cancelled."""

    def work(request: Any, progress: Progress) -> Any:
        progress.stage("Scoring", 1000)
        for _ in range(steps):
            progress.advance()
            time.sleep(0.002)
        return summary_of("identify-0001", Count(1, "PSM", "PSMs"))

    return work


def test_identification_runs_in_the_window_and_shows_results(
    window: MainWindow, sample_data: Path, database: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    spectra = sample_data / "BSA1.mzML.gz"
    assert window.pages.currentWidget() is window.start_page
    click(window.start_page.new_buttons["identify"])
    form = window.form
    assert form.reason.text() == "Add spectra" and not form.run_button.isEnabled()
    drop(window, spectra)
    qtbot.waitUntil(lambda: form.reason.text() == "Add a protein database")
    drop(window, database)
    qtbot.waitUntil(form.run_button.isEnabled)
    assert form.project.line.text().endswith("BSA1_proteoscope")
    form.project.line.selectAll()
    QTest.keyClicks(form.project.line, str(tmp_path / "my project"))
    form.presets.box.setCurrentText("low-resolution")
    form.presets.box.activated.emit(form.presets.box.currentIndex())
    box = form.parameters.fields["missed_cleavages"].editor.findChild(IntegerBox)
    box.lineEdit().selectAll()
    QTest.keyClicks(box, "1")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=SEARCH_MS) as finished:
        click(form.run_button)
        assert window.dock_jobs.isVisible()
    job = finished.args[0]
    assert job.state == "done", job.error_report or job.error
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.results)
    run = window.project_pane.selected_run
    assert run is not None and run.id == job.result.run_id and run.status == "done"
    assert run.parameters["missed_cleavages"] == 1 and run.parameters["fragment_tolerance"] == "0.5 Da"
    assert f"{job.result.n_psms} PSMs" in window.jobs.rows[job.id].stage.toolTip()
    assert "my project" in window.windowTitle()
    qtbot.waitUntil(lambda: not window.results.is_busy)
    assert window.results.text == ""


class EventLoop(QObject):
    """Check from another thread that the event loop responds."""

    _requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._went_round = threading.Event()
        self._requested.connect(self._went_round.set, Qt.ConnectionType.QueuedConnection)

    def handles_request(self, seconds: float = 60) -> bool:
        """Return True if the loop handled a request in this time; the requesting thread waits for it."""
        self._went_round.clear()
        self._requested.emit()
        return self._went_round.wait(seconds)


def test_window_never_blocks_during_a_search(filled: MainWindow, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    """Check that the event loop responds while the search pauses at each of its reports, unlike in a waiting window."""
    loop, answers = EventLoop(), defaultdict[str, list[bool]](list)
    emit = Progress._emit

    def emit_and_ask(progress: Progress, event: ProgressEvent) -> None:
        emit(progress, event)
        if threading.current_thread() is not threading.main_thread():
            answers[event.stage].append(loop.handles_request())

    monkeypatch.setattr(Progress, "_emit", emit_and_ask)
    with qtbot.waitSignal(filled.bridge.finished, timeout=SEARCH_MS) as finished:
        filled.form.run()
    assert finished.args[0].state == "done"
    assert {"Reading spectra", "Scoring spectra", "Writing results"} <= set(answers)
    assert all(all(answer) for answer in answers.values()), dict(answers)


def test_invalid_parameter_disables_run_and_is_explained(filled: MainWindow, qtbot: QtBot) -> None:
    form = filled.form
    form.parameters.set_values({"ksdp_power": 9.0})
    qtbot.waitUntil(lambda: not form.run_button.isEnabled())
    assert form.reason.text() == "KSDP power: Expected at most 6"
    filled.menus.run.trigger()
    assert filled.queue.is_idle
    click(form.reason)
    assert form.parameters.fields["ksdp_power"].frame.visibleRegion().boundingRect().height() > 10
    form.parameters.reset_all()
    qtbot.waitUntil(form.run_button.isEnabled)


def test_file_of_wrong_type_is_marked_in_its_file_list(filled: MainWindow, database: Path, tmp_path: Path, qtbot: QtBot) -> None:
    form = filled.form
    form.file_lists["spectra"].add([database])
    qtbot.waitUntil(lambda: form.file_lists["spectra"].frame.is_wrong)
    assert "protein databases" in form.file_lists["spectra"].message.text()
    qtbot.waitUntil(lambda: form.reason.text() == "A spectrum file cannot be used")  # At this point all files are inspected.
    form.file_lists["spectra"].lines.item(1).setSelected(True)
    click(form.file_lists["spectra"].remove_button)
    qtbot.waitUntil(form.run_button.isEnabled)
    form.file_lists["database"].add([tmp_path / "absent.fasta"])
    qtbot.waitUntil(lambda: "no such file" in form.file_lists["database"].message.text())


def test_folder_with_other_files_is_rejected_as_a_project(filled: MainWindow, sample_data: Path, tmp_path: Path, qtbot: QtBot) -> None:
    form = filled.form
    form.project.line.setText(str(sample_data))
    qtbot.waitUntil(lambda: form.project.frame.is_wrong)
    assert "other files" in form.project.message.text() and not form.run_button.isEnabled()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    form.project.line.setText(str(tmp_path / "file"))
    qtbot.waitUntil(lambda: "This is a file" in form.project.message.text())
    form.project.line.setText(str(tmp_path / "new" / "deep"))
    qtbot.waitUntil(form.run_button.isEnabled)
    assert not form.project.frame.is_wrong


def test_project_field_can_be_cleared_without_a_new_suggestion(window: MainWindow, spectra: Path, tmp_path: Path, qtbot: QtBot) -> None:
    window.menus.new["identify"].trigger()
    form = window.form
    form.file_lists["spectra"].add([spectra])
    qtbot.waitUntil(lambda: form.project.line.text().endswith("BSA1_proteoscope"))
    form.project.line.selectAll()
    QTest.keyClick(form.project.line, Qt.Key.Key_Backspace)
    qtbot.wait(50)
    assert form.project.line.text() == "", "the suggestion does not return"
    form.file_lists["spectra"].add([spectra.with_name("Ecoli_MS2_small.mzML.gz")])
    qtbot.wait(50)
    assert form.project.line.text() == ""
    for character in str(tmp_path / "own"):
        QTest.keyClicks(form.project.line, character)
        qtbot.wait(1)
    assert form.project.line.text() == str(tmp_path / "own"), "nothing is inserted before the typed text"


def test_project_folder_is_suggested_until_one_is_typed(window: MainWindow, sample_data: Path, qtbot: QtBot) -> None:
    window.menus.new["identify"].trigger()
    form = window.form
    form.file_lists["spectra"].add([sample_data / "BSA1.mzML.gz"])
    qtbot.waitUntil(lambda: form.project.line.text().endswith("BSA1_proteoscope"))
    form.file_lists["spectra"].clear()
    form.file_lists["spectra"].add([sample_data / "Ecoli_MS2_small.mzML.gz"])
    qtbot.waitUntil(lambda: form.project.line.text().endswith("Ecoli_MS2_small_proteoscope"))


@pytest.mark.parametrize("good", ["spectra", "project", "preset"])
def test_accepted_drop_clears_the_error_of_a_rejected_drop(
    window: MainWindow, spectra: Path, tmp_path: Path, good: str, qtbot: QtBot
) -> None:
    (tmp_path / "run.raw").write_bytes(b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0" + bytes(64))
    drop(window, tmp_path / "run.raw")
    qtbot.waitUntil(lambda: "Thermo raw" in window.message_bar.label.text())
    Project.create_or_open(tmp_path / "project")
    (tmp_path / "preset.toml").write_text("missed_cleavages = 4\n", encoding="utf-8")
    drop(window, {"spectra": spectra, "project": tmp_path / "project", "preset": tmp_path / "preset.toml"}[good])
    qtbot.waitUntil(lambda: not window.message_bar.isVisible())
    assert "Thermo raw" in window.log.plain_text(), "the log still contains it"


def test_accepted_drop_retains_the_message_of_a_finished_search(window: MainWindow, spectra: Path, qtbot: QtBot) -> None:
    window.message_bar.show_message("Identify: 12 PSMs", "good", "Show results", lambda: None)
    drop(window, spectra)
    qtbot.waitUntil(lambda: len(window.form.file_lists["spectra"].paths) == 1)
    assert window.message_bar.isVisible() and window.message_bar.button.isVisible()


def test_mixed_drop_reports_accepted_and_rejected_files(window: MainWindow, spectra: Path, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "broken.toml").write_text("missed_cleavages = ", encoding="utf-8")
    Project.create_or_open(tmp_path / "project")
    drop(window, spectra, tmp_path / "broken.toml", tmp_path / "project")
    qtbot.waitUntil(lambda: len(window.form.file_lists["spectra"].paths) == 1)
    assert window.project_pane.project is not None
    assert "broken.toml" in window.message_bar.label.text() and window.message_bar.isVisible()


def test_mixed_drop_fills_the_visible_form_and_offers_another(
    window: MainWindow, spectra: Path, small_database: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    structure = tmp_path / "fold.pdb"
    structure.write_text(
        "".join(f"ATOM  {i:5d}  CA  ALA A{i:4d}    {3.8 * i:8.3f}   0.000   0.000  1.00  0.00           C\n" for i in range(1, 9))
    )
    window.new_search("identify")
    drop(window, spectra, structure, small_database)
    lists = window.form.file_lists
    qtbot.waitUntil(lambda: bool(lists["spectra"].paths))
    assert (lists["spectra"].paths, lists["database"].paths) == ([spectra], [small_database])
    assert window.pages.currentWidget() is window.searches["identify"].form
    others = [search.made_form for search in window.searches.values() if search.kind != "identify"]
    assert all(form is None or not form.is_touched for form in others)
    assert window.message_bar.label.text() == "fold.pdb is not used: the identification does not read this file."
    QTest.mouseClick(window.message_bar.button, Qt.MouseButton.LeftButton)
    assert window.form is window.searches["structures"].form and window.pages.currentWidget() is window.form
    assert [field.paths for field in window.form.file_lists.values() if not field.is_empty] == [[structure]]


def test_mixed_drop_on_another_page_fills_one_form(window: MainWindow, spectra: Path, tmp_path: Path, qtbot: QtBot) -> None:
    structures = [tmp_path / f"{name}.pdb" for name in "ab"]
    for path in structures:
        path.write_text("ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00  0.00           C\n")
    window.show_devices()
    drop(window, spectra, *structures)
    qtbot.waitUntil(lambda: window.message_bar.isVisible())
    touched = [search.kind for search in window.searches.values() if search.made_form is not None and search.made_form.is_touched]
    assert len(touched) == 1 and window.pages.currentWidget() is window.searches[touched[0]].form
    assert " is not used" in window.message_bar.label.text() or " are not used" in window.message_bar.label.text()


def test_selecting_a_finished_run_clears_an_earlier_error(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project, _ = project_with_results(tmp_path / "project")
    with pytest.raises(InputError), project.run("identify", {}):
        raise InputError("a.mzML", "is cut off")
    window.open_project(tmp_path / "project")
    window.project_pane.select("identify-0002")
    assert "no results" in window.message_bar.label.text()
    window.project_pane.select("identify-0001")
    assert not window.message_bar.isVisible()
    qtbot.waitUntil(lambda: not window.results.is_busy)


@pytest.mark.parametrize("kind", ["identify", "align"])
def test_run_without_inputs_reports_what_is_missing(window: MainWindow, kind: str, qtbot: QtBot) -> None:
    window.menus.new[kind].trigger()
    # Shortcuts belong to the active window, which a busy display reports late.
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    QTest.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    assert window.message_bar.isVisible()
    assert window.message_bar.label.text() == f"Nothing to run yet. {window.form.reason.text()}."
    assert window.form.reason.text() in ("Add spectra", "Add queries, or paste a sequence")
    assert window.pages.currentWidget() is window.form and window.queue.is_idle


def test_actions_of_the_form_are_enabled_only_on_the_form_page(window: MainWindow, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    dialogs: list[str] = []
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    keys = (Qt.Key.Key_R, Qt.Key.Key_L, Qt.Key.Key_S)
    actions = (window.menus.run, window.menus.load_preset, window.menus.save_preset)
    window.show_form()
    monkeypatch.setattr(window.form.presets, "prompt_for_file", lambda: dialogs.append("load"))
    monkeypatch.setattr(window.form.presets, "prompt_for_path", lambda: dialogs.append("save"))
    for show in (window.show_results, window.show_devices, lambda: window.show_page(window.start_page)):
        window.show_form()
        assert all(action.isEnabled() for action in actions)
        show()
        assert not any(action.isEnabled() for action in actions)
        for key in keys:
            QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
        assert window.pages.currentWidget() is not window.form and window.queue.is_idle and dialogs == []
    window.show_form()
    assert all(action.isEnabled() for action in actions)
    for key in keys[1:]:
        QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
    assert dialogs == ["load", "save"]


def test_message_on_missing_input_disappears_when_input_is_added(window: MainWindow, spectra: Path, qtbot: QtBot) -> None:
    window.show_form()
    window.menus.run.trigger()
    assert window.message_bar.isVisible()
    window.form.file_lists["spectra"].add([spectra])
    qtbot.waitUntil(lambda: not window.message_bar.isVisible())
    window.menus.run.trigger()
    assert "Add a protein database" in window.message_bar.label.text()
    window.show_error("a.mzML: is cut off.")
    window.form.parameters.set_values({"missed_cleavages": 1})
    assert window.message_bar.isVisible(), "an error is not a hint, so it remains"


def test_spectra_are_added_with_a_file_dialog(window: MainWindow, spectra: Path, qtbot: QtBot) -> None:
    window.menus.new["identify"].trigger()
    click(window.form.file_lists["spectra"].add_button)
    dialog = window.form.file_lists["spectra"].findChild(QFileDialog)
    assert dialog is not None
    name = dialog.findChild(QLineEdit, "fileNameEdit")
    name.setText(str(spectra))
    QTest.keyClick(name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.form.file_lists["spectra"].paths == [spectra])
    assert window.form.file_lists["spectra"].start_folder == str(spectra.parent)


def test_dropped_folder_adds_all_its_spectra_and_databases(window: MainWindow, sample_data: Path, tmp_path: Path, qtbot: QtBot) -> None:
    spectra, database = {"BSA1.mzML.gz", "Ecoli_MS2_small.mzML.gz"}, "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
    (tmp_path / "dropped").mkdir()
    for name in (*spectra, database):
        shutil.copy(sample_data / name, tmp_path / "dropped")
    drop(window, tmp_path / "dropped")
    qtbot.waitUntil(lambda: len(window.form.file_lists["spectra"].paths) == 2)
    assert {path.name for path in window.form.file_lists["spectra"].paths} == spectra
    assert [path.name for path in window.form.file_lists["database"].paths] == [database]
    assert window.pages.currentWidget() is window.form


def test_unusable_dropped_files_are_reported_in_the_message_bar(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "run.raw").write_bytes(b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0" + bytes(64))
    drop(window, tmp_path / "run.raw")
    qtbot.waitUntil(lambda: "Thermo raw" in window.message_bar.label.text())
    assert window.message_bar.isVisible()
    click(window.message_bar.close_button)
    assert not window.message_bar.isVisible()


def test_dropped_project_opens_and_dropped_preset_loads(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    Project.create_or_open(tmp_path / "dropped")
    (tmp_path / "mine.toml").write_text("missed_cleavages = 4\n", encoding="utf-8")
    drop(window, tmp_path / "dropped", tmp_path / "mine.toml")
    qtbot.waitUntil(lambda: window.project_pane.project is not None)
    assert window.project_pane.name.text() == "dropped"
    assert window.form.presets.box.currentText() == "mine"
    assert window.form.parameters.values()["missed_cleavages"] == 4
    assert window.form.parameters.changed_names == []


def test_saved_preset_can_be_loaded(filled: MainWindow, tmp_path: Path) -> None:
    form = filled.form
    form.parameters.set_values({"missed_cleavages": 3})
    form.presets.save_file(tmp_path / "mine.toml")
    assert form.presets.box.currentText() == "mine" and form.parameters.changed_names == []
    form.presets.choose("phospho")
    form.presets.load_file(tmp_path / "mine.toml")
    assert form.parameters.values()["missed_cleavages"] == 3
    (tmp_path / "broken.toml").write_text("missed_cleavages = ", encoding="utf-8")
    form.presets.load_file(tmp_path / "broken.toml")
    assert "broken.toml" in filled.message_bar.label.text()
    assert form.presets.box.currentText() == "mine"


def test_searches_are_queued_and_cancelled_one_by_one(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchTask, "run", counting())
    window = filled
    click(window.form.run_button)
    click(window.form.run_button)
    qtbot.waitUntil(lambda: "Scoring" in window.progress_text.text() and "1 queued" in window.progress_text.text())
    first = window.queue.running
    assert first is not None
    click(window.jobs.rows[first.id].cancel_button)
    qtbot.waitUntil(lambda: first.state == "cancelled" and window.queue.running is not first)
    qtbot.waitUntil(lambda: window.queue.running is not None)
    window.menus.cancel.trigger()
    qtbot.waitUntil(lambda: window.log.plain_text().count("Cancelled") == 2)
    qtbot.waitUntil(lambda: window.queue.is_idle and window.progress_text.text() == "")


def test_real_search_can_be_cancelled_midway(
    window: MainWindow, sample_data: Path, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spectra = sample_data / "BSA1.mzML.gz"
    # The search uses all proteins of the sample, so that it does not finish before it is cancelled.
    fill(window, spectra, sample_data / "18Protein_SoCe_Tr_detergents_trace.fasta.gz", tmp_path / "project", qtbot)
    n_late, check = [0], Progress.check

    def counted(progress: Progress) -> None:
        n_late[0] += progress.is_cancelled
        check(progress)

    monkeypatch.setattr(Progress, "check", counted)
    window.form.parameters.set_values({"specificity": "non-specific", "variable_modifications": ("Oxidation (M)", "Phospho (STY)")})
    qtbot.waitUntil(window.form.run_button.isEnabled)
    window.form.run()
    qtbot.waitUntil(lambda: any("peptide" in stage for stage in window.tasks.stages.values()), timeout=SEARCH_MS)
    job = window.queue.running
    assert job is not None
    window.queue.cancel(job)
    assert window.queue.wait(60)
    qtbot.waitUntil(lambda: not window.tasks.stages)
    assert n_late[0] <= 12, "each thread is notified once"
    assert {run.status for run in Project.open(tmp_path / "project").runs()} == {"cancelled"}
    assert not list((tmp_path / "project" / "results").glob("*")), "checkpoints are in the cache"


def test_finished_search_does_not_leave_the_form_being_edited(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = threading.Event()

    def work(request: Any, progress: Progress) -> Any:
        opened.wait(10)
        return summary_of("identify-0001", Count(12345, "PSM", "PSMs"), Count(2, "peptide", "peptides"))

    monkeypatch.setattr(SearchTask, "run", work)
    click(filled.form.run_button)
    filled.form.parameters.set_values({"missed_cleavages": 0})
    opened.set()
    qtbot.waitUntil(filled.message_bar.isVisible)
    assert filled.pages.currentWidget() is filled.form
    assert filled.message_bar.button.text() == "Show results"
    assert "2 peptides" in filled.message_bar.label.text()


def test_input_error_is_shown_in_the_message_bar_with_its_remedy(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(request: Any, progress: Progress) -> None:
        raise InputError("a.mzML", "is cut off", remedy="Copy it again")

    monkeypatch.setattr(SearchTask, "run", work)
    click(filled.form.run_button)
    qtbot.waitUntil(filled.message_bar.isVisible)
    assert filled.message_bar.label.text() == "a.mzML: is cut off. Copy it again."
    click(filled.message_bar.button)
    assert filled.dock_log.isVisible() and "is cut off" in filled.log.plain_text()


def test_unexpected_error_opens_a_dialog_with_a_report_to_copy(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(request: Any, progress: Progress) -> None:
        progress.message("about to fail")
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr(SearchTask, "run", work)
    click(filled.form.run_button)
    qtbot.waitUntil(lambda: filled.findChild(CrashDialog) is not None)
    dialog = filled.findChild(CrashDialog)
    click(dialog.copy_button)
    report = QGuiApplication.clipboard().text()
    for part in ("a wheel came off", "Traceback", "about to fail", "Python", "Proteoscope"):
        assert part in report
    dialog.close()
    assert filled.form.run_button.isEnabled()


def test_closing_during_a_search_prompts_once_and_can_continue(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchTask, "run", counting())
    click(filled.form.run_button)
    qtbot.waitUntil(lambda: filled.queue.running is not None)
    assert not filled.close()
    assert not filled.close()
    assert len(filled.findChildren(QMessageBox)) == 1
    assert filled.closing.question is not None
    click(filled.closing.question.continue_button)
    qtbot.waitUntil(lambda: filled.closing.question is None)
    assert filled.isVisible() and filled.queue.running is not None


def test_closing_during_a_search_can_cancel_and_close(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchTask, "run", counting())
    click(filled.form.run_button)
    click(filled.form.run_button)
    qtbot.waitUntil(lambda: filled.queue.running is not None)
    assert not filled.close()
    assert filled.closing.question is not None and "2 runs" in filled.closing.question.text()
    click(filled.closing.question.close_button)
    qtbot.waitUntil(lambda: not filled.isVisible())
    assert filled.queue.is_idle and filled.queue.shutdown(60)


def test_idle_window_closes_without_a_prompt(window: MainWindow) -> None:
    assert window.close()
    assert window.queue.shutdown(60)


def test_window_remembers_size_project_files_preset_and_theme(
    make_window: Callable[[], MainWindow], database: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    Project.create_or_open(tmp_path / "stored")
    first = make_window()
    first.resize(1011, 777)
    first.open_project(tmp_path / "stored")
    first.form.file_lists["database"].add([database])
    first.form.presets.choose("phospho")
    first.dock_log.show()
    first.menus.themes["dark"].trigger()
    assert first.close()
    second = make_window()
    assert (second.width(), second.height()) == (1011, 777)
    assert second.settings.values.recent_projects == (str(tmp_path / "stored"),)
    assert second.theme.is_dark and second.menus.themes["dark"].isChecked()
    assert second.dock_log.isVisibleTo(second)
    assert second.form.presets.box.currentText() != "phospho" and second.form.file_lists["database"].is_empty
    second.form.last_button.click()
    assert second.form.presets.box.currentText() == "phospho"
    assert second.form.file_lists["database"].paths == [database]
    second.start_page.recent.itemClicked.emit(second.start_page.recent.item(0))
    assert second.project_pane.name.text() == "stored"


def test_missing_recent_project_is_removed_from_the_list(make_window: Callable[[], MainWindow], tmp_path: Path) -> None:
    window = make_window()
    window.settings.values.remember_project(tmp_path / "gone")
    window.open_project(tmp_path / "gone")
    assert "does not exist" in window.message_bar.label.text()
    assert window.settings.values.recent_projects == ()


def test_selected_failed_run_explains_missing_results(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.create_or_open(tmp_path / "project")
    with pytest.raises(InputError), project.run("identify", {}):
        raise InputError("a.mzML", "is cut off")
    window.open_project(tmp_path / "project")
    window.project_pane.select("identify-0001")
    assert "no results" in window.message_bar.label.text() and "is cut off" in window.message_bar.label.text()


def test_no_two_actions_of_the_window_have_the_same_shortcut(window: MainWindow) -> None:
    shortcuts = [action.shortcut().toString() for action in window.actions() if not action.shortcut().isEmpty()]
    assert len(shortcuts) == len(set(shortcuts)) >= 8


def test_pages_share_no_shortcut_or_mnemonic_with_the_window(window: MainWindow) -> None:
    """Check shortcuts, since Qt triggers neither action if two have the same keys."""
    of_window = {action.shortcut().toString() for action in window.actions()}
    menus = [action.text() for action in window.menuBar().actions()]
    for kind, pages in window.searches.items():
        for page in (pages.form, pages.results):
            shortcuts = {keys.toString() for action in page.findChildren(QAction) for keys in action.shortcuts()}
            assert shortcuts.isdisjoint(of_window), (kind, shortcuts & of_window)
        fields = [part.text() for part in pages.results.filter_bar.findChildren(QWidget) if isinstance(part, QLabel | QAbstractButton)]
        mnemonics = [text[text.index("&") + 1].lower() for text in [*menus, *fields] if "&" in text.replace("&&", "")]
        assert len(mnemonics) == len(set(mnemonics)), (kind, sorted(mnemonics))


def test_selected_theme_is_applied_to_the_whole_window(filled: MainWindow, qtbot: QtBot) -> None:
    def average_lightness() -> float:
        image = filled.grab().toImage().scaled(40, 40)
        return sum(image.pixelColor(x, y).lightness() for x in range(40) for y in range(40)) / 1600

    assert average_lightness() > 180
    painted: list[QEvent] = []

    class Painting(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if event.type() == QEvent.Type.Paint and isinstance(watched, QWidget) and watched.window() is filled:
                painted.append(event)
            return False

    painting = Painting()
    QApplication.instance().installEventFilter(painting)
    filled.menus.themes["dark"].trigger()
    while filled.theme.is_changing:
        assert not painted, "nothing is drawn while parts have different themes"
        QApplication.processEvents()
    qtbot.waitUntil(lambda: bool(painted))
    QApplication.instance().removeEventFilter(painting)
    assert average_lightness() < 75


def test_theme_selected_during_a_change_is_applied_last(filled: MainWindow, qtbot: QtBot) -> None:
    for look in ("dark", "light", "dark"):
        filled.menus.themes[look].trigger()
        QApplication.processEvents()
    qtbot.waitUntil(lambda: not filled.theme.is_changing)
    assert filled.updatesEnabled() and colours() is DARK
    filled.menus.themes["light"].trigger()
    filled.close()
    assert not filled.theme.is_changing and colours() is LIGHT


def test_search_uses_numbers_typed_in_german_format(
    make_window: Callable[[], MainWindow], spectra: Path, database: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    try:
        requests: list[Any] = []
        monkeypatch.setattr(SearchTask, "run", lambda request, progress: requests.append(request) or counting(0)(request, progress))
        window = make_window()
        window.menus.new["identify"].trigger()
        window.form.file_lists["spectra"].add([spectra])
        window.form.file_lists["database"].add([database])
        window.form.set_project_folder(tmp_path / "projekt")
        line = window.form.parameters.fields["precursor_tolerance"].editor.findChild(QLineEdit)
        line.selectAll()
        QTest.keyClicks(line, "7,5")
        qtbot.waitUntil(window.form.run_button.isEnabled)
        tip = window.form.file_lists["spectra"].lines.item(0).toolTip()
        assert "kB" in tip or "," in tip
        with qtbot.waitSignal(window.bridge.finished):
            click(window.form.run_button)
        assert str(requests[0].request.parameters.precursor_tolerance) == "7.5 ppm"
    finally:
        QLocale.setDefault(before)


def test_window_opens_before_gpu_detection_ends(
    make_window: Callable[[], MainWindow], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that an endless GPU detection delays neither the window nor a timer of the loop."""
    is_detected, threads = threading.Event(), []

    def detected_devices() -> tuple[Device, ...]:
        threads.append(threading.current_thread())
        assert is_detected.wait(60)
        return (processor(),)

    monkeypatch.setattr("proteoscope.gui.devices.devices", detected_devices)
    window = make_window()
    qtbot.waitExposed(window)
    window.devices.detect()
    came: list[bool] = []
    QTimer.singleShot(0, lambda: came.append(window.devices.is_detecting))
    qtbot.waitUntil(lambda: bool(came))
    assert came == [True]
    is_detected.set()
    qtbot.waitUntil(lambda: window.devices.is_known)
    assert threading.main_thread() not in threads


def test_garbage_of_threads_is_collected_in_the_window_thread(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []

    class ReferenceCycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            ended.append(threading.current_thread() is threading.main_thread())

    def work(request: Any, progress: Progress) -> Any:
        for _ in range(100):
            ReferenceCycle()
        objects = [[i] for i in range(100_000)]
        time.sleep(0.6)
        return summary_of("identify-0001", Count(len(objects), "PSM", "PSMs"))

    monkeypatch.setattr(SearchTask, "run", work)
    assert not gc.isenabled()
    click(filled.form.run_button)
    qtbot.waitUntil(lambda: len(ended) == 100)
    assert all(ended)
    qtbot.waitUntil(lambda: filled.queue.is_idle)
    filled.close()
    assert gc.isenabled()


def test_form_retains_its_project_while_others_are_viewed(filled: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    form, folder = filled.form, str(tmp_path / "project")
    project_with_results(tmp_path / "shew")
    filled.open_project(tmp_path / "shew")
    qtbot.waitUntil(lambda: not filled.results.is_busy)
    assert form.project.line.text() == folder
    assert form.project.open_button.text() == "Project: shew (open)" and form.project.open_button.isEnabled()
    # An unused form uses the open project.
    other = filled.searches["align"].form
    assert other.project.line.text() == str(tmp_path / "shew") and not other.project.open_button.isEnabled()
    filled.show_form()
    click(form.project.open_button)
    assert form.project.line.text() == str(tmp_path / "shew")
    qtbot.waitUntil(lambda: not form.project.open_button.isEnabled())


def test_open_project_is_selected_in_the_form_by_one_click(filled: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    Project.create_or_open(tmp_path / "shew")
    choice = filled.form.project
    filled.form.set_project_folder(tmp_path / "mine")
    filled.open_project(tmp_path / "shew")
    qtbot.waitUntil(choice.open_button.isVisible)
    assert choice.open_button.text() == "Project: shew (open)" and filled.form.project_folder() == tmp_path / "mine"
    click(choice.open_button)
    assert filled.form.project_folder() == tmp_path / "shew"
    qtbot.waitUntil(lambda: not choice.open_button.isEnabled())


def test_project_of_a_run_is_offered_to_the_next_search(
    filled: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = filled.searches["cluster"].form
    monkeypatch.setattr(SearchTask, "run", counting(steps=1))
    with qtbot.waitSignal(filled.bridge.finished):
        click(filled.form.run_button)
    assert waiting.project.line.text() == str(tmp_path / "project") and waiting.project.open_button.text() == "Project: project (open)"


def test_settings_are_on_disk_before_the_window_closes(window: MainWindow, database: Path, tmp_path: Path, qtbot: QtBot) -> None:
    """Check that a window ended by a signal shows no prompt."""
    project_with_results(tmp_path / "mine")
    Project.create_or_open(tmp_path / "away")
    for name in ("away", "mine"):
        window.open_project(tmp_path / name)
    # Settings are written without waiting; a signal right after is tested with a separate process.
    window.settings.flush()
    settings = SettingsFile(tmp_path / "settings.json").values
    assert settings.recent_projects == (str(tmp_path / "mine"), str(tmp_path / "away"))
    qtbot.waitUntil(lambda: not window.results.is_busy)
    window.form.file_lists["database"].add([database])
    window.menus.themes["dark"].trigger()
    window.resize(1011, 777)

    def is_stored() -> bool:
        values = SettingsFile(tmp_path / "settings.json").values
        return values.theme == "dark" and values.searches["identify"].files.get("database") == (str(database),)

    qtbot.waitUntil(is_stored)
    assert window.isVisible()


def test_recent_projects_show_search_date_and_missing_folders(make_window: Callable[[], MainWindow], tmp_path: Path, qtbot: QtBot) -> None:
    first = make_window()
    project, _ = project_with_results(tmp_path / "mine")
    Project.create_or_open(tmp_path / "away")
    for name in ("away", "mine"):
        first.open_project(tmp_path / name)
    qtbot.waitUntil(lambda: not first.results.is_busy)
    assert first.close()
    shutil.rmtree(tmp_path / "away")
    second = make_window()
    listed = [second.start_page.recent.item(row) for row in range(2)]
    date = QLocale().toString(QDate(project.runs()[-1].started.date()), QLocale.FormatType.ShortFormat)
    assert listed[0].text().startswith(f"mine    identification, {date}")
    qtbot.waitUntil(lambda: not second.menus.recent.actions()[1].isEnabled())
    assert second.menus.recent.actions()[0].isEnabled()
    away = second.start_page.recent.item(1)
    assert "missing: " in away.text() and away.foreground().color() == QColor(colours().faint_text)


@pytest.mark.parametrize(("width", "height"), [(1024, 700), (1280, 800), (640, 400)])
def test_first_window_fits_the_screen(
    make_window: Callable[[], MainWindow], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, width: int, height: int
) -> None:
    """Check a third screen of 1280 x 800 at 200 %."""
    monkeypatch.setattr(QScreen, "availableGeometry", lambda screen: QRect(0, 0, width, height))
    window = make_window()
    qtbot.waitUntil(lambda: window.width() <= width and window.height() <= height)
    window.new_search("identify")
    window.dock_jobs.show()
    qtbot.wait(50)
    assert window.width() <= width and window.height() <= height
    for widget in (window.form.run_button, window.statusBar(), window.device_button):
        corner = widget.mapTo(window, widget.rect().bottomRight())
        assert window.rect().contains(corner), widget
    assert window.jobs.height() < 50, "no jobs run, and the dock is one line"


def test_export_is_written_during_a_search(filled: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    project, _ = project_with_results(tmp_path / "shew")
    filled.open_project(tmp_path / "shew")
    qtbot.waitUntil(lambda: not filled.results.is_busy)
    filled.show_form()
    monkeypatch.setattr(SearchTask, "run", counting())
    click(filled.form.run_button)
    qtbot.waitUntil(lambda: filled.queue.running is not None)
    search, run = filled.queue.running, project.runs()[-1]
    assert search is not None
    filled.export(ExportTask(filled.search.search, project.folder, ExportRequest(run.id, "tsv", tmp_path / "mine")))
    qtbot.waitUntil(lambda: any(row.job is not search and row.job.is_over for row in filled.jobs.rows.values()))
    assert search.state == "running" and [row.job.state for row in filled.jobs.rows.values()] == ["running", "done"]
    assert list(tmp_path.glob("mine*"))
    filled.queue.cancel(search)


def test_double_click_on_run_queues_one_search(filled: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchTask, "run", counting(steps=1))
    button = filled.form.run_button
    # The events of a mouse: a click, and a second one reported as a double click.
    click(button)
    QTest.mouseDClick(button, Qt.MouseButton.LeftButton)
    # Qt's own function sends it without the release that clicks.
    QTest.mouseRelease(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: filled.queue.is_idle and bool(filled.jobs.rows))
    qtbot.wait(50)
    assert len(filled.jobs.rows) == 1


def test_deleted_database_is_reported_before_the_run(filled: MainWindow, database: Path, tmp_path: Path, qtbot: QtBot) -> None:
    form, database_file = filled.form, tmp_path / "own.fasta.gz"
    shutil.copy(database, database_file)
    form.file_lists["database"].clear()
    form.file_lists["database"].add([database_file])
    qtbot.waitUntil(form.run_button.isEnabled)
    database_file.unlink()
    click(form.run_button)
    assert "no longer exists" in form.file_lists["database"].message.text()
    assert filled.queue.is_idle and not filled.jobs.rows
    database_file.write_bytes(database.read_bytes())
    filled.show_page(filled.start_page)
    filled.show_form()
    qtbot.waitUntil(form.run_button.isEnabled)


def test_results_menu_shows_the_last_results_from_another_search(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project_with_results(tmp_path / "mine")
    window.open_project(tmp_path / "mine")
    qtbot.waitUntil(lambda: not window.results.is_busy)
    left = window.results
    window.menus.new["align"].trigger()
    window.menus.results.trigger()
    assert window.pages.currentWidget() is left
