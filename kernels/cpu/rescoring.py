"""Models of rescoring: training on targets and decoys, and scores of matches.

A kernel trains a model without the GIL. The steps are so short that threads which called NumPy for each step would wait for each other.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fit_logistic", "learn_weights", "score_matches"]

_MAXIMUM_STEPS = 25  # Newton steps of a fit
_LARGEST_LOGIT = 30.0
_LARGEST_CHANGE, _CONVERGED = 2.0, 1e-3  # of a weight in a Newton step
_CONSTANT_PENALTY = 1e-6  # keeps the system regular
_BLOCK = 128  # rows of a block, whose columns fit into the fastest cache
# LLVM fast-math flags: sums by vector instructions, in an order that depends on the CPU. A loop that also writes to an array would be
# compiled in two orders, and the addresses of the arrays would decide.
_FLAGS = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FLAGS)
def _add_products(table, begin, end, deviation, weight, workspace, gradient, curvature):
    """Add the products of the rows from `begin` to `end`: of the columns and `deviation`, and of the columns, weighted, in pairs."""
    m, n = len(table), end - begin
    weighted = workspace[:n]
    for i in range(m):
        column = table[i, begin:end]
        for row in range(n):
            weighted[row] = column[row] * weight[begin + row]
        total = 0.0
        for row in range(n):
            total += column[row] * deviation[begin + row]
        gradient[i] += total
        j = i
        while j + 4 <= m:  # four columns at once, which share the loads of the weighted column
            a, b, c, d = table[j, begin:end], table[j + 1, begin:end], table[j + 2, begin:end], table[j + 3, begin:end]
            of_a, of_b, of_c, of_d = 0.0, 0.0, 0.0, 0.0
            for row in range(n):
                of_a += weighted[row] * a[row]
                of_b += weighted[row] * b[row]
                of_c += weighted[row] * c[row]
                of_d += weighted[row] * d[row]
            curvature[i, j] += of_a
            curvature[i, j + 1] += of_b
            curvature[i, j + 2] += of_c
            curvature[i, j + 3] += of_d
            j += 4
        while j < m:
            a, of_a = table[j, begin:end], 0.0
            for row in range(n):
                of_a += weighted[row] * a[row]
            curvature[i, j] += of_a
            j += 1


@njit(nogil=True, cache=True)
def _solve(matrix, values):
    """Replace `values` by the solution of a system whose symmetric, positive definite matrix is given by its upper triangle.

    The matrix is replaced by its Cholesky factor.
    """
    m = len(values)
    for i in range(m):
        for k in range(i):
            factor = matrix[k, i]
            for j in range(i, m):
                matrix[i, j] -= factor * matrix[k, j]
        diagonal = np.sqrt(matrix[i, i])
        for j in range(i, m):
            matrix[i, j] /= diagonal
        for k in range(i):
            values[i] -= matrix[k, i] * values[k]
        values[i] /= diagonal
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            values[i] -= matrix[i, j] * values[j]
        values[i] /= matrix[i, i]


@njit(nogil=True, cache=True)
def _write_scores(table, weights, scores):
    """Write the sums of the weighted columns to `scores` (n,); equal rows have equal sums."""
    scores[:] = 0.0
    for i in range(len(weights)):
        column, weight = table[i], weights[i]
        for row in range(len(scores)):
            scores[row] += weight * column[row]


@njit(nogil=True, cache=True)
def fit_logistic(table, n_positives, ridge, weights):
    """Minimise log-loss + ridge/2 |w|^2 by Newton's method, with no penalty for the constant (last column).

    Parameters
    ----------
    table : ndarray of float64, shape (m, n)
        Columns, each a row of the array; the first `n_positives` rows are positive, the others negative.
    n_positives : int
        Number of positive rows.
    ridge : float
        Penalty, above 0.
    weights : ndarray of float64, shape (m,)
        Weights to start from, which are replaced by the result.
    """
    m, n = table.shape
    fitted, weight, workspace = np.empty(n), np.empty(n), np.empty(_BLOCK)
    step, curvature = np.empty(m), np.empty((m, m))
    for _ in range(_MAXIMUM_STEPS):
        _write_scores(table, weights, fitted)
        for row in range(n):
            probability = 1.0 / (1.0 + np.exp(-min(max(fitted[row], -_LARGEST_LOGIT), _LARGEST_LOGIT)))
            weight[row] = probability * (1.0 - probability)
            fitted[row] = probability - (1.0 if row < n_positives else 0.0)
        curvature[:] = 0.0
        for i in range(m):
            curvature[i, i] = ridge if i + 1 < m else _CONSTANT_PENALTY
            step[i] = curvature[i, i] * weights[i]
        for begin in range(0, n, _BLOCK):
            _add_products(table, begin, min(begin + _BLOCK, n), fitted, weight, workspace, step, curvature)
        _solve(curvature, step)
        largest = np.abs(step).max()
        # Far from the solution the quadratic model overshoots; a bounded step still descends.
        weights -= step * min(1.0, _LARGEST_CHANGE / max(largest, 1e-12))
        if largest < _CONVERGED:
            break


@njit(nogil=True, cache=True)
def _accept(score, is_decoy, levels, enough, decoy_ratio, is_accepted):
    """Mark the targets that are accepted at the strictest level which accepts enough of them, or at the last; return their number.

    The false discovery rate is that of `proteoscope.engine.statistics.target_decoy.q_values`. It is lowest just above the score of a decoy.
    """
    decoys = np.sort(score[is_decoy])
    n_decoys, n_targets, n_accepted = len(decoys), np.zeros(len(decoys) + 1, np.int64), 0
    for row in range(len(score)):
        if not is_decoy[row]:
            n_targets[np.searchsorted(decoys, score[row])] += 1  # above this number of decoys
    for level in levels:
        lowest, above = n_decoys + 1, 0
        for number in range(n_decoys, -1, -1):
            above += n_targets[number]
            if above > 0 and (n_decoys - number) / decoy_ratio / above <= level:
                lowest = number
        n_accepted = 0
        for row in range(len(score)):
            is_accepted[row] = not is_decoy[row] and (lowest == 0 or (lowest <= n_decoys and score[row] > decoys[lowest - 1]))
            n_accepted += is_accepted[row]
        if n_accepted >= enough:
            break
    return n_accepted


@njit(nogil=True, cache=True)
def learn_weights(table, is_decoy, is_seen, levels, enough, decoy_ratio, turns, ridge, model):
    """Train a model by repeatedly selecting the targets that the current score accepts and fitting a logistic regression.

    Parameters
    ----------
    table : ndarray of float64, shape (m, n)
        Standardised columns of the matches, each a row of the array; the second last is the initial score, the last is 1.
    is_decoy, is_seen : ndarray of bool, shape (n,)
        True for decoys, and for the matches from which the model learns.
    levels : ndarray of float64, shape (l,)
        False discovery rates, ascending: a looser level is used if a stricter one accepts too few.
    enough : int
        Number of targets that are not too few.
    decoy_ratio : float
        Decoy candidates per target candidate.
    turns : int
        Number of selections and fits.
    ridge : float
        Penalty on the squared weights.
    model : ndarray of float64, shape (m + 2,)
        Receives the weight of each column, and the mean and the standard deviation of the scores of all n matches.
    """
    m, n = table.shape
    rows = np.flatnonzero(is_seen)
    decoy, weights, scores = is_decoy[rows], model[:m], np.empty(n)
    is_accepted, values = np.empty(len(rows), np.bool_), np.empty(m * len(rows))
    n_decoys = np.count_nonzero(decoy)
    weights[:] = 0.0
    score = table[m - 2][rows]
    for _ in range(turns):
        n_positives = _accept(score, decoy, levels, enough, decoy_ratio, is_accepted)
        if n_positives == 0 or n_decoys == 0:
            break
        chosen = np.concatenate((rows[is_accepted], rows[decoy]))
        examples = values[: m * len(chosen)].reshape(m, len(chosen))
        for i in range(m):
            for number in range(len(chosen)):
                examples[i, number] = table[i, chosen[number]]
        fit_logistic(examples, n_positives, ridge, weights)
        _write_scores(table, weights, scores)
        score = scores[rows]
    if not weights.any():
        weights[m - 2] = 1.0
    _write_scores(table, weights, scores)
    model[m] = scores.mean()
    model[m + 1] = scores.std()


@njit(nogil=True, cache=True)
def score_matches(table, mean, spread, models, fold, scores):
    """Write the sum over all divisions of the scores of each match, by the models trained without its peptide.

    Parameters
    ----------
    table : ndarray of float64, shape (m, n)
        Columns of the matches, each a row of the array; not standardised.
    mean, spread : ndarray of float64, shape (m,)
        Mean and standard deviation of each column; a spread of 0 excludes a column.
    models : ndarray of float64, shape (divisions, folds, m + 3)
        Weight of each standardised column, constant term, and mean and standard deviation of the scores of each model.
    fold : ndarray of int64, shape (divisions, n)
        Fold of each match in each division.
    scores : ndarray of float64, shape (n,)
        Receives the sums. The scores of each model are standardised by their mean and standard deviation.
    """
    m = len(mean)
    for row in range(len(scores)):
        total = 0.0
        for division in range(len(models)):
            model = models[division, fold[division, row]]
            score = model[m]
            for column in range(m):
                if spread[column] > 0.0:
                    score += (table[column, row] - mean[column]) / spread[column] * model[column]
            total += (score - model[m + 1]) / model[m + 2]
        scores[row] = total
