"""Rounding and texts of columns against those of Python, number by number."""

import numpy as np
import pytest

from proteoscope.engine.results.separated import printed, rounded, rounded_to_digits


def _numbers() -> list[float]:
    random = np.random.default_rng(3)
    ties = random.integers(-(10**6), 10**6, 2000) / 2**9
    near_ties = np.round(random.normal(size=2000), 3) + 0.0005
    sizes = random.normal(size=2000) * 10.0 ** random.integers(-20, 20, 2000)
    powers = np.array([float(f"1e{exponent}") for exponent in range(-12, 24)])
    around = np.concatenate([powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf), powers * (1 - 5e-11), powers * (1 - 4e-8)])
    singles = random.integers(-(2**24), 2**24, 2000).astype(np.float32) / np.float32(16)
    sized = [*sizes.tolist(), *around.tolist(), *singles.tolist()]
    special = [0.0, -0.0, 0.00625, -1e-9, 1e300, 1e-320, 9.99995, np.inf, -np.inf]
    return [*ties.tolist(), *near_ties.tolist(), *np.nextafter(near_ties, 0).tolist(), *sized, *special]


@pytest.mark.parametrize("decimals", [1, 3, 4, 7])
def test_rounded_equals_python_round_to_the_last_bit(decimals: int) -> None:
    values = _numbers()
    assert rounded(np.array(values), decimals).tobytes() == np.array([round(value, decimals) for value in values]).tobytes()


def test_rounded_to_digits_equals_python_formatting() -> None:
    values = _numbers()
    assert rounded_to_digits(np.array(values), 4).tobytes() == np.array([float(f"{value:.4g}") for value in values]).tobytes()


def test_rounded_accepts_nan_and_empty_arrays() -> None:
    assert np.isnan(rounded(np.array([np.nan]), 3)).all()
    assert np.isnan(rounded_to_digits(np.array([np.nan]), 3)).all()
    assert len(rounded(np.empty(0), 3)) == len(rounded_to_digits(np.empty(0), 3)) == 0


@pytest.mark.parametrize("form", [".4f", ".1g", ".7g", ".10g", ".12g"])
def test_printed_numbers_equal_python_formatting(form: str) -> None:
    values = _numbers()
    assert printed(np.array(values), form).to_pylist() == [f"{value:{form}}" for value in values]
