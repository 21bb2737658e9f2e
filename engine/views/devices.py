"""What is known of a device: what it is, when it was measured and with what outcome, and how fast it was in earlier searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proteoscope import kernels
from proteoscope.engine import searches
from proteoscope.engine.execution.cost.calibration_store import calibrated_at, stored_calibration
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.speeds import speeds_by_kind
from proteoscope.engine.execution.threads import available_threads

__all__ = ["DeviceAccount", "RememberedSpeed", "device_accounts", "devices_of_choice"]


@dataclass(frozen=True)
class RememberedSpeed:
    """Of a kind of work: its name, the searches that it is of, and how much of it a device did in a second, as its plan counts it."""

    kind: str
    searches: tuple[str, ...]
    speed: float


@dataclass(frozen=True)
class DeviceAccount:
    """A device.

    Attributes
    ----------
    device : it. clock_hz : the highest of a card, None where it is not known. measured : when it was calibrated, None where it was not.
    kinds : how many kinds of work were measured then. figures : names and texts of what was.
    speeds : of earlier searches on this machine.
    """

    device: Device
    clock_hz: float | None
    measured: datetime | None
    kinds: int
    figures: tuple[tuple[str, str], ...]
    speeds: tuple[RememberedSpeed, ...]


def device_accounts(devices: Sequence[Device]) -> tuple[DeviceAccount, ...]:
    """What is known of each; some milliseconds, and more where a driver is asked for the first time."""
    return tuple(_account(device) for device in devices)


def devices_of_choice(wish: str, devices: Sequence[Device]) -> tuple[str, ...]:
    """The names of those of these devices that compute for a choice, as ``--device`` takes it.

    See `proteoscope.engine.execution.devices.resolve_device`, which looks for them.
    """
    cards = [one.name for one in devices if one.numbers and one.usable]
    others = [one.name for one in devices if not one.numbers and one.usable]
    chosen = {"auto": cards or others, "cuda": cards[:1], "all": [*cards, *others]}.get(wish, [wish])
    return tuple(name for name in chosen if name in (*cards, *others))


def _account(device: Device) -> DeviceAccount:
    threads = available_threads()
    measured = stored_calibration(device, threads) if device.usable else None
    clock = None
    if device.numbers and device.usable:
        found = kernels.cuda.driver.card_identity(device.numbers[0])
        clock = None if found is None else 1e3 * found.clock
    return DeviceAccount(
        device,
        clock,
        None if measured is None else calibrated_at(device, threads),
        0 if measured is None else len(measured.kinds),
        () if measured is None else _figures(measured),
        _speeds(device, threads) if device.usable else (),
    )


def _figures(measured: DeviceParameters) -> tuple[tuple[str, str], ...]:
    found = [("Memory", f"{measured.memory_bandwidth / 1e9:,.0f} GB/s"), ("Launch", f"{1e6 * measured.sigma:.1f} µs")]
    if not measured.is_processor:
        rates = [f"{1e-9 / beta:.1f}" if beta else "?" for beta in map(measured.transfers.beta, (True, False))]
        found.append(("Transfers", f"{' and '.join(rates)} GB/s to it and back"))
    return tuple(found)


def _speeds(device: Device, threads: int) -> tuple[RememberedSpeed, ...]:
    return tuple(
        RememberedSpeed(kind, tuple(search.name for search in searches.SEARCHES if kind in dict(search.work)), speed)
        for kind, speed in sorted(speeds_by_kind(device.name, threads).items())
    )
