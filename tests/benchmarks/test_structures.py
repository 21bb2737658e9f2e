"""Results of the structure benchmark for rankings with known results."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.structures import Labels, folds_of, ranking_figures


def test_validation_folds_are_equal_and_split_no_superfamily():
    rng = np.random.default_rng(1)
    superfamily = np.array([f"a.{i}.1" for i in rng.integers(0, 90, 300)])
    folds = folds_of(superfamily)
    assert all(len(set(folds[superfamily == label].tolist())) == 1 for label in set(superfamily.tolist()))
    assert np.bincount(folds).max() - np.bincount(folds).min() <= 1


def test_ranking_figures_count_hits_before_the_first_other_fold():
    labels = Labels.of(["a.1.1.1", "a.1.1.1", "a.1.1.2", "a.1.2.1", "b.1.1.1", "a.1.1.1"])
    figures = ranking_figures({0: np.array([2, 1, 4, 3, 5])}, labels)
    assert figures == {"precision_at_1": 1.0, "family": 0.5, "superfamily": 1.0, "fold": 0.0}
    figures = ranking_figures({4: np.array([0, 1, 2, 3, 5])}, labels)
    assert all(math.isnan(value) for value in figures.values())
