"""Filter bar of a quantification: text, comparison of conditions, and thresholds of changes."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.errors import shortened
from proteoscope.engine.views.quantities import QuantityFilter
from proteoscope.gui.forms.numbers import NumberBox
from proteoscope.gui.labels import described, tip_text
from proteoscope.gui.results.filter_bar import FilterBar, q_value_box

_CHARACTERS = 40
"""Maximum number of characters of the name of a comparison."""


class QuantityFilterBar(FilterBar):
    """Filter bar with a field for the comparison, and the thresholds that define a change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Protein, peptide or sample",
            "Show only rows with this text in accession, description, sequence, file or sample",
            "Show all rows, and reset the maximum q-value to the FDR of the run",
            parent,
        )
        self._fdr = 0.01
        self.comparison = self._choices("Comparison", "The two compared conditions")
        self.q_value = q_value_box(self.fontMetrics())
        self.fold_change = NumberBox(0.0, 100.0)
        self.fold_change.setDecimals(2)
        self.fold_change.setSingleStep(0.5)
        self.fold_change.setFixedWidth(self.fontMetrics().horizontalAdvance("00.00") + 34)
        self.changed = described(QCheckBox("&Changed only"), tip="Show only proteins whose q-value and change pass the thresholds")
        self.changed.toggled.connect(self._now)
        self._add(self.comparison)
        self._add_number(self.q_value, "&q-value ≤", "Maximum q-value of a change", "Changes have at most this q-value")
        self._add_number(
            self.fold_change,
            "&|log2| ≥",
            "Minimum change",
            "Changes have at least this absolute log2 fold change; 1 is a doubling or halving",
        )
        self._add(self.changed)
        self.open((), 0.01)

    @property
    def chosen(self) -> QuantityFilter:
        """Conditions of the current filter."""
        return QuantityFilter(
            self.text.text(), self.q_value.value(), self.fold_change.value(), self.comparison.currentData(), self.changed.isChecked()
        )

    def set_cut(self, name: str, value: float) -> None:
        """Set a threshold that defines a change: `name` is ``q_value`` or ``fold_change`` (absolute log2)."""
        {"q_value": self.q_value, "fold_change": self.fold_change}[name].setValue(value)
        self._now()

    def open(self, comparisons: Sequence[str], fdr: float) -> None:
        """Offer the comparisons of a run, select the first, and reset the thresholds to the FDR of the run, without emitting a signal."""
        self._fdr = fdr
        self.blockSignals(True)
        self.comparison.clear()
        for number, name in enumerate(comparisons):
            self.comparison.addItem(shortened(name, _CHARACTERS), name)
            self.comparison.setItemData(number, tip_text(name), Qt.ItemDataRole.ToolTipRole)
        self.comparison.setVisible(len(comparisons) > 1)
        for widget in (self.q_value, self.fold_change, self.changed):
            widget.setEnabled(bool(comparisons))
        self._reset_fields()
        self.blockSignals(False)

    def _reset_own_fields(self) -> None:
        self.q_value.setValue(self._fdr)
        self.fold_change.setValue(0.0)
        self.changed.blockSignals(True)
        self.changed.setChecked(False)
        self.changed.blockSignals(False)
