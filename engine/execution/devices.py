"""What can compute: the processor, and the GPUs that are really usable."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from engine.errors import ParameterError
from engine.execution.threads import available_threads

__all__ = ["Device", "chosen_device", "devices", "gpus", "processor"]

_PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class Device:
    """One thing that can compute. `name` is what ``--device`` takes, `reason` says why it is not usable.

    Of a GPU: `driver`, the NVIDIA driver's version, and `compute_capability`, as 9.0. `numbers` are the CUDA devices that a choice stands
    for: none for the processor. `with_processor`: the processor computes beside them.
    """

    name: str
    description: str
    memory_bytes: int
    usable: bool
    reason: str = ""
    driver: str = ""
    compute_capability: str = ""
    numbers: tuple[int, ...] = ()
    with_processor: bool = False


def devices() -> list[Device]:
    """All devices of this machine, the processor first.

    Where a driver and CuPy are installed, the first call runs a kernel on each GPU, which takes a second or two.
    """
    return [processor(), *gpus()]


@lru_cache
def processor() -> Device:
    """The processor, at no cost."""
    return Device("cpu", f"{_processor_name()}, {available_threads()} threads", _memory_bytes(), True)


@lru_cache
def gpus() -> tuple[Device, ...]:
    """The GPUs, usable or not; where none can even be named, one row that says why.

    Each was tried in a process of its own, so that a driver that crashes or hangs does not take the program along.
    """
    found = _probed()
    listed = tuple(
        Device(
            f"cuda:{gpu['number']}",
            f"{gpu['name']}, compute capability {gpu['compute_capability']}, driver {found['driver']} (CUDA {found['cuda']})",
            gpu["memory_bytes"],
            gpu["usable"],
            gpu["reason"],
            found["driver"],
            gpu["compute_capability"],
            (gpu["number"],),
        )
        for gpu in found["devices"]
    )
    return listed or (Device("cuda", "no GPU", 0, False, found["reason"] or "the NVIDIA driver shows no GPU", found["driver"]),)


def chosen_device(wish: str) -> Device:
    """The device for a wish of the user: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``all``.

    ``auto`` takes all usable GPUs, or the processor where there is none; ``all`` takes all usable GPUs and the processor together, and
    ``cuda`` the first usable GPU.

    Raises
    ------
    ParameterError : the wish names a device that is not there or not usable, and why.
    """
    if wish == "cpu":
        return processor()
    number = wish.removeprefix("cuda:")
    if wish not in ("auto", "cuda", "all") and (number == wish or not (number.isascii() and number.isdigit())):
        raise ParameterError(f"device = '{wish}': expected auto, cpu, cuda, cuda:N or all")
    usable = [gpu for gpu in gpus() if gpu.usable]
    if wish == "auto" and not usable:
        return processor()
    if number != wish:
        named = [gpu for gpu in gpus() if gpu.numbers == (int(number),)]
        if named and named[0].usable:
            return named[0]
        if named:
            raise ParameterError(f"device = '{wish}': {named[0].description} is not usable: {named[0].reason}")
    if not usable:
        reasons = "; ".join(dict.fromkeys(gpu.reason for gpu in gpus()))
        raise ParameterError(f"device = '{wish}': no GPU is usable: {reasons}; auto or cpu takes the processor")
    if number != wish:
        raise ParameterError(f"device = '{wish}': there is no such GPU; there are {', '.join(gpu.name for gpu in gpus())}")
    if wish == "cuda" or (wish == "auto" and len(usable) == 1):
        return usable[0]
    together = [*usable, processor()] if wish == "all" else usable
    return Device(
        "+".join(one.name for one in together),
        "; ".join(one.description for one in together),
        sum(gpu.memory_bytes for gpu in usable),
        True,
        driver=usable[0].driver,
        numbers=tuple(number for gpu in usable for number in gpu.numbers),
        with_processor=wish == "all",
    )


def _probed() -> dict[str, Any]:
    """What kernels/cuda/probe.py found."""
    nothing: dict[str, Any] = {"driver": "", "cuda": "", "devices": []}
    try:
        with as_file(files("kernels.cuda") / "probe.py") as program:
            done = subprocess.run(
                [sys.executable, str(program)],
                capture_output=True,
                text=True,
                timeout=_PROBE_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
    except subprocess.TimeoutExpired:
        return nothing | {"reason": f"the NVIDIA driver did not answer within {_PROBE_SECONDS:.0f} seconds"}
    except OSError as error:
        return nothing | {"reason": f"the GPUs could not be looked at: {error}"}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"code {done.returncode}"
        said = done.stderr.strip().splitlines()[-1:] or [""]
        return nothing | {"reason": f"looking at the GPUs ended with {ended} {said[0]}".strip()}


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "processor"


def _memory_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemTotal"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
