"""Description of a search: everything that the command line, the window, presets and exports need to offer it.

An entry is light: what computes is imported when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from proteoscope import engine, resources
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.kinds import RegisteredWorkload, register_kinds
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.page_sizes import FIGURE_FORMAT, FigureFormat
from proteoscope.engine.project.outputs import check_outputs

if TYPE_CHECKING:
    from proteoscope.engine.formats.sequence_type import InputContent
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.parameters import PresetAdvice, SearchParameters
    from proteoscope.engine.project import Project, RunRecord
    from proteoscope.engine.results.columns import Table
    from proteoscope.engine.results.methods import Methods, RunFacts
    from proteoscope.engine.summary import Summary

__all__ = [
    "DATABASE_INPUT",
    "IDENTIFICATION_INPUT",
    "IDENTIFICATION_TABLES",
    "SPECTRA_INPUT",
    "STRICT_OPTION",
    "WORKLOAD_ESTIMATORS",
    "CachedIndexKind",
    "Command",
    "Demo",
    "Export",
    "ExportRequest",
    "FileContent",
    "Input",
    "Option",
    "SampleData",
    "Search",
    "SearchRequest",
    "WriteExport",
    "find_result_table",
    "identifying_kinds",
    "recorded_parameters",
]

Model = TypeVar("Model", bound="SearchParameters")

WriteExport: TypeAlias = "Callable[[Project, ExportRequest, Progress], list[Path]]"
"""Writes the results of a finished run, and returns the paths of the files."""

WorkloadEstimator: TypeAlias = "Callable[[], Callable[[SearchRequest], Any]]"
"""A callable that imports and returns the function from a request to its `proteoscope.engine.estimates.Expectation`."""

WORKLOAD_ESTIMATORS: dict[str, WorkloadEstimator] = {}
"""Function that estimates the work of a request, by type of search; entries add theirs."""

FileContent = Literal["spectra", "proteins", "reads", "structures", "identifications", "libraries", "structure database", "project"]
"""A kind of file: spectra in any format, sequences, structures (also a folder or a list of them), results of other search engines, spectral
libraries, or a database of structures; or that it is the folder of a project."""


@dataclass(frozen=True)
class Input:
    """Files that a search reads.

    Attributes
    ----------
    name
        In requests, and the kind under which a run records them.
    title
        Title of the input in the window.
    content
        Content of the files, which decides the slot of dropped files.
    also
        Content that is accepted instead, or None.
    metavar, help
        On the command line; where help is empty, it lists the formats of its content.
    option
        The flag that names them there, as ``--database``; positional where it is empty.
    in_a_row
        True if the flag accepts several files after it and may also be repeated; positional arguments then come before it.
    several
        True if more than one may be given.
    is_offered_again
        True if the window offers the last files again for a new search, as for databases.
    can_be_pasted
        True if the window also takes it as text.
    takes_nucleotides
        True if its sequences may be DNA or RNA; the window warns about them in other inputs.
    wanted, singular
        Words of the window: the requested input, such as ``a protein database``, and the name of one file, such as ``database``. Empty
        ones default to the title and ``file``.
    hint
        Text in the empty list, if the content does not explain it.
    instead
        An option of the search with which it may be left out; the search itself says where it may not.
    is_optional
        True if it may always be left out.
    """

    name: str
    title: str
    content: FileContent
    metavar: str
    help: str = ""
    option: str = ""
    several: bool = True
    is_offered_again: bool = False
    can_be_pasted: bool = False
    wanted: str = ""
    singular: str = "file"
    hint: str = ""
    also: FileContent | None = None
    takes_nucleotides: bool = False
    instead: str = ""
    is_optional: bool = False
    in_a_row: bool = False

    @property
    def described(self) -> str:
        """Its text in the command line's help."""
        return self.help or f"{format_names(self.content)} files, also gzipped"

    @property
    def contents(self) -> tuple[FileContent, ...]:
        """Accepted contents of files."""
        return (self.content,) if self.also is None else (self.content, self.also)


