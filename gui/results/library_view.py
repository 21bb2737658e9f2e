"""View of a library search: matches mirrored with their library entries, mass differences, and all spectra of the run."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.library_matches import (
    LibraryFilter,
    LibraryOverview,
    compared_match,
    library_conditions,
    library_overview,
    list_conditions,
    matched_spectrum,
)
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.certainty import nothing_text
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.plots.histogram import HistogramPlot
from proteoscope.gui.results.facts import files_facts, time_facts
from proteoscope.gui.results.filter_bar import MassFilterBar
from proteoscope.gui.results.matches import fdr_text
from proteoscope.gui.results.mirrored_run_view import MirroredRunView
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.spectrum.mirror_view import MirrorView

_NO_SPECTRUM = "Select a match to compare its spectrum with the library entry."
_NO_SHIFTS = "No accepted match differs in mass from its entry."


class LibraryFilterBar(MassFilterBar):
    """Filter bar for library matches."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Name, peptide, formula or InChIKey",
            "Show only matches with this text in the entry's name, peptide, formula or InChIKey, the modification, or the spectrum's name",
            "Show only matches with entries of the same mass, or of another mass",
            "shifted",
            "matches with a larger q-value or without q-value",
            parent,
        )

    @property
    def chosen(self) -> LibraryFilter:
        """Conditions of the current filter."""
        return LibraryFilter(self.text.text(), self.largest_q_value, kind=self.kind.currentData())


class LibraryView(MirroredRunView):
    """View of a finished library search. The keyword arguments are existing widgets that the view reuses, if any."""

    def __init__(
        self,
        search: Search,
        parent: QWidget | None = None,
        *,
        panels: Panels | None = None,
        spectra: RunSpectra | None = None,
        mirror: MirrorView | None = None,
    ) -> None:
        self.filters = LibraryFilterBar()
        super().__init__(
            search, self.filters, parent, matches="matches", no_match=_NO_SPECTRUM, panels=panels, spectra=spectra, mirror=mirror
        )
        self.matches = self.panels["matches"]
        self.differences = HistogramPlot("Mass differences")
        tip = "Filtered by the text and the maximum q-value"
        self.tables = make_tabs(
            (self.matches, "Library matches", ""),
            *((self.panels[name], title, tip) for name, title in (("psms", "PSMs"), ("peptides", "Peptides"), ("proteins", "Proteins"))),
        )
        self.figures = make_tabs((self.differences, "Differences", "Mass differences between the accepted matches and their entries"))
        self._add_spectra(self.tables, self.figures)
        above = split(Qt.Orientation.Horizontal, {Pane("Tables", self.tables): 11, Pane("Figures", self.figures, is_picture=True): 9})
        down = split(Qt.Orientation.Vertical, {above: 1, Pane("Compared spectra", self.mirror, is_picture=True): 1})
        self._arrange({"down": down, "above": above}, (self.mirror, self.differences))

    def _forget(self) -> None:
        super()._forget()
        self.differences.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        super()._begin(run, source)
        self.filters.open(run.fdr if run.has_decoys else 1.0)
        self.differences.show_histogram(None, "Counting…")
        self._filter(takes_first=True)
        self.header.show_facts((*files_facts(run), *_facts(run.parameters), *time_facts(run)))
        self._statistician.submit("overview", lambda: library_overview(source, run.fdr), self._show_overview, self._fail_overview)

    def _show_overview(self, overview: LibraryOverview) -> None:
        run = self._finished
        assert run is not None
        counts, locale = overview.counts, QLocale()
        shifted = f"{locale.toString(counts['shifted'])} of another mass" if counts["shifted"] else ""
        if overview.has_error_rates and not counts["matches"] and counts["at_5_percent"]:
            shifted = nothing_text(counts["at_5_percent"], run.fdr, locale)
        figures = [
            SummaryNumber(counts["matches"], "spectrum matched", "spectra matched", shifted),
            SummaryNumber(counts["names"], "library entry", "library entries"),
        ]
        rate = fdr_text(run.fdr, locale)
        ending = f"at {rate}" if overview.has_error_rates else "without error rates: the library has no decoys"
        if overview.counts["unrated"]:
            ending += f"; {locale.toString(overview.counts['unrated'])} more match entries without decoys (set q-value ≤ 1 to show them)"
        self.header.show_counts(figures, ending, chip=rate if overview.has_error_rates else "error rate unknown")
        self.differences.show_histogram(None if overview.differences.is_empty else overview.differences, _NO_SHIFTS)

    def _fail_overview(self, error: Exception) -> None:
        self.differences.show_histogram(None, str(error))

    def _filter(self, *, takes_first: bool = False) -> None:
        chosen = self.filters.chosen
        for panel in self.panels.values():
            if panel is self.matches:
                panel.show_rows(filter=library_conditions(chosen), takes_first=takes_first)
            else:
                panel.show_rows(filter=list_conditions(chosen, panel.model.columns))

    def _compared(self, run: FinishedRun, row: int) -> tuple[MirroredSpectra, Mapping[str, Any]]:
        source = self._table(run, "matches")
        return compared_match(source, row, run), matched_spectrum(source, row)


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    kind = {"entropy": "spectral entropy", "cosine": "cosine"}.get(str(parameters["similarity"]), str(parameters["similarity"]))
    return kind, f"precursors within {parameters['precursor_tolerance']}", f"fragments within {parameters['fragment_tolerance']}"
