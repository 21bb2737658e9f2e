"""Scripts without ``if __name__ == "__main__"``, and functions in spawned processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.engine.structures.examples import as_pdb, atoms_of, helix

READS_IN_PROCESSES = """
import sys
import proteoscope

print("started", flush=True)
database = proteoscope.structure_database(sys.argv[1], "database", threads=2)
print(database)
"""
SPAWNS = """
import multiprocessing
import proteoscope

def score(query):
    with proteoscope.align(query, "MKWVTFISLLLLFSSAYSRGVFRREAHKSE", device="cpu", threads=1) as result:
        return result.hits["score"][0].as_py()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(score, ["MKWVTFISLLLLFSSAYSRGVFRREAHKSE", "MKWVTFISLLFLFSSAYSRGVFRRDAHKSE"]))
"""


def run(folder: Path, script: str, *arguments: str) -> list[str]:
    """Run a script and return the lines that it prints."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "script.py", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_script_without_main_guard_runs_once(tmp_path: Path) -> None:
    folder = tmp_path / "structures"
    folder.mkdir()
    for number in range(40):
        (folder / f"helix{number}.pdb").write_bytes(as_pdb(atoms_of(helix(40 + number % 7))))
    assert run(tmp_path, READS_IN_PROCESSES, str(folder)) == ["started", "database"]


def test_api_functions_work_in_spawned_processes(tmp_path: Path) -> None:
    best, other = json.loads(run(tmp_path, SPAWNS)[0])
    assert best > other > 100
