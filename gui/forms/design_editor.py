"""Design table of a form, which assigns files to samples, conditions and replicates."""
# ruff: noqa: N802 - Qt gives these names

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QHeaderView,
    QMenu,
    QTableView,
    QToolButton,
    QWidget,
)

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.quantification.design import Design
from proteoscope.engine.quantification.labels import LabelName
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.quantity_design import (
    ComparedConditions,
    DesignIssue,
    DesignTable,
    check_design,
    compared_conditions,
    design_text,
    guessed_design,
    has_sample,
    list_run_files,
    pasted_cells,
    read_design_table,
)
from proteoscope.gui.buttons import menu_button, tool_button
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.design_model import BLOCK_MEANING, Cell, DesignModel
from proteoscope.gui.labels import described, show_text, toned_label
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.tables.worker import TableWorker

_ROWS_SHOWN = 6
_FILTERS = ("Tab-separated values (*.tsv *.txt)", "All files (*)")
_STANDARD = QKeySequence.StandardKey


class DesignView(QTableView):
    """View of the design table with keyboard shortcuts for editing.

    Typing edits a cell, Ctrl+D fills the selected cells from the topmost one of each column (see `DesignModel.fill_down`), Ctrl+C and
    Ctrl+V copy and paste, and Delete empties cells.
    """

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
        }
        model.modelReset.connect(self._size_columns)

    def selected(self) -> list[Cell]:
        """Return the selected cells from top to bottom."""
        return sorted((index.row(), index.column()) for index in self.selectionModel().selectedIndexes())

    def fill_down(self) -> None:
        """Fill the selected cells of each column from the topmost selected cell (see `DesignModel.fill_down`)."""
        if cells := self.selected():
            self._model.fill_down(cells)

    def copy(self) -> None:
        """Copy the selected cells to the clipboard as tab-separated text."""
        rows: dict[int, list[str]] = {}
        for row, column in self.selected():
            rows.setdefault(row, []).append(self._model.table.rows[row][column])
        if rows:
            QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in rows.values()))

    def paste(self) -> None:
        """Paste the text of the clipboard into the table, see `DesignModel.paste`."""
        cells = self.selected()
        self._model.paste(pasted_cells(QGuiApplication.clipboard().text()), cells[0] if cells else (0, 0), cells)

    def empty(self) -> None:
        """Empty the selected cells."""
        self._model.set_cells((cell, "") for cell in self.selected())

    def event(self, event: QEvent) -> bool:
        """Give the shortcuts of the table precedence over those of the form, such as Save table."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._action_of(event) is not None:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Trigger the action that has the pressed key as its shortcut."""
        action = self._action_of(event)
        if action is not None:
            action.trigger()
        else:
            super().keyPressEvent(event)

    def _action_of(self, event: QKeyEvent) -> QAction | None:
        pressed = QKeySequence(event.keyCombination())
        return next((action for action in self._keys if pressed in action.shortcuts()), None)

    def _action(self, text: str, shortcut: QKeySequence, use: object) -> QAction:
        action = QAction(text, self, shortcut=shortcut)
        # Key presses are handled by `keyPressEvent`; the menu only shows the shortcuts.
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
    """Editor of the optional experimental design, which assigns the files of an identification to samples and conditions.

    Signals
    -------
    changed
        The design was changed, switched on or switched off.
    """

    changed = Signal()

    def __init__(self, help: str) -> None:
        super().__init__()
        self._files: list[str] = []
        self._runs_key: tuple[Path, tuple[str, ...]] | None = None
        self._label: LabelName | None = None
        self._wanted: tuple[Path | DesignTable | None] | None = None
        self._parameters: tuple[tuple[str, ...], str] = ((), "")
        """The conditions to compare and the reference condition, as set in the form."""
        self._validated: Design | DesignIssue | None = None
        self._compared = ComparedConditions(())
        self._worker = TableWorker(None, self)
        self.model = DesignModel(self)
        self.view = DesignView(self.model)
        self.is_used = described(
            QCheckBox("Use a &design"),
            tip=f"{help[:1].upper()}{help[1:]}. Without a design, each file is a sample and no conditions are compared",
        )
        self.is_used.setEnabled(False)
        self.message = toned_label()
        self.wrong = toned_label(tone="wrong", is_hidden=True)
        self.buttons = [
            tool_button("search", "Guess samples, conditions and replicates from the file names", self.guess),
            tool_button("folded", "Fill the selected cells from the topmost cell (Ctrl+D)", self.view.fill_down),
            tool_button("reset", "Undo (Ctrl+Z)", self.model.undo),
            tool_button("open", "Load a design from a table of tab-separated values", self.prompt_to_load),
            tool_button("save", "Save the design as a table of tab-separated values", self.prompt_to_save),
        ]
        self.block_actions, self.blocks_button = self._make_blocks()
        in_column(
            in_row((self.is_used, 1), self.blocks_button, *self.buttons, spacing=2), self.view, self.message, self.wrong, on=self, spacing=4
        )
        self.model.changed.connect(self._validate)
        self.model.history_changed.connect(self._show_undo)
        self.is_used.toggled.connect(self._show_state)
        self._show_state()

    def _make_blocks(self) -> tuple[dict[str, QAction], QToolButton]:
        """Create the menu that adds and removes block columns, and the button that opens it."""
        menu, actions = QMenu(self), {}
        menu.setToolTipsVisible(True)
        for name, meaning in BLOCK_MEANING.items():
            actions[name] = menu.addAction(f"&{name.capitalize()}")
            actions[name].setCheckable(True)
            actions[name].setToolTip(meaning)
            actions[name].triggered.connect(lambda is_there, name=name: self.model.set_block(name, is_there))
        button = menu_button(
            "Blocks",
            "Add or remove a block column of the comparison: plex, batch or subject",
            menu,
            "Block columns of the comparison",
            is_flat=True,
        )
        return actions, button

    @property
    def is_busy(self) -> bool:
        """True while the list of files is being read in the background."""
        return self._worker.is_busy

    def show_files(self, folder: Path | None, parameters: Mapping[str, Any]) -> None:
        """Show the files of the identifications that a quantification with the given parameters uses, with a row for each label channel.

        `folder` is the project of the identifications. If the files are the same as before, samples and conditions are retained.
        """
        kit = parameters["label"] if parameters["method"] == "tmt" else None
        if kit != self._label:
            self._label = kit
            self._begin_anew()
        of_comparison = (tuple(parameters["conditions"]), str(parameters["reference"]))
        if of_comparison != self._parameters:
            self._parameters = of_comparison
            self._validate()
        runs_key = None if folder is None else (folder, tuple(parameters["run"]))
        if runs_key == self._runs_key:
            return
        self._runs_key = runs_key
        if runs_key is None:
            self._worker.cancel()
            self._take([])
        else:
            self._worker.submit("files", lambda: list_run_files(*runs_key), self._take, self._take_none)

    def reload_files(self) -> None:
        """Make the next call of `show_files` read the list of files again, because the project may have changed."""
        self._runs_key = None

    def text(self) -> str:
        """Return the design as a table of tab-separated values, or '' if it is not used."""
        rows = filter(has_sample, self.model.table.rows)
        return design_text(DesignTable(self.model.table.columns, tuple(rows))) if self.is_used.isChecked() else ""

    def problem(self) -> str:
        """Return the reason why the design cannot be used, or ''."""
        return self._validated.text if self.is_used.isChecked() and isinstance(self._validated, DesignIssue) else ""

    def guess(self) -> None:
        """Fill the table with a design guessed from the file names."""
        self.model.replace_table(guessed_design(self._files, self._label))

    def load(self, path: Path) -> None:
        """Fill the table from a file."""
        try:
            table = read_design_table(path)
        except ProteoscopeError as error:
            self._show_error(f"The design was not loaded. {error}")
            return
        self.is_used.setChecked(True)
        self.model.replace_table(table)

    def table(self) -> DesignTable | None:
        """Return the design table, or None if it is not used."""
        return self.model.table if self.is_used.isChecked() else None

    def restore(self, design: Path | DesignTable | None) -> None:
        """Restore a design from a file or a table, if necessary after the list of run files was read; None switches the design off."""
        self._wanted = (design,)
        if not self.is_busy:
            self._take_wanted()

    def _take_wanted(self) -> None:
        if self._wanted is not None and self._files:
            (design,), self._wanted = self._wanted, None
            self.is_used.setChecked(design is not None)
            if isinstance(design, DesignTable):
                self.model.replace_table(design)
            elif design is not None:
                self.load(design)

    def save(self, path: Path) -> None:
        """Write the table to a file."""
        try:
            with atomic_file(path) as file:
                file.write(design_text(self.model.table).encode())
        except ProteoscopeError as error:
            self._show_error(f"The design was not saved. {error}")

    def prompt_to_load(self) -> None:
        """Open a dialog for a file and load the design from it."""
        prompt_for_path(self, "Load a design", self.load, folder=self._folder, filters=_FILTERS)

    def prompt_to_save(self) -> None:
        """Open a dialog for a file and save the design to it."""
        prompt_for_path(self, "Save the design", self.save, "save", folder=self._folder, filters=_FILTERS, name="design.tsv", suffix="tsv")

    @property
    def _folder(self) -> str:
        """Folder of the first file, at which file dialogs begin."""
        return str(Path(self._files[0]).parent) if self._files else ""

    def _take(self, files: list[str]) -> None:
        if files != self._files:
            self._files = files
            self._begin_anew()
        self._take_wanted()
        self._show_state()

    def _take_none(self, error: Exception) -> None:
        """Show an empty table; the project field shows the error."""
        self._take([])

    def _begin_anew(self) -> None:
        """Guess a design from the file names, and switch it on if it has conditions that can be compared."""
        self.model.open(guessed_design(self._files, self._label))
        self.is_used.setChecked(isinstance(self._validated, Design) and bool(self._compared.groups))

    def _validate(self) -> None:
        table = self.model.table
        self._validated = check_design(table, self._files, self._label) if self._files else None
        if isinstance(self._validated, Design):
            compared = compared_conditions(self._validated, table, *self._parameters)
            if isinstance(compared, DesignIssue):
                self._validated = compared
            else:
                self._compared = compared
        self.model.show_issue(self._validated if isinstance(self._validated, DesignIssue) else None)
        self._show_state()

    def _show_state(self) -> None:
        is_used = self.is_used.isChecked()
        self.is_used.setEnabled(bool(self._files))
        self.view.setEnabled(is_used)
        for button in self.buttons:
            button.setEnabled(is_used or button.accessibleName().startswith("Load"))
        self._show_undo()
        self.blocks_button.setEnabled(is_used)
        for name, action in self.block_actions.items():
            action.setChecked(name in self.model.table.columns)
        validated = self._validated
        text = "Choose a project to list the files of its identification." if not self._files else ""
        if self._files and not is_used:
            what = "Each" if self._label is None else "Each channel of each"
            text = (
                f"{what} of {counted(len(self._files), 'file')} is a sample; no conditions are compared. "
                "Check “Use a design” to name conditions here or to paste a design."
            )
        elif isinstance(validated, Design):
            text = " ".join((_summary(validated, self._compared), *self._compared.notes))
        show_text(self.message, text)
        self._show_error(self.problem())
        self.changed.emit()

    def _show_undo(self) -> None:
        self.buttons[2].setEnabled(self.is_used.isChecked() and self.model.can_undo)

    def _show_error(self, text: str) -> None:
        show_text(self.wrong, text)


def _summary(design: Design, compared: ComparedConditions) -> str:
    """Return a text with the numbers of samples and conditions in a design, and the conditions that are compared."""
    count = {name: sum(sample.condition == name for sample in design.samples) for name in design.conditions}
    names = ", ".join(f"{name} ({number})" for name, number in list(count.items())[:8]) + (" …" if len(count) > 8 else "")
    if compared.groups:
        ending = f"; {', '.join(compared.groups[1:4])} compared with {compared.groups[0]}"
    else:
        ending = "; no conditions are compared" + ("" if compared.notes else ": a comparison needs two conditions with two samples each")
    left_out = f"; {counted(len(design.left_out), 'file')} left out" if design.left_out else ""
    return f"{counted(len(design.samples), 'sample')} of {counted(len(count), 'condition')}: {names}{ending}{left_out}."
