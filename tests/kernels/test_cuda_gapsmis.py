"""Alignments with a bounded number of gaps on a GPU equal those on the CPU, with every plan. The kernels run through tests/shim."""

from __future__ import annotations

import threading
from itertools import product

import numpy as np
import pytest

from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cuda import gapsmis
from proteoscope.kernels.cuda.gapsmis import ReadSearch
from proteoscope.kernels.cuda.gapsmis_plan import (
    EIGHT,
    FOUR,
    MANY_TEXTS,
    NARROW,
    ONE_TEXT,
    PROFILE,
    TABLE,
    WIDE,
    GapsMisShape,
    Properties,
    Task,
    seconds,
    shapes,
)
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.device import DeviceError, DeviceMemoryError, UnsupportedSearchError
from proteoscope.kernels.gapsmis_layouts import LOCAL, NO_ALIGNMENT, PREFIX, WITHIN, Alignments, GapRules
from tests.shim.deferred_gpu import DeferredGpu
from tests.shim.read_inputs import aligned, assert_same_alignments, damaged_reads, expected_alignments, sequences
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned

pytestmark = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")

DNA = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)
UNEVEN = np.array([[4, -1, 0], [-2, 3, 1], [-4, 0, 5]], np.int32)
SMALL = GapsMisShape(MANY_TEXTS, 4, 3, NARROW, FOUR, 64)


def check(texts, patterns, rules, pairs=None, *, gpu=None, tracing=(False, True), **options):
    """Compare all columns, with and without tracing, with the CPU; by default in narrow strips, which compile fast."""
    text_of, pattern_of = pairs or (np.arange(len(texts)),) * 2
    gpu, options = gpu or ShimGpu(), {"traces_on_host": False} | options
    for traces in tracing:
        shaped = options if "shape" in options else options | {"shape": small_shape(gpu, texts, patterns, rules, traces, options)}
        expected = expected_alignments(texts, patterns, rules, text_of, pattern_of, traces=traces)
        assert_same_alignments(aligned(gpu, texts, patterns, rules, text_of, pattern_of, traces=traces, **shaped), expected)
    return expected


def small_shape(gpu, texts, patterns, rules, traces, options):
    search = tuned(ReadSearch, **options)(gpu, sequences(texts), sequences(patterns), rules)
    search._receive()
    task = search._task(1, 1, 1, traces=traces)
    return GapsMisShape(MANY_TEXTS, 4, 3, task.numbers, task.scores, 64)


def words(lengths, n_codes):
    return [np.array(codes, np.int64) for length in lengths for codes in product(range(n_codes), repeat=length)]


def every_pair(texts, patterns):
    return np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))


@pytest.mark.parametrize("costs", [(DNA, 5, 2), (DNA, 0, 1), (UNEVEN, 1, 0), (DNA, 0, 0)], ids=["affine", "linear", "long", "free"])
@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_cuda_read_alignment_equals_cpu_in_all_small_cases(mode, costs):
    texts, patterns = words(range(5), 2), words(range(4), 2)
    check(texts, patterns, GapRules(*costs, 2, mode), every_pair(texts, patterns), tracing=(True,))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_cuda_read_alignment_equals_cpu_over_several_strips(mode):
    texts, patterns = damaged_reads(60, 21)
    for shape in (None, SMALL, GapsMisShape(MANY_TEXTS, 1, 6, NARROW, FOUR, 32), GapsMisShape(MANY_TEXTS, 32, 2, NARROW, EIGHT, 32)):
        check(texts, patterns, GapRules(DNA, 5, 2, 2, mode), shape=shape)


@pytest.mark.parametrize(("mode", "maximum_gaps"), [(PREFIX, 0), (LOCAL, 0), (PREFIX, 4), (WITHIN, 1), (LOCAL, 3), (WITHIN, 30)])
def test_cuda_read_alignment_equals_cpu_for_any_maximum_of_gaps(mode, maximum_gaps):
    texts, patterns = damaged_reads(30, 22, most=60)
    check(texts, patterns, GapRules(DNA, 1, 1, maximum_gaps, mode))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_cuda_read_alignment_equals_cpu_with_a_seed(mode):
    texts, patterns = damaged_reads(40, 23, n_codes=3, most=50)
    texts, patterns = [*texts, *words([0, 2, 4], 2)], [*patterns, *words([0, 2, 4], 2)]
    for length in (1, 4):
        actual = check(texts, patterns, GapRules(DNA, 3, 1, 2, mode, length), shape=GapsMisShape(MANY_TEXTS, 4, 4, NARROW, FOUR, 32))
    assert 5 < (actual.score != NO_ALIGNMENT).sum() < len(texts)


