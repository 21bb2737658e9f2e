"""Items on several workers: each is computed once, in proportion to measured speeds, and other workers repeat lost items."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.scheduler import Account, Costs, Losses, Round, Scheduler, Worker, planned
from proteoscope.engine.execution.workload import PartialResult, Rows, WorkerLostBeforeError, WorkerLostError
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from proteoscope.kernels.device import DeviceError, Partition

N = 400


class Recorder:
    """Workers that record who computed which item, take time and fail as configured, and their merged rows."""

    def __init__(self) -> None:
        self.by: list[list[str]] = [[] for _ in range(N)]
        self.begun: dict[str, list[Partition]] = {}
        self.open, self.lock, self.reported = 0, threading.Lock(), 0.0

    def worker(
        self,
        name: str,
        *,
        step: int = 5,
        seconds: float = 0.0,
        fails_after: int = -1,
        first: float = 0.0,
        speed: float | None = None,
        begins: Callable[[], object] = lambda: None,
    ) -> Worker:
        """Return a worker that takes `seconds` per item, and `first` more for the first step.

        It fails after `fails_after` steps. `begins` is called before the first step.
        """
        count = 0

        def search(part: Partition) -> Generator[PartialResult, None, None]:
            nonlocal count
            self.begun.setdefault(name, []).append(part)
            if len(self.begun[name]) == 1:
                begins()
            with self.lock:
                self.open += 1
            try:
                for begin in range(part.first, part.last, step):
                    end = min(part.last, begin + step)
                    if count == fails_after:
                        raise DeviceError(f"{name} failed:\n  it is lost")
                    yield PartialResult(begin)  # a sign of life
                    time.sleep((end - begin) * seconds + (first if count == 0 else 0.0))
                    count += 1
                    yield PartialResult(end, {"by": np.full(end - begin, name)})
            finally:
                with self.lock:
                    self.open -= 1

        return Worker(name, search, Account(), name == "cpu", speed)

    def take(self, first: int, end: int, rows: Rows) -> None:
        assert len(rows["by"]) == end - first
        for item, name in zip(range(first, end), rows["by"].tolist(), strict=True):
            self.by[item].append(name)

    def report(self, cost: float) -> None:
        with self.lock:
            self.reported += cost

    def run(
        self, workers: Sequence[Worker], progress: Progress | None = None, costs: np.ndarray | None = None, **more: object
    ) -> tuple[list[Partition], Scheduler]:
        sums = Costs(np.ones(N) if costs is None else costs)
        scheduler = Scheduler(workers, Round(sums, self.take, progress or Progress(), self.report), **more)  # type: ignore[arg-type]
        return scheduler.run(), scheduler

    def share(self) -> Counter[str]:
        return Counter(name for names in self.by for name in names)

    @property
    def times(self) -> set[int]:
        return {len(names) for names in self.by}


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("are_known", [False, True])
def test_scheduler_computes_every_item_once(n: int, are_known: bool) -> None:
    record, progress = Recorder(), RecordingProgress(Progress())
    speed = 1e6 if are_known else None
    every = [record.worker(f"cuda:{number}", speed=speed) for number in range(n)]
    assert record.run([*every, record.worker("cpu", step=3, speed=speed)], progress)[0] == []
    assert record.times == {1}
    assert record.reported == pytest.approx(N)
    assert progress.messages == ()


def test_scheduler_accepts_no_items_and_no_workers() -> None:
    record = Recorder()
    assert record.run([record.worker("cuda:0"), record.worker("cpu")], costs=np.zeros(0))[0] == []
    assert record.run([])[0] == [Partition(0, N, N)]


def test_scheduler_reports_progress_of_partial_results_once() -> None:
    reported: list[float] = []

    def search(part: Partition) -> Generator[PartialResult, None, None]:
        yield PartialResult(0, beyond=3.0)
        yield PartialResult(0, beyond=5.0)
        yield PartialResult(4, {}, beyond=2.0)
        yield PartialResult(4, beyond=60.0)
        yield PartialResult(10, {})

    Scheduler([Worker("cpu", search, Account(), True)], Round(Costs(np.ones(10)), lambda *_: None, Progress(), reported.append)).run()
    assert reported == [3.0, 2.0, 1.0, 4.0, 0.0]


def test_scheduler_gives_gpus_large_and_cpu_small_first_parts() -> None:
    record = Recorder()
    record.run([record.worker("cuda:0", seconds=1e-3), record.worker("cpu", seconds=1e-3)])
    assert record.begun["cuda:0"][0].cost == max(part.cost for parts in record.begun.values() for part in parts)
    first = record.begun["cpu"][0]
    assert first.cost == first.last - first.first < 10  # its speed has not been measured yet


def test_scheduler_plans_parts_proportional_to_known_speeds() -> None:
    record = Recorder()
    workers = [record.worker("a", speed=60.0), record.worker("b", speed=30.0), record.worker("cpu", speed=10.0)]
    parts = planned(workers, Costs(np.ones(1000)))
    assert [(part.first, part.last) for part in parts if part.first < 100] == [(0, 100)]
    assert sum(part.cost for part in parts if part.first >= 400) == 600
    assert sum(part.cost for part in parts if 100 <= part.first < 400) == 300
    assert len(parts) == 9


def test_scheduler_plans_smaller_parts_at_the_end() -> None:
    workers = [Recorder().worker(name) for name in "ab"]
    assert [part.cost for part in planned(workers, Costs(np.ones(960)), 6)] == [80] * 10 + [40] * 2 + [20] * 4
    assert [part.cost for part in planned(workers, Costs(np.ones(960)), 2)] == [240] * 4
    assert [part.cost for part in planned(workers[:1], Costs(np.ones(960)), 6)] == [960]


@given(costs=st.lists(st.floats(0, 1e6), min_size=1, max_size=60), speeds=st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=5))
def test_scheduler_plan_contains_every_item_once(costs: list[float], speeds: list[float]) -> None:
    record = Recorder()
    names = [*(f"cuda:{number}" for number in range(len(speeds) - 1)), "cpu"]
    parts = planned([record.worker(name, speed=speed) for name, speed in zip(names, speeds, strict=True)], Costs(np.array(costs)))
    items = sorted(item for part in parts for item in range(part.first, part.last))
    assert items == list(range(len(costs)))


def test_items_are_divided_at_a_fraction_of_their_total_cost() -> None:
    costs = Costs(np.array([1.0, 1.0, 2.0, 4.0, 8.0]))
    assert costs.part(1, 4) == Partition(1, 4, 7.0)
    assert [costs.at(costs.part(0, 5), share) for share in (0.0, 0.25, 0.5, 1.0)] == [0, 3, 4, 5]


def test_scheduler_divides_one_large_partition_among_all_workers() -> None:
    record = Recorder()
    every = [record.worker(f"cuda:{number}", step=2, seconds=5e-4) for number in range(4)]
    assert record.run(every, parts=[Partition(0, N, N)])[0] == []
    assert record.times == {1}
    assert min(record.share()[worker.name] for worker in every) > N // 16


def test_scheduler_moves_late_items_from_slow_to_fast_worker() -> None:
    record = Recorder()
    fast, slow = record.worker("cuda:0", step=10, seconds=5e-4), record.worker("cpu", step=2, seconds=3e-3)
    parts = [Partition(0, 200, 200.0), Partition(200, N, 200.0)]
    assert record.run([fast, slow], parts=parts)[0] == []
    assert record.times == {1}
    # The slow worker's share by speed is 1 in 7; its first partition is half of all items.
    assert N // 20 < record.share()["cpu"] < N // 4
    assert len(record.begun["cuda:0"]) > 1


def test_scheduler_corrects_wrong_speeds_during_the_run() -> None:
    record = Recorder()
    workers = [record.worker("cuda:0", step=4, seconds=2e-3, speed=9e9), record.worker("cpu", step=4, seconds=1e-4, speed=1e9)]
    assert record.run(workers)[0] == []
    assert record.times == {1}
    assert record.share()["cuda:0"] < 0.6 * N  # planned: nine tenths


def test_scheduler_ignores_setup_time_in_worker_speed() -> None:
    record = Recorder()
    first, second = (record.worker(f"cuda:{i}", step=4, seconds=1e-3, first=0.1 * i) for i in range(2))
    record.run([first, second], parts=[Partition(0, N, N)])
    assert record.share()["cuda:1"] > N // 5


def test_scheduler_gives_few_items_to_a_much_slower_cpu() -> None:
    record = Recorder()
    fast, slow = record.worker("cuda:0", step=5, seconds=1e-4), record.worker("cpu", step=5, seconds=2e-2)
    assert record.run([fast, slow], parts=[Partition(first, first + 5, 5.0) for first in range(0, N, 5)])[0] == []
    assert record.share()["cpu"] <= 15


def test_scheduler_gives_items_of_failed_gpu_to_another_gpu() -> None:
    record, progress = Recorder(), RecordingProgress(Progress())
    workers = [record.worker("cuda:0", fails_after=3, seconds=1e-4), record.worker("cuda:1", seconds=1e-4)]
    assert record.run(workers, progress)[0] == []
    assert record.times == {1}
    assert record.reported == pytest.approx(N)
    assert progress.messages == ("cuda:0 failed: it is lost; its unfinished items are repeated elsewhere",)


def test_scheduler_gives_items_of_failed_worker_to_idle_worker() -> None:
    record = Recorder()
    workers = [record.worker("cuda:0", step=100, seconds=1e-3, fails_after=0), record.worker("cpu", step=1, seconds=1e-3)]
    assert record.run(workers, parts=[Partition(0, N, N)])[0] == []
    assert record.share() == {"cpu": N}


def test_scheduler_returns_the_items_that_no_gpu_could_compute() -> None:
    record, progress = Recorder(), RecordingProgress(Progress())
    left, _ = record.run([record.worker("cuda:0", fails_after=3), record.worker("cuda:1", fails_after=4)], progress)
    undone = np.concatenate([np.arange(part.first, part.last) for part in left])
    np.testing.assert_array_equal(np.sort(undone), [item for item, names in enumerate(record.by) if not names])
    assert len(undone) == N - 35
    assert [part.cost for part in left] == sorted((part.cost for part in left), reverse=True)
    assert sum(part.cost for part in left) == pytest.approx(len(undone))
    assert len(progress.messages) == 2


@pytest.mark.parametrize("n", [1, 3])
def test_scheduler_closes_all_computations_at_cancel(n: int) -> None:
    record, progress = Recorder(), Progress()
    workers = [record.worker(f"cuda:{number}", step=1, seconds=1e-3) for number in range(n)]
    timer = threading.Timer(0.05, progress.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        record.run(workers, progress)
    timer.join()
    assert record.open == 0
    assert sum(record.share().values()) < N


def test_scheduler_raises_programming_error_and_stops_workers() -> None:
    record = Recorder()

    def broken(part: Partition) -> Generator[PartialResult, None, None]:
        yield PartialResult(part.first + 1, {"by": np.full(1, "broken")})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        record.run([Worker("cuda:0", broken, Account()), record.worker("cuda:1", step=1, seconds=1e-3)])
    assert record.open == 0
    assert sum(record.share().values()) < N


def test_scheduler_starts_workers_with_their_previous_items() -> None:
    record = Recorder()

    def workers() -> list[Worker]:
        return [record.worker(f"cuda:{number}", step=2, seconds=5e-4) for number in range(3)]

    _, first = record.run(workers())
    assert sum(last - begin for runs in first.previous_items.values() for begin, last in runs) == N
    again = Recorder()
    all_begin = threading.Barrier(3)
    _, second = again.run(
        [again.worker(f"cuda:{number}", step=2, seconds=5e-4, begins=all_begin.wait) for number in range(3)],
        previous_items=first.previous_items,
    )
    assert again.times == {1}
    # No worker ends before all have begun.
    begun = {name: (parts[0].first, parts[0].last) for name, parts in again.begun.items()}
    assert begun == {name: runs[-1] for name, runs in first.previous_items.items()}
    assert set(second.previous_items) == set(first.previous_items)


def test_scheduler_recomputes_items_of_a_failed_worker() -> None:
    record = Recorder()
    previous_items = {"cuda:0": [(0, 300)], "cuda:1": [(300, 400)]}
    workers = [record.worker("cuda:0", fails_after=2, seconds=1e-4), record.worker("cuda:1", seconds=1e-4)]
    assert record.run(workers, previous_items=previous_items)[0] == []
    assert record.times == {1}
    assert record.share()["cuda:1"] == 390


def test_scheduler_moves_items_away_from_slow_worker() -> None:
    record = Recorder()
    previous_items = {"cuda:0": [(0, 100), (150, 350)], "cuda:1": [(100, 150), (350, 400)]}
    workers = [record.worker("cuda:0", step=2, seconds=2e-3), record.worker("cuda:1", step=2, seconds=1e-4)]
    assert record.run(workers, previous_items=previous_items)[0] == []
    assert record.times == {1}
    assert record.share()["cuda:1"] > 150


def test_measured_worker_speed_excludes_setup_time() -> None:
    account = Account()
    assert account.speed is None
    account.add(10.0, 5.0, is_warm=False)
    assert account.speed == 2.0
    account.add(10.0, 1.0, is_warm=True)
    assert account.speed == 10.0


def ended_by(deadly: dict[int, int], n: int = 12, *, after: int = -1) -> tuple[list[int], Scheduler]:
    """Return a list that counts how often each item is computed, and a scheduler; item `i` ends ``deadly[i]`` workers.

    If `after` is given, the other items in `deadly` wait until item `after` has ended all its workers.
    """
    lock, done = threading.Lock(), [0] * N

    def worker(name: str) -> Worker:
        def search(part: Partition) -> Generator[PartialResult, None, None]:
            for item in range(part.first, part.last):
                while deadly.get(item, 0) and item != after and deadly.get(after, 0):
                    time.sleep(1e-3)
                with lock:
                    if deadly.get(item, 0):
                        deadly[item] -= 1
                        raise WorkerLostError(f"{name} ended")
                yield PartialResult(item + 1, {"by": np.full(1, name)})

        return Worker(name, search, Account())

    def take(first: int, end: int, rows: Rows) -> None:
        for item in range(first, end):
            done[item] += 1

    workers = [worker(f"worker {number}") for number in range(n)]
    round_ = Round(Costs(np.ones(N)), take, RecordingProgress(Progress()), lambda cost: None)
    return done, Scheduler(workers, round_, parts_of_worker=4)


def test_scheduler_abandons_an_item_after_it_ended_three_workers():
    done, scheduler = ended_by({41: 99})
    with pytest.raises(WorkersError, match="3 workers were lost on items 41 to 41;"):
        scheduler.run()
    assert [number for number, times in enumerate(done) if times != 1] == [41]


def test_scheduler_loses_no_items_if_workers_end_at_random():
    """Check workers that are killed at random: three end at one item and two at another, and all items are computed."""
    done, scheduler = ended_by({300: 2, 41: 3}, after=300)
    assert scheduler.run() == []
    assert done == [1] * N


def with_lost_before(n_losses: int) -> tuple[Recorder, Losses, int]:
    """Run items on successive workers; the first `n_losses` are lost before they begin. Return also the number of workers."""
    record, losses, parts = Recorder(), Losses(), None
    for number in range(99):

        def search(part: Partition, near: Worker, number: int) -> Generator[PartialResult, None, None]:
            if number < n_losses:
                raise WorkerLostBeforeError(f"{near.name} ended")
            yield from near.search(part)

        near = record.worker(f"worker {number}", step=100)
        worker = Worker(near.name, partial(search, near=near, number=number), Account())
        parts, _ = record.run([worker], parts=parts, losses=losses)
        if not parts:
            return record, losses, number + 1
    raise AssertionError("the run does not end")


def test_scheduler_blames_no_item_when_workers_fail_to_start() -> None:
    record, losses, n_came = with_lost_before(5)
    assert record.times == {1} and n_came == 6
    assert losses.items == [] and losses.in_a_row == 0


def test_scheduler_fails_when_no_worker_starts() -> None:
    with pytest.raises(WorkersError, match="14 workers were lost in a row without a result"):
        with_lost_before(99)


def test_scheduler_abandons_two_items_that_end_all_workers():
    done, scheduler = ended_by({41: 99, 300: 99}, n=20)
    with pytest.raises(WorkersError, match="workers were lost on items 41 to 41, 300 to 300"):
        scheduler.run()
    assert [number for number, times in enumerate(done) if times != 1] == [41, 300]
