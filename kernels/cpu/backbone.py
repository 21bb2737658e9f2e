"""Extraction of the backbone atoms of residues from the atoms of a structure."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["ATOM_NAMES", "gather_backbone"]

ATOM_NAMES = tuple(int.from_bytes(name.ljust(8, b"\0"), "little") for name in (b"N", b"CA", b"C", b"O", b"OXT"))
"""Names of the atoms N, Cα, C, O and OXT, encoded as integers of eight characters, the first in the lowest byte."""

_NAME_N, _NAME_CA, _NAME_C, _NAME_O, _NAME_OXT = ATOM_NAMES
_CALCIUM = 20
_N, _CA, _C, _O = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def gather_backbone(atom_offsets, name, alternative, occupancy, element, position, least, most):
    """Return N, Cα, C and O of each residue, all from one alternative location if this location has all four.

    The location is the alternative location of the Cα with the highest occupancy (of equal ones, the first). Atoms are treated as missing
    if a coordinate is not finite or not within `least` to `most` Å.

    Parameters
    ----------
    atom_offsets
        (r + 1,) int64, start of the atoms of each residue, followed by their number.
    name
        (a,) int64, encoded as in `ATOM_NAMES`.
    alternative
        (a,) int8, character of the alternative location, or 0.
    occupancy
        (a,) float32.
    element
        (a,) uint8, atomic number, 0 if unknown.
    position
        (a, 3) float64.

    Returns
    -------
    backbone
        (r, 4, 3) float64, NaN for missing atoms.
    chosen
        (r,) int64, row of the Cα, or -1.
    is_calcium
        (r,) bool, True if the element of the atom in `chosen` is calcium.
    """
    n = len(atom_offsets) - 1
    backbone = np.full((n, 4, 3), np.nan)
    chosen, is_calcium = np.full(n, -1, np.int64), np.zeros(n, np.bool_)
    rank = np.empty(4, np.int64)
    for i in range(n):
        best, symbol = np.float32(-1.0), np.int8(0)
        for a in range(atom_offsets[i], atom_offsets[i + 1]):
            if name[a] == _NAME_CA and _is_place(position[a], least, most):
                weight = occupancy[a] if occupancy[a] >= 0.0 else np.float32(0.0)
                if weight > best:
                    best, symbol, chosen[i] = weight, alternative[a], a
        if chosen[i] < 0:
            continue
        is_calcium[i] = element[chosen[i]] == _CALCIUM
        rank[:] = 4
        for a in range(atom_offsets[i], atom_offsets[i + 1]):
            atom = -1
            if name[a] == _NAME_N:
                atom = _N
            elif name[a] == _NAME_C:
                atom = _C
            elif name[a] == _NAME_O or name[a] == _NAME_OXT:
                atom = _O
            if atom < 0 or not _is_place(position[a], least, most):
                continue
            # Order of preference: the same location, no location, another location; O before OXT; earlier atoms before later ones.
            result = 0 if alternative[a] == symbol else 1 if alternative[a] == 0 else 2
            if name[a] == _NAME_OXT:
                result = 3
            if result < rank[atom]:
                rank[atom] = result
                for axis in range(3):
                    backbone[i, atom, axis] = position[a, axis]
        for axis in range(3):
            backbone[i, _CA, axis] = position[chosen[i], axis]
    return backbone, chosen, is_calcium


@njit(nogil=True, cache=True)
def _is_place(position, least, most):
    fits = True
    for axis in range(3):
        fits &= position[axis] >= least and position[axis] <= most
    return fits
