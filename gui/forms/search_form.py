"""Page of a new search: inputs, project, preset, device, parameters and the Run button."""

from functools import partial
from pathlib import Path
from typing import Any, get_args

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QMouseEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QPushButton, QWidget

from proteoscope.engine.entry import Input, Option, SampleData, Search, SearchRequest, identifying_kinds
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.files import is_there
from proteoscope.engine.formats.sequence_type import InputContent
from proteoscope.engine.project.paths import EXPERIMENT
from proteoscope.engine.searches import EXPERIMENT_KINDS
from proteoscope.gui.buttons import ElidingButton, PrimaryButton
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.forms.advice_line import AdviceLine
from proteoscope.gui.forms.design_editor import DesignEditor
from proteoscope.gui.forms.device_choice import DeviceChoice
from proteoscope.gui.forms.editors import RunEditor
from proteoscope.gui.forms.estimate_line import EstimateLine
from proteoscope.gui.forms.file_inspection import FileInspection, FileInspector, SearchedRun
from proteoscope.gui.forms.input_files import InputFiles
from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.path_line import FileLine, FolderLine, PathLine, ProjectLine
from proteoscope.gui.forms.prefill import NOTHING, FormPrefill
from proteoscope.gui.forms.preset_choice import PresetChoice
from proteoscope.gui.forms.problems import find_problems
from proteoscope.gui.forms.project_choice import ProjectChoice
from proteoscope.gui.forms.sections import Columns, Section
from proteoscope.gui.icons import set_icon
from proteoscope.gui.labels import field_label, heading, tip_text
from proteoscope.gui.layouts import STRETCH, in_column, in_row, make_scroll_area, widget_with
from proteoscope.gui.settings import SearchSettings, sample_project
from proteoscope.gui.tasks import ExperimentTask, SearchTask


