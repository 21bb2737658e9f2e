"""Open the cards that a user chose."""

from __future__ import annotations

from engine.execution.devices import Device
from engine.execution.remembered_gpus import forget_gpus
from engine.execution.scheduler import one_line
from engine.jobs.progress import Progress
from kernels.cuda.modules import Card, card
from kernels.device import DeviceError

__all__ = ["open_cards"]


def open_cards(device: Device, progress: Progress, *, memory_bytes: int = 0) -> list[Card]:
    """The cards of a device that the user chose; none for the processor. A card that cannot be opened is left out, and the user is told.

    No more than `memory_bytes` of each is used; 0: what is free.
    """
    opened: list[Card] = []
    for number in device.numbers:
        try:
            one = card(number)
            one.limit_memory(memory_bytes)
            opened.append(one)
        except DeviceError as error:
            forget_gpus()
            progress.message(f"{one_line(error)}; it is not used")
    return opened
