"""Tables of PSMs, peptides and protein groups of listed matches, with the columns of identification tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges, take_segments
from proteoscope.engine.chemistry.fragments import SERIES_MASS
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.proteins import Proteins
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import IMPORTED_PSMS
from proteoscope.engine.matches.match_lists.error_rates import ErrorRates, ErrorRateSettings, ListParameters, estimate_error_rates
from proteoscope.engine.matches.match_lists.identifications import Identifications
from proteoscope.engine.matches.match_lists.matches import ListedMatches
from proteoscope.engine.matches.protein_groups import ProteinGroups, coverage
from proteoscope.engine.matches.tables import AcceptanceCounts, PeptidePositions, PeptideRows, Tables, modification_columns, protein_table
from proteoscope.engine.results.arrow import finite_or_null, or_null, taken
from proteoscope.engine.spectra.columns import Spectra, SpectrumSeries
from proteoscope.engine.spectra.tables import spectrum_columns
from proteoscope.engine.statistics.target_decoy import best_by_group
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["ListedTables", "RankedMatches", "count_ions", "counted_ions", "listed_tables", "row_order"]

_BATCH = 1 << 14  # matches per batch


def count_ions(
    offsets: NDArray[np.int64],
    masses: NDArray[np.float64],
    residues: NDArray[np.uint8],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    tolerance: Tolerance,
    ion_series: str,
    maximum_charge: int,
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of matched and possible fragment ions of n matches.

    The numbers are the same as in `proteoscope.engine.chemistry.fragments.annotate`.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of each match's residues, followed by r.
    masses : ndarray of float64, shape (r,)
        Residue masses including modifications, also of the termini, Da.
    residues : ndarray of uint8, shape (r,)
        ASCII capitals.
    spectrum : ndarray of int64, shape (n,)
        Index of each match's spectrum in `spectra`.
    charge : ndarray of int64, shape (n,)
        Precursor charges.
    spectra : Spectra
        Spectra of the run.
    tolerance : Tolerance
        Fragment tolerance.
    ion_series : str
        Symbols of ion series, or `proteoscope.engine.chemistry.series_choice.BY_ACTIVATION`.
    maximum_charge : int
        Maximum fragment charge; fragments have at least one charge less than the precursor.
    progress : Progress
        Progress of the run.

    Returns
    -------
    matched, total : ndarray of int64, shape (n,)
    """
    n = len(offsets) - 1
    matched, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
    series = SpectrumSeries.for_spectra(ion_series, spectra.activation)
    order = np.argsort(spectrum, kind="stable")  # sorted, so that neighbouring matches use the same peaks
    progress.stage("Counting fragment ions", n)
    for first in range(0, n, _BATCH):
        rows = order[first : first + _BATCH]
        starts, at = ranges(offsets[rows], offsets[rows + 1])
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(len(rows)), lengths)
        sums = np.cumsum(masses[at])
        before = np.concatenate(([0.0], sums))[starts[:-1]]
        front = sums - before[owner]
        whole = front[starts[1:] - 1]
        is_bond = np.ones(len(at), np.bool_)
        is_bond[starts[1:] - 1] = False
        followed_by_proline = np.append(residues[at][1:] == ord("P"), False) & is_bond
        used, peaks_start = np.unique(spectrum[rows], return_inverse=True)
        low, high = int(spectra.offsets[used[0]]), int(spectra.offsets[used[-1] + 1])
        mz = spectra.mz[low:high]
        span = float(mz.max(initial=0.0)) + 1.0
        peak_of = np.repeat(np.arange(used[-1] - used[0] + 1), np.diff(spectra.offsets[used[0] : used[-1] + 2]))
        keys = peak_of * span + mz
        base = (used[peaks_start] - used[0]).astype(np.float64)
        for symbol in dict.fromkeys("".join(series.symbols)):
            neutral = (front if symbol in "abc" else whole[owner] - front) + SERIES_MASS[symbol]
            is_ion = is_bond & ~followed_by_proline if symbol in "cz" else is_bond
            if not series.is_single:
                is_ion = is_ion & series.have(frozenset(symbol))[spectrum[rows]][owner]
            for z in range(1, maximum_charge + 1):
                chosen = np.flatnonzero(is_ion & (np.maximum(charge[rows] - 1, 1)[owner] >= z))
                ion = neutral[chosen] / z + PROTON_MASS
                least, most = tolerance.bounds(ion)
                shift = base[owner[chosen]] * span
                begin = np.searchsorted(keys, shift + np.clip(least, 0.0, span), side="left")
                end = np.searchsorted(keys, shift + np.clip(most, 0.0, np.nextafter(span, 0.0)), side="right")
                is_found = (end > begin) & (most < span + 1.0)
                matched[rows] += np.bincount(owner[chosen], is_found, len(rows)).astype(np.int64)
                total[rows] += np.bincount(owner[chosen], minlength=len(rows))
        progress.advance(len(rows))
    return matched, total


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankedMatches:
    """Listed matches (n) with ranks and error rates (see `proteoscope.engine.matches.match_lists.error_rates`).

    Attributes
    ----------
    score : ndarray of float64, shape (n,)
        Score that ranks the matches; higher is better, NaN if unknown.
    title : str
        Title of the ranking score.
    rank : ndarray of int64, shape (n,)
        Rank of the match in the spectrum, from 1.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    rates : ErrorRates
        Error rates of the PSMs.
    matched, total : ndarray of int64, shape (n,)
        Numbers of matched and possible fragment ions.
    settings : ErrorRateSettings
        Settings of the tables; `decoys` is ``none`` without decoys and q-values.
    """

    score: Floats
    title: str
    rank: Integers
    is_decoy: NDArray[np.bool_]
    rates: ErrorRates
    matched: Integers
    total: Integers
    settings: ErrorRateSettings


