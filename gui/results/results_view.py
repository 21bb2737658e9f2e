"""The results of an identification: proteins -> peptides -> PSMs -> spectrum, each showing what is chosen in the one before."""
# ruff: noqa: N815 - Qt's way of naming signals

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
from PySide6.QtCore import QDateTime, QLocale, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QLabel, QSplitter, QStackedLayout, QTabWidget, QVBoxLayout, QWidget

from engine.errors import ProteoscopeError
from engine.project import Project
from gui.plots.coverage import Coverage, cover
from gui.plots.coverage_map import CoverageMap
from gui.plots.distributions import Histogram, mass_error_histogram, score_histogram
from gui.plots.histogram import HistogramPlot
from gui.results.filter_bar import FilterBar
from gui.results.identification import (
    PEPTIDE_COLUMNS,
    PEPTIDE_EXTRAS,
    PROTEIN_COLUMNS,
    PROTEIN_EXTRAS,
    PSM_COLUMNS,
    PSM_DETAILS,
    PSM_EXTRAS,
    Facets,
    OpenRun,
    Summary,
    facets,
    filter_conditions,
    open_run,
    psms_of_peptide,
    rows_of_group,
    summary,
)
from gui.results.summary_header import SummaryHeader
from gui.spectrum.annotated_spectrum import IonSettings
from gui.spectrum.spectra_reader import Peaks, SpectraReader
from gui.spectrum.spectrum_view import SpectrumView
from gui.tables.columns import Column, shown_text
from gui.tables.panel import TablePanel
from gui.tables.source import TableSource
from gui.tables.worker import Worker

__all__ = ["ResultsView"]

_NOTHING = "No results yet. Run an identification, or choose a finished run of the project."
_STATE_VERSION = 1
_PARTS = (9, 11)
"""Widths of the tables and of what they show, as parts of the whole."""
_Q_VALUE = Column("q_value", "", "", "probability")


class _Overview(NamedTuple):
    summary: Summary
    facets: Facets
    scores: Histogram
    mass_errors: Histogram


