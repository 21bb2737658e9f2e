"""Classes that describe a search for the command line, the window, presets and exports.

The description of a search is called its entry. It loads fast, since computing modules are imported only when the search runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from proteoscope import engine, resources
from proteoscope.engine import formats
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.kinds import RegisteredWorkload, register_kinds
from proteoscope.engine.formats.registry import bare_name, format_names
from proteoscope.engine.page_sizes import FIGURE_FORMAT, FigureFormat
from proteoscope.engine.project.outputs import check_outputs, refuse_packed

if TYPE_CHECKING:
    from proteoscope.engine.formats.sequence_type import InputContent
    from proteoscope.engine.formats.spectra_content import SpectraContent
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.parameters import PresetAdvice, SearchParameters
    from proteoscope.engine.project import Project, RunRecord
    from proteoscope.engine.results.columns import Table
    from proteoscope.engine.results.counts import Methods, RunFacts
    from proteoscope.engine.summary import Summary

__all__ = [
    "DATABASE_INPUT",
    "ESTIMATED_SEARCHES",
    "IDENTIFICATION_INPUT",
    "IDENTIFICATION_TABLES",
    "SPECTRA_INPUT",
    "STRICT_OPTION",
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
"""Function that writes the results of a finished run in a format and returns the paths of the files."""

WorkloadEstimator: TypeAlias = "Callable[[], Callable[[SearchRequest], Any]]"
"""Function that imports and returns an estimator, a function that returns the `proteoscope.engine.estimates.Expectation` of a request."""

ESTIMATED_SEARCHES: dict[str, Search] = {}
"""Searches with an estimator of workloads, by kind; each entry of a search adds itself."""

FileContent = Literal["spectra", "proteins", "reads", "structures", "identifications", "libraries", "structure database", "project"]
"""Content of an input: spectra in any format, sequences, structures (also a folder or a list of structures), results of other programs,
spectral libraries, a database of structures, or the folder of a project.
"""


@dataclass(frozen=True)
class Input:
    """Input of a search: one or more files with the same role.

    Attributes
    ----------
    name
        Name of the input in requests; also the kind under which a run records the files.
    title
        Title of the input in the window.
    content
        Content of the files; the window assigns dropped files to inputs by their content.
    second_content
        Another type of content that is accepted, or None.
    metavar, help
        Placeholder and help text on the command line; if the help is empty, it lists the formats of the content.
    option
        Flag of the command line, such as ``--database``; '' for a positional argument.
    in_a_row
        True if several files may follow the flag, which may also be repeated; positional arguments must then precede it.
    several
        True if several files may be given.
    is_offered_again
        True if the window proposes the files of the last search again, as for databases.
    can_be_pasted
        True if the content may also be pasted as text into the window.
    takes_nucleotides
        True if the sequences may be DNA or RNA; for other inputs the window warns about nucleotides.
    wanted, singular
        Phrases of the window: for the requested input, such as ``a protein database``, and for a single file, such as ``database``.
        The defaults are the title and ``file``.
    hint
        Text in the empty list of files; '' to use a text that depends on the content.
    instead
        Option of the search that allows omitting the input; '' for none. The search reports an input that is missing.
    is_optional
        True if the input may always be omitted.
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
    second_content: FileContent | None = None
    takes_nucleotides: bool = False
    instead: str = ""
    is_optional: bool = False
    in_a_row: bool = False

    @property
    def described(self) -> str:
        """Help text of the input on the command line."""
        return self.help or f"{format_names(self.content)} files, also gzipped"

    @property
    def contents(self) -> tuple[FileContent, ...]:
        """Accepted contents of the input's files."""
        return (self.content,) if self.second_content is None else (self.content, self.second_content)


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
"""Tables that a run of each kind must have to be used as an identification by another search."""


