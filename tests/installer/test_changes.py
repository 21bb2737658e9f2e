"""Tests of the change fragments from which towncrier makes the changelog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

CHANGES = REPOSITORY / "changes"
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = [entry["directory"] for entry in SETTINGS["type"]]
_NAME = re.compile(rf"\+[a-z0-9-]+\.({'|'.join(TYPES)})\.md")


def misnamed(folder: Path) -> list[str]:
    """Return the names of files in a folder of fragments that towncrier would not use."""
    return [path.name for path in sorted(folder.iterdir()) if path.name != "README.md" and not _NAME.fullmatch(path.name)]


def test_change_fragments_have_a_name_and_a_known_type() -> None:
    assert misnamed(CHANGES) == []


def test_check_of_fragment_names_finds_unknown_types_and_endings(tmp_path: Path) -> None:
    for name in ("README.md", "+fonts.added.md", "+fonts.idea.md", "fonts.added.md", "+fonts.added"):
        (tmp_path / name).touch()
    assert misnamed(tmp_path) == ["+fonts.added", "+fonts.idea.md", "fonts.added.md"]


def test_change_fragments_are_sentences() -> None:
    texts = {path.name: path.read_text(encoding="utf-8").strip() for path in CHANGES.glob("+*.md")}
    assert [name for name, text in texts.items() if not re.fullmatch(r"[A-Z`*].*[.!]", text, re.DOTALL)] == []


def test_readme_of_changes_describes_each_fragment_type() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (CHANGES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == TYPES


def test_towncrier_builds_a_draft_of_the_changelog() -> None:
    if "CI" not in os.environ:
        pytest.importorskip("towncrier", reason="towncrier is not installed: pip install -e '.[dev]'")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0 and "## [9.9.9] - " in done.stdout, done.stdout + done.stderr


def test_changelog_of_first_version_fits_on_a_page() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "<!-- towncrier release notes start -->" in text
    first = text[text.index("## [0.1.0]") :]
    assert len(first.encode()) <= 6_000 and re.findall(r"^### (.*)", first, re.MULTILINE) == ["Added"]
