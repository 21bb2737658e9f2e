"""Extraction of ion traces on CPU threads; counterpart of `proteoscope.kernels.cuda.traces`."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["extract_traces"]

_WINDOWS_OF_PARTITION = 1 << 14
"""Number of windows in a partition, which take a thread some milliseconds if each window has a few hundred peaks."""


def extract_traces(device: Processor, peaks: SurveyPeaks, windows: TraceWindows, cells: NDArray[np.float32]) -> Generator[int, None, None]:
    """Set each cell to the maximum of its value and the most intense peak of its MS1 spectrum within the m/z of its window.

    Peaks are given in blocks, which may divide MS1 spectra, with one call per block; each cell retains the maximum over all blocks. The
    maximum does not depend on the order, so that all devices give the same bytes.

    Parameters
    ----------
    cells : (cells,) float32
        Intensities, initially 0; updated. Windows have disjoint ranges of cells.

    Yields
    ------
    int
        Number of finished windows, a few times a second.

    Raises
    ------
    DeviceError
        If the device fails or lacks memory for peaks and cells; `cells` is unchanged.
    """

    def cut(first: int, last: int, stop: StopFlag) -> None:
        cut_windows(peaks, windows, first, last, stop, cells)

    n = len(windows.low)
    chunks = [Partition(first, min(n, first + _WINDOWS_OF_PARTITION), 1.0) for first in range(0, n, _WINDOWS_OF_PARTITION)]
    yield from device.run(cut, chunks, 0)


@njit(nogil=True, cache=True)
def cut_windows(peaks, windows, first, last, stop, cells):
    """Extract the traces of the windows `first:last` (see `extract_traces`); a non-zero `stop` (1,) uint8 ends the call."""
    for w in range(first, last):
        if stop[0]:
            return
        begin, end, shift = windows.first[w], windows.last[w], windows.cell[w] - windows.first[w]
        i = np.searchsorted(peaks.mz, windows.low[w])
        while i < len(peaks.mz) and peaks.mz[i] <= windows.high[w]:
            survey = peaks.survey[i]
            if begin <= survey < end and peaks.intensity[i] > cells[shift + survey]:
                cells[shift + survey] = peaks.intensity[i]
            i += 1
