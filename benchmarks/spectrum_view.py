"""Time from a click on a PSM to the drawn spectrum, and time to read single spectra.

    xvfb-run -a .venv/bin/python -m benchmarks.spectrum_view [--peaks 2000] [--spectra 100000] > figures.jsonl

One JSON line for each figure, in milliseconds: `median` and `longest`. `click to drawn` is from the press of the mouse on a row of the
table to the end of the painting of a spectrum with annotation, labels and ion table, in the whole results view. `read` is the time for
random rows of a file of spectra, with the row groups that the search writes and with smaller ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from proteoscope.engine.project import Project
from proteoscope.engine.views.peaks import SpectraReader
from proteoscope.gui.results.identification_view import IdentificationView
from tests.engine.identification_tables import identification
from tests.engine.views.result_projects import PARAMETERS, spectra_table


def emit(figure: str, milliseconds: Iterable[float], **more: Any) -> None:
    """Print a figure as a JSON line immediately."""
    values = sorted(milliseconds)
    print(json.dumps({"figure": figure, "median": round(values[len(values) // 2], 1), "longest": round(values[-1], 1), **more}), flush=True)


def settle(application: QApplication, view: IdentificationView) -> None:
    """Wait until nothing is being loaded or drawn."""
    until = time.perf_counter() + 0.1
    while view.is_busy or time.perf_counter() < until:
        application.processEvents()


def measure_clicks(application: QApplication, folder: Path, n_peaks: int) -> None:
    """Click through the rows of the PSMs."""
    result = identification(n_spectra=150)
    project = Project.create_or_open(folder)
    with project.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(result, name))
        run.write_table("spectra", spectra_table(result, n_noise=n_peaks - 30))
    view = IdentificationView()
    view.resize(1600, 1000)
    view.show()
    view.show_run(project, None)
    settle(application, view)
    panel = view.psms
    times, n_drawn = [], []
    for position in range(1, min(40, len(panel.model.rows))):
        panel.view.scrollTo(panel.model.index(position, 0))
        settle(application, view)
        before = view.spectrum.spectrum
        at = panel.view.visualRect(panel.model.index(position, 0)).center()
        started = time.perf_counter()
        QTest.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(30, at.y()))
        while view.spectrum.spectrum is before:
            application.processEvents()
        view.spectrum.plot.viewport().repaint()
        view.spectrum.ladder.repaint()
        view.spectrum.ion_table.viewport().repaint()
        times.append((time.perf_counter() - started) * 1000)
        assert view.spectrum.spectrum is not None
        n_drawn.append(len(view.spectrum.spectrum.peaks.mz))
    emit("click to drawn", times[1:], first=round(times[0], 1), peaks=int(np.median(n_drawn)))
    spectrum = view.spectrum.spectrum
    assert spectrum is not None
    zooms = []
    for i in range(60):
        low = 100 + 10 * i
        started = time.perf_counter()
        view.spectrum.plot.show_range(((low, low + 400), view.spectrum.plot.ranges[1]))
        view.spectrum.plot.viewport().repaint()
        zooms.append((time.perf_counter() - started) * 1000)
    emit("zoom, labels laid out anew", zooms, peaks=len(spectrum.peaks.mz))
    view.clear()


def measure_reading(folder: Path, n_spectra: int) -> None:
    """Measure random rows of a large file."""
    random = np.random.default_rng(3)
    counts = random.integers(100, 500, n_spectra)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    mz = random.uniform(100, 1500, offsets[-1])
    # Ascending within each spectrum: sorted by spectrum, then by m/z.
    mz = mz[np.lexsort((mz, np.repeat(np.arange(n_spectra), counts)))]
    intensity = random.lognormal(5, 2, offsets[-1]).astype(np.float32)
    table = pa.table(
        {
            "spectrum": np.arange(n_spectra),
            "mz": pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(mz)),
            "intensity": pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(intensity)),
        }
    )
    for row_group_size in (256, 1024, 1 << 17):
        path = folder / f"spectra-{row_group_size}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=1, row_group_size=row_group_size)
        started = time.perf_counter()
        reader = SpectraReader(path)
        opening = (time.perf_counter() - started) * 1000
        times = []
        for row in random.integers(0, n_spectra, 40).tolist():
            started = time.perf_counter()
            reader.peaks(row)
            times.append((time.perf_counter() - started) * 1000)
        reader.close()
        emit("read", times, rows_of_a_group=row_group_size, spectra=n_spectra, opening=round(opening, 1))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peaks", type=int, default=2000)
    parser.add_argument("--spectra", type=int, default=100_000)
    arguments = parser.parse_args()
    application = QApplication([])
    with tempfile.TemporaryDirectory() as folder:
        measure_clicks(application, Path(folder) / "project", arguments.peaks)
        measure_reading(Path(folder), arguments.spectra)


if __name__ == "__main__":
    main()
