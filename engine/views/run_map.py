"""The spectra of a run as points of retention time and m/z."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.row_numbers import SpectrumRow

__all__ = ["EXPLAINED", "IDENTIFIED", "STATUS_NAMES", "UNEXPLAINED", "MapPoints"]

UNEXPLAINED, IDENTIFIED, EXPLAINED = 0, 1, 2
STATUS_NAMES = ("unexplained", "identified", "explained")
"""By the numbers of the table."""


@dataclass(frozen=True)
class MapPoints:
    """Spectra in the order of their times; n of them.

    Attributes
    ----------
    spectrum : (n,) int64, rows of the table of spectra.
    x : (n,) float32, ascending: minutes, or the place in the order of the files where there are no times.
    mz : (n,) float32. status : (n,) uint8.
    has_times : whether x are times. n_missing : spectra that have no place, for want of a time or an m/z.
    scan : (n,) int64, numbers of the scans in their files, -1 where there is none.
    file : (n,) int32, places in `files`, the names of several files; None where there is but one.
    """

    spectrum: NDArray[np.int64]
    x: NDArray[np.float32]
    mz: NDArray[np.float32]
    status: NDArray[np.uint8]
    has_times: bool
    n_missing: int
    scan: NDArray[np.int64]
    file: NDArray[np.int32] | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: Any) -> MapPoints:
        """Return the points of a table of spectra with their states (Arrow)."""
        spectrum = table["spectrum"].to_numpy().astype(np.int64)
        time = table["retention_time"].to_numpy().astype(np.float64) / 60
        mz = table["precursor_mz"].to_numpy().astype(np.float64)
        status = np.minimum(table["status"].to_numpy().astype(np.uint8), EXPLAINED)
        has_times = bool(np.isfinite(time).any())
        x = time if has_times else np.arange(len(spectrum), dtype=np.float64)
        kept = np.flatnonzero(np.isfinite(x) & np.isfinite(mz))
        kept = kept[np.argsort(x[kept], kind="stable")]
        scan = table["scan"].fill_null(-1).to_numpy().astype(np.int64)[kept]
        file, files = _files_of(table, kept)
        places = x[kept].astype(np.float32), mz[kept].astype(np.float32)
        found = cls(spectrum[kept], *places, status[kept], has_times, len(spectrum) - len(kept), scan, file, files)
        # Divided now, in the thread that reads the table.
        _ = found.by_status
        return found

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def by_status(self) -> tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]:
        """x and m/z of the points of each status."""
        return tuple((self.x[is_one], self.mz[is_one]) for is_one in (self.status == one for one in range(len(STATUS_NAMES))))

    @property
    def counts(self) -> tuple[int, ...]:
        """Points of each status."""
        return tuple(np.bincount(self.status, minlength=len(STATUS_NAMES)).tolist())

    @property
    def whole(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Ranges of times and of m/z that hold all points, with a margin."""
        return _with_margin(self.x), _with_margin(self.mz)

    def name_of(self, point: int) -> str:
        """What the spectrum of a point is called: its scan, and its file where there are several; empty where neither is known."""
        scan = int(self.scan[point])
        of_file = "" if self.file is None else self.files[int(self.file[point])]
        return " of ".join(part for part in (f"scan {scan}" if scan >= 0 else "", of_file) if part)

    def point_of(self, spectrum: SpectrumRow) -> int | None:
        """The point of a row of the table of spectra, None where it has no place."""
        found = np.flatnonzero(self.spectrum == spectrum)
        return int(found[0]) if len(found) else None


def _files_of(table: Any, kept: NDArray[np.int64]) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    encoded = table["spectrum_file"].fill_null("").combine_chunks().dictionary_encode()
    files = tuple(encoded.dictionary.to_pylist())
    return (encoded.indices.to_numpy().astype(np.int32)[kept], files) if len(files) > 1 else (None, files)


def _with_margin(values: NDArray[np.float32]) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = 0.02 * (high - low) or 0.5
    return low - margin, high + margin
