"""Command line of the program: parser and sub-commands, for people at a terminal and for scripts.

Computing modules are imported inside the commands, so that help is fast.
"""

import argparse
import atexit
import contextlib
import errno
import gc
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from proteoscope import engine
from proteoscope.engine import searches
from proteoscope.engine.command_line.compare import add_compare
from proteoscope.engine.command_line.convert import add_convert
from proteoscope.engine.command_line.experiment import add_experiment
from proteoscope.engine.command_line.export import add_export, add_report
from proteoscope.engine.command_line.interruption import INTERRUPTED_TEXT, end_on_interrupt, interrupted_status
from proteoscope.engine.command_line.machine import add_cache, add_compile, add_cost_model, add_devices, add_estimate, add_samples
from proteoscope.engine.command_line.resume import add_resume, add_runs
from proteoscope.engine.command_line.search import add_demo, add_search
from proteoscope.engine.command_line.system_limits import describe_failure, guard_limits, settings_error
from proteoscope.engine.command_line.terminal import JsonProgress, add_output_options, printable, read_standard_input, show_result
from proteoscope.engine.command_line.workers import add_workers
from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.execution.libraries import lighten_libraries
from proteoscope.engine.files import storage_error
from proteoscope.engine.jobs.progress import Cancelled

__all__ = ["build_parser", "command_parsers", "main"]

_WRONG = 2
_OBJECTS_BETWEEN_COLLECTIONS = 300_000
_SWITCH_SECONDS = 5e-4  # threads that read or compute without the GIL need it briefly; by default they would wait 5 ms for it each time
_LONG_WORD = re.compile(r"\S{1000,}")
"""Pattern of long words, which error messages shorten: a path may have 4,096 bytes, an argument 131,072."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with command-line arguments and return the exit code.

    The code is 0 for success, 2 for wrong usage or input, and 128 + signal number after a signal. If `arguments` is omitted, the arguments
    of the process are used, and the process ends immediately after this function, without garbage collection.
    """
    if arguments is None:
        end_on_interrupt()
        guard_limits()
        # Numba would ignore an invalid setting with a warning of ten lines.
        warnings.filterwarnings("error", "Environment variable 'NUMBA_", RuntimeWarning)
        lighten_libraries()
        # Imports create over 100,000 objects but no garbage; each garbage collection would take 30 ms.
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        sys.setswitchinterval(_SWITCH_SECONDS)
    _print_any_text()
    atexit.unregister(_end_quickly)  # register once, even if this function is called repeatedly
    outcome: list[int] = []
    atexit.register(_end_quickly, outcome, is_program=arguments is None)
    outcome.append(_run(arguments))
    return outcome[0]


def _run(arguments: Sequence[str] | None) -> int:
    """Execute the command-line arguments and return the exit code."""
    if wrong := settings_error():
        _print_error(wrong)
        return _WRONG
    as_json = False
    try:
        parser = build_parser(sys.argv[1:] if arguments is None else arguments)
        options = parser.parse_args(arguments)
        options.command_line = list(sys.argv[1:] if arguments is None else arguments)
        as_json = getattr(options, "progress", None) == "json"
        command: Callable[[argparse.Namespace], None] | None = getattr(options, "command", None)
        if command is None:
            parser.print_help()
        else:
            command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except SystemExit as stop:
        return int(stop.code or 0)
    except ProteoscopeError as error:
        _print_error(_with_notes(str(error), error), as_json=as_json)
        return _WRONG
    except (Cancelled, KeyboardInterrupt) as error:
        _print_error(_with_notes(INTERRUPTED_TEXT, error), interrupted_status(), as_json=as_json)
        return interrupted_status()
    except BrokenPipeError:
        _drop_output()
        return 0
    except (ImportError, RuntimeError, RuntimeWarning, SystemError) as error:
        if not (sentence := describe_failure(error)):
            raise
        _print_error(sentence, as_json=as_json)
        return _WRONG
    except OSError as error:
        # Readers and writers convert the errors of their files; other OSErrors concern standard output or the system.
        _drop_output()
        _print_error(describe_failure(error) or _system_error(error), as_json=as_json)
        return _WRONG
    except MemoryError as error:
        enough = "there is not enough memory; lower index_memory, or search fewer modifications or a smaller database"
        _print_error(describe_failure(error) or enough, as_json=as_json)
        return _WRONG
    return 0


