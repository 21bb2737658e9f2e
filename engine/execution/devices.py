"""What can compute: the processor, and the GPUs that are really usable."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ParameterError
from engine.execution.threads import available_threads

__all__ = ["Device", "chosen_device", "devices"]


@dataclass(frozen=True)
class Device:
    """One thing that can compute. `name` is what ``--device`` takes, `reason` says why it is not usable."""

    name: str
    description: str
    memory_bytes: int
    usable: bool
    reason: str = ""


def devices() -> list[Device]:
    """All devices of this machine, the processor first. Searches run on the processor in this version."""
    return [Device("cpu", f"{_processor_name()}, {available_threads()} threads", _memory_bytes(), True)]


def chosen_device(wish: str) -> Device:
    """The device for a wish of the user: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``all``.

    Raises
    ------
    ParameterError : the wish names a device that is not there.
    """
    processor = devices()[0]
    if wish in ("auto", "cpu", "all"):
        return processor
    if wish == "cuda" or (wish.startswith("cuda:") and wish[5:].isdigit()):
        raise ParameterError(f"device = '{wish}': this version searches on the processor only; use --device auto or cpu")
    raise ParameterError(f"device = '{wish}': expected auto, cpu, cuda, cuda:N or all")


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
