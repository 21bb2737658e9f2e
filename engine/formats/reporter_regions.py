"""Reader of the peaks in the m/z range of reporter ions from all MS2 or MS3 spectra of a file, with precursors and isolation windows."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.ms1_spectra import level_blocks
from proteoscope.engine.formats.noise import signal_to_noise
from proteoscope.engine.formats.spectrum_blocks import Origin
from proteoscope.engine.jobs.progress import Progress

__all__ = ["ReporterRegions", "read_reporter_regions"]


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
