"""The tables of an identification as the window shows them: how they are linked and filtered, and the run's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.chemistry.tolerance import Tolerance
from engine.errors import ProteoscopeError
from engine.identification.entry import IDENTIFICATION
from engine.project import Project
from gui.results.finished_run import FinishedRun, open_finished_run
from gui.tables.source import Condition, TableSource

__all__ = [
    "PSM_DETAILS",
    "Count",
    "Counts",
    "Facets",
    "IdentificationRun",
    "RowFilter",
    "Summary",
    "accepted_counts",
    "facets",
    "filter_conditions",
    "open_identification",
    "psms_of_peptide",
    "rows_of_group",
    "summary",
]

PSM_DETAILS = (
    *("spectrum", "peptide", "sequence", "charge", "precursor_mz", "modification_positions", "modification_names", "modification_masses"),
    *("scan", "spectrum_id", "spectrum_file", "q_value", "retention_time"),
)
"""What a spectrum needs of its PSM, read when one is chosen."""


@dataclass(frozen=True)
class IdentificationRun(FinishedRun):
    """An identification that is shown: its spectra, or why there are none, and those of its parameters that the views need."""

    spectra_path: str
    spectra_error: str
    fdr: float
    fragment_tolerance: Tolerance
    ion_series: str
    maximum_fragment_charge: int


def open_identification(project: Project, run_id: str | None) -> IdentificationRun:
    """Open a finished identification, the last one where `run_id` is None. Checks the files' digests, hence takes its time.

    Raises
    ------
    InputError, StorageError : there is none, or its tables are missing or damaged.
    """
    found = open_finished_run(project, IDENTIFICATION, run_id)
    spectra_path, spectra_error = "", ""
    try:
        # Spectra are large, and each part of the file carries its own check.
        spectra_path = str(project.table("spectra", found.run.id, verify=False))
    except ProteoscopeError as error:
        spectra_error = str(error)
    stored = found.parameters
    return IdentificationRun(
        **vars(found),
        spectra_path=spectra_path,
        spectra_error=spectra_error,
        fdr=float(stored["fdr"]),
        fragment_tolerance=Tolerance.parse(str(stored["fragment_tolerance"])),
        ion_series=str(stored["ion_series"]),
        maximum_fragment_charge=int(stored["maximum_fragment_charge"]),
    )


@dataclass(frozen=True)
class Count:
    """Targets accepted at a false discovery rate, the decoys accepted beside them, and where the share of false targets lies with 95 %
    confidence, as parts of one.
    """

    targets: int
    decoys: int
    false_share_low: float
    false_share_high: float


@dataclass(frozen=True)
class Counts:
    """What an identification found at its false discovery rate.

    Attributes
    ----------
    psms : of rank 1. peptides : rows of their table, which are peptidoforms. proteins : groups, by their own q-values.
    sequences : different sequences of the peptides that are targets.
    """

    psms: Count
    peptides: Count
    proteins: Count
    sequences: int


def accepted_counts(source: TableSource, fdr: float) -> Counts:
    """Count what is accepted at a false discovery rate."""
    from engine.statistics.target_decoy import false_share_interval

    counted = "count(*) FILTER (NOT is_decoy) AS targets, count(*) FILTER (is_decoy) AS decoys"
    rows = source.query(
        f"SELECT 'psms' AS name, {counted}, 0 AS sequences FROM psms WHERE q_value <= $1 AND rank = 1 "
        f"UNION ALL SELECT 'peptides', {counted}, count(DISTINCT sequence) FILTER (NOT is_decoy) FROM peptides WHERE q_value <= $1 "
        f"UNION ALL SELECT 'proteins', {counted}, 0 FROM proteins WHERE q_value <= $1",
        [fdr],
    ).to_pylist()
    found = {row["name"]: Count(row["targets"], row["decoys"], *false_share_interval(row["targets"], row["decoys"])) for row in rows}
    return Counts(**found, sequences=next(row["sequences"] for row in rows if row["name"] == "peptides"))


@dataclass(frozen=True)
class Summary:
    """What an identification found at its false discovery rate; `n_spectra` is None where the spectra were not kept."""

    counts: Counts
    n_spectra: int | None

    @property
    def rate(self) -> float | None:
        """Part of the spectra that are identified, None where their number is not known."""
        return self.counts.psms.targets / self.n_spectra if self.n_spectra else None


def summary(source: TableSource, spectra_path: str, fdr: float) -> Summary:
    """Count what is accepted, and the spectra."""
    n_spectra = None
    if spectra_path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            n_spectra = int(pq.read_metadata(spectra_path).num_rows)
        except (OSError, pa.ArrowException):
            n_spectra = None
    return Summary(accepted_counts(source, fdr), n_spectra)


@dataclass(frozen=True)
class Facets:
    """What there is to choose from in filters."""

    charges: tuple[int, ...]
    modifications: tuple[str, ...]


def facets(source: TableSource) -> Facets:
    """Charges and modifications of all PSMs, modifications by how often they occur."""
    charges = source.query("SELECT DISTINCT charge FROM psms ORDER BY charge")["charge"].to_pylist()
    names = source.query(
        "SELECT name FROM (SELECT unnest(modification_names) AS name FROM psms) GROUP BY name ORDER BY count(*) DESC, name LIMIT 200"
    )["name"].to_pylist()
    return Facets(tuple(charges), tuple(names))


@dataclass(frozen=True)
class RowFilter:
    """What the user wants to see in all tables. `modification` "" is only the unmodified, None any."""

    text: str = ""
    q_value: float | None = None
    charge: int | None = None
    modification: str | None = None
    shows_decoys: bool = False


def filter_conditions(chosen: RowFilter, table: str) -> list[Condition]:
    """The conditions that a filter puts on the rows of ``proteins``, ``peptides`` or ``psms``; charge is a matter of PSMs alone."""
    conditions = []
    if not chosen.shows_decoys:
        conditions.append(Condition("NOT is_decoy"))
    if chosen.q_value is not None:
        # Without decoys there are no q-values, and nothing to filter by.
        conditions.append(Condition("q_value <= ? OR NOT isfinite(q_value) OR q_value IS NULL", (chosen.q_value,)))
    if chosen.charge is not None and table == "psms":
        conditions.append(Condition("charge = ?", (chosen.charge,)))
    if chosen.modification is not None and table != "proteins":
        conditions.append(_modified(chosen.modification, table))
    if chosen.text.strip():
        conditions.append(_with_text(chosen.text.strip(), table))
    return conditions


def _modified(name: str, table: str) -> Condition:
    if table == "psms":
        if not name:
            return Condition("len(modification_names) = 0")
        return Condition("list_contains(modification_names, ?)", (name,))
    if not name:
        return Condition("peptide = sequence")
    return Condition("peptide IN (SELECT peptide FROM psms WHERE list_contains(modification_names, ?))", (name,))


# A tab is shown as the blank that is typed for it.
_DESCRIPTION = "contains(translate(lower(description), chr(9), ' '), ?)"
_DESCRIBED = f"(SELECT coalesce(flatten(list(accessions)), []) FROM proteins WHERE {_DESCRIPTION})"


def _with_text(text: str, table: str) -> Condition:
    """Peptide sequence or ProForma, accession, or description; whatever the case."""
    small, capital = text.lower(), text.upper()
    # A group's accessions stand in its name close together, those of peptides and PSMs in a list that is shown with blanks.
    group, listed = (re.sub(r"\s*;\s*", between, small) for between in (";", "; "))
    if table == "proteins":
        peptides = "(SELECT coalesce(flatten(list(proteins)), []) FROM peptides WHERE contains(sequence, ?) OR contains(lower(peptide), ?))"
        sql = f'contains(lower("group"), ?) OR {_DESCRIPTION} OR list_has_any(accessions, {peptides})'
        return Condition(sql, (group, small, capital, small))
    in_peptide = "contains(sequence, ?) OR contains(lower(peptide), ?)"
    in_protein = f"contains(lower(array_to_string(proteins, '; ')), ?) OR list_has_any(proteins, {_DESCRIBED})"
    if table == "psms":
        # Each peptide has many PSMs and the same proteins in all of them.
        in_protein = f"peptide IN (SELECT peptide FROM peptides WHERE {in_protein})"
    return Condition(f"{in_peptide} OR {in_protein}", (capital, small, listed, small))


def rows_of_group(accessions: Sequence[str]) -> list[Condition]:
    """Condition on peptides or PSMs: some protein of the group holds them."""
    return [Condition("list_has_any(proteins, ?)", (list(accessions),))]


def psms_of_peptide(peptide: str, is_decoy: bool) -> list[Condition]:
    """Condition on PSMs: they are of this peptidoform."""
    return [Condition("peptide = ? AND is_decoy = ?", (peptide, is_decoy))]
