"""The results of a library search: the matches, each mirrored with its library entry, and their differences of mass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

from engine.entry import Search
from engine.views.finished_run import FinishedRun
from engine.views.library_matches import LibraryOverview, compared_match, library_conditions, library_overview
from engine.views.mirror import MirroredSpectra
from engine.views.tables import TableSource
from gui.plots.histogram import HistogramPlot
from gui.results.facts import files_facts, time_facts
from gui.results.library_filter import LibraryFilterBar
from gui.results.run_view import RunView
from gui.results.summary_header import SummaryNumber
from gui.spectrum.mirror_view import MirrorView
from gui.tables.panel import TablePanel

__all__ = ["LibraryView"]

_NO_SPECTRUM = "Choose a match to compare its spectrum with the library's."
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
        above = QSplitter(Qt.Orientation.Horizontal)
        above.addWidget(self.tables)
        above.addWidget(self.differences)
        down = QSplitter(Qt.Orientation.Vertical)
        down.addWidget(above)
        down.addWidget(self.mirror)
        for splitter, parts in ((above, (7, 3)), (down, (1, 1))):
            for at, part in enumerate(parts):
                splitter.setStretchFactor(at, part)
            splitter.setSizes([100 * part for part in parts])
        self._arrange({"down": down, "above": above}, (self.mirror, self.differences))
        self.matches.rowChosen.connect(self._show_row)
        self.matches.choiceLost.connect(self._show_no_spectrum)

    def _forget(self) -> None:
        if self._details is not None:
            self._details.close()
        self._run = self._details = None
        self.mirror.show_text("")
        self.differences.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self._run = run
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

    def _show_no_spectrum(self) -> None:
        self._reader.cancel("spectra")
        self.mirror.show_text(_NO_SPECTRUM)

    def _show_row(self, row: int, values: Mapping[str, Any]) -> None:
        run = self._run
        if run is not None:
            self._reader.submit("spectra", lambda: self._compared(run, row), self.mirror.show_spectra, self._fail_spectra)

    def _fail_spectra(self, error: Exception) -> None:
        self.mirror.show_text(str(error))

    def _compared(self, run: FinishedRun, row: int) -> MirroredSpectra:
        """For the thread that reads spectra, which alone uses the source."""
        if self._details is None:
            self._details = run.tables.source("matches")
        return compared_match(self._details, row, run)

    def _no_rows_text(self, panel: TablePanel) -> str:
        return f"No {panel.plural} of {QLocale().toString(panel.total)} pass the filter. Allow larger q-values, or reset the filter."


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    kind = {"entropy": "spectral entropy", "cosine": "cosine"}.get(str(parameters["similarity"]), str(parameters["similarity"]))
    return kind, f"precursors within {parameters['precursor_tolerance']}", f"fragments within {parameters['fragment_tolerance']}"
