"""Tests of figures in the window: input events, and their image compared with the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QTabWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.drawings import Axis, Label
from proteoscope.engine.views.figures import Bars, Figure, Line, Names, Panel, Pixels, Rule, Scatter, Spikes, Text
from proteoscope.engine.views.palette import rgb_of
from proteoscope.gui.colours import palette_of, qt_colour
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.panel_items import PanelItems, localised
from proteoscope.gui.theme import Theme
from tests.engine.views.test_figure_layout import every_mark
from tests.gui.plots.pictures import extent, on_paper, on_screen, pull, wheel

MZ, PERCENT = Axis(100.0, 200.0, "m/z"), Axis(0.0, 100.0, "Intensity (%)")
PEAKS = Spikes(
    np.array([110.0, 150.0, 190.0]), np.array([20.0, 90.0, 50.0]), "target", 3.0, targets=np.array([7, 8, 9]), tips="peak {}".format
)
FREE = Panel(MZ, PERCENT, (PEAKS,), smallest=(1.0, 1.0))


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[FigureView]:
    widget = FigureView("Peaks")
    qtbot.addWidget(widget)
    widget.resize(600, 300)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    show(widget, FREE)
    yield widget


def show(view: FigureView, *panels: Panel) -> None:
    view.show_figure(Figure("peaks", "Three peaks", panels))
    QApplication.processEvents()


def test_wheel_zooms_figure_and_double_click_resets_it(view: FigureView) -> None:
    at = QPointF(view.place_of(130.0, 40.0).toPoint())
    before = view.values_at(at)
    wheel(view, at)
    (low, high), (foot, top) = view.ranges
    assert (high - low, top - foot) == pytest.approx((80.0, 80.0))
    assert view.values_at(at) == pytest.approx(before)
    wheel(view, at, -1200)
    assert view.ranges == ((100.0, 200.0), (0.0, 100.0))
    view.show_range(((120.0, 130.0), (10.0, 20.0)))
    QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.inner().center().toPoint())
    assert view.ranges == ((100.0, 200.0), (0.0, 100.0))


def test_dragged_rectangle_zooms_figure(view: FigureView) -> None:
    corners = view.place_of(120.0, 80.0).toPoint(), view.place_of(160.0, 30.0).toPoint()
    values = [view.values_at(QPointF(corner)) for corner in corners]
    pull(view, *corners)
    assert values[0] is not None and values[1] is not None
    assert view.ranges[0] == pytest.approx((values[0][1], values[1][1]))
    assert view.ranges[1] == pytest.approx((values[1][2], values[0][2]))


def test_keys_pan_zoom_and_reset_figure_within_limits(view: FigureView) -> None:
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Plus)
    assert view.ranges[0] == pytest.approx((110.0, 190.0))
    for key, x, y in (
        (Qt.Key.Key_Right, (120, 200), (10, 90)),
        (Qt.Key.Key_Up, (120, 200), (20, 100)),
        (Qt.Key.Key_Down, (120, 200), (4, 84)),
    ):
        QTest.keyClick(view, key)
        assert view.ranges[0] == pytest.approx(x) and view.ranges[1] == pytest.approx(y)
    for _ in range(40):
        QTest.keyClick(view, Qt.Key.Key_Equal)
    assert [high - low for low, high in view.ranges] == pytest.approx([1.0, 1.0])
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert view.ranges == ((100.0, 200.0), (0.0, 100.0))


def test_zoomed_figure_keeps_a_fixed_baseline(view: FigureView) -> None:
    show(view, replace(FREE, is_base_fixed=True), replace(FREE, smallest=(1.0, None)))
    wheel(view, view.place_of(150.0, 50.0))
    assert view.ranges[0] == pytest.approx((110.0, 190.0), abs=0.1) and view.ranges[1] == (0.0, 100.0)
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert view.ranges[1] == pytest.approx((0.0, 80.0))
    corner = view.values_at(view.place_of(120.0, 50.0))
    pull(view, view.place_of(120.0, 50.0).toPoint(), view.place_of(140.0, 20.0).toPoint())
    assert corner is not None and view.ranges[1] == pytest.approx((0.0, 50.0), abs=1.0)
    # Panels share the x axis.
    assert view.inner(0).left() == pytest.approx(view.inner(1).left())
    assert view.values_at(view.inner(1).center())[1] == pytest.approx(sum(view.ranges[0]) / 2)  # type: ignore[index]


def test_panel_that_allows_no_zoom_is_not_zoomed(view: FigureView) -> None:
    show(view, replace(FREE, smallest=(None, None)))
    wheel(view, view.place_of(150.0, 50.0))
    pull(view, view.place_of(120.0, 80.0).toPoint(), view.place_of(160.0, 30.0).toPoint())
    assert view.ranges == () and view.values_at(view.inner().center()) == pytest.approx((0, 150.0, 50.0))


def test_click_in_figure_selects_the_nearest_mark_with_a_tooltip(view: FigureView, qtbot: QtBot) -> None:
    at = view.place_of(150.0, 60.0)
    with qtbot.waitSignal(view.targetChosen) as chosen:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint() + QPoint(5, 0))
    assert chosen.args == [8] and view.text_at(at) == "peak 1"
    assert view.picked_at(at + QPointF(20, 0)) is None and view.picked_at(view.place_of(110.0, 40.0)) is None
    with qtbot.waitSignal(view.targetHovered) as hovered:
        QTest.mouseMove(view.viewport(), view.place_of(190.0, 30.0).toPoint())
    assert hovered.args == [9]


def test_marked_points_of_figure_have_rings(view: FigureView) -> None:
    before = view.grab().toImage()
    view.mark(8)
    ring = view.place_of(150.0, 90.0) - QPointF(6, 0)
    after = view.grab().toImage()
    near = [QPoint(round(ring.x()) + dx, round(ring.y())) for dx in (-1, 0, 1)]
    assert any(before.pixelColor(at) != after.pixelColor(at) for at in near)
    view.mark()
    assert view.grab().toImage() == before


def test_figure_view_computes_marks_anew_for_the_visible_range(view: FigureView) -> None:
    made: list[tuple[float, float, int]] = []

    def of_view(low: float, high: float, n_columns: int) -> Panel:
        made.append((low, high, n_columns))
        return Panel(MZ, Axis(0.0, high - low), (Line(np.array([low, high]), np.array([0.0, high - low])),))

    show(view, Panel(MZ, PERCENT, (), smallest=(1.0, None), of_view=of_view))
    view.show_range(((120.0, 140.0),))
    assert made[-1] == (120.0, 140.0, round(view.inner().width()))
    assert view.values_at(view.inner().center()) == pytest.approx((0, 130.0, 10.0))
    drawing = view.drawing()
    assert drawing is not None and made[-1][:2] == (120.0, 140.0)


def test_figure_view_shows_a_text_without_a_figure(view: FigureView, tmp_path: Path, qtbot: QtBot) -> None:
    view.show_figure(None, "Nothing yet.")
    assert view.text == "Nothing yet." == view.accessibleDescription() and view.drawing() is None and view.text_at(QPointF(300, 150)) == ""
    with qtbot.waitSignal(view.message) as report:
        view.export_action.trigger()
    assert report.args == ["There is no figure to export."]
    view.zoom(1)
    show(view, FREE)
    assert view.text == "" and view.accessibleDescription() == "Three peaks"
    view.export_action.write(tmp_path / "peaks.svg")
    assert "Intensity (%)" in (tmp_path / "peaks.svg").read_text()


def test_figure_view_without_a_figure_is_blank(view: FigureView) -> None:
    show(view, FREE)
    view.mark(1)
    view.show_figure(None, "")
    shown = view.grab().toImage()
    background = qt_colour("background", palette_of(view.palette()))
    assert {shown.pixelColor(x, y).name() for x in range(4, shown.width() - 4) for y in range(4, shown.height() - 4)} == {background.name()}
    assert view.picked_at(view.rect().center().toPointF()) is None and view.inner().isEmpty()


def test_prepared_axes_are_used_by_the_first_figure(qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a view creates its axes before a figure is shown, looks empty meanwhile, and shows the figure like any other view."""
    prepared, usual = FigureView("Peaks", has_heading=False, heights=(1.0,)), FigureView("Peaks", has_heading=False)
    for view in (prepared, usual):
        qtbot.addWidget(view)
        view.resize(600, 300)
    prepared.show_figure(None, "Nothing yet.")
    qtbot.waitUntil(lambda: bool(prepared._panels))
    assert prepared.figure is None and prepared.text == "Nothing yet." and prepared.text_at(QPointF(300, 150)) == ""
    show(usual, FREE)
    pictures = [usual.grab().toImage()]
    monkeypatch.setattr(PanelItems, "__init__", lambda *_, **__: pytest.fail("axes were created again"))
    show(prepared, FREE)
    pictures.append(prepared.grab().toImage())
    assert pictures[0] == pictures[1]


