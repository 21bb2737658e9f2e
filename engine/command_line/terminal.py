"""Terminal, standard input and standard output: printable texts, progress, and files that are named ``-``.

On a terminal, progress is one line with a bar and the remaining time, which is redrawn. Elsewhere, it is written as separate lines.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from proteoscope.engine.command_line.interruption import cancel_on_interrupt, give_back_interrupt
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import open_regular, remove_leftovers, scratch_folder, storage_errors
from proteoscope.engine.jobs.progress import Progress, ProgressEvent, RecordingProgress

__all__ = [
    "STANDARD_INPUT",
    "STANDARD_OUTPUT",
    "JsonProgress",
    "TerminalProgress",
    "add_output_options",
    "check_printed",
    "command_progress",
    "interruptible",
    "listed",
    "output_file",
    "output_files",
    "output_name",
    "printable",
    "read_standard_input",
    "say",
    "show_result",
]

STANDARD_OUTPUT = "-"
_OTHER_NAMES_OF_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")

_WORKBOOKS = (".xls", ".xlsx", ".ods")


def output_name(text: str) -> str:
    """Return the given name of an output file, or ``-`` for a path of standard output (``/dev/stdout``), which must not be replaced.

    Raises
    ------
    argparse.ArgumentTypeError
        If the name is that of a spreadsheet workbook, which no command writes.
    """
    if (ending := Path(text).suffix.lower()) in _WORKBOOKS:
        raise argparse.ArgumentTypeError(f"{ending} files cannot be written; choose a name that ends in .tsv, for spreadsheet programs")
    return STANDARD_OUTPUT if text in _OTHER_NAMES_OF_STDOUT else text


def check_printed(options: argparse.Namespace) -> None:
    """Check the options of a command whose results go to standard output.

    Raises
    ------
    ParameterError
        If the format is missing, or ``--json`` also requests output there.
    """
    if getattr(options, "format", True) in ("", None):
        raise ParameterError("standard output has no file name that determines the format; give --format too")
    if options.json:
        raise ParameterError("standard output takes only the results; leave out --json with --out -")


@contextmanager
def output_files(options: argparse.Namespace, written: Mapping[str, str]) -> Iterator[argparse.Namespace]:
    """Yield a copy of the options in which each output file is replaced by the path that `output_file` yields.

    `written` contains the output files by the name of their option.
    """
    with ExitStack() as stack:
        yield argparse.Namespace(**{**vars(options), **{name: stack.enter_context(output_file(path)) for name, path in written.items()}})


@contextmanager
def output_file(requested: str) -> Iterator[Path]:
    """Yield the path to write; for ``-``, a temporary file that is copied to standard output if the `with` block succeeds.

    Raises
    ------
    ParameterError
        If there is no standard output.
    """
    if requested != STANDARD_OUTPUT:
        yield Path(requested)
        return
    if sys.stdout is None:
        raise ParameterError("there is no standard output to write to; give --out a file")
    with scratch_folder() as folder:
        path = folder / "output"
        yield path
        if not path.exists():  # nothing was written; the command has reported this
            return
        with open_regular(path) as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


STANDARD_INPUT = "-"
_NAME = "stdin"
"""Name of the file in results, used as the name of a spectrum file."""


@contextmanager
def read_standard_input(options: argparse.Namespace, *names: str) -> Iterator[argparse.Namespace]:
    """Yield the options with ``-`` replaced by a file with the content of standard input, which is removed after the block.

    Parameters
    ----------
    options
        Options of the command, which remain unchanged.
    names
        Names of the options whose values are files to read, or lists of such files.

    Raises
    ------
    ParameterError
        If standard input is requested twice, or does not exist.
    InputError
        If the block cannot use the content of standard input.
    StorageError
        If the copy cannot be written.
    """
    given = [path for name in names for path in listed(getattr(options, name, None))]
    if STANDARD_INPUT not in given:
        yield options
        return
    if given.count(STANDARD_INPUT) > 1:
        raise ParameterError("standard input can be read only once; give - for one file and names for the others")
    with ExitStack() as stack:
        copy = str(_copy(stack.enter_context(scratch_folder())))
        replaced = argparse.Namespace(**vars(options))
        for name in names:
            value = getattr(options, name, None)
            if STANDARD_INPUT in listed(value):
                setattr(replaced, name, [copy if path == STANDARD_INPUT else path for path in value] if isinstance(value, list) else copy)
        try:
            yield replaced
        except InputError as error:
            if error.path != copy:
                raise
            raise InputError("standard input", error.reason, place=error.place, remedy=error.remedy) from error


def listed(value: Any) -> list[Any]:
    """Return the value of a repeatable option as a list; a single value becomes a list of one."""
    return value if isinstance(value, list) else [value]


def _copy(folder: Path) -> Path:
    """Copy standard input to a file, since files are read more than once."""
    if sys.stdin is None:
        raise ParameterError("there is no standard input to read; give the name of a file")
    path = folder / _NAME
    with storage_errors(path), path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


_BAR = 24
_COMMANDS = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of characters that are escaped: control characters such as ESC, direction marks, surrogates and line separators."""


