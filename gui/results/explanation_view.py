"""The results of an explanation: the explained spectra, each mirrored with the identified one that it resembles, and the map of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QSplitter, QWidget

from engine.chemistry.peptidoforms import parse
from engine.chemistry.tolerance import Tolerance
from engine.entry import Search
from engine.errors import InputError, ProteoscopeError
from engine.project import Project
from engine.views.explanations import ExplanationOverview, explanation_conditions, overview, status_of_spectrum
from engine.views.finished_run import FinishedRun, open_finished_run
from engine.views.run_map import STATUS_NAMES
from engine.views.tables import TableSource
from gui.plots.run_map import RunMap
from gui.results.explanation_filter import ExplanationFilterBar
from gui.results.facts import time_facts
from gui.results.matches import ions_looked_for
from gui.results.peaks_of_run import PeaksOfRun, open_peaks
from gui.results.run_view import RunView
from gui.results.summary_header import SummaryNumber
from gui.spectrum.annotated_spectrum import AnnotatedSpectrum, IonSettings, annotate_peptidoform
from gui.spectrum.mirror_view import MirrorView
from gui.spectrum.mirrored_spectra import Half, MirroredSpectra
from gui.spectrum.spectra_reader import Peaks
from gui.tables.panel import TablePanel

__all__ = ["ExplanationView"]

_DETAILS = (
    *("spectrum", "nearest", "spectrum_id", "nearest_spectrum", "peptide", "charge", "similarity", "mass_difference", "q_value"),
    *("precursor_mz", "retention_time", "kind"),
)
_NO_PEAKS = "There are no stored peaks of the run {}, whose spectra are explained."


@dataclass(frozen=True)
class ExplanationRun(FinishedRun):
    """An explanation that is shown: the identification that it began with, that one's peaks, and which ions were looked for in it."""

    source_run: str
    spectra: PeaksOfRun
    ions: IonSettings | None

    def close(self) -> None:
        """Let the files go."""
        super().close()
        self.spectra.close()


