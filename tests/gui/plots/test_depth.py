"""Tests of the plot of coverage depth against a count at each position, and of its input events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.depth import Depth
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.plots.depth_plot import DepthPlot
from proteoscope.gui.theme import Theme
from tests.effort import lines_run
from tests.engine.views.test_depth import LENGTH, counted, ranges
from tests.gui.plots.pictures import pull


@pytest.fixture
def shown(qtbot: QtBot, theme: Theme) -> Iterator[DepthPlot]:
    widget = DepthPlot()
    qtbot.addWidget(widget)
    widget.resize(640, 160)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_depth(Depth.from_ranges("genome", LENGTH, *ranges(300)))
    yield widget


def x_of(shown: DepthPlot, position: float) -> float:
    return shown.place_of(position, 0.0).x()


def test_depth_plot_needs_no_python_loop_over_alignments(shown: DepthPlot) -> None:
    efforts = []
    for n in (100_000, 400_000):
        shown.show_depth(Depth.from_ranges("genome", 3_000_000, *ranges(n, 3_000_000)))
        efforts.append(lines_run(lambda: shown.grab()))
    # The axis of another depth may have more numbers.
    assert efforts[1] <= 1.5 * efforts[0]


def test_click_in_depth_plot_selects_the_position(shown: DepthPlot, qtbot: QtBot) -> None:
    shown.show_range(((100.5, 140.5),))
    for position in (101, 117, 140):
        at = QPoint(round(x_of(shown, position)), round(shown.inner().center().y()))
        with qtbot.waitSignal(shown.placeChosen) as chosen:
            QTest.mouseClick(shown.viewport(), Qt.MouseButton.LeftButton, pos=at)
        assert chosen.args == [position, position]
        depth = counted(*ranges(300))[position - 1]
        assert shown.text_at(QPointF(at)) == f"{position}: depth {depth}"
    assert shown.text_at(QPointF(2, 2)) == ""


def test_click_in_depth_plot_of_a_chromosome_selects_a_range(shown: DepthPlot, qtbot: QtBot) -> None:
    shown.show_depth(Depth.from_ranges("genome", 3_000_000, *ranges(1000, 3_000_000)))
    per_pixel = 3_000_000 / shown.inner().width()
    at = QPoint(round(x_of(shown, 1_500_000)), round(shown.inner().center().y()))
    with qtbot.waitSignal(shown.placeChosen) as chosen:
        QTest.mouseClick(shown.viewport(), Qt.MouseButton.LeftButton, pos=at)
    first, last = chosen.args
    assert first < 1_500_000 < last and last - first == pytest.approx(2 * per_pixel, rel=0.01)
    assert shown.text_at(QPointF(at)).startswith(f"{first} to {last}: depth ") and shown.text_at(QPointF(at)).endswith("at most")


def test_depth_plot_is_zoomed_by_drag_and_keys(shown: DepthPlot, qtbot: QtBot) -> None:
    whole = shown.ranges
    assert whole == ((0.5, LENGTH + 0.5),)
    first, last = (QPoint(round(x_of(shown, position)), 40) for position in (200, 300))
    wanted = tuple(shown.values_at(QPointF(at))[1] for at in (first, last))  # type: ignore[index]
    pull(shown, first, last)
    assert shown.ranges[0] == pytest.approx(wanted)
    shown.setFocus()
    box = shown.ranges[0]
    QTest.keyClick(shown, Qt.Key.Key_Right)
    assert shown.ranges[0][0] == pytest.approx(box[0] + 0.2 * (box[1] - box[0]))
    with qtbot.waitSignal(shown.placeChosen) as chosen:
        QTest.keyClick(shown, Qt.Key.Key_Return)
    low, high = shown.ranges[0]
    assert chosen.args == [round(low), round(high)]
    QTest.keyClick(shown, Qt.Key.Key_0)
    assert shown.ranges == whole
    shown.zoom(3)
    assert shown.ranges[0][1] - shown.ranges[0][0] == pytest.approx(0.8**3 * LENGTH)
    shown.zoom(-9)
    assert shown.ranges == whole
    for _ in range(40):
        shown.zoom(1)
    assert shown.ranges[0][1] - shown.ranges[0][0] == pytest.approx(20.0)


def test_depth_plot_scrolls_to_the_selected_alignment(shown: DepthPlot) -> None:
    shown.show_range(((10.5, 60.5),))
    shown.mark_positions((400, 430))
    low, high = shown.ranges[0]
    assert low < 400 < 430 < high and high - low == pytest.approx(50)
    where = QPointF(x_of(shown, 415), shown.inner().top() + 3)
    assert shown.grab().toImage().pixelColor(where.toPoint()) != plot_colours(shown.palette()).background
    shown.show_depth(Depth.from_ranges("genome", LENGTH, *ranges(10)), retains_range=True)
    assert shown.ranges[0] == (low, high) and shown.marked == (400, 430)
    shown.show_depth(Depth.from_ranges("other", 80, *ranges(10, 80)))
    assert shown.ranges == ((0.5, 80.5),) and shown.marked is None


def test_exported_depth_plot_has_the_sequence_name(shown: DepthPlot, tmp_path: Path) -> None:
    shown.export_action.write(tmp_path / "depth.svg")
    assert "Position in genome" in (tmp_path / "depth.svg").read_text(encoding="utf-8")
    shown.show_depth(None, "No pattern has an alignment.")
    assert shown.drawing() is None and shown.text_at(QPointF(300, 60)) == ""
    shown.zoom(1)
