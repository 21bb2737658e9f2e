"""Accuracy of quantities of peptides planted into real runs and of planted mixtures: one JSON line for each figure.

    python -m benchmarks.quantification --data FOLDER ratios transfers changes mixtures [--seeds 1] [--rscript Rscript]
    python -m benchmarks.quantification --data FOLDER ratios --first-seed 101 --seeds 12 --ends 0.1 0.15 0.2

`ratios`: 200 peptides are planted in ratios from 1:1 to 1:50 in the MS1 spectra of BSA1 and BSA2, a third of them next to a co-eluting
peptide. Figures: how many have a quantity in both runs, the median error of the ratio, and how many ratios are wrong by more than a factor
of two, for example because another peptide is included. `--ends` repeats this with other limits at which traces end. `transfers`: 2,400
peptides in BSA1-3 are not identified in every run; in a third of the runs without identification they are absent. The figure is the share
of transfers at 1 % to runs without the peptide. `changes`: tables of 2,000 proteins in two conditions with three replicates, where a tenth
of the proteins change by a factor of 1.5 to 4. Figures: the share of unchanged proteins among those reported as changed at 1 %, and how
many changed proteins are found; also by other moderated and plain t-tests on the same proteins, and by limma (Bioconductor) if Rscript has
it. `mixtures`: the same for 400 proteins, a fifth of them with a change; their peptides are planted into the MS1 spectra of six runs made
from BSA1-3, and nine of ten are identified. The whole of `quantify` is tested, with and without match between runs, and compared with the
planted amounts themselves. FOLDER contains spectra/bsa_ltq.
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

from benchmarks.figures import emit
from benchmarks.planted_runs import planted_mixtures, planted_ratios, planted_transfers
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra, read_ms1_spectra
from proteoscope.engine.project import Project
from proteoscope.engine.quantification import ion_traces
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities
from proteoscope.engine.quantification.changes import protein_changes
from proteoscope.engine.quantification.design import Design, DesignRow, Sample
from proteoscope.engine.quantification.models import comparison_model
from proteoscope.engine.quantification.normalised import normalised_levels
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import table_of, write_project

DESIGN = Design(tuple(Sample(f"{c}{i}", c, i) for c in "ab" for i in (1, 2, 3)), tuple(DesignRow(i, i) for i in range(6)))
_LIMMA = """
library(limma)
x <- as.matrix(read.table("TABLE", sep="\\t", na.strings="nan"))
fit <- eBayes(lmFit(x, model.matrix(~ c(0, 0, 0, 1, 1, 1))))
write.table(cbind(fit$coefficients[, 2], fit$p.value[, 2]), "FOUND", sep="\\t", col.names=FALSE, row.names=FALSE, na="nan")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("what", nargs="+", choices=["ratios", "transfers", "changes", "mixtures"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ends", type=float, nargs="+", default=[ion_traces._LOWEST], help="parts of its height at which a trace ends")
    parser.add_argument("--rscript", default="")
    options = parser.parse_args()
    real = [read_ms1_spectra(options.data / "spectra" / "bsa_ltq" / f"BSA{i}.mzML") for i in (1, 2, 3)]
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        about = {"date": date.today().isoformat(), "seed": seed}
        if "ratios" in options.what:
            ratios(about | {"what": "ratios"}, real[:2], seed, options.ends)
        if "transfers" in options.what:
            transfers(about | {"what": "transfers"}, real, seed)
        if "changes" in options.what:
            changes(about | {"what": "changes"}, seed, options.rscript)
        if "mixtures" in options.what:
            mixtures(about | {"what": "mixtures"}, real, seed, options.rscript)


def ratios(about: dict, real: list[Ms1Spectra], seed: int, ends: list[float]) -> None:
    """Measure planted ratios through whole runs."""
    runs, planted = planted_ratios(real, 200, seed)
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", runs, {f"P{i}": [sequence] for i, sequence in enumerate(planted)})
        (run,) = [run.id for run in Project.open(project).runs()]
        for end in ends:
            with patch.object(ion_traces, "_LOWEST", end):
                run_search("quantify", {"project": [project]}, device="cpu", run=(run,), normalisation="none")
            result: dict[str, dict[str, float | None]] = {}
            for row in table_of(project, "peptide_quantities"):
                result.setdefault(row["sequence"], {})[row["sample"]] = row["quantity"]
            refused = [row["refused"] for row in table_of(project, "ion_traces") if row["refused"]]
            both = [name for name in planted if result.get(name, {}).get("one") and result[name].get("two")]
            error = np.array([np.log(result[name]["two"] / result[name]["one"]) - planted[name] for name in both])
            apart = np.abs(error)
            emit(
                about | {"end": end},
                planted=len(planted),
                found=len(both),
                median_error=round(float(np.expm1(np.median(apart))), 4),
                ninetieth=round(float(np.expm1(np.quantile(apart, 0.9))), 4),
                off_by_two=int((apart > np.log(2)).sum()),
                refused={reason: refused.count(reason) for reason in sorted(set(refused))},
                off={both[i]: round(float(np.exp(error[i])), 3) for i in np.flatnonzero(apart > np.log(2)).tolist()},
            )


def transfers(about: dict, real: list[Ms1Spectra], seed: int) -> None:
    """Measure transfers to runs without the peptide."""
    runs, gone = planted_transfers(real, 2400, seed)
    every = list(dict.fromkeys(identified.sequence for run in runs.values() for identified in run.identified))
    with tempfile.TemporaryDirectory() as folder:
        project = write_project(Path(folder) / "p", runs, {f"P{i}": [sequence] for i, sequence in enumerate(every)})
        run_search("quantify", {"project": [project]}, device="cpu", match_between_runs=True)
        transferred = [
            (row["peptide"], row["file"][: -len(".mzML")]) for row in table_of(project, "ion_traces") if row["source"] == "transferred"
        ]
    identified_ions = {(identified.sequence, name) for name, run in runs.items() for identified in run.identified}
    there = len(every) * len(runs) - len(identified_ions) - len(gone)
    wrong = sum(ion in gone for ion in transferred)
    emit(
        about,
        planted=len(every),
        absent=len(gone),
        there=there,
        kept=len(transferred),
        false=wrong,
        rate=round(wrong / max(1, len(transferred)), 5),
        found=round((len(transferred) - wrong) / there, 4),
    )


def changes(about: dict, seed: int, rscript: str) -> None:
    """Measure changes of proteins in tables, by this program and by limma."""
    rng, n = np.random.default_rng(seed), 2000
    changed, protein, logs = mixture(rng, n, n // 10, 22, 2.5)
    # Low values are missing more often.
    logs[rng.random(logs.shape) < 1 / (1 + np.exp((logs - 18.5) / 0.7))] = np.nan
    emit_tests(about, changed, *tested(logs, protein, n), rscript)


def mixtures(about: dict, real: list[Ms1Spectra], seed: int, rscript: str) -> None:
    """Measure changes of proteins in spectra through whole runs, by this program and by other tests on its table."""
    rng, n = np.random.default_rng(seed), 400
    changed, protein, logs = mixture(rng, n, n // 5, 20.5, 1.5)
    runs = planted_mixtures(real, logs, seed)
    names = list(dict.fromkeys(planted_peptide.sequence for planted_peptide in next(iter(runs.values())).planted))
    with tempfile.TemporaryDirectory() as folder:
        proteins = {f"P{i}": [names[k] for k in np.flatnonzero(protein == i).tolist()] for i in range(n)}
        project = write_project(Path(folder) / "p", runs, proteins)
        (run,) = [run.id for run in Project.open(project).runs()]
        design = Path(folder) / "design.tsv"
        lines = [f"run{i}\trun{i}\t{'ab'[i // 3]}\t{i % 3 + 1}\n" for i in range(6)]
        design.write_text("file\tsample\tcondition\treplicate\n" + "".join(lines))
        for matched in (False, True):
            run_search(
                "quantify",
                {"project": [project]},
                device="cpu",
                run=(run,),
                options={"design": design},
                conditions=("a", "b"),
                match_between_runs=matched,
            )
            table, p_value, is_found = np.full((n, 6), np.nan), np.full(n, np.nan), np.zeros(n, np.bool_)
            for row in table_of(project, "protein_quantities"):
                table[int(row["accession"][1:]), int(row["sample"][3:])] = row["log2_quantity"] or np.nan
            for row in table_of(project, "protein_changes"):
                number = int(row["accession"][1:])
                p_value[number], is_found[number] = row["p_value"] or np.nan, row["outcome"] == "changed"
            emit_tests(about | {"matched": matched}, changed, table, p_value, is_found, rscript)
        # Result of a measurement without errors and gaps.
        emit_tests(about | {"matched": "planted, not measured"}, changed, *tested(logs, protein, n), rscript)


def mixture(
    rng: np.random.Generator, n: int, n_changed: int, middle: float, spread: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Return flags of proteins that change by 1.5 to 4 times, the protein of each peptide, and log2 of peptides in six samples."""
    changed = np.arange(n) < n_changed
    fold = np.where(changed, rng.uniform(np.log2(1.5), 2, n) * rng.choice([-1, 1], n), 0.0)
    protein = np.repeat(np.arange(n), rng.integers(1, 8, n))
    deviation = 0.25 * np.sqrt(8 / rng.chisquare(8, n))
    of_protein = np.concatenate([np.zeros((n, 3)), np.tile(fold[:, None], 3)], axis=1) + rng.normal(0, 1, (n, 6)) * deviation[:, None]
    logs = rng.normal(middle, spread, len(protein))[:, None] + of_protein[protein]
    return changed, protein, logs + rng.normal(0, 0.3, (len(protein), 6)) + rng.normal(0, 0.3, 6)


def tested(
    logs: NDArray[np.float64], protein: NDArray[np.int64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return log2 quantities of proteins from those of peptides, p-values, and flags of changes."""
    peptides = RawQuantities.from_values(np.exp2(logs))
    parameters, model, rows = QuantificationParameters(), comparison_model(DESIGN, ("a", "b")), np.arange(len(protein))
    result = normalised_levels(peptides, Grouping(rows, rows, protein, n), model, parameters).levels.proteins
    ours = protein_changes(result, model, parameters)[0]
    return np.log2(result.value), ours.p_value, ours.q_value <= 0.01


def emit_tests(
    about: dict, changed: NDArray[np.bool_], logs: NDArray[np.float64], ours: NDArray[np.float64], is_found: NDArray[np.bool_], rscript: str
) -> None:
    """Print the changed proteins found by this program, and by other tests on its table of proteins, (n, 6) log2.

    The other tests are moderated t-tests whose prior is fitted by maximum likelihood, plain t-tests, and limma if R is installed.
    """
    programs = {"proteoscope": (ours, is_found)}
    for name, test in (("moderated by likelihood", likelihood_moderated), ("plain t-test", plain_t_test)):
        p_value = test(logs)
        programs[name] = (p_value, adjusted(p_value) <= 0.01)
    if rscript:
        p_value = limma(logs, rscript)
        programs["limma"] = (p_value, adjusted(p_value) <= 0.01)
    for name, (p_value, is_one) in programs.items():
        other = {} if name != "limma" else {"largest_difference_of_log_p": float(np.nanmax(np.abs(np.log(p_value / ours))))}
        emit(
            about | {"program": name},
            proteins=len(changed),
            tested=int(np.isfinite(p_value).sum()),
            changed=int(changed.sum()),
            found=int(is_one.sum()),
            false=int((is_one & ~changed).sum()),
            rate=round(float((is_one & ~changed).sum() / max(1, is_one.sum())), 5),
            power=round(float((is_one & changed).sum() / changed.sum()), 4),
            **other,
        )


def likelihood_moderated(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values of a t-test with variances moderated by a prior, as in limma.

    The prior is fitted by maximum likelihood: a variance is the prior's location times a variable with an F distribution.
    """
    from scipy import optimize, stats

    difference, variance, degrees, share = pooled(logs)
    used = degrees > 0

    def negative_log_likelihood(at: NDArray[np.float64]) -> float:
        return -float(stats.f.logpdf(variance[used] / np.exp(at[0]), degrees[used], np.exp(at[1])).sum() - used.sum() * at[0])

    location, prior = np.exp(
        optimize.minimize(negative_log_likelihood, [np.log(np.median(variance[used])), np.log(4.0)], method="Nelder-Mead").x
    )
    drawn = (prior * location + degrees * np.where(used, variance, 0)) / (prior + degrees)
    return np.where(used, 2 * stats.t.sf(np.abs(difference) / np.sqrt(drawn * share), degrees + prior), np.nan)


def plain_t_test(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values of Student's t-test."""
    from scipy import stats

    difference, variance, degrees, share = pooled(logs)
    used = degrees > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(used, 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance * share), np.maximum(degrees, 1)), np.nan)


def pooled(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return differences of means, pooled variances, degrees of freedom and variance factors of two times three samples.

    The factor is the part of the variance that the difference has; degrees of freedom are 0 if a condition is missing.
    """
    conditions = np.ma.masked_invalid(logs.reshape(-1, 2, 3))
    number, mean = conditions.count(axis=2), conditions.mean(axis=2).filled(np.nan)
    degrees = np.where(number.min(axis=1) > 0, number.sum(axis=1) - 2, 0)
    apart = ((conditions - mean[:, :, None]) ** 2).sum(axis=(1, 2)).filled(np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean[:, 1] - mean[:, 0], apart / degrees, degrees, (1 / number).sum(axis=1)


def limma(logs: NDArray[np.float64], rscript: str) -> NDArray[np.float64]:
    """Return p-values of limma's moderated t-test."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.tsv", Path(folder) / "found.tsv"
        np.savetxt(table, logs, delimiter="\t", fmt="%.12g")
        script = _LIMMA.replace("TABLE", str(table)).replace("FOUND", str(out))
        subprocess.run([rscript, "-e", script], check=True, capture_output=True)
        return np.loadtxt(out, delimiter="\t")[:, 1]


def adjusted(p_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return q-values after Benjamini and Hochberg, by definition."""
    has = np.flatnonzero(np.isfinite(p_value))
    order = has[np.argsort(p_value[has])]
    raw = p_value[order] * len(has) / np.arange(1, len(has) + 1)
    result = np.full(len(p_value), np.nan)
    result[order] = np.minimum.accumulate(raw[::-1])[::-1]
    return result


if __name__ == "__main__":
    main()
