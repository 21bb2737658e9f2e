"""``proteoscope experiment``: the sub-commands that define an experiment of many runs and search it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proteoscope.engine import experiments, searches
from proteoscope.engine import project as project_package
from proteoscope.engine.command_line.search import add_input, add_search_options, begin_gpus, build_request
from proteoscope.engine.command_line.terminal import command_progress, show_result
from proteoscope.engine.entry import DATABASE_INPUT
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.project.outputs import folder_name
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.experiments.running import RunOutcome
    from proteoscope.engine.experiments.table import ExperimentRow
    from proteoscope.engine.jobs.progress import Progress
    from proteoscope.engine.project import Project

__all__ = ["add_experiment"]

_KIND = "identify"
_SOME_RUNS_FAILED = 2
_DESCRIPTION = "Define an experiment of many runs in a project, and search each run alone with the same parameters."


def add_experiment(commands: Any, *, explains: bool) -> None:
    """Add the sub-command ``experiment`` to argparse's sub-parsers `commands`.

    If `explains` is True, the options of parameters have help texts.
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

    listing = actions.add_parser("list", help="list the runs of an experiment and what is done")
    listing.add_argument("project", metavar="PROJECT", help="project folder")
    listing.set_defaults(command=_list)

    search = searches.search_of_kind(_KIND)
    run = actions.add_parser(
        "run",
        help="search the runs that are not finished",
        epilog="The exit code is 2 if a run failed. Run the same command again to resume, or to search files that were added or repaired.",
    )
    run.add_argument("project", metavar="PROJECT", help="project folder")
    add_input(run, DATABASE_INPUT, takes_several=True)
    add_search_options(run, search, explains=explains)
    run.add_argument(
        "--if-busy",
        choices=("refuse", "wait"),
        default="refuse",
        help="while another process writes the project: refuse to run (default), or wait",
    )
    run.set_defaults(command=_run)


def _add_files(parser: argparse.ArgumentParser, described: str) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help=described)
    parser.add_argument(
        "--runs",
        metavar="TABLE.tsv",
        help="tab-separated table with the column file and, if known, sample, condition, fraction, replicate, label",
    )
    parser.add_argument(
        "--pattern",
        default="",
        metavar="REGEX",
        help="regular expression for file names, whose named groups are values, such as '(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)'",
    )


def _create(options: argparse.Namespace) -> None:
    folder = Path(options.project)
    with command_progress(options) as progress, project_package.removed_if_unused(folder):
        new = _given_rows(options, None)
        project = project_package.Project.create_or_open(folder)
        count = _change(project, lambda _: experiments.table.add_rows([], new, project, progress), progress, is_new=True)
    show_result(options, {"added": count}, [f"The experiment has {counted(count, 'run')}"])


def _add(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    with command_progress(options) as progress:
        new = _given_rows(options, project)
        count = _change(project, lambda rows: experiments.table.add_rows(rows, new, project, progress), progress)
    show_result(options, {"added": count}, [f"Added {counted(count, 'run')}"])


def _remove(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)

    def remove(rows: Sequence[ExperimentRow]) -> tuple[list[ExperimentRow], int]:
        remaining = experiments.table.remove_runs(rows, options.runs)
        return remaining, len({row.run for row in rows} - {row.run for row in remaining})

    with command_progress(options) as progress:
        count = _change(project, remove, progress)
    show_result(options, {"removed": count}, [f"Removed {counted(count, 'run')}; results remain in the project"])


def _list(options: argparse.Namespace) -> None:
    project = project_package.Project.open(options.project)
    rows = experiments.table.read_experiment(project)
    status = experiments.running.experiment_status(project, rows)
    record = [{**row._asdict(), "status": status[row.run]} for row in rows]
    show_result(options, record, _lines(rows, status))


def _run(options: argparse.Namespace) -> None:
    project, search = project_package.Project.open(options.project), searches.search_of_kind(_KIND)
    rows = experiments.table.read_experiment(project)
    if not rows:
        raise InputError(project.folder, "has an experiment without runs", remedy="Add files: proteoscope experiment add")
    given = {"spectra": list(dict.fromkeys(row.file for row in rows)), "out": options.project, "run_name": "", "overwrite": False}
    request = build_request(search, argparse.Namespace(**{**vars(options), **given}))
    if options.device != "cpu" and not options.workers:
        begin_gpus(options.device)
    with command_progress(options) as progress:
        outcomes = experiments.running.run_experiment(search, request, rows, project, progress)
    record = [{"run": outcome.run, "file": outcome.file, "status": outcome.status, "message": outcome.message} for outcome in outcomes]
    show_result(options, record, _outcome_lines(outcomes))
    if any(outcome.status == "failed" for outcome in outcomes):
        raise SystemExit(_SOME_RUNS_FAILED)


def _given_rows(options: argparse.Namespace, project: Project | None) -> list[ExperimentRow]:
    """Return the rows that the arguments describe: a table, or files and finished runs of `project`."""
    if bool(options.runs) == bool(options.files) or (options.runs and options.pattern):
        raise ParameterError("give either --runs TABLE.tsv or files, these also with --pattern")
    if options.runs:
        return experiments.table.read_table(Path(options.runs))
    finished = set() if project is None else {run.id for run in project.runs() if run.status == "done"}
    runs = [name for name in options.files if name in finished and not Path(name).exists()]
    files = [Path(name) for name in options.files if name not in runs]
    joined = [] if project is None else [experiments.running.finished_row(project, run, _KIND) for run in runs]
    return [*joined, *experiments.table.describe_files(files, options.pattern)]


def _change(
    project: Project,
    change: Callable[[Sequence[ExperimentRow]], tuple[list[ExperimentRow], int]],
    progress: Progress,
    *,
    is_new: bool = False,
) -> int:
    """Replace the rows of the experiment by those that `change` returns with a number, and return this number."""
    with project.writing("the experiment", progress):
        if is_new and (project.folder / project_package.paths.EXPERIMENT).exists():
            raise InputError(project.folder, "has an experiment already", remedy="Add runs to it: proteoscope experiment add")
        rows, count = change([] if is_new else experiments.table.read_experiment(project))
        experiments.table.write_experiment(project, rows)
    return count


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
