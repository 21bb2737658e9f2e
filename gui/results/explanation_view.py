"""The results of an explanation: the explained spectra, each mirrored with the identified one that it resembles, and the map of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QSplitter, QWidget

from engine.entry import Search
from engine.errors import ProteoscopeError
from engine.project import Project
from engine.views.explanations import (
    ExplanationOverview,
    compared_explanation,
    explanation_conditions,
    overview,
    source_run,
    spectrum_alone,
)
from engine.views.finished_run import FinishedRun
from engine.views.mirror import MirroredSpectra
from engine.views.tables import TableSource
from gui.plots.run_map import RunMap
from gui.results.explanation_filter import ExplanationFilterBar
from gui.results.facts import time_facts
from gui.results.run_view import RunView
from gui.results.summary_header import SummaryNumber
from gui.spectrum.mirror_view import MirrorView
from gui.tables.panel import TablePanel

__all__ = ["ExplanationView"]

_NO_SPECTRUM = "Choose a spectrum to compare it with the identified one that it resembles."


class ExplanationView(RunView):
    """Shows a finished explanation."""

    def __init__(self, search: Search, parent: QWidget | None = None) -> None:
        self.filters = ExplanationFilterBar()
        super().__init__(search, self.filters, parent)
        self.explained = self.panels["explained"]
        self.explained.keeps_a_choice = True
        self._run: FinishedRun | None = None
        self._details: TableSource | None = None
        self._spectrum_of_row = np.empty(0, np.int64)
        self.mirror = MirrorView()
        self.map = RunMap()
        above = QSplitter(Qt.Orientation.Horizontal)
        above.addWidget(self.explained)
        above.addWidget(self.map)
        down = QSplitter(Qt.Orientation.Vertical)
        down.addWidget(above)
        down.addWidget(self.mirror)
        for splitter, parts in ((above, (6, 5)), (down, (1, 1))):
            for at, part in enumerate(parts):
                splitter.setStretchFactor(at, part)
            splitter.setSizes([100 * part for part in parts])
        self._arrange({"down": down, "above": above}, (self.mirror, self.map))
        self.explained.rowChosen.connect(self._show_row)
        self.explained.choiceLost.connect(self._show_no_spectrum)
        self.map.spectrumChosen.connect(self._choose_spectrum)

    def _read(self, project: Project, run_id: str | None) -> FinishedRun:
        found = super()._read(project, run_id)
        try:
            source_run(found)
        except ProteoscopeError:
            found.close()
            raise
        return found

    def _forget(self) -> None:
        if self._details is not None:
            self._details.close()
        self._run = self._details = None
        self._spectrum_of_row = np.empty(0, np.int64)
        self.mirror.show_text("")
        self.map.show_points(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self._run = run
        self.filters.open(run.fdr)
        self.mirror.show_text(_NO_SPECTRUM)
        self.map.show_points(None, "Reading the map…")
        self.explained.show_rows(filter=explanation_conditions(self.filters.chosen), takes_first=True)
        self.header.show_facts((f"spectra of {source_run(run)}", *_facts(run.parameters), *time_facts(run)))
        self._statistician.submit("overview", lambda: overview(source, run.fdr), self._show_overview, self._fail_overview)

    def _show_overview(self, found: ExplanationOverview) -> None:
        run = self._run
        assert run is not None
        self._spectrum_of_row = found.spectrum
        counts, locale = found.counts, QLocale()
        figures = [SummaryNumber(counts["explained"], "spectrum explained", "spectra explained", _modified(counts["modified"], locale))]
        figures.append(SummaryNumber(counts["peptides"], "peptide", "peptides"))
        ending = f"at {locale.toString(100 * run.fdr, 'g', 3)} % FDR"
        if found.points is not None:
            n_unidentified = counts["spectra"] - counts["identified"]
            ending += (
                f", of {locale.toString(n_unidentified)} unidentified; {locale.toString(counts['identified'])} "
                f"of {locale.toString(counts['spectra'])} spectra were identified"
            )
        self.header.show_counts(figures, ending)
        self.map.show_points(found.points, "This run has no map.")
        row = self.explained.view.chosen
        if row is not None and row < len(self._spectrum_of_row):
            self.map.mark(int(self._spectrum_of_row[row]))

    def _fail_overview(self, error: Exception) -> None:
        self.map.show_points(None, str(error))

    def _filter(self) -> None:
        self.explained.show_rows(filter=explanation_conditions(self.filters.chosen))

    def _show_no_spectrum(self) -> None:
        self._reader.cancel("spectra")
        self.mirror.show_text(_NO_SPECTRUM)
        self.map.mark(None)

    def _show_row(self, row: int, values: Mapping[str, Any]) -> None:
        run = self._run
        if run is None:
            return
        self.map.mark(values["spectrum"])
        self._reader.submit("spectra", lambda: self._compared(run, row), self.mirror.show_spectra, self._fail_spectra)

    def _choose_spectrum(self, spectrum: int) -> None:
        """Show what a click on the map means: a row of the table, or the spectrum alone where it has none."""
        run = self._run
        if run is None:
            return
        rows = np.flatnonzero(self._spectrum_of_row == spectrum)
        if len(rows) and self.explained.model.position_of(int(rows[0])) is not None:
            self._choose_row(self.explained, int(rows[0]))
            return
        self.explained.clear_choice()
        self._reader.submit("spectra", lambda: self._alone(run, spectrum), self.mirror.show_spectra, self._fail_spectra)

    def _fail_spectra(self, error: Exception) -> None:
        self.mirror.show_text(str(error))

    def _source(self, run: FinishedRun) -> TableSource:
        """For the thread that reads spectra, which alone uses it."""
        if self._details is None:
            self._details = run.tables.source("explained")
        return self._details

    def _compared(self, run: FinishedRun, row: int) -> MirroredSpectra:
        found = compared_explanation(self._source(run), row, run)
        details, locale = found.details, QLocale()
        parts = [found.spectra.title]
        if details["precursor_mz"] is not None:
            parts.append(f"m/z {locale.toString(float(details['precursor_mz']), 'f', 4)} ({details['charge']}+)")
        if details["kind"] == "modified":
            parts.append(f"{'+' if details['mass_difference'] > 0 else ''}{locale.toString(float(details['mass_difference']), 'f', 4)} Da")
        return replace(found.spectra, title=", ".join(parts))

    def _alone(self, run: FinishedRun, spectrum: int) -> MirroredSpectra:
        """A spectrum that is in no row of the table, with the ions of its peptide where it is identified."""
        found = spectrum_alone(self._source(run), spectrum, run)
        name = f"spectrum {QLocale().toString(spectrum + 1)} of {source_run(run)}"
        return replace(found, title=f"{name}, {found.title}", upper=replace(found.upper, name=name))

    def _no_rows_text(self, panel: TablePanel) -> str:
        return f"No {panel.plural} of {QLocale().toString(panel.total)} pass the filter. Allow larger q-values, or reset the filter."


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    locale = QLocale()
    least = f"cosine of at least {locale.toString(float(parameters['minimum_similarity']), 'g', 3)}"
    difference = float(parameters["mass_difference"])
    mass = f"up to {locale.toString(difference, 'g', 6)} Da lighter or heavier" if difference else "of the same mass"
    return f"peptides {mass}", least, f"precursors within {parameters['precursor_tolerance']}"


def _modified(n: int, locale: QLocale) -> str:
    return f"{locale.toString(n)} modified" if n else ""
