"""Compute a work on the devices of a run: all cards, the processor, or both, with what is opened kept between rounds.

::

    with Executor(resources).session(workload) as session:
        rows = session.run()

A card that fails is struck from those of the run; what it had not finished the others do, and the processor where no other is left. Where
the run has workers elsewhere, these are its devices, those that join while it computes among them; the processor here does what they leave.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.checkpoints import IterationCheckpoint
from proteoscope.engine.execution.kinds import workload_type
from proteoscope.engine.execution.remembered_gpus import forget_gpus
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.scheduler import Account, Costs, Scheduler, Worker, one_line, unfinished
from proteoscope.engine.execution.speeds import measured_speed, store_speeds
from proteoscope.engine.execution.workload import Computation, PartialResult, Rows, Workload, WorkloadType
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, DeviceError
from proteoscope.kernels.partitions import Partition

__all__ = ["PROCESSOR", "Executor", "Session", "Share"]

PROCESSOR = Processor.name
"""Name of the CPU next to those of GPUs."""
_MINIMUM_SECONDS_TO_TELL = 0.05  # a speed measured in less says little
_PARTS_ELSEWHERE = 6  # partitions for each worker elsewhere, where beginning one is cheap


@dataclass(frozen=True)
class Share:
    """A device's share of a work: its share of the cost, and cost in a second while it worked.

    `with_start`: too little was done to leave out what a device does once, such as compiling.
    """

    device: str
    share: float
    speed: float
    with_start: bool = False


class Executor:
    """Devices of a run.

    The GPUs of its resources if any, with the CPU if requested; otherwise the CPU.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @contextmanager
    def session(
        self, workload: Workload, *, with_cards: bool = True, with_processor: bool = True, one_card: bool = False
    ) -> Iterator[Session]:
        """Open a workload on each participating device until the block ends.

        Without GPUs for workloads they cannot do; without the CPU unless there is no GPU; on one GPU if several are not faster, and on the
        next if it fails.
        """
        with ExitStack() as stack:
            session = Session(
                workload,
                workload_type(workload),
                self._resources,
                stack,
                with_cards=with_cards,
                with_processor=with_processor,
                one_card=one_card,
            )
            yield session
            session.remember()
            session.note()


