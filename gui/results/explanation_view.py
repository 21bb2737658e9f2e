"""View of a search that explains unidentified spectra: each explained spectrum is mirrored with the similar identified spectrum."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project
from proteoscope.engine.views.explanations import (
    ExplanationFilter,
    compared_explanation,
    explanation_conditions,
    explanation_counts,
    source_run,
    spectrum_alone,
)
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.certainty import nothing_text
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.results.facts import time_facts
from proteoscope.gui.results.filter_bar import MassFilterBar
from proteoscope.gui.results.matches import fdr_text, spectrum_title
from proteoscope.gui.results.mirrored_run_view import MirroredRunView
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.spectrum_panel import SpectrumPanel
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.spectrum.mirror_view import MirrorView

_NO_SPECTRUM = "Select a spectrum to compare it with the identified spectrum that explains it."


class ExplanationFilterBar(MassFilterBar):
    """Filter bar for explained spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Peptide or spectrum",
            "Show only explanations with this text in the peptide or in the name of one of the two spectra",
            "Show only explanations by peptides of the same mass, or of another mass",
            "modified",
            "explanations with a larger q-value",
            parent,
        )

    @property
    def chosen(self) -> ExplanationFilter:
        """Conditions of the current filter."""
        return ExplanationFilter(self.text.text(), self.largest_q_value, self.kind.currentData())


class ExplanationView(MirroredRunView):
    """View of a finished search that explains unidentified spectra by similar identified spectra.

    The keyword arguments are existing widgets that the view reuses, if any.
    """

    def __init__(
        self, search: Search, parent: QWidget | None = None, *, panels: Panels | None = None, mirror: MirrorView | None = None
    ) -> None:
        self.filters = ExplanationFilterBar()
        spectra = RunSpectra(panel=SpectrumPanel(has_explained_status=True))
        super().__init__(
            search, self.filters, parent, matches="explained", no_match=_NO_SPECTRUM, panels=panels, spectra=spectra, mirror=mirror
        )
        self.explained = self.panels["explained"]
        self.tables = make_tabs((self.explained, "Explained spectra", "Spectra similar to an identified spectrum"))
        self.figures = make_tabs()
        self._add_spectra(self.tables, self.figures)
        self.figures.setCurrentWidget(self.spectra.map)
        above = split(Qt.Orientation.Horizontal, {Pane("Tables", self.tables): 6, Pane("Figures", self.figures, is_picture=True): 5})
        down = split(Qt.Orientation.Vertical, {above: 1, Pane("Compared spectra", self.mirror, is_picture=True): 1})
        self._arrange({"down": down, "above": above}, (self.mirror,))

    def _read(self, project: Project, run_id: str | None) -> FinishedRun:
        result = super()._read(project, run_id)
        try:
            source_run(result)
        except ProteoscopeError:
            result.close()
            raise
        return result

    def _disabled_reason(self, kind: str) -> str:
        # Follow-up searches also use the matches of the identification, without which nothing can be explained.
        return ""

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        super()._begin(run, source)
        self.filters.open(run.fdr)
        self.explained.show_rows(filter=explanation_conditions(self.filters.chosen), takes_first=True)
        self.header.show_facts((f"spectra of {source_run(run)}", *_facts(run.parameters), *time_facts(run)))
        self._statistician.submit("counts", lambda: explanation_counts(source, run.fdr), self._show_counts, self._fail_softly)

    def _show_counts(self, counts: Mapping[str, int]) -> None:
        run, locale = self._finished, QLocale()
        assert run is not None
        note = _modified(counts["modified"], locale)
        if not counts["explained"] and counts["at_5_percent"]:
            note = nothing_text(counts["at_5_percent"], run.fdr, locale)
        figures = [SummaryNumber(counts["explained"], "spectrum explained", "spectra explained", note)]
        figures.append(SummaryNumber(counts["peptides"], "peptide", "peptides"))
        ending = f"at {fdr_text(run.fdr, locale)}"
        if "spectra" in counts:
            n_unidentified = counts["spectra"] - counts["identified"]
            ending += (
                f", of {locale.toString(n_unidentified)} unidentified; {locale.toString(counts['identified'])} "
                f"of {locale.toString(counts['spectra'])} spectra were identified"
            )
        self.header.show_counts(figures, ending, chip=fdr_text(run.fdr, locale))

    def _filter(self) -> None:
        self.explained.show_rows(filter=explanation_conditions(self.filters.chosen))

    def _compared(self, run: FinishedRun, row: int) -> tuple[MirroredSpectra, Mapping[str, Any]]:
        result = compared_explanation(self._table(run, "explained"), row, run)
        details, locale = result.details, QLocale()
        parts = [result.spectra.title]
        if details["precursor_mz"] is not None:
            parts.append(f"m/z {locale.toString(float(details['precursor_mz']), 'f', 4)} ({details['charge']}+)")
        if details["kind"] == "modified":
            parts.append(f"{'+' if details['mass_difference'] > 0 else ''}{locale.toString(float(details['mass_difference']), 'f', 4)} Da")
        return replace(result.spectra, title=", ".join(parts)), details

    def _unmatched(self, run: FinishedRun, spectrum: SpectrumRow, values: Mapping[str, Any]) -> MirroredSpectra:
        """Return a spectrum without an explanation, with the ions of its peptide if it is identified."""
        result, name = spectrum_alone(self._table(run, "explained"), spectrum, run), spectrum_title(values)
        title = f"{name}, {result.title}" if name else result.title
        return replace(result, title=title, upper=replace(result.upper, name=name))


def _facts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    locale = QLocale()
    least = f"cosine of at least {locale.toString(float(parameters['minimum_similarity']), 'g', 3)}"
    difference = float(parameters["mass_difference"])
    mass = f"up to {locale.toString(difference, 'g', 6)} Da lighter or heavier" if difference else "of the same mass"
    return f"peptides {mass}", least, f"precursors within {parameters['precursor_tolerance']}"


def _modified(n: int, locale: QLocale) -> str:
    return f"{locale.toString(n)} modified" if n else ""