def test_exported_figure_shows_the_visible_range(view: FigureView) -> None:
    view.show_range(((150.0, 160.0), (0.0, 100.0)))
    drawing = view.drawing()
    assert drawing is not None
    assert {"150", "160"} <= {shape.text for shape in drawing.shapes if isinstance(shape, Label)}


def test_figure_view_draws_names_and_texts(view: FigureView) -> None:
    before = view.grab().toImage()
    names = Names(PEAKS.x, PEAKS.y, ["a", "b", "c"], PEAKS.y)
    for mark in (names, Text(170.0, 70.0, "text"), Rule(130.0, text="limit")):
        show(view, replace(FREE, marks=(PEAKS, mark)))
        assert view.grab().toImage() != before


@pytest.mark.parametrize("scale", ["linear", "square-root", "logarithmic"])
def test_marks_have_the_same_values_in_window_and_on_page(view: FigureView, scale) -> None:
    axis = Axis(1.0 if scale == "logarithmic" else 0.0, 100.0, scale=scale)
    marks = (
        Bars(np.array([105.0]), np.array([115.0]), np.array([64.0]), 3),
        replace(PEAKS, ink=1, foot=axis.low),
        Line(np.array([155.0, 185.0]), np.array([80.0, 80.0]), 8, 3.0),
        Scatter(np.array([130.0]), np.array([25.0]), 5, 8.0),
    )
    panel = Panel(MZ, axis, marks)
    show(view, panel)
    figure = Figure("peaks", "Marks", (panel,))
    for ink in (1, 3, 5, 8):
        shown = extent(on_screen(view), rgb_of(ink, palette_of(view.palette())))
        np.testing.assert_allclose(shown, extent(on_paper(figure), rgb_of(ink)), atol=0.02, err_msg=f"ink {ink}")


