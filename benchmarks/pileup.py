"""Time to draw a frame of the pile-up of reads in a deep contig while a user zooms, pans and scrolls.

    xvfb-run -a -s "-screen 0 2600x1800x24" .venv/bin/python -m benchmarks.pileup [--alignments N] [--errors SHARE] >> figures.jsonl

One JSON line for each figure, in milliseconds: `median` and `longest` of 60 frames, painted by the widget as the screen shows it, with the
depth of the whole contig of 30,000 bases above the alignments, and 10,000 visible alignments of 150 bases: as thin lines within 2,000 and
20,000 bases, and as lines of written bases. `differences`: time to find the differences of these alignments, in the thread that reads
tables.
"""

from __future__ import annotations

import argparse
import gc
import time
from functools import partial

import numpy as np
import pyarrow as pa
from PySide6.QtWidgets import QApplication

from benchmarks.run_map import emit, timed
from proteoscope.engine.arrays import Texts
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.pileup import MAXIMUM_READS, Pileup, _lanes, find_differences
from proteoscope.engine.views.reads import ShownReference
from proteoscope.gui.plots.pileup_plot import PileupPlot

_LENGTH, _READ = 30_000, 150


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alignments", type=int, default=1_000_000)
    parser.add_argument("--errors", type=float, default=0.01)
    arguments = parser.parse_args()
    application = QApplication([])
    gc.disable()  # as the window, which collects garbage when it is idle
    random = np.random.default_rng(1)
    start = np.sort(random.integers(1, _LENGTH - _READ, arguments.alignments))
    text, depth = ShownReference(0, "contig", _LENGTH), Depth.from_ranges("contig", _LENGTH, start, start + _READ - 1)
    for width, height in ((950, 300), (1900, 900)):
        shown = PileupPlot()
        shown.resize(width, height)
        shown.show()
        application.processEvents()
        size = {"alignments": arguments.alignments, "errors": arguments.errors, "width": width, "height": height}
        for name, first, n_bases in (("2,000 bases", 10_000, 2000), ("20,000 bases", 5000, 20_000), ("written bases", 10_000, 60)):
            pile, milliseconds = synthetic_pile(text, start, (first, first + n_bases - 1), arguments.errors)
            emit(f"differences, {name}", [milliseconds], **size, n_reads=len(pile))
            shown.scroll_to(text, pile.first, pile.last)
            shown.show_pile(pile)
            shown.show_depth(depth)
            emit(
                f"move and zoom, {name}", *timed(partial(draw_frame, shown, first, n_bases)), **size, n_reads=len(pile), lines=pile.n_lanes
            )
            emit(f"scroll, {name}", *timed(partial(scroll_frame, shown)), **size, n_reads=len(pile), lines=pile.n_lanes)
        shown.close()


def synthetic_pile(text: ShownReference, start: np.ndarray, view: tuple[int, int], errors: float) -> tuple[Pileup, float]:
    """Return a pile-up of reads with substitutions, from alignments in view as the window chooses them, and its time in milliseconds."""
    random, (first, last) = np.random.default_rng(2), view
    start = start[(start <= last) & (start + _READ > first)]
    n_left_out = max(0, len(start) - MAXIMUM_READS)
    start = start[np.linspace(0, len(start) - 1, min(len(start), MAXIMUM_READS)).astype(np.int64)]
    is_wrong = random.random((len(start), _READ)) < errors
    runs = [np.split(row, np.flatnonzero(np.diff(row)) + 1) for row in is_wrong]
    cigars = ["".join(f"{len(run)}{'X' if run[0] else '='}" for run in row) for row in runs]
    mds = ["".join("A" * len(run) if run[0] else str(len(run)) for run in row) for row in runs]
    ends, strand = start + _READ - 1, np.where(random.random(len(start)) < 0.5, "+", "-")
    names = [f"read{number}" for number in range(len(start))]
    columns = pa.table(
        {
            "text_start": start,
            "text_end": ends,
            "pattern_start": np.full(len(start), 1),
            "pattern_end": np.full(len(start), _READ),
            "strand": pa.array(strand.tolist()),
            "cigar": cigars,
            "md": mds,
            "pattern": names,
        }
    )
    bases = random.choice(np.frombuffer(b"ACGT", np.uint8), len(start) * _READ)
    reads = Texts(bases, np.arange(len(start) + 1) * _READ)
    started = time.perf_counter()
    differences, lanes = find_differences(columns, reads, first, last), _lanes(start, ends)
    milliseconds = (time.perf_counter() - started) * 1000
    rows, is_reverse = np.arange(len(start)), strand == "-"
    return Pileup(text, first, last, n_left_out, rows, start, ends, is_reverse, lanes, *differences, tuple(names)), milliseconds


def draw_frame(shown: PileupPlot, first: int, n_bases: int, number: int) -> None:
    """Draw the pile-up, moved and zoomed a little in each frame."""
    shown.show_range(((first + number * n_bases / 1000, first + n_bases * (1 - number / 1000)),))
    shown.repaint()


def scroll_frame(shown: PileupPlot, number: int) -> None:
    """Draw the pile-up, scrolled by some lines in each frame."""
    shown.scroll_lines(5 * (number % 30))
    shown.repaint()


if __name__ == "__main__":
    main()
