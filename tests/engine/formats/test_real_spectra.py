"""All fields and peaks of real files agree with an independent reader (pyteomics)."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyteomics import mgf, mzml, mzxml

from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra.columns import Spectra

# pyteomics reads its vocabulary with psims if installed, which leaves the file open.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file.*psi-ms:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*psi-ms:pytest.PytestUnraisableExceptionWarning"),
]

REAL_FILES = (
    "Ecoli_MS2_small.mzML",
    "SmallCalibratible_Yeast.mzML",
    "bsa_ltq/BSA1.mzML",
    "hela_velos/TaGe_SA_A549_3_snip.mzML",
    "hela_velos/TaGe_SA_HeLa_04_subset_longestSeq.mzML",
    "metaproteome_qe/2016_Jan_12_QE2_47_trimmed.mzML",
    "qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML",
    "bench_hires_2269.mgf",
    "known_ids/55merge.mgf",
    "known_ids/massivekb_selected_500.mgf",
    "known_ids/pride_cluster_1001_small.mgf",
    "known_ids/proteometools_171_kuester_test.mgf",
)


def seconds(time: Any) -> float:
    return float(time) * (60.0 if getattr(time, "unit_info", "second") == "minute" else 1.0)


def peers_mzml(path: Path) -> list[dict[str, Any]]:
    results = []
    with mzml.MzML(str(path), use_index=False) as reader:
        for index, spectrum in enumerate(reader):
            if spectrum["ms level"] != 2:
                continue
            ion = spectrum["precursorList"]["precursor"][0]["selectedIonList"]["selectedIon"][0]
            charges = [int(ion["charge state"])] if "charge state" in ion else []
            results.append(
                {
                    "identifier": spectrum["id"],
                    "index": index,
                    "time": seconds(spectrum["scanList"]["scan"][0]["scan start time"]),
                    "precursor": float(ion["selected ion m/z"]),
                    "height": float(ion.get("peak intensity", 0.0)),
                    "charges": charges,
                    "mz": spectrum["m/z array"],
                    "intensity": spectrum["intensity array"],
                }
            )
    return results


def peers_mzxml(path: Path) -> list[dict[str, Any]]:
    results = []
    with mzxml.MzXML(str(path), use_index=False) as reader:
        for index, spectrum in enumerate(reader):
            if spectrum["msLevel"] != 2:
                continue
            ion = spectrum["precursorMz"][0]
            results.append(
                {
                    "identifier": f"scan={spectrum['num']}",
                    "index": index,
                    "time": seconds(spectrum["retentionTime"]),
                    "precursor": float(ion["precursorMz"]),
                    "height": float(ion["precursorIntensity"]),
                    "charges": [int(ion["precursorCharge"])],
                    "mz": spectrum["m/z array"],
                    "intensity": spectrum["intensity array"],
                }
            )
    return results


def peers_mgf(path: Path) -> list[dict[str, Any]]:
    results = []
    with mgf.MGF(str(path), use_header=False, convert_arrays=1, read_charges=False) as reader:
        for index, spectrum in enumerate(reader):
            fields = spectrum["params"]
            results.append(
                {
                    "identifier": fields.get("title", f"index={index}"),
                    "index": index,
                    "time": float(fields.get("rtinseconds", np.nan)),
                    "precursor": float(fields["pepmass"][0]),
                    "height": float(fields["pepmass"][1] or 0.0),
                    "charges": [int(charge) for charge in fields.get("charge", [])],
                    "mz": spectrum["m/z array"],
                    "intensity": spectrum["intensity array"],
                }
            )
    return results


@pytest.mark.parametrize("name", REAL_FILES)
def test_real_spectra_equal_pyteomics(shared_data: Path, name: str) -> None:
    path = shared_data / "spectra" / name
    expected = {".mzML": peers_mzml, ".mzXML": peers_mzxml, ".mgf": peers_mgf}[path.suffix](path)
    spectra = read_spectra([path])
    assert len(spectra) == len(expected) > 0
    for i, peer in enumerate(expected):
        assert spectra.identifier[i] == peer["identifier"]
        assert spectra.index[i] == peer["index"]
        np.testing.assert_equal(spectra.retention_time[i], peer["time"])
        assert spectra.precursor_mz[i] == peer["precursor"]
        assert spectra.precursor_intensity[i] == np.float32(peer["height"])
        assert spectra.charge_mask[i] == sum(1 << charge for charge in peer["charges"])
        order = np.argsort(peer["mz"], kind="stable")
        mz, intensity = peer["mz"][order].astype(np.float64), peer["intensity"][order].astype(np.float32)
        positive = intensity > 0
        found_mz, found_intensity = spectra.peaks(i)
        assert np.array_equal(found_mz, mz[positive])
        assert np.array_equal(found_intensity, intensity[positive])


def test_mgf_scan_numbers_equal_pyteomics(shared_data: Path) -> None:
    path = shared_data / "spectra" / "bench_hires_2269.mgf"
    with mgf.MGF(str(path), use_header=False) as reader:
        assert read_spectra([path]).scan.tolist() == [int(spectrum["params"]["scans"]) for spectrum in reader]


def test_mzml_scan_numbers_equal_the_native_ids(shared_data: Path) -> None:
    path = shared_data / "spectra" / "SmallCalibratible_Yeast.mzML"
    spectra = read_spectra([path])
    assert spectra.scan.tolist() == [int(name.rpartition("=")[2]) for name in spectra.identifier]


def same(a: Spectra, b: Spectra) -> None:
    assert a.identifier == b.identifier
    for column in (
        "file",
        "scan",
        "index",
        "retention_time",
        "precursor_mz",
        "precursor_intensity",
        "charge_mask",
        "offsets",
        "mz",
        "intensity",
    ):
        np.testing.assert_array_equal(getattr(a, column), getattr(b, column))


@pytest.mark.parametrize("name", ["bsa_ltq/BSA1.mzML", "qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML", "known_ids/55merge.mgf"])
def test_spectra_are_equal_for_any_block_size_threads_and_gzip(
    shared_data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared_data / "spectra" / name
    whole = read_spectra([path], threads=1)
    packed = tmp_path / "packed"
    # Two consecutive gzip members, as parallel compressors write.
    content = path.read_bytes()
    packed.write_bytes(gzip.compress(content[:500_000], 1) + gzip.compress(content[500_000:], 1))
    same(read_spectra([packed]), whole)
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (20_000,))
    same(read_spectra([path], threads=3), whole)


def test_spectra_of_several_files_are_concatenated(shared_data: Path) -> None:
    paths = [shared_data / "spectra" / name for name in ("known_ids/55merge.mgf", "Ecoli_MS2_small.mzML")]
    both, single = read_spectra(paths), [read_spectra([path]) for path in paths]
    assert both.files == tuple(str(path) for path in paths)
    assert both.file.tolist() == [0] * len(single[0]) + [1] * len(single[1])
    assert both.identifier == single[0].identifier + single[1].identifier
    assert np.array_equal(both.mz, np.concatenate([s.mz for s in single]))
    assert both.peaks(len(single[0]))[0].tolist() == single[1].peaks(0)[0].tolist()
