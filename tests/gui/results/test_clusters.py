"""Tests of clustering results with real input events, compared with the tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.results.cluster_view import ClusterView
from proteoscope.gui.theme import Theme
from tests.engine.views.cluster_projects import SIZES, project_with_clusters
from tests.engine.views.result_projects import rows_of
from tests.gui.result_views import SharedView, click_row, cut_off, opened, overlapping, settle, shown


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_clusters(tmp_path_factory.mktemp("made") / "project").folder


@pytest.fixture
def project(made_once: Path, tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(made_once, tmp_path / "project")))


def view_of(project: Project, qtbot: QtBot) -> ClusterView:
    view = ClusterView(search_of_kind("cluster"))
    opened(view, project, qtbot)
    return view


@pytest.fixture(scope="module")
def cached_view(made_once: Path, request: pytest.FixtureRequest) -> Iterator[SharedView[ClusterView]]:
    opened_view = SharedView(ClusterView(search_of_kind("cluster")), Project.open(made_once), request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[ClusterView], qtbot: QtBot, theme: Theme) -> ClusterView:
    return cached_view.as_opened(qtbot)


@pytest.fixture
def own_view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[ClusterView]:
    """View for a test that changes what other tests would see."""
    widget = view_of(project, qtbot)
    yield widget
    widget.clear()


def test_cluster_view_first_shows_the_largest_cluster(view: ClusterView, project: Project) -> None:
    n_clusters, n_clustered = sum(size > 1 for size in SIZES), sum(size for size in SIZES if size > 1)
    share = 100 * n_clustered / sum(SIZES)
    assert view.header.text == f"{n_clusters} clusters with {n_clustered} spectra ({share:.1f} %), {sum(SIZES) - n_clustered} unclustered"
    assert "hierarchical, average linkage up to a distance of 0.3" in view.header.facts
    assert shown(view.clusters, "n_members") == [size for size in SIZES if size > 1] and view.clusters.view.chosen == 0
    assert view.members.scope_text == "of cluster 1"
    assert shown(view.members, "title") == [row["title"] for row in rows_of(project, "members") if row["cluster"] == 1]
    spectra = view.mirror.spectra
    assert spectra is not None and spectra.lower is not None and spectra.similarity == 1.0
    stored, consensus = rows_of(project, "spectra")[0], rows_of(project, "consensus")[0]
    assert spectra.upper.peaks.mz.tolist() == stored["mz"] and spectra.lower.peaks.mz.tolist() == consensus["mz"]
    assert spectra.upper.name == "scan=100" and "consensus of cluster 1 (6 spectra)" in spectra.lower.name
    assert len(spectra.shared) >= 24 and cut_off(view) == [] and overlapping(view.filters) == []


def test_cluster_view_mirrors_selected_spectrum_with_consensus(view: ClusterView, project: Project, qtbot: QtBot) -> None:
    click_row(view.members, 3, qtbot)
    settle(view, qtbot)
    assert view.mirror.spectra is not None and view.mirror.spectra.upper.name == "scan=103" and view.mirror.spectra.similarity == 0.97
    click_row(view.clusters, 2, qtbot)
    settle(view, qtbot)
    assert view.members.scope_text == "of cluster 3" and len(view.members.model.rows) == SIZES[2]
    spectra = view.mirror.spectra
    assert spectra is not None and spectra.lower is not None and spectra.upper.name == "scan=300"
    assert np.array_equal(spectra.lower.peaks.mz, rows_of(project, "consensus")[2]["mz"])


def test_spectrum_selected_among_all_spectra_selects_its_cluster(view: ClusterView, qtbot: QtBot) -> None:
    view.members.all_button.click()
    settle(view, qtbot)
    assert len(view.members.model.rows) == sum(SIZES) and "cluster" not in view.members.view.hidden_columns()
    at = shown(view.members, "title").index("scan=201")
    view.members.view.choose(at)
    settle(view, qtbot)
    assert view.clusters.view.chosen == 1 and len(view.members.model.rows) == sum(SIZES)
    assert view.mirror.spectra is not None and "in cluster 2 of 4 spectra" in view.mirror.title
    view.members.view.choose(sum(SIZES) - 1)
    settle(view, qtbot)
    alone = view.mirror.spectra
    assert alone is not None and alone.lower is None and alone.similarity is None and "not clustered" in view.mirror.title


@pytest.mark.parametrize(
    ("text", "least", "low", "high"),
    [("scan=20", 1, None, None), ("SCAN=301", 1, None, None), ("", 3, None, None), ("", 1, 500.0, 800.0), ("10", 2, 400.0, None)],
)
def test_cluster_filters_equal_a_plain_loop(
    view: ClusterView, project: Project, qtbot: QtBot, text: str, least: int, low: float | None, high: float | None
) -> None:
    view.members.all_button.click()
    view.filters.text.setText(text)
    view.filters.minimum_spectra.setValue(least)
    for box, value in ((view.filters.lowest_mz, low), (view.filters.highest_mz, high)):
        if value is not None:
            box.setValue(value)
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    members = rows_of(project, "members")

    def passes(row: dict[str, Any]) -> bool:
        in_range = (low is None or row["precursor_mz"] >= low) and (high is None or row["precursor_mz"] <= high)
        return row["n_members"] >= least and in_range

    named = [row for row in members if text.lower() in row["title"].lower()]
    with_text = {row["cluster"] for row in named}
    assert shown(view.members, "title") == [row["title"] for row in named if passes(row)]
    expected = [row["cluster"] for row in rows_of(project, "clusters") if row["cluster"] in with_text and passes(row)]
    assert shown(view.clusters, "cluster") == expected
    view.filters.reset()
    settle(view, qtbot)
    assert len(view.clusters.model.rows) == view.clusters.total


def test_cluster_labels_are_shown_if_present(tmp_path: Path, qtbot: QtBot, theme: Theme, view: ClusterView) -> None:
    assert {"label", "label_share"} <= set(view.clusters.view.hidden_columns())
    labelled = view_of(project_with_clusters(tmp_path / "labelled", with_labels=True), qtbot)
    assert not {"label", "label_share"} & set(labelled.clusters.view.hidden_columns())
    assert shown(labelled.clusters, "label")[0] == "PEPTIDE1"
    labelled.clear()


def test_cluster_view_lists_all_spectra_if_there_are_no_clusters(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_clusters(tmp_path / "alone", sizes=(1, 1, 1)), qtbot)
    assert view.header.text == "0 clusters with 0 spectra (0.0 %), 3 unclustered"
    assert view._empty_reason(view.clusters) == "The search found no clusters." and len(view.members.model.rows) == 3
    assert view.mirror.spectra is not None and view.mirror.spectra.lower is None
    view.clear()


def test_cluster_tables_are_shown_without_stored_peaks(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_clusters(tmp_path / "bare", with_spectra=False), qtbot)
    assert len(view.clusters.model.rows) == 4 and view.mirror.text == "The peaks of the run 'cluster-0001' are not stored."
    view.clear()


@pytest.mark.parametrize("name", ["clusters", "members", "consensus", "spectra"])
def test_cluster_view_reports_a_damaged_table(project: Project, qtbot: QtBot, theme: Theme, name: str) -> None:
    path = project.table(name)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(bytes(content))
    view = view_of(Project.open(project.folder), qtbot)
    # Result tables are compared with their digests; damage in large ones is found when they are read.
    said = view.text or view.mirror.text
    assert str(project.folder) in said
    view.clear()


def test_cluster_view_remembers_sizes_and_columns(own_view: ClusterView, project: Project, qtbot: QtBot) -> None:
    own_view.clusters.view.hide_columns(["charge"])
    own_view.clusters.view.columnsChanged.emit()
    own_view._splitters["down"].setSizes([300, 500])
    sizes = own_view._splitters["down"].sizes()
    again = ClusterView(search_of_kind("cluster"))
    qtbot.addWidget(again)
    again.resize(own_view.size())
    again.show()
    again.restore_state(own_view.state())
    again.show_run(project, None)
    settle(again, qtbot)
    assert again.clusters.hidden_columns() == ["charge"] and again._splitters["down"].sizes() == sizes
    again.clear()


def test_cleared_cluster_view_shows_no_results(own_view: ClusterView) -> None:
    own_view.clear()
    assert own_view.text.startswith("No results yet. Run a clustering") and own_view.mirror.spectra is None


def test_mirror_plot_of_a_cluster_shows_the_selected_spectrum(view: ClusterView, qtbot: QtBot) -> None:
    assert view.mirror.spectra is not None and view.mirror.spectra.upper.name == "scan=100"
    view.filters.text.setText("scan=103")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert shown(view.members, "title") == ["scan=103"] and view.mirror.spectra.upper.name == "scan=103"
    view.filters.text.setText("no spectrum is called so")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert view.clusters.view.chosen is None and view.members.scope_text == ""
    assert view.members.view.chosen is None and view.mirror.spectra is None
