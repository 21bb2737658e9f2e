"""How long ``proteoscope identify`` takes as a user sees it: a process of its own, from its start to its end. One JSON line a figure.

    python -m tests.benchmarks.whole_command --data FOLDER [--devices cpu cuda] [--repeats N] [--threads N]

FOLDER is the unpacked test data (its files may be compressed with gzip). The search is that of 2,269 high-resolution spectra, each ten
times (22,690; one MGF of 40 MB), against five proteomes with reversed decoys; preset high-resolution. Kernels are compiled and Python's
bytecode is written in a run before, which is not counted.

whole command
    the median of the runs: `seconds` from start to end of the process, `own_seconds` and `steps` as its run.json tells them (its best run),
    `peak_megabytes` of memory; `index` is built by each run, or kept in the project from the run before. `reading_seconds` is what reading
    the spectra takes in a process that has done it before, `reading_command_seconds` what a process takes that reads them and does nothing
    else: no command that reads them can take less.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from statistics import median

from engine.execution.devices import devices
from engine.execution.threads import available_threads
from tests.benchmarks.figures import emit, existing

REPOSITORY = Path(__file__).resolve().parents[2]
TIMES = 10
READ = """
import sys, time
from engine.formats import read_spectra
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    n = len(read_spectra([sys.argv[1]], threads=int(sys.argv[3])))
    print(time.perf_counter() - began)
"""


def unpacked(path: Path) -> bytes:
    """What a file holds, which may be compressed."""
    path = existing(path)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def run(*arguments: str) -> tuple[str, float, int]:
    """What a Python process prints, its seconds from start to end, and its peak memory (bytes; 0 where the system does not tell)."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a program that is installed has its bytecode
    began, peak = time.perf_counter(), 0
    with subprocess.Popen([sys.executable, *arguments], cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            if status.exists():
                resident = status.read_text().partition("VmRSS:")[2].split()
                peak = max(peak, int(resident[0]) * 1024 if resident else 0)
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        text = process.stdout.read() if process.stdout else ""
    if process.returncode:
        sys.exit(f"{' '.join(arguments)} ended with {process.returncode}")
    return text, seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--devices", nargs="+", default=["cpu"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=available_threads())
    arguments = parser.parse_args()
    described = {device.name: device.description for device in devices()}
    with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
        folder = Path(scratch)
        spectra, database = folder / "bench_x10.mgf", folder / "combo.fasta"
        spectra.write_bytes(unpacked(arguments.data / "spectra" / "bench_hires_2269.mgf") * TIMES)
        database.write_bytes(unpacked(arguments.data / "proteomes" / "combo.fasta"))
        n, threads = str(arguments.repeats), str(arguments.threads)
        run("-c", READ, str(spectra), "1", threads)
        reading = min(map(float, run("-c", READ, str(spectra), n, threads)[0].split()))
        reading_command = min(run("-c", READ, str(spectra), "1", threads)[1] for _ in range(arguments.repeats))
        size = {"figure": "whole command", "date": str(date.today()), "spectra": 2269 * TIMES}
        size |= {"megabytes": round(spectra.stat().st_size / 1e6, 1), "threads": arguments.threads}
        for device in arguments.devices:
            command = ["-m", "engine.command_line", "identify", "--preset", "high-resolution", "--quiet", "--device", device,
                       "--threads", threads, "--database", str(database)]  # fmt: skip
            run(*command, "--out", str(folder / f"{device}-first"), str(spectra))
            for index in ("built", "kept"):
                found = []
                for number in range(arguments.repeats):
                    project = folder / (f"{device}-{number}" if index == "built" else f"{device}-first")
                    _, seconds, peak = run(*command, "--out", str(project), str(spectra))
                    found.append((seconds, peak, json.loads((project / "run.json").read_text())))
                best = min(found, key=lambda one: one[0])[2]
                emit(
                    size, device=device, device_description=described.get("cuda:0" if device == "cuda" else device, ""), index=index,
                    seconds=round(median(one[0] for one in found), 2), own_seconds=round(best["seconds"], 2),
                    steps={name: round(step["seconds"], 2) for name, step in best["steps"].items()},
                    peak_megabytes=round(max(one[1] for one in found) / 1e6), counts=best["counts"],
                    reading_seconds=round(reading, 2), reading_command_seconds=round(reading_command, 2),
                )  # fmt: skip


if __name__ == "__main__":
    main()
