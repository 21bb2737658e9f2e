"""Picture files of a scene: a PNG of any size, or a full turn as an animated GIF, drawn by the CPU in a job."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from PySide6.QtCore import QBuffer, QIODevice, QLocale, QSignalBlocker, QSize
from PySide6.QtGui import QFont, QFontInfo, QImage, QPainter
from PySide6.QtWidgets import QCheckBox, QDialog, QDialogButtonBox, QFormLayout, QWidget

from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs import Progress
from proteoscope.engine.page_sizes import DPI, MINIMUM_FONT
from proteoscope.engine.structures.meshes import MAXIMUM_TRIANGLES
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.numbers import IntegerBox, NumberBox
from proteoscope.gui.icons import without_icons
from proteoscope.gui.labels import toned_label
from proteoscope.gui.layouts import in_column
from proteoscope.gui.plots.page_choice import dpi_box, size_box
from proteoscope.gui.structure.camera import Camera, Sphere
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer, finest
from proteoscope.gui.structure.overlay import OverlayChoice, paint_overlay
from proteoscope.gui.structure.rendering import Backdrop, Body, RenderingError
from proteoscope.gui.structure.scene import Scene
from proteoscope.gui.tasks import WritingTask

if TYPE_CHECKING:
    from proteoscope.gui.structure.canvas import StructureCanvas

_LEAST, _MOST = 16, 16_384
_MAXIMUM_IN_GIF = 2_048
_FRAMES_A_SECOND = 20
_PALETTE_VIEWS = 4
_MAXIMUM_NAME_CHARACTERS = 60
_METRES_PER_INCH, _POINTS_PER_INCH = 0.0254, 72


@dataclass(frozen=True)
class SceneSnapshot:
    """Copy of a scene and its view, unaffected by later changes.

    Attributes
    ----------
    text_height : int or None
        Height in pixels of a picture in which the text of the overlay has its normal size; in other pictures, the text is scaled in
        proportion to the height. None: no text.
    """

    scene: Scene
    bodies: tuple[Body, ...]
    camera: Camera
    sphere: Sphere
    backdrop: Backdrop
    overlay: OverlayChoice
    font: QFont
    text_height: int | None

    @classmethod
    def from_canvas(cls, canvas: StructureCanvas, *, has_text: bool) -> SceneSnapshot:
        """Return a copy of the scene and view of a canvas, with its overlay if `has_text`."""
        scene = canvas.scene.copied()
        return cls(
            scene,
            tuple(scene.bodies(MAXIMUM_TRIANGLES)),
            canvas.camera,
            scene.sphere(),
            canvas.backdrop,
            copy.copy(canvas.overlay),
            canvas.font(),
            canvas.height() if has_text else None,
        )

    def image(self, size: QSize, camera: Camera | None = None) -> QImage:
        """Return a picture of the given size in pixels, optionally from another camera; usable in any thread.

        Raises
        ------
        RenderingError
            If the picture is too large.
        """
        finest(size)
        camera = camera or self.camera
        image = DrawnRenderer().picture(self.bodies, camera, self.sphere, self.backdrop, size, is_smooth=True)
        if self.text_height:
            painter = QPainter(image)
            scale = size.height() / self.text_height
            painter.scale(scale, scale)
            painter.setFont(self.font)
            width, height = size.width() / scale, size.height() / scale
            paint_overlay(painter, self.scene, self.scene.coloured().legend, camera, self.overlay, self.backdrop.background, width, height)
            painter.end()
        return image


@dataclass(frozen=True)
class PictureTask(WritingTask):
    """Job that writes a picture as PNG; `size` is in pixels."""

    snapshot: SceneSnapshot
    size: QSize
    path: Path
    dpi: int = DPI

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Draw {self.path.name}"

    def run(self, progress: Progress) -> Path:
        """Write the picture with its resolution and return its path."""
        compile_kernels(["drawing"], progress)
        progress.stage("Drawing")
        image = _drawn(self.snapshot, self.size, None, self.path)
        image.setDotsPerMeterX(round(self.dpi / _METRES_PER_INCH))
        image.setDotsPerMeterY(round(self.dpi / _METRES_PER_INCH))
        progress.stage("Writing")
        content = QBuffer()
        content.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(content, "PNG")  # type: ignore[call-overload]
        with atomic_file(self.path) as file:
            file.write(content.data().data())
        return self.path

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text with the name of the written file."""
        return f"{written.name} written"


