"""What the filters of matches share whose mass is that of what was matched, or another."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from proteoscope.gui.results.filter_bar import RatedFilterBar

__all__ = ["MassFilterBar"]


class MassFilterBar(RatedFilterBar):
    """Text, q-value, and whether the mass is the same.

    Parameters
    ----------
    looked_in, text_tip : see `proteoscope.gui.results.filter_bar.FilterBar`. kind_tip : of the field for the mass. other : what a match of
    another mass is called, in the field and in the filter. hidden : what the largest q-value hides.
    """

    def __init__(self, looked_in: str, text_tip: str, kind_tip: str, other: str, hidden: str, parent: QWidget | None = None) -> None:
        super().__init__(looked_in, text_tip, parent)
        self.kind = self._choices("Mass", kind_tip)
        for text, kind in (("any mass", None), ("same mass", "same"), (other, other)):
            self.kind.addItem(text, kind)
        self._add_number(self.q_value, "&q-value ≤", "Largest q-value", f"Hides {hidden}; 1 shows everything")
        self._add(self.kind, "&Mass")
        self.open(0.01)

    def _usual(self) -> None:
        super()._usual()
        self.kind.setCurrentIndex(0)
