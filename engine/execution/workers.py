"""Run partitions on several workers at once: GPUs, and the processor with all its threads.

Each worker takes the next partition when it is done with the last: cards from the large end, the processor from the small end. How fast
each is, is measured while it works, and corrects the split: a worker that finds nothing left gets a share of what another has still to do,
in proportion to their speeds, and one that would only begin what faster ones end sooner, or is no help beside them, takes nothing. What a
worker that fails leaves goes to the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from threading import Condition

import numpy as np

from engine.execution.devices import Device
from engine.jobs.progress import Progress
from kernels.cuda.modules import Card, card
from kernels.device import DeviceError, StopFlag, stop_flag
from kernels.partitions import Partition

__all__ = ["Worker", "cards", "one_line", "run_on_workers", "struck_when_it_fails", "work_on_threads"]

_LOOK_SECONDS = 0.1  # between two looks at a cancel by a worker that waits
_KEPT_OF_MEASURED = 0.8  # of what was measured before, at each new piece
_PIECES_UNDER_WAY = 2  # which a card throws away when it gives up a partition
_FIRST_PARTS = 512  # the processor takes so small a part of a partition while nothing is known of its speed,
_FIRST_SECONDS = 0.3  # and what it does in so short a time while nothing is known of the cards'
_LEAST_SHARE = 0.05  # of the cards' speed: a slower processor takes more from the threads that feed them than it brings
_MOST_LETTERS = 300  # of an error that is told


@dataclass(frozen=True)
class Worker:
    """What can search a partition.

    Attributes
    ----------
    name : "cuda:0", "cpu": as messages call it.
    work : searches a partition; yields, whenever a piece is done, the end of what is done (item number), a few times a second; raises
        DeviceError when the device fails. It may be closed after any piece: what is behind that is done by another.
    is_processor : it takes parts of the smallest partitions; the others take the largest whole.
    speed : cost per second to begin with; None: it is found out.
    """

    name: str
    work: Callable[[Partition], Generator[int, None, None]]
    is_processor: bool = False
    speed: float | None = None


def cards(device: Device, progress: Progress, *, memory_bytes: int = 0) -> list[Card]:
    """The cards of a device that the user chose; none for the processor. A card that cannot be opened is left out, and the user is told.

    No more than `memory_bytes` of each is used; 0: what is free.
    """
    opened: list[Card] = []
    for number in device.numbers:
        try:
            one = card(number)
            one.limit_memory(memory_bytes)
            opened.append(one)
        except DeviceError as error:
            progress.message(f"{one_line(error)}; it is not used")
    return opened


@contextmanager
def struck_when_it_fails(cards: list[Card], one: Card) -> Iterator[None]:
    """Strike a card from those of a run when it fails in the block; the error passes on."""
    try:
        yield
    except DeviceError:
        if one in cards:
            cards.remove(one)
        raise


def run_on_workers(
    workers: Sequence[Worker],
    partitions: Sequence[Partition],
    progress: Progress,
    *,
    step: Callable[[int, int], int] = lambda first, last: last - first,
) -> list[Partition]:
    """Search partitions, each once, on all workers together.

    Parameters
    ----------
    partitions : the largest first. They may be cut further on the way, on the assumption that their items cost about the same.
    progress : advances by `step(first, last)` whenever the items `first:last` are done. A cancel closes all work.

    Returns
    -------
    What no worker could do, because all failed; the user was told of each.

    Raises
    ------
    Cancelled : the user asked to stop. Whatever else a worker raises is raised again when all have stopped.
    """
    plan = _Plan(workers, partitions, progress, step)
    if len(workers) == 1:
        plan.serve(0)
    elif workers:
        with ThreadPoolExecutor(len(workers), thread_name_prefix="proteoscope-worker") as pool:
            for finished in [pool.submit(plan.serve, number) for number in range(len(workers))]:
                finished.result()
    return sorted(plan.waiting, key=lambda part: -part.cost)


class _Pace:
    """What one worker is at, and how fast it is."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.part: Partition | None = None
        self.done = 0
        self.is_idle = self.has_failed = False
        self._cost = self._seconds = self._pieces = 0.0
        self._is_warm = worker.is_processor

    @property
    def speed(self) -> float | None:
        """Cost per second; None while nothing is known."""
        return self._cost / self._seconds if self._cost > 0.0 and self._seconds > 0.0 else self.worker.speed

    @property
    def piece_seconds(self) -> float:
        """What a piece takes; 0 while nothing is known."""
        return self._seconds / self._pieces if self._pieces else 0.0

    def left(self) -> float:
        """Cost of what it has still to do."""
        return 0.0 if self.part is None else _rest(self.part, self.done).cost

    def advanced(self, end: int, seconds: float) -> None:
        """A piece up to `end` took `seconds`. A card's first is not counted: it has what is done once, such as compiling."""
        before = self.left()
        self.done = end
        if self._is_warm:
            self._cost = self._cost * _KEPT_OF_MEASURED + before - self.left()
            self._seconds = self._seconds * _KEPT_OF_MEASURED + seconds
            self._pieces = self._pieces * _KEPT_OF_MEASURED + 1.0
        self._is_warm = True


