"""Error rates of classes of matches, estimated for each class separately and not for the whole list.

Classes (such as semi-specific peptides, or mass shifts) differ in their fraction of false matches. If 1 % of all matches are false, the
matches of a rare class may nevertheless be mostly false. Classes are therefore fixed before the matches are rated. The method of a class
depends on its number of targets at any score, and thus not on the accepted matches:

group-walk
    Classes with 100 targets or more, if there are at least two of them. The rate is that of group-walk
    (`proteoscope.engine.statistics.group_walk`), or the rate from the decoys of the class itself if this is larger. Group-walk controls the
    joint error rate of these classes, although each class has its own threshold.
transferred
    Classes with 20 to 99 targets. The rate is the transferred subgroup FDR (`proteoscope.engine.statistics.transferred_fdr`), which is
    estimated from the decoys of all classes, or the rate from the decoys of the class itself if this is larger.
none
    Classes with fewer than 20 targets. They have no rate, and no match is accepted.
own decoys
    The rate is estimated from the decoys of the class itself. This method is used for a class that contains all matches, for the only class
    with 100 targets or more, and for the main class (number 0, the ordinary matches of the search) with fewer than 100 targets.

In a modification search (which passes `advantages` to `class_rates`), every class with at least 20 targets is rated by its own decoys only.

To the observed number of decoys, up to one decoy is added: the number that is expected from the tail of the decoy score distribution
(`proteoscope.engine.statistics.target_decoy`). For a class with too few decoys to fit a tail, the tail of all classes is used, scaled to
the number of decoys in the class plus one. Some classes have higher scores than others because they give the scoring more freedom, as mass
shifts do. This score advantage is measured with candidates at lower ranks, and the start of the tail is raised by it (`class_advantages`).

Replicate spectra of a peptide that is not in the database match the same false peptide repeatedly. False matches are then not independent,
and the first decoy reveals little about the targets that score higher. Except for the main class of an identification, error rates are
therefore the larger of two estimates: one from all matches, and one from the best match of each distinct peptide in its class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.matches.class_counts import FEWEST_TARGETS, ClassRate
from proteoscope.engine.statistics.group_walk import group_walk
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import DecoyTail, ScoreScale, best_by_group, q_values
from proteoscope.engine.statistics.transferred_fdr import minimum_share, transferred_rates

__all__ = ["class_advantages", "class_methods", "class_rates"]

_ENOUGH_TARGETS = 100  # with one decoy added, a list of 100 targets has a rate of 1 %
_MAIN = 0
_FEWEST_FORMS = 5  # decoys needed to estimate the score advantage of a class


def class_advantages(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], match_class: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """Return the score advantage of each class: the median score of its decoys minus the median score of all decoys.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of all candidates of all spectra, including lower ranks.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    match_class : ndarray of int64, shape (n,)
        Class of each candidate, from 0 to `n_classes` - 1.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of float64, shape (n_classes,)
        0 if the difference is negative, or the class has fewer than five decoys.
    """
    advantages = np.zeros(n_classes)
    for number in range(n_classes):
        of_class = score[is_decoy & (match_class == number)]
        if len(of_class) >= _FEWEST_FORMS:
            advantages[number] = max(0.0, float(np.median(of_class) - np.median(score[is_decoy])))
    return advantages


def class_methods(is_decoy: NDArray[np.bool_], match_class: NDArray[np.int64]) -> dict[int, ClassRate]:
    """Return the method that estimates the error rate of each class, as a dictionary with the classes in ascending order.

    Parameters
    ----------
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    match_class : ndarray of int64, shape (n,)
        Class of each match.
    """
    present = np.unique(match_class).tolist()
    n_targets = {number: int(np.count_nonzero((match_class == number) & ~is_decoy)) for number in present}
    walking = [number for number in present if n_targets[number] >= _ENOUGH_TARGETS]
    methods: dict[int, ClassRate] = {}
    for number in present:
        if number in walking and len(walking) > 1:
            methods[number] = "group-walk"
        elif number in walking or number == _MAIN or len(present) == 1:
            methods[number] = "own decoys"
        else:
            methods[number] = "transferred" if n_targets[number] >= FEWEST_TARGETS else "none"
    return methods


def class_rates(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    match_class: NDArray[np.int64],
    *,
    plus_one: bool,
    decoy_ratio: float,
    scale: ScoreScale | None = None,
    peptide: NDArray[np.int64] | None = None,
    advantages: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return q-values and posterior error probabilities of matches that compete within their classes.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Higher is better.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    match_class : ndarray of int64, shape (n,)
        Class of each match; 0 is the main class.
    plus_one : bool
        True adds one decoy to the observed decoys at all thresholds.
    decoy_ratio : float
        Decoy candidates per target candidate.
    scale : ScoreScale or None
        Prior parameters of the score's decoy tail, used if all classes have few decoys; None for a trained score.
    peptide : ndarray of int64, shape (n,), optional
        Number shared by all peptidoforms of a peptide and its decoy partner; None if the rows are independent. If given, decoy tails are
        fitted to the best score of each decoy peptide. They are then multiplied by the mean number of rows per decoy peptide, or, without
        decoys, per peptide. In every class except the main class, the larger of two error rates is used: the rate of all matches, and the
        rate of the best matches of the peptides.
    advantages : ndarray of float64, shape (classes,), optional
        Score advantage of each class (see `class_advantages`). If given, each class is rated by its own decoys, and the main class also by
        distinct peptides; requires `peptide`.

    Returns
    -------
    q_value : ndarray of float64, shape (n,)
        NaN for classes without a rate.
    posterior_error : ndarray of float64, shape (n,)
    """
    methods = class_methods(is_decoy, match_class)
    unit = None if peptide is None else 2 * np.unique(peptide, return_inverse=True)[1] + is_decoy
    level = _Level(score, is_decoy, match_class, methods, plus_one=plus_one, decoy_ratio=decoy_ratio)
    if unit is None or (advantages is None and len(methods) < 2):
        q_value = level.q_values(*level.expected(unit, scale))
    elif advantages is None:
        q_value, others = level.q_values(*level.expected(unit, scale)), match_class != _MAIN
        no_leads = np.zeros(max(methods) + 1)
        q_value[others] = np.maximum(q_value, _by_peptide(level, unit, scale, no_leads))[others]
    else:
        # With group-walk, small classes of mass shifts with few errors would get the rate of the large class of unnamed shifts.
        by_own_decoys: dict[int, ClassRate] = {number: method if method == "none" else "own decoys" for number, method in methods.items()}
        level = level._replace(methods=by_own_decoys)
        q_value = np.maximum(level.q_values(np.zeros((2, len(score))), {}), _by_peptide(level, unit, scale, advantages))
    return q_value, _posterior_errors(score, is_decoy, match_class, methods, decoy_ratio)


