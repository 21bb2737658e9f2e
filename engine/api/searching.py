"""One function for each search. Each calls the same function as the command line and returns the result of the run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from proteoscope.engine import estimates
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, one_folder, one_path, progress_of
from proteoscope.engine.api.results import OpenProject, Result
from proteoscope.engine.api.search_results import (
    Clustering,
    Evidence,
    Explanation,
    Identification,
    ImportedResults,
    LibrarySearch,
    ModifiedSearch,
    Quantification,
    ReadAlignment,
    StructureSearch,
    new_project,
    open_project,
)
from proteoscope.engine.errors import ParameterError, RunExistsError
from proteoscope.engine.files import is_there
from proteoscope.engine.project import removed_if_unused
from proteoscope.engine.searches import Files, check_run_options, run_or_skip, search_of_kind, search_request
from proteoscope.engine.summary import Summary

if TYPE_CHECKING:
    from proteoscope.engine.clustering.parameters import ClusteringParameters, ExplanationParameters
    from proteoscope.engine.estimates import Estimate
    from proteoscope.engine.evidence.parameters import EvidenceParameters
    from proteoscope.engine.identification.parameters import IdentificationParameters
    from proteoscope.engine.imported.parameters import ImportParameters
    from proteoscope.engine.library_search.parameters import LibrarySearchParameters
    from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
    from proteoscope.engine.parameters import SearchParameters
    from proteoscope.engine.quantification.parameters import QuantificationParameters
    from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
    from proteoscope.engine.structure_search.parameters import StructureSearchParameters

__all__ = [
    "EstimateMade",
    "IfBusy",
    "ProjectLike",
    "RunOptions",
    "SearchArguments",
    "cluster",
    "evidence",
    "explain",
    "identify",
    "import_results",
    "is_estimating",
    "library",
    "modified",
    "project_and_run",
    "quantify",
    "reads",
    "structures",
]

R = TypeVar("R", bound=Result)
ProjectLike: TypeAlias = PathLike | OpenProject | Result
"""A project: its folder, `open_project` of it, or the result of a search in it."""
IfBusy: TypeAlias = Literal["refuse", "wait"]
"""Reaction of a search to another process that writes its project: an error, or waiting."""


def identify(
    spectra: Files,
    database: Files,
    *,
    out: PathLike | None = None,
    parameters: IdentificationParameters | None = None,
    preset: PathLike | None = None,
    strict: bool = False,
    advice: Literal["brief", "full", "none"] = "brief",
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> Identification:
    """Identify peptides and proteins from tandem mass spectra.

    Parameters
    ----------
    spectra : str, Path or iterable of these
        Spectrum file or files; a text is one file.
    database : str, Path or iterable of these
        Protein sequences.
    out : str or Path, optional
        Project folder that records the run, created if missing. By default, a temporary folder of the system is used. It is removed when
        the result and all results made from it are no longer used, when `Result.close` is called, or when Python ends.
    parameters : IdentificationParameters, optional
        All parameters, instead of a preset.
    preset : str or Path, optional
        Name of a preset (``proteoscope presets identify`` lists them), or a TOML file; by default the preset that the command line uses.
    strict : bool
        True to refuse files with spectra that cannot be read, instead of leaving out these spectra.
    advice : str
        Search for causes of few identifications: ``brief`` (at most a tenth of the run's time), ``full`` or ``none``.
    device : str
        ``auto`` (all usable GPUs, or else the CPU), ``cpu``, ``cuda``, ``cuda:N``, or ``all`` (GPUs and CPU together).
    threads : int, optional
        Number of CPU threads; by default all.
    run_name : str
        Name of the run, whose tables are in ``results/NAME`` of the project; by default the kind of the search and a number.
    overwrite : bool
        True to replace a finished run of this name when the new one is done.
    skip_existing : bool
        True to return a finished run of this name instead of searching, if its parameters and the content of its files are the same, and
        the files that the search writes in addition to the project exist.
    if_busy : str
        Behaviour while another process writes the project: ``refuse`` or ``wait``.
    progress : callable or Progress, optional
        Function that receives each `ProgressEvent`, or a `Progress`, whose `cancel` stops the search.
    **settings
        Single parameters that differ from `parameters` or `preset`, by name, such as ``missed_cleavages=1``; lists may be given as text.
        Also ``workers`` and ``certificates``, as on the command line.

    Returns
    -------
    Identification
        Result with the tables ``psms``, ``peptides`` and ``proteins``.

    Raises
    ------
    ParameterError
        If an argument is wrong.
    InputError, StorageError
        If a file cannot be used, or the results cannot be written.
    Cancelled
        If `progress` cancels.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> spectra, proteins = path("samples", "BSA1.mzML.gz"), path("samples", "albumin_proteins.fasta.gz")
    >>> result = proteoscope.identify(spectra, proteins, preset="low-resolution", missed_cleavages=1)
    >>> result
    Identification(identify-0001: 84 PSMs, 26 peptides, 5 proteins at 0.01 FDR)
    >>> result.psms.num_rows == len(result.psms.to_pylist())
    True
    >>> proteoscope.identify(spectra, proteins, missed_cleavages=-1)
    Traceback (most recent call last):
    ...
    proteoscope.engine.errors.ParameterError: missed_cleavages = -1: input should be greater than or equal to 0
    """
    options = {"strict": strict, "advice": advice}
    request = SearchArguments(
        out, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run(Identification, {"spectra": spectra, "database": database}, options)


def modified(
    spectra: Files = (),
    database: Files = (),
    *,
    from_project: ProjectLike | None = None,
    run: str = "",
    out: PathLike | None = None,
    parameters: ModifiedSearchParameters | None = None,
    preset: PathLike | None = None,
    strict: bool = False,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> ModifiedSearch:
    """Find peptides with unexpected modifications.

    Parameters
    ----------
    spectra, database : str, Path or iterable of these
        Spectrum files, and protein sequences; may be omitted with `from_project`.
    from_project : str, Path, OpenProject or Result, optional
        Project of an identification, or its result. The spectra that the identification left unidentified are searched in the proteins that
        it found.
    run : str
        Id of this identification; by default that of the given result, or the last identification of the project.
    out, parameters, preset, strict, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    ModifiedSearch
        Result with the tables ``psms``, ``modifications``, ``peptides`` and ``proteins``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> spectra, proteins = path("samples", "BSA1.mzML.gz"), path("samples", "albumin_proteins.fasta.gz")
    >>> proteoscope.modified(spectra, proteins, preset="low-resolution", mass_shift="-20..100").kind
    'modified'
    """
    request = SearchArguments(
        out, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    options: dict[str, Any] = {"strict": strict}
    if from_project is not None:
        folder, run = project_and_run(from_project, run, "from_project")
        options |= {"from_project": folder.path, "run": run or None}
    elif run:
        raise ParameterError(f"run = {run!r:.100}: needs from_project, the project of the run")
    return request.run(ModifiedSearch, {"spectra": spectra, "database": database}, options)


def library(
    spectra: Files,
    library: Files,
    database: Files = (),
    *,
    out: PathLike | None = None,
    parameters: LibrarySearchParameters | None = None,
    preset: PathLike | None = None,
    strict: bool = False,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> LibrarySearch:
    """Search spectra in spectral libraries.

    Parameters
    ----------
    spectra, library : str, Path or iterable of these
        Spectrum files, and spectral libraries.
    database : str, Path or iterable of these
        Protein sequences to which the peptides are assigned; may be omitted.
    out, parameters, preset, strict, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    LibrarySearch
        Result with the tables ``matches``, ``psms``, ``peptides`` and ``proteins``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> spectra, entries = path("samples", "BSA1.mzML.gz"), path("samples", "bsa_library.msp.gz")
    >>> proteoscope.library(spectra, entries, preset="low-resolution").matches.num_rows > 10
    True
    """
    request = SearchArguments(
        out, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run(LibrarySearch, {"spectra": spectra, "library": library, "database": database}, {"strict": strict})


def import_results(
    results: Files,
    spectra: Files,
    database: Files = (),
    *,
    out: PathLike | None = None,
    parameters: ImportParameters | None = None,
    preset: PathLike | None = None,
    strict: bool = False,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> ImportedResults:
    """Import the results of another search engine.

    Parameters
    ----------
    results, spectra : str, Path or iterable of these
        Files of results, and the spectrum files that were searched.
    database : str, Path or iterable of these
        Protein sequences to which the peptides are assigned; may be omitted.
    out, parameters, preset, strict, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    ImportedResults
        Result with the tables ``psms``, ``peptides`` and ``proteins``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> results, spectra = path("samples", "BSA1_comet.pep.xml.gz"), path("samples", "BSA1.mzML.gz")
    >>> proteoscope.import_results(results, spectra, preset="low-resolution").record["program"]
    'Comet'
    """
    request = SearchArguments(
        out, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run(ImportedResults, {"results": results, "spectra": spectra, "database": database}, {"strict": strict})


def cluster(
    spectra: Files,
    *,
    consensus: PathLike | None = None,
    labels: PathLike | None = None,
    out: PathLike | None = None,
    parameters: ClusteringParameters | None = None,
    preset: PathLike | None = None,
    strict: bool = False,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> Clustering:
    """Group similar spectra.

    Parameters
    ----------
    spectra : str, Path or iterable of these
        Spectrum files.
    consensus : str or Path, optional
        MGF file for the consensus spectra of clusters with at least two spectra.
    labels : str or Path, optional
        Table of known labels, with which the clusters are compared.
    out, parameters, preset, strict, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    Clustering
        Result with the tables ``clusters`` and ``members``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> proteoscope.cluster(path("samples", "BSA1.mzML.gz"), preset="low-resolution").clusters.num_rows
    28
    """
    request = SearchArguments(
        out, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run(Clustering, {"spectra": spectra}, {"strict": strict, "consensus": consensus, "labels": labels})


def explain(
    project: ProjectLike,
    *,
    run: str = "",
    out: PathLike | None = None,
    parameters: ExplanationParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> Explanation:
    """Assign the unidentified spectra of an identification to identified spectra that they resemble.

    Parameters
    ----------
    project : str, Path, OpenProject or Result
        Project of an identification, or its result; the run is added to this project.
    run : str
        Id of the identification; by default that of the given result, or the last identification of the project.
    out : str or Path, optional
        File for the table of explained spectra.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    Explanation
        Result with the table ``explained``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> results, spectra = path("samples", "BSA1_comet.pep.xml.gz"), path("samples", "BSA1.mzML.gz")
    >>> imported = proteoscope.import_results(results, spectra, preset="low-resolution")
    >>> proteoscope.explain(imported, preset="low-resolution").project.run_ids
    ('import-0001', 'explain-0002')
    """
    request = SearchArguments(
        None, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run_in(Explanation, project, run, {}, {}, out)


def quantify(
    project: ProjectLike,
    *,
    run: str = "",
    experiment: bool = False,
    design: PathLike | None = None,
    impurities: PathLike | None = None,
    report: PathLike | None = None,
    out: PathLike | None = None,
    parameters: QuantificationParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> Quantification:
    """Quantify identified peptides and proteins by sample, and compare conditions.

    Parameters
    ----------
    project : str, Path, OpenProject or Result
        Project of identifications, or the result of an identification; the run is added to this project.
    run : str
        Ids of the identifications, separated by commas; by default that of the given result, or the last identification of the project.
    experiment : bool
        True to quantify all finished runs of the experiment of the project; its table of runs is the design.
    design : str or Path, optional
        Tab-separated table of the samples: file, sample, condition, replicate, and channel of isobaric labels.
    impurities : str or Path, optional
        Table of the isotope impurities of the label's channels, in percent.
    report : str or Path, optional
        Folder for tables and pages.
    out : str or Path, optional
        File for the table of proteins.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    Quantification
        Result with the tables ``protein_quantities``, ``peptide_quantities`` and ``protein_changes``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> results, spectra = path("samples", "BSA1_comet.pep.xml.gz"), path("samples", "BSA1.mzML.gz")
    >>> proteins = path("samples", "albumin_proteins.fasta.gz")
    >>> imported = proteoscope.import_results(results, spectra, proteins, preset="low-resolution")
    >>> proteoscope.quantify(imported, preset="counts").samples["sample"].to_pylist()
    ['BSA1']
    """
    request = SearchArguments(
        None, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    options = {"experiment": experiment or None, "design": design, "impurities": impurities, "report": report}
    return request.run_in(Quantification, project, run, {}, options, out)


def evidence(
    project: ProjectLike,
    structures: Files,
    homologues: Files = (),
    *,
    run: str = "",
    report: PathLike | None = None,
    out: PathLike | None = None,
    parameters: EvidenceParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> Evidence:
    """Map identified peptides and modified residues onto the structures of their proteins.

    Parameters
    ----------
    project : str, Path, OpenProject or Result
        Project of an identification, or its result; the run is added to this project.
    structures : str, Path or iterable of these
        Structure database, or structure files, folders or lists of files.
    homologues : str, Path or iterable of these
        Sequences among which homologues are found, for the conservation of residues; may be omitted.
    run : str
        Id of the identification; by default that of the given result, or the last identification of the project.
    report : str or Path, optional
        Folder for a page of each protein.
    out : str or Path, optional
        File for the table of proteins.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    Evidence
        Result with the tables ``proteins``, ``chains``, ``sites`` and others.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> results, spectra = path("samples", "BSA1_comet.pep.xml.gz"), path("samples", "BSA1.mzML.gz")
    >>> proteins, structures = path("samples", "albumin_proteins.fasta.gz"), path("samples", "1ao6_A.pdb.gz")
    >>> imported = proteoscope.import_results(results, spectra, proteins, preset="low-resolution")
    >>> proteoscope.evidence(imported, structures).chains.num_rows > 0
    True
    """
    request = SearchArguments(
        None, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    return request.run_in(Evidence, project, run, {"structures": structures, "homologues": homologues}, {"report": report}, out)


def structures(
    queries: Files | None,
    database: Files,
    *,
    all: bool = False,
    superpose: PathLike | None = None,
    complexes: PathLike | None = None,
    clusters: PathLike | None = None,
    out: PathLike | None = None,
    format: str = "",
    project: PathLike | None = None,
    parameters: StructureSearchParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> StructureSearch:
    """Find proteins with similar structures.

    Parameters
    ----------
    queries : str, Path, iterable of these, or None
        Structure files, ``FILE:CHAIN``, folders or lists of files; None with `all`.
    database : str, Path or iterable of these
        Structure database, or structure files, folders or lists of files.
    all : bool
        True to compare the chains of the database with each other instead of with queries, and to report each pair once.
    superpose : str or Path, optional
        Folder for superposed hits.
    complexes : str or Path, optional
        File for a table of the target files that are most similar to a query file as a whole. They are ranked by a sum over pairs of
        chains: of scores in the published mode, of TM-scores and z-scores in the sensitive mode.
    clusters : str or Path, optional
        With `all`, file for the table of clusters of chains with the same fold, by TM-score.
    out, format : str or Path, and str, optional
        File for the hits, and its format; by default the extension determines it.
    project : str or Path, optional
        Project folder; by default a temporary one, as for `identify`.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`.

    Returns
    -------
    StructureSearch
        Result with the tables ``hits`` and ``queries``; with `all`, also ``clusters``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> result = proteoscope.structures(path("samples", "albumin_domain_3.pdb.gz"), path("samples", "folds.pdb.gz"))
    >>> [f"{score:.2f}" for score in result.hits["tm_score_query"].to_pylist()[:3]]
    ['1.00', '0.70', '0.68']
    """
    request = SearchArguments(
        project, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    options = {"all": all, "superpose": superpose, "complexes": complexes, "clusters": clusters}
    return request.run(StructureSearch, {"queries": () if queries is None else queries, "database": database}, options, out, format)


def reads(
    references: PathLike,
    reads: PathLike,
    *,
    mates: PathLike | None = None,
    pairs: bool = False,
    sorted: bool = False,
    out: PathLike | None = None,
    format: str = "",
    project: PathLike | None = None,
    parameters: ReadAlignmentParameters | None = None,
    preset: PathLike | None = None,
    device: str = "auto",
    threads: int | None = None,
    run_name: str = "",
    overwrite: bool = False,
    skip_existing: bool = False,
    if_busy: IfBusy = "refuse",
    progress: OnProgress = None,
    **settings: Any,
) -> ReadAlignment:
    """Align reads with references, with a bounded number of gaps.

    Parameters
    ----------
    references, reads : str or Path
        FASTA file of the genome or the references, and FASTQ or FASTA file of the reads.
    mates : str or Path, optional
        File with the other read of each fragment.
    pairs : bool
        True to align the i-th read only with the i-th reference.
    sorted : bool
        True to sort the records of SAM and BAM by their position.
    out, format : str or Path, and str, optional
        File for the alignments, and its format; by default the extension determines it.
    project : str or Path, optional
        Project folder; by default a temporary one, as for `identify`.
    parameters, preset, device, threads, run_name, overwrite, skip_existing, if_busy, progress, **settings
        See `identify`. By default, the preset that suits the files is used.

    Returns
    -------
    ReadAlignment
        Result with the table ``alignments``.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> genome, fragments = path("samples", "lambda_phage.fasta.gz"), path("samples", "lambda_reads.fastq.gz")
    >>> proteoscope.reads(genome, fragments).alignments.num_rows > 100
    True
    """
    request = SearchArguments(
        project, parameters, preset, device, threads, progress, settings, RunOptions(run_name, overwrite, skip_existing, if_busy)
    )
    options = {"mates": mates, "pairs": pairs, "sorted": sorted}
    inputs = {"texts": one_path("references", references), "patterns": one_path("reads", reads)}
    return request.run(ReadAlignment, inputs, options, out, format)


@dataclass(frozen=True)
class RunOptions:
    """Common arguments of searches: name of the run, what to do if a run of this name exists, and if another process uses the project."""

    name: str
    overwrite: bool
    skip_existing: bool
    if_busy: IfBusy

    def check(self, *, has_project: bool) -> None:
        """Check the arguments; `has_project` is True if the user has named the project.

        Raises
        ------
        ParameterError
            If an argument is wrong, or needs another argument.
        """
        if not isinstance(self.name, str):
            raise ParameterError(f"run_name = {self.name!r:.100}: expected a text")
        for name, value in (("overwrite", self.overwrite), ("skip_existing", self.skip_existing)):
            if not isinstance(value, bool):
                raise ParameterError(f"{name} = {value!r:.100}: expected True or False")
        choice("if_busy", self.if_busy, get_args(IfBusy))
        if not has_project and (self.name or self.skip_existing):
            given = f"run_name = {self.name!r:.100}" if self.name else "skip_existing"
            raise ParameterError(f"{given} needs a run in a project: give the folder of a project, too")
        check_run_options(self.name, overwrite=self.overwrite, skip_existing=self.skip_existing, has_project=has_project)


is_estimating: ContextVar[bool] = ContextVar("is_estimating", default=False)
"""True while `proteoscope.estimate` calls the function of a search, which then estimates its request instead of running it."""


class EstimateMade(Exception):  # noqa: N818 - it is not an error, but ends the function of the search
    """Exception with the estimate of a search, raised instead of running the search."""

    def __init__(self, estimate: Estimate) -> None:
        super().__init__("estimated")
        self.estimate = estimate


class SearchArguments:
    """Arguments of all searches: project, parameters, preset, device, threads, progress, settings by name, and options of the run."""

    def __init__(
        self,
        project: PathLike | None,
        parameters: SearchParameters | None,
        preset: PathLike | None,
        device: str,
        threads: int | None,
        progress: OnProgress,
        settings: dict[str, Any],
        run: RunOptions,
    ) -> None:
        if parameters is not None and preset is not None:
            raise ParameterError("parameters and preset are both given; give one of them, and single parameters by name")
        self._preset = None if preset is None else str(one_path("preset", preset))
        self._folder = None if project is None else one_folder("project folder", project)
        self._progress, self._settings = progress_of(progress), settings
        self._common: dict[str, Any] = {"chosen": parameters, "device": device, "threads": threads}
        self._run_options = run

    def run(
        self, result: type[R], inputs: Mapping[str, Files], options: Mapping[str, Any], out: PathLike | None = None, format: str = ""
    ) -> R:
        """Run a search in the chosen or a temporary project, and return its result."""
        self._run_options.check(has_project=self._folder is not None)
        with ExitStack() as stack:
            project = new_project(self._folder)
            stack.callback(project.close)
            made = self._run(result, project, inputs, options, out, format, folder=project.path)
            stack.pop_all()
            return made

    def run_in(
        self, result: type[R], project: ProjectLike, run: str, inputs: Mapping[str, Files], options: Mapping[str, Any], out: PathLike | None
    ) -> R:
        """Run a search in a given project, and return its result."""
        self._run_options.check(has_project=True)
        opened, run = project_and_run(project, run, "project")
        if run:
            self._settings["run"] = run
        return self._run(result, opened, {"project": opened.path, **inputs}, options, out)

    def _run(
        self,
        result: type[R],
        project: OpenProject,
        inputs: Mapping[str, Files],
        options: Mapping[str, Any],
        out: PathLike | None,
        format: str = "",
        folder: Path | None = None,
    ) -> R:
        model = search_of_kind(result.kind).model
        for name in self._settings.keys() - model.model_fields.keys() - _RARE:
            model.checked({name: ""})  # raises an error that names similar parameters
        if format and out is None:
            raise ParameterError(f"format = {format!r:.100}: is the format of a file; give the file with out")
        requested = self._run_options
        file = None if out is None else one_path("out", out)

        described = search_of_kind(result.kind)

        def search(overwrite: bool) -> Summary:
            request = search_request(
                result.kind,
                inputs,
                progress=self._progress,
                project=folder,
                out=file,
                format=format,
                preset=self._preset,
                options=options,
                run_name=requested.name,
                overwrite=overwrite,
                waits=requested.if_busy == "wait",
                **self._common,
                **self._settings,
            )
            if is_estimating.get():
                raise EstimateMade(estimates.estimate(described, request))
            return described.run(request, self._progress)

        files = [file, *(options.get(option.name) for option in described.options if option.is_output_file)]
        have_files = all(is_there(Path(path)) for path in files if path is not None)
        try:
            with removed_if_unused(folder):
                done = run_or_skip(search, overwrite=requested.overwrite, skip_existing=requested.skip_existing, have_files=have_files)
        except RunExistsError as error:
            raise error.in_python() from None
        run_id = done.run if isinstance(done, RunExistsError) else done.run_id
        assert run_id is not None  # it has a project
        project.forget(run_id)
        return result(project, run_id)


_RARE = frozenset(("workers", "certificates"))
"""Settings that are not parameters."""


def project_and_run(given: ProjectLike, run: str, name: str) -> tuple[OpenProject, str]:
    """Return the project that the argument `given` refers to, and the id of the run: `run`, or the run of a given result, or ''."""
    if not isinstance(run, str):
        raise ParameterError(f"run = {run!r:.100}: expected the id of a run")
    if isinstance(given, Result):
        return given.project, run or given.run_id
    return given if isinstance(given, OpenProject) else open_project(one_path(name, given)), run
