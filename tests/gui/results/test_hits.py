"""Tests of sequence search results with real input events, compared with the tables and the engine's alignments."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QEvent, QLocale, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAction, QColor, QGuiApplication, QHelpEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QMenu, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequences.alignment import align_pair
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.views.drawings import svg
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Text
from proteoscope.engine.views.histograms import histogram_figure
from proteoscope.engine.views.hits import Bar, QueryBars
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.forms.field import Outlined
from proteoscope.gui.plots.hit_bars import HitBars
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.theme import Theme
from tests.engine.views.search_projects import project_with_search, search_files
from tests.gui.result_views import SharedView, click_row, cut_off, overlapping, settle, shown, wait_until_fitting
from tests.searching import align


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with a run of three queries."""
    return project_with_search(tmp_path_factory.mktemp("searched") / "project").folder


Opener = Callable[..., tuple[HitsView, Project]]


@pytest.fixture(scope="session")
def searched_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with a run of one query."""
    return project_with_search(tmp_path_factory.mktemp("searched") / "project", n_queries=1).folder


@pytest.fixture
def open_hits(qtbot: QtBot, theme: Theme, tmp_path: Path, searched: Path) -> Iterator[Opener]:
    views: list[HitsView] = []

    def open_one(folder: Path = searched) -> tuple[HitsView, Project]:
        copy = tmp_path / f"project {len(views)}"
        shutil.copytree(folder, copy)
        project = Project.open(copy)
        view = HitsView()
        views.append(view)
        qtbot.addWidget(view)
        view.resize(1300, 800)
        with qtbot.waitActive(view):
            view.show()
            view.activateWindow()
        view.show_run(project, None)
        settle(view, qtbot)
        return view, project

    yield open_one
    for view in views:
        view.clear()


@pytest.fixture(scope="module")
def cached_hits(searched: Path, request: pytest.FixtureRequest) -> Iterator[tuple[SharedView[HitsView], Project]]:
    project = Project.open(searched)
    view = SharedView(HitsView(), project, request, (1300, 800))
    yield view, project
    view.close()


@pytest.fixture
def shared_hits(cached_hits: tuple[SharedView[HitsView], Project], theme: Theme, qtbot: QtBot) -> Opener:
    """Open hits as `open_hits` does, for tests that neither sort nor change files."""
    cached_view, project = cached_hits
    return lambda: (cached_view.as_opened(qtbot), project)


def rows_of(project: Project, name: str) -> list[dict[str, Any]]:
    return pq.read_table(project.table(name)).to_pylist()


def wait_for_typing(view: HitsView, qtbot: QtBot) -> None:
    qtbot.wait(200)
    settle(view, qtbot)


def test_header_of_sequence_hits_describes_search_and_hits(shared_hits: Opener) -> None:
    view, project = shared_hits()
    hits, queries = rows_of(project, "hits"), rows_of(project, "queries")
    n_subjects = sum(row["n_subjects"] for row in rows_of(project, "score_counts") if row["query_index"] == 0)
    assert n_subjects == 3 * 12 + 150
    assert view.header.text == f"{len(hits)} hits, 3 queries with hits of 3 queries against {n_subjects} sequences"
    for part in (
        "queries.fasta against database.fasta",
        "BLOSUM62, gaps 11/1",
        f"lambda {queries[0]['lambda']:.3g}",
        "NCBI's table",
        "cpu",
    ):
        assert part in view.header.facts


def test_hits_view_first_shows_the_best_hit_of_the_first_query(shared_hits: Opener) -> None:
    view, project = shared_hits()
    of_first = [row for row in rows_of(project, "hits") if row["query_index"] == 0]
    assert shown(view.hits, "subject") == [row["subject"] for row in of_first]
    assert view.hits.scope_text == "of Q0"
    pair = view.alignment.plot.pair
    assert pair is not None
    assert (pair.query_name, pair.subject_name) == ("Q0", of_first[0]["subject"])
    assert view.bars.bars is not None and view.bars.chosen == 0
    assert [bar.name for bar in view.bars.bars.bars] == [row["subject"] for row in of_first]


def test_alignment_of_selected_hit_equals_the_engine(shared_hits: Opener, qtbot: QtBot, tmp_path: Path) -> None:
    view, _ = shared_hits()
    queries, database = search_files(tmp_path / "again")
    codes = {}
    for path in (queries, database):
        read = read_sequences([path], Progress())
        codes |= {read.accession(i): read.codes(i) for i in range(len(read))}
    scheme = ScoringScheme(read_matrix("BLOSUM62"), 11, 1)
    for query, hit in ((0, 0), (1, 3), (2, 7)):
        click_row(view.queries, query, qtbot)
        settle(view, qtbot)
        click_row(view.hits, hit, qtbot)
        settle(view, qtbot)
        pair = view.alignment.plot.pair
        assert pair is not None
        expected = align_pair(codes[pair.query_name], codes[pair.subject_name], scheme, Progress())
        assert (pair.query, pair.middle, pair.subject) == expected.lines()
        assert (pair.query_start, pair.subject_start) == (expected.query_start + 1, expected.subject_start + 1)
        assert f"identity {100 * expected.identities / len(expected):.1f} % of {len(expected)}" in pair.facts[0]


def test_alignment_facts_count_gap_openings_and_gap_residues(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    rows = rows_of(project, "hits")
    view.show_all("hits")
    settle(view, qtbot)
    values = set()
    for place in range(0, min(len(rows), 60), 4):
        runs = [int(length) for length, kind in re.findall(r"(\d+)([MID])", rows[place]["cigar"]) if kind != "M"]
        view.hits.view.choose(place)
        settle(view, qtbot)
        pair = view.alignment.plot.pair
        assert pair is not None and pair.subject_name == rows[place]["subject"]
        openings = f"{len(runs)} gap opening{'s' if len(runs) > 1 else ''}"
        residues = f"{sum(runs)} residue{'s' if sum(runs) > 1 else ''}"
        expected = f"{openings} ({residues})" if runs else "no gaps"
        assert f", {expected}, " in pair.facts[1]
        values.add(expected)
    assert len(values) > 2


def test_table_bars_and_alignment_of_hits_share_the_selection(shared_hits: Opener, qtbot: QtBot) -> None:
    view, _ = shared_hits()
    click_row(view.hits, 4, qtbot)
    settle(view, qtbot)
    assert view.bars.chosen == view.hits.view.chosen == 4
    box = box_of(view.bars, 2)
    assert box is not None
    qtbot.mouseClick(view.bars.viewport(), Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    settle(view, qtbot)
    assert view.hits.view.currentIndex().row() == 2
    pair = view.alignment.plot.pair
    assert pair is not None and pair.subject_name == shown(view.hits, "subject")[2]
    view.bars.setFocus()
    qtbot.keyClick(view.bars, Qt.Key.Key_Down)
    qtbot.keyClick(view.bars, Qt.Key.Key_Down)
    settle(view, qtbot)
    assert view.hits.view.currentIndex().row() == 4
    view.hits.view.setFocus()
    qtbot.keyClick(view.hits.view, Qt.Key.Key_Up)
    settle(view, qtbot)
    assert view.bars.chosen == 3
    assert view.alignment.plot.pair is not None and view.alignment.plot.pair.subject_name == shown(view.hits, "subject")[3]


def test_selected_query_shows_its_hits_bars_and_scores(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    click_row(view.queries, 2, qtbot)
    settle(view, qtbot)
    of_third = [row for row in rows_of(project, "hits") if row["query_index"] == 2]
    assert shown(view.hits, "subject") == [row["subject"] for row in of_third]
    assert view.bars.bars is not None
    assert (view.bars.bars.query, view.bars.bars.query_length) == ("Q2", 240)
    spans = [(bar.start, bar.end, bar.bit_score) for bar in view.bars.bars.bars]
    assert spans == [(row["query_start"], row["query_end"], row["bit_score"]) for row in of_third]
    assert view.scores.histogram is not None and view.scores.histogram.title == "Scores of Q2"


def test_hits_table_lists_hits_of_all_or_the_selected_query(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    qtbot.mouseClick(view.hits.all_button, Qt.MouseButton.LeftButton)
    settle(view, qtbot)
    everything = rows_of(project, "hits")
    assert shown(view.hits, "query") == [row["query"] for row in everything]
    assert "query" not in view.hits.view.hidden_columns()
    of_third = next(i for i, row in enumerate(everything) if row["query_index"] == 2)
    click_row(view.hits, of_third, qtbot)
    settle(view, qtbot)
    assert len(view.hits.model.rows) == len(everything), "all hits remain"
    assert view.queries.view.currentIndex().row() == 2
    assert view.bars.bars is not None and view.bars.bars.query == "Q2" and view.bars.chosen == of_third
    click_row(view.queries, 1, qtbot)
    settle(view, qtbot)
    assert view.hits.scope_text == "of Q1"
    assert "query" in view.hits.view.hidden_columns()


def test_hit_filters_equal_a_plain_loop(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    hits = [row for row in rows_of(project, "hits") if row["query_index"] == 0]
    bar = view.filters
    for change, keeps in (
        (lambda: bar.e_value.setValue(1e-20), lambda row: row["e_value"] <= 1e-20),
        (lambda: bar.identity.setValue(60), lambda row: row["identity"] >= 0.6),
        (lambda: bar.coverage.setValue(50), lambda row: row["query_coverage"] >= 0.5),
        (lambda: bar.text.setText("RELATIVE 3"), lambda row: "relative 3" in row["description"]),
        (lambda: bar.text.setText("r0_5"), lambda row: "r0_5" in row["subject"].lower()),
    ):
        change()
        wait_for_typing(view, qtbot)
        expected = [row["subject"] for row in hits if keeps(row)]
        assert 0 < len(expected) < len(hits)
        assert shown(view.hits, "subject") == expected
        assert view.bars.bars is not None and [hit_bar.name for hit_bar in view.bars.bars.bars] == expected
        bar.reset_button.click()
        settle(view, qtbot)
        assert len(view.hits.model.rows) == len(hits)


def test_e_value_filter_accepts_decimal_and_scientific_notation(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    box = view.filters.e_value
    assert box.value() == 10.0
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "1e-30")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    wait_for_typing(view, qtbot)
    expected = [row for row in rows_of(project, "hits") if row["query_index"] == 0 and row["e_value"] <= 1e-30]
    assert len(view.hits.model.rows) == len(expected) > 0
    qtbot.keyClick(box, Qt.Key.Key_Up)
    assert box.value() == pytest.approx(1e-29)


@pytest.mark.parametrize(
    ("typed", "expected"), [("-5", "-5"), ("0,05", "0,05"), ("1,5", "1,5"), ("1e-", "1e-"), ("", ""), ("nan", "10"), ("abc", "10")]
)
def test_invalid_e_value_is_marked_and_leaves_filter_unchanged(shared_hits: Opener, qtbot: QtBot, typed: str, expected: str) -> None:
    view, _ = shared_hits()
    n_hits = len(view.hits.model.rows)
    box = view.filters.e_value
    frame = box.parentWidget()
    assert isinstance(frame, Outlined) and not frame.is_wrong
    usual_tip = box.toolTip()
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, typed) if typed else qtbot.keyClick(box, Qt.Key.Key_Delete)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Tab):
        qtbot.keyClick(box, key)
        wait_for_typing(view, qtbot)
        assert box.text() == expected
        assert view.filters.chosen.e_value is None and len(view.hits.model.rows) == n_hits
        assert frame.is_wrong == (expected != "10") == ("Expected a number such as 0.5" in box.toolTip())
    view.filters.reset_button.click()
    assert (box.text(), frame.is_wrong, box.toolTip()) == ("10", False, usual_tip)


@pytest.mark.parametrize("typed", ["0.001", "0,001", "1e-3", "1E-3"])
def test_e_value_filter_in_german_accepts_point_and_comma(open_hits: Opener, qtbot: QtBot, typed: str) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    try:
        view, _ = open_hits()
        box = view.filters.e_value
        box.setFocus()
        box.selectAll()
        qtbot.keyClicks(box, typed)
        qtbot.keyClick(box, Qt.Key.Key_Return)
        assert box.value() == 0.001 and box.text() == "0,001"
    finally:
        QLocale.setDefault(before)


def test_arrow_keys_change_the_e_value_filter_by_powers_of_ten(shared_hits: Opener, qtbot: QtBot) -> None:
    view, _ = shared_hits()
    box = view.filters.e_value
    box.setValue(1e-5)
    for power in range(6, 120):
        qtbot.keyClick(box, Qt.Key.Key_Down)
        assert box.text().lower() == f"1e-{power:02d}" and box.value() == float(f"1e-{power}")


@pytest.mark.parametrize(("name", "typed"), [("identity", "2,5"), ("coverage", "37.5"), ("identity", "120")])
def test_hit_filter_marks_a_fractional_or_too_large_percentage(shared_hits: Opener, qtbot: QtBot, name: str, typed: str) -> None:
    view, _ = shared_hits()
    box = getattr(view.filters, name)
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, typed)
    qtbot.keyClick(box, Qt.Key.Key_Return)
    frame = box.parentWidget()
    assert box.value() in (0, 12), "after 12, the third digit of 120 is not accepted"
    assert isinstance(frame, Outlined) and frame.is_wrong == (box.text() != "12 %")


def test_hits_view_shows_the_first_hit_if_selected_one_is_hidden(shared_hits: Opener, qtbot: QtBot) -> None:
    view, _ = shared_hits()
    last = len(view.hits.model.rows) - 1
    view.hits.view.choose(last)
    settle(view, qtbot)
    view.filters.text.setText("relative 2")
    wait_for_typing(view, qtbot)
    pair = view.alignment.plot.pair
    assert pair is not None and pair.subject_name == shown(view.hits, "subject")[0]
    view.filters.text.setText("nothing is called so")
    wait_for_typing(view, qtbot)
    assert view.alignment.plot.pair is None and view.bars.bars is None
    assert "pass the filter" in view._empty_reason(view.hits)


def test_every_column_of_the_hits_table_can_be_sorted(open_hits: Opener, qtbot: QtBot) -> None:
    view, project = open_hits()
    hits = [row for row in rows_of(project, "hits") if row["query_index"] == 0]
    view.hits.view.hide_columns([])
    for section, column in enumerate(view.hits.model.columns):
        view.hits.view._sort_by(section)
        settle(view, qtbot)
        values = shown(view.hits, column.name)
        descends = column.kind in ("integer", "number", "percent")
        assert values == sorted((row[column.name] for row in hits), reverse=descends), column.name


def test_every_visible_column_of_hits_can_be_sorted_by_keyboard(open_hits: Opener, qtbot: QtBot) -> None:
    view, project = open_hits()
    of_first = [row for row in rows_of(project, "hits") if row["query_index"] == 0]
    table = view.hits.view

    def sort_actions() -> dict[str, QAction]:
        menu = table.columns_menu()
        qtbot.addWidget(menu)
        sort_menu = next(action.menu() for action in menu.actions() if action.menu() is not None)
        assert isinstance(sort_menu, QMenu) and sort_menu.title() == "&Sort by"
        return {action.text(): action for action in sort_menu.actions()}

    titles = [column.header for column in view.hits.model.columns if column.name not in table.hidden_columns()]
    assert list(sort_actions()) == titles
    sort_actions()["Subject"].trigger()
    settle(view, qtbot)
    assert shown(view.hits, "subject") == sorted(row["subject"] for row in of_first)
    action = sort_actions()["Subject, ascending"]
    assert action.isChecked()
    action.trigger()
    settle(view, qtbot)
    assert shown(view.hits, "subject") == sorted((row["subject"] for row in of_first), reverse=True)
    assert "Subject, descending" in sort_actions()


def test_find_and_copy_shortcuts_work_in_the_hits_table(shared_hits: Opener, qtbot: QtBot) -> None:
    view, _ = shared_hits()
    view.hits.view.setFocus()
    qtbot.keyClick(view.hits.view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert view.filters.text.hasFocus()
    view.hits.view.setFocus()
    with qtbot.waitSignal(view.message):
        qtbot.keyClick(view.hits.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 2 and lines[1].split("\t")[0] == shown(view.hits, "subject")[0]


def test_hits_view_of_a_single_query_hides_the_query_table(open_hits: Opener, searched_once: Path) -> None:
    view, project = open_hits(searched_once)
    assert not view.queries.isVisible()
    assert view.hits.scope_text == "" and view.hits.all_button.isHidden()
    assert len(view.hits.model.rows) == len(rows_of(project, "hits"))
    assert "of Q0 against" in view.header.text
    assert view.alignment.plot.pair is not None


def test_score_histogram_has_all_sequences_and_expected_curve(shared_hits: Opener, qtbot: QtBot) -> None:
    view, project = shared_hits()
    counts = [row for row in rows_of(project, "score_counts") if row["query_index"] == 0]
    histogram = view.scores.histogram
    assert histogram is not None and view.scores.is_log
    edges, bins = histogram.edges, histogram.series[0][1]
    for low, high, n in zip(edges[:-1], edges[1:], bins, strict=True):
        assert n == sum(row["n_subjects"] for row in counts if low <= row["score"] < high)
    beyond = sum(row["n_subjects"] for row in counts if row["score"] >= edges[-1])
    assert bins.sum() + beyond == sum(row["n_subjects"] for row in counts)
    assert view.scores.figure is not None
    (note,) = [mark.text for mark in view.scores.figure.panels[0].marks if isinstance(mark, Text)]
    assert note.startswith(f"{beyond} score higher")
    assert histogram.curve is not None
    _, places, heights = histogram.curve
    width = edges[1] - edges[0]
    expected = sum(row["n_expected"] for row in rows_of(project, "score_expectations") if row["query_index"] == 0)
    assert heights.sum() / width == pytest.approx(expected, rel=0.05)
    # Nearly all sequences are unrelated and have chance scores.
    unrelated = sum(row["n_subjects"] for row in counts) - 12
    assert expected == pytest.approx(unrelated, rel=0.1)
    assert (
        abs(places[np.argmax(heights)] - np.median(np.repeat([row["score"] for row in counts], [row["n_subjects"] for row in counts]))) < 6
    )
    least = min(row["score"] for row in rows_of(project, "hits") if row["query_index"] == 0)
    assert histogram.mark == (least, "hits from")
    view.tabs.setCurrentIndex(1)
    view.log_axis.click()
    settle(view, qtbot)
    assert view.scores.histogram is not None and not view.scores.is_log


@pytest.mark.parametrize("expected", [[2.9], [0.3, 0.2, 0.1]])
def test_score_histogram_of_few_sequences_has_whole_numbers(
    open_hits: Opener, searched: Path, tmp_path: Path, expected: list[float]
) -> None:
    tiny = Project.create_or_open(tmp_path / "tiny")
    project = Project.open(searched)
    numbers: dict[str, tuple[str, list[Any]]] = {"score_counts": ("n_subjects", [3]), "score_expectations": ("n_expected", expected)}
    with tiny.run("align", {"matrix": "BLOSUM62"}, device="cpu") as run:
        for name in ("queries", "hits"):
            run.write_table(name, pq.read_table(project.table(name)).slice(0, 1 if name == "queries" else 0))
        for name, (column, values) in numbers.items():
            schema = pq.read_table(project.table(name)).schema
            rows = [{"query_index": 0, "score": 7 + i, column: value} for i, value in enumerate(values)]
            run.write_table(name, pa.Table.from_pylist(rows, schema=schema))
    view, _ = open_hits(tmp_path / "tiny")
    histogram = view.scores.histogram
    assert histogram is not None
    assert np.array_equal(np.diff(histogram.edges), np.ones(len(histogram.edges) - 1)) and len(histogram.edges) > 10
    assert histogram.series[0][1].tolist() == [3, *[0] * (len(histogram.edges) - 2)]
    # Wide enough for ticks at fractions of a score.
    (tmp_path / "scores.svg").write_bytes(svg(lay_out(histogram_figure(histogram, is_log=True), (1600.0, 300.0))))
    drawn = [text.strip() for text in ElementTree.parse(tmp_path / "scores.svg").getroot().itertext() if text.strip()]
    assert "Expected by chance" not in drawn
    along = [text for text in drawn if re.fullmatch(r"[\d.]+", text)]
    assert {"8", "9", "10", "11", "12"} <= set(along) and not any("." in text for text in along)


def test_hits_run_without_expected_scores_shows_the_histogram(open_hits: Opener, searched: Path, tmp_path: Path) -> None:
    old = Project.create_or_open(tmp_path / "old")
    project = Project.open(searched)
    with old.run("align", {"matrix": "BLOSUM62"}, device="cpu") as run:
        for name in ("queries", "hits", "score_counts"):
            run.write_table(name, pq.read_table(project.table(name)))
    view, _ = open_hits(tmp_path / "old")
    assert view.text == ""
    assert view.scores.histogram is not None and view.scores.histogram.curve is None


def test_hits_view_shows_a_message_for_a_query_without_hits(open_hits: Opener, searched: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.open(searched)
    bare = Project.create_or_open(tmp_path / "bare")
    with bare.run("align", {}, device="cpu") as run:
        for name in ("queries", "hits", "score_counts", "score_expectations"):
            table = pq.read_table(project.table(name))
            run.write_table(name, table.filter(pc.not_equal(table["query_index"], 1)) if name == "hits" else table)
    view, _ = open_hits(tmp_path / "bare")
    click_row(view.queries, 1, qtbot)
    settle(view, qtbot)
    assert len(view.hits.model.rows) == 0
    assert view.alignment.plot.pair is None and view.bars.bars is None


def test_hits_view_opens_the_next_run_after_a_damaged_table(open_hits: Opener, searched: Path, qtbot: QtBot) -> None:
    view, project = open_hits()
    path = project.table("hits")
    path.write_bytes(path.read_bytes()[:-100])
    view.show_run(Project.open(project.folder), None)
    settle(view, qtbot)
    assert "hits.parquet" in view.text
    view.show_run(Project.open(searched), None)
    settle(view, qtbot)
    assert view.text == "" and view.alignment.plot.pair is not None


def test_hits_view_reports_hits_of_a_query_that_cannot_be_read(open_hits: Opener, qtbot: QtBot) -> None:
    view, project = open_hits()
    project.folder.rename(project.folder.with_name("moved"))
    view.queries.view.choose(1)
    settle(view, qtbot)
    assert len(view.hits.model.rows) == 0 and view.alignment.plot.pair is None
    assert "hits.parquet" in view._empty_reason(view.hits) and "The project was moved or deleted" in view._empty_reason(view.hits)


def test_hits_view_is_not_widened_by_a_long_query_name(open_hits: Opener, tmp_path: Path) -> None:
    queries, database = search_files(tmp_path / "files", n_queries=1)
    queries.write_text(queries.read_text(encoding="utf-8").replace(">Q0", f">{'L' * 300}"), encoding="utf-8")
    align([queries], [database], None, SequenceSearchParameters(), project_folder=tmp_path / "long", device="cpu")
    view, _ = open_hits(tmp_path / "long")
    assert " hits of LLL" in view.header.text and view.header.text.endswith("L… against 162 sequences")
    assert view.width() == 1300 and view.minimumSizeHint().width() < 700
    view._fail(ValueError("/" + "x" * 400))
    assert view.minimumSizeHint().width() < 700


def test_cleared_hits_view_shows_nothing_and_reads_nothing(open_hits: Opener, qtbot: QtBot) -> None:
    view, _ = open_hits()
    view.hits.view._sort_by(3)
    click_row(view.queries, 1, qtbot)
    view.clear()
    assert not view.is_busy
    qtbot.wait(50)
    assert view.alignment.plot.pair is None and view.bars.bars is None and view.scores.histogram is None
    assert "No results yet" in view.text


def test_hits_view_shows_numbers_in_german_format(open_hits: Opener) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    try:
        view, project = open_hits()
        best = rows_of(project, "hits")[0]
        section = [column.name for column in view.hits.model.columns].index("bit_score")
        assert view.hits.model.index(0, section).data() == f"{best['bit_score']:.1f}".replace(".", ",")
        pair = view.alignment.plot.pair
        assert pair is not None and f"{best['bit_score']:.1f} bits".replace(".", ",") in pair.facts[0]
    finally:
        QLocale.setDefault(before)


def test_widgets_of_hits_view_have_names_and_are_reached_by_tab(shared_hits: Opener, qtbot: QtBot) -> None:
    view, _ = shared_hits()
    assert not view.alignment.copy_button.accessibleName().startswith("&")
    view.filters.text.setFocus()
    reached: list[str] = []
    for _ in range(40):
        focused = QGuiApplication.focusObject()
        assert isinstance(focused, QWidget)
        reached.append(focused.accessibleName() or getattr(focused, "text", lambda: "")() or type(focused).__name__)
        qtbot.keyClick(focused, Qt.Key.Key_Tab)
    names = (
        *("Filter by text", "Maximum E-value", "Minimum identity", "Minimum coverage of the query", "Rese&t"),
        *("Queries", "Hits", "Hits along the query"),
        *("Reduce text (Ctrl+-)", "100 %", "Enlarge text (Ctrl++)"),
        "Copy the alignment as text, in BLAST's layout",
        "Copy the two aligned sequences with their gaps, as FASTA",
        "Save the whole alignment as SVG, PDF or PNG",
        "Alignment of the selected hit",
    )
    places = [reached.index(name) for name in names]
    assert places == sorted(places), list(zip(names, places, strict=True))
    assert "Export results…" in reached
    assert "QTableView" not in reached and "QWidget" not in reached


@pytest.mark.parametrize(("width", "height"), [(1300, 800), (980, 620), (590, 480)])
def test_hits_view_cuts_off_no_text_at_any_size(shared_hits: Opener, qtbot: QtBot, width: int, height: int) -> None:
    view, _ = shared_hits()
    view.resize(width, height)
    for tab in range(view.tabs.count()):
        view.tabs.setCurrentIndex(tab)
        wait_until_fitting(lambda: cut_off(view), qtbot)
    assert overlapping(view.filters) == []


def box_of(bars: HitBars, row: int) -> QRectF | None:
    """Return the position on the viewport of the bar of a table row."""
    assert bars._sheet is not None
    place = next((place for place, bar in enumerate(bars._sheet.hits.bars) if bar.row == row), None)
    return None if place is None else bars.on_viewport(bars._sheet.box(place))


BITS = (39.9, 40.0, 50.0, 80.0, 200.0)


@pytest.fixture
def bars(qtbot: QtBot, theme: Theme) -> HitBars:
    widget = HitBars()
    qtbot.addWidget(widget)
    widget.resize(600, 300)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    made = tuple(Bar(10 + i, f"S{i}", "a protein", 1 + 50 * i, 100 + 50 * i, bits, 1e-9, 0.5) for i, bits in enumerate(BITS))
    widget.show_bars(QueryBars("Q", 400, made, len(made)))
    return widget


def test_hit_bars_have_the_score_classes_of_blast(bars: HitBars) -> None:
    image = bars.viewport().grab().toImage()
    colours = []
    for row in range(10, 15):
        box = box_of(bars, row)
        assert box is not None
        place = box.center() * image.devicePixelRatio()
        colours.append(image.pixelColor(place.toPoint()))
    assert len({colour.name() for colour in colours}) == 5
    palette = plot_colours(bars.palette())
    assert [colours[0].name(), colours[4].name()] == [QColor(palette.faint).name(), QColor(palette.ions["y"]).name()]


def test_hit_bar_without_bit_score_has_the_lowest_class_colour(bars: HitBars) -> None:
    """Check missing values, which the table of hits allows."""
    bars.show_bars(QueryBars("Q", 400, (Bar(10, "S0", "a protein", 1, 100, None, None, 0.5),), 1))
    box = box_of(bars, 10)
    assert box is not None
    image = bars.viewport().grab().toImage()
    colour = image.pixelColor((box.center() * image.devicePixelRatio()).toPoint())
    assert colour.name() == QColor(plot_colours(bars.palette()).faint).name()
    assert bars.text_at(box.center()).splitlines() == ["S0", "a protein", "50.0 % identical", "residues 1 to 100 of the query"]


def test_hit_bars_lie_at_the_aligned_range_of_the_query(bars: HitBars) -> None:
    boxes = [box_of(bars, 10 + i) for i in range(5)]
    assert all(box is not None for box in boxes)
    lefts, widths = [box.left() for box in boxes if box], [box.width() for box in boxes if box]
    assert np.allclose(np.diff(lefts), np.diff(lefts)[0]) and np.allclose(widths, 2 * np.diff(lefts)[0])


def test_hit_bar_has_a_tooltip_and_is_selected_by_click(bars: HitBars, qtbot: QtBot) -> None:
    box = box_of(bars, 13)
    assert box is not None
    text = bars.text_at(QPointF(box.center().toPoint()))
    assert text.splitlines() == ["S3", "a protein", "80.0 bits, E-value 1.0e-09, 50.0 % identical", "residues 151 to 250 of the query"]
    with qtbot.waitSignal(bars.hitChosen) as signal:
        qtbot.mouseClick(bars.viewport(), Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    assert signal.args == [13]
    assert bars.text_at(QPointF(1, 1)) == ""
    qtbot.mouseClick(bars.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert bars.chosen == 13


def test_hit_bar_tooltip_shows_names_in_full_as_plain_text(bars: HitBars, qtbot: QtBot) -> None:
    bar = Bar(1, "<b>bold</b>&amp;", "d" * 600, 1, 100, 90.0, 1e-9, 0.5)
    bars.show_bars(QueryBars("Q", 400, (bar,), 1))
    box = box_of(bars, 1)
    assert box is not None
    at = box.center().toPoint()
    qtbot.mouseMove(bars.viewport(), at)
    QApplication.sendEvent(bars.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, bars.viewport().mapToGlobal(at)))
    qtbot.waitUntil(QToolTip.isVisible)
    shown = QTextDocument()
    shown.setHtml(QToolTip.text())
    lines = shown.toPlainText().splitlines()
    assert lines[0] == "<b>bold</b>&amp;" and max(map(len, lines)) <= 100 and "".join(lines[1:7]) == "d" * 600
    QToolTip.hideText()


def test_selected_hit_bar_is_scrolled_into_view(bars: HitBars) -> None:
    many = tuple(Bar(i, f"S{i}", "", 1, 50, 45.0, 1e-3, 0.3) for i in range(400))
    bars.show_bars(QueryBars("Q", 60, many, 2000))
    bars.mark(390)
    box = box_of(bars, 390)
    assert box is not None and bars.viewport().rect().contains(box.toRect())
    bars.mark(0)
    box = box_of(bars, 0)
    assert box is not None and bars.viewport().rect().contains(box.toRect())


def test_hit_bars_are_exported(bars: HitBars, tmp_path: Path) -> None:
    bars.export_action.write(tmp_path / "hits.svg")
    text = (tmp_path / "hits.svg").read_text(encoding="utf-8")
    assert "Bit score" in text and "80–200" in text and "the best" not in text
    drawn = [part.strip() for part in ElementTree.fromstring(text).itertext() if part.strip()]
    assert "Hits of Q (400 residues)" in drawn and [part for part in drawn if re.fullmatch(r"S\d", part)] == [f"S{i}" for i in range(5)]
    assert bars.bars is not None
    bars.show_bars(QueryBars("Q", 400, bars.bars.bars, 1234))
    bars.export_action.write(tmp_path / "hits.svg")
    assert "the best 5 of 1,234 hits" in (tmp_path / "hits.svg").read_text(encoding="utf-8")


def test_exported_hit_bars_have_a_fixed_width_for_long_names(bars: HitBars, tmp_path: Path) -> None:
    many = tuple(Bar(i, f"{i:03d}{'W' * 300}", "", 1, 50, 45.0, 1e-3, 0.3) for i in range(150))
    bars.show_bars(QueryBars("L" * 300, 60, many, 2000))
    figure = bars._figure()
    assert figure is not None and figure.draw(None).width == 480
    bars.export_action.write(tmp_path / "hits.svg")
    drawn = [part.strip() for part in ElementTree.parse(tmp_path / "hits.svg").getroot().itertext() if part.strip()]
    names = [part for part in drawn if re.fullmatch(r"\d{3}W+…", part)]
    assert [int(name[:3]) for name in names] == list(range(100))
    assert any(re.fullmatch(r"Hits of L+… \(60 residues\)", part) for part in drawn)
