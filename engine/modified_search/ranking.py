"""Ranking of the candidates of each spectrum, with and without a mass shift, in one list, and all scores of the best candidates.

Scores with and without a shift are not comparable: a few hundred peptides have the precursor mass, while hundreds of thousands differ from
it, and each of these has as many sites as residues. They become comparable by the number of candidates expected to score as well by chance.
The scored candidates are the upper tail of all candidates, selected by matching masses. The lower half of their scores is incomplete, the
upper half is nearly complete. In the upper half, scores of false candidates decay exponentially. Of K candidates with median score m, the
number that reach s is

    E(s) = K / 2 exp(-(s - m) / theta),    theta = (score that an eighth of them reach - m) / ln 4

The best candidate is excluded from the fit, and theta is shrunk towards the theta of all spectra if there are few candidates. Finally, E is
multiplied by the fraction of candidates at least as close to the precursor mass: among peptides that explain a spectrum equally well, the
closest in mass is preferred, and most of all a peptide with exactly the precursor mass.

This reasoning applies to chance matches. Among related sequences, which explain the same ions, the sequence with the better score is
correct more often. Proximity therefore adds at most `_MAXIMUM_NEARNESS` to the score that ranks candidates. A peptide of the precursor mass
may be listed twice, with an isotope error and with a small shift such as deamidation. The meaning of shifts is considered later, when error
rates are estimated, and only for the best candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, positions_in_groups
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.matches.neutral_losses import PHOSPHATE_OR_SULFATE, precursor_losses
from proteoscope.engine.matches.scoring import Matches, joined_matches
from proteoscope.engine.modified_search.candidate_search import Candidates
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.cpu.shift_placement import PLACES, PlacedArrays, ShiftSettings, ShiftsToPlace, place_shifts, score_places
from proteoscope.kernels.device import Partition, equal_partitions, even_partitions, stop_flag
from proteoscope.kernels.layouts import MatchArrays, PeptideArrays, ScoringSettings

__all__ = ["FORMS_RATED", "ShiftedMatches", "joined_shifts", "place_candidates", "rank_candidates"]

FORMS_RATED = 8
"""Minimum number of forms per spectrum for which all scores are computed, even if fewer are reported."""

_NONE = 255
_SHIFTS_AT_ONCE = 254  # modification indices are bytes
_PRIOR = 10.0  # weight of the theta of all spectra, in candidates
_MINIMUM_THETA = 0.5
_MAXIMUM_NEARNESS = 6.0
_FEWEST = 8  # theta is estimated only if there are more candidates
_QUERIES_AT_ONCE = 512
_NEAR_PHOSPHATE = 0.1  # Da
_LN_10 = float(np.log(10.0))


@dataclass(frozen=True)
class ShiftedMatches:
    """Matches of peptides, n of them, each with or without a mass shift.

    Attributes
    ----------
    matches : Matches
        `score` is the hyperscore (or the number of matching masses), `expectation` is log10 of E in the module description, and
        `delta_score` is the difference in `key` to the next candidate with another sequence. `n_candidates` is the number of candidates of
        the precursor mass, or of all candidates if the match is shifted. The modification sites are empty.
    key : ndarray of float64, shape (n,)
        Value by which matches are ranked, higher is better.
    theta : ndarray of float64, shape (n,)
        Decay constant of chance scores (see the module description).
    nearness : ndarray of float64, shape (n,)
        log10 of the fraction of candidates at least as close to the precursor mass; included in `expectation` and `key`.
    shift : ndarray of float64, shape (n,)
        Precursor mass minus peptide mass and isotope error in dalton; 0 without a shift.
    is_shifted : ndarray of bool, shape (n,)
        True for matches with a mass shift.
    loss : ndarray of int64, shape (n,)
        Neutral loss of the precursor (`proteoscope.engine.matches.neutral_losses`), for shifts that may be phosphate or sulfate.
    place_score, place_probability : ndarray of float32, shape (n, 64)
        Score of the match with the shift at each residue, and probability that the shift is there; undefined without a shift.
    """

    matches: Matches
    key: NDArray[np.float64]
    theta: NDArray[np.float64]
    nearness: NDArray[np.float64]
    shift: NDArray[np.float64]
    is_shifted: NDArray[np.bool_]
    loss: NDArray[np.int64]
    place_score: NDArray[np.float32]
    place_probability: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.matches)

    def take(self, rows: NDArray[np.int64]) -> ShiftedMatches:
        """Return the rows with the given indices, in this order."""
        return ShiftedMatches(self.matches.take(rows), *(getattr(self, name)[rows] for name in _COLUMNS))


_COLUMNS = [field.name for field in fields(ShiftedMatches)[1:]]


def joined_shifts(parts: Sequence[ShiftedMatches]) -> ShiftedMatches:
    """Return the matches of several sets of spectra together, ordered by spectrum and rank."""
    if len(parts) == 1:
        return parts[0]
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    every = ShiftedMatches(joined_matches([part.matches for part in parts]), *columns)
    return every.take(np.argsort(every.matches.spectrum, kind="stable"))


def place_candidates(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    candidates: Candidates,
    settings: ScoringSettings,
    shifts: ShiftSettings,
    resources: Resources,
) -> PlacedArrays:
    """Return two scores of every candidate: with its mass shift at the best residue, and, if it has the precursor mass, without a shift."""
    shape, stop = candidates.peptide.shape, stop_flag()
    types = (np.float32, np.int8, np.float32, np.int8, np.uint8)
    placed = PlacedArrays(*(np.empty(shape, kind) for kind in types))
    resources.progress.stage("Placing mass shifts", shape[0])

    def place(part: Partition) -> None:
        place_shifts(index.arrays, index.queries, peptides, candidates.peptide, settings, shifts, part.first, part.last, placed, stop)

    parts = equal_partitions((candidates.peptide >= 0).sum(axis=1) + 1, resources.threads, maximum_cost=20_000)
    run_on_threads(place, parts, resources.threads, resources.progress, steps=lambda part: part.last - part.first, stop=stop)
    return placed


class _Peptidoforms(NamedTuple):
    """Best forms of candidates, ordered by spectrum and rank; for the columns see `Matches` and `ShiftedMatches`.

    The matrix of all forms has a row for each query. Its columns are the candidates without a shift, followed by the candidates with a
    shift. `query` and `column` are the indices of each form in this matrix.
    """

    query: NDArray[np.int64]
    column: NDArray[np.int64]
    delta: NDArray[np.float64]
    rank: NDArray[np.int64]
    key: NDArray[np.float64]
    theta: NDArray[np.float64]
    nearness: NDArray[np.float64]
    expectation: NDArray[np.float64]
    n_candidates: NDArray[np.int64]


def rank_candidates(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    candidates: Candidates,
    placed: PlacedArrays,
    settings: ScoringSettings,
    shifts: ShiftSettings,
    top: int,
    *,
    by_count: bool,
    resources: Resources,
) -> ShiftedMatches:
    """Return the best `top` forms of each spectrum with all scores. A form is a candidate with its mass shift, or without a shift.

    With `by_count`, only the number of matching masses ranks the forms, as in Carroll's thesis, and a candidate of the precursor mass has
    only the form without a shift.
    """
    theta = _usual_theta(placed)

    def ranked_forms(part: slice) -> _Peptidoforms:
        return _ranked_forms(index, peptides, candidates, placed, settings, shifts, top, theta, part, by_count=by_count)

    parts = run_on_threads(
        ranked_forms, _parts_of_spectra(index.queries.spectrum), resources.threads, resources.progress, steps=lambda _: 0
    )
    ranked = _Peptidoforms(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    column = ranked.column % candidates.peptide.shape[1]
    is_shifted, rows = ranked.column != column, (ranked.query, column)
    isotope = np.where(is_shifted, placed.shifted_isotope[rows], placed.plain_isotope[rows]).astype(np.int64)
    peptide, mass = candidates.peptide[rows], index.queries.mass[ranked.query]
    shift = np.where(is_shifted, mass - peptides.mass[peptide] - isotope * settings.isotope_spacing, 0.0)
    spectrum, charge = index.queries.spectrum[ranked.query], index.queries.charge[ranked.query]
    position = np.where(is_shifted, placed.place[rows], _NONE).astype(np.uint8)
    forms = ShiftsToPlace(spectrum, charge, peptide, shift)
    features = _score_placed(index, forms, peptides, position, settings, resources)
    empty = np.full((len(peptide), 1), _NONE, np.uint8)
    score = candidates.matches[rows].astype(np.float64) if by_count else features["hyperscore"]
    matches = Matches(
        spectrum,
        charge,
        ranked.rank,
        mass,
        peptide,
        isotope,
        empty,
        empty,
        score,
        ranked.delta,
        ranked.n_candidates,
        ranked.expectation,
        features,
    )
    return ShiftedMatches(
        matches,
        ranked.key,
        ranked.theta,
        ranked.nearness,
        shift,
        is_shifted,
        _find_losses(index, matches, shift, is_shifted, peptides, position, settings),
        *_places(index, forms, peptides, is_shifted, settings, resources),
    )


def _parts_of_spectra(spectrum_of_query: NDArray[np.int64]) -> list[slice]:
    """Divide the queries into consecutive slices, so that the matrices of forms are small; queries of one spectrum are in one slice."""
    n = len(spectrum_of_query)
    begins = np.flatnonzero(is_group_start(spectrum_of_query))
    wanted = np.searchsorted(begins, np.arange(0, n, _QUERIES_AT_ONCE))
    edges = [*np.unique(begins[np.minimum(wanted, len(begins) - 1)]).tolist(), n]
    return [slice(*edge) for edge in pairwise(edges)]


def _select_rows(placed: PlacedArrays, rows: slice) -> PlacedArrays:
    return PlacedArrays._make(column[rows] for column in placed)


def _ranked_forms(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    candidates: Candidates,
    placed: PlacedArrays,
    settings: ScoringSettings,
    shifts: ShiftSettings,
    top: int,
    usual: float,
    part: slice,
    *,
    by_count: bool,
) -> _Peptidoforms:
    """Return the best forms of the spectra whose queries are in the slice `part`; the column `query` refers to all queries."""
    mass, peptide, matches = index.queries.mass[part], candidates.peptide[part], candidates.matches[part]
    placed = _select_rows(placed, part)
    n_plain, n_all = _candidate_counts(mass, peptides, settings, shifts)
    tail, near = _Tail.fit(placed, usual), _count_at_least_as_close(mass, peptides, peptide, n_plain, n_all)
    is_plain = np.isfinite(placed.plain)
    fraction = np.broadcast_to(np.log10((n_plain + 1.0) / (n_all + 1.0))[:, None], is_plain.shape)
    share_of_shift = np.where(is_plain, fraction, np.log10((near + 1.0) / (n_all[:, None] + 1.0)))
    # A peptide with the precursor mass has as many forms with a small shift, such as deamidation, as it has residues.
    positions = np.where(is_plain, np.log10(peptides.length[peptide]), 0.0)
    if by_count:
        counts = matches.astype(np.float64)
        has_form = is_plain, np.isfinite(placed.shifted) & ~is_plain
        keys = [np.where(is_there, counts, -np.inf) for is_there in has_form]
    else:
        keys = [tail.key(placed.plain, fraction), tail.key(placed.shifted, share_of_shift) - tail.score_of(positions)]
    query, column, *ranked = _ranked(index.queries.spectrum[part], np.tile(peptide, 2), np.hstack(keys), top)
    expectation = np.hstack((tail.expectation(placed.plain) + fraction, tail.expectation(placed.shifted) + share_of_shift + positions))
    n_candidates = np.where(column < peptide.shape[1], n_plain[query], n_all[query])
    nearness = np.hstack((fraction, share_of_shift))[query, column]
    more = tail.theta[query], nearness, expectation[query, column], n_candidates
    return _Peptidoforms._make((query + part.start, column, *ranked, *more))


def _candidate_counts(
    mass: NDArray[np.float64], peptides: PeptideArrays, settings: ScoringSettings, shifts: ShiftSettings
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of peptides with each precursor mass (with any isotope error), and of peptides in its range of mass shifts."""
    plain = np.zeros(len(mass), np.int64)
    for isotope, least in zip(settings.isotope_errors.tolist(), settings.isotope_minimum_mass.tolist(), strict=True):
        centre = mass - isotope * settings.isotope_spacing
        width = settings.precursor_absolute + settings.precursor_relative * mass
        ends = (np.searchsorted(peptides.mass, centre + sign * width) for sign in (1, -1))
        plain += np.where(mass >= least, next(ends) - next(ends), 0)
    every = np.searchsorted(peptides.mass, mass - shifts.lowest) - np.searchsorted(peptides.mass, mass - shifts.highest)
    return plain, np.maximum(every, plain)


