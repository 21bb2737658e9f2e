"""View of an annotated spectrum: peptide, peaks, mass errors and ion table."""
# ruff: noqa: N802 - Qt gives these names

from collections.abc import Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.views.annotation import AnnotatedSpectrum, AnnotationChoice, IonSettings, annotate_match
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.spectrum_figures import SPECTRUM_HEIGHTS, ErrorUnit, peak_text, spectrum_figure
from proteoscope.gui.buttons import menu_button, text_button
from proteoscope.gui.layouts import in_column, title_row
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.panel_items import localised
from proteoscope.gui.spectrum.annotation_menu import AnnotationMenu
from proteoscope.gui.spectrum.ion_table import IonTableView
from proteoscope.gui.spectrum.peptide_ladder import PeptideLadder
from proteoscope.gui.spectrum.spectrum_page import SpectrumPage

RING = 7.0
"""Diameter in pixels of the ring on a marked peak, small enough to leave the peak's label readable."""
_WIDE = 820
"""Width in pixels from which the ion table is shown next to the spectrum."""


class SpectrumView(SpectrumPage):
    """Widget that shows the spectrum of a PSM with its ions, or a text."""

    choiceChanged = Signal()  # noqa: N815 - Qt's way of naming signals
    """The user changed the matched ions; views store `annotation.choice`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        plot = FigureView("Annotated spectrum", has_heading=False, heights=SPECTRUM_HEIGHTS)
        super().__init__(plot, "the spectrum", "Save the visible range of the spectrum as SVG, PDF or PNG (Ctrl+E)", parent)
        self.setAccessibleName("Spectrum")
        self.spectrum: AnnotatedSpectrum | None = None
        self._row: Mapping[str, Any] | None = None
        self._run_settings: IonSettings | None = None
        self._is_ion_table_chosen = False
        self.annotation = AnnotationMenu(self)
        self.annotation.choiceChanged.connect(self._annotate_again)
        self.annotation.choiceChanged.connect(self.choiceChanged)
        self.unit = self.annotation.unit
        self.unit.currentTextChanged.connect(self._change_unit)
        self.annotation_button = menu_button(
            "Annotation", "Matched ions, their tolerance, and labelled peaks", self.annotation, "Annotation of ions"
        )
        self.ions_button = text_button(
            "Ions", "Show the table of fragment ions (Ctrl+I)", name="Show the table of fragment ions", is_checkable=True
        )
        self.ions_button.setShortcut(QKeySequence("Ctrl+I"))
        self.ions_button.clicked.connect(self._choose_ion_table)
        self.ladder = PeptideLadder()
        self.ion_table = IonTableView()
        self.ion_table.ionChosen.connect(self._show_ion)
        self.ion_table.hide()
        self.copy_action = self._action("&Copy as picture", QKeySequence("Ctrl+Shift+P"), self.copy_picture)
        self.addAction(self.export_action)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.reset_action = self._action("Show the &whole spectrum", QKeySequence(), self.plot.reset_range)
        left = QWidget()
        in_column(self.ladder, (self.plot, 1), self.readout, on=left, spacing=0)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.addWidget(left)
        self._splitter.addWidget(self.ion_table)
        self._splitter.setStretchFactor(0, 1)
        self._splitter.setCollapsible(0, False)
        self._bar = title_row(self._title, self.annotation_button, self.ions_button, self.export_button, spacing=6)
        in_column(self._bar, (self._splitter, 1), on=self._shown, spacing=0)
        self.show_text("")

    def show_choice(self, choice: AnnotationChoice) -> None:
        """Apply the user's choice of ions to the shown spectrum and the next ones."""
        self.annotation.show_choice(choice)
        self._annotate_again()

    def show_text(self, text: str) -> None:
        """Show a text in place of the spectrum."""
        self.spectrum = self._row = None
        self._enable(False)
        self._show_in_place(text)

    def show_match(self, row: Mapping[str, Any], peaks: Peaks, settings: IonSettings, title: str) -> None:
        """Show the annotated spectrum of a PSM; the user's choice of ions overrides the settings of its run.

        Parameters
        ----------
        row : mapping of str to object
            Values of the PSM by column of the table of PSMs.
        peaks : Peaks
            Peaks of the spectrum.
        settings : IonSettings
            Ions that the run matched.
        title : str
            Title of the spectrum.
        """
        settings = settings.for_peaks(peaks)
        self._row, self._run_settings = row, settings
        self.annotation.show_choice(self.annotation.choice, settings)
        try:
            self._take(annotate_match(row, peaks, self.annotation.choice.settings(settings), title))
        except ProteoscopeError as error:
            self.show_text(str(error))

    def copy_picture(self) -> None:
        """Copy the visible spectrum to the clipboard as a picture."""
        QGuiApplication.clipboard().setPixmap(self._splitter.grab())
        self.message.emit("Copied the spectrum as a picture.")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show or hide the ion table according to the width, unless the user has shown or hidden it."""
        super().resizeEvent(event)
        if not self._is_ion_table_chosen:
            self._show_ion_table(self.width() >= _WIDE)

    @property
    def _unit(self) -> ErrorUnit:
        return "Da" if self.unit.currentText() == "Da" else "ppm"

    def _action(self, text: str, shortcut: QKeySequence, use: Any) -> QAction:
        action = QAction(text, self, shortcut=shortcut, shortcutContext=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda: use())
        self.addAction(action)
        self.plot.addAction(action)
        return action

    def _take(self, spectrum: AnnotatedSpectrum, *, retains_range: bool = False) -> None:
        if self.spectrum is None or self.spectrum.settings.tolerance.unit != spectrum.settings.tolerance.unit:
            self.unit.setCurrentText(spectrum.settings.tolerance.unit)
        self.spectrum = spectrum
        self._title.set_text(spectrum.title)
        self.ladder.show_spectrum(spectrum)
        self.plot.show_figure(spectrum_figure(spectrum, self._unit), retains_range=retains_range)
        self.ion_table.show_spectrum(spectrum)
        self._show_peak(None)
        self._enable(True)
        self._stack.setCurrentWidget(self._shown)

    def _enable(self, is_there: bool) -> None:
        for action in self.actions():
            action.setEnabled(is_there)

    def _change_unit(self) -> None:
        if self.spectrum is not None:
            self.plot.show_figure(spectrum_figure(self.spectrum, self._unit), retains_range=True)

    def _annotate_again(self) -> None:
        if self.spectrum is not None and self._row is not None and self._run_settings is not None:
            settings = self.annotation.choice.settings(self._run_settings)
            self._take(annotate_match(self._row, self.spectrum.peaks, settings, self.spectrum.title), retains_range=True)

    def _hover(self, peak: int | None) -> None:
        self.plot.mark(*(() if peak is None else (peak,)), size=RING)
        self._show_peak(peak)

    def _show_peak(self, peak: int | None) -> None:
        if self.spectrum is None:
            return
        if peak is not None:
            self.readout.setText(localised(peak_text(self.spectrum, peak)))
            return
        locale = self.locale()
        fraction = locale.toString(self.spectrum.explained * 100, "f", 0)
        n_peaks, n_found = locale.toString(len(self.spectrum.peaks.mz)), locale.toString(len(self.spectrum.matches))
        self.readout.setText(f"{n_found} of {n_peaks} peaks explained, {fraction} % of the intensity")

    def _show_ion(self, ion: int) -> None:
        if self.spectrum is None or ion < 0:
            return
        match = np.flatnonzero(self.spectrum.matches.ion == ion)
        if len(match):
            self._show_peak(int(self.spectrum.matches.peak[match[0]]))
        else:
            mz = self.locale().toString(float(self.spectrum.ions.mz[ion]), "f", 4)
            self.readout.setText(f"{self.spectrum.name(ion)}   m/z {mz}   not found")

    def _choose_ion_table(self, is_shown: bool) -> None:
        self._is_ion_table_chosen = True
        self._show_ion_table(is_shown)

    def _show_ion_table(self, is_shown: bool) -> None:
        self.ions_button.setChecked(is_shown)
        if is_shown and self.ion_table.isHidden():
            width = min(self.ion_table.full_width, self.width() // 2)
            self.ion_table.show()
            self._splitter.setSizes([max(1, self.width() - width), width])
        elif not is_shown:
            self.ion_table.hide()
