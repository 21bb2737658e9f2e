"""Tasks that the window passes to the job queue: searches, exports and other writing tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from PySide6.QtCore import QLocale

from proteoscope import engine
from proteoscope.engine import experiments, matches, structure_search, structures, views
from proteoscope.engine import library_search as library_search_package
from proteoscope.engine.entry import ExportRequest, Search, SearchRequest, recorded_parameters
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs import Lane, Progress
from proteoscope.engine.project import Project, RunRecord, gone_error, is_project
from proteoscope.engine.project.paths import inside
from proteoscope.engine.results.counts import counted
from proteoscope.gui.words import counts_text

if TYPE_CHECKING:
    from proteoscope.engine.execution.devices import Device
    from proteoscope.engine.experiments.running import RunOutcome
    from proteoscope.engine.experiments.table import ExperimentRow
    from proteoscope.engine.library_search.prediction import Prediction
    from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
    from proteoscope.engine.matches.conversion import Conversion, ConversionRequest
    from proteoscope.engine.structures.database import StructureDatabase

_NAME_DIGITS = 12


@dataclass(frozen=True)
class SearchTask:
    """Search to run in the project of its request.

    Attributes
    ----------
    pasted : mapping of str to str
        Pasted FASTA text by input name.
    tables : mapping of str to str
        Tables edited in the window, by option name.
    """

    lane: ClassVar[Lane] = "searches"
    search: Search
    title: str
    request: SearchRequest
    pasted: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    @property
    def project_folder(self) -> Path:
        """Folder of the project."""
        assert self.request.project is not None
        return Path(self.request.project)

    def in_project(self, folder: Path) -> SearchTask:
        """Return the same search in another project."""
        inputs = dict(self.request.inputs)
        if self.search.writes == "given project":
            inputs = {
                input_spec.name: (folder,) if input_spec.content == "project" else inputs[input_spec.name]
                for input_spec in self.search.inputs
            }
        return replace(self, request=replace(self.request, project=folder, inputs=inputs))

    def run(self, progress: Progress) -> Any:
        """Run the search in the background thread, where the modules for it are imported, and return the summary."""
        progress.stage("Starting")
        return self.search.run(self.whole_request(), progress)

    def whole_request(self) -> SearchRequest:
        """Return the complete request, with files for pasted texts and tables.

        The check for causes of few identifications is switched off if `advice` can do it later.
        """
        written = {name: self._written(name, "pasted", text, ".fasta") for name, text in self.pasted.items() if text}
        inputs = {name: [*paths, *([written[name]] if name in written else [])] for name, paths in self.request.inputs.items()}
        made = {name: self._written(name, "made", text, ".tsv") for name, text in self.tables.items()}
        later = {} if self.search.advise_later is None else {"advice": "none"}
        return replace(self.request, inputs=inputs, options={**self.request.options, **made, **later})

    def advice(self, summary: Any) -> AdviceTask | None:
        """Return the task that looks for causes of few identifications in the finished run, or None if this is not needed or possible."""
        if self.search.advise_later is None or not getattr(summary, "has_low_yield", False):
            return None
        return AdviceTask(self, summary.run_id)

    def run_in_project(self, progress: Progress) -> Any:
        """Run the search in its existing project.

        Raises
        ------
        StorageError
            If the project folder is missing.
        """
        if not is_project(self.project_folder):
            raise gone_error(self.project_folder)
        return self.run(progress)

    @staticmethod
    def outcome(summary: Any, locale: QLocale) -> str:
        """Return a summary of the results as one line."""
        return counts_text(summary.counts(), locale)

    def _written(self, name: str, how: str, text: str, ending: str) -> Path:
        """Write a text to a file in the project, so that the record of the run can refer to this file."""
        content = text.encode()
        path = inside(self.project_folder, name, f"{how}-{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}{ending}")
        with atomic_file(path) as file:
            file.write(content)
        return path


class WrittenLibrary(NamedTuple):
    """Inputs and parameters of a library search that uses a new spectral library."""

    inputs: Mapping[str, tuple[Path, ...]]
    parameters: Mapping[str, Any]


class WritingTask:
    """Base class of tasks that write files outside projects.

    Such tasks run at the same time as searches. If a derived class has the `lane` "searches", its tasks wait for searches instead.
    """

    lane: ClassVar[Lane] = "writing"

    @property
    def title(self) -> str:
        """Title of the job."""
        raise NotImplementedError

    def run(self, progress: Progress) -> Any:
        """Run the task in the background thread."""
        raise NotImplementedError

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the outcome as one line: the names of the written files, unless a task overrides this."""
        return f"{', '.join(path.name for path in written)} written"

    def library_search(self) -> WrittenLibrary | None:
        """Return the inputs and parameters of a search in the written library, or None if no library was written."""
        return None


