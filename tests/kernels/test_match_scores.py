"""Match scores on the CPU and on a GPU (through tests/shim), against the definition."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cpu.mass_lists import counting_candidates
from proteoscope.kernels.cpu.match_score_variants import score_by_lists, score_by_vector
from proteoscope.kernels.cpu.match_scores import MatchScores
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import match_scores as cuda
from proteoscope.kernels.device import DeviceMemoryError, UnsupportedSearchError, stop_flag
from proteoscope.kernels.match_score_layouts import MassLists, MassRows, counting
from tests.shim.mass_inputs import lists_of, plain_best, plain_score, plain_scores, random_lists, scored_on, searched_on
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import limited, tuned

ALWAYS = {"lookups_per_indexed_mass": -1.0}
INDEX, VECTOR, FINE = {**ALWAYS, "maximum_starts": 1e9}, {"lookups_per_indexed_mass": 1e9}, {**ALWAYS, "maximum_starts": 0.0}
SMALL = {**INDEX, "candidates_of_chunk": 7}
FORMS = pytest.mark.parametrize("options", [INDEX, VECTOR, FINE, SMALL], ids=["index", "vector", "no index", "small chunks"])
POSTINGS, BITS = {"share_for_bits": 2.0}, {"share_for_bits": -1.0}
BOTH_ROWS = pytest.mark.parametrize("rows", [POSTINGS, BITS], ids=["postings", "bits"])
EMPTY = lists_of([], [])
NEEDS_COMPILER = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")


def test_match_score_equals_the_example_of_the_thesis():
    """The example is figure 3.3: {2, 4, 9, 10} and {2, 4, 6, 7}; the last mass of each is the precursor."""
    assert plain_score([2, 4, 9], 10, [2, 4, 6], 7) == 3
    assert searched_on(Processor(1), lists_of([[2, 4, 6]], [7]), lists_of([[2, 4, 9]], [10]), (0, 5), 1) == ([[0]], [[3]])


@cache
def random_searches(window):
    """Candidates, queries and, for each number of hits, the best candidates by definition."""
    made = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        candidates, queries = random_lists(rng, 60, beyond=seed % 3), random_lists(rng, 12, in_order=False, beyond=seed % 2 * 3)
        made.append((candidates, queries, {top: plain_best(queries, candidates, window, top) for top in (1, 5, 100)}))
    return made


@FORMS
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("window", [(-50, 100), (0, 0), (-500, 500), (30, 20)], ids=str)
def test_match_score_best_candidates_equal_definition(options, threads, window):
    kind = tuned(MatchScores, **options, nanoseconds_of_partition=1e3)
    for candidates, queries, best in random_searches(window):
        for top, expected in best.items():
            assert searched_on(Processor(threads), candidates, queries, window, top, kind) == expected


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_match_score_best_random_candidates_equal_definition(data):
    def lists(ordered):
        precursors = data.draw(st.lists(st.integers(-1, 9), max_size=6))
        masses = [sorted(data.draw(st.sets(st.integers(-3, 12)))) for _ in precursors]
        return lists_of(masses, sorted(precursors) if ordered else precursors)

    candidates, queries = lists(True), lists(False)
    window, top = (data.draw(st.integers(-9, 9)), data.draw(st.integers(-9, 9))), data.draw(st.integers(1, 4))
    expected = plain_best(queries, candidates, window, top)
    for options in (INDEX, VECTOR, {**INDEX, "candidates_of_chunk": 2}):
        assert searched_on(Processor(1), candidates, queries, window, top, tuned(MatchScores, **options)) == expected


def test_match_scores_by_lists_and_by_vector_equal_definition():
    rng, stop = np.random.default_rng(3), stop_flag()
    candidates, queries = random_lists(rng, 200, most=3000, longest=80), random_lists(rng, 20, most=3000, longest=300, in_order=False)
    expected = np.array(plain_scores(queries, candidates))
    actual = np.zeros((2, 20, 200), np.int32)
    for q in range(20):
        score_by_lists(queries, q, candidates, 0, 200, actual[0, q], stop)
        score_by_vector(queries, q, candidates, 0, 200, actual[1, q], stop)
    np.testing.assert_array_equal(actual[0], expected)
    np.testing.assert_array_equal(actual[1], expected)


# The CPU kernels are compiled for each type.
@pytest.mark.parametrize("dtype", [np.uint16, *(pytest.param(small, marks=pytest.mark.long) for small in (np.uint8, np.uint32))])
def test_match_scores_equal_definition_with_and_without_index(dtype):
    rng = np.random.default_rng(3)
    candidates, queries = random_lists(rng, 200, most=3000, longest=80), random_lists(rng, 20, most=3000, longest=300, in_order=False)
    expected = np.array(plain_scores(queries, candidates))
    for options in (INDEX, FINE):
        np.testing.assert_array_equal(scored_on(Processor(2), candidates, queries, dtype, tuned(MatchScores, **options)), expected)


def test_match_scores_ignore_precursor_masses():
    candidates = lists_of([[3, 10], [3, 9], [4, 8]], [10, 10, 12])
    queries = lists_of([[3, 10, 12], [3, 10]], [12, 10])
    assert scored_on(Processor(1), candidates, queries, np.uint16).tolist() == plain_scores(queries, candidates) == [[1, 1, 0], [2, 2, 0]]


def test_match_score_candidate_window_includes_both_ends():
    candidates = lists_of([[1]] * 5, [10, 20, 30, 40, 50])
    queries = lists_of([[1]], [30])
    assert searched_on(Processor(1), candidates, queries, (-10, 10), 5)[0] == [[2, 1, 3, -1, -1]]  # the unshifted one matches twice
    assert searched_on(Processor(1), candidates, queries, (-9, 9), 5)[0] == [[2, -1, -1, -1, -1]]
    assert searched_on(Processor(1), candidates, queries, (1, 0), 5)[0] == [[-1] * 5]


def test_match_scores_accept_masses_of_31_bits():
    masses = np.unique(np.random.default_rng(4).integers(0, 1 << 30, 100)).tolist()
    candidates = lists_of([masses, masses[::2]], [(1 << 31) - 1] * 2)
    queries = lists_of([masses], [(1 << 31) - 1])
    expected = [[2 * len(masses), 2 * len(masses[::2])]]
    for options in (INDEX, VECTOR):
        assert searched_on(Processor(1), candidates, queries, (0, 0), 2, tuned(MatchScores, **options)) == ([[0, 1]], expected)


def test_match_scores_above_255_need_16_bits():
    lists = lists_of([range(300), range(0, 300, 2)], [400, 401])
    assert scored_on(Processor(1), lists, lists, np.uint16).tolist() == plain_scores(lists, lists)
    assert searched_on(Processor(1), lists, lists, (0, 0), 1) == ([[0], [1]], [[600], [300]])
    with pytest.raises(ValueError, match="do not fit into uint8"):
        scored_on(Processor(1), lists, lists, np.uint8)


@FORMS
def test_match_scores_accept_empty_inputs(options):
    some, kind = lists_of([[1], []], [5, 5]), tuned(MatchScores, **options)
    assert searched_on(Processor(1), EMPTY, some, (-9, 9), 2, kind) == ([[-1, -1]] * 2, [[0, 0]] * 2)
    assert searched_on(Processor(1), some, EMPTY, (-9, 9), 2, kind) == ([], [])
    assert searched_on(Processor(1), lists_of([[], []], [5, 5]), some, (-9, 9), 2, kind) == ([[-1, -1]] * 2, [[0, 0]] * 2)
    assert scored_on(Processor(1), EMPTY, some, np.uint16).shape == (2, 0)


@FORMS
def test_match_scores_leave_rows_of_other_queries_unchanged(options):
    rng = np.random.default_rng(5)
    candidates, queries = random_lists(rng, 50), random_lists(rng, 9, in_order=False)
    expected = plain_best(queries, candidates, (-100, 100), 3)
    actual = searched_on(Processor(2), candidates, queries, (-100, 100), 3, tuned(MatchScores, **options), first=2, last=7)
    for mine, its in zip(actual, expected, strict=True):
        assert mine[2:7] == its[2:7]
        assert mine[:2] + mine[7:] == [[-7] * 3] * 4


def test_match_scores_reject_candidates_not_sorted_by_precursor():
    with pytest.raises(ValueError, match="ascending order of precursor"):
        MatchScores(Processor(1), lists_of([[1], [1]], [5, 4]))


@pytest.mark.parametrize("threads", [1, 2, 7, 100])
@pytest.mark.parametrize("at", [0, 1, 5, 10, 19])
def test_candidates_are_checked_by_any_number_of_threads(threads, at):
    lists = [[i, i + 3] for i in range(20)]
    candidates = lists_of(lists, [30] * 20)
    assert counting_candidates(candidates, threads) == (candidates, 2)
    lists[at] = [-2, 4, 5, 29, 30, 31]
    restricted, longest = counting_candidates(lists_of(lists, [30] * 20), threads)
    assert longest == 3 and restricted.masses[restricted.offsets[at] : restricted.offsets[at + 1]].tolist() == [4, 5, 29]
    assert len(restricted.masses) == 41
    if at > 0:
        with pytest.raises(ValueError, match="ascending order of precursor"):
            counting_candidates(lists_of(lists, [30] * at + [29] * (20 - at)), threads)


def test_mass_rows_number_distinct_masses_in_ascending_order():
    lists = lists_of([[2, 70, 128]], [300])
    assert counting(lists) is lists
    bits = np.zeros(5, np.uint64)
    for mass in lists.masses.tolist():
        bits[mass // 64] |= np.uint64(1 << mass % 64)
    rows = MassRows.from_bits(bits)
    assert (rows.n, rows.before.tolist()) == (3, [0, 1, 2, 3, 3, 3])


@FORMS
def test_match_scores_stop_immediately_when_closed(options):
    rng = np.random.default_rng(6)
    lists = np.sort(rng.choice(5000, (20_000, 40)), axis=1).astype(np.int32)
    every = MassLists(np.arange(20_001, dtype=np.int64) * 40, lists.ravel(), np.full(20_000, 6000, np.int32))
    kind = tuned(MatchScores, **options, nanoseconds_of_partition=1e6)
    candidate, score = np.zeros((20_000, 1), np.int64), np.zeros((20_000, 1), np.int32)
    work = kind(Processor(2), every).search(every, (0, 0), 1, candidate, score)
    next(work)
    work.close()
    computed = candidate.copy()
    assert computed[-1, 0] == -1, "the last query had been begun"
    time.sleep(0.05)  # a thread that still computed would continue
    np.testing.assert_array_equal(candidate, computed)


@NEEDS_COMPILER
@BOTH_ROWS
@pytest.mark.parametrize(
    "options", [{}, {"candidates_of_chunk": 16, "queries_of_batch": 3, "passes_between_checks": 4}], ids=["in one chunk", "in chunks"]
)
@pytest.mark.parametrize("longest", [30, 200], ids=["8 bits", "16 bits"])
def test_gpu_match_score_best_candidates_equal_definition(rows, options, longest):
    options = rows | options
    for seed in range(2):
        rng = np.random.default_rng(seed)
        candidates = random_lists(rng, 60, beyond=seed % 3, longest=longest)
        queries = random_lists(rng, 8, in_order=False, beyond=seed % 2 * 4, longest=200)
        for window, top in (((-50, 100), 5), ((-500, 500), 1), ((-500, 500), 100), ((0, 0), 3)):
            expected = plain_best(queries, candidates, window, top)
            gpu = ShimGpu(descending=bool(seed % 2))
            assert searched_on(gpu, candidates, queries, window, top, tuned(cuda.MatchScores, **options)) == expected
        expected = np.array(plain_scores(queries, candidates))
        for dtype in (np.uint16, np.uint32):
            np.testing.assert_array_equal(scored_on(ShimGpu(), candidates, queries, dtype, tuned(cuda.MatchScores, **options)), expected)


@NEEDS_COMPILER
def test_gpu_match_scores_prefer_the_first_of_tied_candidates():
    rng = np.random.default_rng(7)
    lists = [[1, 2, 3, 4, 5][: 1 + int(n)] for n in rng.integers(0, 5, 3000)]
    candidates, queries = lists_of(lists, [50] * 3000), lists_of([[1, 2, 3], [2], [5]], [50, 60, 40])
    for top in (1, 20, 256):
        expected = plain_best(queries, candidates, (-10, 10), top)
        for options in (POSTINGS, BITS, {**POSTINGS, "candidates_of_chunk": 1000}, {**BITS, "candidates_of_chunk": 1000}):
            assert searched_on(ShimGpu(), candidates, queries, (-10, 10), top, tuned(cuda.MatchScores, **options)) == expected
        assert searched_on(Processor(1), candidates, queries, (-10, 10), top, tuned(MatchScores, **INDEX)) == expected


@NEEDS_COMPILER
@BOTH_ROWS
def test_gpu_match_scores_split_candidates_beyond_memory(rows):
    rng = np.random.default_rng(8)
    candidates, queries = random_lists(rng, 200), random_lists(rng, 6, in_order=False)
    expected, launched = plain_best(queries, candidates, (-300, 300), 4), []
    for memory_bytes in (None, 40_000, 10_000):
        shim = ShimGpu()
        kind, gpu = limited(cuda.MatchScores, shim, {**rows, "candidates_of_chunk": 16, "memory_bytes": memory_bytes})
        assert searched_on(gpu, candidates, queries, (-300, 300), 4, kind) == expected
        launched.append(shim.launched.count("mark_masses"))
    assert launched[0] == 1 < launched[1] < launched[2]
    shim = ShimGpu()
    shim.largest_buffer = 4000
    kind = tuned(cuda.MatchScores, **rows, candidates_of_chunk=4)
    assert searched_on(shim, candidates, queries, (-300, 300), 4, kind) == expected
    shim.largest_buffer = 500
    with pytest.raises(DeviceMemoryError):
        searched_on(shim, candidates, queries, (-300, 300), 4, kind)


@NEEDS_COMPILER
def test_gpu_match_scores_accept_empty_inputs():
    some = lists_of([[1], []], [5, 5])
    assert searched_on(ShimGpu(), EMPTY, some, (-9, 9), 2) == ([[-1, -1]] * 2, [[0, 0]] * 2)
    assert searched_on(ShimGpu(), some, EMPTY, (-9, 9), 2) == ([], [])
    assert searched_on(ShimGpu(), lists_of([[], []], [5, 5]), some, (-9, 9), 2) == ([[-1, -1]] * 2, [[0, 0]] * 2)
    assert scored_on(ShimGpu(), EMPTY, some, np.uint8).shape == (2, 0)


@NEEDS_COMPILER
def test_gpu_match_scores_reject_unsupported_sizes():
    some = lists_of([[1], []], [5, 5])
    with pytest.raises(UnsupportedSearchError, match="256"):
        searched_on(ShimGpu(), some, some, (-9, 9), 257)
    long = lists_of([range(40_000)], [50_000])
    with pytest.raises(UnsupportedSearchError, match="65,535"):
        searched_on(ShimGpu(), long, long, (-9, 9), 1)
    with pytest.raises(ValueError, match="do not fit into uint8"):
        scored_on(ShimGpu(), lists_of([range(200)], [300]), lists_of([range(200)], [300]), np.uint8)


@NEEDS_COMPILER
@BOTH_ROWS
def test_gpu_match_scores_do_the_predicted_work(rows):
    rng, gpu = np.random.default_rng(9), ShimGpu()
    candidates, queries = random_lists(rng, 100), random_lists(rng, 7, in_order=False)
    search = tuned(cuda.MatchScores, **rows, candidates_of_chunk=32)(gpu, candidates)
    actual = np.zeros((7, 3), np.int64), np.zeros((7, 3), np.int32)
    list(search.search(queries, (-(10**6), 10**6), 3, *actual))  # makes the lists too
    group = search._resident
    assert group is not None
    n_rows, words = group.rows.n + group.rows_below.n, len(group.rows.bits)
    postings = int(np.sum(plain_scores(queries, candidates)))
    sums = 4 * 4 * 8 * int(np.sum(-(-np.diff(queries.offsets) // 4)))  # eight rows together, four words of four chunks
    size = {"candidates": 100, "masses": len(candidates.masses), "rows": n_rows, "words": words, "chunks": 4}
    building = cuda.building_analysis(**size, by_bits=rows == BITS)
    size = {"queries": 7, "masses": len(queries.masses), "chunks": 4, "top": 3, "counter_bytes": 32}
    searching = cuda.search_analysis(**size, met=sums if rows == BITS else postings, by_bits=rows == BITS)
    assert gpu.operations == building.operations + searching.operations
    assert gpu.bytes_in <= 4 * (building.words_in + searching.words_in) <= gpu.bytes_in + 8
    assert gpu.bytes_out == 4 * (building.words_out + searching.words_out)
    assert gpu.transfers == building.transfers + searching.transfers
    assert gpu.shared_bytes == searching.shared_bytes
    assert gpu.n_launches == building.rounds + searching.rounds + 1


@NEEDS_COMPILER
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_gpu_match_scores_stop_when_closed(n_steps):
    rng = np.random.default_rng(10)
    candidates, queries = random_lists(rng, 100), random_lists(rng, 20, in_order=False)
    gpu, actual = ShimGpu(), (np.zeros((20, 3), np.int64), np.zeros((20, 3), np.int32))
    kind = tuned(cuda.MatchScores, candidates_of_chunk=16, queries_of_batch=5, passes_between_checks=5)
    work = kind(gpu, candidates).search(queries, (-300, 300), 3, *actual)
    for _ in range(n_steps):
        next(work)
    work.close()
    n = gpu.n_launches
    assert next(work, None) is None
    assert gpu.n_launches == n
    assert (actual[0][-1] == -1).all()