class ResultsView(QWidget):
    """Shows one finished run of a project.

    Files are opened, queried and read in threads; errors are shown as text in the place of what they concern.
    """

    message = Signal(str)
    """A line for the status bar."""
    stateChanged = Signal()
    """Columns or sizes that the user chose have changed: `state` is worth keeping."""
    opened = Signal()
    """The tables of a run are on the screen."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._run: OpenRun | None = None
        self._statistics: TableSource | None = None
        self._reader: SpectraReader | None = None
        self._matches: TableSource | None = None
        self._wanted: dict[str, int] = {}
        self._opener = Worker(None, self)
        self._statistician = Worker(self._interrupt_statistics, self)
        self._spectra = Worker(None, self)
        self.header = SummaryHeader()
        self.filter_bar = FilterBar()
        # A search writes the best first, so that the files' order is the one to begin with.
        self.proteins = TablePanel("Proteins", PROTEIN_COLUMNS, PROTEIN_EXTRAS)
        self.peptides = TablePanel("Peptides", PEPTIDE_COLUMNS, PEPTIDE_EXTRAS)
        self.psms = TablePanel("PSMs", PSM_COLUMNS, PSM_EXTRAS)
        self.spectrum = SpectrumView()
        self.coverage = CoverageMap()
        self.scores = HistogramPlot("Score distribution")
        self.mass_errors = HistogramPlot("Mass errors")
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for widget, title, help_text in (
            (self.spectrum, "Spectrum", "The spectrum of the chosen PSM"),
            (self.coverage, "Coverage", "Peptides in the sequence of the chosen protein"),
            (self.scores, "Scores", "Scores of targets and decoys"),
            (self.mass_errors, "Mass errors", "Errors of the precursor mass"),
        ):
            self.tabs.setTabToolTip(self.tabs.addTab(widget, title), help_text)
        self._text = QLabel(_NOTHING)
        self._text.setWordWrap(True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._text.setContentsMargins(32, 32, 32, 32)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._lay_out()
        self._connect()

    @property
    def panels(self) -> dict[str, TablePanel]:
        """The linked tables by name."""
        return {"proteins": self.proteins, "peptides": self.peptides, "psms": self.psms}

    @property
    def text(self) -> str:
        """What is said in place of results, empty when there are some."""
        return self._text.text() if self._stack.currentWidget() is self._text else ""

    @property
    def is_busy(self) -> bool:
        """Whether something is still being read."""
        workers = (self._opener, self._statistician, self._spectra)
        return any(worker.is_busy for worker in workers) or any(panel.model.is_busy for panel in self.panels.values())

    def show_run(self, project: Project, run_id: str | None) -> None:
        """Show a finished run, the last one where `run_id` is None; what was shown before goes."""
        self.clear()
        self._say("Opening the results…")
        self._opener.submit("open", lambda: open_run(project, run_id), self._open, self._fail)

    def clear(self) -> None:
        """Show nothing, let all files go, and end what still runs."""
        self._opener.close()
        self._statistician.close()
        self._spectra.close()
        self._wanted.clear()
        for panel in self.panels.values():
            panel.close_table()
        for held in (self._statistics, self._matches, self._reader, self._run):
            if held is not None:
                held.close()
        self._run = self._statistics = self._matches = self._reader = None
        self.header.show_nothing()
        self.spectrum.show_text("")
        self.coverage.show_coverage(None)
        self.scores.show_histogram(None)
        self.mass_errors.show_histogram(None)
        self._say(_NOTHING)

    def state(self) -> str:
        """The user's choice of columns and sizes, as a text to keep."""
        return json.dumps(
            {
                "version": _STATE_VERSION,
                "hidden": {name: panel.hidden_columns() for name, panel in self.panels.items()},
                "sizes": {"across": self._across.sizes(), "down": self._down.sizes()},
            }
        )

    def restore_state(self, text: str) -> None:
        """Take what `state` gave; what cannot be read is passed over."""
        try:
            state = json.loads(text)
            if state["version"] != _STATE_VERSION:
                return
            hidden, sizes = dict(state["hidden"]), dict(state["sizes"])
        except (ValueError, KeyError, TypeError):
            return
        for name, panel in self.panels.items():
            columns = hidden.get(name)
            if isinstance(columns, list) and all(isinstance(column, str) for column in columns):
                panel.remember_columns(columns)
        for splitter, name in ((self._across, "across"), (self._down, "down")):
            kept = sizes.get(name)
            if isinstance(kept, list) and len(kept) == splitter.count() and all(isinstance(size, int) for size in kept) and any(kept):
                splitter.setSizes(kept)

    def show_protein_of_psm(self) -> None:
        """Choose the protein group of the chosen PSM, and in it the same peptide and PSM."""
        row = self.psms.view.chosen
        values = self._values(self.psms)
        if row is None or values is None or self._statistics is None:
            self.message.emit("Choose a PSM first.")
            return
        source = self._statistics
        go_to = partial(self._go_to, psm=row)
        self._statistician.submit("locate", lambda: _places(source, values), go_to, self._fail_softly)

    def show_protein_of_peptide(self) -> None:
        """Choose the protein group of the chosen peptide, and in it the same peptide."""
        values = self._values(self.peptides)
        if values is None or self._statistics is None:
            self.message.emit("Choose a peptide first.")
            return
        source = self._statistics
        go_to = partial(self._go_to, psm=None)
        self._statistician.submit("locate", lambda: _places(source, values), go_to, self._fail_softly)

    def show_all(self, name: str) -> None:
        """Show all rows of a table, whatever is chosen elsewhere; the chosen row stays."""
        self.panels[name].show_rows(scope=(), scope_text="")

    def _lay_out(self) -> None:
        self._down = QSplitter(Qt.Orientation.Vertical)
        for panel in self.panels.values():
            self._down.addWidget(panel)
        self._down.setChildrenCollapsible(False)
        self._across = QSplitter(Qt.Orientation.Horizontal)
        self._across.addWidget(self._down)
        self._across.addWidget(self.tabs)
        self._across.setChildrenCollapsible(False)
        for at, part in enumerate(_PARTS):
            self._across.setStretchFactor(at, part)
        self._across.setSizes([100 * part for part in _PARTS])
        shown = QWidget()
        layout = QVBoxLayout(shown)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.header)
        layout.addWidget(self.filter_bar)
        layout.addWidget(self._across, 1)
        self._shown = shown
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._text)
        self._stack.addWidget(shown)

    def _connect(self) -> None:
        self.filter_bar.filterChanged.connect(self._filter)
        self.proteins.rowChosen.connect(self._show_peptides)
        self.peptides.rowChosen.connect(self._show_psms)
        self.psms.rowChosen.connect(self._show_spectrum)
        self.coverage.peptideChosen.connect(self._choose_peptide)
        for name, panel in self.panels.items():
            panel.allAsked.connect(lambda name=name: self.show_all(name))
            panel.view.columnsChanged.connect(lambda panel=panel: self._keep_columns(panel))
            panel.view.message.connect(self.message)
            panel.view.set_empty_text(partial(self._why_empty, panel))
            panel.wantedHidden.connect(lambda panel=panel: self._tell_hidden(panel))
        for plot in (self.spectrum, self.coverage, self.scores, self.mass_errors):
            plot.message.connect(self.message)
        for splitter in (self._across, self._down):
            splitter.splitterMoved.connect(lambda *_: self.stateChanged.emit())
        for panel, use in ((self.psms, self.show_protein_of_psm), (self.peptides, self.show_protein_of_peptide)):
            action = QAction("Show its &protein", panel.view)
            action.setShortcut(QKeySequence("Alt+Up"))
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.triggered.connect(lambda _=False, use=use: use())
            panel.view.add_action(action)

    def _say(self, text: str) -> None:
        self._text.setText(text)
        self._stack.setCurrentWidget(self._text)

    def _fail(self, error: Exception) -> None:
        self._say(str(error))

    def _fail_softly(self, error: Exception) -> None:
        self.message.emit(str(error))

    def _open(self, run: OpenRun) -> None:
        self._run = run
        try:
            for name, panel in self.panels.items():
                panel.open_table(run.tables.source(name))
            self._statistics = run.tables.source("psms")
        except ProteoscopeError as error:
            self.clear()
            self._say(str(error))
            return
        self.filter_bar.open(run.fdr, Facets((), ()))
        when = QLocale().toString(QDateTime.fromSecsSinceEpoch(int(run.run.started.timestamp())), QLocale.FormatType.ShortFormat)
        self.header.show_run(f"{run.run.id}, {when}", run.messages)
        self._stack.setCurrentWidget(self._shown)
        chosen = self.filter_bar.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=filter_conditions(chosen, name), takes_first=name == "psms")
        self.coverage.show_coverage(None, "Choose a protein to see which parts of it are covered.")
        self.spectrum.show_text("Choose a PSM to see its spectrum.")
        self.scores.show_histogram(None, "Counting…")
        self.mass_errors.show_histogram(None, "Counting…")
        source = self._statistics

        def look_over() -> _Overview:
            return _Overview(
                summary(source, run.spectra_path, run.fdr),
                facets(source),
                score_histogram(source, run.fdr),
                mass_error_histogram(source, run.fdr),
            )

        self._statistician.submit("overview", look_over, self._show_overview, self._fail_overview)
        self.opened.emit()

    def _show_overview(self, overview: _Overview) -> None:
        assert self._run is not None
        self.header.show_summary(overview.summary, self._run.fdr)
        chosen = self.filter_bar.chosen
        self.filter_bar.offer(overview.facets)
        if self.filter_bar.chosen != chosen:
            self._filter()
        self.scores.show_histogram(overview.scores)
        self.mass_errors.show_histogram(overview.mass_errors)

    def _fail_overview(self, error: Exception) -> None:
        self.header.show_run(self._run.run.id if self._run is not None else "", (str(error),))
        for plot in (self.scores, self.mass_errors):
            plot.show_histogram(None, str(error))

    def _filter(self) -> None:
        chosen = self.filter_bar.chosen
        for name, panel in self.panels.items():
            panel.show_rows(filter=filter_conditions(chosen, name))

    def _show_peptides(self, row: int, values: Mapping[str, Any]) -> None:
        accessions = list(values["accessions"])
        # What was chosen before is told again, so that the tables below follow.
        self.peptides.view.forget_choice()
        name = accessions[0] if len(accessions) == 1 else f"{accessions[0]} and {len(accessions) - 1} more"
        self.psms.show_rows(scope=rows_of_group(accessions), scope_text=f"of {name}")
        self.peptides.show_rows(
            scope=rows_of_group(accessions), scope_text=f"of {name}", wanted=self._wanted.pop("peptides", None), takes_first=True
        )
        self._cover(row)

    def _show_psms(self, row: int, values: Mapping[str, Any]) -> None:
        self.coverage.mark(row)
        self.psms.show_rows(
            scope=psms_of_peptide(values["peptide"], bool(values["is_decoy"])),
            scope_text=f"of {values['peptide']}",
            wanted=self._wanted.pop("psms", None),
            takes_first=True,
        )

    def _show_spectrum(self, row: int, values: Mapping[str, Any]) -> None:
        run = self._run
        if run is None:
            return
        if not run.spectra_path:
            self.spectrum.show_text(run.spectra_error or "The spectra of this run were not kept.")
            return
        settings = IonSettings(run.fragment_tolerance, run.ion_series, run.maximum_fragment_charge)

        def show(found: tuple[dict[str, Any], Peaks]) -> None:
            details, peaks = found
            self.spectrum.show_match(details, peaks, settings, _spectrum_title(details))

        self._spectra.submit("spectrum", lambda: self._match(run, row), show, lambda error: self.spectrum.show_text(str(error)))

    def _match(self, run: OpenRun, row: int) -> tuple[dict[str, Any], Peaks]:
        """Runs in the thread that reads spectra, which alone uses the reader and its source."""
        if self._reader is None:
            self._reader = SpectraReader(run.spectra_path)
        if self._matches is None:
            self._matches = run.tables.source("psms")
        details = self._matches.values(np.array([row]), PSM_DETAILS).to_pylist()[0]
        return details, self._reader.peaks(int(details["spectrum"]))

    def _cover(self, row: int) -> None:
        source, fdr = self._statistics, self._run.fdr if self._run is not None else 0.01
        if source is None:
            return
        self._statistician.submit(
            "coverage",
            lambda: _coverage(source, row, fdr),
            self._show_coverage,
            lambda error: self.coverage.show_coverage(None, str(error)),
        )

    def _show_coverage(self, coverage: Coverage) -> None:
        self.coverage.show_coverage(coverage)
        self.coverage.mark(self.peptides.view.chosen)

    def _choose_peptide(self, row: int) -> None:
        position = self.peptides.model.position_of(row)
        if position is None:
            self._tell_hidden(self.peptides)
        else:
            self.peptides.view.choose(position)

    def _go_to(self, places: tuple[int | None, int | None], psm: int | None) -> None:
        protein, peptide = places
        if protein is None:
            self.message.emit("No protein group has this peptide: it belongs to a group that explains more.")
            return
        self._wanted = {name: row for name, row in (("peptides", peptide), ("psms", psm)) if row is not None}
        for panel in self.panels.values():
            panel.view.forget_choice()
        self.proteins.show_rows(wanted=protein)

    def _tell_hidden(self, panel: TablePanel) -> None:
        self._wanted.clear()
        self.message.emit(f"What was looked for is hidden in {panel.title} by the filter. Reset the filter to see it.")

    def _keep_columns(self, panel: TablePanel) -> None:
        panel.remember_columns(panel.view.hidden_columns())
        self.stateChanged.emit()

    def _why_empty(self, panel: TablePanel) -> str:
        if panel.error:
            return panel.error
        if self._run is None or panel.model.is_busy:
            return ""
        if panel.total == 0:
            return f"The search found no {_plural(panel.title)}."
        if panel.scope_text:
            return f"No {_plural(panel.title)} {panel.scope_text} pass the filter."
        return (
            f"No {_plural(panel.title)} of {QLocale().toString(panel.total)} pass the filter. Allow larger q-values, or reset the filter."
        )

    @staticmethod
    def _values(panel: TablePanel) -> dict[str, Any] | None:
        row = panel.view.chosen
        position = None if row is None else panel.model.position_of(row)
        return None if position is None else panel.model.values(position)

    def _interrupt_statistics(self) -> None:
        if self._statistics is not None:
            self._statistics.interrupt()


