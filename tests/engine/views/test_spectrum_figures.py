"""Figures of spectra: positions of peaks, errors and fragments, without Qt."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pypdfium2
import pytest
from lxml import etree

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import AnnotatedSpectrum, annotate_match
from proteoscope.engine.views.drawings import Clip, Drawing, Label, Points, Shape, Sticks, Stroke, format_colour, svg
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Names, Spikes
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.palette import Ion
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.spectrum_figures import draw_ladder, mirror_figure, mirrored_peak, peak_text, spectrum_figure
from tests.engine.views.test_annotation import ROW, SETTINGS, synthetic_peaks

HOSTILE = 'scan 7 </text><script>alert("1")</script> & <!-- \x00\x1b[2J'


@pytest.fixture(scope="module")
def spectrum() -> AnnotatedSpectrum:
    return annotate_match(ROW, synthetic_peaks(), SETTINGS, "scan 7")


def clips(drawing: Drawing) -> list[Clip]:
    return [shape for shape in drawing.shapes if isinstance(shape, Clip)]


def sticks(clip: Clip) -> dict[str, Sticks]:
    return {shape.ink.kind: shape for shape in clip.shapes if isinstance(shape, Sticks) and isinstance(shape.ink, Ion)}


def test_spectrum_figure_draws_peaks_in_ion_colours(spectrum) -> None:
    upper, lower = clips(lay_out(spectrum_figure(spectrum)))
    drawn = sticks(upper)
    assert set(drawn) == set(spectrum.shown.kinds.tolist()) and sum(len(stick_group.x) for stick_group in drawn.values()) == len(
        spectrum.peaks.mz
    )
    matched = dict(zip(spectrum.matches.peak.tolist(), spectrum.kinds, strict=True))
    base = int(np.argmax(spectrum.peaks.intensity))
    for kind, shape in drawn.items():
        peaks = [peak for peak in range(len(spectrum.peaks.mz)) if matched.get(peak, "") == kind]
        per_percent = (drawn[matched[base]].y1[0] - drawn[matched[base]].y2.min()) / 100
        np.testing.assert_allclose(
            shape.y1 - shape.y2, spectrum.peaks.intensity[peaks] / spectrum.peaks.intensity[base] * 100 * per_percent
        )
        assert (np.diff(shape.x) >= 0).all()
    dots = [shape for shape in lower.shapes if isinstance(shape, Points)]
    assert sum(len(dot_group.x) for dot_group in dots) == len(spectrum.matches)
    # Errors are drawn at the m/z of their peaks.
    assert {round(float(x), 6) for dot_group in dots for x in dot_group.x} <= {
        round(float(x), 6) for stick_group in drawn.values() for x in stick_group.x
    }


@pytest.mark.parametrize(("unit", "values"), [("ppm", "error_ppm"), ("Da", "error")])
def test_spectrum_figure_shows_mass_errors_in_the_selected_unit(spectrum, unit, values) -> None:
    figure = spectrum_figure(spectrum, unit)
    errors = getattr(spectrum.matches, values)
    shown = np.concatenate([mark.y for mark in figure.panels[1].marks if type(mark).__name__ == "Scatter"])
    assert sorted(shown.tolist()) == sorted(errors.tolist()) and np.abs(errors).max() <= figure.panels[1].y.high
    assert figure.panels[1].y.title == f"Error ({unit})"


def test_spectrum_figure_of_an_mz_range_labels_only_peaks_inside(spectrum) -> None:
    drawing = lay_out(spectrum_figure(spectrum), x_range=(400.0, 600.0), y_ranges=[(0.0, 20.0)])
    texts = {shape.text for shape in clips(drawing)[0].shapes if isinstance(shape, Label)}
    inside = {
        name for name, peak in zip(spectrum.labels, spectrum.matches.peak.tolist(), strict=True) if 400 <= spectrum.peaks.mz[peak] <= 600
    }
    assert texts and texts <= inside


def test_spectrum_figure_without_ions_or_peaks_is_drawn(spectrum) -> None:
    none = np.empty(0)
    for peaks in (Peaks(none, none), Peaks(np.array([5.0]), np.array([0.0]))):
        empty = annotate_match(ROW, peaks, SETTINGS)
        assert etree.fromstring(svg(lay_out(spectrum_figure(empty)))) is not None
        half = Half("nothing", peaks)
        for lower in (None, half):
            assert etree.fromstring(svg(lay_out(mirror_figure(MirroredSpectra("", half, lower, Tolerance(1, "Da")))))) is not None


def test_spectrum_figure_labels_peaks_above_the_threshold(spectrum) -> None:
    strong = annotate_match(ROW, synthetic_peaks(), replace(SETTINGS, least_labelled=30.0))
    (names,) = (mark for mark in spectrum_figure(strong).panels[0].marks if isinstance(mark, Names))
    assert 0 < len(names.texts) < len(spectrum.labels) and names.importance.min() >= 30


def test_fragment_ladder_marks_bonds_with_matched_ions(spectrum) -> None:
    shapes = draw_ladder(spectrum, 40.0, 10.0, 400.0, 8.0)
    residues = [shape for shape in shapes if isinstance(shape, Label) and shape.is_bold]
    assert "".join(label.text for label in residues) == ROW["sequence"]
    across = [label.x for label in residues]
    np.testing.assert_allclose(np.diff(across), across[1] - across[0])
    assert (across[0] + across[-1]) / 2 == pytest.approx(240.0)
    between = {round((left + right) / 2, 6): bond for bond, (left, right) in enumerate(pairwise(across), start=1)}
    for series in "by":
        upright = [shape for shape in shapes if isinstance(shape, Stroke) and shape.ink == Ion(series) and shape.x1 == shape.x2]
        assert sorted(between[round(stroke.x1, 6)] for stroke in upright) == spectrum.bonds(series).tolist()
        assert all((stroke.y2 > stroke.y1) == (series == "b") for stroke in upright)
    modified = {shape.text for shape in shapes if isinstance(shape, Label) and shape.ink == "mark" and not shape.is_bold}
    assert modified == {"Acetyl", "Phospho", "Oxidation"}


@pytest.mark.parametrize("length", [1, 60, 3000])
def test_fragment_ladder_fits_into_the_given_width(length) -> None:
    row = {**ROW, "sequence": "K" * length, "modification_positions": [], "modification_names": [], "modification_masses": []}
    shapes: list[Shape] = draw_ladder(annotate_match(row, synthetic_peaks(), SETTINGS), 0.0, 0.0, 300.0, 8.0)
    across = [x for shape in shapes for x in ((shape.x,) if isinstance(shape, Label) else (shape.x1, shape.x2))]  # type: ignore[union-attr]
    assert min(across) >= 0 and max(across) <= 300 and all(shape.size > 0 for shape in shapes if isinstance(shape, Label))


def mirrored(spectrum: AnnotatedSpectrum) -> MirroredSpectra:
    lower = Peaks(np.array([200.0, 400.0, 1500.0]), np.array([1.0, 4.0, 2.0]))
    return MirroredSpectra("both", Half("scan 7", spectrum.peaks, spectrum), Half("library", lower), Tolerance(0.5, "Da"), 0.87251)


def test_mirror_figure_draws_the_second_spectrum_downwards(spectrum) -> None:
    spectra = mirrored(spectrum)
    figure = mirror_figure(spectra)
    (clip,) = clips(lay_out(figure))
    (base,) = {float(y) for shape in clip.shapes if isinstance(shape, Sticks) for y in shape.y1}
    assert base == pytest.approx(clip.y + clip.height / 2)
    hanging = [shape for shape in clip.shapes if isinstance(shape, Sticks) and shape.y2.max() > base]
    assert sum(len(shape.x) for shape in hanging) == 3
    tallest = max(base - shape.y2.min() for shape in clip.shapes if isinstance(shape, Sticks))
    assert max(shape.y2.max() for shape in hanging) - base == pytest.approx(tallest)
    texts = [shape.text for shape in clip.shapes if isinstance(shape, Label)]
    assert {"cosine 0.873", "scan 7", "library"} <= set(texts)
    written = svg(lay_out(figure)).decode()
    assert ">100<" in written and ">-100<" not in written


def test_mirror_figure_peaks_of_both_halves_can_be_picked(spectrum) -> None:
    spectra = mirrored(spectrum)
    for mark in mirror_figure(spectra).panels[0].marks:
        for row, target in enumerate(mark.targets.tolist() if isinstance(mark, Spikes) else ()):
            half, peak = mirrored_peak(target)
            assert mark.x[row] == spectra.halves[half].peaks.mz[peak] and (mark.y[row] < 0) == bool(half)


def test_spectrum_figure_picks_nearest_peak_then_matching_height() -> None:
    close = Peaks(np.array([100.0, 102.0, 300.0]), np.array([10.0, 100.0, 50.0]))
    half = Half("one", close)
    pick = mirror_figure(MirroredSpectra("", half, half, Tolerance(0.1, "Da"))).panels[0].pick
    assert pick is not None
    targets = {(100.1, 5.0): 0, (100.5, 80.0): 1, (299.0, 20.0): 2, (101.4, -50.0): ~1, (299.0, -1.0): ~2}
    for (x, y), target in targets.items():
        picked = pick(x, y, 0.5, 0.5)
        assert picked is not None and picked.target == target, (x, y)
    assert pick(200.0, 5.0, 0.5, 0.5) is None and pick(304.0, 5.0, 0.5, 0.5) is None


def test_mirror_figure_shortens_long_spectrum_names(spectrum) -> None:
    spectra = mirrored(spectrum)
    long = replace(spectra, upper=replace(spectra.upper, name="x" * 500))
    labels = {shape.text: shape for clip in clips(lay_out(mirror_figure(long))) for shape in clip.shapes if isinstance(shape, Label)}
    (name,) = (shape for text, shape in labels.items() if text.startswith("xxx"))
    assert name.text.endswith("…") and name.x + 0.56 * 8 * len(name.text) < labels["cosine 0.873"].x - 0.56 * 8 * 12


def test_peak_description_names_ion_and_mass_errors(spectrum) -> None:
    match = int(np.argmax(spectrum.relative[spectrum.matches.peak]))
    text = peak_text(spectrum, int(spectrum.matches.peak[match]))
    assert spectrum.labels[match] in text and "(100.0 %)" in text and f"{spectrum.matches.error_ppm[match]:.2f} ppm" in text
    unexplained = next(peak for peak in range(len(spectrum.peaks.mz)) if peak not in spectrum.match_of_peak)
    assert peak_text(spectrum, unexplained).endswith("not explained")


def test_spectrum_figure_shows_hostile_titles_as_text(spectrum) -> None:
    peptide = replace(spectrum.peptidoform, modifications=(spectrum.peptidoform.modifications[0]._replace(name="<b>&x"),))
    written = svg(lay_out(spectrum_figure(replace(spectrum, title=HOSTILE, peptidoform=peptide))))
    root = etree.fromstring(written)
    texts = ["".join(node.itertext()) for node in root.iter("{*}text")]
    assert not list(root.iter("{*}script")) and any("</text><script>" in text for text in texts) and "<b>&x" in texts
    half = replace(mirrored(spectrum), title=HOSTILE, upper=Half(HOSTILE, spectrum.peaks))
    root = etree.fromstring(svg(lay_out(mirror_figure(half))))
    assert sum("<script>" in "".join(node.itertext()) for node in root.iter("{*}text")) == 2 and not list(root.iter("{*}script"))


WITHOUT_QT = """
import sys
sys.modules["PySide6"] = sys.modules["pyqtgraph"] = None
from tests.engine.views.test_spectrum_figures import *
from pathlib import Path
from proteoscope.engine.views.figure_files import write_figure
spectrum = annotate_match(ROW, synthetic_peaks(), SETTINGS, "scan 7")
for name, figure in (("spectrum", spectrum_figure(spectrum)), ("mirror", mirror_figure(mirrored(spectrum)))):
    for ending in ("svg", "pdf", "png"):
        write_figure(Path(sys.argv[1], f"{name}.{ending}"), lay_out(figure))
"""


def test_spectrum_figures_are_written_without_qt(tmp_path, spectrum) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_QT, str(tmp_path)], check=True)
    for name in ("spectrum", "mirror"):
        document = pypdfium2.PdfDocument(tmp_path / f"{name}.pdf")
        text = document[0].get_textpage().get_text_bounded()
        assert "m/z" in text and "Relative intensity (%)" in text and ("library" in text) == (name == "mirror")
        document.close()
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    root = etree.parse(tmp_path / "spectrum.svg").getroot()
    strokes = {path.get("stroke") for path in root.iter("{*}path")}
    assert {format_colour(Ion(kind)) for kind in spectrum.kinds} <= strokes
    texts = {"".join(node.itertext()) for node in root.iter("{*}text")}
    assert {"m/z", "Relative intensity (%)", "Error (ppm)", "Phospho"} <= texts and len(texts & set(spectrum.labels)) > 10
    assert "library" in (tmp_path / "mirror.svg").read_text(encoding="utf-8")
