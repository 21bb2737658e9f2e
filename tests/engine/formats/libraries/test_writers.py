"""Written libraries have the right content according to this program's readers and a plain parser."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyteomics import mass

from proteoscope.engine.errors import ParameterError, StorageError
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.libraries.writing import LIBRARY_FORMATS, library_format, write_library
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.engine.spectra.spectral_library import PROTEIN_SEPARATOR
from tests.engine.formats.libraries.written import entries

SUFFIX = {"msp": ".msp", "mzspeclib": ".mzlib.txt", "blib": ".blib"}


def batches(*parts):
    yield from parts


@pytest.mark.parametrize("format", LIBRARY_FORMATS)
@pytest.mark.parametrize("origin", ["merged", "predicted"])
def test_written_libraries_round_trip(format, origin, tmp_path):
    # blib has no termini: modifications of termini are written at the terminal residues.
    parts = [entries(n, seed, origin=origin, ends=format != "blib") for n, seed in ((40, 1), (1, 2), (25, 3))]
    path = tmp_path / f"library{SUFFIX[format]}"
    write_library(path, batches(*parts), format, Progress(), threads=3)
    library = read_libraries([path])
    assert library.skipped.n == 0 and len(library) == 66
    first = 0
    for part in parts:
        actual = library.take(np.arange(first, first + len(part)))
        first += len(part)
        assert actual.peptidoform.to_pylist() == part.peptidoforms().to_pylist()
        assert actual.proteins.to_pylist() == part.proteins.to_pylist()
        np.testing.assert_array_equal(actual.charge, part.charge)
        np.testing.assert_allclose(actual.precursor_mz, part.precursor_mz, atol=6e-6)
        np.testing.assert_allclose(actual.retention_time, part.retention_time, rtol=1e-12)
        np.testing.assert_array_equal(actual.n_members, part.n_members)
        np.testing.assert_array_equal(actual.offsets, part.offsets)
        np.testing.assert_array_equal(actual.mz, part.mz)
        np.testing.assert_array_equal(actual.intensity, part.intensity)


def test_written_msp_has_ions_and_q_value(tmp_path):
    part = entries(30, 5)
    write_library(tmp_path / "library.msp", batches(part), "msp", Progress())
    texts = (tmp_path / "library.msp").read_text().split("\n\n")
    for i, text in enumerate(texts[:-1]):
        score = re.search(r"Qvalue=(\S+)", text)
        assert (float(score[1]) if score else np.nan) == pytest.approx(part.q_value[i], nan_ok=True)
        lines = text.split("Num peaks: ")[1].splitlines()[1:]
        for line, k in zip(lines, range(part.offsets[i], part.offsets[i + 1]), strict=True):
            name = re.fullmatch(r'[\d.e-]+\t[\d.e-]+\t"(?:([by])(\d+)(?:\^(\d+))?/(-?[\d.e-]+)|\?)"', line)
            assert name, line
            if not part.ions.series[k]:
                assert name[1] is None
                continue
            ion = (ord(name[1]), int(name[2]), int(name[3] or 1))
            assert ion == (part.ions.series[k], part.ions.number[k], part.ions.charge[k])
            assert float(name[4]) == pytest.approx(part.ions.error[k], abs=5.1e-5)


def test_written_msp_has_lines_for_precursor_and_charge(tmp_path):
    part = entries(30, 5)
    write_library(tmp_path / "library.msp", batches(part), "msp", Progress())
    text = (tmp_path / "library.msp").read_text()
    result = re.findall(r"^PrecursorMZ: (\S+)\nCharge: (\d+)$", text, re.MULTILINE)
    assert [float(mz) for mz, _ in result] == pytest.approx(part.precursor_mz.tolist(), abs=6e-6)
    assert [int(charge) for _, charge in result] == part.charge.tolist()


def test_written_mzspeclib_has_the_mass_of_the_analyte(tmp_path):
    part = entries(30, 5)
    write_library(tmp_path / "library.mzlib.txt", batches(part), "mzspeclib", Progress())
    text = (tmp_path / "library.mzlib.txt").read_text()
    results = [float(text) for text in re.findall(r"^MS:1001117\|theoretical neutral mass=(\S+)$", text, re.MULTILINE)]
    expected = [
        mass.fast_mass(sequence) + carried
        for sequence, carried in zip(part.sequence.to_pylist(), part.modifications.mass().tolist(), strict=True)
    ]
    assert results == pytest.approx(expected, abs=2e-5)
    assert "MS:1003207" not in text  # its value is a term unknown to the program


def test_written_blib_lists_the_spectrum_files(tmp_path):
    part = replace(entries(30, 6, origin="best"), files=("a/one.mzML", "b/two.mgf"), file=np.arange(30) % 2)
    write_library(tmp_path / "library.blib", batches(part), "blib", Progress())
    query = "SELECT fileName FROM RefSpectra JOIN SpectrumSourceFiles ON fileID = SpectrumSourceFiles.id ORDER BY RefSpectra.id"
    with closing(sqlite3.connect(tmp_path / "library.blib")) as connection:
        assert [name for (name,) in connection.execute(query)] == ["a/one.mzML", "b/two.mgf"] * 15


def test_written_blib_has_the_tables_that_skyline_reads(tmp_path):
    part = entries(30, 6)
    write_library(tmp_path / "library.blib", batches(part), "blib", Progress())
    with closing(sqlite3.connect(tmp_path / "library.blib")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT numSpecs, majorVersion, minorVersion FROM LibInfo").fetchall() == [(30, 1, 10)]
        rows = connection.execute("SELECT peptideSeq, peptideModSeq, score, scoreType FROM RefSpectra ORDER BY id").fetchall()
        masses = dict(connection.execute("SELECT RefSpectraID, sum(mass) FROM Modifications GROUP BY 1").fetchall())
        assert {name for (name,) in connection.execute("SELECT accession FROM Proteins")} == {f"sp|P{k}|X;{k}" for k in range(4)}
    carried = part.modifications.mass()
    for i, (sequence, noted, score, kind) in enumerate(rows):
        assert re.sub(r"\[[^]]*\]", "", noted) == sequence
        assert sum(map(float, re.findall(r"\[([^]]*)\]", noted))) == pytest.approx(carried[i], abs=0.21)
        assert masses.get(i + 1, 0.0) == pytest.approx(carried[i], abs=1e-9)
        assert (score, kind) == ((0.0, 0) if np.isnan(part.q_value[i]) else (pytest.approx(part.q_value[i]), 19))


@pytest.mark.parametrize("format", LIBRARY_FORMATS)
def test_cancelled_library_export_leaves_existing_file_unchanged(format, tmp_path):
    path = tmp_path / f"library{SUFFIX[format]}"
    path.write_text("former content")
    stopped = Progress()

    def cut():
        yield entries(20, 7)
        stopped.cancel()
        yield entries(20, 8)

    with pytest.raises(Cancelled):
        write_library(path, cut(), format, stopped)
    assert path.read_text() == "former content" and [file.name for file in tmp_path.iterdir()] == [path.name]
    with pytest.raises(StorageError):
        write_library(tmp_path, batches(entries(2, 9)), format, Progress())


def test_library_formats_are_recognised_by_suffix():
    assert [library_format(f"a{suffix}") for suffix in SUFFIX.values()] == list(SUFFIX)
    with pytest.raises(ParameterError, match="not a format for writing libraries"):
        library_format("library.sptxt")


def test_written_msp_escapes_commas_and_quotes_in_proteins(tmp_path):
    part = replace(entries(3, 6), proteins=pa.array(["a,b", f'"c{PROTEIN_SEPARATOR}d;e', None]))
    progress = RecordingProgress(Progress())
    write_library(tmp_path / "library.msp", batches(part), "msp", progress)
    assert re.findall(r'Protein="(.*?)"', (tmp_path / "library.msp").read_text()) == ["1/a%2Cb", "2/%22c,d;e"]
    assert any("library.msp: 2 entries name proteins with commas or quotes" in text for text in progress.messages)
    assert read_libraries([tmp_path / "library.msp"]).proteins.to_pylist() == ["a%2Cb", f"%22c{PROTEIN_SEPARATOR}d;e", None]