class ExplanationView(RunView):
    """Shows a finished explanation."""

    def __init__(self, search: Search, parent: QWidget | None = None) -> None:
        self.filters = ExplanationFilterBar()
        super().__init__(search, self.filters, parent)
        self.explained = self.panels["explained"]
        self._run: ExplanationRun | None = None
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
        self.map.spectrumChosen.connect(self._choose_spectrum)

    def _read(self, project: Project, run_id: str | None) -> ExplanationRun:
        found = open_finished_run(project, self.search, run_id, optional=("map",))
        try:
            source = _source_run(project, found.run.id)
            record = next((one for one in project.runs() if one.id == source), None)
            peaks = open_peaks(project, source, "spectra")
            if not peaks.is_there:
                peaks = PeaksOfRun("", _NO_PEAKS.format(source) if record is not None else f"The run {source} is no longer in the project.")
            return ExplanationRun(
                **vars(found), source_run=source, spectra=peaks, ions=None if record is None else ions_looked_for(record.parameters)
            )
        except ProteoscopeError:
            found.close()
            raise

    def _forget(self) -> None:
        if self._details is not None:
            self._details.close()
        self._run = self._details = None
        self._spectrum_of_row = np.empty(0, np.int64)
        self.mirror.show_text("")
        self.map.show_points(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        assert isinstance(run, ExplanationRun)
        self._run = run
        self.filters.open(float(run.parameters["fdr"]))
        self.mirror.show_text("Choose a spectrum to compare it with the identified one that it resembles.")
        self.map.show_points(None, "Reading the map…")
        self.explained.show_rows(filter=explanation_conditions(self.filters.chosen), takes_first=True)
        self.header.show_facts((f"spectra of {run.source_run}", *_facts(run.parameters), *time_facts(run)))
        has_map, fdr = "map" in run.tables.paths, float(run.parameters["fdr"])
        self._statistician.submit("overview", lambda: overview(source, has_map, fdr), self._show_overview, self._fail_overview)

    def _show_overview(self, found: ExplanationOverview) -> None:
        run = self._run
        assert run is not None
        self._spectrum_of_row = found.spectrum
        counts, locale = found.counts, QLocale()
        figures = [SummaryNumber(counts["explained"], "spectrum explained", "spectra explained", _modified(counts["modified"], locale))]
        figures.append(SummaryNumber(counts["peptides"], "peptide", "peptides"))
        ending = f"at {locale.toString(100 * float(run.parameters['fdr']), 'g', 3)} % FDR"
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
        self.explained.view.clear_choice()
        self._reader.submit("spectra", lambda: self._alone(run, spectrum), self.mirror.show_spectra, self._fail_spectra)

    def _fail_spectra(self, error: Exception) -> None:
        self.mirror.show_text(str(error))

    def _source(self, run: ExplanationRun) -> TableSource:
        """For the thread that reads spectra, which alone uses it."""
        if self._details is None:
            self._details = run.tables.source("explained")
        return self._details

    def _compared(self, run: ExplanationRun, row: int) -> MirroredSpectra:
        found: dict[str, Any] = self._source(run).values(np.array([row]), _DETAILS).to_pylist()[0]
        locale = QLocale()
        of_nearest = run.spectra.peaks(found["nearest"])
        upper = Half(found["spectrum_id"] or "", run.spectra.peaks(found["spectrum"]))
        ions = _annotated(run, found["peptide"], found["charge"], of_nearest)
        lower = Half(f"{found['nearest_spectrum'] or ''}, identified as {found['peptide']}", of_nearest, ions)
        parts = [f"{found['spectrum_id'] or ''} resembles {found['peptide']}"]
        if found["precursor_mz"] is not None:
            parts.append(f"m/z {locale.toString(float(found['precursor_mz']), 'f', 4)} ({found['charge']}+)")
        if found["kind"] == "modified":
            parts.append(f"{'+' if found['mass_difference'] > 0 else ''}{locale.toString(float(found['mass_difference']), 'f', 4)} Da")
        tolerance = Tolerance(float(run.parameters["bin_width"]), "Da")
        return MirroredSpectra(", ".join(parts), upper, lower, tolerance, found["similarity"])

    def _alone(self, run: ExplanationRun, spectrum: int) -> MirroredSpectra:
        """A spectrum that is in no row of the table, with the ions of its peptide where it is identified."""
        row = status_of_spectrum(self._source(run), spectrum)
        peaks = run.spectra.peaks(spectrum)
        name = f"spectrum {QLocale().toString(spectrum + 1)} of {run.source_run}"
        status = STATUS_NAMES[row["status"]]
        told = status if row["peptide"] is None else f"{status} as {row['peptide']}"
        ions = _annotated(run, row["peptide"], None, peaks)
        return MirroredSpectra(f"{name}, {told}", Half(name, peaks, ions), None, Tolerance(float(run.parameters["bin_width"]), "Da"))

    def _no_rows_text(self, panel: TablePanel) -> str:
        return f"No {panel.plural} of {QLocale().toString(panel.total)} pass the filter. Allow larger q-values, or reset the filter."


def _source_run(project: Project, run_id: str) -> str:
    """The identification that an explanation began with, as its record tells."""
    path = project.table("run", run_id)
    try:
        source = json.loads(path.read_text(encoding="utf-8"))["source_run"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(path, "does not tell which run was explained", remedy="Explain the identification again") from error
    if not isinstance(source, str):
        raise InputError(path, "does not tell which run was explained", remedy="Explain the identification again")
    return source


def _annotated(run: ExplanationRun, peptide: str | None, charge: int | None, peaks: Peaks) -> AnnotatedSpectrum | None:
    """The ions of a peptide in a spectrum; None where it cannot be read, or has no masses."""
    if run.ions is None or peptide is None:
        return None
    try:
        parsed = parse(peptide)
        form = replace(parsed, charge=abs(charge or parsed.charge or run.ions.maximum_charge + 1))
        return annotate_peptidoform(form, float(form.mz or 0.0), peaks, run.ions)
    except ProteoscopeError:
        return None


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    locale = QLocale()
    least = f"cosine of at least {locale.toString(float(parameters['minimum_similarity']), 'g', 3)}"
    difference = float(parameters["mass_difference"])
    mass = f"up to {locale.toString(difference, 'g', 6)} Da lighter or heavier" if difference else "of the same mass"
    return f"peptides {mass}", least, f"precursors within {parameters['precursor_tolerance']}"


def _modified(n: int, locale: QLocale) -> str:
    return f"{locale.toString(n)} modified" if n else ""
