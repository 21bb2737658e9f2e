"""Histogram of mass shifts, zoomable from hundreds to hundredths of a dalton."""
# ruff: noqa: N802, N815 - Qt gives these names

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.drawings import Scale
from proteoscope.engine.views.figures import Rule
from proteoscope.engine.views.shifts import Shifts, shifts_figure
from proteoscope.gui.plots.figure_view import FigureView


class ShiftPlot(FigureView):
    """Widget that shows the number of matches by mass shift, or a text.

    A click selects the shifts of a bar, Enter selects all visible shifts.
    """

    shiftsChosen = Signal(float, float)
    """A range of shifts was selected; emitted with its lower end and its upper end (exclusive), in dalton."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Histogram of mass shifts", parent, least=(200, 110))
        self.shifts: Shifts | None = None
        self.scale: Scale = "square-root"
        self.selected_range: tuple[float, float] | None = None
        """Ends of the selected range of shifts in dalton, drawn as two lines, or None."""
        self.marked: frozenset[int] = frozenset()
        """Rows of the table of modifications whose matches are marked."""
        self._whole_range = (0.0, 1.0)
        self.targetChosen.connect(lambda ends: self.shiftsChosen.emit(*ends))

    def sizeHint(self) -> QSize:
        """Return the preferred size, wider than high."""
        return QSize(520, 200)

    def show_shifts(self, shifts: Shifts | None, whole: tuple[float, float] = (0.0, 1.0), text: str = "") -> None:
        """Show a histogram of shifts, or a text. `whole` is the complete range of the axis, in dalton."""
        self.shifts = shifts if shifts is not None and len(shifts) else None
        self._whole_range, self.marked, self.selected_range = whole, frozenset(), None
        self._draw_all(text, retains_range=False)

    def set_scale(self, scale: Scale) -> None:
        """Set the scale of the axis of counts."""
        self.scale = scale
        self._draw_all(self.text)

    def mark_modifications(self, rows: frozenset[int]) -> None:
        """Mark the matches of modifications, given by rows of the table of modifications."""
        if rows != self.marked:
            self.marked = rows
            self._draw_all(self.text)

    def show_place(self, shifts: tuple[float, float] | None) -> None:
        """Draw lines at the ends of the selected range of shifts (dalton); None removes the lines."""
        self.selected_range = shifts
        self.highlight([Rule(end) for end in shifts or ()])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Select the visible shifts with Enter; other keys move and zoom."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.shifts is not None:
            self.shiftsChosen.emit(*self.ranges[0])
        else:
            super().keyPressEvent(event)

    def _draw_all(self, text: str, *, retains_range: bool = True) -> None:
        figure = None if self.shifts is None else shifts_figure(self.shifts, self._whole_range, self.scale, self.marked)
        self.show_figure(figure, text, retains_range=retains_range)
