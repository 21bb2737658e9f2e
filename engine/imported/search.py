"""Import of the results of another search engine: from files to a project, in the steps read, index, plan, score and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proteoscope.engine import imported
from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import Proteins, read_proteins, read_spectra
from proteoscope.engine.imported.parameters import ImportParameters
from proteoscope.engine.imported.reading import describe_unread, read_identifications
from proteoscope.engine.imported.summary import ImportSummary, rate_sources
from proteoscope.engine.imported.tables import LEFT_OUT, LEFT_OUT_FILE
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.match_lists.error_rates import (
    ErrorRateSettings,
    are_decoys,
    estimate_error_rates,
    rank_matches,
    select_ranking_score,
)
from proteoscope.engine.matches.match_lists.identifications import Identifications, spectrum_names, unread_matches
from proteoscope.engine.matches.match_lists.matches import ListedMatches, collect_matches
from proteoscope.engine.matches.match_lists.protein_positions import cut_off_proteins
from proteoscope.engine.matches.match_lists.references import FoundSpectra, find_spectra
from proteoscope.engine.matches.match_lists.site_localisation import localise_list
from proteoscope.engine.matches.match_lists.tables import RankedMatches, counted_ions, listed_tables
from proteoscope.engine.matches.preset_advice import warn_of_unsuitable_settings
from proteoscope.engine.matches.run_tables import EXPORTED, RunTables
from proteoscope.engine.matches.site_tables import SiteTables, write_site_tables
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra

__all__ = ["ImportSummary", "WrittenImport", "import_results", "left_out_table", "rated_matches", "warn_of_import", "write_import"]


class WrittenImport(NamedTuple):
    """Result of `write_import`: names of text files, numbers of omitted matches by reason, counts with intervals, and localised sites.

    See `proteoscope.engine.matches.run_tables.RunTables` and `proteoscope.engine.matches.match_lists.tables.ListedTables`.
    """

    exports: tuple[str, ...]
    left_out: dict[str, int]
    counts: dict[str, int]
    message: str
    best_proteins: tuple[tuple[str, str | None, int, float | None], ...]
    source_of: dict[str, str]
    certainty: dict[str, dict[str, float]]
    localised: list[dict[str, Any]]


def write_import(
    run: Run,
    identifications: Identifications,
    matches: ListedMatches,
    rated: RankedMatches,
    sites: SiteTables | None,
    spectra: Spectra,
    database: Proteins | None,
    begin: Callable[[Callable[[Progress], Any]], Callable[[], Any]],
    progress: Progress,
) -> WrittenImport:
    """Write spectra, matches, the sites of their modifications and omitted matches to a run.

    The function `begin` starts a task in the background and returns a function that waits for it.

    Raises
    ------
    StorageError
        If writing fails.
    Cancelled
        If the user cancelled the import.
    """
    spectra_written = begin(lambda progress: write_spectra(run, spectra, progress))
    progress.stage("Writing results")
    made = listed_tables(identifications, matches, rated, spectra, database)
    tables = RunTables(made.tables, rated.settings)
    tables.write(run, progress, begin)
    left_out = left_out_table(identifications, matches)
    run.write_table(LEFT_OUT.name, left_out)
    localised = write_site_tables(run, sites, progress)
    write_separated(run.folder / EXPORTS / LEFT_OUT_FILE, left_out, LEFT_OUT.saved_columns, progress, ROUNDED)
    spectra_written()
    progress.check()
    exports = (*EXPORTED, LEFT_OUT_FILE)
    reasons = dict(Counter(left_out["reason"].to_pylist()))
    return WrittenImport(exports, reasons, tables.counts, tables.message, tables.best_proteins, made.source_of, made.certainty, localised)


def rated_matches(
    identifications: Identifications, matches: ListedMatches, spectra: Spectra, parameters: ImportParameters, progress: Progress
) -> RankedMatches:
    """Add rank, decoy flag, error rates and number of fragment ions to each match, and return the result."""
    row, settings = matches.row, ErrorRateSettings.from_parameters(parameters, parameters.decoy_prefixes)
    deciding = select_ranking_score(identifications, parameters.score)
    score, is_decoy = deciding.value[row], are_decoys(identifications, parameters.decoy_prefixes)[row]
    rank = rank_matches(matches.spectrum, identifications.rank[row], score)
    progress.stage("Estimating false discovery rates")
    given = identifications.q_value[row], identifications.posterior_error[row]
    rates = estimate_error_rates(score, is_decoy, rank == 1, given, settings)
    if rates.q_value_of == "none":
        settings = replace(settings, decoys="none")
    matched, total = counted_ions(matches, spectra, parameters, progress)
    return RankedMatches(score, deciding.title, rank, is_decoy, rates, matched, total, settings)


def left_out_table(identifications: Identifications, matches: ListedMatches) -> pa.Table:
    """Return the table of omitted matches with reasons: first the unreadable matches, then the other omitted matches."""
    rows = matches.left_out
    at = pa.array(rows)
    called = spectrum_names(
        identifications.run.take(at),
        identifications.native_id.take(at),
        identifications.title.take(at),
        pa.array(identifications.scan[rows]),
    )
    sequences = pa.array([peptide.sequence for peptide in identifications.peptides], pa.string()).take(
        pa.array(identifications.peptide[rows])
    )
    taken = unread_matches(identifications.place[rows], matches.reason, called, sequences, identifications.charge[rows])
    every = pa.concat_tables(
        [identifications.unread, taken.set_column(0, "file", pa.array(identifications.file[rows], pa.int64()))]
    ).combine_chunks()
    names = pa.array([Path(path).name for path in identifications.files], pa.string())
    return LEFT_OUT.arrow({name: names.take(every[name]) if name == "file" else every[name] for name in every.column_names})


_FAR = 5.0  # Da: exceeds differences between precursor and peptide due to isotopes or rounding
_MAXIMUM_SHOWN = 5


class _Read(NamedTuple):
    identifications: Identifications
    spectra: Spectra
    database: Proteins | None


def import_results(request: SearchRequest, progress: Progress | None = None) -> ImportSummary:
    """Import the results of another search engine as a run of a project.

    Parameters
    ----------
    request : SearchRequest
        Inputs ``results`` (files of one identification format of `proteoscope.engine.formats.registry`), ``spectra`` (the searched files),
        and optionally ``database`` (FASTA files), with `ImportParameters`. The `project` is created if it does not exist; otherwise a run
        is added. The option ``strict`` rejects files with unreadable spectra.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    ImportSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the import.
    """
    parameters = request.parameters_as(ImportParameters)
    spec = RunSpec("import", request, {"results": "RESULTS.pep.xml", "spectra": "--spectra SPECTRA.mzML"}, kernels="import")

    def read(progress: Progress, threads: int) -> _Read:
        warn_of_unsuitable_settings("import", request.files("spectra"), parameters, progress)
        result = read_identifications(request.files("results"), progress)
        spectra = read_spectra(
            request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, takes_negative=True
        )
        files = request.files("database")
        return _Read(result, spectra, read_proteins(files, progress=progress) if files else None)

    with project_run(spec, read, progress) as (run, stored):
        result, spectra, database = run.read()
        run.load(partial(import_module, "duckdb"))
        with run.step("index"):
            run.progress.stage("Finding the spectra")
            in_spectra = find_spectra(result, spectra)
        with run.step("plan"):
            matches = _matches(result, in_spectra, spectra, database, parameters, run.progress)
        with run.step("score"):
            rated = imported.search.rated_matches(result, matches, spectra, parameters, run.progress)
        run.device = "cpu"
        with run.step("report"):
            resources = Resources(run.threads, progress=run.progress, clock=run.clock)
            sites = localise_list(matches, rated, spectra, database, parameters, resources)
            written = imported.search.write_import(stored, result, matches, rated, sites, spectra, database, run.begin, run.progress)
        warn_of_import(result, matches, in_spectra, database, written, rated.title, request.files("spectra"), run.progress)
        return _write_record(run, result, spectra, matches, rated, written, parameters)


def _matches(
    identifications: Identifications,
    in_spectra: FoundSpectra,
    spectra: Spectra,
    database: Proteins | None,
    parameters: ImportParameters,
    progress: Progress,
) -> ListedMatches:
    """Return the matches whose spectra were found in the spectrum files.

    Raises
    ------
    InputError
        If no spectrum was found.
    """
    matches = collect_matches(
        identifications, in_spectra, spectra, database, enzyme(parameters.enzyme), parameters.fixed_modifications, progress
    )
    if not len(matches):
        raise InputError(
            identifications.files[0],
            f"none of its {len(identifications):,} matches can be imported; of the first, {matches.reason[0]}",
            remedy="Give the spectra that were searched" + ("" if database else ", and the database"),
        )
    return matches


def _write_record(
    run: SearchRun[_Read],
    identifications: Identifications,
    spectra: Spectra,
    matches: ListedMatches,
    rated: RankedMatches,
    written: WrittenImport,
    parameters: ImportParameters,
) -> ImportSummary:
    """Write the record of the run, and return its summary."""
    n_matches = len(identifications) + len(identifications.unread)
    counts = {"spectra": len(spectra), "matches": n_matches, "imported": len(matches), **written.counts}
    is_rated = written.source_of["psms"] != "none"
    run.record(
        counts,
        written.message if is_rated else f"{len(matches):,} matches imported, without q-values",
        exports=written.exports,
        certainty=written.certainty,
        has_decoys=bool(rated.is_decoy.any()),
        format=identifications.format,
        program=identifications.program,
        score=rated.title,
        left_out=written.left_out,
        found_by=matches.found_by,
        q_values_of=written.source_of,
        posterior_errors_of=rated.rates.posterior_error_of,
        **({"localisation": written.localised} if written.localised else {}),
        computed_here=["matched_ions", "total_ions", "mass_error_ppm", "isotope_error", "missed_cleavages", "rank", "protein groups"],
    )
    return ImportSummary(
        **run.summary_fields(counts),
        format=identifications.format,
        program=identifications.program,
        left_out=written.left_out,
        found_by=matches.found_by,
        source_of=written.source_of,
        score=rated.title,
        certainty=written.certainty,
        top_proteins=written.best_proteins,
        fdr=parameters.fdr,
    )


def warn_of_import(
    identifications: Identifications,
    matches: ListedMatches,
    in_spectra: FoundSpectra,
    database: Proteins | None,
    written: WrittenImport,
    score: str,
    spectra: Sequence[str | Path],
    progress: Progress,
) -> None:
    """Report the source of q-values, and warn about problems that the user may have to correct.

    Parameters
    ----------
    identifications : Identifications
        Matches as read.
    matches : ListedMatches
        Imported matches.
    in_spectra : FoundSpectra
        Spectra of the matches.
    database : Proteins or None
        Proteins of the database; None without a database.
    written : WrittenImport
        Counts of the written tables.
    score : str
        Title of the ranking score.
    spectra : sequence of str or Path
        Spectrum files.
    progress : Progress
        Progress for the messages.
    """
    progress.message(f"{rate_sources(written.source_of, score)}. Matched ions, mass errors, ranks and protein groups are computed here.")
    if identifications.format == "Percolator or mokapot" and written.source_of["psms"] == "decoys":
        progress.message(
            f"Features for Percolator or mokapot (.pin) have no q-values. The q-values computed here use only {score}, and accept "
            "fewer matches than rescoring. To use the q-values of rescoring, import the table of PSMs, mzIdentML or pepXML",
            "warning",
        )
    positions = describe_unread(identifications)
    for reason, n in written.left_out.items():
        where = f" ({positions[reason]})" if reason in positions else ""
        left_out = f"{counted(n, 'match', 'matches')} left out, listed in {EXPORTS}/{LEFT_OUT_FILE}"
        progress.message(f"{left_out}: {reason}{where}", "warning")
    if in_spectra.ignores_files:
        progress.message(f"The results name another spectrum file; {Path(spectra[0]).name} is used instead", "warning")
    if matches.unknown:
        names = ", ".join(list(matches.unknown)[:_MAXIMUM_SHOWN])
        progress.message(f"Unknown modifications: {names:.300}", "warning")
    _warn_of_database(matches, database, progress)
    _warn_of_masses(identifications, matches, progress)
    for warning in [] if database is None else cut_off_proteins(identifications, database):
        progress.message(warning, "warning")


def _warn_of_database(matches: ListedMatches, database: Proteins | None, progress: Progress) -> None:
    """Report how many proteins of the results the database lacks, and how many peptides have proteins from the database only."""
    used = np.unique(matches.protein)
    n_unplaced = int(np.count_nonzero(matches.protein_positions.row[used] < 0))
    if database is not None and n_unplaced:
        progress.message(
            f"{n_unplaced:,} of {len(used):,} proteins of the results are not in the database, and have no coverage", "warning"
        )
    if matches.protein_positions.from_database:
        progress.message(
            f"The results name no protein of {matches.protein_positions.from_database:,} peptides; their proteins are those of the database"
        )


def _warn_of_masses(identifications: Identifications, matches: ListedMatches, progress: Progress) -> None:
    """Warn about peptides whose mass in the results is not that of their residues and modifications, and about wrong precursors.

    The precursors are wrong if the masses of most precursors differ from those of their peptides.
    """
    difference = identifications.calculated_mass[matches.row] - matches.calculated_mass
    # Some files contain the mass of the singly protonated ion.
    apart = np.minimum(np.abs(difference), np.abs(identifications.calculated_mass[matches.row] - 1.007276 - matches.calculated_mass))
    differs = np.isfinite(apart) & (apart > 0.02)
    if differs.any():
        progress.message(
            f"{int(differs.sum()):,} peptides have another mass in the results than by their residues and modifications (mostly by "
            f"{float(np.median(difference[differs])):+.4f} Da): set modifications that the file does not list in fixed_modifications",
            "warning",
        )
    is_far = np.abs(matches.observed_mass - matches.calculated_mass) > _FAR
    if is_far.mean() > 0.5:
        progress.message(
            f"{int(is_far.sum()):,} precursors differ by more than {_FAR:g} Da from their peptides: check that these spectra were searched",
            "warning",
        )
