"""Device information: properties, calibration and speeds of earlier searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from proteoscope import kernels
from proteoscope.engine import searches
from proteoscope.engine.execution.cost.calibration_store import calibrated_at, speeds_by_kind, stored_calibration
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.resources import available_threads

__all__ = ["DeviceAccount", "RememberedSpeed", "device_accounts", "select_devices"]


@dataclass(frozen=True)
class RememberedSpeed:
    """Measured speed of a type of workload: name of the type, searches that use this type, and units of work per second."""

    kind: str
    searches: tuple[str, ...]
    speed: float


@dataclass(frozen=True)
class DeviceAccount:
    """Information about a device.

    Attributes
    ----------
    clock_hz
        Maximum clock of a GPU, or None.
    measured
        Time of calibration, or None.
    kinds
        Number of calibrated workload types.
    figures
        Names and formatted values of the calibration.
    speeds
        Speeds of earlier searches on this machine.
    """

    device: Device
    clock_hz: float | None
    measured: datetime | None
    kinds: int
    figures: tuple[tuple[str, str], ...]
    speeds: tuple[RememberedSpeed, ...]


def device_accounts(devices: Sequence[Device]) -> tuple[DeviceAccount, ...]:
    """Return information about devices. The first call may be slow, since it loads the driver."""
    return tuple(_account(device) for device in devices)


def select_devices(requested: str, devices: Sequence[Device]) -> tuple[str, ...]:
    """Return the names of the devices selected by a ``--device`` value.

    See Also
    --------
    proteoscope.engine.execution.devices.resolve_device
    """
    gpus = [device.name for device in devices if device.numbers and device.usable]
    others = [device.name for device in devices if not device.numbers and device.usable]
    chosen = {"auto": gpus or others, "cuda": gpus[:1], "all": [*gpus, *others]}.get(requested, [requested])
    return tuple(name for name in chosen if name in (*gpus, *others))


def _account(device: Device) -> DeviceAccount:
    threads = available_threads()
    measured = stored_calibration(device, threads) if device.usable else None
    clock = None
    if device.numbers and device.usable:
        result = kernels.cuda.driver.gpu_identity(device.numbers[0])
        clock = None if result is None else 1e3 * result.clock
    return DeviceAccount(
        device,
        clock,
        None if measured is None else calibrated_at(device, threads),
        0 if measured is None else len(measured.kinds),
        () if measured is None else _figures(measured),
        _speeds(device, threads) if device.usable else (),
    )


def _figures(measured: DeviceParameters) -> tuple[tuple[str, str], ...]:
    result = [("Memory", f"{measured.memory_bandwidth / 1e9:,.0f} GB/s"), ("Launch", f"{1e6 * measured.sigma:.1f} µs")]
    if not measured.is_processor:
        rates = [f"{1e-9 / beta:.1f}" if beta else "?" for beta in map(measured.transfers.beta, (True, False))]
        result.append(("Transfers", f"{' and '.join(rates)} GB/s to the GPU and back"))
    return tuple(result)


def _speeds(device: Device, threads: int) -> tuple[RememberedSpeed, ...]:
    return tuple(
        RememberedSpeed(kind, tuple(search.name for search in searches.SEARCHES if kind in dict(search.workload_types)), speed)
        for kind, speed in sorted(speeds_by_kind(device.name, threads).items())
    )
