"""Qt model of the experimental design: an editable table with undo."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor

from proteoscope.engine.views.quantity_design import DESIGN_COLUMNS, DesignIssue, DesignTable, filled_down, with_block
from proteoscope.gui.labels import tip_text
from proteoscope.gui.theme import colours
from proteoscope.gui.undo import Change, forget_changes, last_change, record, take_back_last

Index = QModelIndex | QPersistentModelIndex
Cell = tuple[int, int]
"""Row and column index of a cell."""

BLOCK_MEANING = {
    "plex": "Samples labelled and measured together; differences between plexes do not count as changes",
    "batch": "Samples prepared or measured together; differences between batches do not count as changes",
    "subject": "Individual from which a sample was taken, for paired designs; differences between subjects do not count as changes",
}
"""Meaning of each block column by name; blocks are groups of samples whose differences are removed from the comparison."""
_MEANING = {
    **BLOCK_MEANING,
    "file": "Spectrum file of the identification",
    "sample": "Files of the same sample are its fractions and are summed; a file without a sample is left out",
    "condition": "Conditions whose samples are compared with each other",
    "replicate": "Number of the sample within its condition, starting at 1",
}


class DesignModel(QAbstractTableModel):
    """Editable model of a `DesignTable`; only the file column is read-only.

    Signals
    -------
    changed
        The text of a cell or the whole table has changed.
    history_changed
        `can_undo` may have changed.
    """

    changed = Signal()
    history_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.table = DesignTable(DESIGN_COLUMNS, ())
        self._invalid_row: int | None = None

    @property
    def can_undo(self) -> bool:
        """True if a change can be undone."""
        return last_change(self) is not None

    def open(self, table: DesignTable) -> None:
        """Show the table of another set of files and clear the undo history."""
        forget_changes(self)
        self._take(table)

    def replace_table(self, table: DesignTable) -> None:
        """Replace the table, as one step of the undo history."""
        if table == self.table:
            return
        before = self.table
        self._take(table)
        record(Change("edit the design", self, before, table, self._take), self.history_changed.emit)

    def undo(self) -> None:
        """Undo the last change."""
        take_back_last(self)

    def set_cells(self, cells: Iterable[tuple[Cell, str]]) -> None:
        """Set the texts of several cells as one undo step. Cells of the file column and outside the table are ignored."""
        rows = [list(row) for row in self.table.rows]
        for (row, column), text in cells:
            if 0 <= row < len(rows) and 0 < column < len(self.table.columns):
                rows[row][column] = " ".join(text.split())
        self.replace_table(DesignTable(self.table.columns, tuple(map(tuple, rows))))

    def set_block(self, name: str, is_there: bool) -> None:
        """Add the empty block column `name` if `is_there`, otherwise remove it, as one step of the undo history."""
        self.replace_table(with_block(self.table, name, is_there))

    def fill_down(self, cells: Sequence[Cell]) -> None:
        """Fill the given cells of each column from the topmost one (see `filled_down`); a single cell is continued to the column's end."""
        filled: list[tuple[Cell, str]] = []
        for column in sorted({column for _, column in cells}):
            rows = sorted(row for row, cell_column in cells if cell_column == column)
            rows = list(range(rows[0], len(self.table.rows))) if len(rows) == 1 else rows
            texts = filled_down([self.table.rows[row][column] for row in rows])
            filled += [((row, column), text) for row, text in zip(rows, texts, strict=True)]
        self.set_cells(filled)

    def paste(self, block: Sequence[Sequence[str]], at: Cell, selected: Sequence[Cell]) -> None:
        """Paste a block of cells.

        If the first row of the block contains column names, each further row is pasted into the row with the same file name. A single text
        is pasted into all selected cells. Any other block is pasted with its top left corner at the cell `at`.
        """
        if not block:
            return
        header = [cell.strip().lower() for cell in block[0]]
        if "file" in header and len(set(header) & set(self.table.columns)) > 1:
            self._paste_by_file(header, block[1:])
        elif len(block) == 1 and len(block[0]) == 1 and len(selected) > 1:
            self.set_cells((cell, block[0][0]) for cell in selected)
        else:
            self.set_cells(((at[0] + down, at[1] + across), text) for down, row in enumerate(block) for across, text in enumerate(row))

    def show_issue(self, issue: DesignIssue | None) -> None:
        """Mark the row to which an issue refers; None removes the mark."""
        self._invalid_row = None if issue is None else issue.row
        if self.table.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.table.rows) - 1, len(self.table.columns) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of rows: one per file, or per label channel of a file."""
        return 0 if parent.isValid() else len(self.table.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of design columns."""
        return 0 if parent.isValid() else len(self.table.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the name or the tooltip of a column, or a row number."""
        if orientation == Qt.Orientation.Vertical:
            return str(section + 1) if role == Qt.ItemDataRole.DisplayRole else None
        name = self.table.columns[section]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _MEANING.get(name)
        return name.capitalize() if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole) else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text of a cell; files are shown by name."""
        if not index.isValid():
            return None
        text = self.table.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return PurePath(text).name if index.column() == 0 else text
        if role == Qt.ItemDataRole.EditRole:
            return text
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip_text(text) or None
        if role == Qt.ItemDataRole.ForegroundRole and index.row() == self._invalid_row:
            return QColor(colours().wrong)
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Store a typed text."""
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        self.set_cells([((index.row(), index.column()), str(value))])
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return flags that make all cells editable except files."""
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() else flags

    def _paste_by_file(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        columns = self.table.columns
        channel = columns.index("channel") if "channel" in columns and "channel" in header else None
        positions: dict[tuple[str, str], int] = {}
        for number, row in enumerate(self.table.rows):
            for name in (row[0], PurePath(row[0]).name, _stem(row[0])):
                positions.setdefault((name, "" if channel is None else row[channel].casefold()), number)
        cells = []
        for given in rows:
            values = dict(zip(header, given, strict=False))
            name, of = values["file"].strip(), "" if channel is None else values.get("channel", "").strip().casefold()
            position = positions.get((name, of), positions.get((_stem(name), of)))
            if position is not None:
                cells += [((position, columns.index(column)), text) for column, text in values.items() if column in columns]
        self.set_cells(cells)

    def _take(self, table: DesignTable) -> None:
        has_same_size = table.columns == self.table.columns and len(table.rows) == len(self.table.rows)
        if has_same_size:
            # No model reset, so that the current cell keeps the keyboard focus.
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
