"""View of a quantification: changes, proteins and peptides by sample, and figures of the selected protein and of all samples."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from PySide6.QtCore import QLocale, QSizeF, Qt
from PySide6.QtWidgets import QScrollArea, QSplitter, QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError, shortened
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.tables import ION_TRACES, SAMPLES
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.conditions import any_of, compares
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.quantities import (
    PROTEINS_BY_SAMPLE,
    SHOWN_TABLES,
    QuantityOverview,
    put_sites,
    quantity_conditions,
    with_tables_by_sample,
)
from proteoscope.engine.views.quantity_drawings import draw_profile
from proteoscope.engine.views.quantity_figures import QUANTITY_FIGURES, QuantityFigure
from proteoscope.engine.views.quantity_traces import IonTraces, Ms1Reader, ion_traces, measured_between
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.plots.drawing_view import DrawingView
from proteoscope.gui.plots.trace_plot import TracePlot
from proteoscope.gui.results.facts import files_facts, time_facts
from proteoscope.gui.results.matches import fdr_text
from proteoscope.gui.results.quantity_filter import QuantityFilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.tables.panel import TablePanel

_NO_TRACE = "Select a peptide or an ion trace to see it in all files."
_NOT_LABEL_FREE = "This method measures no ion traces."
_READING = "Reading the MS1 spectra of the files…"


class QuantityView(RunView):
    """View of a finished quantification.

    A protein selected in a table or a figure is selected in all others, and only its peptides and ion traces are shown.
    """

    def __init__(self, search: Search, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        self.filters = QuantityFilterBar()
        super().__init__(search, self.filters, parent, panels)
        self.changes, self.proteins, self.peptides, self.sites, self.ions, self.samples = self.panels.values()
        self._overviews: dict[str, QuantityOverview] = {}
        self._overview: QuantityOverview | None = None
        self._ms1_reader: Ms1Reader | None = None
        self._protein: str | None = None
        self._of_sites: str | None = None
        """Comparison whose fold changes the table of sites has."""
        self._leader: TablePanel | None = None
        self._trace_row: int | None = None
        self.plots = {figure.name: DrawingView(figure.title, QSizeF(*figure.size)) for figure in QUANTITY_FIGURES}
        self.profile = DrawingView("Profile over the samples", QSizeF(420, 260))
        self.traces = TracePlot()
        self._trace_area = QScrollArea(widgetResizable=True)
        self._trace_area.setWidget(self.traces)
        self._lay_out()
        self._connect()

    @classmethod
    def shown_tables(cls, search: Search) -> Sequence[Table]:
        """Return the tables of quantities by sample."""
        return SHOWN_TABLES

    def _lay_out(self) -> None:
        titles = ("Changes", "Proteins", "Peptides", "Sites", "Ion traces", "Samples")
        self.tables = make_tabs(*((panel, title, "") for panel, title in zip(self.panels.values(), titles, strict=True)))
        self.figures = make_tabs()
        splitters: dict[str, QSplitter] = {}
        for tab, figures in groupby(QUANTITY_FIGURES, key=lambda figure: figure.tab):
            plots = [self.plots[figure.name] for figure in figures]
            if len(plots) > 1:
                splitters[tab.lower()] = split(
                    Qt.Orientation.Horizontal, {Pane(plot.accessibleName(), plot, is_picture=True): 1 for plot in plots}
                )
            self.figures.addTab(splitters.get(tab.lower(), plots[0]), tab)
        self.details = make_tabs((self.profile, "Profile", ""), (self._trace_area, "Chromatograms", ""))
        figures_pane, details = Pane("Figures", self.figures, is_picture=True), Pane("Details", self.details, is_picture=True)
        above = split(Qt.Orientation.Horizontal, {Pane("Tables", self.tables): 11, figures_pane: 9})
        down = split(Qt.Orientation.Vertical, {above: 11, details: 9})
        self._arrange({"down": down, "above": above, **splitters}, (*self._drawings, self.traces))

    @property
    def _drawings(self) -> tuple[DrawingView, ...]:
        return *self.plots.values(), self.profile

    @property
    def _of_proteins(self) -> tuple[TablePanel, ...]:
        """Tables whose rows select a protein."""
        return self.changes, self.proteins, self.sites

    @property
    def volcano(self) -> DrawingView:
        """Volcano plot of the selected comparison."""
        return self.plots["volcano"]

    def _connect(self) -> None:
        for panel in self._of_proteins:
            panel.rowChosen.connect(partial(self._show_protein, panel))
            panel.choiceLost.connect(partial(self._clear_protein, panel))
        self.peptides.rowChosen.connect(self._show_peptide)
        self.peptides.choiceLost.connect(lambda: self.profile.mark(None))
        self.ions.rowChosen.connect(self._show_trace)
        self.ions.choiceLost.connect(self._show_no_trace)
        self.samples.rowChosen.connect(lambda row, _: self._mark_sample(row))
        self.samples.choiceLost.connect(lambda: self._mark_sample(None))
        for figure in QUANTITY_FIGURES:
            self.plots[figure.name].targetChosen.connect(partial(self._choose, self.panels[figure.table]))
            self.plots[figure.name].handleDragged.connect(partial(self._show_cut, figure))
            self.plots[figure.name].handleReleased.connect(self.filters.set_cut)
        self.profile.targetChosen.connect(partial(self._choose, self.peptides))
        self.traces.bordersMoved.connect(self._correct)
        self.traces.bordersReset.connect(self._restore_limits)

    def clear(self, text: str = "") -> None:
        """Clear the view, release all files, and cancel running work; show a text, by default that there are no results yet."""
        if self._ms1_reader is not None:
            # Cancel reading first: the base class waits for the reader, which may be reading a large file.
            self._ms1_reader.close()
        super().clear(text)

    def _read(self, project: Project, run_id: str | None) -> FinishedRun:
        result = super()._read(project, run_id)
        try:
            self._overviews = {result.run.id: with_tables_by_sample(result)}
        except ProteoscopeError:
            result.close()
            raise
        return result

    def _forget(self) -> None:
        self._ms1_reader = self._overview = self._protein = self._of_sites = self._leader = self._trace_row = None
        self._overviews = {}
        for drawing in self._drawings:
            drawing.show_drawing(None)
            drawing.mark(None)
        self.traces.show_traces(None, " ")

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        overview = self._overviews[run.run.id]
        self._overview, self._ms1_reader = overview, Ms1Reader(run)
        self.filters.open([volcano.comparison for volcano in overview.volcanos], float(run.parameters["change_fdr"]))
        self._of_sites = self.filters.chosen.comparison
        for panel in (self.changes, self.sites):
            self.tables.setTabVisible(self.tables.indexOf(panel), bool(panel.total))
        self.figures.setTabVisible(self.figures.indexOf(self.volcano), bool(overview.volcanos))
        has_traces = bool(self.ions.total)
        self.tables.setTabVisible(self.tables.indexOf(self.ions), has_traces)
        self.details.setTabVisible(1, has_traces)
        self.traces.show_traces(None, _NO_TRACE if has_traces else _NOT_LABEL_FREE)
        leader = self.changes if self.changes.total else self.proteins
        self.tables.setCurrentWidget(leader)
        for name, panel in self.panels.items():
            panel.show_rows(filter=quantity_conditions(self.filters.chosen, name), takes_first=panel is leader)
        self._draw_all()
        self._show_header()

    def _show_header(self) -> None:
        run, overview = self._finished, self._overview
        assert run is not None and overview is not None
        n_manual = len(run.project.row_corrections(run.run.id, ION_TRACES.name))
        by_hand = (f"{counted(n_manual, 'trace')} with manual integration limits",) if n_manual else ()
        by = f", proteins by {run.parameters['protein_quantity']}" if run.parameters["method"] != "counts" else ""
        method = f"{run.parameters['method']}{by}"
        self.header.show_facts((method, *by_hand, *files_facts(run, "identified in {}"), *time_facts(run)))
        counts = [
            SummaryNumber(n, f"{noun} quantified", f"{noun}s quantified", f"of {QLocale().toString(n_all)}" if n < n_all else "")
            for result, noun in ((overview.proteins, "protein"), (overview.peptides, "peptide"))
            for n, n_all in ((int(result.has.any(axis=1).sum()), len(result.has)),)
        ]
        ending = f"in {counted(len(overview.proteins.samples), 'sample')}"
        chosen, volcano = self.filters.chosen, overview.volcano_of(self.filters.chosen.comparison)
        large, chip = counts, ""
        if volcano is not None:
            n = int(volcano.changed(chosen.q_value, chosen.fold_change).sum())
            comparison = shortened(volcano.comparison, 50)
            ending += f"; {QLocale().toString(n)} of {QLocale().toString(len(volcano))} tested proteins changed, {comparison}"
            large = [counts[0], SummaryNumber(n, "changed protein", "changed proteins")]
            chip = f"at {fdr_text(chosen.q_value, QLocale())}"
        self.header.show_counts(counts, ending, large=large, chip=chip)

    def _draw_all(self) -> None:
        """Draw the figures of the whole run."""
        overview = self._overview
        assert overview is not None
        for figure in QUANTITY_FIGURES:
            self.plots[figure.name].show_drawing(figure.make(overview, self.filters.chosen))

    def _draw_comparison(self) -> None:
        """Draw the figures of the selected comparison."""
        for figure in QUANTITY_FIGURES:
            if figure.is_by_comparison and self._overview is not None:
                self.plots[figure.name].show_drawing(figure.make(self._overview, self.filters.chosen))

    def _show_cut(self, figure: QuantityFigure, name: str, value: float) -> None:
        """Redraw a figure while a threshold line is being dragged; the tables are filtered when the line is released."""
        if self._overview is not None:
            cuts: dict[str, Any] = {name: value}
            self.plots[figure.name].show_drawing(figure.make(self._overview, replace(self.filters.chosen, **cuts)))

    def _figure_settings(self) -> dict[str, Any]:
        return {"q_value": self.filters.chosen.q_value, "fold_change": self.filters.chosen.fold_change}

    def _filter(self) -> None:
        run, overview, comparison = self._finished, self._overview, self.filters.chosen.comparison
        if run is not None and overview is not None and comparison != self._of_sites and self.sites.total:
            self._of_sites = comparison
            self._reader.submit(
                "sites",
                lambda: put_sites(run, overview.sites, comparison),
                lambda _: self.sites.show_rows(),
                lambda error: self.failed.emit(str(error)),
            )
        for name, panel in self.panels.items():
            panel.show_rows(filter=quantity_conditions(self.filters.chosen, name))
        if self._overview is not None:
            self._draw_comparison()
            change = (self.filters.chosen.comparison or "", self._protein or "")
            self.volcano.mark(self._overview.changes.get(change))
            self._show_header()

    def _choose(self, panel: TablePanel, row: object) -> None:
        """Select, in its table, the item that was clicked in a figure."""
        if isinstance(row, int):
            self.tables.setCurrentWidget(panel)
            self._choose_row(panel, row)

    def _show_protein(self, panel: TablePanel, row: int, values: Mapping[str, Any]) -> None:
        accession = str(values["accession"])
        if accession == self._protein:
            return
        self._protein, self._leader = accession, panel
        for table in self._of_proteins:
            # If a filter hides the protein, only the table where it was selected selects another row; the other table follows.
            table.retains_selection = table is panel
        self._follow_protein()

    def _follow_protein(self) -> None:
        """Show the selected protein in the other tables and in the figures."""
        overview, accession = self._overview, self._protein
        assert overview is not None and accession is not None
        change = overview.changes.get((self.filters.chosen.comparison or "", accession))
        for panel, row in ((self.changes, change), (self.proteins, overview.proteins.row_of.get(accession))):
            if panel is self._leader:
                continue
            position = None if row is None else panel.model.position_of(row)
            if position is None:
                panel.clear_choice()
            else:
                panel.view.choose(position)
        self.volcano.mark(change)
        for figure in QUANTITY_FIGURES:
            if figure.table == PROTEINS_BY_SAMPLE.name:
                self.plots[figure.name].mark(overview.proteins.row_of.get(accession))
        proteins, peptides = overview.proteins, overview.peptides
        self.profile.mark(None)
        self.profile.show_drawing(lambda *size: draw_profile(proteins, peptides, accession, *size))
        self.details.setCurrentWidget(self.profile)
        self._show_no_trace()
        for panel in (self.peptides, self.ions, self.sites):
            if panel is not self._leader:
                panel.clear_choice()
        self.peptides.show_rows(scope=[compares("accession", "=", accession)], scope_text=f"of {accession}")
        self._scope_traces(overview.peptidoforms_of(accession), f"of {accession}")

    def _scope_traces(self, peptidoforms: tuple[str, ...], text: str, *, takes_first: bool = False) -> None:
        scope = any_of(tuple(compares("peptide", "=", peptidoform) for peptidoform in peptidoforms))
        self.ions.show_rows(scope=[scope], scope_text=text, takes_first=takes_first)

    def _clear_protein(self, panel: TablePanel) -> None:
        """Show all peptides and clear the figures after the protein is deselected."""
        if panel is not self._leader:
            return
        self._protein = self._leader = None
        for other in self._of_proteins:
            other.clear_choice()
        for drawing in (*(self.plots[figure.name] for figure in QUANTITY_FIGURES if figure.table != SAMPLES.name), self.profile):
            drawing.mark(None)
        self.profile.show_drawing(None)
        for other in (self.peptides, self.ions):
            other.clear_choice()
            other.show_rows(scope=())
        self._show_no_trace()

    def _show_peptide(self, row: int, values: Mapping[str, Any]) -> None:
        overview = self._overview
        assert overview is not None
        self.profile.mark(row)
        sequence = str(values["sequence"])
        if self.ions.total:
            self.ions.clear_choice()
            self._scope_traces(overview.peptidoforms.get(sequence, ()), f"of {sequence}", takes_first=True)

    def _mark_sample(self, row: int | None) -> None:
        for figure in QUANTITY_FIGURES:
            if figure.table == SAMPLES.name:
                self.plots[figure.name].mark(row)

    def _show_trace(self, row: int, values: Mapping[str, Any]) -> None:
        run, ms1_reader = self._finished, self._ms1_reader
        if run is None or ms1_reader is None:
            return
        self._trace_row = row
        self.details.setCurrentWidget(self._trace_area)
        if self.traces.traces is None:
            self.traces.show_traces(None, _READING)
        self._reader.submit("traces", lambda: self._ion(run, ms1_reader, row), self.traces.show_traces, self._fail_traces)

    def _show_no_trace(self) -> None:
        self._reader.cancel("traces")
        self._trace_row = None
        self.traces.show_traces(None, _NO_TRACE if self.ions.total else _NOT_LABEL_FREE)

    def _ion(self, run: FinishedRun, ms1_reader: Ms1Reader, row: int) -> IonTraces:
        """Return the traces of an ion. Called in the reader thread, since only this thread uses the MS1 spectra."""
        return ion_traces(self._table(run, ION_TRACES.name), row, run, ms1_reader)

    def _fail_traces(self, error: Exception) -> None:
        self.traces.show_traces(None, str(error))

    def _correct(self, position: int, begin: float, end: float) -> None:
        """Store manual integration limits (seconds) of the trace with index `position`, and recompute all quantities."""
        ion = self.traces.traces
        assert ion is not None
        self._change(position, lambda trace: measured_between(trace, ion.pattern, begin, end))

    def _restore_limits(self, position: int) -> None:
        """Restore the automatic integration limits of the trace with index `position`."""
        self._change(position, lambda _: {})

    def _change(self, position: int, numbers: Any) -> None:
        run, ms1_reader, ion, shown = self._finished, self._ms1_reader, self.traces.traces, self._trace_row
        if run is None or ms1_reader is None or ion is None or shown is None:
            return
        trace, comparison = ion.traces[position], self.filters.chosen.comparison

        def change() -> tuple[QuantityOverview, IonTraces]:
            run.project.set_row_correction(run.run.id, ION_TRACES.name, trace.row, numbers(trace))
            return with_tables_by_sample(run, comparison), self._ion(run, ms1_reader, shown)

        self._reader.submit("correction", change, self._show_corrected, self._fail_correction)

    def _show_corrected(self, corrected: tuple[QuantityOverview, IonTraces]) -> None:
        self._overview, ion = corrected
        accession, comparison = self._protein, self.filters.chosen.comparison or ""
        for name, panel in self.panels.items():
            wanted = self._overview.changes.get((comparison, accession)) if panel is self.changes and accession else None
            if panel is self.changes:
                # The recomputed certainty changes the order of the rows.
                panel.view.forget_choice()
            panel.show_rows(filter=quantity_conditions(self.filters.chosen, name), wanted=wanted)
        self.traces.show_traces(ion)
        self._draw_all()
        self._show_header()
        if accession is not None:
            proteins, peptides = self._overview.proteins, self._overview.peptides
            self.profile.show_drawing(lambda *size: draw_profile(proteins, peptides, accession, *size))
            self.volcano.mark(self._overview.changes.get((comparison, accession)))
        self.message.emit("The integration limits are stored in the project, and all quantities use them.")

    def _fail_correction(self, error: Exception) -> None:
        self.traces.show_traces(self.traces.traces)
        self.failed.emit(f"The integration limits were not changed. {error}")
