"""View of evidence on structures: proteins, details of the selected protein, coverage, alignment to a chain, and 3D structure.

A selection in one of these widgets is highlighted in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QWidget

from proteoscope.engine.arrays import ProteinRow
from proteoscope.engine.entry import Search
from proteoscope.engine.structures.colouring import EVIDENCE_SCHEMES
from proteoscope.engine.views.evidence import (
    MappedChain,
    ProteinEvidence,
    ShownStructure,
    find_peptide_position,
    link_quantities,
    over_residue,
    protein_conditions,
    protein_evidence,
    read_shown_structure,
    refer_to_proteins,
    refers_to_protein,
    superpose_other_chains,
)
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.peptide_quantities import LinkedQuantities
from proteoscope.engine.views.tables import TableSource
from proteoscope.engine.views.traces import Trace
from proteoscope.gui.alignment.alignment_view import AlignmentView
from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.panes import Pane, split
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.results.facts import files_facts, time_facts
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_view import Panels, RunView
from proteoscope.gui.results.summary_header import SummaryNumber
from proteoscope.gui.results.with_structures import WithStructures
from proteoscope.gui.structure.scene import Pick

if TYPE_CHECKING:
    from proteoscope.gui.structure.structure_panel import StructurePanel

_NO_PROTEIN = "Select a protein to see its peptide coverage."
_NO_CHAIN = "No chain of the database is similar to this protein."
_OF_PROTEIN = ("peptide_places", "sites", "missed", "contacts", "paralogues", "chains", "homologues")
_TABS = {
    "peptide_places": ("Peptides", "Peptides mapped onto the selected protein"),
    "sites": ("Sites", "Modified residues and their positions on the structure"),
    "missed": ("Uncovered", "Regions without peptides, and enzymes that would reveal them"),
    "contacts": ("Contacts", "Pairs of modified residues or lysines that are in contact or within cross-linking distance"),
    "paralogues": ("Shared", "Proteins that share peptides with this protein"),
    "chains": ("Chains", "Similar chains, close and remote; the selected chain is shown"),
    "homologues": ("Homologues", "Related sequences, used for conservation"),
}


class _ProteinFilter(FilterBar):
    """Filter bar with only a text field."""

    def __init__(self) -> None:
        super().__init__("Protein or chain", "Show only proteins with this text in name, description or chain", "Show all proteins")

    def _reset_own_fields(self) -> None:
        """Do nothing, since there are no other fields to reset."""


class EvidenceView(WithStructures, RunView):
    """View of a finished run of evidence on structures."""

    def __init__(self, search: Search, parent: QWidget | None = None, panels: Panels | None = None) -> None:
        super().__init__(search, _ProteinFilter(), parent, panels)
        self.proteins = self.panels["proteins"]
        self.peptides, self.sites, self.missed, self.contacts, _, self.chains, _ = (self.panels[name] for name in _OF_PROTEIN)
        self._quantities: LinkedQuantities | None = None
        self._protein: ProteinEvidence | None = None
        self._fold: ShownStructure | None = None
        self._no_fold_text = ""
        self._wanted_form = ""
        self._wanted_peptide: int | None = None
        self._place: int | None = None
        """Index of the last picked residue while the table shows the peptides that cover it; otherwise None."""
        self._is_picking = False
        self.coverage = CoverageMap()
        self.alignment = AlignmentView(copy_tip="Copy the alignment as text", chosen="similar chain", entries="structures")
        self._offer_structures_panel("Show the selected chain in 3D", is_shown=True)
        self.tabs = make_tabs(*((self.panels[name], title, tip) for name, (title, tip) in _TABS.items()))
        self.figures = make_tabs(
            (self.coverage, "Coverage", "The protein's sequence and the peptides that cover it"),
            (self.alignment, "Alignment", "Alignment of the protein and the selected chain"),
        )
        proteins, figures = Pane(self.proteins.title, self.proteins), Pane("Figures", self.figures, is_picture=True)
        left = split(Qt.Orientation.Vertical, {proteins: 3, Pane("Tables", self.tabs): 4, figures: 5})
        self._across = split(Qt.Orientation.Horizontal, {left: 1})
        self._arrange({"across": self._across, "left": left}, (self.coverage, self.alignment))
        self.proteins.retains_selection = True
        self.proteins.rowChosen.connect(lambda row, _: self._show_protein(row))
        self.proteins.choiceLost.connect(self._show_no_protein)
        self.peptides.rowChosen.connect(self._show_peptide)
        self.sites.rowChosen.connect(self._show_site)
        self.missed.rowChosen.connect(lambda _, values: self._show_stretch(values))
        self.contacts.rowChosen.connect(self._show_contact)
        self.chains.rowChosen.connect(lambda row, _: self._show_chain(row))
        for name in ("peptide_places", "sites", "missed", "contacts"):
            self.panels[name].choiceLost.connect(partial(self._forget_choice, name))
        self.coverage.peptideChosen.connect(self._choose_peptide)
        self.alignment.plot.columnPicked.connect(self._pick_column)

    def show_peptide(self, peptide: str) -> None:
        """Select a peptide and the first protein that contains it, as soon as the run is open."""
        self._wanted_form = peptide
        self._go_to_wanted()

    # ------------------------------------------------------------------------------------------------------------ the run

    def _begin(self, run: FinishedRun, source: TableSource) -> None:
        self.filter_bar.reset()
        self._show_no_protein()
        names = (("proteins", "protein", "proteins"), ("sites", "modification of a residue", "modifications of residues"))
        self.header.show_counts([SummaryNumber(self.panels[name].total, singular, plural) for name, singular, plural in names], "")
        self.header.show_facts((*files_facts(run, "peptides of {}"), *time_facts(run)))
        if self.structures_action.isChecked():
            # Creating the 3D panel is slow: the tables are shown first, then the panel is created and filled.
            self._deferred.add(self._make_wanted_structures, lambda: self._show_structures(self.structures_action.isChecked()))
        self.proteins.show_rows(takes_first=not self._wanted_form)
        self._go_to_wanted()

    def _forget(self) -> None:
        self._protein = self._fold = self._quantities = None
        self.coverage.show_coverage(None)
        self.alignment.show_pair(None)
        if self.structures is not None:
            self.structures.show_text("")
            self.structures.close_renderer()

    def _filter(self) -> None:
        # The proteins come last: filtering them may select another protein, which narrows the other tables to it.
        text = self.filter_bar.text.text()
        for name in _OF_PROTEIN:
            self.panels[name].show_rows(filter=refer_to_proteins(text))
        self.proteins.show_rows(filter=protein_conditions(text))

    def show_all(self, name: str) -> None:
        """Show all rows of the selected protein in the table `name`.

        If these rows are shown already, or no protein is selected, show all rows of the run.
        """
        if name in _OF_PROTEIN and self._protein is not None and self.panels[name].scope != tuple(refers_to_protein(self._protein.row)):
            self._scope(name)
        else:
            super().show_all(name)

    def _scope(self, name: str) -> None:
        assert self._protein is not None
        self._place = None
        self.panels[name].show_rows(scope=refers_to_protein(self._protein.row), scope_text=f"of {self._protein.accession}")

    def _go_to_wanted(self) -> None:
        peptide, source = self._wanted_form, self._statistics
        if not peptide or source is None or self._finished is None:
            return
        self._wanted_form = ""

        def find() -> tuple[ProteinRow, int] | None:
            return find_peptide_position(source, peptide)

        def go(position: tuple[ProteinRow, int] | None) -> None:
            if position is None:
                self.message.emit(f"No protein of this run contains {peptide}.")
                self.proteins.show_rows(takes_first=self.proteins.view.chosen is None)
                return
            self._wanted_peptide = position[1]
            if self._protein is not None and self._protein.row == position[0]:
                self._choose_peptide(position[1])
            else:
                self.filter_bar.reset()
                self.proteins.show_rows(wanted=position[0])

        self._statistician.submit("place", find, go, self._fail_softly)

    # ------------------------------------------------------------------------------------------------------------ the protein

    def _show_no_protein(self) -> None:
        for kind in ("protein", "chain"):
            self._reader.cancel(kind)
        self._protein = self._fold = None
        for name in _OF_PROTEIN:
            self.panels[name].show_rows(scope=())
        self.coverage.show_coverage(None, _NO_PROTEIN)
        self._show_fold(None, _NO_PROTEIN)

    def _show_protein(self, row: ProteinRow) -> None:
        run = self._finished
        if run is None:
            return

        def read() -> tuple[ProteinEvidence, ShownStructure | None]:
            if self._quantities is None:
                self._quantities = link_quantities(run)
            protein = protein_evidence(self._table(run, "proteins"), row, self._quantities.newest())
            return protein, read_shown_structure(run, protein, protein.chains[0]) if protein.chains else None

        # Otherwise a pending chain of the previous protein would replace the structure of the new one.
        self._reader.cancel("chain")
        self._reader.submit("protein", read, self._take_protein, self._fail_protein)

    def _take_protein(self, evidence: tuple[ProteinEvidence, ShownStructure | None]) -> None:
        self._protein, fold = evidence
        for name in _OF_PROTEIN:
            self.panels[name].clear_choice()
            self._scope(name)
        self.coverage.show_coverage(self._protein.coverage, quantities=self._protein.quantities)
        self._show_fold(fold, _NO_CHAIN)
        if self._wanted_peptide is not None:
            wanted, self._wanted_peptide = self._wanted_peptide, None
            self._choose_peptide(wanted)

    def _fail_protein(self, error: Exception) -> None:
        self._protein = None
        self.coverage.show_coverage(None, str(error))
        self._show_fold(None, str(error))

    def _show_chain(self, row: int) -> None:
        """Show another similar chain of the protein."""
        run, protein = self._finished, self._protein
        near = next((fold for fold in protein.chains if fold.row == row), None) if protein is not None else None
        if run is None or protein is None or near is None or (self._fold is not None and self._fold.near.row == row):
            return

        def read(near: MappedChain = near, protein: ProteinEvidence = protein) -> ShownStructure:
            return read_shown_structure(run, protein, near)

        self._reader.submit("chain", read, self._show_fold, self._fail_softly)

    def _show_fold(self, fold: ShownStructure | None, text: str = "") -> None:
        self._fold, self._no_fold_text = fold, text
        self.alignment.show_pair(None if fold is None else fold.pair, text)
        panel = self.structures
        if panel is None or not self.structures_action.isChecked():
            return
        if fold is None or fold.trace is None:
            panel.show_text(text if fold is None else fold.note)
        else:
            panel.show_hit(fold.trace, None)

    # ------------------------------------------------------------------------------------------------------------ the selection

    def _choose_peptide(self, row: int) -> None:
        """Select the peptide of a row of the peptide table."""
        self.tabs.setCurrentWidget(self.peptides)
        if self.peptides.model.position_of(row) is not None:
            self._choose_row(self.peptides, row)
        elif self._protein is not None:
            self._place = None
            self.peptides.show_rows(scope=refers_to_protein(self._protein.row), scope_text=f"of {self._protein.accession}", wanted=row)

    def _show_peptide(self, row: int, values: Mapping[str, Any]) -> None:
        self._show_stretch(values, row)

    def _show_stretch(self, values: Mapping[str, Any], row: int | None = None) -> None:
        if self._belongs_to_protein(values):
            self._light_residues(range(values["first"] - 1, values["last"]), row)

    def _belongs_to_protein(self, values: Mapping[str, Any]) -> bool:
        """Return True if a row belongs to the selected protein; otherwise clear the highlights and show a message with its protein."""
        if self._protein is not None and values["protein"] == self._protein.row:
            return True
        self._light_residues(())
        self.message.emit(f"The row belongs to {values.get('accession', 'another protein')}: select that protein to see it.")
        return False

    def _show_site(self, row: int, values: Mapping[str, Any]) -> None:
        if not self._belongs_to_protein(values):
            return
        position = values["position"] - 1
        self._light_residues([position])
        self._pick_positions([position])
        fold = self._fold
        if fold is not None and position not in fold.near.position:
            elsewhere = f"; it is on {values['chain']}" if values.get("chain") else ""
            self.message.emit(f"Residue {position + 1} is not on {fold.near.values['chain']}{elsewhere}.")

    def _show_contact(self, row: int, values: Mapping[str, Any]) -> None:
        if not self._belongs_to_protein(values):
            return
        positions = [values["first_position"] - 1, values["second_position"] - 1]
        self._light_residues(positions)
        self._pick_positions(positions)

    def _forget_choice(self, name: str) -> None:
        if self.tabs.currentWidget() is self.panels[name]:
            self._light_residues(() if self._place is None else [self._place])

    def _light_residues(self, positions: Sequence[int], row: int | None = None) -> None:
        """Highlight exactly these residues of the protein in the coverage map, the alignment and the structure.

        `positions` are residue indices; `row` is the row of the peptide that consists of these residues, if any.
        """
        protein, fold = self._protein, self._fold
        if protein is None:
            return
        chosen = np.zeros(len(protein), np.bool_)
        chosen[[position for position in positions if 0 <= position < len(protein)]] = True
        self.coverage.mark(row, positions if row is None else ())
        if fold is None:
            return
        self._mark_alignment(chosen)
        panel = self.structures
        if panel is not None:
            lights = {}
            for trace in panel.scene.traces:
                if trace.evidence is not None:
                    lights[trace] = (trace.evidence.position >= 0) & chosen[trace.evidence.position]
            panel.light(lights)

    def _mark_alignment(self, chosen: NDArray[np.bool_]) -> None:
        assert self._fold is not None
        columns = self._fold.pair.columns_of(chosen).tolist()
        # The plot scrolls to the last key: the first column.
        self.alignment.plot.mark(dict.fromkeys(reversed(columns), (True, True)))

    def _pick_positions(self, positions: Sequence[int]) -> None:
        """Select the residues of the shown chain in 3D that are aligned with the given residues of the protein."""
        panel, fold = self.structures, self._fold
        if panel is None or fold is None or fold.trace is None or panel.scene.query is not fold.trace:
            return
        row_of = dict(zip(fold.near.position.tolist(), fold.near.chain_residue.tolist(), strict=True))
        self._is_picking = True
        panel.pick([Pick(fold.trace, row_of[position]) for position in positions if position in row_of])
        self._is_picking = False

    def _take_picks(self) -> None:
        """Show the peptides that cover the residue last selected in 3D, or its row in the table of sites (see `_show_over`)."""
        panel, protein = self.structures, self._protein
        if self._is_picking or panel is None or protein is None or not panel.scene.picks:
            return
        pick = panel.scene.picks[-1]
        if pick.row < 0:
            # An atom of a ligand, not a residue of the protein.
            return
        position = -1 if pick.trace.evidence is None else int(pick.trace.evidence.position[pick.row])
        if position < 0:
            self.message.emit(f"{pick.label} of {pick.trace.name}: no residue of {protein.accession} is aligned here.")
            return
        self._show_over(position)

    def _pick_column(self, column: int) -> None:
        """Select the residue of a clicked column of the alignment in 3D, and show the peptides that cover it."""
        fold = self._fold
        if fold is None or column < 0 or fold.pair.protein_residue[column] < 0:
            return
        position = int(fold.pair.protein_residue[column])
        self._pick_positions([position])
        self._show_over(position)

    def _show_over(self, position: int) -> None:
        """Select the row of a residue in the table of sites if it is visible and has such a row; otherwise show the covering peptides."""
        protein = self._protein
        assert protein is not None
        self._place = position
        site = protein.sites.get(position)
        if site is not None and self.sites.model.position_of(site) is not None and self.tabs.currentWidget() is self.sites:
            self._choose_row(self.sites, site)
            return
        # The first peptide of the table is highlighted at once, without waiting for the table.
        first = protein.first_over(position)
        self._light_residues([position] if first is None else range(first.start, first.end), first.row if first else None)
        self.tabs.setCurrentWidget(self.peptides)
        # Without a previous selection, the signal is emitted even if the same row is selected again.
        self.peptides.view.forget_choice()
        self.peptides.show_rows(
            scope=over_residue(protein.row, position),
            scope_text=f"covering {protein.name_of(position)} of {protein.accession}",
            takes_first=True,
        )
        if first is None:
            self.message.emit(f"No peptide covers {protein.name_of(position)} of {protein.accession}.")

    # ------------------------------------------------------------------------------------------------------------ the structures

    def _structures_shown(self, are_shown: bool) -> None:
        if are_shown:
            self._show_fold(self._fold, self._no_fold_text)

    def _make_wanted_structures(self) -> None:
        if self.structures is None and self.structures_action.isChecked():
            self.structures = self._make_structures()

    def _make_structures(self, **options: Any) -> StructurePanel:
        panel = super()._make_structures(schemes=EVIDENCE_SCHEMES, has_lists=False)
        panel.selected_action.setText("&Superpose the other similar chains")
        panel.selected_action.setToolTip("Superpose the other similar chains of the protein, at most 20 (S)")
        return panel

    def superpose_selected(self) -> None:
        """Superpose the other similar chains on the shown chain."""
        run, protein, fold = self._finished, self._protein, self._fold
        if run is not None and protein is not None and fold is not None:
            self._reader.submit("chains", lambda: superpose_other_chains(run, protein, fold), self._take_other_chains, self._fail_softly)

    def _take_other_chains(self, chains_and_notes: tuple[list[Trace], list[str]]) -> None:
        traces, notes = chains_and_notes
        if self.structures is not None:
            self.structures.add_hits(traces)
        if notes:
            self.message.emit(f"{notes[0]}{f', and {len(notes) - 1} more' if len(notes) > 1 else ''}.")
        elif not traces:
            self.message.emit("The protein has no other similar chain.")

    def _no_rows_text(self, panel: Any) -> str:
        return f"None of the {QLocale().toString(panel.total)} {panel.plural} contains this text. Reset the filter to see all."
