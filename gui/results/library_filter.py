"""The filter of library matches: text, q-value, and whether the mass is the same."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from engine.views.library_matches import LibraryFilter
from gui.forms.numbers import NumberBox
from gui.results.filter_bar import FilterBar, q_value_box

__all__ = ["LibraryFilterBar"]


class LibraryFilterBar(FilterBar):
    """What to show of the matches."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Name, peptide, formula or InChIKey",
            "Shows matches with this text in the entry's name, peptide, formula or InChIKey, the modification, or the spectrum's name",
            "Shows again what is accepted at the false discovery rate of the run",
            parent,
        )
        self._fdr = 0.01
        self.q_value: NumberBox = q_value_box(self.fontMetrics())
        self.kind = self._choices("Mass", "Shows matches with entries of the same mass, or of another mass")
        for text, kind in (("any mass", None), ("same mass", "same"), ("shifted", "shifted")):
            self.kind.addItem(text, kind)
        help_text = "Hides what is accepted only at a larger false discovery rate, and what has none; 1 shows everything"
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value", help_text)
        self._add(self.kind, "&Mass")
        self.open(0.01)

    @property
    def chosen(self) -> LibraryFilter:
        """What is asked for."""
        q_value = self.q_value.value()
        return LibraryFilter(self.text.text(), None if q_value >= 1 else q_value, kind=self.kind.currentData())

    def open(self, fdr: float) -> None:
        """Show what is accepted at `fdr`; 1: everything. Tells nobody."""
        self._fdr = fdr
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _usual(self) -> None:
        self.q_value.setValue(self._fdr)
        self.kind.setCurrentIndex(0)
