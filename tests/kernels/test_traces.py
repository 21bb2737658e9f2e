"""Ion traces of the CPU and of the kernel (through tests/shim), against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu import traces as cpu
from proteoscope.kernels.cpu.elution import AGREEMENT, AREA, N_VALUES, POINTS, TIME, WIDTH, ElutionRules, Traces, measure_elution
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import traces as cuda
from proteoscope.kernels.device import DeviceError
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.trace_inputs import random_traces


def by_definition(peaks, windows, cells):
    expected = cells.copy()
    for low, high, first, last, cell in zip(*windows, strict=True):
        for mz, intensity, spectrum in zip(*peaks, strict=True):
            if low <= mz <= high and first <= spectrum < last:
                expected[cell + spectrum - first] = max(expected[cell + spectrum - first], intensity)
    return expected


@pytest.mark.parametrize("seed", [1, 2])
def test_extract_traces_equals_definition_with_filled_output(seed):
    peaks, windows, n = random_traces(seed)
    cells = np.random.default_rng(seed).lognormal(3, 3, n).astype(np.float32)
    expected = by_definition(peaks, windows, cells)
    assert (expected != cells).sum() > 100
    assert list(cpu.extract_traces(Processor(2), peaks, windows, cells))[-1] == len(windows.low)
    np.testing.assert_array_equal(cells, expected)


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
@pytest.mark.parametrize("descending", [False, True])
def test_extract_traces_on_gpu_equals_cpu(descending, monkeypatch):
    peaks, windows, n = random_traces(3)
    actual = [np.zeros(n, np.float32) for _ in range(3)]
    list(cpu.extract_traces(Processor(1), peaks, windows, actual[0]))
    list(cuda.extract_traces(ShimGpu(descending=descending), peaks, windows, actual[1]))
    monkeypatch.setattr(cuda, "_WINDOWS_OF_ROUND", 37)
    assert list(cuda.extract_traces(ShimGpu(), peaks, windows, actual[2]))[-1] == len(windows.low)
    assert actual[0].any()
    assert actual[0].tobytes() == actual[1].tobytes() == actual[2].tobytes()


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
def test_extract_traces_on_a_lost_gpu_changes_nothing():
    peaks, windows, n = random_traces(4)
    cells = np.full(n, 2.0, np.float32)
    with pytest.raises(DeviceError):
        list(cuda.extract_traces(ShimGpu(failing_launch=0), peaks, windows, cells))
    assert (cells == 2.0).all()


def measure_ion(rows, pattern, times, anchors, *, reach=0.0, gap=2):
    """Measure one ion with these isotopes."""
    cells = np.array(rows, np.float32)
    traces = Traces(cells.ravel(), np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([cells.shape[1]]), times, np.array([pattern]))
    actual = np.zeros((1, N_VALUES))
    rules = ElutionRules(gap, 0.01, 0.6)
    measure_elution(traces, np.array([0, len(anchors)]), np.array(anchors), np.full(1, reach), rules, 0, 1, actual)
    return actual[0]


def gaussian(times, apex, deviation=5.0, area=1000.0):
    return area / (deviation * np.sqrt(2 * np.pi)) * np.exp(-0.5 * ((times - apex) / deviation) ** 2)


def test_measured_gaussian_trace_has_true_area_time_and_width():
    times, pattern = np.arange(0.0, 100.0, 1.3), np.array([0.6, 0.3, 0.1])
    actual = measure_ion(pattern[:, None] * gaussian(times, 50.4), pattern, times, [45.0])
    assert actual[AREA] == pytest.approx(1000.0, rel=0.01)
    assert actual[TIME] == pytest.approx(50.4, abs=0.3)
    assert actual[WIDTH] == pytest.approx(2.3548 * 5, rel=0.1)
    assert actual[AGREEMENT] == pytest.approx(1.0, abs=1e-6)


def test_measured_trace_bridges_gaps_up_to_the_limit():
    times, pattern = np.arange(0.0, 100.0), np.array([0.7, 0.3])
    rows = pattern[:, None] * gaussian(times, 50.0)
    rows[:, 53:55] = 0
    assert measure_ion(rows, pattern, times, [48.0], gap=2)[AREA] == pytest.approx(1000.0, rel=0.02)
    assert measure_ion(rows, pattern, times, [48.0], gap=1)[AREA] < 800


def test_measured_trace_excludes_a_neighbouring_peak():
    times, pattern = np.arange(0.0, 150.0), np.array([0.7, 0.3])
    rows = pattern[:, None] * (gaussian(times, 50.0) + gaussian(times, 80.0, area=5000.0))
    assert measure_ion(rows, pattern, times, [47.0])[AREA] == pytest.approx(1000.0, rel=0.05)
    assert measure_ion(rows, pattern, times, [85.0])[AREA] == pytest.approx(5000.0, rel=0.02)
    assert measure_ion(rows, pattern, times, [60.0], reach=40.0)[TIME] == pytest.approx(80.0, abs=1.0)


def test_measured_agreement_is_low_for_another_isotope_pattern():
    times = np.arange(0.0, 60.0)
    rows = np.array([0.1, 0.9])[:, None] * gaussian(times, 30.0)
    actual = measure_ion(rows, np.array([0.7, 0.3]), times, [30.0])
    assert actual[AGREEMENT] == pytest.approx((0.1 * 0.7 + 0.9 * 0.3) / np.hypot(0.1, 0.9) / np.hypot(0.7, 0.3), abs=1e-3)
    assert actual[POINTS] > 10
    assert not measure_ion(np.zeros((2, 60)), np.array([0.7, 0.3]), times, [30.0]).any()
