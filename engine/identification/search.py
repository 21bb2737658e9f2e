"""Identification of peptides and proteins, from files to a project: read, index, plan, score, report, advise."""

import tempfile
from pathlib import Path
from typing import Any

from proteoscope.engine import identification
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.low_yield import LowYieldRun, low_yield_run
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import PassPlan, localise, open_search_indexes, plan_pass, plan_second_pass, score_pass
from proteoscope.engine.identification.precursor_errors import PrecursorErrors, measure_errors
from proteoscope.engine.identification.report import IdentificationSummary, rate_first_pass, rate_second_pass, write_report, write_sites
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.pass_records import PassRecord
from proteoscope.engine.matches.preset_advice import read_searched
from proteoscope.engine.matches.run_tables import EXPORTED, RunTables
from proteoscope.engine.matches.tables import ScoredMatches, count_classes
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import index_spectra
from proteoscope.engine.spectra.tables import write_spectra

__all__ = ["IdentificationSummary", "identify"]

_MB = 1_000_000


def identify(request: SearchRequest, progress: Progress | None = None) -> IdentificationSummary:
    """Identify the peptides and proteins of spectrum files, and write them to a project.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``spectra`` (files of any supported format) and ``database`` (proteins), with `IdentificationParameters`. The `project` is
        created if it does not exist; otherwise a run is added, and ``exports/*.tsv`` and ``run.json`` are replaced by those of the new run.
        The option ``strict`` rejects files with unreadable spectra. The option ``advice`` limits the search for causes of few
        identifications: ``brief`` (a tenth of the run's time, the default), ``full`` or ``none``.
    progress : Progress, optional
        Progress of the search.

    Returns
    -------
    IdentificationSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters, level = request.parameters_as(IdentificationParameters), identification.advice.advice_level(request)
    spec = RunSpec(
        "identify",
        request,
        {"spectra": "SPECTRA.mzML", "database": "--database PROTEINS.fasta"},
        {"spectra": request.files("spectra"), "database": request.files("database"), "contaminants": parameters.contaminants},
        kernels="identify",
    )

    def read(progress: Progress, threads: int) -> Spectra:
        return read_searched(spec, parameters, progress, threads)

    with (
        project_run(spec, read, progress) as (run, results),
        tempfile.TemporaryDirectory(prefix="index-", dir=results.folder, ignore_cleanup_errors=True) as folder,
    ):
        run.load_kernels("preprocessing", "candidates", "matches", "fragment_intensities", "rescoring")
        indexing = run.begin(lambda progress: _indexes(run, Path(folder), parameters, progress))  # indexes are built while spectra are read
        spectra = run.read()
        with run.step("index"):  # measures only how much longer indexing takes than reading
            resources, indexes = indexing()
        index = index_spectra(spectra, parameters, resources)
        errors = measure_errors(spectra, index, indexes, parameters, resources)
        index = index.corrected(errors.medians[spectra.file])

        plan = plan_pass(index, indexes, parameters.changed(precursor_tolerance=errors.tolerance), resources)
        run.load_writers()
        matches = score_pass(plan)
        # Start after scoring, since its memory would add to that of Arrow and DuckDB.
        spectra_written = run.begin(lambda progress: write_spectra(results, spectra, progress))
        scored = rate_first_pass(matches.psms, indexes, index.ion_series.symbols, parameters, resources)
        second = plan_second_pass(scored, index, indexes, Path(folder), errors.of_second, parameters, resources)
        if second is not None:
            scored = rate_second_pass(scored, score_pass(second).psms, parameters, resources)

        run.progress.message(scored.message)
        run.device = resources.used
        passes = _records(run, [plan, *filter(None, [second])], errors)
        low_yield = low_yield_run(scored, plan, matches.seconds_per_candidate, results.folder)
        scored = scored.sorted()
        sites = localise(scored, [plan, *filter(None, [second])], parameters, resources)
        del index, plan, matches, second  # these need as much memory as the tables in a large run
        with run.step("report"):
            tables = write_report(run, results, scored, spectra, indexes.proteins, parameters)
            localised = write_sites(run, results, sites, scored, indexes.proteins, parameters)
            spectra_written()
            run.progress.check()
        with run.step("advice"):
            if low_yield is not None:
                identification.advice.explain_low_yield(low_yield, level, run.clock.seconds, resources)
        return _summary(run, len(spectra), indexes, scored, tables, passes, errors, low_yield, localised)


def _indexes(run: SearchRun[Spectra], folder: Path, parameters: IdentificationParameters, progress: Progress) -> tuple[Resources, Indexes]:
    """Return the devices of the run, and the indexes of the databases."""
    resources = run.resources(progress, memory_bytes=parameters.device_memory * _MB)
    if parameters.known_modifications and not parameters.maximum_modifications:
        run.progress.message("Known modifications are not searched, since peptides may have none (maximum_modifications=0)", "warning")
    digests = {kind: run.digests(kind) for kind in ("database", "contaminants")}
    indexes = open_search_indexes(run.paths("database"), run.paths("contaminants"), digests, folder, parameters, resources)
    return resources.reporting_to(run.progress), indexes


def _records(run: SearchRun[Spectra], plans: list[PassPlan], errors: PrecursorErrors) -> tuple[PassRecord, ...]:
    """Return the settings that each pass used."""
    databases, spectra = run.files("database", "contaminants"), run.files("spectra")
    return tuple(plan.record(databases=databases, spectra=spectra, precursor_medians=errors.range) for plan in plans)


def _summary(
    run: SearchRun[Spectra],
    n_spectra: int,
    indexes: Indexes,
    scored: ScoredMatches,
    tables: RunTables,
    passes: tuple[PassRecord, ...],
    errors: PrecursorErrors,
    low_yield: LowYieldRun | None,
    localised: list[dict[str, Any]],
) -> IdentificationSummary:
    """Write the record of the run, and return its summary."""
    counts = {
        "spectra": n_spectra,
        "searched": passes[0].n_spectra,
        "proteins_in_database": passes[0].n_proteins,
        "peptides_in_index": len(indexes.peptides) - indexes.peptides.n_forms,
        **tables.counts,
    }
    parameters = run.spec.request.parameters_as(IdentificationParameters)
    classes = count_classes(scored, parameters)
    run.record(
        counts,
        tables.message,
        exports=EXPORTED,
        certainty=tables.certainty,
        classes=[counts.record() for counts in classes],
        decoy_ratio=scored.psms.decoy_ratio,
        passes=[search_pass.record() for search_pass in passes],
        **errors.record(),
        **({} if low_yield is None else {"low_yield": low_yield.record()}),
        **({"localisation": localised} if localised else {}),
    )
    return IdentificationSummary(
        **run.summary_fields(counts),
        certainty=tables.certainty,
        classes=classes,
        top_proteins=tables.best_proteins,
        fdr=parameters.fdr,
        passes=passes,
        has_decoys=parameters.decoys != "none",
        has_low_yield=low_yield is not None,
    )
