"""Random chains for the structure kernels, and results of the recurrences for pairs of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.structure_layouts import (
    ANGLE_STEPS,
    CODES,
    ELEMENT_UNITS,
    FORBIDDEN,
    LENGTH_STEPS,
    PADDING,
    Rewards,
    StructureArrays,
)
from tests.shim.read_only import read_only

__all__ = ["plain_element_score", "plain_score", "random_rewards", "random_structures"]


def random_structures(rng: np.random.Generator, lengths: Sequence[int], n_codes: int = 27) -> StructureArrays:
    """Generate chains of these lengths, with codes below `n_codes` and elements of random lengths, some of them very long."""
    n = sum(lengths)
    state = np.zeros(n, np.uint32)
    for shift in range(0, 30, 5):
        state |= rng.integers(0, n_codes, n).astype(np.uint32) << np.uint32(shift)
    counts = [1 + length // 6 for length in lengths]
    element_length = np.where(rng.random(sum(counts)) < 0.05, rng.integers(250, 70_000, sum(counts)), rng.integers(1, 20, sum(counts)))
    distance, angle = rng.integers(1500, 4500, n).astype(np.uint16), rng.integers(0, ANGLE_STEPS, n).astype(np.uint16)
    return StructureArrays(
        *read_only(np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), state, distance, angle),
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        rng.integers(0, 3, sum(counts)).astype(np.uint8),
        element_length.astype(np.int32),
    )


def random_rewards(rng: np.random.Generator, n_alphabets: int = 3, compares: bool = False, gaps: tuple[int, int] = (300, 40)) -> Rewards:
    """Generate rewards, some of them positive."""
    tables = rng.integers(-150, 60, (n_alphabets, CODES, CODES)).astype(np.int32)
    tables[:, np.arange(CODES), np.arange(CODES)] += 150
    tables[0, PADDING, :] = tables[0, :, PADDING] = FORBIDDEN
    of_length = rng.integers(0, 80, LENGTH_STEPS if compares else 0).astype(np.int32)
    of_angle = rng.integers(0, 80, ANGLE_STEPS if compares else 0).astype(np.int32)
    shifts = np.array([0, 10, 15, 20, 25][:n_alphabets], np.int64)  # constant, because each choice is compiled
    return Rewards(shifts, tables, of_length, of_angle, *gaps, ELEMENT_UNITS // 2, ELEMENT_UNITS // 4)


def _best_local(rewards: NDArray[np.int64], gap_first: int, gap_next: int) -> int:
    """Compute the best local alignment from the reward of each cell, by the recurrence."""
    n, m = rewards.shape
    h = np.zeros((n + 1, m + 1), np.int64)
    e, f = np.full((n + 1, m + 1), -(1 << 40)), np.full((n + 1, m + 1), -(1 << 40))
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            e[i, j] = max(e[i, j - 1] - gap_next, h[i, j - 1] - gap_first)
            f[i, j] = max(f[i - 1, j] - gap_next, h[i - 1, j] - gap_first)
            h[i, j] = max(0, h[i - 1, j - 1] + rewards[i - 1, j - 1], e[i, j], f[i, j])
    return int(h.max())


def plain_score(query: StructureArrays, chain: StructureArrays, rewards: Rewards) -> int:
    """Compute phase 2 of two chains."""
    cells = np.zeros((len(query.state), len(chain.state)), np.int64)
    for shift, table in zip(rewards.shifts, rewards.tables, strict=True):
        state, other = (arrays.state >> np.uint32(shift) & np.uint32(CODES - 1) for arrays in (query, chain))
        cells += table[np.ix_(state, other)]
    if len(rewards.of_length):
        lengths = np.abs(query.length.astype(int)[:, None] - chain.length.astype(int))
        cells += rewards.of_length[np.minimum(lengths, LENGTH_STEPS - 1)]
        cells += rewards.of_angle[np.abs(query.angle.astype(int)[:, None] - chain.angle.astype(int))]
    return _best_local(cells, rewards.gap_first, rewards.gap_next)


def plain_element_score(query: StructureArrays, chain: StructureArrays, rewards: Rewards) -> int:
    """Compute phase 1 of two chains: equation 12 of Mrozek et al., rounded to integers."""
    cells = np.zeros((len(query.element_type), len(chain.element_type)), np.int64)
    for i, (type_a, a) in enumerate(zip(query.element_type.tolist(), query.element_length.tolist(), strict=True)):
        for j, (type_b, b) in enumerate(zip(chain.element_type.tolist(), chain.element_length.tolist(), strict=True)):
            similarity = 0.5 if 0 in (type_a, type_b) else float(type_a == type_b)
            cells[i, j] = np.floor((similarity - similarity * abs(a - b) / (a + b)) * ELEMENT_UNITS + 0.5)
    return _best_local(cells, rewards.element_gap_first, rewards.element_gap_next)