def test_images_are_rendered_for_the_visible_range(view: FigureView) -> None:
    def render(x, y, width, height, scale, palette):
        columns = np.linspace(*x, width)
        pixels = np.zeros((height, width, 4), np.uint8)
        pixels[: height // 2, columns >= 150.0] = (255, 0, 0, 255)
        return pixels

    show(view, replace(FREE, marks=(Pixels(render),)))
    view.show_range(((145.0, 155.0), (0.0, 100.0)))
    image = view.grab().toImage()
    colours = [image.pixelColor(view.place_of(*at).toPoint()).name() for at in ((152.0, 80.0), (148.0, 80.0), (152.0, 20.0))]
    assert colours == ["#ff0000", qt_colour("background", palette_of(view.palette())).name(), colours[1]]


def test_figure_view_uses_theme_colours(view: FigureView, theme: Theme, qtbot: QtBot) -> None:
    view.show_figure(every_mark())
    theme.choose("dark")
    qtbot.waitUntil(lambda: view.grab().toImage().pixelColor(2, 2).lightness() < 128)
    assert view.inner(1).top() > view.inner(0).bottom()


def test_numbers_in_figures_have_separators_of_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    from PySide6.QtCore import QLocale

    default = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    try:
        assert localised("1,234.5 to -0.50: 3, scan 12, 7.25 min") == "1.234,5 to -0,50: 3, scan 12, 7,25 min"
        assert localised("run1.2.mzML, P1.1, 1.2.3") == "run1.2.mzML, P1.1, 1.2.3"
    finally:
        QLocale.setDefault(default)


def test_hidden_figure_is_drawn_once_when_it_is_shown(qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    real = PanelItems.draw
    monkeypatch.setattr(PanelItems, "draw", lambda items, panel: (drawn.append("x"), real(items, panel)))
    tabs, view = QTabWidget(), FigureView("Peaks")
    tabs.addTab(QLabel("Tables"), "Tables")
    tabs.addTab(view, "Peaks")
    tabs.resize(600, 300)
    qtbot.addWidget(tabs)
    with qtbot.waitExposed(tabs):
        tabs.show()
    for _ in range(3):
        show(view, FREE)
    theme.choose("dark")
    assert drawn == []
    tabs.setCurrentWidget(view)
    assert drawn == ["x"]
    assert view.place_of(150.0, 90.0).x() > view.place_of(110.0, 90.0).x()
    assert view.grab().toImage().pixelColor(2, 2) == qt_colour("background", palette_of(view.palette()))
    # Hidden again, but used: the place of a mark in the new figure is known at once.
    tabs.setCurrentIndex(0)
    view.show_figure(Figure("peaks", "Other peaks", (replace(FREE, x=Axis(0.0, 1000.0, "m/z")),)))
    n_drawn = len(drawn)
    assert view.panel_in_sight().x.high == 1000.0 and len(drawn) == n_drawn + 1


def test_axis_title_is_centred_after_a_change_of_its_text(view: FigureView) -> None:
    show(view, FREE)
    show(view, replace(FREE, y=Axis(0.0, 100.0, "A")))
    for axis, y in ((PERCENT, "Intensity (%)"), (Axis(0.0, 100.0, "A"), "A")):
        show(view, replace(FREE, y=axis))
        left = view._panels[0].left
        assert left.labelText == y
        title = left.label.mapRectToScene(left.label.boundingRect())
        assert abs(title.center().y() - view.inner().center().y()) < 3
