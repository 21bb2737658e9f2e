"""The command line: sub-commands for people at a terminal and for scripts.

Imports of what computes happen inside the commands, so that help is quick.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from engine.command_line.align import add_align
from engine.command_line.cache import add_cache
from engine.command_line.export import add_export
from engine.command_line.interruption import INTERRUPTED, INTERRUPTED_TEXT, cancel_on_interrupt, end_on_interrupt, give_back_interrupt
from engine.command_line.terminal import TerminalProgress, printable, say
from engine.errors import ParameterError, ProteoscopeError
from engine.jobs.progress import Cancelled, Progress

if TYPE_CHECKING:
    from engine.identification.search import IdentificationSummary
    from engine.parameters import SearchParameters

__all__ = ["main"]

_WRONG = 2
_SEARCHES = ("identify", "align")
_MOST_THREADS = 1024
_DEMO_SPECTRA, _DEMO_DATABASE, _DEMO_PRESET = "BSA1.mzML.gz", "18Protein_SoCe_Tr_detergents_trace.fasta.gz", "low-resolution"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with command-line arguments; returns the exit code: 0 done, 2 wrong use or input, 130 interrupted.

    Without `arguments` it is the process's own that it runs with: then the process ends, when it does, with this code and at once.
    """
    if arguments is None:
        end_on_interrupt()
    _print_any_text()
    atexit.unregister(_end_quickly)  # once, however often this is called
    outcome: list[int] = []
    atexit.register(_end_quickly, outcome, is_program=arguments is None)
    outcome.append(_run(arguments))
    return outcome[0]


