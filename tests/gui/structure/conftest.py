"""Fixtures for tests of the view in three dimensions: an OpenGL context if available, and compiled kernels."""

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
    """Compile the renderer without OpenGL, as after the first image on a machine."""
    compile_kernels(["drawing"], Progress())


@pytest.fixture
def opengl(qapp: QApplication) -> Iterator[OpenGLRenderer]:
    """OpenGL, in software under Xvfb; skips the test if there is none."""
    from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer
    from proteoscope.gui.structure.rendering import RenderingError

    try:
        renderer = OpenGLRenderer()
    except RenderingError as error:
        pytest.skip(f"no OpenGL here: {error}")
    yield renderer
    renderer.close()
