"""The map of a run: its picture against one drawn point by point, and what a person does with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, STATUS_NAMES, UNEXPLAINED, MapPoints
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.plots import map_picture
from proteoscope.gui.plots.map_picture import MapView, draw_points
from proteoscope.gui.plots.run_map import RunMap, x_title
from proteoscope.gui.theme import Theme
from tests.effort import lines_run
from tests.engine.views.test_run_map import table
from tests.gui.result_views import cut_off

COLOURS = (0x112233, 0x445566, 0x778899)
ALL = frozenset((UNEXPLAINED, IDENTIFIED, EXPLAINED))


@pytest.fixture
def shown(qtbot: QtBot, theme: Theme) -> Iterator[RunMap]:
    widget = RunMap()
    qtbot.addWidget(widget)
    widget.resize(700, 420)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_points(MapPoints.of_table(table(400)))
    yield widget


def click(shown: RunMap, at: QPointF) -> None:
    QTest.mouseClick(shown.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at.toPoint())


@pytest.mark.parametrize("shown", [ALL, frozenset((UNEXPLAINED, EXPLAINED)), frozenset((IDENTIFIED,)), frozenset()])
def test_of_many_points_each_pixel_has_the_colour_of_most_of_its_points(shown: frozenset[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_picture, "_MAXIMUM_SMALL", -1)
    points = MapPoints.of_table(table(5000))
    view = MapView((10.0, 80.0), (500.0, 1200.0), 40, 30)
    picture = draw_points(points, view, COLOURS, shown)
    expected: dict[tuple[int, int], Counter[int]] = {}
    for x, mz, status in zip(points.x.tolist(), points.mz.tolist(), points.status.tolist(), strict=True):
        across, down = view.place_of(x, mz)
        if status in shown and 0 <= across < view.width and 0 <= down < view.height:
            expected.setdefault((int(down), int(across)), Counter())[status] += 1
    n_wrong = 0
    for row in range(view.height):
        for column in range(view.width):
            counts = expected.get((row, column))
            pixel = int(picture[row, column])
            if counts is None:
                n_wrong += pixel != 0
                continue
            most = max(counts, key=lambda one: (counts[one], one))
            alpha = pixel >> 24
            parts = [(pixel >> shift & 255) * 255 / max(alpha, 1) for shift in (16, 8, 0)]
            wanted = [COLOURS[most] >> shift & 255 for shift in (16, 8, 0)]
            n_wrong += alpha == 0 or max(abs(a - b) for a, b in zip(parts, wanted, strict=True)) > 2
    # A point on the edge of two pixels may fall to either, as numbers of 32 bits round.
    assert n_wrong <= 2


def test_more_points_in_a_pixel_are_never_fainter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_picture, "_MAXIMUM_SMALL", -1)
    alphas = []
    for n in range(1, 12):
        middle, status = np.full(n, 0.5, np.float32), np.zeros(n, np.uint8)
        points = MapPoints(np.arange(n), middle, middle.copy(), status, True, 0, np.full(n, -1))
        alphas.append(int(draw_points(points, MapView((0, 1), (0, 1), 1, 1), COLOURS, ALL)[0, 0]) >> 24)
    assert alphas == sorted(alphas) and alphas[0] > 100 and alphas[-1] == 255


def test_few_points_are_dots_around_their_places_with_the_rarer_on_top() -> None:
    x = np.array([0.5, 0.5], np.float32)
    points = MapPoints(np.arange(2), x, x.copy(), np.array([EXPLAINED, UNEXPLAINED], np.uint8), True, 0, np.full(2, -1))
    picture = draw_points(points, MapView((0, 1), (0, 1), 41, 21), COLOURS, ALL)
    rows, columns = np.nonzero(picture)
    assert set(picture[rows, columns].tolist()) == {0xFF000000 | COLOURS[EXPLAINED]}
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (8, 12, 18, 22)


def test_drawing_does_not_take_a_line_of_python_for_each_point() -> None:
    view = MapView((0.0, 101.0), (300.0, 1500.0), 300, 200)
    efforts = []
    for n in (100_000, 400_000):
        points = MapPoints.of_table(table(n))
        efforts.append(lines_run(lambda points=points: draw_points(points, view, COLOURS, ALL)))  # type: ignore[misc]
    assert efforts[1] <= 1.1 * efforts[0]


def test_the_legend_counts_and_switches_each_kind_on_and_off(shown: RunMap) -> None:
    points = shown.points
    assert points is not None
    for status, box in shown.boxes.items():
        assert box.text() == f"{points.counts[status]} {STATUS_NAMES[status]}" and box.isChecked()
    at = next(i for i in range(len(points)) if points.status[i] == EXPLAINED)
    place = shown.canvas.place_of(at)
    assert shown.canvas.point_at(place) == at
    pixel = shown.canvas.grab().toImage().pixelColor(place.toPoint())
    assert pixel == plot_colours(shown.palette()).decoy
    shown.boxes[EXPLAINED].click()
    assert shown.canvas.statuses == {UNEXPLAINED, IDENTIFIED} and shown.canvas.point_at(place) != at
    assert shown.canvas.grab().toImage().pixelColor(place.toPoint()) != pixel


def test_a_click_chooses_the_nearest_spectrum_and_marks_it(shown: RunMap, qtbot: QtBot) -> None:
    points = shown.points
    assert points is not None
    places = [shown.canvas.place_of(i) for i in range(len(points))]
    for at in (QPointF(200, 150), QPointF(431, 222)):
        distances = [(at.x() - place.x()) ** 2 + (at.y() - place.y()) ** 2 for place in places]
        nearest = int(np.argmin(distances))
        target = places[nearest]
        with qtbot.waitSignal(shown.spectrumChosen) as chosen:
            click(shown, target)
        assert chosen.args == [int(points.spectrum[nearest])] and shown.canvas.marked == nearest
        assert shown.canvas.text_at(target).startswith(f"scan {points.spectrum[nearest] + 1000}\nm/z ")


def test_wheel_box_keys_and_double_click_zoom(shown: RunMap) -> None:
    canvas = shown.canvas
    whole = canvas.ranges
    at = canvas.inner.center()
    before = canvas._values_at(at)
    QApplication.sendEvent(
        canvas,
        QWheelEvent(
            at,
            QPointF(canvas.mapToGlobal(at.toPoint())),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        ),
    )
    (low, high), _ = canvas.ranges
    assert high - low == pytest.approx(0.8 * (whole[0][1] - whole[0][0])) and canvas._values_at(at) == pytest.approx(before, rel=1e-3)
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert canvas.ranges == whole
    corners = QPoint(200, 100), QPoint(400, 250)
    wanted = [canvas._values_at(QPointF(corner)) for corner in corners]
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=corners[0])
    QTest.mouseMove(canvas, QPoint(300, 200))
    QTest.mouseMove(canvas, corners[1])
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=corners[1])
    assert canvas.ranges[0] == pytest.approx((wanted[0][0], wanted[1][0]))
    assert canvas.ranges[1] == pytest.approx((wanted[1][1], wanted[0][1]))
    canvas.setFocus()
    box = canvas.ranges
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.ranges[0][0] > box[0][0]
    QTest.keyClick(canvas, Qt.Key.Key_Home)
    assert canvas.ranges == whole


def test_marking_a_spectrum_out_of_sight_brings_it_into_sight(shown: RunMap) -> None:
    points, canvas = shown.points, shown.canvas
    assert points is not None
    canvas.show_range(((0.0, 5.0), (300.0, 400.0)))
    far = len(points) - 1
    shown.mark(int(points.spectrum[far]))
    (low, high), (bottom, top) = canvas.ranges
    assert low <= points.x[far] <= high and bottom <= points.mz[far] <= top and high - low == pytest.approx(5.0)
    assert canvas.inner.contains(canvas.place_of(far))


def test_without_points_it_says_why(shown: RunMap) -> None:
    shown.show_points(None, "There is no map.")
    assert shown.text == "There is no map." and not shown.boxes[EXPLAINED].isVisible()


def test_that_there_is_nothing_to_export_is_told(shown: RunMap, qtbot: QtBot) -> None:
    shown.show_points(None, "Nothing yet.")
    with qtbot.waitSignal(shown.message) as told:
        shown.export_action.trigger()
    assert told.args == ["There is no figure to export now."]


def test_it_takes_the_colours_of_the_look(shown: RunMap, theme: Theme, qtbot: QtBot) -> None:
    theme.choose("dark")
    qtbot.waitUntil(lambda: shown.canvas.grab().toImage().pixelColor(2, 2).lightness() < 128)
    assert shown.boxes[EXPLAINED].icon().pixmap(4).toImage().pixelColor(1, 1) == QColor(plot_colours(shown.palette()).decoy)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_it_is_exported(shown: RunMap, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"map{ending}"
    shown.export_action.write(path)
    assert path.stat().st_size > 3000
    if ending == ".svg":
        text = path.read_text(encoding="utf-8")
        assert "Retention time (min)" in text and all(box.text() in text for box in shown.boxes.values())


@pytest.mark.parametrize("has_times", [True, False])
def test_the_axis_of_times_is_called_by_as_much_as_there_is_room_for(shown: RunMap, has_times: bool) -> None:
    made = table(400, has_times=has_times)
    without = pa.array([None, *made["precursor_mz"].to_pylist()[1:]], pa.float64())
    points = MapPoints.of_table(made.set_column(2, "precursor_mz", without.fill_null(float("nan"))))
    assert points.n_missing == 1
    metrics = QFontMetricsF(shown.font())
    titles = [x_title(points, metrics, width) for width in (60, 200, 300, 500, 2000)]
    for width, title in zip((60, 200, 300, 500, 2000), titles, strict=True):
        assert metrics.horizontalAdvance(title) <= width
    assert [len(title) for title in titles] == sorted(len(title) for title in titles)
    assert titles[1] and titles[-1].endswith("1 spectra without a place are not shown")


def test_the_legend_has_room_at_any_width(shown: RunMap, qtbot: QtBot) -> None:
    assert shown.points is not None
    for width in (700, 300, 230, 700):
        shown.resize(width, 300)
        qtbot.waitUntil(lambda width=width: shown.width() == width and cut_off(shown) == [])  # type: ignore[misc]
        is_named = [STATUS_NAMES[status] in box.text() for status, box in shown.boxes.items()]
        assert all(is_named) == (width == 700) and any(is_named) == (width == 700)
        assert shown.boxes[EXPLAINED].accessibleName() == f"{shown.points.counts[EXPLAINED]} explained"
