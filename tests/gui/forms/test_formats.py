"""Tests that the window knows the registered formats, and folders of structures as searches accept them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.formats import registry
from proteoscope.engine.formats.vendor import THERMO_MAGIC
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.structures.building import structure_files
from proteoscope.gui.forms.file_inspection import FILE_CATEGORIES, FileInspector, file_kind
from proteoscope.gui.forms.file_inspection import _inspect as inspect_paths
from proteoscope.gui.forms.file_list import FileList
from proteoscope.gui.theme import Theme
from tests.toy_format import TOY, write_toy


def test_file_kind_recognises_a_newly_registered_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_toy(tmp_path / "run.toy")
    assert inspect_paths([tmp_path]).files == []
    monkeypatch.setattr(registry, "FORMATS", (TOY, *registry.FORMATS))
    kind = file_kind(path)
    assert (kind.content, kind.format, kind.problem) == ("spectra", "Toy", "")
    assert inspect_paths([tmp_path]).files == [kind]
    assert "*.toy *.toy.gz" in FILE_CATEGORIES["spectra"].name_filter


def test_folder_of_structures_is_listed_once_with_its_file_count(tmp_path: Path) -> None:
    for place in ("a.pdb", "b.ent.gz", "deep/er/c.mmcif", ".hidden.pdb", "notes.txt"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("x")
    assert file_kind(tmp_path).format == f"folder with {len(structure_files([tmp_path]))} structure files"
    assert [file.path for file in inspect_paths([tmp_path]).files] == [tmp_path]


def test_unknown_file_error_lists_accepted_formats(tmp_path: Path, qtbot: QtBot, theme: Theme) -> None:
    (tmp_path / "greeting.txt").write_text("Dear reader,\n")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n")
    (tmp_path / "figure.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (tmp_path / "run.bin").write_bytes(bytes(range(1, 200)) + bytes(20))
    survey_of_files = FileInspector(None)
    spectra = next(input_file for input_file in search_of_kind("identify").inputs if input_file.name == "spectra")
    files = FileList(spectra, survey_of_files)
    qtbot.addWidget(files)
    for name, seems in (
        ("greeting.txt", "is text in no known format"),
        ("paper.pdf", "PDF"),
        ("figure.png", "is a PNG picture"),
        ("run.bin", "contains binary data in no known format"),
    ):
        files.clear()
        files.add([tmp_path / name])
        qtbot.waitUntil(lambda: bool(files.message.text()))
        assert seems in files.message.text() and "mzML" in files.message.text(), files.message.text()
        assert "FASTA" not in files.message.text() and "PIN" not in files.message.text()
    survey_of_files.close()


def test_vendor_runs_in_a_folder_are_listed_separately(tmp_path: Path) -> None:
    for name in ("waters.raw/_FUNC001.DAT", "waters.raw/_HEADER.TXT", "runs/bruker.d/analysis.tdf", "runs/thermo.raw", "notes.raw"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(THERMO_MAGIC if "thermo" in name else b"some words")
    descriptions = {file.path.relative_to(tmp_path).as_posix(): file.problem + file.format for file in inspect_paths([tmp_path]).files}
    assert set(descriptions) == {"waters.raw", "runs/bruker.d", "runs/thermo.raw"}
    for name, maker in (("waters.raw", "Waters"), ("runs/bruker.d", "Bruker"), ("runs/thermo.raw", "Thermo")):
        assert maker in descriptions[name]
