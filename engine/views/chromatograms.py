"""Chromatograms of a run: total ion current, base peak intensity, or intensity of one m/z, by retention time."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.figures import Figure, Line, Panel, Picked, Rule

__all__ = ["Chromatogram", "base_peaks", "chromatogram_figure", "extracted", "of_spectra", "power_below", "total_ions"]

_SMALLEST = 0.01
"""Minimum visible range of a chromatogram, minutes."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Chromatogram:
    """Intensities of n spectra by retention time.

    Attributes
    ----------
    title
        Title for display.
    minutes : (n,) float64
        Retention times, ascending.
    intensity : (n,) float64
        Intensity of each spectrum.
    spectrum : (n,) int64
        Row of each spectrum in the table of spectra; -1 for MS1 spectra.
    scan : (n,) int64
        Scan numbers; -1 if unknown.
    """

    title: str
    minutes: NDArray[np.float64]
    intensity: NDArray[np.float64]
    spectrum: NDArray[np.int64]
    scan: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.minutes)

    def nearest(self, minutes: float) -> int | None:
        """Return the index of the spectrum nearest to a time, or None if there are no spectra."""
        if not len(self):
            return None
        right = min(int(np.searchsorted(self.minutes, minutes)), len(self) - 1)
        left = max(0, right - 1)
        return left if minutes - self.minutes[left] <= self.minutes[right] - minutes else right

    def outline(self, low: float, high: float, n_columns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the points of a chromatogram's line between two times (minutes), and one more point on each side.

        More than ``4 * n_columns`` points are reduced to the minimum and the maximum of each of `n_columns` groups of points.

        Returns
        -------
        x, y
            Minutes and intensities, shape (m,), float64 each.
        """
        first = max(0, int(np.searchsorted(self.minutes, low)) - 1)
        last = min(len(self), int(np.searchsorted(self.minutes, high, side="right")) + 1)
        x, y = self.minutes[first:last], self.intensity[first:last]
        if len(x) <= 4 * n_columns:
            return x, y
        starts = np.unique(np.linspace(0, len(x), n_columns, endpoint=False).astype(np.int64))
        ends = np.empty((len(starts), 2))
        ends[:, 0], ends[:, 1] = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
        return np.repeat(x[starts], 2), ends.ravel()


def power_below(highest: float) -> tuple[float, str]:
    """Return the largest power of ten up to an intensity as number and text, such as 10000 and ``10⁴``; 1 and '' for less than 1,000."""
    if highest < 1000:
        return 1.0, ""
    exponent = math.floor(math.log10(highest))
    return 10.0**exponent, f"10{str(exponent).translate(_RAISED)}"


def chromatogram_figure(chromatogram: Chromatogram, marked: float | None = None) -> Figure:
    """Return the figure of a chromatogram, with a vertical line at `marked` minutes.

    A click selects the spectrum that is nearest in time.
    """
    minutes, title = chromatogram.minutes, chromatogram.title
    margin = 0.01 * float(minutes[-1] - minutes[0]) or 0.5
    x = Axis(float(minutes[0]) - margin, float(minutes[-1]) + margin, "Retention time (min)")

    def of_view(low: float, high: float, n_columns: int) -> Panel:
        at, intensity = chromatogram.outline(low, high, n_columns)
        highest = float(intensity[(at >= low) & (at <= high)].max(initial=0.0)) or 1.0
        power, written = power_below(highest)
        y = Axis(0.0, highest * 1.06 / power, f"Intensity ({written})" if written else "Intensity")
        rules = () if marked is None else (Rule(marked, ink="mark", width=1.2),)
        return Panel(x, y, (Line(at, intensity / power, "target", 1.0), *rules))

    def pick(minute: float, _: float, across: float, up: float) -> Picked | None:
        position = chromatogram.nearest(minute)
        return None if position is None else Picked(position, _tip(chromatogram, position))

    panel = Panel(x, Axis(0.0, 1.0), (), smallest=(_SMALLEST, None), of_view=of_view, pick=pick)
    return Figure(title, f"{title} by retention time", (panel,), (title,), size=(510.0, 220.0))


def _tip(chromatogram: Chromatogram, position: int) -> str:
    scan = f"scan {chromatogram.scan[position]}, " if chromatogram.scan[position] >= 0 else ""
    return f"{scan}{chromatogram.minutes[position]:,.2f} min\nintensity {chromatogram.intensity[position]:.4g}"


def total_ions(surveys: Ms1Spectra) -> Chromatogram:
    """Return the chromatogram of the total ion current of the MS1 spectra."""
    return _of_surveys("Total ion current (MS1)", surveys, _sums(surveys.intensity, surveys.offsets))


def base_peaks(surveys: Ms1Spectra) -> Chromatogram:
    """Return the chromatogram of the base peak intensities of the MS1 spectra."""
    return _of_surveys("Base peak (MS1)", surveys, _over_runs(np.maximum, surveys.intensity, surveys.offsets))


def extracted(surveys: Ms1Spectra, mz: float, tolerance: Tolerance) -> Chromatogram:
    """Return the extracted ion chromatogram: the summed intensity within the tolerance of an m/z, for each MS1 spectrum.

    Examples
    --------
    >>> two = Ms1Spectra(np.array([60.0, 120.0]), np.array([1, 2]), np.array([0, 2, 3]), np.array([500.0, 500.2, 500.001]),
    ...               np.array([3, 5, 7], np.float32))
    >>> extracted(two, 500.0, Tolerance(10, "ppm")).intensity.tolist()
    [3.0, 7.0]
    """
    low, high = tolerance.bounds(mz)
    within = np.flatnonzero((surveys.mz >= low) & (surveys.mz <= high))
    owner = np.searchsorted(surveys.offsets, within, side="right") - 1
    intensity = np.bincount(owner, weights=surveys.intensity[within], minlength=len(surveys))
    return _of_surveys(f"m/z {mz:.4f} ± {tolerance}", surveys, intensity.astype(np.float64))


def of_spectra(
    title: str, seconds: NDArray[np.float64], intensity: NDArray[np.float64], spectrum: NDArray[np.int64], scan: NDArray[np.int64]
) -> Chromatogram:
    """Return the chromatogram of n tandem mass spectra, without spectra whose time or intensity is unknown.

    The arrays have shape (n,); times are in seconds, and `spectrum` contains row indices in the table of spectra.
    """
    retained = np.flatnonzero(np.isfinite(seconds) & np.isfinite(intensity))
    retained = retained[np.argsort(seconds[retained], kind="stable")]
    return Chromatogram(title, seconds[retained] / 60, intensity[retained].astype(np.float64), spectrum[retained], scan[retained])


def _of_surveys(title: str, surveys: Ms1Spectra, intensity: NDArray[np.float64]) -> Chromatogram:
    return Chromatogram(title, surveys.retention_time / 60, intensity, np.full(len(surveys), -1, np.int64), surveys.scan)


def _sums(values: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    return _over_runs(np.add, values, offsets)


def _over_runs(combine: np.ufunc, values: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return one number per segment of `values`, such as their sum if `combine` is ``np.add``; 0 for empty segments.

    Segment i is ``values[offsets[i]:offsets[i + 1]]``.
    """
    result = np.zeros(len(offsets) - 1)
    is_there = np.diff(offsets) > 0
    if is_there.any():
        result[is_there] = combine.reduceat(values, offsets[:-1][is_there], dtype=np.float64 if combine is np.add else None)
    return result
