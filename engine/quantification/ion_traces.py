"""Extraction of the traces of ions from the MS1 spectra of a file, in one pass over the peaks, and measurement of the traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.execution.scheduler import one_line
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.spectra.spooling import release_pages
from proteoscope.kernels.cpu.elution import APEX, BEGIN, END, N_VALUES, ElutionRules, Traces, measure_elution, measure_mass_errors
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError, Partition, backend_module, equal_partitions
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["TraceQuery", "is_low", "mass_errors", "measured_traces"]

_PEAKS_OF_BLOCK = 1 << 21
_CELLS_OF_PART = 1 << 26
"""Maximum number of cells (ion, isotope and spectrum) of a batch of ions, 256 MB."""
_LOWEST, _VALLEY = 0.15, 0.6
"""Fraction of the apex height at which a trace ends, and fraction of the lower of two summits below which a valley separates them.

The first fraction retains 95 % of the area of a Gaussian peak. With a lower fraction, noise reduces small areas but not large ones, which
distorts their ratio. Smoothed noise within a peak is seldom below the second fraction.
"""

_ABOVE_LOWEST, _LOWEST_PERCENT, _SAMPLED_SPECTRA = 2.0, 1.0, 200


@dataclass(frozen=True)
class TraceQuery:
    """Ions (n) whose traces are extracted from a file.

    Attributes
    ----------
    mz : ndarray of float64, shape (n,)
        m/z of the monoisotopic ion, Th.
    charge : ndarray of int64, shape (n,)
        Charge of each ion.
    pattern : ndarray of float64, shape (n, isotopes)
        Fraction of the ion in each isotope peak.
    anchor_offsets : ndarray of int64, shape (n + 1,)
        Start of each ion in `anchors`, followed by the length of `anchors`.
    anchors : ndarray of float64
        Retention times at which each ion was identified or is expected (anchors), s.
    reach : ndarray of float64, shape (n,)
        Maximum distance of the apex from the anchors, s; with 0, the apex is the summit above the anchors.
    window : float
        Time range of the trace before the first and after the last anchor, s.
    voltage : float
        FAIMS compensation voltage of the MS1 spectra; NaN for spectra without one.
    """

    mz: NDArray[np.float64]
    charge: NDArray[np.int64]
    pattern: NDArray[np.float64]
    anchor_offsets: NDArray[np.int64]
    anchors: NDArray[np.float64]
    reach: NDArray[np.float64]
    window: float
    voltage: float = float("nan")

    def __len__(self) -> int:
        return len(self.mz)

    def nearest_anchor(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance of the time of each ion, in `times`, from the nearest anchor of the ion, (n,), s."""
        if not len(self):
            return np.zeros(0)
        apart = np.abs(self.anchors - np.repeat(times, np.diff(self.anchor_offsets)))
        return np.minimum.reduceat(apart, self.anchor_offsets[:-1])

    def part(self, first: int, last: int) -> TraceQuery:
        """Return the ions `first:last`."""
        low, high = self.anchor_offsets[first], self.anchor_offsets[last]
        rows = slice(first, last)
        return TraceQuery(
            self.mz[rows],
            self.charge[rows],
            self.pattern[rows],
            self.anchor_offsets[first : last + 1] - low,
            self.anchors[low:high],
            self.reach[rows],
            self.window,
            self.voltage,
        )


