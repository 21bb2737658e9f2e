"""Tests of the page of modification sites with real input events, compared with the tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.finished_run import open_run
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.sites_page import SitesPage
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results
from tests.engine.views.site_projects import project_with_sites
from tests.gui.result_views import click_row, corner_texts, cut_off, opened, overlapping, place_of, settle, shown, wait_until_fitting
from tests.gui.x_events import Hand


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[IdentificationView]:
    view = IdentificationView()
    yield view
    view.clear()


def show_page(view: IdentificationView, qtbot: QtBot) -> SitesPage:
    assert view.sites is not None
    view.lists.setCurrentWidget(view.sites)
    settle(view, qtbot)
    return view.sites


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """Project with sites, which the tests only read, and the rows of its tables."""
    return project_with_sites(tmp_path_factory.mktemp("sites") / "project")


@pytest.fixture
def sites(view: IdentificationView, results: tuple[Any, ...], qtbot: QtBot) -> tuple[SitesPage, Any]:
    opened(view, results[0], qtbot)
    return show_page(view, qtbot), results


def test_selected_site_shows_its_best_spectrum_mirrored(view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot) -> None:
    page, (_, psms, psm_sites, rows) = sites
    page.filters.q_value.setValue(1)
    qtbot.waitUntil(lambda: len(page.sites.model.rows) == len(rows) - 1)  # without the decoy
    settle(view, qtbot)
    position = next(at for at, row in enumerate(rows) if row["has_alternative"])
    click_row(page.sites, position, qtbot)
    qtbot.waitUntil(lambda: view.pane.row == rows[position]["best_psm"])
    settle(view, qtbot)
    psm = rows[position]["best_psm"]
    of_psm = [row for row in psm_sites if row["psm"] == psm]
    assert shown(page.psm_sites, "peptide") == [row["peptide"] for row in of_psm]
    mirrored = view.pane.mirror.spectra
    assert mirrored is not None and mirrored.is_one_spectrum and mirrored.lower is not None
    site = of_psm[0]
    best = max((p, -at) for at, p in zip(site["possible_positions"], site["probabilities"], strict=True) if at != site["position"])
    names = [f"{site['residue']}{site['position']}, prob. {site['site_probability']:.3f}"]
    names.append(f"{psms[psm]['sequence'][-best[1] - 1]}{-best[1]}, prob. {best[0]:.3f}")
    assert corner_texts(view.pane.mirror.plot)[-2:] == names
    view.pane.below_actions["nothing"].trigger()
    settle(view, qtbot)
    spectrum = view.spectrum.spectrum
    assert spectrum is not None and spectrum.site is not None and view.pane.mirror.spectra is None
    assert any(
        text.endswith(f"only with {spectrum.site.site}, not {spectrum.site.alternative}") for text in corner_texts(view.spectrum.plot)
    )


def test_selected_site_is_marked_in_the_protein_coverage(view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot) -> None:
    page, (_, _, _, rows) = sites
    page.filters.q_value.setValue(1)
    qtbot.waitUntil(lambda: len(page.sites.model.rows) == len(rows) - 1)
    settle(view, qtbot)
    with open_run(view._project) as run:  # type: ignore[arg-type]
        groups = run.tables.source("proteins").query("SELECT accessions FROM proteins WHERE NOT is_decoy")["accessions"].to_pylist()
    firsts = {group[0] for group in groups}
    position = next(at for at, row in enumerate(rows) if row["protein"] in firsts)
    click_row(page.sites, position, qtbot)
    qtbot.waitUntil(lambda: view.coverage.residues == (rows[position]["position"] - 1,))
    coverage = view.coverage.coverage
    assert coverage is not None and coverage.accession == rows[position]["protein"]


def test_switching_from_sites_to_psms_shows_the_selected_psm(view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot) -> None:
    page, _ = sites
    assert view.pane.below == "site" and view.pane.row is None
    click_row(page.sites, 0, qtbot)
    qtbot.waitUntil(lambda: view.pane.row is not None)
    settle(view, qtbot)
    of_site = view.pane.row
    view.lists.setCurrentIndex(0)
    settle(view, qtbot)
    assert view.pane.below == "nothing" and view.pane.row == view.psms.view.chosen
    assert view.coverage.coverage is None and "Select a protein" in view.coverage.text
    assert view.spectrum.spectrum is not None and view.spectrum.spectrum.site is None
    assert not view.pane.below_actions["site"].isEnabled()
    view.filters.q_value.setValue(0.5)
    show_page(view, qtbot)
    assert view.pane.row == of_site and view.pane.below_actions["site"].isEnabled()


def test_sites_page_counts_sites_hidden_by_the_filter(view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot) -> None:
    page, (_, _, _, rows) = sites
    accepted = [row for row in rows if not row["is_decoy"] and (row["localisation_q_value"] or 0) <= 0.01]
    assert len(page.sites.model.rows) == len(accepted)
    page.filters.q_value.setValue(1)
    page.filters.decoys.click()
    qtbot.waitUntil(lambda: len(page.sites.model.rows) == len(rows))
    page.filters.text.setText("no such site")
    qtbot.waitUntil(lambda: len(page.sites.model.rows) == 0)
    settle(view, qtbot)
    assert f"None of the {len(rows)} sites pass the filter" in page._empty_reason(page.sites)
    page.filters.reset()
    qtbot.waitUntil(lambda: len(page.sites.model.rows) == len(accepted))


def test_all_button_of_sites_page_lists_sites_of_all_spectra(view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot) -> None:
    page, (_, _, psm_sites, _) = sites
    click_row(page.sites, 0, qtbot)
    qtbot.waitUntil(lambda: page.psm_sites.scope_text != "")
    settle(view, qtbot)
    qtbot.mouseClick(page.psm_sites.all_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(page.psm_sites.model.rows) == len(psm_sites))
    last = len(psm_sites) - 1
    page.psm_sites.view.choose(last)
    qtbot.waitUntil(lambda: view.pane.row == psm_sites[last]["psm"])


def test_sites_page_explains_how_to_get_sites_if_a_run_has_none(view: IdentificationView, qtbot: QtBot, tmp_path: Path) -> None:
    project, _ = project_with_results(tmp_path / "project")
    opened(view, project, qtbot)
    page = show_page(view, qtbot)
    assert "“Variable modifications”" in page._empty_reason(page.sites) and page.psm_sites.isHidden()
    assert not page.filters.isEnabled()


def test_sites_page_works_by_mouse_in_a_small_window(window: MainWindow, results: tuple[Any, ...], hand: Hand, qtbot: QtBot) -> None:
    window.resize(1024, 700)
    window.open_project(results[0].folder)
    view = window.searches["identify"].results
    assert isinstance(view, IdentificationView) and view.sites is not None
    qtbot.waitUntil(lambda: view.run is not None)
    settle(view, qtbot)
    bar = view.lists.tabBar()
    hand.click(bar, bar.tabRect(view.lists.indexOf(view.sites)).center())
    qtbot.waitUntil(view.sites.isVisible)
    settle(view, qtbot)
    hand.click(*place_of(view.sites.sites, 1))
    qtbot.waitUntil(lambda: view.pane.row is not None)
    settle(view, qtbot)
    hand.press("down")
    qtbot.waitUntil(lambda: view.sites is not None and view.sites.sites.view.chosen == view.sites.sites.model.rows[2])
    settle(view, qtbot)
    assert view.pane.below == "site" and cut_off(view.sites) == []


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700), (760, 620)])
def test_sites_page_cuts_off_no_text_at_any_size(
    view: IdentificationView, sites: tuple[SitesPage, Any], qtbot: QtBot, size: tuple[int, int]
) -> None:
    page, _ = sites
    view.resize(*size)
    settle(view, qtbot)
    wait_until_fitting(lambda: overlapping(page.filters) + cut_off(page), qtbot)
