"""Table of the residue of a chain that is nearest to each point of a lattice, and the nearness of a superposed chain by it.

Cells are cubes of 3 Å, or larger if the chain would need more than `MAXIMUM_CELLS`. The distance to the residue that is nearest to the
centre of a cell is exact; only that residue may not be the nearest for all points of the cell. (GTalign ranks superpositions by such an
index: Margelevičius, Nature Communications 15, 2024, 7305.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.least_squares import share_of

__all__ = ["MAXIMUM_CELLS", "NearestResidues", "nearest_residues", "nearness"]

MAXIMUM_CELLS = 1 << 15
"""Maximum number of cells of a table."""
_CELL, _REACH = 3.0, 8.0  # Å: edge of a cell, and distance beyond which a residue is not near
_GROWTH = 1.25


class NearestResidues(NamedTuple):
    """Number of the residue nearest to the centre of each cell, -1 if none is near: flat, the last axis fastest.

    `low` (3,) is the lowest corner in Å, `counts` (3,) the number of cells along each axis, `cell` their edge in Å.
    """

    residues: NDArray[np.int32]
    low: NDArray[np.float64]
    counts: NDArray[np.int64]
    cell: float


@njit(nogil=True, cache=True)
def nearest_residues(y):
    """Return the table of a chain, y (3, n) in Å."""
    low, high, counts, cell = np.empty(3), np.empty(3), np.empty(3, np.int64), _CELL
    for axis in range(3):
        low[axis], high[axis] = y[axis].min() - _REACH, y[axis].max() + _REACH
    while True:
        n_cells = 1.0
        for axis in range(3):
            n_cells *= np.floor((high[axis] - low[axis]) / cell) + 1.0  # in floating point, since coordinates may be huge
        if not n_cells > MAXIMUM_CELLS:
            break
        cell *= _GROWTH
    for axis in range(3):
        counts[axis] = np.int64((high[axis] - low[axis]) / cell) + 1
    residues = np.full(counts[0] * counts[1] * counts[2], -1, np.int32)
    apart = np.full(len(residues), np.float32(_REACH * _REACH))
    reach = np.int64(_REACH / cell) + 1
    for j in range(y.shape[1]):
        p, q, r = np.int64((y[0, j] - low[0]) / cell), np.int64((y[1, j] - low[1]) / cell), np.int64((y[2, j] - low[2]) / cell)
        for a in range(max(0, p - reach), min(counts[0], p + reach + 1)):
            da = low[0] + (a + 0.5) * cell - y[0, j]
            for b in range(max(0, q - reach), min(counts[1], q + reach + 1)):
                db = low[1] + (b + 0.5) * cell - y[1, j]
                for c in range(max(0, r - reach), min(counts[2], r + reach + 1)):
                    dc = low[2] + (c + 0.5) * cell - y[2, j]
                    distance, at = np.float32(da * da + db * db + dc * dc), (a * counts[1] + b) * counts[2] + c
                    if distance < apart[at]:
                        apart[at], residues[at] = distance, j
    return NearestResidues(residues, low, counts, cell)


@njit(nogil=True, cache=True)
def nearness(nearest, x, y, move, scale, every):
    """Return the sum of 1 / (1 + (d / scale)^2) for every n-th residue of x, moved, d being its distance to the residue of y in the table.

    Parameters
    ----------
    nearest : NearestResidues
        Table of y.
    x, y : (3, m) and (3, n) float64
        Coordinates in Å.
    move : (12,) float64
        Superposition that moves x onto y.
    """
    residues, low, counts, cell = nearest
    total, inverse = 0.0, 1.0 / (scale * scale)
    for i in range(0, x.shape[1], every):
        p, q, r = x[0, i], x[1, i], x[2, i]
        a = move[0] * p + move[1] * q + move[2] * r + move[9]
        b = move[3] * p + move[4] * q + move[5] * r + move[10]
        c = move[6] * p + move[7] * q + move[8] * r + move[11]
        u, v, w = (a - low[0]) / cell, (b - low[1]) / cell, (c - low[2]) / cell
        if u >= 0.0 and v >= 0.0 and w >= 0.0 and u < counts[0] and v < counts[1] and w < counts[2]:
            j = residues[(np.int64(u) * counts[1] + np.int64(v)) * counts[2] + np.int64(w)]
            if j >= 0:
                d, e, f = a - y[0, j], b - y[1, j], c - y[2, j]
                total += share_of(d * d + e * e + f * f, inverse)
    return total
