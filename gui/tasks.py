"""What the window gives to the queue of jobs: searches, exports of what they found, and databases to search in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from PySide6.QtCore import QLocale

from proteoscope import engine
from proteoscope.engine import library_search as library_search_package
from proteoscope.engine import matches, structure_search, structures, views
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
    from proteoscope.engine.library_search.predicting import Prediction
    from proteoscope.engine.library_search.prediction_parameters import PredictionParameters
    from proteoscope.engine.matches.conversion import Conversion, ConversionRequest
    from proteoscope.engine.structures.database import StructureDatabase

__all__ = [
    "AdviceTask",
    "CalibrationTask",
    "ConversionTask",
    "DatabaseTask",
    "ExportTask",
    "MadeLibrary",
    "PredictionTask",
    "ReportTask",
    "SearchTask",
    "SuperpositionTask",
    "WritingTask",
]

_NAME_DIGITS = 12


@dataclass(frozen=True)
class SearchTask:
    """A search that is to run in a project, which the request names.

    `pasted`: what was pasted for inputs, as FASTA, by their names. `tables`: texts of options that are tables made in the window, likewise.
    """

    lane: ClassVar[Lane] = "searches"
    search: Search
    title: str
    request: SearchRequest
    pasted: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    @property
    def project_folder(self) -> Path:
        """The project's folder."""
        assert self.request.project is not None
        return Path(self.request.project)

    def in_project(self, folder: Path) -> SearchTask:
        """The same search in another project."""
        inputs = dict(self.request.inputs)
        if self.search.writes == "given project":
            inputs = {one.name: (folder,) if one.sort == "project" else inputs[one.name] for one in self.search.inputs}
        return replace(self, request=replace(self.request, project=folder, inputs=inputs))

    def run(self, progress: Progress) -> Any:
        """Do the search, in the background thread, where what computes is imported; the engine's summary of it."""
        progress.stage("Starting")
        return self.search.run(self.whole_request(), progress)

    def whole_request(self) -> SearchRequest:
        """Return the request with files for what was given as text; advice is left to `advice`."""
        written = {name: self._written(name, "pasted", text, ".fasta") for name, text in self.pasted.items() if text}
        inputs = {name: [*paths, *([written[name]] if name in written else [])] for name, paths in self.request.inputs.items()}
        made = {name: self._written(name, "made", text, ".tsv") for name, text in self.tables.items()}
        later = {} if self.search.advise_later is None else {"advice": "none"}
        return replace(self.request, inputs=inputs, options={**self.request.options, **made, **later})

    def advice(self, summary: Any) -> AdviceTask | None:
        """Return the task that checks the finished run for causes of few identifications; None where it has enough."""
        if self.search.advise_later is None or not getattr(summary, "has_low_yield", False):
            return None
        return AdviceTask(self, summary.run_id)

    def run_in_project(self, progress: Progress) -> Any:
        """Do the search in the project that was there when it was asked for. One that is gone since then is not made anew.

        Raises
        ------
        StorageError : the project is gone.
        """
        if not is_project(self.project_folder):
            raise gone_error(self.project_folder)
        return self.run(progress)

    @staticmethod
    def outcome(summary: Any, locale: QLocale) -> str:
        """Results, in one line."""
        return counts_text(summary.counts(), locale)

    def _written(self, name: str, how: str, text: str, ending: str) -> Path:
        """What was given as a text, in a file of the project, whose runs name the files that they read."""
        content = text.encode()
        path = inside(self.project_folder, name, f"{how}-{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}{ending}")
        with atomic_file(path) as file:
            file.write(content)
        return path


class MadeLibrary(NamedTuple):
    """A spectral library that was made, and what is searched in it: files by the names of the library search's inputs, and parameters."""

    inputs: Mapping[str, tuple[Path, ...]]
    parameters: Mapping[str, Any]


