"""Tests of the annotated spectrum: correct ions and masses, labels without overlap, and figures with real text."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path

import numpy as np
import pypdfium2
import pyqtgraph as pg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QImage, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from proteoscope.engine.chemistry.fragments import SERIES
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import StorageError
from proteoscope.engine.views.annotation import AnnotatedSpectrum, AnnotationChoice
from proteoscope.engine.views.drawings import Clip, Drawing, Label
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Names
from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.palette import Ion, rgb_of
from proteoscope.engine.views.paper import png
from proteoscope.engine.views.spectrum_figures import spectrum_figure
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.page_choice import FigureDialog
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.theme import Theme
from tests.engine.views.result_projects import fragment_mz
from tests.engine.views.test_annotation import ROW, SETTINGS, synthetic_peaks
from tests.gui.plots.pictures import on_screen
from tests.gui.result_views import cut_off


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[SpectrumView]:
    view = SpectrumView()
    qtbot.addWidget(view)
    view.resize(900, 640)
    with qtbot.waitActive(view):
        view.show()
        view.activateWindow()
    view.show_match(ROW, synthetic_peaks(), SETTINGS, "scan 7")
    view.plot.viewport().repaint()
    yield view


def labels_in_sight(plot: FigureView, panel: int = 0) -> list[Label]:
    """Return the labels that were placed."""
    place, figure = plot._panels[panel].panel_area, plot.figure
    assert place is not None and figure is not None
    names = [mark for mark in place.panel.marks if isinstance(mark, Names)]
    return [shape for mark in names for shape in place.shapes(mark) if isinstance(shape, Label)]


def boxes_in_sight(plot: FigureView) -> list[QRectF]:
    """Return the boxes of the placed labels, in pixels."""
    metrics = QFontMetricsF(plot.font())
    size = metrics.height() * 0.8
    return [
        QRectF(label.x - 0.35 * size * len(label.text), label.y - size, 0.7 * size * len(label.text), size)
        for label in labels_in_sight(plot)
    ]


def place_of_peak(view: SpectrumView, peak: int) -> QPointF:
    """Return the position of the tip of a peak, in pixels of the plot."""
    assert view.spectrum is not None
    return view.plot.place_of(float(view.spectrum.peaks.mz[peak]), float(view.spectrum.relative[peak]))


boxes = st.lists(st.tuples(st.floats(0, 600), st.floats(0, 300), st.floats(5, 60)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(boxes)
def test_peak_labels_cover_neither_labels_nor_higher_peaks(peaks: list[tuple[float, float, float]]) -> None:
    x, y, widths = (np.array(column, np.float64) for column in zip(*peaks, strict=True))
    height = 12.0
    placed = place_labels(x, y, widths, height, 300 - y, x, y, (0.0, 0.0, 600.0, 300.0))
    rectangles = [(label.left, label.top, label.left + widths[label.label], label.top + height) for label in placed]
    for i, rectangle in enumerate(rectangles):
        for other in rectangles[:i]:
            assert rectangle[2] <= other[0] or other[2] <= rectangle[0] or rectangle[3] <= other[1] or other[3] <= rectangle[1]
        label = placed[i].label
        assert rectangle[0] >= 0
        assert rectangle[1] >= 0
        for at in range(len(x)):
            if rectangle[0] <= x[at] <= rectangle[2] and x[at] != x[label]:
                assert y[at] >= rectangle[3], "the line of another peak runs below the label"
        for j, other in enumerate(placed):
            if other.foot is not None and j != i:
                start, end = np.array([other.foot, other.top + height]), np.array([x[other.label], y[other.label]])
                way = start + np.linspace(0, 1, 50)[:, None] * (end - start)
                inside = (way[:, 0] > rectangle[0]) & (way[:, 0] < rectangle[2]) & (way[:, 1] > rectangle[1]) & (way[:, 1] < rectangle[3])
                assert not inside.any(), "the line to another peak overlaps the label"
    highest = int(np.argmin(y))
    if y[highest] > 14 and (y == y[highest]).sum() == 1:
        assert highest in {label.label for label in placed}, "the base peak is always labelled"


def test_crowded_peak_labels_have_a_line_to_the_peak() -> None:
    x = np.array([300.0, 306.0, 312.0, 318.0, 324.0])
    y = np.array([150.0, 60.0, 140.0, 130.0, 145.0])
    placed = place_labels(x, y, np.full(5, 30.0), 12.0, 300 - y, x, y, (0.0, 0.0, 600.0, 300.0))
    assert placed[0].label == 1, "the strongest peak is labelled first"
    assert placed[0].foot is None
    assert len(placed) == 5, "each has a position, as the strongest did without the others"
    assert [label.foot is not None for label in placed[1:]] == [True] * 4


def test_lines_from_labels_to_peaks_never_cross() -> None:
    """Each pair of lines is checked by solving for a common point, over random crowded spectra."""

    def have_common_place(first: np.ndarray, other: np.ndarray) -> bool:
        (from_one, to_one), (from_other, to_other) = first, other
        directions = np.column_stack((to_one - from_one, from_other - to_other))
        if abs(np.linalg.det(directions)) < 1e-9:
            return False
        shares = np.linalg.solve(directions, from_other - from_one)
        return bool(((shares > 1e-9) & (shares < 1 - 1e-9)).all())

    n_lines = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        n = int(generator.integers(5, 60))
        x, y, widths = generator.uniform(0, 600, n), generator.uniform(20, 300, n), generator.uniform(15, 60, n)
        placed = place_labels(x, y, widths, 12.0, 300 - y, x, y, (0.0, 0.0, 600.0, 300.0))
        lines = [np.array([[label.foot, label.top + 12], [x[label.label], y[label.label]]]) for label in placed if label.foot is not None]
        n_lines += len(lines)
        assert not any(have_common_place(line, other) for i, line in enumerate(lines) for other in lines[:i])
    assert n_lines > 300


def test_peak_labels_do_not_overlap_at_any_zoom(view: SpectrumView) -> None:
    counts = []
    for low, high in ((100, 1400), (300, 900), (500, 620), (560, 575)):
        view.plot.show_range(((low, high), view.plot.ranges[1]))
        boxes = boxes_in_sight(view.plot)
        counts.append(len(boxes))
        for i, box in enumerate(boxes):
            assert not any(box.intersects(other) for other in boxes[:i])
    assert counts[0] > 10
    in_sight = [label.text for label in labels_in_sight(view.plot)]
    spectrum = view.spectrum
    assert spectrum is not None
    expected = {
        label for label, peak in zip(spectrum.labels, spectrum.matches.peak.tolist(), strict=True) if 560 <= spectrum.peaks.mz[peak] <= 575
    }
    assert set(in_sight) <= expected, "labels belong to visible peaks"


def send_wheel(view: SpectrumView, at: QPointF, steps: int) -> None:
    viewport = view.plot.viewport()
    event = QWheelEvent(
        at,
        viewport.mapToGlobal(at),
        QPoint(0, 0),
        QPoint(0, 120 * steps),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(viewport, event)
    QApplication.processEvents()


def move_mouse(plot: FigureView, at: QPointF, held: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    where = plot.viewport().mapToGlobal(at)
    move = QMouseEvent(QEvent.Type.MouseMove, at, where, Qt.MouseButton.NoButton, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(plot.viewport(), move)


def drag(view: SpectrumView, start: QPoint, end: QPoint, qtbot: QtBot) -> None:
    viewport = view.plot.viewport()
    qtbot.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    for i in range(1, 6):
        at = QPointF(start + (end - start) * i / 5)
        move_mouse(view.plot, at, Qt.MouseButton.LeftButton)
        qtbot.wait(25)
    qtbot.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=end)


def test_wheel_and_drag_zoom_spectrum_and_double_click_resets_it(view: SpectrumView, qtbot: QtBot) -> None:
    whole, whole_height = view.plot.ranges
    pivot = place_of_peak(view, 200)
    mz = float(view.spectrum.peaks.mz[200])  # type: ignore[union-attr]
    send_wheel(view, pivot, 5)
    (low, high), height = view.plot.ranges
    assert whole[1] - whole[0] > 1.3 * (high - low)
    assert place_of_peak(view, 200).x() == pytest.approx(pivot.x(), abs=3), "the wheel zooms around the pointer"
    assert low <= mz <= high
    assert height == whole_height, "the wheel does not change the height"
    upper, lower = (items.panel_area for items in view.plot._panels)
    assert upper is not None and lower is not None
    assert (lower.panel.x.low, lower.panel.x.high) == pytest.approx((low, high)), "errors move with the spectrum"

    drag(view, QPoint(300, 150), QPoint(420, 300), qtbot)
    (left, right), (foot, top) = view.plot.ranges
    assert right - left < 0.5 * (high - low)
    assert top < height[1]
    assert foot == 0, "the axis remains below the peaks"

    qtbot.mouseDClick(view.plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    qtbot.mouseRelease(view.plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    np.testing.assert_allclose(view.plot.ranges, (whole, whole_height))


def test_keys_zoom_and_pan_the_spectrum(view: SpectrumView, qtbot: QtBot) -> None:
    view.plot.setFocus()
    whole = view.plot.ranges
    qtbot.keyClick(view.plot, Qt.Key.Key_Plus)
    zoomed = view.plot.ranges[0]
    assert zoomed[1] - zoomed[0] == pytest.approx(0.8 * (whole[0][1] - whole[0][0]))
    qtbot.keyClick(view.plot, Qt.Key.Key_Right)
    moved = view.plot.ranges[0]
    assert moved[0] > zoomed[0]
    assert moved[1] - moved[0] == pytest.approx(zoomed[1] - zoomed[0]), "moving never changes the zoom"
    qtbot.keyClick(view.plot, Qt.Key.Key_Up)
    assert view.plot.ranges[1][1] < whole[1][1]
    qtbot.keyClick(view.plot, Qt.Key.Key_Home)
    np.testing.assert_allclose(view.plot.ranges, whole)


def test_spectrum_view_describes_the_peak_under_the_pointer(view: SpectrumView, qtbot: QtBot) -> None:
    spectrum = view.spectrum
    assert spectrum is not None
    match = int(np.argmax(spectrum.relative[spectrum.matches.peak]))
    peak = int(spectrum.matches.peak[match])
    at = place_of_peak(view, peak) + QPointF(1, 3)
    before = view.plot.grab().toImage()
    with qtbot.waitSignal(view.plot.targetHovered) as signal:
        move_mouse(view.plot, at)
    assert signal.args == [peak]
    text = view.readout.text()
    assert f"{spectrum.peaks.mz[peak]:.4f}" in text.replace(",", "")
    assert spectrum.labels[match] in text
    assert f"{spectrum.matches.error_ppm[match]:.2f} ppm" in text
    assert view.plot.grab().toImage() != before, "the peak is marked"
    QApplication.sendEvent(view.plot, QEvent(QEvent.Type.Leave))
    assert "peaks explained" in view.readout.text()
    assert view.plot.grab().toImage() == before


def test_fragment_mass_errors_are_shown_in_the_selected_unit(view: SpectrumView, qtbot: QtBot) -> None:
    spectrum = view.spectrum
    assert spectrum is not None
    assert view.unit.currentText() == "ppm", "the unit of the search's tolerance comes first"

    def shown_errors() -> list[float]:
        items = [item for item in view.plot._panels[1]._items if isinstance(item, pg.ScatterPlotItem)]
        return sorted(float(y) for item in items for y in item.getData()[1])

    assert shown_errors() == pytest.approx(sorted(spectrum.matches.error_ppm))
    view.plot.show_range(((300, 700), view.plot.ranges[1]))
    view.unit.setFocus()
    qtbot.keyClick(view.unit, Qt.Key.Key_Down)
    assert shown_errors() == pytest.approx(sorted(spectrum.matches.error))
    assert view.plot._panels[1].left.labelText == "Error (Da)"
    assert view.plot.ranges[0] == (300, 700), "the zoom is unchanged"


def test_ion_table_marks_matched_ions(view: SpectrumView) -> None:
    spectrum = view.spectrum
    assert spectrum is not None
    model = view.ion_table.model()
    headers = [model.headerData(i, Qt.Orientation.Horizontal) for i in range(model.columnCount())]
    assert headers == ["#", "b⁺", "b2⁺", "Residue", "y2⁺", "y⁺", "#"]
    for row in range(model.rowCount()):
        for column, (series, charge) in {1: ("b", 1), 2: ("b", 2), 4: ("y", 2), 5: ("y", 1)}.items():
            number = row + 1 if series == "b" else len(ROW["sequence"]) - row
            index = model.index(row, column)
            if number > len(ROW["sequence"]) - 1:
                assert index.data() is None
                continue
            mz = fragment_mz(ROW, series, number, charge)
            assert float(index.data().replace(",", "")) == pytest.approx(mz, abs=1e-3)
            is_found = bool((np.abs(spectrum.peaks.mz - mz) <= mz * 20e-6).any())
            font = index.data(Qt.ItemDataRole.FontRole)
            assert (font is not None and font.bold()) == is_found
            assert (index.data(Qt.ItemDataRole.ForegroundRole) is not None) == is_found
    assert [model.index(row, 3).data() for row in range(model.rowCount())] == ["L*", "V", "N", "E", "L", "T*", "E", "F", "M*", "K"]
    assert model.index(0, 3).data(Qt.ItemDataRole.ToolTipRole) == "Acetyl"


def test_annotated_ions_are_selected_in_the_menu(view: SpectrumView, qtbot: QtBot) -> None:
    menu = view.annotation
    QTimer.singleShot(0, lambda: grab_and_close(menu))
    qtbot.mouseClick(view.annotation_button, Qt.MouseButton.LeftButton)
    received = []
    view.choiceChanged.connect(lambda: received.append(menu.choice))
    for box in (menu.series["a"], menu.immonium, menu.precursor):
        qtbot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))
    spectrum = view.spectrum
    assert spectrum is not None
    assert {SERIES[series] for series in spectrum.ions.series} == set("abyi")
    assert received[-1].series == "aby"
    menu.tolerance.setText("0.4 Da")
    qtbot.keyClick(menu.tolerance, Qt.Key.Key_Return)
    assert view.spectrum.settings.tolerance == Tolerance(0.4, "Da")
    assert view.unit.currentText() == "Da"
    menu.tolerance.setText("wide")
    qtbot.keyClick(menu.tolerance, Qt.Key.Key_Return)
    assert "0.5 Da" in menu.problem.text()
    assert view.spectrum.settings.tolerance == Tolerance(0.4, "Da"), "unreadable text changes nothing"
    qtbot.mouseClick(menu.reset_button, Qt.MouseButton.LeftButton)
    assert view.spectrum.settings == SETTINGS
    assert menu.choice == AnnotationChoice()
    assert received[-1] == AnnotationChoice()


def grab_and_close(menu: QMenu) -> None:
    assert menu.isVisible()
    assert not cut_off(menu)
    menu.close()


def test_label_threshold_limits_labels_to_intense_peaks(view: SpectrumView, qtbot: QtBot) -> None:
    before = {label.text for label in labels_in_sight(view.plot)}
    view.annotation.least_labelled.setValue(30)
    after = {label.text for label in labels_in_sight(view.plot)}
    spectrum = view.spectrum
    assert spectrum is not None
    strong = {label for label, peak in zip(spectrum.labels, spectrum.matches.peak.tolist(), strict=True) if spectrum.relative[peak] >= 30}
    assert after
    assert after <= strong
    assert len(after) < len(before)


def test_neutral_losses_are_shown_only_on_request(view: SpectrumView, qtbot: QtBot) -> None:
    before = view.plot.ranges
    view.plot.show_range(((300, 700), before[1]))
    for box in view.annotation.losses.values():
        qtbot.keyClick(box, Qt.Key.Key_Space)
    assert view.spectrum is not None
    assert not view.spectrum.ions.loss.any()
    assert view.plot.ranges[0][0] == pytest.approx(300), "the zoom is unchanged"
    assert before[0][0] < 300


def test_spectrum_view_reports_a_residue_without_mass(view: SpectrumView) -> None:
    view.show_match({**ROW, "sequence": "LVXELTEFMK"}, synthetic_peaks(), SETTINGS, "")
    assert "LVXELTEFMK" in view.text


def texts_of_svg(path: Path) -> list[str]:
    root = ET.fromstring(path.read_text())
    return ["".join(node.itertext()).strip() for node in root.iter("{http://www.w3.org/2000/svg}text")]


def stick_heights(pixels: np.ndarray, spectrum: AnnotatedSpectrum, x: tuple[float, float], top: float) -> np.ndarray:
    """Return the drawn heights of tall isolated peaks as fractions of the axis, and NaN for the others."""
    n_rows, n_columns = pixels.shape[:2]
    column = (spectrum.peaks.mz - x[0]) / (x[1] - x[0]) * n_columns
    tall = np.flatnonzero(spectrum.relative > 0.05 * top)
    is_apart = np.diff(column[tall], prepend=-np.inf, append=np.inf) > 8
    heights = np.full(len(column), np.nan)
    for peak in tall[is_apart[1:] & is_apart[:-1] & (column[tall] > 4) & (column[tall] < n_columns - 4)].tolist():
        colour = np.array(rgb_of(Ion(str(spectrum.shown.kinds[peak]))))
        at = round(float(column[peak]))
        is_drawn = (np.abs(pixels[:, at - 3 : at + 4].astype(int) - colour).max(axis=2) < 60).any(axis=1)[::-1]
        # The axis and the edge of the image do not belong to the peak.
        gaps = np.flatnonzero(~is_drawn[4:])
        heights[peak] = (gaps[0] + 4 if len(gaps) else n_rows) / n_rows
    return heights


def page_panel(drawing: Drawing) -> np.ndarray:
    """Return the upper panel (rows, columns, 3) of a page as drawn by PDFium."""
    page = np.asarray(Image.open(BytesIO(png(drawing, 144))))
    upper = next(shape for shape in drawing.shapes if isinstance(shape, Clip))
    left, right, high, low = (round(2 * end) for end in (upper.x, upper.x + upper.width, upper.y + 1, upper.y + upper.height - 1))
    return page[high:low, left:right]


@pytest.mark.parametrize("x_range", [None, (400.0, 900.0)])
def test_spectrum_peaks_are_equal_in_window_and_on_page(view: SpectrumView, x_range: tuple[float, float] | None) -> None:
    spectrum, plot = view.spectrum, view.plot
    assert spectrum is not None
    if x_range is not None:
        plot.show_range((x_range, (0.0, 60.0)))
    x, (_, top) = plot.ranges
    drawing = lay_out(spectrum_figure(spectrum), (1020.0, 720.0), x_range=x, y_ranges=[(0.0, top)])
    in_window = stick_heights(on_screen(plot), spectrum, x, top)
    on_page = stick_heights(page_panel(drawing), spectrum, x, top)
    both = ~np.isnan(in_window) & ~np.isnan(on_page)
    assert both.sum() >= 8
    true = np.minimum(spectrum.relative[both] / top, 1.0)
    np.testing.assert_allclose(in_window[both], true, atol=0.012)
    np.testing.assert_allclose(on_page[both], true, atol=0.012)


def test_spectrum_svg_has_labels_as_text(view: SpectrumView, tmp_path: Path) -> None:
    view.export_action.write(tmp_path / "figure.svg")
    texts = texts_of_svg(tmp_path / "figure.svg")
    assert "m/z" in texts
    assert "Relative intensity (%)" in texts
    assert "Error (ppm)" in texts
    assert "Phospho" in texts
    assert any("LVNELT[Phospho]EFM[Oxidation]K/3" in text for text in texts)
    spectrum = view.spectrum
    assert spectrum is not None
    strongest = int(np.argmax(spectrum.relative[spectrum.matches.peak]))
    assert spectrum.labels[strongest] in texts
    assert len(set(texts) & set(spectrum.labels)) > 10


def test_exported_spectrum_shows_the_zoomed_range(view: SpectrumView, tmp_path: Path) -> None:
    spectrum = view.spectrum
    assert spectrum is not None
    view.plot.show_range(((400, 600), view.plot.ranges[1]))
    view.export_action.write(tmp_path / "figure.svg")
    shown = set(texts_of_svg(tmp_path / "figure.svg")) & set(spectrum.labels)
    inside = {
        label for label, peak in zip(spectrum.labels, spectrum.matches.peak.tolist(), strict=True) if 400 <= spectrum.peaks.mz[peak] <= 600
    }
    assert shown
    assert shown <= inside


def test_spectrum_pdf_has_text_and_is_not_blank(view: SpectrumView, tmp_path: Path) -> None:
    path = tmp_path / "figure.pdf"
    view.export_action.write(path)
    with closing(pypdfium2.PdfDocument(path)) as document:
        text = document[0].get_textpage().get_text_bounded()
        page = document[0].render(scale=60 / 72).to_pil().convert("RGB")
    spectrum = view.spectrum
    assert spectrum is not None
    assert "m/z" in text
    assert "LVNELT[Phospho]EFM[Oxidation]K/3" in text
    assert spectrum.labels[int(np.argmax(spectrum.relative[spectrum.matches.peak]))].replace("²⁺", "") in text
    # These are 510 x 360 points at 60 dots per inch.
    assert page.size == (425, 300)
    assert page.getpixel((1, 1)) == (255, 255, 255)
    assert len(set(np.asarray(page).reshape(-1, 3).sum(axis=1).tolist())) > 20


def test_spectrum_png_has_white_background_and_300_dpi(view: SpectrumView, theme: Theme, tmp_path: Path) -> None:
    theme.choose("dark")
    view.export_action.write(tmp_path / "figure.png")
    image = QImage(str(tmp_path / "figure.png"))
    assert (image.width(), image.height()) == (2125, 1500)
    assert image.dotsPerMeterX() == pytest.approx(300 / 0.0254, abs=1)
    assert image.pixelColor(2, 2).name() == "#ffffff", "paper is white in any theme"


def test_failed_figure_export_leaves_no_file(view: SpectrumView, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(StorageError, match="a file"):
        view.export_action.write(tmp_path / "a file" / "figure.svg")
    with pytest.raises(StorageError, match=r"\.svg, \.pdf or \.png"):
        view.export_action.write(tmp_path / "figure.bmp")
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_failed_figure_export_is_reported_in_a_dialog(
    view: SpectrumView, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    path = tmp_path / "a file" / "figure.svg"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), "Vector graphics (*.svg)"))
    view.export_action.trigger()
    view.findChild(FigureDialog).accept()
    box = view.findChild(QMessageBox)
    assert box is not None and box.isVisible() and "a file" in box.text()
    box.close()
    qtbot.waitUntil(lambda: view.findChild(QMessageBox) is None)


def test_spectrum_plot_uses_theme_colours(view: SpectrumView, theme: Theme) -> None:
    light = view.plot.grab().toImage().pixelColor(200, 5)
    theme.choose("dark")
    QApplication.processEvents()
    dark = view.plot.grab().toImage().pixelColor(200, 5)
    assert light.lightness() > 240
    assert dark.lightness() < 60


def test_spectrum_view_can_be_copied_as_an_image(view: SpectrumView, qtbot: QtBot) -> None:
    with qtbot.waitSignal(view.message):
        view.copy_action.trigger()
    assert QGuiApplication.clipboard().image().width() > 400
