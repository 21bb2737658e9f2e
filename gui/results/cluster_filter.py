"""The filter of a clustering: text, least spectra of a cluster, and a range of m/z."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.clusters import ClusterFilter
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.structure_filter import OptionalNumberBox

__all__ = ["ClusterFilterBar"]

_MOST = 10_000_000


class ClusterFilterBar(FilterBar):
    """What to show of clusters and spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Spectrum or label",
            "Shows clusters with a spectrum of this name, or with this label, and the spectra of this name",
            "Shows all clusters of the run again",
            parent,
        )
        self.minimum_spectra = IntegerBox(1, _MOST, "")
        self.minimum_spectra.setFixedWidth(self.fontMetrics().horizontalAdvance("00000") + 36)
        self.lowest_mz, self.highest_mz = OptionalNumberBox(10.0, 400.0), OptionalNumberBox(10.0, 1000.0)
        for box in (self.lowest_mz, self.highest_mz):
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("0000.0000") + 30)
        self._add_number(
            self.minimum_spectra, "&Spectra ≥", "Least spectra of a cluster", "Hides clusters of fewer spectra, and their spectra"
        )
        self._add_number(self.lowest_mz, "&m/z from", "Lowest m/z", "Hides what has a precursor of a smaller m/z")
        self._add_number(self.highest_mz, "t&o", "Highest m/z", "Hides what has a precursor of a larger m/z")

    @property
    def chosen(self) -> ClusterFilter:
        """What is asked for."""
        return ClusterFilter(self.text.text(), self.minimum_spectra.value(), self.lowest_mz.entered, self.highest_mz.entered)

    def open(self) -> None:
        """Show all of a run; tells nobody."""
        self._reset_quietly()

    def _usual(self) -> None:
        self.minimum_spectra.setValue(1)
        for box in (self.lowest_mz, self.highest_mz):
            box.clear_value()
