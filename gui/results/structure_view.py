"""View of a structure search: queries, hits, thresholds with counts, alignment, and superposed chains in 3D."""
# ruff: noqa: N802 - Qt gives these names

import json
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale, QSizeF, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.structure_search.entry import STRUCTURE_SEARCH
from proteoscope.engine.structure_search.hit_chains import HitChains
from proteoscope.engine.structure_search.tables import CLUSTERS
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.fold_map import FIGURE_SIZE, FoldMap, draw_fold_map, has_fold_clusters, read_fold_map, select_pairs
from proteoscope.engine.views.structure_hits import (
    StructureSummary,
    open_hit_chains,
    read_hit_row,
    structure_conditions,
    structure_summary,
    threshold_columns,
)
from proteoscope.engine.views.structure_pair import StructurePair, structure_pair
from proteoscope.engine.views.tables import TableSource
from proteoscope.engine.views.traces import Trace, create_query_trace, superpose_hit
from proteoscope.gui.actions import make_action
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.icons import set_icon
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, halve, split
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.results.query_hits_view import QueryHitsView
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.structure_filter import StructureFilterBar
from proteoscope.gui.results.structure_hits import chance_fact, structure_facts, with_facts
from proteoscope.gui.results.with_structures import WithStructures
from proteoscope.gui.tables.panel import TablePanel
from proteoscope.gui.tasks import SuperpositionTask

_MAXIMUM_CACHED_HITS = 64
"""Maximum number of cached hits with their chains; the least recently shown hits are dropped first."""
_RANKS = {"sensitive": "Rank (TM, z)", "published": "Rank (score)"}
"""Header of the rank column, by search mode."""
_MAXIMUM_SUPERPOSED = 20


