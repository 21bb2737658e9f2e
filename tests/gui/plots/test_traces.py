"""Tests of the traces of an ion in several files: integration limits moved by mouse and keys, and image compared with the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.palette import rgb_of
from proteoscope.engine.views.quantity_traces import Border, IonTrace, IonTraces, trace_columns, traces_figure
from proteoscope.gui.colours import palette_of
from proteoscope.gui.plots.trace_plot import TracePlot
from proteoscope.gui.theme import Theme
from tests.gui.plots.pictures import extent, on_paper, on_screen, pull, wheel

SECONDS = np.arange(600.0, 720.0, 2.0)
VALUES = {"refused": "", "area": 1234.5, "source": "identified"}


def ion() -> IonTraces:
    peak = 5e6 * np.exp(-(((SECONDS - 660) / 8) ** 2))
    intensity = np.column_stack((peak, 0.5 * peak))
    traces = (
        IonTrace("one.mzML", 3, SECONDS, intensity, 0, 660.0, 640.0, 680.0, {**VALUES, "source": "manual"}),
        IonTrace("two.mzML", 4, SECONDS, intensity, 0, None, None, None, {}),
        IonTrace("three.mzML", -1, np.zeros(0), np.zeros((0, 2)), 0, None, None, None, {}, "three.mzML has no MS1 spectra."),
    )
    return IonTraces("PEPTIDEK", 2, 464.25, np.array([0.7, 0.3]), traces)


@pytest.fixture
def plot(qtbot: QtBot, theme: Theme) -> Iterator[TracePlot]:
    widget = TracePlot()
    qtbot.addWidget(widget)
    widget.resize(700, 260)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_traces(ion())
    QApplication.processEvents()
    yield widget


def at_minutes(plot: TracePlot, place: int, minutes: float) -> QPoint:
    return QPointF(plot.place_of(minutes, 0.0, place).x(), plot.inner(place).center().y()).toPoint()


def test_trace_plot_first_shows_integration_limits_of_all_files(plot: TracePlot) -> None:
    (low, high), (least, most) = plot.ranges[0], ion().everything
    assert least <= low < 640 / 60 < 680 / 60 < high <= most
    wheel(plot, QPointF(at_minutes(plot, 0, 11.0)), -1200)
    assert plot.ranges[0] == (least, most)
    QTest.mouseDClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at_minutes(plot, 1, 10.2))
    assert plot.ranges[0] == (low, high)


def test_dragged_integration_limit_snaps_to_a_spectrum(plot: TracePlot, qtbot: QtBot) -> None:
    with qtbot.waitSignal(plot.bordersMoved) as moved:
        pull(plot, at_minutes(plot, 0, 680 / 60), at_minutes(plot, 0, 670.4 / 60))
    assert moved.args == [0, 640.0, 670.0] and plot.chosen == Border(0, True) and plot.reset_action.isEnabled()


def test_missing_integration_limits_can_be_drawn(plot: TracePlot, qtbot: QtBot) -> None:
    with qtbot.waitSignal(plot.bordersMoved) as moved:
        pull(plot, at_minutes(plot, 1, 650 / 60), at_minutes(plot, 1, 666 / 60))
    assert moved.args == [1, 650.0, 666.0] and plot.chosen is None
    with qtbot.assertNotEmitted(plot.bordersMoved):
        pull(plot, at_minutes(plot, 2, 650 / 60), at_minutes(plot, 2, 666 / 60))
        pull(plot, at_minutes(plot, 0, 655 / 60), at_minutes(plot, 0, 665 / 60))


def test_escape_cancels_the_drag_of_an_integration_limit(plot: TracePlot, qtbot: QtBot) -> None:
    begin, end = at_minutes(plot, 0, 680 / 60), at_minutes(plot, 0, 670 / 60)
    with qtbot.assertNotEmitted(plot.bordersMoved):
        QTest.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=begin)
        QTest.mouseMove(plot.viewport(), (begin + end) / 2)
        QTest.qWait(20)
        QTest.mouseMove(plot.viewport(), end)
        QTest.keyClick(plot, Qt.Key.Key_Escape)
        QTest.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=end)
    place = plot.border_point(Border(0, True))
    assert place is not None and plot.chosen == Border(0, True)


def test_keys_select_and_move_integration_limits(plot: TracePlot, qtbot: QtBot) -> None:
    plot.setFocus()
    QTest.keyClick(plot, Qt.Key.Key_PageDown)
    assert plot.chosen == Border(0, False)
    with qtbot.waitSignal(plot.bordersMoved) as moved:
        QTest.keyClick(plot, Qt.Key.Key_Right)
    assert moved.args == [0, 642.0, 680.0]
    QTest.keyClick(plot, Qt.Key.Key_PageUp)
    assert plot.chosen == Border(0, True)
    with qtbot.waitSignal(plot.bordersReset) as reset:
        plot.reset_action.trigger()
    assert reset.args == [0]


def test_trace_plot_tooltips_and_titles_have_file_names(plot: TracePlot, tmp_path: Path) -> None:
    at = [QPointF(at_minutes(plot, place, 11.0)) for place in range(3)]
    assert [plot.text_at(place) for place in at] == [
        "one.mzML\narea 1234, set by hand",
        "two.mzML\nnot identified here",
        "three.mzML\nnot identified here",
    ]
    plot.export_action.write(tmp_path / "traces.svg")
    text = (tmp_path / "traces.svg").read_text()
    assert "one.mzML: area 1234, set by hand" in text and "three.mzML has no MS1 spectra." in text


def test_ion_traces_are_equal_in_window_and_on_page(plot: TracePlot) -> None:
    for ink in (0, 1):
        shown = extent(on_screen(plot), rgb_of(ink, palette_of(plot.palette())), 60)
        printed = extent(on_paper(traces_figure(ion())), rgb_of(ink), 60)
        np.testing.assert_allclose(shown, printed, atol=0.05, err_msg=f"isotope {ink}")


def test_trace_plot_has_more_columns_in_a_wider_window(plot: TracePlot) -> None:
    for width, columns in ((700, 3), (200, 1), (420, 2)):
        plot.resize(width, 600)
        QApplication.processEvents()
        assert trace_columns(3, width) == columns
        assert (plot.inner(1).top() == pytest.approx(plot.inner(0).top(), abs=1)) == (columns > 1)