class Session:
    """A workload on its devices; made by `Executor.session`."""

    def __init__(
        self,
        workload: Workload,
        kind: WorkloadType,
        resources: Resources,
        stack: ExitStack,
        *,
        with_cards: bool,
        with_processor: bool,
        one_card: bool = False,
    ) -> None:
        self._workload, self._kind, self._resources, self._stack, self._with_cards = workload, kind, resources, stack, with_cards
        self._kept = None if resources.kept is None else resources.kept.of(workload)
        self._elsewhere = resources.elsewhere
        self._devices: list[Device] = [*resources.cards] if with_cards else []
        self._one_card = one_card and not resources.with_processor
        if self._one_card:
            self._devices = self._devices[:1]
        if self._elsewhere is not None:
            self._elsewhere.wait(resources.progress)
            self._devices = self._elsewhere.devices()
        with_processor = not self._devices or (with_processor and resources.with_processor)
        # A thread drives each card.
        self._processor = Processor(resources.threads - len(self._devices) if with_processor else resources.threads)
        if with_processor:
            self._devices.append(self._processor)
        self._accounts: dict[str, Account] = {}
        self._opened: dict[int, Computation] = {}  # by the device's identity
        self._rounds: dict[int, int] = {}
        self._opening, self._struck = Lock(), set[str]()
        self._pool: ThreadPoolExecutor | None = None
        # Of the last round of all items; a kind gives the same array where they cost the same.
        self._each: NDArray[np.float64] | None = None
        self._known_costs = Costs(np.zeros(0))
        self._round, self._homes, self._n_items, self._has_told = 0, dict[str, list[tuple[int, int]]](), 0, False

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of what computes, as long as nothing fails."""
        return tuple(device.name for device in self._devices)

    def checkpoint(self, asked: Any) -> IterationCheckpoint | None:
        """Return the checkpoint of an iteration, in a resumable run; `asked` identifies it as plain data, equal on every device."""
        return None if self._kept is None else self._kept.checkpoint(asked)

    def run(
        self,
        state: Any = None,
        items: NDArray[np.int64] | None = None,
        *,
        step_cost: float = 0.0,
        is_measured: bool = True,
        is_kept: bool = True,
        in_step: bool = False,
    ) -> Rows:
        """Compute a round.

        Parameters
        ----------
        state
            Plain data that the round depends on, in addition to the work; each device gets it once.
        items
            Of the work, ascending; all when None.
        step_cost
            Cost in a step of the progress; where it is 0, an item is a step.
        is_measured
            True if its costs are in the unit in which the speeds of devices are remembered.
        is_kept
            True if what is done of it is kept for a resumption; not of a round of an iteration that tells how far it has come.
        in_step
            It is one of many short rounds, all alike: one thread drives several cards, each with what it had in the last; a computation
            yields when its card has all to do, before it waits for it.

        Returns
        -------
        Rows of the items, in their order.

        Raises
        ------
        Cancelled
            The user cancelled.
        """
        each = self._kind.costs(self._workload, state)
        costs = self._known_costs if items is None and each is self._each else Costs(each if items is None else each[items])
        self._each, self._known_costs = (each, costs) if items is None else (None, costs)
        rows = self._kind.empty(self._workload, state, len(costs))
        self._round += 1
        advance = _Advance(self._resources, costs, step_cost)
        retained = self._kept.round(state, items) if self._kept is not None and is_kept else None

        def take(first: int, end: int, found: Rows) -> None:
            self._kind.merge(rows, first, end, found)
            if retained is not None:
                retained.add(first, end, found)  # before progress is reported, which does not return after a cancel
            advance.count(end - first)

        done = [] if retained is None else retained.done(len(costs))
        for first, end, found in done:
            self._kind.merge(rows, first, end, found)
            advance.count(end - first)
            advance(costs.before(end) - costs.before(first))

        def workers(devices: list[Device]) -> list[Worker]:
            is_alone = len(devices) < 2
            accounts = self._accounts if is_measured else {}
            return [self._worker(device, state, items, accounts, knows_speed=is_measured and not is_alone) for device in devices]

        if in_step and items is None and not done and len(costs) == self._n_items and self._can_go_in_step():
            in_pieces = self._in_step(state, costs, advance)
            if in_pieces is not None:
                for chunk in in_pieces:
                    take(*chunk)
                return rows
            self._round += 1  # begun anew by those that are left
        self._arrived()
        chosen = workers(self._devices)
        if is_measured:
            self._tell_plan(chosen, float(costs.each.sum()))

        def arrivals() -> list[Worker]:
            return workers(self._arrived())

        parts_of_worker = self._kind.parts_of_worker or (0 if self._elsewhere is None else _PARTS_ELSEWHERE)
        # A round of another number of items has nothing to stick to, nor have processors elsewhere, where nothing stays but files.
        sticks = items is None and len(costs) == self._n_items and (self._elsewhere is None or self._elsewhere.has_cards)
        progress, homes = self._resources.progress, self._homes if sticks else {}
        if self._pool is None and self._elsewhere is None and len(chosen) > 1:
            # Cached between rounds, since there may be hundreds of rounds in a second.
            self._pool = self._stack.enter_context(ThreadPoolExecutor(len(chosen), thread_name_prefix="proteoscope-worker"))
        scheduler = Scheduler(
            chosen,
            costs,
            take,
            progress,
            advance,
            parts_of_worker=parts_of_worker,
            homes=homes,
            parts=unfinished([one[:2] for one in done], costs, len(chosen)) if done else None,
            arrivals=None if self._elsewhere is None else arrivals,
            pool=self._pool,
        )
        left = scheduler.run()
        while left and self._has_others():
            again = Scheduler(
                workers(self._devices),
                costs,
                take,
                progress,
                advance,
                parts=left,
                losses=scheduler.losses,
                arrivals=None if self._elsewhere is None else arrivals,
            )
            left = again.run()
            self._homes = {}
        if left:
            progress.message("The processor does what is left")
            self._devices = [self._processor]
            Scheduler(workers(self._devices), costs, take, progress, advance, parts=left).run()
        self._homes, self._n_items = scheduler.homes if items is None and not left and not done else {}, len(costs)
        return rows

    def _has_others(self) -> bool:
        """Return True if other devices can take what failed ones left: remote workers, which are awaited, or the next GPU."""
        if self._elsewhere is None:
            return bool(self._devices)
        # A worker that was struck may still be thought to be there.
        self._elsewhere.wait(self._resources.progress, self._struck)
        return bool(self._arrived())

    def _can_go_in_step(self) -> bool:
        """Return True if only several GPUs computed the last round."""
        if self._elsewhere is not None or len(self._devices) < 2:
            return False
        return self._processor not in self._devices and set(self._homes) == {device.name for device in self._devices}

    def _in_step(self, state: Any, costs: Costs, advance: _Advance) -> list[tuple[int, int, Rows]] | None:
        """Return the rows of a round with each GPU computing its items of the last, or None if a GPU failed.

        Raises
        ------
        Cancelled
            The user cancelled.
        """
        began, result = time.perf_counter(), list[tuple[int, int, Rows]]()
        with ExitStack() as searches:
            going = [(device, searches.enter_context(closing(self._parts_of(device, state, result)))) for device in self._devices]
            while going:
                for one in [*going]:
                    self._resources.progress.check()
                    try:
                        next(one[1])
                    except StopIteration:
                        going.remove(one)
                    except DeviceError as error:
                        self._strike(one[0])
                        self._resources.progress.message(f"{one_line(error)}; what it had not finished is repeated elsewhere")
                        return None
        seconds = time.perf_counter() - began
        for device in self._devices:
            did = sum(costs.before(last) - costs.before(first) for first, last in self._homes[device.name])
            self._accounts.setdefault(device.name, Account()).add(did, seconds, is_warm=False)
        advance(costs.before(len(costs)))
        return result

    def _parts_of(self, device: Device, state: Any, found: list[tuple[int, int, Rows]]) -> Generator[None, None, None]:
        """Compute what a GPU had in the last round, part by part."""
        opened = self._begun(device, state, None)
        for first, last in self._homes[device.name]:
            with closing(opened.search(first, last)) as chunks:
                for chunk in chunks:
                    if chunk.rows is not None and chunk.end > first:
                        found.append((first, chunk.end, chunk.rows))
                        first = chunk.end
                    yield

    def no_rows(self, state: Any, n: int) -> Rows:
        """Return the rows of `n` items without results."""
        return self._kind.empty(self._workload, state, n)

    def shares(self) -> tuple[Share, ...]:
        """Return what each device has done."""
        total = sum(account.cost for account in self._accounts.values())
        return tuple(
            Share(name, account.cost / total, account.speed, account.warm_cost == 0)
            for name, account in self._accounts.items()
            if account.speed is not None
        )

    def remember(self) -> None:
        """Store the speeds of devices with enough work to measure, for later searches."""
        if self._elsewhere is not None:  # whose names say nothing in another run
            return
        accounts = {name: one for name, one in self._accounts.items() if one.warm_seconds >= _MINIMUM_SECONDS_TO_TELL}
        speeds = {name: one.speed for name, one in accounts.items() if one.speed is not None}
        store_speeds(self._workload.kind, speeds, self._processor.threads)

    def note(self) -> None:
        """Report to the clock how long each device was busy."""
        for name, account in self._accounts.items():
            if account.seconds > 0.0:
                self._resources.clock.add_work(self._workload.kind, name, account.seconds)

    def _worker(
        self, device: Device, state: Any, items: NDArray[np.int64] | None, accounts: dict[str, Account], *, knows_speed: bool
    ) -> Worker:
        account = accounts.setdefault(device.name, Account())

        def search(part: Partition) -> Generator[PartialResult, None, None]:
            try:
                opened = self._begun(device, state, items)
                with closing(opened.search(part.first, part.last)) as chunks:
                    yield from chunks
            except DeviceError:
                self._strike(device)
                raise

        speed = account.speed if knows_speed else None
        if knows_speed and not speed and self._elsewhere is None:
            speed = measured_speed(self._workload.kind, device.name, self._processor.threads)
        return Worker(device.name, search, account, device.is_processor, speed)

    def _arrived(self) -> list[Device]:
        """Workers elsewhere that have come since somebody looked, now devices of this session; those that have gone are none any more."""
        if self._elsewhere is None or self._processor in self._devices:
            return []
        there = [device for device in self._elsewhere.devices() if device.name not in self._struck]
        new = [device for device in there if all(device is not one for one in self._devices)]
        self._devices = there
        return new

    def _begun(self, device: Device, state: Any, items: NDArray[np.int64] | None) -> Computation:
        """Return the workload on a device, opened once, in this round."""
        key = id(device)
        if key not in self._opened:
            if self._elsewhere is None or device is self._processor:
                opening = self._kind.open(self._workload, device, is_shared=len(self._devices) > 1)
            else:
                opening = self._elsewhere.open(self._workload, device, self._resources.progress, with_card=self._with_cards)
            opened = opening.__enter__()
            with self._opening:  # the stack is shared, what a card takes long for is not
                self._stack.push(opening)
                self._opened[key] = opened
        if self._rounds.get(key) != self._round:
            self._opened[key].begin(state, items)
            self._rounds[key] = self._round
        return self._opened[key]

    def _strike(self, device: Device) -> None:
        """Exclude a failed GPU from this run, and retest it before the next; a remote worker from this session."""
        if self._elsewhere is None:
            forget_gpus()
        self._struck.add(device.name)
        self._devices = [one for one in self._devices if one is not device]
        self._resources.cards[:] = [card for card in self._resources.cards if card is not device]
        if not self._devices and self._one_card and self._with_cards:
            self._devices = [*self._resources.cards[:1]]
        self._homes = {}

    def _tell_plan(self, workers: list[Worker], cost: float) -> None:
        if self._has_told or len(workers) < 2 or cost == 0.0:
            return
        self._has_told = True
        speeds = [worker.speed for worker in workers]
        known = [speed for speed in speeds if speed is not None]
        how = "speeds measured before" if len(known) == len(speeds) else "found out while they work"
        share = [
            f"{worker.name} {(worker.speed or 0.0) / sum(known) * 100:.1f} %" if len(known) == len(speeds) else worker.name
            for worker in workers
        ]
        self._resources.progress.message(f"Planned shares of the work: {', '.join(share)} ({how})")


class _Advance:
    """Turns cost, or items, into whole steps of the progress."""

    def __init__(self, resources: Resources, costs: Costs, step_cost: float) -> None:
        self._progress, self._step_cost = resources.progress, step_cost
        self._lock = Lock()
        self._cost, self._told = 0.0, 0

    def __call__(self, cost: float) -> None:
        """Report additional cost as done."""
        if self._step_cost:
            with self._lock:
                self._cost += cost
                steps = int(self._cost // self._step_cost) - self._told
                self._told += steps
            if steps:
                self._progress.advance(steps)

    def count(self, items: int) -> None:
        """Report additional items as done."""
        if not self._step_cost:
            self._progress.advance(items)
