"""The CPU and a GPU (through tests/shim) superpose pairs of chains identically, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.least_squares import BATCH, MOMENTS, MOVE, moments, near_moments, on_grid
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.superposition import analysis
from proteoscope.kernels.device import DeviceError, DeviceMemoryError, backend_module
from proteoscope.kernels.structure_layouts import FULL_STEPS, MAXIMUM_CELLS, SEARCH_STEPS, ChainPairs, FoundSuperpositions, SearchSteps
from tests.kernels.superposition_definition import bent_chains, tm_score
from tests.shim.chain_inputs import random_chain, random_pairs
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

with_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
SHORT = SearchSteps(12, 4, 2, 3, 1, 2, 40)


def superpose_pairs(device, pairs: ChainPairs, steps: SearchSteps = SEARCH_STEPS, first: int = 0, last: int | None = None):
    actual = FoundSuperpositions.empty(pairs)
    ends = list(backend_module(device, "superposition").ChainSuperposition(device, steps).superpose(pairs, actual, first, last))
    assert ends == sorted(ends)
    assert ends[-1] == (len(pairs.fixed) if last is None else last)
    return actual


def assert_same(actual: FoundSuperpositions, expected: FoundSuperpositions) -> None:
    for name, left, right in zip(FoundSuperpositions._fields, actual, expected, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)


@with_compiler
@pytest.mark.parametrize("lengths", [(1, 30), (30, 60)], ids=str)
def test_superposition_on_gpu_equals_cpu(lengths):
    pairs = random_pairs(np.random.default_rng(lengths[1]), 5 if lengths[1] == 30 else 3, *lengths)
    assert_same(superpose_pairs(ShimGpu(descending=True), pairs), superpose_pairs(Processor(2), pairs))


@with_compiler
def test_superposition_of_unlike_chains_on_gpu_equals_cpu():
    pairs = random_pairs(np.random.default_rng(11), 8, 30, 60)
    limited = SHORT._replace(minimum_sparse_percent=45, n_sparse_if_unlike=1, n_searched_if_unlike=1, minimum_start_percent=45)
    actual = superpose_pairs(Processor(2), pairs, limited)
    assert_same(superpose_pairs(ShimGpu(descending=True), pairs, limited), actual)
    differs = actual.scores.max(axis=1) != superpose_pairs(Processor(2), pairs, SHORT).scores.max(axis=1)
    assert 0 < np.count_nonzero(differs) < len(differs)


def test_superposition_search_is_full_for_similar_chains():
    rng = np.random.default_rng(12)
    chains = [random_chain(rng, 80) for _ in range(4)]
    chains += [chain + rng.normal(0.0, 1.0, chain.shape) for chain in chains]
    offsets, first = np.cumsum([0, *map(len, chains)]), np.arange(4)
    pairs = ChainPairs(np.concatenate(chains), offsets, first, first + 4, np.empty((0, 2), np.int32), np.zeros(5, np.int64))
    full = superpose_pairs(Processor(2), pairs, FULL_STEPS)
    assert full.scores.min() > 0.5
    assert_same(superpose_pairs(Processor(2), pairs, SEARCH_STEPS), full)


@with_compiler
def test_superposition_does_not_depend_on_thread_count():
    pairs, gpu = random_pairs(np.random.default_rng(3), 3, 66, 90), ShimGpu()
    expected = superpose_pairs(Processor(1), pairs, SHORT)
    assert_same(superpose_pairs(gpu, pairs, SHORT), expected)
    for threads in (64, 256):
        actual = FoundSuperpositions.empty(pairs)
        list(tuned(backend_module(gpu, "superposition").ChainSuperposition, threads=threads)(gpu, SHORT).superpose(pairs, actual))
        assert_same(actual, expected)


@with_compiler
def test_gpu_superposition_equals_cpu_beyond_shared_memory(monkeypatch):
    # The rows of every fourth residue fit, those of all do not: as on a GPU for 700 and 2,400 residues.
    monkeypatch.setattr("proteoscope.kernels.cuda.superposition._SHARED_BYTES", 136 << 10)
    rng = np.random.default_rng(4)
    for lengths in ((620, 640), (60, 1_200_000)):
        chains = [random_chain(rng, length) if length < 10_000 else np.tile(random_chain(rng, 60), (20_000, 1)) for length in lengths]
        start = np.stack([np.arange(40)] * 2, axis=1).astype(np.int32)
        offsets = np.cumsum([0, *map(len, chains)])
        pairs = ChainPairs(np.concatenate(chains), offsets, np.zeros(1, np.int64), np.ones(1, np.int64), start, np.array([0, 40]))
        assert_same(superpose_pairs(ShimGpu(), pairs, SHORT), superpose_pairs(Processor(1), pairs, SHORT))


@pytest.mark.parametrize("kernels", ["processor", pytest.param("gpu", marks=with_compiler)])
@pytest.mark.parametrize("seed", [1, 8, 34, 2326])  # the score of each depends on the limit of rounds
def test_superposition_search_stops_at_the_iteration_limit(seed, kernels):
    chain, bent = bent_chains(seed)
    # One chain is so long that nothing is aligned, so only the given pairs are searched.
    longer = np.tile(chain, (-(-MAXIMUM_CELLS // len(chain) ** 2), 1))
    start = np.stack([np.arange(len(chain))] * 2, axis=1).astype(np.int32)
    offsets = np.cumsum([0, len(bent), len(longer)])
    pairs = ChainPairs(
        np.concatenate([bent, longer]), offsets, np.zeros(1, np.int64), np.ones(1, np.int64), start, np.array([0, len(start)])
    )
    device = Processor(1) if kernels == "processor" else ShimGpu()
    actual = superpose_pairs(device, pairs, SHORT._replace(last_step=1000))
    np.testing.assert_allclose(actual.scores[0, 0], tm_score(bent, chain), rtol=1e-5)


def test_superposition_does_not_depend_on_other_pairs():
    pairs = random_pairs(np.random.default_rng(5), 6, 20, 60)
    every, some = superpose_pairs(Processor(2), pairs, SHORT), superpose_pairs(Processor(1), pairs, SHORT, 2, 4)
    np.testing.assert_array_equal(some.moves[2:4], every.moves[2:4])
    assert not some.moves[4:].any()
    assert not some.moves[:2].any()


@with_compiler
def test_gpu_superposition_leaves_other_pairs_unchanged():
    pairs = random_pairs(np.random.default_rng(6), 5, 20, 40)
    actual, every = superpose_pairs(ShimGpu(), pairs, SHORT, 2, 4), superpose_pairs(Processor(1), pairs, SHORT)
    for name in ("moves", "scores", "rmsd", "counts"):
        np.testing.assert_array_equal(getattr(actual, name)[2:4], getattr(every, name)[2:4])
        assert not getattr(actual, name)[4:].any()


@with_compiler
def test_superposition_analysis_bounds_the_work_of_the_gpu():
    for lengths in ((10, 40), (80, 120)):
        pairs, gpu = random_pairs(np.random.default_rng(7), 3, *lengths), ShimGpu()
        superpose_pairs(gpu, pairs, SHORT)
        counted = analysis(pairs, SHORT)
        assert gpu.bytes_in == 4 * counted.words_in or gpu.bytes_in == 4 * counted.words_in - gpu.bytes_in % 4
        assert gpu.bytes_out == 4 * counted.words_out
        assert gpu.n_launches == counted.launches
        assert counted.fewest_cells <= gpu.operations <= counted.most_cells


@with_compiler
def test_superposition_reports_a_lost_or_full_gpu():
    pairs = random_pairs(np.random.default_rng(8), 2, 10, 30)
    with pytest.raises(DeviceError, match="lost"):
        superpose_pairs(ShimGpu(failing_launch=0), pairs, SHORT)
    gpu = ShimGpu()
    gpu.free_bytes = lambda: 1000
    with pytest.raises(DeviceMemoryError, match="for a pair of chains"):
        superpose_pairs(gpu, pairs, SHORT)


def test_sums_of_coordinates_on_the_grid_do_not_depend_on_order():
    rng = np.random.default_rng(9)
    x, y = (np.ascontiguousarray((random_chain(rng, 900) * size).T) for size in (1.0, 5.0))
    on_grid(x, y)
    whole, reverse = (np.empty(MOMENTS * BATCH) for _ in range(2))
    zero, count = np.zeros(BATCH, np.int64), np.where(np.arange(BATCH) == 0, 900, 0)
    turned = np.ascontiguousarray(x[:, ::-1]), np.ascontiguousarray(y[:, ::-1])
    moments(x, y, zero, zero, count, whole)
    moments(*turned, zero, zero, count, reverse)
    np.testing.assert_array_equal(whole, reverse)
    moves, limits = np.zeros((MOVE + 1) * BATCH), np.full(BATCH, 8.0)
    moves[[0, 4 * BATCH, 8 * BATCH]] = 1.0
    totals = np.zeros((2, BATCH))
    near_moments(x, y, zero, zero, count, moves, 6.3, limits, whole, totals[0])
    near_moments(*turned, zero, zero, count, moves, 6.3, limits, reverse, totals[1])
    np.testing.assert_array_equal(whole, reverse)
    assert totals[0, 0] == totals[1, 0] > 0.0


def test_coordinate_grid_is_finer_than_structure_file_precision():
    rng = np.random.default_rng(10)
    for length in (5, 300, 3000):
        # Radii of gyration of folded chains are 2.2 n^0.38 Å.
        x, y = (rng.normal(size=(3, length)) * 2.2 * length**0.38 / np.sqrt(3.0) for _ in range(2))
        before = x.copy(), y.copy()
        on_grid(x, y)
        assert max(np.abs(x - before[0]).max(), np.abs(y - before[1]).max()) < 0.0005
