"""Table of the fragment ions of a peptide: residues in rows, series and charges in columns, matched ions in bold."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QLocale, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from proteoscope.engine.chemistry.fragments import SERIES
from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.engine.views.ion_table import NUMBER, RESIDUE, IonTable, ion_table
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.labels import tip_text

Index = QModelIndex | QPersistentModelIndex

_TINT = 45
"""Opacity, 0 to 255, of the background of ions that have the mass shift."""


class _IonModel(QAbstractTableModel):
    """Qt model of an `IonTable`: residues and the m/z of their ions."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._widget = parent
        self._bold = QFont()
        self._bold.setBold(True)
        self.ions: IonTable | None = None

    @property
    def headers(self) -> tuple[str, ...]:
        return () if self.ions is None else self.ions.headers

    def show_ions(self, ions: IonTable | None) -> None:
        self.beginResetModel()
        self.ions = ions
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() or self.ions is None else len(self.ions)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.headers)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole and section < len(self.headers):
            return self.headers[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        ions = self.ions
        if ions is None or not index.isValid():
            return None
        header = ions.headers[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignHCenter if header in (RESIDUE, NUMBER) else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if header == NUMBER:
            return str(ions.number(index.row(), index.column())) if role == Qt.ItemDataRole.DisplayRole else None
        if header == RESIDUE:
            return self._of_residue(ions, index.row(), role)
        ion = int(ions.ion[index.row(), index.column()])
        return None if ion < 0 else self._of_ion(ions.spectrum, ion, role)

    def _of_ion(self, spectrum: AnnotatedSpectrum, ion: int, role: int) -> Any:
        is_found = bool(spectrum.is_matched[ion])
        if role == Qt.ItemDataRole.DisplayRole:
            return QLocale().toString(float(spectrum.ions.mz[ion]), "f", 3)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip_text(f"{spectrum.name(ion)}: {'found' if is_found else 'not found'}{_shift_text(spectrum, ion)}")
        if role == Qt.ItemDataRole.BackgroundRole and spectrum.carries_shift[ion]:
            tint = QColor(plot_colours(self._widget.palette()).mark)
            tint.setAlpha(_TINT)
            return tint
        if is_found and role == Qt.ItemDataRole.FontRole:
            return self._bold
        if is_found and role == Qt.ItemDataRole.ForegroundRole:
            if spectrum.carries_shift[ion] and palette_of(self._widget.palette()).is_high_contrast:
                return None  # on the tint, the colours of ions have a contrast of less than 7 : 1
            return plot_colours(self._widget.palette()).ions[SERIES[spectrum.ions.series[ion]]]
        return None

    def _of_residue(self, ions: IonTable, row: int, role: int) -> Any:
        names = ions.modifications[row]
        if role == Qt.ItemDataRole.DisplayRole:
            return ions.residue(row)
        if role == Qt.ItemDataRole.ToolTipRole and names:
            return tip_text(", ".join(names))
        if role == Qt.ItemDataRole.FontRole:
            return self._bold
        if role == Qt.ItemDataRole.ForegroundRole and names:
            return plot_colours(self._widget.palette()).mark
        return None


def _shift_text(spectrum: AnnotatedSpectrum, ion: int) -> str:
    return f", carries {spectrum.shift.name}" if spectrum.shift is not None and spectrum.carries_shift[ion] else ""


class IonTableView(QTableView):
    """Table of the theoretical m/z of every fragment ion; matched ions are bold and coloured, ions with the mass shift are tinted."""

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
        """Show the ions of a spectrum's peptide; None empties the table."""
        self._ions.show_ions(None if spectrum is None else ion_table(spectrum))
        metrics = QFontMetrics(self.font())
        for at, header in enumerate(self._ions.headers):
            sample = {NUMBER: "000", RESIDUE: "Residue00"}.get(header, "00000.000")
            self.setColumnWidth(at, metrics.horizontalAdvance(sample) + 10)

    @property
    def full_width(self) -> int:
        """Width of all columns, in pixels."""
        return self.horizontalHeader().length() + self.verticalScrollBar().sizeHint().width() + 2 * self.frameWidth()

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Emit `ionChosen` with the index of the ion in the selected cell, or -1."""
        super().currentChanged(current, previous)
        if current.isValid() and self._ions.ions is not None:
            self.ionChosen.emit(int(self._ions.ions.ion[current.row(), current.column()]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the whole table with the Copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
            event.accept()
        else:
            super().keyPressEvent(event)

    def as_text(self) -> str:
        """Return the whole table with its headers as tab-separated lines."""
        model: QObject = self._ions
        assert isinstance(model, _IonModel)
        rows = [[str(model.index(row, at).data() or "") for at in range(model.columnCount())] for row in range(model.rowCount())]
        return "\n".join("\t".join(row) for row in [model.headers, *rows]) + "\n"