def _count_at_least_as_close(
    masses: NDArray[np.float64], peptides: PeptideArrays, candidate: NDArray[np.int64], n_plain: NDArray[np.int64], n_all: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of peptides that are at least as close to the precursor mass as each candidate, (q, k).

    The number is at least `n_plain` and at most `n_all`, see `_candidate_counts`.
    """
    mass = masses[:, None]
    distance: NDArray[np.float64] = np.abs(mass - peptides.mass[candidate])
    above, below = np.searchsorted(peptides.mass, mass + distance, side="right"), np.searchsorted(peptides.mass, mass - distance)
    counts: NDArray[np.int64] = np.clip(above - below, n_plain[:, None], n_all[:, None])
    return counts


def _score_statistics(placed: PlacedArrays) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return arrays with a value for each query: number of scores, median score, and theta (see module; 0 if there are few scores)."""
    score = np.where(np.isfinite(placed.shifted), placed.shifted, placed.plain)
    is_known = np.isfinite(score)
    count, rows = is_known.sum(axis=1), np.arange(len(score))
    falling = -np.sort(np.where(is_known, -score, np.inf), axis=1).astype(np.float64)  # missing scores are last
    middle, eighth = (1 + np.maximum(count - 1, 0) // part for part in (2, 8))
    last = np.maximum(count - 1, 0)
    median = np.where(count > 0, falling[rows, np.minimum(middle, last)], 0.0)
    return count, median, np.where(count > _FEWEST, falling[rows, np.minimum(eighth, last)] - median, 0.0) / np.log(4.0)


def _usual_theta(placed: PlacedArrays) -> float:
    """Return the median decay constant theta (see module) of all queries with enough candidates; 1 if there are none."""
    parts = [
        _score_statistics(_select_rows(placed, slice(first, first + _QUERIES_AT_ONCE)))
        for first in range(0, len(placed.plain), _QUERIES_AT_ONCE)
    ]
    theta = np.concatenate([np.empty(0), *(theta[count > _FEWEST] for count, _, theta in parts)])
    return float(np.median(theta)) if len(theta) else 1.0


def nearness_bonus(fraction: NDArray[np.float64], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score bonus of a candidate for its proximity to the precursor mass.

    `fraction` is log10 of the fraction of candidates that are at least as close.
    """
    bonus: NDArray[np.float64] = np.minimum(-fraction * (theta * _LN_10), _MAXIMUM_NEARNESS)
    return bonus


class _Tail(NamedTuple):
    """Exponential tail of the candidate scores of each query, as arrays: half the number of scores, the median, and theta (see module)."""

    number: NDArray[np.float64]
    median: NDArray[np.float64]
    theta: NDArray[np.float64]

    @classmethod
    def fit(cls, placed: PlacedArrays, usual: float) -> _Tail:
        """Return the tail fitted to scores; theta is shrunk towards `usual`, the value of all queries."""
        count, median, lead = _score_statistics(placed)
        theta = (lead * count + max(usual, _MINIMUM_THETA) * _PRIOR) / (count + _PRIOR)
        return cls(np.maximum(count, 1) / 2.0, median, np.maximum(theta, _MINIMUM_THETA))

    def expectation(self, score: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return log10 of the number of candidates expected to reach each score (q, k) by chance; infinite if the score is not finite."""
        value = score.astype(np.float64)
        lead = np.where(np.isfinite(value), value, 0.0) - self.median[:, None]
        return np.where(np.isfinite(value), np.log10(self.number)[:, None] - lead / (self.theta[:, None] * _LN_10), np.inf)

    def key(self, score: NDArray[np.float32], fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (q, k) plus the bonus for proximity to the precursor mass; see `nearness_bonus` for `fraction`."""
        return score.astype(np.float64) + nearness_bonus(fraction, self.theta[:, None])

    def score_of(self, logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score difference that changes E by a factor; `logarithm` is log10 of the factor, (q, k)."""
        return logarithm * (self.theta[:, None] * _LN_10)


def _ranked(spectrum_of_query: NDArray[np.int64], candidate: NDArray[np.int64], key: NDArray[np.float64], top: int) -> list[NDArray[Any]]:
    """Return the best `top` forms of each spectrum over all charges, as the first five columns of `_Peptidoforms`.

    `key` and `candidate` are matrices of all forms, with a row for each query. Forms are ranked by `key`; -inf excludes a form.
    """
    query, column = np.nonzero(np.isfinite(key))
    value = key[query, column]
    order = np.lexsort((column, query, -value, spectrum_of_query[query]))
    query, column, value = query[order], column[order], value[order]
    spectrum, peptide, n = spectrum_of_query[query], candidate[query, column], len(query)
    rank = positions_in_groups(is_group_start(spectrum)) + 1
    # The next form of the spectrum may belong to the same peptide, with or without a shift or with another charge.
    others = np.append(np.flatnonzero(is_group_start(spectrum, peptide)), n)
    following = others[np.searchsorted(others, np.arange(n), side="right")] if n else np.empty(0, np.int64)
    has_next = (following < n) & (spectrum[np.minimum(following, n - 1)] == spectrum)
    delta = np.where(has_next, value - value[np.minimum(following, n - 1)], 0.0)
    return [values[rank <= top] for values in (query, column, delta, rank, value)]


def _find_losses(
    index: SpectrumIndex,
    matches: Matches,
    shift: NDArray[np.float64],
    is_shifted: NDArray[np.bool_],
    peptides: PeptideArrays,
    position: NDArray[np.uint8],
    settings: ScoringSettings,
) -> NDArray[np.int64]:
    """Return the neutral losses of precursors (see `precursor_losses`), (n,) int64; 0 unless the shift may be phosphate or sulfate."""
    rows = np.flatnonzero(is_shifted & (np.abs(shift - PHOSPHATE_OR_SULFATE) <= _NEAR_PHOSPHATE))
    residue = peptides.residues[peptides.position[matches.peptide[rows]].astype(np.int64) + position[rows] - 1]
    mass = matches.query_mass[rows] - matches.isotope_error[rows] * settings.isotope_spacing
    loss = np.zeros(len(shift), np.int64)
    loss[rows] = precursor_losses(index, matches.spectrum[rows], matches.charge[rows], mass, residue == ord("Y"), settings)
    return loss


def _score_placed(
    index: SpectrumIndex,
    forms: ShiftsToPlace,
    peptides: PeptideArrays,
    position: NDArray[np.uint8],
    settings: ScoringSettings,
    resources: Resources,
) -> dict[str, NDArray[np.float64]]:
    """Return all scores and features of the matches by name, with each shift at the residue `position`."""
    n, stop = len(position), stop_flag()
    measured, number = np.zeros((n, len(feature_names()))), (np.arange(n) % _SHIFTS_AT_ONCE).astype(np.uint8)
    modification = np.where(position == _NONE, _NONE, number).astype(np.uint8)
    matches = MatchArrays(forms.spectrum, forms.charge, forms.peptide, position[:, None], modification[:, None])

    def measure(part: Partition) -> None:
        # Each batch passes its shifts as modification masses.
        for first in range(part.first * _SHIFTS_AT_ONCE, min(n, part.last * _SHIFTS_AT_ONCE), _SHIFTS_AT_ONCE):
            last = min(n, first + _SHIFTS_AT_ONCE)
            measure_matches(index.arrays, matches, peptides, forms.shift[first:last], settings, first, last, measured, stop)

    parts = even_partitions(-(-n // _SHIFTS_AT_ONCE), resources.threads)
    run_on_threads(measure, parts, resources.threads, resources.progress, steps=lambda _: 0, stop=stop)
    return dict(zip(feature_names(), np.ascontiguousarray(measured.T), strict=True))


def _places(
    index: SpectrumIndex,
    forms: ShiftsToPlace,
    peptides: PeptideArrays,
    is_shifted: NDArray[np.bool_],
    settings: ScoringSettings,
    resources: Resources,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the score and the probability of the shift at each residue, both (n, 64)."""
    n, stop = len(is_shifted), stop_flag()
    score, probability = np.full((n, PLACES), -np.inf, np.float32), np.zeros((n, PLACES), np.float32)
    rows = np.flatnonzero(is_shifted)
    of_rows = (np.empty((len(rows), PLACES), np.float32), np.empty((len(rows), PLACES), np.float32))
    chosen = ShiftsToPlace(forms.spectrum[rows], forms.charge[rows], forms.peptide[rows], forms.shift[rows])

    def place(part: Partition) -> None:
        score_places(index.arrays, chosen, peptides, settings, part.first, part.last, *of_rows, stop)

    parts = even_partitions(len(rows), resources.threads)
    run_on_threads(place, parts, resources.threads, resources.progress, steps=lambda _: 0, stop=stop)
    score[rows], probability[rows] = of_rows
    return score, probability
