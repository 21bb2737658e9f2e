"""LC-MS map of a run: its spectra as points of retention time and m/z, coloured by their status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.figures import Figure, LegendEntry, Panel, Picked, Pixels
from proteoscope.engine.views.palette import Ink, Ion, Palette, rgb_of
from proteoscope.engine.views.shown_peaks import UNMATCHED

__all__ = ["EXPLAINED", "IDENTIFIED", "STATUS_INKS", "STATUS_NAMES", "UNEXPLAINED", "MapPoints", "draw_points", "run_map_figure"]

UNEXPLAINED, IDENTIFIED, EXPLAINED = 0, 1, 2
STATUS_NAMES = ("unexplained", "identified", "explained")
"""Names of the statuses of spectra; the status in the table is an index into this tuple."""
STATUS_INKS: tuple[Ink, ...] = (Ion(UNMATCHED), "target", "decoy")
_LEGEND = (IDENTIFIED, EXPLAINED, UNEXPLAINED)
_NEAR = 8.0
"""Maximum distance in pixels between the pointer and the selected point."""
_SMALLEST = (0.002, 0.02)
"""Minimum visible range, minutes and thomson."""
_MAXIMUM_LARGE, _MAXIMUM_SMALL = 3_000, 60_000
"""Maximum number of visible points drawn as large and as small dots; with more points, pixels are coloured by density."""
_LARGE, _SMALL = 2.8, 1.5
"""Radius of the dots, in pixels of the window."""
_FULL_AFTER = 8
"""Minimum number of points in a pixel with the full colour."""
_MINIMUM_COLOUR = 0.55
"""Opacity of a pixel with a single point."""

Range = tuple[float, float]


@dataclass(frozen=True)
class MapPoints:
    """Spectra (n) as points, sorted by retention time.

    Attributes
    ----------
    spectrum
        Row of each spectrum in the table of spectra, shape (n,), int64.
    x
        Retention times in minutes or, without times, the order in the files; ascending, shape (n,), float32.
    mz
        Precursor m/z in thomson, shape (n,), float32.
    status
        Status, index into `STATUS_NAMES`, shape (n,), uint8.
    has_times
        True if `x` holds retention times.
    n_missing
        Number of spectra without a time or m/z, which have no point.
    scan
        Scan numbers, -1 if unknown, shape (n,), int64.
    file
        Index into `files`, shape (n,), int32; None if there is only one file.
    """

    spectrum: NDArray[np.int64]
    x: NDArray[np.float32]
    mz: NDArray[np.float32]
    status: NDArray[np.uint8]
    has_times: bool
    n_missing: int
    scan: NDArray[np.int64]
    file: NDArray[np.int32] | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, table: Any) -> MapPoints:
        """Return the points of an Arrow table of spectra with a column ``status``."""
        spectrum = table["spectrum"].to_numpy().astype(np.int64)
        time = table["retention_time"].to_numpy().astype(np.float64) / 60
        mz = table["precursor_mz"].to_numpy().astype(np.float64)
        status = np.minimum(table["status"].to_numpy().astype(np.uint8), EXPLAINED)
        has_times = bool(np.isfinite(time).any())
        x = time if has_times else np.arange(len(spectrum), dtype=np.float64)
        retained = np.flatnonzero(np.isfinite(x) & np.isfinite(mz))
        retained = retained[np.argsort(x[retained], kind="stable")]
        scan = table["scan"].fill_null(-1).to_numpy().astype(np.int64)[retained]
        file, files = _read_file_column(table, retained)
        positions = x[retained].astype(np.float32), mz[retained].astype(np.float32)
        result = cls(spectrum[retained], *positions, status[retained], has_times, len(spectrum) - len(retained), scan, file, files)
        # Draw now, in the thread that reads the table, since the first call compiles the kernels.
        for limit in (0, len(result)):
            draw_points(result, result.whole, (1, 1), np.zeros((len(STATUS_NAMES), 1), np.uint32), largest_dots=limit)
        return result

    def __len__(self) -> int:
        return len(self.x)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of points of each status."""
        return tuple(np.bincount(self.status, minlength=len(STATUS_NAMES)).tolist())

    @property
    def whole(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Ranges of x and m/z that contain all points, with a margin."""
        return _with_margin(self.x), _with_margin(self.mz)

    def name_of(self, point: int) -> str:
        """Return the name of a point's spectrum, such as ``scan 12 of a.mzML``; an unknown scan and the only file of a run are omitted."""
        scan = int(self.scan[point])
        of_file = "" if self.file is None else self.files[int(self.file[point])]
        return " of ".join(part for part in (f"scan {scan}" if scan >= 0 else "", of_file) if part)

    def tip(self, point: int) -> str:
        """Return the tooltip of a point."""
        position = f"m/z {self.mz[point]:,.4f}" + (f", {self.x[point]:,.2f} min" if self.has_times else "")
        return "\n".join(part for part in (self.name_of(point), position, STATUS_NAMES[self.status[point]]) if part)

    def nearest(self, x: float, mz: float, reach: tuple[float, float], shown: frozenset[int]) -> int | None:
        """Return the nearest point whose status is in `shown`, or None if none is within the distances `reach` of `x` and `mz`."""
        start, stop = np.searchsorted(self.x, np.array([x - reach[0], x + reach[0]], np.float32))
        distance = ((self.x[start:stop] - x) / reach[0]) ** 2 + ((self.mz[start:stop] - mz) / reach[1]) ** 2
        distance[~np.isin(self.status[start:stop], list(shown))] = np.inf
        return None if not len(distance) or distance.min() > 1 else int(start + np.argmin(distance))

    def point_of(self, spectrum: SpectrumRow) -> int | None:
        """Return the point of a spectrum by its row in the table of spectra, or None if it has no point."""
        result = np.flatnonzero(self.spectrum == spectrum)
        return int(result[0]) if len(result) else None


def _read_file_column(table: Any, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    encoded = table["spectrum_file"].fill_null("").combine_chunks().dictionary_encode()
    files = tuple(encoded.dictionary.to_pylist())
    return (encoded.indices.to_numpy().astype(np.int32)[rows], files) if len(files) > 1 else (None, files)


def _with_margin(values: NDArray[np.float32]) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = 0.02 * (high - low) or 0.5
    return low - margin, high + margin


def run_map_figure(points: MapPoints, shown: frozenset[int] = frozenset(_LEGEND)) -> Figure:
    """Return the figure of the LC-MS map with the points of the given statuses; a click selects a point."""

    def render(x: Range, y: Range, width: int, height: int, scale: float, palette: Palette) -> NDArray[np.uint8]:
        return draw_points(points, (x, y), (width, height), _shades(palette), shown, scale)

    def pick(x: float, mz: float, across: float, up: float) -> Picked | None:
        point = points.nearest(x, mz, (_NEAR * across, _NEAR * up), shown)
        return None if point is None else Picked(point, points.tip(point))

    title, short = "Retention time (min)", "Time (min)"
    if not points.has_times:
        title, short = "Spectra in the order of the files (they have no retention times)", "Order of the files"
    titles: tuple[str, ...] = (title, short)
    if points.n_missing:
        missing = counted(points.n_missing, "spectrum", "spectra")
        titles = (f"{title}; {missing} without coordinates not shown", f"{short}; {points.n_missing:,} not shown", short)
    x, mz = points.whole
    x_axis = Axis(*x, titles[0], is_whole=not points.has_times, short_titles=titles[1:])
    panel = Panel(x_axis, Axis(*mz, "m/z"), (Pixels(render),), smallest=_SMALLEST, pick=pick)
    names = {status: f"{points.counts[status]:,} {STATUS_NAMES[status]}" for status in _LEGEND}
    legend = tuple(LegendEntry(names[status], STATUS_INKS[status]) for status in _LEGEND if status in shown)
    described = f"Spectra by retention time and m/z: {', '.join(names.values())}"
    return Figure("Map of the run", described, (panel,), legend=legend, size=(460.0, 300.0))


def draw_points(
    points: MapPoints,
    ranges: tuple[Range, Range],
    size: tuple[int, int],
    shades: NDArray[np.uint32],
    shown: frozenset[int] = frozenset(_LEGEND),
    scale: float = 1.0,
    *,
    largest_dots: int = _MAXIMUM_SMALL,
) -> NDArray[np.uint8]:
    """Render the points in the visible ranges as an image.

    Up to `largest_dots` points are drawn as dots, with rarer statuses in front. With more points, each pixel has the colour of the status
    that most of its points have; the more points it contains, the more opaque it is.

    Parameters
    ----------
    ranges
        Visible ranges of x and m/z.
    size
        Width and height of the image, pixels.
    shades
        Pixel colours by status and number of points, shape (statuses, k), uint32; see `kernels.cpu.rasterisation.shade_counts`.
    shown
        Statuses to draw.
    scale
        Number of image pixels per window pixel.
    largest_dots
        Maximum number of points drawn as dots.

    Returns
    -------
    ndarray of uint8, shape (height, width, 4)
        Red, green, blue and opacity; pixels without points are transparent.
    """
    width, height = size
    first, last = np.searchsorted(points.x, np.array(ranges[0], np.float32))
    seen = slice(first, last + 1)
    group, pixel = points.status[seen], np.empty(len(points.x[seen]), np.int32)
    counts, picture = np.zeros((height, width, len(STATUS_NAMES)), np.uint16), np.zeros((height, width), np.uint32)
    is_shown = np.isin(np.arange(len(STATUS_NAMES)), list(shown))
    raster = kernels.cpu.rasterisation
    n = raster.count_points(points.x[seen], points.mz[seen], group, is_shown, *np.array(ranges), pixel, counts)
    if n > largest_dots:
        raster.shade_counts(counts, shades, picture)
    else:
        raster.draw_dots(pixel, group, shades, (_LARGE if n <= _MAXIMUM_LARGE else _SMALL) * scale, picture)
    return picture.view(np.uint8).reshape(height, width, 4)


def _shades(palette: Palette) -> NDArray[np.uint32]:
    """Return the pixel colour of each status for 0, 1, … `_FULL_AFTER` points, (statuses, points), uint32."""
    strength = np.concatenate(([0.0], np.linspace(_MINIMUM_COLOUR, 1.0, _FULL_AFTER)))
    colours = np.array([rgb_of(ink, palette) for ink in STATUS_INKS], np.uint8)
    pixels = np.empty((len(colours), len(strength), 4), np.uint8)
    pixels[:, :, :3], pixels[:, :, 3] = colours[:, None], np.round(255 * strength)
    return pixels.view(np.uint32)[:, :, 0]
