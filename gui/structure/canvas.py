"""Interactive picture of a scene, drawn with OpenGL, or by the CPU if OpenGL is unavailable."""
# ruff: noqa: N802, N815 - Qt gives these names

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.structures.colouring import Legend
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.actions import delayed, repeated
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.scrolling_layout import scaled_pixels
from proteoscope.gui.structure.camera import Camera, Sphere, sphere_around
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer
from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer, offscreen_surface
from proteoscope.gui.structure.overlay import OverlayChoice, best_corner, paint_overlay
from proteoscope.gui.structure.rendering import Backdrop, Body, Renderer, RenderingError
from proteoscope.gui.structure.scene import Pick, Scene
from proteoscope.gui.undo import Change, forget_changes, record, take_back_last

BACKGROUNDS = {"theme": "Same as window", "white": "White", "grey": "Grey", "black": "Black"}
_FIXED = {"white": "#ffffff", "grey": "#808080", "black": "#000000"}
_DEGREES_OF_PIXEL = 0.5
_KEY_DEGREES, _KEY_PIXELS, _KEY_ZOOM, _WHEEL_ZOOM = 10.0, 30.0, 1.2, 1.15
_SPIN_MS, _SPIN_DEGREES = 40, 1.5
_SMOOTH_AFTER_MS = 160
_PICK_PIXELS, _SAME_PLACE_PIXELS = 14.0, 5.0
_SMALL = QSize(192, 192)
_EMPTY = "Select a hit to see it superposed on its query."
_PREPARING = "Preparing software rendering…"


class _Made(NamedTuple):
    """Data for drawing a scene, cached until the scene changes."""

    bodies: list[Body]
    sphere: Sphere
    legend: Legend


def _sample() -> Body:
    """Return a triangle at the origin, for `_draw_sample`."""
    corners = np.array([[-9, -9, 0], [9, -9, 0], [0, 9, 0]], np.float32)
    normals = np.tile(np.array([0, 0, 1], np.float32), (3, 1))
    mesh = Mesh(corners, normals, np.array([[0, 1, 2]], np.uint32), np.zeros(3, np.int32))
    return Body(mesh, np.full((3, 3), 200, np.uint8))


def make_renderer() -> tuple[Renderer, str]:
    """Return an OpenGL renderer and '', or a renderer without OpenGL and the reason."""
    # Tried here and not at import: only viewing a structure needs OpenGL.

    try:
        return OpenGLRenderer(), ""
    except RenderingError as error:
        return DrawnRenderer(), str(error)


