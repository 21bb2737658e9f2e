"""The library search on both backends against its definition: the heaviest matching of two peak lists."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from proteoscope.kernels.cpu.library_peaks import PeakRules, fill_peaks
from proteoscope.kernels.cpu.library_search import LibrarySearch
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import library_search as cuda
from proteoscope.kernels.device import DeviceMemoryError, backend_module
from proteoscope.kernels.layouts import PeakArrays
from proteoscope.kernels.library_layouts import ENTROPY_SCALE, ENTROPY_TOTAL, UNITS, Matching, PeakLists, Pools, entropy_table
from tests.shim.read_only import read_only
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

NEEDS_COMPILER = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
SIMILARITIES = pytest.mark.parametrize("is_entropy", [False, True], ids=["cosine", "entropy"])
SHIFTS = pytest.mark.parametrize("is_shifted", [False, True], ids=["in place", "shifted"])
TOLERANCE = 3
EMPTY = PeakLists(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16))
EMPTY_LIBRARY = PeakLists(*read_only(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16)))


def random_peaks(rng, n, *, most=14, span=160, of_library=False):
    """Generate lists of peaks more than twice the tolerance apart, close enough that many match by chance; some are empty."""
    lists = [np.sort(rng.choice(np.arange(0, span, 2 * TOLERANCE + 1), rng.integers(0, most + 1), replace=False)) for _ in range(n)]
    offsets = np.concatenate(([0], np.cumsum([len(rows) for rows in lists]))).astype(np.int64)
    made = PeakLists(offsets, np.concatenate(lists).astype(np.int32), rng.integers(1, 2000, offsets[-1]).astype(np.uint16))
    return PeakLists(*read_only(*made)) if of_library else made


def random_task(seed):
    rng = np.random.default_rng(seed)
    queries, references = random_peaks(rng, 12), random_peaks(rng, 40, of_library=True)
    low = rng.integers(0, 20, (12, 2))
    pools = Pools(low, low + rng.integers(0, 20, (12, 2)))
    mass, of_references = (rng.integers(1000, 1100, n).astype(np.int32) for n in (12, 40))
    read_only(of_references)
    return queries, mass, references, of_references, pools


def searched(device, task, matching, kind=None, first=0, last=None):
    queries, mass, references, of_references, pools = task
    n = len(mass)
    answer = np.full(n, 77), np.full(n, 7.0), np.full(n, 77, np.int32)
    kind = kind or backend_module(device, "library_search").LibrarySearch
    ends = list(kind(device, references, of_references).search(queries, mass, pools, matching, *answer, first, last))
    assert ends == sorted(ends)
    assert ends[-1] == (n if last is None else last)
    return answer


def best_by_definition(task, matching):
    """Return the best reference of each query, by the heaviest matching of both lists."""
    queries, mass, references, of_references, pools = task
    table = entropy_table().astype(np.int64)
    actual = []
    for q in range(len(mass)):
        best = (0.0, 0, -1, 0)
        peaks = slice(queries.offsets[q], queries.offsets[q + 1])
        a, weight = queries.mz[peaks].astype(np.int64), queries.weight[peaks].astype(np.int64)
        for c in {c for low, high in zip(pools.low[q], pools.high[q], strict=True) for c in range(low, high)}:
            shift = int(mass[q]) - int(of_references[c]) if matching.is_shifted else 0
            right = slice(references.offsets[c], references.offsets[c + 1])
            b, of = references.mz[right].astype(np.int64), references.weight[right].astype(np.int64)
            if (matching.is_shifted and abs(shift) <= matching.nearest) or not len(a) or not len(b):
                continue
            is_match = (np.abs(a - b[:, None]) <= matching.absolute) | (np.abs(a - b[:, None] - shift) <= matching.absolute)
            both = weight + of[:, None]
            worth = (table[both] - table[weight] - table[of[:, None]]) if matching.is_entropy else weight * of[:, None]
            worth = np.where(is_match, worth, 0)
            rows, columns = linear_sum_assignment(-worth)
            total, matched = int(worth[rows, columns].sum()), int(is_match.any(axis=1).sum())
            if matched < matching.least or total <= 0:
                continue
            square = np.sqrt(float((weight**2).sum()) * float((of**2).sum()))
            value = total / (2 * ENTROPY_TOTAL * ENTROPY_SCALE) if matching.is_entropy else total / square
            best = max(best, (min(1.0, value), -c, c, matched))
        actual.append((best[2] if best[0] > 0 else -1, best[0], best[3]))
    return [np.array(column) for column in zip(*actual, strict=True)]


@SIMILARITIES
@SHIFTS
@pytest.mark.parametrize("least", [1, 3])
def test_library_search_best_reference_equals_definition(is_entropy, is_shifted, least):
    matching = Matching(TOLERANCE, 0, least, is_entropy, is_shifted, 2 if is_shifted else -1)
    for seed in range(8):
        task = random_task(seed)
        actual, similarity, matched = searched(Processor(2), task, matching)
        expected = best_by_definition(task, matching)
        assert (expected[0] >= 0).sum() > 4
        np.testing.assert_array_equal(actual, expected[0])
        np.testing.assert_allclose(similarity, expected[1], rtol=1e-12)
        np.testing.assert_array_equal(matched, expected[2])


@NEEDS_COMPILER
@SIMILARITIES
@SHIFTS
def test_library_search_on_gpu_equals_cpu(is_entropy, is_shifted):
    matching = Matching(TOLERANCE, 0, 1, is_entropy, is_shifted, 2 if is_shifted else -1)
    small = tuned(cuda.LibrarySearch, queries_of_batch=5, pairs_of_launch=60)
    for seed in range(3):
        task = random_task(100 + seed)
        expected = searched(Processor(1), task, matching)
        for kind in (cuda.LibrarySearch, small):
            for left, right in zip(searched(ShimGpu(), task, matching, kind), expected, strict=True):
                np.testing.assert_array_equal(left, right)


@NEEDS_COMPILER
def test_gpu_library_search_splits_references_beyond_memory():
    task, matching = random_task(200), Matching(TOLERANCE, 0, 1, True, False, -1)
    references = task[2]
    bytes_of_all = 6 * int(references.offsets[-1]) + 20 * len(task[3])
    gpu = ShimGpu()
    free = gpu.free_bytes()
    kind = tuned(cuda.LibrarySearch, share_of_free_memory=bytes_of_all / 3.5 / free)
    for left, right in zip(searched(gpu, task, matching, kind), searched(Processor(1), task, matching), strict=True):
        np.testing.assert_array_equal(left, right)
    assert gpu.launched.count("search_library") >= 4
    with pytest.raises(DeviceMemoryError, match="enough memory"):
        searched(ShimGpu(), task, matching, tuned(cuda.LibrarySearch, share_of_free_memory=0.0))


@NEEDS_COMPILER
@SHIFTS
def test_library_search_analysis_predicts_the_work_of_the_gpu(is_shifted):
    task = random_task(210)
    queries, mass, references, of_references, _ = task
    every = Pools(np.zeros((len(mass), 1), np.int64), np.full((len(mass), 1), len(of_references)))
    gpu = ShimGpu()
    searched(gpu, (queries, mass, references, of_references, every), Matching(TOLERANCE, 0, 1, False, is_shifted, -1))
    pairs = len(mass) * len(of_references)
    work = cuda.search_analysis(
        queries=len(mass), query_peaks=len(queries.mz), ranges=1, pairs=pairs, peaks=len(mass) * len(references.mz), is_shifted=is_shifted
    )
    # The comparison ends with the shorter list.
    assert 0.5 * work.operations < gpu.operations <= work.operations
    assert gpu.bytes_out == 4 * work.words_out


@pytest.mark.parametrize("device", [Processor(2), pytest.param(ShimGpu(), marks=NEEDS_COMPILER)], ids=["cpu", "gpu"])
def test_library_search_leaves_rows_of_other_queries_unchanged(device):
    task, matching = random_task(220), Matching(TOLERANCE, 0, 1, False, True, -1)
    expected, actual = searched(device, task, matching), searched(device, task, matching, first=3, last=8)
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(left[3:8], right[3:8])
        assert (np.concatenate((left[:3], left[8:])).astype(int) % 70 == 7).all()
    no_range = Pools(np.zeros((12, 0), np.int64), np.zeros((12, 0), np.int64))
    assert (searched(device, (*task[:4], no_range), matching)[0] == -1).all()
    nothing = np.empty(0, np.int32)
    assert len(searched(device, (EMPTY, nothing, *task[2:4], Pools(*(np.zeros((0, 1), np.int64),) * 2)), matching)[0]) == 0
    none = Pools(*(np.zeros((12, 1), np.int64),) * 2)
    assert (searched(device, (*task[:2], EMPTY_LIBRARY, *read_only(nothing), none), matching)[0] == -1).all()


def test_library_search_stops_when_closed():
    rng = np.random.default_rng(5)
    queries, references = random_peaks(rng, 400, span=1600), random_peaks(rng, 4000, span=1600, of_library=True)
    pools = Pools(np.zeros((400, 1), np.int64), np.full((400, 1), 4000))
    actual = np.full(400, -7)
    kind = tuned(LibrarySearch, pairs_of_partition=10_000.0)
    mass = np.zeros(400, np.int32), np.zeros(4000, np.int32)
    work = kind(Processor(1), references, *read_only(mass[1])).search(
        queries, mass[0], pools, Matching(3, 0, 1, True, False, -1), actual, np.zeros(400), np.zeros(400, np.int32)
    )
    assert next(work) < 400
    work.close()
    assert (actual == -7).any()


def cleaned_peaks(mz, intensity, *, precursor=np.nan, **changed):
    """Return the list of one spectrum: m/z and weights."""
    rules = PeakRules(1000, 0, 0.0, 5000.0, 0.0, 0.0, 256, 1, 0.5, False)._replace(**changed)
    peaks = PeakArrays(np.array([0, len(mz)]), np.array(mz, np.float64), np.array(intensity, np.float32))
    count, out_mz, weight = np.zeros(1, np.int64), np.empty(len(mz), np.int32), np.empty(len(mz), np.uint16)
    fill_peaks(peaks, np.array([precursor]), 0, 1, rules, count, out_mz, weight)
    n = int(count[0])
    return (out_mz[:n] / UNITS).tolist(), weight[:n].astype(np.int64).tolist()


def test_peak_cleaning_merges_peaks_nearer_than_two_tolerances():
    mz, weight = cleaned_peaks([100.0, 100.015, 100.03, 200.0], [4.0, 16.0, 5.0, 25.0])
    assert mz == [100.015, 200.0]
    assert weight[0] == weight[1]
    assert cleaned_peaks([100.0, 100.0201], [1.0, 1.0])[0] == [100.0, 100.0201]


def test_peak_cleaning_removes_noise_precursor_and_excess_peaks():
    mz = [100.0, 200.0, 300.0, 400.0, 500.0]
    heights = [1.0, 100.0, 50.0, 70.0, 100.0]
    assert cleaned_peaks(mz, heights, noise=0.01)[0] == mz
    assert cleaned_peaks(mz, heights, noise=0.011)[0] == mz[1:]
    assert cleaned_peaks(mz, heights, maximum_peaks=2)[0] == [200.0, 500.0]
    assert cleaned_peaks(mz, heights, removal=1.5, precursor=301.5)[0] == [100.0, 200.0, 400.0, 500.0]
    assert cleaned_peaks(mz, heights, minimum_peaks=6)[0] == []
    assert cleaned_peaks(mz, heights, lowest=200.0, highest=400.0)[0] == [200.0, 300.0, 400.0]


def test_peak_weights_are_normalised_for_cosine_and_entropy():
    rng = np.random.default_rng(6)
    for n in (1, 7, 100, 200):
        mz, heights = np.sort(rng.uniform(100, 4000, n)), rng.exponential(1.0, n) + 1e-3
        weight = np.array(cleaned_peaks(mz, heights)[1])
        assert np.sqrt((weight**2).sum()) == pytest.approx(16384, rel=1e-3)
        assert sum(cleaned_peaks(mz, heights, is_entropy=True)[1]) == ENTROPY_TOTAL


def test_entropy_similarity_equals_the_published_formula():
    """Compute 1 - (2 S_AB - S_A - S_B) / ln 4, with weighted intensities for spectra of low entropy (Li et al. 2021)."""

    def weighted(intensity):
        share = intensity / intensity.sum()
        entropy = -(share * np.log(share)).sum()
        share = share ** (1.0 if entropy >= 3 else 0.25 + entropy * 0.25)
        return share / share.sum()

    def entropy_of(share):
        return -(share[share > 0] * np.log(share[share > 0])).sum()

    rng = np.random.default_rng(7)
    for n in (3, 30, 150):
        mz = 100.0 + 5.0 * np.arange(n)
        heights = rng.exponential(1.0, (2, n)) ** 2 + 1e-4
        is_there = rng.random((2, n)) < 0.7
        is_there[:, 0] = True
        lists, shares = [], np.zeros((2, n))
        for k in range(2):
            at, weight = cleaned_peaks(mz[is_there[k]], heights[k, is_there[k]], is_entropy=True)
            lists.append(PeakLists(np.array([0, len(at)]), np.rint(np.array(at) * UNITS).astype(np.int32), np.array(weight, np.uint16)))
            shares[k, is_there[k]] = weighted(heights[k, is_there[k]])
        expected = 1 - (2 * entropy_of(shares.mean(axis=0)) - entropy_of(shares[0]) - entropy_of(shares[1])) / np.log(4)
        answer = np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32)
        mass, pools = np.zeros(1, np.int32), Pools(np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64))
        list(
            LibrarySearch(Processor(1), PeakLists(*read_only(*lists[1])), *read_only(mass.copy())).search(
                lists[0], mass, pools, Matching(1000, 0, 1, True, False, -1), *answer
            )
        )
        assert answer[1][0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("is_entropy", [False, True])
def test_similarity_of_spectrum_to_itself_is_one(is_entropy):
    rng = np.random.default_rng(8)
    for n in (2, 8, 90):
        _, weight = cleaned_peaks(100.0 + 7.0 * np.arange(n), rng.exponential(1.0, n) + 0.01, is_entropy=is_entropy)
        peaks = PeakLists(np.array([0, len(weight)]), np.arange(len(weight), dtype=np.int32) * 1000, np.array(weight, np.uint16))
        answer, mass = (np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int32)), np.zeros(1, np.int32)
        pools, matching = Pools(np.zeros((1, 1), np.int64), np.ones((1, 1), np.int64)), Matching(3, 0, 1, is_entropy, False, -1)
        held = PeakLists(*read_only(*(peak.copy() for peak in peaks)))
        list(LibrarySearch(Processor(1), held, *read_only(mass.copy())).search(peaks, mass, pools, matching, *answer))
        assert 1 - 1e-6 < answer[1][0] <= 1
