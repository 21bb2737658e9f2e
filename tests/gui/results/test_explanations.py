"""The results of an explanation, driven as a person would, and compared with the tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from engine.project import Project
from engine.searches import search_of_kind
from engine.views.run_map import EXPLAINED, IDENTIFIED, UNEXPLAINED
from gui.results.explanation_view import ExplanationView
from gui.theme import Theme
from tests.engine.views.cluster_projects import project_with_explanation
from tests.engine.views.result_projects import rows_of
from tests.gui.result_views import click_row, cut_off, opened, overlapping, settle, shown


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_with_explanation(tmp_path / "project")


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
    points = view.map.points
    assert points is not None
    canvas = view.map.canvas
    return next(i for i in range(len(points)) if points.status[i] == status and canvas.point_at(canvas.place_of(i)) == i)


def click_point(view: ExplanationView, point: int, qtbot: QtBot) -> int:
    at = view.map.canvas.place_of(point).toPoint()
    QTest.mouseClick(view.map.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    settle(view, qtbot)
    assert view.map.points is not None
    return int(view.map.points.spectrum[point])


def test_what_is_accepted_is_shown_and_the_first_is_compared_with_the_identified_one(view: ExplanationView, project: Project) -> None:
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


def test_a_chosen_row_is_marked_on_the_map(view: ExplanationView, project: Project, qtbot: QtBot) -> None:
    for position in (0, 2):
        click_row(view.explained, position, qtbot)
        settle(view, qtbot)
        points, marked = view.map.points, view.map.canvas.marked
        assert points is not None and marked is not None and points.spectrum[marked] == rows_of(project, "explained")[position]["spectrum"]


def test_a_click_on_an_explained_point_chooses_its_row(view: ExplanationView, project: Project, qtbot: QtBot) -> None:
    view.explained.view.choose(3)
    settle(view, qtbot)
    spectrum = click_point(view, point_with(view, EXPLAINED), qtbot)
    row = view.explained.view.chosen
    assert row is not None and rows_of(project, "explained")[row]["spectrum"] == spectrum
    assert view.mirror.title.startswith(rows_of(project, "explained")[row]["spectrum_id"])


@pytest.mark.parametrize(("status", "word"), [(UNEXPLAINED, "unexplained"), (IDENTIFIED, "identified as ")])
def test_a_click_on_another_point_shows_its_spectrum_alone(
    view: ExplanationView, project: Project, qtbot: QtBot, status: int, word: str
) -> None:
    of_rows = {row["spectrum"] for row in rows_of(project, "explained")}
    points = view.map.points
    assert points is not None
    canvas = view.map.canvas
    point = next(
        i
        for i in range(len(points))
        if points.status[i] == status and int(points.spectrum[i]) not in of_rows and canvas.point_at(canvas.place_of(i)) == i
    )
    spectrum = click_point(view, point, qtbot)
    spectra = view.mirror.spectra
    assert spectra is not None and spectra.lower is None and word in view.mirror.title
    assert spectra.upper.peaks.mz.tolist() == rows_of(project, "spectra")[spectrum]["mz"]
    assert (spectra.upper.ions is not None) == (status == IDENTIFIED)
    assert view.explained.view.chosen is None and not view.explained.view.selectionModel().hasSelection()
    # The row of before can be chosen again.
    click_row(view.explained, 0, qtbot)
    settle(view, qtbot)
    assert view.mirror.spectra is not None and view.mirror.spectra.lower is not None


def test_the_filter_shows_what_a_plain_loop_finds(view: ExplanationView, project: Project, qtbot: QtBot) -> None:
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


def test_without_stored_peaks_the_table_and_the_map_are_shown_and_why_there_is_no_spectrum(
    tmp_path: Path, qtbot: QtBot, theme: Theme
) -> None:
    view = view_of(project_with_explanation(tmp_path / "bare", with_spectra=False), qtbot)
    assert "no stored peaks" in view.mirror.text and view.map.points is not None and len(view.explained.model.rows) > 1
    view.clear()


def test_without_a_map_the_table_is_shown_and_that_there_is_none(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_explanation(tmp_path / "bare", with_map=False), qtbot)
    assert view.map.text == "This run has no map." and view.mirror.spectra is not None
    view.clear()


def test_a_run_that_does_not_tell_what_it_explained_is_said(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    view = view_of(project_with_explanation(tmp_path / "bare", with_record=False), qtbot)
    assert "run" in view.text and view.run is None
    view.clear()


def test_a_damaged_map_is_said_and_nothing_fails(project: Project, qtbot: QtBot, theme: Theme) -> None:
    path = project.table("map")
    path.write_bytes(bytes(path.stat().st_size))
    view = view_of(Project.open(project.folder), qtbot)
    assert str(project.folder) in view.text
    view.clear()
