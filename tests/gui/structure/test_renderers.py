"""Tests that OpenGL and the engine draw the same, and of machines without OpenGL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from proteoscope.engine.structures.meshes import Mesh, spheres
from proteoscope.gui.structure.camera import Camera
from proteoscope.gui.structure.canvas import make_renderer
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer, finest
from proteoscope.gui.structure.opengl_renderer import NO_OPENGL, OpenGLRenderer
from proteoscope.gui.structure.rendering import Backdrop, Body, Renderer, RenderingError
from proteoscope.gui.structure.scene import STYLES, Scene
from tests.conftest import REPOSITORY
from tests.gui.structure.examples import scene_of

SIZE = QSize(240, 180)


def pixels(image: QImage) -> NDArray[np.int64]:
    """Return the pixels (height, width, 3)."""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).astype(np.int64)


def drawn(
    renderer: Renderer,
    scene: Scene,
    camera: Camera | None = None,
    background: str = "white",
    bodies: Sequence[Body] | None = None,
    *,
    fog: bool = True,
    is_smooth: bool = True,
) -> NDArray[np.int64]:
    camera = camera or Camera().facing(scene.points()).fitted(scene.points(), 4 / 3)
    bodies = scene.bodies(100_000) if bodies is None else bodies
    return pixels(renderer.picture(bodies, camera, scene.sphere(), Backdrop(QColor(background), fog), SIZE, is_smooth=is_smooth))


@pytest.mark.parametrize("is_software", [False, True])
def test_smooth_opengl_images_have_antialiased_edges(opengl: OpenGLRenderer, monkeypatch: pytest.MonkeyPatch, is_software: bool) -> None:
    scene = scene_of(1)
    rough = drawn(opengl, scene, is_smooth=False)
    monkeypatch.setattr(opengl, "_is_software", is_software)
    smooth = drawn(opengl, scene)
    # Resolving a multisampled picture takes software long the first time.
    assert (opengl._frames["smooth"].format().samples() == 0) == is_software
    assert smooth.shape == rough.shape and abs(smooth.mean() - rough.mean()) < 1
    steps = [np.abs(np.diff(picture, axis=1)).max(axis=2) for picture in (rough, smooth)]
    assert np.quantile(steps[1], 0.99) < 0.8 * np.quantile(steps[0], 0.99)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("is_perspective", [True, False])
def test_opengl_and_engine_renderers_draw_the_same_image(opengl: OpenGLRenderer, style: str, is_perspective: bool) -> None:
    scene = scene_of(2)
    scene.style = style
    camera = Camera(is_perspective=is_perspective).facing(scene.points()).fitted(scene.points(), 4 / 3).panned(9, -6, 180)
    by_opengl, by_engine = (drawn(renderer, scene, camera, fog=False) for renderer in (opengl, DrawnRenderer()))
    # Edges are smoothed in two ways; over a few pixels that is the same.
    by_opengl, by_engine = (picture.reshape(45, 4, 60, 4, 3).mean(axis=(1, 3)) for picture in (by_opengl, by_engine))
    differs = np.abs(by_opengl - by_engine).max(axis=2)
    is_drawn = (by_engine < 250).any(axis=2)
    assert is_drawn.mean() > 0.05 and np.median(differs[is_drawn]) <= 8 and (differs > 30).mean() < 0.01


@pytest.mark.parametrize("background", ["white", "grey", "black"])
def test_renderers_fade_distant_parts_to_the_background(opengl: OpenGLRenderer, background: str) -> None:
    balls = spheres(np.array([[-10.0, 0, 30], [10.0, 0, -30]]), 5.0, 3)
    bodies = [Body(balls, np.full((len(balls.vertices), 3), (200, 60, 20), np.uint8))]
    scene = scene_of(0)
    scene.points = lambda: balls.vertices  # type: ignore[method-assign]
    ground = np.array(QColor(background).getRgb()[:3])
    for renderer in (opengl, DrawnRenderer()):
        seen = drawn(renderer, scene, Camera(height=60, is_perspective=False), background, bodies)
        near, far = (np.abs(seen[90, column] - ground).sum() for column in (90, 150))
        assert near > 1.6 * far > 0
        plain = drawn(renderer, scene, Camera(height=60, is_perspective=False), background, bodies, fog=False)
        assert (plain[90, 90] == plain[90, 150]).all() and (plain[0, 0] == ground).all()


def test_renderers_draw_no_black_face_at_any_rotation(opengl: OpenGLRenderer) -> None:
    scene = scene_of(0)
    for renderer in (opengl, DrawnRenderer()):
        camera = Camera().facing(scene.points()).fitted(scene.points(), 4 / 3)
        for _ in range(6):
            camera = camera.turned(60, 25)
            # Blue's own darkest is 0.4 of it.
            assert drawn(renderer, scene, camera, fog=False, is_smooth=False)[:, :, 2].min() > 0.35 * 178


def test_opengl_renderer_frees_buffers_of_hidden_meshes(opengl: OpenGLRenderer) -> None:
    scene = scene_of(3)
    drawn(opengl, scene)
    assert opengl.n_buffers == 3 * 4 + 1
    for hit in scene.hits:
        hit.is_shown = False
    drawn(opengl, scene)
    assert opengl.n_buffers == 3 + 1
    for style in [*STYLES] * 3:
        scene.style = style
        drawn(opengl, scene)
        drawn(opengl, scene, is_smooth=False)
    assert opengl.n_buffers == 3 + 2
    opengl.close()
    assert opengl.n_buffers == 0


def test_opengl_renderer_draws_recoloured_meshes_like_new_meshes(opengl: OpenGLRenderer) -> None:
    scene = scene_of(3)
    before = drawn(opengl, scene, is_smooth=False)
    uploaded = {key: body.points for key, body in opengl._uploaded.items()}
    assert scene.query is not None
    scene.lit = {scene.query: np.arange(len(scene.query)) % 3 == 0}
    after = drawn(opengl, scene, is_smooth=False)
    # The vertex positions stayed in GPU memory.
    assert {key: body.points for key, body in opengl._uploaded.items()} == uploaded
    fresh = OpenGLRenderer()
    assert (after != before).any() and (after == drawn(fresh, scene, is_smooth=False)).all()
    fresh.close()
    # The same mesh is drawn twice, in two colours; the second is in front.
    twice = [scene.bodies(100_000)[0], Body(scene.bodies(100_000)[0].mesh, np.zeros_like(scene.bodies(100_000)[0].colours))]
    alone = drawn(opengl, scene, bodies=twice[:1], is_smooth=False)
    assert (drawn(opengl, scene, bodies=twice, is_smooth=False) == alone).all()


def test_opengl_renderer_draws_only_recoloured_triangles_again(opengl: OpenGLRenderer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.gui.structure.opengl_renderer._FEW_TRIANGLES", 400)
    scene = scene_of(8)
    camera = Camera().facing(scene.points()).fitted(scene.points(), 4 / 3)
    triangles: list[int] = []
    draw = OpenGLRenderer._draw

    def counted(self: OpenGLRenderer, bodies: Any, *args: Any, **more: Any) -> None:
        triangles.extend((body.n_indices if corners is None else len(corners)) // 3 for body, corners in bodies)
        draw(self, bodies, *args, **more)

    monkeypatch.setattr(OpenGLRenderer, "_draw", counted)
    generator = np.random.default_rng(4)
    balls = spheres(scene.points()[:1] + np.array([[0.0, 0.0, 4.0]]), 2.0, 1)
    ball = Body(balls, np.full((len(balls.vertices), 3), (20, 160, 20), np.uint8))
    whole = sum(len(body.mesh.triangles) for body in scene.bodies(100_000))
    for step in range(12):
        first = int(generator.integers(0, 20))
        scene.lit = {trace: (np.arange(len(trace)) >= first) & (np.arange(len(trace)) < first + 3) for trace in scene.traces}
        if step == 7:
            camera = camera.turned(40.0, 10.0)
        if step == 4:
            drawn(opengl, scene, camera)  # a smooth image, independent of the others
        # Picks appear and disappear.
        bodies = [*scene.bodies(100_000), *([ball] if step % 3 else [])]
        triangles.clear()
        picture = drawn(opengl, scene, camera, bodies=bodies, is_smooth=False)
        assert (sum(triangles) < whole / 2) == (step not in (0, 7)), "the hidden body is drawn when it is visible from elsewhere"
        fresh = OpenGLRenderer()
        assert (picture == drawn(fresh, scene, camera, bodies=bodies, is_smooth=False)).all()
        fresh.close()


def test_renderers_draw_an_empty_scene_as_background(opengl: OpenGLRenderer) -> None:
    for renderer in (opengl, DrawnRenderer()):
        assert (drawn(renderer, scene_of(0), bodies=[]) == 255).all()


def test_renderers_reject_an_oversized_image(opengl: OpenGLRenderer) -> None:
    scene = scene_of(0)
    for renderer in (opengl, DrawnRenderer()):
        with pytest.raises(RenderingError):
            renderer.picture(scene.bodies(1000), Camera(), scene.sphere(), Backdrop(QColor("white")), QSize(30_000, 9_000), is_smooth=True)
    assert finest(QSize(8000, 6000)) == 1 and finest(QSize(640, 480)) == 4


def test_engine_renderer_draws_a_large_scene_at_full_size() -> None:
    scene = scene_of(0)
    image = DrawnRenderer().picture(
        scene.bodies(1000), Camera(), scene.sphere(), Backdrop(QColor("white")), QSize(2000, 1500), is_smooth=False
    )
    assert image.size() == QSize(2000, 1500)


def test_opengl_is_not_used_if_disabled_by_environment_variable(monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    monkeypatch.setenv(NO_OPENGL, "1")
    renderer, why = make_renderer()
    assert isinstance(renderer, DrawnRenderer) and why == f"{NO_OPENGL} is set"


PROGRAM = """
from PySide6.QtWidgets import QApplication
from proteoscope.gui.structure.canvas import make_renderer
application = QApplication(["proteoscope"])
renderer, why = make_renderer()
print(type(renderer).__name__, "|", why)
"""


@pytest.mark.parametrize(
    "environment",
    [{"QT_QPA_PLATFORM": "offscreen"}, {"QT_XCB_GL_INTEGRATION": "none"}],
    ids=["platform without OpenGL", "display without OpenGL"],
)
def test_engine_renderer_is_used_if_opengl_is_missing(environment: dict[str, str], display: None) -> None:
    if "QT_XCB_GL_INTEGRATION" in environment and os.environ.get("QT_QPA_PLATFORM", "xcb") != "xcb":
        pytest.skip("needs an X display")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    name, _, why = done.stdout.strip().partition(" | ")
    assert name == "DrawnRenderer" and why


def test_scene_skips_meshes_without_triangles() -> None:
    scene = scene_of(0)
    assert all(isinstance(body.mesh, Mesh) and len(body.mesh.triangles) for body in scene.bodies(1000))
