"""Global alignment of two chains by residue distance and secondary structure, computed along antidiagonals.

A pair scores 1 / (1 + (d / scale)^2), plus a bonus for equal secondary structure. Terminal gaps cost nothing, opening a gap costs `gap`,
extending it costs nothing (TM-align, Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309)::

    H[i, j] = max(H[i-1, j-1] + reward, G[i-1, j], G[i, j-1])      G[i, j] = H[i, j] + gap if the first was the largest, else H[i, j]

Cells of an antidiagonal are independent: a register of them is computed in parallel, in integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from proteoscope.kernels.cpu.vectors import (
    REGISTER_BYTES,
    add,
    aligned,
    load,
    load_anywhere,
    maximum,
    spread,
    store,
    store_anywhere,
    where_equal,
    where_greater,
)

__all__ = ["UNIT", "AlignmentWorkspace", "align", "alignment_workspace", "place_states", "place_x", "place_y", "trace"]

LANES = REGISTER_BYTES // 4  # number of matrix cells computed by one vector instruction
UNIT = 1 << 15
"""Integer score of two residues at the same position."""


class AlignmentWorkspace(NamedTuple):
    """Workspace of alignments, int32 and aligned; the shorter chain is x, the longer chain is y.

    Residue i of x is at index i, residue j of y at ``LANES + n - 1 - j``, so that both ascend along an antidiagonal. Cell (i, j) of the
    matrix, at residues i - 1 and j - 1, is at index ``LANES + i - 1`` of its antidiagonal.
    """

    x: NDArray[np.int32]
    y: NDArray[np.int32]
    states_x: NDArray[np.int32]
    states_y: NDArray[np.int32]
    best_0: NDArray[np.int32]
    best_1: NDArray[np.int32]
    best_2: NDArray[np.int32]
    after_0: NDArray[np.int32]
    after_1: NDArray[np.int32]
    ways: NDArray[np.int8]


def alignment_workspace(m: int, n: int) -> AlignmentWorkspace:
    """Return a workspace for aligning chains of up to m residues with chains of up to n residues, m <= n."""
    row = _width(m) + 2 * LANES
    columns = n + 3 * LANES
    ways = (m + n + 1) * _width(m) + LANES
    lengths = (4 * row, 4 * columns, row, columns, row, row, row, row, row)
    return AlignmentWorkspace._make([*(aligned(length, np.int32) for length in lengths), aligned(ways, np.int8)])


@njit(nogil=True, cache=True)
def _width(m):
    """Return the number of cells in a row of trace directions."""
    return (m + LANES - 1) // LANES * LANES


@intrinsic
def _nearness(typing: Any, x: Any, y: Any, z: Any, plus: Any, u: Any, v: Any, w: Any, plus_one: Any, unit: Any) -> Any:
    """Return `unit` / (plus_one + plus - x u - y v - z w) as integers; the vectors contain float32 bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        floats = ir.VectorType(ir.FloatType(), x.count)
        a, b, c, plus, d, e, f, total, fraction = (builder.bitcast(argument, floats) for argument in arguments)
        total = builder.fadd(plus, total)
        for left, right in ((a, d), (b, e), (c, f)):
            total = builder.fsub(total, builder.fmul(left, right))
        return builder.fptosi(builder.fdiv(fraction, total), x.llvm_type)

    return x(x, y, z, plus, u, v, w, plus_one, unit), code


@njit(nogil=True, cache=True)
def place_states(workspace, states_x, states_y):
    """Set the secondary structure of both chains."""
    n = len(states_y)
    for i in range(len(states_x)):
        workspace.states_x[i] = states_x[i]
    for j in range(n):
        workspace.states_y[LANES + n - 1 - j] = states_y[j]


@njit(nogil=True, cache=True, error_model="numpy")
def place_x(workspace, x, move, scale):
    """Set the residues of x (3, m), transformed by `move`."""
    m, row, inverse = x.shape[1], len(workspace.x) // 4, 1.0 / scale
    # Use (x - y)^2 = x^2 + y^2 - 2 x y, which saves two instructions per cell.
    to = workspace.x.view(np.float32)
    a0, a1, a2, squares = to[:row], to[row : 2 * row], to[2 * row : 3 * row], to[3 * row :]
    x0, x1, x2 = x[0], x[1], x[2]
    for i in range(m):
        p, q, r = x0[i], x1[i], x2[i]
        a = (move[0] * p + move[1] * q + move[2] * r + move[9]) * inverse
        b = (move[3] * p + move[4] * q + move[5] * r + move[10]) * inverse
        c = (move[6] * p + move[7] * q + move[8] * r + move[11]) * inverse
        a0[i], a1[i], a2[i], squares[i] = 2.0 * a, 2.0 * b, 2.0 * c, a * a + b * b + c * c


