"""Work on a GPU ends before its memory is freed, also when a search is stopped or the GPU is full.

The shim runs everything synchronously, so a buffer that is freed too early does no harm there; on a GPU another search may get its memory
while a transfer still writes to it. So this GPU records the work of each stream since the last synchronization.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from proteoscope.kernels.clustering_layouts import AVERAGE, Linkage
from proteoscope.kernels.cpu import candidates as cpu
from proteoscope.kernels.cuda.fragment_index import FragmentSearch
from proteoscope.kernels.cuda.gapsmis import ReadSearch
from proteoscope.kernels.cuda.gapsmis_plan import FOUR, MANY_TEXTS, NARROW, GapsMisShape
from proteoscope.kernels.cuda.match_scores import MatchScores
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from proteoscope.kernels.cuda.superposition import ChainSuperposition
from proteoscope.kernels.cuda.vector_clustering import VectorClustering
from proteoscope.kernels.device import DeviceMemoryError
from proteoscope.kernels.gapsmis_layouts import LOCAL, Alignments, GapRules
from proteoscope.kernels.score_kinds import HYPERSCORE
from proteoscope.kernels.structure_layouts import FoundSuperpositions, SearchSteps
from tests.shim.alignment_inputs import N_CODES, plain_scores, random_sequences, search_with
from tests.shim.chain_inputs import random_pairs
from tests.shim.fragment_inputs import assert_same_answer, empty_answer, on_processor, random_fragment_search
from tests.shim.mass_inputs import plain_best, random_lists
from tests.shim.read_inputs import damaged_reads, sequences
from tests.shim.search_inputs import NOT_STOPPED, assert_same_hits, empty_hits, random_search
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import limited, tuned
from tests.shim.vector_inputs import random_vectors, windows

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")


FEW_BYTES = 1000  # every GPU has as much memory


@pytest.fixture(scope="module", autouse=True)
def skip_existing_objects() -> Iterator[None]:
    """Let Python's garbage collector visit only the objects of these tests: visiting all objects took longer than the tests."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Stream:
    """Stream with the memory that pending work may still access."""

    def __init__(self) -> None:
        self.touched: set[int] = set()


