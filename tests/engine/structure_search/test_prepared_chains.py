"""Chains of many files: those that are kept are those that are read."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import index_store as index_stores
from proteoscope.engine.project.cache import index_store
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.prepared_chains import FEWEST_FILES, prepared_chains
from proteoscope.engine.structure_search.structures import DescribedChains, read_chains, sources_of
from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.searching import find_structures

N_FILES = FEWEST_FILES + 5


@pytest.fixture
def folder(tmp_path) -> Path:
    """Helices, several as long as another, of one chain and of two, and a file that holds none."""
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(N_FILES):
        rows = atoms_of(helix(12 + k % 4, rise=1.5 + 0.01 * k))
        rows += atoms_of(helix(30 - k % 7, degrees=95.0 + k) + 40.0, "B") if k % 3 == 0 else []
        (folder / f"{(7 * k) % N_FILES:02d}.pdb").write_bytes(as_pdb(rows))
    (folder / "none.pdb").write_bytes(b"HEADER    nothing\nEND\n")
    return folder


def kept(folder: Path, progress: Progress | None = None) -> DescribedChains:
    sources = sources_of([folder])
    return prepared_chains(sources, [file_digest(one.path) for one in sources], progress or Progress(), 2)


def assert_same(found: DescribedChains, expected: DescribedChains) -> None:
    for part in ("chains", "arrays"):
        one, other = getattr(found, part), getattr(expected, part)
        names = [field.name for field in fields(other)] if part == "chains" else other._fields
        for name in names:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(found.file_order, expected.file_order)
    np.testing.assert_array_equal(found.file, expected.file)
    assert tuple(found.files) == tuple(expected.files)
    assert found.messages == expected.messages


def test_kept_chains_are_those_of_the_files_in_the_same_order(folder, own_cache):
    expected = read_chains(sources_of([folder]), Progress(), 2)
    assert len(expected.messages) == 1
    assert_same(kept(folder), expected)
    assert len(index_store("structures").indexes()) == 1
    assert_same(kept(folder), expected)
    assert len(index_store("structures").indexes()) == 1


def test_a_file_with_other_content_is_read_anew(folder, own_cache):
    kept(folder)
    (folder / "03.pdb").write_bytes(as_pdb(atoms_of(helix(50))))
    assert_same(kept(folder), read_chains(sources_of([folder]), Progress(), 2))


@pytest.mark.parametrize("name", ["file_order.npy", "messages.json", "columns/source.npy", "state.npy"])
def test_what_is_kept_and_unsound_is_told_and_made_again(name, folder, own_cache):
    expected = kept(folder)
    (found,) = index_store("structures").indexes()
    manifest = found.folder / index_stores._MANIFEST
    told = json.loads(manifest.read_text())
    path = found.folder / name
    if name.endswith(".json"):
        path.write_text('{"no": "list"}')
    else:
        column = np.load(path)
        path.unlink()  # what is open maps it
        np.save(path, column[:-1] if name == "state.npy" else np.full_like(column, 1 << 20))
    manifest.unlink()
    index_stores._seal(found.folder, told["key"], told["parts"], told["title"])
    progress = RecordingProgress(Progress())
    assert_same(kept(folder, progress), expected)
    assert any("is invalid and is built again" in text for text in progress.messages)
    assert_same(kept(folder), expected)


def test_a_disk_that_refuses_leaves_the_chains_in_memory(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "file"))
    progress = RecordingProgress(Progress())
    assert_same(kept(folder, progress), read_chains(sources_of([folder]), Progress(), 2))
    assert any("could not be cached" in text for text in progress.messages)


def test_a_named_file_that_cannot_be_read_is_an_error_and_nothing_is_kept(folder, own_cache):
    sources = sources_of(sorted(folder.iterdir()))
    with pytest.raises(InputError, match=r"none\.pdb"):
        prepared_chains(sources, [file_digest(one.path) for one in sources], Progress(), 2)
    assert not index_store("structures").indexes()


def test_a_search_of_a_folder_gives_the_same_table_when_its_chains_are_kept(folder, tmp_path, own_cache):
    tables = []
    for turn in range(2):
        out = tmp_path / f"{turn}.tsv"
        find_structures([folder / "04.pdb:A"], [folder], out, StructureSearchParameters(), device="cpu")
        tables.append(out.read_bytes())
    assert tables[0] == tables[1]
    assert len(tables[0].splitlines()) > 1
