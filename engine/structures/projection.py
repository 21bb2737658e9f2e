"""Pictures of meshes without OpenGL: a camera, its light and its fog, and triangles drawn into an image.

The nearest triangle counts at each pixel. Sorting triangles by depth and painting them one over the other would need no buffer of depths,
but chains that lie in each other, as superposed ones do, have no such order, and a window takes ten times as long to paint
polygons one by one. A picture may have any size, so that files are written from it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.structures.meshes import Mesh

__all__ = ["AMBIENT", "LIGHT", "MAXIMUM_PIXELS", "Projected", "Projection", "drawn", "projected"]

MAXIMUM_PIXELS = 1 << 26
"""Maximum pixels of a picture during drawing, oversampling included: 7 bytes each."""
AMBIENT = 0.4
"""The share of light that comes from everywhere."""
LIGHT = (-0.35, 0.45, 0.82)
"""Direction to the lamp, which goes with the viewer: x to the right, y up, z to the viewer."""


@dataclass(frozen=True)
class Projection:
    """View of a scene.

    Attributes
    ----------
    rotation
        (3, 3), from scene to viewer: x right, y up, z towards the viewer.
    centre
        (3,) Å, at the middle of the picture.
    scale
        Pixels per ångström at the centre.
    distance
        Å from eye to centre; infinite without perspective.
    """

    rotation: NDArray[np.floating]
    centre: NDArray[np.floating]
    scale: float
    distance: float = float("inf")


class Projected(NamedTuple):
    """Positions in a picture: x, y (n,) pixels from the upper left, depth (n,) Å towards the viewer; NaN after the eye."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    depth: NDArray[np.float32]


def projected(position: NDArray[np.floating], camera: Projection, width: int, height: int) -> Projected:
    """Project positions (n, 3) into a picture of a size in pixels."""
    offset = np.asarray(position, np.float32) - np.asarray(camera.centre, np.float32)
    x, y, depth = np.asarray(camera.rotation, np.float32) @ offset.T
    scale: Any = np.float32(camera.scale)
    if np.isfinite(camera.distance):
        left = np.float32(camera.distance) - depth
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(left > 0.01 * camera.distance, scale * np.float32(camera.distance) / left, np.float32(np.nan))
    return Projected(np.float32(width / 2) + scale * x, np.float32(height / 2) - scale * y, depth)


def drawn(
    mesh: Mesh,
    colours: NDArray[np.uint8],
    camera: Projection,
    width: int,
    height: int,
    *,
    background: tuple[int, int, int] = (255, 255, 255),
    fog: float = 0.6,
    finer: int = 1,
) -> NDArray[np.uint8]:
    """Render a mesh to (height, width, 3) uint8.

    Parameters
    ----------
    colours
        (n, 3), indexed by `mesh.residue`.
    fog
        Fraction of background colour at the far end, 0 to 1.
    finer
        Oversampling factor for smooth edges; the camera refers to the final picture.

    Raises
    ------
    ValueError
        The picture has no pixels, or more than `MAXIMUM_PIXELS`.
    """
    if min(width, height, finer) < 1 or width * height * finer * finer > MAXIMUM_PIXELS:
        raise ValueError(f"a picture of {width} x {height} pixels, {finer} times finer, cannot be drawn")
    image = np.empty((height * finer, width * finer, 3), np.uint8)
    image.reshape(len(image), -1)[:] = np.tile(np.array(background, np.uint8), width * finer)
    if len(mesh.triangles):
        camera = Projection(camera.rotation, camera.centre, camera.scale * finer, camera.distance)
        x, y, depth = projected(mesh.vertices, camera, width * finer, height * finer)
        nearest = np.full(image.shape[:2], -np.inf, np.float32)
        shaded = _shaded(mesh, colours, camera, depth, background, fog)
        kernels.cpu.rasterisation.draw_triangles(x, y, depth, shaded, mesh.triangles, image, nearest)
    if finer == 1:
        return image
    mean: NDArray[np.uint8] = image.reshape(height, finer, width, finer, 3).mean(axis=(1, 3), dtype=np.float32).round().astype(np.uint8)
    return mean


def _shaded(
    mesh: Mesh, colours: NDArray[np.uint8], camera: Projection, depth: NDArray[np.float32], background: tuple[int, int, int], fog: float
) -> NDArray[np.float32]:
    """(v, 3) float32, colours of vertices in light and fog."""
    lamp = np.array(LIGHT) / np.linalg.norm(LIGHT)
    light = mesh.normals @ (np.asarray(camera.rotation).T @ lamp).astype(np.float32)
    light = AMBIENT + (1.0 - AMBIENT) * np.maximum(light, 0.0)
    shaded = colours.astype(np.float32)[mesh.residue] * light[:, None]
    low, high = float(depth.min()), float(depth.max())
    if fog > 0.0 and high > low:
        part = ((high - depth) * np.float32(fog / (high - low)))[:, None]
        shaded += part * (np.array(background, np.float32) - shaded)
    return shaded
