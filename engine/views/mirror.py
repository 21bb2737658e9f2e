"""Mirror plots of two spectra, and the peaks that they share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.engine.views.peaks import Peaks
from proteoscope.engine.views.shown_peaks import SHARED, SHIFTED, UNMATCHED, ShownPeaks, relative_intensity

__all__ = ["Half", "MirroredSpectra", "shared_peaks"]


@dataclass(frozen=True)
class Half:
    """Spectrum of a mirror plot: display name, peaks and, if the peptide is known, annotated ions."""

    name: str
    peaks: Peaks
    ions: AnnotatedSpectrum | None = None

    @cached_property
    def relative(self) -> NDArray[np.float64]:
        """Intensities in percent of the base peak, shape (peaks,)."""
        return relative_intensity(self.peaks.intensity)


@dataclass(frozen=True)
class MirroredSpectra:
    """Spectrum that is mirrored with another spectrum, or shown alone.

    Attributes
    ----------
    title
        Display name of the comparison.
    tolerance
        Maximum m/z difference of shared peaks.
    similarity, similarity_name
        Similarity that the search computed, or None, and name of the measure.
    note
        Reason for a missing lower spectrum, or a remark.
    shift
        Value in thomson by which a fragment may have a larger m/z in the upper than in the lower spectrum; 0 for no shift.
    is_one_spectrum
        True if both are the same spectrum with two peptides; peaks then do not count as shared.
    """

    title: str
    upper: Half
    lower: Half | None
    tolerance: Tolerance
    similarity: float | None = None
    note: str = ""
    is_one_spectrum: bool = False
    shift: float = 0.0
    similarity_name: str = "cosine"

    @property
    def halves(self) -> tuple[Half, ...]:
        """The upper spectrum and, if there is one, the lower spectrum."""
        return (self.upper,) if self.lower is None else (self.upper, self.lower)

    @cached_property
    def shared(self) -> NDArray[np.int64]:
        """Pairs of shared peaks as indices in the upper and the lower spectrum, (n, 2); pairs that match without the shift come first."""
        return np.concatenate((self._in_place, self._moved))

    @property
    def n_moved(self) -> int:
        """Number of shared peaks that match with the shift (the last rows of `shared`)."""
        return len(self._moved)

    @cached_property
    def _in_place(self) -> NDArray[np.int64]:
        if self.lower is None or self.is_one_spectrum:
            return np.empty((0, 2), np.int64)
        return shared_peaks(self.upper.peaks.mz, self.lower.peaks.mz, self.tolerance)

    @cached_property
    def _moved(self) -> NDArray[np.int64]:
        """Pairs of peaks that match with the shift, among the peaks that do not match without it, (n, 2)."""
        if self.lower is None or self.is_one_spectrum or not self.shift:
            return np.empty((0, 2), np.int64)
        upper = np.setdiff1d(np.arange(len(self.upper.peaks.mz)), self._in_place[:, 0])
        lower = np.setdiff1d(np.arange(len(self.lower.peaks.mz)), self._in_place[:, 1])
        pairs = shared_peaks(self.upper.peaks.mz[upper], self.lower.peaks.mz[lower] + self.shift, self.tolerance)
        return np.column_stack((upper[pairs[:, 0]], lower[pairs[:, 1]]))

    @cached_property
    def shown(self) -> tuple[ShownPeaks, ...]:
        """Peaks of each spectrum with their kinds; if only one peak of a shared pair has an ion, the other peak has the same kind."""
        kinds = []
        for at, half in enumerate(self.halves):
            of_half = np.full(len(half.peaks.mz), UNMATCHED, dtype="<U8")
            of_half[self._in_place[:, at]] = SHARED
            of_half[self._moved[:, at]] = SHIFTED
            if half.ions is not None:
                of_half[half.ions.matches.peak] = half.ions.kinds
            kinds.append(of_half)
        for mine, other in ((0, 1), (1, 0)) if len(kinds) > 1 else ():
            is_plain = np.isin(kinds[mine][self.shared[:, mine]], (SHARED, SHIFTED))
            kinds[mine][self.shared[is_plain, mine]] = kinds[other][self.shared[is_plain, other]]
        none = np.empty(0, np.int64)
        return tuple(
            ShownPeaks(
                half.peaks.mz,
                half.relative,
                kinds[at],
                none if half.ions is None else half.ions.matches.peak,
                () if half.ions is None else half.ions.labels,
                is_below=at == 1,
            )
            for at, half in enumerate(self.halves)
        )

    def partner(self, half: int, peak: int) -> int | None:
        """Return the peak of the other spectrum that matches a peak, or None; `half` is 0 for the upper spectrum, 1 for the lower."""
        result = np.flatnonzero(self.shared[:, half] == peak)
        return int(self.shared[result[0], 1 - half]) if len(result) else None


def shared_peaks(first: NDArray[np.float64], second: NDArray[np.float64], tolerance: Tolerance) -> NDArray[np.int64]:
    """Return pairs of peaks, (k, 2), as indices in `first` and `second`: peaks that are the nearest of each other and within the tolerance.

    Parameters
    ----------
    first, second : ndarray of float64, shape (n,) and (m,)
        m/z values in thomson, ascending.

    Examples
    --------
    >>> shared_peaks(np.array([100.0, 200.0, 300.0]), np.array([200.01, 200.04, 300.2]), Tolerance(0.05, "Da")).tolist()
    [[1, 0]]
    """
    if not len(first) or not len(second):
        return np.empty((0, 2), np.int64)
    nearest = _nearest(first, second)
    peaks = np.arange(len(first))
    is_shared = (_nearest(second, first)[nearest] == peaks) & (np.abs(second[nearest] - first) <= tolerance.width(first))
    return np.column_stack((peaks[is_shared], nearest[is_shared]))


def _nearest(of: NDArray[np.float64], among: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index of the nearest value in `among` for each value in `of`; the smaller value for ties."""
    right = np.clip(np.searchsorted(among, of), 1, max(1, len(among) - 1))
    left = right - 1
    right = np.minimum(right, len(among) - 1)
    return np.where(np.abs(of - among[left]) <= np.abs(among[right] - of), left, right)
