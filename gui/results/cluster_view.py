"""View of the results of a clustering: clusters, their spectra, and the selected spectrum mirrored with its cluster's consensus."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.views.clusters import (
    ClusterFilter,
    ClusterSummary,
    cluster_conditions,
    cluster_summary,
    compared_member,
    select_members,
)
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.results.facts import files_facts, time_facts
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.structure_filter import OptionalNumberBox
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.spectrum.mirror_view import MirrorView

_NO_SPECTRUM = "Select a spectrum to compare it with its cluster's consensus spectrum."
_METHODS = {"hierarchical": "hierarchical", "dbscan": "DBSCAN", "k-means": "k-means"}


_MOST_SPECTRA = 10_000_000


class ClusterFilterBar(FilterBar):
    """Filter bar for clusters and spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Spectrum or label",
            "Show only clusters that contain a spectrum of this name or have this label, and the spectra of this name",
            "Show all clusters of the run",
            parent,
        )
        self.minimum_spectra = IntegerBox(1, _MOST_SPECTRA, "")
        self.minimum_spectra.setFixedWidth(self.fontMetrics().horizontalAdvance("00000") + 36)
        self.lowest_mz, self.highest_mz = OptionalNumberBox(10.0, 400.0), OptionalNumberBox(10.0, 1000.0)
        for box in (self.lowest_mz, self.highest_mz):
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("0000.0000") + 30)
        self._add_number(
            self.minimum_spectra,
            "&Spectra ≥",
            "Minimum number of spectra per cluster",
            "Hide clusters with fewer spectra, and their spectra",
        )
        self._add_number(self.lowest_mz, "&m/z from", "Minimum m/z", "Hide clusters and spectra with a smaller precursor m/z")
        self._add_number(self.highest_mz, "t&o", "Maximum m/z", "Hide clusters and spectra with a larger precursor m/z")

    @property
    def chosen(self) -> ClusterFilter:
        """Conditions of the current filter."""
        return ClusterFilter(self.text.text(), self.minimum_spectra.value(), self.lowest_mz.entered, self.highest_mz.entered)

    def open(self) -> None:
        """Reset the filter for a new run, without emitting a signal."""
        self._reset_quietly()

    def _reset_own_fields(self) -> None:
        self.minimum_spectra.setValue(1)
        for box in (self.lowest_mz, self.highest_mz):
            box.clear_value()