@njit(nogil=True, cache=True, error_model="numpy")
def place_y(workspace, y, scale):
    """Set the residues of y (3, n), centred near 0."""
    n, row, inverse = y.shape[1], len(workspace.y) // 4, 1.0 / scale
    to = workspace.y.view(np.float32)
    for j in range(n):
        a, b, c = y[0, j] * inverse, y[1, j] * inverse, y[2, j] * inverse
        k = LANES + n - 1 - j
        to[k], to[row + k], to[2 * row + k], to[3 * row + k] = a, b, c, 1.0 + a * a + b * b + c * c


@njit(nogil=True, cache=True)
def align(workspace, m, n, gap, by_states, by_distance):
    """Compute the matrix for the residues in the workspace; return the best score in `UNIT`, whose alignment `trace` returns.

    Parameters
    ----------
    m, n
        Numbers of residues of x and y.
    gap
        Score of opening a gap, 0 or less.
    by_states, by_distance
        Weights of secondary structure and of distance.
    """
    px, py, states_x, states_y, ways = workspace.x, workspace.y, workspace.states_x, workspace.states_y, workspace.ways
    earlier, before, values, after, opened = workspace.best_0, workspace.best_1, workspace.best_2, workspace.after_0, workspace.after_1
    row, columns, width = len(px) // 4, len(py) // 4, _width(m)
    fraction = np.array([by_distance * UNIT], np.float32).view(np.int32)[0]
    state_share = np.int64(by_states * UNIT)
    axis_0, axis_1, axis_2 = spread(px, 0), spread(px, 1), spread(px, 2)
    unit, cost, reward_of_state = spread(px, np.int64(fraction)), spread(px, np.int64(gap * UNIT)), spread(px, state_share)
    for k in range(2):
        position = LANES - 1 + k
        earlier[position] = before[position] = after[position] = 0
    values[LANES - 1] = opened[LANES - 1] = 0
    for k in range(2, m + n + 1):
        # Registers at the ends also compute cells outside the antidiagonal; no cell of the matrix reads these values.
        low, high, back = max(1, k - n), min(m, k - 1), LANES + n - k + 1
        for i in range((low - 1) // LANES * LANES, high, LANES):
            j, position = i + back, i + LANES
            reward = _nearness(
                load(px, i),
                load(px, row + i),
                load(px, 2 * row + i),
                load(px, 3 * row + i),
                load_anywhere(py, j),
                load_anywhere(py, columns + j),
                load_anywhere(py, 2 * columns + j),
                load_anywhere(py, 3 * columns + j),
                unit,
            )
            if state_share:
                reward = add(reward, where_equal(load(states_x, i), load_anywhere(states_y, j), reward_of_state, axis_0))
            straight = add(load_anywhere(earlier, position - 1), reward)
            from_x, from_y = load_anywhere(after, position - 1), load(after, position)
            gapped = maximum(from_x, from_y)
            best = maximum(straight, gapped)
            store(values, position, best)
            store(opened, position, add(best, where_greater(gapped, straight, axis_0, cost)))
            store_anywhere(ways, k * width + i, where_greater(gapped, straight, where_greater(from_x, from_y, axis_2, axis_1), axis_0))
        if k <= m:
            values[LANES + k - 1] = opened[LANES + k - 1] = 0
        earlier, before, values = before, values, earlier
        after, opened = opened, after
    return before[LANES + m - 1]


@njit(nogil=True, cache=True)
def trace(workspace, m, n, pairs):
    """Write the residue pairs of the alignment, ascending, to the end of `pairs`, (rows, 2) int32 with at least m rows.

    Return their number.
    """
    ways, width = workspace.ways, _width(m)
    i, j, position = m, n, len(pairs)
    while i > 0 and j > 0:
        way = ways[(i + j) * width + i - 1]
        if way == 0:
            i -= 1
            j -= 1
            position -= 1
            pairs[position, 0], pairs[position, 1] = i, j
        elif way == 1:
            j -= 1
        else:
            i -= 1
    return len(pairs) - position
