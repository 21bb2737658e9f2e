"""Tests of the structure search with real input events: drop, choose, build a database, run, view, save."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs import Progress
from proteoscope.gui.database_dialog import DatabaseDialog, SkippedChains
from proteoscope.gui.forms.file_inspection import file_kind
from proteoscope.gui.forms.file_list import structure_text
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.window import MainWindow
from tests.engine.views.structure_projects import write_structures
from tests.gui.result_views import cut_off, settle
from tests.gui.test_window import click, drop

ASIDE = QPoint(100, 500)
"""A place of the window that belongs to no list of files."""


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile the structure reader, as after the first search on a machine."""
    compile_kernels(["superposition"], Progress())


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A query, and a folder with structures."""
    return write_structures(tmp_path / "files")


@pytest.fixture
def form(window: MainWindow) -> SearchForm:
    window.menus.new["structures"].trigger()
    return window.form


def close(dialog: DatabaseDialog) -> None:
    dialog.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_structure_files_are_recognised_by_content(files: tuple[Path, Path], tmp_path: Path) -> None:
    query, folder = files
    packed, unnamed, liar, listed, other = (tmp_path / name for name in ("q.cif.gz", "d1abca_", "text.pdb", "some.txt", "notes.txt"))
    packed.write_bytes(gzip.compress(query.read_bytes()))
    unnamed.write_bytes((folder / "unrelated0.pdb").read_bytes())
    liar.write_text("no structure\n")
    listed.write_text(f"# chosen\n{query}\n{folder / 'unrelated1.pdb'}\n")
    other.write_text("what I did on Monday\n")
    (tmp_path / "empty").mkdir()
    kinds = {path: file_kind(path) for path in (query, folder, packed, unnamed, liar, listed, other, tmp_path / "empty")}
    assert [kinds[path].format for path in (query, packed, unnamed)] == ["mmCIF", "mmCIF", "PDB"]
    assert kinds[folder].format == "folder with 11 structure files"
    assert kinds[listed].format == "list of 2 structure files"
    assert all(kinds[path].content == "structures" for path in (query, folder, packed, unnamed, listed))
    assert (
        "is not a structure file" in kinds[liar].problem
        and kinds[other].problem
        and "contains no structure files" in kinds[tmp_path / "empty"].problem
    )


def test_dropped_structures_are_added_to_the_field_and_counted(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    query, folder = files
    assert form.reason.text() == "Add a query structure"
    drop(window, query, at=ASIDE)
    queries, database = form.file_lists["queries"], form.file_lists["database"]
    qtbot.waitUntil(lambda: queries.paths == [query])
    drop(window, folder, at=ASIDE)
    # A folder is one line, however many files it holds.
    qtbot.waitUntil(lambda: database.paths == [folder])
    qtbot.waitUntil(lambda: bool(queries.structure_counts and database.structure_counts) and queries.note.isVisible())
    qtbot.waitUntil(lambda: database.note.text().startswith("11 protein chains"))
    assert queries.note.text() == structure_text([queries.structure_counts[query]])
    assert queries.note.text().startswith("1 protein chain, ") and "predicted" not in queries.note.text()
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.request.options == {"all": False} and task.title == "Search query.cif in searched"


def test_damaged_structure_file_blocks_the_search(form: SearchForm, files: tuple[Path, Path], qtbot: QtBot) -> None:
    query, folder = files
    (folder / "broken.pdb").write_text("ATOM  this is cut o")
    form.file_lists["queries"].add([query])
    form.file_lists["database"].add([folder])
    qtbot.waitUntil(lambda: "broken.pdb" in form.file_lists["database"].problem())
    qtbot.waitUntil(lambda: form.reason.text() == "A database cannot be used")
    assert not form.run_button.isEnabled()


def test_structure_form_accepts_a_folder_for_superposed_hits(
    form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    form.file_lists["queries"].add([files[0]])
    form.file_lists["database"].add([files[1]])
    line = form.folders["superpose"]
    line.line.setText(str(files[0]))
    qtbot.waitUntil(lambda: form.reason.text() == "query.cif is a file; choose a folder")
    line.line.setText(str(tmp_path / "superposed"))
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.request.options == {"all": False, "superpose": tmp_path / "superposed"}


def test_structure_form_reads_weights_and_sets_gap_costs_by_mode(form: SearchForm) -> None:
    editor = form.parameters.fields["weights"].editor
    boxes = editor._boxes  # type: ignore[attr-defined]
    assert editor.value() == (1.0, 1.0, 1.0, 1.0)
    boxes["Residues"].setFocus(Qt.FocusReason.TabFocusReason)
    boxes["Residues"].selectAll()
    QTest.keyClicks(boxes["Residues"], "0")
    QTest.keyClick(boxes["Residues"], Qt.Key.Key_Return)
    parameters = form.parameters.parameters
    assert parameters is not None and parameters.model_dump()["weights"] == (1.0, 1.0, 1.0, 0.0)
    boxes["Lengths"].selectAll()
    QTest.keyClicks(boxes["Lengths"], "77")
    assert form.parameters.parameters is None and "weights" in form.parameters.problems
    form.parameters.reset_all()
    form.parameters.set_values({"mode": "published"})
    assert form.parameters.values()["gap_first"] == 1.0


def test_structure_database_is_built_and_searched_in_the_window(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    query, folder = files
    (folder / "broken.pdb").write_text("ATOM  this is cut o")
    form.file_lists["queries"].add([query])
    click(form.file_lists["database"].database_button)
    dialog = window.findChild(DatabaseDialog)
    assert isinstance(dialog, DatabaseDialog) and not dialog.action_button.isEnabled()
    assert dialog.stage.text() == "Add the files or folders with the structures"
    dialog.sources.add([folder])
    qtbot.waitUntil(dialog.action_button.isEnabled)
    assert dialog.folder.path == folder.parent / "searched_database"
    dialog.folder.line.setText(str(tmp_path / "database"))
    with qtbot.waitSignal(dialog.built, timeout=120_000):
        click(dialog.action_button)
        assert dialog.cancel_button.isEnabled() and not dialog.sources.isEnabled()
    assert dialog.stage.text().startswith("Done: 11 chains, ") and "1 skipped" in dialog.stage.text()
    model = dialog.left_out.model()
    assert isinstance(model, SkippedChains) and dialog.left_out.isVisible() and model.rowCount() == 1
    assert model.index(0, 0).data() == "broken.pdb" and model.index(0, 2).data()
    dialog.left_out.selectRow(0)
    dialog.left_out.setFocus()
    dialog._copy()
    assert QGuiApplication.clipboard().text().startswith(str(folder / "broken.pdb"))
    assert not cut_off(dialog)
    close(dialog)
    assert form.file_lists["database"].paths == [tmp_path / "database"]
    qtbot.waitUntil(lambda: form.file_lists["database"].note.text().startswith("11 protein chains"))

    # A second database is refused.
    form.file_lists["database"].add([folder])
    qtbot.waitUntil(lambda: "cannot be combined with other files" in form.file_lists["database"].problem())
    form.take_database("database", tmp_path / "database")

    form.parameters.set_values({"qualification_threshold": 0})
    form.set_project_folder(tmp_path / "project")
    # A user is not as fast as the inspection, whose late result would count as a change of the form, which then remains in view.
    note = form.file_lists["database"].note
    qtbot.waitUntil(lambda: note.text().startswith("11 protein chains") and not form.validation_error() and form.run_button.isEnabled())
    qtbot.waitUntil(lambda: not form._checking.isActive())
    with qtbot.waitSignal(window.bridge.finished, timeout=300_000) as finished:
        click(form.run_button)
    assert finished.args[0].state == "done", finished.args[0].error_report or finished.args[0].error
    view = window.searches["structures"].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is view)
    settle(view, qtbot)
    assert isinstance(view, StructureView) and view.alignment.plot.pair is not None and not view.queries.isVisible()
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        window.export(view.superposition(tmp_path / "saved", view.alignment.plot.pair))  # type: ignore[arg-type]
    assert finished.args[0].state == "done" and (tmp_path / "saved" / "target.cif").is_file()
    assert "PyMOL" in window.tasks.outcome(finished.args[0])
    # A dropped database folder goes to the input for databases, not to the queries.
    window.show_form()
    form.file_lists["database"].clear()
    drop(window, tmp_path / "database", at=ASIDE)
    qtbot.waitUntil(lambda: form.file_lists["database"].paths == [tmp_path / "database"])
    assert form.file_lists["queries"].paths == [query]


def test_structure_database_dialog_cancels_and_reports_errors(
    window: MainWindow, form: SearchForm, files: tuple[Path, Path], tmp_path: Path, qtbot: QtBot
) -> None:
    window.dialogs.new_database()
    dialog = window.findChild(DatabaseDialog)
    assert isinstance(dialog, DatabaseDialog)
    dialog.sources.add([files[1]])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").write_text("other things")
    dialog.folder.line.setText(str(tmp_path / "full"))
    qtbot.waitUntil(dialog.action_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000):
        click(dialog.action_button)
    assert "is a folder with other things in it" in dialog.stage.text() and dialog.action_button.isEnabled()
    dialog.folder.line.setText(str(tmp_path / "new"))
    qtbot.waitUntil(dialog.action_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        click(dialog.action_button)
        click(dialog.cancel_button)
    assert finished.args[0].state == "cancelled" and dialog.stage.text().startswith("Cancelled")
    assert form.file_lists["database"].is_empty
    close(dialog)


def test_fields_of_structure_form_have_names_and_take_tab_focus(form: SearchForm, qtbot: QtBot) -> None:
    line = form.folders["superpose"]
    assert line.line.accessibleName() == "Write superposed hits into" and line.line.toolTip()
    button = form.file_lists["database"].database_button
    assert button.focusPolicy() & Qt.FocusPolicy.TabFocus and button.toolTip() and button.isVisible()
    assert not form.file_lists["queries"].database_button.isVisible()
    assert not cut_off(form)
