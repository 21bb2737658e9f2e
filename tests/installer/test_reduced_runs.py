"""Sample runs that were reduced in size have all spectra and peaks of the originals."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from pyteomics import mzml

from installer.reduced_runs import reduced_run
from proteoscope import resources

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
"""pyteomics uses psims, if installed, which leaves its vocabularies open."""


@pytest.mark.parametrize("name", ["BSA1", "BSA2", "BSA3"])
def test_reduced_sample_run_has_all_peaks_of_the_original(name: str, shared_data: Path) -> None:
    original = shared_data / "spectra" / "bsa_ltq" / f"{name}.mzML"
    shipped = resources.path("samples", f"{name}.mzML.gz")
    # Compressed bytes depend on the version of zlib, but the content does not.
    with gzip.open(shipped) as file:
        reduced = list(mzml.MzML(file, use_index=False))
    with original.open("rb") as file:
        expected = list(mzml.MzML(file, use_index=False))
    assert len(reduced) == len(expected)
    for spectrum, other in zip(reduced, expected, strict=True):
        assert spectrum["id"] == other["id"] and spectrum.get("precursorList") == other.get("precursorList")
        mz, intensity = spectrum["m/z array"], spectrum["intensity array"]
        if spectrum["ms level"] == 2:
            assert np.array_equal(mz, other["m/z array"]) and np.array_equal(intensity, other["intensity array"])
        else:
            assert np.allclose(mz, other["m/z array"], rtol=6e-8, atol=0)
            assert np.allclose(intensity, other["intensity array"], rtol=2e-3, atol=0)


def test_reducing_a_run_rejects_ms2_peaks_that_need_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "run.mzML"
    array = (
        '<binaryDataArray encodedLength="12"><cvParam accession="MS:1000523" name="64-bit float"/>'
        '<cvParam accession="MS:1000576" name="no compression"/><cvParam name="m/z array"/><binary>mpmZmZmZuT8=</binary></binaryDataArray>'
    )
    path.write_text(f'<mzML ><spectrum index="0"><cvParam name="ms level" value="2"/>{array}</spectrum></mzML>')
    with pytest.raises(ValueError, match="more than 32 bits"):
        reduced_run(path)
