"""Odd paths for each input and output of each command: long, not UTF-8, devices, pipes, folders, links, and files of this run.

    python -m tests.fuzz.odd_paths [--commands NAME ...] [--only TEXT]

All commands run in this process. Each ends with 0, or with 2 and one printable line on standard error; inputs stay unchanged, and no
temporary file is left.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from proteoscope.engine.command_line.main import main as run_command
from tests.fuzz.environments import COMMANDS, digests, make_inputs

SECONDS = 300
_SLOW = "cost-model"
"""The only command that calibrates the machine first."""


def odd_paths(folder: Path, original: str) -> dict[str, str]:
    """Create odd files in an empty folder and return their paths by name; `original` is the path that they replace."""
    names = {
        "empty text": "",
        "dot": ".",
        "missing": str(folder / "missing" / "deep.tsv"),
        "folder": str(folder / "folder"),
        "empty file": str(folder / "empty"),
        "pipe": str(folder / "pipe"),
        "socket": "socket",
        "zero device": "/dev/zero",
        "null device": "/dev/null",
        "standard input": "/dev/stdin",
        "dash": "-",
        "begins with a dash": "./-x.tsv",
        "255 bytes": str(folder / ("x" * 251 + ".tsv")),
        "256 bytes": str(folder / ("x" * 252 + ".tsv")),
        "5000 bytes": "x/" * 2500 + ".tsv",
        "not UTF-8": str(folder / os.fsdecode(b"n\xff.tsv")),
        "control characters": str(folder / "a\x1b[31m\nb.tsv"),
        "dangling link": str(folder / "dangling.tsv"),
        "loop of links": str(folder / "loop"),
        "link to the same": str(folder / "same"),
        "below a file": f"{original}/x",
        "ends with a slash": f"{original}/",
        "no such user": "~no-such-user/x",
        "percent": str(folder / "%s%d{0}.tsv"),
    }
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    os.mkfifo(folder / "pipe")
    with chdir(folder), socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    (folder / "dangling.tsv").symlink_to(folder / "nowhere.tsv")
    (folder / "loop").symlink_to("loop")
    (folder / "same").symlink_to(original)
    if Path(original).is_file():
        for name in ("not UTF-8", "control characters", "255 bytes", "percent"):
            shutil.copyfile(original, names[name])
    return names


def places(command: str) -> Iterator[int]:
    """Yield the positions of the paths among the arguments of a command."""
    for place, word in enumerate(COMMANDS[command]):
        if word.startswith(("IN/", "OUT/")) or word == "PROJECT":
            yield place


class Watch:
    """Runs commands in this process and checks the outcome."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder, self.inputs = folder, inputs
        self.before = digests(self.inputs)

    def check(self, command: str, place: int, name: str) -> str:
        """Run a command with an odd path at a position and describe its end.

        Raises
        ------
        AssertionError
            The end is not allowed.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as made, tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            out, odd, cwd = (Path(made, name) for name in ("out", "odd", "cwd"))
            for path in (out, odd, cwd):
                path.mkdir()
            arguments = [word.replace("IN/", f"{self.inputs}/").replace("OUT/", f"{out}/") for word in COMMANDS[command]]
            if "PROJECT" in arguments:
                shutil.copytree(self.inputs / "project", out / "project")
            arguments = [str(out / "project") if word == "PROJECT" else word for word in arguments]
            paths = odd_paths(odd, arguments[place])
            arguments[place] = paths[name]
            status, errors = _run([command, *arguments], cwd if name != "socket" else odd, scratch)
            left = [path.name for folder in (made, scratch) for path in Path(folder).rglob("*") if path.name.startswith(".")]
        assert status in (0, 2) and "Traceback" not in errors, f"{status} {errors[-1500:]}"
        assert status == 0 or errors.count("\n") == 1, errors
        assert all(character.isprintable() or character == "\n" for character in errors), repr(errors)
        assert len(errors) < 3000, f"{len(errors)} characters: {errors[:200]}"
        assert not left, f"left: {left[:5]}"
        assert digests(self.inputs) == self.before, "inputs were changed"
        return errors.strip() or "done"


def _stop(number: int, frame: object) -> None:
    raise AssertionError(f"longer than {SECONDS} s")


def _run(arguments: list[str], cwd: Path, scratch: str) -> tuple[int, str]:
    errors = io.StringIO()
    tempfile.tempdir = scratch
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)
    try:
        with chdir(cwd), tempfile.TemporaryFile("w") as output, redirect_stdout(output), redirect_stderr(errors):
            status = run_command(arguments)
    except AssertionError:
        raise
    except Exception:
        return 1, traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        tempfile.tempdir = None
    return status, errors.getvalue()


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", default=[command for command in COMMANDS if command != _SLOW])
    parser.add_argument("--only", default="", help="paths whose names hold this")
    options = parser.parse_args()
    n_cases = n_wrong = 0
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-") as folder:
        os.environ["PROTEOSCOPE_CACHE"] = f"{folder}/cache"
        watch = Watch(Path(folder), make_inputs(Path(folder, "inputs")))
        with tempfile.TemporaryDirectory() as unused:
            names = [name for name in odd_paths(Path(unused), "/nowhere") if options.only in name]
        for command in options.commands:
            for place in places(command):
                for name in names:
                    n_cases += 1
                    try:
                        reported = watch.check(command, place, name)
                    except (AssertionError, OSError) as error:
                        reported, n_wrong = f"WRONG: {error}", n_wrong + 1
                    print(f"{command} {COMMANDS[command][place]} {name}: {reported}".replace(folder, ""), flush=True)
    print(f"{n_cases} cases, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
