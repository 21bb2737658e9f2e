"""Smith-Waterman kernels against the recurrence written out in plain Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from proteoscope.kernels.cpu import alignment, vectors
from proteoscope.kernels.cpu.lanes import BLOCK_COLUMNS, PADDING, fill_columns, lane_count, lane_groups, score_lanes
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.rows import RowArrays, score_rows, trace_back
from proteoscope.kernels.cpu.substitution import Substitution
from proteoscope.kernels.cpu.tails import normal_tail
from tests.forked_scripts import fork_server

N_RESIDUES = 20


_COMPILER = (
    "hypothesis",
    "llvmlite.binding",
    "numba.cpython.randomimpl",
    "numba.experimental.jitclass.base",
    "numba.misc.cffiimpl",
    "numba.np.linalg",
    "numba.np.polynomial.polynomial_functions",
    "numba.np.random.legacy",
    "numba.np.unsafe.ndarray",
    "numba.typed.dictimpl",
    "numba.typed.typedset",
    "pytest",
)
"""Modules that Numba imports for the first function that it compiles, and those of this file."""


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Run a script that compiles for another CPU: without some features, or for those of environment variables."""
    with fork_server(tmp_path_factory.mktemp("scripts"), *_COMPILER) as server:

        def run(script: str, missing: str = "", **environment: str) -> str:
            choose = """
import sys, llvmlite.binding as llvm
from numba.core import config
config.reload_config()
features = llvm.get_host_cpu_features
llvm.get_host_cpu_features = lambda: features() | dict.fromkeys(sys.argv[1:], False)
"""
            environment["NUMBA_CACHE_DIR"] = str(tmp_path_factory.mktemp("kernels"))
            return server.run(choose + script, *missing.split(), environment=environment)

        yield run


def plain_score(query, subject, scores, opening, extending):
    """Compute the best local score, cell by cell."""
    h = [[0] * (len(subject) + 1) for _ in range(len(query) + 1)]
    e = [[-(10**9)] * (len(subject) + 1) for _ in range(len(query) + 1)]
    f = [[-(10**9)] * (len(subject) + 1) for _ in range(len(query) + 1)]
    best = 0
    for i in range(1, len(query) + 1):
        for j in range(1, len(subject) + 1):
            e[i][j] = max(e[i][j - 1] - extending, h[i][j - 1] - opening)
            f[i][j] = max(f[i - 1][j] - extending, h[i - 1][j] - opening)
            h[i][j] = max(0, h[i - 1][j - 1] + int(scores[query[i - 1], subject[j - 1]]), e[i][j], f[i][j])
            best = max(best, h[i][j])
    return best


def lane_scores(query, subjects, scores, opening, extending, bits, *, blocks_a_call=10**9, n_lanes_used=3):
    """Score `subjects` in a few lanes; some lanes hold several subjects one after the other, and others none."""
    dtype = np.dtype(f"int{bits}")
    lanes, costs = lane_count(bits), Substitution(scores, opening - extending, extending)
    filled = [0] * n_lanes_used
    lane, first, end = [], [], []
    for k, subject in enumerate(subjects):
        at = k % n_lanes_used
        lane.append(at)
        first.append(filled[at] * BLOCK_COLUMNS)
        filled[at] += -(-len(subject) // BLOCK_COLUMNS)
        end.append(filled[at] - 1)
    followed = [int(k + n_lanes_used < len(subjects)) for k in range(len(subjects))]
    order = np.argsort(end, kind="stable")
    lane, first, end, followed = (np.array(values, np.int64)[order] for values in (lane, first, end, followed))
    lengths = np.array([len(subject) for subject in subjects], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    columns = vectors.aligned(max(filled) * BLOCK_COLUMNS * lanes, np.int8)
    fill_columns(np.concatenate(subjects).astype(np.int8), starts[order], lengths[order], lane, first, lanes, columns)
    codes, query_rows = np.unique(query, return_inverse=True)
    m = len(query)
    space = [vectors.aligned(size * lanes, dtype) for size in (m, m, len(codes) * BLOCK_COLUMNS, 1, 1)]
    result = np.full(len(subjects), -7, np.int32)
    for block in range(0, max(filled), blocks_a_call):
        score_lanes(
            query_rows.astype(np.int64),
            codes.astype(np.int64),
            costs.table(bits),
            columns,
            block,
            min(max(filled), block + blocks_a_call),
            end,
            lane,
            order.astype(np.int64),
            followed,
            opening,
            extending,
            costs.most(bits),
            *space,
            result,
        )
    return result.tolist()


def expected_scores(query, subjects, scores, opening, extending, bits):
    """Return the expected result of `lane_scores`: -1 for scores beyond the range of numbers of `bits` bits."""
    most = (1 << (bits - 1)) - 1 - (0 if bits == 32 else max(0, int(scores.max())))
    plain = [plain_score(query, subject, scores, opening, extending) for subject in subjects]
    return [-1 if score > most else score for score in plain]


sequences = st.lists(st.integers(0, N_RESIDUES - 1), min_size=1, max_size=30).map(lambda residues: np.array(residues, np.int8))
matrices = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).integers(-6, 12, (N_RESIDUES, N_RESIDUES)))


