"""Page of chromatograms of a run, computed from its list of MS2 spectra or, on request, from the MS1 spectra in its file."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath

from PySide6.QtCore import QLocale, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.views.chromatograms import Chromatogram, base_peaks, extracted, total_ions
from proteoscope.engine.views.spectrum_list import spectrum_chromatogram
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.forms.numbers import NumberBox
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import STRETCH, in_column, in_row
from proteoscope.gui.plots.chromatogram_plot import ChromatogramPlot
from proteoscope.gui.plots.zoomable import zoom_buttons
from proteoscope.gui.tables.worker import TableWorker

_KINDS = (
    ("TIC of MS2", "total_ion_current"),
    ("Base peak of MS2", "base_peak_intensity"),
    ("TIC of MS1", "surveys"),
    ("Base peak of MS1", "survey_peaks"),
    ("m/z in MS1", "extracted"),
)
_WIDEST = 5.0


class ChromatogramPage(QWidget):
    """Page with one chromatogram of a file of a run; the user selects its type and the file."""

    spectrumChosen = Signal(int)  # noqa: N815 - Qt's way of naming signals
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source: TableSource | None = None
        self._ms1_spectra: dict[Path, Ms1Spectra] = {}
        self._check: Callable[[Path], None] = lambda path: None
        self._progress = Progress()
        self._worker = TableWorker(None, self)
        self.plot = ChromatogramPlot()
        self.plot.message.connect(self.message)
        self.plot.spectrumChosen.connect(self.spectrumChosen)
        self.kind = described(ChoiceBox(_KINDS), "Type of chromatogram", "Signal drawn over time; MS1 spectra are read from the run's file")
        self.file = described(ChoiceBox(), "File of the chromatogram")
        self.file.setMinimumContentsLength(8)
        self.mz = described(
            NumberBox(0, 100_000),
            "m/z of the chromatogram",
            "Peaks of the MS1 spectra at this m/z are summed; the default is the m/z of the selected spectrum",
        )
        self.tolerance = described(QLineEdit("10 ppm"), "m/z tolerance", "For example 10 ppm or 0.02 Da")
        self.tolerance.setMaximumWidth(self.tolerance.fontMetrics().horizontalAdvance("0000000 ppm"))
        self._mz_label = QLabel("±")
        fields: tuple[QWidget, ...] = (self.kind, self.mz, self._mz_label, self.tolerance)
        in_column(
            in_row(*fields, self.file, STRETCH, *zoom_buttons(self.plot, "time"), margins=(8, 3, 6, 1), spacing=6),
            (self.plot, 1),
            on=self,
            spacing=0,
        )
        for box in (self.kind, self.file):
            box.activated.connect(lambda _: self._draw())
        self.mz.valueChanged.connect(lambda _: self._draw_extracted())
        self.tolerance.editingFinished.connect(self._draw_extracted)
        self._show_fields()

    @property
    def is_busy(self) -> bool:
        """True while a chromatogram is being computed."""
        return self._worker.is_busy

    def open(self, source: TableSource, files: Sequence[Path], check: Callable[[Path], None]) -> None:
        """Show the chromatogram of a run.

        Parameters
        ----------
        source : TableSource
            Source of the list of spectra; this page closes it.
        files : sequence of Path
            Spectrum files of the run.
        check : callable
            Function that raises InputError if a file may not be read.
        """
        self.close_run()
        self._source, self._check = source, check
        self.file.clear()
        # The list of spectra has these names.
        for name, path in zip(distinct_names(files), files, strict=True):
            self.file.addItem(name, path)
        self.file.setVisible(len(files) > 1)
        self._draw()

    def close_run(self, text: str = "") -> None:
        """Release the data and show `text` in place of the chromatogram."""
        self._progress.cancel()
        self._worker.close()
        self._progress = Progress()
        if self._source is not None:
            self._source.close()
        self._source = None
        self._ms1_spectra.clear()
        self.plot.show_chromatogram(None, text or " ")
        self.plot.mark_time(None)

    def show_spectrum(self, file: str | None, seconds: float | None, mz: float | None) -> None:
        """Mark the retention time of a spectrum, and use its m/z as the default of extracted chromatograms.

        Parameters
        ----------
        file : str or None
            Name or path of the spectrum's file; if it is one of the files of the page, it is selected.
        seconds : float or None
            Retention time in seconds. None removes the mark.
        mz : float or None
            Precursor m/z in Th.
        """
        at = next((at for at in range(self.file.count()) if file and self.file.itemText(at) in (file, PurePath(file).name)), None)
        is_new_file = at is not None and at != self.file.currentIndex()
        if is_new_file and at is not None:
            self.file.setCurrentIndex(at)
        self.plot.mark_time(None if seconds is None else seconds / 60)
        if mz is not None and not self.mz.hasFocus() and self.kind.currentData() != "extracted":
            self.mz.blockSignals(True)
            self.mz.setValue(round(mz, 4))
            self.mz.blockSignals(False)
        if is_new_file:
            self._draw()

    def _show_fields(self) -> None:
        for widget in (self.mz, self._mz_label, self.tolerance):
            widget.setVisible(self.kind.currentData() == "extracted")

    def _draw_extracted(self) -> None:
        if self.kind.currentData() == "extracted":
            self._draw()

    def _draw(self) -> None:
        self._show_fields()
        source, kind, path = self._source, self.kind.currentData(), self.file.currentData()
        if source is None:
            return
        make: Callable[[], Chromatogram]
        if kind in ("total_ion_current", "base_peak_intensity"):
            named = self.file.currentText() if self.file.count() > 1 else None
            make = partial(spectrum_chromatogram, source, kind, named)
        else:
            try:
                make = self._from_ms1(kind, path)
            except ParameterError as error:
                self.plot.show_chromatogram(None, str(error))
                return
            if path not in self._ms1_spectra:
                self.plot.show_chromatogram(None, f"Reading the MS1 spectra of {path.name if path else 'the run'}…")
        self._worker.submit("chromatogram", make, self.plot.show_chromatogram, lambda error: self.plot.show_chromatogram(None, str(error)))

    def _from_ms1(self, kind: str, path: Path | None) -> Callable[[], Chromatogram]:
        if path is None:
            raise ParameterError("The run does not record the file of its spectra.")
        progress = self._progress

        def surveys() -> Ms1Spectra:
            if path not in self._ms1_spectra:
                self._check(path)
                self._ms1_spectra[path] = read_ms1_spectra(path, progress=progress, spool=Path(tempfile.gettempdir()))
            return self._ms1_spectra[path]

        if kind != "extracted":
            return lambda: total_ions(surveys()) if kind == "surveys" else base_peaks(surveys())
        mz, tolerance = self.mz.value(), Tolerance.parse(self.tolerance.text())
        if mz <= 0 or tolerance.width(mz) > _WIDEST:
            widest = QLocale().toString(_WIDEST, "f", 0)
            raise ParameterError(f"Enter an m/z and a tolerance of at most {widest} Th, for example 10 ppm or 0.02 Da.")
        return lambda: extracted(surveys(), mz, tolerance)
