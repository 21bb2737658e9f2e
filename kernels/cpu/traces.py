"""Ion traces on the CPU's threads: the counterpart of `proteoscope.kernels.cuda.traces`."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import StopFlag
from proteoscope.kernels.partitions import Partition
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["extract_traces"]

_WINDOWS_OF_PARTITION = 1 << 14
"""Some milliseconds of a thread for windows of some hundred peaks each."""


def extract_traces(device: Processor, peaks: SurveyPeaks, windows: TraceWindows, cells: NDArray[np.float32]) -> Generator[int, None, None]:
    """Raise each cell to the most intense peak of its MS1 spectrum within its window's m/z.

    Peaks are given in blocks, of whole MS1 spectra or not, one call for each; what cells have from others stays where it is more. The
    most intense of several peaks is the same in any order, so that every device gives the same bytes.

    Parameters
    ----------
    cells : (cells,) float32
        0 where nothing was found yet; windows have different ones.

    Yields the number of finished windows a few times a second.

    Raises
    ------
    DeviceError
        The device failed, or its memory does not hold peaks and cells; `cells` are as they were.
    """

    def cut(first: int, last: int, stop: StopFlag) -> None:
        cut_windows(peaks, windows, first, last, stop, cells)

    n = len(windows.low)
    chunks = [Partition(first, min(n, first + _WINDOWS_OF_PARTITION), 1.0) for first in range(0, n, _WINDOWS_OF_PARTITION)]
    yield from device.run(cut, chunks, 0)


@njit(nogil=True, cache=True)
def cut_windows(peaks, windows, first, last, stop, cells):
    """Apply `extract_traces` to the windows `first:last`; ended by `stop` (1,) uint8."""
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
