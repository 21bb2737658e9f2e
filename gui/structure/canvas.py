"""The picture of a scene, turned and picked in by hand; what draws it is OpenGL, or the engine where there is none."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
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

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.structures.colouring import Legend
from proteoscope.engine.structures.meshes import Mesh
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.room import pixels_with_letters
from proteoscope.gui.structure.camera import Camera, Sphere, sphere_around
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer
from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer
from proteoscope.gui.structure.overlay import OverlayChoice, paint_overlay
from proteoscope.gui.structure.rendering import Body, Look, Renderer, RenderingError
from proteoscope.gui.structure.scene import Pick, Scene
from proteoscope.gui.turns import Turns

__all__ = ["BACKGROUNDS", "StructureCanvas", "make_renderer"]

BACKGROUNDS = {"theme": "Like the window", "white": "White", "grey": "Grey", "black": "Black"}
_FIXED = {"white": "#ffffff", "grey": "#808080", "black": "#000000"}
_DEGREES_OF_PIXEL = 0.5
_KEY_DEGREES, _KEY_PIXELS, _KEY_ZOOM, _WHEEL_ZOOM = 10.0, 30.0, 1.2, 1.15
_SPIN_MS, _SPIN_DEGREES = 40, 1.5
_SMOOTH_AFTER_MS = 160
_PICK_PIXELS, _SAME_PLACE_PIXELS = 14.0, 5.0
_MAXIMUM_UNDONE = 50
_SMALL = QSize(192, 192)
_EMPTY = "Choose a hit to see it superposed on its query."
_PREPARING = "Preparing to draw without OpenGL…"


class _Made(NamedTuple):
    """What is drawn of a scene as long as it does not change."""

    bodies: list[Body]
    sphere: Sphere
    legend: Legend


def _sample() -> Body:
    """A triangle in the middle."""
    corners = np.array([[-9, -9, 0], [9, -9, 0], [0, 9, 0]], np.float32)
    normals = np.tile(np.array([0, 0, 1], np.float32), (3, 1))
    mesh = Mesh(corners, normals, np.array([[0, 1, 2]], np.uint32), np.zeros(3, np.int32))
    return Body(mesh, np.full((3, 3), 200, np.uint8))


def make_renderer() -> tuple[Renderer, str]:
    """What draws here, and why it is not OpenGL, empty where it is."""
    # Only who looks at a structure pays for the import.

    try:
        return OpenGLRenderer(), ""
    except RenderingError as error:
        return DrawnRenderer(), str(error)


class StructureCanvas(QWidget):
    """Shows a scene. Drag turns it, with Shift around the line of sight; the right or middle button pans, the wheel zooms to the pointer.

    Signals
    -------
    picked : a `Pick` under the pointer was clicked, None beside all; whether it is one more.
    moved : the camera is another one. drawn : by what, and why not by OpenGL. spinChanged : whether it turns by itself.
    kernelsAsked : what draws without OpenGL is to be compiled; `kernels_ready` is to be called then. message : a line for the status bar.
    """

    picked = Signal(object, bool)
    moved = Signal()
    drawn = Signal(str, str)
    spinChanged = Signal(bool)
    kernelsAsked = Signal()
    message = Signal(str)

    def __init__(self, scene: Scene, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.scene = scene
        self.camera = Camera()
        self._is_first = False
        self.background = "theme"
        self.has_fog = True
        self.overlay = OverlayChoice()
        self.why_drawn = ""
        self._renderer: Renderer | None = None
        self._made: _Made | None = None
        self._is_stale = False
        self._picture: QImage | None = None
        self._is_smooth = False
        self._failure = ""
        self._are_kernels_asked = self._are_kernels_ready = False
        self._pressed: QPoint | None = None
        self._last = QPoint()
        self._is_dragged = False
        self._undone: list[Callable[[], None]] = []
        self._smooth_soon = QTimer(self, singleShot=True, interval=_SMOOTH_AFTER_MS)
        self._smooth_soon.timeout.connect(self._smooth)
        self._turns = Turns(self)
        self._spin = QTimer(self, interval=_SPIN_MS)
        self._spin.timeout.connect(lambda: self._take(self.camera.turned(_SPIN_DEGREES, 0.0)))
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(160, pixels_with_letters(self, 120))
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Superposed structures in three dimensions")

    # ------------------------------------------------------------------------------------------------------------ what is seen

    @property
    def aspect(self) -> float:
        """How many times as wide as high it is."""
        return self.width() / max(self.height(), 1)

    @property
    def look(self) -> Look:
        """Background and fog."""
        return Look(self.background_colour, self.has_fog)

    @property
    def background_colour(self) -> QColor:
        """What the scene stands on."""
        return QColor(_FIXED[self.background]) if self.background in _FIXED else self.palette().color(QPalette.ColorRole.Base)

    @property
    def renderer(self) -> Renderer:
        """What draws; made when it is first asked for."""
        if self._renderer is None:
            self._renderer, self.why_drawn = make_renderer()
            self.drawn.emit(self._renderer.name, self.why_drawn)
        return self._renderer

    @property
    def is_spinning(self) -> bool:
        """Whether it turns by itself."""
        return self._spin.isActive()

    def refresh(self) -> None:
        """Draw anew: the scene has changed."""
        self._made = None
        self._redraw()

    def refresh_later(self) -> None:
        """The scene has changed in what need not be seen at once, as a side chain: what is written over it is drawn now, the scene itself
        with the next picture, at the latest with the smooth one."""
        self._is_stale = True
        if not self.is_spinning:
            self._smooth_soon.start()
        self.update()

    def _redraw(self) -> None:
        """Draw anew what is seen from elsewhere."""
        self._picture = None
        self._is_smooth = False
        self._smooth_soon.stop()
        self.update()

    def close_renderer(self) -> None:
        """Let OpenGL go."""
        self._turns.drop()
        self._smooth_soon.stop()
        self.spin(False)
        self._made = self._picture = None
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def image(self, size: QSize, *, has_overlay: bool = True) -> QImage:
        """The scene as it is seen in a picture of so many pixels, with labels and legend if one likes.

        Raises
        ------
        RenderingError : it cannot be drawn, as because it is too large.
        """
        image = self._drawn(size, is_smooth=True)
        if has_overlay and self.scene.query is not None:
            painter = QPainter(image)
            # Letters are as large beside the structures as on the screen.
            scale = size.height() / max(self.height(), 1)
            painter.scale(scale, scale)
            self._paint_overlay(painter, size.width() / scale, size.height() / scale)
            painter.end()
        return image

    # ------------------------------------------------------------------------------------------------------------ moves

    def reset(self) -> None:
        """See all, turned so that it spreads most."""
        self._remember_camera()
        self._take(self.first_camera(self.scene.points()))

    def first_camera(self, points: np.ndarray) -> Camera:
        """The camera that a scene begins with."""
        return replace(Camera(), is_perspective=self.camera.is_perspective).facing(points).fitted(points, self.aspect)

    def fit(self, points: np.ndarray) -> None:
        """See some places as near as they have room; the direction stays."""
        self._remember_camera()
        self._take(self.camera.fitted(points, self.aspect))

    def centre(self, point: np.ndarray) -> None:
        """Bring a place into the middle, around which the scene turns then."""
        self._remember_camera()
        self._take(self.camera.centred(point))

    def set_perspective(self, is_perspective: bool) -> None:
        """What is far is smaller, or as large as what is near."""
        self._take(replace(self.camera, is_perspective=is_perspective))

    def set_background(self, name: str) -> None:
        """One of `BACKGROUNDS`."""
        self.background = name
        self._redraw()

    def set_fog(self, has_fog: bool) -> None:
        """Let what is far grow pale, or not."""
        self.has_fog = has_fog
        self._redraw()

    def zoom(self, factor: float) -> None:
        """Larger, around the middle."""
        self._take(self.camera.zoomed(factor, aspect=self.aspect))

    def spin(self, is_spinning: bool) -> None:
        """Turn by itself, or stop."""
        if is_spinning != self.is_spinning:
            self._spin.start() if is_spinning else self._spin.stop()
            self.spinChanged.emit(is_spinning)

    def show_camera(self, camera: Camera) -> None:
        """Look from elsewhere; what was done to the view before is forgotten."""
        self._undone.clear()
        self._take(camera)
        self._is_first = True

    def remember(self, undo: Callable[[], None]) -> None:
        """What `undo` does first."""
        self._undone = [*self._undone[1 - _MAXIMUM_UNDONE :], undo]

    def undo(self) -> bool:
        """Take back the last reset, centring or clearing of picks; whether there was one."""
        if not self._undone:
            return False
        self._undone.pop()()
        return True

    def _remember_camera(self) -> None:
        camera = self.camera
        self.remember(lambda: self._take(camera))

    def _take(self, camera: Camera) -> None:
        self.camera, self._is_first = camera, False
        self._redraw()
        self.moved.emit()

    # ------------------------------------------------------------------------------------------------------------ picking

    def pick_at(self, at: QPointF) -> Pick | None:
        """The residue whose Cα is under a place of the widget, or the atom, of those that are drawn; the one in front of several."""
        found: list[tuple[float, float, Pick]] = []
        traces = self.scene.traces
        offsets = offsets_of(np.array([len(trace) for trace in traces], np.int64))
        for number, distance, depth in self._near(np.concatenate([np.empty((0, 3), np.float32), *(one.position for one in traces)]), at):
            k = int(np.searchsorted(offsets, number, "right")) - 1
            trace, row = traces[k], number - int(offsets[k])
            mask = self.scene.mask(trace)
            if mask is None or mask[row]:
                found.append((distance, depth, Pick(trace, row)))
        for trace, atoms, is_ligand in self.scene.atoms_to_pick():
            for i, distance, depth in self._near(atoms.position, at):
                if is_ligand or atoms.name[i] != "CA":
                    x, y, z = atoms.position[i].tolist()
                    found.append((distance, depth, Pick(trace, -1 if is_ligand else int(atoms.residue[i]), atoms.name[i], (x, y, z))))
        nearest = min((distance for distance, _, _ in found), default=0.0)
        ahead = [(depth, pick) for distance, depth, pick in found if distance <= nearest + _SAME_PLACE_PIXELS]
        return min(ahead, key=lambda one: one[0])[1] if ahead else None

    def _near(self, position: np.ndarray, at: QPointF) -> list[tuple[int, float, float]]:
        """Rows of places that are drawn near a place of the widget, with their distances from it in pixels and how far behind they are."""
        place = self.camera.projected(position, self.width(), self.height())
        with np.errstate(invalid="ignore"):
            distance = np.hypot(place[:, 0] - at.x(), place[:, 1] - at.y())
            rows = np.flatnonzero((distance <= _PICK_PIXELS) & (place[:, 2] > 0)).tolist()
        return [(row, float(distance[row]), float(place[row, 2])) for row in rows]

    def text_at(self, at: QPointF) -> str:
        """What is under a place: chain and residue, and its partner."""
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
        """Room for a picture."""
        return QSize(480, 360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw in the new size, and as large as that allows where nobody has moved the view."""
        super().resizeEvent(event)
        if self._is_first and self.scene.query is not None:
            self.camera = self.first_camera(self.scene.points())
        self._redraw()

    def changeEvent(self, event: QEvent) -> None:
        """Another palette has another background."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nothing turns that nobody sees."""
        super().hideEvent(event)
        self.spin(False)
        if self._smooth_soon.isActive():
            # What it waited for is drawn when it is seen again.
            self._smooth_soon.stop()
            self._picture = None

    def event(self, event: QEvent) -> bool:
        """Tell the residue under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to drag, or to click."""
        self._pressed = self._last = event.position().toPoint()
        self._is_dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Turn, or pan with the right or middle button."""
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
            before, after = (np.arctan2(one.y() - middle.y(), one.x() - middle.x()) for one in (at - by, at))
            self._take(self.camera.turned(0.0, 0.0, float(np.degrees(after - before))))
        else:
            self._take(self.camera.turned(by.x() * _DEGREES_OF_PIXEL, by.y() * _DEGREES_OF_PIXEL))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that was no drag picks; with the right button it opens the menu."""
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
        """Centre on a residue."""
        pick = self.pick_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and pick is not None:
            self.centre(pick.place)
        self._pressed = None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom to the pointer."""
        factor = _WHEEL_ZOOM ** (event.angleDelta().y() / 120)
        at = event.position()
        place = (at.x() / max(self.width(), 1), at.y() / max(self.height(), 1))
        self._take(self.camera.zoomed(factor, place, self.aspect))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows turn, with Shift they pan; + and - zoom."""
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
        """Draw the scene, and what is written over it."""
        painter = QPainter(self)
        is_ready = self.scene.query is None or bool(self.failure) or self._is_ready()
        if self.scene.query is None or self.failure or not is_ready:
            painter.fillRect(self.rect(), self.background_colour)
            painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
            said = self.failure or (_EMPTY if is_ready else _PREPARING if self._are_kernels_asked else "")
            area = self.rect().adjusted(20, 20, -20, -20)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, said)
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
                # From now on, not from what asked for it: where drawing is slow, what else was asked for comes first.
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
        """What draws without OpenGL is compiled."""
        self._are_kernels_ready = True
        self.refresh()

    def _make_renderer(self) -> None:
        _ = self.renderer

    def _draw_sample(self) -> None:
        """Have OpenGL compile what it draws smooth pictures with, which software takes ten times as long for as for a picture."""
        if self._renderer is None or (self._renderer.needs_kernels and not self._are_kernels_ready):
            return
        with suppress(RenderingError):
            # The first picture meets the same error, and tells it.
            camera = replace(Camera(), is_perspective=self.camera.is_perspective)
            self._renderer.picture([_sample()], camera, sphere_around(np.empty((0, 3))), self.look, _SMALL, is_smooth=True)

    def _is_ready(self) -> bool:
        """Whether a picture can be drawn at once; what is missing is asked for."""
        if self._renderer is None and not self._turns.is_busy:
            # Turns of their own, so that the first picture does not add to what a context of OpenGL takes.
            self._turns.add(self._make_renderer, self._draw_sample, self.update)
        if self._turns.is_busy:
            return False
        if not self.renderer.needs_kernels or self._are_kernels_ready:
            return True
        if not self._are_kernels_asked:
            self._are_kernels_asked = True
            self.kernelsAsked.emit()
        return False

    @property
    def failure(self) -> str:
        """What is said in place of a scene, empty where one is drawn."""
        return self._failure

    def show_text(self, text: str) -> None:
        """Say something in the scene's place; an empty text takes it away."""
        self._failure = text
        self.refresh()

    def _drawn(self, size: QSize, *, is_smooth: bool) -> QImage:
        if self._is_stale:
            self._made, self._is_stale = None, False
        renderer, made = self.renderer, self._making()
        return renderer.picture(made.bodies, self.camera, made.sphere, self.look, size, is_smooth=is_smooth)

    def _making(self) -> _Made:
        if self._made is None:
            scene = self.scene
            coloured = scene.coloured()
            self._made = _Made(scene.bodies(self.renderer.maximum_triangles, coloured), scene.sphere(), coloured.legend)
        return self._made

    def _fall_back(self, why: str) -> None:
        """Draw without OpenGL from now on."""
        if self._renderer is not None:
            self._renderer.close()
        self._renderer, self.why_drawn, self._made = DrawnRenderer(), why, None
        self.drawn.emit(self._renderer.name, why)

    def _smooth(self) -> None:
        if not self.is_spinning:
            self._is_smooth, self._picture = True, None
            self.update()

    def _paint_overlay(self, painter: QPainter, width: float, height: float) -> None:
        painter.setFont(self.font())
        legend = self._making().legend
        paint_overlay(painter, self.scene, legend, self.camera, self.overlay, self.background_colour, width, height)
