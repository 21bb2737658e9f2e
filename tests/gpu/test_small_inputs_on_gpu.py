"""Every kernel on inputs small enough for each tool of compute-sanitizer to finish in seconds.

compute-sanitizer --tool memcheck|racecheck|synccheck|initcheck python -m pytest -m gpu tests/gpu/test_small_inputs_on_gpu.py
"""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.sequences.matrices import read_matrix
from proteoscope.kernels.clustering_layouts import AVERAGE, COMPLETE, SINGLE, Linkage
from proteoscope.kernels.cpu import candidates as cpu
from proteoscope.kernels.cpu import digestion as cpu_digestion
from proteoscope.kernels.cpu import vector_clustering as cpu_vector_clustering
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import digestion as cuda_digestion
from proteoscope.kernels.cuda import vector_clustering as cuda_vector_clustering
from proteoscope.kernels.cuda.alignment_plan import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS
from proteoscope.kernels.cuda.gapsmis_plan import FOUR, MANY_TEXTS, NARROW, ONE_TEXT, PROFILE, WIDE, GapsMisShape
from proteoscope.kernels.cuda.match_scores import MatchScores
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.digestion_layouts import DigestionRules
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules
from proteoscope.kernels.score_kinds import HYPERSCORE, KSDP, SDP, XCORR
from proteoscope.kernels.structure_layouts import FoundSuperpositions, SearchSteps
from tests.shim.alignment_inputs import plain_scores, random_sequences, scored
from tests.shim.chain_inputs import random_pairs
from tests.shim.fragment_inputs import assert_same_answer, on_gpu, on_processor, random_fragment_search
from tests.shim.k_means_inputs import iterated, means_on, random_points, seeds_of
from tests.shim.k_means_inputs import random_vectors as random_mean_vectors
from tests.shim.mass_inputs import plain_best, random_lists, scored_on, searched_on
from tests.shim.read_inputs import aligned, assert_same_alignments, damaged_reads, expected_alignments
from tests.shim.search_inputs import NOT_STOPPED, assert_same_hits, empty_hits, random_search
from tests.shim.tuning import tuned
from tests.shim.vector_inputs import clustered, random_vectors, windows

pytestmark = pytest.mark.gpu

WIDTH = {SDP: 0.1, KSDP: 0.5, HYPERSCORE: 0.5, XCORR: 0.05}
W = ord("W") - ord("A")


def check_search(device, inputs, **options):
    spectra, queries, peptides, modifications, settings = inputs
    n = len(queries.mass)
    expected, actual = (empty_hits(n, width=WIDTH[settings.score]) for _ in range(2))
    cpu.search_queries(spectra, queries, peptides, modifications, settings, expected, 0, n, NOT_STOPPED)
    for _ in tuned(SpectrumSearch, **options)(device, peptides, modifications, settings).search_queries(spectra, queries, actual, 0, n):
        pass
    assert expected.n_candidates.sum() > n
    assert_same_hits(actual, expected)


@pytest.mark.parametrize("score", [SDP, KSDP, HYPERSCORE, XCORR])
def test_gpu_search_of_single_queries_equals_cpu_for_small_input(score, device):
    check_search(device, random_search(600 + score, score, n_queries=6, n_peptides=1500, precursor=(1.0, 0.0)), candidates_of_item=32)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
def test_gpu_search_of_query_tiles_equals_cpu_for_small_input(score, device):
    inputs = random_search(610 + score, score, fragment=(0.5, 0.0), precursor=(3.0, 0.0), n_queries=70, n_peptides=600, which=(0, 1))
    check_search(device, inputs, minimum_sharing=0.0, dense_candidates_of_item=64)


@pytest.mark.parametrize("score", [SDP, HYPERSCORE])
def test_gpu_fragment_index_equals_cpu_for_small_input(score, device):
    work = random_fragment_search(620 + score, score, n_queries=6, n_peptides=400, most=1)
    actual, _ = on_gpu(device, work, WIDTH[score], forms_of_chunk=128, threads=64)
    assert_same_answer(actual, on_processor(work, WIDTH[score]))