@dataclass(frozen=True)
class ListedTables:
    """Tables of a list of matches.

    `source_of` is the source of the q-values of each table. `certainty` contains the counts with confidence intervals, for tables with
    decoys.
    """

    tables: Tables
    source_of: dict[str, str]
    certainty: dict[str, dict[str, float]]


def counted_ions(matches: ListedMatches, spectra: Spectra, parameters: ListParameters, progress: Progress) -> tuple[Integers, Integers]:
    """Return the numbers of matched and possible fragment ions of each match, each (n,) int64."""
    peptides = matches.peptides
    masses, offsets = take_segments(peptides.residue_masses, peptides.residue_offsets, matches.peptide)
    symbols, _ = take_segments(peptides.residues, peptides.residue_offsets, matches.peptide)
    return count_ions(
        offsets,
        masses,
        symbols,
        matches.spectrum,
        matches.charge,
        spectra,
        parameters.fragment_tolerance,
        parameters.ion_series,
        parameters.maximum_fragment_charge,
        progress,
    )


def row_order(ranked: RankedMatches) -> Integers:
    """Return the index of the match in each row of the table of PSMs, (n,) int64."""
    return np.lexsort((-np.where(np.isnan(ranked.score), -np.inf, ranked.score), ranked.rank))


def listed_tables(
    identifications: Identifications, matches: ListedMatches, ranked: RankedMatches, spectra: Spectra, database: Proteins | None
) -> ListedTables:
    """Return the tables of PSMs, peptides and protein groups."""
    order = row_order(ranked)
    peptide_of_row, n_peptides = _numbered_peptides(matches, ranked)
    peptides = _peptides(identifications, matches, ranked, peptide_of_row, n_peptides)
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    lengths = np.diff(matches.peptides.residue_offsets)[matches.peptide]
    positions = PeptidePositions(matches.protein_offsets, matches.protein, matches.start, lengths)
    psm_table = _psm_table(identifications, matches, ranked, spectra, positions, database, peptides.q_value[peptide_of_row]).take(
        pa.array(order)
    )
    psm_table = psm_table.set_column(psm_table.column_names.index("psm_id"), "psm_id", pa.array(np.arange(len(order))))
    by_first = np.argsort(row_of[peptides.best_row], kind="stable")
    peptide_table = peptides.table(psm_table.take(pa.array(row_of[peptides.best_row]))).take(pa.array(by_first))
    groups, source, proteins = _protein_table(matches, ranked, peptides, positions, database)
    fdr, ratio = ranked.settings.fdr, ranked.settings.decoy_ratio
    counted = {
        "psms": AcceptanceCounts.from_q_values(np.where(ranked.rank == 1, ranked.rates.q_value, np.nan), ranked.is_decoy, fdr, ratio),
        "peptides": AcceptanceCounts.from_q_values(peptides.q_value, peptides.is_decoy, fdr, ratio),
        "proteins": AcceptanceCounts.from_q_values(groups.q_value, groups.is_decoy, fdr),
    }
    sources = dict(zip(Tables.LEVELS, (ranked.rates.q_value_of, peptides.source, source), strict=True))
    has_decoys = {"psms": ranked.is_decoy.any(), "peptides": peptides.is_decoy.any(), "proteins": bool(ranked.is_decoy.any())}
    certainty = {name: count.certainty() for name, count in counted.items() if has_decoys[name]}
    return ListedTables(Tables(psm_table, peptide_table, proteins, counted, peptides.count_sequences(fdr)), sources, certainty)


