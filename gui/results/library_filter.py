"""The filter of library matches: text, q-value, and whether the mass is the same."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.library_matches import LibraryFilter
from proteoscope.gui.results.mass_filter import MassFilterBar

__all__ = ["LibraryFilterBar"]


class LibraryFilterBar(MassFilterBar):
    """What to show of the matches."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Name, peptide, formula or InChIKey",
            "Shows matches with this text in the entry's name, peptide, formula or InChIKey, the modification, or the spectrum's name",
            "Shows matches with entries of the same mass, or of another mass",
            "shifted",
            "what is accepted only at a larger false discovery rate, and what has none",
            parent,
        )

    @property
    def chosen(self) -> LibraryFilter:
        """What is asked for."""
        return LibraryFilter(self.text.text(), self.largest_q_value, kind=self.kind.currentData())
