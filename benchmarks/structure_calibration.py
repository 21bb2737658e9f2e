"""Calibration of the E-values and same-fold probabilities of the structure search, and measurement of their accuracy.

    python -m benchmarks.structure_calibration --data FOLDER [--modes sensitive published] [--machine WORDS] [--learn]

The single-domain chains of `FOLDER/structures/bench_ca` are searched against each other and (sensitive mode) against the reversed chains,
with reward tables that were learned without the SCOPe fold of the query. Whole SCOPe folds, and thus whole superfamilies, are assigned to
five parts.

Constants of chance are fitted, by maximum likelihood, to the upper 3 % of the scores of chains of different SCOPe classes and of reversed
chains of other folds (lower or improbable scores are censored); probabilities of the same fold by logistic regression.
`--learn` fits both to all parts and writes `resources/structures/calibration.json`.

These figures are printed and added to `benchmarks/results/structures.jsonl`. Each part is evaluated with constants that were fitted to
pairs of chains of the other four parts; the figures are for all parts together. `e_values`: how many chains a query finds on average up to
an E-value, among reversed chains and real ones of other folds. `same_fold`: hits by their probability, in ten bins, with the share of them
that has the query's SCOPe fold, and the expected calibration error of all hits and of those with 5 % or more; its 95 % interval is computed
by resampling the SCOPe folds of queries.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure_tables import aligned_residues, learned_tables
from benchmarks.structures import RESULTS, Labels, folds_of, labelled_chains
from proteoscope import resources
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, available_threads
from proteoscope.engine.structure_search.calibration import Calibration, chance_features, fold_features, ordered_shares
from proteoscope.engine.structure_search.candidates import Comparison, score_chains
from proteoscope.engine.structure_search.hits import query_hits
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import DescribedChains, described
from proteoscope.engine.structures.chains import RESIDUE_COLUMNS, Chains
from proteoscope.engine.structures.rewards import SensitiveTables

__all__ = ["Pairs", "calibration_error", "fitted_chance", "fitted_logistic", "reversed_chains"]

_PARTS = 5
_UPPER, _IMPROBABLE, _ROUNDS = 0.03, 1e-4, 2
_E_VALUES = (10.0, 1.0, 0.1, 0.01)
_BINS, _MINIMUM_PROBABILITY, _DRAWS = 10, 0.05, 1000
_NEAR_FOLDS = (
    {f"c.{number}" for number in (2, 3, 4, 5, 23, 26, 27, 28, 30, 31, 32, 37, 44, 66, 78, 79, 87, 91, 108, 111)},
    {f"b.{number}" for number in (66, 67, 68, 69, 70)},
    {"b.80", "b.81"},
)
"""Folds of SCOPe that resemble each other so much that they are often counted as one: Rossmann-like, propellers, helices of strands."""


@dataclass(frozen=True)
class Pairs:
    """All pairs of n labelled chains in a mode.

    Attributes
    ----------
    labels : of the chains. part : (n,) part that each is assigned to. lengths : (n,) residues. shares : (n, 2) of helix and strand.
    scores, backwards : (n, n) of query and chain, and of query and reversed chain; the last may be None (not requested).
    query, target, tm_query, tm_target : (k,) of the hits that are reported, without the query itself: both chains and TM-scores.
    """

    labels: Labels
    part: NDArray[np.int64]
    lengths: NDArray[np.int64]
    shares: NDArray[np.float64]
    scores: NDArray[np.float64]
    backwards: NDArray[np.float64] | None
    query: NDArray[np.int64]
    target: NDArray[np.int64]
    tm_query: NDArray[np.float64]
    tm_target: NDArray[np.float64]

    @property
    def of_class(self) -> NDArray:
        """(n,) SCOPe class, a character."""
        return np.array([name[0] for name in self.labels.fold])

    def features(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return features of pairs for E-values, as in the search."""
        return chance_features(self.lengths[i], self.lengths[j], np.minimum(self.shares[i], self.shares[j]).sum(axis=1))

    def fold_features(self) -> NDArray[np.float64]:
        """Return features of hits for the probability of the same fold, as in the search."""
        return fold_features(self.tm_query, self.tm_target, np.minimum(self.lengths[self.query], self.lengths[self.target]))

    def is_same_fold(self) -> NDArray[np.bool_]:
        """Return True for each hit of the query's fold."""
        return self.labels.fold[self.query] == self.labels.fold[self.target]


