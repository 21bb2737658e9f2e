"""Recognition of files and folders of instrument vendors by content, and conversion to mzML with an installed converter.

The formats are not public. The vendors' libraries, which read them, are part of ThermoRawFileParser (Hulstaert et al. 2020, J. Proteome
Res. 19:537) and of ProteoWizard's msconvert (Chambers et al. 2012, Nat. Biotechnol. 30:918).
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from proteoscope.engine import formats
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.files import is_there, open_regular, scratch_folder
from proteoscope.engine.jobs.progress import Progress

__all__ = ["COMPOUND_MAGIC", "THERMO_MAGIC", "VendorFormat", "converted", "find_converter", "unreadable", "vendor_format"]

THERMO_MAGIC = b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0"
COMPOUND_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""First bytes of OLE compound documents, such as .wiff files and files of old office programs."""
_POLL_SECONDS = 0.1
_PERCENT = re.compile(rb"(?<![\d.])(\d{1,3})(?:\.\d+)? ?%")
_OUTPUT_BYTES = 1 << 16
_PROGRAMS = {
    "ThermoRawFileParser": ("ThermoRawFileParser", "ThermoRawFileParser.exe", "ThermoRawFileParser.sh", "thermorawfileparser"),
    "msconvert": ("msconvert", "msconvert.exe"),
}
"""Names of converters with the names of their executables."""


OPENTIMSPY = "opentimspy"
"""Package that reads timsTOF runs in this process without the vendor's library; an installed converter takes precedence."""


@dataclass(frozen=True)
class VendorFormat:
    """Format of an instrument vendor.

    Attributes
    ----------
    name : str
        Description with an article, such as ``a Thermo raw file``.
    converters : tuple of str
        Names of the programs that read it, in order of preference.
    options : tuple of str
        Additional options of msconvert.
    """

    name: str
    converters: tuple[str, ...] = ("msconvert",)
    options: tuple[str, ...] = ()


_THERMO = VendorFormat("a Thermo raw file", ("ThermoRawFileParser", "msconvert"))
_SCIEX = VendorFormat("a SCIEX .wiff file")
_FOLDERS: tuple[tuple[tuple[str, ...], VendorFormat], ...] = (
    # The frames of an ion mobility run contain many spectra of each precursor, which are combined.
    (("analysis.tdf",), VendorFormat("a Bruker timsTOF run", ("msconvert", OPENTIMSPY), ("--combineIonMobilitySpectra",))),
    (("analysis.tsf", "analysis.baf", "analysis.yep", "fid"), VendorFormat("a Bruker run")),
    (("acqdata",), VendorFormat("an Agilent run")),
    (("_func001.dat", "_header.txt"), VendorFormat("a Waters run")),
)
"""Names of entries, in lower case, that identify a folder with one measurement, and the format of the folder."""


def vendor_format(path: Path) -> VendorFormat | None:
    """Return the vendor format of a file or folder; None for other formats, or if the path cannot be inspected."""
    try:
        if path.is_dir():
            names = {entry.name.lower() for entry in os.scandir(path)}
            return next((folder_format for marks, folder_format in _FOLDERS if not names.isdisjoint(marks)), None)
        if not path.is_file():
            return None
        with open_regular(path) as file:
            head = file.read(len(THERMO_MAGIC))
    except (OSError, ValueError):
        return None
    if head == THERMO_MAGIC:
        return _THERMO
    is_wiff = path.suffix.lower() == ".wiff" or is_there(path.with_name(f"{path.name}.scan"))
    return _SCIEX if head.startswith(COMPOUND_MAGIC) and is_wiff else None


def find_converter(vendor: VendorFormat) -> tuple[str, str] | None:
    """Return the name and the path ('' for a Python package) of the installed converter for a format; None if there is no converter."""
    for converter in vendor.converters:
        if converter == OPENTIMSPY and find_spec(OPENTIMSPY) is not None:
            return converter, ""
        for name in _PROGRAMS.get(converter, ()):
            program = shutil.which(name)
            # Windows searches the working directory first, which may contain untrusted files: never run these.
            if program is not None and Path(program).resolve().parent != Path.cwd():
                return converter, program
    return None


