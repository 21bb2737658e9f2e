"""The results of a library search: each match mirrored with its library entry, their differences of mass, and all spectra of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

from engine.entry import Search
from engine.views.finished_run import FinishedRun
from engine.views.library_matches import LibraryOverview, compared_match, library_conditions, library_overview, matched_spectrum
from engine.views.mirror import MirroredSpectra
from engine.views.spectrum_list import plain_spectrum
from engine.views.tables import TableSource
from gui.plots.histogram import HistogramPlot
from gui.results.facts import files_facts, time_facts
from gui.results.library_filter import LibraryFilterBar
from gui.results.matches import spectrum_title
from gui.results.run_spectra import RunSpectra
from gui.results.run_view import RunView
from gui.results.summary_header import SummaryNumber
from gui.spectrum.mirror_view import MirrorView
from gui.tables.panel import TablePanel

__all__ = ["LibraryView"]

_NO_SPECTRUM = "Choose a match to compare its spectrum with the library's."
_NO_SPECTRUM_OF_LIST = "Choose a spectrum of the list to see it."
_NO_SHIFTS = "No accepted match has another mass than its entry."


class LibraryView(RunView):
    """Shows a finished library search."""

    def __init__(self, search: Search, parent: QWidget | None = None) -> None:
        self.filters = LibraryFilterBar()
        super().__init__(search, self.filters, parent)
        self.matches = self.panels["matches"]
        self.matches.keeps_a_choice = True
        self._run: FinishedRun | None = None
        self._details: TableSource | None = None
        self.mirror = MirrorView()
        self.differences = HistogramPlot("Mass differences")
        self.tables = QTabWidget()
        self.tables.setDocumentMode(True)
        for name, title in (("matches", "Library matches"), ("psms", "PSMs"), ("peptides", "Peptides"), ("proteins", "Proteins")):
            self.tables.addTab(self.panels[name], title)
        self.spectra = RunSpectra(self)
        self.tables.setTabToolTip(self.tables.addTab(self.spectra.panel, "All spectra"), "Every spectrum of the run, identified or not")
        self.figures = QTabWidget()
        self.figures.setDocumentMode(True)
        for widget, title, tip in (
            (self.differences, "Differences", "Differences of the accepted matches from their entries' masses"),
            (self.spectra.chromatogram, "Chromatogram", "What came off the column, by time, and the place of the chosen spectrum"),
            (self.spectra.map, "Map", "All spectra by retention time and m/z"),
        ):
            self.figures.setTabToolTip(self.figures.addTab(widget, title), tip)
        above = QSplitter(Qt.Orientation.Horizontal)
        above.addWidget(self.tables)
        above.addWidget(self.figures)
        down = QSplitter(Qt.Orientation.Vertical)
        down.addWidget(above)
        down.addWidget(self.mirror)
        for splitter, parts in ((above, (11, 9)), (down, (1, 1))):
            for at, part in enumerate(parts):
                splitter.setStretchFactor(at, part)
            splitter.setSizes([100 * part for part in parts])
        self._arrange({"down": down, "above": above}, (self.mirror, self.differences, self.spectra))
        self.matches.rowChosen.connect(lambda row, _: None if self._is_of_list else self._show_match(row))
        self.matches.choiceLost.connect(lambda: None if self._is_of_list else self._show_no_spectrum())
        for tabs in (self.tables, self.figures):
            tabs.currentChanged.connect(lambda _: self._look())
        self.tables.currentChanged.connect(lambda _: self._show_of_list())
        self.spectra.rowChosen.connect(self._show_listed)
        self.spectra.panel.table.choiceLost.connect(self._show_of_list)
        self.spectra.panel.table.view.message.connect(self.message)
        self.spectra.pointed.connect(self._show_pointed)

    @property
    def is_busy(self) -> bool:
        """Whether something is still being read."""
        return super().is_busy or self.spectra.is_busy

    def _forget(self) -> None:
        if self._details is not None:
            self._details.close()
        self._run = self._details = None
        self.spectra.close()
        self.mirror.show_text("")
        self.differences.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self._run = run
        self.spectra.open(run)
        self._look()
        self.filters.open(run.fdr if run.has_decoys else 1.0)
        self.mirror.show_text(_NO_SPECTRUM)
        self.differences.show_histogram(None, "Counting…")
        for name, panel in self.panels.items():
            if name == "matches":
                panel.show_rows(filter=library_conditions(self.filters.chosen), takes_first=True)
            else:
                panel.show_rows()
        self.header.show_facts((*files_facts(run), *_facts(run.parameters), *time_facts(run)))
        self._statistician.submit("overview", lambda: library_overview(source, run.fdr), self._show_overview, self._fail_overview)

    def _show_overview(self, found: LibraryOverview) -> None:
        run = self._run
        assert run is not None
        counts, locale = found.counts, QLocale()
        shifted = f"{locale.toString(counts['shifted'])} of another mass" if counts["shifted"] else ""
        figures = [
            SummaryNumber(counts["matches"], "spectrum matched", "spectra matched", shifted),
            SummaryNumber(counts["names"], "library entry", "library entries"),
        ]
        ending = (
            f"at {locale.toString(100 * run.fdr, 'g', 3)} % FDR" if found.is_judged else "without error rates: the library has no decoys"
        )
        if found.counts["unrated"]:
            ending += f"; {locale.toString(found.counts['unrated'])} more of entries without decoys, seen with q-value ≤ 1"
        self.header.show_counts(figures, ending)
        self.differences.show_histogram(None if found.differences.is_empty else found.differences, _NO_SHIFTS)

    def _fail_overview(self, error: Exception) -> None:
        self.differences.show_histogram(None, str(error))

    def _filter(self) -> None:
        self.matches.show_rows(filter=library_conditions(self.filters.chosen))

    @property
    def _is_of_list(self) -> bool:
        """Whether the figure belongs to a row of the list of all spectra, and not to the chosen match: to that of the list in sight."""
        return self.tables.currentWidget() is self.spectra.panel

    def _look(self) -> None:
        """Read the list of spectra where it, or a picture of it, is in sight."""
        if self._is_of_list or self.figures.currentWidget() in (self.spectra.chromatogram, self.spectra.map):
            self.spectra.look()

    def _show_of_list(self) -> None:
        """Show what is chosen in the list that is in sight."""
        table = self.spectra.panel.table if self._is_of_list else self.matches
        row = table.view.chosen
        if row is None:
            self._show_no_spectrum()
        elif not self._is_of_list:
            self._show_match(row)
        else:
            position = table.model.position_of(row)
            if position is not None:
                table.model.when_loaded(position, lambda values: self._show_listed(row, values))

    def _show_listed(self, spectrum: int, values: Mapping[str, Any]) -> None:
        """Show a row of the list of all spectra: beside its entry where it has one."""
        run = self._run
        if run is None or not self._is_of_list:
            return
        self.spectra.mark(spectrum, values)
        if values["is_identified"]:
            self._show_match(int(values["psm"]))
            return
        title = spectrum_title(values)
        self._reader.submit("spectra", lambda: plain_spectrum(run, spectrum, title), self.mirror.show_spectra, self._fail_spectra)

    def _show_pointed(self, spectrum: int) -> None:
        """Show a spectrum that was clicked by time or on the map."""
        self.tables.setCurrentWidget(self.spectra.panel)
        self.spectra.choose(spectrum)

    def _show_no_spectrum(self) -> None:
        self._reader.cancel("spectra")
        self.mirror.show_text(_NO_SPECTRUM_OF_LIST if self._is_of_list else _NO_SPECTRUM)

    def _show_match(self, row: int) -> None:
        run = self._run
        if run is not None:
            self._reader.submit("spectra", lambda: self._compared(run, row), self._show_compared, self._fail_spectra)

    def _show_compared(self, found: tuple[MirroredSpectra, dict[str, Any]]) -> None:
        compared, place = found
        self.mirror.show_spectra(compared)
        self.spectra.mark(int(place["spectrum"]), place)

    def _fail_spectra(self, error: Exception) -> None:
        self.mirror.show_text(str(error))

    def _compared(self, run: FinishedRun, row: int) -> tuple[MirroredSpectra, dict[str, Any]]:
        """For the thread that reads spectra, which alone uses the source."""
        if self._details is None:
            self._details = run.tables.source("matches")
        return compared_match(self._details, row, run), matched_spectrum(self._details, row)

    def _no_rows_text(self, panel: TablePanel) -> str:
        return f"No {panel.plural} of {QLocale().toString(panel.total)} pass the filter. Allow larger q-values, or reset the filter."


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    kind = {"entropy": "spectral entropy", "cosine": "cosine"}.get(str(parameters["similarity"]), str(parameters["similarity"]))
    return kind, f"precursors within {parameters['precursor_tolerance']}", f"fragments within {parameters['fragment_tolerance']}"
