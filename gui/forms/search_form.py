"""The page of a new search, made from its entry: inputs, project, preset, device, parameters, and the button that runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QFileDialog, QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from engine.entry import Input, Option, Search, SearchRequest, identifying_kinds
from engine.errors import ProteoscopeError
from engine.formats.letters import InputContent
from engine.parameters import preset_description, preset_names, read_preset
from engine.project import is_project
from gui.devices import DeviceSurvey
from gui.forms.device_choice import DeviceChoice
from gui.forms.editors import RunEditor, tool_button
from gui.forms.field import Outlined
from gui.forms.file_survey import FileSurvey, SearchedRun, Survey
from gui.forms.input_files import InputFiles
from gui.forms.parameter_form import ParameterForm
from gui.forms.path_line import FileLine, FolderLine, PathLine, ProjectLine
from gui.forms.prefill import NOTHING, FormPrefill
from gui.forms.preset_files import write_preset
from gui.forms.problems import find_problems
from gui.forms.sections import Columns, Section
from gui.forms.wheel import ChoiceBox
from gui.icons import set_icon
from gui.labels import heading, tip_text, toned_label
from gui.settings import SearchSettings
from gui.tasks import SearchTask
from gui.theme import colours

__all__ = ["SearchForm"]

_PRESET_FILTER = "Presets (*.toml)"


@dataclass(frozen=True)
class _Filled:
    """What the parameters show: a preset by its name or file, its description and values, and those that stand there (None: the same)."""

    preset: str = ""
    description: str = ""
    baseline: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None


class _OnceButton(QPushButton):
    """A button whose double click counts as one."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Pass the second click over."""
        event.accept()


