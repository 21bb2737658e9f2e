"""Camera of a scene: rotation, centre, scale and projection, independent of Qt and OpenGL.

In the view's frame, x points to the right, y up and z towards the eye. The coordinates of a point in this frame are
``rotation @ (point - centre)``, plus `shift` for x and y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

_FIELD_OF_VIEW = math.radians(25.0)
"""Vertical field of view in radians: small, for little perspective distortion."""
_SMALLEST, _LARGEST = 2.0, 20_000.0
_NEAREST = 0.02
"""Minimum distance of the near clipping plane as a fraction of the distance to the centre, since depth buffers have limited precision."""
_MARGIN, _AROUND = 1.06, 2.0
"""Margin factor of fitted views, and maximum distance (Å) of a ribbon's surface from its Cα."""

Points = NDArray[np.floating]


@dataclass(frozen=True)
class Sphere:
    """Bounding sphere of a scene: centre and radius in Å."""

    centre: NDArray[np.float64]
    radius: float


def sphere_around(points: Points) -> Sphere:
    """Return a bounding sphere of the finite points, shape (n, 3), or a small sphere at the origin if there are none."""
    points = np.asarray(points, np.float64).reshape(-1, 3)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return Sphere(np.zeros(3), 10.0)
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    return Sphere(centre, max(float(np.linalg.norm(points - centre, axis=1).max()) + 2.0, 5.0))


