"""Data of a picture, and the interface of renderers: OpenGL (`opengl_renderer`) or the engine (`drawn_renderer`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage

from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.structure.camera import Camera, Sphere

__all__ = ["FOG_SHARE", "Backdrop", "Body", "Renderer", "RenderingError"]

FOG_SHARE = 0.6
"""Share of the background colour at the largest depth."""


class RenderingError(Exception):
    """The renderer cannot draw; the message gives the reason, as the end of a sentence."""


@dataclass(frozen=True, eq=False)
class Body:
    """A closed surface and the colours of its vertices, shape (v, 3), uint8. Renderers cache its data while it is drawn."""

    mesh: Mesh
    colours: NDArray[np.uint8]


@dataclass(frozen=True)
class Backdrop:
    """Background and fog of a picture; fog blends distant parts with the background, which shows depth."""

    background: QColor
    fog: bool = True


class Renderer(Protocol):
    """Interface of renderers of bodies.

    Attributes
    ----------
    name : str
        Name shown to the user.
    maximum_triangles : int
        Maximum number of triangles for smooth interaction.
    needs_kernels : bool
        True if the kernels of the group ``drawing`` must be compiled first.
    """

    name: str
    maximum_triangles: int
    needs_kernels: bool

    def picture(
        self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, backdrop: Backdrop, size: QSize, *, is_smooth: bool
    ) -> QImage:
        """Return a picture of `size` pixels of bodies within a sphere. `is_smooth` enables antialiasing, which takes longer.

        Raises
        ------
        RenderingError
            The picture cannot be drawn.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