class _Plan:
    """What waits, and who does what; a lock guards it."""

    def __init__(
        self, workers: Sequence[Worker], partitions: Sequence[Partition], progress: Progress, step: Callable[[int, int], int]
    ) -> None:
        self.waiting = list(partitions)
        self._paces = [_Pace(worker) for worker in workers]
        self._changed = Condition()
        self._progress, self._step = progress, step
        self._is_broken = False

    def serve(self, number: int) -> None:
        """Let one worker work until nothing is left to do."""
        pace = self._paces[number]
        try:
            while (part := self._next(pace)) is not None:
                self._search(pace, part)
        except DeviceError as error:
            with self._changed:
                if pace.part is not None:
                    self._give_back([_rest(pace.part, pace.done)])
                pace.part, pace.has_failed = None, True
                self._changed.notify_all()
            self._progress.message(f"{one_line(error)}; what it had not finished is repeated elsewhere")
        except BaseException:
            self._is_broken = True
            raise

    def _next(self, pace: _Pace) -> Partition | None:
        """A partition for a worker, now its own; waits while others work, who may fail or give a share away. None: all is done."""
        with self._changed:
            while not self._is_broken:
                self._progress.check()
                if self.waiting and self._is_in_time(pace):
                    pace.part = self._taken(pace)
                    pace.done, pace.is_idle = pace.part.first, False
                    return pace.part
                if not self.waiting and all(other.part is None for other in self._paces):
                    break
                pace.is_idle = True
                self._changed.wait(_LOOK_SECONDS)
            pace.is_idle = False
        return None

    def _taken(self, pace: _Pace) -> Partition:
        """The largest partition for a card. For the processor, which is slow, half of its fair share, cut from the smallest."""
        if not pace.worker.is_processor or len(self._paces) == 1:
            return self.waiting.pop(0)
        smallest, speed = self.waiting.pop(), pace.speed
        others = [other.speed for other in self._paces if not other.has_failed and other is not pace]
        if speed is None:
            most = smallest.cost / _FIRST_PARTS
        elif None in others:
            most = speed * _FIRST_SECONDS
        else:
            rest = smallest.cost + sum(part.cost for part in self.waiting)
            most = speed * max(pace.piece_seconds, rest / (speed + sum(other for other in others if other)) / 2)
        items = int((smallest.last - smallest.first) * min(1.0, most / max(smallest.cost, 1e-9)))
        taken, left = _cut(smallest, smallest.first + max(1, items))
        self._give_back([left])
        return taken

    def _search(self, pace: _Pace, part: Partition) -> None:
        began, shares = time.perf_counter(), list[Partition]()
        with closing(pace.worker.work(part)) as ends:
            for end in ends:
                now, first = time.perf_counter(), pace.done
                with self._changed:
                    pace.advanced(end, now - began)
                    shares = self._shares_to_give(pace)
                    if shares and not pace.worker.is_processor:  # a card writes nothing of what it has begun
                        self._leave(pace, shares)
                self._progress.advance(self._step(first, end))
                if shares or self._is_broken:
                    break
                began = now
        with self._changed:
            if pace.part is not None:
                self._leave(pace, shares)

    def _is_in_time(self, pace: _Pace) -> bool:
        """Whether a worker would be done with a piece of what waits before the faster ones have done all of it, and is of any help."""
        speed = pace.speed
        if speed is None:
            return True
        faster = [other for other in self._paces if not other.has_failed and (other.speed or 0.0) > speed]
        if not faster:
            return True
        if pace.worker.is_processor and speed < _LEAST_SHARE * sum(other.speed or 0.0 for other in faster):
            return False
        part = self.waiting[-1 if pace.worker.is_processor else 0]
        seconds = min(part.cost / speed, pace.piece_seconds)
        cost = sum(one.cost for one in self.waiting) + sum(other.left() for other in faster)
        return seconds < cost / sum(other.speed or 0.0 for other in faster)

    def _shares_to_give(self, pace: _Pace) -> list[Partition]:
        """What a worker has still to do, cut into shares for it and for those that idle; none unless that is sooner done."""
        speed, rest = pace.speed, pace.left()
        idle = [other for other in self._paces if other.is_idle]
        if self.waiting or not idle or speed is None or rest == 0.0 or pace.part is None:
            return []
        # A card of which nothing is known is taken to be as fast; a processor is not.
        speeds = [speed, *(other.speed or (0.0 if other.worker.is_processor else speed) for other in idle)]
        if rest / speed - rest / sum(speeds) <= _PIECES_UNDER_WAY * pace.piece_seconds:
            return []
        return _shares(_rest(pace.part, pace.done), speeds)

    def _leave(self, pace: _Pace, left: Sequence[Partition]) -> None:
        """A worker is done with its partition, but for what is left of it."""
        pace.part = None
        self._give_back(left)

    def _give_back(self, parts: Sequence[Partition]) -> None:
        self.waiting = sorted([*self.waiting, *(part for part in parts if part.last > part.first)], key=lambda part: -part.cost)
        self._changed.notify_all()


