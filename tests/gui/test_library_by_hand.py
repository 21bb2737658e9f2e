"""Tests of a library of peptides and small molecules with X events at 1280 x 800."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from proteoscope.engine.searches import run_search
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.window import MainWindow
from tests.engine.library_search.test_search import compound_entries, files
from tests.gui.result_views import corner_texts, cut_off, overlapping, settle, shown
from tests.gui.test_libraries import shot
from tests.gui.x_events import Hand, x_events_problem

__all__ = ["files"]


@pytest.fixture
def results(files: tuple[Path, Path], window: MainWindow, tmp_path: Path, qtbot: QtBot) -> MainWindow:
    """Results of an open search of peptides, some of them oxidised, and of compounds."""
    if x_events_problem():
        pytest.skip(x_events_problem())
    run, library = files
    entries, spectra = compound_entries(3)
    fields = "InChIKey: WQZGKKKJIJFFOK-GASJEMHNSA-N\nFormula: C6H12O6\nPrecursor_type"
    library.write_text(library.read_text() + "\n" + entries.replace("Precursor_type", fields))
    run.write_text(run.read_text() + "\n" + spectra)
    run_search("library", {"spectra": [run], "library": [library]}, project=tmp_path / "p", device="cpu", precursor_tolerance="200 Da")
    with qtbot.waitActive(window):
        window.move(0, 0)
        window.resize(1280, 800)
        window.activateWindow()
    window.open_project(tmp_path / "p")
    qtbot.waitUntil(lambda: window.results is window.searches["library"].results and not window.results.is_busy)
    settle(window.results, qtbot)
    return window


def click_into_row(hand: Hand, panel: TablePanel, row: int, qtbot: QtBot) -> None:
    """Click on a row once it is visible and no longer moves."""
    view, places = panel.view, list[QPoint]()

    def has_stopped() -> bool:
        places.append(view.viewport().mapToGlobal(QPoint(20, view.visualRect(panel.model.index(row, 0)).center().y())))
        return places[-5:].count(places[-1]) == 5

    qtbot.waitUntil(has_stopped)
    hand.click(view.viewport(), view.viewport().mapFromGlobal(places[-1]))


def test_library_matches_are_filtered_and_viewed_by_x_events(results: MainWindow, qtbot: QtBot) -> None:
    hand, view = Hand(qtbot), results.results

    def corners() -> str:
        return " ".join(corner_texts(view.mirror.plot))

    try:
        qtbot.waitUntil(lambda: view.matches.model.rowCount() > 20)
        assert not overlapping(view.filters) and not cut_off(view.header)
        shot(results, "library-all")
        # Compounds have no FDR: the header counts them, and they are shown with all matches.
        assert "3 more match entries without decoys" in view.header._counts.accessibleName()
        hand.click(view.filters.text)
        hand.type("wqzgkk")
        qtbot.waitUntil(lambda: view.matches.model.rowCount() == 0)
        settle(view, qtbot)
        hand.click(view.filters.q_value, QPoint(20, view.filters.q_value.height() // 2))
        qtbot.waitUntil(view.filters.q_value.hasFocus)
        hand.press("ctrl", "a")
        hand.type("1")
        hand.press("enter")
        qtbot.waitUntil(lambda: view.matches.model.rowCount() == 3)
        settle(view, qtbot)
        assert set(shown(view.matches, "formula")) == {"C6H12O6"} and set(shown(view.matches, "adduct")) == {"[M+H]+"}
        click_into_row(hand, view.matches, 2, qtbot)
        qtbot.waitUntil(lambda: "Compound" in corners())
        shot(results, "library-compound")
        # An oxidised match is above its entry, with shifted peaks distinguished.
        hand.click(view.filters.text)
        hand.press("ctrl", "a")
        hand.type("oxidation")
        qtbot.waitUntil(lambda: view.matches.model.rowCount() > 3)
        settle(view, qtbot)
        assert set(shown(view.matches, "modification")) == {"Oxidation"}
        click_into_row(hand, view.matches, 1, qtbot)
        qtbot.waitUntil(lambda: "peaks moved by" in corners())
        shot(results, "library-shifted")
    finally:
        hand.close()
