"""Speed of the tables of the window: opening, filtering, sorting and scrolling a million PSMs.

    xvfb-run -a .venv/bin/python -m benchmarks.tables PROJECT [--rows 1000000] > figures.jsonl

PROJECT contains a finished identification. Its real PSMs are repeated with different scores and masses until there are enough. One JSON
line for each figure, in milliseconds: `median` and `longest` of several runs. `until_shown` is from the request to the moment when the view
has been painted with the new rows; `held` is the longest time during which the window did not respond. `rows of a filter` is only the time
of DuckDB for filtering; on a busy machine, its minimum (`least`) compares two versions (`least_before`: version of 2026-11-22).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from proteoscope.engine.identification.tables import TABLES
from proteoscope.engine.project import Project
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.identification import RowFilter, filter_conditions
from proteoscope.engine.views.tables import ResultTables
from proteoscope.gui.tables.model import ParquetTableModel
from proteoscope.gui.tables.view import TableView

REPEATS = 7


def emit(figure: str, milliseconds: Iterable[float], **more: Any) -> None:
    """Print a figure as a JSON line immediately."""
    values = sorted(milliseconds)
    print(json.dumps({"figure": figure, "median": round(values[len(values) // 2], 1), "longest": round(values[-1], 1), **more}), flush=True)


def many_rows(path: Path, n_rows: int) -> pa.Table:
    """Return repeated rows of a table; measured values differ in each."""
    real = pq.read_table(path)
    random = np.random.default_rng(1)
    rows = random.integers(0, len(real), n_rows)
    table = real.take(pa.array(rows)).combine_chunks()
    for name, spread in (("score", 0.3), ("precursor_mz", 5.0), ("mass_error_ppm", 1.0), ("retention_time", 60.0)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(table[name].to_numpy() + random.normal(0, spread, n_rows)))
    at = table.schema.get_field_index("psm_id")
    return table.set_column(at, "psm_id", pa.array(np.arange(n_rows)))


class Stopwatch:
    """Timer of requests, and of stalls of the event loop meanwhile."""

    def __init__(self, application: QApplication, view: TableView) -> None:
        self._application, self._view = application, view
        self._last = time.perf_counter()
        self.held = 0.0
        self._timer = QTimer(interval=1)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def measure(self, ask: Callable[[], None]) -> tuple[float, float]:
        """Return milliseconds until the result of `request` is painted, and of the longest stall."""
        model = self._view.model()
        assert isinstance(model, ParquetTableModel)
        self._application.processEvents()
        self.held, self._last = 0.0, time.perf_counter()
        loop = QEventLoop()
        model.orderChanged.connect(loop.quit)
        started = time.perf_counter()
        ask()
        loop.exec()
        self._view.viewport().repaint()
        elapsed = time.perf_counter() - started
        model.orderChanged.disconnect(loop.quit)
        self._application.processEvents()
        return elapsed * 1000, self.held

    def stop(self) -> None:
        """End the clock."""
        self._timer.stop()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.held = max(self.held, (now - self._last) * 1000)
        self._last = now


def measure_opening(path: Path) -> None:
    """Measure opening tables with all rows in file order, and with the initial rows of the results view."""
    accepted = filter_conditions(RowFilter(q_value=0.01), "psms")
    time_to_open(path, [], [])
    for name, conditions, order in (
        ("all rows", [], []),
        ("accepted rows", accepted, []),
        ("accepted rows, by score", accepted, [("score", True)]),
    ):
        emit("open", [time_to_open(path, conditions, order) for _ in range(REPEATS)], shown=name)


def seconds_of(ask: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started


def time_to_open(path: Path, conditions: list[Condition], order: list[tuple[str, bool]]) -> float:
    """Return the milliseconds until the first rows of a new table are painted."""
    started = time.perf_counter()
    model = ParquetTableModel(TABLES[2].columns, TABLES[2].links, QGuiApplication.palette)
    view = TableView(model, "PSMs")
    view.resize(1200, 700)
    view.show()
    tables = ResultTables({"psms": path})
    model.open(tables.source("psms"))
    view.hide_columns([column.name for column in model.columns if not column.is_shown])
    loop = QEventLoop()
    model.orderChanged.connect(loop.quit)
    model.show(conditions, order)
    loop.exec()
    view.viewport().repaint()
    elapsed = (time.perf_counter() - started) * 1000
    model.close()
    tables.close()
    view.close()
    view.deleteLater()
    wait(50)
    return elapsed


def wait(milliseconds: int) -> None:
    """Let the event loop run."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def measure_scrolling(view: TableView, model: ParquetTableModel) -> None:
    """Measure each painted step of scrolling: by page, and by dragging the bar back and forth."""
    random = np.random.default_rng(2)
    bar = view.verticalScrollBar()
    ways = {
        "page by page": range(0, 30 * 250, 30),
        "to and fro": random.integers(0, bar.maximum(), 150).tolist(),
    }
    for name, positions in ways.items():
        times = []
        for position in positions:
            started = time.perf_counter()
            bar.setValue(position)
            view.viewport().repaint()
            times.append((time.perf_counter() - started) * 1000)
            # A user who scrolls with the wheel or the bar causes about sixty steps per second.
            wait(16)
        emit("scroll", times, way=name, ninety_nine_percent=round(float(np.percentile(times, 99)), 1))
        arrived = []
        for position in random.integers(0, len(model.rows), 20).tolist():
            started = time.perf_counter()
            view.scrollTo(model.index(position, 0))
            view.viewport().repaint()
            loop = QEventLoop()
            model.dataChanged.connect(loop.quit)
            while model.values(position) is None:
                loop.exec()
            model.dataChanged.disconnect(loop.quit)
            arrived.append((time.perf_counter() - started) * 1000)
        emit("values there after a jump", arrived, way=name)