def _cut(part: Partition, at: int) -> tuple[Partition, Partition]:
    """A partition in two; its items are taken to cost the same."""
    cost = part.cost * (at - part.first) / max(1, part.last - part.first)
    return Partition(part.first, at, cost), Partition(at, part.last, part.cost - cost)


def _rest(part: Partition, done: int) -> Partition:
    """What of a partition is behind `done`."""
    return _cut(part, done)[1]


def _shares(part: Partition, speeds: Sequence[float]) -> list[Partition]:
    """A partition cut in proportion to speeds; a share of no item is left out."""
    ends = part.first + np.rint(np.cumsum(speeds) / sum(speeds) * (part.last - part.first)).astype(int)
    cuts = [part.first, *ends.tolist()]
    of_item = part.cost / max(1, part.last - part.first)
    return [Partition(first, last, of_item * (last - first)) for first, last in pairwise(cuts) if last > first]


def one_line(error: Exception) -> str:
    """What an error says, on one line that a person can read."""
    text = " ".join(str(error).split())
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def work_on_threads(
    work: Callable[[Partition, StopFlag], None], cut: Callable[[Partition], Sequence[Partition]], threads: int, progress: Progress
) -> Callable[[Partition], Generator[int, None, None]]:
    """What makes a `Worker` of the processor: `work` on the pieces that `cut` makes of a partition, on threads.

    `work` releases the interpreter's lock and takes about a tenth of a second for a piece. Where it takes longer, it looks at the flag that
    it is given, and leaves off when a cancel or the closing of the generator sets it; closing waits for the pieces that have begun.
    """

    def run(part: Partition) -> Generator[int, None, None]:
        pieces, stop = sorted(cut(part), key=lambda piece: piece.first), stop_flag()
        with ThreadPoolExecutor(threads, thread_name_prefix="proteoscope") as pool:
            futures = [pool.submit(work, piece, stop) for piece in pieces]
            try:
                for number, (piece, future) in enumerate(zip(pieces, futures, strict=True)):
                    while not wait([future], timeout=_LOOK_SECONDS).done:
                        progress.check()
                    future.result()
                    if number + 1 == len(futures) or not futures[number + 1].done():
                        yield piece.last
            finally:
                stop[0] = 1
                for future in futures:
                    future.cancel()

    return run
