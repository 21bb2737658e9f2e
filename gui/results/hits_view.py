"""The results of a sequence search: queries -> hits -> alignment, with the hits drawn along their query and the scores of all sequences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QSplitter, QTabWidget, QVBoxLayout, QWidget

from engine.entry import Search
from engine.project import Project
from engine.sequence_search.entry import SEQUENCE_SEARCH
from gui.alignment.aligned_pair import AlignedPair
from gui.alignment.alignment_view import AlignmentView
from gui.plots.distributions import Histogram
from gui.plots.histogram import HistogramPlot
from gui.plots.hit_bars import Bars, HitBars
from gui.results.finished_run import FinishedRun
from gui.results.hit_filter import HitFilterBar
from gui.results.hits import (
    HitSummary,
    aligned_pair,
    bars_of_query,
    facts,
    hit_conditions,
    hits_of_query,
    open_sequence_search,
    score_histogram,
    summary,
)
from gui.results.run_view import RunView
from gui.results.summary_header import Figure
from gui.tables.source import TableSource

__all__ = ["HitsView"]

_PARTS = (9, 11)
"""Widths of the tables and of what they show, as parts of the whole."""
_MOST_NAME_LETTERS = 40
_HEIGHTS = {"down": (3, 7), "views": (4, 6)}


class _Query(NamedTuple):
    """The query whose hits are shown."""

    number: int
    name: str
    length: int
    n_hits: int


class HitsView(RunView):
    """Shows a finished sequence search."""

    def __init__(self, search: Search = SEQUENCE_SEARCH, parent: QWidget | None = None) -> None:
        self.filters = HitFilterBar()
        super().__init__(search, self.filters, parent)
        self.queries, self.hits = (self.panels[name] for name in ("queries", "hits"))
        self._query: _Query | None = None
        self._reads: TableSource | None = None
        self._followed: int | None = None
        self.bars = HitBars()
        self.alignment = AlignmentView()
        self.scores = HistogramPlot("Score distribution")
        self.log_axis = QCheckBox("&Logarithmic counts")
        self.log_axis.setChecked(True)
        self.log_axis.setToolTip("Draw the numbers of sequences on an axis of powers of ten, on which few are seen beside many")
        views = QSplitter(Qt.Orientation.Vertical)
        views.addWidget(self.bars)
        views.addWidget(self.alignment)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for widget, title, help_text in (
            (views, "Alignment", "The hits along the query, and the alignment of the chosen hit"),
            (self._score_page(), "Scores", "Scores of all sequences with the query, and what chance lets one expect"),
        ):
            self.tabs.setTabToolTip(self.tabs.addTab(widget, title), help_text)
        down = QSplitter(Qt.Orientation.Vertical)
        down.addWidget(self.queries)
        down.addWidget(self.hits)
        across = QSplitter(Qt.Orientation.Horizontal)
        across.addWidget(down)
        across.addWidget(self.tabs)
        for splitter, parts in ((across, _PARTS), (down, _HEIGHTS["down"]), (views, _HEIGHTS["views"])):
            for at, part in enumerate(parts):
                splitter.setStretchFactor(at, part)
            splitter.setSizes([100 * part for part in parts])
        self._arrange({"across": across, "down": down, "views": views}, (self.bars, self.alignment, self.scores))
        self.queries.rowChosen.connect(self._show_hits)
        self.hits.rowChosen.connect(self._show_hit)
        self.hits.model.orderChanged.connect(self._keep_a_choice)
        self.bars.hitChosen.connect(partial(self._choose_row, self.hits))
        self.log_axis.toggled.connect(lambda _: self._count_scores())

    def _score_page(self) -> QWidget:
        page = QWidget()
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 4, 8, 2)
        bar.addStretch(1)
        bar.addWidget(self.log_axis)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.scores, 1)
        return page

    def _read(self, project: Project, run_id: str | None) -> FinishedRun:
        return open_sequence_search(project, run_id)

    def _forget(self) -> None:
        if self._reads is not None:
            self._reads.close()
        self._query = self._reads = self._followed = None
        self.bars.show_bars(None)
        self.bars.mark(None)
        self.alignment.show_pair(None)
        self.scores.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open(float(run.parameters["max_e_value"]))
        # One query is named by the header; there is nothing to choose.
        self.queries.setVisible(self.queries.total > 1)
        self.bars.show_bars(None, "")
        self.scores.show_histogram(None, "Counting…")
        self.queries.show_rows(takes_first=True)
        self._statistician.submit("summary", lambda: summary(source), partial(self._show_summary, run), self._fail_softly)

    def _show_summary(self, run: FinishedRun, found: HitSummary) -> None:
        locale = QLocale()
        counts = [Figure(found.n_hits, "hit", "hits")]
        # The line does not wrap: a name of hundreds of letters would make the window wider than the screen.
        name = found.query if len(found.query) <= _MOST_NAME_LETTERS else f"{found.query[: _MOST_NAME_LETTERS - 1]}…"
        ending = f"of {name}"
        if found.n_queries > 1:
            counts.append(Figure(found.n_with_hits, "query with hits", "queries with hits"))
            ending = f"of {locale.toString(found.n_queries)} queries"
        self.header.show_counts(counts, f"{ending} against {locale.toString(found.n_subjects)} sequences")
        self.header.show_facts(facts(run, found, locale))

    def _filter(self) -> None:
        self.hits.show_rows(filter=hit_conditions(self.filters.chosen))
        self._draw_bars()

    def show_all(self, name: str) -> None:
        """Show all rows of a table; hits of all queries with the names of these."""
        super().show_all(name)
        if name == "hits":
            self._show_query_names(True)

    def _show_query_names(self, are_shown: bool) -> None:
        """Show the column of the queries or not, unless the user has chosen columns."""
        if self.hits.hidden_columns() is None:
            hidden = [column.name for column in self.hits.model.columns if not column.is_shown]
            self.hits.view.hide_columns([name for name in hidden if not (are_shown and name == "query")])

    def _show_hits(self, row: int, values: Mapping[str, Any]) -> None:
        self._query = _Query(values["query_index"], values["query"], values["length"], values["n_hits"])
        self._draw_bars()
        self._count_scores()
        followed, self._followed = self._followed, None
        if followed == row:
            return
        self.hits.view.forget_choice()
        self.alignment.show_pair(None)
        is_one = self.queries.total == 1
        self.hits.show_rows(
            scope=() if is_one else hits_of_query(self._query.number),
            scope_text="" if is_one else f"of {self._query.name}",
            filter=hit_conditions(self.filters.chosen),
            takes_first=True,
        )
        self._show_query_names(False)

    def _keep_a_choice(self) -> None:
        """After a filter hid the chosen hit, the first one is chosen, and where there is none nothing is shown."""
        if len(self.hits.model.rows) == 0:
            self.alignment.show_pair(None)
            self.bars.mark(None)
        elif self.hits.view.chosen is None:
            self.hits.view.choose(0)

    def _draw_bars(self) -> None:
        source, query = self._statistics, self._query
        if source is None or query is None:
            return
        conditions = hit_conditions(self.filters.chosen)
        self._statistician.submit(
            "bars",
            lambda: bars_of_query(source, query.name, query.number, query.length, conditions),
            self._show_bars,
            lambda error: self.bars.show_bars(None, str(error)),
        )

    def _show_bars(self, bars: Bars) -> None:
        has_hits = self._query is not None and self._query.n_hits > 0
        self.bars.show_bars(bars, "" if bars.bars else "No hits pass the filter." if has_hits else "This query has no hits.")
        self.bars.mark(self.hits.view.chosen)

    def _count_scores(self) -> None:
        source, query, run = self._statistics, self._query, self._finished
        if source is None or query is None or run is None:
            return
        has_expectations, is_log = "score_expectations" in run.tables.paths, self.log_axis.isChecked()

        def count() -> Histogram:
            return score_histogram(source, query.name, query.number, has_expectations=has_expectations, is_log=is_log)

        self._statistician.submit("scores", count, self.scores.show_histogram, lambda error: self.scores.show_histogram(None, str(error)))

    def _show_hit(self, row: int, values: Mapping[str, Any]) -> None:
        run, query = self._finished, self._query
        if run is None:
            return
        if query is None or values["query_index"] != query.number:
            # Hits of all queries are shown. This one's query becomes the chosen one, and they stay.
            self._query = _Query(values["query_index"], values["query"], values["query_length"], 1)
            self._draw_bars()
            self._count_scores()
            # A search writes a row for each query, in the order of the files.
            self._followed = self._query.number
            self._choose_row(self.queries, self._query.number)
        self.bars.mark(row)

        def read() -> AlignedPair:
            # Only this thread uses the source.
            if self._reads is None:
                self._reads = run.tables.source("hits")
            return aligned_pair(self._reads, row)

        self._reader.submit("pair", read, self.alignment.show_pair, lambda error: self.alignment.show_pair(None, str(error)))
