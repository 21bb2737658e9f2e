"""Posterior error probability: the probability that a match is false (whereas a q-value is the false fraction of all accepted matches).

If targets and decoys compete, as many false targets as decoys are expected at each score. With d(s), the fraction of decoys among the
matches with score s, the posterior error probability of a target is therefore d / (1 - d), at most 1. d is estimated by a logistic
regression of the decoy label on a natural cubic smoothing spline of the score, the method of qvality (Käll 2008, Bioinformatics 24:i42),
with smoothness selected by the Akaike criterion, followed by isotonic regression for monotonicity.
"""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import is_group_start
from proteoscope.engine.execution.libraries import one_algebra_thread

__all__ = ["posterior_error_probabilities"]

Floats = NDArray[np.float64]

_BINS = 120  # number of equally large groups of scores; more groups change the curve by less than its error
_SMOOTHNESS = 10.0 ** np.arange(-4.0, 4.1, 1.0)
_MODES = 24  # number of smoothest components of the spline used by the fit
_SMALLEST = 1e-16  # smoothness (see `_smoothest_modes`) below which a component is only rounding errors
_LARGEST_LOGIT = 30.0
_CONVERGED = 1e-6  # of a logit; a larger step, and thus the number of steps, would depend on rounding errors
_ROUNDING = 1e-12  # fraction of the range of scores


def posterior_error_probabilities(
    score: NDArray[np.float64],
    is_decoy: NDArray[np.bool_],
    decoy_ratio: float = 1.0,
    *,
    at: NDArray[np.float64] | None = None,
    is_straight: bool = False,
) -> NDArray[np.float64]:
    """Return the probability that a match with each score is false.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Finite scores, higher is better, of the best match of each spectrum in a common search of targets and decoys.
    is_decoy : ndarray of bool, shape (n,)
        True for decoys.
    decoy_ratio : float
        Decoy candidates per target candidate, above 0 (see `proteoscope.engine.statistics.target_decoy`).
    at : ndarray of float64, shape (m,), optional
        Finite scores for which probabilities are returned; by default the scores of the matches (m = n).
    is_straight : bool
        True for a logit that is linear in the score, which has two parameters and varies less with few decoys.

    Returns
    -------
    ndarray of float64, shape (m,)
        From 0 to 1, not increasing with the score; 1 everywhere without targets. Decoys have the same probability as targets of equal
        score. Half a decoy is always added, so that probabilities are above 0 even without decoys.

    Raises
    ------
    ValueError
        If the shapes differ, or a score is not finite.
    """
    score = np.asarray(score, np.float64)
    is_decoy = np.asarray(is_decoy, bool)
    if score.ndim != 1 or score.shape != is_decoy.shape:
        raise ValueError(f"score {score.shape} and is_decoy {is_decoy.shape} must be one-dimensional and of the same length")
    if not np.isfinite(score).all():
        raise ValueError("a score is not finite")
    at = score if at is None else at
    if is_decoy.all():
        return np.ones(len(at))
    centre, decoys, total = _pool_scores(score, is_decoy)
    # Adding half a decoy and half a target, spread evenly, makes the logits finite where the classes do not overlap.
    fraction = (decoys + 0.5 * total / total.sum()) / (total + total / total.sum())
    if len(centre) > 2:
        with one_algebra_thread():
            fraction = _expit(_smooth_logit(centre, fraction, total, _SMOOTHNESS[-1:] if is_straight else _SMOOTHNESS))
    logit = _logit(_isotonic_regression(fraction, total))
    return np.minimum(np.exp(_extrapolate(at, centre, logit)) / decoy_ratio, 1.0)  # d / (1 - d) is the exponential of d's logit