class _OnceButton(PrimaryButton):
    """Button that treats a double click as a single click."""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Ignore the second click."""
        event.accept()


class SearchForm(QWidget):
    """Page of a new search; while input is missing or invalid, the Run button is disabled, and the reason is shown next to it.

    Parameters
    ----------
    search : Search
        Description of the search, from which the page is generated.
    inspector : FileInspector
        Inspector that determines the types of files.
    devices : DeviceDetector
        Detector of the devices.
    parameters : ParameterForm, optional
        Existing widget with the parameters; otherwise a new one is created.

    Signals
    -------
    run_requested
        A `SearchTask`, or an `ExperimentTask`.
    failed
        Error text of a preset file.
    touched
        The user has changed the content of the form.
    database_requested
        Name of the input for which a database is to be built.
    """

    run_requested = Signal(object)
    failed = Signal(str)
    touched = Signal()
    database_requested = Signal(str)

    def __init__(self, search: Search, inspector: FileInspector, devices: DeviceDetector, presets: PresetChoice | None = None) -> None:
        super().__init__()
        self.search, self._model, self._inspector = search, search.model, inspector
        self.inputs = {
            input_spec.name: InputFiles(
                input_spec, inspector, {other.title: other.contents for other in search.inputs if other is not input_spec}
            )
            for input_spec in search.inputs
        }
        """Widgets of the inputs by name."""
        self.file_lists = {name: field.files for name, field in self.inputs.items()}
        for files in self.file_lists.values():
            files.folder_of_others = self._folder_of_files
        self.options = {option.name: QCheckBox(option.title) for option in search.options if option.title and not option.metavar}
        self.folders = {
            option.name: FolderLine(option.title, option.help) for option in search.options if option.title and option.is_folder
        }
        """Optional folders by option name."""
        self.given_files = {
            option.name: FileLine(option.title, option.help)
            for option in search.options
            if option.title and option.is_file and not option.editor
        }
        """Optional files by option name."""
        self.designs = {option.name: DesignEditor(option.help) for option in search.options if option.editor == "design"}
        """Editors of experimental designs, by option name."""
        self.projects = {
            option.name: ProjectLine(option.title, option.help) for option in search.options if option.title and option.is_project
        }
        """Optional projects whose results are used, by option name."""
        self.runs = {option.name: RunEditor() for option in search.options if option.title and option.is_run}
        """Optional runs of these projects, by option name."""
        self.given_project = next((field for field in self.inputs.values() if self._is_given(field)), None)
        """The input that is also the project for the results, or None if the form has a separate field for the project."""
        self._runs_of: Path | None = None
        self.project = ProjectChoice(lambda: next(iter(self.file_lists.values())).start_folder)
        """Field for the project; hidden if the project is an input."""
        self.project.setParent(self)
        self.project.setVisible(self.given_project is None)
        self.experiment = QCheckBox("Search the runs of the experiment")
        """Check box: search each run of the project's experiment separately, instead of the files of the form."""
        self.experiment.setToolTip("Each unfinished run is searched separately with these settings; its results are stored in the project")
        self.experiment.setParent(self)
        self.experiment.hide()
        self.device = DeviceChoice(devices, takes_workers=search.takes_workers)
        self.presets = presets or PresetChoice(search, ParameterForm(self._model))
        self.parameters = self.presets.parameters
        self.run_button = _OnceButton("Run", "run")
        self.advice = AdviceLine()
        """Advice on a preset that suits the files better."""
        self.estimate = EstimateLine(lambda: None if self.uses_experiment else self.task())
        """Estimated run time and memory."""
        self.reason = ElidingButton()
        self.last_button = QPushButton("Use last settings")
        """Button that fills in the files and settings of the previous search."""
        self._last: FormPrefill | None = None
        self._suited: dict[str, dict[str, Any]] = {}
        """Values last set for parameters that depend on another parameter, by the name of that parameter; see `_suit_followers`."""
        # Several changes at once, such as a preset that sets every field, lead to one check only.
        self._checking = QTimer(self, singleShot=True)
        self._lay_out()
        self._connect()
        if presets is None:
            self.presets.choose(search.preset)
        self._suit_followers()
        self.check()

    @property
    def uses_experiment(self) -> bool:
        """True if the runs of the experiment are to be searched instead of the files of the form."""
        return self.experiment.isChecked() and not self.experiment.isHidden()

    def task(self) -> SearchTask | None:
        """Return the task that runs the search, or None if the form is incomplete or invalid.

        If the runs of an experiment are to be searched, the task has no spectra.
        """
        parameters = self.parameters.parameters
        if self.validation_error() or parameters is None:
            return None
        request = SearchRequest(
            {name: () if field in self._replaced else tuple(field.files.paths) for name, field in self.inputs.items()},
            parameters,
            project=self.project_folder(),
            options=self._option_values(),
            device=self.device.value() if self.device.workers.are_here else "auto",
            workers=self.device.workers.requested,
            certificates=self.device.workers.certificates or None,
        )
        names = {name: self._replacement(field.spec) if field.is_empty else field.name for name, field in self.inputs.items()}
        title = self.search.job.format(**names)
        pasted = {name: field.pasted for name, field in self.inputs.items() if field.pasted}
        tables = {name: editor.text() for name, editor in self.designs.items() if editor.text()}
        return SearchTask(self.search, title, request, pasted, tables)

    @property
    def _replaced(self) -> list[InputFiles]:
        """Inputs whose files the runs of the experiment replace."""
        return [field for field in self.inputs.values() if field.spec.content == "spectra" and self.uses_experiment]

    @property
    def _paths(self) -> dict[str, PathLine]:
        return {**self.folders, **self.given_files, **self.projects}

    def _replacement(self, spec: Input) -> str:
        """Return a text for what is used instead of the files of an input, such as ``results of my_project``; '' if files are needed."""
        if spec.instead in self.options:
            return spec.instead if self.options[spec.instead].isChecked() else ""
        line = self._used_projects.get(spec.instead)
        return "" if line is None or line.path is None else f"results of {line.path.name}"

    @property
    def _used_project(self) -> Path | None:
        """Folder of the project whose results the search uses, or None."""
        if self.given_project is not None:
            return self.given_project.first_file
        return next((line.path for line in self._used_projects.values() if line.path is not None and not line.problem()), None)

    @property
    def _used_projects(self) -> dict[str, ProjectLine]:
        """Fields of optional projects by option name; empty if an experiment is searched, since this uses no results of other runs."""
        return {} if self.uses_experiment else self.projects

    def take(self, inspection: FileInspection, target: QWidget | None) -> None:
        """Add dropped files, separately for each type, to an input.

        This is the input under the pointer if it accepts the files; otherwise the first empty input for files of this type, or, if none is
        empty, the last one.

        Parameters
        ----------
        inspection : FileInspection
            The dropped files.
        target : QWidget or None
            Widget on which they were dropped.
        """
        for content in inspection.contents & self.search.contents:
            files = inspection.of_type(content)
            parts = [field for field in self.inputs.values() if content in field.spec.contents]
            # Files that fit two inputs go to the one on which they were dropped.
            fitting = [field for field in self.inputs.values() if all(file.contents.intersection(field.spec.contents) for file in files)]
            under = [part for part in fitting if target is not None and part.isAncestorOf(target)]
            next(iter([*under, *(part for part in parts if part.is_empty), parts[-1]])).files.take(files)

    def take_sample(self, data: str = "") -> None:
        """Fill the form with sample files and the preset for them; inputs that are projects are unchanged.

        Parameters
        ----------
        data : str
            Name of the sample data, or '' for the default sample.
        """
        sample = self.search.demo_with(data)
        if sample is None:
            return
        for name, field in self.inputs.items():
            if field.spec.content != "project" and (name in sample.samples or sample.after):
                field.files.clear()
        for name, files in sample.inputs.items():
            self.file_lists[name].add(files)
        self.presets.choose(sample.preset)
        self._show_design_files()
        for name, path in sample.option_files.items():
            self.designs[name].restore(path)
        # Do not mix the results of different sample data in one project.
        others = {sample_project(other) for other in get_args(SampleData)} - {sample_project(sample.data)}
        if self.given_project is None and (self.project.is_empty or self.project_folder() in others):
            self.project.set_folder(sample_project(sample.data))

    def take_database(self, name: str, folder: Path) -> None:
        """Replace the files of an input by a database."""
        files = self.file_lists[name]
        files.clear()
        files.structure_counts.pop(folder, None)
        files.add([folder])

    def _folder_of_files(self) -> str:
        """Return the folder of the first file of the form, or ''."""
        files = (path for field in self.inputs.values() if field.spec.content != "project" for path in field.files.paths)
        first = next(files, None)
        return "" if first is None else str(first.parent)

    def _first_file(self) -> Path | None:
        """Return the file next to which a project folder is suggested: the first file of the form, if no earlier input lacks files."""
        for field in self.inputs.values():
            if field.first_file is not None or not (field.spec.can_be_pasted or self._replacement(field.spec)):
                return field.first_file
        return None

    @property
    def is_touched(self) -> bool:
        """True if the form has files, pasted text, a selected preset, or edited values."""
        has_files = any(not field.is_empty for field in self.inputs.values() if field.spec.content != "project")
        has_text = any(field.box is not None and field.box.text.toPlainText() for field in self.inputs.values())
        has_options = any(box.isChecked() for box in self.options.values()) or any(line.line.text() for line in self._paths.values())
        has_preset = self.presets.is_chosen or (not self.search.fitting and self.presets.name != self.search.preset)
        return has_files or has_text or has_options or has_preset or bool(self.parameters.changed_names)

    def content(self) -> FormPrefill:
        """Return the content of the form, with which it can be filled again."""
        return FormPrefill(
            inputs={name: tuple(field.files.paths) for name, field in self.inputs.items()},
            parameters=self.parameters.values(),
            pasted={name: field.box.text.toPlainText() for name, field in self.inputs.items() if field.box is not None},
            tables={name: editor.table() for name, editor in self.designs.items()},
            options={name: box.isChecked() for name, box in self.options.items()},
            paths={name: line.line.text() for name, line in self._paths.items()},
            runs={name: editor.value() for name, editor in self.runs.items()},
            preset=self.presets.name if self.presets.is_chosen or not self.search.fitting else "",
            project=self.project.chosen,
        )

    def empty_for_new_search(self) -> None:
        """Empty the form, and show a button that restores its content."""
        if self.is_touched:
            self._offer_last(self.content())
        for field in self.inputs.values():
            field.files.empty_for_new_search()
            field.paste("")
        for box in (*self.options.values(), self.experiment):
            box.setChecked(False)
        for line in self._paths.values():
            line.line.clear()
        self.presets.reset()
        self._choose_run("")
        if self.given_project is None:
            self.project.reset()
        self.scroll_area.verticalScrollBar().setValue(0)

    def use_last(self) -> None:
        """Restore the content that the form had before it was emptied or the program was started."""
        if self._last is not None:
            last, self._last = self._last, None
            self.last_button.hide()
            self._fill(last)

    def _offer_last(self, content: FormPrefill) -> None:
        """Show a button that fills in the given content."""
        self._last = content
        self.last_button.show()
        for name, field in self.inputs.items():
            if field.spec.is_offered_again:
                field.files.offer_last(content.inputs.get(name, ()))

    def remember(self, values: SearchSettings) -> None:
        """Store in `values` the settings that persist between program starts."""
        last = self._last if self._last is not None and not self.is_touched else self.content()
        values.preset = last.preset
        values.preset_folder = self.presets.start_folder
        values.device = self.device.value()
        values.workers, values.certificates = self.device.workers.requested, self.device.workers.certificates
        values.folders = {name: files.start_folder for name, files in self.file_lists.items()}
        retained = (name for name, field in self.inputs.items() if field.spec.is_offered_again)
        values.files = {name: tuple(map(str, last.inputs.get(name, ()))) for name in retained}

    def restore(self, values: SearchSettings) -> None:
        """Restore the device and start folders that `remember` stored, and show a button that fills in the stored preset and files."""
        for name, folder in values.folders.items():
            if name in self.file_lists:
                self.file_lists[name].start_folder = folder
        self.device.choose(values.device)
        if self.search.takes_workers:
            self.device.workers.choose(values.workers, values.certificates)
        self.presets.start_folder = values.preset_folder
        files = {name: tuple(Path(file) for file in names if Path(file).exists()) for name, names in values.files.items()}
        inputs = {name: paths for name, paths in files.items() if paths and name in self.inputs and self.inputs[name].spec.is_offered_again}
        if inputs or values.preset not in ("", self.search.preset):
            self._offer_last(FormPrefill(inputs=inputs, preset=values.preset))

    def project_folder(self) -> Path:
        """Return the project folder for the results: the project that is an input of the search, if there is one, or the entered folder."""
        if self.given_project is not None:
            return self.given_project.first_file or Path().absolute()
        return self.project.folder()

    def set_project_folder(self, folder: Path) -> None:
        """Select the project for the results."""
        if self.given_project is not None:
            self.given_project.files.offer_project(folder)
            self.given_project.files.give_project(folder)
            return
        self.project.set_folder(folder)

    def offer_project(self, folder: Path) -> None:
        """Set the open project of the window, and select it for the results, unless a folder is entered or the form is partly filled in."""
        if self.given_project is not None:
            self.given_project.files.offer_project(folder)
            return
        self.project.offer(folder, any(not field.is_empty for field in self.inputs.values() if not field.spec.is_offered_again))

    def continue_from(self, folder: Path, run_id: str, prefill: FormPrefill = NOTHING) -> None:
        """Prepare a follow-up search that uses the results of a run; parameters that this search does not have are ignored."""
        self.set_project_folder(folder)
        for line in self.projects.values():
            line.line.setText(str(folder))
        for name, field in self.inputs.items():
            # The results of the project are used instead of files.
            if field.spec.instead in self.projects:
                self.file_lists[name].clear()
        self._fill(prefill)
        self._choose_run(run_id)

    def begin_with(self, prefill: FormPrefill) -> None:
        """Prepare a search of the given files; parameters that this search does not have are ignored."""
        self._fill(prefill)

    def reuse_settings(self, folder: Path, prefill: FormPrefill, run: str | tuple[str, ...], *, uses_project: bool) -> None:
        """Fill the form with the settings of an earlier run.

        Parameters
        ----------
        folder : Path
            Project of the run.
        prefill : FormPrefill
            Settings of the run.
        run : str or tuple of str
            Ids of the runs whose results the earlier run used.
        uses_project : bool
            True if the earlier run used results of the project; otherwise `run` is ignored.
        """
        if uses_project:
            self.continue_from(folder, run if isinstance(run, str) else "", prefill)
            if not isinstance(run, str):
                self.parameters.set_values({"run": run})
            for name in self.designs.keys() - prefill.tables.keys():
                self.designs[name].restore(None)
            return
        self.set_project_folder(folder)
        for line in self.projects.values():
            line.line.clear()
        self._fill(prefill)

    def _fill(self, prefill: FormPrefill) -> None:
        if prefill.preset:
            self.presets.restore(prefill.preset)
        if prefill.project is not None and self.given_project is None:
            self.project.set_folder(prefill.project)
        for name, checked in prefill.options.items():
            self.options[name].setChecked(checked)
        for name, text in prefill.paths.items():
            self._paths[name].line.setText(text)
        for name, design in prefill.tables.items():
            self.designs[name].restore(design)
        for name, paths in prefill.inputs.items():
            self.file_lists[name].clear()
            self.file_lists[name].add(paths)
        for name, text in prefill.pasted.items():
            if name not in prefill.inputs:
                self.file_lists[name].clear()
            self.inputs[name].paste(text)
        values = {name: value for name, value in prefill.parameters.items() if name in self._model.model_fields}
        refused = find_problems(self._model, {**self.parameters.values(), **values})[1]
        self.parameters.set_values({name: value for name, value in values.items() if name not in refused})
        for name, run in prefill.runs.items():
            self.runs[name].set_value(run)

    def validation_error(self) -> str:
        """Return the reason why the search cannot run, or ''."""
        for field in self.inputs.values():
            if field in self._replaced:
                continue
            if field.problem():
                return field.unusable()
            if field.is_empty and not (field.spec.is_optional or self._replacement(field.spec)):
                return field.missing()
            if not field.is_empty and field.spec.instead in self.options and self._replacement(field.spec):
                return f"Remove the {field.spec.title.lower()}, or clear “{self.options[field.spec.instead].text()}”"
        if self.given_project is None and self.project.is_empty:
            return "Choose a project folder"
        if self.project.problem():
            return "The project folder cannot be used"
        for name, line in self._paths.items():
            if line.problem() and (name not in self.projects or name in self._used_projects):
                return line.problem()
        for editor in self.runs.values():
            if self._used_project is not None and editor.problem():
                return editor.problem()
        for design in self.designs.values():
            if design.problem():
                return design.problem()
        if self.device.problem():
            return self.device.problem()
        for name in self.parameters.problems:
            return f"{self.parameters.fields[name].description.title}: {self.parameters.problems[name]}"
        if not all(field.is_examined for field in self.inputs.values()):
            return "Inspecting files"
        if self.search.fitting and not all(field.files.is_counted for field in self.inputs.values()):
            return "Inspecting sequences"
        parameters = self.parameters.parameters
        return "" if parameters is None else self.search.input_conflict(self._contents(), self._option_values(), parameters)

    def check(self) -> None:
        """Enable the Run button, or disable it and show the reason why the search cannot run."""
        self._suggest_project()
        self._offer_experiment()
        if self.search.fitting:
            self.presets.suit(self.search.suited_preset(self._contents(), self._option_values()))
        self.project.show_state()
        self.device.workers.show_problem()
        parameters = self.parameters.parameters
        contents = [content for field in self.inputs.values() for content in field.files.spectra_contents]
        self.advice.show_advice(None if parameters is None else self.search.advice(contents, parameters))
        missing = self.validation_error()
        self.reason.setText(missing.replace("&", "&&"))
        self.reason.setToolTip(tip_text(f"{missing}\nClick to go to the first field with a problem"))
        self.reason.setVisible(bool(missing))
        self.run_button.setEnabled(not missing)
        if self.isVisible():
            self.estimate.begin_soon()

    def search_experiment(self, folder: Path) -> None:
        """Select a project and the runs of its experiment."""
        self.set_project_folder(folder)
        self.experiment.setChecked(True)
        self.check()

    def _offer_experiment(self) -> None:
        """Show the check box for the experiment if the project has one; while it is checked, disable the fields that are not used."""
        folder = self.project_folder() if self.search.kind in EXPERIMENT_KINDS and not self.project.is_empty else None
        self.experiment.setVisible(folder is not None and is_there(folder / EXPERIMENT))
        for field in self.inputs.values():
            is_replaced = field in self._replaced
            field.setEnabled(not is_replaced)
            field.files.lines.replacement = "The spectra of the runs of the experiment are searched" if is_replaced else ""
            field.files.lines.viewport().update()
        for widget in (*self.projects.values(), *self.runs.values()):
            widget.setEnabled(not self.uses_experiment)

    def _take_advice(self, preset: str) -> None:
        """Fill in the parameters from the recommended preset."""
        self.presets.is_chosen = True
        self.presets.choose(preset)
        self.check()

    def run(self) -> None:
        """Emit `run_requested` if the form is valid."""
        for field in self.inputs.values():
            field.files.mark_missing()
        self.check()
        task = self.task()
        if task is not None:
            self.presets.forget_replaced()
            self.run_requested.emit(ExperimentTask(task) if self.uses_experiment else task)

    def _contents(self) -> dict[str, InputContent]:
        """Return the contents of the inputs that have been read, by input name."""
        result = {name: field.content() for name, field in self.inputs.items()}
        return {name: content for name, content in result.items() if content is not None}

    def _option_values(self) -> dict[str, Any]:
        """Return the values of the options by name."""
        return {
            **{name: box.isChecked() for name, box in self.options.items()},
            **{
                name: line.path
                for name, line in {**self.folders, **self.given_files, **self._used_projects}.items()
                if line.path is not None
            },
            **{name: editor.value() for name, editor in self.runs.items() if editor.value() and self._used_project},
        }

    def redraw(self) -> None:
        """Redraw the elements that depend on the theme."""
        for field in self.inputs.values():
            field.redraw()

    def _suit_followers(self) -> None:
        """After a change of a parameter, adapt those that depend on it, such as gap costs on the matrix, unless the user edited them."""
        values = self.parameters.values()
        for name in values:
            try:
                suited = self._model.following({name: values[name]})
            except ProteoscopeError:
                # The value is invalid; its field shows the error.
                continue
            before, self._suited[name] = self._suited.get(name, {}), suited
            # Presets and undo steps set all values themselves.
            is_followed = bool(before) and all(values[follower] == value for follower, value in before.items())
            if suited != before and is_followed and not self.presets.is_filling:
                self.parameters.set_values(suited)
                return

    def _suggest_project(self) -> None:
        """Suggest a project folder for the results: next to the first file of the form, or else the project whose results are used."""
        first = self._first_file() if self.given_project is None else None
        source = first or (self._used_project if self.given_project is None else None)
        if source is not None:
            self.project.suggest(str(source) if first is None else str(first.parent / f"{first.name.partition('.')[0]}_proteoscope"))

    def _connect(self) -> None:
        self._checking.timeout.connect(self.check)
        changing = [field.changed for field in self.inputs.values()]
        changing += [path.changed for path in self._paths.values()]
        changing += [field.changed for field in self.runs.values()]
        changing += [design.changed for design in self.designs.values()]
        changing += [box.toggled for box in self.options.values()]
        for signal in (*changing, self.experiment.toggled, self.project.changed, self.parameters.changed, self.device.changed):
            signal.connect(self._checking.start)
        for name, file_list in self.file_lists.items():
            file_list.database_requested.connect(partial(self.database_requested.emit, name))
            file_list.counted.connect(self._checking.start)
        for signal in (*changing, self.project.changed, self.parameters.changed, self.device.box.activated, self.device.workers.chosen):
            signal.connect(lambda *_: self.touched.emit())
        if self.given_project is not None:
            self.given_project.changed.connect(self._follow_given_project)
        for line in self.projects.values():
            line.changed.connect(self._follow_given_project)
        self.parameters.changed.connect(self._suit_followers)
        self.parameters.changed.connect(self._show_design_files)
        self.presets.chosen.connect(self.check)
        self.presets.failed.connect(self.failed)
        self.run_button.clicked.connect(self.run)
        self.last_button.clicked.connect(self.use_last)
        self.reason.clicked.connect(self.show_problem)
        self.advice.taken.connect(self._take_advice)

    def _is_given(self, field: InputFiles) -> bool:
        return self.search.writes == "given project" and field.spec.content == "project"

    @property
    def _run_editors(self) -> dict[str, RunEditor]:
        """Fields in which earlier runs are selected whose results this search uses, by name of the parameter or option."""
        editors = {name: field.editor for name, field in self.parameters.fields.items()}
        return {**{name: editor for name, editor in editors.items() if isinstance(editor, RunEditor)}, **self.runs}

    def _choose_run(self, run_id: str) -> None:
        """Select the run whose results are used, '' for the newest; for a search that can use several runs, select only this run."""
        values: dict[str, Any] = {name: run_id for name in self._run_editors if name not in self.runs}
        if "run" in self.parameters.fields and "run" not in values:
            values["run"] = (run_id,) if run_id else ()
        self.parameters.set_values(values)
        for editor in self.runs.values():
            editor.set_value(run_id)

    def _follow_given_project(self) -> None:
        """Update the list of runs after another project was selected."""
        folder = self._used_project
        if folder != self._runs_of:
            self._runs_of = folder
            self._choose_run("")
            self._read_runs()
            self._show_design_files()

    def _show_design_files(self) -> None:
        """Show the files of the selected runs in the design editors."""
        for design in self.designs.values():
            design.show_files(self._runs_of, self.parameters.values())

    def _read_runs(self) -> None:
        folder = self._runs_of
        for editor in self._run_editors.values():
            if folder is None:
                editor.offer(None)
            else:
                kinds = {**dict.fromkeys(identifying_kinds(), editor.tables), **self.search.accepted_runs}
                self._inspector.runs(folder, kinds, partial(self._offer_runs, folder, editor))

    def _offer_runs(self, folder: Path, editor: RunEditor, runs: list[SearchedRun] | None) -> None:
        if folder == self._runs_of:
            editor.offer(runs)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Update the list of runs, and inspect the files again."""
        super().showEvent(event)
        self._read_runs()
        for design in self.designs.values():
            design.reload_files()
        self._show_design_files()
        # The durations of runs since the last estimate improve it.
        self.estimate.begin_soon()
        for field in self.inputs.values():
            field.files.inspect_again()

    def show_problem(self) -> None:
        """Scroll to the first missing or invalid field."""
        for widget, is_missing in (
            *((field, field.is_empty or bool(field.problem())) for field in self.inputs.values()),
            (self.project, self.given_project is None and (self.project.is_empty or bool(self.project.problem()))),
            (self.device, bool(self.device.problem())),
        ):
            if is_missing:
                self.scroll_area.ensureWidgetVisible(widget)
                return
        frame = self.parameters.show_first_problem()
        if frame is not None:
            self.scroll_area.ensureWidgetVisible(frame)

    def _lay_out(self) -> None:
        cards = Columns()
        for field in self.inputs.values():
            cards.add(Section(field.spec.title, field))
        if self.given_project is None or self.options or self._paths:
            cards.add(self._project_card())
        for option in self.search.options:
            if option.name in self.designs:
                cards.add(Section(option.title, self.designs[option.name]))
        cards.add(Section("Preset", self.presets))
        cards.add(Section("Device", self.device))
        content = in_column(
            in_row(heading(f"New {self.search.name}", 1.5), STRETCH, self.last_button),
            cards,
            (self.parameters, 1),
            margins=(18, 14, 18, 14),
            spacing=14,
        )
        self.scroll_area = make_scroll_area(widget_with(content))
        self.last_button.setToolTip("Fill in the files and settings of the last search")
        set_icon(self.last_button, "reset")
        self.last_button.hide()
        set_icon(self.reason, "information")
        self.run_button.setMinimumWidth(120)
        self.run_button.setToolTip("Queue this search (Ctrl+R)")
        line = QFrame(frameShape=QFrame.Shape.HLine, frameShadow=QFrame.Shadow.Plain)
        line.setForegroundRole(self.palette().ColorRole.Mid)
        in_column(
            (self.scroll_area, 1),
            line,
            in_row(
                (in_column(self.advice, self.estimate, spacing=4), 1), self.reason, self.run_button, margins=(18, 8, 18, 10), spacing=10
            ),
            on=self,
            spacing=0,
        )

    def _project_card(self) -> Section:
        options = (*self.options.values(), *self._paths.values())
        card = Section("Project", self.project, self.experiment, *options) if self.given_project is None else Section("Options", *options)
        for option in self.search.options:
            if option.name in self.runs:
                self._place_run(card, option)
        return card

    def _place_run(self, card: Section, option: Option) -> None:
        """Add the editor of a run below the field for its project."""
        editor, row = self.runs[option.name], card.grid.rowCount()
        label = field_label(option.title, editor)
        editor.setToolTip(f"{option.help[:1].upper()}{option.help[1:]}")
        card.grid.addWidget(label, row, 0)
        card.grid.addWidget(editor, row, 1, 1, 2)
