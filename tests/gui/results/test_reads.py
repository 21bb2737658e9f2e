"""Tests of read alignment results with real input events, compared with the tables and the aligned files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.aligned_pair import IDENTICAL
from proteoscope.engine.views.reads import NO_READS
from proteoscope.gui.plots.histogram import HistogramPlot
from proteoscope.gui.results.reads_view import ReadsView
from proteoscope.gui.theme import Theme
from tests.engine.views.read_projects import N_UNRELATED, WITHIN, genome_of, project_with_reads
from tests.engine.views.result_projects import rows_of
from tests.gui.result_views import SharedView, click_row, cut_off, opened, overlapping, settle, shown


@pytest.fixture(scope="module")
def project(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Project with local alignments of reads from both strands of three short parts of lambda; all pairs have one."""
    return project_with_reads(tmp_path_factory.mktemp("reads") / "project", genome_of(shared_data))


@pytest.fixture(scope="module")
def within(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_reads(tmp_path_factory.mktemp("within") / "project", genome_of(shared_data), **WITHIN)


def view_of(project: Project, qtbot: QtBot) -> ReadsView:
    view = ReadsView(search_of_kind("reads"))
    opened(view, project, qtbot)
    return view


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[ReadsView]]:
    opened_view = SharedView(ReadsView(search_of_kind("reads")), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[ReadsView], qtbot: QtBot, theme: Theme) -> ReadsView:
    return cached_view.as_opened(qtbot)


@pytest.fixture(scope="module")
def cached_within(within: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[ReadsView]]:
    opened_view = SharedView(ReadsView(search_of_kind("reads")), within, request)
    yield opened_view
    opened_view.close()


def test_reads_view_first_draws_the_first_alignment(view: ReadsView, project: Project) -> None:
    rows = rows_of(project, "alignments")
    n_patterns = len({row["pattern"] for row in rows})
    assert view.header.text == f"{len(rows)} alignments of {n_patterns} reads with 3 references"
    assert "parts of both, at most 2 gaps, both strands" in view.header.facts and "match 1, mismatch -3" in view.header.facts
    assert shown(view.alignments, "score") == [row["score"] for row in rows] and view.alignments.view.chosen == 0
    pair = view.alignment.plot.pair
    assert pair is not None and (pair.query_name, pair.subject_name) == (rows[0]["pattern"], rows[0]["text"])
    assert view.references.currentText() == rows[0]["text"] and view.references.count() == 3
    assert view.coverage.marked == (rows[0]["text_start"], rows[0]["text_end"])
    assert cut_off(view) == [] and overlapping(view.filters) == []


def test_selected_read_alignment_is_drawn_with_its_reference(view: ReadsView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project, "alignments")
    at = next(k for k, row in enumerate(rows[:9]) if row["text"] != rows[0]["text"])
    click_row(view.alignments, at, qtbot)
    settle(view, qtbot)
    pair = view.alignment.plot.pair
    assert pair is not None and pair.subject_name == rows[at]["text"] == view.references.currentText()
    assert view.coverage.marked == (rows[at]["text_start"], rows[at]["text_end"])
    assert view.coverage.shown is not None and view.coverage.shown.name == rows[at]["text"]


Passes = Callable[[dict[str, Any]], bool]
FILTERS: dict[str, tuple[dict[str, Any], Passes]] = {
    "score": ({"score": 40}, lambda row: (row["score"] or -1) >= 40),
    "gaps": ({"minimum_gaps": 1, "maximum_gaps": 1}, lambda row: row["gaps"] == 1),
    "no gaps": ({"maximum_gaps": 0}, lambda row: row["gaps"] == 0),
    "identity": ({"minimum_identity": 95, "below_identity": 99.5}, lambda row: 0.95 <= (row["identity"] or 0) < 0.995),
    "strand": ({"rows": "-"}, lambda row: row["strand"] == "-"),
    "aligned": ({"rows": "aligned"}, lambda row: row["score"] is not None),
    "not aligned": ({"rows": "none"}, lambda row: row["score"] is None),
    "text": ({"text": "READ1"}, lambda row: "read1" in row["pattern"]),
    "name": ({"text": "part2"}, lambda row: row["text"] == "part2"),
    "cigar": ({"text": "1I"}, lambda row: "1I" in (row["cigar"] or "")),
    "both": (
        {"text": "read", "maximum_gaps": 1, "rows": "+"},
        lambda row: row["strand"] == "+" and row["gaps"] <= 1 and "read" in row["pattern"],
    ),
}


