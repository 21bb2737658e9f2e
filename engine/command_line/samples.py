"""``proteoscope samples``: the sub-command that copies the sample data delivered with the program, which the manual uses."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from proteoscope import resources
from proteoscope.engine.command_line.terminal import show_result
from proteoscope.engine.files import atomic_file, storage_errors

__all__ = ["add_samples"]

_EPILOG = """
The worked examples of the manual use these files, which lie inside the program otherwise; SOURCES.md says where each comes from.
Files of these names that are there already are written anew, others in the folder stay.
"""


def add_samples(commands: Any) -> None:
    """Add the sub-command ``samples`` to argparse's sub-parsers `commands`."""
    parser = commands.add_parser("samples", help="copy the data that ships, for the examples of the manual", epilog=_EPILOG)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="output folder, created if missing")
    parser.set_defaults(command=_copy)


def _copy(options: argparse.Namespace) -> None:
    folder: Path = options.folder
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        samples = sorted(path for path in resources.path("samples").iterdir() if path.suffix in {".gz", ".fasta", ".tsv", ".md"})
        for sample in samples:
            with sample.open("rb") as source, atomic_file(folder / sample.name, as_is=True) as copy:
                shutil.copyfileobj(source, copy)
    show_result(
        options,
        {"folder": str(folder), "files": [str(folder / sample.name) for sample in samples]},
        [f"{len(samples)} files in {folder}"],
    )
