"""Compute a work on the devices of a run: all cards, the processor, or both, with what is opened kept between rounds.

::

    with Executor(resources).session(work) as session:
        rows = session.run()

A card that fails is struck from those of the run; what it had not finished the others do, and the processor where no other is left.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.execution.remembered_gpus import forget_gpus
from engine.execution.resources import Resources
from engine.execution.scheduler import Account, Costs, Scheduler, Worker
from engine.execution.speeds import Speeds
from engine.execution.work import Computation, Kind, Piece, Rows, Work, kind_of
from kernels.cpu.processor import Processor
from kernels.device import Device, DeviceError
from kernels.partitions import Partition

__all__ = ["PROCESSOR", "Executor", "Session", "Share"]

PROCESSOR = Processor.name
"""What the processor is called beside the names of the cards."""
_MINIMUM_SECONDS_TO_TELL = 0.05  # a speed measured in less says little


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
    """What computes for a run.

    The cards of its resources where there are any, and the processor beside them where the user wished that; else the processor.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @contextmanager
    def session(self, work: Work, *, with_cards: bool = True, with_processor: bool = True) -> Iterator[Session]:
        """A work that stays open on each device that takes part, until the block is left.

        Without cards, for what no card can do; without the processor, unless there is no card.
        """
        with ExitStack() as stack:
            session = Session(work, kind_of(work), self._resources, stack, with_cards=with_cards, with_processor=with_processor)
            yield session
            session.remember()


