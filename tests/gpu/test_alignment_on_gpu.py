"""Smith-Waterman scores on a GPU equal those of the CPU kernels for every pair."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.scoring import score_all
from proteoscope.engine.sequences.database import read_sequences
from proteoscope.engine.sequences.matrices import Matrix, read_matrix
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.cuda.alignment_plan import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS
from tests.shim.alignment_inputs import N_CODES, database, plain_scores, random_sequences, scored, search_with

pytestmark = pytest.mark.gpu

SCHEMES = [("BLOSUM62", 11, 1), ("PAM30", 9, 1), ("BLOSUM45", 0, 1), ("PAM250", 0, 40), ("BLOSUM80", 14, 0)]
W = ord("W") - ord("A")


@pytest.fixture(params=[SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS], ids=["dpx", "half", "wide"])
def numbers(request, device) -> int:
    """Number format of the scores; the test is skipped if the GPU does not support it."""
    if device.compute_capability() < {SIXTEEN_BITS: 90, HALF_PRECISION: 80, THIRTY_TWO_BITS: 0}[request.param]:
        pytest.skip("the GPU is too old for these numbers")
    return request.param


def processor_scores(queries, sequences, matrix, gap_open, gap_extend):
    return score_all(queries, *database(sequences), ScoringScheme(matrix, gap_open, gap_extend), 4, Progress())


def check(device, queries, sequences, scheme, **options):
    matrix = read_matrix(scheme[0])
    actual, _ = scored(device, queries, sequences, matrix.scores, *scheme[1:], **options)
    np.testing.assert_array_equal(actual, processor_scores(queries, sequences, matrix, *scheme[1:]))


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("n_queries", [1, 2, 7])
def test_gpu_alignment_scores_of_random_sequences_equal_cpu(device, numbers, scheme, n_queries):
    random = np.random.default_rng(n_queries)
    queries = random_sequences(random, [300, 1, 144, 40, 1000, 0, 77][:n_queries])
    sequences = random_sequences(random, np.sort(random.integers(0, 700, 3000)).tolist())
    check(device, queries, sequences, scheme, numbers=numbers)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("n_queries", [1, 3])
def test_gpu_alignment_scores_equal_cpu_with_every_launch_shape(device, lanes, n_queries):
    random = np.random.default_rng(lanes)
    queries = random_sequences(random, [700, 650, 90][:n_queries])
    sequences = random_sequences(random, random.integers(0, 400, 900).tolist())
    for columns in (16, 24, 32, 40, 48, 56, 64, 72):
        if 28 * max(lanes, 8) * columns * 4 <= device.maximum_shared_bytes():
            check(device, queries, sequences, SCHEMES[0], shape=(lanes, columns))


@pytest.mark.parametrize("shape", [(64, 4, 128), (64, 8, 256), (128, 4, 128), (128, 8, 256), (128, 8, 512)], ids=str)
@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize("ordered", [True, False])
def test_gpu_alignment_equals_cpu_if_warps_share_long_subjects(device, shape, n_queries, ordered):
    random = np.random.default_rng(shape[0])
    queries = random_sequences(random, [2500, 1650, 90][:n_queries])
    lengths = np.concatenate((random.integers(0, 400, 900), random.integers(1000, 9000, 40)))
    sequences = random_sequences(random, (np.sort(lengths) if ordered else lengths).tolist())
    for n_longest in (30, 940):
        check(device, queries, sequences, SCHEMES[0], shape=(8, 32), n_longest=n_longest, longest_shape=(*shape, 7))


def test_gpu_alignment_scores_of_real_proteins_equal_cpu(device, numbers, shared_data):
    proteins, queries = (
        read_sequences([shared_data / "sequences" / name], Progress()) for name in ("mmseqs_DB.fasta", "cudasw_queries20.fasta")
    )
    some = [queries.codes(i) for i in range(len(queries))]
    for scheme in SCHEMES[:3]:
        matrix = read_matrix(scheme[0])
        out = np.zeros((len(some), len(proteins)), np.int32)
        search = search_with(device, [proteins.codes(i) for i in range(len(proteins))], numbers=numbers)
        list(search.score(some, matrix.scores, *scheme[1:], out, 0, len(proteins)))
        expected = score_all(some, proteins.residues, proteins.offsets, ScoringScheme(matrix, *scheme[1:]), 16, Progress())
        np.testing.assert_array_equal(out, expected)


def test_gpu_alignment_scores_beyond_16_bits_are_exact(device, numbers):
    random = np.random.default_rng(1)
    lengths = [1, 186, 187, 190, 2970, 2979, 2985, 5957, 5958, 7000, 40_000]
    tryptophans = [np.full(length, W, np.int8) for length in lengths]
    actual, _ = scored(device, [tryptophans[-1], tryptophans[5]], tryptophans, read_matrix("BLOSUM62").scores, 11, 1, numbers=numbers)
    np.testing.assert_array_equal(actual, 11 * np.minimum.outer([40_000, 2979], lengths))
    queries = random_sequences(random, [500, 35_000, 4000])
    check(device, queries, random_sequences(random, [35_000, 1, 40_000]), SCHEMES[0], numbers=numbers)
    check(device, queries[:1], random_sequences(random, [40_000]), SCHEMES[0], numbers=numbers)


def test_gpu_alignment_scores_are_exact_for_costs_over_16_bits(device, numbers):
    random = np.random.default_rng(2)
    scores = random.integers(-50_000, 20_000, (N_CODES, N_CODES))
    queries, sequences = random_sequences(random, [90, 40]), random_sequences(random, [60, 100, 5, 0])
    actual, _ = scored(device, queries, sequences, scores, 100_000, 5000, numbers=numbers)
    np.testing.assert_array_equal(actual, plain_scores(queries, sequences, scores, 100_000, 5000))
    matrix = Matrix("random", scores.astype(np.int32), "")
    np.testing.assert_array_equal(actual, processor_scores(queries, sequences, matrix, 100_000, 5000))


@pytest.mark.parametrize("ordered", [True, False])
def test_gpu_alignment_scores_of_a_streamed_database_equal_cpu(device, ordered):
    random = np.random.default_rng(3)
    lengths = random.integers(0, 900, 20_000)
    sequences = random_sequences(random, (np.sort(lengths) if ordered else lengths).tolist())
    queries, matrix = random_sequences(random, [200, 350]), read_matrix("BLOSUM62")
    actual, ends = scored(device, queries, sequences, matrix.scores, 11, 1, memory_bytes=12_000_000)
    np.testing.assert_array_equal(actual, processor_scores(queries, sequences, matrix, 11, 1))
    assert len(set(ends)) > 5


def test_gpu_is_usable_after_a_stopped_alignment_search(device):
    random = np.random.default_rng(4)
    queries, sequences = random_sequences(random, [3000]), random_sequences(random, [2000] * 2000)
    search, matrix = search_with(device, sequences, memory_bytes=30_000_000), read_matrix("BLOSUM62")
    out = np.zeros((1, 2000), np.int32)
    work = search.score(queries, matrix.scores, 11, 1, out, 0, 2000)
    next(work)
    work.close()
    list(search.score(queries[:1], matrix.scores, 11, 1, out, 0, 40))
    np.testing.assert_array_equal(out[:, :40], processor_scores(queries, sequences[:40], matrix, 11, 1))
