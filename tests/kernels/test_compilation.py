"""Whether kernels count as compiled: by Numba's cache, the age of the sources, and the processor."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from proteoscope.kernels.cpu import compilation

SOURCE = "import numba\n\n@numba.njit(cache=True)\ndef doubled(value):\n    return 2 * value\n"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "small_kernel.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "small_kernel", raising=False)
    return importlib.import_module("small_kernel").doubled


def test_a_kernel_is_compiled_once_it_was_used_and_until_a_source_changes(kernel) -> None:
    assert not compilation.is_compiled(kernel)
    assert kernel(2) == 4
    compilation.mark_compiled(kernel)
    assert compilation.is_compiled(kernel)
    for entry in Path(kernel.stats.cache_path).glob("small_kernel.doubled-*.nbi"):
        os.utime(entry, (0.0, 0.0))
    assert not compilation.is_compiled(kernel), "it is older than the sources"


def test_what_was_compiled_for_another_processor_is_not_compiled_for_this_one(kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(2)
    compilation.mark_compiled(kernel)
    monkeypatch.setattr(compilation, "_processor", lambda: "another")
    assert not compilation.is_compiled(kernel)
    compilation.mark_compiled(kernel)
    assert compilation.is_compiled(kernel)
    monkeypatch.undo()
    assert compilation.is_compiled(kernel), "a cache that several processors share keeps what is of each"


def test_a_cache_that_could_not_be_marked_is_believed(kernel) -> None:
    kernel(2)
    assert compilation.is_compiled(kernel)
