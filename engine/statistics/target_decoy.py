"""Target-decoy statistics: q-values of ranked matches, and the best match of each group.

Targets and decoys are searched together and compete, so that a false match falls on either with the same chance (Elias & Gygi 2007, Nature
Methods 4:207). At a threshold t the false discovery rate among the accepted targets is then estimated by

    FDR(t) = (decoys with score >= t  [+ 1]) / (targets with score >= t)

and the q-value of a match is the least FDR of all thresholds that still accept it (Storey & Tibshirani 2003; Käll 2008, J Proteome Res
7:29). The + 1 makes the estimate conservative in small sets (He 2015, arXiv:1501.00537; Levitsky 2017, J Proteome Res 16:393). It is off
by default: the plain ratio is what most engines report; with it no set of fewer than 100 targets can reach 1 %.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_by_group", "false_share_interval", "q_values"]

_TAIL = 0.025  # on either side of an interval of 95 %


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
    """95 % interval of the share of false ones among accepted targets, from the decoys that were accepted with them.

    A false match is a target or a decoy with the same chance, so of N false ones d are decoys with d ~ Binomial(N, 1/2). The interval holds
    every N under which so few and so many decoys are each likelier than 2.5 %: it is Clopper & Pearson's (1934, Biometrika 26:404), turned
    around to ask for N, and exact for what is asked, the false ones in this very list, where the rate behind them would come out narrower.
    With no decoy at all up to 5 targets may be false.

    Parameters
    ----------
    targets, decoys : counts at or above one threshold.

    Returns
    -------
    Least and greatest share, in [0, 1]; (0, 1) without targets.

    Raises
    ------
    ValueError : a number is negative.

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
    # P(d or fewer decoys of N) falls with N, P(d or more) rises.
    fewest = _first(lambda n: 1.0 - _at_most(decoys - 1, n) > _TAIL, decoys, 2 * decoys + 1)
    most = _first(lambda n: _at_most(decoys, n) <= _TAIL, decoys, 4 * decoys + 64) - 1
    return min(1.0, (fewest - decoys) / targets), min(1.0, (most - decoys) / targets)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """First of the numbers from `low` on for which a condition holds that holds for `high` and, once it holds, for all that follow."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _at_most(k: int, n: int) -> float:
    """Probability of at most `k` heads in `n` tosses."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    steps = np.arange(1, k + 1, dtype=np.float64)
    log_terms = np.concatenate(([0.0], np.cumsum(np.log(n - steps + 1) - np.log(steps)))) - n * np.log(2.0)
    return float(np.exp(log_terms).sum())


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
