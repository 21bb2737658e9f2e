"""Results of the CUDA scoring kernels on a GPU equal those of the CPU kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.search_workload import peptides_of, preset, search_workload
from proteoscope.kernels.cpu import candidates as cpu
from proteoscope.kernels.cuda import scoring as cuda
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.device import DeviceMemoryError
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from tests.shim.search_inputs import NOT_STOPPED, assert_same_hits, empty_hits, random_search, with_known_modifications
from tests.shim.tuning import limited, tuned

pytestmark = pytest.mark.gpu

REPOSITORY = Path(__file__).resolve().parents[2]
WIDTH = {SDP: 0.1, KSDP: 0.5, HYPERSCORE: 0.5, XCORR: 0.05}


def both(inputs, number):
    spectra, queries, peptides, modifications, settings = inputs
    n = len(queries.mass)
    expected, actual = (empty_hits(n, width=WIDTH[settings.score]) for _ in range(2))
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, n, NOT_STOPPED)
    list(cuda.SpectrumSearch(open_gpu(number), peptides, modifications, settings).search_queries(spectra, queries, actual, 0, n))
    return actual, expected


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0)])
def test_gpu_search_equals_cpu_for_every_score(score, fragment, number):
    actual, expected = both(random_search(100 + score, score, fragment=fragment, n_queries=200, n_peptides=50_000, most=3), number)
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("seed", range(4))
def test_gpu_search_equals_cpu_for_modifications_and_ion_series(seed, number):
    kinds = [("b", "y"), ("c", "z"), ("abc", "xyz"), ("", "y")]
    inputs = random_search(
        200 + seed, HYPERSCORE, series=kinds[seed], fragment_charge=1 + seed, most=3, maximum_forms=(3, 1, 50, 200)[seed], n_queries=100
    )
    actual, expected = both(inputs, number)
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("minimum_sharing", [0.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_gpu_search_equals_cpu_for_modifications_at_known_sites(seed, minimum_sharing, number, monkeypatch):
    monkeypatch.setattr(cuda.SpectrumSearch, "minimum_sharing", minimum_sharing)
    inputs = random_search(150 + seed, HYPERSCORE, most=(1, 2, 0)[seed], n_peptides=20_000, n_queries=200, precursor=(3.0, 0.0))
    actual, expected = both(with_known_modifications(inputs, seed, 3), number)
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
@pytest.mark.parametrize("fragment", [(0.0, 20e-6), (0.5, 0.0)])
@pytest.mark.parametrize(("most", "maximum_forms"), [(2, 20), (3, 1000)])
def test_gpu_search_equals_cpu_for_many_queries_of_similar_mass(score, fragment, most, maximum_forms, number, monkeypatch):
    spectra, queries, peptides, modifications, settings = random_search(
        150 + score,
        score,
        fragment=fragment,
        precursor=(3.0, 0.0),
        n_queries=4000,
        n_peptides=20_000,
        which=(0, 1),
        most=most,
        maximum_forms=maximum_forms,
    )
    expected, actual, alone = (empty_hits(4000, width=WIDTH[score]) for _ in range(3))
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, 4000, NOT_STOPPED)
    gpu, launched = open_gpu(number), set()
    launch = gpu.launch

    def noted(file, kernel, *arguments, **others):
        launched.add((kernel, least))
        launch(file, kernel, *arguments, **others)

    monkeypatch.setattr(gpu, "launch", noted)
    for hits, least in ((actual, 0.0), (alone, np.inf)):
        search = tuned(cuda.SpectrumSearch, minimum_sharing=least)(gpu, peptides, modifications, settings)
        for _ in search.search_queries(spectra, queries, hits, 0, 4000):
            pass
    dense = {SDP: "search_tile_by_dot_product", HYPERSCORE: "search_tile_by_hyperscore"}[score]
    assert (dense, 0.0) in launched
    assert (dense, np.inf) not in launched
    assert_same_hits(actual, expected)
    for values, others in zip(actual[:-1], alone[:-1], strict=True):
        np.testing.assert_array_equal(values, others)


def test_repeated_gpu_search_gives_the_same_bits(number):
    inputs = random_search(300, HYPERSCORE, n_queries=100, n_peptides=50_000)
    (first, _), (second, _) = both(inputs, number), both(inputs, number)
    for left, right in zip(first[:-1], second[:-1], strict=True):
        np.testing.assert_array_equal(left, right)


def test_gpu_search_equals_cpu_when_gpu_memory_is_nearly_full(number):
    inputs = random_search(350, HYPERSCORE, n_queries=2000, n_peptides=400_000, most=1)
    spectra, queries, peptides, modifications, settings = inputs
    expected, actual = empty_hits(2000), empty_hits(2000)
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, 2000, NOT_STOPPED)
    gpu = open_gpu(number)
    search = cuda.SpectrumSearch(gpu, peptides, modifications, settings)
    list(search.search_queries(spectra, queries, actual, 0, 2000))  # Streams and kernels allocate their memory now.
    actual, held, step = empty_hits(2000), [], 1 << 34
    while step >= 1 << 20:  # Allocate all but less than a megabyte.
        try:
            held.append(gpu.buffer(step))
        except DeviceMemoryError:
            step //= 2
    ends = list(search.search_queries(spectra, queries, actual, 0, 2000))
    held.clear()
    assert_same_hits(actual, expected)
    assert len(ends) > 2


def test_gpu_search_loads_peptides_in_parts_to_limit_memory(number):
    spectra, queries, peptides, modifications, settings = random_search(360, HYPERSCORE, n_queries=500, n_peptides=2_000_000, most=1)
    expected, actual = empty_hits(500), empty_hits(500)
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, 500, NOT_STOPPED)
    budget, gpu = 60_000_000, open_gpu(number)
    before = gpu.used_bytes()
    kind, small = limited(cuda.SpectrumSearch, gpu, {"memory_bytes": budget})
    search = kind(small, peptides, modifications, settings)
    most = 0
    for _ in search.search_queries(spectra, queries, actual, 0, 500):
        most = max(most, gpu.used_bytes() - before)
    assert_same_hits(actual, expected)
    assert 0 < most <= budget


def test_gpu_candidate_counts_equal_cpu(number):
    _, queries, peptides, modifications, settings = random_search(400, HYPERSCORE, n_queries=3000)
    expected, actual = np.zeros(3000, np.int64), np.zeros(3000, np.int64)
    cpu.count_candidates(queries, peptides.mass, modifications, settings, 5, 2990, expected)
    cuda.SpectrumSearch(open_gpu(number), peptides, modifications, settings).count_candidates(queries, 5, 2990, actual)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("score", "name"), [(SDP, "spectral-dot-product"), (KSDP, "ksdp"), (HYPERSCORE, "hyperscore"), (XCORR, "xcorr")])
def test_gpu_search_equals_cpu_for_real_spectra(score, name, number, shared_data):
    parameters = preset("high-resolution", score=name, variable_modifications=["Oxidation (M)", "Phospho (STY)", "Acetyl (Protein N-term)"])
    peptides = peptides_of(shared_data / "proteomes" / "yeast_2021_04_reviewed_UPS.fasta", parameters)
    work = search_workload(shared_data / "spectra" / "SmallCalibratible_Yeast.mzML", 1, peptides, parameters)
    actual, expected = both((work.index.arrays, work.index.queries, work.peptides, work.modifications, work.settings), number)
    assert expected.n_candidates.sum() > 50_000
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("requested", ["auto", "all"])
def test_search_on_all_devices_equals_cpu(requested, number, monkeypatch):
    from proteoscope.engine.execution.device_lookup import open_gpus
    from proteoscope.engine.execution.devices import resolve_device
    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.identification.parameters import IdentificationParameters
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.matches import scoring
    from proteoscope.engine.spectra.columns import SpectrumSeries
    from proteoscope.engine.spectra.spectrum_index import SpectrumIndex

    spectra, queries, peptides, modifications, settings = random_search(500, HYPERSCORE, n_queries=3000, n_peptides=100_000)
    monkeypatch.setattr(scoring, "scoring_settings", lambda *_: settings)
    series = SpectrumSeries.for_spectra("by", np.zeros(len(spectra.offsets) - 1, np.uint8))
    answers = []
    for device in (resolve_device("cpu"), resolve_device(requested)):
        opened = open_gpus(device, Progress())
        assert len(opened) == len(device.numbers)
        search = scoring.plan_scoring(
            SpectrumIndex(spectra, queries, len(queries.mass), series),
            peptides,
            modifications,
            IdentificationParameters(),
            Resources(8, opened, device.with_processor),
        )
        answers.append(search.run())
    for name in ("spectrum", "peptide", "site", "modification", "score"):
        np.testing.assert_array_equal(getattr(answers[0], name), getattr(answers[1], name))


def test_gpu_search_uses_at_most_the_given_memory(number):
    spectra, queries, peptides, modifications, settings = random_search(370, HYPERSCORE, n_queries=500, n_peptides=2_000_000, most=1)
    expected, actual = empty_hits(500), empty_hits(500)
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, 500, NOT_STOPPED)
    gpu, budget = open_gpu(number), 60_000_000
    gpu.limit_memory(budget)
    try:
        assert gpu.free_bytes() <= budget
        most = 0
        for _ in cuda.SpectrumSearch(gpu, peptides, modifications, settings).search_queries(spectra, queries, actual, 0, 500):
            most = max(most, gpu.used_bytes())
    finally:
        gpu.limit_memory(0)
    assert_same_hits(actual, expected)
    assert 0 < most <= budget
    assert gpu.free_bytes() > budget


@pytest.mark.parametrize("windows", ["sparse", "dense"])
def test_search_has_all_hits_when_the_gpu_fails(windows, number):
    command = [sys.executable, "-m", "tests.gpu.lost_gpu", windows]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "repeated elsewhere" in done.stdout
    assert done.stdout.splitlines()[-1] == "same"
