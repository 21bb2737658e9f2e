"""Renderer that draws bodies with the CPU, without OpenGL: for picture files, and for displays without OpenGL."""

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage

from proteoscope.engine.structures import projection
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.structure.camera import Camera, Sphere
from proteoscope.gui.structure.rendering import FOG_SHARE, Backdrop, Body, RenderingError

_MAXIMUM_TRIANGLES = 100_000
_MAXIMUM_ON_SCREEN = 700_000
"""Maximum number of pixels of pictures that are not smooth; larger pictures are drawn at a lower resolution and scaled."""
_SMOOTH = 2


class DrawnRenderer:
    """Renderer that draws with the CPU only; usable in any thread."""

    name = "without OpenGL"
    maximum_triangles = _MAXIMUM_TRIANGLES
    needs_kernels = True

    def picture(
        self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, backdrop: Backdrop, size: QSize, *, is_smooth: bool
    ) -> QImage:
        """Return a picture (see `Renderer`). A picture that is not smooth may be drawn at a lower resolution and scaled."""
        width, height = size.width(), size.height()
        if is_smooth:
            return _picture(bodies, camera, backdrop, width, height, min(_SMOOTH, finest(size)))
        coarser = max(1.0, math.sqrt(width * height / _MAXIMUM_ON_SCREEN))
        image = _picture(bodies, camera, backdrop, max(1, round(width / coarser)), max(1, round(height / coarser)), 1)
        return image if coarser == 1.0 else image.scaled(size)

    def close(self) -> None:
        """Do nothing, since the renderer holds no resources."""


def finest(size: QSize) -> int:
    """Return the maximum supersampling factor, 1 to 4, with which a picture of this size in pixels can be drawn.

    Raises
    ------
    RenderingError
        If the picture is too large.
    """
    n_pixels = max(size.width(), 1) * max(size.height(), 1)
    if n_pixels > projection.MAXIMUM_PIXELS:
        raise RenderingError(f"a picture has at most {projection.MAXIMUM_PIXELS // 1_000_000} million pixels")
    return min(4, math.isqrt(projection.MAXIMUM_PIXELS // n_pixels))


def _picture(bodies: Sequence[Body], camera: Camera, backdrop: Backdrop, width: int, height: int, finer: int) -> QImage:
    meshes = [body.mesh for body in bodies]
    mesh = Mesh.joined(meshes)
    # The engine colours by residue: each vertex becomes its own residue to have its own colour.
    mesh = Mesh(mesh.vertices, mesh.normals, mesh.triangles, np.arange(len(mesh.vertices), dtype=np.int32))
    colours = np.concatenate([np.empty((0, 3), np.uint8), *(body.colours for body in bodies)])
    shift = np.array([*camera.shift, 0.0])
    seen_from = projection.Projection(
        camera.rotation,
        camera.centre - camera.rotation.T @ shift,
        height / camera.height,
        camera.distance if camera.is_perspective else math.inf,
    )
    background = backdrop.background.red(), backdrop.background.green(), backdrop.background.blue()
    picture = projection.drawn(
        mesh, colours, seen_from, width, height, background=background, fog=FOG_SHARE if backdrop.fog else 0.0, finer=finer
    )
    picture = np.ascontiguousarray(picture)
    # The conversion copies the pixels: Qt does not hold a reference to the array.
    return QImage(picture.data, width, height, 3 * width, QImage.Format.Format_RGB888).convertToFormat(QImage.Format.Format_RGB32)
