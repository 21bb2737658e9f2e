"""The false discovery rate of short and longer lists, for best scores of several distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.statistics.target_decoy import expected_decoys, q_values

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def best(n: int, draw: Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]) -> Draw:
    """Return a function that draws the best of n candidates."""
    return lambda rng, size: draw(rng, (n, size)).max(axis=0)


def mixed(share: float, first: Draw, second: Draw) -> Draw:
    """Return a function that draws from the first distribution with a probability, else from the second."""
    return lambda rng, size: np.where(rng.random(size) < share, first(rng, size), second(rng, size))


SHAPES: dict[str, Draw] = {
    "hyperscore": best(200, lambda rng, size: rng.exponential(1.0, size)),
    "log-normal": best(100, lambda rng, size: rng.lognormal(0.0, 0.4, size)),
    "dot product": best(20, lambda rng, size: rng.beta(1.5, 6.0, size)),
    "logistic": lambda rng, size: rng.logistic(0.0, 1.0, size),
    "normal": lambda rng, size: rng.normal(0.0, 1.0, size),
    "two qualities": mixed(0.8, lambda rng, size: rng.gumbel(0.0, 0.5, size), lambda rng, size: rng.gumbel(1.0, 0.9, size)),
    "two lists of candidates": mixed(
        0.5, best(10, lambda rng, size: rng.exponential(1.0, size)), best(300, lambda rng, size: rng.exponential(1.0, size))
    ),
}


def false_proportions(rng: np.random.Generator, draw: Draw, pool: NDArray[np.float64], n_true: int, fdr: float) -> tuple[float, float]:
    """Return the false discovery proportions of a list by the tail and by the plain ratio.

    Of three spectra one has a true match. Its score is a high quantile of `pool`, sorted wrong scores, or lies beyond them by their spread.
    """
    spread = (pool[-100:] - pool[-100]).mean()
    wrong = draw(rng, 3 * n_true)
    depth = rng.normal(8.0, 3.5, n_true)  # depth in the tail, as a natural logarithm
    place = np.clip(len(pool) * (1.0 - np.exp(-np.maximum(depth, 0.0))), 0, len(pool) - 1).astype(int)
    true = pool[place] + spread * np.maximum(depth - np.log(len(pool)), 0.0)
    score = wrong.copy()
    score[:n_true] = np.maximum(score[:n_true], true)
    is_true = score > wrong
    is_decoy = ~is_true & (rng.random(3 * n_true) < 0.5)
    rates = (q_values(score, is_decoy, expected=expected_decoys(score, is_decoy, score)), q_values(score, is_decoy))
    shares = []
    for q_value in rates:
        accepted = (q_value <= fdr) & ~is_decoy
        shares.append(np.count_nonzero(accepted & ~is_true) / max(np.count_nonzero(accepted), 1))
    return shares[0], shares[1]


@pytest.mark.parametrize("shape", SHAPES)
def test_expected_decoys_control_fdr_for_each_score_distribution(shape: str) -> None:
    rng = np.random.default_rng(49)
    pool = np.sort(SHAPES[shape](rng, 20_000))
    lists = ((30, 500), (60, 400), (200, 120))
    by_size = [np.mean([false_proportions(rng, SHAPES[shape], pool, n, 0.01) for _ in range(number)], axis=0) for n, number in lists]
    tail, plain = np.mean(by_size, axis=0)
    assert tail < 0.013
    assert plain > 0.015  # the lists are difficult enough to reveal a wrong rule


@pytest.mark.parametrize("shape", ["hyperscore", "logistic", "two qualities"])
def test_expected_decoys_control_5_percent_fdr_in_short_lists(shape: str) -> None:
    rng = np.random.default_rng(50)
    pool = np.sort(SHAPES[shape](rng, 20_000))
    tail, plain = np.mean([false_proportions(rng, SHAPES[shape], pool, 24, 0.05) for _ in range(700)], axis=0)
    assert tail < 0.055
    assert plain > 0.06
