"""Expected numbers of sequences with each score, against the definition and random sequences."""

import numpy as np
import pytest

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.hits import expected_counts
from proteoscope.engine.sequences.statistics import ScoreStatistics, random_sequences, tabulated


def test_expected_score_counts_equal_the_definition(scheme):
    statistics = tabulated(scheme())
    lengths = np.sort(np.random.default_rng(2).integers(30, 900, 40))
    scores, counts = expected_counts(statistics, 250, lengths)
    assert scores.tolist() == list(range(1, len(scores) + 1))

    def passed(score):
        """Return the sum over all subjects individually."""
        e_values = [statistics.e_values(np.array([score]), 250, np.array([length]), int(length))[0] for length in lengths]
        return sum(1 - np.exp(-e_value) for e_value in e_values)

    # With so few subjects, every one is its own group.
    for score in (20, 30, 40, 55):
        assert counts[score - 1] == pytest.approx(passed(score) - passed(score + 1), rel=1e-9, abs=1e-12)
    assert passed(len(scores)) >= 1e-3 > passed(len(scores) + 1)


def test_expected_score_counts_agree_with_random_sequences(scheme):
    used = scheme()
    rng = np.random.default_rng(4)
    lengths = np.sort(rng.integers(100, 600, 3000))
    subjects, offsets = random_sequences(lengths, 5)
    query, _ = random_sequences([300], 6)
    result = score_all([query], subjects, offsets, used, 1, Progress())[0]
    scores, counts = expected_counts(tabulated(used), 300, lengths)
    assert counts.sum() == pytest.approx(len(lengths), rel=0.02)
    mean = (scores * counts).sum() / counts.sum()
    assert mean == pytest.approx(result.mean(), abs=1.5)
    for bound in (35, 40, 45, 50):
        assert counts[scores >= bound].sum() == pytest.approx((result >= bound).sum(), rel=0.35, abs=8)


def test_expected_score_counts_are_empty_without_statistics(scheme):
    unknown = ScoreStatistics(1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "none")
    for statistics, length, lengths in (
        (unknown, 100, np.array([50])),
        (tabulated(scheme()), 0, np.array([50])),
        (tabulated(scheme()), 100, np.array([0, 0])),
    ):
        scores, counts = expected_counts(statistics, length, lengths)
        assert len(scores) == len(counts) == 0