def test_cuda_read_alignment_by_published_recurrence_equals_cpu():
    texts, patterns = damaged_reads(60, 24, n_codes=3, most=60)
    actual = check(texts, patterns, GapRules(DNA, 1, 1, 2, is_published=True), shape=SMALL)
    free = expected_alignments(texts, patterns, GapRules(DNA, 1, 1, 2), np.arange(60), np.arange(60))
    assert (actual.score < free.score).any()
    check(texts, patterns, GapRules(DNA, 1, 1, 1, PREFIX, 1, is_published=True))


@pytest.mark.parametrize(
    ("n_codes", "numbers", "mode"),
    [
        (4, WIDE, PREFIX),
        (7, NARROW, WITHIN),
        (7, WIDE, LOCAL),
        (27, NARROW, LOCAL),
        (27, NARROW, PREFIX),
        (27, WIDE, WITHIN),
    ],
)
def test_cuda_read_alignment_equals_cpu_for_any_alphabet(n_codes, numbers, mode):
    random = np.random.default_rng(25)
    matrix = np.where(np.eye(n_codes, dtype=bool), 9, random.integers(-6, 2, (n_codes, n_codes))).astype(np.int32)
    texts, patterns = damaged_reads(30, 26, n_codes=n_codes, most=70)
    check(texts, patterns, GapRules(matrix, 4, 1, 2, mode), numbers=numbers)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_large_scores_and_old_gpus_use_32_bit_read_alignment(mode):
    texts, patterns = damaged_reads(20, 27)
    check(texts, patterns, GapRules(1000 * DNA, 5000, 2000, 2, mode))
    old = ShimGpu()
    old.capability = 80
    check(texts, patterns, GapRules(DNA, 5, 2, 2, mode), gpu=old)
    assert all("NUMBERS=2" in defines for defines in old.defines if defines)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_cuda_read_alignment_equals_cpu_with_block_per_reference(mode):
    texts, patterns = damaged_reads(9, 28, n_codes=9, most=60)
    matrix = np.where(np.eye(9, dtype=bool), 5, -4).astype(np.int32)
    pairs = np.tile(np.arange(9), 9), np.repeat(np.arange(9), 9)
    for lanes in (4, 8):
        check(
            texts, patterns, GapRules(matrix, 4, 1, 2, mode), pairs, shape=GapsMisShape(ONE_TEXT, lanes, 64 // lanes, NARROW, PROFILE, 64)
        )


def test_cuda_read_alignment_equals_cpu_for_unequal_read_lengths():
    random = np.random.default_rng(35)
    texts, rules = [random.integers(0, 4, 60) for _ in range(2)], GapRules(DNA, 5, 9, 2)
    patterns = [texts[k % 2][: 3 + 2 * k] for k in range(24)]
    pairs = np.tile([0, 1], 24), np.repeat(np.arange(24), 2)
    check(texts, patterns, rules, pairs, shape=GapsMisShape(ONE_TEXT, 8, 8, NARROW, PROFILE, 64))


def test_cuda_read_alignment_traces_long_references_in_batches():
    random = np.random.default_rng(29)
    text = random.integers(0, 4, 900)
    patterns = [np.delete(text[k : k + 60], slice(30, 33)) for k in (0, 100, 400, 830)] + [random.integers(0, 4, 20)]
    short, rows = damaged_reads(80, 30, most=40)
    pairs = [*([0] * 5), *range(1, 81)], [*range(85)]
    for mode in (PREFIX, WITHIN, LOCAL):
        gpu = ShimGpu()
        check([text, *short], [*patterns, *rows], GapRules(DNA, 5, 2, 2, mode), pairs, gpu=gpu, direction_bytes=500_000)
        assert gpu.launched.count("trace_reads") > 1
    with pytest.raises(DeviceMemoryError, match="trace-back"):
        check([text], patterns[:1], GapRules(DNA, 5, 2, 2, WITHIN), ([0], [0]), tracing=(True,), direction_bytes=1000)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_cuda_read_alignment_can_trace_back_on_the_cpu(mode):
    texts, patterns = damaged_reads(30, 31)
    gpu = ShimGpu()
    check(texts, patterns, GapRules(DNA, 5, 2, 2, mode), gpu=gpu, traces_on_host=True)
    assert "trace_reads" not in gpu.launched


def test_cuda_read_alignment_leaves_other_pairs_unchanged():
    texts, patterns = damaged_reads(12, 32)
    out, every = Alignments.none(12, 2), np.arange(12)
    search = ReadSearch(ShimGpu(descending=True), sequences(texts), sequences(patterns), GapRules(DNA, 5, 2, 2))
    assert list(search.align(every[:0], every[:0], Alignments.none(0, 2))) == []
    list(search.align(every, every, out, 4, 9))
    expected = expected_alignments(texts, patterns, GapRules(DNA, 5, 2, 2), every, every)
    np.testing.assert_array_equal(out.score[4:9], expected.score[4:9])
    assert (np.delete(out.score, slice(4, 9)) == NO_ALIGNMENT).all()


def test_stopped_cuda_read_alignment_leaves_later_rows_unchanged(monkeypatch):
    texts, patterns = damaged_reads(40, 33)
    monkeypatch.setattr(gapsmis, "_CELLS", {False: 50_000, True: 50_000})
    rules, every = GapRules(DNA, 5, 2, 2), np.arange(40)
    whole = check(texts, patterns, rules)
    out = Alignments.none(40, 2)
    steps = ReadSearch(ShimGpu(), sequences(texts), sequences(patterns), rules).align(every, every, out)
    end = next(end for end in steps if end > 0)
    steps.close()
    assert 0 < end < 40
    np.testing.assert_array_equal(out.score[:end], whole.score[:end])
    assert (out.score[end:] == NO_ALIGNMENT).all()


@pytest.fixture
def small_parts(monkeypatch):
    """Send chunks of 64 bytes with two threads, and align blocks of a few pairs."""
    monkeypatch.setattr("proteoscope.kernels.cuda.sending._STAGED_BYTES", 64)
    monkeypatch.setattr(gapsmis, "_CELLS", {False: 50_000, True: 50_000})
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(2), raising=False)