class Session:
    """A work on its devices; made by `Executor.session`."""

    def __init__(self, work: Work, kind: Kind, resources: Resources, stack: ExitStack, *, with_cards: bool, with_processor: bool) -> None:
        self._work, self._kind, self._resources, self._stack = work, kind, resources, stack
        self._devices: list[Device] = [*resources.cards] if with_cards else []
        with_processor = not self._devices or (with_processor and resources.with_processor)
        # A thread drives each card.
        self._processor = Processor(resources.threads - len(self._devices) if with_processor else resources.threads)
        if with_processor:
            self._devices.append(self._processor)
        self._speeds = Speeds(work.kind, self._processor.threads)
        self._accounts: dict[str, Account] = {}
        self._opened: dict[int, Computation] = {}  # by the device's identity
        self._rounds: dict[int, int] = {}
        self._opening = Lock()
        self._round, self._homes, self._n_items, self._has_told = 0, dict[str, list[tuple[int, int]]](), 0, False

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of what computes, as long as nothing fails."""
        return tuple(device.name for device in self._devices)

    def run(self, state: Any = None, items: NDArray[np.int64] | None = None, *, step_cost: float = 0.0, is_measured: bool = True) -> Rows:
        """Compute a round.

        Parameters
        ----------
        state : plain data that the round depends on, besides the work; each device gets it once.
        items : of the work, ascending; all when None.
        step_cost : cost in a step of the progress; where it is 0, an item is a step.
        is_measured : whether its costs are in the unit in which the speeds of devices are remembered.

        Returns
        -------
        Rows of the items, in their order.

        Raises
        ------
        Cancelled : the user asked to stop.
        """
        each = self._kind.costs(self._work, state)
        costs = Costs(each if items is None else each[items])
        rows = self._kind.empty(self._work, state, len(costs))
        self._round += 1
        advance = _Advance(self._resources, costs, step_cost)

        def take(first: int, end: int, found: Rows) -> None:
            self._kind.merge(rows, first, end, found)
            advance.count(end - first)

        def workers(devices: list[Device]) -> list[Worker]:
            is_alone = len(devices) < 2
            accounts = self._accounts if is_measured else {}
            return [self._worker(device, state, items, accounts, knows_speed=is_measured and not is_alone) for device in devices]

        chosen = workers(self._devices)
        if is_measured:
            self._tell_plan(chosen, float(costs.each.sum()))
        # A round of another number of items has nothing to stick to.
        progress, homes = self._resources.progress, self._homes if items is None and len(costs) == self._n_items else {}
        scheduler = Scheduler(chosen, costs, take, progress, advance, parts_of_worker=self._kind.parts_of_worker, homes=homes)
        left = scheduler.run()
        if left:
            progress.message("The processor does what is left")
            self._devices = [self._processor]
            Scheduler(workers(self._devices), costs, take, progress, advance, parts=left).run()
        self._homes, self._n_items = scheduler.homes if items is None and not left else {}, len(costs)
        return rows

    def no_rows(self, state: Any, n: int) -> Rows:
        """The rows of `n` items of which nothing is known yet."""
        return self._kind.empty(self._work, state, n)

    def shares(self) -> tuple[Share, ...]:
        """What each device did so far."""
        total = sum(account.cost for account in self._accounts.values())
        return tuple(
            Share(name, account.cost / total, account.speed, account.warm_cost == 0)
            for name, account in self._accounts.items()
            if account.speed is not None
        )

    def remember(self) -> None:
        """Keep the speeds of the devices that did enough to tell, for later searches."""
        accounts = {name: one for name, one in self._accounts.items() if one.warm_seconds >= _MINIMUM_SECONDS_TO_TELL}
        self._speeds.remember({name: one.speed for name, one in accounts.items() if one.speed is not None})

    def _worker(
        self, device: Device, state: Any, items: NDArray[np.int64] | None, accounts: dict[str, Account], *, knows_speed: bool
    ) -> Worker:
        account = accounts.setdefault(device.name, Account())

        def search(part: Partition) -> Generator[Piece, None, None]:
            try:
                opened = self._begun(device, state, items)
                with closing(opened.search(part.first, part.last)) as pieces:
                    yield from pieces
            except DeviceError:
                self._strike(device)
                raise

        speed = (account.speed or self._speeds.of(device.name)) if knows_speed else None
        return Worker(device.name, search, account, device.is_processor, speed)

    def _begun(self, device: Device, state: Any, items: NDArray[np.int64] | None) -> Computation:
        """The work on a device, brought there once, in this round."""
        key = id(device)
        if key not in self._opened:
            opening = self._kind.open(self._work, device, is_shared=len(self._devices) > 1)
            opened = opening.__enter__()
            with self._opening:  # the stack is shared, what a card takes long for is not
                self._stack.push(opening)
                self._opened[key] = opened
        if self._rounds.get(key) != self._round:
            self._opened[key].begin(state, items)
            self._rounds[key] = self._round
        return self._opened[key]

    def _strike(self, device: Device) -> None:
        """A card that failed takes no part any more, in this run, and is tried before the next."""
        forget_gpus()
        self._devices = [one for one in self._devices if one is not device]
        self._resources.cards[:] = [card for card in self._resources.cards if card is not device]
        self._homes = {}

    def _tell_plan(self, workers: list[Worker], cost: float) -> None:
        if self._has_told or len(workers) < 2 or cost == 0.0:
            return
        self._has_told = True
        speeds = [worker.speed for worker in workers]
        known = [speed for speed in speeds if speed is not None]
        how = "speeds measured in earlier searches" if len(known) == len(speeds) else "found out while they work"
        share = [f"{one.name} {(one.speed or 0.0) / sum(known) * 100:.1f} %" if len(known) == len(speeds) else one.name for one in workers]
        self._resources.progress.message(f"Planned shares of the work: {', '.join(share)} ({how})")


class _Advance:
    """Turns cost, or items, into whole steps of the progress."""

    def __init__(self, resources: Resources, costs: Costs, step_cost: float) -> None:
        self._progress, self._step_cost = resources.progress, step_cost
        self._lock = Lock()
        self._cost, self._told = 0.0, 0

    def __call__(self, cost: float) -> None:
        """So much more was done."""
        if self._step_cost:
            with self._lock:
                self._cost += cost
                steps = int(self._cost // self._step_cost) - self._told
                self._told += steps
            if steps:
                self._progress.advance(steps)

    def count(self, items: int) -> None:
        """So many more items were done."""
        if not self._step_cost:
            self._progress.advance(items)
