"""The window knows the formats of the registry, and folders of structures as searches take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from proteoscope.engine.formats import registry
from proteoscope.engine.formats.vendor import THERMO_MAGIC
from proteoscope.engine.structures.building import structure_files
from proteoscope.gui.forms.file_survey import SORTS, file_kind
from proteoscope.gui.forms.file_survey import _survey as survey
from tests.toy_format import TOY, write_toy


def test_a_new_format_is_known_by_its_line_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_toy(tmp_path / "run.toy")
    assert [kind.format for kind in survey([tmp_path]).files] == ["MGF"], "its suffix is of no format, and its content looks like one"
    monkeypatch.setattr(registry, "FORMATS", (TOY, *registry.FORMATS))
    kind = file_kind(path)
    assert (kind.sort, kind.format, kind.problem) == ("spectra", "Toy", "")
    assert survey([tmp_path]).files == [kind]
    assert "*.toy *.toy.gz" in SORTS["spectra"].name_filter


def test_a_folder_counts_the_structures_that_a_search_takes_of_it_and_stands_for_those_below(tmp_path: Path) -> None:
    for place in ("a.pdb", "b.ent.gz", "deep/er/c.mmcif", ".hidden.pdb", "notes.txt"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("x")
    assert file_kind(tmp_path).format == f"folder with {len(structure_files([tmp_path]))} files of structures"
    assert [file.path for file in survey([tmp_path]).files] == [tmp_path]


def test_runs_of_instruments_in_a_folder_are_one_each(tmp_path: Path) -> None:
    for name in ("waters.raw/_FUNC001.DAT", "waters.raw/_HEADER.TXT", "runs/bruker.d/analysis.tdf", "runs/thermo.raw", "notes.raw"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(THERMO_MAGIC if "thermo" in name else b"some words")
    told = {found.path.relative_to(tmp_path).as_posix(): found.problem + found.format for found in survey([tmp_path]).files}
    assert set(told) == {"waters.raw", "runs/bruker.d", "runs/thermo.raw"}
    for name, maker in (("waters.raw", "Waters"), ("runs/bruker.d", "Bruker"), ("runs/thermo.raw", "Thermo")):
        assert maker in told[name]