def reversed_chains(chains: Chains) -> Chains:
    """Return every chain reversed: a chance model with the lengths, helices, strands and compactness of proteins."""
    of_row = np.repeat(np.arange(len(chains)), chains.lengths)
    rows = chains.offsets[of_row] + chains.offsets[of_row + 1] - 1 - np.arange(len(of_row))
    return replace(chains, **{name: getattr(chains, name)[rows] for name in RESIDUE_COLUMNS})


def measured_pairs(chains: DescribedChains, labels: Labels, mode: str, threads: int) -> Pairs:
    """Search all chains with each other, each query by rewards that were learned without its SCOPe fold."""
    n, part, place = len(chains), folds_of(labels.fold, _PARTS), np.argsort(chains.file_order)
    parameters, running = StructureSearchParameters().changed(mode=mode, hits_per_query=100), Resources(threads)
    is_sensitive = mode == "sensitive"
    aligned = aligned_residues(chains, labels.fold, threads) if is_sensitive else None
    backwards = described(reversed_chains(chains.chains), threads=threads) if is_sensitive else None
    scores, mirrored, result = np.zeros((n, n)), np.zeros((n, n)), list[tuple[int, int, float, float]]()
    for number in range(_PARTS):
        tables = None
        if aligned is not None:
            tables = SensitiveTables.from_json(learned_tables(chains.arrays, aligned.among(part != number, chains.chains.offsets)))
        queries = np.flatnonzero(part == number).tolist()
        with Executor(running).session(build_workload(chains.arrays)) as session:
            comparison = Comparison(chains, chains, parameters, session, running, tables=tables)
            for i in queries:
                (hits,) = query_hits(comparison, [i])
                scores[i] = hits.scores
                targets, *both = (hits.hits[name].to_pylist() for name in ("target_index", "tm_score_query", "tm_score_target"))
                result += [(i, int(place[target]), *tm) for target, *tm in zip(targets, *both, strict=True) if place[target] != i]
        if backwards is not None:
            with Executor(running).session(build_workload(backwards.arrays)) as session:
                comparison = Comparison(chains, backwards, parameters, session, running, tables=tables)
                for i in queries:
                    here = score_chains(comparison, i)
                    # The chains are in order of length already.
                    mirrored[i] = here.chains.residues / here.unit
        print(json.dumps({"mode": mode, "part": number, "queries": len(queries)}), flush=True)
    query, target, tm_query, tm_target = (np.array(column) for column in zip(*result, strict=True))
    shares = ordered_shares(chains.chains, np.arange(n))
    return Pairs(
        labels, part, chains.chains.lengths, shares, scores, mirrored if is_sensitive else None, query, target, tm_query, tm_target
    )


def fitted_chance(scores: NDArray[np.float64], features: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the location and logarithm of the scale of a Gumbel distribution, both linear in the features, by maximum likelihood.

    All scores are fitted first, and then only the upper ones. Improbably high scores are censored, since some unrelated
    chains are similar nevertheless.
    """
    constants = _gumbel(scores, features, np.full(len(scores), -np.inf), np.full(len(scores), np.inf))
    for _ in range(_ROUNDS):
        location, scale = features @ constants[0], np.exp(features @ constants[1])
        low, high = (location - scale * np.log(-np.log1p(-chance)) for chance in (_UPPER, _IMPROBABLE))
        constants = _gumbel(scores, features, low, high)
    return constants


def _gumbel(
    scores: NDArray[np.float64], features: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit a Gumbel distribution to scores censored below `low` and above `high`."""
    from scipy.optimize import minimize

    k, unit = features.shape[1], 10.0
    is_low, is_high = scores <= low, scores >= high
    is_known, clipped = ~is_low & ~is_high, np.clip(scores, low, high) / unit

    def loss(constants: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        log_scale = features @ constants[k:]
        above = np.clip((clipped - features @ constants[:k]) / np.exp(log_scale), -6.0, 80.0)
        more = np.exp(-above)
        chance = np.maximum(-np.expm1(-more), 1e-300)
        likelihood = np.where(is_known, -log_scale - above - more, np.where(is_low, -more, np.log(chance)))
        slope = np.where(is_known, more - 1, np.where(is_low, more, -more * np.exp(-more) / chance))
        gradient = np.concatenate([features.T @ (-slope / np.exp(log_scale)), features.T @ (-slope * above - is_known)])
        return -float(likelihood.mean()), -gradient / len(scores)

    start = np.zeros(2 * k)
    start[0], start[k] = np.median(scores) / unit, np.log(0.8 * scores.std() / unit)
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "gtol": 1e-9, "ftol": 1e-14}).x
    location, log_scale = result[:k] * unit, result[k:].copy()
    log_scale[0] += np.log(unit)
    return location, log_scale