def _run(arguments: Sequence[str] | None) -> int:
    """Do what the arguments say; the exit code."""
    try:
        parser = _parser()
        options = parser.parse_args(arguments)
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
        _complain(str(error))
        return _WRONG
    except (Cancelled, KeyboardInterrupt):
        _complain(INTERRUPTED_TEXT)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        # The readers and writers turn what befalls their files into errors of ours; what is left is the output or the system itself.
        _drop_output()
        _complain(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
        return _WRONG
    except MemoryError:
        _complain("the memory is not enough; lower index_memory, or search fewer modifications or a smaller database")
        return _WRONG
    return 0


def _end_quickly(outcome: list[int], *, is_program: bool) -> None:
    """Spare Python the look for garbage at its end: in all that the compiler and DuckDB have loaded, it takes a quarter of a second.

    `outcome` holds the exit code, once there is one.
    """
    if outcome and (is_program or (outcome == [INTERRUPTED] and _is_compiling())):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.flush()
        os._exit(outcome[0])
    # DuckDB's binding counts what is left of it then, and would print that it leaked.
    if "duckdb" not in sys.modules:
        gc.freeze()


def _is_compiling() -> bool:
    """What the compiler works with would be taken down under it, which may crash, and it cannot be interrupted."""
    from engine.identification.compilation import is_compiling

    return is_compiling()


def _print_any_text() -> None:
    """Names of files and proteins may hold letters that the terminal's encoding lacks: those are shown as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _complain(text: str) -> None:
    """One line on stderr, where there is one."""
    if sys.stderr is not None:
        print(f"proteoscope: {printable(' '.join(text.split()))}", file=sys.stderr)


def _drop_output() -> None:
    """Whoever read our output has gone, or its disk is full: Python would complain once more when it closes it."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Tells wrong use in one line, as all errors are told."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{message}; see {self.prog} --help")
        sys.exit(_WRONG)


def _parser() -> argparse.ArgumentParser:
    from engine.version import VERSION

    parser = _Parser(prog="proteoscope", description="Protein evidence from mass spectra. Without arguments the window opens.")
    parser.add_argument("--version", action="version", version=f"proteoscope {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    identify = commands.add_parser(
        "identify",
        help="identify peptides and proteins from MS/MS spectra",
        description="Identify peptides and proteins. Results go into a project folder: exports/*.tsv for people, run.json for scripts.",
        epilog="Parameters: proteoscope parameters identify. Presets: proteoscope presets.",
    )
    identify.add_argument("spectra", nargs="+", metavar="SPECTRA", help="mzML, mzXML, MGF, MS2, DTA or PKL files, also gzipped")
    identify.add_argument(
        "--database", action="append", required=True, metavar="FASTA", help="protein sequences; may be given several times"
    )
    identify.add_argument("--out", required=True, metavar="DIR", help="project folder, made where it does not exist")
    _add_search_options(identify)
    identify.set_defaults(command=_identify)

    add_align(commands, _thread_count, _interruptible)

    presets = commands.add_parser("presets", help="list the presets of a search")
    presets.add_argument("search", nargs="?", choices=_SEARCHES, default="identify", help="default: %(default)s")
    presets.set_defaults(command=_presets)

    parameters = commands.add_parser("parameters", help="list the parameters of a search, with bounds and defaults")
    parameters.add_argument("search", choices=_SEARCHES)
    parameters.add_argument("--preset", metavar="NAME|FILE.toml", help="show the values of this preset")
    parameters.add_argument("--json", action="store_true", help="for scripts")
    parameters.set_defaults(command=_parameters)

    devices = commands.add_parser("devices", help="list what can compute on this machine")
    devices.add_argument("--json", action="store_true", help="for scripts")
    devices.set_defaults(command=_devices)

    add_export(commands, _interruptible)
    add_cache(commands)

    demo = commands.add_parser("demo", help="identify the sample run that ships with the program")
    demo.add_argument("--out", default="proteoscope_demo", metavar="DIR", help="project folder (default: %(default)s)")
    _add_search_options(demo, preset=_DEMO_PRESET)
    demo.set_defaults(command=_demo)
    return parser


def _add_search_options(parser: argparse.ArgumentParser, preset: str = "high-resolution") -> None:
    parser.add_argument("--preset", default=preset, metavar="NAME|FILE.toml", help="parameters to begin with (default: %(default)s)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change one parameter; may be given several times"
    )
    parser.add_argument(
        "--device", default="auto", metavar="auto|cpu|cuda|cuda:N|all",
        help="what computes: auto, all usable GPUs or else the processor; cuda, the first usable GPU; all, the GPUs and the processor"
        " together (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--threads", type=_thread_count, metavar="N", help="threads of the processor (default: all)")
    parser.add_argument("--skip-broken", action="store_true", help="leave out spectra that cannot be read, and count them")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print nothing but errors")
    output.add_argument("--json", action="store_true", help="print the summary as JSON")


def _thread_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_THREADS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of threads; expected 1 to {_MOST_THREADS}")
    return int(text)


def _identify(options: argparse.Namespace) -> None:
    from engine.execution.devices import gpus

    if options.device != "cpu":
        # In a process of its own, while this one loads what follows.
        threading.Thread(target=gpus, daemon=True).start()
    from engine.identification.parameters import IdentificationParameters

    parameters = _preset(IdentificationParameters, "identify", options.preset).changed(options.set)
    shows_progress = not options.quiet and not options.json
    with TerminalProgress(sys.stderr if shows_progress else None) as terminal:
        progress = Progress(terminal.handle)
        with _interruptible(progress):
            from engine.identification.search import identify

            summary = identify(
                options.spectra, options.database, options.out, parameters, device=options.device, threads=options.threads,
                skip_broken=options.skip_broken, progress=progress,
            )  # fmt: skip
    if options.json:
        print(json.dumps({**asdict(summary), "folder": str(summary.folder)}, indent=2))
    elif not options.quiet:
        _print_summary(summary, parameters.fdr)


Parameters = TypeVar("Parameters", bound="SearchParameters")


def _preset(model: type[Parameters], search: str, name: str) -> Parameters:
    """The parameters of a preset of a search; an error in them names it."""
    from engine.parameters import read_preset

    values = read_preset(search, name)
    try:
        return model.checked(values)
    except ParameterError as error:
        raise ParameterError(f"preset {name}: {error}") from None


def _print_summary(summary: IdentificationSummary, fdr: float) -> None:
    say(f"{summary.n_searched:,} of {summary.n_spectra:,} spectra searched against {summary.n_proteins_in_database:,} proteins")
    say(f"At {fdr * 100:.3g} % FDR:")
    named = (("psms", "PSMs"), ("peptides", f"peptides ({summary.n_sequences:,} sequences)"), ("proteins", "protein groups"))
    for name, title in named:
        known = summary.certainty[name]
        low, high = (f"{known[key] * 100:.1f}" for key in ("false_share_low", "false_share_high"))
        say(f"  {known['targets']:,} {title}, with {known['decoys']:,} decoys: {low} to {high} % false (95 % interval)")
    for accession, description, n_peptides, coverage in summary.top_proteins:
        say(f"  {accession:<24.24} {n_peptides:>4} peptides {coverage * 100:5.1f} %  {description:.70}")
    steps = ", ".join(f"{name} {step['seconds']:.2f} s" for name, step in summary.stages.items())
    say(f"{summary.seconds:.2f} s on {summary.device} ({steps})")
    say(f"Project: {summary.folder}")
    say(f"Tables:  {summary.folder / 'exports'}")


class _interruptible:  # noqa: N801 - reads as what it does
    """While the block runs, Ctrl-C cancels the progress: the search stops at its next look and leaves nothing half-written."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._previous: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._previous = cancel_on_interrupt(self._progress.cancel)

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            give_back_interrupt(self._previous)


def _presets(options: argparse.Namespace) -> None:
    from engine.parameters import preset_description, preset_names

    for name in preset_names(options.search):
        print(f"{name:<18} {preset_description(options.search, name)}")


def _parameters(options: argparse.Namespace) -> None:
    from engine.identification.parameters import IdentificationParameters
    from engine.sequence_search.parameters import SequenceSearchParameters

    models: dict[str, type[SearchParameters]] = {"identify": IdentificationParameters, "align": SequenceSearchParameters}
    model = models[options.search]
    values = _preset(model, options.search, options.preset) if options.preset else model()
    descriptions = model.describe()
    if options.json:
        print(json.dumps([{**asdict(one), "value": getattr(values, one.name)} for one in descriptions], indent=2))
        return
    group = ""
    for one in descriptions:
        if one.group != group:
            group = one.group
            print(f"\n{group}")
        value = getattr(values, one.name)
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)
        allowed = f" [{'|'.join(one.choices)}]" if one.choices else ""
        if one.minimum is not None or one.maximum is not None:
            allowed = f" [{one.minimum:g} to {one.maximum:g}]"
        unit = f" {one.unit}" if one.unit else ""
        say(f"  {one.name} = {shown or '(none)'}{unit}{allowed}")
        print(f"      {one.help}")


def _devices(options: argparse.Namespace) -> None:
    from engine.execution.devices import devices

    found = devices()
    if options.json:
        print(json.dumps([asdict(device) for device in found], indent=2))
        return
    for device in found:
        state = "usable" if device.usable else f"not usable: {device.reason}"
        memory = f", {device.memory_bytes / 1e9:.1f} GB" if device.memory_bytes else ""
        say(f"{device.name:<8} {device.description}{memory}, {state}")


def _demo(options: argparse.Namespace) -> None:
    import resources

    options.spectra = [str(resources.path("samples", _DEMO_SPECTRA))]
    options.database = [str(resources.path("samples", _DEMO_DATABASE))]
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    _identify(options)