def changing_reads():
    """Return reads with more and more symbols, and rules for them."""
    parts = [damaged_reads(15, n, n_codes=n) for n in (4, 5, 8, 12)]
    texts, patterns = ([sequence for part in parts for sequence in part[side]] for side in range(2))
    matrix = np.where(np.eye(12, dtype=bool), 9, np.random.default_rng(36).integers(-6, 2, (12, 12))).astype(np.int32)
    return texts, patterns, GapRules(matrix, 4, 1, 2)


def narrow(search, task):
    """Plan that compiles fast."""
    return GapsMisShape(MANY_TEXTS, 4, 3, task.numbers, task.scores, 64)


def held_gpu(texts, patterns, rules):
    """GPU to which sequences after the first block of pairs are sent only when the alignment of this block has begun."""
    gpu, begun, launch, every = DeferredGpu(), threading.Event(), DeferredGpu.launch, np.arange(len(texts))
    sides = sequences(texts), sequences(patterns)
    _, end = next(ReadSearch(ShimGpu(), *sides, rules)._blocks(every, every))
    needed = {len(side.codes): side.offsets[end] for side in sides}  # by the size of the buffer
    gpu.hold = lambda buffer, offset: (
        offset < needed.get(gpu.size(buffer), 1 << 30) or begun.wait(30) or pytest.fail("waits for later sequences")
    )

    def started(file, kernel, *arguments, **options):
        launch(gpu, file, kernel, *arguments, **options)
        if kernel == "align_reads":
            begun.set()

    gpu.launch = started
    return gpu


