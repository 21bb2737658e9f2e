"""Vectors of spectra against plain loops, compared pairs, and independence of threads."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors, spectrum_vectors, windows
from proteoscope.kernels.clustering_layouts import UNIT_LENGTH
from tests.engine.spectra.made import Peaks, spectra

PLAIN: dict[str, Any] = {
    "bin_width": 1.0,
    "minimum_mz": 50.0,
    "maximum_mz": 1000.0,
    "intensity_transform": "none",
    "precursor_removal": 0.0,
    "minimum_peaks": 1,
}
TRANSFORMS = {"none": float, "square-root": math.sqrt, "logarithm": lambda value: math.log(1.0 + value)}
MERGINGS = {"sum": sum, "mean": lambda values: sum(values) / len(values), "largest": max}


def made(held: Spectra, threads: int = 2, **changes: Any) -> SpectrumVectors:
    return spectrum_vectors(held, ClusteringParameters(**{**PLAIN, **changes}), Resources(threads))


def elements(vectors: SpectrumVectors, spectrum: int) -> dict[int, int]:
    place = int(np.flatnonzero(vectors.order == spectrum)[0])
    some = slice(*vectors.arrays.offsets[place : place + 2])
    return dict(zip(vectors.arrays.bins[some].tolist(), vectors.arrays.weights[some].tolist(), strict=True))


def by_definition(peaks: Peaks, precursor: float, values: dict[str, Any]) -> dict[int, int]:
    low, high, width = values["minimum_mz"], values["maximum_mz"], values["bin_width"]
    remaining = [
        peak for peak in peaks if low <= peak[0] < high and not 0 <= abs(peak[0] - precursor) <= (values["precursor_removal"] or -1)
    ]
    remaining = sorted(remaining, key=lambda peak: -peak[1])[: values["maximum_peaks"]]
    if len(remaining) < values["minimum_peaks"]:
        return {}
    in_bin: dict[int, list[float]] = defaultdict(list)
    for mz, height in sorted(remaining):
        in_bin[int((mz - low) / width)].append(height)
    merged = {b: MERGINGS[values["peak_merging"]](heights) for b, heights in in_bin.items()}
    if values["intensity_transform"] == "rank":
        # The rank among the sorted intensities, from 1; equal intensities share the lowest rank.
        shown = {b: 1 + sum(other < height for other in merged.values()) for b, height in merged.items()}
    else:
        shown = {b: TRANSFORMS[values["intensity_transform"]](height) for b, height in merged.items()}
    spread: dict[int, float] = defaultdict(float)
    for b, height in shown.items():
        spread[b] += height
        for neighbour in (b - 1, b + 1):
            if values["bin_spread"] and 0 <= neighbour <= (high - low) / width:
                spread[neighbour] += values["bin_spread"] * height
    length = math.sqrt(sum(height**2 for height in spread.values()))
    return {b: round(height / length * UNIT_LENGTH) for b, height in sorted(spread.items()) if round(height / length * UNIT_LENGTH)}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"intensity_transform": "square-root"},
        {"intensity_transform": "logarithm"},
        {"intensity_transform": "rank"},
        {"peak_merging": "mean", "bin_width": 5.0},
        {"peak_merging": "largest", "bin_width": 5.0},
        {"bin_spread": 0.5},
        {"bin_spread": 1.0, "bin_width": 5.0},
        {"precursor_removal": 20.0},
        {"maximum_peaks": 7},
        {"minimum_peaks": 20},
        {"minimum_mz": 200.0, "maximum_mz": 300.0},
    ],
)
def test_spectrum_vectors_equal_the_definition(changes):
    random = np.random.default_rng(5)
    # Integer intensities without repetitions, so that neither ties nor rounding affect the result.
    peaks = []
    for n in (0, 1, 5, 15, 30, 60):
        places, heights = np.sort(random.integers(40, 400, n)) + 0.25, random.permutation(99)[:n] + 1.0
        peaks.append(list(zip(places.tolist(), heights.tolist(), strict=True)))
    held = spectra(peaks, [random.uniform(100, 300) for _ in peaks], [4] * len(peaks))
    vectors = made(held, **changes)
    values = ClusteringParameters(**{**PLAIN, **changes}).model_dump()
    for row, spectrum in enumerate(peaks):
        expected, result = by_definition(spectrum, float(held.precursor_mz[row]), values), elements(vectors, row)
        assert set(result) ^ set(expected) <= {b for b in {**result, **expected} if {**result, **expected}[b] <= 1}
        assert all(abs(result.get(b, 0) - expected.get(b, 0)) <= 1 for b in {**result, **expected}), "except for the rounding of a half"


def test_spectrum_vectors_use_top_peaks_of_each_window():
    peaks = [(100.0 + 10 * i, float((7 * i) % 19 + 1)) for i in range(30)]
    result = elements(made(spectra([peaks], [900.0], [4]), peaks_per_window=2), 0)
    expected = []
    for window in (1, 2, 3):
        inside = [peak for peak in peaks if int(peak[0] // 100) == window]
        expected += sorted(sorted(inside, key=lambda peak: -peak[1])[:2])
    assert list(result) == [int(mz - 50) for mz, _ in expected]


def test_spectrum_vectors_weight_rare_bins_by_log_rarity():
    held = spectra([[(100.0, 1.0), (200.0 + i, 1.0)] for i in range(9)] + [[]], [500.0] * 10, [4] * 10)
    for rare_peak_weight in (0.5, 1.0):
        result = elements(made(held, rare_peak_weight=rare_peak_weight), 3)
        common, rare = math.log(11 / 10) ** rare_peak_weight, math.log(11 / 2) ** rare_peak_weight
        assert result[153] / result[50] == pytest.approx(rare / common, rel=0.02)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"minimum_precursor_mz": 450.0}, [1, 2, 3, 4, 5]),
        ({"maximum_precursor_mz": 550.0}, [0, 1, 3, 4, 5]),
        ({"minimum_charge": 2}, [0, 2, 4]),
        ({"minimum_charge": 1}, [0, 1, 2, 4]),
        ({"maximum_charge": 2}, [0, 1, 3, 4, 5]),
    ],
)
def test_spectra_outside_charge_limits_have_empty_vectors(changes, wanted):
    held = spectra([[(100.0, 1.0)]] * 6, [400.0, 500.0, 600.0, 500.0, 500.0, np.nan], [4, 2, 8, 0, 4 | 1, 0])
    assert [row for row in range(6) if elements(made(held, **changes), row)] == wanted


def test_spectrum_vectors_prefer_lower_mz_among_equal_peaks():
    held = spectra([[(100.0 + i, 1.0) for i in range(10)]], [500.0], [4])
    assert list(elements(made(held, maximum_peaks=3), 0)) == [50, 51, 52]


def test_spectrum_vectors_are_equal_on_any_threads():
    random = np.random.default_rng(2)
    places = [np.sort(random.uniform(60, 900, 40)).tolist() for _ in range(99)]
    held = spectra([[(mz, 1.0 + k) for k, mz in enumerate(place)] for place in places], [500.0] * 99, [4] * 99)
    by_one_thread, by_seven_threads = made(held, 1), made(held, 7)
    assert all(
        np.array_equal(a, b)
        for a, b in zip((by_one_thread.order, *by_one_thread.arrays), (by_seven_threads.order, *by_seven_threads.arrays), strict=True)
    )


def test_spectrum_vectors_are_sorted_by_charge_and_precursor():
    spectrum = [(100.0, 1.0), (200.0, 2.0)]
    mz = [500.0, 500.005, 500.02, 500.0, 500.0, np.nan, 500.0]
    masks = [4, 4, 4, 8, 0, 4, 4 | 1]
    vectors = made(spectra([spectrum] * 7, mz, masks))
    assert vectors.order.tolist() == [4, 0, 1, 2, 5, 6, 3] and vectors.ion.tolist() == [0, 4, 4, 4, 4, 5, 8]
    ends = windows(vectors, Tolerance.parse("10 ppm"))
    assert ends.tolist() == [1, 3, 3, 4, 5, 6, 7], "only 500 and 500.005 are compared; unknown, negative and other charges with none"
    assert windows(vectors, Tolerance.parse("0.05 Da")).tolist() == [1, 4, 4, 4, 5, 6, 7]


def test_precursor_windows_of_vectors_equal_reference_loops():
    random = np.random.default_rng(3)
    n = 300
    held = spectra([[(100.0, 1.0)]] * n, random.uniform(400, 401, n).tolist(), random.choice([0, 4, 8], n).tolist())
    vectors, tolerance = made(held), Tolerance.parse("50 ppm")
    ends = windows(vectors, tolerance)
    for i in range(n):
        near = [
            j
            for j in range(i + 1, n)
            if vectors.ion[j] == vectors.ion[i] and vectors.precursor_mz[j] - vectors.precursor_mz[i] <= 50e-6 * vectors.precursor_mz[i]
        ]
        assert list(range(i + 1, ends[i])) == near


def test_published_clustering_preset_gives_vectors_of_the_thesis():
    parameters = ClusteringParameters.checked(read_preset("cluster", "published"))
    held = spectra([[(599.9, 9.0), (600.1, 1.0), (600.4, 3.0), (5999.9, 2.0), (6000.1, 9.0)]], [700.0], [4])
    vectors = spectrum_vectors(held, parameters, Resources(1))
    half = round(UNIT_LENGTH / math.sqrt(2))
    assert vectors.n_bins == 10_801 and elements(vectors, 0) == {0: half, 10_799: half}, "the mean of 1 and 3 is 2"


def test_spectrum_vectors_stop_at_cancel():
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        spectrum_vectors(spectra([[(100.0, 1.0)]], [500.0], [4]), ClusteringParameters(), replace(Resources(1), progress=progress))
