"""Tests of distributions against NumPy, and of the coverage map against a plain string search."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.coverage import cover
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.identification import mass_error_histogram, score_histogram
from proteoscope.engine.views.tables import TableSource
from proteoscope.engine.views.ticks import nice_ticks
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.plots.histogram import HistogramPlot
from proteoscope.gui.theme import Theme
from tests.engine.identification_tables import identification
from tests.engine.views.test_coverage import PEPTIDES, SEQUENCE
from tests.engine.views.test_histograms import IDENTIFICATION, opened
from tests.gui.plots.test_coverage_map import place_of


@pytest.fixture
def source(tmp_path: Path) -> Iterator[TableSource]:
    yield from opened(IDENTIFICATION, tmp_path)


def test_histogram_without_identifications_shows_a_message(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    for source in opened(identification(n_spectra=0), tmp_path):
        for histogram in (score_histogram(source, 0.01), mass_error_histogram(source, 0.01)):
            assert histogram.is_empty
            assert histogram.summary == "No PSM is accepted."
    plot = HistogramPlot("Scores")
    qtbot.addWidget(plot)
    plot.show_histogram(histogram)
    assert plot.histogram is None


def test_histogram_tooltips_describe_bins_and_figure_is_exported(source: TableSource, qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    plot = HistogramPlot("Score distribution")
    qtbot.addWidget(plot)
    plot.resize(600, 400)
    plot.show()
    histogram = score_histogram(source, 0.01)
    plot.show_histogram(histogram)
    plot.grab()
    for i in (0, 20, 59):
        middle = (histogram.edges[i] + histogram.edges[i + 1]) / 2
        text = plot.text_at(QPointF(plot.place_of(middle, 0.0).x(), plot.inner().center().y()))
        assert text.endswith(f"Targets: {histogram.series[0][1][i]}, Decoys: {histogram.series[1][1][i]}")
    assert plot.text_at(QPointF(1, 1)) == ""
    n_targets = sum(row["rank"] == 1 and not row["is_decoy"] for row in IDENTIFICATION.psms.to_pylist())
    assert f"{n_targets} targets" in plot.accessibleDescription()
    plot.export_action.write(tmp_path / "scores.svg")
    svg = (tmp_path / "scores.svg").read_text()
    assert ">Score distribution<" in svg
    assert ">Decoys<" in svg
    assert "1 % FDR" in svg


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_axis_ticks_are_round_and_in_range(low: float, width: float, n_wanted: int) -> None:
    high = low + width
    ticks = nice_ticks(low, high, n_wanted)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else None
    assert len(ticks) <= n_wanted + 1
    slack = width * 1e-6
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    if step is not None:
        leading = step / 10 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(leading - round_one) for round_one in (1, 2, 5, 10)) < 1e-3
        texts = Axis(low, high).tick_texts(ticks)
        assert len(set(texts)) == len(texts), "ticks have distinct numbers"


def test_axis_tick_labels_have_the_decimals_of_the_step() -> None:
    axis = Axis(0.0, 1.0)
    assert axis.tick_texts([0.0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert axis.tick_texts([-0.5, -2e-17, 0.5]) == ["-0.5", "0.0", "0.5"]
    assert axis.tick_texts([722.325, 722.3251]) == ["722.3250", "722.3251"] and axis.tick_texts([0.0, 2000.0]) == ["0", "2,000"]


@pytest.fixture
def coverage_map(qtbot: QtBot, theme: Theme) -> CoverageMap:
    widget = CoverageMap()
    qtbot.addWidget(widget)
    widget.resize(760, 420)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_coverage(cover("P1: a protein", SEQUENCE, PEPTIDES))
    return widget


def test_click_in_coverage_map_selects_the_peptide(coverage_map: CoverageMap, qtbot: QtBot) -> None:
    assert coverage_map.coverage is not None
    for peptide in coverage_map.coverage.peptides[:3]:
        at = place_of(coverage_map, peptide).center()
        with qtbot.waitSignal(coverage_map.peptideChosen) as signal:
            qtbot.mouseClick(coverage_map.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
        assert signal.args == [peptide.row]
        text = coverage_map.text_at(QPointF(at.toPoint()))
        assert peptide.peptide in text
        assert f"residues {peptide.start + 1} to {peptide.end}" in text
    assert coverage_map.text_at(QPointF(1, 1)) == ""
    qtbot.mouseClick(coverage_map.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert coverage_map.chosen == coverage_map.coverage.peptides[2].row, "a click outside all peptides selects none"


def test_arrow_keys_in_coverage_map_move_between_peptides(coverage_map: CoverageMap, qtbot: QtBot) -> None:
    coverage_map.setFocus()
    chosen: list[int] = []
    coverage_map.peptideChosen.connect(chosen.append)
    for _ in range(3):
        qtbot.keyClick(coverage_map, Qt.Key.Key_Right)
    assert coverage_map.coverage is not None
    assert chosen == [peptide.row for peptide in coverage_map.coverage.peptides[:3]]


def test_coverage_map_highlights_covered_residues(coverage_map: CoverageMap) -> None:
    image = coverage_map.viewport().grab().toImage()
    ratio = image.devicePixelRatio()
    assert coverage_map._sheet is not None
    backgrounds = []
    for place in (4, 60):
        cell = coverage_map._sheet.residue(place)
        backgrounds.append(image.pixelColor(round((cell.left + 1.5) * ratio), round((cell.top + 2) * ratio)).name())
    assert backgrounds[0] != backgrounds[1] == "#ffffff"


def test_exported_coverage_map_has_the_protein_sequence(coverage_map: CoverageMap, tmp_path: Path) -> None:
    coverage_map.export_action.write(tmp_path / "map.svg")
    texts = ["".join(element.itertext()) for element in ElementTree.parse(tmp_path / "map.svg").iter() if element.tag.endswith("text")]
    assert "P1: a protein" in texts
    # Residues of several colours overlap, in rows with a blank after every ten.
    rows = [SEQUENCE[at : at + 60] for at in range(0, len(SEQUENCE), 60)]
    spaced = [" ".join(row[at : at + 10] for at in range(0, len(row), 10)) for row in rows]
    for row in spaced:
        inks = [text.ljust(len(row)) for text in texts if re.fullmatch("".join(f"[{character} ]" for character in row[: len(text)]), text)]
        assert "".join(max(column) for column in zip(*inks, strict=True)) == row


def test_coverage_map_without_protein_shows_a_message(coverage_map: CoverageMap) -> None:
    coverage_map.show_coverage(None, "Choose a protein.")
    assert coverage_map.accessibleDescription() == "Choose a protein."
    assert coverage_map.grab().toImage().width() > 0
