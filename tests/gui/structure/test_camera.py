"""Tests of the camera of a scene against the projection written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.gui.structure.camera import Camera, sphere_around

POINTS = np.random.default_rng(3).normal(0, 12, (50, 3))
ASIDE = np.array([100.0, -50.0, 7.0])


@pytest.mark.parametrize("is_perspective", [True, False])
def test_camera_projection_equals_the_opengl_matrices(is_perspective: bool) -> None:
    camera = Camera(is_perspective=is_perspective).turned(30, 40, 5).centred([1, 2, 3]).panned(40, -25, 300)
    near, far = camera.depths(sphere_around(POINTS))
    homogeneous = np.column_stack([POINTS, np.ones(len(POINTS))])
    clip = homogeneous @ camera.view_matrix().T @ camera.projection_matrix(400 / 300, near, far).T
    device = clip[:, :3] / clip[:, 3:]
    points = camera.projected(POINTS, 400, 300)
    assert np.allclose(points[:, 0], (device[:, 0] + 1) * 200) and np.allclose(points[:, 1], (1 - device[:, 1]) * 150)
    # Visible points lie between the planes, and nearer ones have smaller depth in both.
    assert (np.abs(device[:, 2]) <= 1 + 1e-9).all()
    assert (np.argsort(device[:, 2]) == np.argsort(points[:, 2])).all()


@given(st.floats(-200, 200), st.floats(-200, 200), st.floats(-200, 200))
def test_rotated_camera_has_a_rotation_matrix(right: float, down: float, clockwise: float) -> None:
    rotation = Camera().turned(right, down, clockwise).turned(down, clockwise, right).rotation
    assert np.allclose(rotation @ rotation.T, np.eye(3)) and np.linalg.det(rotation) == pytest.approx(1)


def test_rotation_moves_points_in_front_with_the_pointer() -> None:
    front = np.array([[0.0, 0.0, 10.0]])
    before = Camera().projected(front, 200, 200)[0]
    right, down = (camera.projected(front, 200, 200)[0] for camera in (Camera().turned(10, 0), Camera().turned(0, 10)))
    assert right[0] > before[0] and down[1] > before[1]
    up = np.array([[0.0, 10.0, 0.0]])
    assert Camera().turned(0, 0, 10).projected(up, 200, 200)[0, 0] > 100


@pytest.mark.parametrize("is_perspective", [True, False])
def test_camera_zoom_keeps_the_point_under_the_pointer(is_perspective: bool) -> None:
    camera = Camera(is_perspective=is_perspective).panned(10, 5, 300)
    # The point is at the depth of the centre.
    place = np.array([[7.0, -4.0, 0.0]])
    x, y, _ = camera.projected(place, 400, 300)[0]
    closer = camera.zoomed(1.7, (x / 400, y / 300), 400 / 300)
    assert closer.projected(place, 400, 300)[0, :2] == pytest.approx([x, y])
    assert closer.height == pytest.approx(camera.height / 1.7)
    assert camera.panned(30, 20, 300).projected(place, 400, 300)[0, :2] == pytest.approx([x + 30, y + 20])


@pytest.mark.parametrize("is_perspective", [True, False])
@pytest.mark.parametrize("aspect", [0.4, 1.0, 3.0])
def test_fitted_camera_shows_the_whole_scene(is_perspective: bool, aspect: float) -> None:
    camera = Camera(is_perspective=is_perspective).turned(33, 21).fitted(POINTS + ASIDE, aspect)
    points = camera.projected(POINTS + ASIDE, 300 * aspect, 300)
    assert (points[:, 0] > 0).all() and (points[:, 0] < 300 * aspect).all() and (points[:, 1] > 0).all() and (points[:, 1] < 300).all()
    # The scene is not a dot in the middle.
    assert np.ptp(points[:, 0]) > 0.5 * 300 * aspect or np.ptp(points[:, 1]) > 150


def test_first_camera_position_shows_the_widest_extent() -> None:
    flat = POINTS * [1.0, 5.0, 0.2]
    camera = Camera().turned(70, 20).facing(flat)
    spread = np.ptp(camera.seen(flat), axis=0)
    assert spread[0] > spread[1] > spread[2] and np.linalg.det(camera.rotation) == pytest.approx(1)
    assert (Camera().facing(flat).rotation == camera.rotation).all()


def test_camera_ignores_invalid_coordinates() -> None:
    some = np.array([[np.nan, 0, 0], [1.0, 2.0, 3.0], [np.inf, 0, 0]])
    sphere = sphere_around(some)
    assert np.isfinite(sphere.centre).all() and sphere.radius < 10
    assert np.isfinite(Camera().fitted(some, 1.0).height)
    for nothing in (np.empty((0, 3)), np.full((2, 3), np.nan)):
        camera = Camera().facing(nothing).fitted(nothing, 1.0)
        assert np.isfinite(camera.view_matrix()).all() and np.isfinite(camera.depths(sphere_around(nothing))).all()
