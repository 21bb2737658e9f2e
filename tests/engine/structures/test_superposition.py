"""Superpositions: least squares against the singular value decomposition, TM-scores by definition, recovered alignments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.structures.superposition import superpose, superpose_many, tm_scores
from tests.engine.structures.examples import helix

NONE = np.empty((0, 2), np.int32)


def by_svd(fixed, mobile):
    """Return the superposition by Kabsch's formulas."""
    a, b = mobile - mobile.mean(axis=0), fixed - fixed.mean(axis=0)
    u, _, v = np.linalg.svd(a.T @ b)
    turn = np.diag([1.0, 1.0, np.sign(np.linalg.det(v.T @ u.T))])
    rotation = v.T @ turn @ u.T
    return rotation, float(np.sqrt((((a @ rotation.T) - b) ** 2).sum() / len(a)))


def walk(n, seed=0):
    """Return a chain without structure."""
    steps = np.random.default_rng(seed).normal(size=(n, 3))
    return np.cumsum(3.8 * steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 50, 400])
def test_superposition_equals_singular_value_decomposition(n):
    rng = np.random.default_rng(n)
    for flat in (None, 2, 1):
        fixed, mobile = rng.normal(size=(n, 3)) * 20 + 100, rng.normal(size=(n, 3)) * 20
        if flat is not None:
            mobile[:, flat:] = 0.0
        rotation, translation, rmsd = superpose(fixed, mobile)
        assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)
        assert np.linalg.det(rotation) == pytest.approx(1.0)
        assert rmsd == pytest.approx(by_svd(fixed, mobile)[1], abs=1e-6)
        moved = mobile @ rotation.T + translation
        assert np.sqrt(((moved - fixed) ** 2).sum() / n) == pytest.approx(rmsd, abs=1e-9)


def test_superposition_does_not_reflect_a_mirror_image():
    fixed = walk(30)
    mirrored = fixed * [1, 1, -1]
    rotation, _, rmsd = superpose(fixed, mirrored)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert rmsd == pytest.approx(by_svd(fixed, mirrored)[1], abs=1e-6)
    assert rmsd > 1.0


def test_tm_scores_equal_the_definition():
    query = walk(60)
    target = Rotation.random(random_state=1).apply(query[5:45]) + 7.0
    pairs = np.stack([np.arange(5, 45), np.arange(40)], axis=1)
    # All pairs coincide: each counts 1.
    assert tm_scores(query, target, pairs) == pytest.approx((40 / 60, 1.0))
    corrupt = target + np.random.default_rng(2).normal(size=target.shape) * 2.0
    by_query, by_target = tm_scores(query, corrupt, pairs)
    rotation, translation, _ = superpose(query[5:45], corrupt)
    distance = np.linalg.norm(corrupt @ rotation.T + translation - query[5:45], axis=1)
    for score, length in ((by_query, 60), (by_target, 40)):
        scale = 1.24 * (length - 15) ** (1 / 3) - 1.8
        of_least_squares = (1 / (1 + (distance / scale) ** 2)).sum() / length
        # The best superposition is not worse than least squares, and near it here.
        assert of_least_squares - 1e-9 <= score < of_least_squares + 0.03


def test_superposition_finds_a_copy_without_initial_alignment():
    query = np.concatenate([helix(20), walk(40, 5) + 30.0, helix(25) + np.array([0.0, 20.0, 0.0])])
    target = Rotation.random(random_state=4).apply(query[10:80]) - 50.0
    superpositions = superpose_many(query, target, np.array([0, 70]), NONE, np.zeros(2, np.int64), threads=1)
    assert superpositions.tm_score_target[0] == pytest.approx(1.0, abs=1e-6)
    assert superpositions.tm_score_query[0] == pytest.approx(70 / 85, abs=1e-6)
    assert superpositions.rmsd[0] < 1e-4, "above the grid of the search, 2^-15 Å or finer"
    assert superpositions.pairs.tolist() == [[i + 10, i] for i in range(70)]
    assert np.allclose(superpositions.moved(0, target), query[10:80], atol=1e-4)


