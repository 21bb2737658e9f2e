"""A TMT run in a database of few true and many foreign proteins: false matches at a reported 1 %, and matches at equal measured share.

    python -m benchmarks.labelled_run --archive quantms_utils-0.0.31.tar.gz --data FOLDER [--seeds N] [--sampled N] [--checkout DIR ...]
                                      [--out FILE.jsonl]

The run is PXD000001 (Erwinia, TMT 6-plex, Q Exactive; 6,103 spectra). The source archive of quantms-utils 0.0.31 on PyPI
contains it, with what Comet identified. The true proteins are the peptides that Comet accepts at 2 %, each as a separate entry. Proteins of
yeast, human and Sorangium are added, drawn anew for each seed, with about 600 peptides for each true one. A match is false if its peptide
is not one of the true ones (I = L).

With --sampled each search has the given number of spectra of the run, drawn anew for each seed. Each --checkout (by default this one) runs
the search with its own command line, so that a change can be compared with an earlier commit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from lxml import etree
from numpy.typing import NDArray

from benchmarks.entrapment_databases import CONTAMINANT, ENTRAPMENT
from benchmarks.entrapment_estimators import at_equal_share
from benchmarks.entrapment_spectra import sample
from proteoscope.engine.formats import read_spectra
from tests.peers.peer_datasets import FIVE_PROTEOMES, read_fasta

RUN = "TMT_Erwinia_1uLSike_Top10HCD_isol2_45stepped_60min_01"
ORGANISMS = (("_YEAST", FIVE_PROTEOMES), ("_HUMAN", "proteomes/human.small.comet.fasta"), ("_SORC5", FIVE_PROTEOMES))
FOREIGN_PROTEINS = 6000
CONFIDENT = 0.02
CURVE = np.concatenate((np.arange(0, 40) / 2000, np.arange(8, 81) / 400))
EQUAL_SHARES = (0.01, 0.02, 0.03)


def extract(archive: Path, folder: Path) -> tuple[Path, Path]:
    """Extract the run and Comet's identifications, and return their paths."""
    with tarfile.open(archive) as source:
        members = {Path(member.name).name: member for member in source.getmembers() if member.isfile()}
        for name in (f"{RUN}.mzML", f"{RUN}_comet.idXML"):
            content = source.extractfile(members[name])
            assert content is not None
            (folder / name).write_bytes(content.read())
    return folder / f"{RUN}.mzML", folder / f"{RUN}_comet.idXML"


def confident_peptides(identifications: Path) -> list[str]:
    """Return the sequences of the target matches that Comet's E-values accept at `CONFIDENT`, sorted."""
    matches = []
    for _, hit in etree.iterparse(str(identifications), tag="PeptideHit"):
        kind = hit.xpath("string(UserParam[@name='target_decoy']/@value)")
        matches.append((float(hit.get("score")), kind == "decoy", re.sub(r"\([^)]*\)|[^A-Z]", "", hit.get("sequence"))))
        hit.clear()
    matches.sort()
    is_decoy = np.array([decoy for _, decoy, _ in matches])
    accepted = np.flatnonzero(np.cumsum(is_decoy) <= CONFIDENT * np.cumsum(~is_decoy))[-1] + 1
    return sorted({sequence for _, decoy, sequence in matches[:accepted] if not decoy})


def write_database(true: Sequence[str], data: Path, seed: int, path: Path) -> None:
    """Write the true peptides and the foreign proteins of a seed, in random order."""
    foreign = {
        name: sequence
        for mark, proteome in ORGANISMS
        for name, sequence in read_fasta(data / proteome).items()
        if mark in name and not CONTAMINANT.search(name)
    }
    generator = random.Random(seed)
    entries = [(f"ERWINIA_{number}", sequence) for number, sequence in enumerate(true)]
    entries += [(ENTRAPMENT + name, foreign[name]) for name in generator.sample(sorted(foreign), FOREIGN_PROTEINS)]
    generator.shuffle(entries)
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in entries))


