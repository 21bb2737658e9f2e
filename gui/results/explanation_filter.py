"""The filter of an explanation: text, q-value, and whether the mass is the same."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.explanations import ExplanationFilter
from proteoscope.gui.results.mass_filter import MassFilterBar

__all__ = ["ExplanationFilterBar"]


class ExplanationFilterBar(MassFilterBar):
    """What to show of the explained spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Peptide or spectrum",
            "Shows explanations by a peptide with this text, or with it in the name of one of the two spectra",
            "Shows explanations by a peptide of the same mass, or of another mass",
            "modified",
            "what is accepted only at a larger false discovery rate",
            parent,
        )

    @property
    def chosen(self) -> ExplanationFilter:
        """What is asked for."""
        return ExplanationFilter(self.text.text(), self.largest_q_value, self.kind.currentData())
