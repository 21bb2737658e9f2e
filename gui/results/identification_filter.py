"""Filter bar of an identification: text, q-value, charge, modification, decoys and marks."""

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QCheckBox, QComboBox, QWidget

from proteoscope.engine.views.identification import Facets, RowFilter
from proteoscope.gui.labels import described
from proteoscope.gui.results.filter_bar import RatedFilterBar

_NOTHING_OFFERED = Facets((), ())


class IdentificationFilter(RatedFilterBar):
    """Filter bar for proteins, peptides and PSMs."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Peptide, accession or description",
            "Show only rows with this text in peptide, accession or protein description",
            parent,
        )
        self.charge = self._choices("Charge", "Show only PSMs of this charge")
        self.modification = self._choices("Modification", "Show only peptides and PSMs with this modification")
        self.modification.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.modification.setMinimumWidth(48)
        self.modification.setMaximumWidth(220)
        self.decoys = described(QCheckBox("&Decoys"), tip="Show decoys too, in italics")
        self.decoys.toggled.connect(self._now)
        self.marked = self._marked_box()
        help_text = "Hide rows with a larger q-value; 1 shows all rows"
        self._add_number(self.q_value, "&q-value ≤", "Maximum q-value", help_text)
        self._add(self.charge, "Char&ge")
        self._add(self.modification, "&Modification")
        self._add(self.decoys)
        self._add(self.marked)
        self.open(0.01)

    @property
    def chosen(self) -> RowFilter:
        """Conditions of the current filter."""
        return RowFilter(
            self.text.text(),
            self.largest_q_value,
            self.charge.currentData(),
            self.modification.currentData(),
            self.decoys.isChecked(),
            self.marked.isChecked(),
        )

    def open(self, fdr: float, offered: Facets = _NOTHING_OFFERED) -> None:
        """Fill the drop-down fields with `offered`, and reset the filter to rows accepted at `fdr`, without emitting a signal."""
        self.offer(offered)
        super().open(fdr)

    def offer(self, offered: Facets) -> None:
        """Fill the drop-down fields with the run's charges and modifications; choices that are still valid are retained."""
        charges = [("any", None), *((f"{QLocale().toString(charge)}+", charge) for charge in offered.charges)]
        modifications = [("any", None), ("unmodified", ""), *((name, name) for name in offered.modifications)]
        for box, choices in ((self.charge, charges), (self.modification, modifications)):
            before = box.currentText()
            box.clear()
            for text, value in choices:
                box.addItem(text, value)
            box.setCurrentIndex(max(0, box.findText(before)))

    def _reset_own_fields(self) -> None:
        super()._reset_own_fields()
        self.charge.setCurrentIndex(0)
        self.modification.setCurrentIndex(0)
        self.decoys.setChecked(False)
        self.marked.setChecked(False)