def _plural(title: str) -> str:
    return title if title == "PSMs" else title.lower()


def _spectrum_title(values: Mapping[str, Any]) -> str:
    locale = QLocale()
    parts = [f"scan {values['scan']}" if values.get("scan") is not None else str(values.get("spectrum_id") or "")]
    parts.append(f"m/z {locale.toString(float(values['precursor_mz']), 'f', 4)} ({values['charge']}+)")
    if values.get("retention_time") is not None:
        parts.append(f"{locale.toString(float(values['retention_time']) / 60, 'f', 2)} min")
    if values.get("q_value") is not None:
        parts.append(f"q-value {shown_text(_Q_VALUE, values['q_value'], locale)}")
    if values.get("spectrum_file"):
        parts.append(PurePath(values["spectrum_file"]).name)
    return ", ".join(part for part in parts if part)


def _places(source: TableSource, values: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Places in their files of the best protein group and of the peptide of a row of peptides or PSMs."""

    def first(sql: str, parameters: list[Any]) -> int | None:
        found = source.query(sql, parameters)["row"].to_pylist()
        return int(found[0]) if found else None

    is_decoy = bool(values["is_decoy"])
    protein = first(
        "SELECT file_row_number AS row FROM proteins WHERE list_has_any(accessions, ?) AND is_decoy = ? "
        "ORDER BY q_value, score DESC, row LIMIT 1",
        [list(values["proteins"]), is_decoy],
    )
    peptide = first("SELECT file_row_number AS row FROM peptides WHERE peptide = ? AND is_decoy = ? LIMIT 1", [values["peptide"], is_decoy])
    return protein, peptide


def _coverage(source: TableSource, row: int, fdr: float) -> Coverage:
    """The map of the protein group at `row`: its first protein, with the peptides that are accepted at `fdr`."""
    protein = source.query('SELECT "group", accessions, description, sequence FROM proteins WHERE file_row_number = ?', [row]).to_pylist()[
        0
    ]
    first = protein["accessions"][0]
    peptides = source.query(
        "SELECT file_row_number AS row, peptide, sequence, n_psms, q_value FROM peptides "
        "WHERE list_contains(proteins, ?) AND (q_value <= ? OR q_value IS NULL OR NOT isfinite(q_value)) ORDER BY row",
        [first, fdr],
    ).to_pylist()
    found = cover("", protein["sequence"], peptides)
    share = QLocale().toString(found.fraction * 100, "f", 1)
    title = f"{first}: {share} % of {QLocale().toString(len(found.sequence))} residues. {protein['description'] or ''}".rstrip()
    return Coverage(title, found.sequence, found.peptides, found.covered, found.modified)
