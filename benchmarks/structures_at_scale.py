"""Wall time of ``proteoscope structures`` with one query and a large structure database.

    python -m benchmarks.structures_at_scale --data FOLDER [--chains 105580] [--devices cpu cuda] [--repeats 5] [--keep FOLDER]

The database consists of repeated copies of the chains of `FOLDER/structures/bench_ca`. Each copy has another name and random displacements
of its Cα by 0.3 Å, so that no two are the same. The benchmark measures the speed of searching a large database, not the quality of results,
since each chain has a hundred copies. `--keep`: folder of the database, which is reused if it exists.

structures at scale
    `seconds`: median and minimum of the runs, for the whole process; `describing_seconds`: the first run, which describes the chains and,
    in a fresh checkout, compiles kernels; `steps`: seconds of the steps of the fastest run, from its run.json; `megabytes`: peak memory.
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
from statistics import median

import numpy as np

from benchmarks.figures import emit
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.structures import read_chains, sources_of
from proteoscope.engine.structures.chains import RESIDUE_COLUMNS, Chains
from proteoscope.engine.structures.database import Collection, SourceFile, write_database
from proteoscope.engine.structures.sources import DATABASE_FILE

REPOSITORY = Path(__file__).resolve().parents[1]
_SHAKEN = 0.3  # Å
_LENGTH = 300  # residues of the query, about


def copies(chains: Chains, n: int) -> Chains:
    """Return n chains: repeated, with all but the first copy perturbed and renamed."""
    rng, number = np.random.default_rng(0), np.arange(n)
    made = chains.taken(number % len(chains))
    is_copy = np.repeat(number >= len(chains), made.lengths)
    made.position[is_copy] += rng.normal(scale=_SHAKEN, size=(int(is_copy.sum()), 3)).astype(np.float32)
    names = tuple(f"{name}_{copy}" for name, copy in zip(made.names, (number // len(chains)).tolist(), strict=True))
    return Chains(names, made.descriptions, made.offsets, **{name: getattr(made, name) for name in RESIDUE_COLUMNS})


def make_database(data: Path, n: int, folder: Path) -> None:
    """Create a structure database of n copies."""
    some = read_chains(sources_of([data / "structures" / "bench_ca" / "pdb"]), Progress(), available_threads())
    chains = copies(some.chains, n)
    sources = [SourceFile(f"/copies/{name}.pdb", 1, 1, ()) for name in chains.names]
    folder.mkdir(parents=True, exist_ok=True)
    write_database(folder, [Collection(chains, np.arange(n, dtype=np.int32), sources)], [np.ones(n, np.bool_)], 0.0, "first")


def query_of(data: Path) -> Path:
    """Return a chain of bench_ca of about `_LENGTH` residues."""
    some = read_chains(sources_of([data / "structures" / "bench_ca" / "pdb"]), Progress(), available_threads())
    name = some.chains.names[int(np.searchsorted(some.chains.lengths, _LENGTH))]
    return next(path for path in sorted((data / "structures" / "bench_ca" / "pdb").iterdir()) if path.name.startswith(name))


def run(query: Path, database: Path, device: str, cache: Path, scratch: Path) -> tuple[float, dict[str, float], int]:
    """Return the seconds of a command, its steps, and peak megabytes."""
    project, hits = scratch / "project", scratch / "hits.tsv"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
        "PROTEOSCOPE_CACHE": str(cache),
    }
    command = [
        sys.executable,
        "-m",
        "proteoscope",
        "structures",
        str(query),
        "--database",
        str(database),
        "--out",
        str(hits),
        "--project",
        str(project),
        "--device",
        device,
        "--quiet",
    ]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"the search failed on {device}")
    record = max(project.glob("**/run.json"), key=lambda path: path.stat().st_mtime)
    return seconds, json.loads(record.read_text())["seconds"], used.ru_maxrss >> 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--chains", type=int, default=105_580, metavar="N")
    parser.add_argument("--devices", nargs="+", default=["cpu"], metavar="DEVICE")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
        database, began = options.keep or Path(scratch, "database"), time.perf_counter()
        if not (database / DATABASE_FILE).exists():
            make_database(options.data, options.chains, database)
        print(json.dumps({"making_seconds": round(time.perf_counter() - began, 1)}), flush=True)
        query = query_of(options.data)
        for device in options.devices:
            first, *runs = (run(query, database, device, Path(scratch, "cache"), Path(scratch)) for _ in range(options.repeats + 1))
            best = min(runs)
            emit(
                {"figure": "structures at scale", "date": str(date.today()), "threads": available_threads(), "device": device},
                chains=options.chains,
                query=query.stem,
                seconds=round(median(run[0] for run in runs), 3),
                least_seconds=round(best[0], 3),
                describing_seconds=round(first[0], 1),
                steps=best[1],
                megabytes=max(run[2] for run in runs),
            )


if __name__ == "__main__":
    main()
