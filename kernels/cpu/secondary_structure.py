"""Secondary structure of protein chains in three states: 0 coil, 1 helix, 2 strand.

With backbone atoms, states follow from hydrogen bonds (Kabsch & Sander, Biopolymers 22, 1983, 2577-2637, with later changes of their
program: a residue has its two best acceptors, and only residues with Cα within 9 Å are considered); DSSP's H, G and I are helix, E and B
strand. With Cα only, states follow from the distances between five successive ones (Zhang & Skolnick, Nucleic Acids Research 33, 2005,
2302-2309).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["states_by_distances", "states_by_hydrogen_bonds"]

_COIL, _HELIX, _STRAND = np.uint8(0), np.uint8(1), np.uint8(2)
_N, _CA, _C, _O = 0, 1, 2, 3

_PEPTIDE_BOND = 2.5  # maximum distance in Å from C to the next N
_CA_DISTANCE = 9.0
_COUPLING = 27.888  # kcal/mol Å: 0.42 e x 0.20 e x 332
_BOND_ENERGY, _MINIMUM_ENERGY = -0.5, -9.9  # kcal/mol
_MINIMUM_DISTANCE = 0.5
_MAXIMUM_LOOKED_AT = 20_000
"""Maximum number of residues within 9 Å along x that are compared with a residue. Capsids have thousands; the limit bounds the time for
files with all atoms at one point."""
_MAXIMUM_NEAR = 256
"""Maximum number of following residues within the maximum distance; proteins have fewer than thirty."""
_PARALLEL, _ANTIPARALLEL = 1, 2
_BULGE_SHORT, _BULGE_LONG = 3, 6


@njit(nogil=True, cache=True)
def _hydrogens(backbone, is_joined, is_proline):
    """Return the position of the hydrogen at each N, (r, 1, 3): 1 Å from N, opposite to the preceding C=O; NaN if unknown."""
    hydrogen = np.full((len(backbone), 1, 3), np.nan)
    for i in range(1, len(backbone)):
        if is_joined[i - 1] and not is_proline[i]:
            x = backbone[i - 1, _C, 0] - backbone[i - 1, _O, 0]
            y = backbone[i - 1, _C, 1] - backbone[i - 1, _O, 1]
            z = backbone[i - 1, _C, 2] - backbone[i - 1, _O, 2]
            length = np.sqrt(x * x + y * y + z * z)
            if length > 0.0:
                hydrogen[i, 0, 0] = backbone[i, _N, 0] + x / length
                hydrogen[i, 0, 1] = backbone[i, _N, 1] + y / length
                hydrogen[i, 0, 2] = backbone[i, _N, 2] + z / length
    return hydrogen


@njit(nogil=True, cache=True, error_model="numpy")
def _apart(atoms, i, a, j, b):
    """Return the distance (Å) of atom `a` of residue `i` and atom `b` of residue `j`."""
    x, y, z = atoms[i, a, 0] - atoms[j, b, 0], atoms[i, a, 1] - atoms[j, b, 1], atoms[i, a, 2] - atoms[j, b, 2]
    return np.sqrt(x * x + y * y + z * z)


@njit(nogil=True, cache=True, error_model="numpy")
def _keep_bond(donor, acceptor, backbone, hydrogen, partner, energy):
    """Store the hydrogen bond from N-H of `donor` to O=C of `acceptor`, if it is one of the two strongest bonds of the donor."""
    if np.isnan(hydrogen[donor, 0, 0]):
        return
    x, y, z = hydrogen[donor, 0, 0], hydrogen[donor, 0, 1], hydrogen[donor, 0, 2]
    ox, oy, oz = x - backbone[acceptor, _O, 0], y - backbone[acceptor, _O, 1], z - backbone[acceptor, _O, 2]
    cx, cy, cz = x - backbone[acceptor, _C, 0], y - backbone[acceptor, _C, 1], z - backbone[acceptor, _C, 2]
    ho, hc = np.sqrt(ox * ox + oy * oy + oz * oz), np.sqrt(cx * cx + cy * cy + cz * cz)
    nc, no = _apart(backbone, donor, _N, acceptor, _C), _apart(backbone, donor, _N, acceptor, _O)
    if min(ho, hc, nc, no) < _MINIMUM_DISTANCE:
        result = _MINIMUM_ENERGY
    else:
        result = -_COUPLING / ho + _COUPLING / hc - _COUPLING / nc + _COUPLING / no
        result = max(np.floor(result * 1000.0 + 0.5) / 1000.0, _MINIMUM_ENERGY)
    if result < energy[donor, 0]:
        energy[donor, 1], partner[donor, 1] = energy[donor, 0], partner[donor, 0]
        energy[donor, 0], partner[donor, 0] = result, acceptor
    elif result < energy[donor, 1]:
        energy[donor, 1], partner[donor, 1] = result, acceptor


@njit(nogil=True, cache=True)
def _is_bond(donor, acceptor, partner, energy):
    return (partner[donor, 0] == acceptor and energy[donor, 0] < _BOND_ENERGY) or (
        partner[donor, 1] == acceptor and energy[donor, 1] < _BOND_ENERGY
    )


@njit(nogil=True, cache=True)
def _bridge(b, e, joined, partner, energy):
    """Return the type of bridge between the residues `b` and `e`, or 0."""
    n = len(joined)
    if b < 1 or e < 1 or b + 1 >= n or e + 1 >= n:
        return 0
    if not (joined[b - 1] and joined[b] and joined[e - 1] and joined[e]):
        return 0
    a, c, d, f = b - 1, b + 1, e - 1, e + 1
    if (_is_bond(c, e, partner, energy) and _is_bond(e, a, partner, energy)) or (
        _is_bond(f, b, partner, energy) and _is_bond(b, d, partner, energy)
    ):
        return _PARALLEL
    if (_is_bond(c, d, partner, energy) and _is_bond(f, a, partner, energy)) or (
        _is_bond(e, b, partner, energy) and _is_bond(b, e, partner, energy)
    ):
        return _ANTIPARALLEL
    return 0


@njit(nogil=True, cache=True)
def _near_pairs(x, y, z, position, last, neighbours):
    """Write the later rows within the maximum distance of row `position` to `neighbours`; return the number of these rows.

    Rows are sorted by x.
    """
    count = 0
    reach = _CA_DISTANCE * _CA_DISTANCE
    for q in range(position + 1, last):
        dx = x[q] - x[position]
        if dx > _CA_DISTANCE:
            break
        dy, dz = y[q] - y[position], z[q] - z[position]
        neighbours[count] = q
        count += 1 if dx * dx + dy * dy + dz * dz <= reach else 0
        if count == len(neighbours):
            break
    return count


@njit(nogil=True, cache=True)
def _find_bridges(first, second, joined, partner, energy):
    """Return i, j and the type of each bridge between residues i < j, (k, 3) int64, sorted by i, then by j."""
    result = np.empty((64, 3), np.int64)
    n_found = 0
    for p in range(len(first)):
        i, j = min(first[p], second[p]), max(first[p], second[p])
        if j - i < 3:
            continue
        kind = _bridge(i, j, joined, partner, energy)
        if kind:
            if n_found == len(result):
                larger = np.empty((2 * n_found, 3), np.int64)
                larger[:n_found] = result
                result = larger
            result[n_found, 0], result[n_found, 1], result[n_found, 2] = i, j, kind
            n_found += 1
    result = result[:n_found]
    sorted_by_j = result[np.argsort(result[:, 1], kind="mergesort")]
    return sorted_by_j[np.argsort(sorted_by_j[:, 0], kind="mergesort")]


@njit(nogil=True, cache=True)
def _mark_strands(bridges, number, block, states):
    """Set the residues of bridges, and the residues of a bulge between two ladders of the same type, to strand."""
    # Ladders: i from first to last, j from low to high.
    first, last = bridges[:, 0].copy(), bridges[:, 0].copy()
    low, high = bridges[:, 1].copy(), bridges[:, 1].copy()
    kind = bridges[:, 2].copy()
    n_ladders = 0
    oldest = 0
    for k in range(len(bridges)):
        i, j = bridges[k, 0], bridges[k, 1]
        states[i] = states[j] = _STRAND
        while oldest < n_ladders and last[oldest] < i - 1:
            oldest += 1
        grown = False
        for m in range(oldest, n_ladders):
            if kind[m] != bridges[k, 2] or last[m] + 1 != i:
                continue
            if kind[m] == _PARALLEL and high[m] + 1 == j:
                last[m], high[m], grown = i, j, True
                break
            if kind[m] == _ANTIPARALLEL and low[m] - 1 == j:
                last[m], low[m], grown = i, j, True
                break
        if not grown:
            first[n_ladders], last[n_ladders], low[n_ladders], high[n_ladders], kind[n_ladders] = i, i, j, j, bridges[k, 2]
            n_ladders += 1
    is_merged = np.zeros(n_ladders, np.bool_)
    for m in range(n_ladders):
        if is_merged[m]:
            continue
        for k in range(m + 1, n_ladders):
            if number[first[k]] - number[last[m]] >= _BULGE_LONG:
                break
            if is_merged[k] or kind[k] != kind[m] or (last[m] >= first[k] and first[m] <= last[k]):
                continue
            # Ladders are not joined across a chain break.
            if block[first[m]] != block[last[k]] or block[min(low[m], low[k])] != block[max(high[m], high[k])]:
                continue
            gap = number[first[k]] - number[last[m]]
            other = number[low[k]] - number[high[m]] if kind[m] == _PARALLEL else number[low[m]] - number[high[k]]
            if other >= 0 and ((other < _BULGE_LONG and gap < _BULGE_SHORT) or other < _BULGE_SHORT):
                last[m] = last[k]
                low[m], high[m] = min(low[m], low[k]), max(high[m], high[k])
                is_merged[k] = True
        states[first[m] : last[m] + 1] = _STRAND
        states[low[m] : high[m] + 1] = _STRAND


@njit(nogil=True, cache=True)
def _mark_helices(joined, partner, energy, states):
    """Set the residues of helices, which are two successive turns of the same stride.

    α (stride 4) takes precedence over strands; 3-10 replaces only coil, π only coil or α.
    """
    n = len(joined)
    breaks_before = np.zeros(n + 1, np.int64)
    for i in range(n):
        breaks_before[i + 1] = breaks_before[i] + (0 if joined[i] else 1)
    helices = np.zeros(n, np.int64)  # turn length of the helix, 0 outside helices
    for stride in (4, 3, 5):
        before = False
        for i in range(n - stride):
            turn = breaks_before[i + stride] == breaks_before[i] and _is_bond(i + stride, i, partner, energy)
            if turn and before:
                free = True
                for k in range(i, i + stride):
                    is_coil = states[k] != _STRAND and helices[k] == 0
                    free &= stride == 4 or is_coil or helices[k] == stride or (stride == 5 and helices[k] == 4)
                if free:
                    helices[i : i + stride] = stride
            before = turn
    for i in range(n):
        if helices[i]:
            states[i] = _HELIX


@njit(nogil=True, cache=True)
def states_by_hydrogen_bonds(backbone, is_proline, chain_offsets):
    """Return the secondary structure of each residue, from hydrogen bonds.

    Parameters
    ----------
    backbone : (r, 4, 3) float64
        N, Cα, C and O of each residue in Å; residues with a missing atom (NaN) are coil.
    is_proline : (r,) bool
        True for residues without a hydrogen to donate.
    chain_offsets : (n + 1,) int64
        Starts of chains; bonds may connect chains, helices and ladders do not.

    Returns
    -------
    ndarray of uint8, shape (r,)
    """
    n_all = len(backbone)
    states_of_all = np.zeros(n_all, np.uint8)
    whole = np.empty(n_all, np.int64)
    chain_of = np.empty(n_all, np.int64)
    n = 0
    for c in range(len(chain_offsets) - 1):
        for i in range(chain_offsets[c], chain_offsets[c + 1]):
            is_whole = True
            for atom in range(4):
                for axis in range(3):
                    is_whole &= np.isfinite(backbone[i, atom, axis])
            if is_whole:
                whole[n], chain_of[n] = i, c
                n += 1
    if n < 3:
        return states_of_all
    whole = whole[:n]
    atoms, prolines = backbone[whole], is_proline[whole]
    joined = np.zeros(n, np.bool_)
    number, block = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(n - 1):
        joined[i] = chain_of[i] == chain_of[i + 1] and _apart(atoms, i, _C, i + 1, _N) <= _PEPTIDE_BOND
        number[i + 1] = number[i] + (1 if joined[i] else 2)
        block[i + 1] = block[i] + (0 if joined[i] else 1)
    hydrogen = _hydrogens(atoms, joined, prolines)
    partner, energy = np.full((n, 2), -1, np.int64), np.zeros((n, 2))
    order = np.argsort(atoms[:, _CA, 0], kind="mergesort")
    x, y, z = atoms[order, _CA, 0], atoms[order, _CA, 1], atoms[order, _CA, 2]
    near = np.empty(_MAXIMUM_NEAR, np.int64)
    first, second = np.empty(16 * n, np.int32), np.empty(16 * n, np.int32)
    n_pairs = 0
    for p in range(n):
        here = order[p]
        count = _near_pairs(x, y, z, p, min(n, p + 1 + _MAXIMUM_LOOKED_AT), near)
        if n_pairs + count > len(first):
            first, second = np.append(first, np.empty_like(first)), np.append(second, np.empty_like(second))
        for k in range(count):
            there = order[near[k]]
            first[n_pairs], second[n_pairs] = here, there
            n_pairs += 1
            # The N-H of the next residue does not form a hydrogen bond with this C=O.
            if not (here == there + 1 and joined[there]):
                _keep_bond(here, there, atoms, hydrogen, partner, energy)
            if not (there == here + 1 and joined[here]):
                _keep_bond(there, here, atoms, hydrogen, partner, energy)
    states = np.zeros(n, np.uint8)
    bridges = _find_bridges(first[:n_pairs], second[:n_pairs], joined, partner, energy)
    if len(bridges):
        _mark_strands(bridges, number, block, states)
    _mark_helices(joined, partner, energy, states)
    states_of_all[whole] = states
    return states_of_all


@njit(nogil=True, cache=True)
def _between(position, i, j):
    x, y, z = position[i, 0] - position[j, 0], position[i, 1] - position[j, 1], position[i, 2] - position[j, 2]
    return np.sqrt(x * x + y * y + z * z)


@njit(nogil=True, cache=True)
def _fits(distances, wanted, tolerance):
    fits = True
    for k in range(6):
        fits &= abs(distances[k] - wanted[k]) < tolerance
    return fits


@njit(nogil=True, cache=True)
def states_by_distances(position):
    """Return the secondary structure of each residue of one chain, from Cα distances.

    A residue is helix or strand if six distances within the five residues around it (1-3, 2-4, 3-5, 1-4, 2-5 and 1-5) agree with those of a
    helix within 2.1 Å, or of a strand within 1.42 Å.

    Parameters
    ----------
    position : (r, 3) float64
        Cα coordinates in Å.

    Returns
    -------
    ndarray of uint8, shape (r,)
    """
    # Reference Cα distances in Å between the residues 1-3, 2-4, 3-5, 1-4, 2-5 and 1-5 of five consecutive residues.
    helix = (5.45, 5.45, 5.45, 5.18, 5.18, 6.37)
    strand = (6.1, 6.1, 6.1, 10.4, 10.4, 13.0)
    states = np.zeros(len(position), np.uint8)
    distances = np.empty(6)
    for i in range(2, len(position) - 2):
        distances[0] = _between(position, i - 2, i)
        distances[1] = _between(position, i - 1, i + 1)
        distances[2] = _between(position, i, i + 2)
        distances[3] = _between(position, i - 2, i + 1)
        distances[4] = _between(position, i - 1, i + 2)
        distances[5] = _between(position, i - 2, i + 2)
        if _fits(distances, helix, 2.1):
            states[i] = _HELIX
        elif _fits(distances, strand, 1.42):
            states[i] = _STRAND
    return states
