"""Significance of a score relative to unrelated chains of the same length."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["z_scores"]

_ROUNDS = 5
_FAR = 2.0  # standard deviations above the line; chains with higher scores count as related
_TO_DEVIATION = 1.4826  # standard deviation relative to the median absolute deviation, for a normal distribution
_FEWEST = 10  # minimum number of chains to fit a line


def z_scores(scores: NDArray[np.floating], lengths: NDArray[np.integer], is_fitted: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return z-scores: the difference of each score from the mean of unrelated chains of the same length, in standard deviations.

    The mean is a line over the logarithm of the length, fitted iteratively by least squares to the chains that are not far above
    it, since nearly all chains are unrelated to a query. The standard deviation is estimated from the median absolute deviation.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Scores of one query.
    lengths : ndarray of int, shape (n,)
        Length of each chain in residues.
    is_fitted : ndarray of bool, shape (n,), optional
        True for chains that are used in the fit; by default all.

    Returns
    -------
    ndarray of float64, shape (n,)
        z-scores; 0 if there are too few chains.
    """
    is_fitted = np.ones(len(scores), np.bool_) if is_fitted is None else is_fitted
    observed, logarithms = np.asarray(scores, np.float64)[is_fitted], np.log(np.maximum(lengths, 1))
    if len(observed) < _FEWEST:
        return np.zeros(len(scores))
    design = np.stack([np.ones(len(observed)), logarithms[is_fitted]], axis=1)
    near, line, deviation = np.ones(len(observed), np.bool_), np.zeros(2), 1.0
    for _ in range(_ROUNDS):
        line = np.linalg.lstsq(design[near], observed[near], rcond=None)[0]
        left = observed - design @ line
        deviation = max(1e-6, _TO_DEVIATION * float(np.median(np.abs(left - np.median(left)))))
        near = left < _FAR * deviation
        if near.sum() < _FEWEST:
            break
    standardised: NDArray[np.float64] = (np.asarray(scores, np.float64) - line[0] - line[1] * logarithms) / deviation
    return standardised
