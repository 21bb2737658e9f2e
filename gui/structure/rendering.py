"""What a picture of a scene is made from, and what every renderer does: OpenGL (`opengl_renderer`) or the engine (`drawn_renderer`)."""

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

__all__ = ["FOG_SHARE", "Body", "Look", "Renderer", "RenderingError"]

FOG_SHARE = 0.6
"""Share of the background's colour in what is farthest."""


class RenderingError(Exception):
    """A renderer cannot draw here; the message says why, as the end of a sentence."""


@dataclass(frozen=True, eq=False)
class Body:
    """A closed surface and the colours of its vertices, (v, 3) uint8. A renderer keeps what it made of it as long as it is drawn."""

    mesh: Mesh
    colours: NDArray[np.uint8]


@dataclass(frozen=True)
class Look:
    """What a picture has besides bodies. `fog`: what is far takes the colour of the background, which tells depth."""

    background: QColor
    fog: bool = True


class Renderer(Protocol):
    """Draws bodies into a picture.

    Attributes
    ----------
    name : of what draws, to be told. maximum_triangles : that it draws quickly enough for the hand to be followed.
    needs_kernels : whether the kernels of the group ``drawing`` must be compiled before.
    """

    name: str
    maximum_triangles: int
    needs_kernels: bool

    def picture(self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, look: Look, size: QSize, *, is_smooth: bool) -> QImage:
        """The bodies, which lie within a sphere, in a picture of `size` pixels. `is_smooth`: edges are smoothed, which takes longer.

        Raises
        ------
        RenderingError : it cannot be drawn.
        """
        ...

    def close(self) -> None:
        """Let everything go."""
        ...
