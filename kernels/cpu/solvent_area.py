"""Solvent-accessible areas of atoms (Shrake & Rupley, Journal of Molecular Biology 79, 1973, 351-371).

The area of an atom is the fraction of points on a sphere around it that are in no other sphere, times the area of the sphere.

Atoms are sorted into cells as wide as the maximum distance of intersecting spheres; an atom is compared only with the atoms of 27 cells.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["MAXIMUM_NEIGHBOURS", "solvent_areas"]

MAXIMUM_NEIGHBOURS = 512
"""Maximum number of intersecting spheres; heavy atoms of proteins have about eighty. Atoms with more are considered buried."""
_MAXIMUM_LOOKED_AT = 20_000
"""Maximum number of atoms that are compared with an atom, which limits the time for files with all atoms at one point."""
_CELLS = np.int64(1 << 20)  # maximum number of cells along each axis, wider than any structure file


@njit(nogil=True, cache=True)
def _cells(position, first, last, width):
    """Return the cell of each atom, and the atoms sorted by cell."""
    low = np.empty(3)
    for axis in range(3):
        low[axis] = position[first:last, axis].min()
    cell = np.empty(last - first, np.int64)
    for k in range(last - first):
        x = np.int64((position[first + k, 0] - low[0]) / width) + 1
        y = np.int64((position[first + k, 1] - low[1]) / width) + 1
        z = np.int64((position[first + k, 2] - low[2]) / width) + 1
        cell[k] = (x * _CELLS + y) * _CELLS + z
    return cell, np.argsort(cell, kind="mergesort")


@njit(nogil=True, cache=True, error_model="numpy")
def solvent_areas(position, radius, offsets, points, probe, first_group, last_group, areas):
    """Compute the areas of the atoms in the groups `first_group:last_group`; atoms of other groups are ignored.

    Parameters
    ----------
    position : (a, 3) float64
        Coordinates in Å, finite and within 1e5.
    radius : (a,) float64
        Radii in Å, above 0.
    offsets : (g + 1,) int64
        Start of the atoms of each group, followed by a.
    points : (p, 3) float64
        Points evenly distributed on the unit sphere.
    probe
        Radius of a solvent molecule in Å.
    areas : (a,) float64
        Output; areas in Å².
    """
    near = np.empty(MAXIMUM_NEIGHBOURS, np.int64)
    n_points = len(points)
    for group in range(first_group, last_group):
        first, last = offsets[group], offsets[group + 1]
        if last == first:
            continue
        width = 2.0 * (radius[first:last].max() + probe)
        cell, order = _cells(position, first, last, width)
        sorted_cells = cell[order]
        for k in range(last - first):
            atom = first + k
            reach = radius[atom] + probe
            n_near, n_compared = 0, 0
            is_inside = False
            for step in range(9):
                # The three neighbouring cells along z have consecutive numbers.
                middle = cell[k] + ((step // 3 - 1) * _CELLS + (step % 3 - 1)) * _CELLS
                index = np.searchsorted(sorted_cells, middle - 1)
                while index < len(order) and sorted_cells[index] <= middle + 1 and not is_inside:
                    other = first + order[index]
                    index += 1
                    n_compared += 1
                    if n_compared > _MAXIMUM_LOOKED_AT:
                        is_inside = True
                    if other == atom:
                        continue
                    x = position[other, 0] - position[atom, 0]
                    y = position[other, 1] - position[atom, 1]
                    z = position[other, 2] - position[atom, 2]
                    both = reach + radius[other] + probe
                    if x * x + y * y + z * z < both * both:
                        if n_near == MAXIMUM_NEIGHBOURS:
                            is_inside = True
                        else:
                            near[n_near] = other
                            n_near += 1
            n_free = 0
            last_hit = 0
            for p in range(0 if not is_inside else n_points, n_points):
                x = position[atom, 0] + reach * points[p, 0]
                y = position[atom, 1] + reach * points[p, 1]
                z = position[atom, 2] + reach * points[p, 2]
                is_free = True
                # Start with the atom that covered the previous point, since it often covers the next one too.
                for j in range(n_near):
                    neighbour = near[(last_hit + j) % n_near]
                    dx = position[neighbour, 0] - x
                    dy = position[neighbour, 1] - y
                    dz = position[neighbour, 2] - z
                    neighbour_reach = radius[neighbour] + probe
                    if dx * dx + dy * dy + dz * dz < neighbour_reach * neighbour_reach:
                        is_free = False
                        last_hit = (last_hit + j) % n_near
                        break
                n_free += is_free
            areas[atom] = 4.0 * np.pi * reach * reach * n_free / n_points
