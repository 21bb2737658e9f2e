"""Base class of views of matches between two spectra, which are drawn mirrored."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.entry import Search
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.spectra_run_view import SpectraRunView
from proteoscope.gui.spectrum.mirror_view import MirrorView


class MirroredRunView(SpectraRunView):
    """View of a finished run that matches spectra to spectra.

    Derived classes implement `_compared`. Parameters: see `SpectraRunView`.
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
        mirror: MirrorView | None = None,
    ) -> None:
        super().__init__(search, filter_bar, parent, matches=matches, no_match=no_match, panels=panels, spectra=spectra)
        self.mirror = mirror or MirrorView()

    def _forget(self) -> None:
        super()._forget()
        self.mirror.show_text("")

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        super()._begin(run, source)
        self.mirror.show_text(self._no_match)

    def _compared(self, run: FinishedRun, row: int) -> tuple[MirroredSpectra, Mapping[str, Any]]:
        """Return the two spectra of a match, and the values of the match with the row of its spectrum. Called in the reader thread."""
        raise NotImplementedError

    def _show_match(self, row: int) -> None:
        run = self._finished
        if run is not None:
            self._reader.submit("spectrum", lambda: self._compared(run, row), self._show_compared, self._fail_spectrum)

    def _show_compared(self, compared_and_row: tuple[MirroredSpectra, Mapping[str, Any]]) -> None:
        compared, position = compared_and_row
        self.mirror.show_spectra(compared)
        self.spectra.mark(SpectrumRow(int(position["spectrum"])), position)

    def _show_plain(self, spectrum: MirroredSpectra) -> None:
        self.mirror.show_spectra(spectrum)

    def _show_no_spectrum_text(self, text: str) -> None:
        self.mirror.show_text(text)
