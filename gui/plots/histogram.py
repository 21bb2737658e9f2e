"""Histogram plot, and a page of histograms with a checkbox for logarithmic counts."""
# ruff: noqa: N815 - Qt gives these names

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.views.histograms import Histogram, histogram_figure
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import STRETCH, in_column, in_row, widget_with
from proteoscope.gui.plots.figure_view import FigureView


def log_counts_box(counted: str) -> QCheckBox:
    """Return a checkbox, initially checked, for logarithmic counts. `counted` names the counted items, such as ``sequences``."""
    tip = f"Draw the numbers of {counted} on a logarithmic axis, which makes small numbers visible"
    box = described(QCheckBox("&Logarithmic counts"), tip=tip)
    box.setChecked(True)
    return box


def logarithmic_page(plots: QWidget, box: QCheckBox) -> QWidget:
    """Return a page with the checkbox for logarithmic counts (see `log_counts_box`), and `plots` below it."""
    return widget_with(in_column(in_row(STRETCH, box, margins=(8, 4, 8, 2)), (plots, 1), spacing=0))


class HistogramPlot(FigureView):
    """Widget that shows a histogram or a text; if `can_be_clicked`, a click selects a bin."""

    binChosen = Signal(float, float)
    """A bin was clicked; emitted with its lower and upper edge."""

    def __init__(self, name: str, parent: QWidget | None = None, *, can_be_clicked: bool = False) -> None:
        super().__init__(name, parent)
        # Smaller histograms are unreadable.
        self.setMinimumSize(240, 160)
        self._can_be_clicked = can_be_clicked
        self.histogram: Histogram | None = None
        self.is_log = False
        self.targetChosen.connect(lambda edges: self.binChosen.emit(*edges))

    def show_histogram(self, histogram: Histogram | None, text: str = "", *, is_log: bool = False, note: str = "") -> None:
        """Show a histogram or a text. For `is_log` and `note`, see `histogram_figure`."""
        self.is_log = is_log
        self.histogram = None if histogram is None or histogram.is_empty else histogram
        if self.histogram is None:
            self.show_figure(None, text or (histogram.summary if histogram is not None else ""))
        else:
            figure = histogram_figure(self.histogram, is_log=is_log, note=note, has_targets=self._can_be_clicked)
            self.show_figure(replace(figure, name=self.accessibleName()))