class WritingTask:
    """What writes files that are no project: it ends with a line that says so. It does not wait behind searches, but for what is one."""

    lane: ClassVar[Lane] = "writing"

    @property
    def title(self) -> str:
        """Of the job."""
        raise NotImplementedError

    def run(self, progress: Progress) -> Any:
        """Do it, in the background thread."""
        raise NotImplementedError

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Paths that were written, in one line."""
        raise NotImplementedError

    def library_search(self) -> MadeLibrary | None:
        """What a search of the library that it wrote begins with; None where it is none."""
        return None


@dataclass(frozen=True)
class AdviceTask(WritingTask):
    """A finished run that is checked for causes of few identifications, after the searches that wait."""

    lane = "searches"
    searched: SearchTask
    run_id: str

    @property
    def title(self) -> str:
        """Title of the job."""
        return f"Check causes of few identifications in {self.run_id}"

    @property
    def project_folder(self) -> Path:
        """The project's folder."""
        return self.searched.project_folder

    def run(self, progress: Progress) -> tuple[str, ...]:
        """Check it in the background thread, and return the warnings, which the run's record has then."""
        progress.stage("Starting")
        advise_later = self.searched.search.advise_later
        assert advise_later is not None
        return advise_later()(self.searched.whole_request(), self.run_id, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Return the first warning and the number of others."""
        if not written:
            return "No cause found"
        return written[0] + (f" ({locale.toString(len(written) - 1)} more on the run's page)" if len(written) > 1 else "")


@dataclass(frozen=True)
class ExportTask(WritingTask):
    """Results of a finished run that are to be written to a file or a folder."""

    search: Search
    project_folder: Path
    request: ExportRequest

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Export results of {self.request.run_id} to {self.request.target.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write them, in the background thread; the files that were written."""
        progress.stage("Starting")
        return self.search.export(Project.open(self.project_folder), self.request, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Which files were written."""
        return f"{', '.join(path.name for path in written)} written"

    def library_search(self) -> MadeLibrary | None:
        """The spectra of the run in the library that was made of it."""
        export = self.search.exported_as(self.request.format)
        if export is None or not export.is_library:
            return None
        try:
            project, run = Project.open(self.project_folder), self.request.run_id
            source = project.record(run).get("source_run", run)
            spectra = tuple(one.path for one in project.inputs(str(source)) if one.kind == "spectra")
            parameters = next((recorded_parameters(project, one) for one in project.runs() if one.id == source), {})
        except ProteoscopeError:  # the project has gone or is forged, and the library is there
            return None
        kept: dict[str, Any] = {name: parameters[name] for name in ("precursor_tolerance", "fragment_tolerance") if name in parameters}
        return MadeLibrary({"spectra": spectra, "library": (self.request.target,)}, kept)


@dataclass(frozen=True)
class ReportTask(WritingTask):
    """A finished run that is to be written as a page into a folder, with the pages of its own that its search has."""

    search: Search
    project_folder: Path
    run_record: RunRecord
    folder: Path

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Report of {self.run_record.id} in {self.folder.name}"

    def run(self, progress: Progress) -> list[Path]:
        """Write it, in the background thread; the files that were written, and of pages the one that leads to the others."""
        report, pages = views.run_report.write_report_and_pages(
            Project.open(self.project_folder), self.run_record, self.search, self.folder, progress
        )
        return [*report, *pages[-1:]]

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Which files were written."""
        return f"{', '.join(path.name for path in written)} written"


@dataclass(frozen=True)
class SuperpositionTask(WritingTask):
    """A hit of a structure search that is to be written superposed: coordinates, table, alignment and scripts.

    `inputs`, `minimum_confidence`, `models`: of the run. `hit`: its row, with the residues of its query. `folder`: made where it is
    missing.
    """

    inputs: tuple[tuple[str, Path], ...]
    minimum_confidence: float
    models: Literal["first", "all"]
    hit: Mapping[str, Any]
    folder: Path
    check: Callable[[Path], None]

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Superpose {self.hit['target']} and {self.hit['query']}"

    def run(self, progress: Progress) -> Path:
        """Write it; the folder."""
        progress.stage("Reading structures")
        chains = structure_search.hit_chains.HitChains(self.inputs, self.minimum_confidence, self.models, self.check)
        hit = self.hit
        query = chains.query(hit["query"], hit["query_sequence"])
        target = chains.target(hit["target"], hit["target_sequence"], hit["target_index"])
        progress.stage("Writing")
        _, told = structure_search.hit_chains.write_hit(self.folder, query, target, hit)
        for text in told:
            progress.message(text, "warning")
        return self.folder

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Where it was written, and how it is looked at."""
        return f"coordinates, alignment and scripts for PyMOL and ChimeraX written into {written}"


@dataclass(frozen=True)
class ConversionTask(WritingTask):
    """Spectra that are to be written in another format."""

    request: ConversionRequest

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Write spectra to {self.request.out.name}"

    def run(self, progress: Progress) -> Conversion:
        """Write them."""
        progress.stage("Starting")
        compile_kernels(["import"], progress)
        return matches.conversion.convert_spectra(self.request, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """How many were written."""
        return f"{locale.toString(written.n_written)} of {counted(written.n_spectra, 'spectrum', 'spectra')} written"


@dataclass(frozen=True)
class PredictionTask(WritingTask):
    """A spectral library that is to be predicted from proteins."""

    proteins: tuple[Path, ...]
    out: Path
    parameters: PredictionParameters

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Predict the library {self.out.name}"

    def run(self, progress: Progress) -> Prediction:
        """Predict it."""
        progress.stage("Starting")
        return library_search_package.predicting.predict_library(self.proteins, self.out, self.parameters, progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """How many entries it has."""
        return f"{locale.toString(written.n_entries)} entries of {locale.toString(written.n_peptides)} peptides written"

    def library_search(self) -> MadeLibrary:
        """Spectra in the library."""
        return MadeLibrary({"library": (self.out,)}, {})


@dataclass(frozen=True)
class CalibrationTask(WritingTask):
    """A device that is to be measured, behind searches, which would take part of it meanwhile."""

    lane = "searches"
    device: Device

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Calibrate {self.device.name}"

    def run(self, progress: Progress) -> int:
        """Measure it; how many devices were measured."""
        progress.stage("Starting")
        return engine.calibration.calibrate([self.device], progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """Whether it was measured."""
        return "measured; estimates use it from now on" if written else "it could not be measured; the log says why"


@dataclass(frozen=True)
class DatabaseTask(WritingTask):
    """A structure database that is to be built.

    `sources`: files and folders. `minimum_confidence`: residues with a lower pLDDT are left out.
    """

    lane = "searches"
    sources: tuple[Path, ...]
    folder: Path
    minimum_confidence: float = 0.0

    @property
    def title(self) -> str:
        """Of the job."""
        return f"Build the structure database {self.folder.name}"

    def run(self, progress: Progress) -> StructureDatabase:
        """Build it."""
        progress.stage("Starting")
        compile_kernels(["superposition"], progress)
        return structures.building.build_database(self.sources, self.folder, minimum_confidence=self.minimum_confidence, progress=progress)

    @staticmethod
    def outcome(written: Any, locale: QLocale) -> str:
        """What it holds."""
        chains, skipped = written.chains, len(written.skipped)
        held = f"{locale.toString(len(chains))} chains, {locale.toString(int(chains.offsets[-1]))} residues"
        return held + (f"; {locale.toString(skipped)} left out" if skipped else "")
