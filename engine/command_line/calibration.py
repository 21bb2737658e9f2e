"""Measure the devices of this machine for all kinds of work, and keep what was found."""

from __future__ import annotations

from collections.abc import Sequence

from engine import searches  # noqa: F401  makes the kinds of work known
from engine.execution.cost.calibration import calibrate_card, calibrate_processor
from engine.execution.cost.kept import device_key, keep_parameters
from engine.execution.devices import Device
from engine.execution.kinds import KINDS
from engine.execution.threads import available_threads
from engine.jobs.progress import Progress
from kernels.device import DeviceError

__all__ = ["calibrate"]


def calibrate(devices: Sequence[Device], progress: Progress) -> None:
    """Each of these devices that is usable.

    Raises
    ------
    Cancelled : the user asked to stop; what was measured by then is kept.
    """
    threads = available_threads()
    for device in devices:
        if not device.usable:
            continue
        key = device_key(device, threads)
        try:
            if device.numbers:
                keep_parameters(calibrate_card(device.numbers[0], key, device.description, list(KINDS), progress))
            else:
                keep_parameters(calibrate_processor(threads, key, list(KINDS), progress))
        except DeviceError as error:
            progress.message(f"{device.name} was not measured: {str(error).splitlines()[0]}", "warning")
