"""Transferred subgroup FDR: error rates of a small class of matches from the decoys of all matches.

A class of few matches has too few decoys for a separate rate, and the rate of the whole list does not apply to it: rare classes contain
more false matches. Fu & Qian (2014, Mol Cell Proteomics 13:1359) derive the rate of a class k among its matches with score >= x,

    FDR_k(x) = gamma_k(x) D(x) / T_k(x)

from all decoys, D(x), the targets of the class, T_k(x), and the probability gamma_k(x) that a false match with score >= x belongs to the
class. Where there are many decoys, the share of the class among the decoys with score >= x estimates gamma_k(x). This share is close to a
linear function of x, so that a line, fitted to the shares at the scores of all decoys, gives gamma_k(x) at high scores, where decoys are
few or absent.

The line is fitted by least squares. Each share is weighted by its number of decoys, since its variance is inversely proportional to this
number.

The extrapolated line is uncertain where the class has few decoys, and a share that is too low by chance accepts more matches. On simulated
lists with classes of 12 to 60 true targets, the published estimate gave a mean false discovery proportion of 1.2 to 3.1 % at a nominal 1 %,
and of 4.3 to 7.4 % at 5 %. With a share of at least (k + 1) / (n + 1) for k of n decoys in the class (`minimum_share`), and the expected
decoys of `proteoscope.engine.statistics.target_decoy` added, it gave 0.7 to 0.9 %, and 3.6 to 4.4 %: with this minimum, the line can raise
the share of the class at high scores, but not lower it.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_share", "minimum_share", "transferred_rates"]


def minimum_share(is_of_class: NDArray[np.bool_]) -> float:
    """Return the share of a class among all decoys after adding one decoy of the class: (k + 1) / (n + 1) for k of n decoys."""
    return (np.count_nonzero(is_of_class) + 1.0) / (len(is_of_class) + 1.0)


def class_share(score: NDArray[np.float64], is_of_class: NDArray[np.bool_], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of a class among false matches with at least a given score, by a line fitted to decoys.

    Parameters
    ----------
    score : ndarray of float64, shape (d,)
        Scores of all decoys.
    is_of_class : ndarray of bool, shape (d,)
        True for the decoys of the class.
    at : ndarray of float64, shape (m,)
        Scores at which the share is estimated.

    Returns
    -------
    ndarray of float64, shape (m,)
        From 0 to 1; 1 without decoys.

    Examples
    --------
    >>> class_share(np.arange(8.0), np.arange(8) % 2 == 1, np.array([0.0, 20.0])).round(3)
    array([0.5  , 0.976])
    """
    if len(score) == 0:
        return np.ones(len(at))
    order = np.argsort(-score, kind="stable")
    ranked = score[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    x, weight = ranked[ends], (ends + 1.0)
    share = np.cumsum(is_of_class[order])[ends] / weight
    mean_x, mean_share = np.average(x, weights=weight), np.average(share, weights=weight)
    spread = float(weight @ (x - mean_x) ** 2)
    slope = float(weight @ ((x - mean_x) * (share - mean_share))) / spread if spread > 0 else 0.0
    result: NDArray[np.float64] = np.clip(mean_share + slope * (at - mean_x), 0.0, 1.0)
    return result


def transferred_rates(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    is_of_class: NDArray[np.bool_],
    *,
    added: NDArray[np.float64] | float = 0.0,
    lowest_share: float = 0.0,
    decoy_ratio: float = 1.0,
) -> NDArray[np.float64]:
    """Return the q-values of a class of matches, by the transferred subgroup FDR.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of all matches, higher is better, no NaN. Matches with equal scores are accepted together.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    is_of_class : ndarray of bool, shape (n,)
        True for the matches of the class.
    added : ndarray of float64, shape (n,), or float
        Number of decoys added to the observed decoys of all matches at or above each score; 0 is the published estimate.
    lowest_share : float
        Minimum share of the class among false matches (see `minimum_share`); 0 is the published estimate.
    decoy_ratio : float
        Decoy candidates per target candidate, above 0.

    Returns
    -------
    ndarray of float64, shape (k,)
        q-values of the matches of the class, in their order, from 0 to 1, not increasing with the score.

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    if np.isnan(score).any():
        raise ValueError("a score is NaN")
    of_class = score[is_of_class]
    if len(of_class) == 0:
        return np.empty(0)
    at, position = np.unique(of_class, return_inverse=True)  # ascending
    targets = _count_from(score[is_of_class & ~is_decoy], at)
    more = np.broadcast_to(np.asarray(added, np.float64), score.shape)[is_of_class]
    of_score = np.empty(len(at))
    of_score[position] = more
    share = np.maximum(class_share(score[is_decoy], is_of_class[is_decoy], at), lowest_share)
    false = share * (_count_from(score[is_decoy], at) + of_score) / decoy_ratio
    rate = np.where(targets > 0, np.minimum(false / np.maximum(targets, 1), 1.0), 1.0)
    q_value: NDArray[np.float64] = np.minimum.accumulate(rate)[position]  # lowest rate of all thresholds that accept the match
    return q_value


def _count_from(score: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of scores at or above each of the values `at`."""
    return len(score) - np.searchsorted(np.sort(score), at, side="left")
