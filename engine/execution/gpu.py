"""Run partitions on GPUs: each card takes the next one when it is done with the last; what a card that fails leaves goes to the others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock

from engine.execution.devices import Device
from engine.execution.partitions import Partition
from engine.jobs.progress import Progress
from kernels.cuda.modules import Card, DeviceError, card

__all__ = ["cards", "run_on_cards"]


def cards(device: Device, progress: Progress) -> list[Card]:
    """The cards of a device that the user chose; none for the processor. A card that cannot be opened is left out, and the user is told."""
    opened: list[Card] = []
    for number in device.numbers:
        try:
            opened.append(card(number))
        except DeviceError as error:
            progress.message(f"{error}; it is not used")
    return opened


def run_on_cards(
    cards: Sequence[Card],
    partitions: Sequence[Partition],
    work: Callable[[Card, Partition], Generator[int, None, None]],
    progress: Progress,
) -> list[Partition]:
    """Search partitions on cards, in the order given; return what no card could do.

    Parameters
    ----------
    work : searches a partition on a card and yields, whenever a piece is done, the end of what is done; raises DeviceError when the card
        fails. Progress advances by what was done. A cancel closes it.
    """
    waiting, lock = list(partitions), Lock()

    def serve(one: Card) -> None:
        while True:
            with lock:
                if not waiting:
                    return
                part = waiting.pop(0)
            done = part.first
            try:
                with closing(work(one, part)) as ends:
                    for end in ends:
                        progress.advance(end - done)
                        done = end
            except DeviceError as error:
                with lock:
                    waiting.append(Partition(done, part.last, part.cost * (part.last - done) / max(1, part.last - part.first)))
                progress.message(f"{error}; what it had not finished is repeated elsewhere")
                return

    if len(cards) == 1:
        serve(cards[0])
    elif cards:
        with ThreadPoolExecutor(len(cards), thread_name_prefix="proteoscope-gpu") as pool:
            for finished in [pool.submit(serve, one) for one in cards]:
                finished.result()
    return waiting
