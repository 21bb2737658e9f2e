"""Extraction of ion traces on a GPU; counterpart of `proteoscope.kernels.cpu.traces`, with the kernel of traces.cu."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["extract_traces"]

_FILE = "traces.cu"
_THREADS, _LANES = 256, 32
_WINDOWS_OF_ROUND = 1 << 20
_PEAKS, _WINDOWS = (np.dtype([(name, np.uint64) for name in kind._fields] + [("n", np.int64)]) for kind in (SurveyPeaks, TraceWindows))
"""Layouts of the structs Peaks and Windows in traces.cu."""


def extract_traces(device: Gpu, peaks: SurveyPeaks, windows: TraceWindows, cells: NDArray[np.float32]) -> Generator[int, None, None]:
    """Extract traces on a GPU; see `proteoscope.kernels.cpu.traces.extract_traces`."""
    gpu, stream, n = device, device.stream(), len(windows.low)
    result = cells.copy()
    device_cells = gpu.buffer(result.nbytes)
    inputs = sent(gpu, {**peaks._asdict(), **windows._asdict()}, stream)
    gpu.upload(device_cells, result, stream)
    of_peaks = struct(gpu, _PEAKS, {name: inputs[name] for name in peaks._fields} | {"n": len(peaks.mz)})
    for first in range(0, n, _WINDOWS_OF_ROUND):
        some = min(n - first, _WINDOWS_OF_ROUND)
        part = {name: getattr(windows, name)[first : first + some] for name in windows._fields}
        rows = inputs if some == n else sent(gpu, part, stream)
        of_windows = struct(gpu, _WINDOWS, {name: rows[name] for name in windows._fields} | {"n": some})
        blocks = -(-some * _LANES // _THREADS)
        gpu.launch(_FILE, "cut_windows", blocks, _THREADS, (of_peaks, of_windows, device_cells), stream)
        gpu.wait(stream)
        yield first + some
    gpu.download(result, device_cells, stream)
    gpu.wait(stream)
    cells[:] = result
