"""Spectra as sparse vectors of whole numbers, in the order in which they are compared: by sort of ion, then by precursor m/z.

Li's thesis, 4.4.1: the m/z axis is cut into bins, and only the bins that hold something are kept. Spectra whose ions are of another
polarity or charge are never compared; nor are those without a precursor.

::

    class      | 2+           | 3+       | negative 1- |
    precursor  | 400.2 ... 900| 350 ...  | 120 ...     |      order[k]: the spectrum in place k
    windows    | i ...ends[i] |          |             |      the places that place i is compared with
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vector_settings import Merging, Transform, VectorSettings
from proteoscope.kernels.cpu.spectrum_vectors import VectorRules, copy_vectors, fill_vectors
from proteoscope.kernels.partitions import Partition, equal_partitions
from proteoscope.kernels.vector_layouts import VectorArrays

__all__ = ["SpectrumVectors", "bin_factors", "spectrum_vectors", "windows"]

_TRANSFORMS: tuple[Transform, ...] = ("none", "square-root", "logarithm", "rank")
_WINDOW = 100.0
"""Thomson, of the windows that `peaks_per_window` counts in."""
_MERGINGS: tuple[Merging, ...] = ("sum", "mean", "largest")


@dataclass(frozen=True)
class SpectrumVectors:
    """Spectra as vectors, in the order in which they are compared.

    Attributes
    ----------
    order : (n,) int64, the spectrum in each place. precursor_mz : (n,) float64, in that order, NaN unknown. ion : (n,) uint32, in that
        order: the sort of ion, which is `Spectra.charge_mask`; spectra of different sorts are not compared.
    arrays : the vectors, in that order. n_bins : none of their bins is as large.
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
    """The vectors of all spectra; one with too few peaks, or another precursor or charge than is wanted, has no element.

    `factor` : (bins,) float64, of each bin's weight, where vectors are to be compared with others; from these spectra otherwise.
    """
    if factor is None:
        factor = bin_factors(spectra, settings, resources)
    n, room = len(spectra), 3 if settings.bin_spread > 0 else 1
    count = np.zeros(n, np.int64)
    bins, weights = np.empty(room * len(spectra.mz), np.int32), np.empty(room * len(spectra.mz), np.int16)
    progress, threads = resources.progress, resources.threads
    progress.stage("Making vectors of spectra", n)

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
    count[~_are_wanted(spectra, settings)] = 0
    order = np.lexsort((spectra.precursor_mz, spectra.charge_mask))
    starts, offsets = room * spectra.offsets[:-1][order], offsets_of(count[order])
    own_bins, own_weights = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int16)

    def copy(part: Partition) -> None:
        copy_vectors(starts, offsets, bins, weights, part.first, part.last, own_bins, own_weights)

    run_on_threads(copy, equal_partitions(np.diff(offsets) + 1, threads), threads, progress, steps=lambda _: 0)
    return SpectrumVectors(
        order,
        spectra.precursor_mz[order],
        spectra.charge_mask[order],
        VectorArrays(offsets, own_bins, own_weights),
        len(factor),
    )


def bin_factors(spectra: Spectra, settings: VectorSettings, resources: Resources) -> NDArray[np.float64]:
    """(bins,) float64: what a bin's weight is multiplied by, the more the fewer spectra have a peak there.

    The logarithm of how many spectra there are for each that has the bin, to the power of `rarity` (the inverse document frequency of
    Sparck Jones 1972, J Documentation 28:11); 1 where that is 0.
    """
    n_bins = int((settings.maximum_mz - settings.minimum_mz) / settings.bin_width) + 1
    ones = np.ones(n_bins)
    if settings.rarity == 0:
        return ones
    vectors = spectrum_vectors(spectra, settings, resources, factor=ones)
    n = int(np.count_nonzero(np.diff(vectors.arrays.offsets)))
    return np.log((n + 2) / (np.bincount(vectors.arrays.bins, minlength=n_bins) + 1)) ** settings.rarity


def _are_wanted(spectra: Spectra, settings: VectorSettings) -> NDArray[np.bool_]:
    """(n,) bool, whether a spectrum has a precursor and a charge within the limits; one of unknown m/z has."""
    mz, charges = spectra.precursor_mz, spectra.charge_mask >> np.uint32(1)
    allowed = np.uint32(sum(1 << charge for charge in range(max(0, settings.minimum_charge - 1), settings.maximum_charge)))
    has_charge = np.where(charges == 0, settings.minimum_charge == 0, charges & allowed > 0)
    return has_charge & ~((mz < settings.minimum_precursor_mz) | (mz > settings.maximum_precursor_mz))


def windows(vectors: SpectrumVectors, tolerance: Tolerance) -> NDArray[np.int64]:
    """(n,) int64, the end of the places behind each that it is compared with: those of the same sort of ion whose precursors are heavier by
    at most the tolerance (of the lighter one's m/z).

    An empty vector is compared with none, but stays where it is.
    """
    n = len(vectors)
    ends = np.arange(1, n + 1)
    cuts = np.flatnonzero(np.diff(vectors.ion)) + 1
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True):
        mz = vectors.precursor_mz[first:last]
        known = int(np.searchsorted(mz, np.inf, side="right"))  # what is not a number stands at the end
        found = first + np.searchsorted(mz[:known], mz[:known] + tolerance.width(mz[:known]), side="right")
        ends[first : first + known] = np.maximum(ends[first : first + known], found)
    return ends
