"""Tests of mirrored spectra: shared peaks against brute force, and what is drawn, described and exported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import IonSettings, annotate_peptidoform
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.palette import Ion, rgb_of
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import SHARED, SHIFTED, UNMATCHED
from proteoscope.engine.views.spectrum_figures import mirror_figure
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.plots.zoomable import Ranges
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.theme import Theme
from tests.gui.plots.pictures import extent, on_screen
from tests.gui.result_views import corner_texts, cut_off
from tests.gui.spectrum.test_spectrum import boxes_in_sight, labels_in_sight, move_mouse, page_panel, synthetic_peaks

TOLERANCE = Tolerance(0.05, "Da")


def peaks(*pairs: tuple[float, float]) -> Peaks:
    return Peaks(np.array([mz for mz, _ in pairs], float), np.array([intensity for _, intensity in pairs], float))


UPPER = peaks((150.0, 10), (200.0, 100), (300.02, 50), (400.0, 5))
LOWER = peaks((200.01, 30), (300.0, 60), (450.0, 20))


CONSENSUS = Half("consensus", LOWER)


def mirrored(lower: Half | None = CONSENSUS) -> MirroredSpectra:
    return MirroredSpectra("spectrum 7 and its cluster", Half("spectrum 7", UPPER), lower, TOLERANCE, 0.8725 if lower else None)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[MirrorView]:
    widget = MirrorView()
    qtbot.addWidget(widget)
    widget.resize(900, 520)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_spectra(mirrored())
    yield widget


def test_mirror_plot_elides_a_long_caption_and_has_a_tooltip(view: MirrorView, qtbot: QtBot) -> None:
    note = "No accepted spectrum of this peptide and charge without a shift."
    view.show_spectra(replace(mirrored(None), note=note))
    view.resize(300, 520)
    qtbot.waitUntil(lambda: view.readout.width() < 320)
    needed = view.readout.fontMetrics().horizontalAdvance(view.readout.text())
    assert note in view.readout.text() and needed > view.readout.width() and not cut_off(view)
    assert note in view.readout.toolTip().replace("\n", " ")
    narrow, dark = view.readout.grab().toImage(), []
    for x in range(narrow.width() - 24, narrow.width()):
        dark += [narrow.pixelColor(x, y).lightness() for y in range(narrow.height())]
    assert max(dark) - min(dark) > 80, "the ellipsis is drawn at the end"


def place_of_peak(view: MirrorView, half: int, peak: int) -> QPointF:
    """Return the position of the tip of a peak, in pixels of the plot."""
    assert view.spectra is not None
    drawn = view.spectra.shown[half]
    return view.plot.place_of(float(drawn.mz[peak]), float(drawn.side * drawn.height[peak]))


def test_mirrored_spectra_are_scaled_to_their_base_peaks(view: MirrorView) -> None:
    assert view.spectra is not None
    upper, lower = view.spectra.shown
    assert upper.height.max() == lower.height.max() == 100 and not upper.is_below and lower.is_below
    assert upper.kinds.tolist() == [UNMATCHED, SHARED, SHARED, UNMATCHED] and lower.kinds.tolist() == [SHARED, SHARED, UNMATCHED]
    (low, high), (bottom, top) = view.plot.ranges
    assert bottom == -top and low < 150 and high > 450
    image = view.plot.grab().toImage()
    colours = plot_colours(view.palette())
    for half, peak in ((0, 1), (1, 1)):
        at = place_of_peak(view, half, peak).toPoint()
        down = 6 if half == 0 else -6
        around = [image.pixelColor(at.x() + i, at.y() + down) for i in (-1, 0, 1)]
        assert colours.ions[SHARED] in around, (half, [colour.name() for colour in around])


def test_mirror_plot_has_similarity_and_names_in_the_corners(view: MirrorView) -> None:
    assert corner_texts(view.plot) == ["cosine 0.873", "spectrum 7", "consensus"]
    assert view.title == "spectrum 7 and its cluster" and view.readout.text() == "2 peaks shared within 0.05 Da, of 4 above and 3 below"
    whole = view.plot.inner()
    for is_right, is_low in ((True, False), (False, False), (False, True)):
        corner = QRectF(whole.right() - 90 if is_right else whole.left() + 5, whole.bottom() - 22 if is_low else whole.top() + 2, 85, 20)
        picture = view.plot.grab(corner.toRect()).toImage()
        tones = {picture.pixelColor(x, y).lightness() for x in range(picture.width()) for y in range(picture.height())}
        assert max(tones) - min(tones) > 100, "a text is drawn"


def test_mirror_plot_describes_shared_peaks_under_the_pointer(view: MirrorView) -> None:
    plot = view.plot

    def hover(half: int, peak: int, inside: int) -> str:
        move_mouse(plot, place_of_peak(view, half, peak) + QPointF(0, inside))
        return view.readout.text()

    both = "above: m/z 300.0200, intensity 50 (50.0 %)   below: m/z 300.0000, intensity 60 (100.0 %)   0.0200 Th apart"
    assert hover(0, 2, 8) == both and hover(1, 1, -8) == both
    (rings,) = plot._highlights
    assert sorted(zip(rings.x.tolist(), rings.y.tolist(), strict=True)) == [(300.0, -100.0), (300.02, 50.0)]
    assert hover(1, 2, -8) == "below: m/z 450.0000, intensity 20 (33.3 %)   only in this one"
    assert hover(0, 0, 3) == "above: m/z 150.0000, intensity 10 (10.0 %)   only in this one"
    QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert view.readout.text().startswith("2 peaks shared") and not plot._highlights


def test_zoomed_mirror_plot_keeps_the_axis_in_the_middle(view: MirrorView) -> None:
    plot = view.plot
    plot.setFocus()
    whole = plot.ranges
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Plus):
        QTest.keyClick(plot, key)
    (low, high), (bottom, top) = plot.ranges
    assert top == pytest.approx(-bottom) and top < 100 and high - low < whole[0][1] - whole[0][0]
    QTest.keyClick(plot, Qt.Key.Key_0)
    assert np.allclose(plot.ranges, whole)


def test_mirror_plot_of_a_single_spectrum_uses_the_whole_height(view: MirrorView) -> None:
    view.show_spectra(mirrored(None))
    _, (bottom, top) = view.plot.ranges
    assert bottom == 0 and top > 100 and corner_texts(view.plot) == ["spectrum 7"] and view.readout.text() == "4 peaks"
    view.show_spectra(mirrored(Half("no peaks", peaks())))
    assert view.readout.text() == "0 peaks shared within 0.05 Da, of 4 above and 0 below"


def test_mirror_plot_labels_ions_and_colours_shared_peaks(view: MirrorView) -> None:
    of = synthetic_peaks(n_noise=20)
    peptide = parse("[Acetyl]-LVNELTEFM[Oxidation]K/3")
    ions = annotate_peptidoform(peptide, 450.0, of, IonSettings(Tolerance(20, "ppm")))
    assert len(ions.matches)
    spectra = MirroredSpectra("both", Half("unidentified", of), Half("identified", of, ions), TOLERANCE, 1.0)
    view.show_spectra(spectra)
    upper, lower = spectra.shown
    assert upper.kinds.tolist() == lower.kinds.tolist() and not len(upper.named) and lower.labels == ions.labels
    labels = labels_in_sight(view.plot)
    assert labels and {label.text for label in labels} <= set(ions.labels)
    boxes, base = boxes_in_sight(view.plot), view.plot.place_of(500, 0).y()
    assert all(box.bottom() > base for box in boxes)
    assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_mirror_plot_without_spectra_shows_the_reason(view: MirrorView) -> None:
    view.show_text("no stored peaks")
    assert view.text == "no stored peaks" and not view.export_action.isEnabled() and view.spectra is None


@pytest.mark.parametrize("ranges", [None, ((180.0, 460.0), (-80.0, 80.0))])
def test_mirrored_spectra_are_equal_in_window_and_on_page(view: MirrorView, ranges: Ranges | None) -> None:
    spectra = replace(mirrored(), shift=-50.0)
    view.show_spectra(spectra)
    if ranges is not None:
        view.plot.show_range(ranges)
    x, y = view.plot.ranges
    page = page_panel(lay_out(mirror_figure(spectra), (1020.0, 640.0), x_range=x, y_ranges=[y]))
    for kind, mz, heights in ((SHARED, (200.0, 300.02), (-100.0, 100.0)), (SHIFTED, (400.0, 450.0), (-100 / 3, 5.0))):
        across = (np.array(mz) - x[0]) / (x[1] - x[0])
        up = (np.clip(heights, *y) - y[0]) / (y[1] - y[0])
        for pixels in (on_screen(view.plot), page):
            np.testing.assert_allclose(extent(pixels, rgb_of(Ion(kind)), 30), [*across, *up], atol=0.012)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_exported_mirror_figure_has_no_negative_intensities(view: MirrorView, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"mirror{ending}"
    view.export_action.write(path)
    assert path.stat().st_size > 1500
    if ending == ".svg":
        text = path.read_text(encoding="utf-8")
        assert all(part in text for part in ("cosine 0.873", "spectrum 7", "consensus", ">100<", "m/z"))
        assert ">-100<" not in text and ">−100<" not in text
