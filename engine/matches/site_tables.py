"""Tables of the sites of localised modifications: by spectrum, by peptidoform, and by protein."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, ranges, segment_offsets
from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.localisation import DECOY_RESIDUES, ModificationSites, SiteRates, rate_sites
from proteoscope.engine.matches.psms import Psms
from proteoscope.engine.matches.site_columns import (
    PEPTIDOFORM_SITES,
    PROTEIN_SITES,
    PSM_SITES,
    Q_VALUES_BY_RESIDUE,
    RESIDUE_NAMES,
    WINDOW_REACH,
)
from proteoscope.engine.matches.tables import ScoredMatches
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.run import Run
from proteoscope.engine.results.arrow import finite_or_null
from proteoscope.engine.results.counts import counted

__all__ = ["SiteTables", "site_tables", "write_site_tables"]

_LEVELS = (0.01, 0.05)
_LISTED = 5  # number of modifications whose sites are logged; the record has all


@dataclass(frozen=True)
class SiteTables:
    """Tables of sites by name, and the records of the modifications for ``run.json``."""

    tables: Mapping[str, pa.Table]
    record: list[dict[str, Any]]

    @property
    def messages(self) -> list[str]:
        """Messages for the log, one for each modification."""
        return [_sentence(entry) for entry in self.record]


def site_tables(sites: ModificationSites, scored: ScoredMatches, proteins: ProteinIndex, *, plus_one: bool) -> SiteTables:
    """Collapse sites, estimate their false localisation rates, and return the tables.

    Parameters
    ----------
    sites : ModificationSites
        Possible sites of all accepted matches.
    scored : ScoredMatches
        Matches, in the order of the table of PSMs.
    proteins : ProteinIndex
        Proteins of the matches.
    plus_one : bool
        True to count one decoy more than observed.
    """
    psms = scored.psms
    rows, of_row = np.unique(sites.row, return_inverse=True)
    sequences = _sequences(psms, rows, proteins)
    peptidoform = _peptidoforms(psms, rows, sequences)
    residue = _residue_codes(sites, sequences, of_row)
    residues = _count_residues(sites, peptidoform[of_row], residue)
    key = _numbers(peptidoform[of_row], sites.name, sites.site)
    rates = rate_sites(sites, key, residue, residues, plus_one=plus_one)
    texts = _write_peptides(sites, psms, rows, sequences)
    positions = _Positions.from_matches(psms, proteins, rows)
    psm_table = _psm_table(sites, rates, psms, of_row, texts, residue, positions)
    peptidoforms = _peptidoform_table(sites, rates, psms, of_row, texts, residue, positions)
    protein_table = _protein_table(sites, peptidoform, of_row, texts, residue, residues, positions, proteins, plus_one=plus_one)
    tables = {PSM_SITES.name: psm_table, PEPTIDOFORM_SITES.name: peptidoforms, PROTEIN_SITES.name: protein_table}
    return SiteTables(tables, _record(sites, rates, residues))


def write_site_tables(run: Run, sites: SiteTables | None, progress: Progress) -> list[dict[str, Any]]:
    """Write the tables of sites to a run, and report on the modifications with the most matches.

    Returns
    -------
    list of dict
        Records of the modifications that have matches.
    """
    if sites is None:
        return []
    for name, table in sites.tables.items():
        run.write_table(name, table)
    order = sorted(range(len(sites.record)), key=lambda i: -sites.record[i]["psms"])
    for i in order[:_LISTED]:
        progress.message(sites.messages[i])
    return [entry for entry in sites.record if entry["psms"]]


def _numbers(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row of `columns`; equal rows have equal numbers, and numbers ascend in the sorted order of the rows."""
    order = np.lexsort(columns[::-1])
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(is_group_start(*(column[order] for column in columns))) - 1
    return result


