"""Meshes of chains: closed, visible from outside, around the curve through the Cα, and rotating with the chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from proteoscope.engine.structures.chains import COIL, HELIX, STRAND
from proteoscope.engine.structures.meshes import (
    DETAILS,
    Mesh,
    are_joined,
    curve,
    ribbon,
    spheres,
    sticks,
    tube,
)
from tests.engine.structures.examples import helix


def strand(n: int = 8) -> NDArray[np.float64]:
    """Return the Cα positions of a β strand along x, alternately above and below a plane, shape (n, 3)."""
    return np.stack([3.3 * np.arange(n), np.zeros(n), 0.9 * (-1.0) ** np.arange(n)], axis=1)


def turned(seed: int = 5) -> NDArray[np.float64]:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def coil(n: int) -> NDArray[np.float64]:
    return helix(n, rise=2.8, radius=1.6, degrees=110.0)


def mixed() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return a chain with all three states, including strands of one residue and adjacent different states."""
    segments = [(COIL, 4), (HELIX, 12), (COIL, 3), (STRAND, 6), (COIL, 2), (STRAND, 1), (COIL, 3), (STRAND, 5), (HELIX, 6), (STRAND, 3)]
    places: list[NDArray[np.float64]] = []
    for state, n in segments:
        segment = {COIL: coil, HELIX: helix, STRAND: strand}[state](n)
        ahead = places[-1][-1] + [1.2, 0.6, 3.55] if places else np.zeros(3)
        places.append(segment[:, [1, 2, 0]] - segment[0, [1, 2, 0]] + ahead if state == STRAND else segment - segment[0] + ahead)
    return np.concatenate(places), np.concatenate([np.full(n, state, np.uint8) for state, n in segments])


def faces(mesh: Mesh) -> tuple[NDArray, NDArray]:
    """Return normals of triangles by their winding, twice their areas long, shape (t, 3), and their corners, shape (t, 3, 3)."""
    corners = mesh.vertices.astype(np.float64)[mesh.triangles]
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners


def assert_closed(mesh: Mesh) -> None:
    """Check that every edge is used once in each direction, with coinciding corners as one, and that normals point outwards."""
    _, places = np.unique(np.round(mesh.vertices.astype(np.float64), 3), axis=0, return_inverse=True)
    triangles = places.ravel()[mesh.triangles]
    triangles = triangles[(triangles != np.roll(triangles, 1, axis=1)).all(axis=1)]
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    counted: dict[tuple[int, int], int] = {}
    for a, b in edges.tolist():
        counted[a, b] = counted.get((a, b), 0) + 1
    assert all(counted.get((b, a), 0) == n for (a, b), n in counted.items())
    normal, corners = faces(mesh)
    assert (normal * (corners[:, 0] - mesh.vertices.mean(axis=0))).sum() > 0


def assert_sound(mesh: Mesh, n: int) -> None:
    assert mesh.vertices.dtype == mesh.normals.dtype == np.float32
    assert mesh.triangles.dtype == np.uint32 and mesh.residue.dtype == np.int32
    assert len(mesh.vertices) == len(mesh.normals) == len(mesh.residue)
    assert np.isfinite(mesh.vertices).all() and np.allclose(np.linalg.norm(mesh.normals, axis=1), 1.0, atol=1e-5)
    if len(mesh.triangles):
        assert mesh.triangles.max() < len(mesh.vertices)
        assert mesh.residue.min() >= 0 and mesh.residue.max() < n


def assert_agrees(mesh: Mesh) -> None:
    """Check that winding and normals agree on the outside."""
    normal, _ = faces(mesh)
    means = mesh.normals.astype(np.float64)[mesh.triangles].sum(axis=1)
    is_large = np.linalg.norm(normal, axis=1) > 1e-3
    assert ((normal * means).sum(axis=1)[is_large] > 0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 30])
