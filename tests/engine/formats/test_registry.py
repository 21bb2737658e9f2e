"""A registry entry and a reader define a format: it is recognised, read, listed, described and exported."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.entry import Input
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats import read_spectra, registry
from proteoscope.engine.formats.reading import read_spectra as read_by_place
from proteoscope.engine.formats.recognition import recognise
from proteoscope.engine.formats.registry import FORMATS, Beginning, find_format, format_names, list_suffixes
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.reading import READERS
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.writers.mzidentml import _file_format, _spectra_called_by
from proteoscope.engine.structure_search.structures import sources_of
from proteoscope.engine.structures.building import structure_files
from proteoscope.engine.structures.reading import stem
from proteoscope.engine.structures.sources import files_in
from tests.toy_format import HEAD, TOY, write_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of a toy format, registered before the others."""
    monkeypatch.setattr(registry, "FORMATS", (TOY, *FORMATS))
    return write_toy(tmp_path / "RUN.Toy")


def test_new_format_needs_only_its_registry_entry(toy: Path) -> None:
    spectra = read_spectra([toy])
    assert len(spectra) == 5 and spectra.identifier == list("01234")
    np.testing.assert_array_equal(spectra.intensity[0::2], np.arange(1, 6))
    assert find_format("folder/run.TOYSPECTRA.gz") is TOY
    assert Input("spectra", "Spectra", "spectra", "SPECTRA").described.startswith("Toy, mzML, ")
    assert _file_format(find_format(str(toy))) == "", "a format needs no term"
    assert _spectra_called_by(str(toy)) == "scan"


def test_command_line_lists_a_registered_format(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identify", "--help"]) == 0
    assert "Toy, mzML, mzXML" in capsys.readouterr().out


def test_new_format_is_unknown_without_its_registry_entry(tmp_path: Path) -> None:
    path = tmp_path / "run.toy"
    path.write_bytes(HEAD)
    assert find_format(path.name) is None
    with pytest.raises(InputError, match="in no known format"):
        read_spectra([path])


def test_format_names_suffixes_and_xml_roots_are_unique() -> None:
    for values in (
        [file_format.name for file_format in FORMATS],
        [suffix for file_format in FORMATS for suffix in file_format.suffixes],
        [root for file_format in FORMATS for root in file_format.roots],
    ):
        assert len(set(values)) == len(values)
    assert all(suffix.startswith(".") and suffix == suffix.lower() for file_format in FORMATS for suffix in file_format.suffixes)
    for file_format in FORMATS:
        if file_format.content == "spectra":
            assert file_format.reader and bool(file_format.roots) != (file_format.is_like is not None), file_format.name


BEGINNINGS = {
    "FASTA": [b">sp|P1\nMKV", b"; a remark\n>P1\nMKV"],
    "MGF": [b"# remark\nBEGIN IONS\n", b"CHARGE=2+\n\n", b"  BEGIN IONS\r\nPEPMASS=5\r\n"],
    "MS2": [b"H\tCreationDate\tnow\n", b"S\t1\t1\t500.5\nZ\t2\t1000\n"],
    "DTA": [b"1000.5 2\n100 1\n", b"=== run.1.1.2.dta ===\n1000.5 2\n"],
    "PKL": [b"500.5 1e5 2\n100 1\n"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BEGINNINGS.items() for text in texts])
def test_text_formats_are_recognised_by_their_beginnings(name: str, text: bytes) -> None:
    assert (
        next(file_format.name for file_format in FORMATS if file_format.is_like is not None and file_format.is_like(Beginning(text)))
        == name
    )


def test_sample_file_content_matches_format_of_file_name() -> None:
    for name in ("BSA1.mzML.gz", "18Protein_SoCe_Tr_detergents_trace.fasta.gz"):
        with ByteSource(resources.path("samples", name)) as source:
            assert recognise(source) is find_format(name)


def test_format_registry_imports_no_heavy_modules() -> None:
    code = "import proteoscope.engine.formats.registry, sys; print([name for name in ('numpy', 'numba') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=resources.path().parent)
    assert done.stdout.strip() == "[]"
    assert read_spectra is read_by_place


@pytest.mark.parametrize("suffix", list_suffixes("structures"))
def test_structure_search_and_database_read_same_folder_files(tmp_path: Path, suffix: str) -> None:
    for place in ("b", "a", "deep/er/c", ".hidden"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{place}{suffix}").write_text("x")
        (tmp_path / f"{place}{suffix.upper()}.GZ").write_text("x")
    (tmp_path / "notes.txt").write_text("no structure")
    files = structure_files([tmp_path])
    assert [source.path for source in sources_of([tmp_path])] == files and len(files) == 6
    assert {stem(path) for path in files} == {"a", "b", "c"}


def test_structure_files_of_a_folder_are_selected_by_content(tmp_path: Path) -> None:
    record = "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504\n"
    for name in ("a.pdb", "b.pdb1", "c", "d.pdbqt", "deep/e.dat"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(record)
    (tmp_path / "f.pdb1.gz").write_bytes(gzip.compress(record.encode()))
    (tmp_path / "g.model").write_text("data_X\nloop_\n_atom_site.id\n1\n")
    for name in ("1.txt", "2.png", "3", "4.log"):
        (tmp_path / name).write_text("no structure")
    (tmp_path / "empty").write_text("")
    files, note = files_in(tmp_path)
    assert [path.name for path in files] == ["a.pdb", "b.pdb1", "c", "d.pdbqt", "f.pdb1.gz", "g.model", "e.dat"]
    assert note == f"{tmp_path}: left out 5 files of other content (1.txt, 2.png, 3 and 2 more)"
    assert [source.note for source in sources_of([tmp_path])] == [note] + [""] * 6
    shown = list[str]()
    assert structure_files([tmp_path], Progress(lambda event: shown.append(event.message))) == files
    assert [text for text in shown if text] == [note]


def test_folder_without_structure_files_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no structure")
    with pytest.raises(InputError, match=r"contains no structure files .*but 1 file of other content \(notes.txt\)"):
        files_in(tmp_path)


def test_structure_files_of_a_folder_may_have_different_suffixes(shared_cases: Path) -> None:
    files, note = files_in(shared_cases / "folder_mixed_suffixes" / "mix")
    assert [path.name for path in files] == ["base.pdb", "d1b0ba_"] and not note


def test_structure_search_and_database_read_same_list_files(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name in ("a.pdb", "more/b.pdb", "more/c.pdb"):
        (tmp_path / name).write_text("HEADER    toy\n")
    (tmp_path / "some.list").write_text("# what is wanted\na.pdb   # the first\n\nmore\na.pdb\n")
    expected = [tmp_path / name for name in ("a.pdb", "more/b.pdb", "more/c.pdb")]
    assert structure_files([tmp_path / "some.list"]) == [source.path for source in sources_of([tmp_path / "some.list"])] == expected


def test_format_names_are_joined_with_commas_and_or() -> None:
    assert format_names("spectra") == "mzML, mzXML, MGF, MS2, DTA or PKL" and format_names("reads") == "FASTQ"


def test_every_format_of_search_results_has_a_reader() -> None:
    assert {file_format.name for file_format in FORMATS if file_format.content == "identifications"} == set(READERS)
    assert all(callable(load()) for load in READERS.values())


def test_every_reader_and_writer_can_be_loaded() -> None:
    for file_format in FORMATS:
        assert all(load is None or callable(load()) for load in (file_format.reader, file_format.writer, file_format.library_reader)), (
            file_format.name
        )
