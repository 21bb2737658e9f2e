"""Adjustment of scores for the composition of both sequences and for segments of low complexity.

The E-value of a pair is computed from its adjusted score; the reported score is not adjusted.

* Residues in segments of low complexity are replaced by X, and the pair is scored again, exactly. The segments are found by the first step
  of SEG (Wootton and Federhen 1993, Computers & Chemistry 17:149).
* The score is multiplied by the ratio of lambda for the composition of the pair to lambda for the usual composition, both for ungapped
  alignments: composition-based statistics (Schäffer and others 2001, NAR 29:2994). `_PRIOR` residues of the usual composition are added to
  each composition, since the composition of a short sequence is uncertain, and related sequences share this uncertainty (Altschul
  and others 2005, FEBS J 272:5101, add pseudocounts for the same reason). The prior and the gaps reduce the effect of the ratio;
  `_EXPONENT` compensates for this.

Thresholds, prior and exponent were selected on half of the classes of shuffled proteins of `benchmarks/sequence_statistics.py` and on
domains of SCOP, and verified on the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import read_only, segment_offsets, take_segments
from proteoscope.engine.execution.resources import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.alignment import CELLS_OF_A_TASK, Pairs, bounded_scores
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import BACKGROUND, ScoreStatistics, ungapped_lambda
from proteoscope.kernels.device import Partition, equal_partitions, stop_flag

__all__ = ["CompositionAdjustment", "SignificantHits", "significant_hits"]

_WINDOW, _TRIGGER, _EXTENSION = 12, 1.9, 2.1  # window in residues; maximum entropy that starts and that extends a segment, in bits
_ENTROPY_UNIT = 2.0**40
_MASK = SYMBOLS.index("X")
_PRIOR = 200.0 * BACKGROUND / BACKGROUND.sum()
_MINIMUM_RATIO, _MAXIMUM_RATIO = 0.5, 1.05
_EXPONENT = 3.0
_PAIRS_TOGETHER = 1 << 22  # pairs that are selected from together, up to 300 MB of candidates
_BATCH_RESIDUES = 1 << 18  # residues of subjects that a thread processes together, in some milliseconds


@dataclass(frozen=True)
class SignificantHits:
    """Subjects of a query up to a maximum E-value, in the order of the database.

    Attributes
    ----------
    subjects : ndarray of int64, shape (n,)
        Indices in the database.
    e_values, bit_scores : ndarray of float64, shape (n,)
        E-value and bit score of each subject.
    """

    subjects: NDArray[np.int64]
    e_values: NDArray[np.float64]
    bit_scores: NDArray[np.float64]

    def take(self, rows: NDArray[np.integer]) -> SignificantHits:
        """Return the subjects with the given row indices."""
        return SignificantHits(self.subjects[rows], self.e_values[rows], self.bit_scores[rows])


def significant_hits(
    statistics: ScoreStatistics,
    adjustment: CompositionAdjustment | None,
    database: SequenceDatabase,
    queries: Sequence[NDArray[np.int8]],
    scores: NDArray[np.int32],
    maximum_e_value: float,
    threads: int,
    progress: Progress,
) -> list[SignificantHits]:
    """Return, for each query, the subjects whose E-value is at most `maximum_e_value`.

    Parameters
    ----------
    statistics : ScoreStatistics
        Statistics of the scores.
    adjustment : CompositionAdjustment, optional
        Adjustment of the scores; None for E-values of unadjusted scores.
    database : SequenceDatabase
        Subjects (n).
    queries : sequence of ndarray of int8
        Residue codes of each query.
    scores : ndarray of int32, shape (queries, n)
        Scores of the queries with the n subjects.
    maximum_e_value : float
        Maximum E-value of hits.
    threads : int
        Number of threads.
    progress : Progress
        Progress, which is checked for cancellation.
    """
    lengths = database.lengths
    scale = 1.0 if adjustment is None else _MAXIMUM_RATIO**_EXPONENT

    def e_values(query: int, subjects: NDArray[np.int64], adjusted: NDArray[np.float64]) -> NDArray[np.float64]:
        return statistics.e_values(adjusted, len(queries[query]), lengths[subjects], database.n_residues)

    def select(query: int) -> list[tuple[int, NDArray[np.int64]]]:
        length, maximum = len(queries[query]), int(scores[query].max(initial=0))
        minimum = statistics.minimum_scores(maximum_e_value, length, lengths, database.n_residues, maximum, scale)
        subjects = np.flatnonzero(scores[query] >= minimum)
        return [(query, subjects[part]) for part in _parts(database, subjects)]

    def adjust(part: tuple[int, NDArray[np.int64]]) -> _Candidates:
        query, subjects = part
        scales, is_masked = np.ones(len(subjects)), np.zeros(len(subjects), np.bool_)
        if adjustment is not None:
            scales, is_masked = adjustment.scales(queries[query], subjects)
        rows = np.flatnonzero(e_values(query, subjects, scores[query][subjects] * scales) <= maximum_e_value)
        return _Candidates(subjects[rows], scores[query][subjects[rows]], scales[rows], is_masked[rows])

    def finish(query: int) -> SignificantHits:
        subjects, adjusted = candidates[query].subjects, candidates[query].scales * candidates[query].scores
        expected = e_values(query, subjects, adjusted)
        hits = SignificantHits(subjects, expected, statistics.bit_scores(adjusted))
        return hits.take(np.flatnonzero(expected <= maximum_e_value))

    together, results = max(1, _PAIRS_TOGETHER // max(1, len(database))), list[SignificantHits]()
    for first in range(0, len(queries), together):
        group = range(first, min(len(queries), first + together))
        parts = list(chain.from_iterable(run_on_threads(select, group, threads, progress, steps=lambda _: 0)))
        adjusted = run_on_threads(adjust, parts, threads, progress, steps=lambda _: 0)
        of_query: dict[int, list[_Candidates]] = {query: [] for query in group}
        for (query, _), candidates_of_part in zip(parts, adjusted, strict=True):
            of_query[query].append(candidates_of_part)
        candidates = {query: _Candidates.joined(some) for query, some in of_query.items()}
        if adjustment is not None:
            adjustment.lower_masked_scores([(queries[query], candidates[query]) for query in group], threads, progress)
        results += run_on_threads(finish, group, threads, progress, steps=lambda _: 0)
    return results


@dataclass(frozen=True)
class _Candidates:
    """Subjects (n) of a query that may be hits.

    Attributes
    ----------
    subjects : ndarray of int64, shape (n,)
        Indices in the database.
    scores : ndarray of int32, shape (n,)
        Scores.
    scales : ndarray of float64, shape (n,)
        Factors of the scores.
    is_masked : ndarray of bool, shape (n,)
        True if subject or query has residues masked for low complexity.
    """

    subjects: NDArray[np.int64]
    scores: NDArray[np.int32]
    scales: NDArray[np.float64]
    is_masked: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[_Candidates]) -> _Candidates:
        """Return the candidates of all parts, in their order."""
        empty = cls(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.bool_))
        return cls(*(np.concatenate([getattr(part, field.name) for part in (empty, *parts)]) for field in fields(cls)))


class CompositionAdjustment:
    """Adjustment of the scores of a search for composition and low complexity.

    Parameters
    ----------
    database : SequenceDatabase
        Subjects.
    scheme : ScoringScheme
        Matrix and gap costs; the matrix must have an ungapped lambda (see `ungapped_lambda`).
    """

    def __init__(self, database: SequenceDatabase, scheme: ScoringScheme) -> None:
        ungapped = ungapped_lambda(scheme.matrix)
        assert ungapped is not None
        self.database, self.scheme = database, scheme
        self.ungapped_lambda = ungapped
        scores, classes = np.unique(scheme.matrix.scores, return_inverse=True)
        self.scores, self.score_classes = scores.astype(np.float64), classes.reshape(scheme.matrix.scores.shape).astype(np.int64)

    def scales(self, query: NDArray[np.int8], subjects: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return, for each subject, the factor for its score with a query, and True if one of both has residues masked for low complexity.

        Parameters
        ----------
        query : ndarray of int8
            Residue codes.
        subjects : ndarray of int64, shape (n,)
            Indices in the database; at least one, and none is empty.
        """
        masked_query, query_counts = masked_sequences(query, np.array([0, len(query)], np.int64))
        codes, offsets = take_segments(self.database.residues, self.database.offsets, subjects)
        masked, counts = masked_sequences(codes, offsets)
        lambdas = np.empty(len(subjects))
        kernels.cpu.composition.pair_lambdas(
            query_counts[0],
            counts,
            _PRIOR,
            self.score_classes,
            self.scores,
            _MINIMUM_RATIO * self.ungapped_lambda,
            _MAXIMUM_RATIO * self.ungapped_lambda,
            lambdas,
        )
        is_masked = np.logical_or.reduceat(masked != codes, offsets[:-1]) | (masked_query != query).any()
        return (lambdas / self.ungapped_lambda) ** _EXPONENT, is_masked

    def lower_masked_scores(self, candidates: Sequence[tuple[NDArray[np.int8], _Candidates]], threads: int, progress: Progress) -> None:
        """Replace the scores of pairs with masked residues by their scores with X in place of these residues, if these are lower.

        Parameters
        ----------
        candidates : sequence of tuple
            Residue codes of each query, with its candidates, whose scores are changed.
        threads : int
            Number of threads.
        progress : Progress
            Progress, which is checked for cancellation.
        """
        chosen = [np.flatnonzero(each.is_masked) for _, each in candidates]
        query, stop = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen]), stop_flag()
        subjects, scores = (
            np.concatenate([column[rows] for column, rows in zip(columns, chosen, strict=True)])
            for columns in ([each.subjects for _, each in candidates], [each.scores.astype(np.int64) for _, each in candidates])
        )
        offsets = segment_offsets(np.array([len(codes) for codes, _ in candidates]))
        queries, _ = masked_sequences(np.concatenate([codes for codes, _ in candidates]), offsets)
        ranges = np.stack((offsets[:-1], offsets[1:]), axis=1)[query]

        def lower(part: Partition) -> None:
            rows = slice(part.first, part.last)
            codes, offsets = take_segments(self.database.residues, self.database.offsets, subjects[rows])
            masked, _ = masked_sequences(codes, offsets)
            pairs = Pairs(queries, ranges[rows], masked, np.stack((offsets[:-1], offsets[1:]), axis=1), scores[rows])
            scores[rows] = bounded_scores(pairs, self.scheme, stop)

        cells = np.diff(offsets)[query] * self.database.lengths[subjects]
        parts = equal_partitions(cells, threads, maximum_cost=CELLS_OF_A_TASK)
        run_on_threads(lower, parts, threads, progress, steps=lambda _: 0, stop=stop)
        for (_, each), rows, lowered in zip(
            candidates, chosen, np.split(scores, np.cumsum([len(rows) for rows in chosen])[:-1]), strict=True
        ):
            each.scores[rows] = lowered


