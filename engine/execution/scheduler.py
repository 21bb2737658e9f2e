"""Distribution of the items of a workload among its workers: GPUs, and the CPU with all its threads.

A worker that has finished a partition takes the next: a GPU takes the largest, the CPU the smallest. The speed of each worker is measured
during the round and corrects the distribution:

- An idle worker receives a fraction of another worker's remaining items, in proportion to their speeds.
- A worker takes no partition that faster workers would finish earlier. The CPU takes none if it adds too little to the speed of the GPUs.
- The other workers compute what a failed worker has not finished.

If all speeds are known from earlier searches, the distribution is calculated before the round, as in CUDASW++ 3.0 (Liu, Wirawan and Schmidt
2013, BMC Bioinformatics 14:117, where R is the fraction of the database for the GPU). Otherwise workers take partitions of decreasing size.
In later rounds with the same items, each worker starts with its items of the previous round.
"""

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Condition

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import WorkersError, shortened
from proteoscope.engine.execution.workload import PartialResult, Rows, WorkerLostBeforeError, WorkerLostError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError, Partition, falling_partitions

__all__ = ["Account", "Costs", "Losses", "Round", "Scheduler", "Worker", "one_line", "planned", "unfinished"]

_CHECK_SECONDS = 0.1  # seconds between the checks of an idle worker for cancellation
_HISTORY_WEIGHT = 0.8  # weight of earlier measurements in the average speed
_DISCARDED_RESULTS = 2  # number of pending partial results that a GPU discards when it gives up a partition
_FIRST_PARTS = 512  # while its speed is unknown, the CPU takes 1/512 of a partition
_FIRST_SECONDS = 0.3  # while the speed of a GPU is unknown, the CPU takes items for this time
_MINIMUM_SHARE = 0.05  # fraction of the GPUs' speed; a slower CPU takes more from the threads that feed the GPUs than it adds
_PARTS_OF_CARD = 4  # partitions per planned share of a GPU, so that a wrong plan can be corrected
_LAST_PARTS = 0.5, 0.25, 0.25  # fractions into which the last of many equal partitions is divided, to shorten the wait at the end
_MAXIMUM_CHARACTERS = 300  # maximum characters of an error message
_MAXIMUM_LOSSES = 3  # number of workers lost on the same items, which are then excluded
_MAXIMUM_LOSSES_AMONG_OTHERS = 6  # instead, if workers are also lost on other items, since the cause may then be external
_MAXIMUM_LOSSES_IN_A_ROW = 2 * _MAXIMUM_LOSSES_AMONG_OTHERS  # number of losses without a result between them, in addition to one per worker
_PARTS_AFTER_LOSS = 8  # partitions into which the rest of a lost worker's partition is divided, to find the items that cause the loss
_MAXIMUM_WORKERS = 4096


class Costs:
    """Cumulative costs of items, which give the cost of any range of items.

    Parameters
    ----------
    costs : ndarray, shape (n,)
        Cost of each item, at least 0.
    """

    def __init__(self, costs: NDArray[np.number]) -> None:
        self.each = np.maximum(np.asarray(costs, np.float64), 1e-9)
        self._before = np.concatenate(([0.0], np.cumsum(self.each)))

    def __len__(self) -> int:
        return len(self.each)

    def before(self, item: int) -> float:
        """Return the total cost of the items before `item`."""
        return float(self._before[item])

    def part(self, first: int, last: int) -> Partition:
        """Return the items `first:last` with their cost."""
        return Partition(first, last, self.before(last) - self.before(first))

    def at(self, part: Partition, share: float) -> int:
        """Return the first item after about the fraction `share` of a partition's cost."""
        mark = self.before(part.first) + share * part.cost
        return min(part.last, max(part.first, int(np.searchsorted(self._before, mark, side="left"))))


