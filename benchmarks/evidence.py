"""Seconds of each step of ``proteoscope evidence`` for peptides of many proteins and a database of chains, in a separate process.

::

    python -m benchmarks.evidence --data FOLDER [--proteins 1000] [--chains 105580] [--device cpu] [--threads N] [--out FILE]

The database is that of `structures_at_scale`. The proteins are sequences of its chains with one residue in seven exchanged, and every
second peptide of a full digestion was observed. The structure files of the database do not exist, so that neither atoms nor exposure are
read. One JSON line, also appended to FILE; `tables` is the SHA-256 of all tables of the run, which is the same on all devices.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.structures_at_scale import make_database
from proteoscope.engine.structures.database import open_database
from tests.engine.evidence.evidence_projects import changed, write_identification

REPOSITORY = Path(__file__).resolve().parents[1]
_EXCHANGED = 7
_SHORTEST = 60


def proteins_of(database: Path, n: int) -> dict[str, str]:
    """Return changed sequences of chains, evenly over their lengths."""
    chains = open_database(database).chains
    long_enough = np.flatnonzero(np.asarray(chains.lengths) >= _SHORTEST)
    rows = long_enough[np.linspace(0, len(long_enough) - 1, n).astype(np.int64)]
    return {f"P{number}": changed(chains.sequence(int(row)).replace("X", "A"), _EXCHANGED) for number, row in enumerate(rows)}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--proteins", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=105_580)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-evidence-") as name:
        folder = Path(name)
        make_database(options.data, options.chains, folder / "database")
        project = write_identification(folder, proteins_of(folder / "database", options.proteins))
        path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "proteoscope",
                "evidence",
                str(project),
                "--structures",
                str(folder / "database"),
                "--json",
                "--device",
                options.device,
                "--threads",
                options.threads,
            ],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        summary = json.loads(done.stdout)
        tables = sorted((project / "results" / summary["run_id"]).glob("*.parquet"))
        digest = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in tables)).hexdigest()[:16]
    steps = {step: round(values["seconds"], 2) for step, values in summary["stages"].items()}
    figures = {key: summary[key] for key in ("n_proteins", "n_on_structures", "n_chains", "n_peptides", "device")}
    line = json.dumps({"benchmark": "evidence", **figures, "seconds": round(summary["seconds"], 2), "steps": steps, "tables": digest})
    print(line)
    if options.out:
        with options.out.open("a") as file:
            file.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
