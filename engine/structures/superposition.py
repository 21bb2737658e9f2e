"""Superposition of chains: rotation and translation that move one chain onto another, quality of the fit, and aligned residues."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.structure_layouts import FULL_STEPS, ChainPairs, FoundSuperpositions

__all__ = ["Superpositions", "collect_superpositions", "pairs_with_query", "superpose", "superpose_many", "superposed", "tm_scores"]

Rotation = NDArray[np.float64]
Translation = NDArray[np.float64]


@dataclass(frozen=True)
class Superpositions:
    """Superpositions of n targets on one query; x' = R x + t moves a target onto the query.

    Attributes
    ----------
    rotation : ndarray of float64, shape (n, 3, 3)
        Rotation R of each target.
    translation : ndarray of float64, shape (n, 3)
        Translation t of each target in Å.
    tm_score_query, tm_score_target : ndarray of float64, shape (n,)
        TM-scores normalised by the length of the query and of the target; each is that of the superposition with the highest such score.
    rmsd : ndarray of float64, shape (n,)
        RMSD of the aligned pairs in Å, for R and t, which give the highest TM-score normalised by the shorter chain.
    aligned_length : ndarray of int64, shape (n,)
        Number of aligned pairs.
    pairs : ndarray of int32, shape (k, 2)
        Aligned residues of query and target, from 0, for all targets.
    pair_offsets : ndarray of int64, shape (n + 1,)
        Pairs of target i are ``pair_offsets[i]:pair_offsets[i + 1]``.
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
        """Return coordinates of target `i` after its transformation onto the query.

        Parameters
        ----------
        i : int
            Index of the target.
        position : ndarray, shape (r, 3)
            Coordinates in Å.

        Returns
        -------
        ndarray of float64, shape (r, 3)
            Transformed coordinates.
        """
        moved: NDArray[np.float64] = position @ self.rotation[i].T + self.translation[i]
        return moved


def superpose(fixed: NDArray[np.floating], mobile: NDArray[np.floating]) -> tuple[Rotation, Translation, float]:
    """Superpose pairs of points by least squares (Kabsch) without reflection.

    Parameters
    ----------
    fixed, mobile : ndarray, shape (n, 3)
        Coordinates of the pairs in Å.

    Returns
    -------
    rotation, translation : ndarray of float64, shape (3, 3) and (3,)
        Transformation for which `mobile @ rotation.T + translation` fits `fixed`.
    rmsd : float
        RMSD in Å.

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
    """Return the TM-scores of an alignment, normalised by query and by target length; each is maximised by a separate superposition.

    Parameters
    ----------
    query_position, target_position : ndarray of float64, shape (m, 3) and (n, 3)
        Cα coordinates of the whole chains in Å.
    pairs : ndarray of int, shape (k, 2)
        Aligned residues of query and target, from 0.
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
    progress: Progress | None = None,
) -> Superpositions:
    """Align and superpose each target with the query, such that the TM-score is as high as possible.

    The search starts from the given alignments and from alignments suggested by Cα coordinates (`proteoscope.kernels.cpu.superposition`).

    Parameters
    ----------
    query_position : ndarray, shape (m, 3)
        Cα coordinates of the query in Å.
    target_position : ndarray, shape (r, 3)
        Cα coordinates of all targets in Å.
    target_offsets : ndarray of int64, shape (n + 1,)
        Residues of target i are ``target_offsets[i]:target_offsets[i + 1]``.
    start_pairs : ndarray of int, shape (k, 2)
        Initially aligned residues of the query and of each target, from 0, ascending in both chains, one target after another.
    start_offsets : ndarray of int64, shape (n + 1,)
        Pairs of target i are ``start_offsets[i]:start_offsets[i + 1]``.
    threads : int, optional
        Number of threads, by default one per CPU core; each pair of chains uses one thread.
    progress : Progress, optional
        Progress, which advances by one step per target and is checked for cancellation.

    Returns
    -------
    Superpositions
        Superpositions of the n targets.

    Raises
    ------
    ValueError
        If coordinates are not finite, a chain is empty, or pairs do not ascend within the chains.
    Cancelled
        If the user cancels.
    """
    pairs = pairs_with_query(query_position, target_position, target_offsets, start_pairs, start_offsets)
    return collect_superpositions(superposed(pairs, threads or available_threads(), progress or Progress()))


def superposed(pairs: ChainPairs, threads: int, progress: Progress) -> FoundSuperpositions:
    """Superpose pairs of chains on the CPU (see `superpose_many`).

    Parameters
    ----------
    pairs : ChainPairs
        Pairs of chains.
    threads : int
        Number of CPU threads.
    progress : Progress
        Progress, which advances by one step per pair and is checked for cancellation.
    """
    result, done = FoundSuperpositions.empty(pairs), 0
    with closing(kernels.cpu.superposition.ChainSuperposition(Processor(threads), FULL_STEPS).superpose(pairs, result)) as ends:
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
    """Return `ChainPairs` in which each target is paired with the query (see `superpose_many` for parameters and errors)."""
    query, targets = np.asarray(query_position, np.float64), np.asarray(target_position, np.float64)
    _check(len(query), targets, target_offsets, start_pairs, start_offsets)
    if not np.isfinite(query).all():
        raise ValueError("the query has coordinates that are not numbers")
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
    """Return the superpositions of the consecutive pairs `first:last`.

    Parameters
    ----------
    superpositions : FoundSuperpositions
        Results of all pairs.
    first : int
        Index of the first pair.
    last : int, optional
        End index (exclusive); by default the number of pairs.
    """
    some = slice(first, last)
    counts, scores = superpositions.counts[some], superpositions.scores[some]
    retained = np.repeat(superpositions.places[:-1][some] - segment_offsets(counts)[:-1], counts) + np.arange(counts.sum())
    return Superpositions(
        superpositions.moves[some, :9].reshape(-1, 3, 3),
        superpositions.moves[some, 9:],
        scores[:, 0],
        scores[:, 1],
        superpositions.rmsd[some],
        counts,
        superpositions.pairs[retained],
        segment_offsets(counts),
    )


def _check(
    n_query: int, position: NDArray[np.floating], offsets: NDArray[np.int64], pairs: NDArray[np.integer], pair_offsets: NDArray[np.int64]
) -> None:
    """Raise `ValueError` if the kernel would read out of bounds or compute with invalid numbers."""
    lengths, counts = np.diff(offsets), np.diff(pair_offsets)
    if not n_query or (lengths < 1).any() or len(lengths) != len(counts) or (counts < 0).any():
        raise ValueError("a chain is empty, or there are not as many alignments as targets")
    if len(lengths) and (offsets[0] < 0 or offsets[-1] > len(position) or pair_offsets[0] < 0 or pair_offsets[-1] > len(pairs)):
        raise ValueError("offsets exceed the concatenated values")
    for i in range(len(lengths)):
        rows = position[offsets[i] : offsets[i + 1]]
        some = pairs[pair_offsets[i] : pair_offsets[i + 1]]
        if not np.isfinite(rows).all():
            raise ValueError(f"target {i} has coordinates that are not numbers")
        if len(some) and (
            some.min() < 0 or some[-1, 0] >= n_query or some[-1, 1] >= lengths[i] or (len(some) > 1 and (np.diff(some, axis=0) <= 0).any())
        ):
            raise ValueError(f"the initial pairs of target {i} do not ascend in both chains")


def _columns(position: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return coordinates in the layout of the kernels, (3, n)."""
    return np.ascontiguousarray(np.asarray(position, np.float64).T)
