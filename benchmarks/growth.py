"""Time and memory of whole commands as their input grows: one JSON line per size, added to `results/growth.jsonl` with ``--keep``.

    python -m benchmarks.growth identify --data FOLDER [--sizes 22690 226900 1000000] [--threads 2] [--device cpu]
    python -m benchmarks.growth cluster --data FOLDER [--sizes 300000 3000000]
    python -m benchmarks.growth reads --data FOLDER [--sizes 1000000 10000000]

FOLDER is the unpacked test data. There are not enough real spectra and reads, so spectra are copied and reads are simulated:

identify
    2,269 high-resolution spectra, copied up to the given size, each copy perturbed (peaks by 3 ppm, a tenth of them left out, intensities
    by a factor of 2^N(0, 0.4), the precursor by 2 ppm), as MGF, against five proteomes with decoys; preset high-resolution.
cluster
    the same spectra, grouped with the defaults.
reads
    simulated reads of 150 bases (2 % errors, up to two gaps) of S. aureus NCTC 8325, to SAM.

Each is a separate process; a small run before it compiles kernels and stores indexes. `seconds` and `processor_seconds` of the process,
`microseconds_each`, `peak_megabytes` as reported by the system (including accessed pages of mapped files), `steps` as reported by the run.
On Linux ``taskset -c 0,1`` before the command limits it to two cores.
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

import numpy as np

from benchmarks.clustering_at_scale import repeated
from benchmarks.figures import emit, existing
from benchmarks.simulated_reads import genome_of, write_reads
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.writing import write_spectrum_file
from proteoscope.engine.version import VERSION

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results") / "growth.jsonl"
GENOME = "dna_Saureus_NCTC8325.fasta"
SIZES = {"identify": (22_690, 226_900, 1_000_000), "cluster": (300_000, 3_000_000), "reads": (1_000_000, 10_000_000)}
_AT_ONCE = 100  # copies held in memory while they are written


def write_copies(source: Path, out: Path, n: int) -> None:
    """Write `n` spectra: those of a file, and perturbed copies of them."""
    spectra = read_spectra([source])
    per_part, written = _AT_ONCE * len(spectra), 0
    with out.open("wb") as file:
        while written < n:
            copies = repeated(spectra, -(-min(per_part, n - written) // len(spectra)), seed=written + 1)
            part = out.with_suffix(".part.mgf")
            rows = np.arange(min(len(copies), n - written))
            write_spectrum_file(part, copies, rows=rows, threads=os.cpu_count() or 1)
            file.write(part.read_bytes())
            part.unlink()
            written += len(rows)


def measured(command: list[str]) -> dict[str, Any]:
    """Return the time and memory of a process of the program."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "proteoscope.engine.command_line", *command, "--quiet"], cwd=REPOSITORY, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {status}")
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_megabytes": round(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6),
    }


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(SIZES))
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--scratch", type=Path, help="where the files are written")
    parser.add_argument("--keep", action="store_true", help=f"add the lines to {RESULTS.name}")
    parser.add_argument("--remark", default="", help="what else is to be known of the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-growth-", dir=options.scratch) as scratch:
        for number, size in enumerate((2_269, *(options.sizes or SIZES[options.what]))):
            line = _figures_of_size(options, Path(scratch), size)
            if number == 0:
                continue  # the first run compiled kernels and built the index
            about = {
                "figure": f"growth of {options.what}",
                "version": VERSION,
                "date": str(date.today()),
                "items": size,
                "threads": options.threads,
                "device": options.device,
                "processor": processor().description,
            }
            line = {**line, "microseconds_each": round(line["seconds"] / size * 1e6, 1), "remark": options.remark}
            emit(about, **line)
            if options.keep:
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(about | line) + "\n")


def _figures_of_size(options: argparse.Namespace, folder: Path, size: int) -> dict[str, Any]:
    """Return the figures of one size."""
    source, project = folder / ("input.fastq" if options.what == "reads" else "input.mgf"), folder / f"project-{size}"
    database = folder / "genome.fasta"
    if options.what == "reads":
        database.write_bytes((options.data / "dna" / GENOME).read_bytes())
        write_reads(source, genome_of(database), size)
        command = ["reads", str(database), str(source), "--out", str(folder / "out.sam"), "--mode", "within", "--project", str(project)]
    else:
        write_copies(existing(options.data / "spectra" / "bench_hires_2269.mgf"), source, size)
        command = [options.what, str(source), "--out", str(project)]
    if options.what == "identify":
        command += ["--database", str(existing(options.data / "proteomes" / "combo.fasta")), "--preset", "high-resolution"]
    megabytes = round(source.stat().st_size / 1e6)
    measurement = measured([*command, "--threads", str(options.threads), "--device", options.device])
    record = json.loads((project / "run.json").read_text()) if (project / "run.json").exists() else {}
    source.unlink()
    steps = {name: round(step["seconds"], 2) for name, step in record.get("steps", {}).items()}
    return {"input_megabytes": megabytes, **measurement, "steps": steps, "counts": record.get("counts", {})}


if __name__ == "__main__":
    main()