def test_chain_meshes_are_closed_and_face_outwards(n: int) -> None:
    place, states = (column[:n] for column in mixed())
    for mesh in (tube(place), tube(place, 0.5, 2, 3), ribbon(place, states), ribbon(place, states, 2, 4), ribbon(place, states, 4, 12)):
        assert_sound(mesh, n)
        assert_closed(mesh)
        assert_agrees(mesh)
        assert set(mesh.residue.tolist()) == set(range(n))


def test_chain_curve_passes_residues_and_keeps_helices_round() -> None:
    place, _ = mixed()
    (points,) = curve(place, 6)
    assert np.allclose(points[::6], place, atol=1e-9)
    # An ideal helix has a constant radius of 2.3 Å. The curve is within 6 % of it; Catmull-Rom tangents would reduce it to 1.9 Å.
    (turn,) = curve(helix(20), 8)
    radius = np.hypot(turn[16:-16, 0], turn[16:-16, 1])
    assert radius.min() > 2.3 * 0.94 and radius.max() < 2.3 + 1e-6


@pytest.mark.parametrize("radius", [0.1, 0.3, 0.6])
def test_tube_surface_is_one_radius_from_the_curve(radius: float) -> None:
    place = helix(12)
    (fine,) = curve(place, 200)
    mesh = tube(place, radius, 4, 8)
    distance = np.sqrt(((mesh.vertices[:, None].astype(np.float64) - fine[None]) ** 2).sum(axis=2)).min(axis=1)
    assert distance.max() <= radius + 1e-3
    # Only the chain's own next turn could be nearer, and it is not.
    assert distance.min() >= radius - 1e-2


def test_chain_meshes_rotate_with_the_chain() -> None:
    place, states = mixed()
    rotation, shift = turned(), np.array([5.0, -20.0, 11.0])
    moved = place @ rotation.T + shift
    for make in (tube, lambda place: ribbon(place, states)):
        before, after = make(place).moved(rotation, shift), make(moved)
        assert np.array_equal(before.triangles, after.triangles)
        assert np.abs(before.vertices - after.vertices).max() < 1e-3
        assert np.abs(before.normals - after.normals).max() < 1e-3


def test_chain_mesh_has_a_gap_at_a_chain_break() -> None:
    place = np.concatenate([helix(6), helix(5) + np.array([0.0, 0.0, 30.0])])
    for mesh in (tube(place), ribbon(place, np.full(11, HELIX, np.uint8))):
        assert_closed(mesh)
        height = mesh.vertices[:, 2]
        assert not ((height > 10.0) & (height < 28.0)).any()
    # A missing number breaks a chain whose residues are close.
    number = np.arange(6) + 2 * (np.arange(6) > 2)
    assert are_joined(helix(6)).all() and are_joined(helix(6), number).tolist() == [True, True, False, True, True]
    assert len(curve(helix(6), number=number)) == 2


def test_chain_mesh_of_selection_has_half_bonds_at_the_ends() -> None:
    place = np.stack([3.8 * np.arange(8), np.zeros(8), np.zeros(8)], axis=1)
    shown = np.array([0, 1, 1, 0, 0, 1, 0, 0], np.bool_)
    for mesh in (tube(place, is_shown=shown), ribbon(place, np.zeros(8, np.uint8), is_shown=shown)):
        assert_closed(mesh)
        assert_agrees(mesh)
        assert set(mesh.residue.tolist()) == {1, 2, 5}
        x = mesh.vertices[:, 0] / 3.8
        assert np.allclose([x[mesh.residue < 3].min(), x[mesh.residue < 3].max()], [0.5, 2.5], atol=1e-5)
        assert np.allclose([x[mesh.residue == 5].min(), x[mesh.residue == 5].max()], [4.5, 5.5], atol=1e-5)
    assert set(spheres(place, is_shown=shown).residue.tolist()) == {1, 2, 5}


