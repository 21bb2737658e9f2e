"""The filter of quantities: text, comparison, the thresholds of what changes, and whether that alone is shown."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.errors import shortened
from proteoscope.engine.views.quantities import QuantityFilter
from proteoscope.gui.forms.numbers import NumberBox
from proteoscope.gui.labels import tip_text
from proteoscope.gui.results.filter_bar import FilterBar, q_value_box

__all__ = ["QuantityFilterBar"]

_LETTERS = 40
"""Of the name of a comparison."""


class QuantityFilterBar(FilterBar):
    """What to show, and what is taken for a change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Protein, peptide or sample",
            "Shows rows with this text in an accession, a description, a sequence, a file or a sample",
            "Shows all rows again, with the rate of the run",
            parent,
        )
        self._fdr = 0.01
        self.comparison = self._choices("Comparison", "Which two conditions are compared")
        self.q_value = q_value_box(self.fontMetrics())
        self.fold_change = NumberBox(0.0, 100.0)
        self.fold_change.setDecimals(2)
        self.fold_change.setSingleStep(0.5)
        self.fold_change.setFixedWidth(self.fontMetrics().horizontalAdvance("00.00") + 34)
        self.changed = QCheckBox("&Changed only")
        self.changed.setToolTip("Shows proteins alone whose q-value and change reach the thresholds")
        self.changed.toggled.connect(self._now)
        self._add(self.comparison)
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value of a change", "A protein changes up to this false discovery rate")
        self._add_number(self.fold_change, "&|log2| ≥", "Least change", "A protein changes by so many log2 at least; 1 is twice or half")
        self._add(self.changed)
        self.open((), 0.01)

    @property
    def chosen(self) -> QuantityFilter:
        """What is asked for."""
        return QuantityFilter(
            self.text.text(), self.q_value.value(), self.fold_change.value(), self.comparison.currentData(), self.changed.isChecked()
        )

    def open(self, comparisons: Sequence[str], fdr: float) -> None:
        """Offer the comparisons of a run, the first one chosen. Tells nobody."""
        self._fdr = fdr
        self.blockSignals(True)
        self.comparison.clear()
        for number, name in enumerate(comparisons):
            self.comparison.addItem(shortened(name, _LETTERS), name)
            self.comparison.setItemData(number, tip_text(name), Qt.ItemDataRole.ToolTipRole)
        self.comparison.setVisible(len(comparisons) > 1)
        for widget in (self.q_value, self.fold_change, self.changed):
            widget.setEnabled(bool(comparisons))
        self._reset_fields()
        self.blockSignals(False)

    def _usual(self) -> None:
        self.q_value.setValue(self._fdr)
        self.fold_change.setValue(0.0)
        self.changed.blockSignals(True)
        self.changed.setChecked(False)
        self.changed.blockSignals(False)
