"""mzXML variants, and broken files."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra


@pytest.mark.parametrize("zipped", [False, True])
def test_read_mzxml_reads_every_field_of_nested_scans(make: Any, written: Callable[..., Path], zipped: bool) -> None:
    inner = make.mzxml_scan(8, zipped=zipped) + make.mzxml_scan(9, zipped=zipped)
    file = make.mzxml(make.mzxml_scan(7, level=1, inner=inner), make.mzxml_scan(10, level=1), make.mzxml_scan(11))
    spectra = read_spectra([written(file)])
    assert spectra.identifier == ["scan=8", "scan=9", "scan=11"]
    assert spectra.scan.tolist() == [8, 9, 11]
    assert spectra.index.tolist() == [1, 2, 4]
    assert spectra.retention_time.tolist() == [62.5] * 3
    assert spectra.precursor_mz.tolist() == [600.5] * 3
    assert spectra.precursor_intensity.tolist() == [7.5] * 3
    assert spectra.charge_mask.tolist() == [1 << 3] * 3
    assert spectra.mz.tolist() == list(make.mz) * 3
    assert spectra.intensity.tolist() == list(make.intensity) * 3


def test_mzxml_64_bit_peaks_with_pair_order_attribute_are_read(make: Any, written: Callable[..., Path]) -> None:
    data = b"".join(struct.pack(">dd", m, i) for m, i in ((100.1, 1.0), (200.2, 2.0)))
    peaks = f'<peaks precision="64" byteOrder="network" pairOrder="m/z-int">{base64.b64encode(data).decode()}</peaks>'
    spectra = read_spectra([written(make.mzxml(make.mzxml_scan(1, peaks=peaks, attributes='peaksCount="2"')))])
    assert spectra.mz.tolist() == [100.1, 200.2]


@pytest.mark.parametrize("text", ["", "AAAAAAAAAAA="])
def test_mzxml_scan_without_peaks_is_empty(make: Any, written: Callable[..., Path], text: str) -> None:
    peaks = f'<peaks precision="32" byteOrder="network" contentType="m/z-int">{text}</peaks>'
    file = make.mzxml(make.mzxml_scan(1, peaks=peaks, attributes='peaksCount="0"'), make.mzxml_scan(2))
    assert read_spectra([written(file)]).offsets.tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("duration", "seconds"), [("PT0.5S", 0.5), ("P0Y0M0DT1H2M3.25S", 3723.25), ("PT10M", 600.0), ("12.5", 12.5), ("soon", np.nan)]
)
def test_mzxml_retention_times_are_read_as_durations(make: Any, written: Callable[..., Path], duration: str, seconds: float) -> None:
    file = make.mzxml(make.mzxml_scan(1)).replace("PT1M2.5S", duration)
    np.testing.assert_equal(read_spectra([written(file)]).retention_time[0], seconds)


def test_mzxml_charges_may_be_missing_or_several(make: Any, written: Callable[..., Path]) -> None:
    scans = [make.mzxml_scan(1).replace('precursorCharge="3"', text) for text in ("", 'possibleCharges="2,3"')]
    assert read_spectra([written(make.mzxml(*scans))]).charge_mask.tolist() == [0, 0b1100]


def test_mzxml_profile_is_centroided_or_rejected(make: Any, written: Callable[..., Path]) -> None:
    mz = np.arange(499.9, 500.1, 0.004, dtype=np.float32)
    intensity = 100 * np.exp(-0.5 * ((mz - 500.0) / 0.02) ** 2)
    data = b"".join(struct.pack(">ff", m, i) for m, i in zip(mz, intensity, strict=True))
    peaks = f'<peaks precision="32" byteOrder="network" contentType="m/z-int">{base64.b64encode(data).decode()}</peaks>'
    path = written(make.mzxml(make.mzxml_scan(4, peaks=peaks, attributes=f'centroided="0" peaksCount="{len(mz)}"')))
    np.testing.assert_allclose(read_spectra([path]).mz, [500.0], atol=1e-4)
    with pytest.raises(InputError, match=r"spectrum scan=4: .*profile"):
        read_spectra([path], centroid=False)
    message = written(
        path.read_text()
        .replace("<msRun", "<x/><msRun")
        .replace('centroided="0"', "")
        .replace("<x/>", "")
        .replace("<scan ", '<dataProcessing centroided="1"/><scan ', 1)
    )
    assert len(read_spectra([message]).mz) == len(mz)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('byteOrder="network"', 'byteOrder="little"'), "unknown encoding"),
        (('compressionType="none"', 'compressionType="lzma"'), "unknown encoding"),
        (('compressionType="none"', 'compressionType="zlib"'), "zlib"),
        (('peaksCount="3"', 'peaksCount="4"'), "differs from the declared"),
        (("> 600.5 <", "> six <"), "number"),
        (("> 600.5 <", "><"), "precursor m/z"),
        (("==</peaks>", "=!</peaks>"), "base64"),
        (("</peaks>", ""), "missing"),
        (('precursorCharge="3"', 'precursorCharge="77"'), "charge"),
        (('msLevel="2"', 'msLevel="2'), "XML"),
    ],
)
def test_broken_mzxml_scan_is_reported_or_skipped(make: Any, written: Callable[..., Path], change: tuple[str, str], reason: str) -> None:
    scan = make.mzxml_scan(2).replace("</peaks>", "==</peaks>" if "==" in change[0] else "</peaks>")
    path = written(make.mzxml(make.mzxml_scan(1), scan.replace(*change), make.mzxml_scan(3)))
    with pytest.raises(InputError) as raised:
        read_spectra([path], strict=True)
    assert reason in raised.value.reason
    assert raised.value.place
    assert "\n" not in str(raised.value)
    spectra = read_spectra([path])
    assert spectra.scan.tolist()[-1] == 3
    assert spectra.n_skipped == 1