@pytest.mark.parametrize(("mode", "traces"), [(PREFIX, False), (PREFIX, True), (LOCAL, True)])
def test_cuda_read_alignment_begins_before_later_reads_arrive(small_parts, mode, traces):
    texts, patterns, rules = changing_reads()
    rules, every, gpu = rules._replace(mode=mode), np.arange(60), held_gpu(texts, patterns, rules._replace(mode=mode))
    actual = aligned(gpu, texts, patterns, rules, every, every, traces=traces, _best_shape=narrow, traces_on_host=False)
    assert_same_alignments(actual, expected_alignments(texts, patterns, rules, every, every, traces=traces))
    # Between the first launches of two blocks only symbols are downloaded, no results.
    steps = [name for name in gpu.log if name not in ("upload", "trace_reads")]
    first = steps.index("align_reads")
    assert steps[first + 1 : steps.index("align_reads", first + 1)] == ["note_symbols", "note_symbols", "download"]
    assert {define for defines in gpu.defines for define in defines if "SCORES" in define} == {f"SCORES={n}" for n in (FOUR, EIGHT, TABLE)}


def test_cuda_read_alignment_is_the_same_in_any_order_of_pairs(small_parts):
    texts, patterns, rules = changing_reads()
    mixed = np.random.default_rng(37).permutation(60), np.random.default_rng(38).permutation(60)
    actual = aligned(DeferredGpu(), texts, patterns, rules, *mixed, _best_shape=narrow, traces_on_host=False)
    assert_same_alignments(actual, expected_alignments(texts, patterns, rules, *mixed))


@pytest.mark.parametrize("mode", [PREFIX, LOCAL])
def test_cuda_read_alignment_waits_for_its_score_tables(mode):
    texts, patterns = damaged_reads(20, 39)
    check(texts, patterns, GapRules(DNA, 5, 2, 2, mode), gpu=DeferredGpu())


def test_stopped_cuda_read_alignment_can_begin_again(small_parts):
    texts, patterns, rules = changing_reads()
    every, out = np.arange(60), Alignments.none(60, 2)
    gpu = held_gpu(texts, patterns, rules)
    search = tuned(ReadSearch, _best_shape=narrow, traces_on_host=False)(gpu, sequences(texts), sequences(patterns), rules)
    steps = search.align(every, every, out)
    end = next(end for end in steps if end > 0)
    steps.close()
    expected = expected_alignments(texts, patterns, rules, every, every)
    np.testing.assert_array_equal(out.score[:end], expected.score[:end])
    assert 0 < end < 60
    assert (out.score[end:] == NO_ALIGNMENT).all()
    assert all(stream.done == len(stream.commands) for stream in (*search._streams, search._stream))
    list(search.align(every, every, out))
    assert_same_alignments(out, expected)


@pytest.mark.parametrize("fails", range(0, 12, 2))
def test_failed_cuda_read_alignment_does_not_return_wrong_rows(small_parts, fails):
    texts, patterns, rules = changing_reads()
    every, out, ends = np.arange(60), Alignments.none(60, 2), [0]
    kind = tuned(ReadSearch, _best_shape=narrow, traces_on_host=False)
    with pytest.raises(DeviceError):
        ends.extend(kind(DeferredGpu(failing_launch=fails), sequences(texts), sequences(patterns), rules).align(every, every, out))
    expected = expected_alignments(texts, patterns, rules, every, every)
    np.testing.assert_array_equal(out.score[: ends[-1]], expected.score[: ends[-1]])
    assert ends[-1] < 60


