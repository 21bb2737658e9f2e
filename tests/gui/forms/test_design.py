"""Tests of the design table of the quantification form with X events: fill down, paste, undo, errors, run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.gui.forms.design_editor import DesignEditor
from proteoscope.gui.forms.design_model import DesignModel
from proteoscope.gui.window import MainWindow
from tests.engine.views.quantity_projects import FILES, identified_project
from tests.gui.x_events import Hand, wait_until_still, x_events_problem


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return identified_project(tmp_path_factory.mktemp("identified"))


@pytest.fixture
def design(window: MainWindow, project: Path, qtbot: QtBot) -> DesignEditor:
    with qtbot.waitActive(window):
        window.move(0, 0)
        window.resize(1280, 800)
        window.activateWindow()
    window.new_search("quantify")
    window.form.set_project_folder(project)
    editor = window.form.designs["design"]
    qtbot.waitUntil(lambda: len(editor.model.table.rows) == len(FILES))
    return editor


@pytest.fixture
def hand(design: DesignEditor, qtbot: QtBot) -> Iterator[Hand]:
    if x_events_problem():
        pytest.skip(x_events_problem())
    made = Hand(qtbot)
    yield made
    made.close()


def column(model: DesignModel, name: str) -> list[str]:
    at = model.table.columns.index(name)
    return [row[at] for row in model.table.rows]


def click_cell(editor: DesignEditor, window: MainWindow, row: int, name: str, hand: Hand, qtbot: QtBot, *holding: str) -> None:
    view, index = editor.view, editor.model.index(row, editor.model.table.columns.index(name))

    def place() -> QPoint:
        window.form.scroll_area.ensureWidgetVisible(view)
        return view.viewport().mapToGlobal(view.visualRect(index).center())

    wait_until_still(place, qtbot)
    hand.click(view.viewport(), view.visualRect(index).center(), holding)
    qtbot.waitUntil(lambda: view.selectionModel().isSelected(index))


def test_design_table_is_guessed_filled_pasted_and_undone(
    design: DesignEditor, window: MainWindow, project: Path, hand: Hand, qtbot: QtBot
) -> None:
    model = design.model
    assert design.is_used.isChecked() and column(model, "condition") == ["control", "control", "heat", "heat"]
    design.is_used.setChecked(False)
    assert "no conditions are compared. Check “Use a design” to name conditions here or to paste a design." in design.message.text()
    design.is_used.setChecked(True)
    qtbot.waitUntil(lambda: "heat compared with control" in design.message.text())
    click_cell(design, window, 0, "condition", hand, qtbot)
    hand.type("dose")
    hand.press("enter")
    qtbot.waitUntil(lambda: column(model, "condition")[0] == "dose")
    click_cell(design, window, 0, "condition", hand, qtbot)
    click_cell(design, window, 2, "condition", hand, qtbot, "shift")
    hand.press("ctrl", "d")
    qtbot.waitUntil(lambda: column(model, "condition") == ["dose", "dose", "dose", "heat"])
    # Two samples of one condition have one number now.
    qtbot.waitUntil(lambda: "replicate" in window.form.reason.text() and not window.form.run_button.isEnabled())
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: column(model, "condition") == ["dose", "control", "heat", "heat"])
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: column(model, "condition") == ["control", "control", "heat", "heat"])
    QApplication.clipboard().setText("s1\tA\t1\ns2\tA\t2\ns3\tB\t1\ns4\tB\t2\n")
    click_cell(design, window, 0, "sample", hand, qtbot)
    hand.press("ctrl", "v")
    qtbot.waitUntil(lambda: column(model, "sample") == ["s1", "s2", "s3", "s4"])
    assert column(model, "condition") == ["A", "A", "B", "B"] and column(model, "replicate") == ["1", "2", "1", "2"]
    window.form.presets.choose("counts")
    qtbot.waitUntil(window.form.run_button.isEnabled)
    task = window.form.task()
    assert task is not None
    with qtbot.waitSignal(window.bridge.finished) as finished:
        window.form.run()
    assert finished.args[0].state == "done", finished.args[0].error
    opened = Project.open(project)
    written = [input_file.path for input_file in opened.inputs(opened.latest("quantify") or "") if input_file.kind == "design"]
    assert written[0].read_text() == task.tables["design"] and written[0].is_relative_to(project)
    assert written[0].read_text().splitlines()[4] == "made_heat_2.mzML\ts4\tB\t2"


def test_design_table_is_loaded_from_files_or_reports_errors(design: DesignEditor, tmp_path: Path, qtbot: QtBot) -> None:
    design.save(tmp_path / "saved.tsv")
    before = design.model.table
    (tmp_path / "other.tsv").write_text((tmp_path / "saved.tsv").read_text().replace("heat", "cold").replace("made_cold", "made_heat"))
    design.load(tmp_path / "other.tsv")
    assert column(design.model, "condition") == ["control", "control", "cold", "cold"] and design.problem() == ""
    (tmp_path / "foreign.tsv").write_text("file\tsample\tcondition\treplicate\nelsewhere\ta\tb\t1\n")
    design.load(tmp_path / "foreign.tsv")
    assert design.problem().startswith("Row 1: 'elsewhere' is not a file of the identification")
    design.load(tmp_path / "nowhere.tsv")
    assert design.wrong.text().startswith("The design was not loaded.")
    design.model.undo()
    design.model.undo()
    assert design.model.table == before
    design.prompt_to_load()
    dialog = design.findChild(QFileDialog)
    assert dialog is not None
    dialog.close()


def test_pasted_design_cells_match_files_or_fill_the_selection(design: DesignEditor) -> None:
    model = design.model
    model.paste([["condition", "File"], ["late", "made_heat_2"], ["early", "made_control_1.mzML"], ["none", "unknown"]], (0, 0), [])
    assert column(model, "condition") == ["early", "control", "heat", "late"]
    model.paste([["x"]], (0, 2), [(0, 2), (1, 2), (3, 2)])
    assert column(model, "condition") == ["x", "x", "heat", "x"]
    model.paste([["a", "b", "c", "d"]] * 9, (3, 0), [])
    assert model.table.rows[3] == ("made_heat_2.mzML", "b", "c", "d") and len(model.table.rows) == 4
    assert not model.flags(model.index(0, 0)) & Qt.ItemFlag.ItemIsEditable


def test_reuse_of_settings_restores_runs_and_design(
    window: MainWindow, project: Path, design: DesignEditor, tmp_path: Path, qtbot: QtBot
) -> None:
    table = tmp_path / "own.tsv"
    names = [Path(name).name for name in FILES]
    lines = [f"{name}\tsample {number}\t{'odd' if number % 2 else 'even'}\t{number + 1}" for number, name in enumerate(names)]
    table.write_text("\n".join(["file\tsample\tcondition\treplicate", *lines]) + "\n")
    identified = next(run.id for run in Project.open(project).runs() if run.kind != "quantify")
    parameters: dict[str, Any] = {"method": "counts", "run": (identified,)}
    done = run_search("quantify", {"project": [project]}, options={"design": table}, device="cpu", **parameters)
    window.open_project(project)
    qtbot.waitUntil(lambda: any(run.id == done.run_id for run in window.project_pane.records))
    design.guess()
    window.run_actions.search_again(next(run for run in window.project_pane.records if run.id == done.run_id))
    qtbot.waitUntil(lambda: not design.is_busy and column(design.model, "sample")[:1] == ["sample 0"])
    assert column(design.model, "condition") == ["odd" if number % 2 else "even" for number in range(len(names))]
    assert design.is_used.isChecked()
    assert window.form.parameters.values()["run"] == (identified,)


def test_block_columns_of_design_are_added_undone_and_removed(design: DesignEditor, window: MainWindow, qtbot: QtBot) -> None:
    model, button = design.model, design.blocks_button
    before = model.table
    assert button.accessibleName() == "Block columns of the comparison" and button.focusPolicy() & Qt.FocusPolicy.TabFocus
    window.form.scroll_area.ensureWidgetVisible(button)
    button.setFocus()
    QTimer.singleShot(0, lambda: QTest.keyClick(QApplication.activePopupWidget(), Qt.Key.Key_S))
    qtbot.keyClick(button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: model.table.columns[-1] == "subject")
    assert design.block_actions["subject"].isChecked() and not design.block_actions["plex"].isChecked()
    assert model.headerData(4, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole).startswith("Individual from which")
    model.set_cells(((row, 4), text) for row, text in enumerate(["a", "b", "a", "b"]))
    assert design.problem() == "" and "Blocks of the comparison: subject." in design.message.text()
    assert design.text().splitlines()[1].split("\t")[4] == "a"
    model.undo()
    model.undo()
    assert model.table == before and not design.block_actions["subject"].isChecked()
    window.undo_stack.step_forward()
    assert model.table.columns[-1] == "subject"
    design.block_actions["subject"].trigger()
    assert model.table == before


def test_design_with_conditions_confounded_by_block_is_rejected(design: DesignEditor, window: MainWindow, qtbot: QtBot) -> None:
    design.block_actions["batch"].trigger()
    assert design.problem() == ""
    design.model.set_cells(((row, 4), text) for row, text in enumerate(["1", "1", "2", ""]))
    assert design.problem().startswith("Conditions are not compared: the design has a batch for other samples, but not for sample heat_2")
    design.model.set_cells([((3, 4), "2")])
    sentence = "Conditions are not compared: heat cannot be compared with control: conditions and batch change together"
    assert design.problem().startswith(sentence) and design.wrong.text().startswith(sentence) and design.wrong.isVisibleTo(design)
    qtbot.waitUntil(lambda: not window.form.run_button.isEnabled() and window.form.reason.text().startswith(sentence))
    design.model.undo()
    design.model.undo()
    assert design.problem() == ""
