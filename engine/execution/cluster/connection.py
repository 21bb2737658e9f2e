"""The connection of a run with its workers: who is there, calls of one of them, and what is known when one is lost.

`distributed` carries messages, tells who comes and who goes, and starts workers again that were killed. Which partition goes where is
decided by the scheduler that all devices share (`proteoscope.engine.execution.scheduler`), so that its tasks, each of which takes 8 ms of
this process, are not needed: calls go to a worker by the connections over which workers answer each other, in 1 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError, Future, wait
from typing import Any

from proteoscope.engine.errors import WorkersError, shortened
from proteoscope.engine.execution.cluster import remote
from proteoscope.engine.execution.cluster.payload import unpack
from proteoscope.engine.execution.elsewhere import WorkerLostError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError

__all__ = ["CONFIGURATION", "SILENT", "Connection", "RemoteDevice", "configured", "nothing_to_stop"]

_LOOK_SECONDS = 0.05  # between two looks at a cancel while a worker is asked
_DIRECT_SECONDS = 4.0  # for a worker to be reached without the scheduler, which else passes calls on
_TOLD_SECONDS = 0.3
_MAXIMUM_LETTERS = 300
_MAXIMUM_GREETING = 5000  # characters of each text of a worker
_DISCONNECTED = "the connection with the scheduler of the workers is lost; start it again, and run this again"
SILENT = logging.CRITICAL + 1
"""Of the log of `distributed`."""

CONFIGURATION: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.preload": [remote.__name__],
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.admin.large-graph-warning-threshold": "1GiB",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.admin.tick.interval": "1s",
    # What every worker loads is loaded once, in the process that they are forked from. Elsewhere the system's own libraries fear a fork.
    "distributed.worker.multiprocessing-method": "forkserver" if sys.platform.startswith("linux") else "spawn",
}
"""Of `distributed`, here and in workers: no web pages, no tasks that move, no samples of what the program is at, and rarely a look whether
its loop is late."""


def configured() -> None:
    """Prepare `distributed` in this process: quiet, and as `CONFIGURATION` says."""
    import dask  # optional: installed with the extra "workers"
    import distributed  # noqa: F401 - it sets what is changed here

    dask.config.set(CONFIGURATION)
    # What goes wrong is told by errors of ours; a connection that ends beside another is nothing that a user could mend.
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(SILENT)
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).addFilter(_is_of_others)


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether a complaint is about something else than a connection of `distributed` that ended."""
    error = record.exc_info[1] if record.exc_info else None
    return not type(error).__module__.startswith("distributed")


def nothing_to_stop() -> None:
    """Of a call that nobody stops."""


