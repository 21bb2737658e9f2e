"""The tables of a list of matches: PSMs, peptides and protein groups as an identification has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import IMPORTED_PSMS, KNOWN_PLACES, PEPTIDES, PROTEINS
from proteoscope.engine.matches.listed.identifications import Identifications
from proteoscope.engine.matches.listed.ions import count_ions
from proteoscope.engine.matches.listed.judging import ErrorRates, JudgingSettings, ListParameters, error_rates_of
from proteoscope.engine.matches.listed.matches import ListedMatches
from proteoscope.engine.matches.protein_groups import ProteinGroups, coverage, infer_protein_groups
from proteoscope.engine.matches.tables import Counted, Tables, numbered
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.statistics.target_decoy import best_by_group, expected_decoys
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["JudgedMatches", "ListedTables", "counted_ions", "listed_tables"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgedMatches:
    """n matches with what decides about them; see `proteoscope.engine.matches.listed.judging`.

    Attributes
    ----------
    score, title : that decides, the higher the better, NaN where a match has none. rank : (n,) int64. is_decoy : (n,) bool.
    rates : of PSMs. matched, total : (n,) int64, fragment ions found, and those that there can be.
    settings : of the tables; without decoys and q-values its decoys are ``none``.
    """

    score: Floats
    title: str
    rank: Integers
    is_decoy: NDArray[np.bool_]
    rates: ErrorRates
    matched: Integers
    total: Integers
    settings: JudgingSettings


@dataclass(frozen=True)
class ListedTables:
    """The tables, whose the q-values of each level are, and levels whose decoys say how sure their counts are."""

    tables: Tables
    source_of: dict[str, str]
    certainty: dict[str, dict[str, float]]


def counted_ions(matches: ListedMatches, spectra: Spectra, parameters: ListParameters, progress: Progress) -> tuple[Integers, Integers]:
    """Fragment ions of each match that are in its spectrum, and those that there can be; each (n,) int64."""
    peptides = matches.peptides
    masses, offsets = take_runs(peptides.residue_masses, peptides.residue_offsets, matches.peptide)
    letters, _ = take_runs(peptides.letters, peptides.residue_offsets, matches.peptide)
    return count_ions(
        offsets,
        masses,
        letters,
        matches.spectrum,
        matches.charge,
        spectra,
        parameters.fragment_tolerance,
        parameters.ion_series,
        parameters.maximum_fragment_charge,
        progress,
    )


def listed_tables(
    found: Identifications, matches: ListedMatches, judged: JudgedMatches, spectra: Spectra, database: Proteins | None
) -> ListedTables:
    """The tables of PSMs, peptides and protein groups."""
    order = np.lexsort((-np.where(np.isnan(judged.score), -np.inf, judged.score), judged.rank))
    peptide_of_row, n_peptides = _numbered_peptides(matches, judged)
    peptides = _Peptides.of(found, matches, judged, peptide_of_row, n_peptides)
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    psm_table = _psm_table(found, matches, judged, spectra, database, peptides.rates.q_value[peptide_of_row]).take(pa.array(order))

    psm_table = psm_table.set_column(psm_table.column_names.index("psm_id"), "psm_id", pa.array(np.arange(len(order))))
    by_first = np.argsort(row_of[peptides.best_row], kind="stable")
    peptide_table = _peptide_table(peptides, psm_table, row_of).take(pa.array(by_first))
    groups, rates, protein_table = _protein_table(matches, judged, peptides, database)
    fdr = judged.settings.fdr
    counted = {
        "psms": Counted.of(np.where(judged.rank == 1, judged.rates.q_value, np.nan), judged.is_decoy, fdr, judged.settings.decoy_ratio),
        "peptides": Counted.of(peptides.rates.q_value, peptides.is_decoy, fdr, judged.settings.decoy_ratio),
        "proteins": Counted.of(rates.q_value, groups.is_decoy, fdr),
    }
    accepted = (peptides.rates.q_value <= fdr) & ~peptides.is_decoy
    sequences = {matches.peptides.sequences[i] for i in matches.peptide[peptides.best_row[accepted]].tolist()}
    sources: dict[str, str] = {
        "psms": judged.rates.q_value_of,
        "peptides": peptides.rates.q_value_of,
        "proteins": rates.q_value_of,
    }
    has_decoys = {"psms": judged.is_decoy.any(), "peptides": peptides.is_decoy.any(), "proteins": bool(judged.is_decoy.any())}
    certainty = {name: count.certainty() for name, count in counted.items() if has_decoys[name]}
    return ListedTables(Tables(psm_table, peptide_table, protein_table, counted, len(sequences)), sources, certainty)


def _known(values: Floats) -> pa.Array:
    """Numbers, missing where they are none."""
    return pa.array(values, mask=~np.isfinite(values))


@dataclass(frozen=True)
class _Peptides:
    """p distinct peptidoforms: best row, number of accepted PSMs, and statistics by their best PSM."""

    best_row: Integers
    n_psms: Integers
    score: Floats
    is_decoy: NDArray[np.bool_]
    rates: ErrorRates

    @classmethod
    def of(cls, found: Identifications, matches: ListedMatches, judged: JudgedMatches, peptide_of_row: Integers, n: int) -> _Peptides:
        first = judged.rank == 1
        # Where nothing ranks matches, the first of each peptide stands for it.
        comparable = np.where(np.isnan(judged.score), -np.finfo(np.float64).max, judged.score)
        best_row = best_by_group(peptide_of_row, np.where(first, comparable, -np.inf))
        counts = first & ((judged.rates.q_value <= judged.settings.fdr) | (judged.rates.q_value_of == "none"))
        n_psms = np.bincount(peptide_of_row[counts], minlength=n)
        unknown = np.full(n, np.nan)
        of_file = found.scores.get("score_peptide_q_value")
        given = unknown if of_file is None else of_file[matches.row[best_row]]
        score, is_decoy = judged.score[best_row], judged.is_decoy[best_row]
        # What was judged in groups, but not a match itself, has no decoys.
        competes = first & np.isfinite(judged.rates.q_value) if judged.settings.is_by_group else first
        rates = error_rates_of(score, is_decoy, competes[best_row], (given, unknown), judged.settings)
        if rates.q_value_of == "none" and judged.rates.q_value_of == "file":
            rates = ErrorRates(_least(peptide_of_row, judged.rates.q_value, n), rates.posterior_error, "best match", "none")
        if judged.settings.is_by_group:
            # Such a rate is of distinct peptides already (`proteoscope.engine.matches.group_rates`).
            rates = rates._replace(q_value=_least(peptide_of_row, judged.rates.q_value, n))
        return cls(best_row, n_psms, score, is_decoy, rates)


def _least(group: Integers, value: Floats, n: int) -> Floats:
    """Least value of each group, NaN where none is known."""
    least = np.full(n, np.inf)
    known = np.isfinite(value)
    np.minimum.at(least, group[known], value[known])
    return np.where(np.isinf(least), np.nan, least)


def _numbered_peptides(matches: ListedMatches, judged: JudgedMatches) -> tuple[Integers, int]:
    """A number for each distinct peptidoform, targets and decoys apart, and how many there are. Two notes of a file may mean one form."""
    numbers: dict[str, int] = {}
    of_note = np.array([numbers.setdefault(text, len(numbers)) for text in matches.peptides.texts] or [0], np.int64)
    keys = of_note[matches.peptide] * 2 + judged.is_decoy
    distinct, inverse = np.unique(keys, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)


def _psm_table(
    found: Identifications,
    matches: ListedMatches,
    judged: JudgedMatches,
    spectra: Spectra,
    database: Proteins | None,
    peptide_q_value: Floats,
) -> pa.Table:
    peptides, of, n = matches.peptides, matches.spectrum, len(matches)
    scan, retention_time = spectra.scan[of], spectra.retention_time[of]
    which, at = pa.array(peptides.modification), pa.array(matches.peptide)
    offsets = pa.array(peptides.offsets.astype(np.int32))
    named = {
        "modification_positions": pa.array(peptides.sites.astype(np.int16)),
        "modification_names": pa.array([one.name for one in peptides.modifications], pa.string()).take(which),
        "modification_masses": pa.array([one.mass for one in peptides.modifications], pa.float64()).take(which),
        "modification_unimod": pa.array([one.unimod_id for one in peptides.modifications], pa.int32()).take(which),
    }
    lists = pa.array(matches.protein_offsets.astype(np.int32))
    accessions = pa.array(matches.places.accessions, pa.string()).take(pa.array(matches.protein))
    before, after = _flanks(matches, database)
    missing = pa.nulls(n, pa.float64())
    columns: dict[str, Any] = {
        "spectrum_file": pa.array(spectra.file_names, pa.string()).take(pa.array(spectra.file[of])),
        "spectrum_id": pa.array(spectra.identifier, pa.string()).take(pa.array(of)),
        "scan": pa.array(scan, mask=scan < 0),
        "retention_time": _known(retention_time),
        "precursor_mz": spectra.precursor_mz[of],
        "charge": matches.charge.astype(np.int8),
        "observed_mass": matches.observed_mass,
        "calculated_mass": matches.calculated_mass,
        "mass_error_ppm": _known(matches.mass_error_ppm),
        "isotope_error": matches.isotope_error.astype(np.int8),
        "peptide": pa.array(peptides.texts, pa.string()).take(at),
        "sequence": pa.array(peptides.sequences, pa.string()).take(at),
        "proteins": pa.ListArray.from_arrays(lists, accessions),
        "missed_cleavages": peptides.missed_cleavages[matches.peptide].astype(np.int8),
        "matched_ions": np.minimum(judged.matched, 32767).astype(np.int16),
        "total_ions": np.minimum(judged.total, 32767).astype(np.int16),
        **dict.fromkeys(("delta_score", "search_score", "expectation", *(kind.column for kind in SCORE_KINDS)), missing),
        "score": _known(judged.score),
        "q_value": _known(judged.rates.q_value),
        "posterior_error_probability": _known(judged.rates.posterior_error),
        "rank": judged.rank.astype(np.int8),
        "is_decoy": judged.is_decoy,
        "psm_id": np.arange(n),
        "spectrum_index": spectra.index[of],
        "spectrum": of,
        "peptide_q_value": _known(peptide_q_value),
        **{name: pa.ListArray.from_arrays(offsets, items).take(at) for name, items in named.items()},
        "protein_starts": pa.ListArray.from_arrays(lists, pa.array(matches.start + 1, mask=matches.start < 0).cast(pa.int32())),
        "residues_before": pa.ListArray.from_arrays(lists, before),
        "residues_after": pa.ListArray.from_arrays(lists, after),
    }
    known = {name: scores for name, scores in found.scores.items() if name in IMPORTED_PSMS.by_name}
    described = tuple(one for name, one in IMPORTED_PSMS.by_name.items() if name in columns or name in known)
    table = replace(IMPORTED_PSMS, stored=described).arrow(columns | {name: _known(scores[matches.row]) for name, scores in known.items()})
    for name, scores in found.scores.items():
        if name not in known:
            table = table.append_column(name, _known(scores[matches.row].astype(np.float32)))
    return table


def _flanks(matches: ListedMatches, database: Proteins | None) -> tuple[pa.Array, pa.Array]:
    """The residues before and behind each peptide in each of its proteins, "-" at the ends of a protein, missing where it is not known."""
    n = len(matches.protein)
    if database is None:
        return pa.nulls(n, pa.string()), pa.nulls(n, pa.string())
    lengths = np.repeat(np.diff(matches.peptides.residue_offsets)[matches.peptide], np.diff(matches.protein_offsets))
    protein = np.maximum(matches.places.row[matches.protein], 0)
    first, last = database.offsets[protein], database.offsets[protein + 1]
    letters = pa.array([chr(code) for code in range(128)], pa.string())
    found = []
    for position in (first + matches.start - 1, first + matches.start + lengths):
        inside = (position >= first) & (position < last)
        residue = np.where(inside, database.residues[np.clip(position, 0, max(0, len(database.residues) - 1))], ord("-"))
        found.append(letters.take(pa.array(residue.astype(np.int64), mask=matches.start < 0)))
    return found[0], found[1]


def _peptide_table(peptides: _Peptides, psm_table: pa.Table, row_of: Integers) -> pa.Table:
    best = psm_table.take(pa.array(row_of[peptides.best_row]))
    return PEPTIDES.arrow(
        {
            **{name: best[name] for name in ("peptide", "sequence", "proteins", "is_decoy", "calculated_mass")},
            "n_psms": peptides.n_psms.astype(np.int32),
            "best_score": pa.chunked_array([_known(peptides.score)]),
            "q_value": _known(peptides.rates.q_value),
            "posterior_error_probability": _known(peptides.rates.posterior_error),
            "best_psm": best["psm_id"],
        },
        without=(KNOWN_PLACES.name,),
    )


def _protein_table(
    matches: ListedMatches, judged: JudgedMatches, peptides: _Peptides, database: Proteins | None
) -> tuple[ProteinGroups, ErrorRates, pa.Table]:
    """Groups from the peptides at the false discovery rate (from all, where nobody tells how sure they are), by their best forms."""
    settings, places = judged.settings, matches.places
    is_unknown = peptides.rates.q_value_of == "none"
    accepted = np.flatnonzero((peptides.rates.q_value <= settings.fdr) | is_unknown)
    score = np.where(np.isnan(peptides.score), -np.finfo(np.float64).max if not is_unknown else 0.0, peptides.score)
    accepted = accepted[np.argsort(-score[accepted], kind="stable")]
    rows = peptides.best_row[accepted]
    sequence = numbered([matches.peptides.sequences[i] for i in matches.peptide[rows].tolist()], peptides.is_decoy[accepted])
    first = np.unique(sequence, return_index=True)[1]
    n_psms = np.bincount(sequence, peptides.n_psms[accepted], len(first)).astype(np.int64)
    evidence = rows[first]
    protein, offsets = take_runs(matches.protein, matches.protein_offsets, evidence)
    start, _ = take_runs(matches.start, matches.protein_offsets, evidence)
    is_decoy_protein = _decoy_proteins(matches, judged)
    evidence_score, evidence_decoy = score[accepted][first], peptides.is_decoy[accepted][first]
    competes = np.isfinite(peptides.score) & (judged.rank[peptides.best_row] == 1)

    def expected_at(at: Floats) -> Floats:
        """Decoys of peptides, of which few reach as far as groups do: a false group rests on a false peptide."""
        return expected_decoys(peptides.score[competes], peptides.is_decoy[competes], at)

    groups = infer_protein_groups(
        offsets,
        protein,
        evidence_score,
        evidence_decoy,
        n_psms,
        is_decoy_protein,
        decoy_partner=_partners(places.accessions, is_decoy_protein, settings.decoy_prefixes),
        plus_one=settings.plus_one,
        expected_at=expected_at,
    )
    unknown = np.full(len(groups), np.nan)
    rates = ErrorRates(unknown, unknown, "none", "none")
    if judged.is_decoy.any() and not is_unknown:
        rates = ErrorRates(groups.q_value, unknown, "decoys", "none")
    elif peptides.rates.q_value_of in ("best match", "file"):
        razor, least = groups.razor_group, peptides.rates.q_value[accepted][first]
        rates = ErrorRates(_least(razor[razor >= 0], least[razor >= 0], len(groups)), unknown, "best match", "none")
    row = places.row[groups.members[groups.member_offsets[:-1]]] if len(groups) else np.zeros(0, np.int64)
    covered, length = np.full(len(groups), np.nan), np.zeros(len(groups), np.int64)
    texts: list[str | None] = [None] * len(groups)
    residues = [""] * len(groups)
    if database is not None:
        lengths = np.repeat(np.diff(matches.peptides.residue_offsets)[matches.peptide[evidence]], np.diff(offsets))
        placed = start >= 0
        shares = coverage(np.diff(database.offsets), places.row[protein[placed]], start[placed], (start + lengths)[placed])
        known = row >= 0
        covered[known], length[known] = shares[row[known]], np.diff(database.offsets)[row[known]]
        texts = [database.description(i) if i >= 0 else None for i in row.tolist()]
        residues = [database.sequence(i) if i >= 0 else "" for i in row.tolist()]
    members = pa.array(places.accessions, pa.string()).take(pa.array(groups.members))
    accessions = pa.ListArray.from_arrays(pa.array(groups.member_offsets.astype(np.int32)), members)
    table = PROTEINS.arrow(
        {
            "group": pa.array([";".join(some) for some in accessions.to_pylist()], pa.string()),
            "accessions": accessions,
            "description": pa.array(texts, pa.string()),
            "n_peptides": groups.n_peptides.astype(np.int32),
            "n_unique_peptides": groups.n_unique_peptides.astype(np.int32),
            "n_psms": groups.n_psms.astype(np.int32),
            "coverage": _known(covered),
            "score": pa.array(groups.score, mask=np.full(len(groups), not judged.title) | ~(np.abs(groups.score) < 1e300)),
            "q_value": _known(rates.q_value),
            "is_decoy": groups.is_decoy,
            "razor_peptides": groups.n_razor_peptides.astype(np.int32),
            "posterior_error_probability": _known(rates.posterior_error),
            "length": length.astype(np.int32),
            "sequence": pa.array(residues, pa.string()),
        }
    )
    return groups, rates, table


def _decoy_proteins(matches: ListedMatches, judged: JudgedMatches) -> NDArray[np.bool_]:
    """(proteins,) whether only decoys are of them."""
    of_match = np.repeat(judged.is_decoy, np.diff(matches.protein_offsets))
    n = len(matches.places.accessions)
    targets = np.bincount(matches.protein[~of_match], minlength=n)
    decoys = np.bincount(matches.protein[of_match], minlength=n)
    return (targets == 0) & (decoys > 0)


def _partners(accessions: tuple[str, ...], is_decoy: NDArray[np.bool_], prefixes: tuple[str, ...]) -> Integers:
    """(proteins,) the decoy whose accession is that of a target behind a prefix, and its target; -1 where there is none."""
    partner = np.full(len(accessions), -1, np.int64)
    numbers = {accession.lower(): number for number, accession in enumerate(accessions) if not is_decoy[number]}
    for decoy in np.flatnonzero(is_decoy).tolist():
        name = accessions[decoy].lower()
        for prefix in prefixes:
            target = numbers.get(name.removeprefix(prefix.lower()), -1) if name.startswith(prefix.lower()) else -1
            if target >= 0:
                partner[decoy], partner[target] = target, decoy
                break
    return partner
