"""Time per frame while scrolling stacked sequences, with the program's own painting and with pyqtgraph items for the same cells.

    xvfb-run -a .venv/bin/python -m benchmarks.stack_painting [--hits 500] [--columns 2000] >> benchmarks/results/stack_painting.jsonl

A JSON line for each figure, in milliseconds: `median` and `longest` of 60 frames with a step of three columns and one row each, and the
CPU time of the painting thread. `program`: `StackPlot`, as in the window. `pyqtgraph text items`: the colours as one `ImageItem` and one
`TextItem` for each visible cell, reused from frame to frame. `pyqtgraph picture`: the colours as an `ImageItem`, and all visible characters
as one picture in a `GraphicsObject` of our own, which pyqtgraph only moves. Both pyqtgraph forms leave out the names, the conservation and
the marks, which `program` includes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPicture, QTransform
from PySide6.QtWidgets import QApplication, QWidget

from proteoscope.engine.arrays import Texts
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.views.stack_colours import ColouredStack
from proteoscope.gui.alignment.stack_plot import StackPlot

_FRAMES = 60
_RESIDUES = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)


def synthetic_stack(n_hits: int, n_columns: int) -> ColouredStack:
    """Return a stack of random hits that share half of the query's residues."""
    random = np.random.default_rng(1)
    query = random.choice(_RESIDUES, n_columns)
    hits = np.where(random.random((n_hits, n_columns)) < 0.5, query, random.choice(_RESIDUES, (n_hits, n_columns)))
    lines, offsets = hits.reshape(-1), np.arange(n_hits + 1) * n_columns
    zeros = np.zeros(n_hits, np.int64)
    names = [f"subject{number}" for number in range(n_hits)]
    subjects = AlignedSubjects(
        names, [""] * n_hits, zeros + n_columns, zeros, zeros, Texts(np.tile(query, n_hits), offsets), Texts(lines, offsets), zeros
    )
    return ColouredStack.from_stack(Stack.from_subjects("query", "", query.tobytes().decode(), subjects), "clustal")


class TextItems(pg.GraphicsView):
    """The stack as an `ImageItem` and one `TextItem` for each visible cell."""

    def __init__(self, stack: ColouredStack, cell: tuple[float, float]) -> None:
        super().__init__()
        self.stack, self.cell = stack, cell
        self.box = pg.ViewBox(invertY=True, enableMenu=False)
        self.setCentralItem(self.box)
        self.box.addItem(pg.ImageItem(stack.colours, axisOrder="row-major"))
        self.items_in_use: list[pg.TextItem] = []

    def show_part(self, row: int, column: int) -> None:
        """Show the part that starts at a row and column."""
        n_columns, n_rows = int(self.width() / self.cell[0]), int(self.height() / self.cell[1])
        self.box.setRange(QRectF(column, row, n_columns, n_rows), padding=0)
        characters = self.stack.symbols[row : row + n_rows, column : column + n_columns]
        while len(self.items_in_use) < characters.size:
            self.items_in_use.append(pg.TextItem("", color="k", anchor=(0.5, 0.5)))
            self.box.addItem(self.items_in_use[-1], ignoreBounds=True)
        for item, (at, code) in zip(self.items_in_use, np.ndenumerate(characters), strict=False):
            item.setText(chr(code))
            item.setPos(column + at[1] + 0.5, row + at[0] + 0.5)


class Characters(pg.GraphicsObject):
    """The characters of the visible part, painted into a picture."""

    def __init__(self) -> None:
        super().__init__()
        self.picture, self.area = QPicture(), QRectF()

    def show(self, characters: np.ndarray, area: QRectF, cell: tuple[float, float], font: QFont) -> None:  # type: ignore[override]
        """Paint characters of an area into the picture."""
        self.prepareGeometryChange()
        self.area, self.picture = area, QPicture()
        painter = QPainter(self.picture)
        painter.setFont(font)
        for row, line in enumerate(characters):
            for column, code in enumerate(line):
                painter.drawText(QPointF(column * cell[0], (row + 0.8) * cell[1]), chr(code))
        painter.end()
        self.update()

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """Return the area of the characters."""
        return self.area

    def paint(self, painter: QPainter, *_: object) -> None:
        """Paint the characters in pixels at their place."""
        corner = painter.transform().map(self.area.topLeft())
        painter.setTransform(QTransform.fromTranslate(corner.x(), corner.y()))
        painter.drawPicture(0, 0, self.picture)


class PictureItem(TextItems):
    """The stack as an `ImageItem` and one picture of the visible characters."""

    def __init__(self, stack: ColouredStack, cell: tuple[float, float]) -> None:
        super().__init__(stack, cell)
        self.characters = Characters()
        self.box.addItem(self.characters, ignoreBounds=True)

    def show_part(self, row: int, column: int) -> None:
        """Show the part that starts at a row and column."""
        n_columns, n_rows = int(self.width() / self.cell[0]), int(self.height() / self.cell[1])
        area = QRectF(column, row, n_columns, n_rows)
        self.box.setRange(area, padding=0)
        self.characters.show(self.stack.symbols[row : row + n_rows, column : column + n_columns], area, self.cell, self.font())


def measure(figure: str, widget: QWidget, show: Callable[[int], None], size: dict[str, int]) -> None:
    """Time the frames of a widget and print the figure."""
    widget.resize(size["width"], size["height"])
    widget.show()
    QApplication.processEvents()
    walls, cpus = [], []
    for frame in range(_FRAMES):
        started, cpu = time.perf_counter(), time.thread_time()
        show(frame)
        widget.viewport().repaint()  # type: ignore[attr-defined]
        QApplication.processEvents()
        walls.append((time.perf_counter() - started) * 1000)
        cpus.append((time.thread_time() - cpu) * 1000)
    values = {"median": np.median(walls), "longest": max(walls), "median_cpu": np.median(cpus), "longest_cpu": max(cpus)}
    print(
        json.dumps(
            {"figure": figure, **{name: round(float(value), 1) for name, value in values.items()}, **size, "date": str(date.today())}
        )
    )
    widget.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=500)
    parser.add_argument("--columns", type=int, default=2000)
    options = parser.parse_args()
    application = QApplication([])
    stack = synthetic_stack(options.hits, options.columns)
    metrics = QFontMetricsF(application.font())
    cell = metrics.horizontalAdvance("W") + 2, metrics.height()
    for width, height in ((700, 420), (1200, 700)):
        size = {"hits": options.hits, "columns": options.columns, "width": width, "height": height}
        plot = StackPlot()
        plot.show_stack(stack)

        def scroll(frame: int, plot: StackPlot = plot) -> None:
            plot.horizontalScrollBar().setValue(round(frame * 3 * cell[0]))
            plot.verticalScrollBar().setValue(round(frame * cell[1]))

        measure("program", plot, scroll, size)
        for figure, kind in (("pyqtgraph text items", TextItems), ("pyqtgraph picture", PictureItem)):
            view = kind(stack, cell)
            measure(figure, view, lambda frame, view=view: view.show_part(frame, 3 * frame), size)  # type: ignore[misc]


if __name__ == "__main__":
    main()
