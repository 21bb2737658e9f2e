"""Results of the CUDA scoring kernels equal those of the CPU kernels. They run on the CPU, through tests/shim."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu import candidates as cpu
from proteoscope.kernels.cpu.elementary import FACTORIAL_LOG, logarithm, power
from proteoscope.kernels.cuda.scoring import MAXIMUM_PEAKS, SpectrumSearch
from proteoscope.kernels.device import DeviceError, DeviceMemoryError, UnsupportedSearchError
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.search_inputs import NOT_STOPPED, assert_same_hits, empty_hits, random_search, with_known_modifications
from tests.shim.shim_gpu import ShimGpu, compiled, launch, missing_compiler
from tests.shim.tuning import limited, tuned

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

WIDTH = {SDP: 0.1, KSDP: 0.5, HYPERSCORE: 0.5, XCORR: 0.05}
DENSE = {SDP: "search_tile_by_dot_product", HYPERSCORE: "search_tile_by_hyperscore"}


def searched_on_both(inputs, *, gpu=None, n_hits=5, slots=3, largest_buffer=1 << 40, **options):
    spectra, queries, peptides, modifications, settings = inputs
    n = len(queries.mass)
    expected, actual = (empty_hits(n, n_hits=n_hits, slots=slots, width=WIDTH[settings.score]) for _ in range(2))
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, n, NOT_STOPPED)
    gpu = gpu or ShimGpu()
    kind, its_gpu = limited(SpectrumSearch, gpu, options)
    search = kind(its_gpu, peptides, modifications, settings)
    gpu.largest_buffer = largest_buffer
    ends = list(search.search_queries(spectra, queries, actual, 0, n))
    return actual, expected, ends


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0)])
def test_cuda_search_equals_cpu_for_every_score(score, fragment):
    actual, expected, ends = searched_on_both(random_search(score, score, fragment=fragment))
    assert expected.n_candidates.sum() > 1000
    assert_same_hits(actual, expected)
    assert ends == [len(expected.n_candidates)]


@pytest.mark.parametrize("minimum_sharing", [0.0, np.inf])
@pytest.mark.parametrize(
    ("score", "width"),
    [
        (SDP, 0.125),
        (SDP, 0.125 / 3.0),
        (KSDP, float(power.py_func(power.py_func(np.float64(0.125), 1.0 / 3.0), 3.0))),
        (HYPERSCORE, float(logarithm.py_func(np.float64(1.0 + 100.0 * 0.125)))),
        (HYPERSCORE, float(FACTORIAL_LOG[0] + FACTORIAL_LOG[2] + logarithm.py_func(np.float64(1.0 + 100.0 * 0.25)))),
        (XCORR, 0.005 / 30.0),
    ],
)
def test_cuda_search_counts_scores_on_a_bin_border_like_the_cpu(score, width, minimum_sharing, monkeypatch):
    spectra, *others, settings = random_search(7, score, n_peptides=1500, n_queries=34, most=1, precursor=(1.0, 0.0))
    equal = np.full(len(spectra.mz), 0.125, np.float32)
    inputs = (spectra._replace(weight=equal, correlation_weight=np.ones_like(equal)), *others, settings._replace(minimum_matched_ions=1))
    monkeypatch.setitem(WIDTH, score, width)
    actual, expected, _ = searched_on_both(inputs, minimum_sharing=minimum_sharing)
    at = expected.score[expected.score > 0] / width
    assert (np.abs(at - np.rint(at)) < 1e-6).any()
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("fragment", [(0.0, 0.05), (20.0, 0.0)])
@pytest.mark.parametrize("minimum_sharing", [0.0, np.inf])
def test_cuda_search_equals_cpu_for_any_fragment_tolerance(fragment, minimum_sharing):
    spectra, *others = random_search(6, SDP, fragment=fragment, n_queries=40, n_peptides=500, most=1, precursor=(3.0, 0.0))
    few = np.flatnonzero(np.diff(spectra.offsets) > 0)  # peaks of each spectrum, far from one another
    retained = (spectra.offsets[few][:, None] + [0, 30, 60]).ravel()
    offsets = np.concatenate(([0], np.cumsum(np.where(np.diff(spectra.offsets) > 0, 3, 0))))
    spectra = spectra._replace(
        offsets=offsets, mz=spectra.mz[retained], weight=spectra.weight[retained], correlation_weight=spectra.correlation_weight[retained]
    )
    actual, expected, _ = searched_on_both((spectra, *others), minimum_sharing=minimum_sharing)
    assert_same_hits(actual, expected)
    np.testing.assert_array_equal(actual.histogram, expected.histogram)


@pytest.mark.parametrize("seed", range(4))
def test_cuda_search_equals_cpu_for_modifications_and_ion_series(seed):
    kinds = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y")]
    inputs = random_search(10 + seed, HYPERSCORE, series=kinds[seed], fragment_charge=1 + seed, most=3, maximum_forms=(3, 1, 50, 200)[seed])
    actual, expected, _ = searched_on_both(inputs, gpu=ShimGpu(descending=seed % 2 == 1))
    assert_same_hits(actual, expected)
    assert (expected.modification[:, 0] != 255).any()


@pytest.mark.parametrize("minimum_sharing", [0.0, np.inf])
@pytest.mark.parametrize("seed", range(4))
def test_cuda_search_equals_cpu_for_modifications_at_known_sites(seed, minimum_sharing):
    most = (3, 2, 3, 3)[seed]
    inputs = random_search(
        150 + seed,
        HYPERSCORE,
        most=(1, 2, 0, 3)[seed],
        maximum_forms=(20, 2, 1, 200)[seed],
        n_peptides=1500,
        n_queries=34,
        precursor=(3.0, 0.0),
    )
    *others, settings = with_known_modifications(inputs, seed, most)
    actual, expected, _ = searched_on_both((*others, settings._replace(minimum_matched_ions=0)), minimum_sharing=minimum_sharing)
    assert_same_hits(actual, expected)
    of_known = expected.modification[(expected.modification >= len(inputs[3].mass)) & (expected.modification < 255)]
    assert len(of_known) > 10 and (np.count_nonzero(expected.modification != 255, axis=2) <= most).all()


@pytest.mark.parametrize("maximum_forms", [7, 1000])
def test_cuda_search_equals_cpu_for_many_peptidoforms(maximum_forms):
    inputs = random_search(15, HYPERSCORE, which=(0, 1), most=4, maximum_forms=maximum_forms, n_queries=6, n_peptides=2000)
    actual, expected, _ = searched_on_both(inputs, slots=4)
    assert expected.n_candidates.max() > 30
    assert_same_hits(actual, expected)


def test_cuda_search_scores_peptides_in_two_isotope_windows_once():
    actual, expected, _ = searched_on_both(random_search(20, SDP, precursor=(1.5, 0.0), n_peptides=1500, most=1))
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize(("fragment", "n_queries"), [((0.0, 20e-6), 12), ((0.5, 0.0), 40)])
def test_cuda_query_tile_search_equals_cpu(score, fragment, n_queries):
    inputs = random_search(
        90 + score, score, fragment=fragment, n_queries=n_queries, precursor=(3.0, 0.0), n_peptides=2000, which=(0, 1, 4), most=1
    )
    gpu = ShimGpu(descending=score == SDP)
    actual, expected, _ = searched_on_both(inputs, minimum_sharing=0.0, dense_candidates_of_item=500, gpu=gpu)
    assert DENSE[score] in gpu.launched
    assert expected.n_candidates.sum() > 200
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("seed", range(3))
def test_cuda_query_tile_search_equals_cpu_with_modifications(seed):
    kinds = [("c", "z"), ("ab", "xyz"), ("", "y")]
    inputs = random_search(
        95 + seed,
        HYPERSCORE,
        series=kinds[seed],
        fragment_charge=(1, 1, 3)[seed],
        maximum_forms=(1, 50, 200)[seed],
        fragment=(0.3, 0.0),
        n_peptides=2000,
        which=((0, 1, 4), (2, 3, 1), (1, 5, 6))[seed],
    )
    gpu = ShimGpu()
    actual, expected, _ = searched_on_both(inputs, gpu=gpu, minimum_sharing=0.0, n_hits=8)
    assert "search_tile_by_hyperscore" in gpu.launched
    assert_same_hits(actual, expected)
    assert (expected.modification[:, 0] != 255).any()


@pytest.mark.parametrize(("which", "maximum_forms"), [((0, 1, 6), 7), ((0, 1), 1000)])
def test_cuda_query_tile_search_equals_cpu_for_many_peptidoforms(which, maximum_forms):
    *others, settings = random_search(
        15,
        HYPERSCORE,
        which=which,
        most=4,
        maximum_forms=maximum_forms,
        n_queries=34,
        n_peptides=400,
        fragment=(0.5, 0.0),
        precursor=(3.0, 0.0),
    )
    # With more isotope errors there would be more windows than the kernel accepts.
    settings = settings._replace(isotope_errors=settings.isotope_errors[1:3], isotope_minimum_mass=settings.isotope_minimum_mass[1:3])
    gpu = ShimGpu()
    actual, expected, _ = searched_on_both((*others, settings), gpu=gpu, slots=4, minimum_sharing=0.0)
    assert DENSE[HYPERSCORE] in gpu.launched
    assert expected.n_candidates.max() > 100
    assert_same_hits(actual, expected)
    np.testing.assert_array_equal(actual.histogram, expected.histogram)


def test_cuda_search_equals_cpu_at_the_edge_of_the_tolerance():
    spectra, queries, peptides, modifications, settings = random_search(
        16, SDP, n_queries=40, n_peptides=400, fragment=(0.5, 0.0), precursor=(3.0, 0.0), which=(0, 1), most=2
    )
    mz, bounds = [], [0]
    for mass in queries.mass:
        i = min(int(np.searchsorted(peptides.mass, mass - 3)), len(peptides.mass) - 1)
        start, length = int(peptides.position[i]), int(peptides.length[i])
        sums = np.add.accumulate(peptides.residue_mass[peptides.residues[start : start + length] - 65])[:-1]
        ions = np.concatenate((settings.n_term_series[0] + sums, settings.c_term_series[0] + peptides.c_term_mass + sums))
        mz.append(np.sort(np.concatenate((ions[::2] - 0.5, ions[1::2] + 0.5))))
        bounds.append(bounds[-1] + len(mz[-1]))
    weight = np.random.default_rng(16).uniform(0.05, 0.3, bounds[-1]).astype(np.float32)
    spectra = spectra._replace(offsets=np.array(bounds), mz=np.concatenate(mz), weight=weight, correlation_weight=weight)
    queries = queries._replace(spectrum=np.arange(len(queries.mass)))
    inputs = spectra, queries, peptides, modifications, settings._replace(maximum_mz=float(spectra.mz.max()) + 2)
    gpu = ShimGpu()
    actual, expected, _ = searched_on_both(inputs, gpu=gpu, minimum_sharing=0.0)
    assert DENSE[SDP] in gpu.launched
    for left, right in zip(actual[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(left, right)


def test_cuda_search_uses_no_query_tiles_for_tiny_peak_weights():
    spectra, *others = random_search(17, HYPERSCORE, n_peptides=300, n_queries=40, most=1)
    weight = spectra.weight.copy()
    weight[::7] = 3e-9
    gpu = ShimGpu()
    actual, expected, _ = searched_on_both((spectra._replace(weight=weight), *others), gpu=gpu, minimum_sharing=0.0)
    assert "search_tile_by_hyperscore" not in gpu.launched
    assert_same_hits(actual, expected)


def test_cuda_search_equals_cpu_for_dense_and_sparse_windows(monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cuda.scoring._TILES_TOGETHER", 1)
    spectra, queries, *others = random_search(98, HYPERSCORE, n_queries=140, precursor=(0.5, 0.0), n_peptides=1500, most=1)
    mass = queries.mass.copy()
    mass[32:96] = mass[60] + np.linspace(-0.4, 0.4, 64)  # two tiles that share their windows, among others that do not
    queries = queries._replace(mass=np.sort(mass))
    gpu = ShimGpu()
    actual, expected, ends = searched_on_both((spectra, queries, *others), gpu=gpu, dense_candidates_of_batch=1, minimum_sharing=6.0)
    assert {"search_tile_by_hyperscore", "search_by_hyperscore"} <= set(gpu.launched)
    assert ends == sorted(set(ends))
    assert ends[-1] == 140
    assert_same_hits(actual, expected)


def test_cuda_search_uses_no_query_tiles_if_memory_is_short():
    inputs = random_search(99, HYPERSCORE, n_peptides=300, n_queries=40, most=1)
    gpu = ShimGpu()
    actual, expected, _ = searched_on_both(inputs, gpu=gpu, largest_buffer=60_000, minimum_sharing=0.0)
    assert "search_tile_by_hyperscore" not in gpu.launched
    assert_same_hits(actual, expected)


def test_cuda_search_equals_cpu_if_many_blocks_share_a_query():
    inputs = random_search(30, HYPERSCORE, precursor=(40.0, 0.0), most=1, n_queries=4, n_peptides=1000)
    actual, expected, _ = searched_on_both(inputs, candidates_of_item=100, n_hits=21)
    assert expected.n_candidates.max() > 600
    assert_same_hits(actual, expected)


def test_cuda_search_in_small_batches_equals_cpu():
    actual, expected, ends = searched_on_both(random_search(40, HYPERSCORE), candidates_of_batch=300)
    assert_same_hits(actual, expected)
    assert len(ends) > 4
    assert ends == sorted(set(ends))


def test_cuda_search_uses_smaller_batches_on_a_full_gpu():
    inputs = random_search(50, HYPERSCORE, n_peptides=300, n_queries=60, most=1)
    actual, expected, ends = searched_on_both(inputs, largest_buffer=8000)
    assert_same_hits(actual, expected)
    assert len(ends) > 2


@pytest.mark.parametrize("memory_bytes", [600_000, 400_000])
def test_cuda_search_loads_a_large_peptide_index_in_parts(memory_bytes):
    inputs = random_search(52, HYPERSCORE, n_peptides=30_000, n_queries=40, most=1)
    actual, expected, ends = searched_on_both(inputs, memory_bytes=memory_bytes + inputs[2].residues.nbytes, candidates_of_batch=10_000)
    assert_same_hits(actual, expected)
    assert len(ends) > 1
    counted, cost = np.zeros(40, np.int64), np.zeros(40, np.int64)
    _, queries, peptides, modifications, settings = inputs
    cpu.count_candidates(queries, peptides.mass, modifications, settings, 0, 40, cost)
    kind, small = limited(SpectrumSearch, ShimGpu(), {"memory_bytes": memory_bytes + peptides.residues.nbytes})
    kind(small, *inputs[2:]).count_candidates(queries, 0, 40, counted)
    np.testing.assert_array_equal(counted, cost)


def test_cuda_search_loads_smaller_parts_if_allocation_fails(monkeypatch):
    spectra, queries, peptides, modifications, settings = random_search(53, HYPERSCORE, n_peptides=30_000, n_queries=40, most=1)
    actual, expected = empty_hits(40), empty_hits(40)
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, 40, NOT_STOPPED)
    gpu, refused = ShimGpu(), []
    made = gpu.buffer

    def buffer(n_bytes):
        if n_bytes > 50_000 and n_bytes != peptides.residues.nbytes:
            refused.append(n_bytes)
            raise DeviceMemoryError("full")
        return made(n_bytes)

    monkeypatch.setattr(gpu, "buffer", buffer)
    for _ in SpectrumSearch(gpu, peptides, modifications, settings).search_queries(spectra, queries, actual, 0, 40):
        pass
    assert_same_hits(actual, expected)
    assert len(refused) > 1


def test_cuda_search_without_candidates_fails_on_a_full_gpu(monkeypatch):
    _, queries, *others = random_search(51, HYPERSCORE, n_peptides=2000, n_queries=4, most=0)
    gpu = ShimGpu()
    kind, small = limited(SpectrumSearch, gpu, {"memory_bytes": others[0].residues.nbytes + 40_000})  # not all peptides fit
    search = kind(small, *others)

    def buffer(n_bytes):
        assert not refused, "a second time"
        refused.append(n_bytes)
        raise DeviceMemoryError("full")

    refused = []
    monkeypatch.setattr(gpu, "buffer", buffer)
    with pytest.raises(DeviceMemoryError, match="full"):
        search.count_candidates(queries._replace(mass=np.full(4, 9e4)), 0, 4, np.zeros(4, np.int64))


def test_cuda_search_rejects_a_gpu_without_memory_for_one_query():
    inputs = random_search(51, HYPERSCORE, n_peptides=20, n_queries=4, most=0)
    with pytest.raises(DeviceError, match="not enough memory"):
        searched_on_both(inputs, largest_buffer=800)


def test_cuda_search_on_a_lost_gpu_writes_only_finished_queries():
    spectra, queries, peptides, modifications, settings = random_search(60, HYPERSCORE)
    n = len(queries.mass)
    hits, expected = empty_hits(n), empty_hits(n)
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, n, NOT_STOPPED)
    search = tuned(SpectrumSearch, candidates_of_batch=300)(ShimGpu(failing_launch=8), peptides, modifications, settings)
    ends = []
    with pytest.raises(DeviceError, match="lost"):
        for end in search.search_queries(spectra, queries, hits, 0, n):
            ends.append(end)  # noqa: PERF402 - values yielded before the error count
    done = ends[-1]
    assert 0 < done < n
    assert (hits.n_candidates[done:] == 0).all()
    np.testing.assert_array_equal(hits.n_candidates[:done], expected.n_candidates[:done])


def test_cuda_candidate_counts_equal_cpu():
    _, queries, peptides, modifications, settings = random_search(70, HYPERSCORE, n_queries=40)
    expected, actual = np.zeros(40, np.int64), np.zeros(40, np.int64)
    cpu.count_candidates(queries, peptides.mass, modifications, settings, 3, 38, expected)
    SpectrumSearch(ShimGpu(), peptides, modifications, settings).count_candidates(queries, 3, 38, actual)
    assert expected.sum() > 0
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("score", [KSDP, XCORR])
def test_cuda_search_accepts_the_maximum_number_of_peaks(score):
    spectra, *others = random_search(82, score, n_queries=4, n_peptides=500, most=0)
    random, n = np.random.default_rng(82), MAXIMUM_PEAKS[score]
    more, before = n - int(spectra.offsets[1]), int(spectra.offsets[1])
    mz = np.concatenate((np.sort(np.concatenate((spectra.mz[:before], random.uniform(100, 1500, more)))), spectra.mz[before:]))
    weight = np.concatenate((random.uniform(0, 0.02, more).astype(np.float32), spectra.weight))
    offsets = np.concatenate(([0], spectra.offsets[1:] + more))
    actual, expected, _ = searched_on_both(
        (spectra._replace(offsets=offsets, mz=mz, weight=weight, correlation_weight=50 * weight), *others)
    )
    assert expected.n_candidates[others[0].spectrum == 0] > 0
    assert_same_hits(actual, expected)


def test_cuda_search_rejects_more_hits_than_supported():
    spectra, queries, peptides, modifications, settings = random_search(80, HYPERSCORE, n_queries=4)
    search = SpectrumSearch(ShimGpu(), peptides, modifications, settings)
    with pytest.raises(UnsupportedSearchError, match="33 hits"):
        next(search.search_queries(spectra, queries, empty_hits(4, n_hits=33), 0, 4))


def test_cuda_search_rejects_more_candidates_than_supported(monkeypatch):
    inputs = random_search(81, HYPERSCORE, n_queries=4, precursor=(40.0, 0.0), most=0)
    monkeypatch.setattr("proteoscope.kernels.cuda.scoring._MAXIMUM_CANDIDATES", 50)
    with pytest.raises(UnsupportedSearchError, match=r"candidates, more than the 50"):
        searched_on_both(inputs)


def test_cuda_search_limits_the_memory_for_peaks_of_a_batch(monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cuda.scoring._MAXIMUM_BATCH_BYTES", 20_000)
    actual, expected, ends = searched_on_both(random_search(41, HYPERSCORE, n_queries=60, n_peptides=300, most=1))
    assert_same_hits(actual, expected)
    assert len(ends) > 2


BARRIERS = """
extern "C" __global__ void forgets(int* out) { if (threadIdx.x < 16) __syncthreads(); else while (true) __syncwarp(0xffff0000u & *out); }
extern "C" __global__ void skips(int* out) { if (threadIdx.x != 3) __syncwarp(); out[threadIdx.x] = 1; }
extern "C" __global__ void differs(int* out) {
    out[threadIdx.x] = threadIdx.x & 1 ? __shfl_sync(0xffffffffu, 1, 0) : static_cast<int>(__ballot_sync(0xffffffffu, 1));
}
extern "C" __global__ void hurries(int* out, int waits) {
    __shared__ int cells[2];
    const int warp = threadIdx.x >> 5;
    for (int round = 0; round < 2; ++round) {
        if ((threadIdx.x & 31) == 0) cells[warp] = 10 * round + warp;
        __syncthreads();
        out[threadIdx.x] += cells[1 - warp];
        if (waits) __syncthreads();
        else __syncwarp();
    }
}
extern "C" __global__ void reverses(int* out) {
    __shared__ int cells[64];
    cells[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    const int value = cells[63 - threadIdx.x];
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, value, 1) + __popc(__ballot_sync(0xffffffffu, value & 1));
    out[threadIdx.x] += __shfl_down_sync(0xffffffffu, value, 8, 16);
}
"""


def test_shim_supports_barriers_shuffles_and_votes():
    library, values = compiled(BARRIERS), np.arange(64, dtype=np.int32)
    launch(library, "reverses", 1, 64, (values,))
    mirrored = 63 - np.arange(64)
    lane = np.arange(64)
    down = np.where(lane % 16 < 8, lane + 8, lane)
    np.testing.assert_array_equal(values, mirrored[lane ^ 1] + 16 + mirrored[down])


def test_shim_reports_threads_that_wait_forever():
    library, values = compiled(BARRIERS), np.zeros(64, np.int32)
    with pytest.raises(DeviceError, match=r"wait for each other|not in the mask"):
        launch(library, "forgets", 1, 32, (values,))
    with pytest.raises(DeviceError, match="wait for each other"):
        launch(library, "skips", 1, 32, (values,))
    with pytest.raises(DeviceError, match="exchange different things"):
        launch(library, "differs", 1, 32, (values,))


@pytest.mark.parametrize("descending", [False, True])
def test_shim_detects_a_missing_barrier(descending):
    library, right, wrong = compiled(BARRIERS), np.zeros(64, np.int32), np.zeros(64, np.int32)
    launch(library, "hurries", 1, 64, (right, np.int32(1)), descending=descending)
    launch(library, "hurries", 1, 64, (wrong, np.int32(0)), descending=descending)
    assert right.tolist() == [1 + 11] * 32 + [0 + 10] * 32
    assert wrong.tolist() != right.tolist()
