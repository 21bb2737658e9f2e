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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import read_only, take_segments
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import BACKGROUND, ScoreStatistics, ungapped_lambda

__all__ = ["CompositionAdjustment", "SignificantHits", "significant_hits"]

_WINDOW, _TRIGGER, _EXTENSION = 12, 1.9, 2.1  # window in residues; maximum entropy that starts and that extends a segment, in bits
_ENTROPY_UNIT = 2.0**40
_MASK = SYMBOLS.index("X")
_PRIOR = 200.0 * BACKGROUND / BACKGROUND.sum()
_MINIMUM_RATIO, _MAXIMUM_RATIO = 0.5, 1.05
_EXPONENT = 3.0
_BATCH_RESIDUES = 1 << 21  # of subjects that a thread processes together, some 50 MB


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
    query: NDArray[np.int8],
    scores: NDArray[np.int32],
    maximum_e_value: float,
) -> SignificantHits:
    """Return the subjects whose E-value with a query is at most `maximum_e_value`.

    Parameters
    ----------
    statistics : ScoreStatistics
        Statistics of the scores.
    adjustment : CompositionAdjustment, optional
        Adjustment of the scores; None for E-values of unadjusted scores.
    database : SequenceDatabase
        Subjects (n).
    query : ndarray of int8
        Residue codes.
    scores : ndarray of int32, shape (n,)
        Scores of the query with the n subjects.
    maximum_e_value : float
        Maximum E-value of hits.
    """
    lengths, maximum = database.lengths, int(scores.max(initial=0))
    scale = 1.0 if adjustment is None else _MAXIMUM_RATIO**_EXPONENT
    subjects = np.flatnonzero(
        scores >= statistics.minimum_scores(maximum_e_value, len(query), lengths, database.n_residues, maximum, scale)
    )

    def e_values(subjects: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return statistics.e_values(scores, len(query), lengths[subjects], database.n_residues)

    adjusted = scores[subjects].astype(np.float64)
    if adjustment is not None:
        pairs = adjustment.for_query(query)
        scales, is_masked = pairs.scales(subjects)
        rows = np.flatnonzero(e_values(subjects, adjusted * scales) <= maximum_e_value)
        subjects, scales, is_masked = subjects[rows], scales[rows], is_masked[rows]
        adjusted = scales * pairs.masked_scores(subjects, is_masked, scores[subjects])
    expected = e_values(subjects, adjusted)
    hits = SignificantHits(subjects, expected, statistics.bit_scores(adjusted))
    return hits.take(np.flatnonzero(expected <= maximum_e_value))


class CompositionAdjustment:
    """Adjustment of the scores of a search for composition and low complexity.

    Parameters
    ----------
    database : SequenceDatabase
        Subjects.
    scheme : ScoringScheme
        Matrix and gap costs; the matrix must have an ungapped lambda (see `ungapped_lambda`).
    threads : int
        Number of threads that score the masked pairs of a query again.
    progress : Progress
        Progress, which is checked for cancellation.
    """

    def __init__(self, database: SequenceDatabase, scheme: ScoringScheme, threads: int, progress: Progress) -> None:
        ungapped = ungapped_lambda(scheme.matrix)
        assert ungapped is not None
        self.database, self.scheme, self.threads, self.progress = database, scheme, threads, progress
        self.ungapped_lambda = ungapped
        scores, classes = np.unique(scheme.matrix.scores, return_inverse=True)
        self.scores, self.score_classes = scores.astype(np.float64), classes.reshape(scheme.matrix.scores.shape).astype(np.int64)

    def for_query(self, query: NDArray[np.int8]) -> QueryAdjustment:
        """Return the adjustment of the scores of a query."""
        return QueryAdjustment(self, query)


class QueryAdjustment:
    """Adjustment of the scores of a query with subjects of the database.

    Parameters
    ----------
    whole : CompositionAdjustment
        Adjustment of the whole search.
    query : ndarray of int8
        Residue codes.
    """

    def __init__(self, whole: CompositionAdjustment, query: NDArray[np.int8]) -> None:
        self._whole = whole
        self._query, counts = masked_sequences(query, np.array([0, len(query)], np.int64))
        self._counts = counts[0]
        self._is_masked = bool((self._query != query).any())

    def scales(self, subjects: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return, for each of `subjects`, the factor for its score, and True if subject or query has residues masked for low complexity."""
        whole = self._whole
        lambdas, is_masked = np.empty(len(subjects)), np.zeros(len(subjects), np.bool_)
        for part in _parts(whole.database, subjects):
            whole.progress.check()
            codes, offsets = take_segments(whole.database.residues, whole.database.offsets, subjects[part])
            masked, counts = masked_sequences(codes, offsets)
            kernels.cpu.composition.pair_lambdas(
                self._counts,
                counts,
                _PRIOR,
                whole.score_classes,
                whole.scores,
                _MINIMUM_RATIO * whole.ungapped_lambda,
                _MAXIMUM_RATIO * whole.ungapped_lambda,
                lambdas[part],
            )
            is_masked[part] = np.logical_or.reduceat(masked != codes, offsets[:-1])  # no subject with a score is empty
        return (lambdas / whole.ungapped_lambda) ** _EXPONENT, is_masked | self._is_masked

    def masked_scores(self, subjects: NDArray[np.int64], is_masked: NDArray[np.bool_], scores: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the scores of pairs, computed with X in place of residues of low complexity.

        Parameters
        ----------
        subjects : ndarray of int64, shape (n,)
            Indices of the subjects in the database.
        is_masked : ndarray of bool, shape (n,)
            True for each pair with masked residues.
        scores : ndarray of int32, shape (n,)
            Original scores.

        Returns
        -------
        ndarray of int32, shape (n,)
            New scores for pairs with masked residues, at most the original scores; original scores for other pairs.
        """
        whole, masked_scores, chosen = self._whole, scores.copy(), np.flatnonzero(is_masked)
        for part in _parts(whole.database, subjects[chosen]):
            rows = chosen[part]
            codes, offsets = take_segments(whole.database.residues, whole.database.offsets, subjects[rows])
            masked, _ = masked_sequences(codes, offsets)
            search = kernels.cpu.alignment.AlignmentSearch(kernels.cpu.processor.Processor(whole.threads), masked, offsets)
            out = np.empty((1, len(rows)), np.int32)
            for _ in search.score([self._query], whole.scheme.matrix.scores, whole.scheme.gap_open, whole.scheme.gap_extend, out):
                whole.progress.check()
            masked_scores[rows] = np.minimum(masked_scores[rows], out[0])
        return masked_scores


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
