"""Reading, writing and application of tolerances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError


@given(st.floats(0, 1e6), st.sampled_from(["ppm", "Da"]))
def test_tolerance_text_round_trip(value: float, unit: str) -> None:
    tolerance = Tolerance(value, unit)
    assert Tolerance.parse(str(tolerance)).unit == unit
    assert Tolerance.parse(str(tolerance)).value == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("text", ["20ppm", " 20.0 PPM ", "2e1 ppm"])
def test_tolerance_parse_ignores_case_and_spaces(text: str) -> None:
    assert Tolerance.parse(text) == Tolerance(20, "ppm")


@pytest.mark.parametrize("text", ["", "20", "ppm", "-1 Da", "20 kg", "nan Da", "1,5 Da"])
def test_tolerance_rejects_text_without_number_and_unit(text: str) -> None:
    with pytest.raises(ParameterError):
        Tolerance.parse(text)


def test_tolerance_bounds_accept_numbers_and_arrays() -> None:
    assert Tolerance(10, "ppm").bounds(1000.0) == pytest.approx((999.99, 1000.01))
    assert Tolerance(0.5, "Da").bounds(1000.0) == (999.5, 1000.5)
    low, high = Tolerance(10, "ppm").bounds(np.array([100.0, 200.0]))
    np.testing.assert_allclose([low, high], [[99.999, 199.998], [100.001, 200.002]])
    low, high = Tolerance(0.02, "Da").bounds(np.array([100.0, 200.0]))
    np.testing.assert_allclose(high - low, 0.04)
