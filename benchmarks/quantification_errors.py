"""Errors of quantification on simulated tables and runs with known truth: one JSON line for each figure, and a table.

    python -m benchmarks.quantification_errors WHAT ... [--seeds 10] [--rscript Rscript]

`centre`: 2,000 proteins in two conditions with three samples each, where none, 20 % (half of them up), 20 % (all up) or 40 % (all up)
change by a factor of 1.5 to 4, with the noise of label-free and of TMT ratios. Figures: the share of unchanged proteins among those
reported at 5 %, the power, and the remaining shift of the unchanged proteins. `small`: the same with factors of 1.2 to 1.5, and the number
of tables in which the program warns that the centre is not determined. `imputation`: the same with low quantities missing and with wrong
identifications, each in one sample, with and without imputation. `charges`: log2 errors of ratios of peptides and proteins with missing
charge states, by ratios of ions and by sums. `unconnected`: ratios between samples without a common ion. `blocks`: power at 5 % for
balanced plexes without a reference and for pairs, by this program, by an independent implementation of limma's formulas, and by limma
itself if Rscript has it; and whether a design in which a plex is a condition is refused. `transfers`: runs with unidentifiable spectra,
identified and quantified with match between runs: the share of transferred ions whose peptide is not in the sample, with donors by PSM and
by peptide q-value. `faims`: ions quantified in runs that cycle through 1 to 5 compensation voltages.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from benchmarks.figures import emit
from benchmarks.planted_voltages import quantified_ions
from benchmarks.quantification import adjusted
from benchmarks.unidentifiable_runs import wrong_transfers
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.quantification.amounts import Grouping, RawQuantities, level_amounts
from proteoscope.engine.quantification.changes import protein_changes
from proteoscope.engine.quantification.design import Design, DesignRow, Sample
from proteoscope.engine.quantification.models import comparison_model
from proteoscope.engine.quantification.normalised import normalised_levels
from proteoscope.engine.quantification.parameters import QuantificationParameters

Floats = NDArray[np.float64]
Rows = Iterator[tuple[dict, dict]]
_NOISE = {"label-free": (0.25, 0.3), "tmt": (0.08, 0.1)}
"""Standard deviations of proteins and of ions, log2."""
_FDR = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[int, str], Rows]] = {
        "centre": centre,
        "small": small,
        "imputation": imputation,
        "charges": charges,
        "unconnected": unconnected,
        "blocks": blocks,
        "transfers": transfers,
        "faims": faims,
    }
    parser.add_argument("what", nargs="+", choices=list(parts))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--rscript", default="")
    options = parser.parse_args()
    for what in options.what:
        sums: dict[str, list[dict]] = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for case, figures in parts[what](seed, options.rscript):
                emit({"date": date.today().isoformat(), "what": what, "seed": seed} | case, **figures)
                sums.setdefault(" ".join(map(str, case.values())), []).append(figures)
        for name, rows in sums.items():
            emit({"date": date.today().isoformat(), "what": what, "seeds": len(rows), "case": name}, **pooled(rows))


def pooled(rows: list[dict]) -> dict:
    """Return summed counts with their rates, and means of other numbers."""
    result = {}
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        whole = bool(values) and all(isinstance(value, int) for value in values)
        result[name] = None if not values else sum(values) if whole else round(float(np.mean(values)), 4)
    if "false" in result:
        result["rate"] = round(result["false"] / max(1, result["reported"]), 4)
    return result


def mixture(
    rng: np.random.Generator, noise: str, up: float, down: float, n: int = 2000, folds: tuple[float, float] = (1.5, 4)
) -> tuple[NDArray[np.bool_], Grouping, RawQuantities]:
    """Return flags of changed proteins, their ions, and amounts of these in three against three samples."""
    place = np.arange(n) / n
    changed = place < up + down
    fold = np.where(changed, rng.uniform(*np.log2(folds), n) * np.where(place < up, 1, -1), 0.0)
    of_protein, of_ion = _NOISE[noise]
    protein = np.repeat(np.arange(n), rng.integers(1, 8, n))
    sequence = np.repeat(np.arange(len(protein)), rng.integers(1, 3, len(protein)))
    deviation = of_protein * np.sqrt(8 / rng.chisquare(8, n))
    logs = rng.normal(0, 1, (n, 6)) * deviation[:, None] + np.outer(fold, [0, 0, 0, 1, 1, 1])
    ions = logs[protein[sequence]] + rng.normal(22, 2.5, len(protein))[sequence][:, None] - rng.exponential(1, len(sequence))[:, None]
    ions += rng.normal(0, of_ion, ions.shape) + rng.normal(0, 0.3, 6)
    grouping = Grouping(sequence, np.arange(len(protein)), protein, n)
    return changed, grouping, RawQuantities.from_values(np.exp2(ions))


def with_gaps(rng: np.random.Generator, amounts: RawQuantities) -> RawQuantities:
    """Return amounts with gaps; lower amounts are missing more often."""
    logs = np.log2(amounts.value)
    missing = rng.random(logs.shape) < 1 / (1 + np.exp((logs - 18.5) / 0.7))
    return RawQuantities.from_values(np.where(missing, np.nan, amounts.value))


def design(conditions: str, **parts: str) -> Design:
    """Return a design from a text with a character for each sample, and one such text for each block."""
    samples = [
        Sample(f"s{i}", condition, conditions[: i + 1].count(condition), **{k: v[i] for k, v in parts.items()})
        for i, condition in enumerate(conditions)
    ]
    return Design(tuple(samples), tuple(DesignRow(i, i) for i in range(len(samples))))


def compared(ions: RawQuantities, grouping: Grouping, plan: Design, **settings: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return log2 quantities of proteins as the program normalises them, and changes, p-values and q-values as it tests them."""
    parameters = QuantificationParameters(change_fdr=_FDR, **settings)
    model = comparison_model(plan, ("a", "b"))
    levels = normalised_levels(ions, grouping, model, parameters).levels
    result = protein_changes(levels.proteins, model, parameters)[0]
    with np.errstate(invalid="ignore"):
        return np.log2(levels.proteins.value), result.log2_fold_change, result.p_value, result.q_value


