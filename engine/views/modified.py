"""Data of the view of an open modification search: filters, mass shifts, unmodified counterparts, and parameters of a second search."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.modifications import parse_modification, unimod
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.views.annotation import annotate_match, ions_to_show
from proteoscope.engine.views.conditions import (
    Condition,
    accepted_at,
    all_of,
    any_of,
    compares,
    contains,
    given,
    matches_pattern,
    negated,
    rounds_to,
    where_clause,
)
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.identification import PSM_DETAILS, marked, psm_name
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shifts import Shifts
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "DETAILS",
    "SURE",
    "ComparedMatch",
    "ModificationRow",
    "ModifiedFilter",
    "ModifiedOverview",
    "compared_match",
    "find_partner",
    "have_modifications",
    "modified_conditions",
    "overview",
    "shifts_between",
    "variable_modifications",
]

DETAILS = (*PSM_DETAILS, "shift_position", "modification", "mass_shift", "shift_kind", "is_decoy", "psm_id")
"""Columns of a PSM that are needed to show its spectrum."""
SURE = 0.95
"""Minimum probability of a site that is considered certain."""
_NO_PARTNER = "No accepted spectrum of this peptide and charge without a shift."
_NO_SHIFT = "This match has no shift."
_RARE = 0.1
"""Minimum fraction of a modification's PSMs at a site; sites with fewer PSMs are omitted from a second search."""

# The table of modifications groups unnamed shifts by hundredths of a dalton and names them by their mass.
_IS_BINNED = "shift_kind = 'unnamed' AND regexp_matches(modification, '^[+-]')"
_KEY_NAME = f"CASE WHEN {_IS_BINNED} THEN '' ELSE modification END"
_KEY_MASS = f"CASE WHEN {_IS_BINNED} THEN round_even(carried_mass * 100, 0) ELSE round_even(carried_mass * 1e6, 0) END"
_ROW_IS_BINNED = "kind = 'unnamed' AND regexp_matches(name, '^[+-]')"
_ROW_KEY_NAME = f"CASE WHEN {_ROW_IS_BINNED} THEN '' ELSE name END"
_ROW_KEY_MASS = f"CASE WHEN {_ROW_IS_BINNED} THEN round_even(mass * 100, 0) ELSE round_even(mass * 1e6, 0) END"


@dataclass(frozen=True)
class ModifiedFilter:
    """Filter of rows; None means no restriction. Shifts are in dalton; `kind` is ``none``, ``named``, ``end`` or ``unnamed``."""

    text: str = ""
    lowest_shift: float | None = None
    highest_shift: float | None = None
    q_value: float | None = None
    kind: str | None = None
    only_sure: bool = False
    only_marked: bool = False


@dataclass(frozen=True)
class ModificationRow:
    """Row of the table of modifications; `key_name` and `key_mass` identify its PSMs, and `mass` is in dalton."""

    row: int
    name: str
    mass: float
    kind: str
    sites: str
    key_name: str
    key_mass: float


@dataclass(frozen=True)
class ModifiedOverview:
    """Overview of a run: mass shifts of accepted PSMs, rows of the table of modifications, and counts of accepted PSMs and peptides."""

    shifts: Shifts
    modifications: tuple[ModificationRow, ...]
    counts: Mapping[str, int]


