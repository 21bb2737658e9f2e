"""FAIMS compensation voltages of MS1 spectra in mzML and mzXML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.ms1_spectra import read_ms1_spectra

Written = Callable[..., Path]


def minutes(make: Any, time: float) -> str:
    """Return the time of a scan."""
    return make.term("MS:1000016", str(time), "UO:0000031")


def test_mzml_faims_voltages_of_ms1_are_read_in_time_order(make: Any, written: Written) -> None:
    volts = make.term("MS:1001581", "-45")
    spectra = [
        make.mzml_spectrum(0, level="1", ions="", time=minutes(make, 3), extra=volts),
        make.mzml_spectrum(1, level="2", time=minutes(make, 1), extra=make.term("MS:1001581", "-99")),
        make.mzml_spectrum(2, level="1", ions="", time=minutes(make, 1) + make.term("MS:1001581", "-60.5")),
        make.mzml_spectrum(3, level="1", ions="", time=minutes(make, 2)),
    ]
    result = read_ms1_spectra(written(make.mzml(*spectra)))
    np.testing.assert_array_equal(result.voltage, [-60.5, np.nan, -45.0])
    assert result.voltages[:2] == [-60.5, -45.0] and np.isnan(result.voltages[2])
    assert [result.at_voltage(voltage).tolist() for voltage in result.voltages] == [
        [True, False, False],
        [False, False, True],
        [False, True, False],
    ]
    np.testing.assert_array_equal(result.voltage_of(np.array([0.0, 60.0, 119.9, 121.0, 500.0])), [-60.5, -60.5, -60.5, np.nan, -45.0])


def test_read_ms1_spectra_without_faims_terms_has_no_voltages(make: Any, written: Written) -> None:
    spectra = read_ms1_spectra(written(make.mzml(make.mzml_spectrum(0, level="1", ions=""), make.mzml_spectrum(1))))
    assert not len(spectra.voltage) and np.isnan(spectra.voltages).tolist() == [True]
    assert spectra.at_voltage(float("nan")).all() and not spectra.at_voltage(-45.0).any()
    assert np.isnan(spectra.voltage_of(np.array([60.0]))).all()


def test_read_ms1_spectra_reads_faims_voltages_of_mzxml(make: Any, written: Written) -> None:
    scans = [make.mzxml_scan(i, level=1, attributes=f'compensationVoltage="{volts}"') for i, volts in ((1, "-50.0"), (2, "x"), (3, "-70"))]
    spectra = read_ms1_spectra(written(make.mzxml(*scans)))
    np.testing.assert_array_equal(spectra.voltage, [-50.0, np.nan, -70.0])


def test_read_ms1_spectra_rejects_too_many_faims_voltages(make: Any, written: Written) -> None:
    spectra = [make.mzml_spectrum(i, level="1", ions="", extra=make.term("MS:1001581", f"-{i}.5")) for i in range(33)]
    with pytest.raises(InputError, match="at 33 FAIMS compensation voltages; at most 32 are expected"):
        read_ms1_spectra(written(make.mzml(*spectra)))