def counted(q_value: Floats, changed: NDArray[np.bool_]) -> dict:
    """Return counts of proteins reported at 5 %."""
    reported = q_value <= _FDR
    return {
        "tested": int(np.isfinite(q_value).sum()),
        "reported": int(reported.sum()),
        "false": int((reported & ~changed).sum()),
        "power": round(float(reported[changed].mean()), 4) if changed.any() else None,
    }


def centre(seed: int, rscript: str) -> Rows:
    """Yield figures of changes in one direction and in both."""
    for noise in _NOISE:
        for name, up, down in (("none", 0.0, 0.0), ("20 % balanced", 0.1, 0.1), ("20 % up", 0.2, 0.0), ("40 % up", 0.4, 0.0)):
            rng = np.random.default_rng(seed)
            changed, grouping, ions = mixture(rng, noise, up, down)
            ions = with_gaps(rng, ions) if noise == "label-free" else ions
            _, fold, _, q_value = compared(ions, grouping, design("aaabbb"))
            shift = float(np.nanmedian(fold[~changed]))
            yield {"noise": noise, "change": name}, counted(q_value, changed) | {"remaining_shift": round(shift, 4)}


def small(seed: int, rscript: str) -> Rows:
    """Yield figures of changes that are small against the error of a protein."""
    parameters, model = QuantificationParameters(change_fdr=_FDR), comparison_model(design("aaabbb"), ("a", "b"))
    for noise in _NOISE:
        for name, up, down in (("none", 0.0, 0.0), ("20 % balanced", 0.1, 0.1), ("40 % balanced", 0.2, 0.2), ("40 % up", 0.4, 0.0)):
            rng = np.random.default_rng(seed)
            changed, grouping, ions = mixture(rng, noise, up, down, folds=(1.2, 1.5))
            ions = with_gaps(rng, ions) if noise == "label-free" else ions
            result = normalised_levels(ions, grouping, model, parameters)
            fold = protein_changes(result.levels.proteins, model, parameters)[0].log2_fold_change
            shift = float(np.nanmedian(fold[~changed]))
            warned = int(not result.centres[0].is_determined)
            yield {"noise": noise, "change": name}, {"warned": warned, "remaining_shift": round(shift, 4)}