def _system_error(error: OSError) -> str:
    if not error.filename:
        return str(error.strerror or error)
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{error.filename}: permission denied. Check the rights of this file and of the folders above it."
    return str(storage_error(Path(os.fsdecode(error.filename)), error))


def _end_quickly(outcome: list[int], *, is_program: bool) -> None:
    """Avoid the garbage collection at exit, which takes a quarter of a second with the compiler and DuckDB loaded.

    If the process runs only this program (`is_program`) and `outcome` contains an exit code, end the process with this code. `outcome` is
    empty if `main` has not finished.
    """
    if outcome and is_program:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.flush()
        os._exit(outcome[0])
    # Not with DuckDB, since its binding would then report its remaining objects as leaked.
    if "duckdb" not in sys.modules:
        gc.freeze()


def _print_any_text() -> None:
    """Make standard output escape characters that the encoding of the terminal cannot represent, as standard error does by default."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _print_error(text: str, exit_code: int = _WRONG, *, as_json: bool = False) -> None:
    """Print one line on standard error, or an event of ``--progress json`` if `as_json`; ignore a closed terminal."""
    line = printable(_LONG_WORD.sub(lambda word: f"{word[0][:100]}…{word[0][-100:]}", " ".join(text.split())))
    if as_json:
        JsonProgress(sys.stderr).write({"event": "error", "text": line, "exit_code": exit_code})
    elif sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"proteoscope: {line}", file=sys.stderr, flush=True)


def _with_notes(text: str, error: BaseException) -> str:
    """Return a text followed by the notes of an error, such as how to resume a run."""
    return "; ".join([text.removesuffix("."), *notes]) if (notes := getattr(error, "__notes__", [])) else text


def _drop_output() -> None:
    """Discard standard output after writing to it failed, since Python would report the error again at exit."""
    with contextlib.suppress(io.UnsupportedOperation, AttributeError):  # standard output is not a file, or was closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Argument parser that reports wrong usage in one line, and accepts option values that begin with a minus, such as -150..500."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # By default, argparse recognises only negative numbers as values, and `--mass-shift -150..500` would be an option without a value.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        _print_error(f"{message}; see {self.prog} --help")
        sys.exit(_WRONG)


class _CommandParser(_Parser):
    """Parser of a sub-command, whose errors refer to the help of the sub-command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments, and reject unknown ones with a reference to the help of the sub-command, not of the whole program."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown


class _Version(argparse.Action):
    """Argparse action that prints the version of the program, and imports the version only for this purpose."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"proteoscope {engine.version.VERSION}")
        parser.exit()


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each sub-command by name, with descriptions of the parameters, for the manual."""
    return {name: _parsers([name])[1][name] for name in _parsers([])[1]}


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser for these arguments. It has only their sub-command, if known, since adding all sub-commands takes 30 ms."""
    return _parsers(arguments)[0]


def _parsers(arguments: Sequence[str]) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser for these arguments, and the parsers of its sub-commands by name."""
    parser = _Parser(
        prog="proteoscope", description="Protein evidence from mass spectra. Without arguments, or with 'open FILE...', the window opens."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_CommandParser)
    adders = _adders(arguments)
    named = adders.get(arguments[0]) if arguments else None
    for add in [named] if named else dict.fromkeys(adders.values()):
        add(commands)
    for command in commands.choices.values():
        _add_output_options(command)
    return parser, commands.choices


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the common output options to a sub-command or, if it has sub-commands, to each of these."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for command in below[0].choices.values() if below else ():
        _add_output_options(command)
    if not below:
        add_output_options(parser)


