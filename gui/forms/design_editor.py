"""The design table of a form: files to samples, conditions and replicates; guessed, typed, filled down, pasted, loaded and saved."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.labels import LabelName
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.quantity_design import (
    ComparedConditions,
    DesignFault,
    DesignTable,
    compared_conditions,
    design_text,
    files_of_runs,
    guessed_design,
    has_sample,
    judged_design,
    pasted_cells,
    read_design_table,
)
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.design_model import BLOCK_MEANING, Cell, DesignModel
from proteoscope.gui.labels import toned_label
from proteoscope.gui.tables.worker import TableWorker

__all__ = ["DesignEditor", "DesignView"]

_ROWS_SHOWN = 6
_FILTER = "Tab-separated values (*.tsv *.txt);;All files (*)"
_STANDARD = QKeySequence.StandardKey


class DesignView(QTableView):
    """The table: typing edits a cell; Ctrl+D fills down, Ctrl+C and Ctrl+V copy and paste, Delete empties, Ctrl+Z and Ctrl+Shift+Z undo
    and redo."""

    def __init__(self, model: DesignModel) -> None:
        super().__init__()
        self._model = model
        self.setModel(model)
        self.setAccessibleName("Design: samples of the files")
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.AnyKeyPressed | triggers.EditKeyPressed)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        height = QFontMetrics(self.font()).height() + 8
        self.verticalHeader().setDefaultSectionSize(height)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setHighlightSections(False)
        self.setMinimumHeight(height * (_ROWS_SHOWN + 1) + 8)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._keys = {
            self._action("Fill &down", QKeySequence("Ctrl+D"), self.fill_down),
            self._action("&Copy", QKeySequence(_STANDARD.Copy), self.copy),
            self._action("&Paste", QKeySequence(_STANDARD.Paste), self.paste),
            self._action("&Empty", QKeySequence(_STANDARD.Delete), self.empty),
            self._action("&Undo", QKeySequence(_STANDARD.Undo), model.undo),
            self._action("&Redo", QKeySequence(_STANDARD.Redo), model.redo),
        }
        model.modelReset.connect(self._size_columns)

    def selected(self) -> list[Cell]:
        """The selected cells, from the top."""
        return sorted((index.row(), index.column()) for index in self.selectionModel().selectedIndexes())

    def fill_down(self) -> None:
        """Fill what is selected from its topmost cells."""
        if cells := self.selected():
            self._model.fill_down(cells)

    def copy(self) -> None:
        """Put the selected cells on the clipboard, as spreadsheets take them."""
        rows: dict[int, list[str]] = {}
        for row, column in self.selected():
            rows.setdefault(row, []).append(self._model.table.rows[row][column])
        if rows:
            QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows.values()))

    def paste(self) -> None:
        """Put what is on the clipboard into the table, from the topmost selected cell on."""
        cells = self.selected()
        self._model.paste(pasted_cells(QGuiApplication.clipboard().text()), cells[0] if cells else (0, 0), cells)

    def empty(self) -> None:
        """Empty the selected cells."""
        self._model.set_cells((cell, "") for cell in self.selected())

    def event(self, event: QEvent) -> bool:
        """Keep keys of the table from shortcuts around it, as the form's Undo."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._action_of(event) is not None:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Do what a key of the table asks for."""
        action = self._action_of(event)
        if action is not None:
            action.trigger()
        else:
            super().keyPressEvent(event)

    def _action_of(self, event: QKeyEvent) -> QAction | None:
        pressed = QKeySequence(event.keyCombination())
        return next((one for one in self._keys if pressed in one.shortcuts()), None)

    def _action(self, text: str, shortcut: QKeySequence, use: object) -> QAction:
        action = QAction(text, self)
        action.setShortcut(shortcut)
        # Pressed keys come by `keyPressEvent`; the menu shows them.
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda: use())  # type: ignore[operator]
        self.addAction(action)
        return action

    def _size_columns(self) -> None:
        metrics, header = QFontMetrics(self.font()), self.horizontalHeader()
        for section, name in enumerate(self._model.table.columns):
            texts = [str(self._model.index(row, section).data() or "") for row in range(min(self._model.rowCount(), 100))]
            widest = max(map(metrics.horizontalAdvance, [name, *texts]), default=0)
            header.resizeSection(section, min(max(widest + 24, 70), 260))
        header.setStretchLastSection(True)