class WatchingGpu(ShimGpu):
    """Records memory that is freed while a stream may access it; the allocations with numbers in `refused` fail as on a full GPU."""

    def __init__(self, refused=()):
        super().__init__()
        self.streams: list[Stream] = []
        self.freed_early: list[int] = []
        self.n_buffers, self._refused = 0, set(refused)
        self._number_of: dict[int, int] = {}
        self._number_at: dict[tuple[int, int], int] = {}  # by address and bytes

    def _watched(self, memory):
        number, place = self.n_buffers, id(memory)
        self.n_buffers += 1
        self._number_of[place] = number
        self._number_at[memory.ctypes.data, memory.nbytes] = number
        weakref.finalize(memory, self._freed, place)
        return memory

    def _freed(self, place):
        number = self._number_of.pop(place)
        if any(number in stream.touched for stream in self.streams):
            self.freed_early.append(number)

    def _touch(self, stream, *arrays):
        for array in arrays:
            owner = array if array.base is None else array.base
            if id(owner) in self._number_of:
                stream.touched.add(self._number_of[id(owner)])

    def buffer(self, n_bytes):
        if self.n_buffers in self._refused and n_bytes > FEW_BYTES:
            self.n_buffers += 1
            raise DeviceMemoryError("full")
        return self._watched(super().buffer(n_bytes))

    def pinned(self, n_bytes):
        return self._watched(super().pinned(n_bytes))

    def stream(self, *, is_urgent=False):
        self.streams.append(Stream())
        return self.streams[-1]

    def upload(self, buffer, values, stream, *, offset=0):
        self._touch(stream, buffer, values)
        super().upload(buffer, values, stream, offset=offset)

    def download(self, values, buffer, stream, *, offset=0):
        self._touch(stream, buffer, values)
        super().download(values, buffer, stream, offset=offset)

    def clear(self, buffer, n_bytes, stream):
        self._touch(stream, buffer)
        super().clear(buffer, n_bytes, stream)

    def launch(self, file, kernel, blocks, threads, arguments, stream, **options):
        self._touch(stream, *(argument for argument in arguments if isinstance(argument, np.ndarray) and argument.ndim))
        for argument in arguments:
            if isinstance(argument, np.ndarray) and not argument.ndim:  # a struct with addresses of buffers
                words = np.frombuffer(argument.tobytes()[: argument.nbytes // 8 * 8], np.uint64).tolist()
                places = self._number_at.items()
                stream.touched |= {number for word in words for (start, size), number in places if start <= word < start + size}
        super().launch(file, kernel, blocks, threads, arguments, stream, **options)

    def wait(self, stream):
        stream.touched.clear()
        super().wait(stream)

    def is_idle(self):
        return not any(stream.touched for stream in self.streams)


def spectrum_search(gpu, inputs, **options):
    spectra, queries, peptides, modifications, settings = inputs
    hits = empty_hits(len(queries.mass), slots=3)
    return hits, tuned(SpectrumSearch, **options)(gpu, peptides, modifications, settings).search_queries(
        spectra, queries, hits, 0, len(queries.mass)
    )


def sparse(gpu):
    return spectrum_search(gpu, random_search(40, HYPERSCORE), candidates_of_batch=300)[1]


def dense(gpu):
    inputs = random_search(90, HYPERSCORE, n_queries=100, precursor=(3.0, 0.0), n_peptides=600, which=(0, 4), most=1)
    return spectrum_search(gpu, inputs, minimum_sharing=0.0, dense_candidates_of_batch=1)[1]


def open_search(gpu):
    work = random_fragment_search(43, HYPERSCORE, n_peptides=900, most=0)
    answer = empty_answer(len(work.windows), 8)
    kind = tuned(FragmentSearch, forms_of_chunk=128, threads=64, pairs_of_batch=1)
    search = kind(gpu, *work.inputs[2:], work.form_mass, work.form_code)
    n = len(work.windows)
    return search.search_chunks(work.segments, work.windows, work.tables, 0, n, answer.best, answer.histogram, 0.5, answer.n_candidates)


def alignment(gpu):
    random = np.random.default_rng(1)
    queries, subjects = random_sequences(random, [66, 30]), random_sequences(random, random.integers(1, 60, 60).tolist())
    search = search_with(gpu, subjects, memory_bytes=5000, shape=(4, 8), threads=32)
    return search.score(queries, np.full((N_CODES, N_CODES), 1), 11, 1, np.zeros((2, 60), np.int32))


def clustering(gpu, labels=None):
    random = np.random.default_rng(3)
    search = tuned(VectorClustering, pairs_of_batch=200.0, pairs_of_run=100.0, threads=64)
    vectors, ends = random_vectors(random, 300), windows(random, 300, 2.5)
    return search(gpu, vectors, ends).cluster(Linkage(AVERAGE, 0.5), np.zeros(300, np.int64) if labels is None else labels)


def match_scores(gpu, memory_bytes=20_000):
    random = np.random.default_rng(4)
    candidates, queries = random_lists(random, 200), random_lists(random, 9, in_order=False)
    kind, its_gpu = limited(MatchScores, gpu, {"candidates_of_chunk": 32, "passes_between_checks": 9, "memory_bytes": memory_bytes})
    actual = np.zeros((9, 4), np.int64), np.zeros((9, 4), np.int32)
    return kind(its_gpu, candidates).search(queries, (-300, 300), 4, *actual)


def reads(gpu):
    rules = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 2, LOCAL)  # traced in a second pass
    kind = tuned(ReadSearch, shape=GapsMisShape(MANY_TEXTS, 4, 3, NARROW, FOUR, 64), traces_on_host=False)
    search = kind(gpu, *map(sequences, damaged_reads(40, 7)), rules)
    search._cells = {False: 50_000, True: 50_000}
    return search.align(np.arange(40), np.arange(40), Alignments.none(40, 2))


def superposition(gpu):
    pairs = random_pairs(np.random.default_rng(6), 8, 8, 16)
    kind = tuned(ChainSuperposition, cells_of_run=1)
    return kind(gpu, SearchSteps(8, 2, 1, 2, 1, 2, 40)).superpose(pairs, FoundSuperpositions.empty(pairs))


@pytest.mark.parametrize("begin", [sparse, dense, open_search, alignment, clustering, match_scores, superposition, reads])
@pytest.mark.parametrize("n_steps", [1, 2, 4])
def test_stopped_gpu_search_leaves_no_pending_work(begin, n_steps):
    gpu = WatchingGpu()
    work = begin(gpu)
    for _ in range(n_steps):
        next(work)
    work.close()
    assert gpu.is_idle()
    del work
    gc.collect()
    assert gpu.freed_early == []


@pytest.mark.parametrize("n_steps", range(1, 20))
def test_stopped_gpu_clustering_leaves_no_pending_work(n_steps, monkeypatch):
    monkeypatch.setattr("proteoscope.kernels.cuda.vector_clustering._LARGEST_OF_CLASS", (6, 4, 2))  # several merged together
    test_stopped_gpu_search_leaves_no_pending_work(clustering, n_steps)


@pytest.mark.parametrize("refused", [pytest.param(n, marks=[pytest.mark.long] * (n % 12 > 0)) for n in range(0, 60, 3)])
def test_gpu_superposition_without_memory_leaves_no_pending_work(refused):
    gpu = WatchingGpu(refused=[refused])
    with suppress(DeviceMemoryError):
        list(superposition(gpu))
    gc.collect()
    assert gpu.is_idle()
    assert gpu.freed_early == []


@pytest.mark.parametrize("refused", range(0, 60, 4))
def test_gpu_reads_without_memory_leave_no_pending_work(refused):
    gpu = WatchingGpu(refused=[refused])
    with suppress(DeviceMemoryError):
        list(reads(gpu))
    gc.collect()
    assert gpu.is_idle()
    assert gpu.freed_early == []


@pytest.mark.parametrize("begin", [sparse, dense, open_search, alignment, clustering, superposition, reads])
def test_finished_gpu_search_leaves_no_pending_work(begin):
    gpu = WatchingGpu()
    assert len(set(begin(gpu))) > 3
    gc.collect()
    assert gpu.is_idle()
    assert gpu.freed_early == []


@pytest.mark.parametrize("refused", range(9, 60, 3))
@pytest.mark.parametrize("minimum_sharing", [0.0, np.inf])
def test_gpu_spectrum_search_is_exact_if_any_allocation_fails(refused, minimum_sharing):
    inputs = random_search(91, HYPERSCORE, n_queries=40, precursor=(3.0, 0.0), n_peptides=300, which=(0, 4), most=1)
    gpu = WatchingGpu({refused, refused + 1})
    hits, work = spectrum_search(gpu, inputs, minimum_sharing=minimum_sharing)
    assert list(work)[-1] == 40
    expected = empty_hits(40, slots=3)
    cpu.search_queries(*inputs[:5], expected, 0, 40, NOT_STOPPED)
    assert_same_hits(hits, expected)
    assert gpu.freed_early == []


@pytest.mark.parametrize("refused", range(5, 35, 3))
def test_gpu_fragment_index_is_exact_if_any_allocation_fails(refused):
    work = random_fragment_search(44, HYPERSCORE, n_peptides=300, most=1, n_queries=5)
    gpu = WatchingGpu({refused})
    answer, n = empty_answer(5, 8), len(work.windows)
    search = tuned(FragmentSearch, forms_of_chunk=256, threads=64, bin_shift=16)(gpu, *work.inputs[2:], work.form_mass, work.form_code)
    list(search.search_chunks(work.segments, work.windows, work.tables, 0, n, answer.best, answer.histogram, 0.5, answer.n_candidates))
    assert_same_answer(answer, on_processor(work, 0.5))
    assert gpu.freed_early == []


@pytest.mark.parametrize("memory_bytes", [None, 5000])
@pytest.mark.parametrize("refused", range(16))
def test_gpu_sequence_alignment_is_exact_if_any_allocation_fails(refused, memory_bytes):
    random = np.random.default_rng(2)
    queries, subjects = random_sequences(random, [40, 30]), random_sequences(random, random.integers(1, 60, 30).tolist())
    scores = np.where(np.eye(N_CODES, dtype=bool), 5, -3)
    gpu, out = WatchingGpu({refused}), np.zeros((2, 30), np.int32)
    search = search_with(gpu, subjects, memory_bytes=memory_bytes, shape=(4, 8), threads=32)
    list(search.score(queries, scores, 11, 1, out))
    np.testing.assert_array_equal(out, plain_scores(queries, subjects, scores, 11, 1))
    assert gpu.freed_early == []


def test_gpu_alignment_uses_smaller_batches_if_allocation_fails():
    random = np.random.default_rng(3)
    queries, subjects = random_sequences(random, [40]), random_sequences(random, random.integers(1, 60, 200).tolist())
    scores, gpu, out = np.where(np.eye(N_CODES, dtype=bool), 5, -3), WatchingGpu(), np.zeros((1, 200), np.int32)
    search = search_with(gpu, subjects, shape=(4, 8), threads=32)
    gpu.largest_buffer = 20_000
    ends = list(search.score(queries, scores, 11, 1, out))
    np.testing.assert_array_equal(out, plain_scores(queries, subjects, scores, 11, 1))
    assert len(set(ends)) > 2
    gpu.largest_buffer = 4000  # not even the counters of the warps
    with pytest.raises(DeviceMemoryError):
        list(search.score(queries, scores, 11, 1, out))


@pytest.mark.parametrize("refused", range(0, 40, 2))
def test_gpu_clustering_without_memory_leaves_no_pending_work(refused, monkeypatch):
    monkeypatch.setattr("tests.kernels.test_cuda_lifetimes.FEW_BYTES", 0)
    gpu, actual, expected = WatchingGpu({refused}), np.zeros(300, np.int64), np.zeros(300, np.int64)
    try:
        list(clustering(gpu, actual))
    except DeviceMemoryError:
        pass
    else:  # not enough memory for these matrices, so fewer were filled together
        list(clustering(usual := WatchingGpu(), expected))
        assert actual.tolist() == expected.tolist()
        assert gpu.launched.count("fill_averages") > usual.launched.count("fill_averages")
    gc.collect()
    assert gpu.is_idle()
    assert gpu.freed_early == []


@pytest.mark.parametrize("refused", range(0, 30, 2))
def test_gpu_match_scores_are_exact_or_fail_if_allocation_fails(refused, monkeypatch):
    monkeypatch.setattr("tests.kernels.test_cuda_lifetimes.FEW_BYTES", 100)
    random, gpu = np.random.default_rng(4), WatchingGpu({refused})
    candidates, queries = random_lists(random, 200), random_lists(random, 9, in_order=False)
    kind = tuned(MatchScores, candidates_of_chunk=32)
    actual = np.zeros((9, 4), np.int64), np.zeros((9, 4), np.int32)
    try:
        list(kind(gpu, candidates).search(queries, (-300, 300), 4, *actual))
        assert (actual[0].tolist(), actual[1].tolist()) == plain_best(queries, candidates, (-300, 300), 4)
    except DeviceMemoryError:
        assert refused < 6, "a smaller group would have fitted: only the queries must"
    gc.collect()
    assert gpu.is_idle()
    assert gpu.freed_early == []
