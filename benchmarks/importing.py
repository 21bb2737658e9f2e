"""Time and memory of the import of many matches: tables and XML with 100,000 synthetic PSMs.

    python -m benchmarks.importing --out results.jsonl [--psms 100000] [--formats sage pepxml]

Spectra, a database and results are made of random peptides; each import is a separate process whose wall seconds and peak memory are
measured. The targets are 20 s for tables and 60 s for XML, on two cores, within 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.engine.imported import small_results
from tests.engine.imported.small_results import FORMATS, Truth

REPOSITORY = Path(__file__).resolve().parents[1]
XML = ("pepxml", "mzidentml", "xtandem", "idxml")
PEAKS = 40


def made(n: int) -> list[Truth]:
    """Return `n` matches: random tryptic peptides, a third with a modification, a tenth decoys."""
    chance = random.Random(7)
    matches = []
    for scan in range(1, n + 1):
        sequence = "".join(chance.choices("ADEFGHILMNPQSTVWYC", k=chance.randint(7, 20))) + chance.choice("KR")
        sites = [i for i, residue in enumerate(sequence, 1) if residue == "M"][:1]
        modifications = tuple((i, "Oxidation") for i in sites)
        is_decoy = chance.random() < 0.1
        protein = f"{'DECOY_' if is_decoy else ''}P{scan // 20}"
        e_value = 10 ** -chance.uniform(-1, 3 if is_decoy else 10)
        matches.append(Truth(scan, chance.choice((2, 3)), sequence, modifications, (protein,), e_value, chance.random() * 0.05, sequence))
    return matches


def write_inputs(matches: list[Truth], folder: Path) -> None:
    """Write the spectra, each with some peaks, and the proteins."""
    chance = random.Random(8)
    with (folder / "run.mgf").open("w") as file:
        for match in matches:
            mz = sorted(chance.uniform(100, 1500) for _ in range(PEAKS))
            file.write(
                f"BEGIN IONS\nTITLE=run.{match.scan}.{match.scan}.{match.charge}\nSCANS={match.scan}\nRTINSECONDS={match.scan / 10}\n"
            )
            file.write(f"PEPMASS={match.mz:.5f}\nCHARGE={match.charge}+\n")
            file.write("".join(f"{value:.4f} {chance.randint(1, 10000)}\n" for value in mz) + "END IONS\n")
    proteins: dict[str, str] = {}
    for match in matches:
        proteins[match.proteins[0]] = proteins.get(match.proteins[0], "") + match.sequence
    (folder / "proteins.fasta").write_text("".join(f">{name}\n{sequence}\n" for name, sequence in proteins.items()))


def measured(results: Path, folder: Path) -> dict[str, float]:
    """Return wall seconds and peak megabytes of an import as a process."""
    command = [
        sys.executable,
        "-c",
        "import sys; from proteoscope.gui.launch import main; sys.exit(main())",
        "import",
        results,
        "--spectra",
        folder / "run.mgf",
        "--database",
        folder / "proteins.fasta",
        "--out",
        folder / f"project-{results.name.replace('.', '-')}",
        "--device",
        "cpu",
        "--quiet",
    ]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the import of {results} ended with {process.returncode}")
    return {"seconds": round(time.perf_counter() - started, 2), "peak_megabytes": round(usage.ru_maxrss * 1024 / 1e6)}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psms", type=int, default=100_000)
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=list(FORMATS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    matches = made(options.psms)
    small_results.TRUTH = tuple(matches)  # input of the writers of all formats
    lines = []
    with tempfile.TemporaryDirectory(prefix="importing-") as name:
        folder = Path(name)
        write_inputs(matches, folder)
        for format in options.formats:
            results = small_results.write_results(format, folder)
            about = {"format": format, "kind": "xml" if format in XML else "table", "psms": len(matches), "bytes": results.stat().st_size}
            lines.append({**about, **measured(results, folder)})
            print(json.dumps(lines[-1]), flush=True)
    if options.out is not None:
        options.out.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    main()