class ClusterView(RunView):
    """View of a finished clustering."""

    def __init__(self, search: Search, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self.filters = ClusterFilterBar()
        super().__init__(search, self.filters, parent, panels)
        self.clusters, self.members = (self.panels[name] for name in ("clusters", "members"))
        self._followed: int | None = None
        self.mirror = MirrorView()
        tables = split(Qt.Orientation.Horizontal, {Pane(panel.title, panel): 1 for panel in (self.clusters, self.members)})
        down = split(Qt.Orientation.Vertical, {tables: 1, Pane("Compared spectra", self.mirror, is_picture=True): 1})
        self._arrange({"down": down, "tables": tables}, (self.mirror,))
        self.members.retains_selection = True
        self.clusters.rowChosen.connect(self._show_members)
        self.members.rowChosen.connect(self._show_spectra)
        self.clusters.choiceLost.connect(self._show_all_members)
        self.members.choiceLost.connect(self._show_no_spectra)

    def _forget(self) -> None:
        self._followed = None
        self.mirror.show_text("")

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filters.open()
        self.mirror.show_text(_NO_SPECTRUM)
        # Unclustered spectra are shown if there are no clusters.
        self.clusters.show_rows(takes_first=True)
        self.members.show_rows(takes_first=not self.clusters.total)
        self.header.show_facts((*files_facts(run), _method(run.parameters), *time_facts(run)))
        self._statistician.submit("summary", lambda: cluster_summary(source), self._show_summary, self._fail_softly)

    def _show_summary(self, summary: ClusterSummary) -> None:
        alone, fraction = summary.n_spectra - summary.n_clustered, summary.n_clustered / summary.n_spectra if summary.n_spectra else 0.0
        locale = QLocale()
        clusters = SummaryNumber(summary.n_clusters, "cluster", "clusters")
        self.header.show_counts(
            [clusters],
            f"with {locale.toString(summary.n_clustered)} spectra ({locale.toString(100 * fraction, 'f', 1)} %), "
            f"{locale.toString(alone)} unclustered",
            large=(clusters, SummaryNumber(summary.n_clustered, "spectrum clustered", "spectra clustered")),
        )
        if summary.has_labels and self.clusters.hidden_columns() is None:
            hidden = [column.name for column in self.clusters.model.columns if not column.is_shown]
            self.clusters.view.hide_columns([name for name in hidden if name not in ("label", "label_share")])

    def _filter(self) -> None:
        for name, panel in self.panels.items():
            panel.show_rows(filter=cluster_conditions(self.filters.chosen, name))

    def _show_members(self, row: int, values: Mapping[str, Any]) -> None:
        followed, self._followed = self._followed, None
        if followed == row:
            return
        self.members.view.forget_choice()
        cluster = values["cluster"]
        self._show_numbers(False)
        self.members.show_rows(
            scope=select_members(cluster),
            scope_text=f"of cluster {cluster}",
            filter=cluster_conditions(self.filters.chosen, "members"),
            takes_first=True,
        )

    def show_all(self, name: str) -> None:
        """Show all rows of the table `name`; the spectra of all clusters get a column with cluster numbers."""
        super().show_all(name)
        if name == "members":
            self._show_numbers(True)

    def _show_numbers(self, are_shown: bool) -> None:
        """Show or hide the column of cluster numbers, unless the user has chosen which columns are shown."""
        if self.members.hidden_columns() is None:
            hidden = [column.name for column in self.members.model.columns if not column.is_shown]
            self.members.view.hide_columns(hidden if are_shown else [*hidden, "cluster"])

    def _show_spectra(self, row: int, values: Mapping[str, Any]) -> None:
        run = self._finished
        if run is not None:
            self._reader.submit(
                "spectra", lambda: self._compared(run, row), self._show_compared, lambda error: self.mirror.show_text(str(error))
            )

    def _show_compared(self, compared: tuple[MirroredSpectra, int | None]) -> None:
        spectra, cluster_row = compared
        self.mirror.show_spectra(spectra)
        if self.members.scope_text == "" and cluster_row is not None and cluster_row != self.clusters.view.chosen:
            # Spectra of all clusters are shown: select the cluster of this spectrum without narrowing them.
            position = self.clusters.model.position_of(cluster_row)
            if position is not None:
                self._followed = cluster_row
                self.clusters.view.choose(position)

    def _compared(self, run: FinishedRun, row: int) -> tuple[MirroredSpectra, int | None]:
        """Return the mirrored spectra, and the row of the cluster or None. Called in the reader thread, which alone uses the tables."""
        result = compared_member(self._table(run, "members"), row, run)
        member, consensus, lower = result.member, result.consensus, result.spectra.lower
        if consensus is None or lower is None:
            return replace(result.spectra, title=f"{_title(member)}, not clustered"), None
        n = QLocale().toString(member["n_members"])
        kind = "the mean" if run.parameters["consensus_spectrum"] == "mean" else consensus["title"]
        lower = replace(lower, name=f"{lower.name} ({n} spectra): {kind}")
        title = f"{_title(member)}, in cluster {member['cluster']} of {n} spectra"
        return replace(result.spectra, title=title, lower=lower), consensus["row"]

    def _show_all_members(self) -> None:
        """Show the spectra of all clusters after the selected cluster is deselected."""
        self.members.show_rows(scope=(), takes_first=self.members.view.chosen is None)
        self._show_numbers(True)

    def _show_no_spectra(self) -> None:
        self._reader.cancel("spectra")
        self.mirror.show_text(_NO_SPECTRUM)


def _method(parameters: Mapping[str, Any]) -> str:
    method = _METHODS.get(str(parameters["method"]), str(parameters["method"]))
    if parameters["method"] == "k-means":
        return method
    linkage = f", {parameters['linkage']} linkage" if parameters["method"] == "hierarchical" else ""
    distance = QLocale().toString(float(parameters["maximum_distance"]), "g", 3)
    return f"{method}{linkage} up to a distance of {distance}, precursors within {parameters['precursor_tolerance']}"


def _title(member: Mapping[str, Any]) -> str:
    locale = QLocale()
    parts = [str(member["title"] or "")]
    if member["precursor_mz"] is not None:
        charge = "" if member["charge"] is None else f" ({abs(member['charge'])}{'−' if member['charge'] < 0 else '+'})"
        parts.append(f"m/z {locale.toString(float(member['precursor_mz']), 'f', 4)}{charge}")
    if member["retention_time"] is not None:
        parts.append(f"{locale.toString(float(member['retention_time']) / 60, 'f', 2)} min")
    if member["spectrum_file"]:
        parts.append(PurePath(member["spectrum_file"]).name)
    return ", ".join(part for part in parts if part)
