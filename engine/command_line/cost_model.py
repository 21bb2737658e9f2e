"""``proteoscope cost-model report``: the thesis's analyses, predicted and measured on this machine, as a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from proteoscope import engine, kernels
from proteoscope.engine import execution, views
from proteoscope.engine.command_line.terminal import TerminalProgress, interruptible, say
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution import cost
from proteoscope.engine.jobs.progress import Progress

__all__ = ["add_cost_model"]

_SIZES = tuple(1_000_000 * number for number in range(1, 11))
_SIDES = (64, 128, 256, 384, 512, 768, 1024)
_EPILOG = """
Vector addition, matrix multiplication, reduction and prefix scan run in several sizes on a GPU, or on the processor where none is
usable, beside what the ATGPU cost function predicts. A device that was not measured is measured first.
"""


def add_cost_model(commands: Any) -> None:
    """Add ``cost-model`` to the sub-commands, which are argparse's sub-parsers."""
    parser = commands.add_parser("cost-model", help="show how well the cost model predicts on this machine", epilog=_EPILOG)
    parser.add_argument("what", choices=("report",), help="report: write a page")
    parser.add_argument("--out", required=True, metavar="FILE.html")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="default: %(default)s")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> None:
    path, threads, notes = Path(options.out), execution.threads.available_threads(), list[str]()
    if not path.parent.is_dir():
        raise ParameterError(f"--out {options.out}: there is no folder {path.parent}")
    with TerminalProgress(None if options.quiet else sys.stderr) as terminal:
        progress = Progress(terminal.handle)
        with interruptible(progress):
            device = execution.devices.resolve_device(options.device, progress)
            cards = execution.cards.open_cards(device, progress)
            if not cards:
                device = execution.devices.processor()
                notes.append("No GPU is used: these are the processor's times, which nothing is moved for.")
            parameters = cost.calibration_store.stored_calibration(device, threads)
            if parameters is None:
                parameters = (
                    cost.calibration.calibrate_card(device.numbers[0], device.description, (), progress)
                    if cards
                    else cost.calibration.calibrate_processor(threads, (), progress)
                )
            used = cards[0] if cards else kernels.cpu.processor.Processor(threads)
            progress.stage("Comparing", len(kernels.analyses_layouts.PROBLEMS))
            found = {}
            for problem in kernels.analyses_layouts.PROBLEMS:
                progress.check()
                found[problem] = cost.analyses.compared(used, parameters, problem, _SIDES if problem == "matrix multiplication" else _SIZES)
                progress.advance(1)
    with engine.files.atomic_file(path) as file:
        file.write(views.predictions.report_page(parameters, found, notes).encode())
    if not options.quiet:
        say(f"Report: {path}")
