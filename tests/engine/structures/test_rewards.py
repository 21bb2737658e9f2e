"""Descriptors and rewards against the plain formulas of Mrozek et al. (2014), equations 3, 6 and 12 to 19."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.descriptors import ALPHABETS, alphabets, describe, find_elements
from proteoscope.engine.structures.rewards import GapCosts, Weights, published_rewards, sensitive_rewards, sensitive_tables
from proteoscope.kernels.cpu.structure_pairs import align_pair, element_score
from proteoscope.kernels.structure_layouts import ELEMENT_UNITS, PADDING
from tests.engine.structures.examples import codes_of


def chains_of(*positions: np.ndarray, seed: int = 0) -> Chains:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum([len(position) for position in positions]))).astype(np.int64)
    n = int(offsets[-1])
    whole = np.zeros(n, np.int32)
    return Chains(
        tuple(f"c{i}" for i in range(len(positions))),
        ("",) * len(positions),
        offsets,
        np.concatenate(positions).astype(np.float32),
        rng.integers(0, 26, n).astype(np.int8),
        np.repeat(rng.integers(0, 3, n // 4 + 1), 4)[:n].astype(np.uint8),
        np.full(n, np.nan, np.float32),
        whole,
        np.zeros(n, np.uint8),
        whole,
    )


def walk(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a chain whose residues are about 3.8 Å apart, with occasional breaks."""
    steps = rng.normal(size=(n, 3))
    steps *= (rng.normal(3.8, 0.05, n) + (rng.random(n) < 0.03) * rng.uniform(1, 30, n))[:, None] / np.linalg.norm(steps, axis=1)[:, None]
    return np.cumsum(steps, axis=0)


def plain_published(chains: Chains, a: int, b: int, weights: Weights, gaps: tuple[float, float]) -> float:
    """Return phase 2 of two chains as published, in plain Python and real numbers."""
    matrix = read_matrix("BLOSUM62").scores
    low, high = int(matrix.min()), int(matrix.max())

    def descriptors(i: int) -> list[tuple[float, float, int, int]]:
        rows = chains.rows(i)
        atoms = chains.position[rows].astype(float)
        steps = [atoms[k + 1] - atoms[k] for k in range(len(atoms) - 1)]
        lengths = [float(np.linalg.norm(step)) for step in steps]
        cosines = [float(s @ t) / (p * q) for s, t, p, q in zip(steps, steps[1:], lengths, lengths[1:], strict=False)]
        angles = [math.acos(max(-1.0, min(1.0, cosine))) for cosine in cosines]
        # Values missing at the end of a chain are those before.
        lengths, angles = [*lengths, lengths[-1]], [*angles, angles[-1], angles[-1]]
        return list(zip(lengths, angles, chains.secondary[rows].tolist(), chains.residue[rows].tolist(), strict=True))

    def reward(first: tuple[float, float, int, int], second: tuple[float, float, int, int]) -> float:
        similarity = 0.5 if 0 in (first[2], second[2]) else float(first[2] == second[2])
        return (
            weights.length * math.exp(-((first[0] - second[0]) ** 2))
            + weights.angle * math.exp(-((first[1] - second[1]) ** 2))
            + weights.sse * similarity
            + weights.residue * (int(matrix[first[3], second[3]]) - low) / (high - low)
        )

    query, target = descriptors(a), descriptors(b)
    best, h_row, f_row = 0.0, [0.0] * (len(target) + 1), [-math.inf] * (len(target) + 1)
    for element in query:
        diagonal, e = 0.0, -math.inf
        for j, other in enumerate(target, 1):
            f = max(f_row[j] - gaps[1], h_row[j] - gaps[0])
            e = max(e - gaps[1], h_row[j - 1] - gaps[0])
            h = max(0.0, diagonal + reward(element, other), e, f)
            diagonal, h_row[j], f_row[j] = h_row[j], h, f
            best = max(best, h)
    return best


@pytest.mark.parametrize("gaps", [(1.0, 0.5), (10.0, 1.0), (3.0, 3.0)])
@pytest.mark.parametrize("weights", [Weights(), Weights(1, 2, 1, 3), Weights(1, 1, 1, 0)])
def test_published_structure_scores_equal_plain_formulas(gaps, weights):
    rng = np.random.default_rng(int(gaps[0]))
    chains = chains_of(*(walk(rng, n) for n in (4, 5, 37, 80, 120)))
    arrays = describe(chains)
    for a, b in ((0, 1), (2, 3), (4, 3), (4, 4)):
        rewards, unit = published_rewards(arrays.chain(a), weights, GapCosts(*gaps, 0.5, 0.25))
        score, _ = align_pair(arrays.chain(a), arrays.chain(b), rewards)
        assert score / unit == pytest.approx(plain_published(chains, a, b, weights, gaps), rel=1e-4)


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3000)), min_size=1, max_size=12))
def test_secondary_structure_element_reward_equals_equation_12(lengths):
    types, sizes = np.array([t for t, _ in lengths], np.uint8), np.array([n for _, n in lengths], np.int32)
    for i in range(len(types)):
        reward = element_score(types[:1], sizes[:1], types[i : i + 1], sizes[i : i + 1], 0, 0)
        similarity = 0.5 if 0 in (types[0], types[i]) else float(types[0] == types[i])
        expected = similarity - similarity * abs(int(sizes[0]) - int(sizes[i])) / (int(sizes[0]) + int(sizes[i]))
        assert reward / ELEMENT_UNITS == pytest.approx(expected, abs=1e-5)


