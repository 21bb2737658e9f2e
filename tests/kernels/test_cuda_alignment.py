"""Smith-Waterman scores of the CUDA kernels equal the recurrence. The kernels run on the CPU, through tests/shim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cuda.alignment_plan import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from tests.shim.alignment_inputs import N_CODES, plain_scores, random_sequences, scored, search_with
from tests.shim.shim_gpu import ShimGpu, missing_compiler

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

SMALL = {"shape": (4, 8), "threads": 32}
NUMBERS = pytest.mark.parametrize("numbers", [SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS], ids=["dpx", "half", "wide"])


def matrix(seed=1, least=-6, greatest=11):
    scores = np.random.default_rng(seed).integers(least, 4, (N_CODES, N_CODES))
    np.fill_diagonal(scores, np.random.default_rng(seed + 1).integers(4, greatest + 1, N_CODES))
    return scores


def sequences(seed, lengths):
    return random_sequences(np.random.default_rng(seed), lengths)


LENGTHS = [0, 1, 1, 2, 3, 5, 8, 8, 20, 31, 32, 33, 33, 47, 64, 65, 90]


@pytest.mark.parametrize(
    ("numbers", "shape"), [(SIXTEEN_BITS, (2, 16)), (SIXTEEN_BITS, (32, 8)), (HALF_PRECISION, (8, 8)), (THIRTY_TWO_BITS, (16, 8))]
)
def test_cuda_alignment_of_several_queries_equals_recurrence(numbers, shape):
    queries, subjects = sequences(2, [5, 70, 33, 1, 0, 140, 64]), sequences(3, LENGTHS)
    gpu = ShimGpu(descending=shape[0] == 8)
    actual, ends = scored(gpu, queries, subjects, matrix(), 11, 1, numbers=numbers, shape=shape, threads=64)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, matrix(), 11, 1))
    assert ends[-1] == len(subjects)
    assert f"NUMBERS={numbers}" in gpu.defines[0]


@NUMBERS
@pytest.mark.parametrize("length", [1, 31, 32, 33, 100])
def test_cuda_alignment_of_one_query_equals_recurrence(numbers, length):
    queries, subjects = sequences(length, [length]), sequences(4, LENGTHS)
    actual, _ = scored(ShimGpu(), queries, subjects, matrix(), 11, 1, numbers=numbers, **SMALL)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, matrix(), 11, 1))


@pytest.mark.parametrize("costs", [(0, 1), (0, 40), (3, 0)])
@pytest.mark.parametrize("n_queries", [1, 3])
def test_cuda_alignment_equals_recurrence_for_any_gap_costs(costs, n_queries):
    queries, subjects = sequences(5, [60, 41, 77][:n_queries]), sequences(6, LENGTHS)
    for seed in range(3):
        scores = matrix(seed, least=-17)
        actual, _ = scored(ShimGpu(), queries, subjects, scores, *costs, **SMALL)
        np.testing.assert_array_equal(actual, plain_scores(queries, subjects, scores, *costs))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    queries=st.lists(st.integers(0, 70), min_size=1, max_size=4),
    subjects=st.lists(st.integers(0, 50), max_size=20),
    numbers=st.sampled_from([SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS]),
)
def test_cuda_alignment_equals_recurrence_for_any_lengths(seed, queries, subjects, numbers):
    some_queries, some_subjects, scores = sequences(seed, queries), sequences(seed + 1, subjects), matrix(seed)
    actual, _ = scored(ShimGpu(), some_queries, some_subjects, scores, 11, 1, numbers=numbers, **SMALL)
    np.testing.assert_array_equal(actual, plain_scores(some_queries, some_subjects, scores, 11, 1))


@pytest.mark.parametrize(("numbers", "greatest", "passed"), [(HALF_PRECISION, 500, 2048), (SIXTEEN_BITS, 3000, 65535)])
@pytest.mark.parametrize("n_queries", [1, 2])
def test_cuda_alignment_recomputes_scores_that_overflow(numbers, greatest, passed, n_queries):
    subjects = sorted([np.full(n, 22, np.int8) for n in range(1, 41)] + sequences(8, [10, 30, 35]), key=len)
    queries = [np.full(40, 22, np.int8), *sequences(9, [44])][:n_queries]
    scores = matrix()
    scores[22, 22] = greatest
    gpu = ShimGpu()
    actual, _ = scored(gpu, queries, subjects, scores, 11, 1, numbers=numbers, **SMALL)
    expected = plain_scores(queries, subjects, scores, 11, 1)
    np.testing.assert_array_equal(actual, expected)
    assert expected.max() > passed > expected[0].min()
    assert {f"NUMBERS={numbers}", f"NUMBERS={THIRTY_TWO_BITS}"} <= {macro for macros in gpu.defines for macro in macros}


@pytest.mark.parametrize(("numbers", "most"), [(HALF_PRECISION, 2048), (SIXTEEN_BITS, 32767)])
def test_cuda_alignment_is_exact_near_the_overflow_limit(numbers, most):
    # Scores that differ by one, around the values at which half precision rounds and 16 bits overflow.
    n = 60
    queries, subjects = [np.array([0] * n, np.int8)], [np.array([0] * n + [1] * i, np.int8) for i in range(8)]
    for score in range(most // n - 1, most // n + 2):
        scores = np.full((N_CODES, N_CODES), -1)
        scores[0, 0], scores[0, 1] = score, 1
        longer = [np.concatenate((queries[0], np.zeros(i, np.int8))) for i in range(0, 30, 3)]
        actual, _ = scored(ShimGpu(), longer, subjects, scores, 5, 2, numbers=numbers, **SMALL)
        np.testing.assert_array_equal(actual, plain_scores(longer, subjects, scores, 5, 2))


@NUMBERS
def test_cuda_alignment_uses_32_bit_numbers_for_large_costs(numbers):
    queries, subjects = sequences(10, [50, 20]), sequences(11, LENGTHS)
    gpu, scores = ShimGpu(), matrix() * 10_000
    actual, _ = scored(gpu, queries, subjects, scores, 110_000, 10_000, numbers=numbers, **SMALL)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, scores, 110_000, 10_000))
    assert all(f"NUMBERS={THIRTY_TWO_BITS}" in macros for macros in gpu.defines if macros)


@pytest.mark.parametrize(("capability", "numbers"), [(75, THIRTY_TWO_BITS), (80, HALF_PRECISION), (89, HALF_PRECISION), (90, SIXTEEN_BITS)])
def test_cuda_alignment_number_format_fits_compute_capability(capability, numbers):
    gpu = ShimGpu()
    gpu.capability = capability
    queries, subjects = sequences(12, [20]), sequences(13, [5, 30])
    actual, _ = scored(gpu, queries, subjects, matrix(), 11, 1, **SMALL)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, matrix(), 11, 1))
    assert f"NUMBERS={numbers}" in gpu.defines[0]


@pytest.mark.parametrize("n_queries", [1, 3])
def test_cuda_alignment_in_default_launch_shape_is_exact(n_queries):
    queries, subjects = sequences(14, [150, 90, 40][:n_queries]), sequences(15, [40, 60, 60])
    actual, _ = scored(ShimGpu(), queries, subjects, matrix(), 11, 1)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, matrix(), 11, 1))


@pytest.mark.parametrize("order", ["by length", "shuffled"])
@pytest.mark.parametrize("n_queries", [1, 2])
def test_cuda_alignment_streams_a_database_larger_than_memory(order, n_queries):
    lengths = sorted(LENGTHS * 3)
    if order == "shuffled":
        np.random.default_rng(16).shuffle(lengths)
    queries, subjects = sequences(17, [66, 50][:n_queries]), sequences(18, lengths)
    actual, ends = scored(ShimGpu(), queries, subjects, matrix(), 11, 1, memory_bytes=5000, **SMALL)
    np.testing.assert_array_equal(actual, plain_scores(queries, subjects, matrix(), 11, 1))
    assert ends == sorted(ends) and len(set(ends)) > 4


def test_cuda_alignment_leaves_other_subjects_unchanged():
    queries, subjects = sequences(19, [40, 30]), sequences(20, LENGTHS)
    expected = plain_scores(queries, subjects, matrix(), 11, 1)
    for options in ({}, {"memory_bytes": 3000}):
        actual, ends = scored(ShimGpu(), queries, subjects, matrix(), 11, 1, 4, 12, **options, **SMALL)
        np.testing.assert_array_equal(actual[:, 4:12], expected[:, 4:12])
        assert (actual[:, :4] == -7).all() and (actual[:, 12:] == -7).all()
        assert ends[-1] == 12


def test_cuda_alignment_search_can_be_used_several_times():
    subjects, gpu = sequences(21, LENGTHS), ShimGpu()
    search = search_with(gpu, subjects, **SMALL)
    for seed, costs in ((22, (11, 1)), (23, (0, 1)), (24, (11, 1))):
        queries = sequences(seed, [30, 44, 21])
        out = np.zeros((3, len(subjects)), np.int32)
        list(search.score(queries, matrix(seed), *costs, out, 0, len(subjects)))
        np.testing.assert_array_equal(out, plain_scores(queries, subjects, matrix(seed), *costs))


def test_cuda_alignment_accepts_no_queries_and_no_subjects():
    subjects = sequences(25, [0, 3])
    for queries, some in (([], subjects), ([np.zeros(0, np.int8)], subjects), (sequences(26, [9]), []), (sequences(26, [9]), subjects[:1])):
        actual, _ = scored(ShimGpu(), queries, some, matrix(), 11, 1, **SMALL)
        assert actual.shape == (len(queries), len(some)) and (actual == 0).all()


def test_cuda_alignment_stops_when_closed():
    queries, subjects, gpu = sequences(27, [66]), sequences(28, sorted(LENGTHS * 3)), ShimGpu()
    out = np.zeros((1, len(subjects)), np.int32)
    search = search_with(gpu, subjects, memory_bytes=5000, **SMALL)
    work = search.score(queries, matrix(), 11, 1, out, 0, len(subjects))
    assert next(work) == 0
    n = gpu.n_launches
    work.close()
    assert gpu.n_launches == n and (out == 0).all()


def test_cuda_alignment_fails_without_memory_for_one_sequence():
    queries, subjects = sequences(29, [20]), sequences(30, [400])
    with pytest.raises(DeviceMemoryError, match="not enough for one sequence"):
        scored(ShimGpu(), queries, subjects, matrix(), 11, 1, memory_bytes=3000, **SMALL)


def test_cuda_alignment_on_a_lost_gpu_writes_finished_subjects():
    queries, subjects = sequences(31, [66]), sequences(32, sorted(LENGTHS * 3))
    expected, out = plain_scores(queries, subjects, matrix(), 11, 1), np.full((1, len(subjects)), -7, np.int32)
    search = search_with(ShimGpu(failing_launch=9), subjects, memory_bytes=5000, **SMALL)
    ends = []
    with pytest.raises(DeviceError, match="lost"):
        for end in search.score(queries, matrix(), 11, 1, out, 0, len(subjects)):
            ends.append(end)  # noqa: PERF402 - values yielded before the error count
    done = ends[-1]
    assert 0 < done < len(subjects)
    np.testing.assert_array_equal(out[:, :done], expected[:, :done])
    assert (out[:, done:] == -7).all()
