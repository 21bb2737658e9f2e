"""False PSMs, peptides and protein groups of an experiment at a reported 1 %, and those of the union of its runs.

    python -m benchmarks.experiment_runs --data FOLDER --out RUNS --runs 44 --spectra 600 --seed 61
    proteoscope experiment create PROJECT --runs RUNS/runs.tsv
    proteoscope experiment run PROJECT --database RUNS/proteins.fasta --preset high-resolution
    python -m benchmarks.experiment_rates --runs RUNS --project PROJECT [--sizes 44 11 4] [--quantities RUN]

With `experiment run --search modified` or `--search library`, the same is measured for these searches.

For each size, the runs are divided into as many experiments without common runs as possible, and the counts are summed. A PSM is false if
its peptide (I = L) is not that of the spectrum. A peptide is false if no run of the experiment contains it, and a protein group if none of
its proteins is planted in a run of the experiment. The runs contain no modification, so that each peptide with a mass shift is false. The
exception is a longer peptide (class `end`) that begins or ends with a right one, if the shift gives it the mass of the right one. `listed`
are the accepted PSMs of peptides that the experiment accepts; `union` are the peptides and groups that any of the runs accepts. One JSON
line for each size.

`quantities` compares the log2 fold changes of a quantification of the experiment (``quantify PROJECT --experiment``) with the planted ones:
proteins with a fold change, their median error and the error that 95 % do not exceed, and how many changed and unchanged proteins have
q-values up to 1 %.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.figures import emit
from proteoscope.engine.experiments.report import REPORT, report_experiment
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project

_FDR = 0.01


def _accepted(table: list[dict[str, Any]], q_value: str = "q_value") -> list[dict[str, Any]]:
    """Return the targets that are accepted at the rate."""
    return [row for row in table if not row["is_decoy"] and row[q_value] is not None and row[q_value] <= _FDR]


def _is_right(row: dict[str, Any], planted: set[str]) -> bool:
    """Return True if the peptide of a row is planted, or if its mass shift removes its end from a planted one."""
    text = row["peptide"].replace("I", "L")
    sequence = row["sequence"].replace("I", "L") if row.get("match_class", row.get("shift_kind")) == "end" else ""
    return text in planted or any(part in planted for k in range(1, len(sequence)) for part in (sequence[:k], sequence[k:]))


def _measured(project: Project, rows: Sequence[ExperimentRow], folder: Path) -> Counter[str]:
    """Return numbers of accepted and false items of an experiment of some of the runs."""

    def read(run: str, name: str, *columns: str) -> list[dict[str, Any]]:
        table: list[dict[str, Any]] = pq.read_table(project.table(name, run), columns=list(columns) or None).to_pylist()
        return table

    report_experiment(project, rows, Progress())
    peptides = read(REPORT, "experiment_peptides")
    listed = {
        (row["run"], peptides[row["peptide"]]["peptide"]) for row in read(REPORT, "experiment_matches") if row["is_accepted_in_experiment"]
    }
    counts, planted, proteins = Counter[str](), set[str](), set[str]()
    union_of_peptides, union_of_groups = set[tuple[str, str]](), set[tuple[str, ...]]()
    for run in sorted(row.run for row in rows):
        truth = pq.read_table(folder / "truth" / f"{run}.parquet", columns=["peptide", "protein", "scan", "area"]).to_pylist()
        present = [row for row in truth if row["protein"] and row["area"]]
        planted |= {row["peptide"].replace("I", "L") for row in present}
        proteins |= {row["protein"] for row in present}
        of_scan = {row["scan"]: row["peptide"].replace("I", "L") for row in present if row["scan"]}
        psms = [row for row in read(run, "psms") if row["rank"] == 1]
        for psm in _accepted(psms):
            is_false = not _is_right(psm, {of_scan.get(psm["scan"], "")})
            counts.update({"psms": 1, "false_psms": is_false})
            if (run, psm["peptide"]) in listed:
                counts.update({"listed": 1, "false_listed": is_false})
        union_of_peptides |= {(row["peptide"], row["sequence"]) for row in _accepted(read(run, "peptides"))}
        union_of_groups |= {tuple(row["accessions"]) for row in _accepted(read(run, "proteins", "accessions", "q_value", "is_decoy"))}
    accepted = _accepted(peptides)
    united = [
        {"peptide": peptide, "sequence": sequence, "match_class": "end" if "[" in peptide else ""}
        for peptide, sequence in union_of_peptides
    ]
    groups = {tuple(row["accessions"]) for row in _accepted(read(REPORT, "experiment_proteins"))}
    for name, rows_of_level in (("peptides", accepted), ("union_peptides", united)):
        counts.update({name: len(rows_of_level), f"false_{name}": sum(not _is_right(row, planted) for row in rows_of_level)})
    for name, members in (("proteins", groups), ("union_proteins", union_of_groups)):
        counts.update({name: len(members), f"false_{name}": sum(not proteins.intersection(group) for group in members)})
    return counts


def _changes(project: Project, run: str, folder: Path) -> dict[str, float]:
    """Return the errors of the log2 fold changes of yeast proteins, treated against control."""
    with (folder / "proteins.tsv").open(encoding="utf-8", newline="") as file:
        planted = {
            row["protein"]: float(row["log2_fold_change"]) for row in csv.DictReader(file, delimiter="\t") if row["proteome"] == "yeast"
        }
    columns = ["comparison", "accession", "log2_fold_change", "q_value"]
    rows = [
        row
        for row in pq.read_table(project.table("protein_changes", run), columns=columns).to_pylist()
        if row["comparison"] == "treated / control" and row["accession"] in planted and row["log2_fold_change"] is not None
    ]
    truth = np.array([planted[row["accession"]] for row in rows])
    errors = np.abs(np.array([row["log2_fold_change"] for row in rows]) - truth)
    is_reported = np.array([row["q_value"] is not None and row["q_value"] <= _FDR for row in rows])
    return {
        "proteins": len(rows),
        "median_error": round(float(np.median(errors)), 4),
        "error_of_95_percent": round(float(np.quantile(errors, 0.95)), 4),
        "changed": int(np.count_nonzero(truth)),
        "changed_reported": int(np.count_nonzero(is_reported & (truth != 0.0))),
        "unchanged_reported": int(np.count_nonzero(is_reported & (truth == 0.0))),
    }


def main() -> None:
    """Measure the rates of experiments of each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="*", default=[44, 11, 4])
    parser.add_argument("--quantities", metavar="RUN")
    given = parser.parse_args()
    project = Project.open(given.project)
    rows = read_experiment(project)
    for size in given.sizes:
        counts = Counter[str]()
        for first in range(0, len(rows) - size + 1, size):
            counts += _measured(project, rows[first : first + size], given.runs)
        names = [name for name in ("psms", "listed", "peptides", "proteins", "union_peptides", "union_proteins") if counts[name]]
        shares = {f"{name}_false_percent": round(100 * counts[f"false_{name}"] / counts[name], 2) for name in names}
        emit({"figure": "experiment_rates", "runs": size}, **{name: counts[name] for name in names}, **shares)
    if given.quantities:
        emit({"figure": "experiment_quantities", "runs": len(rows)}, **_changes(project, given.quantities, given.runs))


if __name__ == "__main__":
    main()
