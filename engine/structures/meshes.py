"""Triangle meshes of protein chains: tubes, ribbons and spheres from Cα coordinates, sticks from atoms.

The curve through the Cα atoms is piecewise cubic. Its tangent at each Cα is the difference of the next and the previous Cα, scaled to the
length of an arc between both tangents, which changes the radius of a helix trace by at most 6 %. The untwisted frame is a pair of
directions perpendicular to the curve that does not rotate about the curve (Bishop, American Mathematical Monthly 82, 1975, 246-251). A
ribbon is rotated from this frame towards the guides of Carson & Bugg (Journal of Molecular Graphics 4, 1986, 121-122): the direction of its
width at each Cα, computed from successive Cα vectors. Guides are inverted where this reduces the rotation.

All surfaces are closed. Chain breaks are not bridged; residues with invalid coordinates are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures.chains import HELIX, STRAND

__all__ = [
    "DETAILS",
    "MAXIMUM_TRIANGLES",
    "NO_MESH",
    "Detail",
    "Mesh",
    "are_finite",
    "are_joined",
    "curve",
    "ribbon",
    "spheres",
    "sticks",
    "tube",
]

MAXIMUM_TRIANGLES = 300_000
"""Maximum number of triangles in a picture, unless it has more even at the coarsest level of detail."""
_MAXIMUM_BOND = 4.5
"""Maximum distance of successive Cα atoms, Å (3.8 in a trans, 2.9 in a cis peptide); larger distances are chain breaks."""
_MAXIMUM_PLACE = 99_999.0
"""Maximum absolute value of coordinates in Å, as in `proteoscope.engine.structures.reading`."""
_LEAST = 1e-6
_ISOLATED = 1.6
"""Radius of the sphere of an isolated residue relative to the tube."""

Coordinates = NDArray[np.floating]


class Detail(NamedTuple):
    """Level of detail of meshes.

    Attributes
    ----------
    steps : int
        Even number of samples per residue along the chain.
    sides : int
        Number of sides around the chain, a multiple of four.
    level : int
        Number of times that the triangles of spheres are divided into four; a sphere has 20 x 4**`level` triangles.
    """

    steps: int
    sides: int
    level: int


DETAILS = (Detail(8, 12, 2), Detail(6, 8, 2), Detail(4, 8, 1), Detail(4, 4, 0), Detail(2, 4, 0))
"""Levels of detail from fine to coarse."""


@dataclass(frozen=True)
class Mesh:
    """Triangles of closed surfaces.

    Attributes
    ----------
    vertices : ndarray of float32, shape (v, 3)
        Coordinates in Å.
    normals : ndarray of float32, shape (v, 3)
        Outward normals of length 1.
    triangles : ndarray of uint32, shape (t, 3)
        Indices of vertices, counter-clockwise as seen from outside.
    residue : ndarray of int32, shape (v,)
        Index of the residue (in `sticks`, of the atom) to which each vertex belongs; ``colours[mesh.residue]`` are the colours of the
        vertices.
    """

    vertices: NDArray[np.float32]
    normals: NDArray[np.float32]
    triangles: NDArray[np.uint32]
    residue: NDArray[np.int32]

    @staticmethod
    def joined(meshes: Sequence[Mesh], lengths: Sequence[int] | None = None) -> Mesh:
        """Concatenate meshes.

        Parameters
        ----------
        meshes : sequence of Mesh
            Meshes to join.
        lengths : sequence of int, optional
            Number of residues of each mesh, by which the residue indices of the following meshes are increased, so that they refer to the
            concatenated residues of all meshes. By default, residue indices are unchanged.
        """
        if not meshes:
            return NO_MESH
        firsts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
        rows = np.cumsum([0, *lengths]) if lengths is not None else np.zeros(len(meshes), np.int64)
        return Mesh(
            np.concatenate([mesh.vertices for mesh in meshes]),
            np.concatenate([mesh.normals for mesh in meshes]),
            np.concatenate([mesh.triangles + np.uint32(first) for mesh, first in zip(meshes, firsts[:-1], strict=True)]),
            np.concatenate([mesh.residue + np.int32(row) for mesh, row in zip(meshes, rows, strict=False)]),
        )

    def moved(self, rotation: Coordinates, translation: Coordinates) -> Mesh:
        """Return the mesh with each position x transformed to R x + t.

        Parameters
        ----------
        rotation : ndarray, shape (3, 3)
            Rotation R, which must not be a reflection.
        translation : ndarray, shape (3,)
            Translation t in Å.
        """
        turn = np.asarray(rotation, np.float32).T
        return Mesh(self.vertices @ turn + np.asarray(translation, np.float32), self.normals @ turn, self.triangles, self.residue)


NO_MESH = Mesh(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32), np.empty((0, 3), np.uint32), np.empty(0, np.int32))


def are_finite(position: Coordinates) -> NDArray[np.bool_]:
    """Return True for each row of coordinates (n, 3) with finite values within bounds."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(position) <= _MAXIMUM_PLACE).all(axis=1))


