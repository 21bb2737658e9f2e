"""Spectral library search: from spectra and libraries to a project, in the steps read, index, plan, score and report."""

from functools import partial
from importlib import import_module

import numpy as np

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.library_search.error_rates import accepted_spectra, cascade, estimate_error_rates, missing_fdr_reason
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import References, open_references
from proteoscope.engine.library_search.results import MATCHES_FILE, LibraryReport, report
from proteoscope.engine.library_search.scoring import Queries, plan_other_masses, plan_same_mass, prepare_queries, score
from proteoscope.engine.library_search.summary import LibrarySummary
from proteoscope.engine.matches.run_tables import EXPORTED
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["search_library"]

Inputs = tuple[Spectra, Proteins | None]


def search_library(request: SearchRequest, progress: Progress | None = None) -> LibrarySummary:
    """Find the library entry that is most similar to each spectrum, and write the matches to a project.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``spectra``, ``library`` (spectral library files), and optionally ``database`` (proteins in which peptides are located), with
        `LibrarySearchParameters`. The option ``strict`` rejects files with unreadable spectra.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    LibrarySummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters = request.parameters_as(LibrarySearchParameters)
    spec = RunSpec("library", request, {"spectra": "SPECTRA.mzML", "library": "--library LIBRARY.msp"}, kernels="library")

    def read(progress: Progress, threads: int) -> Inputs:
        is_strict, files = request.flag("strict"), request.files("database")
        spectra = read_spectra(request.files("spectra"), progress=progress, strict=is_strict, threads=threads, takes_negative=True)
        return spectra, read_proteins(files, progress=progress) if files else None

    with project_run(spec, read, progress) as (run, results):
        run.load(partial(import_module, "duckdb"))
        spectra, database = run.read()
        resources = run.resources()
        with run.step("index"):
            references = open_references(run.paths("library"), run.digests("library"), parameters, results.folder / "index", resources)
        with run.step("plan"):
            queries = prepare_queries(spectra, references, parameters, resources)
            plan = plan_same_mass(queries, references, parameters)
        with run.step("score"):
            matches = estimate_error_rates(score(plan, references, resources), references, parameters)
        if parameters.is_open:
            with run.step("plan"):
                others = queries.exclude(accepted_spectra(matches, parameters))
                plan = plan_other_masses(others, references, parameters)
            with run.step("score"):
                matches = cascade(matches, estimate_error_rates(score(plan, references, resources), references, parameters))
        run.device = resources.used
        with run.step("report"):
            reported = report(run, results, matches, references, spectra, database, parameters)
        return _summary(run, len(spectra), queries, references, reported, parameters)


def _summary(
    run: SearchRun[Inputs],
    n_spectra: int,
    queries: Queries,
    references: References,
    reported: LibraryReport,
    parameters: LibrarySearchParameters,
) -> LibrarySummary:
    """Write the record of the run, and return its summary."""
    n_decoys, reason = int(references.is_decoy.sum()), missing_fdr_reason(references)
    counts = {"spectra": n_spectra, "entries": len(references) - n_decoys, **reported.counts}
    if reason:
        run.progress.message(f"No error rate is known: {reason}. Matches are listed by their similarity", "warning")
    run.record(
        counts,
        f"{counted(counts['matches'], 'spectrum', 'spectra')} matched",
        exports=[*EXPORTED, MATCHES_FILE],
        certainty=reported.certainty,
        has_decoys=not reason,
        decoy_ratio=references.decoy_ratio,
        score="similarity",
        decoys_made=references.decoys,
        shifted=reported.n_shifted,
        left_out_entries=references.n_left_out,
        unrated=reported.n_unrated,
        **({"localisation": reported.localised} if reported.localised else {}),
    )
    return LibrarySummary(
        **run.summary_fields({name: number for name, number in counts.items() if name != "sequences"}),
        n_searched=len(np.unique(queries.spectrum)),
        n_decoys=n_decoys,
        n_shifted=reported.n_shifted,
        n_compounds=reported.n_compounds,
        decoys=references.decoys,
        similarity={"entropy": "spectral entropy", "cosine": "cosine"}[parameters.similarity],
        is_open=parameters.is_open,
        unknown=reason,
        n_unrated=reported.n_unrated,
        certainty=reported.certainty.get("matches", {}),
        fdr=parameters.fdr,
    )
