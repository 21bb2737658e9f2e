"""Page of modification sites: the protein sites of a run with their filter, and the sites of the selected spectrum."""
# ruff: noqa: N815 - Qt's way of naming signals

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.matches.site_columns import PROTEIN_SITES, PSM_SITES
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.views.sites import SiteFilter, site_conditions
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import in_column
from proteoscope.gui.panes import split
from proteoscope.gui.results.filter_bar import FilterBar, q_value_box
from proteoscope.gui.tables.panel import TablePanel

_STEP = 0.05
_PARTS = (3, 2)
"""Relative heights of the tables of protein sites and PSM sites."""

_NARROW = 15
_FIRST = "position", "residue", "site_probability", "localisation_q_value"
"""Columns that are placed directly after the first column, so that they are visible in a narrow window."""
_SITE_VALUES = "best_psm", "protein", "position", "residue", "modification"
_PSM_SITE_VALUES = "psm", "peptide", "modification", "position", "site_probability", "possible_positions", "probabilities"
"""Columns that `SitesPage.siteChosen` and `SitesPage.psmSiteChosen` include, shown or not."""


class SiteFilterBar(FilterBar):
    """Filter bar for protein sites."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Protein, modification or peptide",
            "Show only sites with this text in protein, modification, residue, peptide or sequence window",
            "Show the sites accepted at the FDR of the run",
            parent,
            has_shortcut=False,  # the filter bar above already has this shortcut
        )
        self._rate = 0.01
        self.probability, self.q_value = q_value_box(self.fontMetrics()), q_value_box(self.fontMetrics())
        self.probability.setSingleStep(_STEP)
        self.decoys = described(
            QCheckBox("Dec&oys"), tip="Show the decoy residues, from which the false localisation rate is estimated, too"
        )
        self.decoys.toggled.connect(self._now)
        self._add_number(
            self.probability, "Site &prob. ≥", "Minimum site probability", "Hide sites with a smaller probability; 0 shows all"
        )
        self._add_number(
            self.q_value,
            "F&LR ≤",
            "Maximum false localisation rate",
            "Hide sites accepted only at a larger false localisation rate; sites without an alternative, which have no rate, are shown",
        )
        self._add(self.decoys)
        self.open(0.01)

    @property
    def chosen(self) -> SiteFilter:
        """Conditions of the current filter."""
        rate = self.q_value.value()
        return SiteFilter(self.text.text(), self.probability.value(), None if rate >= 1 else rate, self.decoys.isChecked())

    def open(self, rate: float) -> None:
        """Set the maximum false localisation rate and reset the other fields, without emitting a signal."""
        self._rate = rate
        self._reset_quietly()

    def _reset_own_fields(self) -> None:
        self.probability.setValue(0.0)
        self.q_value.setValue(self._rate)
        self.decoys.setChecked(False)


class SitesPage(QWidget):
    """Tables of protein sites and PSM sites, or a text with the reason why a run has none."""

    siteChosen = Signal(object)
    """A protein site was selected; emitted with the values of its row."""
    psmSiteChosen = Signal(object)
    """A PSM site was selected; emitted with the values of its row."""
    choiceLost = Signal()
    """No PSM site is selected any more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self.filters = SiteFilterBar()
        self.sites = TablePanel(PROTEIN_SITES.title, _ordered(PROTEIN_SITES), _SITE_VALUES)
        self.psm_sites = TablePanel(PSM_SITES.title, _ordered(PSM_SITES), _PSM_SITE_VALUES)
        self.panels = {PROTEIN_SITES.name: self.sites, PSM_SITES.name: self.psm_sites}
        for panel in self.panels.values():
            panel.view.set_empty_text(partial(self._empty_reason, panel))
        self.sites.rowChosen.connect(lambda _, values: self.siteChosen.emit(values))
        self.sites.choiceLost.connect(self.show_all)
        self.psm_sites.rowChosen.connect(lambda _, values: self.psmSiteChosen.emit(values))
        self.psm_sites.choiceLost.connect(self.choiceLost)
        self.psm_sites.allRequested.connect(self.show_all)
        self.filters.filterChanged.connect(self._filter)
        in_column(
            self.filters, (split(Qt.Orientation.Vertical, dict(zip(self.panels.values(), _PARTS, strict=True))), 1), on=self, spacing=0
        )

    @property
    def is_busy(self) -> bool:
        """True while rows are being read."""
        return any(panel.model.is_busy for panel in self.panels.values())

    def open_tables(self, sites: TableSource, psm_sites: TableSource, rate: float) -> None:
        """Show the tables of a run; initially, the sites accepted at a false localisation rate are shown."""
        self._text = ""
        self.filters.open(rate)
        self.sites.open_table(sites)
        self.psm_sites.open_table(psm_sites)
        self.sites.show_rows(filter=site_conditions(self.filters.chosen))
        self.psm_sites.show_rows()
        self.filters.begin_history()
        self._enable(True)

    def close_tables(self, text: str = "") -> None:
        """Close the tables, and show a text in their place."""
        self._text = text
        for panel in self.panels.values():
            panel.close_table()
            panel.view.viewport().update()
        self._enable(False)

    def show_all(self) -> None:
        """Show the sites of all PSMs."""
        self.psm_sites.show_rows(scope=(), scope_text="")

    def _enable(self, is_there: bool) -> None:
        self.filters.setEnabled(is_there)
        # One text for both tables suffices.
        self.psm_sites.setVisible(is_there)

    def _filter(self) -> None:
        self.sites.show_rows(filter=site_conditions(self.filters.chosen))

    def _empty_reason(self, panel: TablePanel) -> str:
        if panel.error or self._text:
            return panel.error or self._text
        if panel.model.is_busy:
            return ""
        if not panel.total:
            return "No accepted match has a modification whose sites are reported."
        if panel is self.psm_sites:
            return "The spectrum has no reported site."
        total = QLocale().toString(panel.total)
        return f"None of the {total} sites pass the filter. Increase the maximum FLR, or decrease the minimum probability."


def _ordered(table: Table) -> tuple[Column, ...]:
    """Return the columns of a table; the columns in `_FIRST` follow directly after the first column."""
    first, *others = table.columns
    ranks = {name: rank for rank, name in enumerate(_FIRST)}
    return (replace(first, width=_NARROW), *sorted(others, key=lambda column: ranks.get(column.name, len(ranks))))
