"""Semi-supervised linear rescoring: learn from the run itself which features tell correct matches from decoys.

After Percolator (Käll 2007, Nature Methods 4:923): in turns, the targets that the present score accepts at 1 % and the decoys train a
linear model, and the model gives the next score. A match is scored only by a model that saw no match of its spectrum (Granholm 2012, BMC
Bioinformatics 13(S16):S3).

The model is a ridge-penalised logistic regression, solved by Newton's method. It has the same solution as scikit-learn's
`LogisticRegression`; solving the 25 x 25 systems here saves the second that importing scikit-learn takes. The penalty is constant while
evidence adds up with each match, so that a small run is held near weights in proportion to how far each feature alone parts the classes.
The initial score is one of the features.

Scores of different folds become comparable when each model's are brought to mean 0 and variance 1 over *all* spectra, which takes no
label. Aligning each fold at its own threshold of 1 %, as is common, lets the labels of the spectra that are being scored move their
scores: on random labels of real decoys among 73 true matches that accepted 3 false targets instead of 1. The combined score is then put on
a fixed scale: 0 at 1 %, -1 at the median decoy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from engine.execution.threads import run_on_threads
from engine.identification.target_decoy import best_by_group, q_values
from engine.jobs.progress import Progress

__all__ = ["Rescoring", "rescore"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

_ACCEPTED = 0.01
_TRAINING_LEVELS = (0.01, 0.02, 0.05)  # looser where the stricter leaves too few to learn from
_ENOUGH_POSITIVES = 20


@dataclass(frozen=True)
class Rescoring:
    """Outcome of `rescore`; n rows, f features.

    Attributes
    ----------
    score : float64 (n,), higher is better: the new score (0 at the threshold of 1 %, -1 at the median decoy), or the initial one when
        `used` is false.
    used : whether it is the new score.
    message : what was done, or why not, as one sentence for the user.
    names : the f names of the features and, last, ``initial score``.
    weights : float64 (folds, f + 1): weight of each standardised feature in the model that scored each fold, whose scores have variance 1;
        (0, f + 1) when none was learnt.
    accepted_before, accepted_after : spectra with a target at 1 % by the initial score and by `score`.
    """

    score: Floats
    used: bool
    message: str
    names: tuple[str, ...]
    weights: Floats
    accepted_before: int
    accepted_after: int


def rescore(
    features: NDArray[np.floating],
    names: Sequence[str],
    is_decoy: Truths,
    spectrum: Integers,
    initial_score: Floats,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    folds: int = 10,
    iterations: int = 6,
    minimum_targets: int = 30,
    ridge: float = 3.0,
    seed: int = 1,
) -> Rescoring:
    """Score matches by a linear combination of their features that is learnt from targets and decoys.

    Parameters
    ----------
    features : float32 or float64 (n, f), finite; more is not required to be better, nor the scales to agree.
    names : f names, for messages and for reading the weights.
    is_decoy : bool (n,).
    spectrum : int64 (n,): the spectrum of each row. A spectrum may have several rows; its best one competes.
    initial_score : float64 (n,), finite, higher is better.
    threads : models learnt at a time. progress : asked between models whether the user wants to stop.
    folds : models to learn, at least 2; each scores the spectra that it was not shown. They are split by a hash of the spectrum's number,
        hence the same way whatever the order of rows.
    iterations : turns of picking positives and learning.
    minimum_targets : with fewer targets at 1 % by the initial score nothing is learnt.
    ridge : penalty on the squared weights of standardised features, against a sum of log-likelihoods.
    seed : of the hash.

    Returns
    -------
    Rescoring. Where learning is impossible, or leaves fewer targets at 1 % than before, `used` is false and the score is the initial one.

    Raises
    ------
    ValueError : arrays do not match, a value is not finite, or fewer than two folds.
    """
    names = (*names, "initial score")
    is_decoy, spectrum = np.asarray(is_decoy, bool), np.asarray(spectrum, np.int64)
    initial_score = np.asarray(initial_score, np.float64)
    table = np.column_stack([np.asarray(features, np.float64), initial_score])
    if table.shape != (len(is_decoy), len(names)) or len(spectrum) != len(is_decoy):
        raise ValueError(f"{table.shape[1] - 1} features by {len(table)} rows do not fit {len(names) - 1} names or {len(is_decoy)} rows")
    if not np.isfinite(table).all():
        raise ValueError(f"not finite: {', '.join(np.array(names)[~np.isfinite(table).all(axis=0)])}")
    if folds < 2:
        raise ValueError("rescoring needs at least 2 folds")

    before = _accepted(initial_score, is_decoy, spectrum)
    if before < minimum_targets or not is_decoy.any():
        lack = f"{before} targets at 1 % are too few to learn from ({minimum_targets} are needed)"
        message = f"Rescoring skipped: {lack if before < minimum_targets else 'there are no decoys to learn from'}"
        return Rescoring(initial_score, False, message, names, np.empty((0, len(names))), before, before)

    table = np.column_stack([_standardised(table), np.ones(len(table))])
    fold = _fold(spectrum, folds, seed)

    def learn(number: int) -> Floats:
        seen = fold != number
        return _learn(table[seen], is_decoy[seen], spectrum[seen], iterations, ridge)

    # The matrices are small: on several threads the linear algebra waits more than it works, ten times longer on a busy machine.
    with threadpool_limits(1, user_api="blas"):
        learnt = run_on_threads(learn, range(folds), threads, progress or Progress(), steps=lambda _: 0)
    score, models = np.empty(len(table)), np.empty((folds, table.shape[1]))
    for number, weights in enumerate(learnt):
        held = fold == number
        fold_score = table @ weights
        winners = fold_score[best_by_group(spectrum, fold_score)]
        spread = max(float(winners.std()), 1e-12)
        models[number] = weights / spread
        score[held] = (fold_score[held] - winners.mean()) / spread
    threshold, median = _landmarks(score, is_decoy, spectrum)
    score = (score - threshold) / (threshold - median)

    after = _accepted(score, is_decoy, spectrum)
    if after < before:
        message = f"Rescoring not used: it would leave {after} targets at 1 % where the search score finds {before}"
        return Rescoring(initial_score, False, message, names, models[:, :-1], before, before)
    return Rescoring(score, True, f"Rescoring: {after} targets at 1 % after {before} before", names, models[:, :-1], before, after)


def _learn(table: Floats, is_decoy: Truths, spectrum: Integers, iterations: int, ridge: float) -> Floats:
    """Weights of the columns (the last but one is the initial score, the last the constant) from alternating selection and regression."""
    weights = np.zeros(table.shape[1])
    score = table[:, -2]
    for turn in range(iterations):
        best = best_by_group(spectrum, score)
        q, decoy = q_values(score[best], is_decoy[best]), is_decoy[best]
        positive = best[:0]
        for level in _TRAINING_LEVELS:
            if len(positive) < _ENOUGH_POSITIVES:
                positive = best[(q <= level) & ~decoy]
        if len(positive) == 0 or not decoy.any():
            break
        rows = np.append(positive, best[decoy])
        weights = _logistic_regression(table[rows], np.arange(len(rows)) < len(positive), ridge, weights if turn else None)
        score = table @ weights
    if not weights.any():
        weights[-2] = 1.0
    return weights


def _logistic_regression(table: Floats, label: Truths, ridge: float, start: Floats | None = None) -> Floats:
    """Weights that minimise log-loss + ridge/2 |w|^2, the last column (the constant) unpenalised, by Newton's method."""
    penalty = np.full(table.shape[1], ridge)
    penalty[-1] = 1e-6  # keeps the system regular
    weights = np.zeros(table.shape[1]) if start is None else start
    for _ in range(25):
        fitted = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (fitted - label) + penalty * weights
        curvature = (table * (fitted * (1 - fitted))[:, None]).T @ table
        step = np.linalg.solve(curvature + np.diag(penalty), gradient)
        # Far from the solution the quadratic model overshoots; a bounded step keeps the way down.
        weights = weights - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-3:
            break
    return weights


