"""Read a narrow region of m/z of all fragment spectra (MS2) of a file, where reporter ions of labels lie, with what was isolated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.arrays import offsets_of
from engine.errors import InputError
from engine.formats.noise import signal_to_noise
from engine.formats.surveys import level_blocks
from engine.jobs.progress import Progress

__all__ = ["ReporterRegions", "read_reporter_regions"]


@dataclass(frozen=True)
class ReporterRegions:
    """n fragment spectra of a file, each with its peaks between two m/z (CSR).

    Attributes
    ----------
    index : (n,) int64, place in the file, ascending, counted over spectra of all levels. retention_time : (n,) float64, s, NaN unknown.
    precursor_mz, isolation_width : (n,) float64, thomson, the width NaN where unknown.
    offsets : (n + 1,) int64. mz : (peaks,) float64, ascending within a spectrum. intensity : (peaks,) float32, positive.
    signal_to_noise : (peaks,) float64, NaN where the file tells no noise.
    n_profiles : spectra that were profiles, and made centroids.
    """

    index: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    isolation_width: NDArray[np.float64]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    signal_to_noise: NDArray[np.float64]
    n_profiles: int = 0

    def __len__(self) -> int:
        return len(self.index)


def read_reporter_regions(path: str | Path, low: float, high: float, progress: Progress | None = None) -> ReporterRegions:
    """Read the peaks from `low` to `high` thomson of each fragment spectrum; memory holds these, however large the file is.

    Raises
    ------
    InputError : the file is missing, damaged or of another kind, or has no fragment spectra. Cancelled : the user asked to stop.
    """
    path, parts = Path(path), list[tuple[NDArray, ...]]()
    n_profiles = 0
    for parsed in level_blocks(path, 2, progress or Progress(), "Reading reporter ions", with_noise=True):
        is_within = (parsed.mz >= low) & (parsed.mz <= high)
        owner = np.repeat(np.arange(len(parsed.index)), np.diff(parsed.offsets))[is_within]
        counts = np.bincount(owner, minlength=len(parsed.index))
        columns = (parsed.index, parsed.retention_time, parsed.precursor_mz, parsed.isolation_width, counts)
        mz, intensity = parsed.mz[is_within], parsed.intensity[is_within]
        ratio = signal_to_noise(parsed.noise, owner, mz, intensity) if parsed.noise else np.full(len(mz), np.nan)
        parts.append((*columns, mz, intensity, ratio))
        n_profiles += parsed.n_profiles
    if not sum(len(part[0]) for part in parts):
        raise InputError(path, "has no fragment spectra (MS2)", remedy="Convert the run again with its fragment spectra")
    index, time, precursor, width, count, mz, intensity, ratio = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ReporterRegions(index, time, precursor, width, offsets_of(count), mz, intensity, ratio, n_profiles)
