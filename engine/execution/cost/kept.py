"""What was measured of devices, kept in the user's cache: by UUID, driver and clock of a card, by model and threads of the processor.

A file that is damaged, of another version, or of another device is as good as none.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from proteoscope import kernels
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.engine.execution.devices import Device, processor
from proteoscope.engine.project.cache import cache_folder, remember

__all__ = ["device_key", "keep_parameters", "kept_parameters", "known_parameters", "measured_when"]

_FORMAT = 2
"""Of the file, and of what the numbers in it mean: a kind of work whose operations are counted otherwise is another."""
_MAXIMUM_BYTES = 1 << 20


def device_key(device: Device, threads: int) -> str:
    """What a device is told by; of a choice of several the first of them."""
    if not device.numbers:
        return f"{_FORMAT} {processor().description}, {threads} used"

    return f"{_FORMAT} {kernels.cuda.driver.identity(device.numbers[0])}, {device.description}"


def kept_parameters(key: str) -> DeviceParameters | None:
    """Those of a device; None where they were not measured, or cannot be believed."""
    path = _file(key)
    try:
        if path.stat().st_size > _MAXIMUM_BYTES:
            return None
        found = DeviceParameters.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, ValueError, RecursionError):
        return None
    return found if found.key == key else None


def known_parameters(device: Device, threads: int) -> DeviceParameters | None:
    """Those of the processor or of a card, as it was measured on this machine."""
    return kept_parameters(device_key(device, threads))


def measured_when(parameters: DeviceParameters) -> datetime | None:
    """When a device was measured whose parameters are kept; None where they are not any more."""
    try:
        return datetime.fromtimestamp(_file(parameters.key).stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None


def keep_parameters(parameters: DeviceParameters) -> None:
    """Keep them for later. A disk that refuses is no reason to complain."""
    remember(_file(parameters.key), parameters.model_dump_json(indent=1).encode())


def _file(key: str) -> Path:
    return cache_folder() / "devices" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
