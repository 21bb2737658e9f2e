"""Sub-commands of all searches, created from the list of searches."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from proteoscope import engine, resources
from proteoscope.engine import execution
from proteoscope.engine import project as project_package
from proteoscope.engine.command_line.terminal import (
    STANDARD_INPUT,
    STANDARD_OUTPUT,
    check_printed,
    command_progress,
    listed,
    output_files,
    output_name,
    read_standard_input,
    show_result,
)
from proteoscope.engine.entry import Command, Demo, Input, SampleData, Search, SearchRequest
from proteoscope.engine.errors import ParameterError, RunExistsError
from proteoscope.engine.execution.clock import COMPILATION
from proteoscope.engine.project.outputs import folder_name
from proteoscope.engine.searches import MAXIMUM_THREADS, check_preset_remains, check_run_options, run_or_skip
from proteoscope.engine.summary import Summary

if TYPE_CHECKING:
    from proteoscope.engine.parameters import SearchParameters

__all__ = [
    "add_demo",
    "add_input",
    "add_memory_limit",
    "add_search",
    "add_search_options",
    "begin_gpus",
    "build_request",
    "run_search",
    "summary_lines",
    "thread_count",
]

_DEMO_EPILOG = "A search that continues a project, such as evidence, runs after the search that creates the project."
PUBLISHED = "published"
"""Name of the preset with the settings of a published method; only some searches have such a preset."""


def add_search(commands: Any, search: Search, *, explains: bool) -> None:
    """Add the sub-command of a search, and related sub-commands, to argparse's sub-parsers `commands`.

    If `explains` is True, the options of parameters have help texts, for which the class of parameters is loaded.
    """
    parser = commands.add_parser(
        search.kind,
        help=search.purpose[:1].lower() + search.purpose[1:],
        description=search.description,
        epilog=f"{search.epilog}\nParameters: proteoscope parameters {search.kind}. Presets: proteoscope presets {search.kind}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    positional = [search_input for search_input in search.inputs if not search_input.option]
    for search_input in search.inputs:
        add_input(
            parser, search_input, takes_several=search_input.several and (bool(search_input.option) or search_input is positional[-1])
        )
    if search.writes == "project":
        parser.add_argument("--out", required=True, type=folder_name, metavar="DIR", help="project folder, created if missing")
    elif search.writes == "given project":
        parser.add_argument("--out", type=output_name, metavar="FILE", help="also write the table of results here; - for standard output")
    else:
        parser.add_argument(
            "--out",
            required=True,
            type=output_name,
            metavar="FILE",
            help="file for the results, gzipped if its name ends with .gz; - for standard output, which then contains only the results",
        )
        formats = [export.name for export in search.exports if not export.is_folder]
        parser.add_argument("--format", choices=formats, help=f"format of FILE (default: by its suffix, or {formats[0]})")
        parser.add_argument("--project", metavar="DIR", help="also record the run and its tables in this project folder")
    add_search_options(parser, search, explains=explains)
    _add_run_options(parser)
    parser.set_defaults(command=lambda options: run_search(search, options))
    for command in search.commands:
        subcommand = commands.add_parser(command.name, help=command.help)
        command.add(subcommand)
        subcommand.set_defaults(command=lambda options, command=command: _run_command(command, options))


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for pipelines: name of the run, existing results, and projects in use."""
    parser.add_argument(
        "--run-name", default="", metavar="NAME", help="name of the run, whose tables are in PROJECT/results/NAME (default: KIND-NUMBER)"
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="replace a finished run of this name when the new one is done")
    existing.add_argument(
        "--skip-existing",
        action="store_true",
        help="do nothing if a run of this name with the same parameters and files exists, and also the file given with --out",
    )
    parser.add_argument(
        "--if-busy",
        choices=("refuse", "wait"),
        default="refuse",
        help="if another process is writing to the project: refuse to run (default), or wait",
    )


