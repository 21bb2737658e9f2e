"""Target-decoy statistics: q-values of ranked matches, and the best match of each group.

Targets and decoys are searched together and compete, so that a false match is a target or a decoy with equal probability (Elias & Gygi
2007, Nature Methods 4:207). At a threshold t, the false discovery rate among the accepted targets is then estimated by

    FDR(t) = (decoys with score >= t  [+ 1]) / (targets with score >= t) / r

where r, the decoy ratio, is the number of decoy candidates per target candidate: 1 if every target has its decoy, less if a user's list of
decoys is incomplete (a false match is then a decoy with probability r / (1 + r); Levitsky 2017, J Proteome Res 16:393). The q-value of a
match is the lowest FDR of all thresholds that still accept it (Storey & Tibshirani 2003; Käll 2008, J Proteome Res 7:29).

The plain ratio is too optimistic: the selected threshold is the one above which decoys happen to be absent for longest, so that the
accepted list contains on average one false target more than decoys, which is 3 % of a list of 33. The + 1 corrects this for lists of any
length (He 2015, arXiv:1501.00537; Levitsky 2017, J Proteome Res 16:393), but with it, fewer than 100 targets never reach 1 %. However, the
number of decoys that are absent by chance can be estimated: the tail of the distribution is known from many decoys, and its extrapolation
gives the number of decoys expected above a threshold (`expected_decoys`). That number, at most 1, is added to the observed decoys. If one
false peptide has several matches, as in replicates, the number is multiplied by the mean number of matches per decoy peptide.

The tail starts at the median of the decoys. On simulated lists of 16 distributions of best scores, 8 to select the rule and 8 to confirm it
(`benchmarks/decoy_tails.py`), the mean false discovery proportion was, in % at a nominal 1 %, for lists of about 20, 60, 200, 1,000 and
5,000 targets:

    rule                        selected on                   confirmed on                  worst distribution
    no addition                 3.93  1.50  1.36  1.03  1.01  3.73  1.42  1.23  1.00  0.98  1.80 and 1.79
    tail from the median        0.51  0.79  0.87  0.93  0.99  0.60  0.78  0.78  0.91  0.96  0.94 and 0.97
    from the upper quartile     0.98  1.14  0.88  0.93  0.99  0.88  1.00  0.78  0.91  0.96  1.05 and 1.06
    quartile from 40 decoys on  0.51  0.98  0.88  0.93  0.99  0.60  0.88  0.78  0.91  0.96  0.96 and 0.98
    1 always                    0     0     0.85  0.93  0.99  0     0     0.76  0.91  0.96  0.58 and 0.57

With the upper quartile, two of the 8 distributions in each set exceeded the rate by more than its error; with the median, none did. For
single distributions with heavy tails, at 60 targets, the median gave up to 1.1 % and the quartile up to 1.3 %. Using the expected decoys
only where they exceed the observed ones gave 6.5 % for 20 targets at a nominal 5 %; adding them gave 3.9 %.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start

__all__ = ["DecoyTail", "ScoreScale", "best_by_group", "expected_decoys", "false_share_interval", "q_values"]

_TAIL = 0.025  # probability on either side of a 95 % interval
_ENOUGH_DECOYS = 10  # minimum for estimating the tail without prior knowledge
_TAIL_QUANTILE = 0.5  # quantile of the decoys where their tail starts (see the module's docstring)


class ScoreScale(NamedTuple):
    """Prior knowledge about a score: above `base`, the number of false matches decreases by a factor of e per `spread`.

    In a fit, this knowledge counts as much as `weight` observed decoys.
    """

    base: float
    spread: float
    weight: float


class DecoyTail(NamedTuple):
    """Exponential tail of decoy scores: `number` decoys are expected above `base`, on average by `spread`.

    The actual number of decoys decreases with the score at least as fast as this tail, so that estimates from the tail are conservative.
    """

    base: float
    number: float
    spread: float

    @classmethod
    def fit(cls, decoys: NDArray[np.float64], scale: ScoreScale | None = None) -> DecoyTail | None:
        """Return the tail of decoy scores above their median, or None.

        Parameters
        ----------
        decoys : ndarray of float64, shape (n,)
            Scores of decoys.
        scale : ScoreScale, optional
            Prior knowledge of the score, used with fewer than 10 decoys.

        Returns
        -------
        DecoyTail or None
            None for fewer than 10 decoys without a scale.
        """
        if len(decoys) >= _ENOUGH_DECOYS:
            base = float(np.quantile(decoys, _TAIL_QUANTILE))
            excess = decoys[decoys > base] - base
            return cls(base, max(len(excess), 0.5), float(excess.sum()) / max(len(excess), 1))
        if scale is None:
            return None
        excess = decoys[decoys > scale.base] - scale.base
        spread = (float(excess.sum()) + scale.weight * scale.spread) / (len(excess) + scale.weight)
        return cls(scale.base, len(excess) + 0.5, spread)

    def at(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the number of decoys expected at or above each score (m,), not increasing with the score."""
        expected: NDArray[np.float64] = self.number * np.exp(-np.maximum(score - self.base, 0.0) / max(self.spread, 1e-12))
        return expected


