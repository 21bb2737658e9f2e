"""Noise that a run tells of its fragment spectra: what a signal-to-noise ratio is made of.

mzML has it in one of two forms: the ratio of each peak (``signal to noise array``, MS:1000517), or noise and baseline at some m/z of a
spectrum (``sampled noise m/z array``, MS:1002743, ``… intensity array``, MS:1002744, ``… baseline array``, MS:1002745), as Orbitraps
record them. Both become noise at some m/z here, between which it is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.formats.binary_arrays import Arrays, decode_arrays
from proteoscope.engine.formats.spectrum_blocks import MAXIMUM_INTENSITY, MAXIMUM_MZ, NoiseSamples

__all__ = ["NOISE_TERMS", "noise_numbers", "noise_samples", "signal_to_noise"]

_MZ, _INTENSITY, _RATIO, _AT, _NOISE, _BASELINE = NOISE_TERMS = (1000514, 1000515, 1000517, 1002743, 1002744, 1002745)
"""Terms of the arrays that `noise_samples` takes."""
_SPECTRUM_APART = 1e6
"""Further than any m/z: spectra stand one behind the other on one axis."""
_LEAST_NOISE = 1e-30
"""What is less is no noise that anything was measured above."""


def noise_samples(text: NDArray[np.uint8], arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> NoiseSamples:
    """The noise of some spectra of a block; a spectrum that tells none, or whose arrays are broken or do not fit together, has no samples.

    Parameters
    ----------
    text : (bytes,) uint8. arrays : by `NOISE_TERMS`, one of each spectrum of the block. rows : (n,) int64, of the spectra.
    """
    whole, without, ratios = (_side_by_side(text, arrays, rows, *one) for one in _forms(arrays, rows))
    owner, (mz, noise) = without
    parts = [whole, (owner, np.stack([mz, noise, np.zeros(len(mz))]))]
    owner, (mz, height, ratio) = ratios
    with np.errstate(all="ignore"):
        parts.append((owner, np.stack([mz, height / ratio, np.zeros(len(mz))])))
    owner, columns = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    mz, noise, baseline = columns
    sound = (noise >= _LEAST_NOISE) & (noise <= MAXIMUM_INTENSITY) & (np.abs(baseline) <= MAXIMUM_INTENSITY)
    sound &= (mz > 0) & (mz <= MAXIMUM_MZ)
    owner, columns = owner[sound], columns[:, sound]
    if ((owner[1:] < owner[:-1]) | ((owner[1:] == owner[:-1]) & (columns[0, 1:] < columns[0, :-1]))).any():
        columns = columns[:, np.lexsort((columns[0], owner))]
    return NoiseSamples(offsets_of(np.bincount(owner, minlength=len(rows))), *columns)


def noise_numbers(arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> int:
    """How many numbers `noise_samples` would unpack, at most."""
    return sum(arrays[term].take(rows[has]).n_numbers for has, terms in _forms(arrays, rows) for term in terms)


def _forms(arrays: Mapping[int, Arrays], rows: NDArray[np.int64]) -> list[tuple[NDArray[np.bool_], tuple[int, ...]]]:
    """Noise with a baseline, without, and as ratios: which of the spectra tell it so, (n,), and in which arrays."""
    has = {term: arrays[term].start[rows] >= 0 for term in NOISE_TERMS}
    sampled = has[_AT] & has[_NOISE]
    return [
        (sampled & has[_BASELINE], (_AT, _NOISE, _BASELINE)),
        (sampled & ~has[_BASELINE], (_AT, _NOISE)),
        (has[_RATIO] & ~sampled, (_MZ, _INTENSITY, _RATIO)),
    ]


def _side_by_side(
    text: NDArray[np.uint8], arrays: Mapping[int, Arrays], rows: NDArray[np.int64], has: NDArray[np.bool_], terms: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The numbers of some arrays of the spectra that have them, (terms, numbers), and the spectrum of each number, counted among `rows`.

    Spectra of whose arrays one is broken or longer than another are left out.
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
    """Height above the baseline over the noise at the m/z of each peak, (peaks,) float64; NaN where the spectrum tells no noise.

    Between two samples noise and baseline are interpolated; before the first and behind the last they stay as there.

    Parameters
    ----------
    owner : (peaks,) int64, the spectrum of each. mz, intensity : of the peaks.
    """
    begin, end = samples.offsets[owner], samples.offsets[owner + 1]
    found = np.full(len(mz), np.nan)
    told = np.flatnonzero(end > begin)
    if not len(told):
        return found
    own = owner[told]
    at = np.clip(mz[told], samples.mz[begin[told]], samples.mz[end[told] - 1]) + own * _SPECTRUM_APART
    places = samples.mz + np.repeat(np.arange(len(samples.offsets) - 1), np.diff(samples.offsets)) * _SPECTRUM_APART
    noise, baseline = np.interp(at, places, samples.noise), np.interp(at, places, samples.baseline)
    found[told] = (intensity[told] - baseline) / noise
    return found