class _Level(NamedTuple):
    """Matches, or the best matches of peptides, that are counted to estimate error rates; see `class_rates` for the attributes."""

    score: NDArray[np.float64]
    is_decoy: NDArray[np.bool_]
    match_class: NDArray[np.int64]
    methods: dict[int, ClassRate]
    plus_one: bool
    decoy_ratio: float

    def expected(
        self, unit: NDArray[np.int64] | None, scale: ScoreScale | None, advantages: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], dict[int, float]]:
        """Return the expected number of decoys at or above each score, and the mean number of rows per decoy peptide.

        The first result has the shape (2, n): row 0 is the number of decoys expected among all matches at or above the score of each match,
        row 1 the number expected in the class of the match. The second result is a dictionary by class; its key -1 means all matches.
        """
        of_all, at_once = self._decoys(np.ones(len(self.score), np.bool_), unit)
        tail = DecoyTail.fit(of_all, scale)
        expected, events = np.empty((2, len(self.score))), {-1: at_once}
        expected[0] = at_once * (np.ones(len(self.score)) if tail is None else tail.at(self.score))
        for number in self.methods:
            rows = self.match_class == number
            if rows.all():
                expected[1], events[number] = expected[0], at_once
                continue
            decoys, events[number] = self._decoys(rows, unit)
            advantage = 0.0 if advantages is None else float(advantages[number])
            expected[1, rows] = events[number] * _expected(decoys, tail, advantage, self.score[rows])
        return expected, events

    def _decoys(self, rows: NDArray[np.bool_], unit: NDArray[np.int64] | None) -> tuple[NDArray[np.float64], float]:
        """Return decoy scores, and the mean number of rows per decoy peptide, for the matches selected by the mask `rows`.

        With `unit` (peptide of each match), the scores are the best score of each decoy peptide; without decoys, the mean is over all
        peptides. Without `unit`, all decoy scores are returned, and the mean is 1.
        """
        decoys = np.flatnonzero(rows & self.is_decoy)
        if unit is None or not rows.any():
            return self.score[decoys], 1.0
        counted = decoys if len(decoys) else np.flatnonzero(rows)
        best = decoys[best_by_group(unit[decoys], self.score[decoys])]
        return self.score[best], len(counted) / len(np.unique(unit[counted]))

    def q_values(self, expected: NDArray[np.float64], events: dict[int, float]) -> NDArray[np.float64]:
        """Return the q-value of each match, NaN for classes without a rate; the arguments are the results of the method `expected`."""
        q_value = np.full(len(self.score), np.nan)
        added = np.ones(len(self.score)) if self.plus_one else np.minimum(expected[0], events.get(-1, 1.0))
        for number, method in self.methods.items():
            rows = self.match_class == number
            if method == "none":
                continue
            q_value[rows] = q_values(
                self.score[rows],
                self.is_decoy[rows],
                plus_one=self.plus_one,
                decoy_ratio=self.decoy_ratio,
                expected=expected[1, rows],
                at_once=events.get(number, 1.0),
            )
            if method == "transferred":
                lowest, ratio = minimum_share(rows[self.is_decoy]), self.decoy_ratio
                transferred = transferred_rates(self.score, self.is_decoy, rows, added=added, lowest_share=lowest, decoy_ratio=ratio)
                q_value[rows] = np.maximum(q_value[rows], transferred)
        walks = np.isin(self.match_class, [number for number, method in self.methods.items() if method == "group-walk"])
        if walks.any():
            walked = group_walk(
                self.score[walks],
                self.is_decoy[walks],
                self.match_class[walks],
                expected=None if self.plus_one else expected[1, walks],
                at_once=events.get(-1, 1.0),
                decoy_ratio=self.decoy_ratio,
            )
            q_value[walks] = np.maximum(q_value[walks], walked)
        return q_value


