"""Sessions: rounds with a state, phases with a filter between them, sums, lost GPUs, and work in another process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.kinds import KINDS, register_kinds, workload_type
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import PartialResult, Rows, Workload
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent, RecordingProgress
from proteoscope.kernels.cpu.processor import Processor
from tests.engine.execution import toy_kinds
from tests.engine.execution.toy_kinds import FakeGpu

X = np.random.default_rng(5).random(300)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in toy_kinds.KINDS:
        monkeypatch.setitem(KINDS, name, place)
    monkeypatch.setattr(toy_kinds._Computation, "opened", [])
    monkeypatch.setattr(toy_kinds._Computation, "begun", [])


def work(kind: str) -> Workload:
    return Workload(kind, {"points": {"x": X}}, {})


def resources(n_gpus: int = 0, *, with_processor: bool = False, fails_at: int = -1, progress: Progress | None = None) -> Resources:
    gpus: list[Any] = [FakeGpu(f"cuda:{number}", fails_at=fails_at if number == 0 else -1) for number in range(n_gpus)]
    return Resources(2, gpus, with_processor, progress or Progress())


def nearest(centroids: np.ndarray) -> np.ndarray:
    return np.abs(X[:, None] - centroids[None]).argmin(axis=1)


def k_means(session: Session, rounds: int) -> np.ndarray:
    centroids = np.array([0.1, 0.2, 0.9])
    for _ in range(rounds):
        of = session.run(centroids.tolist())["found"]
        assert np.array_equal(of, nearest(centroids))
        centroids = np.array([X[of == k].mean() for k in range(3)])
    return centroids


@pytest.mark.parametrize("n_gpus", [0, 1, 3])
def test_executor_accepts_rounds_with_different_numbers_of_items(n_gpus: int) -> None:
    with Executor(resources(n_gpus)).session(work("variable")) as session:
        for n in (30, 30, 90, 5, 0, 61):
            assert session.run(n)["found"].tolist() == [10 * k for k in range(n)]


@pytest.mark.parametrize(
    ("n_gpus", "with_processor", "fails_at"), [(0, False, -1), (1, True, -1), (3, False, -1), (2, True, 9), (1, False, 3)]
)
def test_executor_opens_workload_once_and_sends_each_state_once(n_gpus: int, with_processor: bool, fails_at: int) -> None:
    used = resources(n_gpus, with_processor=with_processor, fails_at=fails_at)
    with Executor(used).session(work("nearest")) as session:
        centroids_of_session = k_means(session, 6)
    centroids = np.array([0.1, 0.2, 0.9])
    for _ in range(6):
        of = nearest(centroids)
        centroids = np.array([X[of == k].mean() for k in range(3)])
    np.testing.assert_allclose(centroids_of_session, centroids)
    opened, begun = toy_kinds._Computation.opened, toy_kinds._Computation.begun
    assert len(opened) == len(set(opened)), "a device opens the workload once"
    assert len(begun) == len({(name, str(state)) for name, state in begun}), "and receives the state of a round once"


def test_executor_computes_phase_only_for_filtered_items() -> None:
    with Executor(resources(2, with_processor=True)).session(work("phases")) as session:
        coarse = session.run("coarse")["found"]
        passed = np.flatnonzero(coarse >= 7)
        fine = session.run("fine", items=passed)["found"]
        assert np.array_equal(coarse, (X * 10).astype(int))
        assert np.array_equal(fine, (X[passed] * 1000).astype(int))
        assert len(session.run("fine", items=np.zeros(0, np.int64))["found"]) == 0


@pytest.mark.parametrize("fails_at", [-1, 4])
def test_executor_adds_each_item_once_to_sums(fails_at: int) -> None:
    with Executor(resources(3, fails_at=fails_at)).session(work("histogram")) as session:
        counts = session.run()["counts"]
    assert np.array_equal(counts, np.bincount((X * 10).astype(int), minlength=10))


def test_executor_removes_and_reports_failed_gpu() -> None:
    progress = RecordingProgress(Progress())
    used = resources(2, fails_at=0, progress=progress)
    with Executor(used).session(work("phases")) as session:
        session.run("coarse")
        session.run("fine")
    assert [gpu.name for gpu in used.gpus] == ["cuda:1"]
    assert sum("is lost" in text for text in progress.messages) == 1


def test_cpu_computes_remaining_items_after_the_only_gpu_fails() -> None:
    progress = RecordingProgress(Progress())
    used = resources(1, fails_at=2, progress=progress)
    with Executor(used).session(work("phases")) as session:
        assert np.array_equal(session.run("fine")["found"], (X * 1000).astype(int))
        assert session.devices == ("cpu",)
        assert {share.device for share in session.shares()} == {"cuda:0", "cpu"}
    assert used.gpus == []
    assert "The CPU computes the remaining items" in progress.messages


def test_device_shares_sum_to_one() -> None:
    with Executor(resources(2, with_processor=True)).session(work("phases")) as session:
        session.run("fine")
        assert sum(share.fraction for share in session.shares()) == pytest.approx(1.0)


@pytest.mark.parametrize(("step_cost", "total"), [(0.0, len(X)), (10.0, len(X) // 10)])
def test_executor_progress_counts_items_or_cost_steps(step_cost: float, total: int) -> None:
    events: list[ProgressEvent] = []
    progress = Progress(events.append, interval=0)
    progress.stage("Scoring", total)
    with Executor(resources(1, with_processor=True, progress=progress)).session(work("phases")) as session:
        session.run("fine", step_cost=step_cost)
    assert max(event.done for event in events) == total


def test_executor_session_raises_cancelled_after_cancel() -> None:
    progress = Progress()
    with pytest.raises(Cancelled), Executor(resources(2, progress=progress)).session(work("phases")) as session:
        progress.cancel()
        session.run("fine")


def test_executor_rejects_unknown_workload_type() -> None:
    with pytest.raises(ValueError, match="workload type 'os' is not registered"):
        workload_type(Workload("os", {}, {}))


def test_register_kinds_rejects_duplicate_names(monkeypatch: pytest.MonkeyPatch) -> None:
    (_, load), other, *_ = toy_kinds.KINDS
    monkeypatch.setitem(KINDS, "toy", load)
    register_kinds([("toy", load)])
    with pytest.raises(ValueError, match=f"'toy' is already registered by {toy_kinds.__name__}"):
        register_kinds([("toy", other[1])])


def compute_in_process(sent: Workload, state: Any, first: int, last: int) -> list[tuple[int, Rows]]:
    """Open a workload in another process and compute a part of it."""
    register_kinds(toy_kinds.KINDS)
    with workload_type(sent).open(sent, Processor(1), is_shared=True) as opened:
        opened.begin(state, None)
        results: Iterator[PartialResult] = opened.search(first, last)
        return [(result.end, result.rows) for result in results if result.rows is not None]


def test_workload_is_computed_in_another_process() -> None:
    sent, state = work("nearest"), [0.25, 0.5, 0.75]
    json.dumps(state)
    kind = workload_type(sent)
    rows = kind.empty(sent, state, len(X))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for first, last in ((200, 300), (0, 50), (50, 200)):
            done = first
            for end, part in pool.submit(compute_in_process, sent, state, first, last).result():
                kind.merge(rows, done, end, part)
                done = end
    assert np.array_equal(rows["found"], nearest(np.array(state)))
