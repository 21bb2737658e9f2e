"""Dialog for the selection of modifications from Unimod by name, site and mass."""

from __future__ import annotations

from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHeaderView,
    QLineEdit,
    QTableView,
    QWidget,
)

from proteoscope.engine.chemistry.modifications import Modification, Site, parse_modification, parse_site, unimod
from proteoscope.engine.errors import ParameterError
from proteoscope.gui.forms.numbers import NumberBox, form_locale
from proteoscope.gui.icons import without_icons
from proteoscope.gui.labels import field_label, show_text, toned_label
from proteoscope.gui.layouts import in_column

_COLUMNS = ("Modification", "Site", "Mass (Da)", "Classification", "Description")
_DEFAULT_TOLERANCE = 0.01


class _Row(NamedTuple):
    modification: Modification
    site: Site

    @property
    def text(self) -> str:
        return f"{self.modification.title} ({self.site})"


class _Found(QAbstractTableModel):
    """Table model of the modifications that match the search fields, one row for each site of each Unimod entry."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: list[_Row] = []
        self._locale = form_locale()

    def show(self, rows: list[_Row]) -> None:
        """Replace the rows of the table."""
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: N802
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section]
        return None

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row, column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole and column == 2:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ToolTipRole and column == 4:
            return row.modification.full_name
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if column == 0:
            return row.modification.title
        if column == 1:
            return str(row.site)
        if column == 2:
            sign = "+" if row.modification.mass > 0 else ""
            return sign + self._locale.toString(row.modification.mass, "f", 6)
        return row.site.classification if column == 3 else row.modification.full_name


class ModificationPicker(QDialog):
    """Dialog that searches Unimod while the user types.

    A double-click or the Add button selects the marked entries or a custom modification.

    Signals
    -------
    chosen
        List of the selected modifications as texts such as ``Oxidation (M)``, as `parse_modification` reads them.
    """

    chosen = Signal(list)

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Add to: {title}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(820, 520)
        self.name = _line("Name, part of a name, or UNIMOD:35")
        self.site = _line("M, STY, N-term")
        self.mass = _line("any")
        self.tolerance = NumberBox(0.0, 10.0, "Da")
        self.tolerance.setValue(_DEFAULT_TOLERANCE)
        self.own = _line("Label:+8.0142 (K)")
        self.message = toned_label(tone="wrong")
        self.found = _Found(self)
        self.table = QTableView()
        self.table.setModel(self.found)
        self._count = toned_label()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        without_icons(self.buttons.buttons())
        self.add_button = self.buttons.addButton("Add", QDialogButtonBox.ButtonRole.AcceptRole)
        self._typed = QTimer(self, singleShot=True)
        self._lay_out()
        self._connect()
        self.search()

    def search(self) -> None:
        """Show the Unimod entries that match the search fields, best match first."""
        problem, rows = "", []
        try:
            rows = self._fitting()
        except ParameterError as error:
            problem = str(error)
        except ValueError:
            problem = f"{self.mass.text()!r} is not a mass; expected a number in dalton"
        self.found.show(rows)
        if rows:
            self.table.selectRow(0)
        self._count.setText(f"{len(rows):,} modification{'' if len(rows) == 1 else 's'} found")
        self._enable(problem)

    def accept(self) -> None:
        """Emit `chosen` and close the dialog."""
        texts = self._selected()
        if texts:
            self.chosen.emit(texts)
            super().accept()

    def _fitting(self) -> list[_Row]:
        site = self.site.text().strip()
        residues, position = parse_site(site) if site else ("", None)
        entries = unimod().search(self.name.text(), site or None, self._mass(), self.tolerance.value())
        rows = []
        for entry in entries:
            sites = [site for residue in residues or ("",) for site in entry.sites_covering(residue, position)] if position else entry.sites
            shown = [fromkey for fromkey in dict.fromkeys(sites) if not fromkey.is_hidden] or list(dict.fromkeys(sites))
            rows += [_Row(entry, shown_site) for shown_site in (shown if not site else dict.fromkeys(sites))]
        return rows

    def _mass(self) -> float | None:
        text = self.mass.text().strip()
        if not text:
            return None
        value, is_number = self.mass.locale().toDouble(text)
        return float(value) if is_number else float(text)

    def _selected(self) -> list[str]:
        text = self.own.text().strip()
        if text:
            return [str(parse_modification(text))]
        return [self.found.rows[index.row()].text for index in self.table.selectionModel().selectedRows()]

    def _enable(self, problem: str = "") -> None:
        text = self.own.text().strip()
        if text:
            try:
                parse_modification(text)
            except ParameterError as error:
                problem = str(error)
        self.table.setEnabled(not text)
        show_text(self.message, problem)
        self.add_button.setEnabled(not problem and bool(text or self.table.selectionModel().hasSelection()))

    def _connect(self) -> None:
        # Several changes at once, such as pasting over a field, start only one search.
        self._typed.timeout.connect(self.search)
        for line in (self.name, self.site, self.mass):
            line.textChanged.connect(self._typed.start)
        self.tolerance.valueChanged.connect(self._typed.start)
        self.own.textChanged.connect(lambda: self._enable())
        self.table.selectionModel().selectionChanged.connect(lambda: self._enable())
        self.table.doubleClicked.connect(self.accept)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)

    def _lay_out(self) -> None:
        self.mass.setLocale(form_locale())
        self.add_button.setDefault(True)
        self.message.hide()
        criteria = QGridLayout()
        fields = (("&Name", self.name, 4), ("&Site", self.site, 2), ("&Mass (Da)", self.mass, 2), ("&within", self.tolerance, 1))
        for column, (text, widget, stretch) in enumerate(fields):
            label = field_label(text, widget)
            criteria.addWidget(label, 0, column)
            criteria.addWidget(widget, 1, column)
            criteria.setColumnStretch(column, stretch)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.table.setAlternatingRowColors(True)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 8)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        for column, n_characters in enumerate((24, 16, 14, 19)):
            self.table.setColumnWidth(column, self.fontMetrics().horizontalAdvance("n") * n_characters)
        own_label = field_label("C&ustom modification", self.own)
        custom = QGridLayout()
        custom.addWidget(own_label, 0, 0)
        custom.addWidget(self.own, 0, 1)
        in_column(criteria, (self.table, 1), self._count, custom, self.message, self.buttons, on=self, margins=None)


def _line(hint: str) -> QLineEdit:
    return QLineEdit(placeholderText=hint, clearButtonEnabled=True)
