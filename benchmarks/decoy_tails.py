"""False discovery proportions of rules for the decoy tail, on simulated lists in which every false match is known.

    python -m benchmarks.decoy_tails [--quick] [--seed 1] [--out benchmarks/results/decoy_tails.jsonl]

A spectrum with an answer has a true match, which competes with the best wrong candidate; other spectra have only the wrong candidate. A
wrong match is a decoy with probability 1/2. Scores of wrong matches are independent draws from the distribution of the best of n candidates
(`SHAPES`); true matches lie 3.5 +- 1.5 decades into the upper tail of the wrong ones. A third or two thirds of the spectra have an answer.

Rules
-----
plain
    decoys / targets.
plus_one
    (decoys + 1) / targets.
median, quartile
    the decoys expected from an exponential tail above this quantile of the decoys (`expected_decoys`). With fewer than 10 decoys, one is
    expected at every score.
hybrid
    the upper quartile from 40 decoys on, else the median.

Levels
------
larger
    one match of each peptide. If more decoys are expected than observed, the expected number is used, but at most one more than observed.
added
    one match of each peptide. The expected decoys, at most 1, are added to the observed ones.
replicates_larger
    1 to 6 matches of each peptide, true or false, with nearly equal scores; as `larger`, with a tail of all decoy matches; the excess over
    the observed decoys is at most the mean number of matches of a decoy peptide.
replicates_added
    the same matches; as `added`, with a tail of the best match of each decoy peptide, times the mean number of matches of a decoy peptide.
replicates_groups
    the same matches; as `added` on the best match of each peptide, and not below the plain rate of the matches (`matches.class_rates`).

Figures
-------
A line for each shape, level, number of accepted targets and nominal rate: the mean over lists of the false discovery proportion (0 if
nothing is accepted) with its 95 % interval, and the mean number of true matches accepted. Half of the shapes, with separate seeds, are used
to choose the rule (`choose`), the other half to confirm it (`confirm`). Summaries over shapes follow; they are also written to standard
error as tables.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, ndtr

from benchmarks.figures import emit

__all__ = ["LEVELS", "RULES", "SHAPES", "SIZES", "Lists", "Outcome", "Shape", "accepted", "draw_lists", "measure", "summaries"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RULES = ("plain", "plus_one", "median", "quartile", "hybrid")
LEVELS = ("larger", "added", "replicates_larger", "replicates_added", "replicates_groups")
SIZES = (20, 60, 200, 1000, 5000)
NOMINAL = (0.01, 0.05)
MATCHES_PER_CELL, MAXIMUM_LISTS, MINIMUM_LISTS = 400_000, 2000, 80
"""Matches drawn for each shape and size; lists, at most and at least."""
QUICK = 4
"""Factor by which --quick reduces the number of lists."""
BATCH = 400_000
ACCEPTED_SHARE = 0.85
"""Share of the true matches accepted at 1 %."""
COPIES = 6
DEPTH, DEPTH_SPREAD, DEEPEST = 3.5, 1.5, 12.0
"""Decades of true matches into the tail of wrong ones: mean, standard deviation, maximum."""
COPY_SPREAD = 0.1
"""Decades between matches of one peptide."""
MINIMUM_DECOYS, MANY_DECOYS = 10, 40
RIGHT_SHARES = (1 / 3, 2 / 3)


@dataclass(frozen=True)
class Shape:
    """Distribution of the best wrong score of a spectrum.

    Attributes
    ----------
    name : str
    part : str
        "choose" or "confirm".
    survival : callable
        Probability that the best wrong score is above each of some scores.
    low, high : float
        Scores between which the distribution lies.
    step : float
        Distance between possible scores, 0 if any is possible.
    """

    name: str
    part: str
    survival: Callable[[Floats], Floats]
    low: float
    high: float
    step: float = 0.0

    def scores(self, depth: Floats) -> Floats:
        """Return the scores exceeded with probability ``10**-depth``."""
        grid = np.linspace(self.low, self.high, 40_001)
        with np.errstate(divide="ignore"):
            depths = -np.log10(self.survival(grid))
        usable = np.isfinite(depths)
        scores = np.interp(depth, np.maximum.accumulate(depths[usable]), grid[usable])
        return np.floor(scores / self.step) * self.step if self.step else scores


def best_of(n: float, survival: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return the survival function of the best of n independent candidates."""
    return lambda score: -np.expm1(n * np.log1p(-np.minimum(survival(score), 1.0 - 1e-16)))


