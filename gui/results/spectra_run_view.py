"""Base class of views of spectrum matches, with a list, a chromatogram and a map of all spectra of the run."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QTabWidget, QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.entry import Search
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.spectrum_list import plain_spectrum
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.layouts import add_tabs
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.matches import spectrum_title
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.tables.panel import TablePanel

_FROM_MATCHES = frozenset({"explain", "quantify", "evidence"})
"""Follow-up searches that need matches. The open modification search is not one: it searches the spectra without a match."""
_NO_SPECTRUM_OF_LIST = "Select a spectrum of the list to see it."
_NO_MATCHES = "No match is shown. The tab “All spectra” lists all spectra of the run."


class SpectraRunView(RunView):
    """View of a finished run whose rows are matches of spectra.

    The spectrum figure follows the selected row of the visible list: the table of matches or the list of all spectra. Derived classes pass
    the tabs of their tables and figures to `_add_spectra` and implement `_show_match` (shows a match and marks it in `spectra`),
    `_show_plain` (shows an unmatched spectrum) and `_show_no_spectrum_text` (shows why there is no spectrum).

    Parameters
    ----------
    search : Search
        Search whose result tables are shown.
    filter_bar : FilterBar
        Filter bar above the tables.
    parent : QWidget or None
        Owner of the view.
    matches : str
        Name of the table whose rows have spectra.
    no_match : str
        Text shown if no row of `matches` is selected.
    panels : mapping of str to TablePanel, optional
        Existing widgets of the tables to reuse.
    spectra : RunSpectra, optional
        Existing list, chromatogram and map of all spectra to reuse.
    """

    def __init__(
        self,
        search: Search,
        filter_bar: FilterBar,
        parent: QWidget | None,
        *,
        matches: str,
        no_match: str,
        panels: Panels | None = None,
        spectra: RunSpectra | None = None,
    ) -> None:
        super().__init__(search, filter_bar, parent, panels)
        self.spectra = spectra or RunSpectra()
        self.spectra.setParent(self)
        self._match_panel = self.panels[matches]
        self._match_panel.retains_selection = True
        self._no_match = no_match

    @property
    def is_busy(self) -> bool:
        """True while data are being read."""
        return super().is_busy or self.spectra.is_busy

    def _add_spectra(self, lists: QTabWidget, figures: QTabWidget) -> None:
        """Add tabs: the list of all spectra to `lists`, the chromatogram and the map of the run to `figures`."""
        self._lists, self._figures = lists, figures
        add_tabs(lists, (self.spectra.panel, "All spectra", "Every spectrum of the run, identified or not"))
        add_tabs(
            figures,
            (self.spectra.chromatogram, "Chromatogram", "Signal over retention time, with the selected spectrum"),
            (self.spectra.map, "LC-MS map", "All spectra by retention time and m/z"),
        )
        for tabs in (lists, figures):
            tabs.currentChanged.connect(lambda _: self._read_if_visible())
        lists.currentChanged.connect(lambda _: self._show_of_list())
        self._match_panel.rowChosen.connect(lambda row, _: self._show_match(row) if self._shows_matches else None)
        self._match_panel.model.busyChanged.connect(self._check_matches)
        self._match_panel.choiceLost.connect(lambda: self._show_no_spectrum() if self._shows_matches else None)
        self.spectra.rowChosen.connect(self._show_listed)
        self.spectra.panel.table.choiceLost.connect(self._show_of_list)
        self.spectra.panel.table.view.message.connect(self.message)
        self.spectra.pointed.connect(self._show_pointed)
        self.spectra.message.connect(self.message)

    def _disabled_reason(self, kind: str) -> str:
        if kind in _FROM_MATCHES and not self._match_panel.total:
            return f"Not possible: this run found no {self._match_panel.plural}"
        return super()._disabled_reason(kind)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.spectra.open(run)
        self._read_if_visible()

    def _forget(self) -> None:
        self.spectra.close()

    def _show_match(self, row: int) -> None:
        """Show the spectrum of a row of the table of matches."""
        raise NotImplementedError

    def _show_plain(self, spectrum: MirroredSpectra) -> None:
        """Show a spectrum that is not in the table of matches."""
        raise NotImplementedError

    def _show_no_spectrum_text(self, text: str) -> None:
        """Show a text in place of a spectrum."""
        raise NotImplementedError

    @property
    def _shows_listed_spectrum(self) -> bool:
        """True if the figure shows a row of the list of all spectra instead of the selected match."""
        return self._lists.currentWidget() is self.spectra.panel

    @property
    def _shows_matches(self) -> bool:
        """True if the figure shows the selected match."""
        return not self._shows_listed_spectrum

    def _read_if_visible(self) -> None:
        """Read the list of spectra if the list or one of its figures is visible."""
        if self._shows_listed_spectrum or self._figures.currentWidget() in (self.spectra.chromatogram, self.spectra.map):
            self.spectra.read_if_needed()

    def _show_of_list(self) -> None:
        """Show the spectrum of the selected row of the visible list (see the class)."""
        table = self.spectra.panel.table if self._shows_listed_spectrum else self._match_panel
        row = table.view.chosen
        self._reader.cancel("spectrum")
        if row is None:
            self._show_no_spectrum()
        elif not self._shows_listed_spectrum:
            self._show_match(row)
        else:
            position = table.model.position_of(row)
            if position is not None:
                table.model.when_loaded(position, lambda values: self._show_listed(SpectrumRow(row), values))

    def _show_listed(self, spectrum: SpectrumRow, values: Mapping[str, Any]) -> None:
        """Show a spectrum of the list of all spectra; if it is identified, show its match."""
        run = self._finished
        if run is None or not self._shows_listed_spectrum:
            return
        self.spectra.mark(spectrum, values)
        if values["is_identified"] and values["psm"] is not None:
            self._show_match(int(values["psm"]))
            return
        self._reader.submit("spectrum", lambda: self._unmatched(run, spectrum, values), self._show_plain, self._fail_spectrum)

    def _unmatched(self, run: FinishedRun, spectrum: SpectrumRow, values: Mapping[str, Any]) -> MirroredSpectra:
        """Return a spectrum that is not in the table of matches. Called in the reader thread."""
        return plain_spectrum(run, spectrum, spectrum_title(values))

    def _show_pointed(self, spectrum: SpectrumRow) -> None:
        """Show a spectrum clicked in the chromatogram or on the map."""
        self._lists.setCurrentWidget(self.spectra.panel)
        self.spectra.choose(spectrum)

    def _show_no_spectrum(self) -> None:
        self._reader.cancel("spectrum")
        self.spectra.mark_none()
        of_matches = self._no_match if self._match_panel.model.rowCount() else _NO_MATCHES
        self._show_no_spectrum_text(_NO_SPECTRUM_OF_LIST if self._shows_listed_spectrum else of_matches)

    def _check_matches(self, is_busy: bool) -> None:
        """Show the text for a missing spectrum if the table of matches is empty."""
        if self._shows_matches and not (is_busy or self._finished is None or self._match_panel.model.rowCount()):
            self._show_no_spectrum()

    def _fail_spectrum(self, error: Exception) -> None:
        self._show_no_spectrum_text(str(error))

    def _no_rows_text(self, panel: TablePanel) -> str:
        total = QLocale().toString(panel.total)
        return f"None of the {total} {panel.plural} pass the filter. Increase the maximum q-value or reset the filter."
