"""Malicious libraries are refused or read in part, within memory limits, and none of their code is run."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.jobs.progress import Progress

PEAKS = zlib.compress(np.array([100.5, 200.5]).tobytes()), np.array([1, 2], np.float32).tobytes()
SCHEMA = (
    "CREATE TABLE RefSpectra (id INTEGER PRIMARY KEY, peptideSeq TEXT, precursorMZ REAL, precursorCharge INTEGER, peptideModSeq TEXT,"
    " copies INTEGER, numPeaks INTEGER, retentionTime REAL);"
    "CREATE TABLE RefSpectraPeaks (RefSpectraID INTEGER, peakMZ BLOB, peakIntensity BLOB);"
    "CREATE TABLE Modifications (id INTEGER PRIMARY KEY, RefSpectraID INTEGER, position INTEGER, mass REAL);"
    "CREATE TABLE Proteins (id INTEGER PRIMARY KEY, accession TEXT);"
    "CREATE TABLE RefSpectraProteins (RefSpectraId INTEGER, ProteinId INTEGER);"
)
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "


def blib(path: Path, then: str = "", n: int = 3, *, before: str = "", n_peaks: int = 2, peaks: tuple[bytes, bytes] = PEAKS) -> Path:
    """Return a library with `n` entries, changed by SQL."""
    with closing(sqlite3.connect(path)) as made:
        made.executescript(before + SCHEMA)
        rows = [(i, "ACMK", 250.5, 2, "AC[+57.0]M[+16.0]K", 4, n_peaks, 1.5) for i in range(1, n + 1)]
        made.executemany("INSERT INTO RefSpectra VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        made.executemany("INSERT INTO RefSpectraPeaks VALUES (?, ?, ?)", [(i, *peaks) for i in range(1, n + 1)])
        made.commit()
        made.executescript(then)
        made.commit()
    return path


@pytest.mark.parametrize("size", [512, 65536])
def test_blib_of_any_page_size_is_read(tmp_path: Path, size: int) -> None:
    assert len(read_libraries([blib(tmp_path / "a.blib", before=f"PRAGMA page_size = {size};")])) == 3


LEFT_OUT = {
    "text for numbers": "UPDATE RefSpectra SET precursorMZ = 'a' WHERE id = 1; UPDATE RefSpectra SET precursorCharge = 'two' WHERE id = 2",
    "a negative count": "UPDATE RefSpectra SET numPeaks = -5 WHERE id < 3",
    "blobs for numbers": "UPDATE RefSpectra SET precursorMZ = x'00ff', numPeaks = x'02' WHERE id < 3",
    "no finite mass": "UPDATE RefSpectra SET precursorMZ = 9e999 WHERE id = 1; UPDATE RefSpectra SET precursorMZ = -9e999 WHERE id = 2",
    "no peaks": "UPDATE RefSpectraPeaks SET peakMZ = NULL WHERE RefSpectraID < 3",
    "text for peaks": "UPDATE RefSpectraPeaks SET peakIntensity = 'many' WHERE RefSpectraID < 3",
    "a charge beyond all": "UPDATE RefSpectra SET precursorCharge = 9223372036854775807 WHERE id < 3",
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_blib_entries_with_values_of_wrong_type_are_skipped(tmp_path: Path, name: str) -> None:
    library = read_libraries([blib(tmp_path / "a.blib", LEFT_OUT[name])])
    assert len(library) == 1 and library.skipped.n == 2 and library.peptidoform.to_pylist() == ["AC[Carbamidomethyl]M[Oxidation]K"]


def test_blib_reader_ignores_invalid_optional_numbers(tmp_path: Path) -> None:
    path = blib(tmp_path / "a.blib", "UPDATE RefSpectra SET copies = -3, retentionTime = 'late'; UPDATE Proteins SET accession = 7")
    library = read_libraries([path])
    assert library.n_members.tolist() == [1, 1, 1] and np.isnan(library.retention_time).all()


REFUSED = {
    "computed peaks": (
        "DROP TABLE RefSpectraPeaks; CREATE TABLE RefSpectraPeaks (RefSpectraID INTEGER, peakMZ BLOB AS (zeroblob(16000000)),"
        " peakIntensity BLOB AS (zeroblob(8000000))); UPDATE RefSpectra SET numPeaks = 2000000;"
        " INSERT INTO RefSpectraPeaks (RefSpectraID) SELECT id FROM RefSpectra",
        "no table RefSpectraPeaks, or it is a view",
    ),
    "a virtual table": (
        "DROP TABLE RefSpectraPeaks; CREATE VIRTUAL TABLE RefSpectraPeaks USING fts5(RefSpectraID, peakMZ, peakIntensity)",
        "no table Ref",
    ),
    "other columns": ("ALTER TABLE RefSpectraPeaks RENAME COLUMN peakMZ TO mz", "no such column"),
    "millions of modifications": (
        NUMBERS.format(200_000) + "INSERT INTO Modifications SELECT NULL, i, 1, 1.0 FROM n",
        "Modifications has far more rows",
    ),
    "millions of proteins": (NUMBERS.format(200_000) + "INSERT INTO Proteins SELECT NULL, 'P' FROM n", "Proteins has far more rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_not_libraries_are_rejected_in_one_line(tmp_path: Path, name: str) -> None:
    then, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason) as error:
        read_libraries([blib(tmp_path / "a.blib", then)])
    assert "\n" not in str(error.value)


def test_blib_reader_runs_no_views_or_triggers(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS RefSpectraID, 1 AS position, 1.0 AS mass FROM n"
    then = (
        f"DROP TABLE Modifications; CREATE VIEW Modifications AS {endless}; DROP TABLE Proteins; CREATE VIEW Proteins AS {endless};"
        "CREATE TRIGGER t BEFORE DELETE ON RefSpectra BEGIN SELECT load_extension('x'); END"
    )
    assert len(read_libraries([blib(tmp_path / "a.blib", then)])) == 3


def test_blib_reader_warns_of_unread_write_ahead_log(tmp_path: Path) -> None:
    path = blib(tmp_path / "a.blib")
    (tmp_path / "a.blib-wal").write_bytes(b"x")
    messages: list[str] = []

    class Recording(Progress):
        def message(self, text: str, level: str = "info") -> None:
            messages.append(f"{level}: {text}")

    assert len(read_libraries([path], Recording())) == 3
    assert any("a.blib-wal, which is not read" in message and message.startswith("warning") for message in messages)


def measure_memory(path: Path) -> tuple[str, int]:
    """Return the result of reading a file, and the megabytes beyond those of reading a small one."""
    script = (
        "import json, sys; from pathlib import Path; from proteoscope.engine.errors import InputError\n"
        "from proteoscope.engine.formats.libraries.reading import read_libraries\n"
        "def peak(): return int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
        "read_libraries([sys.argv[1]]); before = peak()\n"
        "try: read_libraries([sys.argv[2]]); message = 'read'\n"
        "except InputError as error: message = str(error)\n"
        "print(json.dumps([message, (peak() - before) // 1024]))\n"
    )
    small = blib(path.with_name("small.blib"))
    done = subprocess.run([sys.executable, "-c", script, str(small), str(path)], check=True, capture_output=True, text=True)
    message, megabytes = json.loads(done.stdout)
    return message, megabytes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured as on Linux")
def test_blib_peaks_that_unpack_to_gigabytes_are_rejected(tmp_path: Path) -> None:
    n = 1 << 20
    peaks = zlib.compress(np.full(n, 100.0).tobytes()), zlib.compress(np.ones(n, np.float32).tobytes())
    message, megabytes = measure_memory(blib(tmp_path / "a.blib", n=300, n_peaks=n, peaks=peaks))
    assert re.search(r"expands to more than [0-9,]+ peaks", message)
    assert megabytes < 500  # all peaks of a batch would take 5 GB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured as on Linux")
def test_mzspeclib_json_with_too_many_objects_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.mzlib.json"
    head = b'{"format_version": "1.0", "attributes": [{"accession": "MS:1003186", "name": "x", "value": "1.0"}], "spectra": [{"mzs": ['
    path.write_bytes(head + b"[]," * 12_000_000 + b"1]}]}")
    message, megabytes = measure_memory(path)
    assert "longer than 16 MB" in message
    assert megabytes < 700  # as Python objects, all of it would take 1 GB


ODD = (
    None,
    "",
    "x",
    "é" * 3000,
    "a\0b",
    "C[+1e9]K",
    "AC[+57.0]M[+16.0]K" * 100,
    "K" * 1200,
    b"",
    b"\xff\0",
    bytes(3000),
    zlib.compress(b"x"),
    PEAKS[0],
    np.array([np.nan, 5.0]).tobytes(),
    np.array([-1.0, 1e300]).tobytes(),
    0,
    -1,
    3,
    999,
    1 << 31,
    (1 << 63) - 1,
    -(1 << 63),
    0.0,
    -0.5,
    1e300,
    float("inf"),
    1e-320,
)
COLUMNS = {
    "RefSpectra": ("peptideSeq", "precursorMZ", "precursorCharge", "peptideModSeq", "copies", "numPeaks", "retentionTime"),
    "RefSpectraPeaks": ("RefSpectraID", "peakMZ", "peakIntensity"),
    "Modifications": ("RefSpectraID", "position", "mass"),
    "Proteins": ("accession",),
    "RefSpectraProteins": ("RefSpectraId", "ProteinId"),
}


def test_blib_with_randomly_changed_values_is_read_or_rejected(tmp_path: Path) -> None:
    """Try two hundred libraries, each with up to four values or column types of another kind."""
    chance, n_read, n_refused = random.Random(33), 0, 0
    whole = blib(
        tmp_path / "whole.blib",
        "INSERT INTO Modifications VALUES (1, 1, 2, 57.02), (2, 1, 3, 15.99); INSERT INTO Proteins VALUES (1, 'P1'), (2, 'P2');"
        "INSERT INTO RefSpectraProteins VALUES (1, 1), (2, 1), (2, 2)",
    ).read_bytes()
    for number in range(200):
        path = tmp_path / f"{number}.blib"
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as made:
            for _ in range(chance.randint(1, 4)):
                table = chance.choice(list(COLUMNS))
                column = chance.choice(COLUMNS[table])
                if chance.random() < 0.2:
                    # SQLite converts values to the type of their column, but not in a column without a type.
                    made.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
                    made.execute(f"ALTER TABLE {table} ADD COLUMN {column} {chance.choice(('', 'BLOB', 'TEXT'))}")
                    made.execute(f"UPDATE {table} SET {column} = other")
                    made.execute(f"ALTER TABLE {table} DROP COLUMN other")
                some = "" if chance.random() < 0.3 else f" WHERE rowid = {chance.randint(1, 3)}"
                made.execute(f"UPDATE {table} SET {column} = ?{some}", (chance.choice(ODD),))
            made.commit()
        try:
            library = read_libraries([path])
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000, number
            n_refused += 1
        else:
            assert 0 < len(library) <= 3 * 3 and (library.intensity > 0).all() and np.isfinite(library.mz).all(), number
            assert (np.diff(library.offsets) > 0).all() and library.name.validate(full=True) is None, number
            n_read += 1
        path.unlink()
    assert n_read > 70 and n_refused > 20