def _landmarks(score: Floats, is_decoy: Truths, spectrum: Integers) -> tuple[float, float]:
    """Least score accepted at 1 % and median score of the decoys, among the best rows of all spectra."""
    best = best_by_group(spectrum, score)
    ranked, decoy = score[best], is_decoy[best]
    accepted = ~decoy & (q_values(ranked, decoy) <= _ACCEPTED)
    threshold = float(ranked[accepted].min()) if accepted.any() else float(ranked.max())
    median = float(np.median(ranked[decoy])) if decoy.any() else float(ranked.min())
    # A model that puts the threshold at or below the median decoy tells nothing apart; any positive scale serves it.
    return threshold, median if median < threshold else threshold - 1.0


def _accepted(score: Floats, is_decoy: Truths, spectrum: Integers) -> int:
    """Spectra whose best row is a target at 1 %."""
    best = best_by_group(spectrum, score)
    return int(np.count_nonzero((q_values(score[best], is_decoy[best]) <= _ACCEPTED) & ~is_decoy[best]))


def _standardised(table: Floats) -> Floats:
    """Columns with mean 0 and standard deviation 1; a constant column becomes 0."""
    centred = table - table.mean(axis=0)
    spread = centred.std(axis=0)
    scale = np.abs(table).max(axis=0)
    return np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12 * scale)


def _fold(spectrum: Integers, folds: int, seed: int) -> Integers:
    """Fold 0..folds-1 of each row by the SplitMix64 hash of its spectrum (Steele 2014, OOPSLA)."""
    golden = 0x9E3779B97F4A7C15
    state = spectrum.view(np.uint64) + np.uint64((seed + 1) * golden % 2**64)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) % np.uint64(folds)).astype(np.int64)