class RemoteDevice:
    """A worker, as `proteoscope.kernels.device.Device`.

    Attributes
    ----------
    name : ``worker 3``, of which there is one in a run. address : where it is reached. host, process : on which it runs. description : of
        its device. is_card : whether that is a GPU. store : where columns lie that were copied there.
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
        self.is_card = device != "cpu"
        self.description = f"{self.host}, {description}"


class Connection:
    """Workers that a scheduler knows.

    Parameters
    ----------
    client : of `distributed`, connected. tell : told of workers that come, go, or cannot be used.
    """

    def __init__(self, client: Any, tell: Callable[[str], None]) -> None:
        self._client, self._tell = client, tell
        self._changed = threading.Condition()
        self._present: set[str] = set()
        self._devices: dict[str, RemoteDevice] = {}
        self._direct: dict[str, bool] = {}
        self._told: set[Future[Any]] = set()
        self._numbers = itertools.count(1)
        self._refusals: list[str] = []
        self._is_closed = False
        client.subscribe_topic("all", self._hear)
        for address in client.scheduler_info(n_workers=-1)["workers"]:
            self._arrive(address)

    def devices(self) -> list[RemoteDevice]:
        """The workers that can be used now."""
        with self._changed:
            return list(self._devices.values())

    def wait(
        self, n: int, seconds: float, progress: Progress, check: Callable[[], None] = nothing_to_stop, *, but: Collection[str] = ()
    ) -> bool:
        """Wait for so many workers, and for all that the scheduler knows by then, so long at the most; whether there are some.

        `but` : names of workers that do not count.

        Raises
        ------
        Cancelled : the user asked to stop. WorkersError : those that came cannot be used, or nobody can come. And what `check` raises.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            progress.check()
            check()
            self._look_at_client()
            with self._changed:
                if self._others(but) and len(self._devices) + len(self._refusals) >= max(n, len(self._present)):
                    return True
                if self._refusals and not self._devices:
                    raise WorkersError(self._refusals[0])
                self._changed.wait(_LOOK_SECONDS)
        if self._client.status != "running":
            raise WorkersError(_DISCONNECTED)
        return bool(self._others(but))

    def _others(self, but: Collection[str]) -> list[RemoteDevice]:
        return [device for device in self.devices() if device.name not in but]

    def is_there(self, device: RemoteDevice) -> bool:
        """Whether nobody has heard that it is gone."""
        return device.address in self._present

    def call(
        self, device: RemoteDevice, function: Callable[..., bytes], *arguments: Any, check: Callable[[], None] = nothing_to_stop
    ) -> bytes:
        """Call a function of `proteoscope.engine.execution.cluster.remote` in a worker.

        Raises
        ------
        DeviceError : the worker was gone already. WorkerLostError : it went meanwhile. WorkersError : the function failed, or the
        connection did. And what `check` raises.
        """
        if not self.is_there(device) and not self._is_closed:
            raise DeviceError(f"{device.name} ({device.description}) is gone")
        future = self._begin(device, function, arguments)
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        try:
            while not done.wait(_LOOK_SECONDS):
                check()
                self._look_at(device)
            return self._result(device, future, function)
        finally:
            future.cancel()

    def tell(self, device: RemoteDevice, function: Callable[..., bytes], *arguments: Any) -> None:
        """Call a function and do not wait for it."""
        if self.is_there(device) and not self._is_closed:
            with contextlib.suppress(WorkersError):  # who cannot be told is gone, or we are
                future = self._begin(device, function, arguments)
                self._told.add(future)
                future.add_done_callback(self._told.discard)

    def close(self) -> None:
        """No more workers are heard of. What they were told last is on its way: with the client it would go."""
        wait([*self._told], _TOLD_SECONDS)
        with self._changed:
            self._is_closed = True
            self._present.clear()
            self._devices.clear()
            self._changed.notify_all()

    def _begin(self, device: RemoteDevice, function: Callable[..., bytes], arguments: tuple[Any, ...]) -> Future[Any]:
        message = {"name": function.__name__, "arguments": list(arguments)}
        answer = self._answer(device.address, message)
        try:
            return asyncio.run_coroutine_threadsafe(answer, self._client.loop.asyncio_loop)
        except RuntimeError:  # the loop is closed
            answer.close()
            raise WorkersError(_DISCONNECTED) from None

    async def _answer(self, address: str, message: dict[str, Any]) -> Any:
        """Of a worker, on the loop of the client; by the scheduler where it was not reached itself when it was asked for the first time."""
        if address not in self._direct:
            self._direct[address] = await self._is_reached(address)
        if self._direct[address]:
            return await self._directly(address, message)
        return await self._client.scheduler.proxy(worker=address, msg={"op": remote.SERVICE, **message})

    async def _is_reached(self, address: str) -> bool:
        try:
            await asyncio.wait_for(self._client.rpc(address).echo(data=0), _DIRECT_SECONDS)
        except OSError:  # which a lack of time is, too
            return False
        return True

    async def _directly(self, address: str, message: dict[str, Any]) -> Any:
        return await getattr(self._client.rpc(address), remote.SERVICE)(**message)

    def _look_at_client(self) -> None:
        if self._is_closed or self._client.status not in ("running", "connecting"):
            raise WorkersError(_DISCONNECTED)

    def _look_at(self, device: RemoteDevice) -> None:
        self._look_at_client()
        if not self.is_there(device):
            raise WorkerLostError(f"{device.name} ({device.description}) is lost")

    def _result(self, device: RemoteDevice, future: Future[Any], function: Callable[..., bytes]) -> bytes:
        asked = f"{device.name} ({device.description}) could not {function.__name__.replace('_', ' ')}"
        try:
            found = future.result()
        except Exception as error:
            # Who is gone is heard of a moment later.
            time.sleep(_LOOK_SECONDS)
            self._look_at(device)
            text = " ".join(str(error).split())[:_MAXIMUM_LETTERS]
            if isinstance(error, OSError | CancelledError):
                raise WorkerLostError(f"{device.name} ({device.description}) does not answer: {text}") from None
            raise WorkersError(f"{asked}: {type(error).__name__}: {text}") from None
        if not isinstance(found, dict) or not isinstance(found.get("failure"), str):
            raise WorkersError(f"{asked}: it is no worker of this Proteoscope; install the same on both")
        if found["failure"]:
            raise WorkersError(f"{asked}: {' '.join(found['failure'].split())[:_MAXIMUM_LETTERS]}")
        answer = found.get("answer")
        if not isinstance(answer, bytes):
            raise WorkersError(f"{asked}: it is no worker of this Proteoscope; install the same on both")
        return answer

    def _hear(self, event: tuple[float, Any]) -> None:
        """An event of the scheduler, on the thread of the client."""
        _, content = event
        match content:
            case {"action": "add-worker", "worker": str(address)}:
                self._arrive(address)
            case {"action": "remove-worker", "worker": str(address)}:
                self._leave(address)

    def _arrive(self, address: str) -> None:
        with self._changed:
            if address in self._present or self._is_closed:
                return
            self._present.add(address)
        threading.Thread(target=self._greet, args=(address,), name="proteoscope-greeting", daemon=True).start()

    def _greet(self, address: str) -> None:
        """Compare a worker's program with this one, before it gets work."""
        unknown = {"host": "a worker", "process": 0, "store": "", "device": "cpu", "description": address}
        try:
            greeting = unpack(self.call(RemoteDevice("it", address, unknown), remote.greet))
            RemoteDevice("it", address, greeting)
            difference, reason = (shortened(text) for text in (remote.described(greeting["make"], remote.make()), str(greeting["reason"])))
        except (WorkersError, DeviceError) as error:
            if not self._is_closed and address in self._present:
                self._refuse(f"The worker at {address} cannot be used: {error}")
            return
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            self._refuse(f"The worker at {address} cannot be used: it does not answer as a worker of Proteoscope does")
            return
        if difference:
            self._refuse(f"The worker on {greeting['host']} is another Proteoscope: {difference}; install the same on both")
            return
        if reason:
            self._refuse(f"The worker on {greeting['host']} cannot compute: {reason}")
            return
        with self._changed:
            if address not in self._present or self._is_closed:
                return
            device = self._devices[address] = RemoteDevice(f"worker {next(self._numbers)}", address, greeting)
            self._changed.notify_all()
        self._tell(f"{device.name} is there: {device.description}")

    def _refuse(self, reason: str) -> None:
        with self._changed:
            self._refusals.append(reason)
            self._changed.notify_all()
        self._tell(reason)

    def _leave(self, address: str) -> None:
        with self._changed:
            self._present.discard(address)
            self._direct.pop(address, None)
            self._devices.pop(address, None)
            self._changed.notify_all()
