"""The filter of a clustering: text, least spectra of a cluster, and a range of m/z."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from gui.forms.numbers import IntegerBox
from gui.results.filter_bar import FilterBar
from gui.results.structure_filter import OptionalNumberBox
from gui.tables.source import Condition

__all__ = ["ClusterFilter", "ClusterFilterBar", "cluster_conditions"]

_MOST = 10_000_000


@dataclass(frozen=True)
class ClusterFilter:
    """What the user wants to see of clusters and their spectra; None bounds nothing."""

    text: str = ""
    least_spectra: int = 1
    lowest_mz: float | None = None
    highest_mz: float | None = None


def cluster_conditions(chosen: ClusterFilter, table: str) -> list[Condition]:
    """The conditions that a filter puts on the rows of ``clusters`` or ``members``. A cluster has the text that one of its spectra has."""
    conditions = []
    if chosen.least_spectra > 1:
        conditions.append(Condition("n_members >= ?", (chosen.least_spectra,)))
    if chosen.lowest_mz is not None:
        conditions.append(Condition("precursor_mz >= ?", (chosen.lowest_mz,)))
    if chosen.highest_mz is not None:
        conditions.append(Condition("precursor_mz <= ?", (chosen.highest_mz,)))
    if text := chosen.text.strip().lower():
        # A tab is shown as the blank that is typed for it.
        named = "contains(translate(lower(title), chr(9), ' '), ?) OR contains(translate(lower(spectrum_id), chr(9), ' '), ?)"
        if table == "members":
            conditions.append(Condition(named, (text, text)))
        else:
            of_members = f"cluster IN (SELECT cluster FROM members WHERE {named})"
            conditions.append(Condition(f"contains(lower(label), ?) OR {of_members}", (text, text, text)))
    return conditions


class ClusterFilterBar(FilterBar):
    """What to show of clusters and spectra."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Spectrum or label",
            "Shows clusters with a spectrum of this name, or with this label, and the spectra of this name",
            "Shows all clusters of the run again",
            parent,
        )
        self.least_spectra = IntegerBox(1, _MOST, "")
        self.least_spectra.setFixedWidth(self.fontMetrics().horizontalAdvance("00000") + 36)
        self.lowest_mz, self.highest_mz = OptionalNumberBox(10.0, 400.0), OptionalNumberBox(10.0, 1000.0)
        for box in (self.lowest_mz, self.highest_mz):
            box.setFixedWidth(self.fontMetrics().horizontalAdvance("0000.0000") + 30)
        self._add_number(
            self.least_spectra, "&Spectra ≥", "Least spectra of a cluster", "Hides clusters of fewer spectra, and their spectra"
        )
        self._add_number(self.lowest_mz, "&m/z from", "Lowest m/z", "Hides what has a precursor of a smaller m/z")
        self._add_number(self.highest_mz, "t&o", "Highest m/z", "Hides what has a precursor of a larger m/z")

    @property
    def chosen(self) -> ClusterFilter:
        """What is asked for."""
        return ClusterFilter(self.text.text(), self.least_spectra.value(), self.lowest_mz.entered, self.highest_mz.entered)

    def open(self) -> None:
        """Show all of a run; tells nobody."""
        self.blockSignals(True)
        self._reset_fields()
        self.blockSignals(False)

    def _usual(self) -> None:
        self.least_spectra.setValue(1)
        for box in (self.lowest_mz, self.highest_mz):
            box.clear_value()