def q_values(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    *,
    plus_one: bool = False,
    decoy_ratio: float = 1.0,
    expected: NDArray[np.float64] | None = None,
    at_once: float = 1.0,
) -> NDArray[np.float64]:
    """Return the minimum false discovery rate at which each match is accepted.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores, higher is better, no NaN. Matches with equal scores are accepted together.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    plus_one : bool
        True to count one decoy more than observed (see the module description).
    decoy_ratio : float
        Decoy candidates per target candidate, above 0.
    expected : ndarray of float64, shape (n,), optional
        Number of decoys expected at or above each score. This number, but at most `at_once`, is added to the number of observed decoys.
        Not used with `plus_one`.
    at_once : float
        Number of decoys that one false peptide gives: 1, or the mean number of matches per peptide if matches are counted.

    Returns
    -------
    ndarray of float64, shape (n,)
        q-values from 0 to 1, not increasing with the score. Decoys also have the value for their score.

    Raises
    ------
    ValueError
        If the shapes differ, or a score is NaN.

    Examples
    --------
    >>> q_values(np.array([9.0, 8.0, 7.0, 6.0]), np.array([False, False, True, False]))
    array([0.        , 0.        , 0.33333333, 0.33333333])
    """
    score = np.asarray(score, np.float64)
    is_decoy = np.asarray(is_decoy, bool)
    if score.ndim != 1 or score.shape != is_decoy.shape:
        raise ValueError(f"score {score.shape} and is_decoy {is_decoy.shape} must be one-dimensional and of the same length")
    if np.isnan(score).any():
        raise ValueError("a score is NaN")
    if len(score) == 0:
        return np.empty(0)
    order = np.argsort(score)[::-1]
    ranked = score[order]
    decoys = np.cumsum(is_decoy[order])
    targets = np.arange(1, len(score) + 1) - decoys
    tie_ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    counted = (decoys[tie_ends] + plus_one).astype(np.float64)
    if expected is not None and not plus_one:
        counted += np.minimum(expected[order][tie_ends], at_once)
    rate = np.minimum(counted / decoy_ratio / np.maximum(targets[tie_ends], 1), 1.0)
    rate[targets[tie_ends] == 0] = 1.0
    lowest_rate = np.minimum.accumulate(rate[::-1])[::-1]
    q = np.empty(len(score))
    q[order] = np.repeat(lowest_rate, np.diff(tie_ends, prepend=-1))
    return q


def expected_decoys(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], at: NDArray[np.float64], scale: ScoreScale | None = None
) -> NDArray[np.float64]:
    """Return the number of decoys expected at or above given scores, from the tail of all decoys.

    The excess of decoys over their median is assumed to be exponentially distributed: the tail of best scores is exponential or lighter, so
    that the estimate is conservative. With fewer than 10 decoys, the expected number at `scale.base` is the number of decoys above this
    base plus one half, and it decreases above the base with a spread that is shrunk towards `scale.spread`. Without a scale, one decoy is
    expected everywhere.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of all matches that compete.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    at : ndarray of float64, shape (m,)
        Scores at which the number is estimated.
    scale : ScoreScale, optional
        Prior knowledge of the score.

    Returns
    -------
    ndarray of float64, shape (m,)
        Not increasing with the score.

    Examples
    --------
    >>> decoys = np.repeat(np.arange(10.0), 4)
    >>> expected_decoys(decoys, np.ones(40, bool), np.array([4.5, 7.0, 20.0])).round(3)
    array([20.   ,  7.358,  0.041])
    """
    tail = DecoyTail.fit(score[is_decoy], scale)
    return np.ones(len(at)) if tail is None else tail.at(at)