def printable(text: str) -> str:
    r"""Return a text on one line for a terminal; control characters, which names may contain, are escaped (``\x1b``)."""
    if text.isprintable():
        return text
    return "".join(
        symbol.encode("unicode_escape").decode("ascii") if unicodedata.category(symbol) in _COMMANDS else symbol for symbol in text
    )


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a text on a stream (standard output by default) as one line, escaped by `printable`."""
    print(printable(text), file=sys.stdout if stream is None else stream, flush=stream is not None)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command has: ``--quiet``, ``--json`` and ``--progress``."""
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--quiet", action="store_true", help="print nothing but errors")
    printed.add_argument("--json", action="store_true", help="print the result as JSON, for scripts, and no progress")
    parser.add_argument(
        "--progress",
        choices=("text", "json"),
        help="progress on standard error: as text (default), or as JSON lines for scripts (may be combined with --json)",
    )


def show_result(options: argparse.Namespace, record: Any, lines: Iterable[str] = ()) -> None:
    """Print the result of a command: the record for ``--json``, else the lines, unless the command is quiet."""
    if options.json:
        print(json.dumps(record, indent=2))
    elif not options.quiet:
        for line in lines:
            say(line)


class JsonProgress:
    """Writer of the events of a `Progress` as JSON lines on a stream; without a stream it writes nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def handle(self, event: ProgressEvent) -> None:
        """Write an event; a handler for `Progress`."""
        if event.message:
            self.write({"event": "message", "stage": event.stage, "text": event.message})
        else:
            left = event.seconds_left
            self.write(
                {
                    "event": "progress",
                    "stage": event.stage,
                    "done": event.done,
                    "total": event.total,
                    "seconds": round(event.seconds, 3),
                    "seconds_left": None if left is None else round(max(left, 0.0), 3),
                }
            )

    def write(self, event: Mapping[str, Any]) -> None:
        """Write an event as one line."""
        if self._stream is None:
            return
        with self._lock:
            try:
                print(json.dumps(event), file=self._stream, flush=True)
            except OSError:
                self._stream = None  # the reading end was closed: continue the run, since its results are still needed


class TerminalProgress:
    """Display of the events of a `Progress` on a stream; without a stream, nothing is displayed."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._is_terminal = stream is not None and stream.isatty()
        self._stage = ""
        self._drawn = False
        self._lock = threading.Lock()

    def __enter__(self) -> TerminalProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def handle(self, event: ProgressEvent) -> None:
        """Display an event of a `Progress`, to which this method is attached as a handler."""
        if self._stream is None:
            return
        try:
            self._show(event, self._stream)
        except OSError:
            # The terminal or the reading end of the pipe was closed: continue the run, since its results are still needed.
            self._stream, self._drawn = None, False

    def handle_message(self, event: ProgressEvent) -> None:
        """Display an event if it is a message; a handler for `Progress`."""
        if event.message:
            self.handle(event)

    def _show(self, event: ProgressEvent, stream: TextIO) -> None:
        with self._lock:
            if event.message:
                self._clear()
                say(event.message, stream)
            elif self._is_terminal:
                self._draw(event, stream)
            elif event.stage != self._stage:
                say(event.stage, stream)
            self._stage = event.stage

    def _draw(self, event: ProgressEvent, stream: TextIO) -> None:
        text = stage = printable(event.stage)
        if event.total:
            fraction = min(1.0, event.done / event.total)
            text = f"{stage:<28} [{'#' * round(fraction * _BAR):<{_BAR}}] {fraction * 100:3.0f} %"
            left = event.seconds_left
            if left is not None and left >= 1 and fraction < 1:
                text += f"  {left:.0f} s left"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{text[:width]:<{width}}", end="", file=stream, flush=True)
        self._drawn = True

    def _clear(self) -> None:
        if self._stream is not None and self._drawn:
            width = shutil.get_terminal_size().columns - 1
            self._drawn = False
            with suppress(OSError):
                print(f"\r{'':<{width}}\r", end="", file=self._stream, flush=True)


@contextmanager
def interruptible(progress: Progress) -> Iterator[None]:
    """Make signals cancel the progress during the `with` block, so that the search stops at its next check and removes incomplete files.

    First, files that killed processes left in the temporary folder of the system are removed.
    """
    with suppress(OSError):
        remove_leftovers(Path(tempfile.gettempdir()))
    previous = None
    if threading.current_thread() is threading.main_thread():
        previous = cancel_on_interrupt(progress.cancel)
    try:
        yield
    finally:
        if previous is not None:
            give_back_interrupt(previous)


@contextmanager
def command_progress(options: argparse.Namespace, *, shows_stages: bool = True) -> Iterator[RecordingProgress]:
    """Yield a progress, shown on standard error as the options request. Signals cancel it, and it records messages for ``--json``.

    Parameters
    ----------
    options
        Options of the command, see `add_output_options`.
    shows_stages
        False to show only messages as text, for commands that take a moment.
    """
    stream = None if options.quiet or (options.json and options.progress != "json") else sys.stderr
    with TerminalProgress(stream) as terminal:
        show: Callable[[ProgressEvent], None] = terminal.handle
        if options.progress == "json":
            show = JsonProgress(stream).handle
        elif not shows_stages:
            show = terminal.handle_message
        progress = RecordingProgress(Progress(show))
        with interruptible(progress):
            yield progress
