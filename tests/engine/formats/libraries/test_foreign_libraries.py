"""Libraries of other programs: keys before names, separators of peaks, GNPS's placeholders, and unreadable entries."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

PEAKS = [(70.25, 10.0), (76.5, 35.0), (80.125, 7.0), (91.0, 2.0)]


def read(path: Path, text: str) -> tuple[SpectralLibrary, tuple[str, ...]]:
    """Return the library in a text, and the messages."""
    path.write_text(text)
    progress = RecordingProgress(Progress())
    library = read_libraries([path], progress)
    return library, progress.messages


def list_peaks(library: SpectralLibrary, row: int) -> list[tuple[float, float]]:
    """Return the peaks of an entry."""
    some = slice(library.offsets[row], library.offsets[row + 1])
    return list(zip(library.mz[some].tolist(), library.intensity[some].tolist(), strict=True))


def msp(keys: list[str], gap: str, *, first: int = 0) -> str:
    """Return four entries with the keys in the given order, except for the entries before `first`, which begin with NAME."""
    values = {
        "NAME": "Compound {0}",
        "PRECURSORMZ": "{1}.5",
        "INCHIKEY": "KEY-{0}",
        "FORMULA": "C{1}",
        "CHARGE": "{2}",
        "COMMENTS": '"a={0}"',
    }
    entries = []
    for i in range(4):
        order = keys if i >= first else ["NAME", *(key for key in keys if key != "NAME")]
        lines = [f"{key}: {values[key].format(i, 100 + i, 1 + i % 2)}" for key in order]
        entries.append("\n".join([*lines, "NUM PEAKS: 2", f"50.5 {i + 1}", "60.5 1"]) + "\n")
    return gap.join(entries)


@pytest.mark.parametrize("gap", ["\n", "", "\n\n\n"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("order", list(itertools.permutations(("NAME", "PRECURSORMZ", "INCHIKEY", "FORMULA")))[::3])
def test_msp_entry_accepts_keys_in_any_order(tmp_path: Path, order: tuple[str, ...], first: int, gap: str) -> None:
    library, messages = read(tmp_path / "a.msp", msp([*order, "CHARGE", "COMMENTS"], gap, first=first))
    assert messages == () and library.name.to_pylist() == [f"Compound {i}" for i in range(4)]
    assert library.inchikey.to_pylist() == [f"KEY-{i}" for i in range(4)] and library.formula.to_pylist() == [
        f"C{100 + i}" for i in range(4)
    ]
    assert library.precursor_mz.tolist() == [100.5, 101.5, 102.5, 103.5] and library.charge.tolist() == [1, 2, 1, 2]
    assert [list_peaks(library, i)[0] for i in range(4)] == [(50.5, i + 1) for i in range(4)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [80, 333, 1 << 20])
def test_msp_file_read_in_blocks_has_complete_entries(tmp_path: Path, end: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.formats.sources.blocks.__defaults__", (size,))
    text = "\n".join(msp(["INCHIKEY", "PRECURSORMZ", "NAME", "FORMULA"], "\n").replace("Compound", f"C{k}") for k in range(5))
    (tmp_path / "a.msp").write_bytes(text.replace("\n", end).encode())
    library = read_libraries([tmp_path / "a.msp"])
    assert library.name.to_pylist() == [f"C{k} {i}" for k in range(5) for i in range(4)]
    assert library.inchikey.to_pylist() == [f"KEY-{i}" for i in range(4)] * 5 and library.skipped.n == 0


@pytest.mark.parametrize(
    "text",
    [
        "Name: a\nPrecursorMZ: 5.5\nNum Peaks: 0\n\nPRECURSORMZ: 6.5\nNAME: b\nNum Peaks: 1\n50 1\n",
        "Name: a\nPrecursorMZ: 5.5\nNum Peaks: 0\nNAME: b\nPRECURSORMZ: 6.5\nNum Peaks: 1\n50 1\n",
        "Name: a\nPrecursorMZ: 5.5\n\nPRECURSORMZ: 6.5\nNAME: b\nNum Peaks: 1\n50 1\n",
        "PRECURSORMZ: 5.5\nNAME: a\nNum Peaks: 1\n1x 1\n\nPRECURSORMZ: 6.5\nNAME: b\nNum Peaks: 1\n50 1\n",
    ],
)
def test_msp_entry_after_an_entry_without_peaks_is_read(tmp_path: Path, text: str) -> None:
    library, _ = read(tmp_path / "a.msp", text)
    assert library.name.to_pylist() == ["b"] and library.precursor_mz.tolist() == [6.5] and library.skipped.n == 1


def test_matchms_msp_entry_without_name_is_read(shared_cases: Path) -> None:
    library = read_libraries([shared_cases / "msp_name_not_first" / "real_save_as_msp_from_mgf.msp"])
    assert library.name.to_pylist() == ["Dicrotophos"] and library.precursor_mz.tolist() == [238.0844]
    assert library.inchikey.to_pylist() == ["VEENJGZXVHKXNB-UHFFFAOYSA-N"] and len(library.mz) == 5


PEAK_TEXTS = {
    "lines": "70.25 10\n76.5 35\n80.125 7\n91 2\n",
    "colons": "70.25:10 76.5:35 80.125:7 91:2\n",
    "colon lines": "70.25:10\n76.5:35\n80.125:7\n91:2\n",
    "spaced colons": "70.25 : 10 76.5 : 35 80.125 : 7 91 : 2\n",
    "brackets": "(70.25, 10) (76.5, 35) (80.125, 7)\n(91, 2)\n",
    "brackets and blanks": "(70.25 10) (76.5 35)\n(80.125 7) (91 2)\n",
    "brackets and commas": "(70.25,10),(76.5,35),(80.125,7),(91,2)\n",
    "several": "70.25 10  76.5 35\n80.125 7 91 2\n",
    "tabs": "70.25\t10\t76.5\t35\n80.125\t7\t91\t2\n",
    "semicolons": "70.25 10; 76.5 35; 80.125 7; 91 2;\n",
    "commas": "70.25,10\n76.5,35\n80.125,7\n91,2\n",
    "several with commas": "70.25,10 76.5,35\n80.125,7 91,2\n",
    "comma and blank": "70.25, 10; 76.5, 35;\n80.125, 7; 91, 2\n",
    "commas between": "70.25 10, 76.5 35, 80.125 7, 91 2\n",
    "annotated": '70.25 10 "a 3"\n76.5 35 "b"\n80.125 7 "c/1.5"\n91 2 "?"\n',
    "numbers after": "70.25 10 3 4\n76.5 35 3 4\n80.125 7 5 6\n91 2 1 2\n",
    "one number after": "70.25 10 3\n76.5 35 3\n80.125 7 5\n91 2 1\n",
}


@pytest.mark.parametrize("name", PEAK_TEXTS)
def test_msp_peaks_are_read_with_any_separator(tmp_path: Path, name: str) -> None:
    head = "Name: {}\nPrecursorMZ: 300.5\nNum Peaks: {}\n"
    text = head.format("a", 4) + PEAK_TEXTS[name] + "\n" + head.format("b", 1) + "50.5 1\n"
    library, messages = read(tmp_path / "a.msp", text)
    assert messages == () and [list_peaks(library, i) for i in range(2)] == [PEAKS, [(50.5, 1.0)]]


@pytest.mark.parametrize("text", ["70.25 10 76.5 35\n", "70.25 10, 76.5 35\n"])
def test_ambiguous_msp_peaks_without_count_are_rejected(tmp_path: Path, text: str) -> None:
    library, messages = read(tmp_path / "a.msp", f"Name: a\nPrecursorMZ: 300.5\n{text}\nName: b\nPrecursorMZ: 300.5\n50.5 1\n")
    assert library.name.to_pylist() == ["b"] and "read as one peak or as several" in messages[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("PrecursorMZ: 300.5", "PrecursorMZ: 300,5"), "has a comma instead of a decimal point"),
        (("PrecursorMZ: 300.5", "PrecursorMZ: 300.5x"), "the m/z of its precursor is not a number"),
        (("PrecursorMZ: 300.5", "PrecursorMZ: 300.5\nPRECURSOR_MZ: 301"), "two different values of PRECURSOR_MZ"),
        (("Charge: 2", "Charge: two"), "its charge is not a whole number"),
        (("Num Peaks: 1", "Num Peaks: one"), "its number of peaks is not a whole number"),
        (("50.5 1", "50.5 1,158.3"), "a number in a peak has a comma"),
    ],
)
def test_unreadable_msp_entry_is_counted(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    good = "Name: a\nPrecursorMZ: 300.5\nCharge: 2\nNum Peaks: 1\n50.5 1\n\n"
    library, messages = read(tmp_path / "a.msp", good + good.replace(*change) + good)
    assert len(library) == 2 and reason in library.skipped.entries[0].reason and library.skipped.entries[0].line == 7
    assert "1 of 3 entries left out" in messages[0]


@pytest.mark.parametrize(
    ("text", "seconds"), [("5.5", 330), ("5.5 min", 330), ("33 s", 33), ("33sec", 33), ("N/A", np.nan), ("-1", np.nan)]
)
def test_msp_retention_time_is_converted_by_unit(tmp_path: Path, text: str, seconds: float) -> None:
    library, messages = read(tmp_path / "a.msp", f"Name: a\nPrecursorMZ: 300.5\nRETENTIONTIME: {text}\nNum Peaks: 1\n50.5 1\n")
    np.testing.assert_equal(library.retention_time, [seconds])
    assert messages == ()


def test_unreadable_msp_retention_time_is_counted(tmp_path: Path) -> None:
    library, messages = read(tmp_path / "a.msp", "Name: a\nPrecursorMZ: 300.5\nRT: 4.6 (5.0 in paper)\nNum Peaks: 1\n50.5 1\n")
    assert np.isnan(library.retention_time[0]) and "1 entry, the first in line 1: its retention time cannot be read" in messages[0]


GNPS = "BEGIN IONS\nPEPMASS=336.87\nCHARGE=1\nMSLEVEL=2\nSEQ={seq}\nIONMODE=Positive\n{name}\n50.5 1\nEND IONS\n\n"


@pytest.mark.parametrize("seq", ["*..*", "..", "*.*", "", "N/A", "*._.*", "-"])
def test_gnps_placeholder_sequence_is_read_as_no_peptide(tmp_path: Path, seq: str) -> None:
    library, messages = read(tmp_path / "a.mgf", GNPS.format(seq=seq, name="NAME=Compound 0 M+H\nSMILES=C"))
    assert library.name.to_pylist() == ["Compound 0 M+H"] and library.peptidoform.to_pylist() == [None] and messages == ()


@pytest.mark.parametrize(("name", "is_read"), [("NAME=a", True), ("SMILES=C", True), ("INCHI=x", True), ("SPECTRUMID=x", False)])
def test_invalid_gnps_sequence_is_counted(tmp_path: Path, name: str, is_read: bool) -> None:
    text = GNPS.format(seq="no peptide 7", name=name) + GNPS.format(seq="PEPTIDEK", name="NAME=b")
    library, messages = read(tmp_path / "a.mgf", text)
    assert library.peptidoform.to_pylist() == ([None] if is_read else []) + ["PEPTIDEK"]
    assert ("1 entry, the first in line 1: no peptide can be read from its SEQ" in messages[0]) == is_read
    assert library.skipped.n == (not is_read)


def test_gnps_ms1_spectra_are_skipped_and_counted(tmp_path: Path) -> None:
    good = GNPS.format(seq="*..*", name="NAME=a")
    library, messages = read(tmp_path / "a.mgf", good + good.replace("MSLEVEL=2", "MSLEVEL=1"))
    assert len(library) == 1 and "MSLEVEL=1" in messages[0]


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("IONMODE: Negative", -1),
        ("Ion_mode: N", -1),
        ("IONMODE: Positive", 1),
        ("IONMODE: negative\nCHARGE: 1", -1),
        ("Comment: x", 0),
        ("CHARGE: 1-", -1),
        ("POLARITY: -", -1),
        ("PRECURSORTYPE: [M-H]-", -1),
        ("IONMODE: N/A", 0),
    ],
)
def test_msp_polarity_is_read(tmp_path: Path, text: str, polarity: int) -> None:
    library, _ = read(tmp_path / "a.msp", f"Name: a\nPrecursorMZ: 300.5\n{text}\nNum Peaks: 1\n50.5 1\n")
    assert library.polarities.tolist() == [polarity]
