"""Conversion of pairs of chains to the input of the superposition kernels, and of their output to results.

The search on GPUs uses these functions too, so that input and results are the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.least_squares import grid_units, on_grid
from proteoscope.kernels.cpu.secondary_structure import states_by_distances

__all__ = ["farthest_pair", "place_chains", "place_pairs", "report_pair", "report_pairs", "shorter_and_longer", "start_of_pair", "tm_scale"]


@njit(nogil=True, cache=True)
def tm_scale(length):
    """Return the scale d0 (Å, at least 0.5) of a TM-score that is normalised by the given chain length."""
    return max(0.5, 1.24 * np.cbrt(length - 15.0) - 1.8) if length > 21 else 0.5


@njit(nogil=True, cache=True)
def farthest_pair(length):
    """Return the cutoff distance (Å) up to which residues can be aligned, for a shorter chain of the given length."""
    return 1.5 * length**0.3 + 3.5


@njit(nogil=True, cache=True)
def _centred(rows):
    """Return coordinates (3, n) relative to the centre of the residues, and the centre (3,)."""
    columns, centre = np.empty((3, len(rows))), np.empty(3)
    for axis in range(3):
        centre[axis] = rows[:, axis].sum() / len(rows)
        for i in range(len(rows)):
            columns[axis, i] = rows[i, axis] - centre[axis]
    return columns, centre


@njit(nogil=True, cache=True)
def _chain(pairs, number):
    """Return the Cα coordinates of a chain, (r, 3)."""
    return pairs.position[pairs.offsets[number] : pairs.offsets[number + 1]]


@njit(nogil=True, cache=True)
def shorter_and_longer(pairs, k):
    """Return both chains of pair k of `ChainPairs`: the shorter one first, or the mobile one if lengths are equal.

    The result is coordinates (3, m), (3, n), centred at 0 on a grid on which sums are exact; secondary structure (m,), (n,); True if the
    mobile chain is longer.
    """
    fixed, mobile = _chain(pairs, pairs.fixed[k]), _chain(pairs, pairs.mobile[k])
    is_turned = len(mobile) > len(fixed)
    shorter, longer = (fixed, mobile) if is_turned else (mobile, fixed)
    x, _ = _centred(shorter)
    y, _ = _centred(longer)
    on_grid(x, y)
    return x, y, states_by_distances(shorter.astype(np.float32)), states_by_distances(longer.astype(np.float32)), is_turned


@njit(nogil=True, cache=True)
def start_of_pair(pairs, k, is_turned):
    """Return the initial alignment of pair k, (p, 2) int32: residue indices in the shorter and the longer chain."""
    begin, end = pairs.start_offsets[k], pairs.start_offsets[k + 1]
    start = np.empty((end - begin, 2), np.int32)
    for p in range(end - begin):
        start[p, 0], start[p, 1] = pairs.start_pairs[begin + p, 1 - is_turned], pairs.start_pairs[begin + p, 0 + is_turned]
    return start


@njit(nogil=True, cache=True)
def report_pair(pairs, k, by_x, by_y, move, aligned, superpositions):
    """Write the result of pair k to `superpositions` (`FoundSuperpositions`).

    Parameters
    ----------
    by_x, by_y
        TM-scores normalised by the lengths of the two chains, in the order of `shorter_and_longer`.
    move : (12,)
        Superposition that moves x onto y.
    aligned : (count, 2)
        Aligned residues of both chains.
    """
    fixed, mobile = _chain(pairs, pairs.fixed[k]), _chain(pairs, pairs.mobile[k])
    is_turned = len(mobile) > len(fixed)
    moves, count, position = superpositions.moves, len(aligned), superpositions.places[k]
    superpositions.scores[k, 0], superpositions.scores[k, 1] = (by_x, by_y) if is_turned else (by_y, by_x)
    for row in range(3):
        for column in range(3):
            moves[k, 3 * row + column] = move[3 * column + row] if is_turned else move[3 * row + column]
    for row in range(3):
        # For centred chains y = R x + t; if `turned`, x and y are exchanged.
        moved = fixed[:, row].sum() / len(fixed) + (0.0 if is_turned else move[9 + row])
        for column in range(3):
            centre = mobile[:, column].sum() / len(mobile)
            moved -= moves[k, 3 * row + column] * (centre + (move[9 + column] if is_turned else 0.0))
        moves[k, 9 + row] = moved
    squares = 0.0
    for p in range(count):
        i, j = aligned[p, 1 - is_turned], aligned[p, 0 + is_turned]
        superpositions.pairs[position + p, 0], superpositions.pairs[position + p, 1] = i, j
        for row in range(3):
            apart = moves[k, 9 + row] - fixed[i, row]
            for column in range(3):
                apart += moves[k, 3 * row + column] * mobile[j, column]
            squares += apart * apart
    superpositions.rmsd[k], superpositions.counts[k] = np.sqrt(squares / max(1, count)), count


@njit(nogil=True, cache=True)
def place_chains(pairs, numbers, columns, states, largest):
    """Concatenate chains, centred at 0 but not on a grid.

    Parameters
    ----------
    numbers : int64, (c,)
        Numbers of the chains in `pairs`.
    columns : float64
        Output; three numbers per residue: x coordinates of the first chain, then y and z, then those of the second chain, and so on.
    states : uint8
        Output; secondary structure, one number per residue.
    largest : float64, (c,)
        Output; largest absolute coordinate of each chain.
    """
    place = 0
    for k in range(len(numbers)):
        rows = _chain(pairs, numbers[k])
        n, (chain, _) = len(rows), _centred(rows)
        largest[k] = 0.0
        for axis in range(3):
            columns[3 * place + axis * n : 3 * place + (axis + 1) * n] = chain[axis]
            for i in range(n):
                largest[k] = max(largest[k], abs(chain[axis, i]))
        states[place : place + n] = states_by_distances(rows.astype(np.float32))
        place += n


@njit(nogil=True, cache=True)
def place_pairs(pairs, first, last, largest, units, starts):
    """Write the grid and the initial alignment of each of the pairs `first:last`.

    Parameters
    ----------
    largest : float64
        Largest absolute coordinate of each chain of `pairs`.
    units : float64, (last - first,)
        Output; grid units per Å.
    starts : (k, 2) int32
        Output; initial alignments as residues of the shorter and longer chain.
    """
    begun = pairs.start_offsets[first]
    for k in range(first, last):
        fixed, mobile = len(_chain(pairs, pairs.fixed[k])), len(_chain(pairs, pairs.mobile[k]))
        units[k - first] = grid_units(min(fixed, mobile), max(largest[pairs.fixed[k]], largest[pairs.mobile[k]]))
        starts[pairs.start_offsets[k] - begun : pairs.start_offsets[k + 1] - begun] = start_of_pair(pairs, k, mobile > fixed)


@njit(nogil=True, cache=True)
def report_pairs(pairs, first, moves, scores, counts, aligned, superpositions):
    """Write the results of consecutive pairs from `first` on (see `report_pair`).

    Parameters
    ----------
    moves
        (n, 12), superposition of each pair.
    scores
        (n, 2), TM-scores normalised by the shorter and longer chain.
    counts
        (n,), number of aligned residues.
    aligned
        Aligned residues of all pairs, with space for the length of the shorter chain of each.
    """
    for row in range(len(moves)):
        k = first + row
        begun = superpositions.places[k] - superpositions.places[first]
        report_pair(pairs, k, scores[row, 0], scores[row, 1], moves[row], aligned[begun : begun + counts[row]], superpositions)