def test_secondary_structure_elements_are_runs_within_a_chain():
    rng = np.random.default_rng(4)
    lengths = [400, 1, 300, 7, 90_000]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    secondary = np.repeat(rng.integers(0, 3, 3000), rng.integers(1, 70, 3000))[: offsets[-1]].astype(np.uint8)
    secondary[offsets[4] :] = 1
    elements = find_elements(secondary, offsets)
    for i in range(len(lengths)):
        some = slice(int(elements.offsets[i]), int(elements.offsets[i + 1]))
        assert np.array_equal(np.repeat(elements.type[some], elements.length[some]), secondary[offsets[i] : offsets[i + 1]])
        assert (elements.type[some][1:] != elements.type[some][:-1]).all()
    assert elements.length[-1] == 90_000


def test_structure_descriptors_detect_mirroring_but_not_motion():
    rng = np.random.default_rng(5)
    chain = walk(rng, 90)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    arrays = describe(chains_of(chain, chain @ turn.T + 20.0, chain * [1, 1, -1]))
    first, moved, mirrored = (arrays.chain(i) for i in range(3))
    for alphabet in ("conformation", "neighbour", "separation", "burial"):
        same = codes_of(first, alphabet) == codes_of(moved, alphabet)
        assert same.mean() > 0.97, alphabet  # float32: a code may fall on the other side of a bound
    assert (codes_of(first, "conformation") != codes_of(mirrored, "conformation")).mean() > 0.3
    assert np.abs(first.length.astype(int) - moved.length).max() <= 1 and np.abs(first.angle.astype(int) - moved.angle).max() <= 2
    assert np.abs(first.angle.astype(int) - mirrored.angle).max() <= 2


def test_structure_descriptor_codes_equal_separation_and_burial():
    rng = np.random.default_rng(6)
    chain = walk(rng, 60) * 0.5
    arrays, using = describe(chains_of(chain)), alphabets()
    for alphabet in ALPHABETS:
        assert codes_of(arrays, alphabet).max() < PADDING
    distances = np.linalg.norm(chain[:, None].astype(np.float32) - chain[None].astype(np.float32), axis=2)
    apart = np.abs(np.arange(60)[:, None] - np.arange(60)) >= 4
    near = ((distances < 14) & apart).sum(axis=1)
    assert (codes_of(arrays, "burial") == (using.burials[None] < near[:, None]).sum(axis=1)).mean() > 0.97


@pytest.mark.parametrize("n", [4, 5, 6])
def test_structure_descriptors_accept_the_shortest_chains(n):
    arrays = describe(chains_of(walk(np.random.default_rng(n), n)))
    assert len(arrays.state) == n and arrays.lengths.tolist() == [n]


def test_structure_rewards_fit_in_32_bits_for_any_length():
    arrays = describe(chains_of(walk(np.random.default_rng(7), 30_000 // 10)))
    long = arrays._replace(state=np.tile(arrays.state, 20), length=np.tile(arrays.length, 20), angle=np.tile(arrays.angle, 20))
    for weights in (Weights(), Weights(10, 10, 10, 10)):
        for rewards, unit in (
            published_rewards(long, weights, GapCosts(1000, 1000, 1000, 1000)),
            sensitive_rewards(long, sensitive_tables(), weights, GapCosts(1000, 1000, 1000, 1000)),
        ):
            most = rewards.tables.max(axis=(1, 2)).sum() + rewards.of_length.max(initial=0) + rewards.of_angle.max(initial=0)
            assert len(long.state) * int(most) < 1 << 30 and unit > 0 and rewards.gap_first <= 1 << 30


def test_shipped_reward_tables_are_symmetric_and_reward_equality():
    learned = sensitive_tables()
    assert set(learned.tables) == set(learned.weights) and set(learned.tables) <= set(ALPHABETS)
    for name, table in learned.tables.items():
        np.testing.assert_allclose(table, table.T, atol=1e-9)
        used = np.flatnonzero(table.any(axis=1))
        assert np.mean(np.diag(table)[used]) > 0.3, name
