"""Tests of the pileup in the window: of the selected row, zoomed, clicked, filtered, with a track, as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT
from proteoscope.engine.views.pileup import MAXIMUM_WIDTH
from proteoscope.gui.results.reads_view import ReadsView
from proteoscope.gui.theme import Theme
from tests.engine.views.read_projects import project_with_reads
from tests.gui.result_views import cut_off, opened, settle

GENOME = "".join(np.random.default_rng(8).choice(list("ACGT"), 3000).tolist())


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_reads(tmp_path_factory.mktemp("piles") / "p", GENOME, n_reads=25)


@pytest.fixture
def view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[ReadsView]:
    view = ReadsView(READ_ALIGNMENT)
    opened(view, project, qtbot)
    yield view
    view.clear()


def waited(view: ReadsView, qtbot: QtBot) -> None:
    qtbot.wait(200)
    settle(view, qtbot)


def test_pileup_shows_the_reads_around_the_selected_alignment(view: ReadsView, qtbot: QtBot, tmp_path: Path) -> None:
    page = view.pileup
    assert page.plot.pile is None, "nothing is read while it is not visible"
    view.tabs.setCurrentWidget(page)
    waited(view, qtbot)
    pile = page.plot.pile
    row = view.alignments.view.chosen
    assert pile is not None and row in pile.row.tolist()
    at = pile.row.tolist().index(row)
    first, last = page.plot.positions
    assert first <= pile.start[at] and pile.end[at] <= last
    page.plot.zoom(4)
    waited(view, qtbot)
    narrow = page.plot.positions
    assert narrow[1] - narrow[0] < last - first and (page.plot.pile.first, page.plot.pile.last) == narrow  # type: ignore[union-attr]

    pile = page.plot.pile
    assert pile is not None
    other = next(at for at in range(len(pile)) if pile.row[at] != row)
    assert page.plot.sheet is not None
    top, height = page.plot.sheet.top, page.plot.sheet.height
    middle = (max(pile.start[other], narrow[0]) + min(pile.end[other], narrow[1])) / 2
    x = page.plot.inner.left() + (middle - narrow[0] + 0.5) / (narrow[1] - narrow[0] + 1) * page.plot.inner.width()
    place = QPointF(x, top + (pile.lane[other] + 0.4) * height)
    assert pile.names[other] in page.plot.text_at(place) and "base " in page.plot.text_at(place)
    qtbot.mouseClick(page.plot, Qt.MouseButton.LeftButton, pos=QPoint(place.toPoint()))
    waited(view, qtbot)
    assert view.alignments.view.chosen == pile.row[other]
    page.plot.export_action.write(tmp_path / "pile.svg")
    assert pile.text.name in (tmp_path / "pile.svg").read_text()
    page.plot.export_action.write(tmp_path / "pile.pdf")
    assert not cut_off(page)


def test_drag_zooms_pileup_to_bases_and_home_resets(view: ReadsView, qtbot: QtBot) -> None:
    page = view.pileup
    view.tabs.setCurrentWidget(page)
    waited(view, qtbot)
    plot = page.plot
    inner, (low, high) = plot.inner, plot.ranges[0]
    y = int(inner.center().y())
    ends = [QPoint(int(inner.left() + share * inner.width()), y) for share in (0.25, 0.75)]
    qtbot.mousePress(plot, Qt.MouseButton.LeftButton, pos=ends[0])
    qtbot.mouseMove(plot, ends[1])
    qtbot.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=ends[1])
    n_bases = (inner.width() / (high - low)) ** -1
    expected = [low + (end.x() - inner.left()) * n_bases for end in ends]
    assert np.abs(np.subtract(plot.ranges[0], expected)).max() < 2 * n_bases
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert plot.ranges[0][0] < expected[0] and plot.is_waiting
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    waited(view, qtbot)
    assert plot.pile is not None and plot.pile.text.length < MAXIMUM_WIDTH
    assert (plot.pile.first, plot.pile.last) == (1, plot.pile.text.length)


def test_pileup_shows_annotation_tracks_and_reports_errors(view: ReadsView, qtbot: QtBot, tmp_path: Path) -> None:
    page = view.pileup
    view.tabs.setCurrentWidget(page)
    waited(view, qtbot)
    pile = page.plot.pile
    assert pile is not None
    name, middle = pile.text.name.split(" ")[0], (pile.first + pile.last) // 2
    (tmp_path / "genes.gff3").write_text(
        f"{name}\tx\tgene\t{middle - 20}\t{middle + 20}\t.\t+\t.\tName=recA<b>\n{name}\tx\tgene\t1\t2\t.\t-\t.\tID=far\n"
    )
    page.add_track(tmp_path / "genes.gff3")
    waited(view, qtbot)
    assert "2 features" in page.track_label.full_text
    assert "recA<b>" in [feature.name for feature in page.plot.features]
    (feature, box), *_ = [feature for feature in page.plot.sheet.features if feature[0].name == "recA<b>"]  # type: ignore[union-attr]
    assert feature.name in page.plot.text_at(QRectF(*box).center())
    (tmp_path / "no.bed").write_text("nothing here\n")
    with qtbot.waitSignal(view.message) as signal:
        page.add_track(tmp_path / "no.bed")
    assert "no.bed" in signal.args[0] and page.track_label.full_text == "genes.gff3"
    (tmp_path / "some.bed").write_text(f"{name}\t1\t9\n{name}\t9\t1\n")
    with qtbot.waitSignal(view.message) as signal:
        page.add_track(tmp_path / "some.bed")
    assert "1 line is left out" in signal.args[0] and "1 feature" in page.track_label.full_text


def test_pileup_excludes_filtered_alignments(view: ReadsView, qtbot: QtBot) -> None:
    view.tabs.setCurrentWidget(view.pileup)
    waited(view, qtbot)
    view.filters.text.setText("read1")
    view.filters.text.returnPressed.emit()
    waited(view, qtbot)
    pile = view.pileup.plot.pile
    assert pile is not None and all("read1" in name for name in pile.names)


def test_click_in_depth_of_reference_moves_the_pileup(view: ReadsView, qtbot: QtBot) -> None:
    view.resize(1280, 1100)
    view.tabs.setCurrentWidget(view.pileup)
    waited(view, qtbot)
    plot = view.pileup.plot
    plot.zoom(2)
    waited(view, qtbot)
    sheet, (low, high) = plot.sheet, plot.ranges[0]
    assert sheet is not None and sheet.coverage is not None and plot.reference_depth is not None
    alignments = view.alignments.model
    assert plot.reference_depth.n_alignments > 5 and len(alignments.rows) > 5
    box, length = sheet.coverage, sheet.pile.text.length
    for share in (0.5, 0.999, 0.001):
        at = QPoint(int(box.left + share * box.width), int(box.top + box.height / 2))
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=at)
        middle = (at.x() - box.left) / box.width * length
        expected = min(max(middle - (high - low) / 2, 0.5), length + 0.5 - (high - low))
        assert plot.ranges[0] == pytest.approx((expected, expected + high - low), abs=1.0)
        waited(view, qtbot)
        assert plot.pile is not None and (plot.pile.first, plot.pile.last) == plot.positions
    assert "depth" in plot.text_at(QPointF(at)) and view.pileup.plot.chosen == view.alignments.view.chosen


def test_pileup_lines_that_do_not_fit_can_be_scrolled(view: ReadsView, qtbot: QtBot) -> None:
    view.resize(1000, 620)
    view.tabs.setCurrentWidget(view.pileup)
    waited(view, qtbot)
    plot, bar = view.pileup.plot, view.pileup.lines
    assert plot.reference_depth is not None
    deepest = int(plot.reference_depth.first[np.argmax(plot.reference_depth.depth)])
    plot.show_range(((deepest - 15.5, deepest + 15.5),))
    waited(view, qtbot)
    plot.setFixedHeight(plot.minimumHeight())
    qtbot.wait(20)
    sheet = plot.sheet
    assert sheet is not None and plot.pile is not None and sheet.coverage is None
    assert bar.maximum() == plot.pile.n_lanes - sheet.n_visible > 0 and bar.isVisible() and plot.first_lane == 0
    qtbot.keyClick(plot, Qt.Key.Key_PageDown)
    assert plot.first_lane > 0 and bar.value() == plot.first_lane
    bar.setValue(bar.maximum())
    assert plot.first_lane == bar.maximum()
    qtbot.keyClick(plot, Qt.Key.Key_PageUp)
    assert plot.first_lane < bar.maximum()


def test_pileup_scrolls_only_to_the_selected_row(view: ReadsView, qtbot: QtBot) -> None:
    view.resize(1000, 620)
    view.tabs.setCurrentWidget(view.pileup)
    waited(view, qtbot)
    plot = view.pileup.plot
    assert plot.reference_depth is not None
    deepest = int(plot.reference_depth.first[np.argmax(plot.reference_depth.depth)])
    plot.show_range(((deepest - 15.5, deepest + 15.5),))
    waited(view, qtbot)
    plot.setFixedHeight(plot.minimumHeight())
    qtbot.wait(20)
    pile, sheet = plot.pile, plot.sheet
    assert pile is not None and sheet is not None and pile.n_lanes > sheet.n_visible
    for lane in (pile.n_lanes - 1, 0):
        row = int(pile.row[pile.lane == lane][0])
        view.pileup.rowChosen.emit(row)
        waited(view, qtbot)
        assert plot.chosen == row and plot.pile is pile
        assert plot.first_lane <= lane < plot.first_lane + sheet.n_visible, "the line of the selected row is visible"
    last = pile.n_lanes - sheet.n_visible
    plot.scroll_lines(last)
    plot.show_range(((deepest - 14.5, deepest + 15.5),))
    waited(view, qtbot)
    assert plot.pile is not pile and plot.pile is not None and plot.sheet is not None
    assert plot.first_lane == min(last, plot.pile.n_lanes - plot.sheet.n_visible) > 0, "moving by a base does not scroll"
