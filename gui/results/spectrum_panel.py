"""Panel with the list of all spectra of a run, identified or not, and its filter."""

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.views.run_map import STATUS_NAMES
from proteoscope.engine.views.spectrum_list import EXPLAINED_LIST, SPECTRUM_LIST, SpectrumFilter, spectrum_conditions
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.actions import delayed
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.tables.panel import TablePanel

_TYPING_MS = 150
_NOT_READ = "Open this list to see every spectrum."
_ALL = ("All", SpectrumFilter())
_IDENTIFICATION_FILTERS = (_ALL, ("Identified", SpectrumFilter(is_identified=True)), ("Unidentified", SpectrumFilter(is_identified=False)))
_EXPLANATION_FILTERS = (_ALL, *((name.capitalize(), SpectrumFilter(state=name)) for name in STATUS_NAMES[1:] + STATUS_NAMES[:1]))


class SpectrumPanel(QWidget):
    """Panel with the list of the spectra of a run, which is read when `open_list` is called.

    `has_explained_status` adds the status *explained*, for a search that explains unidentified spectra.
    """

    rowChosen = Signal(int, object)  # noqa: N815 - Qt's way of naming signals

    def __init__(self, parent: QWidget | None = None, *, has_explained_status: bool = False) -> None:
        super().__init__(parent)
        listed, states = (EXPLAINED_LIST, _EXPLANATION_FILTERS) if has_explained_status else (SPECTRUM_LIST, _IDENTIFICATION_FILTERS)
        self.table = TablePanel(listed.title, listed.columns, listed.links)
        self.table.rowChosen.connect(self.rowChosen)
        self.table.retains_selection = True
        self.table.view.set_empty_text(self._empty_reason)
        self.text = described(
            QLineEdit(placeholderText="Scan, m/z, peptide or name", clearButtonEnabled=True),
            "Filter of spectra by text",
            "Show only spectra with this scan, this m/z (with a decimal point), or this text in peptide or name",
        )
        explained = "identified, explained or unexplained" if has_explained_status else "identified or unidentified"
        self.state = described(ChoiceBox(states), "Status of the spectra", f"Show all spectra, or only {explained} spectra")
        self._later = delayed(self, self._filter, _TYPING_MS)
        self._text = _NOT_READ
        self.text.textChanged.connect(self._later.start)
        self.text.returnPressed.connect(self._filter)
        self.state.activated.connect(lambda _: self._filter())
        in_column(in_row((self.text, 1), self.state, margins=(6, 4, 6, 2), spacing=6), (self.table, 1), on=self, spacing=0)

    def open_list(self, source: TableSource, wanted: SpectrumRow | None = None) -> None:
        """Show the list of spectra in `source`, and select the row `wanted`, or else the first row."""
        self._text = ""
        self.table.open_table(source)
        self.table.show_rows(filter=spectrum_conditions(self._chosen), wanted=wanted, takes_first=True)

    def show_text(self, text: str) -> None:
        """Show a text in place of the list."""
        self._text = text
        self.table.view.viewport().update()

    def close_list(self) -> None:
        """Clear the list and release its file."""
        self._text = _NOT_READ
        self._later.stop()
        self.table.close_table()
        for box in (self.text, self.state):
            box.blockSignals(True)
        self.text.clear()
        self.state.setCurrentIndex(0)
        for box in (self.text, self.state):
            box.blockSignals(False)

    def choose(self, spectrum: SpectrumRow) -> bool:
        """Select a spectrum by its row of the table of spectra; return False if the list does not show it."""
        position = self.table.model.position_of(spectrum)
        if position is not None:
            self.table.view.choose(position)
        return position is not None

    @property
    def _chosen(self) -> SpectrumFilter:
        of_state: SpectrumFilter = self.state.currentData()
        return replace(of_state, text=self.text.text())

    def _filter(self) -> None:
        self._later.stop()
        self.table.show_rows(filter=spectrum_conditions(self._chosen))

    def _empty_reason(self) -> str:
        if self.table.error or self._text:
            return self.table.error or self._text
        if self.table.model.is_busy:
            return ""
        return "No spectrum passes the filter. Change or clear the filter." if self.table.total else "The run has no spectra."
