"""``proteoscope convert``: the sub-command that writes spectra, or some of them, in another format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.command_line.output import STANDARD_OUTPUT, output_file, output_name
from engine.command_line.search import thread_count
from engine.command_line.terminal import TerminalProgress, interruptible, say
from engine.errors import InputError, ParameterError
from engine.formats.registry import FORMATS, names_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engine.jobs.progress import Progress
    from engine.spectra.columns import Spectra
    from engine.spectra.selection import SpectrumSelection

__all__ = ["add_convert"]

_EPILOG = """
MS2 spectra are written as the searches read them: peaks by m/z, profiles as centroids; survey scans are left out. m/z, intensities and
precursors are the same numbers when they are read back: in mzML as 64-bit and 32-bit floats, in text with all the digits that takes.

Several choices hold together. A spectrum with several possible charges is chosen where one of them fits; one without a charge has no mass,
and one without a time none either. --identified takes the files that were identified, by their content.

Example: proteoscope convert run.mzML --out unknown.mgf --unidentified my_project --charge 2,3
"""
_HIGHEST_CHARGE = 31


def add_convert(commands: Any) -> None:
    """Add ``convert`` to the sub-commands, which are argparse's sub-parsers."""
    formats = [one.name for one in FORMATS if one.writer]
    parser = commands.add_parser(
        "convert", help=f"write spectra, or some of them, as {', '.join(formats[:-1])} or {formats[-1]}", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("spectra", nargs="+", metavar="SPECTRA", help=f"{names_of('spectra')} files, also gzipped")
    parser.add_argument("--out", required=True, type=output_name, metavar="FILE", help="file to write; - for standard output")
    parser.add_argument("--format", choices=[name.lower() for name in formats], help="what to write there (default: by the ending of FILE)")
    parser.add_argument("--charge", metavar="Z[,Z]", help="only spectra of precursors with one of these charges, as 2,3")
    parser.add_argument("--precursor-mass", metavar="LOW..HIGH", help="only those of a neutral mass in this range, in dalton, as 500..2000")
    parser.add_argument("--retention-time", metavar="FROM..TO", help="only those from this time, in seconds, as 600..1200")
    identified = parser.add_mutually_exclusive_group()
    identified.add_argument("--identified", metavar="DIR", help="only those that an identification of this project identified")
    identified.add_argument("--unidentified", metavar="DIR", help="only those that it did not identify")
    parser.add_argument("--run", metavar="ID", help="which identification of the project; the newest when not given")
    parser.add_argument("--q-value", type=float, metavar="Q", help="what counts as identified (default: 0.01)")
    parser.add_argument("--skip-broken", action="store_true", help="leave broken spectra out and go on")
    parser.add_argument("--threads", type=thread_count, metavar="N", help="threads of the processor (default: all)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_convert)


def _convert(options: argparse.Namespace) -> None:
    from engine.execution.threads import available_threads
    from engine.formats.reading import read_spectra
    from engine.formats.writing import spectrum_format, write_spectrum_file
    from engine.jobs.progress import Progress
    from engine.project.outputs import check_distinct, check_outputs

    selection = _selection(options)
    is_printed = options.out == STANDARD_OUTPUT
    if is_printed and not options.format:
        raise ParameterError("standard output has no name that tells a format; give --format too")
    written_as = spectrum_format(options.format or options.out)
    if options.out.lower().endswith(".gz"):
        raise ParameterError(f"'{options.out:.200}' would not be gzipped: what is written is not packed; choose a name without .gz")
    files = [Path(path) for path in options.spectra]
    check_outputs([] if is_printed else [Path(options.out)], files)
    check_distinct(files)
    threads = options.threads or available_threads()
    with output_file(options.out) as out, TerminalProgress(None if options.quiet else sys.stderr) as terminal:
        progress = Progress(terminal.handle)
        with interruptible(progress):
            spectra = read_spectra(files, progress=progress, skip_broken=options.skip_broken, threads=threads, takes_negative=True)
            rows = _chosen(spectra, files, selection, options, progress)
            if not len(rows):
                raise ParameterError(f"none of the {len(spectra):,} spectra is what was asked for; nothing was written")
            write_spectrum_file(out, spectra, format=written_as.name, rows=rows, progress=progress, threads=threads)
    if not options.quiet and not is_printed:
        say(f"{len(rows):,} of {len(spectra):,} spectra written: {options.out}")


def _selection(options: argparse.Namespace) -> SpectrumSelection:
    from engine.spectra.selection import SpectrumSelection, number_range

    if options.run is not None or options.q_value is not None:
        if options.identified is None and options.unidentified is None:
            raise ParameterError("--run and --q-value go with --identified or --unidentified")
        if options.q_value is not None and not 0 <= options.q_value <= 1:
            raise ParameterError(f"--q-value {options.q_value:g} is no share; expected 0 to 1")
    charges = None
    if options.charge is not None:
        words = options.charge.split(",")
        if not all(word.strip().isdecimal() and 1 <= int(word) <= _HIGHEST_CHARGE for word in words):
            raise ParameterError(f"--charge '{options.charge:.60}' names no charges; expected whole numbers from 1 to 31, as 2,3")
        charges = tuple(map(int, words))
    return SpectrumSelection(
        charges,
        None if options.precursor_mass is None else number_range(options.precursor_mass, "masses"),
        None if options.retention_time is None else number_range(options.retention_time, "times"),
    )


def _chosen(
    spectra: Spectra, files: list[Path], selection: SpectrumSelection, options: argparse.Namespace, progress: Progress
) -> NDArray[np.int64]:
    """The spectra that are asked for."""
    import numpy as np

    rows = selection.rows(spectra)
    folder = options.unidentified if options.identified is None else options.identified
    if folder is None:
        return rows
    from engine.matches.source_run import identified_places
    from engine.project.digests import file_digest

    run, places = identified_places(Path(folder), options.run or "", 0.01 if options.q_value is None else options.q_value)
    is_identified = np.zeros(len(spectra), np.bool_)
    for number, file in enumerate(files):
        found = places.get(file_digest(file, progress))
        if found is None:
            raise InputError(file, f"is none of the files that run {run} of {folder} read", remedy="Give the files that were identified")
        is_identified |= (spectra.file == number) & np.isin(spectra.index, found)
    return rows[is_identified[rows] == (options.identified is not None)]
