"""Descriptors of residues, computed from Cα atoms: geometry, local conformation, nearest spatial neighbour, and burial.

The conformation covers five residues: angles between successive Cα vectors, both dihedrals (whose signs are the handedness), and the
end-to-end distance. The neighbour is the residue, at least three positions away, with the nearest side chain, as in the 3Di alphabet of
Foldseek (van Kempen et al. 2024, Nat Biotechnol 42:243), with a virtual side chain 3 Å outwards from Cα; it is described by the relative
arrangement of both residues. Conformation and neighbour are encoded by the nearest of a list of centres.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["CONFORMATION_FEATURES", "NEIGHBOUR_FEATURES", "RULES", "Coding", "describe_residues", "residue_features"]

CONFORMATION_FEATURES, NEIGHBOUR_FEATURES = 8, 10
"""Number of features of a conformation, and number of features of a neighbour."""

_SIDE_CHAIN = 3.0  # Å from Cα
_NEAREST_PLACES, _BURIAL_PLACES = 3, 4  # minimum sequence distances of a spatial neighbour, and of a residue counted for burial
_BURIAL_RADIUS = 14.0
# Divisors that scale the features to about one.
_SQUARED_STEP, _END_TO_END, _NEIGHBOUR_DISTANCE = 14.4, 6.0, 5.0
_FAR_PLACES, _NEAR_PLACES = 60, 4
RULES = (
    *(_SIDE_CHAIN, _NEAREST_PLACES, _BURIAL_PLACES, _BURIAL_RADIUS, _SQUARED_STEP, _END_TO_END, _NEIGHBOUR_DISTANCE),
    *(_FAR_PLACES, _NEAR_PLACES),
)
"""Rules that are part of the cache key of descriptors."""


@njit(nogil=True, cache=True, error_model="numpy")
def _unit(x, y, z):
    length = math.sqrt(x * x + y * y + z * z)
    if length < 1e-9:
        return 0.0, 0.0, 0.0
    return x / length, y / length, z / length


@njit(nogil=True, cache=True, error_model="numpy")
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(nogil=True, cache=True, error_model="numpy")
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(nogil=True, cache=True, error_model="numpy")
def _step(position, i, j):
    """Return the vector from residue i to residue j, in double precision."""
    return (
        np.float64(position[j, 0]) - np.float64(position[i, 0]),
        np.float64(position[j, 1]) - np.float64(position[i, 1]),
        np.float64(position[j, 2]) - np.float64(position[i, 2]),
    )


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_conformation(position, middle, features):
    steps = (
        _step(position, middle - 2, middle - 1),
        _step(position, middle - 1, middle),
        _step(position, middle, middle + 1),
        _step(position, middle + 1, middle + 2),
    )
    for k in range(3):
        features[k] = _dot(steps[k], steps[k + 1]) / _SQUARED_STEP
    for k in range(2):
        before, after = _cross(steps[k], steps[k + 1]), _cross(steps[k + 1], steps[k + 2])
        across = _cross(before, _unit(steps[k + 1][0], steps[k + 1][1], steps[k + 1][2]))
        dihedral = math.atan2(_dot(across, after), _dot(before, after))
        features[3 + 2 * k], features[4 + 2 * k] = math.cos(dihedral), math.sin(dihedral)
    end_to_end = _step(position, middle - 2, middle + 2)
    features[7] = math.sqrt(_dot(end_to_end, end_to_end)) / _END_TO_END


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_neighbour(along_i, out_i, along_j, out_j, apart, positions, features):
    """Write the features of residue j, the neighbour of residue i.

    They are cosines between the directions along and out of the chain at both residues and the direction from i to j, the distance, and
    the separation along the chain.
    """
    towards = _unit(apart[0], apart[1], apart[2])
    sign = (positions > 0) - (positions < 0)
    features[0], features[1], features[2] = _dot(along_i, along_j), _dot(along_i, towards), _dot(along_j, towards)
    features[3], features[4], features[5] = _dot(out_i, out_j), _dot(out_i, towards), -_dot(out_j, towards)
    features[6] = math.sqrt(_dot(apart, apart)) / _NEIGHBOUR_DISTANCE
    features[7] = sign * math.log(max(1, min(abs(positions), _FAR_PLACES))) / 2.0
    features[8] = sign * min(abs(positions), _NEAR_PLACES) / _NEAR_PLACES
    features[9] = _dot(_cross(along_i, along_j), towards)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_squares(points, i, squares):
    """Write the squared distances of point `i` of `points` (3, n) to all points."""
    x, y, z = points[0, i], points[1, i], points[2, i]
    for j in range(len(squares)):
        squares[j] = (points[0, j] - x) ** 2 + (points[1, j] - y) ** 2 + (points[2, j] - z) ** 2


@njit(nogil=True, cache=True, error_model="numpy")
def _n_within(squares):
    """Return the number of elements of `squares` (squared distances) that are within the burial radius."""
    n = 0
    for square in squares:
        n += square < _BURIAL_RADIUS * _BURIAL_RADIUS
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def residue_features(position, conformation, neighbour, positions, burial):
    """Write the features of the residues of one chain.

    Parameters
    ----------
    position : (n, 3) float32
        Cα coordinates in Å.
    conformation, neighbour : (n, 8) float64, (n, 10) float64
        Output, features of each residue.
    positions : (n,) int64
        Output; signed distance of the neighbour along the chain, in residues; 0 if there is no neighbour.
    burial : (n,) int64
        Output; number of residues within 14 Å that are at least four residues away.
    """
    n = len(position)
    along, outward, side = np.empty((n, 3)), np.empty((n, 3)), np.empty((n, 3))
    for i in range(n):
        middle = min(max(i, 1), n - 2) if n > 2 else 0
        back, forth = (_step(position, middle, middle - 1), _step(position, middle, middle + 1)) if n > 2 else ((0.0,) * 3, (0.0,) * 3)
        direction = _unit(forth[0] - back[0], forth[1] - back[1], forth[2] - back[2])
        out = _unit(-forth[0] - back[0], -forth[1] - back[1], -forth[2] - back[2])
        for axis in range(3):
            along[i, axis], outward[i, axis] = direction[axis], out[axis]
            side[i, axis] = np.float64(position[i, axis]) + _SIDE_CHAIN * out[axis]
    atoms, sides = np.empty((3, n)), np.ascontiguousarray(side.T)
    for axis in range(3):
        atoms[axis] = position[:, axis]
    to_atom, to_side = np.empty(n), np.empty(n)
    for i in range(n):
        conformation[i] = 0.0
        if n >= 5:
            _fill_conformation(position, min(max(i, 2), n - 3), conformation[i])
        _fill_squares(atoms, i, to_atom)
        _fill_squares(sides, i, to_side)
        n_near = _n_within(to_atom[: max(0, i - _BURIAL_PLACES + 1)]) + _n_within(to_atom[min(n, i + _BURIAL_PLACES) :])
        nearest, least = i, np.inf
        for j in range(n):
            if to_side[j] < least and abs(i - j) >= _NEAREST_PLACES:
                nearest, least = j, to_side[j]
        positions[i], burial[i] = nearest - i, n_near
        _fill_neighbour(along[i], outward[i], along[nearest], outward[nearest], _step(position, i, nearest), nearest - i, neighbour[i])


@njit(nogil=True, cache=True, error_model="numpy")
def _nearest_centre(features, centres):
    best, least = 0, np.inf
    for k in range(len(centres)):
        distance = 0.0
        for f in range(len(features)):
            distance += (features[f] - centres[k, f]) ** 2
        if distance < least:
            best, least = k, distance
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def _n_below(bounds, value):
    """Return the number of elements of `bounds`, ascending, that are below a value."""
    n = 0
    for bound in bounds:
        n += bound < value
    return n


class Coding(NamedTuple):
    """Conversion of features to integers.

    Attributes
    ----------
    conformations, neighbours : (k, 8) float64, (k, 10) float64
        Centres of the classes of both alphabets.
    separations, burials
        Bounds of the codes, int64, ascending: the code of a value is the number of bounds below it. There are separate bounds of
        separations for neighbours before and after the residue, with a code between them for no neighbour.
    length_units, angle_units
        Integer units per ångström and per radian.
    """

    conformations: NDArray[np.float64]
    neighbours: NDArray[np.float64]
    separations: NDArray[np.int64]
    burials: NDArray[np.int64]
    length_units: int
    angle_units: float


@njit(nogil=True, cache=True, error_model="numpy")
def describe_residues(position, offsets, first, last, coding, length, angle, states):
    """Write the descriptors of the residues of the chains `first:last`.

    Parameters
    ----------
    position : (r, 3) float32
        Cα coordinates in Å.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each chain, followed by r.
    coding
        `Coding`.
    length, angle : (r,) uint16
        Output. The last residue of a chain has the values of the previous residue; the last but one has the angle of the previous residue.
    states : (4, r) uint8
        Output; codes of conformation, neighbour, separation and burial.
    """
    conformations, neighbours, separations, burials, length_units, angle_units = coding
    longest = 0
    for chain in range(first, last):
        longest = max(longest, offsets[chain + 1] - offsets[chain])
    conformation, neighbour = np.empty((longest, CONFORMATION_FEATURES)), np.empty((longest, NEIGHBOUR_FEATURES))
    positions, burial = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for chain in range(first, last):
        begin, end = offsets[chain], offsets[chain + 1]
        atoms, n = position[begin:end], end - begin
        residue_features(atoms, conformation, neighbour, positions, burial)
        for i in range(n):
            states[0, begin + i] = _nearest_centre(conformation[i], conformations)
            states[1, begin + i] = _nearest_centre(neighbour[i], neighbours)
            apart = _n_below(separations, abs(positions[i]))
            states[2, begin + i] = len(separations) + (apart if positions[i] > 0 else -apart)
            states[3, begin + i] = _n_below(burials, burial[i])
            if i + 1 < n:
                step = _step(atoms, i, i + 1)
                length[begin + i] = min(65535, int(math.sqrt(_dot(step, step)) * length_units + 0.5))
            else:
                length[begin + i] = length[begin + i - 1] if n > 1 else 0
            if i + 2 < n:
                first, second = _step(atoms, i, i + 1), _step(atoms, i + 1, i + 2)
                turn = _cross(first, second)
                angle[begin + i] = int(math.atan2(math.sqrt(_dot(turn, turn)), _dot(first, second)) * angle_units + 0.5)
            else:
                angle[begin + i] = angle[begin + i - 1] if i > 0 else 0
