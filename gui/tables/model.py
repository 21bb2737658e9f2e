"""Qt model of a table of any length: an array of row numbers for filter and order, and values that are read page by page."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractTableModel, QLocale, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont, QPalette

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.labels import tip_text
from proteoscope.gui.tables.columns import full_text, saved_text, shown_text
from proteoscope.gui.tables.worker import TableWorker

PAGE_ROWS = 256
_MAXIMUM_CACHED_PAGES = 64
_MAXIMUM_REQUESTED_PAGES = 9
_WRITTEN_AT_ONCE = 1 << 14
_LOADING_TEXT = "…"

# A view requests seven roles for each painted cell: comparing integers is faster than comparing enum members.
_DISPLAY = int(Qt.ItemDataRole.DisplayRole)
_ALIGNMENT = int(Qt.ItemDataRole.TextAlignmentRole)
_FONT = int(Qt.ItemDataRole.FontRole)
_FOREGROUND = int(Qt.ItemDataRole.ForegroundRole)
_ROLES_OF_VALUES = frozenset({_DISPLAY, _FONT, _FOREGROUND, int(Qt.ItemDataRole.ToolTipRole), int(Qt.ItemDataRole.UserRole)})
_SIDES = {
    True: Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
    False: Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
}

Index = QModelIndex | QPersistentModelIndex
Page = dict[str, list[Any]]


class ParquetTableModel(QAbstractTableModel):
    """Qt model of the rows of a `TableSource`, filtered and sorted by DuckDB in a thread.

    No call blocks: the previous rows are shown until the new filter or order is ready, and cells show an ellipsis until their page is read.
    *Positions* are indices of shown rows, *rows* (or row numbers) are indices in the file.

    Parameters
    ----------
    columns : sequence of Column
        Columns of the table; columns that are not in the file are omitted, and so are empty columns with `is_hidden_if_absent`.
    extras : sequence of str
        Names of further columns that are read for `values` but never shown.
    palette : callable
        Function that returns the palette, called at each use to follow the theme; decoys have its placeholder colour.
    parent : QObject or None
        Owner of the model.
    """

    orderChanged = Signal()
    """The rows of a new filter or order are shown."""
    busyChanged = Signal(bool)
    failed = Signal(str)

    def __init__(
        self, columns: Sequence[Column], extras: Sequence[str], palette: Callable[[], QPalette], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._described = tuple(columns)
        self._extras = tuple(extras)
        self._palette = palette
        self.columns: tuple[Column, ...] = self._described
        self._fetched: tuple[str, ...] = ()
        self._shown: set[str] = {column.name for column in columns if column.is_shown}
        self._source: TableSource | None = None
        self._worker = TableWorker(self._interrupt, self)
        self._worker.busyChanged.connect(self.busyChanged)
        self._conditions: tuple[Condition, ...] = ()
        self._order: tuple[tuple[str, bool], ...] = ()
        self.rows: NDArray[np.int64] = np.empty(0, np.int64)
        """Row numbers, in the file, of the rows that pass the filter, in their shown order; shape (n,)."""
        self._pages: OrderedDict[int, Page] = OrderedDict()
        self._requested_pages: set[int] = set()
        self._waiting: dict[int, list[tuple[int, Callable[[dict[str, Any]], None]]]] = {}
        self._headers: dict[str, str] = {}
        self._locale = QLocale()
        self._italic = QFont()
        self._italic.setItalic(True)

    @property
    def is_busy(self) -> bool:
        """True while rows or pages are being read."""
        return self._worker.is_busy

    @property
    def order(self) -> tuple[tuple[str, bool], ...]:
        """Names of the sort columns, each with True for descending order."""
        return self._order

    def columns_in(self, source: TableSource) -> tuple[Column, ...]:
        """Return the columns that a table has; may be called in any thread."""
        stored = (column for column in self._described if column.name in source.types)
        return tuple(column for column in stored if not column.is_hidden_if_absent or source.has_values(column.name))

    def open(self, source: TableSource) -> None:
        """Set the source and its columns; there are no rows until the first `show`. The model closes the source."""
        self.close()
        self.beginResetModel()
        self._source = source
        self._locale = QLocale()
        self.columns = self.columns_in(source)
        self._choose_columns()
        self.endResetModel()

    def close(self) -> None:
        """Remove all rows and close the source."""
        self._worker.close()
        self.beginResetModel()
        if self._source is not None:
            self._source.close()
        self._source = None
        self._conditions = self._order = ()
        self._take(np.empty(0, np.int64))
        self.endResetModel()

    def name_header(self, column: str, header: str) -> None:
        """Replace the header of a column by `header`."""
        self._headers[column] = header
        for section, table_column in enumerate(self.columns):
            if table_column.name == column:
                self.headerDataChanged.emit(Qt.Orientation.Horizontal, section, section)

    def show(self, conditions: Iterable[Condition] | None = None, order: Sequence[tuple[str, bool]] | None = None) -> None:
        """Filter and sort in the thread; None retains the current setting.

        A newer request replaces a pending one; `orderChanged` is emitted when the rows are shown.

        Parameters
        ----------
        conditions : iterable of Condition, optional
            Conditions that rows must meet.
        order : sequence of (str, bool), optional
            Names of the sort columns, each with True for descending order. Empty: file order.
        """
        if self._source is None:
            return
        source = self._source
        self._conditions = self._conditions if conditions is None else tuple(conditions)
        self._order = self._order if order is None else tuple(entry for entry in order if entry[0] in source.types)
        self._worker.cancel("page")
        self._requested_pages.clear()
        wanted, sorted_by, names = self._conditions, self._order, self._fetched

        def find() -> tuple[NDArray[np.int64], Page]:
            rows = source.rows(wanted, sorted_by)
            return rows, _page(source, rows[:PAGE_ROWS], names)

        self._worker.submit("order", find, partial(self._show, names=names), self._show_none)

    def reread(self) -> None:
        """Read the cached pages again after their values have changed in the source; the previous values are shown until then."""
        source, names = self._source, self._fetched
        if source is None:
            return
        for number in list(self._pages)[:-_MAXIMUM_REQUESTED_PAGES]:
            del self._pages[number]
        for number in self._pages:
            rows = self.rows[number * PAGE_ROWS : (number + 1) * PAGE_ROWS]
            self._worker.submit(f"page {number}", partial(_page, source, rows, names), partial(self._receive, number), self._fail)

    def set_shown(self, names: Iterable[str]) -> None:
        """Set the names of the visible columns; only these and `extras` are read."""
        self._shown = set(names)
        before = set(self._fetched)
        self._choose_columns()
        if not set(self._fetched) <= before:
            self._pages.clear()
            self._requested_pages.clear()
            self._worker.cancel("page")
            for number in self._waiting:
                self._request(number)
            if len(self.rows):
                self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, len(self.columns) - 1))

    def values(self, position: int) -> dict[str, Any] | None:
        """Return the values of the row at `position` by column; if its page is not cached, request the page and return None."""
        page = self._pages.get(position // PAGE_ROWS)
        if page is None:
            self._request(position // PAGE_ROWS)
            return None
        return {name: column[position % PAGE_ROWS] for name, column in page.items()}

    def when_loaded(self, position: int, use: Callable[[dict[str, Any]], None]) -> None:
        """Call `use` with the values of the row at `position`, at once or when its page is read; never if the rows change before that."""
        values = self.values(position)
        if values is not None:
            use(values)
        else:
            self._waiting.setdefault(position // PAGE_ROWS, []).append((position, use))

    def position_of(self, row: int) -> int | None:
        """Return the position of the row with row number `row`, or None if the filter hides it."""
        result = np.flatnonzero(self.rows == row)
        return int(result[0]) if len(result) else None

    def texts(
        self,
        positions: NDArray[np.int64],
        columns: Sequence[Column],
        done: Callable[[str], None],
        *,
        locale: QLocale | None = None,
    ) -> None:
        """Format rows as tab-separated lines with a header, in the thread of the table.

        Parameters
        ----------
        positions : ndarray of int64
            Positions of the rows.
        columns : sequence of Column
            Columns to write.
        done : callable
            Function that is called with the text in the window's thread.
        locale : QLocale, optional
            Locale of the decimal separators, for spreadsheets; None for decimal points and column names for other programs.
        """
        source, rows = self._source, self.rows[positions]
        if source is None:
            return

        def write() -> str:
            lines = ["\t".join(column.header if locale is not None else column.saved_name for column in columns)]
            for start in range(0, len(rows), _WRITTEN_AT_ONCE):
                page = _page(source, rows[start : start + _WRITTEN_AT_ONCE], [column.name for column in columns])
                written = [
                    [saved_text(column, value) if locale is None else full_text(column, value, locale) for value in page[column.name]]
                    for column in columns
                ]
                lines += map("\t".join, zip(*written, strict=True))
            return "\n".join(lines) + "\n"

        self._worker.submit("texts", write, done, self._fail)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of rows that pass the filter."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns in the file, shown or not."""
        return 0 if parent.isValid() else len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return header, tooltip or alignment of a column."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self._headers.get(column.name, column.header)
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.description
        if role == Qt.ItemDataRole.TextAlignmentRole:
            # Centred, since the sort indicator would cover the end of a right-aligned header.
            return Qt.AlignmentFlag.AlignCenter if column.is_number else _SIDES[False]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the data of a cell for a role; request its page if it is not cached."""
        if not index.isValid():
            return None
        if role == _ALIGNMENT:
            return _SIDES[self.columns[index.column()].is_number]
        if role not in _ROLES_OF_VALUES:
            return None
        column = self.columns[index.column()]
        number, position = divmod(index.row(), PAGE_ROWS)
        page = self._pages.get(number)
        if page is None or column.name not in page:
            if role == _DISPLAY:
                self._request(number)
                return _LOADING_TEXT
            return None
        if role in (_FONT, _FOREGROUND):
            decoys = page.get("is_decoy")
            if decoys is None or not decoys[position]:
                return None
            return self._italic if role == _FONT else self._palette().brush(QPalette.ColorRole.PlaceholderText)
        value = page[column.name][position]
        if role == _DISPLAY:
            return shown_text(column, value, self._locale)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip_text(full_text(column, value, self._locale)) or None
        return value

    def cell(self, row: int, section: int) -> tuple[str, Qt.AlignmentFlag, bool]:
        """Return the data for painting a cell: text, alignment, and True for a decoy. `row` is the position of its row."""
        column = self.columns[section]
        number, position = divmod(row, PAGE_ROWS)
        page = self._pages.get(number)
        if page is None or column.name not in page:
            self._request(number)
            return _LOADING_TEXT, _SIDES[column.is_number], False
        decoys = page.get("is_decoy")
        text = shown_text(column, page[column.name][position], self._locale)
        return text, _SIDES[column.is_number], decoys is not None and bool(decoys[position])

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by the column with this index; -1 restores file order."""
        if 0 <= column < len(self.columns):
            self.show(order=[(self.columns[column].name, order == Qt.SortOrder.DescendingOrder)])
        else:
            self.show(order=[])

    def _choose_columns(self) -> None:
        if self._source is None:
            return
        names = [column.name for column in self.columns if column.name in self._shown]
        self._fetched = tuple(dict.fromkeys([*names, *(name for name in self._extras if name in self._source.types)]))

    def _show(self, rows_and_page: tuple[NDArray[np.int64], Page], names: tuple[str, ...]) -> None:
        rows, first = rows_and_page
        # Pages that were requested while these rows were pending are pages of the previous rows.
        self._worker.cancel("page")
        self.beginResetModel()
        self._take(rows)
        if names == self._fetched:
            self._pages[0] = first
        self.endResetModel()
        self.orderChanged.emit()

    def _show_none(self, error: Exception) -> None:
        """Remove all rows after an error, since users would mistake the previous rows for the result of the failed request."""
        self._show((np.empty(0, np.int64), {}), self._fetched)
        self._fail(error)

    def _take(self, rows: NDArray[np.int64]) -> None:
        self.rows = rows
        self._pages.clear()
        self._requested_pages.clear()
        self._waiting.clear()

    def _request(self, number: int) -> None:
        """Request a page and its neighbours, to which the user is likely to scroll next."""
        source, names = self._source, self._fetched
        if source is None or number in self._requested_pages:
            return
        if len(self._requested_pages) > _MAXIMUM_REQUESTED_PAGES:
            # The user has scrolled past these pages, which are no longer needed.
            self._worker.cancel("page")
            self._requested_pages.clear()
        for page in (number, number + 1, number - 1):
            start = page * PAGE_ROWS
            if page in self._requested_pages or page in self._pages or not 0 <= start < len(self.rows):
                continue
            self._requested_pages.add(page)
            rows = self.rows[start : start + PAGE_ROWS]
            self._worker.submit(
                f"page {page}",
                partial(_page, source, rows, names),
                partial(self._receive, page),
                self._fail,
                is_urgent=page == number,
            )

    def _receive(self, number: int, page: Page) -> None:
        self._requested_pages.discard(number)
        self._pages[number] = page
        while len(self._pages) > _MAXIMUM_CACHED_PAGES:
            dropped, _ = self._pages.popitem(last=False)
            self._requested_pages.discard(dropped)
        start = number * PAGE_ROWS
        self.dataChanged.emit(self.index(start, 0), self.index(min(start + PAGE_ROWS, len(self.rows)) - 1, len(self.columns) - 1))
        for position, use in self._waiting.pop(number, []):
            use({name: column[position % PAGE_ROWS] for name, column in page.items()})

    def _fail(self, error: Exception) -> None:
        self.failed.emit(str(error))

    def _interrupt(self) -> None:
        if self._source is not None:
            self._source.interrupt()


def _page(source: TableSource, rows: NDArray[np.int64], names: Sequence[str]) -> Page:
    table = source.values(rows, names)
    return {name: table[name].to_pylist() for name in names}