def choose(view: ReadsView, filters: dict[str, Any], qtbot: QtBot) -> None:
    bar = view.filters
    for name, value in filters.items():
        if name == "text":
            bar.text.setText(value)
        elif name == "rows":
            bar.rows.setCurrentIndex(bar.rows.findData(value))
        else:
            getattr(bar, name).setValue(value)
    bar.text.returnPressed.emit()
    settle(view, qtbot)


@pytest.mark.parametrize("name", FILTERS)
def test_read_alignment_filters_equal_a_plain_loop(
    within: Project, cached_within: SharedView[ReadsView], qtbot: QtBot, theme: Theme, name: str
) -> None:
    view = cached_within.as_opened(qtbot)
    filters, passes = FILTERS[name]
    rows = rows_of(within, "alignments")
    choose(view, filters, qtbot)
    expected = [row for row in rows if passes(row)]
    assert shown(view.alignments, "pattern") == [row["pattern"] for row in expected]
    assert 0 < len(expected) < len(rows)
    depth, text = view.coverage.shown, view.references.currentText()
    assert depth is not None
    assert depth.n_alignments == sum(row["text"] == text and row["score"] is not None for row in expected)
    view.filters.reset()
    settle(view, qtbot)
    assert len(view.alignments.model.rows) == len(rows)


