"""Identify peptides and proteins: read -> index -> plan -> score -> report -> advice, from files to a project."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from proteoscope.engine import identification
from proteoscope.engine import matches as matches_package
from proteoscope.engine.chemistry.modifications import parse_modification, replacing_fixed
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.identification.compilation import KNOWN_FORMS, SCORING
from proteoscope.engine.identification.databases import searched_databases
from proteoscope.engine.identification.low_yield import LowYieldRun, is_low_yield
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import Pass
from proteoscope.engine.identification.precursor_errors import measured_errors
from proteoscope.engine.identification.results import Results
from proteoscope.engine.identification.summary import IdentificationSummary
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.preset_advice import warn_of_misfits
from proteoscope.engine.matches.run_tables import EXPORTED
from proteoscope.engine.peptides.indexes import Indexes, open_indexes
from proteoscope.engine.search_run import RunSpec, SearchRun, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import build_spectrum_index, nothing_to_search

__all__ = ["IdentificationSummary", "identify"]

_MB = 1_000_000


def identify(request: SearchRequest, progress: Progress | None = None) -> IdentificationSummary:
    """Identify the peptides and proteins of spectrum files and write them into a project.

    Parameters
    ----------
    request : inputs ``spectra``, files of any known format, and ``database``, of proteins; `IdentificationParameters`. Its `project` is
        made where it does not exist; a run is added to a project that does. ``exports/*.tsv`` and ``run.json`` of the newest run stand
        beside it. With the option ``strict`` files with spectra that cannot be read are refused. The option ``advice`` limits the
        search for causes of few identifications: ``brief`` (a tenth of the run's time, the default), ``full`` or ``none``.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, level = request.parameters_as(IdentificationParameters), identification.advice.advice_level(request)
    spec = RunSpec(
        "identify", request, {"spectra": "SPECTRA.mzML", "database": "--database PROTEINS.fasta"},
        {"spectra": request.files("spectra"), "database": request.files("database"), "contaminants": parameters.contaminants},
    )  # fmt: skip

    def read(progress: Progress, threads: int) -> Spectra:
        warn_of_misfits("identify", request.files("spectra"), parameters, progress)
        return read_spectra(
            request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, uses_all_precursors=True,
            spool=spec.spool,
        )  # fmt: skip

    with search_run(spec, read, SCORING, progress) as run:
        assert run.run is not None
        with tempfile.TemporaryDirectory(prefix="index-", dir=run.run.folder, ignore_cleanup_errors=True) as spare:
            # Reading spectra and making the index need nothing of each other.
            indexing = run.begin(lambda progress: _index(run, Path(spare), parameters, progress))

            found = run.read()
            with run.step("index"):  # what it takes longer than reading
                resources, indexes = indexing()
            run.load(lambda: identification.results, lambda: matches_package.run_tables)
            with run.step("plan"):
                spectra = build_spectrum_index(found, parameters, resources)
            if not spectra.n_searched:
                raise nothing_to_search(found, parameters.minimum_peaks)
            errors = measured_errors(found, spectra, indexes, parameters, resources)
            spectra = spectra.corrected(errors.medians[found.file])
            modifications = replacing_fixed(
                tuple(parse_modification(name) for name in parameters.variable_modifications), indexes.peptides.digestion.fixed
            )
            used = parameters.changed(precursor_tolerance=errors.tolerance)
            searched = Pass(spectra, indexes, modifications, used, resources)
            searched.plan()
            first = searched.done("first", parameters.specificity, n_proteins=indexes.proteins.n_targets)
            matches = searched.score()

            # Not before: what Arrow and DuckDB take would come on top of what scoring holds.
            results = Results(run.run, found, indexes.proteins, parameters, resources)
            spectra_written = run.begin(results.write_spectra)
            n_searched = spectra.n_searched
            results.judge(matches, spectra, indexes, errors.of_second)
            run.device = resources.used
            low_yield = None
            if is_low_yield(results.n_spectra_accepted, n_searched, parameters):
                low_yield = LowYieldRun(
                    results.n_spectra_accepted, results.n_spectra_matched, spectra, indexes, used, run.run.folder,
                    searched.seconds_per_candidate,
                )  # fmt: skip
            del searched, spectra, matches  # of a large run they take as much memory as the tables
            with run.step("report"):
                results.write(run.begin)
                spectra_written()
                run.progress.check()
            with run.step("advice"):
                if low_yield is not None:
                    identification.advice.explain_low_yield(low_yield, level, run.clock.seconds, resources)
            counts = {
                "spectra": len(found), "searched": n_searched, "proteins_in_database": indexes.proteins.n_targets,
                "peptides_in_index": len(indexes.peptides) - indexes.peptides.n_forms, **results.tables.counts,
            }  # fmt: skip
            tables = results.tables
            searched_in, searched_of = run.files("database", "contaminants"), run.files("spectra")
            passes = tuple(
                replace(one, databases=searched_in, spectra=searched_of, precursor_medians=errors.range)
                for one in (first, *results.later_passes)
            )
            run.record(
                counts, tables.message, exports=EXPORTED, certainty=results.certainty, decoy_ratio=results.decoy_ratio,
                passes=[one.record() for one in passes], **errors.record(),
                **({} if low_yield is None else {"low_yield": low_yield.record()}),
            )  # fmt: skip
            return results.summary(run, counts, passes, has_low_yield=low_yield is not None)


def _index(run: SearchRun[Spectra], spare: Path, parameters: IdentificationParameters, progress: Progress) -> tuple[Resources, Indexes]:
    """Return devices and indexes."""
    resources = run.resources(progress, memory_bytes=parameters.device_memory * _MB)
    digests = {kind: run.digests(kind) for kind in ("database", "contaminants")}
    if parameters.known_modifications and not parameters.maximum_modifications:
        run.progress.message("Known modifications are not searched: a peptide may carry none (maximum_modifications=0)", "warning")
    databases = searched_databases(run.paths("database"), run.paths("contaminants"), digests, parameters)
    if databases.forms is not None:
        KNOWN_FORMS.compile(progress)
    return resources.telling(run.progress), open_indexes(databases, spare, parameters, resources)