def _by_peptide(level: _Level, unit: NDArray[np.int64], scale: ScoreScale | None, advantages: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the q-value of each match, estimated from the best match of each peptide in each class.

    The q-value of a match is the q-value of a peptide of its class: the lowest-scoring peptide that scores at least as high as the match.
    """
    in_class = unit * (int(level.match_class.max(initial=0)) + 1) + level.match_class
    best = best_by_group(in_class, level.score)
    of_best = level._replace(score=level.score[best], is_decoy=level.is_decoy[best], match_class=level.match_class[best])
    by_peptide = of_best.q_values(*of_best.expected(unit[best], scale, advantages))
    q_value = np.empty(len(level.score))
    for number in level.methods:
        rows, peptides = level.match_class == number, of_best.match_class == number
        order = np.argsort(of_best.score[peptides], kind="stable")
        q_value[rows] = by_peptide[peptides][order][np.searchsorted(of_best.score[peptides][order], level.score[rows])]
    return q_value


def _expected(of_class: NDArray[np.float64], of_all: DecoyTail | None, advantage: float, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected number of decoys of a class at or above each score in `at`.

    `of_class` are the scores of the decoys of the class, `of_all` is the tail of the decoys of all classes, or None, and `advantage` is the
    score advantage of the class.
    """
    tail = DecoyTail.fit(of_class)
    if tail is not None:
        return tail.at(at)
    if of_all is None:
        return np.ones(len(at))
    base = of_all.base + advantage
    above = float((of_class - base).clip(min=0.0).mean()) if len(of_class) else 0.0
    return DecoyTail(base, len(of_class) + 1.0, max(of_all.spread, above)).at(at)


def _posterior_errors(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    match_class: NDArray[np.int64],
    methods: dict[int, ClassRate],
    decoy_ratio: float,
) -> NDArray[np.float64]:
    """Return the posterior error probability of each match, estimated from the matches of its class; NaN for method ``none``.

    For classes with method ``transferred``, the probability estimated from all classes is used if it is larger.
    """
    result = np.full(len(score), np.nan)
    for number, method in methods.items():
        rows = match_class == number
        if method != "none":
            result[rows] = posterior_error_probabilities(score[rows], is_decoy[rows], decoy_ratio)
        if method == "transferred":
            result[rows] = np.maximum(result[rows], posterior_error_probabilities(score, is_decoy, decoy_ratio)[rows])
    return result
