"""`AlignmentSearch` of the CPU and the GPU take the same arguments, give the same results, and predict their work correctly.

The GPU kernels run on the CPU, through tests/shim.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.cpu import alignment as on_processor
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda import alignment as on_gpu
from proteoscope.kernels.cuda.alignment_plan import TABLE_ROWS, Planner, Subjects
from proteoscope.kernels.device import backend_module
from tests.kernels.test_both_backends import constants
from tests.shim.alignment_inputs import N_CODES, database, plain_scores, random_sequences, search_with
from tests.shim.shim_gpu import ShimGpu, missing_compiler

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
MATRIX = np.where(np.eye(N_CODES, dtype=bool), 5, -3)
LONGEST = ((64, 4, 64, 1), (64, 4, 128, 1), (128, 4, 128, 1), (64, 8, 128, 1))


def signatures(module):
    """Return names, kinds, defaults and annotations of the parameters of public functions, without the device's own."""
    actual = {}
    for name in module.__all__:
        kind = getattr(module, name)
        for method in ("__init__", *(var for var in vars(kind) if not var.startswith("_") and inspect.isfunction(getattr(kind, var)))):
            signature = inspect.signature(getattr(kind, method))
            parameters = [
                (parameter.name, parameter.kind, parameter.default, parameter.annotation if parameter.name != "device" else "device")
                for parameter in signature.parameters.values()
            ]
            actual[name, method] = parameters, signature.return_annotation
    return actual


def sequences(seed, lengths):
    return random_sequences(np.random.default_rng(seed), lengths)


def test_alignment_backends_have_the_same_interface():
    assert on_processor.__all__ == on_gpu.__all__ == ["AlignmentSearch"]
    assert signatures(on_processor) == signatures(on_gpu)
    assert len(signatures(on_gpu)) == 4


@needs_compiler
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    queries=st.lists(st.integers(0, 70), min_size=1, max_size=4),
    subjects=st.lists(st.integers(0, 90), max_size=20),
    part=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    greatest=st.sampled_from([5, 3000]),
)
def test_alignment_backends_give_the_same_scores(seed, queries, subjects, part, greatest):
    some, residues = sequences(seed, queries), sequences(seed + 1, subjects)
    first, last = sorted(min(end, len(subjects)) for end in part)
    scores = MATRIX.copy()
    scores[3, 3] = greatest
    expected = plain_scores(some, residues, scores, 11, 1)
    for device in (Processor(2), ShimGpu()):
        out = np.full((len(some), len(subjects)), -7, np.int32)
        search = backend_module(device, "alignment").AlignmentSearch(device, *database(residues))
        ends = list(search.score(some, scores, 11, 1, out, first, last))
        np.testing.assert_array_equal(out[:, first:last], expected[:, first:last])
        assert (out[:, :first] == -7).all() and (out[:, last:] == -7).all()
        assert ends == sorted(ends) and (not ends or ends[-1] == last)


@needs_compiler
@pytest.mark.parametrize("n_queries", [1, 2, 3])
@pytest.mark.parametrize("shape", LONGEST, ids=str)
@pytest.mark.parametrize("n_longest", [3, 17])
def test_gpu_alignment_by_several_warps_per_subject_is_exact(n_queries, shape, n_longest):
    lengths = [0, 1, 2, 30, 31, 32, 33, 63, 64, 65, 100, 130, 140, 200, 257, 300, 300]
    queries, options = sequences(1, [300, 200, 33][:n_queries]), {"shape": (4, 8), "threads": 32, "longest_shape": shape}
    for order in (lengths, lengths[::-1]):
        subjects = sequences(2, order)
        out = np.zeros((n_queries, len(subjects)), np.int32)
        gpu = ShimGpu(descending=n_longest == 3)
        list(search_with(gpu, subjects, n_longest=n_longest, **options).score(queries, MATRIX, 11, 1, out))
        np.testing.assert_array_equal(out, plain_scores(queries, subjects, MATRIX, 11, 1))
        assert f"LANES={shape[0]}" in {macro for macros in gpu.defines for macro in macros}


@needs_compiler
@pytest.mark.parametrize("n_queries", [1, 3])
@pytest.mark.parametrize(
    ("lowest", "gap_open", "gap_extend", "skew"),
    [(-3, 0, 0, 0), (-3, 3, 0, 0), (-3, 5, 64, 64), (-3, 5, 65, 0), (-12, 11, 1, 1), (-14, 11, 1, 0)],
    ids=["no gap costs", "free extensions", "costly extensions", "too costly to skew", "low mismatches", "too low to skew"],
)
def test_gpu_alignment_is_exact_for_unusual_scores(lowest, gap_open, gap_extend, skew, n_queries):
    alike = np.full(700, 3, np.int8)
    queries, subjects = [alike, *sequences(1, [300, 33])][:n_queries], [alike, *sequences(2, [0, 1, 2, 3, 4, 5, 150, 200, 300])]
    matrix = np.where(MATRIX < 0, lowest, MATRIX)
    matrix[3, 3] = 50  # 700 residues: more than fits 16 bits
    gpu, out = ShimGpu(), np.zeros((n_queries, len(subjects)), np.int32)
    list(search_with(gpu, subjects, shape=(4, 12), threads=32).score(queries, matrix, gap_open, gap_extend, out))
    np.testing.assert_array_equal(out, plain_scores(queries, subjects, matrix, gap_open, gap_extend))
    assert any(f"SKEW={skew * 0x10001:#x}u" in macros for macros in gpu.defines)
    assert any("NUMBERS=3" in macros for macros in gpu.defines)


