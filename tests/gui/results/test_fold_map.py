"""All chains against each other in the window: form, table of clusters, and map of folds, with real input events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.views.drawings import Cells
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.window import MainWindow
from tests.engine.views.structure_projects import project_of_all_chains, project_with_structures, write_structures
from tests.gui.result_views import click_row, cut_off, place_of, settle, shown
from tests.gui.x_events import Hand, wait_until_still, wait_until_still_in_form


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_of_all_chains(tmp_path_factory.mktemp("folds") / "project").folder


@pytest.fixture
def view(window: MainWindow, folder: Path, qtbot: QtBot) -> StructureView:
    window.open_project(folder)
    settle(window.results, qtbot)
    assert isinstance(window.results, StructureView)
    return window.results


def cells_of(view: StructureView) -> Cells:
    assert view.fold_map.drawing is not None
    (cells,) = (shape for shape in view.fold_map.drawing.shapes if isinstance(shape, Cells))
    return cells


def cell_place(view: StructureView, row: int, column: int) -> QPoint:
    """Return the middle of a cell of the map."""
    cells = cells_of(view)
    step = cells.width / len(cells.values)
    return QPoint(round(cells.x + (column + 0.5) * step), round(cells.y + (row + 0.5) * step))


def pair_of(view: StructureView) -> tuple[str, str]:
    pair = view.alignment.plot.pair
    assert isinstance(pair, StructurePair)
    return pair.query_name, pair.subject_name


def test_click_on_a_cell_of_the_fold_map_selects_the_pair(view: StructureView, folder: Path, hand: Hand, qtbot: QtBot) -> None:
    hits = pq.read_table(Project.open(folder).table("hits")).to_pylist()
    assert view.fold_map.isVisible() and view.clusters.isVisible() and not cut_off(view)
    assert shown(view.clusters, "chain") == pq.read_table(Project.open(folder).table("clusters"))["chain"].to_pylist()
    targets = cells_of(view).targets
    wait_until_still(lambda: view.fold_map.mapToGlobal(cell_place(view, 0, 0)), qtbot)
    for row, column in (np.argwhere(targets >= 0)[k] for k in (-1, 0)):
        hit = hits[targets[row, column]]
        hand.click(view.fold_map, cell_place(view, int(row), int(column)))
        qtbot.waitUntil(lambda hit=hit: view.alignment.plot.pair is not None and pair_of(view) == (hit["query"], hit["target"]))
        settle(view, qtbot)
        assert view.fold_map.marked == targets[row, column] == view.hits.view.chosen
    before = view.fold_map.marked
    row, column = np.argwhere(targets < 0)[0]
    hand.click(view.fold_map, cell_place(view, int(row), int(column)))
    settle(view, qtbot)
    assert view.fold_map.marked == before, "a pair that was not superposed has no alignment"
    # The arrow keys visit each pair once.
    QTest.keyClick(view.fold_map, Qt.Key.Key_Home)
    visited = [view.fold_map.marked]
    for _ in range(len(hits) - 1):
        QTest.keyClick(view.fold_map, Qt.Key.Key_Right)
        visited.append(view.fold_map.marked)
    assert sorted(map(int, visited)) == list(range(len(hits)))  # type: ignore[call-overload]
    settle(view, qtbot)


def test_cluster_row_shows_all_pairs_of_its_chain(view: StructureView, folder: Path, hand: Hand, qtbot: QtBot) -> None:
    hits = pq.read_table(Project.open(folder).table("hits")).to_pylist()
    target = next(row["target"] for row in hits if row["target"] in {other["query"] for other in hits})
    wait_until_still(lambda: place_of(view.clusters, 0)[1], qtbot)
    hand.click(*place_of(view.clusters, shown(view.clusters, "chain").index(target)))
    qtbot.waitUntil(lambda: view.hits.scope_text == f"with {target}")
    settle(view, qtbot)
    pairs = list(zip(shown(view.hits, "query"), shown(view.hits, "target"), strict=True))
    assert pairs == [(row["query"], row["target"]) for row in hits if target in (row["query"], row["target"])]
    assert len({query for query, _ in pairs}) > 1 and pair_of(view) == pairs[0]
    view.tabs.setCurrentIndex(0)
    for position in (len(pairs) - 1, 0):
        click_row(view.hits, position, qtbot)
        qtbot.waitUntil(lambda position=position: pair_of(view) == pairs[position])
        settle(view, qtbot)
    # A query limits the hits to its own again.
    click_row(view.queries, 1, qtbot)
    query = shown(view.queries, "query")[1]
    qtbot.waitUntil(lambda: view.hits.scope_text == f"of {query}")
    settle(view, qtbot)
    assert shown(view.hits, "target") == [row["target"] for row in hits if row["query"] == query]


def test_fold_map_is_hidden_for_a_search_of_queries(window: MainWindow, view: StructureView, tmp_path: Path, qtbot: QtBot) -> None:
    assert view.tabs.tabBar().isVisible()
    other = project_with_structures(tmp_path / "project")
    window.open_project(other.folder)
    qtbot.waitUntil(lambda: window.results is view and view.run is not None)
    settle(view, qtbot)
    assert not view.tabs.tabBar().isVisible() and view.hits.isVisible() and not view.clusters.isVisible()
    assert view.fold_map.drawing is None and pair_of(view)[0] == "query"


def test_structure_form_can_compare_all_chains_with_each_other(window: MainWindow, tmp_path: Path, hand: Hand, qtbot: QtBot) -> None:
    query, searched = write_structures(tmp_path / "files", n_unrelated=2)
    window.menus.new["structures"].trigger()
    form = window.form
    form.file_lists["database"].add([searched])
    form.set_project_folder(tmp_path / "project")
    qtbot.waitUntil(lambda: form.reason.text() == "Add a query structure")
    box = form.options["all"]
    wait_until_still_in_form(box, window, qtbot)
    hand.click(box, QPoint(10, box.height() // 2))
    qtbot.waitUntil(lambda: box.isChecked() and form.run_button.isEnabled())
    form.file_lists["queries"].add([query])
    qtbot.waitUntil(lambda: form.reason.text() == f"Remove the query structures, or clear “{box.text()}”")
    assert not form.run_button.isEnabled()
    form.file_lists["queries"].clear()
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.title == "Search all in searched" and task.request.flag("all")
    qtbot.waitUntil(lambda: form.file_lists["database"].note.text().startswith("5 protein chains"))
    # The last inspection result is not shown yet; a user is not as fast.
    qtbot.wait(100)
    with qtbot.waitSignal(window.bridge.finished, timeout=300_000) as finished:
        hand.click(form.run_button)
    assert finished.args[0].state == "done", finished.args[0].error_report or finished.args[0].error
    view = window.searches["structures"].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is view)
    settle(view, qtbot)
    assert isinstance(view, StructureView) and view.clusters.total == 5 and len(cells_of(view).values) == 5
    # The settings of the run can be used again.
    assert view.run is not None
    form.empty_for_new_search()
    assert not box.isChecked()
    window.run_actions.search_again(view.run)
    assert box.isChecked() and form.file_lists["queries"].is_empty
