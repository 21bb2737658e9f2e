"""Least-squares superpositions and their scores, single and in batches.

The rotation of Kabsch (Acta Crystallographica A32, 1976, 922-923) is computed as a quaternion and thus never a reflection (Horn, Journal
of the Optical Society of America A 4, 1987, 629-642; its eigenvalue by Newton's method, Theobald, Acta Crystallographica A61, 2005,
478-480).

Pairs are (3, n) float64, one axis per row. A rotation depends only on the moments of the pairs, (17,) float64: the sums of x (3) and of y
(3), of the products of their axes (9), of the squares of both, and the number of pairs. A superposition is (12,) float64: the rotation row
by row, then the translation; it moves `x` onto `y`. In a batch, element c of the k-th moments or superposition is at ``c * BATCH + k``, so
that loops over a batch use vector instructions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "BATCH",
    "FARTHEST",
    "MOMENTS",
    "MOVE",
    "batch_workspace",
    "distances_squared",
    "grid_units",
    "least_squares",
    "moments",
    "near_moments",
    "near_totals",
    "on_grid",
    "rotations",
    "share_of",
]

BATCH = 16
"""Number of superpositions that are computed together."""
MOMENTS, MOVE = 17, 12
"""Number of moments of pairs, and number of elements of a superposition."""
FARTHEST = 1e6
"""Maximum distance (Å) of pairs."""

_REASSOCIATED = {"reassoc", "contract", "nsz"}  # LLVM fast-math flags, allowed because these sums are exact in any order
_EXACT = float(1 << 52)  # float64 represents all integers up to twice this value
_SHARE_UNITS = float(1 << 20)  # adding and subtracting this rounds to multiples of 2^-32
_NEWTON_STEPS = 9  # Newton steps of a batch; superpositions that have not converged by then are computed individually
_STATE_VALUES = 15  # numbers that a batch keeps between its loops: eigenvalue, its last step, coefficients and Horn's matrix


@njit(inline="always")
def _minor(a, b, c, d, e, f, g, h, i):
    """Return the determinant of a 3 x 3 matrix, given row by row."""
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


@njit(nogil=True, cache=True)
def _jacobi(k):
    """Return the eigenvector of the largest eigenvalue of a symmetric (4, 4) matrix, which is overwritten."""
    v = np.eye(4)
    for _ in range(50):
        off = 0.0
        for p in range(3):
            for q in range(p + 1, 4):
                off += k[p, q] * k[p, q]
        if off <= 1e-30 * (k[0, 0] ** 2 + k[1, 1] ** 2 + k[2, 2] ** 2 + k[3, 3] ** 2) or off == 0.0:
            break
        for p in range(3):
            for q in range(p + 1, 4):
                if k[p, q] == 0.0:
                    continue
                theta = (k[q, q] - k[p, p]) / (2.0 * k[p, q])
                t = (1.0 if theta >= 0.0 else -1.0) / (abs(theta) + np.sqrt(theta * theta + 1.0))
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for r in range(4):
                    a, b = k[r, p], k[r, q]
                    k[r, p], k[r, q] = c * a - s * b, s * a + c * b
                for r in range(4):
                    a, b = k[p, r], k[q, r]
                    k[p, r], k[q, r] = c * a - s * b, s * a + c * b
                for r in range(4):
                    a, b = v[r, p], v[r, q]
                    v[r, p], v[r, q] = c * a - s * b, s * a + c * b
    best = 0
    for p in range(1, 4):
        if k[p, p] > k[best, best]:
            best = p
    return v[0, best], v[1, best], v[2, best], v[3, best]


@njit(nogil=True, cache=True)
def _rotation_of_moments(sums, move):
    """Write the least-squares superposition of pairs with the given moments (see `moments`) to `move` (12,)."""
    n = sums[16]
    if n <= 0.0:
        move[:] = 0.0
        move[0] = move[4] = move[8] = 1.0
        return
    inverse = 1.0 / n
    mx, my, mz, ux, uy, uz = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    xx, xy, xz = sums[6] - mx * ux * inverse, sums[7] - mx * uy * inverse, sums[8] - mx * uz * inverse
    yx, yy, yz = sums[9] - my * ux * inverse, sums[10] - my * uy * inverse, sums[11] - my * uz * inverse
    zx, zy, zz = sums[12] - mz * ux * inverse, sums[13] - mz * uy * inverse, sums[14] - mz * uz * inverse
    inner = 0.5 * (sums[15] - (mx * mx + my * my + mz * mz + ux * ux + uy * uy + uz * uz) * inverse)
    # Horn's matrix. Its largest eigenvalue is slightly below `inner`.
    k00, k01, k02, k03 = xx + yy + zz, yz - zy, zx - xz, xy - yx
    k11, k12, k13 = xx - yy - zz, xy + yx, zx + xz
    k22, k23, k33 = -xx + yy - zz, yz + zy, -xx - yy + zz
    c2 = -2.0 * (xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz)
    c1 = -8.0 * _minor(xx, xy, xz, yx, yy, yz, zx, zy, zz)
    c0 = (
        k00 * _minor(k11, k12, k13, k12, k22, k23, k13, k23, k33)
        - k01 * _minor(k01, k12, k13, k02, k22, k23, k03, k23, k33)
        + k02 * _minor(k01, k11, k13, k02, k12, k23, k03, k13, k33)
        - k03 * _minor(k01, k11, k12, k02, k12, k22, k03, k13, k23)
    )
    value = inner
    converged = False
    for _ in range(30):
        square = value * value
        slope = 4.0 * square * value + 2.0 * c2 * value + c1
        if slope <= 0.0:
            break
        step = (square * square + c2 * square + c1 * value + c0) / slope
        value -= step
        if abs(step) <= 1e-13 * abs(value):
            converged = True
            break
    a00, a11, a22, a33 = k00 - value, k11 - value, k22 - value, k33 - value
    # The adjugate of K - value is a multiple of v v^T for the eigenvector v: use the column with the largest diagonal element.
    d0 = _minor(a11, k12, k13, k12, a22, k23, k13, k23, a33)
    d1 = _minor(a00, k02, k03, k02, a22, k23, k03, k23, a33)
    d2 = _minor(a00, k01, k03, k01, a11, k13, k03, k13, a33)
    d3 = _minor(a00, k01, k02, k01, a11, k12, k02, k12, a22)
    most = max(abs(d0), abs(d1), abs(d2), abs(d3))
    if converged and most > 1e-7 * value * value * value:
        if most == abs(d0):
            q0 = d0
            q1 = -_minor(k01, k12, k13, k02, a22, k23, k03, k23, a33)
            q2 = _minor(k01, a11, k13, k02, k12, k23, k03, k13, a33)
            q3 = -_minor(k01, a11, k12, k02, k12, a22, k03, k13, k23)
        elif most == abs(d1):
            q0 = -_minor(k01, k02, k03, k12, a22, k23, k13, k23, a33)
            q1 = d1
            q2 = -_minor(a00, k01, k03, k02, k12, k23, k03, k13, a33)
            q3 = _minor(a00, k01, k02, k02, k12, a22, k03, k13, k23)
        elif most == abs(d2):
            q0 = _minor(k01, k02, k03, a11, k12, k13, k13, k23, a33)
            q1 = -_minor(a00, k02, k03, k01, k12, k13, k03, k23, a33)
            q2 = d2
            q3 = -_minor(a00, k01, k02, k01, a11, k12, k03, k13, k23)
        else:
            q0 = -_minor(k01, k02, k03, a11, k12, k13, k12, a22, k23)
            q1 = _minor(a00, k02, k03, k01, k12, k13, k02, a22, k23)
            q2 = -_minor(a00, k01, k03, k01, a11, k13, k02, k12, k23)
            q3 = d3
    else:
        matrix = np.array([[k00, k01, k02, k03], [k01, k11, k12, k13], [k02, k12, k22, k23], [k03, k13, k23, k33]])
        q0, q1, q2, q3 = _jacobi(matrix)
    scale = 1.0 / np.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    q0, q1, q2, q3 = q0 * scale, q1 * scale, q2 * scale, q3 * scale
    move[0], move[1], move[2] = q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3, 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q3 + q0 * q2)
    move[3], move[4], move[5] = 2.0 * (q1 * q2 + q0 * q3), q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3, 2.0 * (q2 * q3 - q0 * q1)
    move[6], move[7], move[8] = 2.0 * (q1 * q3 - q0 * q2), 2.0 * (q2 * q3 + q0 * q1), q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3
    for axis in range(3):
        moved = move[3 * axis] * mx + move[3 * axis + 1] * my + move[3 * axis + 2] * mz
        move[9 + axis] = (sums[3 + axis] - moved) * inverse


@njit(nogil=True, cache=True)
def grid_units(n, largest):
    """Return the number of grid units per Å for n pairs whose coordinates are at most `largest` Å from 0 (see `on_grid`)."""
    units = float(1 << 20)
    while 6.0 * n * (largest * units + 1.0) * (largest * units + 1.0) > _EXACT:
        units *= 0.5
    return units


@njit(nogil=True, cache=True)
def on_grid(x, y):
    """Round the coordinates of two chains, in place, to the finest grid on which all sums in `moments` are exact.

    The spacing of the grid is a power of two: 2^-20 Å for the shortest chains, 2^-15 Å for chains of 300 residues.
    """
    largest = 0.0
    for columns in (x, y):
        for axis in range(3):
            for i in range(columns.shape[1]):
                largest = max(largest, abs(columns[axis, i]))
    units = grid_units(min(x.shape[1], y.shape[1]), largest)
    for columns in (x, y):
        for axis in range(3):
            for i in range(columns.shape[1]):
                columns[axis, i] = np.rint(columns[axis, i] * units) / units


@njit(nogil=True, cache=True)
def batch_workspace():
    """Return a workspace for `rotations`: moments, superpositions and intermediates."""
    return np.zeros(MOMENTS * BATCH), np.zeros((MOVE + 1) * BATCH), np.zeros(_STATE_VALUES * BATCH)


@njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
def _rotations(sums, moves, state):
    """Compute `rotations`. Row `MOVE` of `moves` is positive only for valid results; collinear pairs, for example, have no valid result."""
    for k in range(BATCH):
        inverse = 1.0 / sums[16 * BATCH + k]
        mx, my, mz = sums[k], sums[BATCH + k], sums[2 * BATCH + k]
        ux, uy, uz = sums[3 * BATCH + k], sums[4 * BATCH + k], sums[5 * BATCH + k]
        ix, iy, iz = mx * inverse, my * inverse, mz * inverse
        xx, xy, xz = sums[6 * BATCH + k] - ix * ux, sums[7 * BATCH + k] - ix * uy, sums[8 * BATCH + k] - ix * uz
        yx, yy, yz = sums[9 * BATCH + k] - iy * ux, sums[10 * BATCH + k] - iy * uy, sums[11 * BATCH + k] - iy * uz
        zx, zy, zz = sums[12 * BATCH + k] - iz * ux, sums[13 * BATCH + k] - iz * uy, sums[14 * BATCH + k] - iz * uz
        k00, k01, k02, k03 = xx + yy + zz, yz - zy, zx - xz, xy - yx
        k11, k12, k13 = xx - yy - zz, xy + yx, zx + xz
        k22, k23, k33 = -xx + yy - zz, yz + zy, -xx - yy + zz
        # Bound: if four eigenvalues sum to 0, none exceeds sqrt(3/4 of the sum of their squares).
        squares = xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz + zx * zx + zy * zy + zz * zz
        inner = 0.5 * (sums[15 * BATCH + k] - (mx * mx + my * my + mz * mz + ux * ux + uy * uy + uz * uz) * inverse)
        state[k] = min(inner, np.sqrt(3.0 * squares))
        state[BATCH + k] = 0.0
        state[2 * BATCH + k] = -2.0 * squares
        state[3 * BATCH + k] = -8.0 * _minor(xx, xy, xz, yx, yy, yz, zx, zy, zz)
        state[4 * BATCH + k] = (
            k00 * _minor(k11, k12, k13, k12, k22, k23, k13, k23, k33)
            - k01 * _minor(k01, k12, k13, k02, k22, k23, k03, k23, k33)
            + k02 * _minor(k01, k11, k13, k02, k12, k23, k03, k13, k33)
            - k03 * _minor(k01, k11, k12, k02, k12, k22, k03, k13, k23)
        )
        state[5 * BATCH + k], state[6 * BATCH + k], state[7 * BATCH + k], state[8 * BATCH + k] = k00, k01, k02, k03
        state[9 * BATCH + k], state[10 * BATCH + k], state[11 * BATCH + k] = k11, k12, k13
        state[12 * BATCH + k], state[13 * BATCH + k], state[14 * BATCH + k] = k22, k23, k33
    for _ in range(_NEWTON_STEPS):
        for k in range(BATCH):
            value, c2, c1, c0 = state[k], state[2 * BATCH + k], state[3 * BATCH + k], state[4 * BATCH + k]
            square = value * value
            step = (square * square + c2 * square + c1 * value + c0) / (4.0 * square * value + 2.0 * c2 * value + c1)
            state[k], state[BATCH + k] = value - step, step
    for k in range(BATCH):
        value, step = state[k], state[BATCH + k]
        k00, k01, k02, k03 = state[5 * BATCH + k], state[6 * BATCH + k], state[7 * BATCH + k], state[8 * BATCH + k]
        k11, k12, k13 = state[9 * BATCH + k], state[10 * BATCH + k], state[11 * BATCH + k]
        k22, k23, k33 = state[12 * BATCH + k], state[13 * BATCH + k], state[14 * BATCH + k]
        a00, a11, a22, a33 = k00 - value, k11 - value, k22 - value, k33 - value
        # The complete adjugate of K - value, so that the column with the largest diagonal element is selected without a branch.
        d0 = _minor(a11, k12, k13, k12, a22, k23, k13, k23, a33)
        d1 = _minor(a00, k02, k03, k02, a22, k23, k03, k23, a33)
        d2 = _minor(a00, k01, k03, k01, a11, k13, k03, k13, a33)
        d3 = _minor(a00, k01, k02, k01, a11, k12, k02, k12, a22)
        d01, d02 = -_minor(k01, k12, k13, k02, a22, k23, k03, k23, a33), _minor(k01, a11, k13, k02, k12, k23, k03, k13, a33)
        d03, d12 = -_minor(k01, a11, k12, k02, k12, a22, k03, k13, k23), -_minor(a00, k01, k03, k02, k12, k23, k03, k13, a33)
        d13, d23 = _minor(a00, k01, k02, k02, k12, a22, k03, k13, k23), -_minor(a00, k01, k02, k01, a11, k12, k03, k13, k23)
        is_0, is_2 = abs(d0) >= abs(d1), abs(d2) >= abs(d3)
        first, second = abs(d0) if is_0 else abs(d1), abs(d2) if is_2 else abs(d3)
        p0, p1, p2, p3 = d0 if is_0 else d01, d01 if is_0 else d1, d02 if is_0 else d12, d03 if is_0 else d13
        q0, q1, q2, q3 = d02 if is_2 else d03, d12 if is_2 else d13, d2 if is_2 else d23, d23 if is_2 else d3
        is_first = first >= second
        most = first if is_first else second
        q0, q1, q2, q3 = p0 if is_first else q0, p1 if is_first else q1, p2 if is_first else q2, p3 if is_first else q3
        norm = 1.0 / (q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
        twice = norm + norm
        r0, r1, r2 = (q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3) * norm, (q1 * q2 - q0 * q3) * twice, (q1 * q3 + q0 * q2) * twice
        r3, r4, r5 = (q1 * q2 + q0 * q3) * twice, (q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3) * norm, (q2 * q3 - q0 * q1) * twice
        r6, r7, r8 = (q1 * q3 - q0 * q2) * twice, (q2 * q3 + q0 * q1) * twice, (q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3) * norm
        inverse = 1.0 / sums[16 * BATCH + k]
        mx, my, mz = sums[k] * inverse, sums[BATCH + k] * inverse, sums[2 * BATCH + k] * inverse
        moves[k], moves[BATCH + k], moves[2 * BATCH + k] = r0, r1, r2
        moves[3 * BATCH + k], moves[4 * BATCH + k], moves[5 * BATCH + k] = r3, r4, r5
        moves[6 * BATCH + k], moves[7 * BATCH + k], moves[8 * BATCH + k] = r6, r7, r8
        moves[9 * BATCH + k] = sums[3 * BATCH + k] * inverse - (r0 * mx + r1 * my + r2 * mz)
        moves[10 * BATCH + k] = sums[4 * BATCH + k] * inverse - (r3 * mx + r4 * my + r5 * mz)
        moves[11 * BATCH + k] = sums[5 * BATCH + k] * inverse - (r6 * mx + r7 * my + r8 * mz)
        moves[12 * BATCH + k] = most - 1e-7 * value * value * value if abs(step) <= 1e-7 * value else -1.0


@njit(nogil=True, cache=True)
def rotations(sums, count, moves, state):
    """Write the Kabsch superpositions of a batch of moments.

    Parameters
    ----------
    sums : (MOMENTS * BATCH,) float64
        Moments.
    count : (BATCH,) int64
        Number of pairs; 0 skips a superposition.
    moves : ((MOVE + 1) * BATCH,) float64
        Output; superpositions.
    state
        Workspace of `batch_workspace`.
    """
    _rotations(sums, moves, state)
    for k in range(BATCH):
        if count[k] and not moves[MOVE * BATCH + k] > 0.0:
            move = np.empty(MOVE)
            _rotation_of_moments(sums[k::BATCH], move)
            moves[k : MOVE * BATCH : BATCH] = move


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED, _nrt=False)
def moments(x, y, first_x, first_y, count, sums):
    """Write the moments of a batch of segments of pairs.

    Segment k consists of ``count[k]`` pairs from ``first_x[k]`` in x and ``first_y[k]`` in y.

    Parameters
    ----------
    x, y : (3, n) float64
        Coordinates.
    first_x, first_y, count : (BATCH,) int64
        Starts and lengths of the segments, which may be empty.
    sums : (MOMENTS * BATCH,) float64
        Output; moments of the segments.
    """
    for k in range(BATCH):
        n, p, q = count[k], first_x[k], first_y[k]
        x0, x1, x2, y0, y1, y2 = x[0][p : p + n], x[1][p : p + n], x[2][p : p + n], y[0][q : q + n], y[1][q : q + n], y[2][q : q + n]
        sx = sy = sz = ux = uy = uz = xx = xy = xz = yx = yy = yz = zx = zy = zz = squares = 0.0
        for i in range(n):
            a, b, c, d, e, f = x0[i], x1[i], x2[i], y0[i], y1[i], y2[i]
            sx += a
            sy += b
            sz += c
            ux += d
            uy += e
            uz += f
            xx += a * d
            xy += a * e
            xz += a * f
            yx += b * d
            yy += b * e
            yz += b * f
            zx += c * d
            zy += c * e
            zz += c * f
            squares += a * a + b * b + c * c + d * d + e * e + f * f
        sums[k], sums[BATCH + k], sums[2 * BATCH + k] = sx, sy, sz
        sums[3 * BATCH + k], sums[4 * BATCH + k], sums[5 * BATCH + k] = ux, uy, uz
        sums[6 * BATCH + k], sums[7 * BATCH + k], sums[8 * BATCH + k] = xx, xy, xz
        sums[9 * BATCH + k], sums[10 * BATCH + k], sums[11 * BATCH + k] = yx, yy, yz
        sums[12 * BATCH + k], sums[13 * BATCH + k], sums[14 * BATCH + k] = zx, zy, zz
        sums[15 * BATCH + k], sums[16 * BATCH + k] = squares, n


# Stated explicitly, since the function would otherwise inherit the fast-math flags of its callers.
_ROUNDED_AS_WRITTEN: dict[str, bool] = {"fastmath": False, "forceinline": True}


@njit(nogil=True, cache=True, **_ROUNDED_AS_WRITTEN)
def _apart(move, s, t, u, d, e, f):
    """Return the squared distance between the transformed point (s, t, u) and (d, e, f); the order of roundings is fixed."""
    r0, r1, r2, r3, r4, r5, r6, r7, r8, t0, t1, t2 = move
    a, b, c = r0 * s + r1 * t + r2 * u + t0 - d, r3 * s + r4 * t + r5 * u + t1 - e, r6 * s + r7 * t + r8 * u + t2 - f
    return a * a + b * b + c * c


@njit(nogil=True, cache=True, error_model="numpy", **_ROUNDED_AS_WRITTEN)
def share_of(apart, inverse):
    """Return 1 / (1 + apart * inverse), rounded to a multiple of 2^-32, so that sums are exact."""
    return 1.0 / (1.0 + apart * inverse) + _SHARE_UNITS - _SHARE_UNITS


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED, error_model="numpy", _nrt=False)
def near_moments(x, y, first_x, first_y, count, moves, scale, limits, sums, totals):
    """Score the segments of pairs (see `moments`) under each superposition of a batch; empty segments are skipped.

    The sums of 1 / (1 + (d / scale)^2) are written to `totals` (BATCH,), the moments of pairs nearer than ``limits[k]`` (BATCH,) to `sums`
    (MOMENTS * BATCH,); a limit is increased in steps of half an Å until it includes three pairs.
    """
    inverse = 1.0 / (scale * scale)
    for k in range(BATCH):
        n, p, q = count[k], first_x[k], first_y[k]
        if n == 0:
            continue
        x0, x1, x2, y0, y1, y2 = x[0][p : p + n], x[1][p : p + n], x[2][p : p + n], y[0][q : q + n], y[1][q : q + n], y[2][q : q + n]
        superposition = (
            moves[k],
            moves[BATCH + k],
            moves[2 * BATCH + k],
            moves[3 * BATCH + k],
            moves[4 * BATCH + k],
            moves[5 * BATCH + k],
            moves[6 * BATCH + k],
            moves[7 * BATCH + k],
            moves[8 * BATCH + k],
            moves[9 * BATCH + k],
            moves[10 * BATCH + k],
            moves[11 * BATCH + k],
        )
        limit = limits[k]
        while True:
            bound = limit * limit
            total = near = sx = sy = sz = ux = uy = uz = xx = xy = xz = yx = yy = yz = zx = zy = zz = squares = 0.0
            for i in range(n):
                s, t, u, d, e, f = x0[i], x1[i], x2[i], y0[i], y1[i], y2[i]
                apart = _apart(superposition, s, t, u, d, e, f)
                total += share_of(apart, inverse)
                w = 1.0 if apart < bound else 0.0
                a, b, c = s * w, t * w, u * w
                near += w
                sx += a
                sy += b
                sz += c
                ux += w * d
                uy += w * e
                uz += w * f
                xx += a * d
                xy += a * e
                xz += a * f
                yx += b * d
                yy += b * e
                yz += b * f
                zx += c * d
                zy += c * e
                zz += c * f
                squares += a * s + b * t + c * u + w * (d * d + e * e + f * f)
            if near >= 3.0 or n <= 3 or not limit < FARTHEST:
                break
            limit += 0.5
        totals[k] = total
        sums[k], sums[BATCH + k], sums[2 * BATCH + k] = sx, sy, sz
        sums[3 * BATCH + k], sums[4 * BATCH + k], sums[5 * BATCH + k] = ux, uy, uz
        sums[6 * BATCH + k], sums[7 * BATCH + k], sums[8 * BATCH + k] = xx, xy, xz
        sums[9 * BATCH + k], sums[10 * BATCH + k], sums[11 * BATCH + k] = yx, yy, yz
        sums[12 * BATCH + k], sums[13 * BATCH + k], sums[14 * BATCH + k] = zx, zy, zz
        sums[15 * BATCH + k], sums[16 * BATCH + k] = squares, near


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED, error_model="numpy", _nrt=False)
def near_totals(x, y, first_x, first_y, count, moves, scale, totals):
    """Write only the score sums of `near_moments`: the same bits in half the time."""
    inverse = 1.0 / (scale * scale)
    for k in range(BATCH):
        n, p, q = count[k], first_x[k], first_y[k]
        if n == 0:
            continue
        x0, x1, x2, y0, y1, y2 = x[0][p : p + n], x[1][p : p + n], x[2][p : p + n], y[0][q : q + n], y[1][q : q + n], y[2][q : q + n]
        superposition = (
            moves[k],
            moves[BATCH + k],
            moves[2 * BATCH + k],
            moves[3 * BATCH + k],
            moves[4 * BATCH + k],
            moves[5 * BATCH + k],
            moves[6 * BATCH + k],
            moves[7 * BATCH + k],
            moves[8 * BATCH + k],
            moves[9 * BATCH + k],
            moves[10 * BATCH + k],
            moves[11 * BATCH + k],
        )
        total = 0.0
        for i in range(n):
            total += share_of(_apart(superposition, x0[i], x1[i], x2[i], y0[i], y1[i], y2[i]), inverse)
        totals[k] = total


@njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
def distances_squared(x, y, n, move, squared):
    """Write the squared distances of the first n pairs under a superposition (12,) to `squared`."""
    x0, x1, x2, y0, y1, y2 = x[0], x[1], x[2], y[0], y[1], y[2]
    superposition = move[0], move[1], move[2], move[3], move[4], move[5], move[6], move[7], move[8], move[9], move[10], move[11]
    for i in range(n):
        squared[i] = _apart(superposition, x0[i], x1[i], x2[i], y0[i], y1[i], y2[i])


@njit(nogil=True, cache=True)
def least_squares(x, y):
    """Return the least-squares superposition (12,) that moves x (3, n) onto y (3, n), and its RMSD."""
    n = x.shape[1]
    move, squared = np.empty(MOVE), np.empty(n)
    zero, count, batch = np.zeros(BATCH, np.int64), np.zeros(BATCH, np.int64), np.empty(MOMENTS * BATCH)
    count[0] = n
    moments(x, y, zero, zero, count, batch)
    _rotation_of_moments(batch[::BATCH], move)
    distances_squared(x, y, n, move, squared)
    return move, np.sqrt(squared.sum() / max(1, n))
