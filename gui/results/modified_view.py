"""View of an open modification search: histogram of mass shifts, modifications, PSMs, proteins, and all spectra of the run.

The spectrum of a PSM is mirrored with a spectrum of the same peptide without the mass shift.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.modified_search.parameters import shift_range
from proteoscope.engine.views.annotation import ions_to_show
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import IdentificationOverview, select_group_rows, summary
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.modified import (
    ComparedMatch,
    ModificationRow,
    ModifiedOverview,
    compared_match,
    have_modifications,
    modified_conditions,
    overview,
    shifts_between,
    variable_modifications,
)
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described, field_label
from proteoscope.gui.layouts import in_column, make_tabs, widget_with
from proteoscope.gui.panes import Pane, TitledPage, split
from proteoscope.gui.plots.shift_plot import ShiftPlot
from proteoscope.gui.plots.zoomable import zoom_buttons
from proteoscope.gui.results.facts import files_facts, inputs_of_source, passes_facts, time_facts
from proteoscope.gui.results.matches import show_summary, spectrum_title
from proteoscope.gui.results.modified_filter import ModifiedFilterBar
from proteoscope.gui.results.row_marker import RowMarker
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.spectra_run_view import SpectraRunView
from proteoscope.gui.spectrum.mark_bar import MarkBar
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.tables.panel import TablePanel

_NO_PSM = "Select a PSM to see its spectrum."
_NO_IONS = "The spectrum is not identified: its peaks are in the tab “With and without shift”."
_SCALES = (("square root", "square-root"), ("logarithmic", "logarithmic"), ("linear", "linear"))


class _Found(NamedTuple):
    overview: ModifiedOverview
    summary: IdentificationOverview


class ModifiedView(SpectraRunView):
    """View of a finished open modification search. The keyword arguments are existing widgets that the view reuses, if any."""

    def __init__(
        self,
        search: Search,
        parent: QWidget | None = None,
        *,
        panels: Panels | None = None,
        spectrum: SpectrumView | None = None,
        mirror: MirrorView | None = None,
        spectra: RunSpectra | None = None,
    ) -> None:
        self.filters = ModifiedFilterBar()
        super().__init__(search, self.filters, parent, matches="psms", no_match=_NO_PSM, panels=panels, spectra=spectra)
        self.modifications, self.psms, self.proteins = (self.panels[name] for name in ("modifications", "psms", "proteins"))
        self._rows: tuple[ModificationRow, ...] = ()
        self.histogram = ShiftPlot()
        self.counts_scale = described(
            ChoiceBox(_SCALES),
            "Scale of the counts",
            "Scale of the numbers of PSMs; square-root and logarithmic scales make small counts visible",
        )
        self.range_label = ElidedLabel()
        self.mirror = mirror or MirrorView()
        self.spectrum = spectrum or SpectrumView()
        self.marks = MarkBar()
        self.marker = RowMarker("psms", self)
        self.marks.marked.connect(self.marker.put)
        self.marker.stored.connect(self.psms.model.reread)
        self.marker.refused.connect(self._refuse_mark)
        self.psms.view.add_action(self.marks.star_action)
        self._offer_structures(self.psms)
        self.tables = make_tabs(
            (self.psms, "PSMs", "Matches of spectra and peptides"), (self.proteins, "Proteins", "Protein groups identified by the peptides")
        )
        self.figures = make_tabs(
            (
                self.mirror,
                "With and without shift",
                "The spectrum of the selected PSM, mirrored with the best spectrum of the same peptide without a shift",
            ),
            (self.spectrum, "Ions", "The spectrum of the selected PSM with its peptide, mass errors and table of ions"),
        )
        self._add_spectra(self.tables, self.figures)
        modifications = Pane(self.modifications.title, self.modifications)
        down_left = split(Qt.Orientation.Vertical, {modifications: 2, Pane("Tables", self.tables): 3})
        figures = widget_with(in_column((self.figures, 1), self.marks, spacing=0))
        across = split(Qt.Orientation.Horizontal, {down_left: 10, Pane("Figures", figures, is_picture=True, tabs=self.figures): 11})
        down = split(Qt.Orientation.Vertical, {Pane("Mass shifts", self._histogram_page(), is_picture=True): 3, across: 7})
        self._arrange({"down": down, "across": across, "tables": down_left}, (self.histogram, self.mirror, self.spectrum))
        # Rows can be added to or removed from the selection without a change of the current row.
        self.modifications.view.selectionModel().selectionChanged.connect(lambda *_: self._show_chosen_modifications())
        self.proteins.rowChosen.connect(self._show_protein)
        for panel in (self.modifications, self.proteins):
            panel.choiceLost.connect(self._show_all_matches)
        self.histogram.shiftsChosen.connect(self.show_shifts)
        self.counts_scale.activated.connect(lambda _: self.histogram.set_scale(self.counts_scale.currentData()))

    @property
    def chosen_modifications(self) -> list[ModificationRow]:
        """Selected rows of the table of modifications."""
        return [self._rows[row] for row in self.modifications.view.selected if row < len(self._rows)]

    def show_shifts(self, low: float, high: float) -> None:
        """Show only the accepted PSMs with a mass shift of at least `low` and less than `high` (Da)."""
        run = self._finished
        if run is None:
            return
        self._clear_choices()
        self.histogram.show_place((low, high))
        decimals = max(2, 1 - int(np.floor(np.log10(high - low)))) if high > low else 4
        ends = [QLocale().toString(end, "f", decimals) for end in (low, high)]
        self.tables.setCurrentWidget(self.psms)
        self.psms.show_rows(scope=shifts_between(low, high, run.fdr), scope_text=f"of {ends[0]} to {ends[1]} Da", takes_first=True)

    def show_all(self, name: str) -> None:
        """Show all rows of the table `name`, regardless of selections in other tables."""
        super().show_all(name)
        if name == "psms":
            self._clear_choices()
            self.histogram.show_place(None)

    def _clear_choices(self) -> None:
        """Deselect modifications and proteins, since the selection no longer determines the shown PSMs."""
        for panel in (self.modifications, self.proteins):
            panel.clear_choice()
        self.histogram.mark_modifications(frozenset())

    @property
    def _panel_with_buttons(self) -> TablePanel:
        return self.panels["modifications"]

    def _histogram_page(self) -> QWidget:
        label = field_label("&Counts by", self.counts_scale)
        buttons = zoom_buttons(self.histogram, "range of shifts")
        widgets = (self.range_label, label, self.counts_scale, *buttons)
        return TitledPage("Mass shifts", self.histogram, *widgets, stretched=self.range_label)

    def _forget(self) -> None:
        # This also stores the last comment.
        self.marks.show_mark(None)
        self.marker.close()
        super()._forget()
        self._rows = ()
        self.range_label.set_text("")
        self.histogram.show_shifts(None)
        self.mirror.show_text("")
        self.spectrum.show_text("")

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        super()._begin(run, source)
        self.marker.open(run)
        self.filters.open(run.fdr)
        self.histogram.show_shifts(None, text="Counting…")
        for view in (self.mirror, self.spectrum):
            view.show_text(_NO_PSM)
        chosen = self.filters.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=modified_conditions(chosen, name), takes_first=name == "psms")
        self.header.show_facts(self._facts(run))

        def read_overview() -> _Found:
            return _Found(overview(source, run.fdr), summary(source, run))

        self._statistician.submit("overview", read_overview, self._show_overview, self._fail_overview)

    @staticmethod
    def _facts(run: FinishedRun) -> tuple[str, ...]:
        return (*files_facts(run), *passes_facts(run), *time_facts(run))

    def _show_overview(self, results: _Found) -> None:
        run = self._finished
        assert run is not None
        self._rows = results.overview.modifications
        counts, locale = results.overview.counts, QLocale()
        kinds = ", ".join(
            f"{locale.toString(counts[name])} {text}"
            for name, text in (
                ("plain", "PSMs without a shift"),
                ("named", "with a known shift"),
                ("ends", "with another peptide end"),
                ("unnamed", "with an unknown shift"),
            )
        )
        show_summary(self.header, results.summary, run.fdr)
        self.header.show_facts((kinds, *self._facts(run)))
        low, high = _bounds(run)
        shift = results.overview.shifts.shift
        if len(shift):
            low, high = min(low, float(shift[0])), max(high, float(shift[-1]))
        margin = 0.01 * (high - low) + 0.005
        self.histogram.show_shifts(results.overview.shifts, (low - margin, high + margin), "No PSM is accepted.")
        self.range_label.set_text(f"of {locale.toString(len(shift))} accepted PSMs; click a bar to show its spectra")
        self._show_marks()

    def _fail_overview(self, error: Exception) -> None:
        self.histogram.show_shifts(None, text=str(error))

    def _filter(self) -> None:
        chosen = self.filters.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=modified_conditions(chosen, name))

    def _show_marks(self) -> None:
        self.histogram.mark_modifications(frozenset(chosen_modification.row for chosen_modification in self.chosen_modifications))

    def _show_chosen_modifications(self) -> None:
        rows = self.chosen_modifications
        if not rows:
            return
        self._show_marks()
        self.histogram.show_place(None)
        self.proteins.clear_choice()
        self.tables.setCurrentWidget(self.psms)
        more = f" and {QLocale().toString(len(rows) - 1)} more" if len(rows) > 1 else ""
        # Without a previous selection, selecting the same PSM again emits a signal, which updates the spectrum.
        self.psms.view.forget_choice()
        self.psms.show_rows(scope=have_modifications(rows), scope_text=f"with {rows[0].name}{more}", takes_first=True)

    def _show_protein(self, row: int, values: Mapping[str, Any]) -> None:
        """Show only the PSMs of a protein in the table of PSMs."""
        accessions = list(values["accessions"])
        more = f" and {len(accessions) - 1} more" if len(accessions) > 1 else ""
        self.modifications.clear_choice()
        self.histogram.mark_modifications(frozenset())
        self.histogram.show_place(None)
        self.psms.show_rows(scope=select_group_rows(accessions), scope_text=f"of {accessions[0]}{more}", takes_first=True)

    def _show_all_matches(self) -> None:
        """Show all PSMs after the selected modifications or the selected protein are deselected."""
        self._show_marks()
        self.psms.show_rows(scope=(), takes_first=self.psms.view.chosen is None)

    def _show_plain(self, spectrum: MirroredSpectra) -> None:
        self.marks.show_mark(None)
        self.mirror.show_spectra(spectrum)
        self.spectrum.show_text(_NO_IONS)

    def _show_no_spectrum_text(self, text: str) -> None:
        self.marks.show_mark(None)
        for view in (self.mirror, self.spectrum):
            view.show_text(text)

    def _show_match(self, row: int) -> None:
        run = self._finished
        if run is not None:
            self._reader.submit("spectrum", lambda: self._match(run, row), partial(self._show_compared, row), self._fail_spectrum)

    def _refuse_mark(self, row: int, why: str) -> None:
        self.message.emit(why)
        if row == self.marks.row:
            self.marks.show_mark(row, self.marker.mark_of(row))

    @property
    def is_busy(self) -> bool:
        """True while data are being read, or a star or comment is being saved."""
        return super().is_busy or self.marker.is_busy

    def _show_compared(self, row: int, match: ComparedMatch) -> None:
        run = self._finished
        assert run is not None
        self.marks.show_mark(row, self.marker.mark_of(row))
        self.mirror.show_spectra(replace(match.spectra, title=_title(match.match)))
        self.spectrum.show_match(match.match, match.peaks, ions_to_show(run.parameters), spectrum_title(match.match))
        self.spectra.mark(SpectrumRow(int(match.match["spectrum"])), match.match)

    def _match(self, run: FinishedRun, row: int) -> ComparedMatch:
        """Return a PSM with the two spectra that are compared. Called in the reader thread."""
        return compared_match(self._table(run, "psms"), row, run)

    def _prefill_for(self, kind: str) -> FormPrefill | None:
        run = self._finished
        if run is None:
            return None
        if kind != "identify":
            return super()._prefill_for(kind)
        rows = self.chosen_modifications
        requested, others = variable_modifications(rows)
        if not requested:
            why = f"Unimod has no site for {others[0]}" if others else "none is selected"
            self.message.emit(f"Select modifications with a Unimod name in their table first: {why}.")
            return None
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            self.message.emit(f"Left out because Unimod has no site for it: {others[0]}{more}.")
        result = [*run.inputs, *inputs_of_source(run)]
        inputs = {name: tuple(dict.fromkeys(path for of, path in result if of == name)) for name in ("spectra", "database")}
        # Modifications that the run already searched for are retained.
        every = tuple(dict.fromkeys([*run.parameters.get("variable_modifications", ()), *requested]))
        return FormPrefill({name: paths for name, paths in inputs.items() if paths}, {**run.parameters, "variable_modifications": every})


def _bounds(run: FinishedRun) -> tuple[float, float]:
    try:
        low, high = shift_range(str(run.parameters["mass_shift"]))
    except ProteoscopeError:
        return -1.0, 1.0
    return min(low, -1.0), max(high, 1.0)


def _title(row: Mapping[str, Any]) -> str:
    locale = QLocale()
    mass = float(row["mass_shift"])
    shift = "" if row["shift_kind"] == "none" else f", {'+' if mass > 0 else ''}{locale.toString(mass, 'f', 4)} Da: {row['modification']}"
    return f"{row['peptide']} ({row['charge']}+), m/z {locale.toString(float(row['precursor_mz']), 'f', 4)}{shift}"
