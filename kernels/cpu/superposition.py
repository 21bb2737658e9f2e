"""Superposition of protein chains: least squares, TM-score, and the search for the superposition that has the greatest.

Least squares: the rotation that Kabsch defines (Acta Crystallographica A32, 1976, 922-923), as a quaternion, which is never a reflection
(Horn, Journal of the Optical Society of America A 4, 1987, 629-642; its eigenvalue by Newton's method, Theobald, Acta Crystallographica
A61, 2005, 478-480). TM-score: Zhang & Skolnick, Proteins 57, 2004, 702-710. The search follows TM-align (Zhang & Skolnick, Nucleic Acids
Research 33, 2005, 2302-2309): superpose on pieces of an alignment and again on what then lies near, align anew by the distances, repeat.

Coordinates are (3, n) float64 here, an axis a row, so that loops over residues become vector instructions. A superposition is (12,)
float64: the rotation row by row, then the translation; it moves `x`, the target, onto `y`, the query.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["MAXIMUM_CELLS", "best_superposition", "least_squares", "tm_scale", "tm_score_of_pairs"]

MAXIMUM_CELLS = 1 << 26
"""Of an alignment by distances, a byte each; longer pairs of chains keep the alignment they come with."""

_REASSOCIATED = {"reassoc", "contract", "nsz"}
_N_ROUNDS = 20  # at most, of superposing on what lies near
_N_HALVINGS = 6  # of the length of pieces
_MINIMUM_PIECE = 4
_COARSE = 40  # residues between the starts of two pieces in a search that only guides
_GAP = -0.6
_UNIT = 1 << 15  # of the whole numbers that pairs are aligned by
_FIRST_REFINEMENTS, _MAXIMUM_REFINEMENTS = 2, 12
_MINIMUM_GAIN = 1e-4
_TABLE = 2048
_MAXIMUM_FRAGMENTS = 600  # pairs of pieces of one length that are superposed
_HOPELESS = 0.5  # of the best score: a start with less is not refined


@njit(nogil=True, cache=True)
def _minor(a, b, c, d, e, f, g, h, i):
    """Determinant of three rows of three."""
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


@njit(nogil=True, cache=True)
def _jacobi(k):
    """Eigenvector of the greatest eigenvalue of a symmetric (4, 4) matrix, which is overwritten."""
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
def _rotation_of_moments(n, sums, found):
    """The superposition of least squares from the sums of `_add_moments` over `n` pairs."""
    if n <= 0.0:
        found[:] = 0.0
        found[0] = found[4] = found[8] = 1.0
        return
    inverse = 1.0 / n
    mx, my, mz, ux, uy, uz = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    xx, xy, xz = sums[6] - mx * ux * inverse, sums[7] - mx * uy * inverse, sums[8] - mx * uz * inverse
    yx, yy, yz = sums[9] - my * ux * inverse, sums[10] - my * uy * inverse, sums[11] - my * uz * inverse
    zx, zy, zz = sums[12] - mz * ux * inverse, sums[13] - mz * uy * inverse, sums[14] - mz * uz * inverse
    inner = 0.5 * (sums[15] - (mx * mx + my * my + mz * mz + ux * ux + uy * uy + uz * uz) * inverse)
    # Horn's matrix; its greatest eigenvalue is near `inner`, from below.
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
    # The adjugate of K - value is a multiple of the eigenvector's dyad: of its columns that with the greatest diagonal is taken.
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
    found[0], found[1], found[2] = q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3, 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q3 + q0 * q2)
    found[3], found[4], found[5] = 2.0 * (q1 * q2 + q0 * q3), q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3, 2.0 * (q2 * q3 - q0 * q1)
    found[6], found[7], found[8] = 2.0 * (q1 * q3 - q0 * q2), 2.0 * (q2 * q3 + q0 * q1), q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3
    for axis in range(3):
        moved = found[3 * axis] * mx + found[3 * axis + 1] * my + found[3 * axis + 2] * mz
        found[9 + axis] = (sums[3 + axis] - moved) * inverse


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED)
def _moments(x, y, weight, first, last, sums):
    """Sums over the pairs `first:last`, each times its weight: x, y, their products and squares; the sum of weights is returned."""
    x0, x1, x2, y0, y1, y2 = x[0], x[1], x[2], y[0], y[1], y[2]
    n = sx = sy = sz = ux = uy = uz = xx = xy = xz = yx = yy = yz = zx = zy = zz = squares = 0.0
    for i in range(first, last):
        w = weight[i]
        a, b, c, d, e, f = x0[i] * w, x1[i] * w, x2[i] * w, y0[i], y1[i], y2[i]
        n += w
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
        squares += a * x0[i] + b * x1[i] + c * x2[i] + w * (d * d + e * e + f * f)
    sums[0], sums[1], sums[2], sums[3], sums[4], sums[5] = sx, sy, sz, ux, uy, uz
    sums[6], sums[7], sums[8], sums[9], sums[10], sums[11] = xx, xy, xz, yx, yy, yz
    sums[12], sums[13], sums[14], sums[15] = zx, zy, zz, squares
    return n


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED, error_model="numpy")
def _score(x, y, n, move, scale, squared):
    """Sum of 1 / (1 + (d / scale)^2) over the pairs under a superposition; d^2 of each goes to `squared`."""
    x0, x1, x2, y0, y1, y2 = x[0], x[1], x[2], y[0], y[1], y[2]
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = move[0], move[1], move[2], move[3], move[4], move[5], move[6], move[7], move[8]
    t0, t1, t2 = move[9], move[10], move[11]
    inverse = 1.0 / (scale * scale)
    total = 0.0
    for i in range(n):
        a = r0 * x0[i] + r1 * x1[i] + r2 * x2[i] + t0 - y0[i]
        b = r3 * x0[i] + r4 * x1[i] + r5 * x2[i] + t1 - y1[i]
        c = r6 * x0[i] + r7 * x1[i] + r8 * x2[i] + t2 - y2[i]
        d = a * a + b * b + c * c
        squared[i] = d
        total += 1.0 / (1.0 + d * inverse)
    return total


@njit(nogil=True, cache=True, fastmath=_REASSOCIATED)
def _select(squared, n, limit, keys, weight):
    """Give weight 1 to the pairs nearer than `limit`, 0 to others; how many those are, and a number that tells which."""
    bound = limit * limit
    count, mark = 0.0, np.int64(0)
    for i in range(n):
        is_near = squared[i] < bound
        weight[i] = 1.0 if is_near else 0.0
        count += weight[i]
        mark += keys[i] if is_near else np.int64(0)
    return count, mark


@njit(nogil=True, cache=True)
def _select_enough(squared, n, limit, keys, weight):
    """As `_select`, with a limit that grows by half an Å until it takes in three pairs."""
    count, mark = _select(squared, n, limit, keys, weight)
    while count < 3.0 and n > 3:
        limit += 0.5
        if limit > 1e6:
            break
        count, mark = _select(squared, n, limit, keys, weight)
    return count, mark


@njit(nogil=True, cache=True)
def _is_new(mark, seen):
    """Whether a selection was not met before; notes it while there is room."""
    place = (mark ^ (mark >> np.int64(29))) & np.int64(_TABLE - 1)
    for _ in range(16):
        if seen[place] == mark:
            return False
        if seen[place] == 0:
            seen[place] = mark
            return True
        place = (place + 1) & np.int64(_TABLE - 1)
    return True


@njit(nogil=True, cache=True)
def _search(x, y, n, scale, near, step, keys, weight, squared, seen, best):
    """The superposition of pairs with the greatest sum of scores; it goes to `best`, the sum is returned.

    Pieces of the alignment, from all of it to four pairs, are superposed, then what lies near, until that is the same as before. What
    follows a selection depends on it alone, so that none is gone through twice.

    Parameters
    ----------
    scale : d0 of the score. near : Å, about which pairs count as near. step : between the starts of pieces; 1 for all; 0 for a few of
    each length, a fourth of it apart.
    """
    sums, move = np.empty(16), np.empty(12)
    greatest = -1.0
    if n == 0:
        best[:] = 0.0
        best[0] = best[4] = best[8] = 1.0
        return 0.0
    seen[:] = 0
    shortest = min(_MINIMUM_PIECE, n)
    length = n
    for halving in range(_N_HALVINGS):
        length = max(n >> halving, shortest)
        if halving == _N_HALVINGS - 1:
            length = shortest
        start = 0
        stride = step if step else max(2, length // 4)
        while True:
            weight[start : start + length] = 1.0
            count = _moments(x, y, weight, start, start + length, sums)
            _rotation_of_moments(count, sums, move)
            total = _score(x, y, n, move, scale, squared)
            if total > greatest:
                greatest = total
                best[:] = move
            count, mark = _select_enough(squared, n, near - 1.0, keys, weight)
            for _ in range(_N_ROUNDS):
                if not _is_new(mark, seen):
                    break
                count = _moments(x, y, weight, 0, n, sums)
                _rotation_of_moments(count, sums, move)
                total = _score(x, y, n, move, scale, squared)
                if total > greatest:
                    greatest = total
                    best[:] = move
                count, mark = _select_enough(squared, n, near + 1.0, keys, weight)
            if start >= n - length:
                break
            start = min(start + stride, n - length)
        if length == shortest:
            break
    return greatest


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, error_model="numpy", _nrt=False)
def _rewards(a, b, c, u, v, w, first, back, count, inverse, share, rewards):
    """`share` / (1 + (d / scale)^2) of the pairs of an antidiagonal. Places are unsigned, which spares a look for negative ones."""
    for s in range(count):
        p, q, r = a[s + first] - u[s + back], b[s + first] - v[s + back], c[s + first] - w[s + back]
        rewards[s] = np.int32(share / (np.float32(1.0) + (p * p + q * q + r * r) * inverse))


@njit(nogil=True, cache=True, _nrt=False)
def _add_states(states_x, states_y, first, back, count, share, rewards):
    """Add `share` where the secondary structure is equal."""
    for s in range(count):
        rewards[s] += share if states_x[s + first] == states_y[s + back] else np.int32(0)


@njit(nogil=True, cache=True, _nrt=False)
def _diagonal(earlier, before, rewards, first, count, cost, values, ways):
    """One antidiagonal of an alignment. A value is twice the score, and 1 more where it ends in a pair, from which a gap costs."""
    one = np.int32(1)
    for s in range(count):
        straight = (earlier[s + first] >> one) + rewards[s]
        from_x, from_y = before[s + first], before[s + first + np.uint64(1)]
        gap_x = (from_x >> one) + (from_x & one) * cost
        gap_y = (from_y >> one) + (from_y & one) * cost
        gapped = max(gap_x, gap_y)
        is_straight = straight >= gapped
        values[s + first + np.uint64(1)] = np.int32((max(straight, gapped) << one) | np.int32(is_straight))
        ways[s + first + np.uint64(1)] = np.uint8(0) if is_straight else (np.uint8(1) if gap_y >= gap_x else np.uint8(2))


@njit(nogil=True, cache=True)
def _align(x, y, states_x, states_y, move, scale, gap, by_states, by_distance, ways, pairs):
    """Global alignment by 1 / (1 + (d / scale)^2) under a superposition, or by equal secondary structure.

    Returns how many pairs it has, and its score in `_UNIT`.

    End gaps cost nothing to begin with, an open gap `gap`, a longer one no more. Cells of one antidiagonal do not depend on each other
    and are computed together, in whole numbers: of loops with few arrays the compiler makes vector instructions.

    Parameters
    ----------
    x (3, m), y (3, n) : the shorter chain is x. by_states, by_distance : weights of the two terms. ways (m + n + 1, m + 1) uint8 : room.
    pairs (m, 2) int32 : the pairs are written to its end.
    """
    m, n = x.shape[1], y.shape[1]
    # Row i of x stands at i, row j of y at n - 1 - j: along an antidiagonal both are then walked through upwards.
    moved, other = np.empty((3, m), np.float32), np.empty((3, n), np.float32)
    for axis in range(3):
        for i in range(m):
            moved[axis, i] = move[3 * axis] * x[0, i] + move[3 * axis + 1] * x[1, i] + move[3 * axis + 2] * x[2, i] + move[9 + axis]
        for j in range(n):
            other[axis, n - 1 - j] = y[axis, j]
    a, b, c, u, v, w = moved[0], moved[1], moved[2], other[0], other[1], other[2]
    states_back = states_y[::-1].copy()
    inverse, share = np.float32(1.0 / (scale * scale)), np.float32(by_distance * _UNIT)
    cost, state_share = np.int32(gap * _UNIT), np.int32(by_states * _UNIT)
    rewards = np.zeros(m, np.int32)
    values, before, earlier = np.zeros(m + 1, np.int32), np.zeros(m + 1, np.int32), np.zeros(m + 1, np.int32)
    for k in range(2, m + n + 1):
        # Cell i, j = k - i compares row i - 1 of x with row j - 1 of y.
        low, high = max(1, k - n), min(m, k - 1)
        first, back, count = np.uint64(low - 1), np.uint64(n - k + low), np.uint64(high - low + 1)
        values[0] = 0
        if k <= m:
            values[k] = 0
        if by_distance > 0.0:
            _rewards(a, b, c, u, v, w, first, back, count, inverse, share, rewards)
        else:
            rewards[:] = 0
        if state_share:
            _add_states(states_x, states_back, first, back, count, state_share, rewards)
        _diagonal(earlier, before, rewards, first, count, cost, values, ways[k])
        values, before, earlier = earlier, values, before
    i, j, place = m, n, len(pairs)
    while i > 0 and j > 0:
        way = ways[i + j, i]
        if way == 0:
            i -= 1
            j -= 1
            place -= 1
            pairs[place, 0], pairs[place, 1] = i, j
        elif way == 1:
            j -= 1
        else:
            i -= 1
    return len(pairs) - place, before[m] >> 1


@njit(nogil=True, cache=True)
def tm_scale(length):
    """d0 of the TM-score normalised by a chain of this length, in Å; 0.5 at least."""
    return max(0.5, 1.24 * np.cbrt(length - 15.0) - 1.8) if length > 21 else 0.5


@njit(nogil=True, cache=True)
def _near(scale):
    """Å within which pairs are superposed in a search."""
    return min(8.0, max(4.5, scale))


@njit(nogil=True, cache=True)
def _gather(x, y, pairs, first, ax, ay):
    """The coordinates of the pairs from row `first` on."""
    for k in range(first, len(pairs)):
        for axis in range(3):
            ax[axis, k - first] = x[axis, pairs[k, 0]]
            ay[axis, k - first] = y[axis, pairs[k, 1]]


@njit(nogil=True, cache=True)
def _keys(n):
    """(n,) numbers without order, of whose sums two selections hardly have the same."""
    keys = np.empty(n, np.int64)
    state = np.uint64(0x9E3779B97F4A7C15)
    for i in range(n):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys[i] = np.int64((z ^ (z >> np.uint64(31))) | np.uint64(1))
    return keys


@njit(nogil=True, cache=True)
def least_squares(x, y):
    """The superposition of least squares of pairs, (12,): rotation and translation that move x (3, n) onto y (3, n); and its RMSD."""
    n = x.shape[1]
    sums, move, squared = np.empty(16), np.empty(12), np.empty(n)
    count = _moments(x, y, np.ones(n), 0, n, sums)
    _rotation_of_moments(count, sums, move)
    _score(x, y, n, move, 1.0, squared)
    return move, np.sqrt(squared.sum() / max(1, n))


@njit(nogil=True, cache=True)
def tm_score_of_pairs(x, y, length, step):
    """The greatest TM-score that a superposition of these pairs has, normalised by `length`, and that superposition (12,).

    Parameters
    ----------
    x, y (3, n) float64 : the pairs. step : between the starts of pieces, 1 for the whole search.
    """
    n = x.shape[1]
    best = np.empty(12)
    scale = tm_scale(length)
    found = _search(x, y, n, scale, _near(scale), step, _keys(n), np.empty(n), np.empty(n), np.empty(_TABLE, np.int64), best)
    return found / max(1, length), best


@njit(nogil=True, cache=True)
def _thread(x, y, scale, near, keys, weight, squared, ax, ay, pairs):
    """The best shift of one chain along the other without gaps, as pairs; how many they are."""
    m, n = x.shape[1], y.shape[1]
    sums, move = np.empty(16), np.empty(12)
    shortest = max(min(m, n) // 2, min(5, m, n))
    greatest, chosen = -1.0, 0
    weight[:] = 1.0
    for shift in range(shortest - m, n - shortest + 1):
        first, last = max(0, -shift), min(m, n - shift)
        length = last - first
        if length <= 0:
            continue
        for axis in range(3):
            for i in range(length):
                ax[axis, i], ay[axis, i] = x[axis, first + i], y[axis, first + shift + i]
                weight[i] = 1.0
        count = _moments(ax, ay, weight, 0, length, sums)
        _rotation_of_moments(count, sums, move)
        total = _score(ax, ay, length, move, scale, squared)
        if total < 0.5 * greatest:
            continue
        count, _ = _select_enough(squared, length, near, keys, weight)
        count = _moments(ax, ay, weight, 0, length, sums)
        _rotation_of_moments(count, sums, move)
        total = max(total, _score(ax, ay, length, move, scale, squared))
        if total > greatest:
            greatest, chosen = total, shift
    first, last = max(0, -chosen), min(m, n - chosen)
    place = len(pairs) - (last - first)
    for i in range(first, last):
        pairs[place + i - first, 0], pairs[place + i - first, 1] = i, i + chosen
    return last - first


@njit(nogil=True, cache=True)
def best_superposition(x, y, start, states_x, states_y, n_fragments, n_searched, n_refined, n_finished, last_step):
    """The alignment of two chains and its superposition with the greatest TM-score that is found.

    Parameters
    ----------
    x (3, m), y (3, n) float64 : Cα of target and query in Å. start (k, 2) int32 : pairs (row of x, row of y) to begin with, ascending in
    both; may be empty. states_x, states_y : secondary structure of each. n_fragments : pairs of pieces that are tried besides (2 at least).
    n_searched : those of them that are searched. n_refined : beginnings that are refined a little. n_finished : those of them that are
    refined until nothing is gained. last_step : of `_search` for the alignment at the end.

    Returns
    -------
    move (12,) : the superposition, best for the TM-score normalised by the shorter chain; score_x, score_y : TM-scores normalised by m and
    by n, each with its own best superposition of the pairs; rmsd : of the pairs under `move`; pairs (p, 2) int32.
    """
    if x.shape[1] > y.shape[1]:
        # The search has the shorter chain first.
        turned = np.empty_like(start)
        turned[:, 0], turned[:, 1] = start[:, 1], start[:, 0]
        move, score_y, score_x, rmsd, found = _best(
            y, x, turned, states_y, states_x, n_fragments, n_searched, n_refined, n_finished, last_step
        )
        back = np.empty(12)
        for row in range(3):
            back[9 + row] = 0.0
            for column in range(3):
                back[3 * row + column] = move[3 * column + row]
                back[9 + row] -= move[3 * column + row] * move[9 + column]
        pairs = np.empty_like(found)
        pairs[:, 0], pairs[:, 1] = found[:, 1], found[:, 0]
        return back, score_x, score_y, rmsd, pairs
    return _best(x, y, start, states_x, states_y, n_fragments, n_searched, n_refined, n_finished, last_step)


@njit(nogil=True, cache=True)
def _fragments(x, y, scale, weight, squared, ax, ay, moves, scores):
    """Superpositions of short and of long pieces of both chains, those that fit best: to `moves`, as many as it has rows, and `scores`."""
    m, n = x.shape[1], y.shape[1]
    sums, move = np.empty(16), np.empty(12)
    scores[:] = -1.0
    weight[:] = 1.0
    half = len(scores) // 2
    for kind in range(2):
        length = min(m, 20) if kind == 0 else min(m, max(30, m // 2))
        jump = max(5, length // 3)
        places_x, places_y = max(1, (m - length) // jump + 1), max(1, (n - length) // jump + 1)
        while places_x * places_y > _MAXIMUM_FRAGMENTS:
            jump += jump // 2
            places_x, places_y = max(1, (m - length) // jump + 1), max(1, (n - length) // jump + 1)
        first, last = kind * half, (kind + 1) * half
        for p in range(places_x):
            for q in range(places_y):
                for axis in range(3):
                    for i in range(length):
                        ax[axis, i], ay[axis, i] = x[axis, p * jump + i], y[axis, q * jump + i]
                count = _moments(ax, ay, weight, 0, length, sums)
                _rotation_of_moments(count, sums, move)
                total = _score(ax, ay, length, move, scale, squared) / length
                if total > scores[last - 1]:
                    place = last - 1
                    while place > first and scores[place - 1] < total:
                        scores[place] = scores[place - 1]
                        moves[place] = moves[place - 1]
                        place -= 1
                    scores[place] = total
                    moves[place] = move


@njit(nogil=True, cache=True)
def _keep(score, move, scores, moves):
    """Insert a superposition among the best, which are sorted, unless one with the same score is there."""
    n = len(scores)
    for k in range(n):
        if abs(scores[k] - score) < 1e-6:
            return
    if score <= scores[n - 1]:
        return
    place = n - 1
    while place > 0 and scores[place - 1] < score:
        scores[place] = scores[place - 1]
        moves[place] = moves[place - 1]
        place -= 1
    scores[place] = score
    moves[place] = move


@njit(nogil=True, cache=True)
def _best(x, y, start, states_x, states_y, n_fragments, n_searched, n_refined, n_finished, last_step):
    """`best_superposition` of a chain x that is no longer than y."""
    m, n = x.shape[1], y.shape[1]
    room = max(m, len(start))
    scale = tm_scale(m)
    near = _near(scale)
    guide = scale + 0.8  # a wider scale while searching
    keys, weight, squared, seen = _keys(room), np.empty(room), np.empty(room), np.empty(_TABLE, np.int64)
    ax, ay = np.empty((3, room)), np.empty((3, room))
    pairs, best_pairs = np.empty((m, 2), np.int32), np.empty((room, 2), np.int32)
    move, best_move = np.empty(12), np.zeros(12)
    best_move[0] = best_move[4] = best_move[8] = 1.0
    best, n_best = -1.0, 0
    if len(start):
        n_best = len(start)
        best_pairs[:n_best] = start
        _gather(x, y, start, 0, ax, ay)
        best = _search(ax, ay, n_best, guide, near, _COARSE, keys, weight, squared, seen, best_move)
    if (m + n + 1) * (m + 1) <= MAXIMUM_CELLS:
        ways = np.empty((m + n + 1, m + 1), np.uint8)
        # Where to begin: the given alignment, the best shift, secondary structure, that and what lies near, and pieces that fit.
        scores, moves = np.full(n_refined, -1.0), np.empty((n_refined, 12))
        if n_best:
            _keep(best, best_move, scores, moves)
        fragment_scores, fragments = np.empty(n_fragments), np.empty((n_fragments, 12))
        _fragments(x, y, guide, weight, squared, ax, ay, fragments, fragment_scores)
        for k in range(n_fragments):
            if fragment_scores[k] > 0.0:
                _, value = _align(x, y, states_x, states_y, fragments[k], guide, _GAP, 0.0, 1.0, ways, pairs)
                fragment_scores[k] = value
        order = np.argsort(-fragment_scores)
        for kind in range(3 + n_searched):
            if kind == 0:
                count = _thread(x, y, guide, near, keys, weight, squared, ax, ay, pairs)
            elif kind == 1:
                count, _ = _align(x, y, states_x, states_y, best_move, guide, -1.0, 1.0, 0.0, ways, pairs)
            elif kind < 2 + n_searched:
                at = fragments[order[kind - 2]]
                if fragment_scores[order[kind - 2]] <= 0.0:
                    continue
                count, _ = _align(x, y, states_x, states_y, at, guide, _GAP, 0.0, 1.0, ways, pairs)
            else:
                if best <= 0.0:
                    continue
                count, _ = _align(x, y, states_x, states_y, moves[0], guide, -1.0, 0.5, 1.0, ways, pairs)
            _gather(x, y, pairs, m - count, ax, ay)
            score = _search(ax, ay, count, guide, near, _COARSE, keys, weight, squared, seen, move)
            _keep(score, move, scores, moves)
            if score > best:
                best, n_best = score, count
                best_move[:] = move
                best_pairs[:count] = pairs[m - count :]
        # All are refined a little, then the best until nothing is gained, with gaps that cost and with free ones.
        some_scores, some_moves = scores.copy(), moves.copy()
        scores[:] = -1.0
        for kind in range(n_refined + 2 * n_finished):
            is_short = kind < n_refined
            if is_short:
                move[:] = some_moves[kind]
                before = some_scores[kind]
                gap, rounds = _GAP, _FIRST_REFINEMENTS
            else:
                chosen = (kind - n_refined) // 2
                if chosen >= n_refined:
                    continue
                move[:] = moves[chosen]
                before = scores[chosen]
                gap, rounds = (_GAP, 0.0)[(kind - n_refined) % 2], _MAXIMUM_REFINEMENTS
            if before < _HOPELESS * best:
                continue
            for _ in range(rounds):
                count, _value = _align(x, y, states_x, states_y, move, guide, gap, 0.0, 1.0, ways, pairs)
                _gather(x, y, pairs, m - count, ax, ay)
                score = _search(ax, ay, count, guide, near, _COARSE, keys, weight, squared, seen, move)
                if is_short:
                    _keep(score, move, scores, moves)
                if score > best:
                    best, n_best = score, count
                    best_move[:] = move
                    best_pairs[:count] = pairs[m - count :]
                if abs(score - before) < _MINIMUM_GAIN * m:
                    break
                before = score
    # At last, pieces of all lengths; and pairs that lie far apart then are none.
    _gather(x, y, best_pairs[:n_best], 0, ax, ay)
    _search(ax, ay, n_best, guide, near, last_step, keys, weight, squared, seen, best_move)
    _score(ax, ay, n_best, best_move, scale, squared)
    limit = 1.5 * m**0.3 + 3.5
    kept = 0
    for k in range(n_best):
        if squared[k] <= limit * limit:
            best_pairs[kept] = best_pairs[k]
            kept += 1
    final = best_pairs[:kept].copy()
    _gather(x, y, final, 0, ax, ay)
    score_x = _search(ax, ay, kept, scale, near, last_step, keys, weight, squared, seen, best_move) / m
    score_y = score_x
    if n != m:
        scale_y = tm_scale(n)
        score_y = _search(ax, ay, kept, scale_y, _near(scale_y), last_step, keys, weight, squared, seen, move) / n
    _score(ax, ay, kept, best_move, scale, squared)
    return best_move, score_x, score_y, np.sqrt(squared[:kept].sum() / max(1, kept)), final
