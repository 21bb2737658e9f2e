"""Libraries of other programs against a plain parser, and one line for hostile files."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.recognition import recognise
from proteoscope.engine.formats.registry import select_formats
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR, SpectralLibrary

MSP = """Name: ACDM(O)K/2
Comment: Mods=3/0,A,Acetyl/1,C,CAM/3,M,Oxidation Parent=400.25 Protein="sp|P1|X some words" Nreps=3/4 RT=2.5
Num peaks: 3
300.5\t10\t"y2/0.01"
100.25\t20\t"b1"
200\t0.5\t"?"

NAME: Caffeine
PRECURSORMZ: 195.0877
PRECURSORTYPE: [M+H]+
IONMODE: Positive
FORMULA: C8H10N4O2
INCHIKEY: RYYVLZVUVIJVGH-UHFFFAOYSA-N
RETENTIONTIME: 1.5
Num Peaks: 2
138.0662 100; 110.0713 50;
"""
MGF = """BEGIN IONS
TITLE=first
SEQ=AC(+57.02)K
PEPMASS=200.5 10
CHARGE=2+
RTINSECONDS=12.5
100 1
90 2
END IONS
BEGIN IONS
NAME=negative
PEPMASS=300
CHARGE=1-
ADDUCT=[M-H]-
50 1
END IONS
"""
SPECLIB = """<mzSpecLib>
MS:1003186|library format version=1.0
<AttributeSet Spectrum=all>
MS:1003072|spectrum origin type=MS:1003074|predicted spectrum
<AttributeSet Spectrum=DECOY>
MS:1003072|spectrum origin type=MS:1003195|shuffle-and-reposition decoy spectrum
<AttributeSet Analyte=all>
<Spectrum=1>
MS:1003061|library spectrum name=one
MS:1003059|number of peaks=2
[1]MS:1000894|retention time=2.0
[1]UO:0000000|unit=UO:0000031|minute
<Analyte=1>
MS:1003270|proforma peptidoform ion notation=[Acetyl]-AC[UNIMOD:4]K/2
MS:1003053|theoretical monoisotopic m/z=210.6
<Peaks>
100.5\t10\tb1
200.5\t20\t?

