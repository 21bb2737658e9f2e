"""The code of docs/developers/extending.md, added to a copy of the program, passes the checks of that page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.extended_program import Section, extended_program, read_sections

CHECKED = {name: section for name, section in read_sections().items() if section.check}


def test_extending_page_has_an_example_of_each_kind_of_addition() -> None:
    assert list(CHECKED) == ["A format", "A column", "An export", "A figure", "A kernel", "A search"]
    assert read_sections()["A score"].additions, "tests/test_new_score.py checks it"


@pytest.mark.parametrize("section", CHECKED.values(), ids=list(CHECKED))
def test_examples_of_extending_page_pass_their_checks(section: Section, tmp_path: Path) -> None:
    environment = extended_program(tmp_path, section)
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run([sys.executable, "-c", section.check], cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
