"""Time of whole commands of two versions of the program, run in turn.

    python -m benchmarks.versions --data FOLDER --old CHECKOUT [--device DEVICE] [--pairs 11] [--commands align]

Each pair runs the older version and this one after the other, in alternating order; indexes and compiled kernels are stored by a first
pair, which is not measured. One JSON line for each command: median wall and CPU seconds, and the median, minimum and maximum ratio of new
to old in a pair. On a busy machine, compare CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COMMANDS = {
    "identify": ("identify", "spectra/bench_x10.mgf", "--database", "proteomes/combo.fasta"),
    "identify, small": ("identify", "spectra/bench_hires_2269.mgf", "--database", "proteomes/yeast_2021_04_reviewed_UPS.fasta"),
    "modified": ("modified", "spectra/bench_hires_2269.mgf", "--database", "proteomes/combo.fasta"),
    "align": ("align", "sequences/cudasw_queries20.fasta", "sequences/mmseqs_DB.fasta"),
    "cluster": ("cluster", "clustering/massbank_esi_ms2.mgf"),
}


def seconds(checkout: Path, arguments: list[str], cache: Path) -> tuple[float, float]:
    """Return wall and CPU seconds of a command."""
    paths = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths, "PROTEOSCOPE_CACHE": str(cache)}
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-m", "proteoscope", *arguments, "--quiet"], env=environment, cwd=checkout, check=True)
    wall, after = time.perf_counter() - began, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="the unpacked data")
    parser.add_argument("--old", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS), metavar="NAME")
    options = parser.parse_args()
    checkouts = {"old": options.old.resolve(), "new": REPOSITORY}
    for name in options.commands:
        given = [str(options.data / part) if "/" in part else part for part in COMMANDS[name]]
        taken: dict[str, list[tuple[float, float]]] = {"old": [], "new": []}
        with tempfile.TemporaryDirectory(prefix="proteoscope-versions-") as folder:
            for pair in range(options.pairs + 1):
                for version in ("old", "new") if pair % 2 else ("new", "old"):
                    out = ["--out", f"{folder}/{version}-{pair}", "--device", options.device]
                    measured = seconds(checkouts[version], [*given, *out], Path(folder, f"cache-{version}"))
                    if pair:
                        taken[version].append(measured)
        row: dict[str, object] = {"figure": "versions", "command": name, "device": options.device, "pairs": options.pairs}
        for place, kind in enumerate(("wall", "processor")):
            old, new = ([times[place] for times in taken[version]] for version in ("old", "new"))
            ratios = [ours / theirs for ours, theirs in zip(new, old, strict=True)]
            row |= {f"old_{kind}_seconds": round(statistics.median(old), 3), f"new_{kind}_seconds": round(statistics.median(new), 3)}
            row[f"{kind}_ratio"] = [round(ratio, 4) for ratio in (statistics.median(ratios), min(ratios), max(ratios))]
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
