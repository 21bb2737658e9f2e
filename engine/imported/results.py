"""Error rates of imported matches, and the tables of their run, including omitted matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from proteoscope.engine.formats import Proteins
from proteoscope.engine.imported.parameters import ImportParameters
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
from proteoscope.engine.matches.match_lists.matches import ListedMatches
from proteoscope.engine.matches.match_lists.tables import RankedMatches, counted_ions, listed_tables
from proteoscope.engine.matches.run_tables import EXPORTED, RunTables
from proteoscope.engine.matches.site_tables import SiteTables, write_site_tables
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra

__all__ = ["WrittenImport", "left_out_table", "rated_matches", "write_import"]


class WrittenImport(NamedTuple):
    """Written results: names of text files, numbers of omitted matches by reason, results with their certainty, and localised sites.

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
    """Return the matches with ranks, decoy flags, error rates and numbers of fragment ions."""
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
    """Return the omitted matches with reasons: the unreadable ones first, then the others, in order."""
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
