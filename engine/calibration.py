"""Calibration: measurement of this machine's devices for all types of workloads."""

from collections.abc import Sequence

from proteoscope.engine import searches
from proteoscope.engine.execution.cost.calibration import calibrate_gpu, calibrate_processor
from proteoscope.engine.execution.cost.calibration_store import store_calibration
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError

__all__ = ["calibrate"]


def calibrate(devices: Sequence[Device], progress: Progress) -> int:
    """Measure each usable device and store its calibration.

    Parameters
    ----------
    devices : sequence of Device
        Devices to measure; unusable ones are skipped.
    progress : Progress
        Progress that shows what is being measured, and a warning for each device that could not be measured.

    Returns
    -------
    int
        Number of devices that were measured.

    Raises
    ------
    Cancelled
        If the user cancels; calibrations of devices that were already measured remain stored.
    """
    threads, n = available_threads(), 0
    for device in [device for device in devices if device.usable]:
        try:
            if device.numbers:
                measured = calibrate_gpu(device.numbers[0], device.description, list(KINDS), progress)
            else:
                # Measure in separate processes, which can be ended immediately when the user cancels.
                compile_kernels([search.kind for search in searches.SEARCHES if search.workload_types] + ["fragment-index"], progress)
                measured = calibrate_processor(threads, list(KINDS), progress)
            store_calibration(device, threads, measured)
            n += 1
        except DeviceError as error:
            progress.message(f"{device.name} was not measured: {str(error).splitlines()[0]}", "warning")
    return n
