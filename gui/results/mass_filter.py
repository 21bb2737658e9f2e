"""What the filters of matches share whose mass is that of what was matched, or another."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from gui.forms.numbers import NumberBox
from gui.results.filter_bar import FilterBar, q_value_box

__all__ = ["MassFilterBar"]


class MassFilterBar(FilterBar):
    """Text, q-value, and whether the mass is the same.

    Parameters
    ----------
    looked_in, text_tip : see `FilterBar`. kind_tip : of the field for the mass. other : what a match of another mass is called, in the
    field and in the filter. hidden : what the largest q-value hides.
    """

    def __init__(self, looked_in: str, text_tip: str, kind_tip: str, other: str, hidden: str, parent: QWidget | None = None) -> None:
        super().__init__(looked_in, text_tip, "Shows again what is accepted at the false discovery rate of the run", parent)
        self._fdr = 0.01
        self.q_value: NumberBox = q_value_box(self.fontMetrics())
        self.kind = self._choices("Mass", kind_tip)
        for text, kind in (("any mass", None), ("same mass", "same"), (other, other)):
            self.kind.addItem(text, kind)
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value", f"Hides {hidden}; 1 shows everything")
        self._add(self.kind, "&Mass")
        self.open(0.01)

    @property
    def _largest(self) -> float | None:
        """The largest q-value that is shown; None: everything is."""
        q_value = self.q_value.value()
        return None if q_value >= 1 else q_value

    def open(self, fdr: float) -> None:
        """Show what is accepted at `fdr`; 1: everything. Tells nobody."""
        self._fdr = fdr
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _usual(self) -> None:
        self.q_value.setValue(self._fdr)
        self.kind.setCurrentIndex(0)
