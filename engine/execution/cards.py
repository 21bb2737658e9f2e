"""Opening of the GPUs of the selected device."""

from __future__ import annotations

from proteoscope.engine.execution.cost.calibration_store import stored_calibration
from proteoscope.engine.execution.devices import Device, forget_gpus, gpus
from proteoscope.engine.execution.scheduler import one_line
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cuda.modules import Card, card
from proteoscope.kernels.cuda.rates import USUAL_RATES, CardRates
from proteoscope.kernels.device import DeviceError

__all__ = ["open_cards"]


def _rates(number: int) -> CardRates:
    """Return the rates measured on this machine, else the usual ones."""
    result = next((gpu for gpu in gpus() if gpu.numbers == (number,)), None)
    calibration = None if result is None else stored_calibration(result, 0)
    if calibration is None or not {"integer", "float", "lookup"} <= set(calibration.rates):
        return USUAL_RATES
    rates = calibration.rates
    return CardRates(rates["integer"], rates["float"], rates["lookup"], calibration.memory_bandwidth, calibration.launch)


def open_cards(device: Device, progress: Progress, *, memory_bytes: int = 0) -> list[Card]:
    """Open the GPUs of the selected device; none for the CPU. A GPU that cannot be opened is skipped with a warning.

    At most `memory_bytes` of each is used; 0 for the free memory.
    """
    opened: list[Card] = []
    for number in device.numbers:
        try:
            opened_card = card(number)
            opened_card.limit_memory(memory_bytes)
            opened_card.rates = _rates(number)
            opened.append(opened_card)
        except DeviceError as error:
            forget_gpus()
            progress.message(f"{one_line(error)}; it is not used")
    return opened
