"""Tests of the view in three dimensions with mouse, keys, tables and the linked alignment."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.structures.residue_atoms import Atoms
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.structure import canvas
from proteoscope.gui.structure.camera import Camera, Sphere
from proteoscope.gui.structure.canvas import BACKGROUNDS
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer
from proteoscope.gui.structure.opengl_renderer import NO_OPENGL, OpenGLRenderer
from proteoscope.gui.structure.rendering import Backdrop, Body, Renderer
from proteoscope.gui.structure.scene import EXTENTS, STYLES, Pick
from proteoscope.gui.structure.structure_panel import StructurePanel
from proteoscope.gui.theme import Theme
from proteoscope.gui.undo import UndoStack
from tests.engine.views.structure_projects import project_with_structures
from tests.gui.result_views import click_row, cut_off, settle


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_structures(tmp_path_factory.mktemp("in 3D") / "project").folder


@pytest.fixture
def project(searched: Path, tmp_path: Path) -> Project:
    shutil.copytree(searched, tmp_path / "project")
    return Project.open(tmp_path / "project")


@pytest.fixture(params=["OpenGL", "drawn"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Renderer of the view: OpenGL if available, and the engine."""
    if request.param == "OpenGL":
        request.getfixturevalue("opengl")
    else:
        monkeypatch.setenv(NO_OPENGL, "1")
    return str(request.param)


DRAWN = pytest.mark.parametrize("by", [pytest.param("OpenGL", marks=pytest.mark.long), "drawn"], indirect=True)
"""Panel for tests of the camera and the scene, with either renderer."""


def shown(project: Project, qtbot: QtBot) -> StructureView:
    widget = StructureView()
    qtbot.addWidget(widget)
    widget.resize(1400, 900)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    widget.show_run(project, None)
    settle(widget, qtbot)
    widget.structures_action.setChecked(True)
    settle(widget, qtbot)
    # The renderer is made in steps, after which the first picture is drawn.
    qtbot.waitUntil(lambda: not panel_of(widget).canvas._deferred.is_busy)
    return widget


@pytest.fixture
def view(by: str, project: Project, qtbot: QtBot, theme: Theme) -> Iterator[StructureView]:
    widget = shown(project, qtbot)
    yield widget
    widget.clear()


@pytest.fixture
def drawn_view(monkeypatch: pytest.MonkeyPatch, project: Project, qtbot: QtBot, theme: Theme) -> Iterator[StructureView]:
    """View drawn by the engine, for behaviour that does not depend on the renderer."""
    monkeypatch.setenv(NO_OPENGL, "1")
    widget = shown(project, qtbot)
    yield widget
    widget.clear()


def panel_of(view: StructureView) -> StructurePanel:
    assert view.structures is not None
    return view.structures


def pair_of(view: StructureView) -> StructurePair:
    pair = view.alignment.plot.pair
    assert isinstance(pair, StructurePair)
    return pair


def place_of(panel: StructurePanel, pick: Pick) -> QPoint:
    """Return the position of the residue on the canvas."""
    canvas = panel.canvas
    x, y, _ = canvas.camera.projected(pick.position[None], canvas.width(), canvas.height())[0].tolist()
    return QPoint(round(x), round(y))


def front_residue(panel: StructurePanel, number: int) -> Pick:
    """Return a residue of the query (0) or the selected hit (1) that is in front at its position on the canvas."""
    trace = panel.scene.traces[number]
    for row in range(len(trace)):
        pick = Pick(trace, row)
        at = QPointF(place_of(panel, pick))
        if panel.canvas.pick_at(at) == pick:
            return pick
    raise AssertionError("no residue of the chain is in front")