def test_superposition_scores_agree_with_the_superposed_pairs():
    rng = np.random.default_rng(3)
    query = walk(90)
    targets = [query[10:70] + rng.normal(size=(60, 3)), walk(120, 8), query[::1] + rng.normal(size=(90, 3)) * 0.5, walk(5, 2)]
    offsets = np.cumsum([0, *map(len, targets)])
    superpositions = superpose_many(query, np.concatenate(targets), offsets, NONE, np.zeros(5, np.int64), threads=2)
    assert superpositions.pair_offsets[-1] == len(superpositions.pairs)
    for k, target in enumerate(targets):
        pairs = superpositions.pairs[superpositions.pair_offsets[k] : superpositions.pair_offsets[k + 1]]
        assert len(pairs) == superpositions.aligned_length[k]
        assert (np.diff(pairs, axis=0) > 0).all()
        apart = np.linalg.norm(superpositions.moved(k, target)[pairs[:, 1]] - query[pairs[:, 0]], axis=1)
        assert np.sqrt((apart**2).mean()) == pytest.approx(superpositions.rmsd[k], abs=1e-9)
        assert np.linalg.det(superpositions.rotation[k]) == pytest.approx(1.0)
        best = tm_scores(query, target, pairs)
        assert superpositions.tm_score_query[k] == pytest.approx(best[0], abs=0.005)
        assert superpositions.tm_score_target[k] == pytest.approx(best[1], abs=0.005)
    alone = superpose_many(query, targets[1], np.array([0, 120]), NONE, np.zeros(2, np.int64), threads=1)
    assert alone.tm_score_query[0] == superpositions.tm_score_query[1]


def test_superpositions_are_equal_for_any_threads_and_batch():
    rng = np.random.default_rng(9)
    query = np.concatenate([helix(30), walk(60, 5) + 20.0])
    targets = [walk(n, n) if n % 3 else query[: n // 2] + rng.normal(size=(min(len(query), n // 2), 3)) for n in range(5, 160, 7)]
    offsets = np.cumsum([0, *map(len, targets)])
    starts = [np.stack([np.arange(min(5, len(target)))] * 2, axis=1) if k % 2 else NONE for k, target in enumerate(targets)]
    begun = np.cumsum([0, *map(len, starts)])
    whole = [superpose_many(query, np.concatenate(targets), offsets, np.concatenate(starts), begun, threads=threads) for threads in (1, 3)]
    for k, (target, start) in enumerate(zip(targets, starts, strict=True)):
        alone = superpose_many(query, target, np.array([0, len(target)]), start, np.array([0, len(start)]), threads=1)
        for superposition in whole:
            assert superposition.tm_score_query[k] == alone.tm_score_query[0]
            assert superposition.rmsd[k] == alone.rmsd[0]
            assert (superposition.rotation[k] == alone.rotation[0]).all()
            assert (superposition.translation[k] == alone.translation[0]).all()
            assert (superposition.pairs[superposition.pair_offsets[k] : superposition.pair_offsets[k + 1]] == alone.pairs).all()


def test_reported_transformation_gives_the_reported_tm_score():
    rng = np.random.default_rng(11)
    query = np.concatenate([helix(40), walk(50, 5) + 20.0])
    for n, noise in ((60, 0.5), (90, 2.0), (140, 4.0)):
        target = Rotation.random(random_state=n).apply(np.concatenate([query, walk(50, 8)])[:n] + rng.normal(size=(n, 3)) * noise) + 300.0
        superpositions = superpose_many(query, target, np.array([0, n]), NONE, np.zeros(2, np.int64), threads=1)
        moved, shorter = superpositions.moved(0, target), min(n, len(query))
        apart = np.linalg.norm(moved[superpositions.pairs[:, 1]] - query[superpositions.pairs[:, 0]], axis=1)
        scale = 1.24 * (shorter - 15) ** (1 / 3) - 1.8
        score = superpositions.tm_score_target[0] if n <= len(query) else superpositions.tm_score_query[0]
        assert (1 / (1 + (apart / scale) ** 2)).sum() / shorter == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("n", [1, 3, 30])
def test_tm_score_is_between_zero_and_one_for_any_lengths(m, n):
    superpositions = superpose_many(walk(m, 1), walk(n, 2), np.array([0, n]), NONE, np.zeros(2, np.int64), threads=1)
    assert 0 <= superpositions.tm_score_query[0] <= 1 + 1e-9
    assert 0 <= superpositions.tm_score_target[0] <= 1 + 1e-9


@pytest.mark.parametrize("pairs", [[[0, 0], [0, 1]], [[0, 0], [9, 1]], [[-1, 0]], [[0, 8]]])
def test_superposition_rejects_invalid_pairs(pairs):
    with pytest.raises(ValueError, match="do not ascend"):
        superpose_many(walk(9), walk(8), np.array([0, 8]), np.array(pairs), np.array([0, len(pairs)]), threads=1)


def test_superposition_rejects_non_finite_coordinates():
    target = walk(8)
    target[3] = np.nan
    with pytest.raises(ValueError, match="not numbers"):
        superpose_many(walk(9), target, np.array([0, 8]), NONE, np.zeros(2, np.int64))


def test_superposition_stops_at_cancel():
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        superpose_many(walk(9), walk(8), np.array([0, 8]), NONE, np.zeros(2, np.int64), threads=1, progress=progress)
