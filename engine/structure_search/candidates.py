"""Candidates of queries: the database chains with the best scores, which are superposed on the query.

::

    query -> scores of all chains (phases 1 and 2) -> candidates -> superpositions
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import ChainRow, segment_offsets, take_segments
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import Scores, score_query
from proteoscope.engine.structure_search.structures import DescribedChains
from proteoscope.engine.structure_search.superposing import superpose_pairs
from proteoscope.engine.structures.rewards import GapCosts, SensitiveTables, Weights, published_rewards, sensitive_rewards, sensitive_tables
from proteoscope.engine.structures.superposition import (
    Superpositions,
    collect_superpositions,
    superpose,
    superposed,
    tm_scores,
)
from proteoscope.kernels.structure_layouts import ChainPairs, Rewards

__all__ = [
    "FEWEST_SUPERPOSED",
    "Candidates",
    "Comparison",
    "QueryScores",
    "best_candidates",
    "compute_rewards",
    "query_batches",
    "score_chains",
    "superpose_candidates",
    "superpose_targets",
    "z_scores",
]

_ROUNDS = 5
_FAR = 2.0  # standard deviations above the line; chains with higher scores count as related
_TO_DEVIATION = 1.4826  # standard deviation relative to the median absolute deviation, for a normal distribution
_FEWEST = 10  # minimum number of chains to fit a line


def z_scores(scores: NDArray[np.floating], lengths: NDArray[np.integer], is_fitted: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return z-scores: the difference of each score from the mean of unrelated chains of the same length, in standard deviations.

    Nearly all chains are unrelated to a query. The mean is a linear function of the logarithm of the length, fitted by least squares; the
    fit is repeated without the chains whose scores are far above the mean. The standard deviation is estimated from the median absolute
    deviation.

    Parameters
    ----------
    scores : ndarray, shape (n,)
        Scores of one query.
    lengths : ndarray of int, shape (n,)
        Length of each chain in residues.
    is_fitted : ndarray of bool, shape (n,), optional
        True for chains that are used in the fit; by default all.

    Returns
    -------
    ndarray of float64, shape (n,)
        z-scores; 0 if there are too few chains.
    """
    is_fitted = np.ones(len(scores), np.bool_) if is_fitted is None else is_fitted
    observed, logarithms = np.asarray(scores, np.float64)[is_fitted], np.log(np.maximum(lengths, 1))
    if len(observed) < _FEWEST:
        return np.zeros(len(scores))
    design = np.stack([np.ones(len(observed)), logarithms[is_fitted]], axis=1)
    near, line, deviation = np.ones(len(observed), np.bool_), np.zeros(2), 1.0
    for _ in range(_ROUNDS):
        line = np.linalg.lstsq(design[near], observed[near], rcond=None)[0]
        left = observed - design @ line
        deviation = max(1e-6, _TO_DEVIATION * float(np.median(np.abs(left - np.median(left)))))
        near = left < _FAR * deviation
        if near.sum() < _FEWEST:
            break
    standardised: NDArray[np.float64] = (np.asarray(scores, np.float64) - line[0] - line[1] * logarithms) / deviation
    return standardised


FEWEST_SUPERPOSED = 100
"""Minimum number of candidates per query that the sensitive mode superposes before it ranks them."""

_QUERIES_TOGETHER = 16  # number of queries whose candidates a GPU superposes together


class Comparison(NamedTuple):
    """Queries, database and sessions of a search.

    Attributes
    ----------
    queries, database : DescribedChains
        Chains with descriptors.
    parameters : StructureSearchParameters
        Parameters of the search.
    session : Session
        Session that scores chains.
    resources : Resources
        Devices and threads of the search.
    superposing : Session or None
        Session that superposes the candidates of the sensitive mode; None to superpose on CPU threads.
    tables : SensitiveTables or None
        Scoring tables of the sensitive mode; None for those delivered with the program.
    is_all : bool
        True if the queries are the database, and each is compared only with the chains after it in the order of the files.
    """

    queries: DescribedChains
    database: DescribedChains
    parameters: StructureSearchParameters
    session: Session
    resources: Resources
    superposing: Session | None = None
    tables: SensitiveTables | None = None
    is_all: bool = False

    @property
    def is_sensitive(self) -> bool:
        """True in the sensitive mode."""
        return self.parameters.mode == "sensitive"

    @property
    def n_candidates(self) -> int:
        """Maximum number of candidates per query."""
        return max(self.parameters.hits_per_query, FEWEST_SUPERPOSED if self.is_sensitive else 0)


