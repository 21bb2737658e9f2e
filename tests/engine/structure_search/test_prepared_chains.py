"""Cached chains of many files equal the chains that are read."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import index_store as index_stores
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.index_store import index_store
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.prepared_chains import FEWEST_FILES, prepared_chains
from proteoscope.engine.structure_search.structures import DescribedChains, read_chains, sources_of
from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.searching import find_structures

N_FILES = FEWEST_FILES + 5


@pytest.fixture
def folder(tmp_path) -> Path:
    """Write helices, some of equal length, with one or two chains, and a file without chains."""
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(N_FILES):
        rows = atoms_of(helix(12 + k % 4, rise=1.5 + 0.01 * k))
        rows += atoms_of(helix(30 - k % 7, degrees=95.0 + k) + 40.0, "B") if k % 3 == 0 else []
        (folder / f"{(7 * k) % N_FILES:02d}.pdb").write_bytes(as_pdb(rows))
    (folder / "none.pdb").write_bytes(b"HEADER    nothing\nEND\n")
    return folder


def cached_chains(folder: Path, progress: Progress | None = None) -> DescribedChains:
    sources = sources_of([folder])
    return prepared_chains(sources, [file_digest(source.path) for source in sources], progress or Progress(), 2)


def assert_same(chains: DescribedChains, expected: DescribedChains) -> None:
    for part in ("chains", "arrays"):
        column, expected_column = getattr(chains, part), getattr(expected, part)
        names = [field.name for field in fields(expected_column)] if part == "chains" else expected_column._fields
        for name in names:
            np.testing.assert_array_equal(getattr(column, name), getattr(expected_column, name), err_msg=name)
    np.testing.assert_array_equal(chains.file_order, expected.file_order)
    np.testing.assert_array_equal(chains.file, expected.file)
    assert tuple(chains.files) == tuple(expected.files)
    assert chains.messages == expected.messages


def test_cached_structure_chains_equal_the_files_in_order(folder, own_cache):
    expected = read_chains(sources_of([folder]), Progress(), 2)
    assert len(expected.messages) == 1
    assert_same(cached_chains(folder), expected)
    assert len(index_store("structures").indexes()) == 1
    assert_same(cached_chains(folder), expected)
    assert len(index_store("structures").indexes()) == 1


def test_structure_chain_cache_reads_changed_file_again(folder, own_cache):
    cached_chains(folder)
    (folder / "03.pdb").write_bytes(as_pdb(atoms_of(helix(50))))
    assert_same(cached_chains(folder), read_chains(sources_of([folder]), Progress(), 2))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("file_order.npy", ""),
        ("messages.json", '{"no": "list"}'),
        ("messages.json", '["no end'),
        ("messages.json", "[" * 100_000),
        ("columns/source.npy", ""),
        ("state.npy", ""),
    ],
)
def test_invalid_cached_chains_are_reported_and_rebuilt(name, content, folder, own_cache):
    expected = cached_chains(folder)
    (index,) = index_store("structures").indexes()
    manifest = index.folder / index_stores._MANIFEST
    sealed = json.loads(manifest.read_text())
    path = index.folder / name
    if name.endswith(".json"):
        path.write_text(content)
    else:
        column = np.load(path)
        path.unlink()  # The open files are mapped into memory.
        np.save(path, column[:-1] if name == "state.npy" else np.full_like(column, 1 << 20))
    manifest.unlink()
    index_stores._seal(index.folder, sealed["key"], sealed["parts"], sealed["title"])
    progress = RecordingProgress(Progress())
    assert_same(cached_chains(folder, progress), expected)
    assert any("is invalid and is built again" in text for text in progress.messages)
    assert_same(cached_chains(folder), expected)


def test_structure_chains_remain_in_memory_after_disk_error(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "file"))
    progress = RecordingProgress(Progress())
    assert_same(cached_chains(folder, progress), read_chains(sources_of([folder]), Progress(), 2))
    assert any("could not be cached" in text for text in progress.messages)


def test_unreadable_structure_file_is_rejected_and_not_cached(folder, own_cache):
    sources = sources_of(sorted(folder.iterdir()))
    with pytest.raises(InputError, match=r"none\.pdb"):
        prepared_chains(sources, [file_digest(source.path) for source in sources], Progress(), 2)
    assert not index_store("structures").indexes()


def test_structure_search_gives_equal_table_with_cached_chains(folder, tmp_path, own_cache):
    tables = []
    for turn in range(2):
        out = tmp_path / f"{turn}.tsv"
        find_structures([folder / "04.pdb:A"], [folder], out, StructureSearchParameters(), device="cpu")
        tables.append(out.read_bytes())
    assert tables[0] == tables[1]
    assert len(tables[0].splitlines()) > 1