def test_gpu_alignment_plans_long_subjects_separately():
    planner = Planner(132, 232_448, None, None)
    lengths = np.sort(np.random.default_rng(1).gamma(2.0, 225.0, 20_000).astype(np.int64))[::-1].copy()
    lengths[0] = 8000

    def parts(lengths):
        rows = np.concatenate(([0], np.cumsum(lengths)))
        subjects = Subjects(len(lengths), int(rows[-1]), int(lengths[0]), int(lengths[-1]))
        return planner.parts(1, 2, [464], subjects, lengths, rows)

    longest, others = parts(lengths)
    assert 0 < longest.last == others.first < others.last == 20_000
    assert longest.shape.lanes > others.shape.lanes
    assert longest.blocks + others.blocks == 132
    assert len(parts(np.full(20_000, 400))) == 1
    assert len(parts(np.repeat(lengths, 100))) == 1, "long sequences among many more are done when the others are"


def test_alignment_sizes_are_equal_in_python_and_cuda():
    values = constants("alignment")
    assert values["kTableRows"] == TABLE_ROWS
    assert values["kRing"] * 16 == 2048


@needs_compiler
@pytest.mark.parametrize("device", [Processor(1), ShimGpu()], ids=["processor", "gpu"])
def test_alignment_cost_estimate_is_near_the_number_of_cells(device):
    lengths = np.array([0, 1, 7, 300, 5000])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    costs = backend_module(device, "alignment").AlignmentSearch(device, np.zeros(offsets[-1], np.int8), offsets).costs([100, 20])
    assert (costs >= 120 * lengths).all() and (costs <= 120 * (lengths + 32)).all()
    assert (np.diff(costs) >= 0).all()


class CountingGpu(ShimGpu):
    """Counts transfers, and the work that the kernels are launched for."""

    def __init__(self):
        super().__init__()
        self.bytes_in = self.bytes_out = self.shared_bytes = self.blocks = self.rounds = 0
        self.n_rows = None

    def launch(self, file, kernel, blocks, threads, arguments, stream, **options):
        if kernel == "score_strips":
            self.rounds += 1
            self.shared_bytes = max(self.shared_bytes, options["shared_bytes"])
            self.blocks += sum(-(-self.n_rows // 4) for name in ("border_in", "border_out") if arguments[0].view(on_gpu._SUBJECTS)[name])
            self.blocks += -(-self.n_rows // 32)
        super().launch(file, kernel, blocks, threads, arguments, stream, **options)


@needs_compiler
@pytest.mark.parametrize("lengths", [[70], [70, 33, 0, 140], [200, 30]])
@pytest.mark.parametrize("options", [{}, {"memory_bytes": 3000}], ids=["resident", "in batches"])
@pytest.mark.parametrize("order", [1, -1])
def test_gpu_alignment_does_the_predicted_work(lengths, options, order):
    queries, subjects, gpu = sequences(3, lengths), sequences(4, sorted(range(5, 60, 3))[::order]), CountingGpu()
    if options:
        subjects = sequences(4, [30] * 40)
    search = search_with(gpu, subjects, shape=(4, 8), threads=32, **options)
    n, rows, gpu.bytes_in = len(subjects), sum(map(len, subjects)), 0
    work = search.work(lengths)
    cuts = search._cuts(0, n, len(lengths))
    assert (len(cuts) > 1) == bool(options)
    gpu.n_rows = rows // len(cuts)  # of each batch, if all subjects have one length
    out = np.zeros((len(queries), n), np.int32)
    list(search.score(queries, MATRIX, 11, 1, out))
    assert work.rounds == gpu.rounds
    assert work.operations == sum(lengths) * rows
    assert 4 * work.words_in - 8 * len(cuts) - 8 < gpu.bytes_in <= 4 * work.words_in
    assert 4 * work.words_out == gpu.bytes_out
    assert work.shared_bytes == gpu.shared_bytes
    if len({stop - begun for begun, stop in cuts}) == 1:
        assert work.memory_blocks == gpu.blocks


@pytest.mark.parametrize("lengths", [[70], [70, 33, 0, 140]])
@pytest.mark.parametrize("n_subjects", [3, 300])
def test_cpu_alignment_does_the_predicted_work(lengths, n_subjects, monkeypatch):
    calls, words = [], []
    monkeypatch.setattr(on_processor, "score_lanes", lambda *arguments: calls.append("lanes"))
    monkeypatch.setattr(on_processor, "limited_scores", lambda *arguments: calls.append("pairs") or np.zeros(n_subjects))
    monkeypatch.setattr(on_processor, "fill_columns", lambda *arguments: (calls.append("fill"), words.append(arguments[-1].nbytes // 4)))
    monkeypatch.setattr(on_processor, "_CELLS_OF_A_CALL", 2_000_000)
    monkeypatch.setattr(on_processor, "_STRIPED_ROWS", 0)  # three subjects are scored pair by pair, even for short queries
    queries, subjects = sequences(5, lengths), sequences(6, [2000] * n_subjects)
    search, out = on_processor.AlignmentSearch(Processor(1), *database(subjects)), np.zeros((len(lengths), n_subjects), np.int32)
    work = search.work(lengths)
    list(search.score(queries, MATRIX, 11, 1, out))
    assert {"pairs" if n_subjects == 3 else "lanes", "fill"} <= set(calls)
    assert work.rounds == len(calls)
    assert work.words_in == sum(words)
    assert work.operations == sum(lengths) * 2000 * n_subjects
    assert work.words_out == out.size