def test_cuda_read_alignment_rejects_scores_that_may_overflow():
    rules = GapRules(np.full((4, 4), 170_000, np.int32), 5, 2, 2)
    with pytest.raises(UnsupportedSearchError):
        ReadSearch(ShimGpu(), sequences([[0]]), sequences([[0] * 2000]), rules)
    with pytest.raises(ValueError, match="32 bits"):
        ReadSearch(ShimGpu(), sequences([[0]]), sequences([[0] * 2000]), rules._replace(matrix=10 * rules.matrix))


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("traces", [False, True])
def test_cuda_read_alignment_does_the_predicted_work(even, traces):
    texts, patterns = damaged_reads(50, 34, even=even)
    texts, text_of, pattern_of = [text[:64] for text in texts[:10]], np.arange(50) // 5, np.arange(50)  # short: traced in one pass
    for shape in (SMALL, GapsMisShape(ONE_TEXT, 8, 16, NARROW, PROFILE, 64)):
        gpu = ShimGpu()
        kind = tuned(ReadSearch, shape=shape, traces_on_host=False)
        search = kind(gpu, sequences(texts), sequences(patterns), GapRules(DNA, 5, 2, 2))
        search._receive()
        search._score_tables(shape, traces, gpu.stream())
        gpu.operations = gpu.bytes_in = gpu.bytes_out = gpu.transfers = gpu.shared_bytes = 0
        gpu.launched.clear()
        list(search.align(text_of, pattern_of, Alignments.none(50, 2), traces=traces))
        work = search._work(text_of, pattern_of, traces=traces)
        counted = OperationCounts(
            len(gpu.launched),
            gpu.operations,
            work.memory_blocks,
            gpu.bytes_in // 4,
            gpu.bytes_out // 4,
            gpu.shared_bytes,
            gpu.transfers,
        )
        assert work == counted
        assert work.memory_blocks > 0


def test_read_alignment_launch_shape_has_shortest_predicted_time():
    h200 = Properties(132, 90, 232_448)

    def best(*values, **more):
        task = Task(*values, **more)
        return min(shapes(task, h200), key=lambda shape: seconds(shape, task, h200))

    of_reads = 204_800, 250, 200, 2, PREFIX, NARROW
    assert best(*of_reads, FOUR, False).plan == MANY_TEXTS
    # Sorting pairs by their texts pays for long texts of many codes with many patterns each.
    refer_to_proteins = 204_800, 500, 500, 2, PREFIX, NARROW
    assert best(*refer_to_proteins, TABLE, False, patterns_of_text=2048, n_symbols=24).plan == ONE_TEXT
    assert best(*refer_to_proteins, TABLE, False).plan == MANY_TEXTS
    # Few pairs are divided among more lanes.
    assert best(50, 250, 200, 2, PREFIX, NARROW, FOUR, False).lanes > best(*of_reads, FOUR, False).lanes


def test_read_alignment_launch_shape_depends_on_measured_rates():
    def best(task, **times):
        rates = USUAL_RATES._replace(**{name: factor * getattr(USUAL_RATES, name) for name, factor in times.items()})
        gpu = Properties(132, 90, 232_448, rates)
        chosen = min(shapes(task, gpu), key=lambda shape: seconds(shape, task, gpu))
        return chosen, seconds(chosen, task, gpu)

    refer_to_proteins = Task(204_800, 500, 500, 2, PREFIX, NARROW, TABLE, False, 2048, 24)
    assert best(refer_to_proteins)[0].plan == ONE_TEXT
    assert best(refer_to_proteins, maxima=50)[0].plan == MANY_TEXTS, "pairs are not sorted as fast as they are aligned there"
    # Many concurrent lanes write more directions.
    traced = Task(399_360, 250, 100, 3, PREFIX, NARROW, FOUR, True)
    assert best(traced, memory_bytes=0.1)[0].width < best(traced)[0].width
    few = Task(1, 20, 10, 1, PREFIX, NARROW, FOUR, False)
    assert best(few, launch=100)[1] > 10 * best(few)[1]


def test_slow_gpu_aligns_fewer_reads_between_cancel_checks():
    texts, patterns = damaged_reads(40, 34)
    rules, every = GapRules(DNA, 5, 2, 2), np.arange(40)

    def aligned(gpu):
        out = Alignments.none(40, 2)
        return set(tuned(ReadSearch, shape=SMALL)(gpu, sequences(texts), sequences(patterns), rules).align(every, every, out)), out

    slow = ShimGpu()
    slow.rates = USUAL_RATES._replace(maxima=USUAL_RATES.maxima * 1e-6)
    (ends, actual), (many, same) = aligned(ShimGpu()), aligned(slow)
    assert len(many) > 2 * len(ends)
    for left, right in zip(actual, same, strict=True):
        np.testing.assert_array_equal(left, right)
    assert items_between_checks(1e11, 2.0, 1.0) == 1e11, "a faster one takes no more than was tried"
    assert items_between_checks(10, 1e-9, 1.0) == 1
