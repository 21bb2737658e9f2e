"""The hits of each query: scores of all sequences, E-values, and the alignments of those that are reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, offsets_of
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.scoring import STEP_CELLS, score_all, score_queries
from proteoscope.engine.sequences.alignment import Pairs, align_pairs
from proteoscope.engine.sequences.composition import CompositionAdjustment, SignificantHits, significant_hits
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.hits import Hits, QueryHits, SequenceEntries
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import ScoreStatistics, fit, random_sequences, tabulated, ungapped_lambda
from proteoscope.kernels.partitions import equal_partitions

__all__ = ["Batch", "SequenceHitSearch"]

_MAXIMUM_SCORES = 64_000_000  # of a batch of queries: 256 MB
_COLUMNS_OF_ALIGNMENTS, _COLUMNS_OF_A_HIT = 1 << 24, 1000  # of hits that are aligned and written together: some 50 MB
_RANDOM_LENGTHS, _RANDOM_QUERIES, _RANDOM_SUBJECTS = (100, 1000), 16, 2000
_SEED = 20141
_BEST = 10  # hits that the summary shows
_MINIMUM_LAMBDA_SHARE = 0.5  # of chance's: real proteins have some 0.85
_MINIMUM_SHARE_OF_UNGAPPED = 0.3  # below it, gaps let scores of chance grow with the lengths


@dataclass(frozen=True)
class Batch:
    """Consecutive queries with their hits, and the scores of all subjects, (queries, subjects) int32 in the order of the database."""

    found: QueryHits
    scores: NDArray[np.int32]

    @property
    def n_hits(self) -> int:
        """Hits of all its queries."""
        return len(self.found.hits)


class SequenceHitSearch:
    """Scores the queries in batches that fit into memory, picks the hits of each, and aligns them in batches that do."""

    def __init__(
        self,
        queries: SequenceDatabase,
        database: SequenceDatabase,
        scheme: ScoringScheme,
        parameters: SequenceSearchParameters,
        session: Session,
        resources: Resources,
    ) -> None:
        self.database, self.scheme, self.parameters = database, scheme, parameters
        self.queries, self._threads, self._session = queries, resources.threads, session
        self._clock, self.progress = resources.clock, resources.progress
        self._order, self._lengths = np.argsort(queries.file_index), database.lengths
        self.n_hits = self.n_with_hits = 0
        self.is_doubtful = ungapped_lambda(scheme.matrix) is None
        """Whether E-values say little, as the user was told."""
        self.best: list[tuple[str, str, float, str]] = []
        self.statistics: ScoreStatistics
        self._adjustment: CompositionAdjustment | None = None

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.queries)

    def say_whether_doubtful(self) -> None:
        """Advise one who found nothing where E-values say little."""
        if self.is_doubtful and not self.n_hits:
            least = f"No hit has an E-value up to {self.parameters.maximum_e_value:g}"
            self.progress.message(f"{least}: raise the largest E-value (maximum_e_value) to see the best scores", "warning")

    def score(self, n_sinks: int) -> Iterator[Batch]:
        """Search; the batches come in the order of the queries' files. So many sinks take each of them, and advance by its hits."""
        size = max(1, _MAXIMUM_SCORES // max(1, len(self.database)))
        for first in range(0, len(self._order), size):
            numbers = self._order[first : first + size].tolist()
            codes = [self.queries.codes(i) for i in numbers]
            lengths = np.array([len(code) for code in codes])
            with self._clock.stage("score"):
                self.progress.stage("Scoring", int(lengths.sum()) * self.database.n_residues // STEP_CELLS)
                self.scheme.check(int(lengths.max(initial=0)), int(self._lengths.max(initial=0)))
                scores = score_queries(self._session, codes)
            with self._clock.stage("report"):
                if first == 0:
                    self.statistics = self._statistics(scores, lengths)
                    self._adjustment = self._composition_adjustment()
                candidates = [self._candidates(one, row) for one, row in zip(codes, scores, strict=True)]
                columns = np.array([self._columns(len(one), hits.subjects) for one, hits in zip(codes, candidates, strict=True)])
                self.progress.stage("Aligning and writing hits", (1 + n_sinks) * sum(len(hits.subjects) for hits in candidates))
            parts = equal_partitions(columns, 1, maximum_cost=_COLUMNS_OF_ALIGNMENTS, per_worker=1)
            for part in sorted(parts, key=lambda part: part.first):
                some = slice(part.first, part.last)
                with self._clock.stage("report"):
                    found = self._aligned(np.array(numbers[some]), scores[some], candidates[some])
                self._note(found)
                yield Batch(found, scores[some])

    def _note(self, found: QueryHits) -> None:
        """Count the hits, and keep the best of the queries' best."""
        has_hits = np.diff(found.offsets) > 0
        self.n_hits += len(found.hits)
        self.n_with_hits += int(has_hits.sum())
        first = found.offsets[:-1][has_hits]
        first = first[np.argsort(found.hits.e_value[first], kind="stable")[:_BEST]]
        names, subjects, descriptions = (
            texts.take(first).strings() for texts in (found.hits.query, found.hits.subject, found.hits.description)
        )
        self.best += zip(names, subjects, found.hits.e_value[first].tolist(), descriptions, strict=True)
        self.best = sorted(self.best, key=lambda hit: hit[2])[:_BEST]

    def _statistics(self, scores: NDArray[np.int32], lengths: NDArray[np.int64]) -> ScoreStatistics:
        """From the tables, else fitted to these scores, else to those of random sequences; says which."""
        statistics = tabulated(self.scheme) if self.parameters.statistics == "automatic" else None
        if statistics is not None:
            return statistics
        self.progress.stage("Fitting the statistics")
        ungapped = ungapped_lambda(self.scheme.matrix)
        scheme, because = self.scheme, []
        if self.parameters.statistics == "automatic":
            because.append(f"NCBI has no table for {scheme.matrix.name} {scheme.gap_open}/{scheme.gap_extend}")
        statistics = fit(scores, lengths, self.database.lengths, scheme, "fitted to the scores of this search")
        if statistics is None or ungapped is None or statistics.lambda_ < _MINIMUM_LAMBDA_SHARE * ungapped:
            own, statistics = statistics, self._of_random_sequences()
            # Relatives spread the scores wide, and would be taken for chance.
            if own is not None and (statistics is None or own.lambda_ >= _MINIMUM_LAMBDA_SHARE * statistics.lambda_):
                statistics = own
            else:
                because.append("too few pairs of this search are unrelated" if own else "this search has too few pairs that differ")
        if statistics is None:
            self.is_doubtful = True
            self.progress.message("The scores do not vary enough to fit their statistics: bit scores and E-values say nothing", "warning")
            return ScoreStatistics(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")
        constants = f"lambda = {statistics.lambda_:.4g} and K = {statistics.K:.3g}"
        reasons = f", since {' and '.join(because)}" if because else ""
        self.progress.message(f"{constants} were {statistics.source} ({statistics.n_pairs:,} pairs){reasons}")
        if ungapped is not None and statistics.lambda_ < _MINIMUM_SHARE_OF_UNGAPPED * ungapped:
            self.is_doubtful = True
            self.progress.message(
                "The gaps cost so little that scores of chance grow with the lengths: do not trust the E-values", "warning"
            )
        return statistics

    def _composition_adjustment(self) -> CompositionAdjustment | None:
        """Return the adjustment of scores, or None where the user turned it off or E-values mean little."""
        if not self.parameters.composition or self.is_doubtful:
            return None
        return CompositionAdjustment(self.database, self.scheme, self._threads, self.progress)

    def _of_random_sequences(self) -> ScoreStatistics | None:
        generator = np.random.default_rng(_SEED)
        lengths = [generator.integers(*_RANDOM_LENGTHS, count) for count in (_RANDOM_QUERIES, _RANDOM_SUBJECTS)]
        (queries, query_offsets), (subjects, offsets) = (random_sequences(one, _SEED + k) for k, one in enumerate(lengths))
        codes = np.split(queries, query_offsets[1:-1])
        scores = score_all(codes, subjects, offsets, self.scheme, self._threads, Progress())
        return fit(scores, lengths[0], lengths[1], self.scheme, "fitted to the scores of random sequences")

    def _candidates(self, query: NDArray[np.int8], scores: NDArray[np.int32]) -> SignificantHits:
        """Hits of a query, best first."""
        self.progress.check()
        hits = significant_hits(self.statistics, self._adjustment, self.database, query, scores, self.parameters.maximum_e_value)
        order = np.lexsort((self.database.file_index[hits.subjects], -scores[hits.subjects], hits.e_values))
        return hits.take(order[: self.parameters.hits_per_query])

    def _columns(self, length: int, subjects: NDArray[np.int64]) -> int:
        """Room that the hits of a query may take, in columns of alignments."""
        return 1 + len(subjects) * (length + _COLUMNS_OF_A_HIT) + int(self._lengths[subjects].sum())

    def _aligned(self, numbers: NDArray[np.int64], scores: NDArray[np.int32], candidates: list[SignificantHits]) -> QueryHits:
        """The queries of these numbers with their hits and alignments, made on all threads."""
        offsets = offsets_of(np.array([len(hits.subjects) for hits in candidates]))
        own = np.repeat(np.arange(len(numbers)), np.diff(offsets))
        columns = ((hits.subjects, hits.e_values, hits.bit_scores) for hits in candidates)
        subjects, e_values, bit_scores = (np.concatenate(column) for column in zip(*columns, strict=True))
        best, ranks = scores[own, subjects].astype(np.int64), np.arange(len(own)) - offsets[own] + 1
        queries = _places(self.queries, numbers)
        hits = Hits.of(
            align_pairs(
                Pairs(
                    self.queries.residues, self.queries.places(numbers[own]),
                    self.database.residues, self.database.places(subjects), best,
                ), self.scheme, self._threads, self.progress,
            ),
            _places(self.queries, numbers[own]), _places(self.database, subjects), best, ranks, bit_scores, e_values,
        )  # fmt: skip
        return QueryHits(queries.index, queries.names, queries.descriptions, self.queries.letters(numbers), offsets, hits)


def _places(database: SequenceDatabase, numbers: NDArray[np.int64]) -> SequenceEntries:
    """The sequences of these numbers."""
    names = Texts(database.accession_bytes, database.accession_offsets).take(numbers)
    descriptions = Texts(database.description_bytes, database.description_offsets).take(numbers)
    return SequenceEntries(names, descriptions, database.file_index[numbers].astype(np.int64), database.lengths[numbers])
