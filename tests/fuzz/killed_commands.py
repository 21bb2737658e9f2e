"""Commands that are killed or get a signal at any moment: the next run writes the right results and leaves no temporary files.

    python -m tests.fuzz.killed_commands [--kills 100] [--signals 60] [--seed SEED] [--commands import predict ...]

Each command is started and gets SIGKILL, SIGTERM or SIGHUP after a random time. After a signal no temporary file may be left. Then the
same command is run to its end: its results must equal those of an undisturbed run, and no temporary file may be left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from proteoscope.engine.project import Project
from proteoscope.engine.project.index_store import VARIABLE
from tests.fuzz.forks import ForkedCommand, prepare
from tests.fuzz.kills import SAMPLES
from tests.searching import few_proteins

SPECTRA = SAMPLES / "BSA1.mzML.gz"
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_QUICK = ("--device", "cpu", "--threads", "2", "--quiet")
_ATTEMPTS = 20

COMMANDS: dict[str, tuple[str, ...]] = {
    "import": ("import", str(SAMPLES / "BSA1_comet.pep.xml.gz"), "--spectra", str(SPECTRA), "--out", "PLACE/imported", *_QUICK),
    "library": (
        "library",
        str(SPECTRA),
        "--library",
        str(SAMPLES / "bsa_library.msp.gz"),
        "--out",
        "PLACE/library",
        "--set",
        "precursor_tolerance=3 Da",
        *_QUICK,
    ),
    "predict": ("predict", "DATABASE", "--out", "PLACE/predicted.msp", "--threads", "2"),
    "predict-blib": ("predict", "DATABASE", "--out", "PLACE/new/predicted.blib", "--threads", "2"),
    "quantify": ("quantify", "PROJECT", *_QUICK),
    "evidence": ("evidence", "PROJECT", "--structures", str(SAMPLES / "1ao6_A.pdb.gz"), "--out", "PLACE/evidence.tsv", *_QUICK),
    "compare": ("compare", "PROJECT", "PLACE/second", "--out", "PLACE/compared"),
    "convert": ("convert", str(SPECTRA), "--out", "PLACE/converted.mgf", "--threads", "2", "--quiet"),
    "export": ("export", "PROJECT", "--format", "tsv", "--out", "PLACE/tables"),
    "export-blib": ("export", "PROJECT", "--format", "blib", "--out", "PLACE/exported.blib"),
    "export-stdout": ("export", "PROJECT", "--format", "pin", "--out", "-"),
    "resume": (),
}
"""Command lines; PLACE is a folder for results, PROJECT a project with an identification."""

_IN_PROJECT = {"import": "imported", "library": "library", "quantify": "project", "evidence": "project", "resume": "resumed"}
_FILES = {
    "predict": "predicted.msp",
    "predict-blib": "new/predicted.blib",
    "evidence": "evidence.tsv",
    "compare": "compared",
    "convert": "converted.mgf",
    "export": "tables",
    "export-blib": "exported.blib",
}


def identification(out: str, database: Path) -> list[str]:
    """Return the command line of an identification."""
    options = ["--preset", "low-resolution", "--set", "precursor_tolerance=3 Da", "--advice", "none"]
    return ["identify", str(SPECTRA), "--database", str(database), "--out", out, *options, *_QUICK]


class Place:
    """Projects, results, a cache and a folder for temporary files."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder, self.database = folder / "results", database
        self.cache, self.temporary = folder / "cache", folder / "temporary"
        for subfolder in (self.folder, self.cache, self.temporary):
            subfolder.mkdir(parents=True)
        for out in ("project", "second"):
            self.finish(self.start_arguments(identification(str(self.folder / out), database)))

    def start(self, name: str) -> ForkedCommand:
        """Start a command."""
        if name == "resume":
            return self.start_arguments(["resume", str(self.folder / "resumed"), *_QUICK])
        names = {"PLACE": str(self.folder), "PROJECT": str(self.folder / "project"), "DATABASE": str(self.database)}
        arguments = list(COMMANDS[name])
        for word, path in names.items():
            arguments = [argument.replace(word, path) for argument in arguments]
        return self.start_arguments(arguments)

    def start_arguments(self, arguments: list[str], *, keeps_at_once: bool = False) -> ForkedCommand:
        """Start a command with these arguments."""
        environment = {**os.environ, VARIABLE: str(self.cache), "TMPDIR": str(self.temporary)}
        return ForkedCommand(arguments, environment, keeps_at_once=keeps_at_once)

    def finish(self, process: ForkedCommand) -> str:
        """Let a command run to its end and return its output."""
        output, errors = process.communicate()
        assert process.returncode == 0 and "Traceback" not in errors, f"ended with {process.returncode}: {errors}"
        return output

    def stop_identification(self, chance: random.Random, seconds: float) -> None:
        """Kill identifications of the project `resumed` until one can be resumed."""
        for _ in range(_ATTEMPTS):
            process = self.start_arguments(identification(str(self.folder / "resumed"), self.database), keeps_at_once=True)
            time.sleep(chance.uniform(0.4, 0.9) * seconds)
            process.kill()
            process.communicate()
            if (self.folder / "resumed" / "project.sqlite").exists() and self.can_resume():
                return
        raise AssertionError("no killed identification could be resumed")

    def can_resume(self) -> bool:
        """True if a run of the project `resumed` can be resumed."""
        return bool(Project.open(self.folder / "resumed").resumable())

    def results(self, name: str, output: str) -> dict[str, object]:
        """Return the results of a successful command."""
        contents: dict[str, object] = {"output": output} if name == "export-stdout" else {}
        if name in _IN_PROJECT:
            project = Project.open(self.folder / _IN_PROJECT[name])
            assert project.problems == () and project.verify() == []
            contents |= {result.name: result.path.read_bytes() for result in project.results(project.latest()) if result.rows is not None}
        path = self.folder / _FILES.get(name, "none")
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        contents |= {file.name: _content(file) for file in files if file.is_file()}
        assert contents, f"{name} has no results"
        return contents

    def leftovers(self) -> list[str]:
        """Return the temporary files and folders."""
        leftovers = [path for folder in (self.folder, self.cache) for path in folder.rglob("*") if path.name.startswith(".")]
        leftovers += [path for path in self.folder.rglob("*") if path.name.endswith((".partial", ".lock")) and path.name != "project.lock"]
        return sorted(str(path) for path in [*leftovers, *self.temporary.iterdir()])


