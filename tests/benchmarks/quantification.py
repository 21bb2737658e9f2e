"""Whether quantities are right, on peptides planted into real runs and on planted mixtures: one JSON line for each figure.

    python -m tests.benchmarks.quantification --data FOLDER ratios transfers changes [--seeds 1] [--ends 0.1 0.15 0.2] [--rscript Rscript]

`ratios`: 200 peptides in ratios from 1:1 to 1:50 in the MS1 of BSA1 and BSA2, a third of them beside another that co-elutes: how many
have a quantity in both runs, the median error of the ratio, and how many are off by more than two, as those are that took another for
themselves; with other ends of traces than the program's, if any are named. `transfers`: 2,400 peptides over BSA1-3, not identified
everywhere, and in a third of these places not there: the part of transfers at 1 % that end there. `changes`: tables of 2,000 proteins in
two conditions of three replicates, a tenth of which change by 1.5 to 4 times: the part of those found changed at 1 % that did not, and
how many of the changed are found; beside limma (Bioconductor) on the same proteins, where Rscript has it. FOLDER holds spectra/bsa_ltq.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from datetime import date
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from engine.formats.surveys import Surveys, read_surveys
from engine.project import Project
from engine.quantification import ion_traces
from engine.quantification.amounts import Amounts, normalisation_factors, protein_amounts
from engine.quantification.changes import protein_changes
from engine.quantification.design import Design, Part, Sample
from engine.quantification.parameters import QuantificationParameters
from engine.searches import run_search
from tests.benchmarks.figures import emit
from tests.benchmarks.planted_runs import planted_ratios, planted_transfers
from tests.engine.quantification.made_runs import table_of, write_project

_LIMMA = """
library(limma)
x <- as.matrix(read.table("TABLE", sep="\\t", na.strings="nan"))
fit <- eBayes(lmFit(x, model.matrix(~ c(0, 0, 0, 1, 1, 1))))
write.table(cbind(fit$coefficients[, 2], fit$p.value[, 2]), "FOUND", sep="\\t", col.names=FALSE, row.names=FALSE, na="nan")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("what", nargs="+", choices=["ratios", "transfers", "changes"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ends", type=float, nargs="+", default=[ion_traces._LOWEST], help="parts of its height at which a trace ends")
    parser.add_argument("--rscript", default="")
    options = parser.parse_args()
    real = [read_surveys(options.data / "spectra" / "bsa_ltq" / f"BSA{i}.mzML") for i in (1, 2, 3)]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        about = {"date": date.today().isoformat(), "seed": seed}
        if "ratios" in options.what:
            ratios(about | {"what": "ratios"}, real[:2], seed, options.ends)
        if "transfers" in options.what:
            transfers(about | {"what": "transfers"}, real, seed)
        if "changes" in options.what:
            changes(about | {"what": "changes"}, seed, options.rscript)


def ratios(about: dict, real: list[Surveys], seed: int, ends: list[float]) -> None:
    """Planted ratios, through whole runs."""
    runs, planted = planted_ratios(real, 200, seed)
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", runs, {f"P{i}": [one] for i, one in enumerate(planted)})
        (run,) = [one.id for one in Project.open(project).runs()]
        for end in ends:
            with patch.object(ion_traces, "_LOWEST", end):
                run_search("quantify", {"project": [project]}, device="cpu", run=(run,), normalisation="none")
            found: dict[str, dict[str, float | None]] = {}
            for row in table_of(project, "peptide_quantities"):
                found.setdefault(row["sequence"], {})[row["sample"]] = row["quantity"]
            refused = [row["refused"] for row in table_of(project, "ion_traces") if row["refused"]]
            both = [name for name in planted if found.get(name, {}).get("one") and found[name].get("two")]
            error = np.array([np.log(found[name]["two"] / found[name]["one"]) - planted[name] for name in both])
            apart = np.abs(error)
            emit(
                about | {"end": end}, planted=len(planted), found=len(both), median_error=round(float(np.expm1(np.median(apart))), 4),
                ninetieth=round(float(np.expm1(np.quantile(apart, 0.9))), 4), off_by_two=int((apart > np.log(2)).sum()),
                refused={one: refused.count(one) for one in sorted(set(refused))},
                off={both[i]: round(float(np.exp(error[i])), 3) for i in np.flatnonzero(apart > np.log(2)).tolist()},
            )  # fmt: skip


def transfers(about: dict, real: list[Surveys], seed: int) -> None:
    """Transfers to runs that do not have the peptide."""
    runs, gone = planted_transfers(real, 2400, seed)
    every = list(dict.fromkeys(one.sequence for run in runs.values() for one in run.identified))
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", runs, {f"P{i}": [one] for i, one in enumerate(every)})
        run_search("quantify", {"project": [project]}, device="cpu", match_between_runs=True)
        kept = [(row["peptide"], row["file"][: -len(".mzML")]) for row in table_of(project, "ion_traces") if row["source"] == "transferred"]
    known = {(one.sequence, name) for name, run in runs.items() for one in run.identified}
    there = len(every) * len(runs) - len(known) - len(gone)
    wrong = sum(one in gone for one in kept)
    emit(
        about, planted=len(every), absent=len(gone), there=there, kept=len(kept), false=wrong, rate=round(wrong / max(1, len(kept)), 5),
        found=round((len(kept) - wrong) / there, 4),
    )  # fmt: skip


def changes(about: dict, seed: int, rscript: str) -> None:
    """Proteins that change, by this program and by limma."""
    rng, n = np.random.default_rng(seed), 2000
    changed = np.arange(n) < n // 10
    fold = np.where(changed, rng.uniform(np.log2(1.5), 2, n) * rng.choice([-1, 1], n), 0.0)
    protein = np.repeat(np.arange(n), rng.integers(1, 8, n))
    deviation = 0.25 * np.sqrt(8 / rng.chisquare(8, n))
    of_protein = np.concatenate([np.zeros((n, 3)), np.tile(fold[:, None], 3)], axis=1) + rng.normal(0, 1, (n, 6)) * deviation[:, None]
    logs = rng.normal(22, 2.5, len(protein))[:, None] + of_protein[protein] + rng.normal(0, 0.3, (len(protein), 6)) + rng.normal(0, 0.3, 6)
    # What is low is missing more often.
    logs[rng.random(logs.shape) < 1 / (1 + np.exp((logs - 18.5) / 0.7))] = np.nan
    peptides = Amounts.of(np.exp2(logs))
    peptides = peptides.scaled(normalisation_factors(peptides.value))
    found = protein_amounts(peptides, protein, n, "maxlfq")
    design = Design(tuple(Sample(f"{c}{i}", c, i) for c in "ab" for i in (1, 2, 3)), tuple(Part(i, i) for i in range(6)))
    ours = protein_changes(found, design, ("a", "b"), QuantificationParameters())[0]
    programs = {"proteoscope": (ours.p_value, ours.q_value <= 0.01)}
    if rscript:
        p_value = limma(np.log2(found.value), rscript)
        programs["limma"] = (p_value, adjusted(p_value) <= 0.01)
    for name, (p_value, is_found) in programs.items():
        other = {} if name != "limma" else {"largest_difference_of_log_p": float(np.nanmax(np.abs(np.log(p_value / ours.p_value))))}
        emit(
            about | {"program": name}, proteins=n,
            tested=int(np.isfinite(p_value).sum()), changed=int(changed.sum()), found=int(is_found.sum()),
            false=int((is_found & ~changed).sum()), rate=round(float((is_found & ~changed).sum() / max(1, is_found.sum())), 5),
            power=round(float((is_found & changed).sum() / changed.sum()), 4), **other,
        )  # fmt: skip


def limma(logs: NDArray[np.float64], rscript: str) -> NDArray[np.float64]:
    """p-values of limma's moderated t-test."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.tsv", Path(folder) / "found.tsv"
        np.savetxt(table, logs, delimiter="\t", fmt="%.12g")
        script = _LIMMA.replace("TABLE", str(table)).replace("FOUND", str(out))
        subprocess.run([rscript, "-e", script], check=True, capture_output=True)
        return np.loadtxt(out, delimiter="\t")[:, 1]


def adjusted(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """q-values after Benjamini and Hochberg, by definition."""
    has = np.flatnonzero(np.isfinite(p_value))
    order = has[np.argsort(p_value[has])]
    raw = p_value[order] * len(has) / np.arange(1, len(has) + 1)
    found = np.full(len(p_value), np.nan)
    found[order] = np.minimum.accumulate(raw[::-1])[::-1]
    return found


if __name__ == "__main__":
    main()