def test_reads_without_an_alignment_are_listed_and_counted(within: Project, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(within, qtbot)
    rows = rows_of(within, "alignments")
    n_none = sum(row["score"] is None for row in rows)
    assert n_none >= 3 * N_UNRELATED - 3 and len(view.alignments.model.rows) == len(rows)
    n_patterns = len({row["pattern"] for row in rows})
    assert view.header.text == f"{len(rows) - n_none} alignments of {n_patterns} reads with 3 references, {n_none} without an alignment"
    choose(view, {"rows": "none"}, qtbot)
    assert view.alignment.plot.pair is None and view.alignment.plot._text.endswith("with so few gaps.")
    assert view.coverage.marked is None and view.coverage.shown is not None and view.coverage.shown.n_alignments == 0
    assert view.gaps.histogram is None and view.gaps.text == "No alignments pass the filter."
    view.filters.reset()
    settle(view, qtbot)
    view.tabs.setCurrentIndex(1)
    assert view.gaps.histogram is not None and view.gaps.histogram.x_title == f"Gaps of an alignment; {n_none} without an alignment"
    view.clear()


def test_click_in_depth_plot_lists_alignments_at_the_position(view: ReadsView, project: Project, qtbot: QtBot) -> None:
    view.references.setCurrentIndex(1)
    view.references.activated.emit(1)
    settle(view, qtbot)
    text = view.references.currentText()
    view.coverage.show_range(((1000.5, 1060.5),))
    inner = view.coverage.inner()
    at = QPoint(round(inner.left() + (1030 - 1000.5) / 60 * inner.width()), round(inner.center().y()))
    QTest.mouseClick(view.coverage.viewport(), Qt.MouseButton.LeftButton, pos=at)
    settle(view, qtbot)
    rows = rows_of(project, "alignments")
    expected = [row for row in rows if row["text"] == text and row["text_start"] <= 1030 <= row["text_end"]]
    assert shown(view.alignments, "pattern") == [row["pattern"] for row in expected] and len(expected) > 1
    assert view.alignments.scope_text == f"at 1030 of {text}" and view.coverage.selected_range == (1030, 1030)
    assert view.coverage.text_at(QPointF(at)) == f"1030: depth {len(expected)}"
    pair = view.alignment.plot.pair
    assert pair is not None and pair.query_name == expected[0]["pattern"]
    choose(view, {"rows": "-"}, qtbot)
    assert shown(view.alignments, "pattern") == [row["pattern"] for row in expected if row["strand"] == "-"]
    view.alignments.all_button.click()
    settle(view, qtbot)
    assert len(view.alignments.model.rows) == sum(row["strand"] == "-" for row in rows) and view.coverage.selected_range is None


def middle_of(plot: HistogramPlot, number: int) -> QPoint:
    """Return a position in a bin."""
    assert plot.histogram is not None
    area, n = plot.inner(), len(plot.histogram.edges) - 1
    return QPoint(round(area.left() + (number + 0.5) / n * area.width()), round(area.center().y()))


def test_click_on_histogram_bar_toggles_the_alignment_filter(view: ReadsView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project, "alignments")
    view.tabs.setCurrentIndex(1)
    settle(view, qtbot)
    view.grab()
    gaps, identity = view.gaps.histogram, view.identity.histogram
    assert gaps is not None and identity is not None
    assert gaps.series[0][1].tolist() == [sum(row["gaps"] == n for row in rows) for n in range(len(gaps.edges) - 1)]
    assert view.gaps.text_at(QPointF(middle_of(view.gaps, 2))) == f"2: Alignments: {gaps.series[0][1][2]}"
    assert identity.series[0][1].sum() == len(rows) and identity.edges[-1] == 100
    for number in (int(np.argmax(identity.series[0][1][:-1])), len(identity.edges) - 2):
        n = int(identity.series[0][1][number])
        QTest.mouseClick(view.identity.viewport(), Qt.MouseButton.LeftButton, pos=middle_of(view.identity, number))
        settle(view, qtbot)
        assert len(view.alignments.model.rows) == n > 0
        again = view.identity.histogram
        assert again is not None and again.series[0][1].tolist() == identity.series[0][1].tolist()
        assert again.chosen == (identity.edges[number], identity.edges[number + 1])
        assert view.gaps.histogram is not None and view.gaps.histogram.series[0][1].sum() == n
        QTest.mouseClick(view.identity.viewport(), Qt.MouseButton.LeftButton, pos=middle_of(view.identity, number))
        settle(view, qtbot)
        assert len(view.alignments.model.rows) == len(rows)
    assert view.gaps.is_log and view.identity.is_log
    view.log_axis.click()
    settle(view, qtbot)
    assert view.gaps.histogram is not None and not view.gaps.is_log
    QTest.mouseClick(view.gaps.viewport(), Qt.MouseButton.LeftButton, pos=middle_of(view.gaps, 1))
    settle(view, qtbot)
    assert shown(view.alignments, "gaps") == [1] * int(gaps.series[0][1][1])
    assert (view.filters.minimum_gaps.entered, view.filters.maximum_gaps.entered) == (1, 1)


def test_read_alignment_is_copied_with_its_score_and_positions(view: ReadsView, project: Project, qtbot: QtBot) -> None:
    rows = rows_of(project, "alignments")
    at = next(k for k, row in enumerate(rows) if row["strand"] == "-" and row["score"] > 60 and row["gaps"])
    view.alignments.view.choose(at)
    settle(view, qtbot)
    pair = view.alignment.plot.pair
    assert pair is not None and (pair.kinds == IDENTICAL).any() and len(pair.legend) == 4
    view.alignment.copy_button.click()
    copied = QGuiApplication.clipboard().text()
    assert copied.startswith(f"{rows[at]['pattern']} x {rows[at]['text']} (with the reverse complement)")
    assert f"score {rows[at]['score']}, identity" in copied and f"  {rows[at]['pattern_end']}  {pair.query[:60]}" in copied


def without_reads(project: Project, folder: Path, *, patterns: bool) -> Project:
    """Return the run with an empty table of reads, or with none."""
    other = Project.create_or_open(folder)
    with other.run("reads", ReadAlignmentParameters().model_dump(mode="json")) as run:
        run.write_table("alignments", pq.read_table(project.table("alignments")))
        if patterns:
            run.write_table("patterns", pq.read_table(project.table("patterns")).slice(0, 0))
    return other


def test_reads_view_without_stored_reads_shows_table_and_reason(project: Project, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(without_reads(project, tmp_path / "other", patterns=False), qtbot)
    rows = rows_of(project, "alignments")
    assert shown(view.alignments, "score") == [row["score"] for row in rows] and view.coverage.marked is not None
    assert view.alignment.plot._text == NO_READS
    assert view.coverage.shown is not None
    assert view.coverage.shown.n_alignments == sum(row["text"] == rows[0]["text"] for row in rows)
    view.show_place(1, 2000)
    settle(view, qtbot)
    assert {*shown(view.alignments, "text")} == {rows[0]["text"]}
    view.clear()


def test_reads_view_reports_tables_that_do_not_match(project: Project, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(without_reads(project, tmp_path / "odd", patterns=True), qtbot)
    assert view.alignment.plot.pair is None and "rows that patterns does not have. Run the search again" in view.text
    view.clear()


def test_mapping_qualities_and_mates_are_shown_if_present(project: Project, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    table = pq.read_table(project.table("alignments"))
    for name, values in (("mapping_quality", [60] * len(table)), ("mate", [1, 2] * len(table))):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values[: len(table)], pa.int32()))
    # A read that was searched and has no alignment.
    row = {**table.slice(0, 1).to_pylist()[0], "pattern": "nowhere"}
    row |= dict.fromkeys(
        ("text", "score", "gaps", "identity", "text_start", "text_end", "strand", "cigar", "md", "text_row", "text_length")
    )
    placed = Project.create_or_open(tmp_path / "placed")
    with placed.run("reads", ReadAlignmentParameters().model_dump(mode="json")) as run:
        run.write_table("alignments", pa.concat_tables([table, pa.Table.from_pylist([row], table.schema)]))
        run.write_table("patterns", pq.read_table(project.table("patterns")))
    view = view_of(placed, qtbot)
    assert not {"mapping_quality", "mate"} & set(view.alignments.view.hidden_columns())
    assert "mapping quality 60" in view.alignment.plot.pair.facts[0] and view.alignment.plot.pair.facts[0].endswith("mate 1")
    choose(view, {"text": "nowhere"}, qtbot)
    assert view.alignment.plot._text == "nowhere: not mapped to any reference."
    view.clear()


def test_reads_view_reports_a_run_without_alignments(project: Project, tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    table = pq.read_table(project.table("alignments"))
    empty = Project.create_or_open(tmp_path / "empty")
    with empty.run("reads", ReadAlignmentParameters().model_dump(mode="json")) as run:
        run.write_table("alignments", table.slice(0, 0))
    view = view_of(empty, qtbot)
    assert view.coverage.text == "No read has an alignment." and view.header.text == "0 alignments of 0 reads with 0 references"
    view.show_place(1, 2)
    view.clear()


def test_reads_view_remembers_columns_and_can_be_cleared(view: ReadsView, project: Project, qtbot: QtBot) -> None:
    view.alignments.view.hide_columns(["cigar"])
    view.alignments.view.columnsChanged.emit()
    state = view.state()
    again = ReadsView(search_of_kind("reads"))
    qtbot.addWidget(again)
    again.resize(view.size())
    again.show()
    again.restore_state(state)
    again.show_run(project, None)
    settle(again, qtbot)
    assert again.alignments.hidden_columns() == ["cigar"]
    again.clear()
    assert again.text.startswith("No results yet. Run a read alignment")
    assert again.coverage.shown is None and again.references.count() == 0 and again.alignment.plot.pair is None
