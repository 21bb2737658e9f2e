"""Sub-commands ``devices``, ``compile`` and ``cost-model``: list devices, compile kernels, and check predicted run times."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope import engine, kernels
from proteoscope.engine import execution
from proteoscope.engine.command_line.terminal import (
    STANDARD_OUTPUT,
    check_printed,
    command_progress,
    output_file,
    output_name,
    say,
    show_result,
)
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution import cost

if TYPE_CHECKING:
    from proteoscope.engine.execution.cost.parameters import DeviceParameters
    from proteoscope.engine.execution.devices import Device

__all__ = ["add_compile", "add_cost_model", "add_devices"]

_COMPILING = """
The first search of each kind compiles its kernels for this machine's CPU and GPUs, which takes up to a minute.
This compiles for all searches, in several processes. Compiled kernels are not compiled again.
"""
_COMPARISON = """
Vector addition, matrix multiplication, reduction and prefix scan run in several sizes on a GPU, or on the CPU if none is
usable, and their times are compared with the predictions of the ATGPU cost function. Devices without a calibration are measured first.
"""


def add_devices(commands: Any) -> None:
    """Add the sub-command ``devices`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser(
        "devices",
        help="list the CPU and GPUs of this machine, or measure their speed",
        epilog="Estimates and --device auto use the measurements. Compiling adds time once.",
    )
    parser.add_argument("--calibrate", action="store_true", help="measure each device, a few seconds for each")
    parser.set_defaults(command=_devices)


def _devices(options: argparse.Namespace) -> None:
    execution.devices.gpus.cache_clear()  # report the present state, not a cached one
    result = execution.devices.devices()
    if options.calibrate:
        with command_progress(options) as progress:
            engine.calibration.calibrate(result, progress)
    threads = execution.threads.available_threads()
    calibrations = {device.name: cost.calibration_store.stored_calibration(device, threads) for device in result if device.usable}
    record = [{**asdict(device), "measured": _json(calibrations.get(device.name))} for device in result]
    show_result(options, record, _device_lines(result, calibrations))


def _device_lines(result: Iterable[Device], calibrations: Mapping[str, DeviceParameters | None]) -> Iterator[str]:
    for device in result:
        state = "usable" if device.usable else f"not usable: {device.reason}"
        memory = f", {device.memory_bytes / 1e9:.1f} GB" if device.memory_bytes else ""
        yield (f"{device.name:<8} {device.description}{memory}, {state}")
        if measured := calibrations.get(device.name):
            yield from _measured_lines(measured)


def _json(measured: DeviceParameters | None) -> Any:
    return None if measured is None else json.loads(measured.model_dump_json())


def _measured_lines(measured: DeviceParameters) -> Iterator[str]:
    if not measured.is_processor:
        moved = measured.transfers
        rates = " and ".join(f"{1e-9 / beta:.1f} GB/s" if beta else "?" for beta in (moved.beta(True), moved.beta(False)))
        yield (f"         transfers {rates} to and from it, {1e6 * moved.alpha(True):.1f} and {1e6 * moved.alpha(False):.1f} us to begin")
    rates = ", ".join(f"{name} {rate:.2e}/s" for name, rate in measured.rates.items())
    yield (f"         launch {1e6 * measured.sigma:.1f} us, memory {measured.memory_bandwidth / 1e9:,.0f} GB/s, {rates}")
    yield (f"         measured for {', '.join(measured.kinds) or 'no kind of work'}")


def add_compile(commands: Any) -> None:
    """Add the sub-command ``compile`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("compile", help="compile the kernels of all searches in advance", epilog=_COMPILING)
    parser.add_argument(
        "--processes", type=int, metavar="N", help="number of processes that compile, at most eight (default: one for each core)"
    )
    parser.set_defaults(command=_compile)


def _compile(options: argparse.Namespace) -> None:
    if options.processes is not None and options.processes < 1:
        raise ParameterError(f"--processes {options.processes}: there must be at least 1")
    groups = kernels.cpu.signatures.kernel_groups()
    with command_progress(options) as progress:
        failures = execution.precompile.compile_kernels(groups, progress, options.processes)
        gpu_failures = execution.precompile.compile_for_gpus(progress, options.processes)
    for failure in [*(failures if options.quiet else ()), *([] if options.json else gpu_failures)]:  # others were shown as warnings
        say(failure)
    is_done = not failures and not gpu_failures
    record = {"groups": list(groups), "failures": [*failures, *gpu_failures]}
    show_result(options, record, ["What searches compute with is compiled."] if is_done else [])


def add_cost_model(commands: Any) -> None:
    """Add the sub-command ``cost-model`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("cost-model", help="show how well the cost model predicts on this machine", epilog=_COMPARISON)
    parser.add_argument("what", choices=("report",), help="report: write a page")
    parser.add_argument("--out", required=True, type=output_name, metavar="FILE.html", help="file of the page; - for standard output")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="default: %(default)s")
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> None:
    is_printed = options.out == STANDARD_OUTPUT
    if is_printed:
        check_printed(options)
    else:
        engine.cost_model.check_report_path(Path(options.out))
    with output_file(options.out) as path, command_progress(options) as progress:
        engine.cost_model.write_cost_report(path, options.device, progress)
    show_result(options, {"out": options.out}, [] if is_printed else [f"Report: {options.out}"])
