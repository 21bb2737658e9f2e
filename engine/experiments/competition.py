"""Competition of peptides over all runs of an experiment.

Many runs mostly share their correct peptides, but each run has different false ones, so that the union of lists with 1 % false peptides
contains a much larger fraction of false peptides. Error rates of an experiment are therefore estimated by one competition:

1. Within each run, the score of each match becomes its posterior error (`proteoscope.engine.statistics.posterior_error`), a scale on which
   runs of different quality can be compared. Its logit is a linear function of the score, fitted to the matches of the run in all
   classes, except those of the same peptide or its decoy (five folds).
2. For each class of matches, a peptidoform has the lowest posterior error of its matches in all runs.
3. A peptidoform and its decoy compete, and only the better remains ("double competition": Lin, Short, Noble & Keich 2022, J Proteome Res
   21:2412). A decoy has the residues of its target, modifications of the same total mass, the same class and the same protein.
4. Each class has its own error rate (`proteoscope.engine.matches.class_rates`). Protein groups are made from the accepted peptidoforms, and
   a group and its decoy compete (`proteoscope.engine.matches.protein_groups`; The, Samaras, Kuster & Wilhelm 2022, Mol Cell Proteomics
   21:100437).

A peptide and its decoy are in one fold, so that false targets and decoys are exchangeable in each step: the calibration decides the order,
but not the rate. If a match took part in its own fit, a false target with a high score would lower its own error, and the lowest errors in
many runs would belong to such targets. In simulated experiments at a reported rate of 1 %, the following percentages of the peptides were
false:

    runs and spectra    spline, all matches    linear, all matches      linear, five folds
    40 of 600           1.47                   1.07                     1.01
    100 of 60           4.23                   2.51                     0.96
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start, splitmix64
from proteoscope.engine.matches.class_rates import class_rates
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import ScoreScale

__all__ = [
    "MATCH",
    "SCALE",
    "Rates",
    "best_matches",
    "compete",
    "form_keys",
    "match_keys",
    "merge_matches",
    "pair_numbers",
    "posterior_errors",
    "score_of",
]

MATCH = np.dtype(
    [
        ("key", "u8"),
        ("form", "u8"),
        ("posterior_error", "f8"),
        ("q_value", "f8"),
        ("psm", "i8"),
        ("run", "i4"),
        ("n_psms", "i4"),
        ("n_runs", "i4"),
        ("match_class", "i1"),
    ]
)
"""Best match of a peptidoform in a class: keys of class and peptidoform, error rates, PSM and run, numbers of accepted PSMs and runs."""

SCALE = ScoreScale(0.0, 1.0 / np.log(10.0), 3.0)
"""Prior parameters of the decoy tail of `score_of`: among false matches, at most a fraction p has a posterior error below p."""

_FOLDS = 5
_LOWEST_ERROR = 1e-300
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT_RESOLUTION = 0.01  # Da


class Rates(NamedTuple):
    """Error rates of n peptidoforms in their classes.

    Attributes
    ----------
    q_value, posterior_error : ndarray of float64, shape (n,)
        NaN in classes without an error rate, and 1 for peptidoforms that lose the competition.
    loses : ndarray of bool, shape (n,)
        True if the decoy of a target, or the target of a decoy, is better.
    """

    q_value: NDArray[np.float64]
    posterior_error: NDArray[np.float64]
    loses: NDArray[np.bool_]


def score_of(posterior_error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores for the competition: -log10 of posterior errors, 0 or higher."""
    score: NDArray[np.float64] = -np.log10(np.maximum(posterior_error, _LOWEST_ERROR)) + 0.0
    return score


def posterior_errors(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], family: NDArray[np.int64], decoy_ratio: float = 1.0
) -> NDArray[np.float64]:
    """Return the posterior error of each match of a run, estimated from the matches of other peptides.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Finite scores; higher is better.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    family : ndarray of int64, shape (n,)
        Number shared by a peptide and its decoy, which are therefore in the same fold.
    decoy_ratio : float
        Decoy candidates per target candidate.

    Returns
    -------
    ndarray of float64, shape (n,)
        From 0 to 1.
    """
    fold = splitmix64(family.view(np.uint64) + _GOLDEN) % np.uint64(_FOLDS)
    errors = np.ones(len(score))
    for rows in (fold == number for number in range(_FOLDS)):
        errors[rows] = posterior_error_probabilities(score[~rows], is_decoy[~rows], decoy_ratio, at=score[rows], is_straight=True)
    return errors


