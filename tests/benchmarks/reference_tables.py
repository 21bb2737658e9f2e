"""The tables of reference searches by their digests: two versions of the program, or two devices, give the same, byte for byte.

    python -m tests.benchmarks.reference_tables --data FOLDER [--checkout FOLDER] [--device DEVICE] > tables.json
    python -m tests.benchmarks.reference_tables --data FOLDER --against tables.json

Searched are all datasets of `tests.peers.peer_datasets`, further presets and scores on the small ones, and a database with Smith-Waterman,
in all formats. One JSON object is printed: for each search, the SHA-256 of every table and file that it writes. With ``--against``, those
that differ are named on stderr and the exit status is 1. `--checkout` names the source tree of the version to run, else it is this one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.peers.peer_datasets import DATASETS, EIGHTEEN_PROTEINS, Dataset

REPOSITORY = Path(__file__).resolve().parents[2]
SEQUENCES = "sequences/cudasw_queries20.fasta", "sequences/mmseqs_DB.fasta"
FORMATS = ("tsv", "blast6", "sam", "fasta", "clustal", "html")
MORE_IDENTIFICATIONS = {
    "second_pass": ("yeast_velos", ("second_pass=true",)),
    "five_hits": ("ecoli_ltq", ("hits_per_spectrum=5",)),
    "no_decoys": ("bsa1", ("decoys=none",)),
    "semi_specific": ("bsa1", ("specificity=semi-specific",)),
    **{score: ("bench", (f"score={score}",)) for score in ("hyperscore", "xcorr", "ksdp")},
}
MORE_ALIGNMENTS = {
    "pam30": ("--matrix", "PAM30"),
    "cheap_gaps": ("--gap-open", "6", "--gap-extend", "2"),
    "fitted": ("--statistics", "fitted"),
    "few": ("--top", "3", "--max-e-value", "0.001"),
}


def searches(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and arguments of each search; ``OUT`` stands for the folder of its results."""

    def identify(dataset: Dataset, settings: tuple[str, ...] = ()) -> list[str]:
        spectra = [str(data / name) for name in dataset.spectra]
        changes = [part for setting in settings for part in ("--set", setting)]
        return ["identify", *spectra, "--database", str(data / dataset.database), "--preset", dataset.preset, *changes, "--out", "OUT"]

    for name, dataset in DATASETS.items():
        yield name, identify(dataset)
    for name, (dataset_name, settings) in MORE_IDENTIFICATIONS.items():
        yield f"{dataset_name}_{name}", identify(DATASETS[dataset_name], settings)
    open_search = Dataset("bsa1", DATASETS["bsa1"].spectra, EIGHTEEN_PROTEINS, preset="open")
    yield "bsa1_open", identify(open_search)
    files = [str(data / name) for name in SEQUENCES]
    for name in FORMATS:
        yield f"align_{name}", ["align", *files, "--format", name, "--out", "OUT/hits", "--project", "OUT"]
    for name, options in MORE_ALIGNMENTS.items():
        yield f"align_{name}", ["align", *files, *options, "--out", "OUT/hits", "--all-scores", "OUT/scores.npy"]


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of all tables and files below a folder but for those that tell of time: databases, locks and records."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    kept = [path for path in paths if not path.name.startswith("project.") and path.name != "run.json"]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="the unpacked data")
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, metavar="FOLDER")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--against", type=Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    options = parser.parse_args()
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="proteoscope-tables-") as name:
        environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(options.checkout), os.environ.get("PYTHONPATH", "")]),
            "PROTEOSCOPE_CACHE": f"{name}/cache",
        }  # fmt: skip
        for number, (search, arguments) in enumerate(searches(options.data)):
            if options.only and search not in options.only:
                continue
            out = Path(name, f"{number}")
            given = [one.replace("OUT", str(out)) if one.startswith("OUT") else one for one in arguments]
            if given[0] == "align" and "--project" not in given:
                out.mkdir()
            command = [
                sys.executable,
                "-m",
                "engine.command_line",
                *given,
                "--device",
                options.device,
                "--threads",
                options.threads,
                "--quiet",
            ]
            subprocess.run(command, cwd=options.checkout, env=environment, check=True)
            found[search] = digests(out)
            print(search, file=sys.stderr)
    print(json.dumps(found, indent=1))
    if options.against is None:
        return 0
    expected = json.loads(options.against.read_text())
    differing = [f"{search}: {name}" for search, files in found.items() for name in sorted({*files, *expected.get(search, {})})
                 if files.get(name) != expected.get(search, {}).get(name)]  # fmt: skip
    print("\n".join(differing) or "all are the same", file=sys.stderr)
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