@dataclass(frozen=True)
class Option:
    """Option of a search that does not belong to its parameters, such as ``--strict``.

    Attributes
    ----------
    name
        Name of the option in requests.
    title
        Title in the window; the window does not offer options without a title.
    metavar
        Placeholder of the value on the command line: ``DIR`` for a folder, ``FILE`` for a file (an input file if the option has a title),
        ``RUN`` for a finished identification of the given project; '' for a flag without a value.
    is_project
        True if the value is the folder of an existing project that the search uses.
    editor
        Editor in which the user creates the file in the window: ``design`` for a table of the samples of the used identification; '' for a
        file dialog.
    choices
        Values that the command line accepts; empty if it accepts any.
    is_output_file
        True if the value is a file that the search writes.
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
        """Flag of the option on the command line, such as ``--strict``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_folder(self) -> bool:
        """True if the value is a folder that the search writes into."""
        return self.metavar == "DIR" and not self.is_project

    @property
    def is_output(self) -> bool:
        """True if the value is a file or folder that the search writes."""
        return self.is_folder or self.is_output_file

    @property
    def is_run(self) -> bool:
        """True if the value is a run of the given project."""
        return self.metavar == "RUN"

    @property
    def is_file(self) -> bool:
        """True if the value is a file."""
        return self.metavar == "FILE"


STRICT_OPTION = Option(
    "strict",
    "Refuse files with spectra that cannot be read",
    "refuse files with spectra that cannot be read; by default, these spectra are left out and counted",
)


@dataclass(frozen=True)
class Export:
    """Format in which the results of a run can be written.

    Attributes
    ----------
    name
        Name for ``--format``.
    title
        Title in the window.
    write
        Callable that returns the function that writes the format; see `Search.export`.
    endings
        File name extensions, the usual one first; empty for a folder of files.
    files
        Names of the files in the folder, if they are fixed.
    has_queries
        True if the export can be restricted to the hits of one query.
    is_library
        True if the export is a spectral library of the identified peptides.
    has_acceptance
        True if the export can be limited to the rows that are accepted at the false discovery rate of the run.
    has_figures
        True if the export consists of figures, with a file type, a width, and thresholds for significant changes.
    is_binary
        True if the format is not text and is never written gzipped, such as BAM.
    structure_folders
        Callable that returns the folders of structures recorded in a run of a project, for a format that reads structures (the user must
        name their files).
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
    is_binary: bool = False
    structure_folders: Callable[[Project, str], list[str]] | None = None

    @property
    def is_folder(self) -> bool:
        """True if the export is a folder of files."""
        return not self.endings

    def check_name(self, path: Path) -> None:
        """Reject a name that ends with ``.gz`` for a format that is not text.

        Raises
        ------
        ParameterError
            If the name is rejected.
        """
        if self.is_binary:
            refuse_packed(path, self.name)


class Command(NamedTuple):
    """Additional sub-command of a search.

    Attributes
    ----------
    add
        Function that declares the arguments of the sub-command.
    run
        Function that executes the sub-command and returns the result for ``--json``, without the written files.
    parameters
        Callable that returns the `SearchParameters` class of the sub-command, or None.
    inputs, outputs
        Names of the arguments for the files that the sub-command reads and writes; the values may be ``-``.
    """

    name: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Progress], dict[str, Any]]
    parameters: Callable[[], type[SearchParameters]] | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def model(self) -> type[SearchParameters]:
        """Class of the parameters; only for sub-commands that have parameters."""
        assert self.parameters is not None
        return self.parameters()


class CachedIndexKind(NamedTuple):
    """Kind of index in the user's cache.

    Attributes
    ----------
    name : str
        Name for `proteoscope.engine.project.index_store.index_store`.
    title : str
        Title for display.
    input : str
        Name of the input of the search from which the index is built.
    """

    name: str
    title: str
    input: str


SampleData = Literal["measured", "simulated"]
"""Sample data of a demo: measured runs of albumin and other sample files, or the simulated TMT run with two conditions."""


class Demo(NamedTuple):
    """Demonstration of a search on sample files delivered with the program.

    Attributes
    ----------
    samples
        Names of the sample files, by the name of the input.
    preset
        Preset that suits the samples.
    after
        Kind of the search whose demo creates, with the same data, the project that this demo uses; '' if it needs none.
    data
        Sample data that the demo uses.
    options
        Names of the sample files, by the name of the option.
    """

    samples: Mapping[str, tuple[str, ...]]
    preset: str
    after: str = ""
    data: SampleData = "measured"
    options: Mapping[str, str] = MappingProxyType({})

    @property
    def inputs(self) -> dict[str, list[Path]]:
        """Paths of the sample files by the name of the search's input."""
        return {name: [resources.path("samples", file) for file in files] for name, files in self.samples.items()}

    @property
    def option_files(self) -> dict[str, Path]:
        """Paths of the sample files by the name of the search's option."""
        return {name: resources.path("samples", file) for name, file in self.options.items()}


