"""Open modification search: from files to a project, in the steps read, index, plan, score and report."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.translation_parameters import create_translation
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.pass_records import PassRecord, SeriesCount, series_counts
from proteoscope.engine.matches.preset_advice import read_searched
from proteoscope.engine.matches.run_tables import EXPORTED
from proteoscope.engine.matches.source_run import SourceRun, identified_run, identified_spectra, write_identified_proteins
from proteoscope.engine.modified_search.error_rates import RankedMatches, estimate_error_rates
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.modified_search.passes import localise_shifts, plan_search, score_search
from proteoscope.engine.modified_search.results import MODIFICATIONS_FILE, Report, rated_groups, write_report
from proteoscope.engine.modified_search.summary import ModifiedSearchSummary
from proteoscope.engine.peptides.indexes import Databases, Indexes, build_indexes, open_indexes
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import index_spectra
from proteoscope.engine.spectra.tables import read_spectra_table, write_spectra

__all__ = ["ModifiedSearchSummary", "find_modified"]

_MB = 1_000_000


_Read = tuple[Spectra, Spectra]
"""All spectra of the run, and the spectra that are searched."""


def find_modified(request: SearchRequest, progress: Progress | None = None) -> ModifiedSearchSummary:
    """Find the peptides of spectra and their mass shifts, name the shifts, and write them to a project.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``spectra`` (files of any supported format) and ``database`` (proteins), with `ModifiedSearchParameters`. The `project` is
        created if it does not exist; otherwise a run is added. Instead of spectra, the option ``from_project`` names a project with an
        identification. Its unidentified spectra are then searched in the given databases, by default in the proteins found by the
        identification; ``run`` selects the identification (default: the newest). The option ``strict`` rejects files with unreadable
        spectra.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    ModifiedSearchSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters = request.parameters_as(ModifiedSearchParameters)
    source = _source(request)
    spec = _spec(request, source, parameters)

    def read(progress: Progress, threads: int) -> _Read:
        if source is not None:
            return _unidentified(source, parameters, progress)
        spectra = read_searched(spec, parameters, progress, threads)
        return spectra, spectra

    with (
        project_run(spec, read, progress) as (run, results),
        tempfile.TemporaryDirectory(prefix="index-", dir=results.folder, ignore_cleanup_errors=True) as folder,
    ):
        run.load_kernels("preprocessing", "mass_lists", "matches", "shift_placement", "rescoring")
        indexing = run.begin(lambda progress: _indexes(run, source, Path(folder), parameters, progress))  # while spectra are read
        spectra, searched = run.read()
        with run.step("index"):  # measures only how much longer indexing takes than reading
            resources, indexes = indexing()
        index = index_spectra(searched, parameters, resources)
        with run.step("plan"):
            plan = plan_search(index, indexes, parameters)
            run.load_writers()
        with run.step("score"):
            matches = score_search(plan, parameters, resources)
        run.device = resources.used
        spectra_written = run.begin(lambda progress: write_spectra(results, spectra, progress))
        with run.step("report"):
            rated = estimate_error_rates(matches, indexes, parameters, resources)
            sites = localise_shifts(rated, plan, indexes, parameters, resources)
            report = write_report(
                run, results, rated, sites, spectra, indexes.proteins, parameters, is_translated=_is_translated(source, parameters)
            )
            spectra_written()
            run.progress.check()
        counts = {
            "spectra": len(spectra),
            "searched": index.n_searched,
            "proteins_in_database": indexes.proteins.n_targets,
            "peptides_in_index": len(indexes.peptides),
            **report.counts,
        }
        return _summary(run, source, counts, rated, report, series_counts(index))


def _spec(request: SearchRequest, source: SourceRun | None, parameters: ModifiedSearchParameters) -> RunSpec:
    """Return the specification of the run with the files that it reads."""
    inputs: dict[str, Sequence[str | Path]] = {
        "spectra": request.files("spectra"),
        "database": request.files("database"),
        "contaminants": parameters.contaminants,
    }
    if source is None:
        return RunSpec(
            "modified", request, {"spectra": "SPECTRA.mzML", "database": "--database PROTEINS.fasta"}, inputs, kernels="modified"
        )
    proteins = [] if source.proteins is None else [source.proteins]
    from_project = {"project_spectra": [source.spectra], "project_psms": [source.psms], "project_proteins": proteins}
    return RunSpec("modified", request, {}, {**inputs, **from_project}, kernels="modified")


