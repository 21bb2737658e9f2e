"""Spectra as sparse vectors of integers, sorted by type of ion and then by precursor m/z.

As in Li's thesis, 4.4.1, the m/z axis is divided into bins, and only bins with peaks are stored. Two spectra are never compared if their
ions differ in polarity or charge, or if one of them has no precursor.

::

    class      | 2+           | 3+       | negative 1- |
    precursor  | 400.2 ... 900| 350 ...  | 120 ...     |      order[k]: the spectrum at position k
    windows    | i ...ends[i] |          |             |      the positions that position i is compared with
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vector_settings import Merging, Transform, VectorSettings
from proteoscope.kernels.clustering_layouts import VectorArrays
from proteoscope.kernels.cpu.spectrum_vectors import VectorRules, copy_vectors, fill_vectors
from proteoscope.kernels.device import Partition, equal_partitions

__all__ = ["SpectrumVectors", "bin_factors", "spectrum_vectors", "windows"]

_TRANSFORMS: tuple[Transform, ...] = ("none", "square-root", "logarithm", "rank")
_WINDOW = 100.0
"""Width of the windows of `peaks_per_window` in thomson."""
_MERGINGS: tuple[Merging, ...] = ("sum", "mean", "largest")


@dataclass(frozen=True)
class SpectrumVectors:
    """Vectors of n spectra, sorted by type of ion and then by precursor m/z.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        Index of the spectrum at each position of the sorted order.
    precursor_mz : ndarray of float64, shape (n,)
        Precursor m/z at each position in thomson, NaN if unknown.
    ion : ndarray of uint32, shape (n,)
        Type of ion at each position, as a mask of charges (see `Spectra.charge_mask`); spectra of different types are not compared.
    arrays : VectorArrays
        Vector at each position.
    n_bins : int
        Number of bins of the m/z axis.
    """

    order: NDArray[np.int64]
    precursor_mz: NDArray[np.float64]
    ion: NDArray[np.uint32]
    arrays: VectorArrays
    n_bins: int

    def __len__(self) -> int:
        return len(self.order)


def spectrum_vectors(
    spectra: Spectra, settings: VectorSettings, resources: Resources, *, factor: NDArray[np.float64] | None = None
) -> SpectrumVectors:
    """Return the vectors of all spectra.

    A spectrum with too few peaks, or with a precursor or charge outside the limits, has an empty vector.

    Parameters
    ----------
    spectra : Spectra
        The n spectra.
    settings : VectorSettings
        Settings of a search.
    resources : Resources
        Threads and progress.
    factor : ndarray of float64, shape (bins,), optional
        Factor of the weight of each bin; by default computed from these spectra. Vectors that are compared need the same factors.

    Returns
    -------
    SpectrumVectors
        Vectors of the n spectra.
    """
    if factor is None:
        factor = bin_factors(spectra, settings, resources)
    n, bins_per_peak = len(spectra), 3 if settings.bin_spread > 0 else 1
    count = np.zeros(n, np.int64)
    bins, weights = np.empty(bins_per_peak * len(spectra.mz), np.int32), np.empty(bins_per_peak * len(spectra.mz), np.int16)
    progress, threads = resources.progress, resources.threads
    progress.stage("Computing vectors of spectra", n)
    rules = VectorRules(
        settings.bin_width,
        settings.minimum_mz,
        settings.maximum_mz,
        settings.precursor_removal,
        settings.peaks_per_window,
        _WINDOW,
        settings.maximum_peaks,
        settings.minimum_peaks,
        _TRANSFORMS.index(settings.intensity_transform),
        _MERGINGS.index(settings.peak_merging),
        settings.bin_spread,
    )

    def fill(part: Partition) -> None:
        fill_vectors(spectra.peak_arrays, spectra.precursor_mz, part.first, part.last, rules, factor, count, bins, weights)

    parts = equal_partitions(np.diff(spectra.offsets) + 1, threads)
    run_on_threads(fill, parts, threads, progress, steps=lambda part: part.last - part.first)
    count[~_are_within_limits(spectra, settings)] = 0
    order = np.lexsort((spectra.precursor_mz, spectra.charge_mask))
    starts, offsets = bins_per_peak * spectra.offsets[:-1][order], segment_offsets(count[order])
    ordered_bins, ordered_weights = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int16)

    def copy(part: Partition) -> None:
        copy_vectors(starts, offsets, bins, weights, part.first, part.last, ordered_bins, ordered_weights)

    run_on_threads(copy, equal_partitions(np.diff(offsets) + 1, threads), threads, progress, steps=lambda _: 0)
    return SpectrumVectors(
        order,
        spectra.precursor_mz[order],
        spectra.charge_mask[order],
        VectorArrays(offsets, ordered_bins, ordered_weights),
        len(factor),
    )


def bin_factors(spectra: Spectra, settings: VectorSettings, resources: Resources) -> NDArray[np.float64]:
    """Return the factor of the weight of each bin, which is larger for bins with peaks in fewer spectra.

    The factor is ``ln(N / n) ** rare_peak_weight``, where N is the number of spectra, and n the number of spectra with a peak in the bin
    (the inverse document frequency of Sparck Jones 1972, J Documentation 28:11). All factors are 1 if `rare_peak_weight` is 0.

    Parameters
    ----------
    spectra : Spectra
        Spectra in which the peaks are counted.
    settings : VectorSettings
        Settings of the vectors.
    resources : Resources
        Threads and progress.

    Returns
    -------
    ndarray of float64, shape (bins,)
        Factors.
    """
    n_bins = int((settings.maximum_mz - settings.minimum_mz) / settings.bin_width) + 1
    ones = np.ones(n_bins)
    if settings.rare_peak_weight == 0:
        return ones
    vectors = spectrum_vectors(spectra, settings, resources, factor=ones)
    n = int(np.count_nonzero(np.diff(vectors.arrays.offsets)))
    return np.log((n + 2) / (np.bincount(vectors.arrays.bins, minlength=n_bins) + 1)) ** settings.rare_peak_weight


def _are_within_limits(spectra: Spectra, settings: VectorSettings) -> NDArray[np.bool_]:
    """Return True for each spectrum whose precursor m/z and charge are within the limits, shape (n,); an unknown m/z counts as within."""
    mz, charges = spectra.precursor_mz, spectra.charge_mask >> np.uint32(1)
    allowed = np.uint32(sum(1 << charge for charge in range(max(0, settings.minimum_charge - 1), settings.maximum_charge)))
    has_charge = np.where(charges == 0, settings.minimum_charge == 0, charges & allowed > 0)
    return has_charge & ~((mz < settings.minimum_precursor_mz) | (mz > settings.maximum_precursor_mz))


def windows(vectors: SpectrumVectors, tolerance: Tolerance) -> NDArray[np.int64]:
    """Return, for each sorted position i, the end of the range of positions with which position i is compared; the range starts at i + 1.

    The range contains the spectra with the same type of ion whose precursor m/z is larger by at most the tolerance, which is evaluated at
    the smaller m/z. Spectra with an empty vector have positions, too, but are not compared.

    Parameters
    ----------
    vectors : SpectrumVectors
        Vectors of n spectra, sorted by type of ion and precursor m/z.
    tolerance : Tolerance
        Maximum difference of the precursor m/z.

    Returns
    -------
    ndarray of int64, shape (n,)
        End positions (exclusive).
    """
    n = len(vectors)
    ends = np.arange(1, n + 1)
    cuts = np.flatnonzero(np.diff(vectors.ion)) + 1
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True):
        mz = vectors.precursor_mz[first:last]
        n_known = int(np.searchsorted(mz, np.inf, side="right"))  # NaN values are at the end
        reached = first + np.searchsorted(mz[:n_known], mz[:n_known] + tolerance.width(mz[:n_known]), side="right")
        ends[first : first + n_known] = np.maximum(ends[first : first + n_known], reached)
    return ends