@dataclass(frozen=True)
class SearchRequest:
    """Request to run a search, from the command line, the window or a script, passed unchanged to the module ``search`` of that search.

    Attributes
    ----------
    inputs
        Files by the name of the search's input.
    options
        Values by the name of the search's option.
    project
        Folder of the project that records the run and its results; None if the run is not recorded.
    out, format
        Results file and its format, for searches that write one.
    device
        ``auto`` (all usable GPUs, else the CPU), ``cpu``, ``cuda`` (the first usable GPU), ``cuda:N``, or ``all`` (all usable GPUs
        and the CPU together).
    threads
        Number of CPU threads; all by default.
    resume
        Id of a stopped run of the project to resume, or ''; `proteoscope.engine.resumption.StoppedRun.request` creates such a request.
    workers
        Worker processes that compute instead of this one, in the form of ``--workers`` (see
        `proteoscope.engine.execution.cluster.requests`); '' for none.
    certificates
        Folder of the certificates for `workers` that name the address of a scheduler.
    command
        Command line of the request, for the record; empty if it comes from elsewhere.
    run_name
        Id of the new run in the project; '' for the next id of its kind.
    overwrite
        True to replace a finished run with the name `run_name` when the new run is done; if the new run fails, the old run remains.
    waits
        True to wait while another process writes the project; False to raise an error.
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
    command: tuple[str, ...] = ()
    run_name: str = ""
    overwrite: bool = False
    waits: bool = False

    def files(self, name: str) -> list[Path]:
        """Return the files of an input; an empty list if none were given."""
        return [Path(path) for path in self.inputs.get(name, ())]

    def flag(self, name: str) -> bool:
        """Return True if an option is set."""
        return bool(self.options.get(name))

    def path(self, name: str) -> Path | None:
        """Return the file or folder of an option, or None."""
        value = self.options.get(name)
        return None if value is None else Path(value)

    def outputs(self, *names: str) -> list[Path]:
        """Return the paths to write in addition to the project: `out`, and the values of the options `names`."""
        return [Path(path) for path in (self.out, *(self.path(name) for name in names)) if path is not None]

    def folder(self, name: str) -> Path | None:
        """Return the folder of an option, which may not exist yet, or None.

        Raises
        ------
        InputError
            If the path exists and is a file.
        """
        path = self.path(name)
        if path is not None and path.exists() and not path.is_dir():
            raise InputError(path, "is a file; expected a folder", remedy="Name another folder")
        return path

    def parameters_as(self, model: type[Model]) -> Model:
        """Return the parameters as an instance of `model`.

        Raises
        ------
        TypeError
            If the parameters belong to another search.
        """
        if not isinstance(self.parameters, model):
            raise TypeError(f"the parameters are {type(self.parameters).__name__}; expected {model.__name__}")
        return self.parameters


@dataclass(frozen=True)
class ExportRequest:
    """Request to export results of a finished run: the run, the format, the destination and options.

    `spreadsheet_safe`: for ``tsv``, True to put an apostrophe before texts that a spreadsheet would read as formulas. `query`: for searches
    with queries, the name of the query whose hits are written; '' for all. `consensus`: for spectral libraries, ``merged`` to write the
    mean of the spectra of each entry, ``best`` to write the best spectrum. `accepted_only`: True to write only the targets that are
    accepted at the false discovery rate of the run, if the format supports it. `structures`: for formats that read structures, the files or
    folders that the user names; no other files outside the project are read. `figures`, `q_value`, `fold_change`: for figures, the file
    format and the thresholds of a change: maximum q-value (None for the false discovery rate of the run) and minimum absolute log2 fold
    change.
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
    """Interface of a module or object that selects the preset that suits the sequences given to a search."""

    def suited_preset(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], given: Collection[str]) -> str:
        """Return the name of the preset that suits the inputs, or '' if none does; `given` are the names of parameters set by the user."""

    def input_conflict(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], parameters: SearchParameters) -> str:
        """Return the reason why the inputs and settings do not fit together, or '' if they do."""