class Account:
    """Sums of cost and seconds of a worker's results.

    There is one sum over all results, and one over "warm" results, which exclude one-time operations such as compiling.
    """

    def __init__(self) -> None:
        self.cost = self.seconds = self.warm_cost = self.warm_seconds = 0.0

    def add(self, cost: float, seconds: float, *, is_warm: bool) -> None:
        """Add the cost and seconds of a result to the sums."""
        self.cost += cost
        self.seconds += seconds
        if is_warm:
            self.warm_cost += cost
            self.warm_seconds += seconds

    @property
    def speed(self) -> float | None:
        """Cost per second of the warm results, or of all results if none is warm; None without results."""
        if self.warm_cost > 0:
            return self.warm_cost / max(self.warm_seconds, 1e-9)
        return self.cost / max(self.seconds, 1e-9) if self.cost > 0 else None


@dataclass(frozen=True)
class Worker:
    """Worker that computes partitions.

    Attributes
    ----------
    name
        Display name such as "cuda:0" or "cpu".
    search
        Generator function that computes a partition and yields results several times a second; raises DeviceError if the device fails. The
        scheduler may close the generator after any result; another worker then computes the remaining items.
    account
        Cost and seconds of its results.
    is_processor
        True for the CPU. It gets some items of the smallest waiting partition; other workers get the largest waiting partition as a whole.
    speed
        Cost per second known before the round; None if unknown.
    """

    name: str
    search: Callable[[Partition], Generator[PartialResult, None, None]]
    account: Account
    is_processor: bool = False
    speed: float | None = None


@dataclass
class Losses:
    """Workers that were lost in a round.

    Attributes
    ----------
    items
        Range of items ``(first, last)`` that each lost worker was computing.
    in_a_row
        Number of workers lost since the last result with rows.
    n_workers
        Number of workers at the start of the round; the maximum if the round was started several times to continue it.
    """

    items: list[tuple[int, int]] = field(default_factory=list)
    in_a_row: int = 0
    n_workers: int = 0


@dataclass(frozen=True)
class Round:
    """Items to compute in a round, and the functions that receive results and progress.

    Attributes
    ----------
    costs
        Costs of the items.
    take
        Function that receives the rows of the items `first:end`, under a lock.
    progress
        Progress, which is checked for cancellation.
    advance
        Function that receives the computed cost, on any thread.
    arrivals
        Function that returns the workers that have joined since its last call; None if none can join.
    """

    costs: Costs
    take: Callable[[int, int, Rows], None]
    progress: Progress
    advance: Callable[[float], None]
    arrivals: Callable[[], Sequence[Worker]] | None = None


