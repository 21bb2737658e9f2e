"""The choice of a preset, which fills the parameters of a form: those that ship, files, and the way back from each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.parameters import preset_description, preset_names, read_preset
from proteoscope.engine.results.counts import counted
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.preset_files import write_preset
from proteoscope.gui.forms.wheel import ChoiceBox
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import toned_label

__all__ = ["PresetChoice"]

_PRESET_FILTER = "Presets (*.toml)"
_RUN = "run"  # as every search calls it
_MAXIMUM_KEPT = 50
"""Steps that can be taken back."""


@dataclass(frozen=True)
class _Filled:
    """What the parameters show: a preset by its name or file, its description and values, and those that stand there (None: the same)."""

    preset: str = ""
    description: str = ""
    baseline: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None

    @property
    def preset_title(self) -> str:
        """The preset as it is told."""
        return Path(self.preset).stem if self.preset.endswith(".toml") else self.preset


class PresetChoice(QWidget):
    """A box of presets, what the chosen one is for, and a line that says what a preset or a reset replaced, with a button that brings it
    back.

    Parameters
    ----------
    search : whose presets they are. parameters : that they fill.

    Signals
    -------
    chosen : the user chose one in the box. failed : text of an error with a preset file.
    """

    chosen = Signal()
    failed = Signal(str)

    def __init__(self, search: Search, parameters: ParameterForm) -> None:
        super().__init__()
        self._search, self._model, self._parameters = search, search.model, parameters
        self.box = ChoiceBox()
        self.description = toned_label()
        self.suited_text = toned_label(tone="attention")
        """Which preset suits what is given, where another one is chosen."""
        self.undo_text = toned_label(tone="attention")
        self.undo_button = QPushButton("Undo")
        self.start_folder = ""
        """Where the dialogs for preset files open."""
        self.is_chosen = False
        """Whether the user has said which preset: then none is chosen for what is given."""
        self.is_filling = False
        """Whether values change because a preset fills them."""
        self._filled = _Filled(baseline=self._model.checked({}).model_dump())
        self._replaced: list[tuple[str, _Filled]] = []
        self.box.setPlaceholderText("None ships with this search")
        for name in preset_names(search.kind):
            self.box.addItem(name, name)
            self.box.setItemData(self.box.count() - 1, preset_description(search.kind, name), Qt.ItemDataRole.ToolTipRole)
        self.box.activated.connect(self._take)
        self.undo_button.clicked.connect(self.undo)
        parameters.resetting.connect(self._keep_before_reset)
        self._lay_out()

    @property
    def name(self) -> str:
        """The preset that is shown: one that ships by its name, a file by its path; empty where there is none."""
        return str(self.box.currentData() or "")

    def choose(self, name: str) -> None:
        """Fill the parameters from a preset, one that ships or a file of the box; unknown ones are left alone."""
        if self.box.findData(name) >= 0:
            self._load(name)
            self._show_name()

    def load_file(self, path: Path) -> None:
        """Fill the parameters from a preset file and list it among the presets."""
        if self._load(str(path)):
            self.is_chosen = True
            if self.box.findData(str(path)) < 0:
                self.box.addItem(path.stem, str(path))
            self._show_name()

    def save_file(self, path: Path) -> None:
        """Write the parameters as they stand into a preset file."""
        parameters = self._parameters.parameters
        if parameters is None:
            self.failed.emit("The preset was not saved: a parameter has a value that it cannot have.")
            return
        path = path if path.suffix else path.with_suffix(".toml")
        try:
            # What is of one project has no place in a preset.
            content = parameters.model_dump(mode="json", exclude=self._of_project)
            write_preset(path, content, f"Saved from the window as {path.stem}")
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self.load_file(path)

    def suit(self, suited: str) -> None:
        """The preset for what is given, until the user chooses one or edits a value: then it is only named."""
        if suited != self.name and not self.is_chosen and not self._parameters.changed_names:
            self.choose(suited)
        differs = suited not in (self.name, self._search.preset)
        self.suited_text.setText(
            f"The preset {suited} suits these files: {preset_description(self._search.kind, suited)}" if differs else ""
        )
        self.suited_text.setVisible(differs)

    def restore(self, name: str, start_folder: str) -> None:
        """Take what was remembered: the name of a preset or its file, and where dialogs open."""
        self.start_folder = start_folder
        self.is_chosen = name not in ("", self._search.preset)
        if name.endswith(".toml") and Path(name).is_file():
            self.load_file(Path(name))
        else:
            self.choose(name)

    def undo(self) -> None:
        """Show again what a preset replaced. What was edited since can be brought back in its turn."""
        if self._replaced:
            _, before = self._replaced.pop()
            self._fill(before, "Undo")
            self._show_name()

    def forget_replaced(self) -> None:
        """There is nothing to go back to any more."""
        self._replaced.clear()
        self._show_undo()

    def ask_for_file(self) -> None:
        """Open a dialog for a preset file to load."""
        dialog = self._dialog("Load a preset")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.load_file(Path(name)))
        dialog.open()

    def ask_where_to_save(self) -> None:
        """Open a dialog for a preset file to write."""
        dialog = self._dialog("Save as a preset")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("toml")
        dialog.fileSelected.connect(lambda name: self.save_file(Path(name)))
        dialog.open()

    def _dialog(self, title: str) -> QFileDialog:
        dialog = QFileDialog(self, title, self.start_folder)
        dialog.setNameFilters([_PRESET_FILTER])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.directoryEntered.connect(self._remember_folder)
        dialog.fileSelected.connect(lambda name: self._remember_folder(str(Path(name).parent)))
        return dialog

    def _remember_folder(self, folder: str) -> None:
        self.start_folder = folder

    def _take(self) -> None:
        self.is_chosen = True
        before = replace(self._filled, values=self._parameters.values())
        self.choose(self.name)
        if not self._replaced and before.preset != self._filled.preset:
            # A walk through presets by the keys is taken back as a whole.
            self._keep(f"Preset {self._filled.preset_title} chosen.", before)
        self.chosen.emit()

    def _keep_before_reset(self) -> None:
        n = len(self._parameters.changed_names)
        if n:
            self._keep(f"Reset replaced {counted(n, 'edited value')}.", replace(self._filled, values=self._parameters.values()))

    def _keep(self, text: str, before: _Filled) -> None:
        """Keep what was shown before, to be brought back."""
        self._replaced.append((text, before))
        del self._replaced[:-_MAXIMUM_KEPT]
        self._show_undo()

    @property
    def _of_project(self) -> set[str]:
        """Parameters that mean something in one project alone: the runs that a search goes on from."""
        return {_RUN} & self._parameters.fields.keys()

    def _load(self, name: str) -> bool:
        try:
            told = read_preset(self._search.kind, name)
            values = self._model.checked(told).model_dump()
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return False
        is_shipped = name in preset_names(self._search.kind)
        # A run that was chosen stays: presets say nothing of it.
        now = self._parameters.values()
        kept = {one: now[one] for one in self._of_project - told.keys()}
        description = preset_description(self._search.kind, name) if is_shipped else f"From {name}"
        wanted = _Filled(name, description, values, values | kept)
        self._fill(wanted, f"Preset {wanted.preset_title}")
        return True

    def _fill(self, wanted: _Filled, by: str) -> None:
        """Show a preset; edited values that `by` replaces are kept, to be brought back."""
        edited = {name: bool(self._parameters.fields[name].editor.problem()) for name in self._parameters.changed_names}
        was = self._parameters.values()
        before, self._filled = replace(self._filled, values=was), wanted
        self.is_filling = True
        self._parameters.set_baseline(wanted.baseline, wanted.values)
        self.is_filling = False
        self.description.setText(wanted.description)
        now = self._parameters.values()
        n = sum(was_wrong or was[name] != now[name] for name, was_wrong in edited.items())
        if n:
            self._keep(f"{by} replaced {counted(n, 'edited value')}.", before)
        self._show_undo()

    def _show_name(self) -> None:
        """Have the box name the preset that is shown: one that cannot be read stays unchosen."""
        self.box.setCurrentIndex(self.box.findData(self._filled.preset))

    def _show_undo(self) -> None:
        self.undo_text.setText(self._replaced[-1][0] if self._replaced else "")
        for widget in (self.undo_text, self.undo_button):
            widget.setVisible(bool(self._replaced))

    def _lay_out(self) -> None:
        self.box.setAccessibleName("Preset")
        self.undo_button.setToolTip("Bring back what was there before (Ctrl+Z)")
        set_icon(self.undo_button, "reset")
        self.suited_text.hide()
        row = QHBoxLayout()
        row.addWidget(self.box, 1)
        row.addWidget(tool_button("open", "Load a preset file", self.ask_for_file))
        row.addWidget(tool_button("save", "Save the parameters as a preset file", self.ask_where_to_save))
        undo = QHBoxLayout()
        undo.addWidget(self.undo_text, 1)
        undo.addWidget(self.undo_button)
        page = QVBoxLayout(self)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(2)
        page.addLayout(row)
        page.addWidget(self.description)
        page.addWidget(self.suited_text)
        page.addLayout(undo)
        self._show_undo()
