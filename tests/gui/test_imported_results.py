"""Tests of results of another search engine in the window: dropped, imported with their spectra, and viewed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.window import MainWindow
from tests.engine.imported.small_results import TRUTH, write_database, write_results, write_spectra
from tests.gui.result_views import click_row, settle, shown
from tests.gui.test_window import click, drop


@pytest.fixture
def imported(window: MainWindow, tmp_path: Path, qtbot: QtBot, request: pytest.FixtureRequest) -> IdentificationView:
    """View after results (mzIdentML by default) and their spectra were dropped and Run was pressed, without a database."""
    drop(window, write_results(getattr(request, "param", "mzidentml"), tmp_path))
    page = window.searches["import"]
    qtbot.waitUntil(lambda: page.made_form is not None and window.pages.currentWidget() is page.made_form)
    form = page.form
    assert not form.run_button.isEnabled()
    drop(window, write_spectra(tmp_path / "run.mgf"))
    qtbot.waitUntil(form.run_button.isEnabled)
    form.set_project_folder(tmp_path / "project")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        click(form.run_button)
    assert finished.args[0].state == "done", finished.args[0].error_report
    view = page.results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is view)
    settle(view, qtbot)
    assert isinstance(view, IdentificationView)
    return view


def test_dropped_results_are_imported_with_their_scores(imported: IdentificationView) -> None:
    accepted = [psm for psm in TRUTH if psm.q_value <= 0.01]
    assert sorted(shown(imported.psms, "peptide")) == sorted(psm.text for psm in accepted)
    assert sorted(shown(imported.psms, "score_e_value")) == sorted(psm.e_value for psm in accepted)
    names = {column.name for column in imported.psms.model.columns}
    assert "score_e_value" in names and "score_xcorr" not in names  # The file has no XCorr.
    assert "q-values of PSMs: those of the file" in imported.header.message
    assert imported.spectrum.isVisible()


@pytest.mark.parametrize("imported", ["dia-nn"], indirect=True)
def test_missing_coverage_of_imported_results_is_explained(imported: IdentificationView, qtbot: QtBot) -> None:
    click_row(imported.proteins, 0, qtbot)
    settle(imported, qtbot)
    assert "is unknown. Import the results with its database" in imported.coverage.text


def test_import_form_accepts_results_with_or_without_a_database(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    drop(window, write_results("sage", tmp_path))
    page = window.searches["import"]
    qtbot.waitUntil(lambda: page.made_form is not None and not page.form.inputs["results"].is_empty)
    drop(window, write_database(tmp_path / "proteins.fasta"), write_spectra(tmp_path / "run.mgf"))
    qtbot.waitUntil(lambda: not page.form.inputs["database"].is_empty and not page.form.inputs["spectra"].is_empty)
    qtbot.waitUntil(page.form.run_button.isEnabled)
    page.form.file_lists["database"].clear()
    qtbot.waitUntil(page.form.run_button.isEnabled)


@pytest.mark.parametrize("imported", ["peptideshaker"], indirect=True)
def test_header_of_imported_results_reports_missing_q_values(imported: IdentificationView) -> None:
    assert "4 PSMs" in imported.header.text and "without q-values" in imported.header.text
    assert "FDR" not in imported.header.text
