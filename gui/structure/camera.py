"""From where a scene is seen: rotation, centre, scale and perspective as numbers. Nothing here knows of Qt or OpenGL.

The view's frame has x to the right, y up and z towards the eye; a point is at ``rotation @ (point - centre)`` in it, and moved by `shift`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Camera", "Sphere", "sphere_around"]

_FIELD_OF_VIEW = math.radians(25.0)
"""Of the picture's height: little enough that what is near is not much larger than what is far."""
_SMALLEST, _LARGEST = 2.0, 20_000.0
_NEAREST = 0.02
"""Share of the distance to the centre before which nothing is drawn: the depths of a picture have few digits."""
_MARGIN, _AROUND = 1.06, 2.0
"""Room left around what is fitted, and Å that a ribbon stands off its Cα."""

Points = NDArray[np.floating]


@dataclass(frozen=True)
class Sphere:
    """What encloses a scene: centre in Å and radius."""

    centre: NDArray[np.float64]
    radius: float


def sphere_around(points: Points) -> Sphere:
    """A sphere around those of the points (n, 3) that are finite; a small one around the origin where there are none."""
    points = np.asarray(points, np.float64).reshape(-1, 3)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return Sphere(np.zeros(3), 10.0)
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    return Sphere(centre, max(float(np.linalg.norm(points - centre, axis=1).max()) + 2.0, 5.0))


@dataclass(frozen=True, eq=False)
class Camera:
    """A view of a scene; every move gives another camera, so that an earlier one can be taken back.

    Attributes
    ----------
    rotation : (3, 3), a rotation. centre : (3,) Å, what the scene turns around. shift : (2,) Å, by which that is moved in the picture.
    height : Å that the picture shows from top to bottom at the centre. is_perspective : what is far is smaller.
    """

    rotation: NDArray[np.float64] = field(default_factory=lambda: np.eye(3))
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    shift: tuple[float, float] = (0.0, 0.0)
    height: float = 60.0
    is_perspective: bool = True

    @property
    def distance(self) -> float:
        """Å from the eye to the centre."""
        return self.height / 2 / math.tan(_FIELD_OF_VIEW / 2)

    def seen(self, points: Points) -> NDArray[np.float64]:
        """Points (n, 3) in the view's frame, the shift included."""
        at: NDArray[np.float64] = (np.asarray(points, np.float64) - self.centre) @ self.rotation.T
        at[:, :2] += self.shift
        return at

    def projected(self, points: Points, width: float, height: float) -> NDArray[np.float64]:
        """(n, 3): x and y in pixels from the upper left of a picture, and the depth in Å from the eye, which is below 0 behind it."""
        at = self.seen(points)
        depth = self.distance - at[:, 2]
        scale = np.full(len(at), height / self.height)
        if self.is_perspective:
            with np.errstate(divide="ignore", invalid="ignore"):
                scale *= np.where(depth > 0, self.distance / depth, np.nan)
        return np.column_stack([width / 2 + at[:, 0] * scale, height / 2 - at[:, 1] * scale, depth])

    def depths(self, sphere: Sphere) -> tuple[float, float]:
        """The nearest and the farthest depth of a scene."""
        middle = self.distance - float(self.seen(sphere.centre[None])[0, 2])
        nearest = self.distance * _NEAREST if self.is_perspective else middle - sphere.radius
        near = max(middle - sphere.radius, nearest)
        return near, max(middle + sphere.radius, near + 1.0)

    def view_matrix(self) -> NDArray[np.float64]:
        """(4, 4), from the scene to the frame of the eye, which looks along -z."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation
        matrix[:3, 3] = -self.rotation @ self.centre + [*self.shift, -self.distance]
        return matrix

    def projection_matrix(self, aspect: float, near: float, far: float) -> NDArray[np.float64]:
        """(4, 4) in OpenGL's convention, for a picture `aspect` times as wide as high."""
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
        """Turned around the picture's axes, in degrees: what is in front goes to the right, down, and around the line of sight."""
        rotation = _around(2, -clockwise) @ _around(0, down) @ _around(1, right) @ self.rotation
        # A rotation of many small ones stays one.
        u, _, v = np.linalg.svd(rotation)
        return replace(self, rotation=u @ v)

    def panned(self, right: float, down: float, height: float) -> Camera:
        """Moved so that the centre's plane follows the pointer by so many pixels of a picture of this height."""
        scale = self.height / max(height, 1.0)
        return replace(self, shift=(self.shift[0] + right * scale, self.shift[1] - down * scale))

    def zoomed(self, factor: float, at: tuple[float, float] = (0.5, 0.5), aspect: float = 1.0) -> Camera:
        """Larger by a factor; what lies at a place of the picture (0 to 1 from the upper left) stays there, as far as it is at the centre's
        depth."""
        height = min(max(self.height / factor, _SMALLEST), _LARGEST)
        right, up = (at[0] - 0.5) * aspect, 0.5 - at[1]
        grown = height - self.height
        return replace(self, height=height, shift=(self.shift[0] + right * grown, self.shift[1] + up * grown))

    def centred(self, point: Points) -> Camera:
        """With this point in the middle, around which the scene turns from now on."""
        return replace(self, centre=np.asarray(point, np.float64).copy(), shift=(0.0, 0.0))

    def fitted(self, points: Points, aspect: float) -> Camera:
        """As near as all of the points (n, 3) that are finite are seen in a picture `aspect` times as wide as high; the direction stays."""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)]
        sphere = sphere_around(points)
        if not len(points):
            return replace(self.centred(sphere.centre), height=2 * sphere.radius)
        at = points @ self.rotation.T
        low, high = at.min(axis=0), at.max(axis=0)
        x, y, z = (at - (low + high) / 2).T
        # What is nearer to the eye is drawn larger: by as much as the pyramid of sight is narrower there.
        nearer = z * math.tan(_FIELD_OF_VIEW / 2) if self.is_perspective else np.zeros(len(z))
        fits = max(float((np.abs(y) + _AROUND + nearer).max()), float(((np.abs(x) + _AROUND) / max(aspect, 0.05) + nearer).max()))
        height = min(max(2 * fits * _MARGIN, _SMALLEST), _LARGEST)
        return replace(self.centred(self.rotation.T @ ((low + high) / 2)), height=height)

    def facing(self, points: Points) -> Camera:
        """Turned so that the points (n, 3) spread most across the picture and least in depth."""
        points = np.asarray(points, np.float64).reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) < 3:
            return self
        axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]
        # The same points give the same view: the signs of the axes are chosen, not the library's.
        for axis in axes[:2]:
            axis *= np.sign(axis[np.abs(axis).argmax()])
        axes[2] = np.cross(axes[0], axes[1])
        return replace(self, rotation=axes)


def _around(axis: int, degrees: float) -> NDArray[np.float64]:
    """The rotation around an axis of the picture."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix[i, i] = matrix[j, j] = cos
    matrix[i, j], matrix[j, i] = -sin, sin
    return matrix
