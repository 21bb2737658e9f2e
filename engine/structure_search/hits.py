"""Hits of queries: the best superposed candidates, in the order of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, segment_offsets, take_segments
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.separated import printed, rounded, rounded_to_digits
from proteoscope.engine.structure_search.calibration import chance_features, ordered_shares, shipped_calibration
from proteoscope.engine.structure_search.candidates import Candidates, Comparison, best_candidates, superpose_candidates
from proteoscope.engine.structure_search.structures import DescribedChains
from proteoscope.engine.structure_search.tables import HITS
from proteoscope.engine.structures.database import LazySequence
from proteoscope.engine.structures.outputs import AlignedChains, cigars, identities
from proteoscope.engine.structures.superposition import Superpositions

__all__ = ["StructureQueryHits", "query_hits", "relatedness", "reported_hits"]

_OF_Z_SCORE = 0.02
_E_VALUE_DIGITS = 4
_ROWS = 1 << 16  # maximum number of hits of a table of several queries


@dataclass(frozen=True)
class StructureQueryHits:
    """Query with its hits, best first.

    Attributes
    ----------
    query : str
        Name of the query.
    index : int
        Index of the query in the order of the files.
    description, sequence, states : str
        Description, sequence and secondary structure of the query.
    n_aligned : int
        Number of database chains that were aligned in phase 2 (all residues).
    hits : Table
        Rows of the table `proteoscope.engine.structure_search.tables.HITS`.
    aligned : sequence of AlignedChains
        Superposition of each hit.
    scores, z_scores : ndarray, shape (n,)
        Scores of all database chains, in the order of length; `scores` are negative for chains that phase 1 rejected.
    """

    query: str
    index: int
    description: str
    sequence: str
    states: str
    n_aligned: int
    hits: pa.Table
    aligned: Sequence[AlignedChains]
    scores: NDArray[np.float64]
    z_scores: NDArray[np.float64]


def relatedness(z_score: NDArray[np.float64], tm_score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the value that ranks candidates in the sensitive mode: the mean of both TM-scores plus 0.02 times the z-score.

    Among chains with equally similar structures, those whose descriptors and residues agree better with the query have a higher z-score.

    Parameters
    ----------
    z_score : ndarray, shape (n,)
        z-scores.
    tm_score : ndarray, shape (n,)
        Means of both TM-scores.
    """
    return tm_score + _OF_Z_SCORE * z_score


