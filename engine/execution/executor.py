"""Execution of workloads on the devices of a run: GPUs, the CPU, or both. An opened workload stays on its devices between rounds.

::

    with Executor(resources).session(workload) as session:
        rows = session.run()

A GPU that fails is removed from the devices of the run; the other GPUs compute its unfinished items, or the CPU if there is no other GPU.
If a run has remote workers, these are its devices, including workers that join later; the local CPU computes items that they do not
complete.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.checkpoints import CheckpointName, IterationCheckpoint
from proteoscope.engine.execution.cost.calibration_store import measured_speed, store_speeds
from proteoscope.engine.execution.devices import forget_gpus
from proteoscope.engine.execution.kinds import workload_type
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.scheduler import Account, Costs, Round, Scheduler, Worker, unfinished
from proteoscope.engine.execution.workload import Computation, PartialResult, Rows, Workload, WorkloadType
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, DeviceError, Partition

__all__ = ["PROCESSOR", "Executor", "Session", "Share"]

PROCESSOR = Processor.name
"""Device name of the CPU."""
_MINIMUM_SECONDS_TO_STORE = 0.05  # a speed measured in less time is inaccurate
_PARTS_OF_REMOTE_WORKER = 6  # partitions per remote worker if starting a partition is cheap


@dataclass(frozen=True)
class Share:
    """Fraction of a workload that a device computed.

    Attributes
    ----------
    device : str
        Name of the device.
    fraction : float
        Fraction of the cost, 0 to 1.
    speed : float
        Cost per second of computation.
    with_start : bool
        True if the speed includes one-time operations such as compiling, because the device computed too little to exclude them.
    """

    device: str
    fraction: float
    speed: float
    with_start: bool = False


class Executor:
    """Executor of workloads on the devices of a run.

    The devices are the GPUs of its resources, together with the CPU if requested; or the CPU alone if there are no GPUs.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @contextmanager
    def session(
        self, workload: Workload, *, with_gpus: bool = True, with_processor: bool = True, one_gpu: bool = False
    ) -> Iterator[Session]:
        """Open a workload on each participating device until the ``with`` block ends.

        Parameters
        ----------
        workload : Workload
            Workload to open.
        with_gpus : bool
            False if GPUs do not support the workload.
        with_processor : bool
            False to use the CPU only if there is no GPU.
        one_gpu : bool
            True to use only the first GPU, or the next GPU if the first fails; for workloads that several GPUs do not compute faster.
        """
        with ExitStack() as stack:
            session = Session(
                workload,
                workload_type(workload),
                self._resources,
                stack,
                with_gpus=with_gpus,
                with_processor=with_processor,
                one_gpu=one_gpu,
            )
            yield session
            session.remember()


