"""Columns that grow in memory, or in a nameless file."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.errors import StorageError
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.spectra import spooling
from proteoscope.engine.spectra.spooling import GrowingColumn, release_pages

SAMPLE = Path(__file__).resolve().parents[3] / "resources" / "samples" / "Ecoli_MS2_small.mzML.gz"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "MAXIMUM_BYTES_IN_MEMORY", 64)


@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), max_size=12))
def test_spooled_column_has_added_values_in_memory_and_on_disk(parts: list[list[int]]) -> None:
    expected = np.array([value for part in parts for value in part], np.int32)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spooling, "MAXIMUM_BYTES_IN_MEMORY", 64)
        for folder in (None, Path.cwd()):
            column = GrowingColumn(np.int32, folder)
            for part in parts:
                values = np.array([0, *part], np.int32)
                column.append(values[1:])
                values[:] = 7  # Views are copied, since their array may change.
            np.testing.assert_array_equal(column.finish(), expected)


@pytest.mark.usefixtures("small")
def test_large_spooled_column_is_readable_after_release_of_pages(tmp_path: Path) -> None:
    column = GrowingColumn(np.float64, tmp_path)
    for start in range(0, 4096, 512):
        column.append(np.arange(start, start + 512))
    values = column.finish()
    assert list(tmp_path.iterdir()) == []
    base = values.base
    assert isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)
    release_pages(values[100:200])
    np.testing.assert_array_equal(values, np.arange(4096.0))


def test_release_of_memory_mapped_pages_ignores_arrays_in_memory() -> None:
    values = np.arange(10)
    release_pages(values)
    assert values.sum() == 45


@pytest.mark.usefixtures("small")
def test_spooling_error_names_unwritable_folder(tmp_path: Path) -> None:
    column = GrowingColumn(np.float64, tmp_path / "missing")
    with pytest.raises(StorageError, match="missing"):
        column.append(np.arange(100.0))


@pytest.mark.usefixtures("small")
def test_spectra_are_equal_in_memory_and_on_disk(tmp_path: Path) -> None:
    in_memory, spooled = read_spectra([SAMPLE]), read_spectra([SAMPLE], spool=tmp_path)
    assert spooled.mz.base is not None and in_memory.mz.base is None
    for name in ("mz", "intensity", "offsets", "precursor_mz"):
        np.testing.assert_array_equal(getattr(in_memory, name), getattr(spooled, name))
        assert getattr(spooled, name).dtype == getattr(in_memory, name).dtype
    assert spooled.mz.flags.writeable, "the kernels are compiled for such arrays"
