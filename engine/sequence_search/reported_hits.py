"""Reported hits of each query, with their alignments, and the statistics of their scores."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, segment_offsets
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.scoring import QueryBatch, score_all
from proteoscope.engine.sequences.alignment import Pairs, align_pairs
from proteoscope.engine.sequences.composition import CompositionAdjustment, SignificantHits, significant_hits
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import Hits, QueryHits, SequenceEntries
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import ScoreStatistics, fit, random_sequences, tabulated, ungapped_lambda
from proteoscope.kernels.device import equal_partitions

__all__ = ["HitTotals", "ReportedHits", "SearchStatistics", "reported_hits", "search_statistics"]

_RANDOM_LENGTHS, _RANDOM_QUERIES, _RANDOM_SUBJECTS = (100, 1000), 16, 2000
_SEED = 20141
_MINIMUM_LAMBDA_SHARE = 0.5  # minimum lambda relative to random sequences; real proteins have about 0.85
_MINIMUM_SHARE_OF_UNGAPPED = 0.3  # minimum lambda relative to ungapped alignments; below it, scores of random alignments grow with length
_NO_STATISTICS = ScoreStatistics(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")


@dataclass(frozen=True, eq=False)
class SearchStatistics:
    """Statistics of the scores of a search.

    Attributes
    ----------
    scores : ScoreStatistics
        Statistics of E-values and bit scores.
    adjustment : CompositionAdjustment or None
        Adjustment of scores for composition.
    is_doubtful : bool
        True if E-values are unreliable; the user was warned.
    """

    scores: ScoreStatistics
    adjustment: CompositionAdjustment | None
    is_doubtful: bool


def search_statistics(
    scores: NDArray[np.int32],
    lengths: NDArray[np.int64],
    database: SequenceDatabase,
    scheme: ScoringScheme,
    parameters: SequenceSearchParameters,
    threads: int,
    progress: Progress,
) -> SearchStatistics:
    """Return the statistics of a search, and report fitted constants to the user.

    Parameters
    ----------
    scores : ndarray of int32, shape (queries, subjects)
        Scores of the first batch of queries.
    lengths : ndarray of int64, shape (queries,)
        Lengths of the queries of the batch, in residues.
    database : SequenceDatabase
        Sequences of the searched database.
    scheme : ScoringScheme
        Matrix and gap costs.
    parameters : SequenceSearchParameters
        Parameters of the search.
    threads : int
        Number of threads.
    progress : Progress
        Progress, which receives the messages.
    """
    is_doubtful = ungapped_lambda(scheme.matrix) is None
    statistics = tabulated(scheme) if parameters.statistics == "automatic" else None
    if statistics is None:
        progress.stage("Fitting the statistics")
        is_chosen = parameters.statistics != "automatic"
        statistics, is_unreliable = _fit_statistics(scores, lengths, database, scheme, threads, progress, is_chosen=is_chosen)
        is_doubtful = is_doubtful or is_unreliable
    adjustment = None
    if parameters.composition and not is_doubtful:
        adjustment = CompositionAdjustment(database, scheme)
    return SearchStatistics(statistics, adjustment, is_doubtful)


def _fit_statistics(
    scores: NDArray[np.int32],
    lengths: NDArray[np.int64],
    database: SequenceDatabase,
    scheme: ScoringScheme,
    threads: int,
    progress: Progress,
    *,
    is_chosen: bool,
) -> tuple[ScoreStatistics, bool]:
    """Return statistics fitted to the scores of the search, or to scores of random sequences if these are more suitable, and a flag.

    The flag is True if E-values are unreliable; the user is warned. `is_chosen` is True if the user requested the fit.
    """
    ungapped = ungapped_lambda(scheme.matrix)
    reasons = [] if is_chosen else [f"NCBI has no table for {scheme.matrix.name} {scheme.gap_open}/{scheme.gap_extend}"]
    statistics = fit(scores, lengths, database.lengths, scheme, "fitted to the scores of this search")
    if statistics is None or ungapped is None or statistics.lambda_ < _MINIMUM_LAMBDA_SHARE * ungapped:
        of_search, statistics = statistics, _fit_random_sequences(scheme, threads)
        # Widely varying scores of related sequences would count as scores of random sequences and lower lambda.
        if of_search is not None and (statistics is None or of_search.lambda_ >= _MINIMUM_LAMBDA_SHARE * statistics.lambda_):
            statistics = of_search
        else:
            reasons.append("this search has too few unrelated pairs" if of_search else "this search has too few pairs that differ")
    if statistics is None:
        progress.message("The scores do not vary enough to fit their statistics: bit scores and E-values have no meaning", "warning")
        return _NO_STATISTICS, True
    constants = f"lambda = {statistics.lambda_:.4g} and K = {statistics.K:.3g}"
    because = f", since {' and '.join(reasons)}" if reasons else ""
    progress.message(f"{constants} were {statistics.source} ({statistics.n_pairs:,} pairs){because}")
    is_unreliable = ungapped is not None and statistics.lambda_ < _MINIMUM_SHARE_OF_UNGAPPED * ungapped
    if is_unreliable:
        progress.message("Gaps cost so little that scores of random alignments grow with the lengths: do not trust the E-values", "warning")
    return statistics, is_unreliable


def _fit_random_sequences(scheme: ScoringScheme, threads: int) -> ScoreStatistics | None:
    generator = np.random.default_rng(_SEED)
    lengths = [generator.integers(*_RANDOM_LENGTHS, count) for count in (_RANDOM_QUERIES, _RANDOM_SUBJECTS)]
    (queries, query_offsets), (subjects, offsets) = (random_sequences(part, _SEED + k) for k, part in enumerate(lengths))
    codes = np.split(queries, query_offsets[1:-1])
    scores = score_all(codes, subjects, offsets, scheme, threads, Progress())
    return fit(scores, lengths[0], lengths[1], scheme, "fitted to the scores of random sequences")


_ALIGNED_COLUMNS, _COLUMNS_OF_A_HIT = 1 << 24, 1000  # memory of hits that are aligned and written together, about 50 MB
_BEST = 10  # number of hits in the summary


@dataclass(frozen=True, eq=False)
class ReportedHits:
    """Hits of consecutive queries.

    Attributes
    ----------
    query_hits : QueryHits
        Queries with their hits.
    scores : ndarray of int32, shape (queries, subjects)
        Scores of all pairs, with subjects in the order of the database.
    statistics : SearchStatistics
        Statistics of the E-values.
    """

    query_hits: QueryHits
    scores: NDArray[np.int32]
    statistics: SearchStatistics


@dataclass
class HitTotals:
    """Number of hits of a search, and its best hits.

    Attributes
    ----------
    n_hits, n_queries_with_hits : int
        Number of hits, and of queries with hits.
    best : list of tuple
        Query, subject, E-value and description of the hits with the lowest E-values, at most one hit per query.
    """

    n_hits: int = 0
    n_queries_with_hits: int = 0
    best: list[tuple[str, str, float, str]] = field(default_factory=list)

    def add(self, query_hits: QueryHits) -> None:
        """Add the hits of the given queries."""
        hits, has_hits = query_hits.hits, np.diff(query_hits.offsets) > 0
        self.n_hits += len(hits)
        self.n_queries_with_hits += int(has_hits.sum())
        first = query_hits.offsets[:-1][has_hits]
        first = first[np.argsort(hits.e_value[first], kind="stable")[:_BEST]]
        names, subjects, descriptions = (texts.take(first).strings() for texts in (hits.query, hits.subject, hits.description))
        self.best += zip(names, subjects, hits.e_value[first].tolist(), descriptions, strict=True)
        self.best = sorted(self.best, key=lambda hit: hit[2])[:_BEST]


def reported_hits(
    queries: SequenceDatabase,
    database: SequenceDatabase,
    scheme: ScoringScheme,
    batch: QueryBatch,
    scores: NDArray[np.int32],
    statistics: SearchStatistics,
    parameters: SequenceSearchParameters,
    threads: int,
    progress: Progress,
    n_writers: int = 0,
) -> Iterator[ReportedHits]:
    """Yield the hits of a batch of queries with their alignments, in groups that fit into memory.

    Parameters
    ----------
    queries, database : SequenceDatabase
        Sequences of the search.
    scheme : ScoringScheme
        Matrix and gap costs.
    batch : QueryBatch
        Indices of the queries.
    scores : ndarray of int32, shape (queries, subjects)
        Scores of the batch with all subjects.
    statistics : SearchStatistics
        Statistics of the E-values.
    parameters : SequenceSearchParameters
        Parameters of the search.
    threads : int
        Number of threads.
    progress : Progress
        Progress of the run.
    n_writers : int
        Number of writers that the caller runs; each advances the progress by one step per hit.

    Raises
    ------
    Cancelled
        If the user cancels.
    """
    codes = [queries.codes(number) for number in batch.tolist()]
    significant = [
        _best_first(hits, row, database, parameters.hits_per_query)
        for hits, row in zip(
            significant_hits(
                statistics.scores, statistics.adjustment, database, codes, scores, parameters.maximum_e_value, threads, progress
            ),
            scores,
            strict=True,
        )
    ]
    progress.stage("Aligning and writing hits", (1 + n_writers) * sum(len(hits.subjects) for hits in significant))
    columns = [
        1 + len(hits.subjects) * (length + _COLUMNS_OF_A_HIT) + int(database.lengths[hits.subjects].sum())
        for length, hits in zip(queries.lengths[batch].tolist(), significant, strict=True)
    ]
    parts = equal_partitions(np.array(columns), 1, maximum_cost=_ALIGNED_COLUMNS, per_worker=1)
    for part in sorted(parts, key=lambda part: part.first):
        rows = slice(part.first, part.last)
        result = _align_hits(queries, database, scheme, batch[rows], scores[rows], significant[rows], threads, progress)
        yield ReportedHits(result, scores[rows], statistics)


def _best_first(hits: SignificantHits, scores: NDArray[np.int32], database: SequenceDatabase, limit: int) -> SignificantHits:
    """Return at most `limit` hits of a query, with the lowest E-value first."""
    return hits.take(np.lexsort((database.file_index[hits.subjects], -scores[hits.subjects], hits.e_values))[:limit])


def _align_hits(
    queries: SequenceDatabase,
    database: SequenceDatabase,
    scheme: ScoringScheme,
    numbers: NDArray[np.int64],
    scores: NDArray[np.int32],
    significant: list[SignificantHits],
    threads: int,
    progress: Progress,
) -> QueryHits:
    """Return the queries with the indices `numbers`, with their hits and alignments."""
    offsets = segment_offsets(np.array([len(hits.subjects) for hits in significant]))
    query = np.repeat(np.arange(len(numbers)), np.diff(offsets))
    columns = ((hits.subjects, hits.e_values, hits.bit_scores) for hits in significant)
    subjects, e_values, bit_scores = (np.concatenate(column) for column in zip(*columns, strict=True))
    score, rank = scores[query, subjects].astype(np.int64), np.arange(len(query)) - offsets[query] + 1
    pairs = Pairs(queries.residues, queries.ranges(numbers[query]), database.residues, database.ranges(subjects), score)
    alignments = align_pairs(pairs, scheme, threads, progress)
    hits = Hits.from_alignments(
        alignments, _entries(queries, numbers[query]), _entries(database, subjects), score, rank, bit_scores, e_values
    )
    entries = _entries(queries, numbers)
    return QueryHits(entries.index, entries.names, entries.descriptions, queries.sequences(numbers), offsets, hits)


def _entries(database: SequenceDatabase, numbers: NDArray[np.int64]) -> SequenceEntries:
    """Return the names, descriptions and lengths of the sequences with the given indices."""
    names = Texts(database.accession_bytes, database.accession_offsets).take(numbers)
    descriptions = Texts(database.description_bytes, database.description_offsets).take(numbers)
    return SequenceEntries(names, descriptions, database.file_index[numbers].astype(np.int64), database.lengths[numbers])