def mixture(*parts: tuple[float, Callable[[Floats], Floats]]) -> Callable[[Floats], Floats]:
    """Return the survival function of a mixture of spectra, each part with its share."""
    return lambda score: np.sum([share * survival(score) for share, survival in parts], axis=0)


def exponential(spread: float, start: float = 0.0) -> Callable[[Floats], Floats]:
    """Return the survival function of candidates with few high scores, as hyperscores."""
    return lambda score: np.exp(-np.maximum(score - start, 0.0) / spread)


def log_normal(sigma: float) -> Callable[[Floats], Floats]:
    """Return the survival function of sums of intensities."""
    return lambda score: ndtr(-np.log(np.maximum(score, 1e-300)) / sigma)


def dot_product(a: float, b: float) -> Callable[[Floats], Floats]:
    """Return the survival function of a Beta distribution: similarities from 0 to 1."""
    return lambda score: betainc(b, a, np.clip(1.0 - score, 0.0, 1.0))


def logistic(score: Floats) -> Floats:
    """Return the survival function of the logistic distribution, as of learnt scores."""
    return 1.0 / (1.0 + np.exp(score))


def gumbel(place: float, spread: float) -> Callable[[Floats], Floats]:
    """Return the survival function of the Gumbel distribution."""
    return lambda score: -np.expm1(-np.exp(-(score - place) / spread))


def counts(mean: float) -> Callable[[Floats], Floats]:
    """Return the survival function of Poisson counts, interpolated between them."""
    return lambda score: gammainc(np.maximum(score, 0.0) + 1e-9, mean)


VARIED = (10, 100, 1000, 10_000)
SHAPES = (
    Shape("hyperscore, best of 10", "choose", best_of(10, exponential(1.0)), 0.0, 40.0),
    Shape("hyperscore, best of 10,000", "confirm", best_of(10_000, exponential(1.0)), 0.0, 45.0),
    Shape("hyperscore, best of 10 to 10,000", "choose", mixture(*((0.25, best_of(n, exponential(1.0))) for n in VARIED)), 0.0, 45.0),
    Shape("matched ions, best of 10 to 10,000", "confirm", mixture(*((0.25, best_of(n, counts(2.0))) for n in VARIED)), 0.0, 45.0, 1.0),
    Shape("log-normal 0.3, best of 1,000", "choose", best_of(1000, log_normal(0.3)), 0.0, 20.0),
    Shape("log-normal 0.5, best of 100", "confirm", best_of(100, log_normal(0.5)), 0.0, 80.0),
    Shape("dot product, best of 10", "choose", best_of(10, dot_product(2.0, 6.0)), 0.0, 1.0),
    Shape("dot product, best of 1,000", "confirm", best_of(1000, dot_product(1.0, 12.0)), 0.0, 1.0),
    Shape("learnt, logistic", "choose", logistic, -30.0, 30.0),
    Shape("learnt, normal", "confirm", lambda score: ndtr(-score), -8.0, 8.0),
    Shape(
        "two qualities, 70 % and 30 %",
        "choose",
        mixture((0.7, best_of(1000, exponential(0.5))), (0.3, best_of(1000, exponential(0.8)))),
        0.0,
        40.0,
    ),
    Shape(
        "two qualities, 85 % and 15 %",
        "confirm",
        mixture((0.85, best_of(1000, exponential(0.5))), (0.15, best_of(1000, exponential(0.9)))),
        0.0,
        40.0,
    ),
    Shape("two near qualities, 80 % and 20 %", "confirm", mixture((0.8, gumbel(0.0, 0.5)), (0.2, gumbel(1.0, 0.9))), -3.0, 30.0),
    Shape("two near qualities, 50 % and 50 %", "choose", mixture((0.5, gumbel(0.0, 0.5)), (0.5, gumbel(1.0, 1.0))), -3.0, 33.0),
    Shape(
        "two learnt qualities, 60 % and 40 %",
        "choose",
        mixture((0.6, logistic), (0.4, lambda score: logistic(score / 1.5))),
        -40.0,
        60.0,
    ),
    Shape(
        "two dot products, 80 % and 20 %",
        "confirm",
        mixture((0.8, best_of(30, dot_product(2.0, 14.0))), (0.2, best_of(30, dot_product(2.0, 6.0)))),
        0.0,
        1.0,
    ),
)