class SearchForm(QWidget):
    """The page. What is missing or wrong stands beside the button Run, which is then disabled.

    Parameters
    ----------
    search : the entry that all of it is made from. survey : looks at files. devices : what can compute.

    Signals
    -------
    run_asked : a `SearchTask`. failed : text of an error with a preset file. touched : the user changed something.
    """

    run_asked = Signal(object)
    failed = Signal(str)
    touched = Signal()
    database_asked = Signal(str)

    def __init__(self, search: Search, survey: FileSurvey, devices: DeviceSurvey) -> None:
        super().__init__()
        self.search, self._model, self._survey = search, search.model, survey
        self.inputs = {one.name: InputFiles(one, survey) for one in search.inputs}
        """What is given, by the names of the search's inputs."""
        self.file_lists = {name: one.files for name, one in self.inputs.items()}
        self.options = {option.name: QCheckBox(option.title) for option in search.options if option.title and not option.metavar}
        self.folders = {
            option.name: FolderLine(option.title, option.help) for option in search.options if option.title and option.is_folder
        }
        """Folders that may be given, by the names of the search's options."""
        self.given_files = {
            option.name: FileLine(option.title, option.help) for option in search.options if option.title and option.is_file
        }
        """Files that may be given, likewise."""
        self.projects = {
            option.name: ProjectLine(option.title, option.help) for option in search.options if option.title and option.is_project
        }
        """Projects that may be gone on from, likewise."""
        self.runs = {option.name: RunEditor() for option in search.options if option.title and option.is_run}
        """Runs of such a project, likewise."""
        self.given_project = next((one for one in self.inputs.values() if self._is_given(one)), None)
        """The input that is the project into which results go; None where the form asks for one."""
        self._runs_of: Path | None = None
        self.project = QLineEdit()
        """Hidden where the project is given as an input."""
        self.project.setPlaceholderText("A new or empty folder, or a project to add to")
        self.project.setAcceptDrops(False)
        self.project_frame = Outlined(self.project)
        self.project_message = toned_label(tone="wrong")
        self.open_project_button = QPushButton()
        """Puts the results into the project that is open."""
        self.open_project_button.hide()
        self._open_project: Path | None = None
        for widget in (self.project_frame, self.project_message):
            widget.setParent(self)
            widget.setVisible(self.given_project is None)
        self.preset = ChoiceBox()
        self.preset_text = toned_label()
        self.suited_text = toned_label(tone="attention")
        """Which preset suits what is given, where another one is chosen."""
        self.undo_text = toned_label(tone="attention")
        self.undo_button = QPushButton("Undo")
        self.device = DeviceChoice(devices)
        self.parameters = ParameterForm(self._model)
        self.run_button = _OnceButton("Run")
        self.reason = QPushButton()
        self.reason.setFlat(True)
        self.scroll_area = QScrollArea()
        self.preset_folder = ""
        """Where the dialogs for preset files open."""
        self._preset_is_chosen = False
        """Whether the user has said which preset: then none is chosen for what is given."""
        self._project_was_suggested = False
        self._project_was_typed = False
        self._filled = _Filled(baseline=self._model.checked({}).model_dump())
        self._replaced: list[tuple[str, _Filled]] = []
        self._is_filling = False
        self._suited: dict[str, dict[str, Any]] = {}
        """What suits the value of a parameter that others follow, by its name."""
        # One check for all that changes together, as when a preset fills every field.
        self._checking = QTimer(self)
        self._checking.setSingleShot(True)
        self._fill_presets()
        self._lay_out()
        self._connect()
        self.choose_preset(search.preset)
        self._suit_followers()
        self.check()

    def task(self) -> SearchTask | None:
        """What the page asks for, or None while something is missing or wrong."""
        parameters = self.parameters.parameters
        if self.what_is_missing() or parameters is None:
            return None
        request = SearchRequest(
            {name: tuple(one.files.paths) for name, one in self.inputs.items()},
            parameters,
            project=self.project_folder(),
            options=self._wishes(),
            device=self.device.value(),
        )
        names = {name: f"what {self._stands_for(one.asked)} left" if one.is_empty else one.name for name, one in self.inputs.items()}
        title = self.search.job.format(**names)
        return SearchTask(self.search, title, request, {name: one.pasted for name, one in self.inputs.items() if one.pasted})

    @property
    def _paths(self) -> dict[str, PathLine]:
        return {**self.folders, **self.given_files, **self.projects}

    def _stands_for(self, asked: Input) -> str:
        """The name of the project that stands for files of an input; empty where they must be given."""
        line = self.projects.get(asked.instead)
        return "" if line is None or line.path is None else line.path.name

    @property
    def _gone_on_from(self) -> Path | None:
        """The project that the search goes on from."""
        if self.given_project is not None:
            return self.given_project.first_file
        return next((line.path for line in self.projects.values() if line.path is not None and not line.problem()), None)

    def take(self, found: Survey, target: QWidget | None) -> None:
        """Add files that were dropped where they were dropped; elsewhere to the first input of their sort that has none, or to the last.

        Parameters
        ----------
        target : what they were dropped on.
        """
        for sort in found.sorts & self.search.sorts:
            parts = [one for one in self.inputs.values() if sort in one.asked.sorts]
            under = [part for part in parts if target is not None and part.isAncestorOf(target)]
            next(iter([*under, *(part for part in parts if part.is_empty), parts[-1]])).files.take(found, sort)

    def take_database(self, name: str, folder: Path) -> None:
        """Have a database, which stands alone, as what is given for an input."""
        files = self.file_lists[name]
        files.clear()
        files.structure_counts.pop(folder, None)
        files.add([folder])

    def _first_file(self) -> Path | None:
        """The file that a project is suggested beside: of the first input, or of the next where the first can do without files."""
        for one in self.inputs.values():
            if one.first_file is not None or not one.asked.can_be_pasted:
                return one.first_file
        return None

    def remember(self, values: SearchSettings) -> None:
        """Put into the settings what the user finds again at the next start."""
        values.preset = str(self.preset.currentData() or "") if self._preset_is_chosen or not self.search.fitting else ""
        values.preset_folder = self.preset_folder
        values.device = self.device.value()
        values.folders = {name: files.start_folder for name, files in self.file_lists.items()}
        values.files = {name: tuple(str(path) for path in one.files.paths) for name, one in self.inputs.items() if one.asked.is_kept}

    def restore(self, values: SearchSettings) -> None:
        """Take what `remember` put there."""
        for name, folder in values.folders.items():
            if name in self.file_lists:
                self.file_lists[name].start_folder = folder
        self.preset_folder = values.preset_folder
        self.device.choose(values.device)
        self._preset_is_chosen = values.preset not in ("", self.search.preset)
        if values.preset.endswith(".toml") and Path(values.preset).is_file():
            self.load_preset_file(Path(values.preset))
        else:
            self.choose_preset(values.preset)
        for name, files in values.files.items():
            if name in self.inputs and self.inputs[name].asked.is_kept:
                self.file_lists[name].add(Path(file) for file in files if Path(file).exists())

    def project_folder(self) -> Path:
        """The project's folder as typed, or as given."""
        if self.given_project is not None:
            return self.given_project.first_file or Path().absolute()
        typed = Path(self.project.text().strip())
        try:
            return typed.expanduser().absolute()
        except RuntimeError:
            # A ~ with the name of nobody.
            return typed.absolute()

    def set_project_folder(self, folder: Path) -> None:
        """Put results into this project."""
        if self.given_project is not None:
            self.given_project.files.offer_project(folder)
            self.given_project.files.give_project(folder)
            return
        self._keep_project()
        self.project.setText(str(folder))

    def offer_project(self, folder: Path) -> None:
        """Tell which project is open: a form of which nothing is said yet begins with it, and all others keep theirs and offer it."""
        if self.given_project is not None:
            self.given_project.files.offer_project(folder)
            return
        self._open_project = folder
        is_begun = any(not one.is_empty for one in self.inputs.values() if not one.asked.is_kept)
        if not (self._project_was_typed or self._project_was_suggested or (is_begun and self.project.text())):
            self.project.setText(str(folder))
        self._show_open_project()

    def _show_open_project(self) -> None:
        folder = self._open_project
        self.open_project_button.setVisible(folder is not None)
        if folder is not None:
            is_taken = bool(self.project.text().strip()) and self.project_folder() == folder
            self.open_project_button.setText(f"Project: {folder.name} (open)".replace("&", "&&"))
            self.open_project_button.setEnabled(not is_taken)
            tip = "The results go into the project that is open" if is_taken else "Put the results into the project that is open"
            self.open_project_button.setToolTip(tip_text(f"{tip}: {folder}"))

    def _take_open_project(self) -> None:
        if self._open_project is not None:
            self.set_project_folder(self._open_project)

    def go_on_from(self, folder: Path, run_id: str, prefill: FormPrefill = NOTHING) -> None:
        """Ask for a search of what a run of a project has found; parameters that this search does not have, or not so, are passed over."""
        self.set_project_folder(folder)
        for line in self.projects.values():
            line.line.setText(str(folder))
        for name, one in self.inputs.items():
            # The project stands for files that were there before.
            if one.asked.instead in self.projects:
                self.file_lists[name].clear()
        for name, paths in prefill.inputs.items():
            self.file_lists[name].clear()
            self.file_lists[name].add(paths)
        for name, text in prefill.pasted.items():
            self.file_lists[name].clear()
            self.inputs[name].paste(text)
        given = self._model.with_current_names(prefill.parameters)
        values = {name: value for name, value in given.items() if name in self._model.model_fields}
        refused = find_problems(self._model, {**self.parameters.values(), **values})[1]
        self.parameters.set_values({name: value for name, value in values.items() if name not in refused})
        self._choose_run(run_id)

    def what_is_missing(self) -> str:
        """Why Run is disabled; empty when it is not."""
        for one in self.inputs.values():
            if one.problem():
                return one.unusable()
            if one.is_empty and not (one.asked.is_optional or self._stands_for(one.asked)):
                return one.missing()
        if self.given_project is None and not self.project.text().strip():
            return "Choose a project folder"
        if self._project_problem():
            return "The project folder cannot be used"
        for line in self._paths.values():
            if line.problem():
                return line.problem()
        for editor in self.runs.values():
            if self._gone_on_from is not None and editor.problem():
                return editor.problem()
        if self.device.problem():
            return self.device.problem()
        for name in self.parameters.problems:
            return f"{self.parameters.fields[name].description.title}: {self.parameters.problems[name]}"
        if not all(one.is_examined for one in self.inputs.values()):
            return "Looking at the files"
        if self.search.fitting and not all(one.files.is_counted for one in self.inputs.values()):
            return "Looking at the sequences"
        parameters = self.parameters.parameters
        return "" if parameters is None else self.search.misfit(self._contents(), self._wishes(), parameters)

    def check(self) -> None:
        """Enable Run, or say why not."""
        self._suggest_project()
        self._suit_preset()
        self._show_open_project()
        problem = self._project_problem()
        self.project_frame.mark(bool(problem))
        self.project_message.setText(problem)
        self.project_message.setVisible(bool(problem))
        missing = self.what_is_missing()
        self.reason.setText(missing.replace("&", "&&"))
        self.reason.setVisible(bool(missing))
        self.run_button.setEnabled(not missing)

    def run(self) -> None:
        """Ask for the run, if it can be done."""
        for one in self.inputs.values():
            one.files.look_for_missing()
        self.check()
        task = self.task()
        if task is not None:
            self._replaced.clear()
            self._show_undo()
            self.run_asked.emit(task)

    def _contents(self) -> dict[str, InputContent]:
        """What is known of the sequences that are given, by the names of the inputs."""
        found = {name: one.content() for name, one in self.inputs.items()}
        return {name: content for name, content in found.items() if content is not None}

    def _wishes(self) -> dict[str, Any]:
        """What is wished besides parameters, by the names of the search's options."""
        return {
            **{name: box.isChecked() for name, box in self.options.items()},
            **{name: line.path for name, line in self._paths.items() if line.path is not None},
            **{name: editor.value() for name, editor in self.runs.items() if editor.value() and self._gone_on_from},
        }

    def _suit_preset(self) -> None:
        """The preset for what is given, until the user chooses one or edits a value: then it is only named."""
        if not self.search.fitting:
            return
        suited, shown = self.search.suited_preset(self._contents(), self._wishes()), self.preset.currentData()
        is_free = not self._preset_is_chosen and not self.parameters.changed_names
        if suited != shown and is_free:
            self.choose_preset(suited)
        differs = suited not in (self.preset.currentData(), self.search.preset)
        self.suited_text.setText(
            f"The preset {suited} suits these files: {preset_description(self.search.kind, suited)}" if differs else ""
        )
        self.suited_text.setVisible(differs)

    def _take_preset(self) -> None:
        """Fill the parameters from the preset that the user has chosen."""
        self._preset_is_chosen = True
        self.choose_preset(self.preset.currentData())
        self.check()

    def choose_preset(self, name: str) -> None:
        """Fill the parameters from a preset, one that ships or a file; unknown ones are left alone."""
        index = self.preset.findData(name)
        if index >= 0:
            self._load(name)
            self._show_preset()

    def load_preset_file(self, path: Path) -> None:
        """Fill the parameters from a preset file and list it among the presets."""
        if self._load(str(path)):
            self._preset_is_chosen = True
            if self.preset.findData(str(path)) < 0:
                self.preset.addItem(path.stem, str(path))
            self._show_preset()

    def save_preset_file(self, path: Path) -> None:
        """Write the parameters as they stand into a preset file."""
        parameters = self.parameters.parameters
        if parameters is None:
            self.failed.emit("The preset was not saved: a parameter has a value that it cannot have.")
            return
        path = path if path.suffix else path.with_suffix(".toml")
        try:
            # What is of one project has no place in a preset.
            of_project = {one.name for one in self._model.describe() if one.editor == "run"}
            write_preset(path, parameters.model_dump(mode="json", exclude=of_project), f"Saved from the window as {path.stem}")
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return
        self.load_preset_file(path)

    def ask_for_preset(self) -> None:
        """Open a dialog for a preset file to load."""
        dialog = self._preset_dialog("Load a preset")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda name: self.load_preset_file(Path(name)))
        dialog.open()

    def ask_where_to_save(self) -> None:
        """Open a dialog for a preset file to write."""
        dialog = self._preset_dialog("Save as a preset")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("toml")
        dialog.fileSelected.connect(lambda name: self.save_preset_file(Path(name)))
        dialog.open()

    def ask_for_project(self) -> None:
        """Open a dialog for the project's folder."""
        dialog = QFileDialog(self, "Project folder", self.project.text() or next(iter(self.file_lists.values())).start_folder)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.set_project_folder(Path(name)))
        dialog.open()

    def redraw(self) -> None:
        """Draw what depends on the look again."""
        for one in self.inputs.values():
            one.redraw()

    def _preset_dialog(self, title: str) -> QFileDialog:
        dialog = QFileDialog(self, title, self.preset_folder)
        dialog.setNameFilters([_PRESET_FILTER])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.directoryEntered.connect(self._remember_preset_folder)
        dialog.fileSelected.connect(lambda name: self._remember_preset_folder(str(Path(name).parent)))
        return dialog

    def _remember_preset_folder(self, folder: str) -> None:
        self.preset_folder = folder

    def _load(self, name: str) -> bool:
        try:
            values = self._model.checked(read_preset(self.search.kind, name))
        except ProteoscopeError as error:
            self.failed.emit(str(error))
            return False
        is_shipped = name in preset_names(self.search.kind)
        description = preset_description(self.search.kind, name) if is_shipped else f"From {name}"
        self._fill(_Filled(name, description, values.model_dump()), f"Preset {name if is_shipped else Path(name).stem}")
        return True

    def undo_preset(self) -> None:
        """Show again what a preset replaced. What was edited since can be brought back in its turn."""
        if self._replaced:
            _, before = self._replaced.pop()
            self._fill(before, "Undo")
            self._show_preset()

    def _fill(self, wanted: _Filled, by: str) -> None:
        """Show a preset; edited values that `by` replaces are kept, to be brought back."""
        edited = {name: bool(self.parameters.fields[name].editor.problem()) for name in self.parameters.changed_names}
        was = self.parameters.values()
        before, self._filled = replace(self._filled, values=was), wanted
        self._is_filling = True
        self.parameters.set_baseline(wanted.baseline, wanted.values)
        self._is_filling = False
        self.preset_text.setText(wanted.description)
        now = self.parameters.values()
        n = sum(was_wrong or was[name] != now[name] for name, was_wrong in edited.items())
        if n:
            self._replaced.append((f"{by} replaced {n} edited value{'' if n == 1 else 's'}.", before))
        self._show_undo()

    def _show_preset(self) -> None:
        """Have the box name the preset that is shown: one that cannot be read stays unchosen."""
        self.preset.setCurrentIndex(self.preset.findData(self._filled.preset))

    def _show_undo(self) -> None:
        self.undo_text.setText(self._replaced[-1][0] if self._replaced else "")
        for widget in (self.undo_text, self.undo_button):
            widget.setVisible(bool(self._replaced))

    def _suit_followers(self) -> None:
        """A value brings those of others that suit it, as a matrix its gap costs, where they were those that suited the one before."""
        values = self.parameters.values()
        for name in values:
            try:
                suited = self._model.following({name: values[name]})
            except ProteoscopeError:
                # What is wrong with it stands in its field.
                continue
            before, self._suited[name] = self._suited.get(name, {}), suited
            # A preset, and what one goes back to, have values of their own.
            is_followed = bool(before) and all(values[follower] == value for follower, value in before.items())
            if suited != before and is_followed and not self._is_filling:
                self.parameters.set_values(suited)
                return

    def _fill_presets(self) -> None:
        self.preset.setPlaceholderText("None ships with this search")
        for name in preset_names(self.search.kind):
            self.preset.addItem(name, name)
            self.preset.setItemData(self.preset.count() - 1, preset_description(self.search.kind, name), Qt.ItemDataRole.ToolTipRole)

    def _suggest_project(self) -> None:
        """A project beside the first file, for who has not said anything else."""
        first = self._first_file() if self.given_project is None else None
        source = first or (self._gone_on_from if self.given_project is None else None)
        if source is not None and (self._project_was_suggested or not (self._project_was_typed or self.project.text())):
            suggestion = str(source) if first is None else str(first.parent / f"{first.name.partition('.')[0]}_proteoscope")
            if self.project.text() != suggestion:
                self.project.setText(suggestion)
            self._project_was_suggested = True

    def _project_problem(self) -> str:
        if not self.project.text().strip():
            return ""
        folder = self.project_folder()
        try:
            if folder.is_file():
                return "This is a file; choose a folder"
            if is_project(folder):
                return ""
            if folder.is_dir():
                strangers = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and entry.name != "project.lock"]
                if strangers:
                    return f"There are other things in this folder ({strangers[0]}); choose a new or empty one, or a project"
            parent = next((one for one in (folder, *folder.parents) if one.exists()), folder)
        except OSError as error:
            return f"This folder cannot be used: {error.strerror}"
        return "" if os.access(parent, os.W_OK) else f"You may not write in {parent}"

    def _connect(self) -> None:
        self._checking.timeout.connect(self.check)
        changing = [one.changed for one in self.inputs.values()]
        changing += [path.changed for path in self._paths.values()]
        changing += [one.changed for one in self.runs.values()]
        changing += [box.toggled for box in self.options.values()]
        for signal in (*changing, self.project.textChanged, self.parameters.changed, self.device.changed):
            signal.connect(self._checking.start)
        for name, one in self.file_lists.items():
            one.database_asked.connect(partial(self.database_asked.emit, name))
            one.counted.connect(self._checking.start)
        for signal in (*changing, self.project.textChanged, self.parameters.changed, self.device.box.activated):
            signal.connect(lambda *_: self.touched.emit())
        if self.given_project is not None:
            self.given_project.changed.connect(self._follow_given_project)
        for line in self.projects.values():
            line.changed.connect(self._follow_given_project)
        self.project.textEdited.connect(self._keep_project)
        self.parameters.changed.connect(self._suit_followers)
        self.preset.activated.connect(self._take_preset)
        self.run_button.clicked.connect(self.run)
        self.undo_button.clicked.connect(self.undo_preset)
        self.reason.clicked.connect(self.show_problem)

    def _is_given(self, one: InputFiles) -> bool:
        return self.search.writes == "given project" and one.asked.sort == "project"

    @property
    def _run_editors(self) -> dict[str, RunEditor]:
        """Editors that choose a run of the given project, by their parameters or options."""
        editors = {name: field.editor for name, field in self.parameters.fields.items()}
        return {**{name: editor for name, editor in editors.items() if isinstance(editor, RunEditor)}, **self.runs}

    def _choose_run(self, run_id: str) -> None:
        self.parameters.set_values({name: run_id for name in self._run_editors if name not in self.runs})
        for editor in self.runs.values():
            editor.set_value(run_id)

    def _follow_given_project(self) -> None:
        """Runs are those of the project that is given now."""
        folder = self._gone_on_from
        if folder != self._runs_of:
            self._runs_of = folder
            self._choose_run("")
            self._look_for_runs()

    def _look_for_runs(self) -> None:
        folder = self._runs_of
        for editor in self._run_editors.values():
            if folder is None:
                editor.offer(None)
            else:
                self._survey.runs(folder, identifying_kinds(), editor.tables, partial(self._offer_runs, folder, editor))

    def _offer_runs(self, folder: Path, editor: RunEditor, runs: list[SearchedRun] | None) -> None:
        if folder == self._runs_of:
            editor.offer(runs)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Look which runs the given project has by now."""
        super().showEvent(event)
        self._look_for_runs()
        for one in self.inputs.values():
            one.files.look_again()

    def _keep_project(self) -> None:
        """What the user says of the project stays, also that there is none."""
        self._project_was_suggested, self._project_was_typed = False, True

    def show_problem(self) -> None:
        """Bring what is missing or wrong into view."""
        for widget, is_missing in (
            *((one, one.is_empty or bool(one.problem())) for one in self.inputs.values()),
            (self.project_frame, self.given_project is None and (not self.project.text().strip() or bool(self._project_problem()))),
            (self.device, bool(self.device.problem())),
        ):
            if is_missing:
                self.scroll_area.ensureWidgetVisible(widget)
                return
        frame = self.parameters.show_first_problem()
        if frame is not None:
            self.scroll_area.ensureWidgetVisible(frame)

    def _lay_out(self) -> None:
        cards = Columns(400)
        for one in self.inputs.values():
            card = Section(one.asked.title)
            card.grid.addWidget(one, 0, 0, 1, 3)
            cards.add(card)
        if self.given_project is None or self.options or self._paths:
            cards.add(self._project_card())
        cards.add(self._preset_card())
        device_card = Section("Device")
        device_card.grid.addWidget(self.device, 0, 0, 1, 3)
        cards.add(device_card)
        content = QWidget()
        page = QVBoxLayout(content)
        page.setContentsMargins(18, 14, 18, 14)
        page.setSpacing(14)
        page.addWidget(heading(f"New {self.search.name}", 1.5))
        page.addWidget(cards)
        page.addWidget(self.parameters, 1)
        self.scroll_area.setWidget(content)
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.reason.setToolTip("Show where")
        set_icon(self.reason, "information")
        self.run_button.setObjectName("primary")
        set_icon(self.run_button, "run", QColor(colours().accent_text))
        self.run_button.setMinimumWidth(120)
        self.run_button.setToolTip("Queue this search (Ctrl+R)")
        bottom = QHBoxLayout()
        bottom.setContentsMargins(18, 8, 18, 10)
        bottom.addStretch(1)
        bottom.addWidget(self.reason)
        bottom.addWidget(self.run_button)
        line = QFrame()
        line.setFrameShape(QFrame.Shape.HLine)
        line.setFrameShadow(QFrame.Shadow.Plain)
        line.setForegroundRole(self.palette().ColorRole.Mid)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.scroll_area, 1)
        whole.addWidget(line)
        whole.addLayout(bottom)

    def _project_card(self) -> Section:
        card = Section("Project" if self.given_project is None else "Options")
        if self.given_project is None:
            row = QHBoxLayout()
            row.addWidget(self.project_frame, 1)
            row.addWidget(tool_button("folder", "Choose a folder", self.ask_for_project))
            card.grid.addWidget(self.open_project_button, 0, 0, 1, 3, Qt.AlignmentFlag.AlignLeft)
            set_icon(self.open_project_button, "open")
            self.open_project_button.clicked.connect(self._take_open_project)
            card.grid.addLayout(row, 1, 0, 1, 3)
            card.grid.addWidget(self.project_message, 2, 0, 1, 3)
        for widget in (*self.options.values(), *self._paths.values()):
            card.grid.addWidget(widget, card.grid.rowCount(), 0, 1, 3)
        for option in self.search.options:
            if option.name in self.runs:
                self._place_run(card, option)
        self.project_message.hide()
        self.project.setAccessibleName("Project folder")
        return card

    def _place_run(self, card: Section, option: Option) -> None:
        """The choice of a run, below the project that it is of."""
        editor, row = self.runs[option.name], card.grid.rowCount()
        label = QLabel(option.title)
        label.setBuddy(editor)
        editor.setToolTip(f"{option.help[:1].upper()}{option.help[1:]}")
        card.grid.addWidget(label, row, 0)
        card.grid.addWidget(editor, row, 1, 1, 2)

    def _preset_card(self) -> Section:
        card = Section("Preset")
        row = QHBoxLayout()
        row.addWidget(self.preset, 1)
        row.addWidget(tool_button("open", "Load a preset file", self.ask_for_preset))
        row.addWidget(tool_button("save", "Save the parameters as a preset file", self.ask_where_to_save))
        card.grid.addLayout(row, 0, 0, 1, 3)
        card.grid.addWidget(self.preset_text, 1, 0, 1, 3)
        card.grid.addWidget(self.suited_text, 2, 0, 1, 3)
        self.suited_text.hide()
        undo = QHBoxLayout()
        undo.addWidget(self.undo_text, 1)
        undo.addWidget(self.undo_button)
        card.grid.addLayout(undo, 3, 0, 1, 3)
        self.undo_button.setToolTip("Bring the edited values back")
        set_icon(self.undo_button, "reset")
        self._show_undo()
        self.preset.setAccessibleName("Preset")
        return card
