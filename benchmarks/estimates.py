"""Accuracy of `estimate` for whole commands on two cores: one JSON line for each command, and a table at the end.

    python -m benchmarks.estimates --data FOLDER [--kinds identify cluster ...] [--scratch DIR] [--busy N] [--first]

FOLDER is the unpacked test data; the shipped samples are used too. First the CPU is calibrated, as a user would do. The first commands of
each kind are run to measure the speed of the host; `first_error` is the error of the estimate for the very first command, before any
measurement. Then the other commands, with other files and sizes, are estimated and run; `error` is the error of these estimates. Each
command is a separate process on two cores; the cache is separate too. With ``--busy`` each of the first commands is run twice while N
processes keep the machine busy, and once more when these have ended (`sort` "loaded" and "idle"). The error of the other commands then
shows whether the load still affects the estimates. ``--first`` gives all commands, except those of sort "loaded", priority over all other
processes, so that they run as on an idle machine (Linux, root).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.cost_model import called, error, table, write_reads
from benchmarks.figures import emit
from proteoscope import resources

_N_READS = 4000
_LOADED_RUNS = 2


def commands(data: Path, folder: Path) -> dict[str, tuple[list[list[str]], list[list[str]]]]:
    """Return command lines to learn from, and to predict, by kind. Some read the output of others."""

    def sample(name: str) -> str:
        return str(resources.path("samples", name))

    def out(name: str) -> list[str]:
        return ["--out", str(folder / name)]

    spectra, structures = data / "spectra", data / "structures"
    bsa = [str(spectra / "bsa_ltq" / f"BSA{number}.mzML") for number in (1, 2, 3)]
    yeast, hela = str(spectra / "SmallCalibratible_Yeast.mzML"), str(spectra / "hela_velos" / "TaGe_SA_HeLa_04_subset_longestSeq.mzML")
    small, of_yeast = sample("18Protein_SoCe_Tr_detergents_trace.fasta.gz"), str(data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta")
    of_hela, library = str(spectra / "hela_velos" / "hela_snip_for_unitTest.fasta"), str(data / "libraries" / "nist-bsa_consensus.msp")
    identified, low = spectra / "known_ids", ["--preset", "low-resolution"]
    write_reads(folder / "genome.fasta", folder / "reads.fastq", _N_READS, 3)
    return {
        "identify": (
            [["identify", bsa[0], "--database", small, *low, *out("one")], ["identify", yeast, "--database", of_yeast, *out("yeast")]],
            [["identify", *bsa[1:], "--database", small, *low, *out("two")], ["identify", hela, "--database", of_hela, *out("hela")]],
        ),
        "cluster": ([["cluster", bsa[0], *out("c1")]], [["cluster", *bsa[1:], *out("c2")], ["cluster", yeast, *out("c3")]]),
        "modified": (
            [["modified", bsa[0], "--database", small, *out("m1")]],
            [["modified", yeast, "--database", of_yeast, *out("m2")]],
        ),
        "explain": ([["explain", str(folder / "one")]], [["explain", str(folder / "two")]]),
        "library": (
            [["library", bsa[0], "--library", library, *out("l1")]],
            [["library", *bsa[1:], "--library", library, *out("l2")]],
        ),
        "import": (
            [["import", str(spectra / "bsa_ltq" / "BSA1_OMSSA.idXML"), "--spectra", bsa[0], "--database", small, *out("i1")]],
            [["import", str(identified / "55merge_tandem.mzid"), "--spectra", str(identified / "55merge.mgf"), *out("i2")]],
        ),
        "quantify": ([["quantify", str(folder / "one")]], [["quantify", str(folder / "two")]]),
        "evidence": (
            [["evidence", str(folder / "one"), "--structures", sample("folds.pdb.gz")]],
            [["evidence", str(folder / "two"), "--structures", str(structures / "albumin")]],
        ),
        "align": (
            [["align", sample("protein_queries.fasta"), str(data / "sequences" / "scop40.fa"), *out("a1.tsv")]],
            [["align", str(data / "sequences" / "cudasw_queries20.fasta"), str(data / "sequences" / "scop40.fa"), *out("a2.tsv")]],
        ),
        "structures": (
            [["structures", sample("1ao6_A.pdb.gz"), "--database", str(structures / "globins"), *out("s1.tsv")]],
            [["structures", sample("albumin_domain_3.pdb.gz"), "--database", str(structures / "homstrad52"), *out("s2.tsv")]],
        ),
        "reads": (
            [["reads", sample("lambda_phage.fasta.gz"), sample("lambda_reads.fastq.gz"), *out("r1.paf")]],
            [["reads", str(folder / "genome.fasta"), str(folder / "reads.fastq"), *out("r2.paf")]],
        ),
    }


def figures(measured_commands: list[str], sort: str, before: list[str]) -> Iterator[tuple[float, dict[str, Any]]]:
    """Estimate and run a command; yield the error of the estimate and the figures."""
    command = [*measured_commands, "--device", "cpu", "--threads", "2", "--json"]
    try:
        _, predicted = called(["estimate", *command], 2)
        wall, summary = called(command, 2, before)
    except RuntimeError as failure:
        emit({"command": measured_commands[0], "sort": sort, "failure": str(failure)})
        return
    seconds = float(summary["seconds"])
    steps = {step: round(value["seconds"], 3) for step, value in summary.get("stages", {}).items()}
    yield (
        error(predicted["seconds"], seconds),
        {
            "predicted_s": round(predicted["seconds"], 3),
            "measured_s": seconds,
            "process_s": round(wall, 3),
            "bound": predicted["bound"],
            "runs": predicted["n_runs"],
            "raw_steps": {step: round(value, 3) for step, value in predicted["raw_steps"].items()},
            "predicted_steps": {step: round(value, 3) for step, value in predicted["steps"].items()},
            "measured_steps": steps,
        },
    )


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Keep the machine busy with `n` processes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def learn(learnt: list[list[str]], about: dict[str, Any], sort: str, before: list[str]) -> None:
    """Run the commands whose times correct later estimates."""
    for number, command in enumerate(learnt):
        for off, predicted in figures(command, sort, before):
            name = "first_error" if number == 0 and sort == "learnt" else "error"
            emit(about, sort=sort, **{name: round(off, 3)}, **predicted)


def with_new_output(command: list[str], number: int) -> list[str]:
    """Return the command with another output, or unchanged where others read its output."""
    return [f"{part}-{number}" if before == "--out" else part for before, part in zip(["", *command], command, strict=False)]


def main() -> int:
    """Run all kinds, or some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--kinds", nargs="+", help="of commands; all without")
    parser.add_argument("--scratch", type=Path, help="where files are written")
    parser.add_argument("--busy", type=int, default=0, help="processes that keep the machine busy while it learns")
    parser.add_argument("--first", action="store_true", help="schedule the commands before all other processes")
    options = parser.parse_args()
    before = ["chrt", "--fifo", "50"] if options.first else []
    rows: list[tuple[str, list[float]]] = []
    with tempfile.TemporaryDirectory(prefix="proteoscope-estimates-", dir=options.scratch) as name:
        os.environ["PROTEOSCOPE_CACHE"] = str(Path(name) / "cache")
        called(["devices", "--calibrate", "--json"], 2, before)
        for kind, (learnt, measured_commands) in commands(options.data.absolute(), Path(name)).items():
            if options.kinds and kind not in options.kinds:
                continue
            about = {"figure": "estimate", "date": str(date.today()), "command": kind}
            if options.busy:
                with busy(options.busy):
                    for number in range(_LOADED_RUNS):
                        learn([with_new_output(command, number) for command in learnt], about, "loaded", [])
            learn(learnt, about, "idle" if options.busy else "learnt", before)
            errors = list[float]()
            for command in measured_commands:
                for off, predicted in figures(command, "asked", before):
                    errors.append(off)
                    emit(about, sort="asked", error=round(off, 3), **predicted)
            rows.append((kind, errors))
    table("whole commands, two cores", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