class Lists(NamedTuple):
    """Simulated lists, one in each row, best score first; unused places at the end have the score -inf.

    Attributes
    ----------
    score : ndarray of float64, shape (lists, matches)
    is_decoy, is_true : ndarray of bool, shape (lists, matches)
    is_best : ndarray of bool, shape (lists, matches)
        Best match of its peptide.
    peptide : ndarray of int64, shape (lists, matches)
    """

    score: Floats
    is_decoy: Bools
    is_true: Bools
    is_best: Bools
    peptide: NDArray[np.int64]


class Outcome(NamedTuple):
    """False discovery proportion, and number of true matches accepted, of each list; both have the shape (lists,)."""

    proportion: Floats
    power: Floats


def draw_lists(rng: np.random.Generator, shape: Shape, n_lists: int, n_true: int, n_other: int, copies: int = 1) -> Lists:
    """Draw lists of matches.

    Parameters
    ----------
    n_true, n_other : int
        Peptides with and without a true match, in each list.
    copies : int
        Maximum number of matches of a peptide.
    """
    n = n_true + n_other
    depth = -np.log10(1.0 - rng.random((n_lists, n)))
    true_depth = np.clip(rng.normal(DEPTH, DEPTH_SPREAD, (n_lists, n_true)), 0.0, DEEPEST)
    is_true = np.zeros((n_lists, n), bool)
    is_true[:, :n_true] = true_depth > depth[:, :n_true]
    depth[:, :n_true] = np.maximum(depth[:, :n_true], true_depth)
    is_decoy = ~is_true & (rng.random((n_lists, n)) < 0.5)
    is_best = np.ones((n_lists, n), bool)
    if copies > 1:
        used = np.arange(copies) < rng.integers(1, copies + 1, (n_lists, n, 1))
        near = np.maximum(depth[:, :, None] + rng.normal(0.0, COPY_SPREAD, used.shape), 1e-9)
        depth = np.where(used, near, -np.inf)
        is_best = (np.arange(copies) == depth.argmax(axis=2)[:, :, None]).reshape(n_lists, -1)
        is_decoy, is_true = ((flags[:, :, None] & used).reshape(n_lists, -1) for flags in (is_decoy, is_true))
        depth = depth.reshape(n_lists, -1)
    score = np.where(np.isfinite(depth), shape.scores(depth), -np.inf)
    order = np.argsort(-score, axis=1, kind="stable")
    return Lists(*(np.take_along_axis(column, order, 1) for column in (score, is_decoy, is_true, is_best)), order // copies)


def expected_above(score: Floats, is_decoy: Bools, quantile: float) -> Floats:
    """Return the decoys expected at or above each score, from an exponential tail above a quantile of the decoys of each list.

    Parameters
    ----------
    score, is_decoy : shape (lists, matches)
        Best score first.

    Returns
    -------
    ndarray of float64, shape (lists, matches)
        1 in lists of fewer than 10 decoys.
    """
    n = is_decoy.sum(axis=1)
    ascending = np.sort(np.where(is_decoy, score, np.inf), axis=1)
    place = np.maximum(n - 1, 0) * quantile
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))
    rows = np.arange(len(score))
    with np.errstate(invalid="ignore"):
        base = (ascending[rows, low] + (place - low) * (ascending[rows, high] - ascending[rows, low]))[:, None]
        above = is_decoy & (score > base)
        spread = np.where(above, score - base, 0.0).sum(axis=1) / np.maximum(above.sum(axis=1), 1)
        excess = np.maximum(score - base, 0.0) / np.maximum(spread, 1e-12)[:, None]
    expected = np.maximum(above.sum(axis=1), 0.5)[:, None] * np.exp(-excess)
    return np.where((n >= MINIMUM_DECOYS)[:, None], expected, 1.0)


def _expected(rule: str, score: Floats, is_decoy: Bools) -> Floats:
    """Return the decoys expected at or above each score by a rule with a tail."""
    if rule != "hybrid":
        return expected_above(score, is_decoy, 0.5 if rule == "median" else 0.75)
    many = (is_decoy.sum(axis=1) >= MANY_DECOYS)[:, None]
    return np.where(many, expected_above(score, is_decoy, 0.75), expected_above(score, is_decoy, 0.5))


def _n_accepted(score: Floats, decoys: Floats, targets: Floats, nominal: float) -> NDArray[np.int64]:
    """Return the number of matches of each list at or above the lowest threshold with at most the nominal rate."""
    # A threshold accepts all matches of one score.
    is_last = np.append(score[:, 1:] != score[:, :-1], np.ones((len(score), 1), bool), axis=1) & np.isfinite(score)
    passes = is_last & (targets > 0) & (decoys / np.maximum(targets, 1) <= nominal)
    last = score.shape[1] - np.argmax(passes[:, ::-1], axis=1)
    return np.where(passes.any(axis=1), last, 0)


