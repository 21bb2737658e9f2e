"""The page of the manual "Python API": all of its examples run in order as one script without Qt, and print its output."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import proteoscope

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "from_python.md"
PRINTED = "#> "
_END = (
    "\nimport sys\nassert not {'PySide6', 'pyqtgraph', 'engine', 'gui', 'kernels', 'resources', 'proteoscope.gui'} & sys.modules.keys()\n"
)


def code_of(page: str) -> str:
    """Return the blocks of Python as one script, each on its lines of the page."""
    is_code, lines = False, []
    for line in page.splitlines():
        if line.startswith("```"):
            is_code = line == "```python"
            line = ""
        lines.append(line if is_code else "")
    return "\n".join(lines)


def test_python_page_examples_print_the_output_on_the_page(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (tmp_path / "from_python.py").write_text(code_of(page) + _END, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", "from_python.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [line.removeprefix(PRINTED) for line in page.splitlines() if line.startswith(PRINTED)]
    assert done.stdout.splitlines() == expected


def test_python_page_uses_every_function() -> None:
    page = PAGE.read_text(encoding="utf-8")
    called = set(re.findall(r"proteoscope\.(\w+)\(", code_of(page)))
    assert {name for name in proteoscope.__all__ if inspect.isfunction(getattr(proteoscope, name, None))} <= called
    assert page.count("\n```python\n") >= 30
