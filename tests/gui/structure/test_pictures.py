"""Tests of images as files: a PNG of any size, and a turntable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontInfo, QGuiApplication, QImage
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import StorageError
from proteoscope.engine.jobs import Cancelled, Progress
from proteoscope.gui.structure.canvas import StructureCanvas
from proteoscope.gui.structure.image_export import PictureDialog, PictureTask, SceneSnapshot, TurntableTask
from proteoscope.gui.structure.opengl_renderer import NO_OPENGL
from proteoscope.gui.structure.structure_panel import StructurePanel
from tests.engine.views.trace_examples import query_and_hits
from tests.gui.structure.examples import scene_of


@pytest.fixture
def canvas(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> StructureCanvas:
    monkeypatch.setenv(NO_OPENGL, "1")
    canvas = StructureCanvas(scene_of(2))
    canvas.resize(320, 240)
    qtbot.addWidget(canvas)
    canvas.show_camera(canvas.first_camera(canvas.scene.points()))
    canvas._smooth_soon.stop()
    return canvas


def dialog_of(canvas: StructureCanvas, *, is_turntable: bool) -> PictureDialog:
    return PictureDialog(canvas.size(), canvas, is_turntable=is_turntable)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("size", [(16, 16), (333, 77), (1600, 1200)])
def test_exported_structure_image_has_the_requested_size(canvas: StructureCanvas, size: tuple[int, int], tmp_path: Path) -> None:
    dialog = dialog_of(canvas, is_turntable=False)
    dialog.width_box.setValue(size[0])
    dialog.height_box.setValue(size[1])
    task = dialog.task(canvas, tmp_path / "picture.png")
    assert isinstance(task, PictureTask) and task.run(Progress()) == tmp_path / "picture.png"
    drawn = pixels(tmp_path / "picture.png")
    assert drawn.shape == (size[1], size[0], 3) and (drawn != drawn[0, 0]).any()
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


def test_structure_image_has_journal_column_width_at_300_dpi(canvas: StructureCanvas, tmp_path: Path) -> None:
    dialog = dialog_of(canvas, is_turntable=False)
    for at, millimetres in enumerate((85.0, 178.0)):
        dialog.size_box.setCurrentIndex(at)
        dialog.size_box.activated.emit(at)
        size = dialog.picture_size
        assert size.width() == round(millimetres / 25.4 * 300) and dialog.dpi_box.value() == 300
        assert size.height() == round(size.width() * canvas.height() / canvas.width())
        task = dialog.task(canvas, tmp_path / f"{at}.png")
        assert isinstance(task, PictureTask) and task.snapshot.text_height is not None
        pixels_of_text = QFontInfo(canvas.font()).pixelSize() * size.height() / task.snapshot.text_height
        assert pixels_of_text / 300 * 72 >= 5.9
    dialog.dpi_box.setValue(150)
    assert dialog.picture_size.width() == round(178 / 25.4 * 150)
    task = dialog.task(canvas, tmp_path / "150.png")
    task.run(Progress())
    with Image.open(tmp_path / "150.png") as image:
        assert image.size == (dialog.picture_size.width(), dialog.picture_size.height())
        assert image.info["dpi"] == pytest.approx((150, 150), abs=0.02)
    # Another number of pixels is the user's choice.
    dialog.width_box.setValue(777)
    assert dialog.size_box.currentData().width is None and dialog.picture_size.width() == 777


def test_exported_image_ignores_later_changes_of_the_scene(canvas: StructureCanvas, tmp_path: Path) -> None:
    tasks = [PictureTask(SceneSnapshot.from_canvas(canvas, has_text=True), QSize(320, 240), tmp_path / f"{i}.png") for i in range(2)]
    tasks[0].run(Progress())
    canvas.scene.hits[0].is_shown = False
    canvas.overlay.legend = False
    canvas._take(canvas.camera.turned(50, 0))
    canvas._smooth_soon.stop()
    tasks[1].run(Progress())
    assert (pixels(tmp_path / "0.png") == pixels(tmp_path / "1.png")).all()
    PictureTask(SceneSnapshot.from_canvas(canvas, has_text=False), QSize(320, 240), tmp_path / "2.png").run(Progress())
    assert (pixels(tmp_path / "0.png") != pixels(tmp_path / "2.png")).any()


def legend_area(canvas: StructureCanvas) -> tuple[slice, slice]:
    """Return the rows and columns of the picture that the legend changes."""
    images = []
    for canvas.overlay.legend in (False, True):
        image = canvas.image(canvas.size()).convertToFormat(QImage.Format.Format_RGB888)
        lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
        images.append(lines[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).astype(int))
    rows, columns = np.nonzero((images[0] != images[1]).any(axis=2))
    return slice(int(rows.min()), int(rows.max()) + 1), slice(int(columns.min()), int(columns.max()) + 1)


@pytest.mark.parametrize(("right", "down"), [(-70, 60), (70, 60), (-70, -60), (70, -60), (0, 0)])
def test_legend_lies_in_the_corner_with_the_fewest_residues(canvas: StructureCanvas, right: int, down: int) -> None:
    canvas._take(canvas.camera.zoomed(0.6).panned(right, down, canvas.height()))
    rows, columns = legend_area(canvas)
    x, y, _ = canvas.camera.projected(canvas.scene.points(), canvas.width(), canvas.height()).T
    mirrored = [(x, y), (canvas.width() - x, y), (x, canvas.height() - y), (canvas.width() - x, canvas.height() - y)]
    covered = [np.sum((at >= columns.start) & (at < columns.stop) & (up >= rows.start) & (up < rows.stop)) for at, up in mirrored]
    assert covered[0] <= min(covered) + 0.05 * len(x) < len(x) / 2
    assert canvas.width() // 2 < columns.start or columns.stop < canvas.width() * 0.6


def test_legend_keeps_its_corner_during_a_rotation(canvas: StructureCanvas, qtbot: QtBot) -> None:
    canvas.image(canvas.size())
    is_right, is_low = before = canvas.overlay.corner
    moved = canvas.camera.zoomed(0.6).panned(70 if is_right else -70, 60 if is_low else -60, canvas.height())
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton)
    canvas._take(moved)
    canvas.image(canvas.size())
    assert canvas.overlay.corner == before
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton)
    canvas.image(canvas.size())
    assert canvas.overlay.corner != before


def test_structure_image_with_too_many_pixels_is_rejected(canvas: StructureCanvas, tmp_path: Path) -> None:
    dialog = dialog_of(canvas, is_turntable=False)
    assert dialog.save_button.isEnabled()
    dialog.width_box.setValue(16_000)
    dialog.height_box.setValue(16_000)
    assert not dialog.save_button.isEnabled() and "million pixels" in dialog.problem.text()
    with pytest.raises(StorageError, match="million pixels"):
        PictureTask(SceneSnapshot.from_canvas(canvas, has_text=True), QSize(16_000, 16_000), tmp_path / "large.png").run(Progress())
    assert not list(tmp_path.iterdir())


def test_turntable_animation_is_one_full_turn(canvas: StructureCanvas, tmp_path: Path) -> None:
    dialog = dialog_of(canvas, is_turntable=True)
    dialog.width_box.setValue(120)
    dialog.height_box.setValue(90)
    dialog.seconds_box.setValue(1.0)
    task = dialog.task(canvas, tmp_path / "turn.gif")
    assert isinstance(task, TurntableTask)
    task.run(Progress())
    with Image.open(tmp_path / "turn.gif") as film:
        assert film.format == "GIF" and film.size == (120, 90) and film.n_frames == 20 and film.info["loop"] == 0  # type: ignore[attr-defined]
        frames = []
        for i in range(20):
            film.seek(i)
            assert film.info["duration"] == 50
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    changes = [np.abs(frames[i] - frames[i - 1]).mean() for i in range(20)]
    assert min(changes) > 0
    # The last image continues into the first as each does into the next.
    assert changes[0] < 2 * max(changes[1:])
    assert np.abs(frames[0] - pixels_of_photograph(task)).mean() < 6


def pixels_of_photograph(task: TurntableTask) -> np.ndarray:
    image = task.snapshot.image(task.size)
    raw = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
    return raw[:, :, 2::-1].astype(int)


def test_cancelled_turntable_animation_leaves_no_file(canvas: StructureCanvas, tmp_path: Path) -> None:
    progress = Progress(lambda event: progress.cancel() if event.stage == "Drawing" else None)
    task = TurntableTask(SceneSnapshot.from_canvas(canvas, has_text=True), QSize(60, 40), 5.0, tmp_path / "turn.gif")
    with pytest.raises(Cancelled):
        task.run(progress)
    assert not list(tmp_path.iterdir())


def test_copied_structure_image_equals_the_visible_image(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_OPENGL, "1")
    said: list[str] = []
    panel = StructurePanel(lambda kind, function, done, failed: done(function()))
    panel.message.connect(said.append)
    qtbot.addWidget(panel)
    panel.copy_picture()
    assert said == []
    query, hits = query_and_hits(1)
    panel.show_hit(query, hits[0])
    panel.copy_picture()
    image = QGuiApplication.clipboard().image()
    assert image.size() == panel.canvas.size() * panel.canvas.devicePixelRatioF() and said[-1] == "Copied the picture."
    panel.close_renderer()