def false_share_interval(targets: int, decoys: int, decoy_ratio: float = 1.0) -> tuple[float, float]:
    """Return a 95 % confidence interval of the fraction of accepted targets that are false, from the decoys accepted with them.

    A false match is a target or a decoy with equal probability, so that the number d of decoys among N false matches is distributed as
    Binomial(N, 1/2). The interval contains every N for which at most d decoys, and also at least d decoys, have a probability above 2.5 %:
    this is the interval of Clopper & Pearson (1934, Biometrika 26:404), solved for N. It is exact for the number of false matches in this
    list; an interval for the underlying rate would be narrower. Without decoys, up to 5 targets may be false. If targets lack decoys, r /
    (1 + r) replaces 1/2, where r is the decoy ratio.

    Parameters
    ----------
    targets, decoys : int
        Counts at or above one threshold.
    decoy_ratio : float
        Decoy candidates per target candidate, above 0.

    Returns
    -------
    float, float
        Minimum and maximum fraction, 0 to 1; (0, 1) without targets.

    Raises
    ------
    ValueError
        If a count is negative.

    Examples
    --------
    >>> false_share_interval(50, 0)
    (0.0, 0.1)
    >>> low, high = false_share_interval(10_000, 100)
    >>> round(low, 4), round(high, 4)
    (0.0074, 0.013)
    """
    if targets < 0 or decoys < 0:
        raise ValueError(f"{targets} targets and {decoys} decoys: neither can be negative")
    if targets == 0:
        return 0.0, 1.0
    # P(d or fewer decoys of N) decreases with N, P(d or more) increases.
    fraction, scale = decoy_ratio / (1 + decoy_ratio), max(1.0, 1 / decoy_ratio)
    minimum = _bisect(lambda n: 1.0 - _at_most(decoys - 1, n, fraction) > _TAIL, decoys, int((2 * decoys + 1) * scale))
    maximum = _bisect(lambda n: _at_most(decoys, n, fraction) <= _TAIL, decoys, int((4 * decoys + 64) * scale)) - 1
    return min(1.0, (minimum - decoys) / targets), min(1.0, (maximum - decoys) / targets)


def _bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number in [low, high] for which `holds` is True, by bisection; `holds` must be monotone and True for `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _at_most(k: int, n: int, fraction: float) -> float:
    """Return the probability of at most `k` successes in `n` trials with success probability `fraction`."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    steps = np.arange(1, k + 1, dtype=np.float64)
    odds = np.log(fraction) - np.log1p(-fraction)
    log_terms = np.concatenate(([0.0], np.cumsum(np.log(n - steps + 1) - np.log(steps) + odds))) + n * np.log1p(-fraction)
    return float(np.exp(log_terms).sum())


def best_by_group(group: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the row with the best score of each group, such as a spectrum or a peptide.

    Parameters
    ----------
    group : ndarray of int64, shape (n,)
        Group of each row: any values in any order.
    score : ndarray of float64, shape (n,)
        Scores, higher is better, no NaN. With equal scores, the first row is the best, so an order of rows that prefers targets would bias
        the competition.

    Returns
    -------
    ndarray of int64, shape (g,)
        Row of the best score of each distinct group, ascending by group.
    """
    group, score = np.asarray(group), np.asarray(score, np.float64)
    if len(group) == 0:
        return np.empty(0, np.int64)
    if (group[1:] > group[:-1]).all():  # most searches report one match per spectrum, in this order
        return np.arange(len(group))
    order = np.lexsort((-score, group))
    firsts: NDArray[np.int64] = order[is_group_start(group[order])]
    return firsts