class Session:
    """Workload opened on its devices by `Executor.session`."""

    def __init__(
        self,
        workload: Workload,
        kind: WorkloadType,
        resources: Resources,
        stack: ExitStack,
        *,
        with_gpus: bool,
        with_processor: bool,
        one_gpu: bool = False,
    ) -> None:
        self._workload, self._kind, self._resources, self._stack, self._with_gpus = workload, kind, resources, stack, with_gpus
        self._name = CheckpointName("work", workload.kind, workload.sources, workload.settings)
        self._remote_workers = resources.remote_workers
        self._devices: list[Device] = [*resources.gpus] if with_gpus else []
        self._one_gpu = one_gpu and not resources.with_processor
        if self._one_gpu:
            self._devices = self._devices[:1]
        if self._remote_workers is not None:
            self._remote_workers.wait(resources.progress)
            self._devices = self._remote_workers.devices()
        with_processor = not self._devices or (with_processor and resources.with_processor)
        # Each GPU needs a thread.
        self._processor = Processor(resources.threads - len(self._devices) if with_processor else resources.threads)
        if with_processor:
            self._devices.append(self._processor)
        self._accounts: dict[str, Account] = {}
        self._opened: dict[int, Computation] = {}  # keys are the ``id`` of the device
        self._rounds: dict[int, int] = {}
        self._excluded = set[str]()
        # One pool for all rounds, since there may be hundreds of rounds in a second; its threads start when needed.
        self._pool = stack.enter_context(ThreadPoolExecutor(len(self._devices), thread_name_prefix="proteoscope-worker"))
        # Costs of the last round over all items; a workload type returns the same array object if they have not changed.
        self._each: NDArray[np.float64] | None = None
        self._known_costs = Costs(np.zeros(0))
        self._round, self._previous_items, self._n_items, self._has_shown_plan = 0, dict[str, list[tuple[int, int]]](), 0, False

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that compute, without devices that failed."""
        return tuple(device.name for device in self._devices)

    def checkpoint(self, identification: Any) -> IterationCheckpoint | None:
        """Return the checkpoint of an iteration; None if the run cannot be resumed.

        Parameters
        ----------
        identification
            Plain data that identify the iteration, equal on all devices.
        """
        stored = self._resources.checkpoint
        return None if stored is None else IterationCheckpoint(stored, CheckpointName("checkpoint", self._name, identification))

    def run(
        self,
        state: Any = None,
        items: NDArray[np.int64] | None = None,
        *,
        step_cost: float = 0.0,
        is_measured: bool = True,
        is_stored: bool = True,
        in_step: bool = False,
    ) -> Rows:
        """Compute a round, and return the result rows.

        Parameters
        ----------
        state
            Plain data on which the round depends in addition to the workload; each device receives them once.
        items : ndarray of int64 or None
            Indices of the items to compute, shape (n,), ascending; None for all.
        step_cost : float
            Cost per progress step; 0 if each item is a step.
        is_measured : bool
            True if the costs have the unit of the stored device speeds. These speeds are then used to plan the round, and the round
            updates them.
        is_stored : bool
            True to store finished partitions in the checkpoint; False for the rounds of an iteration that stores its state.
        in_step : bool
            True for many short, similar rounds. One thread then serves all GPUs in turn, each with the same items as in the previous round.
            Each computation yields after its GPU has received all kernels and before waiting for the results.

        Returns
        -------
        mapping of str to ndarray
            Columns of results, one row per item in the order of `items`.

        Raises
        ------
        Cancelled
            If the user cancels.
        """
        each = self._kind.costs(self._workload, state)
        costs = self._known_costs if items is None and each is self._each else Costs(each if items is None else each[items])
        self._each, self._known_costs = (each, costs) if items is None else (None, costs)
        rows = self._kind.empty(self._workload, state, len(costs))
        self._round += 1
        advance = _Advance(self._resources, step_cost)
        stored, name = self._resources.checkpoint if is_stored else None, CheckpointName("round", self._name, state, items)

        def take(first: int, end: int, computed: Rows) -> None:
            self._kind.merge(rows, first, end, computed)
            if stored is not None:
                stored.add(name, first, end, computed)  # before progress is reported, since that raises an error after cancellation
            advance.count(end - first)

        done = [] if stored is None else stored.read_rows(name, len(costs))
        for first, end, computed in done:
            self._kind.merge(rows, first, end, computed)
            advance.count(end - first)
            advance(costs.before(end) - costs.before(first))

        # Workers keep their items if the number of items is unchanged. Remote CPUs retain only files, so that their items may change.
        sticks = items is None and len(costs) == self._n_items and (self._remote_workers is None or self._remote_workers.has_gpus)
        gpus = {device.name for device in self._devices if device is not self._processor}
        in_turns = in_step and sticks and not done and self._remote_workers is None and len(gpus) == len(self._devices) > 1
        accounts = self._accounts if is_measured else {}

        def workers(devices: list[Device]) -> list[Worker]:
            return [self._worker(device, state, items, accounts, has_known_speed=is_measured and len(devices) > 1) for device in devices]

        round_ = Round(
            costs, take, self._resources.progress, advance, None if self._remote_workers is None else lambda: workers(self._arrived())
        )
        self._arrived()
        chosen = workers(self._devices)
        if is_measured:
            self._show_plan(chosen, float(costs.each.sum()))
        parts_of_worker = self._kind.parts_of_worker or (0 if self._remote_workers is None else _PARTS_OF_REMOTE_WORKER)
        scheduler = Scheduler(
            chosen,
            round_,
            parts_of_worker=parts_of_worker,
            previous_items=self._previous_items if sticks else {},
            parts=unfinished([(first, end) for first, end, _ in done], costs, len(chosen)) if done else None,
            pool=self._pool if self._remote_workers is None else None,
            in_turns=in_turns and set(self._previous_items) == gpus,
        )
        left = scheduler.run()
        while left and self._has_others():
            left = Scheduler(workers(self._devices), round_, parts=left, losses=scheduler.losses).run()
        if left:
            self._resources.progress.message("The CPU computes the remaining items")
            self._devices = [self._processor]
            Scheduler(workers(self._devices), round_, parts=left).run()
        self._previous_items, self._n_items = scheduler.previous_items if items is None and not left and not done else {}, len(costs)
        return rows

    def _has_others(self) -> bool:
        """Return True if another device can compute the items of a failed one: a remote worker (this waits for it), or the next GPU."""
        if self._remote_workers is None:
            return bool(self._devices)
        # A removed worker may still be listed.
        self._remote_workers.wait(self._resources.progress, self._excluded)
        return bool(self._arrived())

    def no_rows(self, state: Any, n: int) -> Rows:
        """Return the rows of `n` items that have no results."""
        return self._kind.empty(self._workload, state, n)

    def shares(self) -> tuple[Share, ...]:
        """Return the fraction of the cost that each device computed in measured rounds."""
        total = sum(account.cost for account in self._accounts.values())
        return tuple(
            Share(name, account.cost / total, account.speed, account.warm_cost == 0)
            for name, account in self._accounts.items()
            if account.speed is not None
        )

    def remember(self) -> None:
        """Report the busy seconds of each device to the clock, and store the speeds that were measured accurately for later searches.

        Speeds of remote workers are not stored.
        """
        speeds = dict[str, float]()
        for name, account in self._accounts.items():
            if account.seconds > 0.0:
                self._resources.clock.add_work(self._workload.kind, name, account.seconds)
            if account.speed is not None and account.warm_seconds >= _MINIMUM_SECONDS_TO_STORE:
                speeds[name] = account.speed
        if self._remote_workers is None:  # remote workers have other names in each run
            store_speeds(self._workload.kind, speeds, self._processor.threads)

    def _worker(
        self, device: Device, state: Any, items: NDArray[np.int64] | None, accounts: dict[str, Account], *, has_known_speed: bool
    ) -> Worker:
        account = accounts.setdefault(device.name, Account())

        def search(part: Partition) -> Generator[PartialResult, None, None]:
            try:
                opened = self._begun(device, state, items)
                with closing(opened.search(part.first, part.last)) as chunks:
                    yield from chunks
            except DeviceError:
                self._exclude_device(device)
                raise

        speed = account.speed if has_known_speed else None
        if has_known_speed and not speed and self._remote_workers is None:
            speed = measured_speed(self._workload.kind, device.name, self._processor.threads)
        return Worker(device.name, search, account, device.is_processor, speed)

    def _arrived(self) -> list[Device]:
        """Update the devices to the current remote workers, and return the new workers."""
        if self._remote_workers is None or self._processor in self._devices:
            return []
        present = [device for device in self._remote_workers.devices() if device.name not in self._excluded]
        new = [device for device in present if all(device is not other for other in self._devices)]
        self._devices = present
        return new

    def _begun(self, device: Device, state: Any, items: NDArray[np.int64] | None) -> Computation:
        """Begin a round on a device, after opening the workload there if necessary; return the computation."""
        key = id(device)
        if key not in self._opened:
            if self._remote_workers is None or device is self._processor:
                opening = self._kind.open(self._workload, device, is_shared=len(self._devices) > 1)
            else:
                opening = self._remote_workers.open(self._workload, device, self._resources.progress, with_gpu=self._with_gpus)
            self._opened[key] = opening.__enter__()  # on several threads, since it may take long
            self._stack.push(opening)
        if self._rounds.get(key) != self._round:
            self._opened[key].begin(state, items)
            self._rounds[key] = self._round
        return self._opened[key]

    def _exclude_device(self, device: Device) -> None:
        """Exclude a failed device: a GPU from this run, after which GPUs are tested again; a remote worker from this session."""
        if self._remote_workers is None:
            forget_gpus()
        self._excluded.add(device.name)
        self._devices = [other for other in self._devices if other is not device]
        self._resources.gpus[:] = [gpu for gpu in self._resources.gpus if gpu is not device]
        if not self._devices and self._one_gpu and self._with_gpus:
            self._devices = [*self._resources.gpus[:1]]
        self._previous_items = {}

    def _show_plan(self, workers: list[Worker], cost: float) -> None:
        if self._has_shown_plan or len(workers) < 2 or cost == 0.0:
            return
        self._has_shown_plan = True
        shares, how = [worker.name for worker in workers], "speeds are measured while they work"
        speeds = [worker.speed for worker in workers if worker.speed is not None]
        if len(speeds) == len(workers):
            shares = [f"{name} {speed / sum(speeds) * 100:.1f} %" for name, speed in zip(shares, speeds, strict=True)]
            how = "speeds measured before"
        self._resources.progress.message(f"Planned shares: {', '.join(shares)} ({how})")


class _Advance:
    """Counter that converts cost or items to whole progress steps."""

    def __init__(self, resources: Resources, step_cost: float) -> None:
        self._progress, self._step_cost = resources.progress, step_cost
        self._lock = Lock()
        self._cost, self._steps = 0.0, 0

    def __call__(self, cost: float) -> None:
        """Advance the progress by the cost of computed items; do nothing if progress is counted in items."""
        if self._step_cost:
            with self._lock:
                self._cost += cost
                steps = int(self._cost // self._step_cost) - self._steps
                self._steps += steps
            if steps:
                self._progress.advance(steps)

    def count(self, items: int) -> None:
        """Advance the progress by a number of computed items; do nothing if progress is counted in cost."""
        if not self._step_cost:
            self._progress.advance(items)
