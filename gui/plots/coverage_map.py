"""Interactive coverage map of a protein: peptides can be selected, and groups of features hidden."""
# ruff: noqa: N815 - Qt's way of naming signals

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.coverage import Coverage, PlacedPeptide, ProteinFeature
from proteoscope.engine.views.coverage_drawing import CoverageSheet, draw_coverage
from proteoscope.engine.views.database_links import links_of_names
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.feature_drawing import QUANTITY, feature_lines, key_tip
from proteoscope.engine.views.peptide_quantities import PeptideQuantities
from proteoscope.gui.database_links import link_actions
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.plots.feature_groups import GroupActions
from proteoscope.gui.plots.scrolled_drawing import ScrolledDrawing
from proteoscope.gui.tables.columns import shown_text

_Q_VALUE = Column("q_value", "q-value", "", "probability")


class CoverageMap(ScrolledDrawing):
    """Widget that shows the sequence of a protein with the peptides that cover it. A click or the arrow keys select a peptide."""

    peptideChosen = Signal(int)
    """A peptide was selected; emitted with its row of the table of peptides."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Coverage of the protein", parent)
        self.coverage: Coverage | None = None
        self.quantities: PeptideQuantities | None = None
        self.residues: tuple[int, ...] = ()
        self._sheet: CoverageSheet | None = None
        self.group_actions = GroupActions(self, self.lay_out)
        self.quantity_action = QAction("Colour by quantity", self, checkable=True, visible=False)
        self.quantity_action.toggled.connect(lambda _: self.lay_out())
        self.addAction(self.quantity_action)
        self.link_actions: list[QAction] = []
        """Actions that open the entries of the protein in public databases."""

    @property
    def shown(self) -> frozenset[str]:
        """Names of the shown groups of features, and `QUANTITY` if peptides are coloured by quantity."""
        return self.group_actions.shown | ({QUANTITY} if self.quantity_action.isChecked() else set())

    def show_coverage(self, coverage: Coverage | None, text: str = "", quantities: PeptideQuantities | None = None) -> None:
        """Show the map of a protein or a text; if `quantities` are given, the user can colour peptides by quantity."""
        self.coverage, self.quantities, self.chosen, self.residues = coverage, quantities, None, ()
        self.quantity_action.setVisible(coverage is not None and quantities is not None)
        self.group_actions.offer(() if coverage is None else coverage.groups)
        self._show(text)
        for action in self.link_actions:
            self.removeAction(action)
            action.deleteLater()
        names = () if coverage is None else (coverage.accession,)
        self.link_actions = link_actions(links_of_names(names), self.message.emit, self)
        self.addActions(self.link_actions)

    def mark(self, row: int | None, residues: Sequence[int] = ()) -> None:
        """Mark the peptide of a row of the table, or residues (indices from 0), and scroll to the first marked residue."""
        self.chosen, self.residues = row, tuple(residues)
        if self._sheet is None or self.coverage is None:
            return
        self._sheet.chosen, self._sheet.residues = self.chosen, self.residues
        position = next((peptide.start for peptide in self.coverage.peptides if peptide.row == row), min(self.residues, default=-1))
        if 0 <= position < len(self.coverage.sequence):
            self._bring_into_sight(self._sheet.residue(position), self._sheet.line * 3)
        self.viewport().update()

    def _new_sheet(self, measure: WidgetMeasure, width: float) -> CoverageSheet | None:
        if self.coverage is None:
            return None
        sheet = CoverageSheet(self.coverage, measure, width, self.shown, self.quantities)
        sheet.chosen, sheet.residues = self.chosen, self.residues
        return sheet

    def _figure(self) -> PaperFigure | None:
        if self.coverage is None:
            return None
        return PaperFigure("Coverage", partial(draw_coverage, self.coverage, None, self.shown, self.quantities))

    def _peptide_at(self, x: float, y: float) -> PlacedPeptide | None:
        """Return the peptide whose bar is at a position; without a bar, the shortest peptide that covers the residue there, or None."""
        bar = next((target for target in self.targets_at(x, y) if isinstance(target, PlacedPeptide)), None)
        if bar is not None or self._sheet is None or (position := self._sheet.residue_at(x, y)) is None:
            return bar
        over = [peptide for peptide in self._sheet.peptides[position // self._sheet.per_row] if peptide.start <= position < peptide.end]
        return min(over, key=lambda peptide: peptide.end - peptide.start, default=None)

    def _features_at(self, x: float, y: float) -> list[ProteinFeature]:
        """Return the features whose bars are at a position; without a bar, the features of the residue there."""
        spans = [target for target in self.targets_at(x, y) if isinstance(target, ProteinFeature)]
        if spans or self._sheet is None or (position := self._sheet.residue_at(x, y)) is None:
            return spans[::-1]
        return [feature for _, feature in self._sheet.features[position // self._sheet.per_row] if feature.start <= position < feature.end]

    def _tip(self, x: float, y: float) -> str:
        if self._sheet is None or self.coverage is None:
            return ""
        if (group := self._sheet.key.group_at(x, y)) is not None:
            return key_tip(group, self.shown)
        lines = feature_lines(self._features_at(x, y))
        peptide = self._peptide_at(x, y)
        if peptide is None:
            return "\n".join(lines)
        q_value = shown_text(_Q_VALUE, peptide.q_value, self.locale())
        about = [peptide.peptide, f"residues {peptide.start + 1} to {peptide.end}, PSMs: {peptide.n_psms}, q-value: {q_value}"]
        if self.quantities is not None:
            value = self.quantities.value(self.coverage, peptide)
            about.append(f"{self.quantities.title}: {f'{value:.2f}' if value is not None else 'no quantity'}")
        about += [f"{self.coverage.sequence[position]}{position + 1}: {name}" for position, name in peptide.modifications]
        return "\n".join([*about, *lines])

    def _click(self, x: float, y: float) -> None:
        group = None if self._sheet is None else self._sheet.key.group_at(x, y)
        peptide = self._peptide_at(x, y)
        if group is not None:
            (self.quantity_action if group == QUANTITY else self.group_actions[group]).toggle()
        elif peptide is not None:
            self._choose(peptide.row)

    def _can_be_clicked(self, x: float, y: float) -> bool:
        assert self._sheet is not None
        return self._sheet.key.group_at(x, y) is not None or self._peptide_at(x, y) is not None

    def _rows(self) -> Sequence[int]:
        return () if self.coverage is None else [peptide.row for peptide in self.coverage.peptides]

    def _choose(self, row: int) -> None:
        self.mark(row)
        self.peptideChosen.emit(row)
