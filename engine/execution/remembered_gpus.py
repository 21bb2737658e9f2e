"""GPUs that were found usable within the last hour: testing them takes a second whenever the program starts.

The result of the test is used again as long as nothing changed on which it depends: the start of the machine, the driver, its devices,
CuPy, and the CUDA variables of the environment. Only a test without errors is stored.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proteoscope.engine.execution.device_store import Facts
from proteoscope.engine.version import VERSION

__all__ = ["forget_gpus", "remember_gpus", "remembered_gpus"]

_SECONDS = 3600.0
_DRIVER = Path("/proc/driver/nvidia/version"), Path("/sys/module/nvidia/version")  # not all are there in a container
_START = Path("/proc/sys/kernel/random/boot_id")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Gpu(_Strict):
    """A GPU that runs a test kernel."""

    number: int
    name: str
    memory_bytes: int
    compute_capability: str
    usable: Literal[True]
    reason: Literal[""]


class _Probe(_Strict):
    """The output of kernels/cuda/probe.py, without errors."""

    driver: str
    cuda: str
    reason: Literal[""]
    step: Literal["done"]
    devices: list[_Gpu] = Field(min_length=1)


_PROBES: Facts[_Probe] = Facts("gpus", _Probe, 1)


def remembered_gpus() -> dict[str, Any] | None:
    """Return the output of the probe as `remember_gpus` stored it, or None if it may no longer hold."""
    state = _state()
    result = None if state is None else _PROBES.get(state, maximum_age=_SECONDS)
    return None if result is None or not _are_numbered(result) else result.model_dump()


def remember_gpus(probed: dict[str, Any]) -> None:
    """Store the output of the probe, if it has no errors."""
    state = _state()
    with suppress(ValidationError):
        probe = _Probe.model_validate(probed)
        if state is not None and _are_numbered(probe):
            _PROBES.store({state: probe})


def forget_gpus() -> None:
    """Let the next program test the GPUs again."""
    _PROBES.clear()


def _are_numbered(probe: _Probe) -> bool:
    return [gpu.number for gpu in probe.devices] == list(range(len(probe.devices)))


def _state() -> str | None:
    """Return a digest of everything that the result depends on, or None if the system does not show it."""
    try:
        cupy = importlib.util.find_spec("cupy")
        if cupy is None or cupy.origin is None:
            return None
        state = {
            "version": VERSION,
            "python": sys.executable,
            "driver": next(path.read_text(encoding="utf-8") for path in _DRIVER if path.exists()),
            "start": _START.read_text(encoding="utf-8"),
            "devices": sorted(path.name for path in Path("/dev").glob("nvidia*")),
            "cupy": [cupy.origin, Path(cupy.origin).stat().st_mtime],
            "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(("CUDA_", "NVIDIA_", "CUPY_"))},
        }
    except (OSError, ValueError, ImportError, StopIteration):
        return None
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
