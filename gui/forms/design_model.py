"""The design of an experiment as an editable table of texts, with every change undone and done again."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor

from proteoscope.engine.views.quantity_design import DESIGN_COLUMNS, DesignFault, DesignTable, filled_down, with_block
from proteoscope.gui.labels import tip_text
from proteoscope.gui.theme import colours

__all__ = ["BLOCK_MEANING", "Cell", "DesignModel"]

Index = QModelIndex | QPersistentModelIndex
Cell = tuple[int, int]
"""Row and column."""

BLOCK_MEANING = {
    "plex": "Samples labelled and measured together; differences between plexes are no changes",
    "batch": "Samples prepared or measured together; differences between batches are no changes",
    "subject": "The individual that a sample is of, as in a paired design; differences between subjects are no changes",
}
"""Blocks of the comparison, by their columns."""
_MEANING = {
    **BLOCK_MEANING,
    "file": "A file of spectra of the identification",
    "sample": "Files of one sample are its fractions, and are added up; a file without a sample is left out",
    "condition": "Samples of one condition are compared with those of others",
    "replicate": "Number of the sample in its condition, from 1",
}
_MAXIMUM_UNDONE = 200


class DesignModel(QAbstractTableModel):
    """Rows of a `DesignTable`. Files cannot be edited, all else can.

    Signals
    -------
    changed : some text, or the whole table.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.table = DesignTable(DESIGN_COLUMNS, ())
        self._undone: list[DesignTable] = []
        self._done: list[DesignTable] = []
        self._fault: int | None = None

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back."""
        return bool(self._done)

    def open(self, table: DesignTable) -> None:
        """Show a table of other files: what was before is over."""
        self._done.clear()
        self._undone.clear()
        self._take(table)

    def replace_table(self, table: DesignTable) -> None:
        """Show a table in place of the one that is there, which can be undone."""
        if table == self.table:
            return
        self._done = [*self._done, self.table][-_MAXIMUM_UNDONE:]
        self._undone.clear()
        self._take(table)

    def undo(self) -> None:
        """Take the last change back."""
        if self._done:
            self._undone.append(self.table)
            self._take(self._done.pop())

    def redo(self) -> None:
        """Do again what was taken back last."""
        if self._undone:
            self._done.append(self.table)
            self._take(self._undone.pop())

    def set_cells(self, cells: Iterable[tuple[Cell, str]]) -> None:
        """Change the texts of some cells at once; those of files, and of places that are not there, are passed over."""
        rows = [list(row) for row in self.table.rows]
        for (row, column), text in cells:
            if 0 <= row < len(rows) and 0 < column < len(self.table.columns):
                rows[row][column] = " ".join(text.split())
        self.replace_table(DesignTable(self.table.columns, tuple(map(tuple, rows))))

    def set_block(self, name: str, is_there: bool) -> None:
        """Add an empty block column, or remove it, which can be undone."""
        self.replace_table(with_block(self.table, name, is_there))

    def fill_down(self, cells: Sequence[Cell]) -> None:
        """Fill each column of some cells from its topmost one; a single cell fills the rest of its column."""
        filled: list[tuple[Cell, str]] = []
        for column in sorted({column for _, column in cells}):
            rows = sorted(row for row, own in cells if own == column)
            rows = list(range(rows[0], len(self.table.rows))) if len(rows) == 1 else rows
            texts = filled_down([self.table.rows[row][column] for row in rows])
            filled += [((row, column), text) for row, text in zip(rows, texts, strict=True)]
        self.set_cells(filled)

    def paste(self, block: Sequence[Sequence[str]], at: Cell, selected: Sequence[Cell]) -> None:
        """Put a block of cells where it belongs: one with the names of columns by its files, a single text into all that is selected, any
        other from a cell on."""
        if not block:
            return
        header = [cell.strip().lower() for cell in block[0]]
        if "file" in header and len(set(header) & set(self.table.columns)) > 1:
            self._paste_by_file(header, block[1:])
        elif len(block) == 1 and len(block[0]) == 1 and len(selected) > 1:
            self.set_cells((cell, block[0][0]) for cell in selected)
        else:
            self.set_cells(((at[0] + down, at[1] + across), text) for down, row in enumerate(block) for across, text in enumerate(row))

    def show_fault(self, fault: DesignFault | None) -> None:
        """Mark the row that is wrong."""
        self._fault = None if fault is None else fault.row
        if self.table.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.table.rows) - 1, len(self.table.columns) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Files, or channels of files."""
        return 0 if parent.isValid() else len(self.table.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Columns of the design."""
        return 0 if parent.isValid() else len(self.table.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Names of columns and what they mean; numbers of rows."""
        if orientation == Qt.Orientation.Vertical:
            return str(section + 1) if role == Qt.ItemDataRole.DisplayRole else None
        name = self.table.columns[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _MEANING.get(name)
        return name.capitalize() if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The text of a cell; files by their names."""
        if not index.isValid():
            return None
        text = self.table.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return PurePath(text).name if index.column() == 0 else text
        if role == Qt.ItemDataRole.EditRole:
            return text
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip_text(text) or None
        if role == Qt.ItemDataRole.ForegroundRole and index.row() == self._fault:
            return QColor(colours().wrong)
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Take what was typed."""
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        self.set_cells([((index.row(), index.column()), str(value))])
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """All but files can be edited."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() else flags

    def _paste_by_file(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        columns = self.table.columns
        channel = columns.index("channel") if "channel" in columns and "channel" in header else None
        places: dict[tuple[str, str], int] = {}
        for number, row in enumerate(self.table.rows):
            for name in (row[0], PurePath(row[0]).name, _stem(row[0])):
                places.setdefault((name, "" if channel is None else row[channel].casefold()), number)
        cells = []
        for given in rows:
            values = dict(zip(header, given, strict=False))
            name, of = values["file"].strip(), "" if channel is None else values.get("channel", "").strip().casefold()
            place = places.get((name, of), places.get((_stem(name), of)))
            if place is not None:
                cells += [((place, columns.index(one)), text) for one, text in values.items() if one in columns]
        self.set_cells(cells)

    def _take(self, table: DesignTable) -> None:
        is_of_same_size = table.columns == self.table.columns and len(table.rows) == len(self.table.rows)
        if is_of_same_size:
            # The cell that has the keyboard keeps it.
            self.table = table
            if table.rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(table.rows) - 1, len(table.columns) - 1))
        else:
            self.beginResetModel()
            self.table = table
            self.endResetModel()
        self.changed.emit()


def _stem(name: str) -> str:
    return PurePath(name).name.partition(".")[0]