@dataclass(frozen=True)
class Search:
    """A kind of search.

    Many attributes are callables without arguments, such as ``lambda: identification.tables.TABLES``. They import a module when it is first
    needed, and return an object from it, so that entries load fast.

    Attributes
    ----------
    kind
        Name of the sub-command, and kind of the search's runs, presets and settings.
    name
        Display name, such as ``sequence search``.
    question
        Scientific question that the search answers.
    purpose
        Purpose, in a sentence.
    description, epilog
        Texts of the sub-command's help.
    job
        Template for the title of a job, with the names of inputs, such as ``Search {queries} in {database}``.
    icon
        Name of a shipped icon.
    parameters
        Returns the `SearchParameters` class of the search.
    preset
        Default preset, '' if there is none.
    run
        Runs the search for a request and a progress, and returns its summary.
    exports
        Formats in which the results of a finished run can be written, the usual one first.
    writes
        ``project`` if results are written into a project folder (``--out DIR``); ``file`` if they are written to a file (``--out FILE``)
        and optionally a project; ``given project`` if they are written into the project that is an input, and optionally to a file.
    shortcuts
        Parameters that have a separate option on the command line.
    modules
        Callables that return the modules that `run` imports; the window loads these while it is idle.
    tables
        Returns the result tables as a tuple of `proteoscope.engine.results.columns.Table`, from the top of the hierarchy down.
    stored
        Returns further tables that its runs store, also as a tuple.
    fitting
        Returns the module that suggests presets for the inputs and reports unsuitable presets, for searches of sequences. None if the
        default preset suits all inputs.
    advising
        Returns the function that suggests a preset that suits files of spectra better than the selected one
        (`proteoscope.engine.parameters.PresetAdvice`). It takes the kind of the search, the contents of the files
        (`proteoscope.engine.formats.spectra_content`) and the parameters. None if presets do not depend on files.
    methods
        Returns the function that describes the methods of a run (`proteoscope.engine.results.counts.MethodsWriter`); None if the
        description common to all searches suffices.
    pages
        Returns the function that writes pages about the results of a finished run. It takes the project, the id of the run, the output
        folder and a progress, and returns the paths. None if the search has only the pages common to all searches.
    workload_types
        Types of workloads that the search computes on devices: the name of each, and a callable that returns its
        `proteoscope.engine.execution.workload.WorkloadType`. Creating the entry registers them. Searches that share a type also share its
        name and callable.
    workload_estimator
        Returns the function that estimates the work of a request before the search, for `proteoscope.engine.estimates`.
    advise_later
        Returns the function that looks for the causes of few identifications in a finished run. It takes the request, the id of the run
        and a progress, adds warnings to the record of the run, and returns them. The window shows results first: it searches with the
        option ``advice`` set to ``none``, and calls this function afterwards if `has_low_yield` of the summary is True. None if there is
        nothing to check.
    keeps
        Kinds of indexes that the search stores in the user's cache for later searches.
    identifies
        True if its runs identify the peptides of spectra, so that searches that use an identification accept these runs: they have PSMs,
        peptides, protein groups, and spectra with peaks.
    accepted_runs
        For a search that uses a run of a project: kinds of runs that it accepts in addition to identifications, each with the tables that
        such a run must have.
    manual
        Name of the manual page of the search in `docs`.
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
    accepted_runs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    question: str = ""
    manual: str = ""

    def __post_init__(self) -> None:
        register_kinds(self.workload_types)
        if self.workload_estimator is not None:
            ESTIMATED_SEARCHES[self.kind] = self

    @property
    def demos(self) -> tuple[Demo, ...]:
        """All demos of the search, the default one first."""
        return () if self.demo is None else (self.demo, *self.more_demos)

    def demo_with(self, data: str) -> Demo | None:
        """Return the demo with this sample data ('' for the default demo), or None."""
        return next((demo for demo in self.demos if data in ("", demo.data)), None)

    @property
    def takes_workers(self) -> bool:
        """True if worker processes can compute the workloads of the search."""
        return bool(self.workload_types)

    def check_workers(self, workers: str, certificates: str | Path | None = None) -> None:
        """Check a request for workers and certificates.

        Raises
        ------
        ParameterError
            If workers are requested for a search that cannot use them, or certificates are given without workers that need them.
        """
        if workers and not self.takes_workers:
            raise ParameterError(f"{self.kind} cannot use worker processes: leave out --workers")
        if certificates is not None and not workers:
            raise ParameterError(f"the certificates in {certificates} are for workers at an address: give this address, too")

    @property
    def model(self) -> type[SearchParameters]:
        """Class of the parameters of the search, loaded on first use."""
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
            raise ParameterError(f"preset '{preset}': {error}") from None

    def suited_preset(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], given: Collection[str] = ()) -> str:
        """Return the preset that suits the inputs and options, or the default preset if none does.

        `given` are the names of parameters set by the user.
        """
        suited = self.fitting().suited_preset(contents, options, given) if self.fitting is not None else ""
        return suited or self.preset

    def usual_preset(self, inputs: Mapping[str, Sequence[Path]], options: Mapping[str, Any], given: Collection[str] = ()) -> str:
        """Return the preset that is used if the user names none: the preset that suits the files (`suited_preset`), or the default."""
        if self.fitting is None:
            return self.preset
        # Files that cannot be read are reported by the search.
        result = {name: formats.sequence_type.inspect_sequences(files) for name, files in inputs.items()}
        return self.suited_preset({name: content for name, content in result.items() if content is not None}, options, given)

    def input_conflict(self, contents: Mapping[str, InputContent], options: Mapping[str, Any], parameters: SearchParameters) -> str:
        """Return the reason why inputs and settings do not fit together, for display in a form, or '' if they do."""
        return self.fitting().input_conflict(contents, options, parameters) if self.fitting is not None else ""

    def advice(self, contents: Sequence[SpectraContent], parameters: SearchParameters) -> PresetAdvice | None:
        """Return advice to use a preset that suits the spectrum files better than `parameters`; None if there is no such preset."""
        return self.advising()(self.kind, contents, parameters) if self.advising is not None and contents else None

    def methods_of(self, facts: RunFacts) -> Methods | None:
        """Return the search-specific description of a run's methods, or None."""
        return self.methods()(facts) if self.methods is not None else None

    def write_pages(self, project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
        """Write the search-specific pages about a finished run into a folder; return their paths."""
        return self.pages()(project, run_id, folder, progress) if self.pages is not None else []

    def write_report(self, summary: Summary, folder: Path | None, formats: Mapping[str, str], progress: Progress) -> None:
        """Write exports and pages of a finished run into a folder; do nothing without a folder or a recorded run.

        Parameters
        ----------
        formats
            Name of the file in the folder for each export, by the name of the export; '' for the folder itself.
        """
        if folder is None or summary.folder is None or summary.run_id is None:
            return
        project = engine.project.Project.open(summary.folder)
        for name, file in formats.items():
            self.export(project, ExportRequest(summary.run_id, name, folder / file), progress)
        self.write_pages(project, summary.run_id, folder, progress)

    @property
    def result_tables(self) -> tuple[Table, ...]:
        """Result tables of the search, loaded on first use."""
        return self.tables()

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Result tables and further stored tables of the search, loaded on first use."""
        return (*self.result_tables, *self.stored())

    @property
    def contents(self) -> set[FileContent]:
        """Contents of files that the search reads."""
        return {sort for search_input in self.inputs for sort in search_input.contents}

    def format_of(self, name: str, requested: str = "") -> str:
        """Return the name of the export format for a results file with the name `name`.

        It is `requested` if given, otherwise the format with the extension of the file, which may be followed by ``.gz``, otherwise the
        first format of the search.

        Raises
        ------
        ParameterError
            If the name ends with ``.gz`` and the format is not text.
        """
        plain = bare_name(name)
        endings = ((ending, export.name) for export in self.exports for ending in export.endings if plain.endswith(ending))
        result = requested or max(endings, key=lambda pair: len(pair[0]), default=("", self.exports[0].name))[1]
        if (export := self.exported_as(result)) is not None:
            export.check_name(Path(name))
        return result

    def exported_as(self, name: str) -> Export | None:
        """Return the export format with this name, or None if there is none."""
        return next((export for export in self.exports if export.name == name), None)

    def recorded_parameters(self, project: Project, run: RunRecord) -> dict[str, Any]:
        """Return the recorded parameters of a run, except unknown ones, after checking them: the record may be damaged or forged.

        Raises
        ------
        InputError
            If a recorded value is invalid.
        """
        fields = self.model.model_fields
        recorded = {name: value for name, value in run.parameters.items() if name in fields}
        try:
            return self.model.checked(recorded).model_dump(mode="json", include=set(recorded))
        except ParameterError as error:
            raise InputError(project.folder, f"the recorded parameters of {run.id} are damaged: {error}", remedy="Search again") from None

    def export(self, project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
        """Write the results of a finished run in one of `exports`; return the paths of the files.

        A file appears under its name only when it is complete.

        Raises
        ------
        ParameterError
            If there is no such format, or an input would be overwritten.
        InputError
            If the project has no such finished run, or a table of it is damaged.
        StorageError
            If writing fails.
        Cancelled
            If the user cancels the export.
        """
        chosen = self.exported_as(request.format)
        if chosen is None:
            names = ", ".join(export.name for export in self.exports)
            raise ParameterError(f"there is no format '{request.format:.40}'; expected one of {names}")
        for run in project.runs():
            if run.id == request.run_id:
                self.recorded_parameters(project, run)  # raises an error if a recorded value is invalid
        if not chosen.is_folder:
            chosen.check_name(request.target)
        inputs = [file.path for file in project.inputs(request.run_id)]
        check_outputs([request.target / name for name in chosen.files] or [request.target], inputs, project.folder)
        return chosen.write()(project, request, progress)


def identifying_kinds() -> frozenset[str]:
    """Return the kinds of searches whose runs other searches can use as identifications.

    The list of all searches is imported when this function is called, since a script that runs one search has imported only its entry.
    """
    # The list imports this module, so it is imported here, when first needed.
    return frozenset(search.kind for search in engine.searches.SEARCHES if search.identifies)


def recorded_parameters(project: Project, run: RunRecord) -> dict[str, Any]:
    """Return the recorded parameters of a run of any search after checking them; see `Search.recorded_parameters`.

    Raises
    ------
    InputError
        If the search does not allow one of the values, or this version of the program has no such search.
    """
    search = next((search for search in engine.searches.SEARCHES if search.kind == run.kind), None)
    if search is None:
        raise InputError(project.folder, f"run '{run.id}' belongs to an unknown search '{run.kind:.40}'", remedy="Search again")
    return search.recorded_parameters(project, run)


def find_result_table(kind: str, name: str) -> Table:
    """Return the result table `name` of the search `kind`; the caller need not import that search."""
    search = next(search for search in engine.searches.SEARCHES if search.kind == kind)
    return next(table for table in search.result_tables if table.name == name)