SPECTRA_INPUT = Input("spectra", "Spectra", "spectra", "SPECTRA", singular="spectrum file")
DATABASE_INPUT = Input(
    "database",
    "Protein databases",
    "proteins",
    "PROTEINS",
    f"protein sequences ({format_names('proteins')}); may be given several times",
    option="--database",
    is_offered_again=True,
    wanted="a protein database",
    singular="database",
    hint=f"one or more databases ({format_names('proteins')})",
)
IDENTIFICATION_INPUT = Input(
    "project",
    "Project",
    "project",
    "PROJECT",
    "the folder of a project with an identification",
    several=False,
    wanted="a project with an identification",
    singular="project",
    hint="the folder of a project",
)
IDENTIFICATION_TABLES = {"modified": frozenset(("psms", "proteins", "spectra")), "explain": frozenset(("explained",))}
"""Tables by which runs of these kinds count as identifications for a search that builds on one."""


@dataclass(frozen=True)
class Option:
    """Option of a search that is not a parameter, since it does not affect the result, as ``--strict``.

    Attributes
    ----------
    name
        Of the keyword.
    title
        In the window, which offers flags, folders, files, projects and their runs that have one.
    metavar
        Of its value on the command line, ``DIR`` where that is a folder, ``FILE`` where it is a file (one with a title is read), ``RUN``
        where it is a finished identification of the project that is given; a flag has none.
    is_project
        True if the folder is a project that the search continues.
    editor
        The editor with which the window creates the file: ``design``, a table of the samples of the identification that the search uses;
        empty if the window opens a file dialog.
    choices
        Values that it takes on the command line, any where it is empty.
    is_output_file
        True if its value is a file that is written to.
    """

    name: str
    title: str
    help: str
    metavar: str = ""
    is_project: bool = False
    editor: Literal["", "design"] = ""
    choices: tuple[str, ...] = ()
    is_output_file: bool = False

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_folder(self) -> bool:
        """True if its value is a folder that is written to."""
        return self.metavar == "DIR" and not self.is_project

    @property
    def is_output(self) -> bool:
        """True if its value is a file or folder that is written to."""
        return self.is_folder or self.is_output_file

    @property
    def is_run(self) -> bool:
        """True if its value is a run of the given project."""
        return self.metavar == "RUN"

    @property
    def is_file(self) -> bool:
        """True if its value is a file."""
        return self.metavar == "FILE"


STRICT_OPTION = Option(
    "strict",
    "Refuse files with spectra that cannot be read",
    "refuse files with spectra that cannot be read; without it these spectra are left out, and counted",
)


@dataclass(frozen=True)
class Export:
    """A format in which the results of a run can be written.

    Attributes
    ----------
    name
        For ``--format``.
    title
        In the window.
    write
        Returns the function that writes it, see `Search.export`.
    endings
        Of its files, the usual one first; a folder of files has none.
    files
        Names of those in a folder, where they are fixed.
    has_queries
        True if it can be restricted to the hits of one query.
    is_library
        True if it is a spectral library of the identified peptides.
    has_acceptance
        True if it can be limited to the rows that are accepted at the false discovery rate of the run.
    has_figures
        True if it is figures, of a type and a width, with cuts.
    structure_folders
        Of a format that reads structures, which the user has to name: the folders that a run of a project records.
    """

    name: str
    title: str
    write: Callable[[], WriteExport]
    endings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    has_queries: bool = False
    is_library: bool = False
    has_acceptance: bool = False
    has_figures: bool = False
    structure_folders: Callable[[Project, str], list[str]] | None = None

    @property
    def is_folder(self) -> bool:
        """True if it is a folder of files."""
        return not self.endings


class Command(NamedTuple):
    """An additional sub-command of a search.

    `add` declares its arguments, `run` executes it; `parameters` returns its `SearchParameters`, if any.
    """

    name: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Progress], None]
    parameters: Callable[[], type[SearchParameters]] | None = None

    @property
    def model(self) -> type[SearchParameters]:
        """The model of its parameters, which it has."""
        assert self.parameters is not None
        return self.parameters()


class CachedIndexKind(NamedTuple):
    """A kind of indexes in the user's cache: its name for `proteoscope.engine.project.cache.index_store`, and its title."""

    name: str
    title: str


