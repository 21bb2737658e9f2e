"""Superpose chains: the rotation and translation that move one onto another, how well they fit then, and which residues lie together."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import run_offsets
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.structure_layouts import EFFORTS, ChainPairs, FoundSuperpositions

__all__ = [
    "Effort",
    "Superpositions",
    "collect_superpositions",
    "pairs_with_query",
    "superpose",
    "superpose_many",
    "superposed",
    "tm_scores",
]

Effort = Literal["quick", "thorough"]

Rotation = NDArray[np.float64]
Translation = NDArray[np.float64]


@dataclass(frozen=True)
class Superpositions:
    """Targets superposed onto one query; x' = R x + t moves a target onto it.

    Attributes
    ----------
    rotation
        (n, 3, 3) float64.
    translation
        (n, 3) float64, Å.
    tm_score_query, tm_score_target
        (n,) float64, TM-scores normalised by the lengths of query and target, each with its own best superposition.
    rmsd
        (n,) float64, Å, of the aligned pairs under this transformation, the best for the shorter chain's TM-score.
    aligned_length
        (n,) int64, number of aligned pairs.
    pairs
        (k, 2) int32, aligned residues (row of the query, row of the target), flat.
    pair_offsets
        (n + 1,) int64.
    """

    rotation: Rotation
    translation: Translation
    tm_score_query: NDArray[np.float64]
    tm_score_target: NDArray[np.float64]
    rmsd: NDArray[np.float64]
    aligned_length: NDArray[np.int64]
    pairs: NDArray[np.int32]
    pair_offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rmsd)

    def moved(self, i: int, position: NDArray[np.floating]) -> NDArray[np.float64]:
        """Transform coordinates (r, 3) in the frame of target `i` onto the query."""
        moved: NDArray[np.float64] = position @ self.rotation[i].T + self.translation[i]
        return moved


def superpose(fixed: NDArray[np.floating], mobile: NDArray[np.floating]) -> tuple[Rotation, Translation, float]:
    """Superpose pairs by least squares (Kabsch) without reflection.

    Parameters
    ----------
    fixed, mobile
        (n, 3) coordinates of the pairs in Å.

    Returns
    -------
    rotation, translation
        (3, 3) and (3,), so that `mobile @ rotation.T + translation` fits `fixed`.
    rmsd
        Å.

    Examples
    --------
    >>> fixed = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> rotation, translation, rmsd = superpose(fixed, fixed[:, [1, 0, 2]] * [1, -1, 1] + 5.0)
    >>> bool(rmsd < 1e-9)
    True
    """
    move, rmsd = kernels.cpu.least_squares.least_squares(_columns(mobile), _columns(fixed))
    return move[:9].reshape(3, 3), move[9:].copy(), float(rmsd)


def tm_scores(
    query_position: NDArray[np.floating], target_position: NDArray[np.floating], pairs: NDArray[np.integer]
) -> tuple[float, float]:
    """Return the TM-scores of an alignment, normalised by query and by target length, each with its own best superposition.

    Parameters
    ----------
    query_position, target_position : (m, 3) and (n, 3) float64
        Cα of the whole chains, Å.
    pairs : (k, 2)
        Rows of query and target.
    """
    x, y = _columns(target_position[pairs[:, 1]]), _columns(query_position[pairs[:, 0]])
    by_query, _ = kernels.cpu.pair_superposition.tm_score_of_pairs(x, y, len(query_position))
    by_target, _ = kernels.cpu.pair_superposition.tm_score_of_pairs(x, y, len(target_position))
    return float(by_query), float(by_target)


def superpose_many(
    query_position: NDArray[np.floating],
    target_position: NDArray[np.floating],
    target_offsets: NDArray[np.int64],
    start_pairs: NDArray[np.integer],
    start_offsets: NDArray[np.int64],
    *,
    threads: int | None = None,
    effort: Effort = "thorough",
    progress: Progress | None = None,
) -> Superpositions:
    """Align and superpose each target with the query for the highest TM-score found.

    Starts are the given alignments and those suggested by Cα positions (`proteoscope.kernels.cpu.superposition`). ``"quick"`` suits
    near-optimal alignments and takes half the time; ``"thorough"`` finds what TM-align finds without a start.

    Parameters
    ----------
    query_position
        (m, 3), Cα in Å.
    target_position, target_offsets
        (r, 3) of all targets, and (n + 1,) their starts and ends.
    start_pairs, start_offsets
        (k, 2) pairs (row of the query, row within the target), ascending in both, flat; and (n + 1,).
    threads
        Number of threads, by default one per CPU; each pair of chains uses one.
    progress
        Advances by 1 per target.

    Raises
    ------
    ValueError
        Coordinates are not finite, a chain is empty, or pairs are not ascending within the chains.
    Cancelled
        If the user cancels.
    """
    pairs = pairs_with_query(query_position, target_position, target_offsets, start_pairs, start_offsets)
    return collect_superpositions(superposed(pairs, threads or available_threads(), effort, progress or Progress()))


def superposed(pairs: ChainPairs, threads: int, effort: Effort, progress: Progress) -> FoundSuperpositions:
    """Superpose pairs of chains on the CPU. See `superpose_many`."""
    result, done = FoundSuperpositions.empty(pairs), 0
    with closing(kernels.cpu.superposition.ChainSuperposition(Processor(threads), EFFORTS[effort]).superpose(pairs, result)) as ends:
        for end in ends:
            progress.advance(end - done)
            done = end
    return result


def pairs_with_query(
    query_position: NDArray[np.floating],
    target_position: NDArray[np.floating],
    target_offsets: NDArray[np.int64],
    start_pairs: NDArray[np.integer],
    start_offsets: NDArray[np.int64],
) -> ChainPairs:
    """Return the pairs of each target with the query. Parameters and errors are as in `superpose_many`."""
    query, targets = np.asarray(query_position, np.float64), np.asarray(target_position, np.float64)
    _check(len(query), targets, target_offsets, start_pairs, start_offsets)
    if not np.isfinite(query).all():
        raise ValueError("the query has coordinates that are no numbers")
    n = len(target_offsets) - 1
    used = targets[target_offsets[0] : target_offsets[-1]]
    offsets = np.concatenate([np.zeros(1, np.int64), target_offsets - target_offsets[0] + len(query)])
    return ChainPairs(
        np.concatenate([query, used]),
        offsets,
        np.zeros(n, np.int64),
        np.arange(1, n + 1),
        np.ascontiguousarray(start_pairs, np.int32),
        np.asarray(start_offsets, np.int64),
    )


def collect_superpositions(superpositions: FoundSuperpositions, first: int = 0, last: int | None = None) -> Superpositions:
    """Return the results of pairs `first:last`, all by default."""
    some = slice(first, last)
    counts, scores = superpositions.counts[some], superpositions.scores[some]
    retained = np.repeat(superpositions.places[:-1][some] - run_offsets(counts)[:-1], counts) + np.arange(counts.sum())
    return Superpositions(
        superpositions.moves[some, :9].reshape(-1, 3, 3),
        superpositions.moves[some, 9:],
        scores[:, 0],
        scores[:, 1],
        superpositions.rmsd[some],
        counts,
        superpositions.pairs[retained],
        run_offsets(counts),
    )


def _check(n_query: int, position: NDArray, offsets: NDArray, pairs: NDArray, pair_offsets: NDArray) -> None:
    """Raise ValueError for input that would make the kernel read out of bounds or use invalid numbers."""
    lengths, counts = np.diff(offsets), np.diff(pair_offsets)
    if not n_query or (lengths < 1).any() or len(lengths) != len(counts) or (counts < 0).any():
        raise ValueError("a chain is empty, or there are not as many alignments as targets")
    if len(lengths) and (offsets[0] < 0 or offsets[-1] > len(position) or pair_offsets[0] < 0 or pair_offsets[-1] > len(pairs)):
        raise ValueError("offsets exceed the concatenated values")
    for i in range(len(lengths)):
        rows = position[offsets[i] : offsets[i + 1]]
        some = pairs[pair_offsets[i] : pair_offsets[i + 1]]
        if not np.isfinite(rows).all():
            raise ValueError(f"target {i} has coordinates that are no numbers")
        if len(some) and (
            some.min() < 0 or some[-1, 0] >= n_query or some[-1, 1] >= lengths[i] or (len(some) > 1 and (np.diff(some, axis=0) <= 0).any())
        ):
            raise ValueError(f"the pairs that target {i} begins with do not ascend within both chains")


def _columns(position: NDArray[np.floating]) -> NDArray[np.float64]:
    """(3, n) float64, as the kernels take coordinates."""
    return np.ascontiguousarray(np.asarray(position, np.float64).T)