def _content(path: Path) -> object:
    """Return a file's content; of a BiblioSpec library without its time and identifier."""
    if path.suffix != ".blib":
        return path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("RefSpectra", "RefSpectraPeaks", "Modifications")]


def disturb(place: Place, name: str, number: int, wait: Callable[[], None]) -> bool:
    """Start a command and send it a signal; return True if it was still running."""
    process = place.start(name)
    wait()
    was_at_work = process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate()
    if number == signal.SIGKILL:
        return was_at_work
    assert process.returncode in (0, 128 + number, -number), f"{name} ended with {process.returncode} after {number}: {errors}"
    if process.returncode == 128 + number:
        assert errors.splitlines()[-1].startswith("proteoscope: interrupted; finished results are untouched"), errors
    assert "Traceback" not in errors, f"{name} after signal {number}: {errors}"
    return was_at_work


def run(n_kills: int, n_signals: int, seed: int, folder: Path, database: Path, names: list[str] | None = None) -> Counter[str]:
    """Kill commands and send them signals; return how many of each kind were still running then."""
    chance, place = random.Random(seed), Place(folder, database)
    os.environ[VARIABLE] = str(place.cache)  # the cache has the key that identifies stopped runs
    chosen, seconds, undisturbed, counts = names or list(COMMANDS), dict[str, float](), dict[str, object](), Counter[str]()
    for name in chosen:
        prepare(COMMANDS[name][0] if COMMANDS[name] else "identify")
        began = time.monotonic()
        command = place.start(name) if name != "resume" else place.start_arguments(identification(str(place.folder / "resumed"), database))
        undisturbed[name] = place.results(name, place.finish(command))
        seconds[name] = time.monotonic() - began
    assert place.leftovers() == []
    signals = [signal.SIGKILL] * n_kills + [SIGNALS[number % len(SIGNALS)] for number in range(n_signals)]
    chance.shuffle(signals)
    for number, sent in enumerate(signals):
        name = chosen[number % len(chosen)]
        if name == "resume":
            place.stop_identification(chance, seconds[name])
        was_at_work = disturb(place, name, sent, lambda name=name: time.sleep(chance.uniform(0.0, 1.0) * seconds[name]))
        where = f"{sent.name} {number} of {name}"
        if sent != signal.SIGKILL and was_at_work:
            _assert_clean(place, where)
        if name != "resume" or place.can_resume():
            output = place.finish(place.start(name))
            assert place.results(name, output) == undisturbed[name], f"after {where}: other results"
        _assert_clean(place, where)
        counts[f"{sent.name} {name}"] += was_at_work
        print(f"{where}: {'at work' if was_at_work else 'had ended'}", flush=True)
    return counts


def _assert_clean(place: Place, where: str) -> None:
    left = place.leftovers()
    assert left == [], f"after {where}: {left}"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--signals", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        database = few_proteins(Path(folder))
        counts = run(options.kills, options.signals, options.seed, Path(folder, "place"), database, options.commands)
    print(f"{options.kills} kills and {options.signals} signals, {counts.total()} while a command was at work; results equal, nothing left")
    for name, n in sorted(counts.items()):
        print(f"{n:4d}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
