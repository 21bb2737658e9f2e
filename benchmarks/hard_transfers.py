"""Errors of match between runs in a difficult synthetic experiment: one JSON line for each seed and limit, and the sums over the seeds.

    python -m benchmarks.hard_transfers [--seeds 4] [--first-seed 1] [--runs 8] [--limits 0.01 0.05]

Runs hold the peptides of one proteome; every second run also holds those of another. Each run has its own gradient (0.7 to 1.4 times the
mean length, with nonlinear drift), mass error and amount; retention times of peptides scatter. Each run has interfering features of its
own: isotope patterns within the MS1 tolerance of a peptide's m/z, with areas like those of peptides, three for each peptide, at random
times. Some spectra are of ions that are in all runs but from no protein; they have scores of wrong matches, equally often to targets and to
decoys.

A transfer is false if its peptide is not in the run (`absent`), or if its apex is at another time than the peptide (`misplaced`).
`possible` is the number of peptides in runs that identified them in another run only. Settings are developed with seeds below 100 and
reported for others.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import emit
from benchmarks.unidentifiable_runs import shuffled
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import (
    SPACING,
    Planted,
    averaged_pattern,
    mzml_text,
    random_peptides,
    spectrum_text,
    table_of,
)
from tests.searching import import_results

__all__ = ["errors_of_transfers", "write_experiment"]

_COMMON, _SOMETIMES, _UNKNOWN = 600, 400, 150
"""Peptides of the proteome of all runs and of the other one, and ions of no protein."""
_INTERFERING = 3
_OF_PROTEIN = 10
_SECONDS, _CYCLE = 900.0, 2.0
_LENGTHS, _WAVE, _BEND, _SCATTER = (0.7, 1.4), 0.02, 0.15, 1.5
"""Range of relative gradient lengths, amplitudes of drift as parts of the gradient, and standard deviation of times (s)."""
_PPM, _RUN_PPM, _TOLERANCE = 1.5, 1.0, 10.0
_AMOUNT, _AMOUNT_SPREAD, _RUN_AMOUNT, _ION_AMOUNT = 4e6, 1.0, 0.3, 0.3
_SCORE, _SCORE_SPREAD, _OF_SPECTRUM = 3.7, 1.0, 0.6
_FAINTEST, _NOISE_PEAKS, _ISOTOPES = 2000.0, 100, 4
_MISPLACED = 3.0
"""Distance of a transferred apex from that of the peptide, in standard deviations of the peak, above which it is another feature."""


class _Features(NamedTuple):
    """Features of a run: m/z, apex (s), standard deviation (s) and area of each, and the isotope pattern (n, isotopes)."""

    mz: NDArray[np.float64]
    apex: NDArray[np.float64]
    deviation: NDArray[np.float64]
    area: NDArray[np.float64]
    pattern: NDArray[np.float64]


_pattern = lru_cache(10_000)(lambda sequence: averaged_pattern(sequence)[:_ISOTOPES])


def errors_of_transfers(seed: int, n_runs: int, limits: list[float]) -> list[dict]:
    """Return the figures of an experiment, one for each limit of the transfer FDR."""
    with tempfile.TemporaryDirectory() as name:
        project, truth, possible = write_experiment(Path(name), seed, n_runs)
        return [_figures(project, truth, possible, limit) for limit in limits]


def write_experiment(folder: Path, seed: int, n_runs: int) -> tuple[Path, list[dict[str, tuple[float, float]]], int]:
    """Write the runs and import their identifications.

    Returns the project, apex time and standard deviation (s) of each peptide in each run, and the number of possible transfers.
    """
    rng = np.random.default_rng(seed)
    every = random_peptides(_COMMON + _SOMETIMES + _UNKNOWN, seed + 7000, (9, 18))
    in_database = every[: _COMMON + _SOMETIMES]
    base = rng.uniform(0.05, 0.95, len(every))
    amount = _AMOUNT * rng.lognormal(0, _AMOUNT_SPREAD, len(every))
    right = _SCORE + _SCORE_SPREAD * rng.normal(size=len(in_database)) + 0.5 * np.log(amount[: len(in_database)] / _AMOUNT)
    wrong = [[shuffled(rng, peptide) for peptide in every[len(in_database) :]] for _ in range(n_runs)]
    is_target = rng.random((n_runs, _UNKNOWN)) < 0.5
    rest = [peptide for run, of_run in zip(wrong, is_target, strict=True) for peptide, is_one in zip(run, of_run, strict=True) if is_one]
    extra = -(-len(rest) // (len(in_database) // _OF_PROTEIN))
    groups = [
        [*in_database[i : i + _OF_PROTEIN], *rest[i // _OF_PROTEIN * extra : (i // _OF_PROTEIN + 1) * extra]]
        for i in range(0, len(in_database), _OF_PROTEIN)
    ]
    protein_of = {peptide: f"P{i}" for i, group in enumerate(groups) for peptide in group}
    truth: list[dict[str, tuple[float, float]]] = []
    identified: list[set[str]] = []
    rows = ["PSMId\tscore\tq-value\tposterior_error_prob\tpeptide\tproteinIds"]
    for number in range(n_runs):
        there = np.ones(len(every), np.bool_)
        there[_COMMON : _COMMON + _SOMETIMES] = number % 2 == 1
        there[: len(in_database)] &= rng.random(len(in_database)) >= 0.1
        present = np.flatnonzero(there)
        features = _features(rng, [every[i] for i in present], base[present], amount[present], in_database)
        chance = 1 / (1 + np.exp(-np.log(features.area[: len(present)] / (0.5 * _AMOUNT))))
        seen = np.flatnonzero(rng.random(len(present)) < chance).tolist()
        scans = _write(folder / f"run{number}.mzML", features, [every[present[i]] for i in seen], seen, rng)
        truth.append({every[i]: (features.apex[k], features.deviation[k]) for k, i in enumerate(present.tolist()) if i < len(in_database)})
        identified.append(set())
        for k, scan in zip(seen, scans, strict=True):
            i = int(present[k])
            if i < len(in_database):
                peptide, protein, score = every[i], protein_of[every[i]], right[i] + _OF_SPECTRUM * rng.normal()
                identified[-1].add(peptide)
            else:
                peptide, score = wrong[number][i - len(in_database)], rng.normal()
                protein = protein_of[peptide] if is_target[number, i - len(in_database)] else f"rev_P{rng.integers(len(groups))}"
            rows.append(f"run{number}_{scan}_2_1\t{score:.5f}\t\t\t-.{peptide}.-\t{protein}")
    (folder / "proteins.fasta").write_text("".join(f">P{i}\n{''.join(group)}\n" for i, group in enumerate(groups)))
    (folder / "psms.tsv").write_text("\n".join(rows) + "\n")
    files = [folder / f"run{number}.mzML" for number in range(n_runs)]
    import_results([folder / "psms.tsv"], files, folder / "project", [folder / "proteins.fasta"])
    somewhere = set().union(*identified)
    possible = sum(len((of_run.keys() & somewhere) - of_file) for of_run, of_file in zip(truth, identified, strict=True))
    return folder / "project", truth, possible


def _features(
    rng: np.random.Generator, peptides: list[str], base: NDArray[np.float64], amount: NDArray[np.float64], in_database: list[str]
) -> _Features:
    """Return the features of a run: those of its peptides, followed by interfering ones."""
    length = _SECONDS * rng.uniform(*_LENGTHS)
    wave, phase, bend = rng.normal(0, _WAVE), rng.uniform(0, 2 * np.pi), rng.uniform(-_BEND, _BEND)
    part = base + bend * base * (1 - base) + wave * np.sin(3 * np.pi * base + phase)
    n_others = _INTERFERING * len(in_database)
    others = [in_database[i] for i in rng.integers(0, len(in_database), n_others)]
    apex = np.concatenate([length * part + _SCATTER * rng.normal(size=len(base)), rng.uniform(0.02, 0.98, n_others) * length])
    mz = np.array([Planted(peptide, 2, 0.0, 0.0).mz for peptide in (*peptides, *others)])
    mz[len(peptides) :] *= 1 + rng.uniform(-_TOLERANCE, _TOLERANCE, n_others) * 1e-6
    area = np.concatenate(
        [amount * np.exp(rng.normal(0, _RUN_AMOUNT) + _ION_AMOUNT * rng.normal(size=len(base))), _AMOUNT * rng.lognormal(0, 1, n_others)]
    )
    pattern = np.array([_pattern(peptide) for peptide in (*peptides, *others)])
    return _Features(mz * (1 + rng.normal(0, _RUN_PPM) * 1e-6), apex, rng.uniform(4, 8, len(apex)), area, pattern)


def _write(path: Path, features: _Features, peptides: list[str], seen: list[int], rng: np.random.Generator) -> list[int]:
    """Write a run, and return the scan numbers of the MS2 spectra of the features `seen`."""
    times = np.arange(0.0, _SECONDS * _LENGTHS[1] * 1.2, _CYCLE)
    begin = np.searchsorted(times, features.apex - 4 * features.deviation)
    count = np.searchsorted(times, features.apex + 4 * features.deviation) - begin
    owner = np.repeat(np.arange(len(count)), count)
    at = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + begin[owner]
    deviation = features.deviation[owner]
    shape = np.exp(-0.5 * ((times[at] - features.apex[owner]) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    height = (features.area[owner] * shape)[:, None] * features.pattern[owner] * rng.lognormal(0, 0.05, (len(owner), _ISOTOPES))
    mz = features.mz[owner][:, None] + np.arange(_ISOTOPES) * (SPACING / 2)
    mz *= 1 + rng.normal(0, _PPM, mz.shape) * 1e-6
    n_noise = _NOISE_PEAKS * len(times)
    row = np.concatenate([np.repeat(at, _ISOTOPES), rng.integers(0, len(times), n_noise)])
    mz = np.concatenate([mz.ravel(), rng.uniform(400, 1200, n_noise)])
    height = np.concatenate([height.ravel(), rng.lognormal(np.log(_FAINTEST), 0.7, n_noise)])
    chosen = height > _FAINTEST
    row, mz, height = row[chosen], mz[chosen], height[chosen]
    order = np.lexsort((mz, row))
    mz, height, bounds = mz[order], height[order], np.searchsorted(row[order], np.arange(len(times) + 1)).tolist()
    after: dict[int, list[int]] = {}
    for number, k in enumerate(seen):
        after.setdefault(int(np.abs(times - features.apex[k] - features.deviation[k] * rng.uniform(-1, 1)).argmin()), []).append(number)
    texts, scans = list[str](), [0] * len(seen)
    for i, (start, stop) in enumerate(pairwise(bounds)):
        texts.append(spectrum_text(len(texts), 1, float(times[i]), mz[start:stop], height[start:stop], is_compact=True))
        for number in after.get(i, ()):
            peaks = np.array([150.1, 250.2]), np.array([5.0, 7.0])
            texts.append(
                spectrum_text(len(texts), 2, float(times[i]) + 0.1, *peaks, Planted(peptides[number], 2, 0.0, 0.0), is_compact=True)
            )
            scans[number] = len(texts)
    path.write_text(mzml_text(texts), encoding="utf-8")
    return scans


def _figures(project: Path, truth: list[dict[str, tuple[float, float]]], possible: int, limit: float) -> dict:
    run_search("quantify", {"project": [project]}, device="cpu", threads=2, match_between_runs=True, transfer_fdr=limit)
    rows = [row for row in table_of(project, "ion_traces") if row["source"] == "transferred"]
    apexes = [truth[int(row["file"].removeprefix("run").removesuffix(".mzML"))].get(row["peptide"]) for row in rows]
    apart = [np.inf if apex is None else abs(row["retention_time"] - apex[0]) / apex[1] for row, apex in zip(rows, apexes, strict=True)]
    absent, misplaced = int(np.isinf(apart).sum()), int(((np.array(apart) > _MISPLACED) & np.isfinite(apart)).sum())
    return {"limit": limit, "reported": len(rows), "absent": absent, "misplaced": misplaced, "possible": possible}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.01])
    options = parser.parse_args()
    sums: dict[float, dict] = {}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for figures in errors_of_transfers(seed, options.runs, options.limits):
            emit({"date": date.today().isoformat(), "seed": seed, "runs": options.runs}, **figures)
            total = sums.setdefault(figures["limit"], dict.fromkeys(figures, 0))
            for name in figures:
                total[name] += figures[name]
    for limit, total in sums.items():
        false = total["absent"] + total["misplaced"]
        rates = {"rate": round(false / max(1, total["reported"]), 4), "power": round((total["reported"] - false) / total["possible"], 4)}
        emit({"date": date.today().isoformat(), "seeds": options.seeds, "runs": options.runs}, **(total | {"limit": limit} | rates))


if __name__ == "__main__":
    main()