class DesignEditor(QWidget):
    """A design of the files of an identification, or none.

    Signals
    -------
    changed : it, or whether there is one.
    """

    changed = Signal()

    def __init__(self, help: str) -> None:
        super().__init__()
        self._files: list[str] = []
        self._asked: tuple[Path, tuple[str, ...]] | None = None
        self._label: LabelName | None = None
        self._wanted: tuple[Path | None] | None = None
        self._parameters: tuple[tuple[str, ...], str] = ((), "")
        """Conditions to compare and the reference, as the form has them."""
        self._judged: Design | DesignFault | None = None
        self._compared = ComparedConditions(())
        self._worker = TableWorker(None, self)
        self.model = DesignModel()
        self.view = DesignView(self.model)
        self.is_used = QCheckBox("Use a &design")
        self.is_used.setToolTip(f"{help[:1].upper()}{help[1:]}. Without it each file is a sample, and nothing is compared")
        self.is_used.setEnabled(False)
        self.message = toned_label()
        self.wrong = toned_label(tone="wrong")
        self.wrong.hide()
        self.buttons = [
            tool_button("search", "Guess samples, conditions and replicates from the names of the files", self.guess),
            tool_button("folded", "Fill the selected cells from the topmost one (Ctrl+D)", self.view.fill_down),
            tool_button("reset", "Undo (Ctrl+Z)", self.model.undo),
            tool_button("open", "Load a design from a table of tab-separated values", self.ask_to_load),
            tool_button("save", "Save the design as a table of tab-separated values", self.ask_to_save),
        ]
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.is_used, 1)
        self.block_actions, self.blocks_button = self._make_blocks()
        row.addWidget(self.blocks_button)
        for button in self.buttons:
            row.addWidget(button)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(4)
        page.addLayout(row)
        page.addWidget(self.view)
        page.addWidget(self.message)
        page.addWidget(self.wrong)
        self.model.changed.connect(self._judge)
        self.is_used.toggled.connect(self._show_state)
        self._show_state()

    def _make_blocks(self) -> tuple[dict[str, QAction], QToolButton]:
        """Make the menu that adds and removes block columns, and the button that opens it."""
        menu, actions = QMenu(self), {}
        menu.setToolTipsVisible(True)
        for name, meaning in BLOCK_MEANING.items():
            actions[name] = menu.addAction(f"&{name.capitalize()}")
            actions[name].setCheckable(True)
            actions[name].setToolTip(meaning)
            actions[name].triggered.connect(lambda is_there, name=name: self.model.set_block(name, is_there))
        button = QToolButton()
        button.setText("Blocks")
        button.setAutoRaise(True)
        button.setMenu(menu)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolTip("Add or remove a column of blocks of the comparison: plex, batch or subject")
        button.setAccessibleName("Blocks of the comparison")
        return actions, button

    @property
    def is_busy(self) -> bool:
        """Whether it is being found out which files there are."""
        return self._worker.is_busy

    def show_files(self, folder: Path | None, parameters: Mapping[str, Any]) -> None:
        """Have the files of the identifications of a project that parameters of quantification name, and the channels of their label; a
        design of the same files stays as it is."""
        kit = parameters["label"] if parameters["method"] == "tmt" else None
        if kit != self._label:
            self._label = kit
            self._begin_anew()
        of_comparison = (tuple(parameters["groups"]), str(parameters["reference"]))
        if of_comparison != self._parameters:
            self._parameters = of_comparison
            self._judge()
        asked = None if folder is None else (folder, tuple(parameters["run"]))
        if asked == self._asked:
            return
        self._asked = asked
        if asked is None:
            self._worker.cancel()
            self._take([])
        else:
            self._worker.submit("files", lambda: files_of_runs(*asked), self._take, self._take_none)

    def look_again(self) -> None:
        """Ask anew at the next `show_files`: the project may have other runs by then."""
        self._asked = None

    def text(self) -> str:
        """The design as a table of tab-separated values; empty where none is used."""
        rows = filter(has_sample, self.model.table.rows)
        return design_text(DesignTable(self.model.table.columns, tuple(rows))) if self.is_used.isChecked() else ""

    def problem(self) -> str:
        """Why the design cannot be used; empty where it can, or none is wanted."""
        return self._judged.text if self.is_used.isChecked() and isinstance(self._judged, DesignFault) else ""

    def guess(self) -> None:
        """Fill the table from the names of the files."""
        self.model.replace_table(guessed_design(self._files, self._label))

    def load(self, path: Path) -> None:
        """Fill the table from a file."""
        try:
            table = read_design_table(path)
        except ProteoscopeError as error:
            self._say_wrong(f"The design was not loaded. {error}")
            return
        self.is_used.setChecked(True)
        self.model.replace_table(table)

    def restore(self, path: Path | None) -> None:
        """Have the design of a run again, as soon as the files are known that it is of; None: that it had none."""
        self._wanted = (path,)
        if not self.is_busy:
            self._take_wanted()

    def _take_wanted(self) -> None:
        if self._wanted is not None and self._files:
            (path,), self._wanted = self._wanted, None
            if path is None:
                self.is_used.setChecked(False)
            else:
                self.load(path)

    def save(self, path: Path) -> None:
        """Write the table to a file."""
        try:
            with atomic_file(path) as file:
                file.write(design_text(self.model.table).encode())
        except ProteoscopeError as error:
            self._say_wrong(f"The design was not saved. {error}")

    def ask_to_load(self) -> None:
        """Ask for a file, and load it."""
        self._ask(QFileDialog.AcceptMode.AcceptOpen, "Load a design").fileSelected.connect(lambda name: self.load(Path(name)))

    def ask_to_save(self) -> None:
        """Ask for a file, and save to it."""
        dialog = self._ask(QFileDialog.AcceptMode.AcceptSave, "Save the design")
        dialog.setDefaultSuffix("tsv")
        dialog.selectFile("design.tsv")
        dialog.fileSelected.connect(lambda name: self.save(Path(name)))

    def _ask(self, mode: QFileDialog.AcceptMode, title: str) -> QFileDialog:
        dialog = QFileDialog(self, title, str(Path(self._files[0]).parent) if self._files else "")
        dialog.setAcceptMode(mode)
        dialog.setNameFilter(_FILTER)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()
        return dialog

    def _take(self, files: list[str]) -> None:
        if files != self._files:
            self._files = files
            self._begin_anew()
        self._take_wanted()
        self._show_state()

    def _take_none(self, error: Exception) -> None:
        """Why there are no files is told where the project is chosen."""
        self._take([])

    def _begin_anew(self) -> None:
        """Guess a design, and use it where conditions can be compared by it."""
        self.model.open(guessed_design(self._files, self._label))
        self.is_used.setChecked(isinstance(self._judged, Design) and bool(self._compared.groups))

    def _judge(self) -> None:
        table = self.model.table
        self._judged = judged_design(table, self._files, self._label) if self._files else None
        if isinstance(self._judged, Design):
            compared = compared_conditions(self._judged, table, *self._parameters)
            if isinstance(compared, DesignFault):
                self._judged = compared
            else:
                self._compared = compared
        self.model.show_fault(self._judged if isinstance(self._judged, DesignFault) else None)
        self._show_state()

    def _show_state(self) -> None:
        is_used = self.is_used.isChecked()
        self.is_used.setEnabled(bool(self._files))
        self.view.setEnabled(is_used)
        for button in self.buttons:
            button.setEnabled(is_used or button.accessibleName().startswith("Load"))
        self.buttons[2].setEnabled(is_used and self.model.can_undo)
        self.blocks_button.setEnabled(is_used)
        for name, action in self.block_actions.items():
            action.setChecked(name in self.model.table.columns)
        judged = self._judged
        told = "Give a project: the files of its identification stand here then." if not self._files else ""
        if self._files and not is_used:
            what = "Each" if self._label is None else "Each channel of each"
            told = f"{what} of {counted(len(self._files), 'file')} is a sample; nothing is compared."
        elif isinstance(judged, Design):
            told = " ".join((_told(judged, self._compared), *self._compared.notes))
        self.message.setText(told)
        self.message.setVisible(bool(told))
        self._say_wrong(self.problem())
        self.changed.emit()

    def _say_wrong(self, text: str) -> None:
        self.wrong.setText(text)
        self.wrong.setVisible(bool(text))


def _told(design: Design, compared: ComparedConditions) -> str:
    """Return what a design holds and which conditions it compares, in a line."""
    count = {name: sum(one.condition == name for one in design.samples) for name in design.conditions}
    names = ", ".join(f"{name} ({number})" for name, number in list(count.items())[:8]) + (" …" if len(count) > 8 else "")
    if compared.groups:
        ending = f"; {', '.join(compared.groups[1:4])} compared with {compared.groups[0]}"
    else:
        ending = "; nothing is compared" + ("" if compared.notes else ": two conditions of two samples are needed")
    left_out = f"; {counted(len(design.left_out), 'file')} left out" if design.left_out else ""
    return f"{counted(len(design.samples), 'sample')} of {counted(len(count), 'condition')}: {names}{ending}{left_out}."
