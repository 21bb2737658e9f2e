"""Starting the CUDA driver: calls follow the driver's manual, and nothing happens without a driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from proteoscope.kernels.cuda import driver
from tests.kernels.compiled_library import compiled_library

SUBSTITUTE = r"""
#include <stdio.h>
static void note(const char *text, int value) { FILE *file = fopen(PLACE, "a"); fprintf(file, "%s %d\n", text, value); fclose(file); }
int cuInit(unsigned flags) { note("init", flags); return 0; }
int cuDeviceGet(int *device, int ordinal) { note("get", ordinal); *device = 70 + ordinal; return ordinal > 1 ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { note("retain", device); *context = context; return 0; }
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the calls that a library received in place of the driver."""
    place = tmp_path / "calls"
    monkeypatch.setattr(driver, "_LIBRARY", str(compiled_library(SUBSTITUTE, tmp_path, f'-DPLACE="{place}"')))
    return place


def test_begin_context_retains_the_primary_context_of_the_device(calls: Path) -> None:
    assert driver.begin_context(1)
    assert calls.read_text().splitlines() == ["init 0", "get 1", "retain 71"]


def test_begin_context_returns_false_for_a_missing_device(calls: Path) -> None:
    assert not driver.begin_context(2)
    assert "retain" not in calls.read_text()


def test_begin_context_returns_false_without_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(driver, "_LIBRARY", str(tmp_path / "missing.so"))
    assert not driver.begin_context(0)