@pytest.mark.parametrize("bits", [8, 16, 32])
@settings(max_examples=60, deadline=None)
@given(
    query=sequences,
    subjects=st.lists(sequences, min_size=1, max_size=9),
    scores=matrices,
    gap=st.tuples(st.integers(0, 9), st.integers(0, 4)),
)
def test_score_lanes_equals_smith_waterman_recurrence(bits, query, subjects, scores, gap):
    opening, extending = gap[0] + gap[1], gap[1]
    expected = expected_scores(query, subjects, scores, opening, extending, bits)
    assert lane_scores(query, subjects, scores, opening, extending, bits) == expected
    assert lane_scores(query, subjects, scores, opening, extending, bits, blocks_a_call=2) == expected


@pytest.mark.parametrize(
    ("bits", "length", "expected"),
    [(8, 10, 110), (8, 11, -1), (8, 40, -1), (16, 2977, 32747), (16, 2978, -1), (16, 9000, -1), (32, 2978, 32758)],
)
def test_score_lanes_marks_scores_that_overflow(bits, length, expected):
    scores = np.full((N_RESIDUES, N_RESIDUES), -3)
    np.fill_diagonal(scores, 11)
    run = np.full(length, 18, np.int8)
    assert lane_scores(run, [run], scores, 12, 1, bits) == [expected]


