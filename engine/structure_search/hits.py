"""Hits of queries: the best superposed candidates, in the order of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.formats.protein_names import name_columns
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.row_numbers import ChainRow
from proteoscope.engine.structure_search.calibration import chance_features, ordered_shares, shipped_calibration
from proteoscope.engine.structure_search.candidates import Candidates, Comparison, best_candidates, superpose_candidates
from proteoscope.engine.structure_search.tables import HITS
from proteoscope.engine.structures.outputs import AlignedChains, cigars, identities
from proteoscope.engine.structures.superposition import Superpositions

__all__ = ["StructureQueryHits", "query_hits", "relatedness", "reported_hits"]

_OF_Z_SCORE = 0.02
_E_VALUE_DIGITS = 4


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

    Among related chains with equally similar structures, those with better agreement of descriptors, including residues, rank higher.

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
    aligned = superpose_candidates(comparison, candidates)
    return [reported_hits(comparison, some, both) for some, both in zip(candidates, aligned, strict=True)]


def reported_hits(comparison: Comparison, candidates: Candidates, aligned: Superpositions) -> StructureQueryHits:
    """Return the hits among the superposed candidates of a query.

    Parameters
    ----------
    comparison : Comparison
        Queries, database and sessions.
    candidates : Candidates
        Candidates of the query.
    aligned : Superpositions
        Superposition of each candidate.
    """
    query, scores, z, targets = candidates
    queries, chains, parameters = comparison.queries.chains, comparison.database.chains, comparison.parameters
    order, in_units = np.arange(len(targets)), scores.chains.residues / scores.unit
    if comparison.is_sensitive:
        rank = relatedness(z[targets], (aligned.tm_score_query + aligned.tm_score_target) / 2)
        order = np.lexsort((comparison.database.file_order[targets], -rank))
    ratios = scores.chains.elements / max(1, scores.self_score) if parameters.qualification_threshold > 0 else np.full(len(z), np.nan)
    order = order[: parameters.hits_per_query]
    figures = _figures(comparison, query, targets, in_units[targets], z[targets], ratios[targets], aligned)
    hits = _table(comparison, query, targets[order], {name: column[order] for name, column in figures.items()}, aligned, order)
    return StructureQueryHits(
        queries.names[query],
        int(comparison.queries.file_order[query]),
        queries.descriptions[query],
        queries.sequence(query),
        queries.states(query),
        int((scores.chains.residues >= 0).sum()),
        hits,
        [
            AlignedChains(queries, query, chains, target, aligned, k)
            for k, target in zip(order.tolist(), targets[order].tolist(), strict=True)
        ],
        in_units,
        z,
    )


def _figures(
    comparison: Comparison,
    query: ChainRow,
    targets: NDArray[np.int64],
    scores: NDArray[np.float64],
    z: NDArray[np.float64],
    ratios: NDArray[np.float64],
    aligned: Superpositions,
) -> dict[str, NDArray[np.float64]]:
    """Return scores, z-scores, E-values, probabilities of the same fold and phase 1 ratios of the targets of a query, rounded."""
    queries, chains, calibration = comparison.queries.chains, comparison.database.chains, shipped_calibration(comparison.parameters.mode)
    length, lengths = queries.lengths[query], chains.lengths[targets]
    probabilities = calibration.same_fold_probabilities(aligned.tm_score_query, aligned.tm_score_target, np.minimum(length, lengths))
    e_values = np.full(len(targets), np.nan)
    if comparison.parameters.has_learned_scores:
        shared = np.minimum(ordered_shares(queries, np.array([query])), ordered_shares(chains, targets)).sum(axis=1)
        e_values = len(chains) * calibration.chances(scores, chance_features(length, lengths, shared))
    return {
        "score": _rounded(scores, 3),
        "z_score": _rounded(z, 3),
        "e_value": _rounded_to_digits(e_values, _E_VALUE_DIGITS),
        "same_fold_probability": _rounded(probabilities, 4),
        "phase1_ratio": _rounded(ratios, 4),
    }


def _table(
    comparison: Comparison,
    query: ChainRow,
    targets: NDArray[np.int64],
    figures: dict[str, NDArray[np.float64]],
    aligned: Superpositions,
    rows: NDArray[np.int64],
) -> pa.Table:
    """Return the table of hits for the superpositions `rows`, best first."""
    queries, chains = comparison.queries.chains, comparison.database.chains.taken(targets)
    residues, n_query, n = queries.residue[queries.rows(query)], int(queries.lengths[query]), len(targets)
    pairs, offsets = take_runs(aligned.pairs, aligned.pair_offsets, rows)
    lengths = np.diff(offsets)
    columns = {
        "query": [queries.names[query]] * n,
        "target": chains.names,
        **figures,
        "aligned_length": lengths,
        "identity": _rounded(identities(residues, chains.residue, chains.offsets, pairs, offsets), 4),
        "rmsd": _rounded(aligned.rmsd[rows], 3),
        "tm_score_query": _rounded(aligned.tm_score_query[rows], 4),
        "tm_score_target": _rounded(aligned.tm_score_target[rows], 4),
        "query_coverage": _rounded(lengths / n_query, 4),
        "target_coverage": _rounded(lengths / chains.lengths, 4),
        "rotation": np.round(aligned.rotation[rows].reshape(n, 9), 7),
        "translation": list(map("{:.4f},{:.4f},{:.4f}".format, *aligned.translation[rows].T.tolist())),
        "cigar": cigars(pairs, offsets, n_query, chains.lengths),
        "description": chains.descriptions,
        "rank": np.arange(1, n + 1),
        "query_index": np.full(n, comparison.queries.file_order[query]),
        "target_index": comparison.database.file_order[targets],
        "target_length": chains.lengths,
        "target_sequence": chains.sequences.arrow(),
        "target_states": chains.all_states.arrow(),
        **name_columns(chains.descriptions),
    }
    return HITS.arrow(columns)


def _rounded_to_digits(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Round to the given number of significant digits."""
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()], np.float64)


def _rounded(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Round in decimal arithmetic, since NumPy multiplies first and then treats 0.00625 as a tie."""
    return np.array(list(map(round, values.tolist(), repeat(decimals))), np.float64)