def _unidentified(source: SourceRun, parameters: ModifiedSearchParameters, progress: Progress) -> _Read:
    """Return all spectra of an identification, and its unidentified spectra.

    Raises
    ------
    InputError
        If the identification has identified all spectra.
    """
    progress.stage("Reading the identification")
    spectra = read_spectra_table(source.spectra)
    identified = identified_spectra(source.psms, len(spectra), float(source.parameters.get("fdr", parameters.fdr)))
    unidentified = np.setdiff1d(np.arange(len(spectra)), identified)
    if not len(unidentified):
        reason = f"run '{source.run}' identified all of its {counted(len(spectra), 'spectrum', 'spectra')}"
        raise InputError(source.psms, reason, remedy="To search all of them again, give the spectra as files")
    return spectra, spectra.only(unidentified)


def _source(request: SearchRequest) -> SourceRun | None:
    """Return the identification whose unidentified spectra are searched, or None if the request names no project."""
    project, run = request.path("from_project"), str(request.options.get("run") or "")
    if project is None:
        if run:
            raise ParameterError(f"run = '{run:.60}' needs its project; give it with --from-project DIR")
        return None
    if request.files("spectra"):
        raise ParameterError("spectra are given twice, as files and by --from-project; give one of them")
    return identified_run(project, run)


def _indexes(
    run: SearchRun[_Read], source: SourceRun | None, folder: Path, parameters: ModifiedSearchParameters, progress: Progress
) -> tuple[Resources, Indexes]:
    """Return the devices, and the indexes of the databases or of the proteins that the identification found."""
    resources = run.resources(progress, memory_bytes=parameters.device_memory * _MB)
    digests = {kind: run.digests(kind) for kind in ("database", "contaminants")}
    databases = Databases(run.paths("database"), run.paths("contaminants"), digests, create_translation(parameters))
    if source is None or databases.proteins:
        return resources.reporting_to(run.progress), open_indexes(databases, folder, parameters, resources)
    fasta, rate = folder / "identified.fasta", float(source.parameters.get("fdr", parameters.fdr))
    if source.proteins is None or not write_identified_proteins(source.proteins, rate, fasta):
        raise InputError(
            source.psms,
            f"run '{source.run}' found no protein with a known sequence",
            remedy="Give a database with --database, or first run an identification that finds proteins",
        )
    of_found = databases._replace(proteins=[fasta], translation=None)
    return resources.reporting_to(run.progress), build_indexes(of_found, folder, parameters, resources)


def _is_translated(source: SourceRun | None, parameters: ModifiedSearchParameters) -> bool:
    """Return True if the searched proteins are reading frames that this search or the identification `source` translated."""
    of_source = "none" if source is None else source.parameters.get("translation", "none")
    return (parameters.translation, of_source) != ("none", "none")


def _record(
    run: SearchRun[_Read], source: SourceRun | None, counts: dict[str, int], rated: RankedMatches, series: tuple[SeriesCount, ...]
) -> PassRecord:
    """Return the record of the search pass: the settings used, the input files, and the numbers of spectra and proteins."""
    parameters = run.spec.request.parameters_as(ModifiedSearchParameters)
    named, more = run.files("database"), run.files("contaminants")
    of_source = source is not None and not named
    return PassRecord.from_settings(
        "first",
        parameters,
        parameters.specificity,
        mass_shift=shift_range(parameters.mass_shift),
        groups=rated_groups(rated),
        databases=(*source.files("database", "contaminants"), *more) if source is not None and of_source else (*named, *more),
        proteins="found" if of_source else "all",
        n_proteins=counts["proteins_in_database"],
        spectra=run.files("spectra") if source is None else source.files("spectra"),
        n_spectra=counts["searched"],
        source_run="" if source is None else source.run,
        ion_series=series,
    )


def _summary(
    run: SearchRun[_Read],
    source: SourceRun | None,
    counts: dict[str, int],
    rated: RankedMatches,
    report: Report,
    series: tuple[SeriesCount, ...],
) -> ModifiedSearchSummary:
    """Write the record of the run, and return its summary."""
    parameters, tables = run.spec.request.parameters_as(ModifiedSearchParameters), report.tables
    done = _record(run, source, counts, rated, series)
    source_run: dict[str, Any] = {} if source is None else {"source_run": source.run}
    run.record(
        counts,
        tables.message,
        exports=[*EXPORTED, MODIFICATIONS_FILE],
        certainty=tables.certainty,
        decoy_ratio=rated.scored.psms.decoy_ratio,
        recalibrated_ppm=round(rated.mass_error_ppm, 4),
        passes=[done.record()],
        **({"localisation": report.localised} if report.localised else {}),
        **source_run,
    )
    return ModifiedSearchSummary(
        **run.summary_fields(counts),
        certainty=tables.certainty,
        top_modifications=tuple((row["name"], row["mass"], row["psms"], row["sites"]) for row in report.best_modifications),
        fdr=parameters.fdr,
        passes=(done,),
        has_decoys=parameters.decoys != "none",
        **source_run,
    )