def main() -> None:
    """Make the table, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    application = QApplication([])
    project = Project.open(arguments.project)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.parquet" for name in ("psms", "peptides", "proteins")}
        for name, path in paths.items():
            table = many_rows(project.table(name), arguments.rows) if name == "psms" else pq.read_table(project.table(name))
            pq.write_table(table, path, compression="zstd", compression_level=1, row_group_size=1 << 17)
        measure_opening(paths["psms"])

        model = ParquetTableModel(TABLES[2].columns, TABLES[2].links, QGuiApplication.palette)
        view = TableView(model, "PSMs")
        tables = ResultTables(paths)
        model.open(tables.source("psms"))
        view.hide_columns([column.name for column in model.columns if not column.is_shown])
        view.size_columns()
        view.resize(1200, 700)
        view.show()
        watch = Stopwatch(application, view)
        watch.measure(model.show)
        modification = next(
            iter(tables.source("psms").query("SELECT unnest(modification_names) AS n FROM psms LIMIT 1")["n"].to_pylist()), ""
        )
        filters = {
            "q-value": RowFilter(q_value=0.01),
            "charge": RowFilter(charge=2, q_value=0.01),
            "modification": RowFilter(modification=modification, shows_decoys=True),
            "text of a peptide": RowFilter(text="LGE", shows_decoys=True),
            "text of a description": RowFilter(text="ribosomal", shows_decoys=True),
        }
        source = tables.source("psms")
        for name, chosen in filters.items():
            conditions = filter_conditions(chosen, "psms")
            times = [watch.measure(lambda conditions=conditions: model.show(conditions)) for _ in range(REPEATS)]
            emit("filter", [time[0] for time in times], by=name, rows=len(model.rows), held=round(max(time[1] for time in times), 1))
            alone = [seconds_of(lambda conditions=conditions: source.rows(conditions)) * 1000 for _ in range(REPEATS)]
            emit("rows of a filter", alone, by=name, rows=len(model.rows), least=round(min(alone), 1))
        source.close()
        watch.measure(lambda: model.show([]))
        for name in ("score", "q_value", "precursor_mz", "peptide", "proteins"):
            times = [watch.measure(lambda name=name: model.show(order=[(name, True)])) for _ in range(REPEATS)]
            emit("sort", [time[0] for time in times], by=name, rows=len(model.rows), held=round(max(time[1] for time in times), 1))
        watch.measure(lambda: model.show(order=[("score", True)]))
        watch.stop()
        measure_scrolling(view, model)
        model.close()
        tables.close()


if __name__ == "__main__":
    main()