@dataclass(frozen=True, eq=False)
class Camera:
    """Immutable view of a scene; every movement returns a new camera, so that it can be undone.

    Attributes
    ----------
    rotation : ndarray of float64, shape (3, 3)
        Rotation matrix.
    centre : ndarray of float64, shape (3,)
        Centre of rotation, in Å.
    shift : tuple of float
        Translation in the picture plane, in Å.
    height : float
        Height of the visible area at the centre, in Å.
    is_perspective : bool
        True for a perspective, False for a parallel projection.
    """

    rotation: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    shift: tuple[float, float] = (0.0, 0.0)
    height: float = 60.0
    is_perspective: bool = True

    @property
    def distance(self) -> float:
        """Distance from the eye to the centre, in Å."""
        return self.height / 2 / math.tan(_FIELD_OF_VIEW / 2)

    def seen(self, points: Points) -> NDArray[np.float64]:
        """Return the coordinates of points, shape (n, 3), in the view's frame, including the shift."""
        at: NDArray[np.float64] = (np.asarray(points, np.float64) - self.centre) @ self.rotation.T
        at[:, :2] += self.shift
        return at

    def projected(self, points: Points, width: float, height: float) -> NDArray[np.float64]:
        """Return x and y in pixels from the upper left of the picture, and the depth in Å (positive in front of the eye), shape (n, 3)."""
        at = self.seen(points)
        depth = self.distance - at[:, 2]
        scale = np.full(len(at), height / self.height)
        if self.is_perspective:
            with np.errstate(divide="ignore", invalid="ignore"):
                scale *= np.where(depth > 0, self.distance / depth, np.nan)
        return np.column_stack([width / 2 + at[:, 0] * scale, height / 2 - at[:, 1] * scale, depth])

    def depths(self, sphere: Sphere) -> tuple[float, float]:
        """Return the depths (Å) of the near and far clipping planes for a scene within `sphere`."""
        middle = self.distance - float(self.seen(sphere.centre[None])[0, 2])
        nearest = self.distance * _NEAREST if self.is_perspective else middle - sphere.radius
        near = max(middle - sphere.radius, nearest)
        return near, max(middle + sphere.radius, near + 1.0)

    def view_matrix(self) -> NDArray[np.float64]:
        """Return the matrix, shape (4, 4), from scene coordinates to OpenGL's eye coordinates (the eye looks along -z)."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation
        matrix[:3, 3] = -self.rotation @ self.centre + [*self.shift, -self.distance]
        return matrix

    def projection_matrix(self, aspect: float, near: float, far: float) -> NDArray[np.float64]:
        """Return OpenGL's projection matrix, shape (4, 4), for an aspect ratio and the depths (Å) of the clipping planes."""
        matrix = np.zeros((4, 4))
        half = self.height / 2
        if self.is_perspective:
            slope = half / self.distance
            matrix[0, 0], matrix[1, 1] = 1 / (slope * aspect), 1 / slope
            matrix[2, 2], matrix[2, 3], matrix[3, 2] = (far + near) / (near - far), 2 * far * near / (near - far), -1.0
        else:
            matrix[0, 0], matrix[1, 1], matrix[3, 3] = 1 / (half * aspect), 1 / half, 1.0
            matrix[2, 2], matrix[2, 3] = 2 / (near - far), (far + near) / (near - far)
        return matrix

    def turned(self, right: float, down: float, clockwise: float = 0.0) -> Camera:
        """Return the camera with the scene rotated by angles in degrees: its front side moves right, down, or clockwise in the picture."""
        rotation = _around(2, -clockwise) @ _around(0, down) @ _around(1, right) @ self.rotation
        # Make the matrix orthogonal again: rounding errors of many small rotations accumulate.
        u, _, v = np.linalg.svd(rotation)
        return replace(self, rotation=u @ v)

    def panned(self, right: float, down: float, height: float) -> Camera:
        """Return the camera moved so that the centre moves right and down by these pixels in a picture of `height` pixels."""
        scale = self.height / max(height, 1.0)
        return replace(self, shift=(self.shift[0] + right * scale, self.shift[1] - down * scale))

    def zoomed(self, factor: float, at: tuple[float, float] = (0.5, 0.5), aspect: float = 1.0) -> Camera:
        """Return the camera zoomed by a factor around position `at` of the picture: at the depth of the centre, the point there stays.

        `at` is a fraction of width and height from the upper left; `aspect` is width / height.
        """
        height = min(max(self.height / factor, _SMALLEST), _LARGEST)
        right, up = (at[0] - 0.5) * aspect, 0.5 - at[1]
        grown = height - self.height
        return replace(self, height=height, shift=(self.shift[0] + right * grown, self.shift[1] + up * grown))

    def centred(self, point: Points) -> Camera:
        """Return the camera moved so that a point is at the centre of the picture and is the new centre of rotation."""
        return replace(self, centre=np.asarray(point, np.float64).copy(), shift=(0.0, 0.0))

    def fitted(self, points: Points, aspect: float) -> Camera:
        """Return the camera moved and zoomed, but not rotated, to show all finite points, shape (n, 3), at this aspect ratio."""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)]
        sphere = sphere_around(points)
        if not len(points):
            return replace(self.centred(sphere.centre), height=2 * sphere.radius)
        at = points @ self.rotation.T
        low, high = at.min(axis=0), at.max(axis=0)
        x, y, z = (at - (low + high) / 2).T
        # Near points appear further from the centre, since the viewing pyramid narrows towards the eye.
        nearer = z * math.tan(_FIELD_OF_VIEW / 2) if self.is_perspective else np.zeros(len(z))
        fits = max(float((np.abs(y) + _AROUND + nearer).max()), float(((np.abs(x) + _AROUND) / max(aspect, 0.05) + nearer).max()))
        height = min(max(2 * fits * _MARGIN, _SMALLEST), _LARGEST)
        return replace(self.centred(self.rotation.T @ ((low + high) / 2)), height=height)

    def facing(self, points: Points) -> Camera:
        """Return the camera rotated so that the points, shape (n, 3), have their largest extent across and their smallest in depth."""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) < 3:
            return self
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
        # The signs of singular vectors depend on the linear algebra library: the largest component is made positive.
        for axis in axes[:2]:
            axis *= np.sign(axis[np.abs(axis).argmax()])
        axes[2] = np.cross(axes[0], axes[1])
        return replace(self, rotation=axes)


def _around(axis: int, degrees: float) -> NDArray[np.float64]:
    """Return the matrix of a rotation around an axis (0: x, 1: y, 2: z) of the view's frame."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix[i, i] = matrix[j, j] = cos
    matrix[i, j], matrix[j, i] = -sin, sin
    return matrix