@pytest.mark.parametrize(("bits", "greatest"), [(8, 1), (8, 11), (8, 40), (16, 3000)])
def test_score_lanes_is_exact_after_an_overflow_in_the_same_lane(bits, greatest):
    most = (1 << (bits - 1)) - 1 - greatest
    random = np.random.default_rng(greatest)
    scores = np.minimum(random.integers(-8, 9, (N_RESIDUES, N_RESIDUES)), greatest)
    scores[18], scores[18, 18] = -4, greatest
    run = np.full(most // greatest + 3, 18, np.int8)
    last = [np.concatenate((run[:k], random.integers(0, 18, 25).astype(np.int8))) for k in (0, 1, len(run) - 4, len(run) - 3, len(run) - 2)]
    subjects = [run, *last, np.tile(run, 3), *last]
    for query in (run, np.concatenate((last[0], run))):
        result = lane_scores(query, subjects, scores, 9, 2, bits, n_lanes_used=1)
        assert result == expected_scores(query, subjects, scores, 9, 2, bits)
        assert {-1} < set(result)


@pytest.mark.parametrize("bits", [16, 32])
@settings(max_examples=100, deadline=None)
@given(
    query=sequences,
    subject=st.lists(st.integers(0, N_RESIDUES - 1), min_size=1, max_size=80).map(lambda residues: np.array(residues, np.int8)),
    scores=matrices,
    gap=st.tuples(st.integers(0, 9), st.integers(0, 4)),
    rows=st.integers(1, 31),
)
def test_trace_back_steps_have_the_best_score(bits, query, subject, scores, gap, rows):
    opening, extending = gap[0] + gap[1], gap[1]
    number, lanes = np.dtype(f"int{bits}"), lane_count(bits)
    m, n = len(query), len(subject)
    width = -(-n // lanes) * lanes
    expected = plain_score(query, subject, scores, opening, extending)
    profile, decay, f_row = (vectors.aligned(size, number) for size in (N_RESIDUES * width, lanes, width))
    profile[:], f_row[:], decay[:] = -1, -1, np.arange(1, lanes + 1) * extending
    profile.reshape(N_RESIDUES, width)[:, :n] = scores[:, subject]
    arrays = RowArrays(profile, decay, np.zeros((2, 1 + width), number), f_row)
    best, directions = np.array([0, -1, -1]), np.zeros((m, width), np.uint8)
    for first in range(0, m, rows):
        last = min(m, first + rows)
        score_rows(query.astype(np.int64), arrays, opening, extending, first, last, best, -1, directions[first:], True)
    assert best[0] == expected
    if expected == 0:
        return
    place, steps = np.array([best[1], best[2], 0, 0]), np.zeros(m + n, np.uint8)
    for first in range((best[1] // rows) * rows, -1, -rows):
        if trace_back(directions[first : first + rows], first, place, steps):
            break
    i, j, total, before = place[0] + 1, place[1] + 1, 0, 0
    for step in steps[: place[3]][::-1]:
        if step == 1:
            total += scores[query[i], subject[j]]
        else:
            total -= extending if step == before else opening
        i, j, before = i + (step != 2), j + (step != 3), step
    assert (total, i - 1, j - 1) == (expected, best[1], best[2])


def test_vector_look_up_returns_the_table_value_of_each_code():
    for dtype in (np.int8, np.int16, np.int32):
        lanes = lane_count(np.dtype(dtype).itemsize * 8)
        table = vectors.aligned(128, dtype)
        table[64:] = np.tile(np.arange(-16, 16), 2)
        codes = vectors.aligned(lanes, np.int8)
        codes[:] = np.arange(lanes) % 32
        out = vectors.aligned(lanes, dtype)
        _look_up_all(table, codes, out)
        assert out.tolist() == [code - 16 for code in codes.tolist()]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_maximum_by_comparison_equals_numpy(bits):
    limits, lanes = np.iinfo(f"int{bits}"), lane_count(bits)
    left, right, out = (vectors.aligned(4 * lanes, limits.dtype) for _ in range(3))
    rng = np.random.default_rng(bits)
    for values in (left, right):
        values[:] = rng.integers(limits.min, limits.max, len(values), endpoint=True)
        values[: 2 * lanes] = rng.choice([limits.min, -1, 0, 1, limits.max], 2 * lanes)
    _write_maxima(left, right, out)
    assert out.tolist() == np.maximum(left, right).tolist()


@njit
def _write_maxima(left, right, out):
    for i in range(0, len(out), vectors.lanes_of(out)):
        vectors.store(out, i, vectors.maximum_by_comparison(vectors.load(left, i), vectors.load(right, i)))


@njit
def _look_up_all(table, codes, out):
    vectors.store(out, 0, vectors.look_up(table, 64, vectors.load_codes(codes, 0, out)))


# For registers of one length, only the look-up of 8-bit numbers depends on other features. The traced kernels take long to compile: one
# width for each length, and the others with --all.
@pytest.mark.parametrize(
    ("missing", "widths", "traced_widths"),
    [
        ("avx512bw avx512vbmi", (8, 16, 32), (32,)),
        ("avx512vbmi", (8,), ()),
        ("avx512bw avx512vbmi avx2", (8, 16, 32), (16,)),
        ("avx512bw avx512vbmi avx2 ssse3", (8,), ()),
        pytest.param("avx512bw avx512vbmi", (), (16,), marks=pytest.mark.long),
        pytest.param("avx512bw avx512vbmi avx2", (), (32,), marks=pytest.mark.long),
    ],
)
def test_alignment_code_for_older_cpus_gives_the_same_scores(missing, widths, traced_widths, on_cpu):
    """Code for CPUs without some instructions also runs on this one."""
    program = f"""
import numpy as np
from tests.kernels import test_alignment as t
rng = np.random.default_rng(1)
scores = rng.integers(-6, 12, (20, 20))
query = rng.integers(0, 20, 40).astype(np.int8)
subjects = [rng.integers(0, 20, length).astype(np.int8) for length in (1, 3, 4, 5, 30, 61)]
for bits in {widths!r}:
    assert t.lane_scores(query, subjects, scores, 9, 1, bits) == t.expected_scores(query, subjects, scores, 9, 1, bits)
for bits in {traced_widths!r}:
    for subject in subjects:
        t.test_trace_back_steps_have_the_best_score.hypothesis.inner_test(bits, query, subject, scores, (6, 1), 7)
print("same", t.vectors.REGISTER_BYTES)
"""
    register_bytes = min(vectors.REGISTER_BYTES, 16 if "avx2" in missing else 32 if "avx512bw" in missing else 64)
    assert on_cpu(program, missing) == f"same {register_bytes}\n"


@pytest.mark.parametrize(("features", "register_bytes"), [("", 16), ("+ssse3,-avx2", 16), ("+ssse3,+avx2", 32), ("+avx2,+avx512bw", 64)])
def test_vector_register_size_follows_the_cpu_features_of_numba(features, register_bytes, on_cpu):
    program = "from proteoscope.kernels.cpu.vectors import REGISTER_BYTES; print(REGISTER_BYTES)"
    assert on_cpu(program, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features) == f"{register_bytes}\n"


def test_normal_tail_probability_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    z = np.linspace(-8, 8, 33)
    assert np.allclose(normal_tail(z), stats.norm.sf(z), rtol=1e-12)


def test_fill_columns_fills_unused_cells_with_padding():
    columns = np.zeros(64, np.int8)
    fill_columns(np.array([3, 4, 5], np.int8), np.array([0]), np.array([3]), np.array([1]), np.array([4]), 4, columns)
    assert columns.reshape(16, 4)[4:7, 1].tolist() == [3, 4, 5]
    assert (np.delete(columns, [17, 21, 25]) == PADDING).all()


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=300), n_lanes=st.sampled_from([4, 16, 64]))
def test_lane_groups_give_sequences_separate_blocks(lengths, n_lanes):
    lengths = np.array(lengths)
    groups = lane_groups(np.arange(len(lengths)), lengths, n_lanes)
    assert sorted(np.concatenate([group.subjects for group in groups]).tolist()) == list(range(len(lengths)))
    for group in groups:
        used = set()
        for subject, lane, first, end in zip(group.subjects, group.lanes, group.first_columns, group.end_blocks, strict=True):
            assert end == (first + lengths[subject] - 1) // 4 < group.n_blocks
            blocks = {(lane, block) for block in range(first // 4, end + 1)}
            assert lane < n_lanes and not blocks & used
            used |= blocks
        assert (np.diff(group.end_blocks) >= 0).all()


def test_long_protein_adds_few_unused_columns_to_lane_groups():
    lengths = np.array([34_350, *np.random.default_rng(1).integers(100, 2000, 20_000)])
    groups = lane_groups(np.arange(len(lengths)), lengths, 64)
    columns = sum(group.n_blocks * 4 * 64 for group in groups)
    assert lengths.sum() / columns > 0.95


@pytest.mark.parametrize("n_subjects", [200, 1])
def test_alignment_search_makes_short_calls_and_stops_on_close(n_subjects, monkeypatch):
    calls, single, stops, begun, may_end = [], [], [], threading.Event(), threading.Event()

    def score_lanes(rows, codes, table, columns, block, end, *others):
        calls.append(len(rows) * (end - block) * 4 * lane_count(table.dtype.itemsize * 8))
        begun.set()
        may_end.wait()

    def limited_scores(costs, pairs, limits, stop, bits):
        single.append(int((np.diff(pairs.query_places) * np.diff(pairs.subject_places)).sum()))
        stops.append(stop)
        begun.set()
        may_end.wait()
        return limits

    # Nothing is computed: each call only records its number of cells.
    monkeypatch.setattr(alignment, "score_lanes", score_lanes)
    monkeypatch.setattr(alignment, "limited_scores", limited_scores)
    codes = np.random.default_rng(1).integers(0, 20, 35_000).astype(np.int8)
    search = alignment.AlignmentSearch(Processor(2), np.tile(codes, n_subjects), np.arange(n_subjects + 1, dtype=np.int64) * 35_000)
    arguments = [codes] * 5, np.eye(27, dtype=np.int32), 11, 1, np.zeros((5, n_subjects), np.int32)
    stopped = search.score(*arguments)
    assert next(stopped) == 0
    assert begun.wait(60.0)
    threading.Timer(0.05, may_end.set).start()
    stopped.close()
    assert 1 <= len(calls) + len(single) <= 2, "one call of each thread"
    assert all(stop[0] for stop in stops), "calls for single pairs end early"
    calls.clear()
    single.clear()
    assert list(search.score(*arguments))[-1] == n_subjects
    assert max(calls, default=0) <= 270_000_000
    assert sum(calls) + sum(single) >= 5 * n_subjects * 35_000**2 * 0.9


def test_alignment_search_plans_each_range_of_subjects_once(monkeypatch):
    planned = []
    monkeypatch.setattr(alignment, "lane_groups", lambda *arguments: planned.append(len(arguments[0])) or lane_groups(*arguments))
    random = np.random.default_rng(2)
    residues, offsets = random.integers(0, 20, 5000).astype(np.int8), np.arange(0, 5001, 50, dtype=np.int64)
    search, out = alignment.AlignmentSearch(Processor(1), residues, offsets), np.zeros((1, 100), np.int32)
    for part in ((0, 60), (60, 100), (0, 60), (60, 100)):
        for _ in search.score([residues[:40] % 20], np.where(np.eye(27, dtype=bool), 2, -3), 11, 1, out, *part):
            pass
    assert planned == [60, 40]
    assert out[0, 0] == 80
