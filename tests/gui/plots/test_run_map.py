"""Tests of the map of a run in the window: input events, and its image compared with the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.palette import PAPER, rgb_of
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_INKS, STATUS_NAMES, UNEXPLAINED, MapPoints
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.plots.run_map import RunMap
from proteoscope.gui.theme import Theme
from tests.engine.views.test_run_map import table
from tests.gui.plots.pictures import of_drawing, on_screen, place_of_point, point_at, wheel
from tests.gui.result_views import cut_off


@pytest.fixture
def shown(qtbot: QtBot, theme: Theme) -> Iterator[RunMap]:
    widget = RunMap()
    qtbot.addWidget(widget)
    widget.resize(700, 420)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_points(MapPoints.from_table(table(400)))
    yield widget


def click(shown: RunMap, at: QPointF) -> None:
    QTest.mouseClick(shown.canvas.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at.toPoint())


def test_run_map_legend_counts_and_toggles_spectra_by_status(shown: RunMap) -> None:
    points = shown.points
    assert points is not None
    for status, box in shown.boxes.items():
        assert box.text() == f"{points.counts[status]} {STATUS_NAMES[status]}" and box.isChecked()
    at = next(i for i in range(len(points)) if points.status[i] == EXPLAINED)
    place = place_of_point(shown, at)
    assert point_at(shown, place) == at
    pixel = shown.canvas.grab().toImage().pixelColor(place.toPoint())
    assert pixel == plot_colours(shown.palette()).decoy
    shown.boxes[EXPLAINED].click()
    assert shown.statuses == {UNEXPLAINED, IDENTIFIED} and point_at(shown, place) != at
    assert shown.canvas.grab().toImage().pixelColor(place.toPoint()) != pixel


def test_click_in_run_map_selects_and_marks_the_nearest_spectrum(shown: RunMap, qtbot: QtBot) -> None:
    points = shown.points
    assert points is not None
    places = [place_of_point(shown, i) for i in range(len(points))]
    for at in (QPointF(200, 150), QPointF(431, 222)):
        distances = [(at.x() - place.x()) ** 2 + (at.y() - place.y()) ** 2 for place in places]
        nearest = int(np.argmin(distances))
        target = places[nearest]
        with qtbot.waitSignal(shown.spectrumChosen) as chosen:
            click(shown, target)
        assert chosen.args == [int(points.spectrum[nearest])] and shown.marked == nearest
        assert shown.canvas.text_at(target).startswith(f"scan {points.spectrum[nearest] + 1000}\nm/z ")


def test_wheel_zooms_run_map_in_time_and_mz(shown: RunMap) -> None:
    canvas, whole = shown.canvas, shown.canvas.ranges
    wheel(canvas, canvas.inner().center())
    for (low, high), (least, most) in zip(canvas.ranges, whole, strict=True):
        assert high - low == pytest.approx(0.8 * (most - least))
    for _ in range(80):
        canvas.zoom(1)
    assert [high - low for low, high in canvas.ranges] == pytest.approx([0.002, 0.02])
    shown.reset_range()
    assert canvas.ranges == whole


def test_run_map_scrolls_to_a_marked_spectrum_out_of_view(shown: RunMap) -> None:
    points, canvas = shown.points, shown.canvas
    assert points is not None
    canvas.show_range(((0.0, 5.0), (300.0, 400.0)))
    far = len(points) - 1
    shown.mark(int(points.spectrum[far]))
    (low, high), (bottom, top) = canvas.ranges
    assert low <= points.x[far] <= high and bottom <= points.mz[far] <= top and high - low == pytest.approx(5.0)
    assert canvas.inner().contains(place_of_point(shown, far))


def test_run_map_without_points_shows_the_reason(shown: RunMap) -> None:
    shown.show_points(None, "There is no map.")
    assert shown.text == "There is no map." and not shown.boxes[EXPLAINED].isVisible()


def test_export_of_run_map_without_points_is_reported(shown: RunMap, qtbot: QtBot) -> None:
    shown.show_points(None, "Nothing yet.")
    with qtbot.waitSignal(shown.message) as signal:
        shown.export_action.trigger()
    assert signal.args == ["There is no figure to export."]


def test_run_map_uses_theme_colours(shown: RunMap, theme: Theme, qtbot: QtBot) -> None:
    theme.choose("dark")
    qtbot.waitUntil(lambda: shown.canvas.grab().toImage().pixelColor(2, 2).lightness() < 128)
    assert shown.boxes[EXPLAINED].icon().pixmap(4).toImage().pixelColor(1, 1) == QColor(plot_colours(shown.palette()).decoy)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_run_map_is_exported_to_each_format(shown: RunMap, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map{ending}"
    shown.export_action.write(path)
    assert path.stat().st_size > 3000
    if ending == ".svg":
        text = path.read_text(encoding="utf-8")
        assert "Retention time (min)" in text and all(box.text() in text for box in shown.boxes.values())


def test_run_map_legend_fits_any_width(shown: RunMap, qtbot: QtBot) -> None:
    assert shown.points is not None
    for width in (700, 300, 230, 700):
        shown.resize(width, 300)
        qtbot.waitUntil(lambda width=width: shown.width() == width and cut_off(shown) == [])  # type: ignore[misc]
        is_named = [STATUS_NAMES[status] in box.text() for status, box in shown.boxes.items()]
        assert all(is_named) == (width == 700) and any(is_named) == (width == 700)
        assert shown.boxes[EXPLAINED].accessibleName() == f"{shown.points.counts[EXPLAINED]} explained"


def test_run_map_has_the_same_points_in_window_and_on_page(shown: RunMap) -> None:
    points = shown.points
    assert points is not None
    drawing = shown.canvas.drawing()
    assert drawing is not None
    window, paper = on_screen(shown.canvas), of_drawing(drawing)
    for status in (IDENTIFIED, EXPLAINED):
        is_one = points.status == status
        (left, right), (low, high) = shown.canvas.ranges
        places = np.array([(points.x[is_one] - left) / (right - left), (high - points.mz[is_one]) / (high - low)]).T
        for picture, palette in ((window, palette_of(shown.palette())), (paper, PAPER)):
            size = np.array(picture.shape[1::-1])
            columns, rows = (places * size).astype(int).T
            is_drawn = np.abs(picture[rows, columns].astype(int) - np.array(rgb_of(STATUS_INKS[status], palette))).max(axis=1) < 40
            # Points of rarer states are in front of others.
            assert is_drawn.mean() > (0.9 if status == IDENTIFIED else 0.99)
