"""Sizes of the bundles of a release, and CPU time of small commands run from the bundled folder.

    bash installer/bundle.sh --out FOLDER
    python -m benchmarks.bundles FOLDER

Each command runs once to fill the disk cache, and then `--times` times; the median CPU time (user and system) is printed in seconds. Sizes
of folders are in megabytes on disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
from pathlib import Path
from statistics import median

from benchmarks.figures import emit

COMMANDS = (("--version",), ("--help",), ("devices",))


def size_of(path: Path) -> float:
    """Return megabytes of a file, or of the blocks of a folder's files."""
    if path.is_file():
        return path.stat().st_size / 1e6
    return sum(file.lstat().st_blocks * 512 for file in path.rglob("*")) / 1e6


def processor_seconds(command: list[str]) -> float:
    """Return the CPU seconds of a command and its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure the bundles and the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where installer/bundle.sh put them")
    parser.add_argument("--times", type=int, default=5, help="how often each command runs (default: %(default)s)")
    options = parser.parse_args()
    for path in sorted([options.folder / "proteoscope", *options.folder.glob("*.run"), *options.folder.glob("*.deb")]):
        if path.exists():
            emit({"what": "bundle"}, name=path.name, megabytes=round(size_of(path), 1))
    for words in COMMANDS:
        command = [str(options.folder / "proteoscope" / "proteoscope"), *words]
        processor_seconds(command)
        emit(
            {"what": "bundle"},
            command=" ".join(words),
            processor_seconds=round(median(processor_seconds(command) for _ in range(options.times)), 3),
        )


if __name__ == "__main__":
    main()
