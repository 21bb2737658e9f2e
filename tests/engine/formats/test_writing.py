"""Written spectra are read back unchanged by this program and others, and files conform to their standards."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from pyteomics import mgf, ms2, mzml

from proteoscope import resources
from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.formats.writing import write_spectrum_file, written_formats
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.spectra.columns import Spectra

# pyteomics reads its vocabulary with psims if installed, which leaves the file open.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file.*psi-ms:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*psi-ms:pytest.PytestUnraisableExceptionWarning"),
]
FORMATS = [file_format.name.lower() for file_format in written_formats()]


@pytest.fixture(scope="module")
def spectra() -> Spectra:
    """Return spectra with all kinds of charges, with and without time, intensity and peaks, and numbers that need all their digits."""
    result = read_spectra([resources.path("samples", "BSA1.mzML.gz")])
    mask, time, height = result.charge_mask.copy(), result.retention_time.copy(), result.precursor_intensity.copy()
    mask[:6] = 0, 1 << 2, 1 << 2 | 1 << 3, 1 << 2 | NEGATIVE, 1 << 31, NEGATIVE
    time[10], height[11:20] = np.nan, np.float32([1e-12, 0.1, 1 / 3, 1e5, 123456.79, 16777216, 1e20, 3e29, 7])
    mz, intensity = result.mz.copy(), result.intensity.copy()
    mz[:3], intensity[:3] = (100.1 + 0.2, 100 + 1e-13, 1e3 / 3), np.float32((1e-30, 9.9e29, 1 / 3))
    mz[: result.offsets[1]].sort()
    return replace(result, charge_mask=mask, retention_time=time, precursor_intensity=height, mz=mz, intensity=intensity).only(
        np.setdiff1d(np.arange(len(result)), [7, len(result) - 1])
    )


@pytest.mark.parametrize("format", FORMATS)
def test_written_spectra_round_trip_to_the_bit(spectra: Spectra, tmp_path: Path, format: str) -> None:
    write_spectrum_file(tmp_path / f"out.{format}", spectra, threads=2)
    result = read_spectra([tmp_path / f"out.{format}"], takes_negative=True)
    for name in ("offsets", "mz", "intensity", "precursor_mz"):
        np.testing.assert_array_equal(getattr(result, name), getattr(spectra, name))
    # Text formats cannot express a negative ion without a charge.
    says_sign = (spectra.charge_mask != NEGATIVE) | (format == "mzml")
    np.testing.assert_array_equal(result.charge_mask[says_sign], spectra.charge_mask[says_sign])
    np.testing.assert_array_equal(result.scan, spectra.scan)
    np.testing.assert_allclose(result.retention_time, spectra.retention_time, rtol=1e-15)
    if format != "ms2":
        assert result.identifier == spectra.identifier
        np.testing.assert_array_equal(result.precursor_intensity, spectra.precursor_intensity)


@pytest.mark.parametrize("format", FORMATS)
def test_spectra_are_written_in_the_requested_order(spectra: Spectra, tmp_path: Path, format: str) -> None:
    rows = np.array([900, 3, 500, 4])
    out = tmp_path / "out"
    write_spectrum_file(out, spectra, format=format, rows=rows)
    result = read_spectra([out], takes_negative=True)
    np.testing.assert_array_equal(result.precursor_mz, spectra.precursor_mz[rows])
    for place, row in enumerate(rows.tolist()):
        np.testing.assert_array_equal(result.peaks(place)[0], spectra.peaks(row)[0])


@pytest.mark.parametrize("format", FORMATS)
def test_written_spectra_do_not_depend_on_batches_and_threads(
    spectra: Spectra, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_spectrum_file(tmp_path / "whole", spectra, format=format)
    monkeypatch.setattr("proteoscope.engine.formats.writing._PEAKS", 1000)
    write_spectrum_file(tmp_path / "cut", spectra, format=format, threads=3)
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


def test_pyteomics_reads_the_written_mzml(spectra: Spectra, tmp_path: Path) -> None:
    write_spectrum_file(tmp_path / "out.mzML", spectra)
    with mzml.MzML(str(tmp_path / "out.mzML"), use_index=True) as reader:
        assert len(reader) == len(spectra)
        for i, result in enumerate(reader):
            np.testing.assert_array_equal(result["m/z array"], spectra.peaks(i)[0])
            np.testing.assert_array_equal(result["intensity array"], spectra.peaks(i)[1])
            ion = result["precursorList"]["precursor"][0]["selectedIonList"]["selectedIon"][0]
            assert result["id"] == spectra.identifier[i] and ion["selected ion m/z"] == spectra.precursor_mz[i]
            assert ("negative scan" in result) == bool(spectra.charge_mask[i] & NEGATIVE)
            bits = int(spectra.charge_mask[i]) >> 1 << 1
            has_one_charge = bits.bit_count() == 1
            assert ion.get("charge state") == (bits.bit_length() - 1 if has_one_charge else None)
            assert np.float32(ion.get("peak intensity", 0)) == spectra.precursor_intensity[i]
            time = result["scanList"]["scan"][0].get("scan start time", np.nan)
            np.testing.assert_allclose(60 * float(time), spectra.retention_time[i], rtol=1e-15)
        # Reading by the index of the file detects offsets that are wrong by a byte.
        assert reader[spectra.identifier[700]]["index"] == 700


_PEERS = {
    "pyopenms": "e = o.MSExperiment(); o.MzMLFile().load(path, e); d = o.OnDiscMSExperiment(); assert d.openFile(path)\n"
    "rows = [(s.getNativeID(), s.getPrecursors()[0].getMZ(), s.getPrecursors()[0].getCharge(), *s.get_peaks()) for s in e]\n"
    "assert (d.getSpectrum(700).get_peaks()[0] == rows[700][3]).all()",
    "pymzml.run": "ions = [(s, s.selected_precursors[0]) for s in o.Reader(path)]\n"
    "own = [(s.ID, ion['mz'], ion.get('charge') or 0, s.mz, s.i) for s, ion in ions]\n"
    "rows = [(f'spectrum={name}', *more) for name, *more in own]\n"
    "assert (o.Reader(path)[own[700][0]].mz == own[700][3]).all()",
}


@pytest.mark.peers
@pytest.mark.skipif("PROTEOSCOPE_PEER_PYTHON" not in os.environ, reason="PROTEOSCOPE_PEER_PYTHON names no Python with pyopenms and pymzml")
@pytest.mark.parametrize("peer", _PEERS)
def test_openms_and_pymzml_read_the_written_mzml(spectra: Spectra, tmp_path: Path, peer: str) -> None:
    write_spectrum_file(tmp_path / "out.mzML", spectra)
    script = (
        f"import sys, hashlib, numpy as np, {peer} as o\npath = sys.argv[1]\n{_PEERS[peer]}\n"
        "mz, height = (np.concatenate([row[k] for row in rows]) for k in (3, 4))\n"
        "print('READ', [row[:3] for row in rows], hashlib.sha256(mz.astype('<f8').tobytes() + height.astype('<f4').tobytes()).hexdigest())"
    )
    command = [os.environ["PROTEOSCOPE_PEER_PYTHON"], "-W", "ignore", "-c", script, str(tmp_path / "out.mzML")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    message, _, digest = done.stdout.rpartition("READ ")[2].strip().rpartition(" ")
    bits = [int(mask) >> 1 << 1 for mask in spectra.charge_mask]
    charges = [bit.bit_length() - 1 if bit.bit_count() == 1 else 0 for bit in bits]
    result = ast.literal_eval(message)
    assert [row[:2] for row in result] == list(zip(spectra.identifier, spectra.precursor_mz.tolist(), strict=True))
    assert [charge for _, _, charge in result] == charges
    assert digest == hashlib.sha256(spectra.mz.astype("<f8").tobytes() + spectra.intensity.astype("<f4").tobytes()).hexdigest()


def test_written_mzml_lists_source_files(tmp_path: Path) -> None:
    (tmp_path / "a b.mgf").write_text("BEGIN IONS\nTITLE=x\nPEPMASS=500\nCHARGE=2+\n100 1\nEND IONS\n")
    write_spectrum_file(tmp_path / "out.mzML", read_spectra([tmp_path / "a b.mgf"]))
    (source,) = etree.parse(tmp_path / "out.mzML").iterfind(".//{*}sourceFile")
    terms = {term.get("accession"): term.get("value") for term in source}
    # The vocabulary's terms for spectrum identifiers, file format and checksum: the standard requires one of each.
    assert terms == {
        "MS:1000774": "",
        "MS:1001062": "",
        "MS:1000569": hashlib.sha1((tmp_path / "a b.mgf").read_bytes()).hexdigest(),
    }


def test_pyteomics_reads_the_written_mgf_and_ms2(spectra: Spectra, tmp_path: Path) -> None:
    usual = np.array([row for row in range(len(spectra)) if row not in (3, 5)])  # pyteomics reads no negative charges from MS2
    write_spectrum_file(tmp_path / "out.mgf", spectra, rows=usual)
    with mgf.read(str(tmp_path / "out.mgf"), use_index=False) as reader:
        for row, result in zip(usual.tolist(), reader, strict=True):
            np.testing.assert_array_equal(result["m/z array"], spectra.peaks(row)[0])
            assert result["params"]["pepmass"][0] == spectra.precursor_mz[row]
            assert result["params"]["title"] == spectra.identifier[row] and int(result["params"]["scans"]) == spectra.scan[row]
    write_spectrum_file(tmp_path / "out.ms2", spectra, rows=usual)
    with ms2.read(str(tmp_path / "out.ms2"), use_index=False) as reader:
        for row, result in zip(usual.tolist(), reader, strict=True):
            np.testing.assert_array_equal(result["m/z array"], spectra.peaks(row)[0])
            assert result["params"]["precursor m/z"] == spectra.precursor_mz[row]
            charges = [charge for charge in range(1, 32) if spectra.charge_mask[row] >> charge & 1]
            assert sorted(map(int, result["params"].get("charge", []))) == charges


def test_written_ms2_has_the_mass_of_the_protonated_peptide(tmp_path: Path) -> None:
    spectra = one_spectrum(charge_mask=np.array([1 << 1 | 1 << 3], np.uint32))
    write_spectrum_file(tmp_path / "out.ms2", spectra)
    lines = [line.split("\t") for line in (tmp_path / "out.ms2").read_text().splitlines() if line.startswith("Z")]
    assert [line[1] for line in lines] == ["1", "3"]
    assert [float(line[2]) for line in lines] == pytest.approx([500.0, 3 * 500.0 - 2 * 1.00727646688], abs=1e-9)


def one_spectrum(**changes: object) -> Spectra:
    """Return a spectrum of two peaks."""
    columns = {
        "files": ("a.mgf",),
        "file": np.zeros(1, np.int32),
        "identifier": ["first"],
        "scan": np.array([-1]),
        "index": np.array([0]),
        "retention_time": np.array([np.nan]),
        "precursor_mz": np.array([500.0]),
        "precursor_intensity": np.zeros(1, np.float32),
        "charge_mask": np.array([4], np.uint32),
        "offsets": np.array([0, 2]),
        "mz": np.array([100.0, 200.5]),
        "intensity": np.array([1.0, 1e6], np.float32),
    }
    return Spectra(**columns | changes)  # type: ignore[arg-type]


def several(names: list[str], scans: list[int]) -> Spectra:
    """Return spectra without peaks, from names and scans."""
    n = len(names)
    return one_spectrum(
        file=np.zeros(n, np.int32),
        identifier=names,
        scan=np.array(scans),
        index=np.arange(n),
        retention_time=np.full(n, np.nan),
        precursor_mz=np.full(n, 500.0),
        precursor_intensity=np.zeros(n, np.float32),
        charge_mask=np.full(n, 4, np.uint32),
        offsets=np.zeros(n + 1, np.int64),
        mz=np.empty(0),
        intensity=np.empty(0, np.float32),
    )


@pytest.mark.parametrize(
    ("names", "scans", "identifiers", "term"),
    [
        (["scan=4", "scan=2"], [4, 2], ["scan=4", "scan=2"], "scan number only nativeID format"),
        (['a <b> & "c"', "two\x0bwords"], [4, 2], ["scan=4", "scan=2"], "scan number only nativeID format"),
        (["same", "same"], [4, 4], ["index=0", "index=1"], "multiple peak list nativeID format"),
        (["scan=1", "scan=1"], [1, 1], ["index=0", "index=1"], "multiple peak list nativeID format"),
        (["frame=1 scan=2", "frame=1 scan=9"], [-1, -1], ["frame=1 scan=2", "frame=1 scan=9"], "Bruker TDF nativeID format"),
    ],
)
def test_written_mzml_identifiers_are_unique(tmp_path: Path, names: list[str], scans: list[int], identifiers: list[str], term: str) -> None:
    write_spectrum_file(tmp_path / "out.mzML", several(names, scans))
    validate(tmp_path / "out.mzML")
    root = etree.parse(tmp_path / "out.mzML").getroot()
    assert [element.get("id") for element in root.iter("{*}spectrum")] == identifiers
    assert term in {element.get("name") for element in root.iter("{*}cvParam")}
    titles = [element.get("value") for element in root.iter("{*}cvParam") if element.get("name") == "spectrum title"]
    assert titles == ([] if names == identifiers else [name.replace("\x0b", " ") for name in names])


def validate(path: Path) -> None:
    """Validate against the schema in the package psims."""
    result = importlib.util.find_spec("psims")
    if result is None or result.origin is None:
        pytest.skip("the package psims, which ships the PSI's schema, is not there")
    schema = Path(result.origin).parent / "validation" / "xsd" / "mzML1.1.2_idx.xsd"
    etree.XMLSchema(etree.parse(schema)).assertValid(etree.parse(path))


def test_written_mzml_is_valid_with_correct_index_and_digest(spectra: Spectra, tmp_path: Path) -> None:
    out = tmp_path / "out.mzML"
    write_spectrum_file(out, spectra, threads=2)
    validate(out)
    content = out.read_bytes()
    places = [(name.decode(), int(place)) for name, place in re.findall(rb'<offset idRef="([^"]*)">(\d+)<', content)]
    assert [name for name, _ in places] == spectra.identifier
    for name, place in places:
        assert content[place:].startswith(f'<spectrum index="{spectra.identifier.index(name)}" id="{name}"'.encode())
    (start,) = re.findall(rb"<indexListOffset>(\d+)<", content)
    assert content[int(start) :].startswith(b"<indexList ")
    before, _, digest = content.partition(b"<fileChecksum>")
    assert hashlib.sha1(before + b"<fileChecksum>").hexdigest() == digest[:40].decode()


def test_ms2_writer_renumbers_ambiguous_scans(tmp_path: Path) -> None:
    for scans in ([7, 7, 8], [7, -1, 8]):
        write_spectrum_file(tmp_path / "out.ms2", several(["a", "b\nc", "d"], scans))
        assert read_spectra([tmp_path / "out.ms2"]).scan.tolist() == [1, 2, 3]
    assert "I\tNativeID\tb c\n" in (tmp_path / "out.ms2").read_text()


def test_written_title_of_several_lines_becomes_one_line(tmp_path: Path) -> None:
    write_spectrum_file(tmp_path / "out.mgf", one_spectrum(identifier=["a\r\nEND IONS\nb"]))
    assert read_spectra([tmp_path / "out.mgf"]).identifier == ["a END IONS b"]


def test_cancelled_or_failed_writing_leaves_no_partial_file(spectra: Spectra, tmp_path: Path) -> None:
    progress = Progress(lambda event: progress.cancel() if event.done else None, interval=0)
    out = tmp_path / "out.mgf"
    out.write_text("former content")
    with pytest.raises(Cancelled):
        write_spectrum_file(out, spectra, progress=progress)
    assert [path.name for path in tmp_path.iterdir()] == ["out.mgf"] and out.read_text() == "former content"
    with pytest.raises(StorageError):
        write_spectrum_file(Path("/dev/full"), spectra, format="mgf")


@pytest.mark.parametrize("name", ["out.txt", "out.mzxml.gz", "out", "mzxml"])
def test_writing_of_spectra_rejects_unknown_formats(spectra: Spectra, tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match=r"expected a name that ends with \.mzml, \.mgf or \.ms2"):
        write_spectrum_file(tmp_path / name, spectra)
    assert not any(tmp_path.iterdir())
