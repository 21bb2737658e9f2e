"""A small synthetic run of DDA-PASEF is read back with opentimspy.

No run of an instrument is available. AlphaTims and opentimspy describe the layout: tables in SQLite, and for each frame its length, the
number of its scans, and 32-bit numbers as four planes of bytes, compressed by zstd. The numbers are the counts of the scans, and for each
peak the difference of its time of flight from that of the previous peak, and its intensity.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.bruker_tdf import read_tdf
from proteoscope.engine.formats.vendor import find_converter, vendor_format
from proteoscope.engine.jobs.progress import Cancelled, Progress

SAMPLES, LOWEST, HIGHEST = 200_000, 100.0, 1700.0
N_SCANS = 50
PRECURSORS = [(1, 500.25, 500.75, 2, 1000.0), (2, None, 700.5, None, 50.0), (3, 833.1, 833.4, 3, 7.0)]
"""Id, monoisotopic and largest m/z, charge, intensity."""
ISOLATED = [(2, 5, 15, 1), (2, 20, 30, 2), (3, 5, 15, 1), (3, 31, 50, 3), (5, 20, 30, 2)]
"""Frame, first scan, end (exclusive) of the scans, precursor."""
Frame = dict[int, list[tuple[int, int]]]


def frames() -> dict[int, tuple[int, Frame]]:
    """Frames by number: type (0: MS1, 8: fragments), and times of flight and intensities by scan."""
    random = np.random.default_rng(4)
    results: dict[int, tuple[int, Frame]] = {}
    for number in range(1, 6):
        scans = {}
        for scan in range(0, N_SCANS, 1 if number != 4 else 3):
            tofs = np.sort(random.choice(900, 12, replace=False)) * 200 + 7
            scans[scan] = list(zip(tofs.tolist(), random.integers(1, 500, 12).tolist(), strict=True))
        results[number] = (0 if number in (1, 4) else 8, scans)
    # One ion in neighbouring times of flight and several scans is one peak; two ions with a valley between them are two.
    results[2][1][6] = [(50_000, 10), (50_001, 40), (50_002, 10), (90_000, 30), (90_001, 5), (90_002, 25)]
    results[3][1][7] = [(50_001, 40)]
    return results


def packed(scans: Frame) -> bytes:
    counts = [2 * len(scans.get(scan, [])) for scan in range(N_SCANS)]
    words = [N_SCANS, *counts[:-1]]
    for scan in range(N_SCANS):
        before = -1
        for tof, height in scans.get(scan, []):
            words += [tof - before, height]
            before = tof
    planes = np.array(words, "<u4").view(np.uint8).reshape(-1, 4).T.tobytes()
    data = pa.compress(planes, codec="zstd", asbytes=True)
    return struct.pack("<II", len(data) + 8, N_SCANS) + data


def write_run(folder: Path, measured: dict[int, tuple[int, Frame]] | None = None) -> Path:
    folder.mkdir()
    offsets, data = {}, b""
    for number, (_, scans) in (measured or frames()).items():
        offsets[number] = len(data)
        data += packed(scans)
    (folder / "analysis.tdf_bin").write_bytes(data)
    connection = sqlite3.connect(folder / "analysis.tdf")
    connection.executescript(
        "CREATE TABLE GlobalMetadata (Key TEXT PRIMARY KEY, Value TEXT);"
        "CREATE TABLE Frames (Id INTEGER PRIMARY KEY, Time REAL, Polarity TEXT, ScanMode INTEGER, MsMsType INTEGER, TimsId INTEGER,"
        " MaxIntensity INTEGER, SummedIntensities INTEGER, NumScans INTEGER, NumPeaks INTEGER, MzCalibration INTEGER, T1 REAL, T2 REAL,"
        " TimsCalibration INTEGER, PropertyGroup INTEGER, AccumulationTime REAL, RampTime REAL);"
        "CREATE TABLE Precursors (Id INTEGER PRIMARY KEY, LargestPeakMz REAL, AverageMz REAL, MonoisotopicMz REAL, Charge INTEGER,"
        " ScanNumber REAL, Intensity REAL, Parent INTEGER);"
        "CREATE TABLE PasefFrameMsMsInfo (Frame INTEGER, ScanNumBegin INTEGER, ScanNumEnd INTEGER, IsolationMz REAL, IsolationWidth REAL,"
        " CollisionEnergy REAL, Precursor INTEGER);"
    )
    metadata = {
        "MzAcqRangeLower": LOWEST,
        "MzAcqRangeUpper": HIGHEST,
        "DigitizerNumSamples": SAMPLES,
        "TimsCompressionType": 2,
        "OneOverK0AcqRangeLower": 0.6,
        "OneOverK0AcqRangeUpper": 1.6,
        "AcquisitionSoftware": "Bruker timsTOF",
        "SchemaVersionMajor": 3,
    }
    connection.executemany("INSERT INTO GlobalMetadata VALUES (?, ?)", [(key, str(value)) for key, value in metadata.items()])
    for number, (kind, scans) in (measured or frames()).items():
        heights = [height for peaks in scans.values() for _, height in peaks]
        row = (
            number,
            60.0 + number,
            "+",
            8,
            kind,
            offsets[number],
            max(heights),
            sum(heights),
            N_SCANS,
            len(heights),
            1,
            25.0,
            25.0,
            1,
            1,
            100.0,
            100.0,
        )
        connection.execute(f"INSERT INTO Frames VALUES ({','.join('?' * 17)})", row)
    for number, mono, largest, charge, intensity in PRECURSORS:
        connection.execute("INSERT INTO Precursors VALUES (?, ?, ?, ?, ?, 10, ?, 1)", (number, largest, largest, mono, charge, intensity))
    for frame, begin, end, precursor in ISOLATED:
        connection.execute("INSERT INTO PasefFrameMsMsInfo VALUES (?, ?, ?, 500, 2, 30, ?)", (frame, begin, end, precursor))
    connection.commit()
    connection.close()
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("opentimspy", reason="opentimspy is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))  # without msconvert, which would be preferred
    return write_run(tmp_path / "run.d")


def summed() -> list[dict[int, int]]:
    """Return the summed intensities of each precursor by time of flight, by the plain definition."""
    measured = frames()
    result: list[dict[int, int]] = []
    for number, *_ in PRECURSORS:
        of_one: dict[int, int] = defaultdict(int)
        for frame, begin, end, precursor in ISOLATED:
            for scan in range(begin, end):
                for tof, height in measured[frame][1].get(scan, []) if precursor == number else ():
                    of_one[tof] += height
        result.append(of_one)
    return result


def compute_mz(tof: float) -> float:
    return float((LOWEST**0.5 + (HIGHEST**0.5 - LOWEST**0.5) * tof / SAMPLES) ** 2)


def test_tdf_precursor_spectrum_is_the_sum_of_its_frames(run: Path) -> None:
    spectra = read_tdf(run, Progress())
    assert spectra.precursor_mz.tolist() == [500.25, 700.5, 833.1] and spectra.charge_mask.tolist() == [4, 0, 8]
    assert spectra.precursor_intensity.tolist() == [1000, 50, 7] and spectra.retention_time.tolist() == [62, 62, 63]
    assert spectra.identifier == ["frame=2 scan=5", "frame=2 scan=20", "frame=3 scan=31"]
    for row, expected in enumerate(summed()):
        mz, intensity = spectra.peaks(row)
        assert intensity.sum() == sum(expected.values()) and (np.diff(mz) > 0).all()
        if row:
            # No two times of flight are neighbours.
            assert intensity.tolist() == [expected[tof] for tof in sorted(expected)]
            np.testing.assert_allclose(mz, [compute_mz(tof) for tof in sorted(expected)], rtol=2e-6)


def test_tdf_peaks_of_neighbouring_flight_times_are_merged(run: Path) -> None:
    mz, intensity = read_tdf(run, Progress()).peaks(0)
    (ion,) = np.flatnonzero(np.abs(mz - compute_mz(50_001)) < 0.01)
    assert intensity[ion] == 100 and mz[ion] == pytest.approx(
        (10 * compute_mz(50_000) + 80 * compute_mz(50_001) + 10 * compute_mz(50_002)) / 100, rel=2e-6
    )
    two = np.flatnonzero(np.abs(mz - compute_mz(90_001)) < 0.05)
    assert intensity[two].tolist() == [30, 30]
    assert mz[two].tolist() == pytest.approx([compute_mz(90_000), (5 * compute_mz(90_001) + 25 * compute_mz(90_002)) / 30], rel=2e-6)


def test_every_search_reads_timstof_runs_with_a_warning(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.bruker_tdf._PRECURSORS", 2)
    messages: list[str] = []
    spectra = read_spectra([run], progress=Progress(lambda event: messages.append(event.message)))
    expected = read_tdf(run, Progress())
    np.testing.assert_array_equal(spectra.mz, expected.mz)
    np.testing.assert_array_equal(spectra.intensity, expected.intensity)
    assert spectra.identifier == expected.identifier and spectra.files == (str(run),)
    assert any("experimental" in message and "approximate" in message for message in messages)
    file_format = vendor_format(run)
    assert file_format is not None and find_converter(file_format) == ("opentimspy", "")


def test_read_tdf_stops_at_cancel(run: Path) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        read_tdf(run, progress)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DROP TABLE Precursors", "has no table Precursors"),
        ("ALTER TABLE Precursors RENAME TO P; CREATE VIEW Precursors AS SELECT * FROM P", "has no table Precursors"),
        ("DELETE FROM PasefFrameMsMsInfo", "has no MS2 spectra"),
        ("DELETE FROM PasefFrameMsMsInfo; UPDATE Frames SET MsMsType = 9 WHERE MsMsType = 8", "diaPASEF"),
        ("DELETE FROM Precursors WHERE Id = 2", "are inconsistent"),
        ("DELETE FROM Frames WHERE Id = 3", "are inconsistent"),
        ("UPDATE PasefFrameMsMsInfo SET ScanNumEnd = 4", "are inconsistent"),
        ("UPDATE PasefFrameMsMsInfo SET ScanNumEnd = 1e12", "are inconsistent"),
        ("UPDATE Frames SET NumPeaks = 4000000000", "expands to more than 73,168 peaks"),
        ("UPDATE Precursors SET Id = 9223372036854775807 WHERE Id = 2", "are inconsistent"),
        (
            "ALTER TABLE Precursors ADD COLUMN x AS (zeroblob(900000000))",
            "has no table Precursors, or it is a view or has computed columns",
        ),
        (
            "ALTER TABLE GlobalMetadata ADD COLUMN x AS (zeroblob(900000000))",
            "has no table GlobalMetadata, or it is a view or has computed columns",
        ),
        ("UPDATE Frames SET Time = zeroblob(40000000)", "cannot be read .*too big"),
        ("UPDATE Frames SET Id = 1e18 WHERE Id = 3; UPDATE PasefFrameMsMsInfo SET Frame = 1e18 WHERE Frame = 3", "are inconsistent"),
        ("UPDATE Frames SET Time = 'noon'", "cannot be read"),
        ("UPDATE Frames SET TimsId = 1000000", "cannot be read"),
        ("UPDATE Frames SET NumScans = 3", "cannot be read"),
        ("DELETE FROM GlobalMetadata", "cannot be read"),
    ],
)
def test_damaged_tdf_run_is_reported_in_one_sentence(run: Path, change: str, words: str) -> None:
    connection = sqlite3.connect(run / "analysis.tdf")
    connection.executescript(change)
    connection.close()
    with pytest.raises(InputError, match=words) as raised:
        read_tdf(run, Progress())
    assert str(raised.value).startswith(str(run)) and "\n" not in str(raised.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("charge", ["1e300", "9223372036854775807", "-2", "32", "2.5"])
def test_read_tdf_counts_charges_out_of_bounds(run: Path, charge: str) -> None:
    expected = read_tdf(run, Progress())
    connection = sqlite3.connect(run / "analysis.tdf")
    connection.executescript(f"UPDATE Precursors SET Charge = {charge}, Intensity = 1e300 WHERE Id != 2")
    connection.close()
    messages: list[str] = []
    spectra = read_tdf(run, Progress(lambda event: messages.append(event.message)))
    assert spectra.charge_mask.tolist() == [0, 0, 0] and not spectra.precursor_intensity[[0, 2]].any()
    np.testing.assert_array_equal(spectra.mz, expected.mz)
    (text,) = filter(None, messages)
    assert f"{run}: the charge of 2 precursors is not a whole number" in text
    assert f"precursor 1, {float(charge):g}" in text


@pytest.mark.parametrize("name", ["analysis.tdf", "analysis.tdf_bin"])
@pytest.mark.parametrize("content", [None, b"", b"garbage" * 100])
def test_missing_or_corrupt_tdf_files_are_rejected(run: Path, name: str, content: bytes | None) -> None:
    (run / name).unlink()
    if content is not None:
        (run / name).write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_tdf(run, Progress())
    assert "\n" not in str(raised.value)


def test_randomly_damaged_tdf_run_is_read_or_rejected(run: Path) -> None:
    random = np.random.default_rng(7)
    whole = {name: (run / name).read_bytes() for name in ("analysis.tdf", "analysis.tdf_bin")}
    outcomes = set()
    for _ in range(300):
        for name, content in whole.items():
            changed = np.frombuffer(content, np.uint8).copy()
            at = random.integers(0, len(changed), random.integers(0, 6))
            changed[at] = random.choice([0, 255, random.integers(256)], len(at))
            (run / name).write_bytes(changed.tobytes()[: random.integers(1, len(changed)) if random.random() < 0.1 else None])
        try:
            outcomes.add(len(read_tdf(run, Progress())) > 0)
        except InputError as error:
            outcomes.add("\n" not in str(error) and str(error).startswith(str(run)) and "refused")
    assert outcomes == {True, "refused"}


def test_missing_opentimspy_is_reported_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("proteoscope.engine.formats.vendor.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"msconvert.*pip install opentimspy"):
        read_spectra([write_run(tmp_path / "run.d")])
