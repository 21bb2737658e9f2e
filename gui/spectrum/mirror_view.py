"""View of two compared spectra: title, mirrored spectra, and a readout of the peak under the pointer."""

from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.spectrum_figures import mirror_figure, mirrored_peak, mirrored_peak_text
from proteoscope.gui.layouts import in_column, title_row
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.panel_items import localised
from proteoscope.gui.spectrum.spectrum_page import SpectrumPage
from proteoscope.gui.spectrum.spectrum_view import RING


class MirrorView(SpectrumPage):
    """Widget that shows two mirrored spectra, a single spectrum, or a text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        plot = FigureView("Mirrored spectra", least=(160, 130), has_heading=False, heights=(1.0,))
        super().__init__(plot, "the spectra", "Save the visible range of the spectra as SVG, PDF or PNG (Ctrl+E)", parent)
        self.spectra: MirroredSpectra | None = None
        self._text.setMinimumWidth(1)
        self._bar = title_row(self._title, self.export_button, spacing=6)
        in_column(self._bar, (self.plot, 1), self.readout, on=self._shown, spacing=0)
        self.show_text("")

    def show_text(self, text: str) -> None:
        """Show a text in place of the spectra."""
        self.spectra = None
        self.plot.show_figure(None)
        self.export_action.setEnabled(False)
        self._show_in_place(text)

    def show_spectra(self, spectra: MirroredSpectra) -> None:
        """Show a spectrum and, if given, the spectrum with which it is compared below it."""
        self.spectra = spectra
        self._title.set_text(spectra.title)
        self.plot.show_figure(mirror_figure(spectra))
        self.plot.setAccessibleDescription(f"{spectra.title}, {self._summary()}")
        self.readout.setText(self._summary())
        self.export_action.setEnabled(True)
        self._stack.setCurrentWidget(self._shown)

    def _hover(self, target: int | None) -> None:
        """Mark the peak under the pointer and the matching peak of the other spectrum, and describe both in the readout."""
        if self.spectra is None:
            return
        if target is None:
            self.plot.mark()
            self.readout.setText(self._summary())
            return
        half, peak = mirrored_peak(target)
        partner = self.spectra.partner(half, peak)
        self.plot.mark(target, *(() if partner is None else (partner if half else ~partner,)), size=RING)
        self.readout.setText(localised(mirrored_peak_text(self.spectra, half, peak)))

    def _summary(self) -> str:
        assert self.spectra is not None
        note = f"{self.spectra.note}   " if self.spectra.note else ""
        counts = [self.locale().toString(len(half.peaks.mz)) for half in self.spectra.halves]
        if len(counts) == 1:
            return f"{note}{counts[0]} peaks"
        if self.spectra.is_one_spectrum:
            return f"{note}{counts[0]} peaks; ions above {self._explained(0)}, below {self._explained(1)}"
        n_shared = self.locale().toString(len(self.spectra.shared))
        return f"{note}{n_shared} peaks shared within {self.spectra.tolerance}, of {counts[0]} above and {counts[1]} below"

    def _explained(self, half: int) -> str:
        """Return a text with the number of matched ions in one spectrum, and the fraction of its intensity in matched peaks."""
        assert self.spectra is not None
        ions = self.spectra.halves[half].ions
        is_first = ions is next((shown_half.ions for shown_half in self.spectra.halves if shown_half.ions is not None), None)
        return "none" if ions is None else f"{len(ions.matches)} ({ions.explained * 100:.0f} %{' of intensity' if is_first else ''})"