def measured_traces(
    ms1_spectra: Ms1Spectra, query: TraceQuery, parameters: QuantificationParameters, resources: Resources
) -> NDArray[np.float64]:
    """Measure the trace of each ion; every ion needs at least one anchor.

    Memory is limited by processing batches of ions and blocks of peaks.

    Parameters
    ----------
    ms1_spectra : Ms1Spectra
        MS1 spectra of the file.
    query : TraceQuery
        The n ions.
    parameters : QuantificationParameters
        Parameters of the quantification.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    ndarray of float64, shape (n, N_VALUES)
        Columns of `proteoscope.kernels.cpu.elution`; 0 without a signal.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    result = np.zeros((len(query), N_VALUES))
    is_used = ms1_spectra.at_voltage(query.voltage)
    times = ms1_spectra.retention_time[is_used]
    if not len(times):
        return result
    positions = np.where(is_used, np.cumsum(is_used) - 1, -1)
    for first, last in _ion_ranges(times, query):
        some = query.part(first, last)
        traces = _cut_cells(ms1_spectra, times, positions, some, parameters, resources)
        rules = ElutionRules(parameters.maximum_gap, _LOWEST, _VALLEY)
        rows = result[first:last]

        def measure(part: Partition) -> None:
            measure_elution(traces, some.anchor_offsets, some.anchors, some.reach, rules, part.first, part.last, rows)  # noqa: B023

        chunks = equal_partitions(traces.n_surveys + 1, resources.threads)
        run_on_threads(measure, chunks, resources.threads, resources.progress, steps=lambda _: 0)
    return result


def mass_errors(
    ms1_spectra: Ms1Spectra,
    mz: NDArray[np.float64],
    charge: NDArray[np.int64],
    pattern: NDArray[np.float64],
    values: NDArray[np.float64],
    voltage: float,
    parameters: QuantificationParameters,
) -> NDArray[np.float64]:
    """Return the mean relative m/z error of the main isotope of each trace at a FAIMS voltage, (n,); NaN without a peak.

    Parameters
    ----------
    ms1_spectra : Ms1Spectra
        MS1 spectra of the file.
    mz, charge, pattern
        See `TraceQuery`.
    values : ndarray of float64, shape (n, N_VALUES)
        Result of `measured_traces`.
    voltage : float
        FAIMS voltage; NaN for spectra without one.
    parameters : QuantificationParameters
        Parameters of the quantification.
    """
    spectra = np.flatnonzero(ms1_spectra.at_voltage(voltage))
    target = mz + pattern.argmax(axis=1) * (ISOTOPE_SPACING / charge)
    result = np.empty(len(mz))
    measure_mass_errors(
        ms1_spectra.mz,
        ms1_spectra.intensity,
        ms1_spectra.offsets,
        spectra,
        ms1_spectra.retention_time[spectra],
        target,
        parameters.precursor_tolerance.width(target),
        *(np.ascontiguousarray(values[:, column]) for column in (BEGIN, END)),
        result,
    )
    for column in (ms1_spectra.mz, ms1_spectra.intensity):
        release_pages(column)
    return result


def is_low(values: NDArray[np.float64], pattern: NDArray[np.float64], ms1_spectra: Ms1Spectra) -> NDArray[np.bool_]:
    """Return True for ions whose peak is lower than twice the detection limit, so that its area cannot be measured, (n,).

    The detection limit of a file is the first percentile of the peak intensities in a sample of its MS1 spectra.

    Parameters
    ----------
    values : ndarray of float64, shape (n, N_VALUES)
        Result of `measured_traces`.
    pattern : ndarray of float64, shape (n, isotopes)
        Isotope patterns.
    ms1_spectra : Ms1Spectra
        MS1 spectra of the file.
    """
    some = np.unique(np.linspace(0, len(ms1_spectra) - 1, _SAMPLED_SPECTRA).astype(np.int64)).tolist()
    seen = np.concatenate([ms1_spectra.intensity[ms1_spectra.offsets[i] : ms1_spectra.offsets[i + 1]] for i in some])
    lowest = float(np.percentile(seen, _LOWEST_PERCENT)) if len(seen) else 0.0
    is_low: NDArray[np.bool_] = values[:, APEX] * pattern.max(axis=1) / pattern.sum(axis=1) < _ABOVE_LOWEST * lowest
    return is_low


def _spans(times: NDArray[np.float64], query: TraceQuery) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the range of MS1 spectra of each ion's trace: start and end (exclusive), at least one spectrum."""
    starts = query.anchor_offsets[:-1]
    low = np.searchsorted(times, np.minimum.reduceat(query.anchors, starts) - query.window)
    high = np.searchsorted(times, np.maximum.reduceat(query.anchors, starts) + query.window, side="right")
    low = np.minimum(low, len(times) - 1)
    return low, np.maximum(high, low + 1)


def _ion_ranges(times: NDArray[np.float64], query: TraceQuery) -> Iterator[tuple[int, int]]:
    """Yield ranges of ions whose cells fit the memory limit."""
    if not len(query):
        return
    low, high = _spans(times, query)
    ends = np.cumsum((high - low) * query.pattern.shape[1])
    first = 0
    while first < len(query):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _CELLS_OF_PART, side="right")))
        yield first, last
        first = last


