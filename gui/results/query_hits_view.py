"""Base class of the result views of sequence and structure searches: queries, hits and alignment."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.structures.sources import DATABASE_FILE
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.hits import select_query_hits
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.summary_header import SummaryNumber

_MAXIMUM_NAME_CHARACTERS = 40


class ShownQuery(NamedTuple):
    """Query whose hits are shown: index in the query file, name, length in residues (0 if unknown), and number of hits."""

    number: int
    name: str
    length: int
    n_hits: int


def _shown_name(name: str) -> str:
    """Return a name shortened to fit into the header line, which does not wrap."""
    return name if len(name) <= _MAXIMUM_NAME_CHARACTERS else f"{name[: _MAXIMUM_NAME_CHARACTERS - 1]}…"


class QueryHitsView(RunView):
    """View of a finished search with the tables ``queries`` and ``hits``, linked by ``query_index``, and the alignment of the selected hit.

    Derived classes define the filter conditions of hits (`_conditions`), read an alignment (`_pair`), and draw other data of the selected
    query (`_draw_query`) and of the selected hit (`_mark`).
    """

    def __init__(
        self, search: Search, filters: FilterBar, alignment: AlignmentView, parent: QWidget | None = None, panels: Panels | None = None
    ) -> None:
        super().__init__(search, filters, parent, panels)
        self.queries, self.hits = (self.panels[name] for name in ("queries", "hits"))
        self.alignment = alignment
        self._query: ShownQuery | None = None
        self._followed: int | None = None
        self.queries.rowChosen.connect(self._show_hits)
        self.queries.choiceLost.connect(lambda: self.show_all("hits"))
        self.hits.rowChosen.connect(self._show_hit)
        self.hits.choiceLost.connect(self._show_no_hit)
        self.hits.model.orderChanged.connect(self._retain_selection)

    def _conditions(self) -> list[Condition]:
        """Return the filter conditions of hits."""
        raise NotImplementedError

    def _pair(self, run: FinishedRun, source: TableSource, row: int) -> AlignedPair:
        """Return the alignment of the hit at `row` of the source. Called in the reader thread."""
        raise NotImplementedError

    def _show_pair(self, pair: AlignedPair | None, text: str = "") -> None:
        """Show the alignment of the selected hit, or a text."""
        self.alignment.show_pair(pair, text)

    def _draw_query(self) -> None:
        """Draw other data of the selected query."""

    def _scoped(self, query: int | None) -> None:
        """Update the view after the table of hits was limited to `query`; None means all queries."""

    def _mark(self, row: int | None) -> None:
        """Mark the selected hit in the figures."""

    def _forget(self) -> None:
        self._query = self._followed = None
        self._mark(None)
        self._show_pair(None)

    def _begin_with_queries(self) -> None:
        # A single query is named in the header; its table would have nothing to select.
        self._pane_of(self.queries).setVisible(self.queries.total > 1)
        self.queries.show_rows(takes_first=True)

    def _show_hit_counts(self, n_hits: int, n_queries: int, n_with_hits: int, query: str, rest: str) -> None:
        """Show the numbers of hits and queries in the header; `rest` is appended to the sentence that lists them."""
        counts, ending = [SummaryNumber(n_hits, "hit", "hits")], f"of {_shown_name(query)}"
        if n_queries > 1:
            counts.append(SummaryNumber(n_with_hits, "query with hits", "queries with hits"))
            ending = f"of {self.locale().toString(n_queries)} queries"
        self.header.show_counts(counts, ending + rest)

    def show_all(self, name: str) -> None:
        """Show all rows of the table `name`; the hits of all queries get a column with query names."""
        super().show_all(name)
        if name == "hits":
            self._show_query_names(True)
            self._scoped(None)

    def _show_query_names(self, are_shown: bool) -> None:
        """Show or hide the column of query names, unless the user has selected columns."""
        if self.hits.hidden_columns() is None:
            hidden = [column.name for column in self.hits.model.columns if not column.is_shown]
            self.hits.view.hide_columns([name for name in hidden if not (are_shown and name == "query")])

    def _show_hits(self, row: int, values: Mapping[str, Any]) -> None:
        self._query = ShownQuery(values["query_index"], values["query"], values["length"], values["n_hits"])
        self._draw_query()
        followed, self._followed = self._followed, None
        if followed == row:
            return
        self.hits.view.forget_choice()
        self._show_pair(None)
        is_one = self.queries.total == 1
        self.hits.show_rows(
            scope=() if is_one else select_query_hits(self._query.number),
            scope_text="" if is_one else f"of {self._query.name}",
            filter=self._conditions(),
            takes_first=True,
        )
        self._show_query_names(False)
        self._scoped(self._query.number)

    def _retain_selection(self) -> None:
        """Select the first hit after a filter has hidden the selected one; clear the alignment if no hit is left."""
        if len(self.hits.model.rows) == 0:
            self._show_no_hit()
        elif self.hits.view.chosen is None:
            self.hits.view.choose(0)

    def _show_no_hit(self) -> None:
        self._reader.cancel("pair")
        self._show_pair(None)
        self._mark(None)

    def _show_hit(self, row: int, values: Mapping[str, Any]) -> None:
        run, query = self._finished, self._query
        if run is None:
            return
        if query is not None and values["query_index"] != query.number and self.hits.scope == tuple(select_query_hits(query.number)):
            # The row is a hit of the previous query; the hits of the selected query are still being read.
            return
        if query is None or values["query_index"] != query.number:
            # Hits of all queries are shown: select the query of this hit without narrowing the hits. If queries are missing, hits of
            # several queries can be shown below a single query, with their query column hidden.
            self._query = ShownQuery(values["query_index"], values.get("query", ""), values.get("query_length", 0), 1)
            self._draw_query()
            # The row of a query is its index: a search writes one row per query, in file order.
            self._followed = self._query.number
            self._choose_row(self.queries, self._query.number)
        self._mark(row)
        self._reader.submit(
            "pair",
            lambda: self._pair(run, self._table(run, "hits"), row),
            self._show_pair,
            lambda error: self._show_pair(None, str(error)),
        )


def files_text(inputs: Sequence[tuple[str, Any]]) -> str:
    """Return the names of the input files as a text such as ``queries.fasta against database.fasta``."""
    names = []
    for wanted in ("queries", "database"):
        paths = [path for kind, path in inputs if kind == wanted]
        shown = [path.parent.name if path.name == DATABASE_FILE else path.name for path in paths[:3]]
        names.append(", ".join(shown) + (f" and {len(paths) - 3} more" if len(paths) > 3 else ""))
    return " against ".join(names)
