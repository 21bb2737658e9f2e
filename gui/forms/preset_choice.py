"""Field for a preset of the program or from a file. It fills in the parameters of a form; this can be undone."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.parameters import preset_description, preset_names, read_preset
from proteoscope.engine.results.counts import counted
from proteoscope.gui.buttons import tool_button
from proteoscope.gui.file_dialogs import prompt_for_path
from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.preset_files import write_preset
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import toned_label
from proteoscope.gui.layouts import in_column, in_row
from proteoscope.gui.undo import Change, forget_changes, last_change, record, take_back_last

_PRESET_FILTER = "Presets (*.toml)"
_RUN = "run"  # name of this parameter in all searches that have it


@dataclass(frozen=True)
class _Filled:
    """State of the parameter form.

    `preset` is the name or file of the preset, `description` and `baseline` are the description and the values of the preset, and `values`
    are the values in the form, or None if they are equal to `baseline`.
    """

    preset: str = ""
    description: str = ""
    baseline: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None

    @property
    def preset_title(self) -> str:
        """Title of the preset."""
        return Path(self.preset).stem if self.preset.endswith(".toml") else self.preset


class PresetChoice(QWidget):
    """Field for a preset with its description, and an Undo button after values were replaced.

    Parameters
    ----------
    search : Search
        Search whose presets are offered.
    parameters : ParameterForm
        Form whose parameters are set.

    Signals
    -------
    chosen
        The user chose a preset in the box.
    failed
        Error text of a preset file.
    """

    chosen = Signal()
    failed = Signal(str)

    def __init__(self, search: Search, parameters: ParameterForm) -> None:
        super().__init__()
        self._search, self._model, self.parameters = search, search.model, parameters
        self.box = ChoiceBox()
        self.description = toned_label()
        self.suited_text = toned_label(tone="attention")
        """Label that names the preset that suits the input, shown if another preset is chosen."""
        self.undo_text = toned_label(tone="attention")
        self.undo_button = QPushButton("Undo")
        self.start_folder = ""
        """Start folder of the preset dialogs."""
        self.is_chosen = False
        """True if the user has chosen a preset, so that it is no longer chosen automatically."""
        self.is_filling = False
        """True while values are being filled in from a preset."""
        self._filled = _Filled(baseline=self._model.checked({}).model_dump())
        self.box.setPlaceholderText("No presets for this search")
        for name in preset_names(search.kind):
            self.box.addItem(name, name)
            self.box.setItemData(self.box.count() - 1, preset_description(search.kind, name), Qt.ItemDataRole.ToolTipRole)
        self.box.activated.connect(self._take)
        self.undo_button.clicked.connect(self.undo)
        parameters.resetting.connect(self._add_undo_step_before_reset)
        self._lay_out()

    @property
    def name(self) -> str:
        """Selected preset: name of a preset delivered with the program, path of a preset file, or ''."""
        return str(self.box.currentData() or "")

    def choose(self, name: str) -> None:
        """Set the parameters to those of a preset in the list; unknown names are ignored."""
        if self.box.findData(name) >= 0:
            self._load(name)
            self._show_name()

    def load_file(self, path: Path) -> None:
        """Set the parameters to those of a preset file, and add it to the list."""
        if self._load(str(path)):
            self.is_chosen = True
            if self.box.findData(str(path)) < 0:
                self.box.addItem(path.stem, str(path))
            self._show_name()

    def save_file(self, path: Path) -> None:
        """Write the current parameters to a preset file."""
        parameters = self.parameters.parameters
        if parameters is None:
            self.failed.emit("The preset was not saved: a parameter has an invalid value.")
            return
        path = path if path.suffix else path.with_suffix(".toml")
        try:
            # A preset must not contain values that refer to one project.
            content = parameters.model_dump(mode="json", exclude=self._of_project)
            write_preset(path, content, f"Saved from the window as {path.stem}")
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self.load_file(path)

    def suit(self, suited: str) -> None:
        """Select the preset that suits the input.

        If the user has selected a preset or edited a value, only show the name of the suitable preset.
        """
        if suited != self.name and not self.is_chosen and not self.parameters.changed_names:
            self.choose(suited)
        differs = suited not in (self.name, self._search.preset)
        self.suited_text.setText(
            f"The preset {suited} suits these files: {preset_description(self._search.kind, suited)}" if differs else ""
        )
        self.suited_text.setVisible(differs)

    def restore(self, name: str) -> None:
        """Select the preset of an earlier search again."""
        self.is_chosen = name not in ("", self._search.preset)
        if name.endswith(".toml") and Path(name).is_file():
            self.load_file(Path(name))
        else:
            self.choose(name)

    def reset(self) -> None:
        """Select the default preset of the search, and clear the undo history."""
        self.is_chosen = False
        if self.name != self._search.preset or self.parameters.changed_names:
            self.choose(self._search.preset)
        self.forget_replaced()

    def undo(self) -> None:
        """Restore the values that the last choice of a preset, or the last reset, replaced.

        If the user edited values after that, Redo restores these edits too.
        """
        take_back_last(self)

    def forget_replaced(self) -> None:
        """Clear the undo history."""
        forget_changes(self)

    def prompt_for_file(self) -> None:
        """Open a dialog for a preset file to load."""
        self._remember_folder_of(prompt_for_path(self, "Load a preset", self.load_file, folder=self.start_folder, filters=[_PRESET_FILTER]))

    def prompt_for_path(self) -> None:
        """Open a dialog for a preset file to write."""
        dialog = prompt_for_path(
            self, "Save as a preset", self.save_file, "save", folder=self.start_folder, filters=[_PRESET_FILTER], suffix="toml"
        )
        self._remember_folder_of(dialog)

    def _remember_folder_of(self, dialog: QFileDialog) -> None:
        dialog.directoryEntered.connect(self._remember_folder)
        dialog.fileSelected.connect(lambda name: self._remember_folder(str(Path(name).parent)))

    def _remember_folder(self, folder: str) -> None:
        self.start_folder = folder

    def _take(self) -> None:
        self.is_chosen = True
        before = self._content()
        self.choose(self.name)
        if last_change(self) is None and before.preset != self._filled.preset:
            # Undo reverses a series of presets that were chosen with the arrow keys as a single step.
            self._add_undo_step(f"choose the preset {self._filled.preset_title}", f"Preset {self._filled.preset_title} chosen.", before)
        self.chosen.emit()

    def _add_undo_step_before_reset(self) -> None:
        n = len(self.parameters.changed_names)
        if n:
            self._add_undo_step("reset the parameters", f"Reset replaced {counted(n, 'edited value')}.", self._content())

    def _add_undo_step(self, what: str, text: str, before: _Filled) -> None:
        """Add the previous content to the undo history."""
        record(Change(what, self, before, None, self._restore_content, read=self._content, note=text), self._show_undo)

    def _content(self) -> _Filled:
        return replace(self._filled, values=self.parameters.values())

    def _restore_content(self, content: _Filled) -> None:
        self._show_content(content)
        self._show_name()

    @property
    def _of_project(self) -> set[str]:
        """Names of the parameters whose values are valid in one project only (the runs that a search uses); presets do not contain them."""
        return {_RUN} & self.parameters.fields.keys()

    def _load(self, name: str) -> bool:
        try:
            preset_values = read_preset(self._search.kind, name)
            values = self._model.checked(preset_values).model_dump()
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return False
        is_shipped = name in preset_names(self._search.kind)
        # Presets do not contain runs, so keep the chosen run.
        now = self.parameters.values()
        retained = {name: now[name] for name in self._of_project - preset_values.keys()}
        description = preset_description(self._search.kind, name) if is_shipped else f"From {name}"
        wanted = _Filled(name, description, values, values | retained)
        self._fill(wanted)
        return True

    def _fill(self, wanted: _Filled) -> None:
        """Show a preset, and add an undo step if it replaces edited values."""
        edited = {name: bool(self.parameters.fields[name].editor.problem()) for name in self.parameters.changed_names}
        before, was = self._content(), self.parameters.values()
        self._show_content(wanted)
        now = self.parameters.values()
        n = sum(was_wrong or was[name] != now[name] for name, was_wrong in edited.items())
        if n:
            title = wanted.preset_title
            self._add_undo_step(f"choose the preset {title}", f"Preset {title} replaced {counted(n, 'edited value')}.", before)

    def _show_content(self, wanted: _Filled) -> None:
        self._filled = wanted
        self.is_filling = True
        self.parameters.set_baseline(wanted.baseline, wanted.values)
        self.is_filling = False
        self.description.setText(wanted.description)

    def _show_name(self) -> None:
        """Show the current preset in the box, or an empty box if the preset cannot be read."""
        self.box.setCurrentIndex(self.box.findData(self._filled.preset))

    def _show_undo(self) -> None:
        change = last_change(self)
        self.undo_text.setText("" if change is None else change.note)
        for widget in (self.undo_text, self.undo_button):
            widget.setVisible(change is not None)

    def _lay_out(self) -> None:
        self.box.setAccessibleName("Preset")
        self.undo_button.setToolTip("Restore the previous values (Ctrl+Z)")
        set_icon(self.undo_button, "reset")
        self.suited_text.hide()
        in_column(
            in_row(
                (self.box, 1),
                tool_button("open", "Load a preset file", self.prompt_for_file),
                tool_button("save", "Save the parameters as a preset file", self.prompt_for_path),
            ),
            self.description,
            self.suited_text,
            in_row((self.undo_text, 1), self.undo_button),
            on=self,
            spacing=2,
        )
        self._show_undo()