<Spectrum=2>
MS:1003212|library attribute set name=DECOY
MS:1003061|library spectrum name=two
<Analyte=1>
MS:1003169|proforma peptidoform sequence=PEK
<Peaks>
100\t10
"""


def _written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _read(folder: Path, name: str, content: str | bytes) -> SpectralLibrary:
    return read_libraries([_written(folder, name, content)])


def _peaks(library: SpectralLibrary, row: int) -> list[tuple[float, float]]:
    some = slice(library.offsets[row], library.offsets[row + 1])
    return list(zip(library.mz[some].tolist(), library.intensity[some].tolist(), strict=True))


def _blib(path: Path, peaks: bytes, intensity: bytes, n_peaks: int = 2, *, extra: str = "", encoding: str = "UTF-8") -> Path:
    with closing(sqlite3.connect(path)) as made:
        made.executescript(
            f"PRAGMA encoding = '{encoding}';"
            "CREATE TABLE RefSpectra (id INTEGER PRIMARY KEY, peptideSeq TEXT, precursorMZ REAL, precursorCharge INTEGER,"
            " peptideModSeq TEXT, copies INTEGER, numPeaks INTEGER, retentionTime REAL);"
            "CREATE TABLE RefSpectraPeaks (RefSpectraID INTEGER, peakMZ BLOB, peakIntensity BLOB);"
            "CREATE TABLE Modifications (id INTEGER PRIMARY KEY, RefSpectraID INTEGER, position INTEGER, mass REAL);"
            "INSERT INTO RefSpectra VALUES (1, 'ACMK', 250.5, 2, 'AC[+57.0]M[+16.0]K', 4, 2, 1.5);"
            "INSERT INTO Modifications VALUES (1, 1, 2, 57.021464), (2, 1, 3, 15.994915);" + extra
        )
        made.execute("UPDATE RefSpectra SET numPeaks = ?", (n_peaks,))
        made.execute("INSERT INTO RefSpectraPeaks VALUES (1, ?, ?)", (peaks, intensity))
        made.commit()
    return path


PACKED = zlib.compress(np.array([100.5, 200.5]).tobytes()), np.array([1, 2], np.float32).tobytes()


def test_msp_peptides_and_compounds_are_read(tmp_path: Path) -> None:
    library = _read(tmp_path, "a.msp", MSP)
    assert library.name.to_pylist() == ["ACDM(O)K/2", "Caffeine"]
    assert library.peptidoform.to_pylist() == ["A[Acetyl]C[Carbamidomethyl]DM[Oxidation]K", None]
    assert library.sequence.to_pylist() == ["ACDMK", None] and library.proteins.to_pylist() == ["sp|P1|X", None]
    assert library.formula.to_pylist() == [None, "C8H10N4O2"] and library.adduct.to_pylist() == [None, "[M+H]+"]
    assert library.inchikey.to_pylist() == [None, "RYYVLZVUVIJVGH-UHFFFAOYSA-N"]
    assert library.charge.tolist() == [2, 1] and library.precursor_mz.tolist() == [400.25, 195.0877]
    assert library.retention_time.tolist() == [150.0, 90.0] and library.n_members.tolist() == [3, 1]
    assert _peaks(library, 0) == [(100.25, 20), (200, 0.5), (300.5, 10)] and _peaks(library, 1) == [(110.0713, 50), (138.0662, 100)]


def test_msp_library_is_equal_for_any_line_end_and_encoding(tmp_path: Path) -> None:
    plain = _read(tmp_path, "a.msp", MSP)
    for name, text in (
        ("b.msp", MSP.replace("\n", "\r\n").encode()),
        ("c.msp", MSP.replace("\n", "\r").encode()),
        ("d.msp", b"\xef\xbb\xbf" + MSP.encode()),
        ("e.msp", MSP.replace("\n\n", "\n").encode()),
    ):
        other = _read(tmp_path, name, text)
        assert other.peptidoform.equals(plain.peptidoform) and (other.mz == plain.mz).all(), name
    assert _read(tmp_path, "f.msp", MSP.replace("Caffeine", "Caféine").encode("latin-1")).name[1].as_py() == "Caféine"


@pytest.mark.parametrize("nothing", ["0", "-3", "1e-60"])
def test_library_peaks_without_intensity_are_left_out(tmp_path: Path, nothing: str) -> None:
    """1e-60 is 0 in the 32 bits of an intensity; an entry with only such peaks is skipped."""
    entry = "Name: {}\nPrecursorMZ: 400\nNum Peaks: {}\n{}\n"
    peaks = f"100 {nothing}\n200 5\n300 {nothing}\n"
    library = _read(tmp_path, "a.msp", entry.format("some", 3, peaks) + entry.format("none", 1, f"100 {nothing}\n"))
    assert library.name.to_pylist() == ["some"] and _peaks(library, 0) == [(200, 5)]
    assert [skipped.reason for skipped in library.skipped.entries] == ["it has no peak"]


def test_mgf_library_entries_have_peptidoforms_or_names(tmp_path: Path) -> None:
    library = _read(tmp_path, "a.mgf", MGF)
    assert library.peptidoform.to_pylist() == ["AC[Carbamidomethyl]K", None] and library.name.to_pylist() == ["first", "negative"]
    assert library.charge.tolist() == [2, -1] and library.precursor_mz.tolist() == [200.5, 300.0]
    assert library.retention_time[0] == 12.5 and _peaks(library, 0) == [(90, 2), (100, 1)]


def test_mzspeclib_attribute_sets_apply_to_entries(tmp_path: Path) -> None:
    library = _read(tmp_path, "a.mzSpecLib.txt", SPECLIB)
    assert library.peptidoform.to_pylist() == ["[Acetyl]-AC[Carbamidomethyl]K", "PEK"]
    assert library.is_decoy.tolist() == [False, True] and library.charge.tolist() == [2, 0]
    assert library.precursor_mz[0] == 210.6 and np.isnan(library.precursor_mz[1]) and library.retention_time[0] == 120
    assert _peaks(library, 0) == [(100.5, 10), (200.5, 20)]


def test_mzspeclib_text_and_json_agree(tmp_path: Path) -> None:
    def term(accession: str, value: object, **more: str) -> dict:
        return {"accession": accession, "name": "x", "value": value, **more}

    made = {
        "attributes": [term("MS:1003186", "1.0")],
        "clusters": [],
        "spectra": [
            {
                "attributes": [
                    term("MS:1003061", "one"),
                    term("MS:1000894", 2.0, cv_param_group="1"),
                    term("UO:0000000", "minute", value_accession="UO:0000031", cv_param_group="1"),
                ],
                "analytes": {"1": {"attributes": [term("MS:1003270", "[Acetyl]-AC[UNIMOD:4]K/2"), term("MS:1003053", 210.6)], "id": "1"}},
                "mzs": [100.5, 200.5],
                "intensities": [10, 20],
            },
            {
                "attributes": [term("MS:1003061", "two"), term("MS:1003212", "DECOY")],
                "analytes": {"1": {"attributes": [term("MS:1003169", "PEK")], "id": "1"}},
                "mzs": [100],
                "intensities": [10],
            },
        ],
        "spectrum_attribute_sets": {"all": [], "DECOY": [term("MS:1003072", "decoy", value_accession="MS:1003195")]},
    }
    result, text = _read(tmp_path, "a.mzSpecLib.json", json.dumps(made, indent=1)), _read(tmp_path, "a.mzSpecLib.txt", SPECLIB)
    for column in ("name", "peptidoform", "sequence"):
        assert getattr(result, column).equals(getattr(text, column))
    for column in ("charge", "is_decoy", "precursor_mz", "retention_time", "mz", "intensity", "offsets"):
        np.testing.assert_array_equal(getattr(result, column), getattr(text, column))


_TRANSITIONS = (
    "PrecursorMz\tProductMz\tLibraryIntensity\tModifiedPeptideSequence\tPeptideSequence\tPrecursorCharge\n"
    "400.2\t300.1\t100\t_PEPK_\tPEPK\t2\n400.2\t300.1\t100\t{}\tACDK\t2\n"
)
_JSON = json.dumps(
    {
        "attributes": [{"accession": "MS:1003186", "name": "x", "value": "1.0"}],
        "spectra": [
            {"attributes": [{"accession": "MS:1003061", "name": "x", "value": name}], "analytes": {}, "mzs": [1], "intensities": [1]}
            for name in ("first", "second")
        ],
    }
)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.mzSpecLib.txt", SPECLIB.replace("-AC[UNIMOD:4]K", "-AC[UNIMOD:4K"), "line 8, its peptide cannot be read"),
        ("a.mzSpecLib.txt", SPECLIB.replace("1003169", "1000888").replace("PEK", "P#K"), "line 20, its peptide cannot be read"),
        ("a.mzSpecLib.json", _JSON.replace("[1]", '["x"]', 1), "line 1, one of its peaks is not a number"),
        ("a.mzSpecLib.json", _JSON.replace("[1]", "[[1], 2]", 1), "line 1, one of its peaks is not a number"),
        ("a.tsv", _TRANSITIONS.format("_AC(UniMod:4DK_"), "line 3, its peptide cannot be read"),
        ("a.tsv", _TRANSITIONS.format("_AC[Unheard of]DK_"), "line 3, a modification of its peptide is not known and has no mass"),
    ],
)
def test_error_names_the_unreadable_library_entry(tmp_path: Path, name: str, content: str, reason: str) -> None:
    progress = RecordingProgress(Progress())
    n_read = len(read_libraries([_written(tmp_path, name, content)], progress))
    (message,) = progress.messages
    assert message.endswith(f"1 of {n_read + 1} entries left out; the first: {reason}")


def test_msp_name_without_readable_peptide_is_a_compound(tmp_path: Path) -> None:
    library = _read(tmp_path, "a.msp", MSP.replace("ACDM(O)K/2", "A..K/2"))
    assert library.name.to_pylist() == ["A..K/2", "Caffeine"]
    assert library.charge[0] == 2
    assert library.peptidoform.to_pylist() == [None, None]


def test_mzspeclib_json_that_is_not_utf8_is_rejected_by_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 3: the text is not UTF-8"):
        _read(tmp_path, "a.mzSpecLib.json", _JSON.encode().replace(b'"x"', b'\n\n"B\xe4r"'))


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_blib_is_recognised_in_every_encoding_of_sqlite(tmp_path: Path, encoding: str) -> None:
    plain = read_libraries([_blib(tmp_path / "a.blib", *PACKED)])
    other = read_libraries([_blib(tmp_path / "b.blib", *PACKED, encoding=encoding)])
    assert other.peptidoform.equals(plain.peptidoform) and (other.mz == plain.mz).all()


def test_blib_modifications_are_read_from_masses_or_rounded_text(tmp_path: Path) -> None:
    library = read_libraries([_blib(tmp_path / "a.blib", *PACKED)])
    assert library.peptidoform.to_pylist() == ["AC[Carbamidomethyl]M[Oxidation]K"] and library.retention_time.tolist() == [90.0]
    assert _peaks(library, 0) == [(100.5, 1), (200.5, 2)] and library.n_members.tolist() == [4]
    without = read_libraries([_blib(tmp_path / "b.blib", *PACKED, extra="DELETE FROM Modifications;")])
    assert without.peptidoform.equals(library.peptidoform), "the rounded masses mean the same"


@pytest.mark.parametrize(
    "head",
    [
        "PrecursorMz\tProductMz\tLibraryIntensity\tdecoy\tFullUniModPeptideName\tPrecursorCharge\tUniprotID",
        "PrecursorMz\tFragmentMz\tRelativeIntensity\tdecoy\tModifiedPeptide\tPrecursorCharge\tUniProtIds",
    ],
)
def test_transition_list_gives_one_entry_per_peptide_and_charge(tmp_path: Path, head: str) -> None:
    forms = ("(UniMod:1)AC(UniMod:4)K", "PEK") if "Uniprot" in head else ("_[Acetyl (Protein N-term)]AC[Carbamidomethyl (C)]K_", "_PEK_")
    rows = [
        (400.5, 200.5, 1, 0, forms[0], 2, "P1,P2"),
        (300.5, 100.5, 5, 1, forms[1], 1, "P3"),
        (400.5, 100.5, 0.5, 0, forms[0], 2, "P1,P2"),
    ]
    library = _read(tmp_path, "a.tsv", "\n".join([head, *("\t".join(map(str, row)) for row in rows)]) + "\n")
    assert library.peptidoform.to_pylist() == ["[Acetyl]-AC[Carbamidomethyl]K", "PEK"] and library.charge.tolist() == [2, 1]
    assert library.is_decoy.tolist() == [False, True] and library.proteins.to_pylist() == [f"P1{PROTEIN_SEPARATOR}P2", "P3"]
    assert _peaks(library, 0) == [(100.5, 0.5), (200.5, 1)] and library.precursor_mz.tolist() == [400.5, 300.5]


def test_several_library_files_are_concatenated(tmp_path: Path) -> None:
    files = [_written(tmp_path, "a.msp", MSP), _written(tmp_path, "b.mgf", MGF)]
    library = read_libraries(files)
    assert library.sources == tuple(files) and library.source.tolist() == [0, 0, 1, 1] and library.number.tolist() == [1, 2, 1, 2]


BROKEN = {
    "cut off": (MSP[: MSP.index("110.0713")], 1, "its number of peaks differs from the declared"),
    "a number": (MSP.replace("100.25\t20", "100.25\tmany"), 1, "number in a peak cannot be read"),
    "not a number": (MSP.replace("100.25\t20", "100.25\tnan"), 1, "not a number or is out of"),
    "beyond": (MSP.replace("100.25\t20", "1e300\t20"), 1, "out of bounds"),
    "negative m/z": (MSP.replace("100.25\t20", "-100.25\t20"), 1, "out of bounds"),
    "announced": (MSP.replace("Num peaks: 3", "Num peaks: 1000000000"), 1, "its number of peaks differs from the declared"),
    "charge": (MSP.replace("K/2", "K/99"), 1, "its charge is beyond"),
    "modification": (MSP.replace("CAM", "Unlisted"), 1, "modification of its peptide is not known"),
    "modifications": (MSP.replace("Mods=3/", "Mods=7/"), 1, "modifications of its peptide cannot be read"),
    "outside": (MSP.replace("/3,M,", "/30,M,"), 1, "lies outside its peptide"),
    "no peak": (re.sub(r"Num peaks: 3\n(.*\n){3}", "Num peaks: 0\n", MSP), 1, "has no peak"),
    "mass": (MSP.replace("195.0877", "-5"), 2, ""),
    "a long line": (MSP.replace("some words", "w" * 3_000_000), 1, "one of its lines is longer"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_library_entries_are_skipped_and_reported(tmp_path: Path, name: str) -> None:
    text, n_left, reason = BROKEN[name]
    library = _read(tmp_path, "a.msp", text)
    assert len(library) == n_left and library.skipped.n == 2 - n_left
    if reason:
        assert reason in library.skipped.entries[0].reason and library.skipped.entries[0].line in (1, 8)


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "only broken": (MSP[: MSP.index("NAME")].replace("Num peaks: 3", "Num peaks: 9"), "line 1.*has no usable entry"),
    "no entries": ("Name: \n", "has no usable entry"),
    "nul": (b"Name: a\0b\nNum peaks: 1\n1 1\n", "binary data"),
    "deep JSON": (b'{"MS:1003186": 1, "x": "MS:1003186", "attributes": "MS:1003186", "y": ' + b"[" * 100_000, "JSON is broken"),
    "JSON cut off": (b'{"format_version": "MS:1003186", "a": "MS:1003186", "spectra": [{"mzs": [1', "JSON is broken"),
    "no spectra": (b'{"a": "MS:1003186"}', "no list of spectra"),
    "a database": (b"SQLite format 3\0 RefSpectra " + b"\xff" * 5000, "database cannot be read"),
    "a FASTA file": (b">P1\nPEPTIDE\n", "not a spectral library"),
    "a cut table": (b"PrecursorMz\tProductMz\tLibraryIntensity\n1\t2\t3\n", "no column FullUniModPeptideName"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_without_library_entries_are_rejected_in_one_line(tmp_path: Path, name: str) -> None:
    content, reason = HOSTILE[name]
    with pytest.raises(InputError, match=reason) as error:
        _read(tmp_path, "a", content)
    assert "\n" not in str(error.value) and len(str(error.value)) < 1000


def test_code_in_an_untrusted_blib_is_not_run(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(40_000_000), 9)
    view = "ALTER TABLE RefSpectraPeaks RENAME TO hidden; CREATE VIEW RefSpectraPeaks AS SELECT * FROM hidden;"
    with pytest.raises(InputError, match="cannot be unpacked"):
        read_libraries([_blib(tmp_path / "bomb.blib", bomb, PACKED[1])])
    with pytest.raises(InputError, match="numbers is missing"):
        read_libraries([_blib(tmp_path / "many.blib", *PACKED, n_peaks=10**9)])
    path = _blib(tmp_path / "view.blib", *PACKED)
    with closing(sqlite3.connect(path)) as made:
        made.executescript(view)
    with pytest.raises(InputError, match="no table RefSpectraPeaks"):
        read_libraries([path])
    endless = _blib(tmp_path / "product.blib", *PACKED)
    with closing(sqlite3.connect(endless)) as made:  # every spectrum has all peaks
        made.executescript(
            "CREATE TABLE copy AS SELECT * FROM RefSpectra; DROP TABLE RefSpectra; ALTER TABLE copy RENAME TO RefSpectra;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
            " INSERT INTO RefSpectra SELECT RefSpectra.* FROM RefSpectra, n;"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
            " INSERT INTO RefSpectraPeaks SELECT 1, NULL, NULL FROM n;"
        )
    with pytest.raises(InputError, match=r"expands to|interrupted|no entry"):
        read_libraries([endless])


def _found(pattern: str, text: str) -> str:
    result = re.search(pattern, text)
    assert result is not None
    return result[1]


def test_libraries_of_other_programs_are_read(shared_data: Path) -> None:
    folder = shared_data / "libraries"
    for file_format in select_formats("libraries"):
        for path in sorted(folder.glob(f"*{file_format.suffixes[0]}")):
            with ByteSource(path) as source:
                assert recognise(source).content == "libraries", path
    path = folder / "nist-bsa_consensus.msp"
    library = read_libraries([path])
    entries = [entry for entry in re.split(r"\n\n(?=Name:)", path.read_text().strip()) if entry]
    assert len(library) == len(entries) == 725
    for row, entry in enumerate(entries):
        name, announced, modified = (_found(pattern, entry) for pattern in (r"Name: (.*)", r"Num peaks: (\d+)", r" Mods=(\d+)"))
        peaks = sorted(
            (float(mz), float(np.float32(height))) for mz, height in re.findall(r"^([\d.]+)\t([\d.eE+]+)\t", entry, re.MULTILINE)
        )
        assert library.name[row].as_py() == name and library.charge[row] == int(name.rpartition("/")[2])
        assert library.sequence[row].as_py() == re.sub(r"\(.*?\)", "", name.partition("/")[0])
        assert _peaks(library, row) == peaks and len(peaks) == int(announced)
        assert library.peptidoform[row].as_py().count("[") == int(modified)


@pytest.mark.parametrize(("n_attributes", "n_named", "is_read"), [(3, 8000, True), (1000, 1, True), (1001, 1, False)])
def test_mzspeclib_limit_counts_each_attribute_set_once(tmp_path: Path, n_attributes: int, n_named: int, is_read: bool) -> None:
    proteins = "".join(f"MS:1000885|protein accession=P{i}\n" for i in range(n_attributes))
    named = "MS:1003212|library attribute set name=many\n" * n_named
    path = tmp_path / "x.mzlib.txt"
    path.write_text(
        f"<mzSpecLib>\nMS:1003186|library format version=1.0\n<AttributeSet Spectrum=many>\n{proteins}<Spectrum=1>\n{named}"
        "MS:1000744|selected ion m/z=500.1\n<Analyte=1>\nMS:1003270|proforma peptidoform ion notation=PEPTIDEK/2\n<Peaks>\n"
        "100.1\t5\n200.1\t6\n300.1\t7\n\n"
    )
    if is_read:
        (result,) = read_libraries([path]).proteins.to_pylist()
        assert result == PROTEIN_SEPARATOR.join(f"P{i}" for i in range(n_attributes))
        return
    with pytest.raises(InputError, match=r"line 1005: .*its attribute sets contain more than 1,000"):
        read_libraries([path])
