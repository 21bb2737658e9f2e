"""Table of the residue of a chain that is nearest to each cell of a grid, and scores of superpositions on the chain by this table.

Cells are cubes of 3 Å, or larger if the chain would need more than `MAXIMUM_CELLS`. Each cell has the residue that is nearest to its
centre. The distance from a point to this residue is exact, but the residue may not be the nearest one for all points of the cell. (GTalign
ranks superpositions by such an index: Margelevičius, Nature Communications 15, 2024, 7305.)
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
    """Number of the residue nearest to the centre of each cell of a grid, or -1 if none is near, as a flat array in C order.

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
            if da * da >= _REACH * _REACH:
                continue
            for b in range(max(0, q - reach), min(counts[1], q + reach + 1)):
                db = low[1] + (b + 0.5) * cell - y[1, j]
                if da * da + db * db >= _REACH * _REACH:  # no cell of the row can be nearer
                    continue
                for c in range(max(0, r - reach), min(counts[2], r + reach + 1)):
                    dc = low[2] + (c + 0.5) * cell - y[2, j]
                    distance, at = np.float32(da * da + db * db + dc * dc), (a * counts[1] + b) * counts[2] + c
                    is_nearer = distance < apart[at]  # without a branch, which would be mispredicted often
                    apart[at], residues[at] = distance if is_nearer else apart[at], j if is_nearer else residues[at]
    return NearestResidues(residues, low, counts, cell)


@njit(nogil=True, cache=True, error_model="numpy")
def nearness(nearest, x, y, move, scale, cells, squares):
    """Return the sum of 1 / (1 + (d / scale)^2) over the moved residues of x; d is the distance to the residue of y in the table.

    Parameters
    ----------
    nearest : NearestResidues
        Table of y.
    x, y : (3, m) and (3, n) float64
        Coordinates in Å.
    move : (12,) float64
        Superposition that moves x onto y.
    cells : (m,) int64
        Workspace.
    squares : (m,) float64
        Workspace.
    """
    residues, low, counts, cell = nearest
    total, inverse = 0.0, 1.0 / (scale * scale)
    low_0, low_1, low_2, count_0, count_1, count_2 = low[0], low[1], low[2], counts[0], counts[1], counts[2]
    m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11 = (
        move[0],
        move[1],
        move[2],
        move[3],
        move[4],
        move[5],
        move[6],
        move[7],
        move[8],
        move[9],
        move[10],
        move[11],
    )
    x0, x1, x2, y0, y1, y2 = x[0], x[1], x[2], y[0], y[1], y[2]
    # Loops without branches, which compilers translate into vector instructions, around one that looks up the residues.
    for i in range(x.shape[1]):
        p, q, r = x0[i], x1[i], x2[i]
        u = (m0 * p + m1 * q + m2 * r + m9 - low_0) / cell
        v = (m3 * p + m4 * q + m5 * r + m10 - low_1) / cell
        w = (m6 * p + m7 * q + m8 * r + m11 - low_2) / cell
        is_inside = (u >= 0.0) & (v >= 0.0) & (w >= 0.0) & (u < count_0) & (v < count_1) & (w < count_2)
        cells[i] = (np.int64(u) * count_1 + np.int64(v)) * count_2 + np.int64(w) if is_inside else -1
    n_near = 0
    for i in range(x.shape[1]):
        if cells[i] >= 0:
            j = residues[cells[i]]
            if j >= 0:
                p, q, r = x0[i], x1[i], x2[i]
                a = m0 * p + m1 * q + m2 * r + m9
                b = m3 * p + m4 * q + m5 * r + m10
                c = m6 * p + m7 * q + m8 * r + m11
                d, e, f = a - y0[j], b - y1[j], c - y2[j]
                squares[n_near] = d * d + e * e + f * f
                n_near += 1
    for k in range(n_near):
        total += share_of(squares[k], inverse)
    return total
