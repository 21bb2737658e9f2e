"""Result tables of an open modification search: the tables of an identification with columns of mass shifts, and modifications."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from proteoscope.engine.chemistry.modifications import write_mass
from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import SHIFT_COLUMNS
from proteoscope.engine.matches.run_tables import RunTables, export_matches, export_sites, write_protein_knowledge
from proteoscope.engine.matches.site_tables import write_site_tables
from proteoscope.engine.matches.tables import Tables, write_tables
from proteoscope.engine.matches.writers import tables
from proteoscope.engine.modified_search.error_rates import KINDS, PLAIN, UNNAMED, RankedMatches
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.passes import ShiftSites
from proteoscope.engine.modified_search.tables import MODIFICATIONS
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPORTS
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.reader import read_stored
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.engine.search_run import SearchRun
from proteoscope.engine.spectra.columns import Spectra

__all__ = [
    "MODIFICATIONS_FILE",
    "Report",
    "export_modified_tables",
    "modification_table",
    "rated_groups",
    "write_modification_file",
    "write_report",
]

MODIFICATIONS_FILE = "modifications.tsv"
_BINS_OF_DALTON = 100  # unnamed shifts that round to the same hundredth of a dalton share a row
_BEST = 10


class Report(NamedTuple):
    """Tables of a run with its summary.

    `counts` are numbers of results by name, `best_modifications` are table rows of the most frequent modifications, and `localised` are
    records of the localised modifications.
    """

    tables: RunTables
    counts: dict[str, int]
    best_modifications: list[dict[str, Any]]
    localised: list[dict[str, Any]]


def write_report(
    run: SearchRun[Any],
    results: Run,
    rated: RankedMatches,
    sites: ShiftSites,
    spectra: Spectra,
    proteins: ProteinIndex,
    parameters: ModifiedSearchParameters,
    *,
    is_translated: bool,
) -> Report:
    """Infer protein groups, write all tables to the run, and as text to the project folder, and return them.

    Parameters
    ----------
    run : SearchRun
        Running search.
    results : Run
        Run of the search in the project.
    rated : RankedMatches
        Matches with shifts and error rates.
    sites : ShiftSites
        Sites of named shifts.
    spectra : Spectra
        All spectra of the run.
    proteins : ProteinIndex
        Searched proteins.
    parameters : ModifiedSearchParameters
        Parameters of the search.
    is_translated : bool
        True if the proteins are translated reading frames.

    Returns
    -------
    Report
    """
    run.progress.message(rated.scored.message)
    run.progress.stage("Writing results")
    tables = _shifted_tables(rated, spectra, proteins, parameters)
    modifications = modification_table(tables.psms, parameters.fdr, has_decoys=parameters.decoys != "none")
    written = RunTables(tables, parameters)
    written.write(results, run.progress, run.begin)
    results.write_table("modifications", modifications)
    write_modification_file(results.folder / EXPORTS / MODIFICATIONS_FILE, modifications, run.progress)
    write_protein_knowledge(results, proteins, written.found_accessions, is_translated=is_translated)
    counts = {**written.counts, **_counts_by_kind(tables.psms, parameters.fdr)}
    return Report(written, counts, modifications.slice(0, _BEST).to_pylist(), _write_sites(results, sites, run.progress))


def _write_sites(results: Run, sites: ShiftSites, progress: Progress) -> list[dict[str, Any]]:
    """Write the tables of sites, report the modifications with most matches, and return the records of all localised modifications."""
    if sites.n_others:
        progress.message(
            f"{counted(sites.n_others, 'match', 'matches')} with a shift that is not a usual modification: sites have probabilities, but no"
            " false localisation rate, since any residue may have the shift, so that no residue can serve as a decoy"
        )
    return write_site_tables(results, sites.tables, progress)


def _counts_by_kind(psms: pa.Table, fdr: float) -> dict[str, int]:
    """Return the number of accepted target PSMs for each kind of shift."""
    accepted = pa.compute.and_not(_accepted(psms, fdr, has_decoys=True), psms["is_decoy"])
    kinds = psms.filter(accepted)["shift_kind"].to_pylist()
    return {name: kinds.count(kind) for name, kind in (("plain", "none"), ("named", "named"), ("ends", "end"), ("unnamed", "unnamed"))}


def _accepted(psms: pa.Table, fdr: float, *, has_decoys: bool) -> pa.Array:
    """Return True for each row of rank 1 that is accepted at the false discovery rate; without decoys, for all rows of rank 1."""
    first = pa.compute.equal(psms["rank"], 1)
    return pa.compute.and_(first, pa.compute.fill_null(pa.compute.less_equal(psms["q_value"], fdr), False)) if has_decoys else first


def _shifted_tables(rated: RankedMatches, spectra: Spectra, proteins: ProteinIndex, parameters: ModifiedSearchParameters) -> Tables:
    """Return the tables of PSMs, peptides and protein groups; PSMs have additional columns for shifts."""
    tables = write_tables(rated.scored, spectra, proteins, parameters)
    order = rated.scored.order
    shifts, psms = rated.shifts.take(order), rated.scored.psms.take(order)
    is_plain = shifts.group == PLAIN
    columns: dict[str, pa.Array] = {
        "mass_shift": pa.array(shifts.mass),
        "modification": pa.array(shifts.name, pa.string()),
        "possible_names": pa.array(shifts.possible, pa.string()),
        "site": pa.array(map(_site_text, shifts.site.tolist(), psms.length.tolist(), tables.psms["sequence"].to_pylist()), pa.string()),
        "site_probability": pa.array(shifts.probability, mask=is_plain),
        "shift_kind": pa.array([KINDS[kind] for kind in shifts.group.tolist()], pa.string()),
        "shift_position": pa.array(shifts.site, pa.int16(), mask=is_plain),
        "carried_mass": pa.array(shifts.carried),
    }
    table = tables.psms
    for column in SHIFT_COLUMNS:
        table = table.append_column(column.name, columns[column.name])
    return replace(tables, psms=table)


def rated_groups(rated: RankedMatches) -> tuple[tuple[str, ...], ...]:
    """Return the groups with separate error rates, each with a value of the column ``shift_kind``; empty if all matches are one group."""
    group, kind = rated.scored.match_class, rated.shifts.group
    if group is None or not (group.any() or not kind.any()):
        return ()
    return tuple((kind,) for kind in KINDS)


def _site_text(site: int, length: int, sequence: str) -> str:
    """Return a site as text, such as ``M5``, ``N-term`` or ``C-term``; '' without a shift."""
    if 0 < site <= length:
        return f"{sequence[site - 1]}{site}"
    return "" if site < 0 else "C-term" if site else "N-term"


def modification_table(psms: pa.Table, fdr: float, *, has_decoys: bool) -> pa.Table:
    """Return the table of modifications, most frequent first.

    Shifts with the same name and mass are in one row. Shifts without a name are in one row if their masses, rounded to 0.01 Da, are equal.
    Rank 1 targets accepted at the false discovery rate are counted, and the decoys accepted with them. The column ``sites`` contains the
    number of matches for each residue or terminus; ``share_unmodified`` is the fraction of the peptides that were also found without a
    shift.
    """
    names = ["modification", "mass_shift", "carried_mass", "site", "sequence", "shift_kind", "is_decoy"]
    rows = psms.filter(_accepted(psms, fdr, has_decoys=has_decoys)).select(names).to_pylist()
    unmodified = {row["sequence"] for row in rows if row["shift_kind"] == KINDS[PLAIN] and not row["is_decoy"]}
    result = defaultdict[tuple[str, float], list[dict[str, Any]]](list)
    for row in rows:
        if row["shift_kind"] != KINDS[PLAIN]:
            result[_modification_key(row)].append(row)
    every = [_modification_row(*key, members, unmodified) for key, members in sorted(result.items())]
    ranked = sorted((row for row in every if row["psms"]), key=lambda row: -row["psms"])
    return MODIFICATIONS.arrow({name: [row[name] for row in ranked] for name in MODIFICATIONS.saved})


def _modification_key(row: dict[str, Any]) -> tuple[str, float]:
    """Return the name and the mass (Da) under which a shift is counted in the table of modifications."""
    if row["shift_kind"] != KINDS[UNNAMED] or not row["modification"].startswith(("+", "-")):
        return row["modification"], round(row["carried_mass"], 6)
    binned = round(row["carried_mass"] * _BINS_OF_DALTON) / _BINS_OF_DALTON
    return write_mass(binned), binned


def _modification_row(name: str, mass: float, members: list[dict[str, Any]], unmodified: set[str]) -> dict[str, Any]:
    """Return the row of a modification, with the columns of `MODIFICATIONS`."""
    targets = [row for row in members if not row["is_decoy"]]
    peptides = {row["sequence"] for row in targets}
    sites = Counter(row["site"].rstrip("0123456789") for row in targets)
    return {
        "name": name,
        "mass": mass,
        "psms": len(targets),
        "peptides": len(peptides),
        "sites": "; ".join(f"{site} {count}" for site, count in sorted(sites.items(), key=lambda entry: (-entry[1], entry[0]))),
        "share_unmodified": len(peptides & unmodified) / max(1, len(peptides)),
        "decoys": len(members) - len(targets),
        "kind": targets[0]["shift_kind"] if targets else "",
    }


def write_modification_file(out: Path, table: pa.Table, progress: Progress, *, spreadsheet_safe: bool = False) -> None:
    """Write the table of modifications as text."""
    write_separated(out, table, MODIFICATIONS.saved_columns, progress, ROUNDED, spreadsheet_safe=spreadsheet_safe)


def export_modified_tables(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Write the tables of PSMs, peptides, protein groups, modifications and sites (see `proteoscope.engine.entry.Search.export`)."""
    written = export_matches(tables.write_tables, project, request, progress)
    out = request.target / MODIFICATIONS_FILE
    table = read_stored(project, request.run_id, MODIFICATIONS, MODIFICATIONS.saved)
    write_modification_file(out, table, progress, spreadsheet_safe=request.spreadsheet_safe)
    return [*written, out, *export_sites(project, request, progress)]