def _pool_scores(score: Floats, is_decoy: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Group matches with neighbouring scores; return each group's mean score (ascending), number of decoys and number of matches.

    Scores that differ only by rounding errors are in the same group.
    """
    order = np.argsort(score)
    ranked = score[order]
    new_score = np.append(True, np.diff(ranked) > _ROUNDING * (ranked[-1] - ranked[0]))
    # A group begins at the first distinct score at or after each of `_BINS` equal fractions of the rows.
    group = (np.flatnonzero(new_score) * min(_BINS, len(score))) // len(score)
    begin = np.flatnonzero(new_score)[is_group_start(group)]
    total = np.diff(begin, append=len(score)).astype(np.float64)
    centre = np.add.reduceat(ranked - ranked[0], begin) / total + ranked[0]
    return centre, np.add.reduceat(is_decoy[order].astype(np.float64), begin), total


def _smooth_logit(x: Floats, fraction: Floats, total: Floats, smoothness_values: Floats) -> Floats:
    """Return the logit of the decoy fraction at the ascending points x, by a natural cubic smoothing spline.

    The smoothness is selected from `smoothness_values` by the Akaike criterion.
    """
    roughness, modes = _smoothest_modes((x - x[0]) / (x[-1] - x[0]))
    best, lowest = np.zeros(len(x)), np.inf
    curve = np.full(len(x), _logit(np.array([fraction @ total / total.sum()]))[0])
    for smoothness in smoothness_values[::-1]:
        curve, criterion = _penalised_logistic(curve, fraction, total, modes, smoothness * roughness)
        if criterion < lowest:
            best, lowest = curve, criterion
    return best


def _penalised_logistic(curve: Floats, fraction: Floats, total: Floats, modes: Floats, penalty: Floats) -> tuple[Floats, float]:
    """Return the logits fitted by Fisher scoring, and the Akaike criterion: deviance plus twice the effective number of parameters."""
    for _ in range(30):
        fitted = _expit(curve)
        weight = np.maximum(total * fitted * (1 - fitted), 1e-6)
        information = (modes * weight[:, None]).T @ modes
        response = modes.T @ (weight * curve + total * (fraction - fitted))
        step = modes @ np.linalg.solve(information + np.diag(penalty), response) - curve
        curve = np.clip(curve + np.clip(step, -4, 4), -_LARGEST_LOGIT, _LARGEST_LOGIT)
        if np.abs(step).max() < _CONVERGED:
            break
    # log(share) and log(1 - share) of the fit, in a form that never takes the logarithm of a rounded 0.
    deviance = 2 * float(total @ (fraction * np.logaddexp(0, -curve) + (1 - fraction) * np.logaddexp(0, curve)))
    parameters = float(np.trace(np.linalg.solve(information + np.diag(penalty), information)))
    return curve, deviance + 2 * parameters


def _smoothest_modes(x: Floats) -> tuple[Floats, Floats]:
    """Return the smoothest orthogonal components of natural cubic splines through n points, as columns (n, m), and the roughness of each.

    The roughness of a spline g is the integral of g''^2; the penalty would suppress other components anyway. Straight lines have none. For
    values orthogonal to all lines, the roughness is the inverse of the matrix of |x - y|^3 / 12 (Green & Silverman 1994, sections 2.1 and
    7.9). The roughness matrix itself has huge elements for nearly equal scores, and smooth components would be lost in rounding errors.
    """
    basis = np.linalg.qr(np.stack((np.ones(len(x)), x), axis=1), mode="complete").Q
    bent = basis[:, 2:]
    smoothness, components = np.linalg.eigh(bent.T @ (np.abs(x[:, None] - x) ** 3 / 12) @ bent)
    smoothness, components = smoothness[: -_MODES + 1 : -1], components[:, : -_MODES + 1 : -1]  # the smoothest, with two straight ones
    roughness = np.append(np.zeros(2), 1 / np.maximum(smoothness, _SMALLEST))
    return roughness, np.hstack((basis[:, :2], bent @ components))


def _isotonic_regression(value: Floats, weight: Floats) -> Floats:
    """Return the non-increasing values with the smallest weighted sum of squared differences from `value` (pool adjacent violators)."""
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for mean, mass in zip(value.tolist(), weight.tolist(), strict=True):
        size = 1
        while means and means[-1] < mean:
            last = weights.pop()
            mean = (means.pop() * last + mean * mass) / (last + mass)
            mass, size = mass + last, size + sizes.pop()
        means.append(mean)
        weights.append(mass)
        sizes.append(size)
    return np.repeat(means, sizes)


def _extrapolate(score: Floats, centre: Floats, logit: Floats) -> Floats:
    """Return logits at the given scores, interpolated between the points (`centre`, `logit`), and extrapolated above the last point."""
    value = np.interp(score, centre, logit)
    if len(centre) >= 3:
        slope = (logit[-1] - logit[-2]) / (centre[-1] - centre[-2])
        value += np.minimum(slope, 0.0) * np.maximum(score - centre[-1], 0.0)
    return np.maximum(value, -_LARGEST_LOGIT)


def _logit(fraction: Floats) -> Floats:
    """Return the log odds of a fraction."""
    return np.log(fraction) - np.log1p(-fraction)


def _expit(logit: Floats) -> Floats:
    """Return the fraction with these log odds."""
    return 1 / (1 + np.exp(-logit))
