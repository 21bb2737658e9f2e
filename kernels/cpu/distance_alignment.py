"""Global alignment of two chains by residue distance and secondary structure, computed along antidiagonals of strips.

A pair scores 1 / (1 + (d / scale)^2), plus a bonus for equal secondary structure. Terminal gaps cost nothing, opening a gap costs `gap`,
extending it costs nothing (TM-align, Zhang & Skolnick, Nucleic Acids Research 33, 2005, 2302-2309)::

    H[i, j] = max(H[i-1, j-1] + reward, G[i-1, j], G[i, j-1])      G[i, j] = H[i, j] + gap if the first was the largest, else H[i, j]

Cells of an antidiagonal are independent: as many cells as fit in a register are computed in parallel, in integers. The residues of x are
divided into strips of two registers, whose cells stay in registers from one antidiagonal to the next; the last row of a strip is stored for
the next strip. The direction of a cell (its way) has two bits, so that the ways of most pairs of chains fit in the first-level cache.
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
    bits_of_greater,
    load,
    load_anywhere,
    maximum,
    shifted_down,
    spread,
    store,
    store_first,
    where_equal,
    where_greater,
)

__all__ = ["UNIT", "AlignmentWorkspace", "align", "alignment_workspace", "place_states", "place_x", "place_y", "trace"]

LANES = REGISTER_BYTES // 4  # number of matrix cells computed by one vector instruction
STRIP = 2 * LANES  # number of residues of x in a strip
_WAYS = 4  # bit sets per antidiagonal of a strip, of up to 16 lanes on every CPU, so that kernels have the same argument types
UNIT = 1 << 15
"""Integer score of two residues at the same position."""
_FAR = 1e30  # squared distance at which a pair scores 0


class AlignmentWorkspace(NamedTuple):
    """Workspace of alignments, int32 and aligned; the shorter chain is x, the longer chain is y.

    Residue i of x is at index `_place_of` (i), where the residues of a register are in reverse order; residue j of y is at ``STRIP + j``.
    Therefore both indices ascend along an antidiagonal, and the first lane of a register has the last row. The last row of the previous
    strip, at residue j of y, is at ``STRIP + j`` of `edge_best` and `edge_after`. An antidiagonal of a strip has `_WAYS` sets of bits in
    `ways`: the lanes of both registers that end in a gap, and the lanes whose gap would skip a residue of x.
    """

    x: NDArray[np.int32]
    y: NDArray[np.int32]
    states_x: NDArray[np.int32]
    states_y: NDArray[np.int32]
    edge_best: NDArray[np.int32]
    edge_after: NDArray[np.int32]
    costs: NDArray[np.int32]
    last: NDArray[np.int32]
    ways: NDArray[np.uint16]


def alignment_workspace(m: int, n: int) -> AlignmentWorkspace:
    """Return a workspace for aligning chains of up to m residues with chains of up to n residues, m <= n."""
    row, columns = _width(m), _width(n) + 3 * STRIP
    lengths = (4 * row, 4 * columns, row, columns, columns, columns, 3 * STRIP, STRIP)
    ways = aligned(row // STRIP * (n + STRIP) * _WAYS, np.uint16)
    workspace = AlignmentWorkspace._make([*(aligned(length, np.int32) for length in lengths), ways])
    # Before the first residue of y, pairs score 0; after the last one nothing depends on their scores.
    scores = workspace.y[3 * columns :].view(np.float32)
    scores[:] = 1.0
    scores[:STRIP] = _FAR
    workspace.states_y[:STRIP] = -1
    return workspace


@njit(nogil=True, cache=True)
def _width(m):
    """Return the number of rows of all strips."""
    return (m + STRIP - 1) // STRIP * STRIP


@njit(inline="always")
def _place_of(i):
    """Return the index of row i among the rows in the order of registers."""
    return i // LANES * LANES + LANES - 1 - i % LANES


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
    for i in range(len(states_x)):
        workspace.states_x[_place_of(i)] = states_x[i]
    for j in range(len(states_y)):
        workspace.states_y[STRIP + j] = states_y[j]


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
        k = _place_of(i)
        a0[k], a1[k], a2[k], squares[k] = 2.0 * a, 2.0 * b, 2.0 * c, a * a + b * b + c * c


@njit(nogil=True, cache=True, error_model="numpy")
def place_y(workspace, y, scale):
    """Set the residues of y (3, n), centred near 0."""
    n, row, inverse = y.shape[1], len(workspace.y) // 4, 1.0 / scale
    to = workspace.y.view(np.float32)
    for j in range(n):
        a, b, c = y[0, j] * inverse, y[1, j] * inverse, y[2, j] * inverse
        k = STRIP + j
        to[k], to[row + k], to[2 * row + k], to[3 * row + k] = a, b, c, 1.0 + a * a + b * b + c * c


@njit(nogil=True, cache=True)
def align(workspace, m, n, gap, by_states, by_distance):
    """Compute the matrix for the residues in the workspace; return the best score, in units of 1 / `UNIT`.

    `trace` then writes the alignment with this score.

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
    edge_best, edge_after, costs, last = workspace.edge_best, workspace.edge_after, workspace.costs, workspace.last
    row, columns = len(px) // 4, len(py) // 4
    fraction = np.array([by_distance * UNIT], np.float32).view(np.int32)[0]
    state_share = np.int64(by_states * UNIT)
    zero = spread(px, 0)
    unit, reward_of_state = spread(px, np.int64(fraction)), spread(px, state_share)
    edge_best[: n + 2 * STRIP] = edge_after[: n + 2 * STRIP] = 0
    costs[:STRIP] = 0  # before the first residue of y, where terminal gaps are free
    costs[STRIP:] = np.int64(gap * UNIT)
    for first in range(0, _width(m), STRIP):
        second = first + LANES
        p0, p1, p2, p3 = load(px, first), load(px, row + first), load(px, 2 * row + first), load(px, 3 * row + first)
        q0, q1, q2, q3 = load(px, second), load(px, row + second), load(px, 2 * row + second), load(px, 3 * row + second)
        p_states, q_states = load(states_x, first), load(states_x, second)
        # Registers p and q: best scores of the last two antidiagonals, and scores after which a gap may continue.
        p_best = q_best = p_earlier = q_earlier = p_after = q_after = zero
        to = first // STRIP * (n + STRIP) * _WAYS
        for k in range(n - 1 + min(STRIP, m - first)):
            # Row i of the strip is at residue k - i of y; lanes outside the matrix affect no cell of it.
            i, j, ramp = k + LANES + 1, k + 1, min(k, STRIP)
            p_reward = _nearness(
                p0,
                p1,
                p2,
                p3,
                load_anywhere(py, i),
                load_anywhere(py, columns + i),
                load_anywhere(py, 2 * columns + i),
                load_anywhere(py, 3 * columns + i),
                unit,
            )
            q_reward = _nearness(
                q0,
                q1,
                q2,
                q3,
                load_anywhere(py, j),
                load_anywhere(py, columns + j),
                load_anywhere(py, 2 * columns + j),
                load_anywhere(py, 3 * columns + j),
                unit,
            )
            if state_share:
                p_reward = add(p_reward, where_equal(p_states, load_anywhere(states_y, i), reward_of_state, zero))
                q_reward = add(q_reward, where_equal(q_states, load_anywhere(states_y, j), reward_of_state, zero))
            q_straight = add(shifted_down(q_earlier, p_earlier), q_reward)
            p_straight = add(shifted_down(p_earlier, spread(px, edge_best[STRIP - 1 + k])), p_reward)
            q_from_x, p_from_x = shifted_down(q_after, p_after), shifted_down(p_after, spread(px, edge_after[STRIP + k]))
            p_gapped, q_gapped = maximum(p_from_x, p_after), maximum(q_from_x, q_after)
            p_earlier, q_earlier = p_best, q_best
            p_best, q_best = maximum(p_straight, p_gapped), maximum(q_straight, q_gapped)
            ways[to], ways[to + 1] = bits_of_greater(p_gapped, p_straight), bits_of_greater(q_gapped, q_straight)
            ways[to + 2], ways[to + 3] = bits_of_greater(p_from_x, p_after), bits_of_greater(q_from_x, q_after)
            p_cost, q_cost = load_anywhere(costs, ramp + LANES + 1), load_anywhere(costs, ramp + 1)
            p_after = add(p_best, where_greater(p_gapped, p_straight, zero, p_cost))
            q_after = add(q_best, where_greater(q_gapped, q_straight, zero, q_cost))
            store_first(edge_best, k + 1, q_best)
            store_first(edge_after, k + 1, q_after)
            to += _WAYS
        store(last, 0, p_best)
        store(last, LANES, q_best)
    return last[_place_of((m - 1) % STRIP)]


@njit(nogil=True, cache=True)
def trace(workspace, m, n, pairs):
    """Write the residue pairs of the alignment, ascending, to the end of `pairs`, (rows, 2) int32 with at least m rows.

    Return their number.
    """
    ways = workspace.ways
    i, j, position = m - 1, n - 1, len(pairs)
    while i >= 0 and j >= 0:
        row = i % STRIP
        at = ((i // STRIP) * (n + STRIP) + j + row) * _WAYS + row // LANES
        lane = LANES - 1 - row % LANES
        if not ways[at] >> lane & 1:
            position -= 1
            pairs[position, 0], pairs[position, 1] = i, j
            i -= 1
            j -= 1
        elif ways[at + 2] >> lane & 1:
            i -= 1
        else:
            j -= 1
    return len(pairs) - position
