"""Non-negative least squares for many right-hand sides with one matrix, in batches, by block principal pivoting.

Kim and Park 2011, SIAM J. Sci. Comput. 33:3261. The unknowns of each right-hand side are divided into free ones and zeros. Unknowns that
violate the optimality conditions move to the other set: all of them while this reduces the number of violations, otherwise only the last
one, which guarantees termination. Most right-hand sides need one step, and all right-hand sides in a step form a batch of small systems.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["nonnegative_least_squares"]

_ROWS_OF_BATCH = 1 << 14
_TRIES = 3
_TINY = 1e-12


def nonnegative_least_squares(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the x >= 0 that minimises the squared norm of ``matrix @ x - right`` for each right-hand side.

    Parameters
    ----------
    matrix : ndarray of float64, shape (m, k)
        Matrix with full column rank.
    right : ndarray of float64, shape (n, m)
        Right-hand sides.

    Returns
    -------
    ndarray of float64, shape (n, k)

    Raises
    ------
    ValueError
        If the columns of the matrix are linearly dependent.

    Examples
    --------
    >>> nonnegative_least_squares(np.array([[1.0, 0.5], [0.0, 0.5]]), np.array([[3.0, 1.0], [1.0, -1.0]])).round(6).tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ValueError("expected a matrix of full column rank")
    normal = matrix.T @ matrix
    solution = np.empty((len(right), matrix.shape[1]))
    for first in range(0, len(right), _ROWS_OF_BATCH):
        batch = slice(first, first + _ROWS_OF_BATCH)
        solution[batch] = _solve_batch(normal, right[batch] @ matrix)
    return solution


def _solve_batch(normal: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the non-negative solutions of a batch of normal equations; `right` is scaled first, so that rounding errors are recognised."""
    scale = np.maximum(np.abs(right).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
    right = right / scale[:, None]
    n, k = right.shape
    solution = np.linalg.solve(normal, right.T).T
    is_free = np.ones((n, k), np.bool_)
    fewest, tries = np.full(n, k + 1), np.full(n, _TRIES)
    rows = np.flatnonzero((solution < -_TINY).any(axis=1))
    gradient = np.zeros((n, k))
    while len(rows):
        wrong = np.where(is_free[rows], solution[rows] < -_TINY, gradient[rows] < -_TINY)
        count = wrong.sum(axis=1)
        rows, wrong, count = rows[count > 0], wrong[count > 0], count[count > 0]
        is_fewer = count < fewest[rows]
        fewest[rows] = np.minimum(count, fewest[rows])
        tries[rows] = np.where(is_fewer, _TRIES, tries[rows] - 1)
        is_single = tries[rows] < 0
        last = k - 1 - wrong[:, ::-1].argmax(axis=1)
        wrong[is_single] &= np.arange(k) == last[is_single, None]
        is_free[rows] ^= wrong
        free = is_free[rows]
        systems = np.where(free[:, :, None] & free[:, None, :], normal, np.eye(k))
        solution[rows] = np.linalg.solve(systems, np.where(free, right[rows], 0.0)[..., None])[..., 0]
        gradient[rows] = solution[rows] @ normal - right[rows]
    scaled: NDArray[np.float64] = np.maximum(solution, 0.0) * scale[:, None]
    return scaled
