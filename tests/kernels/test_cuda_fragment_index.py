"""Answers of the fragment-ion index in CUDA equal those of the CPU, bit for bit. The kernels run on the CPU, through tests/shim."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.candidates import search_queries
from proteoscope.kernels.cuda.fragment_index import FragmentSearch
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from proteoscope.kernels.score_kinds import HYPERSCORE, SDP
from tests.shim.fragment_inputs import assert_same_answer, empty_answer, fragment_inputs, on_gpu, on_processor, random_fragment_search
from tests.shim.search_inputs import NOT_STOPPED, empty_hits, random_search, with_known_modifications
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

WIDTH = {SDP: 0.1, HYPERSCORE: 0.5}
SMALL = {"forms_of_chunk": 512, "threads": 64}
"""Sizes of blocks and chunks for the shim."""


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0)])
def test_cuda_fragment_index_equals_cpu_for_both_scores(score, fragment):
    work = random_fragment_search(score, score, fragment=fragment)
    expected = on_processor(work, WIDTH[score])
    # The shim is slow with fine bins, because it visits each for every chunk: one case with few chunks is enough.
    bins = {"bin_shift": 14} if score == HYPERSCORE else {}
    actual, ends = on_gpu(ShimGpu(), work, WIDTH[score], **{**SMALL, "forms_of_chunk": 1024}, **bins)
    assert expected.n_candidates.sum() > 1000
    assert (expected.best.code[:, 0] >= 0).sum() > 5
    assert_same_answer(actual, expected)
    assert ends[-1] == len(expected.n_candidates)


@pytest.mark.parametrize("seed", range(4))
def test_cuda_fragment_index_equals_cpu_for_any_ion_series(seed):
    kinds = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y")]
    work = random_fragment_search(
        10 + seed,
        HYPERSCORE,
        series=kinds[seed],
        fragment_charge=(1, 2, 1, 3)[seed],
        most=3,
        maximum_forms=(3, 1, 50, 20)[seed],
        n_peptides=200,
    )
    expected = on_processor(work, 0.5)
    actual, _ = on_gpu(ShimGpu(descending=seed % 2 == 1), work, 0.5, bin_shift=(10, 13, 16, 14)[seed], **SMALL)
    assert expected.histogram[:, 1:].any()
    assert_same_answer(actual, expected)


@pytest.mark.parametrize("least", [1, 2, 4])
def test_cuda_fragment_index_equals_cpu_for_wide_windows(least):
    spectra, queries, peptides, modifications, settings = random_search(
        20 + least, HYPERSCORE, precursor=(500.0, 0.0), n_peptides=2500, most=0, n_queries=8
    )
    work = fragment_inputs((spectra, queries, peptides, modifications, settings._replace(minimum_matched_ions=least)))
    expected = on_processor(work, 0.5)
    actual, _ = on_gpu(ShimGpu(), work, 0.5, forms_of_chunk=128, threads=64)
    assert_same_answer(actual, expected)


@pytest.mark.parametrize("seed", range(2))
def test_cuda_fragment_index_equals_cpu_for_known_modified_sites(seed):
    inputs = random_search(45 + seed, HYPERSCORE, precursor=(100.0, 0.0), n_peptides=200, most=seed, n_queries=20, which=(0, 2))
    spectra, queries, peptides, modifications, settings = with_known_modifications(inputs, seed, 2)
    work = fragment_inputs((spectra, queries, peptides, modifications, settings._replace(minimum_matched_ions=1)))
    expected = on_processor(work, 0.5)
    actual, _ = on_gpu(ShimGpu(), work, 0.5, **SMALL)
    assert_same_answer(actual, expected)
    one_by_one = empty_hits(len(queries.mass), n_hits=8)
    search_queries(*work.inputs, one_by_one, 0, len(queries.mass), NOT_STOPPED)
    # Forms may have different codes for the same peptide; scores of an index are rounded.
    np.testing.assert_array_equal(expected.n_candidates, one_by_one.n_candidates)
    has_hits = one_by_one.score[:, 0] > 0
    np.testing.assert_allclose(expected.best.score[has_hits, 0], one_by_one.score[has_hits, 0], atol=0.05)
    assert has_hits.sum() > 5 and (one_by_one.modification[one_by_one.modification != 255] >= len(inputs[3].mass)).any()


def test_cuda_fragment_index_equals_cpu_for_isotope_errors():
    work = random_fragment_search(30, HYPERSCORE, precursor=(0.2, 0.0), n_peptides=4000, n_queries=30)
    expected = on_processor(work, 0.5)
    actual, _ = on_gpu(ShimGpu(), work, 0.5, **SMALL)
    assert (work.windows[:, 0, 1] < work.windows[:, 1, 0]).any()
    assert len(np.unique(expected.best.code[expected.best.code >= 0])) > 5
    assert_same_answer(actual, expected)


def test_cuda_fragment_index_equals_cpu_with_few_candidates():
    work = random_fragment_search(31, HYPERSCORE, precursor=(20.0, 0.0), n_peptides=300, most=0)
    expected = on_processor(work, 0.5, n_hits=32)
    actual, _ = on_gpu(ShimGpu(), work, 0.5, n_hits=32, **SMALL)
    assert (expected.best.code < 0).any()
    assert_same_answer(actual, expected)


@pytest.mark.parametrize("n_hits", [8, 32])
def test_cuda_fragment_index_equals_cpu_with_many_candidates(n_hits):
    inputs = random_search(32, HYPERSCORE, fragment=(0.5, 0.0), precursor=(500.0, 0.0), n_peptides=1500, most=0, n_queries=4)
    work = fragment_inputs((*inputs[:4], inputs[4]._replace(minimum_matched_ions=1)))
    expected = on_processor(work, 0.5, n_hits=n_hits)
    actual, _ = on_gpu(ShimGpu(), work, 0.5, n_hits=n_hits, forms_of_chunk=2048, threads=128)
    assert expected.histogram[:, 1:].sum(axis=1).max() > 300
    assert_same_answer(actual, expected)


def test_cuda_fragment_index_equals_cpu_in_small_partitions(monkeypatch):
    monkeypatch.setattr(FragmentSearch, "share_of_queries", 0.01)
    work = random_fragment_search(40, HYPERSCORE, n_peptides=1500, most=1)
    expected = on_processor(work, 0.5)
    _, _, peptides, *_ = work.inputs
    proteins = peptides.residues.nbytes + 5 * len(peptides.mass)
    gpu = ShimGpu()
    actual, ends = on_gpu(
        gpu, work, 0.5, halves=True, memory_bytes=proteins + 400_000, pairs_of_batch=4, forms_of_chunk=256, threads=64, bin_shift=16
    )
    assert gpu.launched.count("sum_bins") > 2
    assert gpu.launched.count("weigh_ends") > 2
    assert ends == sorted(ends)
    assert len(set(ends)) > 3
    assert_same_answer(actual, expected)


def test_cuda_fragment_index_uses_smaller_parts_on_a_full_gpu(monkeypatch):
    work = random_fragment_search(41, HYPERSCORE, n_peptides=1500, most=1)
    expected = on_processor(work, 0.5)
    gpu, refused, buffer = ShimGpu(), [], ShimGpu.buffer

    def full(self, n_bytes):
        if n_bytes > 300_000:
            refused.append(n_bytes)
            raise DeviceMemoryError("full")
        return buffer(self, n_bytes)

    monkeypatch.setattr(ShimGpu, "buffer", full)
    actual, _ = on_gpu(gpu, work, 0.5, forms_of_chunk=256, threads=64, bin_shift=16)
    assert len(refused) > 1
    assert_same_answer(actual, expected)


def test_cuda_fragment_index_fails_without_memory_for_one_chunk():
    work = random_fragment_search(42, HYPERSCORE, n_peptides=300, most=0)
    with pytest.raises(DeviceMemoryError, match="not enough for a fragment-ion index"):
        on_gpu(ShimGpu(), work, 0.5, memory_bytes=100_000, **SMALL)


def test_fragment_index_on_a_lost_gpu_writes_finished_queries():
    work = random_fragment_search(43, HYPERSCORE, n_peptides=1500, most=0)
    _, queries, peptides, modifications, settings = work.inputs
    expected, n = on_processor(work, 0.5), len(queries.mass)
    search = tuned(FragmentSearch, forms_of_chunk=128, threads=64, pairs_of_batch=1)(
        ShimGpu(failing_launch=9), peptides, modifications, settings, work.form_mass, work.form_code
    )
    actual, done = empty_answer(n, 8), 0
    with pytest.raises(DeviceError, match="lost"):
        for end in search.search_chunks(
            work.segments, work.windows, work.tables, 0, n, actual.best, actual.histogram, 0.5, actual.n_candidates
        ):
            done = end
    assert 0 < done < n
    assert (actual.n_candidates[done:] == 0).all()
    assert (actual.best.code[done:] == -1).all()
    np.testing.assert_array_equal(actual.histogram[:done], expected.histogram[:done])
    np.testing.assert_array_equal(actual.best.code[:done], expected.best.code[:done])


def test_cuda_fragment_index_rejects_more_hits_than_supported():
    work = random_fragment_search(44, HYPERSCORE, n_peptides=100, most=0)
    with pytest.raises(DeviceError, match="33 candidates"):
        on_gpu(ShimGpu(), work, 0.5, n_hits=33, **SMALL)


@pytest.mark.parametrize(("shared_bytes", "forms"), [(227 << 10, 15_360), (99 << 10, 15_360), (64 << 10, 10_240)])
def test_cuda_fragment_index_chunks_fit_into_shared_memory(shared_bytes, forms, monkeypatch):
    monkeypatch.setattr(ShimGpu, "maximum_shared_bytes", lambda _: shared_bytes)
    work = random_fragment_search(45, HYPERSCORE, n_peptides=60, most=0, n_queries=3)
    gpu, requested = ShimGpu(), []
    launch = gpu.launch

    def noting(*arguments, shared_bytes=0, **options):
        requested.append(shared_bytes)
        launch(*arguments, shared_bytes=shared_bytes, **options)

    monkeypatch.setattr(gpu, "launch", noting)
    actual, _ = on_gpu(gpu, work, 0.5)
    assert 4 * forms < max(requested) <= shared_bytes - (6 << 10)
    assert_same_answer(actual, on_processor(work, 0.5))
