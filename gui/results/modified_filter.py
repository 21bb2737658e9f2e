"""Filter bar of an open modification search: text, mass shift, q-value, type of shift, site confidence and marks."""

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.views.modified import SURE, ModifiedFilter
from proteoscope.gui.labels import described
from proteoscope.gui.results.filter_bar import RatedFilterBar
from proteoscope.gui.results.structure_filter import OptionalNumberBox

_KINDS = (("any", None), ("named", "named"), ("other peptide end", "end"), ("unnamed", "unnamed"), ("none", "none"))


class ModifiedFilterBar(RatedFilterBar):
    """Filter bar for modifications, PSMs and proteins."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Peptide, modification or protein",
            "Show only rows with this text in peptide, modification, protein or spectrum name",
            parent,
        )
        self.lowest, self.highest = OptionalNumberBox(1.0, 0.0), OptionalNumberBox(1.0, 100.0)
        for box in (self.lowest, self.highest):
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("-000.0000") + 30)
        self.kind = self._choices(
            "Type of shift",
            "Show only matches with a known shift (named), an added or missing peptide end, an unknown shift (unnamed), or no shift",
            _KINDS,
        )
        self.sure = described(
            QCheckBox("&Confident sites"),
            tip=f"Show only PSMs whose shift is at its site with a probability of at least {QLocale().toString(SURE)}",
        )
        self.sure.toggled.connect(self._now)
        self.marked = self._marked_box()
        q_help = "Hide rows with a larger q-value; 1 shows all rows"
        self._add_number(self.lowest, "Shift fro&m", "Minimum shift", "Hide smaller mass shifts, in Da")
        self._add_number(self.highest, "t&o", "Maximum shift", "Hide larger mass shifts, in Da")
        self._add_number(self.q_value, "&q-value ≤", "Maximum q-value", q_help)
        self._add(self.kind, "Sh&ift")
        self._add(self.sure)
        self._add(self.marked)
        self.open(0.01)

    @property
    def chosen(self) -> ModifiedFilter:
        """Conditions of the current filter."""
        return ModifiedFilter(
            self.text.text(),
            self.lowest.entered,
            self.highest.entered,
            self.largest_q_value,
            self.kind.currentData(),
            self.sure.isChecked(),
            self.marked.isChecked(),
        )

    def _reset_own_fields(self) -> None:
        for box in (self.lowest, self.highest):
            box.clear_value()
        super()._reset_own_fields()
        self.kind.setCurrentIndex(0)
        self.sure.setChecked(False)
        self.marked.setChecked(False)
