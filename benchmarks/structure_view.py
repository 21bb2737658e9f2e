"""Speed of drawing and turning superposed structures, time until a click shows a hit, and memory after many hits.

    xvfb-run -a .venv/bin/python -m benchmarks.structure_view [--chains 20] [--residues 300] > figures.jsonl

One JSON line for each figure, times in milliseconds: `median` and `longest`. `frame` is a picture of 800 x 600 pixels with `--chains`
chains, during a rotation (without antialiasing) and at rest (antialiased), in each style, with and without OpenGL. `click to drawn` is the
time from the press of the mouse on a row of the table of hits to the end of the painting; the very first picture also creates the OpenGL
context. `hits looked at` has the number of OpenGL buffers and the memory of the process in MB, after the first ten and after all of a
hundred hits.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs import Progress
from proteoscope.gui.results.structure_view import StructureView
from proteoscope.gui.structure.camera import Camera
from proteoscope.gui.structure.canvas import StructureCanvas
from proteoscope.gui.structure.drawn_renderer import DrawnRenderer
from proteoscope.gui.structure.opengl_renderer import OpenGLRenderer
from proteoscope.gui.structure.rendering import Backdrop, RenderingError
from tests.engine.views.structure_projects import project_with_structures
from tests.engine.views.trace_examples import query_and_hits
from tests.gui.structure.examples import scene_of

SIZE = QSize(800, 600)
N_LOOKED_AT = 100


def emit(figure: str, milliseconds: Iterable[float], **more: Any) -> None:
    """Print a figure as a JSON line immediately."""
    values = sorted(milliseconds)
    print(json.dumps({"figure": figure, "median": round(values[len(values) // 2], 1), "longest": round(values[-1], 1), **more}), flush=True)


def measure_frames(n_chains: int, n_residues: int) -> None:
    """Measure frames of a scene that is rotated, in each style and by each renderer."""
    scene = scene_of(n_chains - 1, n_residues)
    compile_kernels(["drawing"], Progress())
    renderers: list[OpenGLRenderer | DrawnRenderer] = [DrawnRenderer()]
    try:
        renderers.insert(0, OpenGLRenderer())
    except RenderingError as error:
        print(json.dumps({"figure": "OpenGL", "why_not": str(error)}), flush=True)
    for renderer in renderers:
        for style in ("ribbon", "tube", "line", "sphere"):
            scene.style = style
            bodies = scene.bodies(renderer.maximum_triangles)
            n_triangles = sum(len(body.mesh.triangles) for body in bodies)
            camera = Camera().facing(scene.points()).fitted(scene.points(), SIZE.width() / SIZE.height())
            for is_smooth in (False, True):
                times = []
                for _ in range(21):
                    camera = camera.turned(3.0, 1.0)
                    started = time.perf_counter()
                    backdrop = Backdrop(QColor("white"))
                    renderer.picture(scene.bodies(renderer.maximum_triangles), camera, scene.sphere(), backdrop, SIZE, is_smooth=is_smooth)
                    times.append((time.perf_counter() - started) * 1000)
                emit(
                    "frame",
                    times[1:],
                    by=renderer.name,
                    style=style,
                    at_rest=is_smooth,
                    chains=n_chains,
                    residues=n_residues,
                    triangles=n_triangles,
                    first=round(times[0], 1),
                )
        renderer.close()


def settle(application: QApplication, view: StructureView) -> None:
    """Wait until nothing is being loaded or drawn."""
    until = time.perf_counter() + 0.3
    while view.is_busy or time.perf_counter() < until:
        application.processEvents()


def measure_clicks(application: QApplication, folder: Path) -> None:
    """Click through the hits of a search."""
    view = StructureView()
    view.resize(1600, 1000)
    view.show()
    view.show_run(project_with_structures(folder), None)
    settle(application, view)
    started = time.perf_counter()
    view.structures_action.setChecked(True)
    panel = view.structures
    assert panel is not None
    panel.canvas.repaint()
    emit("first picture of all", [(time.perf_counter() - started) * 1000])
    settle(application, view)
    times = []
    hits = view.hits
    n_hits = len(hits.model.rows)
    for position in [*range(1, n_hits), 0] * 3:
        index = hits.model.index(position, hits.view.horizontalHeader().logicalIndexAt(5))
        hits.view.scrollTo(index)
        settle(application, view)
        before = panel.scene.chosen
        at = hits.view.visualRect(index).center()
        started = time.perf_counter()
        QTest.mouseClick(hits.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(30, at.y()))
        while panel.scene.chosen is before:
            application.processEvents()
        panel.canvas.repaint()
        view.alignment.plot.viewport().repaint()
        times.append((time.perf_counter() - started) * 1000)
    emit("click to drawn", times[:n_hits], read="from the file")
    emit("click to drawn", times[n_hits:], read="kept")
    view.clear()
    view.close()


def measure_memory(application: QApplication, n_residues: int) -> None:
    """Show many hits, one after the other."""
    query, hits = query_and_hits(N_LOOKED_AT, n_residues)
    scene = scene_of(0, n_residues)
    canvas = StructureCanvas(scene)
    canvas.resize(SIZE)
    canvas.show()
    application.processEvents()
    for i, hit in enumerate(hits):
        scene.show(query, hit)
        canvas.show_camera(canvas.first_camera(scene.points()))
        canvas.repaint()
        if i in (9, N_LOOKED_AT - 1):
            renderer = canvas.renderer
            buffers = renderer.n_buffers if isinstance(renderer, OpenGLRenderer) else 0
            print(json.dumps({"figure": "hits looked at", "hits": i + 1, "buffers": buffers, "mb": _resident()}), flush=True)
    canvas.close_renderer()


def _resident() -> float:
    """Return MB of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--residues", type=int, default=300)
    arguments = parser.parse_args()
    application = QApplication([])
    measure_frames(arguments.chains, arguments.residues)
    measure_memory(application, arguments.residues)
    with tempfile.TemporaryDirectory() as folder:
        measure_clicks(application, Path(folder) / "project")


if __name__ == "__main__":
    main()
