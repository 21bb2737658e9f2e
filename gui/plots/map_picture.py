"""The picture of the spectra of a run, as pixels.

A picture of a million points is made of whole columns: points stand in the order of their times, so that those in sight are a slice, and
each column of pixels is a slice of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.run_map import STATUS_NAMES, MapPoints

__all__ = ["MapView", "draw_points", "nearest_point"]

_MAXIMUM_LARGE, _MAXIMUM_SMALL = 3_000, 60_000
"""So many points in sight are drawn as large dots, or as small ones; of more, each pixel is coloured by the points in it."""
_LARGE, _SMALL = 2.8, 1.5
"""Radius of the dots, in pixels of the window."""
_PIXELS_AT_ONCE = 1 << 15
"""That are counted together."""
_FULL_AFTER = 8
"""Points in a pixel that give it its full colour."""
_MINIMUM_COLOUR = 0.55
"""Part of the colour that a single point gives to a pixel."""


@dataclass(frozen=True)
class MapView:
    """What is in sight, and on how many pixels: x to the right, m/z upwards. Pixels are counted from the upper left corner."""

    x_range: tuple[float, float]
    mz_range: tuple[float, float]
    width: int
    height: int

    @property
    def value_of_pixel(self) -> tuple[float, float]:
        """What a pixel is wide and high, in x and m/z."""
        return (self.x_range[1] - self.x_range[0]) / self.width, (self.mz_range[1] - self.mz_range[0]) / self.height

    def value_at(self, across: float, down: float) -> tuple[float, float]:
        """x and m/z at a place."""
        width, height = self.value_of_pixel
        return self.x_range[0] + across * width, self.mz_range[1] - down * height

    def place_of(self, x: float, mz: float) -> tuple[float, float]:
        """The place of x and m/z."""
        width, height = self.value_of_pixel
        return (x - self.x_range[0]) / width, (self.mz_range[1] - mz) / height


def nearest_point(points: MapPoints, view: MapView, at: tuple[float, float], reach: float, shown: frozenset[int]) -> int | None:
    """The point nearest to a place of the view, both in pixels; None where none of the shown ones is within reach."""
    x, mz = view.value_at(*at)
    width, height = view.value_of_pixel
    first, last = np.searchsorted(points.x, np.array([x - reach * width, x + reach * width], np.float32))
    distance = ((points.x[first:last] - x) / width) ** 2 + ((points.mz[first:last] - mz) / height) ** 2
    distance[~np.isin(points.status[first:last], list(shown))] = np.inf
    if not len(distance) or distance.min() > reach**2:
        return None
    return int(first + np.argmin(distance))


def draw_points(
    points: MapPoints, view: MapView, colours: tuple[int, ...], shown: frozenset[int], scale: float = 1.0
) -> NDArray[np.uint32]:
    """A picture of the points in sight, (height, width), premultiplied ARGB of 8 bits each; 0 where nothing is.

    Few points are dots of which the rarer stand on top. Of many, a pixel has the colour of the status that most of its points have, and
    that more strongly the more points they are.

    Parameters
    ----------
    colours : 0xRRGGBB of each status. shown : the statuses that are drawn. scale : pixels of the picture for one of the window.
    """
    edges = np.linspace(*view.x_range, view.width + 1).astype(np.float32)
    of_statuses = [_InSight(*points.by_status[one], edges) for one in range(len(STATUS_NAMES)) if one in shown]
    kinds = [one for one in range(len(STATUS_NAMES)) if one in shown]
    n = sum(of_statuse.count(view) for of_statuse in of_statuses)
    if n > _MAXIMUM_SMALL:
        return _densities(view, of_statuses, kinds, colours)
    pixels = [of_statuse.pixels(view, 0, view.width) for of_statuse in of_statuses]
    return _dots(view, pixels, [colours[kind] for kind in kinds], (_LARGE if n <= _MAXIMUM_LARGE else _SMALL) * scale)


class _InSight:
    """Points of one status, and where each column of pixels begins among them."""

    def __init__(self, x: NDArray[np.float32], mz: NDArray[np.float32], edges: NDArray[np.float32]) -> None:
        self._mz, self.starts = mz, np.searchsorted(x, edges)

    def count(self, view: MapView) -> int:
        """Points in sight."""
        mz = self._mz[self.starts[0] : self.starts[-1]]
        return int(np.count_nonzero((mz >= view.mz_range[0]) & (mz <= view.mz_range[1])))

    def pixels(self, view: MapView, first: int, last: int) -> NDArray[np.int64]:
        """The pixels of the points in some columns, counted down the columns, one column after the other, from the first on."""
        starts = self.starts[first : last + 1]
        row = np.subtract(np.float32(view.mz_range[1]), self._mz[starts[0] : starts[-1]])
        row *= np.float32(view.height / (view.mz_range[1] - view.mz_range[0]))
        pixel = np.repeat(np.arange(0, (last - first) * view.height, view.height), np.diff(starts))
        is_in_sight = (row >= 0) & (row < view.height)
        pixel += row.astype(np.int32)
        return pixel if is_in_sight.all() else pixel[is_in_sight]


def _dots(view: MapView, pixels: list[NDArray[np.int64]], colours: list[int], radius: float) -> NDArray[np.uint32]:
    reach = int(np.ceil(radius))
    # A margin takes the halves of dots that reach over the edge.
    wide = view.width + 2 * reach
    picture = np.zeros((view.height + 2 * reach) * wide, np.uint32)
    for of_one, colour in zip(pixels, colours, strict=True):
        column, row = np.divmod(of_one, view.height)
        centre = (row + reach) * wide + column + reach
        for down in range(-reach, reach + 1):
            for across in range(-reach, reach + 1):
                if down * down + across * across <= radius * radius:
                    picture[centre + (down * wide + across)] = 0xFF000000 | colour
    return np.ascontiguousarray(picture.reshape(-1, wide)[reach : reach + view.height, reach : reach + view.width])


def _densities(view: MapView, points: list[_InSight], kinds: list[int], colours: tuple[int, ...]) -> NDArray[np.uint32]:
    picture, shades = np.empty((view.height, view.width), np.uint32), _shades(colours)
    # Some columns at a time: what is counted stays in the processor's cache.
    step = max(1, _PIXELS_AT_ONCE // view.height)
    for first in range(0, view.width, step):
        last = min(first + step, view.width)
        n = (last - first) * view.height
        most, shade, total = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        for kind, of_kind in zip(kinds, points, strict=True):
            counts = np.bincount(of_kind.pixels(view, first, last), minlength=n)
            # Of equally many the rarer wins, which comes later.
            np.copyto(shade, kind * (_FULL_AFTER + 1), where=(counts > 0) & (counts >= most))
            np.maximum(most, counts, out=most)
            total += counts
        shade += np.minimum(total, _FULL_AFTER)
        picture[:, first:last] = shades[shade].reshape(last - first, view.height).T
    return picture


def _shades(colours: tuple[int, ...]) -> NDArray[np.uint32]:
    """The colour of each status for 0, 1 ... `_FULL_AFTER` points, one after the other."""
    strength = np.concatenate(([0.0], np.linspace(_MINIMUM_COLOUR, 1.0, _FULL_AFTER)))
    alpha = np.round(255 * strength).astype(np.uint32)
    shades = []
    for colour in colours:
        parts = [np.round((colour >> shift & 0xFF) * strength).astype(np.uint32) << np.uint32(shift) for shift in (16, 8, 0)]
        shades.append((alpha << np.uint32(24)) | parts[0] | parts[1] | parts[2])
    return np.concatenate(shades)
