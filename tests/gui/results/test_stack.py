"""Tests of stacked hits and whole subjects in the window, with real input events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from Bio import Align
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.sequences.stack import OUTSIDE
from proteoscope.engine.views.stack_colours import SCHEMES, stack_colours
from proteoscope.gui.results.hits_view import HitsView
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.search_projects import project_with_search
from tests.gui.result_views import SharedView, settle, shown


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return project_with_search(tmp_path_factory.mktemp("stacked") / "project", n_queries=2, n_relatives=6, n_unrelated=30)


@pytest.fixture(scope="module")
def cached_view(project: Project, request: pytest.FixtureRequest) -> Iterator[SharedView[HitsView]]:
    opened_view = SharedView(HitsView(), project, request)
    yield opened_view
    opened_view.close()


@pytest.fixture
def view(cached_view: SharedView[HitsView], qtbot: QtBot, theme: Theme) -> HitsView:
    widget = cached_view.as_opened(qtbot)
    widget.tabs.setCurrentWidget(widget.stack)
    settle(widget, qtbot)
    return widget


def test_stacked_alignment_has_the_hits_of_the_table(view: HitsView, qtbot: QtBot) -> None:
    stack = view.stack.found
    assert stack is not None and stack.rows.tolist() == view.hits.model.rows.tolist()
    assert view.stack.title.startswith(f"{len(stack.rows)} hits below Q0")
    view.filters.identity.setValue(60)
    view.filters.filterChanged.emit()
    settle(view, qtbot)
    assert view.stack.found is not None and view.stack.found.rows.tolist() == view.hits.model.rows.tolist()
    assert 0 < len(view.stack.found.rows) < len(stack.rows)


def test_stacked_alignment_has_only_the_selected_hits(view: HitsView, qtbot: QtBot) -> None:
    view.hits.view.choose(1)
    model, selection = view.hits.model, view.hits.view.selectionModel()
    flags = selection.SelectionFlag.Select | selection.SelectionFlag.Rows
    selection.select(model.index(3, 0), flags)
    settle(view, qtbot)
    assert view.stack.found is not None and view.stack.found.rows.tolist() == model.rows[[1, 3]].tolist()
    assert view.stack.plot.marked == 0


def test_stacked_alignment_belongs_to_the_selected_query(view: HitsView, qtbot: QtBot) -> None:
    view.queries.view.choose(1)
    settle(view, qtbot)
    assert view.stack.found is not None and view.stack.found.stack.query_name == "Q1"
    assert view.stack.found.rows.tolist() == view.hits.model.rows.tolist()


def test_click_in_stacked_alignment_selects_the_hit(view: HitsView, qtbot: QtBot) -> None:
    plot = view.stack.plot
    place = next(QPoint(40, y) for y in range(plot.viewport().height()) if (at := plot.place_at(QPointF(250, y))) and at[0] == 3)
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=place + QPoint(0, 4))
    settle(view, qtbot)
    assert view.stack.found is not None and view.hits.view.chosen == view.stack.found.rows[2]
    assert plot.marked == 2


def test_stacked_alignment_tooltip_describes_the_residue(view: HitsView) -> None:
    plot, painted = view.stack.plot, view.stack.plot.painted
    assert painted is not None
    texts = {plot.text_at(QPointF(x, y)) for x in range(0, plot.viewport().width(), 9) for y in range(0, plot.viewport().height(), 9)}
    stack = painted.stack
    expected = {painted.text_at(row, column) for row in range(len(stack)) for column in range(len(painted.columns))}
    assert painted.logo is not None and plot.text_at(QPointF(250, 20)).endswith("%")
    expected |= {painted.logo.text_at(column) for column in range(len(painted.columns))}
    assert len(texts) > 50 and texts - {""} <= expected


def test_stacked_alignment_shows_insertions_on_request(view: HitsView, qtbot: QtBot) -> None:
    stack = view.stack.found.stack if view.stack.found is not None else None
    assert stack is not None and stack.is_opened.any()
    painted = view.stack.plot.painted
    assert painted is not None and len(painted.columns) == len(stack.query_place[stack.query_place >= 0])
    view.stack.insertions.click()
    settle(view, qtbot)
    painted = view.stack.plot.painted
    assert painted is not None and len(painted.columns) == stack.n_columns and painted.follows_insertion is None


def test_stacked_alignment_has_the_colours_of_the_scheme(view: HitsView, qtbot: QtBot) -> None:
    plot, stack = view.stack.plot, view.stack.found
    assert stack is not None
    cells: dict[tuple[int, int], list[QPointF]] = {}
    for x in range(0, plot.viewport().width(), 2):
        for y in range(0, plot.viewport().height(), 2):
            place = plot.place_at(QPointF(x, y))
            if place is not None:
                cells.setdefault(place, []).append(QPointF(x, y))
    # Insertions are hidden unless requested.
    residues = stack.stack.symbols[:, ~stack.stack.is_opened]
    for scheme in [scheme.name for scheme in SCHEMES]:
        view.stack.scheme.setCurrentIndex(view.stack.scheme.findData(scheme))
        settle(view, qtbot)
        assert view.stack.found is not None and view.stack.found.rows.tolist() == stack.rows.tolist()
        image = plot.viewport().grab().toImage()
        ratio = image.devicePixelRatio()
        colours = stack_colours(stack.stack, scheme)[:, ~stack.stack.is_opened]
        n_compared = 0
        for (row, column), points in cells.items():
            if residues[row, column] != OUTSIDE and colours[row, column, 3] and len(points) > 12:
                wanted = tuple(colours[row, column, :3].tolist())
                # Some of them have symbols drawn on top.
                assert any(image.pixelColor((point * ratio).toPoint()).getRgb()[:3] == wanted for point in points), scheme
                n_compared += 1
        assert n_compared > 50 or scheme == "none"


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_stacked_alignment_is_exported_as_a_figure(view: HitsView, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"stack.{ending}"
    view.stack.plot.export_action.write(path)
    assert path.stat().st_size > 2000


def test_stacked_alignment_is_saved_as_a_stockholm_file(view: HitsView, tmp_path: Path, qtbot: QtBot) -> None:
    with qtbot.waitSignal(view.message) as signal:
        view.stack.save(tmp_path / "stack.sto", "stockholm")
    assert signal.args == ["Saved stack.sto."]
    with Align.parse(tmp_path / "stack.sto", "stockholm") as alignments:
        (read,) = alignments
    names = [record.id.split("/")[0] for record in read.sequences]
    assert names == ["Q0", *shown(view.hits, "subject")]
    with qtbot.waitSignal(view.message) as signal:
        view.stack.save(tmp_path / "stack.sto" / "below a file", "a3m")
    assert "stack.sto" in signal.args[0] and "Saved" not in signal.args[0]


def test_whole_subject_sequence_is_shown_and_can_be_searched(project: Project, make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    window.open_project(project.folder)
    view = window.results
    assert isinstance(view, HitsView)
    settle(view, qtbot)
    view.tabs.setCurrentWidget(view.subject)
    view.hits.view.choose(2)
    settle(view, qtbot)
    subject = view.subject.subject
    assert subject is not None and subject.name == shown(view.hits, "subject")[2]
    sequence = "".join(character for character in view.subject.sequence_text.toPlainText() if character.isalpha())
    assert sequence == subject.sequence
    marked = "".join(selection.cursor.selectedText() for selection in view.subject.sequence_text.extraSelections())  # type: ignore[attr-defined]
    aligned = "".join(character for character in marked if character.isalpha())
    assert aligned == subject.sequence[subject.start - 1 : subject.end]
    view.subject.copy_button.click()
    assert QGuiApplication.clipboard().text() == subject.fasta()
    qtbot.mouseClick(view.subject.search_button, Qt.MouseButton.LeftButton)
    form = window.form
    assert window.pages.currentWidget() is form
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.pasted["queries"] == subject.fasta()
    databases = [path for kind, path in view._finished.inputs if kind == "database"] if view._finished is not None else []
    assert [Path(path) for path in task.request.inputs["database"]] == databases
    assert np.isclose(task.request.parameters.model_dump()["maximum_e_value"], 10.0)


def test_selected_hit_is_visible_in_the_stacked_alignment(view: HitsView, qtbot: QtBot) -> None:
    plot, n_hits = view.stack.plot, len(view.hits.model.rows)
    view.resize(1300, 420)
    settle(view, qtbot)
    assert plot.verticalScrollBar().maximum() > 0
    for place in (n_hits - 1, 0):
        view.hits.view.choose(place)
        settle(view, qtbot)
        rows = {at[0] for y in range(plot.viewport().height()) if (at := plot.place_at(QPointF(250, y))) is not None}
        assert plot.marked == place and place + 1 in rows and rows != set(range(n_hits + 1))