class StructureCanvas(QWidget):
    """Widget that shows a scene.

    A drag rotates the scene (with Shift around the line of sight) or, with the right or middle button, moves it; the wheel zooms.

    Signals
    -------
    picked
        The user clicked; emitted with the `Pick` at the pointer or None, and True if it is added to the picks (Ctrl or Shift).
    moved
        The camera has changed.
    drawn
        A renderer was created; emitted with its name and, if it does not use OpenGL, the reason, otherwise ''.
    spinChanged
        Spinning started or stopped; emitted with True or False.
    kernelsRequested
        Drawing without OpenGL needs compiled kernels; the receiver compiles them and calls `kernels_ready`.
    message
        Text for the status bar.
    """

    picked = Signal(object, bool)
    moved = Signal()
    drawn = Signal(str, str)
    spinChanged = Signal(bool)
    kernelsRequested = Signal()
    message = Signal(str)

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene = scene
        self.camera = Camera()
        self._is_first = False
        self.background = "theme"
        self.has_fog = True
        self.overlay = OverlayChoice()
        self.fallback_reason = ""
        self._renderer: Renderer | None = None
        self._made: _Made | None = None
        self._is_stale = False
        self._picture: QImage | None = None
        self._is_smooth = False
        self._failure = ""
        self._are_kernels_requested = self._are_kernels_ready = False
        self._pressed: QPoint | None = None
        self._last = QPoint()
        self._is_dragged = False
        self._smooth_soon = delayed(self, self._smooth, _SMOOTH_AFTER_MS)
        self._deferred = DeferredTasks(self)
        self._spin = repeated(self, lambda: self._take(self.camera.turned(_SPIN_DEGREES, 0.0)), _SPIN_MS)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(160, scaled_pixels(self, 120))
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Superposed structures in 3D")

    # ------------------------------------------------------------------------------------------------------------ the view

    @property
    def aspect(self) -> float:
        """Width divided by height of the widget."""
        return self.width() / max(self.height(), 1)

    @property
    def backdrop(self) -> Backdrop:
        """Background colour and fog of the picture."""
        return Backdrop(self.background_colour, self.has_fog)

    @property
    def background_colour(self) -> QColor:
        """Background colour of the scene."""
        return QColor(_FIXED[self.background]) if self.background in _FIXED else self.palette().color(QPalette.ColorRole.Base)

    @property
    def renderer(self) -> Renderer:
        """The renderer, created on first use."""
        if self._renderer is None:
            self._renderer, self.fallback_reason = make_renderer()
            self.drawn.emit(self._renderer.name, self.fallback_reason)
        return self._renderer

    @property
    def is_spinning(self) -> bool:
        """True while the scene is spinning."""
        return self._spin.isActive()

    def refresh(self) -> None:
        """Redraw at once after a change of the scene."""
        self._made = None
        self._redraw()

    def refresh_later(self) -> None:
        """Redraw after a minor change of the scene, such as a side chain.

        The overlay is redrawn at once, the scene with the next picture, at the latest with the smooth picture that follows after a short
        pause.
        """
        self._is_stale = True
        if not self.is_spinning:
            self._smooth_soon.start()
        self.update()

    def _redraw(self) -> None:
        """Redraw after a change of the view, first without antialiasing."""
        self._picture = None
        self._is_smooth = False
        self._smooth_soon.stop()
        self.update()

    def close_renderer(self) -> None:
        """Stop drawing and release the renderer and its resources; the next picture creates a new one."""
        self._deferred.drop()
        self._smooth_soon.stop()
        self.spin(False)
        self._made = self._picture = None
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def image(self, size: QSize, *, has_overlay: bool = True) -> QImage:
        """Return a smooth picture of the given size in pixels, optionally with labels and legend.

        Raises
        ------
        RenderingError
            If the picture cannot be drawn, for example because it is too large.
        """
        image = self._drawn(size, is_smooth=True)
        if has_overlay and self.scene.query is not None:
            painter = QPainter(image)
            # Text has the same size relative to the structures as on the screen.
            scale = size.height() / max(self.height(), 1)
            painter.scale(scale, scale)
            self._paint_overlay(painter, size.width() / scale, size.height() / scale)
            painter.end()
        return image

    # ------------------------------------------------------------------------------------------------------------ movements

    def reset(self) -> None:
        """Show the whole scene from its most informative direction (see `Camera.facing`)."""
        self._remember_camera()
        self._take(self.first_camera(self.scene.points()))

    def first_camera(self, points: np.ndarray) -> Camera:
        """Return the initial camera for points, shape (n, 3): rotated to their principal axes, and fitted to them."""
        return replace(Camera(), is_perspective=self.camera.is_perspective).facing(points).fitted(points, self.aspect)

    def fit(self, points: np.ndarray) -> None:
        """Zoom to points, shape (n, 3), without rotation."""
        self._remember_camera()
        self._take(self.camera.fitted(points, self.aspect))

    def centre(self, point: np.ndarray) -> None:
        """Centre on a point, which is also the new centre of rotation."""
        self._remember_camera()
        self._take(self.camera.centred(point))

    def set_perspective(self, is_perspective: bool) -> None:
        """Set perspective or parallel projection."""
        self._take(replace(self.camera, is_perspective=is_perspective))

    def set_background(self, name: str) -> None:
        """Set the background, a key of `BACKGROUNDS`."""
        self.background = name
        self._redraw()

    def set_fog(self, has_fog: bool) -> None:
        """Show or hide fog."""
        self.has_fog = has_fog
        self._redraw()

    def zoom(self, factor: float) -> None:
        """Zoom around the centre."""
        self._take(self.camera.zoomed(factor, aspect=self.aspect))

    def spin(self, is_spinning: bool) -> None:
        """Start or stop spinning."""
        if is_spinning != self.is_spinning:
            self._spin.start() if is_spinning else self._spin.stop()
            self.spinChanged.emit(is_spinning)

    def show_camera(self, camera: Camera) -> None:
        """Set the initial camera of a new scene; changes of the previous camera can no longer be undone."""
        forget_changes(self)
        self._take(camera)
        self._is_first = True

    def undo(self) -> bool:
        """Undo the last reset, centring or clearing of the selection; return False if there is nothing to undo."""
        return take_back_last(self)

    def _remember_camera(self) -> None:
        record(Change("move the 3D view", self, self.camera, None, self._take, read=lambda: self.camera))

    def _take(self, camera: Camera) -> None:
        self.camera, self._is_first = camera, False
        self._redraw()
        self.moved.emit()

    # ------------------------------------------------------------------------------------------------------------ picking

    def pick_at(self, at: QPointF) -> Pick | None:
        """Return the frontmost residue (by its Cα) or atom near a position of the widget, or None if there is none."""
        result: list[tuple[float, float, Pick]] = []
        traces = self.scene.traces
        offsets = segment_offsets(np.array([len(trace) for trace in traces], np.int64))
        for number, distance, depth in self._near(
            np.concatenate([np.empty((0, 3), np.float32), *(trace.position for trace in traces)]), at
        ):
            k = int(np.searchsorted(offsets, number, "right")) - 1
            trace, row = traces[k], number - int(offsets[k])
            mask = self.scene.mask(trace)
            if mask is None or mask[row]:
                result.append((distance, depth, Pick(trace, row)))
        for trace, atoms, is_ligand in self.scene.atoms_to_pick():
            for i, distance, depth in self._near(atoms.position, at):
                if is_ligand or atoms.name[i] != "CA":
                    x, y, z = atoms.position[i].tolist()
                    result.append((distance, depth, Pick(trace, -1 if is_ligand else int(atoms.residue[i]), atoms.name[i], (x, y, z))))
        nearest = min((distance for distance, _, _ in result), default=0.0)
        ahead = [(depth, pick) for distance, depth, pick in result if distance <= nearest + _SAME_PLACE_PIXELS]
        return min(ahead, key=lambda candidate: candidate[0])[1] if ahead else None

    def _near(self, position: np.ndarray, at: QPointF) -> list[tuple[int, float, float]]:
        """Return (index, distance in pixels, depth in Å) of each point that is drawn near a position of the widget."""
        index = self.camera.projected(position, self.width(), self.height())
        with np.errstate(invalid="ignore"):
            distance = np.hypot(index[:, 0] - at.x(), index[:, 1] - at.y())
            rows = np.flatnonzero((distance <= _PICK_PIXELS) & (index[:, 2] > 0)).tolist()
        return [(row, float(distance[row]), float(index[row, 2])) for row in rows]

    def text_at(self, at: QPointF) -> str:
        """Return the tooltip at a position of the widget: chain and residue, and the aligned residue of the query."""
        pick = self.pick_at(at)
        if pick is None:
            return ""
        lines = [f"{pick.trace.name}: {pick.label}"]
        pairs = pick.trace.pairs if pick.row >= 0 else None
        if pairs is not None and self.scene.query is not None:
            of = np.flatnonzero(pairs.rows[:, 1] == pick.row)
            if len(of):
                lines.append(f"Aligned with {self.scene.query.label(int(pairs.rows[of[0], 0]))}, {pairs.distance[of[0]]:.2f} Å apart")
            else:
                lines.append("Not aligned")
        return "\n".join(lines)

    # ------------------------------------------------------------------------------------------------------------ events

    def sizeHint(self) -> QSize:
        """Return the preferred size of a picture."""
        return QSize(480, 360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Redraw at the new size; the view is fitted again unless the user has moved it."""
        super().resizeEvent(event)
        if self._is_first and self.scene.query is not None:
            self.camera = self.first_camera(self.scene.points())
        self._redraw()

    def changeEvent(self, event: QEvent) -> None:
        """Redraw after a change of palette or font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop spinning while hidden."""
        super().hideEvent(event)
        self.spin(False)
        if self._smooth_soon.isActive():
            # Without a picture, the widget draws a new one when it is shown again.
            self._smooth_soon.stop()
            self._picture = None

    def event(self, event: QEvent) -> bool:
        """Show the residue under the pointer as tooltip."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start a drag or a click."""
        self._pressed = self._last = event.position().toPoint()
        self._is_dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Rotate, or pan with the right or middle button."""
        at = event.position().toPoint()
        if self._pressed is None or not event.buttons():
            return
        if not self._is_dragged and (at - self._pressed).manhattanLength() < QApplication.startDragDistance():
            return
        self._is_dragged = True
        by, self._last = at - self._last, at
        if event.buttons() & (Qt.MouseButton.RightButton | Qt.MouseButton.MiddleButton):
            self._take(self.camera.panned(by.x(), by.y(), self.height()))
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            middle = self.rect().center()
            before, after = (np.arctan2(point.y() - middle.y(), point.x() - middle.x()) for point in (at - by, at))
            self._take(self.camera.turned(0.0, 0.0, float(np.degrees(after - before))))
        else:
            self._take(self.camera.turned(by.x() * _DEGREES_OF_PIXEL, by.y() * _DEGREES_OF_PIXEL))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Pick after a click without a drag, or request the context menu after a right click."""
        was_click = self._pressed is not None and not self._is_dragged
        self._pressed = None
        if not was_click:
            return
        if event.button() == Qt.MouseButton.RightButton:
            self.customContextMenuRequested.emit(event.position().toPoint())
        elif event.button() == Qt.MouseButton.LeftButton:
            is_more = bool(event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
            self.picked.emit(self.pick_at(event.position()), is_more)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Centre on the residue or atom under the pointer."""
        pick = self.pick_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and pick is not None:
            self.centre(pick.position)
        self._pressed = None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom to the pointer."""
        factor = _WHEEL_ZOOM ** (event.angleDelta().y() / 120)
        at = event.position()
        position = (at.x() / max(self.width(), 1), at.y() / max(self.height(), 1))
        self._take(self.camera.zoomed(factor, position, self.aspect))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Rotate with arrows, pan with Shift and arrows, zoom with + and -."""
        arrows = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
        key = Qt.Key(event.key())
        if key in arrows and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            x, y = arrows[key]
            self._take(self.camera.panned(x * _KEY_PIXELS, y * _KEY_PIXELS, self.height()))
        elif key in arrows and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            x, y = arrows[key]
            self._take(self.camera.turned(x * _KEY_DEGREES, y * _KEY_DEGREES))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(_KEY_ZOOM)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / _KEY_ZOOM)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the scene and its overlay."""
        painter = QPainter(self)
        is_ready = self.scene.query is None or bool(self.failure) or self._is_ready()
        if self.scene.query is None or self.failure or not is_ready:
            painter.fillRect(self.rect(), self.background_colour)
            painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
            message_text = self.failure or (_EMPTY if is_ready else _PREPARING if self._are_kernels_requested else "")
            area = self.rect().adjusted(20, 20, -20, -20)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, message_text)
            painter.end()
            return
        if self._picture is None:
            ratio = self.devicePixelRatioF()
            size = QSize(max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio)))
            try:
                self._picture = self._drawn(size, is_smooth=self._is_smooth)
            except RenderingError as error:
                self._fall_back(str(error))
                painter.fillRect(self.rect(), self.background_colour)
                painter.end()
                self.update()
                return
            self._picture.setDevicePixelRatio(ratio)
            if not self._is_smooth:
                # The timer starts after drawing: if drawing is slow, pending movements are handled before the smooth picture.
                self._smooth_soon.start()
        painter.drawImage(QPointF(0, 0), self._picture)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        self._paint_overlay(painter, self.width(), self.height())
        if self.hasFocus():
            painter.setPen(self.palette().color(QPalette.ColorRole.Highlight))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    def kernels_ready(self) -> None:
        """Redraw after the kernels for drawing without OpenGL were compiled."""
        self._are_kernels_ready = True
        self.refresh()

    def _load_driver(self) -> None:
        with suppress(RenderingError):
            # The error is ignored: making the renderer raises it again.
            offscreen_surface()

    def _make_renderer(self) -> None:
        _ = self.renderer

    def _draw_sample(self, *, is_smooth: bool) -> None:
        """Draw a sample picture in advance, so that OpenGL compiles its shaders; with software rendering, this takes long."""
        if self._renderer is None or (self._renderer.needs_kernels and not self._are_kernels_ready):
            return
        with suppress(RenderingError):
            # The error is ignored: the first real picture raises it again, and it is shown then.
            camera = replace(Camera(), is_perspective=self.camera.is_perspective)
            self._renderer.picture([_sample()], camera, sphere_around(np.empty((0, 3))), self.backdrop, _SMALL, is_smooth=is_smooth)

    def _is_ready(self) -> bool:
        """Return True if a picture can be drawn at once; otherwise request the missing renderer or kernels and return False."""
        if self._renderer is None and not self._deferred.is_busy:
            # Separate steps, so that the first picture is not delayed further by creating the OpenGL context.
            samples = (partial(self._draw_sample, is_smooth=is_smooth) for is_smooth in (False, True))
            self._deferred.add(self._load_driver, self._make_renderer, *samples, self.update)
        if self._deferred.is_busy:
            return False
        if not self.renderer.needs_kernels or self._are_kernels_ready:
            return True
        if not self._are_kernels_requested:
            self._are_kernels_requested = True
            self.kernelsRequested.emit()
        return False

    @property
    def failure(self) -> str:
        """Text shown instead of a scene, or ''."""
        return self._failure

    def show_text(self, text: str) -> None:
        """Show a text instead of the scene; '' shows the scene again."""
        self._failure = text
        self.refresh()

    def _drawn(self, size: QSize, *, is_smooth: bool) -> QImage:
        if self._is_stale:
            self._made, self._is_stale = None, False
        renderer, made = self.renderer, self._making()
        return renderer.picture(made.bodies, self.camera, made.sphere, self.backdrop, size, is_smooth=is_smooth)

    def _making(self) -> _Made:
        if self._made is None:
            scene = self.scene
            coloured = scene.coloured()
            self._made = _Made(scene.bodies(self.renderer.maximum_triangles, coloured), scene.sphere(), coloured.legend)
        return self._made

    def _fall_back(self, why: str) -> None:
        """Replace the renderer by a renderer without OpenGL; `why` is the reason."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer, self.fallback_reason, self._made = DrawnRenderer(), why, None
        self.drawn.emit(self._renderer.name, why)

    def _smooth(self) -> None:
        if not self.is_spinning:
            self._is_smooth, self._picture = True, None
            self.update()

    def _paint_overlay(self, painter: QPainter, width: float, height: float) -> None:
        painter.setFont(self.font())
        legend = self._making().legend
        if self._pressed is None and not self.is_spinning:
            # The legend would distract if it moved during a rotation.
            self.overlay.corner = best_corner(legend, self.font(), self.scene, self.camera, width, height, self.overlay.corner)
        paint_overlay(painter, self.scene, legend, self.camera, self.overlay, self.background_colour, width, height)
