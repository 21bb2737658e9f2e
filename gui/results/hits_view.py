"""View of a sequence search: queries, hits, alignment, hits along the query, stacked hits, and the scores of all sequences."""

from functools import partial

from PySide6.QtCore import QLocale, Qt, QTimer
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.entry import SEQUENCE_SEARCH
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.hits import HitSummary, QueryBars, aligned_pair, hit_conditions, read_query_bars, score_histogram, summary
from proteoscope.engine.views.stacked_hits import StackedHits, SubjectSequence, open_subjects, read_subject, stacked_hits
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.alignment.stack_view import StackView
from proteoscope.gui.alignment.subject_view import SubjectView
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.plots.histogram import HistogramPlot, log_counts_box, logarithmic_page
from proteoscope.gui.plots.hit_bars import HitBars
from proteoscope.gui.results.hit_filter import HitFilterBar
from proteoscope.gui.results.hits import beyond_text, facts, with_facts
from proteoscope.gui.results.query_hits_view import QueryHitsView
from proteoscope.gui.results.run_view import Panels

_CHOOSING_MS = 120
_PARTS = (9, 11)
"""Relative widths of the tables and of the figures."""


class HitsView(QueryHitsView):
    """View of a finished sequence search."""

    def __init__(self, search: Search = SEQUENCE_SEARCH, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self.filters = HitFilterBar()
        self.bars = HitBars()
        super().__init__(search, self.filters, AlignmentView(), parent, panels)
        self.scores = HistogramPlot("Score distribution")
        self.stack = StackView()
        self.subject = SubjectView()
        self._database: SequenceDatabase | None = None
        self._later = QTimer(self, singleShot=True, interval=_CHOOSING_MS)
        self.log_axis = log_counts_box("sequences")
        bars, alignment = Pane("Hits along the query", self.bars, is_picture=True), Pane("Alignment", self.alignment, is_picture=True)
        views = split(Qt.Orientation.Vertical, {bars: 4, alignment: 6})
        scores = logarithmic_page(self.scores, self.log_axis)
        self.tabs = make_tabs(
            (views, "Alignment", "The hits along the query, and the alignment of the selected hit"),
            (self.stack, "Stack", "The hits that pass the filter, or those selected in the table, stacked below the query"),
            (self.subject, "Subject", "The complete sequence of the selected hit, which can be the next query"),
            (scores, "Scores", "Scores of all sequences against the query, and the distribution expected by chance"),
        )
        down = split(Qt.Orientation.Vertical, {Pane(self.queries.title, self.queries): 3, Pane(self.hits.title, self.hits): 7})
        across = split(Qt.Orientation.Horizontal, dict(zip((down, Pane("Figures", self.tabs, is_picture=True)), _PARTS, strict=True)))
        self._arrange({"across": across, "down": down, "views": views}, (self.bars, self.alignment, self.scores, self.stack, self.subject))
        self.bars.hitChosen.connect(partial(self._choose_row, self.hits))
        self.log_axis.toggled.connect(lambda _: self._count_scores())
        self._later.timeout.connect(self._stack_hits)
        # A stack is computed only while its tab is visible.
        self.tabs.currentChanged.connect(lambda _: self._show_tab())
        self.hits.view.selectionModel().selectionChanged.connect(lambda *_: self._later.start())
        self.stack.hitChosen.connect(partial(self._choose_row, self.hits))
        self.subject.searchRequested.connect(self._request_search_with_subject)

    @property
    def is_busy(self) -> bool:
        """True while data are being read or computed."""
        return super().is_busy or self._later.isActive() or self.stack.is_busy

    def clear(self, text: str = "") -> None:
        """Clear the view, release all files, and cancel running work; show a text, by default that there are no results yet."""
        super().clear(text)
        self.stack.clear()
        self._later.stop()  # the selection of the tables no longer exists

    def _forget(self) -> None:
        super()._forget()
        self.bars.show_bars(None)
        self.scores.show_histogram(None)
        self.stack.show_hits(None)
        self.subject.show_subject(None)
        self._database = None

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open(float(run.parameters["maximum_e_value"]))
        self.bars.show_bars(None, "")
        self.scores.show_histogram(None, "Counting…")
        self._begin_with_queries()
        self._statistician.submit("summary", lambda: summary(source), partial(self._show_summary, run), self._fail_softly)

    def _show_summary(self, run: FinishedRun, summary: HitSummary) -> None:
        locale = QLocale()
        against = f" against {locale.toString(summary.n_subjects)} sequences"
        self._show_hit_counts(summary.n_hits, summary.n_queries, summary.n_with_hits, summary.query, against)
        self.header.show_facts(facts(run, summary, locale))

    def _conditions(self) -> list[Condition]:
        return hit_conditions(self.filters.chosen)

    def _filter(self) -> None:
        self.hits.show_rows(filter=self._conditions())
        self._draw_bars()
        self._later.start()

    def _draw_query(self) -> None:
        self._draw_bars()
        self._count_scores()
        self._later.start()

    def _mark(self, row: int | None) -> None:
        self.bars.mark(row)
        self.stack.mark(row)
        self._read_subject(row)

    def _show_tab(self) -> None:
        self._later.start()
        self._read_subject(self.hits.view.chosen)

    def _stack_hits(self) -> None:
        """Stack the selected hits if there are several, otherwise all hits that meet the filter. Do nothing while the tab is hidden."""
        source, query = self._statistics, self._query
        if source is None or query is None or self.tabs.currentWidget() is not self.stack:
            return
        selected = self.hits.view.selected_rows()
        rows = selected.tolist() if len(selected) > 1 else ()
        if not rows and not query.n_hits:
            self.stack.show_hits(None, "This query has no hits.")
            return
        conditions = self._conditions()
        self._statistician.submit(
            "stack",
            lambda: stacked_hits(source, query.number, conditions, rows),
            self._show_stack,
            lambda error: self.stack.show_hits(None, str(error)),
        )

    def _show_stack(self, stack: StackedHits) -> None:
        if len(stack.rows):
            self.stack.show_hits(stack)
            self.stack.mark(self.hits.view.chosen)
        else:
            self.stack.show_hits(None, "No hits pass the filter.")

    def _read_subject(self, row: int | None) -> None:
        run = self._finished
        if run is None or row is None:
            self.subject.show_subject(None)
            return
        if self.tabs.currentWidget() is not self.subject:
            return

        def read() -> SubjectSequence:
            # Only the reader thread uses the database.
            if self._database is None:
                self._database = open_subjects(run, Progress())
            return read_subject(self._table(run, "hits"), row, self._database)

        self._reader.submit("subject", read, self.subject.show_subject, lambda error: self.subject.show_subject(None, str(error)))

    def _request_search_with_subject(self, fasta: str) -> None:
        """Request a search with the same databases and parameters, with a subject (FASTA) as the query."""
        run = self._finished
        if run is not None:
            databases = tuple(path for kind, path in run.inputs if kind == "database")
            self.searchRequested.emit(
                self.search.kind, run.run.id, FormPrefill({"database": databases}, run.parameters, {"queries": fasta})
            )

    def _pair(self, run: FinishedRun, source: TableSource, row: int) -> AlignedPair:
        return with_facts(aligned_pair(source, row))

    def _draw_bars(self) -> None:
        source, query = self._statistics, self._query
        if source is None or query is None:
            return
        conditions = self._conditions()
        self._statistician.submit(
            "bars",
            lambda: read_query_bars(source, query.number, conditions),
            self._show_bars,
            lambda error: self.bars.show_bars(None, str(error)),
        )

    def _show_bars(self, bars: QueryBars) -> None:
        has_hits = self._query is not None and self._query.n_hits > 0
        self.bars.show_bars(bars, "" if bars.bars else "No hits pass the filter." if has_hits else "This query has no hits.")
        self.bars.mark(self.hits.view.chosen)

    def _count_scores(self) -> None:
        source, query, is_log = self._statistics, self._query, self.log_axis.isChecked()
        if source is None or query is None:
            return

        def show(histogram: Histogram) -> None:
            self.scores.show_histogram(histogram, is_log=is_log, note=beyond_text(histogram, QLocale()))

        self._statistician.submit(
            "scores", lambda: score_histogram(source, query.number), show, lambda error: self.scores.show_histogram(None, str(error))
        )
