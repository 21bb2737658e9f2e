"""The examples in the docstrings of every module of the program give the results they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = [
    "proteoscope." + ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    for package in ("engine", "gui", "kernels", "resources")
    for path in sorted((REPOSITORY / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_give_the_shown_results(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("proteoscope.gui."):
        pytest.importorskip("PySide6.QtWidgets", reason="Qt's libraries are not installed", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)  # some examples write files
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_docstrings_of_main_engine_packages_have_examples() -> None:
    assert {name.rpartition(".")[0] for name in MODULES} >= {
        "proteoscope.engine.chemistry",
        "proteoscope.engine.matches",
        "proteoscope.engine.statistics",
    }