def _peptides(
    identifications: Identifications, matches: ListedMatches, ranked_matches: RankedMatches, peptide_of_row: Integers, n: int
) -> PeptideRows:
    """Return the table of n peptidoforms: best match, counts and error rates."""
    first = ranked_matches.rank == 1
    # Without a ranking score, the first match of each peptide represents it.
    comparable = np.where(np.isnan(ranked_matches.score), -np.finfo(np.float64).max, ranked_matches.score)
    best_row = best_by_group(peptide_of_row, np.where(first, comparable, -np.inf))
    counts = first & ((ranked_matches.rates.q_value <= ranked_matches.settings.fdr) | (ranked_matches.rates.q_value_of == "none"))
    n_psms = np.bincount(peptide_of_row[counts], minlength=n)
    unknown = np.full(n, np.nan)
    of_file = identifications.scores.get("score_peptide_q_value")
    given = unknown if of_file is None else of_file[matches.row[best_row]]
    score, is_decoy = ranked_matches.score[best_row], ranked_matches.is_decoy[best_row]
    # Matches without a q-value are in groups without error rates, and do not compete.
    competes = first & np.isfinite(ranked_matches.rates.q_value) if ranked_matches.settings.is_by_group else first
    rates = estimate_error_rates(score, is_decoy, competes[best_row], (given, unknown), ranked_matches.settings)
    if rates.q_value_of == "none" and ranked_matches.rates.q_value_of == "file":
        rates = ErrorRates(_minimum_by_group(peptide_of_row, ranked_matches.rates.q_value, n), rates.posterior_error, "best match", "none")
    if ranked_matches.settings.is_by_group:
        # Rates by group are already estimated by distinct peptides (`proteoscope.engine.matches.class_rates`).
        rates = rates._replace(q_value=_minimum_by_group(peptide_of_row, ranked_matches.rates.q_value, n))
    sequences = [matches.peptides.sequences[i] for i in matches.peptide[best_row].tolist()]
    ranked = np.isfinite(score) & first[best_row]
    return PeptideRows(best_row, sequences, n_psms, score, is_decoy, ranked, rates.q_value, rates.posterior_error, rates.q_value_of)


def _minimum_by_group(group: Integers, value: Floats, n: int) -> Floats:
    """Return the minimum value in each of n groups; NaN for groups without a known value."""
    least = np.full(n, np.inf)
    finite = np.isfinite(value)
    np.minimum.at(least, group[finite], value[finite])
    return np.where(np.isinf(least), np.nan, least)


def _numbered_peptides(matches: ListedMatches, ranked: RankedMatches) -> tuple[Integers, int]:
    """Return the index of each match's peptidoform, with different indices for targets and decoys, and the number of peptidoforms.

    Two listed peptides in different notations may be the same peptidoform.
    """
    numbers: dict[str, int] = {}
    of_note = np.array([numbers.setdefault(text, len(numbers)) for text in matches.peptides.texts] or [0], np.int64)
    keys = of_note[matches.peptide] * 2 + ranked.is_decoy
    distinct, inverse = np.unique(keys, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)