def are_joined(position: Coordinates, number: NDArray[np.integer] | None = None) -> NDArray[np.bool_]:
    """Return True for each pair of successive residues that are bonded: Cα within 4.5 Å and no missing residue between them.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates of Cα in Å.
    number : ndarray of int, shape (n,), optional
        Positions in the sequence of the entity (`Chains.label_number`); author numbers may have gaps.

    Returns
    -------
    ndarray of bool, shape (n - 1,)
        True for bonded residues.
    """
    there = are_finite(position)
    vectors = np.diff(np.where(there[:, None], np.asarray(position, np.float64), 0.0), axis=0)
    joined = (_dot(vectors, vectors) <= _MAXIMUM_BOND**2) & there[1:] & there[:-1]
    if number is not None:
        joined &= np.asarray(np.diff(number) == 1)
    return joined


class _Curve(NamedTuple):
    """Curve through a chain with `steps` samples per residue, the first at the Cα; samples after an end of the chain are unused.

    Attributes
    ----------
    point, tangent : ndarray of float64, shape (n * steps, 3)
        Coordinates and unit tangents of the samples.
    is_joined : ndarray of bool, shape (n,)
        True if a residue is bonded to the next residue.
    across : tuple of two ndarrays of float64, shape (n * steps, 3)
        Unit vectors perpendicular to the tangent and to each other, not continuous along the curve.
    angle : ndarray of float64, shape (n * steps,)
        Angle of the untwisted frame relative to `across`, radians.
    guide : ndarray of float64, shape (n, 3)
        Direction of the width of a ribbon at each residue.
    """

    point: NDArray[np.float64]
    tangent: NDArray[np.float64]
    is_joined: NDArray[np.bool_]
    across: tuple[NDArray[np.float64], NDArray[np.float64]]
    angle: NDArray[np.float64]
    guide: NDArray[np.float64]


def curve(position: Coordinates, steps: int = 4, number: NDArray[np.integer] | None = None) -> list[NDArray[np.float64]]:
    """Return the curves that tubes follow, one for each segment of the chain without a break.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates of Cα in Å.
    steps : int
        Number of samples per residue; every `steps`-th point is a Cα.
    number : ndarray of int, shape (n,), optional
        Positions in the sequence (see `are_joined`).

    Returns
    -------
    list of ndarray of float64, shape (k, 3)
        Points of each curve.
    """
    there = are_finite(position)
    result = _curve(np.where(there[:, None], position, 0.0), _next_joined(position, number), steps)
    firsts, lasts = _stretches(result.is_joined)
    return [
        result.point[first * steps : last * steps + 1] for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True) if there[first]
    ]


def _next_joined(position: Coordinates, number: NDArray[np.integer] | None) -> NDArray[np.bool_]:
    """Return `are_joined` extended by False for the last residue, (n,)."""
    return np.append(are_joined(position, number), np.zeros(min(1, len(position)), np.bool_))


