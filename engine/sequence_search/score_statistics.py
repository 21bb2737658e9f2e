"""Statistics of the scores of a search, from the tables of NCBI, or fitted to scores of the search or of random sequences."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.composition import CompositionAdjustment
from proteoscope.engine.sequences.database import SequenceDatabase
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.engine.sequences.statistics import ScoreStatistics, fit, random_sequences, tabulated, ungapped_lambda

__all__ = ["SearchStatistics", "search_statistics"]

_RANDOM_LENGTHS, _RANDOM_QUERIES, _RANDOM_SUBJECTS = (100, 1000), 16, 2000
_SEED = 20141
_MINIMUM_LAMBDA_SHARE = 0.5  # minimum lambda relative to random sequences; real proteins have about 0.85
_MINIMUM_SHARE_OF_UNGAPPED = 0.3  # minimum lambda relative to ungapped alignments; below, scores of random alignments grow with the lengths
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
        # `reported_hits` adjusts the scores of several queries at the same time.
        adjustment = CompositionAdjustment(database, scheme, max(1, threads // len(lengths)), progress)
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
    """Return fitted statistics, and True if the E-values are unreliable; `is_chosen` is True if the user requested the fit."""
    ungapped = ungapped_lambda(scheme.matrix)
    reasons = [] if is_chosen else [f"NCBI has no table for {scheme.matrix.name} {scheme.gap_open}/{scheme.gap_extend}"]
    statistics = fit(scores, lengths, database.lengths, scheme, "fitted to the scores of this search")
    if statistics is None or ungapped is None or statistics.lambda_ < _MINIMUM_LAMBDA_SHARE * ungapped:
        of_search, statistics = statistics, _fit_random_sequences(scheme, threads)
        # Widely varying scores of related sequences would count as scores of random sequences and lower lambda.
        if of_search is not None and (statistics is None or of_search.lambda_ >= _MINIMUM_LAMBDA_SHARE * statistics.lambda_):
            statistics = of_search
        else:
            reasons.append("too few pairs of this search are unrelated" if of_search else "this search has too few pairs that differ")
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