@dataclass(frozen=True)
class AdviceTask(WritingTask):
    """Task that looks for causes of few identifications in a finished run, after the queued searches."""

    lane = "searches"
    searched: SearchTask
    run_id: str

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Check causes of few identifications in {self.run_id}"

    @property
    def project_folder(self) -> Path:
        """Folder of the project."""
        return self.searched.project_folder

    def run(self, progress: Progress) -> tuple[str, ...]:
        """Check the run in the background thread, add the warnings to the record of the run, and return them."""
        progress.stage("Starting")
        advise_later = self.searched.search.advise_later
        assert advise_later is not None
        return advise_later()(self.searched.whole_request(), self.run_id, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the first warning and the number of further warnings as one line."""
        if not written:
            return "No cause found"
        return written[0] + (f" ({locale.toString(len(written) - 1)} more on the run's page)" if len(written) > 1 else "")


@dataclass(frozen=True)
class ExperimentTask(WritingTask):
    """Task that searches the unfinished runs of an experiment, each as a separate search.

    Attributes
    ----------
    searched : SearchTask
        Search with the parameters and inputs that all runs share; it has no spectrum files.
    """

    lane = "searches"
    searched: SearchTask

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Search the runs of {self.project_folder.name}"

    @property
    def search(self) -> Search:
        """Search that all runs of the experiment use."""
        return self.searched.search

    @property
    def project_folder(self) -> Path:
        """Folder of the project."""
        return self.searched.project_folder

    def in_project(self, folder: Path) -> ExperimentTask:
        """Return the same task for another project."""
        return replace(self, searched=self.searched.in_project(folder))

    def run(self, progress: Progress) -> list[RunOutcome]:
        """Search the runs in the background thread and return their outcomes."""
        progress.stage("Starting")
        project = Project.open(self.project_folder)
        rows = experiments.table.read_experiment(project)
        request, processes = experiments.estimating.keep_memory(self.search, self.searched.whole_request(), 0, rows, project)
        return experiments.running.run_experiment(self.search, request, rows, project, progress, processes)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the numbers of searched, finished and failed runs, and the first failed run with its reason, as one line."""
        failed = [outcome for outcome in written if outcome.status == "failed"]
        n_done = sum(outcome.status == "done" for outcome in written)
        reason = f": {failed[0].run} ({failed[0].message})" if failed else ""
        more = f" and {locale.toString(len(failed) - 1)} more" if len(failed) > 1 else ""
        n_before = len(written) - n_done - len(failed)
        finished = f", {locale.toString(n_before)} finished before" if n_before else ""
        return f"{counted(n_done, 'run')} searched{finished}" + (f", {locale.toString(len(failed))} failed{reason}{more}" if failed else "")


@dataclass(frozen=True)
class AddRunsTask(WritingTask):
    """Task that adds files to the experiment of a project, which it creates if necessary.

    Attributes
    ----------
    folder : Path
        Folder of the project.
    files : tuple of Path
        Spectrum files.
    pattern : str
        Regular expression for the names of the files, see `proteoscope.engine.experiments.table.describe_files`.
    table : str
        Table of runs in place of files, as tab-separated text with paths from the folder that contains the project, or ''.
    """

    folder: Path
    files: tuple[Path, ...]
    pattern: str = ""
    table: str = ""

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Add runs to {self.folder.name}"

    def rows(self) -> list[ExperimentRow]:
        """Return the rows to add, without digests."""
        if not self.table:
            return experiments.table.describe_files(self.files, self.pattern)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "table.tsv"
            path.write_text(self.table, encoding="utf-8")
            rows = experiments.table.read_table(path)
        # `read_table` returns paths from the folder of the table.
        relative = {row.file: Path(row.file).relative_to(folder) for row in rows if Path(row.file).is_relative_to(folder)}
        return [row._replace(file=str(self.folder.absolute().parent / relative.get(row.file, row.file))) for row in rows]

    def run(self, progress: Progress) -> int:
        """Add the runs in the background thread and return their number."""
        project = Project.create_or_open(self.folder)
        with project.writing("the experiment", progress):
            present = experiments.table.read_experiment(project) if views.experiment_runs.has_experiment(project) else []
            rows, n_added = experiments.table.add_rows(present, self.rows(), project, progress)
            experiments.table.write_experiment(project, rows)
        return n_added

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the number of added runs."""
        return f"{counted(written, 'run')} added"


@dataclass(frozen=True)
class QualityPageTask(WritingTask):
    """Task that writes the quality of the runs of an experiment as an HTML file."""

    project_folder: Path
    path: Path

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Write {self.path.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write the file in the background thread and return it."""
        views.experiment_figures.write_quality_page(Project.open(self.project_folder), self.path, progress)
        return [self.path]


@dataclass(frozen=True)
class ExportTask(WritingTask):
    """Task that exports results of a finished run to a file or a folder."""

    search: Search
    project_folder: Path
    request: ExportRequest

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Export results of {self.request.run_id} to {self.request.target.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write the results in the background thread and return the written files."""
        progress.stage("Starting")
        return self.search.export(Project.open(self.project_folder), self.request, progress)

    def library_search(self) -> WrittenLibrary | None:
        """Return inputs and parameters for searching the run's spectra in the exported library, or None if no library was exported."""
        export = self.search.exported_as(self.request.format)
        if export is None or not export.is_library:
            return None
        try:
            project, run = Project.open(self.project_folder), self.request.run_id
            source = project.record(run).get("source_run", run)
            spectra = tuple(record.path for record in project.inputs(str(source)) if record.kind == "spectra")
            parameters = next((recorded_parameters(project, run) for run in project.runs() if run.id == source), {})
        except ProteoscopeError:  # the library was written, but the project can no longer be read
            return None
        tolerances: dict[str, Any] = {
            name: parameters[name] for name in ("precursor_tolerance", "fragment_tolerance") if name in parameters
        }
        return WrittenLibrary({"spectra": spectra, "library": (self.request.target,)}, tolerances)


@dataclass(frozen=True)
class ReportTask(WritingTask):
    """Task that writes the report of a finished run, with the additional pages of its search, into a folder."""

    search: Search
    project_folder: Path
    run_record: RunRecord
    folder: Path

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Report of {self.run_record.id} in {self.folder.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write the report in the background thread; return its files and, if it has additional pages, the page that lists these."""
        report, pages = views.run_report.write_report_and_pages(
            Project.open(self.project_folder), self.run_record, self.search, self.folder, progress
        )
        return [*report, *pages[-1:]]


@dataclass(frozen=True)
class SuperpositionTask(WritingTask):
    """Task that exports a superposed hit of a structure search: coordinates, table, alignment and scripts.

    Attributes
    ----------
    inputs, minimum_plddt, models
        Input files of the run and two of its parameters.
    hit : mapping
        Row of the hit, with the residues of its query.
    folder : Path
        Target folder, created if missing.
    check : callable
        Function that raises an error if the given structure file may not be read.
    """

    inputs: tuple[tuple[str, Path], ...]
    minimum_plddt: float
    models: Literal["first", "all"]
    hit: Mapping[str, Any]
    folder: Path
    check: Callable[[Path], None]

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Superpose {self.hit['target']} and {self.hit['query']}"

    def run(self, progress: Progress) -> Path:
        """Write the files and return the folder."""
        progress.stage("Reading structures")
        chains = structure_search.hit_chains.HitChains(self.inputs, self.minimum_plddt, self.models, self.check)
        hit = self.hit
        query = chains.query(hit["query"], hit["query_sequence"])
        target = chains.target(hit["target"], hit["target_sequence"], hit["target_index"])
        progress.stage("Writing")
        _, warnings = structure_search.hit_chains.write_hit(self.folder, query, target, hit)
        for text in warnings:
            progress.message(text, "warning")
        return self.folder

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text with the folder and the programs that can open its files."""
        return f"coordinates, alignment and scripts for PyMOL and ChimeraX written into {written}"


@dataclass(frozen=True)
class ConversionTask(WritingTask):
    """Task that converts spectra to another format."""

    request: ConversionRequest

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Write spectra to {self.request.out.name}"

    def run(self, progress: Progress) -> Conversion:
        """Write the spectra."""
        progress.stage("Starting")
        compile_kernels(["import"], progress)
        return matches.conversion.convert_spectra(self.request, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the number of written spectra."""
        return f"{locale.toString(written.n_written)} of {counted(written.n_spectra, 'spectrum', 'spectra')} written"


@dataclass(frozen=True)
class PredictionTask(WritingTask):
    """Task that predicts a spectral library from proteins."""

    proteins: tuple[Path, ...]
    out: Path
    parameters: PredictionParameters

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Predict the library {self.out.name}"

    def run(self, progress: Progress) -> Prediction:
        """Predict the library."""
        progress.stage("Starting")
        return library_search_package.prediction.predict_library(self.proteins, self.out, self.parameters, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the numbers of entries and peptides."""
        return f"{locale.toString(written.n_entries)} entries of {locale.toString(written.n_peptides)} peptides written"

    def library_search(self) -> WrittenLibrary:
        """Return inputs and parameters of a search in the predicted library."""
        return WrittenLibrary({"library": (self.out,)}, {})


@dataclass(frozen=True)
class CalibrationTask(WritingTask):
    """Task that calibrates a device. It has the `lane` of searches, so that no search uses the device during the measurement."""

    lane = "searches"
    device: Device

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Calibrate {self.device.name}"

    def run(self, progress: Progress) -> int:
        """Measure the device and return 1, or 0 if it could not be measured."""
        progress.stage("Starting")
        return engine.calibration.calibrate([self.device], progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text that states whether the device was measured."""
        return "calibrated; estimates now use the new values" if written else "the device could not be measured; see the log"


@dataclass(frozen=True)
class DatabaseTask(WritingTask):
    """Task that builds a structure database.

    Attributes
    ----------
    sources : tuple of Path
        Files and folders with structures.
    folder : Path
        Folder of the database.
    minimum_plddt : float
        Minimum pLDDT (0 to 100) of residues in predicted structures.
    """

    lane = "searches"
    sources: tuple[Path, ...]
    folder: Path
    minimum_plddt: float = 0.0

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Build the structure database {self.folder.name}"

    def run(self, progress: Progress) -> StructureDatabase:
        """Build the database."""
        progress.stage("Starting")
        compile_kernels(["superposition"], progress)
        return structures.building.build_database(self.sources, self.folder, minimum_plddt=self.minimum_plddt, progress=progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return a text with the size of the database and the number of skipped chains."""
        chains, skipped = written.chains, len(written.skipped)
        held = f"{locale.toString(len(chains))} chain{'' if len(chains) == 1 else 's'}, {locale.toString(int(chains.offsets[-1]))} residues"
        return held + (f"; {locale.toString(skipped)} skipped" if skipped else "")
