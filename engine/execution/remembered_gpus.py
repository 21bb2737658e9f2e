"""GPUs that were found usable a short while ago, kept in the user's cache: trying them takes a second, each time a program starts.

They are believed for an hour, as long as nothing changed on which they depend: the start of the machine, the driver, its devices, CuPy,
what the environment says to CUDA. Only a look that found nothing wrong is kept.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from proteoscope.engine.project.cache import cache_folder, remember
from proteoscope.engine.version import VERSION

__all__ = ["forget_gpus", "remember_gpus", "remembered_gpus"]

_SECONDS = 3600.0
_DRIVER = Path("/proc/driver/nvidia/version"), Path("/sys/module/nvidia/version")  # not all are there in a container
_START = Path("/proc/sys/kernel/random/boot_id")
_KINDS = {"number": int, "name": str, "memory_bytes": int, "compute_capability": str, "usable": bool, "reason": str}


def remembered_gpus() -> dict[str, Any] | None:
    """What the probe found, as it was given to `remember_gpus`; None where that is not known or may not hold any more."""
    state = _state()
    if state is None:
        return None
    try:
        path = _file()
        if not 0.0 <= time.time() - path.stat().st_mtime <= _SECONDS:
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        found: dict[str, Any] = kept["found"]
        return found if kept["state"] == state and _is_sound(found) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def remember_gpus(found: dict[str, Any]) -> None:
    """Keep what the probe found, if all is well. A disk that refuses is no reason to complain."""
    state = _state()
    if state is None or not _is_sound(found):
        return
    remember(_file(), json.dumps({"state": state, "found": found}, indent=1).encode())


def forget_gpus() -> None:
    """The next program tries them again."""
    with contextlib.suppress(OSError):
        _file().unlink()


def _is_sound(found: dict[str, Any]) -> bool:
    """Whether every GPU was found usable, and is described in full."""
    devices = found["devices"]
    return (
        bool(devices)
        and not found["reason"]
        and all(isinstance(found[name], str) for name in ("driver", "cuda"))
        and all(set(device) == set(_KINDS) and all(type(device[name]) is kind for name, kind in _KINDS.items()) for device in devices)
        and [device["number"] for device in devices] == list(range(len(devices)))
        and all(device["usable"] and not device["reason"] for device in devices)
    )


def _state() -> dict[str, Any] | None:
    """All on which the answer depends; None where the system does not tell."""
    try:
        cupy = importlib.util.find_spec("cupy")
        if cupy is None or cupy.origin is None:
            return None
        return {
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


def _file() -> Path:
    return cache_folder() / "gpus.json"
