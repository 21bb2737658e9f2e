"""The least versions of the dependencies that pyproject.toml allows are installed, and each search runs with them on its sample."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from proteoscope.engine.searches import SEARCHES
from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("uv") is None, reason="uv, which installs the least versions, is missing")]
EXPORTS = ("tsv", "mzid", "pepxml", "pin", "msp", "blib")


def run(*command: str | Path, **environment: str) -> str:
    """Run a command; what it printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment}, timeout=1800)
    assert done.returncode == 0, f"{command}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the least versions of what it is installed with."""
    python = tmp_path_factory.mktemp("lowest") / "bin" / "python"
    run("uv", "venv", "--clear", python.parents[1], "-p", "3.11")
    run("uv", "pip", "install", "-p", python, "--resolution", "lowest-direct", f"{REPOSITORY}[workers,bam,vendor]")
    return python.with_name("proteoscope")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of a user who has never run the program."""
    folder = tmp_path_factory.mktemp("home")
    return {"HOME": str(folder), "PROTEOSCOPE_CACHE": str(folder / "cache"), "PYTHONPATH": ""}


def test_lowest_versions_are_those_of_the_project_file(program: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    listed = dict(
        line.lower().split("==") for line in run("uv", "pip", "freeze", "-p", program.with_name("python")).splitlines() if "==" in line
    )
    for name in ("gemmi", "duckdb", "threadpoolctl"):
        bound = next(one.partition(">=")[2] for one in project["dependencies"] if one.startswith(f"{name}>="))
        assert listed[name].startswith(bound), name


def test_each_search_runs_on_its_sample_with_the_lowest_versions(program: Path, home: dict[str, str], tmp_path: Path) -> None:
    for search in SEARCHES:
        run(program, "demo", search.kind, "--out", tmp_path / "bench", "--device", "cpu", "--threads", "2", **home)
    for written_as in EXPORTS:
        run(program, "export", tmp_path / "bench", "--run", "identify-0001", "--format", written_as, "--out", tmp_path / written_as, **home)
