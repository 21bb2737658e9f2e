"""View of a table: selecting rows, hiding columns, copying, saving, and a text if there are no rows."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QLocale, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHeaderView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.database_links import DatabaseLink, links_of_names
from proteoscope.gui.database_links import link_actions
from proteoscope.gui.tables.heat import paint_heat
from proteoscope.gui.tables.model import Index, ParquetTableModel

COPY_LIMIT = 200_000
"""Maximum number of rows that are copied to the clipboard, since more could block programs that read the clipboard."""
_ROW_PADDING = 7
_ROWS_AT_LEAST = 2


class _Cells(QStyledItemDelegate):
    """Delegate that reads the data of a cell with one call, so that scrolling is smooth; Qt's default delegate makes seven calls."""

    def __init__(self, model: ParquetTableModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        text, side, is_decoy = self._model.cell(index.row(), index.column())
        option.text = text
        option.displayAlignment = side
        option.features |= QStyleOptionViewItem.ViewItemFeature.HasDisplay
        if is_decoy:
            option.font.setItalic(True)
            faint = option.palette.color(QPalette.ColorRole.PlaceholderText)
            option.palette.setColor(QPalette.ColorRole.Text, faint)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a cell as text, or as a strip of colours."""
        if self._model.columns[index.column()].kind != "heat":
            super().paint(painter, option, index)
            return
        values = self._model.data(index, int(Qt.ItemDataRole.UserRole))
        # First the background of the cell, with its selection but without text; the strip is painted over it.
        empty = QStyleOptionViewItem(option)
        self.initStyleOption(empty, index)
        empty.text = ""
        option.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, empty, painter, option.widget)
        if values:
            paint_heat(painter, option.rect, values, option.palette)


class TableView(QTableView):
    """View of a `ParquetTableModel`. The current row is shown in other widgets; several rows can be selected for copying."""

    rowChosen = Signal(int, object)
    """Another row has become current and selected; emitted with its row number in the file and its values by column."""
    choiceLost = Signal()
    """The user has cleared the selection."""
    columnsChanged = Signal()
    message = Signal(str)
    """Text for the status bar: copied or saved rows, or the reason why nothing was copied."""
    failed = Signal(str)
    """The table was not saved; emitted with the reason."""

    def __init__(self, model: ParquetTableModel, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._empty_text: Callable[[], str] = lambda: ""
        self._chosen: int | None = None
        self._is_announced = False
        """True if `rowChosen` was emitted for the current row, False while its values are being read."""
        self.setModel(model)
        self.setItemDelegate(_Cells(model, self))
        self.setAccessibleName(name)
        self.setObjectName(name)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        rows = self.verticalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(QFontMetrics(self.font()).height() + _ROW_PADDING)
        rows.hide()
        header = self.horizontalHeader()
        header.setSectionsMovable(True)
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(lambda at: self.columns_menu().exec(header.mapToGlobal(at)))
        header.sectionClicked.connect(self._sort_by)
        header.setSortIndicatorShown(True)
        header.setSortIndicatorClearable(False)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.copy_action = self._action("&Copy", QKeySequence(QKeySequence.StandardKey.Copy), self.copy)
        self.save_action = self._action("&Save table…", QKeySequence("Ctrl+Shift+S"), self.prompt_and_save)
        self.columns_action = self._action("C&olumns and sorting…", QKeySequence("Ctrl+Shift+C"), self._pop_columns_up)
        model.modelReset.connect(self._after_reset)

    def minimumSizeHint(self) -> QSize:
        """Return a size with space for the header and two rows in the current font."""
        rows = _ROWS_AT_LEAST * self.verticalHeader().defaultSectionSize()
        height = self.horizontalHeader().sizeHint().height() + rows + self.horizontalScrollBar().sizeHint().height() + 2 * self.frameWidth()
        return QSize(super().minimumSizeHint().width(), height)

    def add_action(self, action: QAction) -> None:
        """Insert an action at the top of the context menu."""
        self.insertAction(self.copy_action, action)

    def set_empty_text(self, text: Callable[[], str]) -> None:
        """Set the function that returns the text shown if there are no rows."""
        self._empty_text = text

    def hide_columns(self, hidden: Sequence[str]) -> None:
        """Hide these columns and show all others; the model reads only visible columns."""
        names = [column.name for column in self._model.columns]
        for section, name in enumerate(names):
            self.setColumnHidden(section, name in hidden)
        self._model.set_shown([name for name in names if name not in hidden])

    def hidden_columns(self) -> list[str]:
        """Return the names of the hidden columns."""
        return [column.name for section, column in enumerate(self._model.columns) if self.isColumnHidden(section)]

    def size_columns(self) -> None:
        """Set the width of every column according to its type of value and its header."""
        metrics = QFontMetrics(self.font())
        for section, column in enumerate(self._model.columns):
            needed = max(metrics.horizontalAdvance("0") * column.width, metrics.horizontalAdvance(column.header) + 26)
            self.setColumnWidth(section, needed + 10)

    def mark_order(self) -> None:
        """Show the sort order of the model in the header."""
        order = self._model.order
        names = [column.name for column in self._model.columns]
        section = names.index(order[0][0]) if order and order[0][0] in names else -1
        descends = bool(order and order[0][1])
        self.horizontalHeader().setSortIndicator(section, Qt.SortOrder.DescendingOrder if descends else Qt.SortOrder.AscendingOrder)

    def choose(self, position: int) -> None:
        """Make the row at `position` current and the only selected row, and scroll to it."""
        index = self._model.index(position, self._first_column())
        flags = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.selectionModel().setCurrentIndex(index, flags)
        self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    @property
    def chosen(self) -> int | None:
        """Row number, in the file, of the current row, or None."""
        return self._chosen

    @property
    def selected(self) -> list[int]:
        """Row numbers, in the file, of the selected rows, from top to bottom."""
        rows = self._model.rows
        return [int(rows[at]) for at in self._selected().tolist() if at < len(rows)]

    def forget_choice(self) -> None:
        """Forget the current row without deselecting it, so that `rowChosen` is emitted even if the same row is selected next."""
        self._chosen = None

    def clear_choice(self) -> None:
        """Forget the current row and clear the selection, without emitting `choiceLost`."""
        self.forget_choice()
        self.selectionModel().clear()

    def selectionCommand(self, index: Index, event: QEvent | None = None) -> QItemSelectionModel.SelectionFlag:
        """Return the selection flags. Ctrl+Home and Ctrl+End select the first or last row; Qt would only make the row current."""
        ends = (Qt.Key.Key_Home, Qt.Key.Key_End)
        if isinstance(event, QKeyEvent) and event.key() in ends and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            return QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        return super().selectionCommand(index, event)

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Emit `rowChosen` if the new current row is selected already; after a click it is selected later (see `selectionChanged`)."""
        super().currentChanged(current, previous)
        self._announce(current)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        """Emit `rowChosen` for a newly selected current row, or `choiceLost` if no row is selected any more."""
        super().selectionChanged(selected, deselected)
        self._announce(self.currentIndex())
        if self._chosen is not None and not self.selectionModel().hasSelection():
            self._chosen = None
            self.choiceLost.emit()
        elif self._chosen is not None:
            # Keys select a row before they make it current: wait until the event is handled.
            QTimer.singleShot(0, self, self._choose_remaining)

    def _choose_remaining(self) -> None:
        """If the row of the last `rowChosen` is no longer selected, emit `rowChosen` for the topmost selected row."""
        position = None if self._chosen is None else self._model.position_of(self._chosen)
        selected = self._selected()
        if position is not None and len(selected) and position not in selected:
            self._announce(self._model.index(int(selected[0]), self._first_column()))

    def _announce(self, current: Index) -> None:
        """Emit `rowChosen` for a row if it is selected, unless it was last emitted for the same row."""
        if not current.isValid() or not self.selectionModel().isSelected(current):
            return
        row = int(self._model.rows[current.row()])
        if row == self._chosen:
            return
        self._chosen = row
        self._emit_loaded(current.row(), row)

    def _emit_loaded(self, position: int, row: int) -> None:
        """Emit `rowChosen` when the values of a row have been read. If the order changes before, this must be called again."""

        def emit(values: dict[str, Any]) -> None:
            if row == self._chosen:
                self._is_announced = True
                self.rowChosen.emit(row, values)

        self._is_announced = False
        self._model.when_loaded(position, emit)

    def copy(self) -> None:
        """Copy the selected rows and the header as tab-separated lines, with the user's decimal separator."""
        positions = self._selected()
        if len(positions) == 0:
            self.message.emit("Select rows to copy first.")
        elif len(positions) > COPY_LIMIT:
            self.message.emit(f"{self._number(len(positions))} rows are too many for the clipboard; save the table to a file instead.")
        else:
            self._model.texts(positions, self._columns_in_sight(), lambda text: self._copied(text, len(positions)), locale=QLocale())

    def prompt_and_save(self) -> None:
        """Prompt for a file and save the table (see `save`)."""
        path, _ = QFileDialog.getSaveFileName(self, "Save table", f"{self.objectName().lower()}.tsv", "Tab-separated values (*.tsv)")
        if path:
            self.save(Path(path))

    def save(self, path: Path) -> None:
        """Write all shown rows in their order as tab-separated values, with decimal points and the visible columns."""
        positions = np.arange(len(self._model.rows))

        def write(text: str) -> None:
            try:
                with atomic_file(path) as file:
                    file.write(text.encode())
            except StorageError as error:
                self.failed.emit(f"The table was not saved. {error}")
            else:
                self.message.emit(f"Saved {self._number(len(positions))} {'row' if len(positions) == 1 else 'rows'} to {path.name}.")

        self._model.texts(positions, self._columns_in_sight(), write)

    def columns_menu(self) -> QMenu:
        """Return a menu with a checkbox for each column, and a submenu for sorting by a visible column."""
        menu = QMenu(self, toolTipsVisible=True)
        menu.aboutToHide.connect(menu.deleteLater)
        sort_menu = menu.addMenu("&Sort by")
        order = dict(self._model.order)
        for column in self._columns_in_sight():
            now = {None: "", False: ", ascending", True: ", descending"}[order.get(column.name)]
            action = sort_menu.addAction(f"{column.header}{now}")
            action.setCheckable(True)
            action.setChecked(bool(now))
            action.triggered.connect(partial(self._sort_by, self._model.columns.index(column)))
        menu.addSeparator()
        for section, column in enumerate(self._model.columns):
            action = menu.addAction(column.header)
            action.setCheckable(True)
            action.setChecked(not self.isColumnHidden(section))
            action.setToolTip(column.description)
            action.toggled.connect(lambda is_shown, name=column.name: self._show_column(name, is_shown))
        menu.addSeparator()
        menu.addAction("Default columns").triggered.connect(self._usual_columns)
        return menu

    def links(self) -> tuple[DatabaseLink, ...]:
        """Return links to the public database entries that are named in the current row."""
        position = self.currentIndex().row()
        values = self._model.values(position) if 0 <= position < self._model.rowCount() else None
        links: list[DatabaseLink] = []
        for column in self._model.columns if values else ():
            if column.entries and (value := (values or {}).get(column.name)):
                names = value.split(";") if isinstance(value, str) else value
                links += links_of_names(names, is_structure=column.entries == "structures")
        return tuple(dict.fromkeys(links))

    def row_menu(self) -> QMenu:
        """Return the context menu of the current row."""
        menu = QMenu(self, toolTipsVisible=True)
        menu.addActions(self.actions())
        menu.aboutToHide.connect(menu.deleteLater)
        if links := self.links():
            menu.addSeparator()
            menu.addActions(link_actions(links, self.message.emit, menu))
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu at the pointer or, for the menu key, at the current cell."""
        menu = self.row_menu()
        at = event.globalPos()
        if event.reason() == QContextMenuEvent.Reason.Keyboard and self.currentIndex().isValid():
            at = self.viewport().mapToGlobal(self.visualRect(self.currentIndex()).bottomLeft())
        menu.exec(at)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the rows, or the text for an empty table."""
        super().paintEvent(event)
        text = self._empty_text() if self._model.rowCount() == 0 else ""
        if text:
            painter = QPainter(self.viewport())
            painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
            area = self.viewport().rect().adjusted(12, 8, -12, -8)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, text)
            painter.end()

    def _action(self, text: str, shortcut: QKeySequence, use: Callable[[], Any]) -> QAction:
        action = QAction(text, self, shortcut=shortcut, shortcutContext=Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda: use())
        self.addAction(action)
        return action

    def _pop_columns_up(self) -> None:
        self.columns_menu().exec(self.viewport().mapToGlobal(QPoint(0, 0)))

    def _sort_by(self, section: int) -> None:
        name = self._model.columns[section].name
        order = self._model.order
        # The first click sorts numbers in descending order and texts in ascending order; another click reverses the order.
        descends = (
            not order[0][1] if order and order[0][0] == name else self._model.columns[section].kind in ("integer", "number", "percent")
        )
        self._model.show(order=[(name, descends)])
        self.mark_order()

    def _show_column(self, name: str, is_shown: bool) -> None:
        hidden = set(self.hidden_columns())
        hidden = hidden - {name} if is_shown else hidden | {name}
        if len(hidden) < len(self._model.columns):
            self.hide_columns(sorted(hidden))
            self.columnsChanged.emit()

    def _usual_columns(self) -> None:
        self.hide_columns([column.name for column in self._model.columns if not column.is_shown])
        self.size_columns()
        self.columnsChanged.emit()

    def _after_reset(self) -> None:
        """Select the current row again after a reset of the model, if the new rows contain it."""
        position = None if self._chosen is None else self._model.position_of(self._chosen)
        if position is None:
            self._chosen = None
        else:
            # Deferred, since the view updates its geometry only after the reset.
            QTimer.singleShot(0, self, lambda: self._choose_again(position))

    def _choose_again(self, position: int) -> None:
        row = self._chosen
        if row is not None and position < self._model.rowCount() and int(self._model.rows[position]) == row:
            self.choose(position)
            if not self._is_announced:
                self._emit_loaded(position, row)

    def _first_column(self) -> int:
        header = self.horizontalHeader()
        return next((at for at in map(header.logicalIndex, range(header.count())) if not self.isColumnHidden(at)), 0)

    def _columns_in_sight(self) -> list[Column]:
        header = self.horizontalHeader()
        return [self._model.columns[at] for at in map(header.logicalIndex, range(header.count())) if not self.isColumnHidden(at)]

    def selected_rows(self) -> NDArray[np.int64]:
        """Return the row numbers, in the file, of the selected rows, from top to bottom, shape (n,)."""
        return np.asarray(self._model.rows)[self._selected()]

    def _selected(self) -> NDArray[np.int64]:
        selection: QItemSelection = self.selectionModel().selection()
        ranges = [np.arange(row_range.top(), row_range.bottom() + 1) for row_range in selection.toList()]
        return np.unique(np.concatenate(ranges)) if ranges else np.empty(0, np.int64)

    def _copied(self, text: str, n_rows: int) -> None:
        QGuiApplication.clipboard().setText(text)
        self.message.emit(f"Copied {self._number(n_rows)} {'row' if n_rows == 1 else 'rows'}.")

    @staticmethod
    def _number(n: int) -> str:
        return QLocale().toString(n)
