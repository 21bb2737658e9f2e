"""q-values of targets that each compete with several decoys, by the max method.

A hypothesis, such as that a peptide is in the sample, has a target and d decoys, and its score is the best of all. If the hypothesis is
false, target and decoys are exchangeable, so that the target wins with probability 1 / (d + 1), even if the scores of target and decoys
depend on each other. Emery, Hasam, Noble & Keich (2020, RECOMB, LNCS 12074:54) count a target win if the rank of the target among the d + 1
scores, as a p-value, is at most c, and a decoy win if it is above lambda, and estimate

    FDR(t) = (1 + decoy wins with score >= t) / (target wins with score >= t) * c / (1 - lambda)

c and lambda must not depend on counts. Of the suggested values, the max method uses c = lambda = 1 / (d + 1), so that the factor is 1 / d:
a list of n targets reaches a rate of 1 / (d n). With c = lambda = 1/2 (mirror, mirandom), the rate would be 1 / n, as with one decoy. He et
al. (2015, arXiv:1501.00537) show that the estimate with the added 1 holds for lists of any length.

If hypotheses have different numbers of decoys, each decoy win counts as 1 / d of its hypothesis, and the added 1 becomes the largest 1 / d
of the hypotheses at or above the threshold. This maximum includes hypotheses that a target wins as well as those that a decoy wins, so that
it is known without the winners.
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start

__all__ = ["competition_q_values"]


def competition_q_values(
    score: NDArray[np.float64], is_decoy: NDArray[np.bool_], hypothesis: NDArray[np.int64], n_decoys: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the minimum false discovery rate of hypotheses at which each match is accepted.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Scores of target and decoy matches; higher is better, no NaN. Equal scores share a threshold; with equal best scores, a decoy wins.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    hypothesis : ndarray of int64, shape (n,)
        Hypothesis of each match, equal for a target and its decoys.
    n_decoys : ndarray of float64, shape (n,)
        Number of decoys that compete with the target of the hypothesis, above 0.

    Returns
    -------
    ndarray of float64, shape (n,)
        q-values from 0 to 1, not increasing with the score. A target that loses against its decoys also has the value for its score.

    Examples
    --------
    >>> score, is_decoy = np.array([9.0, 8.0, 7.0, 6.0]), np.array([False, False, True, False])
    >>> competition_q_values(score, is_decoy, np.arange(4), np.full(4, 4.0))
    array([0.125     , 0.125     , 0.16666667, 0.16666667])
    """
    if len(score) == 0:
        return np.empty(0)
    order = np.lexsort((~is_decoy, -score, hypothesis))
    winners = order[is_group_start(hypothesis[order])]
    winners = winners[np.argsort(-score[winners], kind="stable")]
    weight, decoy = 1.0 / n_decoys[winners], is_decoy[winners]
    ranked = -score[winners]
    targets = np.cumsum(~decoy)
    rate = (np.maximum.accumulate(weight) + np.cumsum(weight * decoy)) / np.maximum(targets, 1)
    rate[targets == 0] = 1.0
    tie_ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    lowest_rate = np.minimum.accumulate(np.minimum(rate[tie_ends], 1.0)[::-1])[::-1]
    # The winners at or above the score of a match include the winner of its own hypothesis.
    q_value: NDArray[np.float64] = lowest_rate[np.searchsorted(ranked[tie_ends], -score, side="right") - 1]
    return q_value