def fitted_logistic(features: NDArray[np.float64], truth: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return constants of a logistic regression, by Newton's method."""
    constants = np.zeros(features.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(features @ constants, -35.0, 35.0)))
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features
        constants += np.linalg.solve(curvature + 1e-6 * np.eye(len(constants)), features.T @ (truth - chance))
    return constants


def calibrated(pairs: Pairs, chosen: NDArray[np.bool_]) -> Calibration:
    """Return constants fitted to pairs with both chains chosen."""
    i, j = np.nonzero(chosen[:, None] & chosen[None])
    location = log_scale = None
    if pairs.backwards is not None:
        other_class, other_fold = pairs.of_class[i] != pairs.of_class[j], pairs.labels.fold[i] != pairs.labels.fold[j]
        features = pairs.features(i, j)
        scores = np.concatenate([pairs.scores[i, j][other_class], pairs.backwards[i, j][other_fold]])
        location, log_scale = fitted_chance(scores, np.concatenate([features[other_class], features[other_fold]]))
    is_chosen = chosen[pairs.query] & chosen[pairs.target]
    return Calibration(location, log_scale, fitted_logistic(pairs.fold_features()[is_chosen], pairs.is_same_fold()[is_chosen]))


def calibration_error(probabilities: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over ten equal bins: the weighted difference of mean probability and share."""
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    return float(np.abs(np.bincount(bins, probabilities - truth)).sum() / max(1, len(truth)))


def e_value_figures(pairs: Pairs, calibrations: list[Calibration]) -> list[dict[str, Any]]:
    """Return the number of chains that a query finds up to E-values, by constants of the other parts, among the counted chains."""
    assert pairs.backwards is not None
    n = len(pairs.lengths)
    chances = {"real": np.ones((n, n)), "reversed": np.ones((n, n))}
    for i in range(n):
        features, here = pairs.features(np.full(n, i), np.arange(n)), calibrations[pairs.part[i]]
        chances["real"][i], chances["reversed"][i] = here.chances(pairs.scores[i], features), here.chances(pairs.backwards[i], features)
    other_fold = pairs.labels.fold[:, None] != pairs.labels.fold[None]
    other_class = pairs.of_class[:, None] != pairs.of_class[None]
    near = np.zeros((n, n), np.bool_)
    for folds in _NEAR_FOLDS:
        is_one = np.isin(pairs.labels.fold, sorted(folds))
        near |= is_one[:, None] & is_one[None]
    rows = []
    for chains, among, counted in (
        ("reversed", "other folds", other_fold),
        ("reversed", "all", np.ones((n, n), np.bool_)),
        ("real", "other classes", other_class),
        ("real", "other folds", other_fold),
        ("real", "other folds, near ones left out", other_fold & ~near),
    ):
        e_values = chances[chains] * counted.sum(axis=1, keepdims=True)
        numbers = {f"E <= {most:g}": round(float(((e_values <= most) & counted).sum() / n), 4) for most in _E_VALUES}
        finding = {f"E <= {most:g}": int(((e_values <= most) & counted).any(axis=1).sum()) for most in _E_VALUES}
        rows.append(
            {
                "figure": "e_values",
                "mode": "sensitive",
                "chains": chains,
                "among": among,
                "pairs": int(counted.sum()),
                "queries": n,
                "mean_number": numbers,
                "queries_with_one": finding,
            }
        )
    return rows


def same_fold_figures(pairs: Pairs, calibrations: list[Calibration], mode: str) -> dict[str, Any]:
    """Compare probabilities of hits with the share that has the query's fold, by constants of the other parts."""
    truth, shorter = pairs.is_same_fold(), np.minimum(pairs.lengths[pairs.query], pairs.lengths[pairs.target])
    probabilities = np.empty(len(truth))
    for number, calibration in enumerate(calibrations):
        here = pairs.part[pairs.query] == number
        probabilities[here] = calibration.same_fold_probabilities(pairs.tm_query[here], pairs.tm_target[here], shorter[here])
    near = np.zeros(len(truth), np.bool_)
    for folds in _NEAR_FOLDS:
        near |= np.isin(pairs.labels.fold[pairs.query], sorted(folds)) & np.isin(pairs.labels.fold[pairs.target], sorted(folds))
    near &= ~truth
    bins, rows = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1), []
    for number in range(_BINS):
        here = bins == number
        rows.append(
            {
                "hits": int(here.sum()),
                "probability": round(float(probabilities[here].mean()), 4) if here.any() else None,
                "share": round(float(truth[here].mean()), 4) if here.any() else None,
                "near_folds": int(near[here].sum()),
                "query_folds": len(set(pairs.labels.fold[pairs.query[here]])),
            }
        )
    likely = probabilities >= _MINIMUM_PROBABILITY
    errors = {"all": calibration_error(probabilities, truth), "5 % or more": calibration_error(probabilities[likely], truth[likely])}
    errors["5 % or more, near folds left out"] = calibration_error(probabilities[likely & ~near], truth[likely & ~near])
    for number in range(_PARTS):
        here = likely & (pairs.part[pairs.query] == number)
        errors[f"5 % or more, part {number}"] = calibration_error(probabilities[here], truth[here])
    # Hits of all queries of a fold are resampled together.
    folds, of_hit = np.unique(pairs.labels.fold[pairs.query], return_inverse=True)
    rng, drawn = np.random.default_rng(0), []
    table = np.zeros((len(folds), _BINS, 2))
    np.add.at(table, (of_hit[likely], bins[likely]), np.stack([probabilities - truth, np.ones(len(truth))], axis=1)[likely])
    for _ in range(_DRAWS):
        sums = table[rng.integers(0, len(folds), len(folds))].sum(axis=0)
        drawn.append(np.abs(sums[:, 0]).sum() / sums[:, 1].sum())
    n = len(pairs.lengths)
    return {
        "figure": "same_fold",
        "mode": mode,
        "hits": len(truth),
        "of_same_fold": int(truth.sum()),
        "share_of_pairs": round(float(((pairs.labels.fold[:, None] == pairs.labels.fold[None]).sum() - n) / (n * (n - 1))), 5),
        "calibration_error": {name: round(value, 4) for name, value in errors.items()},
        "interval": [round(float(bound), 4) for bound in np.quantile(drawn, [0.025, 0.975])],
        "bins": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--modes", nargs="+", choices=("sensitive", "published"), default=["sensitive", "published"])
    parser.add_argument("--machine", default="", metavar="WORDS", help="what it ran on, for the results")
    parser.add_argument("--learn", action="store_true", help="write the constants that ship, of these modes")
    parser.add_argument("--threads", type=int, default=available_threads())
    options = parser.parse_args()
    chains, labels = labelled_chains(options.data / "structures" / "bench_ca", options.threads, longest=None)
    learned = resources.path("structures", "calibration.json")
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": options.machine}
    for mode in options.modes:
        pairs = measured_pairs(chains, labels, mode, options.threads)
        rows, constants = figures(pairs, mode)
        with RESULTS.open("a", encoding="utf-8") as file:
            for row in rows:
                print(json.dumps(row), flush=True)
                file.write(json.dumps(about | row) + "\n")
        if options.learn:
            content = json.loads(learned.read_text(encoding="utf-8"))
            content["modes"][mode] = constants
            learned.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def figures(pairs: Pairs, mode: str) -> tuple[list[dict[str, Any]], dict[str, list[float]]]:
    """Return rows of figures, and the constants of all parts together."""
    calibrations = [calibrated(pairs, pairs.part != part) for part in range(_PARTS)]
    rows = e_value_figures(pairs, calibrations) if pairs.backwards is not None else []
    rows.append(same_fold_figures(pairs, calibrations, mode))
    every = calibrated(pairs, np.ones(len(pairs.lengths), np.bool_))
    constants = {"location": every.location, "log_scale": every.log_scale, "same_fold": every.same_fold}
    return rows, {name: np.round(value, 4).tolist() for name, value in constants.items() if value is not None}


if __name__ == "__main__":
    main()
