"""Files and folders of instrument makers: recognised by content, and converted to mzML by a program that is installed for that.

Their formats are not public; what reads them are the makers' libraries, behind ThermoRawFileParser (Hulstaert et al. 2020, J. Proteome Res.
19:537) and msconvert of ProteoWizard (Chambers et al. 2012, Nat. Biotechnol. 30:918).
"""

from __future__ import annotations

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

__all__ = ["COMPOUND_MAGIC", "THERMO_MAGIC", "VendorFormat", "converted", "converter_of", "unreadable", "vendor_format"]

THERMO_MAGIC = b"\x01\xa1F\0i\0n\0n\0i\0g\0a\0n\0"
COMPOUND_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Of OLE compound documents, which .wiff files are, and those of older office programs."""
_LOOK_SECONDS = 0.1
_PERCENT = re.compile(rb"(?<![\d.])(\d{1,3})(?:\.\d+)? ?%")
_TOLD_BYTES = 1 << 16
_PROGRAMS = {
    "ThermoRawFileParser": ("ThermoRawFileParser", "ThermoRawFileParser.exe", "ThermoRawFileParser.sh", "thermorawfileparser"),
    "msconvert": ("msconvert", "msconvert.exe"),
}
"""By what converters are called here: the names that they are installed by."""


OPENTIMSPY = "opentimspy"
"""What reads timsTOF runs without their maker's library, in this process; what is installed besides is asked first."""


@dataclass(frozen=True)
class VendorFormat:
    """A format of an instrument maker.

    Attributes
    ----------
    name : as in ``is a Thermo raw file``. converters : the programs that read it, those that do nothing else first. options : of msconvert,
        besides the usual ones.
    """

    name: str
    converters: tuple[str, ...] = ("msconvert",)
    options: tuple[str, ...] = ()


_THERMO = VendorFormat("a Thermo raw file", ("ThermoRawFileParser", "msconvert"))
_SCIEX = VendorFormat("a SCIEX .wiff file")
_FOLDERS: tuple[tuple[tuple[str, ...], VendorFormat], ...] = (
    # The frames of an ion mobility run are many spectra each of one precursor, which belong together.
    (("analysis.tdf",), VendorFormat("a Bruker timsTOF run", ("msconvert", OPENTIMSPY), ("--combineIonMobilitySpectra",))),
    (("analysis.tsf", "analysis.baf", "analysis.yep", "fid"), VendorFormat("a Bruker run")),
    (("acqdata",), VendorFormat("an Agilent run")),
    (("_func001.dat", "_header.txt"), VendorFormat("a Waters run")),
)
"""Folders that hold one measurement, by one of the names that are in them, in lower case."""


def vendor_format(path: Path) -> VendorFormat | None:
    """The maker's format of a file or a folder, None where it has none. What cannot be looked at has none."""
    try:
        if path.is_dir():
            names = {entry.name.lower() for entry in os.scandir(path)}
            return next((one for marks, one in _FOLDERS if not names.isdisjoint(marks)), None)
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


def converter_of(found: VendorFormat) -> tuple[str, str] | None:
    """The converter that is installed for a format: what it is called here, and its program; None where there is none."""
    for converter in found.converters:
        if converter == OPENTIMSPY and find_spec(OPENTIMSPY) is not None:
            return converter, ""
        for name in _PROGRAMS.get(converter, ()):
            program = shutil.which(name)
            # Windows looks in the working directory first, where a stranger's files may lie: nothing of those is run.
            if program is not None and Path(program).resolve().parent != Path.cwd():
                return converter, program
    return None


def unreadable(path: Path, found: VendorFormat) -> InputError:
    """What to say of a maker's file where no converter is installed."""
    programs = " or ".join(one for one in found.converters if one in _PROGRAMS)
    extra = "; or, as an experiment, pip install opentimspy" if OPENTIMSPY in found.converters else ""
    return InputError(
        path,
        f"is {found.name}, which cannot be read without its maker's libraries",
        remedy=f"Convert it to mzML with {programs} (ProteoWizard), or install that where commands are found (PATH): then it is converted"
        f" here{extra}",
    )


@contextmanager
def converted(path: Path, found: VendorFormat, progress: Progress) -> Iterator[Path]:
    """The MS2 spectra of a maker's file as a temporary mzML, which is gone when the block ends.

    Raises
    ------
    InputError : no converter is installed, or it fails. Cancelled : the user asked to stop; the converter and what it began is ended.
    """
    installed = converter_of(found)
    if installed is None:
        raise unreadable(path, found)
    converter, program = installed
    with scratch_folder() as folder:
        out = folder / "converted.mzML"
        if converter == OPENTIMSPY:
            # Loaded for such runs alone.

            spectra = formats.bruker_tdf.read_tdf(path, progress)
            progress.message(
                f"{path}: read with opentimspy, which is experimental: m/z are approximate, and msconvert gives those of the maker",
                "warning",
            )
            formats.writing.write_spectrum_file(out, spectra, progress=progress)
            yield out
            return
        source = str(path.resolve())
        if converter == "msconvert":
            # Peaks are picked by the maker's own method, which works only before all else.
            filters = ("--filter", "peakPicking vendor msLevel=2-", "--filter", "msLevel 2-")
            command = [program, source, "-o", str(folder), "--outfile", out.name, "--mzML", "--zlib", *filters, *found.options]
        else:
            command = [program, f"-i={source}", f"-b={out}", "-f=1"]
        progress.stage(f"Converting {path.name} with {converter}")
        with (folder / "messages").open("w+b") as written:
            code = _run(command, folder, written, progress)
            if code != 0 or not out.is_file():
                raise InputError(
                    path,
                    f"is {found.name}, and {converter} could not convert it: {_last_line(written) or f'it ended with code {code}'}",
                    remedy=f"Convert it to mzML by hand, or check {program}",
                )
        yield out


def _run(command: list[str], folder: Path, written: IO[bytes], progress: Progress) -> int:
    """Run a converter to its end, and show how far it says that it is; its exit code. On a cancel all that it began is ended."""
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
                return process.wait(_LOOK_SECONDS)
            progress.check()
            if (now := _percent(written)) > percent:
                if not is_counted:
                    progress.stage(f"Converting with {Path(command[0]).stem}", 100)
                    is_counted = True
                progress.advance(now - percent)
                percent = now
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
        file.seek(max(0, size - _TOLD_BYTES))
        return file.read(_TOLD_BYTES)


def _percent(written: IO[bytes]) -> int:
    """How far a converter said last that it is; 0 where it said nothing of the sort."""
    percents = _PERCENT.findall(_tail(written))
    return min(int(percents[-1]), 100) if percents else 0


def _last_line(written: IO[bytes]) -> str:
    lines = [line.strip() for line in _tail(written).decode("utf-8", "replace").splitlines() if line.strip()]
    return shortened(lines[-1]) if lines else ""