def _stretches(is_joined: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last residue of each segment without a break."""
    lasts = np.flatnonzero(~is_joined)
    return np.append(np.zeros(min(1, len(lasts)), np.int64), lasts[:-1] + 1), lasts


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.einsum("ij,ij->i", a, b)
    return result


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cross products of rows, three times faster than `np.cross`."""
    result = np.empty_like(a)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        result[:, i] = a[:, j] * b[:, k] - a[:, k] * b[:, j]
    return result


def _unit(vectors: NDArray[np.float64], otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return normalised vectors; vectors of length 0 are replaced by `otherwise`."""
    length = np.sqrt(_dot(vectors, vectors))
    is_short = length < _LEAST
    if is_short.any():
        vectors, length = np.where(is_short[:, None], otherwise, vectors), np.where(is_short, 1.0, length)
    return vectors / length[:, None]


def _curve(
    position: NDArray[np.float64], is_joined: NDArray[np.bool_], steps: int, guide_place: NDArray[np.float64] | None = None
) -> _Curve:
    n = len(position)
    rows = np.arange(n)
    after = rows + is_joined
    before = rows.copy()
    before[1:] -= is_joined[:-1]
    x_axis = np.broadcast_to(np.array([1.0, 0.0, 0.0]), position.shape)
    vector = position[after] - position
    chord = np.sqrt(_dot(vector, vector))
    along = _unit(vector, x_axis)
    tangent = _unit(position[after] - position[before], along)
    # At an end, the curve continues its arc.
    for end, other, direction in (
        (np.flatnonzero((before == rows) & is_joined), after, along),
        (np.flatnonzero((before != rows) & ~is_joined), before, along[before]),
    ):
        inner, straight = tangent[other[end]], direction[end]
        # The only tangent of two residues is their chord.
        tangent[end] = _unit(2.0 * _dot(inner, straight)[:, None] * straight - inner, straight)
    cosine = np.clip(_dot(tangent, tangent[after]), -1.0, 1.0)
    # Tangents of length c / cos²(φ / 4) approximate a circular arc of angle φ and chord c best.
    length = 2.0 * chord / (1.0 + np.sqrt(0.5 * (1.0 + cosine)))
    t = np.arange(steps) / steps
    first, second = tangent * length[:, None], tangent[after] * length[:, None]
    points = np.stack([position, position[after], first, second], axis=1)
    hermite = np.stack([(1 + 2 * t) * (1 - t) ** 2, t * t * (3 - 2 * t), t * (1 - t) ** 2, t * t * (t - 1)], axis=1)
    slopes = np.stack([6 * t * (t - 1), 6 * t * (1 - t), (1 - t) * (1 - 3 * t), t * (3 * t - 2)], axis=1)
    samples = (hermite @ points).reshape(-1, 3)
    direction = _unit((slopes @ points).reshape(-1, 3), np.repeat(tangent, steps, axis=0))
    direction[::steps] = tangent
    across = _perpendicular(direction)
    angle = _untwisted(direction, across)
    corner = position if guide_place is None else guide_place
    guide = _cross(corner - corner[before], corner[after] - corner)
    return _Curve(samples, direction, is_joined, across, angle, guide)


def _perpendicular(direction: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two unit vectors that form a right-handed frame with each direction; along a curve, the vectors may change abruptly.

    The method is from Duff et al., Journal of Computer Graphics Techniques 6 (2017), 1-8.
    """
    x, y, z = direction.T
    sign = np.where(z >= 0.0, 1.0, -1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.stack([1.0 + sign * x * x * a, sign * b, -sign * x], axis=1), np.stack([b, sign + y * y * a, -y], axis=1)


def _untwisted(direction: NDArray[np.float64], across: tuple[NDArray[np.float64], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the angle of the untwisted frame relative to the frame `across` at each sample of the curve, in radians.

    The angle is the cumulative sum of the rotations of `across` about the curve from each sample to the next.
    """
    if not len(direction):
        return np.empty(0)
    u, v = across
    here, there = direction[:-1], direction[1:]
    half = np.maximum(1.0 + _dot(here, there), _LEAST)
    carried = u[:-1] - (_dot(u[:-1], there) / half)[:, None] * (here + there)
    turned = np.arctan2(_dot(carried, v[1:]), _dot(carried, u[1:]))
    angle = np.zeros(len(direction))
    np.cumsum(turned, out=angle[1:])
    return angle


def _turns(smooth_curve: _Curve, steps: int, is_guided: NDArray[np.bool_], is_smoothed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the rotation of the ribbon relative to the untwisted frame, radians, (n * steps,).

    At residues for which `is_guided` is True, the ribbon has the direction of the guide; between them, the rotation is interpolated. A
    segment of the chain without such residues has the direction of its first guide, so that its shape rotates with the chain.
    """
    n = len(smooth_curve.guide)
    u, v = (direction[::steps] for direction in smooth_curve.across)
    along, aside = _dot(smooth_curve.guide, u), _dot(smooth_curve.guide, v)
    has_guide = np.hypot(along, aside) > _LEAST
    towards = np.arctan2(aside, along) - smooth_curve.angle[::steps]
    firsts, lasts = _stretches(smooth_curve.is_joined)
    stretch = np.zeros(n, np.int64)
    stretch[firsts] = 1
    stretch = np.cumsum(stretch) - 1
    chosen = is_guided & has_guide
    without = np.flatnonzero(np.bincount(stretch[chosen], minlength=len(firsts)) == 0)
    if len(without):
        guided = np.flatnonzero(has_guide)
        stretches, at = np.unique(stretch[guided], return_index=True)
        keep = np.isin(stretches, without)
        chosen[guided[at[keep]]] = True
    positions = np.flatnonzero(chosen)
    if not len(positions):
        return np.zeros(n * steps)
    # A ribbon is symmetric under half a turn.
    angles = np.unwrap(towards[positions], period=np.pi)
    if len(positions) > 2:
        is_inner = np.zeros(len(positions), np.bool_)
        is_inner[1:-1] = (np.diff(positions)[:-1] == 1) & (np.diff(positions)[1:] == 1) & is_smoothed[positions][1:-1]
        is_inner[1:-1] &= is_smoothed[positions][:-2] & is_smoothed[positions][2:]
        means = angles.copy()
        means[1:-1] = (angles[:-2] + 2.0 * angles[1:-1] + angles[2:]) / 4.0
        angles = np.where(is_inner, means, angles)
    # At the ends of a segment, use the rotation of its nearest guide, not a rotation interpolated towards the next segment.
    left, right = np.searchsorted(positions, firsts), np.searchsorted(positions, lasts, "right") - 1
    has_any = left <= right
    ends = np.stack([firsts[has_any], lasts[has_any] + 0.5], axis=1).ravel()
    values = np.stack([angles[left[has_any]], angles[right[has_any]]], axis=1).ravel()
    nodes, values = np.concatenate([ends, positions]), np.concatenate([values, angles])
    order = np.argsort(nodes, kind="stable")
    turns: NDArray[np.float64] = np.interp(np.arange(n * steps) / steps, nodes[order], values[order])
    return turns


@lru_cache(maxsize=16)
def _sections(sides: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return positions and normals, each (sides, 2), of a unit circle and of a square with sharp edges and a half side of 1.

    If `sides` is large enough, each corner of the square occurs twice, with the normal of each of its two sides.
    """
    angle = (np.arange(sides) + 0.5) * (2.0 * np.pi / sides) - np.pi / 4.0
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    square, outward = circle, circle
    if sides % 4 == 0:
        m = sides // 4
        t = np.linspace(-1.0, 1.0, m) if m > 1 else np.zeros(1)
        faces, normals = [], []
        for k in range(4):
            c, s = (1, 0, -1, 0)[k], (0, 1, 0, -1)[k]
            faces.append(np.stack([c - s * t, s + c * t], axis=1))
            normals.append(np.tile([float(c), float(s)], (m, 1)))
        square, outward = np.concatenate(faces), np.concatenate(normals)
        if m == 1:
            square = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
            outward = square / np.sqrt(2.0)
    result = tuple(np.ascontiguousarray(array, np.float32) for array in (circle, circle, square, outward))
    return result[0], result[1], result[2], result[3]


class _Section(NamedTuple):
    """Cross-section of a ribbon or tube at each sample of the curve.

    Attributes
    ----------
    width, thickness : ndarray of float64, shape (n * steps,)
        Half width and half thickness in Å.
    angular : ndarray of float64, shape (n * steps,)
        Shape: 0 for an oval, 1 for a rectangle.
    """

    width: NDArray[np.float64]
    thickness: NDArray[np.float64]
    angular: NDArray[np.float64]


def _swept(
    smooth_curve: _Curve, turn: NDArray[np.float64], before: _Section, after: _Section, is_shown: NDArray[np.bool_], steps: int, sides: int
) -> Mesh:
    """Return the surface of a tube or ribbon with the given cross-sections along a curve.

    `before` and `after` are the cross-sections just before and just after each sample; they differ only where the shape changes abruptly.
    """
    n = len(is_shown)
    half = steps // 2
    # Link k connects sample k to the next, and belongs to the nearer residue.
    link_residue = np.repeat(np.arange(n), steps).reshape(n, steps)
    link_residue[:, half:] += 1
    link_residue = np.minimum(link_residue.ravel(), n - 1)
    is_link = np.repeat(smooth_curve.is_joined, steps) & is_shown[link_residue]
    has_before = np.append(False, is_link[:-1])
    rings = np.flatnonzero(is_link | has_before)
    if not len(rings):
        return NO_MESH
    is_first, is_last = ~has_before[rings], ~is_link[rings]
    is_shoulder = (before.width[rings] != after.width[rings]) & ~is_first & ~is_last
    residue = np.where(is_last, link_residue[rings - 1], link_residue[rings])

    # Rings to draw: each sample once; shoulders once more, and twice as a flat face; ends once more as a cap.
    shoulders, firsts, lasts = (np.flatnonzero(mask) for mask in (is_shoulder, is_first, is_last))
    every = np.arange(len(rings))
    sample = np.concatenate([every, shoulders, shoulders, shoulders, firsts, lasts])
    ends = np.cumsum([0, len(rings), len(shoulders), len(shoulders), len(shoulders), len(firsts), len(lasts)])
    # The first ring of a shoulder and the first ring of its face close the part before the shoulder.
    uses_before = np.zeros(len(sample), np.bool_)
    uses_before[: ends[1]] = True
    uses_before[: ends[1]][is_first] = False
    uses_before[ends[2] : ends[3]] = True
    uses_before[ends[5] :] = True
    at = rings[sample]
    width, thickness, angular = (np.where(uses_before, a[at], b[at]) for a, b in zip(before, after, strict=True))
    u, v = (direction[rings] for direction in smooth_curve.across)
    angle = (smooth_curve.angle[rings] + turn[rings])[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    frame = np.stack([cosine * u + sine * v, cosine * v - sine * u], axis=1).astype(np.float32)  # (k, 2, 3)

    circle, circle_normal, square, square_normal = _sections(sides)
    # Separate arrays of x and y are faster than rows of two numbers.
    x_size, y_size = (size.astype(np.float32)[:, None] for size in (width, thickness))
    x, y = x_size * circle[:, 0], y_size * circle[:, 1]
    x_normal, y_normal = y_size * circle_normal[:, 0], x_size * circle_normal[:, 1]
    some = np.flatnonzero(angular)
    if len(some):
        part = angular[some].astype(np.float32)[:, None]
        x_size, y_size = x_size[some], y_size[some]
        largest = np.maximum(x_size, y_size)
        # Corners of the square remain exact, so that vertices that occur twice coincide.
        x[some] = ((1 - part) * circle[:, 0] + part * square[:, 0]) * x_size
        y[some] = ((1 - part) * circle[:, 1] + part * square[:, 1]) * y_size
        x_normal[some] = (1 - part) * (x_normal[some] / largest) + part * square_normal[:, 0]
        y_normal[some] = (1 - part) * (y_normal[some] / largest) + part * square_normal[:, 1]
    length = np.sqrt(x_normal * x_normal + y_normal * y_normal)
    flat, normal = np.empty((2, *x.shape, 2), np.float32)
    flat[:, :, 0], flat[:, :, 1] = x, y
    np.divide(x_normal, length, out=normal[:, :, 0])
    np.divide(y_normal, length, out=normal[:, :, 1])
    chosen = frame[sample]
    vertices = flat @ chosen
    vertices += smooth_curve.point[at].astype(np.float32)[:, None]
    normals = normal @ chosen
    tangent = smooth_curve.tangent[at].astype(np.float32)[:, None]
    normals[ends[2] : ends[5]] = -tangent[ends[2] : ends[5]]
    normals[ends[5] :] = tangent[ends[5] :]

    # Pairs of rings that are connected by a wall.
    start = every.copy()
    start[shoulders] = np.arange(ends[1], ends[2])
    lower = np.concatenate([start[~is_last], np.arange(ends[2], ends[3])])
    upper = np.concatenate([every[~is_first], np.arange(ends[3], ends[4])])
    triangles = [_walls(lower, upper, angular, sides), _caps(np.arange(ends[4], ends[5]), angular, sides)[:, ::-1]]
    triangles.append(_caps(np.arange(ends[5], ends[6]), angular, sides))
    return Mesh(
        vertices.reshape(-1, 3), normals.reshape(-1, 3), np.concatenate(triangles), np.repeat(residue[sample].astype(np.int32), sides)
    )


def _is_folded(sides: int) -> NDArray[np.bool_]:
    """Return True for each corner of the square in `_sections` with the same position as the next corner, (sides,)."""
    square = _sections(sides)[2]
    folded: NDArray[np.bool_] = np.abs(square - np.roll(square, -1, axis=0)).max(axis=1) < _LEAST
    return folded


def _walls(lower: NDArray[np.int64], upper: NDArray[np.int64], angular: NDArray[np.float64], sides: int) -> NDArray[np.uint32]:
    """Return the triangles between each ring in `lower` and its counterpart in `upper`, (t, 3), two per side, without those of area 0."""
    side = np.arange(sides)
    step = np.roll(side, -1)
    zero, ones = np.zeros(sides, np.int64), np.ones(sides, np.int64)
    # For the corners of both triangles: the ring (0 lower, 1 upper) and the corner of the ring.
    ring = np.stack([zero, zero, ones, zero, ones, ones], axis=1).reshape(-1, 3).astype(np.uint32)
    corner = np.stack([side, step, side, step, step, side], axis=1).reshape(-1, 3).astype(np.uint32)
    folded = _is_folded(sides)
    is_sharp = angular >= 1.0
    result = []
    for below in (False, True):
        for above in (False, True):
            some = np.flatnonzero((is_sharp[lower] == below) & (is_sharp[upper] == above))
            if len(some):
                retained = ~np.stack([folded & below, folded & above], axis=1).ravel()
                first = (lower[some] * sides).astype(np.uint32)[:, None, None]
                between = ((upper[some] - lower[some]) * sides).astype(np.uint32)[:, None, None]
                result.append((between * ring[retained] + (first + corner[retained])).reshape(-1, 3))
    return np.concatenate([np.empty((0, 3), np.uint32), *result])


def _caps(rings: NDArray[np.int64], angular: NDArray[np.float64], sides: int) -> NDArray[np.uint32]:
    """Return triangles that close the ends of a surface at the given rings, (t, 3), counter-clockwise about the tangent, none of area 0."""
    side = np.arange(1, sides - 1, dtype=np.uint32)
    fan = np.stack([np.zeros_like(side), side, side + 1], axis=1)
    folded = _is_folded(sides)
    is_flat = folded[1 : sides - 1].copy()
    is_flat[0] |= folded[0]
    is_flat[-1] |= folded[sides - 1]
    triangles = fan + (rings.astype(np.uint32) * np.uint32(sides))[:, None, None]
    retained: NDArray[np.uint32] = triangles[~((angular[rings] >= 1.0)[:, None] & is_flat)]
    return retained


def _checked(
    position: Coordinates, steps: int, sides: int, is_shown: NDArray[np.bool_] | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return coordinates with zeros instead of invalid values, and a mask of the residues to draw, which excludes invalid ones."""
    if steps < 2 or steps % 2 or sides < 3:
        raise ValueError("steps must be an even number, and a tube needs three sides")
    there = are_finite(position)
    index = np.where(there[:, None], np.asarray(position, np.float64), 0.0)
    return index, there if is_shown is None else there & is_shown


def _with_balls(mesh: Mesh, position: NDArray[np.float64], is_alone: NDArray[np.bool_], radius: float) -> Mesh:
    """Return a mesh with an added sphere for each residue that is not connected to another residue."""
    if not is_alone.any():
        return mesh
    return Mesh.joined([mesh, spheres(position, _ISOLATED * radius, 1, is_alone)])


def _alone(is_joined: NDArray[np.bool_], is_shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    result = is_shown & ~is_joined
    result[1:] &= ~is_joined[:-1]
    return result


def tube(
    position: Coordinates,
    radius: float = 0.3,
    steps: int = 4,
    sides: int = 8,
    is_shown: NDArray[np.bool_] | None = None,
    number: NDArray[np.integer] | None = None,
) -> Mesh:
    """Return a tube along the curve through the Cα atoms.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates of Cα in Å.
    radius : float
        Radius in Å.
    steps : int
        Even number of samples per residue along the curve.
    sides : int
        Number of sides of the tube.
    is_shown : ndarray of bool, shape (n,), optional
        True for residues to draw, each up to halfway to its neighbours; by default all.
    number : ndarray of int, shape (n,), optional
        Positions in the sequence (see `are_joined`).

    Returns
    -------
    Mesh
        Tube, with spheres for isolated residues.

    Examples
    --------
    >>> mesh = tube(np.array([[0.0, 0, 0], [3.8, 0, 0], [7.6, 0, 0]]), radius=0.5)
    >>> bool(np.allclose(np.hypot(mesh.vertices[:, 1], mesh.vertices[:, 2]), 0.5))
    True
    """
    index, shown = _checked(position, steps, sides, is_shown)
    if not len(index):
        return NO_MESH
    result = _curve(index, _next_joined(position, number), steps)
    none = np.zeros(len(index), np.bool_)
    turn = _turns(result, steps, none, none)
    whole = np.full(len(turn), float(radius))
    section = _Section(whole, whole, np.zeros(len(turn)))
    return _with_balls(_swept(result, turn, section, section, shown, steps, sides), index, _alone(result.is_joined, shown), radius)


_COIL_RADIUS = 0.25
_WIDTH, _THICKNESS, _ANGULAR = np.array([_COIL_RADIUS, 1.3, 1.1]), np.array([_COIL_RADIUS, 0.22, 0.22]), np.array([0.0, 0.0, 1.0])
"""Half width and half thickness in Å, and shape (0 oval, 1 rectangular), of coil, helix and strand."""
_HEAD_WIDTH = 1.9


def ribbon(
    position: Coordinates,
    secondary: NDArray[np.uint8],
    steps: int = 6,
    sides: int = 8,
    is_shown: NDArray[np.bool_] | None = None,
    number: NDArray[np.integer] | None = None,
) -> Mesh:
    """Return helices as oval ribbons, strands as flat arrows towards the C-terminus, and coil as a tube.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates of Cα in Å.
    secondary : ndarray of uint8, shape (n,)
        Secondary structure, coded as in `Chains.secondary`.
    steps : int
        Even number of samples per residue along the curve.
    sides : int
        Number of sides around the ribbon, a multiple of four.
    is_shown, number : ndarray, shape (n,), optional
        See `tube`.

    Returns
    -------
    Mesh
        Ribbon, with spheres for isolated residues.
    """
    if sides % 4:
        raise ValueError("the number of sides of a ribbon must be a multiple of four")
    index, shown = _checked(position, steps, sides, is_shown)
    if not len(index):
        return NO_MESH
    is_joined = _next_joined(position, number)
    state = np.where(secondary <= STRAND, secondary, 0).astype(np.int64)
    is_strand = state == STRAND
    # Smooth the pleat of strands, whose Cα atoms alternate above and below the strand.
    flat = index.copy()
    inner = np.flatnonzero(is_strand[1:-1] & is_joined[1:-1] & is_joined[:-2]) + 1
    flat[inner] = (index[inner - 1] + 2.0 * index[inner] + index[inner + 1]) / 4.0
    result = _curve(flat, is_joined, steps, index)
    turn = _turns(result, steps, (state == HELIX) | is_strand, is_strand)
    before, after = _ribbon_sections(state, is_joined, steps)
    return _with_balls(_swept(result, turn, before, after, shown, steps, sides), index, _alone(is_joined, shown), _COIL_RADIUS)


def _ribbon_sections(state: NDArray[np.int64], is_joined: NDArray[np.bool_], steps: int) -> tuple[_Section, _Section]:
    """Return the cross-sections just before and just after each sample; they differ only at the base and the tip of arrow heads."""
    n = len(state)
    next_state = np.where(is_joined, np.append(state[1:], 0), state)
    is_strand = state == STRAND
    is_end = is_strand & ((next_state != STRAND) | ~is_joined)
    # Sections of helices and strands extend halfway to their neighbours; coil is interpolated. A strand ends in the tip of an arrow.
    half_state = np.where(is_end, np.where(next_state == STRAND, 0, next_state), np.maximum(state, next_state))
    half_state = np.where((state == HELIX) | (next_state == HELIX) & ~is_strand, HELIX, half_state)
    nodes = np.arange(2 * n) / 2.0
    at = np.arange(n * steps) / steps
    width, thickness, angular = (
        np.interp(at, nodes, np.stack([values[state], values[half_state]], axis=1).ravel()) for values in (_WIDTH, _THICKNESS, _ANGULAR)
    )
    width_after = width.copy()
    half = steps // 2
    ends = np.flatnonzero(is_end)
    if len(ends):
        # The head begins at the second-last Cα of the strand, or at the start of a strand of one residue.
        has_before = np.zeros(n, np.bool_)
        has_before[1:] = is_joined[:-1]
        follows = has_before[ends] & is_strand[ends - 1]
        first = np.where(follows, (ends - 1) * steps, np.where(has_before[ends], ends * steps - half, ends * steps))
        last = np.where(is_joined[ends], ends * steps + half, ends * steps)
        lengths = last - first
        total = int(lengths.sum())
        within = np.arange(total + len(ends)) - np.repeat(np.cumsum(lengths + 1) - (lengths + 1), lengths + 1)
        samples = np.repeat(first, lengths + 1) + within
        part = within / np.maximum(1, np.repeat(lengths, lengths + 1))
        tip = np.repeat(
            np.where(is_joined[ends], _WIDTH[np.where(next_state[ends] == STRAND, 0, next_state[ends])], _COIL_RADIUS), lengths + 1
        )
        tip = np.minimum(tip, _COIL_RADIUS)
        head = _HEAD_WIDTH + part * (tip - _HEAD_WIDTH)
        is_base = within == 0
        width_after[samples] = head
        width[samples[~is_base]] = head[~is_base]
        angular[samples] = 1.0
        thickness[samples] = _THICKNESS[STRAND]
        # After the tip, the section of the next element begins.
        tips = last[is_joined[ends]]
        width_after[tips] = _WIDTH[half_state[ends[is_joined[ends]]]]
    return _Section(width, thickness, angular), _Section(width_after, thickness, angular)


@lru_cache(maxsize=8)
def _ball(level: int) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Return vertices and triangles of a unit sphere: an icosahedron; each triangle is replaced by four smaller ones, `level` times."""
    golden = (1.0 + 5.0**0.5) / 2.0
    corners = []
    for a in (-1.0, 1.0):
        for b in (-golden, golden):
            corners += [(0.0, a, b), (a, b, 0.0), (b, 0.0, a)]
    points = np.array(corners) / np.hypot(1.0, golden)
    edge = 2.0 / np.hypot(1.0, golden)
    near = np.abs(np.linalg.norm(points[:, None] - points[None], axis=2) - edge) < 1e-6
    faces = [(i, j, k) for i in range(12) for j in range(i + 1, 12) for k in range(j + 1, 12) if near[i, j] and near[j, k] and near[i, k]]
    triangles = np.array(faces)
    normal = np.cross(points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]])
    is_inward = (normal * points[triangles[:, 0]]).sum(axis=1) < 0
    triangles[is_inward] = triangles[is_inward][:, ::-1]
    for _ in range(level):
        sides = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, which = np.unique(sides, axis=0, return_inverse=True)
        middle = points[edges].sum(axis=1)
        ab, bc, ca = (which.reshape(-1, 3) + len(points)).T
        points = np.concatenate([points, middle / np.linalg.norm(middle, axis=1)[:, None]])
        a, b, c = triangles.T
        triangles = np.concatenate([np.stack(corners, axis=1) for corners in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    return points.astype(np.float32), triangles.astype(np.uint32)


def spheres(
    position: Coordinates, radius: float | NDArray[np.floating] = 0.8, level: int = 1, is_shown: NDArray[np.bool_] | None = None
) -> Mesh:
    """Return a sphere of 20 x 4**`level` triangles at each position.

    Parameters
    ----------
    position : ndarray, shape (n, 3)
        Coordinates in Å.
    radius : float or ndarray, shape (n,)
        Radius in Å.
    level : int
        Number of subdivisions of the icosahedron.
    is_shown : ndarray of bool, shape (n,), optional
        True for positions to draw; by default all.

    Returns
    -------
    Mesh
        Spheres; `residue` is the index of the position of each vertex.
    """
    is_there = are_finite(position) if is_shown is None else are_finite(position) & is_shown
    rows = np.flatnonzero(is_there)
    points, triangles = _ball(level)
    size = np.broadcast_to(np.asarray(radius, np.float32), (len(position),))[rows]
    vertices = np.asarray(position)[rows].astype(np.float32)[:, None] + points * size[:, None, None]
    first = (np.arange(len(rows), dtype=np.uint32) * np.uint32(len(points)))[:, None, None]
    return Mesh(
        vertices.reshape(-1, 3),
        np.tile(points, (len(rows), 1)),
        (triangles + first).reshape(-1, 3),
        np.repeat(rows.astype(np.int32), len(points)),
    )


def sticks(position: Coordinates, bonds: NDArray[np.integer], radius: float = 0.18, sides: int = 8, level: int = 1) -> Mesh:
    """Return small spheres for atoms, and rods for bonds; each half of a rod belongs to the nearer atom.

    Parameters
    ----------
    position : ndarray, shape (a, 3)
        Coordinates of atoms in Å.
    bonds : ndarray of int, shape (b, 2)
        Indices of bonded atoms.
    radius : float
        Radius in Å.
    sides : int
        Number of sides of a rod.
    level : int
        Number of subdivisions of the spheres.

    Returns
    -------
    Mesh
        Spheres and rods; `residue` is the index of the atom.
    """
    there = are_finite(position)
    bonds = np.asarray(bonds, np.int64).reshape(-1, 2)
    bonds = bonds[there[bonds].all(axis=1)]
    balls = spheres(position, radius, level)
    if not len(bonds):
        return balls
    ends = np.asarray(position, np.float64)[np.concatenate([bonds, bonds[:, ::-1]])]
    middle = ends.mean(axis=1)
    along = _unit(middle - ends[:, 0], np.broadcast_to(np.array([1.0, 0.0, 0.0]), middle.shape))
    frame = np.stack(_perpendicular(along), axis=1).astype(np.float32)
    circle = _sections(sides)[0]
    around = circle @ frame
    n = len(ends)
    # Four rings for each half: a cap, two rings of the wall, a cap.
    centre = np.stack([ends[:, 0], ends[:, 0], middle, middle], axis=1).astype(np.float32)
    vertices = centre[:, :, None] + np.float32(radius) * around[:, None]
    direction = np.broadcast_to(along.astype(np.float32)[:, None], around.shape)
    normals = np.stack([-direction, around, around, direction], axis=1)
    first = 4 * np.arange(n)
    plain = np.zeros(4 * n)
    rods = Mesh(
        vertices.reshape(-1, 3),
        normals.reshape(-1, 3),
        np.concatenate([_walls(first + 1, first + 2, plain, sides), _caps(first, plain, sides)[:, ::-1], _caps(first + 3, plain, sides)]),
        np.repeat(np.concatenate([bonds[:, 0], bonds[:, 1]]).astype(np.int32), 4 * sides),
    )
    return Mesh.joined([balls, rods])
