"""Functions shared by benchmarks: printing figures, finding the data, and reporting a missing GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from proteoscope.engine.execution.devices import Device, gpus

__all__ = ["emit", "existing", "usable_gpus"]


def emit(size: dict[str, Any], **values: Any) -> None:
    """Print a figure as a JSON line at once."""
    print(json.dumps(size | values), flush=True)


def existing(path: Path) -> Path:
    """The file, or its compressed form."""
    return path if path.exists() else path.with_name(path.name + ".gz")


def usable_gpus(*, needed: bool) -> list[Device]:
    """The GPUs of this machine; where there is none, says why, and ends the program if they are `needed`."""
    every = gpus()
    usable = [gpu for gpu in every if gpu.usable]
    if not usable:
        reason = f"no usable GPU: {every[0].reason}"
        if needed:
            sys.exit(reason)
        print(f"{reason}; the processor's figures alone", file=sys.stderr)
    return usable
