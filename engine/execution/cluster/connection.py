"""Connection of a run to its workers: usable workers, calls of functions in workers, and loss of workers.

`distributed` transports the calls, reports workers that join and leave, and restarts workers that were killed. `Scheduler` in
`proteoscope.engine.execution.scheduler` decides which worker computes which partition.
"""

import asyncio
import itertools
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import Any

from proteoscope.engine.errors import WorkersError, shortened
from proteoscope.engine.execution.cluster.certificates import needs_cryptography
from proteoscope.engine.execution.cluster.payload import unpack
from proteoscope.engine.execution.cluster.worker_process import RemoteWorkload, greet, program_version, version_difference
from proteoscope.engine.execution.workload import WorkerLostError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError

__all__ = ["CONFIGURATION", "SILENT", "Connection", "RemoteDevice", "configure"]

_CHECK_SECONDS = 0.05  # seconds between two checks for cancellation during a call
_DIRECT_SECONDS = 4.0  # seconds to reach a worker directly; otherwise the scheduler forwards calls
_LOSS_SECONDS = 0.5  # seconds between a broken connection and the scheduler's report that the worker is lost
_MAXIMUM_CHARACTERS = 300
_MAXIMUM_GREETING = 5000  # maximum characters of each text from a worker
_DISCONNECTED = "the connection to the scheduler of the workers is lost; start the scheduler again, and repeat this command"
_INCOMPATIBLE = "expected a worker of this version of Proteoscope; install the same version on both machines"
SILENT = logging.CRITICAL + 1
"""Level of logging above the levels of all messages of `distributed`."""

CONFIGURATION: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.admin.large-graph-warning-threshold": "1GiB",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.admin.tick.interval": "1s",
    # The fork server loads the program once for all workers. Only Linux's own libraries are safe to fork.
    "distributed.worker.multiprocessing-method": "forkserver" if sys.platform.startswith("linux") else "spawn",
}
"""Settings of `distributed` in the run and in workers: no web pages, no moving of tasks, no profiling."""


def configure() -> None:
    """Apply `CONFIGURATION` in this process, and suppress the log messages of `distributed`.

    Raises
    ------
    WorkersError
        If the libraries for workers are not installed.
    """
    needs_cryptography()
    import dask  # optional: installed with the extra "workers"
    import distributed  # noqa: F401 - it sets what is changed here

    dask.config.set(CONFIGURATION)
    # Errors that matter to the user are raised as exceptions. Log messages that a further connection ended are not needed.
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(SILENT)
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_is_unrelated)


def _is_unrelated(record: logging.LogRecord) -> bool:
    """Return True for log records to show; False for records about exceptions of `distributed`, such as the end of a connection."""
    error = record.exc_info[1] if record.exc_info else None
    return not type(error).__module__.startswith("distributed")


class RemoteDevice:
    """Worker, described as a device; implements `proteoscope.kernels.device.Device`.

    Attributes
    ----------
    name : str
        Name such as ``worker 3``, unique in a run.
    address : str
        Address of the worker in `distributed`.
    host, process : str, int
        Name of the machine, and number of the process.
    description : str
        Description of machine and device.
    is_gpu : bool
        True if the device of the worker is a GPU.
    store : str
        Folder on the worker's machine for copied files.
    """

    kernels = ""
    is_processor = False

    def __init__(self, name: str, address: str, greeting: dict[str, Any]) -> None:
        self.name, self.address = name, address
        texts = [greeting[name] for name in ("host", "store", "device", "description")]
        if not all(isinstance(text, str) and len(text) < _MAXIMUM_GREETING for text in texts):
            raise ValueError("texts are expected")
        self.host, self.store, device, description = texts
        self.process = int(greeting["process"])
        self.is_gpu = device != "cpu"
        self.description = f"{self.host}, {description}"


