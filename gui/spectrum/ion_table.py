"""The ions of a peptide as a table: residues down, series and charges across, what is found in bold."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QLocale, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from engine.chemistry.fragments import SERIES
from gui.plots.colours import plot_colours
from gui.spectrum.annotated_spectrum import AnnotatedSpectrum

__all__ = ["IonTable"]

Index = QModelIndex | QPersistentModelIndex

_NUMBER, _RESIDUE = "#", "Residue"
_TINT = 45
"""How much of a colour shows behind ions that carry the shift, of 255."""


class _IonModel(QAbstractTableModel):
    """m/z of whole ions (nothing lost), a row for each residue; -1 in `ion` where there is no such ion."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._widget = parent
        self._bold = QFont()
        self._bold.setBold(True)
        self.spectrum: AnnotatedSpectrum | None = None
        self.headers: list[str] = []
        self.ion = np.empty((0, 0), np.int64)

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None) -> None:
        self.beginResetModel()
        self.spectrum = spectrum
        self.headers, self.ion = [], np.empty((0, 0), np.int64)
        if spectrum is not None:
            ions, length = spectrum.ions, len(spectrum.peptidoform.sequence)
            charges = sorted({int(charge) for charge in ions.charge[ions.series != SERIES.index("p")]})
            letters = [letter for letter in spectrum.settings.series if letter in SERIES]
            front = [(letter, charge) for letter in "abc" if letter in letters for charge in charges]
            back = [(letter, charge) for letter in "xyz" if letter in letters for charge in reversed(charges)]
            columns: list[tuple[str, int] | str] = [_NUMBER, *front, _RESIDUE, *back, _NUMBER]
            self.ion = np.full((length, len(columns)), -1, np.int64)
            for at, column in enumerate(columns):
                if isinstance(column, str):
                    self.headers.append(column)
                    continue
                letter, charge = column
                self.headers.append(f"{letter}{'⁺' if charge == 1 else f'{charge}⁺'}")
                which = np.flatnonzero((ions.series == SERIES.index(letter)) & (ions.charge == charge) & (ions.loss == 0))
                # A fragment stands beside the residue that is its last one towards the middle.
                rows = ions.position[which] - (1 if letter in "abc" else 0)
                self.ion[rows, at] = which
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else self.ion.shape[0]

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self.ion.shape[1]

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole and section < len(self.headers):
            return self.headers[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        spectrum = self.spectrum
        if spectrum is None or not index.isValid():
            return None
        header = self.headers[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignHCenter if header in (_RESIDUE, _NUMBER) else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if header in (_RESIDUE, _NUMBER):
            return self._of_residue(index, role, spectrum)
        ion = int(self.ion[index.row(), index.column()])
        if ion < 0:
            return None
        is_found = bool(spectrum.found[ion])
        if role == Qt.ItemDataRole.DisplayRole:
            return QLocale().toString(float(spectrum.ions.mz[ion]), "f", 3)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{spectrum.name(ion)}: {'found' if is_found else 'not found'}{_shift_text(spectrum, ion)}"
        if role == Qt.ItemDataRole.BackgroundRole and spectrum.carries_shift[ion]:
            tint = QColor(plot_colours(self._widget.palette()).mark)
            tint.setAlpha(_TINT)
            return tint
        if is_found and role == Qt.ItemDataRole.FontRole:
            return self._bold
        if is_found and role == Qt.ItemDataRole.ForegroundRole:
            return plot_colours(self._widget.palette()).ions[SERIES[spectrum.ions.series[ion]]]
        return None

    def _of_residue(self, index: Index, role: int, spectrum: AnnotatedSpectrum) -> Any:
        row, sequence = index.row(), spectrum.peptidoform.sequence
        if self.headers[index.column()] == _NUMBER:
            number = row + 1 if index.column() == 0 else len(sequence) - row
            return str(number) if role == Qt.ItemDataRole.DisplayRole else None
        at_row = {row + 1} | ({0} if row == 0 else set()) | ({len(sequence) + 1} if row == len(sequence) - 1 else set())
        names = [name for position, name, _ in spectrum.peptidoform.modifications if position in at_row]
        if role == Qt.ItemDataRole.DisplayRole:
            return sequence[row] + ("*" if names else "")
        if role == Qt.ItemDataRole.ToolTipRole and names:
            return ", ".join(names)
        if role == Qt.ItemDataRole.FontRole:
            return self._bold
        if role == Qt.ItemDataRole.ForegroundRole and names:
            return plot_colours(self._widget.palette()).mark
        return None


def _shift_text(spectrum: AnnotatedSpectrum, ion: int) -> str:
    return f", carries {spectrum.shift.name}" if spectrum.shift is not None and spectrum.carries_shift[ion] else ""


class IonTable(QTableView):
    """Theoretical m/z of every fragment; those found are bold and coloured, those that carry the shift tinted."""

    ionChosen = Signal(int)  # noqa: N815

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ions = _IonModel(self)
        self.setModel(self._ions)
        self.setAccessibleName("Fragment ions")
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(QFontMetrics(self.font()).height() + 5)
        self.horizontalHeader().setHighlightSections(False)

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None) -> None:
        """Show the ions of a spectrum's peptide."""
        self._ions.show_spectrum(spectrum)
        metrics = QFontMetrics(self.font())
        for at, header in enumerate(self._ions.headers):
            sample = {_NUMBER: "000", _RESIDUE: "Residue00"}.get(header, "00000.000")
            self.setColumnWidth(at, metrics.horizontalAdvance(sample) + 10)

    @property
    def full_width(self) -> int:
        """Pixels that all columns need."""
        return self.horizontalHeader().length() + self.verticalScrollBar().sizeHint().width() + 2 * self.frameWidth()

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Tell which ion is chosen."""
        super().currentChanged(current, previous)
        if current.isValid():
            self.ionChosen.emit(int(self._ions.ion[current.row(), current.column()]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
            event.accept()
        else:
            super().keyPressEvent(event)

    def as_text(self) -> str:
        """The whole table as tab-separated lines."""
        model: QObject = self._ions
        assert isinstance(model, _IonModel)
        rows = [[str(model.index(row, at).data() or "") for at in range(model.columnCount())] for row in range(model.rowCount())]
        return "\n".join("\t".join(row) for row in [model.headers, *rows]) + "\n"
