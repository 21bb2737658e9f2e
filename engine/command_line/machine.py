"""Sub-commands on this machine: ``devices``, ``compile``, ``cost-model``, ``estimate``, ``cache`` and ``samples``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope import engine, kernels
from proteoscope.engine import command_line, execution, project, searches, views
from proteoscope.engine.cached_files import CHECKPOINTS, clear_cached_files, index_kinds, list_cached_files
from proteoscope.engine.command_line.search import build_request
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
from proteoscope.engine.results.counts import counted
from proteoscope.engine.sample_data import copy_sample_files

if TYPE_CHECKING:
    from proteoscope.engine.estimates import Estimate
    from proteoscope.engine.execution.cost.parameters import DeviceParameters
    from proteoscope.engine.execution.devices import Device

__all__ = ["add_cache", "add_compile", "add_cost_model", "add_devices", "add_estimate", "add_samples"]

_COMPILING = """
The first search of each kind compiles its kernels for this machine's CPU and GPUs, which takes up to a minute.
This command compiles the kernels of all searches, in several processes. Kernels that are already compiled are skipped.
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
        epilog="Estimates and --device auto use the measurements. The first measurement takes longer, since kernels are compiled.",
    )
    parser.add_argument("--calibrate", action="store_true", help="measure each device, which takes a few seconds per device")
    parser.set_defaults(command=_devices)


def _devices(options: argparse.Namespace) -> None:
    execution.devices.gpus.cache_clear()  # report the present state, not a cached one
    result = execution.devices.devices()
    if options.calibrate:
        with command_progress(options) as progress:
            engine.calibration.calibrate(result, progress)
    threads = execution.resources.available_threads()
    calibrations = {device.name: cost.calibration_store.stored_calibration(device, threads) for device in result if device.usable}
    record = [{**asdict(device), "measured": _measured_record(calibrations.get(device.name))} for device in result]
    show_result(options, record, _device_lines(result, calibrations))


def _device_lines(result: Iterable[Device], calibrations: Mapping[str, DeviceParameters | None]) -> Iterator[str]:
    for device in result:
        state = "usable" if device.usable else f"not usable: {device.reason}"
        memory = f", {device.memory_bytes / 1e9:.1f} GB" if device.memory_bytes else ""
        yield (f"{device.name:<8} {device.description}{memory}, {state}")
        if measured := calibrations.get(device.name):
            yield from _measured_lines(measured)


def _measured_record(measured: DeviceParameters | None) -> Any:
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
    for failure in [*(failures if options.quiet else ()), *([] if options.json else gpu_failures)]:  # other errors were shown as warnings
        say(failure)
    is_done = not failures and not gpu_failures
    record = {"groups": list(groups), "failures": [*failures, *gpu_failures]}
    show_result(options, record, ["The kernels of all searches are compiled."] if is_done else [])


