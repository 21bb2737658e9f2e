"""Traces of ions in the survey spectra (MS1) of a file: cut out in one pass over the peaks, and measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.scheduler import one_line
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.spectra.spooling import release_pages
from proteoscope.kernels.cpu.elution import APEX, N_VALUES, ElutionRules, Traces, measure_elution
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError, backend_module
from proteoscope.kernels.partitions import Partition, equal_partitions
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["TraceQuery", "is_low", "measured_traces"]

_PEAKS_OF_BLOCK = 1 << 21
_CELLS_OF_PART = 1 << 26
"""256 MB."""
_LOWEST, _VALLEY = 0.15, 0.6
"""Parts of the height at which a trace ends, and of the lower of two summits below which what lies between them parts them. A Gaussian has
95 % of its area above the first, in every run alike; further down, what is little is lost in noise and what is much is not, which spoils
their ratio. Smoothed noise of a summit seldom falls below the second."""

_ABOVE_LOWEST, _LOWEST_PERCENT, _SURVEYS_LOOKED_AT = 2.0, 1.0, 200


@dataclass(frozen=True)
class TraceQuery:
    """Ions whose traces are wanted in a file, n of them.

    Attributes
    ----------
    mz : (n,) float64
        Of the monoisotopic ion.
    charge : ndarray of int64, shape (n,)
    pattern : ndarray of float64, shape (n, isotopes)
    anchor_offsets : ndarray of int64, shape (n + 1,)
    anchors : float64
        S, the times at which each is known or expected.
    reach : (n,) float64
        S, how far from these its summit may be; 0 where the way is uphill from them.
    window
        S, how far before the first and behind the last of them the trace is cut out.
    voltage
        Of FAIMS: only survey spectra at it are used; NaN: those without one.
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
        """Return how far the nearest anchor of each ion is from a time of it, (n,) s."""
        if not len(self):
            return np.zeros(0)
        apart = np.abs(self.anchors - np.repeat(times, np.diff(self.anchor_offsets)))
        return np.minimum.reduceat(apart, self.anchor_offsets[:-1])

    def part(self, first: int, last: int) -> TraceQuery:
        """Return some of the ions."""
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
    surveys: Ms1Spectra, query: TraceQuery, parameters: QuantificationParameters, resources: Resources
) -> NDArray[np.float64]:
    """Measure each ion: the columns of `proteoscope.kernels.cpu.elution`, (n, N_VALUES) float64, 0 without a signal.

    Every ion has at least one anchor. Memory is bounded by the cells of some ions and a block of peaks.

    Raises
    ------
    Cancelled
        The user cancelled.
    """
    result = np.zeros((len(query), N_VALUES))
    is_used = surveys.at_voltage(query.voltage)
    times = surveys.retention_time[is_used]
    if not len(times):
        return result
    places = np.where(is_used, np.cumsum(is_used) - 1, -1)
    for first, last in _parts(times, query):
        some = query.part(first, last)
        traces = _cut(surveys, times, places, some, parameters, resources)
        rules = ElutionRules(parameters.maximum_gap, _LOWEST, _VALLEY)
        rows = result[first:last]

        def measure(part: Partition) -> None:
            measure_elution(traces, some.anchor_offsets, some.anchors, some.reach, rules, part.first, part.last, rows)  # noqa: B023

        chunks = equal_partitions(traces.n_surveys + 1, resources.threads)
        run_on_threads(measure, chunks, resources.threads, resources.progress, steps=lambda _: 0)
    return result


def is_low(values: NDArray[np.float64], pattern: NDArray[np.float64], surveys: Ms1Spectra) -> NDArray[np.bool_]:
    """Return True for ions so low that less than the upper half of their peak is visible, which does not measure the area.

    The lowest visible intensity of a run is the first percentile of its peaks.

    Parameters
    ----------
    values : (n, N_VALUES)
        Result of `measured_traces`.
    pattern : (n, isotopes) float64
        Isotope patterns.
    """
    some = np.unique(np.linspace(0, len(surveys) - 1, _SURVEYS_LOOKED_AT).astype(np.int64)).tolist()
    seen = np.concatenate([surveys.intensity[surveys.offsets[i] : surveys.offsets[i + 1]] for i in some])
    lowest = float(np.percentile(seen, _LOWEST_PERCENT)) if len(seen) else 0.0
    return values[:, APEX] * pattern.max(axis=1) / pattern.sum(axis=1) < _ABOVE_LOWEST * lowest


