"""Random chains for superposition: walks of helices and coil, and segments of one another, moved and distorted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.structure_layouts import ChainPairs

__all__ = ["random_chain", "random_pairs"]

_STEP = 3.8  # Å between consecutive Cα


def random_chain(rng: np.random.Generator, length: int) -> NDArray[np.float64]:
    """Generate a chain of helices and random walks in turn: shape (length, 3), Å."""
    parts, end, n = [], np.zeros(3), 0
    while n < length:
        part_length = int(rng.integers(6, 20))
        if rng.random() < 0.5:
            turn = np.radians(100.0) * np.arange(part_length)
            part = np.stack([2.3 * np.cos(turn), 2.3 * np.sin(turn), 1.5 * np.arange(part_length)], axis=1) @ _rotation(rng)
        else:
            steps = rng.normal(size=(part_length, 3)) + rng.normal(size=3)
            part = np.cumsum(_STEP * steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)
        parts.append(part - part[0] + end + rng.normal(size=3))
        end, n = parts[-1][-1], n + part_length
    return np.concatenate(parts)[:length]


def _rotation(rng: np.random.Generator) -> NDArray[np.float64]:
    made, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return made * np.sign(np.linalg.det(made))


def random_pairs(rng: np.random.Generator, n: int, shortest: int, longest: int) -> ChainPairs:
    """Generate n pairs of chains: unrelated chains, segments of each other and collinear chains; half have a start."""
    chains, starts = [], []
    for k in range(n):
        first, second = (random_chain(rng, int(rng.integers(shortest, longest + 1))) for _ in range(2))
        if k % 3 == 1:
            begin = int(rng.integers(0, max(1, len(first) - shortest)))
            part = first[begin:]
            second = part @ _rotation(rng) + rng.normal(size=3) * 30 + rng.normal(size=part.shape) * 0.5
        if k % 10 == 9:
            second = np.arange(len(second))[:, None] * np.array([_STEP, 0.0, 0.0])
        chains += [first, second]
        shared = min(len(first), len(second))
        chosen = np.sort(rng.choice(shared, int(rng.integers(1, shared + 1)), replace=False)) if k % 2 else np.empty(0, np.int64)
        starts.append(np.stack([chosen, chosen], axis=1).astype(np.int32))
    return ChainPairs(
        np.concatenate(chains),
        np.cumsum([0, *map(len, chains)]),
        np.arange(0, 2 * n, 2),
        np.arange(1, 2 * n, 2),
        np.concatenate(starts),
        np.cumsum([0, *map(len, starts)]),
    )