def _adders(arguments: Sequence[str]) -> dict[str, Callable[[Any], None]]:
    """Map the name of each sub-command, in the order of the help, to the function that adds it and related sub-commands to the parser."""
    result: dict[str, Callable[[Any], None]] = {}
    for search in searches.SEARCHES:
        # Load parameter descriptions only for the requested command.
        add = partial(add_search, search=search, explains=search.kind in arguments[:1])
        result.update(dict.fromkeys([search.kind, *(command.name for command in search.commands)], add))
    return result | {
        "presets": _add_presets,
        "parameters": _add_parameters,
        "devices": add_devices,
        "estimate": partial(add_estimate, parse=lambda arguments: build_parser(arguments).parse_args(arguments)),
        "cost-model": add_cost_model,
        "experiment": partial(add_experiment, arguments=arguments),
        "runs": add_runs,
        "resume": add_resume,
        "export": add_export,
        "convert": add_convert,
        "compare": add_compare,
        "report": add_report,
        "cache": add_cache,
        "compile": add_compile,
        "samples": add_samples,
        "workers": add_workers,
        "demo": partial(add_demo, searches=[search for search in searches.SEARCHES if search.demo is not None]),
    }


def _add_presets(commands: Any) -> None:
    kinds = [search.kind for search in searches.SEARCHES]
    parser = commands.add_parser("presets", help="list the presets of a search")
    parser.add_argument("search", nargs="?", choices=kinds, default=kinds[0], help="default: %(default)s")
    parser.set_defaults(command=_presets)


def _add_parameters(commands: Any) -> None:
    parser = commands.add_parser("parameters", help="list the parameters of a search, with bounds and defaults")
    others = [command.name for search in searches.SEARCHES for command in search.commands if command.parameters]
    parser.add_argument("search", choices=[*(search.kind for search in searches.SEARCHES), *others])
    parser.add_argument("--preset", metavar="NAME|FILE.toml", help="show the values of this preset; - reads it from standard input")
    parser.set_defaults(command=_parameters)


def _presets(options: argparse.Namespace) -> None:
    presets = {name: engine.parameters.preset_description(options.search, name) for name in engine.parameters.preset_names(options.search)}
    record = [{"name": name, "description": description} for name, description in presets.items()]
    show_result(options, record, (f"{name:<18} {description}" for name, description in presets.items()))


def _parameters(options: argparse.Namespace) -> None:
    command = next(
        (command for search in searches.SEARCHES for command in search.commands if command.name == options.search and command.parameters),
        None,
    )
    if command is not None and options.preset:
        raise ParameterError(f"{command.name} has no presets; leave --preset out")
    model = searches.search_of_kind(options.search).model if command is None else command.model
    with read_standard_input(options, "preset") as given:
        chosen = model() if command is not None else searches.search_of_kind(options.search).parameters_of(given.preset or "")
    values, descriptions = chosen.model_dump(), model.describe()
    record = [{**asdict(description), "value": values[description.name]} for description in descriptions]
    show_result(options, record, _parameter_lines(descriptions, values))


def _parameter_lines(descriptions: Iterable[Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that list parameters by group."""
    group = ""
    for description in descriptions:
        if description.group != group:
            group = description.group
            yield ""
            yield group
        value = values[description.name]
        shown = (
            engine.parameters.list_text(value)
            if isinstance(value, tuple)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )
        allowed = f" [{'|'.join(description.choices)}]" if description.choices else ""
        if description.minimum is not None or description.maximum is not None:
            allowed = f" [{description.minimum:g} to {description.maximum:g}]"
        unit = f" {description.unit}" if description.unit else ""
        yield f"  {description.name} = {shown or '(none)'}{unit}{allowed}"
        yield f"      {description.help}"
