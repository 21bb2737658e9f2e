"""Reader of the peaks in the m/z range of reporter ions from all MS2 or MS3 spectra of a file, with precursors and isolation windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.binary_arrays import Arrays, decode_arrays
from proteoscope.engine.formats.ms1_spectra import level_blocks
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_INTENSITY, MAXIMUM_MZ, NoiseSamples, Origin
from proteoscope.engine.jobs.progress import Progress

__all__ = ["NOISE_TERMS", "ReporterRegions", "noise_numbers", "noise_samples", "read_reporter_regions", "signal_to_noise"]

_MZ, _INTENSITY, _RATIO, _AT, _NOISE, _BASELINE = NOISE_TERMS = (1000514, 1000515, 1000517, 1002743, 1002744, 1002745)
"""Terms of the arrays that `noise_samples` uses."""
_SPECTRUM_APART = 1e6
"""Offset between consecutive spectra on a common m/z axis, which exceeds any m/z."""
_MINIMUM_NOISE = 1e-30
"""Minimum valid noise; smaller values are not considered measurements."""


def noise_samples(text: NDArray[np.uint8], arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> NoiseSamples:
    """Return the noise of spectra of a block.

    Spectra without noise, or with invalid or inconsistent arrays, have no samples.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text of the block.
    arrays : mapping of int to Arrays
        Arrays of all spectra of the block for each of `NOISE_TERMS`.
    rows : ndarray of int64, shape (n,)
        Indices of the spectra in the block.

    Returns
    -------
    NoiseSamples
        Samples of the n spectra.
    """
    with_baseline, without, ratios = (_decode_together(text, arrays, rows, *form) for form in _forms(arrays, rows))
    owner, (mz, noise) = without
    parts = [with_baseline, (owner, np.stack([mz, noise, np.zeros(len(mz))]))]
    owner, (mz, height, ratio) = ratios
    with np.errstate(all="ignore"):
        parts.append((owner, np.stack([mz, height / ratio, np.zeros(len(mz))])))
    owner, columns = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    mz, noise, baseline = columns
    is_valid = (noise >= _MINIMUM_NOISE) & (noise <= MAXIMUM_INTENSITY) & (np.abs(baseline) <= MAXIMUM_INTENSITY)
    is_valid &= (mz > 0) & (mz <= MAXIMUM_MZ)
    owner, columns = owner[is_valid], columns[:, is_valid]
    if ((owner[1:] < owner[:-1]) | ((owner[1:] == owner[:-1]) & (columns[0, 1:] < columns[0, :-1]))).any():
        columns = columns[:, np.lexsort((columns[0], owner))]
    return NoiseSamples(segment_offsets(np.bincount(owner, minlength=len(rows))), *columns)


def noise_numbers(arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> int:
    """Return an upper limit of the number of values that `noise_samples` would unpack for these arguments."""
    return sum(arrays[term].take(rows[has]).n_numbers for has, terms in _forms(arrays, rows) for term in terms)


def _forms(arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> list[tuple[NDArray[np.bool_], tuple[int, ...]]]:
    """Return, for each of three notations of noise, a mask of the spectra with this notation, (n,), and the accessions of its arrays.

    The notations are: noise values with a baseline, noise values without a baseline, and signal-to-noise ratios of the peaks.
    """
    has = {term: arrays[term].start[rows] >= 0 for term in NOISE_TERMS}
    sampled = has[_AT] & has[_NOISE]
    return [
        (sampled & has[_BASELINE], (_AT, _NOISE, _BASELINE)),
        (sampled & ~has[_BASELINE], (_AT, _NOISE)),
        (has[_RATIO] & ~sampled, (_MZ, _INTENSITY, _RATIO)),
    ]


def _decode_together(
    text: NDArray[np.uint8], arrays: Mapping[int, Arrays], rows: NDArray[np.int64], has: NDArray[np.bool_], terms: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Decode several arrays of the spectra that have all these arrays.

    Spectra with an invalid array, or with arrays of different lengths, are omitted.

    Returns
    -------
    owner : ndarray of int64, shape (numbers,)
        Index in `rows` of the spectrum of each number.
    numbers : ndarray of float64, shape (terms, numbers)
        Values of each array.
    """
    chosen = np.flatnonzero(has)
    decoded = [decode_arrays(text, arrays[term].take(rows[chosen])) for term in terms]
    counts = np.stack([np.diff(offsets) for _, offsets, _ in decoded])
    fits = (counts == counts[0]).all(axis=0)
    return np.repeat(chosen[fits], counts[0, fits]), np.stack(
        [values[np.repeat(fits, count)] for (values, _, _), count in zip(decoded, counts, strict=True)]
    )


