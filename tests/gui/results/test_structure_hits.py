"""Tests of structure search results with real input events, compared with the tables."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.views.sheets import Region
from proteoscope.engine.views.structure_hits import BOUNDED
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.results.structure_filter import THRESHOLDS
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.tasks import SuperpositionTask
from proteoscope.gui.theme import Theme
from tests.engine.views.structure_projects import AUTHORS_SHIFT, project_with_structures
from tests.gui.result_views import SharedView, click_row, cut_off, overlapping, settle, shown, wait_until_fitting
from tests.searching import find_structures


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_structures(tmp_path_factory.mktemp("structures") / "project").folder


@pytest.fixture(scope="module")
def project(searched: Path) -> Project:
    return Project.open(searched)


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[StructureView]]:
    opened_view = SharedView(StructureView(), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[StructureView], qtbot: QtBot, theme: Theme) -> StructureView:
    return cached_view.as_opened(qtbot)


def rows_of(project: Project, query: int | None = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(project.table("hits")).to_pylist()
    return [row for row in rows if query is None or row["query_index"] == query]


def pair_of(view: StructureView) -> StructurePair:
    pair = view.alignment.plot.pair
    assert isinstance(pair, StructurePair)
    return pair


def test_rank_column_title_of_structure_hits_has_the_sort_order(view: StructureView) -> None:
    model = view.hits.model
    section = [column.name for column in model.columns].index("rank")
    header = model.headerData(section, Qt.Orientation.Horizontal)
    assert view._finished is not None
    wanted = {"sensitive": "Rank (TM, z)", "published": "Rank (score)"}
    assert header == wanted[str(view._finished.parameters["mode"])]


def test_structure_view_first_shows_best_hit_of_the_first_query(view: StructureView, project: Project) -> None:
    rows = rows_of(project)
    assert view.queries.isVisible() and view.queries.view.chosen == 0
    assert shown(view.hits, "target") == [row["target"] for row in rows]
    assert rows[0]["target"].startswith("relative")
    assert pair_of(view).subject_name == rows[0]["target"]
    assert view.header.text.startswith(f"{len(rows_of(project, None))} hits, 2 queries with hits of 2 queries")
    assert "database" in view.header.facts and "sensitive mode" in view.header.facts


def test_structure_alignment_equals_the_table_and_has_distances(view: StructureView, project: Project, searched: Path) -> None:
    row, pair = rows_of(project)[0], pair_of(view)
    files = searched.parent / "project files"
    query = read_structure(files / "query.cif").chains
    target = read_structure(files / "searched" / f"{row['target']}.pdb").chains
    assert pair.query.replace("-", "") == query.sequence(0) and pair.subject.replace("-", "") == target.sequence(0)
    rotation, translation = np.array(row["rotation"]).reshape(3, 3), np.array(row["translation"].split(","), float)
    moved = target.position @ rotation.T + translation
    aligned = (pair.of_query >= 0) & (pair.of_target >= 0)
    expected = np.linalg.norm(query.position[pair.of_query[aligned]] - moved[pair.of_target[aligned]], axis=1)
    assert aligned.sum() == row["aligned_length"] and np.allclose(pair.distance[aligned], expected, atol=1e-4)
    assert np.sqrt((pair.distance[aligned] ** 2).mean()) == pytest.approx(row["rmsd"], abs=0.01)
    # Numbers are the authors'.
    assert pair.labels(0, len(pair))[0] == (str(AUTHORS_SHIFT + 1), str(AUTHORS_SHIFT + len(query.position)))
    assert any(f"RMSD {row['rmsd']:.2f} Å over {row['aligned_length']} pairs" in fact for fact in pair.facts)


def test_structure_alignment_tooltip_describes_a_column(view: StructureView) -> None:
    plot = view.alignment.plot
    sheet = plot._sheet
    assert sheet is not None
    across, down = sheet.corner(30)
    text = plot.text_at(plot.on_viewport(Region(across + 2, down + 2, 1, 1)).topLeft())
    assert text == pair_of(view).column_text(30) and "Å to the next Cα" in text


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda threshold: threshold.column)
def test_structure_filter_counts_hits_before_enter_applies_it(threshold: Any, view: StructureView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project)
    values = sorted(row[threshold.column] for row in rows)
    bound = values[len(values) // 2]
    box, label = view.filters.boxes[threshold.column], view.filters.counts[threshold.column]
    assert label.text() == f"{len(rows)} of {len(rows)}"
    box.setFocus(Qt.FocusReason.TabFocusReason)
    typed = f"{bound / threshold.scale:.10g}"
    bound = float(typed) * threshold.scale
    is_least = BOUNDED[threshold.column] == ">="
    passing = [row for row in rows if (row[threshold.column] >= bound if is_least else row[threshold.column] <= bound)]
    QTest.keyClicks(box, typed)
    assert label.text() == f"{len(passing)} of {len(rows)}"
    assert len(view.hits.model.rows) == len(rows)
    QTest.keyClick(box, Qt.Key.Key_Return)
    qtbot.wait(250)
    settle(view, qtbot)
    assert shown(view.hits, "target") == [row["target"] for row in passing]
    view.filters.reset_button.click()
    settle(view, qtbot)
    assert len(view.hits.model.rows) == len(rows) and label.text() == f"{len(rows)} of {len(rows)}"


def test_empty_structure_filter_sets_no_limit(view: StructureView, qtbot: QtBot) -> None:
    box = view.filters.boxes["tm_score_query"]
    assert box.lineEdit().text() == "" and box.number is None and not box.problem()
    box.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.number == 0.5
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert box.number == 0.55
    box.lineEdit().selectAll()
    QTest.keyClick(box, Qt.Key.Key_Delete)
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert box.number is None and view.filters.chosen.bounds == {}
    box.lineEdit().setText("0,,5")
    assert box.problem() and view.filters.counts["tm_score_query"].text() == "not a number"


def test_mouse_wheel_does_not_change_unfocused_structure_filters(view: StructureView) -> None:
    view.hits.view.setFocus()
    for box in view.filters.boxes.values():
        at = QPointF(box.rect().center())
        wheel = QWheelEvent(
            at,
            QPointF(box.mapToGlobal(at.toPoint())),
            QPointF(0, 120).toPoint(),
            QPointF(0, 120).toPoint(),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(box, wheel)
        assert box.number is None


def test_structure_filter_counts_hits_of_selected_or_all_queries(view: StructureView, project: Project, qtbot: QtBot) -> None:
    click_row(view.queries, 1, qtbot)
    settle(view, qtbot)
    assert view.filters.counts["rmsd"].text() == "{0} of {0}".format(len(rows_of(project, 1)))
    assert shown(view.hits, "target") == [row["target"] for row in rows_of(project, 1)]
    view.hits.all_button.click()
    settle(view, qtbot)
    every = rows_of(project, None)
    assert view.filters.counts["rmsd"].text() == "{0} of {0}".format(len(every))
    # A hit of another query leaves all of them on the screen.
    click_row(view.hits, 0, qtbot)
    settle(view, qtbot)
    assert len(view.hits.model.rows) == len(every) and view.queries.view.chosen == 0
    assert view.filters.counts["rmsd"].text() == "{0} of {0}".format(len(every))


def test_structure_hit_is_saved_superposed_on_the_query(view: StructureView, tmp_path: Path, qtbot: QtBot) -> None:
    view.superpose_action.trigger()
    dialog = view.findChild(QFileDialog)
    with qtbot.waitSignal(view.exportRequested) as signal:
        dialog.fileSelected.emit(str(tmp_path / "superposed"))
    dialog.close()
    task = signal.args[0]
    assert isinstance(task, SuperpositionTask) and task.title == f"Superpose {pair_of(view).subject_name} and query"
    assert task.run(Progress()) == tmp_path / "superposed"
    names = {path.name for path in (tmp_path / "superposed").iterdir()}
    assert {"query.cif", "target.cif", "alignment.fasta", "superposition.tsv", "superposition.pml", "superposition.cxc"} <= names
    row = dict(zip(*(line.split("\t") for line in (tmp_path / "superposed" / "superposition.tsv").read_text().splitlines()), strict=True))
    hit = pair_of(view).hit
    assert row["cigar"] == hit["cigar"] and float(row["rmsd"]) == pytest.approx(hit["rmsd"], abs=1e-3)


def test_copied_structure_alignment_equals_the_shown_alignment(view: StructureView) -> None:
    view.alignment.copy_button.click()
    text = QGuiApplication.clipboard().text()
    assert text == pair_of(view).text() and "H" * 8 in text and "TM-score" in text


def test_structure_view_shows_alignments_without_structure_files(searched: Path, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    shutil.copytree(searched, tmp_path / "project")
    files = searched.parent / "project files"
    files.rename(tmp_path / "elsewhere")
    widget = StructureView()
    qtbot.addWidget(widget)
    widget.show()
    try:
        widget.show_run(Project.open(tmp_path / "project"), None)
        settle(widget, qtbot)
        pair = pair_of(widget)
        assert pair.labels(0, len(pair))[0][0] == "1" and not np.isfinite(pair.distance).any()
        assert "Without distances and author residue numbers" in pair.facts[-1]
        task = widget.superposition(tmp_path / "out", pair)
        assert task is not None
        with pytest.raises(InputError, match="Restore the file"):
            task.run(Progress())
    finally:
        widget.clear()
        (tmp_path / "elsewhere").rename(files)


@pytest.mark.parametrize("size", [(640, 520), (820, 600), (1000, 700), (1300, 850), (2200, 1200)])
@pytest.mark.parametrize("look", ["light", "dark"])
def test_structure_view_cuts_off_no_text_at_any_size(
    size: tuple[int, int], look: Any, view: StructureView, theme: Theme, qtbot: QtBot
) -> None:
    theme.choose(look)
    view.resize(*size)
    wait_until_fitting(lambda: cut_off(view.filters) + overlapping(view.filters), qtbot)
    assert view.width() <= size[0]


def test_structure_hits_of_queries_without_a_row_are_shown(searched: Path, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    """With a query table cut to one row, the hits of the other query are shown too."""
    shutil.copytree(searched, tmp_path / "project")
    project, view = Project.open(tmp_path / "project"), StructureView()
    qtbot.addWidget(view)
    path = project.table("queries")
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE results SET sha256 = ?, bytes = ? WHERE name = 'queries'", (file_digest(path), path.stat().st_size))
    view.show()
    view.show_run(Project.open(project.folder), None)
    settle(view, qtbot)
    numbers = [row["query_index"] for row in rows_of(project, None)]
    assert set(numbers) == {0, 1} and view.hits.total == len(numbers)
    view.hits.view.choose(numbers.index(1))
    settle(view, qtbot)
    assert view.hits.view.chosen == numbers.index(1)
    view.clear()


def test_structure_view_warns_of_hits_by_chance(tmp_path: Path, sample_data: Path, qtbot: QtBot, theme: Theme) -> None:
    """Check a random walk, which resembles no fold, and a chain of the database, which does."""
    rng, place, lines = np.random.default_rng(3), np.zeros(3), []
    for number in range(1, 61):
        step = rng.normal(size=3)
        place = place + 3.8 * step / np.linalg.norm(step)
        lines.append(f"ATOM  {number:5d}  CA  ALA A{number:4d}    {place[0]:8.3f}{place[1]:8.3f}{place[2]:8.3f}  1.00  0.00           C\n")
    (tmp_path / "walk.pdb").write_text("".join(lines) + "END\n")
    folds = tmp_path / "folds.pdb"
    folds.write_bytes(gzip.decompress((sample_data / "folds.pdb.gz").read_bytes()))
    for query, is_chance in ((tmp_path / "walk.pdb", True), (folds, False)):
        find_structures([query], [folds], None, StructureSearchParameters(), project_folder=tmp_path / query.stem, device="cpu")
        widget = StructureView()
        qtbot.addWidget(widget)
        widget.show_run(Project.open(tmp_path / query.stem), None)
        settle(widget, qtbot)
        assert widget.hits.model.rowCount() > 0
        assert ("All hits are as expected by chance: the best E-value is" in widget.header.warnings) is is_chance
        widget.clear()
