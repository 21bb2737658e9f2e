"""Data of a picture, and the interface of the renderers: with OpenGL (`opengl_renderer`) or with the engine (`drawn_renderer`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage

from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.structure.camera import Camera, Sphere

FOG_SHARE = 0.6
"""Fraction of the background colour that fog mixes into the colours at the largest depth."""


class RenderingError(Exception):
    """Exception: the renderer cannot draw; the message is the reason in lower case without a full stop, for use within a sentence."""


@dataclass(frozen=True, eq=False)
class Body:
    """Closed surface, and the RGB colours of its vertices, shape (v, 3), uint8. Renderers cache data by object identity."""

    mesh: Mesh
    colours: NDArray[np.uint8]


@dataclass(frozen=True)
class Backdrop:
    """Background colour and fog of a picture; fog shows depth by blending distant parts with the background."""

    background: QColor
    fog: bool = True


class Renderer(Protocol):
    """Interface of renderers, which draw surfaces (`Body`) into pictures.

    Attributes
    ----------
    name : str
        Name shown to the user.
    maximum_triangles : int
        Maximum number of triangles that the renderer draws fast enough for interaction.
    needs_kernels : bool
        True if the kernels of the group ``drawing`` must be compiled before the first picture.
    """

    name: str
    maximum_triangles: int
    needs_kernels: bool

    def picture(
        self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, backdrop: Backdrop, size: QSize, *, is_smooth: bool
    ) -> QImage:
        """Return a picture of `size` pixels; `sphere` encloses all bodies, and `is_smooth` enables antialiasing, which takes longer.

        Raises
        ------
        RenderingError
            If the picture cannot be drawn.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
