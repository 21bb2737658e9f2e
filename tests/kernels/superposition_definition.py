"""The TM-score search of given pairs (Zhang & Skolnick, Proteins 57, 2004, 702-710) in plain NumPy, and chains to search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.shim.chain_inputs import random_chain

__all__ = ["bent_chains", "tm_score"]

Coordinates = NDArray[np.float64]
ROUNDS, HOPELESS_ROUNDS, HOPELESS = 20, 2, 0.9  # TM-score makes 20 iterations
_MAXIMUM_SEGMENTS = 16  # number of segments that run together


def bent_chains(seed: int) -> tuple[Coordinates, Coordinates]:
    """Return a chain (n, 3) and the same chain bent more and more along its length, so that a search takes many rounds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 500))
    chain = random_chain(rng, n)
    steps, angle = np.diff(chain, axis=0), (np.arange(n) * rng.choice([0.01, 0.02, 0.03, 0.05]) * rng.normal())[1:]
    cosine, sine = np.cos(angle), np.sin(angle)
    turned = np.stack([steps[:, 0] * cosine - steps[:, 1] * sine, steps[:, 0] * sine + steps[:, 1] * cosine, steps[:, 2]], axis=1)
    return chain, np.cumsum(np.vstack([np.zeros(3), turned]), axis=0) + rng.normal(size=(n, 3)) * 0.5


def tm_score(x: Coordinates, y: Coordinates) -> float:
    """Return the TM-score of n pairs, normalised by n; the search is repeated with the pairs that are near after the first search."""
    n = len(x)
    scale = 1.24 * np.cbrt(n - 15) - 1.8
    near = min(8.0, max(4.5, scale))
    _, (rotation, translation) = _search(x, y, scale + 0.8, near)
    retained = np.linalg.norm(x @ rotation + translation - y, axis=1) <= 1.5 * n**0.3 + 3.5
    return _search(x[retained], y[retained], scale, near)[0] / n


def _superposition(x: Coordinates, y: Coordinates) -> tuple[Coordinates, Coordinates]:
    """Return Kabsch's rotation and translation of x onto y."""
    u, _, vt = np.linalg.svd((x - x.mean(axis=0)).T @ (y - y.mean(axis=0)))
    rotation = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt
    return rotation, y.mean(axis=0) - x.mean(axis=0) @ rotation


def _search(x: Coordinates, y: Coordinates, scale: float, near: float) -> tuple[float, tuple[Coordinates, Coordinates]]:
    """Return the greatest sum of scores and its superposition, of both ends of each length; all segments run through a round together."""
    n, number = len(x), np.arange(len(x))
    lengths = dict.fromkeys([*(max(n >> halving, 4) for halving in range(5)), 4])
    parts = [(start, length) for length in lengths for start in dict.fromkeys([0, n - length])]
    running, met = [(number >= start) & (number < start + length) for start, length in parts], set[bytes]()
    assert len(running) <= _MAXIMUM_SEGMENTS
    best, best_move, turn = -1.0, None, 0
    while running:
        selections, running, turn = running, [], turn + 1
        for selection in selections:
            move = _superposition(x[selection], y[selection])
            distance = np.linalg.norm(x @ move[0] + move[1] - y, axis=1)
            total = float((1.0 / (1.0 + (distance / scale) ** 2)).sum())
            if total > best:
                best, best_move = total, move
            limit = near - 1.0 if turn == 1 else near + 1.0
            while (distance < limit).sum() < 3:
                limit += 0.5
            chosen = distance < limit
            is_hopeless = turn >= HOPELESS_ROUNDS and total < HOPELESS * best
            if turn <= ROUNDS and not is_hopeless and chosen.tobytes() not in met:
                met.add(chosen.tobytes())
                running.append(chosen)
    assert best_move is not None
    return best, best_move
