"""Projects whose files were changed at random, opened like untrusted ones.

    python -m tests.fuzz.projects [N] [--seed SEED]

Each of N projects gets one to three changes: bytes of its files (the database, its logs, the lock, the tables), cells of the database's
tables, columns and tables dropped, values of all types. It is opened, everything in it is listed, a run is exported, a run is written.
The outcome must be a result or one of the program's own errors, and a folder next to the project must stay unchanged.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq

from proteoscope.engine.command_line.main import main as command_line
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.project import Project
from tests.engine.identification_tables import PARAMETERS, identification
from tests.fuzz.places import IN_MEMORY

TABLES = {
    "runs": [
        "number",
        "id",
        "kind",
        "parameters",
        "version",
        "device",
        "status",
        "started",
        "finished",
        "message",
        "host",
        "pid",
        "process_started",
    ],
    "inputs": ["id", "path", "size", "sha256", "kind"],
    "run_inputs": ["run", "position", "input"],
    "results": ["run", "name", "path", "rows", "bytes", "sha256"],
    "log": ["id", "run", "time", "level", "text"],
}
VALUES = [
    None,
    "",
    "x",
    0,
    -1,
    1 << 62,
    1.5,
    float("inf"),
    b"\xff\xfe",
    b"",
    "a\0b",
    "../../victim",
    "/etc",
    "é" * 10_000,
    "2025-13-45",
    "now",
    "0001-01-01T00:00:00+00:00",
    "9999-12-31T23:59:59+00:00",
    "2025-01-01T00:00:00",
    "{",
    "[]",
    "null",
    "{}",
    '{"fdr": "x"}',
    '{"fdr": null, "decoys": 7}',
    "[" * 50_000,
    "9" * 5000,
    "running",
    "done",
    "queued",
    "identify-0001",
    "results/identify-0001/psms.parquet",
    "results/../../victim/thesis.txt",
    "\x1b[31mred",
]


def make(folder: Path) -> Path:
    """Create a project with a finished, a failed and an unfinished run."""
    project = Project.create_or_open(folder)
    tables = identification(n_spectra=20)
    (folder.parent / "spectra.mgf").write_text("spectra")
    from proteoscope.engine.project import RunInput

    parameters = {**PARAMETERS, "fixed_modifications": list(PARAMETERS["fixed_modifications"])}
    with project.run("identify", parameters, [RunInput(folder.parent / "spectra.mgf", "spectra")], version="1", device="cpu") as run:
        for name in ("psms", "peptides", "proteins"):
            run.write_table(name, getattr(tables, name))
        run.log("info", "something was found")
    try:
        with project.run("identify", parameters) as run:
            raise RuntimeError("broke")
    except RuntimeError:
        pass
    with closing(sqlite3.connect(folder / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET status = 'running' WHERE id = 'identify-0002'")
    (folder / "results" / "identify-0002").mkdir()
    return folder


def mutate(folder: Path, chance: random.Random) -> str:
    """Change something in a project and describe the change."""
    if chance.random() < 0.65:
        return _change_cells(folder / "project.sqlite", chance)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    path = chance.choice([folder / "project.sqlite"] * 3 + files)
    content = bytearray(path.read_bytes())
    way = chance.choice(["cut", "flip", "insert", "zeros", "empty"])
    if way == "cut":
        content = content[: chance.randrange(len(content) + 1)]
    elif way == "flip":
        for _ in range(chance.choice([1, 8, 64])):
            if content:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == "insert":
        at = chance.randrange(len(content) + 1)
        content[at:at] = chance.randbytes(chance.choice([1, 100, 5000]))
    elif way == "zeros" and content:
        at = chance.randrange(len(content))
        content[at : at + 512] = bytes(len(content[at : at + 512]))
    elif way == "empty":
        content = bytearray()
    path.write_bytes(content)
    return f"{path.name}: {way}"


def _change_cells(path: Path, chance: random.Random) -> str:
    table = chance.choice(list(TABLES))
    column, value = chance.choice(TABLES[table]), chance.choice(VALUES)
    statement = chance.choices(
        [
            f"UPDATE {table} SET {column} = ?",
            f"ALTER TABLE {table} DROP COLUMN {column}",
            f"DROP TABLE {table}",
            f"DELETE FROM {table}",
            f"UPDATE {table} SET {column} = CAST(? AS TEXT)",
        ],
        [16, 1, 1, 1, 4],
    )[0]
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(statement, (value,) if "?" in statement else ())
    except (sqlite3.Error, UnicodeError) as error:
        return f"{statement} did not work ({type(error).__name__})"
    return f"{statement} with {str(value)[:40]!r}"


def use(folder: Path, out: Path, formats: tuple[str, ...]) -> int:
    """Use every function of a project and return the number of rejections."""
    refusals = 0
    try:
        project = Project.open(folder)
        runs = [*project.runs(), *project.runs("identify")]
    except ProteoscopeError:
        return 1
    for run in runs:
        str(run.started.astimezone()), str(run.finished and run.finished.astimezone())
        tables = [lambda run: pq.read_table(project.table("psms", run))] if run.status == "done" else []
        for look in (project.inputs, project.log, project.results, *tables):
            try:
                look(run.id)
            except ProteoscopeError:
                refusals += 1
    for look in (project.latest, project.verify):
        try:
            look()
        except ProteoscopeError:
            refusals += 1
    for format in formats:
        status = command_line(["export", str(folder), "--format", format, "--out", str(out / format)])
        assert status in (0, 2), f"export ended with {status}"
        refusals += status == 2
    try:
        with project.run("identify", {}) as run:
            run.write_json("summary", {})
    except ProteoscopeError:
        refusals += 1
    return refusals


def run(n: int, seed: int, folder: Path) -> int:
    """Change and use `n` projects and return how many were rejected at some point."""
    good, victim = make(folder / "good"), folder / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("years of work")
    refused = 0
    for number in range(n):
        chance = random.Random(f"{seed} {number}")
        project = folder / "project"
        shutil.copytree(good, project)
        changes = [mutate(project, chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        print(f"{number}: {'; '.join(changes)}", flush=True)
        refused += use(project, folder / "out", chance.choice([(), (), ("tsv",), ("mzid",)])) > 0
        assert [path.name for path in victim.iterdir()] == ["thesis.txt"] and (victim / "thesis.txt").read_text() == "years of work"
        assert sorted(path.name for path in folder.iterdir()) in (
            ["good", "project", "spectra.mgf", "victim"],
            ["good", "out", "project", "spectra.mgf", "victim"],
        )
        shutil.rmtree(project)
        shutil.rmtree(folder / "out", ignore_errors=True)
    return refused


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="?", type=int, default=3200, help="projects (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-", dir=IN_MEMORY) as folder:
        refused = run(options.n, options.seed, Path(folder))
    print(f"{options.n} projects, {refused} of them refused something")
    return 0


if __name__ == "__main__":
    sys.exit(main())
