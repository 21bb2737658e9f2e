"""Sortable table of the aligned residue pairs of a query and a hit."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QLocale, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from proteoscope.engine.views.traces import Trace

Index = QModelIndex | QPersistentModelIndex
_HEADERS = ("Query", "Hit", "Distance Å")
_TIPS = ("Residue of the query, with its author residue number", "Residue of the hit", "Distance of the two Cα after superposition")
_ROW_PADDING = 7


class _PairModel(QAbstractTableModel):
    """Qt model of the aligned pairs; texts are created only for visible rows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.query: Trace | None = None
        self.hit: Trace | None = None
        self.order: NDArray[np.int64] = np.empty(0, np.int64)
        self._sorting = (-1, Qt.SortOrder.AscendingOrder)

    def show(self, query: Trace | None, hit: Trace | None) -> None:
        self.beginResetModel()
        self.query, self.hit = query, hit
        self._sort()
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's default
        return 0 if parent.isValid() else len(self.order)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's default
        return len(_HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _HEADERS[section]
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return _TIPS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() == 2:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole or self.query is None or self.hit is None or self.hit.pairs is None:
            return None
        pair = int(self.order[index.row()])
        of_query, of_hit = self.hit.pairs.rows[pair].tolist()
        if index.column() == 2:
            distance = float(self.hit.pairs.distance[pair])
            return QLocale().toString(distance, "f", 2) if np.isfinite(distance) else ""
        return self.query.label(of_query) if index.column() == 0 else self.hit.label(of_hit)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.beginResetModel()
        self._sorting = column, order
        self._sort()
        self.endResetModel()

    def _sort(self) -> None:
        pairs = self.hit.pairs if self.hit is not None else None
        if pairs is None:
            self.order = np.empty(0, np.int64)
            return
        column, direction = self._sorting
        by = pairs.distance if column == 2 else pairs.rows[:, max(column, 0)]
        by = np.where(np.isfinite(by), by, np.inf)
        self.order = np.argsort(by if direction is Qt.SortOrder.AscendingOrder else -by, kind="stable")


class PairTable(QTableView):
    """Table of the aligned residue pairs of the selected hit.

    Signals
    -------
    pairChosen
        The user selected a pair; emitted with its index in `Trace.pairs`.
    """

    pairChosen = Signal(int)
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = _PairModel(self)
        self._is_programmatic = False
        self.setModel(self._model)
        self.setAccessibleName("Aligned residues of the query and the selected hit, with their distances")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        rows, header = self.verticalHeader(), self.horizontalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(self.fontMetrics().height() + _ROW_PADDING)
        rows.hide()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)

    def show_hit(self, query: Trace | None, hit: Trace | None) -> None:
        """Show the pairs of a query and a hit; None empties the table."""
        self._model.show(query, hit)

    def mark(self, pair: int | None) -> None:
        """Select a pair by its index in `Trace.pairs` and scroll to it, without emitting a signal; None clears the selection."""
        self._is_programmatic = True
        result = np.flatnonzero(self._model.order == (-1 if pair is None else pair))
        if len(result):
            index = self._model.index(int(result[0]), 0)
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            self.selectionModel().setCurrentIndex(index, flags)
            self.scrollTo(index)
        else:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        self._is_programmatic = False

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Emit `pairChosen` if the user selected a pair."""
        super().currentChanged(current, previous)
        if current.isValid() and not self._is_programmatic:
            self.pairChosen.emit(int(self._model.order[current.row()]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the whole table with the Copy shortcut."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.text())
            self.message.emit("Copied the table of pairs.")
        else:
            super().keyPressEvent(event)

    def text(self) -> str:
        """Return the whole table with its headers as tab-separated lines."""
        model = self._model
        rows = [[str(model.data(model.index(row, column)) or "") for column in range(3)] for row in range(model.rowCount())]
        return "\n".join("\t".join(cells) for cells in [_HEADERS, *rows]) + "\n"