class QueryScores(NamedTuple):
    """Scores of all chains with a query.

    Attributes
    ----------
    chains : Scores
        Scores of all chains in both phases, as scaled integers.
    rewards : Rewards
        Rewards (scores of aligned residue pairs) of the query, as scaled integers.
    unit : float
        Factor by which scores were multiplied to get integers.
    self_score : int
        Phase 1 score of the query with itself.
    """

    chains: Scores
    rewards: Rewards
    unit: float
    self_score: int


class Candidates(NamedTuple):
    """Candidates of a query, best first.

    Attributes
    ----------
    query : ChainRow
        Index of the query.
    scores : QueryScores
        Scores of all chains.
    z : ndarray, shape (n,)
        z-scores of all database chains.
    targets : ndarray of int64, shape (c,)
        Indices of the candidates in the database.
    """

    query: ChainRow
    scores: QueryScores
    z: NDArray[np.float64]
    targets: NDArray[np.int64]


def query_batches(queries: DescribedChains, parameters: StructureSearchParameters, resources: Resources) -> list[list[ChainRow]]:
    """Return batches of queries, in the order of the files; the candidates of all queries of a batch are superposed together."""
    order: list[ChainRow] = np.argsort(queries.file_order).tolist()
    # A GPU superposes the candidates of several queries in about the time of one query.
    size = _QUERIES_TOGETHER if parameters.mode == "sensitive" and resources.has_gpus else 1
    return [order[first : first + size] for first in range(0, len(order), size)]


def compute_rewards(comparison: Comparison, query: ChainRow) -> tuple[Rewards, float]:
    """Return the rewards of a query as scaled integers, and the scale factor."""
    parameters, chain = comparison.parameters, comparison.queries.arrays.chain(query)
    weights, gaps = (
        Weights(*parameters.weights),
        GapCosts(parameters.gap_first, parameters.gap_next, parameters.element_gap_first, parameters.element_gap_next),
    )
    if not comparison.is_sensitive:
        return published_rewards(chain, weights, gaps)
    return sensitive_rewards(chain, comparison.tables or sensitive_tables(), weights, gaps)


def score_chains(comparison: Comparison, query: ChainRow) -> QueryScores:
    """Return the scores of all chains with a query, in both phases.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    chain = comparison.queries.arrays.chain(query)
    rewards, unit = compute_rewards(comparison, query)
    elements, gaps = (chain.element_type, chain.element_length), (rewards.element_gap_first, rewards.element_gap_next)
    self_score = int(kernels.cpu.structure_pairs.element_score(*elements, *elements, *gaps))
    threshold = comparison.parameters.qualification_threshold
    least = max(int(np.ceil(threshold * self_score)), 1) if threshold > 0 else 0
    return QueryScores(score_query(comparison.session, chain, rewards, least), rewards, unit, self_score)


def best_candidates(comparison: Comparison, query: ChainRow) -> Candidates:
    """Return the database chains whose scores with a query are the best.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    scores, database = score_chains(comparison, query), comparison.database
    residues = scores.chains.residues
    z = z_scores(residues / scores.unit, database.chains.lengths, residues >= 0)
    aligned = np.flatnonzero(residues > 0)
    if comparison.is_all:
        aligned = aligned[database.file_order[aligned] > comparison.queries.file_order[query]]
    ranks = z if comparison.is_sensitive else residues / scores.unit
    best = aligned[np.lexsort((database.file_order[aligned], -ranks[aligned]))][: comparison.n_candidates]
    return Candidates(query, scores, z, best)


def superpose_candidates(comparison: Comparison, candidates: Sequence[Candidates]) -> list[Superpositions]:
    """Superpose the candidates of several queries on their queries (see `superpose_targets`)."""
    return superpose_targets(comparison, [(some.query, some.targets, some.scores.rewards) for some in candidates])


