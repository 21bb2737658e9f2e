"""List, chromatogram and LC-MS map of all spectra of a run; the spectra are read when one of these views is first visible."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import RecordedFiles
from proteoscope.engine.project.records import InputRecord
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.run_map import MapPoints
from proteoscope.engine.views.spectrum_list import open_spectrum_list, read_spectrum_map
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.deferred_tasks import DeferredTasks
from proteoscope.gui.plots.run_map import RunMap
from proteoscope.gui.results.chromatogram_page import ChromatogramPage
from proteoscope.gui.results.facts import records_of_spectra
from proteoscope.gui.results.spectrum_panel import SpectrumPanel
from proteoscope.gui.tables.worker import TableWorker

_READING = "Reading the spectra…"


class _Opened(NamedTuple):
    listed: TableSource
    by_time: TableSource
    points: MapPoints
    files: list[InputRecord]


class RunSpectra(QObject):
    """Three linked views of the spectra of a run: list, chromatogram and map. `panel`, if given, replaces the default list."""

    rowChosen = Signal(int, object)  # noqa: N815 - Qt's way of naming signals
    """A row of the list was selected; emitted with the row and its values."""
    pointed = Signal(int)
    """A spectrum was clicked in a figure; emitted with its row of the table of spectra."""
    message = Signal(str)

    def __init__(self, parent: QObject | None = None, *, panel: SpectrumPanel | None = None) -> None:
        super().__init__(parent)
        self.panel = panel or SpectrumPanel()
        self.chromatogram = ChromatogramPage()
        self.map = RunMap()
        self._run: FinishedRun | None = None
        self._is_opened = False
        self._wanted: SpectrumRow | None = None
        self._marked: tuple[SpectrumRow, str | None, float | None, float | None] | None = None
        self._progress = Progress()
        self._worker = TableWorker(None, self)
        self._deferred = DeferredTasks(self)
        self.panel.rowChosen.connect(self.rowChosen)
        for picture in (self.chromatogram, self.map):
            picture.spectrumChosen.connect(self.pointed)
            picture.message.connect(self.message)

    @property
    def is_busy(self) -> bool:
        """True while data are being read."""
        return self._worker.is_busy or self._deferred.is_busy or self.chromatogram.is_busy or self.panel.table.model.is_busy

    def open(self, run: FinishedRun) -> None:
        """Set the run without reading its spectra."""
        self.close()
        self._run = run

    def close(self) -> None:
        """Clear the views and release all files."""
        self._progress.cancel()
        self._deferred.drop()
        self._worker.close()
        self._progress = Progress()
        self._run = self._marked = self._wanted = None
        self._is_opened = False
        self.panel.close_list()
        self.chromatogram.close_run()
        self.map.show_points(None)

    def read_if_needed(self) -> None:
        """Read the spectra unless they were read before; called when one of the views becomes visible."""
        run, progress = self._run, self._progress
        if run is None or self._is_opened:
            return
        self._is_opened = True
        self._show_text(_READING)

        def read() -> _Opened:
            listed = self.panel.table.prepare(open_spectrum_list(run, progress.check))
            return _Opened(listed, open_spectrum_list(run), read_spectrum_map(listed), records_of_spectra(run))

        self._worker.submit("spectra", read, self._show, lambda error: self._show_text(str(error)))

    def mark(self, spectrum: SpectrumRow, values: Mapping[str, Any]) -> None:
        """Mark a spectrum, by its row of the table of spectra, in the chromatogram and on the map.

        `values` are the values of the spectrum by column (file, retention time, m/z), from the list of spectra or the table of PSMs.
        """
        self._marked = (spectrum, values.get("spectrum_file"), values.get("retention_time"), values.get("precursor_mz"))
        self._mark()

    def mark_none(self) -> None:
        """Clear the marks because no spectrum is shown."""
        self._marked = None
        self.map.mark(None)
        self.chromatogram.show_spectrum(None, None, None)

    def choose(self, spectrum: SpectrumRow) -> None:
        """Select a spectrum in the list, at once or when the list has been read."""
        if not self.panel.choose(spectrum):
            self._wanted = spectrum
            if not self.is_busy and self._is_opened:
                self.message.emit("The spectrum is hidden in the list of spectra by its filter. Clear the filter to see it.")

    def _mark(self) -> None:
        if self._marked is not None and self._is_opened:
            spectrum, file, seconds, mz = self._marked
            self.map.mark(spectrum)
            self.chromatogram.show_spectrum(file, seconds, mz)

    def _show_text(self, text: str) -> None:
        self.panel.show_text(text)
        self.chromatogram.close_run(text)
        self.map.show_points(None, text)

    def _show(self, opened: _Opened) -> None:
        wanted, self._wanted = self._wanted, None
        self.panel.open_list(opened.listed, wanted)
        self.chromatogram.open(opened.by_time, [file.path for file in opened.files], RecordedFiles(opened.files).check)
        self._deferred.add(partial(self.map.show_points, opened.points), self._mark)
