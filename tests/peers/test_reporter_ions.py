"""Reporter ions compared with OpenMS: the results in its own example, and its results for the same files."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.ms1_spectra import read_ms1_spectra
from proteoscope.engine.formats.reporter_regions import read_reporter_regions
from proteoscope.engine.quantification.impurities import corrected, read_impurities
from proteoscope.engine.quantification.isobaric import interference, reporter_peaks
from proteoscope.engine.quantification.labels import Label, label
from tests.peers.test_openms import python_of

ITRAQ = [("0", "1", "5.9", "0.2"), ("0", "2", "5.6", "0.1"), ("0", "3", "4.5", "0.1"), ("0.1", "4", "3.5", "0.1")]
"""Correction matrix of OpenMS's example, its default."""


def quantified(spectra: Path, kit: Label, percents, folder: Path, tolerance: float = 0.003):
    """Measured and corrected intensities of all spectra."""
    rows = ["channel\t-2\t-1\t+1\t+2", *("\t".join((name, *row)) for name, row in zip(kit.channels, percents, strict=True))]
    (folder / "impurities.tsv").write_text("\n".join(rows) + "\n")
    regions = read_reporter_regions(spectra, kit.mz.min() - 1, kit.mz.max() + 1)
    peaks = reporter_peaks(regions, np.arange(len(regions)), kit.mz, Tolerance(tolerance, "Da"), "most-intense")
    return regions, peaks.intensity, corrected(peaks.intensity, read_impurities(folder / "impurities.tsv", kit))


def test_reporter_ions_equal_the_example_of_openms(shared_data, tmp_path):
    folder = shared_data / "spectra" / "isobaric"
    text = (folder / "IsobaricAnalyzer_output_1.consensusXML").read_text()
    expected = np.array([float(value) for value in re.findall(r'<element map[^>]* it="([^"]*)"', text)]).reshape(-1, 4)
    charge = np.array([int(value) for value in re.findall(r'<consensusElement [^>]*charge="(\d)"', text)])
    purity = [float(value) for value in re.findall(r'precursor_purity" value="([^"]*)"', text)]
    spectra = folder / "IsobaricAnalyzer_input_1.mzML"
    regions, _, actual = quantified(spectra, label("itraq-4"), ITRAQ, tmp_path)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    foreign = interference(
        read_ms1_spectra(spectra), regions.retention_time, regions.precursor_mz, charge, regions.isolation_width, Tolerance(10, "ppm")
    )
    np.testing.assert_allclose(1 - foreign, purity, atol=1e-4)


@pytest.mark.peers
@pytest.mark.parametrize(("name", "kit"), [("IsobaricAnalyzer_input_1", "itraq-4"), ("TMTTenPlexMethod_test", "tmt-10")])
def test_reporter_ions_equal_pyopenms_in_the_same_files(shared_data, tmp_path, name, kit):
    spectra, out = shared_data / "spectra" / "isobaric" / f"{name}.mzML", tmp_path / "openms.json"
    script = Path(__file__).with_name("reporters_with_pyopenms.py")
    subprocess.run([python_of("pyopenms"), script, spectra, kit, "0.003", out], check=True, capture_output=True)
    openms = json.loads(out.read_text())
    _, measured, actual = quantified(spectra, label(kit), openms["percents"], tmp_path)
    np.testing.assert_allclose(np.nan_to_num(measured), openms["measured"], rtol=1e-6)
    # A channel without a peak stays 0, where least squares have about 1e-13.
    np.testing.assert_allclose(np.nan_to_num(actual), openms["corrected"], rtol=0.01, atol=1e-6)