def imputation(seed: int, rscript: str) -> Rows:
    """Measure missing quantities, and wrong identifications in a single sample."""
    for name, up, down in (("20 % balanced", 0.1, 0.1), ("20 % up", 0.2, 0.0)):
        for setting in ("none", "low"):
            rng = np.random.default_rng(seed)
            changed, grouping, ions = mixture(rng, "label-free", up, down)
            ions = with_gaps(rng, ions)
            n_wrong = 60
            wrong = np.full((n_wrong, 6), np.nan)
            wrong[np.arange(n_wrong), rng.integers(0, 6, n_wrong)] = np.exp2(rng.normal(22, 2.5, n_wrong))
            n_forms, n = len(grouping.sequence), grouping.n_proteins
            more = np.arange(n_wrong)
            grouping = Grouping(
                np.concatenate([grouping.form, n_forms + more]),
                np.arange(n_forms + n_wrong),
                np.concatenate([grouping.protein, n + more]),
                n + n_wrong,
            )
            every = RawQuantities.from_values(np.concatenate([ions.value, wrong]))
            q_value = compared(every, grouping, design("aaabbb"), imputation=setting)[3]
            yield {"change": name, "imputation": setting}, counted(q_value, np.append(changed, np.zeros(n_wrong, np.bool_)))


def charges(seed: int, rscript: str) -> Rows:
    """Yield errors of the ratios of two samples where charge states are missing."""
    rng = np.random.default_rng(seed)
    n = 1000
    protein = np.repeat(np.arange(n), rng.integers(1, 6, n))
    sequence = np.repeat(np.arange(len(protein)), rng.integers(2, 4, len(protein)))
    truth = rng.normal(0, 1, n)
    logs = rng.normal(22, 2, len(protein))[sequence] - rng.exponential(1.5, len(sequence))
    ions = np.exp2(logs[:, None] + np.outer(truth[protein[sequence]], [-0.5, 0.5]) + rng.normal(0, 0.1, (len(sequence), 2)))
    grouping = Grouping(sequence, np.arange(len(protein)), protein, n)
    complete = level_amounts(RawQuantities.from_values(ions), grouping, "maxlfq")
    ions[rng.random(ions.shape) < 0.2] = np.nan
    result = level_amounts(RawQuantities.from_values(ions), grouping, "maxlfq")
    summed = RawQuantities.from_values(ions).summed(sequence, len(protein))
    by_sums = level_amounts(summed, Grouping(np.arange(len(protein)), np.arange(len(protein)), protein, n), "maxlfq")
    for by, levels in (("ions", result), ("sums of charges", by_sums), ("ions, none missing", complete)):
        for level, amounts, true in (("peptides", levels.sequences, truth[protein]), ("proteins", levels.proteins, truth)):
            error = np.abs(np.log2(amounts.value[:, 1] / amounts.value[:, 0]) - true)
            error = error[np.isfinite(error)]
            yield (
                {"by": by, "level": level},
                {
                    "ratios": len(error),
                    "median_error": round(float(np.median(error)), 4),
                    "95th": round(float(np.quantile(error, 0.95)), 4),
                },
            )


def unconnected(seed: int, rscript: str) -> Rows:
    """Measure proteins with ions in only three of six samples: the number of ratios between both groups, and their error."""
    rng = np.random.default_rng(seed)
    n = 500
    logs = rng.normal(22, 2, (n, 2))
    ions = np.full((n, 2, 6), np.nan)
    ions[:, 0, :3], ions[:, 1, 3:] = logs[:, :1], logs[:, 1:]
    grouping = Grouping(np.arange(2 * n), np.arange(2 * n), np.repeat(np.arange(n), 2), n)
    result = level_amounts(
        RawQuantities.from_values(np.exp2(ions + rng.normal(0, 0.2, ions.shape)).reshape(-1, 6)), grouping, "maxlfq"
    ).proteins
    both = ~np.isnan(result.value[:, [0, 3]]).any(axis=1)
    yield {}, {"proteins": n, "ratios": int(both.sum()), "named": int((result.state == 4).any(axis=1).sum())}