class Connection:
    """Connection to the workers of a scheduler.

    Parameters
    ----------
    client : distributed.Client
        Connected client, created with `direct_to_workers`.
    report : callable
        Function that receives a sentence when a worker joins or cannot be used.
    """

    def __init__(self, client: Any, report: Callable[[str], None]) -> None:
        self._client, self._report = client, report
        self._changed = threading.Condition()
        self._present: set[str] = set()
        self._devices: dict[str, RemoteDevice] = {}
        self._numbers = itertools.count(1)
        self._refusals: list[str] = []
        self._is_closed = False
        client.subscribe_topic("all", self._handle_event)
        for address in client.scheduler_info(n_workers=-1)["workers"]:
            self._add(address)

    def devices(self) -> list[RemoteDevice]:
        """Return the workers that are usable now."""
        with self._changed:
            return list(self._devices.values())

    def wait(
        self, n: int, seconds: float, progress: Progress, checks: Sequence[Callable[[], None]] = (), *, exclude: Collection[str] = ()
    ) -> bool:
        """Wait until a worker is usable, and this program has examined at least `n` workers and all workers that have joined the scheduler.

        Parameters
        ----------
        n : int
            Minimum number of examined workers, usable or not.
        seconds : float
            Maximum waiting time, s.
        progress : Progress
            Progress, which is checked for cancellation.
        checks : sequence of callable
            Functions that are called repeatedly; an exception that they raise ends the wait.
        exclude : collection of str
            Names of workers that do not count as usable.

        Returns
        -------
        bool
            True if at least one worker is usable.

        Raises
        ------
        Cancelled
            If the user cancelled.
        WorkersError
            If the workers that joined cannot be used, or no worker can join any more.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for check in (progress.check, *checks):
                check()
            self._require_client()
            with self._changed:
                others = {device.name for device in self._devices.values()} - set(exclude)
                if others and len(self._devices) + len(self._refusals) >= max(n, len(self._present)):
                    return True
                if self._refusals and not self._devices:
                    raise WorkersError(self._refusals[0])
                self._changed.wait(_CHECK_SECONDS)
        if self._client.status != "running":
            raise WorkersError(_DISCONNECTED)
        return any(device.name not in exclude for device in self.devices())

    def actor(self, device: RemoteDevice, check: Callable[[], None]) -> Any:
        """Start a `RemoteWorkload` in a worker; it exists as long as the returned object is referenced.

        Raises
        ------
        WorkerLostError
            If the worker was lost.
        WorkersError
            If the connection failed. Exceptions of `check` are passed on.
        """
        options = {"actor": True, "workers": [device.address], "allow_other_workers": False, "pure": False}
        with self._client.as_current():  # client to which the actor belongs
            return self._result(device, lambda: self._client.submit(RemoteWorkload, **options), check)

    def call(self, device: RemoteDevice, actor: Any, name: str, *arguments: Any, check: Callable[[], None]) -> Any:
        """Call a function of a `RemoteWorkload` and return its result.

        The functions are those in `proteoscope.engine.execution.cluster.worker_process.FUNCTIONS`.

        Raises
        ------
        WorkerLostError
            If the worker was lost.
        DeviceError
            If the device of the worker failed.
        WorkersError
            If the function or the connection failed. Exceptions of `check` are passed on.
        """
        answer = unpack(self._result(device, lambda: actor.call(name, *arguments), check))
        if "answer" in answer:
            return answer["answer"]
        text = shortened(answer["error"], _MAXIMUM_CHARACTERS)
        if answer["is_of_device"]:
            raise DeviceError(f"{device.name} ({device.description}): {text}")
        raise WorkersError(f"{device.name} ({device.description}) could not {name}: {text}")

    def close(self) -> None:
        """Close the connection to the workers."""
        with self._changed:
            self._is_closed = True
            self._present.clear()
            self._devices.clear()
            self._changed.notify_all()

    def _result(self, device: RemoteDevice, begin: Callable[[], Awaitable[Any]], check: Callable[[], None]) -> Any:
        """Wait for a result of `distributed` and return it; raise an error if the worker is lost."""
        self._require(device)
        pending = self._start(_result_of(begin))
        try:
            while not wait([pending], _CHECK_SECONDS).done:
                check()
                self._require(device)
        finally:
            pending.cancel()
        try:
            return pending.result()
        except Exception as error:  # any exception of the worker
            with self._changed:
                self._changed.wait_for(lambda: device.address not in self._present, _LOSS_SECONDS)
            self._require(device)
            text = f"{device.name} ({device.description}) does not answer: {type(error).__name__}: {shortened(str(error))}"
            raise WorkerLostError(text) from None

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start a coroutine in the event loop of the client, and return its future."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise WorkersError(_DISCONNECTED) from None

    def _require_client(self) -> None:
        if self._is_closed or self._client.status not in ("running", "connecting"):
            raise WorkersError(_DISCONNECTED)

    def _require(self, device: RemoteDevice) -> None:
        self._require_client()
        if device.address not in self._present:
            raise WorkerLostError(f"{device.name} ({device.description}) is lost")

    def _handle_event(self, event: tuple[float, Any]) -> None:
        """Handle an event of the scheduler; called on the thread of the client."""
        match event[1]:
            case {"action": "add-worker", "worker": str(address)}:
                self._add(address)
            case {"action": "remove-worker", "worker": str(address)}:
                with self._changed:
                    self._present.discard(address)
                    self._devices.pop(address, None)
                    self._changed.notify_all()

    def _add(self, address: str) -> None:
        with self._changed:
            if address in self._present or self._is_closed:
                return
            self._present.add(address)
        threading.Thread(target=self._admit, args=(address,), name="proteoscope-greeting", daemon=True).start()

    def _admit(self, address: str) -> None:
        """Name a worker that joined, or reject it."""
        device, refusal = None, ""
        try:
            device = self._greet(address)
            self._choose_route(address)
        except WorkersError as error:
            refusal = str(error)
        with self._changed:
            if address not in self._present or self._is_closed:
                return
            if device is None:
                self._refusals.append(refusal)
            else:
                device.name = f"worker {next(self._numbers)}"
                self._devices[address] = device
            self._changed.notify_all()
        self._report(refusal if device is None else f"{device.name} joined: {device.description}")

    def _greet(self, address: str) -> RemoteDevice:
        """Return a worker as a device, after checking that it runs the same version of the program as this process.

        Raises
        ------
        WorkersError
            If the worker cannot be used.
        """
        try:
            # A worker without the program survives `run`; an actor that it cannot import would end the worker.
            greeting = unpack(self._client.run(greet, workers=[address])[address])
            device = RemoteDevice("it", address, greeting)
            difference, reason = version_difference(greeting["make"], program_version()), str(greeting["reason"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            text = "it does not answer like a worker of Proteoscope"
            raise WorkersError(f"The worker at {address} cannot be used: {text}") from None
        except Exception as error:  # any exception of the worker
            raise WorkersError(f"The worker at {address} cannot be used: {_INCOMPATIBLE} ({shortened(str(error))})") from None
        if difference:
            raise WorkersError(f"The worker on {device.host} has another Proteoscope: {shortened(difference)}; install the same on both")
        if reason:
            raise WorkersError(f"The worker on {device.host} cannot compute: {shortened(reason)}")
        return device

    def _choose_route(self, address: str) -> None:
        """Make the scheduler forward the calls to all workers if the worker at `address` cannot be reached directly."""
        try:
            self._start(asyncio.wait_for(self._client.rpc(address).echo(data=0), _DIRECT_SECONDS)).result()
        except OSError:  # also if there is no answer in time
            self._client.direct_to_workers = False


async def _result_of(begin: Callable[[], Awaitable[Any]]) -> Any:
    return await begin()