def _spans(times: NDArray[np.float64], query: TraceQuery) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First survey spectrum of each ion's trace, and the one behind its last; one at least; by the times of those at the voltage."""
    starts = query.anchor_offsets[:-1]
    low = np.searchsorted(times, np.minimum.reduceat(query.anchors, starts) - query.window)
    high = np.searchsorted(times, np.maximum.reduceat(query.anchors, starts) + query.window, side="right")
    low = np.minimum(low, len(times) - 1)
    return low, np.maximum(high, low + 1)


def _parts(times: NDArray[np.float64], query: TraceQuery) -> Iterator[tuple[int, int]]:
    """Yield batches of ions whose cells fit into memory."""
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


def _cut(
    surveys: Ms1Spectra,
    times: NDArray[np.float64],
    places: NDArray[np.int64],
    query: TraceQuery,
    parameters: QuantificationParameters,
    resources: Resources,
) -> Traces:
    """Return the cells of some ions in the survey spectra at their voltage: these have `times`; `places` number them, -1 for all others."""
    n_isotopes = query.pattern.shape[1]
    low, high = _spans(times, query)
    count = high - low
    offset = run_offsets(count * n_isotopes)
    isotope = np.arange(n_isotopes)
    mz = query.mz[:, None] + isotope * (ISOTOPE_SPACING / query.charge[:, None])
    width = parameters.precursor_tolerance.width(mz)
    first, last = (np.repeat(one, n_isotopes).astype(np.int32) for one in (low, high))
    cell = (offset[:-1, None] + isotope * count[:, None]).ravel()
    windows = TraceWindows((mz - width).ravel(), (mz + width).ravel(), first, last, cell)
    cells = np.zeros(offset[-1], np.float32)
    resources.progress.stage("Following ions", len(surveys.mz))
    for begin, end in _blocks(surveys):
        used = places[begin:end][places[begin:end] >= 0]
        within = np.flatnonzero((windows.last > used[0]) & (windows.first <= used[-1])) if len(used) else used
        if len(within):
            some = TraceWindows(
                windows.low[within], windows.high[within], windows.first[within], windows.last[within], windows.cell[within]
            )
            _extract(_sorted_peaks(surveys, places, begin, end), some, cells, resources)
        resources.progress.advance(int(surveys.offsets[end] - surveys.offsets[begin]))
        resources.progress.check()
        for column in (surveys.mz, surveys.intensity):
            release_pages(column)
    return Traces(cells, offset, low.astype(np.int64), count.astype(np.int64), times, query.pattern)


def _blocks(surveys: Ms1Spectra) -> Iterator[tuple[int, int]]:
    """Yield survey spectra in blocks of some million peaks."""
    first = 0
    while first < len(surveys):
        last = int(np.searchsorted(surveys.offsets, surveys.offsets[first] + _PEAKS_OF_BLOCK, side="right")) - 1
        last = min(max(last, first + 1), len(surveys))
        yield first, last
        first = last


def _sorted_peaks(surveys: Ms1Spectra, places: NDArray[np.int64], first: int, last: int) -> SurveyPeaks:
    """Return the peaks of those of some survey spectra that have a place, in order of m/z."""
    rows = slice(surveys.offsets[first], surveys.offsets[last])
    mz, intensity = np.asarray(surveys.mz[rows]), np.asarray(surveys.intensity[rows])
    survey = np.repeat(places[first:last].astype(np.int32), np.diff(surveys.offsets[first : last + 1]))
    if len(survey) and survey.min() < 0:
        mz, intensity, survey = mz[survey >= 0], intensity[survey >= 0], survey[survey >= 0]
    order = np.argsort(mz)
    return SurveyPeaks(mz[order], intensity[order], survey[order])


def _extract(peaks: SurveyPeaks, windows: TraceWindows, cells: NDArray[np.float32], resources: Resources) -> None:
    """Raise the cells on a card, or where there is none or it fails, on the processor."""

    def extract(device: Device) -> None:
        with closing(backend_module(device, "traces").extract_traces(device, peaks, windows, cells)) as extracting:
            for _ in extracting:
                resources.progress.check()

    for card in list(resources.cards):
        try:
            extract(card)
            return
        except DeviceError as error:
            resources.progress.message(f"{one_line(error)}; ions are followed elsewhere")
            if not isinstance(error, DeviceMemoryError):
                resources.cards.remove(card)
    extract(Processor(resources.threads))
