"""Peaks with a negative or missing m/z or intensity are ignored, and counted in one warning for each file."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.sources import BLOCK_BYTES
from proteoscope.engine.jobs.progress import Progress, RecordingProgress

LINES = "100 1\n-101 2\n102 -3\n103 nan\n104 0\n"
PEAKS = ((100.0, 1.0), (-101.0, 2.0), (102.0, -3.0), (103.0, np.nan), (104.0, 0.0))


def warnings(path: Path) -> list[str]:
    """Read a file, check that its spectra contain only the peak (100, 1), and return the warnings."""
    logged: list[tuple[str, str]] = []
    progress = RecordingProgress(Progress())
    progress.log_to(lambda level, text: logged.append((level, text)))
    spectra = read_spectra([path], progress=progress)
    assert set(spectra.mz.tolist()) == {100.0}
    assert set(spectra.intensity.tolist()) == {1.0}
    return [text for level, text in logged if level == "warning"]


@pytest.mark.parametrize(
    ("name", "text", "first"),
    [
        ("a.mgf", f"BEGIN IONS\nPEPMASS=500\nEND IONS\nBEGIN IONS\nTITLE=b\nPEPMASS=500\n{LINES}END IONS\n", "b"),
        ("a.ms2", f"S\t7\t7\t500\nZ\t2\t999\n{LINES}", "scan=7"),
        ("a.dta", f"999 2\n{LINES}", "index=0"),
        ("a.pkl", f"500 1 2\n{LINES}", "index=0"),
    ],
)
def test_ignored_peaks_of_text_formats_are_counted(written: Callable[..., Path], name: str, text: str, first: str) -> None:
    path = written(text, name)
    assert warnings(path) == [
        f"{path}: 3 peaks in 1 spectrum have a negative or missing m/z or intensity (first: {first}); they are ignored"
    ]


def test_ignored_mzml_peaks_are_counted(make: Any, written: Callable[..., Path]) -> None:
    mz, intensity = zip(*PEAKS, (np.nan, 4.0), (0.0, 0.0), strict=True)
    clean = make.mzml_spectrum(0, name="scan=16", mz=(100.0,), intensity=(1.0,))
    broken = make.mzml_spectrum(1, name="scan=17", mz=mz, intensity=intensity)
    other = make.mzml_spectrum(2, name="scan=18", mz=mz, intensity=intensity)
    path = written(make.mzml(clean, broken, other))
    assert warnings(path) == [
        f"{path}: 8 peaks in 2 spectra have a negative or missing m/z or intensity (first: scan=17); they are ignored"
    ]


def test_ignored_mzxml_peaks_are_counted(make: Any, written: Callable[..., Path]) -> None:
    data = b64encode(b"".join(struct.pack(">ff", *peak) for peak in ((100.0, 1.0), (101.0, -1.0), (102.0, 0.0)))).decode()
    peaks = f'<peaks precision="32" byteOrder="network" contentType="m/z-int" compressionType="none">{data}</peaks>'
    path = written(make.mzxml(make.mzxml_scan(4, peaks=peaks)))
    assert warnings(path) == [f"{path}: 1 peak in 1 spectrum has a negative or missing m/z or intensity (first: scan=4); it is ignored"]


def test_peaks_of_zero_intensity_are_not_counted_as_ignored(written: Callable[..., Path]) -> None:
    assert warnings(written("BEGIN IONS\nPEPMASS=500\n100 1\n0 0\n0 5\n104 0\n104 1e-300\nEND IONS\n")) == []


def test_ignored_peaks_of_all_blocks_are_counted_once(written: Callable[..., Path]) -> None:
    spectrum = f"BEGIN IONS\nTITLE={'x' * 1000}\nPEPMASS=500\n{LINES}END IONS\n"
    n = 2 * BLOCK_BYTES // len(spectrum)
    text = f"BEGIN IONS\nTITLE=a\nPEPMASS=500\n{LINES}END IONS\n" + n * spectrum
    path = written(text, "a.mgf")
    assert warnings(path) == [
        f"{path}: {3 * (n + 1):,} peaks in {n + 1:,} spectra have a negative or missing m/z or intensity (first: a); they are ignored"
    ]


def test_ignored_peaks_of_unused_spectra_are_not_counted(make: Any, written: Callable[..., Path]) -> None:
    good = make.mzml_spectrum(0, mz=(100.0,), intensity=(1.0,))
    unusable = make.mzml_spectrum(1, name="scan=17", mz=(100.0, 2e5), intensity=(-1.0, 1.0))
    (message,) = warnings(written(make.mzml(good, unusable)))
    assert "1 of 2 MS2 spectra left out" in message
