"""Tests of explanation results with real input events, compared with the tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.run_map import EXPLAINED, IDENTIFIED, UNEXPLAINED
from proteoscope.gui.results.explanation_view import ExplanationView
from proteoscope.gui.theme import Theme
from tests.engine.views.cluster_projects import project_with_explanation
from tests.engine.views.result_projects import rows_of
from tests.gui.plots.pictures import place_of_point, point_at
from tests.gui.result_views import click_row, cut_off, opened, overlapping, settle, shown


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_explanation(tmp_path_factory.mktemp("made") / "project").folder


@pytest.fixture
def project(made_once: Path, tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(made_once, tmp_path / "project")))


def view_of(project: Project, qtbot: QtBot) -> ExplanationView:
    view = ExplanationView(search_of_kind("explain"))
    opened(view, project, qtbot)
    return view


@pytest.fixture
def view(project: Project, qtbot: QtBot, theme: Theme) -> Iterator[ExplanationView]:
    widget = view_of(project, qtbot)
    yield widget
    widget.clear()


def point_with(view: ExplanationView, status: int) -> int:
    points = view.spectra.map.points
    assert points is not None
    shown = view.spectra.map
    return next(i for i in range(len(points)) if points.status[i] == status and point_at(shown, place_of_point(shown, i)) == i)


def click_point(view: ExplanationView, point: int, qtbot: QtBot) -> int:
    at = place_of_point(view.spectra.map, point).toPoint()
    QTest.mouseClick(view.spectra.map.canvas.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    settle(view, qtbot)
    assert view.spectra.map.points is not None
    return int(view.spectra.map.points.spectrum[point])


def test_explanation_view_lists_accepted_and_mirrors_the_first(view: ExplanationView, project: Project) -> None:
    accepted = [row for row in rows_of(project, "explained") if row["q_value"] <= 0.01]
    assert 1 < len(accepted) < len(rows_of(project, "explained"))
    assert shown(view.explained, "peptide") == [row["peptide"] for row in accepted] and view.explained.view.chosen == 0
    n_modified = sum(row["kind"] == "modified" for row in accepted)
    assert view.header.text.startswith(f"{len(accepted)} spectra explained ({n_modified} modified), ") and "at 1 % FDR" in view.header.text
    assert "spectra of identify-0001" in view.header.facts
    spectra, stored = view.mirror.spectra, rows_of(project, "spectra")
    assert spectra is not None and spectra.lower is not None and spectra.similarity == pytest.approx(accepted[0]["similarity"])
    assert spectra.upper.peaks.mz.tolist() == stored[accepted[0]["spectrum"]]["mz"]
    assert spectra.lower.peaks.mz.tolist() == stored[accepted[0]["nearest"]]["mz"]
    assert accepted[0]["peptide"] in spectra.lower.name and accepted[0]["peptide"] in view.mirror.title
    # The identified half has the ions of its peptide by name.
    assert spectra.lower.ions is not None and len(spectra.lower.ions.matches) > 4 and spectra.upper.ions is None
    assert cut_off(view) == [] and overlapping(view.filters) == []


def test_selected_explained_spectrum_is_marked_on_the_run_map(view: ExplanationView, project: Project, qtbot: QtBot) -> None:
    for position in (0, 2):
        click_row(view.explained, position, qtbot)
        settle(view, qtbot)
        points, marked = view.spectra.map.points, view.spectra.map.marked
        assert points is not None and marked is not None and points.spectrum[marked] == rows_of(project, "explained")[position]["spectrum"]


@pytest.mark.parametrize(("status", "state"), [(EXPLAINED, "explained"), (UNEXPLAINED, "unexplained"), (IDENTIFIED, "identified")])
def test_click_on_run_map_selects_the_spectrum_in_the_list(
    view: ExplanationView, project: Project, qtbot: QtBot, status: int, state: str
) -> None:
    click_row(view.explained, 3, qtbot)
    settle(view, qtbot)
    of_row = view.mirror.title
    spectrum = click_point(view, point_with(view, status), qtbot)
    table, stored = view.spectra.panel.table, rows_of(project, "spectra")
    assert view.tables.currentWidget() is view.spectra.panel and table.view.chosen == spectrum
    of_map = rows_of(project, "map")[spectrum]
    assert (shown(table, "state")[spectrum], shown(table, "peptide")[spectrum]) == (state, of_map["peptide"])
    spectra = view.mirror.spectra
    assert spectra is not None and spectra.upper.peaks.mz.tolist() == stored[spectrum]["mz"]
    if status == EXPLAINED:
        row = next(row for row in rows_of(project, "explained") if row["spectrum"] == spectrum)
        assert spectra.lower is not None and spectra.lower.peaks.mz.tolist() == stored[row["nearest"]]["mz"]
        assert view.mirror.title.startswith(row["spectrum_id"])
    else:
        assert spectra.lower is None and (spectra.upper.ions is not None) == (status == IDENTIFIED)
        assert ("identified as " if status == IDENTIFIED else "unexplained") in view.mirror.title
    # The previous row is shown again with its table.
    view.tables.setCurrentWidget(view.explained)
    settle(view, qtbot)
    assert view.mirror.title == of_row and view.explained.view.chosen == 3


def test_explanation_filters_equal_a_plain_loop(view: ExplanationView, project: Project, qtbot: QtBot) -> None:
    view.filters.q_value.setValue(1.0)
    for kind, text in (("modified", ""), (None, "scan=2"), ("same", "a")):
        view.filters.kind.setCurrentIndex(view.filters.kind.findData(kind))
        view.filters.text.setText(text)
        view.filters.text.returnPressed.emit()
        settle(view, qtbot)
        expected = [
            row["spectrum"]
            for row in rows_of(project, "explained")
            if kind in (None, row["kind"]) and any(text in row[name].lower() for name in ("peptide", "spectrum_id", "nearest_spectrum"))
        ]
        assert [rows_of(project, "explained")[row]["spectrum"] for row in view.explained.model.rows.tolist()] == expected
    view.filters.reset()
    settle(view, qtbot)
    accepted = sum(row["q_value"] <= 0.01 for row in rows_of(project, "explained"))
    assert view.filters.q_value.value() == 0.01 and len(view.explained.model.rows) == accepted


def test_explanation_view_with_an_empty_list_shows_no_spectrum(view: ExplanationView, qtbot: QtBot) -> None:
    view.filters.text.setText("no such peptide")
    view.filters.text.returnPressed.emit()
    settle(view, qtbot)
    assert view.mirror.spectra is None and view.mirror.text.startswith("No match is shown")
    assert view.spectra.map.marked is None, "the map marks the shown spectrum"
    view.tables.setCurrentWidget(view.spectra.panel)
    settle(view, qtbot)
    assert view.mirror.spectra is not None


def test_explanation_table_and_map_need_no_stored_peaks(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    project = project_with_explanation(tmp_path / "bare", with_spectra=False)
    view = view_of(project, qtbot)
    assert "are not stored" in view.mirror.text and view.spectra.map.points is not None and len(view.explained.model.rows) > 1
    view.clear()


def test_explanation_is_shown_if_its_identification_is_deleted(project: Project, qtbot: QtBot, theme: Theme) -> None:
    """Check that they come from the spectra stored by the explanation, and that the missing spectrum is explained."""
    expected = rows_of(project, "map")
    project.delete_run("identify-0001")
    project.remove_deleted(["identify-0001"])
    view = view_of(Project.open(project.folder), qtbot)
    assert "identify-0001" in view.mirror.text and view.spectra.map.points is not None
    view.tables.setCurrentWidget(view.spectra.panel)
    settle(view, qtbot)
    table = view.spectra.panel.table
    assert table.total == len(expected) == len(view.spectra.map.points)
    assert shown(table, "peptide")[:100] == [row["peptide"] for row in expected[:100]]
    assert shown(table, "retention_time")[:100] == [row["retention_time"] for row in expected[:100]]
    assert set(shown(table, "n_peaks")[:100]) == {None} and "identify-0001" in view.mirror.text
    view.figures.setCurrentWidget(view.spectra.chromatogram)
    settle(view, qtbot)
    view.clear()


def test_explanation_table_is_shown_without_a_map(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_explanation(tmp_path / "bare", with_map=False), qtbot)
    assert "are not stored" in view.spectra.map.text and view.mirror.spectra is not None
    view.clear()


def test_explanation_without_a_source_run_is_reported(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_explanation(tmp_path / "bare", with_record=False), qtbot)
    assert "run" in view.text and view.run is None
    view.clear()


def test_explanation_with_a_damaged_map_is_reported(project: Project, qtbot: QtBot, theme: Theme) -> None:
    path = project.table("map")
    path.write_bytes(bytes(path.stat().st_size))
    view = view_of(Project.open(project.folder), qtbot)
    assert str(project.folder) in view.text
    view.clear()
