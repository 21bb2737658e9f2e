"""Data of the view of an identification: filtered rows, accepted counts, distributions, and coverage of proteins."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proteoscope.engine.arrays import PeptideRow, SpectrumRow
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.formats.features import FEATURES
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.fixed_modifications import NONE_FIXED, FixedModifications, fixed_of_parameters, on_all_residues
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.columns import MARK_COLUMNS
from proteoscope.engine.results.counts import Count
from proteoscope.engine.statistics.target_decoy import false_share_interval
from proteoscope.engine.views.annotation import AnnotatedSpectrum, annotate_match, ions_to_show
from proteoscope.engine.views.conditions import (
    Condition,
    Selected,
    accepted_at,
    among,
    any_of,
    compares,
    contains,
    equals,
    given,
    has_any,
    is_empty,
    is_finite,
    where_clause,
)
from proteoscope.engine.views.coverage import Coverage, cover, protein_features, with_found_modifications
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram, bin_counts, bin_edges
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "PSM_DETAILS",
    "Counts",
    "Facets",
    "RowFilter",
    "accepted_counts",
    "annotated_psm",
    "facets",
    "filter_conditions",
    "find_linked_rows",
    "fixed_modifications",
    "marked",
    "mass_error_histogram",
    "psm_name",
    "read_group_coverage",
    "read_psm_row",
    "score_histogram",
    "select_group_rows",
    "select_peptide_psms",
    "summary",
]

PSM_DETAILS = (
    *("spectrum", "peptide", "sequence", "charge", "precursor_mz", "modification_positions", "modification_names", "modification_masses"),
    *("scan", "spectrum_id", "spectrum_file", "q_value", "retention_time"),
)
"""Columns of a PSM that are needed to show its spectrum; read when the user selects the PSM."""


_NAMES = {"psms": ("PSM", "PSMs"), "peptides": ("peptide", "peptides"), "proteins": ("protein group", "protein groups")}


@dataclass(frozen=True)
class Counts:
    """Numbers of results accepted at the false discovery rate of an identification.

    Attributes
    ----------
    psms
        Number of PSMs of rank 1.
    peptides
        Number of rows of the table of peptides (peptidoforms).
    proteins
        Number of protein groups, by their q-values.
    sequences
        Number of different sequences of target peptides.
    has_error_rates
        True if any PSM has a q-value; otherwise all targets are counted.
    """

    psms: Count
    peptides: Count
    proteins: Count
    sequences: int
    has_error_rates: bool = True


def accepted_counts(source: TableSource, fdr: float, decoy_ratio: float = 1.0, *, has_decoys: bool = True) -> Counts:
    """Count the PSMs, peptides and protein groups that are accepted at a false discovery rate.

    Without decoys, the counts have no interval. Without q-values, as in some imports, all targets count.

    Parameters
    ----------
    decoy_ratio
        Number of decoys per target in the database.
    """
    has_error_rates = bool(source.query("SELECT count(*) AS n FROM psms WHERE q_value IS NOT NULL AND NOT isnan(q_value)")["n"][0].as_py())
    accepted = "q_value <= $1" if has_error_rates else "$1 >= 0"
    counted = (
        f"count(*) FILTER (NOT is_decoy AND {accepted}) AS targets, count(*) FILTER (is_decoy AND {accepted}) AS decoys, "
        "count(*) FILTER (NOT is_decoy AND q_value <= 0.05) AS looser"
    )
    rows = source.query(
        f"SELECT 'psms' AS name, {counted}, 0 AS sequences FROM psms WHERE rank = 1 "
        f"UNION ALL SELECT 'peptides', {counted}, count(DISTINCT sequence) FILTER (NOT is_decoy AND {accepted}) FROM peptides "
        f"UNION ALL SELECT 'proteins', {counted}, 0 FROM proteins",
        [fdr],
    ).to_pylist()
    result = {}
    for row in rows:
        low, high = false_share_interval(row["targets"], row["decoys"], decoy_ratio)
        interval = {"false_share_low": low, "false_share_high": high}
        certainty = {"decoys": row["decoys"], **interval, "targets_at_5_percent": row["looser"]}
        name = _NAMES[row["name"]]
        result[row["name"]] = (
            Count.from_acceptance(row["targets"], *name, certainty, fdr) if has_decoys and has_error_rates else Count(row["targets"], *name)
        )
    sequences = next(row["sequences"] for row in rows if row["name"] == "peptides")
    return Counts(**result, sequences=sequences, has_error_rates=has_error_rates)


@dataclass(frozen=True)
class IdentificationOverview:
    """Numbers of accepted results and of spectra of an identification; without stored spectra, `n_spectra` has the value None."""

    counts: Counts
    n_spectra: int | None

    @property
    def rate(self) -> float | None:
        """Fraction of identified spectra, or None if the number of spectra is unknown."""
        return self.counts.psms.number / self.n_spectra if self.n_spectra else None


def summary(source: TableSource, run: FinishedRun) -> IdentificationOverview:
    """Return the numbers of accepted results and of spectra; `source` is any open table of the run."""
    return IdentificationOverview(accepted_counts(source, run.fdr, run.decoy_ratio, has_decoys=run.has_decoys), run.peaks().count())


@dataclass(frozen=True)
class Facets:
    """Values that the user can choose in the filters."""

    charges: tuple[int, ...]
    modifications: tuple[str, ...]


def facets(source: TableSource) -> Facets:
    """Return the charges and the modifications that occur among all PSMs, the most frequent modification first."""
    charges = source.query("SELECT DISTINCT charge FROM psms ORDER BY charge")["charge"].to_pylist()
    names = source.query(
        "SELECT name FROM (SELECT unnest(modification_names) AS name FROM psms) GROUP BY name ORDER BY count(*) DESC, name LIMIT 200"
    )["name"].to_pylist()
    return Facets(tuple(charges), tuple(names))


@dataclass(frozen=True)
class RowFilter:
    """Filter of rows, for all tables of an identification; None means no restriction.

    Attributes
    ----------
    text
        Text in the peptide, accession or description.
    modification
        Name of a modification, or "" for unmodified peptides.
    only_marked
        True to select only PSMs with a star or comment.
    """

    text: str = ""
    q_value: float | None = None
    charge: int | None = None
    modification: str | None = None
    shows_decoys: bool = False
    only_marked: bool = False


def filter_conditions(chosen: RowFilter, table: str) -> list[Condition]:
    """Return the conditions of a filter on ``proteins``, ``peptides`` or ``psms``; charge and marks apply only to PSMs."""
    conditions: list[Condition] = []
    if not chosen.shows_decoys:
        conditions.append(compares("is_decoy", "=", False))
    if chosen.q_value is not None:
        conditions.append(accepted_at(chosen.q_value, table))
    if table == "psms":
        conditions += given(("charge", "=", chosen.charge))
        conditions += [marked()] if chosen.only_marked else []
    if chosen.modification is not None and table != "proteins":
        conditions.append(_modified(chosen.modification, table))
    if chosen.text.strip():
        conditions.append(_with_text(chosen.text.strip(), table))
    return conditions


def marked() -> Condition:
    """Return the condition that a row has a star or a comment; only for tables that show marks."""
    return any_of(tuple(compares(mark_column.name, ">", "") for mark_column in MARK_COLUMNS))


def _modified(name: str, table: str) -> Condition:
    if table == "psms":
        return has_any("modification_names", (name,)) if name else is_empty("modification_names")
    if not name:
        return equals("peptide", "sequence")
    return among("peptide", Selected("psms", "peptide", (has_any("modification_names", (name,)),)))


def _with_text(text: str, table: str) -> Condition:
    """Return the condition that selects the rows of a table with a text in sequence, ProForma peptide, accessions or protein description.

    Case is ignored. A protein group is also selected if the text is in one of its peptides, and a peptide or PSM if the text is in the
    description of one of its proteins.
    """
    # Names of groups join accessions without spaces; the lists of peptides and PSMs are shown with spaces.
    group, listed = (re.sub(r"\s*;\s*", between, text) for between in (";", "; "))
    in_peptide = any_of((contains("sequence", text, is_capital=True), contains("peptide", text)))
    described = contains("description", text)
    if table == "proteins":
        return any_of((contains("group", group), described, has_any("accessions", Selected("peptides", "proteins", (in_peptide,)))))
    of_described = has_any("proteins", Selected("proteins", "accessions", (described,)))
    in_protein: Condition = any_of((contains("proteins", listed, is_list=True), of_described))
    if table == "psms":
        # Faster than searching each PSM, since all PSMs of a peptide have the same proteins.
        in_protein = among("peptide", Selected("peptides", "peptide", (in_protein,)))
    return any_of((in_peptide, in_protein))


def select_group_rows(accessions: Sequence[str]) -> list[Condition]:
    """Return the conditions that select the peptides or PSMs of any of the given proteins."""
    return [has_any("proteins", tuple(accessions))]


def select_peptide_psms(peptide: str, is_decoy: bool) -> list[Condition]:
    """Return the conditions that select the PSMs of a peptidoform."""
    return [compares("peptide", "=", peptide), compares("is_decoy", "=", is_decoy)]


def find_linked_rows(source: TableSource, row: Mapping[str, Any]) -> tuple[int | None, PeptideRow | None]:
    """Return the rows of the best protein group and of the peptide to which a peptide or PSM belongs; None if there is no such row.

    Parameters
    ----------
    row
        Values of the peptide or PSM, with ``peptide``, ``proteins`` and ``is_decoy``.
    """

    def first(sql: str, parameters: list[Any]) -> int | None:
        result = source.query(sql, parameters)["row"].to_pylist()
        return int(result[0]) if result else None

    is_decoy = bool(row["is_decoy"])
    protein = first(
        "SELECT file_row_number AS row FROM proteins WHERE list_has_any(accessions, ?) AND is_decoy = ? "
        "ORDER BY q_value, score DESC, row LIMIT 1",
        [list(row["proteins"]), is_decoy],
    )
    peptide = first("SELECT file_row_number AS row FROM peptides WHERE peptide = ? AND is_decoy = ? LIMIT 1", [row["peptide"], is_decoy])
    return protein, None if peptide is None else PeptideRow(peptide)


def read_psm_row(source: TableSource, row: int, run: FinishedRun) -> tuple[dict[str, Any], Peaks]:
    """Return the columns `PSM_DETAILS` and the peaks of the PSM in a row.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra, or if they are damaged.
    """
    details = source.row(row, PSM_DETAILS)
    return details, run.peaks().peaks(SpectrumRow(int(details["spectrum"])))


def psm_name(row: Mapping[str, Any]) -> str:
    """Return the display name of a PSM: scan, peptide and charge."""
    scan = f"scan {row['scan']}" if row.get("scan") is not None else str(row.get("spectrum_id") or "")
    return f"{scan}: {row['peptide']} ({row['charge']}+)"


def annotated_psm(source: TableSource, row: int, run: FinishedRun) -> AnnotatedSpectrum:
    """Annotate the spectrum of a PSM with the ions of the search, neutral losses and the precursor.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra or ion settings, or if the mass of the peptide is undefined.
    """
    return annotate_match(*read_psm_row(source, row, run), ions_to_show(run.parameters))


def fixed_modifications(source: TableSource, run: FinishedRun) -> FixedModifications:
    """Return the fixed modifications of a run from its parameters, or else those that all residues of a kind have in accepted PSMs.

    `source` is any open table of the run.
    """
    named = fixed_of_parameters(run.parameters)
    if named:
        return named
    result = source.query(
        "SELECT DISTINCT sequence, modification_positions AS positions, modification_names AS names FROM psms "
        "WHERE rank = 1 AND NOT is_decoy AND q_value <= ?",
        [run.fdr],
    )
    positions, names = in_one(result["positions"]), in_one(result["names"])
    lengths = pa.compute.list_value_length(positions).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    at = pa.compute.list_flatten(positions).to_numpy(zero_copy_only=False).astype(np.int64)
    return on_all_residues(result["sequence"].to_pylist(), lengths, at, pa.compute.list_flatten(names).to_pylist())


def read_group_coverage(source: TableSource, row: int, fdr: float, fixed: FixedModifications = NONE_FIXED) -> Coverage:
    """Return the coverage of the first protein of a group by the peptides accepted at `fdr`.

    Fixed modifications are not shown.

    Raises
    ------
    ProteoscopeError
        If the sequence of the protein is unknown.
    """
    requested = "SELECT accessions, description, sequence FROM proteins WHERE file_row_number = ?"
    protein = source.query(requested, [row]).to_pylist()[0]
    first = protein["accessions"][0]
    if not protein["sequence"]:
        raise ProteoscopeError(f"The sequence of {first} is unknown. Import the results with its database to see the coverage.")
    where, parameters = where_clause([has_any("proteins", (first,)), accepted_at(fdr, "peptides")])
    peptides = source.query(
        f"SELECT file_row_number AS row, peptide, sequence, n_psms, q_value FROM peptides{where} ORDER BY row", parameters
    ).to_pylist()
    result = cover(first, protein["sequence"], peptides, protein["description"] or "", fixed)
    if FEATURES.name not in source.paths:
        return result
    features = source.query("SELECT kind, first, last, description FROM features WHERE accession = ? ORDER BY file_row_number", [first])
    return with_found_modifications(replace(result, features=protein_features(features.to_pylist(), len(result.sequence))))


def score_histogram(source: TableSource, fdr: float) -> Histogram:
    """Return the histogram of the scores of rank 1 targets and decoys; the mark is the minimum score accepted at `fdr`."""
    best: list[Condition] = [compares("rank", "=", 1), is_finite("score")]
    edges = bin_edges(source, "score", best)
    targets, decoys = (bin_counts(source, "score", [*best, compares("is_decoy", "=", is_decoy)], edges) for is_decoy in (False, True))
    requested = "SELECT min(score) AS least FROM psms WHERE rank = 1 AND NOT is_decoy AND q_value <= ?"
    least = source.query(requested, [fdr])["least"][0].as_py()
    mark = None if least is None else (float(least), f"{fdr * 100:g} % FDR")
    summary = "No PSM is accepted." if least is None else ""
    return Histogram("Score distribution", "Score", "PSMs", edges, (("Targets", targets), ("Decoys", decoys)), mark, summary)


def mass_error_histogram(source: TableSource, fdr: float) -> Histogram:
    """Return the histogram of precursor mass errors (ppm) of rank 1 targets accepted at `fdr`; the mark is the median."""
    column = "mass_error_ppm"
    accepted: list[Condition] = [
        compares("rank", "=", 1),
        compares("is_decoy", "=", False),
        accepted_at(float(fdr), "psms"),
        is_finite(column),
    ]
    edges = bin_edges(source, column, accepted)
    counts = bin_counts(source, column, accepted, edges)
    where, parameters = where_clause(accepted)
    middle = source.query(f"SELECT median({column}) AS middle FROM psms{where}", parameters)["middle"][0].as_py()
    mark = None if middle is None else (float(middle), "median")
    summary = "No PSM is accepted." if middle is None else ""
    return Histogram("Mass errors of accepted PSMs", "Precursor mass error (ppm)", "PSMs", edges, (("Targets", counts),), mark, summary)
