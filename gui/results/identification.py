"""The tables of an identification as the window shows them: their columns, how they are linked and filtered, and the run's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.chemistry.tolerance import Tolerance
from engine.errors import ProteoscopeError
from engine.identification.parameters import IdentificationParameters
from engine.project import Project
from engine.tables import Column
from gui.results.finished_run import FinishedRun, open_finished_run
from gui.tables.source import Condition, TableSource

__all__ = [
    "PEPTIDE_COLUMNS",
    "PEPTIDE_EXTRAS",
    "PROTEIN_COLUMNS",
    "PROTEIN_EXTRAS",
    "PSM_COLUMNS",
    "PSM_DETAILS",
    "PSM_EXTRAS",
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

PROTEIN_COLUMNS = (
    Column("group", "Protein group", "Accessions of the proteins that the same peptides prove", width=21),
    Column("n_peptides", "Peptides", "Different peptides", "integer", 7),
    Column("n_psms", "PSMs", "Spectra matched to the group's peptides", "integer", 5),
    Column("coverage", "Coverage (%)", "Part of the first protein's residues that peptides cover", "percent", 8),
    Column("q_value", "q-value", "Smallest false discovery rate at which the group is accepted", "probability", 8),
    Column("description", "Description", "What the database says of the first protein", width=44),
    Column("score", "Score", "Score of the group", "number", 8),
    Column("n_unique_peptides", "Unique", "Peptides that no other group has", "integer", 6),
    Column("razor_peptides", "Razor", "Peptides counted for this group, of all that have them", "integer", 6, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that the group is wrong", "probability", 9, is_shown=False),
    Column("length", "Length", "Residues of the first protein", "integer", 7, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

PEPTIDE_COLUMNS = (
    Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=24),
    Column("q_value", "q-value", "Smallest false discovery rate at which the peptide is accepted", "probability", 9),
    Column("n_psms", "PSMs", "Spectra matched to it", "integer", 6),
    Column("best_score", "Best score", "Score of its best spectrum", "number", 8),
    Column("calculated_mass", "Mass (Da)", "Neutral monoisotopic mass", "number", 10, 4),
    Column("proteins", "Proteins", "Accessions of the proteins that hold it", "texts", 30),
    Column("sequence", "Sequence", "Residues without modifications", width=26, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that the peptide is wrong", "probability", 9, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

PSM_COLUMNS = (
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7),
    Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=24),
    Column("charge", "z", "Charge of the precursor", "integer", 3),
    Column("score", "Score", "Score that decides", "number", 7),
    Column("q_value", "q-value", "Smallest false discovery rate at which the match is accepted", "probability", 8),
    Column("mass_error_ppm", "Error (ppm)", "Measured less calculated mass, after correction of the isotope", "number", 8, 2),
    Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4),
    Column("matched_ions", "Matched", "Fragment ions found in the spectrum", "integer", 7),
    Column("retention_time", "RT (min)", "Retention time", "minutes", 8),
    Column("proteins", "Proteins", "Accessions of the proteins that hold the peptide", "texts", 26),
    Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
    Column("posterior_error_probability", "PEP", "Probability that this match is wrong", "probability", 9, is_shown=False),
    Column("delta_score", "Delta score", "Lead over the next candidate", "number", 8, 3, is_shown=False),
    Column(
        "hyperscore",
        "Hyperscore",
        "ln(matched N-terminal ions!) + ln(matched C-terminal ions!) + ln(1 + 100 × SDP), with a spectrum of unit length; the scale is this"
        " program's own, neither X!Tandem's nor Sage's",
        "number",
        9,
        is_shown=False,
    ),
    Column("xcorr", "XCorr", "Cross-correlation", "number", 8, 3, is_shown=False),
    Column("spectral_dot_product", "SDP", "Spectral dot product", "number", 8, 3, is_shown=False),
    Column("ksdp", "KSDP", "Kernel spectral dot product", "number", 8, 3, is_shown=False),
    Column("observed_mass", "Observed mass", "Neutral mass of the precursor (Da)", "number", 11, 4, is_shown=False),
    Column("calculated_mass", "Calculated mass", "Neutral mass of the peptide (Da)", "number", 11, 4, is_shown=False),
    Column("isotope_error", "Isotope", "Isotope peak taken for the monoisotopic one", "integer", 6, is_shown=False),
    Column("missed_cleavages", "Missed", "Missed cleavages", "integer", 6, is_shown=False),
    Column("total_ions", "Ions", "Fragment ions that the peptide can have", "integer", 6, is_shown=False),
    Column("rank", "Rank", "Place among the candidates of its spectrum", "integer", 5, is_shown=False),
    Column("is_decoy", "Decoy", "Whether it is a decoy, made to count false matches", "truth", 6, is_shown=False),
)

PROTEIN_EXTRAS = ("group", "accessions", "is_decoy", "description")
PEPTIDE_EXTRAS = ("peptide", "sequence", "is_decoy", "best_psm", "proteins")
PSM_EXTRAS = ("psm_id", "peptide", "proteins", "is_decoy")
"""What the tables hold besides what they show: what links them."""

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
    found = open_finished_run(project, "identify", run_id, IdentificationParameters, ("proteins", "peptides", "psms"))
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