def superpose_targets(comparison: Comparison, targets: Sequence[tuple[ChainRow, NDArray[np.int64], Rewards]]) -> list[Superpositions]:
    """Superpose database chains on queries: by structure in the sensitive mode, by aligned descriptors in the published mode.

    Parameters
    ----------
    comparison : Comparison
        Queries, database and sessions.
    targets : sequence of tuple
        For each query: index of the query, indices of its targets, and its rewards.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    if comparison.is_sensitive:
        return _superpose_by_structure(comparison, [(query, some) for query, some, _ in targets])
    starts = _alignments(comparison, targets)
    bounds = np.cumsum([0, *(len(some) for _, some, _ in targets)]).tolist()
    return [
        _fit_by_descriptors(comparison, query, some, starts[first:last])
        for (query, some, _), (first, last) in zip(targets, pairwise(bounds), strict=True)
    ]


def _alignments(comparison: Comparison, targets: Sequence[tuple[ChainRow, NDArray[np.int64], Rewards]]) -> list[NDArray[np.int32]]:
    """Align each query with its targets by descriptors; return the aligned residues of each pair: all targets of the first query first."""
    resources, chains = comparison.resources, comparison.database.arrays
    pairs = [
        (query, target, rewards)
        for query, some, rewards in ((comparison.queries.arrays.chain(i), some, rewards) for i, some, rewards in targets)
        for target in some.tolist()
    ]
    resources.progress.stage("Aligning candidates", len(pairs))
    return run_on_threads(
        lambda pair: kernels.cpu.structure_pairs.align_pair(pair[0], chains.chain(pair[1]), pair[2])[1],
        pairs,
        resources.threads,
        resources.progress,
    )


def _superpose_by_structure(comparison: Comparison, targets: Sequence[tuple[ChainRow, NDArray[np.int64]]]) -> list[Superpositions]:
    """Superpose targets, aligned by their structure alone, on their queries."""
    queries, chains, progress = comparison.queries.chains, comparison.database.chains, comparison.resources.progress
    query_rows = np.array([query for query, _ in targets], np.int64)
    used, which = np.unique(np.concatenate([np.empty(0, np.int64), *(some for _, some in targets)]), return_inverse=True)
    query_positions, query_offsets = take_segments(queries.position, queries.offsets, query_rows)
    positions, offsets = take_segments(chains.position, chains.offsets, used)
    sizes = [len(some) for _, some in targets]
    all_positions = np.concatenate([query_positions, positions]).astype(np.float64)
    if not np.isfinite(all_positions).all():  # the kernels compute indices from coordinates
        raise ValueError("a chain has coordinates that are not numbers")
    pairs = ChainPairs(
        all_positions,
        np.concatenate([query_offsets, query_offsets[-1] + offsets[1:]]),
        np.repeat(np.arange(len(targets)), sizes),
        len(targets) + which,
        np.empty((0, 2), np.int32),
        np.zeros(len(which) + 1, np.int64),
    )
    progress.stage("Superposing candidates", len(which))
    if comparison.superposing is not None:
        result = superpose_pairs(comparison.superposing, pairs)
    else:
        result = superposed(pairs, comparison.resources.threads, progress)
    return [collect_superpositions(result, first, last) for first, last in pairwise(np.cumsum([0, *sizes]).tolist())]


def _fit_by_descriptors(
    comparison: Comparison, query: ChainRow, targets: NDArray[np.int64], starts: list[NDArray[np.int32]]
) -> Superpositions:
    """Superpose targets on a query by a least-squares fit of aligned residues; `starts` contains the aligned residues of each target."""
    queries, chains, resources = comparison.queries.chains, comparison.database.chains, comparison.resources
    position, rows = queries.position[queries.rows(query)], [ChainRow(target) for target in targets.tolist()]
    rotation, translation = np.zeros((len(targets), 3, 3)), np.zeros((len(targets), 3))
    resources.progress.stage("Superposing hits", len(targets))

    def fit(k: int) -> tuple[float, float, float]:
        target, pairs = chains.position[chains.rows(rows[k])], starts[k]
        rotation[k], translation[k], rmsd = superpose(position[pairs[:, 0]], target[pairs[:, 1]])
        return rmsd, *tm_scores(position, target, pairs)

    figures = np.array(run_on_threads(fit, range(len(targets)), resources.threads, resources.progress)).reshape(-1, 3)
    lengths = np.array([len(start) for start in starts], np.int64)
    flat = np.concatenate([np.empty((0, 2), np.int32), *starts])
    return Superpositions(rotation, translation, figures[:, 1], figures[:, 2], figures[:, 0], lengths, flat, segment_offsets(lengths))
