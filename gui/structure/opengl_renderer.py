"""Renderer that draws bodies with OpenGL into an off-screen picture, which a widget paints.

A `QOpenGLWidget` is not used: when the first one appears, Qt closes and reopens the window (half a second, losing the focus), and draws
the whole window through OpenGL from then on. Reading back a picture of a separate context takes 1 ms for 800 x 600 pixels. If only colours
have changed since the last picture, only the triangles with changed colours are drawn again. OpenGL functions are taken from Qt's context,
which supports GLX, EGL, WGL and Apple's interface.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt, qAddPostRoutine
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QImage,
    QMatrix3x3,
    QMatrix4x4,
    QOffscreenSurface,
    QOpenGLContext,
    QSurfaceFormat,
    QVector3D,
    QVector4D,
)
from PySide6.QtOpenGL import QOpenGLBuffer, QOpenGLFramebufferObject, QOpenGLFramebufferObjectFormat, QOpenGLShader, QOpenGLShaderProgram
from shiboken6 import VoidPtr

from proteoscope.engine.structures.projection import AMBIENT, LIGHT
from proteoscope.gui.structure.camera import Camera, Sphere
from proteoscope.gui.structure.rendering import FOG_SHARE, Backdrop, Body, RenderingError

NO_OPENGL = "PROTEOSCOPE_NO_OPENGL"
"""Environment variable that disables OpenGL, for broken drivers."""
_WITHOUT = ("offscreen", "minimal", "vnc", "linuxfb")
"""Names of Qt platforms without OpenGL."""
_OLDEST = (2, 1)
_SAMPLES = 4
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software", "gdi generic")
_MAXIMUM_TRIANGLES, _MAXIMUM_IN_SOFTWARE = 1_000_000, 110_000
"""Maximum number of triangles with a GPU and with software rendering, which draws 96,000 triangles in 24 ms on two cores."""
_LARGEST_PICTURE, _LARGEST_DOUBLED = 8192, 4096
"""Maximum number of pixels along a side of a picture, and of a smooth picture that software rendering draws at twice its size."""

_COLOUR_BUFFER, _DEPTH_BUFFER, _DEPTH_TEST, _CULL_FACE, _TRIANGLES = 0x4000, 0x100, 0x0B71, 0x0B44, 0x0004
_LESS, _LESS_OR_EQUAL = 0x0201, 0x0203
_FLOAT, _BYTE, _UNSIGNED_BYTE, _UNSIGNED_INT, _RENDERER, _NO_ERROR = 0x1406, 0x1400, 0x1401, 0x1405, 0x1F01, 0
_FEW_TRIANGLES = 8000
"""Maximum total number of triangles of the smallest bodies, such as side chains, which are drawn anew in each picture."""
_POINT_BYTES = 16
"""Bytes of a vertex: three floats for the position, four bytes for the normal."""

_VERTEX_SHADER = """
attribute highp vec3 place;
attribute mediump vec3 normal;
attribute lowp vec3 colour;
uniform highp mat4 projected;
uniform mediump mat3 turned;
uniform highp vec4 depth;
uniform mediump float fogShare;
varying lowp vec3 tone;
varying mediump vec3 facing;
varying mediump float haze;
void main() {
    highp vec4 at = vec4(place, 1.0);
    facing = turned * normal;
    tone = colour;
    // Depth: 0 at the start of the fog, 1 at its end.
    haze = fogShare * clamp(dot(depth, at), 0.0, 1.0);
    gl_Position = projected * at;
}
"""
_FRAGMENT_SHADER = f"""
uniform lowp vec3 background;
varying lowp vec3 tone;
varying mediump vec3 facing;
varying mediump float haze;
void main() {{
    mediump float light = max(dot(normalize(facing), normalize(vec3{LIGHT})), 0.0);
    gl_FragColor = vec4(mix(tone * ({AMBIENT} + {1.0 - AMBIENT} * light), background, haze), 1.0);
}}
"""


@dataclass(eq=False)
class _Uploaded:
    """Body whose mesh and colours are in OpenGL buffers."""

    body: Body
    points: QOpenGLBuffer
    colours: QOpenGLBuffer
    triangles: QOpenGLBuffer
    n_indices: int
    drawn: Body | None = None
    """The body with the colours that the cached picture shows, or None."""

    def changed(self) -> NDArray[np.uint32]:
        """Return three vertex indices for each triangle whose colours differ from the cached picture, as an array of shape (k,)."""
        if self.drawn is None or self.drawn is self.body:
            return np.zeros(0, np.uint32)
        has_new_colour = (self.drawn.colours != self.body.colours).any(axis=1)
        triangles = self.body.mesh.triangles
        return np.ascontiguousarray(triangles[has_new_colour[triangles].any(axis=1)], np.uint32).ravel()

    def colour(self, body: Body) -> None:
        """Replace the colours by the colours of another body, which has the same mesh."""
        if body is not self.body:
            self.body = body
            content = _colours(body).tobytes()
            self.colours.bind()
            # Allocate a new buffer instead of overwriting the old one, which would wait until the GPU has drawn it.
            self.colours.allocate(content, len(content))
            self.colours.release()

    def destroy(self) -> None:
        for buffer in (self.points, self.colours, self.triangles):
            buffer.destroy()


class _Seen(NamedTuple):
    """Camera and display settings of a picture, used to detect changes."""

    camera: Camera
    sphere: Sphere
    backdrop: Backdrop
    size: QSize


class _Last(NamedTuple):
    """Settings and bodies of the cached picture."""

    seen: _Seen
    bodies: list[_Uploaded]

    def is_same(self, seen: _Seen, bodies: list[_Uploaded]) -> bool:
        """Return True if the cached picture has the same view and the same bodies, regardless of their colours."""
        mine = self.seen
        is_same_view = (
            mine.camera is seen.camera and mine.sphere is seen.sphere and mine.backdrop == seen.backdrop and mine.size == seen.size
        )
        return is_same_view and len(bodies) == len(self.bodies) and all(a is b for a, b in zip(bodies, self.bodies, strict=True))


class OpenGLRenderer:
    """Renderer with its own OpenGL context; use it only in the window's thread.

    Raises
    ------
    RenderingError
        If OpenGL is unavailable or too old.
    """

    needs_kernels = False

    def __init__(self) -> None:
        self._surface = offscreen_surface()
        self._context = QOpenGLContext()
        self._context.setFormat(self._surface.requestedFormat())
        self._uploaded: dict[tuple[int, int], _Uploaded] = {}
        self._frames: dict[str, QOpenGLFramebufferObject] = {}
        self._last: _Last | None = None
        if not self._context.create() or not self._context.makeCurrent(self._surface):
            raise RenderingError("OpenGL is not available on this display")
        try:
            self._prepare()
        finally:
            self._context.doneCurrent()

    @property
    def n_buffers(self) -> int:
        """Number of OpenGL buffers in use."""
        return 3 * len(self._uploaded) + len(self._frames)

    def picture(
        self, bodies: Sequence[Body], camera: Camera, sphere: Sphere, backdrop: Backdrop, size: QSize, *, is_smooth: bool
    ) -> QImage:
        """Return a picture (see `Renderer`); raise RenderingError for pictures above the size limit."""
        if max(size.width(), size.height()) > _LARGEST_PICTURE:
            raise RenderingError(f"pictures have at most {_LARGEST_PICTURE} pixels on a side")
        with self._current():
            uploaded = self._uploaded_bodies(bodies)
            seen = _Seen(camera, sphere, backdrop, size)
            frame = self._drawn_whole(uploaded, seen) if is_smooth else self._drawn_where_changed(uploaded, seen)
            if self._functions.glGetError() != _NO_ERROR:
                self._last = None
                raise RenderingError("OpenGL reported an error")
            image = frame.toImage()
            frame.release()
        return image if image.size() == size else image.scaled(size, mode=Qt.TransformationMode.SmoothTransformation)

    def _drawn_whole(self, bodies: Sequence[_Uploaded], seen: _Seen) -> QOpenGLFramebufferObject:
        """Return an antialiased picture: multisampled, or of twice the size, to be scaled down.

        Software rendering takes long to resolve its first multisampled picture, since it then compiles code for reading such pictures.
        """
        is_doubled = self._is_software and max(seen.size.width(), seen.size.height()) <= _LARGEST_DOUBLED
        if is_doubled:
            seen = seen._replace(size=seen.size * 2)
        frame = self._bound("smooth", seen.size, 0 if is_doubled else _SAMPLES)
        self._draw([(body, None) for body in bodies], seen)
        return frame

    def _drawn_where_changed(self, bodies: Sequence[_Uploaded], seen: _Seen) -> QOpenGLFramebufferObject:
        """Return a picture without antialiasing, redrawing only changed triangles if possible."""
        few = _small(bodies) if QOpenGLFramebufferObject.hasOpenGLFramebufferBlit() else []
        many = [body for body in bodies if body not in few]
        frame = self._bound("plain", seen.size)
        if not many:
            self._last = None
            self._draw([(body, None) for body in few], seen)
            return frame
        if self._last is not None and self._last.is_same(seen, many):
            self._draw([(body, corners) for body in many if len(corners := body.changed())], seen, clears=False)
        else:
            self._draw([(body, None) for body in many], seen)
        self._last = _Last(seen, many)
        for drawn_body in many:
            drawn_body.drawn = drawn_body.body
        if not few:
            return frame
        frame.release()
        above = self._bound("above", seen.size)
        QOpenGLFramebufferObject.blitFramebuffer(above, frame, _COLOUR_BUFFER | _DEPTH_BUFFER)
        above.bind()
        self._draw([(body, None) for body in few], seen, clears=False)
        return above

    def close(self) -> None:
        """Delete all buffers."""
        if self._context.isValid() and self._context.makeCurrent(self._surface):
            for uploaded in self._uploaded.values():
                uploaded.destroy()
            self._uploaded.clear()
            self._frames.clear()
            self._last = None
            self._program.removeAllShaders()
            self._context.doneCurrent()

    def _prepare(self) -> None:
        self._functions = self._context.functions()
        version = self._context.format().version()
        if version < _OLDEST and not self._context.isOpenGLES():
            raise RenderingError(f"this display has OpenGL {version[0]}.{version[1]}, but {_OLDEST[0]}.{_OLDEST[1]} is required")
        self.name = f"OpenGL, {self._functions.glGetString(_RENDERER)}"
        self._is_software = any(word in self.name.lower() for word in _SOFTWARE)
        self.maximum_triangles = _MAXIMUM_IN_SOFTWARE if self._is_software else _MAXIMUM_TRIANGLES
        self._program = QOpenGLShaderProgram()
        kinds = QOpenGLShader.ShaderTypeBit
        is_made = (
            self._program.addShaderFromSourceCode(kinds.Vertex, _VERTEX_SHADER)
            and self._program.addShaderFromSourceCode(kinds.Fragment, _FRAGMENT_SHADER)
            and self._program.link()
        )
        if not is_made:
            raise RenderingError(f"OpenGL rejected the shaders ({self._program.log().strip()})")

    @contextmanager
    def _current(self) -> Iterator[None]:
        if not self._context.makeCurrent(self._surface):
            raise RenderingError("the OpenGL context was lost")
        try:
            yield
        finally:
            self._context.doneCurrent()

    def _bound(self, name: str, size: QSize, n_samples: int = 0) -> QOpenGLFramebufferObject:
        """Return the frame buffer of this name, bound for drawing; it is cached until another size is requested.

        Raises
        ------
        RenderingError
            If OpenGL does not support a frame buffer of this size.
        """
        frame = self._frames.get(name)
        if frame is None or frame.size() != size:
            wanted = QOpenGLFramebufferObjectFormat()
            wanted.setAttachment(QOpenGLFramebufferObject.Attachment.Depth)
            wanted.setSamples(n_samples)
            self._frames.pop(name, None)
            frame = self._frames[name] = QOpenGLFramebufferObject(size, wanted)
        if not frame.isValid() or not frame.bind():
            raise RenderingError("OpenGL does not support a picture of this size")
        return frame

    def _uploaded_bodies(self, bodies: Sequence[Body]) -> list[_Uploaded]:
        """Upload bodies that are not in OpenGL memory yet, delete bodies that are no longer drawn, and return the uploaded bodies in order.

        A mesh that several bodies share is uploaded once for each body.
        """
        times: dict[int, int] = {}
        wanted = {}
        for body in bodies:
            mesh = id(body.mesh)
            times[mesh] = times.get(mesh, 0) + 1
            wanted[mesh, times[mesh]] = body
        for key in [key for key in self._uploaded if key not in wanted]:
            self._uploaded.pop(key).destroy()
        for key, body in wanted.items():
            if key in self._uploaded:
                self._uploaded[key].colour(body)
            else:
                self._uploaded[key] = _uploaded(body)
        return [self._uploaded[key] for key in wanted]

    def _draw(self, bodies: Sequence[tuple[_Uploaded, NDArray[np.uint32] | None]], seen: _Seen, *, clears: bool = True) -> None:
        """Draw bodies into the bound frame buffer: all triangles, or only the triangles with the given vertex indices.

        `clears` is True to clear the buffer first.
        """
        camera, sphere, backdrop, size = seen
        gl, program, background = self._functions, self._program, backdrop.background
        gl.glViewport(0, 0, size.width(), size.height())
        if clears:
            gl.glClearColor(background.redF(), background.greenF(), background.blueF(), 1.0)
            gl.glClear(_COLOUR_BUFFER | _DEPTH_BUFFER)
        gl.glEnable(_DEPTH_TEST)
        # Bodies are closed: back faces are never visible and would take two thirds of the time.
        gl.glEnable(_CULL_FACE)
        program.bind()
        near, far = camera.depths(sphere)
        aspect = size.width() / max(size.height(), 1)
        view = camera.view_matrix()
        whole = camera.projection_matrix(aspect, near, far) @ view
        # Coefficients of the depth for the fog: 0 at the near plane, 1 at the far plane; the eye looks along -z.
        depth = -(view[2] + [0.0, 0.0, 0.0, near]) / (far - near)
        program.setUniformValue(program.uniformLocation("projected"), QMatrix4x4(whole.ravel().tolist()))
        program.setUniformValue(program.uniformLocation("turned"), QMatrix3x3(view[:3, :3].ravel().tolist()))
        program.setUniformValue(program.uniformLocation("depth"), QVector4D(*depth.tolist()))
        program.setUniformValue(program.uniformLocation("background"), _vector(background))
        program.setUniformValue1f(program.uniformLocation("fogShare"), FOG_SHARE if backdrop.fog else 0.0)
        position, normal, colour = (program.attributeLocation(name) for name in ("place", "normal", "colour"))
        for at in (position, normal, colour):
            program.enableAttributeArray(at)
        for body, corners in bodies:
            body.points.bind()
            program.setAttributeBuffer(position, _FLOAT, 0, 3, _POINT_BYTES)
            program.setAttributeBuffer(normal, _BYTE, 12, 3, _POINT_BYTES)
            body.colours.bind()
            program.setAttributeBuffer(colour, _UNSIGNED_BYTE, 0, 3, 4)
            triangles = body.triangles if corners is None else _buffer(QOpenGLBuffer.Type.IndexBuffer, corners)
            triangles.bind()
            # Redrawn triangles have the depths already in the buffer, so that equal depths must pass.
            gl.glDepthFunc(_LESS if corners is None else _LESS_OR_EQUAL)
            n = body.n_indices if corners is None else len(corners)
            gl.glDrawElements(_TRIANGLES, n, _UNSIGNED_INT, VoidPtr(0))  # type: ignore[arg-type]
            if corners is not None:
                triangles.destroy()
        for at in (position, normal, colour):
            program.disableAttributeArray(at)
        program.release()


def offscreen_surface() -> QOffscreenSurface:
    """Return the surface that all renderers share. Creating it loads the OpenGL driver, which takes longer than creating a renderer.

    Raises
    ------
    RenderingError
        If the platform has no OpenGL.
    """
    _check_platform_has_opengl()
    return _surface()


@cache
def _surface() -> QOffscreenSurface:
    wanted = QSurfaceFormat()
    wanted.setDepthBufferSize(24)
    surface = QOffscreenSurface()
    surface.setFormat(wanted)
    surface.create()
    return surface


qAddPostRoutine(_surface.cache_clear)


def _small(bodies: Sequence[_Uploaded]) -> list[_Uploaded]:
    """Return the smallest bodies that have at most `_FEW_TRIANGLES` triangles in total, in their original order."""
    sizes = np.array([body.n_indices // 3 for body in bodies], np.int64)
    by_size = np.argsort(sizes, kind="stable")
    few = by_size[np.cumsum(sizes[by_size]) <= _FEW_TRIANGLES]
    return [bodies[k] for k in np.sort(few).tolist()]


def _check_platform_has_opengl() -> None:
    if os.environ.get(NO_OPENGL, "") not in ("", "0"):
        raise RenderingError(f"{NO_OPENGL} is set")
    platform = QGuiApplication.platformName()
    if platform in _WITHOUT:
        raise RenderingError(f"Qt's platform {platform} has no OpenGL")


def _uploaded(body: Body) -> _Uploaded:
    mesh = body.mesh
    points = np.zeros(len(mesh.vertices), [("place", "<f4", 3), ("normal", "i1", 4)])
    points["place"] = mesh.vertices
    points["normal"][:, :3] = np.rint(mesh.normals * 127)
    kinds = QOpenGLBuffer.Type
    triangles = np.ascontiguousarray(mesh.triangles, np.uint32)
    return _Uploaded(
        body,
        _buffer(kinds.VertexBuffer, points),
        _buffer(kinds.VertexBuffer, _colours(body)),
        _buffer(kinds.IndexBuffer, triangles),
        triangles.size,
    )


def _colours(body: Body) -> NDArray:
    """Return the colours as four bytes per vertex, the last byte unused; copy only if the body stores them in another layout."""
    packed: NDArray | None = body.colours.base
    if packed is not None and packed.dtype == np.uint32 and packed.shape == (len(body.mesh.vertices),):
        return packed
    colours = np.zeros((len(body.mesh.vertices), 4), np.uint8)
    colours[:, :3] = body.colours
    return colours


def _buffer(kind: QOpenGLBuffer.Type, values: NDArray) -> QOpenGLBuffer:
    buffer = QOpenGLBuffer(kind)
    content = values.tobytes()
    if not buffer.create() or not buffer.bind():
        raise RenderingError("OpenGL is out of memory")
    buffer.allocate(content, len(content))
    buffer.release()
    return buffer


def _vector(colour: QColor) -> QVector3D:
    return QVector3D(colour.redF(), colour.greenF(), colour.blueF())