SampleData = Literal["measured", "simulated"]
"""Data of samples: measured runs of albumin (and other files that ship), or the simulated TMT run of two conditions."""


class Demo(NamedTuple):
    """A search of what ships with the program.

    Attributes
    ----------
    samples
        Sample files by the names of the inputs.
    preset
        Preset for them.
    after
        Kind of the search whose demo of the same data creates the project that this one uses; empty if it needs none.
    data
        The data.
    options
        Sample file by the name of an option.
    """

    samples: Mapping[str, tuple[str, ...]]
    preset: str
    after: str = ""
    data: SampleData = "measured"
    options: Mapping[str, str] = MappingProxyType({})

    @property
    def inputs(self) -> dict[str, list[Path]]:
        """Paths of the sample files by the names of the inputs."""
        return {name: [resources.path("samples", file) for file in files] for name, files in self.samples.items()}

    @property
    def option_files(self) -> dict[str, Path]:
        """Paths of the sample files by the names of the options."""
        return {name: resources.path("samples", file) for name, file in self.options.items()}


@dataclass(frozen=True)
class SearchRequest:
    """A request to a search, from the command line, the window or a script, passed unchanged to the search's `search.py`.

    Attributes
    ----------
    inputs
        Files by the names of the search's inputs.
    options
        By the names of its options.
    project
        The folder that results go to, or where the run is recorded; None for no record.
    out, format
        The file for the results of a search that writes one, and its format.
    device
        ``auto`` (all usable GPUs, else the CPU), ``cpu``, ``cuda`` (the first usable GPU), ``cuda:N``, or ``all`` (all usable GPUs
        and the CPU together).
    threads
        CPU threads; all by default.
    resume
        The id of a run of the project that was stopped and is to go on; `proteoscope.engine.resumption.resumed_request` makes such a
        request.
    workers
        Processes that compute in place of this one, as ``--workers`` takes them (`proteoscope.engine.execution.cluster.requests`); none
        where it is empty.
    certificates
        The folder of those, where a scheduler is given by its address.
    """

    inputs: Mapping[str, Sequence[str | Path]]
    parameters: SearchParameters
    project: str | Path | None = None
    out: str | Path | None = None
    format: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    device: str = "auto"
    threads: int | None = None
    resume: str = ""
    workers: str = ""
    certificates: str | Path | None = None

    def files(self, name: str) -> list[Path]:
        """Return the files of an input; empty if not given."""
        return [Path(path) for path in self.inputs.get(name, ())]

    def flag(self, name: str) -> bool:
        """Return True if an option is set."""
        return bool(self.options.get(name))

    def path(self, name: str) -> Path | None:
        """Return the file or folder of an option, or None."""
        value = self.options.get(name)
        return None if value is None else Path(value)

    def outputs(self, *names: str) -> list[Path]:
        """Return the files to write in addition to the project: `out`, and the values of these options."""
        return [Path(path) for path in (self.out, *(self.path(name) for name in names)) if path is not None]

    def folder(self, name: str) -> Path | None:
        """Return the folder of an option, which may not exist yet, or None.

        Raises
        ------
        InputError
            If a file of this name exists; reported before anything is computed.
        """
        path = self.path(name)
        if path is not None and path.exists() and not path.is_dir():
            raise InputError(path, "is a file, where a folder is wanted", remedy="Name another folder")
        return path

    def parameters_as(self, model: type[Model]) -> Model:
        """Return the parameters of the search.

        Raises
        ------
        TypeError
            If they are another search's.
        """
        if not isinstance(self.parameters, model):
            raise TypeError(f"the parameters are {type(self.parameters).__name__}; this search takes {model.__name__}")
        return self.parameters


