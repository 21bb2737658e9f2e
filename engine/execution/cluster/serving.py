"""Processes of a scheduler and of the workers of a machine, started by ``proteoscope workers`` or by a run (here or by ssh)."""

import asyncio
import contextlib
import os
import sys
import threading
from typing import Any

from proteoscope.engine.end_signals import heeded_signals
from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.cluster.connection import CONFIGURATION, SILENT, configure
from proteoscope.engine.execution.cluster.requests import checked_address
from proteoscope.engine.execution.cluster.worker_process import DEVICE, THREADS
from proteoscope.engine.execution.devices import resolve_device
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.files import scratch_folder

__all__ = ["devices_of_workers", "serve_scheduler", "serve_workers"]

_NO_PAGES = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # `CONFIGURATION` specifies that nothing is served there


def devices_of_workers(device: str, count: int | None) -> list[tuple[str, dict[str, str]]]:
    """Return the device of each of `count` workers on this machine. Each GPU gets one worker; the other workers use the CPU.

    Parameters
    ----------
    device : str
        Value of ``--device``.
    count : int or None
        Number of workers; by default one for each GPU, or a single one if the machine has no GPU.

    Returns
    -------
    list of (str, dict)
        Device of each worker, and additional environment variables of its process.

    Raises
    ------
    ParameterError
        If the device is not usable.
    """
    gpus = resolve_device(device).numbers
    n = count or max(1, len(gpus))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else []
    # CUDA numbers the visible GPUs from 0.
    shown = [names[gpu] if gpu < len(names) else str(gpu) for gpu in gpus[:n]]
    return [*(("cuda:0", {"CUDA_VISIBLE_DEVICES": name}) for name in shown), *(("cpu", {}) for _ in range(n - len(shown)))]


def serve_workers(
    address: str, security: Any, *, count: int | None, threads: int | None, device: str, ends_with_input: bool = False
) -> None:
    """Run workers until their scheduler ends or this process receives a signal.

    Parameters
    ----------
    address : str
        Address of the scheduler.
    security : distributed.Security or None
        Certificates; without certificates, the address must be on this machine.
    count, threads, device : int, int, str
        Number of workers, and the threads and the device that they share.
    ends_with_input : bool
        True to end also when standard input ends, that is, with the process that started this process.

    Raises
    ------
    WorkersError
        If the scheduler cannot be reached.
    ParameterError
        If the device is not usable.
    """
    devices = devices_of_workers(device, count)
    each = max(1, (threads or available_threads()) // len(devices))

    async def serve() -> None:
        from distributed import Nanny  # optional: installed with the extra "workers"

        stopped = _stop_event(ends_with_input=ends_with_input)
        with scratch_folder() as folder:
            nannies = [
                Nanny(
                    checked_address(address),
                    nthreads=1,
                    security=security,
                    memory_limit=0,
                    local_directory=str(folder),
                    silence_logs=SILENT,
                    config=CONFIGURATION,
                    env={**environment, DEVICE: name, THREADS: str(each)},
                    death_timeout=60,
                    **_NO_PAGES,
                )
                for name, environment in devices
            ]
            try:
                await asyncio.gather(*nannies)
                ended: asyncio.Future[Any] = asyncio.gather(*(nanny.finished() for nanny in nannies))
                await asyncio.wait([asyncio.ensure_future(stopped.wait()), ended], return_when=asyncio.FIRST_COMPLETED)
            except (OSError, TimeoutError, RuntimeError) as error:
                # The reason why a nanny cannot start, such as certificates of another authority, is the cause of its error.
                reason = error.__cause__ if isinstance(error, RuntimeError) else error
                if not isinstance(reason, (OSError, TimeoutError)):
                    raise
                raise WorkersError(f"the scheduler at {address} cannot be reached: {reason}") from None
            finally:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(asyncio.gather(*(nanny.close(timeout=1) for nanny in nannies)), 5)

    configure()
    asyncio.run(serve())


def serve_scheduler(address: str, security: Any, ready: Any) -> None:
    """Run a scheduler until this process receives a signal.

    Parameters
    ----------
    address : str
        Address at which the scheduler listens.
    security : distributed.Security or None
        Certificates; without certificates, the address must be on this machine.
    ready : callable
        Function that is called with the address when the scheduler listens.

    Raises
    ------
    WorkersError
        If the scheduler cannot listen at the address.
    """

    async def serve() -> None:
        from distributed import Scheduler  # optional: installed with the extra "workers"

        stopped = _stop_event(ends_with_input=False)
        protocol, _, rest = checked_address(address).partition("://")
        host, _, port = rest.rpartition(":")
        try:
            scheduler = await Scheduler(host=host.strip("[]"), port=int(port), protocol=protocol, security=security, **_NO_PAGES)
        except (OSError, ValueError) as error:
            raise WorkersError(f"no scheduler can listen at {address}: {error}") from None
        try:
            ready(scheduler.address)
            ended = asyncio.create_task(scheduler.finished())
            await asyncio.wait([asyncio.ensure_future(stopped.wait()), ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await scheduler.close()

    configure()
    asyncio.run(serve())


def _stop_event(*, ends_with_input: bool) -> asyncio.Event:
    """Return an event that is set by a signal, or by the end of standard input if `ends_with_input`."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in heeded_signals():
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.add_signal_handler(number, stopped.set)

    def read() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(stopped.set)

    if ends_with_input:
        threading.Thread(target=read, name="proteoscope-input", daemon=True).start()
    return stopped