class StructureView(WithStructures, QueryHitsView):
    """View of a finished structure search."""

    _scene_suffix = "_hits"

    def __init__(self, search: Search = STRUCTURE_SEARCH, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self.filters = StructureFilterBar()
        alignment = AlignmentView(copy_tip="Copy the alignment as text, with secondary structure", entries="structures")
        super().__init__(search, self.filters, alignment, parent, panels)
        self._chains: HitChains | None = None
        self._pairs: OrderedDict[int, StructurePair] = OrderedDict()
        self._offer_structures_panel("Show query and hit superposed in 3D", is_shown=False)
        self.superpose_selected_action = make_action(
            self,
            "Superpose the selected hits in 3D",
            self.superpose_selected,
            tip="Show the selected hits superposed on their query, at most 20",
        )
        self.superpose_action = make_action(
            self,
            "Su&perpose and save…",
            self.prompt_for_superposition,
            tip="Save both structures superposed, with the alignment and scripts for PyMOL and ChimeraX",
        )
        # Set explicitly, since Qt removes the ellipsis when it derives the text of a button from the text of its action.
        self.superpose_action.setIconText("Superpose and save…")
        set_icon(self.superpose_action, "save")
        self.alignment.add_action(self.superpose_action)
        self.hits.view.add_action(self.superpose_selected_action)
        self.hits.view.add_action(self.superpose_action)
        self.clusters = TablePanel(CLUSTERS.title, CLUSTERS.columns, CLUSTERS.links)
        self.clusters.view.set_empty_text(partial(self._empty_reason, self.clusters))
        self.clusters.rowChosen.connect(self._show_pairs)
        self.fold_map = DrawingView("Map of folds", QSizeF(*FIGURE_SIZE))
        self.fold_map.targetChosen.connect(self._show_picked_pair)
        queries, hits = Pane(self.queries.title, self.queries), Pane(self.hits.title, self.hits)
        tables = self._tables = split(Qt.Orientation.Horizontal, {queries: 3, hits: 7})
        clusters, fold_map = Pane(self.clusters.title, self.clusters), Pane("Map of folds", self.fold_map, is_picture=True)
        folds = split(Qt.Orientation.Horizontal, {clusters: 4, fold_map: 6})
        down = split(Qt.Orientation.Vertical, {tables: 5, Pane("Alignment", self.alignment, is_picture=True): 6})
        self.tabs = make_tabs(
            (down, "Hits", "The hits of each query, and their alignments"),
            (folds, "Folds", "Clusters of chains with the same fold, and the TM-scores of all chains with each other"),
        )
        self._across = split(Qt.Orientation.Horizontal, {self.tabs: 1})
        self._arrange({"across": self._across, "down": down, "tables": tables, "folds": folds}, (self.alignment, self.fold_map))
        self._connect_table(self.clusters)
        self.alignment.plot.columnPicked.connect(self._pick_column)
        self._show_pair(None)

    def state(self) -> str:
        """Return the state of the base class, and the visibility of the 3D panel, as JSON."""
        return json.dumps({**json.loads(super().state()), "structures": self.structures_action.isChecked()})

    def restore_state(self, text: str) -> None:
        """Restore the choices in a text returned by `state`; invalid text is ignored."""
        try:
            is_shown = json.loads(text)["structures"] is True
        except (ValueError, KeyError, TypeError):
            is_shown = False
        self.structures_action.setChecked(is_shown)
        super().restore_state(text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Rearrange the 3D panel and the alignment for the new size (see `_arrange_panes`)."""
        super().resizeEvent(event)
        self._arrange_panes()

    def superpose_selected(self) -> None:
        """Superpose the selected hits in 3D, or the first hits of the table if fewer than two are selected; at most 20."""
        run, query = self._finished, self._query
        if run is None or query is None:
            return
        self.structures_action.setChecked(True)
        rows = self.hits.view.selected_rows()
        if len(rows) < 2:
            rows = self.hits.model.rows[:_MAXIMUM_SUPERPOSED]

        def read() -> tuple[list[Trace], list[str]]:
            hits = self._table(run, "hits")
            traces, notes = [], []
            for row in rows[:_MAXIMUM_SUPERPOSED].tolist():
                pair = self._pair(run, hits, row)
                if pair.hit["query_index"] != query.number:
                    notes.append(f"{pair.subject_name} is a hit of another query")
                elif pair.chains is None:
                    notes.append(f"{pair.subject_name}: {pair.note}")
                else:
                    traces.append(superpose_hit(pair.hit, *pair.chains))
            if len(rows) > _MAXIMUM_SUPERPOSED:
                notes.append(f"the first {_MAXIMUM_SUPERPOSED} of {QLocale().toString(len(rows))} hits are shown")
            return traces, notes

        self._reader.submit("hits", read, self._add_hits, self._fail_softly)

    def prompt_for_superposition(self) -> None:
        """Prompt for a new folder and request that the superposed hit is written into it."""
        pair = self.alignment.plot.pair
        if isinstance(pair, StructurePair):
            name = f"{pair.query_name}_{pair.subject_name}"
            self._prompt_for_folder("Superpose and save: new folder", name, lambda folder: self.superposition(folder, pair))

    def superposition(self, folder: Path, pair: StructurePair) -> SuperpositionTask | None:
        """Return the task that writes a superposed hit of the shown run into a folder, or None if no run is shown."""
        run = self._finished
        return (
            None
            if run is None
            else SuperpositionTask(
                run.inputs, float(run.parameters["minimum_plddt"]), run.parameters["models"], pair.hit, folder, run.check_input
            )
        )

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open()
        self.hits.model.name_header("rank", _RANKS.get(str(run.parameters["mode"]), "Rank"))
        self._begin_with_queries()
        has_folds = has_fold_clusters(run)
        self.tabs.tabBar().setVisible(has_folds)
        self.tabs.setCurrentIndex(int(has_folds))
        if has_folds:
            self._statistician.submit("folds", lambda: self._read_folds(run), self._show_folds, self._fail_softly)
        self._statistician.submit("summary", lambda: structure_summary(source), partial(self._show_summary, run), self._fail_softly)

    def _read_folds(self, run: FinishedRun) -> tuple[TableSource, FoldMap | None]:
        source = self.clusters.prepare(run.tables.source(CLUSTERS.name))
        return source, read_fold_map(source)

    def _show_folds(self, source_and_folds: tuple[TableSource, FoldMap | None]) -> None:
        source, folds = source_and_folds
        self.clusters.open_table(source)
        self.clusters.show_rows()
        self.fold_map.show_drawing(None if folds is None else partial(draw_fold_map, folds))

    def _show_pairs(self, row: int, values: Mapping[str, Any]) -> None:
        """Show the hits of the chain that is selected in the table of clusters, as query or as target."""
        self._query = None
        self.queries.clear_choice()
        self.hits.view.forget_choice()
        self._show_query_names(True)
        self.hits.show_rows(scope=select_pairs(values["chain_index"]), scope_text=f"with {values['chain']}", takes_first=True)
        self._scoped(None)

    def _show_picked_pair(self, row: object) -> None:
        """Show the hit of a pair that was clicked in the map of folds."""
        if isinstance(row, int):
            self.hits.show_rows(scope=(), wanted=row)
            self._show_query_names(True)
            self._scoped(None)

    def _mark(self, row: int | None) -> None:
        self.fold_map.mark(row)

    @property
    def is_busy(self) -> bool:
        """True while data are being read."""
        return super().is_busy or self.clusters.model.is_busy

    @property
    def _all_panels(self) -> Mapping[str, TablePanel]:
        return {**self.panels, CLUSTERS.name: self.clusters}

    def _show_summary(self, run: FinishedRun, summary: StructureSummary) -> None:
        locale = QLocale()
        pairs = f"{locale.toString(summary.n_aligned)} pair{'' if summary.n_aligned == 1 else 's'} of chains"
        self._show_hit_counts(summary.n_hits, summary.n_queries, summary.n_with_hits, summary.query, f", among {pairs}")
        self.header.show_warnings(chance_fact(summary, locale))
        self.header.show_facts(structure_facts(run, locale))

    def _forget(self) -> None:
        super()._forget()
        self.clusters.close_table()
        self.fold_map.show_drawing(None)
        self.tabs.setCurrentIndex(0)
        self.tabs.tabBar().hide()
        self._chains = None
        self._pairs.clear()
        if self.structures is not None:
            self.structures.close_renderer()
        self.filters.show_columns(None)

    def _conditions(self) -> list[Condition]:
        return structure_conditions(self.filters.chosen)

    def _filter(self) -> None:
        self.hits.show_rows(filter=self._conditions())

    def _scoped(self, query: int | None) -> None:
        source = self._statistics
        if source is not None:
            self._statistician.submit("columns", lambda: threshold_columns(source, query), self.filters.show_columns, self._fail_softly)

    def _pair(self, run: FinishedRun, source: TableSource, row: int) -> StructurePair:
        # Called only in the reader thread.
        if row not in self._pairs:
            if self._chains is None:
                self._chains = open_hit_chains(run)
            self._pairs[row] = with_facts(structure_pair(read_hit_row(source, row), self._chains))
            while len(self._pairs) > _MAXIMUM_CACHED_HITS:
                self._pairs.popitem(last=False)
        self._pairs.move_to_end(row)
        return self._pairs[row]

    def _show_pair(self, pair: AlignedPair | None, text: str = "") -> None:
        super()._show_pair(pair, text)
        self._superpose(text)

    def _superpose(self, text: str = "") -> None:
        """If the 3D panel is visible, show the selected hit there, or a text if there is no hit."""
        panel, pair = self.structures, self.alignment.plot.pair
        if panel is None or not self.structures_action.isChecked():
            return
        if not isinstance(pair, StructurePair):
            panel.show_text(text)
        elif pair.chains is None:
            panel.show_text(pair.note)
        else:
            panel.show_hit(create_query_trace(pair.chains[0]), superpose_hit(pair.hit, *pair.chains))

    def _structures_shown(self, are_shown: bool) -> None:
        if not are_shown and self.structures is not None:
            self.alignment.plot.mark({})
        self._arrange_panes()
        self._superpose()

    def _arrange_panes(self) -> None:
        """Place the 3D panel next to or below tables and alignment; hide the alignment if there is space for neither."""
        panel, alignment = self.structures, self._pane_of(self.alignment)
        if panel is None or not self.structures_action.isChecked():
            alignment.show()
            self._across.setMinimumWidth(0)
            return
        left, right = (widget.minimumSizeHint() for widget in (alignment, self._pane_of(panel)))
        width = max(left.width(), self._tables.minimumSizeHint().width())
        # The minimum is the width of the wider part alone, so that the window can become too narrow for both side by side.
        self._across.setMinimumWidth(max(width, right.width()))
        is_narrow = width + self._across.handleWidth() + right.width() > self.width()
        others = self.header.height() + self.filter_bar.height() + self._tables.minimumSizeHint().height()
        is_low = others + left.height() + right.height() + 2 * self._across.handleWidth() > self.height()
        alignment.setVisible(not (is_narrow and is_low))
        orientation = Qt.Orientation.Vertical if is_narrow else Qt.Orientation.Horizontal
        if orientation != self._across.orientation():
            self._across.setOrientation(orientation)
            halve(self._across)
            self._pane_of(panel).fit_strip()

    def _add_hits(self, hits_and_notes: tuple[list[Trace], list[str]]) -> None:
        traces, notes = hits_and_notes
        if self.structures is not None:
            self.structures.add_hits(traces)
        if notes:
            self.message.emit("; ".join(notes[:3]) + (f", and {len(notes) - 3} more" if len(notes) > 3 else "") + ".")

    def _take_picks(self) -> None:
        """Mark the residues in the alignment that are selected in 3D."""
        panel, pair = self.structures, self.alignment.plot.pair
        if panel is None or not isinstance(pair, StructurePair):
            return
        scene = panel.scene
        marks: dict[int, tuple[bool, bool]] = {}
        for pick in scene.picks:
            rows, row, is_query = pair.of_query, pick.row, pick.trace is scene.query
            if not is_query and scene.chosen is not None and pick.trace is scene.chosen.trace:
                rows = pair.of_target
            elif not is_query:
                # The alignment does not show this hit: use the query's residue aligned with it.
                row = int(pick.trace.partner[pick.row]) if pick.row >= 0 else -1
            for column in np.flatnonzero(rows == row).tolist() if row >= 0 else ():
                before = marks.pop(column, (False, False))
                marks[column] = (before[0] or rows is pair.of_query, before[1] or rows is pair.of_target)
        self.alignment.plot.mark(marks)

    def _pick_column(self, column: int) -> None:
        """Select the residues of a clicked alignment column in 3D; a negative column deselects all."""
        panel, pair = self.structures, self.alignment.plot.pair
        if panel is None or not self.structures_action.isChecked() or not isinstance(pair, StructurePair):
            return
        if column < 0:
            panel.clear_picks()
        else:
            panel.pick_pair(int(pair.of_query[column]), int(pair.of_target[column]))