def form_keys(characters: NDArray[np.uint8], offsets: NDArray[np.int64], is_decoy: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return a hash of each peptidoform, from its characters, their positions, and whether it is a decoy.

    Parameters
    ----------
    characters : ndarray of uint8
        Concatenated texts of n peptidoforms.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each text, followed by the end of the last one.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.

    Returns
    -------
    ndarray of uint64, shape (n,)
    """
    used = characters[offsets[0] : offsets[-1]].astype(np.uint64)
    position = np.arange(len(used)) - np.repeat(offsets[:-1] - offsets[0], np.diff(offsets))
    numbers = splitmix64((position.astype(np.uint64) << np.uint64(8) | used) * _GOLDEN)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(numbers, dtype=np.uint64)))  # modulo 2^64, which differences cancel
    places = offsets - offsets[0]
    return splitmix64(sums[places[1:]] - sums[places[:-1]] + is_decoy.astype(np.uint64) * _GOLDEN)


def match_keys(form: NDArray[np.uint64], match_class: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return the key of each peptidoform in a class, (n,) uint64."""
    return splitmix64(form + match_class.astype(np.uint64) * _GOLDEN)


def best_matches(rows: NDArray[np.void], score: NDArray[np.float64], is_accepted: NDArray[np.bool_]) -> NDArray[np.void]:
    """Return the best match of each peptidoform in each class in a run.

    Parameters
    ----------
    rows : ndarray of `MATCH`, shape (n,)
        Matches of the run.
    score : ndarray of float64, shape (n,)
        Score of each match; with equal scores, the first PSM is the best.
    is_accepted : ndarray of bool, shape (n,)
        True for matches that the run accepts.

    Returns
    -------
    ndarray of `MATCH`
        Sorted by peptidoform and class; `n_psms` is the number of accepted PSMs. `n_runs` is 1 in the first class in which the
        peptidoform has an accepted PSM, otherwise 0, so that sums of `n_runs` count the runs of a peptidoform.
    """
    order = np.lexsort((rows["psm"], -score, rows["match_class"], rows["form"]))
    begin = np.flatnonzero(is_group_start(rows["key"][order])) if len(rows) else np.zeros(0, np.int64)
    best = rows[order[begin]]
    if len(best):
        best["n_psms"] = np.add.reduceat(is_accepted[order].astype(np.int32), begin)
    accepted = np.flatnonzero(best["n_psms"])
    best["n_runs"] = 0
    if len(accepted):
        best["n_runs"][accepted[is_group_start(best["form"][accepted])]] = 1
    return best


def merge_matches(matches: NDArray[np.void]) -> NDArray[np.void]:
    """Return one match for each key (peptidoform and class), sorted by key.

    This is the match with the lowest posterior error; among equal errors, that of the first run and PSM. Its `n_psms` and `n_runs` are the
    sums over all matches with the key. Merging in several steps, in any order, gives the same result.
    """
    order = np.lexsort((matches["psm"], matches["run"], matches["posterior_error"], matches["key"]))
    begin = np.flatnonzero(is_group_start(matches["key"][order])) if len(matches) else np.zeros(0, np.int64)
    merged = matches[order[begin]]
    for name in ("n_psms", "n_runs") if len(merged) else ():
        merged[name] = np.add.reduceat(matches[name][order], begin)
    return merged


def pair_numbers(
    family: NDArray[np.int64], added_mass: NDArray[np.float64], match_class: NDArray[np.integer], protein: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return a number for each row, from 0, that a peptidoform shares with its decoy.

    Rows have the same number if all four arguments are equal.

    Parameters
    ----------
    family : ndarray of int64, shape (n,)
        Number shared by a peptide and its decoy (`proteoscope.engine.matches.psms.peptide_families`).
    added_mass : ndarray of float64, shape (n,)
        Total mass of the modifications, Da.
    match_class : ndarray of int, shape (n,)
        Class of the match.
    protein : ndarray of int64, shape (n,)
        Number of the first protein, equal for a protein and its decoy.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    number = family.view(np.uint64)
    for part in (np.rint(added_mass / _SHIFT_RESOLUTION).astype(np.int64), match_class.astype(np.int64), protein):
        number = splitmix64(number + (part.view(np.uint64) + np.uint64(1)) * _GOLDEN)
    return np.unique(number, return_inverse=True)[1].astype(np.int64)


def compete(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    match_class: NDArray[np.int64],
    pair: NDArray[np.int64],
    family: NDArray[np.int64],
    *,
    plus_one: bool,
    decoy_ratio: float,
    advantages: NDArray[np.float64] | None = None,
) -> Rates:
    """Return the error rates of the peptidoforms of an experiment after each pair of target and decoy has competed.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Best score in all runs.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    match_class : ndarray of int64, shape (n,)
        Class of each row, which has its own error rate; 0 is the main class.
    pair : ndarray of int64, shape (n,)
        Number shared by a target and its decoy, from 0. With equal scores, the decoy wins.
    family : ndarray of int64, shape (n,)
        Number shared by all peptidoforms of a peptide and of its decoy.
    plus_one, decoy_ratio, advantages
        See `proteoscope.engine.matches.class_rates.class_rates`.
    """
    best = np.full((2, int(pair.max(initial=-1)) + 1), -np.inf)
    np.maximum.at(best, (is_decoy.astype(np.int64), pair), score)
    rival = best[(~is_decoy).astype(np.int64), pair]
    loses = (rival > score) | ((rival == score) & ~is_decoy)
    q_value, posterior_error = np.ones((2, len(score)))
    wins = np.flatnonzero(~loses)
    if len(wins):
        q_value[wins], posterior_error[wins] = class_rates(
            score[wins],
            is_decoy[wins],
            match_class[wins],
            plus_one=plus_one,
            decoy_ratio=decoy_ratio,
            scale=SCALE,
            peptide=family[wins],
            advantages=advantages,
        )
    return Rates(q_value, posterior_error, loses)
