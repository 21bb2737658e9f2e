"""Report: what each shift is, the groups in which matches are judged, and their error rates.

Matches are judged in groups by their own decoys, since they are not equally often false: those without a shift, those whose shift has a
name, and all others. A decoy's shift gets a name by the same rules as a target's, so that a false match falls on a target or a decoy of
a group with the same chance. Two names at once fit so many masses that they count as no name. Where one of the two groups with a shift has
few decoys, both are judged as one; where that has few, one decoy more than seen is counted (`engine.matches.tables.error_rates`).

Whether a shift has a name, and how near its mass is, tells rescoring nothing: names are given by what is likely, and would judge it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.arrays import offsets_of
from engine.chemistry.modifications import SearchModification, write_mass
from engine.chemistry.tolerance import Tolerance
from engine.execution.resources import Resources
from engine.matches.psms import Psms, collect_psms, rescoring_features, search_score
from engine.matches.rescoring import rescore
from engine.matches.tables import FEW_DECOYS, Scored, error_rates
from engine.modified_search.naming import Named, ShiftPlaces, name_shifts
from engine.modified_search.parameters import ModifiedSearchParameters
from engine.modified_search.ranking import ShiftedMatches
from engine.peptides.indexes import Indexes
from engine.statistics.target_decoy import q_values

__all__ = ["NAMED", "PLAIN", "UNNAMED", "Judged", "Shifts", "judge"]

PLAIN, NAMED, UNNAMED = 0, 1, 2
"""Groups of matches by their shift."""

_CONFIDENT = 0.01
_FEWEST_CONFIDENT = 10  # matches from which an error of the masses is estimated
_DECIMALS = 4  # of the mass of a shift without a name
_IDLE_FEATURES = ("variable_modifications",)


@dataclass(frozen=True)
class Shifts:
    """Of n matches, what they are shifted by.

    Attributes
    ----------
    mass : (n,) float64, dalton, recalibrated; of matches without a shift the error of the precursor. carried : (n,) float64, what the
        peptide carries in its calculated mass. group : (n,) int64, `PLAIN`, `NAMED` or `UNNAMED`.
    name : n texts, empty without a shift. site : (n,) int64: 0 the N-terminus, 1 to L, L + 1; -1 without a shift.
    probability : (n,) float64, of the site, NaN without a shift.
    """

    mass: NDArray[np.float64]
    carried: NDArray[np.float64]
    group: NDArray[np.int64]
    name: list[str]
    site: NDArray[np.int64]
    probability: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> Shifts:
        """Some of them."""
        columns = {name: getattr(self, name)[rows] for name in self.__dataclass_fields__ if name != "name"}
        return Shifts(name=[self.name[row] for row in rows.tolist()], **columns)


@dataclass(frozen=True)
class Judged:
    """Matches with their statistics and shifts, row by row; `mass_error_ppm` is what masses were recalibrated by."""

    scored: Scored
    shifts: Shifts
    mass_error_ppm: float


def judge(found: ShiftedMatches, indexes: Indexes, parameters: ModifiedSearchParameters, resources: Resources) -> Judged:
    """Name the shifts, rescore the matches where there is enough to learn from, and estimate error rates by group."""
    plain = collect_psms(found.matches, indexes.peptides, indexes.proteins, ())
    by_count = parameters.score == "match-count"
    initial = plain.score if by_count else search_score(plain)
    competes = plain.rank == 1
    confident = _confident(plain, initial, competes & ~found.is_shifted, parameters)
    few = confident.sum() < _FEWEST_CONFIDENT
    mass_error = 0.0 if few else float(np.median(plain.mass_error_ppm[confident]))
    psms, shifts = _named(plain, found, indexes, mass_error, parameters)
    group = np.zeros(len(psms), np.int64) if by_count else _judged_together(shifts.group, plain.is_decoy, competes)
    unknown = np.full(len(psms), np.nan)
    if parameters.decoys == "none":
        message = "no decoys: no false discovery rate can be estimated"
        return Judged(Scored(psms, initial, unknown, unknown, {}, message, group), shifts, mass_error)
    features = _features(plain, found.is_shifted, confident)
    score, message = initial, "rescoring is off"
    if parameters.rescoring == "automatic" and not by_count:
        matrix = np.column_stack(list(features.values())) if len(psms) else np.empty((0, len(features)))
        outcome = rescore(matrix, list(features), psms.is_decoy, psms.peptide_family, initial, competes, resources=resources)
        score, message = outcome.score, outcome.message
    q_value, posterior_error = unknown.copy(), unknown.copy()
    if competes.any():
        rates = error_rates(score[competes], psms.is_decoy[competes], parameters, group[competes])
        q_value[competes], posterior_error[competes] = rates
    return Judged(Scored(psms, score, q_value, posterior_error, features, message, group), shifts, mass_error)


def _confident(psms: Psms, score: NDArray[np.float64], rows: NDArray[np.bool_], parameters: ModifiedSearchParameters) -> NDArray[np.bool_]:
    """Targets without a shift at 1 %, among `rows`."""
    confident = np.zeros(len(psms), np.bool_)
    if parameters.decoys != "none":
        confident[rows] = (q_values(score[rows], psms.is_decoy[rows], plus_one=parameters.plus_one) <= _CONFIDENT) & ~psms.is_decoy[rows]
    return confident


def _judged_together(group: NDArray[np.int64], is_decoy: NDArray[np.bool_], competes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The groups, with those of shifts as one where either has few decoys."""
    decoys = np.bincount(group[competes & is_decoy], minlength=UNNAMED + 1)
    return np.minimum(group, NAMED) if decoys[NAMED:].min() < FEW_DECOYS else group


