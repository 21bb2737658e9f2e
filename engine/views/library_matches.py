"""Data of the view of library matches: filters, counts, mass differences, and spectra mirrored with their library entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.annotation import annotate_text
from proteoscope.engine.views.conditions import Condition, compares, contains_in, given, text_in_columns
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram, bin_counts, bin_edges
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "LibraryFilter",
    "LibraryOverview",
    "compared_match",
    "library_conditions",
    "library_overview",
    "list_conditions",
    "matched_spectrum",
]

_DETAILS = (
    *("spectrum", "reference", "spectrum_id", "library_spectrum", "peptide", "charge", "similarity", "mass_difference", "modification"),
    *("precursor_mz", "kind"),
)
_PLACE = ("spectrum", "spectrum_file", "retention_time", "precursor_mz")
_SIMILARITIES = {"entropy": "spectral entropy", "cosine": "cosine"}
_TEXTS = ("library_spectrum", "peptide", "formula", "inchikey", "modification", "spectrum_id")


@dataclass(frozen=True)
class LibraryFilter:
    """Filter of library matches; None means no restriction, and `kind` is ``same`` (mass of the entry) or ``shifted``."""

    text: str = ""
    q_value: float | None = None
    kind: str | None = None


def library_conditions(chosen: LibraryFilter) -> list[Condition]:
    """Return the conditions of a filter on matches; a q-value limit excludes rows without a q-value."""
    bounds = given(("q_value", "<=", chosen.q_value), ("kind", "=", chosen.kind))
    return [*bounds, *contains_in(_TEXTS, chosen.text)]


def list_conditions(chosen: LibraryFilter, columns: Sequence[Column]) -> list[Condition]:
    """Return the conditions of a filter on PSMs, peptides or proteins, by text and q-value; `columns` are the columns of the table."""
    conditions = text_in_columns(columns, chosen.text)
    if chosen.q_value is not None and any(column.name == "q_value" for column in columns):
        conditions.append(compares("q_value", "<=", chosen.q_value))
    return conditions


@dataclass(frozen=True)
class LibraryOverview:
    """Overview of a library search.

    Attributes
    ----------
    counts
        Numbers of accepted ``matches``, of ``shifted`` matches among these, of ``names`` of entries, of matches accepted ``at_5_percent``,
        and of ``unrated`` matches (whose entries have no decoys, unlike other entries).
    differences
        Histogram of the mass differences of shifted matches.
    has_error_rates
        True if error rates are known.
    """

    counts: Mapping[str, int]
    differences: Histogram
    has_error_rates: bool


def library_overview(source: TableSource, fdr: float) -> LibraryOverview:
    """Count the matches accepted at a false discovery rate, or all matches if error rates are unknown.

    `source` is the table of matches.
    """
    has_error_rates = bool(source.query("SELECT count(q_value) AS n FROM matches").to_pylist()[0]["n"])
    accepted = "q_value <= ?" if has_error_rates else "? > 0"
    result = source.query(
        "SELECT count(*) AS matches, count(*) FILTER (kind = 'shifted') AS shifted, count(DISTINCT library_spectrum) AS names "
        f"FROM matches WHERE {accepted}",
        [fdr],
    ).to_pylist()[0]
    others = "count(*) FILTER (q_value IS NULL) AS unrated, count(*) FILTER (q_value <= 0.05) AS at_5_percent"
    result |= source.query(f"SELECT {others} FROM matches").to_pylist()[0] if has_error_rates else {"unrated": 0, "at_5_percent": 0}
    conditions: list[Condition] = [compares("kind", "=", "shifted"), *([compares("q_value", "<=", fdr)] if has_error_rates else [])]
    edges = bin_edges(source, "mass_difference", conditions)
    counts = bin_counts(source, "mass_difference", conditions, edges) if len(edges) > 2 else np.zeros(1, np.int64)
    reported = f"{result['shifted']:,} accepted matches differ in mass from their library entries."
    series = (("Matches", counts),)
    histogram = Histogram("Mass differences", "Mass difference (Da)", "Matches", edges, series, None, reported)
    return LibraryOverview(result, histogram, has_error_rates)


def matched_spectrum(source: TableSource, row: int) -> dict[str, Any]:
    """Return row (in the table of spectra), file, retention time and m/z of the spectrum of a match; `source` is the table of matches."""
    return source.row(row, _PLACE)


def compared_match(source: TableSource, row: int, run: FinishedRun) -> MirroredSpectra:
    """Mirror the spectrum in a row of the table of matches with its library entry.

    Raises
    ------
    ProteoscopeError
        If the peaks are missing or damaged.
    """
    result = source.row(row, _DETAILS)
    upper = Half(result["spectrum_id"] or "", run.peaks().peaks(result["spectrum"]))
    # Library entries do not state their activation; assume the activation of the matched spectrum.
    entry = run.peaks("references").peaks(result["reference"])._replace(activation=upper.peaks.activation)
    name = result["library_spectrum"]
    lower = Half(f"library: {name}", entry, annotate_text(result["peptide"], max(1, abs(result["charge"])), entry, run.ions))
    shift = float(result["mass_difference"]) if result["kind"] == "shifted" else 0.0
    title = f"{upper.name} resembles {name}"
    if shift:
        title += f" with {result['modification']}"
    tolerance = Tolerance.parse(str(run.parameters["fragment_tolerance"]))
    kind = _SIMILARITIES.get(str(run.parameters["similarity"]), "similarity")
    return MirroredSpectra(title, upper, lower, tolerance, result["similarity"], shift=shift, similarity_name=kind)