def overview(source: TableSource, fdr: float) -> ModifiedOverview:
    """Return the mass shifts of PSMs accepted at `fdr`, with modifications and counts; `source` is any open table of the run."""
    rows = source.query(
        f"SELECT file_row_number AS row, name, mass, kind, sites, {_ROW_KEY_NAME} AS key_name, {_ROW_KEY_MASS} AS key_mass "
        "FROM modifications ORDER BY row"
    ).to_pylist()
    where, parameters = where_clause(_accepted(fdr))
    table = source.query(
        f"WITH accepted AS (SELECT mass_shift, shift_kind, {_KEY_NAME} AS key_name, {_KEY_MASS} AS key_mass FROM psms{where}), "
        f"known AS (SELECT min(file_row_number) AS row, {_ROW_KEY_NAME} AS key_name, {_ROW_KEY_MASS} AS key_mass "
        "FROM modifications GROUP BY ALL) "
        "SELECT mass_shift, shift_kind <> 'unnamed' AS is_explained, "
        "CASE WHEN shift_kind = 'none' THEN -1 ELSE coalesce(row, -1) END AS row "
        "FROM accepted LEFT JOIN known USING (key_name, key_mass) WHERE isfinite(mass_shift)",
        parameters,
    )
    counts = source.query(
        "SELECT count(*) AS psms, count(DISTINCT sequence) AS sequences, count(DISTINCT peptide) AS peptides, "
        "count(*) FILTER (shift_kind = 'none') AS plain, count(*) FILTER (shift_kind = 'named') AS named, "
        "count(*) FILTER (shift_kind = 'end') AS ends, "
        f"count(*) FILTER (shift_kind = 'unnamed') AS unnamed FROM psms{where}",
        parameters,
    ).to_pylist()[0]
    shifts = Shifts.from_columns(
        table["mass_shift"].to_numpy().astype(np.float64),
        table["is_explained"].to_numpy(),
        table["row"].to_numpy().astype(np.int64),
        [row["name"] for row in rows],
    )
    return ModifiedOverview(shifts, tuple(ModificationRow(**row) for row in rows), counts)


def modified_conditions(chosen: ModifiedFilter, table: str) -> list[Condition]:
    """Return the conditions of a filter on ``modifications``, ``psms`` or ``proteins``.

    Filters that do not apply to the table are ignored.
    """
    conditions: list[Condition] = [] if table == "modifications" else [compares("is_decoy", "=", False)]
    mass = {"modifications": "mass", "psms": "mass_shift"}.get(table)
    if mass is not None:
        conditions += given((mass, ">=", chosen.lowest_shift), (mass, "<=", chosen.highest_shift))
    if chosen.q_value is not None and table != "modifications":
        conditions.append(accepted_at(chosen.q_value, table))
    if table == "psms":
        conditions += given(("shift_kind", "=", chosen.kind), ("site_probability", ">=", SURE if chosen.only_sure else None))
        conditions += [marked()] if chosen.only_marked else []
    elif table == "modifications":
        conditions += given(("kind", "=", chosen.kind))
    if text := chosen.text.strip():
        column_conditions = [contains(name, text, is_list=name == "proteins") for name in _SEARCHED_COLUMNS[table]]
        conditions.append(any_of(tuple(column_conditions)))
    return conditions


_SEARCHED_COLUMNS = {
    "modifications": ("name", "sites"),
    "psms": ("peptide", "sequence", "modification", "proteins", "spectrum_id"),
    "proteins": ("group", "description"),
}
"""Columns of each table in which a text filter searches."""


def have_modifications(rows: Iterable[ModificationRow]) -> list[Condition]:
    """Return the conditions that select rank 1 PSMs with any of the given modifications."""
    is_shifted = negated(compares("shift_kind", "=", "none"))
    return [compares("rank", "=", 1), is_shifted, any_of(tuple(_has_modification(row) for row in rows))]


def _has_modification(row: ModificationRow) -> Condition:
    """Return the condition that a PSM has the `_KEY_NAME` and `_KEY_MASS` of the modification `row`."""
    binned = (compares("shift_kind", "=", "unnamed"), matches_pattern("modification", "^[+-]"))
    if not row.key_name:
        return all_of((*binned, rounds_to("carried_mass", 100, row.key_mass)))
    return all_of((negated(all_of(binned)), compares("modification", "=", row.key_name), rounds_to("carried_mass", 1e6, row.key_mass)))


def shifts_between(low: float, high: float, fdr: float) -> list[Condition]:
    """Return the conditions that select the accepted PSMs with a mass shift from `low` to `high` (exclusive), dalton."""
    return [compares("mass_shift", ">=", low), compares("mass_shift", "<", high), *_accepted(fdr)]


def _accepted(fdr: float) -> list[Condition]:
    return [compares("rank", "=", 1), compares("is_decoy", "=", False), accepted_at(fdr, "psms")]