def accepted(lists: Lists, rule: str, level: str, nominal: float) -> NDArray[np.int64]:
    """Return the number of matches, targets and decoys, that each list accepts at a nominal false discovery rate."""
    score, is_decoy = lists.score, lists.is_decoy
    is_used = np.isfinite(score)
    decoys = np.cumsum(is_decoy, axis=1).astype(np.float64)
    targets = np.cumsum(~is_decoy & is_used, axis=1).astype(np.float64)
    if rule == "plain":
        return _n_accepted(score, decoys, targets, nominal)
    decoy_best = is_decoy & lists.is_best
    # Matches of a decoy peptide; without decoys, of any peptide.
    counted = np.where(is_decoy.any(axis=1)[:, None], is_decoy, is_used)
    at_once = (counted.sum(axis=1) / (counted & lists.is_best).sum(axis=1))[:, None]
    if level.endswith("larger"):
        more = 1.0 if rule == "plus_one" else np.minimum(at_once, np.maximum(_expected(rule, score, is_decoy) - decoys, 0.0))
        return _n_accepted(score, decoys + more, targets, nominal)
    more = 1.0 if rule == "plus_one" else np.minimum(_expected(rule, score, decoy_best), 1.0)
    if level != "replicates_groups":
        return _n_accepted(score, decoys + at_once * more, targets, nominal)
    is_best = lists.is_best & is_used
    decoys_best = np.cumsum(decoy_best, axis=1).astype(np.float64)
    targets_best = np.cumsum(is_best & ~is_decoy, axis=1).astype(np.float64)
    by_peptide = _n_accepted(score, decoys_best + more, targets_best, nominal)
    # Further matches of accepted peptides are accepted down to the next peptide.
    is_next = is_best & (np.arange(score.shape[1]) >= by_peptide[:, None])
    by_peptide = np.where(by_peptide > 0, np.where(is_next.any(axis=1), is_next.argmax(axis=1), is_used.sum(axis=1)), 0)
    return np.minimum(by_peptide, _n_accepted(score, decoys, targets, nominal))


def outcome(lists: Lists, n_accepted: NDArray[np.int64]) -> Outcome:
    """Return the false discovery proportion of each list, and the number of true targets that it accepts."""
    is_accepted = np.arange(lists.score.shape[1]) < n_accepted[:, None]
    n_targets = (is_accepted & ~lists.is_decoy).sum(axis=1)
    n_true = (is_accepted & lists.is_true).sum(axis=1)
    return Outcome((n_targets - n_true) / np.maximum(n_targets, 1), n_true.astype(np.float64))


def measure(
    rng: np.random.Generator, shape: Shape, level: str, size: int, n_lists: int, rules: tuple[str, ...] = RULES
) -> dict[tuple[str, float], Outcome]:
    """Return the outcome of each rule and nominal rate on the same lists.

    Parameters
    ----------
    size : int
        Approximate number of targets accepted at 1 %.
    """
    outcomes_of: dict[tuple[str, float], list[Outcome]] = {(rule, nominal): [] for rule in rules for nominal in NOMINAL}
    copies = COPIES if "replicates" in level else 1
    for right_share in RIGHT_SHARES:
        n_true = max(1, round(size / ACCEPTED_SHARE / ((copies + 1) / 2)))
        n_other = round(n_true * (1 / right_share - 1))
        lists_left, batch = n_lists // len(RIGHT_SHARES), max(1, BATCH // ((n_true + n_other) * copies))
        while lists_left > 0:
            lists = draw_lists(rng, shape, min(batch, lists_left), n_true, n_other, copies)
            lists_left -= batch
            for (rule, nominal), outcomes in outcomes_of.items():
                outcomes.append(outcome(lists, accepted(lists, rule, level, nominal)))
    return {key: Outcome(*(np.concatenate(column) for column in zip(*outcomes, strict=True))) for key, outcomes in outcomes_of.items()}


