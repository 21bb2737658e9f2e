"""Ratio of the time of an identification with few results to the sum of its five steps; one JSON line per level of advice.

    python -m benchmarks.advice --data FOLDER [--repeats 3] [--levels brief full none]

FOLDER is the unpacked test data: 2,269 spectra (``bench_hires_2269.mgf``) are searched in yeast, on the CPU. A first command, which is not
measured, compiles kernels and builds the peptide index.

advice
    for the repeat with the smallest ratio: `seconds` of the run (without the start of the program), seconds of the `five_steps` and of the
    step `advice`, and `ratio` of the time of the run to that of the five steps. `ratios` has the ratios of all repeats, `command_seconds`
    is the time of the whole process, including its start, and `start_seconds` is that of ``proteoscope --version``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.figures import emit
from proteoscope.engine.execution.resources import available_threads

SPECTRA, DATABASE = "spectra/bench_hires_2269.mgf", "proteomes/yeast_2021_04_reviewed_UPS.fasta"
STEPS = ("read", "index", "plan", "score", "report")


def timed(arguments: list[str], cache: Path) -> float:
    """Return the seconds of a command."""
    began = time.perf_counter()
    environment = os.environ | {"PROTEOSCOPE_CACHE": str(cache)}
    subprocess.run([sys.executable, "-m", "proteoscope", *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def identified(data: Path, folder: Path, level: str, cache: Path) -> dict[str, Any]:
    """Return the figures of one command."""
    command = ["identify", str(data / SPECTRA), "--database", str(data / DATABASE), "--out", str(folder), "--device", "cpu", "--quiet"]
    seconds = timed([*command, "--preset", "high-resolution", "--advice", level], cache)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    five = sum(record["steps"][step]["seconds"] for step in STEPS)
    return {
        "seconds": record["seconds"],
        "five_steps": round(five, 3),
        "advice": record["steps"]["advice"]["seconds"],
        "ratio": round(record["seconds"] / five, 3),
        "command_seconds": round(seconds, 3),
    }


def main() -> None:
    """Measure each level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--levels", nargs="+", default=["none", "brief", "full"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-advice-") as name:
        folder = Path(name)
        identified(options.data, folder / "first", "none", folder / "cache")
        start = min(timed(["--version"], folder / "cache") for _ in range(options.repeats))
        for level in options.levels:
            figures = [identified(options.data, folder / f"{level}-{n}", level, folder / "cache") for n in range(options.repeats)]
            best = min(figures, key=lambda figure: figure["ratio"])
            emit(
                {"figure": "advice", "date": str(date.today()), "threads": available_threads(), "level": level},
                **best,
                ratios=[figure["ratio"] for figure in figures],
                start_seconds=round(start, 3),
            )


if __name__ == "__main__":
    main()
