"""``proteoscope convert``: the sub-command that writes all or selected spectra in another format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from proteoscope.engine import matches, spectra
from proteoscope.engine.command_line.search import thread_count
from proteoscope.engine.command_line.terminal import (
    STANDARD_OUTPUT,
    check_printed,
    command_progress,
    output_file,
    output_name,
    read_standard_input,
    show_result,
)
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.registry import format_names, select_formats
from proteoscope.engine.results.counts import counted

__all__ = ["add_convert"]

_EPILOG = """
MS2 spectra are written as the searches read them: with peaks in the order of their m/z, and with profiles as centroids. MS1 scans are left
out. Reading the file back gives exactly the same m/z, intensities and precursors: mzML contains 64-bit and 32-bit floats, and text formats
contain all digits that are needed.

A spectrum is selected if it meets all given conditions. If it has several possible charges, one of them must fit. A spectrum without a
charge has no mass; it does not meet a condition on the mass. A spectrum without a retention time does not meet a condition on the time.
--identified and --unidentified recognise the files of the identification by their content.

Example: proteoscope convert run.mzML --out unknown.mgf --unidentified my_project --charge 2,3
"""


def add_convert(commands: Any) -> None:
    """Add the sub-command ``convert`` to argparse's sub-parsers `commands`."""
    formats = [file_format.name for file_format in select_formats("spectra") if file_format.writer]
    parser = commands.add_parser(
        "convert",
        help=f"write all or selected spectra as {', '.join(formats[:-1])} or {formats[-1]}",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spectra", nargs="+", metavar="SPECTRA", help=f"{format_names('spectra')} files, also gzipped; or -")
    parser.add_argument(
        "--out",
        required=True,
        type=output_name,
        metavar="FILE",
        help="file to write, gzipped if it ends with .gz; - for standard output",
    )
    parser.add_argument("--format", choices=[name.lower() for name in formats], help="format of FILE (default: by its suffix)")
    parser.add_argument("--charge", metavar="Z[,Z]", help="only spectra of precursors with one of these charges, as 2,3")
    parser.add_argument(
        "--precursor-mass", metavar="LOW..HIGH", help="only spectra with a neutral precursor mass in this range, in dalton, as 500..2000"
    )
    parser.add_argument(
        "--retention-time", metavar="FROM..TO", help="only spectra with a retention time in this range, in seconds, as 600..1200"
    )
    identified = parser.add_mutually_exclusive_group()
    identified.add_argument("--identified", metavar="DIR", help="only spectra that were identified in this project")
    identified.add_argument("--unidentified", metavar="DIR", help="only spectra that were not identified in this project")
    parser.add_argument("--run", metavar="ID", help="identification of the project that counts (default: the newest)")
    parser.add_argument("--q-value", type=float, metavar="Q", help="maximum q-value of identified spectra (default: 0.01)")
    parser.add_argument("--strict", action="store_true", help="refuse files with spectra that cannot be read, instead of leaving them out")
    parser.add_argument("--threads", type=thread_count, metavar="N", help="CPU threads (default: all)")
    parser.set_defaults(command=_convert)


def _convert(options: argparse.Namespace) -> None:
    selection = _selection(options)
    is_printed = options.out == STANDARD_OUTPUT
    if is_printed:
        check_printed(options)

    folder, identified = options.unidentified if options.identified is None else options.identified, None
    if folder is not None:
        q_value = 0.01 if options.q_value is None else options.q_value
        identified = matches.conversion.IdentifiedIn(Path(folder), options.identified is not None, options.run or "", q_value)
    with (
        read_standard_input(options, "spectra") as given,
        output_file(options.out) as out,
        command_progress(options) as progress,
    ):
        request = matches.conversion.ConversionRequest(
            tuple(map(Path, given.spectra)), out, options.format or "", selection, identified, options.strict, options.threads
        )
        done = matches.conversion.convert_spectra(request, progress)
    record = {"out": options.out, "n_written": done.n_written, "n_spectra": done.n_spectra, "messages": progress.messages}
    line = f"{done.n_written:,} of {counted(done.n_spectra, 'spectrum', 'spectra')} written: {options.out}"
    show_result(options, record, [] if is_printed else [line])


def _selection(options: argparse.Namespace) -> spectra.selection.SpectrumSelection:
    if options.run is not None or options.q_value is not None:
        if options.identified is None and options.unidentified is None:
            raise ParameterError("--run and --q-value need --identified or --unidentified")
        if options.q_value is not None and not 0 <= options.q_value <= 1:
            raise ParameterError(f"--q-value {options.q_value:g} is not a q-value; expected 0 to 1")
    charges = None
    if options.charge is not None:
        charges = spectra.selection.parse_charges(options.charge)
    return spectra.selection.SpectrumSelection(
        charges,
        None if options.precursor_mass is None else spectra.selection.number_range(options.precursor_mass, "masses"),
        None if options.retention_time is None else spectra.selection.number_range(options.retention_time, "times"),
    )