def add_cost_model(commands: Any) -> None:
    """Add the sub-command ``cost-model`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("cost-model", help="show how well the cost model predicts on this machine", epilog=_COMPARISON)
    parser.add_argument("what", choices=("report",), help="report: write a page")
    parser.add_argument("--out", required=True, type=output_name, metavar="FILE.html", help="file of the page; - for standard output")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="default: %(default)s")
    parser.set_defaults(command=_write_cost_report)


def _write_cost_report(options: argparse.Namespace) -> None:
    is_printed = options.out == STANDARD_OUTPUT
    if is_printed:
        check_printed(options)
    else:
        engine.cost_model.check_report_path(Path(options.out))
    with output_file(options.out) as path, command_progress(options) as progress:
        engine.cost_model.write_cost_report(path, options.device, progress)
    show_result(options, {"out": options.out}, [] if is_printed else [f"Report: {options.out}"])


_ESTIMATE_EPILOG = """
Write the whole command after `estimate`: a search or `experiment run`. --out may be left out, since nothing is run or written. Only the
sizes and the beginnings of files are read. `proteoscope devices --calibrate` measures the devices of this machine for the estimates.
"""
_NOWHERE = "not-written"
"""Name of the output of an estimated search if the user gives none; it is not written."""


def add_estimate(commands: Any, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    """Add the sub-command ``estimate`` to argparse's sub-parsers `commands`; the function `parse` parses the arguments of the search."""
    parser = commands.add_parser(
        "estimate",
        help="estimate the time and memory of a search before it runs",
        epilog=_ESTIMATE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a search with its arguments")
    parser.set_defaults(command=lambda options: _estimate(options, parse))


def _estimate(options: argparse.Namespace, parse: Callable[[list[str]], argparse.Namespace]) -> None:
    kinds = {search.kind: search for search in searches.SEARCHES}
    if options.arguments[:2] == ["experiment", "run"]:
        requested = parse(options.arguments)
        _show_estimate(options, requested, f"experiment of runs of {requested.search}", command_line.experiment.estimate_run(requested))
        return
    if not options.arguments or options.arguments[0] not in kinds:
        raise ParameterError(f"estimate: expected a search with its arguments, or experiment run; the searches are {', '.join(kinds)}")

    search = kinds[options.arguments[0]]
    arguments = [*options.arguments]
    if search.writes != "given project" and not any(argument.partition("=")[0] == "--out" for argument in arguments):
        arguments += ["--out", _NOWHERE]
    requested = parse(arguments)
    result = engine.estimates.estimate(search, build_request(search, requested))
    _show_estimate(options, requested, search.name, result)


def _show_estimate(options: argparse.Namespace, requested: argparse.Namespace, name: str, result: Estimate) -> None:
    options.json, options.quiet = options.json or requested.json, options.quiet or requested.quiet
    show_result(options, result.record(), _estimate_lines(name, result))


def _estimate_lines(name: str, estimate: Estimate) -> Iterator[str]:
    words = views.estimates.estimate_text(estimate)
    yield f"{name.capitalize()} on {estimate.device}: {estimate.description}"
    yield f"  {words.headline}"
    for line in words.details:
        title, colon, text = line.partition(": ")
        yield (f"  {title:<8} {text}" if colon and " " not in title else f"  note     {line}")


_CACHE_EPILOG = """
Indexes: {kinds}, up to 20 GB. A search rebuilds missing indexes. Checkpoints: intermediate results of unfinished runs, up to 20 GB
and 1,000 runs; without its checkpoint, a run cannot be resumed. Above these limits, the least recently used indexes and checkpoints
are removed, but not the checkpoints of active runs. The environment variable PROTEOSCOPE_CACHE moves all of them to another folder.
"""


def add_cache(commands: Any) -> None:
    """Add the sub-command ``cache`` to argparse's sub-parsers `commands`."""
    kinds = index_kinds()
    parser = commands.add_parser(
        "cache",
        help="list or clear indexes for later searches, and checkpoints",
        epilog=_CACHE_EPILOG.format(kinds=", ".join(kinds.values())),
    )
    parser.add_argument(
        "--clear",
        nargs="?",
        const="all",
        choices=("all", *kinds, CHECKPOINTS),
        metavar="KIND",
        help=f"clear the cache: one kind ({', '.join((*kinds, CHECKPOINTS))}), or all",
    )
    parser.set_defaults(command=_cache)


def _cache(options: argparse.Namespace) -> None:
    is_list = options.clear is None
    listed = list_cached_files() if is_list else clear_cached_files(options.clear)
    n_checkpoints = sum(file.kind == CHECKPOINTS for file in listed)
    rows = [
        {"kind": index.kind, "bytes": index.bytes, "used": index.used.isoformat(), "made_from": index.title, "path": str(index.folder)}
        for index in listed
    ]
    total = sum(index.bytes for index in listed)
    lines = [
        f"{index.kind:<11} {_size_text(index.bytes):>9}  {index.used.astimezone():%Y-%m-%d %H:%M}  {index.title}"
        for index in (listed if is_list else ())
    ]
    done = "stored" if is_list else "removed"
    counts = [counted(len(listed) - n_checkpoints, "index", "indexes")] if options.clear != CHECKPOINTS else []
    if n_checkpoints or not counts:
        counts.append(counted(n_checkpoints, "checkpoint", "checkpoints"))
    lines.append(f"{', '.join(counts)}, {_size_text(total)}, {done}: {project.index_store.cache_folder()}")
    show_result(options, {"folder": str(project.index_store.cache_folder()), "kept" if is_list else "removed": rows}, lines)


def _size_text(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"


_SAMPLES_EPILOG = """
The worked examples of the manual use these files, which are delivered with the program; SOURCES.md lists the source of each file.
Existing files with these names are replaced; other files in the folder remain.
"""


def add_samples(commands: Any) -> None:
    """Add the sub-command ``samples`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("samples", help="copy the sample data, for the examples of the manual", epilog=_SAMPLES_EPILOG)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="output folder, created if missing")
    parser.set_defaults(command=_copy_samples)


def _copy_samples(options: argparse.Namespace) -> None:
    copies = copy_sample_files(options.folder)
    record = {"folder": str(options.folder), "files": list(map(str, copies))}
    show_result(options, record, [f"{len(copies)} files in {options.folder}"])