class _Pace:
    """Current partition and speed of a worker."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.assigned: list[Partition] = []
        self.part: Partition | None = None
        self.done = 0
        self.computed: list[tuple[int, int]] = []
        self.is_idle = self.has_failed = False
        self._cost = self._seconds = self._results = 0.0

    @property
    def speed(self) -> float | None:
        """Cost per second, or None while it is unknown."""
        return self._cost / self._seconds if self._cost > 0.0 and self._seconds > 0.0 else self.worker.speed

    @property
    def result_seconds(self) -> float:
        """Mean time between results, s; 0 if unknown."""
        return self._seconds / self._results if self._results else 0.0

    def advanced(self, end: int, cost: float, seconds: float) -> None:
        """Record a result up to the item `end`.

        The speed excludes a GPU's first result, which includes one-time operations such as compiling.
        """
        is_warm = self.worker.is_processor or self.worker.account.cost > 0.0
        self.done = end
        if is_warm:
            self._cost = self._cost * _HISTORY_WEIGHT + cost
            self._seconds = self._seconds * _HISTORY_WEIGHT + seconds
            self._results = self._results * _HISTORY_WEIGHT + 1.0
        self.worker.account.add(cost, seconds, is_warm=is_warm)


class Scheduler:
    """Scheduler of a round, in which the workers together compute each item once.

    Parameters
    ----------
    workers
        Workers at the start.
    round_
        Items to compute.
    parts_of_worker
        Number of partitions per worker; 0 for the default number and sizes (see `planned`).
    previous_items
        Items that each worker computed in the previous round, by worker name.
    parts
        Partitions to compute; by default all items.
    losses
        Losses so far, if the round is continued.
    pool
        Thread pool with one thread per worker; None creates one.
    in_turns
        True if the calling thread serves all workers in turn. Each worker then computes its items of the previous round, and idle workers
        take no items from others.

    Attributes
    ----------
    previous_items
        Items that each worker computed in this round, available at its end.
    losses
        Workers that were lost.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        round_: Round,
        *,
        parts_of_worker: int = 0,
        previous_items: dict[str, list[tuple[int, int]]] | None = None,
        parts: Sequence[Partition] | None = None,
        losses: Losses | None = None,
        pool: ThreadPoolExecutor | None = None,
        in_turns: bool = False,
    ) -> None:
        self._pool, self._in_turns = pool, in_turns or (len(workers) == 1 and round_.arrivals is None)
        self.losses = Losses() if losses is None else losses
        self.losses.n_workers = max(self.losses.n_workers, len(workers))
        self._deadly: list[tuple[Partition, int]] = []
        self._paces = [_Pace(worker) for worker in workers]
        self._round = round_
        self._changed = Condition()
        self._is_broken = False
        if parts is None and previous_items and set(previous_items) <= {worker.name for worker in workers}:
            parts = []
            for pace in self._paces:
                pace.assigned = [round_.costs.part(*items) for items in previous_items.get(pace.worker.name, [])]
        self._waiting = planned(workers, round_.costs, parts_of_worker) if parts is None else list(parts)
        self.previous_items: dict[str, list[tuple[int, int]]] = {}

    def run(self) -> list[Partition]:
        """Compute all items.

        Returns
        -------
        list of Partition
            Partitions that were not computed because all workers failed; each failure was reported to the progress.

        Raises
        ------
        Cancelled
            If the user cancels.
        WorkersError
            If several workers were lost on the same items, or many in succession. Any other exception of a worker is raised again
            after all workers have stopped.
        """
        if self._in_turns:
            with ExitStack() as stack:
                serving = [stack.enter_context(closing(self._serve(pace))) for pace in self._paces]
                while serving:
                    serving = [served for served in serving if next(served, "ended") is None]
        elif self._paces:
            # Each GPU starts with one of the largest partitions, even if its thread starts late.
            for pace in self._paces:
                if self._waiting and not pace.assigned and not pace.worker.is_processor:
                    pace.assigned.append(self._waiting.pop(0))
            most = len(self._paces) if self._round.arrivals is None else _MAXIMUM_WORKERS
            threads = ThreadPoolExecutor(most, thread_name_prefix="proteoscope-worker") if self._pool is None else nullcontext(self._pool)
            with threads as pool:
                futures = [pool.submit(self._serve_alone, pace) for pace in self._paces]
                self._start_joining_workers(pool, futures)
                wait(futures)
                for finished in futures:
                    finished.result()
        left = [*self._waiting, *(part for pace in self._paces for part in pace.assigned)]
        if self._deadly:
            raise WorkersError(self._loss_message(are_others_done=not left))
        self.previous_items = {pace.worker.name: _joined(pace.computed) for pace in self._paces}
        return sorted(left, key=lambda part: -part.cost)

    def _start_joining_workers(self, pool: ThreadPoolExecutor, serving: list[Future[None]]) -> None:
        """Start workers that join while other workers compute."""
        while self._round.arrivals is not None and not self._is_broken:
            working = [served for served in serving if not served.done()]
            if not working:
                return
            wait(working, _CHECK_SECONDS, FIRST_COMPLETED)
            for worker in self._round.arrivals():
                with self._changed:
                    self._paces.append(_Pace(worker))
                serving.append(pool.submit(self._serve_alone, self._paces[-1]))

    def _serve_alone(self, pace: _Pace) -> None:
        for _ in self._serve(pace):
            pass

    def _serve(self, pace: _Pace) -> Generator[None, None, None]:
        """Run a worker until all items are computed; yield after each result of the worker, and while the worker waits for items."""
        try:
            while (part := (yield from self._next(pace))) is not None:
                yield from self._search(pace, part)
        except DeviceError as error:
            with self._changed:
                pace.has_failed = True
                rest = [] if pace.part is None else [self._uncomputed_items(pace)]
                if isinstance(error, WorkerLostError):
                    if any(part.last > part.first for part in rest):
                        self._count_loss()
                    if not isinstance(error, WorkerLostBeforeError):
                        rest = [smaller for part in rest for smaller in self._after_loss(part)]
                self._end_partition(pace, rest, gives_assigned=True)
            self._round.progress.message(f"{one_line(error)}; its unfinished items are repeated elsewhere")
        except BaseException:
            self._is_broken = True
            raise

    def _count_loss(self) -> None:
        """Count a lost worker; raise WorkersError if too many workers in succession were lost without a result, whatever their items."""
        self.losses.in_a_row += 1
        if self.losses.in_a_row > self.losses.n_workers + _MAXIMUM_LOSSES_IN_A_ROW:
            self._is_broken = True
            raise WorkersError(f"{self.losses.in_a_row} workers were lost in a row without a result. Check their memory")

    def _after_loss(self, rest: Partition) -> list[Partition]:
        """Return the unfinished items of a lost worker in smaller partitions, for other workers.

        Items on which three workers were lost are not returned, but set aside. If workers were also lost on other items, the items may not
        be the cause; the limit then increases by one for each of these losses, up to six.
        """
        if rest.last <= rest.first:
            return []
        self.losses.items.append((rest.first, rest.last))
        n_on_items = sum(first <= rest.first and rest.last <= last for first, last in self.losses.items)
        n_on_other_items = sum(first > rest.first or rest.last > last for first, last in self.losses.items)
        if n_on_items >= min(_MAXIMUM_LOSSES + n_on_other_items, _MAXIMUM_LOSSES_AMONG_OTHERS):
            self._deadly.append((rest, n_on_items))
            return []
        return _shares(self._round.costs, rest, [1.0] * _PARTS_AFTER_LOSS)

    def _loss_message(self, *, are_others_done: bool) -> str:
        items = ", ".join(f"{part.first} to {part.last - 1}" for part, _ in sorted(self._deadly, key=lambda entry: entry[0].first))
        n = min(n_losses for _, n_losses in self._deadly)
        others = "all other items are computed" if are_others_done else "other items are not computed, since no worker is left"
        return f"{n} workers were lost on items {items}; {others}. Check the memory of the workers."

    def _next(self, pace: _Pace) -> Generator[None, None, Partition | None]:
        """Return the next partition of a worker; None if all items are computed.

        While no partition is available, wait: other workers may fail, or hand over some of their items.
        """
        while not self._is_broken:
            with self._changed:
                self._round.progress.check()
                if pace.assigned or (self._waiting and self._is_in_time(pace)):
                    pace.part = pace.assigned.pop() if pace.assigned else self._taken(pace)
                    pace.done, pace.is_idle = pace.part.first, False
                    return pace.part
                if not self._waiting and all(other.part is None and not other.assigned for other in self._paces):
                    break
                if not self._in_turns:
                    pace.is_idle = True
                    self._changed.wait(_CHECK_SECONDS)
            yield
        pace.is_idle = False
        return None

    def _taken(self, pace: _Pace) -> Partition:
        """Remove a partition, or some of its items, from the waiting partitions for a worker, and return it.

        A GPU gets the largest waiting partition. The CPU gets items of the smallest waiting partition: half of its share of the waiting
        items, in proportion to the speeds, or fewer items while speeds are unknown.
        """
        if not pace.worker.is_processor or len(self._paces) == 1:
            return self._waiting.pop(0)
        smallest, speed = self._waiting.pop(), pace.speed
        others = [other.speed for other in self._paces if not other.has_failed and other is not pace]
        if speed is None:
            most = smallest.cost / _FIRST_PARTS
        elif None in others:
            most = speed * _FIRST_SECONDS
        else:
            rest = smallest.cost + sum(part.cost for part in self._waiting)
            most = speed * max(pace.result_seconds, rest / (speed + sum(other for other in others if other)) / 2)
        cut = max(smallest.first + 1, self._round.costs.at(smallest, min(1.0, most / max(smallest.cost, 1e-9))))
        self._give_back([self._round.costs.part(cut, smallest.last)])
        return self._round.costs.part(smallest.first, cut)

    def _search(self, pace: _Pace, part: Partition) -> Generator[None, None, None]:
        began, shares, reported = time.perf_counter(), list[Partition](), 0.0
        with closing(pace.worker.search(part)) as chunks:
            for chunk in chunks:
                now, first = time.perf_counter(), pace.done
                with self._changed:
                    cost = self._round.costs.before(chunk.end) - self._round.costs.before(first)
                    if chunk.rows is not None and chunk.end > first:
                        self._round.take(first, chunk.end, chunk.rows)
                        self.losses.in_a_row = 0
                        pace.computed.append((first, chunk.end))
                    if chunk.end > first:
                        pace.advanced(chunk.end, cost, now - began)
                        began = now
                        shares = self._shares_to_give(pace)
                        if shares:  # give back the rest; no rows are lost, since the rows of each result have been taken
                            self._end_partition(pace, shares)
                beyond = min(chunk.beyond, self._round.costs.before(part.last) - self._round.costs.before(chunk.end))
                self._round.advance(max(0.0, cost + beyond - reported))
                reported = max(0.0, reported - cost, beyond)
                self._round.progress.check()
                if shares or self._is_broken:
                    break
                yield
        with self._changed:
            if pace.part is not None:
                self._end_partition(pace, [])

    def _is_in_time(self, pace: _Pace) -> bool:
        """Return True if a worker would deliver a result before the faster workers could finish all remaining items.

        False also for a CPU that adds too little to the speed of faster workers.
        """
        speed = pace.speed
        faster = [other for other in self._paces if not other.has_failed and (other.speed or 0.0) > (speed or 0.0)]
        if speed is None or not faster:
            return True
        if pace.worker.is_processor and speed < _MINIMUM_SHARE * sum(other.speed or 0.0 for other in faster):
            return False
        part = self._waiting[-1 if pace.worker.is_processor else 0]
        seconds = min(part.cost / speed, pace.result_seconds)
        cost = sum(waiting.cost for waiting in self._waiting) + sum(self._remaining_cost(other) for other in faster)
        return seconds < cost / sum(other.speed or 0.0 for other in faster)

    def _shares_to_give(self, pace: _Pace) -> list[Partition]:
        """Return the uncomputed items of a worker's partition, divided among this worker and idle workers; empty if that is not faster."""
        speed, rest = pace.speed, self._remaining_cost(pace)
        idle = [other for other in self._paces if other.is_idle]
        if self._waiting or not idle or speed is None or rest == 0.0 or pace.part is None:
            return []
        # A GPU without measurements is assumed to be as fast as this worker; a CPU is not.
        speeds = [speed, *(other.speed or (0.0 if other.worker.is_processor else speed) for other in idle)]
        if rest / speed - rest / sum(speeds) <= _DISCARDED_RESULTS * pace.result_seconds:
            return []
        return _shares(self._round.costs, self._uncomputed_items(pace), speeds)

    def _remaining_cost(self, pace: _Pace) -> float:
        """Return the cost of the items that a worker has still to compute, including partitions assigned to it."""
        return sum(part.cost for part in pace.assigned) + (0.0 if pace.part is None else self._uncomputed_items(pace).cost)

    def _uncomputed_items(self, pace: _Pace) -> Partition:
        """Return the items of a worker's current partition that are not computed yet."""
        assert pace.part is not None
        return self._round.costs.part(pace.done, pace.part.last)

    def _end_partition(self, pace: _Pace, left: Sequence[Partition], *, gives_assigned: bool = False) -> None:
        """End a worker's partition, and put the items `left` back into the waiting partitions.

        Further partitions that are assigned to the worker are also put back if `left` is not empty, or with `gives_assigned`.
        """
        pace.part = None
        given = pace.assigned if gives_assigned or left else []
        pace.assigned = [] if given else pace.assigned
        self._give_back([*left, *given])

    def _give_back(self, parts: Sequence[Partition]) -> None:
        self._waiting = sorted([*self._waiting, *(part for part in parts if part.last > part.first)], key=lambda part: -part.cost)
        self._changed.notify_all()


