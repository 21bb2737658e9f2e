"""Reader of MS1 spectra of mzML and mzXML files."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.reading import FileState, check_proportions, create_parser, parse_blocks
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.spectrum_blocks import ParsedBlock
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.spectra.spooling import GrowingColumn

__all__ = ["Ms1Spectra", "level_blocks", "read_ms1_spectra"]

_MAXIMUM_VOLTAGES = 32
_THREADS = 2
"""Number of reading threads, which leaves at least one CPU core to the caller."""


@dataclass(frozen=True)
class Ms1Spectra:
    """MS1 spectra (n) of a file, sorted by retention time, with their peaks in compressed rows.

    Attributes
    ----------
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, ascending.
    scan : ndarray of int64, shape (n,)
        Scan numbers, -1 if unknown.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    mz : ndarray of float64, shape (peaks,)
        m/z in thomson, ascending within a spectrum.
    intensity : ndarray of float32, shape (peaks,)
        Intensities, positive.
    n_profiles : int
        Number of profile spectra that were centroided.
    voltage : ndarray of float64, shape (n,) or (0,)
        FAIMS compensation voltages, NaN for spectra without one; empty if no spectrum has one.
    """

    retention_time: NDArray[np.float64]
    scan: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    n_profiles: int = 0
    voltage: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.scan)

    @property
    def voltages(self) -> list[float]:
        """Distinct FAIMS compensation voltages, ascending; the last is NaN if there are spectra without a voltage."""
        return np.unique(self.voltage).tolist() if len(self.voltage) else [float("nan")]

    def at_voltage(self, voltage: float) -> NDArray[np.bool_]:
        """Return True for each spectrum that was measured at a FAIMS voltage, (n,); NaN selects spectra without a voltage."""
        if not len(self.voltage):
            return np.full(len(self), np.isnan(voltage))
        is_measured: NDArray[np.bool_] = (self.voltage == voltage) | (np.isnan(self.voltage) & np.isnan(voltage))
        return is_measured

    def voltage_of(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the FAIMS voltage of the last MS1 spectrum at or before each time (seconds), (k,).

        Times before the first spectrum have the voltage of the first spectrum; the voltage is NaN for spectra without a FAIMS voltage.
        """
        if not len(self.voltage):
            return np.full(len(times), np.nan)
        return self.voltage[np.maximum(np.searchsorted(self.retention_time, times, side="right") - 1, 0)]


def read_ms1_spectra(path: str | Path, *, progress: Progress | None = None, spool: Path | None = None) -> Ms1Spectra:
    """Read the MS1 spectra of an mzML or mzXML file.

    Profile spectra are centroided; invalid spectra and spectra without a retention time are skipped.

    Parameters
    ----------
    path : str or Path
        File to read.
    progress : Progress, optional
        Progress, which receives the number of bytes read and is checked for cancellation several times a second.
    spool : Path, optional
        Folder for unnamed temporary files, which store peaks of more than several hundred megabytes (memory-mapped).

    Returns
    -------
    Ms1Spectra
        Spectra sorted by retention time.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or has no MS1 spectra.
    Cancelled
        If the user cancels.
    """
    progress, path = progress or Progress(), Path(path)
    mz, intensity = GrowingColumn(np.float64, spool), GrowingColumn(np.float32, spool)
    times: list[NDArray[np.float64]] = []
    scans: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.int64]] = []
    voltages: list[NDArray[np.float64]] = []
    n_profiles = 0
    for parsed in level_blocks(path, 1, progress, "Reading MS1 spectra"):
        mz.append(parsed.mz)
        intensity.append(parsed.intensity)
        times.append(parsed.retention_time)
        scans.append(parsed.scan)
        voltages.append(parsed.voltage)
        counts.append(np.diff(parsed.offsets))
        n_profiles += parsed.n_profiles
    if not times:
        raise InputError(path, "is empty", remedy="Copy or convert it again")
    voltage = np.concatenate(voltages)
    _check_voltages(path, voltage)
    time, scan, count = np.concatenate(times), np.concatenate(scans), np.concatenate(counts)
    spectra = _in_order(time, scan, count, mz.finish(), intensity.finish(), voltage)
    if not len(spectra):
        raise InputError(path, "has no MS1 spectra with retention times", remedy="Convert the run again with its MS1 spectra")
    return replace(spectra, n_profiles=n_profiles)


def level_blocks(path: Path, level: int, progress: Progress, stage: str, *, with_noise: bool = False) -> Iterator[ParsedBlock]:
    """Yield the spectra of one MS level of a file, block by block.

    Parameters
    ----------
    path : Path
        File to read.
    level : int
        MS level: 1, 2 or 3.
    progress : Progress
        Progress, which is checked for cancellation.
    stage : str
        Title of the progress stage.
    with_noise : bool
        True to read the noise of the spectra too, if the format has it (mzML).

    Yields
    ------
    ParsedBlock
        Spectra of a block; their `index` counts all spectra of the file from its beginning.

    Raises
    ------
    InputError
        If the file is missing, damaged, in another format, or in a format without spectra of this level.
    Cancelled
        If the user cancels.
    """
    with ByteSource(path) as source:
        parser = create_parser(source, takes_negative=True)
        if hasattr(parser, "level"):
            parser.level = level
        elif level != 2:
            raise InputError(path, f"is a peak list, which does not contain MS{level} spectra", remedy="Give the run as mzML")
        if hasattr(parser, "reads_noise"):
            parser.reads_noise = with_noise
        progress.stage(stage, source.size)
        state = FileState(path)
        pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="survey-reader")
        try:
            for parsed, consumed in parse_blocks(source, parser, pool, _THREADS, progress, "auto"):
                issue = next((issue for issue in parsed.issues if issue.is_fatal), None)
                if issue is not None:
                    raise InputError(path, issue.reason, place=issue.spectrum, remedy=issue.remedy)
                parsed.index += state.n_spectra
                state.n_spectra += parsed.n_spectra
                state.n_peaks_read += parsed.n_peaks_read
                state.n_noise_read += parsed.n_noise_read
                check_proportions(state, source.size)
                yield parsed
                progress.advance(consumed)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _in_order(
    time: NDArray[np.float64],
    scan: NDArray[np.int64],
    count: NDArray[np.int64],
    mz: NDArray[np.float64],
    intensity: NDArray[np.float32],
    voltage: NDArray[np.float64],
) -> Ms1Spectra:
    """Return the spectra that have a retention time, sorted by retention time."""
    offsets = segment_offsets(count)
    order = np.argsort(time, kind="stable")
    order = order[np.isfinite(time[order])]
    if not np.array_equal(order, np.arange(len(time))):
        index = np.concatenate([np.empty(0, np.int64), *(np.arange(offsets[i], offsets[i + 1]) for i in order.tolist())])
        mz, intensity = mz[index], intensity[index]
        offsets = segment_offsets(count[order])
    voltage = voltage[order] if np.isfinite(voltage[order]).any() else voltage[:0]
    return Ms1Spectra(time[order], scan[order].astype(np.int64), offsets, mz, intensity, voltage=voltage)


def _check_voltages(path: Path, voltage: NDArray[np.float64]) -> None:
    """Raise an `InputError` if a file has more FAIMS voltages than an instrument uses."""
    n_voltages = len(np.unique(voltage[np.isfinite(voltage)]))
    if n_voltages > _MAXIMUM_VOLTAGES:
        raise InputError(
            path,
            f"has MS1 spectra at {n_voltages:,} FAIMS compensation voltages; at most {_MAXIMUM_VOLTAGES} are expected",
            remedy="Convert the run again, or without its compensation voltages",
        )
