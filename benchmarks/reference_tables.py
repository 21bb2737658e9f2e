"""Digests of the result tables of reference searches, to check that two program versions or devices give identical bytes.

    python -m benchmarks.reference_tables --data FOLDER [--checkout FOLDER] [--device DEVICE] > tables.json
    python -m benchmarks.reference_tables --data FOLDER --against tables.json
    python -m benchmarks.reference_tables --data FOLDER --small

The searches are those of all datasets of `tests.peers.peer_datasets`, those of the small datasets with further presets and scores, a
Smith-Waterman search of a database in all formats, and small inputs with each of the seven kinds of searches; with ``--small``, only the
last. The runs of the small inputs are also exported in all formats. One JSON object is printed: for each search, the SHA-256 of every file
that it writes, and of every column of its Parquet tables, by value. With ``--against``, digests that differ are listed on stderr, and the
exit status is 1. `--checkout` is the source tree of the version to run, by default this one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from benchmarks.simulated_reads import genome_of, write_reads
from proteoscope.engine.matches.exports import PLACES_ON_GENOMES
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.sequences.hits import OF_ONE_QUERY
from tests.peers.peer_datasets import DATASETS, EIGHTEEN_PROTEINS, Dataset

REPOSITORY = Path(__file__).resolve().parents[1]
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
    "few": ("--hits-per-query", "3", "--maximum-e-value", "0.001"),
}
DATE = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z?")
SMALL_IDENTIFICATIONS = ("ecoli_ltq", "yeast_velos")
N_READS, READ_LENGTH, READS_OF_MATES, FRAGMENT_LENGTH = 400, 100, 200, 350
COMPLEMENT = str.maketrans("ACGT", "TGCA")


class Case(NamedTuple):
    """A search: its name and command lines.

    ``OUT`` is replaced by the folder of its results, ``MADE`` by the folder of synthetic files. Runs of the `kinds` of its project are
    exported in all formats.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...] = ()


def large(data: Path) -> Iterator[Case]:
    """Yield identifications and sequence searches of realistic size."""
    for name, arguments in searches(data):
        yield Case(name, (tuple(arguments),))


def small(data: Path) -> Iterator[Case]:
    """Yield each kind of search on small inputs."""

    def files(*names: str) -> list[str]:
        return [str(data / name) for name in names]

    for name in SMALL_IDENTIFICATIONS:
        dataset = DATASETS[name]
        given = (*files(*dataset.spectra), "--database", str(data / dataset.database), "--preset", dataset.preset, "--out", "OUT")
        preset = "low-resolution" if dataset.preset == "low-resolution" else "standard"
        follow_ups = (
            ("explain", "OUT", "--out", "OUT/explained.tsv"),
            ("modified", "--from-project", "OUT", "--preset", preset, "--out", "OUT"),
        )
        yield Case(f"small_{name}", (("identify", *given), *follow_ups), ("identify", "explain", "modified"))
    yeast = DATASETS["yeast_velos"]
    yield Case(
        "small_modified", (("modified", *files(*yeast.spectra), "--database", str(data / yeast.database), "--out", "OUT"),), ("modified",)
    )
    peptides = "clustering/peptides_pride_labelled"
    labels = ("--labels", str(data / f"{peptides}.labels.tsv"))
    yield Case(
        "small_cluster",
        (("cluster", *files(f"{peptides}.mgf"), *labels, "--consensus", "OUT/consensus.mgf", "--out", "OUT"),),
        ("cluster",),
    )
    for mode in ("sensitive", "published"):
        given = (
            "MADE/globins/d1mbaa_.pdb",
            "MADE/globins/d1cg5b_.pdb",
            "--database",
            "MADE/globins",
            "--mode",
            mode,
            "--hits-per-query",
            "8",
        )
        out = ("--out", "OUT/hits.tsv", "--superpose", "OUT/superposed", "--complexes", "OUT/complexes.tsv", "--project", "OUT/project")
        yield Case(f"small_structures_{mode}", (("structures", *given, *out),), ("structures",))
    lambda_phage = str(data / "dna/dna_lambda.fasta")
    for name, more in {
        "places": ("--mode", "within"),
        "local": ("--mode", "local"),
        "mates": ("--mates", "MADE/mates.fastq", "--mode", "within"),
    }.items():
        given = (
            lambda_phage,
            "MADE/firsts.fastq" if name == "mates" else "MADE/reads.fastq",
            *more,
            "--out",
            "OUT/reads.sam",
            "--project",
            "OUT/project",
        )
        yield Case(f"small_reads_{name}", (("reads", *given),), ("reads",))
    pairs = ("MADE/texts.fasta", "MADE/patterns.fasta", "--mode", "prefix", "--maximum-gaps", "1")
    yield Case("small_reads_pairs", (("reads", *pairs, "--out", "OUT/reads.tsv", "--project", "OUT/project"),), ("reads",))
    given = ("MADE/queries.fasta", "MADE/database.fasta", "--maximum-e-value", "1000")
    yield Case("small_align", (("align", *given, "--out", "OUT/hits.tsv", "--project", "OUT/project"),), ("align",))