def _features(psms: Psms, is_shifted: NDArray[np.bool_], confident: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    """What rescoring learns from: nothing of a shift's mass, only that there is one, by the number of candidates."""
    features = {name: column for name, column in rescoring_features(psms, confident).items() if name not in _IDLE_FEATURES}
    error = features["precursor_error"]
    features["precursor_error"] = np.where(is_shifted, error[~is_shifted].mean() if (~is_shifted).any() else 0.0, error)
    return features


def _named(
    psms: Psms, found: ShiftedMatches, indexes: Indexes, mass_error: float, parameters: ModifiedSearchParameters
) -> tuple[Psms, Shifts]:
    """The matches with their shifts as modifications, and what these are."""
    n, rows = len(psms), np.flatnonzero(found.is_shifted)
    mass = found.shift - mass_error * 1e-6 * psms.observed_mass
    plain_error = (psms.mass_error_ppm - mass_error) * 1e-6 * psms.calculated_mass
    offsets = np.asarray(indexes.proteins.proteins.offsets)
    protein = indexes.proteins.protein_of(psms.position[rows])
    tolerance = Tolerance.parse(parameters.precursor_tolerance).width(psms.observed_mass[rows])
    places = ShiftPlaces(
        mass[rows], tolerance, found.place_score[rows], psms.position[rows], psms.length[rows], offsets[protein], offsets[protein + 1],
        np.asarray(indexes.proteins.proteins.residues),
    )  # fmt: skip
    digestion = indexes.peptides.digestion
    named = name_shifts(places, digestion.fixed, digestion.enzyme)
    which, modifications = _with_unnamed(named, mass[rows])
    group, site, probability = np.zeros(n, np.int64), np.full(n, -1), np.full(n, np.nan)
    group[rows] = np.where((named.modification >= 0) & ~named.is_pair, NAMED, UNNAMED)
    site[rows] = named.site
    residue = np.clip(named.site, 1, psms.length[rows]) - 1
    probability[rows] = found.place_probability[rows, residue]
    carried = np.zeros(n)
    carried[rows] = np.array([one.mass for one in modifications] or [0.0])[which]
    name = [""] * n
    for row, number in zip(rows.tolist(), which.tolist(), strict=True):
        name[row] = modifications[number].name
    shifts = Shifts(np.where(found.is_shifted, mass, plain_error), carried, group, name, site, probability)
    return _carrying(psms, rows, named.site, which, modifications, carried), shifts


def _with_unnamed(named: Named, mass: NDArray[np.float64]) -> tuple[NDArray[np.int64], tuple[SearchModification, ...]]:
    """Of each shift a number, and what the numbers are: those that have no name are called by their mass."""
    which = named.modification.copy()
    rows = np.flatnonzero(which < 0)
    rounded, number = np.unique(mass[rows].round(_DECIMALS), return_inverse=True)
    which[rows] = number + len(named.modifications)
    others = tuple(SearchModification(write_mass(one), None, one, "", "anywhere") for one in rounded.tolist())
    return which, (*named.modifications, *others)


def _carrying(
    psms: Psms, rows: NDArray[np.int64], site: NDArray[np.int64], which: NDArray[np.int64], modifications: tuple[SearchModification, ...],
    carried: NDArray[np.float64],
) -> Psms:  # fmt: skip
    """The matches with one modification more in some rows."""
    n, n_before = len(psms), len(psms.modifications)
    all_rows = np.concatenate((np.repeat(np.arange(n), np.diff(psms.modification_offsets)), rows))
    all_sites = np.concatenate((psms.modification_site, site))
    all_which = np.concatenate((psms.modification, which + n_before))
    order = np.lexsort((all_which, all_sites, all_rows))
    return replace(
        psms,
        modification_offsets=offsets_of(np.bincount(all_rows, minlength=n)),
        modification_site=all_sites[order],
        modification=all_which[order],
        calculated_mass=psms.calculated_mass + carried,
        modifications=(*psms.modifications, *modifications),
    )
