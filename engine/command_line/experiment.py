"""``proteoscope experiment``: the sub-commands that define an experiment of many runs and search it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope.engine import experiments, searches, views
from proteoscope.engine import project as project_package
from proteoscope.engine.command_line.search import add_input, add_memory_limit, add_search_options, begin_gpus, build_request
from proteoscope.engine.command_line.terminal import STANDARD_OUTPUT, check_printed, command_progress, output_file, output_name, show_result
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project.outputs import folder_name
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.entry import Search, SearchRequest
    from proteoscope.engine.estimates import Estimate
    from proteoscope.engine.experiments.running import RunOutcome
    from proteoscope.engine.experiments.table import ExperimentRow
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.project import Project

__all__ = ["add_experiment", "estimate_run"]

_OPTIONS_OF_ONE_RUN = ("from_project", "run")
"""Options of searches that refer to one identification."""
_SOME_RUNS_FAILED = 2
_MAXIMUM_PROCESSES, _MAXIMUM_DIGITS = 256, 6
_DESCRIPTION = "Define an experiment of many runs in a project, and search each run alone with the same parameters."
_RUN_EPILOG = "The exit code is 2 if a run failed. Run the same command again to resume, or to search files that were added or repaired."


def add_experiment(commands: Any, arguments: Sequence[str]) -> None:
    """Add the sub-command ``experiment`` to argparse's sub-parsers `commands`.

    `arguments` are the arguments of the command line, which name the search whose options are added.
    """
    parser = commands.add_parser("experiment", help="define and search an experiment of many runs", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    create = actions.add_parser("create", help="create an experiment from a table of runs or from files")
    create.add_argument("project", type=folder_name, metavar="PROJECT", help="project folder, created if missing")
    _add_files(create, "spectrum files")
    create.set_defaults(command=_create)

    add = actions.add_parser("add", help="add files, or finished runs of the project, to an experiment")
    add.add_argument("project", metavar="PROJECT", help="project folder")
    _add_files(add, "spectrum files, or names of finished runs of the project")
    add.set_defaults(command=_add)

    remove = actions.add_parser("remove", help="remove runs from an experiment; their results remain in the project")
    remove.add_argument("project", metavar="PROJECT", help="project folder")
    remove.add_argument("runs", nargs="+", metavar="RUN_OR_FILE", help="names of runs, or their files")
    remove.set_defaults(command=_remove)

    listing = actions.add_parser("list", help="list the runs of an experiment and the state of each")
    listing.add_argument("project", metavar="PROJECT", help="project folder")
    listing.set_defaults(command=_list)

    quality = actions.add_parser("quality", help="write the quality of the finished runs as an HTML page")
    quality.add_argument("project", metavar="PROJECT", help="project folder")
    quality.add_argument("--html", required=True, type=output_name, metavar="FILE", help="self-contained HTML file; - for standard output")
    quality.set_defaults(command=_quality)

    export = actions.add_parser("export", help="write the table of runs as an SDRF-Proteomics table")
    export.add_argument("project", metavar="PROJECT", help="project folder")
    export.add_argument("--out", required=True, type=output_name, metavar="FILE.sdrf.tsv", help="table to write; - for standard output")
    export.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="set a column that the program cannot fill to one value in all rows, such as 'organism=homo sapiens'; may be given several"
        " times",
    )
    export.set_defaults(command=_export)

    search = searches.search_of_kind(_named_search(arguments))
    run = actions.add_parser("run", help="search the runs that are not finished", epilog=_RUN_EPILOG)
    run.add_argument("project", metavar="PROJECT", help="project folder")
    run.add_argument(
        "--search",
        choices=searches.EXPERIMENT_KINDS,
        default=search.kind,
        help="search to use for all runs (default: identify); the options listed below are those of this search",
    )
    for search_input in search.inputs:
        if search_input.option:
            add_input(run, replace(search_input, instead=""), takes_several=True)
    add_search_options(run, search, explains="experiment" in arguments[:1], exclude=_OPTIONS_OF_ONE_RUN)
    run.add_argument(
        "--processes",
        type=_process_count,
        metavar="N",
        help="number of runs to search at the same time, each in a process with its share of the threads (default: one for two CPU threads;"
        " 1 with a named GPU or with --workers)",
    )
    run.add_argument(
        "--if-busy",
        choices=("refuse", "wait"),
        default="refuse",
        help="if another process is writing to the project: refuse to run (default), or wait",
    )
    run.set_defaults(command=_run)

    report = actions.add_parser("report", help="estimate error rates of peptides and protein groups over all finished runs")
    report.add_argument("project", metavar="PROJECT", help="project folder")
    report.add_argument("--tsv", action="store_true", help="also export peptides and protein groups as text, to PROJECT/exports")
    add_memory_limit(report)
    report.set_defaults(command=_report)


def _named_search(arguments: Sequence[str]) -> str:
    """Return the kind of search that the arguments of the command line name; ``identify`` if they name no known search."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--search", nargs="?")
    kind = parser.parse_known_args(arguments)[0].search
    return kind if kind in searches.EXPERIMENT_KINDS else searches.EXPERIMENT_KINDS[0]


