"""Columns are identified by their files and opened only if the files are unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.cluster.columns import ColumnFile, NamedColumns, file_digest, open_column, trim_store
from proteoscope.engine.execution.cluster.payload import pack, unpack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a session."""
    (tmp_path / "session").mkdir()
    return tmp_path / "session"


def packed_and_unpacked(named: NamedColumns, value: object, folder: Path, digests: dict[str, str] | None = None) -> object:
    return unpack(pack(value, named.name), lambda column: open_column(column, folder, digests or {}))


def test_column_of_a_memory_map_is_named_by_file_and_offset(folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(100_000).reshape(1000, 100))
    mapped, named = np.load(tmp_path / "x.npy", mmap_mode="r"), NamedColumns(folder)
    for part in (mapped, mapped[300:800], np.asarray(mapped)[10:900]):
        opened = packed_and_unpacked(named, {"x": part}, tmp_path)["x"]  # type: ignore[index]
        assert np.array_equal(opened, part) and not opened.flags.writeable
    assert list(named.files) == [str(tmp_path / "x.npy")]


@pytest.mark.parametrize("kind", ["<i8", "<f4", "|u1", [("a", "<i4"), ("b", "<f8")]])
def test_large_array_in_memory_is_sent_as_temporary_file(folder: Path, tmp_path: Path, kind: object) -> None:
    array = np.zeros(400_000, kind)  # type: ignore[call-overload]
    array[7] = np.ones(1, kind)[0]  # type: ignore[call-overload]
    named = NamedColumns(folder)
    opened = packed_and_unpacked(named, array[1::2], tmp_path)
    assert np.array_equal(opened, array[1::2]) and opened.dtype == array.dtype  # type: ignore[attr-defined]
    opened[3] = array[0]  # type: ignore[index]
    assert np.array_equal(packed_and_unpacked(NamedColumns(folder), array[1::2], tmp_path), array[1::2])
    named.remove()
    assert not any(Path(path).exists() for path in named.files)


def test_small_arrays_are_sent_in_the_message(folder: Path, tmp_path: Path) -> None:
    named = NamedColumns(folder)
    assert np.array_equal(packed_and_unpacked(named, np.arange(9), tmp_path), np.arange(9))  # type: ignore[arg-type]
    assert not named.files


def test_column_file_is_unavailable_after_a_change(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678")
    file = ColumnFile.at(path)
    assert file.is_unchanged
    os.utime(path, ns=(1, 1))
    assert not file.is_unchanged
    path.unlink()
    assert not file.is_unchanged


def test_open_column_finds_copied_file_by_digest(folder: Path, tmp_path: Path) -> None:
    path, store, array = tmp_path / "x.npy", tmp_path / "store", np.arange(100_000)
    store.mkdir()
    np.save(path, array)
    named = NamedColumns(folder)
    packed = pack(np.load(path, mmap_mode="r"), named.name)
    digest = file_digest(path)
    path.rename(store / digest)
    assert np.array_equal(unpack(packed, lambda column: open_column(column, store, {str(path): digest})), array)


@pytest.mark.parametrize(
    "changed",
    [{"offset": -8}, {"offset": 1 << 40}, {"shape": [1 << 40]}, {"shape": [-1]}, {"shape": [0]}, {"dtype": "|O"}],
)
def test_open_column_rejects_byte_range_outside_the_file(folder: Path, tmp_path: Path, changed: dict[str, object]) -> None:
    named = NamedColumns(folder).name(np.zeros(100_000))
    assert named is not None
    with pytest.raises(ValueError):
        open_column({**named, **changed}, tmp_path, {})


def test_trim_store_removes_the_oldest_columns(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
        os.utime(tmp_path / f"{number}", ns=(number, number))
    trim_store(tmp_path, 15, 40)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]
    with pytest.raises(StorageError, match="do not fit"):
        trim_store(tmp_path, 50, 40)