def test_structure_panel_draws_the_selected_hit_and_the_query(view: StructureView, by: str) -> None:
    panel = panel_of(view)
    pair = pair_of(view)
    assert [trace.name for trace in panel.scene.traces] == [pair.query_name, pair.subject_name]
    image = panel.canvas.grab().toImage()
    tones = {image.pixelColor(x, y).name() for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    assert len(tones) > 20
    if by == "OpenGL":
        assert isinstance(panel.canvas.renderer, OpenGLRenderer) and not panel.note.isVisible()
    else:
        assert isinstance(panel.canvas.renderer, DrawnRenderer)
        assert panel.note.isVisible() and "without OpenGL" in panel.note.text() and NO_OPENGL in panel.note.text()
    assert not cut_off(view)


def test_opengl_renderer_is_prepared_in_separate_steps(
    opengl: OpenGLRenderer, project: Project, qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that context, samples and image are created in separate turns, since in software each step may block for long."""
    done: list[tuple[int, str]] = []
    turn = 0

    def next_turn() -> None:
        nonlocal turn
        turn += 1

    make, draw = canvas.make_renderer, OpenGLRenderer.picture

    def making() -> tuple[Renderer, str]:
        done.append((turn, "made"))
        return make()

    def drawing(
        self: OpenGLRenderer, bodies: Sequence[Body], camera: Camera, sphere: Sphere, look: Backdrop, size: QSize, *, is_smooth: bool
    ) -> QImage:
        triangles = sum(len(body.mesh.triangles) for body in bodies)
        done.append((turn, f"{'smooth' if is_smooth else 'plain'} {'sample' if triangles == 1 else 'scene'}"))
        return draw(self, bodies, camera, sphere, look, size, is_smooth=is_smooth)

    monkeypatch.setattr(canvas, "make_renderer", making)
    monkeypatch.setattr(OpenGLRenderer, "picture", drawing)
    count = QTimer()
    count.timeout.connect(next_turn)
    count.start()
    view = shown(project, qtbot)
    qtbot.waitUntil(lambda: any(name == "smooth scene" for _, name in done))
    count.stop()
    first = {name: at for at, name in reversed(done)}
    assert first["made"] < first["plain sample"] < first["smooth sample"] < first["plain scene"] < first["smooth scene"]
    assert [name for _, name in done].count("smooth sample") == [name for _, name in done].count("made")
    view.clear()


@DRAWN
def test_click_on_residue_of_structure_marks_it_in_all_views(view: StructureView, qtbot: QtBot) -> None:
    panel, pair = panel_of(view), pair_of(view)
    pick = front_residue(panel, 1)
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=place_of(panel, pick))
    assert panel.scene.picks == [pick]
    (column,) = np.flatnonzero(pair.of_target == pick.row).tolist()
    assert view.alignment.plot.marks == {column: (False, True)}
    index = panel.pair_table.currentIndex()
    if pair.of_query[column] >= 0:
        assert panel.pair_table.model().index(index.row(), 1).data() == pick.label
    # Another pick, with the distance between both.
    said: list[str] = []
    view.message.connect(said.append)
    other = front_residue(panel, 0)
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, place_of(panel, other))
    assert panel.scene.picks == [pick, other]
    assert said[-1].endswith(f"{np.linalg.norm(pick.position.astype(float) - other.position):.2f} Å")
    # A click on the background clears the picks, which can be undone.
    stack = UndoStack(view)
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert panel.scene.picks == [] and view.alignment.plot.marks == {}
    panel.undo_action.trigger()
    assert panel.scene.picks == [pick, other] and view.alignment.plot.marks
    panel.canvas.reset()
    reset = panel.canvas.camera
    panel.canvas.zoom(2)
    zoomed = panel.canvas.camera
    stack.step_back()
    assert panel.canvas.camera not in (reset, zoomed)
    stack.step_forward()
    assert panel.canvas.camera == zoomed, "redo restores later movements too"


def test_click_on_alignment_column_picks_both_residues(drawn_view: StructureView, qtbot: QtBot) -> None:
    view, panel, pair = drawn_view, panel_of(drawn_view), pair_of(drawn_view)
    plot = view.alignment.plot
    column = int(np.flatnonzero((pair.of_query >= 0) & (pair.of_target >= 0))[7])
    layout = plot._sheet
    assert layout is not None
    plot.verticalScrollBar().setValue(0)
    at = QPointF(*layout.corner(column)) + QPointF(layout.cell / 2, layout.line / 2)
    plot.verticalScrollBar().setValue(max(0, round(at.y()) - 30))
    at -= QPointF(plot.in_sight.left, plot.in_sight.top)
    QTest.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert [(pick.trace.name, pick.row) for pick in panel.scene.picks] == [
        (pair.query_name, pair.of_query[column]),
        (pair.subject_name, pair.of_target[column]),
    ]
    assert plot.marks == {column: (True, True)}
    chosen = panel.scene.chosen
    assert chosen is not None and chosen.trace.pairs is not None
    distance = panel.pair_table.model().index(panel.pair_table.currentIndex().row(), 2).data()
    assert float(distance) == pytest.approx(pair.distance[column], abs=0.006)
    # Move to the next column by keyboard.
    plot.setFocus()
    QTest.keyClick(plot, Qt.Key.Key_Right)
    assert list(plot.marks) == [column + 1]
    # Select it from the table too.
    panel.pair_table.setCurrentIndex(panel.pair_table.model().index(0, 0))
    first = int(np.flatnonzero((pair.of_query >= 0) & (pair.of_target >= 0))[0])
    assert list(plot.marks) == [first] and [pick.row for pick in panel.scene.picks] == [pair.of_query[first], pair.of_target[first]]


def test_table_of_residue_pairs_is_sorted_by_distance_and_copied(drawn_view: StructureView) -> None:
    table, pair = panel_of(drawn_view).pair_table, pair_of(drawn_view)
    panel_of(drawn_view).tabs.setCurrentIndex(1)
    table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    shown = [float(table.model().index(row, 2).data()) for row in range(table.model().rowCount())]
    distances = pair.distance[np.isfinite(pair.distance)]
    assert shown == pytest.approx(sorted(distances.tolist(), reverse=True), abs=0.006)
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Query\tHit\tDistance Å" and len(lines) == len(distances) + 1
    query = panel_of(drawn_view).scene.query
    assert query is not None and lines[1].split("\t")[0] in {query.label(row) for row in range(len(query))}


@DRAWN
def test_newly_selected_hit_is_superposed_with_the_same_camera(view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(view)
    camera = panel.canvas.camera.turned(20, 10)
    panel.canvas._take(camera)
    click_row(view.hits, 1, qtbot)
    settle(view, qtbot)
    assert panel.scene.chosen is not None and panel.scene.chosen.trace.name == pair_of(view).subject_name
    assert panel.canvas.camera is camera and len(panel.scene.hits) == 1
    # A pinned hit stays next to the new one.
    panel.pin_action.trigger()
    click_row(view.hits, 2, qtbot)
    settle(view, qtbot)
    assert len(panel.scene.hits) == 2 and panel.hit_list.count() == 3
    panel.unpin_action.trigger()
    assert len(panel.scene.hits) == 1
    # Another query has another scene.
    view.queries.view.choose(1)
    settle(view, qtbot)
    assert panel.scene.query is not None and panel.scene.query.name == pair_of(view).query_name == "other"


def test_several_hits_are_superposed_and_hidden_by_keys(view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(view)
    view.superpose_selected()
    settle(view, qtbot)
    n = min(20, len(view.hits.model.rows))
    assert len(panel.scene.hits) == n and all(hit.is_shown for hit in panel.scene.hits)
    if isinstance(panel.canvas.renderer, OpenGLRenderer):
        panel.canvas.repaint()
        assert panel.canvas.renderer.n_buffers >= 3 * (n + 1)
    panel.hit_list.setCurrentRow(2)
    panel.hit_list.setFocus()
    QTest.keyClick(panel.hit_list, Qt.Key.Key_Space)
    assert [hit.is_shown for hit in panel.scene.hits].count(False) == 1
    assert len(panel.scene.traces) == n
    QTest.keyClick(panel.hit_list, Qt.Key.Key_Space)
    assert all(hit.is_shown for hit in panel.scene.hits)


def test_residue_picked_in_other_hit_marks_aligned_query_residue(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    drawn_view.superpose_selected()
    settle(drawn_view, qtbot)
    other = next(hit.trace for hit in panel.scene.hits if hit is not panel.scene.chosen)
    assert other.pairs is not None
    of_query, of_other = other.pairs.rows[5].tolist()
    panel.pick([Pick(other, of_other)])
    (column,) = np.flatnonzero(pair_of(drawn_view).of_query == of_query).tolist()
    assert drawn_view.alignment.plot.marks == {column: (True, False)}


@DRAWN
def test_mouse_rotates_pans_and_zooms_the_structure(view: StructureView, qtbot: QtBot) -> None:
    canvas = panel_of(view).canvas
    before = canvas.camera

    def drag(button: Qt.MouseButton, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.mousePress(canvas, button, modifier, QPoint(100, 100))
        for x in (110, 130, 150):
            QTest.mouseMove(canvas, QPoint(x, 105))
            QApplication.sendPostedEvents()
        QTest.mouseRelease(canvas, button, modifier, QPoint(150, 105))

    drag(Qt.MouseButton.LeftButton)
    turned = canvas.camera
    assert not np.allclose(turned.rotation, before.rotation) and turned.height == before.height and panel_of(view).scene.picks == []
    drag(Qt.MouseButton.RightButton)
    panned = canvas.camera
    assert (panned.rotation == turned.rotation).all() and panned.shift != turned.shift
    at = QPointF(120, 80)
    wheel = QWheelEvent(
        at,
        canvas.mapToGlobal(at),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(canvas, wheel)
    assert canvas.camera.height < panned.height
    canvas.setFocus()
    none, shift = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
    for key, modifier in ((Qt.Key.Key_Left, none), (Qt.Key.Key_Up, shift), (Qt.Key.Key_Plus, none), (Qt.Key.Key_Minus, none)):
        last = canvas.camera
        QTest.keyClick(canvas, key, modifier)
        assert canvas.camera is not last
    last = canvas.camera
    view.addAction(UndoStack(view).undo_action)
    QTest.keyClick(canvas, Qt.Key.Key_0)
    assert np.allclose(canvas.camera.rotation, before.rotation) and canvas.camera.height == pytest.approx(before.height)
    QTest.keyClick(canvas, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert canvas.camera is last
    QTest.keyClick(canvas, Qt.Key.Key_P)
    assert not canvas.camera.is_perspective
    QTest.keyClick(canvas, Qt.Key.Key_0)
    assert not canvas.camera.is_perspective


def test_structure_fills_a_resized_panel_unless_it_was_rotated(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    canvas = panel.canvas

    def share() -> float:
        points = canvas.camera.projected(panel.scene.points(), canvas.width(), canvas.height())
        return float(max(np.ptp(points[:, 0]) / canvas.width(), np.ptp(points[:, 1]) / canvas.height()))

    assert share() > 0.6
    width = canvas.width()
    panel.lists_action.trigger()
    qtbot.waitUntil(lambda: canvas.width() > width)
    assert share() > 0.6
    moved = canvas.camera.turned(20, 0)
    canvas._take(moved)
    panel.lists_action.trigger()
    qtbot.waitUntil(lambda: canvas.width() == width)
    assert canvas.camera is moved


def test_rotation_of_structure_ends_when_stopped_or_hidden(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    before = panel.canvas.camera
    panel.spin_action.trigger()
    qtbot.waitUntil(lambda: panel.canvas.camera is not before)
    drawn_view.structures_action.setChecked(False)
    assert not panel.canvas.is_spinning and not panel.spin_action.isChecked()


def test_structure_is_centred_on_a_residue_or_the_aligned_part(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    canvas = panel.canvas
    pick = front_residue(panel, 0)
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=place_of(panel, pick))
    assert place_of(panel, pick) == canvas.rect().center() or (place_of(panel, pick) - canvas.rect().center()).manhattanLength() <= 2
    panel.aligned_action.trigger()
    chosen = panel.scene.chosen
    assert chosen is not None and chosen.trace.pairs is not None
    points = canvas.camera.projected(panel.scene.aligned_points(), canvas.width(), canvas.height())
    assert (points[:, :2] > 0).all() and (points[:, 0] < canvas.width()).all() and (points[:, 1] < canvas.height()).all()
    panel.pick([pick])
    panel.centre_action.trigger()
    assert canvas.camera.centre == pytest.approx(pick.position.astype(float))


def test_structure_panel_draws_each_style_extent_and_colour(view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(view)
    said: list[str] = []
    view.message.connect(said.append)
    pictures = set()
    for box, n in ((panel.style_box, len(STYLES)), (panel.colour_box, 8), (panel.extent_box, len(EXTENTS))):
        assert box.count() == n and box.accessibleName() and box.toolTip()
        for i in range(n):
            box.setCurrentIndex(i)
            settle(view, qtbot)
            pictures.add(bytes(panel.canvas.grab().toImage().constBits()))
        box.setCurrentIndex(0)
    # No residue is predicted, but the files have B-factors: their scale is drawn without a warning.
    assert len(pictures) >= 10 and not any("B-factors" in text for text in said)
    assert panel.scene.b_factors and all(np.isfinite(values).any() for values in panel.scene.b_factors.values())
    for name in BACKGROUNDS:
        panel.canvas.set_background(name)
        ground = panel.canvas.grab().toImage().pixelColor(2, 2)
        assert ground == panel.canvas.background_colour
    for action in panel._write_actions[:3]:
        action.trigger()
    assert not panel.canvas.overlay.legend and not panel.canvas.overlay.ends


def test_structure_panel_uses_theme_colours(drawn_view: StructureView, theme: Theme, qtbot: QtBot) -> None:
    canvas = panel_of(drawn_view).canvas
    light = canvas.background_colour
    theme.choose("dark")
    qtbot.waitUntil(lambda: canvas.background_colour.lightness() < 60)
    assert light.lightness() > 60
    assert canvas.grab().toImage().pixelColor(2, 2) == canvas.background_colour


def test_narrow_structure_panel_moves_below_or_hides_alignment(drawn_view: StructureView, qtbot: QtBot) -> None:
    view = drawn_view

    def top(widget: QWidget) -> int:
        return widget.mapTo(view, QPoint()).y()

    assert view.alignment.isVisible() and panel_of(view).isVisible()
    # Size of the panel in a window of 1024 x 700 with the project pane.
    view.resize(740, 600)
    qtbot.waitUntil(lambda: top(panel_of(view)) >= top(view.alignment) + view.alignment.height() and not cut_off(view))
    assert view.alignment.isVisible() and panel_of(view).isVisible()
    view.resize(740, 400)
    qtbot.waitUntil(lambda: not view.alignment.isVisible() and not cut_off(view))
    assert panel_of(view).isVisible()
    panel_of(view).closeRequested.emit()
    assert view.alignment.isVisible() and not panel_of(view).isVisible()
    view.structures_action.trigger()
    view.resize(1400, 900)
    qtbot.waitUntil(lambda: view.alignment.isVisible() and panel_of(view).isVisible())


def test_structure_panel_is_restored_and_names_missing_files(
    drawn_view: StructureView, project: Project, searched: Path, qtbot: QtBot, tmp_path: Path
) -> None:
    state = drawn_view.state()
    other = StructureView()
    qtbot.addWidget(other)
    other.restore_state(state)
    assert other.structures_action.isChecked()
    other.restore_state("{}")
    assert not other.structures_action.isChecked()
    query = searched.parent / "project files" / "query.cif"
    hidden = query.with_name("hidden")
    query.rename(hidden)
    try:
        drawn_view.show_run(project, None)
        settle(drawn_view, qtbot)
        assert "query.cif" in panel_of(drawn_view).canvas.failure and panel_of(drawn_view).scene.query is None
    finally:
        hidden.rename(query)


def test_opengl_memory_does_not_grow_when_other_hits_are_shown(opengl: OpenGLRenderer, project: Project, qtbot: QtBot) -> None:
    view = shown(project, qtbot)
    panel = panel_of(view)
    seen = set()
    for position in [*range(5)] * 2:
        view.hits.view.choose(position)
        settle(view, qtbot)
        panel.canvas.repaint()
        assert isinstance(panel.canvas.renderer, OpenGLRenderer)
        seen.add(panel.canvas.renderer.n_buffers)
        assert len(panel.scene._meshes) == 2 and len(view._pairs) <= 64
    # Two chains of three buffers each, and one or two images.
    assert seen <= {7, 8}
    view.clear()
    assert panel.canvas._renderer is None


def test_distance_between_picked_atoms_is_measured(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    query = panel.scene.query
    assert query is not None
    residue = front_residue(panel, 0)
    place = residue.position
    # In front of everything drawn, so that nothing else is under the pointer.
    toward = panel.canvas.camera.projected(np.eye(3) * 0.01 + place, panel.canvas.width(), panel.canvas.height())
    nearer = np.eye(3)[int(np.argmin(toward[:, 2]))] * (1 if toward[:, 2].min() < toward[:, 2].max() else -1)
    iron, oxygen = place + 25 * nearer, place + 25 * nearer + np.roll(nearer, 1) * 9
    panel.scene.ligands[query] = Atoms(
        ("HEM FE", "HEM O1A"), ("FE", "O"), np.stack([iron, oxygen]).astype(np.float32), np.zeros(2, np.int32), np.empty((0, 2), np.int32)
    )
    panel.canvas.refresh()
    panel.canvas.fit(np.concatenate([panel.scene.points(), panel.scene.ligands[query].position]))
    heard: list[str] = []
    panel.message.connect(heard.append)
    bound = panel.scene.ligands[query]
    atoms = [Pick(query, -1, name, tuple(place.tolist())) for name, place in zip(bound.name, bound.position, strict=True)]
    for atom, holding in zip(atoms, (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier), strict=True):
        assert panel.canvas.pick_at(QPointF(place_of(panel, atom))) == atom
        QTest.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, holding, place_of(panel, atom))
    assert panel.scene.picks == atoms
    apart = float(np.linalg.norm(iron.astype(np.float32).astype(float) - oxygen.astype(np.float32)))
    assert heard[-1].endswith(f"{apart:.2f} Å") and "HEM FE" in heard[-1] and "HEM O1A" in heard[-1]
    assert panel.canvas.text_at(QPointF(place_of(panel, atoms[0]))) == f"{query.name}: HEM FE"
    settle(drawn_view, qtbot)
    assert panel.scene.picks == atoms, "no residue is read for an atom of a ligand"
    # The distance from a side-chain atom to a residue.
    panel.scene.atoms[query, residue.row] = Atoms(
        ("CA", "NZ"),
        ("C", "N"),
        np.stack([residue.position, iron - 6 * np.roll(nearer, 1)]).astype(np.float32),
        np.full(2, residue.row, np.int32),
        np.array([[0, 1]], np.int32),
    )
    nitrogen = Pick(query, residue.row, "NZ", tuple(panel.scene.atoms[query, residue.row].position[1].tolist()))
    assert panel.canvas.pick_at(QPointF(place_of(panel, nitrogen))) == nitrogen
    panel.pick([residue, nitrogen])
    assert nitrogen.label == f"{query.label(residue.row)} NZ"
    apart = float(np.linalg.norm(residue.position.astype(float) - nitrogen.position))
    assert any(f"{apart:.2f} Å" in message for message in heard)
    panel.ligand_action.setChecked(False)
    assert panel.canvas.pick_at(QPointF(place_of(panel, atoms[0]))) not in atoms, "only drawn atoms are picked"


@DRAWN
def test_molecular_surfaces_surround_their_chains(view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(view)
    panel.style_box.setCurrentIndex(panel.style_box.findData("surface"))
    assert panel.scene.style == "surface"
    qtbot.waitUntil(lambda: set(panel.scene.surfaces) == set(panel.scene.traces))
    for trace, mesh in panel.scene.surfaces.items():
        away = np.linalg.norm(mesh.vertices[:, None] - trace.position[None], axis=2)
        assert 1.0 < away.min(axis=1).mean() < 6.0 and away.min(axis=1).max() < 12.0
        # A vertex has the colour of the nearest residue or of its neighbour.
        assert (np.abs(np.argmin(away, axis=1) - mesh.residue) <= 1).mean() > 0.6
    ribbon = panel.canvas.grab().toImage()
    bodies = panel.scene.bodies(panel.canvas.renderer.maximum_triangles)
    assert sum(len(body.mesh.triangles) for body in bodies) >= sum(len(surface.triangles) for surface in panel.scene.surfaces.values())
    panel.extent_box.setCurrentIndex(panel.extent_box.findData("residues"))
    fewer = panel.scene.bodies(panel.canvas.renderer.maximum_triangles)
    assert 0 < sum(len(body.mesh.triangles) for body in fewer) < sum(len(body.mesh.triangles) for body in bodies)
    panel.style_box.setCurrentIndex(panel.style_box.findData("ribbon"))
    qtbot.waitUntil(lambda: panel.canvas.grab().toImage() != ribbon)
    panel.canvas.close_renderer()


def test_ribbon_is_drawn_if_the_file_for_a_surface_is_missing(drawn_view: StructureView, qtbot: QtBot) -> None:
    panel = panel_of(drawn_view)
    heard: list[str] = []
    panel.message.connect(heard.append)
    for trace in panel.scene.traces:
        trace.path.unlink(missing_ok=True)
    for style in ("surface", "tube", "surface"):
        panel.style_box.setCurrentIndex(panel.style_box.findData(style))
        settle(drawn_view, qtbot)
    qtbot.waitUntil(lambda: len(heard) > 0)
    assert panel.scene.surfaces == {} and len(panel.scene.bodies(100_000)) >= 2
    assert len(heard) == len({trace.path for trace in panel.scene.traces})
