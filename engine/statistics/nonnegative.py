"""Non-negative least squares of many right sides with one matrix, all at once: block principal pivoting.

Kim and Park 2011, SIAM J. Sci. Comput. 33:3261. Of each right side the unknowns are parted into those that are free and those that are 0;
the ones that violate the conditions of an optimum change sides, all of them while that lessens their number, and the last of them alone
where it does not, which ends. Most right sides need one step, and all of a step are one batch of small systems.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nonnegative_least_squares"]

_ROWS_OF_PIECE = 1 << 14
_TRIES = 3
_TINY = 1e-12


def nonnegative_least_squares(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """x, at least 0, of which the squares of ``matrix @ x - right`` are least.

    Parameters
    ----------
    matrix : (m, k) float64, of full column rank. right : (n, m) float64.

    Returns
    -------
    (n, k) float64.

    Raises
    ------
    ValueError : the columns of the matrix depend on each other.

    Examples
    --------
    >>> nonnegative_least_squares(np.array([[1.0, 0.5], [0.0, 0.5]]), np.array([[3.0, 1.0], [1.0, -1.0]])).round(6).tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ValueError("expected a matrix of full column rank")
    normal = matrix.T @ matrix
    found = np.empty((len(right), matrix.shape[1]))
    for first in range(0, len(right), _ROWS_OF_PIECE):
        some = slice(first, first + _ROWS_OF_PIECE)
        found[some] = _piece(normal, right[some] @ matrix)
    return found


def _piece(normal: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same by the normal equations; each right side is scaled, so that what is 0 can be told."""
    scale = np.maximum(np.abs(right).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
    right = right / scale[:, None]
    n, k = right.shape
    found = np.linalg.solve(normal, right.T).T
    is_free = np.ones((n, k), np.bool_)
    fewest, tries = np.full(n, k + 1), np.full(n, _TRIES)
    rows = np.flatnonzero((found < -_TINY).any(axis=1))
    gradient = np.zeros((n, k))
    while len(rows):
        free, own = is_free[rows], found[rows]
        wrong = np.where(free, own < -_TINY, gradient[rows] < -_TINY)
        count = wrong.sum(axis=1)
        rows, wrong, count = rows[count > 0], wrong[count > 0], count[count > 0]
        is_fewer = count < fewest[rows]
        fewest[rows] = np.minimum(count, fewest[rows])
        tries[rows] = np.where(is_fewer, _TRIES, tries[rows] - 1)
        alone = tries[rows] < 0
        last = k - 1 - wrong[:, ::-1].argmax(axis=1)
        wrong[alone] &= np.arange(k) == last[alone, None]
        is_free[rows] ^= wrong
        free = is_free[rows]
        systems = np.where(free[:, :, None] & free[:, None, :], normal, np.eye(k))
        found[rows] = np.linalg.solve(systems, np.where(free, right[rows], 0.0)[..., None])[..., 0]
        gradient[rows] = found[rows] @ normal - right[rows]
    return np.maximum(found, 0.0) * scale[:, None]
