"""Tests that every figure in the window has the same colours at the same values as its page, written without Qt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.chromatograms import Chromatogram, chromatogram_figure
from proteoscope.engine.views.depth import Depth, depth_figure
from proteoscope.engine.views.drawings import Axis, svg
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Figure, LegendEntry, Panel, Scatter
from proteoscope.engine.views.histograms import Histogram, histogram_figure
from proteoscope.engine.views.palette import Ink, Shade, rgb_of
from proteoscope.engine.views.paper import pdf
from proteoscope.engine.views.shifts import shifts_figure
from proteoscope.gui.colours import palette_of
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.theme import Theme
from tests.engine.views.test_shifts import random_shifts
from tests.gui.plots.pictures import extent, on_paper, on_screen


def chromatogram() -> Figure:
    minutes = np.linspace(5.0, 65.0, 4000)
    intensity = 3e6 * np.exp(-(((minutes - 20) / 2) ** 2)) + 9e6 * np.exp(-(((minutes - 50) / 1) ** 2))
    rows = np.arange(4000)
    return chromatogram_figure(Chromatogram("Total ion current", minutes, intensity, rows, rows), 35.0)


def histogram(*, is_log: bool) -> Figure:
    edges = np.linspace(0.0, 60.0, 61)
    counts = np.where((edges[:-1] >= 10) & (edges[:-1] < 40), 200 - edges[:-1], 0).astype(np.int64)
    series = (("Targets", counts), ("Decoys", np.where((edges[:-1] >= 2) & (edges[:-1] < 8), 150, 0)))
    return histogram_figure(Histogram("Scores", "Score", "PSMs", edges, series, (45.0, "1 % FDR"), ""), is_log=is_log)


def depth() -> Figure:
    return depth_figure(Depth.from_ranges("genome", 3000, np.array([500, 900]), np.array([2000, 1200])))


CASES: dict[str, tuple[Callable[[], Figure], tuple[Ink, ...]]] = {
    "chromatogram": (chromatogram, ("target", "mark")),
    "histogram": (lambda: histogram(is_log=False), ("target", "decoy")),
    "logarithmic histogram": (lambda: histogram(is_log=True), ("target", "decoy")),
    "shifts": (lambda: shifts_figure(random_shifts(), (-155.0, 505.0), "square-root", frozenset([0])), ("mark",)),
    "logarithmic shifts": (lambda: shifts_figure(random_shifts(), (-155.0, 505.0), "logarithmic", frozenset([1])), ("mark",)),
    "depth": (depth, (Shade(-0.8),)),
}


def shown(figure: Figure, qtbot: QtBot) -> FigureView:
    view = FigureView(figure.name)
    qtbot.addWidget(view)
    view.resize(700, 320)
    view.show()
    view.show_figure(figure)
    QApplication.processEvents()
    return view


@pytest.mark.parametrize("case", CASES)
def test_every_figure_has_equal_colours_in_window_and_on_page(case: str, qtbot: QtBot, theme: Theme) -> None:
    make, inks = CASES[case]
    figure = make()
    view = shown(figure, qtbot)
    palette = palette_of(view.palette())
    for ink in inks:
        # Thin lines between pixels are pale.
        tolerance = 80 if ink in ("target", "decoy") else 40
        window, paper = (extent(on_screen(view), rgb_of(ink, palette), tolerance), extent(on_paper(figure), rgb_of(ink), tolerance))
        np.testing.assert_allclose(window, paper, atol=0.03, err_msg=f"{case}, {ink}")


def test_new_figure_needs_one_function_for_window_and_page(qtbot: QtBot, theme: Theme) -> None:
    def new_figure() -> Figure:
        dots = Scatter(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]), 3, 9.0, targets=np.array([4, 5, 6]), tips="dot {}".format)
        panel = Panel(Axis(0.0, 4.0, "Charge"), Axis(0.0, 40.0, "Spectra", is_whole=True), (dots,), smallest=(0.5, None))
        return Figure("Charges", "Spectra by charge", (panel,), ("Charges",), (LegendEntry("Spectra", 3),))

    figure = new_figure()
    view, drawing = shown(figure, qtbot), lay_out(figure)
    assert b">Charge<" in svg(drawing) and pdf(drawing).startswith(b"%PDF")
    np.testing.assert_allclose(extent(on_screen(view), rgb_of(3), 60), extent(on_paper(figure), rgb_of(3), 60), atol=0.02)
    at = view.place_of(2.0, 30.0)
    with qtbot.waitSignal(view.targetChosen) as chosen:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert chosen.args == [5] and view.text_at(QPointF(at)) == "dot 1"
    view.zoom(1)
    assert view.ranges[0] == pytest.approx((0.4, 3.6))
