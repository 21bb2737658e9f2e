"""Bodies drawn by the engine, without OpenGL: on the screen where there is none, and in files everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage

from proteoscope.engine.structures import projection
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.structure.camera import Camera, Sphere
from proteoscope.gui.structure.rendering import FOG_SHARE, Body, Look, RenderingError

__all__ = ["DrawnRenderer", "finest"]

_MAXIMUM_TRIANGLES = 100_000
_MAXIMUM_ON_SCREEN = 700_000
"""Pixels that are drawn while a hand turns the scene; a larger picture is drawn coarser, and anew when the hand rests."""
_SMOOTH = 2


class DrawnRenderer:
    """Draws with the processor alone; for any thread."""

    name = "without OpenGL"
    maximum_triangles = _MAXIMUM_TRIANGLES
    needs_kernels = True

    def picture(self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, look: Look, size: QSize, *, is_smooth: bool) -> QImage:
        """See `Renderer`. What is not smooth may have larger pixels."""
        width, height = size.width(), size.height()
        if is_smooth:
            return _picture(bodies, camera, look, width, height, min(_SMOOTH, finest(size)))
        coarser = max(1.0, math.sqrt(width * height / _MAXIMUM_ON_SCREEN))
        image = _picture(bodies, camera, look, max(1, round(width / coarser)), max(1, round(height / coarser)), 1)
        return image if coarser == 1.0 else image.scaled(size)

    def close(self) -> None:
        """There is nothing to let go."""


def finest(size: QSize) -> int:
    """How many times finer a picture of this size may be drawn, 4 at most.

    Raises
    ------
    RenderingError : it is too large to be drawn at all.
    """
    n_pixels = max(size.width(), 1) * max(size.height(), 1)
    if n_pixels > projection.MAXIMUM_PIXELS:
        raise RenderingError(f"a picture has at most {projection.MAXIMUM_PIXELS // 1_000_000} million pixels")
    return min(4, math.isqrt(projection.MAXIMUM_PIXELS // n_pixels))


def _picture(bodies: Sequence[Body], camera: Camera, look: Look, width: int, height: int, finer: int) -> QImage:
    meshes = [body.mesh for body in bodies]
    mesh = Mesh.joined(meshes)
    # Each vertex has a colour of its own.
    mesh = Mesh(mesh.vertices, mesh.normals, mesh.triangles, np.arange(len(mesh.vertices), dtype=np.int32))
    colours = np.concatenate([np.empty((0, 3), np.uint8), *(body.colours for body in bodies)])
    shift = np.array([*camera.shift, 0.0])
    seen_from = projection.Projection(
        camera.rotation,
        camera.centre - camera.rotation.T @ shift,
        height / camera.height,
        camera.distance if camera.is_perspective else math.inf,
    )
    background = look.background.red(), look.background.green(), look.background.blue()
    picture = projection.drawn(
        mesh, colours, seen_from, width, height, background=background, fog=FOG_SHARE if look.fog else 0.0, finer=finer
    )
    picture = np.ascontiguousarray(picture)
    # Qt does not keep the array.
    return QImage(picture.data, width, height, 3 * width, QImage.Format.Format_RGB888).convertToFormat(QImage.Format.Format_RGB32)
