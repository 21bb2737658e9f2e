"""Preprocessing against plain Python written from its definition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from proteoscope.kernels.cpu.preprocessing import (
    TRANSFORM_LOG,
    TRANSFORM_NONE,
    TRANSFORM_RANK,
    TRANSFORM_SQUARE_ROOT,
    PreprocessingRules,
    preprocess_spectra,
)
from proteoscope.kernels.layouts import PeakArrays
from tests.shim.read_only import read_only

PROTON, SPACING = 1.00727646688, 1.0033548378
Peaks = list[tuple[float, float]]


@dataclass(frozen=True)
class Settings:
    peaks_per_window: int = 1000
    window_width: float = 100.0
    removal_width: float = 0.0
    tolerance: tuple[float, float] = (0.01, 0.0)
    deisotope: bool = False
    transform: int = TRANSFORM_NONE
    minimum_mz: float = 0.0


def run(spectra: list[Peaks], how: Settings, precursors: list[tuple[float, int]] | None = None) -> list[tuple[NDArray, NDArray, NDArray]]:
    """Return m/z, weights and correlation weights of each spectrum."""
    flat = [peak for peaks in spectra for peak in peaks]
    offsets = np.cumsum([0, *map(len, spectra)]).astype(np.int64)
    mz, intensity = np.array([peak[0] for peak in flat], np.float64), np.array([peak[1] for peak in flat], np.float32)
    precursors = precursors or [(5000.0, 0)] * len(spectra)
    count, out_mz = np.zeros(len(spectra), np.int64), np.zeros_like(mz)
    weight, correlation = np.zeros_like(intensity), np.zeros_like(intensity)
    rules = PreprocessingRules(
        how.peaks_per_window, how.window_width, how.removal_width, *how.tolerance, how.deisotope, how.transform, how.minimum_mz
    )
    precursor_mz, precursor_charge = (
        np.array([precursor[0] for precursor in precursors]),
        np.array([precursor[1] for precursor in precursors], np.int64),
    )
    peaks = PeakArrays(offsets, *read_only(mz, intensity))
    preprocess_spectra(peaks, precursor_mz, precursor_charge, 0, len(spectra), rules, count, out_mz, weight, correlation)
    slices = [slice(start, start + n) for start, n in zip(offsets, count, strict=False)]
    return [(out_mz[rows], weight[rows], correlation[rows]) for rows in slices]


def remaining_mz(peaks: Peaks, how: Settings, precursor: tuple[float, int] = (5000.0, 0)) -> list[float]:
    return run([peaks], how, [precursor])[0][0].tolist()


PEAKS = st.lists(
    st.tuples(st.integers(200, 8000).map(lambda step: step / 8), st.integers(1, 6).map(float)), max_size=60, unique_by=lambda peak: peak[0]
).map(sorted)


@settings(max_examples=150, deadline=None)
@given(PEAKS, st.integers(1, 6), st.sampled_from([25.0, 100.0, 333.0]), st.sampled_from([0.0, 150.0]))
def test_preprocessing_retains_the_highest_peaks_of_each_window(peaks: Peaks, most: int, width: float, lowest: float) -> None:
    windows: dict[int, Peaks] = {}
    for peak in peaks:
        if peak[0] >= lowest:
            windows.setdefault(int(peak[0] // width), []).append(peak)
    expected = sorted(mz for inside in windows.values() for mz, _ in sorted(inside, key=lambda peak: (-peak[1], peak[0]))[:most])
    assert remaining_mz(peaks, Settings(peaks_per_window=most, window_width=width, minimum_mz=lowest)) == expected


def test_preprocessing_removes_peaks_near_the_precursor() -> None:
    peaks = [(mz, 1.0) for mz in (498.4, 498.5, 500.0, 501.5, 501.6, 700.0)]
    assert remaining_mz(peaks, Settings(removal_width=1.5), (500.0, 1)) == [498.4, 501.6, 700.0]
    assert remaining_mz(peaks, Settings(removal_width=1.5), (500.0, 0)) == [498.4, 501.6, 700.0]
    assert len(remaining_mz(peaks, Settings(removal_width=0.0), (500.0, 1))) == 6


@pytest.mark.parametrize("charge", [2, 3, 4])
def test_preprocessing_removes_charge_reduced_precursors(charge: int) -> None:
    """Electron transfer reduces the charge without loss of protons: [M + 3H]3+ becomes [M + 3H]2+ and [M + 3H]+ (Good 2009)."""
    precursor = 400.3
    reduced = [precursor * charge / z for z in range(charge, 0, -1)]
    between = [at + 10.0 for at in reduced]
    assert remaining_mz(sorted((mz, 1.0) for mz in reduced + between), Settings(removal_width=0.8), (precursor, charge)) == sorted(between)


def explains(lower: tuple[float, float], upper: tuple[float, float], tolerance: tuple[float, float]) -> bool:
    """True if the upper peak may be an isotope of the lower one, of charge 1 or 2."""
    for charge in (1, 2):
        target = lower[0] + SPACING / charge
        tall_enough = upper[1] <= lower[1] * max(0.6, 1.3 * lower[0] * charge / 1800)
        if abs(upper[0] - target) <= tolerance[0] + tolerance[1] * target and tall_enough:
            return True
    return False


@st.composite
def isotope_patterns(draw: st.DrawFn) -> Peaks:
    peaks = {}
    for _ in range(draw(st.integers(0, 5))):
        start, charge = draw(st.floats(150, 1900)), draw(st.integers(1, 3))
        for k in range(draw(st.integers(1, 4))):
            peaks[start + k * SPACING / charge + draw(st.sampled_from([0.0, 0.003, -0.03]))] = draw(st.floats(1, 100))
    return sorted(peaks.items())


@settings(max_examples=150, deadline=None)
@given(isotope_patterns(), st.sampled_from([(0.01, 0.0), (0.0, 2e-5), (0.3, 0.0)]))
def test_deisotoping_removes_explained_isotope_peaks(peaks: Peaks, tolerance: tuple[float, float]) -> None:
    rounded = [(mz, float(np.float32(height))) for mz, height in peaks]
    expected = [upper[0] for i, upper in enumerate(rounded) if not any(explains(lower, upper, tolerance) for lower in rounded[:i])]
    assert remaining_mz(rounded, Settings(deisotope=True, tolerance=tolerance)) == expected


def test_deisotoping_retains_the_monoisotopic_peak() -> None:
    """Averagine (Senko 1995) of 900 Da: isotopes of 100, 50, 16, 4 per cent."""
    for charge in (1, 2):
        pattern = [(700.3 + k * SPACING / charge, height) for k, height in enumerate((100.0, 50.0, 16.0, 4.0))]
        assert remaining_mz(pattern, Settings(deisotope=True)) == [700.3]


TRANSFORMS = {
    TRANSFORM_NONE: lambda values: values,
    TRANSFORM_SQUARE_ROOT: lambda values: [math.sqrt(value) for value in values],
    TRANSFORM_LOG: lambda values: [math.log(1 + value) for value in values],
    TRANSFORM_RANK: lambda values: [(1 + sum(other < value for other in values)) / len(values) for value in values],
}


@settings(max_examples=100, deadline=None)
@given(PEAKS, st.sampled_from(sorted(TRANSFORMS)))
def test_transformed_peak_weights_have_unit_length(peaks: Peaks, transform: int) -> None:
    _, weight, _ = run([peaks], Settings(transform=transform))[0]
    values = TRANSFORMS[transform]([height for _, height in peaks])
    length = math.sqrt(sum(value * value for value in values))
    assert weight == pytest.approx([value / length for value in values], rel=1e-5)
    if peaks:
        assert float(np.sum(weight.astype(np.float64) ** 2)) == pytest.approx(1, rel=1e-5)


@settings(max_examples=100, deadline=None)
@given(PEAKS, st.sampled_from(sorted(TRANSFORMS)))
@example([], TRANSFORM_LOG)
def test_correlation_weights_have_maximum_50_in_each_window(peaks: Peaks, transform: int) -> None:
    """Compare with the preprocessing of Comet (Eng 2013) of the remaining peaks; the transform is for other weights and has no effect."""
    _, _, correlation = run([peaks], Settings(transform=transform))[0]
    expected = []
    for mz, height in peaks:
        width = (peaks[-1][0] + 1) / 10
        largest = max(other for at, other in peaks if int(at / width) == int(mz / width))
        expected.append(50 * math.sqrt(height / largest))
    assert correlation == pytest.approx(expected, rel=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.lists(PEAKS, max_size=5))
def test_each_spectrum_is_preprocessed_independently(spectra: list[Peaks]) -> None:
    how = Settings(peaks_per_window=3, deisotope=True, transform=TRANSFORM_RANK, removal_width=20.0)
    alone = partial(run, how=how)
    precursors = [(300.0 + 50 * i, i % 4) for i in range(len(spectra))]
    together = run(spectra, how, precursors)
    for peaks, precursor, prepared in zip(spectra, precursors, together, strict=True):
        for left, right in zip(prepared, alone([peaks], precursors=[precursor])[0], strict=True):
            assert np.array_equal(left, right)