def blocks(seed: int, rscript: str) -> Rows:
    """Yield figures of plexes without a reference, and of pairs."""
    rng = np.random.default_rng(seed)
    n, n_changed = 1000, 200
    changed = np.arange(n) < n_changed
    fold = np.where(changed, rng.uniform(0.5, 1.2, n) * rng.choice([-1, 1], n), 0.0)
    for name, plan, spread, error in (
        ("balanced plexes", design("aaabbbaaabbb", plex="1" * 6 + "2" * 6), 1.0, 0.15),
        ("pairs", design("aaaaaabbbbbb", subject="123456123456"), 1.0, 0.3),
    ):
        block = np.array([int(sample.plex or sample.subject) for sample in plan.samples]) - 1
        treated = np.array([sample.condition == "b" for sample in plan.samples])
        logs = 22 + rng.normal(0, spread, (n, int(block.max()) + 1))[:, block] + np.outer(fold, treated)
        logs += rng.normal(size=logs.shape) * (error * np.sqrt(8 / rng.chisquare(8, (n, 1))))
        logs[rng.random(logs.shape) < 0.05] = np.nan
        rows = np.arange(n)
        table, _, _, q_value = compared(RawQuantities.from_values(np.exp2(logs)), Grouping(rows, rows, rows, n), plan)
        programs = {
            "proteoscope": q_value,
            "formulas": adjusted(moderated(table, treated, block)),
            "no block": adjusted(moderated(table, treated)),
        }
        programs |= {"limma": adjusted(limma(table, treated, block, rscript))} if rscript else {}
        for program, result in programs.items():
            yield {"design": name, "program": program}, counted(result, changed)
    try:
        comparison_model(design("aaabbb", plex="111222"), ("a", "b"))
        yield {"design": "confounded plex"}, {"refused": 0}
    except ParameterError:
        yield {"design": "confounded plex"}, {"refused": 1}


def moderated(logs: Floats, treated: NDArray[np.bool_], block: NDArray[np.int64] | None = None) -> Floats:
    """Return p-values of limma's moderated t-test with blocks, from its published formulas, protein by protein."""
    columns = [np.ones(len(treated)), treated.astype(float)]
    columns += [] if block is None else [(block == k).astype(float) for k in range(1, int(block.max()) + 1)]
    matrix = np.stack(columns, axis=1)
    rows = []
    for row in logs:
        has = ~np.isnan(row)
        x = matrix[has]
        rank = int(np.linalg.matrix_rank(x)) if has.any() else 0
        with_treatment = rank > (int(np.linalg.matrix_rank(np.delete(x, 1, axis=1))) if has.any() else 0)
        if not with_treatment or has.sum() == rank or min(treated[has].sum(), (~treated[has]).sum()) < 2:
            rows.append((np.nan, np.nan, np.nan, 0))
            continue
        coefficient = np.linalg.lstsq(x, row[has], rcond=None)[0]
        variance = float(((row[has] - x @ coefficient) ** 2).sum()) / (has.sum() - rank)
        rows.append((coefficient[1], np.linalg.pinv(x.T @ x)[1, 1], variance, has.sum() - rank))
    estimate, factor, variance, degrees = np.array(rows).T
    used = degrees > 0
    s2, d = variance[used], degrees[used]
    e = np.log(s2) - special.digamma(d / 2) + np.log(d / 2)
    spread = e.var(ddof=1) - special.polygamma(1, d / 2).mean()
    half = optimize.brentq(lambda v: special.polygamma(1, v) - spread, 1e-3, 1e6) if spread > 1e-6 else 5e5
    location = np.exp(e.mean() + special.digamma(half) - np.log(half))
    drawn = (2 * half * location + degrees * np.where(used, variance, 0)) / (2 * half + degrees)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(used, 2 * stats.t.sf(np.abs(estimate) / np.sqrt(drawn * factor), 2 * half + degrees), np.nan)


def limma(logs: Floats, treated: NDArray[np.bool_], block: NDArray[np.int64], rscript: str) -> Floats:
    """Return p-values of limma itself."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.tsv", Path(folder) / "found.tsv"
        np.savetxt(table, logs, delimiter="\t", fmt="%.12g")
        factors = [",".join(map(str, values.astype(int).tolist())) for values in (treated, block)]
        script = (
            f'library(limma); x <- as.matrix(read.table("{table}", sep="\\t", na.strings="nan")); b <- factor(c({factors[0]}));'
            f" k <- factor(c({factors[1]})); fit <- eBayes(lmFit(x, model.matrix(~ b + k)));"
            f' write.table(fit$p.value[, 2], "{out}", row.names=FALSE, col.names=FALSE, na="nan")'
        )
        subprocess.run([rscript, "-e", script], check=True, capture_output=True)
        return np.loadtxt(out)


def transfers(seed: int, rscript: str) -> Rows:
    """Yield figures of transferred ions whose peptide is not in the sample."""
    rules: dict[str, dict[str, float]] = {"PSM q-value": {"donor_fdr": 1.0}, "peptide q-value": {}}
    for name, figures in wrong_transfers(seed, rules):
        yield {"donors": name}, figures


def faims(seed: int, rscript: str) -> Rows:
    """Yield figures of ions in runs that cycle through voltages."""
    for n_voltages in range(1, 6):
        yield {"voltages": n_voltages}, quantified_ions(seed, n_voltages)


if __name__ == "__main__":
    main()
