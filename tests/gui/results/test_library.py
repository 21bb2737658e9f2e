"""Tests of the library search view: matches, the selected match above its library entry, and mass differences."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.library_matches import LibraryOverview
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import SHARED, SHIFTED, UNMATCHED
from proteoscope.gui.results.library_view import LibraryView
from tests.engine.views.library_projects import project_with_library_search
from tests.gui.result_views import click_row, corner_texts, opened


@pytest.fixture
def view(tmp_path, monkeypatch, qtbot, theme):
    widget = LibraryView(search_of_kind("library"))
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    opened(widget, project_with_library_search(tmp_path, tmp_path / "p"), qtbot)
    yield widget
    widget.clear()


def test_library_match_is_mirrored_with_entry_and_shifted_peaks(view, qtbot):
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 2)
    qtbot.waitUntil(lambda: any("Compound" in text for text in corner_texts(view.mirror.plot)))
    assert any("spectral entropy" in text for text in corner_texts(view.mirror.plot))
    view.filters.kind.setCurrentIndex(view.filters.kind.findData("shifted"))
    view.filters.kind.activated.emit(view.filters.kind.currentIndex())
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 1)
    click_row(view.matches, 0, qtbot)
    qtbot.waitUntil(lambda: any("4 peaks moved by" in text for text in corner_texts(view.mirror.plot)))


def test_text_filter_of_library_view_applies_to_all_tabs(view, qtbot):
    peptides = view.panels["peptides"]
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 2)
    qtbot.waitUntil(lambda: not view.is_busy)
    n_peptides = peptides.model.rowCount()
    assert n_peptides == peptides.total
    view.filters.text.setFocus()
    qtbot.keyClicks(view.filters.text, "no such peptide")
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 0 and not view.is_busy)
    assert {name: panel.model.rowCount() for name, panel in view.panels.items()} == dict.fromkeys(view.panels, 0)
    view.filters.text.clear()
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 2 and peptides.model.rowCount() == n_peptides)
    assert "q-value" in view.tables.tabToolTip(view.tables.indexOf(peptides))


def test_library_header_counts_at_5_percent_if_none_at_1_percent(view, qtbot):
    qtbot.waitUntil(lambda: view.matches.model.rowCount() == 2)
    qtbot.waitUntil(lambda: "without error rates" in view.header.text)
    counts = {"matches": 0, "shifted": 0, "names": 0, "unrated": 0, "at_5_percent": 103}
    view._show_overview(LibraryOverview(counts, Histogram("", "", "", np.zeros(2), (), None, ""), has_error_rates=True))
    assert "0 spectra matched (0 at 1 % FDR; 103 at 5 % FDR)" in view.header.text


def test_mirrored_peaks_match_without_shift_before_with_shift():
    def half(*mz):
        return Half("", Peaks(np.array(mz, np.float64), np.ones(len(mz))))

    mirrored = MirroredSpectra("", half(100.0, 216.0, 300.0), half(100.0, 200.0, 284.0, 400.0), Tolerance(0.01, "Da"), shift=16.0)
    upper, lower = mirrored.shown
    assert upper.kinds.tolist() == [SHARED, SHIFTED, SHIFTED]
    assert lower.kinds.tolist() == [SHARED, SHIFTED, SHIFTED, UNMATCHED]
    assert mirrored.n_moved == 2 and mirrored.partner(0, 1) == 1