def search(checkout: Path, spectra: Path, database: Path, folder: Path) -> Path:
    """Search by the command line of a checkout, and return the table of matches."""
    # Commits without a package `proteoscope` are started by the module of their window.
    launch = ["-m", "proteoscope"] if (checkout / "proteoscope").is_dir() else ["-c", "from gui.launch import main; main()"]
    project = folder / "project"
    subprocess.run(
        [
            sys.executable,
            *launch,
            "identify",
            str(spectra),
            "--database",
            str(database),
            "--out",
            str(project),
            "--preset",
            "tmt",
            "--device",
            "cpu",
        ],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (table,) = project.glob("results/*/psms.parquet")
    return table


def counts(table: Path, true: str) -> NDArray[np.float64]:
    """Return the accepted and the false matches at each q-value of `CURVE`, and at 1 % in the last row; shape (n, 2)."""
    rows = parquet.read_table(table, columns=["sequence", "q_value", "is_decoy", "rank"], memory_map=False).to_pylist()
    rows = [row for row in rows if row["rank"] == 1 and not row["is_decoy"]]
    q_value = np.array([row["q_value"] for row in rows])
    is_false = np.array([row["sequence"].replace("I", "L") not in true for row in rows])
    accepted = q_value[:, None] <= np.append(CURVE, 0.01)
    return np.stack((accepted.sum(axis=0), (accepted & is_false[:, None]).sum(axis=0)), axis=1).astype(np.float64)


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Search each seed with each checkout, and return a record for each checkout."""
    totals: dict[Path, NDArray[np.float64]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        run, identifications = extract(arguments.archive, Path(scratch))
        true = confident_peptides(identifications)
        joined = "|".join(true).replace("I", "L")
        spectra = read_spectra([run]) if arguments.sampled else None
        for seed in range(1, arguments.seeds + 1):
            write_database(true, arguments.data, seed, Path(scratch) / "database.fasta")
            if spectra is not None:
                rows = np.sort(np.random.default_rng(seed).permutation(len(spectra))[: arguments.sampled])
                run = sample(spectra, rows, Path(scratch) / "sample.mgf")
            for checkout in arguments.checkout:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    numbers = counts(search(checkout, run, Path(scratch) / "database.fasta", Path(folder)), joined)
                totals[checkout] = totals.get(checkout, 0) + numbers
    return [record(checkout, total, arguments) for checkout, total in totals.items()]


def record(checkout: Path, total: NDArray[np.float64], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one checkout."""
    commit = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    accepted, false = total[-1].astype(int).tolist()
    equal = {f"{share:g}": round(at_equal_share(total[:-1, 0], total[:-1, 1], share) / arguments.seeds, 1) for share in EQUAL_SHARES}
    return {
        "figure": "labelled_run",
        "commit": commit,
        "seeds": arguments.seeds,
        "sampled": arguments.sampled,
        "accepted": accepted,
        "false": false,
        "at_equal_share": equal,
    }


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print; `words` default to the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--archive", type=Path, required=True, help="source archive of quantms-utils 0.0.31")
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--seeds", type=int, default=8, help="number of databases, and of samples")
    parser.add_argument("--sampled", type=int, default=0, help="spectra of each sample; 0: the whole run")
    parser.add_argument("--checkout", type=Path, nargs="+", default=[Path(__file__).resolve().parents[1]])
    parser.add_argument("--out", type=Path, help="where the JSON lines go")
    arguments = parser.parse_args(words)
    records = measure(arguments)
    for line in records:
        share = line["false"] / max(line["accepted"], 1)
        equal = ", ".join(f"{count:g} at {float(at):.0%}" for at, count in line["at_equal_share"].items())
        print(f"{line['commit']}: {line['accepted']} accepted at a reported 1 %, {share:.2%} false; for a search {equal} measured")
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    main()
