"""Time of small commands of two versions of the program, run in turn; one JSON line per command.

    python -m benchmarks.command_start --data FOLDER --against CHECKOUT [--pairs N] [--only NAME ...]

FOLDER is the unpacked test data. The searches are those of `reference_tables.py --small`, on inputs so small that most of the time is the
start: loading libraries and kernels. They run on the CPU. An unmeasured first turn compiles kernels, writes bytecode and fills the disk
cache.

command start
    `processor_seconds` (user and system time of all threads) and `seconds` of the process, each the minimum of all turns, since other
    programs on the machine can only add time; `before` has the same of the other checkout.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from benchmarks.figures import emit
from benchmarks.reference_tables import make_files, small
from proteoscope.engine.execution.resources import available_threads

REPOSITORY = Path(__file__).resolve().parents[1]
IDENTIFIED = "small_ecoli_ltq"
SEARCHES = {"align": "small_align", "structures": "small_structures_sensitive", "reads": "small_reads_places", "cluster": "small_cluster"}


def commands(data: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the commands and their names; a command that reads a project follows the command that writes it."""
    yield from (("help", ("--help",)), ("version", ("--version",)), ("align --help", ("align", "--help")))
    yield from (("parameters cluster", ("parameters", "cluster")), ("parameters identify", ("parameters", "identify")))
    cases = {case.name: case.commands for case in small(data)}
    device = ("--device", "cpu", "--quiet")
    for name, case in SEARCHES.items():
        yield name, (*cases[case][0], *device)
    for words in cases[IDENTIFIED]:
        yield words[0], (*words, *device)
    yield "export", ("export", "OUT", "--format", "tsv", "--out", "OUT/exported")


def run(checkout: Path, arguments: list[str], cache: Path) -> tuple[float, float]:
    """Return the CPU and wall seconds of a command."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "PROTEOSCOPE_CACHE": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a program that is installed has its bytecode
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "proteoscope", *arguments]
    subprocess.run(command, cwd=checkout, env=environment, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--against", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    arguments = parser.parse_args()
    checkouts = {"before": arguments.against.resolve(), "now": REPOSITORY}
    with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
        made = Path(scratch, "made")
        make_files(arguments.data, made)
        for name, command in commands(arguments.data):
            if arguments.only and name not in arguments.only:
                continue
            times: dict[str, list[tuple[float, float]]] = {version: [] for version in checkouts}
            for turn in range(arguments.pairs + 1):
                for version in sorted(checkouts, reverse=bool(turn % 2)):
                    out = f"{scratch}/{version}-{name if name in SEARCHES else 'project'}"
                    Path(out).mkdir(exist_ok=True)
                    given = [argument.replace("OUT", out, 1) if argument.startswith("OUT") else argument for argument in command]
                    given = [argument.replace("MADE", str(made), 1) if argument.startswith("MADE") else argument for argument in given]
                    figures = run(checkouts[version], given, Path(scratch, "cache"))
                    if turn:
                        times[version].append(figures)
            least = {version: [round(min(column), 3) for column in zip(*rows, strict=True)] for version, rows in times.items()}
            emit(
                {"figure": "command start", "date": str(date.today()), "threads": available_threads(), "command": name},
                pairs=arguments.pairs,
                processor_seconds=least["now"][0],
                processor_seconds_before=least["before"][0],
                seconds=least["now"][1],
                seconds_before=least["before"][1],
            )


if __name__ == "__main__":
    main()