def _psm_table(
    identifications: Identifications,
    matches: ListedMatches,
    ranked: RankedMatches,
    spectra: Spectra,
    positions: PeptidePositions,
    database: Proteins | None,
    peptide_q_value: Floats,
) -> pa.Table:
    peptides, at = matches.peptides, pa.array(matches.peptide)
    site, offsets = take_segments(peptides.sites, peptides.offsets, matches.peptide)
    modification, _ = take_segments(peptides.modification, peptides.offsets, matches.peptide)
    row = np.maximum(matches.protein_positions.row[positions.protein], 0)
    missing = ("delta_score", "search_score", "expectation", *(kind.column for kind in SCORE_KINDS))
    columns: dict[str, Any] = {
        **spectrum_columns(spectra, matches.spectrum),
        "charge": matches.charge,
        "observed_mass": matches.observed_mass,
        "calculated_mass": matches.calculated_mass,
        "mass_error_ppm": finite_or_null(matches.mass_error_ppm),
        "isotope_error": matches.isotope_error,
        "peptide": pa.array(peptides.texts, pa.string()).take(at),
        "sequence": pa.array(peptides.sequences, pa.string()).take(at),
        "missed_cleavages": peptides.missed_cleavages[matches.peptide],
        "matched_ions": np.minimum(ranked.matched, 32767),
        "total_ions": np.minimum(ranked.total, 32767),
        **dict.fromkeys(missing, pa.nulls(len(matches), pa.float64())),
        "score": finite_or_null(ranked.score),
        "q_value": finite_or_null(ranked.rates.q_value),
        "posterior_error_probability": finite_or_null(ranked.rates.posterior_error),
        "rank": ranked.rank,
        "is_decoy": ranked.is_decoy,
        "psm_id": np.arange(len(matches)),
        "peptide_q_value": finite_or_null(peptide_q_value),
        **modification_columns(offsets, site, modification, peptides.modifications),
        **positions.columns(taken(matches.protein_positions.accessions, positions.protein), database, row, np.zeros(len(row), np.int64)),
    }
    described = {name: scores for name, scores in identifications.scores.items() if name in IMPORTED_PSMS.by_name}
    stored = tuple(column for name, column in IMPORTED_PSMS.by_name.items() if name in columns or name in described)
    scores = {name: finite_or_null(values[matches.row]) for name, values in described.items()}
    table = replace(IMPORTED_PSMS, stored=stored).arrow(columns | scores)
    for name, values in identifications.scores.items():
        if name not in described:
            table = table.append_column(name, finite_or_null(values[matches.row].astype(np.float32)))
    return table


def _protein_table(
    matches: ListedMatches, ranked: RankedMatches, peptides: PeptideRows, positions: PeptidePositions, database: Proteins | None
) -> tuple[ProteinGroups, str, pa.Table]:
    """Return the protein groups, the source of their q-values (``decoys``, ``best match`` or ``none``), and the table of protein groups.

    Groups are based on the peptides accepted at the false discovery rate, or on all peptides if error rates are unknown.
    """
    is_decoy, accessions = _decoy_proteins(matches, ranked), matches.protein_positions.accessions
    partner = _partners(accessions, is_decoy, ranked.settings.decoy_prefixes)
    groups, evidence = peptides.group_proteins(positions, is_decoy, partner, ranked.settings)
    n, source, q_value = len(groups), "none", np.full(len(groups), np.nan)
    if ranked.is_decoy.any() and peptides.source != "none":
        source, q_value = "decoys", groups.q_value
    elif peptides.source in ("best match", "file"):
        razor, least = groups.razor_group, peptides.q_value[evidence]
        source, q_value = "best match", _minimum_by_group(razor[razor >= 0], least[razor >= 0], n)
    is_scored = bool(ranked.title) & (np.abs(groups.score) < 1e300)
    groups = replace(groups, q_value=q_value, score=np.where(is_scored, groups.score, np.nan))
    placed, row = positions.take(peptides.best_row[evidence]), matches.protein_positions.row[groups.members[groups.member_offsets[:-1]]]
    described: dict[str, Any] = {
        "description": [None] * n,
        "coverage": pa.nulls(n, pa.float64()),
        "length": np.zeros(n, np.int64),
        "sequence": [""] * n,
    }
    if database is not None:
        is_placed, lengths = placed.start >= 0, np.diff(database.offsets)
        of_placed = (matches.protein_positions.row[placed.protein[is_placed]], placed.start[is_placed], placed.stop[is_placed])
        described = {
            "description": [database.description(i) if i >= 0 else None for i in row.tolist()],
            "coverage": or_null(np.append(coverage(lengths, *of_placed), np.nan)[row]),
            "length": np.append(lengths, 0)[row],
            "sequence": [database.sequence(i) if i >= 0 else "" for i in row.tolist()],
        }
    return groups, source, protein_table(groups, taken(accessions, groups.members), described, np.full(n, np.nan))


def _decoy_proteins(matches: ListedMatches, ranked: RankedMatches) -> NDArray[np.bool_]:
    """Return True for proteins that have only decoy matches, (proteins,)."""
    of_match = np.repeat(ranked.is_decoy, np.diff(matches.protein_offsets))
    n = len(matches.protein_positions.accessions)
    targets = np.bincount(matches.protein[~of_match], minlength=n)
    decoys = np.bincount(matches.protein[of_match], minlength=n)
    is_decoy: NDArray[np.bool_] = (targets == 0) & (decoys > 0)
    return is_decoy


def _partners(accessions: tuple[str, ...], is_decoy: NDArray[np.bool_], prefixes: tuple[str, ...]) -> Integers:
    """Return the decoy of each target protein and the target of each decoy, (proteins,); -1 if there is none.

    The accession of a decoy is a prefix followed by the accession of its target.
    """
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
