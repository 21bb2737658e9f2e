"""Mass shifts counted in bars, against the definition, and their plot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.views.shifts import Shifts, bar_edges
from gui.plots.shift_plot import ShiftPlot
from gui.theme import Theme

NAMES = ("Oxidation", "Phospho", "+12.35")
MASSES = (15.994915, 79.966331, 12.3456)


@pytest.fixture
def shifts() -> Shifts:
    random = np.random.default_rng(5)
    row = random.choice([-1, 0, 1, 2], 4000, p=[0.7, 0.15, 0.1, 0.05])
    mass = np.array([*MASSES, 0.0])[row] + random.normal(0, 0.002, 4000)
    return Shifts.of_columns(mass, row != 2, row, NAMES)


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


@pytest.mark.parametrize(("low", "high"), [(-155.0, 505.0), (-1.0, 90.0), (15.99, 16.0), (0.0, 0.0101)])
@pytest.mark.parametrize("n_most", [1, 7, 400])
def test_bars_hold_the_range_and_are_of_a_round_width(low: float, high: float, n_most: int) -> None:
    edges = bar_edges(low, high, n_most)
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    assert edges[0] <= low < edges[1] and edges[-2] < high <= edges[-1] + 1e-9
    assert len(edges) - 1 <= n_most + 2
    assert f"{width:.0e}"[0] in "125"
    np.testing.assert_allclose(np.diff(edges), width, rtol=1e-6)


@pytest.mark.parametrize("ends", [(-155.0, 505.0), (15.98, 16.01)])
def test_counts_are_those_of_the_definition(shifts: Shifts, ends: tuple[float, float]) -> None:
    edges = bar_edges(*ends, 200)
    bars = shifts.bars(edges, {0, 2})
    for counts, chosen in (
        (bars.counts, np.ones(len(shifts), bool)),
        (bars.explained, shifts.is_explained),
        (bars.marked, np.isin(shifts.modification, (0, 2))),
    ):
        expected = [int((chosen & (shifts.shift >= low) & (shifts.shift < high)).sum()) for low, high in pairwise(edges)]
        assert counts.tolist() == expected


def test_a_bar_is_called_by_what_maximum_of_it_is(shifts: Shifts) -> None:
    assert [shifts.name(mass - 0.5, mass + 0.5) for mass in (0.0, *MASSES, 300.0)] == ["no shift", *NAMES, ""]


def test_it_is_zoomed_by_keys_down_to_a_hundredth_of_a_dalton(plot: ShiftPlot, shifts: Shifts) -> None:
    plot.show_range(((15.5, 16.5),))
    for _ in range(60):
        QTest.keyClick(plot, Qt.Key.Key_Plus)
    (low, high) = plot.ranges[0]
    assert high - low == pytest.approx(0.01)
    assert plot.bars is not None and len(plot.bars.counts) > 100
    QTest.keyClick(plot, Qt.Key.Key_Home)
    assert plot.ranges == ((-155.0, 505.0),)
    assert plot.bars.counts.sum() == len(shifts)


def test_a_click_chooses_the_bar_under_it_or_beside_it(plot: ShiftPlot, qtbot: QtBot) -> None:
    at = plot.place_of(MASSES[1]).toPoint()
    for place in (at, at + QPoint(2, 0)):
        with qtbot.waitSignal(plot.shiftsChosen) as chosen:
            QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=place)
        low, high = chosen.args
        assert low <= MASSES[1] < high
    assert "Phospho" in plot.text_at(plot.place_of(MASSES[1]))
    assert plot.bar_at(plot.place_of(300.0)) is None


@pytest.mark.parametrize("scale", ["linear", "square-root", "logarithmic"])
def test_every_scale_draws_all_bars(plot: ShiftPlot, scale: str, qtbot: QtBot) -> None:
    plot.set_scale(scale)  # type: ignore[arg-type]
    picture = plot.grab().toImage()
    for mass in (0.0, *MASSES):
        at = plot.place_of(mass)
        near = {picture.pixelColor(round(at.x()) + dx, round(at.y())).name() for dx in (-2, -1, 0, 1, 2)}
        assert len(near) > 1, mass