def masked_sequences(residues: NDArray[np.int8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Mask segments of low complexity, and count the residues of sequences.

    Parameters
    ----------
    residues : ndarray of int8, shape (total,)
        Residue codes of all sequences.
    offsets : ndarray of int64, shape (n + 1,)
        Sequence i is ``residues[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    masked : ndarray of int8, shape (total,)
        Residue codes, X in segments of low complexity.
    counts : ndarray of int64, shape (n, 27)
        Number of residues of each sequence with each code.
    """
    masked, counts = np.empty(len(residues), np.int8), np.empty((len(offsets) - 1, len(SYMBOLS)), np.int64)
    trigger, extension = (int(bits * _ENTROPY_UNIT) for bits in (_TRIGGER, _EXTENSION))
    kernels.cpu.composition.mask_low_complexity(read_only(residues), offsets, _ENTROPIES, trigger, extension, _MASK, masked, counts)
    return masked, counts


def _entropies() -> NDArray[np.int64]:
    """Return the entropy (in 1 / `_ENTROPY_UNIT` bit) that a residue adds to a window in which it occurs 0, 1, … times."""
    fraction = np.arange(1, _WINDOW + 1) / _WINDOW
    return np.concatenate(([0], np.rint(-fraction * np.log2(fraction) * _ENTROPY_UNIT))).astype(np.int64)


_ENTROPIES = _entropies()


def _parts(database: SequenceDatabase, subjects: NDArray[np.int64]) -> list[slice]:
    """Divide subjects into slices that fit into memory; a very long subject is a separate slice."""
    sizes = np.cumsum(database.lengths[subjects])
    cuts = np.flatnonzero(np.diff(sizes // _BATCH_RESIDUES)) + 1
    return [slice(int(a), int(b)) for a, b in zip([0, *cuts], [*cuts, len(subjects)], strict=True) if b > a]
