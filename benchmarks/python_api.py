"""Time of the Python API: its import, and a search of the sample against the command; one JSON line per figure.

    python -m benchmarks.python_api [--repeats N] [--threads N]

import proteoscope
    `seconds` of the import in new processes of Python, the median and the maximum; the start of Python itself is not counted.
identify
    The sample BSA1 against its proteins on the CPU, in turn as a command and as ``proteoscope.identify`` in this process, each into a new
    project. `seconds` and `command_seconds` are medians; an unmeasured first turn compiles kernels and stores the index. `ratio` is the
    median of the ratios of the turns.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median

import proteoscope
from benchmarks.figures import emit
from proteoscope.engine.execution.resources import available_threads

REPOSITORY = Path(__file__).resolve().parents[1]
_IMPORT = "import time; began = time.perf_counter(); import proteoscope; print(time.perf_counter() - began)"


def import_seconds() -> float:
    """Return the seconds of the import in a new process."""
    done = subprocess.run([sys.executable, "-c", _IMPORT], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return float(done.stdout)


def identify_seconds(folder: Path, threads: int) -> tuple[float, float]:
    """Return the seconds of an identification in this process, and as a command."""
    samples = Path(proteoscope.resources.path("samples"))
    spectra, database = samples / "BSA1.mzML.gz", samples / "albumin_proteins.fasta.gz"
    began = time.perf_counter()
    proteoscope.identify(spectra, database, out=folder / "function", preset="low-resolution", device="cpu", threads=threads)
    called = time.perf_counter()
    words = ["identify", spectra, "--database", database, "--out", folder / "command", "--preset", "low-resolution", "--quiet"]
    command = [sys.executable, "-m", "proteoscope", *map(str, words), "--device", "cpu", "--threads", str(threads)]
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
    return called - began, time.perf_counter() - called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    about = {"date": str(date.today()), "threads": options.threads, "repeats": options.repeats}
    times = [import_seconds() for _ in range(options.repeats + 1)][1:]
    emit({"figure": "import proteoscope"} | about, seconds=round(median(times), 4), most_seconds=round(max(times), 4))
    turns = []
    for turn in range(options.repeats + 1):
        with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as folder:
            seconds = identify_seconds(Path(folder), options.threads)
        if turn:
            turns.append(seconds)
    functions, commands = zip(*turns, strict=True)
    emit(
        {"figure": "identify"} | about,
        seconds=round(median(functions), 3),
        command_seconds=round(median(commands), 3),
        ratio=round(median(function / command for function, command in turns), 3),
    )


if __name__ == "__main__":
    main()
