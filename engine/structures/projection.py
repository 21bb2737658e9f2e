"""Rendering of meshes without OpenGL: camera, light, fog, and triangles drawn into an image with a depth buffer.

Without a depth buffer, triangles would have to be painted from back to front. For intersecting chains, such as superposed chains, there is
no such order, and painting polygons one by one in a window takes ten times as long. Pictures for files are rendered in the same way, in any
size.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.structures.meshes import Mesh

__all__ = ["AMBIENT", "LIGHT", "MAXIMUM_PIXELS", "Projected", "Projection", "drawn", "projected"]

MAXIMUM_PIXELS = 1 << 26
"""Maximum number of pixels of a picture, including oversampling; each pixel needs 7 bytes."""
AMBIENT = 0.4
"""Fraction of the light that is ambient."""
LIGHT = (-0.35, 0.45, 0.82)
"""Direction to the light source relative to the viewer: x to the right, y up, z towards the viewer."""


@dataclass(frozen=True)
class Projection:
    """View of a scene.

    Attributes
    ----------
    rotation : ndarray, shape (3, 3)
        Rotation from scene to viewer: x right, y up, z towards the viewer.
    centre : ndarray, shape (3,)
        Coordinates in Å at the centre of the picture.
    scale : float
        Number of pixels per Å at the centre.
    distance : float
        Distance from the eye to the centre in Å; infinite without perspective.
    """

    rotation: NDArray[np.floating]
    centre: NDArray[np.floating]
    scale: float
    distance: float = float("inf")


class Projected(NamedTuple):
    """Coordinates projected into a picture.

    Attributes
    ----------
    x, y : ndarray of float32, shape (n,)
        Pixels to the right and down from the upper left corner; NaN for positions that are not in front of the eye.
    depth : ndarray of float32, shape (n,)
        Distance from the centre of the scene towards the viewer, Å.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    depth: NDArray[np.float32]


def projected(position: NDArray[np.floating], camera: Projection, width: int, height: int) -> Projected:
    """Project coordinates into a picture.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates in Å.
    camera : Projection
        View.
    width, height : int
        Size of the picture in pixels.
    """
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
    """Render a mesh.

    Parameters
    ----------
    mesh : Mesh
        Triangles to render.
    colours : ndarray of uint8, shape (n, 3)
        Colours, indexed by `mesh.residue`.
    camera : Projection
        View, with a scale in pixels of the final picture.
    width, height : int
        Size of the picture in pixels.
    background : tuple of int
        Red, green and blue, 0 to 255.
    fog : float
        Fraction of the background colour at the maximum distance, 0 to 1.
    finer : int
        Oversampling factor for smooth edges.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        Picture.

    Raises
    ------
    ValueError
        If the picture has no pixels, or more than `MAXIMUM_PIXELS`.
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
    """Return the colours of vertices after adding light and fog, (v, 3)."""
    lamp = np.array(LIGHT) / np.linalg.norm(LIGHT)
    light = mesh.normals @ (np.asarray(camera.rotation).T @ lamp).astype(np.float32)
    light = AMBIENT + (1.0 - AMBIENT) * np.maximum(light, 0.0)
    shaded: NDArray[np.float32] = colours.astype(np.float32)[mesh.residue] * light[:, None]
    low, high = float(depth.min()), float(depth.max())
    if fog > 0.0 and high > low:
        part = ((high - depth) * np.float32(fog / (high - low)))[:, None]
        shaded += part * (np.array(background, np.float32) - shaded)
    return shaded