def test_gpu_peptide_counts_equal_cpu_for_small_input(device):
    random = np.random.default_rng(630)
    offsets = np.concatenate(([0], np.cumsum(random.integers(0, 90, 60)))).astype(np.int64)
    residues = random.choice(np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8), offsets[-1])
    mass = np.full(26, 100 * 10**9)
    rules = DigestionRules(enzyme("Trypsin").cleavage_table(), mass, 18 * 10**9, 1, 1, 6, 40, True, 4 * 10**11, 5 * 10**12, 10**10)
    expected, actual = (np.zeros((2, 501), np.int64) for _ in range(2))
    list(cpu_digestion.count_peptides(Processor(1), residues, offsets, np.array([0, 20, 60]), rules, expected))
    list(cuda_digestion.count_peptides(device, residues, offsets, np.array([0, 20, 60]), rules, actual))
    assert expected.sum() > 100
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize("numbers", [SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS], ids=["dpx", "half", "wide"])
def test_gpu_alignment_with_overflow_is_exact_for_small_input(numbers, n_queries, device):
    if device.compute_capability() < {SIXTEEN_BITS: 90, HALF_PRECISION: 80, THIRTY_TWO_BITS: 0}[numbers]:
        pytest.skip("the GPU is too old for these numbers")
    random = np.random.default_rng(640)
    queries = [np.full(200, W, np.int8), *random_sequences(random, [90, 33])][:n_queries]  # 200 x 11 exceeds half precision
    sequences = [*random_sequences(random, np.sort(random.integers(0, 120, 40)).tolist()), np.full(220, W, np.int8)]
    scores = read_matrix("BLOSUM62").scores
    expected = plain_scores(queries, sequences, scores, 11, 1)
    for options in (
        {},
        {"n_longest": 9, "longest_shape": (64, 4, 128, 2)},
    ):  # in the second, warps share the longest subjects
        actual, _ = scored(device, queries, sequences, scores, 11, 1, numbers=numbers, shape=(4, 16), **options)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("linkage", [Linkage(SINGLE, 0.5, 4), Linkage(COMPLETE, 0.5), Linkage(AVERAGE, 0.5, 2, 20)], ids=str)
def test_gpu_vector_clustering_equals_cpu_for_small_input(linkage, device):
    random = np.random.default_rng(650)
    vectors, ends = random_vectors(random, 200, kinds=3, coarse=True, bins=15, elements=4), windows(random, 200, 60.0)
    expected = clustered(cpu_vector_clustering.VectorClustering, Processor(1), vectors, ends, linkage)
    assert clustered(cuda_vector_clustering.VectorClustering, device, vectors, ends, linkage) == expected
    assert 5 < len(set(expected)) < 150


@pytest.mark.parametrize(("d", "k"), [(1, 2), (8, 40), (20, 70)])
def test_gpu_k_means_of_points_equals_cpu_for_small_input(d, k, device):
    points = random_points(np.random.default_rng(650), 3000, d)
    answers = [iterated(means_on(used, points), points[:k].astype(np.float64), 3000, 4) for used in (Processor(2), device)]
    np.testing.assert_array_equal(answers[0][0], answers[1][0])


def test_gpu_k_means_of_vectors_equals_cpu_for_small_input(device):
    vectors = random_mean_vectors(np.random.default_rng(660), 1500, 60, classes=300)
    answers = [iterated(means_on(used, vectors, 60), seeds_of(vectors, np.arange(1100)), 1500, 5) for used in (Processor(2), device)]
    np.testing.assert_array_equal(answers[0][0], answers[1][0])


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_gpu_read_alignment_equals_cpu_for_small_input(mode, device):
    texts, patterns = damaged_reads(40, 670, most=90)
    every, matrix = np.arange(40), np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)
    forms = GapsMisShape(MANY_TEXTS, 4, 4, NARROW, FOUR, 64), GapsMisShape(ONE_TEXT, 8, 16, NARROW, PROFILE)
    for options in ({}, {"numbers": WIDE}, *({"shape": shape} for shape in forms)):
        rules = GapRules(matrix, 5, 2, 2, mode)
        expected = expected_alignments(texts, patterns, rules, every, every)
        assert_same_alignments(aligned(device, texts, patterns, rules, every, every, traces_on_host=False, **options), expected)


@pytest.mark.parametrize("share_for_bits", [2.0, -1.0], ids=["postings", "bits"])
@pytest.mark.parametrize("longest", [30, 200])
def test_gpu_match_scores_equal_definition_for_small_input(longest, share_for_bits, device):
    kind = tuned(MatchScores, share_for_bits=share_for_bits)
    rng = np.random.default_rng(longest)
    candidates, queries = random_lists(rng, 300, longest=longest), random_lists(rng, 20, longest=200, in_order=False)
    assert searched_on(device, candidates, queries, (-50, 100), 5, kind) == plain_best(queries, candidates, (-50, 100), 5)
    expected = scored_on(Processor(2), candidates, queries, np.uint16)
    np.testing.assert_array_equal(scored_on(device, candidates, queries, np.uint16, kind), expected)


def test_gpu_superposition_equals_cpu_for_small_input(device):
    pairs, steps, every = random_pairs(np.random.default_rng(900), 6, 8, 60), SearchSteps(16, 6, 2, 3, 1, 2, 40), []
    for used in (Processor(2), device):
        actual = FoundSuperpositions.empty(pairs)
        kind = backend_module(used, "superposition").ChainSuperposition
        list(kind(used, steps).superpose(pairs, actual))
        every.append(actual)
    for expected, actual in zip(*every, strict=True):
        np.testing.assert_array_equal(actual, expected)
