"""A scheduler, or workers of a machine, as processes: what ``proteoscope workers`` runs, and what a run starts here and by ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from typing import Any

from proteoscope.engine.end_signals import heeded_signals
from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.cluster.connection import CONFIGURATION, SILENT, configure
from proteoscope.engine.execution.cluster.option import checked_address
from proteoscope.engine.execution.cluster.worker_process import DEVICE, THREADS
from proteoscope.engine.execution.devices import chosen_device
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.files import scratch_folder

__all__ = ["devices_of_workers", "serve_scheduler", "serve_workers"]

_NO_PAGES = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}  # nothing is served there, `CONFIGURATION` says


def devices_of_workers(wish: str, count: int | None) -> list[tuple[str, dict[str, str]]]:
    """What each worker of this machine computes with, and the environment of its process: one for each GPU, the others for the processor.

    Parameters
    ----------
    wish : as ``--device`` takes it. count : of workers; one for each GPU, or one, when None.

    Raises
    ------
    ParameterError : the wish names a device that is not usable.
    """
    chosen = chosen_device(wish)
    cards = list(chosen.numbers)
    n = count or max(1, len(cards))
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if os.environ.get("CUDA_VISIBLE_DEVICES") else []
    made = []
    for worker in range(n):
        if worker < len(cards):
            # CUDA numbers those that are visible from 0 on.
            number = cards[worker]
            made.append(("cuda:0", {"CUDA_VISIBLE_DEVICES": named[number] if number < len(named) else str(number)}))
        else:
            made.append(("cpu", {}))
    return made


def serve_workers(
    address: str, security: Any, *, count: int | None, threads: int | None, device: str, ends_with_input: bool = False
) -> None:
    """Run workers of a scheduler until it goes, or this process is told to end.

    Parameters
    ----------
    ends_with_input : end when standard input does, as it does when who started this is gone.

    Raises
    ------
    WorkersError : the scheduler cannot be reached. ParameterError : the device is not usable.
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
                    resources={"GPU": 1} if name != "cpu" else {},
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
                ended = [asyncio.ensure_future(nanny.finished()) for nanny in nannies]
                await _first([asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(asyncio.wait(ended))])
            except (OSError, TimeoutError, RuntimeError) as error:
                # What keeps a nanny from starting, as certificates of another authority, is the cause of its error.
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
    """Run a scheduler until this process is told to end; `ready` is called with its address.

    Raises
    ------
    WorkersError : it cannot listen at that address.
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
            await _first([asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(scheduler.finished())])
        finally:
            await scheduler.close()

    configure()
    asyncio.run(serve())


async def _first(waited: list[asyncio.Future[Any]]) -> None:
    """Wait until one has come, and for the others no more."""
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    for one in waited:
        one.cancel()


def _stop_event(*, ends_with_input: bool) -> asyncio.Event:
    """Set when this process is told to end."""
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
