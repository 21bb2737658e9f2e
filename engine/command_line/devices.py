"""``proteoscope devices``: what can compute on this machine, and how fast, once it is measured."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from proteoscope import engine
from proteoscope.engine import execution
from proteoscope.engine.command_line.terminal import TerminalProgress, interruptible, say
from proteoscope.engine.execution import cost
from proteoscope.engine.jobs.progress import Progress

if TYPE_CHECKING:
    from proteoscope.engine.execution.cost.parameters import DeviceParameters

__all__ = ["add_devices"]


def add_devices(commands: Any) -> None:
    """Add ``devices`` to the sub-commands, which are argparse's sub-parsers."""
    parser = commands.add_parser(
        "devices",
        help="list what can compute on this machine, or measure it",
        epilog="Estimates and --device auto use what is measured. Compiling comes on top, once.",
    )
    parser.add_argument("--calibrate", action="store_true", help="measure each device, a few seconds for each")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=_devices)


def _devices(options: argparse.Namespace) -> None:
    execution.devices.gpus.cache_clear()  # who asks wants to know how it is now
    found = execution.devices.devices()
    if options.calibrate:
        with TerminalProgress(None if options.json else sys.stderr) as terminal:
            progress = Progress(terminal.handle)
            with interruptible(progress):
                engine.calibration.calibrate(found, progress)
    threads = execution.threads.available_threads()
    known = {device.name: cost.calibration_store.stored_calibration(device, threads) for device in found if device.usable}
    if options.json:
        every = [{**asdict(device), "measured": _json(known.get(device.name))} for device in found]
        print(json.dumps(every, indent=2))
        return
    for device in found:
        state = "usable" if device.usable else f"not usable: {device.reason}"
        memory = f", {device.memory_bytes / 1e9:.1f} GB" if device.memory_bytes else ""
        say(f"{device.name:<8} {device.description}{memory}, {state}")
        if measured := known.get(device.name):
            _print(measured)


def _json(measured: DeviceParameters | None) -> Any:
    return None if measured is None else json.loads(measured.model_dump_json())


def _print(measured: DeviceParameters) -> None:
    if not measured.is_processor:
        moved = measured.transfers
        rates = " and ".join(f"{1e-9 / beta:.1f} GB/s" if beta else "?" for beta in (moved.beta(True), moved.beta(False)))
        say(f"         transfers {rates} to and from it, {1e6 * moved.alpha(True):.1f} and {1e6 * moved.alpha(False):.1f} us to begin")
    rates = ", ".join(f"{name} {rate:.2e}/s" for name, rate in measured.rates.items())
    say(f"         launch {1e6 * measured.sigma:.1f} us, memory {measured.memory_bandwidth / 1e9:,.0f} GB/s, {rates}")
    say(f"         measured for {', '.join(measured.kinds) or 'no kind of work'}")
