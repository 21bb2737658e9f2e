"""Time to draw a frame of the coverage depth while a user zooms and pans.

    xvfb-run -a -s "-screen 0 2600x1800x24" .venv/bin/python -m benchmarks.depth [--alignments N] >> figures.jsonl

One JSON line for each figure, in milliseconds: `median` and `longest` of 60 frames, painted by the widget as on the screen, with the whole
reference of three million bases visible, a tenth of it, or a thousand bases; and the time to count the depth.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from PySide6.QtWidgets import QApplication

from benchmarks.run_map import emit, timed
from proteoscope.engine.views.depth import Depth
from proteoscope.gui.plots.depth_plot import DepthPlot

_LENGTH, _READ = 3_000_000, 150


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alignments", type=int, default=1_000_000)
    arguments = parser.parse_args()
    application = QApplication([])
    start = np.random.default_rng(1).integers(1, _LENGTH - _READ, arguments.alignments)
    for width, height in ((950, 120), (1900, 300)):
        shown = DepthPlot()
        shown.resize(width, height)
        shown.show()
        application.processEvents()
        size = {"alignments": arguments.alignments, "width": width, "height": height}
        started = time.perf_counter()
        shown.show_depth(Depth.from_ranges("genome", _LENGTH, start, start + _READ - 1))
        emit("depth", [(time.perf_counter() - started) * 1000], **size)
        for name, n_bases in (("whole", _LENGTH), ("a tenth", _LENGTH // 10), ("a thousand letters", 1000)):
            emit(f"frame, {name}", *timed(partial(draw_frame, shown, n_bases)), **size)
        shown.close()


def draw_frame(shown: DepthPlot, n_bases: int, number: int) -> None:
    """Draw the depth, moved and zoomed a little in each frame."""
    left = 0.3 * (_LENGTH - n_bases) + 3 * number
    shown.show_range(((left, left + n_bases - number),))
    shown.viewport().repaint()


if __name__ == "__main__":
    main()