def _run_command(command: Command, options: argparse.Namespace) -> None:
    written = {name: getattr(options, name) for name in command.outputs}
    if STANDARD_OUTPUT in written.values():
        check_printed(options)
    with (
        read_standard_input(options, *command.inputs) as given,
        output_files(given, written) as given,
        command_progress(options) as progress,
    ):
        record = command.run(given, progress)
    show_result(options, {**record, **written, "messages": progress.messages})


def add_input(parser: argparse.ArgumentParser, search_input: Input, *, takes_several: bool) -> None:
    """Add an input of a search to a parser, with several files if `takes_several`."""
    if search_input.option:
        is_required = not (search_input.instead or search_input.is_optional)
        repeated: dict[str, Any] = {"action": "extend", "nargs": "+"} if search_input.in_a_row else {"action": "append"}
        parser.add_argument(
            search_input.option,
            dest=search_input.name,
            required=is_required,
            metavar=search_input.metavar,
            help=search_input.described,
            **repeated,
        )
    else:
        several = "*" if search_input.instead or search_input.is_optional else "+"
        parser.add_argument(
            search_input.name, nargs=several if takes_several else None, metavar=search_input.metavar, help=search_input.described
        )


def add_search_options(
    parser: argparse.ArgumentParser, search: Search, preset: str = "", *, explains: bool = False, exclude: Collection[str] = ()
) -> None:
    """Add the options common to all searches and the options of this search to a parser, except those named in `exclude`.

    `preset` is the default preset; '' for the default preset of the search.
    """
    usual = preset or search.preset
    parser.add_argument(
        "--preset",
        default=None if search.fitting else usual or None,
        metavar="NAME|FILE.toml",
        help="name or file of the initial parameters; - reads them from standard input"
        + (f" (default: {usual}{', or the preset that suits the files' if search.fitting else ''})" if usual else ""),
    )
    if resources.path("presets", search.kind, f"{PUBLISHED}.toml").is_file():
        parser.add_argument(
            "--published",
            dest="preset",
            action="store_const",
            const=PUBLISHED,
            help=f"the settings of the paper that the method comes from: the same as --preset {PUBLISHED}",
        )
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change one parameter; may be given several times"
    )
    described = {parameter.name: parameter for parameter in search.model.describe()} if explains and search.shortcuts else {}
    for name in search.shortcuts:
        flag, text = f"--{name.replace('_', '-')}", f"the same as --set {name}=VALUE"
        if name in described:
            text = f"{described[name].help} The same as --set {name}=VALUE (default: {described[name].default})".replace("%", "%%")
        parser.add_argument(flag, dest=f"parameter_{name}", metavar="VALUE", help=text)
    parser.add_argument(
        "--device",
        default="auto",
        metavar="auto|cpu|cuda|cuda:N|all",
        help="device: auto, all usable GPUs or else the CPU; cuda, the first usable GPU; all, the GPUs and the CPU"
        " together (default: %(default)s)",
    )
    parser.add_argument("--threads", type=thread_count, metavar="N", help="CPU threads (default: all)")
    if search.workload_estimator is not None:
        add_memory_limit(parser)
    of_workers = "compute in other processes, here or on other machines: local:N, ssh:HOSTS.txt, slurm:CONFIG.toml or tls://HOST:PORT"
    of_certificates = "folder of certificates for --workers tls://HOST:PORT, created by 'proteoscope workers certificates'"
    helps = (f"{of_workers} (see docs/cluster.md)", of_certificates) if search.takes_workers else (argparse.SUPPRESS,) * 2
    parser.add_argument("--workers", default="", metavar="WORKERS", help=helps[0])
    parser.add_argument("--certificates", metavar="DIR", help=helps[1])
    for option in (option for option in search.options if option.name not in exclude):
        if option.metavar:
            choices = option.choices or None
            kind = output_name if option.is_output_file else folder_name if option.is_folder else str
            parser.add_argument(option.flag, dest=option.name, type=kind, metavar=option.metavar, help=option.help, choices=choices)
        else:
            parser.add_argument(option.flag, dest=option.name, action="store_true", help=option.help)


