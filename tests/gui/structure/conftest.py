"""What tests of the view in three dimensions share: an OpenGL context where this display gives one, and compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs import Progress

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """What draws without OpenGL is there, as after the first picture on a machine."""
    compile_kernels(["drawing"], Progress())


@pytest.fixture
def opengl(qapp: QApplication) -> Iterator[OpenGLRenderer]:
    """OpenGL, by software under Xvfb; a test is skipped where there is none."""
    from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer
    from proteoscope.gui.structure.rendering import RenderingError

    try:
        renderer = OpenGLRenderer()
    except RenderingError as error:
        pytest.skip(f"no OpenGL here: {error}")
    yield renderer
    renderer.close()
