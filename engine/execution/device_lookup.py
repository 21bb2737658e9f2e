"""Detection of the requested device in the background (a driver takes seconds, and may hang), and opening of its GPUs."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from proteoscope.engine.execution.cost.calibration_store import stored_calibration
from proteoscope.engine.execution.devices import Device, begin_contexts, forget_gpus, gpus, resolve_device
from proteoscope.engine.execution.libraries import find_linear_algebra
from proteoscope.engine.execution.scheduler import one_line
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cuda.modules import Gpu, open_gpu
from proteoscope.kernels.cuda.rates import USUAL_RATES, GpuRates
from proteoscope.kernels.device import DeviceError

__all__ = ["DeviceLookup", "open_gpus"]

_POLL_SECONDS = 0.05


class DeviceLookup:
    """Detection of the requested device in a separate thread, which starts with the constructor.

    Parameters
    ----------
    requested : str
        Device name (see `proteoscope.engine.execution.devices.resolve_device`).
    choose : callable, optional
        Function that returns the device to use. Its argument is a function that detects and returns the requested device; if `choose` does
        not call this function, `requested` becomes "cpu".

    Attributes
    ----------
    requested : str
        Requested device; "cpu" if `choose` returned without detecting GPUs.
    """

    def __init__(self, requested: str, choose: Callable[[Callable[[], Device]], Device] | None = None) -> None:
        self.requested, self._choose, self._is_resolved = requested, choose, False
        self._device = Future[Device]()
        find_linear_algebra()  # before the thread starts, which imports modules
        # A driver that hangs must not keep the program from ending.
        threading.Thread(target=self._detect, name="proteoscope-looking", daemon=True).start()

    def _detect(self) -> None:
        try:
            device = self._resolve() if self._choose is None else self._choose(self._resolve)
        except Exception as error:  # raised by the method `device`
            self._device.set_exception(error)
            return
        if not self._is_resolved:
            self.requested = "cpu"
        self._device.set_result(device)
        begin_contexts(device)

    def _resolve(self) -> Device:
        self._is_resolved = True
        return resolve_device(self.requested)

    def raise_known_error(self) -> None:
        """Raise the error that `device` would raise, if the detection has already failed; otherwise do nothing."""
        if self._device.done():
            self._device.result()

    def device(self, progress: Progress) -> Device:
        """Wait for the device and return it.

        Raises
        ------
        ParameterError
            If the requested device is missing or not usable.
        Cancelled
            If the user cancels.
        """
        if not self._device.done():
            progress.stage("Looking for GPUs")
        while not wait([self._device], _POLL_SECONDS).done:
            progress.check()
        return self._device.result()


def _rates(number: int) -> GpuRates:
    """Return the rates of a GPU as measured on this machine; typical rates if it is not calibrated."""
    result = next((gpu for gpu in gpus() if gpu.numbers == (number,)), None)
    calibration = None if result is None else stored_calibration(result, 0)
    if calibration is None or not {"integer", "float", "lookup"} <= set(calibration.rates):
        return USUAL_RATES
    rates = calibration.rates
    return GpuRates(rates["integer"], rates["float"], rates["lookup"], calibration.memory_bandwidth, calibration.launch)


def open_gpus(device: Device, progress: Progress, *, memory_bytes: int = 0) -> list[Gpu]:
    """Open the GPUs of the selected device and return them; the list is empty for the CPU.

    A GPU that cannot be opened is skipped with a warning. `memory_bytes` limits the memory used on each GPU; 0 allows all free memory.
    """
    opened: list[Gpu] = []
    for number in device.numbers:
        try:
            opened_gpu = open_gpu(number)
            opened_gpu.limit_memory(memory_bytes)
            opened_gpu.rates = _rates(number)
            opened.append(opened_gpu)
        except DeviceError as error:
            forget_gpus()
            progress.message(f"{one_line(error)}; it is not used")
    return opened
