"""``proteoscope samples``: the sub-command that copies the sample data delivered with the program, which the manual uses."""

import argparse
from pathlib import Path
from typing import Any

from proteoscope.engine.command_line.terminal import show_result
from proteoscope.engine.sample_data import copy_sample_files

__all__ = ["add_samples"]

_EPILOG = """
The worked examples of the manual use these files, which lie inside the program otherwise; SOURCES.md says where each comes from.
Files of these names that are there already are written anew, others in the folder stay.
"""


def add_samples(commands: Any) -> None:
    """Add the sub-command ``samples`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("samples", help="copy the sample data, for the examples of the manual", epilog=_EPILOG)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="output folder, created if missing")
    parser.set_defaults(command=_copy)


def _copy(options: argparse.Namespace) -> None:
    copies = copy_sample_files(options.folder)
    record = {"folder": str(options.folder), "files": list(map(str, copies))}
    show_result(options, record, [f"{len(copies)} files in {options.folder}"])