def query_hits(comparison: Comparison, queries: Sequence[ChainRow]) -> list[StructureQueryHits]:
    """Return the hits of the given queries, whose candidates are superposed together.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    candidates = [best_candidates(comparison, query) for query in queries]
    return list(reported_hits(comparison, candidates, superpose_candidates(comparison, candidates)))


def reported_hits(
    comparison: Comparison, candidates: Sequence[Candidates], aligned: Sequence[Superpositions]
) -> Iterator[StructureQueryHits]:
    """Yield each query with its hits, which are selected from its superposed candidates; columns of all queries are computed together.

    Parameters
    ----------
    comparison : Comparison
        Queries, database and sessions.
    candidates : sequence of Candidates
        Candidates of each query.
    aligned : sequence of Superpositions
        Superposition of each candidate of each query.
    """
    orders = [_order(comparison, some, both) for some, both in zip(candidates, aligned, strict=True)]
    begun, n_rows = 0, 0
    for number, order in enumerate(orders):
        if n_rows and n_rows + len(order) > _ROWS:
            yield from _query_hits(comparison, candidates[begun:number], aligned[begun:number], orders[begun:number])
            begun, n_rows = number, 0
        n_rows += len(order)
    yield from _query_hits(comparison, candidates[begun:], aligned[begun:], orders[begun:])


def _order(comparison: Comparison, candidates: Candidates, aligned: Superpositions) -> NDArray[np.int64]:
    """Return the indices of the reported candidates of a query, best first."""
    order = np.arange(len(candidates.targets))
    if comparison.is_sensitive:
        tm_score = (aligned.tm_score_query + aligned.tm_score_target) / 2
        rank = relatedness(candidates.z[candidates.targets], tm_score)
        order = np.lexsort((comparison.database.file_order[candidates.targets], -rank))
    return order[: comparison.parameters.hits_per_query]


def _query_hits(
    comparison: Comparison, candidates: Sequence[Candidates], aligned: Sequence[Superpositions], orders: Sequence[NDArray[np.int64]]
) -> Iterator[StructureQueryHits]:
    """Yield the hits of queries from one table."""
    queries, offsets = comparison.queries.chains, segment_offsets(np.array([len(order) for order in orders], np.int64))
    hits = _table(comparison, _Hits.from_candidates(comparison, candidates, aligned, orders), offsets)
    for some, both, order, (first, last) in zip(candidates, aligned, orders, pairwise(offsets.tolist()), strict=True):
        scores = some.scores
        yield StructureQueryHits(
            queries.names[some.query],
            int(comparison.queries.file_order[some.query]),
            queries.descriptions[some.query],
            queries.sequence(some.query),
            queries.states(some.query),
            int((scores.chains.residues >= 0).sum()),
            hits.slice(first, last - first),
            _aligned_chains(comparison, some, both, order),
            scores.chains.residues / scores.unit,
            some.z,
        )


def _aligned_chains(
    comparison: Comparison, candidates: Candidates, aligned: Superpositions, order: NDArray[np.int64]
) -> Sequence[AlignedChains]:
    """Return the superpositions of the hits of a query; they are created on first access, since most searches use none of them."""
    queries, chains, targets = comparison.queries.chains, comparison.database.chains, candidates.targets[order]
    return LazySequence(
        len(order),
        lambda: tuple(
            AlignedChains(queries, candidates.query, chains, target, aligned, k)
            for k, target in zip(order.tolist(), targets.tolist(), strict=True)
        ),
    )


class _Hits(NamedTuple):
    """Columns of the candidates (c) of several queries, and of their hits (n), best first for each query.

    Attributes
    ----------
    query, target : ndarray of int64, shape (c,)
        Indices of the chains in the queries and in the database.
    pairs, n_pairs : ndarray of int32, shape (k, 2), and of int64, shape (c,)
        Aligned residues of all candidates, one candidate after another, and the number of aligned residues of each candidate.
    candidate : ndarray of int64, shape (n,)
        Index of each hit among the candidates.
    score, z_score, phase1_ratio : ndarray, shape (n,)
        Scores, z-scores, and scores of phase 1 relative to the scores of the queries with themselves.
    rotation, translation : ndarray, shape (n, 9) and (n, 3)
        Superpositions.
    tm_score_query, tm_score_target, rmsd : ndarray, shape (n,)
        Quality of the superpositions.
    """

    query: NDArray[np.int64]
    target: NDArray[np.int64]
    pairs: NDArray[np.int32]
    n_pairs: NDArray[np.int64]
    candidate: NDArray[np.int64]
    score: NDArray[np.float64]
    z_score: NDArray[np.float64]
    phase1_ratio: NDArray[np.float64]
    rotation: NDArray[np.float64]
    translation: NDArray[np.float64]
    tm_score_query: NDArray[np.float64]
    tm_score_target: NDArray[np.float64]
    rmsd: NDArray[np.float64]

    @classmethod
    def from_candidates(
        cls,
        comparison: Comparison,
        candidates: Sequence[Candidates],
        aligned: Sequence[Superpositions],
        orders: Sequence[NDArray[np.int64]],
    ) -> _Hits:
        """Return the hits of several queries; `orders` has, for each query, the indices of its hits among its candidates, best first."""
        has_phase1 = comparison.parameters.qualification_threshold > 0
        columns, n_candidates = list[tuple[NDArray[Any], ...]](), 0
        for some, both, order in zip(candidates, aligned, orders, strict=True):
            targets, scores = some.targets[order], some.scores
            ratio = scores.chains.elements[targets] / max(1, scores.self_score) if has_phase1 else np.full(len(targets), np.nan)
            columns.append(
                (
                    np.full(len(some.targets), some.query),
                    some.targets,
                    both.pairs,
                    both.aligned_length,
                    n_candidates + order,
                    scores.chains.residues[targets] / scores.unit,
                    some.z[targets],
                    ratio,
                    both.rotation[order].reshape(-1, 9),
                    both.translation[order],
                    both.tm_score_query[order],
                    both.tm_score_target[order],
                    both.rmsd[order],
                )
            )
            n_candidates += len(both)
        return cls(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def _table(comparison: Comparison, hits: _Hits, query_offsets: NDArray[np.int64]) -> pa.Table:
    """Return the table of the hits of several queries; hits of query i are rows ``query_offsets[i]:query_offsets[i + 1]``."""
    # Properties of a chain are computed once per chain, and repeated for each hit.
    queries, of_query = _distinct(comparison.queries, hits.query)
    targets, of_target = _distinct(comparison.database, hits.target)
    lengths = queries.lengths[of_query], targets.lengths[of_target]
    same = identities(
        (queries.residues, queries.offsets, of_query), (targets.residues, targets.offsets, of_target), hits.pairs, hits.n_pairs
    )
    texts = cigars(hits.pairs, segment_offsets(hits.n_pairs), *lengths)
    row = hits.candidate
    of_query, of_target, n_query, n_target, n_pairs = of_query[row], of_target[row], lengths[0][row], lengths[1][row], hits.n_pairs[row]
    e_values, probabilities = _significance(comparison, hits, queries.shares[of_query], targets.shares[of_target], n_query, n_target)
    columns = {
        "query": queries.names.take(of_query),
        "target": targets.names.take(of_target),
        "score": rounded(hits.score, 3),
        "z_score": rounded(hits.z_score, 3),
        "e_value": rounded_to_digits(e_values, _E_VALUE_DIGITS),
        "same_fold_probability": rounded(probabilities, 4),
        "phase1_ratio": rounded(hits.phase1_ratio, 4),
        "aligned_length": n_pairs,
        "identity": rounded(same[row], 4),
        "rmsd": rounded(hits.rmsd, 3),
        "tm_score_query": rounded(hits.tm_score_query, 4),
        "tm_score_target": rounded(hits.tm_score_target, 4),
        "query_coverage": rounded(n_pairs / n_query, 4),
        "target_coverage": rounded(n_pairs / n_target, 4),
        "rotation": np.round(hits.rotation, 7),
        "translation": pa.compute.binary_join_element_wise(*(printed(axis, ".4f") for axis in hits.translation.T), ","),
        "cigar": texts.take(row),
        "description": targets.descriptions.take(of_target),
        "rank": np.arange(1, len(row) + 1) - np.repeat(query_offsets[:-1], np.diff(query_offsets)),
        "query_index": comparison.queries.file_order[hits.query[row]],
        "target_index": comparison.database.file_order[hits.target[row]],
        "target_length": n_target,
        "target_sequence": targets.sequences.take(of_target),
        "target_states": targets.states.take(of_target),
        **{name: column.take(of_target) for name, column in name_columns(targets.descriptions).items()},
    }
    return HITS.arrow(columns)


class _Distinct(NamedTuple):
    """Distinct chains (n) of hits as columns: residue codes with offsets, lengths, texts, and fractions of helix and strand (n, 2)."""

    residues: NDArray[np.int8]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    names: pa.Array
    descriptions: pa.Array
    sequences: pa.Array
    states: pa.Array
    shares: NDArray[np.float64]


def _distinct(described: DescribedChains, rows: NDArray[np.int64]) -> tuple[_Distinct, NDArray[np.int64]]:
    """Return the distinct chains among those with the indices `rows`, and, for each of `rows`, its index among the distinct chains."""
    chains = described.chains
    used, which = np.unique(rows, return_inverse=True)
    residues, offsets = take_segments(chains.residue, chains.offsets, used)
    names, descriptions = (
        pa.array(list(map(texts.__getitem__, used.tolist())), pa.string()) for texts in (chains.names, chains.descriptions)
    )
    sequences, states = (some.arrow() for some in chains.texts(used))
    return _Distinct(residues, offsets, np.diff(offsets), names, descriptions, sequences, states, ordered_shares(chains, used)), which


def _significance(
    comparison: Comparison,
    hits: _Hits,
    query_shares: NDArray[np.float64],
    target_shares: NDArray[np.float64],
    n_query: NDArray[np.int64],
    n_target: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the E-values and the probabilities of the same fold of hits."""
    calibration = shipped_calibration(comparison.parameters.mode)
    probabilities = calibration.same_fold_probabilities(hits.tm_score_query, hits.tm_score_target, np.minimum(n_query, n_target))
    e_values = np.full(len(hits.score), np.nan)
    if comparison.parameters.has_learned_scores:
        shared = np.minimum(query_shares, target_shares).sum(axis=1)
        e_values = len(comparison.database.chains) * calibration.chances(hits.score, chance_features(n_query, n_target, shared))
    return e_values, probabilities
