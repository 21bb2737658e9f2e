"""The filter of a search for modified peptides: text, shift, q-value, kind of shift, whether the site is sure, and marks."""

from __future__ import annotations

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QCheckBox, QWidget

from proteoscope.engine.views.modified import SURE, ModifiedFilter
from proteoscope.gui.results.filter_bar import RatedFilterBar
from proteoscope.gui.results.structure_filter import OptionalNumberBox

__all__ = ["ModifiedFilterBar"]

_KINDS = (("any", None), ("named", "named"), ("another end", "end"), ("unnamed", "unnamed"), ("none", "none"))


class ModifiedFilterBar(RatedFilterBar):
    """What to show of modifications, PSMs and proteins."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Peptide, modification or protein",
            "Shows what has this text in its peptide, its modification, its protein or its spectrum's name",
            parent,
        )
        self.lowest, self.highest = OptionalNumberBox(1.0, 0.0), OptionalNumberBox(1.0, 100.0)
        for box in (self.lowest, self.highest):
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("-000.0000") + 30)
        self.kind = self._choices(
            "Kind of shift", "Shows matches with a usual shift (named), another end, any other (unnamed), or without one"
        )
        for text, kind in _KINDS:
            self.kind.addItem(text, kind)
        self.sure = QCheckBox("&Sure sites")
        self.sure.setToolTip(f"Shows PSMs alone whose shift lies at its site with a probability of at least {QLocale().toString(SURE)}")
        self.sure.toggled.connect(self._now)
        self.marked = self._marked_box()
        q_help = "Hides what is accepted only at a larger false discovery rate; 1 shows everything"
        self._add_number(self.lowest, "Shift fro&m", "Least shift", "Hides what is heavier by less, in Da")
        self._add_number(self.highest, "t&o", "Greatest shift", "Hides what is heavier by more, in Da")
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value", q_help)
        self._add(self.kind, "Sh&ift")
        self._add(self.sure)
        self._add(self.marked)
        self.open(0.01)

    @property
    def chosen(self) -> ModifiedFilter:
        """What is asked for."""
        return ModifiedFilter(
            self.text.text(),
            self.lowest.entered,
            self.highest.entered,
            self.largest_q_value,
            self.kind.currentData(),
            self.sure.isChecked(),
            self.marked.isChecked(),
        )

    def _usual(self) -> None:
        for box in (self.lowest, self.highest):
            box.clear_value()
        super()._usual()
        self.kind.setCurrentIndex(0)
        self.sure.setChecked(False)
        self.marked.setChecked(False)
