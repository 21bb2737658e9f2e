"""Spectrum index: queries of spectra, and their preprocessed peaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proteoscope.engine import arrays
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex, absolute_and_relative, build_spectrum_index
from tests.engine.spectra.made import Peaks, spectra

PROTON = 1.00727646688


def plain(**changes: Any) -> IdentificationParameters:
    values: dict[str, Any] = {
        "minimum_peaks": 1,
        "peaks_per_window": 100,
        "precursor_removal": 0,
        "deisotope": False,
        "intensity_transform": "none",
        "minimum_fragment_mz": 0,
    }
    return IdentificationParameters(**{**values, **changes})


def build(held: Spectra, parameters: IdentificationParameters, threads: int = 2) -> SpectrumIndex:
    return build_spectrum_index(held, parameters, Resources(threads))


def queries(index: SpectrumIndex) -> list[tuple[int, int, float]]:
    return list(zip(index.queries.spectrum.tolist(), index.queries.charge.tolist(), index.queries.mass.tolist(), strict=True))


THREE: Peaks = [(200.0, 3.0), (300.0, 4.0), (400.0, 12.0)]


def test_spectrum_index_weights_have_unit_length_per_spectrum() -> None:
    index = build(spectra([THREE, [], THREE[1:]], [500.0] * 3, [4] * 3), plain())
    assert index.arrays.offsets.tolist() == [0, 3, 3, 5]
    assert index.arrays.mz.tolist() == [200.0, 300.0, 400.0, 300.0, 400.0]
    assert index.arrays.weight == pytest.approx([3 / 13, 4 / 13, 12 / 13, 4 / 160**0.5, 12 / 160**0.5])
    assert index.n_searched == 2


def test_spectrum_index_accepts_empty_first_and_last_spectra() -> None:
    index = build(spectra([[], [], THREE, []], [500.0] * 4, [4] * 4), plain())
    assert index.arrays.offsets.tolist() == [0, 0, 0, 3, 3]
    assert index.queries.spectrum.tolist() == [2] and index.n_searched == 1


@pytest.mark.parametrize(
    ("mask", "charges"), [(0b100, [2]), (0b1100, [2, 3]), (0b10, [1]), (0, [2, 3, 4]), (1, [2, 3, 4]), (1 << 20, [20])]
)
def test_spectrum_index_uses_charges_of_file_or_all_allowed(mask: int, charges: list[int]) -> None:
    index = build(spectra([THREE], [500.0], [mask]), plain(minimum_charge=2, maximum_charge=4))
    expected = [(0, charge, pytest.approx((500.0 - PROTON) * charge, rel=1e-12)) for charge in charges]
    assert queries(index) == expected
    assert index.n_searched == 1


def test_spectrum_index_queries_are_sorted_by_mass() -> None:
    index = build(spectra([THREE] * 4, [700.0, 300.0, 500.0, 450.0], [0b1100, 0, 0b10, 0b100]), plain())
    result = queries(index)
    assert [mass for _, _, mass in result] == sorted(mass for _, _, mass in result)
    assert sorted((spectrum, charge) for spectrum, charge, _ in result) == [(0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (2, 1), (3, 2)]


def test_spectra_with_few_peaks_or_no_precursor_are_skipped() -> None:
    held = spectra([THREE, THREE[:2], THREE, [], THREE], [500.0, 500.0, float("nan"), 500.0, float("inf")], [4] * 5)
    index = build(held, plain(minimum_peaks=3))
    assert [spectrum for spectrum, _, _ in queries(index)] == [0]
    assert index.n_searched == 1
    assert index.arrays.offsets.tolist() == [0, 3, 3, 6, 6, 9]


def test_charge_reduced_precursors_are_removed_at_known_charge() -> None:
    """Check an ion of charge 2 or 3 with known m/z but unknown mass."""
    peaks: Peaks = [(400.0, 1.0), (401.0, 1.0), (600.0, 1.0), (800.0, 1.0), (900.0, 1.0)]
    held = spectra([peaks, peaks, peaks], [400.0] * 3, [0b100, 0b1100, 0])
    index = build(held, plain(precursor_removal=1.5, ion_series="cz"))
    remaining = [index.arrays.mz[a:b].tolist() for a, b in zip(index.arrays.offsets, index.arrays.offsets[1:], strict=False)]
    assert remaining == [[600.0, 900.0], [600.0, 800.0, 900.0], [600.0, 800.0, 900.0]]


def test_charge_reduced_precursors_remain_in_collision_spectra() -> None:
    peaks: Peaks = [(400.0, 1.0), (401.0, 1.0), (600.0, 1.0), (800.0, 1.0), (900.0, 1.0)]
    index = build(spectra([peaks], [400.0], [0b100]), plain(precursor_removal=1.5, ion_series="by"))
    assert index.arrays.mz.tolist() == [600.0, 800.0, 900.0]


def test_spectrum_index_of_no_spectra_is_empty() -> None:
    index = build(spectra([], [], []), plain())
    assert queries(index) == []
    assert index.n_searched == 0
    assert index.arrays.offsets.tolist() == [0]


def test_spectrum_index_is_equal_on_any_threads() -> None:
    random = np.random.default_rng(1)
    many = [
        [(float(mz), float(height)) for mz, height in zip(np.sort(random.uniform(100, 1500, n)), random.uniform(1, 9, n), strict=True)]
        for n in random.integers(0, 120, 60)
    ]
    held = spectra(many, random.uniform(300, 900, 60).tolist(), random.integers(0, 16, 60).tolist())
    first = build(held, IdentificationParameters(), 1)
    for threads in (2, 5):
        other = build(held, IdentificationParameters(), threads)
        for column, other_column in zip((*first.arrays, *first.queries), (*other.arrays, *other.queries), strict=True):
            assert np.array_equal(np.asarray(column), np.asarray(other_column))


def test_tolerance_is_split_into_absolute_and_relative_part() -> None:
    assert absolute_and_relative(Tolerance.parse("0.5 Da")) == (0.5, 0.0)
    assert absolute_and_relative(Tolerance.parse("20 ppm")) == (0.0, pytest.approx(2e-5))


def test_spectrum_preprocessing_stops_at_cancel() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        build_spectrum_index(spectra([THREE], [500.0], [4]), plain(), Resources(1, progress=progress))


def test_spectrum_index_selects_only_the_given_spectra() -> None:
    held = spectra([THREE, THREE[1:], THREE, THREE[:2]], [700.0, 300.0, 500.0, 450.0], [0b1100, 0, 0b10, 0b100])
    wanted = np.array([0, 3])
    some, alone = build(held, plain()).only(wanted), build(held.only(wanted), plain())
    assert queries(some) == queries(alone)
    assert some.n_searched == alone.n_searched == 2
    for number in wanted.tolist():
        low, high = some.arrays.offsets[number : number + 2]
        begin, end = alone.arrays.offsets[number : number + 2]
        assert some.arrays.mz[low:high].tolist() == alone.arrays.mz[begin:end].tolist()


def test_spectrum_index_with_corrected_masses_is_sorted_again() -> None:
    """Use mass errors that change the order of two spectra."""
    true, error = np.array([500.0, 500.001, 700.0]), np.array([6.0, -3.0, 0.0])
    index = build(spectra([THREE] * 3, list((true - PROTON) * (1 + error * 1e-6) + PROTON), [0b10] * 3), plain())
    corrected = index.corrected(error)
    assert index.queries.spectrum.tolist() == [1, 0, 2]
    assert corrected.queries.spectrum.tolist() == [0, 1, 2]
    assert corrected.queries.mass == pytest.approx(true - PROTON, rel=1e-12)
    assert corrected.observed_mass == pytest.approx((true - PROTON) * (1 + error * 1e-6), rel=1e-12)
    assert corrected.only(np.array([1, 2])).observed_mass.tolist() == corrected.observed_mass[1:].tolist()
    unchanged = index.corrected(np.zeros(3))
    assert queries(unchanged) == queries(index)
    assert unchanged.observed_mass.tolist() == index.observed_mass.tolist() == index.queries.mass.tolist()


def test_spectrum_preprocessing_in_batches_gives_equal_spectra(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    peaks: list[Peaks] = [
        sorted((float(mz), float(intensity)) for mz, intensity in zip(random.uniform(150, 900, n), random.uniform(1, 9, n), strict=True))
        for n in (3, 0, 40, 1, 25, 0, 8)
    ]
    held = spectra(peaks, random.uniform(300, 900, len(peaks)).tolist(), [0b100] * len(peaks))
    at_once = build(held, plain(minimum_peaks=2))
    monkeypatch.setattr(arrays, "_BATCH_VALUES", 10)
    apart = build(held, plain(minimum_peaks=2))
    for name in ("offsets", "mz", "weight", "correlation_weight"):
        np.testing.assert_array_equal(getattr(apart.arrays, name), getattr(at_once.arrays, name))
    assert queries(apart) == queries(at_once)
