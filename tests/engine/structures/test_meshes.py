"""Surfaces of chains: closed, seen from outside, about the curve through the Cα, and turning with the chain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.structures.chains import COIL, HELIX, STRAND
from engine.structures.meshes import (
    Mesh,
    ribbon,
    tube,
)
from tests.engine.structures.examples import helix


def strand(n: int = 8) -> NDArray[np.float64]:
    """(n, 3) Cα of a β strand along x, above and below a plane in turn."""
    return np.stack([3.3 * np.arange(n), np.zeros(n), 0.9 * (-1.0) ** np.arange(n)], axis=1)


def turned(seed: int = 5) -> NDArray[np.float64]:
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def coil(n: int) -> NDArray[np.float64]:
    return helix(n, rise=2.8, radius=1.6, degrees=110.0)


def mixed() -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """A chain with all three states, strands of one residue and two states side by side among them."""
    pieces = [(COIL, 4), (HELIX, 12), (COIL, 3), (STRAND, 6), (COIL, 2), (STRAND, 1), (COIL, 3), (STRAND, 5), (HELIX, 6), (STRAND, 3)]
    places: list[NDArray[np.float64]] = []
    for state, n in pieces:
        piece = {COIL: coil, HELIX: helix, STRAND: strand}[state](n)
        ahead = places[-1][-1] + [1.2, 0.6, 3.55] if places else np.zeros(3)
        places.append(piece[:, [1, 2, 0]] - piece[0, [1, 2, 0]] + ahead if state == STRAND else piece - piece[0] + ahead)
    return np.concatenate(places), np.concatenate([np.full(n, state, np.uint8) for state, n in pieces])


def faces(mesh: Mesh) -> tuple[NDArray, NDArray]:
    """(t, 3) normals of triangles by their winding, as long as twice their areas, and (t, 3, 3) their corners."""
    corners = mesh.vertices.astype(np.float64)[mesh.triangles]
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners


def assert_closed(mesh: Mesh) -> None:
    """Every edge is passed once in each direction, corners at one place taken for one; and the inside is inside."""
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
    """The winding tells the same outside as the normals."""
    normal, _ = faces(mesh)
    means = mesh.normals.astype(np.float64)[mesh.triangles].sum(axis=1)
    is_large = np.linalg.norm(normal, axis=1) > 1e-3
    assert ((normal * means).sum(axis=1)[is_large] > 0).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 30])
def test_surfaces_are_closed_and_face_outwards(n: int) -> None:
    place, states = (one[:n] for one in mixed())
    for mesh in (tube(place), tube(place, 0.5, 2, 3), ribbon(place, states), ribbon(place, states, 2, 4), ribbon(place, states, 4, 12)):
        assert_sound(mesh, n)
        assert_closed(mesh)
        assert_agrees(mesh)
        assert set(mesh.residue.tolist()) == set(range(n))