def _sequences(psms: Psms, rows: NDArray[np.int64], proteins: ProteinIndex) -> list[str]:
    residues = np.asarray(proteins.proteins.residues)
    starts, lengths = psms.position[rows].tolist(), psms.length[rows].tolist()
    return [residues[start : start + length].tobytes().decode("ascii") for start, length in zip(starts, lengths, strict=True)]


def _peptidoforms(psms: Psms, rows: NDArray[np.int64], sequences: list[str]) -> NDArray[np.int64]:
    """Return a number for each match, (rows,). Matches with the same sequence and equal counts of each modification have equal numbers."""
    names = [modification.name for modification in psms.modifications]
    distinct = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number_of = np.array([distinct[name] for name in names], np.int64)
    offsets, index = ranges(psms.modification_offsets[rows], psms.modification_offsets[rows + 1])
    counts = np.zeros((len(rows), len(distinct)), np.int64)
    np.add.at(counts, (np.repeat(np.arange(len(rows)), np.diff(offsets)), number_of[psms.modification[index]]), 1)
    _, sequence = np.unique(np.array(sequences, str), return_inverse=True)
    return _numbers(sequence, *counts.T)


def _residue_codes(sites: ModificationSites, sequences: list[str], of_row: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the residue at each site as ASCII; 0 for the N-terminus and 1 for the C-terminus."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int64)
    text, starts = np.frombuffer("".join(sequences).encode(), np.uint8), segment_offsets(lengths)
    place = np.clip(sites.site, 1, lengths[of_row]) - 1
    codes = text[starts[of_row] + place]
    return np.where(sites.site == 0, 0, np.where(sites.site > lengths[of_row], 1, codes)).astype(np.uint8)


def _residue_texts(codes: NDArray[np.uint8]) -> list[str]:
    return [{0: "N-term", 1: "C-term"}.get(code, chr(code)) for code in codes.tolist()]


def _count_residues(sites: ModificationSites, peptidoform: NDArray[np.int64], residue: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the numbers of residues in distinct peptidoforms with alternative sites, (modifications, 1 + decoy residues).

    The first column contains the number of target residues, each further column the number of a decoy residue.
    """
    _, first = np.unique(_numbers(peptidoform, sites.name, sites.site), return_index=True)
    first = first[sites.has_alternative[first]]
    result = np.zeros((len(sites.names), 1 + len(DECOY_RESIDUES)))
    decoys = (sites.is_decoy[first] & (residue[first] == ord(symbol)) for symbol in DECOY_RESIDUES)
    for column, is_counted in enumerate((~sites.is_decoy[first], *decoys)):
        result[:, column] = np.bincount(sites.name[first[is_counted]], minlength=len(result))
    return result


def _write_peptides(sites: ModificationSites, psms: Psms, rows: NDArray[np.int64], sequences: list[str]) -> list[str]:
    """Return the peptides of the matches `rows` with their modifications at the most likely sites, in ProForma."""
    names = [modification.name for modification in psms.modifications]
    offsets, index = ranges(psms.modification_offsets[rows], psms.modification_offsets[rows + 1])
    of_row = np.repeat(np.arange(len(rows)), np.diff(offsets))
    is_retained = ~np.isin(psms.modification[index], sites.moved)
    chosen = np.flatnonzero(sites.is_reported & ~sites.is_decoy)
    row = np.concatenate((of_row[is_retained], np.searchsorted(rows, sites.row[chosen])))
    site = np.concatenate((psms.modification_site[index][is_retained], sites.site[chosen]))
    first = np.array([next((number for number in sites.moved if names[number] == name), 0) for name in sites.names], np.int64)
    which = np.concatenate((psms.modification[index][is_retained], first[sites.name[chosen]]))
    order = np.lexsort((which, site, row))
    counts = segment_offsets(np.bincount(row, minlength=len(rows)))
    masses = [modification.mass for modification in psms.modifications]
    return write_many(sequences, counts, site[order], which[order], names, masses)


@dataclass(frozen=True)
class _Positions:
    """Positions of the peptides of matches in proteins; `offsets` (CSR) delimit the positions of a match.

    `protein` and `accession` identify the protein, `start` is the first residue from 0, and `occurrence` the position in all residues.
    """

    offsets: NDArray[np.int64]
    protein: NDArray[np.int64]
    start: NDArray[np.int64]
    occurrence: NDArray[np.int64]
    accession: pa.Array

    @classmethod
    def from_matches(cls, psms: Psms, proteins: ProteinIndex, rows: NDArray[np.int64]) -> _Positions:
        offsets, index = ranges(psms.occurrence_offsets[rows], psms.occurrence_offsets[rows + 1])
        occurrence = psms.occurrences[index]
        protein = proteins.protein_of(occurrence)
        start = occurrence - np.asarray(proteins.proteins.offsets)[protein] + proteins.first_in_whole()[protein]
        distinct, inverse = np.unique(protein, return_inverse=True)
        accession = pa.array([proteins.proteins.accession(i) for i in distinct.tolist()], pa.string()).take(pa.array(inverse))
        return cls(offsets, protein, start, occurrence, accession)

    def columns(self, row: NDArray[np.int64], site: NDArray[np.int64], length: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return columns with the proteins of sites and the positions of the sites in them, from 1.

        A site at a terminus has the position of the terminal residue.
        """
        offsets, index = ranges(self.offsets[row], self.offsets[row + 1])
        at = np.repeat(np.clip(site, 1, length), np.diff(offsets))
        lists = pa.array(offsets, pa.int32())
        return {
            "proteins": pa.ListArray.from_arrays(lists, self.accession.take(pa.array(index))),
            "protein_positions": pa.ListArray.from_arrays(lists, pa.array(self.start[index] + at, pa.int32())),
        }


def _take_texts(texts: list[str], rows: NDArray[np.int64]) -> list[str]:
    return [texts[row] for row in rows.tolist()]


def _common(sites: ModificationSites, chosen: NDArray[np.int64], residue: NDArray[np.uint8]) -> dict[str, Any]:
    return {
        "modification": _take_texts(list(sites.names), sites.name[chosen]),
        "residue": _residue_texts(residue[chosen]),
        "site_probability": sites.probability[chosen],
        "site_score": finite_or_null(sites.score[chosen]),
        "has_alternative": sites.has_alternative[chosen],
    }


def _rated(rates: SiteRates, groups: NDArray[np.int64] | slice) -> dict[str, Any]:
    columns = {"localisation_q_value": finite_or_null(rates.q_value[groups])}
    for number, column in enumerate(Q_VALUES_BY_RESIDUE):
        columns[column.name] = finite_or_null(rates.by_residue[groups, number])
    return columns


def _psm_table(
    sites: ModificationSites,
    rates: SiteRates,
    psms: Psms,
    of_row: NDArray[np.int64],
    texts: list[str],
    residue: NDArray[np.uint8],
    positions: _Positions,
) -> pa.Table:
    chosen, targets = np.flatnonzero(sites.is_reported & ~sites.is_decoy), np.flatnonzero(~sites.is_decoy)
    run = _numbers(sites.row, sites.name)
    starts, index = np.searchsorted(run[targets], run[chosen]), np.searchsorted(run[targets], run[chosen], side="right")
    offsets, index = ranges(starts, index)
    lists = pa.array(offsets, pa.int32())
    columns = {
        "psm": sites.row[chosen],
        "peptide": _take_texts(texts, of_row[chosen]),
        "charge": psms.charge[sites.row[chosen]],
        **_common(sites, chosen, residue),
        "position": sites.site[chosen],
        "localisation_q_value": finite_or_null(rates.q_value[rates.group[chosen]]),
        "mixed_with": pa.array(sites.mixed_with[chosen], mask=sites.mixed_with[chosen] < 0),
        "possible_positions": pa.ListArray.from_arrays(lists, pa.array(sites.site[targets[index]], pa.int16())),
        "probabilities": pa.ListArray.from_arrays(lists, pa.array(sites.probability[targets[index]])),
        **positions.columns(of_row[chosen], sites.site[chosen], psms.length[sites.row[chosen]]),
    }
    return PSM_SITES.arrow(columns)


def _peptidoform_table(
    sites: ModificationSites,
    rates: SiteRates,
    psms: Psms,
    of_row: NDArray[np.int64],
    texts: list[str],
    residue: NDArray[np.uint8],
    positions: _Positions,
) -> pa.Table:
    reported = sites.is_reported
    n_psms = np.bincount(rates.group[reported], minlength=len(rates.best))
    groups = np.flatnonzero(n_psms)
    best = _best_reported(sites, rates, reported)[groups]
    groups = groups[np.argsort(-np.nan_to_num(sites.score[best]), kind="stable")]
    best = _best_reported(sites, rates, reported)[groups]
    columns = {
        "peptide": _take_texts(texts, of_row[best]),
        **_common(sites, best, residue),
        "position": sites.site[best],
        **_rated(rates, groups),
        "n_psms": n_psms[groups],
        "n_mixed": np.bincount(rates.group[sites.mixed_with >= 0], minlength=len(rates.best))[groups],
        "is_decoy": sites.is_decoy[best],
        **positions.columns(of_row[best], sites.site[best], psms.length[sites.row[best]]),
        "best_psm": sites.row[best],
    }
    return PEPTIDOFORM_SITES.arrow(columns)


def _best_reported(sites: ModificationSites, rates: SiteRates, reported: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return, for each collapsed site, the row with the best score among the rows `reported`, or -1."""
    rows = np.flatnonzero(reported)
    order = rows[np.lexsort((-sites.score[rows], rates.group[rows]))]
    result = np.full(len(rates.best), -1)
    first = is_group_start(rates.group[order])
    result[rates.group[order[first]]] = order[first]
    return result


def _protein_table(
    sites: ModificationSites,
    peptidoform: NDArray[np.int64],
    of_row: NDArray[np.int64],
    texts: list[str],
    residue: NDArray[np.uint8],
    residues: NDArray[np.float64],
    positions: _Positions,
    proteins: ProteinIndex,
    *,
    plus_one: bool,
) -> pa.Table:
    offsets, index = ranges(positions.offsets[of_row], positions.offsets[of_row + 1])
    source = np.repeat(np.arange(len(sites)), np.diff(offsets))
    # A site at a terminus of the peptide is distinct from a site at the terminal residue.
    end = np.where(residue[source] < 2, residue[source].astype(np.int64) + 1, 0)
    at = positions.start[index] + sites.site[source] + np.where(end == 1, 1, 0) - np.where(end == 2, 1, 0)
    every = sites.take(source)
    key = _numbers(positions.protein[index], at, end, every.name, every.is_decoy.astype(np.int64))
    rates = rate_sites(every, key, residue[source], residues, plus_one=plus_one)
    reported = every.is_reported
    rows, mixed = np.flatnonzero(reported), np.flatnonzero(every.mixed_with >= 0)
    n_psms, n_forms = (_count_distinct(rates.group[rows], of[source[rows]], len(rates.best)) for of in (sites.row, peptidoform[of_row]))
    groups = np.flatnonzero(n_psms)  # sort by protein and position
    best = _best_reported(every, rates, reported)[groups]
    columns = {
        "protein": positions.accession.take(pa.array(index[best])),
        "position": at[best],
        **_common(every, best, residue[source]),
        **_rated(rates, groups),
        "n_psms": n_psms[groups],
        "n_mixed": _count_distinct(rates.group[mixed], sites.row[source[mixed]], len(rates.best))[groups],
        "n_peptidoforms": n_forms[groups],
        "is_decoy": every.is_decoy[best],
        "peptide": _take_texts(texts, of_row[source[best]]),
        "sequence_window": _windows(positions.occurrence[index[best]] + at[best] - positions.start[index[best]] - 1, proteins),
        "best_psm": every.row[best],
    }
    return PROTEIN_SITES.arrow(columns)


def _windows(residue: NDArray[np.int64], proteins: ProteinIndex) -> list[str]:
    """Return the residues around each of the positions `residue` (in all residues), as text with ``_`` beyond the ends of the protein."""
    offsets, residues = np.asarray(proteins.proteins.offsets), np.asarray(proteins.proteins.residues)
    protein, around = proteins.protein_of(residue), residue[:, None] + np.arange(-WINDOW_REACH, WINDOW_REACH + 1)
    is_outside = (around < offsets[protein][:, None]) | (around >= offsets[protein + 1][:, None])
    characters = np.where(is_outside, ord("_"), residues[np.clip(around, 0, len(residues) - 1)]).astype(np.uint8)
    return [row.tobytes().decode("ascii") for row in characters]


def _count_distinct(group: NDArray[np.int64], value: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the number of distinct values in each of n groups."""
    order = np.lexsort((value, group))
    return np.bincount(group[order][is_group_start(group[order], value[order])], minlength=n)


def _record(sites: ModificationSites, rates: SiteRates, residues: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Return a record of each modification: numbers of matches and sites, residue counts, and sites accepted at several rates."""
    result = []
    best = rates.best
    name, is_decoy, rated = sites.name[best], sites.is_decoy[best], sites.is_reported[best] & sites.has_alternative[best]
    for number, text in enumerate(sites.names):
        chosen = (name == number) & rated
        carries = sites.name == number
        levels = []
        for level in _LEVELS:
            accepted = chosen & (rates.q_value <= level)
            estimates = {
                f"by_{RESIDUE_NAMES[symbol]}": _highest(rates.by_residue[accepted & ~is_decoy, column])
                for column, symbol in enumerate(DECOY_RESIDUES)
            }
            levels.append({"false_localisation_rate": level, "sites": int(np.count_nonzero(accepted & ~is_decoy)), **estimates})
        result.append(
            {
                "modification": text,
                "psms": len(np.unique(sites.row[carries])),
                "psms_without_alternative": len(np.unique(sites.row[carries & ~sites.has_alternative])),
                "target_residues": int(residues[number, 0]),
                **{f"{RESIDUE_NAMES[symbol]}_residues": int(residues[number, 1 + column]) for column, symbol in enumerate(DECOY_RESIDUES)},
                "accepted": levels,
            }
        )
    return result


def _sentence(entry: Mapping[str, Any]) -> str:
    """Return a sentence with the number of accepted sites of a modification, and the rates estimated from each decoy residue.

    >>> levels = [{"false_localisation_rate": 0.01, "sites": 174, "by_alanine": 0.0161, "by_leucine": None}]
    >>> _sentence({"modification": "Phospho", "psms_without_alternative": 1, "accepted": levels})
    'Phospho: 174 peptide sites at 1 % false localisation rate (by alanine 1.6 %); 1 match has no other possible site'
    """
    accepted = []
    for level in entry["accepted"]:
        rates = {name: level[f"by_{name}"] for name in RESIDUE_NAMES.values()}
        checks = ", ".join(f"by {name} {100 * rate:.1f} %" for name, rate in rates.items() if rate is not None)
        rate = f"{100 * level['false_localisation_rate']:g} % false localisation rate"
        accepted.append(f"{counted(level['sites'], 'peptide site')} at {rate}{f' ({checks})' if checks else ''}")
    n = entry["psms_without_alternative"]
    certain = f"{counted(n, 'match', 'matches')} {'has' if n == 1 else 'have'} no other possible site"
    return f"{entry['modification']}: {', '.join(accepted)}; {certain}"


def _highest(values: NDArray[np.float64]) -> float | None:
    """Return the largest value rounded, or None if there is none."""
    return None if not len(values) or np.isnan(values).any() else round(float(values.max()), 6)
