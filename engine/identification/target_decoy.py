"""Target-decoy statistics: q-values of ranked matches, how certain they are, and the best match of each group.

Targets and decoys are searched together and compete, so that a false match falls on either with the same chance (Elias & Gygi 2007, Nature
Methods 4:207). At a threshold t the false discovery rate among the accepted targets is then estimated by

    FDR(t) = (decoys with score >= t  [+ 1]) / (targets with score >= t)

and the q-value of a match is the least FDR of all thresholds that still accept it (Storey & Tibshirani 2003; Käll 2008, J Proteome Res
7:29). The + 1 makes the estimate conservative in small sets (He 2015, arXiv:1501.00537; Levitsky 2017, J Proteome Res 16:393). It is off
by default: the plain ratio is what most engines report; with it no set of fewer than 100 targets can reach 1 %.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_by_group", "false_share_interval", "q_values"]

_TAIL = 0.025


def q_values(score: NDArray[np.float64], is_decoy: NDArray[np.bool_], *, plus_one: bool = False) -> NDArray[np.float64]:
    """Least false discovery rate at which each match is accepted.

    Parameters
    ----------
    score : float64 (n,), higher is better, no NaN. Equal scores share a threshold, whatever their order.
    is_decoy : bool (n,).
    plus_one : count one decoy more than seen (see the head of this file); off by default.

    Returns
    -------
    float64 (n,), in [0, 1], never rising with the score. Decoys get the value of their threshold too.

    Raises
    ------
    ValueError : the arrays do not match or a score is NaN.

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
    last_of_ties = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    rate = np.minimum((decoys[last_of_ties] + plus_one) / np.maximum(targets[last_of_ties], 1), 1.0)
    rate[targets[last_of_ties] == 0] = 1.0
    least = np.minimum.accumulate(rate[::-1])[::-1]
    q = np.empty(len(score))
    q[order] = np.repeat(least, np.diff(last_of_ties, prepend=-1))
    return q


def false_share_interval(targets: int, decoys: int) -> tuple[float, float]:
    """Where the share of false matches among the accepted targets lies, with 95 % confidence.

    Decoys stand for the false ones among the targets. Their number among all that is accepted is one draw of chance: the exact interval of
    its probability p (Clopper & Pearson 1934, Biometrika 26:404) becomes one of decoys / targets by p / (1 - p).

    Parameters
    ----------
    targets, decoys : what is accepted at a threshold, not negative.

    Returns
    -------
    Low and high end, in [0, 1]; (0, 1) where nothing is accepted.

    Raises
    ------
    ValueError : a number is negative.

    Examples
    --------
    >>> low, high = false_share_interval(283, 2)
    >>> f"{low:.4f} to {high:.4f}"
    '0.0009 to 0.0258'
    """
    if targets < 0 or decoys < 0:
        raise ValueError(f"{targets} targets and {decoys} decoys: neither can be negative")
    low = _beta_quantile(_TAIL, decoys, targets + 1) if decoys else 0.0
    high = _beta_quantile(1 - _TAIL, decoys + 1, targets) if targets else 1.0
    return tuple(min(1.0, p / (1 - p)) if p < 1 else 1.0 for p in (low, high))  # type: ignore[return-value]


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """The x at which the beta distribution with shapes a and b reaches a probability, by halving."""
    low, high = 0.0, 1.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _beta_distribution(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_distribution(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22)."""
    if x > (a + 1) / (a + b + 2):  # on this side of the mode the fraction of the mirrored distribution converges faster
        return 1 - _beta_distribution(1 - x, b, a)
    if x <= 0:
        return 0.0
    # Convergents of 1 + d1 / (1 + d2 / (1 + ...)) as a product of ratios, after Lentz (1976, Applied Optics 15:668).
    value = numerator = 1.0
    denominator, m = 0.0, 0
    while True:
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)) if m else 0.0
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for d in (even, odd) if m else (odd,):
            denominator = 1 / (1 + d * denominator)
            numerator = 1 + d / numerator
            value *= numerator * denominator
        m += 1
        if abs(value - before) <= 1e-15 * abs(value):
            break
    weight = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(weight) / (a * value)


def best_by_group(group: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    """Row of the best score in each group (a spectrum, a peptide ...).

    Parameters
    ----------
    group : int64 (n,), any values in any order.
    score : float64 (n,), higher is better, no NaN. Of equal scores the first row wins: rows in an order that prefers targets would bias
        the competition.

    Returns
    -------
    int64 (g,), one row for each distinct group, ascending by group.
    """
    group, score = np.asarray(group), np.asarray(score, np.float64)
    if len(group) == 0:
        return np.empty(0, np.int64)
    if (group[1:] > group[:-1]).all():  # most searches report one match of each spectrum, in this order
        return np.arange(len(group))
    order = np.lexsort((-score, group))
    ranked = group[order]
    return order[np.append(True, ranked[1:] != ranked[:-1])]