def signal_to_noise(
    samples: NoiseSamples, owner: NDArray[np.int64], mz: NDArray[np.float64], intensity: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the signal-to-noise ratio of each peak: its height above the baseline divided by the noise.

    Noise and baseline are interpolated between samples, and constant before the first and after the last.

    Parameters
    ----------
    samples : NoiseSamples
        Noise of the spectra.
    owner : ndarray of int64, shape (peaks,)
        Index of the spectrum of each peak.
    mz, intensity : ndarray, shape (peaks,)
        m/z (thomson) and intensity of each peak.

    Returns
    -------
    ndarray of float64, shape (peaks,)
        Ratios; NaN if the spectrum has no noise.
    """
    begin, end = samples.offsets[owner], samples.offsets[owner + 1]
    ratio = np.full(len(mz), np.nan)
    with_noise = np.flatnonzero(end > begin)
    if not len(with_noise):
        return ratio
    at = np.clip(mz[with_noise], samples.mz[begin[with_noise]], samples.mz[end[with_noise] - 1]) + owner[with_noise] * _SPECTRUM_APART
    positions = samples.mz + np.repeat(np.arange(len(samples.offsets) - 1), np.diff(samples.offsets)) * _SPECTRUM_APART
    noise, baseline = np.interp(at, positions, samples.noise), np.interp(at, positions, samples.baseline)
    ratio[with_noise] = (intensity[with_noise] - baseline) / noise
    return ratio


@dataclass(frozen=True)
class ReporterRegions:
    """Fragment spectra (n) of a file, with their peaks in an m/z range, in compressed rows.

    Attributes
    ----------
    index : ndarray of int64, shape (n,)
        Position of each spectrum in the file, counted over all MS levels, ascending.
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, NaN if unknown.
    precursor_mz, isolation_width : ndarray of float64, shape (n,)
        m/z of the precursors and widths of the isolation windows in thomson; widths are NaN if unknown.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    mz : ndarray of float64, shape (peaks,)
        m/z in thomson, ascending within a spectrum.
    intensity : ndarray of float32, shape (peaks,)
        Intensities, positive.
    signal_to_noise : ndarray of float64, shape (peaks,)
        Signal-to-noise ratios, NaN if the file has no noise.
    identifier : list of str
        Names of the spectra.
    origins : list of Origin
        Precursor spectra of MS3 spectra, if the format contains them; otherwise empty.
    n_profiles : int
        Number of profile spectra that were centroided.
    n_deeper : int
        Number of MS3 spectra in the file, if the format contains MS levels.
    """

    index: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    isolation_width: NDArray[np.float64]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    signal_to_noise: NDArray[np.float64]
    identifier: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    n_profiles: int = 0
    n_deeper: int = 0

    def __len__(self) -> int:
        return len(self.index)


def read_reporter_regions(path: str | Path, low: float, high: float, progress: Progress | None = None, level: int = 2) -> ReporterRegions:
    """Read the peaks in an m/z range from all fragment spectra of an MS level; other peaks are not retained.

    Parameters
    ----------
    path : str or Path
        File to read.
    low, high : float
        Bounds of the m/z range (inclusive), thomson.
    progress : Progress, optional
        Progress, which is checked for cancellation.
    level : int
        MS level: 2 or 3.

    Returns
    -------
    ReporterRegions
        Spectra of the file in order.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or has no spectra of this level.
    Cancelled
        If the user cancels.
    """
    path, parts = Path(path), list[tuple[NDArray[Any], ...]]()
    identifier, origins = list[str](), list[Origin]()
    n_profiles, n_deeper = 0, 0
    for parsed in level_blocks(path, level, progress or Progress(), "Reading reporter ions", with_noise=True):
        is_within = (parsed.mz >= low) & (parsed.mz <= high)
        owner = np.repeat(np.arange(len(parsed.index)), np.diff(parsed.offsets))[is_within]
        counts = np.bincount(owner, minlength=len(parsed.index))
        columns = (parsed.index, parsed.retention_time, parsed.precursor_mz, parsed.isolation_width, counts)
        mz, intensity = parsed.mz[is_within], parsed.intensity[is_within]
        ratio = signal_to_noise(parsed.noise, owner, mz, intensity) if parsed.noise else np.full(len(mz), np.nan)
        parts.append((*columns, mz, intensity, ratio))
        identifier += parsed.identifier
        origins += parsed.origins or []
        n_profiles += parsed.n_profiles
        n_deeper += parsed.n_deeper
    if not sum(len(part[0]) for part in parts):
        remedy = "Convert the run again with its fragment spectra" if level == 2 else "Take reporter ions of MS2"
        raise InputError(path, f"has no fragment spectra (MS{level})", remedy=remedy)
    index, time, precursor, width, count, mz, intensity, ratio = (np.concatenate(column) for column in zip(*parts, strict=True))
    offsets = segment_offsets(count)
    return ReporterRegions(index, time, precursor, width, offsets, mz, intensity, ratio, identifier, origins, n_profiles, n_deeper)
