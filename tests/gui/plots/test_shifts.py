"""Tests of the histogram of mass shifts against its definition, and of its plot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.figures import Bars
from proteoscope.engine.views.shifts import Shifts
from proteoscope.gui.plots.shift_plot import ShiftPlot
from proteoscope.gui.theme import Theme
from tests.engine.views.test_shifts import MASSES, random_shifts


@pytest.fixture
def shifts() -> Shifts:
    return random_shifts()


@pytest.fixture
def plot(shifts: Shifts, qtbot: QtBot, theme: Theme) -> Iterator[ShiftPlot]:
    widget = ShiftPlot()
    qtbot.addWidget(widget)
    widget.resize(800, 240)
    widget.show_shifts(shifts, (-155.0, 505.0))
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    return widget


def heights(plot: ShiftPlot) -> np.ndarray:
    bars = plot.panel_in_sight().marks[0]
    assert isinstance(bars, Bars)
    return bars.height


def above_axis(plot: ShiftPlot, shift: float) -> QPointF:
    return QPointF(plot.place_of(shift, 0.0).x(), plot.inner().bottom() - 2)


def test_keys_zoom_shift_histogram_to_a_hundredth_of_a_dalton(plot: ShiftPlot, shifts: Shifts) -> None:
    plot.show_range(((15.5, 16.5),))
    for _ in range(60):
        QTest.keyClick(plot, Qt.Key.Key_Plus)
    (low, high) = plot.ranges[0]
    assert high - low == pytest.approx(0.01)
    assert len(heights(plot)) > 100
    QTest.keyClick(plot, Qt.Key.Key_Home)
    assert plot.ranges == ((-155.0, 505.0),)
    assert heights(plot).sum() == len(shifts)


def test_click_in_shift_histogram_selects_the_nearest_bar(plot: ShiftPlot, qtbot: QtBot) -> None:
    at = above_axis(plot, MASSES[1]).toPoint()
    for place in (at, at + QPoint(2, 0)):
        with qtbot.waitSignal(plot.shiftsChosen) as chosen:
            QTest.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=place)
        low, high = chosen.args
        assert low <= MASSES[1] < high
    assert "Phospho" in plot.text_at(above_axis(plot, MASSES[1]))
    assert plot.picked_at(above_axis(plot, 300.0)) is None


@pytest.mark.parametrize("scale", ["linear", "square-root", "logarithmic"])
def test_shift_histogram_draws_all_bars_on_every_scale(plot: ShiftPlot, scale: str, qtbot: QtBot) -> None:
    plot.set_scale(scale)  # type: ignore[arg-type]
    picture = plot.grab().toImage()
    for mass in (0.0, *MASSES):
        at = above_axis(plot, mass)
        near = {picture.pixelColor(round(at.x()) + dx, round(at.y())).name() for dx in (-2, -1, 0, 1, 2)}
        assert len(near) > 1, mass
