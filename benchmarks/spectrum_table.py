"""Longest stall of the window in each step of using the list of spectra of a run with a million spectra.

    xvfb-run -a python -m benchmarks.spectrum_table [--spectra 1000000] [--where-above 40]

One JSON line per step, as in `benchmarks.window`, with `seconds` until the step is done. Spectra are synthetic, with 20 random
peaks; a thousand of them are identified.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PySide6.QtWidgets import QApplication

from benchmarks.window import StallMeter, emit
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra
from proteoscope.gui.results.identification_view import IdentificationView
from tests.engine.identification_tables import identification
from tests.engine.views.result_projects import PARAMETERS

_PEAKS, _IDENTIFIED = 20, 1000


def made_project(folder: Path, n: int) -> Project:
    """Create a project with an identification of n spectra."""
    rng = np.random.default_rng(1)
    names, precursor = [f"scan={i + 1}" for i in range(n)], rng.uniform(300, 1500, n)
    height, charges, offsets = rng.lognormal(10, 2, n).astype(np.float32), np.full(n, 4, np.uint32), segment_offsets(np.full(n, _PEAKS))
    mz, intensity = np.sort(rng.uniform(100, 1500, (n, _PEAKS)), axis=1).ravel(), rng.lognormal(5, 1, n * _PEAKS).astype(np.float32)
    spectra = Spectra(
        ("run.mzML",),
        np.zeros(n, np.int32),
        names,
        np.arange(1, n + 1),
        np.arange(n),
        np.linspace(0, 7200, n),
        precursor,
        height,
        charges,
        offsets,
        mz,
        intensity,
    )
    result = identification(n_spectra=_IDENTIFIED)
    project = Project.create_or_open(folder)
    with project.run("identify", PARAMETERS) as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(result, name).sort_by([("score" if name == "psms" else "q_value", "descending")]))
        write_spectra(run, spectra, Progress())
    return project


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spectra", type=int, default=1_000_000)
    parser.add_argument("--where-above", type=float, default=1e6, help="ms")
    options = parser.parse_args()
    application = QApplication([])
    with tempfile.TemporaryDirectory(prefix="proteoscope-spectra-") as folder:
        project = made_project(Path(folder) / "project", options.spectra)
        view = IdentificationView()
        view.resize(1280, 800)
        view.show()
        view.show_run(project, None)
        meter = StallMeter(options.where_above / 1000)

        def settle(seconds: float = 0.1) -> None:
            until = time.perf_counter() + seconds
            while view.is_busy or view.spectra.is_busy or time.perf_counter() < until:
                application.processEvents()
                time.sleep(0.0005)

        @contextmanager
        def step(name: str) -> Iterator[None]:
            settle(0.3)
            meter.reset()
            began = time.perf_counter()
            yield
            settle()
            taken = time.perf_counter() - began - 0.1
            emit(
                figure="stall",
                step=name,
                spectra=options.spectra,
                own_ms=round(1000 * meter.computed),
                clock_ms=round(1000 * meter.clock),
                seconds=round(taken, 2),
            )
            for place, times in meter.places.most_common(4):
                print(f"    {name}: {times:4d}  {place}", file=sys.stderr, flush=True)

        table = view.spectra.panel.table
        with step("the list, first time"):
            view.lists.setCurrentIndex(1)
        with step("to its end"):
            bar = table.view.verticalScrollBar()
            for part in range(1, 21):
                bar.setValue(bar.maximum() * part // 20)
                settle(0.02)
        for name, order in (("sorted by total ion current", "total_ion_current"), ("sorted by m/z", "precursor_mz")):
            with step(name):
                table.model.show(order=[(order, True)])
        with step("to the end of the sorted list"):
            bar.setValue(bar.maximum())
        with step("a row chosen"):
            table.view.choose(options.spectra // 2)
        for name, state in (("identified alone", 1), ("the others alone", 2), ("all again", 0)):
            with step(name):
                view.spectra.panel.state.setCurrentIndex(state)
                view.spectra.panel.state.activated.emit(state)
        with step("a text looked for"):
            view.spectra.panel.text.setText("scan=77777")
            view.spectra.panel.text.returnPressed.emit()
        for page in (view.spectra.chromatogram, view.spectra.map):
            with step(f"tab {view.tabs.tabText(view.tabs.indexOf(page))}"):
                view.tabs.setCurrentWidget(page)
        meter.stop()
        view.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
