"""Peak lists of query spectra and reference spectra, in the form in which they are compared."""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.kernels.cpu.library_peaks import PeakRules, copy_peaks, fill_peaks
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import PeakArrays
from proteoscope.kernels.library_layouts import UNITS, PeakLists

__all__ = ["HIGHEST_MZ", "peak_lists", "peak_rules", "taken", "width_in_units"]

HIGHEST_MZ = 20_000.0
"""Maximum m/z (Th) and maximum mass (Da) of compared peaks."""


def width_in_units(tolerance: Tolerance) -> tuple[int, int]:
    """Return a tolerance in the form that kernels expect: m/z units, and thousandths of a ppm; one of the two is 0."""
    return (0, round(tolerance.value * 1000)) if tolerance.unit == "ppm" else (round(tolerance.value * UNITS), 0)


def peak_rules(parameters: LibrarySearchParameters) -> PeakRules:
    """Return the rules for selecting and weighting peaks."""
    return PeakRules(
        *width_in_units(parameters.fragment_tolerance),
        parameters.minimum_fragment_mz,
        HIGHEST_MZ,
        parameters.precursor_removal,
        parameters.noise_threshold,
        parameters.maximum_peaks,
        parameters.minimum_peaks,
        parameters.intensity_power,
        parameters.similarity == "entropy",
    )


def peak_lists(
    peaks: PeakArrays, precursor_mz: NDArray[np.float64], parameters: LibrarySearchParameters, resources: Resources
) -> PeakLists:
    """Return the peak lists of n spectra, empty for spectra with too few peaks.

    Parameters
    ----------
    peaks : PeakArrays
        Peaks of the n spectra.
    precursor_mz : ndarray of float64, shape (n,)
        Precursor m/z in thomson, NaN if unknown.
    parameters : LibrarySearchParameters
        Parameters of the search.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    PeakLists
    """
    n, rules = len(precursor_mz), peak_rules(parameters)
    count, mz, weight = np.zeros(n, np.int64), np.empty(len(peaks.mz), np.int32), np.empty(len(peaks.mz), np.uint16)

    def fill(part: Partition) -> None:
        fill_peaks(peaks, precursor_mz, part.first, part.last, rules, count, mz, weight)

    threads, progress = resources.threads, resources.progress
    run_on_threads(
        fill, equal_partitions(np.diff(peaks.offsets) + 1, threads), threads, progress, steps=lambda part: part.last - part.first
    )
    offsets = segment_offsets(count)
    own_mz, own_weight = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint16)

    def copy(part: Partition) -> None:
        copy_peaks(peaks.offsets, offsets, mz, weight, part.first, part.last, own_mz, own_weight)

    run_on_threads(copy, equal_partitions(np.diff(offsets) + 1, threads), threads, progress, steps=lambda _: 0)
    return PeakLists(offsets, own_mz, own_weight)


def taken(lists: PeakLists, rows: NDArray[np.int64]) -> PeakLists:
    """Return the lists with the given indices, in this order; indices may repeat."""
    mz, offsets = take_segments(lists.mz, lists.offsets, rows)
    weight, _ = take_segments(lists.weight, lists.offsets, rows)
    return PeakLists(offsets, mz, weight)
