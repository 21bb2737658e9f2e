"""Panel of a table with its title, scope, number of rows, and busy indicator."""
# ruff: noqa: N815 - Qt's way of naming signals

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.conditions import Condition
from proteoscope.engine.views.tables import TableSource
from proteoscope.gui.actions import delayed
from proteoscope.gui.buttons import action_button, text_button
from proteoscope.gui.elided_label import ElidedLabel, TitleLabel
from proteoscope.gui.labels import described
from proteoscope.gui.layouts import hide_in_place, in_column, in_row
from proteoscope.gui.scrolling_layout import PaneBar
from proteoscope.gui.tables.model import ParquetTableModel
from proteoscope.gui.tables.view import TableView
from proteoscope.gui.words import in_sentence

_BUSY_AFTER_MS = 120


class TablePanel(QWidget):
    """Panel with a table whose rows depend on selections in other tables.

    The shown rows meet the conditions of the scope (such as the peptides of the selected protein) and of the filter, which all tables of a
    view share. The scope is described next to the title; the button Show all removes it. If scope or filter hide the selected row,
    `choiceLost` is emitted, so that other widgets do not show a row that is not in the table; with `retains_selection`, the first remaining
    row is selected instead.

    Parameters
    ----------
    title : str
        Plural name of the rows, such as ``Proteins``.
    columns : sequence of Column
        Columns of the table.
    extras : sequence of str
        Names of further columns whose values `rowChosen` includes.
    parent : QWidget or None
        Owner of the panel.
    """

    rowChosen = Signal(int, object)
    choiceLost = Signal()
    """No row is selected any more: the selected row is hidden, or the user has cleared the selection."""
    wantedHidden = Signal()
    """The row `wanted` of `show_rows` cannot be selected, since scope or filter hide it."""
    allRequested = Signal()
    """The user requests all rows, regardless of selections in other tables."""

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        extras: Sequence[str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.title = title
        self._scope: tuple[Condition, ...] = ()
        self._filter: tuple[Condition, ...] = ()
        self._wanted: int | None = None
        self._takes_first = False
        self._has_choice = False
        self._is_hidden = False
        """True if scope and filter have hidden all rows, including the selected one, until rows are shown again."""
        self.retains_selection = False
        """True to select the first row when the selected row is hidden, for tables whose selected row is shown in a figure."""
        self._source: TableSource | None = None
        self._hidden: list[str] | None = None
        self.model = ParquetTableModel(columns, extras, self.palette, self)
        self.view = TableView(self.model, title, self)
        self.view.rowChosen.connect(self._take_choice)
        self.view.choiceLost.connect(self._clear_lost_choice)
        self.error = ""
        """Reason why the table cannot be read, or ''."""
        self.total = 0
        """Number of rows of the table without scope and filter."""

        heading = TitleLabel(title)
        self._scope_label = ElidedLabel()
        self.all_button = text_button(
            "Show all",
            f"Show all {self.plural}, regardless of selections in other tables",
            self.allRequested.emit,
            f"Show all {title}",
            is_flat=True,
        )
        self.all_button.hide()
        self.count_label = QLabel(alignment=Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._busy = described(QProgressBar(textVisible=False), f"{title} are being sorted or filtered")
        self._busy.setRange(0, 0)
        self._busy.setFixedSize(60, 8)
        hide_in_place(self._busy)
        self._busy_soon = delayed(self, self._busy.show, _BUSY_AFTER_MS)

        self._buttons = in_row(spacing=0)
        row = in_row(
            heading, (self._scope_label, 1), self.all_button, self._busy, self.count_label, self._buttons, margins=(4, 0, 6, 0), spacing=6
        )
        self.pane_bar = PaneBar(row, row, heading)
        in_column(row, (self.view, 1), on=self, spacing=0)
        self.model.busyChanged.connect(self._show_busy)
        self.model.orderChanged.connect(self._show_count)
        self.model.failed.connect(self._show_error)

    @property
    def plural(self) -> str:
        """Plural name of the rows for use within a sentence, such as ``proteins``."""
        return in_sentence(self.title)

    @property
    def scope(self) -> tuple[Condition, ...]:
        """Conditions of the scope; empty if all rows are shown."""
        return self._scope

    @property
    def scope_text(self) -> str:
        """Text that describes the conditions of the scope; empty if all rows are shown."""
        return self._scope_label.full_text

    def add_action(self, action: QAction) -> None:
        """Add an action on the rows to the context menu and as a button above the table."""
        self.view.add_action(action)
        self._buttons.addWidget(action_button(action))

    def prepare(self, source: TableSource) -> TableSource:
        """Let a source compute and cache what `open_table` needs, and return it; called in a thread, since queries take milliseconds."""
        _ = source.total, self.model.columns_in(source)
        return source

    def open_table(self, source: TableSource) -> None:
        """Set the source of the table, without scope and filter; it has no rows until the next `show_rows`."""
        self.error = ""
        self._source = source
        self.total = source.total
        self._scope = self._filter = ()
        self._show_scope("")
        hidden = self._hidden if self._hidden is not None else [column.name for column in self.model.columns if not column.is_shown]
        self.model.set_shown([column.name for column in self.model.columns if column.name not in hidden])
        self.model.open(source)
        self.view.hide_columns(hidden)
        self.view.size_columns()

    def close_table(self) -> None:
        """Remove all rows and close the source."""
        self._source = None
        self._wanted = None
        self.error = ""
        self.clear_choice()
        self.model.close()
        self.count_label.clear()
        self._show_scope("")

    def show_rows(
        self,
        *,
        scope: Iterable[Condition] | None = None,
        scope_text: str = "",
        filter: Iterable[Condition] | None = None,
        wanted: int | None = None,
        takes_first: bool = False,
    ) -> None:
        """Set scope and filter; None retains the current setting.

        Parameters
        ----------
        scope, filter : iterable of Condition, optional
            Conditions of the scope and of the filter that rows must meet.
        scope_text : str
            Description of the scope, such as ``of P12345``; empty without a scope.
        wanted : int, optional
            Row number, in the file, of the row to select once the rows are shown.
        takes_first : bool
            True to select the first row if `wanted` is hidden or not given.
        """
        if self._source is None:
            return
        if scope is not None:
            self._scope = tuple(scope)
            self._show_scope(scope_text)
        if filter is not None:
            self._filter = tuple(filter)
        if wanted is not None:
            self._wanted = wanted
        self._takes_first = takes_first
        self.model.show([*self._scope, *self._filter], self.model.order)
        self.view.mark_order()

    def clear_choice(self) -> None:
        """Clear the selection without selecting another row."""
        self._has_choice = self._is_hidden = False
        self.view.clear_choice()

    def hidden_columns(self) -> list[str] | None:
        """Return the names of the columns that the user has hidden, or None if the user has not changed the visible columns."""
        return self._hidden

    def remember_columns(self, hidden: list[str] | None) -> None:
        """Hide these columns now and in tables opened later; None restores the default columns in tables opened later."""
        self._hidden = hidden
        if self._source is not None and hidden is not None:
            self.view.hide_columns(hidden)

    def _show_scope(self, text: str) -> None:
        self._scope_label.set_text(text)
        self.all_button.setVisible(bool(text))

    def _show_busy(self, is_busy: bool) -> None:
        if is_busy:
            self._busy_soon.start()
        else:
            self._busy_soon.stop()
            self._busy.hide()

    def _show_count(self) -> None:
        n = len(self.model.rows)
        self.count_label.setText(QLocale().toString(n))
        self.view.setAccessibleDescription(f"{counted(n, 'row')} {self.scope_text}".strip())
        self.error = ""
        wanted, self._wanted = self._wanted, None
        position = None if wanted is None else self.model.position_of(wanted)
        if position is not None:
            self.view.choose(position)
        elif n and (self._takes_first or (self._replaces_hidden_choice and self.view.chosen is None)):
            self.view.choose(0)
        elif self._has_choice and self.view.chosen is None and wanted is None:
            self._clear_lost_choice()
            self._is_hidden = True
        if wanted is not None and position is None:
            self.wantedHidden.emit()
        self._takes_first = False

    @property
    def _replaces_hidden_choice(self) -> bool:
        """True if the first row is selected when the selected row is hidden (`retains_selection`)."""
        return self.retains_selection and (self._has_choice or self._is_hidden)

    def _take_choice(self, row: int, values: Mapping[str, Any]) -> None:
        self._has_choice, self._is_hidden = True, False
        self.rowChosen.emit(row, values)

    def _clear_lost_choice(self) -> None:
        self._has_choice = self._is_hidden = False
        self.choiceLost.emit()

    def _show_error(self, text: str) -> None:
        self.error = text
        self.view.viewport().update()