@dataclass(frozen=True)
class ExportRequest:
    """Results of a finished run that are to be written: in which format, and where to.

    `spreadsheet_safe`: of ``tsv``: texts that a spreadsheet would read as formulas begin with an apostrophe.
    `query`: of searches with queries, the name of the one whose hits are written; of all where it is empty.
    `consensus`: of a spectral library, True if an entry is the mean of its spectra, False for the best of them.
    `accepted_only`: of formats that have it, only the targets that are accepted at the false discovery rate of the run.
    `structures`: of formats that read structures, the files or folders that the user names; no others outside the project are read.
    `figures`, `q_value`, `fold_change`: of figures, their files, and the cuts that define a change; None for the rate of the run.
    """

    run_id: str
    format: str
    target: Path
    spreadsheet_safe: bool = False
    query: str = ""
    consensus: Literal["merged", "best"] = "merged"
    accepted_only: bool = False
    structures: tuple[Path, ...] = ()
    figures: FigureFormat = FIGURE_FORMAT
    q_value: float | None = None
    fold_change: float = 0.0


class Fitting(Protocol):
    """A module, or another object, that knows which preset suits the sequences that a search is given."""

    def suited_preset(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], given: Collection[str]) -> str:
        """Return the name of the preset that suits the inputs, or ''."""

    def input_conflict(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], parameters: SearchParameters) -> str:
        """Return the reason why inputs and settings do not fit together, or ''."""


