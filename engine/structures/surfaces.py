"""Molecular surfaces as triangles: isosurfaces of a sum of Gaussians at the atoms.

The sum is defined by Grant & Pickup (Journal of Physical Chemistry 99, 1995, 3503-3510), with one factor for all atoms and the value 1 on
the surface of an isolated atom. The triangles form surface nets (Gibson, MICCAI 1998, 888-898). A grid edge is crossed if one end is inside
the surface and the other outside. Each grid cell with crossed edges has a vertex at the mean of the crossings; the vertices of the four
cells around each crossed edge form a quadrilateral, divided into two triangles.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures.meshes import NO_MESH, Mesh, are_finite

__all__ = ["MAXIMUM_CELLS", "molecular_surface"]

MAXIMUM_CELLS = 4_000_000
"""Maximum number of grid cells, which need 16 MB."""
_FINEST = 0.6
"""Minimum grid spacing in Å, used if the limits of cells and triangles allow it."""
_STEEPNESS = 2.0
_REACH = 1.9
"""Distance from an atom, in radii, beyond which its contribution (below 1/180) is ignored."""
_COARSER = 1.35
_ATOMS_AT_ONCE = 256
_CORNERS = np.array(list(product((0, 1), repeat=3)))
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if int(np.abs(_CORNERS[a] - _CORNERS[b]).sum()) == 1]


def molecular_surface(
    position: NDArray[np.floating], radius: NDArray[np.floating], residue: NDArray[np.integer], maximum_triangles: int
) -> Mesh:
    """Return the surface of atoms, with the smallest grid spacing that the limits of memory and triangles permit.

    Parameters
    ----------
    position : ndarray, shape (a, 3)
        Coordinates in Å.
    radius : ndarray, shape (a,)
        Radii in Å.
    residue : ndarray of int, shape (a,)
        Index of the residue of each atom in the chain.
    maximum_triangles : int
        Maximum number of triangles.

    Returns
    -------
    Mesh
        Surface, with the residue of the nearest atom for each vertex.
    """
    there = are_finite(position)
    if not there.any():
        return NO_MESH
    index = np.asarray(position, np.float64)[there]
    reach, owner = np.asarray(radius, np.float64)[there], np.asarray(residue)[there]
    size = np.ptp(index, axis=0) + 2 * _REACH * reach.max() + 4 * _FINEST
    spacing = max(_FINEST, float((size.prod() / MAXIMUM_CELLS) ** (1 / 3)))
    while True:
        mesh = _at_spacing(index, reach, owner, spacing)
        if len(mesh.triangles) <= maximum_triangles:
            return mesh
        spacing *= _COARSER


def _at_spacing(position: NDArray[np.float64], radius: NDArray[np.float64], residue: NDArray[np.integer], spacing: float) -> Mesh:
    field, nearest, low = _field(position, radius, spacing)
    is_inside = field > 1.0
    corners = [is_inside[tuple(slice(step, n - 1 + step) for step, n in zip(corner, field.shape, strict=True))] for corner in _CORNERS]
    n_inside = np.add.reduce([corner.view(np.uint8) for corner in corners])
    cells = np.argwhere((n_inside > 0) & (n_inside < len(corners)))
    if not len(cells):
        return NO_MESH
    number = np.full(n_inside.shape, -1, np.int64)
    number[tuple(cells.T)] = np.arange(len(cells))
    vertices = low + spacing * (cells + _crossings(field, cells))
    corner = np.stack([nearest[tuple((cells + corner).T)] for corner in _CORNERS])
    apart = [np.where(vertex >= 0, ((position[vertex] - vertices) ** 2).sum(axis=1), np.inf) for vertex in corner]
    atom = corner[np.argmin(apart, axis=0), np.arange(len(cells))]
    return Mesh(
        vertices.astype(np.float32),
        _normals(vertices, field, low, spacing),
        _boundary_triangles(is_inside, number),
        residue[atom].astype(np.int32),
    )


def _field(
    position: NDArray[np.float64], radius: NDArray[np.float64], spacing: float
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float64]]:
    """Return the sum of the atoms' Gaussian contributions at the points of a grid with a spacing of `spacing` Å.

    Returns
    -------
    total : ndarray of float32, shape (x, y, z)
        Sum at each grid point.
    nearest : ndarray of int32, shape (x, y, z)
        Index of the atom that contributes most, -1 for none.
    low : ndarray of float64, shape (3,)
        Coordinates of the first grid point in Å.
    """
    margin = _REACH * float(radius.max()) + 2 * spacing
    low = position.min(axis=0) - margin
    shape = tuple(int(n) for n in np.ceil((position.max(axis=0) + margin - low) / spacing) + 1)
    total = np.zeros(int(np.prod(shape)), np.float32)
    # Contribution and index of an atom in one word: positive floats have the same order as their bits.
    most = np.zeros(len(total), np.uint64)
    step = int(np.ceil(_REACH * float(radius.max()) / spacing))
    around = np.array(list(product(range(-step, step + 1), repeat=3)))
    around = around[(around**2).sum(axis=1) <= (_REACH * float(radius.max()) / spacing + 1.0) ** 2]
    for first in range(0, len(position), _ATOMS_AT_ONCE):
        chosen = slice(first, first + _ATOMS_AT_ONCE)
        middle = np.rint((position[chosen] - low) / spacing).astype(np.int64)
        cell = middle[:, None] + around
        apart = ((low + spacing * cell - position[chosen, None]) ** 2).sum(axis=2) / radius[chosen, None] ** 2
        is_near = apart <= _REACH**2
        flat = np.ravel_multi_index(tuple(cell[is_near].T), shape)
        value = np.exp(_STEEPNESS * (1.0 - apart[is_near])).astype(np.float32)
        atom = np.broadcast_to(np.arange(first, first + len(middle), dtype=np.int32)[:, None], is_near.shape)[is_near]
        np.add.at(total, flat, value)
        np.maximum.at(most, flat, value.view(np.uint32).astype(np.uint64) << np.uint64(32) | atom.astype(np.uint64))
    nearest = np.where(most > 0, (most & np.uint64(0xFFFFFFFF)).astype(np.int32), np.int32(-1))
    return total.reshape(shape), nearest.reshape(shape), low


def _crossings(field: NDArray[np.float32], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean position of the points where the surface crosses the edges of each cell, relative to the cell, (c, 3)."""
    value = np.stack([field[tuple((cells + corner).T)] for corner in _CORNERS]).astype(np.float64)
    total, n = np.zeros((len(cells), 3)), np.zeros(len(cells))
    for a, b in _EDGES:
        is_crossed = (value[a] > 1.0) != (value[b] > 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(is_crossed, (1.0 - value[a]) / (value[b] - value[a]), 0.0)
        total += is_crossed[:, None] * (_CORNERS[a] + part[:, None] * (_CORNERS[b] - _CORNERS[a]))
        n += is_crossed
    return total / n[:, None]


def _normals(vertices: NDArray[np.float64], field: NDArray[np.float32], low: NDArray[np.float64], spacing: float) -> NDArray[np.float32]:
    """Return the outward normals of vertices, (v, 3): the negative gradient of the sum, interpolated between grid points."""
    cell = np.clip(((vertices - low) / spacing).astype(np.int64), 1, np.array(field.shape) - 3)
    part = (vertices - low) / spacing - cell
    slope = np.zeros((len(vertices), 3))
    for corner in _CORNERS:
        weight = np.where(corner, part, 1.0 - part).prod(axis=1)
        for axis in range(3):
            ahead, back = cell + corner, cell + corner
            ahead[:, axis] += 1
            back[:, axis] -= 1
            slope[:, axis] += weight * (field[tuple(back.T)] - field[tuple(ahead.T)])
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    up = np.array([0.0, 0.0, 1.0])
    return np.where(length > 0.0, slope / np.where(length > 0.0, length, 1.0), up).astype(np.float32)


def _boundary_triangles(is_inside: NDArray[np.bool_], number: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return two triangles around each grid edge that crosses the surface, as indices of vertices, (t, 3).

    `number` is the index of the vertex in each cell. All points at the border of the grid must be outside the surface.
    """
    result = []
    for axis in range(3):
        across, beyond = (axis + 1) % 3, (axis + 2) % 3
        inside = np.moveaxis(is_inside, (axis, across, beyond), (0, 1, 2))
        cell = np.moveaxis(number, (axis, across, beyond), (0, 1, 2))
        for is_out in (True, False):
            here, next_ = inside[:-1], inside[1:]
            i, j, k = np.nonzero(here & ~next_ if is_out else ~here & next_)
            # Counter-clockwise as seen from outside.
            ring = [cell[i, j - 1, k - 1], cell[i, j, k - 1], cell[i, j, k], cell[i, j - 1, k]]
            a, b, c, d = ring if is_out else ring[::-1]
            result += [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    return np.concatenate(result).astype(np.uint32)
