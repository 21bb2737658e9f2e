"""The notebook of the manual runs from its first cell to its last, and has the outputs of this version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.notebooks import code_cells, run_cell

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


def without_pictures(outputs: list[list[dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """Return the outputs, with True instead of the bytes of pictures."""

    def shortened(output: dict[str, Any]) -> dict[str, Any]:
        return output | {"data": {form: form.startswith("image/") or text for form, text in output.get("data", {}).items()}}

    return [[shortened(output) for output in cell] for cell in outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_equal_those_of_this_version(path: Path, tmp_path: Path) -> None:
    """``python tests/notebooks.py FILE --write`` renews them."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(REPOSITORY / "tests" / "notebooks.py"), str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    cells = code_cells(json.loads(path.read_text(encoding="utf-8")))
    assert without_pictures(json.loads(done.stdout)) == without_pictures([cell["outputs"] for cell in cells])
    assert not list(tmp_path.iterdir())


def test_run_cell_returns_printed_text_and_last_value() -> None:
    class Shown:
        def __repr__(self) -> str:
            return "shown"

        def _repr_html_(self) -> str:
            return "<b>shown</b>"

    printed, result = run_cell("print('a')\nshown", 2, {"shown": Shown()})
    assert printed["text"] == ["a\n"]
    assert result["data"] == {"text/plain": ["shown"], "text/html": ["<b>shown</b>"]} and result["execution_count"] == 2
    assert run_cell("x = 1", 1, {}) == []
