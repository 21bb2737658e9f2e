"""Names of mass shifts, and error rates of matches in groups by the type of their shift.

The best forms of each spectrum (candidates with or without a mass shift) are ranked again, considering what their shifts may mean. By
chance, one in a hundred shifts is a common modification at its residue, one in a hundred is another peptide terminus, and one in five is
some Unimod modification or substitution. E, the number of candidates expected to score as well by chance, is therefore multiplied by the
fraction of candidates that are at least as likely before the spectrum is considered, either by mass proximity or by the meaning of the
shift (`proteoscope.engine.matches.shift_names`), whichever is smaller. This fraction is estimated from chance matches, each peptide counted
once. The candidates of the spectrum are ranked by the result.

Matches are divided into four groups: without a shift, with a common modification (named), with another peptide terminus, and all others,
including rare names. The groups differ in their fraction of false matches, and have separate error rates, each estimated from the decoys of
the group (`proteoscope.engine.matches.class_rates`). With a common rate, errors in one group would reduce the accepted matches of the other
groups. Shifts of decoys are named by the same rules, so that within a group, a false match is equally likely to be a target or a decoy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, segment_offsets
from proteoscope.engine.chemistry.modifications import SearchModification, write_mass
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.class_rates import class_advantages, class_rates
from proteoscope.engine.matches.psms import SEARCH_SCORE_SCALE, Psms, SystematicErrors, collect_psms, rescoring_features, search_score
from proteoscope.engine.matches.rescoring import RescoringSettings, rescore
from proteoscope.engine.matches.shift_names import END_TIER, TIERS, USUAL_TIER, NamedShifts, ShiftPositions, name_shifts, tiers_of_shifts
from proteoscope.engine.matches.tables import ScoredMatches
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.ranking import ShiftedMatches, nearness_bonus
from proteoscope.engine.peptides.indexes import Indexes
from proteoscope.engine.statistics.target_decoy import q_values

__all__ = ["KINDS", "NAMED", "PLAIN", "UNNAMED", "MassShifts", "RankedMatches", "estimate_error_rates"]

PLAIN, NAMED, END, UNNAMED = range(4)
"""Groups of matches by their shift."""
KINDS = ("none", "named", "end", "unnamed")
"""Names of the groups in tables."""

_CONFIDENT = 0.01
_FEWEST_CONFIDENT = 10  # minimum number of matches to estimate the mass error
_DECIMALS = 4  # decimals in the names of unnamed shifts
_IDLE_FEATURES = ("variable_modifications",)


@dataclass(frozen=True)
class MassShifts:
    """Mass shifts of n matches.

    Attributes
    ----------
    mass : ndarray of float64, shape (n,)
        Shift in dalton, corrected for the systematic mass error; for matches without a shift, the corrected precursor mass error.
    carried : ndarray of float64, shape (n,)
        Mass in dalton by which the shift increases the calculated mass.
    group : ndarray of int64, shape (n,)
        `PLAIN`, `NAMED`, `END` or `UNNAMED`.
    name, possible : ndarray of object (str), shape (n,)
        Selected name, and all possible names (`proteoscope.engine.matches.shift_names.NamedShifts`); '' without a shift.
    site : ndarray of int64, shape (n,)
        Residue number from 1, 0 for the N-terminus, length + 1 for the C-terminus; -1 without a shift.
    probability : ndarray of float64, shape (n,)
        Probability of the site, NaN without a shift.
    """

    mass: NDArray[np.float64]
    carried: NDArray[np.float64]
    group: NDArray[np.int64]
    name: NDArray[np.object_]
    possible: NDArray[np.object_]
    site: NDArray[np.int64]
    probability: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> MassShifts:
        """Return the rows with the given indices, in this order."""
        return MassShifts(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class RankedMatches:
    """Matches with error rates and shifts. Masses of shifts are corrected for the systematic error `mass_error_ppm`.

    The modifications of the matches are the fixed modifications, followed by the shifts, which begin at index `first_shift`.
    """

    scored: ScoredMatches
    shifts: MassShifts
    mass_error_ppm: float
    first_shift: int


def estimate_error_rates(
    matches: ShiftedMatches, indexes: Indexes, parameters: ModifiedSearchParameters, resources: Resources
) -> RankedMatches:
    """Rank the best candidates of each spectrum, name the shifts, and estimate error rates by group.

    Matches are rescored if there are enough for training. `matches` may contain more candidates per spectrum than are reported.
    """
    resources.progress.stage("Estimating false discovery rates")
    psms = collect_psms(matches.matches, indexes.peptides, indexes.proteins, ())
    by_count, has_decoys = parameters.score == "match-count", parameters.decoys != "none"
    initial = psms.score if by_count else search_score(psms)
    first = psms.rank == 1
    confident = _are_confident(psms, initial, first & ~matches.is_shifted, parameters)
    mass_error = 0.0 if confident.sum() < _FEWEST_CONFIDENT else float(np.median(psms.mass_error_ppm[confident]))
    mass = matches.shift - mass_error * 1e-6 * psms.observed_mass
    score, message, features = initial, "rescoring is off", dict[str, NDArray[np.float64]]()
    scale = None if by_count else SEARCH_SCORE_SCALE
    tier, distance = _likelihoods(psms, matches, mass, indexes, parameters)
    if not by_count:
        fraction = _log_fractions(psms, matches, tier, first)
        key = matches.key + nearness_bonus(fraction, matches.theta) - nearness_bonus(matches.nearness, matches.theta)
        psms = replace(psms, expectation=psms.expectation + fraction - matches.nearness)
        score = initial = search_score(psms)
        if has_decoys:
            features = _features(psms, matches.is_shifted, tier, distance, confident)
            if parameters.rescoring == "automatic":
                learns = _ranks(psms, key) == 1
                learning = RescoringSettings(decoy_ratio=psms.decoy_ratio)
                outcome = rescore(features, psms.is_decoy, psms.peptide_family, initial, learns, learning, resources)
                score, message, scale = outcome.score, outcome.message, scale if outcome.learnt is None else None
    group = np.zeros(len(psms), np.int64) if by_count else _groups(matches.is_shifted, tier)
    advantages = class_advantages(score, psms.is_decoy, group, len(KINDS))
    rank = psms.rank if by_count else _ranks(psms, key)
    retained = np.flatnonzero((rank > 0) & (rank <= parameters.hits_per_spectrum))
    retained = retained[np.lexsort((rank[retained], psms.spectrum[retained]))]
    psms, matches, mass, group = replace(psms.take(retained), rank=rank[retained]), matches.take(retained), mass[retained], group[retained]
    score, features = score[retained], {name: column[retained] for name, column in features.items()}
    first_shift = len(psms.modifications)
    psms, shifts = _name_shifts(psms, matches, mass, tier[retained], mass_error, indexes, parameters)
    competes = psms.rank == 1
    q_value, posterior_error = np.full((2, len(psms)), np.nan)
    if not has_decoys:
        message = "no decoys: no false discovery rate can be estimated"
    elif competes.any():
        q_value[competes], posterior_error[competes] = class_rates(
            score[competes],
            psms.is_decoy[competes],
            group[competes],
            plus_one=parameters.plus_one,
            decoy_ratio=psms.decoy_ratio,
            scale=scale,
            peptide=psms.peptide_family[competes],
            advantages=advantages,
        )
    scored = ScoredMatches(psms, score, q_value, posterior_error, features, message, group, advantages=advantages, scale=scale)
    return RankedMatches(scored, shifts, mass_error, first_shift)


def _ranks(psms: Psms, score: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each match among the matches of its spectrum by `score`, (n,) int64; matches with equal scores retain their order.

    Only the best match of each peptide is ranked. The rank of other matches of the peptide (such as those with another shift) is 0.
    """
    order = np.lexsort((psms.rank, -score, psms.spectrum))
    spectrum, position = psms.spectrum[order], psms.position[order]
    form = np.lexsort((np.arange(len(order)), position, spectrum))  # the better form of each peptide is first
    is_first = np.zeros(len(order), np.int64)
    is_first[form] = is_group_start(spectrum[form], position[form])
    counted = np.cumsum(is_first)
    before = np.maximum.accumulate(np.where(is_group_start(spectrum), counted - is_first, 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = is_first * (counted - before)
    return rank


def _groups(is_shifted: NDArray[np.bool_], tier: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the group of each match, `PLAIN`, `NAMED`, `END` or `UNNAMED`."""
    return np.select([~is_shifted, tier == USUAL_TIER, tier == END_TIER], [PLAIN, NAMED, END], UNNAMED)


def _likelihoods(
    psms: Psms, matches: ShiftedMatches, mass: NDArray[np.float64], indexes: Indexes, parameters: ModifiedSearchParameters
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the tier of the shift of each match, and the distance in dalton of the shift from the nearest name in this tier.

    A tier is a class of names, such as common modifications (see `proteoscope.engine.matches.shift_names.TIERS`). Matches without a shift
    or without a name have the tier `TIERS` - 1.
    """
    rows = np.flatnonzero(matches.is_shifted)
    tier, distance = np.full(len(psms), TIERS - 1), np.full(len(psms), np.inf)
    positions = _shift_positions(psms, matches, rows, mass, indexes, parameters)
    tier[rows], distance[rows] = tiers_of_shifts(positions, indexes.peptides.digestion.fixed)
    return tier, distance


def _log_fractions(psms: Psms, matches: ShiftedMatches, tier: NDArray[np.int64], first: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return, for each match, log10 of the fraction of candidates that are at least as likely before the spectrum is considered.

    This is the fraction at least as close to the precursor mass, or, if smaller, the fraction of chance matches whose tier (see
    `_likelihoods`) is at least as good. Chance matches are shifted decoys, or, without decoys, shifted candidates that are not rank 1. Each
    peptide is counted once per tier.
    """
    is_chance = matches.is_shifted & (psms.is_decoy if psms.is_decoy.any() else ~first)
    distinct = np.unique(np.column_stack((psms.peptide_family, tier))[is_chance], axis=0)
    counts = np.cumsum(np.bincount(distinct[:, 1], minlength=TIERS))
    likelihood = np.log10((counts + 1.0) / (counts[-1] + 1.0))[tier]
    return np.where(matches.is_shifted, np.minimum(likelihood, matches.nearness), matches.nearness)


def _shift_positions(
    psms: Psms,
    matches: ShiftedMatches,
    rows: NDArray[np.int64],
    mass: NDArray[np.float64],
    indexes: Indexes,
    parameters: ModifiedSearchParameters,
) -> ShiftPositions:
    """Return the shifts of the given rows as input for naming."""
    offsets = np.asarray(indexes.proteins.proteins.offsets)
    protein = indexes.proteins.protein_of(psms.position[rows])
    tolerance = parameters.precursor_tolerance.width(psms.observed_mass[rows])
    return ShiftPositions(
        mass[rows],
        tolerance,
        matches.place_score[rows],
        psms.position[rows],
        psms.length[rows],
        offsets[protein],
        offsets[protein + 1],
        np.asarray(indexes.proteins.proteins.residues),
        parameters.minimum_length,
    )


def _are_confident(
    psms: Psms, score: NDArray[np.float64], rows: NDArray[np.bool_], parameters: ModifiedSearchParameters
) -> NDArray[np.bool_]:
    """Return True for targets among `rows` that are accepted at 1 % FDR."""
    confident = np.zeros(len(psms), np.bool_)
    if parameters.decoys != "none":
        rates = q_values(score[rows], psms.is_decoy[rows], plus_one=parameters.plus_one, decoy_ratio=psms.decoy_ratio)
        confident[rows] = (rates <= _CONFIDENT) & ~psms.is_decoy[rows]
    return confident


def _features(
    psms: Psms, is_shifted: NDArray[np.bool_], tier: NDArray[np.int64], distance: NDArray[np.float64], confident: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """Return the features for rescoring.

    The mass error of a match with a common modification or another terminus is the distance of its shift from the named mass. Matches with
    any other shift have the mean mass error of matches without a shift.
    """
    features = {
        name: column
        for name, column in rescoring_features(psms, SystematicErrors.from_matches(psms, confident)).items()
        if name not in _IDLE_FEATURES
    }
    error = features["precursor_error"]
    usual = error[~is_shifted].mean() if (~is_shifted).any() else 0.0
    is_end = is_shifted & (tier == END_TIER)
    is_likely = is_shifted & (tier == USUAL_TIER) | is_end
    shift_error = np.where(is_likely, np.where(is_likely, distance, 0.0) / psms.observed_mass * 1e6, usual)
    features["precursor_error"] = np.where(is_shifted, shift_error, error)
    features["unlikely_shift"] = (is_shifted & ~is_likely).astype(np.float64)
    features["other_end"] = is_end.astype(np.float64)
    return features


def _name_shifts(
    psms: Psms,
    matches: ShiftedMatches,
    mass: NDArray[np.float64],
    tier: NDArray[np.int64],
    mass_error: float,
    indexes: Indexes,
    parameters: ModifiedSearchParameters,
) -> tuple[Psms, MassShifts]:
    """Return the matches with their shifts added to the peptides as modifications, and the shifts with their names."""
    n, rows = len(psms), np.flatnonzero(matches.is_shifted)
    plain_error = (psms.mass_error_ppm - mass_error) * 1e-6 * psms.calculated_mass
    digestion = indexes.peptides.digestion
    named = name_shifts(
        _shift_positions(psms, matches, rows, mass, indexes, parameters), digestion.fixed, digestion.enzyme, matches.loss[rows]
    )
    which, modifications = _name_all_shifts(named, mass[rows])
    group, site, probability = _groups(matches.is_shifted, tier), np.full(n, -1), np.full(n, np.nan)
    site[rows] = named.site
    residue = np.clip(named.site, 1, psms.length[rows]) - 1
    probability[rows] = matches.place_probability[rows, residue]
    carried = np.zeros(n)
    carried[rows] = np.array([modification.mass for modification in modifications] or [0.0])[which]
    name, possible = np.full((2, n), "", object)
    name[rows], possible[rows] = [modifications[number].name for number in which.tolist()], named.possible
    shifts = MassShifts(np.where(matches.is_shifted, mass, plain_error), carried, group, name, possible, site, probability)
    return _add_modifications(psms, rows, named.site, which, modifications, carried), shifts


def _name_all_shifts(named: NamedShifts, mass: NDArray[np.float64]) -> tuple[NDArray[np.int64], tuple[SearchModification, ...]]:
    """Return the modification of each shift as an index, and the modifications; the name of a shift without a name is its mass."""
    which = named.modification.copy()
    rows = np.flatnonzero(which < 0)
    rounded, number = np.unique(mass[rows].round(_DECIMALS), return_inverse=True)
    which[rows] = number + len(named.modifications)
    others = tuple(SearchModification(write_mass(mass), None, mass, "", "anywhere") for mass in rounded.tolist())
    return which, (*named.modifications, *others)


def _add_modifications(
    psms: Psms,
    rows: NDArray[np.int64],
    site: NDArray[np.int64],
    which: NDArray[np.int64],
    modifications: tuple[SearchModification, ...],
    carried: NDArray[np.float64],
) -> Psms:
    """Return the matches; the peptide of each match in `rows` has an additional modification."""
    n, n_before = len(psms), len(psms.modifications)
    all_rows = np.concatenate((np.repeat(np.arange(n), np.diff(psms.modification_offsets)), rows))
    all_sites = np.concatenate((psms.modification_site, site))
    all_which = np.concatenate((psms.modification, which + n_before))
    order = np.lexsort((all_which, all_sites, all_rows))
    return replace(
        psms,
        modification_offsets=segment_offsets(np.bincount(all_rows, minlength=n)),
        modification_site=all_sites[order],
        modification=all_which[order],
        calculated_mass=psms.calculated_mass + carried,
        modifications=(*psms.modifications, *modifications),
    )
