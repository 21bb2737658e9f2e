"""Projects with forged run records, and searches, pages and forms that use these runs as sources.

    python -m tests.fuzz.source_runs PROJECT [--every N]

Takes a project with a finished identification. In copies of it, each recorded parameter and each part of ``run.json`` gets each of many
values, and every reader of a source run reads it. The outcome is a result or one of the program's own errors, in one line and within a
second. Prints the failures; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.evidence.identified_peptides import source_tables
from proteoscope.engine.matches.recorded_counts import recorded_counts
from proteoscope.engine.matches.source_run import explained_run, identified_indices, identified_run
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.identified import sources
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.engine.views.dependent_runs import runs_based_on
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.quantity_design import list_run_files
from proteoscope.engine.views.run_account import run_account, run_title
from tests.fuzz.places import IN_MEMORY

SECONDS = 1.0
LONGEST_MESSAGE = 2000

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1 << 62,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    -1e308,
    "",
    "x",
    "é" * 100_000,
    "\x1b[31m\n",
    "../../etc/passwd",
    "/dev/zero",
    "1e308 ppm",
    "nan Da",
    [],
    [[]],
    ["/dev/zero"],
    ["x"] * 10_000,
    {},
    {"a": 1},
    [[[[[[[[]]]]]]]],
)
"""Values that a forged record may hold in place of any value."""

DEEP = (
    "[" * 1_000_000 + "]" * 1_000_000,
    '{"fdr":' * 1_000_000 + "1" + "}" * 1_000_000,
    "[" * 1_000_000,
    "9" * 1_000_000,
    "NaN",
    '"x"',
    "",
)
"""Contents that may replace the whole record."""

RECORDS = (
    "source_run",
    "source_runs",
    "counts",
    "passes",
    "decoy_ratio",
    "has_decoys",
    "low_yield",
    "messages",
    "steps",
    "exports",
    "certainty",
)
"""Parts of ``run.json`` that readers use."""


def readers(run: str) -> dict[str, Callable[[Path], object]]:
    """Return every reader of a source run, by name."""

    def look(folder: Path) -> None:
        project = Project.open(folder)
        record = next((record for record in project.runs() if record.id == run), None)
        if record is None:
            return
        search = search_of_kind(record.kind)
        account = run_account(project, record, search)
        run_title(project, record, search)
        str(account.methods)

    def compare(folder: Path) -> None:
        with open_run(folder, run) as opened:
            _ = opened.ions, opened.decoy_ratio, opened.has_decoys, opened.spectra_run, opened.fdr

    def follow(folder: Path) -> None:
        runs_based_on(Project.open(folder), run, "quantify")
        explained_run(Project.open(folder), run)

    return {
        "identified": lambda folder: float(identified_run(folder, run).parameters.get("fdr", 0.01)),
        "quantified": lambda folder: sources(folder, [run]),
        "evidence": lambda folder: source_tables(folder, run),
        "places": lambda folder: identified_indices(folder, run, 0.01),
        "counts": lambda folder: recorded_counts(Project.open(folder), run),
        "design": lambda folder: list_run_files(folder, [run]),
        "account": look,
        "compared": compare,
        "following": follow,
        "messages": lambda folder: Project.open(folder).append_messages(run, ["a warning"], {"advice": {"seconds": 1.0}}),
    }


def forge(folder: Path, column: str, text: str) -> None:
    """Write a text in place of a column of every run."""
    with closing(sqlite3.connect(folder / "project.sqlite")) as connection, connection:
        connection.execute(f"UPDATE runs SET {column} = ?", (text,))


def forge_record(folder: Path, run: str, text: str) -> None:
    """Write a text in place of the run's ``run.json``, and register it."""
    path = folder / "results" / run / "run.json"
    path.write_text(text, encoding="utf-8")
    content = path.read_bytes()
    with closing(sqlite3.connect(folder / "project.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE results SET bytes = ?, sha256 = ? WHERE run = ? AND name = 'run'",
            (len(content), hashlib.sha256(content).hexdigest(), run),
        )


def forgeries(folder: Path, run: str) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield each forgery: a description, and a function that makes it in a project."""
    project = Project.open(folder)
    record = next(record for record in project.runs() if record.id == run)
    for name in (*search_of_kind(record.kind).model.model_fields, "translation", "run"):
        without = {key: value for key, value in record.parameters.items() if key != name}
        yield f"parameters without {name}", partial(forge, column="parameters", text=json.dumps(without))
        for value in VALUES:
            text = json.dumps({**record.parameters, name: value})
            yield f"parameter {name} = {value!r:.60}", partial(forge, column="parameters", text=text)
    for text in (*(search.kind for search in SEARCHES), "", "x", "../x", "identify\0"):
        yield f"kind {text}", partial(forge, column="kind", text=text)
    for text in DEEP:
        yield f"parameters {text:.20}", partial(forge, column="parameters", text=text)
        yield f"run.json {text:.20}", partial(forge_record, run=run, text=text)
    for name in RECORDS:
        for value in (*VALUES, run, [run], [run] * 1000):
            text = json.dumps({**project.record(run), name: value})
            yield f"run.json {name} = {value!r:.60}", partial(forge_record, run=run, text=text)


def attempt(read: Callable[[Path], object], folder: Path) -> str:
    """Read a forged project and return what is wrong with the outcome, or ''."""
    began = os.times()
    try:
        read(folder)
    except ProteoscopeError as error:
        message = str(error)
        if "\n" in message or "\x1b" in message or len(message) > LONGEST_MESSAGE:
            return f"a message of {len(message)} characters or several lines: {message[:200]!r}"
    except BaseException:
        return traceback.format_exc(limit=-3)
    now = os.times()
    seconds = now.user + now.system - began.user - began.system
    return f"took {seconds:.1f} s" if seconds > SECONDS else ""


def attack(folder: Path, every: int = 1) -> list[str]:
    """Forge and read copies of a project, each `every`-th forgery, and return the failures."""
    failures, run = list[str](), Project.open(folder).latest()
    assert run is not None
    with tempfile.TemporaryDirectory(prefix="source-runs-", dir=IN_MEMORY) as place:
        copy = Path(place) / "project"
        shutil.copytree(folder, copy)
        for read in readers(run).values():
            read(copy)  # loading modules the first time is not timed
        pristine = [(path, path.read_bytes()) for path in (copy / "project.sqlite", copy / "results" / run / "run.json")]
        for number, (what, make) in enumerate(forgeries(folder, run)):
            if number % every:
                continue
            for name, read in readers(run).items():
                for path, content in pristine:
                    path.write_bytes(content)
                make(copy)
                if wrong := attempt(read, copy):
                    failures.append(f"{what}, {name}: {wrong}")
    return failures


def main() -> int:
    """Run from the command line; return 1 if there are failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--every", type=int, default=1, help="each so manieth forgery (default: %(default)s)")
    options = parser.parse_args()
    failures = attack(options.project, options.every)
    print("\n".join(failures) or "nothing failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