def add_memory_limit(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--memory-limit``."""
    parser.add_argument(
        "--memory-limit",
        type=megabytes,
        default=0,
        metavar="MB",
        help="maximum memory on the host; indexes are made smaller if needed, and a run with a higher estimate is refused (default: none)",
    )


def add_demo(commands: Any, searches: Sequence[Search]) -> None:
    """Add the sub-command ``demo``, which runs searches on sample data; `searches` are the searches with a demo, the default first."""
    first, by_kind = searches[0], {search.kind: search for search in searches}
    assert first.demo is not None
    parser = commands.add_parser("demo", help="try searches with the sample data of the program", epilog=_DEMO_EPILOG)
    parser.add_argument(
        "search",
        nargs="?",
        choices=list(by_kind),
        default=first.kind,
        metavar="SEARCH",
        help=f"search to run: {', '.join(by_kind)} (default: %(default)s)",
    )
    parser.add_argument("--out", default="proteoscope_demo", type=folder_name, metavar="DIR", help="project folder (default: %(default)s)")
    several = [search.kind for search in searches if search.more_demos]
    parser.add_argument(
        "--data",
        choices=get_args(SampleData),
        default="",
        help=f"sample data: measured runs, or a simulated TMT run of two conditions ({', '.join(several)})",
    )
    add_search_options(parser, first, first.demo.preset)
    parser.set_defaults(run_name="", overwrite=False, skip_existing=False, if_busy="refuse")

    def run(options: argparse.Namespace) -> None:
        chain = list(_demo_chain(options.search, options.data, by_kind))
        if not chain:
            raise ParameterError(f"demo {options.search} has no {options.data} data: leave out --data")
        changed = [name for name in first.shortcuts if getattr(options, f"parameter_{name}") is not None]
        if chain != [(first, first.demo)] and (changed or options.set or options.preset != parser.get_default("preset")):
            kinds, whose = " and then ".join(search.kind for search, _ in chain), "their" if len(chain) > 1 else "its"
            raise ParameterError(
                f"demo {options.search} runs {kinds} with {whose} default parameters: leave out --preset, --set and parameter options"
            )
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        run_id = None
        for search, demo in chain:
            given = options if demo == first.demo else _arguments_of_next_demo(search, demo, options, run_id)
            for name, paths in demo.inputs.items():
                setattr(given, name, [str(path) for path in paths])
            for name, path in demo.option_files.items():
                setattr(given, name, str(path))
            is_last = search is chain[-1][0]
            summary = run_search(search, given if is_last else argparse.Namespace(**{**vars(given), "shows_result": False}))
            run_id = None if summary is None else summary.run_id

    parser.set_defaults(command=run)


def _demo_chain(kind: str, data: str, by_kind: Mapping[str, Search]) -> Iterator[tuple[Search, Demo]]:
    """Yield the searches to run for a demo, in order, each with its demo.

    The last one is the search `kind` with the sample data `data`; before it are the searches whose results it uses. Nothing is yielded if
    the search has no demo with these data.
    """
    search = by_kind[kind]
    demo = search.demo_with(data)
    if demo is not None:
        if demo.after:
            yield from _demo_chain(demo.after, demo.data, by_kind)
        yield search, demo


def _arguments_of_next_demo(search: Search, demo: Demo, options: argparse.Namespace, before: str | None) -> argparse.Namespace:
    """Return the arguments of the next demo in the same project.

    The demo has default parameters, except that it uses the finished run `before` if it needs one.
    """
    given = argparse.Namespace(**vars(options))
    names_run = demo.after and before is not None and "run" in search.model.model_fields
    given.preset, given.set = demo.preset, [f"run={before}"] if names_run else []
    for name in search.shortcuts:
        setattr(given, f"parameter_{name}", None)
    for option in search.options:
        setattr(given, option.name, options.out if option.is_project else None)
    for search_input in search.inputs:
        setattr(given, search_input.name, options.out if search_input.content == "project" else [])
    if search.writes != "project":
        given.project, given.out, given.format = options.out, None, ""
    return given


def megabytes(text: str) -> int:
    """Convert the value of ``--memory-limit`` for argparse."""
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"'{text:.20}' is not a number of megabytes from 1")
    return int(text)


def thread_count(text: str) -> int:
    """Convert the value of ``--threads`` for argparse."""
    if not text.isdecimal() or not 1 <= int(text) <= MAXIMUM_THREADS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of threads; expected 1 to {MAXIMUM_THREADS}")
    return int(text)


def run_search(search: Search, options: argparse.Namespace) -> Summary | None:
    """Run a search with the parsed arguments, print its results, and return the summary; None if the results exist already."""
    written = _written_files(search, options)
    is_printed = STANDARD_OUTPUT in written.values()
    if list(written.values()).count(STANDARD_OUTPUT) > 1 or (is_printed and options.json):
        raise ParameterError("standard output takes only one file of results; give other files a name, and leave out --json with -")
    project = _project(search, options)
    check_run_options(
        options.run_name,
        overwrite=options.overwrite,
        skip_existing=options.skip_existing,
        has_project=project is not None,
        written=lambda name: f"--{name.replace('_', '-')}",
    )
    have_files = all(Path(path).exists() for path in written.values() if path != STANDARD_OUTPUT) and not is_printed
    if options.skip_existing and project is None and have_files:
        _show_skipped(options, None, written)
        return None
    if options.device != "cpu" and not options.workers:
        begin_gpus(options.device)
    with read_standard_input(options, *_read_files(search)) as given, project_package.removed_if_unused(project):
        summary = run_or_skip(
            lambda overwrite: _run_once(search, argparse.Namespace(**{**vars(given), "overwrite": overwrite}), written),
            overwrite=options.overwrite,
            skip_existing=options.skip_existing,
            have_files=have_files,
        )
    if isinstance(summary, RunExistsError):
        _show_skipped(options, summary, written)
        return None
    if getattr(options, "shows_result", True) or not options.json:
        show_result(options, summary.record(), () if is_printed else summary_lines(search, summary, options.out))
    return summary


def _run_once(search: Search, options: argparse.Namespace, written: Mapping[str, str]) -> Summary:
    with output_files(options, written) as given, command_progress(options) as progress:
        parameters, preset = _read_parameters(search, given)
        if not options.preset and preset != search.preset:
            progress.message(f"The preset '{preset}' suits these files and is used; the default is --preset {search.preset}")
        request = _request(search, given, parameters)
        check_preset_remains(search, request, preset)
        return search.run(request, progress)


def _show_skipped(options: argparse.Namespace, existing: RunExistsError | None, written: Mapping[str, str]) -> None:
    """Report that nothing was computed, since the results exist."""
    record = {
        "skipped": True,
        "run_id": None if existing is None else existing.run,
        "folder": None if existing is None else existing.path,
        "files": list(written.values()),
    }
    run = [] if existing is None else [f"run '{existing.run}' of {existing.path}"]
    results = [*run, *written.values()]
    show_result(options, record, [f"Nothing to do: {' and '.join(results)} exist{'s' if len(results) == 1 else ''}"])


def _project(search: Search, options: argparse.Namespace) -> Path | None:
    """Return the folder of the project that records the run, or None."""
    if search.writes == "given project":
        given = next(search_input.name for search_input in search.inputs if search_input.content == "project")
        return Path(getattr(options, given))
    project = options.out if search.writes == "project" else options.project
    return None if project is None else Path(project)


def _read_files(search: Search) -> list[str]:
    """Return the names of the options that are files which a search reads."""
    inputs = [search_input.name for search_input in search.inputs if search_input.content != "project"]
    return [*inputs, *(option.name for option in search.options if option.is_file and not option.is_output), "preset"]


def _written_files(search: Search, options: argparse.Namespace) -> dict[str, str]:
    """Return the files that a search writes in addition to a project, by the names of their options."""
    names = [*(["out"] if search.writes != "project" else []), *(option.name for option in search.options if option.is_output_file)]
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def build_request(search: Search, options: argparse.Namespace) -> SearchRequest:
    """Return the search request of the parsed arguments, without creating output files.

    Raises
    ------
    ParameterError
        If a parameter is invalid.
    InputError
        If there is no such preset.
    """
    if any(STANDARD_INPUT in listed(getattr(options, name, None)) for name in _read_files(search)):
        raise ParameterError("standard input has no size before it is read; give the name of a file")
    return _request(search, options, _read_parameters(search, options)[0])


def _read_parameters(search: Search, options: argparse.Namespace) -> tuple[SearchParameters, str]:
    """Return the parameters of the parsed arguments, and the name of the preset from which they were derived."""
    shortcuts = {name: getattr(options, f"parameter_{name}") for name in search.shortcuts}
    changes = {name: value for name, value in shortcuts.items() if value is not None}
    preset = options.preset or search.usual_preset(
        {search_input.name: _paths(getattr(options, search_input.name)) for search_input in search.inputs},
        {option.name: getattr(options, option.name) for option in search.options},
        {*changes, *(text.partition("=")[0].strip() for text in options.set)},
    )
    return search.parameters_of(preset).changed(options.set, **changes), preset


def _request(search: Search, options: argparse.Namespace, parameters: SearchParameters) -> SearchRequest:
    search.check_workers(options.workers, options.certificates)
    project = None if search.writes == "given project" else _project(search, options)
    request = SearchRequest(
        {search_input.name: _paths(getattr(options, search_input.name)) for search_input in search.inputs},
        parameters,
        project,
        None if search.writes == "project" else options.out,
        search.format_of(str(options.out), options.format or "") if search.writes == "file" and options.out is not None else "",
        {option.name: getattr(options, option.name) for option in search.options},
        options.device,
        options.threads,
        workers=options.workers,
        certificates=options.certificates,
        command=("proteoscope", *getattr(options, "command_line", ())),
        run_name=options.run_name,
        overwrite=options.overwrite,
        waits=options.if_busy == "wait",
    )
    limit = getattr(options, "memory_limit", 0)
    if not limit:
        return request
    return engine.estimates.keep_memory(request, limit, lambda request: engine.estimates.estimate(search, request, compares=False))


def begin_gpus(requested: str) -> None:
    """Start GPU detection in the background, while modules are loaded; not to be called if the CPU is requested.

    With ``auto``, the search may still select the CPU.
    """
    import proteoscope.engine.execution.devices  # noqa: F401 - of two threads that import it concurrently, one could see it incomplete

    threading.Thread(target=_detect_gpus, args=(requested,), daemon=True).start()


def _detect_gpus(requested: str) -> None:
    execution.devices.gpus()
    if requested != "auto":
        with suppress(ParameterError):  # the search reports it
            execution.devices.begin_contexts(execution.devices.resolve_device(requested))


def _paths(given: str | Sequence[str] | None) -> list[Path]:
    return [Path(given)] if isinstance(given, str) else [Path(path) for path in given or ()]


def summary_lines(search: Search, summary: Summary, out: str | None) -> Iterator[str]:
    """Yield the lines that describe the results of a search; `out` is the path of its results file, or None."""
    yield from summary.lines()
    steps = ", ".join(f"{name} {step['seconds']:.2f} s" for name, step in summary.stages.items() if name != COMPILATION)
    yield f"{summary.seconds:.2f} s on {summary.device} ({steps})"
    if COMPILATION in summary.stages:
        yield f"Before the search, kernels were compiled once for this CPU: {summary.stages[COMPILATION]['seconds']:.0f} s"
    if search.writes != "project" and out is not None and Path(out).exists():  # without hits, no stack is written
        yield f"Results: {out}"
    if summary.folder is not None:
        yield f"Project: {summary.folder}"
    if search.writes == "project":
        yield f"Tables:  {summary.folder}/exports"