@dataclass(frozen=True)
class Search:
    """A kind of search.

    Much of it is a callable without arguments, as ``lambda: identification.tables.TABLES``, which imports a module when it is first needed
    and returns its object: packages load their modules lazily, so that an entry stays light.

    Attributes
    ----------
    kind
        The sub-command, and the kind of its runs, presets and settings.
    name
        As ``sequence search``.
    question
        Of a scientist, that it answers.
    purpose
        Purpose, in a sentence.
    description, epilog
        Of the sub-command.
    job
        Description with its inputs, such as ``Search {queries} in {database}``.
    icon
        The name of one that ships.
    parameters
        Returns its `SearchParameters`.
    preset
        The one to begin with, empty where there is none.
    run
        Does it.
    exports
        Formats in which the results of a finished run can be written, the usual one first.
    writes
        ``project``, where results go into a project's folder (``--out DIR``); ``file`` (``--out FILE``, a project if one likes); or ``given
        project``, where they go into the project that is its input (``--out FILE`` if one likes).
    shortcuts
        Parameters with an option of their own on the command line.
    modules
        Return the modules that `run` imports, which a window loads while it is idle.
    tables
        Returns its result tables, a tuple of `proteoscope.engine.results.columns.Table`, the first in the hierarchy first.
    stored
        Returns the additional tables of its runs, likewise.
    fitting
        Returns the module that suggests presets for the inputs and reports unsuitable ones, for searches of sequences. None if the
        default preset suits all.
    advising
        Returns the function that suggests a preset that suits files of spectra better than the selected one
        (`proteoscope.engine.parameters.PresetAdvice`), of the kind, what files are of (`proteoscope.engine.formats.spectra_content`), and
        the parameters. None if presets do not depend on files.
    methods
        Returns the function that describes how a run was done (`proteoscope.engine.results.methods.MethodsWriter`); None where what all
        searches have in common does.
    pages
        Returns the function that writes pages about the results of a finished run into a folder (project, the run's id, folder, progress;
        the paths); None if there are only the pages common to all searches.
    workload_types
        Types of workloads that the search computes on devices, each by its name and a callable that returns its
        `proteoscope.engine.execution.workload.WorkloadType`; they are registered with the entry. Searches that share a type share the pair.
    workload_estimator
        Returns the function that estimates the workload of a request before the search, for `proteoscope.engine.estimates`.
    advise_later
        Returns the function that checks a finished run with few identifications for causes (request, the run's id, progress; its warnings,
        which the run's record has then). A window, which shows results first, searches with the option ``advice`` as ``none`` and calls it
        afterwards for runs whose summary has `has_low_yield`. None where there is nothing to check.
    keeps
        The kinds of indexes that it keeps in the user's cache for other searches.
    identifies
        True if its runs say which peptides unmodified and modified spectra are of, so that a search that uses an identification
        can use them: PSMs, peptides, protein groups, and spectra with their peaks.
    goes_on_from
        For a search that uses a run of a project: the kinds other than identifications whose runs it accepts, each with the tables that
        such a run must have.
    manual
        Name of its page of the manual (`docs`).
    """

    kind: str
    name: str
    purpose: str
    description: str
    job: str
    icon: str
    parameters: Callable[[], type[SearchParameters]]
    preset: str
    inputs: tuple[Input, ...]
    writes: Literal["project", "file", "given project"]
    run: Callable[[SearchRequest, Progress], Summary]
    tables: Callable[[], tuple[Table, ...]]
    exports: tuple[Export, ...]
    stored: Callable[[], tuple[Table, ...]] = tuple
    options: tuple[Option, ...] = ()
    shortcuts: tuple[str, ...] = ()
    epilog: str = ""
    modules: tuple[Callable[[], ModuleType], ...] = ()
    commands: tuple[Command, ...] = ()
    demo: Demo | None = None
    more_demos: tuple[Demo, ...] = ()
    fitting: Callable[[], Fitting] | None = None
    advising: Callable[[], Callable[[str, Sequence[SpectraContent], Any], PresetAdvice | None]] | None = None
    methods: Callable[[], Callable[[RunFacts], Methods]] | None = None
    pages: Callable[[], Callable[[Project, str, Path, Progress], list[Path]]] | None = None
    workload_types: tuple[RegisteredWorkload, ...] = ()
    workload_estimator: WorkloadEstimator | None = None
    advise_later: Callable[[], Callable[[SearchRequest, str, Progress], tuple[str, ...]]] | None = None
    keeps: tuple[CachedIndexKind, ...] = ()
    identifies: bool = False
    goes_on_from: Mapping[str, frozenset[str]] = field(default_factory=dict)
    question: str = ""
    manual: str = ""

    def __post_init__(self) -> None:
        register_kinds(self.workload_types)
        if self.workload_estimator is not None:
            WORKLOAD_ESTIMATORS[self.kind] = self.workload_estimator

    @property
    def demos(self) -> tuple[Demo, ...]:
        """All samples, the usual one first."""
        return () if self.demo is None else (self.demo, *self.more_demos)

    def demo_with(self, data: str) -> Demo | None:
        """Return its sample with this data, or None; '' is the usual one."""
        return next((demo for demo in self.demos if data in ("", demo.data)), None)

    @property
    def takes_workers(self) -> bool:
        """True if other processes can compute its workloads."""
        return bool(self.workload_types)

    def check_workers(self, workers: str) -> None:
        """Refuse workers that it cannot use.

        Raises
        ------
        ParameterError
            If it cannot use workers, and some are requested.
        """
        if workers and not self.takes_workers:
            raise ParameterError(f"{self.kind} has no work for other processes: leave out --workers")

    @property
    def model(self) -> type[SearchParameters]:
        """Its parameters, loaded on first use."""
        return self.parameters()

    def parameters_of(self, preset: str = "") -> SearchParameters:
        """Return the parameters of a preset, by name or file; the defaults for ''.

        Raises
        ------
        InputError, ParameterError
            If the preset does not exist, or has parameters of another search.
        """
        if not preset:
            return self.model()
        try:
            return self.model.checked(engine.parameters.read_preset(self.kind, preset))
        except ParameterError as error:
            raise ParameterError(f"preset {preset}: {error}") from None

    def suited_preset(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], given: Collection[str] = ()) -> str:
        """Return the preset that suits the inputs and options; `given` are parameters set by the user."""
        suited = self.fitting().suited_preset(contents, options, given) if self.fitting is not None else ""
        return suited or self.preset

    def input_conflict(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], parameters: SearchParameters) -> str:
        """Return why the inputs are incompatible, for a form, or ''."""
        return self.fitting().input_conflict(contents, options, parameters) if self.fitting is not None else ""

    def advice(self, contents: Sequence[SpectraContent], parameters: SearchParameters) -> PresetAdvice | None:
        """Return the preset that suits files of spectra better than the parameters, or None."""
        return self.advising()(self.kind, contents, parameters) if self.advising is not None and contents else None

    def methods_of(self, facts: RunFacts) -> Methods | None:
        """Return the methods of a run, or None."""
        return self.methods()(facts) if self.methods is not None else None

    def write_pages(self, project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
        """Write the search's own pages about a finished run; return their paths."""
        return self.pages()(project, run_id, folder, progress) if self.pages is not None else []

    def write_report(self, summary: Summary, folder: Path | None, formats: Mapping[str, str], progress: Progress) -> None:
        """Write the exports and pages of a finished run into a folder; nothing without a folder or a run.

        Parameters
        ----------
        formats
            Names of exports, and of the file in the folder that each is written to, empty for the folder.
        """
        if folder is None or summary.folder is None or summary.run_id is None:
            return
        project = engine.project.Project.open(summary.folder)
        for name, file in formats.items():
            self.export(project, ExportRequest(summary.run_id, name, folder / file), progress)
        self.write_pages(project, summary.run_id, folder, progress)

    @property
    def result_tables(self) -> tuple[Table, ...]:
        """Its tables, loaded on first use."""
        return self.tables()

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Its tables and additional ones of its runs, loaded on first use."""
        return (*self.result_tables, *self.stored())

    @property
    def contents(self) -> set[FileContent]:
        """Sorts of files that it reads."""
        return {sort for search_input in self.inputs for sort in search_input.contents}

    def format_of(self, name: str) -> str:
        """Return the format of a file name's suffix, or the first one."""
        endings = ((ending, export.name) for export in self.exports for ending in export.endings if name.lower().endswith(ending))
        return max(endings, key=lambda pair: len(pair[0]), default=("", self.exports[0].name))[1]

    def exported_as(self, name: str) -> Export | None:
        """Return the format of this name, or None."""
        return next((export for export in self.exports if export.name == name), None)

    def recorded_parameters(self, project: Project, run: RunRecord) -> dict[str, Any]:
        """Return the recorded parameters of a run that its search has, each a value that it can have; the record may be forged or damaged.

        Raises
        ------
        InputError
            If one is not.
        """
        fields = self.model.model_fields
        recorded = {name: value for name, value in run.parameters.items() if name in fields}
        try:
            return self.model.checked(recorded).model_dump(mode="json", include=set(recorded))
        except ParameterError as error:
            raise InputError(project.folder, f"the recorded parameters of {run.id} are damaged: {error}", remedy="Search again") from None

    def export(self, project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
        """Write the results of a finished run in one of `exports`; return the paths of the files.

        Each file appears whole or not at all.

        Raises
        ------
        ParameterError
            If there is no such format, or a file that is needed would be overwritten.
        InputError
            If the project has no such finished run, or a table of it is damaged.
        StorageError
            If the disk refused.
        Cancelled
            If the user cancelled the export.
        """
        chosen = self.exported_as(request.format)
        if chosen is None:
            names = ", ".join(export.name for export in self.exports)
            raise ParameterError(f"there is no format '{request.format:.40}'; expected one of {names}")
        for run in project.runs():
            if run.id == request.run_id:
                self.recorded_parameters(project, run)  # raises if the search has no such value
        inputs = [file.path for file in project.inputs(request.run_id)]
        check_outputs([request.target / name for name in chosen.files] or [request.target], inputs, project.folder)
        return chosen.write()(project, request, progress)


def identifying_kinds() -> frozenset[str]:
    """Return the kinds of searches whose runs others can build on as identifications.

    They are taken from the list of searches when a run is inspected, since a script that runs one search has imported only its entry.
    """
    # The list is above this module and imports it, so it is imported here when it is first needed.
    return frozenset(search.kind for search in engine.searches.SEARCHES if search.identifies)


def recorded_parameters(project: Project, run: RunRecord) -> dict[str, Any]:
    """Return the recorded parameters of a run of any search; see `Search.recorded_parameters`.

    Raises
    ------
    InputError
        If the search does not allow one of the values, or this version of the program has no such search.
    """
    search = next((search for search in engine.searches.SEARCHES if search.kind == run.kind), None)
    if search is None:
        raise InputError(project.folder, f"run {run.id} is of an unknown search '{run.kind:.40}'", remedy="Search again")
    return search.recorded_parameters(project, run)


def find_result_table(kind: str, name: str) -> Table:
    """Return a result table of another search by kind and name, without importing that search."""
    search = next(search for search in engine.searches.SEARCHES if search.kind == kind)
    return next(table for table in search.result_tables if table.name == name)
