"""Resumed runs: stored partitions are computed once, whatever stopped the run and wherever it is resumed, and rows are the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.clustering import k_means as k_means_module
from proteoscope.engine.clustering.k_means import InitialCentroids, Points, k_means
from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution import checkpoints
from proteoscope.engine.execution.checkpoints import CheckpointName, RunCheckpoint, plain_digest
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import Rows, Workload
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project.checkpoint_file import CheckpointFile, CheckpointHeader
from tests.engine.execution import toy_kinds
from tests.engine.execution.toy_kinds import FakeGpu

X = np.random.default_rng(5).random(300)
UNSTORED = "Further results of this run are not stored in its checkpoint, and are computed again if the run is resumed"
EXPECTED = {
    "nearest": np.abs(X[:, None] - np.array([0.1, 0.6])).argmin(axis=1),
    "histogram": np.bincount((X * 10).astype(int), minlength=10),
}


@pytest.fixture(autouse=True)
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in toy_kinds.KINDS:
        monkeypatch.setitem(KINDS, name, place)
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checkpoints, "BEGIN_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)


class StoppingProgress(Progress):
    """Progress of a user who cancels after `n` items; it counts its advances."""

    def __init__(self, n: int = 1 << 60) -> None:
        super().__init__()
        self.n, self.items, self.steps = n, 0, list[int]()

    def advance(self, n: int = 1) -> None:
        self.items += n
        self.steps.append(n)
        if self.items >= self.n:
            self.cancel()
        super().advance(n)


def work(kind: str) -> Workload:
    return Workload(kind, {"points": {"x": X}}, {})


def open_checkpoint(path: Path, warnings: list[str] | None = None) -> RunCheckpoint:
    """Return the checkpoint of a run in a file, which is continued if it exists."""
    warn: Callable[[str], Any] = ([] if warnings is None else warnings).append
    header = CheckpointHeader(path.parent, "toy-0001", {})
    return RunCheckpoint(lambda: CheckpointFile.create(path, header), warn, CheckpointFile.open(path))


def run(path: Path, kind: str, stop_after: int, n_gpus: int = 0, state: Any = None) -> tuple[Rows | None, int]:
    """Run a workload, cancelled after `stop_after` items, and return its rows (or None) and the number of partitions it computed."""
    progress, computed = StoppingProgress(stop_after), list[int]()
    gpus: list[Any] = [FakeGpu(f"cuda:{number}") for number in range(n_gpus)]
    try:
        with open_checkpoint(path) as partitions:
            resources = Resources(2, gpus, False, progress, checkpoint=partitions)
            with Executor(resources).session(work(kind)) as session:
                original = session._kind.merge

                def merge(into: Rows, first: int, end: int, rows: Rows) -> None:
                    computed.append(end - first)
                    original(into, first, end, rows)

                session._kind.merge = merge  # type: ignore[method-assign]
                n_before = partitions.n_found
                rows = session.run(state)
                return rows, len(computed) - (n_before - partitions.n_found)
    except Cancelled:
        return None, len(computed)


@pytest.mark.parametrize(("kind", "state", "name"), [("nearest", [0.1, 0.6], "found"), ("histogram", None, "counts")])
@pytest.mark.parametrize("gpus", [(0, 0), (0, 3), (3, 0), (2, 3)])
def test_resumed_run_computes_only_the_remaining_items(tmp_path: Path, kind: str, state: Any, name: str, gpus: tuple[int, int]) -> None:
    path = tmp_path / "toy.sqlite"
    rows, first = run(path, kind, 140, gpus[0], state)
    assert rows is None and first >= 140 // 7
    assert run(path, kind, 200, gpus[1], state)[0] is None
    rows, third = run(path, kind, 1 << 60, gpus[1], state)
    assert rows is not None
    np.testing.assert_array_equal(rows[name], EXPECTED[kind])
    n_parts = -(-300 // 7)
    assert 0 < third < n_parts - 15, "most parts were stored"


def test_resumed_run_computes_nothing_when_all_items_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "toy.sqlite"
    assert run(path, "histogram", 300)[0] is None
    rows, computed = run(path, "histogram", 1 << 60)
    assert rows is not None and computed == 0
    np.testing.assert_array_equal(rows["counts"], EXPECTED["histogram"])


def test_checkpoint_restores_partitions_in_item_order(tmp_path: Path) -> None:
    """Threads end in any order, and partitions are stored in the order of their ends; a partition within another one is omitted."""
    with pytest.raises(Cancelled), open_checkpoint(tmp_path / "toy.sqlite") as partitions:
        name = CheckpointName("toy", 1)
        for start, stop in ((6, 9), (0, 4), (4, 6), (7, 8)):
            partitions.add(name, start, stop, {"place": np.arange(start, stop)})
        raise Cancelled
    with open_checkpoint(tmp_path / "toy.sqlite") as partitions:
        restored = partitions.read_rows(CheckpointName("toy", 1), 9)
    assert [(start, stop, rows["place"].tolist()) for start, stop, rows in restored] == [
        (0, 4, [0, 1, 2, 3]),
        (4, 6, [4, 5]),
        (6, 9, [6, 7, 8]),
    ]


def test_checkpoint_is_ignored_if_state_or_workload_differs(tmp_path: Path) -> None:
    path = tmp_path / "toy.sqlite"
    run(path, "nearest", 299, 0, [0.1, 0.6])
    rows, computed = run(path, "nearest", 1 << 60, 0, [0.1, 0.7])
    assert rows is not None and computed == -(-300 // 7)
    np.testing.assert_array_equal(rows["found"], np.abs(X[:, None] - np.array([0.1, 0.7])).argmin(axis=1))


def test_resumed_run_restores_a_phase_over_selected_items(tmp_path: Path) -> None:
    path, passed = tmp_path / "toy.sqlite", np.flatnonzero(X > 0.3)
    for stop_after in (300 + 60, 1 << 60):
        try:
            with open_checkpoint(path) as partitions:
                resources = Resources(2, [], False, StoppingProgress(stop_after), checkpoint=partitions)
                with Executor(resources).session(work("phases")) as session:
                    coarse = session.run("coarse")["found"]
                    fine = session.run("fine", passed)["found"]
        except Cancelled:
            assert stop_after < 1000
    np.testing.assert_array_equal(coarse, (X * 10).astype(int))
    np.testing.assert_array_equal(fine, (X[passed] * 1000).astype(int))


def test_short_run_writes_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "BEGIN_SECONDS", 1000.0)
    path = tmp_path / "toy.sqlite"
    assert run(path, "histogram", 200)[0] is None
    assert not list(tmp_path.glob("toy*"))


def test_checkpoint_writing_stops_beyond_its_share_of_cpu_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "SHARE", -1.0)
    path = tmp_path / "toy.sqlite"
    assert run(path, "histogram", 200)[0] is None
    file = CheckpointFile.open(path)
    assert file is not None and file.partitions == []
    file.close()


def test_run_continues_without_checkpoint_when_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise StorageError("database or disk is full")

    monkeypatch.setattr(CheckpointFile, "append", refuse)
    path, warnings = tmp_path / "toy.sqlite", list[str]()
    with open_checkpoint(path, warnings) as partitions:
        resources = Resources(2, [], False, Progress(), checkpoint=partitions)
        with Executor(resources).session(work("histogram")) as session:
            for _ in range(3):
                np.testing.assert_array_equal(session.run()["counts"], EXPECTED["histogram"])
            partitions._wait(3 * checkpoints.FLUSH_SECONDS)
    assert warnings == [f"{UNSTORED}: database or disk is full"]


def test_resumed_run_recomputes_damaged_partitions(tmp_path: Path) -> None:
    path = tmp_path / "toy.sqlite"
    run(path, "histogram", 200)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("UPDATE partitions SET payload = zeroblob(length(payload)) WHERE id % 2 = 0").rowcount > 5
        connection.commit()
    rows, _ = run(path, "histogram", 1 << 60)
    assert rows is not None
    np.testing.assert_array_equal(rows["counts"], EXPECTED["histogram"])


@pytest.mark.parametrize("start", [InitialCentroids(7, "k-means++", 3), InitialCentroids(7, "first")])
def test_k_means_resumes_from_stored_round_or_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: InitialCentroids) -> None:
    monkeypatch.setattr(checkpoints, "STATE_SECONDS", 0.0)
    monkeypatch.setattr(k_means_module, "SECONDS_AT_ONCE", 0.0)
    values = np.random.default_rng(2).normal(size=(3000, 3))
    expected = k_means(Executor(Resources(2)), Points(values), start, rounds=40)
    path, stops = tmp_path / "toy.sqlite", 0
    for stop_after in (4, 5, 6, 7, 8, 1 << 60):
        progress = StoppingProgress(stop_after)
        try:
            with open_checkpoint(path) as partitions:
                clusters = k_means(
                    Executor(Resources(1 + stop_after % 2, progress=progress, checkpoint=partitions)),
                    Points(values),
                    start,
                    rounds=40,
                    progress=progress,
                )
        except Cancelled:
            stops += 1
    assert stops == 5
    np.testing.assert_array_equal(clusters.labels, expected.labels)
    np.testing.assert_array_equal(clusters.centroids, expected.centroids)
    assert clusters.rounds == expected.rounds
    # The stored part is reported in one step.
    assert max(progress.steps) > 3, "the last run did not start again"


def test_plain_digest_depends_on_content_type_and_structure() -> None:
    values: list[Any] = [
        None,
        0,
        0.0,
        False,
        "",
        "0",
        b"",
        (),
        {},
        {"a": 1},
        {"a": 2},
        {"b": 1},
        (1, 2),
        (12,),
        ((1,), 2),
        ("1", 2),
        np.arange(3),
        np.arange(3, dtype=np.int32),
        np.arange(3.0),
        np.arange(6).reshape(2, 3),
        np.arange(6).reshape(3, 2),
        np.arange(6)[::-1],
    ]
    digests = [plain_digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert plain_digest({"a": 1, "b": 2}) == plain_digest({"b": 2, "a": 1})
    assert plain_digest(np.arange(12)[::2]) == plain_digest(np.arange(12)[::2].copy())
    with pytest.raises(TypeError):
        plain_digest(np.array([None]))
    with pytest.raises(TypeError):
        plain_digest(object())
