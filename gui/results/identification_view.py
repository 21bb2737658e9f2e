"""View of the results of an identification: linked tables of proteins, peptides and PSMs, and the spectrum of the selected PSM."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.entry import Search
from proteoscope.engine.identification.entry import IDENTIFICATION
from proteoscope.engine.matches.fixed_modifications import FixedModifications
from proteoscope.engine.matches.site_columns import PROTEIN_SITES, PSM_SITES
from proteoscope.engine.views.annotation import ions_to_show
from proteoscope.engine.views.coverage import Coverage
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.identification import (
    Facets,
    IdentificationOverview,
    facets,
    filter_conditions,
    find_linked_rows,
    fixed_modifications,
    mass_error_histogram,
    read_group_coverage,
    read_psm_row,
    score_histogram,
    select_group_rows,
    select_peptide_psms,
    summary,
)
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.engine.views.peptide_quantities import LinkedQuantities, PeptideQuantities
from proteoscope.engine.views.psm_mirrors import mirrored_arrangements, mirrored_with_other, mirrored_with_prediction, mirrored_with_psm
from proteoscope.engine.views.sites import LinkedSite, has_sites, link_site, missing_sites_reason, select_psm_sites, with_site
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.layouts import add_tabs, make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.plots.histogram import HistogramPlot
from proteoscope.gui.results.facts import files_facts, passes_facts, time_facts
from proteoscope.gui.results.identification_filter import IdentificationFilter
from proteoscope.gui.results.matches import show_summary, spectrum_title
from proteoscope.gui.results.row_marker import RowMarker
from proteoscope.gui.results.run_spectra import RunSpectra
from proteoscope.gui.results.run_view import Panels
from proteoscope.gui.results.sites_page import SitesPage
from proteoscope.gui.results.spectra_run_view import SpectraRunView
from proteoscope.gui.spectrum.match_pane import Below, MatchPane, ShownMatch
from proteoscope.gui.spectrum.mirror_view import MirrorView
from proteoscope.gui.spectrum.spectrum_view import SpectrumView
from proteoscope.gui.tables.panel import TablePanel

_PARTS = (9, 11)
"""Relative widths of the tables and of the figures."""
_NO_PROTEIN = "Select a protein to see its coverage."
_NO_PSM = "Select a PSM to see its spectrum."
_NO_SITE = "Select a site to see its best spectrum."


class _Overview(NamedTuple):
    summary: IdentificationOverview
    facets: Facets
    scores: Histogram
    mass_errors: Histogram


class IdentificationView(SpectraRunView):
    """View of a finished identification. The keyword arguments are existing widgets that the view reuses, if any."""

    def __init__(
        self,
        search: Search = IDENTIFICATION,
        parent: QWidget | None = None,
        *,
        panels: Panels | None = None,
        spectrum: SpectrumView | None = None,
        mirror: MirrorView | None = None,
        spectra: RunSpectra | None = None,
        sites: SitesPage | None = None,
        filters: IdentificationFilter | None = None,
    ) -> None:
        self.filters = filters or IdentificationFilter()
        super().__init__(search, self.filters, parent, matches="psms", no_match=_NO_PSM, panels=panels, spectra=spectra)
        self.proteins, self.peptides, self.psms = (self.panels[name] for name in ("proteins", "peptides", "psms"))
        self._fixed: list[FixedModifications] = []
        self._quantities: LinkedQuantities | None = None
        """Peptide quantities of the newest quantification based on this run; None if no run is open."""
        self.marker = RowMarker("psms", self)
        self._wanted: dict[str, int] = {}
        self.pane = MatchPane(spectrum=spectrum, mirror=mirror)
        self.spectrum = self.pane.spectrum
        self.coverage = CoverageMap()
        self.scores = HistogramPlot("Score distribution")
        self.mass_errors = HistogramPlot("Mass errors")
        self.tabs = make_tabs(
            (self.pane, "Spectrum", "The spectrum of the selected PSM"),
            (self.coverage, "Coverage", "Peptides in the sequence of the selected protein"),
            (self.scores, "Scores", "Scores of targets and decoys"),
            (self.mass_errors, "Mass errors", "Errors of the precursor mass"),
        )
        down = split(Qt.Orientation.Vertical, {Pane(panel.title, panel): 1 for panel in self.panels.values()})
        self.lists = make_tabs((down, "Identifications", "Proteins, their peptides, and their spectra"))
        self.sites: SitesPage | None = None
        """Page of modification sites; None if the search does not write their tables."""
        self._site: tuple[int, Mapping[str, Any]] | None = None
        """Row of the PSM of the selected PSM site, and the values of the site."""
        self._linked: LinkedSite | None = None
        self._other_below: Below = "site"
        """Lower spectrum chosen for the lists that are hidden now: the page of sites has its own choice, all other lists share one."""
        self._shows_sites = False
        self._add_spectra(self.lists, self.tabs)
        if PROTEIN_SITES.name in {table.name for table in search.all_tables}:
            self.sites = sites or SitesPage()
            add_tabs(self.lists, (self.sites, "Sites", "Modified residues of the proteins, with the probabilities of their sites"))
        parts = Pane("Tables", self.lists), Pane("Figures", self.tabs, is_picture=True)
        across = split(Qt.Orientation.Horizontal, dict(zip(parts, _PARTS, strict=True)))
        self._arrange({"across": across, "down": down}, (self.spectrum, self.pane, self.coverage, self.scores, self.mass_errors))
        self._connect()

    def show_protein_of_psm(self) -> None:
        """Select the protein group of the selected PSM, and its peptide and the PSM in the tables of peptides and PSMs."""
        row = self.psms.view.chosen
        values = self._values(self.psms)
        if row is None or values is None or self._statistics is None:
            self.message.emit("Select a PSM first.")
            return
        source = self._statistics
        go_to = partial(self._go_to, psm=row)
        self._statistician.submit("locate", lambda: find_linked_rows(source, values), go_to, self._fail_softly)

    def show_protein_of_peptide(self) -> None:
        """Select the protein group of the selected peptide, and the peptide in the table of the peptides of this group."""
        values = self._values(self.peptides)
        if values is None or self._statistics is None:
            self.message.emit("Select a peptide first.")
            return
        source = self._statistics
        go_to = partial(self._go_to, psm=None)
        self._statistician.submit("locate", lambda: find_linked_rows(source, values), go_to, self._fail_softly)

    def _connect(self) -> None:
        self.proteins.rowChosen.connect(self._show_peptides)
        self.peptides.rowChosen.connect(self._show_psms)
        self.proteins.choiceLost.connect(self._show_all_peptides)
        self.peptides.choiceLost.connect(self._show_psms_of_protein)
        self.pane.match_requested.connect(self._show_again)
        self.pane.marks.marked.connect(self.marker.put)
        self.marker.stored.connect(self.psms.model.reread)
        self.marker.refused.connect(self._refuse_mark)
        self.psms.view.add_action(self.pane.marks.star_action)
        self.coverage.peptideChosen.connect(partial(self._choose_row, self.peptides))
        self._offer_structures(self.psms, self.peptides)
        if self.sites is not None:
            self.sites.siteChosen.connect(self._show_site)
            self.sites.psmSiteChosen.connect(self._show_psm_site)
            self.sites.choiceLost.connect(self._clear_site)
            self._offer_structure(self.sites.sites, self._show_site_on_structure)
            for panel in self.sites.panels.values():
                self._connect_table(panel)
                panel.view.add_action(self.export_action)
        for panel, use in ((self.psms, self.show_protein_of_psm), (self.peptides, self.show_protein_of_peptide)):
            action = QAction(
                "Show its &protein", panel.view, shortcut=QKeySequence("Alt+Up"), shortcutContext=Qt.ShortcutContext.WidgetShortcut
            )
            action.triggered.connect(lambda _=False, use=use: use())
            panel.view.add_action(action)

    def _forget(self) -> None:
        self._wanted.clear()
        self._site = self._linked = None
        if self.sites is not None:
            self.sites.close_tables()
        super()._forget()
        # This also stores the last comment.
        self.pane.forget()
        self.marker.close()
        self.coverage.show_coverage(None)
        self.scores.show_histogram(None)
        self.mass_errors.show_histogram(None)

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        super()._begin(run, source)
        self._fixed, self._quantities = [], LinkedQuantities(run.project, run.run.id)
        self.marker.open(run)
        self.header.show_facts((*files_facts(run), *passes_facts(run), *time_facts(run)))
        self.filters.open(run.fdr, Facets((), ()))
        chosen = self.filters.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=filter_conditions(chosen, name), takes_first=name == "psms")
        self.coverage.show_coverage(None, _NO_PROTEIN)
        self.pane.show_text(_NO_PSM)
        self.scores.show_histogram(None, "Counting…")
        self.mass_errors.show_histogram(None, "Counting…")

        def read_overview() -> _Overview:
            return _Overview(
                summary(source, run),
                facets(source),
                score_histogram(source, run.fdr),
                mass_error_histogram(source, run.fdr),
            )

        self._statistician.submit("overview", read_overview, self._show_overview, self._fail_overview)
        self._open_sites(run)

    def _open_sites(self, run: FinishedRun) -> None:
        page = self.sites
        if page is None:
            return
        if not has_sites(run):
            page.close_tables(missing_sites_reason(run))
            return

        def read() -> list[TableSource]:
            sites, psm_sites = (run.tables.source(name) for name in (PROTEIN_SITES.name, PSM_SITES.name))
            return [page.sites.prepare(sites), page.psm_sites.prepare(psm_sites)]

        def show(sources: list[TableSource]) -> None:
            page.open_tables(sources[0], sources[1], run.fdr)

        self._statistician.submit("sites", read, show, lambda error: page.close_tables(str(error)))

    def _show_site(self, values: Mapping[str, Any]) -> None:
        """Show the best spectrum of a protein site, the peptide of this spectrum, and the site in the coverage of the protein."""
        source, page = self._statistics, self.sites
        if source is None or page is None:
            return
        name = f"{values['protein']}, {values['residue']}{values['position']}"

        def show(linked: LinkedSite) -> None:
            self._linked = linked
            # Without a previous selection, selecting the same row again emits a signal, which updates the spectrum.
            page.psm_sites.view.forget_choice()
            page.psm_sites.show_rows(
                scope=select_psm_sites(linked.psm), scope_text=f"of the best spectrum of {name}", wanted=linked.psm_site, takes_first=True
            )
            if linked.protein is not None:
                self._cover(linked.protein)

        self._statistician.submit("locate", lambda: link_site(source, values), show, self._fail_softly)

    def _show_psm_site(self, values: Mapping[str, Any]) -> None:
        self._site = int(values["psm"]), values
        if self._shows_sites:
            self._show_match(self._site[0])

    def _clear_site(self) -> None:
        self._site = None
        if self._shows_sites:
            self._show_no_spectrum()

    def _show_site_on_structure(self) -> None:
        if self._linked is None:
            self.message.emit("Select a row first.")
        else:
            self._request_peptide(self._linked.name)

    @property
    def _shows_matches(self) -> bool:
        return super()._shows_matches and not self._shows_sites

    @property
    def _all_panels(self) -> Mapping[str, TablePanel]:
        return self.panels if self.sites is None else {**self.panels, **self.sites.panels}

    def _show_of_list(self) -> None:
        shows_sites = self.sites is not None and self._lists.currentWidget() is self.sites
        if shows_sites != self._shows_sites:
            # The page of sites has its own choice of the lower spectrum.
            self._shows_sites, below = shows_sites, self._other_below
            self._other_below = self.pane.below
            self.pane.choose_below(below)
            self._cover_of_list()
        if not shows_sites:
            super()._show_of_list()
        elif self._site is None:
            self._show_no_spectrum()
        else:
            self._show_match(self._site[0])

    def _cover_of_list(self) -> None:
        """Show the coverage of the protein that is selected in the visible list."""
        linked = None if self._linked is None else self._linked.protein
        row = linked if self._shows_sites else self.proteins.view.chosen
        if row is not None:
            self._cover(row)
        elif not self._shows_sites:
            self.coverage.show_coverage(None, _NO_PROTEIN)

    def _show_no_spectrum(self) -> None:
        super()._show_no_spectrum()
        if self._shows_sites and self.sites is not None:
            self._show_no_spectrum_text(_NO_SITE if self.sites.sites.total else "There are no sites.")

    def _show_overview(self, overview: _Overview) -> None:
        assert self._finished is not None
        self._show_summary(overview.summary, self._finished.fdr)
        chosen = self.filters.chosen
        self.filters.offer(overview.facets)
        if self.filters.chosen != chosen:
            self._filter()
        self.scores.show_histogram(overview.scores)
        self.mass_errors.show_histogram(overview.mass_errors)

    def _show_summary(self, overview: IdentificationOverview, fdr: float) -> None:
        show_summary(self.header, overview, fdr)

    def _fail_overview(self, error: Exception) -> None:
        self.header.show_run(self._finished.run.id if self._finished is not None else "", (str(error),), 1)
        for plot in (self.scores, self.mass_errors):
            plot.show_histogram(None, str(error))

    def _filter(self) -> None:
        chosen = self.filters.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=filter_conditions(chosen, name))

    def _show_all_peptides(self) -> None:
        """Show the peptides and PSMs of all proteins after the selected protein is deselected."""
        self._statistician.cancel("coverage")
        self.coverage.show_coverage(None, _NO_PROTEIN)
        self.peptides.show_rows(scope=())
        self.psms.show_rows(scope=(), takes_first=self.psms.view.chosen is None)

    def _show_psms_of_protein(self) -> None:
        """After the selected peptide is deselected, show the PSMs of the selected protein, or all PSMs."""
        self.coverage.mark(None)
        takes_first = self.psms.view.chosen is None
        self.psms.show_rows(scope=self.peptides.scope, scope_text=self.peptides.scope_text, takes_first=takes_first)

    def _show_plain(self, spectrum: MirroredSpectra) -> None:
        self.pane.show_plain(spectrum)

    def _show_no_spectrum_text(self, text: str) -> None:
        self.pane.show_text(text)

    def _show_peptides(self, row: int, values: Mapping[str, Any]) -> None:
        accessions = list(values["accessions"])
        # Without a previous selection, selecting the same peptide again emits a signal, which updates the tables below.
        self.peptides.view.forget_choice()
        name = accessions[0] if len(accessions) == 1 else f"{accessions[0]} and {len(accessions) - 1} more"
        self.psms.show_rows(scope=select_group_rows(accessions), scope_text=f"of {name}")
        self.peptides.show_rows(
            scope=select_group_rows(accessions), scope_text=f"of {name}", wanted=self._wanted.pop("peptides", None), takes_first=True
        )
        self._cover(row)

    def _show_psms(self, row: int, values: Mapping[str, Any]) -> None:
        self.coverage.mark(row)
        self.psms.show_rows(
            scope=select_peptide_psms(values["peptide"], bool(values["is_decoy"])),
            scope_text=f"of {values['peptide']}",
            wanted=self._wanted.pop("psms", None),
            takes_first=True,
        )

    def _show_match(self, row: int) -> None:
        run = self._finished
        if run is None:
            return
        choice, below, reference = self.spectrum.annotation.choice, self.pane.below, self.pane.reference
        site = self._site[1] if self._shows_sites and self._site is not None and self._site[0] == row else None

        def read() -> ShownMatch:
            matches = self._table(run, "psms")
            details, peaks = read_psm_row(matches, row, run)
            if site is not None:
                details = with_site(details, site)
            run_ions = ions_to_show(run.parameters)
            shown = ShownMatch(row, details, peaks, run_ions, spectrum_title(details))
            ions = choice.settings(run_ions)
            if below == "site" and site is not None:
                return replace(shown, mirrored=mirrored_arrangements(details, peaks, ions))
            if below == "prediction":
                return replace(shown, mirrored=mirrored_with_prediction(details, peaks, ions))
            if below == "other":
                return replace(shown, mirrored=mirrored_with_other(matches, row, details, peaks, run, ions))
            if below == "reference" and reference is not None and reference.row != row:
                return replace(shown, mirrored=mirrored_with_psm((details, peaks), (reference.details, reference.peaks), ions))
            return shown

        def show(match: ShownMatch) -> None:
            self.pane.show_match(match, self.marker.mark_of(row))
            self.spectra.mark(SpectrumRow(int(match.details["spectrum"])), match.details)

        self._reader.submit("spectrum", read, show, self._fail_spectrum)

    def _show_again(self) -> None:
        """Show the selected PSM again, with the comparison chosen in the pane."""
        if self.pane.row is not None:
            self._show_match(self.pane.row)

    def _refuse_mark(self, row: int, why: str) -> None:
        self.message.emit(why)
        if row == self.pane.row:
            self._show_again()

    def _cover(self, row: int) -> None:
        source, run, fixed, peptide_quantities = self._statistics, self._finished, self._fixed, self._quantities
        if source is None or run is None or peptide_quantities is None:
            return

        def read() -> tuple[Coverage, PeptideQuantities | None]:
            if not fixed:
                fixed.append(fixed_modifications(source, run))
            return _coverage(source, row, run.fdr, fixed[0]), peptide_quantities.newest()

        self._statistician.submit("coverage", read, self._show_coverage, lambda error: self.coverage.show_coverage(None, str(error)))

    def _show_coverage(self, coverage_and_quantities: tuple[Coverage, PeptideQuantities | None]) -> None:
        coverage, quantities = coverage_and_quantities
        self.coverage.show_coverage(coverage, quantities=quantities)
        linked = self._linked if self._shows_sites else None
        if linked is None:
            self.coverage.mark(self.peptides.view.chosen)
        else:
            self.coverage.mark(linked.peptide, () if linked.residue is None else (linked.residue,))

    def _go_to(self, positions: tuple[int | None, int | None], psm: int | None) -> None:
        protein, peptide = positions
        if protein is None:
            self.message.emit("No listed protein group contains this peptide: it is assigned to a group with more evidence.")
            return
        self._wanted = {name: row for name, row in (("peptides", peptide), ("psms", psm)) if row is not None}
        for panel in self.panels.values():
            panel.view.forget_choice()
        self.proteins.show_rows(wanted=protein)

    def _report_hidden(self, panel: TablePanel) -> None:
        self._wanted.clear()
        super()._report_hidden(panel)

    @property
    def is_busy(self) -> bool:
        """True while data are being read or a mark is being written."""
        return super().is_busy or self.marker.is_busy or (self.sites is not None and self.sites.is_busy)

    @staticmethod
    def _values(panel: TablePanel) -> dict[str, Any] | None:
        row = panel.view.chosen
        position = None if row is None else panel.model.position_of(row)
        return None if position is None else panel.model.values(position)


def _coverage(source: TableSource, row: int, fdr: float, fixed: FixedModifications) -> Coverage:
    """Return the sequence coverage of the protein group at `row`, with a title that includes the covered fraction."""
    result = read_group_coverage(source, row, fdr, fixed)
    fraction = QLocale().toString(result.fraction * 100, "f", 1)
    title = f"{result.title}: {fraction} % of {QLocale().toString(len(result.sequence))} residues. {result.description}".rstrip()
    return replace(result, title=title)