def planned(workers: Sequence[Worker], costs: Costs, parts_of_worker: int = 0) -> list[Partition]:
    """Return partitions of all items for the given workers, in order of decreasing size.

    If all speeds are known, each worker has a share of the cost in proportion to its speed. The CPU's share is one partition; the share of
    each GPU is `parts_of_worker` partitions (`_PARTS_OF_CARD` if 0).

    If a speed is unknown, the sizes decrease step by step. With `parts_of_worker`, there are this many equal partitions per worker instead;
    if `parts_of_worker` is large, the last partition of each worker is divided further.
    """
    if len(costs) == 0:
        return []
    whole = costs.part(0, len(costs))
    speeds = [worker.speed for worker in workers]
    if len(workers) < 2:
        return [whole]
    if any(speed is None for speed in speeds):
        if not parts_of_worker:
            return falling_partitions(costs.each, len(workers))
        last = _LAST_PARTS if parts_of_worker > len(_LAST_PARTS) else (1.0,)
        return falling_partitions(costs.each, len(workers), (*(parts_of_worker - 1) * (1.0,), *last))
    # The CPU's share is one partition, which it computes in sections; the GPUs take the sections that it has not reached.
    parts: list[Partition] = []
    for worker, share in zip(workers, _shares(costs, whole, [float(speed or 0.0) for speed in speeds], keep_empty=True), strict=True):
        parts += [share] if worker.is_processor else _shares(costs, share, [1.0] * (parts_of_worker or _PARTS_OF_CARD))
    return sorted((part for part in parts if part.last > part.first), key=lambda part: -part.cost)


