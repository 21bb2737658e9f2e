"""Answers of the fragment-ion index on a GPU equal those on the CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.search_workload import peptides_of, preset, search_workload
from proteoscope.kernels.score_kinds import HYPERSCORE, SDP
from tests.shim.fragment_inputs import assert_same_answer, fragment_inputs, on_gpu, on_processor, random_fragment_search

pytestmark = pytest.mark.gpu

WIDTH = {SDP: 0.1, HYPERSCORE: 0.5}


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0)])
@pytest.mark.parametrize("precursor", [3.0, 500.0])
def test_gpu_fragment_index_equals_cpu_for_both_scores(score, fragment, precursor, device):
    work = random_fragment_search(
        500 + score, score, fragment=fragment, precursor=(precursor, 0.0), n_queries=300, n_peptides=60_000, most=1
    )
    actual, _ = on_gpu(device, work, WIDTH[score])
    assert_same_answer(actual, on_processor(work, WIDTH[score]))


@pytest.mark.parametrize("seed", range(4))
def test_gpu_fragment_index_equals_cpu_with_modifications(seed, device):
    kinds = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y")]
    work = random_fragment_search(
        510 + seed,
        HYPERSCORE,
        series=kinds[seed],
        fragment_charge=(1, 2, 1, 3)[seed],
        most=3,
        maximum_forms=(3, 1, 50, 20)[seed],
        n_peptides=10_000,
        n_queries=200,
    )
    actual, _ = on_gpu(device, work, 0.5)
    assert_same_answer(actual, on_processor(work, 0.5))


@pytest.mark.parametrize(("forms", "threads"), [(128, 64), (2048, 128), (8192, 512), (32_768, 1024)])
def test_gpu_fragment_index_equals_cpu_for_any_chunk_size(forms, threads, device):
    work = random_fragment_search(520, HYPERSCORE, precursor=(200.0, 0.0), n_queries=200, n_peptides=30_000, most=1)
    actual, _ = on_gpu(device, work, 0.5, forms_of_chunk=forms, threads=threads)
    assert_same_answer(actual, on_processor(work, 0.5))


def test_gpu_fragment_index_respects_the_memory_limit(device, monkeypatch):
    work = random_fragment_search(530, HYPERSCORE, precursor=(500.0, 0.0), n_queries=500, n_peptides=300_000, most=1)
    budget, used, before, launch = 60_000_000, [], device.used_bytes(), device.launch

    def noting(*arguments, **options):
        used.append(device.used_bytes() - before)
        launch(*arguments, **options)

    monkeypatch.setattr(device, "launch", noting)
    actual, ends = on_gpu(device, work, 0.5, memory_bytes=budget, pairs_of_batch=1 << 12)
    assert budget / 4 < max(used) <= budget
    assert len(set(ends)) > 3
    assert_same_answer(actual, on_processor(work, 0.5))


def test_gpu_fragment_index_equals_cpu_for_real_spectra(device, shared_data):
    parameters = preset("open", variable_modifications=["Oxidation (M)", "Acetyl (Protein N-term)"], maximum_modifications=1)
    peptides = peptides_of(shared_data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta", parameters)
    work = search_workload(shared_data / "spectra" / "SmallCalibratible_Yeast.mzML", 1, peptides, parameters)
    inputs = fragment_inputs((work.index.arrays, work.index.queries, work.peptides, work.modifications, work.settings))
    actual, _ = on_gpu(device, inputs, 0.5)
    expected = on_processor(inputs, 0.5)
    assert expected.n_candidates.sum() > 1_000_000
    assert np.count_nonzero(expected.best.code >= 0) > 500
    assert_same_answer(actual, expected)