def _add_files(parser: argparse.ArgumentParser, described: str) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help=described)
    parser.add_argument(
        "--runs",
        metavar="TABLE.tsv",
        help="tab-separated table with the column file and, if known, sample, condition, fraction, replicate, label; or an SDRF table",
    )
    parser.add_argument(
        "--pattern",
        default="",
        metavar="REGEX",
        help="regular expression (RE2) for file names; its named groups are columns, such as '(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)'",
    )


def _create(options: argparse.Namespace) -> None:
    folder = Path(options.project)
    with command_progress(options) as progress, project_package.removed_if_unused(folder):
        new = _given_rows(options, None, progress)
        project = project_package.Project.create_or_open(folder)
        count = experiments.table.change_experiment(
            project, lambda _: experiments.table.add_rows([], new, project, progress), progress, is_new=True
        )
    show_result(options, {"added": count}, [f"The experiment has {counted(count, 'run')}"])


def _add(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    with command_progress(options) as progress:
        new = _given_rows(options, project, progress)
        count = experiments.table.change_experiment(
            project, lambda rows: experiments.table.add_rows(rows, new, project, progress), progress
        )
    show_result(options, {"added": count}, [f"Added {counted(count, 'run')}"])


def _remove(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)

    def remove(rows: Sequence[ExperimentRow]) -> tuple[list[ExperimentRow], int]:
        remaining = experiments.table.remove_runs(rows, options.runs)
        return remaining, len({row.run for row in rows} - {row.run for row in remaining})

    with command_progress(options) as progress:
        count = experiments.table.change_experiment(project, remove, progress)
    show_result(options, {"removed": count}, [f"Removed {counted(count, 'run')}; results remain in the project"])


def _list(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    rows = experiments.table.read_experiment(project)
    status = experiments.running.experiment_status(project, rows)
    record = [{**row._asdict(), "status": status[row.run]} for row in rows]
    show_result(options, record, _lines(rows, status))


def _quality(options: argparse.Namespace) -> None:
    project, is_printed = project_package.Project.open(options.project), options.html == STANDARD_OUTPUT
    if is_printed:
        check_printed(options)
    else:
        project_package.outputs.check_outputs([Path(options.html)], [], project.folder)
    with output_file(options.html) as path, command_progress(options) as progress:
        n_runs = views.experiment_figures.write_quality_page(project, path, progress)
    record = {"runs": n_runs, "html": options.html}
    show_result(options, record, [] if is_printed else [f"{options.html}: {counted(n_runs, 'finished run')}"])


def _process_count(text: str) -> int:
    """Return the number of processes that a text gives."""
    if not text.isdecimal() or len(text) > _MAXIMUM_DIGITS or not 1 <= int(text) <= _MAXIMUM_PROCESSES:
        raise argparse.ArgumentTypeError(f"'{text:.40}': expected a number from 1 to {_MAXIMUM_PROCESSES}")
    return int(text)


def _requested(options: argparse.Namespace) -> tuple[Search, SearchRequest, list[ExperimentRow], Project, int]:
    """Return the search, a request with the files of all runs, the rows of the experiment, the project, and the number of processes.

    These are the values for ``experiment run`` that the parsed arguments `options` determine.
    """
    project, search = project_package.Project.open(options.project), searches.search_of_kind(options.search)
    rows = experiments.table.read_experiment(project)
    if not rows:
        raise InputError(project.folder, "has an experiment without runs", remedy="Add files: proteoscope experiment add")
    given = {"spectra": list(dict.fromkeys(row.file for row in rows)), "out": options.project, "run_name": "", "overwrite": False}
    given |= dict.fromkeys(_OPTIONS_OF_ONE_RUN)
    request = build_request(search, argparse.Namespace(**{**vars(options), **given, "memory_limit": 0}))
    request, processes = experiments.estimating.keep_memory(search, request, options.memory_limit, rows, project, options.processes)
    return search, request, rows, project, processes


def estimate_run(options: argparse.Namespace) -> Estimate:
    """Return the estimate of ``experiment run`` with these options."""
    return experiments.estimating.estimate_experiment(*_requested(options))


def _export(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    values = dict(text.partition("=")[::2] for text in options.set)
    is_printed = options.out == STANDARD_OUTPUT
    if is_printed:
        check_printed(options)
    with output_file(options.out) as path:
        missing = experiments.running.write_sdrf(project, path, values)
    record = {"out": options.out, "not_available": missing}
    lines = [f"Written to {options.out}", *([f"Not available: {', '.join(missing)}; give values with --set"] if missing else [])]
    show_result(options, record, () if is_printed else lines)


def _run(options: argparse.Namespace) -> None:
    search, request, rows, project, processes = _requested(options)
    if options.device != "cpu" and not options.workers:
        begin_gpus(options.device)
    with command_progress(options) as progress:
        outcomes = experiments.running.run_experiment(search, request, rows, project, progress, processes)
    record = [{"run": outcome.run, "file": outcome.file, "status": outcome.status, "message": outcome.message} for outcome in outcomes]
    show_result(options, record, _outcome_lines(outcomes))
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in failed if options.quiet else ():
        print(f"proteoscope: {outcome.run} failed: {outcome.message}", file=sys.stderr)
    if failed:
        raise SystemExit(_SOME_RUNS_FAILED)


def _report(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    rows = experiments.table.read_experiment(project)
    with command_progress(options) as progress:
        report = experiments.report.report_experiment(project, rows, progress, with_text=options.tsv, memory_limit=options.memory_limit)
    show_result(options, report.record(), report.lines())


def _given_rows(options: argparse.Namespace, project: Project | None, progress: Progress) -> list[ExperimentRow]:
    """Return the rows that the arguments describe: a table, or files and finished runs of `project`."""
    if bool(options.runs) == bool(options.files) or (options.runs and options.pattern):
        raise ParameterError("give either --runs TABLE.tsv, or files with or without --pattern")
    if options.runs:
        return experiments.table.read_table(Path(options.runs), progress)
    finished = set() if project is None else {run.id for run in project.runs() if run.status == "done"}
    runs = [name for name in options.files if name in finished and not Path(name).exists()]
    files = [Path(name) for name in options.files if name not in runs]
    joined = [] if project is None else experiments.running.finished_rows(project, runs, experiments.table.read_experiment(project))
    return [*joined, *experiments.table.describe_files(files, options.pattern)]


def _lines(rows: Sequence[ExperimentRow], status: dict[str, str]) -> Iterator[str]:
    width = max((len(row.run) for row in rows), default=0)
    for row in rows:
        of = "  ".join(filter(None, (row.sample, row.condition, f"fraction {row.fraction}", f"replicate {row.replicate}", row.label)))
        yield f"{row.run:<{width}}  {status[row.run]:<12}  {of}  {row.file}"
    counts = Counter(status.values())
    yield f"{counted(len(status), 'run')}: {', '.join(f'{count:,} {name}' for name, count in sorted(counts.items()))}"


def _outcome_lines(outcomes: Sequence[RunOutcome]) -> Iterator[str]:
    counts = Counter(outcome.status for outcome in outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            yield f"{outcome.run} failed: {outcome.message}"
    yield f"{counts['done']:,} searched, {counts['skipped']:,} were finished before, {counts['failed']:,} failed"
