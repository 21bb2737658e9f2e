"""View of a read alignment: rows, depth along a reference, alignment of a row, and distributions of gaps and identity."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QLocale, QSignalBlocker, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.reads import (
    ReadRow,
    ReadSummary,
    ShownReference,
    covers_positions,
    gaps_histogram,
    identity_histogram,
    read_conditions,
    read_depth,
    read_row,
    read_run_matrix,
    read_summary,
)
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, TitledPage, split
from proteoscope.gui.plots.depth_plot import DepthPlot
from proteoscope.gui.plots.histogram import HistogramPlot, log_counts_box, logarithmic_page
from proteoscope.gui.plots.zoomable import zoom_buttons
from proteoscope.gui.results.pileup_page import PileupPage
from proteoscope.gui.results.reads import read_facts, with_facts, with_missing_count
from proteoscope.gui.results.reads_filter import ReadFilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.summary_header import SummaryNumber


class ReadsView(RunView):
    """View of a finished read alignment.

    The depth counts the alignments that meet the filter on one reference: the selected reference, or the reference of the selected row.
    """

    def __init__(self, search: Search, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self.filters = ReadFilterBar()
        super().__init__(search, self.filters, parent, panels)
        self.alignments = self.panels["alignments"]
        self._row: ReadRow | None = None
        self._drawn: ShownReference | None = None
        self._place: tuple[ShownReference, int, int] | None = None
        self.coverage = DepthPlot()
        self.alignment = AlignmentView(copy_tip="Copy the alignment as text", chosen="row", entries="")
        self.gaps = HistogramPlot("Distribution of gaps", can_be_clicked=True)
        self.identity = HistogramPlot("Distribution of identity", can_be_clicked=True)
        self.log_axis = log_counts_box("alignments")
        self.references = described(
            ChoiceBox(n_characters=16),
            "Reference whose depth is shown",
            "The reference whose depth of coverage is shown; references with the most alignments come first",
        )
        self.depth_label = ElidedLabel()
        depth, alignment = Pane("Depth", self._depth_page(), is_picture=True), Pane("Alignment", self.alignment, is_picture=True)
        views = split(Qt.Orientation.Vertical, {depth: 3, alignment: 5})
        gaps, identity = Pane("Gaps", self.gaps, is_picture=True), Pane("Identity", self.identity, is_picture=True)
        distributions = split(Qt.Orientation.Horizontal, {gaps: 1, identity: 1})
        counted = logarithmic_page(distributions, self.log_axis)
        self.pileup = PileupPage()
        self.tabs = make_tabs(
            (views, "Alignment", "The depth of coverage along a reference, and the alignment of the selected row"),
            (counted, "Distributions", "Distributions of gaps and identity; click a bar to filter"),
            (self.pileup, "Pile-up", "The alignments around the selected row, with their differences from the reference"),
        )
        tables, figures = Pane(self.alignments.title, self.alignments), Pane("Figures", self.tabs, is_picture=True)
        down = split(Qt.Orientation.Vertical, {tables: 4, figures: 6})
        splitters = {"down": down, "views": views, "distributions": distributions}
        self._arrange(splitters, (self.coverage, self.alignment, self.pileup, self.gaps, self.identity))
        self.tabs.currentChanged.connect(lambda _: self.pileup.show_if_visible())
        self.pileup.rowChosen.connect(partial(self._choose_row, self.alignments))
        self.alignments.rowChosen.connect(self._show_row)
        self.alignments.choiceLost.connect(self._show_no_row)
        self.alignments.model.orderChanged.connect(self._retain_selection)
        self.references.activated.connect(lambda: self._choose_text(self.references.currentData()))
        self.coverage.placeChosen.connect(self.show_place)
        self.log_axis.toggled.connect(lambda _: self._count())
        self.gaps.binChosen.connect(lambda low, high: self.filters.choose_gaps(round((low + high) / 2)))
        self.identity.binChosen.connect(lambda low, high: self.filters.choose_identity(low, None if high >= 100 else high))

    def show_place(self, first: int, last: int) -> None:
        """Show only the alignments that overlap the positions `first` to `last` (from 1, inclusive) of the shown reference."""
        text = self._drawn
        if text is None:
            return
        locale = QLocale()
        positions = locale.toString(first) + ("" if first == last else f" to {locale.toString(last)}")
        self._place = (text, first, last)
        self.coverage.show_place((first, last))
        self.alignments.show_rows(scope=covers_positions(text, first, last), scope_text=f"at {positions} of {text.name}", takes_first=True)

    def show_all(self, name: str) -> None:
        """Show all rows of the table, and remove the restriction to positions."""
        super().show_all(name)
        self._place = None
        self.coverage.show_place(None)

    def _depth_page(self) -> QWidget:
        widgets = (self.references, self.depth_label, *zoom_buttons(self.coverage, "reference"))
        return TitledPage("Depth of", self.coverage, *widgets, stretched=self.depth_label)

    def _forget(self) -> None:
        self._row = self._drawn = self._place = None
        self.pileup.close_run()
        self.references.clear()
        self.depth_label.set_text("")
        self.coverage.show_depth(None)
        self.alignment.show_pair(None)
        for plot in (self.gaps, self.identity):
            plot.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open()
        self.pileup.open(run)
        self.pileup.filter(read_conditions(self.filters.chosen))
        self.coverage.show_depth(None, "Counting…")
        self.alignment.show_pair(None, "Select a row to see its alignment.")
        self.alignments.show_rows(takes_first=True)
        self.header.show_facts(read_facts(run))
        self._statistician.submit("summary", lambda: read_summary(source), self._show_summary, self._fail_softly)
        self._count()

    def _show_summary(self, summary: ReadSummary) -> None:
        locale = QLocale()
        reads = f"{locale.toString(summary.n_reads)} read{'' if summary.n_reads == 1 else 's'}"
        references = f"{locale.toString(summary.n_references)} reference{'' if summary.n_references == 1 else 's'}"
        n_without = summary.n_rows - summary.n_aligned
        without = f", {locale.toString(n_without)} without an alignment" if n_without else ""
        alignments = SummaryNumber(summary.n_aligned, "alignment", "alignments")
        large = (alignments, SummaryNumber(summary.n_reads, "read", "reads"))
        self.header.show_counts([alignments], f"of {reads} with {references}{without}", large=large)
        if summary.filled and self.alignments.hidden_columns() is None:
            hidden = [column.name for column in self.alignments.model.columns if not column.is_shown]
            self.alignments.view.hide_columns([name for name in hidden if name not in summary.filled])
        with QSignalBlocker(self.references):
            for text in summary.references:
                self._offer(text)
        if self._drawn is not None:
            self._choose_text(self._drawn)
        elif summary.references:
            self._choose_text(summary.references[0])
        else:
            self.coverage.show_depth(None, "No read has an alignment.")

    def _offer(self, text: ShownReference) -> int:
        """Return the index of a reference in the drop-down field, to which it is added if missing."""
        for at in range(self.references.count()):
            if text.is_same(self.references.itemData(at)):
                return at
        self.references.addItem(text.name, text)
        return self.references.count() - 1

    def _choose_text(self, text: ShownReference) -> None:
        """Show the depth of a reference."""
        is_new_reference = not text.is_same(self._drawn)
        self._drawn = text
        with QSignalBlocker(self.references):
            self.references.setCurrentIndex(self._offer(text))
        if is_new_reference or self.coverage.shown is None:
            self._draw_depth(retains_range=False)

    def _draw_depth(self, *, retains_range: bool) -> None:
        source, text, conditions = self._statistics, self._drawn, read_conditions(self.filters.chosen)
        if source is not None and text is not None:
            self._statistician.submit(
                "depth",
                lambda: read_depth(source, text, conditions),
                partial(self._show_depth, retains_range=retains_range),
                lambda error: self.coverage.show_depth(None, str(error)),
            )

    def _show_depth(self, depth: Depth, *, retains_range: bool) -> None:
        locale = QLocale()
        self.coverage.show_depth(depth, retains_range=retains_range)
        n = f"{locale.toString(depth.n_alignments)} alignment{'' if depth.n_alignments == 1 else 's'}"
        fraction = locale.toString(100 * depth.covered, "f", 1)
        self.depth_label.set_text(
            f"{locale.toString(depth.length)} bases, {fraction} % covered by {n}, depth {locale.toString(depth.mean, 'f', 1)} on average, "
            f"{locale.toString(depth.most)} maximum"
        )
        self._mark_depth()

    def _mark_depth(self) -> None:
        """Mark the selected row and the selected positions in the depth plot if they are on the shown reference."""
        row, text, position = self._row, self._drawn, self._place
        self.coverage.mark_positions(row.interval if row is not None and row.text is not None and row.text.is_same(text) else None)
        self.coverage.show_place(position[1:] if position is not None and position[0].is_same(text) else None)

    def _show_row(self, row: int, values: Mapping[str, Any]) -> None:
        run = self._finished
        if run is not None:
            self._reader.submit("row", lambda: self._read_row(run, row), partial(self._show_read, row), self._fail_row)

    def _read_row(self, run: FinishedRun, row: int) -> ReadRow:
        """Return a row with its alignment. It runs in the reader thread."""
        return with_facts(read_row(self._table(run, "alignments"), row, read_run_matrix(run)))

    def _show_read(self, row: int, read: ReadRow) -> None:
        self._row = read
        if read.text is not None and read.interval is not None:
            self.pileup.show_row(row, read.text, read.interval)
        self.alignment.show_pair(read.pair, read.reason)
        if read.text is not None:
            self._choose_text(read.text)
        self._mark_depth()

    def _fail_row(self, error: Exception) -> None:
        self._row = None
        self.alignment.show_pair(None, str(error))
        self.coverage.mark_positions(None)

    def _count(self) -> None:
        source, chosen, is_log = self._statistics, self.filters.chosen, self.log_axis.isChecked()
        if source is None:
            return
        for plot, count in ((self.gaps, gaps_histogram), (self.identity, identity_histogram)):
            self._statistician.submit(
                plot.accessibleName(),
                partial(count, source, chosen),
                partial(_show_counted, plot, is_log),
                partial(_show_error, plot),
            )

    def _filter(self) -> None:
        self.alignments.show_rows(filter=read_conditions(self.filters.chosen))
        self.pileup.filter(read_conditions(self.filters.chosen))
        self._draw_depth(retains_range=True)
        self._count()

    @property
    def is_busy(self) -> bool:
        """True while data are being read."""
        return super().is_busy or self.pileup.is_busy

    def _show_no_row(self) -> None:
        # A row that is still being read is no longer selected.
        self._reader.cancel("row")
        self._row = None
        self.pileup.plot.choose(None)
        self.alignment.show_pair(None)
        self.coverage.mark_positions(None)

    def _retain_selection(self) -> None:
        """Select the first row after a filter has hidden the selected one; clear the alignment if no row is left."""
        if self._finished is None:
            return
        if len(self.alignments.model.rows) == 0:
            self._show_no_row()
        elif self.alignments.view.chosen is None:
            self.alignments.view.choose(0)


def _show_counted(plot: HistogramPlot, is_log: bool, histogram: Histogram) -> None:
    plot.show_histogram(with_missing_count(histogram, QLocale()), is_log=is_log)


def _show_error(plot: HistogramPlot, error: Exception) -> None:
    plot.show_histogram(None, str(error))
