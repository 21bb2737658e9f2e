"""Selection of spectra against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.selection import SpectrumSelection, number_range

PROTON = 1.00727646688


@pytest.fixture(scope="module")
def spectra() -> Spectra:
    result = read_spectra([resources.path("samples", "BSA1.mzML.gz")])
    random = np.random.default_rng(1)
    result.charge_mask[:] = random.choice(np.array([0, 1, 2, 4, 5, 8, 9, 12, 1 << 31], np.uint32), len(result))
    result.retention_time[::50] = np.nan
    return result


@pytest.mark.parametrize("charges", [None, (2,), (2, 3), (1, 3)])
@pytest.mark.parametrize("mass", [None, (900.0, 1300.0), (1200.0, np.inf)])
@pytest.mark.parametrize("time", [None, (1600.0, 2000.0)])
def test_spectrum_selection_requires_all_properties(spectra: Spectra, charges, mass, time) -> None:
    expected = []
    for i in range(len(spectra)):
        bits, mz, seconds = int(spectra.charge_mask[i]), float(spectra.precursor_mz[i]), float(spectra.retention_time[i])
        sign = -1 if bits & 1 else 1
        possible = [z for z in range(1, 32) if bits >> z & 1 and (charges is None or z in charges)]
        fits = bool(possible) or (charges is None and mass is None)
        if mass is not None:
            fits = any(mass[0] <= z * mz - sign * z * PROTON <= mass[1] for z in possible)
        if fits and (time is None or time[0] <= seconds <= time[1]):
            expected.append(i)
    result = SpectrumSelection(charges, mass, time).rows(spectra)
    assert result.tolist() == expected
    assert expected


@pytest.mark.parametrize(("text", "expected"), [("500..2000", (500, 2000)), ("..7.5", (-np.inf, 7.5)), ("1e3..", (1000, np.inf))])
def test_number_range_may_have_one_limit_only(text: str, expected: tuple[float, float]) -> None:
    assert number_range(text, "masses") == expected


@pytest.mark.parametrize("text", ["", "..", "5", "9..5", "a..b", "nan..5", "1..2..3"])
def test_number_range_rejects_invalid_text(text: str) -> None:
    with pytest.raises(ParameterError, match="is not a range of masses; expected"):
        number_range(text, "masses")