def unreadable(path: Path, vendor: VendorFormat) -> InputError:
    """Return the error for a vendor file for which no converter is installed."""
    programs = " or ".join(converter for converter in vendor.converters if converter in _PROGRAMS)
    extra = "; or, as an experiment, pip install opentimspy" if OPENTIMSPY in vendor.converters else ""
    return InputError(
        path,
        f"is {vendor.name}, which cannot be read without the vendor's libraries",
        remedy=f"Convert it to mzML with {programs} (ProteoWizard), or install the converter on the PATH for automatic conversion{extra}",
    )


@contextmanager
def converted(path: Path, vendor: VendorFormat, progress: Progress) -> Iterator[Path]:
    """Convert the MS2 spectra of a vendor file to a temporary mzML file, which is deleted when the context ends.

    Parameters
    ----------
    path : Path
        File or folder of the vendor.
    vendor : VendorFormat
        Format of the file.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Yields
    ------
    Path
        mzML file.

    Raises
    ------
    InputError
        If no converter is installed, or if it fails.
    Cancelled
        If the user cancels; the converter and its subprocesses are killed first.
    """
    installed = find_converter(vendor)
    if installed is None:
        raise unreadable(path, vendor)
    converter, program = installed
    with scratch_folder() as folder:
        out = folder / "converted.mzML"
        if converter == OPENTIMSPY:
            spectra = formats.bruker_tdf.read_tdf(path, progress)
            progress.message(
                f"{path}: read with opentimspy, which is experimental: m/z are approximate; msconvert writes the vendor's values",
                "warning",
            )
            formats.writing.write_spectrum_file(out, spectra, progress=progress)
            yield out
            return
        source = str(path.resolve())
        if converter == "msconvert":
            # The vendor's peak picking works only as the first filter.
            filters = ("--filter", "peakPicking vendor msLevel=2-", "--filter", "msLevel 2-")
            command = [program, source, "-o", str(folder), "--outfile", out.name, "--mzML", "--zlib", *filters, *vendor.options]
        else:
            command = [program, f"-i={source}", f"-b={out}", "-f=1"]
        progress.stage(f"Converting {path.name} with {converter}")
        with (folder / "messages").open("w+b") as written:
            code = _run(command, folder, written, progress)
            if code != 0 or not out.is_file():
                raise InputError(
                    path,
                    f"is {vendor.name}, and {converter} could not convert it: {_last_line(written) or f'it ended with code {code}'}",
                    remedy=f"Convert it to mzML by hand, or check {program}",
                )
        yield out


def _run(command: list[str], folder: Path, written: IO[bytes], progress: Progress) -> int:
    """Run a converter, report its progress and return its exit code; kill it and its subprocesses if the user cancels."""
    is_posix = os.name == "posix"
    try:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT, start_new_session=is_posix
        )
    except OSError as error:
        raise InputError(command[0], f"cannot be started ({error.strerror or error})", remedy="Install it again") from None
    percent, is_counted = 0, False
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_SECONDS)
            progress.check()
            if (current := _percent(written)) > percent:
                if not is_counted:
                    progress.stage(f"Converting with {Path(command[0]).stem}", 100)
                    is_counted = True
                progress.advance(current - percent)
                percent = current
    finally:
        if process.poll() is None:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()


def _tail(written: IO[bytes]) -> bytes:
    size = os.fstat(written.fileno()).st_size
    with Path(written.name).open("rb") as file:
        file.seek(max(0, size - _OUTPUT_BYTES))
        return file.read(_OUTPUT_BYTES)


def _percent(written: IO[bytes]) -> int:
    """Return the last percentage in the output of a converter, or 0."""
    percents = _PERCENT.findall(_tail(written))
    return min(int(percents[-1]), 100) if percents else 0


def _last_line(written: IO[bytes]) -> str:
    lines = [line.strip() for line in _tail(written).decode("utf-8", "replace").splitlines() if line.strip()]
    return shortened(lines[-1]) if lines else ""
