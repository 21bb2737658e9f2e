"""Pictures without OpenGL: positions, visibility of the nearest surface, and tolerance of hostile meshes."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.structures.meshes import Mesh, spheres, tube
from proteoscope.engine.structures.projection import Projection, drawn, projected
from tests.engine.structures.examples import helix

RED, BLUE = [255, 0, 0], [0, 0, 255]


def test_projection_shows_the_nearest_mesh_from_either_side() -> None:
    place = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, -5.0]])
    colours = np.array([RED, BLUE], np.uint8)
    for order in ([0, 1], [1, 0]):
        mesh = Mesh.joined([spheres(place[[k]], 2.0, 2) for k in order], [1, 1])
        for rotation, seen in ((np.eye(3), 0), (np.diag([1.0, -1.0, -1.0]), 2)):
            image = drawn(mesh, colours[order], Projection(rotation, np.zeros(3), 5.0), 40, 40, fog=0.0)
            assert image[20, 20, seen] > 90 and image[20, 20, 2 - seen] == 0
            assert image[0, 0].tolist() == [255, 255, 255]


def test_projection_of_a_sphere_covers_a_disc() -> None:
    for distance in (np.inf, 1e6):
        image = drawn(
            spheres(np.zeros((1, 3)), 8.0, 4), np.array([RED], np.uint8), Projection(np.eye(3), np.zeros(3), 10.0, distance), 200, 220
        )
        covered = (image != 255).any(axis=2)
        assert covered.sum() == pytest.approx(np.pi * 80**2, rel=0.01)
        rows, columns = np.nonzero(covered)
        assert (rows.mean(), columns.mean()) == (pytest.approx(109.5, abs=0.5), pytest.approx(99.5, abs=0.5))


def test_projection_enlarges_near_and_omits_unseen_points() -> None:
    at = projected(np.array([[1.0, 0, 0], [1.0, 0, 5.0], [1.0, 0, 11.0]]), Projection(np.eye(3), np.zeros(3), 10.0, 10.0), 100, 100)
    assert at.x[:2].tolist() == [60.0, 70.0] and np.isnan(at.x[2])


def test_projection_smooths_edges_at_finer_resolution() -> None:
    mesh, camera = tube(helix(10)), Projection(np.eye(3), helix(10).mean(axis=0), 3.0)
    colours = np.zeros((10, 3), np.uint8)
    plain, fine = (drawn(mesh, colours, camera, 60, 60, fog=0.0, finer=k) for k in (1, 3))
    assert fine.shape == plain.shape and len(np.unique(fine)) > len(np.unique(plain))
    assert abs(float(fine.mean()) - float(plain.mean())) < 4.0


def test_projection_draws_only_finite_parts_of_hostile_meshes() -> None:
    mesh = spheres(np.zeros((1, 3)), 1.0, 1)
    vertices = mesh.vertices.copy()
    vertices[:6] = [np.nan, 1e38, -np.inf]
    vertices[6:9] *= 1e30
    corrupt = Mesh(vertices, mesh.normals, mesh.triangles, mesh.residue)
    with np.errstate(all="ignore"):
        image = drawn(corrupt, np.array([RED], np.uint8), Projection(np.eye(3), np.zeros(3), 9.0), 30, 30, fog=0.0)
    assert image.shape == (30, 30, 3)
    with pytest.raises(ValueError, match="cannot be drawn"):
        drawn(mesh, np.array([RED], np.uint8), Projection(np.eye(3), np.zeros(3), 9.0), 100_000, 100_000)