@dataclass(frozen=True)
class TurntableTask(WritingTask):
    """Job that writes one turn of a scene as an endless animated GIF; `seconds` is the duration of the turn, `size` is in pixels."""

    snapshot: SceneSnapshot
    size: QSize
    seconds: float
    path: Path

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Draw {self.path.name}"

    def run(self, progress: Progress) -> Path:
        """Write the animation and return its path."""
        compile_kernels(["drawing"], progress)
        n_frames = max(2, round(self.seconds * _FRAMES_A_SECOND))
        progress.stage("Choosing colours", _PALETTE_VIEWS)
        palette = self._palette(progress)
        progress.stage("Drawing", n_frames)
        frames = self._frames(n_frames, palette, progress)
        with atomic_file(self.path) as file:
            duration = round(1000 / _FRAMES_A_SECOND)
            next(frames).save(file, "GIF", save_all=True, append_images=frames, duration=duration, loop=0)
        return self.path

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text with the name of the written file."""
        return f"{written.name} written"

    def _palette(self, progress: Progress) -> Image.Image:
        """Return a palette of 256 colours from several views of the scene, since frames with separate palettes would flicker."""
        width, height = self.size.width(), self.size.height()
        views = Image.new("RGB", (width, _PALETTE_VIEWS * height))
        for i in range(_PALETTE_VIEWS):
            views.paste(self._frame(360.0 * i / _PALETTE_VIEWS), (0, i * height))
            progress.advance()
        return views.quantize(256)

    def _frames(self, n_frames: int, palette: Image.Image, progress: Progress) -> Iterator[Image.Image]:
        for i in range(n_frames):
            yield self._frame(360.0 * i / n_frames).quantize(palette=palette, dither=Image.Dither.NONE)
            progress.advance()

    def _frame(self, degrees: float) -> Image.Image:
        image = _drawn(self.snapshot, self.size, self.snapshot.camera.turned(degrees, 0.0), self.path)
        image = image.convertToFormat(QImage.Format.Format_RGB888)
        raw = bytes(image.constBits())
        return Image.frombuffer("RGB", (image.width(), image.height()), raw, "raw", "RGB", image.bytesPerLine(), 1)


class PictureDialog(QDialog):
    """Dialog for the size of a picture (in pixels, or as a journal's column width and a resolution) or the duration of a turntable."""

    def __init__(self, size: QSize, parent: QWidget, *, is_turntable: bool) -> None:
        super().__init__(parent)
        self.is_turntable = is_turntable
        self.setWindowTitle("Save turntable" if is_turntable else "Save picture")
        most = _MAXIMUM_IN_GIF if is_turntable else _MOST
        factor = 1 if is_turntable else 2
        self.width_box, self.height_box = (self._size_box(min(factor * length, most), most) for length in (size.width(), size.height()))
        self.size_box, self.dpi_box = size_box("Width in pixels"), dpi_box()
        self._view_size = size
        self.seconds_box = NumberBox()
        self.seconds_box.setRange(1.0, 60.0)
        self.seconds_box.setDecimals(1)
        self.seconds_box.setValue(6.0)
        self.text_height = QCheckBox("&Names, distances and legend")
        self.text_height.setChecked(True)
        self.problem = toned_label("", "wrong")
        form = QFormLayout()
        if not is_turntable:
            form.addRow("&Size", self.size_box)
            form.addRow("&Resolution", self.dpi_box)
        form.addRow("&Width in pixels", self.width_box)
        form.addRow("&Height in pixels", self.height_box)
        if is_turntable:
            form.addRow("Turn in &seconds", self.seconds_box)
        form.addRow("", self.text_height)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        without_icons(buttons.buttons())
        self.save_button = buttons.button(QDialogButtonBox.StandardButton.Save)
        self.save_button.setText("Save…")
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        in_column(form, self.problem, buttons, on=self, margins=None)
        if not is_turntable:
            self._fit_page()
            self.size_box.activated.connect(lambda _: self._fit_page())
            self.dpi_box.valueChanged.connect(lambda _: self._fit_page())
        for box in (self.width_box, self.height_box):
            box.valueChanged.connect(lambda _: self._check())
            box.valueChanged.connect(lambda _: self.size_box.setCurrentIndex(self.size_box.count() - 1))
        self._check()

    @property
    def picture_size(self) -> QSize:
        """Size of the picture in pixels."""
        return QSize(self.width_box.value(), self.height_box.value())

    def task(self, canvas: StructureCanvas, path: Path) -> PictureTask | TurntableTask:
        """Return the task that writes a picture or a full turn of a canvas in its current state."""
        snapshot = SceneSnapshot.from_canvas(canvas, has_text=self.text_height.isChecked())
        if self.is_turntable:
            return TurntableTask(snapshot, self.picture_size, self.seconds_box.value(), path)
        if snapshot.text_height is not None and self.size_box.currentData().width is not None:
            snapshot = replace(snapshot, text_height=_readable_height(snapshot, self.picture_size, self.dpi_box.value()))
        return PictureTask(snapshot, self.picture_size, path, self.dpi_box.value())

    def _fit_page(self) -> None:
        """Set the pixels from the chosen width and resolution, with the aspect ratio of the view."""
        page = self.size_box.currentData()
        if page.width is None:
            return
        width = round(page.width / _POINTS_PER_INCH * self.dpi_box.value())
        for box, pixels in ((self.width_box, width), (self.height_box, round(width * self._view_size.height() / self._view_size.width()))):
            with QSignalBlocker(box):
                box.setValue(pixels)
        self._check()

    def _size_box(self, value: int, most: int) -> IntegerBox:
        box = IntegerBox()
        box.setRange(_LEAST, most)
        box.setValue(max(value, _LEAST))
        return box

    def _check(self) -> None:
        try:
            finest(self.picture_size)
            self.problem.clear()
        except RenderingError as error:
            self.problem.setText(f"Reduce the size: {error}.")
        self.problem.setVisible(bool(self.problem.text()))
        self.save_button.setEnabled(not self.problem.text())


def _readable_height(snapshot: SceneSnapshot, size: QSize, dpi: int) -> int:
    """Return the `text_height` with which the text of a picture has at least the minimum font size on paper."""
    assert snapshot.text_height is not None
    readable = size.height() * QFontInfo(snapshot.font).pixelSize() / (MINIMUM_FONT / _POINTS_PER_INCH * dpi)
    return max(1, min(snapshot.text_height, round(readable)))


def prompt_for_picture(parent: QWidget, dialog: PictureDialog, name: str, on_selected: Callable[[Path], None]) -> None:
    """Prompt for the file of a picture with the suggested `name`, and pass its path to `on_selected`."""
    ending, title = (".gif", "Animated GIF (*.gif)") if dialog.is_turntable else (".png", "Portable Network Graphics (*.png)")
    name = "".join(character if character.isalnum() or character in "-." else "_" for character in name[:_MAXIMUM_NAME_CHARACTERS]) + ending
    prompt_for_path(parent, dialog.windowTitle(), on_selected, "save", filters=[title], name=name, suffix=ending)


def _drawn(snapshot: SceneSnapshot, size: QSize, camera: Camera | None, path: Path) -> QImage:
    try:
        return snapshot.image(size, camera)
    except RenderingError as error:
        raise StorageError(f"{path}: {error}. Choose a smaller size.") from error
