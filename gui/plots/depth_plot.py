"""Plot of the depth of coverage along a reference, zoomable from a chromosome to single bases."""
# ruff: noqa: N802, N815 - Qt gives these names

import math

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.depth import Depth, depth_figure
from proteoscope.engine.views.figures import Band, Rule
from proteoscope.gui.plots.figure_view import FigureView


class DepthPlot(FigureView):
    """Widget that shows the depth of coverage, or a text.

    A click selects the positions of the clicked bin, Enter selects all visible positions.
    """

    placeChosen = Signal(int, int)
    """Positions were selected; emitted with the first and the last, from 1."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Depth of coverage along the reference", parent, least=(160, 70), has_x_title=False)
        self.shown: Depth | None = None
        self.selected_range: tuple[int, int] | None = None
        """Selected positions, drawn between two lines, or None."""
        self.marked: tuple[int, int] | None = None
        """First and last position of the selected alignment, or None."""
        self.targetChosen.connect(lambda positions: self.placeChosen.emit(*positions))

    def sizeHint(self) -> QSize:
        """Return the preferred size of a wide plot."""
        return QSize(520, 130)

    def show_depth(self, depth: Depth | None, text: str = "", *, retains_range: bool = False) -> None:
        """Show a depth or a text. `retains_range`: retain the visible range and the marks, for data of the same reference."""
        self.shown = depth
        if not retains_range:
            self.marked = self.selected_range = None
        self.show_figure(None if depth is None else depth_figure(depth), text, retains_range=retains_range)

    def mark_positions(self, positions: tuple[int, int] | None) -> None:
        """Mark the positions of the selected alignment. If none of them is visible, scroll to the middle of the alignment."""
        self.marked = positions
        self._highlight()
        if positions is not None and self.ranges and (positions[1] < self.ranges[0][0] or positions[0] > self.ranges[0][1]):
            self.bring_into_sight((positions[0] + positions[1]) / 2)

    def show_place(self, positions: tuple[int, int] | None) -> None:
        """Draw lines around the selected positions (first, last); None removes the lines."""
        self.selected_range = positions
        self._highlight()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Select the visible positions with Enter; other keys move and zoom."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.shown is not None:
            low, high = self.ranges[0]
            self.placeChosen.emit(max(1, math.floor(low + 0.5)), min(self.shown.length, math.ceil(high - 0.5)))
        else:
            super().keyPressEvent(event)

    def _highlight(self) -> None:
        bands = [] if self.marked is None else [Band(self.marked[0] - 0.5, self.marked[1] + 0.5, opacity=0.35)]
        ends = [] if self.selected_range is None else [self.selected_range[0] - 0.5, self.selected_range[1] + 0.5]
        self.highlight([*bands, *(Rule(end) for end in ends)])