def make_files(data: Path, folder: Path) -> None:
    """Write the input of the small searches that is not in the data."""
    folder.mkdir()
    (folder / "globins").mkdir()
    for path in (data / "structures/globins").iterdir():
        shutil.copy(path, folder / f"globins/{path.name}.pdb")
    genome = genome_of(data / "dna/dna_lambda.fasta")
    write_reads(folder / "reads.fastq", genome, N_READS, length=READ_LENGTH)
    bases = genome[0].tobytes().decode()
    with (folder / "firsts.fastq").open("w") as firsts, (folder / "mates.fastq").open("w") as mates:
        for number in range(READS_OF_MATES):
            begin = 237 * number % (len(bases) - FRAGMENT_LENGTH)
            end = begin + FRAGMENT_LENGTH
            first, second = bases[begin : begin + READ_LENGTH], bases[end - READ_LENGTH : end].translate(COMPLEMENT)[::-1]
            for file, read in ((firsts, first), (mates, second)):
                file.write(f"@pair{number}\n{read}\n+\n{'F' * READ_LENGTH}\n")
    with (folder / "texts.fasta").open("w") as texts, (folder / "patterns.fasta").open("w") as patterns:
        for number in range(12):
            begin = 1000 * number
            texts.write(f">text {number}\n{bases[begin : begin + 90]}\n")
            # Some with a gap, some that fit nowhere.
            shift = 40 * (number % 3)
            patterns.write(f'>=pattern{number} "quoted"\n{bases[begin : begin + 30]}{bases[begin + 33 + shift : begin + 63 + shift]}\n')
    for name, source, n in (("queries", SEQUENCES[1], 3), ("database", SEQUENCES[1], 200)):
        records = (data / source).read_text().split("\n>")[:n]
        (folder / f"{name}.fasta").write_text("\n>".join(records) + "\n")


def searches(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield name and arguments of each search of the usual size; ``OUT`` is replaced by the folder of its results."""

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


def digests(folder: Path, place: Path) -> dict[str, str]:
    """Return SHA-256 of files below a folder (of Parquet by column), except databases, locks and records, which contain times.

    The path `place`, where this version wrote its files, is replaced by a constant.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in paths if not path.name.startswith("project.") and path.name != "run.json"]
    digests: dict[str, str] = {}
    for path in files:
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            digests |= {f"{name}: {column}": digest for column, digest in of_columns(path, place).items()}
        else:
            content = DATE.sub(b"DATE", path.read_bytes().replace(str(place).encode(), b"PLACE"))
            digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def of_columns(path: Path, place: Path) -> dict[str, str]:
    """Return SHA-256 of the values of each column of a Parquet table. Rotations are read as nine numbers, stored as text or list."""
    table = pq.read_table(path)
    digests = {}
    for name in table.column_names:
        values: list[Any] = table[name].to_pylist()
        kind = str(table.schema.field(name).type)
        if name == "rotation":
            kind = "nine numbers"
            values = [[float(number) for number in (value.split(",") if isinstance(value, str) else value)] for value in values]
        digests[name] = hashlib.sha256(f"{kind} {values!r}".replace(str(place), "PLACE").encode()).hexdigest()
    return digests


def run(options: argparse.Namespace, environment: dict[str, str], arguments: list[str]) -> None:
    """Run a command of the version."""
    subprocess.run(
        [sys.executable, "-m", "proteoscope", *arguments],
        cwd=options.checkout,
        env=environment,
        check=True,
        stdout=sys.stderr,
    )


def export(options: argparse.Namespace, environment: dict[str, str], out: Path, kind: str) -> None:
    """Write the newest run of a kind in all formats."""
    project = out if (out / "project.sqlite").exists() else out / "project"
    run_id = sorted(path.name for path in (project / "results").iterdir() if path.name.startswith(f"{kind}-"))[-1]
    for export in search_of_kind(kind).exports:
        if export in PLACES_ON_GENOMES:  # none of these runs translates nucleotides
            continue
        for safe in ((), ("--spreadsheet-safe",)) if export.name == "tsv" else ((),):
            target = out / "exported" / f"{kind}-{export.name}{'-safe' * bool(safe)}{next(iter(export.endings), '')}"
            query = ("--query", _query_with_hits(out / "exported" / f"{kind}-tsv.tsv")) if export.name in OF_ONE_QUERY else ()
            run(
                options,
                environment,
                ["export", str(project), "--run", run_id, "--format", export.name, "--out", str(target), *safe, *query],
            )


def _query_with_hits(table: Path) -> str:
    """Return the query of the first hit of an exported table."""
    return table.read_text(encoding="utf-8").splitlines()[1].split("\t")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="the unpacked data")
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, metavar="FOLDER")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--against", type=Path, metavar="FILE")
    parser.add_argument("--small", action="store_true", help="search only what takes seconds, with every kind of search")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    options = parser.parse_args()
    digests_of: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="proteoscope-tables-") as name:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(options.checkout), os.environ.get("PYTHONPATH", "")]),
            "PROTEOSCOPE_CACHE": f"{name}/cache",
        }
        made = Path(name, "made")
        make_files(options.data, made)
        for number, case in enumerate([*small(options.data), *(() if options.small else large(options.data))]):
            if options.only and case.name not in options.only:
                continue
            out = Path(name, f"{number}")
            out.mkdir()
            for command in case.commands:
                given = [
                    argument.replace("OUT", str(out), 1) if argument.startswith("OUT") else argument.replace("MADE", str(made), 1)
                    for argument in command
                ]
                run(options, environment, [*given, "--device", options.device, "--threads", options.threads, "--quiet"])
            for kind in case.kinds:
                export(options, environment, out, kind)
            digests_of[case.name] = digests(out, Path(name))
            print(case.name, file=sys.stderr)
    print(json.dumps(digests_of, indent=1))
    if options.against is None:
        return 0
    expected = json.loads(options.against.read_text())
    differing = [
        f"{search}: {name}"
        for search, files in digests_of.items()
        for name in sorted({*files, *expected.get(search, {})})
        if files.get(name) != expected.get(search, {}).get(name)
    ]
    print("\n".join(differing) or "all are the same", file=sys.stderr)
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