def find_partner(source: TableSource, row: Mapping[str, Any], fdr: float) -> dict[str, Any] | None:
    """Return the values `DETAILS` of the best accepted PSM without a mass shift that has the sequence and charge in `row`, or None."""
    columns = ", ".join(DETAILS)
    same = [compares("sequence", "=", row["sequence"]), compares("charge", "=", row["charge"]), compares("shift_kind", "=", "none")]
    where, parameters = where_clause([*same, *_accepted(fdr)])
    result: list[dict[str, Any]] = source.query(
        f"SELECT {columns} FROM psms{where} ORDER BY q_value, score DESC, file_row_number LIMIT 1", parameters
    ).to_pylist()
    return result[0] if result else None


@dataclass(frozen=True)
class ComparedMatch:
    """PSM mirrored with the best PSM of the same peptide without a mass shift.

    Attributes
    ----------
    match, partner
        Columns `DETAILS` of the two PSMs; `partner` has the value None if the PSM has no shift, or if no such PSM was accepted.
    peaks
        Peaks of the PSM.
    """

    match: Mapping[str, Any]
    partner: Mapping[str, Any] | None
    peaks: Peaks
    spectra: MirroredSpectra


def compared_match(source: TableSource, row: int, run: FinishedRun) -> ComparedMatch:
    """Mirror the PSM in a row with the best accepted unshifted PSM of its sequence and charge.

    Raises
    ------
    ProteoscopeError
        If the run did not store its spectra or ion settings, or if the mass of a peptide is undefined.
    """
    settings = replace(ions_to_show(run.parameters), losses=(), shows_precursor=False)
    result = source.row(row, DETAILS)
    is_shifted = result["shift_kind"] != "none"
    partner = find_partner(source, result, run.fdr) if is_shifted else None
    halves = []
    for psm in (result, partner):
        if psm is not None:
            peaks = run.peaks().peaks(SpectrumRow(int(psm["spectrum"])))
            halves.append(Half(psm_name(psm), peaks, annotate_match(psm, peaks, settings)))
    lower, note = (halves[1], "") if partner is not None else (None, _NO_PARTNER if is_shifted else _NO_SHIFT)
    spectra = MirroredSpectra(halves[0].name, halves[0], lower, settings.tolerance, note=note)
    return ComparedMatch(result, partner, halves[0].peaks, spectra)


def variable_modifications(rows: Sequence[ModificationRow]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return modifications as values of the parameter `variable_modifications` of an identification, and the names of unsupported ones.

    The parameter supports only modifications of Unimod with suitable sites. Sites with less than a tenth of the PSMs of a modification are
    omitted, since they may be random.

    Examples
    --------
    >>> oxidised = ModificationRow(0, "Oxidation", 15.994915, "named", "M 40; W 6; N-term 1", "Oxidation", 15994915.0)
    >>> variable_modifications([oxidised])
    (('Oxidation (MW)',), ())
    """
    texts: dict[str, None] = {}
    others = []
    for row in rows:
        texts_of_row = _searchable(row) if row.name in unimod() else []
        texts |= dict.fromkeys(texts_of_row)
        if not texts_of_row:
            others.append(row.name)
    return tuple(texts), tuple(others)


def _searchable(row: ModificationRow) -> list[str]:
    counts = {site: int(number) for site, _, number in (site.rpartition(" ") for site in row.sites.split("; "))}
    usual = [site for site, number in counts.items() if number >= _RARE * sum(counts.values())]
    symbols, texts = "", []
    for site in usual:
        # A modification that Unimod has only at termini is checked only there.
        written = [f"{end} {site}".strip() for end in ("", "N-term", "C-term", "Protein N-term", "Protein C-term")]
        if site.endswith("-term"):
            written = [site, f"Protein {site}"]
        listed = next((text for text in written if _is_known(row.name, text)), None)
        if listed is not None and listed == site and len(site) == 1:
            symbols += site
        elif listed is not None:
            texts.append(f"{row.name} ({listed})")
    return [*([str(parse_modification(f"{row.name} ({symbols})"))] if symbols else []), *texts]


def _is_known(name: str, site: str) -> bool:
    try:
        parse_modification(f"{name} ({site})")
    except ParameterError:
        return False
    return True
