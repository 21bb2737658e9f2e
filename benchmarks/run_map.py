"""Time to draw a frame of the map of a run while a user zooms and pans.

    xvfb-run -a .venv/bin/python -m benchmarks.run_map [--points 1000000] >> benchmarks/results/run_map.jsonl

One JSON line for each figure, in milliseconds: `median` and `longest` of 60 frames, painted by the widget as the screen shows it, and
`median_cpu` and `longest_cpu`, the CPU time of the thread that paints, which other programs do not lengthen. `whole`: all points are
visible; `half`: the middle half of the times; `part`: a tenth of the times and of the m/z; `pointer`: the search for the point nearest to
the pointer, with all points visible.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication

from proteoscope.engine.views.run_map import MapPoints
from proteoscope.gui.plots.run_map import RunMap

_FRAMES = 60


def emit(figure: str, milliseconds: Iterable[float], cpu: Iterable[float] = (), **more: int | str) -> None:
    """Print a figure as a JSON line immediately."""
    numbers = {}
    for name, values in (("", sorted(milliseconds)), ("_cpu", sorted(cpu))):
        if values:
            numbers |= {f"median{name}": round(values[len(values) // 2], 1), f"longest{name}": round(values[-1], 1)}
    print(json.dumps({"figure": figure, **numbers, **more}), flush=True)


def made_table(n: int, seed: int = 1) -> pa.Table:
    """Return a run of n spectra over two hours, most of them unexplained, as in the table ``map``."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "spectrum": np.arange(n),
            "retention_time": np.sort(random.uniform(0, 7200, n)),
            "precursor_mz": 350 + random.gamma(3, 150, n),
            "status": random.choice(np.array([0, 1, 2], np.uint8), n, p=[0.6, 0.35, 0.05]),
            "scan": np.arange(n),
            "spectrum_file": pa.array(["run.mzML"] * n),
        }
    )


def timed(work: Callable[[int], None]) -> tuple[list[float], list[float]]:
    """Return milliseconds of each frame, and of the thread's CPU time."""
    walls, cpus = [], []
    for frame in range(_FRAMES):
        started, cpu = time.perf_counter(), time.thread_time()
        work(frame)
        walls.append((time.perf_counter() - started) * 1000)
        cpus.append((time.thread_time() - cpu) * 1000)
    return walls, cpus


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    arguments = parser.parse_args()
    application = QApplication([])
    for width, height in ((700, 420), (1200, 700)):
        shown = RunMap()
        shown.resize(width, height)
        shown.show()
        application.processEvents()
        started = time.perf_counter()
        shown.show_points(MapPoints.from_table(made_table(arguments.points)))
        shown.canvas.viewport().repaint()
        size = {"points": arguments.points, "width": width, "height": height}
        emit("points taken over", [(time.perf_counter() - started) * 1000], **size)
        for name, share, mz_share in (("whole", 0.999, 0.999), ("half", 0.5, 0.999), ("part", 0.1, 0.1)):
            emit(f"frame, {name}", *timed(partial(draw_frame, shown, share, mz_share)), **size)
        shown.reset_range()
        shown.canvas.viewport().repaint()
        emit("pointer", *timed(partial(pick_at_pointer, shown)), **size)
        shown.close()


def draw_frame(shown: RunMap, share: float, mz_share: float, number: int) -> None:
    """Draw the map, moved a little in each frame."""
    assert shown.points is not None
    (x_low, x_high), (low, high) = shown.points.whole
    moved = number * 1e-5
    left, bottom = x_low + (0.4 * (1 - share) + moved) * (x_high - x_low), low + 0.2 * (1 - mz_share) * (high - low)
    shown.canvas.show_range(((left, left + share * (x_high - x_low)), (bottom, bottom + mz_share * (high - low))))
    shown.canvas.viewport().repaint()


def pick_at_pointer(shown: RunMap, number: int) -> None:
    """Find the point nearest to the pointer."""
    shown.canvas.picked_at(shown.canvas.inner().topLeft() + QPointF(7 * number, 100))


if __name__ == "__main__":
    main()