def interval(values: Floats) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval."""
    mean, error = float(values.mean()), 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, mean - error, mean + error


def n_lists_of(size: int, quick: bool) -> int:
    """Return the number of lists of each size."""
    n = int(np.clip(MATCHES_PER_CELL / (3 * size), MINIMUM_LISTS, MAXIMUM_LISTS))
    return max(20, n // QUICK) if quick else n


def figures(
    seed: int, quick: bool, levels: tuple[str, ...] = LEVELS, shapes: tuple[Shape, ...] = SHAPES, sizes: tuple[int, ...] = SIZES
) -> Iterator[dict[str, Any]]:
    """Measure each shape, level and size, and yield a figure for each nominal rate."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for shape in shapes:
        for level in levels:
            for size in sizes:
                rng = np.random.default_rng((seed, SHAPES.index(shape), LEVELS.index(level), size))
                n_lists = n_lists_of(size, quick)
                outcomes = measure(rng, shape, level, size, n_lists)
                for nominal in NOMINAL:
                    rules = {}
                    for rule in RULES:
                        mean, low, high = interval(outcomes[rule, nominal].proportion)
                        power = float(outcomes[rule, nominal].power.mean())
                        rules[rule] = {"fdr": round(mean, 5), "low": round(low, 5), "high": round(high, 5), "power": round(power, 1)}
                    yield {
                        "figure": "decoy tails",
                        "part": shape.part,
                        "shape": shape.name,
                        "level": level,
                        "size": size,
                        "nominal": nominal,
                        "lists": n_lists,
                        "seed": seed,
                        "date": today,
                        "rules": rules,
                    }


def summaries(every: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a figure for each part, level, nominal rate and rule, over the shapes.

    Each has `fdr`, the mean over shapes and sizes; `by_size`, over shapes; the worst shape (mean over sizes) and its interval; the number
    of cells (shape and size) whose interval lies above the nominal rate; and `power`, relative to the plain rule, by size.
    """
    sizes = sorted({line["size"] for line in every})
    keys = sorted({(line["part"], line["level"], line["nominal"]) for line in every})
    for part, level, nominal in keys:
        lines = [line for line in every if (line["part"], line["level"], line["nominal"]) == (part, level, nominal)]
        shapes = sorted({line["shape"] for line in lines})
        for rule in RULES:
            by_shape = {}
            for shape in shapes:
                cells = [line["rules"][rule] for line in lines if line["shape"] == shape]
                error = float(np.sqrt(np.sum([((cell["high"] - cell["low"]) / 2) ** 2 for cell in cells]))) / len(cells)
                by_shape[shape] = (float(np.mean([cell["fdr"] for cell in cells])), error)
            worst = max(by_shape, key=lambda shape: by_shape[shape][0])
            yield {
                "figure": "decoy tails, summary",
                "part": part,
                "level": level,
                "nominal": nominal,
                "rule": rule,
                "fdr": round(float(np.mean([mean for mean, _ in by_shape.values()])), 5),
                "by_size": {size: round(_mean(lines, size, rule, "fdr"), 5) for size in sizes},
                "worst_shape": worst,
                "worst_fdr": round(by_shape[worst][0], 5),
                "worst_low": round(by_shape[worst][0] - by_shape[worst][1], 5),
                "worst_high": round(by_shape[worst][0] + by_shape[worst][1], 5),
                "cells": len(lines),
                "cells_above": sum(line["rules"][rule]["low"] > nominal for line in lines),
                "power": {size: round(_mean(lines, size, rule, "power") / _mean(lines, size, "plain", "power"), 3) for size in sizes},
            }


def _mean(lines: list[dict[str, Any]], size: int, rule: str, name: str) -> float:
    """Return the mean of a value of a rule over shapes."""
    return float(np.mean([line["rules"][rule][name] for line in lines if line["size"] == size]))


def print_table(summary: list[dict[str, Any]]) -> None:
    """Print the summaries to the standard error."""
    for line in summary:
        sizes = "  ".join(f"{100 * value:5.2f}" for value in line["by_size"].values())
        powers = " ".join(f"{100 * value:4.0f}" for value in line["power"].values())
        print(
            f"{line['part']:8}{line['level']:17}{100 * line['nominal']:3.0f} %  {line['rule']:9} FDR % by size {sizes}  worst shape "
            f"{100 * line['worst_fdr']:5.2f} [{100 * line['worst_low']:.2f}, {100 * line['worst_high']:.2f}] {line['worst_shape']:36}"
            f"cells above {line['cells_above']:2} of {line['cells']}  power % {powers}",
            file=sys.stderr,
        )


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 times fewer lists")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="append the figures to this file")
    arguments = parser.parse_args()
    every = []
    for line in figures(arguments.seed, arguments.quick):
        emit(line)
        every.append(line)
    summary = list(summaries(every))
    for line in summary:
        emit(line)
    if arguments.out:
        with arguments.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in every + summary)
    print_table(summary)


if __name__ == "__main__":
    main()