def test_strand_ribbon_is_flat_with_an_arrow_head() -> None:
    n = 8
    mesh = ribbon(strand(n), np.full(n, STRAND, np.uint8))
    body = mesh.vertices[(mesh.residue > 1) & (mesh.residue < n - 3)]
    # The pleat is removed: it is as thick as the ribbon, and wide across the plane of the pleat.
    assert np.ptp(body[:, 2]) < 0.6 and np.ptp(body[:, 1]) > 2.0
    widths = [np.ptp(mesh.vertices[np.abs(mesh.vertices[:, 0] - 3.3 * x) < 0.3, 1]) for x in (3.0, 6.1, 6.9)]
    assert widths[1] > 1.4 * widths[0] and widths[2] < widths[0]


def test_helix_ribbon_faces_outwards() -> None:
    mesh = ribbon(helix(20), np.full(20, HELIX, np.uint8))
    inner = (mesh.residue > 3) & (mesh.residue < 16)
    radius = np.hypot(mesh.vertices[inner, 0], mesh.vertices[inner, 1])
    # The ribbon is flat on the cylinder of the helix, not perpendicular to it.
    assert radius.min() > 1.7 and radius.max() < 2.9


places = st.one_of(st.floats(-50.0, 50.0), st.sampled_from([np.nan, np.inf, -np.inf, 1e38, 0.0, 99_999.0]), st.floats(-3.0, 3.0))


@given(st.lists(st.tuples(places, places, places), max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_chain_mesh_is_valid_for_any_coordinates(rows: list[tuple[float, float, float]], random) -> None:  # type: ignore[no-untyped-def]
    place = np.array(rows, np.float64).reshape(-1, 3)
    n = len(place)
    states = np.array([random.randrange(3) for _ in range(n)], np.uint8)
    shown = np.array([random.random() < 0.7 for _ in range(n)], np.bool_)
    for mesh in (tube(place, is_shown=shown), ribbon(place, states), ribbon(place, states, 2, 4, shown), spheres(place)):
        assert_sound(mesh, max(1, n))
    assert sum(len(column) for column in curve(place)) >= 0


def test_chain_mesh_is_valid_for_residues_at_one_position() -> None:
    place = np.zeros((7, 3))
    for mesh in (tube(place), ribbon(place, np.array([0, 1, 1, 1, 2, 2, 0], np.uint8))):
        assert_sound(mesh, 7)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_sphere_mesh_is_closed_and_round(level: int) -> None:
    mesh = spheres(np.array([[1.0, 2.0, 3.0]]), 0.5, level)
    assert len(mesh.triangles) == 20 * 4**level
    assert_closed(mesh)
    assert np.allclose(np.linalg.norm(mesh.vertices - [1.0, 2.0, 3.0], axis=1), 0.5, atol=1e-6)


def test_stick_mesh_is_closed_and_each_half_belongs_to_an_atom() -> None:
    place = np.array([[0.0, 0, 0], [1.5, 0, 0], [2.2, 1.2, 0], [np.nan, 0, 0]])
    mesh = sticks(place, np.array([[0, 1], [1, 2], [2, 3]]), 0.2)
    assert_sound(mesh, 4)
    assert_closed(mesh)
    assert_agrees(mesh)
    assert set(mesh.residue.tolist()) == {0, 1, 2}
    assert mesh.vertices[mesh.residue == 0][:, 0].max() == pytest.approx(0.75)


def test_joined_meshes_have_one_colour_table() -> None:
    first, second = tube(helix(5)), tube(helix(4) + 50.0)
    both = Mesh.joined([first, second], [5, 4])
    assert_closed(both)
    assert set(both.residue.tolist()) == set(range(9))
    assert both.residue[both.vertices[:, 0] > 25.0].min() == 5
    assert len(Mesh.joined([]).vertices) == 0


def test_tube_triangle_count_follows_the_detail() -> None:
    for steps, sides, _ in DETAILS:
        assert len(tube(helix(300), steps=steps, sides=sides).triangles) == pytest.approx(300 * 2 * steps * sides, rel=0.02)
    with pytest.raises(ValueError, match="even"):
        tube(helix(4), steps=3)