def _cut_cells(
    ms1_spectra: Ms1Spectra,
    times: NDArray[np.float64],
    positions: NDArray[np.int64],
    query: TraceQuery,
    parameters: QuantificationParameters,
    resources: Resources,
) -> Traces:
    """Return the traces of ions in the MS1 spectra at their FAIMS voltage.

    `times` are the retention times of these spectra; `positions` is the index of each MS1 spectrum of the file among them, or -1.
    """
    n_isotopes = query.pattern.shape[1]
    low, high = _spans(times, query)
    count = high - low
    offset = segment_offsets(count * n_isotopes)
    isotope = np.arange(n_isotopes)
    mz = query.mz[:, None] + isotope * (ISOTOPE_SPACING / query.charge[:, None])
    width = parameters.precursor_tolerance.width(mz)
    first, last = (np.repeat(bounds, n_isotopes).astype(np.int32) for bounds in (low, high))
    cell = (offset[:-1, None] + isotope * count[:, None]).ravel()
    windows = TraceWindows((mz - width).ravel(), (mz + width).ravel(), first, last, cell)
    cells = np.zeros(offset[-1], np.float32)
    resources.progress.stage("Following ions", len(ms1_spectra.mz))
    for begin, end in _blocks(ms1_spectra):
        used = positions[begin:end][positions[begin:end] >= 0]
        within = np.flatnonzero((windows.last > used[0]) & (windows.first <= used[-1])) if len(used) else used
        if len(within):
            some = TraceWindows(
                windows.low[within], windows.high[within], windows.first[within], windows.last[within], windows.cell[within]
            )
            _extract(_sorted_peaks(ms1_spectra, positions, begin, end), some, cells, resources)
        resources.progress.advance(int(ms1_spectra.offsets[end] - ms1_spectra.offsets[begin]))
        resources.progress.check()
        for column in (ms1_spectra.mz, ms1_spectra.intensity):
            release_pages(column)
    return Traces(cells, offset, low.astype(np.int64), count.astype(np.int64), times, query.pattern)


def _blocks(ms1_spectra: Ms1Spectra) -> Iterator[tuple[int, int]]:
    """Yield ranges of MS1 spectra with about two million peaks each."""
    first = 0
    while first < len(ms1_spectra):
        last = int(np.searchsorted(ms1_spectra.offsets, ms1_spectra.offsets[first] + _PEAKS_OF_BLOCK, side="right")) - 1
        last = min(max(last, first + 1), len(ms1_spectra))
        yield first, last
        first = last


def _sorted_peaks(ms1_spectra: Ms1Spectra, positions: NDArray[np.int64], first: int, last: int) -> SurveyPeaks:
    """Return the peaks of the MS1 spectra `first:last` at the FAIMS voltage, sorted by m/z."""
    rows = slice(ms1_spectra.offsets[first], ms1_spectra.offsets[last])
    mz, intensity = np.asarray(ms1_spectra.mz[rows]), np.asarray(ms1_spectra.intensity[rows])
    spectrum = np.repeat(positions[first:last].astype(np.int32), np.diff(ms1_spectra.offsets[first : last + 1]))
    if len(spectrum) and spectrum.min() < 0:
        mz, intensity, spectrum = mz[spectrum >= 0], intensity[spectrum >= 0], spectrum[spectrum >= 0]
    order = np.argsort(mz)
    return SurveyPeaks(mz[order], intensity[order], spectrum[order])


def _extract(peaks: SurveyPeaks, windows: TraceWindows, cells: NDArray[np.float32], resources: Resources) -> None:
    """Set each cell to the highest peak in its m/z window, on a GPU or, if there is none or it fails, on the CPU."""

    def extract(device: Device) -> None:
        with closing(backend_module(device, "traces").extract_traces(device, peaks, windows, cells)) as extracting:
            for _ in extracting:
                resources.progress.check()

    for gpu in list(resources.gpus):
        try:
            extract(gpu)
            return
        except DeviceError as error:
            resources.progress.message(f"{one_line(error)}; ions are traced on another device")
            if not isinstance(error, DeviceMemoryError):
                resources.gpus.remove(gpu)
    extract(Processor(resources.threads))