def unfinished(done: Sequence[tuple[int, int]], costs: Costs, n_workers: int) -> list[Partition]:
    """Return partitions for `n_workers` workers of the items outside the ascending ranges ``(first, end)`` in `done`, largest first."""
    edges = [0, *(edge for run in done for edge in run), len(costs)]
    gaps = [costs.part(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True) if last > first]
    if n_workers > 1:
        most = sum(gap.cost for gap in gaps) / (n_workers * _PARTS_OF_CARD)
        gaps = [part for gap in gaps for part in _shares(costs, gap, [1.0] * max(1, round(gap.cost / most)))]
    return sorted(gaps, key=lambda part: -part.cost)


def _shares(costs: Costs, part: Partition, speeds: Sequence[float], *, keep_empty: bool = False) -> list[Partition]:
    """Divide a partition in proportion to speeds; the first speed gets the last items, and so on.

    Empty results are omitted by default.
    """
    marks = 1.0 - np.cumsum(speeds) / sum(speeds)
    cuts = [part.last, *(costs.at(part, mark) for mark in marks[:-1].tolist()), part.first]
    return [costs.part(low, max(low, high)) for high, low in pairwise(cuts) if keep_empty or high > low]


def _joined(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge adjacent ranges of items."""
    runs: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if runs and runs[-1][1] == first:
            first, _ = runs.pop()
        runs.append((first, last))
    return runs


def one_line(error: Exception) -> str:
    """Return the message of an error on one line, shortened."""
    return shortened(" ".join(str(error).split()), _MAXIMUM_CHARACTERS)
